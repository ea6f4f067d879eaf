"""Audits: every number is compared with scikit-learn, a count by hand, or many draws."""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from sklearn.metrics import accuracy_score, confusion_matrix, precision_score, recall_score

import fairramp
from fairramp import InputError, Ramp, Rule, UnseenGroupError, audit, fit_rule
from fairramp.measure.gate import Gates
from samples import quiet_fit, sample

N = 900
SCORES, CODES = sample(N, n_groups=3)
GROUPS = np.array(["A", "B", "C"])[CODES]
RNG = np.random.default_rng(1)
LABELS = (RNG.random(N) < SCORES**1.5).astype(int)
WEIGHTS = RNG.lognormal(size=N)
RULE = fit_rule(SCORES, GROUPS, max_gap=0.02, ramp_width=0.2)


def assert_same(found, expected, **kwargs):
    np.testing.assert_allclose(np.array(found, dtype=float), np.array(expected, dtype=float), **kwargs)


# Against scikit-learn -----------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unit weights", "weights"])
@pytest.mark.parametrize("cutoff", [0.5, 0.3])
def test_rates_and_errors_of_hard_decisions_match_scikit_learn(weights, cutoff):
    found = audit(SCORES, GROUPS, LABELS, sample_weight=weights, cutoff=cutoff).before
    decisions = (cutoff <= SCORES).astype(int)
    expected = {name: [] for name in ("rate", "accuracy", "tpr", "fpr", "precision")}
    for group in "ABC":
        of = group == GROUPS
        w = None if weights is None else weights[of]
        y, d = LABELS[of], decisions[of]
        tn, fp, _, _ = confusion_matrix(y, d, sample_weight=w).ravel()
        expected["rate"].append(np.average(d, weights=w))
        expected["accuracy"].append(accuracy_score(y, d, sample_weight=w))
        expected["tpr"].append(recall_score(y, d, sample_weight=w))
        expected["fpr"].append(fp / (fp + tn))
        expected["precision"].append(precision_score(y, d, sample_weight=w))
    assert_same(found.rate, expected["rate"])
    assert_same(found.accuracy, expected["accuracy"])
    assert_same(found.true_positive_rate, expected["tpr"])
    assert_same(found.false_positive_rate, expected["fpr"])
    assert_same(found.precision, expected["precision"])
    assert found.overall_accuracy == pytest.approx(accuracy_score(LABELS, decisions, sample_weight=weights))
    assert found.gap == pytest.approx(max(expected["rate"]) - min(expected["rate"]))
    assert found.ratio == pytest.approx(min(expected["rate"]) / max(expected["rate"]))


def test_decisions_can_be_passed_as_scores():
    decisions = (SCORES >= 0.5).astype(int)
    for column in (decisions, decisions > 0, decisions.astype(np.float32)):
        assert audit(column, GROUPS).before == audit(SCORES, GROUPS).before
    by_scores, by_decisions = audit(SCORES, GROUPS, LABELS), audit(decisions, GROUPS, LABELS)
    assert by_decisions.before == by_scores.before


def test_fairlearn_agrees():
    metrics = pytest.importorskip("fairlearn.metrics")
    decisions = (SCORES >= 0.5).astype(int)
    options = {"sensitive_features": GROUPS, "sample_weight": WEIGHTS}
    found = audit(SCORES, GROUPS, sample_weight=WEIGHTS)
    assert found.gap == pytest.approx(metrics.demographic_parity_difference(LABELS, decisions, **options))
    assert found.ratio == pytest.approx(metrics.demographic_parity_ratio(LABELS, decisions, **options))


# With a rule --------------------------------------------------------------------------------------


