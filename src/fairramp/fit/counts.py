"""How many places each group gets: the best total score among all integers that meet a band, exactly.

Group k has n_k people and gets m_k places, its best scores first; Σ m_k is given. A band bounds the rates
r_k = m_k / n_k by

    slope · max r − min r ≤ slack          slope 1, slack `max_gap`; or slope `min_ratio`, slack 0.

*Level.* If b is the highest rate, m_k is at most ⌊b n_k⌋ and at least ⌈(slope · b − slack) n_k⌉. So it is enough
to solve one problem with bounds for each of the levels b = j / n_k.

*One level.* Totals are concave in m_k, so taking people in the order of their scores, within the bounds, is
optimal. Each group gets the number of its people among the first r of all, moved into its bounds, for the
smallest r that fills the places. A bisection finds r, for many levels at once. Both bounds rise with b, so r
never rises, and the r of two levels bracket the r of those between them.

*All levels.* The bounds of levels between b and c lie between the lower bounds of b and the upper bounds of c.
The best total within these is a limit for all of them, and ranges whose limit is not above a known total are
dropped. The others are split, until only single levels remain. Ranges end at levels of the largest group; between
two neighbors of those there is at most one level of each other group.

*No integers fit.* Let A be the largest a with Σ ⌈a n_k⌉ ≤ Σ m_k, and B the smallest b with Σ ⌊b n_k⌋ ≥ Σ m_k.
Integers with rates in [a, b] exist if a ≤ A, b ≥ B and a ≤ ⌊b n_k⌋ / n_k for all k. So the smallest slack that
some integers meet is the minimum of slope · b − min(A, min ⌊b n_k⌋ / n_k) over b ≥ B. It is found by steps from B
to the next level of the group with the lowest rate.

Scores are rounded to integers (in units of 2^-45 for 100,000 people), so totals are exact and do not depend on
the order of the rows. Rates and slacks within 1e-9 count as equal.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairramp.core.curve import Array, Booleans, Floats, Integers

#: Slacks this close count as equal.
TOLERANCE = 1e-9
#: Number of ranges at the start, and of parts that a range is split into.
_RANGES, _PARTS = 32, 8
#: Largest number of (level, group) pairs that are solved at once.
_MOST = 1 << 20
#: Total of a level that no integers meet.
_NONE = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Band:
    """A limit on rates: slope · highest − lowest ≤ slack."""

    slope: float
    slack: float

    def needed(self, rates: Floats) -> Floats:
        """The slack that rates need; groups are in the last axis."""
        found: Floats = self.slope * rates.max(axis=-1) - rates.min(axis=-1)
        return found


@dataclass(frozen=True)
class Ranking:
    """People by group, the best first, and by score.

    Attributes
    ----------
    rows : integers of shape (n,)
        Rows, group by group; within a group, the best first.
    sizes : integers of shape (K,)
        Number of people in each group; none is 0.
    ranks : integers of shape (n,)
        Rank of each of `rows` among all people. Of equal scores, the one whose group has the lower rate so far
        comes first.
    totals : integers of shape (n + 1,)
        Sums of the scores of `rows`, in units of a power of two.
    """

    rows: Integers
    sizes: Integers
    ranks: Integers
    totals: Integers

    @classmethod
    def of(cls, scores: Array, positions: Floats, codes: Integers, sizes: Integers) -> "Ranking":
        """Rank people by score, the lowest first; `positions` are what is summed, and fall with the scores."""
        n, starts = len(scores), np.cumsum(sizes) - sizes
        order = np.argsort(scores)
        small = codes.astype(np.min_scalar_type(len(sizes)), copy=False)  # NumPy sorts small integers fast
        ranks = np.argsort(small[order], kind="stable")
        falling = positions[order]
        if (falling[1:] > falling[:-1]).any():  # rounding can put a probability above that of a better logit
            falling = np.minimum.accumulate(falling)
        units = np.rint(falling * 2.0 ** (62 - n.bit_length())).astype(np.int64)
        totals = np.concatenate([[0], np.cumsum(units[ranks])])
        rows, ordered = order[ranks], scores[order]
        same = ordered[1:] == ordered[:-1]
        return cls(rows, sizes, _evenly(ranks, same, starts, sizes) if same.any() else ranks, totals)

    @property
    def starts(self) -> Integers:
        """Index of the first person of each group."""
        starts: Integers = np.cumsum(self.sizes) - self.sizes
        return starts

    @cached_property
    def _keys(self) -> Integers:
        """Ranks, with those of each group above those of the group before."""
        return self.ranks + np.repeat(self._bases, self.sizes)

    @cached_property
    def _bases(self) -> Integers:
        return np.arange(len(self.sizes)) * (len(self.rows) + 1)

    def among(self, first: Integers) -> Integers:
        """How many people of each group are among the first of all; shape (…, K)."""
        found: Integers = np.searchsorted(self._keys, np.asarray(first)[..., None] + self._bases) - self.starts
        return found

    def total(self, counts: Integers) -> Integers:
        """Total score of counts; groups are in the last axis."""
        starts = self.starts
        total: Integers = (self.totals[starts + counts] - self.totals[starts]).sum(axis=-1)
        return total


def _evenly(ranks: Integers, same: Booleans, starts: Integers, sizes: Integers) -> Integers:
    """Ranks in which people with the same score alternate between groups as evenly as possible.

    Rates round here in large groups, which can change who comes first, but not the order within a group.
    """
    worse = np.concatenate([[0], np.cumsum(~same)])[ranks]
    rates = (np.arange(1, len(ranks) + 1) - np.repeat(starts, sizes)) / np.repeat(sizes, sizes)
    order = np.argsort(worse + rates / 2, kind="stable")  # fast: each group is already sorted
    even = np.empty_like(order)
    even[order] = np.arange(len(order))
    return even


def best_counts(ranking: Ranking, places: int, band: Band) -> Integers:
    """The number of places of each group, as the module docstring says.

    Parameters
    ----------
    ranking : Ranking
        The people.
    places : int
        Number of places, from 0 to the number of people.
    band : Band
        The limit. If no integers meet it, those that need the least slack compete.
    """
    free = ranking.among(np.array(places))
    if band.needed(free / ranking.sizes) <= band.slack + TOLERANCE:
        return free
    slack = max(band.slack, _least_slack(ranking.sizes, places, band))
    return _Search(ranking, places, Band(band.slope, slack)).best()


def _least_level(sizes: Integers, places: int) -> tuple[int, int]:
    """The smallest rate b, as a fraction, with at least `places` people in Σ ⌊b n_k⌋."""
    if places == 0:
        return 0, 1
    n, k = int(sizes.sum()), len(sizes)
    first = -(-places * sizes // n)  # b ≥ places / n
    last = np.minimum((places + k) * sizes // n + 1, sizes)
    many = np.maximum(last - first + 1, 0)
    group = np.repeat(np.arange(k), many)
    tops = first[group] + np.arange(len(group)) - np.repeat(np.cumsum(many) - many, many)
    at = np.argsort(tops / sizes[group], kind="stable")[places - int((first - 1).sum()) - 1]
    return int(tops[at]), int(sizes[group[at]])


def _least_slack(sizes: Integers, places: int, band: Band) -> float:
    """The smallest slack that some integers meet; or that of some integers, if the band allows it."""
    (top, bottom), most, least = _least_level(sizes, places), _most_rate(sizes, places), np.inf
    while True:
        floors = top * sizes // bottom
        rates, level = floors / sizes, band.slope * top / bottom
        lowest = rates.min()
        least = min(least, level - min(most, lowest))
        if least <= band.slack or lowest >= most or level - most >= least:
            return float(least)
        # Only a higher rate of the groups with the lowest rate can help.
        behind = np.flatnonzero(rates == lowest)
        group = behind[np.argmax((floors[behind] + 1) / sizes[behind])]
        top, bottom = int(floors[group]) + 1, int(sizes[group])


def _most_rate(sizes: Integers, places: int) -> float:
    """The largest rate a with at most `places` people in Σ ⌈a n_k⌉."""
    top, bottom = _least_level(sizes, int(sizes.sum()) - places)
    return (bottom - top) / bottom


@dataclass(frozen=True)
class _Ranges:
    """Ranges of levels j / n of the largest group, and of the r of their levels.

    Attributes
    ----------
    left, right : integers
        The first and the last j.
    lower, upper : integers
        The r of the last level, and that of the first.
    """

    left: Integers
    right: Integers
    lower: Integers
    upper: Integers

    def where(self, kept: Booleans) -> "_Ranges":
        """Some of the ranges."""
        return _Ranges(self.left[kept], self.right[kept], self.lower[kept], self.upper[kept])


class _Search:
    """The search over the levels of a band that some integers meet."""

    def __init__(self, ranking: Ranking, places: int, band: Band) -> None:
        self._ranking, self._sizes, self._places, self._band = ranking, ranking.sizes, places, band
        self._most = int(ranking.sizes.max())
        self._best, self._needed, self._counts = _NONE, np.inf, ranking.sizes

    def best(self) -> Integers:
        """Counts with the best total; of equal totals among solved levels, those that need the least slack."""
        top, bottom = _least_level(self._sizes, self._places)
        rate = (_most_rate(self._sizes, self._places) + self._band.slack + 2 * TOLERANCE) / self._band.slope
        first, last = top * self._most // bottom, min(int(min(rate, 1.0) * self._most) + 2, self._most)
        edges = np.unique(np.linspace(first, last, _RANGES + 1).astype(np.int64))
        r = self._solve(edges, np.zeros_like(edges), np.full_like(edges, len(self._ranking.rows)))
        ranges = _Ranges(edges[:-1], edges[1:], r[1:], r[:-1])
        while len(ranges.left):
            _, limits, _ = self._filled(ranges.left, ranges.right, self._most, ranges.lower, ranges.upper)
            kept = limits > self._best
            ranges, limits = ranges.where(kept), limits[kept]
            single = ranges.right - ranges.left == 1
            self._between(ranges.where(single), limits[single])
            ranges = self._split(ranges.where(~single))
        return self._counts

    def _split(self, ranges: _Ranges) -> _Ranges:
        """Split ranges into parts, after solving the levels where these meet."""
        width = (ranges.right - ranges.left)[:, None]
        cuts = ranges.left[:, None] + width * np.arange(_PARTS + 1) // _PARTS
        lower, upper = (np.repeat(r, _PARTS - 1) for r in (ranges.lower, ranges.upper))
        r = self._solve(cuts[:, 1:-1].ravel(), lower, upper).reshape(-1, _PARTS - 1)
        r = np.column_stack([ranges.upper, r, ranges.lower])
        parts = _Ranges(cuts[:, :-1], cuts[:, 1:], r[:, 1:], r[:, :-1])
        return parts.where(parts.left < parts.right)

    def _between(self, ranges: _Ranges, limits: Integers) -> None:
        """Solve the levels of the other groups in ranges without further levels of the largest group."""
        order, step, sizes = np.argsort(-limits, kind="stable"), 16, np.unique(self._sizes)
        while len(order) and limits[order[0]] > self._best:
            now, order, step = order[:step], order[step:], 2 * step
            left = ranges.left[now, None]
            tops = left * sizes // self._most + 1
            inside = tops * self._most < (left + 1) * sizes
            at, which = np.nonzero(inside)
            self._solve(tops[inside], ranges.lower[now][at], ranges.upper[now][at], sizes[which])

    def _solve(
        self, tops: Integers, lower: Integers, upper: Integers, bottoms: Integers | None = None
    ) -> Integers:
        """Solve levels, of the largest group by default, remember the best and return the r of each."""
        found, step = [upper[:0]], max(_MOST // len(self._sizes), 1)
        bottoms = np.full_like(tops, self._most) if bottoms is None else bottoms
        for i in range(0, len(tops), step):
            part = slice(i, i + step)
            r, totals, counts = self._filled(tops[part], tops[part], bottoms[part], lower[part], upper[part])
            found.append(r)
            best = int(totals.max())
            if best == _NONE or best < self._best:
                continue
            counts = counts[totals == best]
            needed = self._band.needed(counts / self._sizes)
            at = int(needed.argmin())
            if best > self._best or needed[at] < self._needed:
                self._best, self._needed, self._counts = best, float(needed[at]), counts[at]
        return np.concatenate(found)

    def _filled(
        self, left: Integers, right: Integers, bottom: Integers | int, lower: Integers, upper: Integers
    ) -> tuple[Integers, Integers, Integers]:
        """Fill all places within the lower bounds of `left` and the upper bounds of `right`.

        Returns r, the total (or _NONE) and the counts for each pair of levels.
        """
        bottom = np.broadcast_to(bottom, left.shape)
        least = self._band.slope * (left / bottom) - (self._band.slack + TOLERANCE)
        low = np.maximum(np.ceil(least[:, None] * self._sizes), 0).astype(np.int64)
        high = right[:, None] * self._sizes // bottom[:, None]
        open_ = np.flatnonzero(lower < upper)
        lower, upper = lower.copy(), upper.copy()
        while len(open_):
            middle = (lower[open_] + upper[open_]) // 2
            counts = np.minimum(np.maximum(self._ranking.among(middle), low[open_]), high[open_])
            enough = counts.sum(axis=1) >= self._places
            upper[open_[enough]], lower[open_[~enough]] = middle[enough], middle[~enough] + 1
            open_ = open_[lower[open_] < upper[open_]]
        counts = np.minimum(np.maximum(self._ranking.among(upper), low), high)
        fits = (counts.sum(axis=1) == self._places) & (low <= high).all(axis=1)
        return upper, np.where(fits, self._ranking.total(counts), _NONE), counts
