"""Equalized odds: equal true positive rates and equal false positive rates.

One ramp has two numbers, foot and width, which is enough for two rates. The curve of a group that is ranked
better runs above that of the others. To come down to a common point, it takes a wider ramp: nobody with a high
score is refused by a coin that nobody with a low score ever meets, as in a mixture of two thresholds and chance.

With reach_k(x) the highest true positive rate of group k at a false positive rate of x (see `fit.roc`), P_k and
N_k the group's weights of label 1 and 0, and a and b the costs of a false negative and of a false positive, find

    max_gap = 0    the x with the largest   Σ a P_k min_k reach_k(x) − Σ b N_k x
    max_gap = ε    p and q, and (x_k, y_k) in the square from (p, q) to (p + ε, q + ε) with y_k ≤ reach_k(x_k) and
                   the largest              Σ (a P_k y_k − b N_k x_k)

Envelopes are straight between their corners. Without a gap, the best x is therefore a corner or a crossing of two
envelopes. With a gap, the best square is found by division (see `fit.squares`).

Each group then gets the first ramp, from the width that reaches most and wider, with exactly these rates. If its
point is on the diagonal, it gets a constant probability.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairramp.core.cells import strata_slices
from fairramp.core.checks import MAX_RAMP_WIDTH, MIN_RAMP_WIDTH
from fairramp.core.curve import RATE_TOLERANCE, Floats, Integers
from fairramp.core.events import ODDS
from fairramp.core.points import Summary
from fairramp.fit.problem import Problem, Solution
from fairramp.fit.roc import Envelope, Rates, Roc
from fairramp.fit.squares import best_square

#: Points this close to the diagonal are on it: no ramp is wide enough to attain them.
_DIAGONAL = 2e-6
#: Steps of a search by subdivision, and values tried in each.
_ROUNDS, _TRIED = 13, 17
#: Number of widths that are tried for a wanted rate.
_WIDTHS = 192


class EqualizedOdds:
    """The criterion; `fit.solver` calls `choose_points` and `place_odds`, which need both kinds of rows."""

    event = ODDS

    def solve(self, summary: Summary, problem: Problem, near: Floats | None = None) -> Solution:
        """Never called."""
        raise AssertionError("equalized odds need rows of both labels")


EQUALIZED_ODDS = EqualizedOdds()


@dataclass(frozen=True)
class Points:
    """Where each group shall be.

    Attributes
    ----------
    x : floats of shape (K,)
        False positive rates.
    y : floats of shape (K,)
        Highest allowed true positive rates.
    widths : floats of shape (K,)
        The width that reaches most at x; wider ramps are searched for y.
    """

    x: Floats
    y: Floats
    widths: Floats


def rocs_of(by_label: Sequence[Summary], narrowest: float) -> list[Roc]:
    """The curves of all groups, given the rows with label 0 and those with label 1."""

    def rates(summary: Summary) -> list[Rates]:
        ends = np.cumsum(summary.sizes)[:-1]
        parts = (np.split(part, ends) for part in (summary.points.place, summary.points.weight))
        return list(map(Rates, *parts))

    return [Roc(no, yes, narrowest) for no, yes in zip(*map(rates, by_label), strict=True)]


def best_points(rocs: Sequence[Roc], gains: Floats, losses: Floats, max_gap: float) -> Points:
    """The points of least cost: `gains` are a P_k, for true positives, `losses` b N_k, for false positives."""
    envelopes = [roc.envelope() for roc in rocs]
    if max_gap == 0:
        x = _best_common(envelopes, float(gains.sum()), float(losses.sum()))
        wanted = np.full(len(rocs), x)
        y = np.full(len(rocs), 1.0)
    else:
        wanted, y = best_square(envelopes, gains, losses, max_gap)
    widths = [roc.reached(float(x))[1] for roc, x in zip(rocs, wanted, strict=True)]
    return Points(wanted, y, np.array(widths))


def middle_point(roc: Roc, x: Floats, y: Floats) -> Points:
    """The middle of the groups' points, or the point below it that another curve reaches."""
    at, most = ((part.min() + part.max()) / 2 for part in (x, y))
    return Points(np.array([at]), np.array([most]), np.array([roc.reached(float(at))[1]]))


