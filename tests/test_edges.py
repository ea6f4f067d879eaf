"""Unusual but valid data: tiny groups, ties, narrow floats, extreme weights, odd memory layouts.

Whatever comes, the gap on the fit sample is at most max_gap + 1e-9 and the input is left as it was. Each
law is checked on both ways through the fit: rows sorted at once, and rows binned and refined.
"""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from fairramp import Rule
from samples import gap, quiet_fit, rates, sample

SLACK = 1e-9


@pytest.fixture(params=["sorted", "binned"], autouse=True)
def way(request):
    """Each code path of the fit."""
    if request.param == "binned":
        request.getfixturevalue("binned")
    return request.param


def fit(scores, groups, **options):
    """Fit, and check the invariants of every rule."""
    rule = quiet_fit(scores, groups, **options)
    chances = rule.probabilities(scores, groups)
    weights = options.get("sample_weight")
    assert chances.shape == np.shape(scores)
    assert chances.dtype == np.float64
    assert ((chances >= 0) & (chances <= 1)).all()
    assert gap(chances, groups, weights) <= options.get("max_gap", 0) + SLACK
    # The record matches what the rule does.
    np.testing.assert_allclose(
        rule.record.rates["selection"].after, rates(chances, groups, weights), rtol=0, atol=SLACK
    )
    assert np.isfinite(rule.record.rates["selection"].effective_rows).all()
    assert Rule.from_json(rule.to_json()) == rule
    return rule


WIDTHS = pytest.mark.parametrize("ramp_width", [0, 1e-6, 0.01, 0.5])
RAMPS = pytest.mark.parametrize("ramp", ["centered", "paper"])
#: Enough rows to be binned without the fixture, in whose tiny blocks they would take minutes.
AS_SHIPPED = pytest.mark.parametrize("way", ["sorted"], indirect=True)
GAPS = pytest.mark.parametrize("max_gap", [0, 0.05])


# Few rows -----------------------------------------------------------------------------------------


@WIDTHS
@RAMPS
@GAPS
def test_groups_of_one_and_two_rows_keep_the_gap(ramp_width, ramp, max_gap):
    scores = np.array([0.9, 0.2, 0.7, 0.1, 0.4, 0.45, 0.8])
    groups = np.array([0, 1, 1, 2, 3, 3, 4])
    fit(scores, groups, ramp_width=ramp_width, ramp=ramp, max_gap=max_gap)


@WIDTHS
def test_two_rows_of_two_groups_get_equal_probabilities_without_a_gap(ramp_width):
    rule = fit([0.9, 0.2], ["A", "B"], ramp_width=ramp_width)
    first, second = rule.probabilities([0.9, 0.2], ["A", "B"])
    assert first == pytest.approx(second, abs=SLACK)


@WIDTHS
def test_a_single_row_keeps_its_decision(ramp_width):
    for score in (0.0, 0.2, 0.5, 0.7, 1.0):
        rule = fit([score], ["A"], ramp_width=ramp_width)
        assert rule.probabilities([score], ["A"]) == [score >= 0.5]


@WIDTHS
def test_a_group_of_one_row_beside_a_large_one_keeps_the_gap(ramp_width):
    scores, _ = sample(400)
    fit(scores, np.arange(400) == 17, ramp_width=ramp_width)


# Ties ---------------------------------------------------------------------------------------------


@WIDTHS
@RAMPS
@GAPS
@pytest.mark.parametrize("value", [0.0, 0.5, 0.8])
def test_scores_that_are_all_equal_keep_the_gap(value, ramp_width, ramp, max_gap):
    fit(np.full(90, value), np.arange(90) % 3, ramp_width=ramp_width, ramp=ramp, max_gap=max_gap)


@WIDTHS
@pytest.mark.parametrize("target_rate", [0, 0.25, 1 / 3, 1])
def test_scores_that_are_all_equal_reach_any_rate(ramp_width, target_rate):
    scores, groups = np.full(90, 0.5), np.arange(90) % 3
    rule = fit(scores, groups, ramp_width=ramp_width, target_rate=target_rate)
    assert rule.probabilities(scores, groups) == pytest.approx(target_rate, abs=SLACK)


