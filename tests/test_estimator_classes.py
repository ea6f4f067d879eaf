"""The estimator passes the scores of more than two classes to fit_class_rule, and refuses what needs two."""
# ruff: noqa: N803 -- scikit-learn calls it X

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

from fairramp import (
    SGD,
    ClassRule,
    FairrampWarning,
    GroupProbabilities,
    InputError,
    UnseenGroupError,
    UnsupportedError,
    draws,
    fit_class_rule,
    fit_rule,
)
from people import optimizer

#: How exactly rates agree on the fit rows: the solver's tolerance and rounding.
EXACT = 1e-9
KEY = "0123456789abcdef" * 4


def people(n_rows=1_200, seed=0):
    """Three features, of which one tells the sex, two group columns, and a class that depends on all of them."""
    rng = np.random.default_rng(seed)
    sex, race = rng.choice(["f", "m"], n_rows), rng.choice(["a", "b"], n_rows)
    x = rng.normal(size=(n_rows, 3))
    x[:, 2] += 3 * (sex == "m")
    utility = np.stack([x[:, 0], x[:, 1], 0.3 * x[:, 2] + 0.4 * (race == "b") - 0.5], axis=1)
    return x, np.argmax(utility + rng.gumbel(size=utility.shape), axis=1), sex, race


X, Y, SEX, RACE = people()
NEW_X, NEW_Y, NEW_SEX, NEW_RACE = people(900, seed=1)
NAMES = np.array(["low", "mid", "high"])
MODEL = LogisticRegression().fit(X, Y)
FROZEN = FrozenEstimator(MODEL)
SCORES, NEW_SCORES = MODEL.predict_proba(X), MODEL.predict_proba(NEW_X)
WEIGHTS = np.random.default_rng(3).uniform(0.5, 2.0, 900)


def rates(chances, groups, weights=None):
    """The rate of every class in each group, with plain NumPy."""
    weights = np.ones(len(chances)) if weights is None else weights
    return np.array([np.average(chances[groups == g], axis=0, weights=weights[groups == g]) for g in set(groups)])


def largest_gap(chances, groups, weights=None):
    return np.ptp(rates(chances, groups, weights), axis=0).max()


def crossed(rule):
    """A rule whose record says that its scores were cross-fitted."""
    return replace(rule, record=replace(rule.record, cross_fitted=True))


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads slow small fits down, especially on a busy machine."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# The rule -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"max_gap": 0.03, "ramp_width": 0.2}, {"unseen_group": "original"}])
@pytest.mark.parametrize(
    "groups",
    [NEW_SEX, NEW_SEX == "f", pd.Series(NEW_SEX, name="sex"), pl.DataFrame({"sex": NEW_SEX, "race": NEW_RACE})],
    ids=["array", "bools", "series", "frame"],
)
def test_a_frozen_model_matches_fit_class_rule_on_its_scores(groups, settings):
    model = optimizer(FROZEN, **settings).fit(NEW_X, NEW_Y, sensitive_features=groups)
    assert model.rule_ == fit_class_rule(NEW_SCORES, groups, **settings)
    assert model.rule_.ramp_width > 0
    assert model.estimator_ is FROZEN
    chances = model.predict_proba(NEW_X, sensitive_features=groups)
    np.testing.assert_array_equal(chances, model.rule_.probabilities(NEW_SCORES, groups))
    assert chances.shape == (900, 3)


def test_a_frozen_model_needs_no_labels():
    labeled = optimizer(FROZEN).fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    assert optimizer(FROZEN).fit(NEW_X, None, sensitive_features=NEW_SEX).rule_ == labeled.rule_


@pytest.mark.parametrize("max_gap", [None, 0.0, 0.05])
def test_rates_of_every_class_on_the_fit_rows_meet_the_limit(max_gap):
    model = optimizer(FROZEN, max_gap=max_gap).fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    chances = model.predict_proba(NEW_X, sensitive_features=NEW_SEX)
    own = np.eye(3)[MODEL.predict(NEW_X)]
    assert largest_gap(own, NEW_SEX) > 0.1
    assert largest_gap(chances, NEW_SEX) <= (max_gap or 0.0) + EXACT


