"""Independent answers for the tests: a convex solver, optimality conditions, exact fractions.

Nothing here imports the library. Every function restates its problem and solves it by other
means, so library and oracle are unlikely to share a mistake.

Conventions in this module:

- A row i has a score p_i (a probability, float64), a group code in 0 … K−1 (every code
  occurs), and a weight w_i > 0. W_k is the weight of group k, π_k = W_k / Σ_k W_k its share, and
  r_k = Σ_{i in k} w_i h_i / W_k its selection rate, where h_i is the probability of selection.
- Scores are signed internally: f_i = 2 (p_i − `cutoff`), and γ = 2 · `ramp_width`. Multipliers t_k are
  signed too: in units of the scores, group k's threshold is `cutoff` + t_k / 2.
- c is `offset`: 0.5 for the centered ramp, 0.0 for the paper's.
- ε is `max_gap` and ρ is `target_rate`; ρ = None means that ρ is optimized, too.

The problem, for all groups at once:

    minimize    Σ_i w_i (γ/2 · (h_i − c)² − f_i h_i)
    subject to  0 ≤ h_i ≤ 1   and   | r_k − ρ | ≤ ε/2 for every group k

With the multiplier W_k t_k for group k's band, it splits into h_i = clip(c + (f_i − t_k)/γ, 0, 1)
and, where ρ is free, Σ_k π_k t_k = 0.
"""

import warnings
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

# Duality gap and infeasibility at which Clarabel stops, for weights that sum to 1. At a tenth of
# this, it gives up on some ramps of width 1e-6 ("optimal_inaccurate").
QP_TOLERANCE = 1e-11
# Clarabel gives up on a few in 100 LPs, which have no curvature. A simplex method ends in a vertex,
# exact to rounding; the tolerance is that of HiGHS for bounds and reduced costs.
LP_TOLERANCE = 1e-10


def selection_rates(h: Floats, groups: Codes, weights: Floats) -> Floats:
    """r_k = Σ_{i in k} w_i h_i / Σ_{i in k} w_i, for every group code k."""
    return np.bincount(groups, weights * h) / np.bincount(groups, weights)


def objective(
    h: Floats,
    scores: Floats,
    weights: Floats,
    *,
    cutoff: float,
    ramp_width: float,
    offset: float,
) -> float:
    """Σ w_i (γ/2 · (h_i − c)² − f_i h_i), with f = 2 (p − cutoff), γ = 2 ramp_width, c = offset."""
    f, gamma = 2 * (scores - cutoff), 2 * ramp_width
    return float(np.sum(weights * (gamma / 2 * (h - offset) ** 2 - f * h)))


@dataclass(frozen=True)
class Optimum:
    """Solution of the convex solver: h per input row, the objective, and the center ρ."""

    h: Floats
    objective: float
    target_rate: float


