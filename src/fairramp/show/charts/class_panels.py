"""A number of every class and group, before and after: one panel per class, with the groups below each other.

Everything is placed in pixels, so that up to three panels stand beside each other, with the names to their left.
Each row of panels has the classes' names above and the numbers of the axis below.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fairramp.core.words import percent
from fairramp.show.charts.dumbbell import Dots
from fairramp.show.charts.pieces import Groups, Look, alt, digits, inline, layered
from fairramp.show.words import plain_name, shortened

#: Most classes drawn, and most panels beside each other.
MOST_CLASSES, _BESIDE = 12, 3
#: Height of a row, of the names above a panel and of the axis below, in pixels.
_ROW, _ABOVE, _BELOW = 34, 26, 44
#: Width of the columns of names and people, and room for a number beside the first and the last dot.
_NAMES, _PEOPLE, _LABEL = 124, 50, 42
#: Longest name of a class.
_LONGEST = 24
#: Steps between the numbers on an axis.
_STEPS = [m * 10.0**e for e in range(-7, 7) for m in (1, 2, 2.5, 5)]


@dataclass(frozen=True)
class Axis:
    """What the panels show: its name, the ends of the axis, a value as text, and the values written below."""

    name: str
    start: float
    end: float
    text: Callable[[float], str]
    ticks: dict[float, str]


def share_axis(most: float) -> Axis:
    """An axis for rates, from 0% to the largest, with two or three round numbers."""
    step = next(step for step in _STEPS if most / step < 2.5)
    ticks = {step * i: f"{100 * step * i:.4g}%" for i in range(math.floor(most / step + 1e-9) + 1)}
    return Axis("rate", 0.0, most, percent, ticks)


def panels_chart(
    classes: Sequence[str],
    groups: Groups,
    axis: Axis,
    before: Dots,
    after: Dots | None = None,
    *,
    people: Sequence[str] = (),
    words: tuple[str, str] = ("classifier alone", "with the rule"),
    decided: bool = True,
    title: Any = "",
) -> alt.LayerChart:
    """One panel per class; rows of `before` and `after` are classes, their columns groups.

    `people` are the groups' sizes as text, and `words` name both sets of decisions. The lines from before to
    after are blue or brown if the rule `decided` that rates rise or fall, otherwise gray.
    """
    shown = [shortened(plain_name(name), _LONGEST) for name in classes[:MOST_CLASSES]]
    panels = _Panels(shown, groups, axis, len(people) > 0)
    theme, layers = groups.theme, panels.frame(people)
    if after is not None:
        layers += panels.joined(before, after, decided=decided)
    layers += panels.dots(before, words[0], other=after, first=True)
    if after is not None:
        layers += panels.dots(after, words[1], other=before, first=False)
    return layered(layers, [], {}, theme, panels.height, title)


@dataclass(frozen=True)
class _Panels:
    """Places, in pixels, and layers."""

    classes: Sequence[str]
    groups: Groups
    axis: Axis
    has_people: bool

    @property
    def beside(self) -> int:
        """Number of panels beside each other: rows of panels are about equally long."""
        rows = math.ceil(len(self.classes) / _BESIDE)
        return math.ceil(len(self.classes) / rows)

    @property
    def block(self) -> float:
        """Height of a row of panels."""
        return _ABOVE + _ROW * len(self.groups) + _BELOW

    @property
    def height(self) -> float:
        """Height of the chart."""
        return self.block * math.ceil(len(self.classes) / self.beside)

    @property
    def left(self) -> float:
        """Where the first panel starts."""
        return _NAMES + _PEOPLE * self.has_people

    @property
    def wide(self) -> float:
        """Width of a panel."""
        return float((self.groups.theme.width - self.left) / self.beside)

    def start(self, c: int) -> float:
        """Where the axis of a class starts."""
        return self.left + self.wide * (c % self.beside) + _LABEL

    def x(self, c: int, value: float) -> float:
        """Where a value of a class is."""
        wide = self.wide - 2 * _LABEL
        return self.start(c) + wide * (value - self.axis.start) / (self.axis.end - self.axis.start)

    def top(self, c: int) -> float:
        """Where the first row of a class starts."""
        return self.block * (c // self.beside) + _ABOVE

    def _chart(self, rows: Sequence[dict[str, Any]], **fields: str) -> alt.Chart:
        """A chart of rows with fields x and y, and others, in pixels."""
        across = alt.Scale(domain=[0, self.groups.theme.width], nice=False, zero=False)
        down = alt.Scale(domain=[0, self.height], reverse=True, nice=False, zero=False)
        chart: alt.Chart = alt.Chart(inline(rows)).encode(
            x=alt.X("x:Q", axis=None, scale=across), y=alt.Y("y:Q", axis=None, scale=down), **fields
        )
        return chart

    def frame(self, people: Sequence[str]) -> list[alt.Chart]:
        """Names of classes and groups, people, lines between groups, and the axes."""
        theme, every, n = self.groups.theme, range(len(self.classes)), len(self.groups)
        first = [c for c in every if c % self.beside == 0]
        middle = [self.top(c) + _ROW * (i + 0.5) for c in first for i in range(n)]
        lines = [{"x": 0, "end": theme.width, "y": self.top(c) + _ROW * i} for c in first for i in range(1, n)]
        grid: list[dict[str, Any]] = [
            {
                "x": self.x(c, tick),
                "y": self.top(c),
                "end": self.top(c) + _ROW * n,
                "below": text,
            }
            for c in every
            for tick, text in self.axis.ticks.items()
        ]
        titles = [
            {
                "x": self.x(c, (self.axis.start + self.axis.end) / 2),
                "y": self.top(c) + _ROW * n + 30,
                "text": self.axis.name,
            }
            for c in every
        ]
        names = [{"x": 0, "y": y, "text": self.groups.shown[i % n]} for i, y in enumerate(middle)]
        sizes = (
            [{"x": self.left - 8, "y": y, "text": people[i % n]} for i, y in enumerate(middle)] if people else []
        )
        classes = [{"x": self.start(c) - 4, "y": self.top(c) - 12, "text": self.classes[c]} for c in every]
        plain: Look = {"baseline": "middle", "align": "left"}
        muted: Look = {"baseline": "middle", "color": theme.muted, "fontSize": 12}
        return [
            self._chart(lines, x2="end").mark_rule(color=theme.line, opacity=0.6),
            self._chart(grid, y2="end").mark_rule(color=theme.line),
            self._chart([{**one, "y": one["end"] + 12} for one in grid], text="below:N").mark_text(**muted),
            self._chart(titles, text="text:N").mark_text(**muted),
            self._chart(names, text="text:N").mark_text(
                **plain, limit=_NAMES - 8, fontWeight=600, tooltip=alt.ExprRef("datum.text")
            ),
            self._chart(sizes, text="text:N").mark_text(**(muted | {"align": "right"})),
            self._chart(classes, text="text:N").mark_text(
                **plain, limit=self.wide - _LABEL, fontWeight=700, tooltip=alt.ExprRef("datum.text")
            ),
        ]

    def joined(self, before: Dots, after: Dots, *, decided: bool) -> list[alt.Chart]:
        """The lines from before to after: blue or brown if the rule decided that they rise or fall."""
        theme = self.groups.theme
        rows = [
            {"x": place["x"], "end": self.x(place["c"], end), "y": place["y"], "rises": end >= place["value"]}
            for place in self._places(before)
            if (end := after.rates[place["c"]][place["i"]]) is not None and end == end
        ]
        yes, no = (theme.yes, theme.no) if decided else (theme.muted, theme.muted)
        color = alt.condition("datum.rises", alt.value(yes), alt.value(no))
        return [self._chart(rows, x2="end").mark_rule(strokeWidth=3).encode(color=color)]

    def dots(self, dots: Dots, word: str, *, other: Dots | None, first: bool) -> list[alt.Chart]:
        """The dots of one set of decisions, with their confidence limits, and their numbers beside the line."""
        theme, hollow = self.groups.theme, first and other is not None
        dot: Look = (
            {"fill": theme.paper, "stroke": theme.muted} if hollow else {"fill": theme.ink, "stroke": theme.ink}
        )
        look: Look = {"color": theme.muted} if hollow else {"fontWeight": 700}
        rows = self._places(dots)
        for row in rows:
            c, i = row["c"], row["i"]
            there = other.rates[c][i] if other else None
            before, after = (row["value"], there) if first else (there, row["value"])
            rises = before is None or after is None or after >= before
            row |= {
                "text": self.axis.text(row["value"]),
                "when": word,
                "group": self.groups.shown[i],
                "class": self.classes[c],
                "left": rises == first,
            }
        shift = _ROW * (0.0 if other is None else -0.32 if first else 0.32)
        lines = [
            {"x": self.x(row["c"], low), "end": self.x(row["c"], high), "y": row["y"] + shift}
            for row in rows
            if dots.lower
            and (low := dots.lower[row["c"]][row["i"]]) is not None
            and (high := dots.upper[row["c"]][row["i"]]) is not None
            and low == low
        ]
        hover = [
            alt.Tooltip("class:N"),
            alt.Tooltip("group:N"),
            alt.Tooltip("when:N", title="decisions"),
            alt.Tooltip("value:Q", title=self.axis.name, format=".6f"),
        ]
        layers = [
            self._chart(lines, x2="end").mark_rule(strokeWidth=1.5, color=dot["stroke"]),
            self._chart(rows)
            .mark_point(size=70, opacity=1, filled=True, strokeWidth=2, **dot)
            .encode(tooltip=hover),
        ]
        # On the outer sides of the two dots, so the numbers never overlap.
        sides: dict[str, Look] = {
            "datum.left": {"align": "right", "dx": -7},
            "!datum.left": {"align": "left", "dx": 7},
        }
        if other is None:  # the interval is on both sides
            sides = {"true": {"dy": -11} if dots.lower else {"align": "left", "dx": 7}}
        for where, side in sides.items():
            figure = self._chart(rows, text="text:N").transform_filter(where)
            layers.append(figure.mark_text(baseline="middle", fontSize=11.5, **look, **side))
        return layers

    def _places(self, dots: Dots) -> list[dict[str, Any]]:
        """The dots that are drawn, with their places."""
        return [
            {
                "c": c,
                "i": i,
                "value": digits(value),
                "x": self.x(c, value),
                "y": self.top(c) + _ROW * (i + 0.5),
            }
            for c in range(len(self.classes))
            for i, value in enumerate(dots.rates[c])
            if value is not None and value == value
        ]
