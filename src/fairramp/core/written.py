"""A table as CSV or Markdown, in which no name can act as anything but text.

Names come from the user's data, and the readers of a file do not expect a formula, a link or markup in them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fairramp.core.checks import is_real
from fairramp.core.labels import label_text

#: A spreadsheet runs a cell that starts with one of these; programs may skip blanks and invisible characters.
_FORMULA = frozenset("=+-@＝＋－＠")
#: A spreadsheet may drop these at the start of a cell and run the rest.
_DROPPED = frozenset("\t\r\n")
#: Characters that mark up text in Markdown, its usual extensions or a template language.
_MARKUP = re.compile(r"([\\`*_\[\]<>{}&~|$]|(?<=\{)[%#])")
#: Where a mention, a reference, a link or an emoji could begin, none of which a backslash prevents on GitHub.
_LINK = re.compile(r"(?<=[@#])(?=[0-9a-z])|(?<=:)(?=//|[\w+-]+:)|(?<=www)(?=\.)", re.IGNORECASE)


def csv_text(columns: Mapping[str, Sequence[Any]]) -> str:
    r"""Columns as CSV (RFC 4180, but with lines that end with \n), with all digits of the numbers.

    >>> csv_text({"group": ["=A1", "B, b"], "rate": [-0.5, float("nan")]})
    'group,rate\n\'=A1,-0.5\n"B, b",\n'
    """
    rows = [map(_text_field, columns), *(map(_field, row) for row in zip(*columns.values(), strict=True))]
    # Readers skip a blank line, so the only field of a row is quoted if it is empty.
    lines = [",".join(row) or '""' for row in rows]
    return "".join(f"{line}\n" for line in lines) if columns else ""


def _field(value: Any) -> str:
    if is_real(value):
        return "" if value != value else str(value)
    return _text_field(label_text(value))


def _text_field(text: str) -> str:
    start = text.lstrip("'")  # names that differ only by an apostrophe stay different
    seen = next((c for c in start if c.isprintable() and not c.isspace()), "")
    safe = f"'{text}" if seen in _FORMULA or start[:1] in _DROPPED else text
    plain = safe.isprintable() and safe == safe.strip() and not {*safe} & {*',"'}
    return safe if plain else '"' + safe.replace('"', '""') + '"'


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> str:
    r"""Cells as a Markdown table, with numbers aligned to the right.

    >>> print(markdown(["group", "rate"], [["a|*b*", "7.7%"]], [False, True]))
    | group | rate |
    | --- | ---: |
    | a\|\*b\* | 7.7% |
    """
    rule = ["---:" if right else "---" for right in numeric]
    lines = [map(inert, headings), rule, *(map(inert, row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) if headings else ""


def inert(text: str) -> str:
    """Markdown that shows one line of text; an invisible character separates what would become something else."""
    return _LINK.sub("&#8203;", _MARKUP.sub(r"\\\1", text))
