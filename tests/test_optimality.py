"""The fitted rule is optimal: compared with a convex solver, by optimality conditions, and by hand."""

import tracemalloc
import warnings

import numpy as np
import pytest

import fairramp
from fairramp.core.bands import Gap
from fairramp.core.curve import ScoreDistribution
from fairramp.fit.criteria.parity import solve_parity
from fairramp.fit.guess import RoughCurve, likely_ramps
from fairramp.fit.problem import Optimal, Problem
from oracles import example_1, kkt_residual, objective, random_instance, selection_rates, solve_convex

BATCHES = range(20)
PER_BATCH = 25


def fit(instance):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairramp.FairrampWarning)
        return fairramp.fit_rule(
            instance.scores,
            instance.groups,
            sample_weight=instance.weights,
            max_gap=instance.max_gap,
            target_rate="optimal" if instance.target_rate is None else instance.target_rate,
            cutoff=instance.cutoff,
            ramp_width=instance.ramp_width,
            ramp="centered" if instance.offset else "paper",
        )


def instances(batch):
    for seed in range(batch * PER_BATCH, (batch + 1) * PER_BATCH):
        instance = random_instance(np.random.default_rng(seed))
        rule = fit(instance)
        yield seed, instance, rule, rule.probabilities(instance.scores, instance.groups)


def stands(rule, instance):
    """Whether the classifier's own decisions were kept, which no ramp can reproduce."""
    return rule.is_hard and instance.ramp_width > 0


@pytest.mark.parametrize("batch", BATCHES)
def test_objective_matches_a_convex_solver(batch):
    for seed, instance, rule, h in instances(batch):
        if stands(rule, instance):
            continue
        best = solve_convex(*instance.rows, **instance.options)
        ours = objective(
            h,
            instance.scores,
            instance.weights,
            cutoff=instance.cutoff,
            ramp_width=instance.ramp_width,
            offset=instance.offset,
        )
        assert abs(ours - best.objective) <= 1e-9 * instance.weights.sum(), seed


@pytest.mark.parametrize("batch", BATCHES)
def test_optimality_conditions_hold_to_rounding(batch):
    for seed, instance, rule, h in instances(batch):
        if stands(rule, instance):
            continue
        options = {**instance.options, "target_rate": rule.target_rate}
        best_target = instance.target_rate is None
        assert kkt_residual(h, *instance.rows, **options, best_target=best_target) <= 1e-9, seed


@pytest.mark.parametrize("batch", BATCHES)
def test_gap_on_the_fit_rows_never_exceeds_max_gap(batch):
    for seed, instance, rule, h in instances(batch):
        rates = selection_rates(h, instance.groups, instance.weights)
        assert rates.max() - rates.min() <= instance.max_gap + 1e-9, seed
        np.testing.assert_allclose(rule.record.rates["selection"].after, rates, atol=1e-9)


@pytest.mark.parametrize("batch", BATCHES[:8])
def test_refined_bins_give_the_sorted_rule(batch, binned, monkeypatch):
    for seed, instance, rule, h in instances(batch):
        with monkeypatch.context() as sorting:
            sorting.setattr("fairramp.data.rows.SORTED_ROWS", 10**6)
            expected = fit(instance)
        np.testing.assert_allclose(
            h, expected.probabilities(instance.scores, instance.groups), atol=1e-9, err_msg=str(seed)
        )
        assert rule.record.fingerprint == expected.record.fingerprint
        assert rule.record.rows == expected.record.rows
        if instance.ramp_width == 0 or stands(rule, instance):  # otherwise a ramp's end can round past a score
            assert rule.record.rates["selection"].rows_above == expected.record.rates["selection"].rows_above
            assert rule.record.rates["selection"].rows_inside == expected.record.rates["selection"].rows_inside


@pytest.mark.parametrize("batch", BATCHES[:4])
def test_wrong_guess_costs_only_time(batch, binned, monkeypatch):
    rng = np.random.default_rng(batch)

    def wrong(curve, shares, problem):
        return rng.random(), rng.uniform(-0.2, 1.2, len(shares))

    for seed, instance, _, h in instances(batch):
        with monkeypatch.context() as misled:
            misled.setattr("fairramp.fit.guess.likely_ramps", wrong)
            other = fit(instance)
        found = other.probabilities(instance.scores, instance.groups)
        np.testing.assert_allclose(found, h, atol=1e-9, err_msg=str(seed))