def _best_common(envelopes: Sequence[Envelope], gain: float, loss: float) -> float:
    """The common false positive rate of least cost."""
    x = np.unique(np.concatenate([e.x for e in envelopes]))
    height = np.min([e.at(x) for e in envelopes], axis=0)
    attained = (height - x > _DIAGONAL) | (x == 0) | (x == 1)
    values = np.where(attained, gain * height - loss * x, -np.inf)
    best, found = float(x[np.argmax(values)]), float(values.max())
    # Between corners all envelopes are straight, and their minimum is concave.
    start, stop = (np.array([e.at(x[:-1]) for e in envelopes]), np.array([e.before(x[1:]) for e in envelopes]))
    bound = gain * stop.min(axis=0) - loss * x[:-1]
    for i in np.argsort(-bound).tolist():
        if bound[i] <= found:
            break
        at, height_at = _highest(start[:, i], stop[:, i], loss * (x[i + 1] - x[i]) / gain if gain > 0 else np.inf)
        place = float(x[i] + at * (x[i + 1] - x[i]))
        value = gain * height_at - loss * place
        if value > found and height_at - place > _DIAGONAL:
            best, found = place, value
    return best


def _highest(start: Floats, stop: Floats, fall: float) -> tuple[float, float]:
    """Where the lowest of several lines over [0, 1], less `fall` times the place, is highest; and its height."""
    slope, left, right = stop - start - fall, 0.0, 1.0
    for _ in range(len(start) + 2):
        i = min(
            np.flatnonzero(start + slope * left <= (start + slope * left).min() + 1e-16), key=lambda k: slope[k]
        )
        j = max(
            np.flatnonzero(start + slope * right <= (start + slope * right).min() + 1e-16), key=lambda k: slope[k]
        )
        if slope[i] <= 0 or slope[j] >= 0:
            at = left if slope[i] <= 0 else right
            break
        at = float(np.clip((start[j] - start[i]) / (slope[i] - slope[j]), left, right))
        lines = start + slope * at
        lowest = int(np.argmin(lines))
        if lines[lowest] >= lines[i] - 1e-16 or at in (left, right):
            break
        left, right = (at, right) if slope[lowest] > 0 else (left, at)
    return at, float((start + (stop - start) * at).min())


def place_points(rocs: Sequence[Roc], points: Points, problem: Problem) -> Solution:
    """Ramps with the rates of given points; true positive rates that no ramp attains are lowered for all."""
    gap, y = problem.band.max_gap, points.y  # type: ignore[union-attr]  # settings allow gaps only
    while True:
        ramps = [
            _ramp(roc, float(x), float(most), float(width), problem)
            for roc, x, most, width in zip(rocs, points.x, y, points.widths, strict=True)
        ]
        feet, widths, ties, reached = map(np.array, zip(*ramps, strict=True))
        lowered = np.minimum(y, reached.min() + gap)
        if reached.max() <= reached.min() + gap + RATE_TOLERANCE or np.array_equal(y, lowered):
            break
        y = lowered
    return _solution(feet, widths, ties, points.x, reached, problem)


def _ramp(roc: Roc, x: float, y: float, best: float, problem: Problem) -> tuple[float, float, float, float]:
    """Foot, width, tie and true positive rate of the first ramp with these rates that is not below a width."""
    width = problem.ramp_width
    if x >= 1 - RATE_TOLERANCE:
        return problem.ends[0] - width, width, 1.0, 1.0
    if y <= RATE_TOLERANCE:
        return problem.ends[1], width, 0.0, 0.0
    if best == 0:
        foot, tie = _step(roc, x)
        above, tied = (float(part[0]) for part in roc.positives.step(np.array([foot])))
        reached = above + tie * tied
        if reached <= y + RATE_TOLERANCE:
            return foot, 0.0, tie, reached
        best = MIN_RAMP_WIDTH
    if np.isfinite(best):
        best = min(max(best, problem.ramp_width, MIN_RAMP_WIDTH), MAX_RAMP_WIDTH)
        found = _wider(roc, x, y, best)
        if found is not None:
            return *found[:2], problem.offset, found[2]
    return 0.0, np.inf, x, x


