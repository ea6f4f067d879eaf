"""Laws of `fairramp.fit_class_rule` and `fairramp.ClassRule`: rules for more than two classes."""

import dataclasses
import itertools
import warnings

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairramp
from class_samples import (
    class_gap,
    class_people,
    class_rates,
    projected,
    quiet_class_fit,
    random_class_problem,
)
from fairramp.core.simplex import class_chances, drawn_classes
from fairramp.fit import class_moments
from fairramp.fit.class_moments import ClassMoments, Part

KEY = "5" * 64
#: Rounding of a projection, at scores and offsets of about 1 and a width of about 0.01.
ROUNDING = 1e-12
#: Largest excess of a gap on the fit rows.
GAP = 1e-9
#: The accuracy of the convex solver.
OBJECTIVE = 1e-7


# The projection


@given(st.integers(0, 2**32 - 1), st.integers(2, 20), st.sampled_from([0.0, 1.0]))
def test_chances_are_the_nearest_point_of_the_simplex(seed, n_classes, tied):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, rng.choice([0.1, 1, 5]), (30, n_classes))
    z = np.round(z, 1) if tied else z
    h = class_chances(z.T.copy(), 1.0).T
    assert np.abs(h - projected(z)).max() < ROUNDING
    assert np.abs(h.sum(axis=1) - 1).max() < ROUNDING
    assert h.min() >= 0


def test_without_a_ramp_the_first_of_the_largest_scores_wins():
    h = class_chances(np.array([[0.4, 0.1], [0.4, 0.3], [0.2, 0.6]]), 0.0)
    assert h.T.tolist() == [[1, 0, 0], [0, 0, 1]]


# The optimum


def check_problem(seed):
    problem = random_class_problem(seed)
    rule = quiet_class_fit(
        problem.scores,
        problem.groups,
        max_gap=problem.max_gap,
        ramp_width=problem.width,
        sample_weight=problem.weights,
    )
    h = rule.probabilities(problem.scores, problem.groups)
    assert problem.gap(h) <= problem.max_gap + GAP
    if rule.ramp_width:  # otherwise own decisions are kept, which is no optimum of this cost
        assert problem.cost(h) <= problem.cost(problem.convex()) + OBJECTIVE
    return rule


@pytest.mark.parametrize("seed", range(60))
def test_no_rule_within_the_limit_costs_less(seed):
    check_problem(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60, 400))
def test_no_rule_within_the_limit_costs_less_in_many_cases(seed):
    check_problem(seed)


def test_the_random_cases_include_ramps_and_own_decisions():
    rules = [check_problem(seed) for seed in range(0, 24, 2)]
    assert {rule.ramp_width > 0 for rule in rules} == {True, False}


@pytest.mark.parametrize("seed", range(40))
def test_two_classes_are_the_binary_rule_at_cutoff_one_half(seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 3, 200)
    scores = np.clip(rng.random(200) + 0.1 * (groups == 1) - 0.1 * (groups == 2), 0, 1)
    scores = np.round(scores, 2) if seed % 2 else scores
    settings = {
        "max_gap": float(rng.choice([0.0, 0.03])),
        "ramp_width": float(rng.choice([0.3, 0.05, 0.01, 1e-4, 1e-6])),
        "sample_weight": rng.lognormal(0, 1, 200) if seed % 3 else None,
    }
    both = np.c_[1 - scores, scores]
    binary, rule = (
        fairramp.fit_rule(scores, groups, **settings),
        fairramp.fit_class_rule(both, groups, **settings),
    )
    assert binary.is_hard == (rule.ramp_width == 0)
    if not binary.is_hard:
        difference = rule.probabilities(both, groups)[:, 1] - binary.probabilities(scores, groups)
        assert np.abs(difference).max() < 1e-9


