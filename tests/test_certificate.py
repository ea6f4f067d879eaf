"""Certificates use the right formula and claim a theorem only where it applies; checks on new rows."""

import itertools
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

import fairramp
from fairramp import FairrampError, InputError, Ramp, Rule, fit_rule, rows_needed
from fairramp.core.pairs import pair_factor
from fairramp.core.words import upward_points
from fairramp.measure.bounds import theorem_1_bound, theorem_2_bound
from fairramp.measure.parts import Comparison
from fairramp.measure.verdict import Verdict
from samples import quiet_fit

SIZES = (700, 400, 250)


def scores_and_groups(sizes=SIZES, seed=0):
    """Continuous scores with a different distribution in each group."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    return rng.beta(2.0 + 0.2 * groups, 3.0), groups


def fitted(sizes=SIZES, seed=0, **options):
    scores, groups = scores_and_groups(sizes, seed)
    return quiet_fit(scores, groups, **({"target_rate": 0.3, "ramp_width": 0} | options))


def bounds(rule, confidence=0.95):
    """Bounds by name."""
    return {bound.name: bound for bound in rule.certificate(confidence).bounds}


def theorems(rule):
    return {kind for kind, bound in bounds(rule).items() if bound.is_theorem}


def range_quantile(lowest, highest, confidence, n_draws=400_000, seed=1):
    """1 − δ quantile of max − min over one Beta draw per group, by drawing.

    Two laws per group, one for the smallest and one for the largest, are driven by the same uniform; the
    group with the smallest draw does not count for the largest.
    """
    rng = np.random.default_rng(seed)
    if lowest == highest:
        draws = np.column_stack([rng.beta(*law, n_draws) for law in lowest])
        return np.quantile(np.ptp(draws, axis=1), confidence)
    uniform = rng.random((n_draws, len(lowest)))
    low = np.column_stack([stats.beta(*law).ppf(u) for law, u in zip(lowest, uniform.T, strict=True)])
    high = np.column_stack([stats.beta(*law).ppf(u) for law, u in zip(highest, uniform.T, strict=True)])
    smallest = low.argmin(axis=1)[:, None]
    np.put_along_axis(high, smallest, -np.inf, axis=1)
    return np.quantile(high.max(axis=1) - low.min(axis=1), confidence)


# Which bound is a theorem -------------------------------------------------------------------------


def test_beta_is_a_theorem_for_a_numeric_target_without_gap_ramp_ties_or_weights():
    rule = fitted()
    assert theorems(rule) == {"beta", "kl", "pairs", "dkw", "theorem_1"}
    certificate = rule.certificate()
    assert certificate.estimated == certificate.proven == bounds(rule)["beta"].limit


LABELS = np.random.default_rng(7).integers(0, 2, sum(SIZES))


@pytest.mark.parametrize(
    ("broken", "proven"),
    [
        ({"max_gap": 0.05}, {"kl", "pairs", "dkw", "theorem_1"}),
        ({"min_ratio": 0.8}, {"kl", "pairs", "dkw"}),
        ({"ramp_width": 0.01}, {"kl", "pairs", "dkw", "theorem_1"}),
        ({"ramp_width": 0.01, "ramp": "paper"}, {"kl", "pairs", "dkw", "theorem_1"}),
        ({"ramp_width": 0.3, "max_gap": 0.05}, {"kl", "pairs", "dkw", "theorem_1"}),
        ({"target_rate": "optimal"}, {"pairs", "dkw", "theorem_1"}),
        ({"target_rate": "accuracy", "labels": LABELS}, {"pairs", "dkw", "theorem_1"}),
        ({"target_rate": "base_rate", "labels": LABELS}, {"pairs", "dkw", "theorem_1"}),
        ({"target_rate": "optimal", "ramp_width": 0.01, "max_gap": 0.05}, {"pairs", "dkw", "theorem_1"}),
        ({"sample_weight": np.linspace(1, 2, sum(SIZES))}, set()),
        ({"sample_weight": np.linspace(1, 2, sum(SIZES)), "target_rate": "optimal"}, set()),
    ],
)
def test_breaking_a_condition_keeps_only_the_theorems_that_do_not_need_it(broken, proven):
    assert theorems(fitted(**broken)) == proven


def test_ties_at_a_threshold_leave_kl_dkw_and_theorem_1():
    scores, groups = scores_and_groups()
    tied = fit_rule(scores.round(2), groups, target_rate=0.3, ramp_width=0)
    assert theorems(tied) == {"kl", "pairs", "dkw", "theorem_1"}
    # Ties in one group are enough.
    scores[groups == 1] = scores[groups == 1].round(1)
    assert theorems(fit_rule(scores, groups, target_rate=0.3, ramp_width=0)) == {
        "kl",
        "pairs",
        "dkw",
        "theorem_1",
    }


def on_the_cutoff(n=400, rate=0.3, groups=2):
    """Each group already has that rate, so its threshold is the cutoff, which is not a score."""
    n_yes = round(n * rate)
    one = np.concatenate([np.linspace(0.51, 0.99, n_yes), np.linspace(0.01, 0.49, n - n_yes)])
    return np.tile(one, groups), np.repeat(np.arange(groups), n)


def test_a_threshold_between_fit_scores_is_not_exact_and_uses_the_wider_law():
    rule = fit_rule(*on_the_cutoff(), target_rate=0.3, ramp_width=0)
    assert list(rule.thresholds) == [0.5, 0.5]
    beta = bounds(rule)["beta"]
    assert not beta.is_theorem
    expected = range_quantile([(120, 281)] * 2, [(121, 280)] * 2, 0.95)
    assert beta.limit == pytest.approx(expected, rel=0.01)


def test_theorem_1_as_printed_is_never_a_theorem():
    for options in ({}, {"ramp_width": 0.01}, {"target_rate": "optimal"}, {"max_gap": 0.1}):
        assert not bounds(fitted(**options))["theorem_1_as_printed"].is_theorem


def test_within_strata_and_for_thresholds_found_by_descent_there_is_no_theorem_1():
    within = fitted(strata=np.arange(sum(SIZES)) % 2, target_rate="optimal")
    assert bounds(within).keys() == {"beta", "kl", "pairs", "dkw"}
    descent = fitted(solver="sgd", ramp_width=0.05)
    assert bounds(descent).keys() == {"pairs", "dkw"}


def test_proven_is_the_smallest_theorem_and_estimated_never_exceeds_it():
    for options in ({}, {"ramp_width": 0.01}, {"target_rate": "optimal"}, {"max_gap": 0.1, "ramp_width": 0.3}):
        certificate = fitted(**options).certificate()
        every = [bound.limit for bound in certificate.bounds]
        assert every == sorted(every)
        assert certificate.proven == min(bound.limit for bound in certificate.bounds if bound.is_theorem)
        assert certificate.estimated == min(certificate.proven, bounds(fitted(**options))["beta"].limit)
        assert all(bound.is_theorem == (bound.why_not == ()) for bound in certificate.bounds)


def said(certificate):
    return " ".join(str(certificate).split())


def points(gap):
    """In points, with one decimal, never rounded down."""
    return f"{math.ceil(gap * 1000 - 1e-9) / 10:.1f} points"


def test_the_text_states_both_limits_their_confidence_and_assumptions():
    exact = fitted().certificate()
    assert said(exact).startswith(f"Gap in the population: proven limit {points(exact.proven)} (95% confidence).")
    assert f"The uncertainty is largest for group {np.argmin(SIZES)} ({min(SIZES):,} fit rows)." in said(exact)
    assert said(exact).endswith("No two people may share a score.")
    approximate = fitted(target_rate="optimal").certificate(0.9)
    assert said(approximate).startswith(
        f"Gap in the population: estimated limit {points(approximate.estimated)}, proven limit "
        f"{points(approximate.proven)} (90% confidence)."
    )
    assert all(len(line) <= 80 for line in str(approximate).split("\n"))


@given(gap=st.floats(0, 1))
def test_printed_limits_are_never_rounded_down(gap):
    shown = float(upward_points(gap).removesuffix(" points"))
    assert 100 * gap - 1e-6 <= shown <= 100 * gap + 0.1 + 1e-6


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        ({"ramp_width": 0.01}, "the ramp"),
        ({"max_gap": 0.1, "ramp_width": 0.01}, "the ramp and the allowed gap"),
        ({"min_ratio": 0.8, "ramp_width": 0.01}, "the ramp and the allowed ratio"),
        ({"target_rate": "optimal"}, "a target rate learned from the rows"),
        ({"sample_weight": np.linspace(1, 2, sum(SIZES))}, "the row weights"),
        ({"ramp_width": 0.01, "target_rate": "optimal"}, "the ramp and a target rate learned from the rows"),
    ],
)
def test_the_text_says_why_the_estimated_limit_is_approximate(options, reasons):
    certificate = fitted(**options).certificate()
    assert certificate.estimated != certificate.proven
    assert f"The estimated limit is approximate because of {reasons}." in said(certificate)


def test_tied_scores_make_the_estimated_limit_approximate():
    scores, groups = scores_and_groups()
    certificate = quiet_fit(scores.round(2), groups, target_rate=0.3, ramp_width=0).certificate()
    assert certificate.estimated < certificate.proven
    assert "because of a threshold that is not the score of exactly one row." in said(certificate)


def test_a_proven_narrow_limit_on_one_gap_takes_one_sentence():
    certificate = fitted((20_000, 20_000)).certificate()
    limit = f"proven limit {points(certificate.proven)} (95% confidence)."
    assert certificate.sentences() == [f"Gap in the population: {limit}"]
    assert certificate.widest_for is None


def test_confidence_is_never_rounded_up_to_certainty():
    assert "(99.9% confidence)" in said(fitted().certificate(0.999))


def test_too_few_rows_give_no_limit_and_the_text_says_so():
    nothing = replace(fitted().certificate(), estimated=1.0, proven=1.0)
    assert said(nothing).startswith("Gap in the population: these rows set no limit at 95% confidence.")
    few = replace(fitted(target_rate="optimal").certificate(), proven=1.0)
    assert "too few rows for a proven limit (95% confidence)" in said(few)


def test_a_weighted_certificate_prints_without_a_proven_limit():
    certificate = fitted(sample_weight=np.linspace(1, 2, sum(SIZES))).certificate()
    assert certificate.proven is None
    limits = f"{points(certificate.estimated)}, no proven limit for weighted rows"
    assert f"{limits} (95% confidence)" in said(certificate)
    assert set(certificate.table()["proven"]) == {"no"}


# The formulas -------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("sizes", [(900, 300), SIZES, (2000, 50, 400, 400, 90, 1000, 333, 700)])
def test_beta_is_the_quantile_of_the_range_of_beta_draws(sizes, confidence):
    scores, groups = scores_and_groups(sizes)
    rule = fitted(sizes)
    laws = []
    for group, n in enumerate(sizes):
        m = int((scores[groups == group] >= rule.thresholds[group]).sum())
        assert abs(m - 0.3 * n) <= 1
        laws.append((m, n + 1 - m))
    n_draws = 1_000_000 if confidence > 0.99 else 400_000
    expected = range_quantile(laws, laws, confidence, n_draws)
    assert bounds(rule, confidence)["beta"].limit == pytest.approx(expected, rel=0.01)


def test_beta_with_a_ramp_rounds_selected_rows_up_and_uses_the_wider_law():
    rule = fitted((401, 333), ramp_width=0.05, target_rate=0.27)
    counts = [(n, math.ceil(0.27 * n)) for n in (401, 333)]
    lowest, highest = [(m, n + 1 - m) for n, m in counts], [(m + 1, n - m) for n, m in counts]
    assert bounds(rule)["beta"].limit == pytest.approx(range_quantile(lowest, highest, 0.95), rel=0.01)


@pytest.mark.parametrize("sizes", [(1_000, 1_000), (60, 700), (40, 90, 400)])
def test_pairs_hold_for_every_threshold_at_once(sizes):
    """Compare the largest deviation of a pair over all thresholds, for uniform scores, with its limit."""
    rng, n = np.random.default_rng(11), np.array(sizes, dtype=float)
    factor, draws = pair_factor(n, None, 0.8), 3_000
    above, below = [], []  # true rate minus sample rate, and the reverse, at the worst threshold
    for size in sizes:
        u = np.sort(rng.random((draws, size)), axis=1)
        step = np.arange(size + 1) / size
        above.append((np.column_stack([u, np.ones(draws)]) - step).max(axis=1))
        below.append((step[1:] - u).max(axis=1))
    pairs = itertools.permutations(range(len(n)), 2)
    kept = np.all([above[k] + below[m] <= factor * math.sqrt(1 / n[k] + 1 / n[m]) for k, m in pairs], axis=0)
    assert np.mean(kept) >= 0.8
    # The limit is not trivial: DKW holds far more often.
    assert np.mean(kept) <= 0.95


@pytest.mark.parametrize("sizes", [(8_094, 16_327), (1_000, 1_000), (1_800, 200)])
def test_pairs_are_far_below_dkw_for_two_groups(sizes):
    found = bounds(fitted(sizes, target_rate="optimal", ramp_width=0.01))
    assert found["pairs"].is_theorem
    assert found["pairs"].limit <= 0.85 * found["dkw"].limit


def test_pairs_are_the_convolution_of_two_massart_tails():
    c = pair_factor(np.array([500.0, 500.0]), None, 0.95)
    start = math.sqrt(math.log(2) / 2)
    tail = lambda x: 1.0 if x < start else math.exp(-2 * x * x)  # noqa: E731
    density = lambda y: 4 * y * math.exp(-2 * y * y) * tail(math.sqrt(2) * c - y)  # noqa: E731
    kink = math.sqrt(2) * c - start
    both = 0.5 * tail(kink) + integrate.quad(density, start, 6, points=[kink], limit=200)[0]
    assert 2 * both == pytest.approx(0.05, rel=0.01)
    assert 2 * both <= 0.05


def test_pairs_skip_pairs_across_strata_and_are_dropped_for_very_many_groups():
    rows = np.array([300.0, 500.0, 300.0, 500.0])
    within = pair_factor(rows, (0, 0, 1, 1), 0.95)
    assert pair_factor(rows[:2], None, 0.95) < within < pair_factor(rows, None, 0.95)
    assert within == pytest.approx(pair_factor(rows[:2], None, 0.975))
    assert pair_factor(np.array([300.0]), None, 0.95) == 0.0
    assert math.isinf(pair_factor(np.arange(30.0, 130.0), None, 0.95))


def test_beta_with_a_gap_draws_each_group_at_its_own_rate():
    scores, groups = scores_and_groups((900, 800))
    scores[groups == 1] **= 0.5
    rule = fit_rule(scores, groups, max_gap=0.1, target_rate=0.4, ramp_width=0)
    assert rule.record.rates["selection"].after == pytest.approx((0.35, 0.45))
    laws = [(315, 586), (360, 441)]
    assert bounds(rule)["beta"].limit == pytest.approx(range_quantile(laws, laws, 0.95), rel=0.01)
    assert bounds(rule)["beta"].limit > 0.1


def kl_divergence(r, u):
    return float(stats.entropy([r, 1 - r], [u, 1 - u]))


def kl_limits(rate, n, delta):
    """Where n·KL(r ‖ u) = ln(1/δ), on either side."""
    miss = lambda u: n * kl_divergence(rate, u) - math.log(1 / delta)  # noqa: E731
    return optimize.brentq(miss, 1e-12, rate), optimize.brentq(miss, rate, 1 - 1e-12)


@pytest.mark.parametrize("max_gap", [0.0, 0.05])
@pytest.mark.parametrize("ramp_width", [0.0, 0.02])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_kl_splits_delta_by_side_and_group_three_times_finer_with_a_gap(max_gap, ramp_width, confidence):
    rule = fitted(max_gap=max_gap, ramp_width=ramp_width)
    delta = (1 - confidence) / ((6 if max_gap else 2) * 3)
    pairs = zip(rule.record.rates["selection"].after, SIZES, strict=True)
    limits = [kl_limits(rate, n, delta) for rate, n in pairs]
    expected = max(up - low for i, (_, up) in enumerate(limits) for j, (low, _) in enumerate(limits) if i != j)
    assert bounds(rule, confidence)["kl"].limit == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("options", [{}, {"target_rate": "optimal", "ramp_width": 0.02}, {"max_gap": 0.05}])
def test_dkw_adds_each_groups_own_half_width(options):
    rule = fitted(**options)
    half = [math.sqrt(math.log(2 * 3 / 0.05) / (2 * n)) for n in SIZES]
    rates = rule.record.rates["selection"].after
    expected = max(
        min(rates[i] + half[i], 1) - max(rates[j] - half[j], 0) for i in range(3) for j in range(3) if i != j
    )
    assert bounds(rule)["dkw"].limit == pytest.approx(expected, abs=1e-12)


def test_limits_add_the_errors_of_rates_that_are_known_from_bins_only():
    scores, groups = scores_and_groups()
    summary = fairramp.summarize(scores, groups, resolution=64)
    rule = fairramp.fit_summary(summary, target_rate=0.3, ramp_width=0)
    rates, errors = np.array(rule.record.main.after), np.array(rule.record.main.error)
    assert errors.min() > 0
    half = np.sqrt(math.log(2 * 3 / 0.05) / (2 * np.array(SIZES)))
    apart = np.subtract.outer(rates + errors + half, rates - errors - half)
    assert bounds(rule)["dkw"].limit == pytest.approx(apart[~np.eye(3, dtype=bool)].max(), abs=1e-12)


def test_theorem_1_at_ten_thousand_rows():
    by_hand = 8 * math.sqrt(2 * (1 + math.log(5_000)) / 10_000) + 2 * math.sqrt(math.log(80) / 10_000)
    assert theorem_1_bound(10_000, 2, 0.0, 0.05) == pytest.approx(by_hand)
    assert round(theorem_1_bound(10_000, 2, 0.0, 0.05), 2) == 0.39
    assert theorem_1_bound(10_000, 2, 0.03, 0.05) == pytest.approx(by_hand + 0.03)


def test_theorem_1_uses_the_smallest_group_and_as_printed_all_rows():
    rule = fitted((30_000, 12_000), max_gap=0.01)
    assert bounds(rule)["theorem_1"].limit == pytest.approx(theorem_1_bound(12_000, 2, 0.01, 0.05))
    assert bounds(rule)["theorem_1_as_printed"].limit == pytest.approx(theorem_1_bound(42_000, 2, 0.01, 0.05))
    assert bounds(rule)["theorem_1_as_printed"].limit < bounds(rule)["theorem_1"].limit


def test_theorem_2_by_hand():
    # γ = 0.2: 2·0.2 + 8·(2 + 5)/100 + 0.03 + 4·√((4 + 2 ln 40)/10⁶)
    by_hand = 0.4 + 0.56 + 0.03 + 4 * math.sqrt((4 + 2 * math.log(40)) / 1e6)
    assert theorem_2_bound(1_000_000, 2, 0.1, 0.03, 0.05) == pytest.approx(by_hand)


def test_weights_count_as_effective_rows():
    scores, groups = scores_and_groups((3_000, 2_000))
    weights = 0.2 + 2 * scores
    rule = fit_rule(scores, groups, target_rate=0.4, ramp_width=0, sample_weight=weights)
    h = rule.probabilities(scores, groups)
    rows = []
    for group in (0, 1):
        w, x = weights[groups == group], h[groups == group]
        rate = np.average(x, weights=w)
        plug_in = rate * (1 - rate) * w.sum() ** 2 / np.sum((w * (x - rate)) ** 2)
        rows.append(min(plug_in, w.sum() ** 2 / np.sum(w**2)))
    half = [math.sqrt(math.log(4 / 0.05) / (2 * n)) for n in rows]
    assert bounds(rule)["dkw"].limit == pytest.approx(sum(half), rel=1e-9)
    assert sum(rows) < 5_000
    assert bounds(rule)["beta"].limit > bounds(fitted((3_000, 2_000), target_rate=0.4))["beta"].limit


@pytest.mark.parametrize("kind", ["beta", "kl", "dkw", "theorem_1"])
def test_bounds_never_shrink_with_more_confidence_or_fewer_rows(kind):
    large = fitted((40_000, 40_000))
    gaps = [bounds(large, confidence)[kind].limit for confidence in (0.5, 0.9, 0.95, 0.99)]
    assert gaps == sorted(gaps)
    assert gaps[0] < gaps[-1]
    assert bounds(fitted((20_000, 20_000)))[kind].limit > bounds(large)[kind].limit


def test_beta_is_smaller_than_kl_and_kl_than_dkw():
    found = bounds(fitted())
    assert found["beta"].limit < found["kl"].limit < found["dkw"].limit < found["theorem_1"].limit


def test_many_groups_get_a_union_bound_that_is_not_smaller():
    few, many = fitted((200,) * 64), fitted((200,) * 65)
    assert bounds(few)["beta"].limit < bounds(many)["beta"].limit < 1.3 * bounds(few)["beta"].limit


@pytest.mark.parametrize("ramp_width", [0, 0.01])
@pytest.mark.parametrize("rate", [0.0, 1.0])
@pytest.mark.parametrize("sizes", [(1_000, 1_000), SIZES])
def test_selecting_nobody_or_everybody_gives_a_small_nonzero_limit(sizes, rate, ramp_width):
    found = bounds(fitted(sizes, target_rate=rate, ramp_width=ramp_width))
    # None of n rows was selected: the true rate is below 1 − 0.05^(1/n) with 95% confidence.
    assert 0.5 * (1 - 0.05 ** (1 / min(sizes))) <= found["beta"].limit <= found["kl"].limit
    assert 0 < found["kl"].limit < 0.03


@pytest.mark.parametrize("ramp_width", [0, 0.01])
@pytest.mark.parametrize("factor", [0.4, -0.4])
def test_scores_on_one_side_of_the_cutoff_give_a_small_nonzero_limit(factor, ramp_width):
    # The threshold is the cutoff itself, far from every score.
    scores, groups = scores_and_groups((1_000, 1_000))
    rule = quiet_fit(factor * scores + (factor < 0), groups, target_rate=float(factor < 0), ramp_width=ramp_width)
    found = bounds(rule)
    assert 0.5 * (1 - 0.05 ** (1 / 1_000)) <= found["beta"].limit <= found["kl"].limit < 0.03


def test_a_group_that_selects_nobody_beside_one_that_selects_some():
    scores = np.concatenate([np.linspace(0, 0.4, 500), np.linspace(0, 1, 500)])
    rule = fit_rule(scores, np.repeat([0, 1], 500), target_rate=0.1, max_gap=0.2, ramp_width=0)
    assert rule.record.rates["selection"].after == pytest.approx((0.0, 0.2))
    found = bounds(rule)
    assert 0.2 < found["beta"].limit < found["kl"].limit < 0.3


def test_one_group_has_no_gap():
    for options in ({}, {"target_rate": "optimal"}, {"ramp_width": 0.01, "max_gap": 0.1}):
        found = bounds(fitted((500,), **options))
        assert [found[kind].limit for kind in ("beta", "kl", "dkw")] == [0.0, 0.0, 0.0]


def test_gaps_never_exceed_one():
    found = bounds(quiet_fit([0.1, 0.9, 0.4, 0.6], ["a", "a", "b", "b"], target_rate=0.5))
    assert all(0 <= bound.limit <= 1 for bound in found.values())


# Errors and files ---------------------------------------------------------------------------------


def test_a_rule_written_by_hand_has_no_certificate():
    rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    for ask in (rule.certificate, lambda: rule.check([0.1, 0.9], ["A", "B"])):
        with pytest.raises(
            FairrampError, match=r"^No certificate: the rule has no record of its fit rows, because .*\.$"
        ):
            ask()


def test_a_rule_from_cross_fitted_scores_has_no_certificate_and_the_error_says_why():
    rule = fitted()
    rule = replace(rule, record=replace(rule.record, cross_fitted=True))
    with pytest.raises(
        FairrampError,
        match=r"^No certificate from .* cross-fitted .* rule\.certificate\(scores=",
    ):
        rule.certificate()


@pytest.mark.parametrize("confidence", [0.2, 1.0, 95, None, True])
def test_confidence_must_be_at_least_a_half_and_below_one(confidence):
    with pytest.raises(InputError, match=r"^`confidence` must be (a number )?between 0\.5 and 0\.999999999"):
        fitted().certificate(confidence)


@pytest.mark.parametrize("options", [{}, {"max_gap": 0.05, "ramp_width": 0.01}, {"target_rate": "optimal"}])
def test_certificates_survive_saving(options, tmp_path):
    rule = fitted(**options)
    rule.save(tmp_path / "rule.json")
    assert Rule.load(tmp_path / "rule.json").certificate() == rule.certificate()


def test_a_weighted_certificate_survives_saving(tmp_path):
    rule = fitted(sample_weight=np.linspace(1, 2, sum(SIZES)))
    rule.save(tmp_path / "rule.json")
    assert Rule.load(tmp_path / "rule.json").certificate() == rule.certificate()


# How many rows ------------------------------------------------------------------------------------


def two_beta_probability(n, rate, gap):
    """P(both differ by at most gap) for two draws at a threshold that is no fit score, m = ⌈rate·n⌉."""
    rng, m = np.random.default_rng(3), math.ceil(rate * n - 1e-9)
    u = rng.random((150_000, 2))
    low, high = stats.beta(m, n + 1 - m).ppf(u), stats.beta(m + 1, n - m).ppf(u)
    one, other = high[:, 0] - low[:, 1], high[:, 1] - low[:, 0]
    return np.mean(np.maximum(one, other) <= gap)


@pytest.mark.parametrize(("gap", "rate"), [(0.05, 0.5), (0.1, 0.5), (0.05, 0.2), (0.02, 0.1)])
def test_rows_needed_are_the_fewest_that_certify_the_gap(gap, rate):
    n = rows_needed(max_gap=gap, n_groups=2, rate=rate)
    slack = max(4, math.ceil(0.02 * n))  # m is rounded up, and the oracle draws
    assert two_beta_probability(n + slack, rate, gap) >= 0.95
    assert two_beta_probability(n - slack, rate, gap) < 0.95


@pytest.mark.parametrize("n_groups", [2, 5])
@pytest.mark.parametrize("gap", [0.03, 0.1])
def test_rows_needed_for_the_proven_limit_match_its_formula(gap, n_groups):
    n = rows_needed(max_gap=gap, n_groups=n_groups, limit="proven")
    limits = [
        pair_factor(np.full(n_groups, float(rows)), None, 0.95) * math.sqrt(2 / rows) for rows in (n, n - 1)
    ]
    assert limits[0] <= gap < limits[1]
    assert n < math.ceil(2 * math.log(2 * n_groups / 0.05) / gap**2)  # what DKW would need


@pytest.mark.parametrize("limit", ["estimated", "proven"])
@pytest.mark.parametrize("n_groups", [2, 3, 6])
def test_rows_needed_suffice_for_a_fit_and_slightly_fewer_do_not(n_groups, limit):
    n = rows_needed(max_gap=0.08, n_groups=n_groups, rate=0.4, limit=limit)

    def fit(rows):
        return fitted(
            (rows,) * n_groups,
            target_rate=0.4,
            ramp_width=0.01,
            max_gap=0.08,
            confidence=0.95,
            confidence_limit=limit,
        )

    assert fit(n).record.asked.max_gap == 0.08
    if limit == "estimated":  # the proven limit of a numeric target has a sharper theorem, which needs fewer rows
        with pytest.raises(InputError, match=r"of 8\.0 points cannot be guaranteed in the population"):
            fit(math.floor(0.95 * n))


def test_a_gap_on_the_fit_rows_needs_more_rows():
    by_gap = [rows_needed(0.05, 2, fit_gap=gap) for gap in (0.0, 0.01, 0.03)]
    assert by_gap == sorted(by_gap)
    assert by_gap[-1] > 2 * by_gap[0]
    with pytest.raises(InputError, match=r"`fit_gap` must be below `max_gap`, which is 0\.05, got 0\.05"):
        rows_needed(0.05, 2, fit_gap=0.05)


@pytest.mark.parametrize("limit", ["estimated", "proven"])
def test_rows_needed_fall_with_the_gap_and_grow_with_groups_and_confidence(limit):
    by_gap = [rows_needed(max_gap=gap, n_groups=3, limit=limit) for gap in (0.02, 0.05, 0.1, 0.3)]
    assert by_gap == sorted(by_gap, reverse=True)
    assert by_gap[0] > by_gap[-1]
    by_groups = [rows_needed(max_gap=0.1, n_groups=k, limit=limit) for k in (2, 3, 8)]
    assert by_groups == sorted(by_groups)
    assert by_groups[0] < by_groups[-1]
    by_confidence = [rows_needed(0.1, 2, c, limit=limit) for c in (0.8, 0.95, 0.99)]
    assert by_confidence == sorted(by_confidence)
    assert by_confidence[0] < by_confidence[-1]


def test_a_rate_of_a_half_needs_the_most_rows():
    by_rate = [rows_needed(0.05, 2, rate=rate) for rate in (0.05, 0.2, 0.5, 0.8, 0.95)]
    assert max(by_rate) == by_rate[2]
    assert by_rate[0] < by_rate[1] < by_rate[2] > by_rate[3] > by_rate[4]


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_rows_needed_to_select_nobody_or_everybody_are_few(rate):
    assert 1 <= rows_needed(0.05, 2, rate=rate) < rows_needed(0.05, 2, rate=0.5)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_gap": 0}, "`max_gap` must be between"),
        ({"max_gap": 2}, "`max_gap` must be between"),
        ({"n_groups": 0}, "`n_groups` must be an integer of at least 2, got 0"),
        ({"n_groups": 2.5}, "`n_groups` must be an integer of at least 2, got 2.5"),
        ({"n_groups": True}, "`n_groups` must be an integer of at least 2, got True"),
        ({"rate": 1.5}, "`rate` must be between"),
        ({"confidence": 0.1}, "`confidence` must be between"),
        ({"limit": "hoeffding"}, "`limit` must be one of 'estimated', 'proven', got 'hoeffding'"),
    ],
)
def test_rows_needed_rejects_invalid_arguments(options, sentence):
    with pytest.raises(InputError) as caught:
        rows_needed(**({"max_gap": 0.05, "n_groups": 2} | options))
    assert str(caught.value).startswith(sentence)


# Checks on new rows -------------------------------------------------------------------------------

#: Thresholds lie near the middle, so that a score of 0.99 is a sure yes and one of 0.01 a sure no.
MIDDLE = fitted((2_000, 2_000), target_rate=0.4, ramp_width=0.01)


def new_rows(rng, rates, n):
    """Rows whose true selection rate in each group is known."""
    scores = np.where(rng.random((len(rates), n)) < np.array(rates)[:, None], 0.99, 0.01)
    return scores.ravel(), np.repeat(np.arange(len(rates)), n)


def alarm_rate(rule, rates, n, replicates, seed):
    rng = np.random.default_rng(seed)
    return np.mean([rule.check(*new_rows(rng, rates, n)).has_drifted for _ in range(replicates)])


@pytest.mark.parametrize("options", [{}, {"target_rate": "optimal"}, {"ramp_width": 0.05, "max_gap": 0.03}])
@pytest.mark.parametrize("seed", range(5))
def test_new_rows_from_the_same_population_show_no_drift(options, seed):
    check = fitted((2_000, 1_000), **options).check(*scores_and_groups((3_000, 4_000), seed=100 + seed))
    assert not check.has_drifted
    low, high = check.gap_interval
    assert 0 <= low <= check.gap <= high <= 1
    said = {"within": "The gap is within", "undecided": "No sign that the gap exceeds"}[check.verdict]
    kind = "estimated" if options else "proven"  # the law of the rank is exact here
    assert str(check).startswith(f"{said} the {kind} limit of ")


@pytest.mark.parametrize("options", [{}, {"target_rate": "optimal"}, {"ramp_width": 0.05, "max_gap": 0.03}])
def test_a_shift_in_one_groups_scores_is_detected(options):
    scores, groups = scores_and_groups((3_000, 4_000), seed=100)
    scores[groups == 1] = np.minimum(scores[groups == 1] + 0.25, 1)
    check = fitted((2_000, 1_000), **options).check(scores, groups)
    assert check.has_drifted
    assert check.gap_interval[0] > check.limit
    assert str(check).startswith(f"Above the {'estimated' if options else 'proven'} limit of ")


def newcombe(rates, rows):
    """Newcombe's limits of the difference of two rates, from SciPy's Wilson intervals."""
    limits = [
        stats.binomtest(round(rate * n), n).proportion_ci(0.95, method="wilson")
        for rate, n in zip(rates, rows, strict=True)
    ]
    (r1, one), (r2, other) = sorted(zip(rates, limits, strict=True), key=lambda pair: -pair[0])
    low = r1 - r2 - np.hypot(r1 - one.low, other.high - r2)
    return max(low, 0), r1 - r2 + np.hypot(one.high - r1, r2 - other.low)


def test_a_check_reports_the_gap_in_expectation_and_the_estimated_limit():
    scores, groups = scores_and_groups((3_000, 4_000), seed=100)
    check = MIDDLE.check(scores, groups)
    h = MIDDLE.probabilities(scores, groups)
    assert check.rates == pytest.approx((h[groups == 0].mean(), h[groups == 1].mean()))
    assert check.gap == pytest.approx(abs(np.subtract(*check.rates)))
    assert check.limit == MIDDLE.certificate().estimated
    assert check.groups == (0, 1)
    assert check.rows == (3_000, 4_000)
    # SciPy needs integer counts, which are at most half a row from the expected ones.
    assert check.gap_interval == pytest.approx(newcombe(check.rates, check.rows), abs=5e-4)


def test_false_alarms_are_rarer_than_stated_even_with_the_gap_at_its_limit():
    check = MIDDLE.check(*new_rows(np.random.default_rng(0), (0.4, 0.4), 500))
    assert check.false_alarm_rate == pytest.approx(0.1)
    at_the_edge = (0.4 - check.limit / 2, 0.4 + check.limit / 2)
    assert alarm_rate(MIDDLE, at_the_edge, 500, 150, seed=1) <= 0.1
    assert alarm_rate(MIDDLE, (0.4, 0.4), 500, 50, seed=2) <= 0.05


@pytest.mark.parametrize("n", [1_000, 10_000])
def test_the_detectable_gap_is_detected_about_nine_times_in_ten(n):
    """The other group's true rate varies with the fit, so each check draws it anew."""
    said = MIDDLE.check(*new_rows(np.random.default_rng(0), (0.4, 0.4), n)).table()
    for k, name in ((0, "detectable_below"), (1, "detectable_above")):
        rng, rate, found = np.random.default_rng(3), said[name][k], []
        for other in rng.beta(800, 1200, 150):
            found.append(MIDDLE.check(*new_rows(rng, (rate, other) if k == 0 else (other, rate), n)).has_drifted)
        assert 0.8 <= np.mean(found) <= 0.98  # 90%; fails four times in a thousand
        halfway = (rate + 0.4) / 2
        assert alarm_rate(MIDDLE, (halfway, 0.4) if k == 0 else (0.4, halfway), n, 30, seed=4) < 0.6


