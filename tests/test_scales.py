"""Scales: real scores keep their order and their value, and the scores at a position are found exactly."""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fairramp
from fairramp import FairrampWarning, InputError, Ramp, Rule, UnsupportedError
from fairramp.core.scales import SCALES, scale_of

REAL = SCALES["real"]
LARGEST = float(np.finfo(np.float64).max)
scores = st.one_of(st.floats(-LARGEST, LARGEST), st.floats(-10, 10), st.floats(0.25, 1.0))
EXTREME = [0.0, -0.0, 5e-324, 1e-300, 0.5, math.nextafter(0.5, 1), 1e15, 2.0**52, 1e16, 1e300, LARGEST]


@given(scores)
@example(math.nextafter(0.5, 0))
@example(0.5)
@example(2.0**52)
def test_a_higher_score_never_has_a_lower_position(x):
    places = REAL.position(np.array([math.nextafter(x, -math.inf), x, math.nextafter(x, math.inf)]))
    assert (np.diff(places) >= 0).all()


@given(st.lists(scores, min_size=2))
def test_positions_keep_the_order(x):
    x = np.sort(x)
    places = REAL.position(x)
    assert (np.diff(places) >= 0).all()
    assert (np.abs(places) <= 1).all()
    inside = np.abs(x) <= 0.5
    assert np.array_equal(places[inside], x[inside])
    assert np.array_equal(REAL.position(-x), -places)


@given(scores)
def test_positions_are_the_formula_up_to_rounding(x):
    """In exact arithmetic, x within ½ of 0 and ±(1 − 1/(4|x|)) beyond."""
    exact = Fraction(x)
    if abs(exact) > Fraction(1, 2):
        exact = (1 - 1 / (4 * abs(exact))) * (1 if exact > 0 else -1)
    assert abs(Fraction(REAL.position_of(x)) - exact) <= Fraction(1, 2**53)


@given(st.floats(-1e6, 1e6))
def test_shown_numbers_are_the_scores(x):
    found = REAL.shown(REAL.position_of(x))
    assert abs(found - x) <= 2.0**-51 * (abs(x) + 4 * x * x) * (abs(x) > 0.5)


@given(st.floats(-1.0, 1.0, exclude_min=True, exclude_max=True))
def test_positions_of_shown_numbers_are_the_positions(p):
    assert abs(REAL.position_of(REAL.shown(p)) - p) <= 2.0**-53 * (abs(p) > 0.5)


def test_positions_outside_the_range_are_shown_as_infinite():
    assert REAL.shown(np.array([-1.5, -1.0, 1.0, 7.0])).tolist() == [-math.inf, -math.inf, math.inf, math.inf]
    assert scale_of("real", False).shown(-1.2) == math.inf


@pytest.mark.parametrize("up", [True, False])
@given(st.one_of(scores, st.sampled_from([v for size in EXTREME for v in (size, -size)])))
def test_the_scores_at_a_position_are_all_that_have_it(up, x):
    scale = scale_of("real", up)
    place = scale.position_of(x)
    low, high = scale.compared_at(place)
    assert low <= scale.turned(x) <= high
    assert scale.position_of(scale.turned(low)) == scale.position_of(scale.turned(high)) == place
    below, above = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    assert math.isinf(below) or scale.position_of(scale.turned(below)) < place
    assert math.isinf(above) or scale.position_of(scale.turned(above)) > place


# Fits ---------------------------------------------------------------------------------------------


def rows(n=6_000, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    score = rng.standard_t(3, n) + 0.4 * group
    return score, group, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)


