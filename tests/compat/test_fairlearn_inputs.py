"""What Fairlearn accepts is accepted, under the same names; what it refuses is refused with its words."""
# ruff: noqa: N803, N806 -- scikit-learn's name is X

import datetime
import re

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import fairramp
from fairramp import InputError
from fairramp.compat.fairlearn import ThresholdOptimizer

pd = pytest.importorskip("pandas", reason="pandas is not installed")
peer = pytest.importorskip("fairlearn.postprocessing", reason="Fairlearn is not installed")


def fit(small, estimator=None, groups=None, kind=ThresholdOptimizer, **options):
    X, y, sex = small
    model = LogisticRegression() if estimator is None else estimator
    return kind(estimator=model, **options).fit(X, y, sensitive_features=sex if groups is None else groups)


# Groups -------------------------------------------------------------------------------------------

OLD = np.arange(600) % 5 > 1
FORMS = {
    "text": np.where(OLD, "a", "b"),
    "numbers": np.where(OLD, 3, 10),
    "booleans": OLD,
    "whole floats": np.where(OLD, 1.0, 2.0),
    "fractions": np.where(OLD, 0.5, 1.5),
    "bytes": np.where(OLD, b"a", b"b"),
    "a list": np.where(OLD, "a", "b").tolist(),
    "one column": np.where(OLD, "a", "b")[:, None],
    "lists of one": [[v] for v in np.where(OLD, "a", "b").tolist()],
    "intervals": pd.cut(pd.Series(np.where(OLD, 60, 20)), [0, 30, 100]),
    "a list of intervals": pd.cut(pd.Series(np.where(OLD, 60, 20)), [0, 30, 100]).tolist(),
    "categories": pd.Series(np.where(OLD, "a", "b")).astype("category"),
    "timestamps": pd.Series(pd.to_datetime(np.where(OLD, "2020-01-01", "2021-05-01 12:30"), format="ISO8601")),
    "datetime64": np.where(OLD, np.datetime64("2020-01-01"), np.datetime64("2021-05-01")),
    "dates": [datetime.date(2020, 1, 1) if old else datetime.date(2021, 1, 1) for old in OLD],
    "two columns": pd.DataFrame({"old": OLD, "odd": np.arange(600) % 2}),
    "commas and backslashes": pd.DataFrame({"a": np.where(OLD, "x, y", "\\"), "b": np.where(OLD, ",", "z")}),
    "two columns of floats": pd.DataFrame({"a": np.where(OLD, 1.0, 0.0), "b": np.arange(600) % 2 + 0.5}),
    "intervals and text": pd.DataFrame({"a": pd.cut(np.where(OLD, 60, 20), [0, 30, 100]), "b": "x"}),
    "lists of two": [["a" if old else "b", i % 2] for i, old in enumerate(OLD)],
    "tuples": [("a" if old else "b", "u" if i % 2 else "v") for i, old in enumerate(OLD)],
    "a table": np.array([["a" if old else "b", "u" if i % 2 else "v"] for i, old in enumerate(OLD)]),
}


@pytest.mark.filterwarnings("ignore:Series.values returning an object-dtype")  # in Fairlearn
@pytest.mark.parametrize("name", FORMS)
def test_groups_of_every_kind_have_the_keys_of_fairlearn(small, name):
    X, form = small[0], FORMS[name]
    ours, theirs = (fit(small, groups=form, kind=kind) for kind in (ThresholdOptimizer, peer.ThresholdOptimizer))
    keys = [list(post.interpolated_thresholder_.interpolation_dict) for post in (ours, theirs)]
    assert sorted(keys[0], key=str) == sorted(keys[1], key=str)
    chances = ours._pmf_predict(X, sensitive_features=form)[:, 1]
    # Alike groups get alike decisions, whatever they are called.
    plain = pd.DataFrame(form if not isinstance(form, pd.DataFrame) else form.astype(str)).astype(str)
    plain = plain.agg("/".join, axis=1).to_numpy()
    expected = fit(small, groups=plain)._pmf_predict(X, sensitive_features=plain)[:, 1]
    np.testing.assert_allclose(chances, expected, atol=1e-9)


