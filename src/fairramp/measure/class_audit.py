"""Audits of several classes: the rate of every class in each group, gaps and, with labels, errors.

For rows with weight w, chances h_c of the classes (0 or 1 for hard decisions) and true class t, per group

    rate of class c     Σ w h_c / Σ w           accuracy    Σ w h_t / Σ w
    gap of class c      largest − smallest rate of class c

Intervals are those of `measure.audit`. The largest gap of a class has an interval that holds for all classes
together: classes are to it what strata are to other audits (see `core.intervals`). Every number is an expectation
over the rule's random draws, not the result of one draw.
"""

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np

from fairramp.core.cells import stratum_index
from fairramp.core.checks import check_number
from fairramp.core.curve import Array, Floats
from fairramp.core.events import class_event
from fairramp.core.labels import Label, united
from fairramp.core.public import public
from fairramp.data.aligned import check_aligned
from fairramp.data.classes import ClassSample, checked_classes, class_indices
from fairramp.data.groups import encode_groups, warn_alike, warn_blank
from fairramp.data.probable import refuse_probabilities
from fairramp.errors import InputError
from fairramp.measure.class_audited import ClassAudit, ClassSelection, class_selection
from fairramp.measure.class_means import ClassRowTallies
from fairramp.measure.comparison import missing_groups
from fairramp.measure.group_model import group_model
from fairramp.rule.class_rule import ClassRule


@public
def audit_classes(
    probabilities: Any,
    groups: Any,
    labels: Any = None,
    *,
    rule: ClassRule | None = None,
    classes: Sequence[Any] | None = None,
    strata: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    group_probabilities: Any = None,
) -> ClassAudit:
    """Measure the rate of every class in each group, and gaps, before and after a rule; with labels, also errors.

    Parameters
    ----------
    probabilities : numbers of shape (n, C), or a mapping or dataframe with one column per class, or labels
        The classifier's scores, as in `fit_class_rule`. Or, without a rule, decisions: one class label per row.
    groups : labels of shape (n,), or several columns
        As in `fit_class_rule`; the true groups.
    labels : labels of shape (n,), optional
        True classes.
    rule : ClassRule, optional
        Also audit the decisions of this rule.
    classes : labels of shape (C,), optional
        The class of each column of an array, as in `fit_class_rule`; by default, those of the rule. For
        decisions, all classes; by default, those that occur.
    strata : labels of shape (n,), or several columns, optional
        Compare groups within strata.
    sample_weight : numbers of shape (n,), optional
        Row weights.
    confidence : float, default 0.95
        Confidence level of all intervals.
    group_probabilities : GroupProbabilities, optional
        What the rule decides by, if it uses group probabilities; required then.

    Examples
    --------
    >>> import fairramp
    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.1, 0.6, 0.3]] * 100
    >>> found = fairramp.audit_classes(p, ["F", "F", "M", "M"] * 100, classes=["low", "mid", "high"])
    >>> found.before.rates["high"].rate, found.gap
    ((0.0, 0.5), 0.5)
    >>> found = fairramp.audit_classes(["low", "mid", "high", "mid"] * 100, ["F", "F", "M", "M"] * 100)
    >>> found.gap
    0.5
    """
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    if not isinstance(rule, ClassRule | None):
        raise InputError(
            "must be a fairramp.ClassRule, got {kind}",
            argument="rule",
            remedy="for a rule for yes or no, use fairramp.audit",
            kind=type(rule).__name__,
        )
    if group_probabilities is not None and rule is None:
        raise InputError("{group_probabilities} are those that a rule decides by: pass {rule}, or remove them")
    refuse_probabilities(groups, "An audit by true group")
    check_aligned(probabilities=probabilities, groups=groups, labels=labels)
    if rule is None:
        decided = _decisions(probabilities, labels, classes)
        probabilities, classes = decided or (probabilities, classes)
    else:
        decided = None
        # A rule fitted without strata can still be audited within strata.
        rule.check_strata(strata if rule.stratified else None)
    sample = ClassSample.of_arrays(
        probabilities,
        groups,
        labels,
        classes=classes,
        fitted=rule.classes if rule else None,
        strata=strata,
        sample_weight=sample_weight,
        columns=rule.columns if rule else None,
        membership=rule.deciding(group_probabilities) if rule else None,
        drop_empty=True,
    )
    return audit_class_sample(sample if rule is None else rule.with_truth(sample), rule, confidence)


