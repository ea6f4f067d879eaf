"""Certificates: limits on a rule's gap in the population, in numbers and in words.

A rule makes the gap small on its fit rows; a certificate bounds the gap in the population they were drawn from.
`rule.limits` computes the estimated and the proven limit; this module adds the bounds of the paper for
comparison:

    theorem_1              ε + 8 √(2 ln(eN/2)/N) + 2 √(ln(2K/δ)/N), N = smallest n_k
    theorem_1_as_printed   the same with N = all rows, for which its proof does not hold

A few small groups make every limit wide. Each bound is built from limits per group, so it also holds for any
subset of K groups chosen by their sizes alone. The j smallest groups, with at most a tenth of the rows, are left
out if that halves the width 1/√n_(j+1) + 1/√n_(j+2) of the two smallest remaining groups.

If the rows are fresh, the rule is fixed before them, and each group's rate is a mean of independent values. This
is the only certificate of rules that mix thresholds (`measure.fresh`).

For true and false positive rates, all numbers of rows are those of rows with that label. For equalized odds, the
limits of both gaps hold jointly, and the larger one is the certificate's. All limits assume independent fit rows
that the model was not trained on. Reference: Alabdulmohsin and Lucic 2021, Theorem 1.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from fairramp.core.checks import check_number, check_option, checked_whole
from fairramp.core.curve import Integers
from fairramp.core.events import EVENT_OF, SELECTION, SYNONYMS, Event
from fairramp.core.labels import Label
from fairramp.core.public import public
from fairramp.core.table import Table, with_rows
from fairramp.core.words import percentage, plain, upward_points, wrapped
from fairramp.errors import InputError
from fairramp.measure.bounds import theorem_1_bound
from fairramp.rule.limits import Bound, FitSample, certifiable, dkw, limit_of_each, limits_of, listed
from fairramp.rule.rule import Rule
from fairramp.rule.verbs import Drawn

#: A limit that exceeds the requested gap by more than this is explained.
WIDE = 0.05
#: A sentence lists the limits of at most this many classes.
_LISTED = 6
#: The groups left out to bound the gap between the others have at most this share of the rows.
_FEW = 0.1

#: The assumptions of every limit.
_ALWAYS = (
    "The limits assume that each group's fit rows were drawn independently from the people the rule will be "
    "applied to, and that the classifier was not trained on them. {changes}"
)
#: For rules with a minimum ratio.
_RATIO = "The certificate limits the gap; measure the ratio on new rows with an audit."
#: Where each bound comes from.
_SOURCES = {
    "beta": "distribution of threshold rank",
    "kl": "Chernoff bound per group",
    "pairs": "joint bound on each pair",
    "dkw": "Dvoretzky-Kiefer-Wolfowitz",
    "newcombe": "interval of the gap",
    "theorem_1": "the paper, smallest group",
    "theorem_1_as_printed": "the paper as printed, all rows",
}


@dataclass(frozen=True)
class Spelling:
    """How sentences of certificates and checks spell group names; plain text by default.

    Attributes
    ----------
    groups : callable
        Formats groups with their numbers of rows; `what` is what the rows are called.
    group : str
        Text before the name of a group.
    event : callable
        Returns an event with its label as it is called.
    """

    groups: Callable[..., str] = with_rows
    group: str = "group "
    event: Callable[[Event], Event] = lambda event: event

    def fit_rows(self, groups: Sequence[tuple[Label, int]], event: Event, *, fresh: bool = False) -> str:
        """Groups with their numbers of fit rows, or of fresh rows."""
        return self.groups(groups, what=f"{'fresh' if fresh else 'fit'} {self.event(event).row}")


PLAIN = Spelling()


def counted(groups: Sequence[tuple[Label, int]]) -> list[dict[str, Any]]:
    """Groups with their numbers of rows, for JSON."""
    return [{"group": label, "rows": n} for label, n in groups]


@dataclass(frozen=True, repr=False)
class Certificate(Drawn):
    """Limits on a rule's gap in the population.

    Attributes
    ----------
    estimated : float
        The estimated limit. With approximately this `confidence`, no two groups' rates in the population differ
        by more than this (for rules that equalize within strata, no two groups of the same stratum). The page
        *How often the limits hold* has simulations. 1 if the rows set no limit. For equalized odds, the larger of
        the limits on the two gaps; for several classes, a limit on the gap of every class.
    proven : float or None
        The proven limit: the smallest bound that is a theorem for this rule. None with weights, because no bound
        is a theorem for weighted rows.
    confidence : float
        Confidence level of both limits, 1 − δ.
    bounds : tuple of Bound
        All bounds, smallest first; `Bound.is_theorem` marks the theorems.
    assumptions : str
        The assumptions of the limits, in sentences.
    within_strata : bool
        Whether groups are compared within strata.
    widest_for : tuple of label and int, or None
        The group with the fewest fit rows and its number of fit rows, if the estimated limit is much larger than
        `max_gap`. For error rates, only rows with one label count, those of `counted`.
    left_out : tuple of tuples of label and int
        The smallest groups and their numbers of fit rows, if leaving these groups out at least halves the
        estimated limit. The groups are chosen by size alone.
    rest : Certificate or None
        The certificate for the other groups, if any are left out.
    event : Event
        Which rates the limits are about: the ones that the rule makes equal.
    has_ratio : bool
        Whether the rule has a `min_ratio`. The limits are limits on the gap in any case.
    by_event : dict of str to float
        The estimated limit on the gap between the rates of each event. One entry, except for equalized odds: then
        "true_positive" and "false_positive", which hold jointly. For several classes, the limit of each class
        alone; all classes together are limited by `estimated`.
    counted : Event
        Whose fit rows `widest_for` and `left_out` count: those of `event` or, for equalized odds, those with the
        label of which the group in `widest_for` has the fewest.
    fit_gaps : dict of str to float
        The gap on the fit rows between the rates of each event.
    max_gap : float or None
        The limit that was requested: on the gap in the population if the rule was fitted with `confidence`,
        otherwise on the gap on the fit rows. None with `min_ratio`.
    fresh : bool
        Whether the limits come from fresh rows, not from the fit rows. Numbers of fit rows, and gaps on them, are
        then those of the fresh rows.
    by_attribute : bool
        Whether groups are compared within each attribute, for a rule by each of several attributes.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> certificate = fairramp.fit_rule(data.score, data.sex, target_rate=0.2).certificate()
    >>> round(certificate.estimated, 4), round(certificate.proven, 4)
    (0.0108, 0.0218)
    """

    estimated: float
    proven: float | None
    confidence: float
    bounds: tuple[Bound, ...]
    assumptions: str
    within_strata: bool = False
    widest_for: tuple[Label, int] | None = None
    left_out: tuple[tuple[Label, int], ...] = ()
    rest: "Certificate | None" = None
    event: Event = SELECTION
    has_ratio: bool = False
    by_event: dict[str, float] = field(default_factory=dict)
    counted: Event = SELECTION
    fit_gaps: dict[str, float] = field(default_factory=dict)
    max_gap: float | None = None
    fresh: bool = False
    by_attribute: bool = False

    @property
    def rate(self) -> str:
        """What the rates are called, such as "selection rate"; for equalized odds, "error rate"."""
        return self.event.rate

    def table(self) -> Table:
        """One row per bound.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score, data.sex, target_rate=0.2)
        >>> print(rule.certificate().table())
        bound                       limit  proven  from
        --------------------  -----------  ------  ------------------------------
        beta                   1.1 points  no      distribution of threshold rank
        pairs                  2.2 points  yes     joint bound on each pair
        kl                     2.3 points  yes     Chernoff bound per group
        dkw                    2.9 points  yes     Dvoretzky-Kiefer-Wolfowitz
        theorem_1_as_printed  26.1 points  no      the paper as printed, all rows
        theorem_1             43.1 points  yes     the paper, smallest group
        """
        return Table(
            {
                "bound": [b.name for b in self.bounds],
                "limit": [b.limit for b in self.bounds],
                "proven": ["yes" if b.is_theorem else "no" for b in self.bounds],
                "from": [_SOURCES[b.name] for b in self.bounds],
            },
            limits=["limit"],
        )

    def limits(self) -> str:
        """Both limits in a few words, without the confidence level.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> print(fairramp.fit_rule(data.score, data.sex, target_rate=0.2).certificate().limits())
        estimated limit 1.1 points, proven limit 2.2 points
        """
        if self.proven is None:
            return f"estimated limit {upward_points(self.estimated)}, no proven limit for weighted rows"
        proven = (
            f"proven limit {upward_points(self.proven)}" if self.proven < 1 else "too few rows for a proven limit"
        )
        if self.estimated == self.proven:
            return proven
        return f"estimated limit {upward_points(self.estimated)}, {proven}"

    def sentences(self, spelled: Spelling = PLAIN) -> list[str]:
        """Sentences on the limits, on why they are approximate, and on the groups that make them wide.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score, data.sex, target_rate=0.2)
        >>> print(rule.certificate().sentences()[0])
        Gap in the population: estimated limit 1.1 points, proven limit 2.2 points (95% confidence).
        """
        gap = self.event.gap
        which = f"Largest {gap} within a stratum" if self.within_strata else gap.capitalize()
        which = f"Largest {gap} within an attribute" if self.by_attribute else which
        sure, more = f"{percentage(self.confidence)} confidence", [_RATIO] if self.has_ratio else []
        if self.estimated >= 1:
            return [f"{which} in the population: these rows set no limit at {sure}.", *self._each(), *more]
        found = [f"{which} in the population: {self.limits()} ({sure}).", *self._each()]
        if self.estimated != self.proven:
            reasons = next(b.why_not for b in self.bounds if b.limit == self.estimated)
            found.append(f"The estimated limit is approximate because of {listed(reasons)}.")
        if self.widest_for is not None:
            widest = spelled.fit_rows([self.widest_for], self.counted, fresh=self.fresh)
            found.append(f"The uncertainty is largest for {spelled.group}{widest}.")
        if (rest := self.rest) is not None:
            several = len(self.left_out) > 1
            others = spelled.fit_rows(self.left_out, self.counted) if several else "that group"
            found[-1] += f" Without {others}: {rest.limits()}."
        return [*found, *more]

    def _each(self) -> list[str]:
        """The limit on each of several gaps, in a sentence."""
        if not self.event.parts or len(self.event.parts) > _LISTED:
            return []
        known = [
            (event, upward_points(limit) if (limit := self.by_event[event.name]) < 1 else "none")
            for event in self.event.parts
        ]
        if self.event.needs_labels:
            return [f"Limits that hold together: {' and '.join(f'{x} for {e.rates}' for e, x in known)}."]
        if self.estimated >= 1:
            return []
        return [f"Estimated limit of each class alone: {', '.join(f'{x} ({e.short})' for e, x in known)}."]

    def to_dict(self) -> dict[str, Any]:
        """All results as plain values, ready for JSON.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> found = fairramp.fit_rule(data.score, data.sex, target_rate=0.2).certificate().to_dict()
        >>> found["confidence"], found["bounds"][0]["name"], found["rest"]
        (0.95, 'beta', None)
        """
        return plain(
            {
                "rate": self.rate,
                "estimated": self.estimated,
                "proven": self.proven,
                "by_event": self.by_event,
                "confidence": self.confidence,
                "bounds": [asdict(bound) for bound in self.bounds],
                "assumptions": self.assumptions,
                "widest_for": self.widest_for and counted([self.widest_for])[0],
                "left_out": counted(self.left_out),
                "rest": self.rest and self.rest.to_dict(),
                "fresh": self.fresh,
            }
        )

    def __repr__(self) -> str:
        return "\n".join(map(wrapped, (*self.sentences(), self.assumptions)))

    def _parts(self) -> list[Table | str]:
        """What a notebook shows."""
        return [*self.sentences(), self.table(), self.assumptions]


def certify(rule: Rule, confidence: float = 0.95) -> Certificate:
    """Bound a fitted rule's gap in the population its fit rows were drawn from."""
    record, sample = certifiable(rule), FitSample.of(rule)
    found = replace(
        _bounded(sample, confidence, rule),
        fit_gaps=record.gaps_after,
        max_gap=record.asked.max_gap if record.asked else rule.max_gap,
    )
    if len(rule.groups) == 1 or found.estimated <= record.gap_after + WIDE:
        return found
    scarce, k = divmod(int(sample.rows.argmin()), len(rule.groups))
    event, rates = record.compared[scarce]
    named = list(zip(rule.groups, rates.rows, strict=True))
    found = replace(found, widest_for=named[k], counted=event)
    small = _small_groups(sample)
    others = sample.without(small)
    if not len(small) or dkw(others, confidence).limit > dkw(sample, confidence).limit / 2:  # a quick test
        return found
    rest = _bounded(others, confidence, rule)
    if rest.estimated > found.estimated / 2:
        return found
    return replace(found, left_out=tuple(named[k] for k in small.tolist()), rest=rest)


