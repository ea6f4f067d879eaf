"""The page: one self-contained HTML file, made from the content alone.

The template escapes all text, and the embedded JSON never contains `<`. The page's content security policy allows
only the two scripts and the style sheets, by their hashes: no network, frames, inline handlers or eval (Vega
interprets its expressions, `ast: true`).
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from fairramp.core.events import Event
from fairramp.core.table import Table
from fairramp.core.words import exact_points, percentage
from fairramp.show.answers import AnswerForm
from fairramp.show.charts.dumbbell import MANY_ROWS
from fairramp.show.charts.dumbbell import MOST_ROWS as MOST_DUMBBELLS
from fairramp.show.charts.pieces import MOST_DRAWN, missing_extra
from fairramp.show.report.charts import content_charts
from fairramp.show.report.compare_page import compared_texts
from fairramp.show.report.content import Content, PageContent
from fairramp.show.report.say import COSTS, figures_before, limit_of, say
from fairramp.show.report.tables import Number, PageTable, cell, csv_tables, decimals_of, page_tables, values
from fairramp.show.report.texts import (
    aim,
    counted,
    frontier_caption,
    frontier_heading,
    is_ratio,
    limit_name,
    other_events,
    scores_caption,
    term,
)
from fairramp.show.report.verdicts import Judgment
from fairramp.show.words import full, largest

try:
    import jinja2
    import vl_convert
    from markupsafe import Markup
except ImportError as error:
    raise missing_extra(error.name or "jinja2") from None

#: Most rows in a table, to keep the page small enough for an email.
MOST_ROWS = 600

_HERE = Path(__file__).parent
_EACH = ", by each attribute on its own"
_WHAT_IF = '@page { @top-center { content: "What-if: not for approval"; } }'


def assembled(
    template: str,
    content: PageContent,
    judgment: Judgment,
    said: dict[str, Number],
    tables: list[dict[str, Any]],
    payload: dict[str, Any],
    **more: Any,
) -> str:
    """A page as text: its template, filled; `payload` is for its script, and `more` for the template alone."""
    bundle, script = chart_bundle(), page_file("answer.js") + page_file("charts.js") + page_file("page.js")
    # The fingerprint is hexadecimal, so it cannot end the text.
    footer = f'@page {{ @bottom-left {{ content: "Rule {content.rule_fingerprint}"; }} }}'
    style = f"{page_file('page.css')}{footer}\n"
    return filled(
        template,
        content,
        judgment,
        said,
        tables,
        layout="document.html",
        policy="; ".join(
            (
                "default-src 'none'",
                f"script-src {_hash(bundle)} {_hash(script)}",
                f"style-src {_hash(style)} {_hash(_WHAT_IF)}",
                "img-src data:",
                "base-uri 'none'",
                "form-action 'none'",
            )
        ),
        style=Markup(style),
        what_if=Markup(_WHAT_IF),
        script=Markup(script),
        bundle=Markup(bundle),
        payload=Markup(_json(payload)),
        approval=_approval(content, judgment),
        **more,
    )


def filled(
    template: str,
    content: PageContent,
    judgment: Judgment,
    said: dict[str, Number],
    tables: list[dict[str, Any]],
    live: bool = False,
    **more: Any,
) -> str:
    """A template, filled; `live` if the rule is still changing."""
    return (
        templates()
        .get_template(template)
        .render(
            c=content,
            say=said,
            verdict=judgment.worse,
            tables=tables,
            small=any(group.small for group in content.groups),
            live=live,
            **more,
        )
    )


@cache
def templates(*folders: Path) -> jinja2.Environment:
    """The templates of the page, and those of other folders."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, _HERE]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


class Parts(NamedTuple):
    """What the templates and the script of a page need."""

    said: list[dict[str, Number]]  # at each position of the slider
    tables: list[dict[str, Any]]
    cells: list[dict[str, list[Any]]]
    forms: list[AnswerForm]
    more: dict[str, Any]


