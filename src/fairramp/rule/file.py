"""Rules as JSON files: a `fairramp.data.documents.Document` with these fields.

    {"format": "fairramp.rule", "version": 2,
     "groups": [{"label": …, "foot": …, "width": … or null for a constant ramp, "tie": …}, …],
     "ramp": …, "scale": …, "cutoff": …, "criterion": …, "stratified": …, "max_gap": …, "min_ratio": …,
     "target_rate": …, "unseen_group": …, "pooled": null or {"foot": …, "width": …, "tie": …},
     "columns": {"score": …, "groups": …, "strata": …},
     "record": null or the fields of `FitRecord`,
     "higher_is_better": false, if lower scores are better; otherwise omitted, as is a "min_ratio" of null,
     "membership": "probabilities" or "each", with "base": {"foot": …, "width": …, "tie": …} for "each"; otherwise
     both are omitted,
     "sha256": "…"}

A rule survives any number of round trips unchanged, byte for byte. `scripts/make_rule_schema.py` makes its JSON
Schema from these types.
"""

import json
import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from math import inf
from pathlib import Path
from sys import intern
from typing import Annotated, Any, ClassVar, Self, TypeVar

from msgspec import Meta, convert

from fairramp.core.checks import MAX_RAMP_WIDTH, MIN_RAMP_WIDTH
from fairramp.core.events import EVENT_OF
from fairramp.core.ramps import OFFSETS, Ramp
from fairramp.core.scales import SCALES
from fairramp.data import documents
from fairramp.data.columns import Columns
from fairramp.data.documents import ColumnNames, Document, Finite, PlainLabel, Shape, Share, shape_of
from fairramp.data.files import write_text
from fairramp.errors import InputError, RuleFormatError
from fairramp.rule.record import RATE_PATTERN, FitRecord, Rates

FORMAT = "fairramp.rule"
#: Fields whose value is one of a few words.
OPTIONS: dict[str, Collection[str]] = {
    "ramp": tuple(OFFSETS),
    "scale": tuple(SCALES),
    "criterion": tuple(EVENT_OF),
    "unseen_group": ("error", "pooled", "original"),
    "membership": ("known", "probabilities", "each"),
}

_Rule = TypeVar("_Rule")
_SETTINGS = (
    *("ramp", "scale", "cutoff", "criterion", "stratified", "max_gap", "target_rate", "unseen_group"),
    *("higher_is_better", "min_ratio", "membership"),
)
_Width = Annotated[
    float,
    Meta(
        ge=0.0,
        le=MAX_RAMP_WIDTH,
        extra_json_schema={"not": {"exclusiveMinimum": 0.0, "exclusiveMaximum": MIN_RAMP_WIDTH}},
    ),
]


class RampEntry(Shape, frozen=True):
    """A ramp."""

    foot: Finite
    width: _Width | None
    tie: Share


class GroupEntry(Shape, frozen=True):
    """A group and its ramp."""

    label: PlainLabel
    foot: Finite
    width: _Width | None
    tie: Share


_Event = Annotated[str, Meta(pattern=RATE_PATTERN)]
_Record = shape_of(FitRecord, rates=Annotated[Mapping[_Event, shape_of(Rates)], Meta(min_length=1)])  # type: ignore[misc]


class RuleFile(Document, frozen=True, tag=FORMAT):
    """A rule."""

    words: ClassVar = {
        "noun": "rule",
        "again": "fit the rule again",
        "mend": "fit the rule again, or edit it in Python with dataclasses.replace and save it",
    }
    refused = RuleFormatError

    groups: Annotated[tuple[GroupEntry, ...], Meta(extra_json_schema={"minItems": 1})]
    ramp: Annotated[str, Meta(extra_json_schema={"enum": OPTIONS["ramp"]})]
    scale: Annotated[str, Meta(extra_json_schema={"enum": OPTIONS["scale"]})]
    cutoff: Finite
    criterion: Annotated[str, Meta(extra_json_schema={"enum": OPTIONS["criterion"]})]
    stratified: bool
    max_gap: Share | None
    target_rate: Share | None
    unseen_group: Annotated[str, Meta(extra_json_schema={"enum": OPTIONS["unseen_group"]})]
    pooled: RampEntry | None
    columns: ColumnNames
    record: _Record | None  # type: ignore[valid-type]
    higher_is_better: bool = True
    min_ratio: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None
    membership: Annotated[str, Meta(extra_json_schema={"enum": OPTIONS["membership"]})] = "known"
    base: RampEntry | None = None


