"""The columns that play a part: checked in one pass over the rows, in one clear sentence if they cannot serve.

Numbers that came as text are read with a decimal point, or with a decimal comma if that reads all of them. Groups
are text, whole numbers or booleans; a missing value of Parquet or JSON is a group of its own, and so is an
empty cell of CSV.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairramp.cli.tables import Source, TableError, literal

__all__ = ["Number", "Scan", "scan"]

_TEXT = "VARCHAR"
#: Words for yes and no in columns of labels, whatever their case.
_YES = ("true", "yes", "y", "ja", "j", "wahr", "t", "oui", "vrai", "si", "sí")
_NO = ("false", "no", "n", "nein", "falsch", "f", "non", "faux")
#: What programs write for a number that is not there.
_MISSING = ("na", "nan", "null", "none")


@dataclass(frozen=True)
class Number:
    """A column that must hold numbers.

    Attributes
    ----------
    option : str
        The option that named it, for messages.
    name, column : str
        What the user and what the query call it.
    expression : str
        SQL that makes it a double; NULL where it is none.
    comma : bool
        Whether its decimals are written with a comma.
    lowest, highest : float or None
        Over all rows.
    """

    option: str
    name: str
    column: str
    expression: str
    comma: bool = False
    lowest: float | None = None
    highest: float | None = None


@dataclass(frozen=True)
class Scan:
    """What one pass over the rows found.

    Attributes
    ----------
    source : Source
        Where the rows are.
    table : str
        A temporary table with the distinct values of the group columns, k0, k1, …, and their `code`.
    rows : int
        How many.
    numbers : dict of str to Number
        By option.
    labels : tuple of tuple
        Distinct values of the group columns, by code.
    counts : tuple of int
        Rows of each.
    groups : tuple of str
        SQL of the group columns.
    typed_groups : tuple of str
        The same, in the types of a rule's labels if there is a rule.
    """

    source: Source
    table: str
    rows: int
    numbers: dict[str, Number]
    labels: tuple[tuple[Any, ...], ...]
    counts: tuple[int, ...]
    groups: tuple[str, ...]
    typed_groups: tuple[str, ...]

    def arrays(self) -> dict[str, Any]:
        """The numbers, by option, and the "code" of each row's groups, as NumPy columns in no certain order."""
        numbers = list(self.numbers.values())
        selected = [f"{key} AS k{i}" for i, key in enumerate(self.groups)]
        selected += [f"({number.expression}) AS x{i}" for i, number in enumerate(numbers)]
        match = " AND ".join(f"d.k{i} IS NOT DISTINCT FROM s.k{i}" for i in range(len(self.groups)))
        columns = ", ".join([*(f"d.x{i}" for i in range(len(numbers))), "CAST(s.code AS INTEGER) AS code"])
        found = self.source.connection.sql(
            f"SELECT {columns} FROM (SELECT {', '.join(selected)} FROM ({self.source.query})) AS d "
            f"JOIN {self.table} AS s ON {match}"
        ).fetchnumpy()
        return {number.option: found[f"x{i}"] for i, number in enumerate(numbers)} | {"code": found["code"]}


#: More groups than anyone can look at: an id column taken for a group.
_MAX_GROUPS = 100_000


