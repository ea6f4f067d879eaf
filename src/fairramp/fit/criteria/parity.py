"""Statistical parity: the thresholds that make selection rates equal at the least cost.

With signed scores f = x − cutoff, ramp width γ and c = ½ (centered) or 0 (the paper's ramp), find

    minimize    Σ_i w_i (γ/2 · (h_i − c)² − f_i h_i)
    subject to  0 ≤ h_i ≤ 1   and   the rate of every group k is in the band at ρ,

a band of allowed rates such as [ρ − ε/2, ρ + ε/2] (see `core.bands`). The optimum is one ramp per group, h =
clip(c + (f − t_k)/γ, 0, 1), with one unknown each:

    G_k(0) inside the band   →  t_k = 0, the classifier's own cutoff
    G_k(0) outside           →  G_k(t_k) = the nearer edge of the band

and, among thresholds with the same rate, the one nearest 0. At the best ρ the multipliers balance:
0 ∈ Σ_k π_k T_k(ρ), where π_k is the group's share of the weight and T_k(ρ) the interval of its admissible
multipliers, times the slope of the edge that they belong to: 1, but τ for the lower edge τρ of a ratio. Both ends
of that sum decrease with ρ and are linear between breakpoints.

| symbol | in the interface                         |
| ------ | ---------------------------------------- |
| ε, τ   | max_gap, min_ratio                       |
| ρ      | target_rate                              |
| γ      | ramp_width (here in the scores' units)   |
| c      | ½ for ramp="centered", 0 for "paper"     |
| t      | threshold − cutoff                       |

Unlike in the paper, scores are not doubled to 2p − 1. Subtracting the cutoff can round two different scores to
the same number, but a rule that splits ties (γ = 0) must distinguish them. So the points keep the user's units,
and t is only ever a difference of thresholds. Costs and γ halve together.

Reference: Alabdulmohsin and Lucic, A Near-Optimal Algorithm for Debiasing Trained Machine Learning
Models, NeurIPS 2021; Theorem 3 in Appendix B for γ → 0.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from fairramp.core.curve import RATE_TOLERANCE, Floats, RateCurve, ScoreDistribution
from fairramp.core.events import SELECTION, Event
from fairramp.core.points import Summary
from fairramp.fit.problem import Fixed, Problem, Solution

#: Number of rates evaluated at once in the search for the best target.
_TRIED_AT_ONCE = 1 << 12
#: Narrower ramps magnify the last digits of the best target, which is then refined.
_NARROW = 1e-3
#: A sum of multipliers this small relative to the scores and the ramp is 0: they have no more digits.
_BALANCE_TOLERANCE = 1e-14


@dataclass(frozen=True)
class EqualRates:
    """Equal rates of all groups, over the rows of an event."""

    event: Event

    def solve(self, summary: Summary, problem: Problem, near: Floats | None = None) -> Solution:
        """Ramps of least cost with rates in the band."""
        return solve_parity(
            summary.distribution(), summary.shares, problem, None if near is None else float(near[0])
        )


PARITY = EqualRates(SELECTION)


def solve_parity(
    distribution: ScoreDistribution, shares: Floats, problem: Problem, near: float | None = None
) -> Solution:
    """Thresholds of least cost with every group's rate in the band.

    Parameters
    ----------
    distribution : ScoreDistribution
        The scores of K groups.
    shares : floats of shape (K,)
        π_k, each group's share of the total weight.
    problem : Problem
        The problem to solve.
    near : float, optional
        A guess of the best level; a good one saves time and changes nothing else.
    """
    curve = RateCurve(distribution, problem.ramp_width)
    ramp_rates = _own_ramp_rates(distribution, problem)
    if isinstance(problem.level, Fixed):
        target = problem.level.rate
    else:
        own_rate = float(shares @ distribution.rates_from(np.full(len(shares), problem.cutoff)))
        target = _best_target(curve, shares, problem, ramp_rates, own_rate, own_rate if near is None else near)
        if 0 < problem.ramp_width < _NARROW:
            target = _sharpened(curve, shares, problem, ramp_rates, target)

    rates = problem.clipped(ramp_rates, target)
    # Strictly inside the band, a group's multiplier is 0 and nothing else about the group matters.
    low, high = problem.band.edges(target)
    free = (rates > low + RATE_TOLERANCE) & (rates < high - RATE_TOLERANCE)
    return _place(curve, rates, problem, target, own=rates == ramp_rates, free=free)


def place_ramps(distribution: ScoreDistribution, rates: Floats, problem: Problem) -> Solution:
    """Thresholds at which each group has a given rate of its own.

    A group whose rate is NaN keeps the classifier's own cutoff.
    """
    [solution] = place_each(RateCurve(distribution, problem.ramp_width), rates[None], problem)
    return solution


def place_each(curve: RateCurve, rates: Floats, problem: Problem) -> list[Solution]:
    """`place_ramps` for several sets of rates, of shape (m, K)."""
    own = np.isnan(rates)
    if own.any():
        rates = np.where(own, _own_ramp_rates(curve.distribution, problem), rates)
    none = np.zeros(rates.shape[1], dtype=bool)
    return [
        _place(curve, wanted, problem, problem.band.level_of(wanted), own=keep, free=none)
        for wanted, keep in zip(rates, own, strict=True)
    ]


def _own_ramp_rates(distribution: ScoreDistribution, problem: Problem) -> Floats:
    """The rate of each group's ramp at the cutoff.

    At width 0 the ties there are free: any rate between P(x > cutoff) and P(x ≥ cutoff) is possible, and the
    classifier's own rate is the upper end.
    """
    feet, width = np.full(len(distribution.first), problem.own_foot), problem.ramp_width
    return distribution.rates(feet, width) if width > 0 else distribution.rates_from(feet)


def _place(
    curve: RateCurve,
    rates: Floats,
    problem: Problem,
    target: float,
    *,
    own: npt.NDArray[np.bool_],
    free: npt.NDArray[np.bool_],
) -> Solution:
    """Ramps with the given rates, each at the foot that the problem prefers.

    `own` marks groups that keep the cutoff, `free` those whose multiplier is 0.
    """
    distribution, n_groups = curve.distribution, len(rates)
    rates = np.where(own, rates, problem.snapped(curve, rates))
    lowest, highest = curve.feet(rates)
    feet = np.where(own, problem.own_foot, problem.chosen(lowest, highest))
    sloping = (lowest == highest) & (feet != problem.own_foot)
    if sloping.any():
        feet = np.where(sloping, curve.polish(feet, rates), feet)
    if problem.ramp_width > 0:
        ties = np.full(n_groups, problem.offset)
        rates = distribution.rates(feet, problem.ramp_width)
    else:
        ties, rates = _split_ties(distribution, feet, rates, problem.cutoff)
    return Solution(
        levels=np.array([target]),
        feet=feet,
        thresholds=feet + problem.offset * problem.ramp_width,
        width=problem.ramp_width,
        ties=ties,
        rates=rates,
        multiplier_feet=np.where(free, problem.own_foot, np.stack([lowest, highest])),
    )


def _split_ties(
    distribution: ScoreDistribution, thresholds: Floats, rates: Floats, cutoff: float
) -> tuple[Floats, Floats]:
    """Selection probability τ = (r − P(x > t)) / P(x = t) at the threshold, and the resulting rates.

    If no score is equal to the threshold, τ is 0, or 1 at the classifier's own cutoff, where it selects.
    """
    above, tied = distribution.rates_above(thresholds), distribution.rates_from(thresholds)
    tied = tied - above
    with np.errstate(divide="ignore", invalid="ignore"):
        chances = np.clip((rates - above) / tied, 0.0, 1.0)
    chances = np.where(tied > 0, chances, np.where(thresholds == cutoff, 1.0, 0.0))
    return chances, above + chances * tied


def _best_target(
    curve: RateCurve,
    shares: Floats,
    problem: Problem,
    ramp_rates: Floats,
    own_rate: float,
    near: float,
) -> float:
    """The ρ with 0 ∈ Σ π_k T_k(ρ); if there are several, the one nearest the classifier's own overall rate."""
    band = problem.band
    rounding = _BALANCE_TOLERANCE * (1 + abs(problem.own_foot) + problem.ramp_width)

    def balance(rhos: Floats) -> Iterator[tuple[float, float]]:
        """Both ends of Σ π_k T_k(ρ), for many ρ at once."""
        edges = np.stack(band.edges(rhos)[::-1])[:, :, None]
        rates = np.broadcast_to(np.clip(edges, 0.0, 1.0), (2, len(rhos), len(shares)))
        sums = []
        for feet in curve.feet(rates if band.is_open else rates[:1]):
            t = feet - problem.own_foot
            if band.is_open:
                # The upper edge only pushes down (t ≥ 0), the lower only up (t ≤ 0); an edge outside [0, 1]
                # cannot bind.
                t[0] = band.slopes[1] * np.where(edges[0] <= 1, np.maximum(t[0], 0.0), 0.0)
                t[0] += band.slopes[0] * np.where(edges[1] >= 0, np.minimum(t[1], 0.0), 0.0)
                t[0][np.abs(t[0]) <= rounding] = 0.0  # at the cutoff
            total = t[0] @ shares
            moved = (t[0] != 0) @ shares  # the sum over light groups can be small without being a rounding error
            sums.append(np.where(np.abs(total) <= rounding * np.minimum(100 * moved, 1.0), 0.0, total).tolist())
        return zip(*sums, strict=True)

    breakpoints = curve.breakpoints()
    if band.is_open:
        breakpoints = np.concatenate(band.levels(np.concatenate([breakpoints, ramp_rates])))

    seen: dict[float, tuple[float, float]] = {}

    def ends(rhos: list[float]) -> list[tuple[float, float]]:
        """The balance at several values of ρ, each computed once."""
        new = [rho for rho in rhos if rho not in seen]
        if new:
            seen.update(zip(new, balance(np.array(new)), strict=True))
        return [seen[rho] for rho in rhos]

    n_tried = min(max(_TRIED_AT_ONCE // len(shares), 2), 32)
    # The first ρ at which the lower end is no longer above 0 …
    left, right = _bracket(
        breakpoints, lambda rhos: [lo <= 0 for lo, _ in ends(rhos)], n_tried, near, partial(_root, ends)
    )
    first = _root(ends, left, right)
    if first < right or ends([first])[0][0] < 0:
        return first
    # … and, where the balance stays at 0, the last at which the upper end is not yet below 0.
    left, right = _bracket(
        breakpoints, lambda rhos: [hi < 0 for _, hi in ends(rhos)], n_tried, near, partial(_root, ends)
    )
    last = right if ends([right])[0][1] >= 0 else _root(ends, left, right)
    return min(max(own_rate, first), max(last, first))


def _sharpened(curve: RateCurve, shares: Floats, problem: Problem, ramp_rates: Floats, target: float) -> float:
    """The best target to the last digits, which a narrow ramp magnifies.

    A Newton step on Σ π_k s_k t_k = 0, where s_k is the slope of the edge, with polished feet. Used only if every
    group moved by the band is on a sloping piece, where a derivative exists.
    """
    d, band, width = curve.distribution, problem.band, problem.ramp_width
    for _ in range(4):
        rates = problem.clipped(ramp_rates, target)
        moved = (rates != ramp_rates) if band.is_open else np.ones(len(shares), dtype=bool)
        slopes = np.where(ramp_rates < rates, *band.slopes)
        lowest, highest = curve.feet(rates)
        if not moved.any() or np.any(moved & (lowest != highest)):
            return target
        feet = curve.polish(np.where(moved, lowest, problem.own_foot), rates)
        on_ramp = d.rates_above(feet) - d.rates_from(feet + width)
        if np.any(moved & (on_ramp <= 0)):
            return target
        give = (shares * slopes**2 * width / np.where(moved, on_ramp, np.inf)).sum()
        step = float((shares * slopes * np.where(moved, feet - problem.own_foot, 0.0)).sum() / give)
        if not abs(step) < _NARROW or not 0 < target + step < 1:
            return target
        target += step
        if abs(step) < 1e-16:
            break
    return target


def _bracket(
    breakpoints: Floats,
    holds: Callable[[list[float]], list[bool]],
    n_tried: int,
    near: float,
    crossing: Callable[[float, float], float],
) -> tuple[float, float]:
    """Neighboring breakpoints in [0, 1] between which a condition starts to hold.

    (0, 0) if it holds from the start, (1, 1) if it never does. Many values are tried at once, because one costs
    little less than a few dozen: first values around a guess, from near to far; then, while too many breakpoints
    are left, two beside the point where a straight line would cross 0 and evenly spaced ones; finally the
    breakpoints themselves.
    """

    def narrow(left: float, places: list[float], right: float) -> tuple[float, float]:
        """Neighbors among increasing values; the condition fails at left and holds at right."""
        while places:
            step = -(-len(places) // n_tried)
            tried = places[step - 1 :: step]
            i = [*holds(tried), True].index(True)
            left, right = [left, *tried][i], [*tried, right][i]
            places = places[i * step : (i + 1) * step - 1]
        return left, right

    left, right = -1.0, 2.0
    at_once = n_tried // 2  # distances on either side
    distances = 0.5 ** np.arange(17, 2, -1 if at_once > 4 else -4)
    for i in range(0, len(distances), at_once):
        if left < 0 or right > 1:
            some = distances[i : i + at_once]
            ends = [0.0, 1.0] if i + at_once >= len(distances) else []
            places = np.unique(np.clip([*(near - some), *(near + some), *ends], 0.0, 1.0))
            left, right = narrow(left, places[(places > left) & (places < right)].tolist(), right)
    if left < 0 or right > 1:
        return (0.0, 0.0) if left < 0 else (1.0, 1.0)
    straight = True
    for _ in range(6):
        breakpoints = breakpoints[(breakpoints > left) & (breakpoints < right)]
        if len(breakpoints) <= n_tried:
            break
        width = right - left
        places = np.linspace(left, right, n_tried + 2)[1:-1]
        if straight:
            beside = crossing(left, right) + width / 64 * np.array([-1.0, 1.0])
            places = np.sort(np.concatenate([places[: n_tried - 2], beside]))
        left, right = narrow(left, places[(places > left) & (places < right)].tolist(), right)
        straight = right - left < width / 8
    inside = np.unique(breakpoints[(breakpoints > left) & (breakpoints < right)])
    return narrow(left, inside.tolist(), right)


def _root(ends: Callable[[list[float]], list[tuple[float, float]]], left: float, right: float) -> float:
    """Where the balance crosses 0 on [left, right], where it is linear."""
    (start, _), (_, end) = ends([left, right])
    if left == right or end >= 0:
        return right
    if start <= 0:
        return left
    return left + (right - left) * start / (start - end)
