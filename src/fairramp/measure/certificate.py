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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fairramp.core.cells import strata_slices, widest, worst_stratum
from fairramp.core.checks import check_number
from fairramp.core.curve import Floats, Integers
from fairramp.core.labels import Label
from fairramp.core.stats import kl_interval
from fairramp.core.table import Table, notebook_html, percentage, with_rows
from fairramp.errors import FairrampError, InputError, shown
from fairramp.measure.bounds import theorem_1_bound
from fairramp.rule.record import FitRecord
from fairramp.rule.rule import Rule

__all__ = ["WIDE", "Certificate", "certifiable", "certify", "promised_gaps", "rows_needed"]

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
#: Where each bound comes from, in words.
_SOURCES = {
    "beta": "law of the threshold's rank",
    "kl": "Chernoff's bound per group",
    "dkw": "Dvoretzky-Kiefer-Wolfowitz",
    "theorem_1": "the paper, smallest group",
    "theorem_1_as_printed": "the paper as printed, all rows",
}
#: Cells of the midpoint rule; the quantile is right to 0.1 % of itself.
_CUTS = 1024
#: Beyond so many groups their limits are combined by a union bound.
_MAX_EXACT_GROUPS = 512


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
                "from": [_SOURCES[c.kind] for c in every],
            }
        )

    def __repr__(self) -> str:
        return "\n".join(
            textwrap.fill(part, 80)
            for part in (self._promise(), self._standing(), self._width(), self.assumptions)
            if part
        )

    def _repr_html_(self) -> str:
        parts = [self._promise(), self._standing(), self._width(), self.assumptions]
        return notebook_html(*filter(None, parts), self.table())

    def _promise(self) -> str:
        """What is promised, in words."""
        sure = f"With {percentage(self.confidence)} confidence"
        if self.gap >= 1:
            return f"{sure} nothing can be said about the population: the fit rows are too few."
        where = "in any stratum " if self.within_strata else ""
        return (
            f"{sure} no two groups' selection rates {where}differ by more than {self.gap:.4f}, or "
            f"{100 * self.gap:.2f} percentage points, in the population that the fit rows were drawn from."
        )

    def _standing(self) -> str:
        """Whether that is proven, and what is."""
        proven = self.proven
        if self.is_theorem:
            return f"This is a theorem (method {self.kind})."
        text = f"This is an approximation (method {self.kind})"
        if proven is None:
            return f"{text}; nothing is proven for weighted rows."
        if proven.gap >= 1:
            return f"{text}; for a proof the fit rows are too few."
        return f"{text}; proven, with the same confidence, is {proven.gap:.4f} (method {proven.kind})."

    def _width(self) -> str:
        """What makes it wide, and what is promised without that; empty if it is not wide."""
        if self.widest_for is None:
            return ""
        text = f"Widest for group {with_rows([self.widest_for])}."
        if self.rest is not None:
            proven = self.rest.proven
            which = "that group" if len(self.left_out) == 1 else with_rows(self.left_out)
            text += f" Without {which}, at most {self.rest.gap:.4f} between the others"
            text += f"; proven is {proven.gap:.4f}." if proven and not self.rest.is_theorem else "."
        return text


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
            "on other rows; freeze a trained model and fit the rule on fresh rows to get one."
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
    if not len(small) or _dkw(others, confidence).gap > _dkw(sample, confidence).gap / 2:  # quick to tell
        return found
    rest = _bounded(others, record.solver, confidence)
    if rest.gap > found.gap / 2:
        return found
    return replace(found, left_out=tuple(named[k] for k in small.tolist()), rest=rest)


def _small_groups(s: "_Sample") -> Integers:
    """The smallest groups without which limits are half as wide, as far as rows tell; none within strata."""
    none: Integers = np.zeros(0, dtype=np.intp)
    if s.strata is not None or len(s.rows) < 3:
        return none
    order = np.argsort(s.rows)
    rows = s.rows[order]
    half = 1 / np.sqrt(rows)
    width = half[:-1] + half[1:]  # of the groups from each place on
    few = np.cumsum(rows)[:-2] <= _FEW * rows.sum()
    apart = rows[:-2] < rows[1:-1]  # of groups of one size, all or none are left out
    enough = np.flatnonzero(few & apart & (width[1:] <= width[0] / 2))
    return np.sort(order[: enough[0] + 1]) if len(enough) else none


