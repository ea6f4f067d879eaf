"""Audits, checks, frontiers and reports of classifiers with several classes."""

import os
from collections.abc import Mapping
from typing import Any

import fairramp
from fairramp.cli import classes as several
from fairramp.cli import library, outputs, strangers, texts
from fairramp.cli.render import STDIN, STDOUT, Screen, spoken
from fairramp.core.labels import Label
from fairramp.core.table import Table
from fairramp.core.words import wrapped
from fairramp.data.columns import Columns
from fairramp.measure.class_audited import ClassAudit
from fairramp.measure.gate import Gates
from fairramp.measure.verdict import exit_code
from fairramp.rule.class_rule import ClassRule
from fairramp.show.words import plain_name, unmarked


def audit(
    screen: Screen,
    data: str,
    rule: ClassRule | None,
    *,
    columns: Columns,
    classes: tuple[Label, ...],
    gates: Mapping[str, float],
    confidence: float,
    every: bool,
    how: Mapping[str, Any],
) -> int:
    """Measure the rate of each class in every group."""
    _, arrays = several.read(screen, data, columns, classes, rule=rule, **how)
    found = fairramp.audit_classes(**arrays, rule=rule, confidence=confidence)
    texts.show_heading(screen, found.rows, columns, data)
    _show_audit(screen, found, every=every)
    gate, code = texts.show_gates(screen, Gates(found, **gates) if gates else None)
    return screen.result("audit", code, data=data, **library.named(columns), **found.to_dict(), gate=gate)


def _show_audit(screen: Screen, found: ClassAudit, *, every: bool) -> None:
    """Print an audit: sentences, then tables, each with its heading."""
    first, *parts = found._parts()
    screen.say(*map(plain_name, found.sentences()), "")
    assert isinstance(first, str)
    for part in parts:
        if isinstance(part, Table):
            screen.table(part, every=every, more="with --all")
        else:
            screen.say("", part, "")


def check(
    screen: Screen,
    rule: ClassRule,
    path: str,
    data: str,
    *,
    columns: Columns,
    confidence: float,
    how: Mapping[str, Any],
) -> int:
    """Check on new rows whether the gap of a class exceeds the limit."""
    job, arrays = several.read(screen, data, columns, rule.classes, rule=rule, **how)
    arrays.pop("labels")
    found = rule.check(**arrays, confidence=confidence)
    lost = strangers.lost_groups(job, rule)
    code = exit_code(found.verdict, sound=found.is_sound, undecided=3 if lost else 0)
    texts.show_heading(screen, found.rows[: len(found.rows) // len(rule.classes)], columns, data)
    first, *more = found.sentences()
    screen.verdict(f"Check {found.verdict.word}. {lost}{lost and ' '}{first}", told=code or found.missing)
    screen.say(*more, "")
    screen.table(found.table())
    return screen.result("check", code, rule=path, data=data, **library.named(columns), **found.to_dict())


def frontier(
    screen: Screen,
    data: str,
    validation: str | None,
    output: str | None,
    *,
    columns: Columns,
    classes: tuple[Label, ...],
    settings: Mapping[str, Any],
    how: Mapping[str, Any],
) -> int:
    """Show how much accuracy each allowed gap costs."""
    fitted, *others = (
        several.read(screen, file, columns, classes, **how)[1] for file in (data, validation) if file is not None
    )
    names = ("probabilities", "groups", "labels", "sample_weight")
    curve = fairramp.class_frontier(
        **{name: fitted[name] for name in names},
        validation=tuple(others[0][name] for name in names) if others else None,
        **settings,
    )
    table = curve.table()
    if output is not None and output.lower().endswith(outputs.PICTURES):
        outputs.write_picture(curve.plot(), output)
    elif output is not None:
        outputs.write_table(table, output)
    parts = curve._parts()
    screen.say(str(parts[0]), "")
    screen.table(table, more="in a file, with -o frontier.csv")
    if output not in (None, STDOUT):
        screen.say(f"\nSaved to {output}.")
    return screen.result(
        "frontier",
        data=data,
        **library.named(columns),
        output=output,
        in_sample=curve.is_in_sample,
        own_gap=curve.own_gap,
        own_accuracy=curve.own_accuracy,
        confidence=curve.confidence,
        points=list(table.rows()),
    )


def show(screen: Screen, rule: ClassRule, path: str, *, every: bool) -> None:
    """Describe a rule."""
    screen.heading(wrapped(rule.heading))
    screen.say(*rule.reached, "")
    screen.table(rule.table(), every=every, more="with --all")
    screen.say(*(f"\n{note}" for note in rule.notes))
    screen.say(
        f"\nGroups not in the fit rows: "
        f"{'an error' if rule.unseen_group == 'error' else 'the own decision of the classifier'}.",
        f"Fingerprint: {rule.fingerprint}",
        "Limits on the gap for new people come from rows that the rule was not fitted on: see fairramp report.",
    )
    screen.result("show", rule=path, **rule.to_dict(), rule_fingerprint=rule.fingerprint)


def report(
    screen: Screen,
    rule: ClassRule,
    path: str,
    data: str,
    output: str,
    *,
    columns: Columns,
    tables: str | None,
    words: Mapping[str, Any],
    how: Mapping[str, Any],
) -> int:
    """Write a report."""
    job, arrays = several.read(screen, data, columns, rule.classes, rule=rule, **how)
    source = None if data == STDIN else os.path.basename(data.rstrip("/"))
    made = rule.report(**arrays, source=source, left_out=job.left_out, **words)
    outputs.write_text(output, made.html, "the report")
    if tables is not None:
        made.save_tables(tables)
    judgment = made.content.judgment
    notes = [judgment.summary, f"{judgment.advice}\n", *made.content.notes]
    screen.say(*map(unmarked, notes))
    screen.say(f"\nSaved to {spoken(output)}. Open it in a browser; it works offline.")
    return screen.result(
        "report", data=data, rule=path, **library.named(columns), output=output, report=made.content.to_dict()
    )