def test_equal_groups_in_another_form_are_the_same_groups(small):
    X = small[0]
    pairs = [
        (OLD, OLD.astype(int)),
        (OLD.astype(int), OLD),
        (OLD.astype(int), OLD.astype(float)),
        (FORMS["timestamps"], FORMS["timestamps"].tolist()),
        (FORMS["timestamps"], FORMS["timestamps"].to_numpy()),
        (FORMS["intervals"], FORMS["a list of intervals"]),
        (FORMS["two columns"], FORMS["two columns"].astype(int)),
    ]
    for first, second in pairs:
        post = fit(small, groups=first)
        np.testing.assert_array_equal(
            post._pmf_predict(X, sensitive_features=second), post._pmf_predict(X, sensitive_features=first)
        )


def test_a_part_of_the_rows_is_decided_like_all(small):
    X = small[0]
    for name, form in FORMS.items():
        post = fit(small, groups=form)
        some = form[:1] if isinstance(form, list | np.ndarray) else form.iloc[:1]
        one = post._pmf_predict(X[:1], sensitive_features=some)
        np.testing.assert_array_equal(one, post._pmf_predict(X, sensitive_features=form)[:1], err_msg=name)


def test_the_rule_names_intersections_by_tuples_and_unusual_values_by_text(small):
    X = small[0]
    table = FORMS["two columns"]
    post = fit(small, groups=table)
    assert post.rule_.groups == ((False, 0), (False, 1), (True, 0), (True, 1))
    values = post.estimator_.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(
        post.rule_.probabilities(values, table), post._pmf_predict(X, sensitive_features=table)[:, 1]
    )
    assert fit(small, groups=FORMS["intervals"]).rule_.groups == ("(0, 30]", "(30, 100]")
    assert fit(small, groups=FORMS["timestamps"]).rule_.groups == ("2020-01-01", "2021-05-01T12:30:00")
    assert fit(small, groups=FORMS["fractions"]).rule_.groups == ("0.5", "1.5")


def test_missing_values_are_a_group_where_fairlearn_raises(small):
    X = small[0]
    with pytest.raises(ValueError, match="NaN"):
        fit(small, groups=np.where(OLD, 0.5, np.nan), kind=peer.ThresholdOptimizer)
    for form in (np.where(OLD, 0.5, np.nan), pd.Series(np.where(OLD, "a", None), dtype=object)):
        post = fit(small, groups=form)
        assert None in post.rule_.groups
        assert post._pmf_predict(X, sensitive_features=form).shape == (600, 2)


def test_unseen_group_raises_where_fairlearn_silently_returns_0(small):
    X, _, sex = small
    with pytest.raises(fairramp.UnseenGroupError, match="Other"):
        fit(small).predict(X, sensitive_features=sex.replace("Male", "Other"))


def test_rows_of_different_lengths_raise(small):
    with pytest.raises(InputError, match="rows of different lengths"):
        fit(small, groups=[["a", "b"], ["a"]] * 300)


# Labels, X and the model --------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")  # by scikit-learn, as with Fairlearn
@pytest.mark.parametrize("form", [list, np.array, lambda y: y.astype(bool), lambda y: y.to_frame(), pd.Series])
def test_label_containers_are_interchangeable(small, form):
    X, y, sex = small
    model = ThresholdOptimizer(estimator=LogisticRegression()).fit(X, form(y), sensitive_features=sex)
    assert model.rule_ == fit(small).rule_


def test_the_model_gets_x_unchanged_and_labels_as_integers(small):
    class Seen(BaseEstimator):
        def fit(self, X, y, **more):
            self.seen_ = X, y, more
            return "not the model"  # as some libraries do

        def predict(self, X):
            return X["logit"]

    X, y, sex = small
    for labels, kind in ((y.astype(float), pd.Series), (y.tolist(), list), (y.to_numpy(), np.ndarray)):
        post = ThresholdOptimizer(estimator=Seen()).fit(X, labels, sensitive_features=sex, epochs=3)
        seen, targets, more = post.estimator_.seen_
        assert seen is X
        assert isinstance(targets, kind)
        assert np.asarray(targets).dtype.kind == "i"
        assert more == {"epochs": 3}


