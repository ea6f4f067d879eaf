"""What the fit rows say about the gap in the population they were drawn from: an estimated and a proven limit.

Group k has n_k fit rows, K groups, sample rate r_k, and G*_k is its true rate at the fitted threshold; confidence
1 − δ. G is monotone, so a deviation at the *fitted* threshold is a deviation at a *fixed* one:

    beta   G*_k ~ Beta(m_k, n_k + 1 − m_k), m_k fit rows at or above the threshold; groups independent: the 1 − δ
           quantile of max − min. Where the threshold is no fit score, as with a ramp, whose foot slides to the
           next score when no row is on it, the largest rate is drawn from Beta(m_k + 1, n_k − m_k)
    kl     n_k · L(r_k ‖ u_k) = ln(2K/δ) on either side (ln(6K/δ) if max_gap > 0); max u_k − min l_l
    pairs  max (r_k − r_l) + c √(1/n_k + 1/n_l): holds for every threshold and ramp at once (see `core.pairs`)
    dkw    x_k = √(ln(2K/δ) / (2 n_k));  max (r_k + x_k) − (r_l − x_l): so does this

The *estimated* limit is the smaller of beta and the proven one. The *proven* limit is that of the theorem which
is smallest at rates known beforehand: a choice by the rows themselves would cost confidence. Beta is exact for a
numeric target, no slack, no ramp, no ties and no weights, and an approximation otherwise, whose coverage is
simulated (`docs/coverage.md`). With weights, n_k are effective rows, and nothing is proven.

A rule fitted to bins knows its sample rates only up to e_k: each bound then takes r_k − e_k for its lower and
r_k + e_k for its upper limit. pairs and dkw hold for all thresholds at once, hence also then; beta and kl fix the
sample rate beforehand, and with an e_k that depends on the rows are good approximations. They need thresholds
that meet the target on the rows; where those were found otherwise (by stochastic descent, or with borrowed rows)
only pairs and dkw are left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairramp.core.cells import strata_slices, widest, worst_stratum
from fairramp.core.checks import check_number
from fairramp.core.curve import Floats, Integers
from fairramp.core.intervals import kl_interval
from fairramp.errors import FairrampError
from fairramp.rule.record import FitRecord
from fairramp.rule.rule import Rule

#: Why something is not a theorem.
_LEARNED, _WEIGHTS, _BINS = "a target rate learned from the rows", "the rows' weights", "scores in bins"
_CHOSEN = "a gap on the fit rows that was chosen by them"


@dataclass(frozen=True)
class Bound:
    """One limit of the population's gap.

    Attributes
    ----------
    name : str
        Which bound: "beta", "kl", "pairs", "dkw", or one of the paper's.
    limit : float
        With the certificate's confidence, no two groups' rates differ by more.
    is_theorem : bool
        Whether it is proven in the case at hand.
    why_not : tuple of str
        What keeps it from being proven.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> first = fairramp.fit_rule(data.score, data.sex, target_rate=0.2).certificate().bounds[0]
    >>> first.name, first.is_theorem, first.why_not
    ('beta', False, ('the ramp',))
    """

    name: str
    limit: float
    is_theorem: bool
    why_not: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """The limits of a gap, and the bounds they come from, smallest first."""

    estimated: float
    proven: float | None
    bounds: tuple[Bound, ...]


@dataclass(frozen=True)
class FitSample:
    """What the bounds need to know of a fit."""

    rows: Floats
    rates: Floats
    from_threshold: Floats  # m: fit rows at or above the threshold
    on_a_score: np.ndarray  # whether the threshold is itself a fit score
    errors: Floats  # how far each rate can be from that of the rows
    max_gap: float
    plain: bool = True  # unit weights
    met: bool = True  # whether thresholds meet the target on the rows
    inexact: tuple[str, ...] = ()  # why the Beta law is not exact
    target: float | None = None  # the target rate, if it was fixed beforehand
    strata: tuple[int, ...] | None = None  # index of each group's stratum; gaps are those within strata

    @classmethod
    def of(cls, rule: Rule) -> "FitSample":
        """From a rule's record."""
        record = certifiable(rule)
        seen, weighted = record.rates["selection"], record.weighted
        rates, errors, inside, above = map(np.array, (seen.after, seen.error, seen.rows_inside, seen.rows_above))
        rows = np.array(seen.effective_rows if weighted else seen.rows, dtype=np.float64)
        hard = rule.is_hard and not weighted
        single = (inside <= 1) & hard
        # Without ties at the threshold, the rows from there on; otherwise what the draws select of them. Without
        # the 1e-9 the ceiling of .07 · 100 would be 8.
        m = np.where(single, above + inside, np.ceil(rates * rows - 1e-9))
        reasons = {
            "the ramp": not rule.is_hard,
            "the allowed gap": rule.max_gap > 0,
            _LEARNED: isinstance(record.target, str),
            _CHOSEN: record.asked is not None,
            _WEIGHTS: weighted,
            _BINS: errors.any(),
            "a threshold that is not the score of exactly one row": hard and bool(np.any(inside != 1)),
        }
        return cls(
            rows=rows,
            rates=rates,
            from_threshold=np.clip(m, 0.0, rows),
            on_a_score=single & (inside > 0),
            errors=errors,
            max_gap=rule.max_gap,
            plain=not weighted,
            met=record.solver == "exact" and record.borrowed is None,
            inexact=tuple(reason for reason, holds in reasons.items() if holds),
            target=None if isinstance(record.target, str) else float(record.target),
            strata=record.strata,
        )

    @classmethod
    def alike(cls, n_rows: float, n_groups: int, rate: float, max_gap: float) -> "FitSample":
        """Groups of one size, half of them at either end of a band around a rate."""
        rows = np.full(n_groups, float(n_rows))
        middle = min(max(rate, max_gap / 2), 1 - max_gap / 2)
        rates = middle + max_gap / 2 * np.where(np.arange(n_groups) % 2, 1.0, -1.0)
        m = np.clip(np.ceil(rates * rows - 1e-9), 0.0, rows)
        # As for a ramp or a learned target, which most rules have.
        return cls(
            rows, rates, m, np.zeros(n_groups, dtype=bool), np.zeros(n_groups), max_gap, inexact=(_LEARNED,)
        )

    def without(self, groups: Integers) -> "FitSample":
        """The same of the other groups."""
        kept: dict[str, Any] = {
            name: np.delete(values, groups)
            for name, values in vars(self).items()
            if isinstance(values, np.ndarray)
        }
        return replace(self, **kept)

    def ends(self) -> tuple[Floats, Floats]:
        """Between which the sample rates lie."""
        return np.maximum(self.rates - self.errors, 0.0), np.minimum(self.rates + self.errors, 1.0)

    def at_least(self, n_rows: int) -> "FitSample":
        """The same rates, with this many rows at least in each group."""
        rows = np.maximum(self.rows, float(n_rows))
        m = np.clip(np.ceil(self.rates * rows - 1e-9), 0.0, rows)
        return replace(self, rows=rows, from_threshold=m, on_a_score=np.zeros_like(self.on_a_score))