def _numbers(ramp: Ramp) -> tuple[float, float | None, float]:
    return ramp.foot, None if ramp.is_constant else ramp.width, ramp.tie


def _ramp(entry: RampEntry | GroupEntry) -> Ramp:
    return Ramp(entry.foot, inf if entry.width is None else entry.width, entry.tie)


def _document(rule: Any) -> RuleFile:
    settings = {name: getattr(rule, name) for name in _SETTINGS}
    settings["membership"] = intern(rule.membership)  # msgspec recognizes a default only by its identity
    return RuleFile(
        version=documents.VERSION,
        sha256="",
        groups=tuple(
            GroupEntry(label, *_numbers(ramp)) for label, ramp in zip(rule.groups, rule.ramps, strict=True)
        ),
        pooled=rule.pooled and RampEntry(*_numbers(rule.pooled)),
        base=rule.base and RampEntry(*_numbers(rule.base)),
        columns=convert(rule.columns, ColumnNames, from_attributes=True),
        record=convert(rule.record, _Record | None, from_attributes=True),
        **settings,
    )


def _read(kind: Callable[..., _Rule], document: RuleFile) -> _Rule:
    if document.max_gap is None and document.min_ratio is None:
        raise InputError('The field "max_gap" must be a number if there is no "min_ratio"')
    return kind(
        groups=tuple(entry.label for entry in document.groups),
        ramps=tuple(map(_ramp, document.groups)),
        pooled=document.pooled and _ramp(document.pooled),
        base=document.base and _ramp(document.base),
        columns=convert(document.columns, Columns, from_attributes=True),
        record=convert(document.record, FitRecord | None, from_attributes=True),
        **{name: getattr(document, name) for name in _SETTINGS},
    )


class Stored:
    """The methods of a rule that read and write files."""

    def to_dict(self: Any) -> dict[str, Any]:
        """Return the rule as plain values, ready for JSON.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
        >>> rule.to_dict()["groups"][0]
        {'label': 'A', 'foot': 0.45, 'width': 0.1, 'tie': 0.0}
        """
        return dict(json.loads(self.to_json()))

    def to_json(self: Any) -> str:
        """Return the rule as JSON text; reading it back gives the same rule to the last bit.

        Examples
        --------
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
        >>> Rule.from_json(rule.to_json()) == rule
        True
        """
        return documents.written(_document(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a rule from JSON text; see `load`.

        Examples
        --------
        >>> import fairramp
        >>> fairramp.Rule.from_json("{}")
        Traceback (most recent call last):
        fairramp.errors.RuleFormatError: Not a rule: the field "format" must be "fairramp.rule".
        """
        return documents.read(text, RuleFile, partial(_read, cls))

    def save(self: Any, path: str | os.PathLike[str]) -> None:
        """Write the rule to a JSON file, replacing any existing file. The write is atomic.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from fairramp import Ramp, Rule
        >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rule.save(Path(folder) / "rule.json")
        ...     Rule.load(Path(folder) / "rule.json") == rule
        True
        """
        write_text(Path(path), self.to_json(), "the rule")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a rule from a JSON file.

        Raises
        ------
        RuleFormatError
            If the file is not a rule, is damaged, or has an unsupported version.

        Examples
        --------
        >>> import fairramp
        >>> rule = fairramp.Rule.load("rule.json")  # doctest: +SKIP
        """
        return documents.load(path, RuleFile, partial(_read, cls))

    @property
    def fingerprint(self: Any) -> str:
        """SHA-256 of everything that affects decisions, without the record; equal for rules that decide alike."""
        return documents.checksum(_document(self), without=("record", "columns"))
