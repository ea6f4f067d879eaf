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

from fairramp.core.cells import largest_gap, strata_slices
from fairramp.core.curve import Floats, Integers
from fairramp.core.events import SELECTION, Event
from fairramp.core.headline import SMALL_GROUP, judged, with_small
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
    #: The gap between the groups that a headline compares, if these are not all, and what the others are called.
    gap_of_large: float | None = None
    small: str = ""

    @property
    def above(self) -> float:
        """Distance of the gap's lower confidence limit above the estimated limit."""
        return self.interval[0] - self.limit

    def headline(self, rows: str) -> str:
        """The gap between groups large enough to judge; empty if all are, or fewer than two."""
        if self.gap_of_large is None:
            return ""
        of = f"groups with at least {SMALL_GROUP} {self.event.rows}"
        return f"Between {of}, the {self.event.gap} is {points(self.gap_of_large)} {rows}. "

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


def compared(part: Part, rates: Floats, rows: Sequence[float], interval: tuple[float, float]) -> Comparison:
    """Compare the gap of a part with its limit; `rates` and `rows` are those of all groups."""
    n, r = np.asarray(rows)[part.places], rates[part.places]
    gap, large = largest_gap(r), judged(n)
    if abs(gap - part.limit) <= NOTHING:  # a rule fitted to the limit reaches it up to rounding
        gap = part.limit
    return Comparison(
        gap,
        interval,
        part.limit,
        part.kind,
        verdict_on(gap, interval, part.limit),
        part.left_out,
        part.event,
        gap_of_large=None if large.all() else largest_gap(r[large]),
        small=with_small(n >= SMALL_GROUP, part.event) if (n < SMALL_GROUP).any() else "",
    )


def said(comparisons: Sequence[Comparison], rows: str, spelled: Spelling = PLAIN) -> str:
    """The sentences of all comparisons: for the groups that remain without a few small ones, and for all.

    Each says how many of its groups are too small to judge.
    """
    several = any(one.left_out for one in comparisons)
    texts = []
    for one in sorted(comparisons, key=lambda one: not one.left_out):
        whose = ""
        if several:
            whose = f"Without {spelled.fit_rows(one.left_out, one.event)}" if one.left_out else "All groups"
        text, lead = one.sentence(rows), "" if several else one.headline(rows)
        small = f", {one.small[0].lower()}{one.small[1:]}" if whose and one.small else one.small
        texts.append(f"{lead}{whose}{small}: {text[0].lower()}{text[1:]}" if whose or small else text)
    return " ".join(texts)
