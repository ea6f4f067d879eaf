"""Draw Figures 2 (right) to 5 from stored runs, as SVG files in the style of the tabular ones."""

from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from reproduction.figures import SEXES, _scale, save
from reproduction.vision.aggregate import Interval, Table, average_ranks, soft_ranks
from reproduction.vision.backbones import ILSVRC, IMAGENET21K, JFT, NOTHING, REGISTRY
from reproduction.vision.claims import error_after
from reproduction.vision.plan import FRACTIONS, HEAD, WHOLE

SCRATCH = "trained from scratch"
#: Blue, orange and green as in the paper; gray and black for networks that it does not have.
PRETRAINED = {NOTHING: "#777777", SCRATCH: "#111111", ILSVRC: "#1f77b4", IMAGENET21K: "#e8a200", JFT: "#2a7f3f"}
PANELS = [f"{fraction:.0%} of the training rows" for fraction in FRACTIONS]


def write(table: Table, folder: Path) -> list[str]:
    """Write the figures for which there are runs; return their file names."""
    charts = {
        "densities.svg": densities(table),
        "size.svg": size(table),
        "size-error.svg": size_error(table),
        "ranks.svg": ranks(table),
        "fractions.svg": fractions(table),
        "pretraining-fraction.svg": pretraining_fraction(table),
    }
    return save(charts, folder)


def _colors(found: list[str]) -> Any:
    shown = {name: color for name, color in PRETRAINED.items() if name in found}
    return alt.Color("pretraining:N", scale=_scale(shown), title=None, legend=alt.Legend(orient="top"))


def _row(value: Interval, **fields: Any) -> dict[str, Any]:
    ends = {} if np.isnan(value.low) else {"low": value.low, "high": value.high}
    return {"value": value.value, **ends, **fields}


def _panels(layers: Any, rows: list[dict[str, Any]], columns: int = 4) -> Any:
    data = alt.Data(values=rows)
    return layers.properties(data=data, width=170, height=170).facet(
        facet=alt.Facet("panel:N", sort=PANELS, title=None), columns=columns
    )


def densities(table: Table) -> Any:
    """Draw Figure 2 (right): scores of a network trained from scratch, and the rules of RTO and Hardt et al."""
    found = [
        result["densities"]
        for run, result in table.select(protocol=WHOLE, seed=0).items()
        if "densities" in result
    ]
    if not found:
        return None
    return alt.vconcat(*(_density(found[0], sex) for sex in found[0]["bars"]))


def _density(shown: dict[str, Any], sex: str) -> Any:
    counts = np.array(shown["bars"][sex])
    width = 2 / len(counts)
    bars = [
        {"from": -1 + i * width, "to": -1 + (i + 1) * width, "density": float(value), "none": 0}
        for i, value in enumerate(counts / counts.sum() / width)
    ]
    start = 2 * shown["thresholds"][sex] - 1
    no, yes = shown["hardt"][sex]
    rules = {
        "RTO, γ = 0.1, ρ = E[y]": [(-1, 0), (start, 0), (start + 2 * shown["ramp_width"], 1), (1, 1)],
        "Hardt, hard labels": [(-1, no), (0, no), (0, yes), (1, yes)],
    }
    lines = [
        {"rule": rule, "order": i, "score": x, "probability": y}
        for rule, points in rules.items()
        for i, (x, y) in enumerate(points)
    ]
    scale = alt.Scale(domain=[-1, 1])
    histogram = (
        alt.Chart(alt.Data(values=bars))
        .mark_bar(opacity=0.45, color=SEXES[sex])
        .encode(
            x=alt.X("from:Q", title=f"signed score f(x), {sex}", scale=scale),
            x2="to:Q",
            y=alt.Y("density:Q", title="density of scores"),
            y2="none:Q",
        )
    )
    curves = (
        alt.Chart(alt.Data(values=lines))
        .mark_line(strokeWidth=2.5, clip=True, color="#222222")
        .encode(
            x=alt.X("score:Q", scale=scale),
            y=alt.Y("probability:Q", title="selection probability", scale=alt.Scale(domain=[0, 1])),
            order="order:Q",
            strokeDash=alt.StrokeDash("rule:N", sort=list(rules), title=None, legend=alt.Legend(orient="top")),
        )
    )
    return alt.layer(histogram, curves).resolve_scale(y="independent").properties(width=380, height=150)


