"""Audits of true and false positive rates: compared with audits of the rows that count, and counts by hand."""

import dataclasses
import json
import re
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairramp import InputError, Ramp, Rule, audit, datasets, fit_rule
from fairramp.core.events import EVENT_OF, EVENTS
from fairramp.core.intervals import effective_rows, gap_interval, ratio_interval, wilson_interval
from fairramp.measure.gate import Gates
from fairramp.measure.verdict import Verdict
from samples import sample

N = 1200
SCORES, CODES = sample(N, n_groups=3, seed=5)
GROUPS = np.array(["A", "B", "C"])[CODES]
RNG = np.random.default_rng(6)
LABELS = (RNG.random(N) < SCORES).astype(int)
WEIGHTS = RNG.lognormal(size=N)
STRATA = np.where(RNG.random(N) < 0.4, "x", "y")
RULE = fit_rule(SCORES, GROUPS, max_gap=0.05, ramp_width=0.2)
CRITERIA = tuple(EVENT_OF)
NAN = float("nan")


def assert_alike(found, expected):
    for name, value in asdict(expected).items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-9, atol=1e-12, err_msg=name)


# Every event ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weights"])
@pytest.mark.parametrize("strata", [None, STRATA], ids=["together", "strata"])
@pytest.mark.parametrize("rule", [None, RULE], ids=["alone", "rule"])
def test_a_rate_is_the_selection_rate_of_the_rows_that_count(criterion, weights, strata, rule):
    event = EVENT_OF[criterion]
    keep = np.full(N, True) if event.label is None else event.label == LABELS
    found = audit(SCORES, GROUPS, LABELS, rule=rule, criterion=criterion, sample_weight=weights, strata=strata)
    within = strata
    if event.parts:  # label 1 comes first, then label 0
        later = (1 - LABELS).astype(str)
        within = later if strata is None else np.char.add(later, strata)
    rows = audit(
        SCORES[keep],
        GROUPS[keep],
        rule=rule,
        sample_weight=None if weights is None else weights[keep],
        strata=None if within is None else within[keep],
    )
    assert found.criterion == criterion
    for side, expected in ((found.before, rows.before), (found.after, rows.after)):
        if side is not None:
            assert_alike(side, expected.rates["selection"])
            if not event.parts:
                assert_alike(side.rates[event.name], expected.rates["selection"])
            assert list(side.rates) == list(EVENTS)
    assert (found.gap, found.ratio) == (found.selection.gap, found.selection.ratio)
    assert sum(found.rows) == N


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weights"])
def test_rates_equal_the_formulas(weights):
    found = audit(SCORES, GROUPS, LABELS, rule=RULE, sample_weight=weights, confidence=0.9)
    w = np.ones(N) if weights is None else weights
    for side, h in (
        (found.before, (SCORES >= 0.5).astype(float)),
        (found.after, RULE.probabilities(SCORES, GROUPS)),
    ):
        for event in EVENTS.values():
            counts = np.full(N, True) if event.label is None else event.label == LABELS
            rates, squares, spread = [], [], []
            for group in "ABC":
                of = counts & (group == GROUPS)
                v = w[of] / w[of].sum()
                rates.append((v * h[of]).sum())
                squares.append((v**2).sum())
                spread.append((v**2 * (h[of] - rates[-1]) ** 2).sum())
            r, n = np.array(rates), effective_rows(*map(np.array, (rates, squares, spread)))
            lower, upper = wilson_interval(r, n, 0.9)
            assert side.rates[event.name].rate == pytest.approx(rates)
            assert side.rates[event.name].lower == pytest.approx(lower)
            assert side.rates[event.name].upper == pytest.approx(upper)
            assert side.rates[event.name].gap == pytest.approx(r.max() - r.min())
            assert side.rates[event.name].ratio == pytest.approx(r.min() / r.max())
            assert side.rates[event.name].gap_interval == pytest.approx(gap_interval(r, n, 0.9))
            assert side.rates[event.name].ratio_interval == pytest.approx(ratio_interval(r, n, 0.9))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_integer_weights_equal_repeated_rows(criterion):
    weights = np.random.default_rng(2).integers(1, 4, N)
    weighted = audit(SCORES, GROUPS, LABELS, rule=RULE, criterion=criterion, sample_weight=weights)
    repeated = audit(*(np.repeat(c, weights) for c in (SCORES, GROUPS, LABELS)), rule=RULE, criterion=criterion)
    for a, b in ((weighted.before, repeated.before), (weighted.after, repeated.after)):
        for name in ("rate", "gap", "ratio"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-12)
        # Repeated rows look like more evidence than weights are.
        assert np.all(np.subtract(a.upper, a.lower) > np.subtract(b.upper, b.lower))