def test_the_detectable_gap_covers_the_smallest_group():
    rule = fitted((1_800, 200), target_rate=0.4, ramp_width=0.01)
    check = rule.check(*scores_and_groups((1_800, 200), seed=100))
    said, rng = check.table(), np.random.default_rng(5)
    for name in ("detectable_below", "detectable_above"):
        found = []
        for other in rng.beta(720, 1080, 150):
            rates = np.repeat([other, said[name][1]], (1_800, 200))
            scores = np.where(rng.random(2_000) < rates, 0.99, 0.01)
            found.append(rule.check(scores, np.repeat([0, 1], (1_800, 200))).has_drifted)
        assert 0.8 <= np.mean(found) <= 0.98
    others = check.rates_then[0]
    furthest = max(others - said["detectable_below"][1], said["detectable_above"][1] - others)
    assert furthest <= check.detectable_gap + 1e-12 <= 0.25


def test_detectable_gaps_with_two_thousand_rows():
    equal = fitted((1_000, 1_000), target_rate=0.5).check(*scores_and_groups((1_000, 1_000), seed=100))
    assert equal.detectable_gap <= 0.15
    unequal = fitted((1_800, 200), target_rate=0.2).check(*scores_and_groups((1_800, 200), seed=100))
    assert unequal.detectable_gap <= 0.2