def test_decisions_that_meet_the_limit_are_kept():
    model = optimizer(FROZEN, max_gap=1.0, random_state=0).fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    np.testing.assert_array_equal(model.predict(NEW_X, sensitive_features=NEW_SEX), MODEL.predict(NEW_X))


@pytest.mark.parametrize("cv", [5, StratifiedKFold(3, shuffle=True, random_state=0), list(KFold(4).split(X))])
def test_the_rule_is_that_of_cross_fitted_scores(cv):
    model = optimizer(cv=cv, max_gap=0.02).fit(X, Y, sensitive_features=SEX)
    scores = cross_val_predict(LogisticRegression(), X, Y, cv=cv, method="predict_proba")
    assert model.rule_ == crossed(fit_class_rule(scores, SEX, max_gap=0.02))
    np.testing.assert_array_equal(model.estimator_.coef_, MODEL.coef_)


@pytest.mark.parametrize(
    "classifier",
    [
        RandomForestClassifier(30, random_state=0),
        HistGradientBoostingClassifier(max_iter=10, max_leaf_nodes=8),
        KNeighborsClassifier(15),
        GaussianNB(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
        CalibratedClassifierCV(LinearSVC(), cv=3),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_every_classifier_with_probabilities_is_equalized_at_little_cost(classifier):
    model = optimizer(classifier, max_gap=0.02, random_state=0).fit(X, Y, sensitive_features=SEX)
    assert model.rule_.record.gap_before > 0.05
    assert model.rule_.record.gap_after <= 0.02 + EXACT
    inner = clone(classifier).fit(X, Y).score(NEW_X, NEW_Y)
    assert model.score(NEW_X, NEW_Y, sensitive_features=NEW_SEX) > inner - 0.05
    assert set(model.predict(NEW_X, sensitive_features=NEW_SEX)) == {0, 1, 2}


def test_the_rule_is_fitted_within_strata():
    table = np.column_stack([NEW_X, NEW_RACE == "b"])
    inner = FrozenEstimator(LogisticRegression().fit(np.column_stack([X, RACE == "b"]), Y))
    model = optimizer(inner, strata=3).fit(table, None, sensitive_features=NEW_SEX)
    chances = model.predict_proba(table, sensitive_features=NEW_SEX)
    assert model.rule_ == fit_class_rule(inner.predict_proba(table), NEW_SEX, strata=table[:, 3])
    for race in ("a", "b"):
        assert largest_gap(chances[race == NEW_RACE], NEW_SEX[race == NEW_RACE]) < EXACT


def test_weights_reach_the_rule_and_every_inner_fit():
    model = optimizer(FROZEN).fit(NEW_X, None, sensitive_features=NEW_SEX, sample_weight=WEIGHTS)
    assert model.rule_ == fit_class_rule(NEW_SCORES, NEW_SEX, sample_weight=WEIGHTS)
    chances = model.predict_proba(NEW_X, sensitive_features=NEW_SEX)
    assert largest_gap(chances, NEW_SEX, WEIGHTS) < EXACT < largest_gap(chances, NEW_SEX)
    weights = 1.0 + (Y == 2)
    model = optimizer(cv=3).fit(X, Y, sensitive_features=SEX, sample_weight=weights)
    scores = np.empty((len(X), 3))
    for train, test in StratifiedKFold(3).split(X, Y):
        part = LogisticRegression().fit(X[train], Y[train], sample_weight=weights[train])
        scores[test] = part.predict_proba(X[test])
    assert model.rule_ == crossed(fit_class_rule(scores, SEX, sample_weight=weights))
    np.testing.assert_array_equal(
        model.estimator_.coef_, LogisticRegression().fit(X, Y, sample_weight=weights).coef_
    )


# Classes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        Y + 5,
        Y - 1,
        Y.astype(float) + 1,
        Y.astype(np.int8),
        np.array(["a", "b", "c"])[Y],
        np.array(["a", "b", "c"], dtype=object)[Y],
        list(np.array(["a", "b", "c"])[Y]),
        (Y + 1).tolist(),
        pd.Series(np.array(["a", "b", "c"])[Y], dtype="category"),
        pd.Series(Y, dtype="Int64"),
        pl.Series(np.array(["a", "b", "c"])[Y]),
    ],
    ids=[
        "ints",
        "negative",
        "floats",
        "int8",
        "text",
        "objects",
        "list",
        "numbers",
        "category",
        "Int64",
        "polars",
    ],
)
def test_labels_of_any_kind_give_the_same_decisions(labels):
    model, numbers = (optimizer(random_state=0).fit(X, y, sensitive_features=SEX) for y in (labels, Y))
    assert model.rule_.offsets == numbers.rule_.offsets
    assert list(model.rule_.classes) == model.classes_.tolist() == sorted(set(labels))
    answers = model.predict(X, sensitive_features=SEX)
    assert answers.dtype == model.classes_.dtype == model.estimator_.classes_.dtype
    np.testing.assert_array_equal(answers, model.classes_[numbers.predict(X, sensitive_features=SEX)])
    assert model.score(X, labels, sensitive_features=SEX) == numbers.score(X, Y, sensitive_features=SEX)


class Falling(ClassifierMixin, BaseEstimator):
    """A classifier whose classes are in falling order."""

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(X, y)
        self.classes_ = self.inner_.classes_[::-1]
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)[:, ::-1]


