"""Rows in scikit-learn's form: scored, checked, coded and stored for `partial_fit`.

Cross-fitting scores each row with a copy of the classifier that was not trained on it, because a classifier is
overconfident on its training rows. scikit-learn's `cross_val_predict` is not used, because it replaces the labels
by 0 and 1, which breaks classifiers that refer to them by name (``class_weight={"yes": 3}``).
"""
# ruff: noqa: N803, N806 -- scikit-learn calls it X, and so do its callers, by keyword

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import assert_all_finite, check_consistent_length, indexable
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, has_fit_parameter

from fairramp.core.labels import canonical_label, show_label
from fairramp.core.scales import ROUNDING
from fairramp.data.groups import Codes, appended, check_n_columns
from fairramp.data.probable import GroupProbabilities
from fairramp.errors import InputError, shown, warn

#: The rows of the training and of the test part of each split.
Splits = list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]


@dataclass(frozen=True)
class KeptRows:
    """The fit rows, stored for `partial_fit`.

    Attributes
    ----------
    scores : numbers of shape (n,), or (n, C) for more than two classes
    groups : Codes or GroupProbabilities
        Groups, or what a group model says about them.
    strata : Codes or None
        Strata, if there are any.
    labels : integers of shape (n,), or None
        Index of each row's class.
    weights : floats of shape (n,), or None
    """

    scores: npt.NDArray[Any]
    groups: Codes | GroupProbabilities
    strata: Codes | None
    labels: npt.NDArray[np.intp] | None
    weights: npt.NDArray[np.float64] | None

    @classmethod
    def of(
        cls,
        scores: npt.NDArray[Any],
        groups: Codes | GroupProbabilities,
        strata: Codes | None,
        labels: npt.NDArray[np.intp] | None,
        weights: npt.NDArray[np.float64] | None,
    ) -> Self:
        """Store rows, with copies of the user's arrays."""
        check_consistent_length(scores, labels)
        return cls(
            scores,
            replace(groups, values=groups.values.copy()) if isinstance(groups, Codes) else groups,
            strata and replace(strata, values=strata.values.copy()),
            labels,
            None if weights is None else weights.copy(),
        )

    def with_rows(self, more: Self) -> Self:
        """Append rows. Labels are kept only if all rows have them; missing weights are 1."""
        both = (self, more)
        weights: Any = [np.ones(len(rows.scores)) if rows.weights is None else rows.weights for rows in both]
        return replace(
            self,
            scores=np.concatenate([rows.scores for rows in both]),
            groups=_joined(self.groups, more.groups),
            strata=self.strata and more.strata and appended(self.strata, more.strata),
            labels=None
            if any(rows.labels is None for rows in both)
            else np.concatenate([rows.labels for rows in both]),
            weights=None if all(rows.weights is None for rows in both) else np.concatenate(weights),
        )


def _joined(first: Any, second: Any) -> Codes | GroupProbabilities:
    """The groups of two sets of rows, which are known or estimated in both."""
    if isinstance(first, GroupProbabilities):
        return GroupProbabilities(np.hstack([first.values, second.ordered(first.labels).values]).T, first.labels)
    check_n_columns(second, first.n_columns, first.names, "sensitive_features")
    return appended(first, second)


def splits_of(cv: Any, X: Any, y: npt.NDArray[Any]) -> Splits:
    """The splits of a cross-fit, checked before anything is trained: every row is in exactly one test part."""
    (X,) = indexable(X)
    splits: Splits = []
    times = np.zeros(len(y), dtype=np.intp)
    for train, test in check_cv(cv, y, classifier=True).split(X, y):
        train, test = np.arange(len(y))[train], np.arange(len(y))[test]  # turns masks into indices
        if len(np.intersect1d(train, test)):
            raise InputError(
                "must not have a row in both the training and the test part of a split", argument="cv"
            )
        if len(np.unique(y[train])) < 2:
            raise InputError(
                "leaves only one class in a training part",
                argument="cv",
                remedy="use fewer splits, a stratified splitter or more rows",
            )
        splits.append((train, test))
        np.add.at(times, test, 1)
    if (times != 1).any():
        row = int(np.argmax(times != 1))
        raise InputError(
            "must test every row exactly once, got {times} times for row {row}",
            argument="cv",
            remedy="use a splitter like StratifiedKFold",
            row=row,
            times=times[row],
        )
    return splits


def check_none_lost(splits: Splits, numbers: npt.NDArray[Any], names: Sequence[Any], what: str) -> None:
    """Raise if a training part has no row of a class or group."""
    for train, _ in splits:
        for lost in np.setdiff1d(np.arange(len(names)), numbers[train]):
            raise InputError(
                "leaves no row of {what} {name} in a training part",
                argument="cv",
                remedy="use fewer splits, or merge small {what}{es}",
                what=what,
                name=show_label(canonical_label(names[lost])),
                es="es" if what.endswith("s") else "s",
            )


