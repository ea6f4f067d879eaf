"""Drift: whether the gap of new rows exceeds the estimated limit.

The rule's certificate has an estimated limit g of the population's gap, with confidence 1 − δ. New rows have
Newcombe's limits of their gap (`core.intervals`), with confidence 1 − δ, too. If the lower one is above g, the
gap has changed. While nothing has changed, that happens with probability 2δ at most: the estimated limit may be
wrong (δ), or the new rows' limits (δ). It is much rarer, because both must err in one direction.

Groups are compared in parts, each with its own limit (`measure.parts`): strata, or all groups and those that are
left without a few small ones. The new rows' δ is shared between the parts. Rows of groups that the rule does not
know are left out. What such rows can find is computed in `measure.power`.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fairramp.core.cells import cell_columns, largest_gap
from fairramp.core.checks import check_number
from fairramp.core.curve import Floats, Integers
from fairramp.core.intervals import gap_interval, wilson_interval
from fairramp.core.labels import Label, label_key, show_label
from fairramp.core.table import Table, one_line, percentage
from fairramp.measure.certificate import PLAIN, Spelling
from fairramp.measure.means import mean_chances
from fairramp.measure.parts import Part, parts_of
from fairramp.measure.power import Compared, detectable_gap, detectable_rates
from fairramp.measure.verdict import Verdict, is_sound, verdict_on, worst
from fairramp.rule.limits import certifiable
from fairramp.rule.rule import Rule


@dataclass(frozen=True, repr=False)
class Check:
    """What new rows say about a rule's estimated limit.

    Attributes
    ----------
    verdict : Verdict
        Whether the gap is shown to be within the limit, to exceed it, or neither.
    gap : float
        Gap on the new rows, in expectation over random decisions.
    gap_interval : tuple of float
        Its confidence limits.
    limit : float
        The estimated limit of the gap, as in `fairramp.Certificate`.
    groups, rows, rates, lower, upper : tuple
        What the new rows show, group by group: rows, expected rates and confidence limits of each rate.
    rates_then : tuple
        The rates on the fit rows.
    pair : tuple of label, or None
        The groups with the highest and the lowest rate, whose difference is `gap`.
    stratum : label or None
        For rules that equalize within strata, the one whose gap it is: that furthest above its limit.
    left_out : tuple of tuples of label and int
        Small groups with their fit rows, if the gap is that between the other groups: they make the limit of all
        groups wide, and the others are further above a limit of their own.
    within_strata : bool
        Whether the rule equalizes within strata.
    false_alarm_rate : float
        Probability at most of `has_drifted` while nothing has changed.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
    >>> rule.check(data.score[12000:], data.sex[12000:]).has_drifted
    False
    """

    verdict: Verdict
    gap: float
    gap_interval: tuple[float, float]
    limit: float
    groups: tuple[Label, ...]
    rows: tuple[int, ...]
    rates: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    rates_then: tuple[float, ...]
    pair: tuple[Label, Label] | None
    stratum: Label
    left_out: tuple[tuple[Label, int], ...]
    within_strata: bool
    false_alarm_rate: float
    _compared: Compared = field(compare=False)

    @property
    def has_drifted(self) -> bool:
        """Whether the gap is shown to exceed the estimated limit."""
        return self.verdict is Verdict.EXCEEDED

    @property
    def is_sound(self) -> bool:
        """Whether all limits are numbers; nothing is decided otherwise."""
        return is_sound(self.gap, self.gap_interval) and bool(np.isfinite([*self.lower, *self.upper]).all())

    @cached_property
    def _detectable(self) -> tuple[Floats, Floats]:
        return detectable_rates(self._compared)

    @cached_property
    def detectable_gap(self) -> float:
        """Gap that these numbers of rows find nine times in ten, if one group drifts: that hardest to find."""
        return detectable_gap(self._compared, *self._detectable)

    def table(self) -> Table:
        """One row per group: its rows, its expected rate on the fit rows and on these, and what would be found.

        `now_from` and `now_to` are confidence limits of each rate. If a group alone drifts to a rate of at most
        `found_below` or at least `found_above`, and the others stay as in the fit, this many rows find it nine
        times in ten; NaN where even 0 or 1 is missed more often. Simulated with a fixed seed.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> print(rule.check(data.score[12000:], data.sex[12000:]).table())
        group       n    rate    rate     now     now   found   found
                         then     now    from      to   below   above
        ------  -----  ------  ------  ------  ------  ------  ------
        Female  4,118  0.2000  0.2051  0.1931  0.2177  0.1594  0.2430
        Male    8,303  0.2000  0.2075  0.1989  0.2163  0.1576  0.2430
        """
        below, above = self._detectable
        return Table(
            cell_columns(self.groups, stratified=self.within_strata)
            | {
                "n": self.rows,
                "rate_then": self.rates_then,
                "rate_now": self.rates,
                "now_from": self.lower,
                "now_to": self.upper,
                "found_below": below,
                "found_above": above,
            }
        )

    def sentence(self, spelled: Spelling = PLAIN) -> str:
        """The verdict with its numbers.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> print(rule.check(data.score[12000:], data.sex[12000:]).sentence().partition(": ")[0])
        No sign that the gap exceeds the estimated limit of 1.6 points
        """
        if not self.has_drifted and not self.is_sound:
            return "The limits of the gap are not numbers, so nothing is decided."
        whose = f"Without {spelled.groups(self.left_out)}: " if self.left_out else ""
        said = {
            Verdict.WITHIN: "The gap is within the estimated limit of {}: {}",
            Verdict.EXCEEDED: "Above the estimated limit of {}: the gap is {}",
            Verdict.UNDECIDED: "No sign that the gap exceeds the estimated limit of {}: {}",
        }[self.verdict]
        low, high = map(spelled.gap, self.gap_interval)
        on = f"{spelled.gap(self.gap)} ({low} to {high}) on the new rows."
        said = said.format(spelled.limit(self.limit), on)
        return whose + (f"{said[0].lower()}{said[1:]}" if whose else said)

    def __repr__(self) -> str:
        first = self.sentence()
        if self.within_strata:
            first += f" This is stratum {one_line(show_label(self.stratum))}."
        if self.pair is not None:
            now = dict(zip(map(label_key, self.groups), zip(self.rates, self.rows, strict=True), strict=True))
            far = ((label, *now[label_key(label)]) for label in self.pair)
            said = (f"{one_line(show_label(label))} {100 * rate:.1f}% of {n:,} rows" for label, rate, n in far)
            first += f" Furthest apart: {', '.join(said)}."
        second = (
            f"False alarms: at most {percentage(round(self.false_alarm_rate, 12))} of such checks. This many "
            f"rows find a gap of {PLAIN.limit(self.detectable_gap)} nine times in ten, whichever group drifts."
        )
        return "\n".join(textwrap.fill(part, 80) for part in (first, second))


@dataclass(frozen=True)
class _Found:
    """What the new rows show of one part."""

    part: Part
    gap: float
    interval: tuple[float, float]

    @property
    def above(self) -> float:
        """How far the lower limit is above the estimated limit."""
        return self.interval[0] - self.part.limit


def check(
    rule: Rule,
    scores: Any,
    groups: Any,
    *,
    strata: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Check:
    """Compare a rule's gap on new rows with its estimated limit."""
    delta = 1 - check_number("confidence", confidence, 0.5, 1 - 1e-9)
    rates = certifiable(rule).rates["selection"]
    every = parts_of(rule, confidence)
    seen = mean_chances(rule, scores, groups, strata, sample_weight)
    places = {label_key(label): k for k, label in enumerate(rule.groups)}
    seats = np.array([places[label_key(label)] for label in seen.groups])
    parts = _seen(every, seats)
    several = sum(len(part.places) > 1 for part in parts)
    each = 1 - delta / max(several, 1)
    rows = seen.effective_rows
    # Rows that no number counts show nothing.
    lower, upper = np.where(np.isfinite(rows), wilson_interval(seen.rates, rows, confidence), np.nan)
    found = [
        _Found(part, largest_gap(seen.rates[part.places]), _interval(seen.rates, rows, part.places, each))
        for part in parts
    ]
    # Strata that hold one group have nothing to compare.
    counted = [one for one in found if len(one.part.places) > 1] or found[:1]
    worst_one = max(counted, key=lambda one: one.above if np.isfinite(one.above) else np.inf)
    verdict = worst(verdict_on(one.gap, one.interval, one.part.limit) for one in counted)
    part, known = worst_one.part, seen.groups
    inside = seen.rates[part.places]
    pair = (known[part.places[int(inside.argmax())]], known[part.places[int(inside.argmin())]])
    first = known[part.places[0]]
    fit_rows = np.array(rates.effective_rows)[seats]
    return Check(
        verdict=verdict,
        gap=worst_one.gap,
        gap_interval=worst_one.interval,
        limit=part.limit,
        groups=known,
        rows=seen.rows,
        rates=tuple(seen.rates.tolist()),
        lower=tuple(lower.tolist()),
        upper=tuple(upper.tolist()),
        rates_then=tuple(rates.after[k] for k in seats),
        pair=pair if len(part.places) > 1 else None,
        stratum=first[0] if rule.stratified and isinstance(first, tuple) else None,
        left_out=part.left_out,
        within_strata=rule.stratified,
        # Limits of strata hold together; that of the groups without a few small ones is a second limit.
        false_alarm_rate=(2 + any(part.left_out for part in every)) * delta,
        _compared=Compared(
            np.array(rates.after)[seats],
            fit_rows,
            rows,
            [(p.places, p.limit) for p in parts if len(p.places) > 1 and np.isfinite(rows[p.places]).all()],
            each,
        ),
    )


def _seen(parts: Sequence[Part], seats: Integers) -> list[Part]:
    """The parts that have rows, by the places of their groups among those that do."""
    found = [Part(np.flatnonzero(np.isin(seats, part.places)), part.limit, part.left_out) for part in parts]
    return [part for part in found if len(part.places)]


def _interval(rates: Floats, rows: Floats, places: Integers, confidence: float) -> tuple[float, float]:
    if not np.isfinite(rows[places]).all():
        return np.nan, np.nan
    return gap_interval(rates[places], rows[places], confidence)
