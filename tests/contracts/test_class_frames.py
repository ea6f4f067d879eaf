"""Tables in memory and DuckDB give the rule, the decisions and the row order of NumPy for several classes."""

import duckdb
import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fairramp
from class_samples import class_people
from engines import DISTRIBUTED, IN_MEMORY, columns_of, table
from fairramp import ClassRule, InputError, UnseenGroupError, UnsupportedError
from samples import KEY

pytestmark = pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")

SUPPORTED = (*IN_MEMORY, "duckdb")
SCORES = {"low": "p_low", "mid": "p_mid", "high": "p_high"}
#: How far chances of the same rows may differ if another engine fits or applies.
CLOSE = 1e-9


@pytest.fixture(params=["loaded", "summed"])
def either_size(request, monkeypatch):
    """Fit small relations both ways: with all rows in memory, and with sums and the rows in doubt."""
    if request.param == "summed":
        monkeypatch.setattr("fairramp.fit.class_lazy.FEW_ROWS", 0)
        monkeypatch.setattr("fairramp.fit.class_lazy.SAMPLED_PER_GROUP", 100)
        monkeypatch.setattr("fairramp.fit.class_lazy.SAMPLED", 100)


@pytest.fixture(params=[0, 16], ids=["looked up", "compared"])
def either_way(request, monkeypatch):
    """Find groups both ways: by lookup, as for many groups, and by comparison, as for few."""
    monkeypatch.setattr("fairramp.deploy.engines.class_duckdb.FEW_GROUPS", request.param)


def some_rows(n=900, seed=0, labels=("f", "m", None), digits=None):
    p, groups, y = class_people(n, len(SCORES), len(labels), seed)
    if digits is not None:
        p = np.round(p, digits)
        p[:, 0] += 1 - p.sum(axis=1)
        p = np.abs(p) / np.abs(p).sum(axis=1, keepdims=True)
    rng = np.random.default_rng(seed)
    sure = rng.dirichlet([0.5, 0.5], n)
    return {
        **{name: column.tolist() for name, column in zip(SCORES.values(), p.T, strict=True)},
        "sex": [labels[int(g[1:])] for g in groups.tolist()],
        "race": rng.integers(0, 3, n).tolist(),
        "n": rng.choice([0.0, 0.5, 1.0, 3.0], n).tolist(),
        "q_f": sure[:, 0].tolist(),
        "q_m": sure[:, 1].tolist(),
        "y": [list(SCORES)[i] for i in y.tolist()],
        "who": [f"é{i}" for i in range(n)],
        "number": list(range(n)),
    }


def scores_of(rows):
    return {label: rows[name] for label, name in SCORES.items()}


#: How rows are grouped: arguments of `fit_frame`, and of `fit_class_rule`.
GROUPINGS = {
    "one column": ({"group": "sex"}, lambda rows: {"groups": {"sex": rows["sex"]}}),
    "intersections": (
        {"group": ["sex", "race"]},
        lambda rows: {"groups": {"sex": rows["sex"], "race": rows["race"]}},
    ),
    "strata": (
        {"group": "sex", "strata": "race"},
        lambda rows: {"groups": {"sex": rows["sex"]}, "strata": {"race": rows["race"]}},
    ),
    "group probabilities": (
        {"group_probability": {"f": "q_f", "m": "q_m"}},
        lambda rows: {"groups": fairramp.GroupProbabilities({"f": rows["q_f"], "m": rows["q_m"]})},
    ),
}
groupings = pytest.mark.parametrize(("names", "arrays"), GROUPINGS.values(), ids=GROUPINGS)


def same_rule(found, expected, rows, arrays):
    assert found.groups == expected.groups
    assert found.classes == expected.classes
    assert found.record.rows == expected.record.rows
    assert found.record.fingerprint == expected.record.fingerprint
    for name in ("before", "after", "at_random"):
        np.testing.assert_allclose(getattr(found.record, name), getattr(expected.record, name), atol=CLOSE)
    both = [rule.probabilities(scores_of(rows), **arrays) for rule in (found, expected)]
    np.testing.assert_allclose(*both, atol=CLOSE, rtol=0)


# Fitting


