"""Limits on the gap in the population that the fit rows come from: an estimated and a proven one.

There are K groups. Group k has n_k fit rows and sample rate r_k; G*_k is its true rate at the fitted threshold;
the confidence is 1 − δ. For true and false positive rates, n_k counts the rows with that label: given their
number, they are independent draws from the people with that label. G is monotone, so a deviation at the *fitted*
threshold is a deviation at a *fixed* one:

    beta   G*_k ~ Beta(m_k, n_k + 1 − m_k) with m_k fit rows at or above the threshold, independent between
           groups: the 1 − δ quantile of max − min. If the threshold is not a fit score, as with a ramp, whose
           foot moves to the next score if no row is on it, the largest rate is from Beta(m_k + 1, n_k − m_k)
    kl     n_k · L(r_k ‖ u_k) = ln(2K/δ) on either side (ln(6K/δ) if max_gap > 0); max u_k − min l_l
    pairs  max (r_k − r_l) + c √(1/n_k + 1/n_l): holds for every threshold and ramp at once (see `core.pairs`)
    dkw    x_k = √(ln(2K/δ) / (2 n_k));  max (r_k + x_k) − (r_l − x_l): holds for every threshold and ramp too

The *estimated* limit is the smaller of beta and the proven limit. The *proven* limit is that of the theorem that
is smallest at rates known in advance; choosing it by the rows would cost confidence. Beta is exact for a numeric
target without slack, ramp, ties and weights, and otherwise an approximation whose coverage is simulated
(`docs/coverage.md`). With weights, n_k are effective rows, and nothing is proven.

The sample rates of a rule fitted to bins are known only up to e_k; each bound then uses r_k − e_k for its lower
and r_k + e_k for its upper limit. pairs and dkw hold for all thresholds at once, so they still hold. beta and kl
fix the sample rate in advance; with an e_k that depends on the rows they are good approximations. They require
thresholds that meet the target on the rows. If thresholds were found otherwise (by stochastic descent, or with
borrowed rows), only pairs and dkw apply.

Equalized odds compares 2K rates, each with those of its own kind (`core.cells.kinds_of`). The level comes from
the rows and each threshold from the rows of both labels, so only pairs and dkw apply; with 2K instead of K, they
bound both gaps jointly.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairramp.core.cells import kinds_of, strata_slices, widest, worst_stratum
from fairramp.core.checks import check_number
from fairramp.core.curve import Floats, Integers
from fairramp.core.intervals import kl_interval
from fairramp.errors import FairrampError, InputError, UnsupportedError
from fairramp.rule.record import FitRecord
from fairramp.rule.rule import Rule

#: Reasons why a bound is not a theorem.
_LEARNED, _WEIGHTS, _BINS = "a target rate learned from the rows", "the row weights", "binned scores"
_BUDGET = "thresholds that depend on all groups together"
_CHOSEN = "a gap on the fit rows that was chosen based on them"


@dataclass(frozen=True)
class Bound:
    """A limit on the gap in the population.

    Attributes
    ----------
    name : str
        Which bound: "beta", "kl", "pairs", "dkw", "newcombe", or one of the paper's.
    limit : float
        With the certificate's confidence, no two groups' rates differ by more than this.
    is_theorem : bool
        Whether it is proven in this case.
    why_not : tuple of str
        Why it is not proven.

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
    """The estimated and the proven limit, and the bounds they come from, smallest first."""

    estimated: float
    proven: float | None
    bounds: tuple[Bound, ...]


