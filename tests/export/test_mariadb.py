"""What could go wrong in MariaDB or MySQL only: settings of the session, character sets, collations and types."""

import numpy as np
import pytest
from cases import KEY, case
from databases import MARIADB, arrow, database
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairramp import InputError, Ramp, Rule
from fairramp.deploy import sql
from fairramp.deploy.dialects import DIALECTS, literal

pytestmark = MARIADB.marks
NAMED = {"score": "p", "group": "g", "id": "who", "key_table": "keys"}
#: Groups that a careless comparison takes for one another.
ALIKE = (
    *("f", "F", "f ", "f  ", "F ", " f", "é", "É", "e", "ß", "ss", "\\", "\\\\", "'", "''", '"', "\\'", "`"),
    *("🙂", "🙃", "日本", "=cmd()", "%s", "a\nb", "a\tb", "\x1a", "0", "1", "", "NULL"),
)
MODES = [
    "",
    "ANSI",
    "ANSI_QUOTES,PIPES_AS_CONCAT",
    "NO_BACKSLASH_ESCAPES",
    "PAD_CHAR_TO_FULL_LENGTH",
    "EMPTY_STRING_IS_NULL",
    "TRADITIONAL",
    "ORACLE",
]


@pytest.fixture
def db():
    found = database("mariadb")
    yield found
    found.rows("SET sql_mode = DEFAULT, div_precision_increment = DEFAULT")
    found.rows("SET NAMES utf8mb4")
    found.clear()


def _rule(groups, **more):
    return Rule(
        groups, tuple(Ramp.centered(0.2 + 0.6 * k / len(groups), 0.9) for k in range(len(groups))), **more
    )


def _queries(rule, **more):
    """A SELECT, and expressions."""
    items = sql.expressions(rule, "mariadb", **NAMED | more).values()
    pasted = ", ".join(f"{text} AS new{i}" for i, text in enumerate(items))
    return rule.to_sql("mariadb", table="t", **NAMED | more), f"SELECT n, {pasted} FROM t"


def _check(db, rule, score, group, ids):
    """Check probabilities and decisions of rows that are all decidable."""
    expected = rule.probabilities(score, group), rule.decide(score, group, ids=ids, key=KEY)
    for text in _queries(rule):
        probability, decision = db.columns(text)[-2:]
        np.testing.assert_allclose(probability, expected[0], rtol=0, atol=1e-9)
        np.testing.assert_array_equal(decision, expected[1])


def _insert(db, rows):
    marks = ", ".join(["%s"] * len(rows[0]))
    db.connection.cursor().executemany(f"INSERT INTO t VALUES ({marks})", rows)


def _many(groups, ids, n=1500):
    rng = np.random.default_rng(2)
    return (
        rng.random(n),
        [groups[i] for i in rng.integers(0, len(groups), n)],
        [ids[i % len(ids)] for i in range(n)],
    )


@pytest.mark.parametrize("mode", MODES)
def test_groups_and_ids_are_compared_exactly_under_every_setting(db, mode):
    groups = (*ALIKE, None)
    rule = _rule(groups)
    score, group, ids = _many(
        groups, [f"{label}{i}" for i in range(20) for label in ALIKE] + [label for label in ALIKE if label]
    )
    db.create("t", arrow(n=np.arange(len(score)), p=score, g=group, who=ids))
    db.create("keys", arrow(key=[KEY]))
    assert db.rows("SELECT 'f' = 'F  ', 1 / 3 < 0.3333333") == [(1, 1)]  # the traps are set
    db.rows(f"SET sql_mode = '{mode}', div_precision_increment = 0")
    _check(db, rule, score, group, ids)


def _connect_as(db, charset):
    """Have the server read queries as if they were in another character set; results stay in UTF-8."""
    db.rows(f"SET character_set_client = {charset}, character_set_connection = {charset}")


CONNECTIONS = ["utf8mb4", "utf8mb3", "latin1", "cp1251", "gbk", "sjis"]


