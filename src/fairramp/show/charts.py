"""Charts, made with Altair, for notebooks, files and the report page.

Each chart has one row per group, with the group's name above it. Numbers that depend on the slider are tables
(position × group) in parameters of the chart, and the position is the parameter `at`, so moving the slider
redraws everything from data that is already there. The data refers to groups by number, and names are used only
as text, so Vega never interprets a name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import nan
from typing import Any

import numpy as np

from fairramp.core.labels import show_label
from fairramp.core.scales import Scale
from fairramp.measure.audit import Audit
from fairramp.measure.frontier import Frontier
from fairramp.measure.rates import GroupRates
from fairramp.rule.rule import Rule
from fairramp.show.pieces import (
    PRINTED,
    Groups,
    Look,
    Theme,
    alt,
    digits,
    finished,
    inline,
    layered,
    rows_of_groups,
    table,
    x_axis,
    y_axis,
)
from fairramp.show.words import largest

#: Most groups in a chart; the largest are shown.
MOST_DRAWN = 12

Rows = Sequence[Sequence[float | None]]
_SCORES = {"logit": "score, as a probability", "percent": "score, percent"}
#: Whether everyone of a group has the same probability, and where a ramp starts and how wide it is.
_CONSTANT = "isValid(constants[at][datum.g])"
_FOOT, _WIDTH = "feet[at][datum.g]", "(tops[at][datum.g] - feet[at][datum.g])"
#: Whether a ramp is wider than a bar.
_WIDE = f"abs({_WIDTH}) > datum.end - datum.x"


def ramps_chart(
    groups: Groups,
    scale: Scale,
    ramps: Mapping[str, Rows],
    cutoff: float,
    histograms: Sequence[tuple[Sequence[float], int]] = (),
    title: str = "",
) -> alt.LayerChart:
    """Score distribution of each group, with the selected part filled and the probability of selection as a line.

    `ramps` are those of `ramp_tables`. `histograms` holds, for each group, its shares in equal bins of the range
    and its number of rows.
    """
    n, theme, (low, high), higher_is_better = len(groups), groups.theme, scale.axis_range, scale.higher_is_better
    worst, best = (low, high) if higher_is_better else (high, low)
    labels = {"labelExpr": _number(scale, "datum.value", "~g")} if scale.only_ordered else {}

    def x(field: str) -> alt.X:
        return x_axis(field, _SCORES.get(scale.name, "score"), (low, high), "~g", **labels)

    y = y_axis(n)
    layers = [alt.Chart().transform_calculate(y="datum.g + 0.96").mark_rule(color=theme.line).encode(y=y)]
    if histograms:
        bars = [bar for g, (shares, size) in enumerate(histograms) for bar in _bars(g, shares, size, low, high)]
        base = (
            alt.Chart(inline(bars))
            .transform_calculate(
                y="datum.g + 0.96",
                y2="datum.y - 0.6 * datum.h",
                name="names[datum.g]",
                start_score=_number(scale, "datum.x", ".3f"),
                end_score=_number(scale, "datum.end", ".3f"),
            )
            .encode(
                x2="end",
                y=y,
                y2="y2",
                color=groups.color,
                tooltip=[
                    alt.Tooltip("name:N", title="group"),
                    alt.Tooltip("start_score:N", title="score from"),
                    alt.Tooltip("end_score:N", title="to"),
                    alt.Tooltip("share:Q", title="share of the group", format=".2%"),
                ],
            )
        )
        middle = "clamp((feet[at][datum.g] + tops[at][datum.g]) / 2, datum.x, datum.end)"
        start, stop = (middle, "datum.end") if higher_is_better else ("datum.x", middle)
        layers += [
            base.mark_rect(opacity=0.28).encode(x=x("x")),
            base.transform_calculate(
                start=f"{_CONSTANT} || {_WIDE} ? datum.x : {start}",
                stop=f"{_CONSTANT} || {_WIDE} ? datum.end : {stop}",
                chance=f"{_WIDE} ? {_chance('(datum.x + datum.end) / 2')} : "
                f"{_CONSTANT} ? constants[at][datum.g] : 1",
                y2="datum.y - 0.6 * datum.h * sqrt(datum.chance)",
            )
            .transform_filter("datum.stop > datum.start && datum.chance > 0")
            .mark_rect()
            .encode(x=x("start"), x2="stop"),
        ]
    corners = inline([{"g": g, "k": k} for g in range(n) for k in range(4)])
    place = (
        f"clamp(datum.k == 0 ? {worst} : datum.k == 3 ? {best} : {_CONSTANT} ? {worst} : "
        f"datum.k == 1 ? feet[at][datum.g] : tops[at][datum.g], {low}, {high})"
    )
    # A ramp may start or end beyond the axis.
    height = (
        f"0.62 * ({_CONSTANT} ? constants[at][datum.g] : {_WIDTH} == 0 ? (datum.k < 2 ? 0 : 1) : "
        f"{_chance('datum.x')})"
    )
    layers += [
        alt.Chart(inline([{"x": scale.on_axis(scale.shown_score(cutoff))}]))
        .mark_rule(color=theme.muted, strokeDash=[3, 3])
        .encode(x=x("x")),
        alt.Chart(corners)
        .transform_calculate(x=place, y=f"datum.g + 0.96 - {height}")
        .mark_line(strokeWidth=1.75, color=theme.ink, strokeJoin="round")
        .encode(x=x("x"), y=y, detail="g:N", order="k:Q"),
    ]
    turn = worst + 0.2 * (best - worst)
    # The threshold as a number on the side of the ramp that has room, with a halo because bars may be behind it.
    halo: Look = {"stroke": theme.paper, "strokeWidth": 4, "strokeJoin": "round", "opacity": 0.75}
    left, right = "datum.x < ", "datum.x >= "
    if not higher_is_better:
        left, right = "datum.x <= ", "datum.x > "
    sides: dict[str, Look] = {
        f"{left}{turn}": {"align": "left", "dx": 8},
        f"{right}{turn}": {"align": "right", "dx": -8},
    }
    for where, side in sides.items():
        figure = (
            alt.Chart()
            .transform_calculate(x=f"{_CONSTANT} ? {worst} : clamp(thresholds[at][datum.g], {low}, {high})")
            .transform_filter(where)
            .transform_calculate(
                y="datum.g + 0.48",
                text=f"{_CONSTANT} ? format(100 * constants[at][datum.g], '.1f') + '% of everyone' : "
                + _number(scale, "thresholds[at][datum.g]", ".3f"),
            )
            .encode(x=x("x"), y=y, text="text:N")
        )
        layers += [figure.mark_text(fontWeight=600, **side, **more) for more in (halo, {})]
    row = 56 if not histograms else 130 if n <= 3 else 84
    return rows_of_groups(groups, row, ramps, layers, title)


def ramp_tables(
    scale: Scale, seats: Sequence[int], positions: Iterable[tuple[Sequence[float], ...]]
) -> dict[str, Rows]:
    """The tables of ramps, from the numbers of all groups at each position of the slider.

    These are where ramps start and end, thresholds, and the probabilities of groups in which everyone has the
    same; NaN if there is none.
    """
    *places, constants = ([list(values) for values in parts] for parts in zip(*positions, strict=True))
    drawn = (scale.on_axis(np.array(numbers, dtype=np.float64)).tolist() for numbers in places)
    return {
        name: table(rows, seats)
        for name, rows in zip(("feet", "tops", "thresholds", "constants"), (*drawn, constants), strict=True)
    }


def _chance(place: str) -> str:
    """An expression for the probability at a coordinate, for ramps that are neither constant nor steps."""
    return f"clamp(({place} - {_FOOT}) / {_WIDTH}, 0, 1)"


def _number(scale: Scale, place: str, form: str) -> str:
    """An expression for the text of a coordinate: the number that tables have there."""
    if not scale.only_ordered:
        return f"format({place}, '{form}')"
    sign, left = f"({place} < 0 ? -1 : 1)", f"(1 - abs({place}))"
    number = f"abs({place}) > 0.5 ? {sign} * 0.25 / {left} : {place}"
    return f"{left} > 0 ? format({number}, '{form}') : {place} < 0 ? '−∞' : '∞'"


def _bars(g: int, shares: Sequence[float], size: int, low: float, high: float) -> list[dict[str, Any]]:
    """Bars of one group's histogram, fewer for fewer rows. Heights are roots of shares, at most 1."""
    parts = len(shares)
    per = max(parts // (64 if size >= 2000 else 32 if size >= 300 else 16), 1)
    sums = [sum(shares[i : i + per]) for i in range(0, parts, per)]
    width, top = (high - low) * per / parts, max(sums)
    return [
        {
            "g": g,
            "x": low + i * width,
            "end": low + (i + 1) * width,
            "h": round((s / top) ** 0.5, 4),
            "share": digits(s),
        }
        for i, s in enumerate(sums)
        if s > 0
    ]


def rates_chart(groups: Groups, before: Rows, after: Sequence[Rows] = (), title: str = "") -> alt.LayerChart:
    """Rates before and after, with their intervals.

    `before` holds rate, lower and upper limit per group; `after` the same for each position of the slider.
    """
    theme, y = groups.theme, y_axis(len(groups))
    key = groups.rate.replace(" ", "_")  # there may be a chart of another rate beside this one
    highest = max((v for rows in (before, *after) for row in rows for v in row if v is not None), default=0.0)
    x = partial(x_axis, title=groups.rate, domain=(0, min(max(highest * 1.18, 0.02), 1.12)), form="~%")
    hover = [
        alt.Tooltip("name:N", title="group"),
        alt.Tooltip("when:N", title="decisions"),
        *(
            alt.Tooltip(f"{field}:Q", title=name, format=".6f")
            for field, name in (("x", groups.rate), ("low", "CI from"), ("high", "CI to"))
        ),
    ]
    layers = [
        alt.Chart().transform_calculate(y="datum.g + 0.99").encode(y=y).mark_rule(color=theme.line, opacity=0.6)
    ]
    hollow: Look = {"fill": theme.paper, "stroke": theme.muted, "strokeWidth": 2}
    muted: Look = {"color": theme.muted}
    drawn: list[tuple[str, float, str, Look, Look, Look]] = [
        ("before", 0.5 if after else 0.62, "datum.g", muted, hollow, muted | {"fontWeight": 400}),
        ("after", 0.78, "at][datum.g", {}, {}, {"color": theme.ink, "fontWeight": 600}),
    ]
    for when, place, row, line, dot, text in drawn if after else drawn[:1]:
        base = (
            alt.Chart()
            .transform_calculate(
                x=f"{when}_{key}[0][{row}]",
                low=f"{when}_{key}[1][{row}]",
                high=f"{when}_{key}[2][{row}]",
                y=f"datum.g + {place}",
                name="names[datum.g]",
                when=f"'{when}'",
                text="format(100 * datum.x, '.1f') + '%'",
                end="isValid(datum.high) ? datum.high : datum.x",
            )
            .transform_filter("isValid(datum.x)")
            .encode(y=y)
        )
        colored = base.encode(color=groups.color) if when == "after" else base
        limits = colored.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, **line)
        layers += [
            limits.encode(x=x("low"), x2="high"),
            colored.mark_point(size=85, opacity=1, filled=True, **dot).encode(x=x("x"), tooltip=hover),
            base.mark_text(align="left", dx=9, **text).encode(x=x("end"), text="text:N"),
        ]
    tables = {f"before_{key}": table(before, range(len(groups))), f"after_{key}": list(after)}
    shown = alt.Title(title, subtitle=groups.meaning) if title and after and groups.meaning else title
    return rows_of_groups(groups, 68 if after else 48, tables, layers, shown)


