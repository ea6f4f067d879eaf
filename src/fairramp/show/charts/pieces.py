"""Parts shared by the charts: colors, axes, and one row per group with its name above."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairramp.core.notebook import LIGHT, variable
from fairramp.errors import FairrampError, installing
from fairramp.show.words import plain_name, shortened

__all__ = [
    "FRAMED",
    "MOST_DRAWN",
    "PRINTED",
    "STYLED",
    "Groups",
    "Look",
    "Rows",
    "Theme",
    "alt",
    "digits",
    "finished",
    "inline",
    "layered",
    "missing_extra",
    "percent_text",
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
#: One row of numbers per position of the slider, one number per group.
Rows = Sequence[Sequence[float | None]]

#: Most groups in a chart with tall rows; the largest are shown.
MOST_DRAWN = 12
#: Longest name in a chart.
_LONGEST = 80
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', Arial, sans-serif"


@dataclass(frozen=True)
class Theme:
    """Colors of a chart, as CSS, and its width."""

    ink: str
    muted: str
    line: str
    paper: str
    yes: str
    no: str
    what_if: str
    background: str
    width: Any


PRINTED = Theme(**LIGHT, background=LIGHT["paper"], width=660)

#: Colors of the frame around the chart in a notebook.
FRAMED = Theme(**{name: variable(name) for name in LIGHT}, background=variable("paper"), width=660)

#: Colors defined by the page's style sheet, for light, dark and print.
STYLED = Theme(
    "var(--ink)",
    "var(--muted)",
    "var(--line)",
    "var(--paper)",
    "var(--yes)",
    "var(--no)",
    "var(--what-if)",
    "transparent",
    "container",
)


@dataclass(frozen=True)
class Groups:
    """The groups of a chart."""

    names: Sequence[str]
    theme: Theme = PRINTED
    at: int = 0  # the slider's position

    def __len__(self) -> int:
        return len(self.names)

    @property
    def shown(self) -> list[str]:
        """Their names as text of the chart."""
        return [shortened(plain_name(name), _LONGEST) for name in self.names]


def y_axis(n_rows: int, field: str = "y", top: float = 0.0) -> alt.Y:
    """The vertical axis: one unit per group, from the top, and `top` units above the first."""
    return alt.Y(
        f"{field}:Q", axis=None, scale=alt.Scale(domain=[-top, n_rows], reverse=True, nice=False, zero=False)
    )


def x_axis(field: str, title: str, domain: Sequence[Any], form: str, **more: Any) -> alt.X:
    """A horizontal axis. A `form` of type f or % never writes an exponent, unlike type g."""
    scale, few = more.pop("scale", {}), alt.ExprRef("width < 420 ? 4 : 8")
    options: dict[str, Any] = {"labelFlush": True, "tickCount": few} | more
    return alt.X(
        f"{field}:Q",
        axis=alt.Axis(title=title, format=form, **options),
        scale=alt.Scale(domain=list(domain), nice=False, zero=False, **scale),
    )


def inline(values: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """Data embedded in the chart."""
    return alt.InlineData(values=[dict(row) for row in values])


def layered(
    layers: Sequence[alt.Chart],
    data: Iterable[Mapping[str, Any]],
    tables: Mapping[str, Any],
    theme: Theme,
    height: float,
    title: Any = "",
) -> alt.LayerChart:
    """Layers over the same data; `tables` are parameters that all of their expressions can use."""
    chart: Any = alt.layer(*layers, data=inline(data), width=theme.width, height=height)
    made: alt.LayerChart = chart.add_params(*(alt.param(name=k, value=v) for k, v in tables.items()))
    return made.properties(title=title) if title else made


def rows_of_groups(
    groups: Groups,
    row: int,
    tables: Mapping[str, Any],
    layers: Sequence[alt.Chart],
    title: Any = "",
    name_at: int = 13,
) -> alt.LayerChart:
    """A chart with one row per group and the groups' names above, `name_at` pixels below the top of the row."""
    n = len(groups)
    names = (
        alt.Chart()
        .transform_calculate(name="names[datum.g]", y=f"datum.g + {name_at / row}")
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
    params = {"at": groups.at, "names": groups.shown}
    return layered(
        [*layers, names], [{"g": i} for i in range(n)], params | dict(tables), groups.theme, row * n, title
    )


def finished(chart: Any, theme: Theme = PRINTED) -> Any:
    """A chart configured with fonts, colors and lines."""
    if theme.width == "container":
        chart = chart.properties(
            autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
            padding={"left": 0, "right": 0, "top": 5, "bottom": 5},
        )
    elif theme is FRAMED:
        chart = chart.properties(padding={"left": 0, "right": 0, "top": 0, "bottom": 5})
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
        title=alt.TitleConfig(
            color=theme.ink,
            anchor="start",
            frame="group",
            fontSize=14,
            subtitleColor=theme.muted,
            subtitleFontSize=12,
            offset=12,
        ),
        text=alt.MarkConfig(color=theme.ink, fontSize=12.5, font=_FONT),
        mark=alt.MarkConfig(aria=False),
        aria=False,
    )


def table(rows: Rows, seats: Sequence[int]) -> list[list[float | None]]:
    """The chosen columns of a table, rounded."""
    return [[digits(row[i]) for i in seats] for row in rows]


def percent_text(share: str) -> str:
    """An expression that formats a share like `core.words.percent`: a tiny one is not 0.0%."""
    rounded = f"format(100 * {share}, '.1f')"
    return f"({share} > 0 && {rounded} == '0.0' ? '<0.1' : {rounded}) + '%'"


def digits(value: float | None) -> float | None:
    """A number rounded to 9 digits, more than a chart can show; None for NaN."""
    return None if value is None or value != value else float(f"{value:.9g}")
