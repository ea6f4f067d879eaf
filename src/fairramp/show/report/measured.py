"""Rows as a report measures them: in points that are exact for all of its rules.

    rows  →  cells (group, label)  →  one summary, refined until ramp ends and the cut-off lie in exact points

Rates, changes and errors alike are sums over its points; no row is looked at again.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairramp.core.cells import stratum_index
from fairramp.core.checks import check_length
from fairramp.core.curve import Floats, Integers
from fairramp.core.labels import Label, label_key
from fairramp.core.points import Summary
from fairramp.core.scales import Scale
from fairramp.core.stats import normal_quantile
from fairramp.data.arrays import as_labels, as_scores, as_weights
from fairramp.data.groups import Codes
from fairramp.data.rows import ArrayRows
from fairramp.data.sample import counting_rows
from fairramp.errors import InputError
from fairramp.fit.settings import Request
from fairramp.measure.audit import Selection, selection
from fairramp.measure.means import Sums
from fairramp.rule.rule import OFFSETS, Rule

__all__ = ["Measured", "PlacedRamps", "Sample"]

#: Parts of the score range in a histogram; a power of two, so that bins of a summary fall into one each.
PARTS = 64


@dataclass(frozen=True)
class Sample:
    """Rows of groups that the rule knows, checked."""

    column: Any
    codes: Codes  # every label occurs
    weights: Floats | None
    outcomes: Floats | None
    request: Request
    notes: tuple[str, ...]

    @property
    def labels(self) -> tuple[Label, ...]:
        """The groups."""
        return self.codes.labels

    @property
    def scale(self) -> Scale:
        """What the scores mean."""
        return self.request.scale

    @property
    def cutoff(self) -> float:
        """Where the classifier says yes, as a position."""
        return self.request.problem.cutoff

    @property
    def strata(self) -> Integers | None:
        """The stratum of each group, if there are strata."""
        return stratum_index(self.labels) if self.request.stratified else None

    @classmethod
    def of(cls, rule: Rule, scores: Any, groups: Any, labels: Any, strata: Any, weights: Any) -> "Sample":
        """Check the rows; those of groups that the rule does not know are left out, and a note says so."""
        column, codes = as_scores(scores), rule.encode(groups, strata)
        n = len(column)
        check_length("groups", len(codes), n)
        w = None if weights is None else as_weights(weights, n)
        outcomes = None if labels is None else as_labels(labels, n)
        rule.ramps_of(codes)  # refuses unseen groups, unless the rule says what to do with them
        column, codes, w, outcomes = counting_rows(column, codes, w, outcomes)

        fitted = {label_key(label) for label in rule.groups}
        notes = []
        known = np.array([label_key(label) in fitted for label in codes.labels])
        occurring = codes.occurring()
        if not (known & occurring).any():
            raise InputError("None of the rows is of a group that the rule was fitted on.")
        keep = known[codes.block(0, len(codes))]
        if not keep.all():
            left_out, others = int((~keep).sum()), int((occurring & ~known).sum())
            notes.append(
                f"{left_out:,} row{'s' if left_out > 1 else ''} of {others:,} group{'s' if others > 1 else ''} "
                f"that the rule was not fitted on {'are' if left_out > 1 else 'is'} left out of this page."
            )
            column, codes = column[keep], replace(codes, values=codes.values[keep])
            w = None if w is None else w[keep]
            outcomes = None if outcomes is None else outcomes[keep]
        occurring = codes.occurring()
        index = (np.cumsum(occurring) - 1)[codes.block(0, len(codes))]
        there = tuple(label for label, yes in zip(codes.labels, occurring, strict=True) if yes)
        absent = len(rule.groups) - len(there)
        if absent:
            notes.append(f"{absent:,} of the rule's {len(rule.groups):,} groups have no row here.")
        request, note = _request(rule, outcomes is not None)
        if note:
            notes.append(note)
        codes = Codes(index, 0, there, codes.names, codes.n_columns)
        return cls(column, codes, w, outcomes, request, tuple(notes))

    def rows(self) -> ArrayRows:
        """The rows by group."""
        return ArrayRows(self.column, self.codes, self.weights, self.scale)

    def cells(self) -> ArrayRows:
        """The rows by group and label."""
        if self.outcomes is None:
            return self.rows()
        values = 2 * self.codes.values.astype(np.intp) + self.outcomes.astype(np.intp)
        return ArrayRows(
            self.column, Codes(values, 0, tuple(range(2 * len(self.labels)))), self.weights, self.scale
        )


def _request(rule: Rule, labelled: bool) -> tuple[Request, str | None]:
    """What was asked of the rule's fit, and what had to be changed about it."""
    record, note = rule.record, None
    target: str | float | None = record.target if record else rule.target_rate
    if record and (target == "base_rate" or record.solver == "sgd"):
        target = rule.target_rate
    if target == "accuracy" and not labelled:
        target = "optimal" if rule.criterion == "covariance" else rule.target_rate
        note = (
            "The rule aims at the most accurate rates, which needs labels. None are given here, so the other "
            "positions of the slider keep its "
            + ("strata and aim at the scores' own optimum." if rule.criterion == "covariance" else "target rate.")
        )
    if target is None:
        target = "optimal"
    request = Request.checked(
        max_gap=rule.max_gap,
        ramp_width=record.ramp_width if record else rule.ramp_width,
        ramp=rule.ramp,
        target_rate=target,
        cutoff=rule.cutoff,
        scale=rule.scale,
        unseen_group="error",
        stratified=rule.criterion == "covariance",
    )
    return request, note


