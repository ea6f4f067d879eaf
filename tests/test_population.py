"""Fits with `confidence`: the largest gap on the fit rows whose limit stays within the requested `max_gap`."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import fairramp
from fairramp import InputError, RandomizedThresholdOptimizer, Rule, fit_frame, fit_rule, fit_summary, summarize
from fairramp.core.words import upward_points
from samples import quiet_fit


def rows(sizes=(3_000, 2_000), seed=0):
    """Groups whose own rates differ by far more than the requested gap."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    return rng.beta(2.0 + 4.0 * groups / len(sizes), 2.5), groups


SCORES, GROUPS = rows()
LABELS = (np.random.default_rng(1).random(len(SCORES)) < SCORES).astype(int)


def limit(rule, which="estimated", confidence=0.95):
    return getattr(rule.certificate(confidence), which)


@pytest.mark.parametrize("which", ["estimated", "proven"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ramp_width": 0},
        {"target_rate": 0.55},
        {"target_rate": "accuracy", "labels": LABELS},
        {"target_rate": "base_rate", "labels": LABELS, "ramp_width": 0.2},
        {"ramp": "paper"},
        {"strata": GROUPS * 0 + (np.arange(len(GROUPS)) % 2)},
    ],
)
def test_largest_gap_that_keeps_the_limit_is_used(options, which):
    most = 0.09
    rule = quiet_fit(SCORES, GROUPS, max_gap=most, confidence=0.95, confidence_limit=which, **options)
    assert limit(rule, which) <= most
    assert 0 < rule.max_gap <= most
    # Labels may choose a gap below the limit.
    assert (rule.max_gap < most) == (options.get("target_rate") != "accuracy")
    assert rule.record.gap_after <= rule.max_gap + 1e-9
    assert rule.record.asked == fairramp.Asked(most, 0.95, which)
    # The result is exactly the rule for that gap.
    plain = quiet_fit(SCORES, GROUPS, max_gap=rule.max_gap, **options)
    assert replace(rule, record=replace(rule.record, asked=None)) == plain
    # A gap larger by 0.3% of the limit is too large.
    assert (
        rule.max_gap == most
        or limit(quiet_fit(SCORES, GROUPS, max_gap=rule.max_gap + 0.003 * most, **options), which) > most
    )


@given(
    sizes=st.lists(st.integers(50, 3_000), min_size=2, max_size=5),
    seed=st.integers(0, 5),
    most=st.floats(0.02, 0.5),
    confidence=st.sampled_from([0.8, 0.95, 0.99]),
)
@settings(max_examples=15, deadline=None)
def test_limit_is_kept_or_the_error_says_what_is_possible(sizes, seed, most, confidence):
    sample = rows(sizes, seed)
    least = limit(quiet_fit(*sample), confidence=confidence)
    if least <= most:
        rule = quiet_fit(*sample, max_gap=most, confidence=confidence)
        assert limit(rule, confidence=confidence) <= most
        return
    with pytest.raises(InputError) as caught:
        quiet_fit(*sample, max_gap=most, confidence=confidence)
    assert caught.value.argument == "max_gap"
    said = re.fullmatch(
        r"`max_gap` of \S+ points cannot be guaranteed in the population with \S+% confidence: even the "
        r"smallest gap on these rows has an estimated limit of ([\d.]+) points; allow ([\d.]+), or fit about "
        r"([\d,]+) rows per group; groups with fewer: \d+ \(([\d,]+) rows\).*\.",
        str(caught.value),
    )
    found, allowed, needed, has = (float(part.replace(",", "")) for part in said.groups())
    assert least - 1e-9 <= found / 100 <= least + 0.001
    assert has == min(sizes) < needed
    assert limit(quiet_fit(*sample, max_gap=allowed, confidence=confidence), confidence=confidence) <= allowed


def test_rows_suggested_by_the_error_suffice():
    sample = rows((400, 300))
    with pytest.raises(InputError) as caught:
        quiet_fit(*sample, max_gap=0.05, confidence=0.95)
    needed = caught.value.values["needed"]
    more = rows((round(needed * 1.05),) * 2, seed=1)
    assert limit(quiet_fit(*more, max_gap=0.05, confidence=0.95)) <= 0.05


def test_only_small_groups_need_more_rows():
    with pytest.raises(InputError) as caught:
        quiet_fit(*rows((20_000, 60)), max_gap=0.05, confidence=0.95)
    assert "groups with fewer: 1 (60 rows)." in str(caught.value)
    needed = caught.value.values["needed"]
    assert limit(quiet_fit(*rows((20_000, round(1.05 * needed))), max_gap=0.05, confidence=0.95)) <= 0.05


def test_no_rows_are_suggested_if_none_would_help():
    coarse = summarize(SCORES, GROUPS, resolution=16)
    with pytest.raises(InputError, match=r"limit of [\d.]+ points; allow [\d.]+\.$"):
        fit_summary(coarse, max_gap=0.001, confidence=0.95, ramp_width=0.001)


