"""The rule's formulas as pieces of SQL text, in the dialects of DuckDB and Spark.

    chance   CASE over the groups, or a look-up if they are many: (x − foot_k) / width, cut off at 0 and 1
    draw     the first 13 hexadecimal digits of SHA-256(key ‖ ":" ‖ id) / 2^52

Names and values are quoted here and nowhere else. NULL in gives NULL out: CASE is used throughout, because
GREATEST and LEAST skip NULL and would turn a missing score into a yes. Numbers are written with an exponent,
which makes them doubles; without one they would be decimals and lose digits.
"""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = [
    "DUCKDB",
    "SPARK",
    "Case",
    "Dialect",
    "clipped",
    "decision",
    "draw",
    "group_case",
    "group_code",
    "identifier",
    "literal",
    "on_ramp",
    "picked",
    "step",
]

Part = str | int | bool | None


class Case(NamedTuple):
    """What to compute for one group: its labels, one per column, and an expression."""

    parts: tuple[Part, ...]
    value: str


class Dialect(NamedTuple):
    """Where data bases differ.

    Attributes
    ----------
    quote : str
        What stands around names.
    text : str
        The type of texts.
    escapes : bool
        Whether a backslash in a text means something else, as settings of the session may decide.
    draw : str
        The first 13 hexadecimal digits of the hash of {message} as a whole number.
    """

    quote: str
    text: str
    escapes: bool
    draw: str


DUCKDB = Dialect('"', "VARCHAR", False, "CAST('0x' || substr(sha256({message}), 1, 13) AS BIGINT)")
SPARK = Dialect("`", "STRING", True, "CAST(conv(substr(sha2({message}, 256), 1, 13), 16, 10) AS BIGINT)")


def identifier(name: str, dialect: Dialect = DUCKDB) -> str:
    """A column's name, quoted."""
    return dialect.quote + name.replace(dialect.quote, dialect.quote * 2) + dialect.quote


def literal(value: str | int | float | bool | None, dialect: Dialect = DUCKDB) -> str:
    """A value, quoted."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        text = repr(value)
        return f"({text})" if "e" in text else f"({text}e0)"
    if isinstance(value, int):
        return f"({value})"
    if dialect.escapes and ("'" in value or "\\" in value):  # as bytes, which no setting changes
        return f"CAST(X'{value.encode().hex()}' AS {dialect.text})"
    return "'" + value.replace("'", "''") + "'"


def group_case(columns: Sequence[str], cases: Sequence[Case], otherwise: str, dialect: Dialect = DUCKDB) -> str:
    """The value of the group that a row belongs to, for a few groups.

    Parameters
    ----------
    columns : expressions
        The columns that make the group; none of them is NaN.
    cases : sequence of Case
        Labels of the type of their columns.
    otherwise : expression
        For all other groups.
    dialect : Dialect
        Of labels; expressions come in it already.
    """
    if not cases:
        return otherwise
    branches = " ".join(f"WHEN {_is(columns, case.parts, dialect)} THEN {case.value}" for case in cases)
    return f"CASE {branches} ELSE {otherwise} END"


def group_code(texts: Sequence[str], labels: Sequence[tuple[str | None, ...]]) -> str:
    """The place of a row's group among many, counted from 1; NULL for all others.

    Labels become the values of an ENUM type, which finds a text by hashing. A CASE would compare them one by
    one, and a join would not promise to keep the order of the rows. DuckDB only.

    Parameters
    ----------
    texts : expressions
        The columns that make the group, as text.
    labels : sequence of tuple
        The groups, one text or None for each column.
    """
    if len(texts) == 1 and all(label[0] is not None for label in labels):
        key, values = texts[0], [label[0] or "" for label in labels]
    else:  # with their lengths, so that ("a", "bc") is not ("ab", "c")
        key = " || ".join(f"CASE WHEN {t} IS NULL THEN '-' ELSE strlen({t}) || ':' || {t} END" for t in texts)
        values = [
            "".join("-" if part is None else f"{len(part.encode())}:{part}" for part in label) for label in labels
        ]
    return f"(enum_code(TRY_CAST({key} AS ENUM({', '.join(map(literal, values))}))) + 1)"


def picked(values: Sequence[float], place: str) -> str:
    """The value at a place, counted from 1."""
    return f"list_extract([{', '.join(map(literal, values))}], {place})"


def _is(columns: Sequence[str], parts: tuple[Part, ...], dialect: Dialect) -> str:
    tests = [
        f"{column} IS NULL" if part is None else f"{column} = {literal(part, dialect)}"
        for column, part in zip(columns, parts, strict=True)
    ]
    return " AND ".join(tests)


def on_ramp(position: str, foot: str, width: float) -> str:
    """How far up a ramp a position is, not yet cut off at its ends."""
    return f"({position} - {foot}) / {literal(width)}"


def step(score: str, low: str, high: str, at: str) -> str:
    """The chance 0 below `low`, 1 above `high` and `at` from one to the other."""
    return (
        f"CASE WHEN {score} > {high} THEN 1e0 WHEN {score} >= {low} THEN {at} WHEN {score} < {low} THEN 0e0 END"
    )


def clipped(value: str) -> str:
    """A value cut off at 0 and 1; NULL stays NULL."""
    return f"CASE WHEN {value} <= 0e0 THEN 0e0 WHEN {value} >= 1e0 THEN 1e0 ELSE {value} END"


def draw(key: str, id_text: str, dialect: Dialect = DUCKDB) -> str:
    """The repeatable u in [0, 1) of an id; key and id are expressions of type text."""
    whole = dialect.draw.format(message=f"{key} || ':' || {id_text}")
    return f"({whole} / {literal(2.0**52)})"


def decision(probability: str, key: str, id_text: str, dialect: Dialect = DUCKDB) -> str:
    """Yes or no as 1 or 0; the draw is made only where the probability leaves it open."""
    return (
        f"CAST(CASE WHEN {probability} <= 0e0 THEN 0 WHEN {probability} >= 1e0 THEN 1 "
        f"WHEN {probability} IS NULL OR {id_text} IS NULL THEN NULL "
        f"WHEN {draw(key, id_text, dialect)} < {probability} THEN 1 ELSE 0 END AS TINYINT)"
    )
