"""Rules for several classes as JSON files: a `fairramp.data.documents.Document` with these fields.

{"format": "fairramp.class_rule", "version": 2,
 "classes": [label, …],
 "groups": [{"label": …, "offsets": [one number per class]}, …],
 "ramp_width": …, "max_gap": …, "stratified": …, "unseen_group": …,
 "columns": {"score": null, "groups": …, "strata": …, "class_scores": …},
 "record": null or the fields of `ClassRecord`,
 "membership": "probabilities", for a rule that uses group probabilities; otherwise omitted,
 "sha256": "…"}

`scripts/make_rule_schema.py` makes the JSON Schema of all rules from these types.
"""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, TypeVar

from msgspec import Meta, convert

from fairramp.data import documents
from fairramp.data.columns import Columns
from fairramp.data.documents import ColumnNames, Document, PlainLabel, Shape, Share, shape_of
from fairramp.errors import RuleFormatError
from fairramp.rule.class_record import ClassRecord
from fairramp.rule.file import Width

CLASS_FORMAT = "fairramp.class_rule"
#: Largest size of an offset; sums of offsets divided by the smallest ramp width stay finite.
MAX_OFFSET = 1e100
#: What happens to groups that were not in the fit rows.
UNSEEN = ("error", "original")

_Rule = TypeVar("_Rule")
_SETTINGS = ("classes", "ramp_width", "max_gap", "stratified", "unseen_group")
_Record = shape_of(ClassRecord)


class OffsetsEntry(Shape, frozen=True):
    """A group and its offsets."""

    label: PlainLabel
    offsets: tuple[Annotated[float, Meta(ge=-MAX_OFFSET, le=MAX_OFFSET)], ...]


class ClassColumnNames(ColumnNames, frozen=True):
    """Column names; null for columns without a name."""

    class_scores: tuple[str, ...] | None = None


class ClassRuleFile(Document, frozen=True, tag=CLASS_FORMAT):
    """A rule for several classes."""

    words: ClassVar = {
        "noun": "class rule",
        "again": "fit the rule again",
        "mend": "fit the rule again, or edit it in Python with dataclasses.replace and save it",
    }
    refused = RuleFormatError

    classes: Annotated[tuple[bool | int | str, ...], Meta(extra_json_schema={"minItems": 2, "uniqueItems": True})]
    groups: Annotated[tuple[OffsetsEntry, ...], Meta(extra_json_schema={"minItems": 1})]
    ramp_width: Width
    max_gap: Share
    stratified: bool
    unseen_group: Annotated[str, Meta(extra_json_schema={"enum": UNSEEN})]
    columns: ClassColumnNames
    record: _Record | None  # type: ignore[valid-type]
    membership: Annotated[str, Meta(pattern="^probabilities$")] | None = None

    @classmethod
    def of(cls, rule: Any) -> "ClassRuleFile":
        """The document of a rule."""
        return cls(
            version=documents.VERSION,
            sha256="",
            groups=tuple(
                OffsetsEntry(label, offsets) for label, offsets in zip(rule.groups, rule.offsets, strict=True)
            ),
            columns=convert(rule.columns, ClassColumnNames, from_attributes=True),
            record=convert(rule.record, _Record | None, from_attributes=True),
            membership=rule.membership if rule.mixes else None,
            **{name: getattr(rule, name) for name in _SETTINGS},
        )

    def rule(self, kind: Callable[..., _Rule]) -> _Rule:
        """The rule of a document."""
        return kind(
            groups=tuple(entry.label for entry in self.groups),
            offsets=tuple(entry.offsets for entry in self.groups),
            columns=convert(self.columns, Columns, from_attributes=True),
            record=convert(self.record, ClassRecord | None, from_attributes=True),
            membership=self.membership or "known",
            **{name: getattr(self, name) for name in _SETTINGS},
        )
