"""Format numbers and sentences for people (one decimal, lines of 80 characters), and values for JSON.

The float's exact value is rounded to the nearest decimal, halves up. Browsers' `toFixed` does the same, so the
report shows the same number whether Python or its script formatted it.
"""

import math
import textwrap
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

#: Width of printed text, in characters.
PAGE = 80
#: Numbers up to this are treated as rounding errors and shown as 0.
NOTHING = 1e-9
#: Decimals of a point in a setting that someone typed; computed numbers have more.
_DIGITS = 4
#: Larger numbers are shown without decimals: a float has none there.
_LARGE = 1e15
#: Shown in place of a missing number.
MISSING = "–"


def fixed(value: float, decimals: int) -> str:
    """Format a number with this many decimals.

    >>> fixed(0.125, 2), fixed(-0.001, 2), fixed(5e-7, 8)
    ('0.13', '0.00', '0.00000050')
    """
    if abs(value) > _LARGE:
        return f"{value:,.0f}"
    text = f"{Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP):,f}"
    return text.removeprefix("-") if not any(c in "123456789" for c in text) else text


def number(value: float, decimals: int) -> str:
    """Format a number; nonzero numbers are never shown as 0.

    >>> number(1234.5, 1), number(0.00001, 4), number(float("nan"), 1)
    ('1,234.5', '<0.0001', '–')
    """
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    text = fixed(value, decimals)
    if abs(value) <= NOTHING or any(c in "123456789" for c in text):
        return text
    least = fixed(10.0**-decimals, decimals)
    return f"<{least}" if value > 0 else f">-{least}"


def percent(share: float, decimals: int = 1) -> str:
    """Format a share as a percentage.

    >>> percent(0.0772), percent(0.0001), percent(0)
    ('7.7%', '<0.1%', '0.0%')
    """
    text = number(100 * share, decimals)
    return text if text == MISSING else f"{text}%"


def points(gap: float, decimals: int = 1) -> str:
    """Format a difference of shares in percentage points.

    >>> points(0.1683), points(0.0001)
    ('16.8 points', '<0.1 points')
    """
    text = number(100 * gap, decimals)
    return text if text == MISSING else f"{text} points"


def upward_points(limit: float, decimals: int = 1) -> str:
    """Format a limit in percentage points, rounded up, because a limit rounded down may not hold.

    >>> upward_points(0.02801), upward_points(0.05)
    ('2.9 points', '5.0 points')
    """
    unit = 10**decimals
    return (
        f"{math.ceil(round(100 * unit * limit, 6)) / unit:.{decimals}f} points"
        if math.isfinite(limit)
        else MISSING
    )


def exact_points(setting: float) -> str:
    """Format a setting in percentage points with all its digits; a computed one, which has many, is rounded up.

    >>> exact_points(0.02), exact_points(0.0025), exact_points(0.019201660156)
    ('2.0 points', '0.25 points', '2.0 points')
    """
    whole, _, digits = f"{100 * setting:.10g}".partition(".")
    return (
        upward_points(setting)
        if len(digits) > _DIGITS or "e" in whole + digits
        else f"{whole}.{digits or 0} points"
    )


def decimals_apart(limit: float, *values: float) -> int:
    """Find how many decimals, at least one, show that values differ from a limit.

    >>> decimals_apart(0.05, 0.0502, 0.07), decimals_apart(0.05, 0.06)
    (2, 1)
    """
    different = [value for value in values if math.isfinite(value) and value != limit]
    apart = (d for d in range(1, 6) if all(fixed(100 * v, d) != fixed(100 * limit, d) for v in different))
    return next(apart, 6)


def percentage(share: float) -> str:
    """Format a share with all its digits: 99.9% confidence is not 100%.

    >>> percentage(0.95), percentage(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * share:.10g}%"


def times(high: float, low: float) -> str:
    """Format how many times as high one rate is as another.

    >>> times(0.245, 0.077), times(0.5, 0.49)
    ('3.2', '1.02')
    """
    ratio = high / low
    return fixed(ratio, 2 if ratio < 1.095 else 1 if ratio < 20 else 0)


def is_word(name: str) -> bool:
    """Whether a group's name can stand on its own in a sentence: numbers, booleans and tuples cannot."""
    return any(c.isalpha() for c in name) and name not in ("True", "False") and not name.startswith("(")


def with_interval(shown: str, low: str, high: str) -> str:
    """Append a confidence interval to a number: 7.7% [7.2%, 8.3%], or 16.8 points [15.9, 17.7]."""
    ends = ", ".join(end.removesuffix(" points") for end in (low, high))
    return shown if shown == MISSING else f"{shown} [{ends}]"


def lines_of(text: str, width: int, first: str = "", others: str = "") -> list[str]:
    """Wrap a text to lines, without breaking words such as file names."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def wrapped(text: str, first: str = "") -> str:
    """Wrap a text to 80 columns after the prefix `first`, indenting further lines by its length."""
    return "\n".join("\n".join(lines_of(part, PAGE, first, " " * len(first))) for part in text.split("\n"))


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as JSON represents them: tuples become lists; NaN and infinity become None.

    >>> plain({"pair": ("A", "B"), "rate": float("nan")})
    {'pair': ['A', 'B'], 'rate': None}
    """
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return plain(value)
        case list() | tuple():
            return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
