"""The page: one self-contained HTML file, made from the content alone.

The template escapes all text, and the embedded JSON never contains `<`. The page's content security policy allows
only the two scripts and the style sheet, by their hashes: no network, frames, inline handlers or eval (Vega
interprets its expressions, `ast: true`).
"""

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from math import floor, isinf, log10
from pathlib import Path
from typing import Any, NamedTuple

from fairramp.core.events import EVENTS, SELECTION, Event
from fairramp.core.scales import scale_of
from fairramp.core.words import exact_points, fixed, number, percent, percentage, points
from fairramp.measure.rates import Selection
from fairramp.show.charts import MOST_DRAWN, changes_chart, frontier_chart, ramp_tables, ramps_chart, rates_chart
from fairramp.show.pieces import STYLED, Groups, alt, finished, missing_extra, table
from fairramp.show.report.content import Content, Outcome
from fairramp.show.report.texts import (
    AIMS,
    UNITS,
    abbreviations,
    chart_texts,
    has_constants,
    has_ramps,
    has_steps,
    is_ratio,
    limit_name,
    rates_key,
    reading,
)
from fairramp.show.words import full, isolated, largest

try:
    import jinja2
    import vl_convert
    from markupsafe import Markup
except ImportError as error:
    raise missing_extra(error.name or "jinja2") from None

#: Most rows in the table, to keep the page small enough for an email.
MOST_ROWS = 600

_HERE = Path(__file__).parent


