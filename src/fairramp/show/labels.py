"""What labels are called on pages for people who do not know the data: "the favorable outcome (Default = 0)"."""

from dataclasses import dataclass, replace
from typing import Any

from fairramp.core.events import Event
from fairramp.errors import InputError
from fairramp.show.words import marked, plain_name


@dataclass(frozen=True)
class LabelNames:
    """What label 1, the favorable outcome, and label 0 stand for.

    >>> LabelNames().outcome(1), LabelNames().people(0)
    ('the favorable outcome (label 1)', 'people with the other outcome (label 0)')
    """

    favorable: str = "label 1"
    other: str = "label 0"

    @classmethod
    def of(cls, names: Any) -> "LabelNames":
        """The names for label 1 and label 0 as given, checked; None for the defaults."""
        if names is None:
            return LABELS
        is_pair = isinstance(names, tuple | list) and len(names) == 2
        if not is_pair or not all(isinstance(name, str) and plain_name(name).strip() for name in names):
            raise InputError(
                "must be two names, for label 1 and for label 0, such as ('repaid', 'default')",
                argument="label_names",
                got=names,
            )
        return cls(*(plain_name(name).strip() for name in names))

    def outcome(self, label: int) -> str:
        """An outcome in the middle of a sentence."""
        which, name = ("favorable", self.favorable) if label else ("other", self.other)
        return f"the {which} outcome ({name if self == LABELS else marked(name)})"

    def listed(self) -> dict[str, str]:
        """Both names, by what they are."""
        return {"Favorable outcome": self.favorable, "Other outcome": self.other}

    def people(self, label: int | None) -> str:
        """The people with an outcome; None for everybody."""
        return "people" if label is None else f"people with {self.outcome(label)}"

    def event(self, event: Event) -> Event:
        """An event whose rows are called by their outcome."""
        return event if event.label is None else replace(event, outcome=self.outcome(event.label))

    def said(self, text: str) -> str:
        """A text of the library, which names no group, with these names."""
        for label in (0, 1):
            text = text.replace(f"with label {label}", f"with {self.outcome(label)}")
        return text


#: For labels of which nothing else is known.
LABELS = LabelNames()
