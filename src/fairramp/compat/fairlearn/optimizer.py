"""ThresholdOptimizer: Fairlearn's class, with a rule of fairramp inside."""
# ruff: noqa: N803 -- scikit-learn calls it X, and so do its callers, by keyword

import warnings
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_is_fitted

from fairramp.compat.fairlearn.curves import Counts, along, curve
from fairramp.compat.fairlearn.inputs import (
    METHODS,
    Groups,
    as_integers,
    check_same_rows,
    method_for,
    n_rows,
    values_of,
    warn_unaligned,
    zero_one,
)
from fairramp.compat.fairlearn.thresholder import InterpolatedThresholder, described
from fairramp.core.checks import MIN_RAMP_WIDTH, check_number, check_option, checked_whole, nearest
from fairramp.core.curve import Floats
from fairramp.core.labels import Label
from fairramp.core.public import public
from fairramp.core.ramps import Ramp
from fairramp.data.arrays import as_weights
from fairramp.data.sample import Sample
from fairramp.errors import FairrampWarning, InputError, warn
from fairramp.fit.few_scores import warn_few_scores
from fairramp.fit.fit import fit_sample
from fairramp.fit.settings import Settings
from fairramp.rule.decided import unquestioned
from fairramp.rule.rule import Rule

#: By constraint: the criterion, and the rate that is made equal.
_CONSTRAINTS = {
    "demographic_parity": ("parity", "selection_rate"),
    "equalized_odds": ("equalized_odds", "false_positive_rate"),
    "false_negative_rate_parity": ("equal_opportunity", "false_negative_rate"),
    "false_positive_rate_parity": ("predictive_equality", "false_positive_rate"),
    "selection_rate_parity": ("parity", "selection_rate"),
    "true_negative_rate_parity": ("predictive_equality", "true_negative_rate"),
    "true_positive_rate_parity": ("equal_opportunity", "true_positive_rate"),
}
#: A cost so small that it decides only between solutions that are equally good otherwise.
_NEXT_TO_NOTHING = 1e-9
#: By objective: the settings of the fit. Of several solutions with the best rate, the most accurate is taken.
_OBJECTIVES: dict[str, dict[str, Any]] = {
    "accuracy_score": {"target_rate": "accuracy"},
    "balanced_accuracy_score": {"target_rate": "balanced_accuracy"},
    "selection_rate": {"criterion": "parity", "target_rate": 1.0, "max_gap": 0.0},  # everyone, so all are equal
    "true_negative_rate": {"target_rate": "accuracy", "costs": (1.0, _NEXT_TO_NOTHING)},
    "true_positive_rate": {"target_rate": "accuracy", "costs": (_NEXT_TO_NOTHING, 1.0)},
}
_FOR_EQUALIZED_ODDS = ("accuracy_score", "balanced_accuracy_score")
#: By method: the scale of the values, and the value at which the model itself says 1.
_SCALES = {
    "predict_proba": ("probability", 0.5),
    "decision_function": ("real", 0.0),
    "predict": ("real", 0.5),
}
#: What to do about an estimator with only two values.
_COARSE = "Use an estimator with finer values, or pass {predict_method:predict} if decisions are meant"
#: A gap may be larger than `tol` by this much: rounding.
_ROUNDING = 1e-9