def solve_convex(
    scores: Floats,
    groups: Codes,
    weights: Floats,
    *,
    max_gap: float,
    target_rate: float | None,
    cutoff: float,
    ramp_width: float,
    offset: float,
    min_ratio: float | None = None,
    overall_rate: float | None = None,
    strata: Codes | None = None,
) -> Optimum:
    """argmin over h (and ρ, if `target_rate` is None) of the module's problem.

        minimize    Σ w_i (γ/2 · (h_i − c)² − f_i h_i)
        subject to  0 ≤ h ≤ 1,   ρ − ε/2 ≤ A h ≤ ρ + ε/2

    solved with cvxpy: by Clarabel for γ > 0, by HiGHS for the linear program if γ = 0.
    A is the K × n matrix of group averages. A free ρ is the joint optimum over all h whose rates
    differ by at most ε; it is kept in [0, 1], which excludes no such h.

    Rows of one group with equal scores are one variable: the objective is convex and symmetric in
    them, so some optimum gives them the same h (for γ > 0 the only one does). The objective is unique,
    and so is h for γ > 0; h for γ = 0 need not be, nor ρ.

    With `min_ratio` τ instead of ε, the rates are between τ ρ and ρ. `overall_rate` is a further constraint on
    the mean of all h. `strata`, one per group code, have a ρ each; `target_rate` is then that of the first.
    """
    import cvxpy as cp

    points, row_to_point = np.unique(np.column_stack([groups, scores]), axis=0, return_inverse=True)
    row_to_point = row_to_point.ravel()
    w = np.bincount(row_to_point, weights / weights.sum())
    code, f, gamma = points[:, 0].astype(int), 2 * (points[:, 1] - cutoff), 2 * ramp_width
    averages = np.zeros((code.max() + 1, len(w)))
    averages[code, np.arange(len(w))] = w / np.bincount(code, w)[code]

    h = cp.Variable(len(w))
    cost = -(w * f) @ h
    if gamma > 0:
        cost += cp.sum_squares(cp.multiply(np.sqrt(w * gamma / 2), h - offset))
    constraints = [h >= 0, h <= 1]
    strata = np.zeros(len(averages), dtype=int) if strata is None else strata
    if target_rate is None:
        centers = cp.Variable(int(strata.max()) + 1)
        constraints += [centers >= 0, centers <= 1]
    else:
        centers = cp.Constant([target_rate])
    center = centers[strata]
    if min_ratio not in (None, 1.0):
        constraints += [averages @ h <= center, averages @ h >= min_ratio * center]
    elif max_gap > 0 and min_ratio is None:
        constraints += [averages @ h <= center + max_gap / 2, averages @ h >= center - max_gap / 2]
    else:  # two opposite inequalities would leave no interior to an interior-point solver
        constraints += [averages @ h == center]
    if overall_rate is not None:
        constraints += [w @ h == overall_rate]

    if gamma > 0:
        solver = {"solver": cp.CLARABEL}
        solver |= dict.fromkeys(["tol_gap_abs", "tol_gap_rel", "tol_feas"], QP_TOLERANCE)
    else:
        tolerances = ["primal_feasibility_tolerance", "dual_feasibility_tolerance"]
        options = {"method": "highs-ds"} | dict.fromkeys(tolerances, LP_TOLERANCE)
        solver = {"solver": cp.SCIPY, "scipy_options": options}
    problem = cp.Problem(cp.Minimize(cost), constraints)
    with warnings.catch_warnings():
        # Checking the status below makes every failure the same error.
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(**solver)
    if problem.status != cp.OPTIMAL:
        raise AssertionError(f"The convex solver stopped with status {problem.status!r}.")

    h_rows = h.value[row_to_point]
    value = objective(h_rows, scores, weights, cutoff=cutoff, ramp_width=ramp_width, offset=offset)
    return Optimum(h=h_rows, objective=value, target_rate=float(centers.value[0]))


def solve_covariance_convex(
    scores: Floats,
    attribute: Codes,
    strata: Codes,
    weights: Floats,
    *,
    max_gap: float,
    cutoff: float,
    ramp_width: float,
    offset: float,
) -> Floats:
    """h of Appendix D.1, with a covariance constraint per stratum and no target rate anywhere; γ > 0.

        minimize    Σ w_i (γ/2 · (h_i − c)² − f_i h_i)
        subject to  0 ≤ h ≤ 1,   |Σ_{i in k} w_i z_i h_i / W_k| ≤ ε · r_k (1 − r_k),   z = 1_S − r_k

    where r_k is the weighted share of the attribute in stratum k.
    """
    import cvxpy as cp

    w, f, gamma = weights / weights.sum(), 2 * (scores - cutoff), 2 * ramp_width
    totals = np.bincount(strata, w)
    r = np.bincount(strata, w * attribute) / totals
    covariances = np.zeros((len(r), len(w)))
    covariances[strata, np.arange(len(w))] = w * (attribute - r[strata]) / totals[strata]

    h = cp.Variable(len(w))
    cost = cp.sum_squares(cp.multiply(np.sqrt(w * gamma / 2), h - offset)) - (w * f) @ h
    constraints = [h >= 0, h <= 1]
    if max_gap > 0:
        constraints += [cp.abs(covariances @ h) <= max_gap * r * (1 - r)]
    else:
        mixed = (r > 0) & (r < 1)
        constraints += [covariances[mixed] @ h == 0]
    problem = cp.Problem(cp.Minimize(cost), constraints)
    problem.solve(solver=cp.CLARABEL, **dict.fromkeys(["tol_gap_abs", "tol_gap_rel", "tol_feas"], QP_TOLERANCE))
    if problem.status != cp.OPTIMAL:
        raise AssertionError(f"The convex solver stopped with status {problem.status!r}.")
    return np.asarray(h.value)


