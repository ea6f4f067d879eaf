"""Cases that once failed."""

import warnings

import numpy as np
import pandas as pd
import pytest

from fairramp import FairrampWarning, InputError, fit_rule

pytestmark = pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")


def test_scores_one_ulp_apart_do_not_hide_a_flat_piece_from_a_narrow_ramp():
    scores, groups = [0.9, np.nextafter(0.9, 1), 0.2, 0.4], [0, 0, 0, 1]
    rule = fit_rule(scores, groups, ramp_width=1e-6)
    assert rule.target_rate == pytest.approx(2 / 3, abs=1e-9)
    np.testing.assert_allclose(rule.probabilities(scores, groups), [1, 1, 0, 2 / 3], atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_rounded_mean_stays_inside_a_bin_of_one_score(seed):
    rng = np.random.default_rng(seed)
    n, tie = 60_000, np.float32(rng.uniform(0.3, 0.7))
    groups = rng.integers(0, 2, n)
    scores = np.where(groups == 0, tie + (1 - tie) * rng.random(n), tie * rng.random(n)).astype(np.float32)
    scores[rng.random(n) < 0.3] = tie
    weights = rng.random(n) + 0.1
    rule = fit_rule(scores, groups, ramp_width=0, unseen_group="pooled", target_rate=0.5, sample_weight=weights)
    pooled = rule.probabilities(scores, groups + 9)
    assert np.average(pooled, weights=weights) == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("options", [{"max_gap": 0.5}, {"max_gap": 1.0, "ramp": "paper", "target_rate": 0.5}])
def test_rows_at_the_foot_of_a_ramp_are_counted_correctly_in_bins(options):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 40_000)
    scores = np.where(rng.random(40_000) < 0.3, 0.5, rng.random(40_000))
    rule = fit_rule(scores, groups, **options)
    for k, ramp in enumerate(rule.ramps):
        x, low, high = scores[groups == k], ramp.foot, ramp.foot + ramp.width
        inside = (x > low) & (x < high) if ramp.width else x == low
        above = x >= high if ramp.width else x > low
        assert rule.record.rates["selection"].rows_inside[k] == inside.sum()
        assert rule.record.rates["selection"].rows_above[k] == above.sum()


def test_unused_categories_do_not_change_the_fingerprint():
    rng = np.random.default_rng(1)
    scores, names = rng.random(40_000), rng.choice(["a", "b"], 40_000)
    categories = ["a", "b", *(f"unused {i}" for i in range(1000))]
    column = pd.Series(pd.Categorical(names, categories=categories))
    plain = fit_rule(scores, names).record.fingerprint
    assert fit_rule(scores, column).record.fingerprint == plain


def test_tiny_negative_scores_do_not_change_the_fingerprint():
    rng = np.random.default_rng(2)
    scores = np.r_[-1e-20 * rng.random(20_000), rng.uniform(-1, 1, 20_000)]
    groups = rng.integers(0, 2, 40_000)
    found = {fit_rule(scores, groups, scale="signed", ramp_width=w).record.fingerprint for w in (0, 0.01, 0.3)}
    assert len(found) == 1


def test_weights_too_far_apart_for_floats_raise():
    groups = np.arange(100) % 2
    with pytest.raises(InputError, match="`sample_weight` must not differ"):
        fit_rule(np.linspace(0, 1, 100), groups, sample_weight=np.where(groups == 0, 1e200, 1e-200))


def test_base_rate_with_huge_weights_does_not_overflow():
    labels = np.arange(100) % 4 == 0
    rule = fit_rule(
        np.linspace(0, 1, 100),
        np.arange(100) % 2,
        labels,
        target_rate="base_rate",
        sample_weight=np.full(100, 1e307),
    )
    assert rule.target_rate == pytest.approx(0.25)


def test_bad_score_of_weight_0_raises_with_its_original_row():
    scores, weights = np.linspace(0, 1, 200), np.ones(200)
    weights[:100] = 0
    scores[150] = 7
    with pytest.raises(InputError, match="row 150"):
        fit_rule(scores, np.arange(200) % 2, sample_weight=weights)
    scores[150], scores[3] = 0.5, np.nan
    with pytest.raises(InputError, match="row 3"):
        fit_rule(scores, np.arange(200) % 2, sample_weight=weights)


def test_many_groups_of_few_rows_are_fitted_exactly():
    rng = np.random.default_rng(3)
    groups, scores = rng.integers(0, 2000, 100_000), rng.random(100_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairrampWarning)
        rule = fit_rule(scores, groups, max_gap=0.01)
    rates = np.bincount(groups, rule.probabilities(scores, groups)) / np.bincount(groups)
    assert np.ptp(rates) <= 0.01 + 1e-9