def test_columns_follow_the_classes_of_the_classifier():
    usual = optimizer().fit(X, Y, sensitive_features=SEX)
    model = optimizer(Falling()).fit(X, Y, sensitive_features=SEX)
    assert model.rule_ == usual.rule_
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    expected = usual.predict_proba(NEW_X, sensitive_features=NEW_SEX)
    np.testing.assert_array_equal(model.predict_proba(NEW_X, sensitive_features=NEW_SEX), expected)
    frozen = optimizer(FrozenEstimator(Falling().fit(X, Y))).fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    assert frozen.classes_.tolist() == list(frozen.rule_.classes) == [2, 1, 0]
    assert frozen.rule_ == fit_class_rule(NEW_SCORES[:, ::-1], NEW_SEX, classes=[2, 1, 0])
    own = optimizer(FROZEN).fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    known = {"sensitive_features": NEW_SEX}
    assert frozen.score(NEW_X, NEW_Y, **known) == pytest.approx(own.score(NEW_X, NEW_Y, **known), abs=EXACT)


@pytest.mark.filterwarnings("ignore:The least populated class in y has only 1")
def test_a_class_must_be_in_every_training_part():
    rare = Y.copy()
    rare[7] = 3
    with pytest.raises(
        InputError, match="`cv` leaves no row of class 3 in a training part; use fewer splits, or"
    ):
        optimizer().fit(X, rare, sensitive_features=SEX)
    by_class = [(np.flatnonzero(~rows), np.flatnonzero(rows)) for rows in (np.arange(3)[:, None] == Y)]
    with pytest.raises(InputError, match=r"leaves no row of class low in a .*, or merge small classes\."):
        optimizer(cv=by_class).fit(X, np.array(["low", "mid", "top"])[Y], sensitive_features=SEX)


def test_labels_unknown_to_the_model_raise():
    model, odd = optimizer(FROZEN), np.where(np.arange(900) == 4, 7, NEW_Y)
    sentence = r"`y` must contain only the classes \[0, 1, 2\], got 7 in row 4"
    with pytest.raises(InputError, match=sentence):
        model.fit(NEW_X, odd, sensitive_features=NEW_SEX)
    model.fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    for ask in (model.score, model.partial_fit):
        with pytest.raises(InputError, match=sentence):
            ask(NEW_X, odd, sensitive_features=NEW_SEX)


