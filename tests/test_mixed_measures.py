"""Laws of audits, certificates, checks, answers and reports of rules that mix thresholds.

The reference values come from plain NumPy: a person's foot is center + Σ q_k (foot_k − center) or, by each
attribute, base + Σ (foot_v − base).
"""

import html
import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

import fairramp
from fairramp.errors import FairrampWarning, InputError, UnsupportedError
from fairramp.measure.group_model import GroupModel
from fairramp.measure.verdict import Verdict
from fairramp.show.describe import certificate_of, description, facts

#: Sums over thousands of rows in another order.
SUMS = 1e-12
FIT, NEW = slice(0, 3000), slice(3000, None)


def _people(seed=0, n=6000):
    """Scores, labels, weights, sex with its probability, and race."""
    rng = np.random.default_rng(seed)
    q = rng.beta(0.7, 0.7, n)
    sex = np.where(rng.random(n) < q, "F", "M")
    race = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    score = np.clip(rng.beta(2, 3, n) - 0.15 * (q - 0.5) - 0.1 * (race == "b"), 0, 1)
    label = (rng.random(n) < score).astype(int)
    return score, label, rng.random(n) + 0.2, q, sex, race


SCORE, LABEL, WEIGHT, Q, SEX, RACE = _people()


def probabilities(rows, q=Q):
    return fairramp.GroupProbabilities({"F": q[rows], "M": 1 - q[rows]})


def columns(rows):
    return {"sex": SEX[rows], "race": RACE[rows]}


SOFT = fairramp.fit_rule(SCORE[FIT], probabilities(FIT), max_gap=0.02)
EACH = fairramp.fit_rule(SCORE[FIT], columns(FIT), combine="each", max_gap=0.01)


def soft_chances(rule=SOFT, rows=NEW, q=Q):
    feet = {label: ramp.foot for label, ramp in zip(rule.groups, rule.ramps, strict=True)}
    width = rule.ramps[0].width
    center = rule.cutoff - width / 2
    foot = center + q[rows] * (feet["F"] - center) + (1 - q[rows]) * (feet["M"] - center)
    return np.clip((SCORE[rows] - foot) / width, 0, 1)


def each_chances(rule=EACH, rows=NEW):
    shift = {label: ramp.foot - rule.base.foot for label, ramp in zip(rule.groups, rule.ramps, strict=True)}
    total = [shift["sex", s] + shift["race", r] for s, r in zip(SEX[rows], RACE[rows], strict=True)]
    return np.clip((SCORE[rows] - rule.base.foot - np.array(total)) / rule.base.width, 0, 1)


def mean(values, which, weights=None):
    return float(np.average(values[which], weights=None if weights is None else weights[which]))


# Audits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_audit_of_a_soft_rule_has_the_rates_of_the_true_groups(weighted):
    w = WEIGHT[NEW] if weighted else None
    found = fairramp.audit(
        SCORE[NEW], SEX[NEW], LABEL[NEW], rule=SOFT, group_probabilities=probabilities(NEW), sample_weight=w
    )
    h, sex, y = soft_chances(), SEX[NEW], LABEL[NEW]
    assert found.groups == ("F", "M")
    assert found.after.rate == pytest.approx([mean(h, sex == k, w) for k in "FM"], abs=SUMS)
    assert found.before.rate == pytest.approx([mean(SCORE[NEW] >= 0.5, sex == k, w) for k in "FM"], abs=SUMS)
    tpr = [mean(h, (sex == k) & (y == 1), w) for k in "FM"]
    assert found.after.true_positive_rate == pytest.approx(tpr, abs=SUMS)
    right = np.where(y == 1, h, 1 - h)
    assert found.after.overall_accuracy == pytest.approx(mean(right, slice(None), w), abs=SUMS)


def test_audit_shows_the_rates_of_true_groups_that_the_rule_does_not_know():
    sex = np.where(np.arange(3000) % 10 == 0, "X", SEX[NEW])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairrampWarning)
        found = fairramp.audit(SCORE[NEW], sex, rule=SOFT, group_probabilities=probabilities(NEW))
    assert found.groups == ("F", "M", "X")
    assert found.after.rate[2] == pytest.approx(mean(soft_chances(), sex == "X"), abs=SUMS)
    assert found.group_model.unknown == (("X", 300),)
    assert "True groups without a probability: X (300 rows)." in found.sentences()


