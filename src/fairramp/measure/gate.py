"""Gates: limits for the gap or the ratio of an audit, with a verdict, a sentence and an exit code for pipelines.

    verdict      fail_above, fail_below_ratio   fail_unless_below, fail_unless_ratio
    within       0                              0
    exceeded     1                              1
    undecided    0                              3

A minimum for the ratio is exceeded if the ratio is shown to be below it. If the confidence limits are invalid, a
gate is undecided and its exit code is 3. A group without rows may have any rate, so no gate passes without a
group of the rule.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairramp.core.cells import kinds_of, strata_slices, stratum_index
from fairramp.core.checks import check_number, check_ratio
from fairramp.core.events import Event
from fairramp.core.headline import small_ones
from fairramp.core.labels import show_label
from fairramp.core.table import one_line
from fairramp.core.words import decimals_apart, exact_points, number, percentage, plain, points, with_interval
from fairramp.errors import InputError
from fairramp.measure.audited import Audit
from fairramp.measure.certificate import WIDE
from fairramp.measure.class_audited import ClassAudit
from fairramp.measure.comparison import counted
from fairramp.measure.verdict import (
    Verdict,
    exit_code,
    is_sound,
    is_sound_ratio,
    verdict_on,
    verdict_on_ratio,
    worst,
)

#: Exit code of each gate if it is undecided.
_UNDECIDED = {"fail_above": 0, "fail_unless_below": 3, "fail_below_ratio": 0, "fail_unless_ratio": 3}
#: Gates for the ratio; the others are for the gap.
_RATIOS = ("fail_below_ratio", "fail_unless_ratio")


def check_gates(**limits: float | None) -> dict[str, float]:
    """Return the gates that are given, by name; their limits must be valid."""
    given = {name: limit for name, limit in limits.items() if limit is not None}
    return {
        name: check_ratio(name, limit) if name in _RATIOS else check_number(name, limit, 0.0, 1.0)
        for name, limit in given.items()
    }


@dataclass(frozen=True)
class Gates:
    """Limits for an audit: for the decisions after the rule or, without a rule, for those audited.

    They apply to the gap and the ratio of the rate that the audit compares; see `audit`'s `criterion`. For
    equalized odds, they apply to the larger of the two gaps and to the smaller of the two ratios; for several
    classes, to the largest gap and the smallest ratio of a class.

    Attributes
    ----------
    audit : Audit or ClassAudit
        The audit.
    fail_above : float or None
        The gate fails if the lower confidence limit of the gap is above this maximum.
    fail_unless_below : float or None
        The same, but exit code 3 if the upper confidence limit is not at most this maximum either.
    fail_below_ratio : float or None
        The gate fails if the upper confidence limit of the ratio is below this minimum.
    fail_unless_ratio : float or None
        The same, but exit code 3 if the lower confidence limit is not at least this minimum either.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> gates = Gates(fairramp.audit(data.score, data.sex), fail_above=0.05, fail_unless_ratio=0.8)
    >>> gates.exit_code, [str(verdict) for verdict in gates.verdicts]
    (1, ['exceeded', 'exceeded'])
    >>> print(gates.sentences()[1].partition(" is ")[0])
    Gate failed: the ratio of selection rates in the classifier's own decisions
    """

    audit: Audit | ClassAudit
    fail_above: float | None = None
    fail_unless_below: float | None = None
    fail_below_ratio: float | None = None
    fail_unless_ratio: float | None = None

    def __post_init__(self) -> None:
        if not check_gates(**self._asked):
            raise InputError("Pass {fail_above}, {fail_unless_below}, {fail_below_ratio} or {fail_unless_ratio}")

    @property
    def _asked(self) -> dict[str, float | None]:
        return {name: getattr(self, name) for name in _UNDECIDED}

    @cached_property
    def _gates(self) -> list["_Gate"]:
        return [_Gate(self.audit, name, limit) for name, limit in check_gates(**self._asked).items()]

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdict of each gate."""
        return [gate.verdict for gate in self._gates]

    @property
    def exit_codes(self) -> list[int]:
        """The exit code of each gate."""
        return [gate.exit_code for gate in self._gates]

    @property
    def missing(self) -> bool:
        """Whether a group has no row that counts, so that no gate can pass."""
        return any(gate.missing for gate in self._gates)

    @property
    def exit_code(self) -> int:
        """The exit code of all gates together: one that failed outweighs one that is undecided."""
        codes = self.exit_codes
        return 1 if 1 in codes else max(codes)

    def sentences(self) -> list[str]:
        """The verdict of each gate with its numbers."""
        return [gate.sentence() for gate in self._gates]

    def to_dict(self) -> dict[str, Any]:
        """All results as plain values, ready for JSON, with None for unknown values and NaN."""
        found = self.audit.selection
        return plain(
            {
                "decisions": "before" if self.audit.after is None else "after",
                **self._asked,
                "gap": found.gap,
                "gap_interval": found.gap_interval,
                "ratio": found.ratio,
                "ratio_interval": found.ratio_interval,
                "verdicts": {gate.name: gate.verdict.value for gate in self._gates},
                "verdict": worst(self.verdicts).value,
                "failed": self.exit_code != 0,
            }
        )


