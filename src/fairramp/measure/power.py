"""Power of a check: the rates of one group that it detects nine times out of ten if no other group changes.

The other groups' true rates are drawn around their rates r on the n fit rows, from Beta(rn, (1 − r)n), and new
rows are drawn from them. The group itself has rate p. Its drift is detected if the lower confidence limit of its
difference from one of the others is above the limit of their part. p is found by bisection, on draws with a fixed
seed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairramp.core.curve import Floats, Integers
from fairramp.core.intervals import extremes_confidence, normal_quantile, shared_confidence

#: Required probability of detection.
_OFTEN = 0.9
#: Maximum number of draws; the standard error of the detection rate is then 1 percentage point.
_DRAWS = 1000
#: Maximum number of draws over all groups, which bounds the time for thousands of groups.
_ALL_DRAWS = 100_000
#: A group is compared with this many others: those its drift leads furthest away from.
_OTHERS = 8
#: Bisection steps: the rate is accurate to within 2^−10 of the initial interval.
_HALVINGS = 10


@dataclass(frozen=True)
class Compared:
    """The groups, rates and limits that a check compared.

    Attributes
    ----------
    rates, fit_rows, rows : floats of shape (n_groups,)
        Rates on the fit rows, and the effective numbers of fit rows and of new rows.
    parts : list of tuple of integers and float
        Two or more groups to compare, and the limit on their gap.
    confidence : float
        Confidence level of the gap's interval in one part.
    """

    rates: Floats
    fit_rows: Floats
    rows: Floats
    parts: list[tuple[Integers, float]]
    confidence: float


def detectable_rates(compared: Compared) -> tuple[Floats, Floats]:
    """Rates at or below and at or above which each group's drift is detected; NaN if none is."""
    below, above = np.full((2, len(compared.rates)), np.nan)
    for places, limit in compared.parts:
        for found, up in ((below, False), (above, True)):
            rates = _found(compared, places, limit, up=up)
            # A group in several parts counts as detected if any of them detects it.
            found[places] = (np.fmin if up else np.fmax)(found[places], rates)
    return below, above


def detectable_gap(compared: Compared, below: Floats, above: Floats) -> float:
    """Smallest gap at which any group's drift is detected nine times out of ten; NaN if some group's never is."""
    worst, counted = 0.0, False
    for places, limit in compared.parts:
        rates = compared.rates[places]
        for k, (low, high) in enumerate(zip(below[places], above[places], strict=True)):
            others = np.delete(rates, k)
            for found, furthest, gap in (
                (low, others.max(), others.max() - low),
                (high, 1 - others.min(), high - others.min()),
            ):
                # Skip a direction in which no rate exceeds the limit.
                if np.isfinite(found) or furthest > limit:
                    worst, counted = np.maximum(worst, gap), True  # NaN propagates
    return float(np.minimum(worst, 1.0)) if counted else float("nan")


def _found(compared: Compared, places: Integers, limit: float, *, up: bool) -> Floats:
    """The smallest drift of each group of a part that is detected often enough, as a rate."""
    # A downward drift of a rate is an upward drift of its complement.
    rates = compared.rates[places] if up else 1 - compared.rates[places]
    fit, n = compared.fit_rows[places], np.maximum(np.round(compared.rows[places]), 1.0)
    rng, size = np.random.default_rng(0), len(places)
    draws = int(np.clip(_ALL_DRAWS // size, 100, _DRAWS))
    true = rng.beta(np.maximum(rates * fit, 1e-9), np.maximum((1 - rates) * fit, 1e-9), (draws, size))
    seen = rng.binomial(n.astype(np.int64), true) / n
    others = _others(rates + _wilson(rates, n, 2.0)[1])
    theirs, their_rows = seen[:, others], n[others]  # (draws, groups, others)
    quantile = _quantiles(seen, n, compared.confidence)

    def often(p: Floats) -> Floats:
        drawn = np.random.default_rng(1).binomial(n.astype(np.int64), p, (draws, size)) / n
        z = quantile(drawn)
        down = drawn - _wilson(drawn, n, z)[0]
        reach = _wilson(theirs, their_rows, z[..., np.newaxis])[1] - theirs
        lower = drawn[..., np.newaxis] - theirs - np.hypot(down[..., np.newaxis], reach)
        shares: Floats = (lower.max(axis=2) > limit).mean(axis=0)
        return shares

    low, high = rates, np.ones(size)
    never = often(high) < _OFTEN
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = often(middle) >= _OFTEN
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(never, np.nan, high if up else 1 - high)


def _quantiles(seen: Floats, n: Floats, confidence: float) -> Callable[[Floats], Floats]:
    """The normal quantile that `gap_interval` uses for each pair after a group has drifted upward.

    It depends on how many pairs can be the extremes: t groups can have the highest rate (the drifted one and
    those whose upper limit reaches its lower limit), and b others can have the lowest.
    """
    from scipy.special import ndtri

    draws, size = seen.shape
    if size == 2:
        return lambda drawn: np.full(drawn.shape, normal_quantile(confidence))
    z = normal_quantile(extremes_confidence(size, confidence))
    lower, upper = _wilson(seen, n, z)
    offset = 2.0 * np.arange(draws)[:, np.newaxis]  # separates the draws, to search them all at once
    ordered = (np.sort(upper, axis=1) + offset).ravel()
    can_be_last = lower <= upper.min(axis=1, keepdims=True)
    b = np.maximum(can_be_last.sum(axis=1, keepdims=True) - can_be_last, 1)

    def quantile(drawn: Floats) -> Floats:
        least = _wilson(drawn, n, z)[0]
        reached = size * (np.arange(draws)[:, np.newaxis] + 1) - np.searchsorted(ordered, least + offset)
        t = 1 + reached - (upper >= least)  # `ordered` includes the group itself before its drift
        pairs = np.maximum(t * b - t * (t - 1) / 2, 1)
        found: Floats = -ndtri((1 - shared_confidence(pairs, confidence)) / 2)
        return found

    return quantile


def _wilson(rates: Floats, n: Floats, z: Any) -> tuple[Floats, Floats]:
    """Wilson intervals with a separate quantile for each rate."""
    z2 = z * z / n
    middle, half = rates + z2 / 2, np.sqrt(z2 * (rates * (1 - rates) + z2 / 4))
    return (middle - half) / (1 + z2), (middle + half) / (1 + z2)


def _others(order: Floats) -> Integers:
    """For each group, the indices of the few other groups that are lowest in `order`."""
    first = np.argsort(order, kind="stable")[: _OTHERS + 1]
    every: Integers = np.arange(len(order))
    found = [first[first != k][: min(_OTHERS, len(order) - 1)] for k in every]
    return np.stack(found)
