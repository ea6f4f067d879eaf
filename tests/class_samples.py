"""Rows with several classes for tests, and references that do not use the library."""

import warnings
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import fairramp

Floats = NDArray[np.float64]


def class_people(n_rows=600, n_classes=4, n_groups=2, seed=0):
    """Scores (n, C) whose distribution differs between groups, group labels, and true classes."""
    rng = np.random.default_rng(seed)
    groups = np.r_[np.arange(n_groups), rng.integers(0, n_groups, n_rows - n_groups)]
    tilt = rng.uniform(0.5, 3.0, (n_groups, n_classes))
    scores = rng.gamma(tilt[groups])
    scores /= scores.sum(axis=1, keepdims=True)
    labels = (scores.cumsum(axis=1) < rng.random((n_rows, 1))).sum(axis=1).clip(max=n_classes - 1)
    return scores, np.array([f"g{k}" for k in range(n_groups)])[groups], labels


def quiet_class_fit(*args, **kwargs):
    """A fit without warnings about small groups and the like."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairramp.FairrampWarning)
        return fairramp.fit_class_rule(*args, **kwargs)


def projected(z: Floats) -> Floats:
    """The nearest point of the simplex to each row, by bisection of what is subtracted."""
    low, high = z.min(axis=1) - 1.0, z.max(axis=1)
    for _ in range(200):
        middle = (low + high) / 2
        large = np.maximum(z - middle[:, None], 0).sum(axis=1) > 1
        low, high = np.where(large, middle, low), np.where(large, high, middle)
    return np.maximum(z - ((low + high) / 2)[:, None], 0)


def class_rates(chances: Floats, memberships: Floats, weights=None) -> Floats:
    """Rates of shape (K, C)."""
    v = memberships if weights is None else memberships * np.asarray(weights)[:, None]
    return v.T @ chances / v.sum(axis=0)[:, None]


def class_gap(chances: Floats, groups, weights=None) -> float:
    """The largest gap of a class between groups."""
    known = np.unique(groups)
    one_hot = (np.asarray(groups)[:, None] == known).astype(float)
    return float(np.ptp(class_rates(chances, one_hot, weights), axis=0).max())


@dataclass(frozen=True)
class ClassProblem:
    """A problem as it is stated: least cost with all rates of a class within the gap."""

    scores: Floats
    memberships: Floats
    weights: Floats
    max_gap: float
    width: float
    soft: bool

    @property
    def groups(self):
        if self.soft:
            return fairramp.GroupProbabilities(self.memberships, list(range(self.memberships.shape[1])))
        return self.memberships.argmax(axis=1)

    @property
    def w(self) -> Floats:
        return self.weights / self.weights.sum()

    def cost(self, h: Floats) -> float:
        n_classes = self.scores.shape[1]
        terms = self.width / 2 * (h - 1 / n_classes) ** 2 - self.scores * h
        return float(self.w @ terms.sum(axis=1))

    def gap(self, h: Floats) -> float:
        return float(np.ptp(class_rates(h, self.memberships, self.weights), axis=0).max())

    def convex(self) -> Floats:
        """h of an independent convex solver."""
        import cvxpy as cp

        n, n_classes = self.scores.shape
        w, q = self.w, self.memberships
        averages = (w[:, None] * q / (w @ q)).T
        h, level = cp.Variable((n, n_classes)), cp.Variable(n_classes)
        terms = cp.multiply(self.width / 2 * w[:, None], cp.square(h - 1 / n_classes))
        terms -= cp.multiply(w[:, None] * self.scores, h)
        constraints = [h >= 0, cp.sum(h, axis=1) == 1]
        for average in averages:
            constraints += [cp.abs(average @ h - level) <= self.max_gap / 2] if self.max_gap else []
            # If the rates of all other classes are equal, so are those of the last one.
            constraints += [] if self.max_gap else [(average @ h)[:-1] == level[:-1]]
        for scale in (1.0, n, 100.0 * n):  # in one unit of the cost or another, the solver gets stuck
            program = cp.Problem(cp.Minimize(scale * cp.sum(terms)), constraints)
            with warnings.catch_warnings(), suppress(cp.error.SolverError):
                warnings.simplefilter("ignore")  # the status is checked instead
                program.solve(solver="CLARABEL")
                break
        assert program.status in ("optimal", "optimal_inaccurate"), program.status
        return np.asarray(h.value)


def random_class_problem(seed: int) -> ClassProblem:
    """2 to 6 classes, 2 to 5 groups, weights, ties, soft groups, gaps and widths."""
    rng = np.random.default_rng(seed)
    n, n_classes, n_groups = int(rng.choice([20, 50, 120])), int(rng.integers(2, 7)), int(rng.integers(2, 6))
    scores = rng.dirichlet(np.full(n_classes, rng.choice([0.3, 1.0, 3.0])), n)
    if seed % 3 == 0:  # ties
        scores = np.round(scores, 1)
        scores[:, 0] = np.maximum(scores[:, 0] + 1 - scores.sum(axis=1), 0)
        scores /= scores.sum(axis=1, keepdims=True)
    soft = seed % 2 == 1
    codes = np.r_[np.arange(n_groups), rng.integers(0, n_groups, n - n_groups)]
    memberships = rng.dirichlet(np.full(n_groups, 0.5), n) if soft else np.eye(n_groups)[codes]
    weights = [np.ones(n), rng.integers(1, 6, n).astype(float), rng.lognormal(0, 1, n)][seed // 2 % 3]
    return ClassProblem(
        scores,
        memberships,
        weights,
        float(rng.choice([0.0, 0.0, 0.02, 0.1, 0.3])),
        float(rng.choice([0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6])),
        soft,
    )
