"""Accuracy against gap: the accuracy that each maximum gap allows.

For each max_gap, the rule with the best accuracy on the fit rows (`target_rate="accuracy"`) is fitted, all from
one summary. Its accuracy Σ w (h y + (1 − h)(1 − y)) / Σ w is measured on validation rows if there are any,
otherwise on the fit rows, where it is optimistic. The interval around an accuracy a is a ± z √(Σ w² (c − a)²) / Σ
w, where c is the probability that a row's decision is correct.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairramp.core.cells import largest_gap
from fairramp.core.checks import check_number
from fairramp.core.curve import Floats, Integers
from fairramp.core.intervals import normal_quantile
from fairramp.core.labels import label_key
from fairramp.core.table import Table
from fairramp.core.words import percent, points
from fairramp.data.arrays import split_validation
from fairramp.data.columns import Columns
from fairramp.data.sample import Sample
from fairramp.errors import InputError, UnseenGroupError
from fairramp.fit.criteria.parity import PARITY, place_ramps
from fairramp.fit.direction import warn_direction
from fairramp.fit.outcomes import LabeledScores
from fairramp.fit.problem import Gap
from fairramp.fit.settings import Settings
from fairramp.rule.verbs import Drawn


@dataclass(frozen=True, repr=False)
class Frontier(Drawn):
    """Result of `frontier`: accuracy for each maximum gap.

    Attributes
    ----------
    max_gaps : tuple of float
        The maximum gaps, in ascending order.
    gaps, accuracies, lower, upper : tuple of float
        Gap and accuracy of each rule on the measured rows, with confidence limits of the accuracy.
    lowest_rates, highest_rates : tuple of float
        Lowest and highest selection rate of a group on the measured rows.
    own_gap, own_accuracy : float
        Gap and accuracy of the classifier's own decisions on the same rows.
    is_in_sample : bool
        Whether the measured rows are the fit rows.
    confidence : float
        Confidence level of the limits.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> print(fairramp.frontier(data.score, data.sex, data.label, max_gaps=[0, 0.1]).table())
        max gap          gap     accuracy (95% CI)  lowest rate  highest rate
    -----------  -----------  --------------------  -----------  ------------
     0.0 points   0.0 points  83.8% [83.3%, 84.2%]        16.3%         16.3%
    10.0 points  10.0 points  85.2% [84.7%, 85.6%]        10.4%         20.4%
    """

    max_gaps: tuple[float, ...]
    gaps: tuple[float, ...]
    accuracies: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    lowest_rates: tuple[float, ...]
    highest_rates: tuple[float, ...]
    own_gap: float
    own_accuracy: float
    is_in_sample: bool
    confidence: float

    def table(self) -> Table:
        """One row per maximum gap.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> curve = fairramp.frontier(data.score, data.sex, data.label, max_gaps=[0, 0.1])
        >>> curve.table()["accuracy"].round(3).tolist()
        [0.838, 0.852]
        """
        return Table(
            {
                "max_gap": self.max_gaps,
                "gap": self.gaps,
                "accuracy": self.accuracies,
                "accuracy_low": self.lower,
                "accuracy_high": self.upper,
                "lowest_rate": self.lowest_rates,
                "highest_rate": self.highest_rates,
            },
            settings=["max_gap"],
            gaps=["gap"],
            shares=("accuracy", "lowest_rate", "highest_rate"),
            confidence=self.confidence,
        )

    @property
    def heading(self) -> str:
        """The title of the table."""
        return f"Accuracy against gap, {'on the fit rows' if self.is_in_sample else 'on the validation rows'}."

    @property
    def own(self) -> str:
        """Gap and accuracy of the classifier's own decisions, in one sentence."""
        return (
            f"The classifier's own decisions: gap {points(self.own_gap)}, accuracy {percent(self.own_accuracy)}."
        )

    def __repr__(self) -> str:
        return f"{self.heading}\n{self.own}\n\n{self.table()}"


