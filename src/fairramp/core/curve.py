"""Scores of each group as weighted points: selection rate ⇄ ramp.

A ramp of width γ with its *foot* at s selects a score x with probability

    h(x) = clip((x − s)/γ, 0, 1)            (γ = 0: 1 above s, 0 below, free at s)

A group with points x_j of weight w_j therefore has the selection rate

    G(s) = Σ w_j h(x_j) / Σ w_j,

which is continuous, non-increasing and piecewise linear in s, with two breakpoints per point: at s = x_j − γ
its probability falls below 1, at s = x_j it reaches 0. `ScoreDistribution` evaluates G; `RateCurve` inverts it
without iteration: two binary searches find the linear piece, prefix sums solve it.

All groups are handled at once. Their points are stored group by group in flat arrays. Each group ends with a
sentinel at +∞ of weight 0, which makes one past the last point a valid index. A binary search within every group
is a single `numpy.searchsorted` over complex keys, which NumPy orders lexicographically: the real part is the
group, the imaginary part the value.
"""

import numpy as np

from fairramp.core.ramps import Array, Booleans, Floats, Integers, chances

__all__ = [
    "RATE_TOLERANCE",
    "Array",
    "Booleans",
    "Floats",
    "Integers",
    "RateCurve",
    "ScoreDistribution",
    "sort_keys",
]

#: Selection rates this close count as equal: a flat piece of G this near the target rate is at the target.
RATE_TOLERANCE = 1e-12
#: Rates this close to a breakpoint differ from it by rounding only.
SNAPPED = 1e-10


class ScoreDistribution:
    """The scores of K groups as weighted points, ascending within each group.

    Parameters
    ----------
    sizes : integers of shape (K,)
        Number of points of each group, at least 1.
    scores, weights : floats of shape (sum of sizes,)
        The points, group by group; weights are positive.
    """

    def __init__(self, sizes: Integers, scores: Floats, weights: Floats) -> None:
        self.first = np.cumsum(sizes + 1) - (sizes + 1)  # index of each group's first point
        self.last = self.first + sizes  # index of each group's sentinel
        self.group = np.repeat(np.arange(len(sizes)), sizes + 1)
        self.is_point = np.ones(len(self.group), dtype=bool)
        self.is_point[self.last] = False
        self.scores, self.weights = np.full(len(self.group), np.inf), np.zeros(len(self.group))
        self.scores[self.is_point] = scores
        # Dividing by a power of two is exact: each group's total is between ½ and 1, integer weights still add up
        # without rounding, and rounding in one group does not affect the next.
        _, exponent = np.frexp(np.add.reduceat(weights, self.first - np.arange(len(sizes))))
        self.weights[self.is_point] = np.ldexp(weights, -np.repeat(exponent, sizes))
        self.totals = np.add.reduceat(self.weights, self.first)

    def rates(self, feet: Floats, width: float) -> Floats:
        """G of each group at its own foot, summed point by point; requires a positive width."""
        return self._mean(chances(self.scores, np.repeat(feet, self.last - self.first + 1), width, 0.0))

    def rates_above(self, thresholds: Floats) -> Floats:
        """Share of each group's weight strictly above its own threshold."""
        return self._mean(self.scores > thresholds[self.group])

    def rates_from(self, thresholds: Floats) -> Floats:
        """Share of each group's weight at or above its own threshold."""
        return self._mean(self.scores >= thresholds[self.group])

    def _mean(self, chance: Floats | Booleans) -> Floats:
        # A rate of 1 may round up to the next float.
        return np.minimum(np.add.reduceat(self.weights * chance, self.first) / self.totals, 1.0)

    def prefix_sums(self, values: Floats) -> Floats:
        """Sum of the values before each index, restarting at 0 in each group."""
        shifted = np.concatenate([[0.0], values[:-1]])
        # Subtracting each group's sum at its border keeps the running sum small, and with it the rounding.
        shifted[self.first[1:]] -= np.add.reduceat(values, self.first)[:-1]
        running = np.cumsum(shifted)
        running -= running[self.first][self.group]
        return running