@pytest.mark.parametrize("connection", CONNECTIONS)
def test_character_set_of_the_connection_changes_nothing(db, connection):
    rule = _rule(ALIKE)
    score, group, ids = _many(ALIKE, [f"№{i} ÄÖ日本語🙂 " for i in range(1000)])
    db.create("t", arrow(n=np.arange(len(score)), p=score, g=group, who=ids))
    db.create("keys", arrow(key=[KEY]))
    _connect_as(db, connection)
    _check(db, rule, score, group, ids)


@pytest.mark.filterwarnings("ignore:Only 6 of the first 1,000 `ids` are different")
@pytest.mark.parametrize(
    "column",
    [
        "varchar(9) CHARACTER SET latin1",
        "varchar(9) CHARACTER SET utf16",
        "varchar(9) COLLATE utf8mb4_bin",
        "text CHARACTER SET utf8mb3",
        "varbinary(40)",
    ],
)
def test_character_set_of_a_column_changes_nothing(db, column):
    groups, ids = ("é", "É", "e", "E", "é ", "ß"), ["é", "É", "e", "é ", "x", " x"]
    rule = _rule(groups)
    score, group, who = _many(groups, ids)
    db.rows(f"CREATE TABLE t (n int, p double, g {column}, who {column})")
    _insert(db, list(zip(range(len(who)), map(float, score), group, who, strict=True)))
    db.create("keys", arrow(key=[KEY]))
    _check(db, rule, score, group, who)


