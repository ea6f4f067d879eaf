"""Group columns are chosen as in ColumnTransformer, and dropped before the inner classifier if asked."""
# ruff: noqa: N803 -- scikit-learn calls it X

import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.sparse import coo_array, csc_matrix, csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairramp import InputError
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
    people,
)
from samples import gap

BOTH = [False, False, False, True, True]


def signs(X):
    """Labels that are no column of X."""
    return X[:, 0] > 0


def as_lists(table):
    return table.tolist()


# Choices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "choice",
    [
        ["sex", "race"],
        [3, 4],
        (3, -1),
        BOTH,
        np.array(BOTH),
        slice(3, None),
        slice(-2, 5),
        slice("sex", "race"),
        slice("sex", None),
        pd.Index(["sex", "race"]),
        np.array(["sex", "race"], dtype=object),
    ],
    ids=repr,
)
@pytest.mark.parametrize("called", [False, True])
def test_every_choice_selects_the_columns_that_columntransformer_selects(library, choice, called):
    table = frame(library)
    chosen = (lambda X: choice) if called else choice
    passed = ColumnTransformer([("same", "passthrough", choice)]).fit_transform(table)
    np.testing.assert_array_equal(passed, np.array([SEX, RACE], dtype=object).T)
    model = optimizer(on_frames(), sensitive_columns=chosen, cv=2).fit(table, Y)
    along = optimizer(on_frames(), cv=2).fit(table, Y, sensitive_features=table[["sex", "race"]])
    assert model.rule_ == along.rule_


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_slice_of_names_includes_its_end(library):
    model = optimizer(on_frames(), sensitive_columns=slice(None, "debt", 2), cv=2)
    with pytest.raises(InputError, match="bin a continuous column first"):
        model.fit(frame(library), Y)
    table = frame(library)[["age", "income", "debt", "race", "sex"]]
    model = optimizer(on_frames(), sensitive_columns=slice("race", "sex"), cv=2).fit(table, Y)
    assert model.rule_.columns.groups == ("race", "sex")


def test_a_column_selector_finds_columns_by_type_and_name():
    table = frame("pandas").astype({"sex": "category", "race": "category"})
    for choice in (
        make_column_selector(dtype_include="category"),
        make_column_selector(pattern="sex|race"),
        lambda X: X.select_dtypes("category").columns,
        lambda X: X.dtypes == "category",
        lambda X: np.flatnonzero(X.dtypes == "category"),
    ):
        model = optimizer(on_frames(), sensitive_columns=choice, cv=2).fit(table, Y)
        assert model.rule_.columns.groups == ("sex", "race")


def test_columns_are_chosen_once():
    calls = []

    def choose(X):
        calls.append(len(X))
        return ["sex"]

    model = optimizer(on_frames(), sensitive_columns=choose, cv=2).fit(frame("pandas"), Y)
    model.predict(frame("pandas"))
    model.partial_fit(frame("pandas")[:1], Y[:1])
    assert model.predict_proba(frame("pandas")[["race", "sex", *NAMES]][:1]).shape == (1, 2)
    assert calls == [N]


@pytest.mark.parametrize("table", [CODED, csr_array(CODED), coo_array(CODED), csc_matrix(CODED), as_lists(CODED)])
def test_labels_of_each_row_are_computed_for_every_x(table):
    calls = []

    def label(X):
        calls.append(X.shape)
        return (X.tocsr() if hasattr(X, "tocsr") else X)[:, 0] > 0

    model = optimizer(sensitive_columns=label).fit(table, Y)
    along = optimizer().fit(table, Y, sensitive_features=CODED[:, 0] > 0)
    assert decided(model.rule_) == decided(along.rule_)
    np.testing.assert_array_equal(
        model.predict_proba(table), along.predict_proba(table, sensitive_features=CODED[:, 0] > 0)
    )
    assert calls == [CODED.shape] * 2
    assert model.rule_.groups == (False, True)


