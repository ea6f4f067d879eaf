"""`fairramp frontier`."""

from typing import Annotated, Any

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
    NeededGroup,
    NeededScore,
    Positive,
    Quiet,
    RampWidth,
    Scale,
    Weight,
)

__all__ = ["frontier"]


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
    from fairramp.cli import guards
    from fairramp.cli.render import Screen
    from fairramp.cli.tables import STDOUT
    from fairramp.measure.frontier import frontier as trace

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
    screen.table(table, more="in a file, with -o frontier.csv")
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
