"""What the fit rows guarantee about everybody else.

A rule makes the gap small on its fit rows; a certificate bounds the gap in the population they were drawn from,
with confidence 1 − δ. Group k has n_k fit rows, K groups, sample rate r_k, and G*_k is its true rate at the
fitted threshold. G is monotone, so a deviation at the *fitted* threshold is a deviation at a *fixed* one:

    beta       G*_k ~ Beta(m_k, n_k + 1 − m_k), m_k fit rows at or above the threshold; groups independent:
               the 1 − δ quantile of max − min
    kl         n_k · L(r_k ‖ u_k) = ln(2K/δ) on either side (ln(6K/δ) if max_gap > 0); max u_k − min l_l
    dkw        x_k = √(ln(2K/δ) / (2 n_k));  max (r_k + x_k) − (r_l − x_l)
    theorem_1  ε + 8 √(2 ln(eN/2)/N) + 2 √(ln(2K/δ)/N), the paper's, N = smallest n_k
    theorem_1_as_printed   the same with N = all rows, for which its proof does not hold

A rule fitted to bins knows its sample rates only up to e_k: each bound then takes r_k − e_k for its lower and
r_k + e_k for its upper limit. dkw and theorem_1 hold for all thresholds at once, hence also then; beta and kl fix
the sample rate beforehand, and with an e_k that depends on the rows are good approximations.

A few small groups make the whole promise wide. Each bound is one on limits per group, so it also holds for any
part of the groups that is chosen by rows alone, with K the groups of the part: the j smallest groups, of a tenth
of the rows at most, are left out where that halves the width 1/√n_(j+1) + 1/√n_(j+2) of the two smallest left.

Each says whether it is a theorem in the case at hand. Independent fit rows that the model was not trained on are
always assumed. Reference: Alabdulmohsin and Lucic 2021, Theorems 1 and 2; Massart 1990 for dkw.
"""

import textwrap
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fairramp.core.cells import strata_slices, widest, worst_stratum
from fairramp.core.checks import check_number, check_option, checked_whole
from fairramp.core.curve import Floats, Integers
from fairramp.core.intervals import kl_interval
from fairramp.core.labels import Label
from fairramp.core.table import Table, notebook_html, percentage, with_rows
from fairramp.errors import FairrampError
from fairramp.measure.bounds import theorem_1_bound
from fairramp.rule.record import FitRecord
from fairramp.rule.rule import Rule

#: A certificate so much wider than what was asked for is explained.
WIDE = 0.05
#: Groups that are left out to see what is promised between the others have this share of the rows at most.
_FEW = 0.1

#: What every bound rests on.
_ALWAYS = (
    "It assumes that each group's fit rows were drawn independently from the people that the rule will decide "
    "on, and that the classifier was not trained on them. Groups may become larger or smaller, but how they "
    "score must not change."
)
#: Why something is not a theorem.
_LEARNED, _WEIGHTS, _BINS = "a target rate learned from the rows", "the rows' weights", "scores in bins"


@dataclass(frozen=True)
class Spelling:
    """How the sentences of certificates and checks spell numbers and names: as plain text, unless told otherwise.

    Attributes
    ----------
    level, gap : callable
        A confidence, and a gap.
    most : callable
        The gap that is promised, in the middle of its sentence.
    method : callable
        Which bound it is, behind what it gives.
    groups : callable
        Groups with their rows.
    group : str
        What stands before a single group.
    """

    level: Callable[[float], str] = percentage
    gap: Callable[[float], str] = "{:.4f}".format
    most: Callable[[float], str] = lambda gap: f"{gap:.4f}, or {100 * gap:.2f} percentage points,"
    method: Callable[[str], str] = " (method {})".format
    groups: Callable[[Sequence[tuple[Label, int]]], str] = with_rows
    group: str = "group "


PLAIN = Spelling()


def without(left_out: Sequence[tuple[Label, int]], spelled: Spelling = PLAIN) -> str:
    """The beginning of a sentence about the other groups."""
    return f"Without {'that group' if len(left_out) == 1 else spelled.groups(left_out)}"


