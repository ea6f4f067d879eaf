"""FitRecord: a description of a fit in per-group numbers, without any row.

A *rate* is the mean selection probability over the rows of a group for which an event holds (see `core.events`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from fairramp.core.bands import smallest_ratio
from fairramp.core.cells import kinds_of, largest_gap, widest, worst_stratum
from fairramp.core.curve import Booleans, Floats
from fairramp.core.events import COMPARED, EVENTS, SELECTION, Event
from fairramp.core.headline import judged, with_small
from fairramp.core.words import exact_points, fixed, percentage, points, upward_points
from fairramp.data.documents import Count, Finite, Nonnegative, Share
from fairramp.errors import InputError

#: Names of events of one rate, and of all events.
RATE_PATTERN, EVENT_PATTERN = (f"^({'|'.join(names)})$" for names in (EVENTS, COMPARED))
#: Note on rules whose small groups borrowed.
_BORROWED = (
    "small groups borrowed from the others: rates on the fit rows are no longer exactly equal, and only limits "
    "that hold for any threshold, such as DKW's, apply"
)


@dataclass(frozen=True)
class Rates:
    """A rate of every group, in the order of the rule's groups.

    Attributes
    ----------
    rows : tuple of int
        Fit rows for which the event holds.
    effective_rows : tuple of float
        Number of unweighted rows that would estimate the rate equally precisely.
    rows_above, rows_inside : tuple of int
        Fit rows with a score at or above the ramp's upper end, and strictly between its ends; for a ramp
        of width 0, above the threshold and equal to it.
    before, after : tuple of float
        Rate of the classifier's own decisions, and of the rule.
    error : tuple of float
        Largest possible difference between `after` and the rate on the rows themselves: 0, unless the rule was
        fitted to bins (`fairramp.fit_summary`).

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> rates = fairramp.fit_rule(data.score, data.sex, max_gap=0.02).record.rates["selection"]
    >>> [round(rate, 3) for rate in rates.before]
    [0.077, 0.245]
    """

    rows: tuple[Count, ...]
    effective_rows: tuple[Nonnegative, ...]
    rows_above: tuple[Count, ...]
    rows_inside: tuple[Count, ...]
    before: tuple[Share, ...]
    after: tuple[Share, ...]
    error: tuple[Share, ...]

    def __post_init__(self) -> None:
        if len(set(map(len, vars(self).values()))) > 1:
            raise InputError("The lists of the record have different lengths")
        parts = map(sum, zip(self.rows_above, self.rows_inside, strict=True))
        if any(found > n for found, n in zip(parts, self.rows, strict=True)):
            raise InputError('"rows_above" and "rows_inside" of the record exceed its "rows"')

    @property
    def is_exact(self) -> bool:
        """Whether `after` is the exact rate on the rows."""
        return not any(self.error)


@dataclass(frozen=True)
class Asked:
    """The gap that was requested for the population, not only for the fit rows.

    Attributes
    ----------
    max_gap : float
        Largest allowed gap in the population.
    confidence : float
        Confidence with which the limit must hold.
    limit : {"estimated", "proven"}
        Which limit must not exceed `max_gap`.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> fairramp.fit_rule(data.score, data.sex, max_gap=0.05, confidence=0.95).record.asked
    Asked(max_gap=0.05, confidence=0.95, limit='estimated')
    """

    max_gap: Share
    confidence: Share
    limit: Annotated[str, Meta(pattern="^(estimated|proven)$")]


@dataclass(frozen=True)
class FitRecord:
    """Description of a fit, group by group in the order of the rule's groups.

    Attributes
    ----------
    rates : mapping of str to Rates
        By event: "selection" and, for rules that make error rates equal, "true_positive" and "false_positive".
    event : {"selection", "true_positive", "false_positive", "odds"}
        The event whose rates were made equal; "odds" for both true and false positive rates.
    strata : tuple of int, or None
        Index of each group's stratum, for rules that equalize within strata.
    target : str, float or None
        The requested target rate; None if there is an overall rate.
    ramp_width : float
        The requested ramp width.
    weighted : bool
        Whether rows had weights.
    cross_fitted : bool
        Whether the scores came from models other than the one that decides; if so, there is no certificate.
    solver : {"exact", "sgd"}
        How the thresholds were found.
    trace : tuple of tuple of float, or None
        For "sgd", the thresholds of the running iterate after each epoch.
    fingerprint : str
        SHA-256 of the number of fit rows per group and part of the score range (256 parts, fewer for many small
        groups); identifies the sample, regardless of row order.
    version : str
        Version of fairramp.
    date : str or None
        As passed by the caller.
    costs : tuple of two floats, or None
        Cost of a false positive and of a false negative, if they were given.
    overall_rate : float or None
        The requested overall selection rate, if it was given.
    asked : Asked or None
        The gap requested for the population, if `confidence` was given; the rule's `max_gap` is then the smaller
        gap that was used on the fit rows.
    borrowed : tuple of float, or None
        For ``small_groups="borrow"``, the share of each group's weight that was pseudo-rows when its ramp was
        placed. Rates on the fit rows may then lie outside the band, and limits that assume otherwise do not hold.
        None if every ramp depends only on its group's own rows.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> fairramp.fit_rule(data.score, data.sex, max_gap=0.02).record.rows
    (8094, 16327)
    """

    rates: Mapping[str, Rates]
    event: Annotated[str, Meta(pattern=EVENT_PATTERN)]
    strata: tuple[Count, ...] | None
    target: Share | Annotated[str, Meta(pattern="^(optimal|accuracy|balanced_accuracy|base_rate)$")] | None
    ramp_width: Nonnegative
    weighted: bool
    cross_fitted: bool
    solver: Annotated[str, Meta(pattern="^(exact|sgd)$")]
    trace: tuple[tuple[Finite, ...], ...] | None
    fingerprint: str
    version: str
    date: str | None
    costs: tuple[Nonnegative, Nonnegative] | None = None
    overall_rate: Share | None = None
    asked: Asked | None = None
    borrowed: tuple[Share, ...] | None = None

    def __post_init__(self) -> None:
        if not {SELECTION.name, *(event.name for event in COMPARED[self.event].simple)} <= set(self.rates):
            raise InputError('The "rates" of a record must include "selection" and those of its "event"')
        if (self.target is None) == (self.overall_rate is None):
            raise InputError('A record must have either a "target" or an "overall_rate"')
        for name, found in (
            ("strata", [self.strata]),
            ("trace", self.trace or []),
            ("borrowed", [self.borrowed]),
        ):
            if any(values is not None and len(values) != len(self.rows) for values in found):
                raise InputError('"{name}" of the record must have one entry per group', name=name)
        if (self.trace is None) != (self.solver == "exact"):
            raise InputError('A record must have a "trace" if and only if its "solver" is "sgd"')

    @property
    def rows(self) -> tuple[int, ...]:
        """Fit rows of each group."""
        return self.rates["selection"].rows

    @property
    def compared(self) -> tuple[tuple[Event, Rates], ...]:
        """Each event whose rates were made equal, with these rates; two for equalized odds, otherwise one."""
        return tuple((event, self.rates[event.name]) for event in COMPARED[self.event].simple)

    @property
    def main(self) -> Rates:
        """The rates that were made equal; for equalized odds, the true positive rates."""
        return self.compared[0][1]

    def column(self, name: str) -> Floats:
        """A field of the rates that were made equal: one value per group; for equalized odds, event by event.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> record = fairramp.fit_rule(data.score, data.sex, data.label, criterion="equalized_odds").record
        >>> record.column("before").round(3)
        array([0.538, 0.601, 0.021, 0.093])
        """
        return np.concatenate([getattr(rates, name) for _, rates in self.compared]).astype(np.float64)

    @property
    def kinds(self) -> Any:
        """Index of the rates that each rate is compared with, in the order of `column`; None for all."""
        return kinds_of(len(self.rows), len(self.compared), self.strata)

    def notes(self, max_gap: float | None) -> list[str]:
        """What to know about a fit that was given `max_gap` on the fit rows, in sentences.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score, data.sex, max_gap=0.05, confidence=0.95)
        >>> print(rule.record.notes(rule.max_gap)[0])
        Gap in the population: at most 5.0 points with 95% confidence (estimated limit).
        """
        asked = self.asked
        found = (
            [
                f"{COMPARED[self.event].gap.capitalize()} in the population: at most "
                f"{exact_points(asked.max_gap)} with "
                f"{percentage(asked.confidence)} confidence ({asked.limit} limit).",
                f"To achieve this, the gap on the fit rows is limited to {upward_points(max_gap)}.",
            ]
            if asked and max_gap is not None
            else []
        )
        return [*found, *([_BORROWED] if self.borrowed else [])]

    @property
    def gaps(self) -> str:
        """The gap on the fit rows before and after, in sentences for each of the rates that were made equal.

        Groups that are too small to judge do not lead: the gap with them comes second, if it differs.
        """
        found = []
        for event, rates in self.compared:
            keep = judged(rates.rows, self.strata)
            first, both = self._before_after(rates, keep), self._before_after(rates)
            bins = (
                ""
                if rates.is_exact
                else f" (fitted to bins: rates are accurate to within {max(rates.error):.1e})"
            )
            found.append(f"{event.gap.capitalize()} on the fit rows: {first}{bins}.")
            if first != both:
                found.append(f"{with_small(keep, event)}: {both}.")
        return " ".join(found)

    def _before_after(self, rates: Rates, keep: Booleans | None = None) -> str:
        """The gap before and after, in words; of all groups, or those to keep."""
        gap = self._gap_after(rates, keep)
        after = points(gap) if rates.is_exact else f"at most {upward_points(gap)}"
        chosen, strata = self._chosen(keep)
        return f"{points(largest_gap(np.array(rates.before)[chosen], strata))} before, {after} after"

    def _chosen(self, keep: Booleans | None) -> tuple[Booleans, Any]:
        """The groups to keep, or all of them, and their strata."""
        chosen = np.ones(len(self.rows), dtype=bool) if keep is None else keep
        return chosen, None if self.strata is None else np.array(self.strata)[chosen]

    def _gap_after(self, rates: Rates, keep: Booleans | None = None) -> float:
        chosen, strata = self._chosen(keep)
        after, errors = np.array(rates.after)[chosen], np.array(rates.error)[chosen]
        return worst_stratum(widest, strata, after - errors, after + errors)

    @property
    def ratios(self) -> str:
        """The ratio on the fit rows before and after, in sentences, as in `gaps`."""
        event, rates = self.compared[0]
        keep = judged(rates.rows, self.strata)

        def said(keep: Booleans | None) -> str:
            chosen, strata = self._chosen(keep)
            found = (smallest_ratio(np.array(r)[chosen], strata) for r in (rates.before, rates.after))
            before, after = (fixed(r, 2) if r == r else "undefined" for r in found)
            return f"{before} before, {after} after"

        first, both = said(keep), said(None)
        more = f" {with_small(keep, event)}: {both}." if first != both else ""
        return f"Ratio of the lowest {event.rate} to the highest: {first}.{more}"

    @property
    def gap_before(self) -> float:
        """Gap under the classifier's own decisions, between the rates that were made equal.

        For rules that equalize within strata, the largest gap within a stratum; for equalized odds, the larger of
        the two gaps.
        """
        return largest_gap(self.column("before"), self.kinds)

    @property
    def gap_after(self) -> float:
        """Gap under the rule, as in `gap_before`.

        For a rule fitted to bins, the largest value that it can have, given the error of its rates.
        """
        return max(self.gaps_after.values())

    @property
    def gaps_after(self) -> dict[str, float]:
        """Gap under the rule between the rates of each event that were made equal, as in `gap_after`."""
        return {event.name: self._gap_after(rates) for event, rates in self.compared}

    @property
    def ratio_before(self) -> float:
        """Lowest rate divided by the highest under the classifier's own decisions; NaN if all rates are 0.

        For rules that equalize within strata, the smallest ratio within a stratum; for equalized odds, the
        smaller of the two ratios.
        """
        return smallest_ratio(self.column("before"), self.kinds)

    @property
    def ratio_after(self) -> float:
        """Ratio under the rule, as in `ratio_before`."""
        return smallest_ratio(self.column("after"), self.kinds)