def test_the_criterion_changes_only_what_is_compared():
    plain, *others = (audit(SCORES, GROUPS, LABELS, rule=RULE, criterion=criterion) for criterion in CRITERIA)
    assert audit(SCORES, GROUPS, LABELS, rule=RULE) == plain
    for other in others:
        assert other.before.rates == plain.before.rates
        assert other.after.rates == plain.after.rates
        assert other.errors().to_dict() == plain.errors().to_dict()
        assert (other.changed_to_yes, other.randomized) == (plain.changed_to_yes, plain.randomized)
        assert other.gap != plain.gap


def test_without_labels_there_are_only_selection_rates():
    found = audit(SCORES, GROUPS, criterion="parity").before
    assert list(found.rates) == ["selection"]
    assert (found.true_positive_rate, found.false_positive_rate) == (None, None)


def test_the_criterion_of_the_rule_is_the_default():
    rule = dataclasses.replace(RULE, criterion="equal_opportunity", record=None)
    found = audit(SCORES, GROUPS, LABELS, rule=rule)
    assert found.criterion == "equal_opportunity"
    assert found.gap == audit(SCORES, GROUPS, LABELS, rule=RULE, criterion="equal_opportunity").gap
    assert audit(SCORES, GROUPS, LABELS, rule=rule, criterion="parity").criterion == "parity"
    with pytest.raises(InputError, match="`criterion='equal_opportunity'` requires `labels`"):
        audit(SCORES, GROUPS, rule=rule)


@pytest.mark.parametrize("criterion", CRITERIA[1:])
def test_other_criteria_need_labels(criterion):
    with pytest.raises(InputError) as caught:
        audit(SCORES, GROUPS, criterion=criterion)
    assert str(caught.value) == (
        f"`criterion='{criterion}'` requires `labels`, the true outcomes; pass them, or compare selection rates "
        "with `criterion='parity'`."
    )


@pytest.mark.parametrize(
    ("given", "meant"),
    [("true_positive_rate", "equal_opportunity"), ("false_positive", "predictive_equality"), ("equal", None)],
)
def test_a_wrong_criterion_suggests_the_right_one(given, meant):
    with pytest.raises(InputError, match="`criterion` must be one of 'parity', 'equal_opportunity', ") as caught:
        audit(SCORES, GROUPS, LABELS, criterion=given)
    assert meant is None or f"did you mean '{meant}'?" in str(caught.value)


# Groups without a rate ------------------------------------------------------------------------------