@pytest.mark.parametrize("engine", SUPPORTED)
@groupings
@pytest.mark.parametrize("weight", [None, "n"])
@pytest.mark.parametrize("max_gap", [0, 0.05])
def test_every_engine_fits_the_rule_of_fit_class_rule(engine, names, arrays, weight, max_gap, either_size):
    rows = some_rows()
    given = arrays(rows)
    expected = fairramp.fit_class_rule(
        scores_of(rows), **given, sample_weight=rows[weight] if weight else None, max_gap=max_gap
    )
    found = fairramp.fit_frame(
        table(engine, rows), class_score=SCORES, **names, weight=weight, max_gap=max_gap, date="today"
    )
    same_rule(found, expected, rows, given)
    assert found.record.weighted == (weight is not None)
    assert found.record.date == "today"
    assert found.columns.class_scores == ("p_low", "p_mid", "p_high")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1e-3, 0.1, 2.0]), st.sampled_from([None, 1]))
def test_sums_and_rows_in_doubt_suffice(monkeypatch, seed, width, digits):
    for name in ("FEW_ROWS", "SAMPLED", "SAMPLED_PER_GROUP"):
        monkeypatch.setattr(f"fairramp.fit.class_lazy.{name}", 50 if "SAMPLED" in name else 0)
    rows = some_rows(400, seed, digits=digits)
    expected = fairramp.fit_class_rule(scores_of(rows), {"sex": rows["sex"]}, ramp_width=width)
    found = fairramp.fit_frame(table("duckdb", rows), class_score=SCORES, group="sex", ramp_width=width)
    np.testing.assert_allclose(found.record.after, expected.record.after, atol=CLOSE)
    assert found.record.fingerprint == expected.record.fingerprint


def test_own_decisions_that_meet_the_limit_are_kept():
    rows = some_rows()
    found = fairramp.fit_frame(table("duckdb", rows), class_score=SCORES, group="sex", max_gap=1)
    assert found.ramp_width == 0
    assert not np.any(found.offsets)


@pytest.mark.parametrize("labels", [(True, False), (3, -1, 12), ("1", "2"), (1.0, 2.0, None), ("it's", "", None)])
@pytest.mark.parametrize("engine", SUPPORTED)
def test_every_type_of_groups(engine, labels, either_way, either_size):
    rows = some_rows(300, labels=labels)
    frame = table(engine, rows)
    found = fairramp.fit_frame(frame, class_score=SCORES, group="sex")
    given = {"groups": rows["sex"]}
    same_rule(found, fairramp.fit_class_rule(scores_of(rows), rows["sex"]), rows, given)
    check_applied(found, frame, rows, given)


@pytest.mark.parametrize("classes", [(0, 1, 2), (True, False), ("a b", "it's", "é")])
@pytest.mark.parametrize("engine", SUPPORTED)
def test_classes_keep_their_type_and_order(engine, classes):
    p, groups, _ = class_people(200, len(classes))
    rows = {f"p{i}": column.tolist() for i, column in enumerate(p.T)} | {"g": groups.tolist()}
    rows["number"] = list(range(200))
    columns = {label: f"p{i}" for i, label in reversed(list(enumerate(classes)))}
    rule = fairramp.fit_frame(table(engine, rows), class_score=columns, group="g")
    assert [(type(c), c) for c in rule.classes] == [(type(c), c) for c in reversed(classes)]
    found = columns_of(rule.apply(table(engine, rows), id="number", key=KEY))
    expected = rule.decide(p[:, ::-1], groups, ids=rows["number"], key=KEY)
    assert found["decision"] == expected.tolist()
    assert {type(label) for label in found["decision"]} == {type(classes[0])}
    assert [*found][-len(classes) - 1 : -1] == [f"probability_{label}" for label in rule.classes]


# Applying


def check_applied(rule, frame, rows, arrays, **names):
    before = columns_of(frame)
    found = columns_of(rule.apply(frame, id="who", key=KEY, **names))
    new = [f"probability_{label}" for label in rule.classes]
    assert [*found] == [*before, *new, "decision"]
    assert found["number"] == rows["number"]
    chances = np.array([found[name] for name in new]).T
    np.testing.assert_allclose(chances, rule.probabilities(scores_of(rows), **arrays), atol=CLOSE, rtol=0)
    decided = rule.decide(scores_of(rows), **arrays, ids=rows["who"], key=KEY)
    assert found["decision"] == decided.tolist()
    return chances


