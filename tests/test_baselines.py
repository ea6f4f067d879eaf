"""Shift inference and the reject option match their definitions, written as plain loops."""

import doctest
import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairramp
from fairramp import InputError, UnseenGroupError, baselines
from fairramp.baselines import RejectOption, ShiftInference, fit_reject_option, fit_shift_inference
from samples import KEY, rates, sample

#: Two rows of each label in each of three groups, then some more: no weight is undefined.
BOTH = [(y, s) for s in "ABC" for y in (0, 1)]
TRAINING = st.lists(st.tuples(st.integers(0, 1), st.sampled_from("ABC")), max_size=40).map(lambda r: BOTH + r)
GRID = np.arange(201) / 200


def logit(p):
    with np.errstate(divide="ignore"):
        return np.clip(np.log(p) - np.log1p(-p), -40, 40)


# Shift inference ---------------------------------------------------------------------------------


def shift_weight(training, y, s):
    """P(y) P(s) / P(y, s) in exact fractions."""
    n = len(training)
    p_y = Fraction(sum(a == y for a, _ in training), n)
    p_s = Fraction(sum(b == s for _, b in training), n)
    return p_y * p_s / Fraction(sum((a, b) == (y, s) for a, b in training), n)


@given(TRAINING, st.lists(st.tuples(st.integers(0, 64), st.sampled_from("ABC")), min_size=1, max_size=30))
def test_the_label_with_the_larger_weighted_probability_is_predicted(training, rows):
    shift = fit_shift_inference(*zip(*training, strict=True))
    expected = []
    for i, s in rows:
        p = Fraction(i, 64)
        yes, no = p * shift_weight(training, 1, s), (1 - p) * shift_weight(training, 0, s)
        expected.append(1.0 if yes >= no else 0.0)
    found = shift.probabilities([i / 64 for i, _ in rows], [s for _, s in rows])
    assert found.tolist() == expected


@given(TRAINING)
def test_weights_and_cutoffs_match_the_definition(training):
    shift = fit_shift_inference(*zip(*training, strict=True))
    assert shift.groups == ("A", "B", "C")
    assert shift.rows == tuple(sum(s == g for _, s in training) for g in "ABC")
    for i, s in enumerate("ABC"):
        no, yes = shift_weight(training, 0, s), shift_weight(training, 1, s)
        assert shift.weights_no[i] == pytest.approx(float(no))
        assert shift.weights_yes[i] == pytest.approx(float(yes))
        assert shift.cutoffs[i] == pytest.approx(float(no / (no + yes)))


@given(TRAINING)
def test_weighted_training_rows_have_independent_label_and_group(training):
    shift = fit_shift_inference(*zip(*training, strict=True))
    weight = {(y, s): (shift.weights_no, shift.weights_yes)[y]["ABC".index(s)] for y, s in BOTH}
    overall = sum(y for y, _ in training) / len(training)
    for group in "ABC":
        mass = [sum(weight[y, s] for y, s in training if s == group and y == label) for label in (0, 1)]
        assert mass[1] / (mass[0] + mass[1]) == pytest.approx(overall)


def test_a_group_with_the_overall_positive_rate_keeps_its_decisions():
    labels = [0, 0, 1] * 7 + [0, 0, 1] * 3
    shift = fit_shift_inference(labels, ["A"] * 21 + ["B"] * 9)
    assert shift.cutoffs == (0.5, 0.5)
    below = np.nextafter(0.5, 0)
    assert shift.decide([0.5, below, 0.5, below], ["A", "A", "B", "B"]).tolist() == [1, 0, 1, 0]


def test_the_group_with_fewer_positives_gets_the_lower_cutoff():
    shift = fit_shift_inference([0, 0, 0, 1, 0, 1, 1, 1], ["few"] * 4 + ["many"] * 4)
    assert shift.cutoffs[0] < 0.5 < shift.cutoffs[1]


