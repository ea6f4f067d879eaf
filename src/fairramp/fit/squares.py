"""The best square with a point of every group at or below its envelope, for equalized odds with a gap.

A square from (p, q) to (p + ε, q + ε) is worth the sum of what each group gains at its best point in it. This
depends on the left, right, lower and upper edge, and only grows as the square does. So a rectangle that contains
all squares of a box, which are those from (p, q) to (p + d, q + e), bounds what any of them is worth. Boxes whose
bound is not above the best square found so far are dropped, the others are divided.
"""

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from fairramp.core.curve import Floats, Integers
from fairramp.fit.roc import Envelope

#: A box is divided into this many, this many times; as many of the best bounds and values are kept.
_ACROSS, _ROUNDS, _KEPT = 4, 40, 64
#: What may be lost, as a share of all gains.
_NEAR = 1e-9


class _Gain:
    """What one group gains in a square.

    Below the upper edge, its true positive rate is on the envelope, and its gain is one function of its false
    positive rate: straight between corners. From where the envelope leaves the square, the gain only falls.
    """

    def __init__(self, envelope: Envelope, gain: float, loss: float) -> None:
        self._envelope, self._gain, self._loss = envelope, gain, loss
        self._corners = _RunningHighest(gain * envelope.right - loss * envelope.x)

    def best(self, left: Floats, right: Floats, bottom: Floats, top: Floats) -> tuple[Floats, Floats]:
        """The largest gain and its false positive rate; −∞ where the group has no point in the square."""
        e = self._envelope
        end = e.first(top)
        start, stop = np.maximum(left, e.first(bottom)), np.minimum(right, top)
        last = np.maximum(np.minimum(stop, end), start)
        i, j = np.searchsorted(e.x, start), np.searchsorted(e.x, np.minimum(last, end), side="right")
        # At its end, the envelope may jump out of the square.
        j -= (j > 0) & (e.right[j - 1] > top)
        inside, which = self._corners.between(i, j)
        found, x = inside, e.x[which]
        for places in (start, last):
            value = self._gain * np.minimum(e.at(places), top) - self._loss * places
            found, x = np.where(value > found, value, found), np.where(value > found, places, x)
        return np.where(start <= stop, found, -np.inf), x


class _RunningHighest:
    """The largest of values[start:stop] and its index, for many ranges; −∞ for empty ones."""

    def __init__(self, values: Floats) -> None:
        tables = [np.arange(len(values))]
        while (half := 2 ** (len(tables) - 1)) * 2 <= len(values):
            a, b = tables[-1][:-half], tables[-1][half:]
            tables.append(np.where(values[a] >= values[b], a, b))
        self._values = values
        self._starts = np.cumsum([0, *map(len, tables)])
        self._flat = np.concatenate(tables)

    def between(self, start: Integers, stop: Integers) -> tuple[Floats, Integers]:
        """The largest value of each range, and its index."""
        size = stop - start
        level = np.frexp(np.maximum(size, 1))[1] - 1
        first = self._starts[level] + np.where(size > 0, start, 0)
        a, b = self._flat[first], self._flat[first + np.maximum(size - (1 << level), 0)]
        which = np.where(self._values[a] >= self._values[b], a, b)
        return np.where(size > 0, self._values[which], -np.inf), which


def best_square(
    envelopes: Sequence[Envelope], gains: Floats, losses: Floats, side: float
) -> tuple[Floats, Floats]:
    """The false positive rate of each group, and the highest true positive rate of all, in the best square."""
    groups = [_Gain(*group) for group in zip(envelopes, gains.tolist(), losses.tolist(), strict=True)]

    def worth(corners: Floats, more: Floats | float = 0.0) -> Floats:
        """What squares at (left, lower) corners are worth, or those with longer edges."""
        left, bottom = corners
        right, top = corners + side + more
        return np.asarray(np.sum([group.best(left, right, bottom, top)[0] for group in groups], axis=0))

    near = _NEAR * float(gains.sum() + losses.sum())
    best, found = np.zeros(2), -np.inf
    corners, sizes = np.zeros((2, 1)), np.full((2, 1), 1.0 - side)
    for _ in range(_ROUNDS):
        corners, sizes = _divided(corners, sizes, worth)
        bound = worth(corners, sizes)
        keep = bound > found + near
        if not keep.any():
            break
        corners, sizes, bound = corners[:, keep], sizes[:, keep], bound[keep]
        # The lower right corner of a box is the one at which most groups have a point.
        tried = np.concatenate([corners, corners + sizes * [[1], [0]]], axis=1)
        values = worth(tried)
        i = int(np.argmax(values))
        if values[i] > found:
            best, found = tried[:, i], float(values[i])
        if len(bound) > 2 * _KEPT:
            ranked = bound, values.reshape(2, -1).max(axis=0)
            which = np.union1d(*(np.argsort(-part, kind="stable")[:_KEPT] for part in ranked))
            corners, sizes = corners[:, which], sizes[:, which]
    # The search comes close to a corner, but only by chance to the corner itself.
    places = [e.x for e in envelopes], [part for e in envelopes for part in (e.left, e.right)]
    snapped = [_nearest(np.concatenate(part), side, at) for part, at in zip(places, best.tolist(), strict=True)]
    tried = np.array(list(itertools.product(*zip(snapped, best.tolist(), strict=True)))).T
    best = tried[:, int(np.argmax(worth(tried)))]
    edges = [np.array([edge]) for edge in (best[0], best[0] + side, best[1], best[1] + side)]
    x = np.concatenate([group.best(*edges)[1] for group in groups])
    return x, np.full(len(x), best[1] + side)


def _nearest(places: Floats, side: float, at: float) -> float:
    """The edge of a square with its other edge, or itself, at the place nearest by."""
    edges = np.concatenate([places, places - side, [0.0, 1.0 - side]])
    edges = edges[(edges >= 0) & (edges <= 1 - side)]
    return float(edges[np.argmin(np.abs(edges - at))])


def _divided(corners: Floats, sizes: Floats, worth: Callable[..., Floats]) -> tuple[Floats, Floats]:
    """Boxes divided along the edge whose length matters more for their bounds, or along the longer one."""
    flat, narrow = (worth(corners, sizes * one) for one in ([[1], [0]], [[0], [1]]))
    told = (flat != narrow) & np.isfinite(flat) & np.isfinite(narrow)
    upright = np.where(told, narrow > flat, sizes[1] > sizes[0])
    parts = np.stack([~upright, upright])
    smaller = np.where(parts, sizes / _ACROSS, sizes)
    places = np.repeat(np.arange(sizes.shape[1]), _ACROSS)
    steps = np.tile(np.arange(_ACROSS), sizes.shape[1])
    return corners[:, places] + np.where(parts[:, places], steps * smaller[:, places], 0.0), smaller[:, places]
