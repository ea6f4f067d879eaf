"""Rows as a report measures them: in points that are exact for all of its rules.

    rows  →  cells (group, label)  →  one summary, refined until ramp ends and the cut-off lie in exact points

Rates, changes and errors alike are sums over its points; no row is looked at again.
"""

from dataclasses import dataclass
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
from fairramp.measure.audit import Selection, Sums, selection
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

        fitted = set(map(label_key, rule.groups))
        known = np.array([label_key(label) in fitted for label in codes.labels])
        occurring, values = codes.occurring(), codes.block(0, len(codes))
        there, keep = known & occurring, known[values]
        if not there.any():
            raise InputError("None of the rows is of a group that the rule was fitted on")
        if not keep.all():
            column, values = column[keep], values[keep]
            w, outcomes = (None if part is None else part[keep] for part in (w, outcomes))
        present = tuple(label for label, yes in zip(codes.labels, there, strict=True) if yes)
        request, note = _request(rule, outcomes is not None)
        gone, others, n = int((~keep).sum()), int((occurring & ~known).sum()), len(rule.groups)
        notes = {
            f"{gone:,} row{'s' if gone > 1 else ''} of {others:,} group{'s' if others > 1 else ''} that the rule "
            f"was not fitted on {'are' if gone > 1 else 'is'} left out of this page.": gone > 0,
            f"{n - len(present):,} of the rule's {n:,} groups have no row here.": len(present) < n,
            note: note != "",
        }
        codes = Codes((np.cumsum(there) - 1)[values], 0, present, codes.names, codes.n_columns)
        return cls(column, codes, w, outcomes, request, tuple(text for text, holds in notes.items() if holds))

    def rows(self) -> ArrayRows:
        """The rows by group."""
        return ArrayRows(self.column, self.codes, self.weights, self.request.scale)

    def cells(self) -> ArrayRows:
        """The rows by group and label."""
        if self.outcomes is None:
            return self.rows()
        values = 2 * self.codes.values.astype(np.intp) + self.outcomes.astype(np.intp)
        cells = Codes(values, 0, tuple(range(2 * len(self.codes.labels))))
        return ArrayRows(self.column, cells, self.weights, self.request.scale)


def _request(rule: Rule, labelled: bool) -> tuple[Request, str]:
    """What was asked of the rule's fit, and what had to be changed about it."""
    record, note, stratified = rule.record, "", rule.criterion == "covariance"
    target: str | float | None = record.target if record else None
    if target is None or target == "base_rate" or (record and record.solver == "sgd"):
        target = rule.target_rate
    if target == "accuracy" and not labelled:
        target = None if stratified else rule.target_rate
        note = (
            "The rule aims at the most accurate rates, which needs labels. None are given here, so the other "
            "positions of the slider keep its "
            + ("strata and aim at the scores' own optimum." if stratified else "target rate.")
        )
    request = Request.checked(
        max_gap=rule.max_gap,
        ramp_width=record.ramp_width if record else rule.ramp_width,
        ramp=rule.ramp,
        target_rate="optimal" if target is None else target,
        cutoff=rule.cutoff,
        scale=rule.scale,
        unseen_group="error",
        stratified=stratified,
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
        thresholds, ties = np.array([(ramp.threshold, ramp.tie_chance) for ramp in ramps]).T
        return cls(thresholds, ties, thresholds - OFFSETS[rule.ramp] * rule.ramp_width, rule.ramp_width)

    def chances(self, measured: "Measured") -> Floats:
        """Chance of a yes at each point."""
        place, group = measured.place, measured.sums.group
        feet: Floats = self.feet[group]
        if self.width > 0:
            with np.errstate(over="ignore"):
                return np.clip((place - feet) / self.width, 0.0, 1.0)
        return np.where(place == feet, self.tie_chances[group], place > feet).astype(np.float64)


@dataclass(frozen=True)
class Measured:
    """Points that are as good as the rows for all of the rules, and for the cut-off."""

    place: Floats
    lower: Floats
    labels: Floats | None
    own: Floats  # the classifier's own decision
    rows: Integers  # of each group
    sums: Sums
    strata: Integers | None
    confidence: float

    @classmethod
    def of(cls, sample: Sample, ramps: list[PlacedRamps], confidence: float) -> "Measured":
        """Summarise and look closer until all ramps are exact."""
        rows, n_groups, border = sample.cells(), len(sample.codes.labels), sample.request.problem.cutoff
        summary: Summary = rows.summarize()
        per_group = 1 if sample.outcomes is None else 2
        cells = np.arange(n_groups) if per_group == 1 else np.array(summary.labels, dtype=np.intp)
        seat = cells // per_group
        feet = {
            width: np.stack([r.feet[seat] for r in ramps if r.width == width])
            for width in sorted({r.width for r in ramps})
        }
        cutoff = np.full((1, len(seat)), border)
        coarse = True
        while coarse:
            found = [
                summary.unresolved(places, width, np.concatenate([cutoff, places]) if width == 0 else cutoff)
                for width, places in feet.items()
            ]
            split, average = (np.any(which, axis=0) for which in zip(*found, strict=True))
            coarse = bool(split.any() or average.any())
            if coarse:
                summary = summary.replace(split | average, rows.refine(summary, split, average & ~split))
        p = summary.points
        group = seat[p.group]
        return cls(
            place=p.place,
            lower=p.lower,
            labels=None if sample.outcomes is None else (cells % 2)[p.group].astype(np.float64),
            own=(p.lower >= border).astype(np.float64),
            rows=np.bincount(group, p.rows, minlength=n_groups).astype(np.intp),
            sums=Sums(group, p.weight, n_groups, p.weight_squares),
            strata=stratum_index(sample.codes.labels) if sample.request.stratified else None,
            confidence=confidence,
        )

    def select(self, chances: Floats) -> Selection:
        """Rates, gaps and errors of decisions with the given chances."""
        return selection(self.sums, chances, self.labels, self.confidence, self.strata)

    def share(self, values: Floats) -> float:
        """Mean of a quantity over all rows."""
        return float(self.sums.weights @ values / self.sums.weights.sum())

    def accuracy_interval(self, chances: Floats) -> tuple[float, float] | None:
        """Limits of the share of right decisions: a ± z √(Σ w² (c − a)²) / Σ w."""
        if self.labels is None:
            return None
        right = np.where(self.labels == 1, chances, 1 - chances)
        accuracy, spread = self.share(right), np.sqrt(self.sums.squares @ (right - self.share(right)) ** 2)
        half = float(normal_quantile(self.confidence) * spread / self.sums.weights.sum())
        return max(accuracy - half, 0.0), min(accuracy + half, 1.0)

    def histograms(self, scale: Scale) -> Floats:
        """Share of each group's weight in each part of the score range."""
        low, high = scale.lowest, scale.highest
        part = np.clip(np.floor((self.lower - low) * (PARTS / (high - low))), 0, PARTS - 1).astype(np.intp)
        cells, n_parts = self.sums.group * PARTS + part, len(self.rows) * PARTS
        table = np.bincount(cells, self.sums.weights, minlength=n_parts).reshape(-1, PARTS)
        shares: Floats = table / table.sum(axis=1, keepdims=True)
        return shares
