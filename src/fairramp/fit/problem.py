"""The problem and the solution of a fit, in terms that all criteria share.

    rate    mean selection probability in a group, over the rows of an event (see `core.events`)
    band    which rates are allowed together at a level u (see `core.bands`)
    level   where u is:   Optimal, ByLabels, Fixed(ρ), Budget(B)

A criterion turns a problem and a summary of the event's rows into a solution, one ramp per cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np

from fairramp.core.bands import Band
from fairramp.core.cells import strata_slices
from fairramp.core.checks import MIN_RAMP_WIDTH
from fairramp.core.curve import Floats, Integers, RateCurve
from fairramp.core.events import Event
from fairramp.core.points import Summary
from fairramp.core.ramps import Ramp, Ramps


@dataclass(frozen=True)
class Optimal:
    """The level at which equal rates cost least according to the scores."""


@dataclass(frozen=True)
class ByLabels:
    """The level, and each group's rate in the band, at which decisions agree best with the labels."""


@dataclass(frozen=True)
class Fixed:
    """A given level."""

    rate: float


@dataclass(frozen=True)
class Budget:
    """Wherever the overall selection rate is a given number."""

    overall_rate: float


Level = Optimal | ByLabels | Fixed | Budget


@dataclass(frozen=True)
class Problem:
    """A problem to solve, in the units of the positions.

    Attributes
    ----------
    band : Band
        Which rates are allowed together.
    level : Level
        Where the band is.
    cutoff : float
        Where the classifier itself selects: score ≥ cutoff.
    ramp_width : float
        γ, 0 or positive.
    offset : float
        c, the selection probability at the threshold.
    flat : {"nearest", "highest", "lowest"}
        Of several feet with the same rate, which is taken: the one nearest the classifier's own, or an end of
        their range.
    ends : tuple of two floats
        Lowest and highest position of a score.
    """

    band: Band
    level: Level
    cutoff: float
    ramp_width: float
    offset: float
    flat: str = "nearest"
    ends: tuple[float, float] = (0.0, 1.0)

    @property
    def own_foot(self) -> float:
        """Foot of the ramp located at the classifier's own cutoff."""
        return self.cutoff - self.offset * self.ramp_width

    def levels_of(self, rates: Floats, strata: Integers | None) -> Floats:
        """The level of each stratum's band that contains these rates."""
        return np.array([self.band.level_of(rates[part]) for part in strata_slices(strata, len(rates))])

    def snapped(self, curve: RateCurve, rates: Floats) -> Floats:
        """Rates to look for: beside a flat piece by rounding only, the wrong end of it would be taken."""
        return rates if self.flat == "nearest" else curve.snapped(rates)

    def chosen(self, lowest: Floats, highest: Floats) -> Floats:
        """The foot to take of each range of feet with the same rate, which may be unbounded."""
        if self.flat == "nearest":
            return np.minimum(np.maximum(self.own_foot, lowest), highest)
        # At the bottom everybody is selected, even at the lowest position; at the top nobody.
        bottom, top = self.ends[0] - max(self.ramp_width, MIN_RAMP_WIDTH), self.ends[1]
        return np.minimum(highest, top) if self.flat == "highest" else np.maximum(lowest, bottom)

    def clipped(self, rates: Floats, level: float) -> Floats:
        """Rates moved into the band at a level by as little as possible."""
        low, high = self.band.edges(level)
        return np.clip(rates, max(low, 0.0), min(high, 1.0))


@dataclass(frozen=True)
class Solution:
    """One ramp per cell.

    Attributes
    ----------
    levels : floats, one per stratum
        The level of each stratum's band; without strata, of the only band.
    feet : floats of shape (K,)
        Score below which no one is selected in each cell; the threshold itself if the width is 0.
    thresholds : floats of shape (K,)
        feet + c·γ, where the selection probability is c.
    width : float, or floats of shape (K,)
        Width of every ramp; infinite if the selection probability is constant.
    ties : floats of shape (K,)
        For width 0, the selection probability at the threshold; for a constant one, that probability; otherwise
        c.
    rates : floats of shape (K,)
        Rate of each cell; for equalized odds, the true positive rate.
    multiplier_feet : floats of shape (2, K)
        Ends of the interval of feet on which the balance of multipliers is based.
    """

    levels: Floats
    feet: Floats
    thresholds: Floats
    width: Floats | float
    ties: Floats
    rates: Floats
    multiplier_feet: Floats

    @classmethod
    def joined(cls, parts: Sequence["Solution"]) -> "Solution":
        """The solutions of several strata, in order."""
        names = [field.name for field in fields(cls) if isinstance(getattr(parts[0], field.name), np.ndarray)]
        arrays = {name: np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in names}
        return replace(parts[0], **arrays)

    @property
    def level(self) -> float:
        """The level of the only band."""
        return float(self.levels[0])

    @property
    def as_arrays(self) -> Ramps:
        """The ramps, ready to be evaluated."""
        return Ramps(self.feet, self.width, self.ties)

    def rates_on(self, summary: Summary) -> Floats:
        """The rates of the ramps on a summary that is exact for them."""
        p = summary.points
        chances = self.as_arrays.at(p.place, p.group)
        return np.minimum(summary.total(p.weight / summary.weights[p.group] * chances), 1.0)

    def ramps(self, offset: float) -> tuple[Ramp, ...]:
        """The ramps as stored in a rule, computed from the thresholds shown to people."""
        widths = np.broadcast_to(self.width, len(self.feet))
        return tuple(
            Ramp.constant(tie) if width == np.inf else Ramp(threshold - offset * width, width, tie * (width == 0))
            for threshold, width, tie in zip(
                self.thresholds.tolist(), widths.tolist(), self.ties.tolist(), strict=True
            )
        )


class Criterion(Protocol):
    """Which rate is made equal, and between which cells."""

    @property
    def event(self) -> Event:
        """Which rows the rates are about."""

    def solve(self, summary: Summary, problem: Problem, near: Floats | None = None) -> Solution:
        """Ramps of least cost with rates in the band; `near` are guesses of the levels, which save time."""