@dataclass(frozen=True)
class FitSample:
    """What the bounds need to know about a fit."""

    rows: Floats  # like all arrays, one value per group; for equalized odds, event by event
    rates: Floats
    from_threshold: Floats  # m: fit rows at or above the threshold
    on_a_score: np.ndarray  # whether the threshold is a fit score
    errors: Floats  # bound on the distance of each rate from that of the rows
    is_open: bool  # whether sample rates may differ
    max_gap: float | None  # by how much; None for a ratio
    plain: bool = True  # unit weights
    met: bool = True  # whether thresholds meet one target on the rows
    inexact: tuple[str, ...] = ()  # why the Beta distribution is not exact
    target: float | None = None  # the target rate, if it was fixed in advance
    strata: tuple[int, ...] | None = None  # index of each group's stratum; gaps are those within strata
    n_events: int = 1  # number of rates that are compared

    @classmethod
    def of(cls, rule: Rule) -> "FitSample":
        """Extract it from a rule's record."""
        record = certifiable(rule)
        weighted, several = record.weighted, len(record.compared)
        rates, errors, inside, above = map(record.column, ("after", "error", "rows_inside", "rows_above"))
        rows = record.column("effective_rows" if weighted else "rows")
        hard = rule.is_hard and not weighted
        single = (inside <= 1) & hard
        # Without ties at the threshold, the rows at or above it; otherwise the share of them that is selected at
        # random. Without the 1e-9, the ceiling of .07 · 100 would be 8.
        m = np.where(single, above + inside, np.ceil(rates * rows - 1e-9))
        reasons = {
            "the ramp": not rule.is_hard,
            "the allowed gap": rule.band.is_open and rule.min_ratio is None,
            "the allowed ratio": rule.band.is_open and rule.min_ratio is not None,
            _LEARNED: isinstance(record.target, str),
            _BUDGET: record.overall_rate is not None,
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
            is_open=rule.band.is_open,
            max_gap=rule.max_gap,
            plain=not weighted,
            met=record.solver == "exact" and record.borrowed is None and several == 1,
            inexact=tuple(reason for reason, holds in reasons.items() if holds),
            target=None if isinstance(record.target, str | None) else float(record.target),
            strata=record.strata,
            n_events=several,
        )

    @classmethod
    def alike(cls, n_rows: float, n_groups: int, rate: float, max_gap: float, n_events: int = 1) -> "FitSample":
        """Groups of equal size, half of them at either end of a band around a rate."""
        rows = np.full(n_groups * n_events, float(n_rows))
        middle = min(max(rate, max_gap / 2), 1 - max_gap / 2)
        rates = middle + max_gap / 2 * np.where(np.arange(len(rows)) % n_groups % 2, 1.0, -1.0)
        m = np.clip(np.ceil(rates * rows - 1e-9), 0.0, rows)
        # As for rules with a ramp or a learned target, which are the most common.
        return cls(
            rows,
            rates,
            m,
            np.zeros(len(rows), dtype=bool),
            np.zeros(len(rows)),
            max_gap > 0,
            max_gap,
            met=n_events == 1,
            inexact=(_LEARNED,),
            n_events=n_events,
        )

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.rates) // self.n_events

    @property
    def kinds(self) -> Any:
        """Index of the rates that each rate is compared with; None for all."""
        return kinds_of(self.n_groups, self.n_events, self.strata)

    @property
    def fewest(self) -> Floats:
        """Rows of each group; for equalized odds, those with the label of which it has fewer."""
        found: Floats = self.rows.reshape(self.n_events, -1).min(axis=0)
        return found

    def without(self, groups: Integers) -> "FitSample":
        """A copy without some groups."""
        kept: dict[str, Any] = {
            name: np.delete(values.reshape(self.n_events, -1), groups, axis=1).ravel()
            for name, values in vars(self).items()
            if isinstance(values, np.ndarray)
        }
        return replace(self, **kept)

    def ends(self) -> tuple[Floats, Floats]:
        """Limits of the sample rates."""
        return np.maximum(self.rates - self.errors, 0.0), np.minimum(self.rates + self.errors, 1.0)

    def at_least(self, n_rows: int) -> "FitSample":
        """The same rates, with at least this many rows in each group."""
        rows = np.maximum(self.rows, float(n_rows))
        m = np.clip(np.ceil(self.rates * rows - 1e-9), 0.0, rows)
        return replace(self, rows=rows, from_threshold=m, on_a_score=np.zeros_like(self.on_a_score))