def test_certain_group_probabilities_are_known_groups():
    p, groups, _ = class_people(n_groups=3)
    labels = sorted(set(groups))
    q = fairramp.GroupProbabilities((groups[:, None] == labels).astype(float), labels)
    known, soft = (fairramp.fit_class_rule(p, g, max_gap=0.02) for g in (groups, q))
    assert np.abs(known.probabilities(p, groups) - soft.probabilities(p, q)).max() < 1e-9
    assert (known.membership, soft.membership) == ("known", "probabilities")


def test_strata_are_problems_of_their_own():
    p, groups, _ = class_people(900, n_groups=3)
    region = np.random.default_rng(1).choice(["north", "south"], 900)
    rule = fairramp.fit_class_rule(p, groups, strata=region, max_gap=0.01)
    h = rule.probabilities(p, groups, region)
    for name in ("north", "south"):
        here = region == name
        alone = fairramp.fit_class_rule(p[here], groups[here], max_gap=0.01)
        assert np.abs(h[here] - alone.probabilities(p[here], groups[here])).max() < 1e-9
        assert class_gap(h[here], groups[here]) <= 0.01 + GAP
    assert rule.groups[0] == ("north", "g0")
    assert rule.record.gap_after <= 0.01 + GAP


def test_integer_weights_are_repeated_rows():
    p, groups, _ = class_people(300)
    weights = np.random.default_rng(2).integers(0, 4, 300)
    weighted = fairramp.fit_class_rule(p, groups, sample_weight=weights)
    repeated = fairramp.fit_class_rule(np.repeat(p, weights, axis=0), np.repeat(groups, weights))
    assert np.abs(weighted.probabilities(p, groups) - repeated.probabilities(p, groups)).max() < 1e-9


@pytest.mark.parametrize("factor", [1e-200, 1e150])
def test_the_unit_of_weights_does_not_matter(factor):
    p, groups, _ = class_people(300)
    weights = np.random.default_rng(2).random(300) + 0.1
    first, second = (fairramp.fit_class_rule(p, groups, sample_weight=w) for w in (weights, weights * factor))
    assert np.abs(np.array(first.offsets) - second.offsets).max() < 1e-9


def test_the_order_of_rows_and_of_columns_does_not_matter():
    p, groups, _ = class_people(n_classes=3, n_groups=3)
    rows, columns = np.random.default_rng(3).permutation(len(p)), [2, 0, 1]
    names = np.array(["low", "mid", "high"])
    rule = fairramp.fit_class_rule(p, groups, classes=names, max_gap=0.02)
    other = fairramp.fit_class_rule(p[rows][:, columns], groups[rows], classes=names[columns], max_gap=0.02)
    by_name = dict(zip(names, p.T, strict=True))
    assert rule.classes == ("low", "mid", "high")
    assert other.classes == ("high", "low", "mid")
    h = rule.probabilities(p, groups)
    assert np.abs(h[:, columns] - other.probabilities(by_name, groups)).max() < 1e-9
    assert other.record.rows == rule.record.rows
    people = np.arange(len(p))
    decisions = rule.decide(p, groups, ids=people, key=KEY)
    assert decisions.tolist() == other.decide(by_name, groups, ids=people, key=KEY).tolist()


def test_own_decisions_that_meet_the_limit_are_kept():
    p, groups, _ = class_people()
    own = np.eye(4)[p.argmax(axis=1)]
    gap = class_gap(own, groups)
    kept = fairramp.fit_class_rule(p, groups, max_gap=gap + 1e-6)
    assert kept.ramp_width == 0
    assert not np.any(kept.offsets)
    assert (kept.probabilities(p, groups) == own).all()
    assert "already meet the limit" in kept.heading
    assert fairramp.fit_class_rule(p, groups, max_gap=gap - 1e-6).ramp_width == 0.01


