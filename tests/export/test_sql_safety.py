"""No name can break out of exported SQL, and a key appears in no text, plan or log."""

import functools
import logging
import re
from pathlib import Path

import pytest
import sqlglot
from cases import KEY, case
from databases import DRAWING, MARIADB, POSTGRES, SPARK, arrow, database
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from fairramp import FairrampError, InputError, Ramp, Rule
from fairramp.deploy import sql
from fairramp.deploy.dialects import DIALECTS, commented, literal

# Hostile names ----------------------------------------------------------------------------------

MARKS = (
    *("'", '"', "`", "\\", ";", "--", "/*", "*/", "\n", "\r", "\t", "\0", "$$", "${", "}", "$", "#", "%s", "{0}"),
    *(
        "?",
        ":x",
        "E'",
        "''",
        '""',
        "``",
        "\\'",
        "\\n",
        ")",
        "(",
        "AS",
        " ",
        "a",
        "Z",
        "é",
        "日",
        "🙂",
        "\u2028",
        "\x1a",
    ),
    *(
        "'; DROP TABLE canary; --",
        '"; DROP TABLE canary; --',
        "`; DROP TABLE canary; --",
        "*/ DROP TABLE canary;",
    ),
    *("\\'; DROP TABLE canary; --", "\n; DROP TABLE canary;\n--", "\ud800"),
)
hostile = st.lists(st.sampled_from(MARKS), min_size=1, max_size=5).map("".join)


@st.composite
def orders(draw):
    """Names of a table and its columns, and labels of two groups."""
    fold = str.casefold
    names = draw(st.lists(hostile, min_size=5, max_size=5, unique_by=lambda name: fold(name).upper()))
    labels = draw(st.lists(hostile, min_size=2, max_size=2, unique=True))
    return names, labels


REFUSALS = re.compile(
    "contains a NUL character|valid Unicode|truncates names to 63|reads as a variable"
    "|(BigQuery|MariaDB) does not allow"
)


def _attempt(db, names, labels):
    """Create such a table and decide its rows; another table survives."""
    score, group, who, table, key = names
    named = {"score": score, "group": group, "table": [table]}
    named |= {"id": who, "key_table": "keys", "key_column": key} if db.decides else {}
    refusal = ""
    try:
        rule = Rule(tuple(labels), (Ramp.centered(0.2, 0.1), Ramp.centered(0.8, 0.1)))
        text = rule.to_sql(db.dialect, **named)
        pasted = rule.to_sql(db.dialect, **named | {"table": None})
    except InputError as error:
        refusal = str(error)
    if refusal:
        assert REFUSALS.search(refusal)
        return
    rows = {score: [0.5, 0.5, 0.5], group: [*labels, "unseen"]}
    db.create(table, arrow(**rows | ({who: ["x", "y", "z"]} if db.decides else {})))
    db.create("canary", arrow(n=[1]))
    if db.decides:
        db.create("keys", arrow(**{key: [KEY]}))
    last = -2 if db.decides else -1
    for query in (text, f"SELECT 1,\n{pasted}FROM {db.quoted(table)}"):
        found = sorted(row[last:] for row in db.rows(query) if row[last] is not None)
        assert [row[0] for row in found] == [0.0, 1.0]
    if db.dialect != "spark":  # a permanent view cannot read temporary tables
        db.rows(rule.to_sql(db.dialect, **named, view=[table + "'"]))
        assert len(db.rows(f"SELECT * FROM {db.quoted(table + chr(39))}")) == 3
    assert db.rows("SELECT * FROM canary") == [(1,)]


@pytest.mark.parametrize("engine", ["duckdb", "sqlite", POSTGRES, MARIADB, SPARK])
def test_hostile_names_cannot_break_out(engine):
    examples = {"spark": 25, "postgres": 50}.get(engine, 60)

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(orders())
    def attempt(order):
        db = database(engine)
        try:
            _attempt(db, *order)
        finally:
            db.clear()

    attempt()


