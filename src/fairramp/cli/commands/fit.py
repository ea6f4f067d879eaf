"""`fairramp fit`: a rule from a file of scores."""

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
    small_groups: Annotated[
        Literal["alone", "borrow"],
        Parameter(help="Whether a group with few rows goes by these alone, or also by the other groups' scores."),
    ] = "alone",
    cutoff: Cutoff = None,
    scale: Scale = None,
    confidence: Annotated[
        float | None,
        Parameter(
            help="Keep --max-gap in the population with this confidence, such as 0.95; by default it holds on "
            "these rows alone."
        ),
    ] = None,
    confidence_limit: Annotated[
        Literal["estimated", "proven"], Parameter(help="Which limit --confidence is about.")
    ] = "estimated",
    date: Annotated[str | None, Parameter(help="Kept in the rule's record as you write it.")] = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn one threshold per group from scores and groups; labels are not needed.

    A higher score means yes, the favorable answer. If a high score is bad (a risk), pass 1 - score.

    For example:

    fairramp fit scores.csv --score score --group sex --max-gap 0.02 -o rule.json
    """
    from fairramp.cli import library, outputs, texts
    from fairramp.core.words import percent

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    outputs.check_output(output, data)
    earlier = outputs.keep_others(output)
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
        screen.note(f"{output} replaced an earlier rule, fingerprint {earlier.fingerprint}")

    record = found.record
    assert record is not None
    screen.heading(found.heading)
    screen.say(record.gaps, f"{accuracy}\n")
    saved = "rule.json" if output == STDOUT else output
    screen.table(found.table(), more=f"with:{typed(['show', saved, '--all'], ' ')}")
    screen.say(
        *(f"\n{note}" for note in found.notes),
        f"\nA higher score means yes. If a high score is bad (a risk), pass {texts.turned(scale)}.\n",
    )
    texts.show_certificate(screen, found, certificate)
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
        certificate=texts.certified(certificate),
        rule_fingerprint=found.fingerprint,
        data_fingerprint=record.fingerprint,
    )
