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
from fairramp.fit.criteria.odds import choose_points, middle_point, place_odds, rocs_of
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
    """

    criterion: Criterion
    problem: Problem
    cells: Cells
    strata: Integers | None
    rates: Floats | None = None
    labeled: LabeledScores | None = None
    costs: Costs | None = None

    def by_labels(self, labeled: LabeledScores, costs: Costs) -> "Solver":
        """The same, with rates that labels choose."""
        if isinstance(self.problem.level, Budget) or self.cells.event is ODDS:
            return replace(self, labeled=labeled, costs=costs)
        rates = labeled.best_rates(self.problem, costs, self.cells.event, self.strata)
        if isinstance(self.criterion, WithinStrata):
            rates = np.where(self.criterion.alone, np.nan, rates)  # nothing to equalize: keep the cutoff
        return replace(self, rates=rates)

    def solve(self, summary: Summary, near: Floats | None) -> Solution:
        """Ramps for a summary of the cells; `near` are guesses of the levels."""
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
        if self.cells.event is ODDS:
            return self._refining_odds(rows, summary, pool=pool)
        problem, cells = self.problem, self.cells
        summary, near = (
            (summary, None)
            if self.strata is not None or isinstance(problem.level, Budget)
            else look_ahead(rows, summary, cells, problem, self.rates)
        )
        while True:
            solution = self.solve(summary, near)
            near = solution.levels
            relied_on = solution.multiplier_feet if isinstance(problem.level, Optimal | Budget) else ()
            feet, pooled = [solution.feet, *relied_on], None
            if pool:
                # The ramp at which all rows together reach the band.
                together = self.criterion.solve(
                    cells.of_event(summary).pooled(), replace(problem, level=Fixed(solution.level))
                )
                feet.append(np.full(len(feet[0]), together.feet[0]))
                [pooled] = together.ramps(problem.offset)
            edges = np.full((1, len(cells.group)), problem.cutoff)
            finer = refined(rows, summary, np.stack(feet)[:, cells.group], problem.ramp_width, edges)
            if finer is summary:
                return summary, solution, pooled
            summary = finer

    def _refining_odds(
        self, rows: Rows, summary: Summary, *, pool: bool
    ) -> tuple[Summary, Solution, Ramp | None]:
        """The same for equalized odds."""
        problem, cells = self.problem, self.cells
        assert self.labeled is not None
        assert self.costs is not None
        # Like other rates, points are chosen from bins that every engine makes alike.
        by_label = self.labeled.by_label()
        curves = rocs_of(by_label, problem.ramp_width)
        no, yes = (cells.of_event(summary, event).weights for event in (FALSE_POSITIVE, TRUE_POSITIVE))
        gains, losses = self.costs.false_negative * yes, self.costs.false_positive * no
        points = choose_points(curves, gains, losses, problem.band.max_gap, self.strata)  # type: ignore[union-attr]
        curve = rocs_of([part.pooled() for part in by_label], problem.ramp_width)[0] if pool else None
        pooled = None
        edges = np.full((1, len(cells.group)), problem.cutoff)
        while True:
            parts = [cells.of_event(summary, event) for event in (FALSE_POSITIVE, TRUE_POSITIVE)]
            solution = place_odds(rocs_of(parts, problem.ramp_width), points, problem, self.strata)
            feet, widths = solution.feet[None], np.broadcast_to(solution.width, (1, len(solution.feet)))
            if curve is not None:
                # The ramp at which all rows together are in the middle of the groups' points.
                together = rocs_of([part.pooled() for part in parts], problem.ramp_width)
                one = place_odds(together, [middle_point(curve, points[0].x, solution.rates)], problem, None)
                [pooled] = one.ramps(problem.offset)
                feet, widths = (
                    np.concatenate([some, np.broadcast_to(other, some.shape)])
                    for some, other in ((feet, one.feet), (widths, one.width))
                )
            # A constant probability needs no points.
            constant = np.isinf(widths)
            feet, widths = np.where(constant, problem.ends[1], feet), np.where(constant, 0.0, widths)
            finer = refined(rows, summary, feet[:, cells.group], widths[:, cells.group], edges)
            if finer is summary:
                return summary, solution, pooled
            summary = finer
