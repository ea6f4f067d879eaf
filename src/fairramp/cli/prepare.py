"""From an opened table to a job whose groups have the types of the rule, and the faults of its rows."""

import re
from dataclasses import replace
from typing import Any

from fairramp.cli.faults import Fault
from fairramp.cli.job import Job
from fairramp.cli.naming import values_of
from fairramp.cli.scan import scan, with_truth
from fairramp.core.labels import Label
from fairramp.core.scales import SCALES
from fairramp.data.columns import Columns
from fairramp.data.stored import Source
from fairramp.errors import FairrampError, refuse, refuse_if
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule

#: Matches integers as Python writes them.
is_whole = re.compile("0|-?[1-9][0-9]*").fullmatch


def prepare(
    source: Source,
    columns: Columns,
    numbers: dict[str, str | None],
    *,
    scale: str = "probability",
    decimal: str | None = None,
    positive: str | None = None,
    rule: Rule | ClassRule | None = None,
    classes: tuple[Label, ...] = (),
    truth: str | None = None,
) -> tuple[Job, list[Fault]]:
    """Scan all rows once; return the job, and the faults of rows that cannot be used.

    `truth` is the column with the true one of several `classes`.
    """
    refuse(
        {
            "A column is named twice in --group or --strata; name each column once": len(set(columns.grouped))
            < len(columns.grouped),
            "{option} {name!r} is the score column; pass a column with groups": columns.score in columns.grouped,
            "--group-probability {name!r} is the score column; pass a column with probabilities": columns.score
            in (columns.probabilities or ()),
        },
        option="--group" if columns.score in (columns.groups or ()) else "--strata",
        name=columns.score,
    )
    named = {option: name for option, name in {"--score": columns.score, **numbers}.items() if name is not None}
    job, faults = scan(source, columns, named, decimal=decimal, scale=scale, positive=positive)
    job = replace(job, classes=classes)
    if truth is not None:
        job, wrong = with_truth(job, truth)
        faults += [wrong]
    if rule is not None and columns.probabilities:
        job = replace(job, labels=rule.groups)
    if job.rows and columns.class_scores is None:
        faults = [_advised(fault, job, scale, fitted=rule is not None) for fault in faults]
    return (_adapted(job, rule) if rule else job), faults


def conversion(found: str, wanted: str) -> str:
    """Say how to convert scores to the scale of a rule."""
    return {
        ("percent", "probability"): "divide the scores by 100",
        ("probability", "percent"): "multiply the scores by 100",
        ("logit", "probability"): "pass 1/(1 + exp(-score))",
        ("logit", "percent"): "pass 100/(1 + exp(-score))",
    }.get((found, wanted), "pass scores of that scale")


def check_distinct(source: Source, name: str, left_out: str) -> None:
    """Reject ids that occur more than once, with the lines of the first ones; `left_out` is SQL of other rows."""
    column = source.find(name, "--id")
    rows = f"SELECT *, row_number() OVER () AS position FROM ({source.query})"
    repeated = (
        f"SELECT {column} AS id, list(position ORDER BY position) AS rows FROM ({rows}) WHERE NOT ({left_out}) "
        "GROUP BY id HAVING count(*) > 1"
    )
    found = source.connection.execute(
        f"SELECT id, rows[:2], count(*) OVER () FROM ({repeated}) ORDER BY rows[1] LIMIT 3"
    ).fetchall()
    if not found:
        return
    cells = {row: (int(column[1:]), id) for id, rows, _ in found for row in rows}
    places = source.places(cells)
    n = found[0][2]
    raise FairrampError(
        "{count} {id!r} of {where} occur{s} more than once: {shown}{more}",
        remedy="each person needs an id and a row of their own",
        count=f"{n:,} id{'' if n == 1 else 's'} in --id",
        id=name,
        where=source.shown,
        s="s" if n == 1 else "",
        shown=", ".join(f"{id!r} in {places[rows[0]]} and {places[rows[1]]}" for id, rows, _ in found),
        more=", …" if n > len(found) else "",
    )


