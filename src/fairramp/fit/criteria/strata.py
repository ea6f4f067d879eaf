"""Within strata: equal rates in each department, region or job family.

Each stratum is solved on its own, with the level that costs least there. For two groups and selection rates this
is the paper's covariance criterion (Appendix D.1): a binary attribute S, strata X_k, r_k = P(S = 1 | X_k) and z =
1_S − r_k. With signed scores f, find

    minimize    Σ_i w_i (γ/2 · (h_i − c)² − f_i h_i)
    subject to  0 ≤ h_i ≤ 1   and   |mean of z_i h_i over X_k| ≤ ε_k   for every stratum k.

The mean is the covariance of h and S in the stratum: r_k (1 − r_k) times the difference of the two rates. So ε_k
= max_gap · r_k (1 − r_k) limits the gap to `max_gap`. The optimum has one multiplier t per stratum, h = clip(c +
(f − t z)/γ, 0, 1): ramps at t (1 − r_k) for S = 1 and at −t r_k for S = 0. Their mean, weighted by r_k and 1 −
r_k, is 0, which is exactly the condition for the best target rate of parity. So

    covariance in the stratum  =  parity in the stratum, with the target rate that costs least,

for any max_gap, either c, and in the limit γ → 0. Parity in each stratum is defined for any number of groups.

Reference: Alabdulmohsin and Lucic 2021, Appendix D.1.
"""

from dataclasses import replace

import numpy as np

from fairramp.core.cells import strata_slices
from fairramp.core.curve import Floats, Integers
from fairramp.core.points import Summary
from fairramp.fit.problem import Criterion, Problem, Solution


class WithinStrata:
    """Applies another criterion in each stratum separately.

    Parameters
    ----------
    inner : Criterion
        The criterion within a stratum.
    strata : integers of shape (K,)
        Index of each cell's stratum, from 0 without gaps; the cells of a stratum are adjacent.
    """

    def __init__(self, inner: Criterion, strata: Integers) -> None:
        self.inner, self.strata = inner, strata
        self.event = inner.event
        #: Which cells are alone in their stratum.
        self.alone = np.bincount(strata)[strata] == 1

    def solve(self, summary: Summary, problem: Problem, near: Floats | None = None) -> Solution:
        """Solve each stratum, with its own level."""
        ends, solutions = np.cumsum(summary.sizes), []
        for stratum, cells in enumerate(strata_slices(self.strata, len(self.strata))):
            points = summary.points.take(
                slice(ends[cells.start] - summary.sizes[cells.start], ends[cells.stop - 1])
            )
            inside = Summary(summary.labels[cells], replace(points, group=points.group - cells.start))
            solutions.append(
                self.inner.solve(inside, problem, None if near is None else near[stratum : stratum + 1])
            )
        return Solution.joined(solutions)
