"""Confidence limits of selection rates, of their gap and of their ratio.

For a group with selection rate r estimated from n rows (effective rows, where rows are weighted or
decisions are drawn), z the normal quantile and L(r ‖ u) = r ln(r/u) + (1 − r) ln((1 − r)/(1 − u)):

    Wilson        {u : (r − u)² ≤ z² u (1 − u) / n}                           approximate, good from n = 10 on
    KL–Chernoff   {u : n · L(r ‖ u) ≤ ln(1/δ) per side}                       a theorem for any mean in [0, 1]

Limits of two groups are combined without assuming that errors are symmetric (Newcombe 1998 for the
difference, Donner and Zou 2012 for the ratio):

    difference  d = r₁ − r₂:    d − √((r₁ − l₁)² + (u₂ − r₂)²)   to   d + √((u₁ − r₁)² + (r₂ − l₂)²)
    ratio       q = r₁ / r₂:    (r₁r₂ ∓ √((r₁r₂)² − l₁u₂(2r₁ − l₁)(2r₂ − u₂))) / (u₂(2r₂ − u₂)), and u₁, l₂

The gap of K groups is the largest of their pairs' differences, so its limits are the largest of the pairs'
limits, each at confidence 1 − δ/pairs.
"""

import numpy as np

from fairramp.core.curve import Floats


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
    """Limits that a mean of independent values in [0, 1] crosses with probability δ at most, per side."""
    budget = np.log(1 / delta) / rows

    def divergence(u: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            yes = np.where(rates > 0, rates * np.log(rates / u), 0.0)
            no = np.where(rates < 1, (1 - rates) * np.log((1 - rates) / (1 - u)), 0.0)
        return yes + no

    def limit(outer: Floats) -> Floats:
        inner = rates
        for _ in range(60):  # L rises away from r on both sides; 60 halvings leave nothing of [0, 1]
            middle = (inner + outer) / 2
            inside = divergence(middle) <= budget
            inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
        return outer

    return limit(np.zeros_like(rates)), limit(np.ones_like(rates))


def gap_interval(rates: Floats, rows: Floats, confidence: float) -> tuple[float, float]:
    """Limits of the largest difference between two rates; 0 for one alone."""
    lower, upper = wilson_interval(rates, rows, _per_pair(len(rates), confidence))
    down, up = rates - lower, upper - rates
    best_low = best_high = 0.0
    for i in range(len(rates)):  # a row of pairs at a time, so that thousands of groups fit into memory
        difference = rates[i] - rates
        low = difference - np.hypot(down[i], up)
        high = difference + np.hypot(up[i], down)
        low[i] = high[i] = 0.0
        best_low, best_high = max(best_low, float(low.max())), max(best_high, float(high.max()))
    return best_low, min(best_high, 1.0)


def ratio_interval(rates: Floats, rows: Floats, confidence: float) -> tuple[float, float]:
    """Limits of the smallest rate divided by the largest; 1 for one alone."""
    lower, upper = wilson_interval(rates, rows, _per_pair(len(rates), confidence))
    least_low, least_high = 1.0, 1.0
    for i, (r1, l1, u1) in enumerate(zip(rates, lower, upper, strict=True)):
        r2, l2, u2 = (np.delete(limits, i) for limits in (rates, lower, upper))
        product = r1 * r2
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.sqrt(np.maximum(product**2 - l1 * u2 * (2 * r1 - l1) * (2 * r2 - u2), 0))
            low = (product - root) / (u2 * (2 * r2 - u2))
            root = np.sqrt(np.maximum(product**2 - u1 * l2 * (2 * r1 - u1) * (2 * r2 - l2), 0))
            high = (product + root) / (l2 * (2 * r2 - l2))
        # Where a denominator vanishes the limit is taken as far out as it can be.
        low = np.where(np.isfinite(low) & (low >= 0), low, 0.0)
        high = np.where(np.isfinite(high) & (high >= 0), high, np.inf)
        least_low, least_high = float(low.min(initial=least_low)), float(high.min(initial=least_high))
    return least_low, least_high


def _per_pair(n_groups: int, confidence: float) -> float:
    return 1 - (1 - confidence) / max(n_groups * (n_groups - 1) / 2, 1)


def normal_quantile(confidence: float) -> float:
    """Two-sided quantile: 1.96 for 0.95."""
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))
