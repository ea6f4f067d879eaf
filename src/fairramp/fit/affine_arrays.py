"""Moments of arrays in memory, for the solver of soft and overlapping groups (`fit.affine`).

A pass goes over all rows in blocks. Once ramps hardly move, only the rows near a ramp are read again: the sums
over all other rows are linear in the shifts.
"""

from copy import copy
from dataclasses import dataclass

import numpy as np

from fairramp.core.blocks import map_blocks
from fairramp.core.curve import Floats
from fairramp.fit.moments import Sums

#: Coarser samples have one row in this many. A prime, so that it shares no factor with a period of the rows.
_STRIDE = 17
#: Samples below this number of rows per column are not made coarser.
_ROWS_PER_COLUMN = 2000
#: Larger matrix products are cut: BLAS would start threads of its own, which wait for those of `map_blocks`.
_PRODUCT = 1 << 18
#: If there are many rows, those within this many widths of a ramp suffice for the next steps.
_NEAR, _MANY = 1.0, 1 << 15
#: Rows copied at once.
_COPIED = 1 << 14


class ArrayMoments:
    """Moments of arrays in memory.

    Parameters
    ----------
    positions : floats of shape (n,)
        x.
    memberships : floats of shape (n, J)
        Z. Columns that are contiguous in memory are not copied.
    weights : floats of shape (n,), optional
        w; equal if None.
    cutoff, offset : float
        Where the classifier selects, and c.
    """

    def __init__(
        self, positions: Floats, memberships: Floats, weights: Floats | None, *, cutoff: float, offset: float
    ) -> None:
        self.positions = np.ascontiguousarray(positions, dtype=np.float64)
        self.weights = None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        self.cutoff, self.offset = cutoff, offset
        self.total = float(len(positions)) if self.weights is None else float(self.weights.sum())
        transposed = memberships.T
        if transposed.flags.c_contiguous and transposed.dtype == np.float64:
            self.columns: Floats = transposed
        else:
            self.columns = np.empty(transposed.shape)

        def work(start: int, stop: int) -> tuple[Floats, Floats]:
            columns = self.columns[:, start:stop]
            if self.columns is not transposed:
                for i in range(0, stop - start, _COPIED):  # the rows stay in cache for all columns
                    columns[:, i : i + _COPIED] = transposed[:, start + i : min(start + i + _COPIED, stop)]
            weighted = columns if self.weights is None else columns * self.weights[start:stop]
            return weighted.sum(axis=1), _products(weighted, columns)

        shares, grams = zip(*map_blocks(work, len(self.positions)), strict=True)
        self.shares: Floats = np.sum(shares, axis=0) / self.total
        #: Σ w Z_k Z_l.
        self.gram: Floats = np.sum(grams, axis=0) / self.total

    def coarser(self) -> "ArrayMoments | None":
        """A sample of evenly spaced rows; None if it would be small, or miss a group."""
        few = slice(_STRIDE // 2, None, _STRIDE)
        if len(self) < _STRIDE * _ROWS_PER_COLUMN * len(self.columns):
            return None
        weights = None if self.weights is None else self.weights[few]
        if weights is not None and not weights.any():
            return None
        sample = ArrayMoments(
            self.positions[few], self.columns[:, few].T, weights, cutoff=self.cutoff, offset=self.offset
        )
        return sample if np.all(sample.shares > self.shares / 2) else None

    def at(self, shifts: Floats, width: float) -> Sums:
        """The sums at foot = cutoff − offset · width + Z @ shifts."""
        return self.around(shifts, width)[0]

    def around(self, shifts: Floats, width: float) -> "tuple[Sums, _Window | None]":
        """The sums, and the rows near a ramp, which suffice for shifts close by; None if they are too many."""
        foot = self.cutoff - self.offset * width

        def work(start: int, stop: int) -> tuple[float, Floats, Floats, Floats, Floats, Floats | None]:
            # `einsum` and not `@`: threads of BLAS would wait for those of `map_blocks`.
            columns, positions = self.columns[:, start:stop], self.positions[start:stop]
            weights = None if self.weights is None else self.weights[start:stop]
            z = np.einsum("k,ki->i", shifts, columns)
            np.subtract(positions, z, out=z)
            z -= foot
            z /= width
            h = np.clip(z, 0.0, 1.0)
            (near,) = np.nonzero((z > -_NEAR) & (z < 1 + _NEAR))
            chosen = h if weights is None else h * weights
            # ξ/γ = h z − h²/2 on all three pieces
            cost = np.einsum("i,i->", chosen, z) - np.einsum("i,i->", chosen, h) / 2
            around, w = columns[:, near], None if weights is None else weights[near]
            on_ramp = (h[near] > 0) & (h[near] < 1)
            ramp = around[:, on_ramp]
            products = _products(ramp if w is None else ramp * w[on_ramp], ramp)
            return float(cost), np.einsum("ki,i->k", columns, chosen), products, around, positions[near], w

        costs, selected, products, around, near, weights = zip(*map_blocks(work, len(self)), strict=True)
        sums = Sums(
            cost=sum(costs) * width / self.total,
            selected=np.sum(selected, axis=0) / self.total,
            curvature=np.sum(products, axis=0) / (self.total * width),
        )
        n_near = sum(map(len, near))  # of a few distinct scores, none may be near
        if len(self) < _MANY or not 0 < 4 * n_near <= len(self):
            return sums, None
        rows = copy(self)
        rows.columns, rows.positions = np.concatenate(around, axis=1), np.concatenate(near)
        rows.weights = None if self.weights is None else np.concatenate(weights)
        inside = rows.at(shifts, width)
        return sums, _Window(rows, shifts, width, sums.cost - inside.cost, sums.selected - inside.selected)

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True)
class _Window:
    """The rows near a ramp, and the sums over all others, which are linear while no ramp reaches them."""

    rows: ArrayMoments
    shifts: Floats
    width: float
    cost: float
    selected: Floats

    def covers(self, shifts: Floats, width: float) -> bool:
        """Whether no other row reaches a ramp: memberships sum to Σ π_k in every row."""
        reach = float(self.rows.shares.sum() * np.abs(shifts - self.shifts).max())
        return width == self.width and reach < 0.99 * _NEAR * width

    def at(self, shifts: Floats, width: float) -> Sums:
        """The sums over all rows."""
        inside = self.rows.at(shifts, width)
        cost = self.cost - float(self.selected @ (shifts - self.shifts))
        return Sums(cost + inside.cost, self.selected + inside.selected, inside.curvature)


def _products(left: Floats, right: Floats) -> Floats:
    """Sums over rows of the products of all pairs of columns."""
    size = max(_PRODUCT // len(left) ** 2, 256)
    parts = [left[:, i : i + size] @ right[:, i : i + size].T for i in range(0, left.shape[1], size)]
    total: Floats = np.sum(parts, axis=0) if parts else np.zeros((len(left), len(right)))
    return total