def test_char_columns_have_no_trailing_spaces(db):
    db.rows("CREATE TABLE t (n int, p double, g char(9), who char(9))")
    db.rows("INSERT INTO t VALUES (0, 0.45, 'f ', 'x '), (1, 0.45, 'F', 'X')")
    db.create("keys", arrow(key=[KEY]))
    _check(db, _rule(("f", "F")), np.full(2, 0.45), ["f", "F"], ["x", "X"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("missing", ["key", "id", "both"])
def test_nothing_is_drawn_without_a_key_or_an_id(db, mode, missing):
    db.rows("CREATE TABLE t (n int, p double, g varchar(9), who varchar(9))")
    db.rows(f"INSERT INTO t VALUES (0, 0.5, 'f', {'NULL' if missing != 'key' else chr(39) + 'x' + chr(39)})")
    db.rows("CREATE TABLE `keys` (`key` char(64))")
    if missing == "id":
        db.create("more", arrow(key=[KEY]))
        db.rows("INSERT INTO `keys` SELECT * FROM more")
    db.rows(f"SET sql_mode = '{mode}'")
    for text in _queries(_rule(("f",))):
        assert db.columns(text)[-1] == [None]


@pytest.mark.parametrize("kind", ["decimal(12, 6)", "decimal(5, 4)", "float", "varchar(30)"])
def test_scores_of_every_numeric_type_are_divided_as_doubles(db, kind):
    score = np.array([0.0001, 0.0625, 0.5, 0.4375, 0.587, 1.0])
    db.rows(f"CREATE TABLE t (n int, p {kind}, g varchar(9), who varchar(9))")
    _insert(db, [(i, p, "f", str(i)) for i, p in enumerate(score.tolist())])
    db.create("keys", arrow(key=[KEY]))
    stored = score.astype("float32").astype(float) if kind == "float" else score
    rule = Rule(("f",), (Ramp(0.0, 0.7),))
    _check(db, rule, stored, ["f"] * 6, [str(i) for i in range(6)])


def test_text_is_neither_a_score_nor_a_number_of_a_group(db):
    rule = Rule((0, 1, 7), (Ramp.centered(0.0, 0.5),) * 3, scale="logit", cutoff=0)
    rows = [
        ("0.7", "0"),
        ("yes", "0"),
        ("", "0"),
        ("0x1", "0"),
        ("1e-3", "7"),
        ("2", "x"),
        ("2", "7x"),
        ("2", ""),
    ]
    db.rows("CREATE TABLE t (n int, p varchar(9), g varchar(9))")
    _insert(db, [(i, *row) for i, row in enumerate(rows)])
    for text in _queries(rule, id=None, key_table=None):
        found = db.columns(text)[-1]
        assert [value is not None for value in found] == [True, False, False, False, True, False, False, False]
    truth = Rule((True, False), (Ramp.centered(0.0, 0.5),) * 2, scale="logit", cutoff=0)
    db.rows("UPDATE t SET p = '2', g = 'true'")
    for text in _queries(truth, id=None, key_table=None):
        assert db.columns(text)[-1] == [None] * len(rows)


marks = st.sampled_from(
    ("'", '"', "`", "\\", "\\'", ";", "--", "/*", "#", "\n", "\x1a", "%", "_", "a", "é", "🙂", " ")
)


@pytest.mark.parametrize("mode", ["", "NO_BACKSLASH_ESCAPES", "ANSI"])
@pytest.mark.parametrize("connection", CONNECTIONS)
def test_texts_are_read_back_under_every_setting(db, mode, connection):
    _connect_as(db, connection)
    db.rows(f"SET sql_mode = '{mode}'")

    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    @given(st.lists(marks, max_size=6).map("".join))
    def attempt(text):
        assert db.rows(f"SELECT {literal(text, DIALECTS['mariadb'])}") == [(text.encode(),)]

    attempt()


def test_view_is_readable_without_access_to_the_key(db):
    db.create("t", arrow(p=[0.5], g=["a"], who=["x"]))
    db.create("keys", arrow(key=[KEY]))
    rule = _rule(("a",))
    db.rows(rule.to_sql("mariadb", table="t", view="fair", **NAMED))
    db.rows("CREATE USER reader IDENTIFIED BY ''")
    db.rows("GRANT SELECT ON tests.fair TO reader")
    try:
        reader = db.open("reader")
        with reader.cursor() as cursor:
            cursor.execute("SELECT decision FROM tests.fair")
            assert cursor.fetchall() == ((int(rule.decide([0.5], ["a"], ids=["x"], key=KEY)[0]),),)
            for refused in (
                "SELECT * FROM tests.`keys`",
                "SELECT * FROM tests.t",
                "EXPLAIN SELECT * FROM tests.fair",
            ):
                with pytest.raises(Exception, match=r"denied|lacking privileges"):
                    cursor.execute(refused)
        reader.close()
    finally:
        db.rows("DROP USER reader")


def test_a_view_decides_like_its_query(db):
    made, few = case(), slice(0, 3000)
    db.create("t", arrow(n=list(range(3000)), p=made.score[few], g=list(made.group[few]), who=made.id[few]))
    db.create("keys", arrow(key=[KEY]))
    db.rows(made.rule.to_sql("mariadb", table="t", view="fair", **NAMED))
    _connect_as(db, "latin1")
    db.rows("SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'")
    found = [-1 if value is None else value for value in db.columns("SELECT * FROM fair")[-1]]
    assert found == made.decision[few].tolist()


def test_mysql_gets_the_same_text(db):
    rule = _rule(ALIKE)
    texts = [rule.to_sql(dialect, table="t", **NAMED).splitlines() for dialect in ("mysql", "mariadb")]
    assert texts[0][0].startswith("-- A fairramp rule in the SQL of MySQL,")
    assert texts[1][0].startswith("-- A fairramp rule in the SQL of MariaDB,")
    tested = [line for line in texts[0] if not line.startswith("-- Not tested on MySQL itself")]
    assert len(tested) == len(texts[0]) - 1
    assert tested[1:] == texts[1][1:]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x" * 65, "is longer than 64 characters, which MariaDB does not allow; use a shorter one"),
        ("a ", "ends with white space or contains a character beyond U.FFFF, which MariaDB does not allow"),
        ("🙂", "ends with white space or contains a character beyond U.FFFF"),
    ],
)
def test_names_that_mariadb_cannot_hold_raise(db, name, message):
    with pytest.raises(Exception, match=r"too long|Incorrect|Invalid"):
        db.rows(f"CREATE TABLE t ({db.quoted(name)} int)")
    for more in ({"score": name}, {"table": [name]}, {"key_column": name}):
        with pytest.raises(InputError, match=message):
            _rule(("a",)).to_sql("mariadb", **{"table": "t"} | NAMED | more)
