"""`fairramp rows-needed`: how many rows a gap in the population takes."""

from typing import Annotated, Any

from cyclopts import Parameter

from fairramp.cli.options import Json
from fairramp.cli.render import Screen


def rows_needed(
    *,
    max_gap: Annotated[float, Parameter(help="The gap that the population may have; 0.02 is 2 points.")],
    groups: Annotated[float, Parameter(help="How many groups there are, or intersections of several columns.")],
    confidence: Annotated[float, Parameter(help="With which confidence.")] = 0.95,
    rate: Annotated[float, Parameter(help="The common selection rate; 0.5 needs the most rows.")] = 0.5,
    fit_gap: Annotated[
        float, Parameter(help="The gap on the fit rows, below --max-gap: the larger, the less a fit changes.")
    ] = 0.0,
    json: Json = False,
) -> None:
    """Say how many fit rows each group needs to keep a gap in the population, by either limit.

    With as many rows, fairramp fit --max-gap … --confidence … succeeds.

    For example:

    fairramp rows-needed --max-gap 0.05 --groups 2
    """
    from fairramp.core.words import exact_points, percentage
    from fairramp.measure.certificate import rows_needed as needed

    screen = Screen(json=json)
    n_groups: Any = int(groups) if groups.is_integer() else groups  # the library refuses what is not whole
    found = {
        limit: needed(max_gap, n_groups, confidence, rate=rate, fit_gap=fit_gap, limit=limit)
        for limit in ("estimated", "proven")
    }
    screen.say(
        f"To keep the gap between {n_groups:,} groups at {exact_points(max_gap)} or less in the population, "
        f"with {percentage(confidence)} confidence, each group needs"
    )
    screen.text("")
    for limit, rows in found.items():
        screen.text(f"  {rows:,} rows by the {limit} limit")
    screen.say(
        f"\nif {percentage(rate)} of each are selected and the gap on the fit rows is "
        f"{exact_points(fit_gap)}. The estimated limit is an approximation supported by simulation; the proven "
        "limit is a theorem."
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