def test_a_group_without_rows_of_the_event_is_left_out():
    labels = np.where(GROUPS == "B", 0, LABELS)
    found = audit(SCORES, GROUPS, labels, rule=RULE, criterion="equal_opportunity")
    others = GROUPS != "B"
    expected = audit(SCORES[others], GROUPS[others], labels[others], rule=RULE, criterion="equal_opportunity")
    assert np.isnan([found.after.rate[1], found.after.lower[1], found.after.upper[1]]).all()
    assert found.after.rows[1] == 0
    for name in ("gap", "gap_interval", "ratio", "ratio_interval"):
        assert getattr(found.after, name) == getattr(expected.after, name)
    assert "Group B has no rows with label 1 and is left out." in found.sentences()
    assert found.to_dict()["after"]["rate"][1] is None
    assert found.table().text().splitlines()[-2].split()[4] == "–"
    # Every other rate of the group is known.
    assert found.after.rates["false_positive"].rows == tuple((labels[g == GROUPS] == 0).sum() for g in "ABC")
    assert not np.isnan(found.after.rates["false_positive"].rate).any()


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (np.where(GROUPS == "A", LABELS, 0), "in A, the only group that has rows with label 1."),
        (np.zeros(N, dtype=int), "True positive rate (yes at 0.5 or above): no rows with label 1."),
    ],
)
@pytest.mark.filterwarnings("ignore:Scores")
def test_with_nothing_to_compare_gap_and_ratio_are_nan(labels, sentence):
    found = audit(SCORES, GROUPS, labels, criterion="equal_opportunity")
    assert np.isnan([found.gap, found.ratio, *found.before.gap_interval, *found.before.ratio_interval]).all()
    assert found.sentences()[0].endswith(sentence)
    assert "–" in str(found.gaps())
    json.dumps(found.to_dict(), allow_nan=False)
    for name in ("fail_above", "fail_unless_below", "fail_below_ratio", "fail_unless_ratio"):
        gates = Gates(found, **{name: 1.0})
        assert (gates.verdicts, gates.exit_code) == (["undecided"], 3)
        json.dumps(gates.to_dict(), allow_nan=False)


def test_strata_without_rows_of_the_event_are_left_out():
    labels = np.where(STRATA == "x", 0, LABELS)
    found = audit(SCORES, GROUPS, labels, strata=STRATA, criterion="equal_opportunity")
    y = STRATA == "y"
    alone = audit(SCORES[y], GROUPS[y], labels[y], criterion="equal_opportunity")
    assert (found.gap, found.ratio) == pytest.approx((alone.gap, alone.ratio))
    assert found.before.gap_interval == pytest.approx(alone.before.gap_interval)
    assert found.sentences()[1].startswith("Groups x / A, x / B, x / C have no rows with label 1")


def test_ratio_within_strata_ignores_strata_in_which_nobody_is_selected():
    decisions = np.where(STRATA == "x", 0, SCORES >= 0.5)
    found = audit(decisions, GROUPS, strata=STRATA)
    y = STRATA == "y"
    assert found.ratio == audit(decisions[y], GROUPS[y]).ratio
    assert found.before.ratio_interval[0] == 0  # nothing is known about the other stratum


@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), criterion=st.sampled_from(CRITERIA))
@pytest.mark.filterwarnings("ignore:Scores")
def test_small_audits_never_fail(seed, n, criterion):
    rng = np.random.default_rng(seed)
    groups, labels = rng.integers(0, 4, n), (rng.random(n) < rng.random()).astype(int)
    decisions = (rng.random(n) < rng.random()).astype(int)
    weights = None if seed % 2 else rng.lognormal(0, 2, n)
    found = audit(decisions, groups, labels, criterion=criterion, sample_weight=weights)
    s = found.before
    each = [
        [
            np.average(decisions[of], weights=None if weights is None else weights[of])
            for k in found.groups
            if (of := (groups == k) & (True if event.label is None else labels == event.label)).any()
        ]
        for event in EVENT_OF[criterion].simple
    ]
    assert [rate for rate in s.rate if rate == rate] == pytest.approx([rate for rates in each for rate in rates])
    if any(len(rates) > 1 for rates in each):
        each = [rates for rates in each if rates]
        assert s.gap == pytest.approx(max(max(rates) - min(rates) for rates in each))
        assert s.gap_interval[0] - 1e-9 <= s.gap <= s.gap_interval[1] + 1e-9
        ratios = [min(rates) / max(rates) for rates in each if max(rates) > 0]
        assert s.ratio == pytest.approx(min(ratios, default=NAN), nan_ok=True)
        assert not ratios or s.ratio_interval[0] - 1e-9 <= s.ratio <= s.ratio_interval[1] + 1e-9
    repr(found)
    gates = Gates(found, 0.1, 0.1, 0.8, 0.8)
    assert gates.exit_code in (0, 1, 3)
    json.dumps(found.to_dict() | gates.to_dict(), allow_nan=False)
    assert len(gates.sentences()) == 4


