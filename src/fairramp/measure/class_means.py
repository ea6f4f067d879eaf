"""Rates of several classes within groups: the mean chance of each class, with the rows behind it.

For rows with weight w and chances h_c of the classes, the rate of class c is Σ w h_c / Σ w in each group. It is
the selection rate of `measure.means` with "gets class c" as yes, so all of its intervals apply. With labels,

    confusion of true class t and decided class c    Σ w h_c over the rows with label t
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from fairramp.core.curve import Floats, Integers
from fairramp.core.events import class_event
from fairramp.core.labels import Label, label_key
from fairramp.core.simplex import class_chances
from fairramp.data.classes import ClassSample
from fairramp.data.probable import refuse_probabilities
from fairramp.measure.group_model import group_model
from fairramp.measure.means import MeanChances, Sums, Tally
from fairramp.rule.class_rule import ClassRule


@dataclass(frozen=True)
class ClassRowTallies:
    """Rows by group, for decisions between several classes; groups without rows are left out.

    Attributes
    ----------
    sample : ClassSample
        The rows.
    groups : tuple of labels
        The groups, or the cells of groups and strata.
    codes : integers of shape (n,)
        Index of each row's group.
    rows : integers of shape (K,)
        Number of rows.
    """

    sample: ClassSample
    groups: tuple[Label, ...]
    codes: Integers
    rows: Integers

    @classmethod
    def of(cls, sample: ClassSample) -> "ClassRowTallies":
        """The groups of a sample."""
        cells = sample.cells
        assert cells is not None
        codes = cells.block(0, len(sample))
        counts = np.bincount(codes, minlength=len(cells.labels))
        there = counts > 0
        return cls(sample, tuple(compress(cells.labels, there)), (np.cumsum(there) - 1)[codes], counts[there])

    @cached_property
    def own(self) -> Floats:
        """Chances under the classifier's own decisions, of shape (C, n): 0 or 1."""
        return class_chances(self.sample.values.T, 0.0)

    @cached_property
    def weights(self) -> Floats:
        """Σ w of each group."""
        return self.total(np.ones(len(self.codes)))

    def total(self, values: Floats) -> Floats:
        """Σ w x of each group."""
        w = self.sample.weights
        weighted = values if w is None else w * values
        totals: Floats = np.bincount(self.codes, weighted, minlength=len(self.groups))  # type: ignore[assignment]
        return totals

    def overall(self, values: Floats) -> float:
        """The mean of x over all rows."""
        return float(self.total(values).sum() / self.weights.sum())

    def tallies(self, chances: Floats) -> list[Tally]:
        """The decisions for or against each class, from chances of shape (C, n)."""
        w, n_groups = self.sample.weights, len(self.groups)
        if w is None:
            rows = self.rows[np.newaxis]
            selected = [self.total(h)[np.newaxis] for h in chances]
            return [Tally(yes, np.maximum(rows - yes, 0.0), rows, None) for yes in selected]
        sums = Sums(self.codes, w, n_groups, w * w, np.ones(len(w), dtype=np.intp))
        return [sums.tally(h, None) for h in chances]

    def confusion(self, chances: Floats) -> Floats | None:
        """Σ w h by group, true class and decided class, from chances of shape (C, n); None without labels."""
        labels, w = self.sample.labels, self.sample.weights
        if labels is None:
            return None
        shape = (len(self.groups), len(chances))
        cells = np.ravel_multi_index((self.codes, labels), shape)
        sums = [np.bincount(cells, h if w is None else w * h, minlength=shape[0] * shape[1]) for h in chances]
        return np.stack([one.reshape(shape) for one in sums], axis=2)

    def rows_by_label(self) -> Integers | None:
        """Number of rows by group and true class; None without labels."""
        if self.sample.labels is None:
            return None
        shape = (len(self.groups), len(self.sample.classes))
        cells = np.ravel_multi_index((self.codes, self.sample.labels), shape)
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def fresh_sample(rule: ClassRule, probabilities: Any, groups: Any, what: str, **more: Any) -> ClassSample:
    """New rows with true groups; `what` they are for does not support anything else.

    `more` are `strata`, `sample_weight` and `group_probabilities`.
    """
    refuse_probabilities(groups, what)
    return rule.sample(probabilities, groups, drop_empty=True, **more)


def mean_class_chances(rule: ClassRule, sample: ClassSample, *, warn_poor: bool = False) -> MeanChances:
    """Apply a rule to new rows and average by group, class by class; see `measure.means.mean_chances`.

    Rows of groups unknown to the rule are left out, if the rule does not refuse them. `warn_poor` warns about
    poor group probabilities.
    """
    assert sample.cells is not None
    if sample.membership is None:
        rule.offsets_of(sample.cells)  # raises for unseen groups, unless the rule has a policy for them
    elif warn_poor:
        group_model(sample, sample.membership).warn()
    places = {label_key(label): k for k, label in enumerate(rule.groups)}
    known = np.array([label_key(label) in places for label in sample.cells.labels])
    if not known.all():
        sample = sample.take(known[sample.cells.block(0, len(sample))])
    found = ClassRowTallies.of(sample)
    events, n_found = class_event(rule.classes).simple, len(found.groups)
    tallies = found.tallies(rule.chances(sample).T)
    seats = np.array([places[label_key(label)] for label in found.groups], dtype=np.intp)
    return MeanChances(
        seats=np.concatenate([seats + c * len(rule.groups) for c in range(len(events))]),
        groups=found.groups * len(events),
        events=tuple(event for event in events for _ in range(n_found)),
        rows=tuple(found.rows.tolist()) * len(events),
        rates=_joined([tally.rates for tally in tallies]),
        effective_rows=_joined([tally.effective_rows for tally in tallies]),
    )


def _joined(parts: Sequence[Floats]) -> Floats:
    joined: Floats = np.concatenate(parts)
    return joined
