"""The rule's formulas as pieces of SQL text, in DuckDB's dialect.

    chance   CASE over the groups, or a look-up if they are many: (x − foot_k) / width, cut off at 0 and 1
    draw     the first 13 hexadecimal digits of SHA-256(key ‖ ":" ‖ id) / 2^52

Names and values are quoted here and nowhere else. NULL in gives NULL out: CASE is used throughout, because
GREATEST and LEAST skip NULL and would turn a missing score into a yes. Numbers are written with an exponent,
which makes them doubles; without one they would be decimals and lose digits.
"""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = [
    "Case",
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


def identifier(name: str) -> str:
    """A column's name, quoted."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | int | float | bool | None) -> str:
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
    return "'" + value.replace("'", "''") + "'"


def group_case(columns: Sequence[str], cases: Sequence[Case], otherwise: str) -> str:
    """The value of the group that a row belongs to, for a few groups.

    Parameters
    ----------
    columns : expressions
        The columns that make the group; none of them is NaN.
    cases : sequence of Case
        Labels of the type of their columns.
    otherwise : expression
        For all other groups.
    """
    if not cases:
        return otherwise
    branches = " ".join(f"WHEN {_is(columns, case.parts)} THEN {case.value}" for case in cases)
    return f"CASE {branches} ELSE {otherwise} END"


def group_code(texts: Sequence[str], labels: Sequence[tuple[str | None, ...]]) -> str:
    """The place of a row's group among many, counted from 1; NULL for all others.

    Labels become the values of an ENUM type, which finds a text by hashing. A CASE would compare them one by
    one, and a join would not promise to keep the order of the rows.

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


def _is(columns: Sequence[str], parts: tuple[Part, ...]) -> str:
    tests = [
        f"{column} IS NULL" if part is None else f"{column} = {literal(part)}"
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


def draw(key: str, id_text: str) -> str:
    """The repeatable u in [0, 1) of an id; key and id are expressions of type text."""
    digits = f"substr(sha256({key} || ':' || {id_text}), 1, 13)"
    return f"(CAST('0x' || {digits} AS BIGINT) / {literal(2.0**52)})"


def decision(probability: str, key: str, id_text: str) -> str:
    """Yes or no as 1 or 0; the draw is made only where the probability leaves it open."""
    return (
        f"CAST(CASE WHEN {probability} <= 0e0 THEN 0 WHEN {probability} >= 1e0 THEN 1 "
        f"WHEN {probability} IS NULL OR {id_text} IS NULL THEN NULL "
        f"WHEN {draw(key, id_text)} < {probability} THEN 1 ELSE 0 END AS TINYINT)"
    )
