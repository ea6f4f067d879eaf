"""The model of the groups, P(group | X): trained with the groups in `fit`, used instead of them in `predict`.

    groups of the fit rows  →  cross-fitted group probabilities  →  the rule  →  train the model on all rows
    a FrozenEstimator       →  its group probabilities           →  the rule

A row's cross-fitted probabilities come from a model that was not trained on it, in the folds of its score.
"""
# ruff: noqa: N803 -- scikit-learn calls it X

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from math import pi, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from fairramp.core.curve import Floats
from fairramp.core.labels import Label, canonical_label, label_key, show_label
from fairramp.core.scales import ROUNDING, scale_of
from fairramp.core.words import fixed, points
from fairramp.data.groups import Codes
from fairramp.data.probable import GroupProbabilities
from fairramp.data.sample import Sample
from fairramp.errors import InputError, UnsupportedError, warn
from fairramp.fit.settings import Settings
from fairramp.measure.calibration import calibration_errors
from fairramp.rule.rule import Rule
from fairramp.sklearn.rows import Splits, cross_fitted, kind_of, splits_of

#: A larger calibration error, beyond that of a calibrated model, causes a warning.
LARGEST_ERROR = 0.05
#: If a group's largest probability is smaller, no one is more likely to belong to it than not.
SMALLEST_PEAK = 0.5


@dataclass(frozen=True)
class GroupModel:
    """A trained model of the groups.

    Attributes
    ----------
    model : classifier
        With `predict_proba`.
    labels : tuple
        The groups, in the order of its classes.
    """

    model: Any
    labels: tuple[Label, ...]

    def probabilities(self, X: Any) -> GroupProbabilities:
        """The group probabilities of rows."""
        return _probabilities(self.model.predict_proba(X), self.labels)


def check_group_estimator(estimator: Any, settings: Settings, *, stratified: bool) -> None:
    """Raise if the group model has no probabilities, or the settings do not work with them."""
    if not hasattr(estimator, "predict_proba"):
        raise InputError(
            "must have predict_proba, and {kind} does not", argument="group_estimator", kind=kind_of(estimator)
        )
    others = {
        "{strata}": stratified,
        "{combine:each}": settings.combine == "each",
        "{unseen_group:" + settings.unseen_group + "}": settings.unseen_group != "error",
    }
    for other in [other for other, given in others.items() if given]:
        raise UnsupportedError("{group_estimator} does not support " + other, remedy="remove one of the two")
    settings.check_mixed("{group_estimator}")


def frozen_group_model(estimator: FrozenEstimator, X: Any, codes: Codes | None) -> tuple[Any, GroupProbabilities]:
    """A trained model of the groups as it is, and its probabilities of the fit rows."""
    check_is_fitted(estimator)
    model = GroupModel(estimator, tuple(canonical_label(c) for c in np.asarray(estimator.classes_).tolist()))
    if codes is not None:
        found = tuple(compress(codes.labels, codes.occurring()))
        if set(map(label_key, found)) != set(map(label_key, model.labels)):
            raise InputError(
                "must have the groups {found} as its classes, got {classes}",
                argument="group_estimator",
                found=list(found),
                classes=list(model.labels),
            )
    return model, model.probabilities(X)


def trained_group_model(
    estimator: Any, X: Any, codes: Codes, splits: Splits | None, cv: Any, params: dict[str, Any]
) -> tuple[GroupModel, GroupProbabilities]:
    """A model of the groups that is trained on all rows, and cross-fitted probabilities of these rows.

    The folds are those of the scores or, if these were not cross-fitted, stratified by group.
    """
    seen = codes.occurring()
    labels = tuple(compress(codes.labels, seen))
    numbers = (np.cumsum(seen) - 1)[codes.block(0, len(codes))]
    if len(labels) < 2:
        raise InputError(
            "{group_estimator} requires at least two groups, got one: {group}", group=show_label(labels[0])
        )
    splits = splits or splits_of(cv, X, numbers)
    for train, _ in splits:
        lost = np.setdiff1d(np.arange(len(labels)), numbers[train])
        if len(lost):
            raise InputError(
                "leaves no row of group {group} in a training part",
                argument="cv",
                remedy="use fewer splits, or merge small groups",
                group=show_label(labels[lost[0]]),
            )
    # Classifiers know labels of one ordinary type; intersections and missing values are numbered.
    plain = {type(label) for label in labels} in ({str}, {int}, {bool})
    y: npt.NDArray[Any] = np.array(labels)[numbers] if plain else numbers

    def probabilities(model: Any, rows: Any) -> Floats:
        return np.asarray(model.predict_proba(rows), dtype=np.float64)

    crossed = cross_fitted(estimator, X, y, splits, probabilities, params)
    model = clone(estimator).fit(X, y, **params)
    classes = np.asarray(model.classes_).tolist()
    ordered = tuple(canonical_label(c) if plain else labels[c] for c in classes)
    return GroupModel(model, ordered), _probabilities(crossed, ordered)