@pytest.mark.parametrize("soft", [False, True])
def test_reading_only_rows_that_can_change_gives_the_same_rule(monkeypatch, soft):
    p, groups, _ = class_people(20_000, n_groups=3)
    labels = sorted(set(groups))
    if soft:
        q = np.random.default_rng(4).dirichlet(np.ones(3) / 2, len(p)) + (groups[:, None] == labels)
        groups = fairramp.GroupProbabilities(q / 2, labels)
    monkeypatch.setattr(class_moments, "_MANY", 1 << 10)
    monkeypatch.setattr(class_moments, "_FEW", 100)
    windowed = fairramp.fit_class_rule(p, groups, max_gap=0.01)
    monkeypatch.setattr(class_moments, "_MANY", 1 << 40)
    monkeypatch.setattr(class_moments, "_FEW", 1 << 40)
    plain = fairramp.fit_class_rule(p, groups, max_gap=0.01)
    assert np.abs(windowed.probabilities(p, groups) - plain.probabilities(p, groups)).max() < 1e-9


def test_a_class_without_any_score_or_row_does_no_harm():
    p, groups, _ = class_people(n_classes=3)
    wider = np.c_[p, np.zeros(len(p))]
    rule, plain = fairramp.fit_class_rule(wider, groups), fairramp.fit_class_rule(p, groups)
    assert np.abs(rule.probabilities(wider, groups)[:, :3] - plain.probabilities(p, groups)).max() < 1e-9


def test_scores_that_are_decisions_can_be_made_fair():
    p, groups, _ = class_people()
    decided = np.eye(4)[p.argmax(axis=1)]
    with pytest.warns(fairramp.FairrampWarning, match="All scores of the classes are 0 or 1"):
        rule = fairramp.fit_class_rule(decided, groups)
    assert class_gap(rule.probabilities(decided, groups), groups) < GAP


def test_the_record_is_about_the_rows():
    p, groups, _ = class_people(n_groups=3)
    weights = np.random.default_rng(5).random(len(p)) + 0.5
    rule = fairramp.fit_class_rule(p, groups, max_gap=0.02, sample_weight=weights, date="2026-11-18")
    one_hot = (groups[:, None] == rule.groups).astype(float)
    h, record = rule.probabilities(p, groups), rule.record
    assert np.abs(class_rates(h, one_hot, weights) - record.after).max() < ROUNDING
    assert np.abs(class_rates(np.eye(4)[p.argmax(axis=1)], one_hot, weights) - record.before).max() < ROUNDING
    unsure = (h.max(axis=1) < 1).astype(float)[:, None]
    assert np.abs(class_rates(unsure, one_hot, weights)[:, 0] - record.at_random).max() < ROUNDING
    assert record.rows == tuple(np.count_nonzero(one_hot, axis=0))
    assert (record.weighted, record.date) == (True, "2026-11-18")
    assert record.gap_after == pytest.approx(0.02, abs=GAP)
    assert np.abs(np.array(rule.offsets).sum(axis=1)).max() < ROUNDING


def test_the_fingerprint_of_rows_changes_with_any_score_and_not_with_their_order():
    p, groups, _ = class_people()
    first = fairramp.fit_class_rule(p, groups).record.fingerprint
    assert fairramp.fit_class_rule(p[::-1], groups[::-1]).record.fingerprint == first
    moved = p.copy()
    moved[7, :2] += [-0.01, 0.01]
    assert fairramp.fit_class_rule(moved, groups).record.fingerprint != first


# The sums of the solver


def moments_of(rng, soft, n=400, n_classes=3, n_groups=2):
    values = np.ascontiguousarray(rng.dirichlet(np.ones(n_classes), n).T)
    if soft:
        return ClassMoments([Part(values, rng.random(n), rng.dirichlet(np.ones(n_groups), n).T.copy())], n_groups)
    half = n // 2
    parts = [Part(values[:, :half], None, 0), Part(values[:, half:], None, 1)]
    return ClassMoments(parts, n_groups)


@pytest.mark.parametrize("soft", [False, True])
def test_rates_and_curvature_are_derivatives_of_the_cost(soft):
    rng = np.random.default_rng(6)
    moments, shifts, width, step = moments_of(rng, soft), rng.normal(0, 0.05, 6), 0.3, 1e-6
    here = moments.at(shifts, width)
    for i in range(6):
        move = np.eye(6)[i] * step
        up, down = moments.at(shifts + move, width), moments.at(shifts - move, width)
        assert (up.cost - down.cost) / (2 * step) == pytest.approx(-here.selected[i], abs=1e-8)
        change = (up.selected - down.selected) / (2 * step)
        assert np.abs(change + here.curvature[i]).max() < 0.02  # rows whose support changes within the step


