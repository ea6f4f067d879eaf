"""Solver: from a summary of the rows to ramps, refined until the ramps are exact.

rates by the scores   the criterion solves the problem
rates by the labels   gain curves choose the rates (`fit.gains`); only ramps with these rates are placed
a budget              the rates at which a given share of everybody is selected (`fit.budget`)
equalized odds        the labels choose two rates of every group, once; ramps with these are placed
"""

from dataclasses import dataclass, replace

import numpy as np

from fairramp.core.curve import Floats, Integers
from fairramp.core.events import FALSE_POSITIVE, ODDS, SELECTION, TRUE_POSITIVE
from fairramp.core.points import Summary
from fairramp.core.ramps import Ramp
from fairramp.data.rows import Rows, refined
from fairramp.fit.budget import solve_by_labels, solve_by_scores
from fairramp.fit.cells import Cells
from fairramp.fit.criteria.odds import Points, choose_points, middle_point, place_odds, rocs_of
from fairramp.fit.criteria.parity import place_ramps
from fairramp.fit.criteria.strata import WithinStrata
from fairramp.fit.gains import Costs
from fairramp.fit.guess import look_ahead
from fairramp.fit.outcomes import LabeledScores
from fairramp.fit.problem import Budget, Criterion, Fixed, Optimal, Problem, Solution


@dataclass(frozen=True)
class Solver:
    """How ramps are found for a summary of the rows, in cells.

    Attributes
    ----------
    criterion : Criterion
        Which rates are made equal.
    problem : Problem
        The problem to solve.
    cells : Cells
        The cells of the summary.
    strata : integers of shape (K,), or None
        Index of each group's stratum.
    rates : floats of shape (K,), or None
        Rates that the labels chose, with NaN for a group that keeps its cutoff; then only ramps are determined.
    labeled, costs : LabeledScores and Costs, or None
        The labels, if they choose the rates within a budget.
    points : list of Points, or None
        For equalized odds, the points that the labels chose, by stratum.
    """

    criterion: Criterion
    problem: Problem
    cells: Cells
    strata: Integers | None
    rates: Floats | None = None
    labeled: LabeledScores | None = None
    costs: Costs | None = None
    points: list[Points] | None = None

    def by_labels(self, labeled: LabeledScores, costs: Costs) -> "Solver":
        """The same, with rates that labels choose."""
        if isinstance(self.problem.level, Budget):
            return replace(self, labeled=labeled, costs=costs)
        if self.cells.event is ODDS:
            # Like other rates, points are chosen from bins that every engine makes alike.
            no, yes = by_label = labeled.by_label()
            gains, losses = costs.false_negative * yes.weights, costs.false_positive * no.weights
            curves, gap = rocs_of(by_label, self.problem.ramp_width), self.problem.band.max_gap  # type: ignore[union-attr]
            return replace(self, labeled=labeled, points=choose_points(curves, gains, losses, gap, self.strata))
        rates = labeled.best_rates(self.problem, costs, self.cells.event, self.strata)
        if isinstance(self.criterion, WithinStrata):
            rates = np.where(self.criterion.alone, np.nan, rates)  # nothing to equalize: keep the cutoff
        return replace(self, rates=rates)

    def solve(self, summary: Summary, near: Floats | None) -> Solution:
        """Ramps for a summary of the cells; `near` are guesses of the levels."""
        if self.points is not None:
            return place_odds(
                rocs_of(self._by_label(summary), self.problem.ramp_width), self.points, self.problem, self.strata
            )
        seen = self.cells.of_event(summary)
        if self.rates is not None:
            placed = place_ramps(seen.distribution(), self.rates, self.problem)
            return replace(placed, levels=self.problem.levels_of(placed.rates, self.strata))
        if not isinstance(self.problem.level, Budget):
            return self.criterion.solve(seen, self.problem, near)
        if self.labeled is None or self.costs is None:
            return solve_by_scores(self.criterion, seen, self.problem, self.strata)
        everyone = self.cells.of_event(summary, SELECTION)
        return solve_by_labels(
            self.labeled, self.costs, self.cells.event, seen, everyone, self.problem, self.strata
        )

    def refining(self, rows: Rows, summary: Summary, *, pool: bool) -> tuple[Summary, Solution, Ramp | None]:
        """Solve, refine, and solve again until the solution depends on exact points only."""
        problem, cells = self.problem, self.cells
        summary, near = (
            (summary, None)
            if self.strata is not None or isinstance(problem.level, Budget) or self.points is not None
            else look_ahead(rows, summary, cells, problem, self.rates)
        )
        while True:
            solution = self.solve(summary, near)
            near = solution.levels
            relied_on = solution.multiplier_feet if isinstance(problem.level, Optimal | Budget) else ()
            ramps, pooled = [(solution.feet, solution.width), *((f, solution.width) for f in relied_on)], None
            if pool:
                together = self._together(summary, solution)
                ramps.append((together.feet, together.width))
                [pooled] = together.ramps(problem.offset)
            feet, widths = (
                np.stack([np.broadcast_to(p, len(cells.groups)) for p in part])
                for part in zip(*ramps, strict=True)
            )
            # A constant probability needs no points.
            constant = np.isinf(widths)
            feet, widths = np.where(constant, problem.ends[1], feet), np.where(constant, 0.0, widths)
            edges = np.full((1, len(cells.group)), problem.cutoff)
            finer = refined(rows, summary, feet[:, cells.group], widths[:, cells.group], edges)
            if finer is summary:
                return summary, solution, pooled
            summary = finer

    def _by_label(self, summary: Summary) -> list[Summary]:
        return [self.cells.of_event(summary, event) for event in (FALSE_POSITIVE, TRUE_POSITIVE)]

    def _together(self, summary: Summary, solution: Solution) -> Solution:
        """The ramp at which all rows together reach the band, or the middle of the groups' points."""
        problem = self.problem
        if self.points is None or self.labeled is None:
            fixed = replace(problem, level=Fixed(solution.level))
            return self.criterion.solve(self.cells.of_event(summary).pooled(), fixed)
        bins, rows = (
            rocs_of([part.pooled() for part in parts], problem.ramp_width)
            for parts in (self.labeled.by_label(), self._by_label(summary))
        )
        return place_odds(rows, [middle_point(bins[0], self.points[0].x, solution.rates)], problem, None)