@dataclass(frozen=True)
class PlacedRamps:
    """A rule's ramps, in the order of the sample's groups."""

    thresholds: Floats
    tie_chances: Floats
    feet: Floats
    width: float

    @classmethod
    def of(cls, rule: Rule, labels: tuple[Label, ...]) -> "PlacedRamps":
        """Of the groups that occur."""
        known = dict(zip(map(label_key, rule.groups), rule.ramps, strict=True))
        ramps = [known[label_key(label)] for label in labels]
        thresholds = np.array([ramp.threshold for ramp in ramps])
        ties = np.array([ramp.tie_chance for ramp in ramps])
        return cls(thresholds, ties, thresholds - OFFSETS[rule.ramp] * rule.ramp_width, rule.ramp_width)

    def chances(self, measured: "Measured") -> Floats:
        """Chance of a yes at each point."""
        place, group = measured.place, measured.group
        if self.width > 0:
            with np.errstate(over="ignore"):
                return np.clip((place - self.feet[group]) / self.width, 0.0, 1.0)
        feet = self.feet[group]
        return np.where(place == feet, self.tie_chances[group], place > feet)


@dataclass(frozen=True)
class Measured:
    """Points that are as good as the rows for all of the rules, and for the cut-off."""

    group: Integers
    place: Floats
    lower: Floats
    weight: Floats
    squares: Floats
    labels: Floats | None
    own: Floats  # the classifier's own decision
    rows: Integers  # of each group
    sums: Sums

    @classmethod
    def of(cls, sample: Sample, ramps: list[PlacedRamps]) -> "Measured":
        """Summarise and look closer until all ramps are exact."""
        rows = sample.cells()
        summary: Summary = rows.summarize()
        per_group = 1 if sample.outcomes is None else 2
        cells = np.arange(len(sample.labels)) if per_group == 1 else np.array(summary.labels, dtype=np.intp)
        seat = cells // per_group
        feet = {
            width: np.stack([r.feet[seat] for r in ramps if r.width == width])
            for width in sorted({r.width for r in ramps})
        }
        cutoff = np.full((1, len(seat)), sample.cutoff)
        while True:
            split = average = np.zeros(len(summary.points), dtype=bool)
            for width, places in feet.items():
                edges = np.concatenate([cutoff, places]) if width == 0 else cutoff
                more = summary.unresolved(places, width, edges)
                split, average = split | more[0], average | more[1]
            average = average & ~split
            if not (split.any() or average.any()):
                break
            summary = summary.replace(split | average, rows.refine(summary, split, average))
        p = summary.points
        group = seat[p.group]
        n_groups = len(sample.labels)
        return cls(
            group=group,
            place=p.place,
            lower=p.lower,
            weight=p.weight,
            squares=p.weight_squares,
            labels=None if sample.outcomes is None else (cells % 2)[p.group].astype(np.float64),
            own=(p.lower >= sample.cutoff).astype(np.float64),
            rows=np.bincount(group, p.rows, minlength=n_groups).astype(np.intp),
            sums=Sums(group, p.weight, n_groups, p.weight_squares),
        )

    def select(self, chances: Floats, confidence: float, strata: Integers | None) -> Selection:
        """Rates, gaps and errors of decisions with the given chances."""
        return selection(self.sums, chances, self.labels, confidence, strata)

    def share(self, values: Floats) -> float:
        """Mean of a quantity over all rows."""
        return float(self.weight @ values / self.weight.sum())

    def accuracy_interval(self, chances: Floats, confidence: float) -> tuple[float, float] | None:
        """Limits of the share of right decisions: a ± z √(Σ w² (c − a)²) / Σ w."""
        if self.labels is None:
            return None
        right = np.where(self.labels == 1, chances, 1 - chances)
        accuracy = self.share(right)
        half = normal_quantile(confidence) * np.sqrt(self.squares @ (right - accuracy) ** 2) / self.weight.sum()
        return max(accuracy - float(half), 0.0), min(accuracy + float(half), 1.0)

    def histograms(self, sample: Sample) -> Floats:
        """Share of each group's weight in each part of the score range."""
        low, high = sample.scale.lowest, sample.scale.highest
        part = np.clip(np.floor((self.lower - low) * (PARTS / (high - low))), 0, PARTS - 1).astype(np.intp)
        n_groups = len(sample.labels)
        counts = np.bincount(self.group * PARTS + part, self.weight, minlength=n_groups * PARTS)
        table = counts.reshape(n_groups, PARTS)
        shares: Floats = table / table.sum(axis=1, keepdims=True)
        return shares