class Off(ClassifierMixin, BaseEstimator):
    """A classifier with the given output for every row."""

    def __init__(self, values, classes=(0, 1, 2)):
        self.values = values
        self.classes = classes

    def fit(self, X, y):
        self.classes_ = np.array(self.classes)
        return self

    def predict_proba(self, X):
        return np.tile(self.values, (len(X), 1))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([0.5, 0.5, 0.5], r"`predict_proba` must sum to 1 in every row, got 1\.5 in row 0"),
        ([2.0, -0.5, -0.5], "`predict_proba` must be between 0 and 1, got 2.0 for class 0 in row 0"),
        ([np.nan, 0.5, 0.5], "`predict_proba` must be between 0 and 1, got nan"),
        (
            [0.5, 0.5],
            r"one column of predict_proba for each of the classes \[0, 1, 2\], but Off returns .*\(900, 2\)",
        ),
    ],
)
def test_scores_that_are_no_probabilities_raise(values, sentence):
    with pytest.raises(InputError, match=sentence):
        optimizer(FrozenEstimator(Off(values).fit(X, Y))).fit(NEW_X, None, sensitive_features=NEW_SEX)


def test_rounding_errors_of_a_classifier_are_ignored():
    inner = FrozenEstimator(Off([-1e-17, 0.5, 0.5 + 1e-8]).fit(X, Y))
    model = optimizer(inner).fit(NEW_X, None, sensitive_features=NEW_SEX)
    assert model.predict_proba(NEW_X, sensitive_features=NEW_SEX).min() >= 0


def test_a_classifier_with_columns_of_outputs_raises():
    several = FrozenEstimator(Off([0.5, 0.5], [[0, 1], [0, 1]]).fit(X, Y))
    with pytest.raises(InputError, match=r"at least two classes, got Off with classes_ of shape \(2, 2\)"):
        optimizer(several).fit(NEW_X, None, sensitive_features=NEW_SEX)


def test_two_classes_of_a_frozen_model_still_give_a_rule_with_ramps():
    two = LogisticRegression().fit(X, Y == 1)
    model = optimizer(FrozenEstimator(two), target_rate="optimal").fit(NEW_X, None, sensitive_features=NEW_SEX)
    assert model.rule_ == fit_rule(two.predict_proba(NEW_X)[:, 1], NEW_SEX)


# What needs two classes ---------------------------------------------------------------------------


REFUSED = {
    "criterion": ["equal_opportunity", "equalized_odds", "predictive_equality"],
    "min_ratio": [0.8],
    "target_rate": ["accuracy", "optimal", 0.3],
    "costs": [(5, 1)],
    "overall_rate": [0.3],
    "combine": ["each"],
    "ramp_width": [0, 0.0],
    "ramp": ["paper"],
    "cutoff": [0.3],
    "solver": ["sgd", SGD()],
    "small_groups": ["borrow"],
    "confidence": [0.95],
    "confidence_limit": ["proven"],
    "predict_method": ["decision_function"],
    "unseen_group": ["pooled"],
}


