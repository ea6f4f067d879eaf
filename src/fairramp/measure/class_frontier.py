"""Accuracy against gap with several classes: the accuracy of the rule for each maximum gap.

For each max_gap, `fit_class_rule` fits a rule; the labels only measure it. The interval around an accuracy a is
a ± z √(Σ w² (c − a)²) / Σ w, where c is the chance that a row gets its true class.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairramp.core.cells import kinds_of, largest_gap, stratum_index
from fairramp.core.checks import check_number
from fairramp.core.curve import Booleans, Floats, Integers
from fairramp.core.headline import judged, with_small
from fairramp.core.intervals import normal_quantile
from fairramp.core.labels import Label
from fairramp.core.public import public
from fairramp.core.table import Table, printed
from fairramp.core.words import percent, points
from fairramp.data.arrays import split_validation
from fairramp.data.classes import ClassSample
from fairramp.data.probable import refuse_probabilities
from fairramp.errors import FairrampWarning, InputError, UnsupportedError
from fairramp.fit.classes import ClassSettings, fit_class_sample
from fairramp.measure.class_means import ClassRowTallies
from fairramp.measure.frontier import checked_gaps
from fairramp.rule.verbs import Drawn


@dataclass(frozen=True, repr=False)
class ClassFrontier(Drawn):
    """Result of `class_frontier`: accuracy for each maximum gap.

    Attributes
    ----------
    max_gaps : tuple of float
        The maximum gaps, in ascending order.
    gaps : tuple of float
        Largest gap of a class under each rule, on the measured rows.
    accuracies, lower, upper : tuple of float
        Accuracy of each rule on the measured rows, with confidence limits.
    randomized : tuple of float
        Share of the measured rows that each rule decides at random.
    own_gap, own_accuracy : float
        Largest gap of a class, and accuracy, of the classifier's own decisions on the same rows.
    own_gap_of_large : float or None
        The same gap between groups with at least 30 rows, if these are at least two but not all.
    small : str
        How the sentence on `own_gap` begins if there are smaller groups, too.
    classes : tuple
        Labels of the classes.
    is_in_sample : bool
        Whether the measured rows are the fit rows.
    confidence : float
        Confidence level of the limits.

    Examples
    --------
    >>> import numpy as np
    >>> import fairramp
    >>> rng = np.random.default_rng(0)
    >>> sex, p = rng.choice(["F", "M"], 2000), rng.dirichlet([2, 2, 2], 2000)
    >>> p[sex == "M"] = rng.dirichlet([1, 2, 3], (sex == "M").sum())
    >>> labels = (p.cumsum(axis=1) < rng.random((2000, 1))).sum(axis=1)
    >>> print(fairramp.class_frontier(p, sex, labels, max_gaps=[0, 0.1]).table())
        max gap  largest gap     accuracy (95% CI)  decided at random
    -----------  -----------  --------------------  -----------------
     0.0 points   0.0 points  53.9% [51.8%, 56.1%]               3.0%
    10.0 points  10.0 points  54.7% [52.6%, 56.9%]               3.1%
    """

    max_gaps: tuple[float, ...]
    gaps: tuple[float, ...]
    accuracies: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    randomized: tuple[float, ...]
    own_gap: float
    own_accuracy: float
    classes: tuple[Label, ...]
    is_in_sample: bool
    confidence: float
    own_gap_of_large: float | None = None
    small: str = ""

    def table(self) -> Table:
        """One row per maximum gap.

        Examples
        --------
        >>> import fairramp
        >>> p, groups = [[0.6, 0.4], [0.3, 0.7], [0.8, 0.2], [0.1, 0.9]] * 50, ["F", "M", "F", "M"] * 50
        >>> curve = fairramp.class_frontier(p, groups, [0, 1, 0, 1] * 50, max_gaps=[0, 1])
        >>> curve.table()["accuracy"].round(3).tolist()
        [0.5, 1.0]
        """
        return Table(
            {
                "max_gap": self.max_gaps,
                "gap": self.gaps,
                "accuracy": self.accuracies,
                "accuracy_low": self.lower,
                "accuracy_high": self.upper,
                "decided_at_random": self.randomized,
            },
            headings={"gap": "largest gap"},
            settings=["max_gap"],
            gaps=["gap"],
            shares=("accuracy", "decided_at_random"),
            confidence=self.confidence,
        )

    @property
    def heading(self) -> str:
        """The title of the table."""
        rows = "on the fit rows" if self.is_in_sample else "on the validation rows"
        return f"Accuracy against the largest gap of {len(self.classes):,} classes, {rows}."

    @property
    def own(self) -> str:
        """Gap and accuracy of the classifier's own decisions, in one sentence."""
        gap, more = self.own_gap, ""
        if self.own_gap_of_large is not None:
            gap, more = self.own_gap_of_large, f" {self.small}: largest gap {points(self.own_gap)}."
        accuracy = percent(self.own_accuracy)
        return f"The classifier's own decisions: largest gap {points(gap)}, accuracy {accuracy}.{more}"

    def __repr__(self) -> str:
        return printed(*self._parts())

    def _parts(self) -> list[Table | str]:
        """The parts of its text."""
        return [f"{self.heading}\n{self.own}", self.table()]


