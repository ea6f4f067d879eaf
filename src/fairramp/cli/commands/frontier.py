"""`fairramp frontier`: accuracy for each allowed gap."""

from typing import Annotated, Any

from cyclopts import Parameter

from fairramp.cli.options import (
    LABEL,
    OUTPUT,
    Confidence,
    Costs,
    Criterion,
    Cutoff,
    Data,
    Decimal,
    Delimiter,
    FitClassScore,
    FitScore,
    FrontierTarget,
    Json,
    LowerIsBetter,
    NeededGroup,
    Positive,
    Quiet,
    RampWidth,
    Scale,
    Sheet,
    SkipInvalid,
    Weight,
)
from fairramp.cli.render import STDOUT, Screen


def frontier(
    data: Data,
    /,
    *,
    score: FitScore = None,
    class_score: FitClassScore = None,
    group: NeededGroup,
    label: Annotated[str, Parameter(help=LABEL)],
    output: Annotated[
        str | None,
        Parameter(
            name=OUTPUT,
            help="Also save the result as a table (.csv, .tsv, .jsonl, .parquet) or chart (.svg, .png, .html).",
        ),
    ] = None,
    validation: Annotated[
        str | None, Parameter(help="Measure gap and accuracy on the rows of this file instead of the fit rows.")
    ] = None,
    max_gap: Annotated[
        list[float] | None,
        Parameter(
            help="Gap to allow; may be repeated. By default, 21 values from 0 to the gap in the classifier's own "
            "decisions.",
            consume_multiple=False,
            negative="",
        ),
    ] = None,
    weight: Weight = None,
    positive: Positive = None,
    criterion: Criterion = "parity",
    target_rate: FrontierTarget = "accuracy",
    costs: Costs = None,
    ramp_width: RampWidth = None,
    cutoff: Cutoff = None,
    scale: Scale = None,
    lower_is_better: LowerIsBetter = False,
    confidence: Confidence = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    skip_invalid: SkipInvalid = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Show how much accuracy each allowed gap costs; labels are needed.

    For example:

    fairramp frontier scores.csv --score score --group sex --label label
    """
    from fairramp.cli import library, naming, outputs, texts
    from fairramp.measure.frontier import frontier as trace

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    reading: dict[str, Any] = {
        "delimiter": delimiter,
        "decimal": decimal,
        "sheet": sheet,
        "skip_invalid": skip_invalid,
        "output": output,
        "inputs": {"--validation": validation},
    }
    if output is not None:
        outputs.check_output(output, data, {"--validation": validation}, table=True, pictures=True)
    if class_score:
        from fairramp.cli import class_measures, classes

        asked = {"criterion": criterion != "parity", "target_rate": target_rate != "accuracy"}
        asked |= {"higher_is_better:False": lower_is_better, "cutoff": cutoff is not None}
        classes.refuse_others({"score": score, "positive": positive, "costs": costs, "scale": scale, **asked})
        named, columns = classes.columns_of(None, class_score, group)
        width = library.width_of(ramp_width, scale)
        return class_measures.frontier(
            screen,
            data,
            validation,
            output,
            columns=columns,
            classes=named,
            settings={"max_gaps": max_gap, "ramp_width": width, "confidence": confidence},
            how={"label": label, "weight": weight, **reading},
        )
    columns = naming.columns_of(None, score, group)
    # The fit rows first, then those to measure on.
    (scores, groups, labels, weights), *others = [
        [arrays[name] for name in ("scores", "groups", "labels", "sample_weight")]
        for _, arrays in (
            library.read(
                screen,
                file,
                columns,
                lambda job: texts.warn_direction(job, None, scale, lower_is_better=lower_is_better),
                scale=scale,
                **reading,
                label=label,
                positive=positive,
                weight=weight,
            )
            for file in (data, validation)
            if file is not None
        )
    ]
    with texts.direction_told():
        curve = trace(
            scores,
            groups,
            labels,
            validation=tuple(others[0]) if others else None,
            max_gaps=max_gap,
            criterion=criterion,
            ramp_width=library.width_of(ramp_width, scale),
            cutoff=cutoff,
            scale=scale or "probability",
            higher_is_better=not lower_is_better,
            sample_weight=weights,
            target_rate=target_rate,
            costs=library.costs_of(costs),  # type: ignore[arg-type]  # the library checks them
            confidence=confidence,
        )
    table, best = curve.table(), f"highest {curve.measure.replace('_', ' ')}"
    best = "lowest cost" if curve.measure == "cost" else best
    if output is not None and output.lower().endswith(outputs.PICTURES):
        outputs.write_picture(curve.plot(), output)
    elif output is not None:
        outputs.write_table(table, output)
    screen.heading(curve.heading)
    screen.say(f"{curve.own}\n")
    screen.table(table, more="in a file, with -o frontier.csv")
    which = "" if criterion == "parity" else f" --criterion {criterion}"
    screen.say(
        f"\nEach line is the rule with the {best} on the fit rows, of those found for its limit and for "
        f"stricter ones. To fit such a rule: fairramp fit{which} --target-rate {target_rate}"
        f"{f' --costs {costs}' if costs else ''}.",
        *([] if output in (None, STDOUT) else [f"Saved to {output}."]),
    )
    return screen.result(
        "frontier",
        data=data,
        **library.named(columns),
        output=output,
        rate=curve.rate,
        in_sample=curve.is_in_sample,
        own_gap=curve.own_gap,
        own_accuracy=curve.own_accuracy,
        own_value=curve.own_value,
        measure=curve.measure,
        confidence=curve.confidence,
        points=list(table.rows()),
    )
