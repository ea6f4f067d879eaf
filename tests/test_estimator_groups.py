"""The estimator learns the groups in `fit` and decides without them, and combines attributes as fit_rule does."""
# ruff: noqa: N803 -- scikit-learn calls it X

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

from fairramp import FairrampWarning, GroupProbabilities, InputError, UnsupportedError, fit_rule
from people import optimizer

#: How exactly rates agree on the fit rows: the solver's tolerance and rounding.
EXACT = 1e-9
N = 1_500


def people(n_rows=N, seed=0):
    """Features of which one tells the sex, and another the race, and an outcome that depends on both."""
    rng = np.random.default_rng(seed)
    sex, race = rng.choice(["f", "m"], n_rows), rng.choice(["a", "b"], n_rows)
    x = rng.normal(size=(n_rows, 4))
    x[:, 2] += 3 * (sex == "m")
    x[:, 3] += 3 * (race == "b")
    y = (x[:, 0] + x[:, 1] + 0.3 * (sex == "m") + 0.2 * (race == "b") + rng.logistic(size=n_rows) > 0.3).astype(
        int
    )
    return x, y, sex, race


X, Y, SEX, RACE = people()
NEW_X, NEW_Y, NEW_SEX, NEW_RACE = people(800, seed=1)
BOTH = pd.DataFrame({"sex": SEX, "race": RACE})
SCORER, KNOWER = LogisticRegression().fit(X, Y), LogisticRegression().fit(X, SEX)
FOLDS = list(StratifiedKFold(5).split(X, Y))


def blind(estimator=None, group_estimator=None, **settings):
    return optimizer(estimator, group_estimator=group_estimator or LogisticRegression(), **settings)


def crossed(model, y, splits=FOLDS, x=X, **fit):
    """Probabilities of each row by a model that was not trained on it."""
    found = np.empty((len(x), len(np.unique(y))))
    for train, test in splits:
        part = {name: values[train] for name, values in fit.items()}
        found[test] = clone(model).fit(x[train], y[train], **part).predict_proba(x[test])
    return found


def expected_rates(chances, q, weights=1.0):
    """Rates of groups, as probabilities of membership say; written with plain NumPy."""
    return (q * weights[:, None] if np.ndim(weights) else q).T @ chances / (q.T @ (weights * np.ones(len(q))))


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


@pytest.mark.parametrize(
    "settings",
    [{}, {"max_gap": 0.03}, {"min_ratio": 0.9}, {"target_rate": 0.3}, {"overall_rate": 0.25}, {"ramp": "paper"}],
)
def test_the_rule_is_that_of_fit_rule_on_the_same_cross_fitted_arrays(settings):
    model = blind(**settings).fit(X, Y, sensitive_features=SEX)
    scores, q = crossed(LogisticRegression(), Y)[:, 1], crossed(LogisticRegression(), SEX)
    rule = fit_rule(scores, GroupProbabilities(q, ["f", "m"]), **settings)
    assert model.rule_.groups == rule.groups == ("f", "m")
    np.testing.assert_array_equal(model.rule_.thresholds, rule.thresholds)
    assert model.rule_.membership == "probabilities"
    assert model.rule_.record.cross_fitted


def test_expected_rates_of_the_fit_rows_are_equal():
    model = blind().fit(X, Y, sensitive_features=SEX)
    scores, q = crossed(LogisticRegression(), Y)[:, 1], crossed(LogisticRegression(), SEX)
    chances = model.rule_.probabilities(scores, GroupProbabilities(q, ["f", "m"]))
    assert np.ptp(expected_rates(chances, q)) < EXACT
    assert np.ptp(expected_rates(scores >= 0.5, q)) > 0.02