@pytest.mark.parametrize("ramp_width", [0.0, 0.05])
def test_rates_are_equal_and_probabilities_follow_the_ramps(ramp_width):
    score, group, _ = rows()
    rule = fairramp.fit_rule(score, group, scale="real", cutoff=0.25, target_rate=0.3, ramp_width=ramp_width)
    found = rule.probabilities(score, group)
    assert [found[group == g].mean() for g in range(3)] == pytest.approx([0.3] * 3, abs=1e-9)
    for g, threshold, ramp in zip(range(3), rule.thresholds, rule.ramps, strict=True):
        start, end = rule.ends_of(ramp)
        assert start <= threshold <= end
        apart = 1e-9 * (1 + abs(threshold))
        assert (found[(group == g) & (score > end + apart)] == 1).all()
        assert (found[(group == g) & (score < start - apart)] == 0).all()
    own = (score >= 0.25).astype(float)
    assert rule.record.main.before == pytest.approx([own[group == g].mean() for g in range(3)])


def test_thresholds_of_scores_near_0_are_those_of_signed_scores():
    score, group, label = rows()
    score = np.clip(score / 20, -0.5, 0.5)
    options = {"cutoff": 0.0, "target_rate": "accuracy", "max_gap": 0.05}
    real, signed = (fairramp.fit_rule(score, group, label, scale=s, **options) for s in ("real", "signed"))
    assert real.thresholds == signed.thresholds
    assert real.table().to_dict() == signed.table().to_dict()


def test_rates_for_accuracy_depend_only_on_the_order():
    """By isotonic regression also in small groups, where a line would read scores as probabilities."""
    score, group, label = rows(600)
    options = {"scale": "real", "target_rate": "accuracy", "max_gap": 1.0, "ramp_width": 0.0}
    rates = [
        fairramp.fit_rule(f(score), group, label, cutoff=f(0.0), **options).record.main.after
        for f in (lambda x: x, lambda x: 0.1 * x + 3.0, lambda x: np.sinh(x))
    ]
    assert rates[1] == pytest.approx(rates[0])
    assert rates[2] == pytest.approx(rates[0])


def test_a_cutoff_is_required():
    for call in (
        lambda: fairramp.fit_rule([0.1, 2.0], [0, 1], scale="real"),
        lambda: fairramp.audit([0.1, 2.0], [0, 1], scale="real"),
        lambda: fairramp.summarize([0.1, 2.0], [0, 1], scale="real"),
        lambda: Rule(("a",), (Ramp(0.0, 0.0),), scale="real", cutoff=None),
    ):
        with pytest.raises(
            InputError,
            match=r"^Pass `cutoff`, the score at which the classifier says yes: `scale='real'` has no default\.$",
        ):
            call()


def test_what_needs_probabilities_is_refused_or_left_out():
    score, group, label = rows(600)
    told = {"scale": "real", "cutoff": 0.0}
    with pytest.raises(UnsupportedError, match=r"`small_groups='borrow'` requires .* got `scale='real'`"):
        fairramp.fit_rule(score, group, small_groups="borrow", **told)
    with pytest.raises(UnsupportedError, match=r"Baselines need .* not `scale='real'`"):
        fairramp.baselines.fit_shift_inference(label, group, scale="real")
    with pytest.raises(UnsupportedError, match=r"Baselines need .* not `scale='real'`"):
        fairramp.baselines.fit_reject_option(score, group, validation=(score, group), scale="real")
    found = fairramp.audit(score, group, label, **told)
    assert found.calibration_error is None
    assert found.before.overall_accuracy == pytest.approx(((score >= 0) == label).mean())


def test_scores_far_from_0_are_warned_of():
    score, group, _ = rows()
    points = 600 + 50 * np.clip(score, -9, 9)
    with pytest.warns(FairrampWarning, match=r"6,000 of 6,000 scores are beyond ±100, .* Subtract the cutoff"):
        fairramp.fit_rule(points, group, scale="real", cutoff=600.0)
    table = pl.LazyFrame({"s": points, "g": group})
    with pytest.warns(FairrampWarning, match=r"6,000 of 6,000 scores are beyond ±100"):
        fairramp.fit_frame(table, score="s", group="g", scale="real", cutoff=600.0)
    fairramp.fit_rule((points - 600) / 50, group, scale="real", cutoff=0.0)  # no warning


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_only_finite_scores_are_accepted(value):
    with pytest.raises(InputError, match="must be finite numbers"):
        fairramp.fit_rule([0.1, value], [0, 1], scale="real", cutoff=0.0)
    rule = Rule(("a",), (Ramp(0.0, 0.1),), scale="real", cutoff=0.0)
    with pytest.raises(InputError, match="must be finite numbers"):
        rule.probabilities([value], ["a"])