def certifiable(rule: Rule) -> FitRecord:
    """The record that limits rest on."""
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


def limits_of(sample: FitSample, confidence: float) -> Limits:
    """The estimated and the proven limit of what a fit saw."""
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    every = [dkw(sample, confidence)]
    if sample.plain:  # with weights it is no theorem, and never the smallest
        every.append(pairs(sample, confidence))
    if sample.met:
        every += [beta(sample, confidence), kl(sample, confidence)]
    bounds = tuple(sorted(every, key=lambda bound: bound.limit))
    proven = _proven(sample, confidence, [bound for bound in bounds if bound.is_theorem])
    estimates = [b.limit for b in bounds if b.name == "beta" or not sample.met]
    return Limits(min([*estimates, *([] if proven is None else [proven])]), proven, bounds)


def _proven(s: FitSample, confidence: float, theorems: Sequence[Bound]) -> float | None:
    """The limit of one of the theorems, chosen without looking at the rows: the smallest of several may not hold.

    So they are compared at rates that are known beforehand, the target or else ½, and only then read.
    """
    if len(theorems) < 2:
        return theorems[0].limit if theorems else None
    if beta_bound := next((bound for bound in theorems if bound.name == "beta"), None):
        return beta_bound.limit  # exact, so none is smaller
    fixed = np.full(len(s.rates), 0.5 if s.target is None else s.target)
    nominal = replace(s, rates=fixed, errors=np.zeros(len(fixed)))
    return min(theorems, key=lambda bound: _BOUNDS[bound.name](nominal, confidence).limit).limit


