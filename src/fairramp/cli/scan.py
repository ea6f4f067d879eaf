"""Validate the columns a command uses, in one pass over the rows.

Numbers stored as text are read with a decimal point, or with a decimal comma if that reads more of them. Groups
are text, integers or booleans; missing values in Parquet and JSON form a group of their own, and so do empty
cells in CSV.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import duckdb
import numpy as np

from fairramp.core.labels import Label, label_key, label_of
from fairramp.data.columns import Columns
from fairramp.data.groups import Codes
from fairramp.data.probable import SUM_TOLERANCE, GroupProbabilities
from fairramp.data.stored import Source, literal
from fairramp.errors import FairrampError, refuse_if

_TEXT = "VARCHAR"
#: Words for yes and no in label columns, in lowercase.
_YES = ("true", "yes", "y", "ja", "j", "wahr", "t", "oui", "vrai", "si", "sí")
_NO = ("false", "no", "n", "nein", "falsch", "f", "non", "faux")
#: Words that programs write for a missing number.
_MISSING = ("na", "nan", "null", "none")
#: Above this, the group column is probably an id column.
_MAX_GROUPS = 100_000
_PROBABILITY, _CLASS = "--group-probability", "--class-score"


@dataclass(frozen=True)
class Number:
    """A column that must hold numbers.

    Attributes
    ----------
    option : str
        The option that named it, for messages.
    name, column : str
        Its name in the file and in the query.
    expression : str
        SQL that converts it to a double; NULL if that fails.
    comma : bool
        Whether it is written with decimal commas.
    lowest, highest : float
        Range over all rows; None without rows.
    """

    option: str
    name: str
    column: str
    expression: str
    comma: bool
    lowest: float
    highest: float


@dataclass(frozen=True)
class Job:
    """A table whose rows have been validated.

    Attributes
    ----------
    source : Source
        The opened table.
    columns : Columns
        The columns in use, by their names in the file.
    table : str
        Temporary table with the distinct values of strata and group columns, k0, k1, …, and their `code`.
    rows : int
        Number of rows.
    numbers : dict of str to Number
        Number columns by option; those of group probabilities and of classes by the option and their index.
    cells : tuple of tuple
        Distinct values of strata and group columns, by code.
    counts : tuple of int
        Number of rows of each.
    keys : tuple of str
        SQL of these columns.
    typed_keys : tuple of str
        The same in the types of the rule's labels, if there is a rule.
    labels : tuple
        The groups of the columns with group probabilities.
    classes : tuple
        The classes of the columns with their scores.
    truth : str or None
        SQL of the true class as text, if there are classes and labels.
    """

    source: Source
    columns: Columns
    table: str
    rows: int
    numbers: dict[str, Number]
    cells: tuple[tuple[Any, ...], ...]
    counts: tuple[int, ...]
    keys: tuple[str, ...]
    typed_keys: tuple[str, ...]
    labels: tuple[Label, ...] = ()
    classes: tuple[Label, ...] = ()
    truth: str | None = None

    @property
    def score(self) -> Number:
        """The score column, or that of the first class."""
        return self.numbers["--score"] if "--score" in self.numbers else self.class_scores[0]

    @property
    def probabilities(self) -> list[Number]:
        """The columns with group probabilities."""
        return [number for key, number in self.numbers.items() if key.startswith(_PROBABILITY)]

    @property
    def class_scores(self) -> list[Number]:
        """The columns with the scores of classes."""
        return [number for key, number in self.numbers.items() if key.startswith(_CLASS)]

    @property
    def inner(self) -> Columns:
        """The column names of `relation`."""
        n, names = len(self.columns.strata or ()), tuple(f"g{i}" for i in range(len(self.keys)))
        probable = tuple(f"q{i}" for i in range(len(self.probabilities)))
        scores = tuple(f"p{i}" for i in range(len(self.class_scores)))
        score = None if scores else "score"
        return Columns(score, names[n:] or None, names[:n] or None, "id", probable or None, scores or None)

    @property
    def groups(self) -> list[tuple[Label, int]]:
        """The groups (or cells) in order, with their numbers of rows."""
        labels = (label_of(parts, len(self.columns.strata or ())) for parts in self.cells)
        return sorted(zip(labels, self.counts, strict=True), key=lambda pair: label_key(pair[0]))

    def relation(self, *, extra: bool = False) -> duckdb.DuckDBPyRelation:
        """Return the columns in use under internal names: score or p0, p1, …, label, weight, q0, …, g0, …, id.

        With `extra`, all columns of the file come first.
        """
        parts = [f"c{i}" for i in range(len(self.source.names))] if extra else []
        parts += [f"({number.expression}) AS {inner_name(option)}" for option, number in self.numbers.items()]
        parts += [f"{key} AS g{i}" for i, key in enumerate(self.typed_keys)]
        if self.columns.id is not None:
            parts.append(f"{self._id} AS id")
        return self.source.connection.sql(f"SELECT {', '.join(parts)} FROM ({self.source.query})")

    def arrays(self, *, ordered: bool = False) -> dict[str, Any]:
        """Return arguments for in-memory functions: scores, groups, labels, sample_weight, strata.

        If there are classes, the scores are `probabilities`, by class, and labels are text. `ordered` sorts the
        rows, so the result does not depend on the order in which threads read them. With columns of group
        probabilities, they are among the arguments, as `group_probabilities`; with a column of ids, `ids`.
        """
        expressions = [number.expression for number in self.numbers.values()]
        expressions += [self.truth] if self.truth else []
        expressions += [self._id] if self.columns.id else []
        inner = [f"{key} AS k{i}" for i, key in enumerate(self.keys)]
        inner += [f"({expression}) AS x{i}" for i, expression in enumerate(expressions)]
        match = " AND ".join(f"d.k{i} IS NOT DISTINCT FROM s.k{i}" for i in range(len(self.keys)))
        outer = ", ".join(["CAST(s.code AS INTEGER) AS code", *(f"d.x{i}" for i in range(len(expressions)))])
        columns = self.source.connection.sql(
            f"SELECT {outer} FROM (SELECT {', '.join(inner)} FROM ({self.source.query})) AS d "
            f"JOIN {self.table} AS s ON {match}{' ORDER BY ALL' if ordered else ''}"
        ).fetchnumpy()
        options = [*self.numbers, *(["--label"] if self.truth else []), *(["--id"] if self.columns.id else [])]
        found = {option: columns[f"x{i}"] for i, option in enumerate(options)}
        scores: dict[str, Any] = {"scores": found.get("--score")}
        if self.classes:
            by_class = (values for option, values in found.items() if option.startswith(_CLASS))
            scores = {"probabilities": dict(zip(self.classes, by_class, strict=True))}
        n = len(self.columns.strata or ())
        return {
            **scores,
            "groups": _codes(columns["code"], [parts[n:] for parts in self.cells], self.columns.groups),
            "labels": found.get("--label"),
            "sample_weight": found.get("--weight"),
            "strata": (
                _codes(columns["code"], [parts[:n] for parts in self.cells], self.columns.strata) if n else None
            ),
            **({"group_probabilities": self._probable(found)} if self.probabilities else {}),
            **({"ids": found["--id"].tolist()} if self.columns.id else {}),
        }

    @property
    def _id(self) -> str:
        """SQL of the ids as text."""
        return f"CAST({self.source.find(self.columns.id or '', '--id')} AS VARCHAR)"

    def _probable(self, found: dict[str, Any]) -> GroupProbabilities:
        """The group probabilities of rows in memory."""
        columns = [values for key, values in found.items() if key.startswith(_PROBABILITY)]
        return GroupProbabilities(dict(zip(self.labels, columns, strict=True)))

    def in_order(self) -> dict[str, Any]:
        """Keep all rows in the table `kept`, and return scores, groups and ids (or None) in their order."""
        self.relation(extra=True).project("*, row_number() OVER () AS position").create("kept")
        match = " AND ".join(f"r.g{i} IS NOT DISTINCT FROM s.k{i}" for i in range(len(self.keys)))
        id = ", r.id" if self.columns.id is not None else ""
        columns = self.source.connection.sql(
            f"SELECT CAST(s.code AS INTEGER) AS code, r.score{id} FROM kept AS r "
            f"JOIN {self.table} AS s ON {match} ORDER BY r.position"
        ).fetchnumpy()
        return {
            "scores": columns["score"],
            "groups": _codes(columns["code"], self.cells, self.columns.groups),
            "ids": columns["id"].tolist() if id else None,
        }

    def decide(self, decisions: Any) -> None:
        """Create the view `decided`: the table of `in_order` with the column `decision`."""
        chosen = (np.flatnonzero(decisions) + 1).tolist()
        self.source.connection.execute("CREATE TEMP TABLE chosen AS SELECT unnest(?::BIGINT[]) AS i", [chosen])
        self.source.connection.execute(
            "CREATE TEMP VIEW decided AS SELECT kept.*, CAST(i IS NOT NULL AS TINYINT) AS decision "
            "FROM kept LEFT JOIN chosen ON position = i"
        )


def inner_name(option: str) -> str:
    """The internal name of a number column."""
    name, _, index = option.partition(" ")
    return f"{'q' if name == _PROBABILITY else 'p'}{index}" if index else name[2:]


def _codes(code: Any, parts: Sequence[tuple[Any, ...]], names: tuple[str, ...] | None) -> Codes:
    """Return the codes of some columns, given the codes of all of them."""
    labels = list(map(label_of, parts))
    ordered = dict(sorted({label_key(label): label for label in labels}.items()))
    place = {key: i for i, key in enumerate(ordered)}
    seats = np.array([place[label_key(label)] for label in labels], dtype=np.int32)
    return Codes(seats[np.asarray(code)], 0, tuple(ordered.values()), names)


def scan(
    source: Source,
    columns: Columns,
    numbers: dict[str, str],
    *,
    decimal: str | None = None,
    percent: bool = False,
    positive: str | None = None,
) -> Job:
    """Check in one pass that all numbers are numbers and that every row has an id.

    Parameters
    ----------
    source : Source
        The opened table.
    columns : Columns
        Columns with groups and strata, which are coded, with ids, which must not be missing, and with group
        probabilities.
    numbers : dict
        Column names by option, such as ``{"--score": "p"}``.
    decimal : str, optional
        Decimal mark; detected if None.
    percent : bool
        Whether scores may end in a percent sign.
    positive : str, optional
        The label that means yes; all others then mean no.
    """
    for option, names in ((_PROBABILITY, columns.probabilities), (_CLASS, columns.class_scores)):
        numbers = numbers | {f"{option} {i}": name for i, name in enumerate(names or ())}
    found = {option: source.find(name, option.partition(" ")[0]) for option, name in numbers.items()}
    options = ["--strata"] * len(columns.strata or ()) + ["--group"] * len(columns.groups or ())
    keys = tuple(
        label_sql(source, source.find(name, option), name)
        for option, name in zip(options, columns.grouped, strict=True)
    )
    readings = {
        option: _readings(source, column, option, percent and option == "--score", decimal, positive)
        for option, column in found.items()
    }
    no_id = "false" if columns.id is None else _no_id(source, columns.id)
    # The statistics in a Parquet file usually show that no id is missing, without reading the column.
    by_statistics = source.format == "parquet" and columns.id is not None
    sums = [("sum", f"count(*) FILTER ({'false' if by_statistics else no_id})")]
    for reading in chain.from_iterable(readings.values()):
        sums += [
            ("sum", f"count(*) FILTER (({reading}) IS NULL OR NOT isfinite({reading}))"),
            ("min", f"min({reading})"),
            ("max", f"max({reading})"),
        ]
    table, by = f"scan_{secrets.token_hex(8)}", ", ".join([*(f"k{i}" for i in range(len(keys))), "n"])
    grouped = f"GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
    source.connection.execute(
        f"CREATE TEMP TABLE {table} AS SELECT *, row_number() OVER (ORDER BY {by}) - 1 AS code FROM "
        f"(SELECT {', '.join([*keys, 'count(*)', *(part for _, part in sums)])} FROM ({source.query}) "
        f"{grouped} LIMIT {_MAX_GROUPS + 1}) AS t({', '.join([by, *(f'x{i}' for i in range(len(sums)))])})"
    )
    cells = source.connection.execute(f"SELECT {by} FROM {table} ORDER BY code").fetchall()
    refuse_if(
        len(cells) > _MAX_GROUPS,
        "{names} in {where} has more than {most:,} groups; is it an id column?",
        names=" and ".join(map(repr, columns.grouped)),
        where=source.shown,
        most=_MAX_GROUPS,
    )
    totals = (f"{how}(x{i})" for i, (how, _) in enumerate(sums))
    ((nobody, *stats),) = source.connection.execute(f"SELECT {', '.join(totals)} FROM {table}").fetchall()
    if by_statistics:
        ((nobody,),) = source.ask("count(*)", f"WHERE {no_id}")
    if nobody:
        raise FairrampError(
            "{n:,} row{have} no id in {id!r} of {where}, first in {place}",
            remedy="give every row an id",
            n=nobody,
            have=" has" if nobody == 1 else "s have",
            id=columns.id,
            where=source.shown,
            place=_first(source, no_id)[0],
        )
    resolved = {}
    for i, (option, column) in enumerate(found.items()):
        dot, comma = stats[6 * i : 6 * i + 3], stats[6 * i + 3 : 6 * i + 6]
        # Blank cells fail both readings, so they do not affect the choice.
        use = 1 if (comma[0] or 0) < (dot[0] or 0) else 0
        wrong, lowest, highest = (dot, comma)[use]
        written = use == 1 or (decimal == "," and source.type_of(column) == _TEXT)
        typed = option.partition(" ")[0]
        number = Number(typed, numbers[option], column, readings[option][use], written, lowest, highest)
        if wrong:
            _refuse_number(source, number)
        if option == "--label" and positive is not None and highest == 0:
            there = source.ask(f"DISTINCT CAST({column} AS VARCHAR)", "ORDER BY 1 LIMIT 6")
            raise FairrampError(
                "--positive {positive!r} does not occur in --label {name!r} of {where}, which has the values "
                "{values}{more}",
                positive=positive,
                name=number.name,
                where=source.shown,
                values=", ".join(repr(value) for (value,) in there[:5]),
                more=", …" if len(there) > 5 else "",
            )
        resolved[option] = number
    parts, counts = tuple(row[:-1] for row in cells), tuple(row[-1] for row in cells)
    job = Job(source, columns, table, sum(counts), resolved, parts, counts, keys, keys)
    for shares in (job.probabilities, job.class_scores):
        if job.rows and shares:
            _check_probabilities(source, shares)
    return job


def _check_probabilities(source: Source, columns: Sequence[Number]) -> None:
    """Reject probabilities of groups or classes out of range, and rows in which they do not sum to 1."""
    for number in columns:
        if number.lowest >= 0 and number.highest <= 1 + SUM_TOLERANCE:
            continue
        e = f"({number.expression})"
        place, value = _first(source, f"{e} < 0 OR {e} > 1 + {SUM_TOLERANCE}", e)
        raise FairrampError(
            "{option} {name!r} in {where} has {value:g} in {place}, which is not between 0 and 1",
            option=number.option,
            name=number.name,
            where=source.shown,
            value=value,
            place=place,
            remedy="divide percentages by 100" if number.lowest >= 0 and number.highest <= 100 else None,
        )
    total = " + ".join(f"({number.expression})" for number in columns)
    off = f"abs({total} - 1) > {SUM_TOLERANCE}"
    ((n,),) = source.ask("count(*)", f"WHERE {off}")
    if n:
        place, value = _first(source, off, f"({total})")
        raise FairrampError(
            "The columns {names} of {option} in {where} must sum to 1 in every row, but sum to {value:.9g} in "
            "{place}{more}",
            names=", ".join(repr(number.name) for number in columns),
            option=columns[0].option,
            where=source.shown,
            value=value,
            place=place,
            more="" if n == 1 else f", the first of {n:,} such rows",
            remedy="divide each row by its sum, or add a column for the remaining people"
            if columns[0].option == _PROBABILITY
            else "divide each row by its sum, or add a column for the remaining class",
        )


def _readings(
    source: Source, column: str, option: str, percent: bool, decimal: str | None, positive: str | None
) -> tuple[str, str]:
    """Return SQL that reads a column as doubles with a decimal point, and with a decimal comma."""
    kind = source.type_of(column)
    if option == "--label" and positive is not None:
        text = f"lower(trim(CAST({column} AS VARCHAR)))"
        return (
            f"CASE WHEN {text} <> '' THEN CAST({text} = {literal(positive.strip().lower())} AS DOUBLE) END",
        ) * 2
    if kind != _TEXT:
        refuse_if(
            not kind.startswith(("DECIMAL", "BOOLEAN"))
            and not kind.endswith(("INT", "INTEGER", "FLOAT", "DOUBLE")),
            "{option} {name!r} in {where} must hold numbers, got {kind}",
            option=option,
            name=source.names[int(column[1:])],
            where=source.shown,
            kind=kind,
        )
        return (f"CAST({column} AS DOUBLE)",) * 2
    text = f"trim({column})"
    if option == "--label":
        yes, no = (", ".join(map(literal, words)) for words in (_YES, _NO))
        lowered = f"lower({text})"
        text = f"CASE WHEN {lowered} IN ({yes}) THEN '1' WHEN {lowered} IN ({no}) THEN '0' ELSE {text} END"
    if percent:
        text = f"rtrim(rtrim({text}, '%'))"
    dot = f"TRY_CAST({text} AS DOUBLE)"
    comma = f"CASE WHEN NOT contains({column}, '.') THEN TRY_CAST(replace({text}, ',', '.') AS DOUBLE) END"
    return {None: (dot, comma), ",": (comma, comma), ".": (dot, dot)}[decimal]


def _refuse_number(source: Source, number: Number) -> None:
    e = number.expression
    place, value = _first(source, f"({e}) IS NULL OR NOT isfinite({e})", number.column)
    text = "" if value is None else str(value).strip()
    told = {"option": number.option, "name": number.name, "where": source.shown, "place": place}
    if text == "" or text.lower() in _MISSING:
        blank = f"lower(trim(CAST({number.column} AS VARCHAR))) IN ('', {', '.join(map(literal, _MISSING))})"
        ((n,),) = source.ask("count(*)", f"WHERE {number.column} IS NULL OR {blank}")
        raise FairrampError(
            "{option} {name!r} in {where} {many} {place}; every row needs a {what}: {remedy_}",
            many=f"has no number in {n:,} rows, first in"
            if n > 1
            else f"{f'has {value!r}' if text else 'is empty'} in",
            what=number.option[2:].replace("-", " "),
            remedy_="fill it in or drop the row" if n == 1 else "fill them in or drop the rows",
            **told,
        )
    refuse_if(
        text.endswith("%") and number.option == "--score",
        "{option} {name!r} in {where} is in percent ({text!r} in {place}); pass --scale percent",
        text=text,
        **told,
    )
    remedies = {
        "use one decimal mark and no thousands separator": "," in text and "." in text,
        "use 1 for yes and 0 for no, or pass --positive with the label that means yes": number.option
        == "--label",
        "other rows have a decimal comma; use one decimal mark in all rows": number.comma and "." in text,
        "use one decimal mark in all rows, or pass --decimal , if it is a comma": "," in text,
        "correct it, or choose another column": True,
    }
    raise FairrampError(
        "{option} {name!r} in {where} has {text!r} in {place}, which is {wrong}",
        wrong="neither yes nor no" if number.option == "--label" else "not a number",
        remedy=next(remedy for remedy, helps in remedies.items() if helps),
        text=text[:40],
        **told,
    )


def _first(source: Source, condition: str, column: str = "NULL") -> tuple[str, Any]:
    """Describe the first row where a condition holds, counted from 1, and return the value there.

    The line number in a CSV file is one higher, unless a cell contains a line end.
    """
    ((row, value),) = source.connection.execute(
        f"SELECT position, {column} FROM (SELECT *, row_number() OVER () AS position FROM ({source.query})) "
        f"WHERE {condition} ORDER BY position LIMIT 1"
    ).fetchall()
    return f"row {row:,}{' (not counting the header)' if source.format == 'csv' else ''}", value


def label_sql(source: Source, column: str, name: str) -> str:
    """Return SQL that reads a group column as text, integers or booleans."""
    kind = source.type_of(column)
    if kind in (_TEXT, "BOOLEAN", "BIGINT", "HUGEINT", "UHUGEINT", "UBIGINT"):
        return column
    if kind.endswith(("INT", "INTEGER")):
        return f"CAST({column} AS BIGINT)"
    if kind not in ("DOUBLE", "FLOAT") and not kind.startswith("DECIMAL"):
        return f"CAST({column} AS VARCHAR)"
    # Integers with missing values are often stored as floats with NaN.
    known = column if kind.startswith("DECIMAL") else f"CASE WHEN NOT isnan({column}) THEN {column} END"
    refuse_if(
        source.ask("1", f"WHERE ({known}) <> floor({known}) OR isinf({known}) LIMIT 1"),
        "--group {name!r} in {where} has numbers with decimals; groups must be text or integers",
        name=name,
        where=source.shown,
    )
    return f"CAST({known} AS BIGINT)"


def _no_id(source: Source, name: str) -> str:
    """Return an SQL condition for a missing id, after checking the type of the column."""
    column = source.find(name, "--id")
    kind = source.type_of(column)
    if kind == _TEXT:
        return f"({column} IS NULL OR {column} = '')"
    refuse_if(
        not kind.endswith(("INT", "INTEGER")),
        "--id {name!r} in {where} has type {kind}; ids must be text or integers, because 12 and 12.0 would get "
        "different random draws",
        name=name,
        where=source.shown,
        kind=kind,
    )
    return f"{column} IS NULL"