def test_expected_rates_match_the_average_of_many_draws():
    found = audit(SCORES, GROUPS, LABELS, rule=RULE)
    n_draws = 2_000
    h = RULE.probabilities(SCORES, GROUPS)
    draws = np.random.default_rng(0).random((n_draws, N)) < h
    right = draws == (LABELS == 1)
    for i, group in enumerate("ABC"):
        of = group == GROUPS
        yes = of & (LABELS == 1)
        # Five standard errors of a mean of that many draws.
        close = {"abs": 5 * 0.5 / np.sqrt(n_draws * min(yes.sum(), (of & ~yes).sum()))}
        assert found.after.rate[i] == pytest.approx(draws[:, of].mean(), **close)
        assert found.after.accuracy[i] == pytest.approx(right[:, of].mean(), **close)
        assert found.after.true_positive_rate[i] == pytest.approx(draws[:, yes].mean(), **close)
        assert found.after.false_positive_rate[i] == pytest.approx(draws[:, of & ~yes].mean(), **close)
        own = SCORES >= 0.5
        assert found.changed_to_yes[i] == pytest.approx((draws & ~own)[:, of].mean(), **close)
        assert found.changed_to_no[i] == pytest.approx((~draws & own)[:, of].mean(), **close)
    assert found.after.overall_accuracy == pytest.approx(right.mean(), abs=5 * 0.5 / np.sqrt(n_draws * N))


#: Chances 0, 0.5, 1 in A (own decisions no, no, yes) and 0.25, 1, 1 in B (own decisions no, yes, yes).
TINY_RULE = Rule(("A", "B"), (Ramp.centered(0.45, 0.2), Ramp.centered(0.3, 0.2)))
TINY = np.array([0.3, 0.45, 0.9, 0.25, 0.5, 0.8])
TINY_GROUPS = ["A", "A", "A", "B", "B", "B"]
TINY_LABELS = [0, 1, 1, 1, 0, 1]


def test_a_tiny_example_by_hand():
    found = audit(TINY, TINY_GROUPS, TINY_LABELS, rule=TINY_RULE)
    assert found.groups == ("A", "B")
    assert found.rows == (3, 3)
    assert_same(found.before.rate, [1 / 3, 2 / 3])
    assert_same(found.after.rate, [1.5 / 3, 2.25 / 3])
    assert_same(found.changed_to_yes, [0.5 / 3, 0.25 / 3])
    assert_same(found.changed_to_no, [0, 0], atol=1e-12)
    assert found.randomized == pytest.approx(2 / 6)
    assert_same(found.after.accuracy, [2.5 / 3, 1.25 / 3])
    assert_same(found.after.true_positive_rate, [1.5 / 2, 1.25 / 2])
    assert_same(found.after.false_positive_rate, [0, 1], atol=1e-12)
    assert_same(found.after.precision, [1, 1.25 / 2.25])
    assert found.after.overall_accuracy == pytest.approx(3.75 / 6)
    assert found.before.gap == pytest.approx(1 / 3)
    assert found.gap == pytest.approx(0.25)
    assert found.ratio == pytest.approx(1.5 / 2.25)


def test_changes_to_no_and_to_yes_are_counted_separately():
    strict = Rule(("A", "B"), (Ramp.centered(0.85, 0.2), Ramp.centered(0.1, 0.2)))
    found = audit(TINY, TINY_GROUPS, rule=strict)
    # A: 0.9 falls from 1 to 0.75. B: 0.25 rises from 0 to 1.
    assert_same(found.changed_to_no, [0.25 / 3, 0], atol=1e-12)
    assert_same(found.changed_to_yes, [0, 1 / 3], atol=1e-12)


def test_rates_and_gap_on_the_fit_rows_match_the_record():
    for options in ({}, {"sample_weight": WEIGHTS}):
        rule = fit_rule(SCORES, GROUPS, max_gap=0.03, **options)
        found = audit(SCORES, GROUPS, rule=rule, **options)
        assert_same(found.after.rate, rule.record.rates["selection"].after, atol=1e-9)
        assert_same(found.before.rate, rule.record.rates["selection"].before, atol=1e-9)
        assert found.gap == pytest.approx(0.03, abs=1e-9)
        assert found.before == audit(SCORES, GROUPS, **options).before


def test_randomized_is_the_weight_share_strictly_inside_the_ramp():
    h = RULE.probabilities(SCORES, GROUPS)
    inside = (h > 0) & (h < 1)
    assert 0 < inside.mean() < 1
    assert audit(SCORES, GROUPS, rule=RULE).randomized == pytest.approx(inside.mean())
    found = audit(SCORES, GROUPS, rule=RULE, sample_weight=WEIGHTS)
    assert found.randomized == pytest.approx(np.average(inside, weights=WEIGHTS))


