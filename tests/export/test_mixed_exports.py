"""Rules by group probabilities and by each attribute decide 100,000 rows like plain NumPy, everywhere."""

import re

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from cases import KEY
from databases import ALL, SPARK, arrow, database
from mixed import CASES, IDS, NAMED, SCORE, SHARES, VALUES, each, soft
from test_onnx import run, texts
from test_sql import _agree, _scores
from test_sql_unrun import UNRUN, _translated

from engines import ENGINES, LAZY, columns_of, table
from fairramp import GroupProbabilities, InputError, Ramp, Rule, UnseenGroupError, fit_rule
from fairramp.datasets import load_adult_scores
from fairramp.deploy import sql
from fairramp.deploy.onnx import append_to, to_onnx

FEW = slice(0, 10_000)
every = pytest.mark.parametrize(("make", "settings"), CASES, ids=NAMED)
both = pytest.mark.parametrize(
    "make", [soft, each, lambda: each(unseen_group="original")], ids=["soft", "each", "own"]
)
on = pytest.mark.parametrize("db", ALL, indirect=True)


def same(probability, decision, made, rows=slice(None)):
    np.testing.assert_allclose(np.asarray(probability, dtype=float), made.probability[rows], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(decision, made.decision[rows])


@every
def test_rows_are_of_every_kind(make, settings):
    made = make(**settings)
    p = made.probability
    for kind in (np.isnan(p), p == 0, p == 1, (p > 0) & (p < 1)):
        assert kind.sum() > 200
    assert len(p) == 100_000


# Python ---------------------------------------------------------------------------------------


@every
def test_arrays_and_a_saved_rule_match_numpy(make, settings, tmp_path):
    made = make(**settings)
    rows = made.decidable
    made.rule.save(tmp_path / "rule.json")
    for rule in (made.rule, Rule.load(tmp_path / "rule.json")):
        given, ids = (made.score[rows], made.groups(rows)), [IDS[i] for i in rows]
        same(rule.probabilities(*given), rule.decide(*given, ids=ids, key=KEY), made, rows)


@both
@pytest.mark.parametrize("engine", ENGINES)
def test_100000_rows_match_numpy_on_every_engine(engine, make):
    made = make()
    rows = made.decidable
    frame = table(engine, made.table(rows))
    found = columns_of(made.rule.apply(frame, **made.names, id="who", key=KEY, prefix="fair_"))
    np.testing.assert_array_equal(found["number"], rows)
    same(found["fair_probability"], found["fair_decision"], made, rows)


@every
@pytest.mark.parametrize("engine", ["duckdb", "polars-lazy"])
def test_every_kind_of_rule_on_lazy_tables(engine, make, settings):
    made = make(**settings)
    rows = made.decidable[FEW]
    found = columns_of(made.rule.apply(table(engine, made.table(rows)), **made.names, id="who", key=KEY))
    same(found["probability"], found["decision"], made, rows)


@pytest.mark.parametrize("engine", ENGINES)
def test_rule_of_a_fit_finds_its_columns(engine):
    rows = {"p": [0.2, 0.4, 0.6, 0.8] * 30, "a": ["x", "y"] * 60, "b": [1, 1, 2, 2, 2, 1] * 20}
    rule = fit_rule(rows["p"], {"a": rows["a"], "b": rows["b"]}, combine="each", ramp_width=0.3)
    found = columns_of(rule.apply(table(engine, rows | {"number": [*range(120)]}), score="p"))["probability"]
    np.testing.assert_allclose(found, rule.probabilities(rows["p"], {"a": rows["a"], "b": rows["b"]}), atol=1e-12)


BAD = {
    "missing": ([0.5, None, None, 0.1], [0.5, 0.5, 0.5, 0.9], "must be .*numbers.*", 2),
    "not a number": ([0.5, float("nan"), 0.3, 0.1], [0.5, 0.5, 0.7, 0.9], "must be .*numbers.*", 1),
    "out of range": ([0.5, -0.5, 1.5, 0.1], [0.5, 1.5, -0.5, 0.9], "must be .*between 0 and 1", 2),
    "other sums": ([0.5, 0.5, 0.5, 0.1], [0.5, 0.6, 0.50001, 0.9], "must sum to 1 in every row", 2),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", BAD)
def test_invalid_probabilities_raise_at_once(engine, kind):
    one, other, message, n = BAD[kind]
    rule = Rule(("f", "m"), (Ramp(0.4, 0.1), Ramp(0.6, 0.1)), membership="probabilities")
    frame = table(engine, {"p": [0.1, 0.2, 0.3, 0.4], "f": one, "m": other})
    with pytest.raises(InputError, match=message) as caught:
        rule.apply(frame, score="p", group_probability={"m": "m", "f": "f"})
    if engine in ("polars-lazy", "duckdb", "dask", "spark"):
        assert f"in {n} row{'s' if n > 1 else ''}" in str(caught.value)


@pytest.mark.parametrize("engine", LAZY)
def test_text_is_not_a_probability(engine):
    rule = Rule(("f", "m"), (Ramp(0.4, 0.1), Ramp(0.6, 0.1)), membership="probabilities")
    with pytest.raises(InputError, match=r"`group_probabilities` must be numbers, got text"):
        rule.apply(
            table(engine, {"p": [0.1], "f": ["1"], "m": ["0"]}), score="p", group_probability={"f": "f", "m": "m"}
        )


@pytest.mark.parametrize("engine", ENGINES)
def test_unseen_values_are_named_with_their_attribute(engine):
    made = each()
    frame = table(engine, made.table([1, 2, 5002]))
    with pytest.raises(UnseenGroupError, match=re.escape("[('unit no', 77)]")):
        made.rule.apply(frame, **made.names)


def test_unseen_intersections_of_known_values_are_decided():
    groups = (("a", "x"), ("a", "y"), ("b", 1), ("b", 2))
    feet = (0.5, 0.3, 0.45, 0.35)
    rule = Rule(
        groups, tuple(Ramp(f, 0.2) for f in feet), target_rate=None, membership="each", base=Ramp(0.4, 0.2)
    )
    rows = {"p": [0.5] * 4, "a": ["x", "x", "y", "y"], "b": [1, 2, 1, 2]}
    expected = np.clip((0.5 - np.array([0.55, 0.45, 0.35, 0.25])) / 0.2, 0, 1)
    con = duckdb.connect()
    con.register("given", arrow(**rows))
    found = rule.apply(con.table("given"), score="p", group=["a", "b"]).fetchall()
    np.testing.assert_allclose([row[-1] for row in found], expected, atol=1e-12)


def test_types_that_cannot_hold_a_value_are_other_values():
    made = each(unseen_group="original")
    rows = made.decidable[:1000]
    given = made.table(rows)
    given["unit no"] = [str(unit) for unit in given["unit no"]]
    found = columns_of(made.rule.apply(table("duckdb", given), **made.names))["probability"]
    np.testing.assert_array_equal(found, (made.score[rows] >= made.rule.cutoff).astype(float))


# SQL ------------------------------------------------------------------------------------------


def load(db, made, rows=slice(None)):
    """A table of rows in which missing numbers alternate between NULL and NaN."""
    columns = {
        name: _scores(np.array(column[rows])) if isinstance(column[0], float) else column[rows]
        for name, column in made.columns.items()
    }
    given = {"n": np.arange(len(IDS[rows])), SCORE: _scores(made.score[rows])}
    db.create("t", arrow(**given, **columns, who=IDS[rows]))
    db.create("keys", arrow(key=[KEY]))


def draw(db):
    return {"id": "who", "key_table": "keys"} if db.decides else {}


@on
@both
def test_100000_rows_match_numpy_in_databases(db, make):
    made = make()
    load(db, made)
    text = made.rule.to_sql(db.dialect, table="t", **made.names, **draw(db))
    _agree(db, text, made.probability, made.decision)


@on
@every
def test_every_kind_of_rule_as_select_and_as_expressions(db, make, settings):
    made = make(**settings)
    load(db, made, FEW)
    items = sql.expressions(made.rule, db.dialect, **made.names, **draw(db)).values()
    pasted = f"SELECT n, {', '.join(f'{text} AS new{i}' for i, text in enumerate(items))} FROM t"
    for text in (made.rule.to_sql(db.dialect, table="t", **made.names, **draw(db)), pasted):
        _agree(db, text, made.probability[FEW], made.decision[FEW])


@both
@pytest.mark.parametrize("dialect", UNRUN)
def test_translated_to_duckdb_it_matches_numpy(dialect, make):
    made, db = make(), database("duckdb")
    load(db, made, FEW)
    text = made.rule.to_sql(dialect, table="t", **made.names, id="who", key_table="keys")
    _agree(db, _translated(text, dialect), made.probability[FEW], made.decision[FEW])
    db.clear()


@pytest.mark.parametrize("db", [p for p in ALL if p != SPARK], indirect=True)
def test_view_of_a_mixed_rule(db):
    made = soft()
    load(db, made, FEW)
    db.rows(
        made.rule.to_sql(db.dialect, table="t", view="fair", **made.names, **draw(db)).rstrip().removesuffix(";")
    )
    _agree(db, "SELECT * FROM fair", made.probability[FEW], made.decision[FEW])


@on
def test_probabilities_near_0_do_not_underflow(db):
    rule = Rule(("f", "m"), (Ramp(0.3, 0.1), Ramp(0.5, 0.1)), cutoff=0.45, membership="probabilities")
    tiny = np.array([5e-324, 1e-310, 1e-300, 0.0])
    db.create("t", arrow(n=np.arange(4), p=np.full(4, 0.5), f=tiny, m=np.ones(4)))
    db.create("keys", arrow(key=[KEY]))
    text = rule.to_sql(db.dialect, table="t", score="p", group_probability={"f": "f", "m": "m"})
    np.testing.assert_allclose(db.columns(text)[-1], np.zeros(4), atol=1e-9)


@on
def test_thousands_of_values(db):
    n = 3000
    rng = np.random.default_rng(1)
    shifts = rng.uniform(-0.1, 0.1, n)
    rule = Rule(
        (*(("a", f"value {k}") for k in range(n)), ("b", True)),
        tuple(Ramp(0.4 + shift, 0.2) for shift in (*shifts, 0.0)),
        target_rate=None,
        membership="each",
        base=Ramp(0.4, 0.2),
    )
    rows = 20_000 if db.decides else 500  # SQLite compares them one by one
    score, code = rng.random(rows), rng.integers(0, n, rows)
    db.create("t", arrow(n=np.arange(rows), p=score, a=[f"value {k}" for k in code], b=[True] * rows))
    found = db.columns(rule.to_sql(db.dialect, table="t", score="p", group=["a", "b"]))[-1]
    np.testing.assert_allclose(found, np.clip((score - 0.4 - shifts[code]) / 0.2, 0, 1), atol=1e-9)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark", "snowflake", "bigquery", "sqlite", "mysql"])
def test_header_names_the_columns_of_the_probabilities(dialect):
    made = soft()
    head = [line for line in made.rule.to_sql(dialect, **made.names).splitlines() if line.startswith("--")]
    assert "-- probability of group (missing): column it<U+0027>s <U+263A>, from 0 to 1" in head
    assert sum(line.startswith("-- probability of group") for line in head) == len(SHARES)
    assert not any("not in the fit rows" in line for line in head)
    lines = each().rule.to_sql(dialect, score="p", group=["x", "y", "z"]).splitlines()
    assert {"-- group: column y, integers", "-- groups not in the fit rows: NULL"} <= set(lines)


def test_names_of_the_wrong_kind_raise():
    with pytest.raises(InputError, match="pass `group_probability`"):
        soft().rule.to_sql("duckdb", score="p", group="g")
    with pytest.raises(InputError, match="no `group_probability`"):
        each().rule.to_sql("duckdb", score="p", group=["a", "b", "c"], group_probability=SHARES)
    with pytest.raises(InputError, match=r"`group` must name 3 columns"):
        each().rule.to_sql("duckdb", score="p", group=["a", "b"])


# ONNX -----------------------------------------------------------------------------------------


@every
def test_100000_rows_match_numpy_in_onnx(make, settings):
    made = make(**settings)
    if made.rule.base is None:
        feed = {"shares": np.array([*made.columns.values()]).T.copy()}
        model = to_onnx(made.rule, decisions=True, group_probability="shares")
    else:
        sex, unit, last = made.columns.values()
        feed = {
            "sex's": texts(["-" if value is None else value for value in sex]),
            "unit no": np.array([-99 if value is None else value for value in unit], dtype=np.int64),
            "group": np.array([value is True for value in last]),
        }
        model = to_onnx(made.rule, decisions=True, group=[*VALUES], missing={"sex's": "-"})
    found = run(model, score=made.score, u=made.u, **feed)
    rows = np.arange(len(made.score))
    if made.rule.base is not None:  # a tensor of booleans has no missing value
        rows = np.array([i for i in rows if made.columns["group"][i] is not None])
    same(found["probability"][rows], found["decision"][rows], made, rows)


def test_model_lists_the_groups_of_its_probabilities():
    import json

    model = to_onnx(soft().rule)
    (put,) = [tensor for tensor in model.graph.input if tensor.name == "group_probability"]
    assert [dim.dim_param or dim.dim_value for dim in put.type.tensor_type.shape.dim] == ["rows", len(SHARES)]
    about = {prop.key: prop.value for prop in model.metadata_props}
    assert json.loads(about["fairramp.inputs"])["groups"] == ["F'", "μαύρος", "(missing)", "3"]


@pytest.mark.parametrize("shape", [(4, 3), (5, 4), (4,)])
def test_tables_of_another_shape_raise(shape):
    with pytest.raises(Exception, match=r"(?i)reshape|dimension|rank"):
        run(to_onnx(soft().rule), score=np.full(4, 0.5), group_probability=np.full(shape, 0.25))


def test_mixed_rules_join_a_classifier():
    from test_onnx import own_model

    rule = Rule(("f", "m"), (Ramp(0.4, 0.1), Ramp(0.5, 0.1)), cutoff=0.45, membership="probabilities")
    x, q = (
        np.array([[0.4, 0.6], [0.55, 0.45], [0.6, 0.4]], dtype=np.float32),
        np.array([[1, 0], [0.5, 0.5], [0, 2.0]]),
    )
    found = run(append_to(own_model(), rule), x=x, group_probability=q)["probability"]
    score = x[:2, 1].astype(float)
    np.testing.assert_allclose(found, [*np.clip((score - [0.4, 0.45]) / 0.1, 0, 1), np.nan], atol=1e-9)
    with pytest.raises(InputError, match=r"already uses the name 'x'.*group_probability"):
        append_to(own_model(), rule, group_probability="x")
    pairs = (("a", "f"), ("a", "m"), ("b", 1))
    ramps = (Ramp(0.4, 0.1), Ramp(0.5, 0.1), Ramp(0.43, 0.1))
    by_each = Rule(pairs, ramps, target_rate=None, membership="each", base=Ramp(0.42, 0.1))
    joined = append_to(own_model(), by_each, group=["a", "b"])
    found = run(joined, x=x, a=texts(["f", "m", "f"]), b=np.array([1, 1, 2]))["probability"]
    np.testing.assert_allclose(found, [*np.clip((score - [0.41, 0.51]) / 0.1, 0, 1), np.nan], atol=1e-9)


# Fitted rules ---------------------------------------------------------------------------------


def test_fitted_rules_run_everywhere():
    data = load_adult_scores()
    rng = np.random.default_rng(0)
    female = np.clip((data.sex == "Female") * 0.6 + rng.uniform(0, 0.4, len(data.sex)), 0, 1)
    q = GroupProbabilities({"Female": female, "Male": 1 - female})
    rule = fit_rule(data.score, q, max_gap=0.02)
    expected = rule.probabilities(data.score, q)
    columns = {"p": data.score, "f": female, "m": 1 - female}
    named = {"score": "p", "group_probability": {"Male": "m", "Female": "f"}}
    con = duckdb.connect()
    con.register("t", pa.table(columns))
    found = con.execute(rule.to_sql("duckdb", table="t", **named)).fetchnumpy()["probability"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    model = to_onnx(rule)
    found = run(model, score=data.score, group_probability=np.stack([female, 1 - female], axis=1))["probability"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