def _probabilities(values: Any, labels: Sequence[Label]) -> GroupProbabilities:
    """Group probabilities from `predict_proba`, without rounding errors."""
    values = np.asarray(values, dtype=np.float64)
    inside = np.clip(values, 0.0, 1.0)
    try:
        return GroupProbabilities(inside if (np.abs(inside - values) <= ROUNDING).all() else values, labels)
    except InputError as error:
        raise error.renamed(group_probabilities="group_estimator", labels="group_estimator") from None


def warn_poor(
    rule: Rule, scores: Any, found: GroupProbabilities, codes: Codes, weights: npt.NDArray[np.float64] | None
) -> None:
    """Warn, with numbers, about groups that the model recognizes badly on the fit rows."""
    w = np.ones(len(codes)) if weights is None else weights
    codes, found = (replace(codes, values=codes.values[w > 0]), found.take(w > 0))
    scores, w = np.asarray(scores)[w > 0], w[w > 0]
    group = codes.block(0, len(codes))
    numbers = {label_key(label): i for i, label in enumerate(codes.labels)}
    poor, rates = [], []
    chances = rule.probabilities(scores, found)
    for label, q in zip(found.labels, found.values, strict=True):
        member = group == numbers.get(label_key(label), -1)
        if member.any():
            rates.append(float(np.average(chances[member], weights=w[member])))
        error, peak = calibration_error(q, member, w), float(q.max())
        if error > LARGEST_ERROR:
            poor.append(f"{show_label(label)} (calibration error {points(error)})")
        elif peak < SMALLEST_PEAK:
            poor.append(f"{show_label(label)} (largest probability {fixed(peak, 2)})")
    if poor:
        some = ", ".join(poor[:5]) + (f" and {len(poor) - 5:,} more" if len(poor) > 5 else "")
        warn(
            "{group_estimator} does not recognize some groups well: {some}. The rule equalizes expected rates; "
            "between the true groups of the fit rows, the gap is {gap}",
            some=some,
            gap=points(max(rates) - min(rates)),
        )


def calibration_error(q: Floats, member: npt.NDArray[np.bool_], weights: Floats) -> float:
    """How far a group's probabilities are from its shares, beyond what a calibrated model would have by chance.

    The error of a calibrated model is about the positive part of a normal variable, whose mean is σ / √(2π).

    Examples
    --------
    >>> import numpy as np
    >>> from fairramp.sklearn.group_model import calibration_error
    >>> rng = np.random.default_rng(0)
    >>> q = rng.random(10_000)
    >>> member = rng.random(10_000) < q
    >>> calibration_error(q, member, np.ones(10_000)) < 0.005
    True
    >>> round(calibration_error(q / 2, member, np.ones(10_000)), 1)
    0.2
    """
    everyone = Codes(np.zeros(len(q), dtype=np.uint8), 0, ("all",))
    sample = Sample.of_arrays(
        np.minimum(q, 1.0), everyone, member.astype(int), scale=scale_of("probability"), sample_weight=weights
    )
    null = sqrt(float((weights**2 * q * (1 - np.minimum(q, 1.0))).sum())) / float(weights.sum()) / sqrt(2 * pi)
    return max(float(calibration_errors(sample, np.array([len(q)]))[0]) - null, 0.0)
