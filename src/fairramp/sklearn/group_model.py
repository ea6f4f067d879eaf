"""The model of the groups, P(group | X): trained with the groups in `fit`, used instead of them in `predict`.

    groups of the fit rows  →  cross-fitted group probabilities  →  the rule  →  train the model on all rows
    a FrozenEstimator       →  its group probabilities           →  the rule

A row's cross-fitted probabilities come from a model that was not trained on it, in the folds of its score.
"""
# ruff: noqa: N803 -- scikit-learn calls it X

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from fairramp.core.curve import Floats
from fairramp.core.labels import Label, canonical_label, label_key, show_label
from fairramp.core.scales import scale_of
from fairramp.core.words import points
from fairramp.data.groups import Codes
from fairramp.data.probable import GroupProbabilities
from fairramp.data.sample import Sample
from fairramp.errors import InputError, UnsupportedError, warn
from fairramp.measure.group_model import group_model
from fairramp.sklearn.rows import (
    Splits,
    check_none_lost,
    cross_fitted,
    kind_of,
    splits_of,
    without_rounding,
)


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


def check_group_estimator(owner: Any) -> None:
    """Raise if the group model has no probabilities, or settings need one group per person."""
    model = owner.group_estimator
    if not hasattr(model, "predict_proba"):
        raise InputError(
            "must have predict_proba, and {kind} does not", argument="group_estimator", kind=kind_of(model)
        )
    others = {
        "{strata}": owner.strata is not None,
        "{combine:each}": owner.combine == "each",
        "{unseen_group:" + owner.unseen_group + "}": owner.unseen_group != "error",
    }
    for other in [other for other, given in others.items() if given]:
        raise UnsupportedError("{group_estimator} does not support " + other, remedy="remove one of the two")


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
    check_none_lost(splits, numbers, labels, "group")
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
    try:
        return GroupProbabilities(without_rounding(np.asarray(values, dtype=np.float64)), labels)
    except InputError as error:
        raise error.renamed(group_probabilities="group_estimator", labels="group_estimator") from None


def warn_poor(
    chances: Floats, found: GroupProbabilities, codes: Codes, weights: npt.NDArray[np.float64] | None
) -> None:
    """Warn, with numbers, about groups that the model recognizes badly on the fit rows.

    `chances` are those of every class, of shape (n, C).
    """
    sample = Sample.of_arrays(
        without_rounding(found.values[0]),  # not used: the group probabilities take its place
        codes,
        scale=scale_of("probability", True),
        sample_weight=weights,
        membership=found,
        drop_empty=True,
    )
    assert sample.membership is not None
    if poor := group_model(sample, sample.membership).poor():
        warn(
            "{group_estimator} does not recognize some groups well: {poor}. The rule equalizes expected rates; "
            "between the true groups of the fit rows, the gap is {gap}",
            poor="; ".join(poor),
            gap=points(_gap(chances, codes, weights)),
        )


def _gap(chances: Floats, codes: Codes, weights: npt.NDArray[np.float64] | None) -> float:
    """The largest difference between two groups' rates of a class."""
    numbers = codes.block(0, len(codes))
    masses = np.bincount(numbers, weights)
    rates = [
        np.bincount(numbers, column if weights is None else column * weights)[masses > 0] / masses[masses > 0]
        for column in chances.T
    ]
    return float(np.ptp(rates, axis=1).max())
