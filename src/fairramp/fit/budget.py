"""Budgets: rates in the band at which a given share of everybody is selected.

The constraint Σ_k π_k r_k = B adds one multiplier ν, the same for all groups and strata:

    by the scores   ν shifts the cutoff of everybody
    by the labels   ν is a price for every selection: a false positive costs b + ν, a false negative a − ν

For each ν the problem is solved as without a budget; the selection rate of everybody never rises with ν. The
search ends with two neighboring values of ν, one selecting at least B and one at most B. Both solutions cost
least at the same ν, and so do their mixtures, which are in the band because it is convex: the mixture that
selects exactly B is the optimum, even where the rate jumps.

A budget from 0 to 1 can always be met: equal rates are in every band.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from fairramp.core.curve import Floats, Integers, RateCurve
from fairramp.core.events import Event
from fairramp.core.points import Summary
from fairramp.fit.criteria.parity import place_each, place_ramps
from fairramp.fit.gains import Costs, GainCurves
from fairramp.fit.outcomes import LabeledScores
from fairramp.fit.problem import Budget, Criterion, Optimal, Problem, Solution

_Solved = TypeVar("_Solved")

#: Overall rates this close to the budget meet it.
_MET = 1e-14
#: Most steps of a search; half of them halve the range.
_MOST_STEPS = 200


def solve_by_scores(
    criterion: Criterion, summary: Summary, problem: Problem, strata: Integers | None
) -> Solution:
    """Ramps of least cost with rates in the band that select the budget."""
    assert isinstance(problem.level, Budget)
    shares, (low, high) = summary.shares, problem.ends

    def at(cutoff: float) -> Solution:
        return criterion.solve(summary, replace(problem, cutoff=cutoff, level=Optimal()))

    def overall(solution: Solution) -> float:
        return float((shares * solution.rates).sum())

    beyond = problem.ramp_width + 1.0  # at cutoffs this far outside, everybody is selected, or nobody
    few, many = _around(at, overall, problem.level.overall_rate, low - beyond, high + beyond)
    rates = _mixed(many.rates, few.rates, shares, problem.level.overall_rate)
    found = place_ramps(summary.distribution(), rates, problem)
    # The summary must be exact for both solutions.
    relied_on = np.concatenate([few.multiplier_feet, many.multiplier_feet, [few.feet, many.feet]])
    return replace(found, levels=problem.levels_of(rates, strata), multiplier_feet=relied_on)


def solve_by_labels(
    labeled: LabeledScores,
    costs: Costs,
    event: Event,
    rows: Summary,
    everyone: Summary,
    problem: Problem,
    strata: Integers | None,
) -> Solution:
    """Ramps whose rates of an event are in the band and that select the budget, at the least cost by the labels.

    Parameters
    ----------
    labeled : LabeledScores
        Scores with labels, which choose the rates.
    costs : Costs
        What each kind of error costs.
    event : Event
        Whose rates are in the band.
    rows, everyone : Summary
        The rows of the event, and all rows.
    problem : Problem
        The problem; its level is a budget.
    strata : integers of shape (K,), optional
        Index of each cell's stratum.
    """
    assert isinstance(problem.level, Budget)
    budget, shares = problem.level.overall_rate, everyone.shares
    curve = RateCurve(rows.distribution(), problem.ramp_width)

    def rates_at(price: float) -> Floats:
        paid = Costs(costs.false_positive + price, costs.false_negative - price)
        return GainCurves(labeled.calibrated, paid, event, strata).best_rates(problem.band)

    def selected(rates: Floats) -> Floats:
        """Selection rates of ramps with these rates of the event."""
        [placed] = place_each(curve, rates[None], problem)
        return placed.rates_on(everyone)

    def overall(rates: Floats) -> float:
        return float((shares * selected(rates)).sum())

    nobody, everybody = (np.full(len(shares), rate) for rate in (0.0, 1.0))
    few, many = _around(rates_at, overall, budget, -costs.false_positive, costs.false_negative)
    # Beyond the last price, rows are selected that are never worth it, or the other way round.
    many = everybody if overall(many) < budget else many
    few = nobody if overall(few) > budget else few
    # On the way from one solution to the other, the rates of the event stay in the band.
    few, many = _around(lambda part: many + part * (few - many), overall, budget, 0.0, 1.0)
    high, low = (place_each(curve, rates[None], problem)[0] for rates in (few, many))
    relied_on = np.array([high.feet, low.feet])
    ends = selected(many), selected(few)
    if overall(many) < budget - _MET:
        ends, low = (everybody, ends[1]), _constant(problem, len(shares), everyone_selected=True)
    if overall(few) > budget + _MET:
        ends, high = (ends[0], nobody), _constant(problem, len(shares), everyone_selected=False)
    # Between neighboring rates of the event, only rows with the other label are left to select.
    wanted = _mixed(*ends, shares, budget)
    found = place_ramps(everyone.distribution(), wanted, replace(problem, flat="nearest"))
    found = _between(found, low, high, problem)
    rates = found.rates_on(rows)
    return replace(found, rates=rates, levels=problem.levels_of(rates, strata), multiplier_feet=relied_on)


def _constant(problem: Problem, n_groups: int, *, everyone_selected: bool) -> Solution:
    """Ramps at which everyone is selected, or no one."""
    foot = problem.ends[0] - problem.ramp_width if everyone_selected else problem.ends[1]
    feet, rates = (np.full(n_groups, number) for number in (foot, float(everyone_selected)))
    return Solution(
        levels=rates[:1],
        feet=feet,
        thresholds=feet + problem.offset * problem.ramp_width,
        width=problem.ramp_width,
        ties=rates if problem.ramp_width == 0 else np.full(n_groups, problem.offset),
        rates=rates,
        multiplier_feet=np.stack([feet, feet]),
    )


def _between(found: Solution, low: Solution, high: Solution, problem: Problem) -> Solution:
    """Ramps moved between two others, which they leave if rows of the event have almost no weight."""
    feet = np.clip(found.feet, np.minimum(low.feet, high.feet), np.maximum(low.feet, high.feet))
    ties = found.ties
    if problem.ramp_width == 0:
        ties = np.where(found.feet < low.feet, 1.0, np.where(found.feet > high.feet, 0.0, ties))
        ties = np.where(feet == low.feet, np.minimum(ties, low.ties), ties)
        ties = np.where(feet == high.feet, np.maximum(ties, high.ties), ties)
    thresholds = feet + problem.offset * problem.ramp_width
    return replace(found, feet=feet, ties=ties, thresholds=thresholds)


def _mixed(many: Floats, few: Floats, shares: Floats, budget: float) -> Floats:
    """The mixture of two sets of rates that selects the budget."""
    most, least = (float((shares * rates).sum()) for rates in (many, few))
    part = min(max((most - budget) / (most - least), 0.0), 1.0) if most > least else 0.0
    mixed: Floats = np.clip(many + part * (few - many), 0.0, 1.0)
    return mixed


def _around(
    at: Callable[[float], _Solved], overall: Callable[[_Solved], float], budget: float, low: float, high: float
) -> tuple[_Solved, _Solved]:
    """Neighboring solutions that select at most, and at least, the budget.

    The overall rate falls with the argument of `at`. Steps follow a straight line where that helps, and halve the
    range otherwise.
    """
    many, few = at(low), at(high)
    most, least = overall(many) - budget, overall(few) - budget
    if most <= 0 or least >= 0:
        end = many if most <= 0 else few
        return end, end
    above, below = most, least  # for the straight line
    for step in range(_MOST_STEPS):
        straight = low + (high - low) * above / (above - below)
        middle = straight if step % 2 and low < straight < high else low + (high - low) / 2
        if not low < middle < high:
            break
        tried = at(middle)
        found = overall(tried) - budget
        if abs(found) <= _MET:
            return tried, tried
        if found > 0:
            low, many, above = middle, tried, found
        else:
            high, few, below = middle, tried, found
    return few, many
