"""Ramps: selection probability as a function of the score. The only NumPy implementation of the formula.

    chance(x) = clip((x − foot) / width, 0, 1)             width > 0
    chance(x) = 1 above the foot, `tie` at it, 0 below     width = 0
    chance(x) = `tie`                                      width = ∞: a constant, for which the foot is 0

The *threshold* shown to people is foot + c · width, with c = ½ (centered) or 0 (the paper's ramp).
"""

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fairramp.core.checks import check_number, checked_width, is_real
from fairramp.errors import InputError

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Booleans = npt.NDArray[np.bool_]

#: c, the selection probability at the threshold, for each kind of ramp.
OFFSETS = {"centered": 0.5, "paper": 0.0}


@dataclass(frozen=True)
class Ramp:
    """The interval of scores over which a group's selection probability rises from 0 to 1.

    Attributes
    ----------
    foot : float
        Score below which no one is selected, in the units of the scores (a probability for logits and
        percentages; negated in a rule for which lower scores are better).
    width : float
        Distance from the foot to the score at which everyone is selected; 0, or at least 1e-6. Infinite for a
        constant ramp, which selects every score with the same probability; its foot is 0 and has no meaning.
    tie : float, default 0
        Selection probability of a score equal to the foot if the width is 0, and of every score if the width is
        infinite; otherwise unused.

    Examples
    --------
    >>> import fairramp
    >>> ramp = fairramp.Ramp(0.45, 0.1)
    >>> ramp.chance([0.4, 0.48, 0.6]).round(3)
    array([0. , 0.3, 1. ])
    """

    foot: float
    width: float
    tie: float = 0.0

    def __post_init__(self) -> None:
        if not is_real(self.foot) or not math.isfinite(self.foot):
            raise InputError("The foot of a ramp must be finite", got=self.foot)
        constant = is_real(self.width) and self.width == math.inf
        if constant and self.foot != 0:
            raise InputError(
                "The foot of a constant ramp, whose width is infinite, must be 0",
                got=self.foot,
                remedy="make it with Ramp.constant",
            )
        object.__setattr__(self, "foot", 0.0 if constant else float(self.foot))
        object.__setattr__(self, "width", math.inf if constant else checked_width(self.width, "width"))
        object.__setattr__(self, "tie", check_number("tie", self.tie, 0.0, 1.0))

    @classmethod
    def centered(cls, threshold: float, width: float = 0.0, tie: float = 0.0) -> "Ramp":
        """Make a ramp centered on a threshold.

        Examples
        --------
        >>> import fairramp
        >>> fairramp.Ramp.centered(0.5, width=0.25)
        Ramp(foot=0.375, width=0.25, tie=0.0)
        """
        return cls(threshold - OFFSETS["centered"] * width, width, tie)

    @classmethod
    def constant(cls, chance: float) -> "Ramp":
        """Make a ramp that selects everyone with the same probability, whatever the score.

        Examples
        --------
        >>> import fairramp
        >>> fairramp.Ramp.constant(0.3).chance([0.1, 0.9])
        array([0.3, 0.3])
        """
        return cls(0.0, math.inf, chance)

    @property
    def is_constant(self) -> bool:
        """Whether every score has the same probability."""
        return self.width == math.inf

    def chance(self, scores: Any) -> Floats:
        """Selection probability of each score, on the scale of the ramp.

        Examples
        --------
        >>> import fairramp
        >>> fairramp.Ramp(0.5, 0.0, tie=0.25).chance([0.4, 0.5, 0.6])
        array([0.  , 0.25, 1.  ])
        """
        return chances(np.asarray(scores, dtype=np.float64), self.foot, self.width, self.tie)


class Ramps(NamedTuple):
    """Several ramps as arrays; `width` is a float if all ramps have the same width."""

    feet: Floats
    width: Floats | float
    ties: Floats

    @classmethod
    def of(cls, ramps: Iterable[Ramp]) -> "Ramps":
        """Collect ramps into arrays."""
        feet, widths, ties = np.array([(ramp.foot, ramp.width, ramp.tie) for ramp in ramps]).T
        return cls(feet, float(widths[0]) if (widths == widths[0]).all() else widths, ties)

    def at(self, scores: Floats, groups: Integers) -> Floats:
        """Selection probability of each score under the ramp of its group."""
        width = self.width if isinstance(self.width, float) else self.width[groups]
        return chances(scores, self.feet[groups], width, self.ties[groups])


def chances(
    scores: Floats, feet: Floats | float, widths: Floats | float, ties: Floats | float, out: Floats | None = None
) -> Floats:
    """Selection probability of each score.

    Parameters
    ----------
    scores : floats of shape (n,)
        Positions.
    feet, widths, ties : floats of shape (n,), or scalars
        The ramp of each score.
    out : floats of shape (n,), optional
        Output array; may be `feet`.
    """
    if np.min(widths, initial=math.inf) > 0 and np.max(widths, initial=0.0) < math.inf:
        chance = np.subtract(scores, feet, out=out)
        with np.errstate(over="ignore"):  # thresholds far away
            np.divide(chance, widths, out=chance)
        return np.clip(chance, 0.0, 1.0, out=chance)
    found = np.where(scores == feet, ties, scores > feet)
    if not isinstance(widths, float):
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            sloping = np.clip((scores - feet) / widths, 0.0, 1.0)
        found = np.where(np.isinf(widths), ties, np.where(widths > 0, sloping, found))
    elif math.isinf(widths):
        found = np.where(True, ties, scores)  # of the shape of the scores
    if out is None:
        return found.astype(np.float64, copy=False)
    out[:] = found
    return out


def total(terms: Iterable[float]) -> float:
    """The sum from left to right, which every export can repeat; Python's own `sum` corrects rounding errors."""
    return reduce(operator.add, terms)