@pytest.mark.parametrize(
    "label",
    [
        lambda X: np.where(X["sex"] == "f", "woman", "man"),
        lambda X: np.where(X["sex"] == "f", "woman", "man").tolist(),
        lambda X: tuple(np.where(X["sex"] == "f", "woman", "man")),
        lambda X: np.where(X["sex"] == "f", "woman", "man")[:, None],
        lambda X: pd.Series(np.where(X["sex"] == "f", "woman", "man"), dtype="category"),
        lambda X: pl.Series(np.where(X["sex"] == "f", "woman", "man")),
        lambda X: pl.DataFrame({"gender": np.where(X["sex"] == "f", "woman", "man")}),
        lambda X: {"gender": np.where(X["sex"] == "f", "woman", "man")},
    ],
)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_labels_may_be_of_any_kind(library, label):
    model = optimizer(on_frames(), sensitive_columns=label, cv=2).fit(frame(library), Y)
    named = np.where(SEX == "f", "woman", "man")
    along = optimizer(on_frames(), cv=2).fit(frame(library), Y, sensitive_features=named)
    assert decided(model.rule_) == along.rule_
    new = frame(library, NEW_X, NEW_SEX, NEW_RACE)
    for rows in (new, new[:1]):
        assert model.predict_proba(rows).shape == (len(rows), 2)


def test_several_columns_of_labels_make_intersections():
    for label in (
        lambda X: np.column_stack([X[:, 0] > 0, X[:, 3] == 1]),
        lambda X: [X[:, 0] > 0, X[:, 3] == 1],
        lambda X: pd.DataFrame({"a": X[:, 0] > 0, "b": X[:, 3] == 1}),
    ):
        model = optimizer(sensitive_columns=label, cv=2).fit(CODED, Y)
        assert model.rule_.groups == ((False, False), (False, True), (True, False), (True, True))


def test_strata_are_chosen_in_the_same_way():
    by_column = optimizer(strata=4, sensitive_columns=3).fit(CODED, Y)
    for strata in (slice(4, 5), lambda X: 4, lambda X: X[:, 4], lambda X: X[:, [4]]):
        model = optimizer(strata=strata, sensitive_columns=3).fit(CODED, Y)
        assert decided(model.rule_) == decided(by_column.rule_)
        np.testing.assert_array_equal(model.predict_proba(CODED), by_column.predict_proba(CODED))


SQUARE = np.column_stack([np.arange(6) % 2, np.arange(6) // 3, np.eye(6)[:, :4]])
FEW = FrozenEstimator(LogisticRegression().fit(SQUARE, np.arange(6) % 2))


@pytest.mark.parametrize("choice", [lambda X: X[:, 0] > 0, lambda X: list(range(6)), lambda X: [*BOTH, False]])
def test_values_that_may_be_labels_or_columns_raise(choice):
    model = optimizer(FEW, sensitive_columns=choice, target_rate=0.5)
    with pytest.raises(
        InputError,
        match="`sensitive_columns` returned 6 values for 6 rows and 6 columns, which may be labels or columns; "
        "return labels as a table with one column",
    ):
        model.fit(SQUARE, None)


@pytest.mark.filterwarnings("ignore:Groups with fewer")
def test_as_many_values_as_rows_are_labels_unless_they_are_names():
    for label in (lambda X: X[:, [0]] > 0, lambda X: (X[:, 0] > 0).astype(int), lambda X: ["a", "b"] * 3):
        model = optimizer(FEW, sensitive_columns=label, target_rate=0.5).fit(SQUARE, None)
        assert len(model.rule_.groups) == 2
    inner = FrozenEstimator(on_frames().fit(frame("pandas"), Y))
    model = optimizer(inner, sensitive_columns=lambda X: ["sex", "race"], target_rate=0.5)
    assert model.fit(frame("pandas")[:2], None).rule_.columns.groups == ("sex", "race")


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        (lambda X: None, "must be names or positions of columns, .*, got None"),
        (lambda X: signs, "must be names or positions of columns, .*, got <function signs"),
        (lambda X: X[:, 0], "bin a continuous column first"),
        (lambda X: SEX[1:], "names the column '[fm]', but X is of type ndarray"),
        (lambda X: (X[:, 0] > 0)[1:], "is a mask of 1199 values, but X has 5 columns"),
        (lambda X: X[1:, [0]] > 0, "`sensitive_columns` has 1199 rows but `X` has 1200"),
        (lambda X: 5, "has position 5, but X has 5 columns"),
        (lambda X: "sex", "names the column 'sex', but X is of type ndarray"),
        (lambda X: [], "must be names or positions of columns"),
    ],
)
def test_a_function_that_returns_something_else_raises(choice, sentence):
    with pytest.raises(InputError, match=sentence):
        optimizer(sensitive_columns=choice).fit(CODED, Y)