def test_fields_that_need_a_rule_or_labels_are_none_without_them():
    found = audit(SCORES, GROUPS)
    assert (found.after, found.changed_to_yes, found.changed_to_no, found.randomized) == (None,) * 4
    assert (found.calibration_error, found.before.accuracy, found.before.overall_accuracy) == (None,) * 3
    assert found.selection is found.before
    assert audit(SCORES, GROUPS, rule=RULE).selection == audit(SCORES, GROUPS, rule=RULE).after


# Calibration --------------------------------------------------------------------------------------


def drawn_labels(probabilities, seed):
    return (np.random.default_rng(seed).random(len(probabilities)) < probabilities).astype(float)


@pytest.mark.parametrize(("rows", "replicates", "most"), [(50, 300, 0.04), (500, 60, 0.012), (20_000, 6, 0.003)])
def test_calibrated_scores_have_small_calibration_error_at_any_size(rows, replicates, most):
    # One group per replicate. The mean of max(0, noise) is 0.4 of the noise's sd, at most √(¼ / rows).
    x = np.random.default_rng(1).uniform(0, 1, rows * replicates)
    groups = np.arange(len(x)) % replicates
    found = np.array(audit(x, groups, drawn_labels(x, 2)).calibration_error)
    assert found.mean() < most
    assert np.mean(found == 0) > 0.15  # half of them in expectation


@pytest.mark.parametrize(
    ("true", "rows", "slack"),
    [
        (lambda x: np.clip(x + 0.1, 0, 1), 20_000, 0.012),
        (lambda x: np.clip(x - 0.3, 0, 1), 1_000, 0.04),
        (lambda x: x**2, 20_000, 0.012),
        (lambda x: 0.5 + 0.5 * (x - 0.5), 30_000, 0.012),  # too sure of itself; two folds
    ],
)
def test_calibration_error_is_the_mean_distance_from_the_true_rate(true, rows, slack):
    x = np.random.default_rng(3).uniform(0, 1, rows)
    found = audit(x, np.zeros(rows), drawn_labels(true(x), 4)).calibration_error
    assert found[0] == pytest.approx(np.abs(true(x) - x).mean(), abs=slack)


@pytest.mark.filterwarnings("ignore:Scores are lower")
def test_calibration_error_of_equal_scores_by_hand():
    # A: 0.2 with 3 of 4 positive, 0.55 away in every fold. B: 0.9 with 1 of 4 positive, 0.65 away.
    scores, groups = np.repeat([0.2, 0.9], 40), np.repeat(["A", "B"], 40)
    labels = np.concatenate([np.tile([1, 1, 1, 0], 10), np.tile([1, 0, 0, 0], 10)])
    expected = [0.55, 0.65]
    assert_same(audit(scores, groups, labels).calibration_error, expected)
    # The same scores on another scale.
    assert_same(audit(2 * scores - 1, groups, labels, scale="signed").calibration_error, expected)
    assert_same(audit(logit(scores), groups, labels, scale="logit").calibration_error, expected)
    # Positives of A have triple weight, so they are 0.9 of the weight.
    weights = np.where((groups == "A") & (labels == 1), 3.0, 1.0)
    assert_same(audit(scores, groups, labels, sample_weight=weights).calibration_error, [0.7, 0.65])
    # A single row cannot be calibrated by other rows.
    assert audit([0.2], ["A"], [1]).calibration_error == (0.0,)


def test_calibration_error_does_not_depend_on_group_order():
    by_group = np.argsort(GROUPS, kind="stable")
    plain = audit(SCORES, GROUPS, LABELS).calibration_error
    assert audit(SCORES[by_group], GROUPS[by_group], LABELS[by_group]).calibration_error == plain
    renamed = np.array(["C", "B", "A"])[np.searchsorted(["A", "B", "C"], GROUPS)]
    assert audit(SCORES, renamed, LABELS).calibration_error == plain[::-1]


# Weights ------------------------------------------------------------------------------------------