def _bounded(sample: "_Sample", solver: str, confidence: float) -> Certificate:
    if solver == "sgd":
        found = [_dkw(sample, confidence)]  # the others need thresholds that meet the target exactly
    elif sample.strata is not None:
        found = [_beta(sample, confidence), _kl(sample, confidence), _dkw(sample, confidence)]
    else:
        found = [
            _beta(sample, confidence),
            _kl(sample, confidence),
            _dkw(sample, confidence),
            *_theorem_1(sample, confidence),
        ]
    others = tuple(sorted(found[1:], key=lambda c: c.gap))
    main = found[0]
    return replace(main, others=others, within_strata=sample.strata is not None)


def promised_gaps(rule: Rule, certificate: Certificate) -> list[float]:
    """What is promised of each stratum's gap, all at once, or of the one gap there is: proven where possible."""
    assert rule.record is not None
    sample = _Sample.of(rule, rule.record)
    if sample.strata is None:
        return [(certificate.proven or certificate).gap]
    if not sample.plain:
        return [certificate.gap] * (sample.strata[-1] + 1)
    lower, upper = _dkw_limits(sample, certificate.confidence)
    parts = strata_slices(sample.strata, len(lower))
    return [min(widest(lower[part], upper[part]), 1.0) for part in parts]


@dataclass(frozen=True)
class _Sample:
    """What the bounds need to know of a fit."""

    rows: Floats
    rates: Floats
    from_threshold: Floats  # m: fit rows at or above the threshold
    on_a_score: np.ndarray  # whether the threshold is itself a fit score
    max_gap: float
    plain: bool  # unit weights
    inexact: tuple[str, ...]  # why the Beta law is not exact
    strata: tuple[int, ...] | None = None  # index of each group's stratum; gaps are those within strata
    errors: Floats | None = None  # how far each rate can be from that of the rows; None for not at all

    @classmethod
    def of(cls, rule: Rule, record: FitRecord) -> "_Sample":
        rates = np.array(record.rate_after)
        rows = np.array(record.effective_rows if record.weighted else record.rows, dtype=np.float64)
        hard = rule.ramp_width == 0 and not record.weighted
        inside = np.array(record.rows_inside)
        # Without ties at the threshold, the rows from there on; otherwise what the draws select of them.
        counted, drawn = np.array(record.rows_above) + inside, np.ceil(rates * rows - 1e-9)
        single = (inside <= 1) & hard
        m = np.where(single, counted, drawn)
        errors = np.array(record.rate_error) if any(record.rate_error) else None
        reasons = {
            "the ramp": rule.ramp_width > 0,
            "the allowed gap": rule.max_gap > 0,
            _LEARNED: isinstance(record.target, str),
            _WEIGHTS: record.weighted,
            _BINS: errors is not None,
            "a threshold that is not the score of exactly one row": hard and bool(np.any(inside != 1)),
        }
        return cls(
            rows=rows,
            rates=rates,
            from_threshold=np.clip(m, 0.0, rows),
            on_a_score=np.where(single, inside > 0, m > 0),
            max_gap=rule.max_gap,
            plain=not record.weighted,
            inexact=tuple(reason for reason, holds in reasons.items() if holds),
            strata=record.strata,
            errors=errors,
        )

    def without(self, groups: Integers) -> "_Sample":
        """The same of the other groups."""
        return replace(
            self,
            rows=np.delete(self.rows, groups),
            rates=np.delete(self.rates, groups),
            from_threshold=np.delete(self.from_threshold, groups),
            on_a_score=np.delete(self.on_a_score, groups),
            errors=None if self.errors is None else np.delete(self.errors, groups),
        )

    def limits(self) -> tuple[Floats, Floats]:
        """Between which the sample rates lie."""
        if self.errors is None:
            return self.rates, self.rates
        return np.maximum(self.rates - self.errors, 0.0), np.minimum(self.rates + self.errors, 1.0)


def _certificate(gap: float, kind: str, is_theorem: bool, confidence: float, text: str) -> Certificate:
    return Certificate(min(gap, 1.0), kind, is_theorem, confidence, f"{_ALWAYS} {text}".rstrip())


def _listed(reasons: Sequence[str]) -> str:
    *first, last = reasons
    return f"{', '.join(first)} and {last}" if first else last