@pytest.mark.parametrize(("name", "value"), [(name, v) for name, values in REFUSED.items() for v in values])
def test_settings_that_need_two_classes_are_refused_by_name(name, value):
    model = optimizer(**{name: value})
    assert not get_tags(model).classifier_tags.multi_class
    sentence = rf"^Only binary classification is supported with `{name}` .*, got 3 classes; \w.*\.$"
    with pytest.raises(UnsupportedError, match=sentence):
        model.fit(X, Y, sensitive_features=SEX)
    with pytest.raises(UnsupportedError, match=sentence):
        optimizer(FROZEN, **{name: value}).fit(NEW_X, None, sensitive_features=NEW_SEX)
    assert not hasattr(model, "rule_")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"criterion": "parrity"}, "`criterion` must be one of .*, got 'parrity'; did you mean 'parity'"),
        ({"unseen_group": "ignore"}, "`unseen_group` must be one of"),
        ({"max_gap": 2}, "`max_gap` must be between 0 and 1, got 2"),
        ({"ramp_width": 1e-9}, "`ramp_width` must be between 1e-6 and 1e6 if there are several classes"),
        ({"predict_method": "predict"}, "`predict_method` must be one of"),
        ({"group_estimator": LinearSVC()}, "`group_estimator` must have predict_proba, and LinearSVC does not"),
        ({"group_estimator": GaussianNB(), "strata": 0}, "`group_estimator` does not support `strata`"),
        (
            {"group_estimator": GaussianNB(), "unseen_group": "original"},
            "`group_estimator` does not support `unseen_group='original'`",
        ),
    ],
)
def test_invalid_settings_raise_before_training(settings, sentence):
    class Never(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("trained")

    with pytest.raises(InputError, match=sentence):
        optimizer(Never(), **settings).fit(X, Y, sensitive_features=SEX)


@pytest.mark.parametrize("classifier", [LinearSVC(), SVC()], ids=["LinearSVC", "SVC"])
def test_a_classifier_without_probabilities_is_refused(classifier):
    sentence = (
        f"with `estimator` {type(classifier).__name__}, got 3 classes; .* in sklearn.calibration.Calibrated"
    )
    with pytest.raises(UnsupportedError, match=sentence):
        optimizer(classifier).fit(X, Y, sensitive_features=SEX)
    assert not get_tags(optimizer(classifier)).classifier_tags.multi_class


def test_tags_allow_several_classes_if_the_inner_classifier_and_the_settings_do():
    for model in (
        optimizer(),
        optimizer(FROZEN, max_gap=0.1),
        optimizer(make_pipeline(StandardScaler(), GaussianNB())),
    ):
        assert get_tags(model).classifier_tags.multi_class

    class Binary(LogisticRegression):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.classifier_tags.multi_class = False
            return tags

    assert not get_tags(optimizer(Binary())).classifier_tags.multi_class


# Deciding -----------------------------------------------------------------------------------------


FITTED = optimizer(FROZEN, ramp_width=0.3, random_state=0).fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)


def test_decisions_match_their_probabilities():
    chances = FITTED.predict_proba(X, sensitive_features=SEX)
    model = clone(FITTED).set_params(random_state=np.random.default_rng(5))
    model.fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    times = 400
    shares = sum(np.eye(3)[model.predict(X, sensitive_features=SEX)] for _ in range(times)) / times
    assert (chances.max(axis=1) < 1).sum() > 100
    # Of 3,600 shares, the furthest is expected about 3.6 standard errors from its probability.
    assert (np.abs(shares - chances) <= 5.5 * np.sqrt(chances * (1 - chances) / times)).all()


def test_an_int_repeats_the_draws_and_a_generator_advances():
    known = {"sensitive_features": SEX}
    first = FITTED.predict(X, **known)
    np.testing.assert_array_equal(first, FITTED.predict(X, **known))
    np.testing.assert_array_equal(first, FITTED.rule_.decide(SCORES, SEX, random_state=0))
    model = optimizer(FROZEN, ramp_width=0.3, random_state=np.random.RandomState(0))
    model.fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    assert (model.predict(X, **known) != model.predict(X, **known)).any()


def test_ids_and_a_key_repeat_each_persons_draw():
    ids = np.arange(len(X))
    answers = FITTED.predict(X, sensitive_features=SEX, ids=ids, key=KEY)
    np.testing.assert_array_equal(answers, FITTED.rule_.decide(SCORES, SEX, ids=ids, key=KEY))
    some = np.random.default_rng(0).permutation(len(X))[:300]
    again = FITTED.predict(X[some], sensitive_features=SEX[some], ids=ids[some], key=KEY)
    np.testing.assert_array_equal(answers[some], again)
    # The first class whose cumulative probability exceeds the draw
    passed = np.cumsum(FITTED.predict_proba(X, sensitive_features=SEX), axis=1) > draws(ids, KEY)[:, None]
    np.testing.assert_array_equal(answers, np.argmax(passed, axis=1))
    with pytest.raises(InputError, match="`ids` has 1 rows but `X` has 1200"):
        FITTED.predict(X, sensitive_features=SEX, ids=[1], key=KEY)


