"""The commands, thin: read, call the library, show, write.

Imports of anything heavy stand inside the commands.
"""

import sys
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from fairramp._version import __version__
from fairramp.cli import steps
from fairramp.cli.options import (
    OUTPUT,
    Confidence,
    Cutoff,
    Data,
    Decimal,
    Delimiter,
    Group,
    Json,
    Label,
    Names,
    Positive,
    Quiet,
    RampWidth,
    RuleFile,
    Scale,
    Score,
    Strata,
    Weight,
)

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


@app.command(sort_key=1)
def audit(
    data: Data,
    /,
    *,
    score: Score = None,
    group: Group = None,
    label: Label = None,
    positive: Positive = None,
    weight: Weight = None,
    strata: Strata = None,
    rule: Annotated[str | None, Parameter(help="Audit what this rule makes of the scores, too.")] = None,
    fail_above: Annotated[
        float | None,
        Parameter(help="Exit with 1 if the lower confidence limit of the gap is above this."),
    ] = None,
    fail_unless_below: Annotated[
        float | None,
        Parameter(help="Exit with 1 unless the upper confidence limit of the gap is at most this."),
    ] = None,
    cutoff: Cutoff = None,
    scale: Scale = None,
    confidence: Confidence = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
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
    known = steps.load_rule(rule) if rule is not None else None
    columns = steps.columns_of(known, score, group, label=label, weight=weight, strata=strata)
    with steps.opened(screen, data, columns, scale, decimal, delimiter, known, positive=positive) as (_, job):
        steps.need_rows(job)
        guards.warn_groups(screen, job, known, compared=True)
        guards.warn_direction(screen, job, known.scale if known else scale)
        with screen.progress(job.source.connection, "Reading"):
            arrays = job.arrays()
    found = measure(**arrays, rule=known, confidence=confidence, cutoff=cutoff, scale=None if known else scale)
    decided = known is None and guards.is_decided(arrays["scores"])
    steps.show_audit(screen, found, columns, data, decided=decided)
    gate = None
    if fail_above is not None or fail_unless_below is not None:
        gate = guards.judge(screen, found, fail_above, fail_unless_below, decided=decided)
    screen.result(
        steps.stamp("audit") | {"data": steps.dash(data), **steps.named(columns), **found.to_dict(), "gate": gate}
    )
    return 1 if gate and gate["failed"] else 0


@app.command(sort_key=2)
def fit(
    data: Data,
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
    output: Annotated[str, Parameter(name=OUTPUT, help="Where the rule goes: a JSON file, or - for stdout.")],
    max_gap: Annotated[
        float, Parameter(help="Largest allowed difference between two groups' selection rates.")
    ] = 0.0,
    label: Label = None,
    positive: Positive = None,
    weight: Weight = None,
    strata: Strata = None,
    target_rate: Annotated[
        str,
        Parameter(
            help="Where the rates meet: optimal, a number, or with --label accuracy or base_rate.",
        ),
    ] = "optimal",
    ramp_width: RampWidth = None,
    ramp: Annotated[
        Literal["centered", "paper"], Parameter(help="Whether it is centered on the threshold or starts there.")
    ] = "centered",
    unseen_group: Annotated[
        Literal["error", "pooled", "original"],
        Parameter(help="A group that the fit never saw: refuse, common threshold, or classifier's decision."),
    ] = "error",
    cutoff: Cutoff = None,
    scale: Scale = None,
    confidence: Confidence = 0.95,
    date: Annotated[str | None, Parameter(help="Kept in the rule's record as you write it.")] = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn one threshold per group from scores and groups; labels are not needed.

    A higher score means yes, the favourable answer. If a high score is bad (a risk), pass 1 - score.

    For example:

    fairramp fit scores.csv --score score --group sex --max-gap 0.02 -o rule.json
    """
    from fairramp.cli import engine, guards, showing
    from fairramp.cli.render import Screen, count, typed
    from fairramp.cli.tables import STDIN, STDOUT
    from fairramp.groups import show_label
    from fairramp.scales import SCALES

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    if output != STDOUT:
        steps.check_target(output)
        guards.keep_inputs(output, data)
        guards.keep_others(output)
    columns = steps.columns_of(None, score, group, label=label, weight=weight, strata=strata)
    with steps.opened(screen, data, columns, scale, decimal, delimiter, positive=positive) as (connection, job):
        steps.need_rows(job)
        guards.warn_direction(screen, job, scale)
        with screen.progress(connection, "Fitting"):
            found = engine.fit(
                job,
                max_gap=max_gap,
                ramp_width=steps.width_of(ramp_width, scale),
                ramp=ramp,
                target_rate=steps.number_or_word(target_rate),
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
    if certificate.gap > found.max_gap + steps.WIDE and len(found.groups) > 1:
        least = min(range(len(found.groups)), key=lambda i: record.rows[i])
        screen.say(f"Widest for group {show_label(found.groups[least])} with {count(record.rows[least], 'row')}.")
    screen.text()
    shown = "stdout" if output == STDOUT else output
    screen.say(f"Saved to {shown}. Next (replace ID by the name of your id column):")
    screen.text(typed(["keygen", "key.txt"]))
    saved, rows = "rule.json" if output == STDOUT else output, "DATA" if data == STDIN else data
    screen.text(typed(["apply", saved, rows, "-o", "decisions.csv", "--id", "ID", "--key-file", "key.txt"]))
    screen.result(
        steps.stamp("fit")
        | {
            "data": steps.dash(data),
            "rule": steps.dash(output),
            **steps.named(columns),
            "rows": job.rows,
            "groups": steps.rows_of(found),
            "max_gap": found.max_gap,
            "gap_before": record.gap_before,
            "gap_after": record.gap_after,
            "accuracy_before": accuracy[0] if accuracy else None,
            "accuracy_after": accuracy[1] if accuracy else None,
            "certificate": showing.certified(certificate),
            "rule_fingerprint": found.fingerprint,
            "data_fingerprint": record.fingerprint,
        }
    )


@app.command(sort_key=4)
def apply(
    rule: RuleFile,
    data: Data,
    /,
    *,
    output: Annotated[
        str, Parameter(name=OUTPUT, help="Where the rows go: .csv, .tsv, .jsonl, .parquet, or - for stdout.")
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
    score: Score = None,
    group: Group = None,
    strata: Strata = None,
    scale: Scale = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
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
    known = steps.load_rule(rule)
    steps.check_output(output)
    guards.keep_inputs(output, data, {"the rule": rule, "the key file": key_file})
    key, seeded = steps.drawing(screen, id, key_file, random_seed, probability_only)
    columns = steps.columns_of(known, score, group, strata=strata, id=id if key and not seeded else None)
    added = [f"{prefix}probability", *([f"{prefix}decision"] if key else [])]
    with steps.opened(screen, data, columns, scale, decimal, delimiter, known) as (connection, job):
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
                delimiter=steps.output_delimiter(job, delimiter, decimal),
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
        steps.stamp("apply")
        | {
            "rule": rule,
            "data": steps.dash(data),
            "output": steps.dash(output),
            "columns": added,
            "rows": job.rows,
            **summary.to_dict(),
        }
    )


@app.command(sort_key=5)
def frontier(
    data: Data,
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
        Parameter(name=OUTPUT, help="Also write it: .csv, .tsv, .jsonl, .parquet, .svg, .png or .html."),
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
    weight: Weight = None,
    positive: Positive = None,
    ramp_width: RampWidth = None,
    cutoff: Cutoff = None,
    scale: Scale = None,
    confidence: Confidence = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
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
        steps.check_output(output, pictures=True)
        guards.keep_inputs(output, data, {"--validation": validation})
    columns = steps.columns_of(None, score, group, label=label, weight=weight)

    def rows(file: str) -> tuple[Any, Any, Any, Any]:
        with steps.opened(screen, file, columns, scale, decimal, delimiter, positive=positive) as (
            connection,
            job,
        ):
            steps.need_rows(job)
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
        ramp_width=steps.width_of(ramp_width, scale),
        cutoff=cutoff,
        scale=scale or "probability",
        sample_weight=weights,
        confidence=confidence,
    )
    table = curve.table()
    if output is not None and output.lower().endswith(steps.PICTURES):
        steps.write_picture(curve.plot(), output)
    elif output is not None:
        steps.write_table(table, output)
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
        steps.stamp("frontier")
        | {
            "data": steps.dash(data),
            **steps.named(columns),
            "output": output and steps.dash(output),
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
    quiet: Quiet = False,
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
def show(
    rule: RuleFile,
    /,
    *,
    every: Annotated[
        bool,
        Parameter(name="--all", help="Show all groups, also if they are many.", negative="", show_default=False),
    ] = False,
    confidence: Confidence = 0.95,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show a saved rule: columns, thresholds, rates before and after, and what is certified.

    For example:

    fairramp show rule.json
    """
    from fairramp.cli import showing
    from fairramp.cli.render import Screen

    screen = Screen(json=json, quiet=quiet)
    known = steps.load_rule(rule)
    found = showing.certificate_of(known, confidence)
    showing.show(screen, known, found, every=every)
    screen.result(steps.stamp("show") | {"rule": steps.dash(rule), **showing.content(known, found)})


@app.command(sort_key=8)
def report(
    rule: RuleFile,
    data: Data,
    /,
    *,
    output: Annotated[str, Parameter(name=OUTPUT, help="Where the page goes: an HTML file, or - for stdout.")],
    title: Annotated[str | None, Parameter(help="Heading of the page.")] = None,
    score: Score = None,
    group: Group = None,
    label: Label = None,
    positive: Positive = None,
    weight: Weight = None,
    strata: Strata = None,
    scale: Scale = None,
    confidence: Confidence = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
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
    known = steps.load_rule(rule)
    if not is_stream(output):
        if not output.lower().endswith((".html", ".htm")):
            raise TableError(f"A report is a web page: end {output} in .html.")
        steps.check_target(output)
        guards.keep_inputs(output, data, {"the rule": rule})
    columns = steps.columns_of(known, score, group, label=label, weight=weight, strata=strata)
    with steps.opened(screen, data, columns, scale, decimal, delimiter, known, positive=positive) as (
        connection,
        job,
    ):
        steps.need_rows(job)
        guards.warn_groups(screen, job, known)
        with screen.progress(connection, "Reading"):
            arrays = steps.in_order(job.arrays())
    made = known.report(**arrays, title=title, confidence=confidence)
    page = made.html
    if is_stream(output):
        steps.write_stream(output, page)
    else:
        made.save(output)
    content = made.content
    before, after = (text[:1].upper() + text[1:] for text in (content.sentence, content.chosen.sentence))
    for word, text in (("Before", before), ("After", after)):
        screen.say(f"{word}: {steps.plain(text)}")
    screen.text()
    for note in content.notes:
        screen.say(steps.plain(note))
    screen.say(
        f"\nSaved to {'stdout' if output == STDOUT else output}; open it in a browser, no network is needed."
    )
    screen.result(
        steps.stamp("report")
        | {
            "data": steps.dash(data),
            "rule": rule,
            **steps.named(columns),
            "output": steps.dash(output),
            "report": content.to_dict(),
        }
    )


@app.command(sort_key=9)
def export(
    rule: RuleFile,
    /,
    *,
    to: Annotated[str, Parameter(help="The form: sql, onnx, torch, or json, the rule without its record.")],
    dialect: Annotated[
        str | None,
        Parameter(help="Which SQL: duckdb, postgres, spark, snowflake, bigquery or sqlite."),
    ] = None,
    output: Annotated[
        str | None,
        Parameter(
            name=OUTPUT, help="Where it goes; sql and json go to stdout unless given, and what is said to stderr."
        ),
    ] = None,
    table: Annotated[str | None, Parameter(help="SQL: a whole SELECT from this table.")] = None,
    view: Annotated[str | None, Parameter(help="SQL: CREATE VIEW with this name, over --table.")] = None,
    replace: Annotated[
        bool, Parameter(help="SQL: let it replace an earlier view.", negative="", show_default=False)
    ] = False,
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
    group: Annotated[Names, Parameter(help="Column or input with the group; as in the fit.")] = None,
    strata: Annotated[Names, Parameter(help="Column or input with the stratum; as in the fit.")] = None,
    json: Json = False,
    quiet: Quiet = False,
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
        "replace": replace or None,
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
    known = steps.load_rule(rule)
    exporting.check(to, output, rule, given)
    if output is not None and not is_stream(output):
        steps.check_target(output)
    notes = exporting.export(known, to, output, given)
    form = {"sql": f"SQL for {dialect}", "onnx": "an ONNX model", "torch": "a torch program", "json": "JSON"}[to]
    where = "stdout" if piped else output
    screen.say(f"The rule for {count(len(known.groups), 'group')} as {form}, written to {where}.")
    screen.text()
    screen.text(f"rule: sha256 {known.fingerprint}")
    for note in notes:
        screen.say(note)
    screen.result(
        steps.stamp("export")
        | {
            "rule": rule,
            "to": to,
            "dialect": dialect,
            "output": "-" if output is None else steps.dash(output),
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
