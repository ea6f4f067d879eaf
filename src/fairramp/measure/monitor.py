"""Monitor: test whether the gap on new rows exceeds its estimated limit, as often as you like.

A monitor keeps only each group's number of rows and the sum of their selection probabilities; `measure.evidence`
evaluates them. For true and false positive rates, these are the rows with that label; for equalized odds, each
group has two rates, kept event by event. When the evidence reaches 1/(0.9 δ), or the limits of all rates at 0.1 δ
show a gap above its limit, the alarm is raised and stays so. A false alarm has at most probability δ in total.
"""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from fairramp.core.cells import cell_columns, largest_gap, widest
from fairramp.core.checks import check_number
from fairramp.core.curve import Floats, Integers
from fairramp.core.events import Event
from fairramp.core.headline import small_ones
from fairramp.core.labels import Label, label_key
from fairramp.core.public import public
from fairramp.core.table import Table, notebook_html
from fairramp.core.words import percentage, plain, points, upward_points, with_interval, wrapped
from fairramp.data import documents
from fairramp.data.files import write_text
from fairramp.errors import InputError, warn
from fairramp.measure.certificate import PLAIN
from fairramp.measure.drift import drift_headings
from fairramp.measure.evidence import BETS, is_shown, log_evidence, rate_limits
from fairramp.measure.means import mean_chances
from fairramp.measure.monitor_file import GroupEntry, MonitorFile, PartEntry
from fairramp.measure.parts import Comparison, Part, compared, parts_of, said
from fairramp.measure.verdict import Verdict
from fairramp.rule.limits import certifiable, unmixed
from fairramp.rule.rule import Rule


