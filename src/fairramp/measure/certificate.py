"""Certificates: what the fit rows guarantee about everybody else, in numbers and in words.

A rule makes the gap small on its fit rows; a certificate bounds the gap in the population they were drawn from.
`rule.limits` computes the estimated and the proven limit; here the paper's bounds stand beside them,

    theorem_1              ε + 8 √(2 ln(eN/2)/N) + 2 √(ln(2K/δ)/N), N = smallest n_k
    theorem_1_as_printed   the same with N = all rows, for which its proof does not hold

A few small groups make every limit wide. Each bound is one on limits per group, so it also holds for any part of
the groups that is chosen by rows alone, with K the groups of the part: the j smallest groups, of a tenth of the
rows at most, are left out where that halves the width 1/√n_(j+1) + 1/√n_(j+2) of the two smallest left.

Independent fit rows that the model was not trained on are always assumed. Reference: Alabdulmohsin and Lucic
2021, Theorem 1.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairramp.core.checks import check_number, check_option, checked_whole
from fairramp.core.curve import Integers
from fairramp.core.labels import Label
from fairramp.core.table import Table, notebook_html, with_rows, wrapped
from fairramp.core.words import percentage, upward_points
from fairramp.errors import InputError
from fairramp.measure.bounds import theorem_1_bound
from fairramp.rule.limits import Bound, FitSample, certifiable, dkw, limits_of, listed
from fairramp.rule.rule import Rule

#: A limit this much wider than what was asked for is explained.
WIDE = 0.05
#: Groups that are left out to see what holds between the others have this share of the rows at most.
_FEW = 0.1

#: What every limit rests on.
_ALWAYS = (
    "The limits assume that each group's fit rows were drawn independently from the people that the rule will "
    "decide on, and that the classifier was not trained on them. Groups may become larger or smaller, but how "
    "they score must not change."
)
#: Where each bound comes from.
_SOURCES = {
    "beta": "law of the threshold's rank",
    "kl": "Chernoff's bound per group",
    "pairs": "both deviations of a pair",
    "dkw": "Dvoretzky-Kiefer-Wolfowitz",
    "theorem_1": "the paper, smallest group",
    "theorem_1_as_printed": "the paper as printed, all rows",
}


@dataclass(frozen=True)
class Spelling:
    """How the sentences of certificates and checks spell names: as plain text by default.

    Attributes
    ----------
    groups : callable
        Groups with their rows.
    group : str
        Text before a single group.
    """

    groups: Callable[[Sequence[tuple[Label, int]]], str] = with_rows
    group: str = "group "


PLAIN = Spelling()


def without(left_out: Sequence[tuple[Label, int]], spelled: Spelling = PLAIN) -> str:
    """The beginning of a sentence about the other groups."""
    return f"Without {'that group' if len(left_out) == 1 else spelled.groups(left_out)}"


@dataclass(frozen=True, repr=False)
class Certificate:
    """Limits of the population's gap.

    Attributes
    ----------
    estimated : float
        The estimated limit: in the population no two groups' selection rates (of one stratum, for rules that
        equalize within strata) differ by more, with about this `confidence`; how nearly is simulated on the page
        *Coverage*. 1 where the rows set no limit.
    proven : float or None
        The proven limit: the smallest bound that is a theorem in the case at hand; None with weights, where none
        is.
    confidence : float
        1 − δ, of both.
    bounds : tuple of Bound
        Every bound, smallest first, and which of them are theorems.
    assumptions : str
        What the limits rest on, in sentences.
    within_strata : bool
        Whether the gap is one within strata.
    widest_for : tuple of label and int, or None
        Where the estimated limit is much larger than `max_gap`, the group with the fewest fit rows, and how many.
    left_out, rest : tuple of tuples of label and int, and Certificate or None
        The smallest groups with their fit rows, chosen by rows alone, and what holds between the others, where
        their estimated limit is at most half.

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
        beta                   1.1 points  no      law of the threshold's rank
        pairs                  2.2 points  yes     both deviations of a pair
        kl                     2.3 points  yes     Chernoff's bound per group
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
        """Both limits in a few words, without their confidence.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> print(fairramp.fit_rule(data.score, data.sex, target_rate=0.2).certificate().limits())
        estimated limit 1.1 points, proven limit 2.2 points
        """
        if self.proven is None:
            return f"estimated limit {upward_points(self.estimated)}, no proven limit with weights"
        proven = (
            f"proven limit {upward_points(self.proven)}" if self.proven < 1 else "too few rows for a proven limit"
        )
        if self.estimated == self.proven:
            return proven
        return f"estimated limit {upward_points(self.estimated)}, {proven}"

    def sentences(self, spelled: Spelling = PLAIN) -> list[str]:
        """The limits, what makes them approximate, and what makes them wide where they are.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score, data.sex, target_rate=0.2)
        >>> print(rule.certificate().sentences()[0])
        Gap in the population: estimated limit 1.1 points, proven limit 2.2 points (95% confidence).
        """
        which = "Largest gap within a stratum" if self.within_strata else "Gap"
        sure = f"{percentage(self.confidence)} confidence"
        if self.estimated >= 1:
            return [f"{which} in the population: these rows set no limit at {sure}."]
        found = [f"{which} in the population: {self.limits()} ({sure})."]
        if self.estimated != self.proven:
            reasons = next(b.why_not for b in self.bounds if b.limit == self.estimated)
            found.append(f"The estimated limit is approximate because of {listed(reasons)}.")
        if self.widest_for is not None:
            found.append(f"Widest for {spelled.group}{spelled.groups([self.widest_for])}.")
        if (rest := self.rest) is not None:
            found[-1] += f" {without(self.left_out, spelled)}: {rest.limits()} between the others."
        return found

    def __repr__(self) -> str:
        return "\n".join(map(wrapped, (*self.sentences(), self.assumptions)))

    def _repr_html_(self) -> str:
        return notebook_html(*self.sentences(), self.assumptions, self.table())