@pytest.mark.parametrize("engine", SUPPORTED)
@groupings
@pytest.mark.parametrize("max_gap", [0, 1])
def test_every_engine_decides_like_numpy(engine, names, arrays, max_gap, either_way):
    rows = some_rows(digits=2)
    frame = table(engine, rows)
    rule = fairramp.fit_frame(frame, class_score=SCORES, **names, max_gap=max_gap, ramp_width=0.3)
    chances = check_applied(rule, frame, rows, arrays(rows))
    unsure = (chances.max(axis=1) < 1).mean()
    assert unsure == 0 if max_gap else 0.2 < unsure < 0.9


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.sampled_from([0, 1e-6, 0.02, 0.5, 30.0]))
def test_any_rule_decides_alike_in_duckdb(seed, n_classes, width):
    rng = np.random.default_rng(seed)
    p, groups, _ = class_people(60, n_classes, 3, seed % 97)
    offsets = rng.normal(0, 0.2, (3, n_classes)) if width else np.zeros((3, n_classes))
    labels = rng.permutation(n_classes).tolist()
    rule = ClassRule(("g0", "g1", "g2"), labels, offsets.tolist(), width)
    frame = table("duckdb", {f"p{c}": p[:, c].tolist() for c in range(n_classes)} | {"g": groups, "i": range(60)})
    columns = {label: f"p{c}" for c, label in enumerate(labels)}
    found = columns_of(rule.apply(frame, class_score=columns, group="g", id="i", key=KEY))
    chances = np.array([found[f"probability_{label}"] for label in labels]).T
    np.testing.assert_array_equal(chances, rule.probabilities(p, groups))
    assert found["decision"] == rule.decide(p, groups, ids=range(60), key=KEY).tolist()


@pytest.mark.parametrize("engine", SUPPORTED)
def test_groups_that_were_not_fitted(engine, either_way):
    rows = some_rows(labels=("f", "m"))
    new = some_rows(seed=1, labels=("f", "x", None))
    frame = table(engine, rows)
    rule = fairramp.fit_frame(frame, class_score=SCORES, group="sex")
    with pytest.raises(UnseenGroupError, match=r"Groups not in the fit rows: \['x', \(missing\)\]"):
        rule.apply(table(engine, new))
    rule = fairramp.fit_frame(frame, class_score=SCORES, group="sex", unseen_group="original")
    chances = check_applied(rule, table(engine, new), new, {"groups": new["sex"]})
    unseen = np.array([group != "f" for group in new["sex"]])
    assert set(chances[unseen].ravel()) == {0.0, 1.0}


def test_text_is_no_number_and_a_boolean_is_neither(either_way):
    rows = some_rows(100, labels=(1, 2))
    rule = fairramp.fit_frame(table("duckdb", rows), class_score=SCORES, group="sex")
    with pytest.raises(UnseenGroupError):
        rule.apply(table("duckdb", rows | {"sex": [str(g) for g in rows["sex"]]}))
    rule = fairramp.fit_frame(table("duckdb", rows), class_score=SCORES, group="sex", unseen_group="original")
    check_applied(rule, table("duckdb", rows | {"sex": ["1"] * 100}), rows, {"groups": ["1"] * 100})


@pytest.mark.parametrize("engine", SUPPORTED)
def test_columns_may_have_other_names_and_order(engine):
    rows = some_rows(labels=("f", "m"))
    rule = fairramp.fit_frame(table(engine, rows), class_score=SCORES, group="sex")
    renamed = {"select" if name == "p_mid" else "a b" if name == "sex" else name: v for name, v in rows.items()}
    columns = {"high": "p_high", "low": "p_low", "mid": "select"}
    given = {"groups": {"sex": rows["sex"]}}
    check_applied(rule, table(engine, renamed), rows, given, class_score=columns, group="a b")


def test_hostile_names_are_quoted():
    p, groups, _ = class_people(50, 2)
    names = ['a"b', "x'; DROP TABLE t; --"]
    rows = {names[0]: p[:, 0].tolist(), names[1]: p[:, 1].tolist(), "FairRamp_u": groups.tolist(), "i": range(50)}
    rule = ClassRule(("g0", "g1"), ("it's", 'q"'), ((0.0, 0.0), (0.1, -0.1)), 0.5)
    frame = table("duckdb", rows)
    columns = dict(zip(rule.classes, names, strict=True))
    found = columns_of(rule.apply(frame, class_score=columns, group="FairRamp_u", id="i", key=KEY))
    assert found["decision"] == rule.decide(p, groups, ids=range(50), key=KEY).tolist()
    assert [*found] == [*rows, "probability_it's", 'probability_q"', "decision"]