def test_decisions_need_no_groups_and_use_the_models_trained_on_all_rows():
    model = blind(random_state=0).fit(X, Y, sensitive_features=SEX)
    q = GroupProbabilities(KNOWER.predict_proba(NEW_X), ["f", "m"])
    chances = model.rule_.probabilities(SCORER.predict_proba(NEW_X)[:, 1], q)
    np.testing.assert_array_equal(model.predict_proba(NEW_X)[:, 1], chances)
    assert model.score(NEW_X, NEW_Y) == pytest.approx(np.where(NEW_Y, chances, 1 - chances).mean(), abs=EXACT)
    certain = (chances == 0) | (chances == 1)
    np.testing.assert_array_equal(model.predict(NEW_X)[certain], chances[certain])
    np.testing.assert_array_equal(model.group_estimator_.coef_, KNOWER.coef_)
    assert list(model.group_estimator_.classes_) == ["f", "m"]


def test_the_true_gap_on_new_rows_becomes_small():
    own = SCORER.predict(NEW_X)
    chances = blind().fit(X, Y, sensitive_features=SEX).predict_proba(NEW_X)[:, 1]
    before, after = (abs(p[NEW_SEX == "f"].mean() - p[NEW_SEX == "m"].mean()) for p in (own, chances))
    assert after < 0.05  # about two standard errors of a difference between two rates of 400 rows
    assert after < before


def test_the_decision_function_is_the_distance_to_the_expected_threshold():
    model = blind(max_gap=0.01).fit(X, Y, sensitive_features=SEX)
    q = KNOWER.predict_proba(NEW_X)
    expected = SCORER.predict_proba(NEW_X)[:, 1] - q @ np.array(model.rule_.thresholds)
    np.testing.assert_allclose(model.decision_function(NEW_X), expected, atol=EXACT)
    chances, heights = model.predict_proba(NEW_X)[:, 1], model.decision_function(NEW_X)
    assert (chances[heights > 0.005 + EXACT] == 1).all()
    assert (chances[heights < -0.005 - EXACT] == 0).all()


def test_known_group_probabilities_give_the_rule_of_known_groups():
    class Certain(ClassifierMixin, BaseEstimator):
        """Reads the group from the last column."""

        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.column_stack([1 - X[:, -1], X[:, -1]])

    x = np.column_stack([X, SEX == "m"])
    model = blind(group_estimator=Certain(), target_rate="optimal").fit(x, Y, sensitive_features=SEX)
    known = optimizer(target_rate="optimal").fit(x, Y, sensitive_features=SEX)
    np.testing.assert_allclose(
        model.predict_proba(x), known.predict_proba(x, sensitive_features=SEX), rtol=0, atol=EXACT
    )


