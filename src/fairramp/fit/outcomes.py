"""Scores with labels: calibration, and accuracy without rows.

For each group and score, labels add only Σw and Σw·y to a summary. From these, the isotonic regression

    m = argmin Σ w (m(x) − y)²   over non-decreasing functions m of the score

is the best estimate of P(y = 1 | score) that preserves the order of the scores. It determines rates
(`target_rate="accuracy"`) and measures calibration; none of it is stored in a rule. In a small group it would fit
noise; there `recalibrate` determines the rates.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from fairramp.core.curve import Floats, sort_keys
from fairramp.core.points import Points, Summary, join_points
from fairramp.core.scales import Scale
from fairramp.data.sample import Sample
from fairramp.errors import InputError
from fairramp.fit.problem import Criterion, Gap, Optimal, Problem
from fairramp.fit.recalibrate import LINE_BELOW, effective_rows, line_levels


@dataclass(frozen=True)
class LabeledScores:
    """Scores of each group as exact points, with their labels.

    Attributes
    ----------
    scores : Summary
        The points.
    positives, square_positives : floats, one per point
        Σ w·y and Σ w²·y of the rows.
    scale : Scale
        Scale of the scores.
    ordered_only : bool
        Whether only the order of the scores is meaningful; then small groups are not calibrated by a line.
    """

    scores: Summary
    positives: Floats
    square_positives: Floats
    scale: Scale
    ordered_only: bool = False

    @classmethod
    def of(cls, sample: Sample, *, ordered_only: bool = False) -> Self:
        """Summarize rows with outcomes."""
        if sample.outcomes is None:
            raise InputError("must be numbers, got None", argument="labels")
        positions, weights, group = sample.positions, sample.weights, sample.cells.block(0, len(sample))
        points = Points.from_rows(group, positions, weights)
        index = np.searchsorted(sort_keys(points.group, points.place), sort_keys(group, positions + 0.0))
        w = 1.0 if weights is None else weights
        positives, squares = (
            np.bincount(index, v * sample.outcomes, minlength=len(points)).astype(np.float64) for v in (w, w * w)
        )
        return cls(
            Summary.of_occurring(sample.cells.labels, points), positives, squares, sample.scale, ordered_only
        )

    @cached_property
    def levels(self) -> Floats:
        """Values of m at the points."""
        from scipy.optimize import isotonic_regression

        p, ends = self.scores.points, np.cumsum(self.scores.sizes)[:-1]
        groups = zip(np.split(self.positives / p.weight, ends), np.split(p.weight, ends), strict=True)
        return np.concatenate([isotonic_regression(shares, weights=weight).x for shares, weight in groups])

    @cached_property
    def calibrated(self) -> Summary:
        """The same rows at calibrated scores: by a line in small groups, by isotonic regression in others."""
        small = (effective_rows(self.scores) < LINE_BELOW) & (not self.ordered_only)
        at = self.levels if not small.all() else np.empty(len(self.scores.points))
        if small.any():
            lines = line_levels(self.scores, self.positives, self.scale)
            at = np.where(small[self.scores.points.group], lines, at)
        points = replace(self.scores.points, place=at, lower=at, upper=at)
        return Summary(self.scores.labels, join_points([points]))

    def most_accurate_rates(self, criterion: Criterion, band: Gap) -> Floats:
        """Each group's rate under the most accurate decisions in the band that do not decrease with the score.

        A group's decisions depend only on its rate and the order of its scores, so calibrating each group's
        scores can only change the rates: calibrate, solve without a ramp, keep the rates. The rule then selects
        by the raw scores. If a rate falls inside a block that isotonic regression pooled, this is slightly less
        accurate on the fit rows (0.03 points for 20,000) than the best threshold there, which fits their noise.
        In small groups this is intended.
        """
        return criterion.solve(self.calibrated, Problem(band, Optimal(), 0.5, 0.0, 0.5)).rates

    def accuracy(self, chances: Floats) -> tuple[float, float]:
        """Accuracy if the points have these selection probabilities, and its standard error."""
        p, y = self.scores.points, self.positives
        total = p.weight.sum()
        accuracy = float((y * chances + (p.weight - y) * (1 - chances)).sum() / total)
        yes = self.square_positives * (chances - accuracy) ** 2
        no = (p.weight_squares - self.square_positives) * (1 - chances - accuracy) ** 2
        return accuracy, float(np.sqrt((yes + no).sum()) / total)