def kkt_residual(
    h: Floats,
    scores: Floats,
    groups: Codes,
    weights: Floats,
    *,
    max_gap: float,
    target_rate: float | None,
    cutoff: float,
    ramp_width: float,
    offset: float,
    best_target: bool,
    in_probability: bool = False,
) -> float:
    """Return the smallest δ ≥ 0 for which h meets the optimality conditions up to δ.

    The problem is convex with linear constraints, so these are necessary and sufficient. With
    g_i = f_i − γ (h_i − c), there is a number t_k per group such that

    1. feasible:    −δ ≤ h_i ≤ 1 + δ  and  ρ − ε/2 − δ ≤ r_k ≤ ρ + ε/2 + δ  and  the gap ≤ ε + δ;
    2. stationary:  t_k ≥ g_i − δ where h_i < 1 − δ (h_i could be raised),
                    t_k ≤ g_i + δ where h_i > δ     (h_i could be lowered);
    3. slack:       t_k ≤ 0 unless r_k ≥ ρ + ε/2 − δ,  t_k ≥ 0 unless r_k ≤ ρ − ε/2 + δ;
    4. best target: Σ_k π_k t_k = 0, if `best_target`.

    In 2, a row strictly inside (0, 1) means t_k = g_i, a row at 0 means t_k ≥ f_i + γc, a row at 1
    means t_k ≤ f_i − γ(1 − c); with γ = 0 this reads f_i < t_k → h_i = 0 and f_i > t_k → h_i = 1.
    In 3, ε = 0 puts every rate on both edges, so either sign is allowed, and an edge outside
    [0, 1] is never reached. Each of 2 and 3 confines t_k to an interval T_k, so 4 says that 0 lies
    in Σ π_k T_k.

    A single δ needs no other tolerance: a rate is "on the edge", or a row "at 0", if it is so up to
    the residual returned. Every condition gets weaker as δ grows, hence bisection.

    Parameters
    ----------
    target_rate
        ρ, or None to read it off h: halfway between the largest and the smallest rate, which is
        the only possible ρ if the gap is ε and leaves every rate off the edges if it is smaller.
        None requires `best_target`.
    in_probability
        Conditions 1 and 3 and the tests on h_i are in units of probability; 2 is in units of the
        signed scores, where an error of h_i counts γ times. True divides 2 by γ (if 0 < γ < 1), so
        an error of h_i counts in full. Then rounding of the scores counts too, 1/γ times:
        1e-16 becomes 1e-10 at a ramp width of 1e-6. Suitable for exact solutions, too strict for a
        convex solver on a narrow ramp.

    Returns
    -------
    float
        0.0 if h is exactly optimal; otherwise an upper bound on δ, to within 1%, at least 1e-17.
    """
    if target_rate is None and not best_target:
        raise ValueError("target_rate=None is the problem with the best target: best_target=True.")
    if not np.all(np.isfinite(h)):
        raise ValueError("h must be finite.")
    gamma = 2 * ramp_width
    g = 2 * (scores - cutoff) - gamma * (h - offset)
    unit = gamma if in_probability and 0 < gamma < 1 else 1.0

    rates = selection_rates(h, groups, weights)
    shares = np.bincount(groups, weights) / weights.sum()
    if target_rate is None:
        target_rate = (rates.max() + rates.min()) / 2
    below_upper_edge = target_rate + max_gap / 2 - rates
    above_lower_edge = rates - (target_rate - max_gap / 2)
    infeasibility = max(
        0.0,
        -h.min(),
        h.max() - 1,
        -below_upper_edge.min(),
        -above_lower_edge.min(),
        np.ptp(rates) - max_gap,
    )

    def holds(delta: float) -> bool:
        smallest = np.full(len(rates), -np.inf)
        largest = np.full(len(rates), np.inf)
        not_at_one, not_at_zero = h < 1 - delta, h > delta
        np.maximum.at(smallest, groups[not_at_one], g[not_at_one] - delta * unit)
        np.minimum.at(largest, groups[not_at_zero], g[not_at_zero] + delta * unit)
        largest[below_upper_edge > delta] = np.minimum(largest[below_upper_edge > delta], 0)
        smallest[above_lower_edge > delta] = np.maximum(smallest[above_lower_edge > delta], 0)
        if infeasibility > delta or np.any(smallest > largest):
            return False
        return not best_target or shares @ smallest <= 0 <= shares @ largest

    if holds(0.0):
        return 0.0
    # At δ = 2 no row is tested and every rate, target and edge counts as reached.
    low, high = 1e-17, max(2.0, float(infeasibility))
    while high > 1.01 * low:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def brute_force_threshold_rate(
    scores: Floats,
    weights: Floats,
    threshold: float,
    *,
    ramp_width: float,
    offset: float,
    tie: float = 0.0,
) -> Fraction:
    """Σ w_i clip(c + (p_i − threshold)/ramp_width, 0, 1) / Σ w_i, exactly, for one group.

    With `ramp_width` 0: 1 above the threshold, `tie` at it, 0 below. Scores, threshold and width
    are in the same units: probabilities with `ramp_width` and a threshold in
    probabilities, or signed scores with γ and t. Floats are taken at their exact binary value.
    """
    theta, width, c = Fraction(threshold), Fraction(ramp_width), Fraction(offset)
    selected = total = Fraction(0)
    for score, weight in zip(scores.tolist(), weights.tolist(), strict=True):
        distance = Fraction(score) - theta
        if width > 0:
            h = min(max(c + distance / width, Fraction(0)), Fraction(1))
        elif distance == 0:
            h = Fraction(tie)
        else:
            h = Fraction(int(distance > 0))
        selected += Fraction(weight) * h
        total += Fraction(weight)
    return selected / total


