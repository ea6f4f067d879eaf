"""Scores with labels: calibration, and accuracy without rows.

Per group and score Σw and Σw·y are all that labels add to a summary. From them

    m = argmin Σ w (m(x) − y)²   over non-decreasing functions m of the score,

the isotonic regression, is the best guess of P(y = 1 | score) that keeps the scores' order. It chooses rates
(`target_rate="accuracy"`) and measures calibration; nothing of it is stored in a rule. In a small group it
follows noise: there `recalibrate` chooses the rates.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from fairramp.core.curve import Floats, sort_keys
from fairramp.core.points import Points, Summary, join_points, run_starts
from fairramp.core.scales import Scale
from fairramp.data.sample import Sample
from fairramp.errors import InputError
from fairramp.fit.problem import Criterion, Gap, Optimal, Problem
from fairramp.fit.recalibrate import LINE_BELOW, effective_rows, line_levels

#: Folds of a calibration error, and from how many rows of a group on two are enough.
_FOLDS, _MANY_ROWS = 5, 20_000


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
        What the scores mean.
    ordered_only : bool
        Whether the scores say nothing but an order; then small groups have no line to be near to.
    """

    scores: Summary
    positives: Floats
    square_positives: Floats
    scale: Scale
    ordered_only: bool = False

    @classmethod
    def of(cls, sample: Sample, *, ordered_only: bool = False) -> Self:
        """Summarize rows that have outcomes."""
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
        """Each group's rate in the most accurate decisions in the band that never fall with the score.

        A group's decisions depend only on its rate and the order of its scores, so that calibrating the scores
        group by group can change nothing but the rates: calibrate, solve without a ramp, keep the rates. A rule
        then selects by the raw scores; where a rate falls inside a block of scores that isotonic regression
        pooled, that is a little less accurate on the fit rows (0.03 points of 20,000) than the best threshold
        there, which follows their noise. So it is, on purpose, in small groups.
        """
        return criterion.solve(self.calibrated, Problem(band, Optimal(), 0.5, 0.0, 0.5)).rates

    def accuracy(self, chances: Floats) -> tuple[float, float]:
        """Share of right decisions, if the points have these chances of a yes, and its standard error."""
        p, y = self.scores.points, self.positives
        total = p.weight.sum()
        accuracy = float((y * chances + (p.weight - y) * (1 - chances)).sum() / total)
        yes = self.square_positives * (chances - accuracy) ** 2
        no = (p.weight_squares - self.square_positives) * (1 - chances - accuracy) ** 2
        return accuracy, float(np.sqrt((yes + no).sum()) / total)


def calibration_errors(sample: Sample, scale: Scale) -> Floats:
    """How far the scores of each group are off on average, as far as held-out rows show.

    With x the score as a probability and m the isotonic regression on the other folds' rows,

        max(0, Σ w (y − x) sign(m(x) − x) / Σ w):

    the other folds only say on which side of the score its positives are, and the held-out outcomes by how much.
    For calibrated scores the sum is 0 on average, however few rows there are; cut off at 0 it is .03 on 50 rows
    and .001 on 20,000, whereas the distance of x from m itself, which follows the noise, would be .11 and .013.
    """
    if sample.outcomes is None:
        raise InputError("must be numbers, got None", argument="labels")
    present = sample.cells.occurring()
    group = (np.cumsum(present) - 1)[sample.cells.block(0, len(sample))]
    x = (sample.positions - scale.lowest) / (scale.highest - scale.lowest)
    w = np.ones(len(x)) if sample.weights is None else sample.weights / sample.weights.max()
    rows = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    return np.array([_calibration_error(x[i], sample.outcomes[i], w[i]) for i in rows])


def _calibration_error(x: Floats, y: Floats, w: Floats) -> float:
    """The same of one group."""
    from scipy.optimize import isotonic_regression

    # A group's own rows are counted, so that every fold has some however groups alternate.
    folds = min(_FOLDS if len(x) <= _MANY_ROWS else 2, len(x))
    fold = np.arange(len(x)) % folds
    order = np.argsort(x, kind="stable")
    x, y, w, fold = x[order], y[order], w[order], fold[order]
    off = 0.0
    for held_out in (fold == f for f in range(folds if len(x) > 1 else 0)):
        place, positive, weight = x[~held_out], (w * y)[~held_out], w[~held_out]
        first = run_starts(place)
        weight = np.add.reduceat(weight, first)
        m = isotonic_regression(np.add.reduceat(positive, first) / weight, weights=weight).x
        at = x[held_out]
        off += float((w[held_out] * (y[held_out] - at)) @ np.sign(np.interp(at, place[first], m) - at))
    return max(off / float(w.sum()), 0.0)
