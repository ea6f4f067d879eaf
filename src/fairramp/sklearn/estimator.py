"""RandomizedThresholdOptimizer: a rule and its classifier as one scikit-learn estimator.

    a classifier to be trained  →  cross-fitted scores of the rows  →  the rule  →  train it on all rows
    a FrozenEstimator           →  its scores of the rows           →  the rule

With a group model (see `group_model`), the rule is fitted to its group probabilities instead of the groups.
`two_classes` and `several_classes` pass scores, groups and labels to the fit and to the rule, which do all
mathematics.
"""
# ruff: noqa: N803 -- scikit-learn calls it X, and so do its callers, by keyword

import copy
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d

from fairramp.core.public import public
from fairramp.data.aligned import check_passed_with
from fairramp.data.arrays import as_weights
from fairramp.data.probable import GroupProbabilities
from fairramp.errors import InputError
from fairramp.fit.stream import StreamingFit
from fairramp.measure.audited import Audit
from fairramp.measure.class_audited import ClassAudit
from fairramp.sklearn.columns import Sources
from fairramp.sklearn.group_model import warn_poor
from fairramp.sklearn.rows import (
    KeptRows,
    check_classes,
    check_none_lost,
    classes_in,
    classes_of,
    cross_fitted,
    fit_params,
    numbered,
    random_source,
    splits_of,
)
from fairramp.sklearn.wrapper import Wrapper


