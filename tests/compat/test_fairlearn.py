"""Fairlearn scripts run with only the import changed, and do no worse than with Fairlearn."""
# ruff: noqa: N806 -- scikit-learn's name is X

import copy
import inspect
import pickle
import re
import textwrap

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import fairramp
from fairramp import InputError
from fairramp.compat.fairlearn import ThresholdOptimizer
from samples import gap, rates

pd = pytest.importorskip("pandas", reason="pandas is not installed")
peer = pytest.importorskip("fairlearn.postprocessing", reason="Fairlearn is not installed")


@pytest.fixture(scope="module")
def adult():
    """X, y, sex and race of Adult's scores in two halves; X has two columns."""
    data = fairramp.datasets.load_adult_scores()
    x = np.clip(data.score, 1e-6, 1 - 1e-6)
    table = pd.DataFrame({"logit": np.log(x / (1 - x)), "male": (data.sex == "Male").astype(float)})
    groups = pd.DataFrame({"sex": data.sex, "race": data.race})
    half = np.arange(len(x)) % 2 == 0
    return [(table[s], pd.Series(data.label)[s], groups[s]) for s in (half, ~half)]


@pytest.fixture(scope="module")
def small(adult):
    X, y, groups = adult[0]
    return X[:600], y[:600], groups["sex"][:600]


def both(adult, estimator, groups_of=lambda table: table["sex"], **options):
    """Expected accuracy and gap of ours and theirs, on the fit rows and on new rows."""
    found = []
    for kind in (ThresholdOptimizer, peer.ThresholdOptimizer):
        X, y, groups = adult[0]
        model = kind(estimator=estimator, constraints="demographic_parity", **options)
        model.fit(X, y, sensitive_features=groups_of(groups))
        row = []
        for X, y, groups in adult:
            chances = model._pmf_predict(X, sensitive_features=groups_of(groups))
            assert chances.shape == (len(X), 2)
            assert chances.min() >= 0
            np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-12)
            codes = groups_of(groups)
            codes = codes["sex"] + codes["race"] if codes.ndim == 2 else codes
            right = np.where(y == 1, chances[:, 1], chances[:, 0]).mean()
            row.append((right, gap(chances[:, 1], codes.to_numpy())))
        found.append(row)
    return found


def trained(adult, model):
    X, y, _ = adult[1]
    return model.fit(X, y)


@pytest.mark.parametrize("tol", [None, 0.05])
@pytest.mark.parametrize("columns", ["sex", ["sex", "race"]], ids=str)
def test_prefit_model_is_as_good_as_fairlearn_on_the_fit_rows(adult, columns, tol):
    model = trained(adult, LogisticRegression())
    ours, theirs = both(adult, model, lambda table: table[columns], prefit=True, tol=tol)
    assert ours[0][1] <= (tol or 0) + 1e-9
    assert ours[0][1] <= theirs[0][1] + 1e-9 or tol
    # Their grid of a thousand rates and our monotone probabilities each cost a little.
    assert ours[0][0] >= theirs[0][0] - 0.002


def test_new_rows_are_as_accurate_and_nearly_as_equal(adult):
    ours, theirs = both(adult, LogisticRegression())
    assert ours[1][0] >= theirs[1][0] - 0.002
    assert ours[1][1] <= theirs[1][1] + 0.01


def test_forest_is_not_misled_by_its_training_rows(adult):
    ours, theirs = both(adult, RandomForestClassifier(10, random_state=0))
    assert ours[1][0] > theirs[1][0] + 0.02
    assert ours[1][1] <= theirs[1][1] + 0.02


def test_constructor_has_their_names_and_defaults():
    ours, theirs = (inspect.signature(kind.__init__) for kind in (ThresholdOptimizer, peer.ThresholdOptimizer))
    assert [(p.name, p.kind, p.default) for p in ours.parameters.values()] == [
        (p.name, p.kind, p.default) for p in theirs.parameters.values()
    ]
    for name in ("fit", "predict", "_pmf_predict"):
        a, b = (
            inspect.signature(getattr(kind, name)).parameters
            for kind in (ThresholdOptimizer, peer.ThresholdOptimizer)
        )
        assert [(p.name, p.kind, p.default) for p in a.values()] == [
            (p.name, p.kind, p.default) for p in b.values()
        ]