def certifiable(rule: Rule) -> FitRecord:
    """The record that limits are based on; raises if there is none."""
    if rule.mixes:
        raise InputError(
            "No certificate from the fit rows: every threshold of this rule depends on all rows at once, so no "
            "argument about the order of a group's scores applies",
            remedy="a report on fresh rows with true groups has limits, and so has rule.certificate(scores=…, "
            "groups=…" + (", group_probabilities=…)" if rule.membership == "probabilities" else ")"),
        )
    record = recorded(rule)
    if record.cross_fitted:
        raise FairrampError(
            "No certificate from the fit rows: the rule was fitted on cross-fitted scores, and the final model "
            "was trained again, on all rows",
            remedy="pass new rows, with scores of the final model: rule.certificate(scores=…, groups=…); checks "
            "and monitors need a trained model, frozen, and a rule fitted on new rows",
        )
    return record


def unmixed(rule: Rule, what: str) -> Rule:
    """The rule itself; raises if it mixes thresholds, which `what` does not support."""
    if rule.mixes:
        raise UnsupportedError(
            what + " does not support rules by group probabilities or by each attribute: without a certificate, "
            "they have no estimated limit",
            remedy="check the rule on new rows with rule.check",
        )
    return rule


def recorded(rule: Rule) -> FitRecord:
    """The record of a rule; raises if there is none."""
    if rule.record is None:
        raise FairrampError(
            "No certificate: the rule has no record of its fit rows, because it was written by hand, learned "
            "from a stream or exported without its record"
        )
    return rule.record


def limits_of(sample: FitSample, confidence: float) -> Limits:
    """The estimated and the proven limit for a fit."""
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    every = [dkw(sample, confidence)]
    if sample.plain:  # with weights it is not a theorem, and never the smallest
        every.append(pairs(sample, confidence))
    if sample.met:
        every += [beta(sample, confidence), kl(sample, confidence)]
    bounds = tuple(sorted(every, key=lambda bound: bound.limit))
    proven = _proven(sample, confidence, [bound for bound in bounds if bound.is_theorem])
    # Without a Beta distribution and a theorem there is only dkw, for weighted rows.
    estimate = next((b for b in bounds if b.name == "beta"), proven or bounds[0])
    limit = estimate.limit if proven is None else min(estimate.limit, proven.limit)
    return Limits(limit, None if proven is None else proven.limit, bounds)


def _proven(s: FitSample, confidence: float, theorems: Sequence[Bound]) -> Bound | None:
    """One of the theorems, chosen without looking at the rows: the smallest of several may not hold.

    They are compared at rates known in advance, the target or else ½, and only then evaluated.
    """
    if len(theorems) < 2:
        return theorems[0] if theorems else None
    if beta_bound := next((bound for bound in theorems if bound.name == "beta"), None):
        return beta_bound  # exact, so no other is smaller
    fixed = np.full(len(s.rates), 0.5 if s.target is None else s.target)
    nominal = replace(s, rates=fixed, errors=np.zeros(len(fixed)))
    return min(theorems, key=lambda bound: (_BOUNDS[bound.name](nominal, confidence).limit, bound.name))


def limit_kind(estimated: float, proven: float | None) -> str:
    """The name of a limit requested as estimated: "proven" if nothing is sharper."""
    return "proven" if estimated == proven else "estimated"


def limits(rule: Rule, confidence: float) -> Limits:
    """The estimated and the proven limit of a rule's gap in the population."""
    return limits_of(FitSample.of(rule), confidence)