def test_labels_for_other_rows_raise_when_deciding():
    model = optimizer(sensitive_columns=lambda X: SEX).fit(CODED, Y)
    with pytest.raises(InputError, match="`sensitive_columns` has 1200 rows but `X` has 10"):
        model.predict(CODED[:10])


def test_two_columns_of_one_name_raise():
    table = frame("pandas").set_axis(["age", "income", "sex", "sex", "race"], axis=1)
    with pytest.raises(InputError, match="`X` has two columns named 'sex'; rename one of them"):
        optimizer(on_frames(), sensitive_columns="race").fit(table, Y)


# Dropping -----------------------------------------------------------------------------------------


class Wide(ClassifierMixin, BaseEstimator):
    """A logistic regression that stores the type and the columns of every X it sees."""

    seen: ClassVar = []

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(self._noted(X), y)
        self.classes_ = self.inner_.classes_
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(self._noted(X))

    def _noted(self, X):
        self.seen.append((type(X), list(getattr(X, "columns", ())), np.shape(X)[1]))
        return X


def simple(inner=None):
    return make_pipeline(StandardScaler(), LogisticRegression()) if inner is None else inner


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "choice", [["sex", "race"], [3, -1], BOTH, slice("sex", None), lambda X: ["race", "sex"]]
)
def test_the_inner_classifier_sees_a_dataframe_without_the_columns(library, choice):
    table, new = frame(library), frame(library, NEW_X, NEW_SEX, NEW_RACE)
    model = optimizer(simple(), sensitive_columns=choice, drop_sensitive=True).fit(table, Y)
    along = optimizer(simple()).fit(table[NAMES], Y, sensitive_features=table[list(model.rule_.columns.groups)])
    assert model.rule_ == along.rule_
    groups = new[list(model.rule_.columns.groups)]
    for ask in ("predict_proba", "decision_function"):
        np.testing.assert_array_equal(
            getattr(model, ask)(new), getattr(along, ask)(new[NAMES], sensitive_features=groups)
        )
    assert model.score(new, NEW_Y) == along.score(new[NAMES], NEW_Y, sensitive_features=groups)
    assert (
        model.partial_fit(new, NEW_Y).rule_
        == along.partial_fit(new[NAMES], NEW_Y, sensitive_features=groups).rule_
    )


@pytest.mark.parametrize("container", [np.asarray, csr_array, coo_array, csc_matrix, as_lists, pd.DataFrame])
@pytest.mark.parametrize("choice", [3, [-2], [4, 3], slice(3, 5)])
def test_the_inner_classifier_sees_an_array_without_the_columns(container, choice):
    model = optimizer(sensitive_columns=choice, drop_sensitive=True, cv=2).fit(container(CODED), Y)
    kept = X if choice in ([4, 3], slice(3, 5)) else CODED[:, [0, 1, 2, 4]]
    groups = [CODED[:, 4], CODED[:, 3]] if choice == [4, 3] else CODED[:, 3:] if kept is X else CODED[:, 3]
    along = optimizer(cv=2).fit(kept, Y, sensitive_features=groups)
    assert model.rule_.groups == along.rule_.groups
    np.testing.assert_allclose(model.rule_.thresholds, along.rule_.thresholds, atol=1e-6)
    assert model.n_features_in_ == 5
    assert model.estimator_.n_features_in_ == kept.shape[1]


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        (frame("pandas"), pd.DataFrame),
        (frame("polars"), pl.DataFrame),
        (CODED, np.ndarray),
        (csr_array(CODED), csr_array),
        (as_lists(CODED), list),
    ],
)
def test_dropping_keeps_the_kind_of_table_in_every_call(table, kind):
    Wide.seen.clear()
    model = optimizer(Wide(), sensitive_columns=[3, 4], drop_sensitive=True, cv=2).fit(table, Y)
    model.predict(table)
    names = NAMES if hasattr(table, "columns") else []
    assert set(map(str, Wide.seen)) == {str((kind, names, 3))}
    assert len(Wide.seen) == 6  # twice two folds, all rows, new rows


