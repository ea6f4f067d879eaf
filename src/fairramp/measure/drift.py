"""Drift: test whether the gap on new rows exceeds the estimated limit.

The rule's certificate has an estimated limit g on the gap in the population, with confidence 1 − δ. The gap on
new rows has a Newcombe interval (`core.intervals`), also with confidence 1 − δ. If its lower end is above g, the
gap has changed. If nothing has changed, this happens with probability at most 2δ: the estimated limit may be
wrong (δ), or the interval may be (δ). In practice it is much rarer, because both must err in the same direction.

Groups are compared in parts, each with its own limit (`measure.parts`): strata, or all groups and the groups that
remain without a few small ones. The parts share the δ of the new rows. Rows of groups unknown to the rule are
left out, and for true and false positive rates those with the other label. For equalized odds, both rates are
compared, and their parts share δ too. A rule that mixes thresholds has no certificate, so g is the gap that it
was fitted with; while the gap in the population is at most g, the probability of an alarm is at most δ. The same
holds for a rule for several classes, whose parts are the classes (`measure.class_drift`).
`measure.power` computes the drifts that a check can detect.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairramp.core.bands import smallest_ratio
from fairramp.core.cells import cell_columns, stratum_index
from fairramp.core.checks import check_number
from fairramp.core.curve import Floats, Integers
from fairramp.core.events import SELECTION, ClassEvent, Event
from fairramp.core.headline import SMALL_GROUP, ends, joined, judged
from fairramp.core.intervals import gap_interval, wilson_interval
from fairramp.core.labels import Label, label_key, show_label
from fairramp.core.table import Table, one_line
from fairramp.core.words import NOTHING, number, percent, percentage, plain, upward_points, wrapped
from fairramp.errors import InputError, UnsupportedError, warn
from fairramp.measure.certificate import PLAIN, Spelling, counted
from fairramp.measure.means import MeanChances, mean_chances
from fairramp.measure.parts import Comparison, Part, compared, parts_of, said
from fairramp.measure.power import Compared, detectable_gap, detectable_rates
from fairramp.measure.verdict import Verdict, is_sound, worst
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.limits import certifiable, recorded
from fairramp.rule.rule import Rule
from fairramp.rule.verbs import Drawn

#: Which of several rates may drift.
_WHICHEVER = {"error_rate": ", in either rate", "class": ", in any class"}


@dataclass(frozen=True, repr=False)
class Check(Drawn):
    """Result of `Rule.check` or `ClassRule.check`: the gap on new rows compared with a limit.

    Attributes
    ----------
    verdict : Verdict
        Whether the new rows show that the gap is within the limit, that it exceeds the limit, or neither.
    gap : float
        Gap on the new rows, in expectation over random decisions; for equalized odds, the one of the two that is
        further above its limit; for several classes, the one that decides the verdict.
    gap_interval : tuple of float
        Confidence limits of the gap.
    limit : float
        The estimated limit on the gap, as in `fairramp.Certificate`; for a rule that uses group probabilities,
        by each of several attributes or for several classes, the `max_gap` of the rule.
    groups, rows, rates, lower, upper : tuple
        Groups with new rows, their numbers of new rows, and their expected rates with confidence limits. For true
        and false positive rates, only rows with that label count. For equalized odds, the groups with new rows of
        label 1 and their true positive rates, followed by those of label 0 and their false positive rates. For
        several classes, the groups and their rates of the first class, followed by those of the second, and so
        on.
    rates_then : tuple
        The rates on the fit rows.
    pair : tuple of label, or None
        The groups with the highest and the lowest rate, whose difference is `gap`.
    stratum : label or None
        The stratum with this gap, the one furthest above its limit; None for rules without strata.
    left_out : tuple of tuples of label and int
        Small groups and their numbers of fit rows, if `gap` does not include them, because they make the limit
        for all groups wide and the gap between the other groups is further above its own limit.
    missing : tuple of label
        Groups of the rule without new rows; they are not checked. For equalized odds, groups without new rows of
        either label, as `missing_events` says.
    comparisons : tuple of Comparison
        The comparisons behind the sentence: for all groups, and for those that remain without a few small ones;
        with strata, for `stratum` only. For equalized odds, of both rates; for several classes, only the one that
        decides.
    within_strata : bool
        Whether the rule equalizes within strata.
    confidence : float
        Confidence level of the intervals.
    false_alarm_rate : float
        Upper bound on the probability of `has_drifted` if nothing has changed; if `limit` is the `max_gap` of the
        rule, if the gap in the population is at most that.
    by_attribute : bool
        Whether groups are compared within each attribute; `groups` then holds (attribute, value) pairs, and
        `stratum` is the attribute with this gap.
    event : Event
        Which rates are compared: the ones that the rule makes equal.
    events, missing_events : tuple of Event
        Which rate each entry of `rates` is, and which each group in `missing` lacks.
    gap_event : Event
        Which rate `gap` is about.
    min_ratio : float or None
        The smallest ratio that the rule allows on its fit rows, if it limits the ratio instead of the gap.

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
    _places: Integers = field(compare=False)
    events: tuple[Event, ...]
    missing_events: tuple[Event, ...]
    gap_event: Event
    event: Event = SELECTION
    min_ratio: float | None = None
    by_attribute: bool = False

    @property
    def rate(self) -> str:
        """What the rates are called, such as "selection rate"; for equalized odds, "error rate"."""
        return self.event.rate

    @property
    def gap_rate(self) -> str:
        """Which rate `gap` is about, as in `rate`."""
        return self.gap_event.rate

    @property
    def has_drifted(self) -> bool:
        """Whether the new rows show that the gap exceeds the estimated limit."""
        return self.verdict is Verdict.EXCEEDED

    @property
    def is_sound(self) -> bool:
        """Whether all confidence limits are finite; otherwise the check is undecided."""
        return is_sound(self.gap, self.gap_interval) and bool(np.isfinite([*self.lower, *self.upper]).all())

    @cached_property
    def _detectable(self) -> tuple[Floats, Floats]:
        return detectable_rates(self._compared)

    @cached_property
    def detectable_gap(self) -> float:
        """Gap that this many rows detect nine times out of ten, whichever group drifts.

        NaN if, for some group, these rows are too few to detect even the largest possible drift that often.
        """
        return detectable_gap(self._compared, *self._detectable)

    def table(self) -> Table:
        """One row per group: number of new rows, rate on the fit rows and on the new rows, and detectable drift.

        For equalized odds, one row per group and `error_rate`, TPR (true positive rate) or FPR (false positive
        rate). For several classes, one row per `class` and group.
        `new_rate_low` and `new_rate_high` are the confidence limits of the new rate. If one group drifts to a
        rate of at most `detectable_below` or at least `detectable_above` while the others stay as in the fit,
        this many rows detect it nine times out of ten. NaN, shown as –, means that even a rate of 0 or 1 is
        detected less often. The detectable rates are simulated with a fixed seed.

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
            cell_columns(
                self.groups,
                stratified=self.within_strata or self.by_attribute,
                events=self.events if self.event.parts else (),
                outer="attribute" if self.by_attribute else "stratum",
            )
            | {
                "n": self.rows,
                "fit_rate": self.rates_then,
                "new_rate": self.rates,
                "new_rate_low": self.lower,
                "new_rate_high": self.upper,
                "detectable_below": below,
                "detectable_above": above,
            },
            headings=drift_headings(self.event),
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
            return "The confidence limits of the gap are not numbers."
        if len(self.groups) == (1 if self.event.needs_labels else len(self.event.simple)):
            only = one_line(show_label(self.groups[0]))
            return f"Only group {only} has {self.events[0].rows}, so there is no gap."
        if len(set(self.events)) == len(self.events):
            return "No two groups have rows with the same label, so there is no gap."
        if self.within_strata and not self._compared.parts:
            return "No stratum has rows of two groups, so there is no gap."
        return said(self.comparisons, "on the new rows", spelled)

    def to_dict(self) -> dict[str, Any]:
        """All results as plain values, ready for JSON, with None for unknown values and NaN.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> found = rule.check(data.score[12000:], data.sex[12000:]).to_dict()
        >>> found["verdict"], [group["n"] for group in found["groups"]]
        ('undecided', [4118, 8303])
        """
        return plain(
            {
                "rate": self.rate,
                "verdict": self.verdict.value,
                "has_drifted": self.has_drifted,
                "gap_rate": self.gap_rate,
                "gap": self.gap,
                "gap_interval": self.gap_interval,
                "limit": self.limit,
                "groups": list(self.table().rows()),
                "pair": self.pair,
                "stratum": self.stratum,
                "false_alarm_rate": self.false_alarm_rate,
                "detectable_gap": self.detectable_gap,
                "left_out": counted(self.left_out),
                "missing": list({label_key(label): label for label in self.missing}.values()),
                "comparisons": [one.to_dict() for one in self.comparisons],
            }
        )

    def _parts(self) -> list[Table | str]:
        """What a notebook shows."""
        return ["\n".join([self.sentence(), *self._details()]), self.sentences()[1], self.table()]

    def __repr__(self) -> str:
        return "\n".join(map(wrapped, self.sentences()))

    def sentences(self) -> list[str]:
        """The verdict with its numbers, then the false-alarm rate and the detectable gap.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> len(rule.check(data.score[12000:], data.sex[12000:]).sentences())
        2
        """
        first = " ".join([self.sentence(), *self._details()])
        second = f"False alarm rate: at most {percentage(round(self.false_alarm_rate, 12))}."
        if self.comparisons[0].kind == "requested":
            second = f"{second[:-1]} if the gap in the population is within the limit."
        if self._compared.parts or len(self.groups) > len(self.event.simple):
            gap = self.detectable_gap
            second += (
                f" This many rows detect a gap of {upward_points(gap)} nine times out of ten, whichever group "
                f"drifts{_WHICHEVER[self.event.column] if self.event.parts else ''}."
                if np.isfinite(gap)
                else " These rows are too few to detect drift in every group nine times out of ten."
            )
        if self.min_ratio is not None:
            strata = stratum_index(self.groups) if self.within_strata else None
            ratio = number(smallest_ratio(self.rates, strata), 2)
            second += (
                f" The check limits the gap; the ratio of the lowest rate to the highest is {ratio} on these rows"
                f" and was limited to at least {self.min_ratio:.10g} on the fit rows. An audit tests the ratio."
            )
        return [first, second]

    def _details(self) -> list[str]:
        """The stratum, the groups furthest apart and the groups that were not checked."""
        found = [f"Stratum: {one_line(show_label(self.stratum))}."] if self.within_strata else []
        if self.by_attribute:
            found = [f"Attribute: {one_line(show_label(self.stratum))}."]
        if self.pair is not None:
            found.append(self._furthest_apart())
        for event in self.event.simple:
            lacking = zip(self.missing, self.missing_events, strict=True)
            none = [one_line(show_label(label)) for label, missed in lacking if missed == event]
            if none:
                named = f"{', '.join(none[:5])}{', …' if len(none) > 5 else ''}"
                found.append(f"Groups without {event.rows} were not checked: {named}.")
        return list(dict.fromkeys(found))  # a group without rows has none of any class

    def _furthest_apart(self) -> str:
        """The groups furthest apart, of those large enough to judge; of all if the gap exceeds the limit, too."""
        large = self._places[judged(np.array(self.rows)[self._places])]
        every = self._ends(self._places)
        if len(large) == len(self._places) or np.ptp(np.array(self.rates)[large]) <= NOTHING:
            return f"Furthest apart: {every}."
        of_large = f"Of groups with at least {SMALL_GROUP} {self.gap_event.rows}, furthest apart"
        more = f" Of all groups: {every}." if self.has_drifted else ""
        return f"{of_large}: {self._ends(large)}.{more}"

    def _ends(self, places: Integers) -> str:
        """The groups with the highest and the lowest rate, with their rates and rows."""
        rates, shown = np.array(self.rates)[places], []
        for at in ends(rates):
            names = joined([one_line(show_label(self.groups[places[k]])) for k in at])
            n = sum(self.rows[places[k]] for k in at)
            shown.append(f"{names} {percent(rates[at[0]])} of {n:,} {self.gap_event.rows}")
        return ", ".join(shown)


def drift_headings(event: Event) -> dict[str, str]:
    """Headings of a table of new rates: which rows are counted, and which rate it is."""
    if event.label is None:
        return {}
    return {
        "n": f"label {event.label}",
        "fit_rate": f"fit {event.short}",
        "new_rate": f"new {event.short}",
    }


def check(
    rule: Rule,
    scores: Any,
    groups: Any,
    labels: Any = None,
    *,
    strata: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    group_probabilities: Any = None,
) -> Check:
    """Compare a rule's gap on new rows with its estimated limit, or with the limit it was fitted with."""
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    if rule.mixes and rule.min_ratio is not None:
        raise UnsupportedError(
            "A check compares gaps and does not support {min_ratio} for a rule that mixes thresholds",
            remedy="measure the ratio with fairramp.audit",
        )
    record = recorded(rule) if rule.mixes else certifiable(rule)
    if record.weighted and sample_weight is None:
        warn("The rule was fitted with weights; pass {sample_weight}, or the new rates are not comparable")
    every = parts_of(rule, confidence)
    seen = mean_chances(
        rule,
        scores,
        groups,
        labels,
        strata=strata,
        sample_weight=sample_weight,
        group_probabilities=group_probabilities,
        warn_poor=True,
    )
    if not seen.groups:
        raise InputError(
            "None of the rows has label {label}, so there are no {rate}s to check",
            label=rule.event.label,
            rate=rule.event.rate,
        )
    then, fit_rows = (record.column(name)[seen.seats] for name in ("after", "effective_rows"))
    return replace(
        checked(rule, seen, every, rule.event, confidence, then, fit_rows),
        min_ratio=rule.min_ratio,
        by_attribute=rule.membership == "each",
    )


