"""Rates before and after, joined by a line: one row per group, with its people and the answers that change.

On a wide page, a row is one line: name, people, rates and changes in four columns. On a narrow one, name, people
and changes stand above the rates. The page sets the height of the rows to match; see `HEIGHTS`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fairramp.show.charts.pieces import (
    Groups,
    Look,
    Rows,
    alt,
    inline,
    layered,
    percent_text,
    table,
    x_axis,
    y_axis,
)

#: Most groups drawn; the largest are shown.
MOST_ROWS = 40
#: With more rows than this, the axis is above them: below, it may be off the screen.
MANY_ROWS = 12
#: Height of a row on a wide page, and on a narrow one.
HEIGHTS = (34, 52)
#: The width at which a page is wide, and of the columns of names, people and changes, in pixels.
WIDE, _NAMES, _PEOPLE, _CHANGES = 620, 150, 66, 118
#: The width at which the axis has more numbers, although the columns leave it only a part.
_SPACIOUS = 800
#: Room for the numbers beside the first and the last dot.
_LABEL = 46
#: Room above the first row for the note on the band, in rows.
_TOP = 0.55
#: Names of confidence limits.
_ENDS = {"low": "CI from", "high": "CI to"}
_IS_WIDE = f"width >= {WIDE}"


@dataclass(frozen=True)
class Dots:
    """Rates of the groups drawn and, if known, their confidence limits; one row per position of the slider."""

    rates: Rows
    lower: Rows = ()
    upper: Rows = ()


@dataclass(frozen=True)
class Changes:
    """Numbers of answers that change, as text; one row per position of the slider."""

    to_yes: Sequence[Sequence[str]]
    to_no: Sequence[Sequence[str]]
    words: tuple[str, str] = field(default=("now yes", "now no"), kw_only=True)  # after each number


def dumbbell_chart(
    groups: Groups,
    before: Dots,
    after: Dots | None = None,
    *,
    rate: str = "selection rate",
    people: Sequence[str] = (),
    changes: Changes | None = None,
    band: Rows | None = None,
    highest: float | None = None,
    words: tuple[str, str] = ("classifier alone", "with the rule"),
    decided: bool = True,
    live: bool = False,
    title: Any = "",
) -> alt.LayerChart:
    """Rates of each group before and, if given, after.

    `people` are the groups' sizes as text, `band` the lowest and the highest rate after at each position, which
    is shaded, `highest` is the highest rate that must fit on the axis, by default that of this chart, and `words`
    name both sets of decisions. The lines from before to after are blue or brown if the rule `decided` that rates
    rise or fall, otherwise gray. A `live` chart can show other rates: its axis follows its tables.
    """
    dumbbell = _Dumbbell(groups, rate, before, after, people, changes, band, highest, decided=decided, live=live)
    layers = [*dumbbell.band_layers(), *dumbbell.lines()]
    layers += dumbbell.dots("before", before, words[0])
    if after is not None:
        layers += dumbbell.dots("after", after, words[1])
    layers += dumbbell.columns()
    theme, n = groups.theme, len(groups)
    tall = HEIGHTS[0] if theme.width == "container" or theme.width >= WIDE else HEIGHTS[1]
    return layered(
        layers, [{"g": i} for i in range(n)], dumbbell.tables(), theme, tall * (n + dumbbell.top), title
    )


def dumbbell_tables(groups: Groups, before: Dots, after: Dots, *, rate: str, **more: Any) -> dict[str, Any]:
    """The parameters of a live chart with these arguments; a page can set them without drawing it again."""
    return _Dumbbell(groups, rate, before, after, **more, live=True).tables()


@dataclass(frozen=True)
class _Dumbbell:
    """Layers and tables of a chart. Tables are named after the rate, as other rates may have charts beside it."""

    groups: Groups
    rate: str
    before: Dots
    after: Dots | None
    people: Sequence[str]
    changes: Changes | None
    band: Rows | None
    highest: float | None
    decided: bool = True
    live: bool = False

    def tables(self) -> dict[str, Any]:
        """The parameters of the chart."""
        dots = {"before": self.before} | ({"after": self.after} if self.after else {})
        changed = self.changes
        found: dict[str, Any] = {
            "names": self.groups.shown,
            "people": list(self.people),
            **{
                f"{when}{end}": table(rows, range(len(self.groups)))
                for when, one in dots.items()
                for end, rows in {"": one.rates, "_low": one.lower, "_high": one.upper}.items()
                if rows
            },
            **({"band": table(self.band, range(2))} if self.band else {}),
            **(
                {"to_yes": list(map(list, changed.to_yes)), "to_no": list(map(list, changed.to_no))}
                if changed
                else {}
            ),
            **({"top": self._top_rate} if self.live else {}),
        }
        return {"at": self.groups.at} | {self._name(name): value for name, value in found.items()}

    def _name(self, table: str) -> str:
        return f"{self.rate.replace(' ', '_')}_{table}"

    def _of(self, table: str) -> str:
        """An expression for the group's entry in a table; what is true before does not depend on the slider."""
        at = "" if table in ("names", "people") else "[0]" if table.startswith("before") else "[at]"
        return f"{self._name(table)}{at}[datum.g]"

    @property
    def top(self) -> float:
        """Room above the first row, in rows."""
        return _TOP if self.band else 0.0

    def y(self, field: str = "y") -> alt.Y:
        """The vertical axis."""
        return y_axis(len(self.groups), field, self.top)

    @property
    def _top_rate(self) -> float:
        """The end of the horizontal axis."""
        shown = [self.before, *([self.after] if self.after else [])]
        values = [v for dots in shown for rows in (dots.rates, dots.upper) for row in rows for v in row]
        highest = max((v for v in values if v is not None and v == v), default=0.0)
        return min(max(1.04 * (highest if self.highest is None else self.highest), 0.02), 1)

    def x(self, field: str) -> alt.X:
        """The horizontal axis."""
        left = _NAMES + _PEOPLE * bool(self.people) + _LABEL
        right = _CHANGES * (self.changes is not None) + _LABEL
        return x_axis(
            field,
            self.rate,
            (0, alt.ExprRef(self._name("top")) if self.live else self._top_rate),
            "~%",
            labelFlush=False,
            orient="top" if len(self.groups) > MANY_ROWS else "bottom",
            scale={
                "range": [
                    alt.ExprRef(f"{_IS_WIDE} ? {left} : {_LABEL}"),
                    alt.ExprRef(f"width - ({_IS_WIDE} ? {right} : {_LABEL})"),
                ]
            },
        )

    @property
    def _row(self) -> alt.Chart:
        """One mark per group, with its rates."""
        row: alt.Chart = (
            alt.Chart()
            .transform_calculate(
                x=self._of("before"),
                end=self._of("after" if self.after else "before"),
                y=f"datum.g + ({_IS_WIDE} ? 0.5 : 0.68)",
                name=self._of("names"),
                rises="datum.end >= datum.x",
            )
            .encode(y=self.y())
        )
        return row

    def lines(self) -> list[alt.Chart]:
        """Lines below all groups but the last, and the line from before to after."""
        theme = self.groups.theme
        below = (
            alt.Chart()
            .transform_filter(f"datum.g < {len(self.groups) - 1}")
            .transform_calculate(y="datum.g + 1")
            .mark_rule(color=theme.line, opacity=0.6)
            .encode(y=self.y())
        )
        if self.after is None:
            return [below]
        yes, no = (theme.yes, theme.no) if self.decided else (theme.muted, theme.muted)
        color = alt.condition("datum.rises", alt.value(yes), alt.value(no))
        joined = self._row.transform_filter("isValid(datum.x) && isValid(datum.end)").mark_rule(strokeWidth=3)
        return [below, joined.encode(x=self.x("x"), x2="end", color=color)]

    def band_layers(self) -> list[alt.Chart]:
        """The rates of all groups after, shaded, with a note above."""
        if not self.band:
            return []
        muted, band = self.groups.theme.muted, f"{self._name('band')}[at]"
        base = (
            alt.Chart(inline([{"y": 0, "y2": len(self.groups), "note": -_TOP / 2}]))
            .transform_calculate(
                x=f"{band}[0]",
                end=f"{band}[1]",
                middle="(datum.x + datum.end) / 2",
                low=percent_text("datum.x"),
                high=percent_text("datum.end"),
                range="(datum.low == datum.high ? '' : datum.low + ' to ') + datum.high",
                text="'all groups now ' + datum.range",
            )
            .transform_filter("isValid(datum.x)")
        )
        return [
            base.mark_rect(color=muted, opacity=0.14).encode(x=self.x("x"), x2="end", y=self.y(), y2="y2"),
            base.mark_text(color=muted, baseline="middle").encode(
                x=self.x("middle"), y=self.y("note"), text="text:N"
            ),
        ]

    def dots(self, when: str, dots: Dots, word: str) -> list[alt.Chart]:
        """The dots of one set of decisions, with their confidence limits, and their numbers beside the line."""
        theme, both = self.groups.theme, self.after is not None
        filled: Look = {"fill": theme.ink, "stroke": theme.ink}
        dot = {"fill": theme.paper, "stroke": theme.muted} if when == "before" and both else filled
        text: Look = {"color": theme.muted} if when == "before" and both else {"fontWeight": 700}
        placed = self._row.transform_calculate(
            place=self._of(when),
            when=f"'{word}'",
            text=percent_text("datum.place"),
            left=f"datum.rises {'==' if when == 'before' else '!='} true",
            **({"low": self._of(f"{when}_low"), "high": self._of(f"{when}_high")} if dots.lower else {}),
        ).transform_filter("isValid(datum.place)")
        hover = [
            alt.Tooltip("name:N", title="group"),
            alt.Tooltip("when:N", title="decisions"),
            alt.Tooltip("place:Q", title=self.rate, format=".6f"),
        ]
        layers = []
        if dots.lower:
            hover += [alt.Tooltip(f"{end}:Q", title=name, format=".6f") for end, name in _ENDS.items()]
            shift = 0.0 if not both else -0.32 if when == "before" else 0.32
            layers.append(
                placed.transform_calculate(y=f"datum.y + {shift}")
                .transform_filter("isValid(datum.low)")
                .mark_rule(strokeWidth=1.5, color=dot["stroke"])
                .encode(x=self.x("low"), x2="high")
            )
        layers.append(
            placed.mark_point(size=90, opacity=1, filled=True, strokeWidth=2, **dot).encode(
                x=self.x("place"), tooltip=hover
            )
        )
        # On the outer sides of the two dots, so the numbers never overlap.
        sides: dict[str, Look] = {
            "datum.left": {"align": "right", "dx": -9},
            "!datum.left": {"align": "left", "dx": 9},
        }
        if not both:  # the interval is on both sides
            sides = {"true": {"dy": -12} if dots.lower else {"align": "left", "dx": 9}}
        for where, side in sides.items():
            figure = placed.transform_filter(where).mark_text(baseline="middle", **text, **side)
            layers.append(figure.encode(x=self.x("place"), text="text:N"))
        return layers

    def columns(self) -> list[alt.Chart]:
        """Names and people to the left, changes to the right; on a narrow page, above the rates."""
        theme, size = self.groups.theme, self._of("people") if self.people else "''"
        line = self._row.transform_calculate(y=f"datum.g + ({_IS_WIDE} ? 0.5 : 0.26)")
        found = [
            line.transform_calculate(label=f"{_IS_WIDE} || !{size} ? datum.name : datum.name + '  ·  ' + {size}")
            .mark_text(
                align="left",
                baseline="middle",
                fontWeight=600,
                x=0,
                limit=alt.ExprRef(f"{_IS_WIDE} ? {_NAMES} : width * {0.6 if self.changes else 0.96}"),
                tooltip=alt.ExprRef("datum.name"),
            )
            .encode(text="label:N")
        ]
        if self.people:
            found.append(
                line.transform_filter(_IS_WIDE)
                .transform_calculate(label=size)
                .mark_text(align="right", baseline="middle", x=_NAMES + _PEOPLE - 6, color=theme.muted)
                .encode(text="label:N")
            )
        if self.changes is None:
            return found
        both = f"{self._of('to_yes')} && {self._of('to_no')}"
        ways = (("to_yes", theme.yes, -7), ("to_no", theme.no, 7))
        for (source, color, dy), word in zip(ways, self.changes.words, strict=True):
            found.append(
                line.transform_calculate(
                    number=self._of(source),
                    # Two lines if answers change in both directions.
                    y=f"datum.y + ({both} ? {dy} / ({_IS_WIDE} ? {HEIGHTS[0]} : {HEIGHTS[1]}) : 0)",
                )
                .transform_filter("datum.number")
                .transform_calculate(label=f"datum.number + ' {word}'")
                .mark_text(align="right", baseline="middle", x=alt.ExprRef("width"), color=color, fontWeight=600)
                .encode(text="label:N")
            )
        return found