def test_relation_stays_lazy_and_the_key_is_in_no_plan():
    rows = some_rows(100, labels=("f", "m"))
    frame = table("duckdb", rows)
    rule = fairramp.fit_frame(frame, class_score=SCORES, group="sex")
    made = rule.apply(frame, id="who", key=KEY)
    assert isinstance(made, duckdb.DuckDBPyRelation)
    assert KEY not in made.explain() + made.sql_query()


def test_rows_that_become_invalid_after_the_check_are_null():
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT 0.5::DOUBLE a, 0.5::DOUBLE b, 'g' AS g, 'x' AS i FROM range(6)")
    rule = ClassRule(("g",), ("n", "y"), ((0.0, 0.0),), 0.5)
    made = rule.apply(con.table("t"), class_score={"n": "a", "y": "b"}, group="g", id="i", key=KEY)
    valid = made.fetchall()[0]
    con.execute(
        "UPDATE t SET a = CASE rowid WHEN 1 THEN NULL WHEN 2 THEN 'nan'::DOUBLE WHEN 3 THEN 0.9 ELSE a END"
    )
    con.execute("UPDATE t SET g = 'h' WHERE rowid = 4")
    con.execute("UPDATE t SET i = NULL WHERE rowid = 5")
    new = [row[4:] for row in made.fetchall()]
    assert new == [valid[4:], *[(None,) * 3] * 4, (*valid[4:6], None)]


# Bad input


@pytest.mark.parametrize("engine", SUPPORTED)
@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("p_low", None, "`probabilities` must be"),
        ("p_low", float("nan"), "`probabilities` must be"),
        ("p_low", -0.1, "`probabilities` must be (numbers )?between 0 and 1"),
        ("p_low", 0.99, "`probabilities` must sum to 1 in every row"),
        ("p_low", "much", "`probabilities` must be numbers"),
        ("q_f", 2.0, "`group_probabilities` must be (numbers )?between 0 and 1"),
        ("q_f", 0.999, "`group_probabilities` must sum to 1 in every row"),
    ],
)
def test_invalid_numbers_are_refused_at_once(engine, column, value, told):
    rows = some_rows(100, labels=("f", "m"))
    names = {"group_probability": {"f": "q_f", "m": "q_m"}}
    rule = fairramp.fit_frame(table(engine, rows), class_score=SCORES, **names)
    wrong = [str(x) for x in rows[column]] if isinstance(value, str) else rows[column]
    frame = table(engine, rows | {column: [*wrong[:50], value, *wrong[51:]]})
    for work in (lambda: rule.apply(frame), lambda: fairramp.fit_frame(frame, class_score=SCORES, **names)):
        with pytest.raises(InputError, match=told):
            work()


@pytest.mark.parametrize("engine", ["polars-lazy", *DISTRIBUTED])
def test_other_engines_are_refused_by_name(engine):
    rows = some_rows(40, labels=("f", "m"))
    rule = fairramp.fit_frame(table("pandas", rows), class_score=SCORES, group="sex")
    frame = table(engine, rows)
    name = {"polars-lazy": "polars", "dask": "Dask", "spark": "Spark"}[engine]
    told = f"lazy tables of {name}; collect the table first, or use DuckDB"
    for work in (
        lambda: fairramp.fit_frame(frame, class_score=SCORES, group="sex"),
        lambda: rule.apply(frame),
    ):
        with pytest.raises(UnsupportedError, match=told):
            work()


def test_arguments_are_checked():
    rows = some_rows(60, labels=("f", "m"))
    frame = table("pandas", rows)
    rule = fairramp.fit_frame(frame, class_score=SCORES, group="sex")
    told = {
        "Pass either `score` or `class_score`": [{}, {"score": "p_low", "class_score": SCORES}],
        "`class_score` must be a dict of classes": [{"class_score": "p_low"}, {"class_score": {}}],
        "at least two classes": [{"class_score": {"low": "p_low"}}],
        "`class_score` names the same column twice": [{"class_score": {"low": "p_low", "mid": "p_low"}}],
        "no column 'p_lov'; did you mean 'p_low'": [{"class_score": SCORES | {"low": "p_lov"}}],
        "`label`, and measure accuracy with fairramp.audit_classes": [{"class_score": SCORES, "label": "y"}],
        "does not support `criterion='equal_opportunity'`; remove it": [
            {"class_score": SCORES, "criterion": "equal_opportunity"}
        ],
        "does not support `higher_is_better=False`": [{"class_score": SCORES, "higher_is_better": False}],
        "`unseen_group` must be": [{"class_score": SCORES, "unseen_group": "pooled"}],
        "`ramp_width` must be": [{"class_score": SCORES, "ramp_width": 0}],
    }
    told |= {
        f"does not support `{name}": [{"class_score": SCORES, name: value}]
        for name, value in {
            "min_ratio": 0.8,
            "target_rate": 0.3,
            "costs": (2, 1),
            "overall_rate": 0.2,
            "combine": "each",
            "solver": "sgd",
            "confidence": 0.9,
            "small_groups": "borrow",
            "cutoff": 0.4,
            "scale": "percent",
            "ramp": "paper",
        }.items()
    }
    for sentence, cases in told.items():
        for case in cases:
            with pytest.raises(InputError, match=sentence):
                fairramp.fit_frame(frame, group="sex", **case)
    with pytest.raises(InputError, match="Pass either `group` or `group_probability`"):
        fairramp.fit_frame(frame, class_score=SCORES)
    with pytest.raises(UnsupportedError, match="Group probabilities do not support `strata`"):
        fairramp.fit_frame(frame, class_score=SCORES, group_probability={"f": "q_f", "m": "q_m"}, strata="race")
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_gab'; did you mean 'max_gap'"):
        fairramp.fit_frame(frame, class_score=SCORES, group="sex", max_gab=0)
    with pytest.raises(UnsupportedError, match="SQL does not support several classes"):
        rule.to_sql("postgres")