@given(TRAINING, st.data())
def test_shift_integer_weights_equal_repeated_rows(training, data):
    n = len(training)
    weights = data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    labels, groups = zip(*training, strict=True)
    weighted = fit_shift_inference(labels, groups, sample_weight=weights)
    repeated = fit_shift_inference(np.repeat(labels, weights), np.repeat(groups, weights))
    assert weighted.cutoffs == pytest.approx(repeated.cutoffs)
    assert weighted.weights_no == pytest.approx(repeated.weights_no)
    assert weighted.weights_yes == pytest.approx(repeated.weights_yes)


def test_shift_accepts_weights_of_any_magnitude():
    labels, groups = zip(*BOTH, *BOTH[:3], strict=True)
    expected = fit_shift_inference(labels, groups).cutoffs
    for unit in (1e307, 1e-307):
        found = fit_shift_inference(labels, groups, sample_weight=np.full(len(labels), unit)).cutoffs
        assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("scale", "to"), [("percent", lambda p: 100 * p), ("signed", lambda p: 2 * p - 1), ("logit", logit)]
)
def test_shift_decisions_are_the_same_on_every_scale(scale, to):
    training = [*BOTH, *BOTH[:3], (1, "C"), (1, "C")]
    p, groups = np.tile(GRID[1:-1], 3), np.repeat(list("ABC"), 199)
    plain = fit_shift_inference(*zip(*training, strict=True))
    other = fit_shift_inference(*zip(*training, strict=True), scale=scale)
    clear = np.abs(p - np.array(plain.cutoffs)[np.repeat([0, 1, 2], 199)]) > 1e-9
    assert clear.mean() > 0.98
    assert (plain.decide(p, groups) == other.decide(to(p), groups))[clear].all()


def test_a_group_with_only_one_label_raises_and_is_named():
    with pytest.raises(InputError, match=r"both 0 and 1 in each group, got no 1 in group 'B'; merge"):
        fit_shift_inference([0, 1, 0, 0], ["A", "A", "B", "B"])
    with pytest.raises(InputError, match="got no 0 in group 'A'"):
        fit_shift_inference([1, 1, 0, 1], ["A", "A", "B", "B"])
    with pytest.raises(InputError, match="got no 1 in group 'B'"):
        fit_shift_inference([0, 1, 0, 1], ["A", "A", "B", "B"], sample_weight=[1, 1, 1, 0])


def test_a_group_with_zero_weight_counts_as_unseen():
    shift = fit_shift_inference([0, 1, 0, 1, 0], ["B", "B", "C", "C", "A"], sample_weight=[1, 1, 1, 1, 0])
    assert shift.groups == ("B", "C")
    assert shift.rows == (2, 2)
    assert shift.cutoffs == (0.5, 0.5)
    with pytest.raises(UnseenGroupError, match=r"not in the fit rows: \['A'\]; fitted groups: \['B', 'C'\]"):
        shift.probabilities([0.5], ["A"])


def test_shift_rejects_bad_input_with_one_sentence():
    with pytest.raises(InputError, match=r"^`labels` has 2 rows but `groups` has 3; the lengths must match\.$"):
        fit_shift_inference([0, 1], ["A", "A", "A"])
    with pytest.raises(
        InputError, match=r"^`sample_weight` has 1 rows but `groups` has 2; the lengths must match\.$"
    ):
        fit_shift_inference([0, 1], ["A", "A"], sample_weight=[1])
    with pytest.raises(InputError, match=r"^`labels` must be 0 or 1, got 2\.0 in row 1; pass 1 for the"):
        fit_shift_inference([0, 2], ["A", "A"])
    with pytest.raises(
        InputError, match="`scale` must be one of 'probability', 'percent', 'signed', 'logit', 'real', got"
    ):
        fit_shift_inference([0, 1], ["A", "A"], scale="odds")
    with pytest.raises(InputError, match="`groups` is empty"):
        fit_shift_inference([], [])


