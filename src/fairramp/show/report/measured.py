"""The rows of a report, summarized into points that are exact for all of its rules.

    rows  →  cells (group, label)  →  one summary, refined until it is exact at all ramps and at the cutoff

Rates, changes and errors are sums over the points of the summary; the rows are not read again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from fairramp.core.cells import stratum_index
from fairramp.core.curve import Booleans, Floats, Integers
from fairramp.core.events import SELECTION, Event
from fairramp.core.intervals import normal_quantile
from fairramp.core.labels import Label, label_key, show_label
from fairramp.core.ramps import Ramp, Ramps
from fairramp.core.scales import Scale
from fairramp.core.table import with_rows
from fairramp.data.groups import Codes
from fairramp.data.rows import ArrayRows, resolved
from fairramp.data.sample import Sample
from fairramp.errors import InputError
from fairramp.fit.borrow import can_borrow
from fairramp.fit.each import Attributes
from fairramp.fit.gains import Costs
from fairramp.fit.settings import Settings
from fairramp.measure.means import Sums
from fairramp.measure.rates import GroupRates, Selection, selection
from fairramp.rule.rule import Rule
from fairramp.show.labels import LABELS, LabelNames
from fairramp.show.sentences import coverage
from fairramp.show.words import isolated, plain_name

#: Bins of a histogram; a power of two, so that each bin of a summary falls into one of them.
PARTS = 64


def share_interval(sums: Sums, chances: Floats, confidence: float) -> tuple[float, float]:
    """Confidence limits of the mean a of chances c over all rows: a ± z √(Σ w² (c − a)²) / Σ w."""
    mean = sums.overall(chances)
    spread = np.sqrt(sums.squares @ (chances - mean) ** 2)
    half = float(normal_quantile(confidence) * spread / sums.weights.sum())
    return max(mean - half, 0.0), min(mean + half, 1.0)


@dataclass(frozen=True)
class KnownRows:
    """Rows of the groups that the rule knows, the settings of its fit, and notes on both."""

    sample: Sample  # every label of its cells has a row
    settings: Settings
    notes: tuple[str, ...]
    attributes: Attributes | None = None  # of a rule by each of several
    label_names: LabelNames = LABELS

    @classmethod
    def of(
        cls,
        rule: Rule,
        scores: Any,
        groups: Any,
        labels: Any,
        strata: Any,
        weights: Any,
        group_probabilities: Any = None,
        names: LabelNames = LABELS,
    ) -> "KnownRows":
        """Check the rows and leave out, with a note, those of groups that the rule does not know.

        If the rule uses group probabilities, groups are the true groups. Groups without a row of the rule's event
        are left out too: they have no rate to compare.
        """
        event = rule.event
        if event.needs_labels and labels is None:
            raise InputError(
                "This rule makes {rate}s equal, which only labeled rows show: pass {labels}, the true outcomes",
                rate=event.rate,
            )
        sample = rule.sample(
            scores,
            groups,
            labels,
            strata=strata,
            sample_weight=weights,
            group_probabilities=group_probabilities,
        )
        if sample.membership is None:
            rule.ramps_of(sample.cells)  # raises on unseen groups, depending on the rule's policy
        codes, known = sample.cells, rule.knows(sample.cells)
        occurring, values = codes.occurring(), codes.block(0, len(codes))
        having = {part: _have_event(sample, part) for part in event.simple}
        compared = known & np.logical_and.reduce(list(having.values()))
        if not compared.any():
            what = " and ".join(part.rows for part in having)
            raise InputError("No group of the rule has {what} here", what=what)
        there, keep = compared & occurring, compared[values]
        present = tuple(label for label, yes in zip(codes.labels, there, strict=True) if yes)
        cells = replace(codes, values=(np.cumsum(there) - 1)[values[keep]], offset=0, labels=present)
        sample = sample.take(keep)
        sample = replace(sample, cells=cells, groups=sample.groups if rule.stratified else cells)
        settings, note = _settings(rule, sample)
        attributes = None
        if rule.membership == "each":
            attributes = Attributes.of(present, [name for name, _ in rule.attributes])
        gone, others = int((~known[values]).sum()), int((occurring & ~known).sum())
        present_groups = int((known & occurring).sum()) if attributes is None else len(attributes.values)
        lacking = {
            part: [(label, 1) for label, yes in zip(codes.labels, known & occurring & ~have, strict=True) if yes]
            for part, have in having.items()
        }
        named = partial(with_rows, form="{}", spelled=lambda label: isolated(plain_name(show_label(label))))
        notes = {
            **dict.fromkeys(coverage(gone, others, len(rule.groups) - present_groups, len(rule.groups)), True),
            **{
                f"Groups without {rows}, which are left out of this page: {named(pairs)}.": bool(pairs)
                for rows, pairs in ((names.event(part).rows, pairs) for part, pairs in lacking.items())
            },
            note: note != "",
        }
        return cls(sample, settings, tuple(text for text, holds in notes.items() if holds), attributes, names)

    @property
    def groups(self) -> tuple[Label, ...]:
        """The groups that are compared: cells, or the values of attributes."""
        return self.sample.cells.labels if self.attributes is None else self.attributes.values

    def ramps(self, rule: Rule) -> list[Ramp]:
        """The ramps of a rule that are shown, one per group that is compared."""
        if not rule.mixes:
            return rule.ramps_of(self.sample.cells)[0]
        ramps = {label_key(label): ramp for label, ramp in zip(rule.groups, rule.ramps, strict=True)}
        return [ramps[label_key(label)] for label in self.groups]


def numbered_rows(sample: Sample) -> ArrayRows:
    """The rows in numbered cells: a group's rows or, with labels, its rows with one outcome."""
    per_group, outcomes = (1, 0) if sample.labels is None else (2, sample.labels.astype(np.intp))
    values = per_group * sample.cells.values.astype(np.intp) + outcomes
    codes = Codes(values, 0, tuple(range(per_group * len(sample.cells.labels))))
    return ArrayRows(sample.scores, codes, sample.weights, sample.scale)


