"""Between tables and the library: rows are prepared, fitted and decided where they are."""

from dataclasses import replace
from typing import Any

import fairramp
from fairramp.cli.render import refuse_if
from fairramp.cli.scan import Job, scan
from fairramp.cli.tables import Source, format_of
from fairramp.core.cells import cell_columns
from fairramp.core.labels import label_key, label_of
from fairramp.core.scales import SCALES
from fairramp.data.columns import Columns
from fairramp.errors import FairrampError


def prepare(
    source: Source,
    columns: Columns,
    numbers: dict[str, str | None],
    *,
    scale: str = "probability",
    decimal: str | None = None,
    positive: str | None = None,
    rule: "fairramp.Rule | None" = None,
) -> Job:
    """Look at all rows once and refuse what cannot be decided, in one sentence."""
    refuse_if(
        len(set(columns.grouped)) < len(columns.grouped),
        "A column is named twice by --group or --strata; name each once",
    )
    for option, names in (("--group", columns.groups or ()), ("--strata", columns.strata or ())):
        refuse_if(
            columns.score in names,
            "{option} {name!r} is the column of the scores; name one that holds groups",
            option=option,
            name=columns.score,
        )
    named = {option: name for option, name in {"--score": columns.score, **numbers}.items() if name is not None}
    job = scan(source, columns, named, decimal=decimal, percent=scale == "percent", positive=positive)
    if job.rows:
        _check_range(job, scale, fitted=rule is not None)
    return _adapted(job, rule) if rule is not None else job


def conversion(found: str, wanted: str) -> str:
    """How scores become those of a rule on another scale."""
    return {
        ("percent", "probability"): "divide the scores by 100",
        ("probability", "percent"): "multiply the scores by 100",
        ("logit", "probability"): "pass 1/(1 + exp(-score))",
        ("logit", "percent"): "pass 100/(1 + exp(-score))",
    }.get((found, wanted), "pass scores of that scale")


def _check_range(job: Job, scale: str, *, fitted: bool) -> None:
    """Refuse scores on another scale than they are said to be, or than the rule's, and name the likely one."""
    low, high = job.score.lowest, job.score.highest
    bottom, top = SCALES[scale].score_range
    if low >= bottom and high <= top:
        return
    scales = {
        ("percent", "percent"): low >= 0 and high <= 100,
        ("signed", "signed scores from −1 to 1"): low >= -1 and high <= 1,
        ("logit", "logits"): True,
    }
    likely, looks = next(scale for scale, fits in scales.items() if fits)
    advice = f"that looks like {looks}: pass --scale {likely}"
    if fitted:
        advice = f"if that is {looks}, {conversion(likely, scale)}, or fit again with --scale {likely}"
    elif likely == "logit" or scale == "signed":
        advice = f"if that is {looks}, pass --scale {likely}"
    raise FairrampError(
        "--score {name!r} of {where} goes from {low:g} to {high:g}, but scores of {whose} {scale_!r} lie from "
        "{bottom:g} to {top:g}; {advice}",
        name=job.score.name,
        where=job.source.shown,
        low=low,
        high=high,
        whose="the rule's scale" if fitted else "the scale",
        scale_=scale,
        bottom=bottom,
        top=top,
        advice=advice,
    )


def _adapted(job: Job, rule: "fairramp.Rule") -> Job:
    """Groups in the types of the rule: 1 is text in CSV and a number in Parquet, and it is the same group."""
    values = map(list, zip(*job.cells, strict=True))
    pairs = list(zip(values, job.columns.labels(rule.groups), strict=False))  # no rows, no values
    typed = [_as_known(key, cells, known) for key, (cells, (_, known)) in zip(job.keys, pairs, strict=False)]
    for (_, cells), (_, (name, known)) in zip(typed, pairs, strict=True):
        kinds, types = _types(known), _types(cells)
        # Or else all would be unseen, and pooled without a word.
        refuse_if(
            kinds and types and not kinds & types,
            "{name!r} of {where} holds values like {here!r}, and the rule knows values like {there!r}; is it "
            "the same column?",
            name=name,
            where=job.source.shown,
            here=next((value for value in cells if value is not None), None),
            there=next((value for value in known if value is not None), None),
        )
    # Codes were given to the values as they stand in the file: only their names change.
    named = tuple(zip(*(cells for _, cells in typed), strict=True))
    return replace(job, cells=named, typed_keys=tuple(key for key, _ in typed)) if typed else job


def _types(values: list[Any]) -> set[type]:
    return {type(value) for value in values if value is not None}


def _as_known(key: str, values: list[Any], known: list[Any]) -> tuple[str, list[Any]]:
    """A column's SQL and its values, in the one type of the values that a rule knows."""
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
        if kinds == {kind} and types == {str} and all(v is None or reads(v) for v in values):
            key = f"CAST({key} AS {sql})"
            values = [v if v is None else read(v) for v in values]
    if "" in known and None not in known:  # an empty cell is how CSV writes a missing value
        key = f"coalesce(CAST({key} AS VARCHAR), '')"
        values = ["" if value is None else value for value in values]
    return key, values


def is_whole(text: str) -> bool:
    """Whether a text is a whole number as Python writes it."""
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and str(int(text)) == text


