"""Drift: whether a rule still keeps its promise on new rows.

The rule was certified: with confidence 1 − δ the population's gap is at most g. On new rows, whose mean chance
in group k is r_k from n_k rows, KL–Chernoff limits l_k and u_k miss the true rate with probability δ/(2K) per
side. So the true gap is, with probability 1 − δ, at least

    lower = max_{k ≠ l} (l_k − u_l)

and if lower > g, the gap has left what was promised. While nothing has changed, that happens with probability
2δ at most: the certificate may be wrong (δ), or the new limits (δ). Within strata each gap is compared with its
own stratum's promise, at the same δ for all together. Rows of groups that the rule does not know are left out.

Where a few small groups make the promise wide, the others are held to what is promised between them, too.
"""

import textwrap
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairramp.core.cells import cell_columns, largest_gap, strata_slices, stratum_index, widest
from fairramp.core.curve import Floats
from fairramp.core.intervals import kl_interval
from fairramp.core.labels import Label, label_key, show_label
from fairramp.core.table import Table, one_line, percentage, with_rows
from fairramp.measure.certificate import PLAIN, Spelling, certify, without
from fairramp.measure.means import MeanChances, mean_chances
from fairramp.measure.verdict import Verdict, verdict_on, worst
from fairramp.rule.limits import certifiable, stratum_limits
from fairramp.rule.rule import Rule

_SAID = {
    Verdict.WITHIN: "is within",
    Verdict.EXCEEDED: "has left",
    Verdict.UNDECIDED: "is not shown to have left",
}


@dataclass(frozen=True, repr=False)
class Check:
    """What new rows say about a rule's promise.

    Attributes
    ----------
    shown : Verdict
        What the rows show about all groups: the gap is within what was promised, has exceeded it, or neither.
    gap : float
        Gap on the new rows, in expectation over draws.
    gap_interval : tuple of float
        Its limits at the given confidence.
    promised : float
        The certified gap: the smallest proven one, or the approximate one where weights leave nothing proven.
    groups, rows, rates, lower, upper : tuple
        What the new rows show, group by group: rows, expected rates and the rates' limits, which hold together.
    rates_then : tuple
        The rates on the fit rows.
    pair : tuple of label, or None
        The groups with the highest and the lowest rate, whose difference is `gap`.
    stratum : label or None
        For rules that equalise within strata, the one that is furthest from its promise: `gap`, `gap_interval`,
        `promised` and `detectable_gap` are those of it.
    within_strata : bool
        Whether the rule does.
    false_alarm_rate : float
        Probability at most of `has_drifted` while nothing has changed.
    detectable_gap : float
        True gap from which rows as many as these raise the alarm nine times in ten.
    widest_for : tuple of label and int, or None
        The group that makes the promise wide, and its fit rows, as in `fairramp.Certificate`.
    left_out, rest : tuple of tuples of label and int, and Check or None
        Groups with so few fit rows that they hide a drift, and the check of the others alone, whose promise is
        that of the certificate's `rest`. It may raise the alarm where the whole does not, and has false alarms
        of its own.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
    >>> rule.check(data.score[12000:], data.sex[12000:]).has_drifted
    False
    """

    shown: Verdict
    gap: float
    gap_interval: tuple[float, float]
    promised: float
    groups: tuple[Label, ...]
    rows: tuple[int, ...]
    rates: tuple[float, ...]
    false_alarm_rate: float
    detectable_gap: float
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    rates_then: tuple[float, ...]
    pair: tuple[Label, Label] | None
    stratum: Label = None
    within_strata: bool = False
    widest_for: tuple[Label, int] | None = None
    left_out: tuple[tuple[Label, int], ...] = ()
    rest: "Check | None" = None

    @property
    def has_drifted(self) -> bool:
        """Whether the gap has left what was promised."""
        return self.shown is Verdict.EXCEEDED

    @property
    def verdict(self) -> Verdict:
        """What the rows show about all groups and about the `rest`: exceeded if one is, within if both are."""
        return worst([self.shown] if self.rest is None else [self.shown, self.rest.shown])

    @property
    def is_kept(self) -> bool:
        """Whether nothing that was promised is left, neither of all groups nor of the `rest`."""
        return self.verdict is not Verdict.EXCEEDED

    @property
    def is_sound(self) -> bool:
        """Whether all limits are numbers; nothing is decided otherwise."""
        return bool(np.isfinite([*self.gap_interval, *self.lower, *self.upper]).all())

    def table(self) -> Table:
        """One row per group: its rows, and its expected rate on the fit rows and on these.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> print(rule.check(data.score[12000:], data.sex[12000:]).table())
        group       n    rate    rate     now     now
                         then     now    from      to
        ------  -----  ------  ------  ------  ------
        Female  4,118  0.2000  0.2051  0.1869  0.2242
        Male    8,303  0.2000  0.2075  0.1945  0.2208
        """
        return Table(
            cell_columns(self.groups, stratified=self.within_strata)
            | {
                "n": self.rows,
                "rate_then": self.rates_then,
                "rate_now": self.rates,
                "now_from": self.lower,
                "now_to": self.upper,
            }
        )

    def sentence(self, spelled: Spelling = PLAIN) -> str:
        """The verdict with its numbers: of all groups, or of the others where only theirs says so.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> print(rule.check(data.score[12000:], data.sex[12000:]).sentence().partition(": ")[0])
        Nothing shows that the gap has left what was promised
        """
        if self.is_kept and not self.is_sound:
            return "The limits of the gap are no numbers, so nothing is decided."
        if self.is_kept:
            return f"Nothing shows that the gap has left what was promised: {self._numbers(spelled)}"
        if self.has_drifted or self.rest is None:
            return f"The gap has left what was promised: {self._numbers(spelled)}"
        return (
            f"Without {spelled.groups(self.left_out)}, the gap has left what was promised: "
            f"{self.rest._numbers(spelled)}"
        )

    def __repr__(self) -> str:
        parts, rest, each, others = [f"The {self._finding()}"], self.rest, "", ""
        if self.widest_for is not None:
            parts.append(f"The promise is widest for group {with_rows([self.widest_for])} in the fit.")
        if rest is not None:
            parts[-1] += f" {without(self.left_out)}, between the others, the {rest._finding()}"
            each, others = " each", f", and one of {rest.detectable_gap:.3f} between the others"
        parts.append(
            f"False alarms: at most {percentage(self.false_alarm_rate)}{each}. Rows as many as these find a gap "
            f"of {self.detectable_gap:.3f} nine times in ten{others}."
        )
        return "\n".join(textwrap.fill(part, 80) for part in parts)

    def _numbers(self, spelled: Spelling = PLAIN) -> str:
        """The gap beside what was promised."""
        gap, low, high, promised = map(spelled.gap, (self.gap, *self.gap_interval, self.promised))
        return f"{gap} ({low} to {high}) on the new rows, promised {promised}."

    def _finding(self) -> str:
        """The same in a sentence, and whose gap it is."""
        text = f"gap {_SAID[self.shown]} what was promised: {self._numbers()}"
        if self.within_strata:
            text += f" It is that of stratum {one_line(show_label(self.stratum))}."
        if self.pair is None:
            return text
        sizes = dict(zip(map(label_key, self.groups), self.rows, strict=True))
        one, other = (with_rows([(label, sizes[label_key(label)])]) for label in self.pair)
        return f"{text} Furthest apart are {one} and {other}."