def certify(rule: Rule, confidence: float = 0.95) -> Certificate:
    """Bound the gap of a fitted rule in the population its fit rows came from."""
    record, sample = certifiable(rule), FitSample.of(rule)
    found = _bounded(sample, confidence)
    if len(rule.groups) == 1 or found.estimated <= rule.max_gap + WIDE:
        return found
    named = list(zip(rule.groups, record.rows, strict=True))
    found = replace(found, widest_for=named[int(sample.rows.argmin())])
    small = _small_groups(sample)
    others = sample.without(small)
    if not len(small) or dkw(others, confidence).limit > dkw(sample, confidence).limit / 2:  # quick to tell
        return found
    rest = _bounded(others, confidence)
    if rest.estimated > found.estimated / 2:
        return found
    return replace(found, left_out=tuple(named[k] for k in small.tolist()), rest=rest)


def _small_groups(s: FitSample) -> Integers:
    """The smallest groups without which limits are half as wide, as far as rows tell; none within strata."""
    order = np.argsort(s.rows)
    rows = s.rows[order]
    half = 1 / np.sqrt(rows)
    width = half[:-1] + half[1:]  # of the groups from each place on
    few = np.cumsum(rows)[:-2] <= _FEW * rows.sum()
    apart = rows[:-2] < rows[1:-1]  # of groups of one size, all or none are left out
    enough = np.flatnonzero(few & apart & (width[1:] <= width[0] / 2))
    last = int(enough[0]) + 1 if len(enough) and s.strata is None else 0
    return np.sort(order[:last])


def _bounded(sample: FitSample, confidence: float) -> Certificate:
    found = limits_of(sample, confidence)
    paper = [] if sample.strata is not None or not sample.met else _of_the_paper(sample, confidence)
    return Certificate(
        found.estimated,
        found.proven,
        confidence,
        tuple(sorted([*found.bounds, *paper], key=lambda bound: bound.limit)),
        _ALWAYS if sample.inexact else f"{_ALWAYS} No two people may share a score.",
        within_strata=sample.strata is not None,
    )


def _of_the_paper(s: FitSample, confidence: float) -> list[Bound]:
    """Theorem 1, with the smallest group's rows as its proof needs them, and as printed."""
    n_groups = len(s.rates)
    both = float(np.sort(s.errors)[-2:].sum()) if n_groups > 1 else 0.0  # two rates may be off
    whole, least = (
        min(theorem_1_bound(float(rows), n_groups, s.max_gap, 1 - confidence) + both, 1.0)
        for rows in (s.rows.sum(), s.rows.min())
    )
    weights = () if s.plain else ("the rows' weights",)
    return [
        Bound("theorem_1", least, s.plain, weights),
        Bound("theorem_1_as_printed", whole, False, ("a proof that needs each group's own rows", *weights)),
    ]


def rows_needed(
    max_gap: float,
    n_groups: int,
    confidence: float = 0.95,
    *,
    rate: float = 0.5,
    fit_gap: float = 0.0,
    limit: str = "estimated",
) -> int:
    """Fit rows per group with which a fit can keep a gap in the population.

    This many rows in every group are enough for ``fit_rule(…, max_gap=max_gap, confidence=confidence)`` at the
    given selection rate; fewer may do at other rates, or if the groups differ in size.

    Parameters
    ----------
    max_gap : float
        The gap that the population may have.
    n_groups : int
        How many groups, all of that size.
    confidence : float, default 0.95
        1 − δ.
    rate : float, default 0.5
        The common selection rate; 0.5 needs the most rows.
    fit_gap : float, default 0
        The gap on the fit rows, smaller than `max_gap`: the larger it is, the less a fit changes, and the more
        rows are needed.
    limit : {"estimated", "proven"}, default "estimated"
        Which limit must not exceed `max_gap`.

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

    def suffices(n: int) -> bool:
        found = getattr(limits_of(FitSample.alike(n, n_groups, rate, fit_gap), confidence), limit)
        return bool(found <= max_gap)

    high = 16
    while not suffices(high):
        high *= 2
    return bisect_left(range(high), True, lo=high // 2 + 1 if high > 16 else 1, key=suffices)