def widths(ramps: Iterable[Ramp]) -> list[float]:
    """The widths of ramps in ascending order, without constant ones; 0 if there are no others."""
    return sorted(ramp.width for ramp in ramps if not ramp.is_constant) or [0.0]


def _settings(rule: Rule, sample: Sample) -> tuple[Settings, str]:
    """The settings of the rule's fit as far as these rows allow, and a note on what differs."""
    record, note = rule.record, ""
    overall = record.overall_rate if record else None
    target: str | float | None = record.target if record else None
    if overall is None and (target in (None, "base_rate") or (record and record.solver == "sgd")):
        target = rule.target_rate
    one_label = sample.labels is not None and bool((sample.labels == sample.labels[0]).all())
    missing = {
        "labels, and there are none here": sample.labels is None,
        "rows with both labels": one_label and target == "balanced_accuracy",
    }
    why = next((text for text, holds in missing.items() if holds), None)
    if target in ("accuracy", "balanced_accuracy") and why is not None:
        what = str(target).replace("_", " ")
        target = None if rule.stratified else rule.target_rate
        note = (
            f"The rule's target rate was chosen for {what}, which needs {why}. The other positions of the slider "
            + (
                "keep its target rate."
                if not rule.stratified
                else "use the target rates that are optimal by the scores."
                if not rule.event.needs_labels
                else "use the most accurate target rates."
            )
        )
    for said in record.notes(rule.max_gap) if record else []:
        note = f"{note} {said}".lstrip()
    borrows = record is not None and record.borrowed is not None
    if borrows and not can_borrow(sample):
        borrows = False
        note += " They cannot with these rows, so the other positions of the slider use each group's rows alone."
    settings = Settings(
        max_gap=rule.max_gap,
        min_ratio=rule.min_ratio,
        # For equalized odds, the least width.
        ramp_width=record.ramp_width if record else widths(rule.ramps)[0 if rule.event.parts else -1],
        ramp=rule.ramp,
        target_rate=target,
        overall_rate=overall,
        costs=record.costs if record and target == "accuracy" else None,
        cutoff=rule.cutoff,
        scale=rule.scale,
        higher_is_better=rule.higher_is_better,
        criterion=rule.criterion,
        small_groups="borrow" if borrows else "alone",
    )
    return settings, note


def _have_event(sample: Sample, event: Event) -> Booleans:
    """Which labels of the cells have rows of an event; all, if every row is one."""
    values, n = sample.cells.block(0, len(sample)), len(sample.cells.labels)
    if event.label is None or sample.labels is None:
        return np.ones(n, dtype=bool)
    return np.bincount(values[sample.labels == event.label], minlength=n) > 0


