"""What `.plot()` draws: each result as one chart or several below each other, each with a key and titled axes."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import nan
from typing import Any

from fairramp.core.events import ClassEvent, Event
from fairramp.core.labels import show_label, show_labels
from fairramp.core.words import exact_points, fixed, percentage, points, upward_points, with_interval
from fairramp.fit.shortlist import Shortlist
from fairramp.measure.audited import Audit
from fairramp.measure.certificate import Certificate
from fairramp.measure.class_audited import ClassAudit
from fairramp.measure.class_frontier import ClassFrontier
from fairramp.measure.drift import Check
from fairramp.measure.frontier import Frontier
from fairramp.measure.parts import Comparison
from fairramp.measure.rates import GroupRates
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.limits import limit_kind
from fairramp.rule.rule import Rule
from fairramp.show.charts.class_panels import MOST_CLASSES, Axis, panels_chart, share_axis
from fairramp.show.charts.dumbbell import MOST_ROWS, Changes, Dots, dumbbell_chart
from fairramp.show.charts.frontier import frontier_chart
from fairramp.show.charts.gaps import Gap, gaps_chart
from fairramp.show.charts.pieces import MOST_DRAWN, PRINTED, Groups, Rows, Theme, alt, finished
from fairramp.show.charts.ramps import ramp_tables, ramps_chart
from fairramp.show.words import largest, people

#: Chart of a result.
Chart = alt.LayerChart | alt.VConcatChart
_KEY = "Hollow: classifier alone. Filled: with the rule."
#: Whose threshold a chart of ramps shows.
_WHOSE = {
    "known": "",
    "probabilities": " of those who surely belong to the group; others have a mean of these",
    "each": " if a person's other attributes shift it by 0",
}
#: Longer keys take two lines.
_WIDEST = 100


def drawn(result: Any, theme: Theme = PRINTED, most: int = MOST_ROWS) -> Chart:
    """The chart of a result, with at most `most` groups."""
    parts = next(parts for kind, parts in _PARTS.items() if isinstance(result, kind))(result, theme, most)
    chart: Chart = finished(alt.vconcat(*parts) if len(parts) > 1 else parts[0], theme)
    return chart


def titled(title: str, *key: str) -> alt.Title:
    """A title with the key below it, in sentences."""
    known = [sentence for sentence in key if sentence]
    lines = [" ".join(known)]
    if len(lines[0]) > _WIDEST:
        half = next(i for i in range(len(known), 0, -1) if i == 1 or len(" ".join(known[:i])) <= _WIDEST)
        lines = [" ".join(known[:half]), " ".join(known[half:])]
    return alt.Title(title, subtitle=lines[0] if len(lines) == 1 else lines)


def _of_rule(rule: Rule, theme: Theme, most: int) -> list[alt.LayerChart]:
    """The ramps and, if the rule has a record of its fit, the rates it makes equal, before and after."""
    record, scale = rule.record, rule.meaning
    sizes = record.rows if record else [0] * len(rule.groups)
    seats = largest(sizes, MOST_DRAWN)
    starts, ends = zip(*map(rule.ends_of, rule.ramps), strict=True)
    constants = [ramp.tie if ramp.is_constant else nan for ramp in rule.ramps]
    ramps = ramps_chart(
        Groups(show_labels([rule.groups[i] for i in seats]), theme),
        scale,
        ramp_tables(scale, seats, [(starts, ends, rule.thresholds, constants)]),
        rule.cutoff,
        title=titled(
            "Probability of selection, by score",
            f"Line: from 0 to 1; the number is the threshold{_WHOSE[rule.membership]}.",
            "Dashed: the classifier's own cutoff.",
            _few(seats, sizes),
        ),
    )
    rows = largest(sizes, most)
    groups = Groups(show_labels([rule.groups[i] for i in rows]), theme)
    return [
        ramps,
        *(
            dumbbell_chart(
                groups,
                Dots([[found.before[i] for i in rows]]),
                Dots([[found.after[i] for i in rows]]),
                rate=part.rate,
                people=[f"{found.rows[i]:,}" for i in rows],
                title=titled(f"{_rates_of(rule, part)} on the fit rows", _KEY, _gray(part), _few(rows, sizes)),
            )
            for part, found in (record.compared if record else ())
        ),
    ]


def _rates_of(rule: Rule, event: Event) -> str:
    """What the rates in the record of a rule are called."""
    return f"Expected {event.rate}s" if rule.membership == "probabilities" else f"{event.rate.capitalize()}s"


def _of_audit(audit: Audit, theme: Theme, most: int) -> list[alt.LayerChart]:
    """The compared rates with their intervals and, with a rule, the answers that change."""
    seats = largest(audit.rows, most)
    groups = Groups(show_labels([audit.groups[i] for i in seats]), theme)
    changes = None
    if audit.changed_to_yes is not None and audit.changed_to_no is not None:
        both = (audit.changed_to_yes, audit.changed_to_no)
        changes = Changes(*([[people(shares[i] * audit.rows[i]) for i in seats]] for shares in both))
    charts = []
    for part in audit.event.simple:
        now = None if audit.after is None else _dots(audit.after.rates[part.name], seats)
        rows = audit.before.rates[part.name].rows
        charts.append(
            dumbbell_chart(
                groups,
                _dots(audit.before.rates[part.name], seats),
                now,
                rate=part.rate,
                people=[f"{rows[i]:,}" for i in seats],
                changes=changes,
                title=titled(
                    f"{part.rate.capitalize()}s",
                    _KEY if now else "",
                    _line(audit.confidence),
                    _gray(part),
                    _few(seats, audit.rows),
                ),
            )
        )
    return charts


def _of_certificate(found: Certificate, theme: Theme, most: int) -> list[alt.LayerChart]:
    """Gaps on the fit rows, and the limits on the gap in the population."""
    kind, several = limit_kind(found.estimated, found.proven), bool(found.event.parts)
    gaps, rows, by_class = [], "fresh rows" if found.fresh else "fit rows", isinstance(found.event, ClassEvent)
    for event in found.event.simple[:MOST_CLASSES]:
        what, gap = f"{event.short}: " if several else "", found.fit_gaps[event.name]
        gaps += [
            Gap(f"{what}gap{'' if by_class else f' on the {rows}'}", gap, points(gap)),
            _limit(f"{what}{kind} limit", found.by_event[event.name]),
        ]
    if kind != "proven" and found.proven is not None:
        gaps.append(_limit("proven limit", found.proven))
    if (rest := found.rest) is not None:
        n = len(found.left_out)
        without = f"without {'1 group' if n == 1 else f'{n:,} small groups'}"
        gaps.append(_limit(f"{kind} limit, {without}", rest.estimated))
    return [
        gaps_chart(
            [replace(gap, most=found.max_gap) for gap in gaps],
            theme,
            titled(
                f"{found.event.gap.capitalize()}: on the {rows}, and limits in the population",
                f"Dot: measured. Bar: limit, with {percentage(found.confidence)} confidence.",
                "" if found.max_gap is None else f"Dashed: the {exact_points(found.max_gap)} requested.",
                _few_classes([event.short for event in found.event.simple]),
            ),
        )
    ]


def _limit(name: str, limit: float) -> Gap:
    return Gap(name, limit, upward_points(limit) if limit < 1 else "none", is_limit=True)


def _of_check(check: Check, theme: Theme, most: int) -> list[alt.LayerChart]:
    """Rates on the fit rows and on the new rows, and the gaps with their limits."""
    by_class = isinstance(check.event, ClassEvent)
    charts = [_class_check(check, theme, most)] if by_class else []
    for event in () if by_class else check.event.simple:
        own = [i for i, one in enumerate(check.events) if one == event]
        seats = [own[i] for i in largest([check.rows[i] for i in own], most)]
        if not seats:
            continue
        then, now, low, high = (
            [[values[i] for i in seats]] for values in (check.rates_then, check.rates, check.lower, check.upper)
        )
        charts.append(
            dumbbell_chart(
                Groups(show_labels([check.groups[i] for i in seats]), theme),
                Dots(then),
                Dots(now, low, high),
                rate=event.rate,
                people=[f"{check.rows[i]:,}" for i in seats],
                words=("on the fit rows", "on the new rows"),
                decided=False,
                title=titled(
                    f"{event.rate.capitalize()}s with the rule",
                    "Hollow: on the fit rows. Filled: on the new rows.",
                    _line(check.confidence),
                    f"Gray: new {_people(event)}.",
                    _few(seats, own),
                ),
            )
        )
    if len(set(check.events)) < len(check.events):  # otherwise there is nothing to compare
        title = titled(
            "Gap on the new rows", _line(check.confidence), f"Dashed: {check.comparisons[0].kind} limit."
        )
        charts.append(gaps_chart([_compared(check, one) for one in check.comparisons], theme, title))
    return charts


def _class_check(check: Check, theme: Theme, most: int) -> alt.LayerChart:
    """Rates of every class on the fit rows and on the new rows."""
    names = [event.short for event in check.event.parts]
    sizes = check.rows[: len(check.rows) // len(names)]
    seats = largest(sizes, most)
    then, now, low, high = (
        [[values[c * len(sizes) + i] for i in seats] for c in range(len(names))]
        for values in (check.rates_then, check.rates, check.lower, check.upper)
    )
    return panels_chart(
        names,
        Groups(show_labels([check.groups[i] for i in seats]), theme),
        _share_axis(then, now, high),
        Dots(then),
        Dots(now, low, high),
        people=[f"{sizes[i]:,}" for i in seats],
        words=("on the fit rows", "on the new rows"),
        decided=False,
        title=titled(
            "Rates of each class with the rule",
            "Hollow: on the fit rows. Filled: on the new rows.",
            _line(check.confidence),
            "Gray: new people.",
            _few(seats, sizes),
            _few_classes(names),
        ),
    )


def _compared(check: Check, one: Comparison) -> Gap:
    name = "all groups"
    if one.left_out:
        n = len(one.left_out)
        name = f"without {'1 group' if n == 1 else f'{n:,} small groups'}"
    if check.within_strata:
        name = f"stratum {show_label(check.stratum)}"
    if check.by_attribute:
        name = f"attribute {show_label(check.stratum)}"
    if isinstance(one.event, ClassEvent):
        name = f"class {one.event.short}{f', {name}' if check.within_strata else ''}"
    elif check.event.parts:
        name = f"{one.event.short}: {name}"
    text = with_interval(*map(points, (one.gap, *one.interval)))
    return Gap(name, one.gap, text, one.interval, one.limit)


def _of_class_rule(rule: ClassRule, theme: Theme, most: int) -> list[alt.LayerChart]:
    """The offsets and, if the rule has a record of its fit, the rates of every class, before and after."""
    record = rule.record
    sizes = record.rows if record else [0] * len(rule.groups)
    seats = largest(sizes, most)
    names, offsets = show_labels(rule.classes), list(zip(*rule.offsets, strict=True))
    groups = Groups(show_labels([rule.groups[i] for i in seats]), theme)
    people = [f"{record.rows[i]:,}" for i in seats] if record else ()
    furthest = max([abs(x) for row in offsets for x in row] + [1e-4])
    decimals = rule.decimals if furthest < 0.1 else 3
    charts = [
        panels_chart(
            names,
            groups,
            Axis("offset", -furthest, furthest, partial(fixed, decimals=decimals), {0.0: "0"}),
            Dots([[row[i] for i in seats] for row in offsets]),
            people=people,
            title=titled(
                "Offsets, one panel for each class",
                "An offset is subtracted from the score of the class: below 0, the class becomes more likely.",
                _few(seats, sizes),
                _few_classes(names),
            ),
        )
    ]
    if record is None:
        return charts
    before, after = (
        [[rates[i][c] for i in seats] for c in range(len(names))] for rates in (record.before, record.after)
    )
    what = "Expected rates" if rule.mixes else "Rates"
    return [
        panels_chart(
            names,
            groups,
            _share_axis(before, after),
            Dots(before),
            Dots(after),
            people=people,
            title=titled(
                f"{what} of each class on the fit rows",
                _KEY,
                "Gray: people.",
                _few(seats, sizes),
                _few_classes(names),
            ),
        ),
        *charts,
    ]


def _of_class_audit(audit: ClassAudit, theme: Theme, most: int) -> list[alt.LayerChart]:
    """The rates of every class with their intervals, before and, with a rule, after."""
    seats, names = largest(audit.rows, most), show_labels(audit.classes)
    sides = [_class_dots(one.rates.values(), seats) for one in (audit.before, audit.after) if one is not None]
    return [
        panels_chart(
            names,
            Groups(show_labels([audit.groups[i] for i in seats]), theme),
            _share_axis(*(rows for side in sides for rows in (side.rates, side.upper))),
            *sides,
            people=[f"{audit.rows[i]:,}" for i in seats],
            title=titled(
                "Rates of each class",
                _KEY if audit.after else "",
                _line(audit.confidence),
                "Gray: people.",
                _few(seats, audit.rows),
                _few_classes(names),
            ),
        )
    ]


def _class_dots(rates: Iterable[GroupRates], seats: Sequence[int]) -> Dots:
    """The rates of the chosen groups, class by class."""
    every = [_dots(one, seats) for one in rates]
    return Dots(*([row for one in every for row in getattr(one, end)] for end in ("rates", "lower", "upper")))


def _share_axis(*tables: Rows) -> Axis:
    """An axis from 0% to the largest share."""
    values = [x for rows in tables for row in rows for x in row if x is not None and x == x]
    return share_axis(min(max([1.04 * x for x in values] + [0.02]), 1.0))


def _few_classes(classes: Sequence[str]) -> str:
    """That only some classes are drawn; empty if all are."""
    n = len(classes)
    return f"The first {MOST_CLASSES} of {n:,} classes." if n > MOST_CLASSES else ""


def _of_shortlist(found: Shortlist, theme: Theme, most: int) -> list[alt.LayerChart]:
    """Selection rates by score alone and as admitted, with the places gained and lost."""
    seats = largest(found.rows, most)
    gained = [found.places[i] - found.places_by_score[i] for i in seats]
    return [
        dumbbell_chart(
            Groups(show_labels([found.groups[i] for i in seats]), theme),
            Dots([[found.places_by_score[i] / found.rows[i] for i in seats]]),
            Dots([[found.rates[i] for i in seats]]),
            people=[f"{found.rows[i]:,}" for i in seats],
            changes=Changes(*([[people(sign * n) for n in gained]] for sign in (1, -1))),
            words=("by score alone", "admitted"),
            title=titled(
                f"Selection rates: {sum(found.places):,} places",
                "Hollow: by score alone. Filled: as admitted.",
                "Gray: people.",
                _few(seats, found.rows),
            ),
        )
    ]


def _of_frontier(frontier: Frontier, theme: Theme, most: int) -> list[alt.LayerChart]:
    """Accuracy against gap."""
    return [_frontier(frontier, frontier.values, frontier.own_value, frontier.measure, theme)]


def _of_class_frontier(frontier: ClassFrontier, theme: Theme, most: int) -> list[alt.LayerChart]:
    """Accuracy against the largest gap of a class."""
    return [
        _frontier(
            frontier,
            frontier.accuracies,
            frontier.own_accuracy,
            "accuracy",
            theme,
            gap_name="largest gap of a class",
        )
    ]


def _frontier(
    frontier: Frontier | ClassFrontier,
    values: Sequence[float],
    own: float,
    measure: str,
    theme: Theme,
    gap_name: str | None = None,
) -> alt.LayerChart:
    where = "on the fit rows" if frontier.is_in_sample else "on validation rows"
    what = measure.replace("_", " ").capitalize()
    return frontier_chart(
        frontier.gaps,
        values,
        list(zip(frontier.lower, frontier.upper, strict=True)),
        (frontier.own_gap, own),
        theme=theme,
        title=titled(
            f"{what} against {gap_name or 'gap'}, {where}",
            "Line: rules, one for each limit.",
            f"Shaded: {percentage(frontier.confidence)} confidence band.",
            "Hollow: classifier alone.",
        ),
        measure=measure,
        gap_name=gap_name,
    )


def _line(confidence: float) -> str:
    return f"Line: {percentage(confidence)} confidence interval."


def _gray(event: Event) -> str:
    """What the gray numbers beside the names count."""
    return f"Gray: {_people(event)}."


def _people(event: Event) -> str:
    return f"people{'' if event.label is None else f' with label {event.label}'}"


def _few(seats: Sequence[int], every: Sequence[Any]) -> str:
    """That only some groups are drawn; empty if all are."""
    return f"The {len(seats)} largest of {len(every):,} groups." if len(seats) < len(every) else ""


def _dots(found: GroupRates, seats: Sequence[int]) -> Dots:
    """The rates of the chosen groups, and their confidence limits."""
    return Dots(*([[values[i] for i in seats]] for values in (found.rate, found.lower, found.upper)))


_PARTS: dict[type, Any] = {
    Rule: _of_rule,
    Audit: _of_audit,
    Certificate: _of_certificate,
    Check: _of_check,
    Shortlist: _of_shortlist,
    Frontier: _of_frontier,
    ClassRule: _of_class_rule,
    ClassAudit: _of_class_audit,
    ClassFrontier: _of_class_frontier,
}
