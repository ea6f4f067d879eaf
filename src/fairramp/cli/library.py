"""Steps shared by the commands: find the rule, columns, rows and key; fit and decide rows in DuckDB."""

import contextlib
import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import narwhals as nw
import numpy as np

import fairramp
from fairramp.cli import outputs, strangers
from fairramp.cli.faults import Found
from fairramp.cli.job import Job, inner_name
from fairramp.cli.prepare import check_distinct, conversion, prepare
from fairramp.cli.render import STDIN, Screen, spoken
from fairramp.cli.secret import read_key
from fairramp.core.cells import cell_columns
from fairramp.core.checks import check_option
from fairramp.core.labels import Label, label_key, label_of, label_parts
from fairramp.core.scales import SCALES
from fairramp.data.columns import Columns
from fairramp.data.database import connect
from fairramp.data.inputs import format_of, input_files, spooled
from fairramp.data.stored import open_files
from fairramp.deploy.engines.duckdb import apply as project
from fairramp.errors import FairrampError, refuse, refuse_if
from fairramp.fit.gains import Costs
from fairramp.measure.confusion import Confusion
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.draws import ENVIRONMENT
from fairramp.rule.rule import Rule

# Rule, columns, rows and key ---------------------------------------------------------------------


def width_of(ramp_width: float | None, scale: str | None) -> float:
    """Return a ramp width in the units of the library, where 1 percent is 0.01."""
    return 0.01 if ramp_width is None else ramp_width / SCALES[scale or "probability"].shown_per_unit


def costs_of(text: str | None) -> tuple[float, ...] | None:
    """Read costs such as 5,1; the library checks them."""
    try:
        return None if text is None else tuple(map(float, text.split(",")))
    except ValueError:
        raise FairrampError("must be two numbers, such as 5,1", argument="costs", got=text) from None


def _plain_delimiter(delimiter: str | None) -> str | None:
    return "\t" if delimiter in ("tab", "\\t") else delimiter


def output_delimiter(job: Job, delimiter: str | None, decimal: str | None) -> str:
    """Return the delimiter of CSV outputs: that of DATA if it is CSV, else the requested one."""
    if job.source.format == "csv" and job.source.delimiter != "\t":
        return job.source.delimiter
    requested = None if job.source.format == "csv" else _plain_delimiter(delimiter)
    return requested or (";" if decimal == "," or job.score.comma else ",")