@settings(max_examples=100)
@given(orders(), st.sampled_from(["snowflake", "bigquery"]))
def test_hostile_names_parse_as_names_in_dialects_that_are_not_run(order, dialect):
    (score, group, who, table, key), labels = order
    try:
        rule = Rule(tuple(labels), (Ramp.centered(0.2, 0.1), Ramp.centered(0.8, 0.1)))
        text = rule.to_sql(
            dialect, score=score, group=group, id=who, table=[table], key_table=["k"], key_column=key
        )
    except InputError:
        return
    (statement,) = sqlglot.parse(text, dialect=dialect)
    assert isinstance(statement, exp.Select)
    names = {node.this for node in statement.find_all(exp.Identifier) if node.args["quoted"]}
    assert names == {score, group, who, table, "k", key, "probability", "decision"}
    assert set(labels) <= {node.this for node in statement.find_all(exp.Literal) if node.is_string}


@given(st.lists(st.sampled_from((*MARKS, "\u0085", "\x0b", "\x0c", "\u2029")), max_size=8).map("".join))
def test_comment_stays_one_harmless_line(text):
    line = commented(text)
    assert line.startswith("-- ")
    assert len(line.splitlines()) == 1
    assert not set(line[3:]) & set("'\"`\\/*-$#%{}?&@")


@pytest.mark.parametrize(
    "settings", ["standard_conforming_strings = off; SET escape_string_warning = off; SET backslash_quote = on"]
)
@pytest.mark.parametrize("engine", [POSTGRES])
def test_backslash_settings_change_nothing(engine, settings):
    db = database(engine)
    for value in ("\\", "\\'", "a\\\\'b", "'"):
        db.rows(f"SET {settings}")
        assert db.rows(f"SELECT {literal(value, DIALECTS['postgres'])}") == [(value,)]
    db.rows("RESET ALL")


@pytest.mark.parametrize("engine", [SPARK])
def test_spark_reads_text_alike_under_every_setting(engine):
    db = database(engine)
    db.session.conf.set("spark.fairramp.injected", "' OR 1=1 --")
    for flag in ("true", "false"):
        db.session.conf.set("spark.sql.parser.escapedStringLiterals", flag)
        for value in ("\\", "\\'", "it's", "${spark.fairramp.injected}", "a\nb", '"'):
            assert db.rows(f"SELECT {literal(value, DIALECTS['spark'])}") == [(value,)]
    db.session.conf.unset("spark.sql.parser.escapedStringLiterals")


@pytest.mark.parametrize("db", [SPARK], indirect=True)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_spark_decides_alike_with_and_without_ansi(db, ansi):
    made = case(scale="logit")
    db.session.conf.set("spark.sql.ansi.enabled", ansi)
    few = slice(0, 3000)
    db.create("t", arrow(n=list(range(3000)), p=made.score[few], g=list(made.group[few]), who=made.id[few]))
    db.create("keys", arrow(key=[KEY]))
    text = made.rule.to_sql("spark", table="t", score="p", group="g", id="who", key_table="keys")
    found = [-1 if value is None else value for value in db.columns(text)[-1]]
    db.session.conf.unset("spark.sql.ansi.enabled")
    assert found == made.decision[few].tolist()


# Keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("db", DRAWING, indirect=True)
def test_key_appears_in_no_text_plan_or_log(db, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    made = case()
    few = slice(0, 3000)
    db.create("t", arrow(p=made.score[few], g=list(made.group[few]), who=made.id[few]))
    db.create("keys", arrow(key=[KEY]))
    text = made.rule.to_sql(db.dialect, table="t", score="p", group="g", id="who", key_table="keys")
    plan = db.plan(text)
    if db.dialect == "postgres":  # configured to log every statement with its plan
        db.rows("ANALYZE")
        plan += db.plan(text)
        with open(db.log, encoding="utf-8") as file:
            log = file.read()
        assert "InitPlan" in log
        plan += log
    if db.dialect == "mariadb":  # configured to log every statement, and every plan
        logs = [Path(path).read_text(encoding="utf-8", errors="replace") for path in db.logs]
        assert all("secret" in log for log in logs)
        plan += "".join(logs)
    assert "keys" in text
    assert len(plan) > 1000
    said = capfd.readouterr()
    for shown in (text, plan, caplog.text, said.out, said.err):
        assert KEY not in shown
        assert KEY.encode().hex() not in shown


@pytest.mark.parametrize("db", [POSTGRES], indirect=True)
def test_view_is_readable_without_access_to_the_key(db):
    import psycopg

    db.create("t", arrow(p=[0.5], g=["a"], who=["x"]))
    db.create("keys", arrow(key=[KEY]))
    rule = Rule(("a",), (Ramp.centered(0.5, 1.0),))
    db.rows(rule.to_sql("postgres", table="t", view="fair", score="p", group="g", id="who", key_table="keys"))
    db.rows("CREATE ROLE reader; GRANT USAGE ON SCHEMA public TO reader; GRANT SELECT ON fair TO reader")
    db.rows("SET ROLE reader")
    try:
        assert db.rows("SELECT decision FROM fair") == [(int(rule.decide([0.5], ["a"], ids=["x"], key=KEY)[0]),)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.rows("SELECT * FROM keys")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.rows("SELECT * FROM t")
    finally:
        db.rows("RESET ROLE")
        db.rows("DROP OWNED BY reader; DROP ROLE reader")


# Rejected input -------------------------------------------------------------------------------

RULE = Rule(("a", "b"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))


@pytest.mark.parametrize(
    ("rule", "dialect", "more", "message"),
    [
        (RULE, "oracle", {}, "`dialect` must be one of"),
        (RULE, "duckdb", {"score": None}, "Pass `score`: the rule does not store"),
        (RULE, "duckdb", {"group": ["a", "b"]}, "`group` must name 1 column"),
        (RULE, "duckdb", {"id": "who"}, "need both `id` and `key_table`; `key_table` is missing"),
        (RULE, "duckdb", {"key_table": "k"}, "need both `id` and `key_table`; `id` is missing"),
        (RULE, "sqlite", {"id": "who", "key_table": "k"}, "SQLite has no SHA-256"),
        (RULE, "postgrse", {}, "got 'postgrse'; did you mean 'postgres'?"),
        (RULE, "duckdb", {"view": "v"}, "`view` needs `table`"),
        (RULE, "duckdb", {"table": "t", "replace": True}, "`replace` needs `view`"),
        (RULE, "duckdb", {"table": "a..b"}, "`table`: the part has an empty name"),
        (RULE, "duckdb", {"table": 7}, "`table` must be a name like"),
        (RULE, "duckdb", {"id": "who", "key_table": 7}, "`key_table` must be a name like"),
        (RULE, "duckdb", {"prefix": 7}, "`prefix` must be a string"),
        (
            RULE,
            "duckdb",
            {"table": "t", "score": "probability"},
            "already has a column 'probability'; pass a prefix",
        ),
        (
            RULE,
            "sqlite",
            {"table": "t", "group": "Fair_Probability", "prefix": "fair_"},
            "already has a column 'Fair_Probability'",
        ),
        (RULE, "duckdb", {"table": "t", "id": "DECISION", "key_table": "k"}, "already has a column 'DECISION'"),
        (RULE, "duckdb", {"score": "a\0"}, "contains a NUL character"),
        (RULE, "postgres", {"score": "ä" * 32}, "has 64 bytes, and PostgreSQL truncates names to 63"),
        (RULE, "spark", {"score": "${x}"}, "which Spark reads as a variable"),
        (RULE, "bigquery", {"score": "a`"}, "which BigQuery does not allow"),
        (
            Rule(("a", 1), (Ramp.centered(0.5, 0.1),) * 2),
            "duckdb",
            {},
            "Group labels in column 'g' have several types",
        ),
        (Rule((2**63,), (Ramp.centered(0.5, 0.1),)), "duckdb", {}, "does not fit into a 64-bit integer"),
        (
            Rule((("n", "a"), ("n", "b")), (Ramp.centered(0.5, 0.1),) * 2, target_rate=None, stratified=True),
            "duckdb",
            {},
            "Pass `strata`: the rule equalizes within strata but does not store their column names",
        ),
        (Rule(("\0",), (Ramp.centered(0.5, 0.1),)), "sqlite", {}, "The group '.x00' contains a NUL character"),
        (
            Rule(tuple(range(300)), (Ramp.centered(0.5, 0.1),) * 300),
            "duckdb",
            {},
            "at most 256 groups, and the rule has 300",
        ),
    ],
)
def test_invalid_requests_raise(rule, dialect, more, message):
    with pytest.raises(InputError, match=message):
        rule.to_sql(dialect, **{"score": "p", "group": "g"} | more)


@pytest.mark.parametrize("db", [POSTGRES], indirect=True)
@pytest.mark.parametrize("name", ["a" * 63, "ä" * 31 + "b"])
def test_names_of_63_bytes_are_not_too_long(db, name):
    db.create("t", arrow(**{name: [0.44], "g": ["a"]}))
    text = RULE.to_sql("postgres", table="t", score=name, group="g")
    assert [row[-1] for row in db.rows(text)] == [0.0]


@pytest.mark.parametrize("engine", ["duckdb", "sqlite", POSTGRES])
def test_all_64_bit_integers_can_be_groups(engine):
    db, labels = database(engine), (-(2**63), -1_000, 0, 2**63 - 1)
    rule = Rule(labels, tuple(Ramp.centered(0.5 + k / 10, 1.0) for k in range(4)))
    db.create("t", arrow(n=[0, 1, 2, 3], p=[0.5] * 4, g=list(labels)))
    found = db.columns(rule.to_sql(db.dialect, table="t", score="p", group="g"))[-1]
    assert found == pytest.approx([0.5, 0.4, 0.3, 0.2])
    db.clear()
    with pytest.raises(InputError, match="-9223372036854775809 of column 'g' does not fit into a 64-bit integer"):
        Rule((-(2**63) - 1,), (Ramp.centered(0.5, 0.1),)).to_sql(db.dialect, score="p", group="g")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_plain_names_of_groups_are_readable_in_the_sql(dialect):
    rule = Rule(("New York", "50-64 (b)"), (Ramp.centered(0.5, 0.1),) * 2)
    text = rule.to_sql(dialect, score="p", group="g")
    assert "'New York'" in text
    assert "'50-64 (b)'" in text


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize(
    "named",
    [
        {"key_table": KEY},
        {"key_table": f"main.{KEY.upper()}"},
        {"key_table": ["main", f" {KEY}"]},
        {"key_table": [KEY, 7]},
        {"key_table": "k", "key_column": KEY},
    ],
)
def test_key_in_place_of_a_name_raises_and_is_not_quoted(dialect, named):
    for write in (RULE.to_sql, functools.partial(sql.expressions, RULE)):
        with pytest.raises(InputError, match="looks like a key") as caught:
            write(dialect, score="p", group="g", id="who", **named)
        assert KEY not in str(caught.value).lower()


def test_text_that_parses_differently_raises(monkeypatch):
    broken = DIALECTS["duckdb"]._replace(string=lambda text: f"'{text}'")  # quoting that does not escape
    monkeypatch.setitem(DIALECTS, "duckdb", broken)
    for label in ("it's", "a' OR 1=1 OR 'b", "x' THEN 1 END; DROP TABLE t; --", "'--"):
        rule = Rule((label,), (Ramp.centered(0.5, 0.1),))
        with pytest.raises(FairrampError, match="could not be written safely for DuckDB"):
            rule.to_sql("duckdb", table="t", score="p", group="g")


def test_missing_sqlglot_raises_with_install_command(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sqlglot", None)
    with pytest.raises(FairrampError, match=r"pip install 'fairramp\[export\]'"):
        RULE.to_sql("duckdb", score="p", group="g")