def test_unreachable_rates_are_not_reported_as_detectable():
    rule = fitted((1_800, 200), target_rate=0.02)
    check = rule.check(*scores_and_groups((1_800, 200), seed=100))
    below, above = check.table()["detectable_below"], check.table()["detectable_above"]
    assert np.isnan(below).all()
    assert np.isfinite(above).all()
    assert check.detectable_gap == pytest.approx(max(above) - 0.02, abs=0.01)


def test_detectable_gap_of_thousands_of_groups_is_fast():
    rule = quiet_fit(np.random.default_rng(0).random(20_000), np.arange(20_000) % 1000, target_rate=0.5)
    check = rule.check(np.random.default_rng(1).random(20_000), np.arange(20_000) % 1000)
    assert math.isnan(check.detectable_gap)  # of twenty rows each
    assert "too few to detect drift in every group" in " ".join(repr(check).split())


@pytest.mark.parametrize("n", [1, 3, 5])
def test_few_rows_claim_no_power(n):
    check = MIDDLE.check(*new_rows(np.random.default_rng(0), (0.4, 0.4), n))
    assert math.isnan(check.detectable_gap)


def test_weights_of_new_rows_are_used():
    rng = np.random.default_rng(5)
    scores, groups = scores_and_groups((3_000, 4_000), seed=100)
    weights = rng.lognormal(size=len(scores))
    check = MIDDLE.check(scores, groups, sample_weight=weights)
    h = MIDDLE.probabilities(scores, groups)
    expected = [np.average(h[groups == g], weights=weights[groups == g]) for g in (0, 1)]
    assert check.rates == pytest.approx(expected)
    # Unequal weights count as fewer rows, so limits are wider.
    plain = MIDDLE.check(scores, groups)
    assert np.ptp(check.gap_interval) > np.ptp(plain.gap_interval)
    # Rows with zero weight are ignored.
    half = rng.random(len(scores)) < 0.5
    left_out = MIDDLE.check(scores, groups, sample_weight=half.astype(float))
    kept = MIDDLE.check(scores[half], groups[half])
    assert left_out.rates == pytest.approx(kept.rates)
    assert left_out.rows == kept.rows


