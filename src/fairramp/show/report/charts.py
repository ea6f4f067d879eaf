"""The charts of a report, from its content."""

from operator import attrgetter
from typing import Any

from fairramp.show.charts import MOST_DRAWN, changes_chart, frontier_chart, ramps_chart, rates_chart
from fairramp.show.extra import alt
from fairramp.show.pieces import STYLED, Groups, finished, table
from fairramp.show.report.content import Content

__all__ = ["content_charts", "content_groups"]


def content_groups(content: Content) -> Groups:
    """The groups that are drawn."""
    seats = content.largest(MOST_DRAWN)
    return Groups(
        [content.groups[i].name for i in seats],
        [content.before.rate[i] for i in seats],
        compared=content.settings["criterion"] == "parity",
        theme=STYLED,
        at=content.own,
    )


def content_charts(content: Content) -> dict[str, dict[str, Any]]:
    """All charts of a report as Vega-Lite, by the name of their place on the page."""
    seats, drawn, outcomes = content.largest(MOST_DRAWN), content_groups(content), content.outcomes

    def by_position(name: str) -> list[list[float | None]]:
        return table([attrgetter(name)(o) for o in outcomes], seats)

    groups, before, chosen = [content.groups[i] for i in seats], content.before, content.chosen
    charts = {
        "scores": ramps_chart(
            drawn,
            by_position("ramp_from"),
            by_position("thresholds"),
            [o.ramp_width for o in outcomes],
            content.cutoff,
            content.score_range,
            content.settings["scale"],
            [(g.histogram, g.rows) for g in groups],
        ),
        "rates": rates_chart(
            drawn,
            [[values[i] for i in seats] for values in (before.rate, before.lower, before.upper)],
            [by_position(f"after.{name}") for name in ("rate", "lower", "upper")],
        ),
        "changes": changes_chart(drawn, by_position("changed_to_yes"), by_position("changed_to_no")),
    }
    if before.overall_accuracy is not None:
        charts["frontier"] = frontier_chart(
            [o.after.gap for o in outcomes],
            [o.after.overall_accuracy or 0.0 for o in outcomes],
            [o.accuracy_interval or (0.0, 0.0) for o in outcomes],
            (before.gap, before.overall_accuracy),
            (chosen.after.gap, chosen.after.overall_accuracy or 0.0),
            [i for i, o in enumerate(outcomes) if content.in_sample or not o.is_own],
            content.own,
            STYLED,
        )
    with alt.theme.enable("none"):  # whatever theme a notebook has enabled, the page is the same
        found = {name: finished(chart, STYLED).to_dict() for name, chart in charts.items()}
    # The page's copy of Vega-Lite may be older than Altair's, which is no reason to complain to the reader.
    return {name: {key: part for key, part in spec.items() if key != "$schema"} for name, spec in found.items()}
