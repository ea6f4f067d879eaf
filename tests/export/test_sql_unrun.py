"""SQL for Snowflake and BigQuery, which are not run here: translated to DuckDB and run; compared with Postgres.

Both checks rely on sqlglot's parser for these dialects; neither runs the engine itself.
"""

import numpy as np
import pytest
import sqlglot
from cases import KEY, ODDS, OWN_WIDTHS, REVERSED, case
from databases import arrow, database
from sqlglot import exp

from fairramp import Ramp, Rule
from fairramp.deploy import sql

UNRUN = ("snowflake", "bigquery")
COLUMNS = {"score": "p", "group": "g", "id": "who", "key_table": "keys"}
SETTINGS = [
    {},
    {"scale": "percent", "dtype": "float32"},
    {"scale": "signed", "ramp": "paper"},
    {"scale": "logit", "unseen_group": "original"},
    {"ramp_width": 0.0, "scale": "logit"},
    {"labels": "whole", "unseen_group": "pooled"},
    {"missing_seen": True},
    {"missing_seen": True, "labels": "whole"},
    ODDS,
    *OWN_WIDTHS,
    *REVERSED,
]


def _translated(text, dialect):
    """Translate to DuckDB; collations and Snowflake's numbers from hexadecimal are translated by hand."""

    def replace(node):
        if isinstance(node, exp.Collate):
            return node.this
        if isinstance(node, exp.ToNumber):
            assert node.args["format"].this == "X" * 13
            return exp.cast(exp.DPipe(this=exp.Literal.string("0x"), expression=node.this), "BIGINT")
        return node

    return sqlglot.parse_one(text, dialect=dialect).transform(replace).sql("duckdb", comments=False)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("dialect", UNRUN)
def test_translated_to_duckdb_it_matches_numpy(dialect, settings):
    made, few, db = case(**settings), slice(0, 5_000), database("duckdb")
    score = [None if x != x else x for x in made.score[few].tolist()]
    db.create("t", arrow(n=np.arange(5_000), p=score, g=list(made.group[few]), who=made.id[few]))
    db.create("keys", arrow(key=[KEY]))
    pasted = made.rule.to_sql(dialect, **COLUMNS)
    for text in (made.rule.to_sql(dialect, table="t", **COLUMNS), f"SELECT n,\n{pasted}FROM t"):
        *_, probability, decision = db.columns(_translated(text, dialect))
        found = [np.nan if p is None else p for p in probability]
        np.testing.assert_allclose(found, made.probability[few], rtol=0, atol=1e-9)
        assert [-1 if d is None else d for d in decision] == made.decision[few].tolist()
    db.clear()


def _without_draw(node):
    drawn = isinstance(node, exp.LT) and isinstance(node.parent, exp.Cast)
    return exp.LT(this=exp.column("draw"), expression=node.expression) if drawn else node


def _without_collation(node):
    return node.this if isinstance(node, exp.Collate) else node


def _plain_value(node):
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        return exp.Literal.number(node.this.this)
    if isinstance(node, exp.Paren) and isinstance(node.this, exp.Neg) and isinstance(node.this.this, exp.Literal):
        return exp.Literal.number(f"-{node.this.this.this}")
    return exp.Literal.string(node.this) if isinstance(node, exp.ByteString) else node


def _is_nan(node):
    """Turn a comparison with NaN into the function that other dialects use."""
    if isinstance(node, exp.Paren) and isinstance(node.this, exp.EQ) and node.this.expression.name == "NaN":
        return exp.IsNan(this=node.this.this)
    return node


def _any_type(node):
    return exp.DataType.build("INT") if isinstance(node, exp.DataType) else node


def _skeleton(text, dialect):
    """Expression without what differs between dialects: types, collations, number formats, the hash."""
    tree = sqlglot.parse_one(text, dialect=dialect)
    for replace in (_without_draw, _without_collation, _is_nan, _plain_value, _any_type):
        tree = tree.transform(replace)
    for number in tree.find_all(exp.Literal):
        if not number.is_string:
            number.set("this", repr(float(number.this)))
    return tree.sql()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("dialect", UNRUN)
def test_structure_matches_postgres(dialect, settings):
    made = case(**settings)
    ours = sql.expressions(made.rule, dialect, **COLUMNS)
    run = sql.expressions(made.rule, "postgres", **COLUMNS)
    for name, text in ours.items():
        assert _skeleton(text, dialect) == _skeleton(run[name], "postgres")


@pytest.mark.parametrize(
    ("dialect", "words"),
    [
        ("snowflake", ["sha2(", ", 256)", "to_number(", "'XXXXXXXXXXXXX')", "AS DOUBLE)", "COLLATE("]),
        ("bigquery", ["to_hex(sha256(", "'0x' || substr(", "AS INT64)", "AS FLOAT64)", "UNNEST([\n  STRUCT("]),
    ],
)
def test_dialect_functions_are_used(dialect, words):
    rule = Rule(("a", "b"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    text = rule.to_sql(dialect, table="t", **COLUMNS)
    assert [word for word in words if word not in text] == []
    view = sqlglot.parse_one(rule.to_sql(dialect, table="a.t", view="a.v", **COLUMNS), dialect=dialect)
    assert isinstance(view, exp.Create)
    assert view.kind == "VIEW"
    assert next(table.sql() for table in view.find_all(exp.Table)) == '"a"."v"'
    assert not view.args["replace"]
    again = rule.to_sql(dialect, table="a.t", view="a.v", replace=True, **COLUMNS)
    assert sqlglot.parse_one(again, dialect=dialect).args["replace"]
