"""Equalized odds, measured: certificates, checks, monitors, audits and gates look at both error rates.

The oracles are formulas by hand, and the same measurement of each error rate alone.
"""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from fairramp import (
    InputError,
    Monitor,
    MonitorFormatError,
    StreamingFit,
    UnsupportedError,
    audit,
    fit_rule,
    frontier,
    rows_needed,
    tune,
)
from fairramp.core.events import FALSE_POSITIVE, ODDS, TRUE_POSITIVE
from fairramp.core.intervals import gap_interval
from fairramp.measure.gate import Gates
from fairramp.measure.verdict import Verdict
from samples import quiet_fit

DELTA = 0.05
RATES = {"true_positive": 1, "false_positive": 0}


def rows(sizes, seed, *, lift=(0.0, 0.0)):
    """Scores, groups and labels; `lift` raises the logits of label 0 and of label 1 in the last group."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    labels = (rng.random(len(groups)) < 0.35 + 0.1 * (groups == 0)).astype(int)
    logits = rng.normal((1.4 + 0.4 * groups) * (labels - 0.5), 1.0)
    logits += np.array(lift)[labels] * (groups == len(sizes) - 1)
    return 1 / (1 + np.exp(-logits)), np.array(list("ABCDEF"))[groups], labels


FIT = rows((4_000, 3_000, 2_500), seed=1)
NEW = rows((3_000, 3_000, 2_000), seed=2)
RULE = fit_rule(*FIT, criterion="equalized_odds", max_gap=0.02)


def means(rule, scores, groups, labels, label):
    """Mean probability of each group's rows with a label, and their number."""
    h = rule.probabilities(scores, groups)
    chosen = [(groups == g) & (labels == label) for g in rule.groups]
    return np.array([h[of].mean() for of in chosen]), np.array([of.sum() for of in chosen])


# Certificates -----------------------------------------------------------------------------------------


def test_the_dkw_bound_is_the_formula_for_both_gaps():
    certificate, n_groups = RULE.certificate(), 3
    found = {}
    for name, label in RATES.items():
        rates, n = means(RULE, *FIT, label)
        x = np.sqrt(math.log(4 * n_groups / DELTA) / (2 * n))
        found[name] = max(
            min(rates[k] + x[k], 1) - max(rates[m] - x[m], 0)
            for k, m in itertools.permutations(range(n_groups), 2)
        )
    limits = {bound.name: bound.limit for bound in certificate.bounds}
    assert limits["dkw"] == pytest.approx(max(found.values()))
    assert set(limits) == {"dkw", "pairs"}
    # The joint bound is smaller, for each of the gaps, and it is a theorem, so nothing is only estimated.
    assert certificate.estimated == certificate.proven == limits["pairs"] == max(certificate.by_event.values())
    assert all(certificate.by_event[name] < found[name] for name in RATES)


def test_limits_of_both_gaps_are_those_of_strata_by_label():
    # The same comparison, as a fit of selection rates within strata would be bounded.
    from fairramp.rule.limits import FitSample, pairs

    sample = FitSample.of(RULE)
    by_label = replace(sample, n_events=1, strata=(0, 0, 0, 1, 1, 1))
    assert pairs(by_label, 0.95) == pairs(sample, 0.95)
    rates, _ = means(RULE, *FIT, 0)
    np.testing.assert_allclose(sample.rates[3:], rates, atol=1e-12)


def test_the_certificate_states_both_limits():
    certificate = RULE.certificate()
    first, second, *_ = certificate.sentences()
    assert first.startswith("Gap between error rates in the population: proven limit ")
    assert second.startswith("Limits that hold together: ")
    assert " for true positive rates and " in second
    assert second.endswith(" for false positive rates.")
    assert json.loads(json.dumps(certificate.to_dict()))["by_event"] == certificate.by_event
    assert certificate.rate == "error rate"


