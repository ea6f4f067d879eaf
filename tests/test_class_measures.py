"""Audits, certificates, checks and frontiers of rules for several classes."""

import json
import warnings
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import rel_entr

import fairramp
from class_samples import class_people, quiet_class_fit
from fairramp import ClassRule, GroupProbabilities, InputError, UnsupportedError
from fairramp.measure.gate import Gates

#: Rounding of sums over a few hundred rows.
CLOSE = 1e-12
#: A bisection of the library stops here.
BISECTED = 1e-9
CLASSES = ("low", "mid", "high")
#: Law of the classes in each group of a population.
LAW = np.array([[0.30, 0.40, 0.30], [0.50, 0.30, 0.20]])


def rows(n=600, n_classes=3, n_groups=2, seed=0):
    """Probabilities that differ between groups, groups, true classes and weights."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_groups, n)
    alpha = 1 + np.abs(np.subtract.outer(np.arange(n_groups), np.arange(n_classes)))
    p = np.stack([rng.dirichlet(alpha[k]) for k in codes])
    labels = (p.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
    return p, np.array([f"g{k}" for k in codes]), labels, rng.integers(0, 4, n) / 2 + 0.25


def drawn(law, sizes, rng):
    """Hard decisions of people, drawn from the law of their group, as probabilities 0 and 1; and groups."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    index = (law.cumsum(axis=1)[groups, :-1] < rng.random((len(groups), 1))).sum(axis=1)
    return np.eye(law.shape[1])[index], groups


def keeping(law, **settings):
    """A rule that keeps the decisions of people drawn from a law."""
    offsets = ((0.0,) * law.shape[1],) * len(law)
    return ClassRule(tuple(range(len(law))), tuple(range(law.shape[1])), offsets, 0.0, **settings)


def argmax(row):
    """The first of the largest."""
    return list(row).index(max(row))


def slow_audit(chances, groups, labels, weights):
    """Rates by class and group, confusion by group, true and decided class, and accuracies, row by row."""
    mass, rate, right = defaultdict(float), defaultdict(float), defaultdict(float)
    confusion, true = defaultdict(float), defaultdict(float)
    for h, g, t, w in zip(chances, groups, labels, weights, strict=True):
        mass[g] += w
        right[g] += w * h[t]
        true[g, t] += w
        for c, chance in enumerate(h):
            rate[c, g] += w * chance
            confusion[g, t, c] += w * chance
    names = sorted(mass)
    return (
        [rate[c, g] / mass[g] for c in range(len(chances[0])) for g in names],
        {key: value / true[key[:2]] for key, value in confusion.items()},
        [right[g] / mass[g] for g in names],
        sum(right.values()) / sum(mass.values()),
    )


@given(st.integers(2, 5), st.integers(1, 4), st.booleans(), st.integers(0, 1000))
def test_audit_has_the_rates_and_errors_of_a_loop_over_the_rows(n_classes, n_groups, weighted, seed):
    p, groups, labels, weights = rows(60, n_classes, n_groups, seed)
    offsets = np.random.default_rng(seed).normal(0, 0.1, (len({*groups}), n_classes))
    rule = ClassRule(tuple(sorted({*groups})), tuple(range(n_classes)), tuple(map(tuple, offsets)), 0.1)
    w = weights if weighted else np.ones(len(p))
    found = fairramp.audit_classes(p, groups, labels, rule=rule, sample_weight=w if weighted else None)
    own = [[float(c == argmax(row)) for c in range(n_classes)] for row in p]
    for measured, chances in ((found.before, own), (found.after, rule.probabilities(p, groups).tolist())):
        rates, confusion, accuracy, overall = slow_audit(chances, groups, labels, w)
        np.testing.assert_allclose(measured.rate, rates, atol=CLOSE)
        np.testing.assert_allclose(measured.accuracy, accuracy, atol=CLOSE)
        assert measured.overall_accuracy == pytest.approx(overall, abs=CLOSE)
        per_class = np.reshape(rates, (n_classes, -1))
        assert measured.gap == pytest.approx(np.ptp(per_class, axis=1).max(), abs=CLOSE)
        for k, group in enumerate(found.groups):
            for t in range(n_classes):
                expected = [confusion.get((group, t, c), np.nan) for c in range(n_classes)]
                np.testing.assert_allclose(measured.confusion[k][t], expected, atol=CLOSE)
    changed = 1 - (np.array(own) * rule.probabilities(p, groups)).sum(axis=1)
    assert found.overall_changed == pytest.approx(np.average(changed, weights=w), abs=CLOSE)
    unsure = rule.probabilities(p, groups).max(axis=1) < 1
    assert found.randomized == pytest.approx(np.average(unsure, weights=w), abs=CLOSE)


