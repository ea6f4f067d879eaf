"""Statements about probabilities, tested with large samples; run by `make nightly`.

Seeds and keys are fixed, so runs repeat. `ALARM` is the probability that a correct library fails one
comparison under other seeds; for the hundred or so comparisons here, it is about one in ten thousand in total.
"""

import functools

import numpy as np
import pytest
from scipy import stats
from test_coverage import APPROXIMATE, NOMINAL, BetaLaw, Case, fewest_covered, name, simulate

import fairramp
from samples import quiet_fit

pytestmark = pytest.mark.nightly

#: Probability of a false alarm in one comparison.
ALARM = 1e-6
IDS = 10_000_000
#: Unrelated keys, and one that differs from the first in its last digit.
KEYS = (
    "0123456789abcdef" * 4,
    "0123456789abcdef" * 3 + "0123456789abcdee",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
)


@functools.cache
def drawn(key):
    """Draws for the ids 0 … 10⁷ − 1, a million at a time."""
    parts = [fairramp.draws(range(i, i + 1_000_000), key) for i in range(0, IDS, 1_000_000)]
    return np.concatenate(parts)


def assert_uniform(counts):
    """Pearson's chi-square test for equally likely cells."""
    counts = np.asarray(counts).ravel()
    expected = counts.sum() / len(counts)
    assert expected >= 100
    found = float(((counts - expected) ** 2).sum() / expected)
    degrees = len(counts) - 1
    p = stats.chi2.sf(found, degrees)
    print(f"chi-square {found:.1f} of {degrees} degrees, p = {p:.3f}")
    assert ALARM / 2 < p < 1 - ALARM / 2  # neither too uneven nor too even to be random


def grid(a, b, cells=64):
    """Joint counts of a and b in equal cells of [0, 1)."""
    return np.bincount((a * cells).astype(np.intp) * cells + (b * cells).astype(np.intp), minlength=cells**2)


@pytest.mark.parametrize("key", KEYS)
def test_draws_for_ten_million_ids_are_uniform(key):
    u = drawn(key)
    assert u.min() >= 0
    assert u.max() < 1
    assert_uniform(np.bincount((u * 10_000).astype(np.intp), minlength=10_000))


@pytest.mark.parametrize("digit", range(13))
def test_every_hexadecimal_digit_of_a_draw_is_uniform(digit):
    whole = (drawn(KEYS[0]) * 2**52).astype(np.int64)
    assert_uniform(np.bincount((whole >> 4 * digit) & 15, minlength=16))


@pytest.mark.parametrize(("first", "second"), [(0, 1), (0, 2), (1, 2)])
def test_draws_with_two_keys_are_independent(first, second):
    assert_uniform(grid(drawn(KEYS[first]), drawn(KEYS[second])))