@contextlib.contextmanager
def opened(
    screen: Screen,
    data: str,
    columns: Columns,
    *,
    scale: str | None,
    decimal: str | None,
    delimiter: str | None,
    sheet: str | None = None,
    skip_invalid: bool | None = None,
    output: str | None = None,
    inputs: dict[str, str | None] | None = None,
    unseen: Literal["error", "null", "library"] = "error",
    rule: Rule | ClassRule | None = None,
    label: str | None = None,
    positive: str | None = None,
    weight: str | None = None,
    classes: tuple[Label, ...] = (),
    may_be_empty: bool = False,
    distinct: bool = False,
) -> Iterator[Job]:
    """Open DATA and validate it in one pass.

    Parameters
    ----------
    screen, data, columns, scale, decimal, delimiter, sheet, label, positive, weight
        As on the command line; `screen` remembers which rows were left out.
    skip_invalid : bool, optional
        Whether to leave out rows that cannot be used, or have no group; None if the command cannot.
    output : str, optional
        The output of the command. These rows, with reasons, go to a file that is named after it, or else after
        DATA; it appears if the command succeeds.
    inputs : dict, optional
        Other files that the command reads or writes, by option, which that file must not replace.
    unseen : {"error", "null", "library"}
        What happens to rows of groups that a rule rejects: an error here, no decision, or left to the library.
    rule : Rule or ClassRule, optional
        The rule to use.
    classes : tuple
        The classes of the columns of scores; `label` is then the column with the true class.
    may_be_empty : bool
        Whether a table without rows is allowed.
    distinct : bool
        Whether each id may occur only once.
    """
    delimiter = _plain_delimiter(delimiter)
    check_option("scale", scale or "probability", SCALES)
    refuse_if(
        delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'),
        "must be one character, or the word tab",
        argument="delimiter",
        got=delimiter,
    )
    own = rule.scale if isinstance(rule, Rule) else scale or "probability"
    refuse(
        {
            "--scale {given} differs from the rule's scale, {fitted!r}; leave it out and {conversion}, or fit "
            "again with --scale {given}": scale not in (None, own),
            "--positive needs --label, the column with the true outcomes": positive is not None and label is None,
        },
        given=scale,
        fitted=own,
        conversion=conversion(str(scale), own),
    )
    numbers = {"--label": None if classes else label, "--weight": weight}
    stdin = spooled(sys.stdin.buffer) if data == STDIN else contextlib.nullcontext()
    with stdin as copied, connect() as connection:  # closed before the copy is deleted
        files = [copied] if copied else input_files(data)
        wanted = [name for name in (*columns.all, label, weight) if name is not None]
        source = open_files(
            connection,
            files,
            spoken(data),
            delimiter=delimiter,
            sheet=sheet,
            wanted=list(dict.fromkeys(wanted)),
        )
        how: dict[str, Any] = {"scale": own, "decimal": decimal, "positive": positive, "rule": rule}
        how |= {"classes": classes, "truth": label if classes else None}
        with screen.progress(connection, "Checking the rows"):
            job, faults = prepare(source, columns, numbers, **how)
            judge = None if unseen == "library" else rule
            unknown = strangers.unknown_groups(job, judge)
            if skip_invalid and judge is None and (rule is not None or unseen != "library"):
                faults += strangers.blanks(job, rule)
            rejected = [] if judge is None else strangers.faults(job, judge, slips=unseen == "null")
            bad = Found.of(source, [*faults, *rejected])
            skipping = skip_invalid and bad.can_skip
            if (wrong := [fault for fault in bad.faults if fault not in rejected]) and not skipping:
                told = Found.of(source, wrong) if unseen == "null" else bad  # rows of unknown groups stay
                raise told.error(skipping=skip_invalid)
            if rejected and not skipping and unseen == "error":
                assert rule is not None
                raise strangers.error(rule, bad, unknown, skipping=skip_invalid, can_null=may_be_empty)
            kept = bad.n_bad
            if left_out := [fault for fault in bad.faults if unseen != "null" or fault not in rejected]:
                skipped = Found.of(source, left_out)
                kept -= skipped.n_bad
                refuse_if(skipped.n_bad == skipped.n_rows, "No row of {where} can be used", where=source.shown)
                used = replace(source, query=f"SELECT * FROM ({source.query}) WHERE NOT ({skipped.condition})")
                every, (job, _) = job, prepare(used, columns, numbers, **how)
                emptied = strangers.emptied_groups(every, job, judge)
                job = replace(job, left_out=skipped.left_out(), emptied=emptied)
            job = replace(job, unknown=unknown)
            if distinct and columns.id is not None:
                check_distinct(source, columns.id, skipped.condition if left_out else "false")
        screen.warn(
            f"no score in {job.source.shown} is above 1%; are these probabilities, where 0.6 means 60%?",
            when=own == "percent" and job.rows and job.score.highest <= 1,
        )
        if source.others:
            screen.note(f"Read {source.shown}{source.other_sheets}.")
        refuse_if(not job.rows and not may_be_empty, "{where} {has}", where=source.shown, has=source.no_rows)
        if bad.n_bad:
            outputs.hold_rejected(bad, data, output, screen, inputs, kept=kept)
        elif skip_invalid or unseen == "null":
            screen.keep_earlier(outputs.earlier_rejected(source, data, output, screen))
        yield job


def read(
    screen: Screen,
    data: str,
    columns: Columns,
    *checks: Callable[[Job], None],
    ordered: bool = False,
    **how: Any,
) -> tuple[Job, dict[str, Any]]:
    """Open and check DATA, and read its rows into memory as `Job.arrays` returns them."""
    with opened(screen, data, columns, **how) as job:
        for check in checks:
            check(job)
        with screen.progress(job.source.connection, "Reading"):
            return job, job.arrays(ordered=ordered)


