"""Covariance within strata: equal rates inside each department, region or job family.

A binary attribute S, strata X_k, r_k = P(S = 1 | X_k) and z = 1_S − r_k. With signed scores f find

    minimise    Σ_i w_i (γ/2 · (h_i − c)² − f_i h_i)
    subject to  0 ≤ h_i ≤ 1   and   |mean of z_i h_i over X_k| ≤ ε_k   for every stratum k.

The mean is the covariance of h and S in the stratum, r_k (1 − r_k) times the difference of the two rates, so
that ε_k = max_gap · r_k (1 − r_k) asks for a gap of at most `max_gap`. The optimum has one multiplier t per
stratum, h = clip(c + (f − t z)/γ, 0, 1): ramps at t (1 − r_k) for S = 1 and at −t r_k for S = 0. Their mean,
weighted by r_k and 1 − r_k, is 0, which is the very condition for the best target rate of parity. So

    covariance in the stratum  =  parity in the stratum, with the target rate that costs least,

for any max_gap, either c, and in the limit γ → 0. It is solved so, stratum by stratum, and no ρ remains. (Said
of two values; parity with its best target per stratum is the same idea for more, but no longer one covariance.)

Reference: Alabdulmohsin and Lucic 2021, Appendix D.1.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from fairramp.core.cells import strata_slices
from fairramp.core.curve import Floats, Integers, ScoreDistribution
from fairramp.core.points import Summary
from fairramp.fit.criteria.parity import ParityProblem, ParitySolution, solve_parity

__all__ = ["Covariance", "CovarianceSolution", "solve_covariance"]


@dataclass(frozen=True, eq=False)
class Covariance:
    """Equal rates of two groups within each stratum, for ``fit_rule(…, criterion=Covariance(strata=…))``.

    Attributes
    ----------
    strata : labels of shape (n,), or several columns
        Department, region, job family …, one label per row, as for groups; for an estimator the columns of X
        that hold them, by name or position. Several columns make intersections.

    Notes
    -----
    The classifier's own decisions stand if they comply in every stratum; otherwise every stratum with two groups
    gets ramps. A stratum with one group keeps the classifier's cut-off.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> rule = fairramp.fit_rule(data.score, data.sex, criterion=fairramp.Covariance(strata=data.race))
    >>> round(rule.record.gap_before, 3), round(rule.record.gap_after, 3)
    (0.199, 0.0)
    >>> rule.probabilities([0.4, 0.4], ["Female", "Male"], strata=["White", "White"])
    array([1., 0.])
    """

    strata: Any


@dataclass(frozen=True)
class CovarianceSolution(ParitySolution):
    """One ramp per cell; `target_rate` is not a number, because each stratum has its own.

    Attributes
    ----------
    targets : floats, one per stratum
        The middle of each stratum's band.
    """

    targets: Floats


def solve_covariance(
    scores: Summary, strata: Integers, problem: ParityProblem, near: Floats | None = None
) -> CovarianceSolution:
    """Ramps of least cost with gaps within strata of at most max_gap.

    Parameters
    ----------
    scores : Summary
        Scores of the cells, those of a stratum side by side.
    strata : integers of shape (K,)
        Index of each cell's stratum, counted from 0 without holes.
    problem : ParityProblem
        What is asked for; its target rate is not looked at.
    near : floats, one per stratum, optional
        Guesses of the targets; good ones save time and change nothing else.
    """
    points, weights = scores.points, scores.weights
    ends = np.cumsum(scores.sizes)
    solutions = []
    for stratum, cells in enumerate(strata_slices(strata, len(strata))):
        part = slice(ends[cells.start] - scores.sizes[cells.start], ends[cells.stop - 1])
        distribution = ScoreDistribution(scores.sizes[cells], points.place[part], points.weight[part])
        shares = weights[cells] / weights[cells].max()
        guess = None if near is None else float(near[stratum])
        solutions.append(solve_parity(distribution, shares / shares.sum(), problem, guess))
    joined = {
        f.name: np.concatenate([getattr(s, f.name) for s in solutions], axis=-1)
        for f in fields(ParitySolution)
        if f.name != "target_rate"
    }
    return CovarianceSolution(
        target_rate=float("nan"), targets=np.array([s.target_rate for s in solutions]), **joined
    )