@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_are_audited_as_yes_and_no(weighted):
    p, groups, labels, weights = rows(400, 2, 3)
    w = weights if weighted else None
    binary = fairramp.audit(p[:, 1], groups, labels, sample_weight=w).before
    found = fairramp.audit_classes(p, groups, labels, sample_weight=w)
    for name in ("rate", "lower", "upper", "rows", "gap", "gap_interval"):
        one = getattr(found.before.rates["1"], name)
        np.testing.assert_allclose(one, getattr(binary.rates["selection"], name), atol=CLOSE)
    assert found.before.accuracy == pytest.approx(binary.accuracy, abs=CLOSE)


def test_interval_of_the_largest_gap_holds_for_all_classes_together():
    p, groups, _, _ = rows(500, 4, 3)
    found = fairramp.audit_classes(p, groups).before
    each = [one.gap_interval for one in found.rates.values()]
    lower, upper = found.gap_interval
    assert upper == max(high for _, high in each)
    assert 0 < lower < max(low for low, _ in each)


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, lambda x: pd.Series(x, dtype="category")])
def test_decisions_are_audited_as_class_labels(kind):
    labels = ["b", "a", "b", "c", "a", "a"]
    one_hot = [[float(label == c) for c in "abc"] for label in labels]
    groups, truth = [1, 2, 1, 2, 1, 2], ["a", "a", "b", "c", "c", "a"]
    found = fairramp.audit_classes(kind(labels), groups, truth)
    assert found.of_decisions
    assert found.classes == ("a", "b", "c")
    same = fairramp.audit_classes(one_hot, groups, truth, classes=["a", "b", "c"])
    assert found.to_dict() == same.to_dict()


def test_class_that_nobody_gets_can_be_named():
    found = fairramp.audit_classes(["b", "a", "b"], [1, 2, 1], classes=["a", "b", "never"])
    assert found.before.rates["never"].rate == (0.0, 0.0)


def test_strata_are_compared_one_by_one():
    p, groups, _, _ = rows(900, 3, 2)
    strata = np.random.default_rng(5).choice(["north", "south"], len(p))
    found = fairramp.audit_classes(p, groups, strata=strata)
    parts = [fairramp.audit_classes(p[strata == s], groups[strata == s]) for s in ("north", "south")]
    assert found.gap == max(part.gap for part in parts)
    assert found.groups == (("north", "g0"), ("north", "g1"), ("south", "g0"), ("south", "g1"))
    rates = np.reshape(found.before.rate, (3, 4))
    np.testing.assert_array_equal(rates[:, 2:].ravel(), parts[1].before.rate)


def test_a_rule_without_strata_can_be_audited_within_strata():
    p, groups, _, _ = rows(900, 3, 2)
    strata = np.random.default_rng(5).choice(["north", "south"], len(p))
    rule = fairramp.fit_class_rule(p, groups)
    found = fairramp.audit_classes(p, groups, rule=rule, strata=strata)
    chances, here = rule.probabilities(p, groups), (strata == "south") & (groups == "g1")
    assert found.after.rates["2"].rate[3] == pytest.approx(chances[here, 2].mean(), abs=CLOSE)


