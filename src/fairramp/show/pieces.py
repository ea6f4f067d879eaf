"""What the charts have in common: colours, axes, and one row per group with its name above."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairramp.show.words import plain_name, shortened

__all__ = [
    "PRINTED",
    "STYLED",
    "Spec",
    "Theme",
    "by_group",
    "config",
    "digits",
    "group_colours",
    "rows_of_groups",
    "table",
    "x_axis",
    "y_axis",
]

#: Longest name in a chart.
_LONGEST = 80


Spec = dict[str, Any]


@dataclass(frozen=True)
class Theme:
    """Colours of a chart: a word of CSS each."""

    ink: str
    muted: str
    line: str
    paper: str
    accent: str
    other: str
    groups: tuple[str, ...]
    width: int | str


#: Okabe and Ito's colours, without yellow and black.
_OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")


PRINTED = Theme("#1b1f24", "#5b6470", "#d9dde2", "#ffffff", "#0072B2", "#D55E00", _OKABE_ITO, 560)


#: Colours that the page's style sheet defines, for light, dark and print.
STYLED = Theme(
    "var(--ink)",
    "var(--muted)",
    "var(--line)",
    "var(--paper)",
    "var(--accent)",
    "var(--other)",
    tuple(f"var(--group-{i})" for i in range(len(_OKABE_ITO))),
    "container",
)


def config(theme: Theme) -> Spec:
    """Fonts, colours and lines of a whole chart."""
    font = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', Arial, sans-serif"
    return {
        "font": font,
        "background": None if theme is STYLED else theme.paper,
        "view": {"stroke": None},
        "axis": {
            "labelColor": theme.muted,
            "titleColor": theme.muted,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 400,
            "gridColor": theme.line,
            "domain": False,
            "ticks": False,
            "labelPadding": 6,
            "titlePadding": 10,
        },
        "title": {"color": theme.ink, "anchor": "start", "fontSize": 14, "subtitleColor": theme.muted},
        "text": {"color": theme.ink, "fontSize": 12.5, "font": font},
        "mark": {"aria": False},
        "aria": False,
    }


def rows_of_groups(
    theme: Theme, n_rows: int, row: int, names: Sequence[str], params: Spec, layers: list[Spec], title: Any
) -> Spec:
    """A chart with one row per group and the groups' names."""
    name = {
        "transform": [
            {"calculate": "names[datum.g]", "as": "name"},
            {"calculate": f"datum.g + {13 / row}", "as": "y"},
        ],
        "mark": {
            "type": "text",
            "align": "left",
            "baseline": "middle",
            "fontWeight": 600,
            "x": 0,
            "limit": {"expr": "width * 0.96"},
            "tooltip": {"expr": "datum.name"},
        },
        "encoding": {"y": y_axis(n_rows), "text": {"field": "name", "type": "nominal"}},
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        **({"title": title} if title else {}),
        "width": theme.width,
        "height": row * n_rows,
        "autosize": {"type": "fit-x", "contains": "padding"} if theme.width == "container" else {"type": "pad"},
        "params": [
            {"name": "at", "value": 0},
            {"name": "names", "value": [shortened(plain_name(n), _LONGEST) for n in names]},
            *({"name": key, "value": value} for key, value in params.items()),
        ],
        "data": {"values": [{"g": i} for i in range(n_rows)]},
        "layer": [*layers, name],
        "config": config(theme),
    }


def y_axis(n_rows: int, field: str = "y") -> Spec:
    """The vertical axis: one unit per group, from the top."""
    scale = {"domain": [0, n_rows], "reverse": True, "nice": False, "zero": False}
    return {"field": field, "type": "quantitative", "axis": None, "scale": scale}


def x_axis(
    field: str, title: str, domain: Sequence[float], form: str, values: Sequence[float] | None = None
) -> Spec:
    """A horizontal axis."""
    axis: Spec = {
        "title": title,
        "format": form,
        "tickCount": {"expr": "width < 420 ? 4 : 8"},
        "labelFlush": True,
    }
    if values is not None:
        axis["values"] = list(values)
    return {
        "field": field,
        "type": "quantitative",
        "axis": axis,
        "scale": {"domain": list(domain), "nice": False, "zero": False},
    }


def group_colours(theme: Theme, rates: Sequence[float], *, compared: bool = True) -> tuple[list[str], str]:
    """A colour for each group, and a sentence if colours need one.

    More groups than colours that can be told apart get none of their own, as two groups of one colour would seem
    to belong together: then the lowest and the highest of the `rates` stand out, if all are `compared`.
    """
    n = len(rates)
    if n <= len(theme.groups):
        return list(theme.groups[:n]), ""
    colours = [theme.muted] * n
    if not compared or min(rates) == max(rates):
        return colours, ""
    colours[rates.index(min(rates))] = theme.accent
    colours[rates.index(max(rates))] = theme.other
    return (
        colours,
        "In colour: of these groups, whom the classifier itself selects least (blue) and most often (orange).",
    )


def by_group(colours: Sequence[str]) -> Spec:
    """The colour of each group's marks."""
    scale = {"domain": list(range(len(colours))), "range": list(colours)}
    return {"field": "g", "type": "nominal", "legend": None, "scale": scale}


def table(rows: Sequence[Sequence[float | None]], seats: Sequence[int]) -> list[list[float | None]]:
    """The chosen columns of a table, with the digits that can be seen."""
    return [[digits(row[i]) for i in seats] for row in rows]


def digits(value: float | None) -> float | None:
    """A number with the digits that can be seen."""
    return None if value is None else float(f"{value:.9g}")
