"""Verdicts: whether a gap keeps to a maximum, as far as its confidence limits show.

    within       upper ≤ maximum
    exceeded     lower > maximum
    undecided    otherwise, and always where the limits are no numbers or do not contain the gap itself

The last clause is for numbers that went wrong on the way: a gate must not pass because of them.
"""

import math
from collections.abc import Iterable
from enum import StrEnum

#: How far rounding may put a gap outside its own limits.
_ROUNDING = 1e-9


class Verdict(StrEnum):
    """What rows show about a gap and its maximum."""

    WITHIN = "within"
    EXCEEDED = "exceeded"
    UNDECIDED = "undecided"


def is_sound(gap: float, limits: tuple[float, float]) -> bool:
    """Whether limits can be the confidence limits of a gap.

    >>> is_sound(0.16, (0.1, 0.2)), is_sound(0.16, (0.0, 0.0)), is_sound(0.16, (0.1, float("nan")))
    (True, False, False)
    """
    lower, upper = limits
    # A comparison with NaN is false.
    return all(map(math.isfinite, limits)) and lower - _ROUNDING <= gap <= upper + _ROUNDING


def verdict_on(gap: float, limits: tuple[float, float], maximum: float) -> Verdict:
    """What the confidence limits of a gap say about its maximum.

    >>> [str(verdict_on(0.16, limits, 0.05)) for limits in ((0.1, 0.2), (0.01, 0.3), (0.0, 0.0))]
    ['exceeded', 'undecided', 'undecided']
    """
    lower, upper = limits
    if not is_sound(gap, limits) or lower <= maximum < upper:
        return Verdict.UNDECIDED
    return Verdict.EXCEEDED if lower > maximum else Verdict.WITHIN


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Exceeded if one of them is, within if all of them are."""
    found = set(verdicts)
    return next(v for v in (Verdict.EXCEEDED, Verdict.UNDECIDED, Verdict.WITHIN) if v in found)
