"""Validate the columns a command uses, in one pass over the rows.

Numbers stored as text are read with a decimal point, or with a decimal comma if that reads more of them. Groups
are text, integers or booleans; missing values in Parquet and JSON form a group of their own, and so do empty
cells in CSV.
"""

import math
import secrets
from collections.abc import Sequence
from dataclasses import replace

from fairramp.cli.faults import Fault
from fairramp.cli.job import CLASS, PROBABILITY, Job, Number
from fairramp.cli.naming import typed_label
from fairramp.core.labels import SEEN, UNSEEN, label_key, show_label
from fairramp.core.scales import SCALES
from fairramp.data.columns import Columns
from fairramp.data.database import literal
from fairramp.data.probable import SUM_TOLERANCE
from fairramp.data.stored import Source
from fairramp.errors import FairrampError, refuse_if

_TEXT = "VARCHAR"
#: Words for yes and no in label columns, in lowercase.
_YES = ("true", "yes", "y", "ja", "j", "wahr", "t", "oui", "vrai", "si", "sí")
_NO = ("false", "no", "n", "nein", "falsch", "f", "non", "faux")
#: Above this, the group column is probably an id column.
_MAX_GROUPS = 100_000


def scan(
    source: Source,
    columns: Columns,
    numbers: dict[str, str],
    *,
    decimal: str | None = None,
    scale: str = "probability",
    positive: str | None = None,
) -> tuple[Job, list[Fault]]:
    """Check in one pass that all numbers are numbers in range and that every row has an id.

    Returns the job, and the faults of columns with bad cells; with faults, its rows must not be used.

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
    scale : str
        Scale of the scores; percentages may end in a percent sign.
    positive : str, optional
        The label that means yes; all others then mean no.
    """
    for option, names in ((PROBABILITY, columns.probabilities), (CLASS, columns.class_scores)):
        numbers = numbers | {f"{option} {i}": name for i, name in enumerate(names or ())}
    found = {option: source.find(name, option.partition(" ")[0]) for option, name in numbers.items()}
    options = ["--strata"] * len(columns.strata or ()) + ["--group"] * len(columns.groups or ())
    keys = tuple(
        label_sql(source, source.find(name, option), name)
        for option, name in zip(options, columns.grouped, strict=True)
    )
    readings = {
        option: _readings(source, column, option, scale == "percent" and option == "--score", decimal, positive)
        for option, column in found.items()
    }
    no_id = "false" if columns.id is None else _no_id(source, columns.id)
    # The statistics in a Parquet file usually show that no id is missing, without reading the column.
    by_statistics = source.format == "parquet" and columns.id is not None
    sums = [("sum", f"count(*) FILTER ({'false' if by_statistics else no_id})")]
    for option, reading in ((option, one) for option, both in readings.items() for one in both):
        right = f"({reading}) IN (0, 1)" if option == "--label" else f"isfinite({reading})"
        sums += [
            ("sum", f"count(*) FILTER (({right}) IS NOT TRUE)"),
            ("min", f"min({reading}) FILTER (isfinite({reading}))"),
            ("max", f"max({reading}) FILTER (isfinite({reading}))"),
        ]
    thousands = {
        option: _thousands_sql(source, found[option], both)
        for option, both in readings.items()
        if decimal is None and option != "--label" and source.type_of(found[option]) == _TEXT
    }
    sums += [part for parts in thousands.values() for part in parts]
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
        column = source.find(str(columns.id), "--id")
        may_lack = f"{column} IS NULL"
        if source.type_of(column) == _TEXT:
            may_lack = f"({may_lack} OR {_may_be_blank(column)})"
        ((nobody,),) = source.ask("count(*)", f"WHERE {may_lack} AND {no_id}")
    pairs = iter(stats[6 * len(found) :])
    grouped_as = dict(zip(thousands, zip(pairs, pairs, strict=True), strict=True))
    faults = []
    if nobody:
        id = source.find(str(columns.id), "--id")
        faults.append(Fault("--id", repr(columns.id), "is missing", no_id, id, id, {}))
    resolved = {}
    for i, (option, column) in enumerate(found.items()):
        dot, comma = stats[6 * i : 6 * i + 3], stats[6 * i + 3 : 6 * i + 6]
        # Blank cells fail both readings, so they do not affect the choice.
        use = 1 if (comma[0] or 0) < (dot[0] or 0) else 0
        wrong, lowest, highest = (dot, comma)[use]
        written = use == 1 or (decimal == "," and source.type_of(column) == _TEXT)
        typed = option.partition(" ")[0]
        number = Number(typed, numbers[option], column, readings[option][use], written, lowest, highest)
        low, high = _range(typed, scale)
        _refuse_thousands(source, number, *grouped_as.get(option, (None, None)), low, high)
        if wrong or (lowest is not None and (lowest < low or highest > high)):
            faults.append(_number_fault(number, low, high, given=positive is not None))
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
    job = Job(source, columns, table, sum(counts), resolved, parts, parts, counts, keys, keys)
    for shares in (job.probabilities, job.class_scores):
        if job.rows and shares:
            faults += _sum_faults(source, shares)
    return job, faults


