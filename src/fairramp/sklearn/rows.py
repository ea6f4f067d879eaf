"""Rows as scikit-learn brings them: scored, checked, coded, and kept for `partial_fit`.

Cross-fitted: each row is scored by a copy that was not trained on it, because on its own training rows a
classifier looks surer than it is. The loop is written out here, since scikit-learn's `cross_val_predict`
renames the labels to 0 and 1 and so breaks classifiers that know them by name (``class_weight={"yes": 3}``).
"""
# ruff: noqa: N803, N806 -- scikit-learn calls it X, and so do its callers, by keyword

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import assert_all_finite, check_consistent_length, indexable
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from fairramp.core.scales import ROUNDING
from fairramp.data.groups import Codes, appended, check_n_columns
from fairramp.errors import InputError, shown

__all__ = [
    "KeptRows",
    "check_two_classes",
    "columns_of",
    "cross_fitted_scores",
    "kind_of",
    "random_source",
    "scores_of",
    "zero_one",
]


@dataclass(frozen=True)
class KeptRows:
    """What the rule was learned from, kept for `partial_fit`.

    Attributes
    ----------
    scores : numbers of shape (n,)
    codes, strata : Codes
        Groups, and strata for the criterion that has them.
    labels, weights : floats of shape (n,), or None
    """

    scores: npt.NDArray[Any]
    codes: Codes
    strata: Codes | None
    labels: npt.NDArray[np.float64] | None
    weights: npt.NDArray[np.float64] | None

    @classmethod
    def of(
        cls,
        scores: npt.NDArray[Any],
        codes: Codes,
        strata: Codes | None,
        labels: npt.NDArray[np.float64] | None,
        weights: npt.NDArray[np.float64] | None,
    ) -> Self:
        """Keep rows; what belongs to the user is copied."""
        check_consistent_length(scores, labels)
        own, own_strata = (c and replace(c, values=c.values.copy()) for c in (codes, strata))
        assert own is not None
        return cls(scores, own, own_strata, labels, None if weights is None else weights.copy())

    def with_rows(self, more: Self) -> Self:
        """These rows and more; labels only if all have them, weights of 1 where there were none."""
        check_n_columns(more.codes, self.codes.n_columns, self.codes.names, "sensitive_features")
        if (self.strata is None) != (more.strata is None):
            raise InputError("`criterion` has changed since `fit`; call `fit` again.")
        labels = weights = strata = None
        if self.labels is not None and more.labels is not None:
            labels = np.concatenate([self.labels, more.labels])
        if self.weights is not None or more.weights is not None:
            both = (
                rows.weights if rows.weights is not None else np.ones(len(rows.scores)) for rows in (self, more)
            )
            weights = np.concatenate(list(both))
        if self.strata is not None and more.strata is not None:
            strata = appended(self.strata, more.strata)
        scores = np.concatenate([self.scores, more.scores])
        return replace(
            self,
            scores=scores,
            codes=appended(self.codes, more.codes),
            strata=strata,
            labels=labels,
            weights=weights,
        )


def cross_fitted_scores(
    estimator: Any, X: Any, y: npt.NDArray[Any], cv: Any, method: str, params: dict[str, Any]
) -> npt.NDArray[np.float64]:
    """Score each row by a clone that was not trained on it."""
    (X,) = indexable(X)
    scores = np.empty(len(y))
    times = np.zeros(len(y), dtype=np.intp)
    for train, test in check_cv(cv, y, classifier=True).split(X, y):
        train, test = np.arange(len(y))[train], np.arange(len(y))[test]  # masks are indices, too
        if len(np.intersect1d(train, test)):
            raise InputError("`cv` must not test a row in the part that trains on it.")
        X_train, y_train = _safe_split(estimator, X, y, train)
        X_test, _ = _safe_split(estimator, X, None, test, train)
        if len(np.unique(y_train)) < 2:
            raise InputError(
                "`cv` leaves rows of one class only to train on; use fewer parts, a stratified splitter or "
                "more rows."
            )
        model = clone(estimator).fit(X_train, y_train, **{name: v[train] for name, v in params.items()})
        scores[test] = scores_of(model, X_test, method)
        np.add.at(times, test, 1)
    if (times != 1).any():
        row = int(np.flatnonzero(times != 1)[0])
        raise InputError(
            f"`cv` must test every row exactly once, but row {row} is tested {times[row]} times; use a "
            "splitter like StratifiedKFold."
        )
    return scores


