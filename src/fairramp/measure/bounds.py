"""The bounds of the paper as functions.

N rows, K groups, ε the gap, ρ the target rate, γ the ramp width of signed scores, confidence 1 − δ:

    theorem_1      gap in the population ≤ ε + 8 √(2 ln(eN/2)/N) + 2 √(ln(2K/δ)/N)
    theorem_2      excess error ≤ 2γ + 8 (2 + 1/γ)/N^⅓ + E|2η − 1 − f| + 4 √((2K + 2 ln(2/δ))/N)
    proposition_1  E F(λ̄, μ̄) − F* ≤ (1 + ρ + ε)² α + (‖λ*‖² + ‖μ*‖²)/(2Tα)      T steps at learning rate α
    impossibility  max over splits π of E|Cov(h, q | π)| ≥ ½ E|q − E q| · min{E h, 1 − E h}      h in {0, 1}

The first two bounds concern new rows; the third, the published algorithm (projected stochastic gradient descent
on the dual F, starting at λ = μ = 0); the last, any hard decisions h with q(x) = P(S = 1 | x).

Two remarks on the proofs. Theorem 1 is printed with N = all rows, but its proof needs the size of each group:
pass the size of the smallest. The proof of the last bound has a sign error (β − E_W f is half of E_W̄ f − E_W f,
not of its negative); with the correct sign, the two mixed terms cancel and the statement holds.

Reference: Alabdulmohsin and Lucic 2021, Theorems 1 and 2, Proposition 1, and Appendix D.2.
"""

import math
from typing import Any

import numpy as np

from fairramp.core.checks import check_length, check_number, checked_whole, is_real
from fairramp.core.curve import Floats
from fairramp.data.aligned import check_aligned
from fairramp.data.arrays import as_column, as_weights
from fairramp.errors import InputError

__all__ = ["impossibility_bound", "proposition_1_bound", "theorem_1_bound", "theorem_2_bound"]

#: The requirement on each argument, and the open interval it must lie in.
_RANGES = {
    # Rounding can put the effective rows of a weighted group slightly below 1.
    "n_rows": ("must be a finite number of at least 1", 1 - 1e-9, math.inf),
    "delta": ("must be a number between 0 and 1", 0.0, 1.0),
    "ramp_width": ("must be a positive number", 0.0, math.inf),
    "learning_rate": ("must be a positive number", 0.0, math.inf),
}


def theorem_1_bound(n_rows: float, n_groups: int, max_gap: float, delta: float) -> float:
    """ε + 8·√(2·ln(eN/2)/N) + 2·√(ln(2K/δ)/N), the paper's bound on the population's gap.

    Parameters
    ----------
    n_rows : float
        N, the size of the smallest group (the paper prints the number of all rows, which its proof does not
        cover).
    n_groups : int
        K, the number of groups.
    max_gap : float
        ε, the gap on the fit rows.
    delta : float
        1 − confidence.

    Examples
    --------
    >>> from fairramp import bounds
    >>> round(bounds.theorem_1_bound(10_000, n_groups=2, max_gap=0, delta=0.05), 2)
    0.39
    """
    n, k = _inside("n_rows", n_rows), checked_whole("n_groups", n_groups)
    check_number("max_gap", max_gap, 0.0, 1.0)
    complexity = 8 * math.sqrt(2 * math.log(math.e * n / 2) / n)
    return max_gap + complexity + 2 * math.sqrt(math.log(2 * k / _inside("delta", delta)) / n)


def theorem_2_bound(
    n_rows: float, n_groups: int, ramp_width: float, miscalibration: float, delta: float
) -> float:
    """2γ + 8(2 + 1/γ)/N^⅓ + E|2η − 1 − f| + 4·√((2K + 2·ln(2/δ))/N), the paper's bound on excess error.

    Parameters
    ----------
    n_rows, n_groups : int
        N and K.
    ramp_width : float
        Ramp width on the probability scale; γ is twice this. Without a ramp there is no bound.
    miscalibration : float
        E|2η − 1 − f|, the mean distance of the signed score from the truth; it cannot be measured on a sample.
    delta : float
        1 − confidence.

    Examples
    --------
    >>> from fairramp import bounds
    >>> round(bounds.theorem_2_bound(10**9, n_groups=2, ramp_width=0.05, miscalibration=0, delta=0.05), 2)
    0.3
    """
    n, k = _inside("n_rows", n_rows), checked_whole("n_groups", n_groups)
    gamma = 2 * _inside("ramp_width", ramp_width)
    check_number("miscalibration", miscalibration, 0.0, 2.0)
    statistical = 4 * math.sqrt((2 * k + 2 * math.log(2 / _inside("delta", delta))) / n)
    return 2 * gamma + 8 * (2 + 1 / gamma) / math.cbrt(n) + miscalibration + statistical