def test_a_frozen_model_trained_without_the_columns_is_wrapped_by_dropping_them():
    model = optimizer(FROZEN, sensitive_columns=3, drop_sensitive=True).fit(CODED[:, :4], Y)
    along = optimizer(FROZEN).fit(X, Y, sensitive_features=CODED[:, 3])
    assert decided(model.rule_) == along.rule_
    assert model.estimator_.estimator is MODEL


def test_features_are_those_of_the_outer_table():
    model = optimizer(sensitive_columns=["sex", "race"], drop_sensitive=True).fit(frame("pandas"), Y)
    assert model.n_features_in_ == 5
    assert list(model.feature_names_in_) == [*NAMES, "sex", "race"]
    assert list(model.estimator_.feature_names_in_) == NAMES
    model.fit(frame("polars"), Y)
    assert list(model.feature_names_in_) == [*NAMES, "sex", "race"]
    model.set_params(sensitive_columns=[3, 4]).fit(CODED, Y)
    assert model.n_features_in_ == 5
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(optimizer(drop_sensitive=True), "n_features_in_")


def test_dropped_names_may_be_anywhere_and_positions_may_not():
    table = frame("pandas")
    by_name = optimizer(sensitive_columns="sex", drop_sensitive=True).fit(table[[*NAMES, "sex"]], Y)
    np.testing.assert_array_equal(
        by_name.predict_proba(table[["sex", *NAMES]]), by_name.predict_proba(table[[*NAMES, "sex"]])
    )
    by_place = optimizer(sensitive_columns=3, drop_sensitive=True).fit(CODED, Y)
    for ask in (by_place.predict, by_place.decision_function):
        with pytest.raises(
            InputError,
            match="X has 4 features, but RandomizedThresholdOptimizer is expecting 5 features as input",
        ):
            ask(CODED[:, :4])
    with pytest.raises(InputError, match="names 'sex', but X has the columns"):
        by_name.predict(table[NAMES])
    with pytest.raises(InputError, match="names the column 'sex', but X is of type ndarray"):
        by_name.predict(X)


@pytest.mark.parametrize(
    ("settings", "groups", "sentence"),
    [
        (
            {},
            SEX,
            "`drop_sensitive=True` requires `sensitive_columns` to choose columns of X, but it is None; ",
        ),
        (
            {"sensitive_columns": signs},
            None,
            "`drop_sensitive=True` requires `sensitive_columns` to choose columns of X, but it returned labels",
        ),
        (
            {"drop_sensitive": "yes", "sensitive_columns": 3},
            None,
            "`drop_sensitive` must be True or False",
        ),
        ({"sensitive_columns": lambda X: {0: SEX}}, None, "but it returned labels; choose the columns there"),
        ({"sensitive_columns": 9}, None, "`sensitive_columns` has position 9, but X has 5 columns"),
    ],
)
def test_dropping_requires_columns(settings, groups, sentence):
    with pytest.raises(InputError, match=sentence):
        optimizer(**{"drop_sensitive": True} | settings).fit(CODED, Y, sensitive_features=groups)


def test_dropping_every_column_raises():
    for table in (frame("pandas")[["sex", "race"]], frame("polars")[["sex", "race"]], CODED[:, 3:]):
        with pytest.raises(InputError, match="`drop_sensitive=True` leaves the inner classifier no column of X"):
            optimizer(sensitive_columns=[0, 1], drop_sensitive=True).fit(table, Y)


