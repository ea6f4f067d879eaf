"""Gain curves: the rates that agree best with the labels.

Calibrated scores η of a group, sorted downward, are blocks of weight W_b. Selecting from the top gains

    g = Σ W_b (a η_b − b (1 − η_b))      a, b ≥ 0: the costs of a false negative and of a false positive

compared to selecting nobody: the expected cost that is avoided. Meanwhile the rate x of an event rises, from 0 to
1, in steps of

    W_b              for selection rates
    W_b η_b          for true positive rates; blocks with η = 0 are never wanted
    W_b (1 − η_b)    for false positive rates; blocks with η = 1 are always wanted

As a function of x, the slope of g falls for all three, so g is concave and piecewise linear, and a group's best
rate is where the slope changes its sign. In a band of levels u the best rates maximize

    F(u) = Σ_k max {g_k(x) : x in the band at u},

which is concave and piecewise linear in one number: its slope, a sum over the groups that the band stops, is
searched for its change of sign among the breakpoints. Of several best levels, the one nearest the overall rate
of the event without a band is taken. Costs a = b give accuracy; a = 1/P and b = 1/N, for P positive and N
negative rows, balanced accuracy.

Calibration chooses rates only. What ramps with these rates gain on the rows themselves, `RampGains` computes: by
noise, a looser band can be worse on the rows than a stricter one, which it contains. So the rates of several
stricter bands are compared, too.
"""

from dataclasses import dataclass

import numpy as np

from fairramp.core.bands import Band
from fairramp.core.cells import strata_slices
from fairramp.core.curve import RATE_TOLERANCE, Floats, Integers, RateCurve, ScoreDistribution, sort_keys
from fairramp.core.events import SELECTION, Event
from fairramp.core.points import Summary
from fairramp.fit.problem import Problem

#: Number of levels whose slopes are computed at once.
_TRIED_AT_ONCE = 1 << 12


@dataclass(frozen=True)
class Costs:
    """What each kind of error costs.

    Attributes
    ----------
    false_positive, false_negative : float
        Not negative; not both 0.
    """

    false_positive: float = 1.0
    false_negative: float = 1.0

    def gains(self, weight: Floats, positives: Floats) -> Floats:
        """What selecting points of this weight, Σ w·y of it positive, gains compared to not selecting them."""
        return self.false_negative * positives - self.false_positive * (weight - positives)


def weight_of(event: Event, weight: Floats, positives: Floats) -> Floats:
    """The weight of an event's rows, given that of all rows and of those with label 1."""
    if event.label is None:
        return weight
    return positives if event.label else np.maximum(weight - positives, 0.0)


class GainCurves:
    """g of every group, and the best rates in a band.

    Parameters
    ----------
    calibrated : Summary
        Calibrated scores, as points at η.
    costs : Costs
        What each kind of error costs.
    event : Event
        Which rows the rates are about; every group has some.
    strata : integers of shape (K,), optional
        Index of each cell's stratum; each stratum has a level of its own.
    """

    def __init__(
        self, calibrated: Summary, costs: Costs, event: Event = SELECTION, strata: Integers | None = None
    ) -> None:
        p = calibrated.points
        order = np.lexsort((-p.place, p.group))
        part = weight_of(event, p.weight, p.weight * p.place)[order]
        some = part > RATE_TOLERANCE * p.weight[order]
        order, part = order[some], part[some]
        group, level = p.group[order], p.place[order]
        sizes = np.bincount(group, minlength=len(calibrated.labels))
        last = np.cumsum(sizes) - 1
        first = last + 1 - sizes
        totals = np.add.reduceat(part, first)
        gain = costs.gains(np.ones(len(group)), level)  # of one unit of weight
        tolerance = RATE_TOLERANCE * (costs.false_positive + costs.false_negative)
        slope = gain * (p.weight[order] / part)  # of one unit of the event's weight
        # Rate at the end of each block; the blocks of a group add up to 1.
        ends = np.clip(np.cumsum(part / totals[group]) - group, 0.0, 1.0)
        ends[last] = 1.0
        starts = np.concatenate([[0.0], ends[:-1]])
        starts[first] = 0.0
        # A group's best rates: from where its gain no longer rises to where it begins to fall.
        n_up = np.bincount(group[gain > tolerance], minlength=len(sizes))
        n_flat = np.bincount(group[gain >= -tolerance], minlength=len(sizes))
        self._best = np.where(n_flat > 0, ends[first + np.maximum(n_flat, 1) - 1], 0.0)
        scaled = totals / totals.max()  # the sum of huge weights must not overflow
        self._shares = scaled / scaled.sum()
        #: The cells that share a level, and the slope of their F.
        self._parts = []
        for cells in strata_slices(strata, len(sizes)):
            blocks = slice(first[cells.start], last[cells.stop - 1] + 1)
            rises = np.arange(blocks.start, blocks.stop) - first[group[blocks]] < n_up[group[blocks]]
            falls = np.arange(blocks.start, blocks.stop) - first[group[blocks]] >= n_flat[group[blocks]]
            share = slope[blocks] * self._shares[group[blocks]]
            edges = np.concatenate([starts[blocks], ends[blocks]])
            rising, falling = (np.concatenate([share * part, -share * part]) for part in (rises, falls))
            falling[len(share) :][ends[blocks] == 1.0] = 0.0  # beyond 1 is no rate: nothing to gain there
            few = tolerance * float(self._shares[cells].sum())
            self._parts.append((cells, _Slopes(edges, rising, falling, few)))

    def best_rates(self, band: Band) -> Floats:
        """The rate of each group at the best level of its stratum."""
        found = np.empty_like(self._best)
        for cells, slopes in self._parts:
            wanted = float(np.average(self._best[cells], weights=self._shares[cells]))
            low, high = band.edges(slopes.best_level(band, wanted))
            found[cells] = np.clip(self._best[cells], max(low, 0.0), min(high, 1.0))
        return found


