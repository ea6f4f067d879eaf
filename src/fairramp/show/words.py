"""Numbers and names as a reader of the report wants them."""

from collections.abc import Sequence

from fairramp.core.words import is_word

#: Longest name in a sentence.
LONGEST = 40


def full(value: float | None) -> str:
    """A number with all significant digits."""
    return "" if value is None else f"{value:.12g}"


def largest(sizes: Sequence[int], most: int) -> list[int]:
    """Indices of the largest groups, in their own order."""
    return sorted(sorted(range(len(sizes)), key=lambda i: -sizes[i])[:most])


def plain_name(name: str) -> str:
    """A name on one line: controls, even those that change the writing direction, become spaces."""
    return "".join(c if c.isprintable() or c == "\u200d" else " " for c in name)


def shortened(name: str, longest: int = LONGEST) -> str:
    """A name shortened for a sentence."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def isolated(name: str) -> str:
    """A name for the middle of a sentence, which cannot change the direction of the words around it.

    Names that are not words, such as numbers, follow the word "group".
    """
    return f"{'' if is_word(name) else 'group '}{marked(name)}"


def marked(name: str) -> str:
    """A name, shortened, between marks that isolate its writing direction."""
    return f"\u2068{shortened(name)}\u2069"
