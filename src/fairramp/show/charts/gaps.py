"""Gaps and limits on one axis, in percentage points: one row per number."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fairramp.show.charts.pieces import PRINTED, Theme, alt, digits, layered, x_axis, y_axis

#: Height of a row, and the width of the columns of names and numbers, in pixels.
_ROW, _NAMES, _NUMBERS = 30, 216, 140


@dataclass(frozen=True)
class Gap:
    """A measured gap with its confidence limits, or a limit on it, as shares; a gap of 1 is not drawn.

    `most` is the limit that the gap must not exceed.
    """

    name: str
    value: float
    text: str
    interval: tuple[float, float] | None = None
    most: float | None = None
    is_limit: bool = False


def gaps_chart(gaps: Sequence[Gap], theme: Theme = PRINTED, title: Any = "") -> alt.LayerChart:
    """Measured gaps as dots with intervals, limits as bars, and the limit on each as a dashed line."""
    n = len(gaps)
    rows: list[dict[str, Any]] = [
        {
            "y": i + 0.5,
            "top": i,
            "bottom": i + 1,
            "name": gap.name,
            "text": gap.text,
            "x": _points(gap.value) if gap.value < 1 or not gap.is_limit else None,
            "low": _points(gap.interval[0]) if gap.interval else None,
            "high": _points(gap.interval[1]) if gap.interval else None,
            "most": _points(gap.most) if gap.most is not None and gap.most < 1 else None,
            "is_limit": gap.is_limit,
        }
        for i, gap in enumerate(gaps)
    ]
    known = [row[name] for row in rows for name in ("x", "high", "most") if row[name] is not None]
    x = partial(
        x_axis,
        title="gap, in percentage points",
        domain=(0, max([1.04 * value for value in known] + [1.0])),
        form="~f",
        labelFlush=False,
        tickCount=5,
        scale={"range": [_NAMES, alt.ExprRef(f"width - {_NUMBERS}")]},
    )
    y = y_axis(n)
    base = alt.Chart().encode(y=y)
    known_x = base.transform_filter("isValid(datum.x)")
    dots, ends = (known_x.transform_filter(where) for where in ("!datum.is_limit", "datum.is_limit"))
    text = base.encode(text="name:N").mark_text
    layers = [
        known_x.transform_calculate(zero="0")
        .mark_rule(color=theme.line, strokeWidth=5)
        .encode(x=x("zero"), x2="x"),
        base.transform_filter("isValid(datum.most)")
        .mark_rule(color=theme.muted, strokeDash=[3, 3])
        .encode(x=x("most"), y=y_axis(n, "top"), y2="bottom"),
        base.transform_filter("isValid(datum.low) && isValid(datum.high)")
        .mark_rule(color=theme.ink, strokeWidth=1.5)
        .encode(x=x("low"), x2="high"),
        dots.mark_point(size=90, opacity=1, filled=True, color=theme.ink).encode(x=x("x")),
        ends.mark_tick(color=theme.ink, thickness=3, size=16, orient="vertical").encode(x=x("x")),
        text(align="left", baseline="middle", fontWeight=600, x=0, limit=_NAMES - 12),
        base.encode(text="text:N").mark_text(
            align="left", baseline="middle", x=alt.ExprRef(f"width - {_NUMBERS - 14}")
        ),
    ]
    return layered(layers, rows, {}, theme, _ROW * n, title)


def _points(share: float) -> float | None:
    """Percentage points, or None for NaN."""
    return digits(100 * share)
