"""Audits: rates, gaps, errors and changed decisions, with confidence intervals.

For rows with weight w, selection probability h (0 or 1 for hard decisions) and label y, per group

    selection rate       Σ w h / Σ w                         accuracy    Σ w (h y + (1 − h)(1 − y)) / Σ w
    true positive rate   Σ w h y / Σ w y                     precision   Σ w h y / Σ w h
    false positive rate  Σ w h (1 − y) / Σ w (1 − y)         calibration error   Σ w (y − x) s(x) / Σ w

where s(x) is 1 if an isotonic regression on the other rows' labels is above x, and −1 if it is below. The
calibration error is thus the average error of the scores that held-out rows confirm (see `measure.calibration`).
The criterion says which of the rates on the left is compared; equalized odds compares the last two. The gap is
the maximum minus the minimum of the groups' rates, the ratio their minimum divided by their maximum. Rates have
Wilson intervals with effective rows (see `measure.means`), gap and ratio Newcombe intervals (see
`core.intervals`).

Every number is an expectation over the rule's random draws, not the result of one draw.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fairramp.core.cells import stratum_index
from fairramp.core.checks import check_number, check_option
from fairramp.core.curve import Floats, Integers
from fairramp.core.events import EVENT_OF, SELECTION, SYNONYMS
from fairramp.core.public import public
from fairramp.data.groups import Codes, warn_alike, warn_blank
from fairramp.data.sample import Sample
from fairramp.errors import InputError, UnsupportedError
from fairramp.fit.direction import warn_direction
from fairramp.fit.each import Attributes
from fairramp.fit.gains import Costs
from fairramp.fit.settings import COMBINATIONS, Settings, checked_costs
from fairramp.measure.audited import Audit
from fairramp.measure.calibration import calibration_errors
from fairramp.measure.comparison import missing_groups
from fairramp.measure.group_model import group_model
from fairramp.measure.means import RowTallies, are_decisions, tally_rows
from fairramp.measure.rates import selection
from fairramp.rule.decided import warn_decided
from fairramp.rule.rule import Rule

#: What to do with a fitted estimator instead of its rule.
_OF_MODEL = (
    "call model.audit(X, y, sensitive_features=…), or pass model.rule_, and as {scores} the favorable "
    "class's column of model.estimator_.predict_proba(X)"
)


@public
def audit(
    scores: Any,
    groups: Any,
    labels: Any = None,
    *,
    rule: Rule | None = None,
    criterion: str | None = None,
    strata: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    cutoff: float | None = None,
    scale: str | None = None,
    higher_is_better: bool | None = None,
    costs: tuple[float, float] | None = None,
    group_probabilities: Any = None,
    combine: str | None = None,
) -> Audit:
    """Measure each group's rate and the gap, before and after a rule; with labels, also accuracy and error rates.

    Parameters
    ----------
    scores : numbers of shape (n,)
        Scores, or 0/1 decisions.
    groups : labels of shape (n,), or several columns
        As in `fit_rule`.
    labels : 0 or 1 of shape (n,), optional
        True outcomes.
    rule : Rule, optional
        Also audit the decisions of this rule.
    criterion : {"parity", "equal_opportunity", "predictive_equality", "equalized_odds"}, optional
        Which rate to compare: "parity" compares selection rates, "equal_opportunity" true positive rates (among
        rows with label 1), "predictive_equality" false positive rates (among rows with label 0), and
        "equalized_odds" both of these. All but "parity" require `labels`. By default, the criterion of the rule;
        without a rule, "parity".
    strata : labels of shape (n,), or several columns, optional
        Compare groups within strata: the gap is then the largest gap between two groups of the same stratum.
    sample_weight : numbers of shape (n,), optional
        Row weights.
    confidence : float, default 0.95
        Confidence level of all intervals.
    cutoff, scale, higher_is_better : optional
        The score at which the classifier says yes, the scale of the scores, and whether high scores are better,
        as in `fit_rule`. By default, those of the rule; without a rule, the defaults of `fit_rule`.
    costs : tuple of two floats, optional
        Cost of a false positive and of a false negative; the audit then has the mean cost of a row. By default,
        those with which the rule was fitted, if any.
    group_probabilities : GroupProbabilities, optional
        What the rule decides by, if it uses group probabilities; required then. `groups` are the true groups, and
        all rates are by true group. A warning says if the probabilities are poor: see `GroupModel`.
    combine : {"intersections", "each"}, optional
        Whether several group columns make intersections, or are compared one by one: the gap is then the largest
        gap within a column, and `Audit.intersections` has the intersections. By default, as the rule was fitted;
        without a rule, "intersections".

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> found = fairramp.audit(data.score, data.sex, data.label)
    >>> round(found.gap, 3), round(found.ratio, 2)
    (0.168, 0.31)
    >>> found = fairramp.audit(data.score, data.sex, data.label, criterion="equal_opportunity")
    >>> round(found.gap, 3), round(found.ratio, 2)
    (0.063, 0.89)
    """
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    if criterion is not None:
        check_option("criterion", criterion, EVENT_OF, SYNONYMS)
    if not isinstance(rule, Rule | None):
        raise InputError(
            "must be a fairramp.Rule, got {kind}",
            argument="rule",
            remedy=_OF_MODEL if hasattr(rule, "rule_") else "to audit other 0/1 decisions, pass them as {scores}",
            kind=type(rule).__name__,
        )
    if isinstance(labels, Rule):
        raise InputError("must be 0 or 1, got a rule", argument="labels", remedy="pass the rule by name: rule=…")
    for name, given in (("scale", scale), ("cutoff", cutoff), ("higher_is_better", higher_is_better)):
        own = getattr(rule, name, None)
        if None not in (given, own) and given != own:
            raise InputError(
                "is {own!r} in the rule but {given!r} in the call",
                argument=name,
                remedy="leave it out",
                own=own,
                given=given,
            )
    if rule:
        # A rule fitted without strata can still be audited within strata.
        rule.check_strata(strata if rule.stratified else None)
        scale, cutoff, higher_is_better = rule.scale, rule.cutoff, rule.higher_is_better
    asked = Settings(
        scale="probability" if scale is None else scale,
        cutoff=cutoff,
        higher_is_better=True if higher_is_better is None else higher_is_better,
    )
    if costs is not None and labels is None:
        raise InputError("{costs} requires {labels}, the true outcomes")
    if costs is None and labels is not None and rule is not None and rule.record is not None:
        costs = rule.record.costs
    paid = None if costs is None else Costs(*checked_costs(costs))
    event = EVENT_OF[criterion or (rule.criterion if rule else SELECTION.criterion)]
    if event.needs_labels and labels is None:
        raise InputError(
            "{criterion:" + event.criterion + "} requires {labels}, the true outcomes",
            remedy="pass them, or compare selection rates with {criterion:parity}",
        )
    by_attribute = _by_attribute(combine, rule)
    if by_attribute and strata is not None:
        raise UnsupportedError("{combine:each} does not support {strata}", remedy="remove one of the two")
    if group_probabilities is not None and rule is None:
        raise InputError("{group_probabilities} are those that a rule decides by: pass {rule}, or remove them")
    sample = Sample.of_arrays(
        scores,
        groups,
        labels,
        scale=asked.meaning,
        strata=strata,
        sample_weight=sample_weight,
        columns=rule.columns if rule else None,
        drop_empty=True,
        membership=None if rule is None else rule.deciding(group_probabilities),
    )
    if rule is not None:
        warn_decided(sample.scores, None if rule.mixes else rule.record)
        sample = sample if sample.membership is None else rule.with_truth(sample)
    found = tally_rows(sample, cutoff=asked.problem.cutoff, rule=rule)
    warn_direction(sample, fitted=rule is not None)
    warn_alike(found.groups, stratified=strata is not None)
    if rule is None:  # otherwise the rule decides what a group is
        warn_blank(found.groups, found.rows.tolist(), paired=strata is not None)
    of_decisions = rule is None and are_decisions(sample, asked.problem.cutoff)
    # Decisions, and scores of which only the order matters, are not estimates of anything.
    calibrated = sample.labels is not None and not of_decisions and not sample.scale.only_ordered

    def measured(found: RowTallies, of: Integers | None, errors: Callable[[], Floats], **more: Any) -> Audit:
        if found.after is not None:
            more |= {
                "after": selection(found.after, confidence, of, paid, event),
                "changed_to_yes": _floats(found.changed_to_yes),
                "changed_to_no": _floats(found.changed_to_no),
                "randomized": found.randomized,
            }
        return Audit(
            groups=found.groups,
            rows=tuple(found.rows.tolist()),
            before=selection(found.own, confidence, of, paid, event),
            calibration_error=_floats(errors()) if calibrated else None,
            criterion=event.criterion,
            confidence=confidence,
            weighted=sample.weights is not None,
            of_decisions=of_decisions,
            cutoff=asked.cutoff,  # type: ignore[arg-type]  # checked settings have one
            higher_is_better=asked.higher_is_better,
            costs=None if paid is None else (paid.false_positive, paid.false_negative),
            **more,
        )

    of = None if strata is None else stratum_index(found.groups)
    model = None if sample.membership is None else group_model(sample, sample.membership)
    known, own_values = rule.groups if rule else (), rule is not None and rule.membership == "each"
    unmatched = strata is not None and rule is not None and not rule.stratified
    audited = measured(
        found,
        of,
        lambda: calibration_errors(sample, found.counts),
        within_strata=strata is not None,
        group_model=model,
        missing=() if own_values else missing_groups(known, found.groups, strata=unmatched),
    )
    if model is not None:
        model.warn()
    if not by_attribute:
        return audited
    names = [name for name, _ in rule.attributes] if rule and own_values else sample.groups.names
    attributes = Attributes.of(found.groups, names)
    if known and not own_values:
        known = Attributes.of(known, names).values
    return measured(
        found.by_value(attributes),
        attributes.parts,
        lambda: _errors_by_value(sample, found, attributes),
        by_attribute=True,
        intersections=audited,
        missing=missing_groups(known, attributes.values),
    )


def _by_attribute(combine: str | None, rule: Rule | None) -> bool:
    """Whether several group columns are compared one by one."""
    own = None if rule is None or rule.membership != "each" else "each"
    if combine is not None:
        check_option("combine", combine, COMBINATIONS)
    if None not in (combine, own) and combine != own:
        raise InputError(
            "is {own!r} in the rule but {given!r} in the call",
            argument="combine",
            remedy="leave it out; the audit has the intersections, too",
            own=own,
            given=combine,
        )
    return (combine or own) == "each"


def _errors_by_value(sample: Sample, found: RowTallies, attributes: Attributes) -> Floats:
    """The calibration error of the scores of each attribute's values."""
    cells, errors = np.cumsum(found.counts > 0) - 1, []
    for seats, block in zip(attributes.of_cell.T, attributes.blocks, strict=True):
        values = (seats - block.start)[cells[sample.cells.block(0, len(sample))]]
        codes = Codes(values, 0, attributes.values[block])
        counts = np.bincount(values, minlength=len(codes.labels))
        errors.append(calibration_errors(replace(sample, groups=codes, cells=codes), counts))
    return np.concatenate(errors)


def _floats(values: Floats) -> tuple[float, ...]:
    return tuple(values.tolist())