#: Families of architectures, by the beginnings of their names; the longest that fits.
FAMILIES = {
    "ResNet": "#1f77b4",
    "MobileNetV2": "#e8a200",
    "MobileNet": "#c44e52",
    "EfficientNet-Lite": "#2a7f3f",
    "BiT": "#1f77b4",
    "DenseNet": "#777777",
    "NASNet": "#111111",
}


def _family(name: str) -> str:
    architecture = REGISTRY[name].architecture
    return max((family for family in FAMILIES if architecture.startswith(family)), key=len)


def size(table: Table) -> Any:
    """Draw Figure 3: soft rank of pretrained heads after debiasing against parameters, one panel per fraction."""
    names = [name for name in table.names("backbone") if _is_pretrained_head(table, name)]
    rows = []
    for fraction, panel in zip(FRACTIONS, PANELS, strict=True):
        found = table.over_seeds(lambda seed, f=fraction: soft_ranks(table.errors("rto", names, f, seed)))
        rows += [
            _row(value, panel=panel, parameters=REGISTRY[name].parameters, family=_family(name))
            for name, value in found.items()
        ]
    return _by_size(rows, "soft rank of the error")


def size_error(table: Table) -> Any:
    """Draw the error after debiasing of pretrained heads, mean over tasks, against parameters."""
    rows = []
    for name in table.names("backbone"):
        if not _is_pretrained_head(table, name):
            continue
        for fraction, panel in zip(FRACTIONS, PANELS, strict=True):
            value = table.mean(error_after, backbone=name, fraction=fraction, protocol=HEAD)
            if value is not None:
                percent = Interval(100 * value.value, 100 * value.low, 100 * value.high, value.seeds)
                rows.append(
                    _row(percent, panel=panel, parameters=REGISTRY[name].parameters, family=_family(name))
                )
    return _by_size(rows, "error after debiasing (%)", zero=False)


def _is_pretrained_head(table: Table, name: str) -> bool:
    return REGISTRY[name].pretraining == ILSVRC and bool(table.select(backbone=name, protocol=HEAD))


def _by_size(rows: list[dict[str, Any]], title: str, zero: bool = True) -> Any:
    if len({row["parameters"] for row in rows}) < 2:
        return None
    kind = "log" if max(row["parameters"] for row in rows) > 20 else "linear"
    axis = alt.Axis(values=[0.3, 1, 3, 10, 30], format="~g", labelOverlap=False) if kind == "log" else alt.Axis()
    scale = alt.Scale(type=kind, zero=False, nice=kind != "log", padding=12)
    x = alt.X("parameters:Q", title="parameters (millions)", scale=scale, axis=axis)
    shown = {family: color for family, color in FAMILIES.items() if family in {row["family"] for row in rows}}
    color = alt.Color("family:N", scale=_scale(shown), title=None, legend=alt.Legend(orient="top"))
    return _panels(_points(x, color, title, zero), rows)


def _points(x: Any, color: Any, title: str, zero: bool = True) -> Any:
    scale = alt.Scale(zero=zero)
    points = (
        alt.Chart()
        .mark_point(filled=True, size=50)
        .encode(x=x, y=alt.Y("value:Q", title=title, scale=scale), color=color)
    )
    bars = (
        alt.Chart()
        .mark_rule()
        .encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q", color=color)
        .transform_filter("isValid(datum.low)")
    )
    return alt.layer(bars, points)