@dataclass(frozen=True, repr=False)
class Certificate:
    """A bound on the population's gap.

    Attributes
    ----------
    gap : float
        With probability `confidence` or more, no two groups' selection rates differ by more; of one stratum,
        for rules that equalise within strata.
    kind : str
        Which bound it is: "beta", "kl", "dkw", "theorem_1" or "theorem_1_as_printed".
    is_theorem : bool
        Whether it is proven in this case, not only a good approximation.
    confidence : float
        1 − δ.
    assumptions : str
        What it rests on, in sentences.
    others : tuple of Certificate
        The other bounds for the same rule, smallest first.
    within_strata : bool
        Whether the gap is one within strata.
    widest_for : tuple of label and int, or None
        Where the gap is much larger than `max_gap`, the group with the fewest fit rows, and how many.
    left_out, rest : tuple of tuples of label and int, and Certificate or None
        The smallest groups with their fit rows, chosen by rows alone, and what is certified between the others,
        where that is at most half of `gap`.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> certificate = fairramp.fit_rule(data.score, data.sex, target_rate=0.2).certificate()
    >>> certificate.kind, certificate.is_theorem, certificate.proven.kind
    ('beta', False, 'kl')
    """

    gap: float
    kind: str
    is_theorem: bool
    confidence: float
    assumptions: str
    others: "tuple[Certificate, ...]" = ()
    within_strata: bool = False
    widest_for: tuple[Label, int] | None = None
    left_out: tuple[tuple[Label, int], ...] = ()
    rest: "Certificate | None" = None

    @property
    def proven(self) -> "Certificate | None":
        """The smallest bound that is a theorem in this case; None with weights, where none is."""
        theorems = [c for c in (self, *self.others) if c.is_theorem]
        return min(theorems, key=lambda c: c.gap, default=None)

    def table(self) -> Table:
        """One row per bound.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score, data.sex, target_rate=0.2)
        >>> print(rule.certificate().table())
        kind                     gap  proven  from
        --------------------  ------  ------  ------------------------------
        beta                  0.0107  no      law of the threshold's rank
        kl                    0.0225  yes     Chernoff's bound per group
        dkw                   0.0280  yes     Dvoretzky-Kiefer-Wolfowitz
        theorem_1_as_printed  0.2604  no      the paper as printed, all rows
        theorem_1             0.4302  yes     the paper, smallest group
        """
        every = (self, *self.others)
        return Table(
            {
                "kind": [c.kind for c in every],
                "gap": [c.gap for c in every],
                "proven": ["yes" if c.is_theorem else "no" for c in every],
                "from": [_BOUNDS[c.kind][1] for c in every],
            }
        )

    def sentences(self, spelled: Spelling = PLAIN) -> list[str]:
        """What is promised, whether that is proven, and what makes it wide where it is.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score, data.sex, target_rate=0.2)
        >>> print(rule.certificate().sentences()[1])
        This is an approximation (method beta); proven, with the same confidence, is 0.0225 (method kl).
        """
        sure = f"With {spelled.level(self.confidence)} confidence"
        where = "in any stratum " if self.within_strata else ""
        found = [
            f"{sure} no two groups' selection rates {where}differ by more than {spelled.most(self.gap)} in the "
            "population that the fit rows were drawn from."
            if self.gap < 1
            else f"{sure} nothing can be said about the population: the fit rows are too few."
        ]
        beside = "nothing is proven for weighted rows"
        if (proven := self.proven) is not None:
            beside = (
                f"proven, with the same confidence, is {spelled.gap(proven.gap)}{spelled.method(proven.kind)}"
                if proven.gap < 1
                else "for a proof the fit rows are too few"
            )
        found.append(
            f"This is a theorem{spelled.method(self.kind)}."
            if self.is_theorem
            else f"This is an approximation{spelled.method(self.kind)}; {beside}."
        )
        if self.widest_for is not None:
            found.append(f"Widest for {spelled.group}{spelled.groups([self.widest_for])}.")
        if (rest := self.rest) is not None:
            more = f"; proven is {spelled.gap(rest.proven.gap)}" if rest.proven and not rest.is_theorem else ""
            found[-1] += (
                f" {without(self.left_out, spelled)}, at most {spelled.gap(rest.gap)} between the others{more}."
            )
        return found

    def __repr__(self) -> str:
        return "\n".join(textwrap.fill(part, 80) for part in (*self.sentences(), self.assumptions))

    def _repr_html_(self) -> str:
        return notebook_html(*self.sentences(), self.assumptions, self.table())


def certifiable(rule: Rule) -> FitRecord:
    """The record that a certificate rests on."""
    record = rule.record
    if record is None:
        raise FairrampError(
            "A rule written by hand, learned from a stream or exported without its record has no fit rows on "
            "record, so nothing certifies it."
        )
    if record.cross_fitted:
        raise FairrampError(
            "No certificate: the rule was fitted on cross-fitted scores, and the model that decides was refitted "
            "on other rows",
            remedy="freeze a trained model and fit the rule on fresh rows to get one",
        )
    return record