def _thousands_sql(source: Source, column: str, readings: tuple[str, str]) -> list[tuple[str, str]]:
    """Statistics of the numbers with a mark: one that may separate thousands, and whether any other has none.

    The point in a file with commas between its cells is a decimal point, as everywhere.
    """
    text = f"trim({column}, '% ')"
    marks = "," if source.delimiter == "," else ".,"
    pattern = f"'[+-]?[1-9][0-9]{{0,2}}[{marks}][0-9]{{3}}'"
    # Comparing one character first is faster.
    separated = f"(substr({text}, -4, 1) IN ('.', ',') AND regexp_full_match({text}, {pattern}))"
    number = " OR ".join(f"({reading}) IS NOT NULL" for reading in readings)
    return [
        ("min", f"min({text}) FILTER ({separated})"),
        ("bool_or", f"bool_or(regexp_matches({column}, '[.,]') AND NOT {separated} AND ({number}))"),
    ]


def _refuse_thousands(
    source: Source, number: Number, example: str | None, others: bool | None, low: float, high: float
) -> None:
    """Refuse numbers such as 1,200 that are either 1.2 or 1200, unless only 1.2 is in the range."""
    if example is None or others:
        return
    mark, value = example[-4], float(example.replace(",", "."))
    fits = number.lowest is not None and low <= number.lowest and number.highest <= high
    refuse_if(
        not fits or low <= 1000 * value <= high,
        "{option} {name!r} in {where} may have thousands separators: {example!r} is {value:g} with a decimal "
        "{word} and {thousands:.0f} without; pass --decimal {mark!r} or remove the separators",
        option=number.option,
        name=number.name,
        where=source.shown,
        example=example,
        value=value,
        word="comma" if mark == "," else "point",
        thousands=1000 * value,
        mark=mark,
    )


def _range(option: str, scale: str) -> tuple[float, float]:
    """The range of a column's numbers."""
    return {
        "--score": SCALES[scale].score_range,
        "--label": (0.0, 1.0),
        "--weight": (0.0, math.inf),
        PROBABILITY: (0.0, 1 + SUM_TOLERANCE),
        CLASS: (0.0, 1 + SUM_TOLERANCE),
    }[option]