@pytest.mark.parametrize("weighted", [False, True])
def test_audit_by_each_attribute_has_the_rates_of_its_values_and_of_the_intersections(weighted):
    w = WEIGHT[NEW] if weighted else None
    found = fairramp.audit(SCORE[NEW], columns(NEW), LABEL[NEW], rule=EACH, sample_weight=w)
    h = each_chances()
    by_sex = [mean(h, SEX[NEW] == k, w) for k in "FM"]
    by_race = [mean(h, RACE[NEW] == k, w) for k in "abc"]
    assert found.groups == (("sex", "F"), ("sex", "M"), ("race", "a"), ("race", "b"), ("race", "c"))
    assert found.after.rate == pytest.approx([*by_sex, *by_race], abs=SUMS)
    assert found.gap == pytest.approx(max(np.ptp(by_sex), np.ptp(by_race)), abs=SUMS)
    ratios = [min(rates) / max(rates) for rates in (by_sex, by_race)]
    assert found.ratio == pytest.approx(min(ratios), abs=SUMS)
    crossed = [mean(h, (SEX[NEW] == s) & (RACE[NEW] == r), w) for s in "FM" for r in "abc"]
    assert found.intersections.after.rate == pytest.approx(crossed, abs=SUMS)
    assert found.intersections.gap == pytest.approx(np.ptp(crossed), abs=SUMS)
    assert found.after.overall_accuracy == pytest.approx(found.intersections.after.overall_accuracy, abs=SUMS)
    assert found.randomized == pytest.approx(mean((h > 0) & (h < 1), slice(None), w), abs=SUMS)
    assert f"Intersections: gap {100 * np.ptp(crossed):.1f} points" in repr(found)
    assert found.table().columns[:2] == ("attribute", "group")


def test_audit_by_each_attribute_agrees_with_an_audit_of_every_column():
    both = fairramp.audit(SCORE, [SEX, RACE], LABEL, combine="each")
    one, other = (fairramp.audit(SCORE, column, LABEL) for column in (SEX, RACE))
    for name in ("rate", "lower", "upper", "rows", "accuracy", "precision"):
        expected = [*getattr(one.before, name), *getattr(other.before, name)]
        assert getattr(both.before, name) == pytest.approx(expected, abs=SUMS), name
    assert both.calibration_error == (*one.calibration_error, *other.calibration_error)
    assert both.gap == max(one.gap, other.gap)
    crossed = fairramp.audit(SCORE, [SEX, RACE], LABEL)
    assert both.intersections == crossed


def test_sentences_of_an_audit_by_each_attribute_name_every_attribute():
    text = " ".join(fairramp.audit(SCORE[NEW], columns(NEW), rule=EACH).sentences())
    for name in ("sex", "race"):
        assert f"Selection rate before by {name} (yes at 0.5 or above): " in text
        assert f"Selection rate after by {name}: " in text


def test_audit_as_plain_values_is_json():
    for found in (
        fairramp.audit(SCORE[NEW], columns(NEW), rule=EACH),
        fairramp.audit(SCORE[NEW], SEX[NEW], rule=SOFT, group_probabilities=probabilities(NEW)),
    ):
        assert json.loads(json.dumps(found.to_dict()))["after"]["gap"] == found.gap
        assert "<table" in found._repr_html_()


# The group model --------------------------------------------------------------------------------


def test_group_model_counts_expected_and_true_rows_and_finds_calibrated_probabilities_calibrated():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fairramp.audit(SCORE, SEX, rule=SOFT, group_probabilities=probabilities(slice(None)))
    model = found.group_model
    assert model.groups == ("F", "M")
    assert model.expected == pytest.approx([Q.sum(), (1 - Q).sum()])
    assert model.rows == (int((SEX == "F").sum()), int((SEX == "M").sum()))
    assert model.highest == (Q.max(), (1 - Q).max())
    assert max(model.calibration_error) < 0.01
    assert model.poor() == []