def test_a_rule_fitted_with_weights_can_be_checked():
    rule = fitted(sample_weight=np.linspace(1, 2, sum(SIZES)))
    scores, groups = scores_and_groups(seed=100)
    weights = np.ones(len(scores))
    assert not rule.check(scores, groups, sample_weight=weights).has_drifted
    scores[groups == 1] = np.minimum(scores[groups == 1] + 0.4, 1)
    assert rule.check(scores, groups, sample_weight=weights).has_drifted
    with pytest.warns(fairramp.FairrampWarning, match="fitted with weights; pass `sample_weight`"):
        rule.check(scores, groups)
    with pytest.warns(fairramp.FairrampWarning, match="a monitor counts each row once"):
        rule.monitor()


def test_confidence_of_a_check_sets_its_false_alarms_and_widens_its_limits():
    rows = scores_and_groups((3_000, 4_000), seed=100)
    sure, unsure = MIDDLE.check(*rows, confidence=0.99), MIDDLE.check(*rows, confidence=0.8)
    assert sure.false_alarm_rate == pytest.approx(0.02)
    assert unsure.false_alarm_rate == pytest.approx(0.4)
    assert sure.gap_interval[1] > unsure.gap_interval[1]
    assert sure.detectable_gap > unsure.detectable_gap