@pytest.mark.parametrize("apart", [1, 2, 10, 1000, 65_536])
def test_draws_for_neighboring_ids_are_independent(apart):
    u = drawn(KEYS[0])
    blocks = u[: len(u) // (2 * apart) * 2 * apart].reshape(-1, 2, apart)  # pairs that share no id
    assert_uniform(grid(blocks[:, 0].ravel(), blocks[:, 1].ravel()))
    a, b = u[:-apart] - 0.5, u[apart:] - 0.5
    z = float(a @ b) * 12 / np.sqrt(len(a))
    print(f"correlation: z = {z:.2f}")
    assert abs(z) < stats.norm.isf(ALARM / 2)


@pytest.mark.parametrize("form", ["A{:08d}", "{:x}", "user-{}@example.org", "{}\u00e4"])
def test_draws_for_text_ids_are_uniform(form):
    ids = [form.format(i) for i in range(1_000_000)]
    u = fairramp.draws(ids, KEYS[0])
    assert_uniform(np.bincount((u * 1000).astype(np.intp), minlength=1000))
    assert_uniform(grid(u[::2], u[1::2], 32))


@pytest.mark.parametrize("chance", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_share_selected_matches_the_probability(chance):
    rule = fairramp.Rule(groups=("a",), ramps=(fairramp.Ramp(0.0, 1.0),))
    n = 1_000_000
    for key in KEYS:
        yes = int(rule.decide(np.full(n, chance), ["a"] * n, ids=range(n), key=key).sum())
        p = stats.binomtest(yes, n, chance).pvalue
        print(f"{yes:,} of {n:,} at {chance}: p = {p:.3f}")
        assert p > ALARM


# The gap on new rows ------------------------------------------------------------------------------

LAWS = (BetaLaw(1.5, 2.5), BetaLaw(2.1, 2.5))
SHARES = (0.7, 0.3)
RATE = 0.3
SIZES = (1_000, 4_000, 16_000, 64_000, 256_000)
REPLICATES = 400


@functools.cache
def gaps(ramp_width):
    """Gaps of fitted rules in the population and on equally many new rows, each of shape (sizes, replicates)."""
    rng = np.random.default_rng(0)
    true, fresh = np.empty((2, len(SIZES), REPLICATES))
    for i, n in enumerate(SIZES):
        sizes = [round(share * n) for share in SHARES]
        groups = np.repeat([0, 1], sizes)
        for j in range(REPLICATES):
            rows, more = (
                np.concatenate([law.draw(rng, m) for law, m in zip(LAWS, sizes, strict=True)]) for _ in range(2)
            )
            rule = quiet_fit(rows, groups, target_rate=RATE, ramp_width=ramp_width)
            a, b = (law.true_rate(ramp, (1.0, 0.0)) for law, ramp in zip(LAWS, rule.ramps, strict=True))
            true[i, j] = abs(a - b)
            rates = np.bincount(groups, rule.probabilities(more, groups)) / sizes
            fresh[i, j] = abs(rates[0] - rates[1])
    return true, fresh


@pytest.mark.parametrize("ramp_width", [0.0, 0.01])
@pytest.mark.parametrize("where", ["population", "fresh rows"])
def test_gap_shrinks_with_the_square_root_of_the_rows(ramp_width, where):
    found = gaps(ramp_width)[where == "fresh rows"].mean(axis=1)
    # A gap is |N(0, σ²)|, whose mean has a relative error of √(π/2 − 1)/√R; the error of the slope follows.
    x = np.log(SIZES) - np.mean(np.log(SIZES))
    error = np.sqrt((np.pi / 2 - 1) / REPLICATES) / np.sqrt(x @ x)
    slope = float(x @ np.log(found) / (x @ x))
    print(f"slope {slope:.4f} ± {error:.4f}; gap·√n: {', '.join(f'{v:.3f}' for v in found * np.sqrt(SIZES))}")
    assert abs(slope + 0.5) < stats.norm.isf(ALARM / 2) * error


@pytest.mark.parametrize("where", ["population", "fresh rows"])
def test_gap_size_matches_theory(where):
    found = gaps(0.0)[where == "fresh rows"].mean(axis=1)
    fresh = 2 if where == "fresh rows" else 1  # variance from the fit rows, and again from the new rows
    sigma = np.sqrt(fresh * RATE * (1 - RATE) * sum(1 / (share * np.array(SIZES)) for share in SHARES))
    ratio = found / (sigma * np.sqrt(2 / np.pi))
    error = np.sqrt((np.pi / 2 - 1) / REPLICATES)
    print("observed/theory:", ", ".join(f"{v:.3f}" for v in ratio), f"± {error:.3f}")
    assert (np.abs(ratio - 1) < stats.norm.isf(ALARM / 2) * error + 0.01).all()


# Certificates -------------------------------------------------------------------------------------

CASES = [
    Case(),
    Case(n=200, n_groups=3, target=0.4),
    Case(law="concentrated", n=4_000, n_groups=8),
    Case(n=20_000, n_groups=3, target=0.1),
    Case(ramp_width=0.01),
    Case(law="tied", ramp_width=0.01),
    Case(target="optimal", n=1_000),
    Case(max_gap=0.05, ramp_width=0.01, target="optimal"),
    Case(target="accuracy", n=1_000),
    Case(weight=(0.2, 2.0), n=1_000),
]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_certificates_cover_as_often_as_stated(case):
    replicates = 4_000 if case.is_uniform else 600
    found, certified, proven = simulate(case, replicates, seed=4)
    coverage = float(np.mean(found <= certified))
    print(f"{replicates} replicates: covered {coverage:.4f}")
    assert coverage >= fewest_covered(replicates, NOMINAL if case.is_exact else APPROXIMATE, ALARM)
    if case.is_exact and case.n >= 2_000:  # in small groups, rounding to a row errs on the safe side
        assert coverage <= stats.binom.isf(ALARM, replicates, NOMINAL) / replicates
    if case.weight[1] == 0:
        assert np.mean(found <= proven) >= fewest_covered(replicates, NOMINAL, ALARM)
