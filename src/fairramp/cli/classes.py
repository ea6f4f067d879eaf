"""The commands for classifiers with several classes: `--class-score`, and rules that were fitted with it."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

import fairramp
from fairramp.cli import library, outputs, texts
from fairramp.cli.job import Job
from fairramp.cli.naming import classes_of, fit_columns, probabilities_of, typed_label
from fairramp.cli.render import STDIN, STDOUT, Screen, given, spoken, typed
from fairramp.core.cells import cell_columns
from fairramp.core.labels import Label, label_key, label_of, label_text
from fairramp.core.table import Table, name_column, one_line
from fairramp.core.words import wrapped
from fairramp.data.classes import checked_classes
from fairramp.data.columns import Columns
from fairramp.data.database import literal
from fairramp.deploy.class_apply import check_types, probability_columns
from fairramp.deploy.engines.class_duckdb import apply as project
from fairramp.errors import FairrampError, UnsupportedError, refuse_if
from fairramp.rule.class_rule import ClassRule

#: How DATA is read.
_READ = ("delimiter", "decimal", "sheet", "skip_invalid")


# Columns and rows --------------------------------------------------------------------------------


def refuse_others(given: Mapping[str, Any]) -> None:
    """Reject options that are about one score; `given` has the values that differ from their defaults."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise UnsupportedError("Several classes do not support {" + name + "}", remedy="remove it")


def columns_of(
    rule: ClassRule | None,
    class_score: Sequence[str] | None,
    group: Sequence[str] | None,
    strata: Sequence[str] | None = None,
    id: str | None = None,
    *,
    group_probability: Sequence[str] | None = None,
    deciding: bool = False,
) -> tuple[tuple[Label, ...], Columns]:
    """The classes, and the columns to use: those given, or else those stored in the rule.

    If the rule uses group probabilities, `group` has the true groups, which are needed except for `deciding`.
    """
    scores = classes_of(class_score, rule.classes if rule else None)
    if rule is None:
        refuse_if(not group, "--group is missing: pass the column with the groups")
        assert scores is not None
        columns = Columns().given(None, list(group or ()), list(strata) if strata else None, id)
        return tuple(scores), columns.with_classes(scores)
    probable = rule.membership == "probabilities"
    refuse_if(
        probable and not deciding and not group,
        "--group is missing: pass the column with the true groups, which the rates are measured by; the rule "
        "itself uses group probabilities",
    )
    chances = probabilities_of(group_probability, rule.groups)
    own = None if probable or not group else list(group)
    columns = rule.reading(scores, own, list(strata) if strata else None, id, chances)
    return rule.classes, replace(columns, groups=tuple(group)) if probable and group else columns


@contextlib.contextmanager
def opened(
    screen: Screen,
    data: str,
    columns: Columns,
    classes: tuple[Label, ...],
    *,
    rule: ClassRule | None = None,
    **how: Any,
) -> Iterator[Job]:
    """Open DATA and validate it in one pass."""
    checked_classes(classes)
    for name in set(columns.class_scores or ()) & set(columns.grouped):
        raise FairrampError("--class-score {name!r} is also a column of groups", name=name)
    with library.opened(screen, data, columns, scale=None, rule=rule, classes=classes, **how) as job:
        yield job


def read(
    screen: Screen,
    data: str,
    columns: Columns,
    classes: tuple[Label, ...],
    *,
    label: str | None = None,
    rule: ClassRule | None = None,
    **how: Any,
) -> tuple[Job, dict[str, Any]]:
    """Open and check DATA, and read its rows into memory as `Job.arrays` returns them."""
    with opened(screen, data, columns, classes, label=label, rule=rule, **how) as job:
        texts.warn_groups(screen, job, rule, compared=True)
        with screen.progress(job.source.connection, "Reading"):
            arrays = job.arrays(ordered=True)
        return job, arrays | {"labels": None if label is None else _true_classes(job, arrays["labels"])}


def _true_classes(job: Job, found: Any) -> np.ndarray[Any, Any]:
    """The true class of each row, from text."""
    values, places = np.unique(np.ma.filled(found, "").astype(str), return_inverse=True)
    labels = [typed_label(str(value), job.classes) for value in values]
    every = np.empty(len(labels), dtype=object)
    every[:] = labels
    chosen: np.ndarray[Any, Any] = every[places]
    return chosen


# Fitting and applying ----------------------------------------------------------------------------


def _applied(job: Job, rule: ClassRule, key: str | None = None, *, seeded: bool = False) -> list[str]:
    """Create the view `applied`: all columns, the chances h0, h1, … and, with a key, `decision`."""
    relation, columns = job.relation(extra=True), job.inner
    added = [f"h{c}" for c in range(len(rule.classes))]
    if seeded:
        relation = relation.project("*, row_number() OVER () AS id")
    if key is None:
        columns = replace(columns, id=None)
    else:
        added.append("decision")
    project(rule, nw.from_native(relation), columns, key, added).create_view("applied", replace=True)
    return added