def test_a_check_of_one_group_finds_no_gap():
    scores, groups = scores_and_groups((500, 500), seed=100)
    check = MIDDLE.check(scores[groups == 0], groups[groups == 0])
    assert (check.verdict, check.gap, check.gap_interval) == ("undecided", 0.0, (0.0, 0.0))
    assert math.isnan(check.detectable_gap)
    assert (check.pair, check.missing) == (None, (1,))
    assert check.sentence() == "Only group 0 has rows, so there is no gap."


def test_a_group_without_new_rows_is_named_and_left_undecided():
    rule = fitted((20_000, 20_000, 20_000), ramp_width=0.01, max_gap=0.1)
    scores, groups = scores_and_groups((20_000, 20_000, 20_000), seed=100)
    assert rule.check(scores, groups).verdict == "within"
    few = rule.check(scores[groups < 2], groups[groups < 2])
    assert (few.verdict, few.missing) == ("undecided", (2,))
    assert "Groups without rows were not checked: 2." in " ".join(repr(few).split())


def test_a_gap_above_the_limit_within_noise_is_undecided():
    scores = np.where(np.arange(40) % 20 < np.repeat([8, 11], 20), 0.99, 0.01)  # 40% and 55%
    check = MIDDLE.check(scores, np.repeat([0, 1], 20))
    assert check.gap > check.limit
    assert check.verdict == "undecided"
    assert "the gap is above the estimated limit of " in check.sentence()
    assert "but that may be chance: " in check.sentence()