def test_small_groups_are_left_out_of_both_gaps():
    scores, groups, labels = rows((4_000, 4_000, 40), seed=3)
    rule = quiet_fit(scores, groups, labels, criterion="equalized_odds")
    certificate = rule.certificate()
    fewest = min((int((labels[groups == "C"] == y).sum()), y) for y in (0, 1))
    assert certificate.widest_for == ("C", fewest[0])
    assert certificate.counted is (FALSE_POSITIVE, TRUE_POSITIVE)[fewest[1]]
    assert [label for label, _ in certificate.left_out] == ["C"]
    kept = groups != "C"
    alone = quiet_fit(scores[kept], groups[kept], labels[kept], criterion="equalized_odds")
    # Without the gap on the fit rows, which is 0, the limits depend on the numbers of rows only.
    assert certificate.rest.by_event == pytest.approx(alone.certificate().by_event, abs=1e-9)
    found = rule.check(*NEW)
    assert len(found.comparisons) == 4
    assert {len(one.left_out) for one in found.comparisons} == {0, 1}


def test_weights_have_no_proven_limit():
    weights = np.random.default_rng(0).lognormal(size=len(FIT[0]))
    certificate = fit_rule(*FIT, criterion="equalized_odds", sample_weight=weights).certificate()
    assert certificate.proven is None
    assert certificate.estimated == max(certificate.by_event.values())
    assert "The estimated limit is approximate because of the row weights." in certificate.sentences()


def test_strata_have_a_limit_for_each_rate():
    stratum = np.random.default_rng(1).integers(0, 2, len(FIT[0]))
    rule = fit_rule(*FIT, criterion="equalized_odds", strata=stratum)
    certificate = rule.certificate()
    assert certificate.within_strata
    assert certificate.estimated == max(certificate.by_event.values()) < 1
    found = rule.check(*FIT, strata=stratum)
    assert (found.verdict, len(found.rates)) == ("within", 2 * len(rule.groups))
    assert found.gap <= 1e-9


def test_a_fit_keeps_both_gaps_in_the_population():
    two = rows((900, 700), seed=6)
    rule = fit_rule(*two, criterion="equalized_odds", max_gap=0.2, confidence=0.95)
    assert 0 < rule.max_gap < 0.2
    assert 0.19 < max(rule.certificate().by_event.values()) <= 0.2
    assert rule.record.asked.limit == "proven"
    with pytest.raises(InputError, match="rows of each label per group"):
        fit_rule(*two, criterion="equalized_odds", max_gap=0.02, confidence=0.95)


def test_rows_needed_are_enough_for_both_gaps():
    n = rows_needed(0.1, 3, criterion="equalized_odds")
    assert n == rows_needed(0.1, 3, criterion="equalized_odds", limit="proven", rate=0.1)
    assert n > rows_needed(0.1, 3, limit="proven")
    # This many rows of each label: the limit of a fit is just within 10 points.
    for rows_each, holds in ((n, True), (n - 1, False)):
        rng = np.random.default_rng(4)
        labels = np.tile(np.repeat([0, 1], rows_each), 3)
        groups = np.repeat([0, 1, 2], 2 * rows_each)
        rule = quiet_fit(rng.random(len(labels)), groups, labels, criterion="equalized_odds")
        assert (rule.certificate().estimated <= 0.1) == holds
    with pytest.raises(InputError, match="`criterion` must be one of"):
        rows_needed(0.1, 3, criterion="odds")


# Checks -----------------------------------------------------------------------------------------------


def test_a_check_compares_both_rates_at_half_the_error_probability():
    found = RULE.check(*NEW)
    assert [one.event for one in found.comparisons] == [TRUE_POSITIVE, FALSE_POSITIVE]
    limits = RULE.certificate().by_event
    for one, (name, label) in zip(found.comparisons, RATES.items(), strict=True):
        rates, n = means(RULE, *NEW, label)
        assert one.gap == pytest.approx(np.ptp(rates))
        assert one.interval == pytest.approx(gap_interval(rates, n.astype(float), 1 - DELTA / 2))
        assert one.limit == limits[name]
    assert found.false_alarm_rate == pytest.approx(2 * DELTA)
    assert (found.event, found.rate, len(found.rates)) == (ODDS, "error rate", 6)
    table = found.table()
    assert table["error_rate"].tolist() == ["TPR"] * 3 + ["FPR"] * 3
    assert table["group"].tolist() == list("ABC") * 2
    for label, part in ((1, slice(0, 3)), (0, slice(3, 6))):
        rates, n = means(RULE, *NEW, label)
        np.testing.assert_allclose(table["new_rate"][part], rates)
        assert table["n"][part].tolist() == n.tolist()
        np.testing.assert_allclose(table["fit_rate"][part], means(RULE, *FIT, label)[0])