def _small_groups(s: FitSample) -> Integers:
    """Indices of the smallest groups, if leaving them out should halve the limits; empty within strata."""
    order = np.argsort(s.fewest)
    rows = s.fewest[order]
    half = 1 / np.sqrt(rows)
    width = half[:-1] + half[1:]  # width[j]: with the j smallest groups left out
    few = np.cumsum(rows)[:-2] <= _FEW * rows.sum()
    apart = rows[:-2] < rows[1:-1]  # groups of equal size are left out together or not at all
    enough = np.flatnonzero(few & apart & (width[1:] <= width[0] / 2))
    last = int(enough[0]) + 1 if len(enough) and s.strata is None else 0
    return np.sort(order[:last])


def _bounded(sample: FitSample, confidence: float, rule: Rule) -> Certificate:
    found, event = limits_of(sample, confidence), rule.event
    each = [found.estimated]
    if event.parts:
        each = np.reshape(limit_of_each(sample, confidence), (sample.n_events, -1)).max(axis=1).tolist()
    paper = [] if sample.strata is not None or not sample.met else _of_the_paper(sample, confidence)
    return Certificate(
        found.estimated,
        found.proven,
        confidence,
        tuple(sorted([*found.bounds, *paper], key=lambda bound: bound.limit)),
        _assumptions(event, exact=not sample.inexact),
        within_strata=sample.strata is not None,
        event=event,
        has_ratio=rule.min_ratio is not None,
        by_event={part.name: limit for part, limit in zip(event.simple, each, strict=True)},
        counted=event,
    )