def limit_of_each(sample: FitSample, confidence: float) -> list[float]:
    """The estimated limit of each gap, which hold jointly: of each stratum, and of each rate."""
    if sample.kinds is None:
        return [limits_of(sample, confidence).estimated]
    if sample.met:
        beta_limits, uniform = _beta_quantiles(sample, confidence), _dkw_each(sample, confidence)
        return [min(pair) for pair in zip(beta_limits, uniform, strict=True)]
    uniform_bounds = [bound(sample, confidence) for bound in (pairs, dkw) if sample.plain]
    chosen = _proven(sample, confidence, uniform_bounds)
    each = _pairs_each if chosen is not None and chosen.name == "pairs" else _dkw_each
    return each(sample, confidence)


def beta(s: FitSample, confidence: float) -> Bound:
    """Bound from the distribution of the threshold's rank."""
    return Bound("beta", min(max(_beta_quantiles(s, confidence, worst_only=True)), 1.0), not s.inexact, s.inexact)


def _beta_quantiles(s: FitSample, confidence: float, *, worst_only: bool = False) -> list[float]:
    from fairramp.core.beta import range_quantiles  # imports SciPy, which is slow

    more = np.ceil(s.rows * s.errors)
    lower = np.maximum(s.from_threshold - more, 0.0)
    upper = np.minimum(s.from_threshold + ~s.on_a_score + more, s.rows + 1)
    return range_quantiles(s.rows, lower, upper, s.kinds, confidence, worst_only=worst_only)


def kl(s: FitSample, confidence: float) -> Bound:
    """Chernoff's bound per group."""
    tail = (1 - confidence) / ((6 if s.is_open else 2) * len(s.rates))
    least, most = s.ends()
    lower, upper = kl_interval(least, s.rows, tail)
    upper = kl_interval(most, s.rows, tail)[1] if s.errors.any() else upper
    reasons = tuple(reason for reason in (_LEARNED, _BUDGET, _CHOSEN, _WEIGHTS, _BINS) if reason in s.inexact)
    return Bound("kl", min(worst_stratum(widest, s.kinds, lower, upper), 1.0), not reasons, reasons)


def pairs(s: FitSample, confidence: float) -> Bound:
    """Bound on both deviations of a pair at once."""
    return Bound("pairs", max(_pairs_each(s, confidence)), is_theorem=True)


def _pairs_each(s: FitSample, confidence: float) -> list[float]:
    from fairramp.core.pairs import pair_factor

    factor, half = pair_factor(s.rows, s.kinds, confidence), 1 / s.rows
    lower, upper = s.ends()

    def furthest(lower: Floats, upper: Floats, half: Floats) -> float:
        worst = 0.0
        for k in range(len(lower)):  # one group at a time keeps memory low for thousands of groups
            apart = upper[k] - lower + factor * np.sqrt(half[k] + half)
            apart[k] = 0.0
            worst = max(worst, float(apart.max()))
        return worst

    parts = strata_slices(s.kinds, len(lower))
    return [min(furthest(lower[p], upper[p], half[p]), 1.0) if np.isfinite(factor) else 1.0 for p in parts]


def dkw(s: FitSample, confidence: float) -> Bound:
    """Dvoretzky, Kiefer and Wolfowitz's bound per group."""
    return Bound("dkw", max(_dkw_each(s, confidence)), s.plain, () if s.plain else (_WEIGHTS,))


def _dkw_each(s: FitSample, confidence: float) -> list[float]:
    half = np.sqrt(np.log(2 * len(s.rates) / (1 - confidence)) / (2 * s.rows))
    least, most = s.ends()
    lower, upper = least - half, most + half
    return [min(widest(lower[p], upper[p]), 1.0) for p in strata_slices(s.kinds, len(lower))]


_BOUNDS = {"beta": beta, "kl": kl, "pairs": pairs, "dkw": dkw}


def listed(reasons: Sequence[str]) -> str:
    """Join reasons: a, b and c."""
    *first, last = reasons
    return f"{', '.join(first)} and {last}" if first else last
