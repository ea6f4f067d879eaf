"""The chart of a frontier: accuracy against gap.

Where a report draws it, the slider's position is the parameter `at`, as in the other charts.
"""

from collections.abc import Sequence

from fairramp.show.pieces import PRINTED, Spec, Theme, config, x_axis

__all__ = ["frontier_spec"]


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
    x = x_axis("x", "gap between groups, in percentage points", (-0.03 * span, 1.06 * span), "~g")
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
        "config": config(theme),
    }
