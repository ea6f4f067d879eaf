"""Bands: which rates are allowed together at a level u.

    Gap(ε)     [u − ε/2, u + ε/2]     rates differ by at most ε; u is the middle
    Ratio(τ)   [τ u, u]               the lowest rate is at least τ times the highest; u is the highest

Both edges are affine and non-decreasing in u, and the allowed rates are a convex set.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairramp.core.cells import strata_slices
from fairramp.core.curve import RATE_TOLERANCE, Floats
from fairramp.core.words import exact_points


@dataclass(frozen=True)
class Gap:
    """Rates differ by at most `max_gap`, around the level."""

    max_gap: float

    #: Slopes of the lower and the upper edge.
    slopes = (1.0, 1.0)

    @property
    def is_open(self) -> bool:
        """Whether rates may differ at all."""
        return self.max_gap > 0

    def edges(self, level: Any) -> tuple[Any, Any]:
        """[u − ε/2, u + ε/2]."""
        return level - self.max_gap / 2, level + self.max_gap / 2

    def levels(self, rate: Any) -> tuple[Any, Any]:
        """The inverse of `edges`: the levels at which a rate is the highest, and the lowest, of the band."""
        return rate - self.max_gap / 2, rate + self.max_gap / 2

    def level_of(self, rates: Floats) -> float:
        """The midpoint between the extremes."""
        return float(rates.max() + rates.min()) / 2

    def excess(self, rates: Floats) -> float:
        """By how much rates exceed the band; at most 0 if they are in it."""
        return float(rates.max() - rates.min()) - self.max_gap

    def stricter(self, share: float) -> "Gap":
        """A band with this share of the freedom."""
        return Gap(self.max_gap * share)

    @property
    def words(self) -> str:
        """What it allows, after "rates"."""
        return f"at most {exact_points(self.max_gap)} apart"


@dataclass(frozen=True)
class Ratio:
    """The lowest rate is at least `min_ratio` times the highest, which is the level."""

    min_ratio: float

    @property
    def slopes(self) -> tuple[float, float]:
        """Slopes of the lower and the upper edge."""
        return self.min_ratio, 1.0

    @property
    def is_open(self) -> bool:
        """Whether rates may differ at all."""
        return self.min_ratio < 1

    def edges(self, level: Any) -> tuple[Any, Any]:
        """[τ u, u]."""
        return self.min_ratio * level, level

    def levels(self, rate: Any) -> tuple[Any, Any]:
        """The inverse of `edges`: the levels at which a rate is the highest, and the lowest, of the band."""
        return rate, rate / self.min_ratio

    def level_of(self, rates: Floats) -> float:
        """The highest rate."""
        return float(rates.max())

    def excess(self, rates: Floats) -> float:
        """τ·max − min, which is defined even if nobody is selected; at most 0 if rates are in the band."""
        return self.min_ratio * float(rates.max()) - float(rates.min())

    def stricter(self, share: float) -> "Ratio":
        """A band with this share of the freedom."""
        return Ratio(1 - (1 - self.min_ratio) * share)

    @property
    def words(self) -> str:
        """What it allows, after "rates"."""
        return f"at least {self.min_ratio:.10g} times the highest"


#: Which rates are allowed together.
Band = Gap | Ratio


def band_of(max_gap: float | None, min_ratio: float | None) -> Band:
    """The band of a maximum gap or a minimum ratio; without either, rates are equal."""
    return Gap(max_gap or 0.0) if min_ratio is None else Ratio(min_ratio)


def holds(band: Band, rates: Floats, strata: Any = None) -> bool:
    """Whether rates are in the band, within each stratum if there are strata."""
    return all(band.excess(rates[part]) <= RATE_TOLERANCE for part in strata_slices(strata, len(rates)))


def smallest_ratio(rates: Any, strata: Any = None) -> float:
    """Smallest rate divided by the largest, of the worst stratum; NaN where nobody is selected anywhere."""
    r = np.asarray(rates, dtype=np.float64)
    found = [r[part].min() / r[part].max() for part in strata_slices(strata, len(r)) if r[part].max() > 0]
    return float(min(found, default=np.nan))