def audit_class_sample(sample: ClassSample, rule: ClassRule | None, confidence: float) -> ClassAudit:
    """Audit checked rows with true groups."""
    found, more = ClassRowTallies.of(sample), dict[str, Any]()
    within_strata = sample.cells is not sample.groups
    strata = stratum_index(found.groups) if within_strata else None
    warn_alike(found.groups, stratified=within_strata)
    if rule is None:
        warn_blank(found.groups, found.rows.tolist(), paired=within_strata)

    def measured(chances: Floats) -> ClassSelection:
        tallies, confusion = found.tallies(chances), found.confusion(chances)
        return class_selection(tallies, confusion, class_event(sample.classes), confidence, strata)

    if rule is not None:
        own_groups = None if rule.stratified or sample.membership is not None else sample.groups
        chances = rule.chances_of(sample.values, own_groups or sample.decided_by).T
        changed = 1 - np.clip((chances * found.own).sum(axis=0), 0.0, 1.0)
        more = {
            "after": measured(chances),
            "changed": tuple((found.total(changed) / found.weights).tolist()),
            "overall_changed": found.overall(changed),
            "randomized": found.overall((chances.max(axis=0) < 1).astype(np.float64)),
            "missing": missing_groups(rule.groups, found.groups, strata=within_strata and not rule.stratified),
        }
    by_label = found.rows_by_label()
    model = None if sample.membership is None else group_model(sample, sample.membership)
    if model is not None:
        model.warn()
    named = {"stratum": sample.columns.strata, "group": sample.columns.groups}
    return ClassAudit(
        groups=found.groups,
        classes=sample.classes,
        rows=tuple(found.rows.tolist()),
        before=measured(found.own),
        rows_by_label=None if by_label is None else tuple(map(tuple, by_label.tolist())),
        confidence=confidence,
        within_strata=within_strata,
        weighted=sample.weights is not None,
        of_decisions=rule is None and bool((sample.values == found.own.T).all()),
        group_model=model,
        names={name: " / ".join(columns) for name, columns in named.items() if columns},
        **more,
    )


def _decisions(
    probabilities: Any, labels: Any, classes: Sequence[Any] | None
) -> tuple[Floats, tuple[Label, ...]] | None:
    """Decisions, one class label per row, as probabilities 0 and 1 with their classes; None if there are none."""
    if isinstance(probabilities, Mapping) or hasattr(probabilities, "columns"):
        return None
    try:
        column: Array = np.asarray(probabilities)
    except ValueError:  # rows of different lengths
        return None
    if column.ndim != 1 or not len(column):
        return None
    if column.dtype.kind == "f" and not np.array_equal(column, np.rint(column)):
        raise InputError(
            "must have the shape (rows, classes), or be one class label per row, got numbers of shape {shape}",
            argument="probabilities",
            remedy="for the scores of one class, use fairramp.audit",
            shape=column.shape,
        )
    try:
        codes = [encode_groups(values) for values in (probabilities, labels) if values is not None]
        known = [tuple(compress(one.labels, one.occurring())) for one in codes]
        every = checked_classes(united(*known)[0] if classes is None else classes)
        indices = class_indices(probabilities, every, len(column))
    except InputError as error:
        raise error.renamed(groups="probabilities", labels="probabilities", label="class label") from None
    if classes is None and labels is not None:
        _check_types(*known)
    return np.eye(len(every))[indices], every


def _check_types(decided: Sequence[Any], true: Sequence[Any]) -> None:
    """Raise if no decision can equal a label, because their types differ."""
    types = [sorted({type(label).__name__ for label in labels}) for labels in (decided, true)]
    if set(types[0]).isdisjoint(types[1]):
        raise InputError(
            "must have the type of the decisions, {decided}, got {true}",
            argument="labels",
            remedy="convert one of them",
            decided=", ".join(types[0]),
            true=", ".join(types[1]),
        )
