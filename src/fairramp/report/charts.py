"""The charts, as Altair charts: for notebooks, for files and for the page.

Each draws what it is given, group under group, the name above its row. Numbers that depend on the slider are
tables (position × group) in parameters of the chart, and the position itself is the parameter `at`: moving it
redraws everything, without data being sent twice. Groups are numbers in the data and names only in texts, so that
no name can mean anything to the drawing program.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairramp.exceptions import FairrampError
from fairramp.groups import show_label
from fairramp.report.words import plain_name, shortened
from fairramp.rule import OFFSETS
from fairramp.scales import SCALES

if TYPE_CHECKING:
    import altair

    from fairramp.audit import Audit
    from fairramp.frontier import Frontier
    from fairramp.report.content import Content
    from fairramp.rule import Rule

__all__ = [
    "MOST_DRAWN",
    "audit_chart",
    "chart",
    "content_charts",
    "frontier_chart",
    "missing_extra",
    "rule_chart",
]

#: Groups in a chart; the largest are drawn.
MOST_DRAWN = 12
#: Longest name in a chart.
_LONGEST = 80

Spec = dict[str, Any]
Rows = Sequence[Sequence[float]]


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


def missing_extra(name: str) -> FairrampError:
    """What to do where a library of the report is not there."""
    return FairrampError(f"{name} is not installed; install it with: pip install 'fairramp[report]'")


def chart(spec: Spec) -> "altair.LayerChart | altair.VConcatChart":
    """A specification as an Altair chart."""
    try:
        import altair
    except ImportError:
        raise missing_extra("altair") from None
    made: altair.LayerChart | altair.VConcatChart = altair.Chart.from_dict(spec)  # type: ignore[assignment]
    return made


# Pieces -----------------------------------------------------------------------------------------


def _config(theme: Theme) -> Spec:
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


def _chart(
    theme: Theme, n_rows: int, row: int, names: Sequence[str], params: Spec, layers: list[Spec], title: str
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
        "encoding": {"y": _y(n_rows), "text": {"field": "name", "type": "nominal"}},
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
        "config": _config(theme),
    }


def _y(n_rows: int, field: str = "y") -> Spec:
    scale = {"domain": [0, n_rows], "reverse": True, "nice": False, "zero": False}
    return {"field": field, "type": "quantitative", "axis": None, "scale": scale}


def _x(field: str, title: str, domain: Sequence[float], form: str, values: Sequence[float] | None = None) -> Spec:
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


def _colour(theme: Theme, n_rows: int) -> Spec:
    colours = [theme.groups[i % len(theme.groups)] for i in range(n_rows)]
    return {
        "field": "g",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": list(range(n_rows)), "range": colours},
    }


def _table(rows: Sequence[Sequence[float | None]], seats: Sequence[int]) -> list[list[float | None]]:
    """The chosen columns of a table, with the digits that can be seen."""
    return [[_digits(row[i]) for i in seats] for row in rows]


def _digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.9g}")


# Ramps ------------------------------------------------------------------------------------------


def ramps_chart(
    names: Sequence[str],
    feet: list[list[float | None]],
    thresholds: list[list[float | None]],
    widths: Sequence[float],
    cutoff: float,
    score_range: tuple[float, float],
    histograms: Sequence[Sequence[float]] | None,
    sizes: Sequence[int],
    theme: Theme = PRINTED,
    title: str = "",
    score: str = "score",
) -> Spec:
    """Scores of each group, the selected part filled, and the chance of a yes as a line."""
    n, (low, high) = len(names), score_range
    x = _x("x", score, score_range, "~g")
    colour = _colour(theme, n)
    layers: list[Spec] = [
        {
            "transform": [{"calculate": "datum.g + 0.96", "as": "y"}],
            "mark": {"type": "rule", "color": theme.line},
            "encoding": {"y": _y(n)},
        }
    ]
    if histograms is not None:
        bars = []
        for g, (shares, size) in enumerate(zip(histograms, sizes, strict=True)):
            bars += _bars(g, shares, size, low, high)
        heights: list[Spec] = [
            {"calculate": "datum.g + 0.96", "as": "y"},
            {"calculate": "datum.y - 0.6 * datum.h", "as": "y2"},
        ]
        chance = "clamp((datum.end - feet[at][datum.g] - widths[at] / 2) / (datum.end - datum.x), 0, 1)"
        hover = [
            {"field": "name", "title": "group"},
            {"field": "x", "type": "quantitative", "title": "score from", "format": ".3f"},
            {"field": "end", "type": "quantitative", "title": "to", "format": ".3f"},
            {"field": "share", "type": "quantitative", "title": "share of the group", "format": ".2%"},
        ]
        layers += [
            {
                "data": {"values": bars},
                "transform": [*heights, {"calculate": "names[datum.g]", "as": "name"}],
                "mark": {"type": "rect", "opacity": 0.28},
                "encoding": {"x": x, "x2": {"field": "end"}, "y": _y(n), "y2": {"field": "y2"}, "color": colour}
                | {"tooltip": hover},
            },
            {
                "data": {"values": bars},
                "transform": [
                    *heights,
                    {"calculate": chance, "as": "c"},
                    {"filter": "datum.c > 0"},
                    {"calculate": "datum.end - datum.c * (datum.end - datum.x)", "as": "from"},
                    {"calculate": "names[datum.g]", "as": "name"},
                ],
                "mark": {"type": "rect"},
                "encoding": {
                    "x": x | {"field": "from"},
                    "x2": {"field": "end"},
                    "y": _y(n),
                    "y2": {"field": "y2"},
                    "color": colour,
                    "tooltip": hover,
                },
            },
        ]
    place = (
        f"clamp(datum.k == 0 ? {low} : datum.k == 1 ? feet[at][datum.g] : datum.k == 2 ? feet[at][datum.g] + "
        f"widths[at] : {high}, {low}, {high})"
    )
    turn = low + 0.2 * (high - low)
    layers += [
        {
            "data": {"values": [{"x": cutoff}]},
            "mark": {"type": "rule", "color": theme.muted, "strokeDash": [3, 3]},
            "encoding": {"x": x},
        },
        {
            "data": {"values": [{"g": g, "k": k} for g in range(n) for k in range(4)]},
            "transform": [
                {"calculate": place, "as": "x"},
                {"calculate": "datum.g + (datum.k < 2 ? 0.96 : 0.34)", "as": "y"},
            ],
            "mark": {"type": "line", "strokeWidth": 1.75, "color": theme.ink, "strokeJoin": "round"},
            "encoding": {
                "x": x,
                "y": _y(n),
                "detail": {"field": "g", "type": "nominal"},
                "order": {"field": "k", "type": "quantitative"},
            },
        },
        *_threshold_texts(x, n, f"datum.x < {turn}", "left", theme),
        *_threshold_texts(x, n, f"datum.x >= {turn}", "right", theme),
    ]
    params = {"feet": feet, "thresholds": thresholds, "widths": list(widths)}
    height = 56 if histograms is None else 130 if n <= 3 else 84
    return _chart(theme, n, height, names, params, layers, title)


def _threshold_texts(x: Spec, n_rows: int, where: str, align: str, theme: Theme) -> list[Spec]:
    """The threshold in figures beside the ramp, where there is room; on a halo, because bars may stand there."""
    low, high = x["scale"]["domain"]
    place = {"type": "text", "align": align, "dx": 8 if align == "left" else -8, "fontWeight": 600}
    halo = {"stroke": theme.paper, "strokeWidth": 4, "strokeJoin": "round", "opacity": 0.75}
    found = [
        {"calculate": f"clamp(thresholds[at][datum.g], {low}, {high})", "as": "x"},
        {"filter": where},
        {"calculate": "datum.g + 0.48", "as": "y"},
        {"calculate": "format(thresholds[at][datum.g], '.3f')", "as": "text"},
    ]
    encoding = {"x": x, "y": _y(n_rows), "text": {"field": "text"}}
    return [{"transform": found, "mark": place | more, "encoding": encoding} for more in (halo, {})]


def _bars(g: int, shares: Sequence[float], size: int, low: float, high: float) -> list[Spec]:
    """Bars of one group's histogram; fewer for fewer rows, by the root of their share, the highest 1."""
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
            "share": _digits(s),
        }
        for i, s in enumerate(sums)
        if s > 0
    ]