@WIDTHS
@pytest.mark.parametrize("target_rate", [0.1, 0.25, 1 / 3, 0.7])
def test_effective_rows_of_equal_scores_do_not_depend_on_rounding(ramp_width, target_rate):
    rule = fit(np.full(90, 0.5), np.arange(90) % 3, ramp_width=ramp_width, target_rate=target_rate)
    assert rule.record.rates["selection"].effective_rows == pytest.approx((30, 30, 30))


@WIDTHS
@RAMPS
@GAPS
def test_scores_of_only_0_and_1_keep_the_gap(ramp_width, ramp, max_gap):
    rng = np.random.default_rng(1)
    groups = np.arange(300) % 2
    scores = (rng.random(300) < np.where(groups == 0, 0.3, 0.6)).astype(float)
    fit(scores, groups, ramp_width=ramp_width, ramp=ramp, max_gap=max_gap)


@pytest.mark.parametrize("kind", [bool, np.int8, np.int64, np.uint8])
def test_boolean_and_integer_scores_equal_float_scores(kind):
    rng = np.random.default_rng(1)
    groups = np.arange(300) % 2
    scores = rng.random(300) < np.where(groups == 0, 0.3, 0.6)
    expected = fit(scores.astype(float), groups).probabilities(scores.astype(float), groups)
    column = scores.astype(kind)
    assert np.array_equal(fit(column, groups).probabilities(column, groups), expected)


@WIDTHS
@GAPS
def test_a_score_shared_by_many_rows_keeps_the_gap(ramp_width, max_gap):
    scores, groups = sample(600, n_groups=3, seed=4)
    fit(np.round(scores, 1), groups, ramp_width=ramp_width, max_gap=max_gap)


@WIDTHS
def test_neighboring_floats_keep_the_gap(ramp_width):
    rng = np.random.default_rng(8)
    scores = 0.5 + rng.integers(-20, 20, 400) * 2.0**-53
    fit(scores, np.arange(400) % 2, ramp_width=ramp_width)


# Many groups --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ramp_width", [0, 0.01])
@GAPS
@AS_SHIPPED
def test_ten_thousand_groups_keep_the_gap(ramp_width, max_gap):
    rng = np.random.default_rng(2)
    groups = rng.permutation(np.arange(40_000) % 10_000)
    rule = fit(rng.random(40_000), groups, ramp_width=ramp_width, max_gap=max_gap)
    assert rule.groups == tuple(range(10_000))


@AS_SHIPPED
def test_ten_thousand_text_groups_keep_the_gap():
    rng = np.random.default_rng(3)
    names = np.array([f"g{i:05}" for i in range(10_000)])
    rule = fit(rng.random(30_000), names[rng.permutation(np.arange(30_000) % 10_000)])
    assert rule.groups == tuple(names.tolist())


# Narrow floats ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ramp_width", [0, 0.01])
@pytest.mark.parametrize("kind", [np.float16, np.float32, ">f4", ">f8", np.longdouble])
@pytest.mark.parametrize("scale", ["probability", "percent", "signed", "logit"])
def test_narrow_float_scores_match_their_float64_copy(kind, scale, ramp_width):
    scores, groups = sample(500)
    column = {"probability": scores, "percent": 100 * scores}.get(scale, 2 * scores - 1).astype(kind)
    exact = column.astype(np.float64)
    expected = fit(exact, groups, scale=scale, ramp_width=ramp_width)
    rule = fit(column, groups, scale=scale, ramp_width=ramp_width)
    assert rule == expected
    assert np.array_equal(rule.probabilities(column, groups), expected.probabilities(exact, groups))


# Scales and cutoffs ------------------------------------------------------------------------------