def scan(
    source: Source,
    numbers: dict[str, str],
    groups: Sequence[tuple[str, str]],
    *,
    id: str | None = None,
    decimal: str | None = None,
    percent: bool = False,
    positive: str | None = None,
) -> Scan:
    """Look at every row once: numbers must be numbers, and everybody must have an id.

    Parameters
    ----------
    numbers : dict
        Column names by option, such as ``{"--score": "p"}``.
    groups : pairs (option, column name)
        Group columns, then strata.
    percent : bool
        Whether scores may end in a percent sign.
    positive : str, optional
        The label that means yes; all others then mean no.
    """
    found = {option: source.find(name, option) for option, name in numbers.items()}
    columns = [source.find(name, option) for option, name in groups]
    keys = [_label_sql(source, column, name) for column, (_, name) in zip(columns, groups, strict=True)]
    parts, readings = [], {}
    for option, column in found.items():
        dot, comma = _readings(source, column, option, percent and option == "--score", decimal, positive)
        readings[option] = (dot, comma)
        for reading in (dot, comma):
            parts += [
                f"count(*) FILTER (({reading}) IS NULL OR NOT isfinite({reading}))",
                f"min({reading})",
                f"max({reading})",
            ]
    missing_id = "0"
    if id is not None:
        column = source.find(id, "--id")
        _check_id_type(source, column, id)
        blank = f" OR {column} = ''" if source.type_of(column) == _TEXT else ""
        missing_id = f"count(*) FILTER ({column} IS NULL{blank})"
    selected = ", ".join([*keys, "count(*)", missing_id, *parts])
    by = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
    table = f"scan_{secrets.token_hex(8)}"
    names = ", ".join([*(f"k{i}" for i in range(len(keys))), *(f"x{i}" for i in range(len(parts) + 2))])
    source.connection.execute(
        f"CREATE TEMP TABLE {table} AS SELECT *, row_number() OVER () - 1 AS code FROM "
        f"(SELECT {selected} FROM ({source.query}){by} LIMIT {_MAX_GROUPS + 1}) AS t({names})"
    )
    rows = source.connection.execute(f"SELECT * FROM {table} ORDER BY code").fetchall()
    if len(rows) > _MAX_GROUPS:
        raise TableError(
            f"{' and '.join(repr(name) for _, name in groups)} of {source.shown} makes more than "
            f"{_MAX_GROUPS:,} groups; is it an id?"
        )
    k = len(keys)
    total = sum(row[k] for row in rows)
    nobody = sum(row[k + 1] for row in rows)
    if total and nobody:
        blank_row = _first_row(source, f"{column} IS NULL{blank}")
        raise TableError(
            f"{nobody:,} row{' has' if nobody == 1 else 's have'} no id in {id!r} of {source.shown}, the first "
            f"is {_place(source, blank_row)}; give every row an id of its own."
        )
    resolved = {}
    for i, (option, column) in enumerate(found.items()):
        stats = [_merged(rows, k + 2 + 6 * i + 3 * j) for j in range(2)]
        use = 1 if stats[1][0] < stats[0][0] else 0  # a blank cell is none either way, and decides nothing
        number = Number(option, numbers[option], column, readings[option][use], use == 1)
        if decimal == "," and source.type_of(column) == _TEXT:
            number = replace(number, comma=True)
        if total and stats[use][0]:
            _refuse_number(source, number)
        resolved[option] = replace(number, lowest=stats[use][1], highest=stats[use][2])
        if total and option == "--label" and positive is not None and stats[use][2] == 0:
            _refuse_positive(source, number, positive)
    labels = tuple(tuple(row[:k]) for row in rows if row[k])
    counts = tuple(row[k] for row in rows if row[k])
    return Scan(source, table, total, resolved, labels, counts, tuple(keys), tuple(keys))


def _merged(rows: list[Any], at: int) -> tuple[int, float | None, float | None]:
    lows = [row[at + 1] for row in rows if row[at + 1] is not None]
    highs = [row[at + 2] for row in rows if row[at + 2] is not None]
    return sum(row[at] for row in rows), min(lows, default=None), max(highs, default=None)


def _readings(
    source: Source, column: str, option: str, percent: bool, decimal: str | None, positive: str | None
) -> tuple[str, str]:
    """A column as doubles, with a decimal point and with a decimal comma."""
    kind = source.type_of(column)
    if option == "--label" and positive is not None:
        text = f"lower(trim(CAST({column} AS VARCHAR)))"
        yes = literal(positive.strip().lower())
        dot = comma = f"CASE WHEN {text} <> '' THEN CAST({text} = {yes} AS DOUBLE) END"
    elif kind != _TEXT:
        plain = kind.startswith(("DECIMAL", "BOOLEAN")) or kind.endswith(("INT", "INTEGER", "FLOAT", "DOUBLE"))
        if not plain:
            raise TableError(
                f"{option} {source.names[int(column[1:])]!r} of {source.shown} holds {kind}, not numbers."
            )
        dot = comma = f"CAST({column} AS DOUBLE)"
    else:
        text = f"trim({column})"
        if option == "--label":
            yes, no = (", ".join(map(literal, words)) for words in (_YES, _NO))
            lowered = f"lower({text})"
            text = f"CASE WHEN {lowered} IN ({yes}) THEN '1' WHEN {lowered} IN ({no}) THEN '0' ELSE {text} END"
        if percent:
            text = f"rtrim(rtrim({text}, '%'))"
        dot = f"TRY_CAST({text} AS DOUBLE)"
        comma = f"CASE WHEN NOT contains({column}, '.') THEN TRY_CAST(replace({text}, ',', '.') AS DOUBLE) END"
        if decimal is not None:
            dot = comma = comma if decimal == "," else dot
    return dot, comma