def scores_of(model: Any, X: Any, method: str) -> npt.NDArray[Any]:
    """One score per row for the class ``classes_[1]``."""
    values: npt.NDArray[Any] = np.asarray(getattr(model, method)(X))
    if method == "predict_proba" and values.ndim == 2 and values.shape[1] == 2:
        inside = np.clip(values[:, 1], 0.0, 1.0)
        return inside if (np.abs(inside - values[:, 1]) <= ROUNDING).all() else values[:, 1]
    if method == "decision_function" and values.ndim == 1:
        return values
    raise InputError(
        f"`estimator` must be a binary classifier, but {method} of {kind_of(model)} gives an array of shape "
        f"{values.shape}."
    )


def check_two_classes(X: Any, y: npt.NDArray[Any] | None) -> None:
    """Refuse labels that are not of two classes, in words that scikit-learn's own checks look for."""
    if y is None:
        raise InputError("RandomizedThresholdOptimizer requires y to be passed, but the target y is None.")
    check_consistent_length(X, y)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind != "binary":
        raise InputError(f"Only binary classification is supported. The type of the target is {kind}.")
    classes = np.unique(y)
    if len(classes) < 2:
        raise InputError(f"`y` must have two classes, got one class: {classes.tolist()}.")


def zero_one(y: Any, classes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """1.0 for the positive class and 0.0 for the other."""
    y = column_or_1d(y, warn=True)
    positive: npt.NDArray[np.bool_] = y == classes[1]
    unknown = np.flatnonzero(~(positive | (y == classes[0])))
    if len(unknown):
        raise InputError(
            f"`y` must hold the classes {classes.tolist()}, got {shown(y[unknown].tolist()[0])} in row "
            f"{unknown[0]}."
        )
    return positive.astype(np.float64)


def columns_of(X: Any, wanted: Any, argument: str) -> Any:
    """Columns out of X, by name or position; `argument` is what asked for them."""
    single = isinstance(wanted, str | int | np.integer)
    chosen = [wanted] if single else list(wanted) if isinstance(wanted, Iterable) else []
    if not chosen or not all(isinstance(c, str | int | np.integer) for c in chosen):
        raise InputError(f"`{argument}` must be names or positions of columns, got {shown(wanted)}.")
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        names, columns = frame.columns, list(frame.iter_columns())
        for name in chosen:
            if isinstance(name, str) and name not in names:
                raise InputError(f"`{argument}` names {name!r}, but X has the columns {names}.")
        places = [names.index(c) if isinstance(c, str) else _position(c, len(names), argument) for c in chosen]
        return {str(names[place]): columns[place].to_native() for place in places}
    if any(isinstance(c, str) for c in chosen):
        raise InputError(
            f"`{argument}` has names, {chosen}, but X came as {type(X).__name__} without column names; "
            "pass positions, or X as a data frame."
        )
    table: Any = X.tocsc() if issparse(X) else X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    if table.ndim != 2:
        raise InputError(f"`X` must have rows and columns, got shape {table.shape}.")
    parts = [table[:, [_position(c, table.shape[1], argument)]] for c in chosen]
    return [(part.toarray() if issparse(part) else part).ravel() for part in parts]


def _position(position: int, n_columns: int, argument: str) -> int:
    if not -n_columns <= position < n_columns:
        raise InputError(f"`{argument}` has position {position}, but X has {n_columns} columns.")
    return int(position)


def random_source(random_state: Any) -> Any:
    """What `decide` takes; the legacy RandomState seeds a generator and moves on."""
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint32))
    return random_state


def kind_of(estimator: Any) -> str:
    """Name of the class, below FrozenEstimator."""
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    return type(inner).__name__
