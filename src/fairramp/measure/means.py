"""Weighted means within groups, and the effective number of rows behind each.

For rows with weight w and selection probability h, per group

    rate             r = Σ w h / Σ w
    effective rows   min(r (1 − r) (Σw)² / Σ w² (h − r)², (Σw)² / Σw²), the latter alone for r = 0 or 1

The effective rows are the number of unweighted rows with hard decisions that would estimate the rate about as
precisely.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairramp.core.curve import Floats, Integers
from fairramp.core.intervals import effective_rows
from fairramp.core.labels import Label
from fairramp.data.sample import Sample
from fairramp.rule.rule import Rule


@dataclass(frozen=True)
class Sums:
    """Weighted means within groups, over rows or points that stand for several rows; `squares` is Σw²."""

    group: Integers
    weights: Floats
    n_groups: int
    squares: Floats

    @classmethod
    def of(cls, sample: Sample) -> "tuple[Sums, tuple[Label, ...]]":
        """Group rows by cell; also return the cells that occur, in the order of their labels."""
        cells, present = sample.cells, sample.cells.occurring()
        group = (np.cumsum(present) - 1)[cells.block(0, len(sample))]
        labels = tuple(label for label, there in zip(cells.labels, present, strict=True) if there)
        weights = np.ones(len(group)) if sample.weights is None else sample.weights
        return cls(group, weights, len(labels), weights**2), labels

    def total(self, amounts: Floats) -> Floats:
        """Sum over each group."""
        return np.bincount(self.group, amounts, minlength=self.n_groups).astype(np.float64)

    def mean(self, values: Floats, over: Floats | None = None) -> Floats:
        """Σ w·values / Σ w·over; NaN where the denominator is 0."""
        below = self.total(self.weights if over is None else self.weights * over)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(below > 0, self.total(self.weights * values) / below, np.nan)

    def overall(self, values: Floats) -> float:
        """Mean over all groups together."""
        return float(self.weights @ values / self.weights.sum())

    def effective_rows(self, values: Floats, rates: Floats) -> Floats:
        """Effective rows behind each rate; see `core.intervals`."""
        shares = np.sqrt(self.squares) / self.total(self.weights)[self.group]
        spread = self.total((shares * (values - rates[self.group])) ** 2)
        return effective_rows(rates, self.total(shares**2), spread)


@dataclass(frozen=True)
class MeanChances:
    """Mean selection probability in each group, with the numbers of rows behind it."""

    groups: tuple[Label, ...]
    rows: tuple[int, ...]
    rates: Floats
    effective_rows: Floats

    def of(self, places: list[int]) -> "MeanChances":
        """Restrict to some of the groups."""
        return MeanChances(
            tuple(self.groups[k] for k in places),
            tuple(self.rows[k] for k in places),
            self.rates[places],
            self.effective_rows[places],
        )


def mean_chances(rule: Rule, scores: Any, groups: Any, strata: Any, sample_weight: Any) -> MeanChances:
    """Apply a rule to new rows and average by group; rows of groups unknown to the rule are left out."""
    sample = rule.sample(scores, groups, strata=strata, sample_weight=sample_weight, drop_empty=True)
    rule.ramps_of(sample.cells)  # raises for unseen groups, unless the rule has a policy for them
    sample = sample.take(rule.knows(sample.cells)[sample.cells.block(0, len(sample))])
    h = rule.chances(sample.scores, sample.cells)
    sums, labels = Sums.of(sample)
    rates, rows = np.clip(sums.mean(h), 0.0, 1.0), np.bincount(sums.group, minlength=sums.n_groups)
    effective = rows.astype(np.float64) if sample.weights is None else sums.effective_rows(h, rates)
    return MeanChances(labels, tuple(rows.tolist()), rates, effective)