# As settings of an estimator ----------------------------------------------------------------------


def test_choices_can_be_cloned_pickled_and_set():
    model = optimizer(sensitive_columns=signs, random_state=0).fit(CODED, Y)
    assert clone(model).get_params()["sensitive_columns"] is signs
    twin = pickle.loads(pickle.dumps(model))
    assert twin.rule_ == model.rule_
    np.testing.assert_array_equal(twin.predict(CODED), model.predict(CODED))
    model.set_params(sensitive_columns=3, drop_sensitive=True).fit(CODED, Y)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict(CODED), model.predict(CODED))
    assert (twin.n_features_in_, twin.estimator_.n_features_in_) == (5, 4)
    lazy = optimizer(sensitive_columns=lambda X: 3).fit(CODED, Y)
    assert clone(lazy).fit(CODED, Y).rule_ == lazy.rule_


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ({"sensitive_columns": 3}, {"drop_sensitive": True}, "drop_sensitive"),
        ({"sensitive_columns": 3}, {"sensitive_columns": None}, "sensitive_columns"),
        ({"sensitive_columns": 3}, {"strata": 4}, "strata"),
        ({"sensitive_columns": 3, "strata": 4}, {"strata": None}, "strata"),
    ],
)
def test_partial_fit_refuses_changed_choices(before, after, name):
    model = optimizer(**before).fit(CODED, Y).set_params(**after)
    with pytest.raises(InputError, match=f"`{name}` has changed since `fit`; call `fit` again"):
        model.partial_fit(CODED, Y)


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_search_decides_whether_to_drop(library, enabled):
    coding = make_column_transformer(
        (StandardScaler(), make_column_selector(pattern="age|income|debt")),
        (OneHotEncoder(drop="first"), make_column_selector(pattern="sex|race")),
        sparse_threshold=0,
    )
    model = optimizer(
        make_pipeline(coding, LogisticRegression()),
        sensitive_columns=make_column_selector(pattern="sex"),
        cv=2,
        random_state=0,
    )
    if library == "polars":  # make_column_selector reads only pandas dataframes
        model.set_params(estimator=on_frames(), sensitive_columns=lambda X: ["sex"])
    grid = {"drop_sensitive": [False, True] if library == "pandas" else [False]}
    with sklearn.config_context(enable_metadata_routing=enabled):
        search = GridSearchCV(model, grid, cv=3, scoring="roc_auc", error_score="raise").fit(frame(library), Y)
        assert search.best_score_ > 0.7
        assert cross_val_score(model, frame(library), Y, cv=3, scoring="average_precision").min() > 0.6
        margins = cross_val_predict(model, frame(library), Y, cv=3, method="decision_function")
    assert gap(margins > 0, SEX) < 0.12


def test_a_pipeline_calls_the_function_with_its_transformed_table():
    pipeline = make_pipeline(
        StandardScaler().set_output(transform="pandas"),
        optimizer(sensitive_columns=lambda X: (X["age"] > 0).rename("older"), random_state=0),
    ).fit(pd.DataFrame(X, columns=NAMES), Y)
    assert pipeline[-1].rule_.columns.groups == ("older",)
    older = X[:, 0] > X[:, 0].mean()
    np.testing.assert_array_equal(pipeline[-1].rule_.record.rows, [(~older).sum(), older.sum()])


def test_dropped_columns_do_not_change_scores():
    x, y, sex, race = people(600, seed=2)
    table = frame("polars", x, sex, race)
    other = table.with_columns(sex=pl.lit("f"), race=pl.lit("a"))
    model = optimizer(sensitive_columns=["sex", "race"], drop_sensitive=True).fit(table, y)
    assert len(set(model.rule_.thresholds)) > 1
    at = dict(zip(model.rule_.groups, model.rule_.thresholds, strict=True))
    shift = at["f", "a"] - np.array([at[cell] for cell in zip(sex.tolist(), race.tolist(), strict=True)])
    np.testing.assert_allclose(model.decision_function(table) - model.decision_function(other), shift, atol=1e-12)
