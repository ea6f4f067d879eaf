"""Draw Figures 1(a), 1(b) and 2 (left) from stored results, as SVG files.

A white background keeps them legible on light and dark pages.
"""

from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from reproduction.names import NAMES
from reproduction.paper import CONVERGENCE
from reproduction.results import PAIRS, Results
from reproduction.store import replaced

#: Blue and amber as in the paper, and two darker colors for added methods. All differ in lightness.
COLORS = {
    "RTO": "#1f77b4",
    "RTO, label-aware": "#0b2f4f",
    "Hardt, hard labels": "#e8a200",
    "Hardt, probabilities": "#b3541e",
}
CURVES = dict(zip(("rto", "rto_accuracy", "hardt_labels", "hardt_scores"), COLORS, strict=True))
SEXES = {"Female": "#b3541e", "Male": "#1f77b4"}


def write(results: Results, folder: Path) -> list[str]:
    """Write the figures for which there are results; return their file names."""
    charts = {
        "decision-rules.svg": decision_rules(results),
        "convergence.svg": convergence(results),
        "trade-off.svg": trade_off(results),
    }
    return save(charts, folder)


def save(charts: dict[str, Any], folder: Path) -> list[str]:
    """Write the charts that are not None, in one style; return their file names."""
    for name, chart in charts.items():
        if chart is not None:
            with replaced(folder / name) as path:
                _styled(chart).save(str(path), format="svg")
    return [name for name, chart in charts.items() if chart is not None]


def _styled(chart: Any) -> Any:
    return (
        chart.configure(background="white", padding=10)
        .configure_axis(labelFontSize=11, titleFontSize=12, gridColor="#e6e6e6")
        .configure_legend(labelFontSize=12, titleFontSize=12, labelLimit=300)
        .configure_view(stroke="#cccccc")
    )


def _scale(colors: dict[str, str]) -> alt.Scale:
    return alt.Scale(domain=list(colors), range=list(colors.values()))


def decision_rules(results: Results) -> Any:
    """Draw Figure 1(a): selection probability against signed score, for random forests on Adult."""
    rule = results.one(("adult", "rf"), "rto")
    if rule is None:
        return None
    rows = []
    for sex, threshold in rule["thresholds"].items():
        start, end = 2 * threshold - 1, 2 * (threshold + rule["ramp_width"]) - 1
        points = [(-1.0, 0.0), (start, 0.0), (end, 1.0), (1.0, 1.0)]
        rows += [{"sex": sex, "score": x, "probability": y} for x, y in points]
    return (
        alt.Chart(alt.Data(values=rows), width=420, height=220)
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("score:Q", title="signed score f(x)", scale=alt.Scale(domain=[-1, 1])),
            y=alt.Y("probability:Q", title="selection probability h(x)"),
            color=alt.Color("sex:N", scale=_scale(SEXES), title=None),
            strokeDash=alt.StrokeDash("sex:N", legend=None),
        )
    )


def convergence(results: Results) -> Any:
    """Draw Figure 1(b): thresholds after each epoch, the exact ones, and the paper's curve."""
    run = results.one(("adult", "rf"), "convergence")
    if run is None:
        return None
    rows = [
        {"curve": sex, "epoch": epoch, "threshold": value}
        for sex, trace in run["trace"].items()
        for epoch, value in enumerate([0.0, *trace])
    ]
    printed = "paper, group 0"
    rows += [{"curve": printed, "epoch": epoch, "threshold": value} for epoch, value in CONVERGENCE]
    exact = [{"curve": sex, "threshold": value} for sex, value in run["exact"].items()]
    color = alt.Color("curve:N", scale=_scale(SEXES | {printed: "#777777"}), title=None)
    lines = (
        alt.Chart(alt.Data(values=rows), width=420, height=260)
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=14))
        .encode(
            x=alt.X("epoch:Q", scale=alt.Scale(domain=[0, 25])),
            y=alt.Y("threshold:Q", title="λ − μ, in signed scores"),
            color=color,
        )
    )
    rules = alt.Chart(alt.Data(values=exact)).mark_rule(strokeDash=[5, 4]).encode(y="threshold:Q", color=color)
    return lines + rules


def trade_off(results: Results) -> Any:
    """Draw Figure 2 (left): accuracy against gap on test rows, means over seeds, one panel per pair."""
    rows = []
    for data, kind in PAIRS:
        runs = list(results.each((data, kind), "tradeoff").values())
        if not runs:
            return None
        for curve, title in CURVES.items():
            means = np.mean([run["curves"][curve] for run in runs], axis=0)
            rows += [
                {
                    "panel": f"{NAMES[data]}, {NAMES[kind]}",
                    "curve": title,
                    "order": i,
                    "gap": round(float(gap), 5),
                    "accuracy": round(100 * float(accuracy), 4),
                }
                for i, (gap, accuracy) in enumerate(means)
            ]
    panels = [f"{NAMES[data]}, {NAMES[kind]}" for data, kind in PAIRS]
    return (
        alt.Chart(alt.Data(values=rows), width=170, height=150)
        .mark_line(point=alt.OverlayMarkDef(size=16), strokeWidth=2)
        .encode(
            x=alt.X("gap:Q", title="gap", axis=alt.Axis(tickCount=4, format=".2f", labelOverlap=True)),
            y=alt.Y(
                "accuracy:Q", title="test accuracy, %", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)
            ),
            color=alt.Color("curve:N", scale=_scale(COLORS), title=None, legend=alt.Legend(orient="top")),
            order="order:Q",
            facet=alt.Facet("panel:N", columns=4, sort=panels, title=None),
        )
        .resolve_scale(y="independent", x="independent")
    )