@public
class ThresholdOptimizer(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fairlearn's `ThresholdOptimizer`, with one threshold per group instead of a mixture of two.

    Parameters
    ----------
    estimator : classifier or regressor
        Model whose values are thresholded; any object with `fit` and one of the methods below.
    constraints : str, default "demographic_parity"
        Which rate is made equal: "demographic_parity" or "selection_rate_parity" (the same),
        "true_positive_rate_parity", "false_positive_rate_parity", "true_negative_rate_parity",
        "false_negative_rate_parity", or both true and false positive rates: "equalized_odds".
    objective : str, default "accuracy_score"
        What is as high as possible: "accuracy_score", "balanced_accuracy_score" or, except with equalized odds,
        "selection_rate", "true_positive_rate" or "true_negative_rate". With the last two, the most accurate of
        the best solutions is taken.
    grid_size : int, default 1000
        Number of steps of the curves in `plot_threshold_optimizer`. The solution needs no grid.
    flip : bool, default False
        Whether a group whose values are lower for label 1 than for label 0 (an AUC below ½) is decided by
        falling values; see ``flipped_groups_``.
    prefit : bool, default False
        Whether `estimator` is already trained. If so, pass rows to `fit` that it was not trained on.
    predict_method : {"auto", "predict_proba", "decision_function", "predict"}, default "auto"
        Method that returns the values; "auto" takes the first one that the estimator has.
    tol : float in [0, 1], optional
        Largest allowed gap between rates, also with equalized odds; None means 0.

    Attributes
    ----------
    estimator_ : classifier or regressor
        Trained on all rows, or the given one.
    rule_ : Rule
        The fitted rule, which takes the model's own values: probabilities, or any numbers on the scale "real". If
        groups are flipped, there is none.
    interpolated_thresholder_ : InterpolatedThresholder
        The rule as Fairlearn writes it, in its ``interpolation_dict``.
    flipped_groups_ : list
        The groups that are decided by falling values; empty without `flip`.
    x_metric_, y_metric_ : str
        Names of the axes of `plot_threshold_optimizer`.

    Notes
    -----
    Differences from Fairlearn:

    - Each group has one threshold: in a hard rule, only people at the threshold are decided at random. With
      equalized odds, a group may have a ramp, along which the probability of selection rises; in Fairlearn, some
      of the group's decisions would ignore the model. A mixture of two thresholds can be a little more accurate
      on the fit rows, because it also randomizes away from the threshold.
    - The solution is exact. Fairlearn's rates are multiples of 1/1000.
    - `sample_weight` applies to the rule, too. Fairlearn passes it to the model only.
    - Balanced accuracy is that of all rows, as in scikit-learn; Fairlearn averages that of the groups.
    - A group not seen in `fit` raises an error instead of getting 0; missing values are a group of their own.

    Without `prefit`, the rule is fitted to the model's values of its training rows, as in Fairlearn. Models are
    overconfident there, so rates on new rows can differ. For equal rates on new rows, use `prefit` with rows that
    the model was not trained on, or `fairramp.RandomizedThresholdOptimizer`, which cross-fits.

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

    __metadata_request__fit: ClassVar = {"sensitive_features": True, "sample_weight": True}
    __metadata_request__predict: ClassVar = {"sensitive_features": True}

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

    # Fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, *, sensitive_features: Any, **kwargs: Any) -> Self:
        """Train the model, unless it is prefit, and fit the rule to its values of these rows.

        Parameters
        ----------
        X : table of shape (n, n_features)
            Any X that `estimator` accepts.
        y : labels of shape (n,) or (n, 1)
            0 or 1.
        sensitive_features : array, list, Series or dataframe with n rows
            Labels of any kind, also intervals and dates. Several columns give intersections.
        **kwargs
            Arguments of the model's `fit`, which gets them unchanged. `sample_weight` applies to the rule, too.
        """
        self._check_settings()
        if kwargs.get("control_features") is not None:
            raise InputError(
                "Control features are not supported by ThresholdOptimizer",
                remedy="for equal rates within strata, use fairramp.RandomizedThresholdOptimizer with strata=…",
            )
        labels, n = zero_one(y), n_rows(X)
        check_same_rows(n, len(labels))
        warn_unaligned(X=X, y=y, sensitive_features=sensitive_features, sample_weight=kwargs.get("sample_weight"))
        groups = Groups.of(sensitive_features, n)
        weights = kwargs.get("sample_weight")
        weights = np.ones(n) if weights is None else as_weights(weights, n)
        self._check_labels(groups, labels)
        model = self.estimator if self.prefit else clone(self.estimator)
        if not self.prefit:
            model.fit(X, as_integers(y), **kwargs)  # what it returns need not be the model
        else:
            _warn_unfitted(model)
        method = method_for(model, self.predict_method)
        values = values_of(model, X, method)
        check_same_rows(n, len(values), "the estimator's output")
        flipped = _flipped(groups, values, labels, weights) if self.flip else frozenset()
        for label, _, rows in groups.rows():
            if label in flipped:
                values = np.where(rows, 0.0 - values, values)
        rule = self._learned(
            values, groups, labels, kwargs.get("sample_weight"), *(("real", 0.0) if flipped else _SCALES[method])
        )
        if method != "predict":
            warn_few_scores(values, rule, _COARSE)
        self.estimator_ = model
        self._describe(rule, groups, values, labels, weights)
        self.interpolated_thresholder_ = InterpolatedThresholder(
            model,
            method,
            rule,
            groups,
            flipped,
            described(
                rule,
                groups,
                flipped,
                lenient_first=self.x_metric_ in ("false_negative_rate", "true_negative_rate"),
                more={"p_ignore": 0.0, "prediction_constant": self._x_best} if self._odds else {},
            ),
        )
        self.flipped_groups_ = [groups.keys[label] for label in rule.groups if label in flipped]
        return self

    @property
    def _odds(self) -> bool:
        return self.constraints == "equalized_odds"

    def _check_settings(self) -> None:
        if self.estimator is None:
            raise InputError("The base estimator cannot be `None`")
        if self.constraints not in _CONSTRAINTS:
            raise InputError(
                "Currently only the following constraints are supported: {names}",
                got=self.constraints,
                remedy=nearest(self.constraints, _CONSTRAINTS),
                names=", ".join(_CONSTRAINTS),
            )
        objectives = _FOR_EQUALIZED_ODDS if self._odds else tuple(_OBJECTIVES)
        if self.objective not in objectives:
            raise InputError(
                "For {constraints_} only the following objectives are supported: {names}",
                got=self.objective,
                remedy=nearest(self.objective, objectives),
                constraints_=self.constraints,
                names=", ".join(objectives),
            )
        check_option("predict_method", self.predict_method, ("auto", *METHODS))
        check_number("tol", 0.0 if self.tol is None else self.tol, 0.0, 1.0)
        checked_whole("grid_size", self.grid_size)

    def _check_labels(self, groups: Groups, labels: npt.NDArray[np.int64]) -> None:
        """Raise if the rates of a group, or the objective, are not defined."""
        parity = _CONSTRAINTS[self.constraints][0] == "parity"
        if parity and 0 < labels.sum() < len(labels):
            return
        for _, key, rows in groups.rows():
            if not 0 < labels[rows].sum() < rows.sum():
                raise InputError(
                    "Degenerate labels for sensitive feature value {key}",
                    remedy="pass rows with label 0 and with label 1",
                    key=key,
                )

    def _learned(
        self, values: Floats, groups: Groups, labels: Any, weights: Any, scale: str, cutoff: float
    ) -> Rule:
        """The rule for these values."""
        asked: dict[str, Any] = {
            "criterion": _CONSTRAINTS[self.constraints][0],
            "max_gap": 0.0 if self.tol is None else self.tol,
            "ramp_width": 0.0,
            "scale": scale,
            "cutoff": cutoff,
            **_OBJECTIVES[self.objective],
        }
        settings = Settings(**asked)
        if self._odds:
            _warn_crowded(settings.meaning.position(values))
        sample = Sample.of_arrays(values, groups.codes, labels, scale=settings.meaning, sample_weight=weights)
        with warnings.catch_warnings():  # their remedies are settings that this class does not have
            warnings.simplefilter("ignore", FairrampWarning)
            rule = fit_sample(sample, settings, ordered_only=True)
        if self.objective == "selection_rate":
            return replace(rule, ramps=tuple(Ramp.constant(1.0) for _ in rule.ramps))
        return rule

    def _describe(self, rule: Rule, groups: Groups, values: Floats, labels: Any, weights: Floats) -> None:
        """What the rule achieves on the fit rows, and the curves for the plot."""
        self.x_metric_ = _CONSTRAINTS[self.constraints][1]
        self.y_metric_ = "true_positive_rate" if self._odds else self.objective
        self._x_grid = np.linspace(0.0, 1.0, self.grid_size + 1)
        with unquestioned():
            chances = rule.probabilities(values, groups.codes)
        found, curves = {}, {}
        for _, key, rows in groups.rows():
            data = labels[rows], weights[rows]
            found[key] = Counts.of(chances[rows], *data)
            curves[key] = along(values[rows], *data, self.x_metric_, self.y_metric_, self._x_grid)
        self._x_best_per_group = {key: float(part.metric(self.x_metric_)) for key, part in found.items()}
        self._between_groups = float(np.ptp(list(self._x_best_per_group.values())))
        if self.tol is not None and abs(self._between_groups - self.tol) < _ROUNDING:
            self._between_groups = float(self.tol)
        everyone = Counts.total(found.values())
        self._x_best = float(np.mean(list(self._x_best_per_group.values())))
        self._y_best = float(everyone.metric(self.y_metric_))
        self._tradeoff_curve = {key: curve(part, self._x_grid, self.y_metric_) for key, part in curves.items()}
        self._overall_tradeoff_curve = curve(Counts.total(curves.values()), self._x_grid, self.y_metric_)
        self._y_min = np.min([part.y for part in self._tradeoff_curve.values()], axis=0)

    @property
    def rule_(self) -> Rule:
        """The fitted rule, which takes the model's own values."""
        if "interpolated_thresholder_" not in vars(self):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet, so it has no `rule_`.")
        if self.flipped_groups_:
            raise AttributeError(
                f"There is no `rule_`, because the groups {self.flipped_groups_} are flipped: they are decided "
                "by falling values, and in a rule of fairramp a higher value never lowers the probability. Use "
                "`predict`, `_pmf_predict` or `interpolated_thresholder_`, or pass flip=False."
            )
        return self.interpolated_thresholder_.rule

    # Deciding ---------------------------------------------------------------------------------

    def _pmf_predict(self, X: Any, *, sensitive_features: Any) -> Floats:
        """Return the probabilities of the decisions 0 and 1, of shape (n, 2); nothing is drawn."""
        check_is_fitted(self)
        return self.interpolated_thresholder_._pmf_predict(X, sensitive_features=sensitive_features)

    def predict(self, X: Any, *, sensitive_features: Any, random_state: Any = None) -> npt.NDArray[np.int64]:
        """Draw decisions, 0 or 1.

        Parameters
        ----------
        X, sensitive_features
            As in `fit`.
        random_state : int, numpy.random.RandomState or numpy.random.Generator, optional
            None uses NumPy's global state, as in Fairlearn, so ``numpy.random.seed`` has an effect; an int
            repeats the same draws at every call; a RandomState or Generator advances.

        Returns
        -------
        numpy.ndarray of int64, shape (n,)
        """
        check_is_fitted(self)
        return self.interpolated_thresholder_.predict(
            X, sensitive_features=sensitive_features, random_state=random_state
        )


def _warn_unfitted(model: Any) -> None:
    """Warn, as Fairlearn does, about a model that does not look trained."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        warn(
            "The value of `prefit` is `True`, but `check_is_fitted` raised `NotFittedError` on the base "
            "estimator. If it is trained, its class does not follow scikit-learn's conventions, and nothing is "
            "wrong. If this object was cloned, for instance by `sklearn.model_selection.cross_validate`, use "
            "`prefit=False`"
        )
    except (AttributeError, TypeError):  # not an estimator of scikit-learn, so nothing tells
        return


def _warn_crowded(positions: Floats) -> None:
    """Warn if the narrowest ramp covers a tenth of the different values, so it cannot tell them apart."""
    tenths = np.diff(np.quantile(np.unique(positions), np.linspace(0.0, 1.0, 11)))
    if 0 < np.median(tenths) < MIN_RAMP_WIDTH:
        warn(
            "The estimator's values are so far from 0, or so close to each other, that the ramps of "
            "equalized odds hardly distinguish them, which costs accuracy. Use an estimator whose values are "
            "around 0 and differ by about 1, for instance by standardizing its target"
        )


def _flipped(groups: Groups, values: Floats, labels: Any, weights: Floats) -> frozenset[Label]:
    """The groups whose values rank label 1 below label 0 more often than above."""
    return frozenset(
        label
        for label, _, rows in groups.rows()
        if 0 < labels[rows].sum() < rows.sum()
        and roc_auc_score(labels[rows], values[rows], sample_weight=weights[rows]) < 0.5
    )
