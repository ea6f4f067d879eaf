"""Accuracy against gap: what a smaller gap costs."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from fairramp.show.charts.pieces import PRINTED, Look, Theme, alt, digits, inline, layered, x_axis


def frontier_chart(
    gaps: Sequence[float],
    accuracies: Sequence[float],
    limits: Sequence[tuple[float, float]],
    own: tuple[float, float],
    chosen: tuple[float, float] | None = None,
    drawn: Sequence[int] | None = None,
    at: int = 0,
    theme: Theme = PRINTED,
    title: Any = "",
    measure: str = "accuracy",
    *,
    ratios: bool = False,
    several: bool = False,
    gap_name: str | None = None,
) -> alt.LayerChart:
    """Accuracy against gap with a confidence band, the classifier alone, the rule and the slider's position.

    `drawn` holds the positions that belong to the curve; `measure` is what is drawn if it is not the accuracy. If
    there are `ratios` instead of gaps, a ratio that is NaN is not drawn. With `several` gaps, these are the
    largest. `gap_name` is what the gap is called otherwise.
    """
    apart = gap_name or ("larger of the two gaps" if several else "gap between groups")
    unit, axis, short = (
        (1, "ratio of the lowest rate to the highest", "ratio")
        if ratios
        else (
            100,
            f"{apart}, in percentage points",
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
    x = x_axis("x", axis, (-0.03 * span, 1.06 * span), "~f")
    y = partial(
        alt.Y,
        axis=alt.Axis(title=measure.replace("_", " "), format="~f" if measure == "cost" else "~%", tickCount=5),
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
    # Hollow before and filled after, as in the chart of rates.
    look: dict[str, Look] = {
        "classifier alone": {"fill": theme.paper, "stroke": theme.muted},
        "this rule": {"fill": theme.ink, "stroke": theme.ink},
    }
    layers = [
        base.mark_area(color=theme.ink, opacity=0.14).encode(y=y("low:Q"), y2="high"),
        base.mark_line(color=theme.ink, strokeWidth=2),
        pointed.mark_point(color=theme.ink, filled=True, size=22, opacity=1),
        *(
            pointed.properties(data=inline([place])).mark_point(
                size=110, filled=True, opacity=1, strokeWidth=2, **look[place["text"]]
            )
            for place in places
        ),
    ]
    for place, dy in zip(places, (-17, 18), strict=False):
        # One label above and one below its point, so they never overlap; at the right end, aligned inward.
        side: Look = {"align": "right", "dx": 6} if place["x"] > 0.6 * span else {"align": "left", "dx": -4}
        layers.append(base.properties(data=inline([place])).mark_text(dy=dy, **side).encode(text="text:N"))
    if chosen:
        layers.append(
            pointed.properties(data=inline([{"g": 0}]))
            .transform_filter(f"at != {at} && isValid(gaps[at])")
            .transform_calculate(x=f"{unit} * gaps[at]", a="accuracies[at]")
            .mark_point(size=110, filled=True, color=theme.what_if, opacity=1)
        )
    return layered(
        layers,
        curve,
        {"at": at, "gaps": list(map(digits, gaps)), "accuracies": list(accuracies)},
        theme,
        300,
        title,
    )