def test_calibration_error_of_the_group_model_is_that_of_an_audit_with_group_membership_as_label():
    shifted = Q**2
    q = fairramp.GroupProbabilities({"F": shifted, "M": 1 - shifted})
    with pytest.warns(FairrampWarning, match=r"calibration error above 0.05: F 0\.\d+, M 0\.\d+"):
        model = fairramp.audit(SCORE, SEX, rule=SOFT, group_probabilities=q).group_model
    everyone = np.zeros(len(Q), dtype=int)
    for k, (label, column) in enumerate((("F", shifted), ("M", 1 - shifted))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairrampWarning)
            alone = fairramp.audit(column, everyone, (label == SEX).astype(int))
        assert model.calibration_error[k] == alone.calibration_error[0]
    truth = float(np.mean(np.abs(Q - shifted)))  # the outcomes were drawn with probability Q
    assert model.calibration_error[0] == pytest.approx(truth, abs=0.02)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"calibration_error": (0.051, 0.01)}, "calibration error above 0.05: A 0.051"),
        ({"expected": (130.0, 70.0)}, "expected rows far from the true number: A 130.0 instead of 100, B 70.0"),
        ({"expected": (29.9, 100.0), "deviation": (40.0, 40.0)}, "fewer than 30 expected rows: A 29.9"),
        ({"highest": (0.49, 0.9)}, "no probability of 50% or more: A (highest 49.0%)"),
    ],
)
def test_a_poor_group_model_is_told_with_its_numbers(changed, told):
    sound = {
        "groups": ("A", "B"),
        "calibration_error": (0.05, 0.05),
        "expected": (100.0, 100.0),
        "rows": (100, 100),
        "highest": (0.5, 0.5),
        "deviation": (5.0, 5.0),
    }
    GroupModel(**sound).warn()  # warnings are errors here
    poor = GroupModel(**sound | changed)
    assert [text for text in poor.poor() if text.startswith(told)]
    with pytest.warns(FairrampWarning, match=re.escape(told)):
        poor.warn()
    assert poor.sentences()[0].startswith("Group probabilities are poor: ")


def test_a_number_of_rows_that_chance_explains_is_not_poor():
    rare = GroupModel(("A", "B"), (0.0, 0.0), (40.0, 960.0), (55, 945), (0.9, 1.0), (6.0, 6.0))
    assert rare.poor() == []


# Certificates -----------------------------------------------------------------------------------


def kl_limits(rate, n, delta):
    """Where n · L(rate ‖ u) = ln(1/δ), on both sides, by root finding."""

    def excess(u):
        yes = rate * np.log(rate / u) if rate > 0 else 0.0
        no = (1 - rate) * np.log((1 - rate) / (1 - u)) if rate < 1 else 0.0
        return n * (yes + no) - np.log(1 / delta)

    tiny = 1e-15
    low = brentq(excess, tiny, rate) if rate > 0 else 0.0
    return low, brentq(excess, rate, 1 - tiny) if rate < 1 else 1.0


def fresh(rule, rows=NEW, **more):
    if rule.membership == "probabilities":
        return rule.certificate(
            scores=SCORE[rows], groups=SEX[rows], group_probabilities=probabilities(rows), **more
        )
    return rule.certificate(scores=SCORE[rows], groups=columns(rows), **more)


def test_fresh_limits_of_a_soft_rule_are_newcombes_and_chernoffs():
    found, h = fresh(SOFT), soft_chances()
    limits = [kl_limits(mean(h, SEX[NEW] == k), (SEX[NEW] == k).sum(), 0.05 / 4) for k in "FM"]
    (low_f, high_f), (low_m, high_m) = limits
    assert found.proven == pytest.approx(max(high_f - low_m, high_m - low_f), abs=1e-9)
    audited = fairramp.audit(SCORE[NEW], SEX[NEW], rule=SOFT, group_probabilities=probabilities(NEW))
    assert found.estimated == audited.after.gap_interval[1]
    assert found.fit_gaps["selection"] == audited.gap
    assert [(bound.name, bound.is_theorem) for bound in found.bounds] == [("newcombe", False), ("kl", True)]
    assert found.bounds[0].why_not == ("a normal approximation",)
    assert found.fresh
    assert "neither the rule nor the models of scores and groups" in found.assumptions


def test_fresh_limits_by_each_attribute_compare_values_of_the_same_attribute():
    found, h = fresh(EACH), each_chances()
    proven = 0.0
    for column, values in ((SEX[NEW], "FM"), (RACE[NEW], "abc")):
        limits = [kl_limits(mean(h, column == k), (column == k).sum(), 0.05 / 10) for k in values]
        pairs = [limits[i][1] - limits[j][0] for i in range(len(values)) for j in range(len(values)) if i != j]
        proven = max(proven, *pairs)
    assert found.proven == pytest.approx(proven, abs=1e-9)
    assert found.estimated == fairramp.audit(SCORE[NEW], columns(NEW), rule=EACH).after.gap_interval[1]
    assert found.sentences()[0].startswith("Largest gap within an attribute in the population: ")