def _number_fault(number: Number, low: float, high: float, *, given: bool) -> Fault:
    """The cells of a column that are no numbers in the range; labels are `given` by --positive."""
    e, is_label = f"({number.expression})", number.option == "--label"
    within = [f"isfinite({e})"]
    within += [f"{e} >= {low!r}"] if math.isfinite(low) else []
    within += [f"{e} <= {high!r}"] if math.isfinite(high) else []
    within += [f"{e} IN (0, 1)"] if is_label else []
    a_number = (
        f"a number between {low:g} and {high:.3g}"
        if math.isfinite(high)
        else f"a number of at least {low:g}"
        if math.isfinite(low)
        else "a finite number"
    )
    advice = {
        "%": "if they are percentages, pass --scale percent",
        ",": "other rows have a decimal comma; use one decimal mark, without a thousands separator"
        if number.comma
        else "use one decimal mark in all rows, or pass --decimal ',' if it is a comma",
        ".": "other rows have a decimal comma; use one decimal mark in all rows",
    }
    if number.option != "--score":
        del advice["%"]
    if not number.comma:
        del advice["."]
    if number.option in (PROBABILITY, CLASS) and number.lowest is not None and 1 < number.highest <= 100:
        advice = {"": "divide percentages by 100"}
    if is_label:
        advice = {"": "use 1 for yes and 0 for no, or pass --positive with the label that means yes"}
    return Fault(
        number.option,
        repr(number.name),
        f"is not {a_number}" if not is_label else "is missing" if given else "is neither yes nor no (1 or 0)",
        f"({' AND '.join(within)}) IS NOT TRUE",
        number.column,
        number.column,
        advice,
    )


def _sum_faults(source: Source, columns: Sequence[Number]) -> list[Fault]:
    """The rows in which probabilities of groups or classes do not sum to 1."""
    total = " + ".join(f"({number.expression})" for number in columns)
    off = f"(abs({total} - 1) > {SUM_TOLERANCE}) IS TRUE"
    within = " AND ".join(f"({n.expression}) BETWEEN 0 AND 1 + {SUM_TOLERANCE}" for n in columns)
    condition = f"(({within}) IS TRUE AND {off})"  # other rows have a fault of their own
    if not source.ask("1", f"WHERE {condition} LIMIT 1"):
        return []
    what = "group" if columns[0].option == PROBABILITY else "class"
    remaining = "people" if what == "group" else "class"
    names = ", ".join(repr(number.name) for number in columns)
    advice = {"": f"divide each row by its sum, or add a column for the remaining {remaining}"}
    value = f"({total})"
    return [
        Fault(columns[0].option, names, "must sum to 1 but do not", condition, columns[0].column, value, advice)
    ]


def with_truth(job: Job, name: str) -> tuple[Job, Fault]:
    """Add the column with the true class of each row; also return the fault of rows with another one."""
    column = job.source.find(name, "--label")
    truth = f"trim(CAST({label_sql(job.source, column, name)} AS VARCHAR))"
    texts = {text for label in job.classes for text in (show_label(label), str(label), str(label).lower())}
    texts = {t for t in texts if label_key(typed_label(t, job.classes)) in set(map(label_key, job.classes))}
    texts |= {"" for label in job.classes if label in (None, "")}
    known = ", ".join(map(literal, sorted(texts)))
    classes = ", ".join(map(show_label, job.classes))
    advice = {"": "name each class in --class-score as it is in the column of labels"}
    fault = Fault(
        "--label",
        repr(name),
        f"is none of the classes ({classes})",
        f"coalesce({truth}, '') NOT IN ({known})",
        column,
        column,
        advice,
    )
    return replace(job, truth=truth), fault


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
        blank = f"trim({column}, {literal(UNSEEN)}) = ''"
        return f"CASE WHEN {_may_be_blank(column)} THEN {blank} ELSE {column} IS NULL END"
    refuse_if(
        not kind.endswith(("INT", "INTEGER")),
        "--id {name!r} in {where} has type {kind}; ids must be text or integers, because 12 and 12.0 would get "
        "different random draws",
        name=name,
        where=source.shown,
        kind=kind,
    )
    return f"{column} IS NULL"


def _may_be_blank(column: str) -> str:
    """Return an SQL condition for texts that do not begin with a character that is surely visible."""
    return f"({column} < {literal(SEEN[0])} OR {column} >= {literal(SEEN[1])})"