def _accuracy(job: Job, rule: ClassRule) -> float:
    """Accuracy of a rule in expectation, within DuckDB."""
    _applied(job, rule)
    weight = "weight" if "--weight" in job.numbers else "1"
    right = " ".join(
        f"WHEN {literal(label_text(label) if label != '' else '')} THEN h{c}"
        for c, label in enumerate(rule.classes)
    )
    ((found,),) = job.source.connection.execute(
        f"SELECT sum({weight} * CASE coalesce(truth, '') {right} ELSE 0 END) / sum({weight}) FROM "
        f"(SELECT *, {job.truth} AS truth FROM applied)"
    ).fetchall()
    return float(found)


def fit(
    screen: Screen,
    data: str,
    output: str,
    *,
    class_score: Sequence[str],
    group: Sequence[str] | None,
    group_probability: Sequence[str] | None,
    strata: Sequence[str] | None,
    label: str | None,
    weight: str | None,
    replacing: bool,
    settings: Mapping[str, Any],
    how: Mapping[str, Any],
) -> int:
    """Fit a rule for several classes."""
    outputs.check_output(output, data)
    earlier = outputs.keep_others(output, replace=replacing)
    classes = classes_of(class_score) or {}
    chances = probabilities_of(group_probability)
    columns = fit_columns(None, group, strata, chances).with_classes(classes)
    told = ["Accuracy is unknown without --label; fitting needs no labels."]
    measured: list[float | None] = [None, None]
    with opened(screen, data, columns, tuple(classes), label=label, weight=weight, **how) as job:
        inner = job.inner
        grouped: dict[str, Any] = {"group": inner.groups}
        if inner.probabilities:
            grouped = {"group_probability": dict(zip(chances or (), inner.probabilities, strict=True))}
        with screen.progress(job.source.connection, "Fitting"):
            found = fairramp.fit_frame(
                job.relation() if job.source.format == "parquet" else _kept(job),
                class_score=dict(zip(classes, inner.class_scores or (), strict=True)),
                weight="weight" if weight is not None else None,
                strata=inner.strata,
                **grouped,
                **settings,
            )
        assert isinstance(found, ClassRule)
        found = replace(found, columns=replace(columns, id=None))
        if label is not None:
            with screen.progress(job.source.connection, "Measuring"):
                none = ((0.0,) * len(found.classes),) * len(found.groups)
                measured = [_accuracy(job, replace(found, offsets=none, ramp_width=0.0)), _accuracy(job, found)]
                told = [texts.before_after("accuracy", *map(float, measured))]  # type: ignore[arg-type]
    outputs.write_text(output, found.to_json(), "the rule")
    if earlier is not None and earlier != found:
        screen.note(f"Replaced an earlier rule in {output}, fingerprint {earlier.fingerprint}")
    saved = "rule.json" if output == STDOUT else output
    screen.heading(wrapped(found.heading))
    screen.say(*found.reached, *told, "")
    screen.table(found.table(), more=f"with:{typed(['show', saved, '--all'], ' ')}")
    screen.say(*(f"\n{note}" for note in found.notes))
    screen.say(
        f"\nSaved to {spoken(output)}. Next, measure the rule on rows that it was not fitted on (replace "
        f"NEW_DATA{' and GROUP, the column with the true groups' if chances else ''}):"
    )
    options = given(**{name: how[name] for name in _READ})
    truth = ["--group", "GROUP"] if chances else []
    named = [*truth, *(["--label", label] if label else [])]
    screen.text(typed(["audit", "NEW_DATA", "--rule", saved, *named, *options]))
    screen.say("Then the decisions (replace ID with the name of your id column):")
    rows, made = [saved, "DATA" if data == STDIN else data], f"decisions{outputs.ending_like(data)}"
    screen.text(
        typed(["keygen", "key.txt"]),
        typed(["apply", *rows, *options, "-o", made, "--id", "ID", "--key-file", "key.txt"]),
    )
    record = found.record
    assert record is not None
    return screen.result(
        "fit",
        data=data,
        rule=output,
        **library.named(columns),
        rows=job.rows,
        classes=list(found.classes),
        groups=list(found.table().rows()),
        membership=found.membership,
        max_gap=found.max_gap,
        gap_before=record.gap_before,
        gap_after=record.gap_after,
        accuracy_before=measured[0],
        accuracy_after=measured[1],
        rule_fingerprint=found.fingerprint,
        data_fingerprint=record.fingerprint,
    )


def _kept(job: Job) -> Any:
    """The rows of a text file, parsed once, not in every pass."""
    job.relation().create("kept")
    return job.source.connection.table("kept")


