"""Accuracy against gap: the accuracy, or the cost of errors, that each maximum gap allows.

For each max_gap a rule is fitted whose rates the labels choose (`target_rate="accuracy"` or
`"balanced_accuracy"`), all from one summary. Gaps are those between the rates of the criterion. A looser limit
includes every rule of a stricter one: if the rule of a stricter limit is better on the fit rows, it is kept, so
that the curve never falls there. Accuracy is measured on validation rows if there are any, otherwise on the fit
rows, where it is optimistic. The interval around an accuracy a is a ± z √(Σ w² (c − a)²) / Σ w, where c is the
probability that a row's decision is correct; that around a cost or a balanced accuracy is analogous.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairramp.core.bands import Gap
from fairramp.core.cells import largest_gap
from fairramp.core.checks import check_number
from fairramp.core.curve import Integers
from fairramp.core.events import EVENT_OF, Event
from fairramp.core.headline import judged, with_small
from fairramp.core.intervals import normal_quantile
from fairramp.core.labels import Label, label_key
from fairramp.core.public import public
from fairramp.core.table import Table, printed
from fairramp.core.words import number, percent, points
from fairramp.data.arrays import split_validation
from fairramp.data.columns import Columns
from fairramp.data.probable import refuse_probabilities
from fairramp.data.sample import Sample
from fairramp.errors import InputError, UnseenGroupError, UnsupportedError
from fairramp.fit.direction import warn_direction
from fairramp.fit.few_scores import few_scores, warn_only
from fairramp.fit.gains import Costs
from fairramp.fit.outcomes import LabeledScores
from fairramp.fit.settings import Settings
from fairramp.measure.confusion import Confusion, LabeledRows
from fairramp.rule.verbs import Drawn


@dataclass(frozen=True, repr=False)
class Frontier(Drawn):
    """Result of `frontier`: accuracy for each maximum gap.

    Attributes
    ----------
    max_gaps : tuple of float
        The maximum gaps, in ascending order.
    gaps : tuple of float
        Gap of each rule on the measured rows.
    values, lower, upper : tuple of float
        What the labels choose the rules by, `measure`, on the measured rows, with confidence limits.
    accuracies : tuple of float
        Accuracy of each rule on the measured rows.
    lowest_rates, highest_rates : tuple of float
        Lowest and highest rate of a group on the measured rows: selection rates, or those of the criterion.
    own_gap, own_accuracy, own_value : float
        Gap, accuracy and `measure` of the classifier's own decisions on the same rows.
    own_gap_of_large : float or None
        The same gap between groups with at least 30 rows, if these are at least two but not all.
    small : str
        How the sentence on `own_gap` begins if there are smaller groups, too.
    measure : {"accuracy", "cost", "balanced_accuracy"}
        What is best for each maximum gap; a cost is the mean over the rows, and lower is better.
    costs : tuple of two floats, or None
        Cost of a false positive and of a false negative, if they were given.
    is_in_sample : bool
        Whether the measured rows are the fit rows.
    confidence : float
        Confidence level of the limits.
    criterion : {"parity", "equal_opportunity", "predictive_equality"}
        Which rates the gaps are between: selection rates, true positive rates or false positive rates.

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
    values: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    accuracies: tuple[float, ...]
    lowest_rates: tuple[float, ...]
    highest_rates: tuple[float, ...]
    own_gap: float
    own_accuracy: float
    own_value: float
    measure: str
    costs: tuple[float, float] | None
    is_in_sample: bool
    confidence: float
    criterion: str = "parity"
    own_gap_of_large: float | None = None
    small: str = ""

    @property
    def event(self) -> Event:
        """Which rates the gaps are between."""
        return EVENT_OF[self.criterion]

    @property
    def rate(self) -> str:
        """What these rates are called: "selection rate", "true positive rate" or "false positive rate"."""
        return self.event.rate

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
        name = self.measure
        limits = {f"{name}_low": self.lower, f"{name}_high": self.upper}
        accuracy = {} if name == "accuracy" else {"accuracy": self.accuracies}
        return Table(
            {"max_gap": self.max_gaps, "gap": self.gaps, name: self.values}
            | limits
            | accuracy
            | {"lowest_rate": self.lowest_rates, "highest_rate": self.highest_rates},
            headings={f"{end}_rate": f"{end} {self.event.short}" for end in ("lowest", "highest")},
            settings=["max_gap"],
            gaps=["gap"],
            shares=("accuracy", "balanced_accuracy", "lowest_rate", "highest_rate"),
            confidence=self.confidence,
        )

    @property
    def heading(self) -> str:
        """The title of the table."""
        what = self.measure.replace("_", " ").capitalize()
        rows = "on the fit rows" if self.is_in_sample else "on the validation rows"
        return f"{what} against {self.event.gap}, {rows}."

    @property
    def own(self) -> str:
        """Gap and accuracy or cost of the classifier's own decisions, in one sentence."""
        what, value = self.measure.replace("_", " "), number(self.own_value, 4)
        shown = f"{what} {value if self.measure == 'cost' else percent(self.own_value)}"
        gap, more = self.own_gap, ""
        if self.own_gap_of_large is not None:
            gap, more = self.own_gap_of_large, f" {self.small}: {self.event.gap} {points(self.own_gap)}."
        return f"The classifier's own decisions: {self.event.gap} {points(gap)}, {shown}.{more}"

    def __repr__(self) -> str:
        return printed(*self._parts())

    def _parts(self) -> list[Table | str]:
        """The parts of its text."""
        return [f"{self.heading}\n{self.own}", self.table()]


