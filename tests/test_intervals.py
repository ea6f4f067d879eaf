"""Confidence limits compared with scipy, statsmodels, published formulas and exact binomial coverage."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fairramp.core.intervals import effective_rows, gap_interval, kl_interval, ratio_interval, wilson_interval

COUNTS = [(0, 10), (1, 10), (5, 10), (10, 10), (3, 1_000), (481, 1_000), (999, 1_000), (7, 7)]


def arrays(*columns):
    return tuple(np.array(column, dtype=np.float64) for column in columns)


def wilson(count, n, confidence=0.95):
    """Wilson limits of one rate from scipy."""
    return stats.binomtest(count, n).proportion_ci(confidence, method="wilson")


# One rate -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_wilson_limits_match_scipy(confidence):
    counts, n = arrays(*zip(*COUNTS, strict=True))
    lower, upper = wilson_interval(counts / n, n, confidence)
    for i, (count, rows) in enumerate(COUNTS):
        assert (lower[i], upper[i]) == pytest.approx(tuple(wilson(count, rows, confidence)), abs=1e-12)


def test_wilson_limits_reach_exactly_0_at_rate_0_and_1_at_rate_1():
    lower, upper = wilson_interval(*arrays([0, 1], [30, 30]), 0.95)
    assert lower[0] == 0
    assert upper[1] == 1
    assert 0 < upper[0] < 0.2
    assert upper[0] == pytest.approx(1 - lower[1])


WEIGHTS = {
    "a tenth at 20": lambda rng, shape: np.where(rng.random(shape) < 0.1, 20.0, 1.0),
    "lognormal": lambda rng, shape: rng.lognormal(0.0, 2.0, shape),
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(("rate", "n"), [(0.05, 200), (0.01, 200), (0.2, 50), (0.5, 50)])
def test_limits_of_weighted_rates_cover(weights, rate, n):
    # Using the variance alone, coverage would be 0.59 to 0.88: heavy rows fall on one side by chance.
    rng = np.random.default_rng(3)
    h = (rng.random((2_000, n)) < rate).astype(float)
    v = WEIGHTS[weights](rng, h.shape)
    v /= v.sum(axis=1, keepdims=True)
    r = (v * h).sum(axis=1)
    spread = (v**2 * (h - r[:, None]) ** 2).sum(axis=1)
    lower, upper = wilson_interval(r, effective_rows(r, (v**2).sum(axis=1), spread), 0.95)
    assert 0.93 <= np.mean((lower <= rate) & (rate <= upper)) <= 0.99


def divergence(r, u):
    return float(stats.entropy([r, 1 - r], [u, 1 - u]))


@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-6])
def test_kl_limits_solve_n_times_divergence_equals_budget(delta):
    rates, n = arrays([0.5, 0.1, 0.93, 0.004], [20, 1_000, 333, 50_000])
    for limit in kl_interval(rates, n, delta):
        found = [rows * divergence(r, u) for r, u, rows in zip(rates, limit, n, strict=True)]
        assert found == pytest.approx([math.log(1 / delta)] * 4, rel=1e-6)
    lower, upper = kl_interval(rates, n, delta)
    assert np.all((lower > 0) & (lower < rates) & (rates < upper) & (upper < 1))


def test_kl_limits_of_rates_0_and_1_have_closed_forms():
    # n · ln(1/(1 − u)) = ln(1/δ)  →  u = 1 − δ^(1/n)
    lower, upper = kl_interval(*arrays([0, 1, 0], [40, 40, 1]), 0.05)
    assert lower[0] == lower[2] == 0
    assert upper[1] == 1
    assert upper[0] == pytest.approx(1 - 0.05 ** (1 / 40))
    assert lower[1] == pytest.approx(0.05 ** (1 / 40))
    assert upper[2] == pytest.approx(0.95)


def test_kl_limits_are_nested_in_delta_and_in_rows():
    rates, n = arrays([0.0, 0.2, 0.5, 1.0], [50, 50, 50, 50])
    wide, narrow = kl_interval(rates, n, 0.01), kl_interval(rates, n, 0.2)
    assert np.all(wide[0] <= narrow[0])
    assert np.all(wide[1] >= narrow[1])
    assert np.all(wide[1] - wide[0] > narrow[1] - narrow[0])
    more = kl_interval(rates, 4 * n, 0.01)
    assert np.all(more[1] - more[0] < wide[1] - wide[0])


@pytest.mark.parametrize("delta", [0.2, 0.05, 0.005])
@pytest.mark.parametrize("n", [1, 5, 30, 200])
def test_kl_limits_miss_a_rate_with_probability_at_most_delta_per_side(n, delta):
    counts = np.arange(n + 1)
    lower, upper = kl_interval(counts / n, np.full(n + 1, float(n)), delta)
    for true in (0.003, 0.05, 0.31, 0.5, 0.77, 0.96, 0.999):
        mass = stats.binom.pmf(counts, n, true)
        assert mass[lower > true].sum() <= delta
        assert mass[upper < true].sum() <= delta
    # Wider than Clopper-Pearson, whose limits are the shortest with this guarantee.
    for count in counts:
        exact = stats.binomtest(int(count), n).proportion_ci(1 - 2 * delta, method="exact")
        assert lower[count] <= exact.low + 1e-12
        assert upper[count] >= exact.high - 1e-12


# The gap ------------------------------------------------------------------------------------------


def newcombe(first, second, confidence=0.95):
    """Newcombe's method 10 for r₁ − r₂, from counts and rows of each."""
    (x1, n1), (x2, n2) = first, second
    (l1, u1), (l2, u2) = wilson(x1, n1, confidence), wilson(x2, n2, confidence)
    r1, r2 = x1 / n1, x2 / n2
    return (
        r1 - r2 - math.sqrt((r1 - l1) ** 2 + (u2 - r2) ** 2),
        r1 - r2 + math.sqrt((u1 - r1) ** 2 + (r2 - l2) ** 2),
    )


