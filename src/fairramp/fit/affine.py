"""Soft and overlapping groups: thresholds that are a sum of shifts, one per group.

Row i has position x_i, weight w_i (Σ w = 1) and memberships Z_ik ≥ 0. The columns of Z form blocks; in each block
the entries of a row sum to 1. With width γ > 0, the cutoff's own foot, and π_k = Σ_i w_i Z_ik:

    foot_i = own foot + Σ_k Z_ik a_k        h_i = clip((x_i − foot_i)/γ, 0, 1)        r_k = Σ_i w_i Z_ik h_i / π_k

is the optimum of

    minimize    Σ_i w_i (γ/2 · (h_i − c)² − (x_i − cutoff) h_i)
    subject to  0 ≤ h_i ≤ 1   and   lo(u_b) ≤ r_k ≤ hi(u_b) for every k in block b      (and Σ_i w_i h_i = B)

for the right shifts a_k = s_k/π_k, plus ν for everybody if there is a budget B. They solve the dual

    minimize    Σ_i w_i ξ(x_i − foot_i) + Σ_k (λ_k hi(u_b) − μ_k lo(u_b)) + ν B      over s = λ − μ,   λ, μ ≥ 0

with ξ′(v) = clip(v/γ, 0, 1). If the level u_b is free, its terms vanish and Σ_k (λ_k hi′ − μ_k lo′) = 0 in the
block instead. At the optimum
    s_k > 0  →  r_k = hi(u_b)        s_k < 0  →  r_k = lo(u_b)        s_k = 0  →  r_k in between.

`fit.dual` finds them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairramp.core.curve import Floats
from fairramp.fit.dual import GOOD, Point, Search, minimum
from fairramp.fit.moments import Moments
from fairramp.fit.problem import Fixed, Problem

#: An eigenvalue this small, times the number of columns, is 0.
_NULL = 1e-12


@dataclass(frozen=True)
class Dual:
    """Result of `solve_affine`.

    Attributes
    ----------
    shifts : floats of shape (J,)
        a, including ν. Σ π_k a_k = 0 in every block but the first; of all shifts with the same feet, those with
        the smallest Σ π_k a_k².
    levels : floats of shape (B,)
        The level of each block's band.
    rates : floats of shape (J,)
        r.
    passes : int
        Number of points at which the sums were taken, over all rows or, in memory, over those near a ramp; points
        for coarser samples do not count.
    undetermined : int
        Number of independent shifts that move no foot, beyond trading constants between blocks.
    residual : float
        How far rates are from the band; above 1e-9 only if feet are so large that rounding errors matter.
    """

    shifts: Floats
    levels: Floats
    rates: Floats
    passes: int
    undetermined: int
    residual: float


def solve_affine(
    moments: Moments, blocks: Sequence[slice], problem: Problem, *, start: Floats | None = None
) -> Dual:
    """Shifts of least cost with all rates of each block in the band.

    Parameters
    ----------
    moments : Moments
        The rows. All shares are positive.
    blocks : sequence of slices
        The columns of each block.
    problem : Problem
        The problem to solve; its width is positive and its level not `ByLabels`.
    start : floats of shape (J,), optional
        A guess of the shifts; a good one saves passes.
    """
    search, best = minimum(moments, blocks, problem, start)
    band, rates = problem.band, best.rates
    fixed = problem.level.rate if isinstance(problem.level, Fixed) else None
    shifts, undetermined = _simplest(search, best)
    return Dual(
        shifts=shifts,
        levels=np.array([band.level_of(rates[b]) if fixed is None else fixed for b in blocks]),
        rates=rates,
        passes=search.passes,
        undetermined=undetermined,
        residual=best.residual,
    )


def null_dimensions(gram: Floats, n_blocks: int) -> int:
    """Number of independent shifts that move no foot, beyond trading constants between blocks.

    If it is positive, the rows do not determine the shifts: there are duplicate columns, or attributes whose
    values occur together only in disconnected sets. `gram` is Σ w Z_k Z_l.
    """
    n_null = null_space(gram, gram.sum(axis=1) / n_blocks).shape[1]
    return max(int(n_null) - (n_blocks - 1), 0)


def null_space(gram: Floats, shares: Floats) -> Floats:
    """Orthonormal directions, in √π_k · a_k, that move no foot; one per column."""
    root = np.sqrt(shares)
    values, vectors = np.linalg.eigh(gram / np.outer(root, root))
    directions: Floats = vectors[:, values <= _NULL * len(root)]
    return directions


def _simplest(search: Search, best: Point) -> tuple[Floats, int]:
    """Of all shifts with the same feet, the smallest, with constants in the first block.

    Also the number of independent shifts that move no foot, beyond trading constants between blocks.
    """
    shares, root = search.moments.shares, search.scale[:-1]
    gram = getattr(search.moments, "gram", None)
    if gram is None:
        wide = 2.0**40
        middle = np.where(search.block_of == 0, (search.problem.offset - 0.5) * wide, 0.0)
        gram = search.moments.at(middle, wide).curvature * wide
        search.passes += 1
    undetermined = null_dimensions(gram, len(search.blocks))
    a = best.shifts[:-1] + np.where(search.block_of == 0, best.shifts[-1], 0.0)
    if undetermined:
        null = null_space(gram, shares)
        smaller = a - null @ (null.T @ (a * root)) / root
        # Columns that are almost the same still move feet a little: then the shifts are determined after all.
        sums = search.moments.at(smaller, search.problem.ramp_width)
        if np.abs(sums.selected / shares - best.rates).max() <= GOOD:
            a = smaller
        else:
            undetermined = 0
    for columns in search.blocks[1:]:
        constant = shares[columns] @ a[columns]
        a[columns] -= constant
        a[search.blocks[0]] += constant
    return a, undetermined