# Gates ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("rule", [None, RULE], ids=["alone", "rule"])
def test_a_gate_follows_the_confidence_limits_of_the_ratio(criterion, rule):
    found = audit(SCORES, GROUPS, LABELS, rule=rule, criterion=criterion)
    lower, upper = found.selection.ratio_interval
    for minimum in (1e-9, lower, (lower + upper) / 2, upper, 1.0):
        verdict = "exceeded" if upper < minimum else "within" if lower >= minimum else "undecided"
        below, unless = Gates(found, fail_below_ratio=minimum), Gates(found, fail_unless_ratio=minimum)
        both = Gates(found, fail_below_ratio=minimum, fail_unless_ratio=minimum)
        assert below.verdicts == unless.verdicts == [verdict]
        assert below.exit_code == {"within": 0, "exceeded": 1, "undecided": 0}[verdict]
        assert unless.exit_code == {"within": 0, "exceeded": 1, "undecided": 3}[verdict]
        assert both.exit_codes == [below.exit_code, unless.exit_code]
        assert both.sentences() == below.sentences() + unless.sentences()
        word = {"within": "passed", "exceeded": "failed", "undecided": "undecided"}[verdict]
        assert below.sentences()[0].startswith(f"Gate {word}: ")
        ratios = {event: found.selection.rates[event.name].ratio for event in EVENT_OF[criterion].simple}
        rate = min(ratios, key=ratios.get).rate
        what = f"the smaller ratio, of {rate}s, in " if len(ratios) > 1 else f"the ratio of {rate}s in "
        assert what in below.sentences()[0]
        fields = json.loads(json.dumps(both.to_dict(), allow_nan=False))
        assert (fields["verdict"], fields["failed"]) == (verdict, both.exit_code != 0)
        assert fields["verdicts"] == dict.fromkeys(("fail_below_ratio", "fail_unless_ratio"), verdict)
        assert (fields["ratio"], fields["ratio_interval"]) == (found.ratio, [lower, upper])


@pytest.mark.parametrize("limits", [(0.0, 0.0), (NAN, NAN), (0.0, np.inf)])
def test_invalid_limits_pass_no_ratio_gate(limits):
    found = audit(SCORES, GROUPS)
    found = replace(found, before=replace(found.before, ratio_interval=limits))
    for name in ("fail_below_ratio", "fail_unless_ratio"):
        gates = Gates(found, **{name: 1e-6})
        assert (gates.verdicts, gates.exit_code) == (["undecided"], 3)
        assert "are not numbers or do not contain it" in gates.sentences()[0]
        json.dumps(gates.to_dict(), allow_nan=False)


def test_with_nobody_selected_a_ratio_gate_is_undecided():
    found = audit(np.zeros(N), GROUPS)
    for name, code in (("fail_below_ratio", 0), ("fail_unless_ratio", 3)):
        gates = Gates(found, **{name: 0.8})
        assert (gates.verdicts, gates.exit_code) == (["undecided"], code)
        assert (
            "whether the ratio of selection rates in these decisions is below 0.8: all rates are 0"
            in (gates.sentences()[0])
        )
        assert gates.to_dict()["ratio"] is None


