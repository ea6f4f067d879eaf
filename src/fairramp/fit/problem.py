"""What a fit is asked for and what it finds, in the words that all criteria share.

    rate    mean chance of a yes in a group (the event "selection": of all its rows)
    band    which rates may stand side by side at a level u:   Gap(ε): [u − ε/2, u + ε/2]
    level   where u is:   Optimal, ByLabels, Fixed(ρ)

A criterion turns a problem and a summary of the rows into a solution, one ramp per cell. Both edges of a band are
affine and non-decreasing in u, so that the problem stays convex in the chances and u together.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fairramp.core.curve import Floats
from fairramp.core.points import Summary
from fairramp.core.ramps import Ramp, Ramps


@dataclass(frozen=True)
class Gap:
    """Rates differ by at most `max_gap`, around the level."""

    max_gap: float

    @property
    def half(self) -> float:
        """ε/2."""
        return self.max_gap / 2

    def edges(self, level: Any) -> tuple[Any, Any]:
        """[u − ε/2, u + ε/2]."""
        return level - self.half, level + self.half

    def levels(self, rate: Any) -> tuple[Any, Any]:
        """The inverse of `edges`: r − ε/2 has r as its highest rate, r + ε/2 as its lowest."""
        return rate - self.half, rate + self.half

    def middle(self, rates: Floats) -> float:
        """Half way between the extremes."""
        return float(rates.max() + rates.min()) / 2


#: Which rates may stand side by side at a level.
Band = Gap


@dataclass(frozen=True)
class Optimal:
    """The level at which equal rates cost least, by the scores."""


@dataclass(frozen=True)
class ByLabels:
    """The level, and each group's rate in the band, at which decisions agree best with the labels."""


@dataclass(frozen=True)
class Fixed:
    """A level that is given."""

    rate: float


Level = Optimal | ByLabels | Fixed


@dataclass(frozen=True)
class Problem:
    """What is asked for, in the units of the positions.

    Attributes
    ----------
    band : Band
        Which rates may stand side by side.
    level : Level
        Where the band is.
    cutoff : float
        Where the classifier itself says yes: score ≥ cutoff.
    ramp_width : float
        γ, 0 or positive.
    offset : float
        c, the chance at the threshold.
    """

    band: Band
    level: Level
    cutoff: float
    ramp_width: float
    offset: float

    @property
    def own_foot(self) -> float:
        """Foot of the ramp that stands on the classifier's own cutoff."""
        return self.cutoff - self.offset * self.ramp_width

    def clipped(self, rates: Floats, level: float) -> Floats:
        """Rates moved into the band at a level, by as little as possible."""
        low, high = self.band.edges(level)
        return np.clip(rates, max(low, 0.0), min(high, 1.0))


@dataclass(frozen=True)
class Solution:
    """One ramp per cell.

    Attributes
    ----------
    levels : floats, one per stratum
        The level of its band; of all cells together without strata.
    feet : floats of shape (K,)
        Score at which each cell's chance leaves 0; the threshold itself when the width is 0.
    thresholds : floats of shape (K,)
        feet + c·γ: where the chance is c.
    width : float
        Of every ramp.
    ties : floats of shape (K,)
        For width 0, the chance of a score equal to the threshold; otherwise c.
    rates : floats of shape (K,)
        Selection rate of each cell.
    multiplier_feet : floats of shape (2, K)
        Ends of the interval of feet that the balance of multipliers relied on.
    """

    levels: Floats
    feet: Floats
    thresholds: Floats
    width: float
    ties: Floats
    rates: Floats
    multiplier_feet: Floats

    @property
    def level(self) -> float:
        """The level of the only band."""
        return float(self.levels[0])

    @property
    def as_arrays(self) -> Ramps:
        """The ramps, ready to be evaluated."""
        return Ramps(self.feet, self.width, self.ties)

    def ramps(self, offset: float) -> tuple[Ramp, ...]:
        """The ramps as a rule holds them, by way of the thresholds that people read."""
        feet = self.thresholds - offset * self.width
        ties = self.ties if self.width == 0 else np.zeros(len(feet))
        return tuple(Ramp(f, self.width, t) for f, t in zip(feet.tolist(), ties.tolist(), strict=True))


class Criterion(Protocol):
    """Which rate is made equal, and between whom."""

    name: str
    #: The event whose rate it is.
    event: str

    def solve(self, summary: Summary, problem: Problem, near: Floats | None = None) -> Solution:
        """Ramps of least cost with rates in the band; `near` are guesses of the levels, which save time."""

    def gap(self, rates: Floats) -> float:
        """Largest difference between two rates that are compared."""
