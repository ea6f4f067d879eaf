"""Exact counts of correct and wrong decisions of many rules at once, from summaries instead of rows.

The rows with label 1 have a summary of their own. Both summaries are refined until they are exact for all ramps
(see `core.points`), so each rule needs its ramps' effect on points only:

    Σ w h y from the rows with label 1,      Σ w h (1 − y) from all rows minus that

Ramps are placed on the rows of the event whose rates are compared: all rows, or those with one label.
For the standard errors, rows that share a bin count as if they had its mean probability.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fairramp.core.curve import Booleans, Floats, Integers, RateCurve
from fairramp.core.events import SELECTION, Event
from fairramp.core.points import Summary
from fairramp.core.ramps import Ramps
from fairramp.data.rows import ArrayRows, refined, resolved
from fairramp.data.sample import Sample
from fairramp.errors import InputError
from fairramp.fit.cells import check_event
from fairramp.fit.criteria.parity import place_each
from fairramp.fit.gains import Costs
from fairramp.fit.problem import Problem


@dataclass(frozen=True)
class Confusion:
    """The decisions of one rule, summed over the rows of each label.

    Attributes
    ----------
    weight, chance : floats of shape (2,)
        Σw and Σ w·h of the rows with label 0 and of those with label 1.
    squares : floats of shape (3, 2)
        Σw², Σ w²·h and Σ w²·h² of the same rows.
    rates : floats of shape (K,)
        Rate of each group, over the rows of the event that is compared. Groups without such rows are left out.
    """

    weight: Floats
    chance: Floats
    squares: Floats
    rates: Floats

    def accuracy(self) -> tuple[float, float]:
        """Share of correct decisions, and its standard error."""
        return self._mean(np.array([1.0, 0.0]), np.array([-1.0, 1.0]))

    def cost(self, costs: Costs) -> tuple[float, float]:
        """Mean cost of a row, and its standard error."""
        return self._mean(
            np.array([0.0, costs.false_negative]), np.array([costs.false_positive, -costs.false_negative])
        )

    def balanced_accuracy(self) -> tuple[float, float]:
        """Mean of the true negative and the true positive rate, and its standard error; NaN with one label."""
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN if there is only one label
            rates = self.chance / self.weight
            right = np.array([1 - rates[0], rates[1]])
            spread = self._spread(np.array([1.0, 0.0]) - right, np.array([-1.0, 1.0]))
            return float(right.mean()), float(np.sqrt((spread / self.weight**2).sum()) / 2)

    def _mean(self, start: Floats, slope: Floats) -> tuple[float, float]:
        """Mean over all rows of start + slope·h, with a start and a slope for each label."""
        total = self.weight.sum()
        mean = float((start * self.weight + slope * self.chance).sum() / total)
        return mean, float(np.sqrt(self._spread(start - mean, slope).sum()) / total)

    def _spread(self, start: Floats, slope: Floats) -> Floats:
        """Σ w² (start + slope·h)² of each label."""
        one, h, hh = self.squares
        spread: Floats = np.maximum(start**2 * one + 2 * start * slope * h + slope**2 * hh, 0.0)
        return spread


class LabeledRows:
    """Rows with outcomes, as points that are exact for the ramps of interest.

    Parameters
    ----------
    sample : Sample
        The rows, with outcomes.
    cutoff : float
        Where the classifier itself selects.
    event : Event
        Which rates are compared.
    """

    def __init__(self, sample: Sample, cutoff: float, event: Event = SELECTION) -> None:
        self._sample, self._cutoff, self._event = sample, cutoff, event
        self.rows, summary = sample.rows, sample.rows.summarize()
        self._edges = np.full((1, len(summary.labels)), cutoff)
        self.summary = resolved(self.rows, summary, np.empty((0, len(summary.labels))), 0.0, self._edges)

    @cached_property
    def _positive(self) -> ArrayRows | None:
        """The rows with label 1, if there are any."""
        assert self._sample.labels is not None
        return self._some(self._sample.labels > 0)

    @cached_property
    def _compared(self) -> ArrayRows | None:
        """The rows whose rates are compared, if there are any."""
        label = self._event.label
        if label is None:
            return self.rows
        assert self._sample.labels is not None
        return self._positive if label else self._some(self._sample.labels == 0)

    def _some(self, which: Booleans) -> ArrayRows | None:
        """Some of the rows, if there are any."""
        sample = self._sample
        cells, weights = replace(sample.cells, values=sample.cells.values[which]), sample.weights
        some = None if weights is None else weights[which]
        return ArrayRows(sample.scores[which], cells, some, sample.scale) if which.any() else None

    @property
    def compared(self) -> Summary:
        """A summary of the rows whose rates are compared, exact at the cutoff; raises if there are none."""
        return self.summary if self._event.label is None else self._with_label

    @cached_property
    def _with_label(self) -> Summary:
        if (rows := self._compared) is None:
            raise InputError(
                "has no {rows}, so there are no {rate}s to compare",
                argument="validation",
                rows=self._event.rows,
                rate=self._event.rate,
            )
        summary = rows.summarize()
        n_groups = len(summary.labels)
        return resolved(rows, summary, np.empty((0, n_groups)), 0.0, np.full((1, n_groups), self._cutoff))

    def check_groups(self) -> None:
        """Raise if a group has no row whose rate is compared, as fits do."""
        if self._event.label is not None:
            found = () if self._compared is None else self.compared.labels
            check_event(self._event, self.summary.labels, found)

    def placed(self, rates: Floats, problem: Problem) -> list[Ramps]:
        """Ramps with the given rates, of shape (m, K), on the rows whose rates are compared."""
        rows, summary = self._compared, self.compared
        assert rows is not None
        while True:
            curve = RateCurve(summary.distribution(), problem.ramp_width)
            feet = problem.chosen(*curve.feet(problem.snapped(curve, rates)))
            finer = refined(rows, summary, feet, problem.ramp_width, self._edges)
            if finer is summary:
                break
            summary = finer
        if self._event.label is None:
            self.summary = summary
        return [solution.as_arrays for solution in place_each(curve, rates, problem)]

    def confusions(self, ramps: list[Ramps], seats: Integers | None = None) -> list[Confusion]:
        """The decisions of several rules; `seats` are the ramps of each group, by default the groups' own.

        The last one is that of the classifier's own decisions.
        """
        n_groups = len(self.summary.labels)
        assert len(self.compared.labels)  # raises if there are no rows to compare
        seats = np.arange(n_groups) if seats is None else seats
        own = Ramps(np.full(int(seats.max()) + 1, self._cutoff), 0.0, np.ones(int(seats.max()) + 1))
        width = ramps[0].width
        assert isinstance(width, float)
        feet = np.array([one.feet[seats] for one in ramps])
        self.summary = resolved(self.rows, self.summary, feet, width, self._edges)
        points = [(self.summary, seats)]
        self.rows.forget()
        if (rows := self._positive) is not None:
            some = rows.summarize()
            # Groups without a row of label 1 have no points there.
            index = {label: i for i, label in enumerate(self.summary.labels)}
            which = np.array([index[label] for label in some.labels])
            some = resolved(rows, some, feet[:, which], width, self._edges[:, which])
            points.append((some, seats[which]))
        return [self._confusion(one, points) for one in [*ramps, own]]

    def _confusion(self, ramps: Ramps, points: list[tuple[Summary, Integers]]) -> Confusion:
        sums = np.zeros((2, 5))
        chances = [ramps.at(summary.points.place, seats[summary.points.group]) for summary, seats in points]
        for i, ((summary, _), h) in enumerate(zip(points, chances, strict=True)):
            weight, squares = summary.points.weight, summary.points.weight_squares
            # Sums, because products of matrices would start threads for a few thousand points.
            sums[i] = [part.sum() for part in (weight, weight * h, squares, squares * h, squares * h**2)]
        sums[0] -= sums[1]
        return Confusion(sums[:, 0], sums[:, 1], sums[:, 2:].T, self._rates(points, chances))

    def _rates(self, points: list[tuple[Summary, Integers]], chances: list[Floats]) -> Floats:
        """Each group's rate, over the rows that are compared; of groups that have such rows."""
        sums = [
            np.stack([s.total(s.points.weight * h), s.weights]) for (s, _), h in zip(points, chances, strict=True)
        ]
        label = self._event.label
        if label == 1:
            chance, weight = sums[1]
        elif label is None or len(sums) == 1:
            chance, weight = sums[0]
        else:
            index = {group: i for i, group in enumerate(self.summary.labels)}
            sums[0][:, [index[group] for group in points[1][0].labels]] -= sums[1]
            chance, weight = sums[0][:, [index[group] for group in self.compared.labels]]
        rates: Floats = np.clip(chance / weight, 0.0, 1.0)
        return rates
