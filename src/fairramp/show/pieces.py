"""Parts shared by the charts: colors, axes, and one row per group with its name above."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairramp.errors import FairrampError, installing
from fairramp.show.words import plain_name, shortened

__all__ = [
    "PRINTED",
    "STYLED",
    "Groups",
    "Look",
    "Theme",
    "alt",
    "digits",
    "finished",
    "inline",
    "layered",
    "missing_extra",
    "rows_of_groups",
    "table",
    "x_axis",
    "y_axis",
]


def missing_extra(name: str) -> FairrampError:
    """The error for a missing library of the report."""
    return FairrampError(
        "{name} is not installed",
        remedy="install it with: {command}",
        name=name,
        command=installing("report"),
    )


try:
    import altair as alt  # imported by the charts from here, so that the error below covers all of them
except ImportError as error:
    raise missing_extra(error.name or "altair") from None

#: Properties of a mark.
Look = dict[str, Any]

#: Longest name in a chart.
_LONGEST = 80
#: Okabe and Ito's colors, without yellow and black.
_OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', Arial, sans-serif"


@dataclass(frozen=True)
class Theme:
    """Colors of a chart, as CSS, and its width."""

    ink: str
    muted: str
    line: str
    paper: str
    accent: str
    other: str
    groups: tuple[str, ...]
    background: str
    width: Any


PRINTED = Theme("#1b1f24", "#5b6470", "#d9dde2", "#ffffff", "#0072B2", "#D55E00", _OKABE_ITO, "#ffffff", 560)

#: Colors defined by the page's style sheet, for light, dark and print.
STYLED = Theme(
    "var(--ink)",
    "var(--muted)",
    "var(--line)",
    "var(--paper)",
    "var(--accent)",
    "var(--other)",
    tuple(f"var(--group-{i})" for i in range(len(_OKABE_ITO))),
    "transparent",
    "container",
)


@dataclass(frozen=True)
class Groups:
    """The groups of a chart.

    If there are more groups than distinguishable colors, no group has its own color, because two groups of one
    color would seem to belong together. Then only the lowest and the highest of the `rates` are colored, provided
    that all groups are `compared`.
    """

    names: Sequence[str]
    rates: Sequence[float] = ()
    compared: bool = True
    theme: Theme = PRINTED
    at: int = 0  # the slider's position
    rate: str = "selection rate"  # what the rates are called

    def __len__(self) -> int:
        return len(self.names)

    @property
    def special(self) -> dict[int, str]:
        """The colors of the lowest and the highest rate, if only these are colored."""
        rates = self.rates
        if len(rates) <= len(self.theme.groups) or not self.compared or min(rates) == max(rates):
            return {}
        return {rates.index(min(rates)): self.theme.accent, rates.index(max(rates)): self.theme.other}

    @property
    def meaning(self) -> str:
        """What the colors mean, if they mean anything."""
        return (
            f"In color: of these groups, the lowest (blue) and highest (orange) {self.rate} before the rule."
            if self.special
            else ""
        )

    @property
    def color(self) -> alt.Color:
        """The color of each group's marks."""
        n, special, own = len(self.rates), self.special, self.theme.groups
        colors = own[:n] if n <= len(own) else [special.get(i, self.theme.muted) for i in range(n)]
        return alt.Color("g:N", legend=None, scale=alt.Scale(domain=list(range(n)), range=list(colors)))


def y_axis(n_rows: int, field: str = "y") -> alt.Y:
    """The vertical axis: one unit per group, from the top."""
    return alt.Y(
        f"{field}:Q", axis=None, scale=alt.Scale(domain=[0, n_rows], reverse=True, nice=False, zero=False)
    )


def x_axis(field: str, title: str, domain: Sequence[float], form: str, **more: Any) -> alt.X:
    """A horizontal axis."""
    return alt.X(
        f"{field}:Q",
        axis=alt.Axis(
            title=title, format=form, tickCount=alt.ExprRef("width < 420 ? 4 : 8"), labelFlush=True, **more
        ),
        scale=alt.Scale(domain=list(domain), nice=False, zero=False),
    )


def inline(values: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """Data embedded in the chart."""
    return alt.InlineData(values=[dict(row) for row in values])


def layered(
    layers: Sequence[alt.Chart],
    data: Iterable[Mapping[str, Any]],
    tables: Mapping[str, Any],
    theme: Theme,
    height: int,
    title: Any = "",
) -> alt.LayerChart:
    """Layers over the same data; `tables` are parameters that all of their expressions can use."""
    chart: Any = alt.layer(*layers, data=inline(data), width=theme.width, height=height)
    made: alt.LayerChart = chart.add_params(*(alt.param(name=k, value=v) for k, v in tables.items()))
    return made.properties(title=title) if title else made


def rows_of_groups(
    groups: Groups, row: int, tables: Mapping[str, Any], layers: Sequence[alt.Chart], title: Any = ""
) -> alt.LayerChart:
    """A chart with one row per group and the groups' names."""
    n = len(groups)
    names = (
        alt.Chart()
        .transform_calculate(name="names[datum.g]", y=f"datum.g + {13 / row}")
        .mark_text(
            align="left",
            baseline="middle",
            fontWeight=600,
            x=0,
            limit=alt.ExprRef("width * 0.96"),
            tooltip=alt.ExprRef("datum.name"),
        )
        .encode(y=y_axis(n), text="name:N")
    )
    params = {"at": groups.at, "names": [shortened(plain_name(name), _LONGEST) for name in groups.names]}
    return layered(
        [*layers, names], [{"g": i} for i in range(n)], params | dict(tables), groups.theme, row * n, title
    )


def finished(chart: Any, theme: Theme = PRINTED) -> Any:
    """A chart configured with fonts, colors and lines."""
    if theme.width == "container":
        chart = chart.properties(autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    return chart.configure(
        font=_FONT,
        background=theme.background,
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            labelColor=theme.muted,
            titleColor=theme.muted,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight=400,
            gridColor=theme.line,
            domain=False,
            ticks=False,
            labelPadding=6,
            titlePadding=10,
        ),
        title=alt.TitleConfig(color=theme.ink, anchor="start", fontSize=14, subtitleColor=theme.muted),
        text=alt.MarkConfig(color=theme.ink, fontSize=12.5, font=_FONT),
        mark=alt.MarkConfig(aria=False),
        aria=False,
    )


def table(rows: Sequence[Sequence[float | None]], seats: Sequence[int]) -> list[list[float | None]]:
    """The chosen columns of a table, rounded."""
    return [[digits(row[i]) for i in seats] for row in rows]


def digits(value: float | None) -> float | None:
    """A number rounded to 9 digits, more than a chart can show; None for NaN."""
    return None if value is None or value != value else float(f"{value:.9g}")
