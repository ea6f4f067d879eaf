"""Verdicts: what confidence limits show about the maximum of a gap or the minimum of a ratio.

                 gap                ratio
    within       upper ≤ maximum    lower ≥ minimum
    exceeded     lower > maximum    upper < minimum
    undecided    otherwise, and always if the limits are not finite or do not contain the gap or the ratio

The last condition guards against invalid numbers: a gate must not pass because of them. A ratio of NaN means that
all rates are 0; then only the limits decide.
"""

import math
from collections.abc import Iterable
from enum import StrEnum

#: Rounding may put a gap this far outside its own limits.
_ROUNDING = 1e-9


class Verdict(StrEnum):
    """What rows show about a gap and its maximum, or a ratio and its minimum."""

    WITHIN = "within"
    EXCEEDED = "exceeded"
    UNDECIDED = "undecided"

    @property
    def word(self) -> str:
        """The result of a gate or check."""
        return {Verdict.WITHIN: "passed", Verdict.EXCEEDED: "failed"}.get(self, "undecided")


def is_sound(gap: float, limits: tuple[float, float]) -> bool:
    """Whether limits are valid confidence limits of a gap.

    >>> is_sound(0.16, (0.1, 0.2)), is_sound(0.16, (0.0, 0.0)), is_sound(0.16, (0.1, float("nan")))
    (True, False, False)
    """
    lower, upper = limits
    return all(map(math.isfinite, limits)) and lower - _ROUNDING <= gap <= upper + _ROUNDING


def verdict_on(gap: float, limits: tuple[float, float], maximum: float) -> Verdict:
    """Compare the confidence limits of a gap with a maximum.

    >>> [str(verdict_on(0.16, limits, 0.05)) for limits in ((0.1, 0.2), (0.01, 0.3), (0.0, 0.0))]
    ['exceeded', 'undecided', 'undecided']
    """
    lower, upper = limits
    if not is_sound(gap, limits) or lower <= maximum < upper:
        return Verdict.UNDECIDED
    return Verdict.EXCEEDED if lower > maximum else Verdict.WITHIN


def is_sound_ratio(ratio: float, limits: tuple[float, float]) -> bool:
    """Whether limits are valid confidence limits of a ratio, which is NaN if all rates are 0.

    >>> is_sound_ratio(0.9, (0.8, 1.0)), is_sound_ratio(math.nan, (0.0, 1.0)), is_sound_ratio(0.9, (0.0, 0.5))
    (True, True, False)
    """
    return is_sound(limits[0] if math.isnan(ratio) else ratio, limits)


def verdict_on_ratio(ratio: float, limits: tuple[float, float], minimum: float) -> Verdict:
    """Compare the confidence limits of a ratio with a minimum.

    >>> [str(verdict_on_ratio(0.9, limits, 0.8)) for limits in ((0.85, 0.95), (0.7, 0.95), (0.0, 0.0))]
    ['within', 'undecided', 'undecided']
    """
    lower, upper = limits
    if not is_sound_ratio(ratio, limits) or lower < minimum <= upper:
        return Verdict.UNDECIDED
    return Verdict.EXCEEDED if upper < minimum else Verdict.WITHIN


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Exceeded if any verdict is, within if all are, otherwise undecided."""
    found = set(verdicts)
    return next(v for v in (Verdict.EXCEEDED, Verdict.UNDECIDED, Verdict.WITHIN) if v in found)


def exit_code(verdict: Verdict, *, sound: bool, undecided: int = 0) -> int:
    """The exit code of a command: 1 only if the rows show it, and 3 if the confidence limits are invalid.

    >>> [exit_code(verdict, sound=True, undecided=3) for verdict in Verdict]
    [0, 1, 3]
    """
    return {Verdict.WITHIN: 0, Verdict.EXCEEDED: 1, Verdict.UNDECIDED: undecided if sound else 3}[verdict]