def test_equal_rates_have_no_furthest_pair():
    assert MIDDLE.check([0.9, 0.9], [0, 1]).pair is None


# A few small groups -------------------------------------------------------------------------------

FEW = (40, 3_000, 5_000)


def test_leaving_out_a_small_group_gives_the_others_their_own_limit():
    rule = fitted(FEW)
    found = rule.certificate()
    assert found.widest_for == (0, 40)
    assert found.left_out == ((0, 40),)
    record = rule.record
    m, n = (
        np.array(record.rates["selection"].rows_above[1:]) + record.rates["selection"].rows_inside[1:],
        np.array(FEW[1:]),
    )
    draws = np.random.default_rng(0).beta(m, n + 1 - m, (200_000, 2))
    assert found.rest.estimated == pytest.approx(np.quantile(np.ptp(draws, axis=1), 0.95), rel=0.01)
    dkw = next(bound for bound in found.rest.bounds if bound.name == "dkw")
    half = np.sqrt(np.log(2 * 2 / 0.05) / (2 * n))
    assert dkw.limit == pytest.approx(half.sum() + np.ptp(record.rates["selection"].after[1:]))
    assert f"Without that group: proven limit {points(found.rest.proven)}." in said(found)


def test_the_limit_between_the_other_groups_holds_as_often_as_stated():
    groups = np.repeat(np.arange(3), (20, 400, 500))

    def fit(seed):
        return quiet_fit(np.random.default_rng(seed).random(920), groups, target_rate=0.3, ramp_width=0)

    found = fit(0).certificate()
    assert found.left_out == ((0, 20),)
    assert fit(1).certificate().rest == found.rest  # it depends on ranks only, which are the same for all
    thresholds = np.array([fit(seed).thresholds for seed in range(1_000)])
    gaps = np.abs(thresholds[:, 1] - thresholds[:, 2])  # scores are uniform
    # Exactly 95%; outside 925 to 975 of 1,000 about four times in ten thousand.
    assert 0.925 <= np.mean(gaps <= found.rest.estimated) <= 0.975


