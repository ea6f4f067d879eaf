"""Columns that are used together must have the same pandas index, because rows are matched by position."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import fairramp
from fairramp import FairrampWarning, GroupProbabilities, InputError, RandomizedThresholdOptimizer
from fairramp.compat.fairlearn import ThresholdOptimizer
from fairramp.core.indexes import index_of
from samples import KEY

N = 200
_rng = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {
        "score": _rng.random(N).round(6),
        "group": _rng.choice(["a", "b"], N),
        "label": _rng.integers(0, 2, N),
        "weight": _rng.random(N) + 0.5,
        "stratum": _rng.choice(["x", "y"], N),
        "id": [f"p{i}" for i in range(N)],
    },
    index=_rng.permutation(N),
)
ORDERED = ROWS.sort_index()
RULE = fairramp.fit_rule(ROWS.score, ROWS.group)
WITHIN = fairramp.fit_rule(ROWS.score, ROWS.group, strata=ROWS.stratum)
THREE = pd.DataFrame(_rng.dirichlet([2, 2, 2], N), columns=["low", "mid", "high"], index=ROWS.index)
CLASS_RULE = fairramp.fit_class_rule(THREE, ROWS.group, max_gap=0.05)
MODEL = LogisticRegression().fit(ROWS[["score"]], ROWS.label)


def estimator():
    return RandomizedThresholdOptimizer(FrozenEstimator(MODEL))


def of_arrays():
    """A fitted estimator for arrays, which have no index."""
    model = LogisticRegression().fit(ROWS[["score"]].to_numpy(), ROWS.label)
    optimizer = RandomizedThresholdOptimizer(FrozenEstimator(model))
    return optimizer.fit(ROWS[["score"]].to_numpy(), ROWS.label, sensitive_features=ROWS.group)


def fitted():
    return estimator().fit(ROWS[["score"]], ROWS.label, sensitive_features=ROWS.group)


def chances(column):
    return GroupProbabilities({"a": column, "b": 1 - column})


SOFT = fairramp.fit_rule(ROWS.score, chances(ROWS.score.rank(pct=True)), ramp_width=0.5)

#: By name: a use of two columns, the second of which is in another order, and the arguments in the message.
USES = {
    "fit, groups": (lambda x, o: fairramp.fit_rule(x.score, o.group), "groups", "scores"),
    "fit, several columns": (
        lambda x, o: fairramp.fit_rule(x.score, o[["group", "stratum"]]),
        "groups",
        "scores",
    ),
    "fit, labels": (lambda x, o: fairramp.fit_rule(x.score, x.group, o.label), "labels", "scores"),
    "fit, weights": (
        lambda x, o: fairramp.fit_rule(x.score, x.group, sample_weight=o.weight),
        "sample_weight",
        "scores",
    ),
    "fit, strata": (lambda x, o: fairramp.fit_rule(x.score, x.group, strata=o.stratum), "strata", "scores"),
    "fit, array of scores": (
        lambda x, o: fairramp.fit_rule(x.score.to_numpy(), x.group, o.label),
        "labels",
        "groups",
    ),
    "fit, group probabilities": (lambda x, o: fairramp.fit_rule(x.score, chances(o.score)), "groups", "scores"),
    "fit, classes": (
        lambda x, o: fairramp.fit_class_rule(THREE, o.group),
        "groups",
        "probabilities",
    ),
    "audit": (lambda x, o: fairramp.audit(x.score, o.group), "groups", "scores"),
    "audit by group probabilities": (
        lambda x, o: fairramp.audit(x.score, x.group, rule=SOFT, group_probabilities=chances(o.score)),
        "group_probabilities",
        "scores",
    ),
    "audit of classes": (
        lambda x, o: fairramp.audit_classes(THREE, o.group),
        "groups",
        "probabilities",
    ),
    "audit of decided classes": (
        lambda x, o: fairramp.audit_classes(x.group, o.group),
        "groups",
        "probabilities",
    ),
    "probabilities": (lambda x, o: RULE.probabilities(x.score, o.group), "groups", "scores"),
    "probabilities, strata": (
        lambda x, o: WITHIN.probabilities(x.score, x.group, o.stratum),
        "strata",
        "scores",
    ),
    "probabilities by group probabilities": (
        lambda x, o: SOFT.probabilities(x.score, chances(o.score)),
        "groups",
        "scores",
    ),
    "decide": (lambda x, o: RULE.decide(x.score, o.group, random_state=0), "groups", "scores"),
    "decide, ids": (lambda x, o: RULE.decide(x.score, x.group, ids=o.id, key=KEY), "ids", "scores"),
    "decide, classes": (
        lambda x, o: CLASS_RULE.decide(THREE, x.group, ids=o.id, key=KEY),
        "ids",
        "probabilities",
    ),
    "check": (lambda x, o: RULE.check(x.score, o.group), "groups", "scores"),
    "monitor": (lambda x, o: RULE.monitor().update(x.score, o.group), "groups", "scores"),
    "certificate": (lambda x, o: RULE.certificate(scores=x.score * 0.9, groups=o.group), "groups", "scores"),
    "report": (lambda x, o: RULE.report(x.score, o.group), "groups", "scores"),
    "frontier": (lambda x, o: fairramp.frontier(x.score, o.group, x.label), "groups", "scores"),
    "tune": (
        lambda x, o: fairramp.tune(x.score, x.group, o.label, validation=(x.score, x.group, x.label)),
        "labels",
        "scores",
    ),
    "summarize": (lambda x, o: fairramp.summarize(x.score, o.group), "groups", "scores"),
    "stream": (
        lambda x, o: fairramp.StreamingFit(target_rate=0.5).partial_fit(x.score, o.group),
        "groups",
        "scores",
    ),
    "select": (
        lambda x, o: fairramp.select(x.score, x.group, places=5, ids=o.id, key=KEY),
        "ids",
        "scores",
    ),
    "evidence": (lambda x, o: fairramp.evidence(x.score, x.group, categories=o.stratum), "categories", "scores"),
    "hidden split": (lambda x, o: fairramp.hidden_split(x.label, o.label), "membership", "decisions"),
    "estimator, array of features": (
        lambda x, o: of_arrays().fit(x[["score"]].to_numpy(), x.label, sensitive_features=o.group),
        "sensitive_features",
        "y",
    ),
    "estimator, more rows of an array": (
        lambda x, o: of_arrays().partial_fit(x[["score"]].to_numpy(), x.label, sensitive_features=o.group),
        "sensitive_features",
        "y",
    ),
    "score of an estimator, array": (
        lambda x, o: of_arrays().score(x[["score"]].to_numpy(), x.label, sensitive_features=o.group),
        "sensitive_features",
        "y",
    ),
    "baseline": (
        lambda x, o: fairramp.baselines.fit_shift_inference(x.label, o.group),
        "groups",
        "labels",
    ),
    "estimator, groups": (
        lambda x, o: estimator().fit(x[["score"]], x.label, sensitive_features=o.group),
        "sensitive_features",
        "X",
    ),
    "estimator, y": (
        lambda x, o: estimator().fit(x[["score"]], o.label, sensitive_features=x.group),
        "y",
        "X",
    ),
    "estimator, weights": (
        lambda x, o: estimator().fit(x[["score"]], x.label, sensitive_features=x.group, sample_weight=o.weight),
        "sample_weight",
        "X",
    ),
    "estimator, more rows": (
        lambda x, o: fitted().partial_fit(x[["score"]], o.label, sensitive_features=x.group),
        "y",
        "X",
    ),
    "estimator, predict": (
        lambda x, o: fitted().predict(x[["score"]], sensitive_features=o.group),
        "sensitive_features",
        "X",
    ),
    "estimator, ids": (
        lambda x, o: fitted().predict(x[["score"]], sensitive_features=x.group, ids=o.id, key=KEY),
        "ids",
        "X",
    ),
    "estimator, score": (
        lambda x, o: fitted().score(x[["score"]], o.label, sensitive_features=x.group),
        "y",
        "X",
    ),
}


def numbered(rows):
    """Features as a transformer that returns dataframes makes them of an array."""
    return pd.DataFrame({"score": rows.score.to_numpy()})


def test_the_numbers_of_a_transformed_array_are_no_other_index():
    sampled, few = ROWS.iloc[:100], RandomizedThresholdOptimizer(FrozenEstimator(MODEL))
    passed = {"sensitive_features": sampled.group, "sample_weight": sampled.weight}
    few.fit(numbered(sampled), sampled.label, **passed)
    few.score(numbered(sampled), sampled.label, **passed)
    few.predict(numbered(sampled), sensitive_features=sampled.group, ids=sampled.id, key=KEY)
    other = sampled.group.sort_index()
    with pytest.raises(InputError, match="`sensitive_features` has the index values of `y` in a different order"):
        few.fit(numbered(sampled), sampled.label, sensitive_features=other)
    with pytest.raises(InputError, match="`y` has the index values of `X` in a different order"):
        few.fit(numbered(ROWS), ROWS.label, sensitive_features=ROWS.group)


def test_weights_of_a_transformed_array_with_a_column_of_groups_are_no_other_rows():
    sampled = ROWS.iloc[:100]
    features = numbered(sampled).assign(group=sampled.group.to_numpy())
    model = RandomizedThresholdOptimizer(FrozenEstimator(MODEL), sensitive_columns="group", drop_sensitive=True)
    model.fit(features, sampled.label, sample_weight=sampled.weight)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairrampWarning)
        yield


#: Uses of group probabilities, which have no `.loc`.
PROBABLE = (
    "fit, group probabilities",
    "audit by group probabilities",
    "probabilities by group probabilities",
)


@pytest.mark.parametrize("name", USES)
def test_the_same_rows_in_another_order_raise_with_the_line_that_mends_it(name):
    use, argument, first = USES[name]
    with pytest.raises(InputError) as error:
        use(ROWS, ORDERED)
    line = f"{argument}.loc[{first}.index]"
    if name in PROBABLE:
        line = f"GroupProbabilities(columns.loc[{first}.index], labels)"
    assert str(error.value) == (
        f"`{argument}` has the index values of `{first}` in a different order, and rows are matched by position; "
        f"put them in the same order: {line}."
    )


@pytest.mark.parametrize(
    ("groups", "line"),
    [
        (
            {"g": ORDERED.group, "s": ORDERED.stratum},
            "{name: column.loc[scores.index] for name, column in groups.items()}",
        ),
        ([ORDERED.group, ORDERED.stratum], "[column.loc[scores.index] for column in groups]"),
        (
            {"g": ROWS.group.to_numpy(), "s": ORDERED.stratum},
            "{'g': groups['g'], 's': groups['s'].loc[scores.index]}",
        ),
        ([ROWS.group.to_numpy(), ORDERED.stratum], "[groups[0], groups[1].loc[scores.index]]"),
        ([ROWS.group.tolist(), ORDERED.stratum], "[groups[0], groups[1].loc[scores.index]]"),
    ],
)
def test_the_line_that_mends_several_columns_runs_and_gives_the_right_rule(groups, line):
    with pytest.raises(InputError, match=re.escape(f"in the same order: {line}.")):
        fairramp.fit_rule(ROWS.score, groups)
    mended = eval(line, {"scores": ROWS.score, "groups": groups})
    right = fairramp.fit_rule(ROWS.score, [ROWS.group, ROWS.stratum])
    assert fairramp.fit_rule(ROWS.score, mended).ramps == right.ramps


@pytest.mark.parametrize(
    ("groups", "index"),
    [
        ({"g": ROWS.group.tolist(), "s": ROWS.stratum}, "groups['s'].index"),
        ([ROWS.group, ROWS.stratum], "groups[0].index"),
        ([ROWS.group.to_numpy(), ROWS.stratum], "groups[1].index"),
    ],
)
def test_the_index_of_several_columns_is_that_of_one_of_them(groups, index):
    with pytest.raises(InputError, match=re.escape(f"labels.loc[{index}]")):
        fairramp.fit_rule(ROWS.score.to_numpy(), groups, ORDERED.label)


def test_columns_of_several_arguments_are_stripped_of_their_index_one_by_one():
    away = ROWS.set_axis(np.arange(N) + 7)
    for groups, line in (
        ({"g": away.group}, "{name: column.to_numpy() for name, column in groups.items()}"),
        (chances(away.score), "GroupProbabilities(columns.to_numpy(), labels)"),
    ):
        with pytest.raises(InputError, match=re.escape(f"pass {line}; otherwise join")):
            fairramp.fit_rule(ROWS.score, groups)


#: Rows whose index has two levels, as groupby(...).apply leaves it, of the same rows as ORDERED.
LEVELS = ROWS.set_index([ROWS.group.rename("g"), ROWS.index])


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("rows", [(ORDERED, LEVELS), (LEVELS, ORDERED)])
def test_an_index_of_several_levels_is_another_index(name, rows):
    if name in ("fit, classes", "audit of classes", "decide, classes"):
        rows = (ROWS, LEVELS)  # the scores of the classes are those of ROWS
    use, argument, _ = USES[name]
    with pytest.raises(InputError, match=f"`{argument}` has a different pandas index"):
        use(*rows)


def test_indexes_of_several_levels_are_compared_like_any_other():
    with pytest.raises(InputError, match=r"in a different order.*groups\.loc\[scores\.index\]"):
        fairramp.fit_rule(LEVELS.score, LEVELS.group[::-1])
    fairramp.fit_rule(LEVELS.score, LEVELS.copy().group)


@pytest.mark.parametrize("name", USES)
def test_equal_indexes_pass_even_if_they_are_different_objects(name):
    use, *_ = USES[name]
    copy = ROWS.copy()
    copy.index = pd.Index(ROWS.index.tolist())
    use(ROWS, copy)


def test_the_line_that_the_message_proposes_gives_the_right_rule():
    right = fairramp.fit_rule(ROWS.score, ORDERED.group.loc[ROWS.score.index])
    assert right.ramps == RULE.ramps


def test_other_rows_raise_with_both_ways_out():
    groups = ROWS.group.reset_index(drop=True).set_axis(np.arange(N) + 7)
    with pytest.raises(InputError) as error:
        fairramp.fit_rule(ROWS.score, groups)
    assert str(error.value) == (
        "`groups` has a different pandas index from `scores`, and rows are matched by position; if row i of both "
        "is the same person, pass groups.to_numpy(); otherwise join them by index first."
    )
    assert fairramp.fit_rule(ROWS.score, groups.to_numpy()).ramps == RULE.ramps


def test_repeated_index_values_pass_if_equal_and_are_never_looked_up():
    twice = np.arange(N) // 2
    score, group = ROWS.score.set_axis(twice), ROWS.group.set_axis(twice)
    assert fairramp.fit_rule(score, group).ramps == RULE.ramps
    with pytest.raises(InputError, match=r"pass groups.to_numpy\(\)"):
        fairramp.fit_rule(score, group.set_axis(twice[::-1]))


def test_columns_of_one_argument_must_have_one_index():
    columns = {"group": ROWS.group, "stratum": ORDERED.stratum}
    for groups in (columns, list(columns.values())):
        with pytest.raises(InputError, match="The columns of `groups` have different pandas indexes"):
            fairramp.fit_rule(ROWS.score.to_numpy(), groups)
    with pytest.raises(InputError, match="The columns of `group_probabilities` have different pandas indexes"):
        GroupProbabilities({"a": ROWS.score, "b": 1 - ORDERED.score})


def test_columns_without_an_index_are_matched_by_position():
    for groups in (ROWS.group.to_numpy(), ROWS.group.tolist(), pl.Series("group", ROWS.group.tolist())):
        assert fairramp.fit_rule(ROWS.score, groups).ramps == RULE.ramps


def test_other_lengths_are_reported_as_such():
    with pytest.raises(InputError, match="has 199 rows but `scores` has 200"):
        fairramp.fit_rule(ROWS.score, ROWS.group[:-1])


def test_one_table_never_raises():
    rule = fairramp.fit_frame(ROWS, score="score", group=["group", "stratum"], label="label", weight="weight")
    assert rule.apply(ROWS, id="id", key=KEY).index.equals(ROWS.index)


def test_what_has_no_index_is_not_mistaken_for_a_pandas_column():
    for column in ([1, 2], (1, 2), "ab", np.arange(2), pl.Series([1, 2]), None, range(2)):
        assert index_of(column) is None


def test_under_fairlearns_name_rows_are_matched_by_position_and_another_order_warns():
    model = ThresholdOptimizer(estimator=MODEL, prefit=True)
    x, y = ROWS[["score"]], ROWS.label
    expected = model.fit(x, y, sensitive_features=ROWS.group)._pmf_predict(x, sensitive_features=ROWS.group)
    other = ROWS.group.set_axis(ORDERED.index)
    words = (
        "sensitive_features has the index values of X in a different order; as in Fairlearn, rows are matched by "
    )
    with pytest.warns(FairrampWarning, match=words):
        model.fit(x, y, sensitive_features=other)
    with pytest.warns(FairrampWarning, match=words):
        found = model._pmf_predict(x, sensitive_features=other)
    np.testing.assert_array_equal(found, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(x, y, sensitive_features=LEVELS.group)
        found = model.fit(x, y, sensitive_features=ROWS.group.set_axis(np.arange(N) + 7))._pmf_predict(
            x, sensitive_features=ROWS.group.set_axis(np.arange(N) + 7)
        )
    np.testing.assert_array_equal(found, expected)


def test_indexes_that_pass_are_never_searched_for_repeated_values(monkeypatch):
    def refuse(*_):
        raise AssertionError("a hash table of all values is slow")

    monkeypatch.setattr(pd.Index, "is_unique", property(refuse))
    copy = ROWS.group.set_axis(pd.Index(ROWS.index.tolist()))
    fairramp.fit_rule(ROWS.score, copy, ROWS.label, sample_weight=ROWS.weight)
