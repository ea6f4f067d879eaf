"""The state of a monitor as a file: counts per group and the names of its batches, without any row."""

from typing import Annotated, ClassVar

from msgspec import Meta

from fairramp.data import documents
from fairramp.errors import InputError, MonitorFormatError
from fairramp.rule.record import RATE_PATTERN


class GroupEntry(documents.Shape, frozen=True):
    """A group: its rate on the fit rows, its number of new rows, and the sum of their selection probabilities.

    Rows are those of `event`; for equalized odds, a group has two entries.
    """

    event: Annotated[str, Meta(pattern=RATE_PATTERN)]
    label: documents.PlainLabel
    fit_rate: documents.Share
    rows: documents.Count
    selected: documents.Nonnegative


class PartEntry(documents.Shape, frozen=True):
    """Groups to compare, as indices of entries, and the estimated limit on their gap."""

    places: tuple[documents.Count, ...]
    limit: documents.Share


class MonitorFile(documents.Document, frozen=True, tag="fairramp.monitor"):
    """A monitor's state."""

    words: ClassVar = {
        "noun": "monitor",
        "again": "start over with a new file",
        "mend": "start over with a new file",
    }
    refused = MonitorFormatError

    rule: str
    confidence: Annotated[float, Meta(ge=0.5, lt=1.0)]
    groups: tuple[GroupEntry, ...]
    parts: tuple[PartEntry, ...]
    looks: documents.Count
    alarm: documents.Count | None
    batches: tuple[str, ...]

    def check(self) -> None:
        """Raise if its fields contradict each other."""
        wrong = {
            '"selected" must be at most "rows"': any(entry.selected > entry.rows for entry in self.groups),
            '"alarm" must be between 1 and "looks"': self.alarm is not None and not 1 <= self.alarm <= self.looks,
            '"batches" must be unique, and at most as many as "looks"': len(self.batches) > self.looks
            or len(set(self.batches)) < len(self.batches),
        }
        for sentence in [sentence for sentence, holds in wrong.items() if holds]:
            raise InputError(sentence)