@public
def class_frontier(
    probabilities: Any,
    groups: Any,
    labels: Any,
    *,
    classes: Sequence[Any] | None = None,
    validation: tuple[Any, ...] | None = None,
    max_gaps: Any = None,
    strata: Any = None,
    ramp_width: float = 0.01,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> ClassFrontier:
    """Trace accuracy against gap with several classes: the accuracy of the rule for each of several maximum gaps.

    Parameters
    ----------
    probabilities, groups, classes, strata, ramp_width, sample_weight
        Fit rows and settings, as in `fit_class_rule`.
    labels : labels of shape (n,)
        True classes.
    validation : tuple (probabilities, groups, labels) or (probabilities, groups, labels, sample_weight), optional
        Rows to measure on; by default, the fit rows. `ClassFrontier.is_in_sample` records which were used. Not
        with strata.
    max_gaps : sequence of float, optional
        Maximum gaps; by default, 21 values from 0 to the classifier's own largest gap on the fit rows.
    confidence : float, default 0.95
        Confidence level of the limits.

    Examples
    --------
    >>> import fairramp
    >>> p, groups = [[0.6, 0.4], [0.3, 0.7], [0.8, 0.2], [0.1, 0.9]] * 50, ["F", "M", "F", "M"] * 50
    >>> curve = fairramp.class_frontier(p, groups, [0, 1, 0, 1] * 50, max_gaps=[0, 1])
    >>> curve.is_in_sample, [round(a, 3) for a in curve.accuracies]
    (True, [0.5, 1.0])
    """
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    refuse_probabilities(groups, "A frontier")
    if labels is None:
        raise InputError("{labels} are required: the true classes")
    if validation is not None and strata is not None:
        raise UnsupportedError(
            "{validation} does not support {strata}",
            remedy="fit a rule for each {max_gap}, and audit it with fairramp.audit_classes",
        )
    settings = ClassSettings(ramp_width=ramp_width)
    sample = ClassSample.of_arrays(
        probabilities, groups, labels, classes=classes, strata=strata, sample_weight=sample_weight
    )
    measured = sample
    if validation is not None:
        *rows, weights = split_validation(validation, "probabilities")
        measured = ClassSample.of_arrays(
            *rows,
            fitted=sample.classes,
            sample_weight=weights,
            columns=sample.columns,
            drop_empty=True,
        )
        refuse_probabilities(rows[1], "A frontier")
    fit, seen = ClassRowTallies.of(sample), ClassRowTallies.of(measured)
    own_gap = _gap(fit, fit.own)
    gaps = checked_gaps(max_gaps, own_gap)
    points_of = []
    for i, gap in enumerate(gaps):
        with warnings.catch_warnings():
            if i:  # what there is to say about groups and classes is the same for every rule
                warnings.simplefilter("ignore", FairrampWarning)
            rule = fit_class_sample(sample, ClassSettings(max_gap=gap, ramp_width=settings.ramp_width))
        chances = rule.chances(measured).T
        unsure = (chances.max(axis=0) < 1).astype(np.float64)
        points_of.append((_gap(seen, chances), *_accuracy(seen, chances, confidence), seen.overall(unsure)))
    found = list(zip(*points_of, strict=True))
    keep = judged(seen.rows, _strata(seen))
    return ClassFrontier(
        max_gaps=tuple(gaps),
        gaps=found[0],
        accuracies=found[1],
        lower=found[2],
        upper=found[3],
        randomized=found[4],
        own_gap=_gap(seen, seen.own),
        own_gap_of_large=None if keep.all() else _gap(seen, seen.own, keep),
        small="" if keep.all() else with_small(keep),
        own_accuracy=_accuracy(seen, seen.own, confidence)[0],
        classes=sample.classes,
        is_in_sample=validation is None,
        confidence=confidence,
    )


def _strata(rows: ClassRowTallies) -> Integers | None:
    """The index of each group's stratum, if there are strata."""
    return stratum_index(rows.groups) if rows.sample.cells is not rows.sample.groups else None


def _gap(rows: ClassRowTallies, chances: Floats, keep: Booleans | None = None) -> float:
    """Largest gap of a class: between all groups, or those to keep."""
    strata, kept = _strata(rows), np.ones(len(rows.groups), dtype=bool) if keep is None else keep
    rates = np.concatenate([tally.rates[kept] for tally in rows.tallies(chances)])
    return largest_gap(rates, kinds_of(int(kept.sum()), len(chances), None if strata is None else strata[kept]))


def _accuracy(rows: ClassRowTallies, chances: Floats, confidence: float) -> tuple[float, float, float]:
    """Mean chance of the true class, with confidence limits."""
    labels, w = rows.sample.labels, rows.sample.weights
    assert labels is not None
    right = np.take_along_axis(chances, labels[np.newaxis], axis=0)[0]
    mean, total = rows.overall(right), float(rows.weights.sum())
    spread = np.square((right - mean) * (1.0 if w is None else w)).sum()
    off = normal_quantile(confidence) * float(np.sqrt(spread)) / total
    return mean, max(mean - off, 0.0), min(mean + off, 1.0)
