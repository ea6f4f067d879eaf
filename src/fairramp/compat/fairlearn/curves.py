"""What thresholds achieve on the fit rows: Fairlearn's metrics, the tradeoff curve of each group, the solution.

A group's curve joins the thresholds at its values, from the highest to the lowest; between two of them, tied
values are decided at random. Of several points with the same x, the highest counts.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from fairramp.core.curve import Floats


@dataclass(frozen=True)
class Counts:
    """Weights of the rows with either label, and of those that are selected.

    Attributes
    ----------
    true_positives, false_positives : floats
        Weight of the selected rows with label 1 and with label 0.
    positives, negatives : float
        Weight of all rows with label 1 and with label 0.
    """

    true_positives: Any
    false_positives: Any
    positives: float
    negatives: float

    @classmethod
    def of(cls, chances: Any, labels: Any, weights: Any) -> "Counts":
        """The counts of rows that are selected with these probabilities."""
        yes, no = weights * labels, weights * (1 - labels)
        return cls(float((chances * yes).sum()), float((chances * no).sum()), float(yes.sum()), float(no.sum()))

    @classmethod
    def total(cls, parts: Iterable["Counts"]) -> "Counts":
        """The counts of several groups together."""
        names = ("true_positives", "false_positives", "positives", "negatives")
        parts = list(parts)
        return cls(*(sum(getattr(part, name) for part in parts) for name in names))

    def metric(self, name: str) -> Any:
        """A metric by Fairlearn's name; NaN if no row counts in it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return _METRICS[name](self)


def _rate(part: Any, whole: float) -> Any:
    return np.divide(part, whole) if whole else np.full(np.shape(part), np.nan)[()]


_METRICS: dict[str, Callable[[Counts], Any]] = {
    "selection_rate": lambda c: (c.true_positives + c.false_positives) / (c.positives + c.negatives),
    "true_positive_rate": lambda c: _rate(c.true_positives, c.positives),
    "false_negative_rate": lambda c: 1.0 - _rate(c.true_positives, c.positives),
    "false_positive_rate": lambda c: _rate(c.false_positives, c.negatives),
    "true_negative_rate": lambda c: 1.0 - _rate(c.false_positives, c.negatives),
    "accuracy_score": lambda c: (
        (c.true_positives + c.negatives - c.false_positives) / (c.positives + c.negatives)
    ),
    "balanced_accuracy_score": lambda c: (
        (_rate(c.true_positives, c.positives) + 1.0 - _rate(c.false_positives, c.negatives)) / 2
    ),
}


def along(values: Floats, labels: Any, weights: Any, x_metric: str, y_metric: str, grid: Floats) -> Counts:
    """The counts of a group where its x metric is each number of the grid."""
    order = np.argsort(-values, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)
    weight, label = weights[order], labels[order]
    hits, misses = (np.append(0.0, np.cumsum(weight * part)[ends]) for part in (label, 1 - label))
    points = Counts(hits, misses, float(hits[-1]), float(misses[-1]))
    x, y = points.metric(x_metric), points.metric(y_metric)
    order = np.lexsort((np.nan_to_num(y), x))
    last = np.append(np.flatnonzero(np.diff(x[order])), len(x) - 1)
    best = order[last]
    hits, misses = (np.interp(grid, x[best], part[best]) for part in (hits, misses))
    return Counts(hits, misses, points.positives, points.negatives)


def curve(counts: Counts, grid: Floats, y_metric: str) -> Bunch:
    """The curve of these counts."""
    return Bunch(x=grid, y=counts.metric(y_metric))