def drawing(
    screen: Screen, id: str | None, key_file: str | None, seed: int | None, probability_only: bool
) -> tuple[str | None, bool]:
    """Return the key for random draws, if decisions are requested, and whether rows are drawn by number."""
    seeded, keyed = seed is not None, key_file is not None
    refuse(
        {
            "--probability-only makes no decisions; leave out --key-file and --random-seed": probability_only
            and (seeded or keyed),
            "Pass either --id and --key-file, or --random-seed, not both": seeded and (id is not None or keyed),
            "--key-file needs --id, the column that identifies each person": keyed and id is None,
        }
    )
    if seed is not None:
        refuse_if(seed < 0, "must be an integer of at least 0", argument="random_seed", got=seed)
        # Without ids, rows are drawn by their number.
        return hashlib.sha256(f"fairramp random seed {seed}".encode()).hexdigest(), True
    if id is None or probability_only:
        return None, False
    key, warning = read_key(key_file)
    refuse_if(
        key is None,
        "--id needs a secret key: pass --key-file FILE (create one with fairramp keygen) or set {variable}",
        variable=ENVIRONMENT,
    )
    screen.warn(f"{warning}", when=warning)
    return key, False


def named(columns: Columns) -> dict[str, Any]:
    """Return the names of the columns, for JSON."""
    return {
        "score_column": columns.score,
        "group_columns": columns.groups,
        "strata_columns": columns.strata,
        "probability_columns": columns.probabilities,
        **({"class_score_columns": columns.class_scores} if columns.class_scores else {}),
    }


# Fitting and applying ---------------------------------------------------------------------------


def fit(job: Job, labels: Sequence[Label] = (), **settings: Any) -> Rule:
    """Fit a rule to the rows of a job, with the column names of the file.

    `labels` are the groups of the columns with group probabilities.
    """
    inner, rows = job.inner, job.relation()
    if job.source.format != "parquet":  # parse text once, not in every pass
        rows.create("kept")
        rows = job.source.connection.table("kept")
    grouped: dict[str, Any] = {"group": inner.groups}
    if inner.probabilities:
        grouped = {"group_probability": dict(zip(labels, inner.probabilities, strict=True))}
    rule = fairramp.fit_frame(
        rows,
        score="score",
        weight="weight" if "--weight" in job.numbers else None,
        label="label" if "--label" in job.numbers else None,
        strata=inner.strata,
        **grouped,
        **settings,
    )
    groups = rule.groups
    if rule.membership == "each":  # pairs with the name of the column
        names = dict(zip(inner.groups or (), job.columns.groups or (), strict=True))
        groups = tuple((names[attribute], value) for attribute, value in map(label_parts, groups))  # type: ignore[index]
    return replace(rule, groups=groups, columns=replace(job.columns, id=None))


def apply_to(job: Job, rule: Rule, key: str | None = None, *, seeded: bool = False) -> None:
    """Create the view `applied`: all columns, then `probability` and, with a key, `decision`.

    The columns of the file are c0, c1, …; with `seeded`, rows are drawn by row number instead of by id. No row is
    read here.
    """
    relation, added, columns = job.relation(extra=True), ["probability", "decision"], job.inner
    if seeded:
        relation = relation.project("*, row_number() OVER () AS id")
    if key is None:
        added, columns = added[:1], replace(columns, id=None)
    project(rule, nw.from_native(relation), columns, key, added).create_view("applied", replace=True)