def test_score_is_the_expected_accuracy_of_the_draws():
    known = {"sensitive_features": NEW_SEX}
    right = FITTED.predict_proba(NEW_X, **known)[np.arange(900), NEW_Y]
    assert FITTED.score(NEW_X, NEW_Y, **known) == pytest.approx(right.mean(), abs=EXACT)
    weighted = FITTED.score(NEW_X, NEW_Y, **known, sample_weight=WEIGHTS)
    assert weighted == pytest.approx(np.average(right, weights=WEIGHTS), abs=EXACT)


def test_the_decision_function_is_the_score_minus_the_offset_of_the_group():
    offsets = dict(zip(FITTED.rule_.groups, np.array(FITTED.rule_.offsets), strict=True))
    heights = FITTED.decision_function(X, sensitive_features=SEX)
    np.testing.assert_allclose(heights, SCORES - np.array([offsets[sex] for sex in SEX]), atol=EXACT)
    chances = FITTED.predict_proba(X, sensitive_features=SEX)
    best, second = np.sort(heights, axis=1)[:, :-3:-1].T
    sure = best - second > FITTED.rule_.ramp_width
    assert 0 < sure.mean() < 1
    assert (chances[np.arange(len(X)), heights.argmax(axis=1)][sure] == 1).all()


def test_unseen_groups_follow_the_policy():
    with pytest.raises(UnseenGroupError):
        FITTED.predict_proba(X, sensitive_features=np.full(len(X), "x"))
    model = optimizer(FROZEN, unseen_group="original", random_state=0).fit(
        NEW_X, None, sensitive_features=NEW_SEX
    )
    unseen = {"sensitive_features": np.full(len(X), "x")}
    np.testing.assert_array_equal(model.predict(X, **unseen), MODEL.predict(X))
    np.testing.assert_array_equal(model.decision_function(X, **unseen), SCORES)


def test_calls_before_fit_raise():
    for ask in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(optimizer(), ask)(X, sensitive_features=SEX)


# Without groups -----------------------------------------------------------------------------------


def test_a_group_model_gives_the_rule_of_cross_fitted_group_probabilities():
    model = optimizer(group_estimator=LogisticRegression(), max_gap=0.01, random_state=0)
    model.fit(X, Y, sensitive_features=SEX)
    folds = list(StratifiedKFold(5).split(X, Y))
    scores, q = (
        cross_val_predict(LogisticRegression(), X, y, cv=folds, method="predict_proba") for y in (Y, SEX)
    )
    rule = fit_class_rule(scores, GroupProbabilities(q, ["f", "m"]), max_gap=0.01)
    assert model.rule_ == crossed(rule)
    chances = rule.probabilities(scores, GroupProbabilities(q, ["f", "m"]))
    assert np.ptp(q.T @ chances / q.sum(axis=0)[:, None], axis=0).max() <= 0.01 + EXACT
    q = LogisticRegression().fit(X, SEX).predict_proba(NEW_X)
    expected = rule.probabilities(NEW_SCORES, GroupProbabilities(q, ["f", "m"]))
    np.testing.assert_array_equal(model.predict_proba(NEW_X), expected)
    assert model.predict(NEW_X).shape == (900,)
    heights = NEW_SCORES - q @ np.array(rule.offsets)
    np.testing.assert_allclose(model.decision_function(NEW_X), heights, atol=EXACT)
    assert model.score(NEW_X, NEW_Y) == pytest.approx(expected[np.arange(900), NEW_Y].mean(), abs=EXACT)
    with pytest.raises(InputError, match="`sensitive_features` is used only in `fit`"):
        model.predict(NEW_X, sensitive_features=NEW_SEX)