@pytest.mark.parametrize("width", [0.0, 0.001, 0.05, 0.3])
@pytest.mark.parametrize("max_gap", [0.0, 0.1])
@pytest.mark.parametrize("target_rate", ["optimal", 0.3])
def test_guess_is_close(width, max_gap, target_rate, monkeypatch):
    """Within two bins of the solution if there are many rows, so one pass is enough."""
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 4, 200_000)
    scores = rng.beta(1.5 + 0.4 * groups, 3.0)
    guesses = []

    def kept(curve, shares, problem):
        guesses.append((curve.step, *likely_ramps(curve, shares, problem)))
        return guesses[-1][1:]

    monkeypatch.setattr("fairramp.fit.guess.likely_ramps", kept)
    rule = fairramp.fit_rule(scores, groups, ramp_width=width, max_gap=max_gap, target_rate=target_rate)
    [(step, target, feet)] = guesses
    thresholds = np.array(rule.thresholds)
    np.testing.assert_allclose(feet + width / 2, thresholds, rtol=0, atol=2 * step)
    assert abs(target - rule.target_rate) < 1e-3


@pytest.mark.parametrize("width", [1.0, 30.0, 1e6])
def test_very_wide_ramps_need_little_memory(width, binned):
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 3, 5000)
    scores = rng.beta(2.0 + groups, 3.0)
    tracemalloc.start()
    rule = fairramp.fit_rule(scores, groups, ramp_width=width)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    rates = selection_rates(rule.probabilities(scores, groups), groups, np.ones(len(scores)))
    assert np.ptp(rates) < 1e-9
    assert most < 50e6


@pytest.mark.parametrize("width", [0.0, 0.003, 0.01, 0.0625, 0.1, 1.0])
def test_guess_is_exact_for_rows_spread_evenly_within_bins(width):
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 9, (3, 16))
    rows[:, 5] += 1  # no group is empty
    curve = RoughCurve(rows.astype(float), 0.0, 1 / 16, width)
    inside = (np.arange(4000) + 0.5) / 4000 / 16
    for k in range(3):
        x = np.add.outer(np.arange(16) / 16, inside)
        for b in range(17):  # at the edges of bins
            foot = b / 16
            chance = np.clip((x - foot) / width, 0, 1) if width else x > foot
            rate = (rows[k] * chance.mean(axis=1)).sum() / rows[k].sum()
            assert curve.rates(foot)[k] == pytest.approx(rate, abs=1e-3)


