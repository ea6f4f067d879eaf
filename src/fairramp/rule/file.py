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

from collections.abc import Callable, Collection, Mapping
from math import inf
from typing import Annotated, Any, ClassVar, TypeVar

from msgspec import Meta, convert

from fairramp.core.checks import MAX_RAMP_WIDTH, MIN_RAMP_WIDTH
from fairramp.core.events import EVENT_OF
from fairramp.core.ramps import OFFSETS, Ramp
from fairramp.core.scales import SCALES
from fairramp.data import documents
from fairramp.data.columns import Columns
from fairramp.data.documents import ColumnNames, Document, Finite, PlainLabel, Shape, Share, shape_of
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
    *("higher_is_better", "min_ratio"),
)
#: The width of a ramp: 0, or at least 1e-6.
Width = Annotated[
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
    width: Width | None
    tie: Share


class GroupEntry(Shape, frozen=True):
    """A group and its ramp."""

    label: PlainLabel
    foot: Finite
    width: Width | None
    tie: Share


_Event = Annotated[str, Meta(pattern=RATE_PATTERN)]
_Record = shape_of(FitRecord, rates=Annotated[Mapping[_Event, shape_of(Rates)], Meta(min_length=1)])  # type: ignore[misc]


def _numbers(ramp: Ramp) -> tuple[float, float | None, float]:
    return ramp.foot, None if ramp.is_constant else ramp.width, ramp.tie


def _ramp(entry: RampEntry | GroupEntry) -> Ramp:
    return Ramp(entry.foot, inf if entry.width is None else entry.width, entry.tie)


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
    membership: Annotated[str, Meta(pattern="^(probabilities|each)$")] | None = None
    base: RampEntry | None = None

    @classmethod
    def of(cls, rule: Any) -> "RuleFile":
        """The document of a rule."""
        return cls(
            version=documents.VERSION,
            sha256="",
            groups=tuple(
                GroupEntry(label, *_numbers(ramp)) for label, ramp in zip(rule.groups, rule.ramps, strict=True)
            ),
            pooled=rule.pooled and RampEntry(*_numbers(rule.pooled)),
            membership=rule.membership if rule.mixes else None,
            base=rule.base and RampEntry(*_numbers(rule.base)),
            columns=convert(rule.columns, ColumnNames, from_attributes=True),
            record=convert(rule.record, _Record | None, from_attributes=True),
            **{name: getattr(rule, name) for name in _SETTINGS},
        )

    def rule(self, kind: Callable[..., _Rule]) -> _Rule:
        """The rule of a document."""
        if self.max_gap is None and self.min_ratio is None:
            raise InputError('The field "max_gap" must be a number if there is no "min_ratio"')
        return kind(
            groups=tuple(entry.label for entry in self.groups),
            ramps=tuple(map(_ramp, self.groups)),
            pooled=self.pooled and _ramp(self.pooled),
            membership=self.membership or "known",
            base=self.base and _ramp(self.base),
            columns=convert(self.columns, Columns, from_attributes=True),
            record=convert(self.record, FitRecord | None, from_attributes=True),
            **{name: getattr(self, name) for name in _SETTINGS},
        )
