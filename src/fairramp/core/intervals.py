"""Confidence limits of selection rates, of their gap and of their ratio.

A group has selection rate r, estimated from n rows (effective rows if rows are weighted or decisions are random).
With the normal quantile z and L(r ‖ u) = r ln(r/u) + (1 − r) ln((1 − r)/(1 − u)):

    Wilson        {u : (r − u)² ≤ z² u (1 − u) / n}                           approximate, good for n ≥ 10
    KL–Chernoff   {u : n · L(r ‖ u) ≤ ln(1/δ) per side}                       a theorem for any mean in [0, 1]

Limits of two groups are combined without assuming symmetric errors (Newcombe 1998 for the difference,
Donner and Zou 2012 for the ratio):

    difference  d = r₁ − r₂:    d − √((r₁ − l₁)² + (u₂ − r₂)²)   to   d + √((u₁ − r₁)² + (r₂ − l₂)²)
    ratio       q = r₁ / r₂:    (r₁r₂ ∓ √((r₁r₂)² − l₁u₂(2r₁ − l₁)(2r₂ − u₂))) / (u₂(2r₂ − u₂)), and u₁, l₂

The gap of K groups is the difference between the highest and the lowest true rate. Its upper limit is the largest
of all pairs' upper limits, each at confidence 1 − δ: the limit of the true extremes alone fails with probability
δ/2, and more pairs can only raise the maximum. Its lower limit is the largest of the pairs' lower limits, any of
which may fail, so the pairs share δ, but only those pairs that can be the extremes. A tenth of δ pays for joint
limits of all groups that determine which can have the highest and which the lowest rate. With M such pairs, each
gets confidence 1 − 0.9 δ/M (1 − δ if there is only one pair). The ratio mirrors this: its lower limit is
the smallest of all pairs' lower limits, its upper limit the smallest of the M pairs' corrected upper limits. With
strata, pairs are formed within strata, and M counts all of them.
"""

from typing import Any

import numpy as np

from fairramp.core.cells import strata_slices
from fairramp.core.curve import Floats, Integers

#: Share of the error probability spent on finding the groups that can have the highest and the lowest rate.
_TO_FIND_EXTREMES = 0.1


def effective_rows(rates: Floats, squares: Floats, spread: Floats) -> Floats:
    """Number of unweighted rows that would estimate each rate about as precisely.

    With each row's share v = w / Σw of its group's weight and its selection probability h, `squares` is Σ v² and
    `spread` is Σ v² (h − r)². The variance gives r (1 − r) / spread rows, the weights alone give 1 / squares; the
    result is the smaller. The first is far too large if the heavy rows happen to be on one side of the threshold,
    and undefined if all rows have the same probability. Rows of equal weight count as they are.
    """
    usable = (spread > 1e-20 * squares) & (rates > 0) & (rates < 1)  # smaller spreads are rounding errors
    plug_in = np.where(usable, rates * (1 - rates), np.inf) / np.where(usable, spread, 1.0)
    with np.errstate(divide="ignore"):  # squares of tiny weights underflow to 0
        return np.minimum(plug_in, 1 / squares)