def apply(
    screen: Screen,
    rule: ClassRule,
    path: str,
    data: str,
    output: str,
    *,
    columns: Columns,
    key: str | None,
    seeded: bool,
    probability_only: bool,
    prefix: str,
    every: bool,
    note: str,
    how: Mapping[str, Any],
) -> int:
    """Add the chance of every class, and decisions, to a file."""
    if key is not None:
        check_types(rule)
    names = [f"{prefix}{name}" for name in (*probability_columns(rule), *(["decision"] if key else []))]
    with opened(screen, data, columns, rule.classes, rule=rule, may_be_empty=True, **how) as job:
        library.check_new(job, names)
        if job.rows:
            texts.warn_groups(screen, job, rule)
        else:
            screen.warn(f"{job.source.shown} {job.source.no_rows}, so the output has none either.")
        added = _applied(job, rule, key, seeded=seeded)
        delimiter = library.output_delimiter(job, how["delimiter"], how["decimal"])
        with (
            screen.progress(job.source.connection, "Deciding"),
            outputs.written(
                job.source.connection,
                library.output_query(job, added, target=output, comma=how["decimal"] == ","),
                [*job.source.names, *names],
                output,
                delimiter=delimiter,
                mark=job.source.mark,
                empty=not job.rows,
            ),
        ):
            counted = _counts(job, rule, decided=key is not None) if job.rows else []
        repeated = 0 if columns.id is None else _repeated(job, added)
    if repeated:
        texts.warn_repeated(screen, repeated, str(columns.id))
    *others, last = map(one_line, names)
    undecided = sum(n for _, n in job.unknown) if how["unseen"] == "null" else 0
    rows = texts.rows_with(job.rows, job.rows - undecided)
    screen.say(f"Added {', '.join(others)} and {last} to {rows}. Saved to {spoken(output)}.{note}")
    if counted:
        screen.text()
        screen.table(_counted_table(rule, counted, decided=key is not None), every=every, more="with --all")
    if key is None and not probability_only:
        screen.say(
            "\nNo decisions were made; the new columns hold the chance of each class. For decisions that stay "
            "the same for the same person, pass --id COLUMN --key-file FILE."
        )
    elif seeded:
        screen.say(
            "\nDecisions depend on the row number: the same file gives the same decisions, but a person in a "
            "different row may get a different one."
        )
    told = {"rule": path, "data": data, "output": output}
    return screen.result("apply", **told, columns=names, rows=job.rows, groups=counted)


def _counts(job: Job, rule: ClassRule, *, decided: bool) -> list[dict[str, Any]]:
    """Expected and actual numbers of each class, by group; over all rows for group probabilities."""
    names = [] if job.probabilities else list(job.inner.grouped)
    by = "".join(f"{name}, " for name in names)
    sums = [f"sum(h{c})" for c in range(len(rule.classes))]
    if decided:
        sums += [f"count(*) FILTER (decision = {literal_of(label)})" for label in rule.classes]
    rows = job.source.connection.execute(
        f"SELECT {by}count(*), {', '.join(sums)} FROM applied WHERE h0 IS NOT NULL "
        f"{'GROUP BY ALL' if names else ''}"
    ).fetchall()
    n_keys, n_classes, found = len(names), len(rule.classes), []
    for row in rows:
        key, n, numbers = row[:n_keys], row[n_keys], row[n_keys + 1 :]
        group = label_of(tuple(key), len(job.columns.strata or ())) if names else None
        for c, label in enumerate(rule.classes):
            found.append(
                {
                    "class": label,
                    "group": group,
                    "rows": int(n),
                    "expected_rate": numbers[c] / n,
                    "decided": int(numbers[n_classes + c]) if decided else None,
                }
            )
    place = {label_key(label): i for i, label in enumerate(rule.classes)}
    return sorted(found, key=lambda row: (place[label_key(row["class"])], label_key(row["group"])))


def _repeated(job: Job, added: Sequence[str]) -> int:
    """How many rows that are decided at random repeat the id of another one."""
    chances = ", ".join(name for name in added if name != "decision")
    ((found,),) = job.source.connection.execute(
        f"SELECT count(id) - count(DISTINCT id) FROM applied WHERE greatest({chances}) < 1"
    ).fetchall()
    return int(found)


def literal_of(label: Label) -> str:
    """A class label in SQL."""
    return literal(label) if isinstance(label, str) else str(label)


def _counted_table(rule: ClassRule, found: Sequence[Mapping[str, Any]], *, decided: bool) -> Table:
    """The counts as a table with one row per class and group."""
    columns: dict[str, Any] = {"class": name_column([row["class"] for row in found])}
    if not rule.mixes:
        columns |= cell_columns([row["group"] for row in found], stratified=rule.stratified)
    headings = {"stratum": rule.columns.strata, "group": rule.columns.groups}
    columns |= {"n": [row["rows"] for row in found], "expected_rate": [row["expected_rate"] for row in found]}
    if decided:
        columns |= {"decided": [row["decided"] for row in found]}
        columns |= {"decided_rate": [row["decided"] / row["rows"] for row in found]}
    named = {name: " / ".join(names or [name]) for name, names in headings.items()}
    return Table(columns, headings=named, shares=("expected_rate", "decided_rate"))