# Reject option -----------------------------------------------------------------------------------


def rejected(k, favored, i):
    """Decision for the probability k/200 at θ = i/100, by the definition, in integers."""
    if i > 0 and abs(2 * k - 200) <= 2 * i:  # |2p − 1| ≤ θ
        return int(favored)
    return int(k >= 100)


def best_theta(rows, favored):
    """The first θ in 0.00 … 1.00 with the smallest gap, for rows (k, group, weight), in exact fractions."""
    gaps = []
    for i in range(101):
        found = []
        for group in "AB":
            part = [(k, w) for k, s, w in rows if s == group]
            yes = sum(w * rejected(k, group == favored, i) for k, w in part)
            found.append(Fraction(yes, sum(w for _, w in part)))
        gaps.append(abs(found[0] - found[1]))
    return gaps.index(min(gaps)), float(min(gaps)), float(gaps[0])


def two_groups():
    row = st.tuples(st.integers(0, 200), st.sampled_from("AB"), st.integers(1, 3))
    both = st.tuples(st.integers(0, 200), st.integers(0, 200)).map(lambda k: [(k[0], "A", 1), (k[1], "B", 1)])
    return st.tuples(both, st.lists(row, max_size=20)).map(lambda r: r[0] + r[1])


def columns(rows):
    k, groups, weights = zip(*rows, strict=True)
    return np.array(k) / 200, list(groups), list(weights)


@given(two_groups(), two_groups())
def test_zone_group_and_decisions_match_the_definition(fit, other):
    scores, groups, weights = columns(fit)
    option = fit_reject_option(scores, groups, validation=columns(other), sample_weight=weights)
    before = {}
    for g in "AB":
        part = [(k, w) for k, s, w in fit if s == g]
        before[g] = Fraction(sum(w for k, w in part if k >= 100), sum(w for _, w in part))
    assert option.rate_before == pytest.approx([float(before[g]) for g in "AB"])
    if before["A"] != before["B"]:
        assert option.disadvantaged == min("AB", key=before.__getitem__)
    i, gap, gap_before = best_theta(other, option.disadvantaged)
    assert option.theta == i / 100
    assert option.validation_gap == pytest.approx(gap, abs=1e-12)
    assert option.validation_gap_before == pytest.approx(gap_before, abs=1e-12)
    for g in "AB":
        expected = [rejected(k, g == option.disadvantaged, i) for k in range(201)]
        assert option.probabilities(GRID, [g] * 201).tolist() == expected


@pytest.mark.parametrize("i", range(101))
def test_zones_include_both_ends(i):
    # In floats 0.5 + 0.07 is not 0.57, and 2 · 0.55 − 1 is not 0.1.
    option = RejectOption(("A", "B"), (1, 1), "probability", None, 0.5, "A", i / 100, (0, 1), (1, 0), 1.0, 1.0)
    for group in "AB":
        expected = [rejected(k, group == "A", i) for k in range(201)]
        assert option.decide(GRID, [group] * 201).tolist() == expected


def test_without_a_gap_the_classifiers_own_decisions_stand():
    scores, codes = sample(300)
    option = fit_reject_option(scores, codes, validation=([0.5, 0.5], [0, 1]))
    assert option.theta == 0
    assert option.decide(scores, codes).tolist() == (scores >= 0.5).astype(int).tolist()
    assert option.rate_after == option.rate_before
    assert "the classifier's own decisions" in repr(option)


def test_the_gap_shrinks_on_the_rows_it_was_chosen_on():
    scores, codes = sample(2000)
    option = fit_reject_option(scores, codes, validation=(scores, codes))
    found = rates(option.probabilities(scores, codes), codes)
    assert option.rate_after == pytest.approx(found.tolist())
    assert option.validation_gap == pytest.approx(np.ptp(found))
    assert option.validation_gap < option.validation_gap_before == pytest.approx(np.ptp(option.rate_before))