@pytest.mark.parametrize("confidence", [np.float64(0.95), np.float32(0.95)])
def test_numpy_confidence_is_stored_as_a_float(confidence, tmp_path):
    fit_rule(SCORES, GROUPS, max_gap=0.09, confidence=confidence).save(tmp_path / "rule.json")
    assert Rule.load(tmp_path / "rule.json").record.asked.confidence == pytest.approx(0.95)


def test_data_dependent_gap_rules_out_bounds_that_need_a_fixed_one():
    found = quiet_fit(
        SCORES, GROUPS, target_rate=0.55, max_gap=0.09, confidence=0.95, confidence_limit="proven"
    ).certificate()
    assert {bound.name for bound in found.bounds if bound.is_theorem} == {"pairs", "dkw", "theorem_1"}


def test_decisions_that_meet_the_limit_with_confidence_are_kept():
    scores, groups = rows((40_000, 40_000))
    own = fairramp.audit(scores, groups).gap
    rule = fit_rule(scores, groups, max_gap=own + 0.05, confidence=0.95)
    assert rule.is_hard
    assert set(rule.thresholds) == {0.5}
    assert rule.max_gap == own + 0.05


def test_every_fit_function_gives_the_same_rule():
    import duckdb
    import polars

    scores, groups = rows((60_000, 50_000))  # enough rows for bins
    frame = polars.DataFrame({"p": scores, "g": groups})
    asked = {"max_gap": 0.05, "confidence": 0.95}
    expected = fit_rule(frame["p"], {"g": groups}, **asked)
    assert fit_frame(frame, score="p", group="g", **asked) == expected
    for lazy in (frame.lazy(), duckdb.sql("SELECT * FROM frame")):
        other = fit_frame(lazy, score="p", group="g", **asked)
        assert other.max_gap == pytest.approx(expected.max_gap, abs=0.003 * 0.05)
        assert limit(other) <= 0.05
    binned = fit_summary(summarize(scores, groups), **asked)
    assert limit(binned) <= 0.05
    assert binned.max_gap == pytest.approx(expected.max_gap, abs=0.002)


def test_request_is_saved_and_shown(tmp_path):
    rule = fit_rule(SCORES, GROUPS, max_gap=0.09, confidence=0.9)
    rule.save(tmp_path / "rule.json")
    assert Rule.load(tmp_path / "rule.json") == rule
    text = " ".join(repr(rule).split())
    assert "Gap in the population: at most 9.0 points with 90% confidence (estimated limit)" in text
    assert f"To achieve this, the gap on the fit rows is limited to {upward_points(rule.max_gap)}." in text


def test_weights_allow_an_estimated_limit_but_no_proven_one():
    weights = np.random.default_rng(2).uniform(1, 2, len(SCORES))
    rule = quiet_fit(SCORES, GROUPS, sample_weight=weights, max_gap=0.09, confidence=0.95)
    assert limit(rule) <= 0.09
    with pytest.raises(InputError, match="does not support weights: nothing is proven for weighted rows"):
        quiet_fit(SCORES, GROUPS, sample_weight=weights, max_gap=0.09, confidence=0.95, confidence_limit="proven")


def test_estimator_needs_a_frozen_classifier():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(6_000, 2)) + 0.3 * GROUPS[:1].size * rng.integers(0, 2, 6_000)[:, None]
    sex = rng.choice(["f", "m"], 6_000)
    y = features.sum(axis=1) + rng.normal(size=6_000) > 0.5
    model = LogisticRegression().fit(features[:1_000], y[:1_000])
    frozen = RandomizedThresholdOptimizer(FrozenEstimator(model), max_gap=0.08, confidence=0.95)
    rule = frozen.fit(features[1_000:], y[1_000:], sensitive_features=sex[1_000:]).rule_
    assert limit(rule) <= 0.08
    with pytest.raises(InputError, match=r"^`confidence` needs a trained classifier, .*FrozenEstimator"):
        RandomizedThresholdOptimizer(LogisticRegression(), max_gap=0.08, confidence=0.95).fit(
            features, y, sensitive_features=sex
        )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_gap": 0.0, "confidence": 0.95}, "`confidence` requires `max_gap` above 0"),
        (
            {"confidence": 95, "max_gap": 0.1},
            "`confidence` must be between 0.5 and 0.999999999, got 95; for 95%, pass 0.95",
        ),
        ({"confidence": float("nan"), "max_gap": 0.1}, "`confidence` must be between 0.5 and"),
        ({"confidence_limit": "proven", "max_gap": 0.1}, "`confidence_limit` requires `confidence`"),
        ({"confidence_limit": "sure", "max_gap": 0.1}, "`confidence_limit` must be one of 'estimated', 'proven'"),
        (
            {"confidence": 0.9, "max_gap": 0.1, "solver": "sgd", "target_rate": 0.4},
            "`confidence` requires the exact solver",
        ),
    ],
)
def test_invalid_requests_raise(options, sentence):
    with pytest.raises(InputError) as caught:
        fit_rule(SCORES, GROUPS, **options)
    assert str(caught.value).startswith(sentence)
