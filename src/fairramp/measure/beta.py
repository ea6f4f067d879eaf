"""The quantile of max − min of independent Beta draws, one per group.

A group's true rate at its fitted threshold is a Beta draw (see `certificate`), and so their range is the gap. The
laws of several groups are arrays of shape (2, groups): a above b.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv

from fairramp.core.cells import strata_slices, widest
from fairramp.core.curve import Floats

#: Cells of the midpoint rule; the quantile is right to 0.1 % of itself.
_CUTS = 1024
#: Beyond so many groups their limits are combined by a union bound.
_MAX_EXACT_GROUPS = 512


def worst_range_quantile(rows: Floats, lower: Floats, upper: Floats, strata: Any, confidence: float) -> float:
    """The quantile of the gap, the largest of the strata's if there are any.

    The smallest rate is a draw of Beta(lower, rows + 1 − lower), the largest of Beta(upper, rows + 1 − upper).

    Strata are independent: with confidence^(1/S) for each of S, all hold together. Limits of single groups bound
    a stratum's gap quickly; the worst is what counts, so the quantile itself is computed from the widest on, and
    only while it could still be the worst.
    """
    parts = strata_slices(strata, len(rows))
    each = confidence ** (1 / len(parts))
    smallest, largest = (np.stack([m, rows + 1 - m]) for m in (lower, upper))
    quick = [_union(smallest[:, part], largest[:, part], each) for part in parts]
    worst = 0.0
    for i in np.argsort(quick)[::-1].tolist():
        if quick[i] <= worst:
            break
        worst = _range_quantile(smallest[:, parts[i]], largest[:, parts[i]], each, worst)
    return worst


def _union(smallest: Floats, largest: Floats, confidence: float) -> float:
    """A bound on the range from limits of each group that hold together."""
    tail = (1 - confidence) / (2 * smallest.shape[1])
    return widest(_beta_quantile(smallest, tail), _beta_quantile(largest, 1 - tail))


def _range_quantile(smallest: Floats, largest: Floats, confidence: float, least: float = 0.0) -> float:
    """A g of at least `least` with P(max − min ≤ g) ≥ confidence, for one Beta draw per group.

    P = Σ_k ∫ Π_{l ≠ k} (F_l(x + g) − F_l(x)) dF_k(x), k the group with the smallest draw, by the midpoint
    rule. Where two laws are given (one for the smallest, one for the largest), both are driven by the same
    quantile. A group that selects nobody has its smallest draw at 0, and one that selects everybody its largest
    at 1: then only the other end is random.
    """
    n_groups = len(smallest[0])
    if n_groups == 1:
        return least
    for law, other, end in ((smallest[0], largest, 0.0), (largest[1], smallest, 1.0)):
        fixed = np.flatnonzero(law <= 0)
        if len(fixed):
            free = np.delete(other, fixed, axis=1) if len(fixed) == 1 else other
            return _smallest(partial(_is_reached, free, end, confidence), least)
    if n_groups > _MAX_EXACT_GROUPS:
        return max(least, _union(smallest, largest, confidence))
    tail = (1 - confidence) * 1e-5 / n_groups
    low, high = _beta_quantile(smallest, tail).min(), _beta_quantile(smallest, 1 - tail).max()
    x: Floats = np.linspace(low, high, _CUTS + 1)
    mass = np.diff(_beta_cdfs(smallest, x[1:]), axis=1, prepend=0.0)  # the first cell has all that is below it
    middle = (x[1:] + x[:-1]) / 2
    at_middle = _beta_cdfs(smallest, middle)

    def probability(g: float) -> float:
        inside = np.maximum(_beta_cdfs(largest, middle + g) - at_middle, 0.0)
        # The product over all l ≠ k, from the product over all l that are not 0.
        zeros = (inside == 0).sum(axis=0)
        logs = np.log(np.where(inside > 0, inside, 1.0))
        others = np.exp(logs.sum(axis=0) - logs) * (zeros - (inside == 0) == 0)
        return float((mass * others).sum())

    return _smallest(lambda g: probability(g) >= confidence, least)


def _is_reached(laws: Floats, end: float, confidence: float, g: float) -> bool:
    """Whether no draw is further than g from an end of [0, 1], with that confidence."""
    below = _beta_cdfs(laws, np.array([g if end == 0 else 1 - g]))
    return float(np.prod(below if end == 0 else 1 - below)) >= confidence


def _smallest(holds: Callable[[float], bool], least: float) -> float:
    """Smallest number from `least` to 1 from which a condition holds, to 2^−20 above."""
    if least > 0 and holds(least):
        return least
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _beta_cdfs(laws: Floats, x: Floats) -> Floats:
    """P(Beta(a, b) ≤ x), a row for each law; all mass at 0 for a = 0 and at 1 for b = 0."""
    distinct, place = np.unique(laws, axis=1, return_inverse=True)  # equal laws are computed once
    a, b = distinct[:, :, np.newaxis]
    inner = betainc(np.maximum(a, 1e-9), np.maximum(b, 1e-9), np.clip(x, 0.0, 1.0))
    cdfs: Floats = np.where(a <= 0, x >= 0, np.where(b <= 0, x >= 1, inner))
    return cdfs[place.ravel()]


def _beta_quantile(laws: Floats, level: float) -> Floats:
    a, b = laws
    quantile: Floats = betaincinv(np.maximum(a, 1e-9), np.maximum(b, 1e-9), level)
    return np.where(a <= 0, 0.0, np.where(b <= 0, 1.0, quantile))
