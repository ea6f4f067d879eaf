"""The charts, as Altair charts: for notebooks, for files and for the page.

Each draws what it is given, group under group, the name above its row. Numbers that depend on the slider are
tables (position × group) in parameters of the chart, and the position itself is the parameter `at`: moving it
redraws everything, without data being sent twice. Groups are numbers in the data and names only in texts, so that
no name can mean anything to the drawing program.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairramp.show.curve import frontier_spec
from fairramp.show.pieces import (
    PRINTED,
    STYLED,
    Spec,
    Theme,
    by_group,
    digits,
    group_colours,
    rows_of_groups,
    table,
    x_axis,
    y_axis,
)

if TYPE_CHECKING:
    from fairramp.show.report.content import Content

__all__ = [
    "MOST_DRAWN",
    "changes_chart",
    "content_charts",
    "content_colours",
    "ramps_chart",
    "rates_chart",
    "score_name",
]

#: Groups in a chart; the largest are drawn.
MOST_DRAWN = 12

Rows = Sequence[Sequence[float]]


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
    colours: Sequence[str],
    theme: Theme = PRINTED,
    title: str = "",
    score: str = "score",
) -> Spec:
    """Scores of each group, the selected part filled, and the chance of a yes as a line."""
    n, (low, high) = len(names), score_range
    x = x_axis("x", score, score_range, "~g")
    colour = by_group(colours)
    layers: list[Spec] = [
        {
            "transform": [{"calculate": "datum.g + 0.96", "as": "y"}],
            "mark": {"type": "rule", "color": theme.line},
            "encoding": {"y": y_axis(n)},
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
                "encoding": {
                    "x": x,
                    "x2": {"field": "end"},
                    "y": y_axis(n),
                    "y2": {"field": "y2"},
                    "color": colour,
                }
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
                    "y": y_axis(n),
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
                "y": y_axis(n),
                "detail": {"field": "g", "type": "nominal"},
                "order": {"field": "k", "type": "quantitative"},
            },
        },
        *_threshold_texts(x, n, f"datum.x < {turn}", "left", theme),
        *_threshold_texts(x, n, f"datum.x >= {turn}", "right", theme),
    ]
    params = {"feet": feet, "thresholds": thresholds, "widths": list(widths)}
    height = 56 if histograms is None else 130 if n <= 3 else 84
    return rows_of_groups(theme, n, height, names, params, layers, title)


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
    encoding = {"x": x, "y": y_axis(n_rows), "text": {"field": "text"}}
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
            "share": digits(s),
        }
        for i, s in enumerate(sums)
        if s > 0
    ]


# Rates ------------------------------------------------------------------------------------------


def rates_chart(
    names: Sequence[str],
    before: list[Sequence[float | None]],
    after: tuple[Any, Any, Any] | None,
    colours: Sequence[str],
    theme: Theme = PRINTED,
    title: str | Spec = "",
) -> Spec:
    """Selection rates before and after, with their intervals, a row per group.

    `before` is rate, lower and upper per group; `after` the same by position of the slider.
    """
    n = len(names)
    tables = [before] + ([list(row) for row in after] if after else [])
    largest = max(v for v in _flat(tables) if v is not None)
    top = min(max(largest * 1.18, 0.02), 1.12)
    x = x_axis("x", "selection rate", (0, top), "~%")
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
                    "y": y_axis(n),
                    **({} if isinstance(stroke, str) else {"color": stroke}),
                },
            },
            {
                "transform": found,
                "mark": {"type": "point", "size": 85, "opacity": 1, **mark},
                "encoding": {
                    "x": x,
                    "y": y_axis(n),
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
                "encoding": {"x": x | {"field": "end"}, "y": y_axis(n), "text": {"field": "text"}},
            },
        ]

    layers: list[Spec] = [
        {
            "transform": [{"calculate": "datum.g + 0.99", "as": "y"}],
            "mark": {"type": "rule", "color": theme.line, "opacity": 0.6},
            "encoding": {"y": y_axis(n)},
        }
    ]
    hollow = {"filled": True, "fill": theme.paper, "stroke": theme.muted, "strokeWidth": 2}
    layers += layers_of("before", 0.5 if after else 0.62, "before", hollow, theme.muted, 400)
    params: Spec = {"before": [[digits(v) for v in row] for row in before]}
    if after:
        layers += layers_of("after", 0.78, "after", {"filled": True}, by_group(colours), 600)
        params["after"] = [list(table) for table in after]
    return rows_of_groups(theme, n, 68 if after else 48, names, params, layers, title)


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
    x = x_axis("x", "← turned to no · share of the group · turned to yes →", (-reach, reach), "~%")
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
                    "y": y_axis(n),
                    "y2": {"field": "y2"},
                    "tooltip": hover,
                },
            },
            {
                "transform": found,
                "mark": {"type": "text", "align": align, "dx": -6 if align == "right" else 6},
                "encoding": {"x": x, "y": y_axis(n, "middle"), "text": {"field": "text"}},
            },
        ]
    layers.append(
        {
            "data": {"values": [{"x": 0}]},
            "mark": {"type": "rule", "color": theme.muted},
            "encoding": {"x": x},
        }
    )
    return rows_of_groups(theme, n, 56, names, {"to_yes": to_yes, "to_no": to_no}, layers, title)


# What is drawn from what ------------------------------------------------------------------------


def content_colours(content: "Content", theme: Theme = STYLED) -> tuple[list[str], str]:
    """The colours of the groups that are drawn, and what they mean if they mean anything."""
    rates = [content.groups[i].rate for i in sorted(content.largest[:MOST_DRAWN])]
    return group_colours(theme, rates, compared=content.settings["criterion"] == "parity")


def content_charts(content: "Content", theme: Theme = STYLED) -> dict[str, Spec]:
    """All charts of a report, by the name of their place on the page."""
    seats = sorted(content.largest[:MOST_DRAWN])
    groups = [content.groups[i] for i in seats]
    names, outcomes = [g.name for g in groups], content.outcomes
    colours, _ = content_colours(content, theme)
    found = {
        "scores": ramps_chart(
            names,
            table([o.ramp_from for o in outcomes], seats),
            table([o.thresholds for o in outcomes], seats),
            [o.ramp_width for o in outcomes],
            content.cutoff,
            content.score_range,
            [g.histogram for g in groups],
            [g.rows for g in groups],
            colours,
            theme,
            score=score_name(content.settings["scale"]),
        ),
        "rates": rates_chart(
            names,
            [[g.rate for g in groups], [g.lower for g in groups], [g.upper for g in groups]],
            tuple(table([getattr(o, name) for o in outcomes], seats) for name in ("rates", "lower", "upper")),  # type: ignore[arg-type]
            colours,
            theme,
        ),
        "changes": changes_chart(
            names,
            table([o.changed_to_yes for o in outcomes], seats),
            table([o.changed_to_no for o in outcomes], seats),
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


def score_name(scale: str) -> str:
    """What the axis of the scores is called."""
    return {"logit": "score, as a probability", "percent": "score, percent"}.get(scale, "score")