def changes_chart(groups: Groups, to_yes: Rows, to_no: Rows, title: str = "") -> alt.LayerChart:
    """Share of each group that is no longer selected, to the left, and newly selected, to the right."""
    n, theme = len(groups), groups.theme
    reach = max([v or 0.0 for rows in (to_yes, to_no) for row in rows for v in row] + [0.01]) * 1.3
    x = x_axis(
        "x",
        "← no longer selected · share of the group · newly selected →",
        (-reach, reach),
        "~%",
        labelExpr="format(abs(datum.value), '~%')",
    )
    layers = []
    sides: list[tuple[str, str, str, str, Look]] = [
        ("to_no", "no longer selected", "-", theme.other, {"align": "right", "dx": -6}),
        ("to_yes", "newly selected", "", theme.accent, {"align": "left", "dx": 6}),
    ]
    for source, name, sign, color, side in sides:
        base = (
            alt.Chart()
            .transform_calculate(
                share=f"{source}[at][datum.g]",
                x=f"{sign}datum.share",
                y="datum.g + 0.42",
                y2="datum.g + 0.86",
                middle="datum.g + 0.64",
                zero="0",
                name="names[datum.g]",
                text="datum.share > 0 ? (datum.share < 0.0005 ? '<0.1%' : "
                "format(100 * datum.share, '.1f') + '%') : ''",
            )
            .encode(x=x)
        )
        hover = [alt.Tooltip("name:N", title="group"), alt.Tooltip("share:Q", title=name, format=".6f")]
        layers += [
            base.mark_rect(color=color).encode(x2="zero", y=y_axis(n), y2="y2", tooltip=hover),
            base.mark_text(**side).encode(y=y_axis(n, "middle"), text="text:N"),
        ]
    zero = alt.Chart(inline([{"x": 0}])).mark_rule(color=theme.muted).encode(x=x)
    return rows_of_groups(groups, 56, {"to_yes": to_yes, "to_no": to_no}, [*layers, zero], title)