@WIDTHS
@RAMPS
@GAPS
@pytest.mark.parametrize("cutoff", [None, 40])
def test_percent_scores_match_probabilities(cutoff, ramp_width, ramp, max_gap):
    scores, groups = sample(500)
    percent = 100 * scores
    options = {"ramp_width": ramp_width, "ramp": ramp, "max_gap": max_gap}
    rule = fit(percent, groups, cutoff=cutoff, scale="percent", **options)
    plain = fit(percent / 100, groups, cutoff=cutoff and cutoff / 100, **options)
    assert rule.cutoff == (cutoff or 50)
    assert (rule.ramps, rule.record.rates["selection"].after) == (
        plain.ramps,
        plain.record.rates["selection"].after,
    )
    assert np.array_equal(rule.probabilities(percent, groups), plain.probabilities(percent / 100, groups))
    assert list(rule.thresholds) == [100 * threshold for threshold in plain.thresholds]
    assert "are percentages" in repr(rule)
    assert type(rule).from_json(rule.to_json()) == rule


@WIDTHS
@RAMPS
@GAPS
@pytest.mark.parametrize("cutoff", [0, 0.1, 0.9, 1])
def test_any_cutoff_keeps_the_gap(cutoff, ramp_width, ramp, max_gap):
    scores, groups = sample(500)
    rule = fit(scores, groups, cutoff=cutoff, ramp_width=ramp_width, ramp=ramp, max_gap=max_gap)
    assert rule.cutoff == cutoff
    assert rule.record.rates["selection"].before == pytest.approx(
        tuple(rates(scores >= cutoff, groups)), abs=1e-15
    )


def expit(logits):
    return 1 / (1 + np.exp(-logits))


@WIDTHS
@RAMPS
@GAPS
@pytest.mark.parametrize("cutoff", [None, 1.5])
def test_logits_match_their_probabilities(cutoff, ramp_width, ramp, max_gap):
    scores, groups = sample(500)
    logits = np.log(scores / (1 - scores))
    options = {"ramp_width": ramp_width, "ramp": ramp, "max_gap": max_gap}
    expected = fit(expit(logits), groups, cutoff=None if cutoff is None else expit(cutoff), **options)
    rule = fit(logits, groups, cutoff=cutoff, scale="logit", **options)
    # A ramp multiplies a difference of 1e-16 in the scores by 1/width.
    slack = max(1e-12, 1e-15 / ramp_width) if ramp_width else 1e-12
    found = rule.probabilities(logits, groups)
    np.testing.assert_allclose(found, expected.probabilities(expit(logits), groups), rtol=0, atol=slack)
    assert rule.thresholds == pytest.approx(expected.thresholds, abs=1e-12)