def sort_keys(groups: Integers, values: Floats) -> Array:
    """Keys that NumPy orders by group and, within a group, by value."""
    keys = np.empty(np.broadcast(groups, values).shape, dtype=np.complex128)
    keys.real = groups
    keys.imag = values
    return keys


class RateCurve:
    """G of every group for one ramp width, prepared for inversion.

    `falling` and `fallen` hold G at the two breakpoints of each point: where its probability falls below 1
    (s = x − γ) and where it reaches 0 (s = x). Both decrease from point to point.
    """

    def __init__(self, distribution: ScoreDistribution, width: float) -> None:
        self.distribution = d = distribution
        self.width = width
        self._below = d.prefix_sums(d.weights)
        self._moment = d.prefix_sums(d.weights * np.where(d.is_point, d.scores, 0.0))
        self._total = self._below[d.last]  # taken from the prefix sums, which makes the ends exact

        j = np.flatnonzero(d.is_point)
        x, below, group = d.scores[j], self._below, d.group[j]
        falling = self._total[group] - below[j]
        fallen = self._total[group] - below[j + 1]
        if width > 0:
            points = sort_keys(d.group, d.scores)
            i = np.searchsorted(points, sort_keys(group, x - width), side="right")
            falling += self._ramp_weight(i, j, x - width)
            i = np.searchsorted(points, sort_keys(group, x + width), side="left")
            fallen += self._ramp_weight(j + 1, i, x) - (below[i] - below[j + 1])
        # One sorted list of both kinds of breakpoint; the group index is raised by K for the second kind.
        levels = np.full((2, len(d.group)), np.inf)
        levels[0, j], levels[1, j] = -fallen / self._total[group], -falling / self._total[group]
        keys = sort_keys(np.stack([d.group, d.group + len(d.first)]), levels)
        # A narrow ramp magnifies rounding, which must not change the order of nearly tied scores. The first to
        # fall and the last to have fallen are exact; the errors go to the others.
        keys[0] = np.minimum.accumulate(keys[0, ::-1])[::-1]
        keys[1] = np.maximum.accumulate(keys[1])
        self.fallen, self.falling = -keys.imag[0, j], -keys.imag[1, j]
        self._level_keys = keys.ravel()

    def _ramp_weight(self, start: Integers, stop: Integers, feet: Floats) -> Floats:
        """Weight selected among the points start … stop − 1, all of which are on the ramp."""
        weight, moment = (sums[stop] - sums[start] for sums in (self._below, self._moment))
        return (moment - feet * weight) / self.width

    def breakpoints(self) -> Floats:
        """Every rate at which the slope of some group's inverse changes."""
        return np.concatenate([self.falling, self.fallen])

    def feet(self, rates: Floats) -> tuple[Floats, Floats]:
        """Lowest and highest foot at which each group has its target rate.

        Parameters
        ----------
        rates : floats of shape (..., K)
            Target rates in [0, 1].

        Returns
        -------
        lowest, highest : floats of the same shape
            Equal on a sloping piece of G; the two ends of a flat piece, which is unbounded at rates 0 and 1.
        """
        d, x, width = self.distribution, self.distribution.scores, self.width
        # Breakpoints at the target rate are [a, b) of either kind: *out* where points have reached 0, *in* where
        # they start to fall.
        kinds = np.arange(2 * len(d.first)).reshape(2, *[1] * (rates.ndim - 1), len(d.first))
        queries = sort_keys(kinds, -RATE_TOLERANCE - rates)
        starts = np.searchsorted(self._level_keys, queries)
        stops, queries.imag = starts.copy(), RATE_TOLERANCE - rates
        some = self._level_keys.imag[starts] < queries.imag  # the sentinel at +∞ keeps this within the group
        stops[some] = np.searchsorted(self._level_keys, queries[some])
        a_out, b_out, a_in, b_in = starts[0], stops[0], starts[1] - len(x), stops[1] - len(x)
        at_out, at_in = a_out < b_out, a_in < b_in
        lowest = np.where(
            rates >= 1 - RATE_TOLERANCE,
            -np.inf,
            np.minimum(np.where(at_out, x[a_out], np.inf), np.where(at_in, x[a_in] - width, np.inf)),
        )
        highest = np.where(
            rates <= RATE_TOLERANCE,
            np.inf,
            np.maximum(np.where(at_out, x[b_out - 1], -np.inf), np.where(at_in, x[b_in - 1] - width, -np.inf)),
        )

        # Otherwise the target rate lies inside the linear piece where points before a_out are out, points at
        # a_in and beyond are certain, and those in between are on the ramp.
        sloping = ~(at_out | at_in)
        if sloping.any():
            left = np.maximum(
                np.where(a_out > d.first, x[a_out - 1], -np.inf),
                np.where(a_in > d.first, x[a_in - 1] - width, -np.inf),
            )
            right = np.minimum(x[a_out], x[a_in] - width)
            on_ramp = self._below[a_in] - self._below[a_out]
            wanted = rates * self._total - (self._total - self._below[a_in])
            moment = self._moment[a_in] - self._moment[a_out]
            with np.errstate(divide="ignore", invalid="ignore"):
                foot = (moment - width * wanted) / on_ramp
            foot = np.clip(np.where(on_ramp > 0, foot, left), left, right)
            lowest = np.where(sloping, foot, lowest)
            highest = np.where(sloping, foot, highest)
        return lowest, highest

    def snapped(self, rates: Floats) -> Floats:
        """Rates that are at a breakpoint of their group up to rounding, moved to it."""
        kinds = np.arange(2 * len(self.distribution.first)).reshape(2, *[1] * (rates.ndim - 1), -1)
        after = np.searchsorted(self._level_keys, sort_keys(kinds, -rates))
        found = rates
        for index in (after, np.maximum(after - 1, 0)):
            key = self._level_keys[index]
            for level, group, kind in zip(-key.imag, key.real, kinds, strict=True):
                found = np.where((group == kind) & (np.abs(level - rates) <= SNAPPED), level, found)
        return np.clip(found, 0.0, 1.0)

    def polish(self, feet: Floats, rates: Floats) -> Floats:
        """Correct the last few digits of the feet until the point-by-point rates match.

        Prefix sums have an error of about 1e-14, which a ramp of width γ turns into 1e-14/γ of rate. A Newton
        step on G itself, kept inside the bracket found so far, removes it.
        """
        if self.width == 0:
            return feet
        d, width = self.distribution, self.width
        best, best_error = feet, np.full(len(feet), np.inf)
        low, high = np.full(len(feet), -np.inf), np.full(len(feet), np.inf)
        for _ in range(100):
            error = d.rates(feet, width) - rates
            better = np.abs(error) < best_error
            best, best_error = np.where(better, feet, best), np.where(better, np.abs(error), best_error)
            if (best_error <= RATE_TOLERANCE / 10).all():
                break
            low = np.where(error >= 0, np.maximum(low, feet), low)
            high = np.where(error <= 0, np.minimum(high, feet), high)
            slope = (d.rates_above(feet) - d.rates_from(feet + width)) / width
            moved = feet + error / np.where(slope > 0, slope, 1 / width)
            bracketed = np.isfinite(low) & np.isfinite(high)
            middle = np.where(bracketed, low, 0) / 2 + np.where(bracketed, high, 0) / 2
            moved = np.where(bracketed & ((moved <= low) | (moved >= high)), middle, moved)
            done = (best_error <= RATE_TOLERANCE / 10) | (moved == feet) | (moved == low) | (moved == high)
            if done.all():
                break
            feet = np.where(done, best, moved)
        return best
