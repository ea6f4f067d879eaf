"""Monitor: whether the gap of new rows exceeds its estimated limit, asked as often as one likes.

Of each group k only the rows n_k and the sum S_k of their chances h are kept. For h in [0, 1] with mean m and any
q, (q/m)^h ((1 − q)/(1 − m))^(1−h) has expectation 1 at most, because it is convex in h. So the mixture over
q ~ Beta(a_k, b_k),

    E_k(m) = B(S_k + a_k, n_k − S_k + b_k) / B(a_k, b_k) / (m^S_k (1 − m)^(n_k − S_k)),

is a fair bet against "the mean is m", whatever the number of rows and looks: it ever reaches 1/δ with probability
δ at most (Ville). Priors are centered at the rates on the fit rows. Against "rate_k − rate_l ≤ g"

    E_kl = min over m_k − m_l ≤ g of E_k(m_k) E_l(m_l):

the likelihood below is at its maximum, which is the rates themselves if they keep to g, and lies on m_k = m_l + g
otherwise. The mean of E_kl over all ordered pairs that are compared is the *evidence* that one of them exceeds g.
The alarm is raised when it reaches 1/δ, and stays. {m : E_k(m) < K/δ} are limits of K rates that hold at all looks
together. References: Ville 1939; Robbins 1970; Waudby-Smith and Ramdas 2024.
"""

import hashlib
import os
import textwrap
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from msgspec import Meta

from fairramp.core.cells import cell_columns, largest_gap, strata_slices, stratum_index, widest
from fairramp.core.checks import check_number
from fairramp.core.curve import Floats, Integers
from fairramp.core.intervals import kl_interval
from fairramp.core.labels import Label, label_key, show_label
from fairramp.core.table import Table, notebook_html, one_line, percentage
from fairramp.data import documents
from fairramp.data.files import write_text
from fairramp.errors import InputError, MonitorFormatError
from fairramp.measure.certificate import certifiable, certify
from fairramp.measure.means import mean_chances
from fairramp.measure.verdict import Verdict
from fairramp.rule.rule import Rule

#: How many rows each prior counts for, in equal parts: the small one finds a large drift soon, the large one a
#: small drift. Chosen by simulation (drifts of .05 to .2, rates .2 and .5, 1,000 to 20,000 fit rows).
_PRIOR_ROWS = (10.0, 300.0)
#: Rates on the fit rows are taken as at least this far from 0 and 1, so that priors are proper.
_CENTER = 0.005
#: Pairs of groups that are looked at at once.
_PAIRS = 2**18


class GroupEntry(documents.Shape, frozen=True):
    """What is kept of a group: its rate on the fit rows, its rows since, and the sum of their chances."""

    label: documents.PlainLabel
    fit_rate: documents.Share
    rows: documents.Count
    selected: documents.Nonnegative


class MonitorFile(documents.Document, frozen=True, tag="fairramp.monitor"):
    """A monitor's state."""

    words: ClassVar = {
        "noun": "monitor",
        "again": "begin again with a new file",
        "mend": "begin again with a new file",
    }
    refused = MonitorFormatError

    rule: str
    confidence: Annotated[float, Meta(ge=0.5, lt=1.0)]
    limits: tuple[documents.Share, ...]
    groups: tuple[GroupEntry, ...]
    looks: documents.Count
    alarm: documents.Count | None
    batches: tuple[str, ...]