@pytest.mark.parametrize("scale", SCALES)
def test_thresholds_are_those_of_the_table(scale):
    rule = Rule(("a", "b"), (Ramp(0.25, 0.125), Ramp(0.75, 0.0)), scale=scale, cutoff=0.0)
    assert rule.table()["threshold"].tolist() == list(rule.thresholds)
    shown = {"percent": (31.25, 75.0), "real": (0.3125, 1.0)}.get(scale, (0.3125, 0.75))
    assert rule.thresholds == shown


# Constant ramps -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("up", [True, False])
@given(chance=st.floats(0.0, 1.0), data=st.data())
def test_a_constant_ramp_selects_everyone_alike(scale, up, chance, data):
    low, high = scale_of(scale).finite_range
    x = data.draw(st.lists(st.floats(low, high), min_size=1))
    ramps = Ramp.constant(chance), Ramp(0.1, 0.3), Ramp(0.2, 0.0, 0.5)
    rule = Rule(("a", "b", "c"), ramps, scale=scale, cutoff=0.0, higher_is_better=up)
    assert (rule.probabilities(x, ["a"] * len(x)) == chance).all()
    groups = ["a", "b", "c"] * len(x)
    together = rule.probabilities(np.repeat(x, 3), groups).reshape(-1, 3)
    for column, ramp in zip(together.T, ramps, strict=True):
        assert np.array_equal(column, ramp.chance(rule.meaning.position(np.array(x))))
    alone = Rule(("a",), ramps[:1], scale=scale, cutoff=0.0, higher_is_better=up)
    assert (alone.probabilities(x, ["a"] * len(x)) == chance).all()
    assert Rule.from_json(rule.to_json()) == rule


def test_a_constant_ramp_has_no_threshold():
    rule = Rule(
        ("a", "b"), (Ramp.constant(0.3), Ramp(0.25, 0.5)), unseen_group="pooled", pooled=Ramp.constant(0.1)
    )
    assert math.isnan(rule.thresholds[0])
    assert rule.thresholds[1] == 0.5
    assert not rule.is_hard
    found = rule.table()
    assert found["constant_probability"][0] == 0.3
    assert math.isnan(found["constant_probability"][1])
    assert rule.to_dict()["groups"][0] == {"label": "a", "foot": 0.0, "width": None, "tie": 0.3}
    assert "Groups not in the fit rows: probability 10.0% for everyone." in str(rule)
    with pytest.raises(UnsupportedError, match="a stream does not support constant ramps"):
        fairramp.StreamingFit.from_rule(rule, steps=10)


def test_charts_and_reports_show_constant_ramps_and_real_scores():
    score, group, label = rows()
    ramps = Ramp.constant(0.3), Ramp(0.9, 0.2), Ramp(0.75, 0.0, 0.5)
    rule = Rule((0, 1, 2), ramps, scale="real", cutoff=0.0, max_gap=1.0)
    content = rule.report(score, group, label).content
    chosen = content.chosen
    measured = rule.probabilities(score, group)
    assert chosen.after.rate == pytest.approx([measured[group == g].mean() for g in range(3)])
    assert chosen.constant_chances[0] == 0.3
    assert chosen.ramp_to[1] == math.inf
    assert chosen.thresholds[2] == 1.0
    spec = {p["name"]: p["value"] for p in rule.plot().to_dict()["params"]}
    assert spec["constants"] == [[0.3, None, None]]
    assert spec["thresholds"] == [[None, 1.0, 0.75]]
    page = rule.report(score, group, label).html
    assert "constant probability" in page
    assert "∞" in page