def wilson_interval(rates: Floats, rows: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Two-sided Wilson limits of each rate."""
    z2 = normal_quantile(confidence) ** 2
    middle = (rates + z2 / (2 * rows)) / (1 + z2 / rows)
    half = np.sqrt(z2 / rows * (rates * (1 - rates) + z2 / (4 * rows))) / (1 + z2 / rows)
    return (
        np.where(rates <= 0, 0.0, np.maximum(middle - half, 0.0)),
        np.where(rates >= 1, 1.0, np.minimum(middle + half, 1.0)),
    )


def kl_interval(rates: Floats, rows: Floats, delta: float | Floats) -> tuple[Floats, Floats]:
    """Limits that the mean of independent values in [0, 1] exceeds with probability at most δ per side."""
    budget = np.log(1 / delta) / rows

    def divergence(u: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            yes = np.where(rates > 0, rates * np.log(rates / u), 0.0)
            no = np.where(rates < 1, (1 - rates) * np.log((1 - rates) / (1 - u)), 0.0)
        return yes + no

    def limit(outer: Floats) -> Floats:
        inner = rates
        for _ in range(60):  # L increases on both sides of r; 60 halvings exhaust [0, 1]
            middle = (inner + outer) / 2
            inside = divergence(middle) <= budget
            inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
        return outer

    return limit(np.zeros_like(rates)), limit(np.ones_like(rates))


def gap_interval(
    rates: Floats, rows: Floats, confidence: float, strata: Integers | None = None
) -> tuple[float, float]:
    """Limits of the largest difference between two rates, within strata if there are any; 0 for one group."""
    lower, upper = wilson_interval(rates, rows, confidence)
    down, up = rates - lower, upper - rates
    candidates, corrected = _extremes(rates, rows, confidence, strata)
    lower, upper = wilson_interval(rates, rows, corrected)
    best_low = best_high = 0.0
    for part, top, bottom in candidates:
        # One row of pairs at a time keeps memory low for thousands of groups. As max(a, b) ≤ √(a² + b²) ≤ a + b,
        # each row has a bound that no pair in it exceeds; rows are taken by their bounds until none can matter.
        least = (rates - down)[part].min()
        for i in part[np.argsort(-(rates + up)[part])]:
            if rates[i] + up[i] - least <= best_high:
                break
            j = part[part != i]
            best_high = float((rates[i] - rates[j] + np.hypot(up[i], down[j])).max(initial=best_high))
        least = rates[bottom].min()
        for i in top[np.argsort(-lower[top])]:
            if lower[i] - least <= best_low:
                break
            low = rates[i] - rates[bottom] - np.hypot(rates[i] - lower[i], upper[bottom] - rates[bottom])
            best_low = max(best_low, float(low.max()))
    return best_low, min(best_high, 1.0)


def ratio_interval(
    rates: Floats, rows: Floats, confidence: float, strata: Integers | None = None
) -> tuple[float, float]:
    """Limits of the smallest rate divided by the largest, within strata if there are any; 1 for one group."""
    lower, upper = wilson_interval(rates, rows, confidence)
    candidates, corrected = _extremes(rates, rows, confidence, strata)
    corrected_lower, corrected_upper = wilson_interval(rates, rows, corrected)
    least_low = least_high = 1.0
    for part, top, bottom in candidates:
        most = upper[part].max()
        for i in part[np.argsort(lower[part])]:  # a pair's limit is at least l₁ / u₂
            if lower[i] >= least_low * most:
                break
            j = part[part != i]
            low = _ratio_limit(rates[i], lower[i], rates[j], upper[j], -1)
            # If a denominator is 0, take the widest possible limit.
            low = np.where(np.isfinite(low) & (low >= 0), low, 0.0)
            least_low = float(low.min(initial=least_low))
        most = rates[top].max()
        for i in bottom[np.argsort(corrected_upper[bottom])]:  # a pair's limit is at least u₁ / r₂
            if corrected_upper[i] >= least_high * most:
                break
            j = top[top != i]
            high = _ratio_limit(rates[i], corrected_upper[i], rates[j], corrected_lower[j], 1)
            high = np.where(np.isfinite(high) & (high >= 0), high, np.inf)
            least_high = float(high.min(initial=least_high))
    return least_low, least_high


def _ratio_limit(r1: float, limit1: float, r2: Floats, limit2: Floats, sign: int) -> Floats:
    """Limits of r₁ / r₂: lower ones (sign −1) from l₁ and u₂, upper ones (sign 1) from u₁ and l₂."""
    product = r1 * r2
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(product**2 - limit1 * limit2 * (2 * r1 - limit1) * (2 * r2 - limit2), 0))
        limits: Floats = (product + sign * root) / (limit2 * (2 * r2 - limit2))
    return limits


def _extremes(
    rates: Floats, rows: Floats, confidence: float, strata: Integers | None
) -> tuple[list[tuple[Integers, Integers, Integers]], float]:
    """Each stratum's groups, those that can have its highest and its lowest rate, and the confidence per pair."""
    every = np.arange(len(rates))
    parts = [every[part] for part in strata_slices(strata, len(rates))]
    if sum(len(part) * (len(part) - 1) // 2 for part in parts) <= 1:
        return [(part, part, part) for part in parts], confidence
    lower, upper = wilson_interval(rates, rows, extremes_confidence(len(rates), confidence))
    found, pairs = [], 0
    for part in parts:
        top, bottom = part[upper[part] >= lower[part].max()], part[lower[part] <= upper[part].min()]
        both = len(np.intersect1d(top, bottom))
        pairs += len(top) * len(bottom) - both * (both + 1) // 2  # no group with itself, no pair twice
        found.append((part, top, bottom))
    return found, shared_confidence(pairs, confidence)


def extremes_confidence(n_groups: int, confidence: float) -> float:
    """Confidence per group of the limits that determine which groups can be the extremes."""
    return 1 - _TO_FIND_EXTREMES * (1 - confidence) / n_groups


def shared_confidence(pairs: Any, confidence: float) -> Any:
    """Confidence per pair of the lower limits of the pairs that can be the extremes."""
    return 1 - (1 - _TO_FIND_EXTREMES) * (1 - confidence) / pairs


def normal_quantile(confidence: float) -> float:
    """Two-sided quantile: 1.96 for 0.95."""
    from scipy.special import ndtri

    # Computed from the tail, which stays positive where the confidence rounds to 1.
    return float(-ndtri(max((1 - confidence) / 2, 1e-300)))