# Scripts ------------------------------------------------------------------------------------------

SCRIPTS = {
    "post-process a trained model": """
        from sklearn.linear_model import LogisticRegression
        from fairlearn.postprocessing import ThresholdOptimizer

        model = LogisticRegression().fit(X, y)
        post = ThresholdOptimizer(
            estimator=model, constraints="demographic_parity", prefit=True, predict_method="predict_proba"
        )
        post.fit(X, y, sensitive_features=sex)
        answers = post.predict(X, sensitive_features=sex, random_state=0)
        """,
    "train inside": """
        from sklearn.tree import DecisionTreeClassifier
        from fairlearn.postprocessing import ThresholdOptimizer

        post = ThresholdOptimizer(
            estimator=DecisionTreeClassifier(max_depth=4),
            constraints="selection_rate_parity",
            objective="accuracy_score",
            grid_size=200,
        )
        answers = post.fit(X, y.tolist(), sensitive_features=sex.tolist()).predict(
            X, sensitive_features=sex.tolist(), random_state=1
        )
        """,
    "measure with their metrics": """
        from fairlearn.metrics import MetricFrame, demographic_parity_difference, selection_rate
        from fairlearn.postprocessing import ThresholdOptimizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import accuracy_score

        post = ThresholdOptimizer(estimator=LogisticRegression(), tol=0.02)
        post.fit(X, y, sensitive_features=sex)
        answers = post.predict(X, sensitive_features=sex, random_state=2)
        frame = MetricFrame(
            metrics={"accuracy": accuracy_score, "selection": selection_rate},
            y_true=y,
            y_pred=answers,
            sensitive_features=sex,
        )
        assert frame.difference()["selection"] == demographic_parity_difference(
            y, answers, sensitive_features=sex
        )
        """,
    "a pipeline and several columns": """
        from fairlearn.postprocessing import ThresholdOptimizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import StandardScaler

        steps = Pipeline([("scale", StandardScaler()), ("model", LogisticRegression())])
        both = sex.to_frame().assign(old=[i % 2 for i in range(len(sex))])
        post = ThresholdOptimizer(estimator=steps, predict_method="decision_function")
        post.fit(X, y, sensitive_features=both, model__sample_weight=np.ones(len(y)))
        chances = post._pmf_predict(X, sensitive_features=both)[:, 1]
        answers = (chances >= np.random.RandomState(0).rand(len(chances))) * 1
        """,
    "a wrapper that does not look trained": """
        from fairlearn.postprocessing import ThresholdOptimizer
        from sklearn.base import BaseEstimator
        from sklearn.linear_model import LogisticRegression

        class Scores(BaseEstimator):
            def __init__(self, model):
                self.model = model

            def fit(self, X, y):
                return self

            def predict(self, X):
                return self.model.predict_proba(X)[:, 1]

        wrapped = Scores(LogisticRegression().fit(X, y))
        post = ThresholdOptimizer(estimator=wrapped, prefit=True, predict_method="predict")
        post.fit(X.to_numpy(), y, sensitive_features=sex)
        answers = post.predict(X.to_numpy(), sensitive_features=sex, random_state=np.random.RandomState(0))
        """,
    "folds by hand": """
        from fairlearn.postprocessing import ThresholdOptimizer
        from sklearn.base import clone
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import StratifiedKFold

        post = ThresholdOptimizer(estimator=LogisticRegression(), constraints="demographic_parity")
        answers = np.zeros(len(y), dtype=int)
        for train, test in StratifiedKFold(2).split(X, y):
            part = clone(post).fit(X.iloc[train], y.iloc[train], sensitive_features=sex.iloc[train])
            answers[test] = part.predict(X.iloc[test], sensitive_features=sex.iloc[test], random_state=0)
        """,
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # Fairlearn warns about models that are not from scikit-learn
@pytest.mark.parametrize("name", SCRIPTS)
def test_script_runs_with_only_the_import_changed(small, name):
    theirs = textwrap.dedent(SCRIPTS[name])
    ours, changed = re.subn(
        r"^from fairlearn\.postprocessing import", "from fairramp.compat.fairlearn import", theirs, flags=re.M
    )
    assert changed == 1
    X, y, sex = small
    for script in (theirs, ours):
        names = {"X": X.copy(), "y": y.copy(), "sex": sex.copy(), "np": np}
        exec(script, names)
        assert names["answers"].shape == (600,)
        assert set(names["answers"]) == {0, 1}
        assert gap(names["answers"], sex.to_numpy()) < 0.1
    assert type(names["post"]).__module__ == "fairramp.compat.fairlearn"


# Inputs -------------------------------------------------------------------------------------------


def fit(small, estimator=None, groups=None, **options):
    X, y, sex = small
    model = LogisticRegression() if estimator is None else estimator
    return ThresholdOptimizer(estimator=model, **options).fit(
        X, y, sensitive_features=sex if groups is None else groups
    )


def test_group_containers_are_interchangeable(small):
    X, _, sex = small
    expected = fit(small)._pmf_predict(X, sensitive_features=sex)
    for form in (sex.to_numpy(), sex.tolist(), sex.to_frame(), sex.to_frame().to_numpy(), [[v] for v in sex]):
        found = fit(small, groups=form)._pmf_predict(X, sensitive_features=form)
        np.testing.assert_array_equal(found, expected)


def test_several_columns_are_intersections(small):
    X, _, sex = small
    table = pd.DataFrame({"sex": sex.to_numpy(), "half": np.arange(600) % 2})
    expected = fit(small, groups=table)
    assert len(expected.rule_.groups) == 4
    for form in (table.to_numpy(), table.to_numpy().tolist(), [tuple(row) for row in table.to_numpy().tolist()]):
        model = fit(small, groups=form)
        np.testing.assert_array_equal(
            model._pmf_predict(X, sensitive_features=form), expected._pmf_predict(X, sensitive_features=table)
        )
    with pytest.raises(InputError, match="rows of different lengths"):
        fit(small, groups=[["a", "b"], ["a"]] * 300)


@pytest.mark.parametrize("form", [list, np.array, lambda y: y.astype(bool), lambda y: y.to_frame(), pd.Series])
def test_label_containers_are_interchangeable(small, form):
    X, y, sex = small
    model = ThresholdOptimizer(estimator=LogisticRegression()).fit(X, form(y), sensitive_features=sex)
    assert model.rule_ == fit(small).rule_


@pytest.mark.parametrize(
    ("method", "estimator"),
    [
        ("predict_proba", LogisticRegression()),
        ("decision_function", LogisticRegression()),
        ("predict", LogisticRegression()),
        ("auto", LogisticRegression()),
        ("auto", LinearSVC()),
        ("auto", LinearRegression()),
        ("predict", make_pipeline(StandardScaler(), LinearRegression())),
    ],
    ids=str,
)
@pytest.mark.parametrize("prefit", [False, True])
def test_each_predict_method_gives_equal_rates_on_its_own_scores(small, method, estimator, prefit):
    X, y, sex = small
    model = clone(estimator).fit(X, y) if prefit else estimator
    post = fit(small, model, prefit=prefit, predict_method=method)
    chances = post._pmf_predict(X, sensitive_features=sex)[:, 1]
    if prefit:
        assert gap(chances, sex.to_numpy()) < 1e-9
        assert post.estimator_ is model
    else:
        assert gap(chances, sex.to_numpy()) < 0.06
        assert not hasattr(estimator, "coef_")
    if method == "predict":
        values = post.estimator_.predict(X)
        for group in ("Female", "Male"):
            order = np.argsort(values[sex == group], kind="stable")
            assert (np.diff(chances[sex == group][order]) >= 0).all()


def test_regression_on_a_large_scale_does_not_saturate(small):
    X, y, sex = small
    model = LinearRegression().fit(X, 50_000 + 10_000 * y)
    post = fit(small, model, prefit=True, predict_method="predict")
    small_scale = fit(small, LinearRegression().fit(X, y), prefit=True, predict_method="predict")
    np.testing.assert_allclose(
        post._pmf_predict(X, sensitive_features=sex),
        small_scale._pmf_predict(X, sensitive_features=sex),
        atol=1e-6,
    )


@pytest.mark.parametrize("method", ["predict_proba", "decision_function", "predict"])
def test_one_row_is_decided_like_many(small, method):
    X, y, sex = small
    post = fit(small, LogisticRegression().fit(X, y), prefit=True, predict_method=method)
    one = post._pmf_predict(X[:1], sensitive_features=sex[:1])
    np.testing.assert_array_equal(one, post._pmf_predict(X, sensitive_features=sex)[:1])


def test_two_dimensional_predictions_raise(small):
    X, y, _ = small
    model = LinearRegression().fit(X, np.c_[y, y])
    with pytest.raises(
        InputError, match=r"^`estimator\.predict` must be one column of numbers, got shape \(600, 2\)"
    ):
        fit(small, model, prefit=True, predict_method="predict")


@pytest.mark.parametrize("factor", [1e-3, 1e3, 1e6])
def test_scale_of_the_decision_function_does_not_matter(small, factor):
    X, y, sex = small
    model, scaled = LogisticRegression().fit(X, y), LogisticRegression().fit(X, y)
    scaled.coef_, scaled.intercept_ = scaled.coef_ * factor, scaled.intercept_ * factor
    chances = [
        fit(small, one, prefit=True, predict_method="decision_function")._pmf_predict(X, sensitive_features=sex)
        for one in (model, scaled)
    ]
    np.testing.assert_allclose(*chances, atol=1e-6)


@pytest.mark.parametrize("tol", [None, 0, 0.03, 0.2, 1])
def test_tol_bounds_the_gap_on_the_fit_rows(small, tol):
    X, y, sex = small
    post = fit(small, LogisticRegression().fit(X, y), prefit=True, tol=tol)
    found = gap(post._pmf_predict(X, sensitive_features=sex)[:, 1], sex.to_numpy())
    assert found <= (tol or 0) + 1e-9
    assert post.rule_.max_gap == (tol or 0)


def test_weights_are_used_in_training_and_fitting(small):
    X, y, sex = small
    weights = np.where(np.arange(len(y)) % 3, 1.0, 4.0)
    post = ThresholdOptimizer(estimator=LogisticRegression()).fit(
        X, y, sensitive_features=sex, sample_weight=weights
    )
    np.testing.assert_array_equal(
        post.estimator_.coef_, LogisticRegression().fit(X, y, sample_weight=weights).coef_
    )
    assert post.rule_.record.weighted


@pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")
def test_too_few_rows_for_five_folds():
    X, y, groups = [[0], [1], [2], [3], [4], [5]], [1, 1, 0, 0, 0, 0], ["a", "b"] * 3
    post = ThresholdOptimizer(estimator=LogisticRegression()).fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(post._pmf_predict(X, sensitive_features=groups).sum(axis=1), 1)


# Random draws -------------------------------------------------------------------------------------


def test_decisions_follow_the_probabilities(small):
    X, y, sex = small
    post = fit(small, LogisticRegression().fit(X, y), prefit=True, predict_method="predict")  # ties, so draws
    chances = post._pmf_predict(X, sensitive_features=sex)[:, 1]
    assert ((chances > 0.05) & (chances < 0.95)).any()
    source = np.random.RandomState(0)
    drawn = np.mean([post.predict(X, sensitive_features=sex, random_state=source) for _ in range(400)], axis=0)
    assert np.abs(drawn - chances).max() < 5.5 * 0.5 / 20
    assert rates(drawn, sex.to_numpy()) == pytest.approx(rates(chances, sex.to_numpy()), abs=0.01)


def test_only_a_fixed_random_state_repeats(small):
    X, y, sex = small
    post = fit(small, LogisticRegression().fit(X, y), prefit=True, predict_method="predict")

    def draw(state):
        return post.predict(X, sensitive_features=sex, random_state=state).tolist()

    assert draw(3) == draw(3) != draw(4)
    assert draw(np.random.RandomState(3)) == draw(np.random.RandomState(3))
    source = np.random.RandomState(3)
    assert draw(source) != draw(source)
    np.random.seed(0)  # noqa: NPY002 -- what scripts do
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    assert draw(None) != draw(None)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    assert post.predict(X, sensitive_features=sex).dtype == np.int64


# Rejected input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"constraints": "equalized_odds"},
            "selection rates.*keep using `fairlearn.postprocessing.ThresholdOptimizer`",
        ),
        ({"constraints": "true_positive_rate_parity"}, "selection rates.*keep using `fairlearn"),
        ({"constraints": "false_negative_rate_parity"}, "selection rates.*keep using `fairlearn"),
        ({"constraints": "parity"}, "`constraints` must be one of 'demographic_parity'"),
        ({"objective": "balanced_accuracy_score"}, "keep using `fairlearn.*target_rate"),
        ({"objective": "selection_rate"}, "everybody is selected.*keep using `fairlearn"),
        ({"objective": "true_negative_rate"}, "nobody is selected.*keep using `fairlearn"),
        ({"objective": "f1"}, "`objective` must be 'accuracy_score'"),
        ({"flip": True}, "`flip=True` is not supported.*keep using `fairlearn"),
        ({"predict_method": "score"}, "`predict_method` must be one of"),
        ({"tol": 1.5}, r"`tol` must be between 0 and 1, got 1.5"),
        ({"estimator": None}, "`estimator` is missing"),
        ({"estimator": LinearSVC(), "predict_method": "predict_proba"}, "LinearSVC does not"),
    ],
    ids=str,
)
def test_unsupported_options_raise_with_an_alternative(small, options, words):
    X, y, sex = small
    model = ThresholdOptimizer(**{"estimator": LogisticRegression()} | options)
    with pytest.raises(InputError, match=words) as caught:
        model.fit(X, y, sensitive_features=sex)
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "rule_")