def test_scores_and_groups_are_cross_fitted_in_the_same_folds():
    seen = []

    class Noting(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append(X[:, 0].copy())
            return super().fit(X, y, sample_weight)

    # Without a seed, every call of `split` shuffles anew.
    blind(Noting(), Noting(), cv=StratifiedKFold(3, shuffle=True)).fit(X, Y, sensitive_features=SEX)
    scores, groups = seen[:4], seen[4:]
    assert len(groups) == 4
    for ours, theirs in zip(scores, groups, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# Groups -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "labels"),
    [
        (BOTH, (("f", "a"), ("f", "b"), ("m", "a"), ("m", "b"))),
        (np.where(SEX == "f", 7, 3), (3, 7)),
        (SEX == "f", (False, True)),
        ([None if s == "f" else s for s in SEX], ("m", None)),
        (pl.Series("sex", SEX), ("f", "m")),
    ],
    ids=["intersections", "integers", "booleans", "missing", "polars"],
)
def test_groups_of_every_kind_are_the_classes(groups, labels):
    model = blind().fit(X, Y, sensitive_features=groups)
    assert set(model.rule_.groups) == set(labels)
    assert len(model.group_estimator_.classes_) == len(labels)
    assert np.ptp(model.rule_.record.main.after) < EXACT
    assert ((model.predict_proba(NEW_X) >= 0) & (model.predict_proba(NEW_X) <= 1)).all()


def test_intersections_are_decoded_in_their_order():
    model = blind(max_gap=0.01).fit(X, Y, sensitive_features=BOTH)
    labels = [(s, r) for s in "fm" for r in "ab"]
    numbers = 2 * (SEX == "m") + (RACE == "b")
    scores, q = crossed(LogisticRegression(), Y)[:, 1], crossed(LogisticRegression(), numbers)
    rule = fit_rule(scores, GroupProbabilities(q, labels), max_gap=0.01)
    assert model.rule_.groups == rule.groups
    np.testing.assert_array_equal(model.rule_.thresholds, rule.thresholds)


def test_a_group_missing_from_a_training_part_raises():
    groups = SEX.astype(object).copy()
    groups[17] = "x"
    with pytest.raises(
        InputError, match="`cv` leaves no row of group x in a training part; use fewer splits, or"
    ):
        blind().fit(X, Y, sensitive_features=groups)


def test_one_group_raises():
    with pytest.raises(InputError, match="`group_estimator` requires at least two groups, got one: all"):
        blind().fit(X, Y, sensitive_features=["all"] * N)


def test_deciding_refuses_groups():
    model = blind().fit(X, Y, sensitive_features=SEX)
    for call in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(
            InputError, match="`sensitive_features` is used only in `fit` if there is a `group_esti"
        ):
            call(NEW_X, sensitive_features=NEW_SEX)
    with pytest.raises(InputError, match="leave it out"):
        model.score(NEW_X, NEW_Y, sensitive_features=NEW_SEX)


def test_fit_needs_the_groups():
    with pytest.raises(InputError, match="The groups are missing: pass `sensitive_features`"):
        blind().fit(X, Y)


@pytest.mark.parametrize("library", [pd, pl])
def test_named_group_columns_are_used_in_the_fit_only(library):
    names = list("wxyz")
    plain = library.DataFrame({name: X[:, i] for i, name in enumerate(names)})
    full = library.DataFrame({"sex": SEX, **{name: X[:, i] for i, name in enumerate(names)}})
    model = blind(sensitive_columns="sex").fit(full, Y)
    passed = blind().fit(plain, Y, sensitive_features=SEX)
    np.testing.assert_allclose(model.rule_.thresholds, passed.rule_.thresholds, rtol=0, atol=EXACT)
    assert list(model.feature_names_in_) == ["sex", *names]
    assert list(model.group_estimator_.feature_names_in_) == names
    assert list(model.estimator_.feature_names_in_) == names
    for table in (full, plain):
        np.testing.assert_allclose(model.predict_proba(table), passed.predict_proba(plain), rtol=0, atol=EXACT)


@pytest.mark.parametrize("wrap", [np.asarray, csr_array, lambda x: x.tolist()])
def test_group_columns_by_position_may_be_absent_when_deciding(wrap):
    full = np.column_stack([X[:, :2], SEX == "m", X[:, 2:]])
    model = blind(sensitive_columns=[2]).fit(wrap(full), Y)
    assert model.n_features_in_ == 5
    with_column, without = (model.predict_proba(wrap(x)) for x in (full, X))
    np.testing.assert_allclose(with_column, without, rtol=0, atol=EXACT)
    with pytest.raises(InputError, match="X has 3 features, but RandomizedThresholdOptimizer is expecting 5"):
        model.predict_proba(wrap(X[:, :3]))


def test_a_function_of_labels_is_called_in_the_fit_only():
    calls = []

    def sexes(X):
        calls.append(len(X))
        return SEX

    model = blind(sensitive_columns=sexes).fit(X, Y)
    model.predict(NEW_X)
    assert calls == [N]


# Frozen models ------------------------------------------------------------------------------------


def test_a_frozen_group_model_is_used_as_it_is():
    model = blind(group_estimator=FrozenEstimator(KNOWER), max_gap=0.01).fit(X, Y, sensitive_features=SEX)
    q = GroupProbabilities(KNOWER.predict_proba(X), ["f", "m"])
    rule = fit_rule(crossed(LogisticRegression(), Y)[:, 1], q, max_gap=0.01)
    np.testing.assert_array_equal(model.rule_.thresholds, rule.thresholds)
    assert model.group_estimator_.estimator is KNOWER


def test_a_frozen_group_model_needs_no_groups():
    frozen = FrozenEstimator(KNOWER)
    with_groups, without = (
        blind(group_estimator=frozen).fit(X, Y, sensitive_features=groups) for groups in (SEX, None)
    )
    assert with_groups.rule_ == without.rule_


def test_two_frozen_models_need_neither_groups_nor_labels_and_are_not_cross_fitted():
    model = blind(FrozenEstimator(SCORER), FrozenEstimator(KNOWER)).fit(NEW_X, None)
    q = GroupProbabilities(KNOWER.predict_proba(NEW_X), ["f", "m"])
    assert model.rule_ == fit_rule(SCORER.predict_proba(NEW_X)[:, 1], q)
    assert not model.rule_.record.cross_fitted


def test_with_a_frozen_classifier_the_folds_are_stratified_by_group():
    model = blind(FrozenEstimator(SCORER)).fit(NEW_X, None, sensitive_features=NEW_SEX)
    splits = list(StratifiedKFold(5).split(NEW_X, NEW_SEX))
    q = crossed(LogisticRegression(), NEW_SEX, splits, NEW_X)
    rule = fit_rule(SCORER.predict_proba(NEW_X)[:, 1], GroupProbabilities(q, ["f", "m"]))
    np.testing.assert_array_equal(model.rule_.thresholds, rule.thresholds)
    assert model.rule_.record.cross_fitted


def test_the_classes_of_a_frozen_group_model_must_be_the_groups():
    with pytest.raises(InputError, match=r"`group_estimator` must have the groups \['a', 'b'\] as its classes"):
        blind(group_estimator=FrozenEstimator(KNOWER)).fit(X, Y, sensitive_features=RACE)


# Refused, and warned about ------------------------------------------------------------------------


@pytest.mark.parametrize("group_estimator", [LinearSVC(), SVC(), FrozenEstimator(LinearSVC().fit(X, SEX))])
def test_a_group_model_without_probabilities_raises_before_training(group_estimator):
    sentence = r"`group_estimator` must have predict_proba, and (Linear)?SVC does not\."
    with pytest.raises(InputError, match=sentence):
        blind(group_estimator=group_estimator).fit(X, Y, sensitive_features=SEX)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"criterion": "equal_opportunity"}, "criterion='equal_opportunity'"),
        ({"target_rate": "accuracy"}, "target_rate='accuracy'"),
        ({"strata": [0]}, "strata"),
        ({"combine": "each"}, "combine='each'"),
        ({"unseen_group": "original"}, "unseen_group='original'"),
        ({"small_groups": "borrow"}, "small_groups='borrow'"),
        ({"solver": "sgd", "target_rate": 0.3}, "solver='sgd'"),
    ],
)
def test_settings_that_need_known_groups_raise_by_name(settings, what):
    with pytest.raises(UnsupportedError, match=f"`group_estimator` does not support `{what}`"):
        blind(**settings).fit(X, Y, sensitive_features=SEX)


