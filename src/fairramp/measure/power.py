"""What a check can find: the rates of one group that it finds nine times in ten, while all others stay.

The other groups' true rates scatter around those of the fit, r ~ Beta(rn, (1 − r)n) for n fit rows, and new rows
are drawn from them. The group itself has a rate p of its own. It is found if the lower limit of its difference
from one of the others is above the limit of their part. p is searched for by halving, on draws of a fixed seed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairramp.core.curve import Floats, Integers
from fairramp.core.intervals import extremes_confidence, normal_quantile, shared_confidence

#: How often a drift is to be found.
_OFTEN = 0.9
#: Draws at most: the share found is then right to 1 percentage point (standard error).
_DRAWS = 1000
#: Draws of all groups together, which bounds the time for thousands of groups.
_ALL_DRAWS = 100_000
#: A group is compared with this many others: those from which a drift is furthest.
_OTHERS = 8
#: Halvings of the rate: right to 2^−10 of what is left.
_HALVINGS = 10


@dataclass(frozen=True)
class Compared:
    """What a check compared.

    Attributes
    ----------
    rates, fit_rows, rows : floats of shape (n_groups,)
        Rates on the fit rows, and the effective numbers of fit rows and of new rows.
    parts : list of tuple of integers and float
        Groups that are compared, two or more, and the limit of their gap.
    confidence : float
        Of the limits of one part's gap.
    """

    rates: Floats
    fit_rows: Floats
    rows: Floats
    parts: list[tuple[Integers, float]]
    confidence: float


def detectable_rates(compared: Compared) -> tuple[Floats, Floats]:
    """For each group, the rates at or below and at or above which it is found nine times in ten; NaN for none."""
    below, above = np.full((2, len(compared.rates)), np.nan)
    for places, limit in compared.parts:
        for found, up in ((below, False), (above, True)):
            rates = _found(compared, places, limit, up=up)
            # A group of several parts is found by the one that finds it first.
            found[places] = (np.fmin if up else np.fmax)(found[places], rates)
    return below, above


def detectable_gap(compared: Compared, below: Floats, above: Floats) -> float:
    """The gap from which a drift of any one group is found nine times in ten; NaN where some never is."""
    worst, counted = 0.0, False
    for places, limit in compared.parts:
        rates = compared.rates[places]
        for k, (low, high) in enumerate(zip(below[places], above[places], strict=True)):
            others = np.delete(rates, k)
            for found, furthest, gap in (
                (low, others.max(), others.max() - low),
                (high, 1 - others.min(), high - others.min()),
            ):
                # A direction in which no rate leads above the limit does not count.
                if np.isfinite(found) or furthest > limit:
                    worst, counted = np.maximum(worst, gap), True  # NaN stays
    return float(np.minimum(worst, 1.0)) if counted else float("nan")


def _found(compared: Compared, places: Integers, limit: float, *, up: bool) -> Floats:
    """The nearest rates of each group of a part that are found often enough."""
    # A drift downwards is one upwards of the rates of "no".
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
    """The normal quantile that `gap_interval` takes for each pair, once a group has drifted upwards.

    It depends on how many pairs can be the extremes: t groups, the drifted one and those whose upper limit
    reaches its lower one, beside b others that can have the lowest rate.
    """
    from scipy.special import ndtri

    draws, size = seen.shape
    if size == 2:
        return lambda drawn: np.full(drawn.shape, normal_quantile(confidence))
    z = normal_quantile(extremes_confidence(size, confidence))
    lower, upper = _wilson(seen, n, z)
    offset = 2.0 * np.arange(draws)[:, np.newaxis]  # so that all draws are searched at once
    ordered = (np.sort(upper, axis=1) + offset).ravel()
    can_be_last = lower <= upper.min(axis=1, keepdims=True)
    b = np.maximum(can_be_last.sum(axis=1, keepdims=True) - can_be_last, 1)

    def quantile(drawn: Floats) -> Floats:
        least = _wilson(drawn, n, z)[0]
        reached = size * (np.arange(draws)[:, np.newaxis] + 1) - np.searchsorted(ordered, least + offset)
        t = 1 + reached - (upper >= least)  # the group itself is in `ordered` as it was
        pairs = np.maximum(t * b - t * (t - 1) / 2, 1)
        found: Floats = -ndtri((1 - shared_confidence(pairs, confidence)) / 2)
        return found

    return quantile


def _wilson(rates: Floats, n: Floats, z: Any) -> tuple[Floats, Floats]:
    """Wilson's limits, with a quantile for each rate."""
    z2 = z * z / n
    middle, half = rates + z2 / 2, np.sqrt(z2 * (rates * (1 - rates) + z2 / 4))
    return (middle - half) / (1 + z2), (middle + half) / (1 + z2)


def _others(order: Floats) -> Integers:
    """For each group the places of others, of which at most a few: those lowest in order."""
    first = np.argsort(order, kind="stable")[: _OTHERS + 1]
    every: Integers = np.arange(len(order))
    found = [first[first != k][: min(_OTHERS, len(order) - 1)] for k in every]
    return np.stack(found)
