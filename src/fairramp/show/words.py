"""Format numbers and names for the report."""

from collections.abc import Sequence

from fairramp.core.words import NOTHING, fixed, is_word

#: Longer names are shortened in sentences.
LONGEST = 40


def full(value: float | None) -> str:
    """A number with 12 significant digits; empty for None and NaN."""
    return "" if value is None or value != value else f"{value:.12g}"


def largest(sizes: Sequence[int], most: int) -> list[int]:
    """Indices of the largest groups, in ascending order."""
    return sorted(sorted(range(len(sizes)), key=lambda i: -sizes[i])[:most])


def plain_name(name: str) -> str:
    """Replace control characters, including those that change the writing direction, by spaces."""
    return "".join(c if c.isprintable() or c == "\u200d" else " " for c in name)


def shortened(name: str, longest: int = LONGEST) -> str:
    """Shorten a name for a sentence."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def isolated(name: str) -> str:
    """A name for the middle of a sentence, isolated from the writing direction of the words around it.

    Names that are not words, such as numbers, are preceded by "group".
    """
    return f"{'' if is_word(name) else 'group '}{marked(name)}"


def marked(name: str) -> str:
    """Shorten a name and put it between marks that isolate its writing direction."""
    return f"\u2068{shortened(name)}\u2069"


def unmarked(text: str) -> str:
    """Remove the marks that isolate the writing direction of names."""
    return "".join(c for c in text if c not in "\u2068\u2069")


def people(n: float) -> str:
    """An expected number of people, rounded; empty for 0, and never 0 for a positive number.

    >>> people(1182.4), people(0.3), people(0.0)
    ('1,182', '<1', '')
    """
    if not n > NOTHING:
        return ""
    return fixed(n, 0) if n >= 0.5 else "<1"