def test_fresh_limits_of_a_rule_with_known_groups_are_those_of_the_same_probabilities():
    rule = fairramp.fit_rule(SCORE[FIT], SEX[FIT])
    found = rule.certificate(0.9, scores=SCORE[NEW], groups=SEX[NEW])
    audited = fairramp.audit(SCORE[NEW], SEX[NEW], rule=rule, confidence=0.9)
    assert found.estimated == audited.after.gap_interval[1]
    assert found.confidence == 0.9


def test_nothing_is_proven_with_weights():
    found = fresh(EACH, sample_weight=WEIGHT[NEW])
    assert found.proven is None
    assert not any(bound.is_theorem for bound in found.bounds)
    assert "no proven limit for weighted rows" in repr(found)


def test_a_group_without_fresh_rows_leaves_no_limit():
    rows = np.flatnonzero(RACE != "c")
    found = fresh(EACH, rows)
    assert (found.estimated, found.proven) == (1.0, 1.0)
    assert found.widest_for == (("race", "c"), 0)
    assert "set no limit" in repr(found)


def test_the_estimated_limit_is_never_above_the_proven_one():
    rows = np.concatenate([np.flatnonzero(k == SEX)[-9:] for k in "FM"])
    found = fresh(SOFT, rows)
    assert found.estimated <= found.proven <= 1


@pytest.mark.parametrize("rule", [SOFT, EACH], ids=["soft", "each"])
def test_the_fit_rows_certify_no_rule_that_mixes_thresholds(rule):
    with pytest.raises(InputError, match=r"depends on all rows at once.* fresh rows"):
        rule.certificate()
    with pytest.raises(InputError, match="These are the rows that the rule was fitted on"):
        fresh(rule, FIT)
    order = np.random.default_rng(1).permutation(3000)
    with pytest.raises(InputError, match="These are the rows that the rule was fitted on"):
        fresh(rule, order)


def test_certificates_on_fresh_rows_refuse_what_they_cannot_bound():
    odds = fairramp.fit_rule(SCORE, SEX, LABEL, criterion="equal_opportunity")
    within = fairramp.fit_rule(SCORE, SEX, strata=RACE)
    for rule, told in ((odds, "criterion='equal_opportunity'"), (within, "does not support strata")):
        with pytest.raises(UnsupportedError, match=told):
            rule.certificate(scores=SCORE, groups=SEX)
    with pytest.raises(InputError, match="requires `groups`"):
        SOFT.certificate(scores=SCORE)
    with pytest.raises(InputError, match="pass them as `group_probabilities`"):
        SOFT.certificate(scores=SCORE, groups=SEX)


# How often fresh limits hold: rows are drawn from a finite population, whose rates are known.


def apart(rule, *thresholds):
    """The same rule with other thresholds of F and M, so that the gap is large; without a record of its fit."""
    width = rule.ramps[0].width
    moved = tuple(fairramp.Ramp.centered(threshold, width) for threshold in thresholds)
    return replace(rule, ramps=(*moved, *rule.ramps[2:]), record=None)


#: Rule, and the number of rows drawn: from each group, or from everybody. Limits are tight if the gap is large.
SETUPS = {
    "soft, gap near 0": (SOFT, {"F": 30, "M": 500}),
    "soft, equal groups": (apart(SOFT, 0.25, 0.6), {"F": 400, "M": 400}),
    "soft, a small group": (apart(SOFT, 0.2, 0.6), {"F": 30, "M": 500}),
    "soft, tiny groups": (apart(SOFT, 0.1, 0.9), {"F": 15, "M": 20}),
    "soft, rare yes": (apart(SOFT, 0.5, 0.95), {"F": 60, "M": 200}),
    "each, gap near 0": (EACH, 400),
    "each, many rows": (apart(EACH, 0.3, 0.6), 600),
    "each, few rows": (apart(EACH, 0.1, 0.8), 80),
}


def coverage(name, replicates, seed=0):
    """Shares of replicates in which the estimated and the proven limit hold."""
    rule, sizes = SETUPS[name]
    soft = rule.membership == "probabilities"
    everybody = slice(None)
    h = soft_chances(rule, everybody) if soft else each_chances(rule, everybody)
    attributes = [SEX] if soft else [SEX, RACE]
    true_gap = max(np.ptp([mean(h, column == k) for k in np.unique(column)]) for column in attributes)
    rng, held = np.random.default_rng(seed), np.zeros(2)
    for _ in range(replicates):
        if isinstance(sizes, int):
            rows = rng.integers(0, len(SCORE), sizes)
        else:
            rows = np.concatenate([rng.choice(np.flatnonzero(k == SEX), n) for k, n in sizes.items()])
        found = fresh(rule, rows)
        held += [true_gap <= found.estimated, true_gap <= found.proven]
    return held / replicates