@pytest.mark.parametrize(
    ("lift", "rate"), [((1.5, 0.0), "false positive rate"), ((0.0, 1.5), "true positive rate")]
)
def test_drift_of_either_rate_alone_is_found(lift, rate):
    new = rows((3_000, 3_000, 2_000), seed=5, lift=lift)
    found = RULE.check(*new)
    assert (found.verdict, found.gap_rate) == (Verdict.EXCEEDED, rate)
    assert sorted(one.verdict for one in found.comparisons) == ["exceeded", "within"]
    assert found.pair[0] == "C"
    label = RATES[found.gap_event.name]
    assert found.gap == pytest.approx(np.ptp(means(RULE, *new, label)[0]))
    assert f"of {means(RULE, *new, label)[1][2]:,} rows with label {label}" in found.sentences()[0]
    monitor = RULE.monitor()
    for part in np.array_split(np.random.default_rng(0).permutation(len(new[0])), 5):
        monitor.update(*(column[part] for column in new))
    assert (monitor.has_drifted, monitor.gap_rate, monitor.pair[0]) == (True, rate, "C")
    assert f"the gap between {rate}s is now " in monitor.sentence()


@pytest.mark.parametrize("label", [0, 1])
def test_a_group_without_rows_of_a_label_leaves_a_check_undecided(label):
    scores, groups, labels = NEW
    keep = (groups != "B") | (labels != label)
    assert RULE.check(*NEW).verdict is Verdict.WITHIN
    found = RULE.check(scores[keep], groups[keep], labels[keep])
    assert found.verdict is Verdict.UNDECIDED
    assert (found.missing, [event.label for event in found.missing_events]) == (("B",), [label])
    assert f"Groups without rows with label {label} were not checked: B." in found.sentences()[0]
    assert found.to_dict()["missing"] == ["B"]
    assert RULE.monitor().update(scores[keep], groups[keep], labels[keep]).verdict is Verdict.UNDECIDED


def test_a_check_with_nothing_to_compare_says_so():
    scores, groups, labels = NEW
    keep = ((groups == "A") & (labels == 1)) | ((groups == "B") & (labels == 0))
    found = RULE.check(scores[keep], groups[keep], labels[keep])
    assert found.verdict is Verdict.UNDECIDED
    assert found.sentence() == "No two groups have rows with the same label, so there is no gap."


@pytest.mark.parametrize("measure", [RULE.check, RULE.monitor().update])
def test_labels_are_required(measure):
    with pytest.raises(InputError, match="`labels` are required: the rule makes error rates equal"):
        measure(*NEW[:2])


# Monitors ---------------------------------------------------------------------------------------------


def test_a_monitor_counts_the_rows_of_both_labels(tmp_path):
    monitor = RULE.monitor()
    assert monitor.limit == RULE.certificate().estimated
    parts = np.array_split(np.random.default_rng(3).permutation(len(NEW[0])), 4)
    for part in parts:
        monitor.update(*(column[part] for column in NEW))
    at_once = RULE.monitor().update(*NEW)
    assert monitor.rows == at_once.rows
    assert monitor.evidence == pytest.approx(at_once.evidence)
    for label, part in ((1, slice(0, 3)), (0, slice(3, 6))):
        rates, n = means(RULE, *NEW, label)
        assert monitor.rates[part] == pytest.approx(rates)
        assert monitor.rows[part] == tuple(n)
    assert monitor.table()["error_rate"].tolist() == ["TPR"] * 3 + ["FPR"] * 3
    assert not monitor.has_drifted
    monitor.save(tmp_path / "state.json")
    restored = Monitor.load(tmp_path / "state.json", RULE)
    assert restored.to_dict() == monitor.to_dict()
    one = fit_rule(*FIT, criterion="equal_opportunity")
    with pytest.raises(MonitorFormatError, match="belongs to another rule"):
        Monitor.load(tmp_path / "state.json", one)