def certify(rule: Rule, confidence: float = 0.95) -> Certificate:
    """Bound the gap of a fitted rule in the population its fit rows came from."""
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    record = certifiable(rule)
    sample = _Sample.of(rule, record)
    found = _bounded(sample, record.solver, confidence)
    if len(rule.groups) == 1 or found.gap <= rule.max_gap + WIDE:
        return found
    named = list(zip(rule.groups, record.rows, strict=True))
    found = replace(found, widest_for=named[int(sample.rows.argmin())])
    small = _small_groups(sample)
    others = sample.without(small)
    if not len(small) or _dkw(others, confidence)[0] > _dkw(sample, confidence)[0] / 2:  # quick to tell
        return found
    rest = _bounded(others, record.solver, confidence)
    if rest.gap > found.gap / 2:
        return found
    return replace(found, left_out=tuple(named[k] for k in small.tolist()), rest=rest)


def _small_groups(s: "_Sample") -> Integers:
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


def _bounded(sample: "_Sample", solver: str, confidence: float) -> Certificate:
    every = list(_BOUNDS) if sample.strata is None else ["beta", "kl", "dkw"]
    kinds = ["dkw"] if solver == "sgd" else every  # the others need thresholds that meet the target exactly
    main, *others = (_certificate(kind, sample, confidence) for kind in kinds)
    ranked = tuple(sorted(others, key=lambda c: c.gap))
    return replace(main, others=ranked, within_strata=sample.strata is not None)


def promised_gaps(rule: Rule, certificate: Certificate) -> list[float]:
    """What is promised of each stratum's gap, all at once, or of the one gap there is: proven where possible."""
    sample = _Sample.of(rule, certifiable(rule))
    if sample.strata is None:
        return [(certificate.proven or certificate).gap]
    if not sample.plain:
        return [certificate.gap] * (sample.strata[-1] + 1)
    lower, upper = _dkw_limits(sample, certificate.confidence)
    return [min(widest(lower[p], upper[p]), 1.0) for p in strata_slices(sample.strata, len(lower))]


@dataclass(frozen=True)
class _Sample:
    """What the bounds need to know of a fit."""

    rows: Floats
    rates: Floats
    from_threshold: Floats  # m: fit rows at or above the threshold
    on_a_score: np.ndarray  # whether the threshold is itself a fit score
    errors: Floats  # how far each rate can be from that of the rows
    max_gap: float
    plain: bool = True  # unit weights
    inexact: tuple[str, ...] = ()  # why the Beta law is not exact
    strata: tuple[int, ...] | None = None  # index of each group's stratum; gaps are those within strata

    @classmethod
    def of(cls, rule: Rule, record: FitRecord) -> "_Sample":
        seen, weighted = record.rates["selection"], record.weighted
        rates, errors, inside, above = map(np.array, (seen.after, seen.error, seen.rows_inside, seen.rows_above))
        rows = np.array(seen.effective_rows if weighted else seen.rows, dtype=np.float64)
        hard = rule.is_hard and not weighted
        single = (inside <= 1) & hard
        # Without ties at the threshold, the rows from there on; otherwise what the draws select of them.
        m = np.where(single, above + inside, np.ceil(rates * rows - 1e-9))
        reasons = {
            "the ramp": not rule.is_hard,
            "the allowed gap": rule.max_gap > 0,
            _LEARNED: isinstance(record.target, str),
            _WEIGHTS: weighted,
            _BINS: errors.any(),
            "a threshold that is not the score of exactly one row": hard and bool(np.any(inside != 1)),
        }
        return cls(
            rows=rows,
            rates=rates,
            from_threshold=np.clip(m, 0.0, rows),
            on_a_score=np.where(single, inside > 0, m > 0),
            errors=errors,
            max_gap=rule.max_gap,
            plain=not weighted,
            inexact=tuple(reason for reason, holds in reasons.items() if holds),
            strata=record.strata,
        )

    def without(self, groups: Integers) -> "_Sample":
        """The same of the other groups."""
        kept: dict[str, Any] = {
            name: np.delete(values, groups)
            for name, values in vars(self).items()
            if isinstance(values, np.ndarray)
        }
        return replace(self, **kept)

    def limits(self) -> tuple[Floats, Floats]:
        """Between which the sample rates lie."""
        return np.maximum(self.rates - self.errors, 0.0), np.minimum(self.rates + self.errors, 1.0)


def _listed(reasons: Sequence[str]) -> str:
    *first, last = reasons
    return f"{', '.join(first)} and {last}" if first else last