def _assumptions(event: Event, *, exact: bool) -> str:
    """The assumptions of the limits; the exact distribution assumes that there are no ties."""
    who, sizes, among = "", "Group sizes", "within"
    if event.parts:
        sizes, among = "Group sizes and shares of labels", "among the rows with either label of"
    if event.label is not None:
        who, sizes = f" with label {event.label}", f"Group sizes and shares of {event.rows}"
        among = f"among the {event.rows} of"
    changes = f"{sizes} may change, but the distribution of scores {among} each group must not."
    ties = f" No two people{who} may share a score." if exact else ""
    return _ALWAYS.format(changes=changes) + ties


def _of_the_paper(s: FitSample, confidence: float) -> list[Bound]:
    """Theorem 1 with the size of the smallest group, as its proof requires, and as printed; not for ratios."""
    if s.max_gap is None:
        return []
    n_groups = len(s.rates)
    both = float(np.sort(s.errors)[-2:].sum()) if n_groups > 1 else 0.0  # the two largest errors can add up
    whole, least = (
        min(theorem_1_bound(float(rows), n_groups, s.max_gap, 1 - confidence) + both, 1.0)
        for rows in (s.rows.sum(), s.rows.min())
    )
    weights = () if s.plain else ("the rows' weights",)
    return [
        Bound("theorem_1", least, s.plain, weights),
        Bound("theorem_1_as_printed", whole, False, ("a proof that needs each group's own rows", *weights)),
    ]


