"""The published algorithm: projected stochastic gradient descent on the dual of parity.

With signed scores f in [−1, 1] and their ramp width γ, minimize over λ, μ ≥ 0

    F = E[ ε/2 · (λ_k + μ_k) + ρ (λ_k − μ_k) + ξ(f − (λ_k − μ_k)) ],    k the row's group,

where ξ' (w) = clip(c + w/γ, 0, 1) is the selection probability. Algorithm 1 of the paper:

    1.  Start from λ = μ = 0 and take a row.
    2.  With g = clip(c + (f − λ_k + μ_k)/γ, 0, 1) and the learning rate α,
            λ_k ← [λ_k − α (ε/2 + ρ − g)]⁺        μ_k ← [μ_k − α (ε/2 − ρ + g)]⁺
    3.  Repeat T times; α = 0.1 √(K/T) in the experiments. The ramp is at t_k = λ_k − μ_k.

It requires the target rate ρ as a number, only approximates the optimum, and depends on the seed; `parity` solves
the same problem exactly. It is kept for comparison with the paper, and because it can learn from rows that are
read only once (`stream`).

Departures from the paper
-------------------------
- c is ½ for the centered ramp; the paper uses c = 0.
- F has ε/2 where the paper's equation for F has ε; the paper's updates and proof have ε/2.
- An epoch takes every row once, in a new random order, instead of sampling rows independently: after the same
  number of steps, the running iterate is about three times closer to the optimum. A row's weight multiplies its
  gradient.
- A minibatch of b rows makes one step; a group's gradient is the sum over its rows divided by b.
- Proposition 1 bounds F at the *average* iterate, Figure 1(b) shows the running one. The running one is far
  closer to the optimum after a few epochs and is the default; both are available.

Reference: Alabdulmohsin and Lucic 2021, Algorithm 1, Proposition 1, Appendix A.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairramp.core.bands import Gap
from fairramp.core.checks import check_option, checked_whole, is_real
from fairramp.core.curve import Floats, Integers
from fairramp.core.public import public
from fairramp.errors import InputError
from fairramp.fit.problem import Fixed, Problem

#: Which iterate becomes the rule.
ITERATES = ("last", "average")


@public
@dataclass(frozen=True)
class SGD:
    """The paper's stochastic solver, for ``fit_rule(…, solver=SGD(…))``; "sgd" means ``SGD()``.

    Attributes
    ----------
    epochs : int
        Number of passes over the rows.
    batch_size : int
        Rows per step.
    learning_rate : float or None
        α, in units of signed scores; None means the paper's 0.1 √(K/T).
    iterate : {"last", "average"}
        Which iterate becomes the rule.
    random_state : int
        Seed for the order of the rows.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> settings = dict(target_rate=0.2, ramp="paper", ramp_width=0.05)
    >>> rule = fairramp.fit_rule(data.score, data.sex, solver=fairramp.SGD(epochs=5), **settings)
    >>> exact = fairramp.fit_rule(data.score, data.sex, **settings)
    >>> [bool(abs(a - b) < 0.02) for a, b in zip(rule.thresholds, exact.thresholds)]
    [True, True]
    """

    epochs: int = 25
    batch_size: int = 1
    learning_rate: float | None = None
    iterate: str = "last"
    random_state: int = 0

    def __post_init__(self) -> None:
        for name, lowest in (("epochs", 1), ("batch_size", 1), ("random_state", 0)):
            checked_whole(name, getattr(self, name), lowest)
        check_option("iterate", self.iterate, ITERATES)
        checked_learning_rate(self.learning_rate)


def checked_learning_rate(value: Any) -> float | None:
    """Check a learning rate: a positive number, or None."""
    if value is not None and not (is_real(value) and 0 < value < math.inf):
        raise InputError("must be a positive number or None", argument="learning_rate", got=value)
    return None if value is None else float(value)


def published_rate(n_groups: int, steps: int) -> float:
    """α = 0.1 √(K/T)."""
    return 0.1 * math.sqrt(n_groups / steps)


class DualDescent:
    """λ and μ of every group, updated step by step.

    Parameters
    ----------
    problem : Problem
        In signed units: scores, cutoff 0 and ramp width γ.
    n_groups : int
        K; `grow` adds groups.
    """

    def __init__(self, problem: Problem, n_groups: int) -> None:
        assert isinstance(problem.level, Fixed)
        assert isinstance(problem.band, Gap)
        self._target, self._half = problem.level.rate, problem.band.max_gap / 2
        self._offset, self._width = problem.offset, problem.ramp_width
        self.steps = 0
        self.upper: list[float] = []  # λ
        self.lower: list[float] = []  # μ
        self._upper_sum: list[float] = []
        self._lower_sum: list[float] = []
        self._since: list[int] = []  # steps already included in the sums
        self._start: list[int] = []  # steps before the group appeared
        self.grow(n_groups)

    def grow(self, n_groups: int) -> None:
        """Start additional groups at λ = μ = 0; their averages begin now."""
        for values in (self.upper, self.lower, self._upper_sum, self._lower_sum):
            values.extend([0.0] * (n_groups - len(values)))
        for steps in (self._since, self._start):
            steps.extend([self.steps] * (n_groups - len(steps)))

    def resume(self, last: Floats, average: Floats, steps: int) -> None:
        """Start from given values of λ − μ and their average, as if after `steps` steps.

        A rule has only the difference; of all λ and μ with that difference, those with λ μ = 0 are used.
        """
        self.upper, self.lower = (np.maximum(side, 0.0).tolist() for side in (last, -last))
        self._upper_sum, self._lower_sum = (
            (np.maximum(side, 0.0) * steps).tolist() for side in (average, -average)
        )
        self.steps, self._since, self._start = steps, [steps] * len(last), [0] * len(last)

    def step(self, score: float, group: int, rate: float, weight: float = 1.0) -> None:
        """Step 2 with one row."""
        chance = min(max(self._offset + (score - self.upper[group] + self.lower[group]) / self._width, 0.0), 1.0)
        self._move(group, weight, weight * chance, rate)
        self.steps += 1

    def batch(self, scores: Floats, groups: Integers, rate: float, weights: Floats) -> None:
        """Step 2 with several rows; the weights are those of a mean."""
        thresholds = self.last
        chances = np.clip(self._offset + (scores - thresholds[groups]) / self._width, 0.0, 1.0)
        share = np.bincount(groups, weights, minlength=len(thresholds))
        chosen = np.bincount(groups, weights * chances, minlength=len(thresholds))
        for group in np.flatnonzero(share).tolist():
            self._move(group, float(share[group]), float(chosen[group]), rate)
        self.steps += 1

    def _move(self, group: int, share: float, chosen: float, rate: float) -> None:
        upper, lower = self.upper[group], self.lower[group]
        waited = self.steps - self._since[group]
        self._upper_sum[group] += waited * upper
        self._lower_sum[group] += waited * lower
        self._since[group] = self.steps
        slack, excess = share * self._half, chosen - share * self._target
        self.upper[group] = max(upper - rate * (slack - excess), 0.0)
        self.lower[group] = max(lower - rate * (slack + excess), 0.0)

    @property
    def last(self) -> Floats:
        """λ − μ of the running iterate."""
        return np.subtract(self.upper, self.lower)

    @property
    def averages(self) -> tuple[Floats, Floats]:
        """Mean λ and mean μ over the iterates since the group appeared."""
        waited = self.steps - np.array(self._since)
        steps = np.maximum(self.steps - np.array(self._start), 1)
        sides = ((self._upper_sum, self.upper), (self._lower_sum, self.lower))
        upper, lower = ((np.array(total) + waited * np.array(now)) / steps for total, now in sides)
        return upper, lower

    def iterate(self, which: str) -> Floats:
        """λ − μ of one of the `ITERATES`."""
        return self.last if which == "last" else np.subtract(*self.averages)


@dataclass(frozen=True)
class Descent:
    """Result of a descent, in signed units.

    Attributes
    ----------
    thresholds : floats of shape (K,)
        λ − μ of the chosen iterate.
    trace : floats of shape (epochs, K)
        λ − μ of the running iterate after each epoch.
    upper, lower : floats of shape (K,)
        λ̄ and μ̄, the averages in Proposition 1.
    learning_rate : float
        α.
    steps : int
        T.
    """

    thresholds: Floats
    trace: Floats
    upper: Floats
    lower: Floats
    learning_rate: float
    steps: int


def descend(
    scores: Floats,
    groups: Integers,
    weights: Floats | None,
    n_groups: int,
    problem: Problem,
    settings: SGD,
) -> Descent:
    """Run Algorithm 1 on rows in signed units."""
    n = len(scores)
    size = min(settings.batch_size, n)
    steps = -(-n // size) * settings.epochs
    rate = settings.learning_rate or published_rate(n_groups, steps)
    rng = np.random.default_rng(settings.random_state)
    weight = np.ones(n) if weights is None else weights / np.mean(weights)
    state = DualDescent(problem, n_groups)
    trace = np.empty((settings.epochs, n_groups))
    for epoch in range(settings.epochs):
        order = rng.permutation(n)
        x, k, w = scores[order], groups[order], weight[order]
        if size == 1:
            for score, group, heavy in zip(x.tolist(), k.tolist(), w.tolist(), strict=True):
                state.step(score, group, rate, heavy)
        else:
            for start in range(0, n, size):
                rows = slice(start, start + size)
                state.batch(x[rows], k[rows], rate, w[rows] / size)
        trace[epoch] = state.last
    return Descent(state.iterate(settings.iterate), trace, *state.averages, rate, steps)