def test_equal_rates_favor_the_first_label():
    option = fit_reject_option([0.6, 0.4, 0.7, 0.3], ["B", "B", "A", "A"], validation=([0.6, 0.4], ["A", "B"]))
    assert option.disadvantaged == "A"


def test_another_cutoff_moves_the_zone():
    rows = [0.1, 0.18, 0.25, 0.3], ["A", "A", "B", "B"]
    option = fit_reject_option(*rows, validation=rows, cutoff=0.2)
    assert option.disadvantaged == "A"
    assert option.theta == 0.1  # from 0.15 to 0.25: one yes for A, one no for B
    assert option.decide(*rows).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("scale", "to"), [("percent", lambda p: 100 * p), ("signed", lambda p: 2 * p - 1), ("logit", logit)]
)
def test_reject_option_decisions_are_the_same_on_every_scale(scale, to):
    scores, codes = sample(500)
    plain = fit_reject_option(scores, codes, validation=(scores, codes), cutoff=0.4)
    cutoff = float(to(np.array(0.4)))
    other = fit_reject_option(to(scores), codes, validation=(to(scores), codes), cutoff=cutoff, scale=scale)
    assert (other.theta, other.disadvantaged) == (plain.theta, plain.disadvantaged)
    assert other.decide(to(scores), codes).tolist() == plain.decide(scores, codes).tolist()


def test_reject_option_requires_two_groups():
    scores, codes = sample(90, n_groups=3)
    with pytest.raises(
        InputError, match=r"must have two groups for the reject option, got 3: \[0, 1, 2\]; use fairramp"
    ):
        fit_reject_option(scores, codes, validation=(scores, codes))
    with pytest.raises(InputError, match=r"got 1: \['A'\]"):
        fit_reject_option([0.5], ["A"], validation=([0.5], ["A"]))
    with pytest.raises(InputError, match=r"got 1: \['A'\]"):
        fit_reject_option([0.5, 0.5], ["A", "B"], validation=([0.5], ["A"]), sample_weight=[1, 0])


def test_reject_option_rejects_bad_input_with_one_sentence():
    rows = [0.2, 0.8], ["A", "B"]
    with pytest.raises(InputError, match=r"`validation` must be a tuple \(scores, groups\) or \("):
        fit_reject_option(*rows, validation=rows[0])
    with pytest.raises(InputError, match="`validation` must have rows of both groups, got none of group 'B'"):
        fit_reject_option(*rows, validation=([0.2], ["A"]))
    with pytest.raises(InputError, match="`validation` must have rows of both groups, got none of group 'A'"):
        fit_reject_option(*rows, validation=(*rows, [0, 1]))
    with pytest.raises(UnseenGroupError, match=r"not in the fit rows: \['C'\]; fitted groups: \['A', 'B'\]"):
        fit_reject_option(*rows, validation=([0.2, 0.3], ["A", "C"]))
    with pytest.raises(InputError, match=r"`scores` must be between 0 and 1 .* got 1\.5 in row 0"):
        fit_reject_option([1.5, 0.8], ["A", "B"], validation=rows)
    with pytest.raises(InputError, match="`scores` must be finite numbers, got nan in row 1"):
        fit_reject_option(*rows, validation=([0.5, math.nan], ["A", "B"]))
    with pytest.raises(InputError, match="`groups` has 1 rows but `scores` has 2"):
        fit_reject_option([0.2, 0.8], ["A"], validation=rows)
    with pytest.raises(InputError, match=r"`cutoff` must be between 0 and 1, got 3"):
        fit_reject_option(*rows, validation=rows, cutoff=3)
    with pytest.raises(InputError, match="`scale` must be one of"):
        fit_reject_option(*rows, validation=rows, scale="odds")


# Both --------------------------------------------------------------------------------------------


def peers():
    scores, codes = sample(400)
    labels = (np.random.default_rng(1).random(400) < scores).astype(int)
    return [fit_shift_inference(labels, codes), fit_reject_option(scores, codes, validation=(scores, codes))]