def page_parts(content: Content) -> Parts:
    """Texts, tables and answers of a report on a rule for yes or no."""
    seats, decimals = largest(content.sizes, MOST_ROWS), decimals_of(content)
    tables, written = page_tables(content), csv_tables(content)
    cells = [
        {table.key: [values(content, o, column, seats) for column in table.columns] for table in tables}
        for o in content.outcomes
    ]
    forms = list(content.answers if content.mixing else [content.answers[k] for k in seats])
    more = {
        "aim": f"{aim(content)}{_EACH if content.settings['membership'] == 'each' else ''}",
        "compared": [_figure(content, event) for event in content.event.simple],
        "others": [_figure(content, event) for event in other_events(content)],
        "term": term(content),
        "costs": COSTS,
        "many": len(content.groups) > MANY_ROWS,
        "figures": figures_before(content),
        "hidden_rates": largest_only(content, MOST_DUMBBELLS),
        "scores": f"{scores_caption(content)} {largest_only(content, MOST_DRAWN)}".rstrip(),
        "answers": [form.group for form in forms],
        "slides": len(content.outcomes) > 1,
        "other": compared_texts(content, seats, decimals),
        "other_csv": csv_link(written["compared"]) if content.compared else "",
    }
    return Parts(
        [say(content, outcome) for outcome in content.outcomes],
        [table_parts(content, table, cells[content.own][table.key], written[table.key]) for table in tables],
        cells,
        forms,
        more,
    )


def table_parts(content: Content, table: PageTable, cells: list[Any], written: Table) -> dict[str, Any]:
    """A table for the template `group_table`, with the same table as CSV."""
    seats, decimals = largest(content.sizes, MOST_ROWS), decimals_of(content)
    return {
        "key": table.key,
        "heading": table.heading,
        "caption": table.caption,
        "heads": [content.group_name],
        "columns": [column.heading for column in table.columns],
        "csv": csv_link(written),
        "hidden": "" if len(seats) == len(content.groups) else larger(len(seats), len(content.groups)),
        "rows": [
            {
                "names": [content.groups[k].name],
                "small": content.groups[k].small,
                "cells": [
                    cell([part[i] for part in parts], column.form, decimals)
                    for parts, column in zip(cells, table.columns, strict=True)
                ],
            }
            for i, k in enumerate(seats)
        ],
    }


def answers_of(content: Content, forms: Sequence[AnswerForm]) -> dict[str, Any]:
    """What the script needs to answer one person."""
    names = ("scale", "higher_is_better", "cutoff")
    return {"forms": [asdict(form) for form in forms], **{name: content.settings[name] for name in names}}


def render(content: Content) -> str:
    """The page as text."""
    parts, tables, charts = page_parts(content), page_tables(content), content_charts(content)
    payload: dict[str, Any] = {
        "own": content.own,
        "verdict": content.chosen.judgment.worse,
        "decimals": decimals_of(content),
        "tables": {
            table.key: [{"form": column.form, "moves": column.moves} for column in table.columns]
            for table in tables
        },
        "outcomes": [
            {
                "say": s,
                "tables": {
                    table.key: [
                        v if c.moves else [] for v, c in zip(found[table.key], table.columns, strict=True)
                    ]
                    for table in tables
                },
            }
            for s, found in zip(parts.said, parts.cells, strict=True)
        ],
        "charts": charts,
        "answers": answers_of(content, parts.forms),
    }
    return assembled(
        "page.html",
        content,
        content.chosen.judgment,
        parts.said[content.own],
        parts.tables,
        payload,
        **parts.more,
        limit=limit_name(content),
        own_limit=limit_of(content.chosen)[0],
        requested=_requested(content),
        facts=facts(content, f"yes = {content.about.decision or 'selected'}"),
        frontier=(frontier_heading(content), frontier_caption(content)) if "frontier" in charts else None,
        limits_csv=csv_link(csv_tables(content)["limits"]),
        origin=_origin(content),
    )


@cache
def chart_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    text = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace("<!--", "<\\!--")
    assert "</script" not in text.lower()
    return text