@public
class RandomizedThresholdOptimizer(Wrapper):
    """Classifier with equal rates across groups: selection rates, or true or false positive rates.

    Trains a classifier, fits one threshold ramp per group to its cross-fitted scores, and decides by
    that rule. The positive decision is `pos_label`. With more than two classes, the rates of every class are
    made equal, as in `fit_class_rule`.

    Parameters
    ----------
    estimator : classifier
        Classifier with `predict_proba` or `decision_function`, cloned and trained in `fit`. Pass a trained
        classifier as ``sklearn.frozen.FrozenEstimator(model)``; `fit` then fits only the rule, and needs rows
        that the model was not trained on.
    criterion, max_gap, min_ratio, overall_rate, combine, ramp_width, ramp, unseen_group, small_groups
        As in `fit_rule`. With more than two classes, `max_gap`, `ramp_width` and `unseen_group` are those of
        `fit_class_rule`; settings that it does not have raise an error unless they have their default.
    target_rate : str or float, optional
        As in `fit_rule`, but the default is "accuracy", because `fit` has labels, except with a `group_estimator`
        or ``combine="each"``, where it is "optimal"; with an `overall_rate`, there is no target rate.
    costs : tuple of two floats, optional
        Cost of a false positive and of a false negative, for the target "accuracy"; as in `fit_rule`.
    cutoff : float, default 0.5
        Cutoff of the classifier's own decisions, as a probability. For a `decision_function`, it becomes
        logit(cutoff), so 0.5 means 0.
    solver : "exact", "sgd" or SGD, default "exact"
        As in `fit_rule`. With "sgd", `partial_fit` continues the descent row by row and stores no rows.
    confidence, confidence_limit
        As in `fit_rule`, for a FrozenEstimator only: cross-fitted scores come from classifiers other than the
        final one, so they give no guarantee for the final classifier.
    pos_label : label of a class, optional
        The favorable class, to which the scores, the rule and its rates refer; for two classes only. By default,
        ``classes_[1]``, the second in sorted order. A warning says which one it is, unless the classes are 0 and
        1, -1 and 1, or False and True.
    strata : columns of X, or callable, optional
        As in `fit_rule`; chosen like `sensitive_columns`.
    cv : int, splitter or iterable of (train, test), default 5
        Splits for cross-fitting, by default 5 stratified folds. Every row must be in exactly one test fold.
        Unused for a FrozenEstimator.
    predict_method : {"auto", "predict_proba", "decision_function"}, default "auto"
        Method that returns the scores; "auto" prefers `predict_proba`. Decision functions are treated as logits.
        More than two classes require `predict_proba`.
    sensitive_columns : name, position, list of them, mask, slice or callable, optional
        Group columns of X, as an alternative to passing `sensitive_features` to every method. Positions refer to
        X after the earlier steps of a pipeline. As in scikit-learn's ColumnTransformer, a callable is called with
        X in `fit` and returns columns. It may also return one label per row, such as ``lambda X: X[:, 0] > 40``;
        then it is called with every X.
    drop_sensitive : bool, default False
        Whether the inner classifier sees X without the `sensitive_columns`. By default, it uses them like any
        other column.
    group_estimator : classifier with `predict_proba`, optional
        Model of the groups, for decisions without them. `fit` still takes the groups and trains a clone of this
        model, with X as its features. Then `predict`, `predict_proba`, `decision_function` and `score` use the
        model's group probabilities and need no groups. They refuse `sensitive_features`; metadata routing passes
        it on to `fit` and `partial_fit` only. The probabilities that the rule is fitted to are cross-fitted, in
        the same folds as the scores, or in folds stratified by group if `estimator` is frozen. A FrozenEstimator
        is used as it is; its classes must be the groups, and `fit` then needs no groups. The `sensitive_columns`
        are used in `fit` only: neither model sees them, and new rows may lack them. See `GroupProbabilities` for
        what such a rule can achieve.
    random_state : int, numpy.random.Generator or numpy.random.RandomState, optional
        Source of the draws of `predict`. None makes new draws at every call. An int repeats the same draws at
        every call, so the first row of every call gets the same draw. For decisions that are repeatable per
        person, pass `ids` and `key` to `predict`.

    Attributes
    ----------
    estimator_ : classifier
        Trained on all rows, or the given FrozenEstimator.
    rule_ : Rule or ClassRule
        The fitted rule; a ClassRule if there are more than two classes.
    group_estimator_ : classifier or None
        The group model: trained on all rows, or the given FrozenEstimator. Its classes are the groups; groups of
        several columns, and those with a missing value, are numbered in the order of ``rule_.groups``.
    classes_ : array of shape (C,)
        Labels, in the order of the columns of `predict_proba`.
    n_features_in_, feature_names_in_
        Number and names of the columns of X in `fit`, if `estimator_` has them.

    Notes
    -----
    The fitted object, and its pickle, store the score, group, label and weight of each fit row for `partial_fit`
    (except with ``solver="sgd"``); with a `group_estimator`, group probabilities instead of groups. ``rule_``
    contains no rows.

    With ``sklearn.set_config(enable_metadata_routing=True)``, pipelines, `cross_val_score` with its default
    scorer and ``GridSearchCV.fit`` pass on `sensitive_features` without any request calls. Named scorers,
    `cross_val_predict` and ``GridSearchCV.predict`` cannot pass it on. `sensitive_columns` works everywhere, and
    so does a `group_estimator`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from fairramp import RandomizedThresholdOptimizer
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 2000)
    >>> X = rng.normal(size=(2000, 3)) + (sex == "m")[:, None]
    >>> y = X.sum(axis=1) + rng.normal(size=2000) > 1.5
    >>> model = RandomizedThresholdOptimizer(LogisticRegression(), max_gap=0.02)
    >>> p = model.fit(X, y, sensitive_features=sex).predict_proba(X, sensitive_features=sex)[:, 1]
    >>> bool(abs(p[sex == "f"].mean() - p[sex == "m"].mean()) < 0.03)
    True

    Without the group when deciding, from X with a column that is related to sex:

    >>> X = np.column_stack([X, rng.normal(size=2000) + 3 * (sex == "m")])
    >>> model = RandomizedThresholdOptimizer(LogisticRegression(), group_estimator=LogisticRegression())
    >>> p = model.fit(X, y, sensitive_features=sex).predict_proba(X)[:, 1]
    >>> bool(abs(p[sex == "f"].mean() - p[sex == "m"].mean()) < 0.03)
    True
    """

    __metadata_request__fit: ClassVar = {"sensitive_features": True, "sample_weight": True}
    __metadata_request__partial_fit: ClassVar = {"sensitive_features": True, "sample_weight": True}
    __metadata_request__predict: ClassVar = {"sensitive_features": True, "ids": True, "key": True}
    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}
    __metadata_request__decision_function: ClassVar = {"sensitive_features": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True, "sample_weight": True}

    def __init__(
        self,
        estimator: Any,
        *,
        criterion: str = "parity",
        max_gap: float | None = None,
        min_ratio: float | None = None,
        target_rate: str | float | None = None,
        costs: tuple[float, float] | None = None,
        overall_rate: float | None = None,
        combine: str = "intersections",
        ramp_width: float = 0.01,
        ramp: str = "centered",
        cutoff: float = 0.5,
        solver: Any = "exact",
        small_groups: str = "alone",
        confidence: float | None = None,
        confidence_limit: str = "estimated",
        pos_label: Any = None,
        strata: Any = None,
        cv: Any = 5,
        predict_method: str = "auto",
        sensitive_columns: Any = None,
        drop_sensitive: bool = False,
        group_estimator: Any = None,
        unseen_group: str = "error",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.criterion = criterion
        self.max_gap = max_gap
        self.min_ratio = min_ratio
        self.target_rate = target_rate
        self.costs = costs
        self.overall_rate = overall_rate
        self.combine = combine
        self.ramp_width = ramp_width
        self.ramp = ramp
        self.cutoff = cutoff
        self.solver = solver
        self.small_groups = small_groups
        self.confidence = confidence
        self.confidence_limit = confidence_limit
        self.pos_label = pos_label
        self.strata = strata
        self.cv = cv
        self.predict_method = predict_method
        self.sensitive_columns = sensitive_columns
        self.drop_sensitive = drop_sensitive
        self.group_estimator = group_estimator
        self.unseen_group = unseen_group
        self.random_state = random_state

    # Fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Train the classifier and fit the rule; for a FrozenEstimator, fit only the rule.

        Parameters
        ----------
        X : table of shape (n, n_features)
            Any X that `estimator` accepts.
        y : labels of shape (n,)
            Two or more classes of any kind. May be None for a FrozenEstimator if the target rate needs no labels,
            or if there are more than two classes.
        sensitive_features : labels of shape (n,), or several columns
            The groups, as in `fit_rule`; omit them if `sensitive_columns` is set.
        sample_weight : numbers of shape (n,), optional
            Row weights for the rule and, if they accept them, also for the classifier and the group model.
        """
        return self._fit(X, y, None, sensitive_features, sample_weight)

    def _fit(self, X: Any, y: Any, classes: Any, sensitive_features: Any, sample_weight: Any) -> Self:
        check_passed_with(X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        y = None if y is None else column_or_1d(y, warn=True)
        frozen, group_frozen = (isinstance(e, FrozenEstimator) for e in (self.estimator, self.group_estimator))
        if frozen:
            check_is_fitted(self.estimator)
        known = classes_of(self.estimator) if frozen else classes_in(X, y)
        task = self._task_of(known, weighted=sample_weight is not None)
        check_classes(classes, known)
        task.warn_classes()
        sources, groups, cells = Sources.settled(X, sensitive_features, **self._choices(), optional=group_frozen)
        codes, strata, weights = self._checked_rows(X, groups, cells, sample_weight)
        features = sources.features(X)
        splits = None
        if frozen:
            model = self.estimator
            scores = task.scores(model, features)
        else:
            assert y is not None
            params = fit_params(self, weights)
            splits = splits_of(self.cv, features, y)
            check_none_lost(splits, numbered(y, known), known.tolist(), "class")
            try:
                scores = cross_fitted(self.estimator, features, y, splits, task.scores, params)
                model = clone(self.estimator).fit(features, y, **params)
            except (TypeError, ValueError) as error:
                sources.add_note(error, codes)
                raise
            task = task.trained(model)
        labels = None if y is None else numbered(y, task.classes)
        group_model, membership = self._group_model_of(features, codes, splits, weights)
        rows = KeptRows.of(scores, membership, strata, labels, weights)
        rule: Any = task.learned(rows, cross_fitted=not frozen or not (group_model is None or group_frozen))
        if isinstance(membership, GroupProbabilities) and codes is not None:
            warn_poor(task.chances(rule, scores, membership, strata), membership, codes, weights)
        self.estimator_, self.classes_, self.rule_, self._sources = model, task.classes, rule, sources
        self._group_model, self.group_estimator_ = group_model, group_model and group_model.model
        self._task = task
        self._seen: KeptRows | StreamingFit = task.seen(rows, rule)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit in the first call; in later calls, update the rule with more rows.

        The first call trains the classifier, so its rows must have all classes. Later calls do not change the
        classifier. They score the new rows with ``estimator_``, so these should be rows that `estimator_` was not
        trained on, and fit the rule to all rows so far. With ``solver="sgd"``, each new row is one more step of
        the descent toward the target rate of `fit`. With a `group_estimator`, later calls do not change the group
        model either. They take its probabilities of the new rows and do not use their groups.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As in `fit`. In later calls, y is required only for two classes, with error-rate criteria or the
            targets "accuracy", "balanced_accuracy" and "base_rate". If only some rows have weights, the others
            have weight 1.
        classes : labels of shape (C,), optional
            The classes, as other scikit-learn classifiers require them; only compared with those of `y`.
        """
        if not hasattr(self, "rule_"):
            return self._fit(X, y, classes, sensitive_features, sample_weight)
        task = self._task_of(self.classes_, weighted=sample_weight is not None, method=self._task.method)
        self._sources.check_same(**self._choices())
        if task.positive != self._task.positive:
            raise InputError("has changed since `fit`", argument="pos_label", remedy="call `fit` again")
        check_passed_with(X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        check_classes(classes, self.classes_)
        passed = None if self._group_model else sensitive_features
        scores, codes, strata, weights = self._scored(X, passed, sample_weight)
        labels = None if y is None else numbered(y, self.classes_)
        if isinstance(self._seen, StreamingFit):
            check_consistent_length(scores, labels)
            if task != self._task:
                raise InputError(
                    "The settings have changed since `fit`, and {solver:sgd} stores no rows",
                    remedy="call `fit` again",
                )
            if weights is not None:
                raise InputError(
                    "cannot be used in `partial_fit` with {solver:sgd}",
                    argument="sample_weight",
                    remedy="leave it out",
                )
            stream = copy.deepcopy(self._seen)  # an invalid row must not change the fitted rule
            self.rule_, self._seen = stream.partial_fit(scores, codes).rule(), stream
            return self
        rows = self._seen.with_rows(KeptRows.of(scores, codes, strata, labels, weights))
        assert self.rule_.record is not None  # every fitted rule has one
        crossed = self.rule_.record.cross_fitted
        self.rule_, self._task, self._seen = task.learned(rows, cross_fitted=crossed), task, rows
        return self

    # Deciding ---------------------------------------------------------------------------------

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> npt.NDArray[np.float64]:
        """Return the probability of deciding for each class; nothing is drawn.

        These are probabilities of a decision, not of an outcome: 0 or 1 except on the ramp. The classifier's own
        probabilities are ``estimator_.predict_proba(X)``.

        Parameters
        ----------
        X, sensitive_features
            As in `fit`; with a `group_estimator`, without groups.

        Returns
        -------
        numpy.ndarray of float64, shape (n, C)
            With columns in the order of ``classes_``.
        """
        scores, codes, strata, _ = self._scored(X, sensitive_features)
        return self._task.chances(self.rule_, scores, codes, strata)

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> npt.NDArray[np.float64]:
        """Return how far each score is above the threshold of its group, for metrics that rank rows.

        As in scikit-learn, it is about ``classes_[1]``: with the other one as `pos_label`, the sign changes. The
        difference is in units of the scores; for a classifier's `decision_function`, it is one of probabilities.
        It is negative below the threshold. For a group that keeps the classifier's own decisions
        (``unseen_group="original"``), the threshold is the cutoff. In a group where everyone has the same
        probability, it is that probability minus ½.

        With more than two classes, it is the score of each class minus the offset of the group. The class with
        the largest value is decided, except at random if another one is closer than the ramp width.

        Parameters
        ----------
        X, sensitive_features
            As in `fit`; with a `group_estimator`, without groups.

        Returns
        -------
        numpy.ndarray of float64, shape (n,), or (n, C) for more than two classes
        """
        scores, codes, strata, _ = self._scored(X, sensitive_features)
        return self._task.heights(self.rule_, scores, codes, strata)

    def predict(
        self, X: Any, *, sensitive_features: Any = None, ids: Any = None, key: str | None = None
    ) -> npt.NDArray[Any]:
        """Draw decisions with the probabilities of `predict_proba`.

        The draws are repeatable with `ids` and `key`; otherwise, they follow `random_state`.

        Parameters
        ----------
        X, sensitive_features
            As in `fit`; with a `group_estimator`, without groups.
        ids : sequence of str or int, optional
            The id of each row. The same id and key always give the same draw, in any order, batch or subset.
        key : str, optional
            64 lowercase hexadecimal characters; keep it secret. Required with `ids`.

        Returns
        -------
        numpy.ndarray of shape (n,)
            Labels from ``classes_``.
        """
        check_passed_with(X, sensitive_features=sensitive_features, ids=ids)
        chances = self.predict_proba(X, sensitive_features=sensitive_features)
        by_id = ids is not None or key is not None
        source = None if by_id else random_source(self.random_state)
        try:
            drawn = self._task.drawn(self.rule_, chances, ids=ids, key=key, random_state=source)
        except InputError as error:
            raise error.renamed(scores="X") from None
        return np.asarray(self.classes_[drawn])

    def score(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> float:
        """Return the expected accuracy, the mean probability of a correct decision. Nothing is drawn.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As in `fit`; with a `group_estimator`, without groups.
        """
        check_passed_with(X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        chances = self.predict_proba(X, sensitive_features=sensitive_features)
        labels = numbered(y, self.classes_)
        check_consistent_length(X, labels)
        weights = None if sample_weight is None else as_weights(sample_weight, len(labels))
        return float(np.average(chances[np.arange(len(labels)), labels], weights=weights))

    # Measuring --------------------------------------------------------------------------------

    def audit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        confidence: float = 0.95,
    ) -> Audit | ClassAudit:
        """Measure rates and gaps before and after the rule, and with y also errors; see `fairramp.audit`.

        "Before" are the decisions of the classifier itself, ``estimator_``; "after" are those of `predict`, in
        expectation over its draws. Pass rows that the classifier was not trained on.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`, but y is optional.
        sensitive_features : labels of shape (n,), or several columns
            As in `fit`; with a `group_estimator`, the true groups.
        confidence : float, default 0.95
            Confidence level of all intervals.

        Returns
        -------
        Audit, or ClassAudit if there are more than two classes
        """
        check_passed_with(X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        by_model = self.group_estimator is not None
        scores, groups, strata, weights = self._scored(X, None if by_model else sensitive_features, sample_weight)
        chances = None
        if by_model:
            chances, groups = groups, self._sources.true_groups(X, sensitive_features)
        labels = None if y is None else numbered(y, self.classes_)
        check_consistent_length(X, labels)
        return self._task.audited(
            self.rule_,
            scores,
            groups,
            labels,
            strata=strata,
            sample_weight=weights,
            confidence=confidence,
            group_probabilities=chances,
        )