# Rates ------------------------------------------------------------------------------------------


def rates_chart(
    names: Sequence[str],
    before: list[Sequence[float | None]],
    after: tuple[Any, Any, Any] | None,
    theme: Theme = PRINTED,
    title: str = "",
) -> Spec:
    """Selection rates before and after, with their intervals, a row per group.

    `before` is rate, lower and upper per group; `after` the same by position of the slider.
    """
    n = len(names)
    tables = [before] + ([list(row) for row in after] if after else [])
    largest = max(v for v in _flat(tables) if v is not None)
    top = min(max(largest * 1.18, 0.02), 1.12)
    x = _x("x", "selection rate", (0, top), "~%")
    hover = [
        {"field": "name", "title": "group"},
        {"field": "when", "title": "decisions"},
        {"field": "x", "type": "quantitative", "title": "selection rate", "format": ".6f"},
        {"field": "low", "type": "quantitative", "title": "from", "format": ".6f"},
        {"field": "high", "type": "quantitative", "title": "to", "format": ".6f"},
    ]

    def layers_of(source: str, y: float, when: str, mark: Spec, stroke: Any, weight: int) -> list[Spec]:
        row = "datum.g" if source == "before" else "at][datum.g"
        found = [
            {"calculate": f"{source}[0][{row}]", "as": "x"},
            {"calculate": f"{source}[1][{row}]", "as": "low"},
            {"calculate": f"{source}[2][{row}]", "as": "high"},
            {"calculate": f"datum.g + {y}", "as": "y"},
            {"calculate": "names[datum.g]", "as": "name"},
            {"calculate": f"'{when}'", "as": "when"},
            {"calculate": "format(100 * datum.x, '.1f') + '\u00a0%'", "as": "text"},
        ]
        return [
            {
                "transform": [*found, {"filter": "isValid(datum.low)"}],
                "mark": {
                    "type": "rule",
                    "strokeWidth": 2,
                    **({"color": stroke} if isinstance(stroke, str) else {}),
                },
                "encoding": {
                    "x": x | {"field": "low"},
                    "x2": {"field": "high"},
                    "y": _y(n),
                    **({} if isinstance(stroke, str) else {"color": stroke}),
                },
            },
            {
                "transform": found,
                "mark": {"type": "point", "size": 85, "opacity": 1, **mark},
                "encoding": {
                    "x": x,
                    "y": _y(n),
                    "tooltip": hover,
                    **({} if isinstance(stroke, str) else {"color": stroke}),
                },
            },
            {
                "transform": [*found, {"calculate": "isValid(datum.high) ? datum.high : datum.x", "as": "end"}],
                "mark": {
                    "type": "text",
                    "align": "left",
                    "dx": 9,
                    "fontWeight": weight,
                    "color": theme.ink if weight > 400 else theme.muted,
                },
                "encoding": {"x": x | {"field": "end"}, "y": _y(n), "text": {"field": "text"}},
            },
        ]

    layers: list[Spec] = [
        {
            "transform": [{"calculate": "datum.g + 0.99", "as": "y"}],
            "mark": {"type": "rule", "color": theme.line, "opacity": 0.6},
            "encoding": {"y": _y(n)},
        }
    ]
    hollow = {"filled": True, "fill": theme.paper, "stroke": theme.muted, "strokeWidth": 2}
    layers += layers_of("before", 0.5 if after else 0.62, "before", hollow, theme.muted, 400)
    params: Spec = {"before": [[_digits(v) for v in row] for row in before]}
    if after:
        layers += layers_of("after", 0.78, "after", {"filled": True}, _colour(theme, n), 600)
        params["after"] = [list(table) for table in after]
    return _chart(theme, n, 68 if after else 48, names, params, layers, title)