def test_every_fairlearn_constraint_and_objective_is_supported_or_raises():
    text = inspect.getsource(peer.ThresholdOptimizer.__init__)
    for option in ("constraints", "objective"):
        names = re.findall(r'"(\w+)"', re.search(rf"{option}: Literal\[(.*?)\]", text, re.S)[1])
        assert len(names) >= 5
        taken = 0
        for name in names:
            model = ThresholdOptimizer(estimator=LogisticRegression(), **{option: name})
            if name in ("demographic_parity", "selection_rate_parity", "accuracy_score"):
                model._check_settings()
                taken += 1
                continue
            with pytest.raises(InputError, match="keep using `fairlearn"):
                model._check_settings()
        assert taken == {"constraints": 2, "objective": 1}[option]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "`y` is missing"),
        ([0, 2] * 300, "`y` must be one column of 0 and 1, got 2"),
        (["a", "b"] * 300, "`y` must be one column of 0 and 1, got 'a'"),
    ],
)
def test_bad_labels_raise(small, y, words):
    X, _, sex = small
    with pytest.raises(InputError, match=words):
        ThresholdOptimizer(estimator=LogisticRegression()).fit(X, y, sensitive_features=sex)


def test_unseen_group_raises_where_fairlearn_silently_returns_0(small):
    X, _, sex = small
    with pytest.raises(fairramp.UnseenGroupError, match="Other"):
        fit(small).predict(X, sensitive_features=sex.replace("Male", "Other"))