@pytest.mark.parametrize("name", SETUPS)
def test_fresh_limits_hold_as_often_as_they_say(name):
    estimated, proven = coverage(name, 400)
    assert estimated >= 0.93
    assert proven >= 0.95


@pytest.mark.nightly
@pytest.mark.parametrize("name", SETUPS)
def test_fresh_limits_hold_as_often_as_they_say_in_many_replicates(name):
    estimated, proven = coverage(name, 4000, seed=1)
    assert estimated >= 0.93
    assert proven >= 0.95


# Checks -----------------------------------------------------------------------------------------


def test_check_compares_the_gap_by_true_groups_with_the_requested_limit():
    found = SOFT.check(SCORE[NEW], SEX[NEW], group_probabilities=probabilities(NEW))
    rates = [mean(soft_chances(), SEX[NEW] == k) for k in "FM"]
    assert found.rates == pytest.approx(rates, abs=SUMS)
    assert found.gap == pytest.approx(np.ptp(rates), abs=SUMS)
    assert found.limit == SOFT.max_gap
    assert found.false_alarm_rate == pytest.approx(0.05)
    assert "requested limit of 2.0" in repr(found)
    assert "<table" in found._repr_html_()


def test_check_by_each_attribute_names_the_attribute_that_is_furthest_above_the_limit():
    found = EACH.check(SCORE[NEW], columns(NEW))
    h = each_chances()
    rates = [mean(h, SEX[NEW] == k) for k in "FM"] + [mean(h, RACE[NEW] == k) for k in "abc"]
    assert found.groups == EACH.groups
    assert found.rates == pytest.approx(rates, abs=SUMS)
    assert found.gap == pytest.approx({"sex": np.ptp(rates[:2]), "race": np.ptp(rates[2:])}[found.stratum])
    assert found.table().columns[:2] == ("attribute", "group")
    assert f"Attribute: {found.stratum}." in repr(found)


@pytest.mark.parametrize(
    ("moved", "limit", "verdict"),
    [(0.0, 0.3, Verdict.WITHIN), (0.4, 0.02, Verdict.EXCEEDED), (0.0, 0.02, Verdict.UNDECIDED)],
)
def test_verdict_of_a_check_follows_the_confidence_interval(moved, limit, verdict):
    sloping = fairramp.fit_rule(SCORE[FIT], probabilities(FIT), max_gap=0.02)
    rule = replace(sloping, max_gap=limit)
    score = np.clip(SCORE[NEW] + moved * (SEX[NEW] == "F"), 0, 1)
    found = rule.check(score, SEX[NEW], group_probabilities=probabilities(NEW))
    low, high = found.gap_interval
    assert found.verdict is verdict
    assert verdict is (
        Verdict.EXCEEDED if low > limit else Verdict.WITHIN if high <= limit else Verdict.UNDECIDED
    )


def test_check_leaves_out_rows_of_true_groups_that_the_rule_does_not_know():
    sex = np.where(np.arange(3000) % 10 == 0, "X", SEX[NEW])
    found = SOFT.check(SCORE[NEW], sex, group_probabilities=probabilities(NEW))
    assert found.groups == ("F", "M")
    assert sum(found.rows) == 2700


def whole(rule):
    return fairramp.GroupProbabilities({"F": Q, "M": 1 - Q}) if rule is SOFT else columns(slice(None))


