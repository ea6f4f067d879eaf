"""Reading and writing rules as JSON files; the fields are in `rule.file` and `rule.class_file`."""

import json
import os
from pathlib import Path
from typing import Any, ClassVar, Self

from fairramp.data import documents
from fairramp.data.files import write_text


class Stored:
    """The methods of a rule that read and write files.

    A subclass has `_kind`, the type of its document, which is made by `of(rule)` and turned back by `rule(kind)`.
    """

    _kind: ClassVar[Any]

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
        return documents.written(self._kind.of(self), indent=1)

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
        found: Self = documents.read(text, cls._kind, lambda document: document.rule(cls))
        return found

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
        found: Self = documents.load(path, cls._kind, lambda document: document.rule(cls))
        return found

    @property
    def fingerprint(self: Any) -> str:
        """SHA-256 of everything that affects decisions, without the record; equal for rules that decide alike."""
        return documents.checksum(self._kind.of(self), without=("record", "columns"))