def check(
    rule: Rule,
    scores: Any,
    groups: Any,
    *,
    strata: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Check:
    """Compare a rule's gap on new rows with its certificate."""
    certificate = certify(rule, confidence)
    seen = mean_chances(rule, scores, groups, strata, sample_weight)
    whole = _compared(rule, seen, stratum_limits(rule, confidence), confidence)
    found = replace(whole, widest_for=certificate.widest_for)
    small = {label_key(label) for label, _ in certificate.left_out}
    others = seen.of([k for k, label in enumerate(seen.groups) if label_key(label) not in small])
    if certificate.rest is None or len(others.groups) < 2:
        return found
    promised = [certificate.rest.estimated]
    return replace(found, left_out=certificate.left_out, rest=_compared(rule, others, promised, confidence))


def _compared(rule: Rule, seen: MeanChances, promises: list[float], confidence: float) -> Check:
    """The gap of the groups that were seen, beside what was promised of it."""
    delta, record, stratified = 1 - confidence, certifiable(rule), rule.stratified
    places = {label_key(label): k for k, label in enumerate(rule.groups)}
    seats = [places[label_key(label)] for label in seen.groups]
    both = kl_interval(seen.rates, seen.effective_rows, delta / (2 * len(seen.rates)))
    # Rows that no number counts show nothing.
    lower, upper = np.where(np.isfinite(seen.effective_rows), both, np.nan)
    # Each stratum that was seen beside its own promise; all groups at once for parity.
    strata = stratum_index(rule.groups)[seats] if stratified else np.zeros(len(seats), dtype=np.intp)
    # One group's lower limit less another's upper is `widest` with the limits exchanged.
    found = [
        (p, promises[strata[p.start]], (max(widest(upper[p], lower[p]), 0.0), widest(lower[p], upper[p])))
        for p in strata_slices(strata, len(seats))
    ]
    part, promised, ends = max(found, key=lambda one: one[2][0] - one[1])
    rates, groups = seen.rates[part], seen.groups[part]
    return Check(
        shown=worst(verdict_on(largest_gap(seen.rates[p]), limits, most) for p, most, limits in found),
        gap=largest_gap(rates),
        gap_interval=ends,
        promised=promised,
        groups=seen.groups,
        rows=seen.rows,
        rates=tuple(seen.rates.tolist()),
        false_alarm_rate=2 * delta,
        detectable_gap=_detectable(seen.effective_rows[part], promised, delta / len(seats)),
        lower=tuple(lower.tolist()),
        upper=tuple(upper.tolist()),
        rates_then=tuple(record.rates["selection"].after[k] for k in seats),
        pair=(groups[int(rates.argmax())], groups[int(rates.argmin())]) if len(rates) > 1 else None,
        stratum=groups[0][0] if stratified and isinstance(groups[0], tuple) else None,
        within_strata=stratified,
    )


def _detectable(rows: Floats, promised: float, delta: float) -> float:
    """Gap between the two largest groups, around a rate of ½, that is found nine times in ten.

    Limits miss on either side with probability δ/2.
    """
    if len(rows) == 1:
        return 1.0
    n = np.sort(rows)[-2:]
    # Limits are about √(ln(1/δ') r (1 − r) 2/n) wide; nine times in ten the gap is seen 1.28 s.e. lower.
    limits = np.sqrt(np.log(2 / delta) / (2 * n)).sum()
    return float(min(promised + limits + 1.2816 * np.sqrt((0.25 / n).sum()), 1.0))
