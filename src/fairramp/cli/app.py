"""The commands, thin: read, call the library, show, write.

Imports of anything heavy stand inside the commands.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from fairramp._version import __version__

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from fairramp.audit import Audit
    from fairramp.cli.engine import Columns, Job
    from fairramp.rule import Rule

__all__ = ["app"]

app = App(
    name="fairramp",
    help="Equal selection rates between groups, from any classifier's scores.\n\n"
    "Four commands from a file of scores to a file of decisions: audit, fit, keygen, apply. "
    "Each explains itself: fairramp fit --help",
    version=__version__,
    help_format="plaintext",
    version_flags=["--version"],
)

#: A certificate so much wider than what was asked for is explained.
_WIDE = 0.05
#: Version of what --json prints.
_JSON = 1

_Data = Annotated[
    str, Parameter(help="CSV, TSV, JSON lines or Parquet: a file, a folder, a quoted glob, or - for stdin.")
]
_RuleFile = Annotated[str, Parameter(help="A rule that fit has written.")]
_Names = Annotated[list[str] | None, Parameter(consume_multiple=False, negative="")]
_Score = Annotated[str | None, Parameter(help="Column with the classifier's scores; a higher one means yes.")]
_Group = Annotated[_Names, Parameter(help="Column with the group; once for each column of an intersection.")]
_Label = Annotated[str | None, Parameter(help="Column with the true outcomes: 0 or 1, yes or no.")]
_Positive = Annotated[
    str | None, Parameter(help="The label that means yes, if it is not 1, true or yes; all others mean no.")
]
_Weight = Annotated[str | None, Parameter(help="Column with the weights of the rows.")]
_Strata = Annotated[
    _Names, Parameter(help="Column within whose values two groups are compared; may be repeated.")
]
_Scale = Annotated[
    Literal["probability", "percent", "signed", "logit"] | None,
    Parameter(help="What the scores are: from 0 to 1 (the default), 0 to 100, -1 to 1, or any number."),
]
_Cutoff = Annotated[
    float | None,
    Parameter(help="The classifier itself says yes from this score on; 0.5, 50 percent, or 0 unless given."),
]
_RampWidth = Annotated[
    float | None,
    Parameter(
        help="Width of the zone in which decisions are drawn, in units of the scores; 0.01, or 1 percent, unless "
        "given."
    ),
]
_Confidence = Annotated[float, Parameter(help="Of all limits and of the certificate.")]
_Delimiter = Annotated[
    str | None, Parameter(help="What separates the cells of CSV; found by itself if DATA is CSV.")
]
_Decimal = Annotated[
    Literal[".", ","] | None, Parameter(help="Decimal mark of CSV; found by itself if DATA is CSV.")
]
_Json = Annotated[bool, Parameter(help="Print one JSON object instead of text.", negative="", show_default=False)]
_Quiet = Annotated[
    bool,
    Parameter(
        help="Say nothing but warnings and errors.", negative="", name=["--quiet", "-q"], show_default=False
    ),
]
_OUTPUT = ["--output", "-o"]


@app.command(sort_key=1)
def audit(
    data: _Data,
    /,
    *,
    score: _Score = None,
    group: _Group = None,
    label: _Label = None,
    positive: _Positive = None,
    weight: _Weight = None,
    strata: _Strata = None,
    rule: Annotated[str | None, Parameter(help="Audit what this rule makes of the scores, too.")] = None,
    fail_above: Annotated[
        float | None,
        Parameter(help="Exit with 1 if the gap is above this for sure: its lower confidence limit is."),
    ] = None,
    fail_unless_below: Annotated[
        float | None,
        Parameter(help="Exit with 1 unless the gap is at most this for sure: its upper confidence limit is."),
    ] = None,
    cutoff: _Cutoff = None,
    scale: _Scale = None,
    confidence: _Confidence = 0.95,
    delimiter: _Delimiter = None,
    decimal: _Decimal = None,
    json: _Json = False,
    quiet: _Quiet = False,
) -> int:
    """Measure each group's selection rate, the gap, and what a rule makes of them.

    For example:

    fairramp audit scores.csv --score score --group sex --label label
    """
    from fairramp.audit import audit as measure
    from fairramp.cli import guards
    from fairramp.cli.render import Screen
    from fairramp.inputs import check_number

    screen = Screen(json=json, quiet=quiet)
    if fail_above is not None:
        check_number("fail_above", fail_above, 0.0, 1.0)
    if fail_unless_below is not None:
        check_number("fail_unless_below", fail_unless_below, 0.0, 1.0)
    known = _load_rule(rule) if rule is not None else None
    columns = _columns(known, score, group, label=label, weight=weight, strata=strata)
    with _opened(screen, data, columns, scale, decimal, delimiter, known, positive=positive) as (_, job):
        _need_rows(job)
        guards.warn_groups(screen, job, known, compared=True)
        guards.warn_direction(screen, job, known.scale if known else scale)
        with screen.progress(job.source.connection, "Reading"):
            arrays = job.arrays()
    found = measure(**arrays, rule=known, confidence=confidence, cutoff=cutoff, scale=None if known else scale)
    decided = known is None and guards.is_decided(arrays["scores"])
    _show_audit(screen, found, columns, data, decided=decided)
    gate = None
    if fail_above is not None or fail_unless_below is not None:
        gate = guards.judge(screen, found, fail_above, fail_unless_below, decided=decided)
    screen.result(_stamp("audit") | {"data": _dash(data), **_named(columns), **found.to_dict(), "gate": gate})
    return 1 if gate and gate["failed"] else 0


@app.command(sort_key=2)
def fit(
    data: _Data,
    /,
    *,
    score: Annotated[str, Parameter(help="Column with the classifier's scores; a higher one means yes.")],
    group: Annotated[
        list[str],
        Parameter(
            help="Column with the group; once for each column of an intersection.",
            consume_multiple=False,
            negative="",
        ),
    ],
    output: Annotated[str, Parameter(name=_OUTPUT, help="Where the rule goes: a JSON file, or - for stdout.")],
    max_gap: Annotated[
        float, Parameter(help="Largest allowed difference between two groups' selection rates.")
    ] = 0.0,
    label: _Label = None,
    positive: _Positive = None,
    weight: _Weight = None,
    strata: _Strata = None,
    target_rate: Annotated[
        str,
        Parameter(
            help="Where the rates meet: optimal, a number, or with --label accuracy or base_rate.",
        ),
    ] = "optimal",
    ramp_width: _RampWidth = None,
    ramp: Annotated[
        Literal["centered", "paper"], Parameter(help="Whether it is centered on the threshold or starts there.")
    ] = "centered",
    unseen_group: Annotated[
        Literal["error", "pooled", "original"],
        Parameter(help="A group that the fit never saw: refuse, common threshold, or classifier's decision."),
    ] = "error",
    cutoff: _Cutoff = None,
    scale: _Scale = None,
    confidence: _Confidence = 0.95,
    date: Annotated[str | None, Parameter(help="Kept in the rule's record as you write it.")] = None,
    delimiter: _Delimiter = None,
    decimal: _Decimal = None,
    json: _Json = False,
    quiet: _Quiet = False,
) -> None:
    """Learn one threshold per group from scores and groups; labels are not needed.

    A higher score means yes, the favourable answer. If a high score is bad (a risk), pass 1 - score.

    For example:

    fairramp fit scores.csv --score score --group sex --max-gap 0.02 -o rule.json
    """
    from fairramp.cli import engine, guards
    from fairramp.cli.render import Screen, count, typed
    from fairramp.cli.tables import STDIN, STDOUT
    from fairramp.groups import show_label
    from fairramp.scales import SCALES

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    if output != STDOUT:
        _check_target(output)
        guards.keep_inputs(output, data)
        guards.keep_others(output)
    columns = _columns(None, score, group, label=label, weight=weight, strata=strata)
    with _opened(screen, data, columns, scale, decimal, delimiter, positive=positive) as (connection, job):
        _need_rows(job)
        guards.warn_direction(screen, job, scale)
        with screen.progress(connection, "Fitting"):
            found = engine.fit(
                job,
                max_gap=max_gap,
                ramp_width=_width(ramp_width, scale),
                ramp=ramp,
                target_rate=_number_or_word(target_rate),
                cutoff=cutoff,
                scale=scale or "probability",
                unseen_group=unseen_group,
                date=date,
            )
        certificate = found.certificate(confidence)
        accuracy = None
        if label is not None:
            with screen.progress(connection, "Measuring"):
                accuracy = engine.accuracy(job, found)
    if output == STDOUT:
        sys.stdout.write(found.to_json())
    else:
        found.save(output)

    record = found.record
    assert record is not None
    screen.heading(repr(found).split("\n", 1)[0])
    screen.text()
    screen.table(found.table())
    if found.pooled:
        threshold = found.pooled.threshold * SCALES[found.scale].shown_per_unit
        screen.say(f"\ngroups not seen in the fit: threshold {threshold:.4f}")
    if found.scale == "logit":
        screen.say("\nthresholds and ramps are probabilities, 1/(1 + exp(-logit))")
    if found.scale == "percent":
        screen.say("\nthresholds and ramps are in percent, like the scores")
    screen.text()
    screen.say(f"a higher score means yes; if a high score is bad (a risk), pass {guards.turned(scale)}")
    screen.say(f"gap on these rows: {record.gap_before:.4f} before, {record.gap_after:.4f} after, in expectation")
    if accuracy:
        screen.say(f"accuracy on these rows: {accuracy[0]:.2%} before, {accuracy[1]:.2%} after")
    else:
        screen.say("accuracy: unknown without --label; the rule itself needed no labels")
    screen.text()
    screen.text(repr(certificate))
    if certificate.gap > found.max_gap + _WIDE and len(found.groups) > 1:
        least = min(range(len(found.groups)), key=lambda i: record.rows[i])
        screen.say(f"Widest for group {show_label(found.groups[least])} with {count(record.rows[least], 'row')}.")
    screen.text()
    shown = "stdout" if output == STDOUT else output
    screen.say(f"Saved to {shown}. Next (replace ID by the name of your id column):")
    screen.text(typed(["keygen", "key.txt"]))
    saved, rows = "rule.json" if output == STDOUT else output, "DATA" if data == STDIN else data
    screen.text(typed(["apply", saved, rows, "-o", "decisions.csv", "--id", "ID", "--key-file", "key.txt"]))
    screen.result(
        _stamp("fit")
        | {
            "data": _dash(data),
            "rule": _dash(output),
            **_named(columns),
            "rows": job.rows,
            "groups": _rows_of(found),
            "max_gap": found.max_gap,
            "gap_before": record.gap_before,
            "gap_after": record.gap_after,
            "accuracy_before": accuracy[0] if accuracy else None,
            "accuracy_after": accuracy[1] if accuracy else None,
            "certificate": {
                "gap": certificate.gap,
                "kind": certificate.kind,
                "is_theorem": certificate.is_theorem,
                "confidence": certificate.confidence,
                "proven_gap": certificate.proven.gap if certificate.proven else None,
            },
            "rule_fingerprint": found.fingerprint,
            "data_fingerprint": record.fingerprint,
        }
    )


@app.command(sort_key=4)
def apply(
    rule: _RuleFile,
    data: _Data,
    /,
    *,
    output: Annotated[
        str, Parameter(name=_OUTPUT, help="Where the rows go: .csv, .tsv, .jsonl, .parquet, or - for stdout.")
    ],
    id: Annotated[
        str | None, Parameter(help="Column that says who a row is; the same id, the same answer.")
    ] = None,
    key_file: Annotated[
        str | None, Parameter(help="File with the secret key (see keygen); or set FAIRRAMP_KEY.")
    ] = None,
    random_seed: Annotated[
        int | None,
        Parameter(help="Draw by row number instead of by id: a person in another row gets another answer."),
    ] = None,
    probability_only: Annotated[
        bool, Parameter(help="Add the chance of a yes and draw nothing.", negative="", show_default=False)
    ] = False,
    prefix: Annotated[str, Parameter(help="Put before the names of the new columns.", show_default=False)] = "",
    score: _Score = None,
    group: _Group = None,
    strata: _Strata = None,
    scale: _Scale = None,
    delimiter: _Delimiter = None,
    decimal: _Decimal = None,
    json: _Json = False,
    quiet: _Quiet = False,
) -> None:
    """Add `probability` and `decision` to every row; all columns and the order of the rows stay.

    Decisions are drawn with --id and a key, or with --random-seed; without either only the probability is added.

    For example:

    fairramp apply rule.json scores.csv -o decisions.csv --id id --key-file key.txt
    """
    from fairramp.cli import engine, guards
    from fairramp.cli.render import Screen, count
    from fairramp.cli.tables import STDOUT, TableError, write

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    known = _load_rule(rule)
    _check_output(output)
    guards.keep_inputs(output, data, {"the rule": rule, "the key file": key_file})
    key, seeded = _drawing(screen, id, key_file, random_seed, probability_only)
    columns = _columns(known, score, group, strata=strata, id=id if key and not seeded else None)
    added = [f"{prefix}probability", *([f"{prefix}decision"] if key else [])]
    with _opened(screen, data, columns, scale, decimal, delimiter, known) as (connection, job):
        taken = [name for name in added if name in job.source.names]
        if taken:
            raise TableError(
                f"{job.source.shown} has a column {taken[0]!r} already; pass --prefix new_ or rename it."
            )
        if job.rows:
            guards.warn_groups(screen, job, known)
        else:
            screen.warn(f"{job.source.shown} has a header and no rows, and so has the output.")
        if columns.id is not None:
            with screen.progress(connection, "Looking for duplicate ids"):
                guards.warn_duplicates(screen, job)
        with screen.progress(connection, "Deciding"):
            summary = engine.decide_all(job, known, key, seeded=seeded)
        with screen.progress(connection, "Writing"):
            write(
                connection,
                engine.output_query(job, decided=key is not None, target=output, comma=decimal == ","),
                [*job.source.names, *added],
                output,
                delimiter=_output_delimiter(job, delimiter, decimal),
                mark=job.source.mark,
                empty=not job.rows,
            )
    what = f"{' and '.join(added)} added to {count(job.rows, 'row')}"
    screen.say(f"{what}, written to {'stdout' if output == STDOUT else output}.")
    if job.rows:
        screen.text()
        screen.table(summary.table(known))
    if key is None and not probability_only:
        screen.say(
            f"\nNo decisions were drawn: {added[0]} is the chance of a yes. For decisions pass --id COLUMN "
            "--key-file FILE, and the same person always gets the same answer."
        )
    elif seeded:
        screen.say(
            "\nDrawn by row number: the same file gives the same answers, but a person in another row may not."
        )
    screen.result(
        _stamp("apply")
        | {
            "rule": rule,
            "data": _dash(data),
            "output": _dash(output),
            "columns": added,
            "rows": job.rows,
            **summary.to_dict(),
        }
    )


@app.command(sort_key=5)
def frontier(
    data: _Data,
    /,
    *,
    score: Annotated[str, Parameter(help="Column with the classifier's scores; a higher one means yes.")],
    group: Annotated[
        list[str],
        Parameter(
            help="Column with the group; once for each column of an intersection.",
            consume_multiple=False,
            negative="",
        ),
    ],
    label: Annotated[str, Parameter(help="Column with the true outcomes: 0 or 1, yes or no.")],
    output: Annotated[
        str | None,
        Parameter(name=_OUTPUT, help="Also write it: .csv, .tsv, .jsonl, .parquet, .svg, .png or .html."),
    ] = None,
    validation: Annotated[
        str | None, Parameter(help="Measure on these rows instead of the ones that are fitted.")
    ] = None,
    max_gap: Annotated[
        list[float] | None,
        Parameter(
            help="A gap to try; may be repeated. 21 from 0 to the classifier's own unless given.",
            consume_multiple=False,
            negative="",
        ),
    ] = None,
    weight: _Weight = None,
    positive: _Positive = None,
    ramp_width: _RampWidth = None,
    cutoff: _Cutoff = None,
    scale: _Scale = None,
    confidence: _Confidence = 0.95,
    delimiter: _Delimiter = None,
    decimal: _Decimal = None,
    json: _Json = False,
    quiet: _Quiet = False,
) -> None:
    """Show what accuracy each gap costs; needs labels.

    For example:

    fairramp frontier scores.csv --score score --group sex --label label
    """
    from fairramp.cli import guards
    from fairramp.cli.render import Screen
    from fairramp.cli.tables import STDOUT
    from fairramp.frontier import frontier as trace

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    if output is not None:
        _check_output(output, pictures=True)
        guards.keep_inputs(output, data, {"--validation": validation})
    columns = _columns(None, score, group, label=label, weight=weight)

    def rows(file: str) -> tuple[Any, Any, Any, Any]:
        with _opened(screen, file, columns, scale, decimal, delimiter, positive=positive) as (connection, job):
            _need_rows(job)
            guards.warn_direction(screen, job, scale)
            with screen.progress(connection, "Reading"):
                arrays = job.arrays()
        return arrays["scores"], arrays["groups"], arrays["labels"], arrays["sample_weight"]

    scores, groups, labels, weights = rows(data)
    curve = trace(
        scores,
        groups,
        labels,
        validation=None if validation is None else rows(validation),
        max_gaps=max_gap,
        ramp_width=_width(ramp_width, scale),
        cutoff=cutoff,
        scale=scale or "probability",
        sample_weight=weights,
        confidence=confidence,
    )
    table = curve.table()
    if output is not None and output.lower().endswith(_PICTURES):
        _write_picture(curve.plot(), output)
    elif output is not None:
        _write_table(table, output)
    head, _, last = repr(curve).split("\n\n")
    screen.heading(head)
    screen.text()
    screen.table(table)
    screen.text()
    screen.text(last)
    screen.say("each point has the most accurate rates (fit with --target-rate accuracy)")
    if output not in (None, STDOUT):
        screen.say(f"Saved to {output}.")
    screen.result(
        _stamp("frontier")
        | {
            "data": _dash(data),
            **_named(columns),
            "output": output and _dash(output),
            "in_sample": curve.is_in_sample,
            "own_gap": curve.own_gap,
            "own_accuracy": curve.own_accuracy,
            "confidence": curve.confidence,
            "points": list(table.rows()),
        }
    )


@app.command(sort_key=3)
def keygen(
    file: Annotated[str, Parameter(help="Where the key goes; it must not exist.")],
    /,
    *,
    quiet: _Quiet = False,
) -> None:
    """Make a secret key for decisions that repeat, readable by you alone.

    For example:

    fairramp keygen key.txt
    """
    from fairramp.cli.render import Screen
    from fairramp.cli.secret import make_key

    make_key(file)
    Screen(quiet=quiet).say(
        f"A new key is in {file}, which only you can read. Keep it secret and keep it: with another key the same "
        "people get other answers."
    )


@app.command(sort_key=7)
def report(
    rule: _RuleFile,
    data: _Data,
    /,
    *,
    output: Annotated[str, Parameter(name=_OUTPUT, help="Where the page goes: an HTML file, or - for stdout.")],
    title: Annotated[str | None, Parameter(help="Heading of the page.")] = None,
    score: _Score = None,
    group: _Group = None,
    label: _Label = None,
    positive: _Positive = None,
    weight: _Weight = None,
    strata: _Strata = None,
    scale: _Scale = None,
    confidence: _Confidence = 0.95,
    delimiter: _Delimiter = None,
    decimal: _Decimal = None,
    json: _Json = False,
    quiet: _Quiet = False,
) -> None:
    """Write a page about what a rule does to these rows: to explore, to print and to sign.

    One HTML file that needs no network; with --json every number on it.

    For example:

    fairramp report rule.json scores.csv --label label -o report.html
    """
    from fairramp.cli import guards
    from fairramp.cli.render import Screen
    from fairramp.cli.tables import STDOUT, TableError, is_stream

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    known = _load_rule(rule)
    if not is_stream(output):
        if not output.lower().endswith((".html", ".htm")):
            raise TableError(f"A report is a web page: end {output} in .html.")
        _check_target(output)
        guards.keep_inputs(output, data, {"the rule": rule})
    columns = _columns(known, score, group, label=label, weight=weight, strata=strata)
    with _opened(screen, data, columns, scale, decimal, delimiter, known, positive=positive) as (connection, job):
        _need_rows(job)
        guards.warn_groups(screen, job, known)
        with screen.progress(connection, "Reading"):
            arrays = _in_order(job.arrays())
    made = known.report(**arrays, title=title, confidence=confidence)
    page = made.html
    if is_stream(output):
        _write_stream(output, page)
    else:
        made.save(output)
    content = made.content
    before, after = (text[:1].upper() + text[1:] for text in (content.sentence, content.chosen.sentence))
    for word, text in (("Before", before), ("After", after)):
        screen.say(f"{word}: {_plain(text)}")
    screen.text()
    for note in content.notes:
        screen.say(_plain(note))
    screen.say(
        f"\nSaved to {'stdout' if output == STDOUT else output}; open it in a browser, no network is needed."
    )
    screen.result(
        _stamp("report")
        | {
            "data": _dash(data),
            "rule": rule,
            **_named(columns),
            "output": _dash(output),
            "report": content.to_dict(),
        }
    )


@app.command(sort_key=8)
def export(
    rule: _RuleFile,
    /,
    *,
    to: Annotated[str, Parameter(help="The form: sql, onnx, torch, or json, the rule without its record.")],
    dialect: Annotated[
        str | None,
        Parameter(help="Which SQL: duckdb, postgres, spark, snowflake, bigquery or sqlite."),
    ] = None,
    output: Annotated[
        str | None,
        Parameter(name=_OUTPUT, help="Where it goes; sql and json go to stdout unless given."),
    ] = None,
    table: Annotated[str | None, Parameter(help="SQL: a whole SELECT from this table.")] = None,
    view: Annotated[str | None, Parameter(help="SQL: CREATE VIEW with this name, over --table.")] = None,
    id: Annotated[str | None, Parameter(help="SQL: column that says who a row is, for decisions.")] = None,
    key_table: Annotated[
        str | None, Parameter(help="SQL: table of one row that holds the secret key; never the key itself.")
    ] = None,
    key_column: Annotated[str | None, Parameter(help="SQL: column of that table; key unless given.")] = None,
    decisions: Annotated[
        bool, Parameter(help="ONNX and torch: take draws and give decisions.", negative="", show_default=False)
    ] = False,
    model: Annotated[
        str | None, Parameter(help="ONNX: the classifier's own model, which the rule is joined to.")
    ] = None,
    column: Annotated[
        int | None, Parameter(help="ONNX: which column of the classifier's output; the second of two.")
    ] = None,
    score_type: Annotated[
        Literal["float64", "float32"] | None, Parameter(help="ONNX: type of the scores; float64 unless given.")
    ] = None,
    missing: Annotated[
        str | None, Parameter(help="ONNX: what stands for a missing group, which tensors cannot hold.")
    ] = None,
    prefix: Annotated[str | None, Parameter(help="Put before the names of new columns.")] = None,
    score: Annotated[
        str | None, Parameter(help="Column or input with the scores; with --model, its output. As in the fit.")
    ] = None,
    group: Annotated[_Names, Parameter(help="Column or input with the group; as in the fit.")] = None,
    strata: Annotated[_Names, Parameter(help="Column or input with the stratum; as in the fit.")] = None,
    json: _Json = False,
    quiet: _Quiet = False,
) -> None:
    """Write a rule as SQL, as an ONNX model or as a torch program, with the same answers.

    For example:

    fairramp export rule.json --to sql --dialect duckdb --table scores -o rule.sql
    """
    from fairramp.cli import exporting
    from fairramp.cli.render import Screen, count
    from fairramp.cli.tables import STDOUT, is_stream

    piped = output is None or output == STDOUT
    screen = Screen(json=json, quiet=quiet, to_stderr=piped)
    options = {
        "dialect": dialect,
        "table": table,
        "view": view,
        "id": id,
        "key_table": key_table,
        "key_column": key_column,
        "decisions": decisions or None,
        "model": model,
        "column": column,
        "score_type": score_type,
        "missing": missing,
        "prefix": prefix,
        "score": score,
        "group": group or None,
        "strata": strata or None,
    }
    given = {name: value for name, value in options.items() if value is not None}
    known = _load_rule(rule)
    exporting.check(to, output, rule, given)
    if output is not None and not is_stream(output):
        _check_target(output)
    notes = exporting.export(known, to, output, given)
    form = {"sql": f"SQL for {dialect}", "onnx": "an ONNX model", "torch": "a torch program", "json": "JSON"}[to]
    where = "stdout" if piped else output
    screen.say(f"The rule for {count(len(known.groups), 'group')} as {form}, written to {where}.")
    screen.text()
    screen.text(f"rule: sha256 {known.fingerprint}")
    for note in notes:
        screen.say(note)
    screen.result(
        _stamp("export")
        | {
            "rule": rule,
            "to": to,
            "dialect": dialect,
            "output": "-" if output is None else _dash(output),
            "rule_fingerprint": known.fingerprint,
        }
    )


@app.command(sort_key=6)
def demo(
    folder: Annotated[str, Parameter(help="Where its files go.")] = "fairramp-demo",
    /,
) -> None:
    """Tell the whole story on real scores: audit, fit, decisions, frontier.

    For example:

    fairramp demo
    """
    from fairramp.cli.story import tell

    tell(folder)


# What the commands share ------------------------------------------------------------------------


def _stamp(command: str) -> dict[str, Any]:
    return {"command": command, "format": _JSON, "fairramp": __version__}


def _dash(path: str) -> str:
    """A path as the user typed it."""
    from fairramp.cli.tables import STDIN, STDOUT

    return "-" if path in (STDIN, STDOUT) else path


def _width(ramp_width: float | None, scale: str | None) -> float:
    """A ramp width as the library has it: for percentages, points are hundredths of a probability."""
    if scale != "percent":
        return 0.01 if ramp_width is None else ramp_width
    return 0.01 if ramp_width is None else ramp_width / 100


def _plain_delimiter(delimiter: str) -> str:
    return {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)


def _output_delimiter(job: "Job", delimiter: str | None, decimal: str | None) -> str:
    """Of CSV outputs: as in DATA if that is CSV, or else as asked for."""
    if job.source.format == "csv" and job.source.delimiter != "\t":
        return job.source.delimiter
    if job.source.format != "csv" and delimiter is not None:
        return _plain_delimiter(delimiter)
    return ";" if decimal == "," or job.score.comma else ","


def _number_or_word(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text.strip()


def _load_rule(path: str) -> "Rule":
    from fairramp.cli.tables import TableError, format_of
    from fairramp.exceptions import RuleFormatError
    from fairramp.rule import Rule

    try:
        return Rule.load(path)
    except RuleFormatError:
        if format_of(path) in ("json", None) and not path.lower().endswith((".xlsx", ".xls")):
            raise
        raise TableError(f"{path} is not a rule; the rule comes first: fairramp apply RULE DATA") from None
    except FileNotFoundError:
        raise TableError(f"There is no rule {path}; make one with: fairramp fit") from None
    except OSError as error:
        raise TableError(f"Cannot read the rule {path}: {error.strerror}.") from None


def _columns(
    rule: "Rule | None",
    score: str | None,
    group: list[str] | None,
    *,
    label: str | None = None,
    weight: str | None = None,
    strata: list[str] | None = None,
    id: str | None = None,
) -> "Columns":
    """The columns to use: as named, or else as the rule remembers them."""
    from fairramp.cli.engine import Columns
    from fairramp.cli.tables import TableError

    record = rule.record if rule else None
    score = score or (record.score_column if record else None)
    names = tuple(group or ()) or (rule.group_columns if rule else None)
    within = tuple(strata or ()) or (rule.strata_columns if rule else None) or ()
    if score is None or not names:
        option = "--score" if score is None else "--group"
        raise TableError(f"{option} is missing: name the column that holds the {option[2:]}s.")
    if rule and within and rule.criterion == "parity":
        raise TableError("--strata are not known to this rule, which equalises over all rows; leave them out.")
    return Columns(score, names, within, label, weight, id)


@contextlib.contextmanager
def _opened(
    screen: Any,
    data: str,
    columns: "Columns",
    scale: str | None,
    decimal: str | None,
    delimiter: str | None,
    rule: "Rule | None" = None,
    positive: str | None = None,
) -> "Iterator[tuple[DuckDBPyConnection, Job]]":
    """DATA, read through once and found sound."""
    from fairramp.cli.engine import prepare
    from fairramp.cli.tables import TableError, connect, open_table

    if delimiter is not None:
        delimiter = _plain_delimiter(delimiter)
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise TableError(f"--delimiter must be one character, or the word tab, got {delimiter!r}.")
    if rule is not None and scale not in (None, rule.scale):
        raise TableError(
            f"--scale {scale} does not fit the rule, which was fitted on the scale {rule.scale!r}; leave it out "
            "and pass scores of that scale."
        )
    if positive is not None and columns.label is None:
        raise TableError("--positive needs --label, the column with the true outcomes.")
    scale = scale or (rule.scale if rule else "probability")
    with connect() as connection, open_table(connection, data, delimiter=delimiter) as source:
        with screen.progress(connection, "Looking at the rows"):
            job = prepare(
                source,
                columns,
                scale=scale,
                decimal=decimal,
                positive=positive,
                rule=rule,
            )
        if scale == "percent" and job.rows and (job.score.highest or 0.0) <= 1:
            screen.warn(
                f"no score of {job.source.shown} is above 1 percent; are they probabilities, where 0.6 means 60 "
                "percent?"
            )
        yield connection, job


def _need_rows(job: "Job") -> None:
    from fairramp.cli.tables import TableError

    if not job.rows:
        raise TableError(f"{job.source.shown} has a header and no rows.")


def _check_target(path: str) -> None:
    """Refuse a bad place before the work, not after it."""
    from fairramp.cli.tables import TableError

    folder = Path(path).resolve().parent
    if os.path.isdir(path):
        raise TableError(f"Cannot write {path}: it is a folder.")
    if not folder.is_dir():
        raise TableError(f"Cannot write {path}: the folder {folder} does not exist.")
    if not os.access(folder, os.W_OK):
        raise TableError(f"Cannot write {path}: the folder {folder} is write-protected.")


def _check_output(path: str, *, pictures: bool = False) -> None:
    from fairramp.cli.tables import is_stream, writable_format

    if is_stream(path):
        return
    if not (pictures and path.lower().endswith(_PICTURES)):
        writable_format(path)
    _check_target(path)


def _drawing(
    screen: Any, id: str | None, key_file: str | None, seed: int | None, probability_only: bool
) -> tuple[str | None, bool]:
    """The key to draw with, if decisions are wanted, and whether rows are drawn by number."""
    from fairramp.cli.engine import seed_key
    from fairramp.cli.secret import ENVIRONMENT, read_key
    from fairramp.cli.tables import TableError

    if probability_only:
        if seed is not None or key_file is not None:
            raise TableError("--probability-only draws nothing; leave out --key-file and --random-seed.")
        return None, False
    if seed is not None:
        if id is not None or key_file is not None:
            raise TableError("Pass either --id and --key-file, or --random-seed, not both.")
        if seed < 0:
            raise TableError(f"--random-seed must be a whole number from 0 on, got {seed}.")
        return seed_key(seed), True
    if id is None:
        if key_file is not None:
            raise TableError("--key-file needs --id, the column that says who each row is.")
        return None, False
    key, warning = read_key(key_file)
    if key is None:
        raise TableError(
            f"--id needs the secret key: pass --key-file FILE (fairramp keygen makes one) or set {ENVIRONMENT}."
        )
    if warning:
        screen.warn(warning)
    return key, False


def _named(columns: "Columns") -> dict[str, Any]:
    return {
        "score_column": columns.score,
        "group_columns": list(columns.group),
        "strata_columns": list(columns.strata) or None,
    }


def _rows_of(rule: "Rule") -> list[dict[str, Any]]:
    """A rule's table with labels as JSON has them."""
    rows = list(rule.table().rows())
    return [{k: list(v) if isinstance(v, tuple) else v for k, v in row.items()} for row in rows]