class Monitor:
    """Whether the gap of new rows exceeds its estimated limit, looked at after every batch, or every row.

    Made by `Rule.monitor`. While the gap is at most the limit, the alarm is ever raised with probability
    1 − `confidence` at most, however often one looks. The limit itself, that of the rule's certificate, holds with
    the same confidence. Each row counts once: there are no weights.

    Parameters
    ----------
    rule : Rule
        With the record of its fit.
    confidence : float, default 0.95
        Of the estimated limit, and of the alarm.

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
        self._rule = rule
        self._confidence = check_number("confidence", confidence, 0.5, 1 - 1e-9)
        record = certifiable(rule)
        self._fit_rates: Floats = np.array(record.rates["selection"].after)
        self._strata = stratum_index(rule.groups) if rule.stratified else None
        self._parts = strata_slices(self._strata, len(rule.groups))
        self._limits = tuple(_estimated_limits(rule, confidence, len(self._parts)))
        self._rows: Integers = np.zeros(len(rule.groups), dtype=np.int64)
        self._selected: Floats = np.zeros(len(rule.groups))
        self._looks, self._alarm = 0, None
        self._batches: tuple[str, ...] = ()
        self._alarm: int | None

    # Rows in, and files ------------------------------------------------------------------------------

    def update(self, scores: Any, groups: Any, *, strata: Any = None, batch: str | None = None) -> Self:
        """Add rows and look.

        Parameters
        ----------
        scores, groups, strata
            As for `Rule.probabilities`; rows of groups that the rule does not know are left out, as in
            `Rule.check`. No row may be added twice.
        batch : str, optional
            A name for these rows, such as a date. A name that was used before is refused, so that a job that is
            run again does not count its rows twice.

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
        seen = mean_chances(self._rule, scores, groups, strata, None)
        places = {label_key(label): k for k, label in enumerate(self._rule.groups)}
        seats = [places[label_key(label)] for label in seen.groups]
        self._rows[seats] += np.array(seen.rows, dtype=np.int64)
        self._selected[seats] += seen.rates * np.array(seen.rows)
        self._selected = np.minimum(self._selected, self._rows)  # rounding
        self._looks += 1
        if batch is not None:
            self._batches += (batch,)
        if self._alarm is None and self._log_evidence() >= -np.log1p(-self._confidence):
            self._alarm = self._looks
        return self

    def _check_batch(self, batch: str) -> None:
        if not isinstance(batch, str) or not batch:
            raise InputError("must be a text", argument="batch", got=batch)
        if batch in self._batches:
            raise InputError(
                "was added before, so nothing is added",
                argument="batch",
                got=batch,
                remedy="if these are other rows, give them another name",
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a small JSON file, which appears whole or not at all; it holds no rows.

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
        columns = (self._rule.groups, self._fit_rates.tolist(), self._rows.tolist(), self._selected.tolist())
        document = MonitorFile(
            version=documents.VERSION,
            sha256="",
            rule=self._rule.fingerprint,
            confidence=self._confidence,
            limits=self._limits,
            groups=tuple(GroupEntry(*entry) for entry in zip(*columns, strict=True)),
            looks=self._looks,
            alarm=self._alarm,
            batches=self._batches,
        )
        write_text(Path(path), documents.written(document, indent=1), "the monitor")

    @classmethod
    def load(cls, path: str | os.PathLike[str], rule: Rule, *, confidence: float | None = None) -> Self:
        """Go on from a file.

        Parameters
        ----------
        path : str or path
            What `save` has written.
        rule : Rule
            The rule that the monitor was made for; another one is refused.
        confidence : float, optional
            Refused unless it is that of the file.

        Raises
        ------
        MonitorFormatError
            If the file is not a monitor of this rule, or not as it was written; the message says why.

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
        if document.rule != rule.fingerprint or [label_key(entry.label) for entry in entries] != [
            label_key(label) for label in rule.groups
        ]:
            raise InputError(
                "The monitor is of another rule, with fingerprint {theirs:.12}…, not {ours:.12}…",
                remedy="pass that rule, or begin again with a new file",
                theirs=document.rule,
                ours=rule.fingerprint,
            )
        if confidence not in (None, document.confidence):
            raise InputError(
                "The monitor has the confidence {theirs!r}, not {ours!r}, and an alarm keeps its confidence",
                remedy="leave {confidence} out, or begin again with a new file",
                theirs=document.confidence,
                ours=confidence,
            )
        found = cls(rule, document.confidence)
        wrong = {
            '"limits" must have one entry per stratum': len(document.limits) != len(found._limits),
            '"selected" must not be larger than "rows"': any(entry.selected > entry.rows for entry in entries),
            '"alarm" must be one of the looks': document.alarm is not None
            and not 1 <= document.alarm <= document.looks,
            '"batches" must be no more than the looks, and each once': len(document.batches) > document.looks
            or len(set(document.batches)) < len(document.batches),
        }
        for sentence in [sentence for sentence, holds in wrong.items() if holds]:
            raise InputError(sentence)
        # A bet must not change while it runs: limits and priors are those it began with.
        found._limits = document.limits
        found._fit_rates = np.array([entry.fit_rate for entry in entries])
        found._rows = np.array([entry.rows for entry in entries], dtype=np.int64)
        found._selected = np.array([entry.selected for entry in entries])
        found._looks, found._alarm, found._batches = document.looks, document.alarm, document.batches
        return found

    # What the rows show ------------------------------------------------------------------------------

    @property
    def confidence(self) -> float:
        """Of the estimated limit, and of the alarm."""
        return self._confidence

    @property
    def looks(self) -> int:
        """How often rows were added."""
        return self._looks

    @property
    def alarm(self) -> int | None:
        """The look at which the alarm was raised; None if it was not."""
        return self._alarm

    @property
    def groups(self) -> tuple[Label, ...]:
        """The rule's groups."""
        return self._rule.groups

    @property
    def rows(self) -> tuple[int, ...]:
        """Rows of each group so far."""
        return tuple(self._rows.tolist())

    @property
    def rates(self) -> tuple[float, ...]:
        """Expected selection rate of each group so far; NaN where it has no rows."""
        return tuple(np.where(self._rows > 0, self._means(), np.nan).tolist())

    @property
    def evidence(self) -> float:
        """Evidence that the gap exceeds its limit, 1 before the first row; the alarm is raised at 1/(1 − confidence)."""
        return float(np.exp(min(self._log_evidence(), 700.0)))

    @property
    def has_drifted(self) -> bool:
        """Whether the alarm was raised, at this look or an earlier one."""
        return self._alarm is not None

    @property
    def verdict(self) -> Verdict:
        """Exceeded once the alarm was raised; within if the limits of all rates show it; otherwise undecided."""
        if self.has_drifted:
            return Verdict.EXCEEDED
        ends = [(self._interval(seen)[1], limit) for seen, limit in self._compared()]
        return Verdict.WITHIN if ends and all(upper <= limit for upper, limit in ends) else Verdict.UNDECIDED

    @property
    def limit(self) -> float:
        """The estimated limit; for rules within strata, that of the stratum furthest above its own."""
        return self._furthest()[1]

    @property
    def gap(self) -> float:
        """Largest difference between two groups' rates so far, of the stratum that `limit` is about."""
        return largest_gap(self._means()[self._furthest()[0]]) if self._compared() else 0.0

    @property
    def gap_interval(self) -> tuple[float, float]:
        """Limits of `gap` that hold at all looks together."""
        return self._interval(self._furthest()[0]) if self._compared() else (0.0, 1.0)

    @property
    def pair(self) -> tuple[Label, Label] | None:
        """The groups with the highest and the lowest rate, whose difference is `gap`."""
        if not self._compared():
            return None
        seen = self._furthest()[0]
        rates = self._means()[seen]
        return self.groups[seen[int(rates.argmax())]], self.groups[seen[int(rates.argmin())]]

    def table(self) -> Table:
        """One row per group: its rows so far, its rate on the fit rows and since, and limits of the latter.

        The limits hold for all groups at all looks together, with the monitor's confidence.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> print(rule.monitor().update(data.score[12000:], data.sex[12000:]).table())
        """
        lower, upper = self._ends()
        return Table(
            cell_columns(self.groups, stratified=self._rule.stratified)
            | {
                "n": self.rows,
                "rate_then": self._fit_rates,
                "rate_now": np.array(self.rates),
                "now_from": lower,
                "now_to": upper,
            }
        )

    def sentence(self) -> str:
        """The verdict with its numbers.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> print(rule.monitor().sentence())
        Nothing to compare yet: the estimated limit of the gap is 3.1 points.
        """
        limit = _points(self.limit)
        if not self._compared():
            return f"Nothing to compare yet: the estimated limit of the gap is {limit}."
        low, high = (f"{100 * end:.1f}" for end in self.gap_interval)
        rows = f"{_points(self.gap)} [{low}, {high}] on {int(self._rows.sum()):,} rows"
        if self._alarm is not None:
            when = f"{self._alarm:,} of {self._looks:,}"
            return f"Above the estimated limit of {limit} since look {when}: the gap is now {rows}."
        if self.verdict is Verdict.WITHIN:
            return f"The gap is within the estimated limit of {limit}: {rows}."
        return f"No sign that the gap exceeds the estimated limit of {limit}: {rows}."

    def __repr__(self) -> str:
        return "\n".join(textwrap.fill(part, 80) for part in self._sentences())

    def _repr_html_(self) -> str:
        return notebook_html(*self._sentences(), self.table())

    def _sentences(self) -> list[str]:
        first, error = self.sentence(), percentage(round(1 - self._confidence, 12))
        if (pair := self.pair) is not None:
            named = dict(zip(map(label_key, self.groups), self.rates, strict=True))
            far = (f"{one_line(show_label(label))} {100 * named[label_key(label)]:.1f}%" for label in pair)
            first += f" Furthest apart: {', '.join(far)}."
        return [
            first,
            f"Evidence of a larger gap: {self.evidence:.3g} after {self._looks:,} "
            f"look{'' if self._looks == 1 else 's'}; the alarm is raised at {1 / (1 - self._confidence):.4g}. While "
            f"the gap is within the limit, the chance of ever raising it is at most {error}, however often you "
            f"look; the limit itself holds with {percentage(self._confidence)} confidence.",
        ]

    # Numbers -----------------------------------------------------------------------------------------

    def _means(self) -> Floats:
        """Rates so far, those of the fit where there are no rows."""
        return np.where(self._rows > 0, self._selected / np.maximum(self._rows, 1), self._fit_rates)

    def _compared(self) -> list[tuple[Integers, float]]:
        """Places of the groups of each stratum that have rows, where there are two or more, and its limit."""
        seen = (np.arange(part.start, part.stop)[self._rows[part] > 0] for part in self._parts)
        return [(places, limit) for places, limit in zip(seen, self._limits, strict=True) if len(places) > 1]

    def _furthest(self) -> tuple[Integers, float]:
        """The groups that are furthest above their limit."""
        nothing: Integers = np.arange(0)
        found = self._compared() or [(nothing, max(self._limits))]
        return max(found, key=lambda one: largest_gap(self._means()[one[0]]) - one[1] if len(one[0]) else 0.0)

    def _ends(self) -> tuple[Floats, Floats]:
        """Limits of the rates that hold at all looks together: E_k(m) = K/δ."""
        rows = self._rows.astype(np.float64)
        cost = self._numerators() - _log_likelihood(self._selected, rows, self._means())
        # log E_k(m) is its value at the rate itself, which is negative, plus n L(rate ‖ m).
        tail = np.exp(cost) * (1 - self._confidence) / len(rows)
        lower, upper = kl_interval(self._means(), np.maximum(rows, 1.0), tail)
        return np.where(rows > 0, lower, 0.0), np.where(rows > 0, upper, 1.0)

    def _interval(self, places: Integers) -> tuple[float, float]:
        """Limits of a gap."""
        lower, upper = self._ends()
        # One group's lower limit less another's upper is `widest` with the limits exchanged.
        return max(widest(upper[places], lower[places]), 0.0), widest(lower[places], upper[places])

    def _numerators(self) -> Floats:
        """Logarithm of B(S + a, n − S + b) / B(a, b), averaged over the priors."""
        from scipy.special import betaln  # takes a while to load

        center, n = np.clip(self._fit_rates, _CENTER, 1 - _CENTER), self._rows
        ratios = [
            betaln(self._selected + c * center, n - self._selected + c * (1 - center))
            - betaln(c * center, c * (1 - center))
            for c in _PRIOR_ROWS
        ]
        mixed: Floats = np.logaddexp.reduce(ratios) - np.log(len(_PRIOR_ROWS))
        return mixed

    def _log_evidence(self) -> float:
        n, s, tops = self._rows.astype(np.float64), self._selected, self._numerators()
        sums = [
            _log_pairs(n[part], s[part], tops[part], limit)
            for part, limit in zip(self._parts, self._limits, strict=True)
        ]
        pairs = sum((part.stop - part.start) * (part.stop - part.start - 1) for part in self._parts)
        return float(np.logaddexp.reduce(sums) - np.log(pairs)) if pairs else 0.0


def _estimated_limits(rule: Rule, confidence: float, n_strata: int) -> list[float]:
    """The estimated limit of each stratum's gap, or of the one gap there is."""
    return [min(certify(rule, confidence).gap, 1.0)] * n_strata


def _points(gap: float) -> str:
    return f"{100 * gap:.1f} points"


def _log_likelihood(selected: Floats, rows: Floats, rate: Floats) -> Floats:
    from scipy.special import xlogy

    found: Floats = xlogy(selected, rate) + xlogy(rows - selected, 1 - rate)
    return found


def _log_pairs(n: Floats, s: Floats, tops: Floats, limit: float) -> float:
    """log Σ E_kl over all ordered pairs of groups."""
    rates = s / np.maximum(n, 1.0)
    peaks = _log_likelihood(s, n, rates)
    costs, every, total = tops - peaks, np.arange(len(n)), -np.inf
    step = max(_PAIRS // len(n), 1)
    for start in range(0, len(n), step):
        k = every[start : start + step, np.newaxis]
        logs = costs[k] + costs
        above = (rates[k] - rates > limit) & (n[k] > 0) & (n > 0)
        i, j = np.nonzero(above)
        i += start
        logs[above] += peaks[i] + peaks[j] - _constrained(n[i], s[i], n[j], s[j], limit)
        logs[k == every] = -np.inf
        total = np.logaddexp(total, np.logaddexp.reduce(logs, axis=None))
    return float(total)


def _constrained(n_k: Floats, s_k: Floats, n_l: Floats, s_l: Floats, limit: float) -> Floats:
    """Largest log-likelihood of two groups whose rates are m + limit and m."""
    low, high = np.zeros_like(n_k), np.full_like(n_k, 1 - limit)
    for _ in range(52):  # the slope falls; what the last halving leaves changes nothing
        m = (low + high) / 2
        rises = s_l / m - (n_l - s_l) / (1 - m) + s_k / (m + limit) > (n_k - s_k) / (1 - m - limit)
        low, high = np.where(rises, m, low), np.where(rises, high, m)
    m = (low + high) / 2
    return _log_likelihood(s_l, n_l, m) + _log_likelihood(s_k, n_k, np.minimum(m + limit, 1.0))


def rows_fingerprint(rule: Rule, scores: Any, groups: Any, strata: Any = None) -> str:
    """A name for rows by what they are, whatever their order: the same file has the same one."""
    sample = rule.sample(scores, groups, strata=strata)
    codes = sample.cells.block(0, len(sample))
    order = np.lexsort((sample.scores, codes))
    digest = hashlib.sha256(repr(list(map(show_label, sample.cells.labels))).encode())
    digest.update(np.bincount(codes, minlength=len(sample.cells.labels)).astype("<i8").tobytes())
    digest.update(np.ascontiguousarray(sample.scores[order], dtype="<f8").tobytes())
    return digest.hexdigest()[:16]