def _beta(s: _Sample, confidence: float) -> Certificate:
    upper = np.where(s.on_a_score, s.from_threshold, s.from_threshold + 1)
    lower = s.from_threshold
    if s.errors is not None:
        more = np.ceil(s.rows * s.errors)
        lower, upper = np.maximum(lower - more, 0.0), np.minimum(upper + more, s.rows + 1)
    gap = _beta_gap(s, lower, upper, confidence)
    text = (
        f"It is not exact because of {_listed(s.inexact)}." if s.inexact else "No two people may share a score."
    )
    return _certificate(gap, "beta", not s.inexact, confidence, text)


def _beta_gap(s: _Sample, lower: Floats, upper: Floats, confidence: float) -> float:
    """The quantile of the gap, the largest of the strata's if there are any.

    Strata are independent: with confidence^(1/S) for each of S, all hold together. Limits of single groups bound
    a stratum's gap quickly; the worst is what counts, so the quantile itself is computed from the widest on, and
    only while it could still be the worst.
    """
    parts = strata_slices(s.strata, len(s.rows))
    each = confidence ** (1 / len(parts))
    smallest, largest = (lower, s.rows + 1 - lower), (upper, s.rows + 1 - upper)
    if len(parts) == 1:
        return _range_quantile(smallest, largest, each)

    def of(law: tuple[Floats, Floats], part: slice) -> tuple[Floats, Floats]:
        return law[0][part], law[1][part]

    gaps = []
    for part in parts:
        tail = (1 - each) / (2 * (part.stop - part.start))
        least = _beta_quantile(*of(smallest, part), tail)
        gaps.append(widest(least, _beta_quantile(*of(largest, part), 1 - tail)))
    worst = 0.0
    for i in np.argsort(gaps)[::-1].tolist():
        if gaps[i] <= worst:
            break
        worst = _range_quantile(of(smallest, parts[i]), of(largest, parts[i]), each, worst)
    return worst


def _kl(s: _Sample, confidence: float) -> Certificate:
    sides = 2 if s.max_gap == 0 else 6
    tail = (1 - confidence) / (sides * len(s.rates))
    least, most = s.limits()
    lower, upper = kl_interval(least, s.rows, tail)
    if s.errors is not None:
        upper = kl_interval(most, s.rows, tail)[1]
    reasons = [reason for reason in (_LEARNED, _WEIGHTS, _BINS) if reason in s.inexact]
    text = f"It is not proven because of {_listed(reasons)}." if reasons else ""
    return _certificate(worst_stratum(widest, s.strata, lower, upper), "kl", not reasons, confidence, text)


def _dkw(s: _Sample, confidence: float) -> Certificate:
    text = "It holds for every threshold at once." if s.plain else f"It is not proven because of {_WEIGHTS}."
    gap = worst_stratum(widest, s.strata, *_dkw_limits(s, confidence))
    return _certificate(gap, "dkw", s.plain, confidence, text)


def _dkw_limits(s: _Sample, confidence: float) -> tuple[Floats, Floats]:
    half = np.sqrt(np.log(2 * len(s.rates) / (1 - confidence)) / (2 * s.rows))
    least, most = s.limits()
    return least - half, most + half


def _theorem_1(s: _Sample, confidence: float) -> list[Certificate]:
    text = "It is the paper's Theorem 1"
    n_groups, delta = len(s.rates), 1 - confidence
    smallest = theorem_1_bound(float(s.rows.min()), n_groups, s.max_gap, delta)
    everyone = theorem_1_bound(float(s.rows.sum()), n_groups, s.max_gap, delta)
    if s.errors is not None and n_groups > 1:
        both = float(np.sort(s.errors)[-2:].sum())
        smallest, everyone = smallest + both, everyone + both
    return [
        _certificate(smallest, "theorem_1", s.plain, confidence, f"{text}, with the size of the smallest group."),
        _certificate(
            everyone,
            "theorem_1_as_printed",
            False,
            confidence,
            f"{text} as printed, with all rows; its proof needs each group's own.",
        ),
    ]


