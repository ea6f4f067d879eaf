"""The reductions approach: Fairlearn's exponentiated gradient, trained on the classifier's own half.

    min error(h)  s.t. parity   →   a sequence of weighted classification problems   →   a mixture of classifiers

The library's defaults are kept (at most 50 iterations). Every classifier is trained dozens of times, so this is
the slow part and runs last. k-NN does not support sample weights: each weighted problem becomes a resample of
the same size, drawn with probabilities proportional to the weights. Neighbors in *any* resample are found from
one list of the nearest training rows of each row, which is followed until k drawn copies are found. If the list
is too short, the resample itself is searched. The result equals that of a search in the resample, but is much
faster.

Reference: Agarwal, Beygelzimer, Dudík, Langford and Wallach (2018), A Reductions Approach to Fair Classification.
"""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from reproduction.methods import Outcome, measure
from reproduction.protocol import Floats, Integers, Prepared, Scored, Settings, prepare, weighted_classifier

MAX_ITER = 50
#: Length of the neighbor lists.
LISTED = 200

SETTINGS = {"max_iter": MAX_ITER, "listed": LISTED}


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """All rows as points, training rows first, and the nearest training rows of each, nearest first."""

    points: npt.NDArray[np.float32]
    nearest: npt.NDArray[np.int32]

    @classmethod
    def of(cls, train: Floats, others: Floats) -> "Neighborhood":
        """Find the nearest training rows of all rows."""
        points = np.vstack([train, others]).astype(np.float32)
        search = NearestNeighbors(n_neighbors=min(LISTED, len(train)), algorithm="brute").fit(
            points[: len(train)]
        )
        return cls(points, search.kneighbors(points, return_distance=False).astype(np.int32))


class ResampledNeighbors:
    """k nearest neighbors on a weighted resample, with row numbers of a neighborhood as features.

    Parameters
    ----------
    rows : Neighborhood
        Shared by all clones and never modified.
    n_neighbors : int
        k.
    seed : int
        Seed of the resample: equal weights give equal classifiers.
    """

    def __init__(self, rows: Neighborhood, n_neighbors: int, seed: int) -> None:
        self.rows = rows
        self.n_neighbors = n_neighbors
        self.seed = seed

    def __sklearn_clone__(self) -> "ResampledNeighbors":
        return ResampledNeighbors(self.rows, self.n_neighbors, self.seed)

    def fit(self, x: Any, y: Any, sample_weight: Any) -> "ResampledNeighbors":
        """Draw the resample."""
        weight = np.asarray(sample_weight, dtype=np.float64)
        rng = np.random.default_rng(self.seed)
        self.copies = rng.multinomial(len(weight), weight / weight.sum()).astype(np.int32)
        self.label = np.asarray(y, dtype=np.int32)
        return self

    def predict(self, x: Any) -> Integers:
        """Return the majority label of the k nearest rows of the resample."""
        numbers = np.asarray(x)[:, 0].astype(np.intp)
        near = self.rows.nearest[numbers]
        reached = np.minimum(np.cumsum(self.copies[near], axis=1), self.n_neighbors)
        used = np.diff(reached, axis=1, prepend=0)
        positive = (used * self.label[near]).sum(axis=1)
        decided = (2 * positive > self.n_neighbors).astype(np.int64)
        short = reached[:, -1] < self.n_neighbors
        if short.any():
            decided[short] = self._searched(numbers[short])
        return decided

    def _searched(self, numbers: npt.NDArray[np.intp]) -> Integers:
        drawn = np.repeat(np.arange(len(self.copies)), self.copies)
        model = KNeighborsClassifier(self.n_neighbors, algorithm="brute")
        model.fit(self.rows.points[drawn], self.label[drawn])
        return np.asarray(model.predict(self.rows.points[numbers]), dtype=np.int64)


def _problem(prepared: Prepared, scored: Scored, settings: Settings) -> tuple[Any, Floats, Floats]:
    """Return the classifier to train, its training features, and its test features."""
    train, test = prepared.train, prepared.features["test"]
    if scored.task.classifier != "knn":
        return weighted_classifier(scored.task, settings, scored.chosen), train, test
    base = ResampledNeighbors(Neighborhood.of(train, test), settings.neighbors, scored.task.seed)
    numbers = np.arange(len(train) + len(test), dtype=np.float64)[:, None]
    return base, numbers[: len(train)], numbers[len(train) :]


def run(scored: Scored, folder: str | None, settings: Settings) -> dict[str, Any]:
    """Train the reduction of a task and return its result."""
    prepared = prepare(scored.task, folder, settings)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base, train, test = _problem(prepared, scored, settings)
        reduction = ExponentiatedGradient(base, constraints=DemographicParity(), max_iter=MAX_ITER)
        reduction.fit(train, prepared.train_label, sensitive_features=prepared.train_sex)
        seconds = time.perf_counter() - start
        probabilities = np.asarray(reduction._pmf_predict(test)[:, 1], dtype=np.float64)
    details = {
        "trained": int(reduction.n_oracle_calls_),
        "iterations": int(reduction.last_iter_) + 1,
        "train_gap": float(reduction.best_gap_),
    }
    return measure(Outcome(probabilities, seconds, details), scored.test)