@pytest.mark.parametrize("engine", SUPPORTED)
def test_new_columns_must_have_new_names(engine):
    rows = some_rows(60, labels=("f", "m"))
    frame = table(engine, rows | {"probability_mid": rows["p_mid"]})
    rule = fairramp.fit_frame(frame, class_score=SCORES, group="sex")
    with pytest.raises(InputError, match="already has a column 'probability_mid'; pass a prefix"):
        rule.apply(frame)
    assert "fair_probability_mid" in columns_of(rule.apply(frame, prefix="fair_"))


def test_apply_checks_its_arguments():
    rows = some_rows(60, labels=("f", "m"))
    frame = table("pandas", rows)
    rule = fairramp.fit_frame(frame, class_score=SCORES, group="sex")
    cases = {
        "Repeatable decisions need both": {"id": "who"},
        "`key` must be 64": {"id": "who", "key": "secret"},
        "must name the columns of the rule's classes": {"class_score": {"low": "p_low"}},
        "The table has no column 'whom'": {"id": "whom", "key": KEY},
        "does not use `strata`": {"strata": "race"},
    }
    for sentence, case in cases.items():
        with pytest.raises(InputError, match=sentence):
            rule.apply(frame, **case)
    alike = ClassRule(("f", "m"), ("Low", "low"), ((0.0, 0.0), (0.1, -0.1)))
    with pytest.raises(InputError, match="two classes would have the same name, 'probability_low'"):
        alike.apply(frame, class_score={"Low": "q_f", "low": "q_m"}, group="sex")
    mixed = ClassRule(("f", "m"), ("one", 2), ((0.0, 0.0), (0.1, -0.1)))
    with pytest.raises(InputError, match="have several types, and a column of decisions has one"):
        mixed.apply(frame, class_score={"one": "q_f", 2: "q_m"}, group="sex", id="who", key=KEY)


def test_expected_rows_of_a_tie_do_not_depend_on_the_engine():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 2, 3], 3000)
    chance = rng.permutation(np.where(np.arange(3000) < 1437, 0.8, 0.3))  # sums to 1,618.5
    frame = pandas.DataFrame(p, columns=["a", "b", "c"]).assign(f=chance, m=1 - chance)
    named = {"class_score": {"x": "a", "y": "b", "z": "c"}, "group_probability": {"F": "f", "M": "m"}}
    rules = [fairramp.fit_frame(table, **named) for table in (frame, duckdb.from_df(frame))]
    assert rules[0].record.rows == rules[1].record.rows
    assert rules[0].record.fingerprint == rules[1].record.fingerprint


def test_decisions_between_integers_have_64_bits_in_every_engine():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.dirichlet([1, 2, 3], 60), columns=["a", "b", "c"])
    frame = frame.assign(g=rng.choice(["F", "M"], 60), id=range(60))
    rule = fairramp.fit_frame(frame, class_score={0: "a", 1: "b", 2: "c"}, group="g")
    made = [rule.apply(table, id="id", key="0" * 64) for table in (frame, duckdb.from_df(frame))]
    decided = [made[0].decision, made[1].df().decision]
    assert [column.dtype for column in decided] == [np.int64, np.int64]
    assert decided[0].tolist() == decided[1].tolist()