def test_rules_by_group_probabilities_are_measured_by_true_group():
    p, groups, labels, _ = rows(2000)
    sure = np.where(np.arange(2000) % 4, 0.95, 0.8)
    q = np.where(groups == "g0", sure, 1 - sure)
    soft = GroupProbabilities({"g0": q, "g1": 1 - q})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rule = fairramp.fit_class_rule(p[:1000], soft.take(np.arange(1000)))
        fresh = slice(1000, 2000)
        later = soft.take(np.arange(1000, 2000))
        found = fairramp.audit_classes(
            p[fresh], groups[fresh], labels[fresh], rule=rule, group_probabilities=later
        )
        certificate = rule.certificate(probabilities=p[fresh], groups=groups[fresh], group_probabilities=later)
        check = rule.check(p[fresh], groups[fresh], group_probabilities=later)
    chances = rule.probabilities(p[fresh], later)
    expected = [chances[groups[fresh] == g, c].mean() for c in range(3) for g in ("g0", "g1")]
    np.testing.assert_allclose(found.after.rate, expected, atol=CLOSE)
    np.testing.assert_allclose(check.rates, expected, atol=CLOSE)
    assert certificate.estimated == found.after.gap_interval[1]
    assert found.group_model.rows == ((groups[fresh] == "g0").sum(), (groups[fresh] == "g1").sum())
    with pytest.raises(InputError, match="true groups"):
        rule.check(p[fresh], groups[fresh])
    with pytest.raises(UnsupportedError, match="A check does not support group probabilities"):
        rule.check(p[fresh], later)


def test_audit_prints_and_converts_to_json():
    p, groups, labels, weights = rows()
    rule = fairramp.fit_class_rule(p, groups, max_gap=0.02, sample_weight=weights)
    found = fairramp.audit_classes(p, groups, labels, rule=rule, sample_weight=weights)
    text = repr(found)
    assert max(map(len, text.split("\n"))) <= 80
    assert (
        f"Accuracy: {100 * found.accuracy_before:.1f}% before, {100 * found.accuracy_after:.1f}% after." in text
    )
    assert json.loads(json.dumps(found.to_dict()))["after"]["gap"] == found.gap_after
    assert found.confusion("before")["gets_1"].tolist() == [
        row[1] for group in found.before.confusion for row in group
    ]
    assert found.gaps()["gap_after"].max() == found.gap_after <= 0.02 + CLOSE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probabilities": [0.2, 0.7]}, "one class label per row.*use fairramp.audit"),
        ({"probabilities": ["a", "a"]}, "at least two classes"),
        ({"probabilities": ["a", "c"], "classes": ["a", "b"]}, "`probabilities` must be one of the classes"),
        ({"labels": ["x", "y"]}, "`labels` must be one of the classes"),
        ({"rule": fairramp.Rule(("A",), (fairramp.Ramp(0.2, 0.1),))}, "for yes or no, use fairramp.audit"),
        ({"group_probabilities": 1}, "pass `rule`"),
        ({"confidence": 2}, "confidence"),
        ({"groups": GroupProbabilities({"a": [0.5, 0.5], "b": [0.5, 0.5]})}, "pass the groups themselves"),
    ],
)
def test_wrong_input_is_named(change, message):
    given = {"probabilities": [[0.2, 0.8], [0.7, 0.3]], "groups": ["a", "b"], **change}
    with pytest.raises((InputError, UnsupportedError), match=message):
        fairramp.audit_classes(**given)
    with pytest.raises(InputError, match="`labels`"):
        fairramp.audit_classes(["a", "b"], [1, 2]).confusion()


def test_gates_apply_to_the_largest_gap_of_a_class():
    h, groups = drawn(LAW, [3000, 3000], np.random.default_rng(0))
    found = fairramp.audit_classes(h, groups, classes=CLASSES)
    low, high = found.before.gap_interval
    outcomes = {(low + high) / 2: ("undecided", 3), high: ("within", 0), low - 1e-6: ("exceeded", 1)}
    for limit, (verdict, code) in outcomes.items():
        gates = Gates(found, fail_unless_below=limit)
        assert (gates.to_dict()["verdict"], gates.exit_code) == (verdict, code)
        assert "class low" in gates.sentences()[0]
    alone = Gates(fairramp.audit_classes(h, [0] * 6000), fail_above=0.1)
    assert alone.sentences() == ["Gate undecided: there is only one group, so there is nothing to compare."]


