"""Commands that take rows: `fairramp audit`, `fairramp fit` and `fairramp frontier`."""

from typing import Annotated, Literal

from cyclopts import Parameter

from fairramp.cli.options import (
    OUTPUT,
    All,
    Confidence,
    Cutoff,
    Data,
    Decimal,
    Delimiter,
    Group,
    Json,
    Label,
    NeededGroup,
    NeededScore,
    Positive,
    Quiet,
    RampWidth,
    Scale,
    Score,
    Strata,
    Weight,
)
from fairramp.cli.render import STDIN, STDOUT, Screen, spoken, typed


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
        Parameter(help="Exit with 1 if the gap is shown to be above this: its lower confidence limit is."),
    ] = None,
    fail_unless_below: Annotated[
        float | None,
        Parameter(
            help="Exit with 0 only if the gap is shown to be at most this: its upper confidence limit is; with 3 "
            "if neither that nor the contrary is shown."
        ),
    ] = None,
    every: All = False,
    cutoff: Cutoff = None,
    scale: Annotated[
        Scale,
        Parameter(
            help="What the scores are: from 0 to 1 (the default), 0 to 100, -1 to 1, or any number; with "
            "--rule, as in its fit.",
        ),
    ] = None,
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
    from fairramp.cli import engine, showing
    from fairramp.core.checks import check_number
    from fairramp.measure.audit import audit as measure

    screen = Screen(json=json, quiet=quiet)
    limits = {"fail_above": fail_above, "fail_unless_below": fail_unless_below}
    gates = {name: limit for name, limit in limits.items() if limit is not None}
    for name, limit in gates.items():
        check_number(name, limit, 0.0, 1.0)
    known = engine.load_rule(rule) if rule is not None else None
    columns = engine.columns_of(known, score, group, strata)
    _, arrays = engine.read(
        screen,
        data,
        columns,
        lambda job: showing.warn_groups(screen, job, known, compared=True),
        lambda job: showing.warn_direction(screen, job, known.scale if known else scale),
        scale=scale,
        decimal=decimal,
        delimiter=delimiter,
        rule=known,
        label=label,
        positive=positive,
        weight=weight,
    )
    found = measure(**arrays, rule=known, confidence=confidence, cutoff=cutoff, scale=None if known else scale)
    decided = known is None and bool(((arrays["scores"] == 0) | (arrays["scores"] == 1)).all())
    showing.show_audit(screen, found, columns, data, decided=decided, every=every)
    gate, code = (
        showing.judge(screen, found, fail_above, fail_unless_below, decided=decided) if gates else (None, 0)
    )
    screen.result("audit", data=data, **engine.named(columns), **found.to_dict(), gate=gate)
    return code


