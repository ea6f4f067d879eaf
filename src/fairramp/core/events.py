"""Events: for which rows of a group a rate is computed, and which criterion makes that rate equal.

    event            rate                  rows                  criterion
    selection        selection rate        all                   parity
    true_positive    true positive rate    those with label 1    equal_opportunity
    false_positive   false positive rate   those with label 0    predictive_equality
    odds             the latter two        both                  equalized_odds

A *rate* is the mean selection probability over the rows of a group for which the event holds. A classifier with
several classes has one such rate of all rows for each class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fairramp.core.labels import Label, show_label
from fairramp.core.table import one_line


@dataclass(frozen=True)
class Event:
    """Rows that a rate is computed for.

    Attributes
    ----------
    name : str
        As in records of fits.
    rate : str
        What the rate is called.
    short : str
        A short name of the rate, for tables.
    criterion : str
        The criterion that makes the rate equal across groups.
    label : int or None
        The label of the rows; None for all rows.
    flat : {"nearest", "highest", "lowest"}
        Which of several thresholds with the same rate is best: the one nearest the classifier's own or, since
        they decide differently on rows of the other label, an end of their range. The highest has the fewest
        false positives, the lowest the most true positives.
    parts : tuple of Event
        The events whose rates are all made equal, if there are several.
    outcome : str
        What the label is called in sentences; empty for "label 1" and "label 0".
    """

    name: str
    rate: str
    short: str
    criterion: str
    label: int | None
    flat: str = "nearest"
    parts: tuple["Event", ...] = ()
    outcome: str = ""

    #: Name of the column that says which of several rates a table has.
    column: ClassVar = "error_rate"

    @property
    def simple(self) -> tuple["Event", ...]:
        """The events whose rates are made equal: its parts, or itself."""
        return self.parts or (self,)

    @property
    def needs_labels(self) -> bool:
        """Whether only labels tell which rows count."""
        return self.label is not None or any(part.needs_labels for part in self.parts)

    @property
    def row(self) -> str:
        """What one of its rows is called."""
        return "row" if self.label is None else f"row with {self.outcome or f'label {self.label}'}"

    @property
    def rows(self) -> str:
        """What its rows are called."""
        return self.row.replace("row", "rows", 1)

    @property
    def rates(self) -> str:
        """What the rates of several groups are called."""
        return f"{self.rate}s"

    @property
    def gap(self) -> str:
        """What the gap between its rates is called."""
        return "gap" if not self.needs_labels else f"gap between {self.rates}"


class ClassEvent(Event):
    """A class that a row can get, or any of several classes: `parts`."""

    column: ClassVar = "class"

    @property
    def rates(self) -> str:
        """What the rates of several groups are called."""
        return "rates of any class" if self.parts else f"rates of class {self.short}"

    @property
    def gap(self) -> str:
        """What the gap between its rates is called."""
        return "gap of any class" if self.parts else f"gap of class {self.short}"


SELECTION = Event("selection", "selection rate", "rate", "parity", None)
TRUE_POSITIVE = Event("true_positive", "true positive rate", "TPR", "equal_opportunity", 1, "highest")
FALSE_POSITIVE = Event("false_positive", "false positive rate", "FPR", "predictive_equality", 0, "lowest")
ODDS = Event("odds", "error rate", "error rate", "equalized_odds", None, parts=(TRUE_POSITIVE, FALSE_POSITIVE))

#: The events of one rate, by name.
EVENTS = {event.name: event for event in (SELECTION, TRUE_POSITIVE, FALSE_POSITIVE)}
#: All events by name.
COMPARED = EVENTS | {ODDS.name: ODDS}
#: The event whose rate each criterion makes equal.
EVENT_OF = {event.criterion: event for event in COMPARED.values()}
#: What criteria are also called.
SYNONYMS = {
    **{name: event.criterion for event in EVENTS.values() for name in (event.name, f"{event.name}_rate")},
    **dict.fromkeys(("demographic_parity", "statistical_parity", "independence"), "parity"),
    **dict.fromkeys(("tpr", "recall", "true_positives", "true_positive_rate_parity"), "equal_opportunity"),
    **dict.fromkeys(("fnr", "false_negative_rate", "false_negative_rate_parity"), "equal_opportunity"),
    **dict.fromkeys(("fpr", "false_positives", "false_positive_rate_parity"), "predictive_equality"),
    **dict.fromkeys(("equal_odds", "equalised_odds", "odds", "separation", "eo"), "equalized_odds"),
    **dict.fromkeys(("tnr", "true_negative_rate", "true_negative_rate_parity"), "predictive_equality"),
}


def class_event(classes: Sequence[Label]) -> ClassEvent:
    """The event of a classifier with several classes, with one part per class.

    >>> [part.rates for part in class_event(["low", "high"]).parts]
    ['rates of class low', 'rates of class high']
    """
    shown = [one_line(show_label(label)) for label in classes]
    names = shown if len(set(shown)) == len(shown) else list(map(repr, classes))  # such as 1 and "1"
    parts = [
        ClassEvent(name, f"rate of class {short}", short, "parity", None)
        for name, short in zip(names, shown, strict=True)
    ]
    return ClassEvent("classes", "rate", "rate", "parity", None, parts=tuple(parts))