def _range_quantile(
    smallest: tuple[Floats, Floats], largest: tuple[Floats, Floats], confidence: float, least: float = 0.0
) -> float:
    """A g of at least `least` with P(max − min ≤ g) ≥ confidence, for one Beta draw per group.

    P = Σ_k ∫ Π_{l ≠ k} (F_l(x + g) − F_l(x)) dF_k(x), k the group with the smallest draw, by the midpoint
    rule. Where two laws are given (one for the smallest, one for the largest), both are driven by the same
    quantile. A group that selects nobody has its smallest draw at 0, and one that selects everybody its largest
    at 1: then only the other end is random.
    """
    n_groups = len(smallest[0])
    if n_groups == 1:
        return least
    for law, other, end in ((smallest[0], largest, 0.0), (largest[1], smallest, 1.0)):
        fixed = np.flatnonzero(law <= 0)
        if len(fixed):
            free = [(a, b) for k, (a, b) in enumerate(zip(*other, strict=True)) if fixed.tolist() != [k]]
            return _smallest(partial(_is_reached, free, end, confidence), least)
    if n_groups > _MAX_EXACT_GROUPS:
        tail = (1 - confidence) / (2 * n_groups)
        return max(least, widest(_beta_quantile(*smallest, tail), _beta_quantile(*largest, 1 - tail)))
    tail = (1 - confidence) * 1e-5 / n_groups
    low = float(_beta_quantile(*smallest, tail).min())
    high = float(_beta_quantile(*smallest, 1 - tail).max())
    x: Floats = np.linspace(low, high, _CUTS + 1)
    below = _beta_cdfs(smallest, x)
    mass = np.diff(below, axis=1)
    mass[:, 0] += below[:, 0]
    middle = (x[1:] + x[:-1]) / 2
    at_middle = _beta_cdfs(smallest, middle)

    def probability(g: float) -> float:
        inside = np.maximum(_beta_cdfs(largest, middle + g) - at_middle, 0.0)
        # The product over all l ≠ k, from the product over all l that are not 0.
        zeros = (inside == 0).sum(axis=0)
        logs = np.log(np.where(inside > 0, inside, 1.0))
        others = np.exp(logs.sum(axis=0) - logs) * (zeros - (inside == 0) == 0)
        return float((mass * others).sum())

    return _smallest(lambda g: probability(g) >= confidence, least)


def _is_reached(laws: list[tuple[float, float]], end: float, confidence: float, g: float) -> bool:
    """Whether no draw is further than g from an end of [0, 1], with that confidence."""
    place = np.array([g if end == 0 else 1 - g])
    below = np.array([_beta_cdf(a, b, place)[0] for a, b in laws])
    return float(np.prod(below if end == 0 else 1 - below)) >= confidence


def _smallest(holds: Callable[[float], bool], least: float) -> float:
    """Smallest number from `least` to 1 from which a condition holds, to 2^−20 above."""
    if least > 0 and holds(least):
        return least
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _beta_cdfs(laws: tuple[Floats, Floats], x: Floats) -> Floats:
    """P(Beta(a, b) ≤ x), a row for each law; equal laws are computed once."""
    distinct, place = np.unique(np.stack(laws), axis=1, return_inverse=True)
    return np.stack([_beta_cdf(a, b, x) for a, b in distinct.T])[place.ravel()]


def _beta_cdf(a: float, b: float, x: Floats) -> Floats:
    """P(Beta(a, b) ≤ x); all mass at 0 for a = 0 and at 1 for b = 0."""
    from scipy.special import betainc

    if a <= 0:
        return (x >= 0).astype(np.float64)
    if b <= 0:
        return (x >= 1).astype(np.float64)
    cdf: Floats = betainc(a, b, np.clip(x, 0.0, 1.0))
    return cdf


def _beta_quantile(a: Floats, b: Floats, level: float) -> Floats:
    from scipy.special import betaincinv

    inner = betaincinv(np.maximum(a, 1e-9), np.maximum(b, 1e-9), level)
    quantile: Floats = np.where(a <= 0, 0.0, np.where(b <= 0, 1.0, inner))
    return quantile


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
    if not isinstance(n_groups, int | np.integer) or isinstance(n_groups, bool) or n_groups < 1:
        raise InputError(f"`n_groups` must be a whole number from 1 on, got {shown(n_groups)}.")
    bounds: dict[str, Callable[[_Sample, float], Certificate]] = {
        "beta": _beta,
        "kl": _kl,
        "dkw": _dkw,
        "theorem_1": lambda s, c: _theorem_1(s, c)[0],
    }
    if kind not in bounds:
        raise InputError(f"`kind` must be one of {', '.join(map(repr, bounds))}, got {shown(kind)}.")

    def certified(n: int) -> bool:
        rows = np.full(n_groups, float(n))
        m = np.clip(np.ceil(rate * rows), 0.0, rows)
        sample = _Sample(rows, np.full(n_groups, rate), m, m > 0, 0.0, True, ())
        return bounds[kind](sample, confidence).gap <= max_gap

    low, high = 0, 16
    while not certified(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if certified(middle) else (middle, high)
    return high
