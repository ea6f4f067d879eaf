"""Fairlearn's ThresholdOptimizer by another import: equal selection rates, solved exactly.

    constraints="demographic_parity", tol   →   max_gap = tol, or 0
    objective="accuracy_score"              →   target_rate = "accuracy"
    two thresholds, one of them drawn       →   ramp_width = 0: one threshold, draws only among equal scores
    prefit=True                             →   FrozenEstimator
    predict_method="decision_function"      →   its values v as scores asinh(v), so that large ones stay apart
    predict_method="predict"                →   its values v as scores asinh(v − ½), so that ½ is the cut-off

A script that says ``from fairlearn.postprocessing import ThresholdOptimizer`` and asks for demographic parity
runs when the import is changed. Fairlearn itself is not needed. What differs is told in the Notes of the class.
All work is done by `RandomizedThresholdOptimizer`, which has the options that Fairlearn has no word for.
"""
# ruff: noqa: N803 -- scikit-learn calls it X, and so do its callers, by keyword

import copy
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from fairramp.core.checks import check_number, check_option
from fairramp.data.arrays import as_column
from fairramp.errors import InputError
from fairramp.sklearn.estimator import RandomizedThresholdOptimizer

__all__ = ["ThresholdOptimizer"]

_PARITY = ("demographic_parity", "selection_rate_parity")
_ERROR_RATES = (
    "equalized_odds",
    "false_negative_rate_parity",
    "false_positive_rate_parity",
    "true_negative_rate_parity",
    "true_positive_rate_parity",
)
#: Objectives that Fairlearn has beside accuracy, and what parity makes of them.
_OBJECTIVES = {
    "selection_rate": "under equal selection rates it is largest when everybody is selected",
    "true_positive_rate": "under equal selection rates it is largest when everybody is selected",
    "true_negative_rate": "under equal selection rates it is largest when nobody is selected",
    "balanced_accuracy_score": "the rule is the most accurate one",
}
_METHODS = ("predict_proba", "decision_function", "predict")
#: Parts of the rows for cross-fitting, if both classes have as many.
_PARTS = 5