def test_control_features_raise_with_an_alternative(small):
    X, y, sex = small
    with pytest.raises(InputError, match="with strata=…"):
        ThresholdOptimizer(estimator=LogisticRegression()).fit(X, y, sensitive_features=sex, control_features=sex)


def test_unfitted_raises(small):
    X, _, sex = small
    for name in ("predict", "_pmf_predict"):
        with pytest.raises(NotFittedError):
            getattr(ThresholdOptimizer(estimator=LogisticRegression()), name)(X, sensitive_features=sex)
    with pytest.raises(NotFittedError):
        fit(small, LogisticRegression(), prefit=True)
    with pytest.raises(AttributeError, match="rule_"):
        fit(small).interpolated_thresholder_  # noqa: B018


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_decide_alike_and_clones_are_unfitted(small, again):
    X, _, sex = small
    post = fit(small, tol=0.03)
    np.testing.assert_array_equal(
        again(post)._pmf_predict(X, sensitive_features=sex), post._pmf_predict(X, sensitive_features=sex)
    )
    fresh = clone(post)
    assert isinstance(fresh, BaseEstimator)
    assert not hasattr(fresh, "rule_")
    assert fresh.get_params(deep=False).keys() == post.get_params(deep=False).keys()
    assert fresh.tol == 0.03
