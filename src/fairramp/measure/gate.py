"""Gates: maximums for the gap of an audit, with a verdict, a sentence and an exit code for pipelines.

    verdict      fail_above   fail_unless_below
    within       0            0
    exceeded     1            1
    undecided    0            3

If the confidence limits of the gap are invalid, every gate is undecided and its exit code is 3.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fairramp.core.checks import check_number
from fairramp.core.table import with_rows
from fairramp.core.words import decimals_apart, exact_points, percentage, plain, points, with_interval
from fairramp.errors import InputError
from fairramp.measure.audit import Audit
from fairramp.measure.certificate import WIDE
from fairramp.measure.verdict import Verdict, exit_code, is_sound, verdict_on, worst

#: Exit codes of undecided gates.
_UNDECIDED = {"fail_above": 0, "fail_unless_below": 3}


@dataclass(frozen=True)
class Gates:
    """Maximums for the gap of an audit: of the decisions after the rule or, without a rule, of those audited.

    Attributes
    ----------
    audit : Audit
        The audit.
    fail_above : float or None
        The gate fails if the lower confidence limit of the gap is above this maximum.
    fail_unless_below : float or None
        The same, but exit code 3 if the upper confidence limit is not at most this maximum either.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> gates = Gates(fairramp.audit(data.score, data.sex), fail_above=0.05)
    >>> gates.exit_code, [str(verdict) for verdict in gates.verdicts]
    (1, ['exceeded'])
    >>> print(gates.sentences()[0].partition(" is ")[0])
    Gate failed: the gap in the classifier's own decisions
    """

    audit: Audit
    fail_above: float | None = None
    fail_unless_below: float | None = None

    def __post_init__(self) -> None:
        if not self._maximums:
            raise InputError("Pass {fail_above} or {fail_unless_below}")
        for name, maximum in self._maximums.items():
            check_number(name, maximum, 0.0, 1.0)

    @cached_property
    def _maximums(self) -> dict[str, float]:
        given = {"fail_above": self.fail_above, "fail_unless_below": self.fail_unless_below}
        return {name: maximum for name, maximum in given.items() if maximum is not None}

    @property
    def _is_sound(self) -> bool:
        return is_sound(self.audit.gap, self.audit.selection.gap_interval)

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdict of each gate."""
        gap, limits = self.audit.gap, self.audit.selection.gap_interval
        return [verdict_on(gap, limits, maximum) for maximum in self._maximums.values()]

    @property
    def exit_codes(self) -> list[int]:
        """The exit code of each gate."""
        return [
            exit_code(verdict, sound=self._is_sound, undecided=_UNDECIDED[name])
            for name, verdict in zip(self._maximums, self.verdicts, strict=True)
        ]

    @property
    def exit_code(self) -> int:
        """The exit code of all gates together: one that failed outweighs one that is undecided."""
        codes = self.exit_codes
        return 1 if 1 in codes else max(codes)

    def sentences(self) -> list[str]:
        """The verdict of each gate with its numbers."""
        return [
            f"Gate {verdict.word}: {self._sentence(verdict, maximum)}."
            for verdict, maximum in zip(self.verdicts, self._maximums.values(), strict=True)
        ]

    def _sentence(self, verdict: Verdict, maximum: float) -> str:
        found = self.audit
        gap, limits = found.gap, found.selection.gap_interval
        own = "these decisions" if found.of_decisions else "the classifier's own decisions"
        what = f"the gap in {own if found.after is None else 'the decisions after the rule'}"
        decimals, most = decimals_apart(maximum, *limits), exact_points(maximum)
        measured = with_interval(*(points(value, decimals) for value in (gap, *limits)))
        if not self._is_sound:
            return f"the confidence limits of {what} are not numbers or do not contain it: {measured}"
        if verdict is Verdict.UNDECIDED:
            more = "; more rows would help" if gap > maximum else ""
            return f"these rows cannot show whether {what} is above {most}: {measured}{more}{_why_wide(found)}"
        where = "above" if verdict is Verdict.EXCEEDED else "at most"
        return f"{what} is {measured}, {where} {most} with {percentage(found.confidence)} confidence"

    def to_dict(self) -> dict[str, Any]:
        """All results as plain values, ready for JSON, with None for unknown values and NaN."""
        lower, upper = self.audit.selection.gap_interval
        return plain(
            {
                "decisions": "before" if self.audit.after is None else "after",
                "fail_above": self.fail_above,
                "fail_unless_below": self.fail_unless_below,
                "gap": self.audit.gap,
                "lower_limit": lower,
                "upper_limit": upper,
                "verdict": worst(self.verdicts).value,
                "failed": self.exit_code != 0,
            }
        )


def _why_wide(found: Audit) -> str:
    """Name the group that makes the interval of a gap wide, if it is wide."""
    chosen = found.selection
    if chosen.gap_interval[1] - chosen.gap_interval[0] <= WIDE:
        return ""
    k = max(range(len(found.groups)), key=lambda k: chosen.upper[k] - chosen.lower[k])
    return f"; the interval is widest for group {with_rows([(found.groups[k], found.rows[k])])}"