class ThresholdOptimizer(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fairlearn's `ThresholdOptimizer` for demographic parity, as a shell over `RandomizedThresholdOptimizer`.

    Parameters
    ----------
    estimator : classifier or regressor
        Whose output is thresholded.
    constraints : {"demographic_parity", "selection_rate_parity"}
        Two names of one thing. Equalized odds and the other error rates are refused with a word on what to use.
    objective : {"accuracy_score"}
        Others are refused with a word on what to use.
    grid_size : int, default 1000
        Taken and not used: the solution is exact.
    flip : bool, default False
        True is refused: here a higher score never lowers a chance.
    prefit : bool, default False
        Whether `estimator` is trained already. Then `fit` should get rows that it was not trained on.
    predict_method : {"auto", "predict_proba", "decision_function", "predict"}, default "auto"
        Where scores come from; "auto" takes the first that there is.
    tol : float in [0, 1], optional
        Largest difference of selection rates; None is 0.

    Attributes
    ----------
    estimator_ : classifier or regressor
        Trained on all rows, or the given one.
    rule_ : Rule
        What decides, in place of Fairlearn's ``interpolated_thresholder_``; print it, save it, audit it.
    optimizer_ : RandomizedThresholdOptimizer
        What does the work.

    Notes
    -----
    What is not as in Fairlearn:

    - Without `prefit` the rule is learned from cross-fitted scores, not from scores of the training rows, so that
      rates are equal on new rows too; the classifier is trained six times. Arguments of `fit` other than
      `sample_weight` are handed to the classifier as they are; then it is trained once, and the rule is learned
      on its training rows, as in Fairlearn.
    - `sample_weight` counts for the rule too.
    - `rule_` takes scores asinh(v) of values v of `decision_function`, and asinh(v − ½) of those of `predict`.
    - A group that `fit` never saw is an error, not a silent 0; a missing one is a group of its own.
    - ``random_state=None`` draws anew and leaves NumPy's global state alone, so that ``numpy.random.seed`` has no
      say; an int or a RandomState repeats, with other draws than Fairlearn's.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairramp.compat.fairlearn import ThresholdOptimizer
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 2000)
    >>> X = rng.normal(size=(2000, 3)) + (sex == "m")[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=2000) > 1.5).astype(int)
    >>> model = ThresholdOptimizer(
    ...     estimator=LogisticRegression().fit(X, y), constraints="demographic_parity", prefit=True
    ... )
    >>> answers = model.fit(X, y, sensitive_features=sex).predict(X, sensitive_features=sex, random_state=0)
    >>> bool(abs(answers[sex == "f"].mean() - answers[sex == "m"].mean()) < 0.002)
    True
    """

    def __init__(
        self,
        *,
        estimator: Any = None,
        constraints: str = "demographic_parity",
        objective: str = "accuracy_score",
        grid_size: int = 1000,
        flip: bool = False,
        prefit: bool = False,
        predict_method: str = "auto",
        tol: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.constraints = constraints
        self.objective = objective
        self.grid_size = grid_size
        self.flip = flip
        self.prefit = prefit
        self.predict_method = predict_method
        self.tol = tol

    def fit(self, X: Any, y: Any, *, sensitive_features: Any, **kwargs: Any) -> Self:
        """Train the classifier, unless it is prefit, and learn the rule.

        Parameters
        ----------
        X : table of shape (n, n_features)
            Whatever `estimator` takes.
        y : labels of shape (n,) or (n, 1)
            0 or 1.
        sensitive_features : array, list, Series or data frame with n rows
            Several columns make intersections.
        **kwargs
            For the classifier's `fit`; see the Notes.
        """
        self._check_settings()
        if kwargs.pop("control_features", None) is not None:
            raise InputError(
                "`control_features` is not offered, as in Fairlearn; for equal rates within strata use "
                "fairramp.RandomizedThresholdOptimizer with criterion=fairramp.Covariance(strata=…)."
            )
        labels = _labels(y)
        scored = _Scored(self.estimator, self.predict_method)
        weights = kwargs.pop("sample_weight", None)
        frozen = bool(self.prefit)
        if frozen:
            scored.adopt(self.estimator)
        elif kwargs:
            given = {} if weights is None else {"sample_weight": weights}
            scored.adopt(clone(self.estimator).fit(X, labels, **given, **kwargs))
            frozen = True
        optimizer = RandomizedThresholdOptimizer(
            FrozenEstimator(scored) if frozen else scored,
            max_gap=0.0 if self.tol is None else self.tol,
            ramp_width=0.0,
            cv=_parts(labels),
            predict_method="predict_proba" if scored.method == "predict_proba" else "decision_function",
        )
        groups = _groups(sensitive_features)
        self.optimizer_ = optimizer.fit(X, labels, sensitive_features=groups, sample_weight=weights)
        self.estimator_ = self.optimizer_.estimator_.estimator_
        self.rule_ = self.optimizer_.rule_
        return self

    def _check_settings(self) -> None:
        if self.estimator is None:
            raise InputError("`estimator` is missing; pass a classifier, like estimator=LogisticRegression().")
        elsewhere = "keep `fairlearn.postprocessing.ThresholdOptimizer`"
        if self.constraints in _ERROR_RATES:
            raise InputError(
                f"`constraints={self.constraints!r}` is about error rates, and fairramp equalises selection "
                f"rates; {elsewhere} for it, or pass constraints='demographic_parity'."
            )
        check_option("constraints", self.constraints, _PARITY)
        if self.objective in _OBJECTIVES:
            raise InputError(
                f"`objective={self.objective!r}` is not offered ({_OBJECTIVES[self.objective]}); {elsewhere} "
                "for it, or choose the common rate: fairramp.RandomizedThresholdOptimizer(…, target_rate=0.3)."
            )
        check_option("objective", self.objective, ("accuracy_score",))
        if self.flip:
            raise InputError(
                "`flip=True` is not offered, because here a higher score never lowers a chance; pass flip=False, "
                f"and 1 − score if low scores mean yes, or {elsewhere} for it."
            )
        check_option("predict_method", self.predict_method, ("auto", *_METHODS))
        if self.tol is not None:
            check_number("tol", self.tol, 0.0, 1.0)

    def _pmf_predict(self, X: Any, *, sensitive_features: Any) -> npt.NDArray[np.float64]:
        """Chances of the decisions 0 and 1, of shape (n, 2); the same every time."""
        check_is_fitted(self)
        chances: npt.NDArray[np.float64] = self.optimizer_.predict_proba(
            X, sensitive_features=_groups(sensitive_features)
        )
        return chances

    def predict(self, X: Any, *, sensitive_features: Any, random_state: Any = None) -> npt.NDArray[np.int64]:
        """Draw decisions, 0 or 1.

        Parameters
        ----------
        X, sensitive_features
            As in `fit`.
        random_state : int, numpy.random.RandomState or numpy.random.Generator, optional
            None draws anew at every call; an int repeats the same draws at every call; a RandomState or Generator
            moves on.

        Returns
        -------
        numpy.ndarray of int64, shape (n,)
        """
        check_is_fitted(self)
        drawing = copy.copy(self.optimizer_).set_params(random_state=random_state)
        answers: npt.NDArray[np.int64] = drawing.predict(X, sensitive_features=_groups(sensitive_features))
        return answers

    @property
    def interpolated_thresholder_(self) -> NoReturn:
        """Not there: the rule is in ``rule_``."""
        raise AttributeError(
            "There is no `interpolated_thresholder_`: fairramp decides by one threshold per group. `rule_` has "
            "them, `rule_.table()` shows them, and `rule_.plot()` draws them."
        )


class _Scored(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Any model as a classifier of 0 and 1 with one of the two methods that the estimator reads."""

    def __init__(self, estimator: Any, predict_method: str = "auto") -> None:
        self.estimator = estimator
        self.predict_method = predict_method

    @property
    def method(self) -> str:
        """The model's method that gives the scores."""
        wanted = _METHODS if self.predict_method == "auto" else (self.predict_method,)
        found = next((name for name in wanted if hasattr(self.estimator, name)), None)
        if found is None:
            raise InputError(
                f"`estimator` must have {' or '.join(wanted)} to give scores, and "
                f"{type(self.estimator).__name__} does not."
            )
        return found

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train a copy of the model."""
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self.adopt(clone(self.estimator).fit(X, y, **given))

    def adopt(self, model: Any) -> Self:
        """Take a trained model."""
        self.estimator_, self.classes_ = model, np.array([0, 1])
        return self

    def predict_proba(self, X: Any) -> Any:
        """As the model says."""
        return self.estimator_.predict_proba(X)

    def decision_function(self, X: Any) -> Any:
        """Made of the model's own, or of its predictions, either of which may be on any scale."""
        own = self.method == "decision_function"
        values = np.asarray(self.estimator_.decision_function(X) if own else self.estimator_.predict(X))
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        column = as_column(values, f"estimator.{self.method}")
        return np.arcsinh(column if own else column - 0.5)  # as they are they would saturate

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _labels(y: Any) -> npt.NDArray[np.int64]:
    """One column of 0 and 1."""
    if y is None:
        raise InputError("`y` is missing; pass the true outcomes, 0 or 1.")
    column: npt.NDArray[Any] = np.asarray(y)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1 or not np.isin(column, (0, 1)).all():
        what = f"shape {column.shape}" if column.ndim != 1 else repr(column[~np.isin(column, (0, 1))].tolist()[0])
        raise InputError(f"`y` must be one column of 0 and 1, got {what}.")
    return column.astype(np.int64)


def _groups(sensitive_features: Any) -> Any:
    """As they came; a list of rows as a table, because ours would be columns."""
    rows = sensitive_features
    if isinstance(rows, list) and rows and all(isinstance(row, list | tuple) for row in rows):
        if len({len(row) for row in rows}) > 1:
            raise InputError("`sensitive_features` has rows of different length; pass one value per column.")
        return np.array(rows, dtype=object)
    return rows


def _parts(labels: npt.NDArray[np.int64]) -> int:
    """How many parts both classes can be in, from 2 on."""
    return int(np.clip(np.bincount(labels, minlength=2).min(), 2, _PARTS))
