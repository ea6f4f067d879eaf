"""The scikit-learn estimator passes the right scores, groups and labels to fit_rule in every use."""
# ruff: noqa: N803 -- scikit-learn calls it X

import pickle
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.sparse import coo_array, csr_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
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
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from fairramp import FairrampWarning, InputError, UnseenGroupError, draws, fit_rule
from fairramp.rule.file import OPTIONS
from fairramp.sklearn.estimator import RandomizedThresholdOptimizer
from people import (
    CODED,
    FROZEN,
    MODEL,
    NAMES,
    NEW_RACE,
    NEW_SEX,
    NEW_X,
    NEW_Y,
    RACE,
    SEX,
    N,
    X,
    Y,
    decided,
    frame,
    on_frames,
    optimizer,
)
from samples import gap


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads slow small fits down, especially on a busy machine."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# Frozen models ------------------------------------------------------------------------------------


@pytest.mark.parametrize("target_rate", ["accuracy", "optimal", "base_rate", 0.4])
@pytest.mark.parametrize(
    "groups",
    [
        NEW_SEX,
        NEW_SEX == "f",
        list(NEW_SEX),
        pd.Series(NEW_SEX, name="sex"),
        pd.Series(NEW_RACE, dtype="category"),
        pl.Series("race", NEW_RACE),
        pd.DataFrame({"sex": NEW_SEX, "race": NEW_RACE}),
        pl.DataFrame({"sex": NEW_SEX, "race": NEW_RACE}),
        {"race": NEW_RACE, "sex": NEW_SEX},
        [NEW_SEX, NEW_RACE],
        np.column_stack([NEW_SEX, NEW_RACE]),
        [None if r == "c" else r for r in NEW_RACE],
        list(zip(NEW_SEX, NEW_RACE, strict=True)),
    ],
    ids=lambda groups: type(groups).__module__.split(".")[0] + type(groups).__name__,
)
def test_a_frozen_model_matches_fit_rule_on_its_scores(groups, target_rate):
    model = optimizer(FROZEN, max_gap=0.03, target_rate=target_rate).fit(NEW_X, NEW_Y, sensitive_features=groups)
    scores = MODEL.predict_proba(NEW_X)[:, 1]
    rule = fit_rule(scores, groups, NEW_Y, max_gap=0.03, target_rate=target_rate)
    assert model.rule_ == rule
    assert not model.rule_.record.cross_fitted
    chances = model.predict_proba(NEW_X, sensitive_features=groups)
    np.testing.assert_array_equal(chances[:, 1], rule.probabilities(scores, groups))
    np.testing.assert_array_equal(chances.sum(axis=1), 1.0)


def test_every_setting_reaches_the_rule():
    settings = {"max_gap": 0.1, "ramp_width": 0.2, "ramp": "paper", "target_rate": 0.3, "cutoff": 0.6}
    settings["unseen_group"] = "pooled"
    model = optimizer(FROZEN, **settings).fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    assert model.rule_ == fit_rule(MODEL.predict_proba(NEW_X)[:, 1], NEW_SEX, **settings)


@pytest.mark.parametrize("criterion", OPTIONS["criterion"])
def test_every_criterion_of_fit_rule_reaches_the_rule(criterion):
    model = optimizer(FROZEN, criterion=criterion, max_gap=0.05).fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    scores = MODEL.predict_proba(NEW_X)[:, 1]
    rule = fit_rule(scores, NEW_SEX, NEW_Y, criterion=criterion, max_gap=0.05, target_rate="accuracy")
    assert model.rule_ == rule
    assert np.isfinite(model.decision_function(X, sensitive_features=SEX)).all()


def test_a_frozen_model_is_never_refitted():
    with pytest.warns(FairrampWarning, match="Scores are lower for the favorable outcome"):
        model = optimizer(FROZEN, target_rate=0.3).fit(NEW_X, 1 - NEW_Y, sensitive_features=NEW_SEX)
    assert model.estimator_ is FROZEN
    np.testing.assert_array_equal(model.estimator_.predict(NEW_X), MODEL.predict(NEW_X))


def test_a_frozen_model_needs_labels_only_if_the_target_does():
    unlabeled = optimizer(FROZEN, target_rate="optimal").fit(NEW_X, None, sensitive_features=NEW_SEX)
    labeled = optimizer(FROZEN, target_rate="optimal").fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    assert unlabeled.rule_ == labeled.rule_
    with pytest.raises(InputError, match=r"`target_rate='accuracy'` requires `y`, the true outcomes"):
        optimizer(FROZEN).fit(NEW_X, None, sensitive_features=NEW_SEX)


# Cross-fitting ------------------------------------------------------------------------------------


