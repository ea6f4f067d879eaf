"""Parts of a rule's groups whose gaps have estimated limits of their own.

all groups        without strata
each stratum      with strata; their limits hold together
the other groups  where a few small ones make the limit of all groups wide: those that `Certificate.rest` is about
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairramp.core.cells import strata_slices, stratum_index
from fairramp.core.curve import Integers
from fairramp.core.labels import Label, label_key
from fairramp.core.words import points, upward_points, with_interval
from fairramp.measure.certificate import PLAIN, Spelling, certify
from fairramp.measure.verdict import Verdict, verdict_on
from fairramp.rule.limits import limit_kind, stratum_limits
from fairramp.rule.rule import Rule


@dataclass(frozen=True)
class Part:
    """Groups that are compared, by their places in the rule, and the estimated limit of their gap."""

    places: Integers
    limit: float
    left_out: tuple[tuple[Label, int], ...] = ()
    kind: str = "estimated"  # "proven" where nothing is sharper


def parts_of(rule: Rule, confidence: float) -> list[Part]:
    """The parts whose gaps are held to a limit each."""
    strata = stratum_index(rule.groups) if rule.stratified else None
    every = np.arange(len(rule.groups))
    certificate, slices = certify(rule, confidence), strata_slices(strata, len(every))
    limits = [certificate.estimated] if strata is None else stratum_limits(rule, confidence)
    kind = limit_kind(certificate.estimated, certificate.proven)
    found = [Part(every[part], limit, kind=kind) for part, limit in zip(slices, limits, strict=True)]
    if certificate.rest is not None:
        small = {label_key(label) for label, _ in certificate.left_out}
        others = np.array([k for k, label in enumerate(rule.groups) if label_key(label) not in small])
        found.append(Part(others, certificate.rest.estimated, certificate.left_out, kind))
    return found


@dataclass(frozen=True)
class Comparison:
    """The gap of one part beside its estimated limit."""

    gap: float
    interval: tuple[float, float]
    limit: float
    kind: str
    verdict: Verdict
    left_out: tuple[tuple[Label, int], ...]

    @property
    def above(self) -> float:
        """How far the lower limit of the gap is above the estimated limit."""
        return self.interval[0] - self.limit

    def sentence(self, rows: str) -> str:
        """The verdict with its numbers, which come from these rows."""
        gap = f"{with_interval(*map(points, (self.gap, *self.interval)))} {rows}."
        limit = upward_points(self.limit)
        if self.verdict is Verdict.EXCEEDED:
            return f"Above the {self.kind} limit of {limit}: the gap is {gap}"
        if self.verdict is Verdict.WITHIN:
            return f"The gap is within the {self.kind} limit of {limit}: {gap}"
        if self.gap > self.limit:
            return f"The gap is above the {self.kind} limit of {limit}, but that may be chance: {gap}"
        return f"No sign that the gap exceeds the {self.kind} limit of {limit}: {gap}"


def compared(part: Part, gap: float, interval: tuple[float, float]) -> Comparison:
    """A gap beside the limit of its part."""
    verdict = verdict_on(gap, interval, part.limit)
    return Comparison(gap, interval, part.limit, part.kind, verdict, part.left_out)


def said(comparisons: Sequence[Comparison], rows: str, spelled: Spelling = PLAIN) -> str:
    """What they say, one after the other: of all groups, and of those without a few small ones."""
    if len(comparisons) == 1:
        return comparisons[0].sentence(rows)
    texts = []
    for one in comparisons:
        whose = f"Without {spelled.groups(one.left_out)} in the fit" if one.left_out else "All groups"
        text = one.sentence(rows)
        texts.append(f"{whose}: {text[0].lower()}{text[1:]}")
    return " ".join(texts)
