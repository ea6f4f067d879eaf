"""The rule's formulas as pieces of SQL text, in DuckDB's dialect.

    chance   CASE over the groups: (x − foot_k) / width, cut off below 0 and above 1
    draw     the first 13 hexadecimal digits of SHA-256(key ‖ ":" ‖ id) / 2^52

Names and values are quoted here and nowhere else. NULL in gives NULL out: CASE is used throughout, because
GREATEST and LEAST skip NULL and would turn a missing score into a yes. Numbers are written with an exponent,
which makes them doubles; without one they would be decimals and lose digits.
"""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Case", "clipped", "decision", "draw", "group_case", "identifier", "literal", "on_ramp", "step"]

#: So many groups are compared one after the other; more are halved first.
FEW_CASES = 32

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
    """The value of the group that a row belongs to.

    Many groups are found by halving, so that the work per row grows with their logarithm and the rows keep
    their order, which a join would not promise.

    Parameters
    ----------
    columns : expressions
        The columns that make the group; none of them is NaN.
    cases : sequence of Case
        Non-missing parts of one column are all of one type.
    otherwise : expression
        For all other groups.
    """
    if len(cases) > FEW_CASES:
        values = [sorted({c.parts[i] for c in cases} - {None}) for i in range(len(columns))]  # type: ignore[type-var]
        widest = max(range(len(columns)), key=lambda i: len(values[i]))
        if len(values[widest]) > 1:
            middle = values[widest][len(values[widest]) // 2]
            below = [c for c in cases if c.parts[widest] is not None and c.parts[widest] < middle]  # type: ignore[operator]
            rest = [c for c in cases if c.parts[widest] is None or not c.parts[widest] < middle]  # type: ignore[operator]
            # NULL is below nothing and lands in the rest.
            low, high = group_case(columns, below, otherwise), group_case(columns, rest, otherwise)
            return f"CASE WHEN {columns[widest]} < {literal(middle)} THEN {low} ELSE {high} END"
    if not cases:
        return otherwise
    branches = " ".join(f"WHEN {_is(columns, case.parts)} THEN {case.value}" for case in cases)
    return f"CASE {branches} ELSE {otherwise} END"


def _is(columns: Sequence[str], parts: tuple[Part, ...]) -> str:
    tests = [
        f"{column} IS NULL" if part is None else f"{column} = {literal(part)}"
        for column, part in zip(columns, parts, strict=True)
    ]
    return " AND ".join(tests)


def on_ramp(position: str, foot: float, width: float) -> str:
    """How far up a ramp a position is, not yet cut off at its ends."""
    return f"({position} - {literal(foot)}) / {literal(width)}"


def step(score: str, low: float, high: float, at: float) -> str:
    """The chance 0 below `low`, 1 above `high` and `at` from one to the other."""
    return (
        f"CASE WHEN {score} > {literal(high)} THEN 1e0 WHEN {score} >= {literal(low)} THEN {literal(at)} "
        f"WHEN {score} < {literal(low)} THEN 0e0 END"
    )


def clipped(value: str) -> str:
    """A value cut off at 0 and 1; NULL stays NULL."""
    return f"CASE WHEN {value} <= 0e0 THEN 0e0 WHEN {value} >= 1e0 THEN 1e0 ELSE {value} END"


def draw(key: str, id_text: str) -> str:
    """The repeatable u in [0, 1) of an id; key and id are expressions of type text."""
    digits = f"substr(sha256({key} || ':' || {id_text}), 1, 13)"
    return f"(CAST('0x' || {digits} AS BIGINT) / {literal(2.0**52)})"


def decision(probability: str, drawn: str) -> str:
    """Yes or no as 1 or 0; the draw is made only where the probability leaves it open."""
    return (
        f"CAST(CASE WHEN {probability} <= 0e0 THEN 0 WHEN {probability} >= 1e0 THEN 1 "
        f"WHEN {drawn} < {probability} THEN 1 WHEN {drawn} >= {probability} THEN 0 END AS TINYINT)"
    )