@pytest.mark.parametrize("soft", [False, True])
def test_sums_near_a_point_come_from_few_rows(monkeypatch, soft):
    monkeypatch.setattr(class_moments, "_MANY", 1)
    rng = np.random.default_rng(7)
    moments = moments_of(rng, soft, n=3000)
    shifts = rng.normal(0, 0.05, 6)
    sums, window = moments.around(shifts, 0.01)
    assert 0 < window.rows.n_rows < 600
    for move, covered in ((0.002, True), (0.1, False)):
        near = shifts + move * np.array([1, -1, 0, 1, -1, 0])
        assert window.covers(near, 0.01) == covered
        if covered:
            for found, expected in zip(window.at(near, 0.01), moments.at(near, 0.01), strict=True):
                assert np.abs(np.asarray(found) - expected).max() < 1e-10
    for found, expected in zip(sums, moments.at(shifts, 0.01), strict=True):
        assert np.abs(np.asarray(found) - expected).max() < 1e-10


# Deciding


def test_the_draw_takes_the_first_sorted_class_whose_cumulative_chance_exceeds_it():
    p, groups, _ = class_people(n_classes=3)
    classes = ["b", "c", "a"]
    rule = fairramp.fit_class_rule(p, groups, classes=classes, ramp_width=0.3)
    ids = [f"person {i}" for i in range(len(p))]
    expected = []
    for chances, u in zip(rule.probabilities(p, groups), fairramp.draws(ids, KEY), strict=True):
        total = 0.0
        for label, chance in sorted(zip(classes, chances, strict=True)):
            total += chance
            if u < total:
                expected.append(label)
                break
    decisions = rule.decide(p, groups, ids=ids, key=KEY)
    assert decisions.tolist() == expected
    assert decisions[::-1].tolist() == rule.decide(p[::-1], groups[::-1], ids=ids[::-1], key=KEY).tolist()
    assert set(decisions.tolist()) == set(classes)


def test_decisions_at_random_have_the_chances():
    p, groups, _ = class_people(50, n_classes=3)
    rule = quiet_class_fit(p, groups, ramp_width=0.5)
    many = np.repeat(np.arange(50), 4000)
    decisions = rule.decide(p[many], groups[many], random_state=0)
    shares = np.array([(decisions == c).reshape(50, 4000).mean(axis=1) for c in rule.classes]).T
    assert np.abs(shares - rule.probabilities(p, groups)).max() < 6 * 0.5 / np.sqrt(4000)


def test_a_draw_beyond_a_rounded_sum_gets_a_possible_class():
    chances = np.array([[0.3], [0.7 - 1e-16], [0.0]])
    assert drawn_classes(chances, np.array([1 - 2**-53]), np.arange(3)).tolist() == [1]


@pytest.mark.parametrize(
    ("classes", "kind"),
    [(["a", "b", "c"], "U"), ([3, 1, 2], "i"), ([1, "b", 2], "O"), (np.array([10, 20, 30]), "i")],
)
def test_class_labels_are_kept(classes, kind):
    p, groups, _ = class_people(n_classes=3)
    rule = fairramp.fit_class_rule(p, groups, classes=classes)
    assert rule.classes == tuple(classes)
    decisions = rule.decide(p, groups, random_state=1)
    assert decisions.dtype.kind == kind
    assert set(decisions.tolist()) <= set(np.asarray(classes, dtype=object).tolist())