@public
def rows_needed(
    max_gap: float,
    n_groups: int,
    confidence: float = 0.95,
    *,
    rate: float = 0.5,
    fit_gap: float = 0.0,
    limit: str = "estimated",
    criterion: str = "parity",
) -> int:
    """Compute the number of fit rows per group that a limit on the gap in the population requires.

    This many rows in every group are enough for ``fit_rule(…, max_gap=max_gap, confidence=confidence)`` at the
    given rate. Fewer may be enough at other rates, or if the groups differ in size.

    Parameters
    ----------
    max_gap : float
        The largest gap allowed in the population.
    n_groups : int
        Number of groups, assumed to be of equal size.
    confidence : float, default 0.95
        Confidence level of the limit.
    rate : float, default 0.5
        The common selection rate, or true or false positive rate; 0.5 needs the most rows.
    fit_gap : float, default 0
        The gap on the fit rows, smaller than `max_gap`. The larger it is, the fewer decisions the rule changes,
        but the more rows are needed.
    limit : {"estimated", "proven"}, default "estimated"
        Which limit must not exceed `max_gap`.
    criterion : {"parity", "equal_opportunity", "predictive_equality", "equalized_odds"}, default "parity"
        Which rates the gap is between. For true positive rates ("equal_opportunity"), the result is the number of
        rows with label 1, and for false positive rates ("predictive_equality") that of rows with label 0. For
        "equalized_odds", each group needs this many rows of each label, and the estimated limit is the proven
        one, which holds at any `rate`.

    Examples
    --------
    >>> import fairramp
    >>> fairramp.rows_needed(max_gap=0.05, n_groups=2)
    806
    >>> fairramp.rows_needed(max_gap=0.05, n_groups=2, limit="proven")
    2077
    """
    check_number("max_gap", max_gap, 1e-6, 1.0)
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    check_number("rate", rate, 0.0, 1.0)
    check_number("fit_gap", fit_gap, 0.0, 1.0)
    if fit_gap >= max_gap:
        raise InputError(
            "must be below {max_gap}, which is {most:g}", argument="fit_gap", got=fit_gap, most=max_gap
        )
    checked_whole("n_groups", n_groups, lowest=2)
    check_option("limit", limit, ("estimated", "proven"))
    n_events = len(EVENT_OF[check_option("criterion", criterion, EVENT_OF, SYNONYMS)].simple)

    def suffices(n: int) -> bool:
        found = getattr(limits_of(FitSample.alike(n, n_groups, rate, fit_gap, n_events), confidence), limit)
        return bool(found <= max_gap)

    high = 16
    while not suffices(high):
        high *= 2
    return bisect_left(range(high), True, lo=high // 2 + 1 if high > 16 else 1, key=suffices)
