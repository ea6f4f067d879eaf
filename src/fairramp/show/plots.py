"""Charts of a rule, an audit and a frontier, for notebooks and files: what ``.plot()`` returns."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairramp.core.labels import show_label
from fairramp.core.scales import SCALES
from fairramp.errors import FairrampError, installing
from fairramp.measure.audit import Audit
from fairramp.measure.frontier import Frontier
from fairramp.rule.rule import OFFSETS, Rule
from fairramp.show.charts import MOST_DRAWN, changes_chart, ramps_chart, rates_chart, score_name
from fairramp.show.curve import frontier_spec
from fairramp.show.pieces import PRINTED, Spec, group_colours, table

if TYPE_CHECKING:
    import altair

__all__ = ["audit_chart", "chart", "drawn", "frontier_chart", "missing_extra", "rule_chart"]


def missing_extra(name: str) -> FairrampError:
    """What to do where a library of the report is not there."""
    return FairrampError(f"{name} is not installed; install it with: {installing('report')}")


def chart(spec: Spec) -> "altair.LayerChart | altair.VConcatChart":
    """A specification as an Altair chart."""
    try:
        import altair
    except ImportError:
        raise missing_extra("altair") from None
    made: altair.LayerChart | altair.VConcatChart = altair.Chart.from_dict(spec)  # type: ignore[assignment]
    return made


def drawn(result: Any) -> "altair.LayerChart | altair.VConcatChart":
    """The chart of a rule, an audit or a frontier."""
    if isinstance(result, Rule):
        return rule_chart(result)
    return audit_chart(result) if isinstance(result, Audit) else frontier_chart(result)


def rule_chart(rule: Rule) -> "altair.LayerChart | altair.VConcatChart":
    """The ramps of a rule and, where the fit is on record, its selection rates before and after."""
    sizes = rule.record.rows if rule.record else [0] * len(rule.groups)
    seats = _largest(sizes)
    names = [show_label(rule.groups[i]) for i in seats]
    thresholds = [ramp.threshold for ramp in rule.ramps]
    feet = [t - OFFSETS[rule.ramp] * rule.ramp_width for t in thresholds]
    scale = SCALES[rule.scale]
    shown = scale.shown_per_unit
    ramps = ramps_chart(
        names,
        table([[foot * shown for foot in feet]], seats),
        table([[threshold * shown for threshold in thresholds]], seats),
        [rule.ramp_width * shown],
        scale.position_of(rule.cutoff) * shown,
        (scale.lowest * shown, scale.highest * shown),
        None,
        [],
        [],
        title="Chance of a yes by score",
        score=score_name(rule.scale),
    )
    if rule.record is None:
        return chart(ramps)
    none = [None] * len(seats)
    rates = [rule.record.rate_before[i] for i in seats]
    after = (table([rule.record.rate_after], seats), [none], [none])
    colours, meaning = group_colours(PRINTED, rates, compared=rule.criterion == "parity")
    title = _titled("Selection rates before and after", meaning)
    return _stacked([ramps, rates_chart(names, [rates, none, none], after, colours, title=title)])


def audit_chart(audit: Audit) -> "altair.LayerChart | altair.VConcatChart":
    """Selection rates with their intervals and, with a rule, who changes."""
    seats = _largest(audit.rows)
    names = [show_label(audit.groups[i]) for i in seats]
    before = [[v[i] for i in seats] for v in (audit.before.rate, audit.before.lower, audit.before.upper)]
    if audit.after is None:
        return chart(rates_chart(names, before, None, [], title="Selection rates"))  # type: ignore[arg-type]
    after = tuple(table([v], seats) for v in (audit.after.rate, audit.after.lower, audit.after.upper))
    colours, meaning = group_colours(PRINTED, before[0], compared=not audit.within_strata)
    title = _titled("Selection rates before and after", meaning)
    rates = rates_chart(names, before, after, colours, title=title)  # type: ignore[arg-type]
    assert audit.changed_to_yes is not None
    assert audit.changed_to_no is not None
    changes = changes_chart(
        names,
        table([audit.changed_to_yes], seats),
        table([audit.changed_to_no], seats),
        title="Decisions that change",
    )
    return _stacked([rates, changes])


def frontier_chart(frontier: Frontier) -> "altair.LayerChart | altair.VConcatChart":
    """Accuracy against gap."""
    where = "on the fit rows themselves" if frontier.is_in_sample else "on validation rows"
    return chart(
        frontier_spec(
            frontier.gaps,
            frontier.accuracies,
            frontier.lower,
            frontier.upper,
            range(len(frontier.gaps)),
            (frontier.own_gap, frontier.own_accuracy),
            None,
            title=f"Accuracy against gap, {where}",
        )
    )


def _titled(title: str, more: str) -> str | Spec:
    return {"text": title, "subtitle": more} if more else title


def _largest(sizes: Sequence[int]) -> list[int]:
    """The largest groups, in their own order."""
    return sorted(sorted(range(len(sizes)), key=lambda i: -sizes[i])[:MOST_DRAWN])


def _stacked(specs: list[Spec]) -> "altair.LayerChart | altair.VConcatChart":
    """Charts of the same groups, one under the other; a parameter that both have is the same."""
    params = {param["name"]: param for spec in specs for param in spec["params"]}
    apart = ("params", "config", "$schema", "autosize")
    return chart(
        {
            "$schema": specs[0]["$schema"],
            "params": list(params.values()),
            "vconcat": [{k: v for k, v in spec.items() if k not in apart} for spec in specs],
            "config": specs[0]["config"],
        }
    )