UNSUPPORTED = {
    "monitor, soft": (lambda: SOFT.monitor(), "A monitor does not support"),
    "monitor, each": (lambda: EACH.monitor(), "A monitor does not support"),
    "frontier": (lambda: fairramp.frontier(SCORE, whole(SOFT), LABEL), "A frontier does not support"),
    "tune, soft": (
        lambda: fairramp.tune(SCORE, whole(SOFT), LABEL, validation=(SCORE, whole(SOFT), LABEL)),
        "Tuning does not support group probabilities",
    ),
    "tune, each": (
        lambda: fairramp.tune(SCORE, whole(EACH), LABEL, validation=(SCORE, whole(EACH), LABEL), combine="each"),
        "Tuning does not support `combine='each'`",
    ),
    "select": (lambda: fairramp.select(SCORE, whole(SOFT), places=5), "does not support group probabilities"),
    "stream of rows": (
        lambda: fairramp.StreamingFit(target_rate=0.2).partial_fit(SCORE, whole(SOFT)),
        "A stream does not support group probabilities",
    ),
    "stream, soft": (lambda: fairramp.StreamingFit.from_rule(SOFT), "a stream does not support rules by group"),
    "stream, each": (lambda: fairramp.StreamingFit.from_rule(EACH), "a stream does not support rules by group"),
    "check of a ratio": (
        lambda: fairramp.fit_rule(SCORE, whole(SOFT), min_ratio=0.9).check(
            SCORE, SEX, group_probabilities=whole(SOFT)
        ),
        "does not support `min_ratio`",
    ),
    "each and strata": (
        lambda: fairramp.audit(SCORE, whole(EACH), strata=RACE, combine="each"),
        "`combine='each'` does not support `strata`",
    ),
    "compare": (
        lambda: EACH.report(SCORE, whole(EACH), compare=fairramp.fit_rule(SCORE, whole(EACH))),
        "`compare` does not support rules by group probabilities or by each attribute",
    ),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_needs_one_group_per_person_refuses_by_name(name):
    call, told = UNSUPPORTED[name]
    if name == "compare":
        pytest.importorskip("altair", reason="altair is not installed")
    with pytest.raises(UnsupportedError, match=re.escape(told)):
        call()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: fairramp.audit(SCORE, SEX, rule=SOFT), "pass them as `group_probabilities`"),
        (lambda: fairramp.audit(SCORE, SEX, group_probabilities=whole(SOFT)), "pass `rule`, or remove them"),
        (
            lambda: fairramp.audit(SCORE, whole(SOFT), rule=SOFT, group_probabilities=whole(SOFT)),
            "pass the true groups",
        ),
        (
            lambda: fairramp.audit(SCORE, columns(slice(None)), rule=EACH, combine="intersections"),
            "`combine` is 'each' in the rule but 'intersections' in the call",
        ),
        (lambda: fairramp.audit(SCORE, SEX, combine="all"), "`combine` must be"),
        (lambda: EACH.check(SCORE, whole(EACH), group_probabilities=whole(SOFT)), "no `group_probabilities`"),
        (lambda: SOFT.check(SCORE, SEX), "pass them as `group_probabilities`"),
        (lambda: SOFT.explain(0.4, "F"), "`group` must be the person's probability for each group"),
        (lambda: SOFT.explain(0.4, {"F": 0.7, "M": 0.2}), "`group` must sum to 1"),
        (lambda: EACH.explain(0.4, "F"), "`group` must have a value of each of sex, race"),
    ],
)
def test_wrong_arguments_are_named(call, told):
    with pytest.raises(InputError, match=re.escape(told)):
        call()


# Answers and descriptions -----------------------------------------------------------------------


@pytest.mark.parametrize("score", [0.0, 0.35, 0.452, 0.48, 0.5, 0.52, 0.9])
@pytest.mark.parametrize("q", [0.0, 0.31, 1.0])
def test_answer_to_a_person_with_group_probabilities_is_that_of_the_rule(score, q):
    found = SOFT.explain(score, {"F": q, "M": 1 - q})
    (expected,) = SOFT.probabilities([score], fairramp.GroupProbabilities({"F": [q], "M": [1 - q]}))
    assert found.probability == expected
    assert found.group == {"F": q, "M": 1 - q}
    assert "With group probabilities " in found.why
    numbers = [float(text) for text in re.findall(r"(?:at or (?:above|below)|between|and) (0\.\d+)", found.why)]
    assert all(score >= n for n in numbers[:1]) if found.answer == "yes" else True
    assert all(score <= n for n in numbers[:1]) if found.answer == "no" else True
    assert json.loads(json.dumps(found.to_dict()))["probability"] == expected


@pytest.mark.parametrize("score", [0.0, 0.45, 0.48, 0.5, 0.52, 0.9])
def test_answer_by_each_attribute_adds_the_shifts(score):
    for sex in "FM":
        for race in "abc":
            found = EACH.explain(score, (sex, race))
            (expected,) = EACH.probabilities([score], {"sex": [sex], "race": [race]})
            assert found.probability == expected
            start, *shifts = re.search(r"threshold is (.*?), ", found.why)[1].split(" (")[0].split(" ")
            assert float(start) == pytest.approx(EACH.threshold_of(EACH.base), abs=5e-5)
            sign = {"−": -1, "+": 1}[shifts[0]]
            shift = EACH.thresholds[EACH.groups.index(("sex", sex))] - EACH.threshold_of(EACH.base)
            assert sign * float(shifts[1]) == pytest.approx(shift, abs=5e-5)
            assert f"(sex {sex})" in found.why
            assert f"(race {race})" in found.why