def _step(roc: Roc, x: float) -> tuple[float, float]:
    """The lowest threshold with a false positive rate of x, and the probability at it."""
    z = roc.negatives.scores
    above, tied = roc.negatives.step(z)
    i = int(np.flatnonzero(above <= x + RATE_TOLERANCE)[0])
    return float(z[i]), float(np.clip((x - above[i]) / tied[i], 0.0, 1.0))


def _wider(roc: Roc, x: float, y: float, best: float) -> tuple[float, float, float] | None:
    """Foot, width and true positive rate of the first ramp, from a width on, that is not above y."""
    places = np.array([1 / best])
    for tried in range(_ROUNDS):
        widths = 1 / places
        feet = roc.negatives.lowest_feet(x, widths)
        values = roc.positives.at(feet, widths)
        low = np.flatnonzero(values <= y + RATE_TOLERANCE / 10)
        if tried == 0 and not len(low):
            places = np.geomspace(1 / best, 1 / MAX_RAMP_WIDTH, _WIDTHS)
            continue
        if not len(low):
            return None
        i = int(low[0])
        foot, width = float(feet[i]), float(widths[i])
        if i == 0:
            return foot, width, float(values[0])
        found = _polished(roc, x, y, foot, width, float(widths[i - 1]))
        if found is not None:
            return found
        places = np.linspace(places[i - 1], places[i], _TRIED)
    return foot, width, float(values[i])


def _polished(
    roc: Roc, x: float, y: float, foot: float, width: float, narrower: float
) -> tuple[float, float, float] | None:
    """The ramp with these rates that is near another one, between two widths; None if it is not found.

    While no score passes an end of the ramp, both rates are linear in 1/width and −foot/width.
    """
    widest = width
    for _ in range(20):
        (a, b, c), (d, e, f) = (part.coefficients(foot, width) for part in (roc.negatives, roc.positives))
        no, yes = (part.at(np.array([foot]), np.array([width]))[0] for part in (roc.negatives, roc.positives))
        if max(abs(no - x), abs(yes - y)) <= RATE_TOLERANCE / 10:
            return foot, width, float(yes)
        determinant = b * f - c * e
        if not determinant:
            return None
        q, r = ((x - a) * f - c * (y - d)) / determinant, (b * (y - d) - (x - a) * e) / determinant
        if not 1 / widest <= q * (1 + 1e-12) or not q <= (1 + 1e-12) / narrower:
            return None
        foot, width = -r / q, 1 / q
    return None


def _kept(roc: Roc, problem: Problem) -> Solution:
    """The classifier's own cutoff."""
    foot, width = np.array([problem.own_foot]), np.array([problem.ramp_width])
    x, y = (
        rates.at(foot, width) if width > 0 else np.add(*rates.step(foot))
        for rates in (roc.negatives, roc.positives)
    )
    return _solution(foot, width, np.where(width > 0, problem.offset, 1.0), x, y, problem)


def _solution(feet: Floats, widths: Floats, ties: Floats, x: Floats, rates: Floats, problem: Problem) -> Solution:
    """A solution whose level is 0 or 1 if nobody or everybody is selected, and otherwise not a number."""
    both = np.concatenate([x, rates])
    nobody, everybody = both.max() <= RATE_TOLERANCE, both.min() >= 1 - RATE_TOLERANCE
    return Solution(
        levels=np.array([0.0 if nobody else 1.0 if everybody else np.nan]),
        feet=feet,
        thresholds=feet + problem.offset * np.where(np.isinf(widths), 0.0, widths),
        width=widths,
        ties=ties,
        rates=rates,
        multiplier_feet=np.stack([feet, feet]),
    )


def choose_points(
    rocs: Sequence[Roc], gains: Floats, losses: Floats, max_gap: float, strata: Integers | None
) -> list[Points]:
    """`best_points` for each stratum."""
    parts = strata_slices(strata, len(rocs))
    return [best_points(rocs[part], gains[part], losses[part], max_gap) for part in parts]


def place_odds(
    rocs: Sequence[Roc], points: Sequence[Points], problem: Problem, strata: Integers | None
) -> Solution:
    """`place_points` for each stratum; groups that are alone in their stratum keep the classifier's cutoff."""
    solutions = [
        _kept(rocs[part][0], problem)
        if strata is not None and len(at.x) == 1
        else place_points(rocs[part], at, problem)
        for part, at in zip(strata_slices(strata, len(rocs)), points, strict=True)
    ]
    return Solution.joined(solutions)
