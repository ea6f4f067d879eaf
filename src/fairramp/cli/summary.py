"""What a command prints, as Markdown: for example, for the page of a pull request.

Names in the data appear as they are: nothing in them becomes markup, a link, a mention or a template.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairramp.core.table import Table


class Summary:
    """The text of a command, with its verdicts right below the heading; nothing is kept without a `path`."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._heading: list[str] = []
        self._verdicts: list[str] = []
        self._parts: list[str] = []

    def heading(self, text: str) -> None:
        """Add the heading."""
        self._heading.append(f"### fairramp: {_shown(text)}")

    def verdict(self, text: str) -> None:
        """Add a verdict, in bold up to the first colon or period."""
        end = min((i for i in map(text.find, ":.") if i >= 0), default=len(text) - 1) + 1
        self._verdicts.append(f"**{_shown(text[:end])}**{_shown(text[end:], first=' ')}")

    def say(self, *sentences: str) -> None:
        """Add a paragraph for each sentence that is not blank."""
        self._parts += filter(None, map(_shown, sentences))

    def table(self, table: "Table", *, every: bool = False) -> None:
        """Add a table, with the rows that are printed."""
        self._parts.append(table.to_markdown(every=every))

    def write(self) -> None:
        """Write the file, whole or not at all."""
        if self._path is not None:
            from fairramp.data.files import write_text

            parts = [*self._heading, *self._verdicts, *self._parts]
            write_text(Path(self._path), "\n\n".join(parts) + "\n", "the summary")


def _shown(text: str, first: str = "") -> str:
    """Text on one line, after `first` unless it is blank."""
    # The help of a command is printed without loading numpy.
    from fairramp.core.table import one_line
    from fairramp.core.written import inert

    line = one_line(text).strip()
    return f"{first}{inert(line)}" if line else ""
