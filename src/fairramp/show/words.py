"""Numbers and names as a reader wants them.

Rounding is to the nearest, halves upwards, of the float's exact value: what `toFixed` does in a browser, so that
the page says the same whether Python or its script wrote a number.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

from fairramp.core.table import percentage

#: Keeps a number and its unit on one line.
NO_BREAK = "\u00a0"
#: Longest name in a sentence.
LONGEST = 40


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals."""
    text = str(Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP))
    return text.removeprefix("-") if not any(c in "123456789" for c in text) else text


def percent(share: float, decimals: int = 1) -> str:
    """A share as a percentage; what is not 0 is never shown as 0."""
    if 0 < share * 100 < 0.5 * 10.0**-decimals:
        return f"<{NO_BREAK}{fixed(10.0**-decimals, decimals)}{NO_BREAK}%"
    return f"{fixed(share * 100, decimals)}{NO_BREAK}%"


def level(confidence: float) -> str:
    """A confidence, never rounded up to certainty."""
    return percentage(confidence).replace("%", f"{NO_BREAK}%")


def points(difference: float) -> str:
    """A difference of shares in percentage points, with two decimals at most."""
    text = fixed(difference * 100, 2).removesuffix("0")
    if text == "0.0" and difference > 1e-9:
        text = f"<{NO_BREAK}0.01"
    return f"{text}{NO_BREAK}points"


def times(high: float, low: float) -> str:
    """How many times as large."""
    ratio = high / low
    return fixed(ratio, 2 if ratio < 1.095 else 1 if ratio < 20 else 0)


def full(value: float | None) -> str:
    """A number with all the digits that mean something."""
    return "" if value is None else f"{value:.12g}"


def largest(sizes: Sequence[int], most: int) -> list[int]:
    """Which of the groups are shown where not all are: the largest, in their own order."""
    return sorted(sorted(range(len(sizes)), key=lambda i: -sizes[i])[:most])


def plain_name(name: str) -> str:
    """A name on one line: line ends and other controls are spaces, also those that turn the writing direction."""
    return "".join(c if c.isprintable() or c == "\u200d" else " " for c in name)


def shortened(name: str, longest: int = LONGEST) -> str:
    """A long name cut for a sentence."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def isolated(name: str) -> str:
    """A name for the middle of a sentence: it cannot turn the direction of the words around it.

    Names that are no words, such as numbers, are said to be groups.
    """
    is_word = any(c.isalpha() for c in name) and name not in ("True", "False") and not name.startswith("(")
    return f"{'' if is_word else 'group '}\u2068{shortened(name)}\u2069"
