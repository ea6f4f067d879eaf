"""A drop-in replacement for Fairlearn's ThresholdOptimizer with demographic parity, solved exactly.

    constraints="demographic_parity", tol   →   max_gap = tol, or 0
    objective="accuracy_score"              →   target_rate = "accuracy"
    two thresholds, chosen at random        →   ramp_width = 0: one threshold, random only for equal scores
    prefit=True                             →   FrozenEstimator
    predict_method="decision_function"      →   its values v as scores asinh(v), so that large ones stay distinct
    predict_method="predict"                →   its values v as scores asinh(v − ½), so that ½ is the cutoff

To switch a script that uses ``from fairlearn.postprocessing import ThresholdOptimizer`` with demographic parity,
change the import. Fairlearn itself is not needed. The Notes of the class list the differences.
`RandomizedThresholdOptimizer` does the work and has more options.
"""
# ruff: noqa: N803 -- scikit-learn calls it X, and so do its callers, by keyword

from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from fairramp.core.checks import check_number, check_option
from fairramp.data.arrays import as_column
from fairramp.errors import InputError
from fairramp.rule.draws import decide
from fairramp.sklearn.estimator import RandomizedThresholdOptimizer
from fairramp.sklearn.rows import method_of, random_source

__all__ = ["ThresholdOptimizer"]

#: By argument: the supported values, Fairlearn's other values with the reason, and the alternative.
_OPTIONS: dict[str, tuple[tuple[str, ...], dict[str, str], str]] = {
    "constraints": (
        ("demographic_parity", "selection_rate_parity"),
        dict.fromkeys(
            (
                "equalized_odds",
                "false_negative_rate_parity",
                "false_positive_rate_parity",
                "true_negative_rate_parity",
                "true_positive_rate_parity",
            ),
            "is not supported by this class, which equalizes selection rates",
        ),
        "for true or false positive rates, use fairramp.RandomizedThresholdOptimizer(…, "
        "criterion='equal_opportunity') or 'predictive_equality'",
    ),
    "objective": (
        ("accuracy_score",),
        {
            name: f"is not supported (with equal selection rates it is highest if {who} is selected)"
            for name, who in (
                ("selection_rate", "everybody"),
                ("true_positive_rate", "everybody"),
                ("true_negative_rate", "nobody"),
            )
        }
        | {
            "balanced_accuracy_score": "is not supported by this class, which maximizes accuracy",
        },
        "choose the target rate yourself: fairramp.RandomizedThresholdOptimizer(…, target_rate=0.3) or "
        "'balanced_accuracy'",
    ),
}
_METHODS = ("predict_proba", "decision_function", "predict")
#: Folds for cross-fitting; fewer if a class has fewer rows.
_PARTS = 5


