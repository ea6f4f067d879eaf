"""How far the sample rates of every pair of groups can be off, jointly and at every threshold.

For group k with n_k rows let S_k be the supremum over all thresholds of (true rate − sample rate), and D_k that
of (sample rate − true rate). These are Smirnov's one-sided statistics, and for any distribution of the scores

    P(√n S > x) ≤ e^(−2x²)   and   P(√n D > x) ≤ e^(−2x²)   for x ≥ √(ln 2 / 2)            (Massart 1990)

A ramp is a mixture of thresholds, so S and D bound its rates too. Hence, for any target, any ramp and any
threshold edited by hand,

    true gap of k and l  ≤  (r_k − r_l) + S_k + D_l.

DKW bounds S_k and D_l separately. But they belong to different groups, so they are independent and rarely large
at the same time: P(S_k + D_l > g) is a convolution. All ordered pairs share the same c in g = c √(1/n_k + 1/n_l),
which keeps a small group from widening the limits of the others. c is the smallest value with Σ P ≤ δ over the
pairs.

The convolution is summed from above, cell by cell, so the result is a proven bound, free of simulation error.

Reference: P. Massart, The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality, Ann. Prob. 1990.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from fairramp.core.cells import strata_slices
from fairramp.core.curve import Floats

#: Massart's bound holds at this value and above; below it, the probability is bounded by 1.
_FROM = float(np.sqrt(np.log(2) / 2))
#: Number of cells of the convolution, and its end; the probability beyond is 1e-22.
_CELLS, _TO = 1000, 5.0
#: Maximum number of distinct pairs of sizes; for more, DKW costs nothing and is nearly as good.
_MOST_PAIRS = 1000
_TOO_MANY = (np.empty(0, dtype=np.intp),) * 2


def pair_factor(rows: Floats, strata: Any, confidence: float) -> float:
    """The c such that no S_k + D_l exceeds c √(1/n_k + 1/n_l), with this confidence; infinite for too many pairs.

    >>> bool(pair_factor(np.array([1000.0, 1000.0]), None, 0.95) < 1.62)
    True
    """
    return _pair_factor(tuple(rows.tolist()), None if strata is None else tuple(strata), confidence)


@lru_cache(maxsize=64)  # a fit with `confidence` asks about the same sizes many times
def _pair_factor(rows: tuple[float, ...], strata: tuple[int, ...] | None, confidence: float) -> float:
    found: dict[float, int] = {}
    for part in strata_slices(strata, len(rows)):
        sizes, groups = np.unique(np.array(rows[part]), return_counts=True)
        first, second = np.triu_indices(len(sizes)) if len(sizes) ** 2 <= 2 * _MOST_PAIRS else _TOO_MANY
        pairs = np.where(
            first == second, groups[first] * (groups[first] - 1) // 2, groups[first] * groups[second]
        )
        # The squared share of the larger half-width; S_k + D_l and S_l + D_k are equal in law up to exchange.
        shares = sizes[second] / (sizes[first] + sizes[second])
        for share, n in zip(shares.tolist(), pairs.tolist(), strict=True):
            found[share] = found.get(share, 0) + n
        if not len(first) or len(found) > _MOST_PAIRS:
            return float("inf")
    distinct, counts = (np.array(column) for column in (list(found), list(found.values())))
    if not counts.any():
        return 0.0
    log_wanted = np.log((1 - confidence) / 2)  # each pair counts twice: either group may have the higher rate
    edges = np.linspace(_FROM, _TO, _CELLS + 1)
    tails = np.exp(-2 * edges**2)
    # Put a cell's mass at its upper edge, and all mass below Massart's range at the start of the range.
    mass = np.concatenate([[1 - tails[0]], -np.diff(tails)])
    larger, smaller = np.sqrt(distinct)[:, None], np.sqrt(1 - distinct)[:, None]

    def log_excess(c: float) -> float:
        # Use the closed form for the wider half-width, where cells would be coarse.
        rest = (c - edges * smaller) / larger
        tail = np.where(rest < _FROM, 1.0, np.exp(-2 * np.maximum(rest, 0.0) ** 2))
        return float(np.log(counts @ (tail @ mass + tails[-1])) - log_wanted)

    low, high = _FROM, 2 * _TO
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if log_excess(middle) <= 0 else (middle, high)
    return high