@dataclass(frozen=True)
class Measured:
    """Points that give the same results as the rows, for all of the rules and for the cutoff."""

    place: Floats
    lower: Floats
    labels: Floats | None
    own: Floats  # the classifier's own decisions
    rows: Integers  # per group
    event: Event  # whose rates are compared
    sums: Sums
    strata: Integers | None
    confidence: float
    chances: tuple[Floats, ...]  # the probability of each point under each rule
    costs: Costs | None = None

    @classmethod
    def of(
        cls, known: KnownRows, rules: Sequence[Rule], confidence: float, rows: ArrayRows | None = None
    ) -> "Measured":
        """The points of a summary of the rows or, for a rule that uses group probabilities, the rows themselves.

        `rows` are the `numbered_rows` of the sample, which remember what they counted.
        """
        sample = known.sample
        if sample.membership is None:
            return cls._of_summary(known, [one.ramps_of(sample.cells)[0] for one in rules], confidence, rows)
        weight = np.ones(len(sample)) if sample.weights is None else sample.weights
        group, x = sample.cells.block(0, len(sample)), sample.positions
        chances = tuple(one.chances(sample.scores, sample.membership) for one in rules)
        sums = Sums(group, weight, len(known.groups), weight**2, np.ones(len(sample), dtype=np.intp))
        return cls._made(known, confidence, x, x, sample.outcomes, sums, chances)

    @classmethod
    def _of_summary(
        cls, known: KnownRows, rules: list[list[Ramp]], confidence: float, rows: ArrayRows | None
    ) -> "Measured":
        """Summarize the rows, and refine the summary until it is exact at all ramps."""
        sample, border = known.sample, known.settings.problem.cutoff
        rows = numbered_rows(sample) if rows is None else rows
        summary = rows.summarize()
        cells = np.array(summary.labels, dtype=np.intp)
        seat = cells // (1 if sample.labels is None else 2)
        cutoff = np.full((1, len(seat)), border)
        for width in sorted({ramp.width for ramps in rules for ramp in ramps if not ramp.is_constant}):
            # Ramps of other widths get their own turn; the cutoff stands in for them, and for constant ramps.
            feet = np.array([[r.foot if r.width == width else border for r in ramps] for ramps in rules])[:, seat]
            summary = resolved(
                rows, summary, feet, width, np.concatenate([cutoff, feet]) if width == 0 else cutoff
            )
        p = summary.points
        cell = seat[p.group]
        labels = None if sample.labels is None else (cells % 2)[p.group].astype(np.float64)
        chances = tuple(Ramps.of(ramps).at(p.place, cell) for ramps in rules)
        group = cell if known.attributes is None else known.attributes.of_cell[cell]
        sums = Sums(group, p.weight, len(known.groups), p.weight_squares, p.rows)
        return cls._made(known, confidence, p.place, p.lower, labels, sums, chances)

    @classmethod
    def _made(
        cls,
        known: KnownRows,
        confidence: float,
        place: Floats,
        lower: Floats,
        labels: Floats | None,
        sums: Sums,
        chances: tuple[Floats, ...],
    ) -> "Measured":
        sample, settings, strata = known.sample, known.settings, None
        if sample.stratified or known.attributes is not None:
            strata = stratum_index(known.groups)
        return cls(
            place=place,
            lower=lower,
            labels=labels,
            own=(lower >= settings.problem.cutoff).astype(np.float64),
            rows=sums.total(sums.rows).astype(np.intp),
            event=settings.event,
            sums=sums,
            strata=strata,
            confidence=confidence,
            chances=chances,
            costs=Costs(*settings.costs) if settings.costs and sample.labels is not None else None,
        )

    @cached_property
    def before(self) -> tuple[Selection, GroupRates | None]:
        """What `select` finds for the classifier's own decisions."""
        return self.select(self.own)

    @cached_property
    def afters(self) -> list[tuple[Selection, GroupRates | None]]:
        """What `select` finds for each of the rules."""
        return [self.select(chances) for chances in self.chances]

    def select(self, chances: Floats) -> tuple[Selection, GroupRates | None]:
        """Rates, gaps and errors of decisions with the given probabilities.

        The rates, gap and ratio of the first are those of the event; the second has selection rates, and is None
        if these are the same.
        """
        tally = self.sums.tally(chances, self.labels)
        found = selection(tally, self.confidence, self.strata, self.costs, self.event)
        return found, None if self.event is SELECTION else found.rates[SELECTION.name]

    def accuracy_interval(self, chances: Floats) -> tuple[float, float] | None:
        """Confidence limits of the accuracy; None without labels."""
        if self.labels is None:
            return None
        return share_interval(self.sums, np.where(self.labels == 1, chances, 1 - chances), self.confidence)

    def histograms(self, scale: Scale) -> Floats:
        """Share of each group's weight in each bin of the score range, from the lowest score."""
        low, high = scale.lowest, scale.highest
        part = np.clip(np.floor((self.lower - low) * (PARTS / (high - low))), 0, PARTS - 1).astype(np.intp)
        table = self.sums.total(self.sums.weights, part, PARTS).reshape(-1, PARTS)
        shares: Floats = table / table.sum(axis=1, keepdims=True)
        return shares if scale.higher_is_better else shares[:, ::-1]