def count_decisions(job: Job, rows: str, *, decided: bool, one_pass: bool) -> tuple[list[dict[str, Any]], int]:
    """Count the decisions in each group, and the rows on a ramp that repeat an id.

    `rows` is SQL with the file's columns c0, c1, …, `probability` and `decision`. In Parquet, two passes over a
    few columns are faster than one pass over all of them. With group probabilities, all counts are expected ones.
    Rows without a probability are not counted.
    """
    if job.probabilities:
        # What was written to Parquet is a number, whatever it was before.
        chances = [n.expression if one_pass else f"CAST({n.column} AS DOUBLE)" for n in job.probabilities]
        return _expected_decisions(job, rows, chances, decided=decided)
    names, id, ask = job.inner.grouped, job.columns.id, job.source.connection.execute
    keys = ", ".join(f"{key} AS {name}" for key, name in zip(job.keys, names, strict=True))
    by, drawn = ", ".join(names), "probability > 0 AND probability < 1"
    done = (
        f"(SELECT {keys}, probability, {'decision' if decided else '0'} AS decision, CASE WHEN {drawn} THEN "
        f"{job.source.find(id, '--id') if id else 'NULL'} END AS repeatable FROM {rows} "
        "WHERE probability IS NOT NULL)"
    )
    sums = (
        "count(*) AS n, sum(probability) AS rate, sum(decision) AS selected, "
        f"count(*) FILTER ({drawn}) AS drawn FROM {done} GROUP BY ALL"
    )
    ask(f"CREATE OR REPLACE TEMP TABLE counted AS SELECT {by}, {'repeatable, ' if one_pass else ''}{sums}")
    totals = ask(
        f"SELECT {by}, sum(n), sum(rate), sum(selected), sum(drawn) FROM counted GROUP BY {by}"
    ).fetchall()
    ids = "counted" if one_pass else f"(SELECT repeatable, 1 AS n FROM {done} WHERE {drawn})"
    ((repeated,),) = ask(
        f"SELECT coalesce(sum(n) - count(DISTINCT repeatable), 0) FROM {ids} WHERE repeatable IS NOT NULL"
    ).fetchall()
    labels = [label_of(parts, len(job.columns.strata or ())) for parts in job.cells]
    named = dict(zip(job.raw_cells, labels, strict=True))
    summed: dict[Any, tuple[Label, Any]] = {}  # several values of the file may be one label of the rule
    for *key, n, rate, selected, on_ramp in totals:
        label = named[tuple(key)]
        _, so_far = summed.setdefault(label_key(label), (label, np.zeros(4)))
        so_far += [float(number) for number in (n, rate, selected, on_ramp)]
    found = (
        {
            "group": label,
            "rows": int(n),
            "expected_rate": rate / n,
            "selected": int(selected) if decided else None,
            "in_ramp": int(on_ramp),
        }
        for label, (n, rate, selected, on_ramp) in summed.values()
    )
    return sorted(found, key=lambda row: label_key(row["group"])), int(repeated)


def _expected_decisions(
    job: Job, rows: str, chances: Sequence[str], *, decided: bool
) -> tuple[list[dict[str, Any]], int]:
    """Sum the group probabilities of the decisions, and count the rows on a ramp that repeat an id."""
    drawn = "FILTER (probability > 0 AND probability < 1)"
    id = job.source.find(job.columns.id, "--id") if job.columns.id else "NULL"
    chosen = "decision" if decided else "0"
    sums = [
        f"sum({q}), sum({q} * probability), sum({q} * {chosen}), coalesce(sum({q}) {drawn}, 0)"
        for q in map("({})".format, chances)
    ]
    ((repeated, *found),) = job.source.connection.execute(
        f"SELECT count({id}) {drawn} - count(DISTINCT {id}) {drawn}, {', '.join(sums)} FROM {rows}"
    ).fetchall()
    counts = zip(job.labels, zip(*[iter(found)] * 4, strict=True), strict=True)
    return [
        {
            "group": label,
            "rows": n,
            "expected_rate": rate / n if n else None,
            "selected": selected if decided else None,
            "in_ramp": on_ramp,
        }
        for label, (n, rate, selected, on_ramp) in counts
        if job.rows
    ], repeated


def decided_table(rule: Rule, found: list[dict[str, Any]], *, decided: bool) -> fairramp.Table:
    """Return the counts of `count_decisions` as a table with one row per group."""
    found = [row for row in found if row["rows"]]
    columns = cell_columns([row["group"] for row in found], stratified=rule.stratified)
    headings = {"stratum": rule.columns.strata, "group": rule.columns.groups}
    named = {name: " / ".join(headings[name] or [name]) for name in columns}
    if decided:
        found = [row | {"selected_rate": row["selected"] / row["rows"]} for row in found]
    titles = {"rows": "n", "expected_rate": "expected_rate"}
    titles |= {name: name for name in ("selected", "selected_rate") if decided} | {"in_ramp": "decided_at_random"}
    # Expected counts are rounded.
    counted = {
        title: [row[name] if "rate" in name else round(row[name]) for row in found]
        for name, title in titles.items()
    }
    return fairramp.Table(columns | counted, headings=named, shares=("expected_rate", "selected_rate"))