def test_extreme_logits_do_not_overflow():
    logits = np.concatenate([np.linspace(-1e4, 30, 100), np.linspace(-30, 30, 100)])
    fit(logits, np.arange(200) // 100, scale="logit")


@pytest.mark.parametrize("ramp_width", [0, 1e-4, 0.01, 0.5])
@RAMPS
@GAPS
@pytest.mark.parametrize("cutoff", [None, 0.25])
def test_signed_scores_match_probabilities_with_half_the_ramp_width(cutoff, ramp_width, ramp, max_gap):
    # With scores of 30 bits, 2p − 1 is exact and equal scores stay equal.
    scores, groups = sample(500)
    scores = np.round(scores * 2**30) / 2**30
    options = {"ramp": ramp, "max_gap": max_gap}
    expected = fit(scores, groups, cutoff=cutoff, ramp_width=ramp_width, **options)
    cutoff = None if cutoff is None else 2 * cutoff - 1
    rule = fit(2 * scores - 1, groups, cutoff=cutoff, ramp_width=2 * ramp_width, scale="signed", **options)
    found = rule.probabilities(2 * scores - 1, groups)
    np.testing.assert_allclose(found, expected.probabilities(scores, groups), rtol=0, atol=1e-9)
    thresholds = [2 * threshold - 1 for threshold in expected.thresholds]
    assert list(rule.thresholds) == pytest.approx(thresholds, abs=1e-9)
    assert rule.target_rate == pytest.approx(expected.target_rate, abs=1e-9)


@WIDTHS
def test_minus_zero_equals_zero(ramp_width):
    scores, groups = sample(400)
    scores[::5] = 0.0
    negative = np.where(scores == 0, -0.0, scores)
    assert fit(negative, groups, ramp_width=ramp_width) == fit(scores, groups, ramp_width=ramp_width)
    signed = np.where(scores == 0, -0.0, 2 * scores - 1)
    rule = fit(signed, groups, ramp_width=ramp_width, scale="signed")
    assert rule == fit(signed + 0.0, groups, ramp_width=ramp_width, scale="signed")
    assert np.array_equal(rule.probabilities(signed, groups), rule.probabilities(signed + 0.0, groups))


# Weights ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ramp_width", [0, 0.01])
@pytest.mark.parametrize("target_rate", ["optimal", "base_rate", 0.3])
@pytest.mark.parametrize("factor", [1e-300, 1e-200, 1e-7, 3.0, 1e200, 1e305])
def test_weights_scale_out(factor, target_rate, ramp_width):
    scores, groups = sample(500)
    labels = scores > 0.4
    weights = np.random.default_rng(6).uniform(0.1, 3, 500)
    options = {"ramp_width": ramp_width, "target_rate": target_rate, "max_gap": 0.01}
    expected = fit(scores, groups, labels=labels, sample_weight=weights, **options)
    rule = fit(scores, groups, labels=labels, sample_weight=weights * factor, **options)
    assert rule.target_rate == pytest.approx(expected.target_rate, abs=1e-9)
    assert rule.thresholds == pytest.approx(expected.thresholds, abs=1e-9)
    assert [r.tie for r in rule.ramps] == pytest.approx([r.tie for r in expected.ramps], abs=1e-9)
    assert rule.record.rates["selection"].effective_rows == pytest.approx(
        expected.record.rates["selection"].effective_rows, rel=1e-9
    )
    assert rule.record.rates["selection"].before == pytest.approx(
        expected.record.rates["selection"].before, abs=1e-9
    )


@WIDTHS
def test_equal_weights_equal_no_weights(ramp_width):
    scores, groups = sample(500)
    expected = fit(scores, groups, ramp_width=ramp_width)
    rule = fit(scores, groups, ramp_width=ramp_width, sample_weight=np.full(500, 0.1))
    np.testing.assert_allclose(
        rule.probabilities(scores, groups), expected.probabilities(scores, groups), rtol=0, atol=1e-9
    )
    assert rule.record.weighted
    assert not expected.record.weighted


@WIDTHS
def test_rows_with_zero_weight_are_ignored_but_get_decisions(ramp_width):
    scores, groups = sample(500)
    weights = np.random.default_rng(7).integers(0, 3, 500).astype(float)
    rule = fit(scores, groups, ramp_width=ramp_width, sample_weight=weights)
    kept = weights > 0
    assert rule == fit(scores[kept], groups[kept], ramp_width=ramp_width, sample_weight=weights[kept])


@pytest.mark.parametrize("ramp_width", [0, 0.01])
@pytest.mark.parametrize("ratio", [1e-12, 1e-100, 1e-155, 1e-156, 1e-158, 1e-161, 1e-162, 1e-300])
def test_a_group_with_tiny_weight_keeps_the_gap(ratio, ramp_width):
    scores, groups = sample(500)
    weights = np.where(groups == 0, 1.0, ratio)
    rule = fit(scores, groups, ramp_width=ramp_width, sample_weight=weights)
    assert rule.record.rows == (250, 250)
    # Equal weights within a group count as rows, even if their squares underflow.
    plain = fit(scores, groups, ramp_width=ramp_width, target_rate=rule.target_rate)
    assert rule.record.rates["selection"].effective_rows == pytest.approx(
        plain.record.rates["selection"].effective_rows, rel=0.05
    )


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.uint8, bool])
def test_weights_of_other_types_match_their_floats(kind):
    scores, groups = sample(500)
    weights = np.random.default_rng(7).integers(0, 2, 500).astype(kind)
    assert fit(scores, groups, sample_weight=weights) == fit(scores, groups, sample_weight=weights.astype(float))