def _flat(values: Any) -> list[Any]:
    if isinstance(values, list | tuple):
        return [v for part in values for v in _flat(part)]
    return [values]


# Changes ----------------------------------------------------------------------------------------


def changes_chart(
    names: Sequence[str],
    to_yes: list[list[float | None]],
    to_no: list[list[float | None]],
    theme: Theme = PRINTED,
    title: str = "",
) -> Spec:
    """Shares of each group whose decision turns round, to no on the left and to yes on the right."""
    n = len(names)
    reach = max([v or 0.0 for v in _flat([to_yes, to_no])] + [0.01]) * 1.3
    x = _x("x", "← turned to no · share of the group · turned to yes →", (-reach, reach), "~%")
    x["axis"]["labelExpr"] = "format(abs(datum.value), '~%')"
    layers: list[Spec] = []
    for source, sign, colour, align in (
        ("to_no", "-", theme.other, "right"),
        ("to_yes", "", theme.accent, "left"),
    ):
        found = [
            {"calculate": f"{source}[at][datum.g]", "as": "share"},
            {"calculate": f"{sign}datum.share", "as": "x"},
            {"calculate": "datum.g + 0.42", "as": "y"},
            {"calculate": "datum.g + 0.86", "as": "y2"},
            {"calculate": "datum.g + 0.64", "as": "middle"},
            {"calculate": "0", "as": "zero"},
            {"calculate": "names[datum.g]", "as": "name"},
            {
                "calculate": "datum.share > 0 ? (datum.share < 0.0005 ? '<\u00a00.1\u00a0%' : "
                "format(100 * datum.share, '.1f') + '\u00a0%') : ''",
                "as": "text",
            },
        ]
        hover = [
            {"field": "name", "title": "group"},
            {"field": "share", "type": "quantitative", "title": source.replace("_", " "), "format": ".6f"},
        ]
        layers += [
            {
                "transform": found,
                "mark": {"type": "rect", "color": colour},
                "encoding": {
                    "x": x,
                    "x2": {"field": "zero"},
                    "y": _y(n),
                    "y2": {"field": "y2"},
                    "tooltip": hover,
                },
            },
            {
                "transform": found,
                "mark": {"type": "text", "align": align, "dx": -6 if align == "right" else 6},
                "encoding": {"x": x, "y": _y(n, "middle"), "text": {"field": "text"}},
            },
        ]
    layers.append(
        {
            "data": {"values": [{"x": 0}]},
            "mark": {"type": "rule", "color": theme.muted},
            "encoding": {"x": x},
        }
    )
    return _chart(theme, n, 56, names, {"to_yes": to_yes, "to_no": to_no}, layers, title)


