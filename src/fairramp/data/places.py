"""Where the points of scores with labels are: one for each distinct score, or one for each of many equal bins.

See `labeled` for their contents.
"""

from dataclasses import dataclass

import numpy as np

from fairramp.core.curve import Booleans, Floats, Integers
from fairramp.core.points import Points
from fairramp.core.scales import Scale

#: Number of bins, and of distinct scores up to which each is a point of its own.
MOST_PLACES = 1 << 12
#: Maximum number of bins of all groups together, and minimum number of bins per group, which takes precedence.
MOST_CELLS, FEWEST_PLACES = 1 << 22, 1 << 8
#: A sample of this many rows usually shows that there are more distinct scores.
FIRST_LOOK = 2 * MOST_PLACES


def most_places(n_groups: int) -> int:
    """Number of bins per group, and of distinct scores that are points of their own."""
    fitting = 1 << max(MOST_CELLS // n_groups, 1).bit_length() - 1
    return max(min(MOST_PLACES, fitting), FEWEST_PLACES)


#: A bin with more than this part of its group's rows is opened.
_PARTS = 64


@dataclass(frozen=True)
class BinEdges:
    """Equal bins of a scale's range, and a last one for the highest score.

    Attributes
    ----------
    scale : Scale
        Scale of the scores.
    n_bins : int
        Number of equal bins, a power of two.
    """

    scale: Scale
    n_bins: int

    @property
    def per_unit(self) -> float:
        """Bins per unit of the positions; a power of two, so products are exact."""
        return self.n_bins / (self.scale.highest - self.scale.lowest)

    def of(self, positions: Floats) -> Integers:
        """The bin of each position."""
        scaled = positions * self.per_unit
        if self.scale.lowest < 0:
            np.floor(scaled, out=scaled)
            scaled -= self.scale.lowest * self.per_unit
        return scaled.astype(np.int32)  # equals the floor for numbers of at least 0

    def ends(self, bins: Integers) -> tuple[Floats, Floats]:
        """Start and end of bins."""
        lower = self.scale.lowest + bins / self.per_unit
        return lower, np.where(bins < self.n_bins, lower + 1 / self.per_unit, lower)


def too_crowded(points: Points) -> Booleans:
    """Which bins hold so large a part of their group's rows that they must be opened."""
    most = np.maximum(np.bincount(points.group, points.rows) // _PARTS, _PARTS)
    return ~points.exact & (points.rows > most[points.group])