@pytest.mark.parametrize("rule", [SOFT, EACH], ids=["soft", "each"])
def test_descriptions_and_charts_say_how_thresholds_are_mixed(rule):
    told = {"probabilities": "weighted by the person's group probabilities", "each": "plus the shifts"}
    assert told[rule.membership] in dict(facts(rule))["mixing"]
    assert dict(facts(rule))["fitted"].startswith("to 3,000 rows, ")
    found = description(rule, certificate_of(rule, 0.95))
    assert (found["membership"], found["rows"], found["certificate"]) == (rule.membership, 3000, None)
    assert "fresh rows" in found["why_no_certificate"]
    json.dumps(found)
    pytest.importorskip("altair", reason="altair is not installed")
    assert told[rule.membership] in html.unescape(rule._repr_html_())
    drawn = json.dumps(rule.plot().to_dict())
    whose = {"probabilities": "those who surely belong to the group", "each": "other attributes shift it by 0"}
    assert whose[rule.membership] in drawn
    assert "gap on the fresh rows" in json.dumps(fresh(rule).plot().to_dict())


# Reports ----------------------------------------------------------------------------------------


def reported(rule, rows, **more):
    if rule.membership == "probabilities":
        return rule.report(SCORE[rows], SEX[rows], LABEL[rows], group_probabilities=probabilities(rows), **more)
    return rule.report(SCORE[rows], columns(rows), LABEL[rows], **more)


@pytest.fixture(params=[SOFT, EACH], ids=["soft", "each"])
def mixing(request):
    pytest.importorskip("altair", reason="altair is not installed")
    return request.param


@pytest.mark.parametrize("weighted", [False, True])
def test_report_has_the_numbers_of_the_audit(mixing, weighted):
    more = {"sample_weight": WEIGHT[NEW]} if weighted else {}
    content = reported(mixing, NEW, **more).content
    if mixing is SOFT:
        more["group_probabilities"] = probabilities(NEW)
    groups = SEX[NEW] if mixing is SOFT else columns(NEW)
    found = fairramp.audit(SCORE[NEW], groups, LABEL[NEW], rule=mixing, **more)
    own = content.chosen
    for ours, audited in ((content.before, found.before), (own.after, found.after)):
        for name in ("rate", "lower", "upper", "gap", "ratio", "true_positive_rate", "accuracy"):
            assert getattr(ours, name) == pytest.approx(getattr(audited, name), abs=1e-9), name
        assert ours.rows == audited.rows
        assert ours.overall_accuracy == pytest.approx(audited.overall_accuracy, abs=1e-9)
        assert ours.gap_interval == pytest.approx(audited.gap_interval, abs=1e-9)
    assert own.changed_to_yes == pytest.approx(found.changed_to_yes, abs=1e-9)
    assert own.drawn == pytest.approx(found.randomized, abs=1e-9)
    assert content.rows == 3000
    h = soft_chances() if mixing is SOFT else each_chances()
    assert own.people.selected == pytest.approx(h.sum())
    assert own.people.wrong == pytest.approx(np.abs(LABEL[NEW] - h).sum())
    expected = [np.maximum(h - (SCORE[NEW] >= 0.5), 0)[SEX[NEW] == k].sum() for k in "FM"]
    assert own.people.to_yes[:2] == pytest.approx(expected, abs=1e-6)


def test_report_on_new_rows_has_the_limits_of_fresh_rows(mixing):
    content, found = reported(mixing, NEW).content, fresh(mixing)
    assert content.in_sample is False
    assert (content.chosen.guarantee.estimated, content.chosen.guarantee.proven) == (
        found.estimated,
        found.proven,
    )
    within = found.estimated <= mixing.max_gap
    assert (content.chosen.judgment.people is Verdict.WITHIN) == within
    assert content.chosen.judgment.rows is (
        Verdict.WITHIN if content.chosen.after.gap <= mixing.max_gap else Verdict.EXCEEDED
    )


def test_report_on_the_fit_rows_is_undecided_for_new_people_and_says_why(mixing):
    content = reported(mixing, FIT).content
    assert content.in_sample is True
    assert content.chosen.judgment.people is Verdict.UNDECIDED
    assert content.chosen.guarantee.estimated is None
    assert "each of its thresholds depends on all of them at once" in content.chosen.judgment.on_people


def test_report_of_a_soft_rule_tells_of_a_poor_group_model():
    pytest.importorskip("altair", reason="altair is not installed")
    report = SOFT.report(SCORE[NEW], SEX[NEW], group_probabilities=probabilities(NEW, 1 - Q))
    assert any(note.startswith("Group probabilities are poor: ") for note in report.content.notes)
    assert report.content.answers == ()