# Frontier ---------------------------------------------------------------------------------------


def frontier_spec(
    gaps: Sequence[float],
    accuracies: Sequence[float],
    lower: Sequence[float],
    upper: Sequence[float],
    drawn: Sequence[int],
    own: tuple[float, float],
    chosen: tuple[float, float] | None,
    theme: Theme = PRINTED,
    title: str = "",
) -> Spec:
    """Accuracy against gap with its band, the classifier itself, the rule and the slider's position.

    `drawn` are the positions that belong to the curve.
    """
    curve = [
        {"x": 100 * gaps[i], "a": accuracies[i], "low": lower[i], "high": upper[i]}
        for i in sorted(drawn, key=lambda i: gaps[i])
    ]
    shown = [v for p in curve for v in (p["low"], p["high"])] + [own[1]] + ([chosen[1]] if chosen else [])
    pad = max((max(shown) - min(shown)) * 0.15, 0.002)
    y = {
        "type": "quantitative",
        "scale": {"domain": [max(min(shown) - pad, 0), min(max(shown) + pad, 1)], "zero": False, "nice": False},
        "axis": {"title": None, "format": ".1%", "tickCount": 5},
    }
    span = max([p["x"] for p in curve] + [100 * own[0], 100 * chosen[0] if chosen else 0.0, 0.1])
    x = _x("x", "gap between groups, in percentage points", (-0.03 * span, 1.06 * span), "~g")
    hover = [
        {"field": "x", "type": "quantitative", "title": "gap in points", "format": ".4f"},
        {"field": "a", "type": "quantitative", "title": "accuracy", "format": ".6f"},
    ]
    places: list[Spec] = [{"x": 100 * own[0], "a": own[1], "text": "classifier alone"}]
    if chosen:
        places.append({"x": 100 * chosen[0], "a": chosen[1], "text": "this rule"})
    marks: list[Spec] = [
        {
            "mark": {"type": "area", "color": theme.accent, "opacity": 0.14},
            "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "color": theme.accent, "strokeWidth": 2},
            "encoding": {"x": x, "y": y | {"field": "a"}},
        },
        {
            "mark": {"type": "point", "color": theme.accent, "filled": True, "size": 22, "opacity": 1},
            "encoding": {"x": x, "y": y | {"field": "a"}, "tooltip": hover},
        },
        {
            "data": {"values": places},
            "mark": {"type": "point", "size": 110, "filled": True, "fill": theme.paper, "stroke": theme.ink}
            | {"strokeWidth": 2, "opacity": 1},
            "encoding": {"x": x, "y": y | {"field": "a"}, "tooltip": hover},
        },
        *(
            {
                "data": {"values": [place]},
                # Above and below, so that two texts never meet; inwards at the right end.
                "mark": {"type": "text", "dy": dy}
                | ({"align": "right", "dx": 6} if place["x"] > 0.6 * span else {"align": "left", "dx": -4}),
                "encoding": {"x": x, "y": y | {"field": "a"}, "text": {"field": "text"}},
            }
            for place, dy in zip(places, (-17, 18), strict=False)
        ),
    ]
    if chosen:
        marks.append(
            {
                "data": {"values": [{"g": 0}]},
                "transform": [
                    {"calculate": "100 * gaps[at]", "as": "x"},
                    {"calculate": "accuracies[at]", "as": "a"},
                ],
                "mark": {"type": "point", "size": 110, "filled": True, "color": theme.other, "opacity": 1},
                "encoding": {"x": x, "y": y | {"field": "a"}, "tooltip": hover},
            }
        )
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        **({"title": title} if title else {}),
        "width": theme.width,
        "height": 300,
        "autosize": {"type": "fit-x", "contains": "padding"} if theme.width == "container" else {"type": "pad"},
        "params": [
            {"name": "at", "value": 0},
            {"name": "gaps", "value": list(gaps)},
            {"name": "accuracies", "value": list(accuracies)},
        ],
        "data": {"values": curve},
        "layer": marks,
        "config": _config(theme),
    }