def checked(
    rule: Rule | ClassRule,
    seen: MeanChances,
    every: Sequence[Part],
    event: Event,
    confidence: float,
    then: Floats,
    fit_rows: Floats,
) -> Check:
    """Compare the gaps of all parts with their limits.

    `then` are the rates on the fit rows of those that were seen, and `fit_rows` their effective rows.
    """
    delta, parts = 1 - confidence, _seen(every, seen.seats)
    requested = all(part.kind == "requested" for part in every)
    several = sum(len(part.places) > 1 for part in parts)
    each = 1 - delta / max(several, 1)
    rows = seen.effective_rows
    # Without a finite number of effective rows, there is no interval.
    lower, upper = np.where(np.isfinite(rows), wilson_interval(seen.rates, rows, confidence), np.nan)
    # A stratum with one group has nothing to compare.
    counted = [part for part in parts if len(part.places) > 1] or parts[:1]
    found = [
        compared(part, seen.rates, seen.rows, _interval(seen.rates, rows, part.places, each)) for part in counted
    ]
    # The comparison that decides: of those with the worst verdict, the one furthest above its limit or, if they
    # share one limit, the one with the largest gap.
    decisive = worst(one.verdict for one in found)
    place = max(
        (i for i, one in enumerate(found) if one.verdict is decisive),
        key=lambda i: found[i].gap if requested else found[i].above if np.isfinite(found[i].above) else np.inf,
    )
    part, decided, known = counted[place], found[place], seen.groups
    events, n_groups = event.simple, len(rule.groups)
    lacking = np.setdiff1d(np.arange(len(events) * n_groups), seen.seats)
    missing = tuple(rule.groups[i % n_groups] for i in lacking.tolist())
    verdict = decisive
    if verdict is Verdict.WITHIN and (missing or len(part.places) == 1):
        verdict = Verdict.UNDECIDED  # groups without rows may be anywhere
    inside = seen.rates[part.places]
    pair = (known[part.places[int(inside.argmax())]], known[part.places[int(inside.argmin())]])
    first = known[part.places[0]]
    whole = rule.parts is None and not isinstance(event, ClassEvent)
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
        rates_then=tuple(then.tolist()),
        pair=pair if decided.gap > 0 else None,
        stratum=first[0] if rule.parts is not None and isinstance(first, tuple) else None,
        left_out=part.left_out,
        missing=missing,
        comparisons=tuple(found) if whole else (decided,),
        within_strata=rule.stratified,
        confidence=confidence,
        # The limits of strata hold jointly; the limit without a few small groups is an additional one.
        false_alarm_rate=delta if requested else (2 + any(part.left_out for part in every)) * delta,
        _compared=Compared(
            then,
            fit_rows,
            rows,
            [(p.places, p.limit) for p in parts if len(p.places) > 1 and np.isfinite(rows[p.places]).all()],
            each,
        ),
        _places=part.places,
        events=seen.events,
        missing_events=tuple(events[i // n_groups] for i in lacking.tolist()),
        gap_event=part.event,
        event=event,
    )


def _seen(parts: Sequence[Part], seats: Integers) -> list[Part]:
    """The parts with new rows, with places among the groups that have new rows."""
    found = [replace(part, places=np.flatnonzero(np.isin(seats, part.places))) for part in parts]
    return [part for part in found if len(part.places)]


def _interval(rates: Floats, rows: Floats, places: Integers, confidence: float) -> tuple[float, float]:
    if not np.isfinite(rows[places]).all():
        return np.nan, np.nan
    return gap_interval(rates[places], rows[places], confidence)