@public
def frontier(
    scores: Any,
    groups: Any,
    labels: Any,
    *,
    validation: tuple[Any, ...] | None = None,
    max_gaps: Any = None,
    criterion: str = "parity",
    ramp_width: float = 0.01,
    cutoff: float | None = None,
    scale: str = "probability",
    higher_is_better: bool = True,
    sample_weight: Any = None,
    target_rate: str = "accuracy",
    costs: tuple[float, float] | None = None,
    confidence: float = 0.95,
) -> Frontier:
    """Trace accuracy against gap: the accuracy, or the cost of errors, that each of several maximum gaps allows.

    The gap is the one between selection rates or, by `criterion`, between true or false positive rates. On the
    fit rows, a larger gap never has a lower accuracy (or a higher cost).

    Parameters
    ----------
    scores, groups, labels
        Fit rows, as in `fit_rule`.
    validation : tuple (scores, groups, labels) or (scores, groups, labels, sample_weight), optional
        Rows to measure on; by default, the fit rows. `Frontier.is_in_sample` records which were used.
    max_gaps : sequence of float, optional
        Maximum gaps; by default, 21 values from 0 to the classifier's own gap on the fit rows.
    criterion : {"parity", "equal_opportunity", "predictive_equality"}, default "parity"
        Which rates the gaps are between, as in `fit_rule`.
    ramp_width, cutoff, scale, higher_is_better, sample_weight
        As in `fit_rule`.
    target_rate : {"accuracy", "balanced_accuracy"}, default "accuracy"
        What each rule is chosen by.
    costs : tuple of two floats, optional
        Cost of a false positive and of a false negative, for the target "accuracy".
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
    refuse_probabilities(groups, "A frontier")
    asked = Settings(
        criterion=criterion,
        scale=scale,
        higher_is_better=higher_is_better,
        cutoff=cutoff,
        ramp_width=ramp_width,
        target_rate=target_rate,
        costs=costs,
    )
    if asked.event.parts:
        raise UnsupportedError(
            "A frontier has gaps between one rate of each group and does not support {criterion:equalized_odds}",
            remedy="fit a rule for each {max_gap}, and audit it",
        )
    if not asked.by_labels:
        raise InputError("must be 'accuracy' or 'balanced_accuracy'", argument="target_rate", got=target_rate)
    meaning, problem = asked.meaning, asked.problem
    sample = Sample.of_arrays(scores, groups, labels, scale=meaning, sample_weight=sample_weight)
    labeled = LabeledScores.of(sample)
    measure = labeled.checked_costs(target_rate, asked.costs)
    fit = measured = LabeledRows(sample, problem.cutoff, asked.event)
    fit.check_groups()
    warn_direction(sample)
    if few := few_scores(sample.scores):
        warn_only(few, len(sample))
    if validation is not None:
        *arrays, weights = split_validation(validation)
        measured = LabeledRows(
            Sample.of_arrays(
                *arrays, scale=meaning, sample_weight=weights, columns=Columns(groups=sample.columns.groups)
            ),
            problem.cutoff,
            asked.event,
        )
    seats = _seats(measured.summary.labels, fit.summary.labels)
    own_rates = fit.compared.distribution().rates_from(np.full(len(fit.summary.labels), problem.cutoff))
    gaps = checked_gaps(max_gaps, largest_gap(own_rates))
    rates = labeled.best_rates_each([Gap(gap) for gap in gaps], problem, measure, asked.event)
    ramps = fit.placed(rates, problem)
    kind = target_rate if asked.costs is None else "cost"

    def value(one: Confusion) -> tuple[float, float]:
        return one.cost(Costs(*asked.costs)) if asked.costs else getattr(one, kind)()

    found = fit.confusions(ramps)
    loss = [value(one)[0] if kind == "cost" else -value(one)[0] for one in found]
    # A looser limit includes every rule of a stricter one.
    kept: list[int] = []
    for i in range(len(gaps)):
        kept.append(i if not kept or loss[i] <= loss[kept[-1]] else kept[-1])
    if measured is not fit:
        found = measured.confusions(ramps, seats)
    each, own = [found[i] for i in kept], found[-1]
    values, errors = np.array([value(one) for one in each]).T
    off, rates = normal_quantile(confidence) * errors, np.array([one.rates for one in each])
    lowest, highest = rates.min(axis=1), rates.max(axis=1)
    counted = measured.compared.points
    keep = judged(np.bincount(counted.group, counted.rows, minlength=len(own.rates)))
    return Frontier(
        max_gaps=tuple(gaps),
        gaps=tuple((highest - lowest).tolist()),
        values=tuple(values.tolist()),
        lower=tuple(np.maximum(values - off, 0.0).tolist()),
        upper=tuple((values + off if kind == "cost" else np.minimum(values + off, 1.0)).tolist()),
        accuracies=tuple(one.accuracy()[0] for one in each),
        lowest_rates=tuple(lowest.tolist()),
        highest_rates=tuple(highest.tolist()),
        own_gap=largest_gap(own.rates),
        own_gap_of_large=None if keep.all() else largest_gap(own.rates[keep]),
        small="" if keep.all() else with_small(keep, asked.event),
        own_accuracy=own.accuracy()[0],
        own_value=value(own)[0],
        measure=kind,
        costs=asked.costs,
        is_in_sample=validation is None,
        confidence=confidence,
        criterion=criterion,
    )


def _seats(measured: Sequence[Label], fit: Sequence[Label]) -> Integers:
    """Index of each measured group among the fitted groups."""
    index = {label_key(label): i for i, label in enumerate(fit)}
    unseen = [label for label in measured if label_key(label) not in index]
    if unseen:
        raise UnseenGroupError(
            "Some groups in {validation} do not occur in the fit rows: {groups!r}", groups=unseen[:10]
        )
    return np.array([index[label_key(label)] for label in measured], dtype=np.intp)


def checked_gaps(max_gaps: Any, own_gap: float) -> list[float]:
    """The maximum gaps in order; by default, 21 from 0 to the classifier's own gap."""
    if max_gaps is None:
        return [max(own_gap, 0.01) * i / 20 for i in range(21)]
    try:
        gaps = sorted(check_number("max_gaps", gap, 0.0, 1.0) for gap in max_gaps)
    except TypeError:
        raise InputError(
            "must be a sequence of numbers between 0 and 1", argument="max_gaps", got=max_gaps
        ) from None
    if not gaps:
        raise InputError("is empty", argument="max_gaps", remedy="pass at least one gap")
    return gaps