def _show_audit(screen: Any, found: "Audit", columns: "Columns", data: str, *, decided: bool) -> None:
    from fairramp.cli.render import count
    from fairramp.cli.tables import STDIN
    from fairramp.table import Table

    by = " / ".join([*columns.strata, *columns.group])
    screen.heading(f"{count(sum(found.rows), 'row')} of {'stdin' if data == STDIN else data}, by {by}")
    screen.text()
    screen.table(found.table())
    if found.selection.accuracy is not None:
        screen.text()
        screen.table(found.errors())
    screen.text()
    gaps = found.gaps()
    screen.table(Table(gaps.to_dict() | {"decisions": ["as given"]}) if decided else gaps)
    screen.text()
    last = f"limits at {found.confidence:.0%} confidence"
    if found.randomised is not None:
        last += f"; {found.randomised:.2%} of the decisions are drawn"
    screen.text(last)


def _in_order(arrays: dict[str, Any]) -> dict[str, Any]:
    """Rows sorted, so that the same file gives the same bytes whatever order the threads read it in."""
    import numpy as np

    within = arrays["strata"]
    keys = [arrays["sample_weight"], arrays["labels"], arrays["scores"]]
    keys += [None if within is None else within.values, arrays["groups"].values]
    order = np.lexsort([key for key in keys if key is not None])
    return {name: _taken(values, order) for name, values in arrays.items()}