class ThresholdOptimizer(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fairlearn's `ThresholdOptimizer` with demographic parity, based on `RandomizedThresholdOptimizer`.

    Parameters
    ----------
    estimator : classifier or regressor
        Model whose output is thresholded.
    constraints : {"demographic_parity", "selection_rate_parity"}
        Both mean the same. Equalized odds and other constraints on error rates raise an error that names an
        alternative.
    objective : {"accuracy_score"}
        Other objectives raise an error that names an alternative.
    grid_size : int, default 1000
        Ignored, because the solution is exact.
    flip : bool, default False
        True raises an error: a higher score never lowers the probability of being selected.
    prefit : bool, default False
        Whether `estimator` is already trained. If so, pass rows to `fit` that it was not trained on.
    predict_method : {"auto", "predict_proba", "decision_function", "predict"}, default "auto"
        Method that returns the scores; "auto" takes the first one that the estimator has.
    tol : float in [0, 1], optional
        Largest allowed gap between selection rates; None means 0.

    Attributes
    ----------
    estimator_ : classifier or regressor
        Trained on all rows, or the given one.
    rule_ : Rule
        The fitted rule, in place of Fairlearn's ``interpolated_thresholder_``.
    optimizer_ : RandomizedThresholdOptimizer
        The underlying estimator.

    Notes
    -----
    Differences from Fairlearn:

    - Without `prefit`, the rule is fitted to cross-fitted scores instead of scores of the training rows, so that
      rates are equal on new rows, too; the classifier is trained six times. If `fit` gets arguments other than
      `sample_weight`, it passes them to the classifier unchanged, trains it once, and fits the rule to its
      training rows, as Fairlearn does.
    - `sample_weight` applies to the rule, too.
    - `rule_` takes scores asinh(v) for values v of `decision_function`, and asinh(v − ½) for values of `predict`.
    - A group not seen in `fit` raises an error instead of getting 0; missing values are a group of their own.
    - ``random_state=None`` makes new draws and ignores NumPy's global state, so ``numpy.random.seed`` has no
      effect. An int or a RandomState is repeatable, with other draws than Fairlearn's.

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
    >>> decisions = model.fit(X, y, sensitive_features=sex).predict(X, sensitive_features=sex, random_state=0)
    >>> bool(abs(decisions[sex == "f"].mean() - decisions[sex == "m"].mean()) < 0.002)
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
        """Train the classifier, unless it is prefit, and fit the rule.

        Parameters
        ----------
        X : table of shape (n, n_features)
            Any X that `estimator` accepts.
        y : labels of shape (n,) or (n, 1)
            0 or 1.
        sensitive_features : array, list, Series or dataframe with n rows
            Several columns give intersections.
        **kwargs
            Arguments of the classifier's `fit`; see the Notes.
        """
        self._check_settings()
        if kwargs.pop("control_features", None) is not None:
            raise InputError(
                "is not supported, as in Fairlearn",
                argument="control_features",
                remedy="for equal rates within strata, use fairramp.RandomizedThresholdOptimizer with strata=…",
            )
        labels = _labels(y)
        scored = _Scored(self.estimator, self.predict_method)
        weights = kwargs.pop("sample_weight", None)
        if self.prefit:
            scored.adopt(self.estimator)
        elif kwargs:
            scored.fit(X, labels, sample_weight=weights, **kwargs)
        has_chances = scored.method == "predict_proba"
        optimizer = RandomizedThresholdOptimizer if has_chances else _OrderedOptimizer
        self.optimizer_ = optimizer(
            FrozenEstimator(scored) if self.prefit or kwargs else scored,
            max_gap=0.0 if self.tol is None else self.tol,
            ramp_width=0.0,
            cv=int(np.clip(np.bincount(labels, minlength=2).min(), 2, _PARTS)),
            predict_method="predict_proba" if has_chances else "decision_function",
        ).fit(X, labels, sensitive_features=_groups(sensitive_features), sample_weight=weights)
        self.estimator_ = self.optimizer_.estimator_.estimator_
        self.rule_ = self.optimizer_.rule_
        return self

    def _check_settings(self) -> None:
        if self.estimator is None:
            raise InputError(
                "is missing",
                argument="estimator",
                remedy="pass a classifier, like estimator=LogisticRegression()",
            )
        for name, (taken, refused, instead) in _OPTIONS.items():
            value = getattr(self, name)
            if isinstance(value, str) and value in refused:
                raise InputError(
                    "`{name}={value!r}` {reason}",
                    remedy="keep using `fairlearn.postprocessing.ThresholdOptimizer`, or {instead}",
                    name=name,
                    value=value,
                    reason=refused[value],
                    instead=instead,
                )
            check_option(name, value, taken)
        if self.flip:
            raise InputError(
                "`flip=True` is not supported: a higher score never lowers the probability of being selected",
                remedy="pass flip=False (for scores where lower is better, use fairramp.fit_rule), or keep using "
                "`fairlearn.postprocessing.ThresholdOptimizer`",
            )
        check_option("predict_method", self.predict_method, ("auto", *_METHODS))
        check_number("tol", 0.0 if self.tol is None else self.tol, 0.0, 1.0)

    def _pmf_predict(self, X: Any, *, sensitive_features: Any) -> npt.NDArray[np.float64]:
        """Return the probabilities of the decisions 0 and 1, of shape (n, 2); nothing is drawn."""
        check_is_fitted(self)
        return self.optimizer_.predict_proba(X, sensitive_features=_groups(sensitive_features))

    def predict(self, X: Any, *, sensitive_features: Any, random_state: Any = None) -> npt.NDArray[np.int64]:
        """Draw decisions, 0 or 1.

        Parameters
        ----------
        X, sensitive_features
            As in `fit`.
        random_state : int, numpy.random.RandomState or numpy.random.Generator, optional
            None makes new draws at every call; an int repeats the same draws at every call; a RandomState or
            Generator advances.

        Returns
        -------
        numpy.ndarray of int64, shape (n,)
        """
        chances = self._pmf_predict(X, sensitive_features=sensitive_features)[:, 1]
        return decide(chances, random_state=random_source(random_state)).astype(np.int64)

    @property
    def interpolated_thresholder_(self) -> NoReturn:
        """Not available; the rule is in ``rule_``."""
        raise AttributeError(
            "There is no `interpolated_thresholder_`, because fairramp uses one threshold per group; see "
            "`rule_`, `rule_.table()` or `rule_.plot()`."
        )


class _OrderedOptimizer(RandomizedThresholdOptimizer):
    """For scores on any scale: as in Fairlearn, only their order counts."""

    _ordered_only: ClassVar = True


class _Scored(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Any model as a classifier of 0 and 1 with `predict_proba` or `decision_function`."""

    def __init__(self, estimator: Any, predict_method: str = "auto") -> None:
        self.estimator = estimator
        self.predict_method = predict_method

    @property
    def method(self) -> str:
        """The model's method that returns the scores."""
        return method_of(self.estimator, self.predict_method, _METHODS)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **kwargs: Any) -> Self:
        """Train a copy of the model."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self.adopt(clone(self.estimator).fit(X, y, **weights, **kwargs))

    def adopt(self, model: Any) -> Self:
        """Use a trained model."""
        self.estimator_, self.classes_ = model, np.array([0, 1])
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the model's probabilities."""
        return self.estimator_.predict_proba(X)

    def decision_function(self, X: Any) -> Any:
        """Return scores from the model's decision function or predictions, which may be on any scale."""
        values = as_column(
            _one_column(np.asarray(getattr(self.estimator_, self.method)(X))), f"estimator.{self.method}"
        )
        return np.arcsinh(values - 0.5 * (self.method == "predict"))  # unscaled, large values would saturate

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _labels(y: Any) -> npt.NDArray[np.int64]:
    """One column of 0 and 1."""
    if y is None:
        raise InputError("is missing", argument="y", remedy="pass the true outcomes, 0 or 1")
    column = _one_column(np.asarray(y))
    good = np.isin(column, (0, 1))
    if column.ndim != 1:
        raise InputError("must be one column of 0 and 1, got shape {shape}", argument="y", shape=column.shape)
    if not good.all():
        raise InputError("must be one column of 0 and 1", argument="y", got=column[~good].tolist()[0])
    return column.astype(np.int64)


def _one_column(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The column of a one-column table; anything else unchanged."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _groups(rows: Any) -> Any:
    """The groups, with a list of rows as a table, because fairramp would read it as a list of columns."""
    if isinstance(rows, list) and rows and all(isinstance(row, list | tuple) for row in rows):
        if len({len(row) for row in rows}) > 1:
            raise InputError(
                "has rows of different lengths",
                argument="sensitive_features",
                remedy="pass one value per column",
            )
        return np.array(rows, dtype=object)
    return rows
