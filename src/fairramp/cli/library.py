"""What commands do alike: find rule, columns, rows and key; prepare, fit and decide the rows where they are."""

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import fairramp
from fairramp.cli.render import Screen, refuse, refuse_if
from fairramp.cli.scan import Job, scan
from fairramp.cli.secret import ENVIRONMENT, read_key
from fairramp.cli.tables import Source, connect, format_of, open_table
from fairramp.core.cells import cell_columns
from fairramp.core.labels import label_key, label_of
from fairramp.core.scales import SCALES
from fairramp.data.columns import Columns
from fairramp.errors import FairrampError, RuleFormatError
from fairramp.rule.rule import Rule

#: Whether a text is a whole number as Python writes it.
is_whole = re.compile("0|-?[1-9][0-9]*").fullmatch


# Rule, columns, rows and key ---------------------------------------------------------------------


def width_of(ramp_width: float | None, scale: str | None) -> float:
    """A ramp width as the library has it: for percentages, points are hundredths of a probability."""
    return 0.01 if ramp_width is None else ramp_width / SCALES[scale or "probability"].shown_per_unit


def _plain_delimiter(delimiter: str | None) -> str | None:
    return "\t" if delimiter in ("tab", "\\t") else delimiter


def output_delimiter(job: Job, delimiter: str | None, decimal: str | None) -> str:
    """Of CSV outputs: as in DATA if that is CSV, or else as asked for."""
    if job.source.format == "csv" and job.source.delimiter != "\t":
        return job.source.delimiter
    asked = None if job.source.format == "csv" else _plain_delimiter(delimiter)
    return asked or (";" if decimal == "," or job.score.comma else ",")


def load_rule(path: str, command: str | None = None) -> Rule:
    """A rule from its file; `command` is one that takes data behind it."""
    try:
        return Rule.load(path)
    except RuleFormatError:
        if format_of(path) in ("json", None) and not path.lower().endswith((".xlsx", ".xls")):
            raise
        first = f"the rule comes first, as in: fairramp {command} RULE DATA"
        raise FairrampError(
            "{path} is not a rule; {usage}",
            path=path,
            usage=first if command else "name a file that fairramp fit has written",
        ) from None
    except FileNotFoundError:
        raise FairrampError("There is no rule {path}; make one with: fairramp fit", path=path) from None
    except OSError as error:
        raise FairrampError("Cannot read the rule {path}: {why}", path=path, why=error.strerror) from None


def columns_of(
    rule: Rule | None,
    score: str | None,
    group: Sequence[str] | None,
    strata: Sequence[str] | None = None,
    id: str | None = None,
) -> Columns:
    """The columns to use: as named, or else as the rule remembers them."""
    known = rule.columns if rule else Columns()
    score, group = score or known.score, group or known.groups
    refuse_if(
        not score or not group,
        "--{role} is missing: name the column that holds the {role}s",
        role="group" if score else "score",
    )
    read = rule.reading if rule else Columns().given
    return read(score, list(group or ()), list(strata) if strata else None, id)


@contextlib.contextmanager
def opened(
    screen: Screen,
    data: str,
    columns: Columns,
    *,
    scale: str | None,
    decimal: str | None,
    delimiter: str | None,
    rule: Rule | None = None,
    label: str | None = None,
    positive: str | None = None,
    weight: str | None = None,
    may_be_empty: bool = False,
) -> Iterator[Job]:
    """DATA, read through once and found sound."""
    delimiter = _plain_delimiter(delimiter)
    refuse_if(
        delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'),
        "must be one character, or the word tab",
        argument="delimiter",
        got=delimiter,
    )
    own = rule.scale if rule else scale or "probability"
    refuse(
        {
            "--scale {given} does not fit the rule, which was fitted on the scale {fitted!r}; leave it out and "
            "{conversion}, or fit again with --scale {given}": scale not in (None, own),
            "--positive needs --label, the column with the true outcomes": positive is not None and label is None,
        },
        given=scale,
        fitted=own,
        conversion=conversion(str(scale), own),
    )
    numbers = {"--label": label, "--weight": weight}
    with connect() as connection, open_table(connection, data, delimiter=delimiter) as source:
        with screen.progress(connection, "Looking at the rows"):
            job = prepare(source, columns, numbers, scale=own, decimal=decimal, positive=positive, rule=rule)
        screen.warn(
            f"no score of {job.source.shown} is above 1 percent; are they probabilities, where 0.6 means 60 "
            "percent?",
            when=own == "percent" and job.rows and job.score.highest <= 1,
        )
        refuse_if(not job.rows and not may_be_empty, "{where} has a header and no rows", where=source.shown)
        yield job


def read(
    screen: Screen,
    data: str,
    columns: Columns,
    *checks: Callable[[Job], None],
    ordered: bool = False,
    **how: Any,
) -> tuple[Job, dict[str, Any]]:
    """DATA, opened and checked, and its rows in memory, as `Job.arrays` has them."""
    with opened(screen, data, columns, **how) as job:
        for check in checks:
            check(job)
        with screen.progress(job.source.connection, "Reading"):
            return job, job.arrays(ordered=ordered)