def limit_kind(estimated: float, proven: float | None) -> str:
    """What a limit that was asked for as estimated is called: proven, where nothing is sharper."""
    return "proven" if estimated == proven else "estimated"


def limits(rule: Rule, confidence: float) -> Limits:
    """The estimated and the proven limit of a rule's gap in the population."""
    return limits_of(FitSample.of(rule), confidence)


def stratum_limits(rule: Rule, confidence: float) -> list[float]:
    """The estimated limit of each stratum's gap, all of which hold together; of the one gap without strata."""
    sample = FitSample.of(rule)
    if sample.strata is None:
        return [limits_of(sample, confidence).estimated]
    lower, upper = _dkw_ends(sample, confidence)
    uniform = [min(widest(lower[p], upper[p]), 1.0) for p in strata_slices(sample.strata, len(lower))]
    return [min(pair) for pair in zip(_beta_quantiles(sample, confidence), uniform, strict=True)]


def beta(s: FitSample, confidence: float) -> Bound:
    """The law of the threshold's rank."""
    return Bound("beta", min(max(_beta_quantiles(s, confidence, worst_only=True)), 1.0), not s.inexact, s.inexact)


def _beta_quantiles(s: FitSample, confidence: float, *, worst_only: bool = False) -> list[float]:
    from fairramp.core.beta import range_quantiles  # loads SciPy's functions, which takes a while

    more = np.ceil(s.rows * s.errors)
    lower = np.maximum(s.from_threshold - more, 0.0)
    upper = np.minimum(s.from_threshold + ~s.on_a_score + more, s.rows + 1)
    return range_quantiles(s.rows, lower, upper, s.strata, confidence, worst_only=worst_only)


def kl(s: FitSample, confidence: float) -> Bound:
    """Chernoff's bound per group."""
    tail = (1 - confidence) / ((2 if s.max_gap == 0 else 6) * len(s.rates))
    least, most = s.ends()
    lower, upper = kl_interval(least, s.rows, tail)
    upper = kl_interval(most, s.rows, tail)[1] if s.errors.any() else upper
    reasons = tuple(reason for reason in (_LEARNED, _CHOSEN, _WEIGHTS, _BINS) if reason in s.inexact)
    return Bound("kl", min(worst_stratum(widest, s.strata, lower, upper), 1.0), not reasons, reasons)


def pairs(s: FitSample, confidence: float) -> Bound:
    """Both deviations of a pair at once."""
    from fairramp.core.pairs import pair_factor

    factor, half = pair_factor(s.rows, s.strata, confidence), 1 / s.rows

    def furthest(lower: Floats, upper: Floats, half: Floats) -> float:
        worst = 0.0
        for k in range(len(lower)):  # a group at a time, so that thousands fit into memory
            apart = upper[k] - lower + factor * np.sqrt(half[k] + half)
            apart[k] = 0.0
            worst = max(worst, float(apart.max()))
        return worst

    gap = 1.0 if not np.isfinite(factor) else worst_stratum(furthest, s.strata, *s.ends(), half)
    return Bound("pairs", min(gap, 1.0), is_theorem=True)


def dkw(s: FitSample, confidence: float) -> Bound:
    """Dvoretzky, Kiefer and Wolfowitz's bound per group."""
    gap = worst_stratum(widest, s.strata, *_dkw_ends(s, confidence))
    return Bound("dkw", min(gap, 1.0), s.plain, () if s.plain else (_WEIGHTS,))


def _dkw_ends(s: FitSample, confidence: float) -> tuple[Floats, Floats]:
    half = np.sqrt(np.log(2 * len(s.rates) / (1 - confidence)) / (2 * s.rows))
    least, most = s.ends()
    return least - half, most + half


_BOUNDS = {"beta": beta, "kl": kl, "pairs": pairs, "dkw": dkw}


def listed(reasons: Sequence[str]) -> str:
    """Reasons in a row: a, b and c."""
    *first, last = reasons
    return f"{', '.join(first)} and {last}" if first else last