def test_integer_weights_equal_repeated_rows():
    weights = np.random.default_rng(2).integers(1, 4, N)
    weighted = audit(SCORES, GROUPS, LABELS, rule=RULE, sample_weight=weights)
    repeated = audit(*(np.repeat(c, weights) for c in (SCORES, GROUPS, LABELS)), rule=RULE)
    for a, b in ((weighted.before, repeated.before), (weighted.after, repeated.after)):
        for name in (
            "rate",
            "gap",
            "ratio",
            "accuracy",
            "true_positive_rate",
            "false_positive_rate",
            "precision",
        ):
            assert_same(getattr(a, name), getattr(b, name), err_msg=name)
        assert a.overall_accuracy == pytest.approx(b.overall_accuracy)
        # Repeated rows look like more evidence than weights are.
        assert np.all(np.subtract(a.upper, a.lower) > np.subtract(b.upper, b.lower))
    assert_same(weighted.changed_to_yes, repeated.changed_to_yes)
    assert weighted.randomized == pytest.approx(repeated.randomized)


def test_rows_with_zero_weight_are_ignored():
    keep = np.random.default_rng(3).random(N) < 0.6
    # A group without any weight is not in the audit.
    keep &= GROUPS != "B"
    found = audit(SCORES, GROUPS, LABELS, rule=RULE, sample_weight=keep.astype(float))
    expected = audit(SCORES[keep], GROUPS[keep], LABELS[keep], rule=RULE)
    assert found.groups == expected.groups == ("A", "C")
    assert found.rows == expected.rows
    assert found.to_dict() == expected.to_dict() | {"weighted": True}


def test_weights_scale_out():
    plain, scaled = audit(SCORES, GROUPS, LABELS), audit(SCORES, GROUPS, LABELS, sample_weight=np.full(N, 7.0))
    for name in ("rate", "lower", "upper", "gap", "gap_interval", "ratio", "ratio_interval", "accuracy"):
        assert_same(getattr(plain.before, name), getattr(scaled.before, name), err_msg=name)


# Intervals ----------------------------------------------------------------------------------------


def test_intervals_contain_their_estimates_and_widen_with_confidence():
    previous = None
    for confidence in (0.5, 0.8, 0.95, 0.999):
        found = audit(SCORES, GROUPS, rule=RULE, confidence=confidence)
        assert found.confidence == confidence
        for s in (found.before, found.after):
            assert np.all((np.array(s.lower) >= 0) & (np.array(s.lower) <= s.rate))
            assert np.all((np.array(s.rate) <= s.upper) & (np.array(s.upper) <= 1))
            assert 0 <= s.gap_interval[0] <= s.gap <= s.gap_interval[1] <= 1
            assert 0 <= s.ratio_interval[0] <= s.ratio <= s.ratio_interval[1] <= 1
        widths = np.subtract(found.after.upper, found.after.lower)
        assert previous is None or np.all(widths > previous)
        previous = widths


def test_intervals_of_hard_decisions_are_wilson_intervals():
    from scipy.stats import binomtest

    found = audit(SCORES, GROUPS, confidence=0.9).before
    for i, group in enumerate("ABC"):
        own = SCORES[group == GROUPS] >= 0.5
        low, high = binomtest(int(own.sum()), len(own)).proportion_ci(0.9, method="wilson")
        assert (found.lower[i], found.upper[i]) == pytest.approx((low, high))


def wilson_rows(rate, low, high):
    """Rows that a Wilson interval at 95% with these limits belongs to: n = z² u (1 − u) / (r − u)²."""
    u = low if low > 0 else high
    return 1.959963984540054**2 * u * (1 - u) / (rate - u) ** 2


def test_effective_rows_are_the_smaller_of_variance_and_weight_counts():
    def worth(decisions, weights):
        s = audit(decisions, ["A"] * len(decisions), sample_weight=weights).before
        return wilson_rows(s.rate[0], s.lower[0], s.upper[0])

    # Only the heavy row is selected, r = ¾: ¾·¼·12² / (81·¹⁄₁₆ + 3·⁹⁄₁₆) = 4 by variance, 12² / 84 by weight.
    assert worth([1, 0, 0, 0], [9, 1, 1, 1]) == pytest.approx(144 / 84)
    # All but the heavy row, r = ¾: ¾·¼·12² / (9·⁹⁄₁₆ + 9·¹⁄₁₆) = 4.8 by variance, 12² / 18 by weight.
    assert worth([0] + [1] * 9, [3] + [1] * 9) == pytest.approx(4.8)
    # Nobody or everybody selected: only the weights matter.
    for decision in (0, 1):
        assert worth([decision] * 4, [3, 3, 3, 1]) == pytest.approx(100 / 28)
    # Equal weights count as rows.
    assert worth([1, 0, 0, 0], [7] * 4) == pytest.approx(4)


