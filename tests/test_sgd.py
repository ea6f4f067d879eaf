"""The published SGD solver: close to the exact one, within its bound, reproducible; and streaming fits."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import fairramp
import oracles
from fairramp import SGD, InputError, Ramp, Rule, RuleFormatError, StreamingFit
from fairramp.core.bands import Gap
from fairramp.fit.problem import Fixed, Problem
from fairramp.fit.sgd import DualDescent, descend, published_rate
from fairramp.measure.bounds import proposition_1_bound
from samples import quiet_fit, rates, sample

ADULT = fairramp.datasets.load_adult_scores()
PUBLISHED = {"ramp": "paper", "target_rate": 0.2, "ramp_width": 0.05}


def thresholds(rule):
    return np.array(rule.thresholds)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("max_gap", [0.0, 0.05])
def test_after_25_epochs_the_last_iterate_is_within_0_01(seed, max_gap):
    exact = fairramp.fit_rule(ADULT.score, ADULT.sex, max_gap=max_gap, **PUBLISHED)
    found = fairramp.fit_rule(
        ADULT.score, ADULT.sex, max_gap=max_gap, solver=SGD(epochs=25, random_state=seed), **PUBLISHED
    )
    assert np.abs(thresholds(found) - thresholds(exact)).max() < 0.005  # 0.01 in signed scores


def test_average_iterate_converges_more_slowly_than_the_last():
    exact = thresholds(fairramp.fit_rule(ADULT.score, ADULT.sex, **PUBLISHED))
    last, average = (
        thresholds(fairramp.fit_rule(ADULT.score, ADULT.sex, solver=SGD(epochs=25, iterate=which), **PUBLISHED))
        for which in ("last", "average")
    )
    assert np.abs(average - exact).max() > 5 * np.abs(last - exact).max()


def dual_objective(scores, groups, upper, lower, problem):
    """F at given λ and μ, in signed units, up to a constant that depends only on c.

    ξ is the integral of the probability: with v = w + cγ it is v²/(2γ) on 0 ≤ v ≤ γ and v − γ/2 beyond.
    """
    width, threshold = problem.ramp_width, upper - lower
    v = scores - threshold[groups] + problem.offset * width
    xi = np.clip(v, 0.0, width) ** 2 / (2 * width) + np.maximum(v - width, 0.0)
    linear = problem.band.max_gap / 2 * (upper + lower) + problem.level.rate * threshold
    return float(np.mean(linear[groups] + xi))


@pytest.mark.parametrize("max_gap", [0.0, 0.1])
def test_average_iterate_is_within_proposition_1_over_many_seeds(max_gap):
    scores, codes = sample(1000, 2)
    problem = Problem(Gap(max_gap), Fixed(0.4), 0.0, 0.1, 0.0)
    exact = quiet_fit(scores, codes, ramp="paper", target_rate=0.4, max_gap=max_gap, ramp_width=0.05)
    t = 2 * (thresholds(exact) - 0.5)
    signed = 2 * (scores - 0.5)
    best = dual_objective(signed, codes, np.maximum(t, 0), np.maximum(-t, 0), problem)
    runs = [descend(signed, codes, None, 2, problem, SGD(epochs=5, random_state=seed)) for seed in range(24)]
    excess = [dual_objective(signed, codes, run.upper, run.lower, problem) - best for run in runs]
    bound = proposition_1_bound(0.4, max_gap, runs[0].learning_rate, runs[0].steps, t)
    assert min(excess) >= -1e-12  # the exact thresholds minimize the dual
    assert 0 < np.mean(excess) <= bound
    assert runs[0].learning_rate == 0.1 * np.sqrt(2 / runs[0].steps)


def test_sgd_the_exact_solver_and_a_convex_solver_agree():
    scores, codes = sample(200, 2, seed=3)
    problem = {"target_rate": 0.35, "max_gap": 0.04, "ramp_width": 0.1}
    convex = oracles.solve_convex(scores, codes, np.ones(200), cutoff=0.5, offset=0.0, **problem)
    exact = quiet_fit(scores, codes, ramp="paper", **problem)
    found = quiet_fit(scores, codes, ramp="paper", solver=SGD(epochs=4000, batch_size=20), **problem)
    np.testing.assert_allclose(exact.probabilities(scores, codes), convex.h, atol=1e-5)
    np.testing.assert_allclose(found.probabilities(scores, codes), convex.h, atol=0.02)


def test_record_traces_the_descent():
    rule = quiet_fit(*sample(), ramp="paper", target_rate=0.5, solver=SGD(epochs=7))
    assert rule.record.solver == "sgd"
    assert np.array(rule.record.trace).shape == (7, 2)
    np.testing.assert_allclose(rule.record.trace[-1], thresholds(rule), atol=1e-15)
    assert quiet_fit(*sample(), target_rate=0.5).record.trace is None
    assert Rule.from_json(rule.to_json()) == rule


def test_invalid_trace_raises():
    text = quiet_fit(*sample(), target_rate=0.5, solver=SGD(epochs=1)).to_json()
    for old, new, reason in (
        ('"solver": "sgd"', '"solver": "magic"', '"record.solver" must be "exact" or "sgd", got \'magic\''),
        ('"trace": [\n', '"trace": [\n   [0.5],\n', '"trace" of the record must have one entry per group'),
    ):
        assert old in text
        with pytest.raises(RuleFormatError, match=reason):
            Rule.from_json(text.replace(old, new))


def test_record_has_the_rates_of_the_rule():
    scores, codes = sample(50_000)
    rule = fairramp.fit_rule(scores, codes, target_rate=0.3, solver=SGD(epochs=1))
    np.testing.assert_allclose(
        rule.record.rates["selection"].after, rates(rule.probabilities(scores, codes), codes), atol=1e-9
    )
    np.testing.assert_allclose(rule.record.rates["selection"].before, rates(scores >= 0.5, codes), atol=1e-12)


def test_seed_determines_the_rule():
    def fit(seed):
        return quiet_fit(*sample(), target_rate=0.5, solver=SGD(epochs=2, random_state=seed))

    assert fit(0) == fit(0) == quiet_fit(*sample(), target_rate=0.5, solver=SGD(epochs=2))
    assert fit(0) != fit(1)


def test_global_random_state_is_untouched():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 -- that it is not used is the point
    quiet_fit(*sample(), target_rate=0.5, solver=SGD(epochs=1))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_sgd_rules_are_certified_only_by_bounds_for_any_threshold():
    certificate = quiet_fit(*sample(5000), target_rate=0.5, solver="sgd").certificate()
    assert {bound.name for bound in certificate.bounds} == {"pairs", "dkw"}
    assert certificate.estimated == certificate.proven


def test_weights_agree_with_the_exact_solver():
    scores, codes = sample(2000)
    weights = np.where(scores > 0.7, 3.0, 1.0)
    settings = {"ramp_width": 0.1, "target_rate": 0.4, "sample_weight": weights}
    exact = fairramp.fit_rule(scores, codes, **settings)
    found = fairramp.fit_rule(scores, codes, solver=SGD(epochs=200), **settings)
    assert np.abs(thresholds(found) - thresholds(exact)).max() < 0.02


@pytest.mark.parametrize("scale", ["probability", "percent", "signed", "logit"])
def test_scales_agree(scale):
    scores, codes = sample(2000)
    shown = {
        "probability": scores,
        "percent": 100 * scores,
        "signed": 2 * scores - 1,
        "logit": np.log(scores / (1 - scores)),
    }[scale]
    width = 0.1 if scale == "signed" else 0.05
    rule = fairramp.fit_rule(shown, codes, scale=scale, ramp_width=width, target_rate=0.4, solver=SGD(epochs=3))
    plain = fairramp.fit_rule(scores, codes, ramp_width=0.05, target_rate=0.4, solver=SGD(epochs=3))
    np.testing.assert_allclose(rule.probabilities(shown, codes), plain.probabilities(scores, codes), atol=1e-9)


def test_one_step_is_the_published_update():
    """λ ← [λ − α (ε/2 + ρ − g)]⁺ and μ ← [μ − α (ε/2 − ρ + g)]⁺, computed by hand."""
    problem = Problem(Gap(0.1), Fixed(0.4), 0.0, 0.2, 0.0)
    state = DualDescent(problem, 2)
    state.step(0.12, 1, 0.5)  # g = 0.12 / 0.2 = 0.6
    assert state.upper == [0.0, pytest.approx(0.5 * (0.6 - 0.4 - 0.05))]
    assert state.lower == [0.0, 0.0]
    state.step(-0.3, 0, 0.5)  # g = 0
    assert state.lower == [pytest.approx(0.5 * (0.4 - 0.05)), 0.0]
    np.testing.assert_allclose(state.averages[0], [0.0, 0.075])
    np.testing.assert_allclose(state.averages[1], [0.0875, 0.0])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 2)), min_size=1, max_size=60), st.floats(0, 0.5))
def test_averages_are_the_means_of_all_iterates(rows, max_gap):
    problem = Problem(Gap(max_gap), Fixed(0.3), 0.0, 0.2, 0.5)
    state, seen = DualDescent(problem, 3), []
    for score, group in rows:
        state.step(score, group, 0.3)
        seen.append((list(state.upper), list(state.lower)))
    upper, lower = np.mean(seen, axis=0)
    np.testing.assert_allclose(state.averages[0], upper, atol=1e-12)
    np.testing.assert_allclose(state.averages[1], lower, atol=1e-12)


def test_batch_of_one_row_is_a_step():
    problem = Problem(Gap(0.02), Fixed(0.3), 0.0, 0.2, 0.5)
    one, other = DualDescent(problem, 2), DualDescent(problem, 2)
    rng = np.random.default_rng(0)
    for score, group in zip(rng.uniform(-1, 1, 200), rng.integers(2, size=200), strict=True):
        one.step(score, group, 0.1)
        other.batch(np.array([score]), np.array([group]), 0.1, np.ones(1))
    np.testing.assert_allclose(one.last, other.last, atol=1e-14)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"solver": "adam"}, r"`solver` must be 'exact', 'sgd' or a fairramp\.SGD, got 'adam'"),
        (
            {"solver": "sgd"},
            "`solver='sgd'` requires `target_rate` to be a number, or 'base_rate' with labels, got 'opt",
        ),
        ({"solver": "sgd", "target_rate": 0.5, "ramp_width": 0}, "`solver='sgd'` requires `ramp_width` above 0"),
    ],
)
def test_unsupported_settings_raise(wanted, message):
    with pytest.raises(InputError, match=message):
        quiet_fit(*sample(), **wanted)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"epochs": 0}, "`epochs` must be a positive integer, got 0"),
        ({"epochs": 2.5}, "`epochs` must be a positive integer"),
        ({"batch_size": True}, "`batch_size` must be a positive integer"),
        ({"random_state": -1}, "`random_state` must be an integer of at least 0"),
        ({"random_state": None}, "`random_state` must be an integer of at least 0"),
        ({"iterate": "best"}, "`iterate` must be"),
        ({"learning_rate": 0}, "`learning_rate` must be a positive number or None, got 0"),
        ({"learning_rate": float("nan")}, "`learning_rate` must be a positive number"),
    ],
)
def test_bad_sgd_settings_raise(wanted, message):
    with pytest.raises(InputError, match=message):
        SGD(**wanted)


def test_base_rate_equals_the_same_number():
    scores, codes = sample(1000)
    labels = (np.arange(1000) % 4 == 0).astype(int)
    by_word = fairramp.fit_rule(scores, codes, labels, target_rate="base_rate", solver=SGD(epochs=1))
    by_number = fairramp.fit_rule(scores, codes, target_rate=0.25, solver=SGD(epochs=1))
    assert by_word.ramps == by_number.ramps
    assert by_word.record.target == "base_rate"


def test_pooled_and_original_policies_work():
    scores, codes = sample(1000)
    settings = {"target_rate": 0.4, "ramp_width": 0.1}
    pooled = fairramp.fit_rule(scores, codes, unseen_group="pooled", solver=SGD(epochs=1), **settings)
    exact = fairramp.fit_rule(scores, codes, unseen_group="pooled", **settings)
    assert pooled.pooled == exact.pooled
    original = fairramp.fit_rule(scores, codes, unseen_group="original", solver=SGD(epochs=1), **settings)
    np.testing.assert_array_equal(original.probabilities([0.4, 0.6], [9, 9]), [0, 1])


def test_unseen_group_policy_does_not_change_the_record(binned):
    scores, codes = sample(3000)
    settings = {"target_rate": 0.3, "ramp_width": 0.02, "solver": SGD(epochs=1)}
    records = [fairramp.fit_rule(scores, codes, unseen_group=p, **settings).record for p in ("error", "pooled")]
    assert records[0] == records[1]


# Streams


def test_stream_is_the_published_update_row_by_row():
    scores, codes = sample(300)
    stream = StreamingFit(target_rate=0.3, ramp="paper", ramp_width=0.1, learning_rate=0.02)
    stream.partial_fit(scores, codes)
    problem = Problem(Gap(0.0), Fixed(0.3), 0.0, 0.2, 0.0)
    state = DualDescent(problem, 2)
    for score, group in zip(2 * (scores - 0.5), codes, strict=True):
        state.step(score, group, 0.02)
    np.testing.assert_allclose(thresholds(stream.rule()), 0.5 + state.last / 2, atol=1e-15)


def test_chunking_does_not_matter_once_all_groups_are_known():
    scores, codes = sample(500)
    settings = {"target_rate": 0.3, "ramp_width": 0.05}
    whole = StreamingFit(**settings).partial_fit(scores, codes)
    parts = StreamingFit(**settings).partial_fit(scores[:10], codes[:10])
    for row in range(10, 500):
        parts.partial_fit(scores[row : row + 1], codes[row : row + 1])
    assert set(codes[:10]) == {0, 1}
    assert parts.rule() == whole.rule()
    assert parts.steps == 500


def test_stream_approaches_the_exact_rule():
    exact = fairramp.fit_rule(ADULT.score, ADULT.sex, **PUBLISHED)
    stream = StreamingFit(**PUBLISHED)
    for _ in range(10):
        stream.partial_fit(ADULT.score, ADULT.sex)
    assert np.abs(thresholds(stream.rule()) - thresholds(exact)).max() < 0.02


def test_stream_can_continue_from_a_rule():
    exact = fairramp.fit_rule(ADULT.score, ADULT.sex, **PUBLISHED)
    start = StreamingFit.from_rule(exact)
    np.testing.assert_allclose(thresholds(start.rule()), thresholds(exact), atol=1e-15)
    assert start.steps == len(ADULT.score)
    moved = start.partial_fit(ADULT.score[:2000], ADULT.sex[:2000]).rule()
    assert moved.ramps != exact.ramps
    assert np.abs(thresholds(moved) - thresholds(exact)).max() < 0.05


def test_bad_row_leaves_a_stream_unchanged():
    stream = StreamingFit(target_rate=0.3).partial_fit([0.2, 0.8], ["a", "b"])
    before = stream.rule()
    with pytest.raises(InputError, match=r"`scores` must be between 0 and 1"):
        stream.partial_fit([0.5, 1.5], ["a", "c"])
    assert stream.rule() == before


def test_stream_without_rows_has_no_rule():
    with pytest.raises(fairramp.FairrampError, match="No rows yet"):
        StreamingFit(target_rate=0.5).rule()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"target_rate": "optimal"}, r"`target_rate` must be a number between 0 and 1 for a stream"),
        ({"target_rate": 0.5, "ramp_width": 0}, "`ramp_width` must be above 0 for a stream, got 0"),
        ({"target_rate": None}, r"`target_rate` must be a number between 0 and 1 for a stream, got None"),
        ({"target_rate": 0.5, "unseen_group": "pooled"}, "`unseen_group` must be"),
        ({"target_rate": 0.5, "iterate": "best"}, "`iterate` must be"),
        ({"target_rate": 2}, r"`target_rate` must be between 0 and 1, got 2"),
    ],
)
def test_bad_stream_settings_raise(wanted, message):
    with pytest.raises(InputError, match=message):
        StreamingFit(**wanted)


def test_estimator_continues_the_descent_without_keeping_rows():
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 4000)
    x = rng.normal(size=(4000, 2)) + (sex == "m")[:, None]
    y = (x.sum(axis=1) + rng.logistic(size=4000) > 1).astype(int)
    model = FrozenEstimator(LogisticRegression().fit(x, y))
    fair = fairramp.RandomizedThresholdOptimizer(
        model, solver=SGD(epochs=3), target_rate="base_rate", ramp_width=0.05
    )
    fair.fit(x[:1000], y[:1000], sensitive_features=sex[:1000])
    first = fair.rule_
    assert first.record.solver == "sgd"
    for start in range(1000, 4000, 500):
        rows = slice(start, start + 500)
        fair.partial_fit(x[rows], y[rows], sensitive_features=sex[rows])
    assert fair.rule_.ramps != first.ramps
    assert isinstance(fair._seen, StreamingFit)
    assert len(pickle.dumps(fair)) < 4000  # two thresholds and a classifier with two features, not 4,000 rows
    scores = model.predict_proba(x)[:, 1]
    assert np.ptp(rates(fair.rule_.probabilities(scores, sex), sex)) < 0.06
    kept = fair.rule_
    with pytest.raises(InputError, match="`sample_weight` cannot be used"):
        fair.partial_fit(x, y, sensitive_features=sex, sample_weight=np.ones(4000))
    assert fair.rule_ is kept


def two_columns(n_rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(2, size=n_rows), rng.integers(2, size=n_rows)
    return rng.beta(2 + a, 2 + 3 * b), pd.DataFrame({"a": a.astype(str), "b": b.astype(str)})


def test_stream_matches_group_columns_by_name():
    scores, frame = two_columns()
    stream = StreamingFit(target_rate=0.3, ramp_width=0.05).partial_fit(scores, frame)
    rule = stream.rule()
    np.testing.assert_array_equal(
        rule.probabilities(scores, frame), rule.probabilities(scores, frame[["b", "a"]])
    )
    assert Rule.from_json(rule.to_json()) == rule
    one, other = (
        StreamingFit.from_rule(rule, steps=3000).partial_fit(scores, columns).rule()
        for columns in (frame, frame[["b", "a"]])
    )
    assert one == other
    with pytest.raises(
        InputError, match=r"`groups` must have the 2 columns \['a', 'b'\] of the earlier rows, got 1"
    ):
        stream.partial_fit(scores, frame["a"].to_numpy())


def test_booleans_after_numbers_raise():
    stream = StreamingFit(target_rate=0.3).partial_fit([0.2, 0.8], [0, 1])
    with pytest.raises(InputError, match="mixes booleans and numbers"):
        stream.partial_fit([0.2, 0.8], [False, True])


def test_average_of_a_new_group_starts_with_its_first_row():
    scores, codes = sample(6000, 2)
    late = StreamingFit(target_rate=0.3, ramp_width=0.1, iterate="average")
    late.partial_fit(scores, np.array(["a", "b"])[codes])
    late.partial_fit(scores[codes == 0], ["c"] * 3000)
    found = dict(zip(late.rule().groups, thresholds(late.rule()), strict=True))
    assert abs(found["c"] - found["a"]) < 0.05


def test_stream_can_be_saved_and_resumed():
    scores, codes = sample(2000)
    settings = {"target_rate": 0.3, "ramp_width": 0.05}
    whole = StreamingFit(**settings).partial_fit(scores, codes)
    half = StreamingFit(**settings).partial_fit(scores[:1000], codes[:1000])
    resumed = StreamingFit.from_rule(Rule.from_json(half.rule().to_json()), steps=half.steps)
    resumed.partial_fit(scores[1000:], codes[1000:])
    assert resumed.steps == whole.steps
    # Not identical: a rule stores λ − μ, not both.
    np.testing.assert_allclose(thresholds(resumed.rule()), thresholds(whole.rule()), atol=0.02)


@pytest.mark.parametrize(
    ("rule", "options", "message"),
    [
        ("x", {}, r"`rule` must be a fairramp\.Rule, got 'x'"),
        (
            Rule(("a", "b"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1))),
            {},
            "`rule` has no record of its fit: pass `steps`",
        ),
        (
            Rule(("a", "b"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1))),
            {"steps": 0},
            "`steps` must be a positive integer",
        ),
        (
            Rule(("a", "b"), (Ramp.centered(0.5, 0), Ramp.centered(0.4, 0))),
            {"steps": 9},
            "`ramp_width` must be above 0",
        ),
        (
            Rule(("a", "b"), (Ramp(0.5, 0.1), Ramp(0.4, 0.2))),
            {"steps": 9},
            "`rule` must have ramps of equal width",
        ),
        (quiet_fit(*sample(), strata=np.arange(400) % 3), {}, "does not support strata"),
    ],
)
def test_rules_that_cannot_be_resumed_raise(rule, options, message):
    with pytest.raises(InputError, match=message):
        StreamingFit.from_rule(rule, **options)


def test_ramp_for_unseen_groups_does_not_move():
    scores, codes = sample(2000)
    rule = fairramp.fit_rule(scores, codes, target_rate=0.3, unseen_group="pooled", ramp_width=0.05)
    later = StreamingFit.from_rule(rule).partial_fit(scores[:100], codes[:100]).rule()
    assert later.pooled == rule.pooled
    assert later.unseen_group == "pooled"


def test_from_rule_resumes_either_iterate():
    scores, codes = sample(2000)
    rule = fairramp.fit_rule(scores, codes, target_rate=0.3, solver=SGD(epochs=2, iterate="average"))
    last = StreamingFit.from_rule(rule, iterate="last").rule()
    average = StreamingFit.from_rule(rule, iterate="average").rule()
    np.testing.assert_allclose(thresholds(last), rule.record.trace[-1], atol=1e-15)
    np.testing.assert_allclose(thresholds(average), thresholds(rule), atol=1e-15)


def test_batch_is_capped_at_the_number_of_rows():
    scores, codes = sample(400)
    exact, more = (
        quiet_fit(scores, codes, target_rate=0.3, solver=SGD(epochs=5, batch_size=size)) for size in (400, 10**6)
    )
    assert exact.ramps == more.ramps


def test_estimator_keeps_columns_and_settings_during_the_descent():
    scores, frame = two_columns()
    x = np.log(scores / (1 - scores))[:, None]
    y = (np.arange(3000) % 3 == 0).astype(int)
    model = FrozenEstimator(LogisticRegression().fit(x, scores > 0.5))
    fair = fairramp.RandomizedThresholdOptimizer(
        model, solver=SGD(epochs=2, learning_rate=0.01), target_rate=0.3, ramp_width=0.05
    )
    fair.fit(x, y, sensitive_features=frame).partial_fit(x, y, sensitive_features=frame[["b", "a"]])
    np.testing.assert_array_equal(
        fair.predict_proba(x, sensitive_features=frame),
        fair.predict_proba(x, sensitive_features=frame[["b", "a"]]),
    )
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fair.partial_fit(x, y[:10], sensitive_features=frame)
    with pytest.raises(InputError, match="The settings have changed since `fit`"):
        fair.set_params(target_rate=0.5).partial_fit(x, y, sensitive_features=frame)


def test_published_learning_rate_is_a_tenth_of_root_groups_per_step():
    assert published_rate(2, 200) == pytest.approx(0.01)
