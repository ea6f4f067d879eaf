"""Parts of a rule's groups, each with its own estimated limit on the gap.

all groups        without strata
each stratum      with strata; the limits hold jointly
the other groups  if a few small groups make the limit for all groups wide (see `Certificate.rest`)

A rule that mixes thresholds has no certificate. Its groups, by attribute if it has several, are compared with the
limit that the rule was fitted with.

For equalized odds, there are such parts for true positive rates and for false positive rates; the limits of both
hold jointly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairramp.core.cells import strata_slices
from fairramp.core.curve import Integers
from fairramp.core.events import SELECTION, Event
from fairramp.core.labels import Label, label_key
from fairramp.core.words import NOTHING, decimals_apart, points, upward_points, with_interval
from fairramp.measure.certificate import PLAIN, Spelling, certify, counted
from fairramp.measure.verdict import Verdict, verdict_on
from fairramp.rule.limits import FitSample, certifiable, limit_kind, limit_of_each
from fairramp.rule.rule import Rule


@dataclass(frozen=True)
class Part:
    """Groups to compare, and the estimated limit on their gap.

    `places` are indices into the rule's groups; for equalized odds, into the list of all their rates, event by
    event.
    """

    places: Integers
    limit: float
    left_out: tuple[tuple[Label, int], ...] = ()
    kind: str = "estimated"  # "proven" if no estimate is tighter; "requested" if there is no certificate
    event: Event = SELECTION  # which rates are compared


def parts_of(rule: Rule, confidence: float) -> list[Part]:
    """Split a rule's groups into parts with their limits."""
    if rule.mixes:
        every, limit = np.arange(len(rule.groups)), rule.max_gap or 0.0
        return [Part(every[part], limit, kind="requested") for part in strata_slices(rule.parts, len(every))]
    record, certificate, sample = certifiable(rule), certify(rule, confidence), FitSample.of(rule)
    n_groups, every = len(rule.groups), np.arange(len(sample.rates))
    slices = strata_slices(sample.kinds, len(every))
    limits = [certificate.estimated] if sample.kinds is None else limit_of_each(sample, confidence)
    kind, events = limit_kind(certificate.estimated, certificate.proven), rule.event.simple
    found = [
        Part(every[part], limit, kind=kind, event=events[part.start // n_groups])
        for part, limit in zip(slices, limits, strict=True)
    ]
    if (rest := certificate.rest) is not None:
        small = {label_key(label) for label, _ in certificate.left_out}
        out = np.array([label_key(label) in small for label in rule.groups])
        for i, (event, rates) in enumerate(record.compared):
            left_out = tuple((rule.groups[k], rates.rows[k]) for k in np.flatnonzero(out).tolist())
            others = np.flatnonzero(~out) + i * n_groups
            found.append(Part(others, rest.by_event[event.name], left_out, kind, event))
    return found


@dataclass(frozen=True)
class Comparison:
    """The gap of one part compared with its estimated limit."""

    gap: float
    interval: tuple[float, float]
    limit: float
    kind: str
    verdict: Verdict
    left_out: tuple[tuple[Label, int], ...]
    event: Event = SELECTION

    @property
    def above(self) -> float:
        """Distance of the gap's lower confidence limit above the estimated limit."""
        return self.interval[0] - self.limit

    def sentence(self, rows: str) -> str:
        """The verdict with its numbers; `rows` says which rows they come from."""
        decimals = decimals_apart(self.limit, self.gap, *self.interval)
        gap = with_interval(*(points(value, decimals) for value in (self.gap, *self.interval)))
        gap, limit, what = f"{gap} {rows}.", upward_points(self.limit, decimals), self.event.gap
        if self.verdict is Verdict.EXCEEDED:
            return f"Above the {self.kind} limit of {limit}: the {what} is {gap}"
        if self.verdict is Verdict.WITHIN:
            return f"The {what} is within the {self.kind} limit of {limit}: {gap}"
        if self.gap > self.limit:
            return f"The {what} is above the {self.kind} limit of {limit}, but that may be chance: {gap}"
        return f"No sign that the {what} exceeds the {self.kind} limit of {limit}: {gap}"

    def to_dict(self) -> dict[str, Any]:
        """The gap, its limits and the verdict, for JSON."""
        return {
            "rate": self.event.rate,
            "left_out": counted(self.left_out),
            "gap": self.gap,
            "gap_interval": self.interval,
            "limit": self.limit,
            "verdict": self.verdict.value,
        }


def compared(part: Part, gap: float, interval: tuple[float, float]) -> Comparison:
    """Compare a gap with the limit of its part."""
    if abs(gap - part.limit) <= NOTHING:  # a rule fitted to the limit reaches it up to rounding
        gap = part.limit
    verdict = verdict_on(gap, interval, part.limit)
    return Comparison(gap, interval, part.limit, part.kind, verdict, part.left_out, part.event)


def said(comparisons: Sequence[Comparison], rows: str, spelled: Spelling = PLAIN) -> str:
    """The sentences of all comparisons: for all groups, and for those that remain without a few small ones."""
    if not any(one.left_out for one in comparisons):
        return " ".join(one.sentence(rows) for one in comparisons)
    texts = []
    for one in comparisons:
        whose = f"Without {spelled.fit_rows(one.left_out, one.event)}" if one.left_out else "All groups"
        text = one.sentence(rows)
        texts.append(f"{whose}: {text[0].lower()}{text[1:]}")
    return " ".join(texts)