#: (x₁, n₁), (x₂, n₂) and the 95% limits in Newcombe (1998, Table II, method 10).
PUBLISHED = [
    ((56, 70), (48, 80), (0.0524, 0.3339)),
    ((9, 10), (3, 10), (0.1705, 0.8090)),
    ((10, 10), (0, 20), (0.6791, 1.0)),
    ((10, 10), (0, 10), (0.6075, 1.0)),
]


@pytest.mark.parametrize(("first", "second", "limits"), PUBLISHED)
def test_gap_of_two_groups_has_newcombes_published_limits(first, second, limits):
    (x1, n1), (x2, n2) = first, second
    for order in (slice(None), slice(None, None, -1)):
        rates, n = arrays([x1 / n1, x2 / n2][order], [n1, n2][order])
        assert gap_interval(rates, n, 0.95) == pytest.approx(limits, abs=5.1e-5)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_gap_of_two_groups_matches_statsmodels(confidence):
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    for (x1, n1), (x2, n2) in [((56, 70), (48, 80)), ((400, 1_000), (290, 900)), ((9, 10), (3, 10))]:
        expected = proportion.confint_proportions_2indep(
            x1, n1, x2, n2, method="newcomb", compare="diff", alpha=1 - confidence
        )
        found = gap_interval(*arrays([x1 / n1, x2 / n2], [n1, n2]), confidence)
        assert found == pytest.approx(tuple(expected), abs=1e-9)


def test_gap_that_may_be_0_has_lower_limit_0_and_the_larger_upper_limit():
    groups = (30, 100), (33, 120)
    rates, n = arrays([x / n for x, n in groups], [n for _, n in groups])
    low, high = gap_interval(rates, n, 0.95)
    one, other = newcombe(*groups), newcombe(*groups[::-1])
    assert low == 0
    assert high == pytest.approx(max(one[1], other[1]))


def candidate_pairs(strata, confidence):
    """Ordered pairs (high, low) of groups that can be the extremes of a stratum, by simultaneous limits at δ/10.

    A stratum is a list of (count, rows).
    """
    n_groups = sum(map(len, strata))
    found = []
    for groups in strata:
        limits = [wilson(*group, 1 - (1 - confidence) / 10 / n_groups) for group in groups]
        best_low, worst_high = max(low for low, _ in limits), min(high for _, high in limits)
        found += [
            (groups[i], groups[j])
            for i, j in itertools.permutations(range(len(groups)), 2)
            if limits[i][1] >= best_low and limits[j][0] <= worst_high
        ]
    return found