def fit(
    data: Data,
    /,
    *,
    score: NeededScore,
    group: NeededGroup,
    output: Annotated[str, Parameter(name=OUTPUT, help="Where the rule goes: a JSON file, or - for stdout.")],
    max_gap: Annotated[
        float, Parameter(help="Largest allowed difference between two groups' selection rates; 0.02 is 2 points.")
    ] = 0.0,
    label: Label = None,
    positive: Positive = None,
    weight: Weight = None,
    strata: Strata = None,
    target_rate: Annotated[
        float | str,
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
    from fairramp.cli import engine, outputs, showing

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    outputs.check_output(output, data)
    earlier = outputs.keep_others(output)
    columns = engine.columns_of(None, score, group, strata)
    with engine.opened(
        screen,
        data,
        columns,
        scale=scale,
        decimal=decimal,
        delimiter=delimiter,
        label=label,
        positive=positive,
        weight=weight,
    ) as job:
        showing.warn_direction(screen, job, scale)
        with screen.progress(job.source.connection, "Fitting"):
            found = engine.fit(
                job,
                max_gap=max_gap,
                ramp_width=engine.width_of(ramp_width, scale),
                ramp=ramp,
                target_rate=target_rate,
                cutoff=cutoff,
                scale=scale or "probability",
                unseen_group=unseen_group,
                date=date,
            )
        certificate = found.certificate(confidence)
        before = after = None
        accuracy = "accuracy: unknown without --label; the rule itself needed no labels"
        if label is not None:
            with screen.progress(job.source.connection, "Measuring"):
                before, after = engine.accuracy(job, found)
            accuracy = f"accuracy on these rows: {before:.2%} before, {after:.2%} after"
    outputs.write_text(output, found.to_json(), "the rule")
    if earlier is not None and earlier != found:
        screen.note(f"{output} replaced an earlier rule, fingerprint {earlier.fingerprint}")

    record = found.record
    assert record is not None
    screen.heading(f"{found.heading}\n")
    saved = "rule.json" if output == STDOUT else output
    screen.table(found.table(), more=f"with:{typed(['show', saved, '--all'], ' ')}")
    screen.say(
        *(f"\n{note}" for note in found.notes),
        f"\na higher score means yes; if a high score is bad (a risk), pass {showing.turned(scale)}",
        f"gap on these rows: {record.gap_before:.4f} before, {record.gap_after:.4f} after, in expectation",
        f"{accuracy}\n",
    )
    showing.show_certificate(screen, found, certificate)
    screen.say(f"\nSaved to {spoken(output)}. Next (replace ID by the name of your id column):")
    decide = ["apply", saved, "DATA" if data == STDIN else data]
    screen.text(
        typed(["keygen", "key.txt"]),
        typed([*decide, "-o", "decisions.csv", "--id", "ID", "--key-file", "key.txt"]),
    )
    screen.result(
        "fit",
        data=data,
        rule=output,
        **engine.named(columns),
        rows=job.rows,
        groups=list(found.table().rows()),
        max_gap=found.max_gap,
        gap_before=record.gap_before,
        gap_after=record.gap_after,
        accuracy_before=before,
        accuracy_after=after,
        certificate=showing.certified(certificate),
        rule_fingerprint=found.fingerprint,
        data_fingerprint=record.fingerprint,
    )


def frontier(
    data: Data,
    /,
    *,
    score: NeededScore,
    group: NeededGroup,
    label: Annotated[
        str, Parameter(help="Column with the true outcomes: 0 or 1, yes or no; yes is the good one.")
    ],
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
    from fairramp.cli import engine, outputs, showing
    from fairramp.measure.frontier import frontier as trace

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    if output is not None:
        outputs.check_output(output, data, {"--validation": validation}, table=True, pictures=True)
    columns = engine.columns_of(None, score, group)
    # The rows to fit, then those to measure on.
    (scores, groups, labels, weights), *others = [
        [arrays[name] for name in ("scores", "groups", "labels", "sample_weight")]
        for _, arrays in (
            engine.read(
                screen,
                file,
                columns,
                lambda job: showing.warn_direction(screen, job, scale),
                scale=scale,
                decimal=decimal,
                delimiter=delimiter,
                label=label,
                positive=positive,
                weight=weight,
            )
            for file in (data, validation)
            if file is not None
        )
    ]
    curve = trace(
        scores,
        groups,
        labels,
        validation=tuple(others[0]) if others else None,
        max_gaps=max_gap,
        ramp_width=engine.width_of(ramp_width, scale),
        cutoff=cutoff,
        scale=scale or "probability",
        sample_weight=weights,
        confidence=confidence,
    )
    table = curve.table()
    if output is not None and output.lower().endswith(outputs.PICTURES):
        outputs.write_picture(curve.plot(), output)
    elif output is not None:
        outputs.write_table(table, output)
    screen.heading(f"{curve.heading}\n")
    screen.table(table, more="in a file, with -o frontier.csv")
    screen.say(
        f"\n{curve.own}",
        "each point has the most accurate rates (fit with --target-rate accuracy)",
        *([] if output in (None, STDOUT) else [f"Saved to {output}."]),
    )
    screen.result(
        "frontier",
        data=data,
        **engine.named(columns),
        output=output,
        in_sample=curve.is_in_sample,
        own_gap=curve.own_gap,
        own_accuracy=curve.own_accuracy,
        confidence=curve.confidence,
        points=list(table.rows()),
    )
