"""A linear head on frozen features: logistic regression by SGD with the paper's schedule.

    minimize over w, b    mean over rows of  log(1 + exp(−(2y − 1)(w·z + b)))

for 50 epochs, with a learning rate of 0.003 that is divided by ten after 20, 30 and 40 epochs. The paper does not
specify the rest: momentum 0.9 as in BiT's HyperRule; batches of 32, because a tenth of a small dataset has
fewer rows than BiT's 512; w and b start at 0; z are the features standardized on the training rows, so that the
scale of a network's features does not matter. Each epoch uses one view per row.

Reference: Kolesnikov et al. (2020), Big Transfer (BiT): general visual representation learning, Section 3.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reproduction.protocol import Floats, Integers
from reproduction.vision.features import Features


@dataclass(frozen=True)
class Schedule:
    """How a head is trained."""

    epochs: int = 50
    rate: float = 0.003
    drops: tuple[int, ...] = (20, 30, 40)
    momentum: float = 0.9
    batch: int = 32

    def rate_in(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0.

        Examples
        --------
        >>> [f"{Schedule().rate_in(epoch):g}" for epoch in (0, 19, 20, 49)]
        ['0.003', '0.003', '0.0003', '3e-06']
        """
        return self.rate / 10.0 ** sum(epoch >= drop for drop in self.drops)


PAPER_SCHEDULE = Schedule()


@dataclass(frozen=True, eq=False)
class Head:
    """A trained head; mean, deviation and weights have shape (d,)."""

    mean: npt.NDArray[np.float32]
    deviation: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float32]
    bias: float

    def scores(self, features: Features) -> Floats:
        """Return the scores: probabilities of the positive class."""
        logits = ((features - self.mean) / self.deviation) @ self.weights + self.bias
        return sigmoid(logits.astype(np.float64))


def sigmoid(logits: Floats) -> Floats:
    """Return 1 / (1 + exp(−x)) without overflow."""
    return np.exp(-np.logaddexp(0.0, -logits))


def train_head(
    views: Sequence[Features], label: Integers, seed: int, schedule: Schedule = PAPER_SCHEDULE
) -> Head:
    """Train a head.

    Parameters
    ----------
    views : sequence of ndarray, each of shape (n, d)
        Features of the training rows, one array per view.
    label : ndarray of shape (n,)
        0 or 1.
    seed : int
        Seed for the order of rows and the choice of views.
    schedule : Schedule
        Defaults to the paper's.
    """
    stacked = np.stack(views)
    mean, deviation = stacked.mean((0, 1)), stacked.std((0, 1))
    deviation[deviation == 0] = 1.0
    stacked -= mean
    stacked /= deviation
    n, dimension = stacked.shape[1:]
    rng = np.random.default_rng([seed, 50])
    weights, bias = np.zeros(dimension, dtype=np.float32), np.float32(0)
    speed, bias_speed = np.zeros_like(weights), np.float32(0)
    target = label.astype(np.float32)
    momentum = np.float32(schedule.momentum)
    for epoch in range(schedule.epochs):
        rate = np.float32(schedule.rate_in(epoch))
        order, view = rng.permutation(n), rng.integers(0, len(stacked), n)
        for start in range(0, n, schedule.batch):
            rows = order[start : start + schedule.batch]
            x = stacked[view[rows], rows]
            residual = sigmoid32(x @ weights + bias) - target[rows]
            speed = momentum * speed + residual @ x / np.float32(len(rows))
            bias_speed = momentum * bias_speed + residual.mean()
            weights = weights - rate * speed
            bias = bias - rate * bias_speed
    return Head(mean, deviation, weights, float(bias))


def sigmoid32(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return 1 / (1 + exp(−x)) in single precision, clipped at ±60, where it is 0 or 1."""
    return np.float32(1) / (np.float32(1) + np.exp(-np.clip(logits, -60, 60)))