def test_report_by_each_attribute_tells_the_gap_between_intersections():
    pytest.importorskip("altair", reason="altair is not installed")
    content = reported(EACH, NEW).content
    found = fairramp.audit(SCORE[NEW], columns(NEW), LABEL[NEW], rule=EACH).intersections
    assert found.as_intersections() in content.notes
    assert [form.group for form in content.answers] == [f"{s} / {r}" for s in "FM" for r in "abc"]
    base = EACH.threshold_of(EACH.base)
    assert content.chosen.shifts == pytest.approx([threshold - base for threshold in EACH.thresholds])


def test_page_of_a_mixing_rule_has_no_slider_but_the_approval(mixing):
    report = reported(mixing, NEW)
    page = report.html
    assert len(report.content.outcomes) == 1
    for absent in ('id="limit"', 'id="back"', 'id="chart-frontier"', "whatever the slider shows"):
        assert absent not in page
    for present in ('id="approval"', 'id="chart-selection"', 'id="chart-scores"', "How thresholds are mixed"):
        assert present in page
    assert ('id="answer-group"' in page) == (mixing is EACH)
    assert ("shift of the threshold" in page) == (mixing is EACH)
    assert json.loads(report.to_json())["settings"]["membership"] == mixing.membership
    assert report.html == reported(mixing, NEW).html


def test_page_of_a_rule_that_keeps_the_classifiers_decisions_is_drawn(mixing):
    more = {} if mixing is SOFT else {"combine": "each"}
    groups = probabilities(FIT) if mixing is SOFT else columns(FIT)
    rule = fairramp.fit_rule(SCORE[FIT], groups, max_gap=0.9, **more)
    content = reported(rule, NEW).content
    assert content.chosen.stands
    assert reported(rule, NEW).html


def test_page_of_a_ratio_rule_judges_the_ratio(mixing):
    more = {} if mixing is SOFT else {"combine": "each"}
    groups = probabilities(FIT) if mixing is SOFT else columns(FIT)
    rule = fairramp.fit_rule(SCORE[FIT], groups, min_ratio=0.7, **more)
    content = reported(rule, NEW).content
    expected = Verdict.WITHIN if content.chosen.after.ratio >= 0.7 else Verdict.EXCEEDED
    assert content.chosen.judgment.rows is expected
    assert "the minimum ratio of 0.70 on these rows" in content.chosen.judgment.headline
    assert "fairramp limits the gap for new people, not the ratio" in content.chosen.judgment.on_people
    assert reported(rule, NEW).html


# Rows without a true group ------------------------------------------------------------------------


@pytest.mark.parametrize("blank", [None, ""])
def test_rows_without_a_true_group_are_left_out_and_counted(blank):
    truth, unknown = SEX[NEW].astype(object), np.arange(3000) % 3 == 0
    truth[unknown] = blank
    known = {"groups": SEX[NEW][~unknown], "group_probabilities": probabilities(NEW).take(~unknown)}
    partial = {"groups": truth, "group_probabilities": probabilities(NEW)}
    for measure in (
        lambda scores, **rows: fairramp.audit(scores, rule=SOFT, **rows).to_dict(),
        lambda scores, **rows: SOFT.check(scores, **rows).gap,
        lambda scores, **rows: SOFT.certificate(scores=scores, **rows).estimated,
    ):
        with pytest.warns(FairrampWarning, match="1,000 rows without a true group are left out"):
            found = measure(SCORE[NEW], **partial)
        assert found == measure(SCORE[NEW][~unknown], **known)
    with pytest.raises(InputError, match="has no true group in any row"):
        SOFT.check(SCORE[NEW], np.full(3000, blank, dtype=object), group_probabilities=probabilities(NEW))


def test_a_check_by_attribute_states_the_largest_gap_of_the_audit():
    check = EACH.check(SCORE[NEW], columns(NEW))
    audit = fairramp.audit(SCORE[NEW], columns(NEW), rule=EACH)
    assert check.gap == pytest.approx(audit.gap, abs=SUMS)


def test_a_check_warns_of_poor_probabilities():
    rng = np.random.default_rng(1)
    noise = fairramp.GroupProbabilities({"F": (q := rng.random(3000)), "M": 1 - q})
    with pytest.warns(FairrampWarning, match=r"poor: calibration error above 0\.05"):
        SOFT.check(SCORE[NEW], SEX[NEW], group_probabilities=noise)