@given(sizes=st.lists(st.integers(1, 3_000), min_size=2, max_size=6), seed=st.integers(0, 3))
@example(sizes=[40, 5_000, 10, 4_000, 40], seed=0)
@example(sizes=[10, 40, 40, 90_000], seed=0)
@settings(max_examples=40)
def test_the_left_out_groups_are_small_depend_on_row_counts_only_and_halve_the_limit(sizes, seed):
    rows = scores_and_groups(sizes, seed=seed)
    found = quiet_fit(*rows, target_rate=0.4, ramp_width=0).certificate()
    if found.rest is None:
        assert found.left_out == ()
        return
    left = [n for _, n in found.left_out]
    assert found.left_out == tuple((k, n) for k, n in enumerate(sizes) if n in left)
    assert sum(left) <= sum(sizes) / 10
    assert len(left) <= len(sizes) - 2
    assert max(left) <= min(n for n in sizes if n not in left)
    assert found.rest.estimated <= found.estimated / 2
    other = quiet_fit(1 - rows[0], rows[1], target_rate=0.4, ramp_width=0).certificate()
    assert other.rest is None or other.left_out == found.left_out


def test_several_small_groups_are_left_out_if_one_alone_does_not_help():
    found = fitted((30, 40, 5_000, 5_000)).certificate()
    assert found.left_out == ((0, 30), (1, 40))
    assert found.rest.estimated <= found.estimated / 2


def test_similar_group_sizes_and_strata_have_no_separate_limit():
    assert fitted((300, 400)).certificate().rest is None
    assert fitted((300, 400, 500)).certificate().rest is None
    rng = np.random.default_rng(3)
    strata = np.where(np.arange(4_000) < 40, 0, 1 + np.arange(4_000) % 2)
    rule = quiet_fit(rng.random(4_000), rng.integers(0, 2, 4_000), strata=strata)
    found = rule.certificate()
    assert found.rest is None
    assert found.widest_for == (min(zip(rule.groups, rule.record.rows, strict=True), key=lambda pair: pair[1]))


def test_small_groups_do_not_hide_drift_in_the_others():
    rule = fitted(FEW)
    scores, groups = scores_and_groups(FEW, seed=100)
    fine = rule.check(scores, groups)
    assert not fine.has_drifted
    assert fine.false_alarm_rate == pytest.approx(0.15)  # two limits and one interval may be wrong
    scores[groups == 2] = np.minimum(scores[groups == 2] + 0.1, 1)
    found = rule.check(scores, groups)
    assert found.has_drifted
    assert found.left_out == ((0, 40),)
    assert (found.groups, found.rows, found.pair) == ((0, 1, 2), FEW, (2, 1))
    assert found.limit == rule.certificate().rest.estimated < found.gap_interval[0]
    assert found.gap == pytest.approx(found.rates[2] - found.rates[1])
    every, others = found.comparisons
    assert (every.left_out, others.left_out) == ((), ((0, 40),))
    assert (every.gap, every.limit) == (pytest.approx(np.ptp(found.rates)), rule.certificate().estimated)
    assert found.sentence().startswith("Without 0 (40 fit rows): above the proven limit of ")
    assert " All groups: " in found.sentence()


