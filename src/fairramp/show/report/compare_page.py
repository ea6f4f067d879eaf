"""The comparison with another rule as tables: texts for the page, and all numbers by group."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

from fairramp.core.events import SELECTION
from fairramp.core.table import Table
from fairramp.core.words import fixed, number, percent, percentage, points, upward_points
from fairramp.errors import InputError
from fairramp.show.report.compare import Compared
from fairramp.show.report.content import Content, Outcome
from fairramp.show.words import full

#: A number as shown, and with all its digits.
_Number = tuple[str, str]
_Columns = dict[str, list[_Number]]


@dataclass(frozen=True)
class ComparedRow:
    """A row of the table of groups."""

    name: str
    unseen: bool
    cells: list[_Number]


@dataclass(frozen=True)
class ComparedTexts:
    """What the template `compare.html` shows, as its variable `compared`.

    Attributes
    ----------
    name, fingerprint, sentence : str
        The other rule, and the comparison in words.
    reading : str
        How to read the tables.
    settings : tuple of (str, str, str)
        The settings that differ.
    figures : list of (str, number, number)
        Numbers about everybody: name, reported rule, other rule.
    limits : str
        The limits of the other rule for new people, in words.
    group_name : str
        Heading of the groups.
    columns : list of str
        Headings of the numbers.
    rows : list of ComparedRow
        The shown groups.
    groups : int
        Number of all groups.
    """

    name: str
    fingerprint: str
    sentence: str
    reading: str
    settings: tuple[tuple[str, str, str], ...]
    figures: list[tuple[str, _Number, _Number]]
    limits: str
    group_name: str
    columns: list[str]
    rows: list[ComparedRow]
    groups: int


def compared_texts(content: Content, seats: Sequence[int], decimals: int) -> ComparedTexts | None:
    """The texts of the comparison, for groups with the given indices; None if there is no comparison."""
    other = content.compared
    if other is None:
        return None
    columns = _columns(content, other, decimals)
    return ComparedTexts(
        name=other.name,
        fingerprint=other.fingerprint,
        sentence=other.sentence,
        reading=_reading(content, other),
        settings=other.settings,
        figures=_figures(content, other),
        limits=other.guarantee.sentence,
        group_name=content.group_name,
        columns=list(columns),
        rows=[
            ComparedRow(content.groups[k].name, other.unseen[k], [cells[k] for cells in columns.values()])
            for k in seats
        ],
        groups=len(content.groups),
    )


def compared_table(content: Content) -> Table:
    """The comparison by group, with all digits; "here" is the reported rule and "there" the other one."""
    here, there = content.chosen, content.compared
    if there is None:
        raise InputError("This report has no comparison: pass another rule as {compare}")
    sides: tuple[tuple[str, Outcome | Compared], ...] = (("here", here), ("there", there))
    events = list(dict.fromkeys([*content.event.simple, SELECTION]))
    rates = {
        f"{event.rate.replace(' ', '_')}_{side}": rule.after.rates[event.name].rate
        for event in events
        for side, rule in sides
    }
    return Table(
        {
            "group": [group.name for group in content.groups],
            "rows": list(content.sizes),
            "unseen_there": ["yes" if unseen else "no" for unseen in there.unseen],
            **{f"threshold_{side}": rule.thresholds for side, rule in sides},
            **{
                f"ramp_{side}_{end}": values
                for side, rule in sides
                for end, values in (("from", rule.ramp_from), ("to", rule.ramp_to))
            },
            **{f"tie_chance_{side}": rule.tie_chances for side, rule in sides},
            **{f"constant_probability_{side}": rule.constant_chances for side, rule in sides},
            **rates,
            "share_only_here": there.only_here,
            "share_only_there": there.only_there,
            "rows_only_here": there.rows_only_here,
            "rows_only_there": there.rows_only_there,
        },
        shares=[
            *rates,
            *(
                f"{name}_{side}"
                for name in ("tie_chance", "constant_probability", "share_only")
                for side, _ in sides
            ),
        ],
    )


def _reading(content: Content, other: Compared) -> str:
    """How to read the tables."""
    constant = any(chance == chance for rule in (content.chosen, other) for chance in rule.constant_chances)
    return " ".join(
        text
        for text, holds in {
            "“Here” is the reported rule, wherever the slider is, and “there” is the other rule.": True,
            "Numbers of people are averages over the random draws.": True,
            "Shares are by weight.": content.weighted,
            "A group with a constant probability has no threshold.": constant,
            "The other rule was not fitted on groups marked “unseen”.": any(other.unseen),
        }.items()
        if holds
    )


def _shown(value: float | None, spelled: Callable[[float], str]) -> _Number:
    return ("–", "") if value is None or value != value else (spelled(value), full(value))


def _figures(content: Content, other: Compared) -> list[tuple[str, _Number, _Number]]:
    """Numbers about everybody, of both rules."""
    here, after, others = content.chosen, content.chosen.after, other.after
    limit = f"limit of the gap for new people ({percentage(content.confidence)} confidence)"
    found: list[tuple[str, Callable[[float], str], float | None, float | None]] = [
        *(
            (
                f"Gap between {event.rate}s" if event.needs_labels else "Gap between groups",
                points,
                after.rates[event.name].gap,
                others.rates[event.name].gap,
            )
            for event in content.event.simple
        ),
        *([] if content.event.parts else [("Ratio (lowest ÷ highest)", _two, after.ratio, others.ratio)]),
        ("Selected overall", percent, here.overall_rate, other.overall_rate),
        ("Decisions changed from the classifier’s", percent, here.changed, other.changed),
        ("Decided at random", percent, here.drawn, other.drawn),
    ]
    if content.labeled:
        found += [("Accuracy", percent, after.overall_accuracy, others.overall_accuracy)]
    if other.criterion == content.settings["criterion"]:  # otherwise they limit gaps between other rates
        ours, theirs = here.guarantee, other.guarantee
        found += [
            (f"Estimated {limit}", upward_points, ours.estimated, theirs.estimated),
            (f"Proven {limit}", upward_points, ours.proven, theirs.proven),
        ]
    return [(name, _shown(one, spelled), _shown(two, spelled)) for name, spelled, one, two in found]


def _two(value: float) -> str:
    return number(value, 2)


def _columns(content: Content, other: Compared, decimals: int) -> _Columns:
    """The columns of the table of groups."""
    here = content.chosen

    def score(value: float) -> str:
        return fixed(value, decimals) if isfinite(value) else number(value, 0)

    def pair(
        name: str, ours: Sequence[float], theirs: Sequence[float], spelled: Callable[[float], str]
    ) -> _Columns:
        return {
            f"{name} {side}": [_shown(value, spelled) for value in values]
            for side, values in (("here", ours), ("there", theirs))
        }

    def people(rows: Sequence[float], shares: Sequence[float]) -> list[_Number]:
        return [
            (f"{number(n, 0)} ({percent(share)})", f"{full(n)} ({full(share)})")
            for n, share in zip(rows, shares, strict=True)
        ]

    columns = pair("threshold", here.thresholds, other.thresholds, score)
    if any(chance == chance for chance in (*here.constant_chances, *other.constant_chances)):
        columns |= pair("constant probability", here.constant_chances, other.constant_chances, percent)
    for event in content.event.simple:
        ours, theirs = (rule.after.rates[event.name].rate for rule in (here, other))
        columns |= pair(event.short, ours, theirs, percent)
    if here.selected is not None and other.selected is not None:
        columns |= pair("selected", here.selected.rate, other.selected.rate, percent)
    return columns | {
        "people selected only here": people(other.rows_only_here, other.only_here),
        "people selected only there": people(other.rows_only_there, other.only_there),
    }
