"""False alarms and power of monitors and checks; run by `make nightly`.

Counts are drawn from their distribution. After a fit, each group's true rate is a Beta draw around the common
rate, with parameters given by the rank of its threshold.
"""

import numpy as np
import pytest
from scipy import stats

from fairramp.core.intervals import gap_interval
from fairramp.measure.evidence import is_shown
from fairramp.rule.limits import FitSample, limits_of
from samples import quiet_fit

pytestmark = pytest.mark.nightly

#: Probability that a correct library fails one comparison in this file.
ERROR = 1e-6
STREAMS, LOOKS = 2000, 200


def fitted(rows, rate):
    """Estimated limit for groups with this rate on this many fit rows, and the ranks of the thresholds."""
    n, m = np.array(rows, dtype=float), np.ceil(rate * np.array(rows) - 1e-9)
    no = np.zeros(len(n))
    sample = FitSample(n, np.full(len(n), rate), m, no.astype(bool), no, 0.0, inexact=("the ramp",))
    return limits_of(sample, 0.95).estimated, m


def first_alarms(rng, rates, each, looks, *, limit, center):
    """Look at which each stream raises the alarm; 0 for never."""
    n, k = rates.shape
    found = np.zeros(n, dtype=int)
    selected, every = np.zeros((n, k)), [(np.arange(k), limit)]
    for look in range(1, looks + 1):
        selected += rng.binomial(each, rates)
        for i in np.flatnonzero(found == 0):
            if is_shown(each * look, selected[i], np.full(k, center), every, 0.05):
                found[i] = look
    return found


@pytest.mark.parametrize("shares", [(50, 50), (90, 10), (40, 30, 20, 8, 2)])
@pytest.mark.parametrize("case", ["no drift", "gap at its limit"])
def test_at_most_one_stream_in_twenty_raises_a_false_alarm(shares, case):
    rng, rate = np.random.default_rng(0), 0.3
    limit, m = fitted([20 * share for share in shares], rate)
    if case == "no drift":
        n = np.array(shares) * 20
        rates = rng.beta(m, n + 1 - m, (STREAMS, len(shares)))
        rates = rates[np.ptp(rates, axis=1) <= limit]  # an alarm is false while the gap is within the limit
    else:
        rates = np.tile(np.r_[[rate] * (len(shares) - 1), rate + limit], (STREAMS, 1))
    found = first_alarms(rng, rates, np.array(shares), LOOKS, limit=limit, center=rate)
    alarms = np.count_nonzero(found)
    print(f"{shares}, {case}: {alarms} of {len(rates)} streams")
    assert alarms <= stats.binom.ppf(1 - ERROR, len(rates), 0.05)


def found_at_once(rng, rates, shares, total, limit):
    """Share of fixed samples in which Newcombe's lower limit exceeds the estimated limit, as in `Rule.check`."""
    n = np.maximum(np.round(np.array(shares) * total), 1).astype(int)
    draws = rng.binomial(n, rates) / n
    return np.mean([gap_interval(draw, n.astype(float), 0.95)[0] > limit for draw in draws])


@pytest.mark.parametrize("rate", [0.2, 0.5])
@pytest.mark.parametrize("drift", [-0.15, 0.1, 0.15, 0.2])
@pytest.mark.parametrize("rows", [(1000, 1000), (1800, 200)])
def test_median_delay_is_at_most_1_5_times_a_fixed_sample(rows, drift, rate):
    rng, shares = np.random.default_rng(1), np.array(rows) / sum(rows)
    limit, m = fitted(rows, rate)
    rates = rng.beta(m, np.array(rows) + 1 - m, (400, 2))
    rates[:, 1] = np.clip(rates[:, 1] + drift, 0, 1)
    low, high = 50.0, 200_000.0
    for _ in range(14):  # up to one fit in ten may hide the drift for good
        middle = float(np.sqrt(low * high))
        enough = found_at_once(rng, rates, shares, middle, limit) >= 0.9
        low, high = (low, middle) if enough else (middle, high)
    each = np.maximum(np.round(shares * high / 60), 1).astype(int)
    looks = 100
    found = first_alarms(rng, rates, each, looks, limit=limit, center=rate)
    delay = np.median(np.where(found > 0, found, np.inf)) * each.sum()
    print(f"{rows}, rate {rate}, drift {drift:+}: {delay:.0f} rows, fixed {high:.0f}: {delay / high:.2f}")
    assert delay <= 1.5 * high


# Checks -------------------------------------------------------------------------------------------


def rows_of(rng, sizes, rule=None, k=None, rate=None):
    """Uniform scores, with group k selected at `rate`."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    scores = rng.random(len(groups))
    if k is not None:
        threshold, mine = rule.thresholds[k], groups == k
        yes = rng.random(sizes[k]) < rate
        scores[mine] = np.where(yes, min(threshold + 0.02, 1), max(threshold - 0.02, 0))  # outside the ramp
    return scores, groups


CHECKED = [(1000, 1000), (1800, 200), (200, 200), (10_000, 1000), (1000,) * 5, (3000, 1000, 500, 200, 100)]


@pytest.mark.parametrize("rate", [0.2, 0.5])
@pytest.mark.parametrize("sizes", CHECKED)
def test_check_has_the_stated_false_alarm_rate_and_power(sizes, rate):
    """Fit and check equally many rows, then let the smallest group drift to the rates said to be detectable."""
    rng, n, smallest = np.random.default_rng(2), 400, int(np.argmin(sizes))
    alarms, found = 0, {"detectable_below": 0, "detectable_above": 0}
    for _ in range(n):
        rule = quiet_fit(*rows_of(rng, sizes), target_rate=rate)
        check = rule.check(*rows_of(rng, sizes))
        alarms += check.has_drifted
        said = check.table()
        for name in found:
            drifted = rows_of(rng, sizes, rule, smallest, said[name][smallest])
            found[name] += rule.check(*drifted).has_drifted
    powers = {name: round(count / n, 3) for name, count in found.items()}
    print(f"{sizes}, rate {rate}: {alarms / n:.3f} false alarms, {powers}, gap {check.detectable_gap:.3f}")
    assert alarms <= stats.binom.ppf(1 - ERROR, n, check.false_alarm_rate)
    for count in found.values():
        assert stats.binom.ppf(ERROR, n, 0.85) <= count <= stats.binom.ppf(1 - ERROR, n, 0.95)
