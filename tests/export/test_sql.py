"""Exported SQL matches NumPy: same probabilities, identical decisions, and NULL where there is neither."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from cases import KEY, ODDS, OWN_WIDTHS, REVERSED, case
from databases import ALL, DRAWING, MARIADB, POSTGRES, SPARK, arrow, database

from engines import columns_of, table
from fairramp import Ramp, Rule, fit_rule
from fairramp.datasets import load_adult_scores
from fairramp.deploy import sql
from rules import real_scores

NAMES = {"score": "p", "group": "g"}
DRAW = {"id": "who", "key_table": "keys"}


on = pytest.mark.parametrize("db", ALL, indirect=True)
on_drawing = pytest.mark.parametrize("db", DRAWING, indirect=True)


def _scores(score):
    """Scores in which missing values alternate between NULL and NaN."""
    null = np.isnan(score) & (np.arange(len(score)) % 2 == 0)
    return pa.array(score, mask=null)


def _load(db, score, group, ids, name="t"):
    db.create(name, arrow(n=np.arange(len(ids)), p=_scores(score), g=list(group), who=ids))
    db.create("keys", arrow(key=[KEY]))


def _floats(column):
    return np.array([np.nan if value is None else value for value in column], dtype=np.float64)


def _decisions(column):
    return np.array([-1 if value is None else value for value in column])


def _agree(db, text, probability, decision):
    """Check that a SELECT, sorted by n and with the new columns last, matches NumPy."""
    found = db.columns(text)[-2 if db.decides else -1 :]
    np.testing.assert_allclose(_floats(found[0]), probability, rtol=0, atol=1e-9)
    assert all(value == value for value in found[0] if value is not None)  # missing is NULL, never NaN
    if db.decides:
        np.testing.assert_array_equal(_decisions(found[1]), decision)


def _draw(db):
    return DRAW if db.decides else {}


def _pasted(db, rule, **names):
    """SELECT by the user that contains the exported expressions."""
    items = sql.expressions(rule, db.dialect, **NAMES | names, **_draw(db)).values()
    return f"SELECT n, {', '.join(f'{text} AS new{i}' for i, text in enumerate(items))} FROM t"


def _selected(db, rule, **names):
    """Complete SELECT."""
    return rule.to_sql(db.dialect, table="t", **NAMES | names, **_draw(db))


@on
@pytest.mark.parametrize("settings", [{}, {"dtype": "float32"}, {"higher_is_better": False}, ODDS], ids=str)
def test_100000_rows_match_numpy(db, settings):
    made = case(**settings)
    assert len(made.score) == 100_000
    _load(db, made.score, made.group, made.id)
    _agree(db, _selected(db, made.rule), made.probability, made.decision)


SETTINGS = [
    {},
    {"scale": "percent", "dtype": "float32"},
    {"scale": "signed", "ramp": "paper"},
    {"scale": "logit"},
    {"ramp_width": 0.0},
    {"ramp_width": 0.0, "scale": "logit", "unseen_group": "original"},
    {"ramp_width": 0.0, "scale": "real", "unseen_group": "original"},
    {"unseen_group": "pooled"},
    {"unseen_group": "original", "labels": "whole"},
    {"missing_seen": True, "unseen_group": "pooled"},
    *OWN_WIDTHS,
    *REVERSED,
]


@on
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_every_kind_of_rule_as_select_and_as_expressions(db, settings):
    made, few = case(**settings), slice(0, 10_000)
    _load(db, made.score[few], made.group[few], made.id[few])
    for text in (_selected(db, made.rule), _pasted(db, made.rule)):
        _agree(db, text, made.probability[few], made.decision[few])


@pytest.mark.parametrize("engine", ["duckdb", SPARK])
def test_rule_apply_and_sql_decide_alike(engine):
    made = case(unseen_group="pooled")
    rows = np.flatnonzero(made.decidable)[:20_000]
    given = {"number": rows, "p": made.score[rows], "race": made.group[rows].tolist()}
    frame = table(engine, given | {"who": [made.id[i] for i in rows]})
    found = columns_of(made.rule.apply(frame, score="p", id="who", key=KEY))
    np.testing.assert_allclose(found["probability"], made.probability[rows], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found["decision"], made.decision[rows])


# Groups ---------------------------------------------------------------------------------------


def _several(stratified):
    rng = np.random.default_rng(3)
    n = 2000
    parts = {
        "dept": rng.choice(["Ä", "B", None], n),
        "sex": rng.choice([True, False], n),
        "level": rng.choice([1, 2, -7], n),
    }
    given = {name: values.tolist() for name, values in parts.items()}
    score = rng.random(n).round(3)
    inner = {"sex": given["sex"], "level": given["level"]}
    if stratified:
        two = {"sex": given["sex"]}
        rule = fit_rule(score, two, strata={"dept": given["dept"]}, ramp_width=0.2)
        return score, given, rule, two, {"dept": given["dept"]}
    return score, given, fit_rule(score, given | inner, ramp_width=0.2), given, None


@on
@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.filterwarnings("ignore:.*fewer than 30 rows")
def test_several_columns_strata_and_all_label_types(db, stratified):
    score, given, rule, groups, strata = _several(stratified)
    ids = [f"{i}" for i in range(len(score))]
    db.create("t", arrow(n=np.arange(len(score)), p=score, who=ids, **given))
    db.create("keys", arrow(key=[KEY]))
    probability = rule.probabilities(score, groups, strata)
    decision = rule.decide(score, groups, strata=strata, ids=ids, key=KEY)
    for make in (_selected, _pasted):
        text = make(db, rule, group=None)
        _agree(db, text, probability, decision)


@on
def test_thousands_of_groups(db):
    groups = tuple(f"group {k}" for k in range(5000))
    rule = Rule(groups, tuple(Ramp.centered(0.2 + k / 10_000, 0.5) for k in range(5000)))
    rng = np.random.default_rng(5)
    n = 20_000 if db.decides else 500  # SQLite compares them one by one
    score, place = rng.random(n), rng.integers(0, 5000, n)
    group, ids = np.array(groups, dtype=object)[place], [f"{i}" for i in range(n)]
    _load(db, score, group, ids)
    _agree(db, _selected(db, rule), rule.probabilities(score, group), rule.decide(score, group, ids=ids, key=KEY))


@on
def test_largest_number_of_groups_in_an_expression(db):
    n = sql.MOST_COMPARED
    rule = Rule(tuple(range(n)), tuple(Ramp.centered(0.1 + k / 400, 0.5) for k in range(n)))
    score, ids = np.linspace(0, 1, n), [f"{i}" for i in range(n)]
    _load(db, score, range(n), ids)
    expected = rule.probabilities(score, range(n)), rule.decide(score, range(n), ids=ids, key=KEY)
    _agree(db, _pasted(db, rule), *expected)


@on_drawing
def test_integer_ids_are_hashed_as_decimal_text(db):
    ids = [0, 7, -12, 2**40, 10**18]
    rule = Rule(("a",), (Ramp.centered(0.5, 1.0),))
    score, group = np.full(5, 0.5), np.array(["a"] * 5, dtype=object)
    db.create("t", arrow(n=np.arange(5), p=score, g=list(group), who=ids))
    db.create("keys", arrow(key=[KEY]))
    text = _selected(db, rule)
    _agree(db, text, np.full(5, 0.5), rule.decide(score, group, ids=ids, key=KEY))


@on
def test_integer_scores(db):
    rule = Rule(("a",), (Ramp.centered(0.5, 0.0),), scale="percent", cutoff=50)
    score = np.array([49, 50, 51, 0, 100])
    db.create("t", arrow(n=np.arange(5), p=score, g=["a"] * 5, who=list("vwxyz")))
    db.create("keys", arrow(key=[KEY]))
    found = rule.probabilities(score, ["a"] * 5)
    _agree(db, _selected(db, rule), found, rule.decide(score, ["a"] * 5, ids=list("vwxyz"), key=KEY))


# Undecidable rows -----------------------------------------------------------------------------


@on
@pytest.mark.parametrize("scale", ["probability", "percent", "signed", "logit", "real"])
@pytest.mark.parametrize("policy", ["error", "pooled", "original"])
def test_impossible_scores_are_never_selected(db, scale, policy):
    rule = Rule(
        ("a",),
        (Ramp.centered(-1e308, 1e-6),),
        scale=scale,
        cutoff=0.5,
        unseen_group=policy,
        pooled=Ramp.centered(-1e308, 1e-6) if policy == "pooled" else None,
    )
    bad = [None, float("nan"), float("inf"), -float("inf")]
    outside = {"probability": 1.0000000000000002, "percent": 100.1, "signed": -1.1}
    bad += [outside[scale]] if scale in outside else []
    rows = [(x, g) for x in bad for g in ("a", "other", None)] + [(0.5, "a")]
    score = pa.array([x for x, _ in rows], pa.float64())
    db.create("t", arrow(n=np.arange(len(rows)), p=score, g=[g for _, g in rows], who=["x"] * len(rows)))
    db.create("keys", arrow(key=[KEY]))
    for make in (_selected, _pasted):
        found = db.columns(make(db, rule))[-2 if db.decides else -1 :]
        for column in found:
            assert column[:-1] == [None] * (len(rows) - 1)
            assert column[-1] == 1


@on
def test_extreme_logits_do_not_overflow(db):
    rule = Rule(("a",), (Ramp.centered(0.5, 0.1),), scale="logit", cutoff=0)
    score = np.array([-1e308, -1e4, -746.0, -700.5, 700.5, 746.0, 1e4, 1e308])
    _load(db, score, ["a"] * 8, list("abcdefgh"))
    _agree(db, _selected(db, rule), [0.0] * 4 + [1.0] * 4, [0] * 4 + [1] * 4)


@on
@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("policy", ["original", "pooled"])
def test_extreme_real_scores_match_numpy(db, up, policy):
    rule, score, group = real_scores(up, policy)
    ids = [f"id {i}" for i in range(len(score))]
    _load(db, score, group, ids)
    decided = rule.decide(score, group, ids=ids, key=KEY)
    _agree(db, _selected(db, rule), rule.probabilities(score, group), decided)


@on
@pytest.mark.parametrize("threshold", [-0.5, 1.5])
def test_steps_at_the_largest_logits(db, threshold):
    rule = Rule(("a",), (Ramp.centered(threshold, 0, 0.5),), scale="logit", cutoff=0)
    score = np.array([-1, 0, 1]) * np.finfo(np.float64).max
    _load(db, score, ["a"] * 3, list("abc"))
    _agree(db, _selected(db, rule), [threshold < 0] * 3, [threshold < 0] * 3)


@on
@pytest.mark.parametrize("width", [0.0, 0.5])
def test_percentages_near_0_do_not_underflow(db, width):
    rule = Rule(("a",), (Ramp.centered(0.1, width, 0.5),), scale="percent")
    score = np.array([0.0, 5e-324, 1e-310, 1e-305, 1e-299, 10.0])
    _load(db, score, ["a"] * 6, list("abcdef"))
    decided = rule.decide(score, ["a"] * 6, ids=list("abcdef"), key=KEY)
    _agree(db, _selected(db, rule), rule.probabilities(score, ["a"] * 6), decided)


@on
@pytest.mark.parametrize("groups", [(1, 2, None), (1, 2)])
def test_nan_among_integers_is_a_missing_group(db, groups):
    # pandas stores integers with missing values like this.
    ramps = tuple(Ramp.centered(threshold, 0.5) for threshold in (0.2, 0.8, 0.6)[: len(groups)])
    rule = Rule(groups, ramps, unseen_group="pooled", pooled=Ramp.centered(0.4, 0.5))
    score, group, ids = [0.5] * 5, [1.0, 2.0, float("nan"), None, 3.0], list("abcde")
    db.create("t", arrow(n=np.arange(5), p=score, g=pa.array(group), who=ids))
    db.create("keys", arrow(key=[KEY]))
    expected = rule.probabilities(score, group), rule.decide(score, group, ids=ids, key=KEY)
    for make in (_selected, _pasted):
        _agree(db, make(db, rule), *expected)


@on_drawing
@pytest.mark.parametrize("key", [None, KEY.upper(), KEY + "\n", KEY[:-1], "g" * 64])
def test_invalid_key_draws_nothing(db, key):
    rule = Rule(("a",), (Ramp.centered(0.5, 0.5),))
    db.create("t", arrow(n=[0, 1, 2], p=[0.1, 0.5, 0.9], g=["a"] * 3, who=["x"] * 3))
    db.create("keys", arrow(key=pa.array([key], pa.string())))
    assert db.columns(_selected(db, rule))[-1] == [0, None, 1]


@on_drawing
def test_two_keys_raise_and_none_draws_nothing(db):
    rule = Rule(("a",), (Ramp.centered(0.5, 0.5),))
    db.create("t", arrow(n=[0], p=[0.5], g=["a"], who=["x"]))
    db.create("keys", arrow(key=pa.array([], pa.string())))
    assert db.columns(_selected(db, rule))[-1] == [None]
    db.create("two", arrow(key=[KEY, KEY[::-1]]))
    with pytest.raises(Exception, match=r"(?i)more than (one|1) row"):
        db.rows(rule.to_sql(db.dialect, table="t", **NAMES, id="who", key_table="two"))


@pytest.mark.parametrize("db", ["sqlite"], indirect=True)
def test_sqlite_does_not_read_text_as_a_number(db):
    rule = Rule(("a",), (Ramp.centered(-1.0, 0.5),))
    db.rows("CREATE TABLE t (n, p, g)")
    db.rows("INSERT INTO t VALUES (0, '0.7', 'a'), (1, 'yes', 'a'), (2, x'00', 'a'), (3, 0.7, 'a'), (4, 1, 'a')")
    assert db.columns(_selected(db, rule))[-1] == [None, None, None, 1.0, 1.0]


@pytest.mark.parametrize(
    ("engine", "column"),
    [
        ("duckdb", "VARCHAR COLLATE NOCASE"),
        ("sqlite", "TEXT COLLATE NOCASE"),
        pytest.param("spark", "STRING COLLATE UTF8_LCASE", marks=SPARK.marks),
        pytest.param("postgres", "text COLLATE blind", marks=POSTGRES.marks),
        pytest.param("mariadb", "varchar(9)", marks=MARIADB.marks),
    ],
)
def test_labels_are_compared_exactly(engine, column):
    db = database(engine)
    if engine == "postgres":
        db.rows("CREATE COLLATION blind (provider=icu, locale='und-u-ks-level2', deterministic=false)")
    rule = Rule(("a", "A"), (Ramp.centered(0.2, 0.1), Ramp.centered(0.8, 0.1)))
    if engine == "spark":
        db.create("rows", arrow(n=[0, 1, 2], p=[0.5] * 3, g=["a", "A", "Á"], who=["x", "y", "z"]))
        db.rows(f"CREATE TEMP VIEW t AS SELECT n, p, CAST(g AS {column}) AS g, who FROM rows")
        db.created.append("t")
        assert db.rows("SELECT count(*) FROM t WHERE g = 'a'") == [(2,)]
    else:
        db.rows(f"CREATE TABLE t (n INTEGER, p DOUBLE PRECISION, g {column}, who VARCHAR(9))")
        db.rows("INSERT INTO t VALUES (0, 0.5, 'a', 'x'), (1, 0.5, 'A', 'y'), (2, 0.5, 'Á', 'z')")
    db.create("keys", arrow(key=[KEY]))
    for make in (_selected, _pasted):
        found = db.columns(make(db, rule))[-2 if db.decides else -1]
        assert found == [1.0, 0.0, None]
    db.clear()


@pytest.mark.parametrize("db", [p for p in ALL if p != SPARK], indirect=True)
def test_view_is_replaced_only_on_request(db):
    db.create("t", arrow(p=[0.25, 0.75], g=["a", "a"]))
    old, new = (Rule(("a",), (Ramp.centered(threshold, 0.5),)) for threshold in (0.5, 0.25))
    named = {"table": "t", "view": "fair'", "score": "p", "group": "g"}

    def run(text):
        if db.dialect == "sqlite":  # replacing takes two statements
            db.connection.executescript(text)
        else:
            db.rows(text)

    run(old.to_sql(db.dialect, **named, replace=True))  # replace=True also works without an existing view
    with pytest.raises(Exception, match=r"(?i)exists"):
        run(new.to_sql(db.dialect, **named))
    for rule in (new, new, old):
        run(rule.to_sql(db.dialect, **named, replace=True))
        found = db.rows(f"SELECT probability FROM {db.quoted(named['view'])} ORDER BY p")
        assert [chance for (chance,) in found] == rule.probabilities([0.25, 0.75], ["a", "a"]).tolist()


@pytest.mark.parametrize("engine", [SPARK])
def test_spark_creates_the_view(engine, tmp_path):
    db = database(engine)
    session = db.session
    for name, rows in {"t": arrow(p=[0.5, 0.1], g=["a", "a"], who=["x", "y"]), "keys": arrow(key=[KEY])}.items():
        session.createDataFrame(rows).write.parquet(str(tmp_path / name))
        session.sql(f"CREATE TABLE {name} USING parquet LOCATION '{tmp_path / name}'")
    rule = Rule(("a",), (Ramp.centered(0.5, 0.5),))
    try:
        session.sql(rule.to_sql("spark", table="default.t", view="fair", **NAMES, **DRAW))
        expected = rule.decide([0.5, 0.1], ["a", "a"], ids=["x", "y"], key=KEY).tolist()
        assert db.rows("SELECT decision FROM fair ORDER BY who") == [(d,) for d in expected]
        session.sql(rule.to_sql("spark", table="default.t", view="fair", replace=True, **NAMES, **DRAW))
        assert db.rows("SELECT decision FROM fair ORDER BY who") == [(d,) for d in expected]
    finally:
        session.sql("DROP VIEW IF EXISTS fair")
        session.sql("DROP TABLE t")
        session.sql("DROP TABLE keys")


def test_page_shows_the_exported_sql():
    page = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
    data = load_adult_scores()
    rule = fit_rule(data.score, {"sex": data.sex}, max_gap=0.02)
    text = rule.to_sql("postgres", score="p")
    blocks = [block.split("```")[0] for block in page.split("```sql\n")[1:]]
    for block in blocks[:2]:
        shown = [line for line in block.splitlines() if line.strip() != "..."]
        assert len(shown) > 5
        assert [line for line in shown if line not in text.splitlines()] == []
