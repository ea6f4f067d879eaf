"""Audit: the result of an audit, in tables and sentences. `measure.audit` measures it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairramp.core.cells import cell_columns, largest_gap, strata_slices, stratum_index
from fairramp.core.events import EVENT_OF, SELECTION, Event
from fairramp.core.headline import judged, small_ones, too_small
from fairramp.core.labels import Label, label_parts, show_label
from fairramp.core.table import Table, named, one_line, printed
from fairramp.core.words import percent, plain, points, with_interval
from fairramp.errors import InputError
from fairramp.measure.comparison import comparison, left_out, without_rows
from fairramp.measure.group_model import GroupModel
from fairramp.measure.rates import GroupRates, Selection
from fairramp.rule.verbs import Drawn


@dataclass(frozen=True, repr=False)
class Audit(Drawn):
    """Result of `audit`.

    Attributes
    ----------
    groups : tuple
        Labels of the groups.
    rows : tuple of int
        Number of rows in each group.
    before : Selection
        The classifier's own decisions.
    after : Selection or None
        The rule's decisions; None without a rule.
    changed_to_yes, changed_to_no : tuple of float, or None
        Expected share of each group whose decision the rule changes; None without a rule.
    randomized : float or None
        Share of all rows decided at random; None without a rule.
    calibration_error : tuple of float, or None
        Average error of each group's scores, as far as held-out rows confirm it; near 0 for calibrated scores,
        even with few rows. None without labels, and for 0/1 decisions.
    criterion : {"parity", "equal_opportunity", "predictive_equality", "equalized_odds"}
        Which rate is compared: the selection rate, the true positive rate, the false positive rate, or both of
        the latter.
    confidence : float
        Confidence level of all intervals.
    within_strata : bool
        Whether groups were compared within strata. If so, `groups` holds (stratum, group) pairs.
    weighted : bool
        Whether rows had weights. If so, intervals use effective rows (the number of unweighted rows that would be
        equally precise) and are less accurate.
    cutoff : float
        The classifier's own decision is yes at this score or above; at this score or below, if lower is better.
    higher_is_better : bool
        Whether high scores are better.
    of_decisions : bool
        Whether the scores were 0/1 decisions and no rule was given.
    costs : tuple of two floats, or None
        Cost of a false positive and of a false negative, if they are known.
    by_attribute : bool
        Whether groups were compared by each of several attributes. If so, `groups` holds (attribute, value)
        pairs, and gap and ratio are those within the attribute that is furthest apart.
    intersections : Audit or None
        If so, the audit by the intersections of the attributes, whose rates may differ.
    group_model : GroupModel or None
        How well group probabilities agree with the true groups, for a rule that uses them.
    missing : tuple of label
        Groups of the rule without a row, which are not measured; empty without a rule.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> rule = fairramp.fit_rule(data.score, data.sex, max_gap=0.05)
    >>> found = fairramp.audit(data.score, data.sex, data.label, rule=rule)
    >>> round(found.before.gap, 3), round(found.after.gap, 3), found.groups
    (0.168, 0.05, ('Female', 'Male'))
    """

    groups: tuple[Label, ...]
    rows: tuple[int, ...]
    before: Selection
    after: Selection | None = None
    changed_to_yes: tuple[float, ...] | None = None
    changed_to_no: tuple[float, ...] | None = None
    randomized: float | None = None
    calibration_error: tuple[float, ...] | None = None
    criterion: str = "parity"
    confidence: float = 0.95
    within_strata: bool = False
    weighted: bool = False
    cutoff: float = 0.5
    higher_is_better: bool = True
    of_decisions: bool = False
    costs: tuple[float, float] | None = None
    by_attribute: bool = False
    intersections: "Audit | None" = None
    group_model: GroupModel | None = None
    missing: tuple[Label, ...] = ()

    def sentences(self) -> list[str]:
        """Sentences on the groups furthest apart, before and after, on groups without a rate and on weights.

        Groups with fewer than 30 rows that count toward the rate are too small to judge. They are not among those
        furthest apart; a sentence says how many there are.

        Examples
        --------
        >>> import fairramp
        >>> fairramp.audit([0, 1, 1, 1] * 50, ["A", "A", "B", "B"] * 50).sentences()
        ['Selection rate: B 100.0% of 100 rows, A 50.0% of 100 rows (2.0 times as high).']
        """
        names, found, gone = named(self.groups), list[str](), list[str]()
        side = "above" if self.higher_is_better else "below"
        for event in self.event.simple:
            what = event.rate.capitalize()
            first = what if self.after is None else f"{what} before"
            before = first if self.of_decisions else f"{first} (yes at {self.cutoff:g} or {side})"
            for decisions, said in ((self.before, before), (self.after, f"{what} after")):
                if decisions is not None:
                    one = decisions.rates[event.name]
                    found += self._compared(one, said, event)
            gone += [left_out(self.before.rates[event.name].rate, names, event) or "", *self._too_small(event)]
        found += filter(None, [*gone, without_rows(self.missing)])
        if self.event.parts:
            one = self.selection.rates[SELECTION.name]
            what = "Selection rate" if self.after is None else "Selection rate after"
            found += self._compared(one, what, SELECTION)
        if self.randomized is not None:
            found.append(f"Decided at random: {percent(self.randomized)} of the rows.")
        if self.weighted:
            found.append("Rows are weighted, so the confidence intervals are approximate.")
        if self.group_model is not None:
            found += self.group_model.sentences()
        return found

    def _compared(self, one: GroupRates, what: str, event: Event) -> list[str]:
        """The groups furthest apart: in a stratum, or in each attribute."""
        names = named(self.groups)
        strata = stratum_index(self.groups) if self.within_strata else None
        if not self.by_attribute:
            return [comparison(one.rate, names, strata, one.rows, what, event=event)]
        found = []
        for part in strata_slices(stratum_index(self.groups), len(names)):
            attribute, values = label_parts(self.groups[part][0])[0], self.groups[part]
            first, mark, rest = what.partition(" (")
            said = one_line(f"{first} by {show_label(attribute)}{mark}{rest}")
            own = named([label_parts(pair)[1] for pair in values])
            found.append(comparison(one.rate[part], own, None, one.rows[part], said, event=event))
        return found

    def _too_small(self, event: Event) -> list[str]:
        """How many groups are too small to be compared in a sentence; of each attribute, if there are several."""
        rows = self.before.rates[event.name].rows
        if not self.by_attribute:
            strata = stratum_index(self.groups) if self.within_strata else None
            return [too_small(rows, event, strata) or ""]
        parts = strata_slices(stratum_index(self.groups), len(rows))
        names = [show_label(label_parts(self.groups[part][0])[0]) for part in parts]
        return [
            too_small(rows[part], event, what=one_line(f"groups by {name}")) or ""
            for part, name in zip(parts, names, strict=True)
        ]

    @property
    def event(self) -> Event:
        """The rows that the compared rate is computed for."""
        return EVENT_OF[self.criterion]

    @property
    def selection(self) -> Selection:
        """The rule's decisions if there is a rule, otherwise the classifier's own."""
        return self.after or self.before

    @property
    def gap(self) -> float:
        """Largest difference between two groups' rates; for equalized odds, the larger of the two gaps."""
        return self.selection.gap

    @property
    def ratio(self) -> float:
        """Smallest rate divided by the largest, for equalized odds the smaller of two; NaN if all rates are 0."""
        return self.selection.ratio

    def table(self) -> Table:
        """One row per group: its rows, the compared rate and, if that is another one, the selection rate.

        For equalized odds, one row per group and `error_rate`, TPR (true positive rate) or FPR (false positive
        rate); `n` counts the rows with that label.

        Examples
        --------
        >>> import fairramp
        >>> found = fairramp.audit([0, 1, 1, 1], ["A", "A", "B", "B"], labels=[0, 1, 0, 1])
        >>> print(found.table())
        group  n           rate (95% CI)
        -----  -  ----------------------
        A      2     50.0% [9.5%, 90.5%]
        B      2  100.0% [34.2%, 100.0%]
        """
        s, event = self.selection, self.event
        other, when = event is not SELECTION, " after" if self.after else ""
        if event.parts:
            return self._per_group(
                headings={"rate": f"rate{when}"},
                events=[part for part in event.parts for _ in self.groups],
                n=s.rows,
                rate_before=self.before.rate if self.after else None,
                rate=s.rate,
                rate_low=s.lower,
                rate_high=s.upper,
            )
        return self._per_group(
            headings={
                "n_event": f"n{event.rows.removeprefix('rows')}",
                "rate_before": f"{event.short} before",
                "rate": f"{event.short}{when}",
                "selection_rate": f"{SELECTION.short}{when}",
            },
            n=self.rows,
            n_event=s.rows if other else None,
            rate_before=self.before.rate if self.after else None,
            rate=s.rate,
            rate_low=s.lower,
            rate_high=s.upper,
            selection_rate=s.rates[SELECTION.name].rate if other else None,
            changed_to_yes=self.changed_to_yes,
            changed_to_no=self.changed_to_no,
        )

    def _per_group(
        self, headings: dict[str, str] | None = None, events: Sequence[Event] = (), **columns: Any
    ) -> Table:
        """A table of the columns that are not None; with `events`, one row per group and event."""
        known = {name: values for name, values in columns.items() if values is not None}
        every = self.groups * (len(events) // len(self.groups) or 1)
        return Table(
            cell_columns(
                every,
                stratified=self.within_strata or self.by_attribute,
                events=events,
                outer="attribute" if self.by_attribute else "stratum",
            )
            | known,
            headings=headings,
            shares=known,
            confidence=self.confidence,
        )

    def errors(self) -> Table:
        """Accuracy, error rates and calibration error of each group; needs labels.

        Examples
        --------
        >>> import fairramp
        >>> found = fairramp.audit([0, 1, 1, 1], ["A", "A", "B", "B"], labels=[0, 1, 0, 1])
        >>> found.errors()["true_positive_rate"].tolist()
        [1.0, 1.0]
        """
        s = self.selection
        if s.accuracy is None:
            raise InputError("Error rates need {labels}, the true outcomes of the rows")
        return self._per_group(
            accuracy=s.accuracy,
            true_positive_rate=s.true_positive_rate,
            false_positive_rate=s.false_positive_rate,
            precision=s.precision,
            calibration_error=self.calibration_error,
        )

    def to_dict(self) -> dict[str, Any]:
        """All results as plain values, ready for JSON, with None for unknown values and NaN.

        Examples
        --------
        >>> import fairramp
        >>> found = fairramp.audit([0, 1, 1, 1], ["A", "A", "B", "B"], labels=[0, 1, 0, 1])
        >>> found.to_dict()["before"]["gap"]
        0.5
        """
        return plain(asdict(self))

    def gaps(self) -> Table:
        """Gap and ratio with their confidence limits, before and after; for equalized odds, of both error rates.

        Examples
        --------
        >>> import fairramp
        >>> found = fairramp.audit([0, 1, 1, 1], ["A", "A", "B", "B"], labels=[0, 1, 0, 1])
        >>> found.gaps()["ratio"].tolist()
        [0.5]
        """
        own = "as given" if self.of_decisions else "classifier"
        said = ["before", "after"] if self.after else [own]
        found = [
            (name, s, event, s.rates[event.name])
            for name, s in zip(said, (self.before, self.after), strict=False)
            if s is not None
            for event in self.event.simple
        ]
        columns: dict[str, list[Any]] = {
            "decisions": [name for name, *_ in found],
            "error_rate": [event.short if self.event.parts else None for _, _, event, _ in found],
            "gap": [one.gap for *_, one in found],
            "gap_low": [one.gap_interval[0] for *_, one in found],
            "gap_high": [one.gap_interval[1] for *_, one in found],
            "ratio": [one.ratio for *_, one in found],
            "ratio_low": [one.ratio_interval[0] for *_, one in found],
            "ratio_high": [one.ratio_interval[1] for *_, one in found],
            "accuracy": [s.overall_accuracy for _, s, *_ in found],
            "cost": [s.cost for _, s, *_ in found],
        }
        known = {name: values for name, values in columns.items() if values[0] is not None}
        return Table(known, decimals=2, shares=["accuracy"], gaps=["gap"], confidence=self.confidence)

    def __repr__(self) -> str:
        return printed(*self._parts())

    def _parts(self) -> list[Table | str]:
        """The parts of its text."""
        parts: list[Table | str] = ["\n".join(self.sentences()), self.table()]
        if self.selection.accuracy is not None:
            parts += [*(["Errors of the rule:"] if self.after else []), self.errors()]
        parts.append(self.gaps())
        if self.group_model is not None:
            parts += ["Group probabilities:", self.group_model.table()]
        if self.intersections is not None:
            parts += [self.intersections.as_intersections(), self.intersections.table()]
        return parts

    def as_intersections(self) -> str:
        """The gap between intersections of attributes, in a sentence.

        Examples
        --------
        >>> import fairramp
        >>> columns = {"sex": ["F", "F", "M", "M"], "age": ["old", "young", "old", "young"]}
        >>> found = fairramp.audit([0, 1, 1, 0], columns, combine="each")
        >>> found.gap, found.intersections.gap
        (0.0, 1.0)
        >>> print(found.intersections.as_intersections())
        Intersections: gap 100.0 points [0.0, 100.0].
        """
        s, was = self.selection, f", was {points(self.before.gap)}" if self.after else ""
        if s.gap != s.gap:
            return f"Intersections: no {self.event.gap}."
        all_of_them = f"{with_interval(*map(points, (s.gap, *s.gap_interval)))}{was}"
        small = "; ".join(filter(None, (small_ones(s.rates[e.name].rows, e) for e in self.event.simple)))
        large = [self._gap_of_large(one) for one in (s, self.before)]
        if not small or large == [s.gap, self.before.gap]:
            return f"Intersections: {self.event.gap} {all_of_them}."
        was = f", was {points(large[1])}" if self.after else ""
        return f"Intersections: {self.event.gap} {points(large[0])}{was}. With {small}: {all_of_them}."

    def _gap_of_large(self, found: Selection) -> float:
        """The gap between the groups that are large enough to judge; of several rates, the largest."""
        rates = [found.rates[event.name] for event in self.event.simple]
        return max(largest_gap(np.array(one.rate)[judged(one.rows)]) for one in rates if any(one.rows))
