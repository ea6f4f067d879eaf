"""Commands that take a rule: `fairramp apply`, `check`, `show`, `report` and `export`."""

from typing import Annotated, Literal

from cyclopts import Parameter

from fairramp.cli.options import (
    OUTPUT,
    All,
    Confidence,
    Data,
    Decimal,
    Delimiter,
    Group,
    Json,
    Label,
    Names,
    Positive,
    Quiet,
    RuleFile,
    RuleScale,
    Scale,
    Score,
    Strata,
    Weight,
)
from fairramp.cli.render import STDOUT, Screen, count, refuse_if, spoken


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
    every: All = False,
    score: Score = None,
    group: Group = None,
    strata: Strata = None,
    scale: RuleScale = None,
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
    from fairramp.cli import engine, outputs, showing

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    known = engine.load_rule(rule, "apply")
    outputs.check_output(output, data, {"the rule": rule, "the key file": key_file}, table=True)
    key, seeded = engine.drawing(screen, id, key_file, random_seed, probability_only)
    columns = engine.columns_of(known, score, group, strata, id if key and not seeded else None)
    added = [f"{prefix}probability", *([f"{prefix}decision"] if key else [])]
    with engine.opened(
        screen,
        data,
        columns,
        scale=scale,
        decimal=decimal,
        delimiter=delimiter,
        rule=known,
        may_be_empty=True,
    ) as job:
        for name in added:
            refuse_if(
                name in job.source.names,
                "{where} has a column {name!r} already; pass --prefix new_ or rename it",
                where=job.source.shown,
                name=name,
            )
        if job.rows:
            showing.warn_groups(screen, job, known)
        else:
            screen.warn(f"{job.source.shown} has a header and no rows, and so has the output.")
        connection = job.source.connection
        if columns.id is not None:
            with screen.progress(connection, "Looking for duplicate ids"):
                showing.warn_duplicates(screen, job)
        with screen.progress(connection, "Deciding"):
            groups = engine.decide_all(job, known, key, seeded=seeded)
        with screen.progress(connection, "Writing"):
            outputs.write(
                connection,
                engine.output_query(job, decided=key is not None, target=output, comma=decimal == ","),
                [*job.source.names, *added],
                output,
                delimiter=engine.output_delimiter(job, delimiter, decimal),
                mark=job.source.mark,
                empty=not job.rows,
            )
    screen.say(f"{' and '.join(added)} added to {count(job.rows, 'row')}, written to {spoken(output)}.")
    if job.rows:
        screen.text()
        screen.table(engine.decided_table(known, groups, decided=key is not None), every=every, more="with --all")
    if key is None and not probability_only:
        screen.say(
            f"\nNo decisions were drawn: {added[0]} is the chance of a yes. For decisions pass --id COLUMN "
            "--key-file FILE, and the same person always gets the same answer."
        )
    elif seeded:
        screen.say(
            "\nDrawn by row number: the same file gives the same answers, but a person in another row may not."
        )
    screen.result("apply", rule=rule, data=data, output=output, columns=added, rows=job.rows, groups=groups)


def check(
    rule: RuleFile,
    data: Data,
    /,
    *,
    score: Score = None,
    group: Group = None,
    weight: Weight = None,
    strata: Strata = None,
    scale: Scale = None,
    confidence: Confidence = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Ask new rows whether the gap has left what a rule's certificate promised.

    The exit code is 1 if it has, and 0 if it has not or if the rows do not tell. Labels are not needed.

    For example:

    fairramp check rule.json scores.csv
    """
    from fairramp.cli import engine, showing
    from fairramp.measure.certificate import certifiable
    from fairramp.measure.drift import check as compare

    screen = Screen(json=json, quiet=quiet)
    known = engine.load_rule(rule, "check")
    certifiable(known)
    columns = engine.columns_of(known, score, group, strata)
    job, arrays = engine.read(
        screen,
        data,
        columns,
        lambda job: showing.warn_groups(screen, job, known, compared=True),
        ordered=True,
        scale=scale,
        decimal=decimal,
        delimiter=delimiter,
        rule=known,
        weight=weight,
    )
    found = compare(
        known,
        arrays["scores"],
        arrays["groups"],
        strata=arrays["strata"],
        sample_weight=arrays["sample_weight"],
        confidence=confidence,
    )
    code = showing.exit_code(found.verdict, sound=found.is_sound)
    showing.show_heading(screen, found.rows, columns, data)
    screen.table(found.table())
    if left_out := job.rows - sum(found.rows):
        screen.say(f"\n{count(left_out, 'row')} left out: of groups that the fit did not see, or without weight.")
    screen.text(f"\n{found!r}\n")
    word = showing.WORDS[found.verdict]
    if quiet and code:  # the reason for the exit code
        screen.warn(f"check {word.lower()}: {found.sentence()}")
    else:
        screen.say(f"Check {word}: {found.sentence()}")
    screen.result("check", rule=rule, data=data, **engine.named(columns), **showing.checked(found))
    return code


def show(
    rule: RuleFile,
    /,
    *,
    every: All = False,
    confidence: Confidence = 0.95,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show a saved rule: columns, thresholds, rates before and after, and what is certified.

    For example:

    fairramp show rule.json
    """
    from fairramp.cli import engine, showing

    screen = Screen(json=json, quiet=quiet)
    known = engine.load_rule(rule)
    found = showing.certificate_of(known, confidence)
    showing.show(screen, known, found, every=every)
    screen.result("show", rule=rule, **showing.content(known, found))


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
    scale: RuleScale = None,
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
    from fairramp.cli import engine, outputs, showing

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    known = engine.load_rule(rule, "report")
    refuse_if(
        not outputs.is_stream(output) and not output.lower().endswith((".html", ".htm")),
        "A report is a web page: end {output} in .html",
        output=output,
    )
    outputs.check_output(output, data, {"the rule": rule})
    columns = engine.columns_of(known, score, group, strata)
    _, arrays = engine.read(
        screen,
        data,
        columns,
        lambda job: showing.warn_groups(screen, job, known),
        ordered=True,
        scale=scale,
        decimal=decimal,
        delimiter=delimiter,
        rule=known,
        label=label,
        positive=positive,
        weight=weight,
    )
    made = known.report(**arrays, title=title, confidence=confidence)
    outputs.write_text(output, made.html, "the report")
    content, names = made.content, engine.named(columns)
    before, after = (text[:1].upper() + text[1:] for text in (content.sentence, content.chosen.sentence))
    notes = [f"Before: {before}", f"After: {after}\n", content.drift, *content.notes]
    screen.say(*(showing.plain(note) for note in notes if note))
    screen.warn(showing.plain(content.drift or ""), when=quiet and content.is_kept is False)
    screen.say(f"\nSaved to {spoken(output)}; open it in a browser, no network is needed.")
    screen.result("report", data=data, rule=rule, **names, output=output, report=content.to_dict())


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
    from fairramp.cli import engine, exporting

    target = output or STDOUT
    screen = Screen(json=json, quiet=quiet, to_stderr=target == STDOUT)
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
    known = engine.load_rule(rule)
    exporting.check(to, output, rule, given)
    notes = exporting.export(known, to, output, given)
    form = {"sql": f"SQL for {dialect}", "onnx": "an ONNX model", "torch": "a torch program", "json": "JSON"}[to]
    screen.say(
        f"The rule for {count(len(known.groups), 'group')} as {form}, written to {spoken(target)}.\n",
        f"fingerprint {known.fingerprint}",
        *notes,
    )
    screen.result("export", rule=rule, to=to, dialect=dialect, output=target, rule_fingerprint=known.fingerprint)