def per_pair(pairs, confidence):
    """Confidence for each pair when 0.9 δ is shared among them; both orders of two groups are one pair."""
    return 1 - 0.9 * (1 - confidence) / len({frozenset(pair) for pair in pairs})


def some_strata(sizes, seed, low=0.1, high=0.9):
    """Strata with different counts, as lists and as arrays."""
    rng = np.random.default_rng(seed)
    n = rng.integers(40, 900, sum(sizes)).tolist()
    counts = rng.binomial(n, rng.uniform(low, high, len(n))).tolist()
    groups = list(zip(counts, n, strict=True))
    assert len(set(groups)) == len(groups)
    cells = np.repeat(np.arange(len(sizes)), sizes)
    ends = np.cumsum(sizes)
    strata = [groups[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    return strata, arrays(np.divide(counts, n), n), cells


STRATA = pytest.mark.parametrize("sizes", [(3,), (4,), (7,), (2, 2), (3, 1, 4), (1, 1, 5)])


@STRATA
@pytest.mark.parametrize("confidence", [0.9, 0.95])
@pytest.mark.parametrize("spread", [(0.1, 0.9), (0.3, 0.4)])
def test_upper_limit_is_uncorrected_and_lower_limit_shared_by_possible_extremes(sizes, confidence, spread):
    strata, (rates, n), cells = some_strata(sizes, len(sizes), *spread)
    every = [pair for groups in strata for pair in itertools.permutations(groups, 2)]
    pairs = candidate_pairs(strata, confidence)
    low = max(newcombe(*pair, per_pair(pairs, confidence))[0] for pair in pairs)
    high = max(newcombe(*pair, confidence)[1] for pair in every)
    found = gap_interval(rates, n, confidence, cells if len(sizes) > 1 else None)
    assert found == pytest.approx((max(0, low), min(1, high)), abs=1e-9)


def test_groups_in_the_middle_do_not_widen_the_limits():
    rates, n = arrays([0.1, 0.3, 0.32, 0.31, 0.6], [2_000] * 5)
    low, high = gap_interval(rates, n, 0.95)
    two = gap_interval(rates[[0, 4]], n[[0, 4]], 0.95)
    assert high == two[1]
    assert two[0] - 0.001 < low < two[0]  # the tenth of δ spent on finding the two


@pytest.mark.parametrize("rates", [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.5, 1.0)])
def test_limits_for_rates_0_and_1_stay_within_0_to_1(rates):
    low, high = gap_interval(*arrays(rates, [50] * len(rates)), 0.95)
    assert 0 <= low <= max(rates) - min(rates) <= high <= 1
    assert high > 0


def test_one_group_has_gap_0_and_ratio_1():
    rates, n = arrays([0.4], [50])
    assert gap_interval(rates, n, 0.95) == (0.0, 0.0)
    assert ratio_interval(rates, n, 0.95) == (1.0, 1.0)


def covered(interval, truth, true_rates, n, seed, replicates=4_000):
    rng = np.random.default_rng(seed)
    rows = np.array(n, dtype=np.float64)
    hits = 0
    for counts in rng.binomial(n, true_rates, (replicates, len(n))):
        low, high = interval(counts / rows, rows, 0.95)
        hits += low - 1e-12 <= truth <= high + 1e-12
    return hits / replicates


LAWS = [
    ((0.5, 0.3), (80, 120)),
    ((0.1, 0.25), (100, 60)),
    ((0.4, 0.45, 0.6), (150, 150, 60)),
    ((0.3,) * 5, (400,) * 5),
    ((0.1, 0.15, 0.2, 0.25, 0.3), (5_000,) * 5),
    ((0.02, 0.06, 0.06, 0.06, 0.1), (2_000, 30, 5_000, 500, 2_000)),
]
#: Cases with clear extremes, where the limits are as sharp as for two groups.
CLEAR = [law for law in LAWS if len(law[1]) == 2 or law[1][0] == 5_000]


@pytest.mark.parametrize(("true_rates", "n"), LAWS)
def test_gap_limits_cover(true_rates, n):
    # Newcombe's own coverage is 0.94 to 0.96 here; with more possible extremes, coverage is higher.
    coverage = covered(gap_interval, max(true_rates) - min(true_rates), true_rates, n, seed=1)
    assert 0.935 <= coverage <= (0.965 if (true_rates, n) in CLEAR else 1)


# The ratio ----------------------------------------------------------------------------------------


def fieller_like(first, second, confidence=0.95):
    """Limits of r₁/r₂: the q at which 0 lies on a limit of r₁ − q·r₂ (MOVER), by root finding.

    lower limit of r₁ − q·r₂ :  r₁ − q r₂ − √((r₁ − l₁)² + q² (u₂ − r₂)²),   upper likewise.
    """
    from scipy.optimize import brentq

    (x1, n1), (x2, n2) = first, second
    (l1, u1), (l2, u2) = wilson(x1, n1, confidence), wilson(x2, n2, confidence)
    r1, r2 = x1 / n1, x2 / n2
    low = brentq(lambda q: r1 - q * r2 - math.hypot(r1 - l1, q * (u2 - r2)), 0, r1 / r2)
    high = brentq(lambda q: r1 - q * r2 + math.hypot(u1 - r1, q * (r2 - l2)), r1 / r2, 1e3)
    return low, high


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(
    ("first", "second"), [((30, 100), (60, 120)), ((8, 40), (25, 50)), ((100, 1_000), (333, 900))]
)
def test_ratio_limits_of_two_groups_match_root_finding(first, second, confidence):
    for pair in ((first, second), (second, first)):
        rates, n = arrays([x / n for x, n in pair], [n for _, n in pair])
        expected = fieller_like(first, second, confidence)
        assert ratio_interval(rates, n, confidence) == pytest.approx(expected, rel=1e-9)


def test_ratio_limits_approach_katz_limits_in_large_samples():
    # Katz: exp(ln q ± z·√((1 − r₁)/(n₁r₁) + (1 − r₂)/(n₂r₂))).
    rates, n = arrays([0.2, 0.4], [20_000, 30_000])
    error = math.sqrt(0.8 / (20_000 * 0.2) + 0.6 / (30_000 * 0.4))
    z = stats.norm.ppf(0.975)
    expected = 0.5 * math.exp(-z * error), 0.5 * math.exp(z * error)
    assert ratio_interval(rates, n, 0.95) == pytest.approx(expected, rel=1e-3)


@STRATA
def test_ratio_limits_of_many_groups_mirror_the_gap_limits(sizes):
    strata, (rates, n), cells = some_strata(sizes, len(sizes), 0.2, 0.8)
    every = [pair for groups in strata for pair in itertools.permutations(groups, 2)]
    pairs = candidate_pairs(strata, 0.95)
    low = min(fieller_like(*pair)[0] for pair in every)
    high = min(fieller_like(lowest, highest, per_pair(pairs, 0.95))[1] for highest, lowest in pairs)
    found = ratio_interval(rates, n, 0.95, cells if len(sizes) > 1 else None)
    assert found == pytest.approx((low, min(1, high)), rel=1e-9)


@pytest.mark.parametrize(("true_rates", "n"), LAWS)
def test_ratio_limits_cover(true_rates, n):
    coverage = covered(ratio_interval, min(true_rates) / max(true_rates), true_rates, n, seed=2)
    assert 0.935 <= coverage <= (0.975 if (true_rates, n) in CLEAR else 1)


@pytest.mark.parametrize(
    "rates", [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.3), (0.02, 1.0), (0.0, 0.5, 1.0), (0.01, 0.01)]
)
@pytest.mark.parametrize("rows", [3, 50, 10_000])
def test_ratio_limits_for_extreme_rates_contain_the_ratio(rates, rows):
    low, high = ratio_interval(*arrays(rates, [rows] * len(rates)), 0.95)
    ratio = min(rates) / max(rates) if max(rates) > 0 else 1.0
    assert 0 <= low <= ratio + 1e-12
    assert ratio - 1e-12 <= high <= 1
    assert low < high
