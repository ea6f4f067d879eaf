"""The quantile of max − min of independent Beta draws, one per group.

A group's true rate at its fitted threshold is a Beta draw (see `rule.limits`), so the range of the draws is the
gap. The laws of several groups are arrays of shape (2, groups): row 0 is a, row 1 is b.
"""

from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv

from fairramp.core.cells import strata_slices, widest
from fairramp.core.curve import Floats

#: Cells of the midpoint rule; the quantile is accurate to within 0.1% of its value.
_CUTS = 1024
#: For more groups than this, a union bound combines their limits.
_MAX_EXACT_GROUPS = 512


def range_quantiles(
    rows: Floats, lower: Floats, upper: Floats, strata: Any, confidence: float, *, worst_only: bool = False
) -> list[float]:
    """Upper limits on the gap in each stratum that hold jointly; without strata, of the gap of all groups.

    The smallest rate is a draw of Beta(lower, rows + 1 − lower), the largest of Beta(upper, rows + 1 − upper).
    Strata are independent, so limits at confidence^(1/S) for each of S strata hold jointly.

    If only the worst stratum matters, quick limits of single groups rank the strata, and strata that cannot be
    the worst get 0.
    """
    parts = strata_slices(strata, len(rows))
    each = confidence ** (1 / len(parts))
    smallest, largest = (np.stack([m, rows + 1 - m]) for m in (lower, upper))
    quick = [_union(smallest[:, part], largest[:, part], each) for part in parts]
    found = [0.0] * len(parts)
    for i in np.argsort(quick)[::-1].tolist():
        if worst_only and quick[i] <= max(found):
            break
        found[i] = _range_quantile(smallest[:, parts[i]], largest[:, parts[i]], each)
    return found


def _union(smallest: Floats, largest: Floats, confidence: float) -> float:
    """A bound on the range from limits of the groups that hold jointly."""
    tail = (1 - confidence) / (2 * smallest.shape[1])
    return widest(_beta_quantile(smallest, tail), _beta_quantile(largest, 1 - tail))


def _range_quantile(smallest: Floats, largest: Floats, confidence: float) -> float:
    """The g with P(max − min ≤ g) = confidence, for one Beta draw per group.

    P = Σ_k ∫ Π_{l ≠ k} (F_l(x + g) − F_l(x)) dF_k(x), where k is the group with the smallest draw, by the
    midpoint rule. If there are two laws (one for the smallest draw, one for the largest), the same quantile
    drives both. A group that selects no one has its smallest draw at 0, and one that selects everyone its largest
    at 1; then only the other end is random.
    """
    n_groups = len(smallest[0])
    if n_groups == 1:
        return 0.0
    for law, other, end in ((smallest[0], largest, 0.0), (largest[1], smallest, 1.0)):
        if (law <= 0).any():
            return _reach(other, end, confidence)  # over all groups, including those that select no one
    if n_groups > _MAX_EXACT_GROUPS:
        return _union(smallest, largest, confidence)
    tail = (1 - confidence) * 1e-5 / n_groups
    low, high = _beta_quantile(smallest, tail).min(), _beta_quantile(largest, 1 - tail).max()
    # Edges and midpoints of the cells. A gap of j cells then shifts the table of F by j places, so each F is
    # evaluated only once.
    x: Floats = np.linspace(low, high, 2 * _CUTS + 1)
    below, above = _beta_cdfs(smallest, x), _beta_cdfs(largest, x[1::2])
    mass = np.diff(below[:, 2::2], axis=1, prepend=0.0)  # the first cell includes all mass below it
    at_middle = below[:, 1::2]

    def probability(j: int) -> float:
        shifted = np.concatenate([above[:, j:], np.ones((n_groups, j))], axis=1)
        inside = np.maximum(shifted - at_middle, 0.0)
        # The product over all l ≠ k, computed from the product over all nonzero factors.
        zeros = (inside == 0).sum(axis=0)
        logs = np.log(np.where(inside > 0, inside, 1.0))
        others = np.exp(logs.sum(axis=0) - logs) * (zeros - (inside == 0) == 0)
        return float((mass * others).sum())

    first, last = 0, _CUTS
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (first, middle) if probability(middle) >= confidence else (middle, last)
    start, end = probability(first), probability(last)
    part = 1.0 if end <= start else min(max((confidence - start) / (end - start), 0.0), 1.0)
    return float((first + part) * (high - low) / _CUTS)


def _reach(laws: Floats, end: float, confidence: float) -> float:
    """The distance from an end of [0, 1] within which all draws stay, with this confidence."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        below = _beta_cdfs(laws, np.array([middle if end == 0 else 1 - middle]))
        holds = float(np.prod(below if end == 0 else 1 - below)) >= confidence
        low, high = (low, middle) if holds else (middle, high)
    return high


def _beta_cdfs(laws: Floats, x: Floats) -> Floats:
    """P(Beta(a, b) ≤ x), a row for each law; all mass at 0 for a = 0 and at 1 for b = 0."""
    distinct, place = np.unique(laws, axis=1, return_inverse=True)  # compute equal laws once
    a, b = distinct[:, :, np.newaxis]
    inner = betainc(np.maximum(a, 1e-9), np.maximum(b, 1e-9), np.clip(x, 0.0, 1.0))
    cdfs: Floats = np.where(a <= 0, x >= 0, np.where(b <= 0, x >= 1, inner))
    return cdfs[place.ravel()]


def _beta_quantile(laws: Floats, level: float) -> Floats:
    a, b = laws
    quantile: Floats = betaincinv(np.maximum(a, 1e-9), np.maximum(b, 1e-9), level)
    return np.where(a <= 0, 0.0, np.where(b <= 0, 1.0, quantile))
