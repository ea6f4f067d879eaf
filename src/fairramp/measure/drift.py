"""Drift: whether the gap of new rows exceeds the estimated limit.

The rule's certificate has an estimated limit g of the population's gap, with confidence 1 − δ. New rows have
Newcombe's limits of their gap (`core.intervals`), with confidence 1 − δ, too. If the lower one is above g, the
gap has changed. While nothing has changed, that happens with probability 2δ at most: the estimated limit may be
wrong (δ), or the new rows' limits (δ). It is much rarer, because both must err in one direction.

Groups are compared in parts, each with its own limit (`measure.parts`): strata, or all groups and those that are
left without a few small ones. The new rows' δ is shared between the parts. Rows of groups that the rule does not
know are left out. What such rows can find is computed in `measure.power`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairramp.core.cells import cell_columns, largest_gap
from fairramp.core.checks import check_number
from fairramp.core.curve import Floats, Integers
from fairramp.core.intervals import gap_interval, wilson_interval
from fairramp.core.labels import Label, label_key, show_label
from fairramp.core.table import Table, notebook_html, one_line, wrapped
from fairramp.core.words import percent, percentage, upward_points
from fairramp.errors import warn
from fairramp.measure.certificate import PLAIN, Spelling
from fairramp.measure.means import mean_chances
from fairramp.measure.parts import Comparison, Part, compared, parts_of, said
from fairramp.measure.power import Compared, detectable_gap, detectable_rates
from fairramp.measure.verdict import Verdict, is_sound, worst
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
    missing : tuple of label
        Groups of the rule that have no new row; nothing is said about them.
    comparisons : tuple of Comparison
        What the sentence says: of all groups, and of those without a few small ones; with strata, of the one.
    within_strata : bool
        Whether the rule equalizes within strata.
    confidence : float
        Confidence of the intervals.
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
    missing: tuple[Label, ...]
    comparisons: tuple[Comparison, ...]
    within_strata: bool
    confidence: float
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
        """Gap that these numbers of rows find nine times in ten, if one group drifts: that hardest to find.

        NaN where the rows are too few to find even the largest drift of some group that often.
        """
        return detectable_gap(self._compared, *self._detectable)

    def table(self) -> Table:
        """One row per group: its rows, its expected rate on the fit rows and on these, and what would be found.

        `new_rate_low` and `new_rate_high` are confidence limits of each rate. If one group drifts to a rate of
        at most `detectable_below` or at least `detectable_above` while the others stay as in the fit, this many
        rows detect it nine times in ten. NaN, shown as –, means that even a rate of 0 or 1 is missed more often.
        Simulated with a fixed seed.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> print(rule.check(data.score[12000:], data.sex[12000:]).table())
                         fit                        detectable  detectable
        group       n   rate     new rate (95% CI)       below       above
        ------  -----  -----  --------------------  ----------  ----------
        Female  4,118  20.0%  20.5% [19.3%, 21.8%]       15.9%       24.3%
        Male    8,303  20.0%  20.7% [19.9%, 21.6%]       15.8%       24.3%
        """
        below, above = self._detectable
        return Table(
            cell_columns(self.groups, stratified=self.within_strata)
            | {
                "n": self.rows,
                "fit_rate": self.rates_then,
                "new_rate": self.rates,
                "new_rate_low": self.lower,
                "new_rate_high": self.upper,
                "detectable_below": below,
                "detectable_above": above,
            },
            shares=("fit_rate", "new_rate", "detectable_below", "detectable_above"),
            confidence=self.confidence,
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
        if len(self.groups) == 1:
            return f"Only {one_line(show_label(self.groups[0]))} has rows, so there is no gap to compare."
        return said(self.comparisons, "on the new rows", spelled)

    def _repr_html_(self) -> str:
        return notebook_html(*self.sentences(), self.table())

    def __repr__(self) -> str:
        return "\n".join(map(wrapped, self.sentences()))

    def sentences(self) -> list[str]:
        """What its text consists of: the verdict with its numbers, and how often that is wrong.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> len(rule.check(data.score[12000:], data.sex[12000:]).sentences())
        2
        """
        first = self.sentence()
        if self.within_strata:
            first += f" This is stratum {one_line(show_label(self.stratum))}."
        if self.pair is not None:
            now = dict(zip(map(label_key, self.groups), zip(self.rates, self.rows, strict=True), strict=True))
            far = ((label, *now[label_key(label)]) for label in self.pair)
            shown = (f"{one_line(show_label(label))} {percent(rate)} of {n:,} rows" for label, rate, n in far)
            first += f" Furthest apart: {', '.join(shown)}."
        if self.missing:
            none = ", ".join(one_line(show_label(label)) for label in self.missing[:5])
            first += f" No rows of {none}{', …' if len(self.missing) > 5 else ''}: nothing is said about them."
        second = f"False alarms: at most {percentage(round(self.false_alarm_rate, 12))} of such checks."
        if len(self.groups) > 1:
            gap = self.detectable_gap
            second += (
                f" This many rows find a gap of {upward_points(gap)} nine times in ten, whichever group drifts."
                if np.isfinite(gap)
                else " These rows are too few to find a drift of every group nine times in ten."
            )
        return [first, second]


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
    record = certifiable(rule)
    if record.weighted and sample_weight is None:
        warn("The rule was fitted with weights: pass {sample_weight}, or rates then and now are not comparable")
    rates, every = record.rates["selection"], parts_of(rule, confidence)
    seen = mean_chances(rule, scores, groups, strata, sample_weight)
    places = {label_key(label): k for k, label in enumerate(rule.groups)}
    seats = np.array([places[label_key(label)] for label in seen.groups])
    parts = _seen(every, seats)
    several = sum(len(part.places) > 1 for part in parts)
    each = 1 - delta / max(several, 1)
    rows = seen.effective_rows
    # Rows that no number counts show nothing.
    lower, upper = np.where(np.isfinite(rows), wilson_interval(seen.rates, rows, confidence), np.nan)
    # Strata that hold one group have nothing to compare.
    counted = [part for part in parts if len(part.places) > 1] or parts[:1]
    found = [
        compared(part, largest_gap(seen.rates[part.places]), _interval(seen.rates, rows, part.places, each))
        for part in counted
    ]
    place = max(range(len(found)), key=lambda i: found[i].above if np.isfinite(found[i].above) else np.inf)
    part, decided, known = counted[place], found[place], seen.groups
    missing = tuple(label for k, label in enumerate(rule.groups) if k not in set(seats.tolist()))
    verdict = worst(one.verdict for one in found)
    if verdict is Verdict.WITHIN and (missing or len(part.places) == 1):
        verdict = Verdict.UNDECIDED  # of a group without rows nothing is known
    inside = seen.rates[part.places]
    pair = (known[part.places[int(inside.argmax())]], known[part.places[int(inside.argmin())]])
    first = known[part.places[0]]
    fit_rows = np.array(rates.effective_rows)[seats]
    return Check(
        verdict=verdict,
        gap=decided.gap,
        gap_interval=decided.interval,
        limit=part.limit,
        groups=known,
        rows=seen.rows,
        rates=tuple(seen.rates.tolist()),
        lower=tuple(lower.tolist()),
        upper=tuple(upper.tolist()),
        rates_then=tuple(rates.after[k] for k in seats),
        pair=pair if decided.gap > 0 else None,
        stratum=first[0] if rule.stratified and isinstance(first, tuple) else None,
        left_out=part.left_out,
        missing=missing,
        comparisons=(decided,) if rule.stratified else tuple(found),
        within_strata=rule.stratified,
        confidence=confidence,
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
    found = [replace(part, places=np.flatnonzero(np.isin(seats, part.places))) for part in parts]
    return [part for part in found if len(part.places)]


def _interval(rates: Floats, rows: Floats, places: Integers, confidence: float) -> tuple[float, float]:
    if not np.isfinite(rows[places]).all():
        return np.nan, np.nan
    return gap_interval(rates[places], rows[places], confidence)
