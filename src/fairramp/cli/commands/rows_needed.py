"""`fairramp rows-needed`: rows needed to limit the gap in the population."""

from typing import Annotated, Any

from cyclopts import Parameter

from fairramp.cli.options import LIMIT, Json
from fairramp.cli.render import Screen


def rows_needed(
    *,
    max_gap: Annotated[
        float, Parameter(help="Largest allowed gap in the population; 0.02 means 2 points."), LIMIT
    ],
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
    criterion: Annotated[
        str,
        Parameter(
            help="Which rates the gap is between, as in fairramp fit; equalized_odds needs more rows than the "
            "others."
        ),
    ] = "parity",
    json: Json = False,
) -> None:
    """Compute how many fit rows each group needs to limit the gap in the population.

    With this many rows in each group, fairramp fit succeeds with the same --max-gap and --confidence. For true
    positive rates, count only rows with label 1; for false positive rates, only rows with label 0; for
    equalized_odds, each group needs this many rows of each label.

    For example:

    fairramp rows-needed --max-gap 0.05 --groups 2
    """
    from fairramp.core.events import EVENT_OF
    from fairramp.core.words import exact_points, percentage
    from fairramp.measure.certificate import rows_needed as needed

    screen = Screen(json=json)
    n_groups: Any = int(groups) if groups.is_integer() else groups  # the library rejects other numbers
    found = {
        limit: needed(max_gap, n_groups, confidence, rate=rate, fit_gap=fit_gap, limit=limit, criterion=criterion)
        for limit in ("estimated", "proven")
    }
    event = EVENT_OF[criterion]
    screen.say(
        f"To keep the {f'{event.gap} of' if event.needs_labels else 'gap between'} {n_groups:,} groups in the "
        f"population within {exact_points(max_gap)} at {percentage(confidence)} confidence, each group needs:"
    )
    screen.text("")
    for limit, rows in found.items():
        of = "rows with label 1 and as many with label 0" if event.parts else event.rows
        screen.text(f"  {rows:,} {of} by the {limit} limit")
    screen.say(
        f"\nThis assumes a rate of {percentage(rate)} and a gap of {exact_points(fit_gap)} on the "
        "fit rows. The estimated limit is an approximation supported by simulations; the proven limit is a "
        "theorem."
        + (" For equalized odds, the estimated limit is the proven one, at any rate." if event.parts else "")
    )
    screen.result(
        "rows-needed",
        max_gap=max_gap,
        groups=n_groups,
        confidence=confidence,
        rate=rate,
        fit_gap=fit_gap,
        criterion=criterion,
        rows_per_group=found,
    )
