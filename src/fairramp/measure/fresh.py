"""Certificates from fresh rows: the rule was fixed before these rows were seen.

Group k has n_k fresh rows, and r_k is the mean of their selection probabilities: given n_k, a mean of independent
values in [0, 1], whatever the thresholds depend on. With confidence 1 − δ and K groups,

    newcombe   the upper limit of the gap's interval (`core.intervals`): approximate, the estimated limit
    kl         n_k · L(r_k ‖ u_k) = ln(2K/δ) on either side, max u_k − min l_l: the proven limit, a union bound

For a rule by each of several attributes, K counts the values of all attributes, and pairs are formed within each.
For a rule for C classes, there are K · C rates, and pairs are formed within each class, and within strata.
With weights, n_k are effective rows, and nothing is proven. A group of the rule without fresh rows can have any
rate, so there is no limit then.
"""

from typing import Any

import numpy as np

from fairramp.core.cells import kinds_of, largest_gap, strata_slices, widest, worst_stratum
from fairramp.core.checks import check_number
from fairramp.core.events import SELECTION, Event
from fairramp.core.intervals import gap_interval, kl_interval
from fairramp.data.sample import Sample
from fairramp.errors import InputError, UnsupportedError
from fairramp.fit.probable import ArrayProbableRows, probable_fingerprint
from fairramp.fit.settings import Settings
from fairramp.measure.certificate import WIDE, Certificate
from fairramp.measure.means import MeanChances, mean_chances
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.limits import Bound
from fairramp.rule.rule import Rule

#: Why the bounds are not theorems.
_NORMAL, _WEIGHTS = "a normal approximation", "the row weights"
_ASSUMPTIONS = (
    "The limits assume that each group's rows were drawn independently from the people the rule will be applied "
    "to, and that {what} fitted on them. Group sizes may change, but the distribution of {which} within each "
    "group must not."
)


def certify_on(
    rule: Rule,
    confidence: float,
    scores: Any,
    groups: Any,
    *,
    group_probabilities: Any = None,
    sample_weight: Any = None,
) -> Certificate:
    """Bound the gap of a fixed rule in the population that fresh rows with true groups were drawn from."""
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    for what, holds in {
        "strata": rule.stratified,
        "{criterion:" + rule.criterion + "}": rule.event is not SELECTION,
    }.items():
        if holds:
            raise UnsupportedError(
                "A certificate on fresh rows does not support " + what,
                remedy="call it without rows, for limits from the fit rows",
            )
    refuse_fit_rows(rule, scores, groups, group_probabilities=group_probabilities, sample_weight=sample_weight)
    seen = mean_chances(
        rule, scores, groups, None, sample_weight=sample_weight, group_probabilities=group_probabilities
    )
    return certified(
        rule, seen, rule.event, confidence, plain=sample_weight is None, has_ratio=rule.min_ratio is not None
    )


def certified(
    rule: Rule | ClassRule,
    seen: MeanChances,
    event: Event,
    confidence: float,
    *,
    plain: bool,
    has_ratio: bool = False,
) -> Certificate:
    """The certificate from mean chances on fresh rows; `plain` if these have no weights."""
    n_groups, n_rates = len(rule.groups), len(rule.groups) * len(event.simple)
    parts = kinds_of(n_groups, len(event.simple), rule.parts)
    rates, rows, sizes = np.zeros(n_rates), np.zeros(n_rates), np.zeros(n_rates, dtype=np.intp)
    rates[seen.seats], rows[seen.seats], sizes[seen.seats] = seen.rates, seen.effective_rows, seen.rows
    there = rows > 0
    proven, limits = 1.0, [1.0] * len(event.simple)
    if there.all():
        lower, upper = kl_interval(rates, rows, (1 - confidence) / (2 * n_rates))
        proven = min(worst_stratum(widest, parts, lower, upper), 1.0)
        limits = [
            min(gap_interval(r, n, confidence, rule.parts)[1], proven)
            for r, n in zip(np.split(rates, len(limits)), np.split(rows, len(limits)), strict=True)
        ]
    # The limit of the true extremes is among these limits, so more of them can only raise the maximum.
    estimated = max(limits)
    bounds = (
        Bound("newcombe", estimated, False, (_NORMAL, *(() if plain else (_WEIGHTS,)))),
        Bound("kl", proven, plain, () if plain else (_WEIGHTS,)),
    )
    gaps = {
        one.name: largest_gap(rates[at][there[at]], None if rule.parts is None else rule.parts[there[at]])
        for one, at in zip(event.simple, strata_slices(kinds_of(n_groups, len(limits)), n_rates), strict=True)
    }
    least = int(sizes[:n_groups].argmin())
    mixed = rule.membership == "probabilities"
    return Certificate(
        estimated=estimated,
        proven=proven if plain else None,
        confidence=confidence,
        bounds=bounds,
        assumptions=_ASSUMPTIONS.format(
            what="neither the rule nor the models of scores and groups were"
            if mixed
            else "neither the rule nor the classifier was",
            which="scores and group probabilities" if mixed else "scores",
        ),
        within_strata=rule.stratified,
        widest_for=(rule.groups[least], int(sizes[least])) if estimated > max(gaps.values()) + WIDE else None,
        event=event,
        has_ratio=has_ratio,
        by_event={one.name: limit for one, limit in zip(event.simple, limits, strict=True)},
        fit_gaps=gaps,
        max_gap=rule.max_gap,
        fresh=True,
        by_attribute=rule.membership == "each",
    )


def refuse_fit_rows(
    rule: Rule, scores: Any, groups: Any, *, group_probabilities: Any = None, sample_weight: Any = None
) -> None:
    """Raise if these are the rows that the rule was fitted on, as far as its record can tell."""
    if rule.record is None:
        return
    sample = rule.sample(
        scores, groups, sample_weight=sample_weight, group_probabilities=group_probabilities, drop_empty=True
    )
    if fingerprint_of(rule, sample) == rule.record.fingerprint:
        raise are_fit_rows(
            "certify the rule on fresh rows"
            if rule.mixes
            else "pass fresh rows, or none, for limits from the fit rows"
        )


def are_fit_rows(remedy: str) -> InputError:
    """The error for rows that the rule was fitted on."""
    return InputError(
        "These are the rows that the rule was fitted on: they show a smaller gap than new people will",
        remedy=remedy,
    )


def fingerprint_of(rule: Rule, sample: Sample) -> str:
    """The fingerprint of rows, as a fit of this kind of rule would record it."""
    problem = Settings(scale=rule.scale, cutoff=rule.cutoff, higher_is_better=rule.higher_is_better).problem
    if sample.membership is None:
        return sample.rows.summarize().fingerprint(*problem.ends)
    return probable_fingerprint(ArrayProbableRows(sample.positions, sample.membership, sample.weights), problem)