def frontier_chart(
    gaps: Sequence[float],
    accuracies: Sequence[float],
    limits: Sequence[tuple[float, float]],
    own: tuple[float, float],
    chosen: tuple[float, float] | None = None,
    drawn: Sequence[int] | None = None,
    at: int = 0,
    theme: Theme = PRINTED,
    title: str = "",
    measure: str = "accuracy",
    *,
    ratios: bool = False,
    several: bool = False,
) -> alt.LayerChart:
    """Accuracy against gap with a confidence band, the classifier alone, the rule and the slider's position.

    `drawn` holds the positions that belong to the curve; `measure` is what is drawn if it is not the accuracy. If
    there are `ratios` instead of gaps, a ratio that is NaN is not drawn. With `several` gaps, these are the
    largest.
    """
    unit, axis, short = (
        (1, "ratio of the lowest rate to the highest", "ratio")
        if ratios
        else (
            100,
            f"{'larger of the two gaps' if several else 'gap between groups'}, in percentage points",
            "gap in points",
        )
    )
    curve = [
        {"x": unit * gaps[i], "a": accuracies[i], "low": limits[i][0], "high": limits[i][1]}
        for i in sorted(range(len(gaps)) if drawn is None else drawn, key=gaps.__getitem__)
        if gaps[i] == gaps[i]
    ]
    named = {"classifier alone": own} | ({"this rule": chosen} if chosen else {})
    places: list[dict[str, Any]] = [
        {"x": unit * gap, "a": accuracy, "text": text} for text, (gap, accuracy) in named.items() if gap == gap
    ]
    shown = [v for p in curve for v in (p["low"], p["high"])] + [place["a"] for place in places]
    pad = max((max(shown) - min(shown)) * 0.15, 0.002)
    span = max([p["x"] for p in (*curve, *places)] + [0.1])
    x = x_axis("x", axis, (-0.03 * span, 1.06 * span), "~g")
    y = partial(
        alt.Y,
        axis=alt.Axis(title=None, format="~g" if measure == "cost" else ".1%", tickCount=5),
        scale=alt.Scale(
            domain=[
                max(min(shown) - pad, 0),
                min(max(shown) + pad, max(shown) + pad if measure == "cost" else 1),
            ],
            zero=False,
            nice=False,
        ),
    )
    hover = [
        alt.Tooltip("x:Q", title=short, format=".4f"),
        alt.Tooltip("a:Q", title=measure.replace("_", " "), format=".6f"),
    ]
    base = alt.Chart().encode(x=x, y=y("a:Q"))
    pointed = base.encode(tooltip=hover)
    ring: Look = {"fill": theme.paper, "stroke": theme.ink, "strokeWidth": 2}
    layers = [
        base.mark_area(color=theme.accent, opacity=0.14).encode(y=y("low:Q"), y2="high"),
        base.mark_line(color=theme.accent, strokeWidth=2),
        pointed.mark_point(color=theme.accent, filled=True, size=22, opacity=1),
        pointed.properties(data=inline(places)).mark_point(size=110, filled=True, opacity=1, **ring),
    ]
    for place, dy in zip(places, (-17, 18), strict=False):
        # One label above and one below its point, so they never overlap; at the right end, aligned inward.
        side: Look = {"align": "right", "dx": 6} if place["x"] > 0.6 * span else {"align": "left", "dx": -4}
        layers.append(base.properties(data=inline([place])).mark_text(dy=dy, **side).encode(text="text:N"))
    if chosen:
        layers.append(
            pointed.properties(data=inline([{"g": 0}]))
            .transform_filter("isValid(gaps[at])")
            .transform_calculate(x=f"{unit} * gaps[at]", a="accuracies[at]")
            .mark_point(size=110, filled=True, color=theme.other, opacity=1)
        )
    return layered(
        layers,
        curve,
        {"at": at, "gaps": list(map(digits, gaps)), "accuracies": list(accuracies)},
        theme,
        300,
        title,
    )