class Spy(ClassifierMixin, BaseEstimator):
    """Scores the rows it was trained on as 1, and other rows by their feature."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.rows_ = set(X[:, 0])
        self.labels_ = y
        self.weights_ = sample_weight
        return self

    def predict_proba(self, X):
        seen = np.isin(X[:, 0], list(self.rows_))
        chances = np.where(seen, 1.0, 0.1 + 0.8 * X[:, 0])
        return np.column_stack([1 - chances, chances])


def spied_rows(n_rows=300):
    rng = np.random.default_rng(2)
    row = rng.permutation(n_rows) / n_rows
    return row[:, None], rng.integers(0, 2, n_rows), rng.choice(["f", "m"], n_rows)


@pytest.mark.parametrize(
    "cv", [5, 2, KFold(3), StratifiedKFold(4, shuffle=True, random_state=0), list(KFold(7).split(range(300)))]
)
def test_no_row_is_scored_by_a_model_that_was_trained_on_it(cv):
    x, y, groups = spied_rows()
    model = optimizer(Spy(), cv=cv, target_rate="optimal").fit(x, y, sensitive_features=groups)
    honest = fit_rule(0.1 + 0.8 * x[:, 0], groups)  # scores of rows left out of training
    assert decided(model.rule_) == replace(honest, record=replace(honest.record, cross_fitted=True))
    assert model.estimator_.rows_ == set(x[:, 0])


def test_cross_fitted_scores_match_cross_val_predict():
    model = optimizer(cv=4).fit(X, Y, sensitive_features=SEX)
    scores = cross_val_predict(LogisticRegression(), X, Y, cv=4, method="predict_proba")[:, 1]
    rule = fit_rule(scores, SEX, Y, target_rate="accuracy")
    assert model.rule_ == replace(rule, record=replace(rule.record, cross_fitted=True))
    np.testing.assert_array_equal(model.estimator_.coef_, MODEL.coef_)


def test_masks_are_valid_splits():
    odd = np.arange(N) % 2 == 1
    masks = optimizer(cv=[(odd, ~odd), (~odd, odd)]).fit(X, Y, sensitive_features=SEX)
    places = [(np.flatnonzero(odd), np.flatnonzero(~odd)), (np.flatnonzero(~odd), np.flatnonzero(odd))]
    assert masks.rule_ == optimizer(cv=places).fit(X, Y, sensitive_features=SEX).rule_


@pytest.mark.parametrize(
    ("cv", "sentence"),
    [
        (ShuffleSplit(3, random_state=0), "`cv` must test every row exactly once"),
        ([(range(600), range(600, N))], "exactly once, got 0 times for row 0"),
        ([(range(N), range(N))], "`cv` must not have a row in both the training and the test part of a split"),
        ([(np.flatnonzero(Y), np.flatnonzero(Y == 0))], "`cv` leaves only one class in a training part"),
    ],
)
def test_splits_must_leave_each_row_out_once(cv, sentence):
    with pytest.raises(InputError, match=sentence):
        optimizer(cv=cv).fit(X, Y, sensitive_features=SEX)


def test_a_precomputed_kernel_is_split_by_rows_and_columns():
    kernel = optimizer(SVC(kernel="precomputed"), cv=3).fit(X @ X.T, Y, sensitive_features=SEX)
    linear = optimizer(SVC(kernel="linear"), cv=3).fit(X, Y, sensitive_features=SEX)
    ours = kernel.predict_proba(X @ X.T, sensitive_features=SEX)
    np.testing.assert_allclose(ours, linear.predict_proba(X, sensitive_features=SEX), atol=1e-3)


# Classifiers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(),
        RandomForestClassifier(30, random_state=0),
        HistGradientBoostingClassifier(max_iter=10, max_leaf_nodes=8),
        KNeighborsClassifier(15),
        GaussianNB(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
        SVC(),
        LinearSVC(),
        make_pipeline(StandardScaler(), LinearSVC()),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_every_classifier_is_equalized_at_little_cost(classifier):
    model = optimizer(classifier, max_gap=0.02, random_state=0).fit(X, Y, sensitive_features=SEX)
    assert model.rule_.record.gap_before > 0.2
    assert model.rule_.record.gap_after <= 0.02 + 1e-9
    assert model.rule_.record.cross_fitted
    chances = model.predict_proba(NEW_X, sensitive_features=NEW_SEX)[:, 1]
    assert gap(chances, NEW_SEX) < 0.15
    assert model.score(NEW_X, NEW_Y, sensitive_features=NEW_SEX) > 0.6
    assert set(model.predict(NEW_X, sensitive_features=NEW_SEX)) == {0, 1}


@pytest.mark.filterwarnings("ignore:All scores are 1")
def test_probabilities_above_1_raise_unless_caused_by_rounding():
    class Off(Spy):
        def predict_proba(self, X):
            return super().predict_proba(X) * self.factor

    x, y, groups = spied_rows()
    for factor in (1 + 1e-7, 1.01):
        Off.factor = factor
        inner = FrozenEstimator(Off().fit(x, y))
        if factor < 1.001:
            with pytest.warns(FairrampWarning, match="everyone is selected"):
                optimizer(inner, target_rate="optimal").fit(x, y, sensitive_features=groups)
        else:
            with pytest.raises(InputError, match=r"1\.01"):
                optimizer(inner).fit(x, y, sensitive_features=groups)


# Scores -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cutoff", [0.5, 0.3, 0.9])
def test_decision_functions_are_logits_and_the_cutoff_stays_a_probability(cutoff):
    inner = LinearSVC().fit(X, Y)
    model = optimizer(FrozenEstimator(inner), cutoff=cutoff, target_rate="optimal")
    model.fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    margins = inner.decision_function(NEW_X)
    rule = fit_rule(margins, NEW_SEX, scale="logit", cutoff=np.log(cutoff / (1 - cutoff)))
    assert model.rule_.cutoff == pytest.approx(rule.cutoff, abs=1e-12)
    assert model.rule_.scale == "logit"
    ours = model.predict_proba(NEW_X, sensitive_features=NEW_SEX)[:, 1]
    np.testing.assert_allclose(ours, rule.probabilities(margins, NEW_SEX), atol=1e-9)


@pytest.mark.filterwarnings("ignore:The best equal rate::")
@pytest.mark.parametrize("cutoff", [0, 1])
def test_cutoffs_that_select_nobody_or_everybody_work_for_decision_functions(cutoff):
    inner = FrozenEstimator(LinearSVC().fit(X, Y))
    model = optimizer(inner, cutoff=cutoff, target_rate="optimal").fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    assert set(model.rule_.record.rates["selection"].before) == {1.0 - cutoff}


def test_logits_and_probabilities_of_a_model_give_the_same_decisions():
    auto, proba, margin = (
        optimizer(FROZEN, predict_method=method).fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
        for method in ("auto", "predict_proba", "decision_function")
    )
    assert auto.rule_ == proba.rule_
    assert margin.rule_.scale == "logit"
    np.testing.assert_allclose(
        margin.predict_proba(X, sensitive_features=SEX), proba.predict_proba(X, sensitive_features=SEX), atol=1e-6
    )


def test_decisions_use_the_kind_of_scores_the_rule_was_fitted_on():
    model = optimizer(FROZEN, predict_method="decision_function").fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    before = model.predict_proba(X, sensitive_features=SEX)
    model.set_params(predict_method="predict_proba")
    np.testing.assert_array_equal(model.predict_proba(X, sensitive_features=SEX), before)


@pytest.mark.parametrize(
    ("classifier", "method", "sentence"),
    [
        (SVC(), "predict_proba", r"must have predict_proba .*'predict_proba'.*, and SVC does not"),
        (GaussianNB(), "decision_function", "must have decision_function .*GaussianNB does not"),
        (LinearRegression(), "auto", "must have predict_proba or decision_function .*LinearRegression does not"),
        (LogisticRegression(), "predict", "`predict_method` must be one of 'auto', 'predict_proba', 'decision_f"),
    ],
)
def test_a_classifier_without_the_requested_scores_raises(classifier, method, sentence):
    with pytest.raises(InputError, match=sentence):
        optimizer(classifier, predict_method=method).fit(X, Y, sensitive_features=SEX)


# Labels -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (Y == 1, True),
        (2 * Y - 1, 1),
        (Y + 1, 2),
        (Y.astype(float), 1.0),
        (np.where(Y, "yes", "no"), "yes"),
        (np.where(Y, "yes", "no").astype(object), "yes"),
        (list(np.where(Y, "yes", "no")), "yes"),
        (pd.Series(np.where(Y, "yes", "no")), "yes"),
        (pd.Series(np.where(Y, "yes", "no"), dtype="category"), "yes"),
        (pd.Series(Y, dtype="Int64"), 1),
        (pl.Series(np.where(Y, "yes", "no")), "yes"),
    ],
)
def test_labels_of_any_kind_give_the_same_rule(labels, positive):
    model = optimizer(random_state=0, pos_label=positive).fit(X, labels, sensitive_features=SEX)
    numbers = optimizer(random_state=0).fit(X, Y, sensitive_features=SEX)
    assert model.rule_ == numbers.rule_
    assert model.classes_[1] == positive
    answers = model.predict(X, sensitive_features=SEX)
    np.testing.assert_array_equal(answers == positive, numbers.predict(X, sensitive_features=SEX) == 1)
    assert set(answers) == set(model.classes_)
    assert model.score(X, labels, sensitive_features=SEX) == numbers.score(X, Y, sensitive_features=SEX)


def test_classifiers_may_use_string_labels():
    named = LogisticRegression(class_weight={"yes": 3, "no": 1})
    numbered = LogisticRegression(class_weight={1: 3, 0: 1})
    model = optimizer(named, pos_label="yes").fit(X, np.where(Y, "yes", "no"), sensitive_features=SEX)
    assert model.rule_ == optimizer(numbered).fit(X, Y, sensitive_features=SEX).rule_


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (np.zeros(N, dtype=int), r"`y` must have at least two classes, got one class: \[0\]"),
        (None, "requires y to be passed"),
        (Y[:-1], "inconsistent numbers of samples"),
        (X[:, 0], "Unknown label type: continuous"),
    ],
)
def test_labels_must_have_at_least_two_classes(labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        optimizer().fit(X, labels, sensitive_features=SEX)


def test_labels_unknown_to_the_model_raise():
    model = optimizer(FROZEN)
    sentence = r"`y` must contain only the classes \[0, 1\], got 'yes' in row 0"
    named = np.where(NEW_Y | (np.arange(900) == 0), "yes", "no")
    with pytest.raises(InputError, match=sentence):
        model.fit(NEW_X, named, sensitive_features=NEW_SEX)
    model.fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    with pytest.raises(InputError, match=sentence):
        model.score(NEW_X, named, sensitive_features=NEW_SEX)
    with pytest.raises(InputError, match=sentence):
        model.partial_fit(NEW_X, named, sensitive_features=NEW_SEX)


# Groups -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("columns", ["sex", ["sex"], ["race", "sex"], 3, [3], [-1, 3], np.int64(4)])
def test_columns_of_the_dataframe_equal_columns_passed_separately(library, columns):
    table = frame(library)
    chosen = columns if isinstance(columns, list) else [columns]
    names = [c if isinstance(c, str) else table.columns[c] for c in chosen]
    inside = optimizer(on_frames(), sensitive_columns=columns, cv=2).fit(table, Y)
    along = optimizer(on_frames(), cv=2).fit(table, Y, sensitive_features=table[names])
    assert inside.rule_ == along.rule_
    assert inside.rule_.columns.groups == tuple(names)
    new = frame(library, NEW_X, NEW_SEX, NEW_RACE)
    np.testing.assert_array_equal(
        inside.predict_proba(new), along.predict_proba(new, sensitive_features=new[names])
    )


def test_pandas_and_polars_give_the_same_rule_and_decisions():
    by_pandas = optimizer(on_frames(), sensitive_columns=["sex", "race"]).fit(frame("pandas"), Y)
    by_polars = optimizer(on_frames(), sensitive_columns=["sex", "race"]).fit(frame("polars"), pl.Series(Y))
    assert by_pandas.rule_ == by_polars.rule_
    assert by_pandas.rule_.groups[0] == ("f", "a")
    np.testing.assert_array_equal(
        by_pandas.predict_proba(frame("pandas")), by_polars.predict_proba(frame("polars"))
    )


@pytest.mark.parametrize("container", [np.asarray, csr_array, coo_array, np.ndarray.tolist, pd.DataFrame])
@pytest.mark.parametrize("columns", [3, [-2], [3, 4]])
def test_column_positions_equal_columns_passed_separately(container, columns):
    table = container(CODED)
    inside = optimizer(sensitive_columns=columns).fit(table, Y)
    groups = CODED[:, 3:].astype(int) if columns == [3, 4] else CODED[:, 3].astype(int)
    along = optimizer().fit(table, Y, sensitive_features=groups)
    assert decided(inside.rule_) == decided(along.rule_)
    np.testing.assert_array_equal(
        inside.predict_proba(table), along.predict_proba(table, sensitive_features=groups)
    )


def test_the_inner_classifier_still_sees_the_sensitive_columns():
    model = optimizer(sensitive_columns=3).fit(CODED, Y)
    assert model.estimator_.n_features_in_ == model.n_features_in_ == 5


@pytest.mark.parametrize("ask", ["fit", "predict", "predict_proba", "decision_function", "score", "partial_fit"])
def test_groups_must_come_from_exactly_one_place(ask):
    labels = {"y": Y} if ask in ("fit", "score", "partial_fit") else {}
    along, inside = optimizer(random_state=0), optimizer(sensitive_columns=3, random_state=0)
    if ask != "fit":
        along.fit(CODED, Y, sensitive_features=SEX)
        inside.fit(CODED, Y)
    with pytest.raises(InputError, match="groups are missing: pass `sensitive_features`, or columns of X in"):
        getattr(along, ask)(CODED, **labels)
    with pytest.raises(
        InputError, match="groups are given twice: pass either `sensitive_features` here or `sens"
    ):
        getattr(inside, ask)(CODED, **labels, sensitive_features=SEX)


@pytest.mark.parametrize(
    ("columns", "table", "sentence"),
    [
        (
            "sexx",
            frame("pandas"),
            r"names 'sexx', but X has the columns \['age', 'income', 'debt', 'sex'",
        ),
        (5, frame("polars"), "has position 5, but X has 5 columns"),
        (-6, CODED, "has position -6, but X has 5 columns"),
        (["sex", 1], CODED, "names the column 'sex', but X is of type ndarray and has no names; pass positions"),
        ([], CODED, r"must be names or positions of columns, a mask, .* or one label per row, got \[\]"),
        (1.5, CODED, r"must be names or positions of columns, .*, got 1\.5"),
        (True, CODED, "must be names or positions of columns, .*, got True"),
        ([None], CODED, r"must be names or positions of columns, .*, got \[None\]"),
        ([0, False], CODED, r"must be names or positions of columns, .*, got \[0, False\]"),
        ([True, False], CODED, "is a mask of 2 values, but X has 5 columns"),
        ([False] * 5, CODED, "must be names or positions of columns"),
        (slice(5, 9), CODED, r"selects no column of X, got slice\(5, 9, None\)"),
        (slice("sex", "race"), CODED, "names the column 'sex', but X is of type ndarray"),
        (slice("sexx", None), frame("pandas"), "names 'sexx', but X has the columns"),
        (3, CODED[:, 3], r"`X` must be two-dimensional, got shape \(1200,\)"),
        (0, CODED, "bin a continuous column first"),
    ],
)
def test_invalid_sensitive_columns_raise(columns, table, sentence):
    with pytest.raises(InputError, match=sentence):
        optimizer(sensitive_columns=columns).fit(table, Y)


def test_bad_groups_raise_before_training():
    class Untrainable(Spy):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("trained")

    for settings, groups, sentence in [
        ({}, SEX[:-1], "`sensitive_features` has 1199 rows but `X` has 1200; the lengths must match"),
        ({}, "sex", "must be a column with one label per row, got 'sex'"),
        ({"max_gap": 2}, SEX, r"`max_gap` must be between 0 and 1, got 2"),
        ({"ramp_width": -1}, SEX, "`ramp_width` must be 0 or between 1e-6 and 1e6"),
        ({"ramp": "steep"}, SEX, "`ramp` must be one of 'centered', 'paper', got 'steep'"),
        ({"cutoff": 1.5}, SEX, r"`cutoff` must be between 0 and 1, got 1\.5"),
        ({"unseen_group": "skip"}, SEX, "`unseen_group` must be one of"),
        (
            {"target_rate": "best"},
            SEX,
            "`target_rate` must be 'optimal', 'accuracy', 'balanced_accuracy', 'base_rate' or a number",
        ),
        ({"overall_rate": 0.2, "target_rate": 0.2}, SEX, "`overall_rate` and `target_rate` exclude each other"),
        ({"solver": "sgd"}, SEX, "`solver='sgd'` requires `target_rate` to be a number"),
        ({"criterion": "covariance"}, SEX, "`criterion` must be one of 'parity', 'equal_opportunity'"),
        ({"strata": "nope", "target_rate": "optimal"}, SEX, "`strata` names the column 'nope'"),
        ({"strata": 0, "target_rate": 0.5}, SEX, "'accuracy' or 'balanced_accuracy', got 0.5"),
    ]:
        with pytest.raises(InputError, match=sentence):
            optimizer(Untrainable(), **settings).fit(X, Y, sensitive_features=groups)
    with pytest.raises(InputError, match="`sample_weight` must be finite and not negative"):
        optimizer(Untrainable()).fit(X, Y, sensitive_features=SEX, sample_weight=-np.ones(N))


def test_unseen_groups_follow_the_policy():
    new = np.full(N, "x")
    model = optimizer().fit(X, Y, sensitive_features=SEX)
    with pytest.raises(
        UnseenGroupError, match=r"Groups not in the fit rows: \['x'\]; fitted groups: \['f', 'm'\]"
    ):
        model.predict(X, sensitive_features=new)
    model = optimizer(unseen_group="original").fit(X, Y, sensitive_features=SEX)
    own = model.estimator_.predict_proba(X)[:, 1] >= 0.5
    np.testing.assert_array_equal(model.predict_proba(X, sensitive_features=new)[:, 1], own)


def test_group_columns_are_matched_by_name_when_deciding():
    groups = pd.DataFrame({"sex": SEX, "race": RACE})
    model = optimizer().fit(X, Y, sensitive_features=groups)
    swapped = pl.DataFrame({"race": RACE, "sex": SEX, "age": X[:, 0]})
    np.testing.assert_array_equal(
        model.predict_proba(X, sensitive_features=swapped), model.predict_proba(X, sensitive_features=groups)
    )


# Drawing ------------------------------------------------------------------------------------------


WIDE = optimizer(FROZEN, ramp_width=0.8).fit(X, Y, sensitive_features=SEX)  # most rows are on a ramp


def draw(random_state, times=2):
    model = clone(WIDE).set_params(random_state=random_state).fit(X, Y, sensitive_features=SEX)
    return [model.predict(X, sensitive_features=SEX) for _ in range(times)]


def test_an_int_repeats_the_draws_at_every_call():
    first, second = draw(7)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, draw(np.int64(7))[0])
    chances = WIDE.predict_proba(X, sensitive_features=SEX)[:, 1]
    np.testing.assert_array_equal(first, np.random.default_rng(7).random(N) < chances)
    assert (first != draw(8)[0]).any()


@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
def test_a_generator_advances_between_calls_and_is_reproducible(source):
    first, second = draw(source(7))
    assert (first != second).any()
    np.testing.assert_array_equal(draw(source(7)), [first, second])


def test_without_a_random_state_calls_differ_and_the_global_state_is_unchanged():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = draw(None)
    assert (first != second).any()
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_decisions_match_their_probabilities():
    chances = WIDE.predict_proba(X, sensitive_features=SEX)[:, 1]
    drawn = np.mean(draw(np.random.default_rng(0), times=400), axis=0)
    error = np.sqrt(chances * (1 - chances) / 400)
    assert (drawn[error == 0] == chances[error == 0]).all()
    assert np.abs((drawn - chances)[error > 0] / error[error > 0]).max() < 5
    assert (error > 0).mean() > 0.5


KEY = "5e" * 32
IDS = np.arange(N)


@pytest.mark.parametrize("random_state", [None, 7, np.random.default_rng(7)])
def test_ids_and_a_key_repeat_each_persons_draw(random_state):
    model = clone(WIDE).set_params(random_state=random_state).fit(X, Y, sensitive_features=SEX)
    answers = model.predict(X, sensitive_features=SEX, ids=IDS, key=KEY)
    chances = model.predict_proba(X, sensitive_features=SEX)[:, 1]
    np.testing.assert_array_equal(answers, draws(IDS, KEY) < chances)
    some = np.random.default_rng(0).permutation(N)[:100]
    np.testing.assert_array_equal(
        model.predict(X[some], sensitive_features=SEX[some], ids=IDS[some], key=KEY), answers[some]
    )
    assert (model.predict(X, sensitive_features=SEX, ids=IDS, key="0" * 64) != answers).any()


def test_ids_and_key_belong_together():
    for asked, sentence in [
        ({"ids": IDS}, "require both `ids` and `key`; `key` is missing"),
        ({"key": KEY}, "require both `ids` and `key`; `ids` is missing"),
        ({"ids": IDS[1:], "key": KEY}, "`ids` has 1199 rows but `X` has 1200"),
        ({"ids": IDS, "key": "secret"}, "`key` must be 64 lowercase hexadecimal characters"),
        ({"ids": IDS + 0.5, "key": KEY}, "`ids` must be strings or integers"),
    ]:
        with pytest.raises(InputError, match=sentence):
            WIDE.predict(X, sensitive_features=SEX, **asked)


def test_ids_pass_through_a_pipeline(routing):
    pipeline = make_pipeline(StandardScaler(), optimizer(ramp_width=0.5)).fit(X, Y, sensitive_features=SEX)
    answers = pipeline.predict(X, sensitive_features=SEX, ids=IDS, key=KEY)
    scaled = pipeline[0].transform(X)
    np.testing.assert_array_equal(answers, pipeline[-1].predict(scaled, sensitive_features=SEX, ids=IDS, key=KEY))


@pytest.mark.parametrize("bad", [-1, 1.5, "seed", True])
def test_an_invalid_random_state_raises(bad):
    with pytest.raises(InputError, match="`random_state` must be a non-negative integer"):
        draw(bad)


# Ranking ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ramp", ["centered", "paper"])
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_the_decision_function_is_the_distance_to_the_groups_threshold(method, ramp):
    model = optimizer(FROZEN, predict_method=method, ramp=ramp, ramp_width=0.1)
    model.fit(NEW_X, NEW_Y, sensitive_features=NEW_RACE)
    margins = model.decision_function(X, sensitive_features=RACE)
    thresholds = dict(zip(model.rule_.groups, model.rule_.thresholds, strict=True))
    expected = MODEL.predict_proba(X)[:, 1] - np.array([thresholds[race] for race in RACE])
    np.testing.assert_allclose(margins, expected, rtol=0, atol=1e-12)
    assert len(set(thresholds.values())) == 3
    chances = model.predict_proba(X, sensitive_features=RACE)[:, 1]
    level = {"centered": 0.5, "paper": 0.0}[ramp]
    assert (chances[margins > 1e-9] > level).all()
    assert (chances[margins < -1e-9] <= level).all()


def test_the_decision_function_and_the_probabilities_rank_rows_alike():
    for width in (0.0, 0.01, 0.8):
        model = optimizer(FROZEN, ramp_width=width).fit(X, Y, sensitive_features=SEX)
        margins = model.decision_function(NEW_X, sensitive_features=NEW_SEX)
        chances = model.predict_proba(NEW_X, sensitive_features=NEW_SEX)[:, 1]
        assert (np.diff(chances[np.argsort(margins)]) >= -1e-12).all()


def test_ranking_metrics_use_the_distance_to_the_threshold():
    model = optimizer(sensitive_columns=3).fit(CODED, Y)
    margins = model.decision_function(CODED)
    assert get_scorer("roc_auc")(model, CODED, Y) == roc_auc_score(Y, margins)
    assert roc_auc_score(Y, margins) > roc_auc_score(Y, model.predict_proba(CODED)[:, 1]) + 0.02  # nearly 0 or 1


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_an_unseen_group_has_the_pooled_threshold_or_the_cutoff(method):
    for policy, threshold in (("pooled", None), ("original", 0.3)):
        model = optimizer(FROZEN, unseen_group=policy, cutoff=0.3, predict_method=method)
        rule = model.fit(X, Y, sensitive_features=SEX).rule_
        margins = model.decision_function(NEW_X, sensitive_features=np.where(NEW_SEX == "f", "f", "x"))
        known = dict(zip(rule.groups, rule.thresholds, strict=True))
        other = rule.threshold_of(rule.pooled) if threshold is None else threshold
        expected = MODEL.predict_proba(NEW_X)[:, 1] - np.where(NEW_SEX == "f", known["f"], other)
        np.testing.assert_allclose(margins, expected, rtol=0, atol=1e-12)
    with pytest.raises(UnseenGroupError):
        optimizer(FROZEN).fit(X, Y, sensitive_features=SEX).decision_function(X, sensitive_features=RACE)


def test_within_strata_the_threshold_is_that_of_group_and_stratum():
    model = optimizer(strata=4).fit(CODED, Y, sensitive_features=SEX)
    margins = model.decision_function(CODED, sensitive_features=SEX)
    thresholds = dict(zip(model.rule_.groups, model.rule_.thresholds, strict=True))
    cells = zip(CODED[:, 4].astype(int).tolist(), SEX.tolist(), strict=True)
    expected = model.estimator_.predict_proba(CODED)[:, 1] - np.array([thresholds[cell] for cell in cells])
    np.testing.assert_allclose(margins, expected, rtol=0, atol=1e-12)


# Scoring ------------------------------------------------------------------------------------------


def test_score_is_the_expected_accuracy_of_the_draws():
    drawn = draw(np.random.default_rng(1), times=400)
    expected = WIDE.score(X, Y, sensitive_features=SEX)
    assert expected == WIDE.score(X, Y, sensitive_features=SEX)
    assert np.mean([(answers == Y).mean() for answers in drawn]) == pytest.approx(expected, abs=0.003)


def test_integer_weights_score_like_repeated_rows():
    weights = np.random.default_rng(3).integers(0, 4, N)
    again = np.repeat(np.arange(N), weights)
    weighted = WIDE.score(X, Y, sensitive_features=SEX, sample_weight=weights)
    assert weighted == pytest.approx(WIDE.score(X[again], Y[again], sensitive_features=SEX[again]), abs=1e-12)
    assert weighted != WIDE.score(X, Y, sensitive_features=SEX)


def test_the_default_target_is_the_most_accurate_on_the_fit_rows():
    best = optimizer(FROZEN).fit(X, Y, sensitive_features=SEX)
    for rate in [*np.linspace(0.05, 0.95, 19), "optimal", "base_rate"]:
        other = optimizer(FROZEN, target_rate=rate).fit(X, Y, sensitive_features=SEX)
        assert other.score(X, Y, sensitive_features=SEX) <= best.score(X, Y, sensitive_features=SEX) + 0.005


# Weights ------------------------------------------------------------------------------------------


def test_weights_reach_the_rule_and_every_inner_fit():
    x, y, groups = spied_rows()
    weights = 1.0 + x[:, 0]
    model = optimizer(Spy(), target_rate="optimal").fit(x, y, sensitive_features=groups, sample_weight=weights)
    rule = fit_rule(0.1 + 0.8 * x[:, 0], groups, sample_weight=weights)
    assert model.rule_ == replace(rule, record=replace(rule.record, cross_fitted=True))
    np.testing.assert_array_equal(model.estimator_.weights_, weights)
    heavy = optimizer().fit(X, Y, sensitive_features=SEX, sample_weight=1 + 5 * Y)
    np.testing.assert_array_equal(
        heavy.estimator_.coef_, LogisticRegression().fit(X, Y, sample_weight=1.0 + 5 * Y).coef_
    )


@pytest.mark.parametrize("classifier", [KNeighborsClassifier(), make_pipeline(StandardScaler(), GaussianNB())])
def test_a_classifier_without_weights_warns_and_the_rule_still_uses_them(classifier):
    with pytest.warns(
        FairrampWarning, match=f"{type(classifier).__name__} does not accept `sample_weight`, so only the rule"
    ):
        model = optimizer(classifier).fit(X, Y, sensitive_features=SEX, sample_weight=1 + Y)
    assert model.rule_.record.weighted


def test_a_pipeline_inside_gets_its_weights_by_routing(routing):
    inner = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False),
        LogisticRegression().set_fit_request(sample_weight=True),
    )
    model = optimizer(inner).fit(X, Y, sensitive_features=SEX, sample_weight=1 + 5 * Y)
    plain = optimizer(inner).fit(X, Y, sensitive_features=SEX)
    assert model.estimator_[-1].intercept_ > plain.estimator_[-1].intercept_ + 1


def test_routing_respects_the_inner_classifiers_weight_request(routing):
    with pytest.raises(UnsetMetadataPassedError, match=r"LogisticRegression\.fit"):
        optimizer().fit(X, Y, sensitive_features=SEX, sample_weight=1 + Y)
    unweighted = LogisticRegression().set_fit_request(sample_weight=False)
    model = optimizer(unweighted).fit(X, Y, sensitive_features=SEX, sample_weight=1 + Y)
    np.testing.assert_array_equal(model.estimator_.coef_, MODEL.coef_)
    assert model.rule_.record.weighted


# More rows ----------------------------------------------------------------------------------------


PARTS = np.array_split(np.arange(900), [100, 101, 500])
WEIGHTS = np.random.default_rng(4).uniform(0.5, 2, 900)


@pytest.mark.filterwarnings("ignore:Groups with fewer")
@pytest.mark.filterwarnings("ignore:There is only one group")
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("target_rate", ["accuracy", "optimal", "base_rate", 0.4])
@pytest.mark.parametrize(
    "groups",
    [NEW_SEX, pd.Series(NEW_SEX, name="sex"), pl.DataFrame({"sex": NEW_SEX, "race": NEW_RACE}), NEW_RACE == "a"],
    ids=["array", "series", "frame", "bools"],
)
@pytest.mark.parametrize("inner", [FROZEN, FrozenEstimator(LinearSVC().fit(X, Y))], ids=["proba", "margin"])
def test_partial_fits_equal_one_fit(inner, groups, target_rate, weights):
    whole = optimizer(inner, target_rate=target_rate, max_gap=0.02)
    whole.fit(NEW_X, NEW_Y, sensitive_features=groups, sample_weight=weights)
    parts = clone(whole)
    for rows in PARTS:
        some = None if weights is None else weights[rows]
        parts.partial_fit(NEW_X[rows], NEW_Y[rows], sensitive_features=groups[rows], sample_weight=some)
    assert parts.rule_ == whole.rule_


@pytest.mark.parametrize("classes", [None, [0, 1], np.array([1, 0]), [False, True], (0.0, 1.0)])
@pytest.mark.parametrize(
    ("inner", "settings"),
    [(LogisticRegression(), {}), (FROZEN, {}), (LogisticRegression(), {"solver": "sgd", "target_rate": 0.4})],
)
def test_the_first_partial_fit_is_a_fit(inner, settings, classes):
    fitted = optimizer(inner, **settings).fit(X, Y, sensitive_features=SEX, sample_weight=1.0 + Y)
    partial = optimizer(inner, **settings)
    assert partial.partial_fit(X, Y, classes, sensitive_features=SEX, sample_weight=1.0 + Y) is partial
    assert partial.rule_ == fitted.rule_
    np.testing.assert_array_equal(partial.estimator_.predict_proba(NEW_X), fitted.estimator_.predict_proba(NEW_X))
    for model in (partial, fitted):
        model.partial_fit(NEW_X, NEW_Y, classes=classes, sensitive_features=NEW_SEX)
    assert partial.rule_ == fitted.rule_


def test_classes_of_a_partial_fit_must_be_those_of_y():
    for inner, known in ((LogisticRegression(), r"\['no', 'yes'\]"), (FROZEN, r"\[0, 1\]")):
        y, favorable = (Y, 1) if inner is FROZEN else (np.where(Y, "yes", "no"), "yes")
        model = optimizer(inner, pos_label=favorable)
        for classes in ([0, 1, 2], ["yes"], ["yes", "maybe"], [[2]]):
            with pytest.raises(InputError, match=rf"`classes` must be the two classes of `y`, {known}, got \["):
                model.partial_fit(X, y, classes=classes, sensitive_features=SEX)
            assert not hasattr(model, "rule_")
        rule = model.partial_fit(X, y, classes=np.unique(y), sensitive_features=SEX).rule_
        with pytest.raises(InputError, match="`classes` must be the two classes"):
            model.partial_fit(X, y, classes=[5, 6], sensitive_features=SEX)
        assert model.rule_ is rule


def test_the_first_partial_fit_needs_both_classes():
    with pytest.raises(InputError, match=r"`y` must have at least two classes, got one class: \[1\]"):
        optimizer().partial_fit(X, np.ones(N, int), classes=[0, 1], sensitive_features=SEX)
    with pytest.raises(InputError, match="requires y to be passed"):
        optimizer().partial_fit(X, sensitive_features=SEX)


def test_partial_fit_uses_the_final_model_without_refitting_it():
    model = optimizer().fit(X, Y, sensitive_features=SEX)
    inner, coefficients = model.estimator_, model.estimator_.coef_.copy()
    old = cross_val_predict(LogisticRegression(), X, Y, method="predict_proba")[:, 1]
    assert model.partial_fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX) is model
    scores = np.concatenate([old, inner.predict_proba(NEW_X)[:, 1]])
    rule = fit_rule(scores, np.append(SEX, NEW_SEX), np.append(Y, NEW_Y), target_rate="accuracy")
    assert model.rule_ == replace(rule, record=replace(rule.record, cross_fitted=True))
    assert model.estimator_ is inner
    np.testing.assert_array_equal(inner.coef_, coefficients)


def test_partial_fit_needs_labels_only_if_the_target_does():
    model = optimizer(target_rate="optimal").fit(X, Y, sensitive_features=SEX)
    labeled = clone(model).fit(X, Y, sensitive_features=SEX)
    model.partial_fit(NEW_X, sensitive_features=NEW_SEX)
    assert model.rule_ == labeled.partial_fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX).rule_
    model = optimizer().fit(X, Y, sensitive_features=SEX)
    before = model.rule_
    with pytest.raises(InputError, match="`target_rate='accuracy'` requires `y`"):
        model.partial_fit(NEW_X, sensitive_features=NEW_SEX)
    assert model.rule_ is before


def test_partial_fit_may_add_groups_and_weights():
    model = optimizer().fit(X, Y, sensitive_features=SEX)
    model.partial_fit(NEW_X, NEW_Y, sensitive_features=np.full(900, "x"), sample_weight=WEIGHTS)
    assert model.rule_.groups == ("f", "m", "x")
    assert model.rule_.record.weighted
    model.partial_fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    assert sum(model.rule_.record.rows) == N + 1_800


def test_partial_fit_requires_the_same_group_columns():
    model = optimizer().fit(X, Y, sensitive_features=pd.DataFrame({"sex": SEX, "race": RACE}))
    with pytest.raises(InputError, match=r"must have the 2 columns \['sex', 'race'\] of the earlier rows, got 1"):
        model.partial_fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    other = pl.DataFrame({"race": NEW_RACE, "sex": NEW_SEX})
    by_name = model.partial_fit(NEW_X, NEW_Y, sensitive_features=other)
    assert len(by_name.rule_.groups) == 6


def test_partial_fit_does_not_mix_booleans_and_numbers():
    model = optimizer(FROZEN, target_rate="optimal").fit(X, Y, sensitive_features=SEX == "f")
    with pytest.raises(InputError, match="mixes booleans and numbers"):
        model.partial_fit(NEW_X, NEW_Y, sensitive_features=(NEW_SEX == "f").astype(int))


def test_partial_fit_accepts_missing_tuple_labels():
    pairs = np.fromiter(zip(SEX, RACE, strict=True), dtype=object, count=N)
    some = pairs.copy()
    some[:100] = None
    model = optimizer(FROZEN, target_rate="optimal").fit(X, Y, sensitive_features=pairs)
    assert None in model.partial_fit(X, Y, sensitive_features=some).rule_.groups


def test_refitting_discards_earlier_rows():
    model = optimizer().fit(X, Y, sensitive_features=SEX).partial_fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    again = model.fit(X, Y, sensitive_features=SEX).rule_
    assert again == optimizer().fit(X, Y, sensitive_features=SEX).rule_


def test_arrays_may_change_after_the_fit():
    x, y, groups, weights = NEW_X.copy(), NEW_Y.copy(), NEW_SEX == "f", WEIGHTS.copy()
    model = optimizer(FROZEN).fit(x, y, sensitive_features=groups, sample_weight=weights)
    x[:], y[:], groups[:], weights[:] = 0, 0, 0, 1
    more = {"sensitive_features": SEX == "f", "sample_weight": np.ones(N)}
    untouched = optimizer(FROZEN).fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX == "f", sample_weight=WEIGHTS)
    assert model.partial_fit(X, Y, **more).rule_ == untouched.partial_fit(X, Y, **more).rule_


def test_calls_before_fit_raise():
    for ask in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(optimizer(), ask)(X, sensitive_features=SEX)
    with pytest.raises(NotFittedError):
        optimizer(FrozenEstimator(LogisticRegression())).fit(X, Y, sensitive_features=SEX)


# Pipelines, search and validation, as scikit-learn users write them -------------------------------


def test_a_pipeline_forwards_groups(routing):
    pipeline = Pipeline([("scale", StandardScaler()), ("fair", optimizer(random_state=0, max_gap=0.05))])
    pipeline.fit(X, Y, sensitive_features=SEX)
    scaler = StandardScaler().fit(X)
    alone = optimizer(random_state=0, max_gap=0.05).fit(scaler.transform(X), Y, sensitive_features=SEX)
    assert pipeline[-1].rule_ == alone.rule_
    scaled = scaler.transform(NEW_X)
    for ask in ("predict", "predict_proba", "decision_function"):
        ours = getattr(pipeline, ask)(NEW_X, sensitive_features=NEW_SEX)
        np.testing.assert_array_equal(ours, getattr(alone, ask)(scaled, sensitive_features=NEW_SEX))
    score = pipeline.score(NEW_X, NEW_Y, sensitive_features=NEW_SEX)
    assert score == alone.score(scaled, NEW_Y, sensitive_features=NEW_SEX)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_cross_validation_and_grid_search_forward_groups(routing, library):
    table = frame(library)
    groups = table[["sex", "race"]]
    model = optimizer(on_frames(), unseen_group="pooled", cv=2)
    scores = cross_val_score(model, table, Y, cv=3, params={"sensitive_features": groups})
    assert scores.min() > 0.65
    search = GridSearchCV(model, {"max_gap": [0.0, 0.1], "estimator__logisticregression__C": [0.1, 1.0]}, cv=3)
    search.fit(table, Y, sensitive_features=groups)
    assert search.best_estimator_.rule_.columns.groups == ("sex", "race")
    assert search.best_score_ > 0.65
    best = search.best_estimator_
    assert search.score(table, Y, sensitive_features=groups) == best.score(table, Y, sensitive_features=groups)


def test_weights_are_forwarded_to_fit_and_score(routing):
    inner = LogisticRegression().set_fit_request(sample_weight=True)
    params = {"sensitive_features": SEX, "sample_weight": 1.0 + Y}
    weighted = cross_val_score(optimizer(inner), X, Y, cv=3, params=params)
    plain = cross_val_score(optimizer(inner), X, Y, cv=3, params={"sensitive_features": SEX})
    assert (weighted != plain).all()


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8),
    reason="scikit-learn before 1.8 does not pass groups on to the score of a pipeline",
)
def test_a_search_over_a_pipeline_forwards_groups(routing):
    pipeline = make_pipeline(StandardScaler(), optimizer(cv=3))
    grid = {"randomizedthresholdoptimizer__max_gap": [0.0, 0.3]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, Y, sensitive_features=SEX)
    assert search.best_params_ == {"randomizedthresholdoptimizer__max_gap": 0.3}  # fairness costs accuracy


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_sensitive_columns_work_in_cross_validation_and_search(library, enabled):
    table = frame(library)
    model = optimizer(on_frames(), sensitive_columns=["sex"], cv=2, random_state=0)
    with sklearn.config_context(enable_metadata_routing=enabled):
        assert cross_val_score(model, table, Y, cv=3).min() > 0.65
        assert cross_val_score(model, table, Y, cv=3, scoring="balanced_accuracy").min() > 0.6
        results = cross_validate(model, table, Y, cv=3, scoring=["accuracy", "roc_auc"])
        assert results["test_roc_auc"].min() > 0.6
        answers = cross_val_predict(model, table, Y, cv=3)
        assert gap(answers, SEX) < 0.12
        chances = cross_val_predict(model, table, Y, cv=3, method="predict_proba")
        assert gap(chances[:, 1], SEX) < 0.12
        search = GridSearchCV(model, {"max_gap": [0.0, 0.1]}, cv=3, scoring="accuracy").fit(table, Y)
        new = frame(library, NEW_X, NEW_SEX, NEW_RACE)
        np.testing.assert_array_equal(search.predict(new), search.best_estimator_.predict(new))
        np.testing.assert_array_equal(search.predict_proba(new), search.best_estimator_.predict_proba(new))


def test_named_columns_survive_pipeline_steps_that_keep_names():
    keep = ColumnTransformer([("scale", StandardScaler(), NAMES)], remainder="passthrough")
    keep.set_params(verbose_feature_names_out=False).set_output(transform="pandas")
    table = frame("pandas").assign(sex=SEX == "m", race=np.searchsorted(["a", "b", "c"], RACE))
    pipeline = make_pipeline(keep, optimizer(sensitive_columns=["sex", "race"])).fit(table, Y)
    assert pipeline[-1].rule_.groups[0] == (False, 0)
    assert pipeline.predict(table).shape == (N,)


def test_without_routing_the_missing_groups_are_explained():
    with pytest.raises(InputError, match=r"only after sklearn\.set_config\(enable_metadata_routing=True\)"):
        cross_val_score(optimizer(), X, Y, error_score="raise")


# As an estimator ----------------------------------------------------------------------------------


def test_the_constructor_takes_settings_by_name_with_these_defaults():
    assert optimizer(FROZEN).get_params(deep=False) == {
        "estimator": FROZEN,
        "max_gap": None,
        "min_ratio": None,
        "pos_label": None,
        "overall_rate": None,
        "combine": "intersections",
        "ramp_width": 0.01,
        "ramp": "centered",
        "target_rate": None,
        "costs": None,
        "cutoff": 0.5,
        "solver": "exact",
        "criterion": "parity",
        "small_groups": "alone",
        "confidence": None,
        "confidence_limit": "estimated",
        "strata": None,
        "cv": 5,
        "predict_method": "auto",
        "sensitive_columns": None,
        "drop_sensitive": False,
        "group_estimator": None,
        "unseen_group": "error",
        "random_state": None,
    }
    with pytest.raises(TypeError):
        RandomizedThresholdOptimizer(LogisticRegression(), 0.1)


def test_fitting_never_changes_a_constructor_argument():
    inner, cv, columns, source = LogisticRegression(), StratifiedKFold(3), ["sex"], np.random.default_rng(0)
    model = optimizer(make_pipeline(on_frames()[0], inner), cv=cv, sensitive_columns=columns, random_state=source)
    before = model.get_params(deep=False)
    model.fit(frame("pandas"), Y).partial_fit(frame("pandas"), Y).predict(frame("pandas"))
    after = model.get_params(deep=False)
    assert all(after[name] is before[name] for name in before)
    assert not hasattr(inner, "coef_")
    assert columns == ["sex"]


def test_a_clone_is_unfitted_and_keeps_every_setting():
    model = optimizer(max_gap=0.1, cv=3, random_state=1).fit(X, Y, sensitive_features=SEX)
    twin = clone(model)
    assert not hasattr(twin, "rule_")
    assert repr(twin) == repr(model)
    assert twin.fit(X, Y, sensitive_features=SEX).rule_ == model.rule_
    twin.set_params(estimator__C=0.5, max_gap=0.2)
    assert (twin.estimator.C, twin.max_gap) == (0.5, 0.2)
    assert clone(optimizer(FROZEN)).estimator is FROZEN


def test_a_pickle_decides_and_keeps_learning_identically():
    model = optimizer(random_state=1).fit(X, Y, sensitive_features=SEX)
    twin = pickle.loads(pickle.dumps(model))
    assert twin.rule_ == model.rule_
    ours, theirs = (m.predict(NEW_X, sensitive_features=NEW_SEX) for m in (model, twin))
    np.testing.assert_array_equal(ours, theirs)
    ours, theirs = (m.partial_fit(NEW_X, NEW_Y, sensitive_features=NEW_SEX) for m in (model, twin))
    assert ours.rule_ == theirs.rule_


def test_tags_are_those_of_the_inner_classifier():
    tags = get_tags(optimizer())
    assert is_classifier(optimizer())
    assert tags.target_tags.required
    assert tags.input_tags.sparse
    assert not tags.input_tags.allow_nan
    assert get_tags(optimizer(HistGradientBoostingClassifier())).input_tags.allow_nan
    assert get_tags(optimizer(SVC(kernel="precomputed"))).input_tags.pairwise


def test_feature_names_are_those_of_the_inner_classifier():
    model = optimizer().fit(pd.DataFrame(X, columns=NAMES), Y, sensitive_features=SEX)
    assert model.n_features_in_ == 3
    assert list(model.feature_names_in_) == NAMES
    model.fit(X, Y, sensitive_features=SEX)
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(ValueError, match="X has 1 features, but LogisticRegression is expecting 3 features"):
        model.predict(X[:, :1], sensitive_features=SEX)
    x, y, groups = spied_rows()
    model = optimizer(Spy(), target_rate=0.3).fit(x, y, sensitive_features=groups)
    assert not hasattr(model, "n_features_in_")


def test_html_representation_works():
    model = optimizer(make_pipeline(StandardScaler(), LogisticRegression()), max_gap=0.1)
    assert "RandomizedThresholdOptimizer" in model._repr_html_()
    assert "LogisticRegression" in model.fit(X, Y, sensitive_features=SEX)._repr_html_()
    assert "max_gap=0.1" in repr(model)


# scikit-learn's own checks ------------------------------------------------------------------------


class Negative:
    """Whether the first column is negative; the checks' random floats are not valid labels."""

    def __call__(self, X):
        table = X.toarray() if issparse(X) else np.asarray(X)
        return np.strings.startswith(table[:, :1].astype(str), "-").any(axis=1, keepdims=True)

    def __repr__(self):  # part of the tests' names, which must not change between processes
        return "Negative()"