def drawing(
    screen: Screen, id: str | None, key_file: str | None, seed: int | None, probability_only: bool
) -> tuple[str | None, bool]:
    """The key to draw with, if decisions are wanted, and whether rows are drawn by number."""
    seeded, keyed = seed is not None, key_file is not None
    refuse(
        {
            "--probability-only draws nothing; leave out --key-file and --random-seed": probability_only
            and (seeded or keyed),
            "Pass either --id and --key-file, or --random-seed, not both": seeded and (id is not None or keyed),
            "--key-file needs --id, the column that says who each row is": keyed and id is None,
        }
    )
    if seed is not None:
        refuse_if(seed < 0, "must be a whole number from 0 on", argument="random_seed", got=seed)
        # A key for people without ids, whose rows are drawn by their number.
        return hashlib.sha256(f"fairramp random seed {seed}".encode()).hexdigest(), True
    if id is None or probability_only:
        return None, False
    key, warning = read_key(key_file)
    refuse_if(
        key is None,
        "--id needs the secret key: pass --key-file FILE (fairramp keygen makes one) or set {variable}",
        variable=ENVIRONMENT,
    )
    screen.warn(f"{warning}", when=warning)
    return key, False


def named(columns: Columns) -> dict[str, Any]:
    """The names of the columns, for JSON."""
    return {
        "score_column": columns.score,
        "group_columns": columns.groups,
        "strata_columns": columns.strata,
    }


# Preparing ---------------------------------------------------------------------------------------


def prepare(
    source: Source,
    columns: Columns,
    numbers: dict[str, str | None],
    *,
    scale: str = "probability",
    decimal: str | None = None,
    positive: str | None = None,
    rule: Rule | None = None,
) -> Job:
    """Look at all rows once and refuse what cannot be decided, in one sentence."""
    refuse(
        {
            "A column is named twice by --group or --strata; name each once": len(set(columns.grouped))
            < len(columns.grouped),
            "{option} {name!r} is the column of the scores; name one that holds groups": columns.score
            in columns.grouped,
        },
        option="--group" if columns.score in (columns.groups or ()) else "--strata",
        name=columns.score,
    )
    named = {option: name for option, name in {"--score": columns.score, **numbers}.items() if name is not None}
    job = scan(source, columns, named, decimal=decimal, percent=scale == "percent", positive=positive)
    if job.rows:
        _check_range(job, scale, fitted=rule is not None)
    return _adapted(job, rule) if rule else job


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
    advice = {
        f"if that is {looks}, {conversion(likely, scale)}, or fit again with --scale {likely}": fitted,
        f"if that is {looks}, pass --scale {likely}": likely == "logit" or scale == "signed",
        f"that looks like {looks}: pass --scale {likely}": True,
    }
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
        advice=next(text for text, holds in advice.items() if holds),
    )


def _adapted(job: Job, rule: Rule) -> Job:
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


# Fitting and applying ---------------------------------------------------------------------------


def fit(job: Job, **settings: Any) -> Rule:
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


def _applied(job: Job, rule: Rule, key: str | None = None, *, seeded: bool = False) -> None:
    """The view `applied`: rows with `probability` and, with a key, `decision` behind all other columns.

    The columns of the file are c0, c1, …; with `seeded`, rows are drawn by their number instead of by id.
    """
    relation, inner = job.relation(extra=True), job.inner
    if seeded:
        relation = relation.project("*, row_number() OVER () AS id")
    if job.rows:
        done = rule.apply(
            relation,
            score=inner.score,
            group=inner.groups,
            strata=inner.strata,
            id=None if key is None else "id",
            key=key,
        )
    else:
        done = relation.project("*, CAST(NULL AS DOUBLE) AS probability, CAST(NULL AS TINYINT) AS decision")
    done.create_view("applied", replace=True)


def decide_all(job: Job, rule: Rule, key: str | None, *, seeded: bool) -> list[dict[str, Any]]:
    """Apply the rule, as the view `applied`, and count what it does to each group."""
    _applied(job, rule, key, seeded=seeded)
    keys = job.inner.grouped
    rows = job.source.connection.execute(
        f"SELECT {', '.join(keys)}, count(*), sum(probability), {'sum(decision)' if key else 'NULL'}, "
        f"count(*) FILTER (probability > 0 AND probability < 1) FROM applied GROUP BY {', '.join(keys)}"
    ).fetchall()
    found = (
        {
            "group": label_of(row[:-4], len(job.columns.strata or ())),
            "rows": row[-4],
            "expected_rate": row[-3] / row[-4],
            "selected": None if row[-2] is None else int(row[-2]),
            "in_ramp": row[-1],
        }
        for row in rows
    )
    return sorted(found, key=lambda row: label_key(row["group"]))


def decided_table(rule: Rule, found: list[dict[str, Any]], *, decided: bool) -> fairramp.Table:
    """What `decide_all` counted, one row per group."""
    columns = cell_columns([row["group"] for row in found], stratified=rule.stratified)
    headings = {"stratum": rule.columns.strata, "group": rule.columns.groups}
    named = {name: " / ".join(headings[name] or [name]) for name in columns}
    if decided:
        found = [row | {"selected_rate": row["selected"] / row["rows"]} for row in found]
    titles = {"rows": "n", "expected_rate": "expected_rate"}
    titles |= {name: name for name in ("selected", "selected_rate") if decided} | {"in_ramp": "decided_at_random"}
    counted = {title: [row[name] for row in found] for name, title in titles.items()}
    return fairramp.Table(columns | counted, headings=named, shares=("expected_rate", "selected_rate"))


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


def accuracy(job: Job, rule: Rule) -> tuple[float, float]:
    """Share of right decisions before and after the rule, in expectation, measured where the rows are."""
    _applied(job, rule)
    weight = "weight" if "--weight" in job.numbers else "1"
    own = f"CAST(score >= {rule.cutoff!r} AS DOUBLE)"
    right = (
        f"sum({weight} * ({h} * label + (1 - {h}) * (1 - label))) / sum({weight})" for h in (own, "probability")
    )
    ((before, after),) = job.source.connection.execute(f"SELECT {', '.join(right)} FROM applied").fetchall()
    return float(before), float(after)
