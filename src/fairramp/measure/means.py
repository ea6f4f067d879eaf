"""Weighted means within groups, and the effective number of rows behind each.

For rows with weight w and selection probability h, per group

    rate             r = Σ w h / Σ w
    effective rows   min(r (1 − r) (Σw)² / Σ w² (h − r)², (Σw)² / Σw²), the latter alone for r = 0 or 1

The effective rows are the number of unweighted rows with hard decisions that would estimate the rate about as
precisely; without weights, the number of rows.

One pass over the rows counts classes: group, label, the classifier's own decision, and whether h is 0, 1 or
between. Σw and Σw² of the classes give all sums, with Σwh, Σw²h and Σw²h² of the rows between.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from fairramp.core.blocks import map_blocks
from fairramp.core.curve import Array, Floats, Integers
from fairramp.core.events import Event
from fairramp.core.intervals import effective_rows
from fairramp.core.labels import Label, label_key
from fairramp.data.sample import Sample
from fairramp.errors import InputError
from fairramp.fit.direction import warn_direction
from fairramp.fit.each import Attributes
from fairramp.measure.group_model import group_model
from fairramp.rule.decided import warn_decided
from fairramp.rule.rule import Rule

#: Rows whose temporary arrays fit into the cache of a core.
_PIECE = 1 << 16


@dataclass(frozen=True)
class Tally:
    """Weights of yes and no decisions; the second axis, K, are the groups.

    Attributes
    ----------
    yes, no : floats of shape (1, K), or (2, K) for labels 0 and 1
        Σ w h and Σ w (1 − h).
    rows : integers of the same shape
        Number of rows.
    squares : floats of shape (5, 1 or 2, K), or None
        Σ w² of the rows with h = 1, with h = 0 and between, and Σ w² h and Σ w² h² of those between; None without
        weights.
    """

    yes: Floats
    no: Floats
    rows: Integers
    squares: Floats | None

    def of(self, label: int | None) -> "Tally":
        """Restrict to the rows with a label; None means all rows."""
        if label is None:
            return self
        at = slice(label, label + 1)
        squares = None if self.squares is None else self.squares[:, at]
        return Tally(self.yes[at], self.no[at], self.rows[at], squares)

    @property
    def labeled(self) -> bool:
        """Whether there are labels."""
        return len(self.yes) == 2

    @property
    def weights(self) -> Floats:
        """Σ w of each group."""
        total: Floats = (self.yes + self.no).sum(axis=0)
        return total

    @property
    def rates(self) -> Floats:
        """Mean of h in each group; NaN without rows."""
        with np.errstate(invalid="ignore"):
            rates: Floats = np.clip(self.yes.sum(axis=0) / self.weights, 0.0, 1.0)
        return rates

    @property
    def effective_rows(self) -> Floats:
        """Effective rows behind each group's rate; 0 or NaN without rows."""
        if self.squares is None:
            rows: Floats = self.rows.sum(axis=0).astype(np.float64)
            return rows
        yes, no, between, first, second = self.squares.sum(axis=1)
        r, w = self.rates, self.weights
        spread = yes * (1 - r) ** 2 + no * r**2 + (between * r**2 - 2 * r * first + second)
        with np.errstate(invalid="ignore"):  # the square of w could underflow
            return effective_rows(r, (yes + no + between) / w / w, spread / w / w)


@dataclass(frozen=True)
class Sums:
    """Weights of points that stand for several rows each; `squares` is Σw², `rows` their number.

    `group` has one column per attribute if a point belongs to a group of each.
    """

    group: Integers
    weights: Floats
    n_groups: int
    squares: Floats
    rows: Integers

    def total(self, amounts: Any, part: Integers | int = 0, n_parts: int = 1) -> Floats:
        """Sum in each group and part; shape (K · n_parts,)."""
        columns = np.reshape(self.group, (len(self.weights), -1)).T
        sums = [np.bincount(g * n_parts + part, amounts, minlength=self.n_groups * n_parts) for g in columns]
        found: Floats = np.sum(sums, axis=0)
        return found

    def mean(self, values: Floats) -> Floats:
        """Mean in each group."""
        return np.divide(self.total(self.weights * values), self.total(self.weights))

    def overall(self, values: Floats) -> float:
        """Mean over all groups together."""
        return float((self.weights * values).sum() / self.weights.sum())

    def tally(self, h: Floats, labels: Floats | None) -> Tally:
        """Decisions with selection probabilities `h`."""
        n_labels = 1 if labels is None else 2
        part = 0 if labels is None else labels.astype(np.intp)

        def total(amounts: Any) -> Floats:
            return np.reshape(self.total(amounts, part, n_labels), (self.n_groups, n_labels)).T

        w, squares, between = self.weights, self.squares, (h > 0) & (h < 1)
        parts: list[Any] = [h >= 1, h <= 0, between, between * h, between * h**2]
        return Tally(
            yes=total(w * h),
            no=total(w * (1 - h)),
            rows=total(self.rows).astype(np.intp),
            squares=np.stack([total(squares * part) for part in parts]),
        )