# What is drawn from what ------------------------------------------------------------------------


def content_charts(content: "Content", theme: Theme = STYLED) -> dict[str, Spec]:
    """All charts of a report, by the name of their place on the page."""
    seats = sorted(content.largest[:MOST_DRAWN])
    groups = [content.groups[i] for i in seats]
    names, outcomes = [g.name for g in groups], content.outcomes
    found = {
        "scores": ramps_chart(
            names,
            _table([o.ramp_from for o in outcomes], seats),
            _table([o.thresholds for o in outcomes], seats),
            [o.ramp_width for o in outcomes],
            content.cutoff,
            content.score_range,
            [g.histogram for g in groups],
            [g.rows for g in groups],
            theme,
            score=_score_name(content.settings["scale"]),
        ),
        "rates": rates_chart(
            names,
            [[g.rate for g in groups], [g.lower for g in groups], [g.upper for g in groups]],
            tuple(_table([getattr(o, name) for o in outcomes], seats) for name in ("rates", "lower", "upper")),  # type: ignore[arg-type]
            theme,
        ),
        "changes": changes_chart(
            names,
            _table([o.changed_to_yes for o in outcomes], seats),
            _table([o.changed_to_no for o in outcomes], seats),
            theme,
        ),
    }
    if content.accuracy is not None:
        accuracies = [o.accuracy or 0.0 for o in outcomes]
        limits = [o.accuracy_interval or (0.0, 0.0) for o in outcomes]
        drawn = [i for i, o in enumerate(outcomes) if content.in_sample or not o.is_own]
        found["frontier"] = frontier_spec(
            [o.gap for o in outcomes],
            accuracies,
            [low for low, _ in limits],
            [high for _, high in limits],
            drawn,
            (content.gap, content.accuracy),
            (content.chosen.gap, content.chosen.accuracy or 0.0),
            theme,
        )
    for spec in found.values():
        spec["params"][0]["value"] = content.own
    return found


def rule_chart(rule: "Rule") -> "altair.LayerChart | altair.VConcatChart":
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
        _table([[foot * shown for foot in feet]], seats),
        _table([[threshold * shown for threshold in thresholds]], seats),
        [rule.ramp_width * shown],
        scale.position_of(rule.cutoff) * shown,
        (scale.lowest * shown, scale.highest * shown),
        None,
        [],
        title="Chance of a yes by score",
        score=_score_name(rule.scale),
    )
    if rule.record is None:
        return chart(ramps)
    none = [None] * len(seats)
    before = [[rule.record.rate_before[i] for i in seats], none, none]
    after = (_table([rule.record.rate_after], seats), [none], [none])
    return _stacked([ramps, rates_chart(names, before, after, title="Selection rates before and after")])  # type: ignore[arg-type]


def audit_chart(audit: "Audit") -> "altair.LayerChart | altair.VConcatChart":
    """Selection rates with their intervals and, with a rule, who changes."""
    seats = _largest(audit.rows)
    names = [show_label(audit.groups[i]) for i in seats]
    before = [[v[i] for i in seats] for v in (audit.before.rate, audit.before.lower, audit.before.upper)]
    if audit.after is None:
        return chart(rates_chart(names, before, None, title="Selection rates"))  # type: ignore[arg-type]
    after = tuple(_table([v], seats) for v in (audit.after.rate, audit.after.lower, audit.after.upper))
    rates = rates_chart(names, before, after, title="Selection rates before and after")  # type: ignore[arg-type]
    assert audit.changed_to_yes is not None
    assert audit.changed_to_no is not None
    changes = changes_chart(
        names,
        _table([audit.changed_to_yes], seats),
        _table([audit.changed_to_no], seats),
        title="Decisions that change",
    )
    return _stacked([rates, changes])


def frontier_chart(frontier: "Frontier") -> "altair.LayerChart | altair.VConcatChart":
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


def _score_name(scale: str) -> str:
    return {"logit": "score, as a probability", "percent": "score, percent"}.get(scale, "score")


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