def test_a_ramp_of_width_0_raises():
    with pytest.raises(UnsupportedError, match="`group_estimator` requires `ramp_width` above 0, got 0"):
        blind(ramp_width=0).fit(X, Y, sensitive_features=SEX)


def test_a_poor_group_model_warns_with_numbers():
    groups = np.where(np.arange(N) % 5 == 0, "rare", "usual")
    with pytest.warns(FairrampWarning) as caught:
        blind(group_estimator=DummyClassifier(), max_gap=0.5).fit(X, Y, sensitive_features=groups)
    (poor,) = [str(w.message) for w in caught if "does not recognize" in str(w.message)]
    assert "no probability of 50% or more: rare (highest 20." in poor
    assert "usual" not in poor
    assert "between the true groups of the fit rows, the gap is" in poor


def test_a_miscalibrated_group_model_warns_with_its_error():
    class Bold(LogisticRegression):
        """Overconfident: probabilities far too close to 0 and 1."""

        def predict_proba(self, X):
            odds = 8 * (super().decision_function(X) - 2.0)
            return np.column_stack([1 / (1 + np.exp(odds)), 1 / (1 + np.exp(-odds))])

    with pytest.warns(FairrampWarning, match=r"calibration error above 0\.05: f 0\.\d+, m 0\.\d+"):
        blind(group_estimator=Bold(), max_gap=0.5).fit(X, Y, sensitive_features=SEX)