def ranks(table: Table) -> Any:
    """Draw Figure 4: average rank of pretraining data by architecture, one panel per downstream fraction."""
    rows = []
    architectures = sorted({REGISTRY[name].architecture for name in table.names("backbone")})
    for architecture in architectures:
        names = {
            REGISTRY[name].pretraining: name
            for name in table.names("backbone")
            if REGISTRY[name].architecture == architecture and REGISTRY[name].fraction == 1.0
        }
        if len(names) < 2:
            continue
        for fraction, panel in zip(FRACTIONS, PANELS, strict=True):

            def ranked(seed: int, names: dict[str, str] = names, fraction: float = fraction) -> dict[str, float]:
                errors = table.errors("rto", list(names.values()), fraction, seed)
                return average_ranks({kind: errors.get(name, {}) for kind, name in names.items()})

            found = table.over_seeds(ranked)
            rows += [
                _row(value, panel=panel, architecture=architecture, pretraining=kind)
                for kind, value in found.items()
            ]
    if not rows:
        return None
    x = alt.X("architecture:N", title=None, axis=alt.Axis(labelAngle=-40))
    color = _colors([row["pretraining"] for row in rows])
    return _panels(_points(x, color, "average rank (1 is best)", zero=False), rows)


def fractions(table: Table) -> Any:
    """Draw the error after debiasing against the downstream fraction, mean over tasks."""
    rows = []
    for name in table.names("backbone"):
        if len({run.task for run in table.select(backbone=name)}) < len(table.names("task")):
            continue  # its mean is of other tasks
        for fraction in FRACTIONS:
            value = table.mean(error_after, backbone=name, fraction=fraction)
            if value is not None:
                entry = REGISTRY[name]
                whole = table.select(backbone=name, protocol=WHOLE) and entry.pretraining == NOTHING
                kind = SCRATCH if whole else entry.pretraining
                point = {"fraction": 100 * fraction, "error": 100 * value.value}
                rows.append({"pretraining": kind, "name": name, **point})
    if not rows:
        return None
    axis = alt.Axis(values=[10, 20, 50, 100])
    base = alt.Chart(alt.Data(values=rows), width=380, height=240).encode(
        x=alt.X("fraction:Q", title="training rows (%)", scale=alt.Scale(type="log"), axis=axis),
        y=alt.Y("error:Q", title="error after debiasing (%)", scale=alt.Scale(zero=False)),
        color=_colors([row["pretraining"] for row in rows]),
    )
    lines = base.mark_line(strokeWidth=1.5).encode(detail="name:N")
    return lines + base.mark_point(filled=True, size=30)


def pretraining_fraction(table: Table) -> Any:
    """Draw Figure 5: soft rank after debiasing against the fraction of the pretraining data (0 is none)."""
    rows = []
    by_architecture: dict[str, dict[str, float]] = {}
    for name in table.names("backbone"):
        entry = REGISTRY[name]
        if table.select(backbone=name, protocol=HEAD):
            part = 0.0 if entry.pretraining == NOTHING else entry.fraction
            by_architecture.setdefault(entry.architecture, {})[name] = part
    for architecture, parts in by_architecture.items():
        if len(set(parts.values())) < 2:
            continue
        for fraction, panel in zip(FRACTIONS, PANELS, strict=True):
            found = table.over_seeds(
                lambda seed, f=fraction, of=tuple(parts): soft_ranks(table.errors("rto", of, f, seed))
            )
            rows += [
                _row(value, panel=panel, architecture=architecture, part=parts[name])
                for name, value in found.items()
            ]
    if not rows:
        return None
    x = alt.X("part:Q", title="fraction of the pretraining data")
    y = alt.Y("value:Q", title="soft rank of the error")
    lines = (
        alt.Chart()
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "architecture:N", title=None, legend=alt.Legend(orient="top"), scale=alt.Scale(scheme="dark2")
            ),
            strokeDash=alt.StrokeDash("architecture:N", title=None),
        )
    )
    return _panels(alt.layer(lines), rows)
