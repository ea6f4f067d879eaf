"""Cells: the rows of each group by label, whose ramp they have, and which of them are compared.

    selection rates       one cell per group
    error rates           two cells per group, labeled (group, 0) and (group, 1); one of them, or for equalized
                          odds both, have the event's rows

Both cells of a group share its ramp, so a summary that is exact for the ramps is exact for all rates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairramp.core.curve import Booleans, Integers
from fairramp.core.events import EVENTS, Event
from fairramp.core.labels import Label, label_key, show_label
from fairramp.core.points import Summary, join_points
from fairramp.core.table import with_rows
from fairramp.data.rows import BinnedRows, Rows
from fairramp.errors import InputError


@dataclass(frozen=True)
class FitRows:
    """The rows of a fit.

    Attributes
    ----------
    everyone : Rows
        All rows, by group.
    by_label : Rows or None
        The same rows by group and label, if error rates are compared.
    """

    everyone: Rows
    by_label: Rows | None = None

    @property
    def separated(self) -> Rows:
        """The rows in cells."""
        return self.everyone if self.by_label is None else self.by_label

    def binned(self) -> "FitRows":
        """Bins instead of rows, or exact points if there are few rows."""
        rows = (self.everyone, self.by_label)
        return FitRows(*(part and BinnedRows(part.sorted() or part.summarize()) for part in rows))  # type: ignore[arg-type]


def check_event(
    event: Event, groups: Sequence[Label], having: Sequence[Label], criterion: str | None = None
) -> None:
    """Raise if some groups are not among those that have rows of an event, which a criterion requires."""
    there = set(map(label_key, having))
    lacking = [(label, 1) for label in groups if label_key(label) not in there]
    if lacking:
        raise InputError(
            "{criterion:"
            + (criterion or event.criterion)
            + "} requires rows with label {label} in every group; there is none "
            "in {named}",
            remedy="leave these rows out, merge the group with another, or use {criterion:parity}",
            label=event.label,
            named=with_rows(lacking, form="{}", spelled=show_label),
        )


@dataclass(frozen=True)
class Cells:
    """The cells of a summary.

    Attributes
    ----------
    groups : tuple
        The groups.
    group : integers of shape (C,)
        Index of each cell's group.
    label : integers of shape (C,), or None
        The label of each cell's rows; None if they are not separated.
    event : Event
        Whose rates are compared.
    """

    groups: tuple[Label, ...]
    group: Integers
    label: Integers | None
    event: Event

    @classmethod
    def of(cls, groups: Sequence[Label], cells: Sequence[Label], event: Event) -> "Cells":
        """The cells of a summary, given its labels; raises if a group has no row of the event."""
        if not event.needs_labels:
            return cls(tuple(groups), np.arange(len(groups)), None, event)
        index = {label_key(label): i for i, label in enumerate(groups)}
        pairs = [(index[label_key(label)], y) for label, y in cells]  # type: ignore[misc, str-unpack]
        group, label = np.array(pairs, dtype=np.intp).T
        found = cls(tuple(groups), group, label, event)
        for part in event.simple:
            check_event(
                part, groups, [groups[i] for i in found.group[found.of_label(part)].tolist()], event.criterion
            )
        return found

    @property
    def compared(self) -> Booleans:
        """Which cells have the rows whose rates are compared."""
        return self.of_label(self.event)

    def of_label(self, event: Event) -> Booleans:
        """Which cells have the rows of an event."""
        if self.label is None or event.label is None:
            return np.ones(len(self.group), dtype=bool)
        return np.equal(self.label, event.label)

    def of_event(self, summary: Summary, event: Event | None = None) -> Summary:
        """The rows of an event, by group; of the one that is compared, by default."""
        event = event or self.event
        if self.label is None:
            return summary
        p, chosen = summary.points, self.of_label(event)
        points = p.take(chosen[p.group])
        points = replace(points, group=self.group[points.group])
        return Summary(self.groups, points if event.label is not None else join_points([points]))

    @property
    def known(self) -> list[Event]:
        """The events whose rates are defined in every group."""
        if self.label is None:
            return [self.event]
        return [
            event
            for event in EVENTS.values()
            if len(np.unique(self.group[self.of_label(event)])) == len(self.groups)
        ]