def _taken(values: Any, order: Any) -> Any:
    from dataclasses import replace

    from fairramp.groups import Codes

    if isinstance(values, Codes):
        return replace(values, values=values.values[order])
    return None if values is None else values[order]


def _plain(text: str) -> str:
    """Without the marks that keep names apart from the words around them."""
    return "".join(c for c in text if c not in "\u2068\u2069").replace("\u00a0", " ")


def _write_stream(path: str, text: str) -> None:
    from fairramp.cli.tables import STDOUT

    if path == STDOUT:
        sys.stdout.write(text)
    else:
        Path(path).write_text(text, encoding="utf-8")


#: Pictures that a frontier can be written as.
_PICTURES = (".svg", ".png", ".html")


def _write_picture(chart: Any, path: str) -> None:
    from fairramp.cli.tables import replacing

    kind = path.lower().rpartition(".")[2]
    with replacing(path) as temporary:
        chart.save(temporary, format=kind, **({"inline": True} if kind == "html" else {}))


def _write_table(table: Any, path: str) -> None:
    """A small table as a file, through the same door as the large ones."""
    from fairramp.cli.tables import connect, write

    names = table.columns
    with connect() as connection:
        values = ", ".join(
            "(" + ", ".join(f"CAST('{value!r}' AS DOUBLE)" for value in row.values()) + ")"
            for row in table.rows()
        )
        aliases = ", ".join(f"c{i}" for i in range(len(names)))
        write(connection, f"SELECT * FROM (VALUES {values}) AS t({aliases})", names, path)
