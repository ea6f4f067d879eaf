"""Guess where the ramps will be from counts in equal bins.

With S(u) the weight at or above u, a ramp of foot s and width γ selects

    G(s) = (1/γ) ∫ S(u) du   from s to s + γ,            (γ = 0: S(s) itself)

so two running sums over the bins give G at every bin edge, for all groups at once, and linear interpolation
between edges gives the foot for a target rate. The guess is accurate up to the distribution of rows inside their
bins. A fit refines there first, which saves solving twice; the result does not depend on the guess.
"""

from collections.abc import Callable
from math import ceil

import numpy as np

from fairramp.core.curve import Floats
from fairramp.core.points import Summary
from fairramp.data.rows import Rows
from fairramp.fit.cells import Cells
from fairramp.fit.problem import Fixed, Problem

#: Maximum number of steps in the search for the best target.
_MOST_STEPS = 40


class RoughCurve:
    """G of every group at the edges of equal bins, prepared for inversion.

    Parameters
    ----------
    weights : floats of shape (K, B)
        Weight of each group in each bin; no group is empty.
    lowest, step : float
        Start of the first bin, and width of each bin.
    width : float
        γ.
    """

    def __init__(self, weights: Floats, lowest: float, step: float, width: float) -> None:
        n_groups, n_bins = weights.shape
        before = ceil(width / step)  # a ramp may be this many bins below the first
        whole, part = divmod(width / step, 1.0)
        n_feet = before + n_bins + 1
        above = np.zeros((n_groups, n_feet + before + 1))
        np.cumsum(weights[:, ::-1], axis=1, out=above[:, n_feet - 2 : before - 1 if before else None : -1])
        above /= above[:, before, None].copy()
        above[:, :before] = 1.0
        if width > 0:
            area = np.cumsum(above[:, ::-1], axis=1)[:, ::-1]
            area -= above / 2  # trapezoids to the right of each edge
            end = int(whole)
            ends = area[:, end : end + n_feet] - (part - part**2 / 2) * above[:, end : end + n_feet]
            ends -= part**2 / 2 * above[:, end + 1 : end + 1 + n_feet]
            above = (area[:, :n_feet] - ends) * (step / width)
        self._rates = above[:, :n_feet]
        self._first, self.step = lowest - before * step, step
        self._rows = np.arange(n_groups)

    def feet(self, rates: Floats) -> Floats:
        """The approximate foot at which each group has its target rate."""
        n_above = np.count_nonzero(self._rates >= rates[:, None], axis=1)
        j = np.minimum(np.maximum(n_above, 1), self._rates.shape[1] - 1)
        high, low = self._rates[self._rows, j - 1], self._rates[self._rows, j]
        part = np.where(high > low, (high - rates) / np.where(high > low, high - low, 1.0), 0.0)
        feet: Floats = self._first + (j - 1 + np.minimum(np.maximum(part, 0.0), 1.0)) * self.step
        return feet

    def rates(self, foot: float) -> Floats:
        """The approximate G of each group at a common foot."""
        place = min(max((foot - self._first) / self.step, 0.0), self._rates.shape[1] - 1.0)
        j = min(int(place), self._rates.shape[1] - 2)
        rates: Floats = self._rates[:, j] + (place - j) * (self._rates[:, j + 1] - self._rates[:, j])
        return rates


def look_ahead(
    rows: Rows, summary: Summary, cells: Cells, problem: Problem, rates: Floats | None
) -> tuple[Summary, Floats | None]:
    """The summary with finer points where the solution will probably need them, and a guess of the level."""
    rough = rows.rough(problem.ramp_width)
    if rough is None:
        return summary, None
    curve = RoughCurve(rough.weights[cells.compared], problem.ends[0], rough.step, problem.ramp_width)
    shares = cells.of_event(summary).shares
    target, feet = likely_ramps(curve, shares, problem) if rates is None else (None, curve.feet(rates))
    closer = rough.closer(summary, feet[cells.group], problem.ramp_width, problem.cutoff)
    return closer, None if target is None else np.array([target])


def likely_ramps(curve: RoughCurve, shares: Floats, problem: Problem) -> tuple[float, Floats]:
    """The approximate target rate and feet that `solve_parity` will find."""
    band, own_foot = problem.band, problem.own_foot

    def balance(rho: float) -> float:
        """Σ π_k s_k t_k at a target; decreases with the target."""
        if not band.is_open:
            return float(shares @ curve.feet(np.full(len(shares), rho)) - own_foot)
        return sum(
            slope * float(shares @ side(curve.feet(np.full(len(shares), edge)) - own_foot, 0.0))
            for edge, slope, side in zip(band.edges(rho), band.slopes, (np.minimum, np.maximum), strict=True)
            if 0 <= edge <= 1  # an edge outside [0, 1] cannot bind
        )

    own_rates = curve.rates(own_foot)
    target = (
        problem.level.rate
        if isinstance(problem.level, Fixed)
        else _falling_root(balance, float(shares @ own_rates), curve.step / 64)
    )
    rates = problem.clipped(own_rates, target)
    return target, np.where(rates == own_rates, own_foot, curve.feet(rates))


def _falling_root(f: Callable[[float], float], start: float, tolerance: float) -> float:
    """Root of a decreasing function on [0, 1], up to the tolerance, by the Illinois method."""
    left, right, at_left, at_right = 0.0, 1.0, np.inf, -np.inf
    place, before = start, 0.0
    for _ in range(_MOST_STEPS):
        value = f(place)
        if abs(value) <= tolerance or right - left < tolerance / 64:
            break
        twice = 0.5 if value * before > 0 else 1.0  # halve the side that did not move, which speeds up the other
        if value > 0:
            left, at_left, at_right = place, value, at_right * twice
        else:
            right, at_right, at_left = place, value, at_left * twice
        before = value
        place = (
            left + (right - left) * at_left / (at_left - at_right)
            if np.isfinite(at_left - at_right)
            # Only one side so far: scores and rates both have a range of about 1.
            else min(max(place + 2 * value, (left + place) / 2), (right + place) / 2)
        )
    return place