#: A bound's value, whether it is a theorem, and more to say about it.
_Bound = tuple[float, bool, str]


def _beta(s: _Sample, confidence: float) -> _Bound:
    from fairramp.measure.beta import worst_range_quantile  # loads SciPy's functions, which takes a while

    more = np.ceil(s.rows * s.errors)
    lower = np.maximum(s.from_threshold - more, 0.0)
    upper = np.minimum(s.from_threshold + ~s.on_a_score + more, s.rows + 1)
    text = (
        f"It is not exact because of {_listed(s.inexact)}." if s.inexact else "No two people may share a score."
    )
    return worst_range_quantile(s.rows, lower, upper, s.strata, confidence), not s.inexact, text


def _kl(s: _Sample, confidence: float) -> _Bound:
    tail = (1 - confidence) / ((2 if s.max_gap == 0 else 6) * len(s.rates))
    least, most = s.limits()
    lower, upper = kl_interval(least, s.rows, tail)
    upper = kl_interval(most, s.rows, tail)[1] if s.errors.any() else upper
    reasons = [reason for reason in (_LEARNED, _WEIGHTS, _BINS) if reason in s.inexact]
    text = f"It is not proven because of {_listed(reasons)}." if reasons else ""
    return worst_stratum(widest, s.strata, lower, upper), not reasons, text


def _dkw(s: _Sample, confidence: float) -> _Bound:
    text = "It holds for every threshold at once." if s.plain else f"It is not proven because of {_WEIGHTS}."
    return worst_stratum(widest, s.strata, *_dkw_limits(s, confidence)), s.plain, text


def _dkw_limits(s: _Sample, confidence: float) -> tuple[Floats, Floats]:
    half = np.sqrt(np.log(2 * len(s.rates) / (1 - confidence)) / (2 * s.rows))
    least, most = s.limits()
    return least - half, most + half


def _theorem_1(s: _Sample, confidence: float, as_printed: bool = False) -> _Bound:
    n_groups, rows = len(s.rates), s.rows.sum() if as_printed else s.rows.min()
    both = np.sort(s.errors)[-2:].sum() if n_groups > 1 else 0.0  # two rates may be off
    gap = theorem_1_bound(float(rows), n_groups, s.max_gap, 1 - confidence) + float(both)
    text = (
        " as printed, with all rows; its proof needs each group's own."
        if as_printed
        else ", with the size of the smallest group."
    )
    return gap, s.plain and not as_printed, f"It is the paper's Theorem 1{text}"


#: Each bound, and where it comes from.
_BOUNDS: dict[str, tuple[Callable[[_Sample, float], _Bound], str]] = {
    "beta": (_beta, "law of the threshold's rank"),
    "kl": (_kl, "Chernoff's bound per group"),
    "dkw": (_dkw, "Dvoretzky-Kiefer-Wolfowitz"),
    "theorem_1": (_theorem_1, "the paper, smallest group"),
    "theorem_1_as_printed": (partial(_theorem_1, as_printed=True), "the paper as printed, all rows"),
}


def _certificate(kind: str, s: _Sample, confidence: float) -> Certificate:
    gap, is_theorem, text = _BOUNDS[kind][0](s, confidence)
    return Certificate(min(gap, 1.0), kind, is_theorem, confidence, f"{_ALWAYS} {text}".rstrip())


def rows_needed(
    max_gap: float, n_groups: int, confidence: float = 0.95, *, rate: float = 0.5, kind: str = "beta"
) -> int:
    """Fit rows per group from which a rule with gap 0 is certified to a given gap.

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
    kind : {"beta", "kl", "dkw", "theorem_1"}, default "beta"
        Which certificate.

    Examples
    --------
    >>> import fairramp
    >>> fairramp.rows_needed(max_gap=0.05, n_groups=2)
    767
    """
    check_number("max_gap", max_gap, 1e-6, 1.0)
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    check_number("rate", rate, 0.0, 1.0)
    checked_whole("n_groups", n_groups)
    check_option("kind", kind, list(_BOUNDS)[:-1])  # the last is never a theorem

    def certified(n: int) -> bool:
        rows = np.full(n_groups, float(n))
        m = np.clip(np.ceil(rate * rows), 0.0, rows)
        sample = _Sample(rows, np.full(n_groups, rate), m, m > 0, np.zeros(n_groups), max_gap=0.0)
        return _certificate(kind, sample, confidence).gap <= max_gap

    high = 16
    while not certified(high):
        high *= 2
    return bisect_left(range(high), True, lo=high // 2 + 1 if high > 16 else 1, key=certified)