def test_a_gate_of_classes_is_undecided_without_a_group_of_the_rule():
    h, groups = drawn(LAW, [3000, 3000], np.random.default_rng(0))
    third = np.where(np.arange(6000) % 2 == 0, groups, 7)
    rule = quiet_class_fit(h, third, classes=CLASSES)
    keep = third != 7
    found = fairramp.audit_classes(h[keep], third[keep], rule=rule)
    assert (found.missing, found.to_dict()["missing"]) == ((7,), [7])
    assert "Group 7 of the rule has no rows and is left out." in found.sentences()
    assert Gates(found, fail_unless_below=1.0).sentences() == ["Gate undecided: there are no rows in 7."]


# Certificates ---------------------------------------------------------------------------------


def kl_limits(rate, n, delta):
    """Chernoff's limits of a mean of n values in [0, 1], by root finding."""

    def beyond(u):
        return n * (rel_entr(rate, u) + rel_entr(1 - rate, 1 - u)) - np.log(1 / delta)

    tiny = 1e-15
    low = 0.0 if rate == 0 else brentq(beyond, tiny, rate, xtol=1e-14)
    return low, 1.0 if rate == 1 else brentq(beyond, rate, 1 - tiny, xtol=1e-14)


def test_proven_limit_is_the_union_bound_over_groups_classes_and_sides():
    h, groups = drawn(np.repeat(LAW, [2, 1], axis=0), [500, 300, 200], np.random.default_rng(1))
    rule, confidence = keeping(np.repeat(LAW, [2, 1], axis=0)), 0.9
    found = rule.certificate(confidence, probabilities=h, groups=groups)
    limits = [
        [kl_limits(h[groups == k, c].mean(), (groups == k).sum(), 0.1 / (2 * 3 * 3)) for k in range(3)]
        for c in range(3)
    ]
    expected = max(
        high - low
        for one in limits
        for i, (_, high) in enumerate(one)
        for j, (low, _) in enumerate(one)
        if i != j
    )
    assert found.proven == pytest.approx(expected, abs=BISECTED)
    audit = fairramp.audit_classes(h, groups, rule=rule, confidence=confidence)
    assert found.estimated == audit.after.gap_interval[1] < found.proven
    assert found.by_event == {name: one.gap_interval[1] for name, one in audit.after.rates.items()}
    assert found.fit_gaps == {name: one.gap for name, one in audit.after.rates.items()}


def test_limits_hold_as_often_as_they_say():
    # Only one pair of groups and one class can be the extremes here, so the limits have nothing to spare.
    rng, rule, n_draws = np.random.default_rng(2), keeping(LAW), 600
    gap, held, contained = np.ptp(LAW, axis=0).max(), [], []
    for _ in range(n_draws):
        h, groups = drawn(LAW, [400, 300], rng)
        found = rule.certificate(0.9, probabilities=h, groups=groups)
        low, high = fairramp.audit_classes(h, groups, rule=rule, confidence=0.9).after.gap_interval
        held.append((found.estimated >= gap, found.proven >= gap))
        contained.append(low <= gap <= high)
    estimated, proven = np.mean(held, axis=0)
    # The upper end alone is wrong in 5% of all draws; 4 standard errors are 3.6 points.
    assert 0.914 < estimated < 0.986
    assert proven == 1
    assert np.mean(contained) > 0.9 - 4 * np.sqrt(0.09 / n_draws)


def test_certificate_within_strata_is_that_of_the_worst_stratum():
    p, groups, _, _ = rows(4000)
    strata = np.random.default_rng(5).choice(["north", "south"], len(p))
    rule = fairramp.fit_class_rule(p[:2000], groups[:2000], strata=strata[:2000])
    fresh = slice(2000, None)
    found = rule.certificate(probabilities=p[fresh], groups=groups[fresh], strata=strata[fresh])
    chances = rule.probabilities(p[fresh], groups[fresh], strata[fresh])
    south = strata[fresh] == "south"
    audits = [
        fairramp.audit_classes(
            chances[here], groups[fresh][here], rule=ClassRule(("g0", "g1"), (0, 1, 2), ((0.0,) * 3,) * 2, 1.0)
        )
        for here in (south, ~south)
    ]
    assert found.estimated == pytest.approx(max(one.after.gap_interval[1] for one in audits), abs=CLOSE)
    assert found.within_strata