# Audits and gates -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [None, RULE], ids=["alone", "rule"])
def test_an_audit_has_the_larger_gap_and_the_smaller_ratio(rule):
    found = audit(*NEW, rule=rule, criterion="equalized_odds")
    each = [audit(*NEW, rule=rule, criterion=c) for c in ("equal_opportunity", "predictive_equality")]
    assert found.gap == max(one.gap for one in each)
    assert found.ratio == min(one.ratio for one in each)
    assert found.selection.rate == each[0].selection.rate + each[1].selection.rate
    low, high = found.selection.gap_interval
    # The upper limit is the larger of the two; the lower one pays for the choice between two gaps.
    assert high == max(one.selection.gap_interval[1] for one in each)
    assert low <= max(one.selection.gap_interval[0] for one in each)
    gaps = found.gaps()
    assert gaps["gap"].tolist()[-2:] == [one.gap for one in each]
    assert found.sentences()[0].startswith("True positive rate")
    assert any(sentence.startswith("False positive rate") for sentence in found.sentences())


def test_a_gate_fails_if_either_gap_is_too_large():
    for lift, rate in (((1.5, 0.0), "false"), ((0.0, 1.5), "true")):
        new = rows((3_000, 3_000, 2_000), seed=5, lift=lift)
        gates = Gates(audit(*new, rule=RULE), fail_above=0.1, fail_below_ratio=0.9)
        assert gates.verdicts == ["exceeded", "exceeded"]
        assert (
            f"the larger gap, between {rate} positive rates, in the decisions after the rule"
            in gates.sentences()[0]
        )
        assert Gates(audit(*NEW, rule=RULE), fail_unless_below=0.1).verdicts == ["within"]


@pytest.mark.parametrize("label", [0, 1])
def test_gates_are_undecided_if_a_group_lacks_a_label(label):
    scores, groups, labels = NEW
    keep = (groups != "B") | (labels != label)
    found = audit(scores[keep], groups[keep], labels[keep], rule=RULE)
    gates = Gates(found, fail_above=0.3, fail_unless_below=0.3)
    assert gates.exit_codes == [0, 3]
    assert set(gates.sentences()) == {f"Gate undecided: there are no rows with label {label} in B."}
    only = (groups == "A") & (labels == 1) | (groups == "B") & (labels == 0)
    gates = Gates(audit(scores[only], groups[only], labels[only], rule=RULE), fail_above=0.3)
    assert (gates.verdicts, gates.exit_code) == (["undecided"], 3)
    assert "no two groups have rows with the same label" in gates.sentences()[0]


# Other measures ---------------------------------------------------------------------------------------


def test_a_frontier_refuses_two_gaps():
    with pytest.raises(
        UnsupportedError, match=r"does not support `criterion='equalized_odds'`; fit a rule for each"
    ):
        frontier(*FIT, criterion="equalized_odds")


def test_tune_tries_ramp_widths():
    tuned = tune(*FIT, validation=NEW, ramp_widths=[0.01, 0.1], criterion="equalized_odds", costs=(2, 1))
    assert tuned.grid["target_rate"].tolist() == ["accuracy", "accuracy"]
    assert tuned.rule.record.costs == (2, 1)
    assert tuned.score == max(tuned.grid["score"])


def test_the_record_has_the_smaller_ratio():
    record = RULE.record
    for when in ("before", "after"):
        ratios = [min(rates) / max(rates) for rates in (getattr(r, when) for _, r in record.compared)]
        assert getattr(record, f"ratio_{when}") == min(ratios)


def test_a_stream_cannot_continue_such_a_rule():
    with pytest.raises(UnsupportedError, match="a stream does not support `criterion='equalized_odds'`"):
        StreamingFit.from_rule(RULE)
