"""One group's ramps as points (false positive rate, true positive rate).

A ramp with foot s and width w selects a score z with probability clip(q z + r, 0, 1), where q = 1/w and r =
−s/w. While no score passes an end of the ramp, both rates are linear in (q, r). The lines on which a score is at
an end, q z + r = 0 or q z + r = 1, divide the plane of all ramps into polygons. At a given false positive rate,
the true positive rate is therefore highest on an edge of a polygon:

    the narrowest allowed width, at any foot
    a foot at a score, of any width
    a top at a score, of any width

Each of these is a path that leads up and to the right through straight segments. Their upper envelope

    reach(x) = the highest true positive rate of a ramp whose false positive rate is x

rises from x = 0 to reach(1) = 1 and is at least x, which a constant probability achieves. On a concave curve the
narrowest ramp reaches most; elsewhere, a wider one passes over the dent.

Widening a ramp while its false positive rate stays at x takes its true positive rate down to x, continuously. So
exactly the points between the diagonal and the reach are attained, apart from points below the diagonal, which
nobody wants.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairramp.core.checks import MIN_RAMP_WIDTH
from fairramp.core.curve import RATE_TOLERANCE, Floats, Integers

#: With more scores than this, paths start at some of them only: at the corners of the concave hull.
_ALL_SCORES = 48
#: Corners of the hull, and vertices of a path, that are considered then.
_CORNERS, _VERTICES = 12, 512
#: Number of widths that are considered then.
_MORE = 8
#: Vertices of all paths up to which all corners of an envelope are found.
_MOST = 6_000
#: False positive rates at which an envelope is then evaluated: even, and closer to each other near the ends.
_PLACES = np.linspace(-1.0, 1.0, 2049)
_PLACES = (1 + _PLACES * (3 - _PLACES**2) / 2) / 2


class Rates:
    """The rate of one kind of rows under any ramp.

    Parameters
    ----------
    scores, weights : floats of shape (n,)
        Ascending, at least one.
    """

    def __init__(self, scores: Floats, weights: Floats) -> None:
        self.scores = scores
        shares = weights / weights.max()
        shares = shares / shares.sum()
        # The rate above each score: summed from the top, so that high thresholds are exact.
        self._above = np.append(np.cumsum(shares[::-1])[::-1], 0.0)
        self._above /= self._above[0]
        self._moment = np.append(np.cumsum((shares * scores)[::-1])[::-1], 0.0)

    def at(self, feet: Floats, widths: Floats) -> Floats:
        """The rates of ramps of positive width."""
        i, j = self.pieces(feet, widths)
        return self._linear(i, j, feet, widths)

    def pieces(self, feet: Floats, widths: Floats) -> tuple[Integers, Integers]:
        """Index of the first score above each foot, and of the first one at or above each top."""
        i = np.searchsorted(self.scores, feet, side="right")
        return i, np.maximum(np.searchsorted(self.scores, feet + widths), i)

    def _linear(self, i: Integers, j: Integers, feet: Floats, widths: Floats) -> Floats:
        weight, moment = self._above[i] - self._above[j], self._moment[i] - self._moment[j]
        rates = self._above[j] + (moment - feet * weight) / widths
        return np.asarray(np.minimum(np.maximum(rates, 0.0), 1.0))

    def coefficients(self, foot: float, width: float) -> tuple[float, float, float]:
        """A, B and C of the rate A + B q + C r at a ramp and at those near it."""
        (i,), (j,) = self.pieces(np.array([foot]), np.array([width]))
        above, moment = self._above, self._moment
        return float(above[j]), float(moment[i] - moment[j]), float(above[i] - above[j])

    def step(self, thresholds: Floats) -> tuple[Floats, Floats]:
        """The share above each threshold, and the share equal to it."""
        above = self._above[np.searchsorted(self.scores, thresholds, side="right")]
        return above, self._above[np.searchsorted(self.scores, thresholds)] - above

    def lowest_feet(self, rate: float, widths: Floats) -> Floats:
        """The lowest foot at which ramps of positive width have a rate."""
        z, n = self.scores, len(self.scores)
        enough = rate + RATE_TOLERANCE
        # The first score at which a foot, or a top, gives at most the rate; rates fall as feet rise.
        shift = np.stack([np.zeros(len(widths)), widths])
        low, high = np.zeros(shift.shape, dtype=np.intp), np.full(shift.shape, n)
        for _ in range(n.bit_length()):
            middle = (low + high) // 2
            few = self.at(z[np.minimum(middle, n - 1)] - shift, widths) <= enough
            low, high = np.where(few | (low == high), low, middle + 1), np.where(few, middle, high)
        right = np.where(low < n, z[np.minimum(low, n - 1)] - shift, np.inf).min(axis=0)
        # Feet below all tops select everyone.
        left = np.where(low > 0, z[np.maximum(low, 1) - 1] - shift, z[0] - widths).max(axis=0)
        above, below = self.at(left, widths), self.at(right, widths)
        part = np.where(above > below, (above - rate) / np.where(above > below, above - below, 1.0), 1.0)
        feet = left + np.minimum(np.maximum(part, 0.0), 1.0) * (right - left)
        feet = np.where(np.abs(below - rate) <= RATE_TOLERANCE, right, feet)
        return np.asarray(np.where(above <= enough, left, feet))


@dataclass(frozen=True)
class Path:
    """Ramps along an edge, with their rates, from (0, 0) toward (1, 1).

    Attributes
    ----------
    x, y : floats
        Rates at its vertices, both non-decreasing.
    steepness : floats
        q = 1/width at the vertices; infinite for width 0.
    """

    x: Floats
    y: Floats
    steepness: Floats

    def values(self, at: Floats) -> Floats:
        """The highest y at each x; −∞ beyond the ends of the path."""
        return np.interp(at, self.x, self.y, left=-np.inf, right=-np.inf)

    def values_before(self, at: Floats) -> Floats:
        """The limit of y from the left at each x."""
        found = np.interp(-at, -self.x[::-1], self.y[::-1], left=-np.inf, right=-np.inf)
        return np.where(at > self.x[0], found, -np.inf)

    def width_at(self, x: float) -> float:
        """The width of its ramp with the highest y at x."""
        last = int(np.searchsorted(self.x, x, side="right")) - 1
        if last < 0 or self.x[last] == x or last + 1 >= len(self.x):
            q = self.steepness[max(last, 0)]
        else:
            part = (x - self.x[last]) / (self.x[last + 1] - self.x[last])
            a, b = self.steepness[last], self.steepness[last + 1]
            q = a if a == b else a + part * (b - a)
        return 1 / float(q) if q > 0 else np.inf


class Roc:
    """The ramps of one group.

    Parameters
    ----------
    negatives, positives : Rates
        The rows with label 0 and with label 1.
    narrowest : float
        The least width, 0 or positive.
    """

    def __init__(self, negatives: Rates, positives: Rates, narrowest: float) -> None:
        self.negatives, self.positives, self.narrowest = negatives, positives, narrowest
        #: The least positive width.
        self._least = max(narrowest, MIN_RAMP_WIDTH)
        self.scores = np.unique(np.concatenate([negatives.scores, positives.scores]))

    @cached_property
    def paths(self) -> list[Path]:
        """The edges on which true positive rates are highest; some of them, if there are many scores."""
        z, least = self.scores, self._least
        paths = [self._narrowest()]
        ends = np.array([0.0, 1.0])
        paths.append(Path(ends, ends, np.zeros(2)))  # constant probabilities
        corners = z
        if len(z) > _ALL_SCORES:
            corners = self._corners()
            # A somewhat wider ramp passes over the many small dents.
            for width in np.geomspace(max(2 * least, 1e-3 * np.ptp(z)), max(4 * least, 0.5 * np.ptp(z)), _MORE):
                feet = np.unique(np.concatenate([z, z - width]))[::-1]  # between these, rates are straight
                if len(feet) > _VERTICES:
                    feet = np.linspace(z[-1], z[0] - width, _VERTICES)
                paths.append(self._along(feet, np.full(len(feet), width)))
        few = z if len(z) <= _VERTICES else z[np.linspace(0, len(z) - 1, _VERTICES).astype(np.intp)]
        for score in corners.tolist():
            tops = np.append(few[few > score + least][::-1], score + least)
            paths.append(self._along(np.full(len(tops), score), tops - score, end=0))
            feet = np.append(score - least, few[few < score - least][::-1])
            paths.append(self._along(feet, score - feet, end=1))
        return paths

    def _narrowest(self) -> Path:
        """The ramps of the least width."""
        z, width = self.scores, self.narrowest
        if width == 0:
            x, y = (np.append(rates.step(z[::-1])[0], 1.0) for rates in (self.negatives, self.positives))
            return Path(x, y, np.full(len(x), np.inf))
        feet = np.unique(np.concatenate([z, z - width]))[::-1]
        return self._along(feet, np.full(len(feet), width))

    def _along(self, feet: Floats, widths: Floats, end: int | None = None) -> Path:
        """A path through ramps; `end` adds the limit of infinite width, with rates 0 or 1."""
        x, y = self.negatives.at(feet, widths), self.positives.at(feet, widths)
        q = 1 / widths
        if end == 0:
            x, y, q = (np.concatenate([[0.0], part]) for part in (x, y, q))
        elif end == 1:
            x, y, q = (np.append(part, last) for part, last in ((x, 1.0), (y, 1.0), (q, 0.0)))
        return Path(np.maximum.accumulate(x), np.maximum.accumulate(y), q)

    def _corners(self) -> Floats:
        """Some of the scores at the corners of the concave hull."""
        from scipy.optimize import isotonic_regression

        no, yes = (rates.step(self.scores)[1] for rates in (self.negatives, self.positives))
        # Where the share of label 1, made to rise with the score, changes.
        corners = isotonic_regression(yes / (no + yes), weights=no + yes).blocks[:-1]
        if len(corners) > _CORNERS:
            corners = corners[np.linspace(0, len(corners) - 1, _CORNERS).astype(np.intp)]
        return np.asarray(self.scores[corners])

    def envelope(self) -> "Envelope":
        """The reach."""
        return Envelope.of(self.paths)

    def reached(self, x: float) -> tuple[float, float]:
        """The highest true positive rate at a false positive rate, and the width of its ramp."""
        values = [float(path.values(np.array([x]))[0]) for path in self.paths]
        best = int(np.argmax(values))
        return values[best], self.paths[best].width_at(x)


@dataclass(frozen=True)
class Envelope:
    """The highest of several paths, as a function that rises in straight pieces and jumps.

    Attributes
    ----------
    x : floats of shape (n,)
        Ends of the pieces, from 0 to 1, ascending.
    left, right : floats of shape (n,)
        The limit from the left at each end; and the value, which is the limit from the right.
    """

    x: Floats
    left: Floats
    right: Floats

    @classmethod
    def of(cls, paths: Sequence[Path]) -> "Envelope":
        """The envelope of paths."""
        if sum(len(path.x) for path in paths) > _MOST:
            # Many scores: the envelope at given places, so that rounding of the corners does not matter.
            values = np.max([path.values(_PLACES) for path in paths], axis=0)
            return cls(_PLACES, values, values)
        x = np.unique(np.concatenate([path.x for path in paths]))
        left = np.array([path.values_before(x) for path in paths])
        right = np.array([path.values(x) for path in paths])
        start, stop = right[:, :-1], left[:, 1:]
        # Between two places all paths are straight, so the envelope is convex: cut where another path is highest.
        a, b, which = x[:-1], x[1:], np.arange(len(x) - 1)
        cuts: list[Floats] = []
        heights: list[Floats] = []
        for _ in range(30):
            from_, to = start[:, which], stop[:, which]
            run = x[which + 1] - x[which]
            there = np.isfinite(from_) & np.isfinite(to)
            base = np.where(there, from_, -np.inf)
            slope = np.where(there, to, 0.0) / run - np.where(there, from_, 0.0) / run
            at_a, at_b = base + slope * (a - x[which]), base + slope * (b - x[which])
            n = np.arange(len(which))
            top_a = np.argmax(np.where(at_a >= at_a.max(axis=0) - 1e-15, slope, -np.inf), axis=0)
            top_b = np.argmin(np.where(at_b >= at_b.max(axis=0) - 1e-15, slope, np.inf), axis=0)
            rise = slope[top_b, n] - slope[top_a, n]
            ahead = at_a[top_a, n] - at_a[top_b, n]
            cut = a + ahead / np.where(rise > 0, rise, 1.0)
            inside = (rise > 0) & (cut > a) & (cut < b)
            if not inside.any():
                break
            a, b, which, cut = a[inside], b[inside], which[inside], cut[inside]
            height = (base[:, inside] + slope[:, inside] * (cut - x[which])).max(axis=0)
            cuts.append(cut)
            heights.append(height)
            a, b, which = np.concatenate([a, cut]), np.concatenate([cut, b]), np.concatenate([which, which])
        x = np.concatenate([x, *cuts])
        order = np.argsort(x, kind="stable")
        low = np.concatenate([left.max(axis=0), *heights])[order]
        high = np.concatenate([right.max(axis=0), *heights])[order]
        return cls(x[order], low, high)

    @cached_property
    def _line(self) -> tuple[Floats, Floats]:
        """Its corners, with both ends of a jump."""
        y = np.stack([self.left, self.right], axis=1).ravel()
        y[0] = y[1]
        return np.repeat(self.x, 2), np.maximum.accumulate(y)

    def at(self, places: Floats) -> Floats:
        """The values at some places."""
        return np.interp(places, *self._line)

    def before(self, places: Floats) -> Floats:
        """The limits from the left at some places."""
        x, y = self._line
        return np.interp(-places, -x[::-1], y[::-1])

    def first(self, heights: Floats) -> Floats:
        """The lowest x at which the envelope is at least as high."""
        x, y = self._line
        return np.interp(-heights, -y[::-1], x[::-1])
