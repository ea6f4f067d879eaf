"""The tables of a report on several classes, on the page and as CSV: one row per group, class, or both."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairramp.core.table import Table
from fairramp.core.words import percentage
from fairramp.measure.rates import GroupRates
from fairramp.show.report.class_content import ClassContent
from fairramp.show.report.tables import Number, cell, plain_value
from fairramp.show.words import largest


class ClassColumn(NamedTuple):
    """A column: its heading, how its cells are formatted (see `tables.cell`), and its numbers by name in CSV."""

    heading: str
    form: str
    parts: Mapping[str, Sequence[Any]]


class ClassTable(NamedTuple):
    """A table.

    `names` are the columns of names, by heading in CSV and on the page. `groups` has the group of each row, and
    None if a row is not about a group.
    """

    key: str
    heading: str
    caption: str
    names: dict[tuple[str, str], list[str]]
    groups: list[int | None]
    columns: list[ClassColumn]

    def cells(self, row: int, decimals: int) -> list[Number]:
        """The cells of a row, as text and with all digits."""
        return [
            cell([plain_value(part[row]) for part in column.parts.values()], column.form, decimals)
            for column in self.columns
        ]

    def to_table(self) -> Table:
        """All rows with all digits."""
        named = {key: names for (key, _), names in self.names.items()}
        return Table(named | {name: part for column in self.columns for name, part in column.parts.items()})

    def shown(self, sizes: Sequence[int], most: int) -> list[int]:
        """The rows of the largest groups, at most `most` rows."""
        per_group = max(1, len(self.groups) // len(sizes))
        chosen = {None, *largest(sizes, max(1, most // per_group))}
        return [row for row, group in enumerate(self.groups) if group in chosen]


def class_tables(content: ClassContent) -> list[ClassTable]:
    """The tables of a report."""
    ci = f"Brackets: {percentage(content.confidence)} confidence interval."
    found = [_rates(content, ci), _gaps(content, ci), _rule(content)]
    return [*found, _errors(content), _confusion(content)] if content.labeled else found


def csv_class_tables(content: ClassContent) -> dict[str, Table]:
    """All tables with all groups and all digits, by name."""
    return {table.key: table.to_table() for table in class_tables(content)}


def _by_group(content: ClassContent) -> tuple[dict[tuple[str, str], list[str]], list[int | None]]:
    """The names of the groups and their indices, for tables with one row per group."""
    return {("group", content.group_name): [g.name for g in content.groups]}, list(range(len(content.groups)))


def _people(content: ClassContent) -> ClassColumn:
    return ClassColumn("people", "count", {"people": content.sizes})


def _flat(per_class: Sequence[Sequence[Any]]) -> list[Any]:
    return [value for one in per_class for value in one]


def _rates(content: ClassContent, ci: str) -> ClassTable:
    """The rates of each class, class by class."""
    n_classes, n_groups, changes = len(content.classes), len(content.groups), content.changes
    names = {
        ("class", "class"): [name for name in content.classes for _ in range(n_groups)],
        ("group", content.group_name): [group.name for group in content.groups] * n_classes,
    }
    sides = {"before": content.before, "after": content.after}
    ends = {"": "rate", "_low": "lower", "_high": "upper"}
    return ClassTable(
        "rates",
        "Rates of each class, group by group",
        f"The share of each group that gets the class. {ci} Newly and no longer: expected numbers of people, "
        "with their share of the group.",
        names,
        [*range(n_groups)] * n_classes,
        [
            ClassColumn("people", "count", {"people": list(content.sizes) * n_classes}),
            *(
                ClassColumn(
                    f"rate {when}",
                    "rate",
                    {f"rate_{when}{end}": getattr(found, name) for end, name in ends.items()},
                )
                for when, found in sides.items()
            ),
            ClassColumn(
                "newly in the class",
                "people",
                {"newly": _flat(changes.gain), "newly_share": _flat(changes.gain_share)},
            ),
            ClassColumn(
                "no longer in it",
                "people",
                {"no_longer": _flat(changes.lose), "no_longer_share": _flat(changes.lose_share)},
            ),
        ],
    )


def _gaps(content: ClassContent, ci: str) -> ClassTable:
    """The gap of each class, and its rate among everybody."""

    def gaps(when: str, rates: list[GroupRates]) -> ClassColumn:
        low, high = ([one.gap_interval[end] for one in rates] for end in (0, 1))
        parts = {f"gap_{when}": [one.gap for one in rates], f"gap_{when}_low": low, f"gap_{when}_high": high}
        return ClassColumn(f"gap {when}", "points", parts)

    return ClassTable(
        "gaps",
        "Gap of each class",
        f"The largest difference between the rates of two groups{_within(content)}, and the share of everybody "
        f"who gets the class. {ci} Each interval is for that class alone.",
        {("class", "class"): list(content.classes)},
        [None] * len(content.classes),
        [
            gaps("before", list(content.before.rates.values())),
            gaps("after", list(content.after.rates.values())),
            ClassColumn(
                "everybody, before → after",
                "change",
                {"overall_before": content.overall_before, "overall_after": content.overall_after},
            ),
        ],
    )


def _within(content: ClassContent) -> str:
    return " of the same stratum" if content.settings["stratified"] else ""


#: How the rule decides, by whether it changes anything.
_OWN = "The classifier’s own decisions meet the limit, so everyone gets the class with the largest score."
_DECIDES = (
    "An offset is subtracted from the score of its class: above 0, the class becomes less likely, and below 0, "
    "more likely. The class with the largest result is chosen, at random if results are closer than {width}."
)
_MIXED = (
    " Each person’s offsets are the mean of these offsets, weighted by the person’s probabilities of the groups."
)


def _rule(content: ClassContent) -> ClassTable:
    """The offsets."""
    names, groups = _by_group(content)
    width = content.settings["ramp_width"]
    mixed = _MIXED if content.settings["membership"] == "probabilities" else ""
    return ClassTable(
        "rule",
        "How the rule decides: offsets",
        f"{_DECIDES.format(width=f'{width:.10g}')}{mixed}" if width else _OWN,
        names,
        groups,
        [
            _people(content),
            *(
                ClassColumn(name, "score", {f"offset_{name}": [offsets[c] for offsets in content.offsets]})
                for c, name in enumerate(content.classes)
            ),
        ],
    )


def _errors(content: ClassContent) -> ClassTable:
    """The accuracy of each group."""
    names, groups = _by_group(content)
    before, after = content.before.accuracy or (), content.after.accuracy or ()
    return ClassTable(
        "errors",
        "Accuracy, group by group",
        "The share of each group whose decision agrees with the label, and the share whose decision changes.",
        names,
        groups,
        [
            _people(content),
            ClassColumn("accuracy before", "share", {"accuracy_before": before}),
            ClassColumn("accuracy after", "share", {"accuracy_after": after}),
            ClassColumn("decisions changed", "share", {"changed": content.changed}),
        ],
    )


def _confusion(content: ClassContent) -> ClassTable:
    """What people of each true class get, before and after."""
    n_classes, n_groups = len(content.classes), len(content.groups)
    before, after = (_flat(found.confusion or ()) for found in (content.before, content.after))
    return ClassTable(
        "confusion",
        "What people of each true class get",
        "The share of the people with each label who get each class, before → after.",
        {
            ("group", content.group_name): [group.name for group in content.groups for _ in range(n_classes)],
            ("true_class", "true class"): list(content.classes) * n_groups,
        },
        [group for group in range(n_groups) for _ in range(n_classes)],
        [
            ClassColumn("people", "count", {"people": _flat(content.rows_by_label or ())}),
            *(
                ClassColumn(
                    f"gets {name}",
                    "change",
                    {
                        f"gets_{name}_before": [row[c] for row in before],
                        f"gets_{name}_after": [row[c] for row in after],
                    },
                )
                for c, name in enumerate(content.classes)
            ),
        ],
    )