@public
class Monitor:
    """Test whether the gap on new rows exceeds its estimated limit, after every batch or every row.

    Created by `Rule.monitor`. As long as the gap is within the limit, the probability that the alarm is ever
    raised is at most 1 − `confidence`, however often you look. The limit is the estimated limit of the rule's
    certificate, which holds with the same confidence. Weights are not supported. The gap is measured over all
    rows since the monitor was created, so starting a new monitor from time to time detects late drift sooner. For
    a rule that makes error rates equal, add rows once their labels are known.

    Parameters
    ----------
    rule : Rule
        A rule with the record of its fit.
    confidence : float, default 0.95
        Confidence level of the estimated limit and of the alarm.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
    >>> monitor = rule.monitor()
    >>> for night in range(12000, 24000, 2000):
    ...     rows = slice(night, night + 2000)
    ...     found = monitor.update(data.score[rows], data.sex[rows])
    >>> found.has_drifted, found.looks
    (False, 6)
    """

    def __init__(self, rule: Rule, confidence: float = 0.95) -> None:
        if not isinstance(rule, Rule):
            raise InputError("must be a fairramp.Rule", argument="rule", got=rule)
        self._rule = unmixed(rule, "A monitor")
        self._confidence = check_number("confidence", confidence, 0.5, 1 - 1e-9)
        record = certifiable(rule)
        if record.weighted:
            warn(
                "The rule was fitted with weights, but a monitor counts each row once, so rates may not be "
                "comparable"
            )
        self._fit_rates: Floats = record.column("after")
        self._parts = parts_of(rule, self._confidence)
        self._rows: Integers = np.zeros(len(self._fit_rates), dtype=np.int64)
        self._selected = np.zeros_like(self._fit_rates)
        self._looks = 0
        self._alarm: int | None = None
        self._batches: tuple[str, ...] = ()

    # Rows in, and files ------------------------------------------------------------------------------

    def update(
        self, scores: Any, groups: Any, labels: Any = None, *, strata: Any = None, batch: str | None = None
    ) -> Self:
        """Add new rows and test again.

        Parameters
        ----------
        scores, groups, strata
            As in `Rule.probabilities`; rows of groups unknown to the rule are left out, as in `Rule.check`. Do
            not add a row twice.
        labels : 0 or 1 of shape (n,), optional
            True outcomes; required if the rule makes error rates equal, otherwise not used. Only rows with the
            label that the rates are about count (with equalized odds, all do); a batch may have none.
        batch : str, optional
            A name for these rows, such as a date. A repeated name is rejected, so no job counts rows twice.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> monitor = fairramp.fit_rule(data.score[:12000], data.sex[:12000]).monitor()
        >>> found = monitor.update(data.score[12000:], data.sex[12000:], batch="2026-01-31")
        >>> found.rows
        (4118, 8303)
        """
        if batch is not None:
            self._check_batch(batch)
        seen = mean_chances(self._rule, scores, groups, labels, strata=strata)
        self._rows[seen.seats] += np.array(seen.rows, dtype=np.int64)
        self._selected[seen.seats] += seen.rates * np.array(seen.rows)
        self._selected = np.minimum(self._selected, self._rows)  # rounding
        self._looks += 1
        if batch is not None:
            self._batches += (batch,)
        if self._alarm is None and is_shown(*self._counts, delta=1 - self._confidence):
            self._alarm = self._looks
        return self

    def _check_batch(self, batch: str) -> None:
        if not isinstance(batch, str) or not batch:
            raise InputError("must be a nonempty string", argument="batch", got=batch)
        if batch in self._batches:
            raise InputError(
                "must be a name not used before",
                argument="batch",
                got=batch,
                remedy="no rows were added; if these are different rows, choose another name",
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a small JSON file, atomically; the file contains no rows.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rule.monitor().update(data.score[12000:], data.sex[12000:]).save(Path(folder) / "state.json")
        ...     fairramp.Monitor.load(Path(folder) / "state.json", rule).looks
        1
        """
        names = [event.name for event in self._events]
        columns = (names, self._every, self._fit_rates.tolist(), self._rows.tolist(), self._selected.tolist())
        document = MonitorFile(
            version=documents.VERSION,
            sha256="",
            rule=self._rule.fingerprint,
            confidence=self._confidence,
            groups=tuple(GroupEntry(*entry) for entry in zip(*columns, strict=True)),
            parts=tuple(PartEntry(tuple(part.places.tolist()), part.limit) for part in self._parts),
            looks=self._looks,
            alarm=self._alarm,
            batches=self._batches,
        )
        write_text(Path(path), documents.written(document, indent=1), "the monitor")

    @classmethod
    def load(cls, path: str | os.PathLike[str], rule: Rule, *, confidence: float | None = None) -> Self:
        """Load a monitor to continue from its saved state.

        Parameters
        ----------
        path : str or path
            A file written by `save`.
        rule : Rule
            The rule the monitor was created for; any other rule raises an error.
        confidence : float, optional
            If given, must equal the confidence in the file.

        Raises
        ------
        MonitorFormatError
            If the file is not a monitor of this rule, or was altered; the message says why.

        Examples
        --------
        >>> import fairramp
        >>> rule = fairramp.Rule.load("rule.json")  # doctest: +SKIP
        >>> monitor = fairramp.Monitor.load("state.json", rule)  # doctest: +SKIP
        """
        return documents.load(path, MonitorFile, partial(cls._restored, rule, confidence))

    @classmethod
    def _restored(cls, rule: Rule, confidence: float | None, document: MonitorFile) -> Self:
        if not isinstance(rule, Rule):
            raise InputError("must be a fairramp.Rule", argument="rule", got=rule)
        entries = document.groups
        if document.rule != rule.fingerprint or [(one.event, label_key(one.label)) for one in entries] != [
            (event.name, label_key(label)) for event in rule.event.simple for label in rule.groups
        ]:
            raise InputError(
                "The monitor belongs to another rule, with fingerprint {theirs:.12}…, not {ours:.12}…",
                remedy="pass that rule, or start over with a new file",
                theirs=document.rule,
                ours=rule.fingerprint,
            )
        if confidence not in (None, document.confidence):
            raise InputError(
                "The monitor was started with confidence {theirs!r}, not {ours!r}, and cannot change it",
                remedy="leave {confidence} out, or start over with a new file",
                theirs=document.confidence,
                ours=confidence,
            )
        found = cls(rule, document.confidence)
        if [entry.places for entry in document.parts] != [tuple(part.places.tolist()) for part in found._parts]:
            raise InputError('"parts" must match the rule')
        document.check()
        # A bet must not change while it runs, so limits and priors stay those it started with.
        parts = zip(found._parts, document.parts, strict=True)
        found._parts = [replace(part, limit=entry.limit) for part, entry in parts]
        found._fit_rates = np.array([entry.fit_rate for entry in entries])
        found._rows = np.array([entry.rows for entry in entries], dtype=np.int64)
        found._selected = np.array([entry.selected for entry in entries])
        found._looks, found._alarm, found._batches = document.looks, document.alarm, document.batches
        return found

    # What the rows show ------------------------------------------------------------------------------

    @property
    def confidence(self) -> float:
        """Confidence level of the estimated limit and of the alarm."""
        return self._confidence

    @property
    def looks(self) -> int:
        """Number of updates so far."""
        return self._looks

    @property
    def batches(self) -> tuple[str, ...]:
        """Names of the named batches."""
        return self._batches

    @property
    def alarm(self) -> int | None:
        """The look at which the alarm was raised; None if it was not raised."""
        return self._alarm

    @property
    def groups(self) -> tuple[Label, ...]:
        """The rule's groups."""
        return self._rule.groups

    @property
    def rate(self) -> str:
        """What the rates are called, such as "selection rate"; for equalized odds, "error rate"."""
        return self._rule.event.rate

    @property
    def rows(self) -> tuple[int, ...]:
        """Number of rows in each group so far; for true and false positive rates, of rows with that label.

        For equalized odds, the numbers of rows with label 1 in all groups, followed by those with label 0.
        """
        return tuple(self._rows.tolist())

    @property
    def rates(self) -> tuple[float, ...]:
        """Expected rate of each group so far, in the order of `rows`; NaN without rows."""
        return tuple(np.where(self._rows > 0, self._means(), np.nan).tolist())

    @property
    def evidence(self) -> float:
        """Evidence of a gap above its limit: starts at 1, raises the alarm at 1/(0.9 (1 − confidence))."""
        return float(np.exp(min(log_evidence(*self._counts), 700.0)))

    @property
    def has_drifted(self) -> bool:
        """Whether the alarm was raised, at this look or an earlier one."""
        return self._alarm is not None

    @property
    def verdict(self) -> Verdict:
        """Exceeded once the alarm is raised, within if the limits of all rates show that, otherwise undecided."""
        if self.has_drifted:
            return Verdict.EXCEEDED
        within = all(one.verdict is Verdict.WITHIN for one in self.comparisons) and bool(self._rows.all())
        return Verdict.WITHIN if within and self._compared() else Verdict.UNDECIDED

    @property
    def limit(self) -> float:
        """The estimated limit on `gap`."""
        return self._furthest().limit

    @property
    def gap(self) -> float:
        """Largest difference between two groups' rates so far.

        For rules that equalize within strata, this is the gap of the stratum furthest above its limit. If a few
        small groups make the limit wide, it is the gap of all groups or of the others, whichever is further above
        its limit; for equalized odds, likewise the gap between true or between false positive rates.
        """
        return largest_gap(self._means()[self._furthest().places]) if self._compared() else 0.0

    @property
    def gap_rate(self) -> str:
        """Which rate `gap` is about, as in `rate`."""
        return self._furthest().event.rate

    @property
    def gap_interval(self) -> tuple[float, float]:
        """Confidence limits of `gap` that hold jointly at all looks."""
        return self._interval(self._furthest().places) if self._compared() else (0.0, 1.0)

    @property
    def pair(self) -> tuple[Label, Label] | None:
        """The groups with the highest and the lowest rate, whose difference is `gap`."""
        if not self._compared():
            return None
        places = self._furthest().places
        rates = self._means()[places]
        if np.ptp(rates) == 0:
            return None
        return self._every[places[int(rates.argmax())]], self._every[places[int(rates.argmin())]]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Gaps and limits: for all groups, and for all but a few small ones; with strata, for one stratum."""
        parts = [self._furthest()] if self._rule.stratified else self._compared()
        means = self._means()
        return tuple(compared(part, means, self.rows, self._interval(part.places)) for part in parts)

    def table(self) -> Table:
        """One row per group: number of rows so far, rate on the fit rows, and new rate with confidence limits.

        The limits hold jointly for all groups and all looks, with more than the monitor's confidence. For
        equalized odds, one row per group and `error_rate`, TPR (true positive rate) or FPR (false positive rate).

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> print(rule.monitor().update(data.score[12000:], data.sex[12000:]).table())
        group       n  fit rate     new rate (95% CI)
        ------  -----  --------  --------------------
        Female  4,118     20.0%  20.5% [18.1%, 23.1%]
        Male    8,303     20.0%  20.7% [19.0%, 22.6%]
        """
        rule, (lower, upper) = self._rule, self._ends()
        return Table(
            cell_columns(self._every, stratified=rule.stratified, events=self._events if rule.event.parts else ())
            | {
                "n": self.rows,
                "fit_rate": self._fit_rates,
                "new_rate": np.array(self.rates),
                "new_rate_low": lower,
                "new_rate_high": upper,
            },
            headings=drift_headings(rule.event),
            shares=("fit_rate", "new_rate"),
            confidence=self._confidence,
        )

    def sentence(self) -> str:
        """The verdict with its numbers.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> print(rule.monitor().sentence())
        Nothing to compare yet. The estimated limit on the gap is 1.6 points.
        """
        limit, event = upward_points(self.limit), self._rule.event
        if not self._compared():
            return f"Nothing to compare yet. The {self._furthest().kind} limit on the {event.gap} is {limit}."
        rows = f"on {int(self._rows.sum()):,} {event.rows}"
        if self._alarm is None:
            return said(self.comparisons, rows)
        gap = with_interval(*map(points, (self.gap, *self.gap_interval)))
        part = self._furthest()
        few = small_ones(self._rows[part.places], part.event)
        others = f", without {PLAIN.fit_rows(part.left_out, part.event)}" if part.left_out else ""
        return (
            f"Above the {part.kind} limit of {limit} since look {self._alarm:,} of {self._looks:,}: "
            f"the {part.event.gap} is now {gap} {rows}{others}.{few and f' The gap includes {few}.'}"
        )

    def __repr__(self) -> str:
        return "\n".join(map(wrapped, self.sentences()))

    def _repr_html_(self) -> str:
        return notebook_html(*self.sentences(), self.table())

    def sentences(self) -> list[str]:
        """The verdict with its numbers, then the evidence and the false-alarm rate.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> len(rule.monitor().sentences())
        2
        """
        delta = 1 - self._confidence
        error = percentage(round(delta, 12))
        looks = f"{self._looks:,} look{'' if self._looks == 1 else 's'}"
        return [
            self.sentence(),
            f"Evidence of a larger gap: {_evidence(self.evidence)} after {looks}; the alarm is raised at "
            f"{1 / (BETS * delta):.3g}. False alarm rate: at most {error} if the gap is within the limit, "
            f"however often you look. The limit holds with {percentage(self._confidence)} confidence.",
        ]

    def to_dict(self) -> dict[str, Any]:
        """All results as plain values, ready for JSON, with None for unknown values and NaN.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> found = rule.monitor().update(data.score[12000:], data.sex[12000:]).to_dict()
        >>> found["verdict"], found["looks"], found["alarm"]
        ('undecided', 1, None)
        """
        return plain(
            {
                "rate": self.rate,
                "verdict": self.verdict.value,
                "has_drifted": self.has_drifted,
                "alarm": self.alarm,
                "looks": self.looks,
                "evidence": self.evidence,
                "gap_rate": self.gap_rate,
                "gap": self.gap,
                "gap_interval": self.gap_interval,
                "limit": self.limit,
                "confidence": self.confidence,
                "groups": list(self.table().rows()),
                "pair": self.pair,
                "comparisons": [one.to_dict() for one in self.comparisons],
            }
        )

    # Numbers -----------------------------------------------------------------------------------------

    @property
    def _every(self) -> tuple[Any, ...]:
        """The group of each rate: all groups, once for each event."""
        return self.groups * len(self._rule.event.simple)

    @property
    def _events(self) -> list[Event]:
        """Which rate each of the rates is."""
        return [event for event in self._rule.event.simple for _ in self.groups]

    def _means(self) -> Floats:
        """Rates so far; for groups without rows, those of the fit."""
        return np.where(self._rows > 0, self._selected / np.maximum(self._rows, 1), self._fit_rates)

    def _compared(self) -> list[Part]:
        """The parts with at least two groups that have rows, restricted to those groups."""
        seen = (replace(part, places=part.places[self._rows[part.places] > 0]) for part in self._parts)
        return [part for part in seen if len(part.places) > 1]

    def _furthest(self) -> Part:
        """The part furthest above its limit; the one with the largest limit if nothing can be compared yet."""
        means, found = self._means(), self._compared()
        if not found:
            return max(self._parts, key=lambda part: part.limit)
        return max(found, key=lambda part: largest_gap(means[part.places]) - part.limit)

    def _ends(self) -> tuple[Floats, Floats]:
        delta = (1 - BETS) * (1 - self._confidence)
        return rate_limits(self._rows, self._selected, self._fit_rates, delta)

    def _interval(self, places: Integers) -> tuple[float, float]:
        """Confidence limits of a gap."""
        lower, upper = self._ends()
        # The largest lower limit minus the smallest upper limit is `widest` with its arguments swapped.
        return max(widest(upper[places], lower[places]), 0.0), widest(lower[places], upper[places])

    @property
    def _counts(self) -> tuple[Integers, Floats, Floats, list[tuple[Integers, float]]]:
        """What the evidence comes from; of each part, its groups and their limit."""
        return self._rows, self._selected, self._fit_rates, [(part.places, part.limit) for part in self._parts]


def _evidence(value: float) -> str:
    """Format evidence without an exponent."""
    return "above 1,000" if value > 1000 else f"{value:.2g}"
