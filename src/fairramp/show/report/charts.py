"""The charts of the page as Vega-Lite specifications."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from fairramp.core.events import EVENTS, SELECTION, Event
from fairramp.core.scales import Scale, scale_of
from fairramp.show.charts.dumbbell import HEIGHTS, MOST_ROWS, WIDE, Changes, Dots, dumbbell_chart, dumbbell_tables
from fairramp.show.charts.frontier import frontier_chart
from fairramp.show.charts.pieces import MOST_DRAWN, STYLED, Groups, Rows, alt, finished
from fairramp.show.charts.ramps import cutoff_place, ramp_tables, ramps_chart
from fairramp.show.report.content import Content, Outcome, PageContent
from fairramp.show.report.texts import is_ratio, other_events
from fairramp.show.words import largest, people


def content_charts(content: Content, *, live: bool = False) -> dict[str, dict[str, Any]]:
    """All charts of a report as Vega-Lite specifications, by name; `live_tables` can change `live` ones."""
    seats = largest(content.sizes, MOST_DRAWN)
    histograms = [(content.groups[i].histogram, content.groups[i].rows) for i in seats]
    if content.mixing:  # which part of a group is selected does not depend on one threshold
        histograms = []
    drawn = {
        name: dumbbell_chart(rows.groups, rows.before, rows.after, live=live, **rows.more)
        for name, rows in _all_rates(content).items()
    }
    drawn["scores"] = ramps_chart(
        Groups([content.groups[i].name for i in seats], STYLED, content.own),
        _scale(content),
        _ramps(content),
        content.settings["cutoff"],
        histograms,
    )
    if has_frontier(content):
        drawn["frontier"] = _frontier(content)
    return specified(drawn, EVENTS)


def live_tables(content: Content) -> dict[str, dict[str, Any]]:
    """The parameters of the live charts, by chart: all that differs between rules with the same criterion."""
    return {
        **{name: rows.tables() for name, rows in _all_rates(content).items()},
        "scores": {
            **_ramps(content),
            "cutoff": cutoff_place(_scale(content), content.settings["cutoff"]),
        },
    }


def _scale(content: Content) -> Scale:
    return scale_of(content.settings["scale"], content.settings["higher_is_better"])


def _ramps(content: Content) -> dict[str, Rows]:
    """The tables of the ramps of the groups drawn."""
    ramps = [(o.ramp_from, o.ramp_to, o.thresholds, o.constant_chances) for o in content.outcomes]
    return ramp_tables(_scale(content), largest(content.sizes, MOST_DRAWN), ramps)


def specified(drawn: Mapping[str, alt.LayerChart], dumbbells: Collection[str]) -> dict[str, dict[str, Any]]:
    """Charts as specifications; rows of `dumbbells` are taller on a narrow page."""
    with alt.theme.enable("none"):  # the page must not depend on a notebook's theme
        found = {name: finished(chart, STYLED).to_dict() for name, chart in drawn.items()}
    for name, spec in found.items():
        spec.pop("$schema")  # Vega would warn if the page's copy of Vega-Lite is older than Altair's
        if name in dumbbells:
            rows = spec["height"] / HEIGHTS[0]
            spec["usermeta"] = {"wide": WIDE, "heights": [rows * height for height in HEIGHTS]}
    return found


class _Rates(NamedTuple):
    """A chart of rates: its arguments."""

    groups: Groups
    before: Dots
    after: Dots
    more: dict[str, Any]

    def tables(self) -> dict[str, Any]:
        """The parameters of the live chart."""
        return dumbbell_tables(self.groups, self.before, self.after, **self.more)


def _all_rates(content: Content) -> dict[str, _Rates]:
    """All charts of rates, by name."""
    events = (*content.event.simple, *other_events(content))
    return {event.name: _rates(content, event, first=i == 0) for i, event in enumerate(events)}


def _rates(content: Content, event: Event, *, first: bool) -> _Rates:
    """Rates before and after, those that are compared with the range of all groups."""
    seats, outcomes = _by_rate(content, largest(content.sizes, MOST_ROWS)), content.outcomes
    groups = Groups([called(content, i) for i in seats], STYLED, content.own)
    rows = content.before.rates[event.name].rows
    compared = event in content.event.simple

    def dots(o: Outcome | Content) -> list[float]:
        found = (o.after if isinstance(o, Outcome) else o.before).rates[event.name].rate
        return [found[i] for i in seats]

    changes = None
    if first:
        changes = Changes(
            *(
                [[people(getattr(o.people, way)[i]) for i in seats] for o in outcomes]
                for way in ("to_yes", "to_no")
            )
        )
    # All groups, also those not drawn; within strata, rates are compared only with those of the same stratum.
    band: Rows | None = None
    if compared and not content.has_parts and len(content.groups) > 1:
        after = [np.array(o.after.rates[event.name].rate) for o in outcomes]
        band = [[float(rates.min()), float(rates.max())] for rates in after]
    more = {
        "rate": event.rate,
        "people": [f"{rows[i]:,}" for i in seats],
        "changes": changes,
        "band": band,
        "highest": None if event is SELECTION else 1.0,  # two such charts stand side by side
    }
    return _Rates(groups, Dots([dots(content)]), Dots([dots(o) for o in outcomes]), more)


def _by_rate(content: Content, seats: list[int]) -> list[int]:
    """Groups by their compared rate before, so that those who gain are above those who lose; small groups last.

    Two groups, and groups in strata or of several attributes, keep their order.
    """
    if len(seats) <= 2 or content.has_parts:
        return seats
    rates = content.before.rates[content.event.simple[0].name].rate
    return sorted(seats, key=lambda i: (content.groups[i].small, rates[i]))


def called(content: PageContent, i: int) -> str:
    """The name of a group in a chart."""
    group = content.groups[i]
    return f"{group.name} *" if group.small else group.name


def has_frontier(content: Content) -> bool:
    """Whether there is an accuracy at some gap or ratio to draw."""
    apart = [o.after.ratio if is_ratio(content) else o.after.gap for o in content.outcomes]
    return content.labeled and len(content.outcomes) > 1 and any(value == value for value in apart)


def _frontier(content: Content) -> alt.LayerChart:
    before, chosen, outcomes, ratios = content.before, content.chosen, content.outcomes, is_ratio(content)
    return frontier_chart(
        [o.after.ratio if ratios else o.after.gap for o in outcomes],
        [o.after.overall_accuracy or 0.0 for o in outcomes],
        [o.accuracy_interval or (0.0, 0.0) for o in outcomes],
        (before.ratio if ratios else before.gap, before.overall_accuracy or 0.0),
        (chosen.after.ratio if ratios else chosen.after.gap, chosen.after.overall_accuracy or 0.0),
        [i for i, o in enumerate(outcomes) if content.in_sample or not o.is_own],
        content.own,
        STYLED,
        ratios=ratios,
        several=content.event.parts != (),
    )