def test_sentences_of_gates_name_the_rate():
    data = datasets.load_adult_scores()
    found = audit(data.score, data.sex, data.label, criterion="equal_opportunity")
    gates = Gates(found, fail_above=0.02, fail_unless_ratio=0.8)
    assert gates.sentences() == [
        "Gate failed: the gap between true positive rates in the classifier's own decisions is 6.3 points "
        "[2.8, 9.9], above 2.0 points with 95% confidence.",
        "Gate passed: the ratio of true positive rates in the classifier's own decisions is 0.89 [0.84, 0.95], "
        "at least 0.8 with 95% confidence.",
    ]
    gates = Gates(audit(data.score, data.sex), fail_below_ratio=0.8, fail_unless_ratio=0.31)
    first, second = gates.sentences()
    assert first.endswith("decisions is 0.31 [0.29, 0.34], below 0.8 with 95% confidence.")
    assert "whether the ratio of selection rates in the classifier's own decisions is below 0.31" in second
    small = Gates(audit(data.score[:60], data.race[:60]), fail_below_ratio=0.8).sentences()[0]
    assert "; the interval is widest for group " in small


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("apart", [-0.0004, 0.0004])
def test_printed_limits_of_a_ratio_are_on_the_same_side_of_the_gate_as_the_ratios(end, apart):
    found = audit(SCORES, GROUPS)
    limit = found.selection.ratio_interval[end] + apart
    text = Gates(found, fail_below_ratio=limit).sentences()[0]
    shown = [float(number) for number in re.search(r" \[(\S+), ([^]]+)\]", text).groups()]
    assert np.sign(shown[end] - limit) == -np.sign(apart)


# Showing --------------------------------------------------------------------------------------------


def test_text_leads_with_the_rate_of_the_criterion():
    found = audit(SCORES, GROUPS, LABELS, rule=RULE, criterion="predictive_equality")
    before, after, *_ = found.sentences()
    assert before.startswith("False positive rate before (yes at 0.5 or above): ")
    assert after.startswith("False positive rate after: ")
    assert " rows with label 0" in after
    table = found.table()
    assert tuple(table["n"]) == found.rows
    assert tuple(table["n_event"]) == found.after.rows == tuple((LABELS[g == GROUPS] == 0).sum() for g in "ABC")
    assert tuple(table["rate"]) == found.after.rate == found.after.false_positive_rate
    assert tuple(table["rate_before"]) == found.before.rate
    assert tuple(table["selection_rate"]) == found.after.rates["selection"].rate
    assert "selection_rate" not in audit(SCORES, GROUPS, LABELS).table().columns


@pytest.mark.parametrize("criterion", CRITERIA[1:])
def test_the_printed_audit_of_two_groups_fits_80_columns(criterion):
    data = datasets.load_adult_scores()
    rule = fit_rule(data.score, data.sex, max_gap=0.02)
    for one in (None, rule):
        found = audit(data.score, data.sex, data.label, rule=one, criterion=criterion)
        assert max(map(len, repr(found).splitlines())) <= 80


def test_charts_show_the_rate_of_the_criterion():
    pytest.importorskip("altair")
    many = Rule(tuple(range(9)), (Ramp(0.4, 0.1),) * 9)
    codes = np.arange(N) % 9
    labels = np.where(codes == 4, 0, LABELS)
    for rule in (None, many):
        found = audit(SCORES, codes, labels, rule=rule, criterion="equal_opportunity")
        chart = found.plot().to_json()  # JSON has no NaN
        assert "True positive rates" in chart
        assert '"title": "true positive rate"' in chart
        assert "selection rate" not in chart


def test_gates_are_undecided_if_a_group_was_not_measured():
    rng = np.random.default_rng(0)
    groups, scores = np.array(list("ABC"))[rng.integers(0, 3, 3_000)], rng.random(3_000)
    labels = np.where(groups == "C", 0, rng.random(3_000) < scores)
    found = audit(scores, groups, labels, criterion="equal_opportunity")
    gates = Gates(found, fail_above=0.2, fail_unless_below=0.2, fail_below_ratio=0.5, fail_unless_ratio=0.5)
    assert gates.exit_codes == [0, 3, 0, 3]
    assert set(gates.sentences()) == {"Gate undecided: there are no rows with label 1 in C."}
    assert Gates(found, fail_unless_ratio=0.999).verdicts[0] is not Verdict.WITHIN