# Scales, cutoffs, groups -------------------------------------------------------------------------


def test_audit_is_the_same_on_every_scale():
    plain = audit(SCORES, GROUPS, LABELS, cutoff=0.4)
    signed = audit(2 * SCORES - 1, GROUPS, LABELS, scale="signed", cutoff=-0.2)
    logits = audit(logit(SCORES), GROUPS, LABELS, scale="logit", cutoff=logit(0.4))
    for other in (signed, logits):
        assert other.before == plain.before
        assert_same(other.calibration_error, plain.calibration_error)


@pytest.mark.parametrize(("scale", "cutoff"), [("probability", 0.5), ("signed", 0.0), ("logit", 0.0)])
def test_a_score_at_the_cutoff_is_selected_on_every_scale(scale, cutoff):
    found = audit([cutoff, cutoff - 0.1], ["A", "B"], scale=scale)
    assert found.before.rate == (1.0, 0.0)
    moved = audit([cutoff + 0.2, cutoff + 0.1], ["A", "B"], scale=scale, cutoff=cutoff + 0.2)
    assert moved.before.rate == (1.0, 0.0)


def test_the_rules_own_scale_and_cutoff_are_used():
    rule = fit_rule(2 * SCORES - 1, GROUPS, scale="signed", cutoff=-0.2)
    found = audit(2 * SCORES - 1, GROUPS, rule=rule)
    assert found.before == audit(SCORES, GROUPS, cutoff=0.4).before
    assert audit(2 * SCORES - 1, GROUPS, rule=rule, scale="signed", cutoff=-0.2) == found


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"scale": "signed"}, "`scale` is 'probability' in the rule but 'signed' in the call; leave it out."),
        ({"cutoff": 0.3}, "`cutoff` is 0.5 in the rule but 0.3 in the call; leave it out."),
    ],
)
def test_a_scale_or_cutoff_unlike_the_rules_raises(options, sentence):
    with pytest.raises(InputError) as caught:
        audit(SCORES, GROUPS, rule=RULE, **options)
    assert str(caught.value) == sentence


def test_error_rates_without_labels_raise():
    with pytest.raises(InputError) as caught:
        audit(SCORES, GROUPS).errors()
    assert str(caught.value) == "Error rates need `labels`, the true outcomes of the rows."


@pytest.mark.parametrize(
    ("change", "start"),
    [
        ({"labels": LABELS + 1}, "`labels` must be 0 or 1"),
        ({"labels": LABELS[1:]}, "`labels` has 899 rows but `scores` has 900"),
        ({"groups": GROUPS[1:]}, "`groups` has 899 rows but `scores` has 900"),
        ({"scores": SCORES + 1}, "`scores` must"),
        ({"scores": np.where(SCORES > 0.9, np.nan, SCORES)}, "`scores` must"),
        ({"scores": []}, "`scores` is empty"),
        ({"sample_weight": -WEIGHTS}, "`sample_weight` must be finite and not negative"),
        ({"confidence": 95}, "`confidence` must be between 0.5 and"),
        (
            {"scale": "odds"},
            "`scale` must be one of 'probability', 'percent', 'signed', 'logit', 'real', got 'odds'.",
        ),
        (
            {"cutoff": 2},
            "`cutoff` must be between 0 and 1, got 2; for scores from 0 to 100, pass `scale='percent'`.",
        ),
    ],
)
def test_error_names_the_bad_argument(change, start):
    with pytest.raises(InputError) as caught:
        audit(**({"scores": SCORES, "groups": GROUPS} | change))
    assert re.sub(r"^Row.*?: ", "", str(caught.value)).startswith(start)


def test_several_columns_make_intersections():
    sex = np.where(RNG.random(N) < 0.5, "f", "m")
    found = audit(SCORES, {"group": GROUPS, "sex": sex}, LABELS)
    assert found.groups == tuple((g, s) for g in "ABC" for s in "fm")
    for i, (g, s) in enumerate(found.groups):
        of = (g == GROUPS) & (s == sex)
        assert found.rows[i] == of.sum()
        assert found.before.rate[i] == pytest.approx((SCORES[of] >= 0.5).mean())
    frame = pd.DataFrame({"sex": sex, "group": GROUPS})
    rule = fit_rule(SCORES, frame[["group", "sex"]])
    # Columns are matched by name, in any order.
    assert audit(SCORES, frame, rule=rule).after == audit(SCORES, frame[["group", "sex"]], rule=rule).after