def example_1() -> tuple[Floats, Codes, Floats, Floats]:
    """Return (scores, groups, weights, h) of the paper's Example 1, where h is its solution.

    x in {−1, 0, 1} with probabilities 1/2, 1/3, 1/6 and scores P(y=1|x) = 0, 1/2, 1; group 1 has
    P(s=1|x) = 1/2, 1, 0. One row per (x, group) that occurs, weights in twelfths of the population,
    which are exact. For cutoff 0.5 and max_gap 0 the best ρ is 2/5, and h is optimal for
    ramp widths from 0 to 25/39 with offset 0.5, to 25/99 with offset 0: group 1 needs t_1 = −γ/5
    (−7γ/10), the best target then needs t_0 = 7γ/25 (49γ/50), and x = 1 is always selected only if
    t_0 ≤ 1 − γ/2 (1 − γ).
    """
    scores = np.array([0.0, 0.0, 0.5, 1.0])
    groups = np.array([0, 1, 1, 0])
    weights = np.array([3.0, 3.0, 4.0, 2.0])
    h = np.array([0.0, 0.0, 0.7, 1.0])
    return scores, groups, weights, h


@dataclass(frozen=True)
class Instance:
    """Rows and options of one problem; tests fix some with `dataclasses.replace`."""

    scores: Floats
    groups: Codes
    weights: Floats
    max_gap: float
    target_rate: float | None
    cutoff: float
    ramp_width: float
    offset: float

    @property
    def rows(self) -> tuple[Floats, Codes, Floats]:
        """(scores, groups, weights), the positional arguments of `solve_convex`."""
        return self.scores, self.groups, self.weights

    @property
    def options(self) -> dict[str, float | None]:
        """The keyword arguments of `solve_convex`."""
        return {
            "max_gap": self.max_gap,
            "target_rate": self.target_rate,
            "cutoff": self.cutoff,
            "ramp_width": self.ramp_width,
            "offset": self.offset,
        }


def random_instance(
    rng: np.random.Generator, *, n_groups: int | None = None, max_group_size: int = 40
) -> Instance:
    """Draw a generic instance, with the awkward cases over-represented.

    1 to 6 groups of 1 to `max_group_size` rows each, in random order. Scores are continuous, tied,
    hard 0/1, crowded near 0 or 1, or all equal, of one kind for all groups or one per group.
    """
    k = n_groups if n_groups is not None else int(rng.integers(1, 7))
    sizes = rng.integers(1, max_group_size + 1, k)
    sizes[rng.random(k) < 0.1] = 1
    groups = np.repeat(np.arange(k), sizes)

    kinds = rng.choice(len(_SCORE_KINDS), k)
    if rng.random() < 0.5:
        kinds[:] = kinds[0]
    scores = np.concatenate([_SCORE_KINDS[kind](rng, size) for kind, size in zip(kinds, sizes, strict=True)])
    order = rng.permutation(len(groups))
    n = len(groups)
    weights = [
        np.ones(n),
        rng.integers(1, 6, n).astype(float),
        rng.lognormal(0.0, 1.0, n),
    ][rng.integers(3)]
    return Instance(
        scores=scores[order],
        groups=groups[order],
        weights=weights,
        max_gap=[0.0, rng.uniform(0.001, 0.05), rng.uniform(0.05, 0.5), 1.0][rng.integers(4)],
        target_rate=[None, None, rng.random(), float(rng.integers(0, 5) / 4)][rng.integers(4)],
        cutoff=float(rng.choice([0.5, 0.5, 0.1, 0.9, 0.37])),
        ramp_width=float(rng.choice([0.0, 1e-6, 1e-3, 0.01, 0.1, 0.5])),
        offset=float(rng.choice([0.5, 0.0])),
    )


# One group's scores: levels differ between groups, so parity is not trivial.
_SCORE_KINDS = [
    lambda rng, size: rng.random(size),
    lambda rng, size: rng.beta(*rng.uniform(0.5, 5.0, 2), size),
    lambda rng, size: np.round(rng.beta(*rng.uniform(0.5, 5.0, 2), size), 1),
    lambda rng, size: np.round(rng.beta(*rng.uniform(0.5, 5.0, 2), size), 2),
    lambda rng, size: (rng.random(size) < rng.random()).astype(float),
    lambda rng, size: 10.0 ** rng.uniform(-9.0, -1.0, size),
    lambda rng, size: 1 - 10.0 ** rng.uniform(-9.0, -1.0, size),
    lambda rng, size: np.full(size, rng.choice([0.5, 0.37, 0.0, 1.0, rng.random()])),
]
