"""Scores and thresholds: the score distribution of each group and the probability of selection."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fairramp.core.scales import Scale
from fairramp.show.charts.pieces import (
    Groups,
    Look,
    Rows,
    alt,
    digits,
    inline,
    percent_text,
    rows_of_groups,
    table,
    x_axis,
    y_axis,
)

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
    title: Any = "",
) -> alt.LayerChart:
    """Score distribution of each group, with the selected part filled and the probability of selection as a line.

    `ramps` are those of `ramp_tables`. `histograms` holds, for each group, its shares in equal bins of the range
    and its number of rows.
    """
    n, theme, (low, high), higher_is_better = len(groups), groups.theme, scale.axis_range, scale.higher_is_better
    worst, best = (low, high) if higher_is_better else (high, low)
    labels = {"labelExpr": _number(scale, "datum.value", "~f")} if scale.only_ordered else {}

    def x(field: str) -> alt.X:
        return x_axis(field, _SCORES.get(scale.name, "score"), (low, high), "~f", **labels)

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
            base.mark_rect(color=theme.muted, opacity=0.28).encode(x=x("x")),
            base.transform_calculate(
                start=f"{_CONSTANT} || {_WIDE} ? datum.x : {start}",
                stop=f"{_CONSTANT} || {_WIDE} ? datum.end : {stop}",
                chance=f"{_WIDE} ? {_chance('(datum.x + datum.end) / 2')} : "
                f"{_CONSTANT} ? constants[at][datum.g] : 1",
                y2="datum.y - 0.6 * datum.h * sqrt(datum.chance)",
            )
            .transform_filter("datum.stop > datum.start && datum.chance > 0")
            .mark_rect(color=theme.yes)
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
        alt.Chart(inline([{"g": 0}]))
        .transform_calculate(x="cutoff")
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
                text=f"{_CONSTANT} ? {percent_text('constants[at][datum.g]')} + ' of everyone' : "
                + _number(scale, "thresholds[at][datum.g]", ".3f"),
            )
            .encode(x=x("x"), y=y, text="text:N")
        )
        layers += [figure.mark_text(fontWeight=600, **side, **more) for more in (halo, {})]
    row = 56 if not histograms else 130 if n <= 3 else 84
    tables = {**ramps, "cutoff": cutoff_place(scale, cutoff)}
    return rows_of_groups(groups, row, tables, layers, title, name_at=13 if histograms else 9)


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


def cutoff_place(scale: Scale, cutoff: float) -> float:
    """The coordinate of the classifier's own cutoff, which is one of the tables, too."""
    return scale.on_axis(scale.shown_score(cutoff))


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
