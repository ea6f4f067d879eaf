"""Moments of several classes in memory, for the solver (`fit.dual`).

Row i has scores p_i of C classes, weight w_i (Σ w = 1) and group memberships q_ik that sum to 1. With offsets
a_kc and width γ,

    h_i = projection onto the simplex of (p_i − Σ_k q_ik a_k)/γ          r_kc = Σ_i w_i q_ik h_ic / π_k

minimizes Σ_i w_i (γ/2 · ‖h_i − 1/C‖² − p_i · h_i) with all rates of a class in its band, for the right offsets.
They minimize the dual with one block of columns per class, in which the cost of a row is

    ψ(v) = v · h − γ/2 · ‖h − 1/C‖²        at v = p − Σ_k q_k a_k

and its second derivative (I − 11ᵀ/m)/γ on the m classes with h > 0. The column of class c and group k is
c · K + k.

If the largest value is ahead of the second largest by more than γ, it has chance 1. Such a row adds a linear term
as long as offsets move by less than its lead beyond γ, so later passes read only the rows that are closer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from fairramp.core.blocks import map_all
from fairramp.core.curve import Booleans, Floats, Integers
from fairramp.core.simplex import class_chances, largest_two
from fairramp.fit.moments import Sums

#: Values processed at once: they stay in cache, and are too few for the threads of BLAS.
_PIECE = 1 << 16
#: Coarser samples have one row in this many, a prime; a sample of fewer rows per group is not made coarser.
_STRIDE, _FEW = 17, 1000
#: With more rows, those whose lead is at most the width and this much are kept for later passes.
_MANY, NEAR = 1 << 13, 0.01


@dataclass(frozen=True)
class Part:
    """Rows that share a group, or whose memberships are known.

    Attributes
    ----------
    values : floats of shape (C, n)
        p.
    weights : floats of shape (n,), or None
        w; equal if None. Not yet divided by the total.
    member : int, or floats of shape (K, n)
        The group, or q.
    """

    values: Floats
    weights: Floats | None
    member: int | Floats

    def __len__(self) -> int:
        return int(self.values.shape[1])

    def take(self, which: Booleans | slice) -> "Part":
        """Selected rows."""
        weights = None if self.weights is None else self.weights[which]
        member = self.member if isinstance(self.member, int) else self.member[:, which]
        return Part(self.values[:, which], weights, member)

    def moved(self, offsets: Floats) -> Floats:
        """V = p − Σ q a, for offsets of shape (C, K)."""
        if isinstance(self.member, int):
            return self.values - offsets[:, self.member, None]
        return self.values - offsets @ self.member

    def spread(self, totals: Floats, n_groups: int) -> Floats:
        """Σ w q_k x_c from x of shape (C, n); of shape (C, K)."""
        weighted = totals if self.weights is None else totals * self.weights
        if isinstance(self.member, int):
            found = np.zeros((len(totals), n_groups))
            found[:, self.member] = weighted.sum(axis=1)
            return found
        return weighted @ self.member.T


def pieces(parts: Sequence[Part]) -> list[Part]:
    """The same rows in pieces that stay in cache."""
    found = []
    for part in parts:
        size = max(_PIECE // len(part.values), 256)
        found += [part.take(slice(i, i + size)) for i in range(0, len(part), size)]
    return found


class ClassMoments:
    """Moments of rows in memory; see `fit.moments.Moments`.

    Parameters
    ----------
    parts : sequence of Part
        The rows; at least one per group.
    n_groups : int
        K.
    total : float, optional
        Sum of the weights; of these rows if None.
    """

    def __init__(self, parts: Sequence[Part], n_groups: int, total: float | None = None) -> None:
        self.pieces, self.n_groups = pieces(parts), n_groups
        self.n_classes, self.n_rows = len(parts[0].values), sum(map(len, parts))
        masses = np.sum([p.spread(np.ones((1, len(p))), n_groups)[0] for p in self.pieces], axis=0)
        self.total = float(masses.sum()) if total is None else total
        self.masses: Floats = masses / self.total
        self.shares: Floats = np.tile(self.masses, self.n_classes)

    @property
    def gram(self) -> Floats:
        """Σ w q_k q_l."""
        found = np.zeros((self.n_groups, self.n_groups))
        for part in self.pieces:
            if isinstance(part.member, int):
                one = np.ones((1, len(part)))
                found[part.member, part.member] += part.spread(one, self.n_groups)[0, part.member]
            else:
                found += part.spread(part.member, self.n_groups)
        gram: Floats = found / self.total
        return gram

    def coarser(self) -> "ClassMoments | None":
        """A sample of evenly spaced rows; None if it would be small, or miss a group."""
        if self.n_rows < _STRIDE * _FEW * self.n_groups:
            return None
        few = slice(_STRIDE // 2, None, _STRIDE)
        parts = [part.take(few) for part in self.pieces]
        if not all(len(part) and (part.weights is None or part.weights.any()) for part in parts):
            return None
        sample = ClassMoments(parts, self.n_groups)
        return sample if np.all(sample.masses > self.masses / 2) else None

    def at(self, shifts: Floats, width: float) -> Sums:
        """The sums at the given offsets."""
        offsets = shifts.reshape(self.n_classes, self.n_groups)
        return self._scaled([self._sums(piece, piece.moved(offsets), width) for piece in self.pieces])

    def around(self, shifts: Floats, width: float) -> "tuple[Sums, Window | None]":
        """The sums, and the rows that suffice for offsets close by; None if these are too many."""
        if self.n_rows < _MANY:
            return self.at(shifts, width), None
        offsets = shifts.reshape(self.n_classes, self.n_groups)
        slack = max(width, NEAR)
        empty = np.zeros((len(self.shares), len(self.shares)))

        def work(piece: Part) -> tuple[Part, Sums]:
            moved = piece.moved(offsets)
            largest, second, index = largest_two(moved)
            near = largest - second < width + slack
            sure = (~near).astype(np.float64)
            weights = sure if piece.weights is None else sure * piece.weights
            cost = weights @ largest - weights.sum() * width / 2 * (1 - 1 / self.n_classes)
            chosen = sure * (np.arange(self.n_classes)[:, None] == index)
            return piece.take(near), Sums(float(cost), piece.spread(chosen, self.n_groups).ravel(), empty)

        done = map_all(work, self.pieces)
        sure = self._scaled([sums for _, sums in done])
        close = joined([part for part, _ in done if len(part)])
        if not close:
            return sure, None
        rows = ClassMoments(close, self.n_groups, self.total)
        inside = rows.at(shifts, width)
        sums = Sums(sure.cost + inside.cost, sure.selected + inside.selected, inside.curvature)
        window = Window(rows, shifts, width, slack, sure.cost, sure.selected)
        return sums, window if 4 * rows.n_rows < self.n_rows else None

    def _scaled(self, found: Sequence[Sums]) -> Sums:
        costs, selected, curvatures = zip(*found, strict=True)
        return Sums(
            sum(costs) / self.total, reduce(add, selected) / self.total, reduce(add, curvatures) / self.total
        )

    def _sums(self, part: Part, moved: Floats, width: float) -> Sums:
        """The sums over one part."""
        h, w = class_chances(moved, width), part.weights
        costs = (moved * h).sum(axis=0) - width / 2 * ((h * h).sum(axis=0) - 1 / self.n_classes)
        cost = costs.sum() if w is None else w @ costs
        return Sums(float(cost), part.spread(h, self.n_groups).ravel(), self._curvature(part, h > 0, width))

    def _curvature(self, part: Part, support: Booleans, width: float) -> Floats:
        """Σ w q_k q_l (δ_cd − 1/m) / γ over the rows with classes c and d among the m > 1 of their support."""
        n, k = self.n_classes, self.n_groups
        sizes = support.sum(axis=0)
        mixed = sizes > 1
        active = support[:, mixed].astype(np.float64)
        part, per_row = part.take(mixed), 1 / (width * sizes[mixed])
        weights = per_row if part.weights is None else per_row * part.weights
        found = np.zeros((n, k, n, k))
        if isinstance(part.member, int):
            g = part.member
            found[:, g, :, g] = np.diag(active @ (weights * sizes[mixed])) - (active * weights) @ active.T
        else:
            q = part.member
            for c in range(n):
                for d in range(c, n):
                    both = active[c] * active[d] * weights
                    rows = active[c] * weights * sizes[mixed] - both if c == d else -both
                    found[c, :, d, :] = (q * rows) @ q.T
                    found[d, :, c, :] = found[c, :, d, :]
        return found.reshape(n * k, n * k)


@dataclass(frozen=True)
class Window:
    """The rows that can change, and the sums over all others, which are linear while no lead is used up."""

    rows: ClassMoments
    shifts: Floats
    width: float
    slack: float
    cost: float
    selected: Floats

    def covers(self, shifts: Floats, width: float) -> bool:
        """Whether no other row loses its lead: two classes of a row approach each other by at most this."""
        moved = (shifts - self.shifts).reshape(self.rows.n_classes, self.rows.n_groups)
        return width == self.width and float(np.ptp(moved, axis=0).max()) < 0.99 * self.slack

    def at(self, shifts: Floats, width: float) -> Sums:
        """The sums over all rows."""
        inside = self.rows.at(shifts, width)
        cost = self.cost - float(self.selected @ (shifts - self.shifts))
        return Sums(cost + inside.cost, self.selected + inside.selected, inside.curvature)


def rounded(sizes: Floats) -> Integers:
    """Expected numbers of rows as integers, independent of the order in which they were added up."""
    return np.rint(sizes.round(6)).astype(np.int64)


def joined(parts: Sequence[Part]) -> list[Part]:
    """Parts of the same group, or with memberships, as one part each."""
    by_member: dict[int | None, list[Part]] = {}
    for part in parts:
        by_member.setdefault(part.member if isinstance(part.member, int) else None, []).append(part)
    found = []
    for member, same in by_member.items():
        weights = [p.weights for p in same if p.weights is not None]
        q = [p.member for p in same if not isinstance(p.member, int)]
        found.append(
            Part(
                np.concatenate([p.values for p in same], axis=1),
                np.concatenate(weights) if weights else None,
                np.concatenate(q, axis=1) if member is None else member,
            )
        )
    return found