@pytest.mark.parametrize("library", [dict, pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_named_columns_have_any_order_and_library(library):
    p, groups, _ = class_people(n_classes=3)
    columns = dict(zip(["low", "mid", "high"], p.T, strict=True))
    rule = fairramp.fit_class_rule(library(columns), groups)
    assert rule.classes == ("low", "mid", "high")
    other = library({name: columns[name] for name in ("high", "low", "mid")})
    assert (rule.probabilities(other, groups) == rule.probabilities(p, groups)).all()


def test_columns_of_pandas_may_be_numbers():
    p, groups, _ = class_people(n_classes=3)
    rule = fairramp.fit_class_rule(pandas.DataFrame(p, columns=[10, 20, 30]), groups)
    assert rule.classes == (10, 20, 30)
    assert rule.columns.class_scores is None


def test_groups_may_be_intersections_and_have_missing_values():
    p, sex, _ = class_people(900)
    race = np.random.default_rng(8).choice(["A", "B", None], 900)
    frame = pandas.DataFrame({"sex": sex, "race": race})
    rule = fairramp.fit_class_rule(p, frame)
    assert rule.groups[2] == ("g0", None)
    assert rule.columns.groups == ("sex", "race")
    assert class_gap(rule.probabilities(p, frame), [f"{s}{r}" for s, r in zip(sex, race, strict=True)]) < GAP


def test_unseen_groups_raise_or_keep_own_decisions():
    p, groups, _ = class_people()
    rule = fairramp.fit_class_rule(p, groups)
    with pytest.raises(fairramp.UnseenGroupError, match="Groups not in the fit rows: \\['new'\\]"):
        rule.probabilities(p[:2], ["g0", "new"])
    lenient = dataclasses.replace(rule, unseen_group="original")
    h = lenient.probabilities(p[:2], ["g0", "new"])
    assert (h[0] == rule.probabilities(p[:1], ["g0"])).all()
    assert h[1].tolist() == np.eye(4)[p[1].argmax()].tolist()


def test_a_rule_survives_its_file_and_can_be_printed(tmp_path):
    p, groups, _ = class_people()
    rule = fairramp.fit_class_rule(p, groups, classes=["a", "b", "c", "d"], max_gap=0.02)
    rule.save(tmp_path / "rule.json")
    same = fairramp.ClassRule.load(tmp_path / "rule.json")
    assert same == rule
    assert hash(same) == hash(rule)
    assert same.to_json() == rule.to_json()
    assert (same.probabilities(p, groups) == rule.probabilities(p, groups)).all()
    text = repr(rule)
    assert text.startswith("fairramp rule for 4 classes and 2 groups: rates at most 2.0 points apart.")
    assert max(map(len, text.splitlines())) <= 80
    assert len(rule.table()) == 8
    assert rule.table().to_dict()["rate_after"][:2] == [after[0] for after in rule.record.after]


def test_one_group_needs_nothing():
    p, _, _ = class_people()
    with pytest.warns(fairramp.FairrampWarning, match="only one group"):
        rule = fairramp.fit_class_rule(p, ["A"] * len(p))
    assert (rule.probabilities(p, ["A"] * len(p)) == np.eye(4)[p.argmax(axis=1)]).all()


def test_small_groups_and_lost_classes_are_reported():
    p, groups, _ = class_people(60)
    with pytest.warns(fairramp.FairrampWarning, match="Groups with fewer than 30 rows: g"):
        fairramp.fit_class_rule(p[:40], groups[:40])
    rng = np.random.default_rng(9)
    group = np.r_[np.zeros(50, dtype=int), np.ones(5000, dtype=int)]
    scores = np.where(group[:, None] == 0, [0.3, 0.3, 0.4], [0.6, 0.39, 0.01]) + rng.normal(0, 1e-3, (5050, 3))
    scores /= scores.sum(axis=1, keepdims=True)
    with pytest.warns(fairramp.FairrampWarning, match="best equal rate of class 2 is 0"):
        fairramp.fit_class_rule(scores, group)


def test_dependent_group_probabilities_are_reported():
    p, _, _ = class_people()
    q = np.random.default_rng(10).random(len(p))
    groups = fairramp.GroupProbabilities({"A": q, "B": (1 - q) / 2, "C": (1 - q) / 2})
    with pytest.warns(fairramp.FairrampWarning, match="not independent"):
        rule = fairramp.fit_class_rule(p, groups)
    assert rule.record.gap_after < GAP
    assert np.abs(np.array(rule.offsets[1]) - rule.offsets[2]).max() < 1e-9


# Bad input

GOOD = [[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"probabilities": [0.2, 0.5, 0.9]},
            "shape \\(3,\\); for the scores of one class, use fairramp.fit_rule",
        ),
        ({"probabilities": [[0.2, 0.8], [0.5], [0.9, 0.1]]}, "rows of different lengths"),
        (
            {"probabilities": polars.LazyFrame(GOOD)},
            "is a lazy table; collect it first, or use fairramp.fit_frame",
        ),
        (
            {"probabilities": pandas.DataFrame(GOOD, columns=["a", "a"])},
            "Two columns of `probabilities` have the",
        ),
        ({"probabilities": None}, "got shape \\(\\)"),
        ({"probabilities": ["no", "yes", "no"]}, "pass what predict_proba returns, not predict"),
        ({"probabilities": [[20.0, 80.0]] * 3}, "got 20.0 for class 0 in row 0; divide percentages by 100"),
        ({"probabilities": {"a": [0.5, 0.5], "b": [0.5]}}, "has columns of \\[1, 2\\] rows"),
        ({"probabilities": np.ma.array(GOOD, mask=[[0, 0], [1, 0], [0, 0]])}, "masked value in row 1"),
        ({"classes": {"a", "b"}}, "must be a list of labels"),
        ({"probabilities": [["a", "b"]] * 3}, "must be numbers, got text"),
        ({"probabilities": [[1.0], [1.0], [1.0]]}, "at least two classes"),
        ({"probabilities": [[0.2, 0.8], [np.nan, 0.5], [0.9, 0.1]]}, "got nan for class 0 in row 1; fill it in"),
        ({"probabilities": [[0.2, 0.8], [0.5, 0.6], [0.9, 0.1]]}, "sum to 1 in every row, got 1.1 in row 1"),
        ({"probabilities": [[-2.0, 3.0]] * 3}, "got -2.0 for class 0 in row 0; turn logits into probabilities"),
        ({"groups": ["A", "B"]}, "`groups` has 2 rows but `probabilities` has 3"),
        ({"groups": fairramp.GroupProbabilities({"A": [1.0], "B": [0.0]})}, "`groups` has 1 rows"),
        ({"classes": ["a"]}, "at least two classes"),
        ({"classes": ["a", "b", "c"]}, "got 2 columns for the classes \\['a', 'b', 'c'\\]"),
        ({"classes": ["a", "a"]}, "names the same class twice"),
        ({"classes": ["a", None]}, "class label must be a string"),
        ({"classes": [0.5, 1.5]}, "an integer or a boolean, got \\[0.5, 1.5\\]"),
        ({"classes": "ab"}, "must be a list of labels"),
        (
            {"probabilities": {"a": [0.5], "b": [0.5]}, "groups": ["A"], "classes": ["a", "b"]},
            "have names already",
        ),
        ({"max_gap": -0.1}, "`max_gap` must be between 0 and 1, got -0.1"),
        ({"max_gap": float("nan")}, "`max_gap` must be between 0 and 1"),
        ({"max_gap": 5}, "5 percentage points are 0.05"),
        ({"ramp_width": 0}, "between 1e-6 and 1e6 if there are several classes, got 0"),
        ({"ramp_width": 1e-7}, "between 1e-6 and 1e6"),
        ({"sample_weight": [1, -1, 1]}, "`sample_weight` must be finite and not negative"),
        ({"sample_weight": [1, 0, 0]}, "is zero in every row of group"),
        ({"strata": ["x", "y"]}, "`strata` has 2 rows"),
        ({"unseen_group": "pooled"}, "must be one of 'error', 'original', got 'pooled'"),
        ({"date": 3}, "`date` must be a string"),
    ],
)
def test_bad_input_is_told_in_one_sentence(arguments, message):
    with pytest.raises(fairramp.InputError, match=message) as raised:
        fairramp.fit_class_rule(**{"probabilities": GOOD, "groups": ["A", "B", "C"]} | arguments)
    assert str(raised.value).endswith((".", "?"))