def proposition_1_bound(
    target_rate: float, max_gap: float, learning_rate: float, steps: int, multipliers: Any
) -> float:
    """(1 + ρ + ε)²·α + (‖λ*‖² + ‖μ*‖²)/(2Tα), the bound on the average iterate's excess in the dual F.

    Parameters
    ----------
    target_rate, max_gap : float
        ρ and ε.
    learning_rate : float
        α, the same in every step.
    steps : int
        T, the number of steps.
    multipliers : numbers of shape (K,)
        The optimal λ_k − μ_k, which are the thresholds of signed scores: 2 · threshold − 1 for probabilities and
        a cutoff of 0.5. One of λ_k and μ_k is 0 (for ε = 0 they can be chosen this way, and the bound holds for
        every optimum), hence ‖λ*‖² + ‖μ*‖² = Σ (λ_k − μ_k)².

    Notes
    -----
    The bound is smallest, at √2 · (1 + ρ + ε) · ‖(λ*, μ*)‖ / √T, for α = ‖(λ*, μ*)‖ / ((1 + ρ + ε) √(2T)).

    Examples
    --------
    >>> from fairramp import bounds
    >>> steps = dict(learning_rate=0.001, steps=10**6)
    >>> round(bounds.proposition_1_bound(0.2, 0.02, multipliers=[-0.5, 0.25], **steps), 4)
    0.0016
    """
    check_number("target_rate", target_rate, 0.0, 1.0)
    check_number("max_gap", max_gap, 0.0, 1.0)
    alpha = _inside("learning_rate", learning_rate)
    t = as_column(multipliers, "multipliers")
    return (1 + target_rate + max_gap) ** 2 * alpha + float(t @ t) / (2 * checked_whole("steps", steps) * alpha)


def impossibility_bound(decisions: Any, membership: Any, *, sample_weight: Any = None) -> float:
    """½·E|q − E q|·min{E h, 1 − E h}, a lower bound on the bias that some split of the rows in two reveals.

    Hard decisions h cannot be unbiased in every part of the population: some split in two has at least this
    absolute covariance of h and q, averaged over its sides. The bound is 0 only if h or q is constant.
    `fairramp.hidden_split` finds a split that reaches it.

    Parameters
    ----------
    decisions : 0 or 1 of shape (n,)
        h, the decisions.
    membership : numbers of shape (n,)
        q, the probability P(S = 1 | x) of being in the sensitive group; 0 or 1 if known.
    sample_weight : numbers of shape (n,), optional
        Row weights.

    Examples
    --------
    >>> from fairramp import bounds
    >>> bounds.impossibility_bound([1, 0, 1, 0], [1, 1, 0, 0])
    0.125
    """
    h, q, share = split_rows(decisions, membership, sample_weight)
    yes = float(share @ h)
    return 0.5 * float(share @ np.abs(q - share @ q)) * max(min(yes, 1 - yes), 0.0)


def split_rows(decisions: Any, membership: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats]:
    """Check decisions, membership and weights; return the weights as shares of their sum."""
    check_aligned(decisions=decisions, membership=membership, sample_weight=sample_weight)
    h = as_column(decisions, "decisions")
    q = as_column(membership, "membership")
    check_length("membership", len(q), len(h), "decisions")
    remedy = "to get decisions from a rule, use rule.decide"
    for name, column, sound, must, do in (
        ("decisions", h, (h == 0) | (h == 1), "must be 0 or 1", remedy),
        ("membership", q, (q >= 0) & (q <= 1), "must be between 0 and 1", None),
    ):
        if not sound.all():
            row = int(np.argmin(sound))
            raise InputError(
                must + ", got {value!r} in row {row}", argument=name, remedy=do, value=float(column[row]), row=row
            )
    if sample_weight is None:
        return h, q, np.full(len(h), 1 / len(h))
    weights = as_weights(sample_weight, len(h), "decisions")
    relative = weights / weights.max()  # keeps the sum of huge weights finite
    return h, q, relative / relative.sum()


def _inside(name: str, value: Any) -> float:
    """Check that a number is inside its range."""
    rule, low, high = _RANGES[name]
    if not is_real(value) or not low < value < high:
        raise InputError(rule, argument=name, got=value)
    return float(value)