@pytest.mark.parametrize("policy", ["error", "pooled", "original"])
def test_unseen_groups_follow_the_rules_policy(policy):
    rule = fit_rule(SCORES, GROUPS, unseen_group=policy)
    new = np.where(GROUPS == "C", "new", GROUPS)
    if policy == "error":
        with pytest.raises(UnseenGroupError, match="'new'"):
            audit(SCORES, new, rule=rule)
        return
    found = audit(SCORES, new, rule=rule)
    assert found.groups == ("A", "B", "new")
    expected = rule.probabilities(SCORES[new == "new"], new[new == "new"]).mean()
    assert found.after.rate[2] == pytest.approx(expected)
    if policy == "original":
        assert found.after.rate[2] == found.before.rate[2]
        assert found.changed_to_yes[2] == found.changed_to_no[2] == 0


def test_one_group_has_gap_0_and_ratio_1():
    found = audit(SCORES, np.full(N, "A"))
    assert (found.gap, found.before.gap_interval) == (0.0, (0.0, 0.0))
    assert (found.ratio, found.before.ratio_interval) == (1.0, (1.0, 1.0))


def test_with_nobody_selected_ratio_and_precision_are_undefined():
    found = audit(SCORES / 4, GROUPS, LABELS)
    assert found.before.rate == (0.0, 0.0, 0.0)
    assert (found.gap, found.before.ratio_interval) == (0.0, (0.0, 1.0))
    assert np.isnan(found.ratio)
    assert found.to_dict()["before"]["ratio"] is None
    assert np.isnan(found.before.precision).all()
    assert found.before.lower == (0.0, 0.0, 0.0)
    assert min(found.before.upper) > 0


def test_a_group_without_positives_has_no_true_positive_rate():
    found = audit(SCORES, GROUPS, np.where(GROUPS == "B", 0, LABELS))
    assert np.isnan(found.before.true_positive_rate).tolist() == [False, True, False]
    assert not np.isnan(found.before.false_positive_rate).any()


# Gates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("found", [audit(SCORES, GROUPS), audit(SCORES, GROUPS, rule=RULE)])
def test_a_gate_follows_the_confidence_limits_of_the_gap(found):
    lower, upper = found.selection.gap_interval
    for maximum in (0.0, lower, (lower + upper) / 2, upper, 1.0):
        verdict = "exceeded" if lower > maximum else "within" if upper <= maximum else "undecided"
        above, below = Gates(found, fail_above=maximum), Gates(found, fail_unless_below=maximum)
        both = Gates(found, maximum, maximum)
        assert above.verdicts == below.verdicts == [verdict]
        assert above.exit_code == {"within": 0, "exceeded": 1, "undecided": 0}[verdict]
        assert below.exit_code == {"within": 0, "exceeded": 1, "undecided": 3}[verdict]
        assert both.exit_codes == [above.exit_code, below.exit_code]
        assert both.exit_code == below.exit_code
        assert both.sentences() == above.sentences() + below.sentences()
        word = {"within": "passed", "exceeded": "failed", "undecided": "undecided"}[verdict]
        assert all(sentence.startswith(f"Gate {word}: ") for sentence in both.sentences())
        fields = json.loads(json.dumps(both.to_dict(), allow_nan=False))
        assert (fields["verdict"], fields["failed"]) == (verdict, both.exit_code != 0)
        assert (fields["gap"], fields["gap_interval"]) == (found.gap, [lower, upper])


@pytest.mark.parametrize("limits", [(0.0, 0.0), (np.nan, np.nan), (0.0, np.inf)])
def test_invalid_limits_pass_no_gate(limits):
    found = audit(SCORES, GROUPS)
    found = replace(found, before=replace(found.before, gap_interval=limits))
    for name in ("fail_above", "fail_unless_below"):
        gates = Gates(found, **{name: 1.0})
        assert (gates.verdicts, gates.exit_code) == (["undecided"], 3)
        assert "are not numbers or do not contain it" in gates.sentences()[0]
        json.dumps(gates.to_dict(), allow_nan=False)