class _Slopes:
    """The slope of F: the rising groups' slopes at the upper edge, and the falling groups' at the lower edge.

    Parameters
    ----------
    edges : floats
        Rates at which slopes change.
    rising, falling : floats
        By how much, for groups whose gain still rises, and for those whose gain falls.
    tolerance : float
        Smaller slopes are 0.
    """

    def __init__(self, edges: Floats, rising: Floats, falling: Floats, tolerance: float) -> None:
        order = np.argsort(edges, kind="stable")
        self._edges, self._tolerance = edges[order], tolerance
        self._rising, self._falling = (np.append(0.0, np.cumsum(steps[order])) for steps in (rising, falling))

    def best_level(self, band: Band, wanted: float) -> float:
        """The best level; of several, the one nearest `wanted`."""
        places = np.sort(np.clip(np.concatenate(band.levels(self._edges)), 0.0, 1.0))
        # First some of the places, then those between two of them.
        for step in (max(len(places) // _TRIED_AT_ONCE, 1), 1):
            slopes = self._at(band, places[::step])  # they fall
            first, last = np.searchsorted(-slopes, [-self._tolerance, self._tolerance], side="left").tolist()
            if step == 1:
                break
            places = places[max(first - 1, 0) * step : last * step + 1]
        ends = places[min(first, len(places) - 1)], places[min(last, len(places) - 1)]
        return float(min(max(wanted, ends[0]), ends[1]))

    def _at(self, band: Band, levels: Floats) -> Floats:
        """The slope of F to the right of each level."""
        low, high = (np.searchsorted(self._edges, e + RATE_TOLERANCE, side="right") for e in band.edges(levels))
        slopes: Floats = band.slopes[1] * self._rising[high] + band.slopes[0] * self._falling[low]
        return slopes


class RampGains:
    """What ramps with given rates gain on labeled points.

    Parameters
    ----------
    scores : Summary
        The points.
    weights : floats, one per point
        Their weight in the rates, which may be 0.
    gains : floats, one per point
        The gain of selecting a point.
    problem : Problem
        Width and default place of the ramps.
    """

    def __init__(self, scores: Summary, weights: Floats, gains: Floats, problem: Problem) -> None:
        d = ScoreDistribution(scores.sizes, scores.points.place, weights)
        self._curve, self._problem = RateCurve(d, problem.ramp_width), problem
        self._keys = sort_keys(d.group, d.scores)
        values, places = np.zeros(len(d.scores)), np.where(d.is_point, d.scores, 0.0)
        values[d.is_point] = gains
        self._gain, self._moment, self._weight = map(d.prefix_sums, (values, values * places, d.weights))

    def at(self, rates: Floats) -> Floats:
        """The gain of each group, for rates of shape (m, K)."""
        d, width = self._curve.distribution, self._problem.ramp_width
        rates = self._problem.snapped(self._curve, rates)
        feet = self._problem.chosen(*self._curve.feet(rates))
        which = np.broadcast_to(np.arange(rates.shape[1]), feet.shape)
        if width > 0:
            start = np.searchsorted(self._keys, sort_keys(which, feet), side="right")
            stop = np.searchsorted(self._keys, sort_keys(which, feet + width))
            gain, moment = (sums[stop] - sums[start] for sums in (self._gain, self._moment))
            partly = (moment - feet * gain) / width
        else:  # ties at the threshold are selected with the probability that gives the rate
            start = np.searchsorted(self._keys, sort_keys(which, feet))
            stop = np.searchsorted(self._keys, sort_keys(which, feet), side="right")
            gain, weight = (sums[stop] - sums[start] for sums in (self._gain, self._weight))
            wanted = rates * d.totals - (self._weight[d.last] - self._weight[stop])
            partly = gain * np.clip(
                np.divide(wanted, weight, out=np.zeros_like(wanted), where=weight > 0), 0.0, 1.0
            )
        found: Floats = partly + self._gain[d.last] - self._gain[stop]
        return found
