"""What fits of rules that mix ramps share: warnings, and the rule with its record.

Two kinds of rules mix ramps: those by group probabilities (`fit.probable`), and those by each of several
attributes (`fit.each`). Both come from the same solver (`fit.affine`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairramp._version import __version__
from fairramp.core.cells import strata_slices
from fairramp.core.curve import Floats, Integers
from fairramp.core.events import SELECTION
from fairramp.core.headline import SMALL_GROUP
from fairramp.core.labels import Label, show_label
from fairramp.core.ramps import Ramp
from fairramp.core.table import with_rows
from fairramp.core.words import NOTHING, fixed
from fairramp.data.columns import Columns
from fairramp.data.groups import warn_alike, warn_blank
from fairramp.errors import warn
from fairramp.fit.affine import Dual
from fairramp.fit.problem import Problem
from fairramp.fit.settings import Settings
from fairramp.rule.record import FitRecord, Rates
from fairramp.rule.rule import Rule

#: A larger distance of rates from the limit, which only rounding can cause, causes a warning.
LARGEST_MISS = 1e-9


def own_decisions_hold(settings: Settings, problem: Problem, rates: Floats, parts: Integers | None) -> bool:
    """Whether the classifier's own decisions, with these rates, are kept because they meet the limit."""
    return settings.keeps_own_decisions and all(
        problem.band.excess(rates[part]) <= NOTHING for part in strata_slices(parts, len(rates))
    )


def placed(problem: Problem, shifts: Floats) -> list[Ramp]:
    """The ramps at shifts of the classifier's own threshold."""
    thresholds = problem.cutoff + shifts
    return [Ramp(t - problem.offset * problem.ramp_width, problem.ramp_width) for t in thresholds.tolist()]


def mixed_rule(
    settings: Settings,
    columns: Columns,
    groups: Sequence[Label],
    ramps: Sequence[Ramp],
    rates: Rates,
    fingerprint: str,
    *,
    level: float | None,
    parts: Integers | None,
    weighted: bool,
    **more: Any,
) -> Rule:
    """The rule with its record."""
    return Rule(
        groups=tuple(groups),
        ramps=tuple(ramps),
        ramp=settings.ramp,
        scale=settings.scale,
        higher_is_better=settings.higher_is_better,
        cutoff=settings.cutoff,  # type: ignore[arg-type]  # checked settings have one
        criterion=settings.criterion,
        max_gap=settings.max_gap,
        min_ratio=settings.min_ratio,
        target_rate=level,
        unseen_group=settings.unseen_group,
        columns=columns,
        record=FitRecord(
            rates={SELECTION.name: rates},
            strata=None if parts is None else tuple(parts.tolist()),
            target=settings.target_rate,
            costs=None,
            overall_rate=settings.overall_rate,
            event=SELECTION.name,
            ramp_width=settings.ramp_width,
            weighted=weighted,
            cross_fitted=False,
            solver="exact",
            trace=None,
            fingerprint=fingerprint,
            version=__version__,
            date=settings.date,
        ),
        **more,
    )


def warn_few(groups: Sequence[Label], rows: Sequence[int], rates: str, *, expected: bool) -> None:
    """Warn about a single group, and about groups with few rows, or few expected rows."""
    if len(groups) == 1:
        warn("There is only one group, {group}: nothing to equalize", group=show_label(groups[0]))
    small = [(label, n) for label, n in zip(groups, rows, strict=True) if n < SMALL_GROUP]
    if small:
        warn(
            "Groups with fewer than {smallest} {what}: {small}. Their {rates} on new rows can differ a lot from "
            "those on the fit rows",
            smallest=SMALL_GROUP,
            what="expected rows" if expected else "rows",
            small=with_rows(small, form="{} ({})"),
            rates=rates,
        )


def warn_mixed(
    settings: Settings, rule: Rule, problem: Problem, solved: Dual | None, *, expected: bool = False
) -> None:
    """Warn about small groups, columns that are not independent, and thresholds that select nobody.

    `solved` is the solution, unless own decisions are kept.
    """
    assert rule.record is not None
    rates = rule.record.main
    warn_few(rule.groups, rates.rows, "selection rates", expected=expected)
    warn_alike(rule.groups, by_attribute=rule.membership == "each")
    if not expected:
        warn_blank(rule.groups, rates.rows, paired=True)
    miss = max(solved.residual, np.abs(np.array(rates.after) - solved.rates).max()) if solved else 0.0
    if miss > LARGEST_MISS:
        warn(
            "Rates miss the limit by {miss:.1g}: the thresholds are so far from the scores that rounding "
            "matters. Use a wider ramp, or fewer groups",
            miss=miss,
        )
    if solved and solved.undetermined:
        why = (
            "some columns of the group probabilities are mixtures of others"
            if expected
            else "some values occur together only in separate sets of intersections"
        )
        warn(
            "The thresholds are not determined: {why}. Of all thresholds with the same decisions on the fit "
            "rows, the rule has those closest to the cutoff; on new rows, decisions may depend on this choice",
            why=why,
        )
    lowest, highest = problem.ends
    if rule.membership == "probabilities":
        outside = [
            (show_label(label), ramp)
            for label, ramp in zip(rule.groups, rule.ramps, strict=True)
            if ramp.width > 0 and (ramp.foot >= highest or ramp.foot + ramp.width <= lowest)
        ]
        for name, ramp in outside[:5]:
            warn(
                "The threshold of group {name} is {threshold}, outside the range of the scores: {who} who surely "
                "belongs to this group would be selected",
                name=name,
                threshold=fixed(rule.threshold_of(ramp), 4),
                who="no one" if ramp.foot >= highest else "everyone",
            )
    extreme = {0.0: "no one", 1.0: "everyone"}
    after = np.array(rates.after)
    for rate, who in extreme.items():
        if settings.target_rate == "optimal" and len(after) > 1 and (np.abs(after - rate) <= NOTHING).all():
            warn(
                "The best equal rate is {rate:.0f}: {who} is selected. "
                + settings.turning
                + "; otherwise set {cutoff} to the score at which the classifier selects, or set "
                "{target_rate} to a number",
                rate=rate,
                who=who,
            )
