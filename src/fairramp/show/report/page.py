"""The page: one HTML file with everything in it, drawn from the content and from nothing else.

Texts come through a template that escapes them; data as JSON in which `<` cannot occur. The page's policy allows
the two scripts and the style sheet by their hashes and nothing else: no network, no frame, no inline handler, no
eval (the drawing program interprets its expressions, `ast: true`).
"""

import base64
import hashlib
import json
from functools import cache
from math import floor, log10
from pathlib import Path
from typing import Any

from fairramp.show.charts import MOST_DRAWN
from fairramp.show.extra import missing_extra
from fairramp.show.report.charts import content_charts, content_groups
from fairramp.show.report.content import Content, Outcome
from fairramp.show.words import fixed, full, isolated, level, percent, points

__all__ = ["render"]

#: Rows of the table; more groups would make the page too large for an e-mail.
MOST_ROWS = 600

_HERE = Path(__file__).parent


def render(content: Content) -> str:
    """The page as text."""
    try:
        import jinja2
        import vl_convert  # noqa: F401
        from markupsafe import Markup
    except ImportError as error:
        raise missing_extra(error.name or "jinja2") from None
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string((_HERE / "page.html").read_text(encoding="utf-8"))
    style, script = ((_HERE / f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    bundle = _bundle()
    seats = sorted(content.largest[:MOST_ROWS])
    columns = _columns(content)
    say = [_say(content, outcome) for outcome in content.outcomes]
    texts = say[content.own]
    cells = [[_values(content, o, key, seats) for key, *_ in columns] for o in content.outcomes]
    decimals = _decimals(content)
    payload: dict[str, Any] = {
        "own": content.own,
        "decimals": decimals,
        "columns": [{"form": form, "moves": moves} for _, _, form, moves in columns],
        "outcomes": [
            {"say": s, "columns": [v if c[3] else [] for v, c in zip(values, columns, strict=True)]}
            for s, values in zip(say, cells, strict=True)
        ],
        "charts": content_charts(content),
    }
    own = cells[content.own]
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
        say=texts,
        own_gap=points(content.chosen.max_gap),
        figures=_figures(content),
        charts=[entry for entry in _CHARTS if entry[0] in payload["charts"]],
        drawn=(
            f"The {MOST_DRAWN} largest of {len(content.groups):,} groups; all are in the table."
            if len(content.groups) > MOST_DRAWN
            else ""
        ),
        coloured=content_groups(content).meaning,
        level=level(content.confidence),
        unit=_UNITS.get(content.settings["scale"], ""),
        hidden=len(seats) < len(content.groups),
        columns=[(key, name) for key, name, *_ in columns],
        rows=[
            {
                "name": content.groups[k].name,
                "small": content.groups[k].small,
                "cells": [
                    _cell(values, form, i, decimals) for values, (_, _, form, _) in zip(own, columns, strict=True)
                ],
            }
            for i, k in enumerate(seats)
        ],
        origin=_origin(content),
    )


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    text = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace("<!--", "<\\!--")
    assert "</script" not in text.lower()
    return text


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> str:
    """JSON inside a script element: no `<`, so that no name can end it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _sentence(text: str) -> str:
    """With a capital at the start, unless a name stands there."""
    return text[:1].upper() + text[1:]


_CHARTS = (
    (
        "scores",
        "Scores, and where the rule says yes",
        "How each group’s scores are spread, on a square-root scale so that rare scores are seen. Filled: "
        "selected. The line is the chance of a yes, from never to always; the figure is the threshold. Dashed: "
        "the classifier’s own cut-off.",
    ),
    (
        "rates",
        "How often each group is selected",
        "Open dots: the classifier’s own decisions. Full dots: the rule. Lines show how far chance alone may "
        "move a rate.",
    ),
    (
        "changes",
        "Whose decision changes",
        "The share of each group whose answer the rule turns round, on average over its draws.",
    ),
    (
        "frontier",
        "What a smaller gap costs",
        "Share of right decisions against the gap that is left, with its uncertainty, for rules with the same "
        "settings, fitted to and measured on these rows. The orange dot follows the slider.",
    ),
)


#: What the numbers of the table are, where they are no scores from 0 to 1 or from −1 to 1.
_UNITS = {
    "logit": "Here thresholds and ramps are probabilities, 1/(1 + exp(−logit)).",
    "percent": "Here thresholds and ramps are in percent, like the scores.",
}


def _say(content: Content, o: Outcome) -> dict[str, tuple[str, str]]:
    """Every text that the slider moves, rounded and in full."""
    rates = sorted(range(len(content.groups)), key=lambda k: o.rates[k])
    low, high = rates[0], rates[-1]
    names = [isolated(g.name) for g in content.groups]
    said = {
        "max_gap": (points(o.max_gap), full(o.max_gap)),
        "where": (
            "This is the reported rule itself."
            if o.is_own
            else "This is not the reported rule, but one with its settings, fitted to these rows.",
            "",
        ),
        "verdict": (_sentence(o.sentence), ""),
        "gap": (points(o.gap), full(o.gap)),
        "gap_limits": (
            f"range {fixed(100 * o.gap_interval[0], 2)} to {fixed(100 * o.gap_interval[1], 2)}",
            " – ".join(map(full, o.gap_interval)),
        ),
        "ratio": (fixed(o.ratio, 2), full(o.ratio)),
        "ratio_limits": (
            f"range {fixed(o.ratio_interval[0], 2)} to {fixed(o.ratio_interval[1], 2)}",
            " – ".join(map(full, o.ratio_interval)),
        ),
        "changed": (percent(o.changed), full(o.changed)),
        "drawn": (percent(o.drawn), full(o.drawn)),
        "promise": (o.promise.sentence, full(o.promise.gap)),
        "assumptions": (o.promise.assumptions, ""),
        "label_scores": (
            f"Chart: score distributions of the groups. Thresholds from {fixed(min(o.thresholds), 3)} to "
            f"{fixed(max(o.thresholds), 3)}; all are in the table below.",
            "",
        ),
        "label_rates": (
            f"Chart: selection rates before and after. After, from {percent(o.rates[low])} for {names[low]} to "
            f"{percent(o.rates[high])} for {names[high]}; all are in the table below.",
            "",
        ),
        "label_changes": (
            f"Chart: decisions that change, {percent(o.changed)} of all; by group in the table below.",
            "",
        ),
    }
    if o.accuracy is not None and o.accuracy_interval is not None:
        said["accuracy"] = (percent(o.accuracy), full(o.accuracy))
        said["accuracy_limits"] = (
            f"range {percent(o.accuracy_interval[0])} to {percent(o.accuracy_interval[1])}",
            " – ".join(map(full, o.accuracy_interval)),
        )
        said["label_frontier"] = (
            f"Chart: accuracy against gap. Here {percent(o.accuracy)} at a gap of {points(o.gap)}; the "
            f"classifier alone has {percent(content.accuracy or 0.0)} at {points(content.gap)}.",
            "",
        )
    return said


def _figures(content: Content) -> list[tuple[str, str, tuple[str, str] | None]]:
    """Key, name and what it was before."""
    found: list[tuple[str, str, tuple[str, str] | None]] = [
        ("gap", "Gap between groups", (points(content.gap), full(content.gap))),
        ("ratio", "Lowest rate ÷ highest", (fixed(content.ratio, 2), full(content.ratio))),
        ("changed", "Decisions that change", None),
        ("drawn", "Decisions drawn by lot", None),
    ]
    if content.accuracy is not None:
        found.append(("accuracy", "Right decisions", (percent(content.accuracy), full(content.accuracy))))
    return found


def _columns(content: Content) -> list[tuple[str, str, str, bool]]:
    """Key, heading, form and whether the slider moves it, for each column of the table."""
    ramps = (
        [("ramp_from", "drawn from", "score", True), ("ramp_to", "drawn to", "score", True)]
        if content.settings["ramp_width"] > 0
        else [("tie_chances", "chance at threshold", "share", True)]
    )
    found = [
        ("rows", "rows", "whole", False),
        ("thresholds", "threshold", "score", True),
        *ramps,
        ("rate_before", "rate before", "share", False),
        ("limits_before", "range", "range", False),
        ("rates", "rate after", "share", True),
        ("limits", "range", "range", True),
        ("changed_to_yes", "turned to yes", "share", True),
        ("changed_to_no", "turned to no", "share", True),
    ]
    if content.labelled:
        found += [
            ("group_accuracy", "right decisions", "share", True),
            ("true_positive_rate", "true positive rate", "share", True),
            ("false_positive_rate", "false positive rate", "share", True),
        ]
    return found


def _values(content: Content, o: Outcome, key: str, seats: list[int]) -> list[list[float | int | None]]:
    """The parts of each cell of a column: one number, or two for a range."""
    groups = content.groups
    sources: dict[str, list[Any]] = {
        "rows": [[g.rows for g in groups]],
        "rate_before": [[g.rate for g in groups]],
        "limits_before": [[g.lower for g in groups], [g.upper for g in groups]],
        "limits": [o.lower, o.upper],
    }
    parts = sources.get(key) or [getattr(o, key)]
    return [[_digits(part[k]) for k in seats] for part in parts]


def _digits(value: float | int | None) -> float | int | None:
    return float(full(value)) if isinstance(value, float) else value


def _cell(values: list[list[Any]], form: str, i: int, decimals: int) -> tuple[str, str]:
    parts = [part[i] for part in values]
    if parts[0] is None:
        return "–", ""
    if form == "whole":
        return f"{parts[0]:,}", str(parts[0])
    if form == "range":
        return f"{fixed(100 * parts[0], 1)}–{percent(parts[1])}", " – ".join(map(full, parts))
    return percent(parts[0]) if form == "share" else fixed(parts[0], decimals), full(parts[0])


def _decimals(content: Content) -> int:
    """Decimals at which the ends of a ramp differ."""
    width = content.settings["ramp_width"]
    return 4 if width == 0 else max(4, 2 - floor(log10(width)))


def _origin(content: Content) -> list[tuple[str, str]]:
    s = content.settings
    settings = [
        ("Rule (fingerprint)", content.rule_fingerprint),
        ("These rows (fingerprint)", content.data_fingerprint),
        ("Fit rows (fingerprint)", content.fit_fingerprint or "not on record"),
        ("Largest allowed gap", full(s["max_gap"])),
        (
            "Target rate",
            s["target_rate"] if isinstance(s["target_rate"], str) else full(s["target_rate"]) or "by stratum",
        ),
        ("Ramp", f"{s['ramp']}, width {full(s['ramp_width'])}{' percent' if s['scale'] == 'percent' else ''}"),
        ("Cut-off of the classifier", f"{full(s['cutoff'])}, scale {s['scale']}"),
        ("Criterion", "equal rates" if s["criterion"] == "parity" else "equal rates within strata"),
        ("Groups the fit did not see", s["unseen_group"]),
        ("Rows have weights", "yes" if content.weighted else "no"),
        ("Confidence of intervals", full(content.confidence)),
    ]
    if s["date"] is not None:
        settings.append(("Date of the fit", str(s["date"])))
    return settings + [(f"Version: {name}", version) for name, version in content.versions.items()]