# Results of .plot() ---------------------------------------------------------------------------


def drawn(result: Any) -> "alt.LayerChart | alt.VConcatChart":
    """The chart of a rule, an audit or a frontier."""
    parts = next(parts for kind, parts in _PARTS.items() if isinstance(result, kind))(result)
    chart: alt.LayerChart | alt.VConcatChart = finished(alt.vconcat(*parts) if len(parts) > 1 else parts[0])
    return chart


def _of_rule(rule: Rule) -> list[alt.LayerChart]:
    """The ramps and, if the rule has a record of its fit, the rates it makes equal, before and after."""
    record, scale, event = rule.record, rule.meaning, rule.event
    seats = largest(record.rows if record else [0] * len(rule.groups), MOST_DRAWN)
    rates = [record.main.before[i] for i in seats] if record else []
    # With two rates, no group has the lowest or the highest.
    compared = not rule.stratified and not event.parts
    groups = Groups([show_label(rule.groups[i]) for i in seats], rates, compared, rate=event.rate)
    starts, ends = zip(*map(rule.ends_of, rule.ramps), strict=True)
    constants = [ramp.tie if ramp.is_constant else nan for ramp in rule.ramps]
    ramps = ramps_chart(
        groups,
        scale,
        ramp_tables(scale, seats, [(starts, ends, rule.thresholds, constants)]),
        rule.cutoff,
        title="Probability of being selected, by score",
    )
    none = [None] * len(seats)
    return [
        ramps,
        *(
            rates_chart(
                replace(groups, rate=part.rate),
                [[found.before[i] for i in seats], none, none],
                (table([found.after], seats), [none], [none]),
                f"{part.rate.capitalize()}s before and after",
            )
            for part, found in (record.compared if record else ())
        ),
    ]


