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
from fairramp.core.events import SELECTION
from fairramp.core.labels import Label, canonical_label, label_key, show_label
from fairramp.core.scales import ROUNDING
from fairramp.core.words import points
from fairramp.data.groups import Codes
from fairramp.data.probable import GroupProbabilities
from fairramp.errors import InputError, UnsupportedError, warn
from fairramp.fit.settings import Settings
from fairramp.measure.group_model import group_model
from fairramp.measure.means import tally_rows
from fairramp.measure.rates import selection
from fairramp.rule.rule import Rule
from fairramp.sklearn.rows import Splits, cross_fitted, kind_of, splits_of


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
    sample = rule.sample(scores, codes, sample_weight=weights, group_probabilities=found, drop_empty=True)
    poor = group_model(sample, found if sample.membership is None else sample.membership).poor()
    if poor:
        after = tally_rows(sample, rule=rule).after
        assert after is not None
        gap = selection(after, 0.95, None, None, SELECTION).gap
        warn(
            "{group_estimator} does not recognize some groups well: {poor}. The rule equalizes expected rates; "
            "between the true groups of the fit rows, the gap is {gap}",
            poor="; ".join(poor),
            gap=points(gap),
        )
