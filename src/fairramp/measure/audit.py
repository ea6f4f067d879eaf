"""Audits: rates, gaps, errors and changed decisions, with confidence intervals.

For rows with weight w, selection probability h (0 or 1 for hard decisions) and label y, per group

    selection rate       Σ w h / Σ w                         accuracy    Σ w (h y + (1 − h)(1 − y)) / Σ w
    true positive rate   Σ w h y / Σ w y                     precision   Σ w h y / Σ w h
    false positive rate  Σ w h (1 − y) / Σ w (1 − y)         calibration error   Σ w (y − x) s(x) / Σ w

where s(x) is 1 if an isotonic regression on the other rows' labels is above x, and −1 if it is below. The
calibration error is thus the average error of the scores that held-out rows confirm (see `measure.calibration`).
The criterion says which of the rates on the left is compared; equalized odds compares the last two. The gap is
the maximum minus the minimum of the groups' rates, the ratio their minimum divided by their maximum. Rates have
Wilson intervals with effective rows (see `measure.means`), gap and ratio Newcombe intervals (see
`core.intervals`).

Every number is an expectation over the rule's random draws, not the result of one draw.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fairramp.core.cells import cell_columns, strata_slices, stratum_index
from fairramp.core.checks import check_number, check_option
from fairramp.core.curve import Floats, Integers
from fairramp.core.events import EVENT_OF, SELECTION, SYNONYMS, Event
from fairramp.core.labels import Label, label_parts, show_label
from fairramp.core.table import Table, one_line, printed
from fairramp.core.words import percent, plain, points, with_interval
from fairramp.data.groups import Codes
from fairramp.data.sample import Sample
from fairramp.errors import InputError, UnsupportedError
from fairramp.fit.direction import warn_direction
from fairramp.fit.each import Attributes
from fairramp.fit.gains import Costs
from fairramp.fit.settings import COMBINATIONS, Settings, checked_costs
from fairramp.measure.calibration import calibration_errors
from fairramp.measure.comparison import comparison, left_out
from fairramp.measure.group_model import GroupModel, group_model
from fairramp.measure.means import RowTallies, are_decisions, tally_rows
from fairramp.measure.rates import GroupRates, Selection, selection
from fairramp.rule.rule import Rule
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

    def sentences(self) -> list[str]:
        """Sentences on the groups furthest apart, before and after, on groups without a rate and on weights.

        Examples
        --------
        >>> import fairramp
        >>> fairramp.audit([0, 1, 1, 1], ["A", "A", "B", "B"]).sentences()
        ['Selection rate: B 100.0% of 2 rows, A 50.0% of 2 rows (2.0 times as high).']
        """
        names, found, gone = [one_line(show_label(label)) for label in self.groups], list[str](), list[str]()
        side = "above" if self.higher_is_better else "below"
        for event in self.event.simple:
            what = event.rate.capitalize()
            first = what if self.after is None else f"{what} before"
            before = first if self.of_decisions else f"{first} (yes at {self.cutoff:g} or {side})"
            for decisions, said in ((self.before, before), (self.after, f"{what} after")):
                if decisions is not None:
                    one = decisions.rates[event.name]
                    found += self._compared(one, said, event)
            gone += [left_out(self.before.rates[event.name].rate, names, event) or ""]
        found += filter(None, gone)
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
        names = [one_line(show_label(label)) for label in self.groups]
        strata = stratum_index(self.groups) if self.within_strata else None
        if not self.by_attribute:
            return [comparison(one.rate, names, strata, one.rows, what, event=event)]
        found = []
        for part in strata_slices(stratum_index(self.groups), len(names)):
            attribute, values = label_parts(self.groups[part][0])[0], self.groups[part]
            first, mark, rest = what.partition(" (")
            said = one_line(f"{first} by {show_label(attribute)}{mark}{rest}")
            own = [one_line(show_label(label_parts(pair)[1])) for pair in values]
            found.append(comparison(one.rate[part], own, None, one.rows[part], said, event=event))
        return found

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
        shown = with_interval(*map(points, (s.gap, *s.gap_interval)))
        return f"Intersections: {self.event.gap} {shown}{was}."


def audit(
    scores: Any,
    groups: Any,
    labels: Any = None,
    *,
    rule: Rule | None = None,
    criterion: str | None = None,
    strata: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    cutoff: float | None = None,
    scale: str | None = None,
    higher_is_better: bool | None = None,
    costs: tuple[float, float] | None = None,
    group_probabilities: Any = None,
    combine: str | None = None,
) -> Audit:
    """Measure each group's rate and the gap, before and after a rule; with labels, also accuracy and error rates.

    Parameters
    ----------
    scores : numbers of shape (n,)
        Scores, or 0/1 decisions.
    groups : labels of shape (n,), or several columns
        As in `fit_rule`.
    labels : 0 or 1 of shape (n,), optional
        True outcomes.
    rule : Rule, optional
        Also audit the decisions of this rule.
    criterion : {"parity", "equal_opportunity", "predictive_equality", "equalized_odds"}, optional
        Which rate to compare: "parity" compares selection rates, "equal_opportunity" true positive rates (among
        rows with label 1), "predictive_equality" false positive rates (among rows with label 0), and
        "equalized_odds" both of these. All but "parity" require `labels`. By default, the criterion of the rule;
        without a rule, "parity".
    strata : labels of shape (n,), or several columns, optional
        Compare groups within strata: the gap is then the largest gap between two groups of the same stratum.
    sample_weight : numbers of shape (n,), optional
        Row weights.
    confidence : float, default 0.95
        Confidence level of all intervals.
    cutoff, scale, higher_is_better : optional
        The score at which the classifier says yes, the scale of the scores, and whether high scores are better,
        as in `fit_rule`. By default, those of the rule; without a rule, the defaults of `fit_rule`.
    costs : tuple of two floats, optional
        Cost of a false positive and of a false negative; the audit then has the mean cost of a row. By default,
        those with which the rule was fitted, if any.
    group_probabilities : GroupProbabilities, optional
        What the rule decides by, if it uses group probabilities; required then. `groups` are the true groups, and
        all rates are by true group. A warning says if the probabilities are poor: see `GroupModel`.
    combine : {"intersections", "each"}, optional
        Whether several group columns make intersections, or are compared one by one: the gap is then the largest
        gap within a column, and `Audit.intersections` has the intersections. By default, as the rule was fitted;
        without a rule, "intersections".

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> found = fairramp.audit(data.score, data.sex, data.label)
    >>> round(found.gap, 3), round(found.ratio, 2)
    (0.168, 0.31)
    >>> found = fairramp.audit(data.score, data.sex, data.label, criterion="equal_opportunity")
    >>> round(found.gap, 3), round(found.ratio, 2)
    (0.063, 0.89)
    """
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    if criterion is not None:
        check_option("criterion", criterion, EVENT_OF, SYNONYMS)
    if not isinstance(rule, Rule | None):
        raise InputError(
            "must be a fairramp.Rule, got {kind}",
            argument="rule",
            remedy="to audit other 0/1 decisions, pass them as {scores}",
            kind=type(rule).__name__,
        )
    for name, given in (("scale", scale), ("cutoff", cutoff), ("higher_is_better", higher_is_better)):
        own = getattr(rule, name, None)
        if None not in (given, own) and given != own:
            raise InputError(
                "is {own!r} in the rule but {given!r} in the call",
                argument=name,
                remedy="leave it out",
                own=own,
                given=given,
            )
    if rule:
        # A rule fitted without strata can still be audited within strata.
        rule.check_strata(strata if rule.stratified else None)
        scale, cutoff, higher_is_better = rule.scale, rule.cutoff, rule.higher_is_better
    asked = Settings(
        scale="probability" if scale is None else scale,
        cutoff=cutoff,
        higher_is_better=True if higher_is_better is None else higher_is_better,
    )
    if costs is not None and labels is None:
        raise InputError("{costs} requires {labels}, the true outcomes")
    if costs is None and labels is not None and rule is not None and rule.record is not None:
        costs = rule.record.costs
    paid = None if costs is None else Costs(*checked_costs(costs))
    event = EVENT_OF[criterion or (rule.criterion if rule else SELECTION.criterion)]
    if event.needs_labels and labels is None:
        raise InputError(
            "{criterion:" + event.criterion + "} requires {labels}, the true outcomes",
            remedy="pass them, or compare selection rates with {criterion:parity}",
        )
    by_attribute = _by_attribute(combine, rule)
    if by_attribute and strata is not None:
        raise UnsupportedError("{combine:each} does not support {strata}", remedy="remove one of the two")
    if group_probabilities is not None and rule is None:
        raise InputError("{group_probabilities} are those that a rule decides by: pass {rule}, or remove them")
    sample = Sample.of_arrays(
        scores,
        groups,
        labels,
        scale=asked.meaning,
        strata=strata,
        sample_weight=sample_weight,
        columns=rule.columns if rule else None,
        drop_empty=True,
        membership=None if rule is None else rule.deciding(group_probabilities),
    )
    found = tally_rows(sample, cutoff=asked.problem.cutoff, rule=rule)
    warn_direction(sample, fitted=rule is not None)
    of_decisions = rule is None and are_decisions(sample, asked.problem.cutoff)
    # Decisions, and scores of which only the order matters, are not estimates of anything.
    calibrated = sample.labels is not None and not of_decisions and not sample.scale.only_ordered

    def measured(found: RowTallies, of: Integers | None, errors: Callable[[], Floats], **more: Any) -> Audit:
        if found.after is not None:
            more |= {
                "after": selection(found.after, confidence, of, paid, event),
                "changed_to_yes": _floats(found.changed_to_yes),
                "changed_to_no": _floats(found.changed_to_no),
                "randomized": found.randomized,
            }
        return Audit(
            groups=found.groups,
            rows=tuple(found.rows.tolist()),
            before=selection(found.own, confidence, of, paid, event),
            calibration_error=_floats(errors()) if calibrated else None,
            criterion=event.criterion,
            confidence=confidence,
            weighted=sample.weights is not None,
            of_decisions=of_decisions,
            cutoff=asked.cutoff,  # type: ignore[arg-type]  # checked settings have one
            higher_is_better=asked.higher_is_better,
            costs=None if paid is None else (paid.false_positive, paid.false_negative),
            **more,
        )

    of = None if strata is None else stratum_index(found.groups)
    model = None if sample.membership is None else group_model(sample, sample.membership)
    audited = measured(
        found,
        of,
        lambda: calibration_errors(sample, found.counts),
        within_strata=strata is not None,
        group_model=model,
    )
    if model is not None:
        model.warn()
    if not by_attribute:
        return audited
    names = [name for name, _ in rule.attributes] if rule and rule.membership == "each" else sample.groups.names
    attributes = Attributes.of(found.groups, names)
    return measured(
        found.by_value(attributes),
        attributes.parts,
        lambda: _errors_by_value(sample, found, attributes),
        by_attribute=True,
        intersections=audited,
    )


def _by_attribute(combine: str | None, rule: Rule | None) -> bool:
    """Whether several group columns are compared one by one."""
    own = None if rule is None or rule.membership != "each" else "each"
    if combine is not None:
        check_option("combine", combine, COMBINATIONS)
    if None not in (combine, own) and combine != own:
        raise InputError(
            "is {own!r} in the rule but {given!r} in the call",
            argument="combine",
            remedy="leave it out; the audit has the intersections, too",
            own=own,
            given=combine,
        )
    return (combine or own) == "each"


def _errors_by_value(sample: Sample, found: RowTallies, attributes: Attributes) -> Floats:
    """The calibration error of the scores of each attribute's values."""
    cells, errors = np.cumsum(found.counts > 0) - 1, []
    for seats, block in zip(attributes.of_cell.T, attributes.blocks, strict=True):
        values = (seats - block.start)[cells[sample.cells.block(0, len(sample))]]
        codes = Codes(values, 0, attributes.values[block])
        counts = np.bincount(values, minlength=len(codes.labels))
        errors.append(calibration_errors(replace(sample, groups=codes, cells=codes), counts))
    return np.concatenate(errors)


def _floats(values: Floats) -> tuple[float, ...]:
    return tuple(values.tolist())
