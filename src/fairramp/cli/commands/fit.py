"""`fairramp fit`: fit a rule to a file of scores."""

from dataclasses import asdict
from typing import Annotated, Literal

from cyclopts import Parameter

from fairramp.cli.options import (
    OUTPUT,
    Cutoff,
    Data,
    Decimal,
    Delimiter,
    Json,
    Label,
    NeededGroup,
    NeededScore,
    Positive,
    Quiet,
    RampWidth,
    Scale,
    Strata,
    Weight,
)
from fairramp.cli.render import STDIN, STDOUT, Screen, spoken, typed


def fit(
    data: Data,
    /,
    *,
    score: NeededScore,
    group: NeededGroup,
    output: Annotated[str, Parameter(name=OUTPUT, help="File for the rule (JSON), or - for stdout.")],
    max_gap: Annotated[
        float, Parameter(help="Largest allowed gap between two groups' selection rates; 0.02 means 2 points.")
    ] = 0.0,
    label: Label = None,
    positive: Positive = None,
    weight: Weight = None,
    strata: Strata = None,
    target_rate: Annotated[
        float | str,
        Parameter(
            help="Common selection rate: optimal, a number such as 0.2, or (with --label) accuracy or base_rate.",
        ),
    ] = "optimal",
    ramp_width: RampWidth = None,
    ramp: Annotated[
        Literal["centered", "paper"],
        Parameter(help="Whether the ramp is centered on the threshold or starts there (paper)."),
    ] = "centered",
    unseen_group: Annotated[
        Literal["error", "pooled", "original"],
        Parameter(
            help="For groups not in the fit rows: error, a common threshold (pooled), or the classifier's own "
            "decision (original).",
            show_choices=False,
        ),
    ] = "error",
    small_groups: Annotated[
        Literal["alone", "borrow"],
        Parameter(help="Fit small groups to their own rows alone, or borrow from the other groups' scores."),
    ] = "alone",
    cutoff: Cutoff = None,
    scale: Scale = None,
    confidence: Annotated[
        float | None,
        Parameter(
            help="Limit the gap in the population to --max-gap at this confidence level, such as 0.95; by "
            "default, --max-gap applies to the fit rows only."
        ),
    ] = None,
    confidence_limit: Annotated[
        Literal["estimated", "proven"],
        Parameter(help="Which limit on the gap in the population --confidence uses."),
    ] = "estimated",
    replace: Annotated[
        bool, Parameter(help="Replace the rule that OUTPUT already holds.", negative="", show_default=False)
    ] = False,
    date: Annotated[str | None, Parameter(help="Date to store in the rule's record, as typed.")] = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn one threshold per group that makes the groups' selection rates nearly equal; needs no labels.

    Higher scores must mean yes, the favorable decision. If a high score is bad (a risk), pass 1 - score instead.

    For example:

    fairramp fit scores.csv --score score --group sex --max-gap 0.02 -o rule.json
    """
    from fairramp.cli import library, outputs, texts
    from fairramp.core.words import percent

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    outputs.check_output(output, data)
    earlier = outputs.keep_others(output, replace=replace)
    columns = library.columns_of(None, score, group, strata)
    with library.opened(
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
        texts.warn_direction(screen, job, scale)
        with screen.progress(job.source.connection, "Fitting"):
            found = library.fit(
                job,
                max_gap=max_gap,
                ramp_width=library.width_of(ramp_width, scale),
                ramp=ramp,
                target_rate=target_rate,
                cutoff=cutoff,
                scale=scale or "probability",
                unseen_group=unseen_group,
                confidence=confidence,
                confidence_limit=confidence_limit,
                small_groups=small_groups,
                date=date,
            )
        certificate = found.certificate(confidence or 0.95)
        before = after = None
        accuracy = "Accuracy is unknown without --label; fitting needs no labels."
        if label is not None:
            with screen.progress(job.source.connection, "Measuring"):
                before, after = library.accuracy(job, found)
            accuracy = f"Accuracy on these rows: {percent(before)} before, {percent(after)} after."
    outputs.write_text(output, found.to_json(), "the rule")
    if earlier is not None and earlier != found:
        screen.note(f"Replaced an earlier rule in {output}, fingerprint {earlier.fingerprint}")

    record = found.record
    assert record is not None
    screen.heading(found.heading)
    screen.say(record.gaps, f"{accuracy}\n")
    saved = "rule.json" if output == STDOUT else output
    screen.table(found.table(), more=f"with:{typed(['show', saved, '--all'], ' ')}")
    screen.say(
        *(f"\n{note}" for note in found.notes),
        f"\nHigher scores mean yes; if a high score is bad (a risk), pass {texts.turned(scale)} instead.\n",
    )
    texts.show_certificate(screen, found, certificate)
    screen.say(f"\nSaved to {spoken(output)}. Next (replace ID with the name of your id column):")
    decide = ["apply", saved, "DATA" if data == STDIN else data]
    screen.text(
        typed(["keygen", "key.txt"]),
        typed([*decide, "-o", "decisions.csv", "--id", "ID", "--key-file", "key.txt"]),
    )
    screen.result(
        "fit",
        data=data,
        rule=output,
        **library.named(columns),
        rows=job.rows,
        groups=list(found.table().rows()),
        max_gap=max_gap,
        fit_gap=found.max_gap,
        asked=record.asked and asdict(record.asked),
        gap_before=record.gap_before,
        gap_after=record.gap_after,
        accuracy_before=before,
        accuracy_after=after,
        certificate=certificate.to_dict(),
        rule_fingerprint=found.fingerprint,
        data_fingerprint=record.fingerprint,
    )