@pytest.mark.parametrize("peer", peers(), ids=lambda peer: type(peer).__name__)
def test_all_decision_methods_agree(peer):
    scores, codes = sample(100, seed=3)
    chances = peer.probabilities(scores, codes)
    assert chances.dtype == np.float64
    assert set(chances.tolist()) == {0.0, 1.0}
    for options in ({}, {"ids": range(100), "key": KEY}, {"random_state": 0}):
        found = peer.decide(scores, codes, **options)
        assert found.dtype == np.int8
        assert found.tolist() == chances.tolist()


@pytest.mark.parametrize("peer", peers(), ids=lambda peer: type(peer).__name__)
def test_baselines_reject_the_same_input_as_a_rule(peer):
    with pytest.raises(InputError, match="Repeatable decisions require both"):
        peer.decide([0.5], [0], ids=["anna"])
    with pytest.raises(InputError, match="got both"):
        peer.decide([0.5], [0], ids=["anna"], key=KEY, random_state=0)
    with pytest.raises(UnseenGroupError, match=r"not in the fit rows: \['0'\]; fitted groups: \[0, 1\]"):
        peer.decide([0.5], ["0"])
    with pytest.raises(InputError, match=r"`scores` must be between 0 and 1"):
        peer.probabilities([-0.5], [0])
    with pytest.raises(InputError, match="`groups` has 2 rows but `scores` has 1"):
        peer.probabilities([0.5], [0, 1])


@pytest.mark.parametrize("peer", peers(), ids=lambda peer: type(peer).__name__)
def test_peers_are_frozen_and_have_one_row_per_group(peer):
    with pytest.raises(AttributeError):
        peer.scale = "logit"
    assert peer.table()["group"].tolist() == [0, 1]
    assert peer.table()["n"].tolist() == [200, 200]
    assert str(peer.table()) in repr(peer)


def test_relabeling_groups_changes_nothing():
    scores, codes = sample(400)
    labels = (np.random.default_rng(1).random(400) < scores).astype(int)
    names = np.array(["z", "a"])[codes]
    here, there = fit_shift_inference(labels, codes), fit_shift_inference(labels, names)
    assert here.decide(scores, codes).tolist() == there.decide(scores, names).tolist()
    here = fit_reject_option(scores, codes, validation=(scores, codes))
    there = fit_reject_option(scores, names, validation=(scores, names))
    assert here.decide(scores, codes).tolist() == there.decide(scores, names).tolist()


def test_several_columns_make_intersections_and_are_found_by_name():
    groups = {"sex": ["f", "f", "m", "m"], "old": [True, True, False, False]}
    shuffled = {"old": groups["old"], "sex": groups["sex"]}
    scores = [0.3, 0.6, 0.4, 0.9]
    shift = fit_shift_inference([0, 1, 0, 1], groups)
    option = fit_reject_option(scores, groups, validation=(scores, shuffled))
    for peer in (shift, option):
        assert peer.groups == (("f", True), ("m", False))
        assert peer.decide(scores, shuffled).tolist() == peer.decide(scores, groups).tolist()
        assert "sex / old" in str(peer.table())


def test_both_shrink_the_gap_on_real_scores():
    data = fairramp.datasets.load_adult_scores()
    own = fairramp.audit(data.score, data.sex).gap
    shift = fit_shift_inference(data.label, data.sex)
    option = fit_reject_option(data.score, data.sex, validation=(data.score, data.sex))
    for peer in (shift, option):
        assert isinstance(peer, ShiftInference | RejectOption)
        assert fairramp.audit(peer.decide(data.score, data.sex), data.sex).gap < own / 2


@pytest.mark.parametrize("name", baselines.__all__)
def test_every_name_has_an_example(name):
    assert doctest.DocTestParser().get_examples(inspect.getdoc(getattr(baselines, name)))
