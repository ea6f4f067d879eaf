"""`fairramp rows-needed`: rows needed to limit the gap in the population."""

from typing import Annotated, Any

from cyclopts import Parameter

from fairramp.cli.options import Json
from fairramp.cli.render import Screen


def rows_needed(
    *,
    max_gap: Annotated[float, Parameter(help="Largest allowed gap in the population; 0.02 means 2 points.")],
    groups: Annotated[
        float,
        Parameter(help="Number of groups, such as 2; for several columns, the number of their combinations."),
    ],
    confidence: Annotated[float, Parameter(help="Confidence level of the limit.")] = 0.95,
    rate: Annotated[float, Parameter(help="Common rate of the groups; 0.5 needs the most rows.")] = 0.5,
    fit_gap: Annotated[
        float,
        Parameter(help="Gap to allow on the fit rows, below --max-gap; a larger gap needs more rows."),
    ] = 0.0,
    json: Json = False,
) -> None:
    """Compute how many fit rows each group needs to limit the gap in the population.

    With this many rows in each group, fairramp fit succeeds with the same --max-gap and --confidence. For true
    positive rates, count only rows with label 1; for false positive rates, only rows with label 0.

    For example:

    fairramp rows-needed --max-gap 0.05 --groups 2
    """
    from fairramp.core.words import exact_points, percentage
    from fairramp.measure.certificate import rows_needed as needed

    screen = Screen(json=json)
    n_groups: Any = int(groups) if groups.is_integer() else groups  # the library rejects other numbers
    found = {
        limit: needed(max_gap, n_groups, confidence, rate=rate, fit_gap=fit_gap, limit=limit)
        for limit in ("estimated", "proven")
    }
    screen.say(
        f"To keep the gap between {n_groups:,} groups in the population within {exact_points(max_gap)} at "
        f"{percentage(confidence)} confidence, each group needs:"
    )
    screen.text("")
    for limit, rows in found.items():
        screen.text(f"  {rows:,} rows by the {limit} limit")
    screen.say(
        f"\nThis assumes a rate of {percentage(rate)} and a gap of {exact_points(fit_gap)} on the "
        "fit rows. The estimated limit is an approximation supported by simulations; the proven limit is a "
        "theorem."
    )
    screen.result(
        "rows-needed",
        max_gap=max_gap,
        groups=n_groups,
        confidence=confidence,
        rate=rate,
        fit_gap=fit_gap,
        rows_per_group=found,
    )
