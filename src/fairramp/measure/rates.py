"""Rates of groups, their gap and their ratio, for every event (see `core.events`).

A group without a row of an event has no such rate. Gap and ratio compare the other groups; if that leaves nothing
to compare, they are NaN, and so are their confidence limits. The ratio is also NaN if the highest rate is 0.

Equalized odds compares true and false positive rates. Its gap is the larger of their gaps and its ratio the
smaller of their ratios. The confidence limits are those of strata, with each kind of rates as a stratum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairramp.core.bands import smallest_ratio
from fairramp.core.cells import kinds_of, largest_gap, strata_slices
from fairramp.core.curve import Floats, Integers
from fairramp.core.events import EVENTS, SELECTION, Event
from fairramp.core.intervals import gap_interval, ratio_interval, wilson_interval
from fairramp.fit.gains import Costs
from fairramp.measure.means import Tally

_NOTHING = (np.nan, np.nan)


@dataclass(frozen=True)
class GroupRates:
    """One rate of every group, such as the selection rate, and how far the groups are apart.

    Attributes
    ----------
    rate, lower, upper : tuple of float
        Rate of each group, with its confidence limits; NaN for a group without rows that count toward the rate.
    rows : tuple of int
        Number of rows that count toward the rate: all rows for selection rates, the rows with label 1 for true
        positive rates, the rows with label 0 for false positive rates.
    gap, gap_interval : float, pair of float
        Largest difference between two groups' rates, with its confidence limits.
    ratio, ratio_interval : float, pair of float
        Smallest rate divided by the largest, with its confidence limits; the ratio is NaN if all rates are 0.

    Examples
    --------
    >>> import fairramp
    >>> found = fairramp.audit([0, 1, 1, 1], ["A", "A", "B", "B"], [0, 1, 0, 1])
    >>> found.before.rates["false_positive"].rate
    (0.0, 1.0)
    """

    rate: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    rows: tuple[int, ...]
    gap: float
    gap_interval: tuple[float, float]
    ratio: float
    ratio_interval: tuple[float, float]


@dataclass(frozen=True)
class Selection(GroupRates):
    """Rates and errors of one set of decisions.

    `rate`, `lower`, `upper`, `rows`, `gap`, `gap_interval`, `ratio` and `ratio_interval` are those of the audit's
    criterion, that is, of selection rates unless another criterion was requested; see `GroupRates`. For equalized
    odds, the first four have the true positive rates of all groups, followed by their false positive rates, the
    gap is the larger of the two, and the ratio the smaller.

    Attributes
    ----------
    rates : dict of str to GroupRates
        The same for "selection" and, with labels, for "true_positive" and "false_positive".
    accuracy, precision : tuple of float, or None
        One value per group; None without labels, NaN for a group whose denominator is 0.
    overall_accuracy : float or None
        Accuracy over all rows; None without labels.
    balanced_accuracy : float or None
        Mean of the true positive rate and the true negative rate over all rows; None without labels, NaN if all
        labels are the same.
    cost : float or None
        Mean cost of a row; None without labels or costs.

    Examples
    --------
    >>> import fairramp
    >>> fairramp.audit([0, 1, 1, 1], ["A", "A", "B", "B"]).before.rate
    (0.5, 1.0)
    """

    rates: dict[str, GroupRates]
    accuracy: tuple[float, ...] | None = None
    precision: tuple[float, ...] | None = None
    overall_accuracy: float | None = None
    balanced_accuracy: float | None = None
    cost: float | None = None

    @property
    def true_positive_rate(self) -> tuple[float, ...] | None:
        """True positive rate of each group; None without labels."""
        return self._rate("true_positive")

    @property
    def false_positive_rate(self) -> tuple[float, ...] | None:
        """False positive rate of each group; None without labels."""
        return self._rate("false_positive")

    def _rate(self, event: str) -> tuple[float, ...] | None:
        return self.rates[event].rate if event in self.rates else None


def selection(
    tally: Tally,
    confidence: float,
    strata: Integers | None,
    costs: Costs | None = None,
    compared: Event = SELECTION,
) -> Selection:
    """Rates, gaps and ratios of decisions and, with labels, their errors and what they cost."""
    errors: dict[str, Any] = {}
    if tally.labeled:
        (yes_0, yes_1), (no_0, no_1) = tally.yes, tally.no
        right = no_0 + yes_1
        errors = {
            "accuracy": _shares(right, no_1 + yes_0),
            "precision": _shares(yes_1, yes_0),
            "overall_accuracy": float(right.sum() / tally.weights.sum()),
            "balanced_accuracy": float(
                np.mean(_shares(np.array([no_0.sum(), yes_1.sum()]), np.array([yes_0.sum(), no_1.sum()])))
            ),
        }
        if costs is not None:
            paid = costs.false_positive * yes_0.sum() + costs.false_negative * no_1.sum()
            errors["cost"] = float(paid / tally.weights.sum())
    events = EVENTS.values() if tally.labeled else [SELECTION]
    rates = {event.name: group_rates([tally.of(event.label)], confidence, strata) for event in events}
    both = [tally.of(event.label) for event in compared.parts]
    main = group_rates(both, confidence, strata) if both else rates[compared.name]
    return Selection(**vars(main), rates=rates, **errors)


def group_rates(tallies: Sequence[Tally], confidence: float, groups_strata: Integers | None) -> GroupRates:
    """Rates, gap and ratio over all rows of a tally; of several, one after the other."""
    rates, effective, rows = (
        np.concatenate(found)
        for found in zip(*((t.rates, t.effective_rows, t.rows.sum(axis=0)) for t in tallies), strict=True)
    )
    strata = kinds_of(len(rates) // len(tallies), len(tallies), groups_strata)
    lower, upper = np.full((2, len(rates)), np.nan)
    there = rows > 0
    r, n, of = rates[there], effective[there], None if strata is None else strata[there]
    lower[there], upper[there] = wilson_interval(r, n, confidence)
    gap, ratio, gap_limits, ratio_limits = np.nan, np.nan, _NOTHING, _NOTHING
    if there.all() or any(part.stop - part.start > 1 for part in strata_slices(of, len(r))):
        gap, ratio = largest_gap(r, of), smallest_ratio(r, of)
        gap_limits = gap_interval(r, n, confidence, of)
        if np.isfinite([lower[there], upper[there]]).all():
            ratio_limits = ratio_interval(r, n, confidence, of)
    return GroupRates(
        rate=_floats(rates),
        lower=_floats(lower),
        upper=_floats(upper),
        rows=tuple(rows.tolist()),
        gap=gap,
        gap_interval=gap_limits,
        ratio=ratio,
        ratio_interval=ratio_limits,
    )


def _shares(part: Floats, rest: Floats) -> tuple[float, ...]:
    """Part / (part + rest); NaN where both are 0."""
    with np.errstate(invalid="ignore"):
        return _floats(part / (part + rest))


def _floats(values: Floats) -> tuple[float, ...]:
    return tuple(values.tolist())