def frontier(
    scores: Any,
    groups: Any,
    labels: Any,
    *,
    validation: tuple[Any, ...] | None = None,
    max_gaps: Any = None,
    ramp_width: float = 0.01,
    cutoff: float | None = None,
    scale: str = "probability",
    higher_is_better: bool = True,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Frontier:
    """Trace accuracy against gap: the most accurate rule for each of several maximum gaps.

    Parameters
    ----------
    scores, groups, labels
        Fit rows, as in `fit_rule`.
    validation : tuple (scores, groups, labels) or (scores, groups, labels, sample_weight), optional
        Rows to measure on; by default, the fit rows. `Frontier.is_in_sample` records which were used.
    max_gaps : sequence of float, optional
        Maximum gaps; by default, 21 values from 0 to the classifier's own gap on the fit rows.
    ramp_width, cutoff, scale, higher_is_better, sample_weight
        As in `fit_rule`.
    confidence : float, default 0.95
        Confidence level of the limits.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> curve = fairramp.frontier(data.score, data.sex, data.label, max_gaps=[0, 0.1])
    >>> curve.is_in_sample, [round(a, 3) for a in curve.accuracies]
    (True, [0.838, 0.852])
    """
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    asked = Settings(scale=scale, higher_is_better=higher_is_better, cutoff=cutoff, ramp_width=ramp_width)
    meaning, problem = asked.meaning, asked.problem
    rows = Sample.of_arrays(scores, groups, labels, scale=meaning, sample_weight=sample_weight)
    fit = measured = LabeledScores.of(rows)
    warn_direction(rows)
    if validation is not None:
        *arrays, weights = split_validation(validation)
        measured = LabeledScores.of(
            Sample.of_arrays(
                *arrays, scale=meaning, sample_weight=weights, columns=Columns(groups=rows.columns.groups)
            )
        )
    seat = _seats(measured, fit)

    cut, points = problem.cutoff, measured.scores.points
    own = (points.place >= cut).astype(np.float64)
    gaps = _checked_gaps(max_gaps, _rates(fit, (fit.scores.points.place >= cut).astype(np.float64)))
    distribution = fit.scores.distribution()
    solutions = (place_ramps(distribution, fit.most_accurate_rates(PARITY, Gap(gap)), problem) for gap in gaps)
    chances = (solution.as_arrays.at(points.place, seat[points.group]) for solution in solutions)
    found = [(_rates(measured, h), *measured.accuracy(h)) for h in chances]
    rates, accuracies, errors = (np.array(values) for values in zip(*found, strict=True))
    lowest, highest, off = rates.min(axis=1), rates.max(axis=1), normal_quantile(confidence) * errors
    return Frontier(
        max_gaps=tuple(gaps),
        gaps=tuple((highest - lowest).tolist()),
        accuracies=tuple(accuracies.tolist()),
        lower=tuple(np.maximum(accuracies - off, 0.0).tolist()),
        upper=tuple(np.minimum(accuracies + off, 1.0).tolist()),
        lowest_rates=tuple(lowest.tolist()),
        highest_rates=tuple(highest.tolist()),
        own_gap=largest_gap(_rates(measured, own)),
        own_accuracy=measured.accuracy(own)[0],
        is_in_sample=validation is None,
        confidence=confidence,
    )


def _seats(measured: LabeledScores, fit: LabeledScores) -> Integers:
    """Index of each measured group among the fitted groups."""
    index = {label_key(label): i for i, label in enumerate(fit.scores.labels)}
    unseen = [label for label in measured.scores.labels if label_key(label) not in index]
    if unseen:
        raise UnseenGroupError(
            "Some groups in {validation} do not occur in the fit rows: {groups!r}", groups=unseen[:10]
        )
    return np.array([index[label_key(label)] for label in measured.scores.labels], dtype=np.intp)


def _rates(labeled: LabeledScores, chances: Floats) -> Floats:
    """Each group's selection rate, given the points' selection probabilities."""
    return labeled.scores.total(labeled.scores.points.weight * chances) / labeled.scores.weights


def _checked_gaps(max_gaps: Any, own_rates: Floats) -> list[float]:
    if max_gaps is None:
        return [max(largest_gap(own_rates), 0.01) * i / 20 for i in range(21)]
    try:
        gaps = sorted(check_number("max_gaps", gap, 0.0, 1.0) for gap in max_gaps)
    except TypeError:
        raise InputError(
            "must be a sequence of numbers between 0 and 1", argument="max_gaps", got=max_gaps
        ) from None
    if not gaps:
        raise InputError("is empty", argument="max_gaps", remedy="pass at least one gap")
    return gaps
