"""Charts of a rule, an audit and a frontier, for notebooks and files: what ``.plot()`` returns."""

from typing import Any

from fairramp.core.labels import show_label
from fairramp.core.scales import SCALES
from fairramp.measure.audit import Audit
from fairramp.measure.frontier import Frontier
from fairramp.rule.rule import OFFSETS, Rule
from fairramp.show.charts import MOST_DRAWN, changes_chart, frontier_chart, ramps_chart, rates_chart
from fairramp.show.extra import alt
from fairramp.show.pieces import Groups, finished, table
from fairramp.show.words import largest

__all__ = ["drawn"]


def drawn(result: Any) -> "alt.LayerChart | alt.VConcatChart":
    """The chart of a rule, an audit or a frontier."""
    parts = next(parts for kind, parts in _PARTS.items() if isinstance(result, kind))(result)
    chart: alt.LayerChart | alt.VConcatChart = finished(alt.vconcat(*parts) if len(parts) > 1 else parts[0])
    return chart


def _of_rule(rule: Rule) -> list[alt.LayerChart]:
    """The ramps and, where the fit is on record, selection rates before and after."""
    record, scale = rule.record, SCALES[rule.scale]
    seats = largest(record.rows if record else [0] * len(rule.groups), MOST_DRAWN)
    rates = [record.rate_before[i] for i in seats] if record else []
    groups = Groups([show_label(rule.groups[i]) for i in seats], rates, rule.criterion == "parity")
    shown, width = scale.shown_per_unit, rule.ramp_width
    thresholds = [ramp.threshold for ramp in rule.ramps]
    feet = [t - OFFSETS[rule.ramp] * width for t in thresholds]
    ramps = ramps_chart(
        groups,
        table([[foot * shown for foot in feet]], seats),
        table([[threshold * shown for threshold in thresholds]], seats),
        [width * shown],
        scale.position_of(rule.cutoff) * shown,
        (scale.lowest * shown, scale.highest * shown),
        rule.scale,
        title="Chance of a yes by score",
    )
    if record is None:
        return [ramps]
    none = [None] * len(seats)
    after = (table([record.rate_after], seats), [none], [none])
    return [ramps, rates_chart(groups, [rates, none, none], after, _before_and_after(groups))]


def _of_audit(audit: Audit) -> list[alt.LayerChart]:
    """Selection rates with their intervals and, with a rule, who changes."""
    seats = largest(audit.rows, MOST_DRAWN)
    before = [[v[i] for i in seats] for v in (audit.before.rate, audit.before.lower, audit.before.upper)]
    groups = Groups([show_label(audit.groups[i]) for i in seats], before[0], not audit.within_strata)
    if audit.after is None or audit.changed_to_yes is None or audit.changed_to_no is None:
        return [rates_chart(groups, before, title="Selection rates")]
    after = [table([v], seats) for v in (audit.after.rate, audit.after.lower, audit.after.upper)]
    to_yes, to_no = (table([v], seats) for v in (audit.changed_to_yes, audit.changed_to_no))
    return [
        rates_chart(groups, before, after, _before_and_after(groups)),
        changes_chart(groups, to_yes, to_no, title="Decisions that change"),
    ]


def _of_frontier(frontier: Frontier) -> list[alt.LayerChart]:
    """Accuracy against gap."""
    where = "on the fit rows themselves" if frontier.is_in_sample else "on validation rows"
    return [
        frontier_chart(
            frontier.gaps,
            frontier.accuracies,
            list(zip(frontier.lower, frontier.upper, strict=True)),
            (frontier.own_gap, frontier.own_accuracy),
            title=f"Accuracy against gap, {where}",
        )
    ]


_PARTS: dict[type, Any] = {Rule: _of_rule, Audit: _of_audit, Frontier: _of_frontier}


def _before_and_after(groups: Groups) -> Any:
    title = "Selection rates before and after"
    return alt.Title(title, subtitle=groups.meaning) if groups.meaning else title