@pytest.mark.parametrize("width", [1e-6, 1e-5, 1e-4, 1e-3])
def test_best_target_is_accurate_to_the_last_digits(width, monkeypatch):
    # A narrow ramp magnifies errors: 1e-13 in the target was 3e-7 in a probability.
    rng = np.random.default_rng(6)
    groups, weights = rng.integers(0, 3, 40000), rng.lognormal(0, 1, 40000)
    scores = np.clip(0.9 + 0.05 * rng.standard_normal(40000) + 0.02 * groups, 0, 1)
    options = {"ramp_width": width, "cutoff": 0.9, "sample_weight": weights}
    binned = fairramp.fit_rule(scores, groups, **options).probabilities(scores, groups)
    monkeypatch.setattr("fairramp.data.rows.SORTED_ROWS", 10**6)
    exact = fairramp.fit_rule(scores, groups, **options).probabilities(scores, groups)
    np.testing.assert_allclose(binned, exact, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("band", [{"max_gap": 0}, {"max_gap": 0.05}, {"min_ratio": 0.8}], ids=str)
def test_thresholds_of_narrow_ramps_balance_to_the_last_digits(band, seed):
    # In units of the edge that a group is on: the lower edge of a ratio moves `min_ratio` times as far.
    rng = np.random.default_rng(seed)
    groups, weights = rng.integers(0, 3, 20000), rng.lognormal(0, 1, 20000)
    scores = np.clip(0.9 + 0.05 * rng.standard_normal(20000) + 0.02 * groups, 0, 1)
    rule = fairramp.fit_rule(scores, groups, ramp_width=1e-4, cutoff=0.9, sample_weight=weights, **band)
    moved = np.array(rule.thresholds) - 0.9
    slopes = np.where(moved > 0, 1, band.get("min_ratio", 1))
    assert np.ptp(moved) > 0.001
    assert abs(np.bincount(groups, weights) / weights.sum() @ (slopes * moved)) <= 2 * np.spacing(0.9)


@pytest.mark.parametrize("error", [0.0, 1e-6, -1e-6, 0.1])
@pytest.mark.parametrize(("cutoff", "offset"), [(0.42, 0.0), (0.6, 1.0)])
def test_light_group_is_not_moved_needlessly(cutoff, offset, error):
    # All targets that leave every group at the cutoff are optimal; the one nearest to the classifier's own rate,
    # 1 or 0, is where the lighter group starts to move. Its share of the sum was mistaken for rounding.
    scores, rows = np.array([0.42, 0.51, 0.42, 0.51]), np.array([50.0, 50, 50, 50])
    rows[2:] += 10 if cutoff < 0.5 else -10, 0
    distribution = ScoreDistribution(np.array([2, 2]), scores, rows)
    problem = Problem(Gap(1.0), Optimal(), cutoff, 2.5, offset)
    on_cutoff = distribution.rates(np.full(2, problem.own_foot), problem.ramp_width)
    expected = on_cutoff[1] + (0.5 if cutoff < 0.5 else -0.5)
    found = solve_parity(distribution, np.array([1 - 1e-9, 1e-9]), problem, expected + error)
    assert found.level == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(found.feet, problem.own_foot, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Groups with fewer")
class TestExample1:
    """The paper's proof that randomization is needed, with x in {-1, 0, 1}."""

    @pytest.mark.parametrize("ramp_width", [0, 1e-6, 1e-3, 0.01, 0.1, 0.5])
    def test_people_at_the_threshold_get_0_7(self, ramp_width):
        scores, groups, weights, expected = example_1()
        rule = fairramp.fit_rule(scores, groups, sample_weight=weights, ramp_width=ramp_width)
        assert rule.target_rate == pytest.approx(0.4, abs=1e-12)
        np.testing.assert_allclose(rule.probabilities(scores, groups), expected, atol=1e-9)

    @pytest.mark.parametrize("ramp_width", [0, 1e-3, 0.1, 0.25])
    def test_published_ramp_agrees(self, ramp_width):
        scores, groups, weights, expected = example_1()
        rule = fairramp.fit_rule(scores, groups, sample_weight=weights, ramp_width=ramp_width, ramp="paper")
        np.testing.assert_allclose(rule.probabilities(scores, groups), expected, atol=1e-9)

    @pytest.mark.parametrize(("max_gap", "unchanged"), [(12 / 70, True), (0.2, True), (12 / 70 - 1e-9, False)])
    def test_own_decisions_are_kept_iff_the_gap_allows(self, max_gap, unchanged):
        scores, groups, weights, _ = example_1()
        rule = fairramp.fit_rule(scores, groups, sample_weight=weights, max_gap=max_gap)
        own = scores >= 0.5
        assert np.array_equal(rule.probabilities(scores, groups), own) == unchanged


@pytest.mark.filterwarnings("ignore:Groups with fewer")
def test_tied_targets_resolve_to_the_one_nearest_the_classifiers_own_rate():
    # With ramp width 0 and scores of only 0 and 1, every target in a wide band is equally good.
    scores = np.array([0, 0, 0, 1, 1, 0, 1, 1, 1, 1.0])
    groups = np.repeat(["A", "B"], 5)
    rule = fairramp.fit_rule(scores, groups, max_gap=0.3, ramp_width=0, ramp="paper")
    best = solve_convex(
        scores,
        np.repeat([0, 1], 5),
        np.ones(10),
        max_gap=0.3,
        target_rate=None,
        cutoff=0.5,
        ramp_width=0.0,
        offset=0.0,
    )
    h = rule.probabilities(scores, groups)
    ours = objective(h, scores, np.ones(10), cutoff=0.5, ramp_width=0.0, offset=0.0)
    assert ours == pytest.approx(best.objective, abs=1e-9)
    assert rule.record.gap_after <= 0.3 + 1e-9