@dataclass(frozen=True)
class RowTallies:
    """Decisions of the classifier and of a rule on the same rows.

    Axes of `weights` and `squares`: label, own decision, probability (0, between, 1), group; axes of the sums
    over rows with a probability between 0 and 1: label, own decision, group.
    """

    groups: tuple[Label, ...]
    counts: Integers  # rows of all labels of the cells; the other arrays have only those that occur
    rows_by_label: Integers  # axes: label, group
    weighted: bool
    weights: Floats
    squares: Floats
    #: Σ wh, Σ w(1 − h), Σ w²h and Σ w²h² of rows with a probability between 0 and 1.
    between: Floats

    def by_value(self, attributes: Attributes) -> "RowTallies":
        """The same decisions by the values of attributes; the groups must be the cells of these.

        A row then counts once for each attribute, which changes no mean over all rows.
        """
        z = attributes.matrix
        return replace(
            self,
            groups=attributes.values,
            counts=(self.rows @ z).astype(np.intp),
            rows_by_label=(self.rows_by_label @ z).astype(np.intp),
            weights=self.weights @ z,
            squares=self.squares @ z,
            between=self.between @ z,
        )

    @property
    def rows(self) -> Integers:
        """Number of rows of each group."""
        return self.counts[self.counts > 0]

    @property
    def own(self) -> Tally:
        """The classifier's own decisions."""
        no, yes = np.moveaxis(self.weights.sum(axis=2), 1, 0)
        no_squares, yes_squares = np.moveaxis(self.squares.sum(axis=2), 1, 0)
        return self._tally(yes, no, [yes_squares, no_squares, *np.zeros((3, *yes.shape))])

    @cached_property
    def after(self) -> Tally | None:
        """The rule's decisions; None without a rule."""
        if self.weights.shape[2] == 1:
            return None
        yes, no = self._after.sum(axis=2)
        no_squares, between, yes_squares = np.moveaxis(self.squares.sum(axis=1), 1, 0)
        return self._tally(yes, no, [yes_squares, no_squares, between, *self.between[2:].sum(axis=2)])

    @property
    def changed_to_yes(self) -> Floats:
        """Expected share of each group whose decision the rule changes to yes."""
        shares: Floats = self._after[0, :, 0].sum(axis=0) / self.weights.sum(axis=(0, 1, 2))
        return shares

    @property
    def changed_to_no(self) -> Floats:
        """Expected share of each group whose decision the rule changes to no."""
        shares: Floats = self._after[1, :, 1].sum(axis=0) / self.weights.sum(axis=(0, 1, 2))
        return shares

    @property
    def randomized(self) -> float:
        """Share of all rows that the rule decides at random."""
        return float(self.weights[:, :, 1].sum() / self.weights.sum())

    @property
    def _after(self) -> Floats:
        """Σ wh and Σ w(1 − h) under the rule, by label, own decision and group."""
        return np.stack([self.weights[:, :, 2], self.weights[:, :, 0]]) + self.between[:2]

    def _tally(self, yes: Floats, no: Floats, squares: list[Floats]) -> Tally:
        return Tally(yes, no, self.rows_by_label, np.stack(squares) if self.weighted else None)


def tally_rows(sample: Sample, *, cutoff: float | None = None, rule: Rule | None = None) -> RowTallies:
    """One pass over the rows, in blocks: the classifier's own decisions at a cutoff, and those of a rule."""
    codes, labels, weights = sample.cells, sample.labels, sample.weights
    shape = (1 if labels is None else 2, 1 if cutoff is None else 2, 1 if rule is None else 3, len(codes.labels))
    fill = (
        rule.filling(
            sample.scores,
            sample.groups if not rule.stratified and sample.membership is None else sample.decided_by,
        )
        if rule
        else None
    )
    n_classes = int(np.prod(shape))
    kind = np.min_scalar_type(n_classes).type  # short integers are faster

    def piece(start: int, stop: int) -> tuple[list[Array], Array]:
        x, step = sample.rows.positions(start, stop), len(codes.labels)
        w = None if weights is None else weights[start:stop]
        classes = codes.block(start, stop).astype(kind)
        between = np.zeros((4, n_classes))
        if fill is not None:
            h = np.empty(stop - start)
            fill(x, start, stop, h)
            some, certain = (found.view(np.uint8) for found in (h > 0, h >= 1))
            classes += (some + certain) * kind(step)
            step *= 3
        if cutoff is not None:
            classes += (x >= cutoff).view(np.uint8) * kind(step)
            step *= 2
        if labels is not None:
            classes += (labels[start:stop] != 0).view(np.uint8) * kind(step)
        if fill is not None and len(i := np.flatnonzero(some != certain)):
            at, h = classes[i].astype(np.intp), h[i]
            v = 1.0 if w is None else w[i]
            values = [v * h, v * (1 - h), *([] if w is None else [v**2 * h, (v * h) ** 2])]
            for k, value in enumerate(values):
                between[k] = np.bincount(at, value, minlength=n_classes)
        # bincount would convert to this type itself, but hold the interpreter lock meanwhile.
        at, sums = classes.astype(np.intp), [None] if w is None else [None, w, w * w]
        return [np.bincount(at, value, minlength=n_classes) for value in sums], between

    def block(start: int, stop: int) -> Any:
        pieces = (piece(a, min(a + _PIECE, stop)) for a in range(start, stop, _PIECE))
        return sum(np.concatenate([totals, between]) for totals, between in pieces)

    nothing = np.zeros((5 if weights is None else 7, n_classes))
    found = sum(map_blocks(block, len(sample)), start=nothing).reshape(-1, *shape)
    counts = found[0].sum(axis=(0, 1, 2)).astype(np.intp)
    rows, *sums = found[..., counts > 0]
    total, squares = sums[:-4] or (rows, rows)
    return RowTallies(
        groups=tuple(compress(codes.labels, counts > 0)),
        counts=counts,
        rows_by_label=rows.sum(axis=(1, 2)).astype(np.intp),
        weighted=weights is not None,
        weights=total,
        squares=squares,
        between=np.array(sums[-4:]).sum(axis=3),  # in one of the three classes
    )