def render(content: Content) -> str:
    """The page as text."""
    page, style, script = ((_HERE / f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    template = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    ).from_string(page)
    bundle = _bundle()
    seats, columns, decimals = largest(content.sizes, MOST_ROWS), _columns(content), _decimals(content)
    said = [_say(content, outcome) for outcome in content.outcomes]
    cells = [[_values(content, o, column, seats) for column in columns] for o in content.outcomes]
    payload: dict[str, Any] = {
        "own": content.own,
        "decimals": decimals,
        "columns": [{"form": column.form, "moves": column.moves} for column in columns],
        "outcomes": [
            {"say": s, "columns": [v if c.moves else [] for v, c in zip(values, columns, strict=True)]}
            for s, values in zip(said, cells, strict=True)
        ],
        "charts": content_charts(content),
    }
    return template.render(
        c=content,
        policy="; ".join(
            (
                "default-src 'none'",
                f"script-src {_hash(bundle)} {_hash(script)}",
                f"style-src {_hash(style)}",
                "img-src data:",
                "base-uri 'none'",
                "form-action 'none'",
            )
        ),
        style=Markup(style),
        script=Markup(script),
        bundle=Markup(bundle),
        payload=Markup(_json(payload)),
        before=_sentence(content.sentence),
        say=said[content.own],
        aim=AIMS[content.event.name],
        limit=limit_name(content),
        own_limit=_limit(content.chosen)[0],
        requested=_requested(content),
        figures=_figures(content),
        charts=[entry for entry in chart_texts(content) if entry[0] in payload["charts"]],
        drawn=(
            f"The {MOST_DRAWN} largest of {len(content.groups):,} groups; the table shows more."
            if len(content.groups) > MOST_DRAWN
            else ""
        ),
        colored=_groups(content).meaning,
        reading=reading(content),
        abbreviation=abbreviations(content),
        unit=UNITS.get(content.settings["scale"], ""),
        hidden=len(seats) < len(content.groups),
        columns=[column.name for column in columns],
        rows=[
            {
                "name": content.groups[k].name,
                "small": content.groups[k].small,
                "cells": [
                    _cell(values, column.form, i, decimals)
                    for values, column in zip(cells[content.own], columns, strict=True)
                ],
            }
            for i, k in enumerate(seats)
        ],
        origin=_origin(content),
    )


def _groups(content: Content) -> Groups:
    """The groups shown in the charts."""
    seats = largest(content.sizes, MOST_DRAWN)
    return Groups(
        [content.groups[i].name for i in seats],
        [content.before.rate[i] for i in seats],
        # With two rates, no group has the lowest or the highest.
        compared=not content.settings["stratified"] and not content.event.parts,
        theme=STYLED,
        at=content.own,
        rate=content.event.rate,
    )


def content_charts(content: Content) -> dict[str, dict[str, Any]]:
    """All charts of a report as Vega-Lite specifications, by name."""
    seats, drawn, outcomes = largest(content.sizes, MOST_DRAWN), _groups(content), content.outcomes
    scale = scale_of(content.settings["scale"], content.settings["higher_is_better"])

    def by_position(name: str) -> list[list[float | None]]:
        return table([getattr(o, name) for o in outcomes], seats)

    def rates(event: Event) -> Any:
        def of(found: Selection, name: str) -> Sequence[float]:
            values: Sequence[float] = getattr(found.rates[event.name], name)
            return values

        parts = ("rate", "lower", "upper")
        return rates_chart(
            replace(drawn, rate=event.rate),
            [[of(before, part)[i] for i in seats] for part in parts],
            [table([of(o.after, part) for o in outcomes], seats) for part in parts],
        )

    groups, before, chosen = [content.groups[i] for i in seats], content.before, content.chosen
    charts = {
        "scores": ramps_chart(
            drawn,
            scale,
            ramp_tables(
                scale, seats, [(o.ramp_from, o.ramp_to, o.thresholds, o.constant_chances) for o in outcomes]
            ),
            content.settings["cutoff"],
            [(g.histogram, g.rows) for g in groups],
        ),
        **{rates_key(content, event): rates(event) for event in content.event.simple},
        "changes": changes_chart(drawn, by_position("changed_to_yes"), by_position("changed_to_no")),
    }
    if content.selected_before is not None:
        charts["selected"] = rates(SELECTION)
    ratios = is_ratio(content)

    def apart(found: Selection) -> float:
        return found.ratio if ratios else found.gap

    if before.overall_accuracy is not None and any(apart(o.after) == apart(o.after) for o in outcomes):
        charts["frontier"] = frontier_chart(
            [apart(o.after) for o in outcomes],
            [o.after.overall_accuracy or 0.0 for o in outcomes],
            [o.accuracy_interval or (0.0, 0.0) for o in outcomes],
            (apart(before), before.overall_accuracy),
            (apart(chosen.after), chosen.after.overall_accuracy or 0.0),
            [i for i, o in enumerate(outcomes) if content.in_sample or not o.is_own],
            content.own,
            STYLED,
            ratios=ratios,
            several=content.event.parts != (),
        )
    with alt.theme.enable("none"):  # the page must not depend on a notebook's theme
        found = {name: finished(chart, STYLED).to_dict() for name, chart in charts.items()}
    # Vega would warn if the page's copy of Vega-Lite is older than Altair's.
    return {name: {key: part for key, part in spec.items() if key != "$schema"} for name, spec in found.items()}


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    text = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace("<!--", "<\\!--")
    assert "</script" not in text.lower()
    return text


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> str:
    """JSON for a script element: without `<`, no name can close the element."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _sentence(text: str) -> str:
    """Text with its first letter capitalized, unless it starts with an isolated name."""
    return text[:1].upper() + text[1:]


#: A number as shown, and with all its digits.
_Number = tuple[str, str]
_two = partial(number, decimals=2)


def _number(value: float | None, spelled: Callable[[float], str]) -> _Number:
    return "" if value is None else spelled(value), full(value)


def _interval(name: str, limits: tuple[float, float], *spelled: Callable[[float], str]) -> _Number:
    low, high = (spell(limit) for spell, limit in zip((spelled[0], spelled[-1]), limits, strict=True))
    return f"{name} {low} to {high}", " – ".join(map(full, limits))


def _ci(content: Content) -> str:
    return f"{percentage(content.confidence)} CI"


def _limit(o: Outcome) -> _Number:
    """The limit at a position of the slider."""
    if o.min_ratio is None:
        return _number(o.max_gap, exact_points)
    return _number(o.min_ratio, lambda ratio: fixed(ratio, 2) if round(ratio, 2) == ratio else full(ratio))


def _thresholds(o: Outcome) -> str:
    """The range of the thresholds; a group in which everyone has the same probability has none."""
    known = [threshold for threshold in o.thresholds if threshold == threshold]
    return f"Thresholds from {number(min(known), 3)} to {number(max(known), 3)}" if known else "No thresholds"


def _say(content: Content, o: Outcome) -> dict[str, _Number]:
    """Every text that depends on the slider, with rounded numbers and with all digits."""
    before, after, names = content.before, o.after, [isolated(group.name) for group in content.groups]
    interval = partial(_interval, _ci(content))
    said = {
        "limit": _limit(o),
        "ratio": _number(after.ratio, _two),
        "ratio_limits": interval(after.ratio_interval, _two),
        "changed": _number(o.changed, percent),
        "drawn": _number(o.drawn, percent),
        "overall_rate": _number(o.overall_rate, percent),
        "guarantee": (o.guarantee.sentence, full(o.guarantee.estimated)),
    }
    for key, event in _gaps(content):
        rates = after.rates[event.name]
        said[key] = _number(rates.gap, points)
        said[f"{key}_limits"] = interval(rates.gap_interval, lambda gap: fixed(100 * gap, 1), points)
    texts = {
        "where": "This is the reported rule."
        if o.is_own
        else "This is not the reported rule but one with the same settings, fitted to these rows.",
        "verdict": _sentence(o.sentence),
        "beside": o.selected_sentence,
        "assumptions": o.guarantee.assumptions,
        "label_scores": f"Chart: score distribution of each group. {_thresholds(o)}; see the table below.",
        **{
            f"label_{rates_key(content, event)}": _rates_label(event.rate, after.rates[event.name].rate, names)
            for event in content.event.simple
        },
        "label_changes": f"Chart: share of decisions that change in each group, {percent(o.changed)} overall; "
        "see the table below.",
    }
    if o.selected is not None:
        texts["label_selected"] = _rates_label(SELECTION.rate, o.selected.rate, names)
    if after.overall_accuracy is not None and o.accuracy_interval is not None:
        apart, now, alone = (
            ("ratio", _two(after.ratio), _two(before.ratio))
            if is_ratio(content)
            else ("gap", points(after.gap), points(before.gap))
        )
        apart = f"larger {apart}" if content.event.parts else apart
        said["accuracy"] = _number(after.overall_accuracy, percent)
        said["accuracy_limits"] = interval(o.accuracy_interval, percent)
        texts["label_frontier"] = (
            f"Chart: accuracy against {apart}. This rule: {said['accuracy'][0]} at a {apart} of "
            f"{now}. Classifier alone: {percent(before.overall_accuracy or 0.0)} at {alone}."
        )
    return said | {name: (text, "") for name, text in texts.items()}


def _rates_label(rate: str, rates: Sequence[float], names: Sequence[str]) -> str:
    """The rates under the rule, for people who do not see the chart."""
    low, *_, high = sorted([*range(len(names)), 0], key=rates.__getitem__)
    return (
        f"Chart: {rate}s before and after. After: from {percent(rates[low])} for {names[low]} to "
        f"{percent(rates[high])} for {names[high]}; see the table below."
    )


def _gaps(content: Content) -> list[tuple[str, Event]]:
    """Key and event of each gap that the rule limits."""
    events = content.event.simple
    return [("gap" if len(events) == 1 else f"gap_{event.name}", event) for event in events]


def _figures(content: Content) -> list[tuple[str, str, _Number | None]]:
    """Key, name and value before the rule, of each headline number."""
    before, compared = content.before, content.event is not SELECTION
    found: list[tuple[str, str, _Number | None]] = [
        *(
            (
                key,
                f"Gap between {event.rate}s" if compared else "Gap between groups",
                _number(before.rates[event.name].gap, points),
            )
            for key, event in _gaps(content)
        ),
        ("ratio", "Ratio (lowest ÷ highest)", _number(before.ratio, _two)),
        ("overall_rate", "Selected overall", _number(content.overall_rate_before, percent)),
        ("changed", "Decisions that change", None),
        ("drawn", "Decided at random", None),
        ("accuracy", "Accuracy", _number(before.overall_accuracy, percent)),
    ]
    if is_ratio(content):
        found[:2] = found[1::-1]  # the ratio first, which the rule limits
    left_out = {
        "ratio": content.event.parts != (),
        "overall_rate": not compared and content.settings["overall_rate"] is None,
        "accuracy": not content.labeled,
    }
    return [figure for figure in found if not left_out.get(figure[0])]


class _Column(NamedTuple):
    """A column of the table: one number per group, or the two ends of an interval."""

    name: str
    form: str
    sources: tuple[str, ...]
    moves: bool = True  # with the slider: read from the outcome, otherwise from the content


def _columns(content: Content) -> list[_Column]:
    """The columns of the table."""
    ramps = {
        _Column("ramp from", "score", ("ramp_from",)): has_ramps(content),
        _Column("ramp to", "score", ("ramp_to",)): has_ramps(content),
        _Column("probability at threshold", "share", ("tie_chances",)): has_steps(content),
        _Column("constant probability", "share", ("constant_chances",)): has_constants(content),
    }
    events = content.event.simple
    selected = [
        _Column("selected before", "share", ("selected_before.rate",), moves=False),
        _Column("selected after", "share", ("selected.rate",)),
    ]
    errors = {
        "true_positive": _Column(EVENTS["true_positive"].rate, "share", ("after.true_positive_rate",)),
        "false_positive": _Column(EVENTS["false_positive"].rate, "share", ("after.false_positive_rate",)),
    }
    return [
        _Column("rows", "count", ("sizes",), moves=False),
        *(
            _Column(f"label {event.label}", "count", (f"before.rates.{event.name}.rows",), moves=False)
            for event in events
            if event.label is not None
        ),
        _Column("threshold", "score", ("thresholds",)),
        *(column for column, holds in ramps.items() if holds),
        *(column for event in events for column in _rates_columns(content, event)),
        *(selected if content.selected_before is not None else []),
        _Column("newly selected", "share", ("changed_to_yes",)),
        _Column("no longer selected", "share", ("changed_to_no",)),
        *([_Column("accuracy", "share", ("after.accuracy",))] if content.labeled else []),
        *(column for name, column in errors.items() if content.labeled and EVENTS[name] not in events),
    ]


def _rates_columns(content: Content, event: Event) -> list[_Column]:
    """The rates of an event with their intervals, before and after."""
    found = []
    for when in ("before", "after"):
        rate, lower, upper = (f"{when}.rates.{event.name}.{part}" for part in ("rate", "lower", "upper"))
        moves = when == "after"
        found += [
            _Column(f"{event.short} {when}", "share", (rate,), moves),
            _Column(_ci(content), "range", (lower, upper), moves),
        ]
    return found


def _values(content: Content, o: Outcome, column: _Column, seats: list[int]) -> list[list[Any]]:
    """The parts of each cell of a column; None for NaN."""
    parts = [_found(o if column.moves else content, source) for source in column.sources]
    chosen = [[part[k] for k in seats] for part in parts]
    return [[_plain(v) for v in part] for part in chosen]


def _found(start: Any, path: str) -> Any:
    """The value at a path of attributes and keys."""
    for name in path.split("."):
        start = start[name] if isinstance(start, dict) else getattr(start, name)
    return start


def _plain(value: float | int) -> float | int | str | None:
    """A number for JSON, which has neither NaN nor infinity."""
    if not isinstance(value, float):
        return value
    return None if value != value else number(value, 0) if isinf(value) else float(full(value))


def _cell(values: list[list[Any]], form: str, i: int, decimals: int) -> _Number:
    parts = [part[i] for part in values]
    if parts[0] is None:
        return "–", ""
    forms: dict[str, Callable[..., str]] = {
        "count": "{:,}".format,
        "range": lambda low, high: f"{fixed(100 * low, 1)}–{percent(high)}",
        "share": percent,
        "score": lambda value: value if isinstance(value, str) else fixed(value, decimals),
    }
    return forms[form](*parts), " – ".join(part if isinstance(part, str) else full(part) for part in parts)


def _decimals(content: Content) -> int:
    """Enough decimals for the two ends of a ramp to differ."""
    return max(4, 2 - floor(log10(content.settings["ramp_width"] or 1.0)))


def _requested(content: Content) -> str:
    """The gap that was requested for the population, if any."""
    asked = content.settings["asked"]
    if asked is None:
        return ""
    sure = f"{percentage(asked['confidence'])} confidence"
    return f"at most {exact_points(asked['max_gap'])}, with {sure} ({asked['limit']} limit)"


def _origin(content: Content) -> list[tuple[str, str]]:
    s, target = content.settings, content.settings["target_rate"]
    lower = "" if s["higher_is_better"] else ", lower scores are better"
    return [
        ("Rule (fingerprint)", content.rule_fingerprint),
        ("These rows (fingerprint)", content.data_fingerprint),
        ("Fit rows (fingerprint)", content.fit_fingerprint or "not recorded"),
        *([("Requested gap in the population", _requested(content))] if s["asked"] else []),
        (
            "Criterion",
            f"equal {' and '.join(event.rate + 's' for event in content.event.simple)}"
            f"{' within strata' if s['stratified'] else ''}",
        ),
        ("Lowest allowed ratio on the fit rows", full(s["min_ratio"]))
        if is_ratio(content)
        else ("Largest allowed gap on the fit rows", full(s["max_gap"])),
        (
            "Chosen for" if content.event.parts else "Target rate",
            target
            if isinstance(target, str)
            else full(target) or ("not recorded" if content.event.parts else "by stratum"),
        )
        if s["overall_rate"] is None
        else ("Selection rate of everybody together", full(s["overall_rate"])),
        *(
            [("Costs of a false positive and a false negative", " and ".join(map(full, s["costs"])))]
            if s["costs"]
            else []
        ),
        (
            "Ramp",
            f"{s['ramp']}, {'least ' if content.event.parts else ''}width {full(s['ramp_width'])}"
            f"{' percent' if s['scale'] == 'percent' else ''}",
        ),
        ("Classifier's own cutoff", f"{full(s['cutoff'])}, scale {s['scale']}{lower}"),
        ("Groups not in the fit rows", s["unseen_group"]),
        ("Weighted rows", "yes" if content.weighted else "no"),
        ("Confidence level of intervals", full(content.confidence)),
        *([("Date of fit", str(s["date"]))] if s["date"] is not None else []),
        *((f"Version: {name}", version) for name, version in content.versions.items()),
    ]