def _refuse_positive(source: Source, number: Number, positive: str) -> None:
    found = source.connection.execute(
        f"SELECT DISTINCT CAST({number.column} AS VARCHAR) FROM ({source.query}) ORDER BY 1 LIMIT 6"
    ).fetchall()
    shown = ", ".join(repr(value) for (value,) in found[:5]) + (", …" if len(found) > 5 else "")
    raise TableError(
        f"--positive {positive!r} stands in no row of --label {number.name!r} of {source.shown}, which has "
        f"{shown}."
    )


def _refuse_number(source: Source, number: Number) -> None:
    e = number.expression
    row, value = _first_row(source, f"({e}) IS NULL OR NOT isfinite({e})", number.column)
    where = f"{number.option} {number.name!r} of {source.shown}"
    row = _place(source, row)
    text = "" if value is None else str(value).strip()
    if text == "" or text.lower() in _MISSING:
        blank = f"lower(trim(CAST({number.column} AS VARCHAR))) IN ('', {', '.join(map(literal, _MISSING))})"
        n = source.connection.execute(
            f"SELECT count(*) FROM ({source.query}) WHERE {number.column} IS NULL OR {blank}"
        ).fetchall()[0][0]
        what = repr(value) if text else "nothing"
        many = f"{'no number' if text else 'nothing'} in {n:,} rows, the first is" if n > 1 else f"{what} in"
        raise TableError(
            f"{where} has {many} {row}; every row needs a number: "
            f"{'fill it in or drop the row' if n == 1 else 'fill them in or drop the rows'}."
        )
    if text.endswith("%") and number.option == "--score":
        raise TableError(f"{where} is in percent ({text!r} in {row}); pass --scale percent.")
    if "," in text and "." in text:
        remedy = "write decimals one way, and no mark between thousands"
    elif number.option == "--label":
        remedy = "write 1 for yes and 0 for no, or pass --positive VALUE, the one that means yes"
    elif number.comma and "." in text:
        remedy = "decimals are written with a comma in other rows: write them one way"
    else:
        remedy = (
            "write all decimals one way, or pass --decimal , if it is a comma"
            if "," in text
            else "write it as a number"
        )
    raise TableError(f"{where} has {text[:40]!r} in {row}, which is not a number; {remedy}.")


def _place(source: Source, row: int) -> str:
    """How messages name a row; lines of a CSV file are one more, where no cell has a line end."""
    return f"row {row:,} (the header not counted)" if source.format == "csv" else f"row {row:,}"


def _first_row(source: Source, condition: str, column: str | None = None) -> Any:
    """Number of the first row, from 1, where a condition holds, and what stands there."""
    inner = f"SELECT *, row_number() OVER () AS position FROM ({source.query})"
    found = source.connection.execute(
        f"SELECT position, {column or 'NULL'} FROM ({inner}) WHERE {condition} ORDER BY position LIMIT 1"
    ).fetchall()[0]
    return found if column else found[0]


def _label_sql(source: Source, column: str, name: str) -> str:
    """A group column as text, whole numbers or booleans."""
    kind = source.type_of(column)
    if kind in (_TEXT, "BOOLEAN", "BIGINT"):
        return column
    if kind.endswith(("INT", "INTEGER")):
        return column if kind in ("HUGEINT", "UHUGEINT", "UBIGINT") else f"CAST({column} AS BIGINT)"
    if kind in ("DOUBLE", "FLOAT") or kind.startswith("DECIMAL"):
        # Whole numbers with gaps are often stored as floats, the gaps as NaN.
        known = column if kind.startswith("DECIMAL") else f"CASE WHEN NOT isnan({column}) THEN {column} END"
        query = (
            f"SELECT count(*) FROM (SELECT {known} AS x FROM ({source.query})) WHERE x <> floor(x) OR isinf(x)"
        )
        if source.connection.execute(query).fetchall() == [(0,)]:
            return f"CAST({known} AS BIGINT)"
        raise TableError(
            f"--group {name!r} of {source.shown} holds numbers with decimals; groups are text or whole numbers."
        )
    return f"CAST({column} AS VARCHAR)"


def _check_id_type(source: Source, column: str, name: str) -> None:
    kind = source.type_of(column)
    if kind != _TEXT and not kind.endswith(("INT", "INTEGER")):
        raise TableError(
            f"--id {name!r} of {source.shown} holds {kind}; ids must be text or whole numbers, because 12 and "
            "12.0 would be drawn apart."
        )
