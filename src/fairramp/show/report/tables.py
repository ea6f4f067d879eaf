"""The tables of the page: what each column shows, its cells as text, and the same numbers as CSV.

A cell has one number or several: a rate with its confidence limits, the two ends of a ramp, or a number of people
with their share. The page's script formats cells in the same way when the slider moves.
"""

from collections.abc import Callable, Sequence
from math import floor, isinf, log10, nan
from typing import Any, NamedTuple

from fairramp.core.events import EVENTS, SELECTION, Event
from fairramp.core.table import Table
from fairramp.core.words import MISSING, fixed, number, percent, percentage, points, with_interval
from fairramp.show.report.compare_page import compared_table
from fairramp.show.report.content import Content, Outcome
from fairramp.show.report.texts import abbreviations, has_constants, has_ramps, has_steps, reading
from fairramp.show.words import full, people

#: A number as shown, and with all its digits.
Number = tuple[str, str]


class Column(NamedTuple):
    """A column: its heading, how its cells are formatted, and where each part comes from, by its name in CSV."""

    heading: str
    form: str
    sources: dict[str, str]
    moves: bool = True  # with the slider: read from the outcome, otherwise from the content


class PageTable(NamedTuple):
    """A table of the page with one row per group."""

    key: str
    heading: str
    caption: str
    columns: list[Column]


def page_tables(content: Content) -> list[PageTable]:
    """The tables of a report."""
    ci = f"Brackets: {percentage(content.confidence)} confidence interval."
    found = [
        PageTable("rule", "The rule, group by group", reading(content), _rule_columns(content)),
        PageTable(
            "people",
            "People, group by group",
            f"{ci} Newly and no longer selected: expected numbers of people, with their share of the group.",
            _people_columns(content),
        ),
    ]
    if content.labeled:
        text = f"Measured against the outcomes. {abbreviations(content)} {ci}"
        found.append(PageTable("errors", "Errors, group by group", text, _error_columns(content)))
    return found


def audit_table(content: Content) -> PageTable:
    """The classifier's own rates."""
    columns = [Column("people", "count", {"people": "sizes"}, moves=False), _rates(SELECTION, "selected")[0]]
    text = f"Brackets: {percentage(content.confidence)} confidence interval."
    if content.labeled:
        columns += [column for column in _error_columns(content) if not column.moves]
        text = f"Measured against the outcomes. {abbreviations(content)} {text}"
    columns = [column._replace(heading=column.heading.replace(" before", "")) for column in columns]
    return PageTable("audit", "The classifier alone, group by group", text, columns)


def _rule_columns(content: Content) -> list[Column]:
    """Thresholds and ramps."""
    if content.settings["membership"] == "each":
        return [
            Column("people", "count", {"people": "sizes"}, moves=False),
            Column("shift of the threshold", "score", {"shift": "shifts"}),
        ]
    columns = [
        (Column("people", "count", {"people": "sizes"}, moves=False), True),
        (Column("threshold", "score", {"threshold": "thresholds"}), True),
        (Column("ramp", "ends", {"ramp_from": "ramp_from", "ramp_to": "ramp_to"}), has_ramps(content)),
        (
            Column("probability at threshold", "share", {"probability_at_threshold": "tie_chances"}),
            has_steps(content),
        ),
        (
            Column("constant probability", "share", {"constant_probability": "constant_chances"}),
            has_constants(content),
        ),
    ]
    return [column for column, holds in columns if holds]


def _people_columns(content: Content) -> list[Column]:
    """Selection rates and the answers that change."""
    return [
        Column("people", "count", {"people": "sizes"}, moves=False),
        *_rates(SELECTION, "selected"),
        Column(
            "newly selected",
            "people",
            {"newly_selected": "people.to_yes", "newly_selected_share": "changed_to_yes"},
        ),
        Column(
            "no longer selected",
            "people",
            {"no_longer_selected": "people.to_no", "no_longer_selected_share": "changed_to_no"},
        ),
    ]


def _error_columns(content: Content) -> list[Column]:
    """Error rates, before and after."""
    found = []
    for name in ("true_positive", "false_positive"):
        event = EVENTS[name]
        outcome = "favorable outcome" if event.label else "other outcome"
        rows = {outcome.replace(" ", "_"): f"before.rates.{name}.rows"}
        found += [Column(outcome, "count", rows, moves=False), *_rates(event, event.short)]
    return [
        *found,
        Column("accuracy before", "share", {"accuracy_before": "before.accuracy"}, moves=False),
        Column("accuracy after", "share", {"accuracy_after": "after.accuracy"}),
    ]