def test_certificates_need_fresh_rows_of_every_group():
    p, groups, _, weights = rows(2000)
    rule = fairramp.fit_class_rule(p[:1000], groups[:1000], max_gap=0.02)
    with pytest.raises(InputError, match="needs fresh rows"):
        rule.certificate()
    order = np.random.default_rng(0).permutation(1000)
    with pytest.raises(InputError, match="These are the rows that the rule was fitted on"):
        rule.certificate(probabilities=p[order], groups=groups[order])
    here = groups == "g0"
    alone = rule.certificate(probabilities=p[here], groups=groups[here])
    assert (alone.estimated, alone.proven) == (1.0, 1.0)
    assert "set no limit" in repr(alone)
    weighted = rule.certificate(probabilities=p[1000:], groups=groups[1000:], sample_weight=weights[1000:])
    assert weighted.proven is None
    assert weighted.estimated > rule.certificate(probabilities=p[1000:], groups=groups[1000:]).estimated - 0.05


# Checks ---------------------------------------------------------------------------------------


def fitted(max_gap):
    """A rule fitted with this limit, and many new rows of its population."""
    p, groups, _, _ = rows(4000)
    return fairramp.fit_class_rule(p, groups, max_gap=max_gap), *rows(40_000, seed=1)[:2]


def test_check_compares_new_rows_with_the_limit_of_the_rule():
    rule, p, groups = fitted(0.2)
    swapped = np.where(groups == "g0", "g1", "g0")
    fair, drifted = rule.check(p, groups), rule.check(p, swapped)
    assert (fair.limit, drifted.limit) == (0.2, 0.2)
    chances = rule.probabilities(p, groups)
    rates = np.array([[chances[groups == g, c].mean() for g in ("g0", "g1")] for c in range(3)])
    np.testing.assert_allclose(fair.rates, rates.ravel(), atol=CLOSE)
    assert fair.gap == pytest.approx(np.ptp(rates, axis=1).max(), abs=CLOSE)
    assert drifted.verdict == "exceeded"
    assert drifted.has_drifted
    np.testing.assert_allclose(fair.rates_then, np.array(rule.record.after).T.ravel(), atol=CLOSE)
    wide = fairramp.fit_class_rule(*rows(4000)[:2], max_gap=1)
    assert wide.check(p, groups).verdict == "within"
    few = rule.check(p[:50], groups[:50])
    assert few.verdict == "undecided"
    assert json.loads(json.dumps(few.to_dict()))["groups"][0]["class"] == "0"


def test_check_without_rows_of_a_group_is_undecided():
    wide, p, groups = fitted(1)
    found = wide.check(p[groups == "g1"], groups[groups == "g1"])
    assert found.verdict == "undecided"
    assert found.sentence() == "Only group g1 has rows, so there is no gap."
    assert " ".join(found.sentences()).count("were not checked") == 1
    strata = np.random.default_rng(5).choice(["north", "south"], len(p))
    here = groups == "g0"
    stratified = fairramp.fit_class_rule(p, groups, max_gap=1, strata=strata)
    alone = stratified.check(p[here], groups[here], strata=strata[here])
    assert alone.sentence() == "No stratum has rows of two groups, so there is no gap."
    assert alone.verdict == "undecided"