def are_decisions(sample: Sample, cutoff: float) -> bool:
    """Whether all scores are the 0/1 decisions at the cutoff; stops at the first piece that has others."""
    pieces = ((start, min(start + _PIECE, len(sample))) for start in range(0, len(sample), _PIECE))
    return all(
        bool(np.equal(sample.rows.positions(start, stop) >= cutoff, sample.scores[start:stop]).all())
        for start, stop in pieces
    )


@dataclass(frozen=True)
class MeanChances:
    """Mean selection probability in each group that has rows of an event, with the numbers of rows behind it.

    For equalized odds, there are two such rates of a group; they are listed event by event.

    Attributes
    ----------
    seats : integers
        Index of each rate in the list of all: that of the rule's group, plus the number of groups for the rates
        of a second event.
    groups, events : tuple
        Whose rate it is, and which.
    rows : tuple of int
        Number of rows.
    rates, effective_rows : floats
        The rates, and the effective number of rows behind each.
    """

    seats: Integers
    groups: tuple[Label, ...]
    events: tuple[Event, ...]
    rows: tuple[int, ...]
    rates: Floats
    effective_rows: Floats


def check_labels(rule: Rule, labels: Any) -> None:
    """Raise if labels are missing but required: those of a rule that makes error rates equal."""
    if rule.event.needs_labels and labels is None:
        raise InputError("{labels} are required: the rule makes {rate}s equal", rate=rule.event.rate)


def mean_chances(
    rule: Rule,
    scores: Any,
    groups: Any,
    labels: Any,
    *,
    strata: Any = None,
    sample_weight: Any = None,
    group_probabilities: Any = None,
    warn_poor: bool = False,
) -> MeanChances:
    """Apply a rule to new rows and average by group; rows of groups unknown to the rule are left out.

    A rule by each attribute has a rate of every value. For a rule that uses group probabilities, groups are the
    true ones. Only rows with the label that the rule's rates are about count, if there is one; there may be none.
    Labels are not read if the rule makes selection rates equal. `warn_poor` warns about poor group probabilities.
    Labels that contradict the scores cause a warning.
    """
    check_labels(rule, labels)
    sample = rule.sample(
        scores,
        groups,
        labels if rule.event.needs_labels else None,
        strata=strata,
        sample_weight=sample_weight,
        drop_empty=True,
        group_probabilities=group_probabilities,
    )
    warn_decided(sample.scores, None if rule.mixes else rule.record)
    if warn_poor and sample.membership is not None:
        group_model(sample, sample.membership).warn()
    if sample.membership is None:
        rule.ramps_of(sample.cells)  # raises for unseen groups, unless the rule has a policy for them
    known = rule.knows(sample.cells)
    if not known.all():
        sample = sample.take(known[sample.cells.block(0, len(sample))])
    warn_direction(sample, fitted=True)
    found = tally_rows(sample, rule=rule)
    if rule.membership == "each":
        found = found.by_value(Attributes.of(found.groups, [name for name, _ in rule.attributes]))
    assert found.after is not None
    events, places = rule.event.simple, {label_key(label): k for k, label in enumerate(rule.groups)}
    seats = np.array([places[label_key(label)] for label in found.groups], dtype=np.intp)
    tallies = [found.after.of(event.label) for event in events]
    rows = np.concatenate([tally.rows.sum(axis=0) for tally in tallies])
    there = rows > 0
    which, group = np.divmod(np.flatnonzero(there), len(seats))
    return MeanChances(
        seats=seats[group] + which * len(rule.groups),
        groups=tuple(found.groups[k] for k in group.tolist()),
        events=tuple(events[i] for i in which.tolist()),
        rows=tuple(rows[there].tolist()),
        rates=np.concatenate([tally.rates for tally in tallies])[there],
        effective_rows=np.concatenate([tally.effective_rows for tally in tallies])[there],
    )
