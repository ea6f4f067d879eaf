"""The page of a report on several classes: its texts and charts, for the template that all reports share."""

from typing import Any

from fairramp.core.words import exact_points, percent, points
from fairramp.show.charts.class_panels import MOST_CLASSES
from fairramp.show.charts.dumbbell import MANY_ROWS, Changes, Dots, dumbbell_chart
from fairramp.show.charts.dumbbell import MOST_ROWS as MOST_DUMBBELLS
from fairramp.show.charts.pieces import STYLED, Groups
from fairramp.show.report.charts import called, specified
from fairramp.show.report.class_content import ClassContent
from fairramp.show.report.class_tables import class_tables
from fairramp.show.report.page import MOST_ROWS, assembled, csv_link, facts, larger, largest_only, origin
from fairramp.show.report.say import cost_texts, rates_label, spelled_out, verdict_texts, with_limits
from fairramp.show.report.tables import Number
from fairramp.show.words import full, largest, marked, people

#: The costs that are shown, in order.
_COSTS = ("changed", "wrong", "drawn")


def render_classes(content: ClassContent) -> str:
    """The page as text."""
    drawn, said = content.classes[:MOST_CLASSES], _say(content)
    s, decimals = content.settings, content.settings["decimals"]
    tables = []
    for table in class_tables(content):
        rows = table.shown(content.sizes, MOST_ROWS)
        shown = len({table.groups[row] for row in rows})
        tables.append(
            {
                "key": table.key,
                "heading": table.heading,
                "caption": table.caption,
                "heads": [heading for _, heading in table.names],
                "columns": [column.heading for column in table.columns],
                "csv": csv_link(table.to_table()),
                "hidden": larger(shown, len(content.groups)) if len(rows) < len(table.groups) else "",
                "rows": [
                    {
                        "names": [names[row] for names in table.names.values()],
                        "small": (group := table.groups[row]) is not None and content.groups[group].small,
                        "cells": table.cells(row, decimals),
                    }
                    for row in rows
                ],
            }
        )
    charts = {f"class-{c}": _rates(content, c) for c in range(len(drawn))}
    left_out = len(content.classes) - len(drawn)
    return assembled(
        "class_page.html",
        content,
        content.judgment,
        said,
        tables,
        {
            "own": 0,
            "verdict": content.judgment.worse,
            "decimals": decimals,
            "tables": {},
            "outcomes": [{"say": said, "tables": {}}],
            "charts": specified(charts, charts),
            "answers": {"forms": []},
        },
        aim=f"all groups{' of a stratum' if s['stratified'] else ''} get each class at similar rates",
        facts=facts(content, None if (decided := content.about.decision or "") in content.title else decided),
        term="The gap of a class is its highest rate in the groups minus its lowest, in percentage points."
        if len(content.groups) > 1
        else "",
        classes=[f"class-{c}" for c in range(len(drawn))],
        thirds=len(drawn) not in (1, 2, 4),
        costs=_COSTS,
        many=len(drawn) * min(len(content.groups), MOST_DUMBBELLS) > MANY_ROWS,
        figures=_figures_before(content),
        hidden_rates=" ".join(
            text
            for text in (
                f"The first {len(drawn)} of {len(content.classes):,} classes." if left_out else "",
                largest_only(content, MOST_DUMBBELLS),
            )
            if text
        ),
        requested="",
        slides=False,
        origin=origin(
            content,
            ("Criterion", f"equal rates of every class{' within strata' if s['stratified'] else ''}"),
            ("Largest allowed gap on the fit rows", full(s["max_gap"])),
            ("Ramp width", full(s["ramp_width"])),
        ),
    )


def _rates(content: ClassContent, c: int) -> Any:
    """The rates of a class, before and after; all classes have the same axis."""
    seats, changes = largest(content.sizes, MOST_DUMBBELLS), content.changes
    before, after = (list(found.rates.values())[c].rate for found in (content.before, content.after))
    return dumbbell_chart(
        Groups([called(content, i) for i in seats], STYLED),
        Dots([[before[i] for i in seats]]),
        Dots([[after[i] for i in seats]]),
        rate="rate",
        people=[f"{content.sizes[i]:,}" for i in seats],
        changes=Changes(
            *([[people(amounts[c][i]) for i in seats]] for amounts in (changes.gain, changes.lose)),
            words=("now in", "now out"),
        ),
        highest=max(rate for rate in (*content.before.rate, *content.after.rate) if rate == rate),
    )


def _say(content: ClassContent) -> dict[str, Number]:
    """All texts."""
    judgment, guarantee, before, after = content.judgment, content.guarantee, content.before, content.after
    texts = {**verdict_texts(judgment, guarantee), "harm": "", "lead": _lead(content)}
    for c, (was, now) in enumerate(zip(before.rates.values(), after.rates.values(), strict=True)):
        name = marked(content.classes[c])
        gap = f": gap {points(now.gap)}, was {points(was.gap)}" if len(content.groups) > 1 else ""
        texts[f"lead_class-{c}"] = f"{name}{gap}"
        texts[f"label_class-{c}"] = rates_label(content, f"rates of class {name}", now.rate)
    said = {name: (text, "") for name, text in texts.items()}
    said["guarantee"] = (guarantee.sentence, full(guarantee.estimated))
    said["gap"] = with_limits(after.gap, after.gap_interval, points)
    if after.overall_accuracy is not None and content.accuracy_interval is not None:
        said["accuracy"] = with_limits(after.overall_accuracy, content.accuracy_interval, percent)
    more = None if content.wrong is None or content.wrong_before is None else content.wrong - content.wrong_before
    return said | cost_texts(
        (content.people_changed, content.overall_changed),
        (content.people_drawn, content.drawn),
        more,
        (before.overall_accuracy, after.overall_accuracy),
    )


def _lead(content: ClassContent) -> str:
    """The largest gap before and after, between the groups that are large enough to judge."""
    (was, now), limit = content.largest_gaps, content.settings["max_gap"]
    if len(content.groups) == 1:
        return "Rates of each class"
    return f"Rates of each class: largest gap {points(was)} → {points(now)}, limit {exact_points(limit)}"


def _figures_before(content: ClassContent) -> list[tuple[str, str, Number]]:
    """Key, name and value before the rule of each number about everybody."""
    before = content.before
    found = [("gap", "Largest gap of a class", spelled_out(before.gap, points))]
    if content.labeled:
        found.append(("accuracy", "Accuracy", spelled_out(before.overall_accuracy, percent)))
    return found
