"""`fairramp frontier`: accuracy against the gap."""

from typing import Annotated

from cyclopts import Parameter

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
from fairramp.cli.render import STDOUT, Screen


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
    from fairramp.cli import library, outputs, texts
    from fairramp.measure.frontier import frontier as trace

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    if output is not None:
        outputs.check_output(output, data, {"--validation": validation}, table=True, pictures=True)
    columns = library.columns_of(None, score, group)
    # The rows to fit, then those to measure on.
    (scores, groups, labels, weights), *others = [
        [arrays[name] for name in ("scores", "groups", "labels", "sample_weight")]
        for _, arrays in (
            library.read(
                screen,
                file,
                columns,
                lambda job: texts.warn_direction(screen, job, scale),
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
        ramp_width=library.width_of(ramp_width, scale),
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
    screen.heading(curve.heading)
    screen.say(f"{curve.own}\n")
    screen.table(table, more="in a file, with -o frontier.csv")
    screen.say(
        "\nEach row has the most accurate rates for its gap (fit with --target-rate accuracy).",
        *([] if output in (None, STDOUT) else [f"Saved to {output}."]),
    )
    screen.result(
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