def _advised(fault: Fault, job: Job, scale: str, *, fitted: bool) -> Fault:
    """Add to a fault of the scores which scale they probably have, if they are outside the stated one."""
    low, high = job.score.lowest, job.score.highest
    bottom, top = SCALES[scale].score_range
    if fault.option != "--score" or low is None or (low >= bottom and high <= top):
        return fault
    scales = {
        ("percent", "percentages"): low >= 0 and high <= 100,
        ("signed", "signed scores from -1 to 1"): low >= -1 and high <= 1,
        ("logit", "logits"): True,
    }
    likely, looks = next(scale for scale, fits in scales.items() if fits)
    advice = {
        f"if these are {looks}, {conversion(likely, scale)}, or fit again with --scale {likely}": fitted,
        f"if these are {looks}, pass --scale {likely}; otherwise --scale real and --cutoff": likely == "logit",
        f"if these are {looks}, pass --scale {likely}": scale == "signed",
        f"these look like {looks}: pass --scale {likely}": True,
    }
    whose = "the rule's scale" if fitted else "the scale"
    spread = f"scores range from {low:g} to {high:g}, but {whose} {scale!r} is {bottom:g} to {top:g}"
    text = f"{spread}; {next(text for text, holds in advice.items() if holds)}"
    e = f"({job.score.expression})"
    return replace(fault, often=(f"isfinite({e}) AND NOT {e} BETWEEN {bottom!r} AND {top!r}", text))


def _adapted(job: Job, rule: Rule | ClassRule) -> Job:
    """Convert groups to the types of the rule: the text 1 in CSV is the same group as the number 1 in Parquet."""
    values = map(list, zip(*job.cells, strict=True))
    pairs = list(zip(values, values_of(rule, job.columns), strict=False))  # without rows there are no values
    typed = [_as_known(key, cells, known) for key, (cells, (_, known)) in zip(job.keys, pairs, strict=False)]
    for (_, cells), (_, (name, known)) in zip(typed, pairs, strict=True):
        kinds, types, spellings = _types(known), _types(cells), set(map(str, known))
        # Otherwise every group would be unseen, and perhaps pooled silently.
        refuse_if(
            kinds and types and not kinds & types,
            "{name!r} in {where} has values like {here!r}, but the rule has values like {there!r}; is it the "
            "same column?",
            name=name,
            where=job.source.shown,
            here=next((v for v in sorted(cells, key=spellings.__contains__) if v is not None), None),
            there=next((value for value in known if value is not None), None),
        )
    # Codes belong to the values as stored in the file, so only the labels change.
    named = tuple(zip(*(cells for _, cells in typed), strict=True))
    return replace(job, cells=named, typed_keys=tuple(key for key, _ in typed)) if typed else job


def _types(values: list[Any]) -> set[type]:
    return {type(value) for value in values if value is not None}


def _as_known(key: str, values: list[Any], known: list[Any]) -> tuple[str, list[Any]]:
    """Return a column's SQL and its values, converted to the type of the rule's values where possible."""
    if None in known and "" not in known and "" in values:
        key = f"nullif({key}, '')"
        values = [None if value == "" else value for value in values]
    kinds, types = _types(known), _types(values)
    if kinds == {str} and types and str not in types:
        key = f"CAST({key} AS VARCHAR)"
        values = [v if v is None else str(v).lower() if isinstance(v, bool) else str(v) for v in values]
    for kind, sql, reads, read in (
        (int, "BIGINT", is_whole, int),
        (bool, "BOOLEAN", lambda v: v.lower() in ("true", "false"), lambda v: v.lower() == "true"),
    ):
        fits = [isinstance(v, str) and bool(reads(v)) for v in values]
        strays = any(isinstance(v, str) and not fit for v, fit in zip(values, fits, strict=True))
        # In SQL, strays become missing, so that must not be a group of the rule.
        if kinds == {kind} and types == {str} and any(fits) and not (strays and None in known):
            cast = f"TRY_CAST({key} AS {sql})"
            key = f"CASE WHEN CAST({cast} AS VARCHAR) = lower({key}) THEN {cast} END"
            values = [read(v) if fit else v for v, fit in zip(values, fits, strict=True)]
    if "" in known and None not in known:  # CSV writes a missing value as an empty cell
        key = f"coalesce(CAST({key} AS VARCHAR), '')"
        values = ["" if value is None else value for value in values]
    return key, values
