"""Evidence that two groups' rates differ by more than a limit, valid at every look.

Group k has n_k rows so far, and S_k is the sum of their selection probabilities h. For h in [0, 1] with mean m
and any q, (q/m)^h ((1 − q)/(1 − m))^(1−h) has expectation at most 1, because it is convex in h. So the mixture
over q ~ Beta(a_k, b_k),

    E_k(m) = B(S_k + a_k, n_k − S_k + b_k) / B(a_k, b_k) / (m^S_k (1 − m)^(n_k − S_k)),

is a fair bet against "the mean is m": over any number of rows and looks, the probability that it ever reaches 1/δ
is at most δ. Priors are centered on the rates on the fit rows. The bet against "rate_k − rate_l ≤ g" is

    E_kl = min over m_k − m_l ≤ g of E_k(m_k) E_l(m_l).

The minimum is where the likelihood in the denominator is largest: at the observed rates if they differ by at most
g, otherwise on m_k = m_l + g. The *evidence* is the mean of E_kl over all ordered pairs that are compared. As
long as no pair exceeds its limit, the probability that the evidence ever reaches 1/δ is at most δ as well. {m :
E_k(m) < K/δ} are confidence limits of K rates that hold jointly at all looks.

References: Ville 1939 for the probability; Robbins 1970 for mixtures; Waudby-Smith and Ramdas 2024 for bets on
means.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import betaln, xlogy

from fairramp.core.cells import widest
from fairramp.core.curve import Floats, Integers
from fairramp.core.intervals import kl_interval

#: Rows that each prior counts for, mixed in equal parts: the small one detects large drifts early, the large one
#: small drifts. Chosen by simulation: drifts of .05 to .2, rates .2 and .5, 1,000 to 20,000 fit rows.
_PRIOR_ROWS = (10.0, 300.0)
#: Priors are centered at least this far from 0 and 1, to be proper.
_CENTER = 0.005
#: The evidence's share of δ; it almost always raises the alarm first. The rest goes to the limits of all rates,
#: which are faster if a large group has moved far from its fit rate, where the priors put little weight.
BETS = 0.9
#: Number of pairs of groups processed at once.
_PAIRS = 2**18


def log_evidence(
    rows: Integers, selected: Floats, centers: Floats, compared: Sequence[tuple[Integers, float]]
) -> float:
    """Logarithm of the evidence; `compared` holds parts of the groups and the limits on their gaps."""
    n, tops = rows.astype(np.float64), _numerators(rows, selected, centers)
    sums = [_log_pairs(n[part], selected[part], tops[part], limit) for part, limit in compared]
    pairs = sum(len(part) * (len(part) - 1) for part, _ in compared)
    return float(np.logaddexp.reduce(sums) - np.log(pairs)) if pairs else 0.0


def is_shown(
    rows: Integers, selected: Floats, centers: Floats, compared: Sequence[tuple[Integers, float]], delta: float
) -> bool:
    """Whether a gap above its limit is shown: by the evidence at 0.9 δ, or by limits of all rates at 0.1 δ."""
    means = selected / np.maximum(rows, 1)
    # If all observed gaps are within their limits, the evidence is at most 1, and the rates' limits allow the
    # gaps.
    if all(np.ptp(means[part]) <= limit for part, limit in compared):
        return False
    if log_evidence(rows, selected, centers, compared) >= -np.log(BETS * delta):
        return True
    lower, upper = rate_limits(rows, selected, centers, (1 - BETS) * delta)
    # The largest lower limit minus the smallest upper limit is `widest` with its arguments swapped.
    return any(widest(upper[part], lower[part]) > limit for part, limit in compared)


def rate_limits(rows: Integers, selected: Floats, centers: Floats, delta: float) -> tuple[Floats, Floats]:
    """Limits that contain all rates at all looks with probability at least 1 − δ; 0 and 1 without rows."""
    n = np.maximum(rows.astype(np.float64), 1.0)
    rates = selected / n
    # log E_k(m) is its value at the observed rate, which is negative, plus n L(rate ‖ m).
    cost = _numerators(rows, selected, centers) - _log_likelihood(selected, rows, rates)
    lower, upper = kl_interval(rates, n, np.exp(cost) * delta / len(n))
    return np.where(rows > 0, lower, 0.0), np.where(rows > 0, upper, 1.0)


def _numerators(rows: Integers, selected: Floats, centers: Floats) -> Floats:
    """Log of B(S + a, n − S + b) / B(a, b), averaged over the priors."""
    center = np.clip(centers, _CENTER, 1 - _CENTER)
    ratios = [
        betaln(selected + c * center, rows - selected + c * (1 - center)) - betaln(c * center, c * (1 - center))
        for c in _PRIOR_ROWS
    ]
    mixed: Floats = np.logaddexp.reduce(ratios) - np.log(len(_PRIOR_ROWS))
    return mixed


def _log_likelihood(selected: Floats, rows: Floats | Integers, rate: Floats) -> Floats:
    found: Floats = xlogy(selected, rate) + xlogy(rows - selected, 1 - rate)
    return found


def _log_pairs(n: Floats, s: Floats, tops: Floats, limit: float) -> float:
    """Log Σ E_kl over all ordered pairs of groups."""
    rates = s / np.maximum(n, 1.0)
    peaks = _log_likelihood(s, n, rates)
    costs, every, total = tops - peaks, np.arange(len(n)), -np.inf
    step = max(_PAIRS // len(n), 1)
    for start in range(0, len(n), step):
        k = every[start : start + step, np.newaxis]
        logs = costs[k] + costs
        above = (rates[k] - rates > limit) & (n[k] > 0) & (n > 0)  # a group without rows can have any rate
        i, j = np.nonzero(above)
        i += start
        logs[above] += peaks[i] + peaks[j] - _constrained(n[i], s[i], n[j], s[j], limit)
        logs[k == every] = -np.inf
        total = np.logaddexp(total, np.logaddexp.reduce(logs, axis=None))
    return float(total)


def _constrained(n_k: Floats, s_k: Floats, n_l: Floats, s_l: Floats, limit: float) -> Floats:
    """Largest log-likelihood of two groups whose rates are m + limit and m."""
    low, high = np.zeros_like(n_k), np.full_like(n_k, 1 - limit)
    for _ in range(52):  # the slope is decreasing, and 52 bisections reach float precision
        m = (low + high) / 2
        rises = s_l / m - (n_l - s_l) / (1 - m) + s_k / (m + limit) > (n_k - s_k) / (1 - m - limit)
        low, high = np.where(rises, m, low), np.where(rises, high, m)
    m = (low + high) / 2
    return _log_likelihood(s_l, n_l, m) + _log_likelihood(s_k, n_k, np.minimum(m + limit, 1.0))