def test_a_check_names_the_groups_furthest_apart_and_their_rates_at_the_fit():
    scores, groups = scores_and_groups((3_000, 4_000), seed=100)
    found = MIDDLE.check(scores, groups)
    high, low = (int(f(found.rates)) for f in (np.argmax, np.argmin))
    assert found.pair == (high, low)
    assert found.rates_then == MIDDLE.record.rates["selection"].after
    for rate, n, *limits in zip(found.rates, found.rows, found.lower, found.upper, strict=True):
        wilson = stats.binomtest(round(rate * n), n).proportion_ci(0.95, method="wilson")
        assert limits == pytest.approx([wilson.low, wilson.high], abs=5e-4)
    one, other = (f"{k} {100 * found.rates[k]:.1f}% of {found.rows[k]:,} rows" for k in (high, low))
    assert f"Furthest apart: {one}, {other}." in " ".join(repr(found).split())
    assert found.sentence().startswith("No sign that the gap exceeds the estimated limit of ")


def test_a_check_of_intersections_has_no_stratum():
    scores, groups = scores_and_groups((500, 500), seed=100)
    rule = quiet_fit(scores, {"a": groups, "b": groups})
    assert "stratum" not in repr(rule.check(scores, {"a": groups, "b": groups}))


def as_json(found):
    """The fields of a result after a round trip through strict JSON, which must not change them."""
    fields = found.to_dict()
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields
    return fields


def same(field, value):
    """Whether a field holds a value: None for NaN, lists for tuples."""
    if isinstance(value, tuple):
        return len(field) == len(value) and all(map(same, field, value))
    return field is None if value != value else field == value


@pytest.mark.parametrize(
    "options",
    [{}, {"max_gap": 0.05}, {"sample_weight": np.linspace(1, 2, 3_030)}, {"strata": np.arange(3_030) % 2 == 0}],
)
def test_fields_of_certificates_and_checks_are_their_attributes(options):
    scores, groups = scores_and_groups((1_500, 1_500, 30))
    rule = quiet_fit(scores, groups, **options)
    certificate, fields = rule.certificate(), as_json(rule.certificate())
    for name in ("estimated", "proven", "confidence", "assumptions"):
        assert fields[name] == getattr(certificate, name)
    assert [bound["limit"] for bound in fields["bounds"]] == [bound.limit for bound in certificate.bounds]
    assert [(one["group"], one["rows"]) for one in fields["left_out"]] == list(certificate.left_out)
    assert fields["rest"] == (certificate.rest and certificate.rest.to_dict())
    check = rule.check(scores, groups, **{name: options[name] for name in options if name != "max_gap"})
    fields = as_json(check)
    for name in fields.keys() - {"groups", "left_out", "comparisons"}:
        assert same(fields[name], getattr(check, name)), name
    assert [group["n"] for group in fields["groups"]] == list(check.rows)
    assert [one["gap"] for one in fields["comparisons"]] == [one.gap for one in check.comparisons]


def test_certificates_and_checks_are_public():
    assert isinstance(MIDDLE.certificate(), fairramp.Certificate)
    assert isinstance(MIDDLE.check(*scores_and_groups((50, 50))), fairramp.Check)


@pytest.mark.parametrize("sizes", [(300,) * 6, (100, 200, 400)])
def test_with_very_many_groups_per_group_limits_bound_the_gap_from_above(sizes, monkeypatch):
    rule = fitted(sizes)
    exact = bounds(rule)["beta"].limit
    monkeypatch.setattr("fairramp.core.beta._MAX_EXACT_GROUPS", 2)
    n, k = np.array(sizes), len(sizes)
    m = np.array(rule.record.rates["selection"].rows_above) + rule.record.rates["selection"].rows_inside
    low, high = (stats.beta(m, n + 1 - m).ppf(tail) for tail in (0.05 / (2 * k), 1 - 0.05 / (2 * k)))
    union = max(high[i] - low[j] for i in range(k) for j in range(k) if i != j)
    assert bounds(rule)["beta"].limit == pytest.approx(union, abs=1e-9)
    assert exact < union


def test_limits_of_weighted_strata_never_exceed_the_overall_limit():
    rng = np.random.default_rng(3)
    scores, groups, strata = rng.random(4_000), rng.integers(0, 2, 4_000), rng.integers(0, 3, 4_000)
    weights = rng.uniform(1, 2, 4_000)
    rule = quiet_fit(scores, groups, strata=strata, sample_weight=weights)
    found = rule.check(scores, groups, strata=strata, sample_weight=weights)
    assert found.limit <= rule.certificate().estimated


def test_the_worst_stratum_matches_certifying_each_alone():
    rng = np.random.default_rng(4)
    n, n_strata = 3_000, 7
    scores, groups = rng.random(n), rng.integers(0, 2, n)
    strata = rng.choice(n_strata, n, p=np.arange(1, n_strata + 1) / 28)
    rule = quiet_fit(scores, groups, strata=strata, ramp_width=0)
    alone = []
    for stratum in range(n_strata):
        of = strata == stratum
        single = quiet_fit(scores[of], groups[of], strata=strata[of], ramp_width=0)
        alone.append(single.certificate(0.95 ** (1 / n_strata)).estimated)
    assert rule.certificate(0.95).estimated == pytest.approx(max(alone))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"n_groups": 0}, "`n_groups` must be an integer of at least 2, got 0"),
        ({"n_groups": 2.0}, "`n_groups` must be an integer of at least 2, got 2.0"),
        ({"n_groups": True}, "`n_groups` must be an integer of at least 2, got True"),
        ({"max_gap": 0}, "`max_gap`"),
        ({"rate": 1.5}, "`rate`"),
    ],
)
def test_rows_needed_rejects_unanswerable_requests(asked, said):
    with pytest.raises(InputError, match=said):
        rows_needed(**{"max_gap": 0.1, "n_groups": 2} | asked)


@pytest.mark.parametrize(("gap", "low", "limit"), [(0.025, 0.02014, 0.02011), (0.05, 0.0161, 0.0160)])
def test_printed_numbers_of_a_check_do_not_contradict_its_verdict(gap, low, limit):
    text = Comparison(gap, (low, 0.06), limit, "estimated", Verdict.EXCEEDED, ()).sentence("on the new rows")
    most, lower = re.fullmatch(r"Above the estimated limit of (\S+) points: .* \[(\S+), .*", text).groups()
    assert float(lower) >= float(most)