def test_a_good_group_model_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        blind().fit(X, Y, sensitive_features=SEX)
        blind(group_estimator=HistGradientBoostingClassifier(max_iter=20)).fit(X, Y, sensitive_features=SEX)


# Weights, and later rows --------------------------------------------------------------------------


def test_weights_reach_both_models_and_the_rule():
    weights = np.random.default_rng(2).integers(0, 4, N).astype(float)
    model = blind(max_gap=0.01).fit(X, Y, sensitive_features=SEX, sample_weight=weights)
    scores, q = (crossed(LogisticRegression(), y, sample_weight=weights) for y in (Y, SEX))
    rule = fit_rule(scores[:, 1], GroupProbabilities(q, ["f", "m"]), max_gap=0.01, sample_weight=weights)
    np.testing.assert_array_equal(model.rule_.thresholds, rule.thresholds)
    chances = rule.probabilities(scores[:, 1], GroupProbabilities(q, ["f", "m"]))
    assert np.ptp(expected_rates(chances, q, weights)) < 0.01 + EXACT


def test_a_group_model_without_weights_warns_and_the_rule_still_uses_them():
    class Plain(LogisticRegression):
        def fit(self, X, y):
            return super().fit(X, y)

    weights = np.random.default_rng(2).integers(1, 4, N).astype(float)
    with pytest.warns(FairrampWarning, match="Plain does not accept `sample_weight`, so it is trained without"):
        model = blind(group_estimator=Plain()).fit(X, Y, sensitive_features=SEX, sample_weight=weights)
    assert model.rule_.record.weighted


def test_routing_sends_weights_to_the_models_that_request_them(routing):
    weights = np.random.default_rng(2).integers(1, 4, N).astype(float)
    asks, ignores = (LogisticRegression().set_fit_request(sample_weight=flag) for flag in (True, False))
    model = blind(ignores, asks).fit(X, Y, sensitive_features=SEX, sample_weight=weights)
    np.testing.assert_array_equal(
        model.group_estimator_.coef_, LogisticRegression().fit(X, SEX, sample_weight=weights).coef_
    )
    np.testing.assert_array_equal(model.estimator_.coef_, SCORER.coef_)


@pytest.mark.parametrize("groups", [NEW_SEX, None])
def test_partial_fit_takes_the_probabilities_of_new_rows_without_their_groups(groups):
    model = blind(FrozenEstimator(SCORER), FrozenEstimator(KNOWER)).fit(X, None)
    model.partial_fit(NEW_X, None, sensitive_features=groups)
    rows = np.vstack([X, NEW_X])
    whole = blind(FrozenEstimator(SCORER), FrozenEstimator(KNOWER)).fit(rows, None)
    assert model.rule_ == whole.rule_


def test_partial_fit_refuses_a_group_model_that_was_added_or_removed():
    model = optimizer().fit(X, Y, sensitive_features=SEX)
    with pytest.raises(InputError, match="`group_estimator` has changed since `fit`"):
        model.set_params(group_estimator=LogisticRegression()).partial_fit(X, Y, sensitive_features=SEX)


# In scikit-learn ----------------------------------------------------------------------------------