def test_gates_reject_invalid_maximums():
    found = audit(SCORES, GROUPS)
    with pytest.raises(InputError, match=r"Pass `fail_above`, .*or `fail_unless_ratio`"):
        Gates(found)
    with pytest.raises(InputError, match="`fail_unless_below` must be between 0 and 1"):
        Gates(found, fail_unless_below=5)
    for name in ("fail_below_ratio", "fail_unless_ratio"):
        for wrong in (0, -0.1, 1.01, np.nan, True, "0.8", None):
            with pytest.raises(InputError, match=f"`{name}` must be a number above 0 and at most 1|Pass `fail"):
                Gates(found, **{name: wrong})
        Gates(found, **{name: 1})
    with pytest.raises(InputError, match=r"got 80; for 80%, pass 0\.8"):
        Gates(found, fail_below_ratio=80)


def test_groups_of_the_rule_without_rows_pass_no_gate():
    rest = GROUPS != "B"
    found = audit(SCORES[rest], GROUPS[rest], rule=RULE)
    assert (found.missing, found.to_dict()["missing"]) == (("B",), ["B"])
    assert "Group B of the rule has no rows and is left out." in found.sentences()
    gates = Gates(found, fail_above=1.0, fail_unless_below=1.0, fail_below_ratio=1e-9)
    assert (set(gates.verdicts), gates.exit_codes) == ({"undecided"}, [0, 3, 0])
    assert set(gates.sentences()) == {"Gate undecided: there are no rows in B."}
    apart = audit(SCORES[rest], GROUPS[rest], rule=fit_rule(SCORES, GROUPS, max_gap=1.0))
    assert Gates(apart, fail_above=0.0).verdicts == ["exceeded"]
    with_labels = audit(SCORES[rest], GROUPS[rest], LABELS[rest], rule=RULE, criterion="equalized_odds")
    assert Gates(with_labels, fail_above=1.0).sentences() == [
        "Gate undecided: there are no rows with label 1 in B and no rows with label 0 in B."
    ]
    assert audit(SCORES[rest], GROUPS[rest]).missing == audit(SCORES, GROUPS, rule=RULE).missing == ()


def test_missing_groups_are_those_that_the_audit_compares():
    sex = np.where(np.arange(N) % 2 == 0, "F", "M")
    rest = GROUPS != "B"
    columns = {"g": GROUPS[rest], "sex": sex[rest]}
    both = fit_rule(SCORES, {"g": GROUPS, "sex": sex})
    assert audit(SCORES[rest], columns, rule=both).missing == (("B", "F"), ("B", "M"))
    assert audit(SCORES[rest], columns, rule=both, combine="each").missing == (("g", "B"),)
    each = fit_rule(SCORES, {"g": GROUPS, "sex": sex}, combine="each")
    found = audit(SCORES[rest], columns, rule=each)
    assert (found.missing, found.intersections.missing) == ((("g", "B"),), ())
    within = fit_rule(SCORES, GROUPS, strata=sex)
    assert audit(SCORES[rest], GROUPS[rest], strata=sex[rest], rule=within).missing == (("F", "B"), ("M", "B"))
    assert audit(SCORES[rest], GROUPS[rest], strata=sex[rest], rule=RULE).missing == ("B",)


# Showing ------------------------------------------------------------------------------------------


def test_to_dict_is_json_serializable():
    sex = np.where(np.arange(N) % 2 == 0, True, False)
    rule = fit_rule(SCORES, [CODES, sex])
    for found in (
        audit(SCORES, GROUPS),
        audit(SCORES, CODES, LABELS),
        audit(SCORES, [CODES, sex], LABELS, rule=rule, sample_weight=WEIGHTS),
    ):
        plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert plain["before"]["gap"] == found.before.gap
        assert plain["rows"] == list(found.rows)
        assert (plain["after"] is None) == (found.after is None)