def _of_audit(audit: Audit) -> list[alt.LayerChart]:
    """The compared rates with their intervals and, with a rule, the decisions that change."""
    seats, event = largest(audit.rows, MOST_DRAWN), audit.event
    names, compared = [show_label(audit.groups[i]) for i in seats], not audit.within_strata and not event.parts
    charts = []
    for part in event.simple:
        title, before = f"{part.rate.capitalize()}s", _limits(audit.before.rates[part.name], seats)
        known = [rate for rate in before[0] if rate is not None] or [0.0]
        middle = (min(known) + max(known)) / 2  # a group without a rate is neither the lowest nor the highest
        rates = [middle if rate is None else rate for rate in before[0]]
        groups = Groups(names, rates, compared, rate=part.rate)
        if audit.after is None:
            charts.append(rates_chart(groups, before, title=title))
        else:
            after = [[row] for row in _limits(audit.after.rates[part.name], seats)]
            charts.append(rates_chart(groups, before, after, f"{title} before and after"))
    if audit.changed_to_yes is not None and audit.changed_to_no is not None:
        to_yes, to_no = (table([v], seats) for v in (audit.changed_to_yes, audit.changed_to_no))
        charts.append(changes_chart(groups, to_yes, to_no, title="Decisions that change"))
    return charts


def _limits(found: GroupRates, seats: Sequence[int]) -> list[list[float | None]]:
    """The rates of the chosen groups, and their confidence limits."""
    return table([found.rate, found.lower, found.upper], seats)


def _of_frontier(frontier: Frontier) -> list[alt.LayerChart]:
    """Accuracy against gap."""
    where = "on the fit rows" if frontier.is_in_sample else "on validation rows"
    return [
        frontier_chart(
            frontier.gaps,
            frontier.values,
            list(zip(frontier.lower, frontier.upper, strict=True)),
            (frontier.own_gap, frontier.own_value),
            title=f"{frontier.measure.replace('_', ' ').capitalize()} against gap, {where}",
            measure=frontier.measure,
        )
    ]


_PARTS: dict[type, Any] = {Rule: _of_rule, Audit: _of_audit, Frontier: _of_frontier}