def test_group_probabilities_support_no_strata_and_no_unseen_groups():
    q = fairramp.GroupProbabilities({"A": [1.0, 0.5, 0.0], "B": [0.0, 0.5, 1.0]})
    for more in ({"strata": ["x"] * 3}, {"unseen_group": "original"}):
        with pytest.raises(fairramp.UnsupportedError, match="Group probabilities do not support"):
            fairramp.fit_class_rule(GOOD, q, **more)
    zeros = fairramp.GroupProbabilities(np.c_[[1, 0.5, 0], [0, 0.5, 1], [0, 0, 0]], ["A", "B", "C"])
    with pytest.raises(fairramp.InputError, match="Group C has probability 0 in every row"):
        quiet_class_fit([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]], zeros)


def test_rows_that_a_rule_cannot_read_are_refused():
    p, groups, _ = class_people(n_classes=3)
    rule = fairramp.fit_class_rule(p, groups, classes=["a", "b", "c"])
    for wrong, message in (
        (p[:, :2] / p[:, :2].sum(axis=1, keepdims=True), "got 2 columns for the classes \\['a', 'b', 'c'\\]"),
        ({"a": p[:, 0], "b": p[:, 1], "x": p[:, 2]}, "must have the rule's classes \\['a', 'b', 'c'\\]"),
    ):
        with pytest.raises(fairramp.InputError, match=message):
            rule.probabilities(wrong, groups)
    with pytest.raises(fairramp.InputError, match="does not use `strata`"):
        rule.probabilities(p, groups, ["x"] * len(p))
    with pytest.raises(fairramp.InputError, match="Pass either `ids` and `key`"):
        rule.decide(p, groups)
    q = np.random.default_rng(11).random(len(p))
    soft = fairramp.fit_class_rule(p, fairramp.GroupProbabilities({"A": q, "B": 1 - q}))
    with pytest.raises(fairramp.InputError, match="uses group probabilities"):
        soft.probabilities(p, groups)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": ((0.0, 0.0),)}, "one offset per class for every group"),
        ({"offsets": ((0.0, float("inf")), (0.0, 0.0))}, "offsets"),
        ({"groups": ("A", "A")}, "must be distinct"),
        ({"ramp_width": 0.0, "offsets": ((0.1, -0.1), (0.0, 0.0))}, "must be 0"),
        ({"stratified": True}, "pairs \\(stratum, group\\)"),
        ({"membership": "each"}, "must be one of 'known', 'probabilities'"),
        ({"record": "none"}, "must be a fairramp.ClassRecord"),
        ({"unseen_group": "original", "membership": "probabilities"}, "has no unseen group"),
    ],
)
def test_rules_written_by_hand_are_checked(change, message):
    settings = {"groups": ("A", "B"), "classes": ("x", "y"), "offsets": ((0.1, -0.1), (0.0, 0.0))}
    with pytest.raises(fairramp.InputError, match=message):
        fairramp.ClassRule(**settings | change)


def test_no_random_state_is_global():
    p, groups, _ = class_people()
    rule = fairramp.fit_class_rule(p, groups)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (rule.decide(p, groups, random_state=3) for _ in range(2))
    assert (first == second).all()
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_all_combinations_of_labels_and_dtypes_of_scores_agree():
    p, groups, _ = class_people(n_classes=3)
    p = np.round(p * 64) / 64
    p[:, 2] = 1 - p[:, 0] - p[:, 1]
    expected = fairramp.fit_class_rule(p, groups)
    for dtype, order in itertools.product((np.float64, np.float32), "CF"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rule = fairramp.fit_class_rule(np.asarray(p, dtype=dtype, order=order), groups)
        assert np.abs(np.array(rule.offsets) - expected.offsets).max() < 1e-9