def _with_comma(column: str) -> str:
    return f"replace(CAST({column} AS VARCHAR), '.', ',')"


def _as_text(column: str) -> str:
    """Return a probability as text; most are 0 or 1, and formatting a number takes longer than comparing it."""
    return f"CASE WHEN {column} = 0 THEN '0.0' WHEN {column} = 1 THEN '1.0' ELSE CAST({column} AS VARCHAR) END"


def check_new(job: Job, added: Sequence[str]) -> None:
    """Reject new columns that the table already has."""
    for name in added:
        refuse_if(
            name in job.source.names,
            "{where} already has a column {name!r}; pass --prefix new_ or rename the column",
            where=job.source.shown,
            name=name,
        )


def output_query(job: Job, added: Sequence[str], *, target: str, comma: bool = False) -> str:
    """Return SQL for the output, over the view `applied`; `comma` writes decimal commas in text formats."""
    shares = [name for name in added if name != "decision"]
    if (format_of(target) or "csv") in ("csv", "tsv"):
        commas = comma or (job.source.format == "csv" and job.score.comma)
        shares = [_with_comma(_as_text(name)) if commas else _as_text(name) for name in shares]
    new = [*_written(job, target, comma), *shares, *added[len(shares) :]]
    return f"SELECT {', '.join(new)} FROM applied"


def selected_query(job: Job, *, target: str, comma: bool = False) -> str:
    """Return SQL for the output, after `Job.decide`."""
    return f"SELECT {', '.join([*_written(job, target, comma), 'decision'])} FROM decided ORDER BY position"


def _written(job: Job, target: str, comma: bool) -> list[str]:
    """Return SQL for the columns of the file in an output."""
    columns = [f"c{i}" for i in range(len(job.source.names))]
    from_text, to_text = job.source.format == "csv", (format_of(target) or "csv") in ("csv", "tsv")
    if from_text and to_text:
        columns = [f"nullif({column}, '')" for column in columns]  # keeps empty cells empty, without quotes
    elif from_text:
        for option, number in job.numbers.items():  # typed formats get numbers
            if option not in ("--label", "--weight"):
                columns[int(number.column[1:])] = inner_name(option)
    elif to_text and comma:
        types = zip(columns, job.source.types, strict=True)
        columns = [_with_comma(c) if t.startswith(("DECIMAL", "FLOAT", "DOUBLE")) else c for c, t in types]
    return columns


def measured(job: Job, rule: Rule) -> dict[str, tuple[float, float]]:
    """Compute accuracy, balanced accuracy and cost before and after the rule, in expectation, within DuckDB."""
    apply_to(job, rule)
    weight = "weight" if "--weight" in job.numbers else "1"
    own = f"CAST(score {'>=' if rule.higher_is_better else '<='} {rule.cutoff!r} AS DOUBLE)"
    labels = (f"sum({weight} * {y})" for y in ("(1 - label)", "label"))
    chosen = (f"sum({weight} * {h} * {y})" for h in (own, "probability") for y in ("(1 - label)", "label"))
    ((zeros, ones, *chances),) = job.source.connection.execute(
        f"SELECT {', '.join([*labels, *chosen])} FROM applied"
    ).fetchall()
    costs = rule.record.costs if rule.record else None
    weights, unknown = np.array([zeros, ones]), np.full((3, 2), np.nan)  # standard errors are not needed
    both = [Confusion(weights, np.array(part), unknown, weights[:0]) for part in (chances[:2], chances[2:])]
    before, after = (
        {"accuracy": one.accuracy()[0], "balanced_accuracy": one.balanced_accuracy()[0]}
        | ({"cost": one.cost(Costs(*costs))[0]} if costs else {})
        for one in both
    )
    return {name: (before[name], after[name]) for name in before}
