"""Bins of a portable summary: their edges and their contents.

The range of the positions is cut into a power of two of equal bins, which makes the edges exact floats. The
cutoff is always an additional edge, and the highest score has a bin of its own.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairramp.core.curve import Booleans, Floats, Integers
from fairramp.core.points import Points, run_starts
from fairramp.core.scales import Scale, scale_of
from fairramp.errors import InputError

#: Maximum number of bins; with more it would not be a summary.
MOST_BINS = 1 << 20


@dataclass(frozen=True)
class Grid:
    """Bin edges: those of equally wide bins, a power of two, and the cutoff.

    Attributes
    ----------
    scale : Scale
        Scale of the scores.
    resolution : int
        Number of equal bins.
    cutoff : float
        Score at which the classifier itself selects.
    """

    scale: Scale
    resolution: int
    cutoff: float

    @classmethod
    def checked(cls, scale: Any, resolution: Any, cutoff: Any, higher_is_better: Any = True) -> "Grid":
        """A grid from user input."""
        meaning = scale_of(scale, higher_is_better)
        return cls(meaning, checked_resolution(resolution), meaning.checked_cutoff(cutoff))

    @property
    def per_unit(self) -> float:
        """Equal bins per unit of the positions; a power of two, so products are exact."""
        return self.resolution / (self.scale.highest - self.scale.lowest)

    @property
    def cut(self) -> float:
        """The cutoff as a position."""
        return self.scale.position_of(self.cutoff)

    def has_edge(self, position: float) -> bool:
        """Whether rows at or above a position can be separated from those below."""
        return position == self.cut or (position * self.per_unit).is_integer()

    @property
    def is_cut_inside(self) -> bool:
        """Whether the cutoff splits one of the equal bins."""
        return not (self.cut * self.per_unit).is_integer()

    @cached_property
    def edges(self) -> Floats:
        """Start of each bin."""
        equal = self.scale.lowest + np.arange(self.resolution + 1) / self.per_unit
        return np.insert(equal, np.searchsorted(equal, self.cut), self.cut) if self.is_cut_inside else equal

    def bins(self, positions: Floats) -> Integers:
        """The bin of each position."""
        index: Integers = np.floor(positions * self.per_unit).astype(np.intp)
        index -= int(self.scale.lowest * self.per_unit)
        return index + (positions >= self.cut) if self.is_cut_inside else index

    def _ends(self, bins: Integers) -> tuple[Floats, Floats]:
        """Start and end of bins."""
        return self.edges[bins], self.edges[np.minimum(bins + 1, len(self.edges) - 1)]

    def filled(
        self,
        group: Integers,
        bins: Integers,
        means: Floats,
        one_score: Booleans,
        rows: Integers,
        weight: Floats,
        squares: Floats,
    ) -> Points:
        """Contents of bins as points; a bin with a single score becomes an exact point."""
        lower, upper = (np.where(one_score, means, end) for end in self._ends(bins))
        return Points.from_means(group, means, lower, upper, rows, weight, squares)

    def joined(self, p: Points) -> Points:
        """Merge the points of each group and bin; the result is exact if all have the same score."""
        bins = self.bins(p.lower)
        order = np.lexsort((p.place, bins, p.group))
        p, bins = p.take(order), bins[order]
        first = run_starts(p.group, bins)
        lowest, highest = p.place[first], p.place[np.append(first[1:], len(p)) - 1]
        exact = (lowest == highest) & np.logical_and.reduceat(p.exact, first)
        # Sum distances from the start of the bin: sums of full scores would lose digits of the mean.
        moment = np.add.reduceat(p.weight * (p.place - self.edges[bins]), first)
        joined, (lower, upper) = p.summed(first), self._ends(bins[first])
        place = np.clip(lower + moment / joined.weight, lowest, highest)
        return replace(
            joined,
            place=place,
            lower=np.where(exact, place, lower),
            upper=np.where(exact, place, upper),
            averaged=np.ones(len(first), dtype=bool),
        )


def checked_resolution(resolution: Any) -> int:
    """Check a number of bins given by the user."""
    whole = isinstance(resolution, int | np.integer) and not isinstance(resolution, bool)
    if not whole or not 2 <= resolution <= MOST_BINS or resolution & (resolution - 1):
        raise InputError(
            "must be a power of two between 2 and {most:,}, such as 4096",
            argument="resolution",
            got=resolution,
            most=MOST_BINS,
        )
    return int(resolution)