def cross_fitted(
    estimator: Any,
    X: Any,
    y: npt.NDArray[Any],
    splits: Splits,
    scored: Callable[[Any, Any], npt.NDArray[Any]],
    params: dict[str, Any],
) -> npt.NDArray[np.float64]:
    """What `scored(model, X)` returns for each row, with a clone that was not trained on it."""
    (X,) = indexable(X)
    found: npt.NDArray[np.float64] | None = None
    for train, test in splits:
        X_train, y_train = _safe_split(estimator, X, y, train)
        X_test, _ = _safe_split(estimator, X, None, test, train)
        model = clone(estimator).fit(X_train, y_train, **{name: v[train] for name, v in params.items()})
        values = scored(model, X_test)
        found = np.empty((len(y), *values.shape[1:])) if found is None else found
        found[test] = values
    assert found is not None  # some rows are tested
    return found


def fit_params(router: Any, weights: npt.NDArray[np.float64] | None, name: str = "estimator") -> dict[str, Any]:
    """Arguments of an inner model's `fit` other than X and y; `router` is the outer estimator."""
    if weights is None:
        return {}
    if get_config()["enable_metadata_routing"]:
        return dict(process_routing(router, "fit", sample_weight=weights)[name].fit)
    if has_fit_parameter(model := getattr(router, name), "sample_weight"):
        return {"sample_weight": weights}
    only = "only the rule is weighted" if name == "estimator" else "it is trained without weights"
    warn("{kind} does not accept {sample_weight}, so " + only, kind=kind_of(model))
    return {}


def method_of(estimator: Any, predict_method: str, methods: Iterable[str]) -> str:
    """The method that returns the scores: the requested one, or the first that the classifier has."""
    wanted = tuple(methods) if predict_method == "auto" else (predict_method,)
    found = next((name for name in wanted if hasattr(estimator, name)), None)
    if found is None:
        raise InputError(
            "must have {wanted} ({predict_method:{asked}}), and {kind} does not",
            argument="estimator",
            wanted=" or ".join(wanted),
            asked=predict_method,
            kind=kind_of(estimator),
        )
    return found


def scores_of(model: Any, X: Any, method: str, positive: int = 1) -> npt.NDArray[Any]:
    """One score per row for the class ``classes_[positive]``."""
    values: npt.NDArray[Any] = np.asarray(getattr(model, method)(X))
    if method == "predict_proba" and values.ndim == 2 and values.shape[1] == 2:
        return without_rounding(values[:, positive])
    if method == "decision_function" and values.ndim == 1:
        return values if positive else 0.0 - values
    raise InputError(
        "must be a binary classifier, but {method} of {kind} returns an array of shape {shape}",
        argument="estimator",
        method=method,
        kind=kind_of(model),
        shape=values.shape,
    )


def without_rounding(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Probabilities in [0, 1]; unchanged if more than rounding errors are outside, which later raises."""
    inside = np.clip(values, 0.0, 1.0)
    return inside if (np.abs(inside - values) <= ROUNDING).all() else values


def classes_in(X: Any, y: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """The classes of labels: at least two. Messages are those that scikit-learn's checks expect."""
    if y is None:
        raise InputError("RandomizedThresholdOptimizer requires y to be passed, but the target y is None.")
    check_consistent_length(X, y)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    if len(classes := np.unique(y)) < 2:
        raise InputError(
            "must have at least two classes, got one class: {found}", argument="y", found=classes.tolist()
        )
    return classes


def classes_of(model: Any) -> npt.NDArray[Any]:
    """The classes of a trained classifier: at least two."""
    classes = np.asarray(getattr(model, "classes_", ()))
    if classes.ndim != 1 or len(classes) < 2:
        raise InputError(
            "must be a classifier with at least two classes, got {kind} with {found}",
            argument="estimator",
            kind=kind_of(model),
            found=f"classes_ of shape {classes.shape}" if classes.ndim > 1 else f"{len(classes)} classes",
        )
    return classes


def check_classes(classes: Any, known: npt.NDArray[Any]) -> None:
    """Raise if `classes` are passed to `partial_fit` and differ from the known ones."""
    if classes is not None and set(np.ravel(classes).tolist()) != set(known.tolist()):
        raise InputError(
            "must be the {two}classes of {y}, {known}",
            argument="classes",
            got=classes,
            two="two " if len(known) == 2 else "",
            known=known.tolist(),
        )


def numbered(y: Any, classes: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """The index of each label in the classes."""
    y = column_or_1d(y, warn=True)
    found = np.full(len(y), -1, dtype=np.intp)
    for i in range(len(classes)):
        found[y == classes[i]] = i
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        raise InputError(
            "must contain only the classes {classes}, got {value} in row {row}",
            argument="y",
            classes=classes.tolist(),
            value=shown(y[row : row + 1].tolist()[0]),
            row=row,
        )
    return found


def random_source(random_state: Any) -> Any:
    """A random state for `decide`; a legacy RandomState seeds a generator and advances."""
    legacy = isinstance(random_state, np.random.RandomState)
    if random_state is not None and not legacy:
        return random_state
    return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32) if legacy else None)


def kind_of(estimator: Any) -> str:
    """Name of the estimator's class, inside a FrozenEstimator."""
    return type(estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator).__name__