def test_checks_of_an_unchanged_population_give_few_false_alarms():
    rng, gap = np.random.default_rng(3), 0.05
    law = np.array([[0.30, 0.40, 0.30], [0.35, 0.35, 0.30]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rule = fairramp.fit_class_rule(*drawn(law, [4000, 4000], rng), max_gap=1)
    rule = ClassRule(**{**vars(rule), "max_gap": gap})
    alarms = [rule.check(*drawn(law, [300, 300], rng), confidence=0.8).has_drifted for _ in range(300)]
    # At the limit, both gaps of 5 points can alarm: at most 20%, and the parts share that.
    assert 0.02 < np.mean(alarms) < 0.2


def test_check_needs_a_record():
    with pytest.raises(fairramp.FairrampError, match=r"written by hand.*audit_classes"):
        keeping(LAW).check(*drawn(LAW, [10, 10], np.random.default_rng(0)))


# Frontiers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_frontier_has_the_gap_and_accuracy_of_each_rule(weighted):
    p, groups, labels, weights = rows(1500)
    new_p, new_groups, new_labels, new_weights = rows(700, seed=1)
    w, new_w = (weights, new_weights) if weighted else (None, None)
    gaps = [0.1, 0.0]
    inside = fairramp.class_frontier(p, groups, labels, max_gaps=gaps, sample_weight=w)
    outside = fairramp.class_frontier(
        p, groups, labels, max_gaps=gaps, sample_weight=w, validation=(new_p, new_groups, new_labels, new_w)
    )
    assert inside.max_gaps == (0.0, 0.1)
    assert (inside.is_in_sample, outside.is_in_sample) == (True, False)
    assert "on the fit rows" in repr(inside)
    assert "on the validation rows" in repr(outside)
    for i, gap in enumerate(inside.max_gaps):
        rule = fairramp.fit_class_rule(p, groups, max_gap=gap, sample_weight=w)
        audits = [
            fairramp.audit_classes(p, groups, labels, rule=rule, sample_weight=w),
            fairramp.audit_classes(new_p, new_groups, new_labels, rule=rule, sample_weight=new_w),
        ]
        for found, audit in zip((inside, outside), audits, strict=True):
            assert found.gaps[i] == pytest.approx(audit.gap_after, abs=CLOSE)
            assert found.accuracies[i] == pytest.approx(audit.accuracy_after, abs=CLOSE)
            assert found.randomized[i] == pytest.approx(audit.randomized, abs=CLOSE)
            assert found.own_gap == pytest.approx(audit.gap_before, abs=CLOSE)
            assert found.own_accuracy == pytest.approx(audit.accuracy_before, abs=CLOSE)
        right = rule.probabilities(new_p, new_groups)[np.arange(len(new_p)), new_labels]
        v = np.ones(len(new_p)) if new_w is None else new_w
        error = np.sqrt(np.sum((v * (right - np.average(right, weights=v))) ** 2)) / v.sum()
        assert outside.upper[i] - outside.accuracies[i] == pytest.approx(1.959964 * error, abs=1e-8)
        assert inside.gaps[i] <= gap + CLOSE * 1e3


def test_frontier_names_wrong_input():
    p, groups, labels, _ = rows(100)
    for change, message in (
        ({"labels": None}, "`labels` are required"),
        ({"max_gaps": []}, "`max_gaps` is empty"),
        ({"validation": (p, groups)}, "tuple \\(probabilities, groups, labels\\)"),
        ({"validation": (p, groups, labels), "strata": groups}, "does not support `strata`"),
        ({"validation": (p, ["new"] * 100, labels)}, "new"),
        ({"ramp_width": 0}, "`ramp_width` must be between"),
    ):
        with pytest.raises(fairramp.FairrampError, match=message):
            fairramp.class_frontier(**{"probabilities": p, "groups": groups, "labels": labels, **change})


def test_frontier_goes_to_the_own_gap_by_default_and_keeps_strata():
    p, groups, labels, _ = rows(800)
    strata = np.random.default_rng(5).choice(["north", "south"], len(p))
    found = fairramp.class_frontier(p, groups, labels, strata=strata)
    assert len(found.max_gaps) == 21
    assert found.max_gaps[-1] == found.own_gap == found.gaps[-1]
    assert all(gap <= most + 1e-9 for gap, most in zip(found.gaps, found.max_gaps, strict=True))


def test_a_gap_at_the_limit_is_not_above_it():
    p, groups, _ = class_people(5000)
    rule = fairramp.fit_class_rule(p, groups, max_gap=0.02)
    sentence = rule.check(p, groups).sentence()
    assert "No sign that the gap" in sentence
    assert "limit of 2.0 points: 2.0 points" in sentence


@pytest.mark.parametrize(
    ("decisions", "labels", "types"),
    [([True, False], [1, 0], "bool, got int"), ([0, 1], ["0", "1"], "int, got str")],
)
def test_labels_of_another_type_are_not_further_classes(decisions, labels, types):
    message = f"`labels` must have the type of the decisions, {types}; convert one of them"
    with pytest.raises(fairramp.InputError, match=message):
        fairramp.audit_classes(decisions * 5, ["F", "M"] * 5, labels * 5)