def test_frozen_models_need_neither_groups_nor_labels():
    knower = FrozenEstimator(LogisticRegression().fit(X, SEX))
    model = optimizer(FROZEN, group_estimator=knower).fit(NEW_X, None)
    q = GroupProbabilities(knower.predict_proba(NEW_X), ["f", "m"])
    assert model.rule_ == fit_class_rule(NEW_SCORES, q)
    assert not model.rule_.record.cross_fitted
    model.partial_fit(X)
    both = GroupProbabilities(knower.predict_proba(np.vstack([NEW_X, X])), ["f", "m"])
    assert model.rule_ == fit_class_rule(np.vstack([NEW_SCORES, SCORES]), both)


def test_a_poor_group_model_warns_with_the_gap_of_true_groups():
    model = optimizer(FROZEN, group_estimator=FrozenEstimator(DummyClassifier().fit(X, SEX)))
    with pytest.warns(FairrampWarning) as caught:
        model.fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX, sample_weight=WEIGHTS)
    chances = model.predict_proba(NEW_X)
    told = [str(w.message) for w in caught if "does not recognize some groups well" in str(w.message)]
    gap = 100 * largest_gap(chances, NEW_SEX, WEIGHTS)
    assert gap > 5
    assert f"the gap is {gap:.1f} points" in told[0]


# More rows ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Groups with fewer")
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("labels", [NEW_Y, None], ids=["labeled", "unlabeled"])
def test_partial_fits_equal_one_fit(labels, weights):
    groups = pd.DataFrame({"sex": NEW_SEX, "race": NEW_RACE})

    def given(rows):
        known = {"sensitive_features": groups.iloc[rows]}
        known["sample_weight"] = None if weights is None else weights[rows]
        return {"X": NEW_X[rows], "y": None if labels is None else labels[rows], **known}

    whole = optimizer(FROZEN, max_gap=0.02).fit(**given(np.arange(900)))
    parts = optimizer(FROZEN, max_gap=0.02)
    for rows in np.array_split(np.arange(900), [200, 201, 500]):
        parts.partial_fit(**given(rows), classes=[2, 1, 0])
    assert parts.rule_ == whole.rule_


def test_partial_fit_adds_rows_scored_by_the_final_model():
    model = optimizer().fit(X, Y, sensitive_features=SEX)
    old = cross_val_predict(LogisticRegression(), X, Y, method="predict_proba")
    model.partial_fit(NEW_X, sensitive_features=NEW_SEX)
    rule = fit_class_rule(np.vstack([old, NEW_SCORES]), np.append(SEX, NEW_SEX))
    assert model.rule_ == crossed(rule)
    before = model.rule_
    with pytest.raises(InputError, match=r"`classes` must be the classes of `y`, \[0, 1, 2\], got \[0, 1\]"):
        model.partial_fit(NEW_X, NEW_Y, classes=[0, 1], sensitive_features=NEW_SEX)
    with pytest.raises(UnsupportedError, match="with `solver` 'sgd', got 3 classes"):
        model.set_params(solver="sgd").partial_fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    assert model.rule_ is before


def test_refitting_with_two_classes_gives_a_rule_with_ramps_again():
    model = optimizer(random_state=0).fit(X, Y, sensitive_features=SEX)
    two = model.fit(X, Y == 1, sensitive_features=SEX).rule_
    assert two == optimizer().fit(X, Y == 1, sensitive_features=SEX).rule_
    assert model.predict_proba(X, sensitive_features=SEX).shape == (1_200, 2)
    assert isinstance(model.fit(X, Y, sensitive_features=SEX).rule_, ClassRule)


# As scikit-learn users write it -------------------------------------------------------------------