def _rates(event: Event, short: str) -> list[Column]:
    """The rates of an event with their intervals, before and after."""
    parts = {"": "rate", "_low": "lower", "_high": "upper"}
    return [
        Column(
            f"{short} {when}",
            "rate",
            {
                f"{event.rate.replace(' ', '_')}_{when}{end}": f"{when}.rates.{event.name}.{part}"
                for end, part in parts.items()
            },
            moves=when == "after",
        )
        for when in ("before", "after")
    ]


# Cells ------------------------------------------------------------------------------------------


def values(content: Content, o: Outcome, column: Column, seats: Sequence[int]) -> list[list[Any]]:
    """The parts of each cell of a column; None for NaN."""
    return [[plain_value(part[k]) for k in seats] for part in _parts(content, o, column)]


def _parts(content: Content, o: Outcome, column: Column) -> list[Sequence[Any]]:
    return [_found(o if column.moves else content, source) for source in column.sources.values()]


def _found(start: Any, path: str) -> Any:
    """The value at a path of attributes and keys."""
    for name in path.split("."):
        start = start[name] if isinstance(start, dict) else getattr(start, name)
    return start


def plain_value(value: float | int) -> float | int | str | None:
    """A number for JSON, which has neither NaN nor infinity."""
    if not isinstance(value, float):
        return value
    return None if value != value else number(value, 0) if isinf(value) else float(full(value))


def cell(parts: Sequence[Any], form: str, decimals: int) -> Number:
    """A cell as text, and with all digits."""
    if parts[0] is None:
        return MISSING, ""

    def score(value: Any) -> str:
        return value if isinstance(value, str) else fixed(value, decimals)

    forms: dict[str, Callable[..., str]] = {
        "count": "{:,}".format,
        "rate": lambda rate, low, high: with_interval(
            *(MISSING if v is None else percent(v) for v in (rate, low, high))
        ),
        "share": percent,
        "score": score,
        "ends": lambda start, end: f"{score(start)} to {score(end)}",
        "people": lambda n, share: f"{people(n)} ({percent(share)})" if people(n) else "0",
        "points": lambda gap, low, high: with_interval(
            *(MISSING if v is None else points(v) for v in (gap, low, high))
        ),
        "change": lambda before, after: f"{percent(before)} → {percent(after)}",
    }
    known = [part for part in parts if part is not None]
    return forms[form](*parts), " – ".join(part if isinstance(part, str) else full(part) for part in known)


def decimals_of(content: Content) -> int:
    """Enough decimals of scores for the two ends of a ramp to differ."""
    return max(4, 2 - floor(log10(content.settings["ramp_width"] or 1.0)))


# As CSV -----------------------------------------------------------------------------------------


def csv_tables(content: Content) -> dict[str, Table]:
    """All tables of the reported rule, with all groups and all digits, by name."""
    found = {table.key: columns_table(content, table) for table in page_tables(content)}
    compared = {} if content.compared is None else {"compared": compared_table(content)}
    return found | {"limits": _limits(content)} | compared


def columns_table(content: Content, table: PageTable) -> Table:
    """A table of the page, with all groups and all digits."""
    columns: dict[str, Any] = {"group": [group.name for group in content.groups]}
    for column in table.columns:
        columns |= dict(zip(column.sources, _parts(content, content.chosen, column), strict=True))
    return Table(columns)


def _limits(content: Content) -> Table:
    """The rule at each position of the slider."""
    outcomes = content.outcomes
    columns: dict[str, list[Any]] = {
        "limit": [o.max_gap if o.min_ratio is None else o.min_ratio for o in outcomes],
        "reported_rule": ["yes" if o.is_own else "no" for o in outcomes],
        "gap": [o.after.gap for o in outcomes],
        "ratio": [o.after.ratio for o in outcomes],
        "estimated_limit": [o.guarantee.estimated for o in outcomes],
        "proven_limit": [o.guarantee.proven for o in outcomes],
        "selection_rate": [o.overall_rate for o in outcomes],
        "changed": [o.changed for o in outcomes],
        "decided_at_random": [o.drawn for o in outcomes],
        "accuracy": [o.after.overall_accuracy for o in outcomes],
    }
    return Table({name: [nan if v is None else v for v in column] for name, column in columns.items()})