def page_file(name: str) -> str:
    """A script or the style sheet of the page."""
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> str:
    """JSON for a script element: without `<`, no name can close the element."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def csv_link(table: Table) -> str:
    """An address that contains a CSV file; the mark at its start tells spreadsheets that it is UTF-8."""
    return f"data:text/csv;charset=utf-8,{quote(chr(0xFEFF) + table.to_csv())}"


def larger(shown: int, groups: int) -> str:
    """Says that a table does not show all groups."""
    return f" The table shows the {shown:,} largest of {groups:,} groups; the CSV file has all of them."


def largest_only(content: PageContent, most: int) -> str:
    """Says that a chart shows not all groups; empty if it does."""
    n = len(content.groups)
    return f"The {most} largest of {n:,} groups; the tables show more." if n > most else ""


def facts(content: PageContent, decision: str | None) -> list[str]:
    """What was decided and measured, in a few words each."""
    about, n = content.about, content.rows
    which = {True: "the rows the rule was fitted on", False: "not the rows the rule was fitted on"}
    rows = f"{n:,} {'person' if n == 1 else 'people'}"
    found = [
        decision,
        about.source,
        f"{rows}, {which[content.in_sample]}" if content.in_sample in which else rows,
        about.left_out and about.left_out.removesuffix("."),
        f"rule {content.rule_fingerprint[:8]}",
        f"fairramp {content.versions['fairramp']}",
        about.date,
    ]
    return [fact for fact in found if fact]


def _figure(content: Content, event: Event) -> dict[str, str]:
    """A chart of rates: its name, and what it counts."""
    return {"key": event.name, "counted": counted(content, event)}


def _requested(content: Content) -> str:
    """The gap that was requested for the population, if any."""
    asked = content.settings["asked"]
    if asked is None:
        return ""
    sure = f"{percentage(asked['confidence'])} confidence"
    return f"at most {exact_points(asked['max_gap'])}, with {sure} ({asked['limit']} limit)"


#: Where each level is, if there is no common one.
_LEVELS = {"known": "by stratum", "probabilities": "by stratum", "each": "by attribute"}
_SAME = {True: "yes", False: "no", None: "not known"}


def _approval(content: PageContent, judgment: Judgment) -> list[tuple[str, str]]:
    """What is approved."""
    about = content.about
    return [
        ("Decision", about.decision or "not given"),
        ("Owner", about.owner or "not given"),
        ("Data file", about.source or "not given"),
        *_left_out(content),
        ("Date of this report", about.date or "not given"),
        ("Same rows as the fit", _SAME[content.in_sample]),
        ("Rule (fingerprint)", content.rule_fingerprint),
        ("Verdict", judgment.headline),
        *(
            (text.partition(": ")[0], text.partition(": ")[2])
            for text in (judgment.on_rows, judgment.on_people)
            if text
        ),
    ]


def _left_out(content: PageContent) -> list[tuple[str, str]]:
    """The rows of the file that are not on this page."""
    return [("Rows left out", content.about.left_out)] if content.about.left_out else []


def _origin(content: Content) -> list[tuple[str, str]]:
    s, target = content.settings, content.settings["target_rate"]
    lower = "" if s["higher_is_better"] else ", lower scores are better"
    return origin(
        content,
        *([("Requested gap in the population", _requested(content))] if s["asked"] else []),
        (
            "Criterion",
            f"equal {' and '.join(event.rate + 's' for event in content.event.simple)}"
            f"{' within strata' if s['stratified'] else ''}"
            f"{_EACH if s['membership'] == 'each' else ''}",
        ),
        *([("How thresholds are mixed", content.mixing)] if content.mixing else []),
        ("Lowest allowed ratio on the fit rows", full(s["min_ratio"]))
        if is_ratio(content)
        else ("Largest allowed gap on the fit rows", full(s["max_gap"])),
        (
            "Chosen for" if content.event.parts else "Target rate",
            target
            if isinstance(target, str)
            else full(target) or ("not recorded" if content.event.parts else _LEVELS[s["membership"]]),
        )
        if s["overall_rate"] is None
        else ("Overall selection rate", full(s["overall_rate"])),
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
        *(content.label_names.listed().items() if content.labeled else ()),
    )


def origin(content: PageContent, *fit: tuple[str, str]) -> list[tuple[str, str]]:
    """Where the numbers come from; `fit` are the settings of the fit."""
    s = content.settings
    return [
        ("Rule (fingerprint)", content.rule_fingerprint),
        ("These rows (fingerprint)", content.data_fingerprint),
        ("Fit rows (fingerprint)", content.fit_fingerprint or "not recorded"),
        ("Same rows as the fit", _SAME[content.in_sample]),
        *_left_out(content),
        *fit,
        ("Groups not in the fit rows", s["unseen_group"]),
        ("Weighted rows", "yes" if content.weighted else "no"),
        ("Confidence level of intervals", full(content.confidence)),
        *([("Date of fit", str(s["date"]))] if s["date"] is not None else []),
        *((f"Version: {name}", version) for name, version in content.versions.items()),
    ]