def test_tables_have_one_row_per_group():
    found = audit(SCORES, GROUPS, LABELS, rule=RULE)
    table, errors = found.table(), found.errors()
    assert table["group"].tolist() == errors["group"].tolist() == ["A", "B", "C"]
    assert tuple(table["n"]) == found.rows
    assert tuple(table["rate"]) == found.after.rate
    assert tuple(table["rate_before"]) == found.before.rate
    assert tuple(table["changed_to_no"]) == found.changed_to_no
    assert tuple(errors["accuracy"]) == found.after.accuracy
    assert tuple(errors["calibration_error"]) == found.calibration_error


def widest_line(found):
    return max(map(len, repr(found).splitlines()))


def test_the_printed_audit_of_two_groups_fits_80_columns():
    data = fairramp.datasets.load_adult_scores()
    rule = fit_rule(data.score, data.sex, max_gap=0.02)
    for options in ({}, {"rule": rule}, {"labels": data.label}, {"labels": data.label, "rule": rule}):
        assert widest_line(audit(data.score, data.sex, **options)) <= 80
    pair = quiet_fit(SCORES[:4], GROUPS[:4])
    assert widest_line(audit(SCORES[:4], GROUPS[:4], rule=pair)) <= 80


@pytest.mark.parametrize("with_labels", [True, False])
@pytest.mark.parametrize("with_rule", [True, False])
def test_printed_audit_gives_no_verdict(with_labels, with_rule):
    # Half the rate of the other group is below four fifths; the audit reports only the number.
    scores = np.array([0.9] * 20 + [0.1] * 80 + [0.9] * 40 + [0.1] * 60)
    groups = np.repeat(["A", "B"], 100)
    labels = (scores > 0.5).astype(int)
    rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.5, 0.1)))
    found = audit(
        scores, groups, labels if with_labels else None, rule=rule if with_rule else None, confidence=0.9
    )
    assert found.ratio == pytest.approx(0.5)
    text = repr(found) + json.dumps(found.to_dict())
    assert not re.search(
        r"(?i)four.?fifths|80 ?%|\b0\.80*\b|\bunfair|\bfair\b|pass|fail|complian|violat|bias", text
    )


@pytest.mark.parametrize("rule", ["rule.json", {"groups": []}, RULE.to_json()], ids=["path", "dict", "text"])
def test_a_rule_of_the_wrong_type_raises(rule):
    with pytest.raises(InputError, match=r"`rule` must be a fairramp\.Rule, got "):
        audit(SCORES, GROUPS, rule=rule)


@pytest.mark.parametrize(
    ("options", "given"), [({}, True), ({"cutoff": 0.0}, False), ({"scale": "percent"}, False)]
)
def test_decisions_are_given_only_if_the_cutoff_leaves_them_alone(options, given):
    assert fairramp.audit([0, 1, 1, 1], ["A", "A", "B", "B"], **options).of_decisions == given


@pytest.mark.parametrize("weighted", [False, True])
def test_costs_are_means_over_the_rows(weighted):
    rng = np.random.default_rng(4)
    scores, groups, labels = rng.random(900), rng.integers(0, 3, 900), rng.integers(0, 2, 900)
    weights = rng.uniform(0.5, 3, 900) if weighted else np.ones(900)
    rule = quiet_fit(scores, groups, labels, target_rate="accuracy", costs=(5, 2), sample_weight=weights)
    for costs in (None, (1, 4)):
        found = quiet_audit(scores, groups, labels, rule=rule, costs=costs, sample_weight=weights)
        a, b = costs or (5, 2)  # those of the rule
        assert found.costs == (a, b)
        for part, h in ((found.before, scores >= 0.5), (found.after, rule.probabilities(scores, groups))):
            paid = h * (labels == 0) * a + (1 - h) * (labels == 1) * b
            assert part.cost == pytest.approx(np.average(paid, weights=weights), abs=1e-12)
            both = [np.average(h[labels == y], weights=weights[labels == y]) for y in (0, 1)]
            assert part.balanced_accuracy == pytest.approx((both[1] + 1 - both[0]) / 2, abs=1e-12)
        assert found.gaps()["cost"].tolist() == [found.before.cost, found.after.cost]
    assert quiet_audit(scores, groups, labels).before.cost is None


def test_costs_need_labels():
    with pytest.raises(InputError, match="`costs` requires `labels`"):
        fairramp.audit([0.2, 0.7], ["a", "b"], costs=(5, 1))


def quiet_audit(*rows, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairramp.FairrampWarning)
        return fairramp.audit(*rows, **options)