def test_clones_copies_and_pickles_decide_identically():
    model = blind(max_gap=0.02).fit(X, Y, sensitive_features=SEX)
    chances = model.predict_proba(NEW_X)
    twin = clone(model)
    assert not hasattr(twin, "group_estimator_")
    for other in (
        twin.fit(X, Y, sensitive_features=SEX),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ):
        assert other.rule_ == model.rule_
        np.testing.assert_array_equal(other.predict_proba(NEW_X), chances)
    assert model.set_params(group_estimator__C=0.1).group_estimator.C == 0.1


def test_without_a_group_model_there_is_none():
    model = blind().fit(X, Y, sensitive_features=SEX).set_params(group_estimator=None)
    assert model.fit(X, Y, sensitive_features=SEX).group_estimator_ is None
    assert model.rule_ == optimizer().fit(X, Y, sensitive_features=SEX).rule_


@pytest.mark.parametrize("enabled", [True, False])
def test_searches_and_cross_validation_pass_groups_to_fit_only(enabled):
    with sklearn.config_context(enable_metadata_routing=enabled):
        model = make_pipeline(StandardScaler(), blind(cv=3, random_state=0))
        name = "sensitive_features" if enabled else "randomizedthresholdoptimizer__sensitive_features"
        grid = {"randomizedthresholdoptimizer__max_gap": [0.0, 0.05]}
        search = GridSearchCV(model, grid, cv=3).fit(X, Y, **{name: SEX})
        assert search.predict(NEW_X).shape == NEW_Y.shape
        assert 0.5 < search.score(NEW_X, NEW_Y) < 1
        bare = blind(cv=3, random_state=0)
        scores = cross_val_score(bare, X, Y, cv=3, params={"sensitive_features": SEX})
        # Named scorers and out-of-fold predictions work, too: they need no groups.
        named = cross_validate(
            bare, X, Y, cv=3, scoring=["roc_auc", "accuracy"], params={"sensitive_features": SEX}
        )
        assert (named["test_roc_auc"] > 0.6).all()
        assert cross_val_predict(bare, X, Y, cv=3, params={"sensitive_features": SEX}).shape == Y.shape
    by_hand = []
    for train, test in StratifiedKFold(3).split(X, Y):
        fitted = blind(cv=3).fit(X[train], Y[train], sensitive_features=SEX[train])
        by_hand.append(fitted.score(X[test], Y[test]))
    np.testing.assert_allclose(scores, by_hand, rtol=0, atol=EXACT)


def test_tags_are_what_both_models_allow():
    trees = HistGradientBoostingClassifier()
    assert get_tags(blind(trees, trees)).input_tags.allow_nan
    assert not get_tags(blind(trees)).input_tags.allow_nan
    assert not get_tags(blind(LogisticRegression(), trees)).input_tags.sparse


# Attributes one by one ----------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"max_gap": 0.03}, {"target_rate": 0.4}, {"overall_rate": 0.3}])
def test_combining_attributes_one_by_one_is_that_of_fit_rule(settings):
    model = optimizer(FrozenEstimator(SCORER), combine="each", **settings).fit(X, Y, sensitive_features=BOTH)
    scores = SCORER.predict_proba(X)[:, 1]
    rule = fit_rule(scores, BOTH, combine="each", **settings)
    assert model.rule_ == rule
    chances = model.predict_proba(X, sensitive_features=BOTH)[:, 1]
    np.testing.assert_array_equal(chances, rule.probabilities(scores, BOTH))
    limit = settings.get("max_gap", 0.0)
    for attribute in (SEX, RACE):
        rates = [chances[attribute == value].mean() for value in np.unique(attribute)]
        assert np.ptp(rates) < limit + EXACT


def test_combining_one_by_one_decides_intersections_without_fit_rows():
    kept = ~((SEX == "f") & (RACE == "b"))
    model = optimizer(combine="each").fit(X[kept], Y[kept], sensitive_features=BOTH[kept])
    chances = model.predict_proba(X, sensitive_features=BOTH)[:, 1]
    heights = model.decision_function(X, sensitive_features=BOTH)
    assert np.isfinite(chances).all()
    assert (heights[chances == 1] >= 0).all()
    assert (heights[chances == 0] <= 0).all()