def test_a_pipeline_forwards_groups(routing):
    named = NAMES[Y]
    pipeline = Pipeline([("scale", StandardScaler()), ("fair", optimizer(random_state=0, max_gap=0.05))])
    pipeline.fit(X, named, sensitive_features=SEX)
    scaler = StandardScaler().fit(X)
    alone = optimizer(random_state=0, max_gap=0.05).fit(scaler.transform(X), named, sensitive_features=SEX)
    assert pipeline[-1].rule_ == alone.rule_
    assert list(pipeline.classes_) == ["high", "low", "mid"]
    for ask in ("predict", "predict_proba", "decision_function"):
        ours = getattr(pipeline, ask)(NEW_X, sensitive_features=NEW_SEX)
        theirs = getattr(alone, ask)(scaler.transform(NEW_X), sensitive_features=NEW_SEX)
        np.testing.assert_array_equal(ours, theirs)
    ids = {"ids": np.arange(900), "key": KEY}
    assert pipeline.predict(NEW_X, sensitive_features=NEW_SEX, **ids).shape == (900,)


def test_cross_validation_and_grid_search_forward_groups_and_weights(routing):
    inner = LogisticRegression().set_fit_request(sample_weight=True)
    params = {"sensitive_features": SEX, "sample_weight": 1.0 + Y}
    weighted = cross_val_score(optimizer(inner, cv=3), X, Y, cv=3, params=params)
    plain = cross_val_score(optimizer(inner, cv=3), X, Y, cv=3, params={"sensitive_features": SEX})
    assert (weighted != plain).all()
    search = GridSearchCV(optimizer(cv=3), {"max_gap": [0.0, 0.3], "estimator__C": [0.1, 1.0]}, cv=3)
    search.fit(X, Y, sensitive_features=SEX)
    best = search.best_estimator_
    assert search.best_params_["max_gap"] == 0.3  # fairness costs accuracy
    assert search.score(X, Y, sensitive_features=SEX) == best.score(X, Y, sensitive_features=SEX)


@pytest.mark.parametrize("enabled", [False, True])
def test_sensitive_columns_work_in_cross_validation_and_search(enabled):
    table = pd.DataFrame(X, columns=["age", "income", "debt"]).assign(sex=SEX)
    model = optimizer(sensitive_columns="sex", drop_sensitive=True, cv=2, random_state=0)
    with sklearn.config_context(enable_metadata_routing=enabled):
        scores = cross_validate(model, table, NAMES[Y], cv=3, scoring=["accuracy", "roc_auc_ovr"])
        assert scores["test_accuracy"].min() > 0.4
        assert scores["test_roc_auc_ovr"].min() > 0.55
        chances = cross_val_predict(model, table, NAMES[Y], cv=3, method="predict_proba")
        assert largest_gap(chances, SEX) < 0.1
        search = GridSearchCV(model, {"max_gap": [0.0, 0.1]}, cv=3, scoring="f1_macro").fit(table, NAMES[Y])
    assert list(search.best_estimator_.estimator_.feature_names_in_) == ["age", "income", "debt"]
    assert search.predict_proba(table).shape == (1_200, 3)


def test_a_clone_is_unfitted_and_a_pickle_decides_and_keeps_learning_identically():
    model = optimizer(random_state=1).fit(X, NAMES[Y], sensitive_features=SEX)
    assert not hasattr(clone(model), "rule_")
    twin = pickle.loads(pickle.dumps(model))
    assert twin.rule_ == model.rule_
    ours, theirs = (m.predict(NEW_X, sensitive_features=NEW_SEX) for m in (model, twin))
    np.testing.assert_array_equal(ours, theirs)
    ours, theirs = (m.partial_fit(NEW_X, sensitive_features=NEW_SEX) for m in (model, twin))
    assert ours.rule_ == theirs.rule_


def test_arrays_may_change_after_the_fit():
    x, groups, weights = NEW_X.copy(), NEW_SEX == "f", WEIGHTS.copy()
    model = optimizer(FROZEN).fit(x, None, sensitive_features=groups, sample_weight=weights)
    x[:], groups[:], weights[:] = 0, 0, 1
    untouched = optimizer(FROZEN).fit(NEW_X, None, sensitive_features=NEW_SEX == "f", sample_weight=WEIGHTS)
    more = {"sensitive_features": SEX == "f"}
    assert model.partial_fit(X, **more).rule_ == untouched.partial_fit(X, **more).rule_
