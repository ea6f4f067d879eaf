"""`fairramp fit`."""

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from fairramp.cli import steps
from fairramp.cli.options import (
    OUTPUT,
    Confidence,
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

__all__ = ["fit"]


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
    from fairramp.cli.render import Screen, typed
    from fairramp.cli.tables import STDIN, STDOUT, check_target
    from fairramp.core.scales import SCALES

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    if output != STDOUT:
        check_target(output)
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
        earlier = guards.earlier_rule(output)
        found.save(output)
        if earlier is not None and earlier != found:
            screen.note(f"{output} replaced an earlier rule, fingerprint {earlier.fingerprint}")

    record = found.record
    assert record is not None
    screen.heading(repr(found).split("\n", 1)[0])
    screen.text()
    saved = "rule.json" if output == STDOUT else output
    screen.table(found.table(), more=f"with:{typed(['show', saved, '--all'], ' ')}")
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
    showing.show_way_out(screen, found, certificate)
    screen.text()
    shown = "stdout" if output == STDOUT else output
    screen.say(f"Saved to {shown}. Next (replace ID by the name of your id column):")
    screen.text(typed(["keygen", "key.txt"]))
    rows = "DATA" if data == STDIN else data
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