@pytest.mark.parametrize("form", [list, np.array, pd.Series, lambda v: pd.DataFrame(v), lambda v: v[:, None]])
def test_values_may_come_in_any_container(small, form):
    class Passing(BaseEstimator):
        def fit(self, X, y):
            return self

        def predict(self, X):
            return form(X["logit"].to_numpy())

    X, _, sex = small
    expected = fit(small, LinearRegression().fit(X, X["logit"]), prefit=True)
    found = fit(small, Passing())
    chances = [post._pmf_predict(X, sensitive_features=sex) for post in (found, expected)]
    np.testing.assert_allclose(*chances, atol=1e-9)


def test_arguments_of_fit_are_ignored_for_a_trained_model_but_weights_count(small):
    X, y, sex = small
    model = LogisticRegression().fit(X, y)
    post = ThresholdOptimizer(estimator=model, prefit=True)
    assert post.fit(X, y, sensitive_features=sex, unknown=1).rule_ == fit(small, model, prefit=True).rule_
    assert post.fit(X, y, sensitive_features=sex, sample_weight=np.ones(600)).rule_.record.weighted


def test_x_of_three_dimensions(small):
    class Cube(BaseEstimator):
        def fit(self, X, y):
            self.fitted_ = True
            return self

        def predict(self, X):
            return X.sum(axis=(1, 2))

    _, y, sex = small
    X = np.random.default_rng(0).random((600, 2, 3))
    post = ThresholdOptimizer(estimator=Cube()).fit(X, y, sensitive_features=sex)
    assert post.predict(X, sensitive_features=sex).shape == (600,)


def test_more_than_two_classes_raise(small):
    X, _, sex = small
    three = np.arange(600) % 3
    model = LogisticRegression().fit(X, three)
    with pytest.raises(
        InputError, match=r"must be a binary classifier, but predict_proba of .* shape \(600, 3\)"
    ):
        fit(small, model, prefit=True)
    with pytest.raises(InputError, match="Supplied y labels are not 0 or 1, got 2"):
        ThresholdOptimizer(estimator=model, prefit=True).fit(X, three, sensitive_features=sex)


def test_two_dimensional_predictions_raise(small):
    X, y, _ = small
    model = LinearRegression().fit(X, np.c_[y, y])
    with pytest.raises(InputError, match=r"^`estimator\.predict` must be one column of numbers, got shape"):
        fit(small, model, prefit=True, predict_method="predict")


# Metadata routing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("routing", [False, True])
def test_weights_reach_a_model_in_a_pipeline(small, routing):
    X, y, sex = small
    weights = np.where(np.arange(600) % 3, 1.0, 4.0)
    with sklearn.config_context(enable_metadata_routing=routing):
        inner = LogisticRegression().set_fit_request(sample_weight=True) if routing else LogisticRegression()
        post = ThresholdOptimizer(estimator=inner)
        if routing:
            post.set_fit_request(sensitive_features=True)  # what scripts do
        scaler = StandardScaler().set_fit_request(sample_weight=False) if routing else StandardScaler()
        steps = make_pipeline(scaler, post)
        passed = {"sensitive_features": sex, "sample_weight": weights}
        prefix = "" if routing else "thresholdoptimizer__"
        steps.fit(X, y, **{prefix + name: values for name, values in passed.items()})
    scaled = StandardScaler().fit_transform(X)
    expected = LogisticRegression().fit(scaled, y, sample_weight=weights)
    np.testing.assert_allclose(steps[-1].estimator_.coef_, expected.coef_)
    assert steps[-1].rule_.record.weighted


@pytest.mark.parametrize("routing", [False, True])
def test_weights_reach_a_model_in_cross_validation(small, routing):
    X, y, sex = small
    weights = np.where(np.arange(600) % 3, 1.0, 4.0)

    def weighted(post, X, y):
        return float(post.rule_.record.weighted)

    with sklearn.config_context(enable_metadata_routing=routing):
        inner = LogisticRegression().set_fit_request(sample_weight=True) if routing else LogisticRegression()
        found = cross_validate(
            ThresholdOptimizer(estimator=inner),
            X,
            y,
            params={"sensitive_features": sex, "sample_weight": weights},
            cv=2,
            scoring=weighted,
            error_score="raise",
        )
    assert found["test_score"].tolist() == [1.0, 1.0]


# Rejected input -----------------------------------------------------------------------------------