CHECKED = {"sensitive_columns": Negative(), "unseen_group": "pooled", "random_state": 0}
#: Settings with which the checks also use more than two classes. These depend on the groups, so rates that are
#: equal are not as accurate as the checks require.
SEVERAL = {**CHECKED, "unseen_group": "original", "ramp_width": 1e-6, "max_gap": 0.4}
#: The guide page lists them, too.
EXPECTED_FAILURES = {
    "check_classifiers_train": "predict draws on the ramp, so decisions may differ from the larger probability"
}


@pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")
@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix")
# The oldest scikit-learn checks `partial_fit` with ten rows.
@pytest.mark.filterwarnings("ignore:The least populated class in y has only")
@parametrize_with_checks(
    [
        optimizer(**CHECKED),
        optimizer(**CHECKED, ramp_width=0.0),
        optimizer(**SEVERAL),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES if estimator.ramp_width > 1e-6 else {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_guide_lists_the_checks_that_fail():
    page = (Path(__file__).parents[1] / "docs/guide/scikit-learn.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(check_(?!estimator`)\w+)`", page)) == set(EXPECTED_FAILURES)


def test_costs_and_balanced_accuracy_reach_the_rule():
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 4_000)
    x = rng.normal(size=(4_000, 3)) + 0.4 * sex[:, None]
    y = x.sum(axis=1) + rng.normal(size=4_000) > 1
    frozen = FrozenEstimator(LogisticRegression().fit(x[:2_000], y[:2_000]))
    rest, groups = x[2_000:], sex[2_000:]
    for settings in ({"costs": (5, 1)}, {"target_rate": "balanced_accuracy"}):
        model = RandomizedThresholdOptimizer(frozen, max_gap=0.02, **settings)
        model.fit(rest, y[2_000:], sensitive_features=groups)
        scores = frozen.predict_proba(rest)[:, 1]
        rule = fit_rule(scores, groups, y[2_000:], max_gap=0.02, **({"target_rate": "accuracy"} | settings))
        assert model.rule_.thresholds == pytest.approx(rule.thresholds, abs=1e-12)


def test_decision_function_of_a_constant_probability_is_that_probability_minus_one_half():
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 3_000)
    x = rng.normal(size=(3_000, 3)) + sex[:, None] * [1, 0, 0]
    y = np.where(sex == 1, x.sum(axis=1) + rng.normal(size=3_000) > 1, rng.random(3_000) < 0.3).astype(int)
    model = RandomizedThresholdOptimizer(LogisticRegression(), criterion="equalized_odds", max_gap=0.2)
    model.fit(x, y, sensitive_features=sex)
    flat, sloping = model.rule_.ramps
    assert flat.is_constant
    assert not sloping.is_constant
    found = model.decision_function(x, sensitive_features=sex)
    chances = model.predict_proba(x, sensitive_features=sex)[:, 1]
    assert found[sex == 0] == pytest.approx(chances[sex == 0] - 0.5)
    assert ((found > 0) == (chances > 0.5))[sex == 1].all()
