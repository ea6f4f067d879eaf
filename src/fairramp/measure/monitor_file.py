"""The state of a monitor as a file: counts per group and the names of its batches, without any row."""

from typing import Annotated, ClassVar

from msgspec import Meta

from fairramp.data import documents
from fairramp.errors import MonitorFormatError


class GroupEntry(documents.Shape, frozen=True):
    """A group: its rate on the fit rows, its number of new rows, and the sum of their selection probabilities."""

    label: documents.PlainLabel
    fit_rate: documents.Share
    rows: documents.Count
    selected: documents.Nonnegative


class PartEntry(documents.Shape, frozen=True):
    """Groups to compare, as indices, and the estimated limit on their gap."""

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
