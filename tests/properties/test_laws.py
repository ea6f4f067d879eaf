"""Laws that hold for any sample: any groups, ties and weights."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import fairramp
from fairramp.core.bands import Gap
from fairramp.core.curve import RateCurve, ScoreDistribution
from fairramp.core.points import Points, Summary, join_points
from fairramp.core.scales import SCALES
from fairramp.data.groups import encode_groups
from fairramp.data.rows import ArrayRows
from fairramp.fit.criteria.parity import solve_parity
from fairramp.fit.problem import Optimal, Problem
from oracles import brute_force_threshold_rate, selection_rates

pytestmark = pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")

widths = st.sampled_from([0.0, 1e-6, 1e-3, 0.01, 0.1, 0.5, 3.0])
gaps = st.sampled_from([0.0, 1e-9, 0.01, 0.1, 0.5, 1.0])
tied = st.sampled_from([0.0, 0.25, 0.49, 0.5, 0.51, 1.0])
any_score = st.floats(0, 1, allow_subnormal=True)
ones = st.just(1.0)
targets = st.one_of(st.just("optimal"), st.sampled_from([0.0, 0.3, 1.0]), st.floats(0, 1))


@st.composite
def samples(draw, weights=ones):
    """Scores, groups and weights of a few rows."""
    n = draw(st.integers(1, 40))
    score = draw(st.sampled_from([any_score, tied, st.one_of(any_score, tied)]))
    scores = np.array(draw(st.lists(score, min_size=n, max_size=n)))
    groups = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    return scores, groups, np.array(draw(st.lists(weights, min_size=n, max_size=n)))


settings_of_a_fit = st.fixed_dictionaries(
    {
        "max_gap": gaps,
        "ramp_width": widths,
        "ramp": st.sampled_from(["centered", "paper"]),
        "target_rate": targets,
        "cutoff": st.sampled_from([0.5, 0.1, 0.9, 0.0, 1.0]),
    }
)


def fit(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairramp.FairrampWarning)
        return fairramp.fit_rule(*args, **kwargs)


@given(samples(weights=st.floats(0.01, 100)), settings_of_a_fit)
def test_gap_on_the_fit_rows_never_exceeds_max_gap(sample, options):
    scores, groups, weights = sample
    rule = fit(scores, groups, sample_weight=weights, **options)
    h = rule.probabilities(scores, groups)
    codes = np.unique(groups, return_inverse=True)[1]
    rates = selection_rates(h, codes, weights)
    assert h.min() >= 0
    assert h.max() <= 1
    assert rates.max() - rates.min() <= options["max_gap"] + 1e-9


@given(samples(), settings_of_a_fit)
def test_probability_never_falls_with_the_score(sample, options):
    scores, groups, _ = sample
    h = fit(scores, groups, **options).probabilities(scores, groups)
    for group in np.unique(groups):
        of_group = groups == group
        ordered = h[of_group][np.argsort(scores[of_group])]
        assert np.all(np.diff(ordered) >= 0)


@given(samples(weights=st.integers(1, 9)), widths.filter(bool), st.floats(-2, 2))
def test_rate_matches_exact_fractions_and_falls_with_the_threshold(sample, width, foot):
    scores, _, weights = sample
    points = Points.from_rows(np.zeros(len(scores), dtype=np.intp), scores, weights.astype(float))
    distribution = Summary((None,), points).distribution()
    [rate] = distribution.rates(np.array([foot]), width)
    exact = brute_force_threshold_rate(scores, weights, foot, ramp_width=width, offset=0.0)
    assert abs(rate - float(exact)) <= 1e-12 + 1e-15 / width
    [higher] = distribution.rates(np.array([foot + 0.01]), width)
    assert higher <= rate


@given(samples(weights=st.integers(1, 9)), widths, st.floats(0, 1))
def test_inverted_rate_gives_that_rate(sample, width, rate):
    scores, _, weights = sample
    points = Points.from_rows(np.zeros(len(scores), dtype=np.intp), scores, weights.astype(float))
    distribution = Summary((None,), points).distribution()
    lowest, highest = RateCurve(distribution, width).feet(np.array([rate]))
    assert lowest <= highest
    for foot in (lowest, highest):
        foot = np.clip(foot, -10, 10)
        if width > 0:
            # One ulp of the foot changes the rate by 1e-16/width, and so do the last bits of the prefix sums.
            assert distribution.rates(foot, width)[0] == pytest.approx(rate, abs=2e-12 + 1e-13 / width)
        else:
            assert distribution.rates_above(foot)[0] <= rate + 2e-12
            assert distribution.rates_from(foot)[0] >= rate - 2e-12


@given(st.integers(1, 99), widths.filter(lambda width: width < 0.4), st.sampled_from([-5e-11, 0.0, 5e-11]))
def test_a_rate_beside_a_flat_piece_by_rounding_has_both_its_ends(n, width, rounding):
    scores, weights = np.array([0.25, 0.75]), np.array([100.0 - n, n])
    curve = RateCurve(ScoreDistribution(np.array([2]), scores, weights), width)
    lowest, highest = curve.feet(curve.snapped(np.array([n / 100 + rounding])))
    assert (lowest[0], highest[0]) == (0.25, 0.75 - width)


@given(samples(weights=st.integers(0, 4)), settings_of_a_fit)
def test_integer_weights_equal_repeated_rows(sample, options):
    scores, groups, weights = sample
    assume(all(weights[groups == g].sum() > 0 for g in np.unique(groups)))
    weighted = fit(scores, groups, sample_weight=weights, **options)
    repeated = fit(np.repeat(scores, weights), np.repeat(groups, weights), **options)
    np.testing.assert_allclose(
        weighted.probabilities(scores, groups), repeated.probabilities(scores, groups), atol=1e-9
    )


@given(samples(weights=st.floats(0.1, 10)), settings_of_a_fit, st.randoms(use_true_random=False))
def test_row_order_and_group_names_do_not_matter(sample, options, random):
    scores, groups, weights = sample
    order = random.sample(range(len(scores)), len(scores))
    names = np.array(random.sample(["x", "ä", "zebra", ""], 4))
    before = fit(scores, groups, sample_weight=weights, **options)
    after = fit(scores[order], names[groups][order], sample_weight=weights[order], **options)
    np.testing.assert_allclose(
        before.probabilities(scores, groups), after.probabilities(scores, names[groups]), atol=1e-9
    )


def summary_of(scores, groups, weights):
    return ArrayRows(scores, encode_groups(groups), weights, SCALES["probability"]).summarize()


def merged_of(a, b):
    labels, points = a.beside(b)
    return Summary(labels, join_points([points]))


def assert_same_summary(a, b):
    assert a.labels == b.labels
    for name in ("group", "place", "lower", "upper", "rows", "averaged"):
        np.testing.assert_array_equal(getattr(a.points, name), getattr(b.points, name))
    np.testing.assert_allclose(a.points.weight, b.points.weight, rtol=1e-12)
    np.testing.assert_allclose(a.points.weight_squares, b.points.weight_squares, rtol=1e-12)


@given(samples(weights=st.floats(0.1, 10)), st.data())
def test_merged_chunks_equal_one_pass(sample, data):
    scores, groups, weights = sample
    cut = data.draw(st.integers(1, len(scores)))
    whole = summary_of(scores, groups, weights)
    parts = [
        summary_of(scores[s], groups[s], weights[s]) for s in (slice(cut), slice(cut, None)) if len(scores[s])
    ]
    merged = parts[0] if len(parts) == 1 else merged_of(*parts)
    assert_same_summary(merged, whole)
    if len(parts) == 2:
        assert_same_summary(merged_of(*reversed(parts)), whole)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sample=samples(weights=st.floats(0.1, 10)), data=st.data())
def test_merged_bins_equal_one_pass(sample, data, binned):
    scores, groups, weights = sample
    cut = data.draw(st.integers(1, len(scores)))
    parts = [
        summary_of(scores[s], groups[s], weights[s]) for s in (slice(cut), slice(cut, None)) if len(scores[s])
    ]
    whole = summary_of(scores, groups, weights)
    merged = parts[0] if len(parts) == 1 else merged_of(*parts)
    np.testing.assert_allclose(merged.weights, whole.weights, rtol=1e-12)
    assert merged.rows.tolist() == whole.rows.tolist()


# The edge of a band is a group's own rate up to rounding, and the balance depends on where a bin lies.
KINK = (
    np.array([0, 0, 0, 0, 0, 0, 0.1875, 1, 0, 0, 0, 1]),
    np.array([0, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1, 0]),
    np.array([1, 1, 1, 0.5, 1, 1.5, 1, 1, 0.5, 0.25, 0.5, 0.5]),
)
KINK_OPTIONS = {"max_gap": 0.1, "ramp_width": 0, "ramp": "centered", "target_rate": "optimal", "cutoff": 0.5}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(sample=KINK, options=KINK_OPTIONS)
@given(sample=samples(weights=st.floats(0.1, 10)), options=settings_of_a_fit)
def test_refined_bins_equal_sorted_rows(sample, options, binned, monkeypatch):
    scores, groups, weights = sample
    coarse = fit(scores, groups, sample_weight=weights, unseen_group="pooled", **options)
    with monkeypatch.context() as sorting:
        sorting.setattr("fairramp.data.rows.SORTED_ROWS", 10**6)
        exact = fit(scores, groups, sample_weight=weights, unseen_group="pooled", **options)
    for labels in (groups, groups + 10):
        np.testing.assert_allclose(
            coarse.probabilities(scores, labels), exact.probabilities(scores, labels), atol=1e-9
        )


@given(samples(weights=st.floats(0.1, 10)), settings_of_a_fit, st.sampled_from(["error", "pooled", "original"]))
def test_rules_survive_json_byte_for_byte(sample, options, policy):
    scores, groups, weights = sample
    rule = fit(scores, groups, sample_weight=weights, unseen_group=policy, **options)
    text = rule.to_json()
    again = fairramp.Rule.from_json(text)
    assert again.to_json() == text
    assert again == rule
    np.testing.assert_array_equal(again.probabilities(scores, groups), rule.probabilities(scores, groups))


@given(samples(weights=st.floats(0.1, 10)), gaps, widths, st.sampled_from([0.5, 0.1, 0.9]))
def test_decisions_that_meet_max_gap_are_kept(sample, max_gap, width, cutoff):
    scores, groups, weights = sample
    own = (scores >= cutoff).astype(float)
    rates = selection_rates(own, np.unique(groups, return_inverse=True)[1], weights)
    rule = fit(scores, groups, sample_weight=weights, max_gap=max_gap, ramp_width=width, cutoff=cutoff)
    if rates.max() - rates.min() <= max_gap:
        np.testing.assert_array_equal(rule.probabilities(scores, groups), own)


@given(samples(weights=st.floats(0.1, 10)), widths, gaps, st.floats(0, 1))
def test_initial_target_guess_changes_nothing(sample, width, max_gap, guess):
    scores, groups, weights = sample
    summary = summary_of(scores, groups, weights)
    problem = Problem(Gap(max_gap), Optimal(), 0.5, width, 0.5)
    plain = solve_parity(summary.distribution(), summary.shares, problem)
    guided = solve_parity(summary.distribution(), summary.shares, problem, guess)
    assert guided.level == pytest.approx(plain.level, abs=1e-9)
    np.testing.assert_allclose(guided.rates, plain.rates, atol=1e-9)


def test_prefix_sums_restart_in_each_group():
    distribution = ScoreDistribution(np.array([2, 3]), np.array([0.1, 0.2, 0.1, 0.2, 0.3]), np.ones(5))
    sums = distribution.prefix_sums(np.array([1.0, 2.0, 0.0, 4.0, 8.0, 16.0, 0.0]))
    np.testing.assert_array_equal(sums, [0, 1, 3, 0, 4, 12, 28])