# Memory -------------------------------------------------------------------------------------------


def layouts(values):
    """The same values in other memory layouts."""
    table = np.zeros((len(values), 3), dtype=values.dtype)
    table[:, 1] = values
    spaced = np.repeat(values, 3)[::3]
    backward = values[::-1].copy()[::-1]
    frozen = values.copy()
    frozen.flags.writeable = False
    packed = np.frombuffer(b"?" + values.tobytes(), dtype=np.uint8)[1:].view(values.dtype)  # unaligned
    return {
        "column": table[:, 1],
        "spaced": spaced,
        "backward": backward,
        "frozen": frozen,
        "packed": packed,
    }


@pytest.mark.parametrize("layout", ["column", "spaced", "backward", "frozen", "packed"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_memory_layout_does_not_matter(layout, kind):
    scores, groups = sample(500)
    scores = scores.astype(kind)
    weights = np.random.default_rng(6).uniform(0.1, 3, 500)
    expected = fit(scores, groups, sample_weight=weights)
    columns = [layouts(values)[layout] for values in (scores, groups, weights)]
    rule = fit(columns[0], columns[1], sample_weight=columns[2])
    assert rule == expected
    assert np.array_equal(rule.probabilities(columns[0], columns[1]), expected.probabilities(scores, groups))


@pytest.mark.parametrize("scale", ["probability", "percent", "signed", "logit"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("ramp_width", [0, 0.01])
def test_the_input_is_never_modified(scale, kind, ramp_width):
    scores, groups = sample(500)
    inputs = [
        scores.astype(kind),
        groups,
        (scores > 0.4).astype(float),
        np.random.default_rng(6).uniform(0, 3, 500) * 1e200,
        np.arange(500),
    ]
    before = [values.copy() for values in inputs]
    rule = fit(
        inputs[0], inputs[1], labels=inputs[2], sample_weight=inputs[3], scale=scale, ramp_width=ramp_width
    )
    rule.decide(inputs[0], inputs[1], random_state=0)
    rule.decide(inputs[0], inputs[1], ids=inputs[4], key="0" * 64)
    for now, then in zip(inputs, before, strict=True):
        assert np.array_equal(now, then)


def test_probabilities_are_a_new_array():
    scores, groups = sample(500)
    rule = fit(scores, groups)
    chances = rule.probabilities(scores, groups)
    assert not np.shares_memory(chances, scores)
    chances[:] = -1
    assert (rule.probabilities(scores, groups) >= 0).all()


@pytest.mark.parametrize("kind", [list, tuple, pd.Series])
def test_scores_in_any_container_give_the_same_rule(kind):
    scores, groups = sample(500)
    assert fit(kind(scores.tolist()), groups) == fit(scores, groups)


# Probabilities ------------------------------------------------------------------------------------


@WIDTHS
@RAMPS
def test_probabilities_follow_the_published_formula(ramp_width, ramp):
    scores, groups = sample(500)
    rule = fit(scores, groups, ramp_width=ramp_width, ramp=ramp)
    threshold = np.array(rule.thresholds)[groups]
    if ramp_width:
        start = 0.5 if ramp == "centered" else 0.0
        expected = np.clip(start + (scores - threshold) / ramp_width, 0, 1)
    else:
        tie = np.array([r.tie for r in rule.ramps])[groups]
        expected = np.where(scores == threshold, tie, scores > threshold)
    # The order of operations changes (score − threshold) / width by at most rounding / width.
    slack = 1e-15 / ramp_width if ramp_width else 0
    np.testing.assert_allclose(rule.probabilities(scores, groups), expected, rtol=0, atol=slack)
    for code in (0, 1):
        line = np.linspace(0, 1, 500)
        chances = rule.probabilities(line, np.full(500, code))
        assert all(low <= high for low, high in pairwise(chances))