@dataclass(frozen=True)
class _Gate:
    """One limit for the gap or the ratio of an audit."""

    audit: Audit | ClassAudit
    name: str
    limit: float

    @property
    def _of_ratio(self) -> bool:
        return self.name in _RATIOS

    @property
    def _measured(self) -> tuple[float, tuple[float, float]]:
        found = self.audit.selection
        return (found.ratio, found.ratio_interval) if self._of_ratio else (found.gap, found.gap_interval)

    @property
    def _compares(self) -> bool:
        """Whether there are two groups to compare."""
        found = self.audit
        strata = stratum_index(found.groups) if found.within_strata else None
        there = np.array(found.selection.rows) > 0
        kinds = kinds_of(len(found.groups), len(found.event.simple), strata)
        return any(there[part].sum() > 1 for part in strata_slices(kinds, len(there)))

    @property
    def _is_sound(self) -> bool:
        if not self._compares:
            return False
        return is_sound_ratio(*self._measured) if self._of_ratio else is_sound(*self._measured)

    @property
    def verdict(self) -> Verdict:
        """What the confidence limits show."""
        if not self._compares:
            return Verdict.UNDECIDED
        found = (verdict_on_ratio if self._of_ratio else verdict_on)(*self._measured, self.limit)
        # Groups that were not measured may be anywhere.
        return Verdict.UNDECIDED if found is Verdict.WITHIN and self.missing else found

    @property
    def missing(self) -> str:
        """Says which groups have no row that counts toward the rate; empty if none."""
        found, texts = self.audit, []
        for event in found.event.simple:
            rows = found.selection.rates[event.name].rows
            none = [label for label, n in zip(found.groups, rows, strict=True) if not n]
            names = [one_line(show_label(label)) for label in [*none, *found.missing]]
            if names:
                texts.append(f"no {event.rows} in {', '.join(names[:5])}{', …' if len(names) > 5 else ''}")
        return " and ".join(dict.fromkeys(texts))  # the classes have the same rows

    @property
    def _furthest(self) -> Event:
        """Of several rates that are compared, the one whose gap or ratio counts."""
        rates = self.audit.selection.rates
        worth = {event: rates[event.name] for event in self.audit.event.simple}
        if self._of_ratio:
            return min(worth, key=lambda event: (math.isnan(worth[event].ratio), round(worth[event].ratio, 9)))
        return max(worth, key=lambda event: (not math.isnan(worth[event].gap), round(worth[event].gap, 9)))

    @property
    def exit_code(self) -> int:
        """The exit code of a command with this gate alone."""
        return exit_code(self.verdict, sound=self._is_sound, undecided=_UNDECIDED[self.name])

    def sentence(self) -> str:
        """The verdict with its numbers."""
        return f"Gate {self.verdict.word}: {self._why()}."

    def _why(self) -> str:
        found, (value, _) = self.audit, self._measured
        own = "these decisions" if found.of_decisions else "the classifier's own decisions"
        rates = self._furthest.rates
        what = f"the ratio of {rates}" if self._of_ratio else f"the {self._furthest.gap}"
        if found.event.needs_labels and found.event.parts:
            what = f"the smaller ratio, of {rates}," if self._of_ratio else f"the larger gap, between {rates},"
        elif found.event.parts:
            apart = "smallest ratio of rates" if self._of_ratio else "largest gap"
            what = f"the {apart} (class {self._furthest.short})"
        what += f" in {own if found.after is None else 'the decisions after the rule'}"
        measured, limit = self._spelled()
        beyond, kept = ("below", "at least") if self._of_ratio else ("above", "at most")
        event = found.event
        if not self._compares and event.parts and event.needs_labels:
            return "no two groups have rows with the same label, so there is nothing to compare"
        if not self._compares:
            of = f" with {event.rows}" if event.needs_labels else ""
            lost = f" ({self.missing})" if found.missing else ""
            return f"there is only one group{of}{lost}, so there is nothing to compare"
        if self.missing and self.verdict is Verdict.UNDECIDED:
            return f"there are {self.missing}"
        if not self._is_sound:
            return f"the confidence limits of {what} are not numbers or do not contain it: {measured}"
        if self.verdict is Verdict.UNDECIDED:
            missed = value < self.limit if self._of_ratio else value > self.limit
            more = f"{'; more rows would help' if missed else ''}{self._why_wide()}"
            return f"these rows cannot show whether {what} is {beyond} {limit}: {measured}{more}{self._small}"
        where = beyond if self.verdict is Verdict.EXCEEDED else kept
        return (
            f"{what} is {measured}, {where} {limit} with {percentage(found.confidence)} confidence{self._small}"
        )

    @property
    def _small(self) -> str:
        """That small groups count, too, although the headline of the audit leaves them out."""
        found = small_ones(self.audit.selection.rates[self._furthest.name].rows, self._furthest)
        return found and f"; this includes {found}"

    def _spelled(self) -> tuple[str, str]:
        """The measured value with its confidence limits, and the limit of the gate."""
        value, limits = self._measured
        if not self._of_ratio:
            decimals = decimals_apart(self.limit, *limits)
            shown = [points(one, decimals) for one in (value, *limits)]
            return with_interval(*shown), exact_points(self.limit)
        if math.isnan(value) and self._is_sound:
            return "all rates are 0", f"{self.limit:.10g}"
        # A percentage has two decimals fewer than the ratio.
        decimals = max(decimals_apart(self.limit / 100, *(limit / 100 for limit in limits)), 2)
        return with_interval(*(number(one, decimals) for one in (value, *limits))), f"{self.limit:.10g}"

    def _why_wide(self) -> str:
        """Name the group that makes the interval wide, if it is wide."""
        found, (_, (low, high)) = self.audit.selection, self._measured
        if high - low <= WIDE:
            return ""
        # A ratio depends on how large errors are in relation to the rates.
        units = [rate or 1e-300 for rate in found.rate] if self._of_ratio else [1.0] * len(found.rate)
        widths = [(high - low) / unit for low, high, unit in zip(found.lower, found.upper, units, strict=True)]
        k = max((k for k, width in enumerate(widths) if width == width), key=widths.__getitem__)
        i, of_group = divmod(k, len(self.audit.groups))
        name, event = one_line(show_label(self.audit.groups[of_group])), self.audit.event.simple[i]
        return f"; the interval is widest for group {name} ({counted(found.rows[k], event)})"