# Fitting and applying ---------------------------------------------------------------------------


def fit(job: Job, **settings: Any) -> fairramp.Rule:
    """Fit a rule to a job's rows; it remembers what the file calls its columns."""
    inner = job.inner
    if settings["target_rate"] in ("accuracy", "base_rate"):  # needs labels, and those need all rows at once
        rule = fairramp.fit_rule(**job.arrays(), **settings)
    else:
        rows = job.relation()
        if job.source.format != "parquet":  # there are many passes, and text is parsed once
            rows.create("kept")
            rows = job.source.connection.table("kept")
        rule = fairramp.fit_frame(
            rows,
            score="score",
            group=inner.groups or (),
            weight="weight" if "--weight" in job.numbers else None,
            label="label" if "--label" in job.numbers else None,
            strata=inner.strata,
            **settings,
        )
    return replace(rule, columns=replace(job.columns, id=None))


def _applied(job: Job, rule: fairramp.Rule, key: str | None = None, *, seeded: bool = False) -> None:
    """The view `applied`: rows with `probability` and, with a key, `decision` behind all other columns.

    The columns of the file are c0, c1, …; with `seeded`, rows are drawn by their number instead of by id.
    """
    relation, inner = job.relation(extra=True), job.inner
    if seeded:
        relation = relation.project("*, row_number() OVER () AS id")
    if job.rows:
        drawn = {} if key is None else {"id": "id", "key": key}
        done = rule.apply(relation, score=inner.score, group=inner.groups, strata=inner.strata, **drawn)
    else:
        done = relation.project("*, CAST(NULL AS DOUBLE) AS probability, CAST(NULL AS TINYINT) AS decision")
    done.create_view("applied", replace=True)


def decide_all(job: Job, rule: fairramp.Rule, key: str | None, *, seeded: bool) -> list[dict[str, Any]]:
    """Apply the rule, as the view `applied`, and count what it does to each group."""
    _applied(job, rule, key, seeded=seeded)
    keys = job.inner.grouped
    rows = job.source.connection.execute(
        f"SELECT {', '.join(keys)}, count(*), sum(probability), {'sum(decision)' if key else 'NULL'}, "
        f"count(*) FILTER (probability > 0 AND probability < 1) FROM applied GROUP BY {', '.join(keys)}"
    ).fetchall()
    found = [
        {
            "group": label_of(row[:-4], len(job.columns.strata or ())),
            "rows": row[-4],
            "expected_rate": row[-3] / row[-4],
            "selected": None if row[-2] is None else int(row[-2]),
            "in_ramp": row[-1],
        }
        for row in rows
    ]
    return sorted(found, key=lambda row: label_key(row["group"]))


def decided_table(rule: fairramp.Rule, found: list[dict[str, Any]], *, decided: bool) -> fairramp.Table:
    """What `decide_all` counted, one row per group."""
    columns = cell_columns([row["group"] for row in found], stratified=rule.stratified)
    headings = {"stratum": rule.columns.strata, "group": rule.columns.groups}
    named = {name: " / ".join(headings[name] or [name]) for name in columns}
    if decided:
        found = [row | {"selected_rate": row["selected"] / row["rows"]} for row in found]
    titles = {"rows": "n", "in_ramp": "in_the_ramp"}
    for name in ("rows", "expected_rate", *(["selected", "selected_rate"] if decided else []), "in_ramp"):
        columns[titles.get(name, name)] = [row[name] for row in found]
    return fairramp.Table(columns, headings=named)


def _with_comma(column: str) -> str:
    return f"replace(CAST({column} AS VARCHAR), '.', ',')"


def output_query(job: Job, *, decided: bool, target: str, comma: bool = False) -> str:
    """What the output holds, as SQL over the view `applied`; with `comma` in decimals of text where asked for."""
    columns = [f"c{i}" for i in range(len(job.source.names))]
    probability = "probability"
    from_text, to_text = job.source.format == "csv", (format_of(target) or "csv") in ("csv", "tsv")
    if from_text and to_text:
        columns = [f"nullif({column}, '')" for column in columns]  # an empty cell stays empty, without quotes
    elif from_text:
        columns[int(job.score.column[1:])] = "score"  # formats that know numbers get one
    elif to_text and comma:
        types = zip(columns, job.source.types, strict=True)
        columns = [_with_comma(c) if t.startswith(("DECIMAL", "FLOAT", "DOUBLE")) else c for c, t in types]
    if to_text and (comma or (from_text and job.score.comma)):
        probability = _with_comma(probability)
    return f"SELECT {', '.join([*columns, probability, *(['decision'] if decided else [])])} FROM applied"


def accuracy(job: Job, rule: fairramp.Rule) -> tuple[float, float]:
    """Share of right decisions before and after the rule, in expectation, measured where the rows are."""
    _applied(job, rule)
    weight = "weight" if "--weight" in job.numbers else "1"
    own = f"CAST(score >= {rule.cutoff!r} AS DOUBLE)"
    right = (
        f"sum({weight} * ({h} * label + (1 - {h}) * (1 - label))) / sum({weight})" for h in (own, "probability")
    )
    ((before, after),) = job.source.connection.execute(f"SELECT {', '.join(right)} FROM applied").fetchall()
    return float(before), float(after)