OTHERS = {
    "tol": ({"tol": 1.5}, r"`tol` must be between 0 and 1, got 1.5"),
    "grid_size": ({"grid_size": 0}, "`grid_size` must be a positive integer, got 0"),
    "method": ({"predict_method": "score"}, "`predict_method` must be one of"),
    "absent": ({"estimator": LinearSVC(), "predict_method": "predict_proba"}, "LinearSVC does not"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_wrong_options_raise(small, name):
    X, y, sex = small
    options, words = OTHERS[name]
    model = ThresholdOptimizer(**{"estimator": LogisticRegression()} | options)
    with pytest.raises(InputError, match=words) as caught:
        model.fit(X, y, sensitive_features=sex)
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "rule_")


ROWS = {
    "no estimator": ({"estimator": None}, {}),
    "constraints": ({"constraints": "parity"}, {}),
    "objective": ({"objective": "f1"}, {}),
    "objective of odds": ({"constraints": "equalized_odds", "objective": "selection_rate"}, {}),
    "no y": ({}, {"y": None}),
    "empty y": ({}, {"y": []}),
    "labels": ({}, {"y": [0, 2] * 300}),
    "text as labels": ({}, {"y": ["a", "b"] * 300}),
    "one label": ({"estimator": LinearRegression()}, {"y": [0] * 600}),
    "one label in a group": (
        {"constraints": "true_positive_rate_parity"},
        {"y": OLD * 1, "sensitive_features": OLD},
    ),
    "no X": ({}, {"X": None}),
    "empty X": ({}, {"X": np.empty((0, 2))}),
    "short X": ({}, {"X": np.zeros((599, 2))}),
    "no groups": ({}, {"sensitive_features": None}),
    "few groups": ({}, {"sensitive_features": ["a", "b"]}),
    "control features": ({}, {"control_features": OLD}),
}


@pytest.mark.parametrize("name", ROWS)
def test_errors_use_the_words_of_fairlearn(small, name):
    X, y, sex = small
    options, changed = ROWS[name]
    told = []
    for kind in (ThresholdOptimizer, peer.ThresholdOptimizer):
        post = kind(**{"estimator": LogisticRegression()} | options)
        with pytest.raises(ValueError, match=" ") as caught:
            post.fit(**{"X": X, "y": y, "sensitive_features": sex} | changed)
        told.append(str(caught.value))
    ours, theirs = (re.split(r"[.:;(]| with shape|, got", text)[0].strip() for text in told)
    assert ours == theirs
    assert "\n" not in told[0]
    if name in ("constraints", "objective", "objective of odds"):  # the same choices, too
        assert told[0].partition(", got")[0] == told[1].rstrip(".")


def test_error_of_groups_names_the_first_group_with_one_label(small):
    with pytest.raises(InputError, match="Degenerate labels for sensitive feature value Female"):
        fit((small[0], [1] * 600, small[2]))


def test_a_group_with_one_label_is_fine_where_its_rates_are_defined(small):
    X, y, sex = small
    post = ThresholdOptimizer(estimator=LogisticRegression()).fit(X, y * (sex == "Male"), sensitive_features=sex)
    assert post.rule_.groups == ("Female", "Male")


def test_different_lengths_in_predict_raise_with_the_words_of_fairlearn(small):
    X, y, sex = small
    for kind in (ThresholdOptimizer, peer.ThresholdOptimizer):
        post = fit(small, kind=kind)
        with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[600, 599\]"):
            post.predict(X, sensitive_features=sex[:-1])

        class Stubborn(BaseEstimator):
            def fit(self, X, y):
                self.fitted_ = True
                return self

            def predict(self, X):
                return np.asarray(y)

        with pytest.raises(ValueError, match="X and y must have same number of rows"):
            fit(small, Stubborn(), kind=kind).predict(X[:-1], sensitive_features=sex[:-1])


def test_a_model_that_is_not_trained_gets_the_warning_of_fairlearn(small):
    from fairlearn.postprocessing._constants import BASE_ESTIMATOR_NOT_FITTED_WARNING as WARNING

    first = WARNING.format("ThresholdOptimizer").split("\n")[0]
    with pytest.warns(UserWarning, match=re.escape(first)), pytest.raises(NotFittedError):
        fit(small, LogisticRegression(), prefit=True)
