"""Certificates, checks, monitors and frontiers of rules that make true or false positive rates equal."""

import json

import numpy as np
import pytest

import fairramp
from fairramp.core.bands import Gap
from fairramp.core.events import EVENT_OF
from fairramp.measure.batches import rows_fingerprint
from fairramp.measure.tune import RATE_STEPS
from fairramp.rule.limits import FitSample, limits_of
from samples import quiet_fit

CRITERIA = ("equal_opportunity", "predictive_equality")
WORDS = {"equal_opportunity": "true positive rates", "predictive_equality": "false positive rates"}
LABEL = {"equal_opportunity": 1, "predictive_equality": 0}


def rows(seed=0, n=4_000, shift=0.0, groups=("A", "B"), shares=None):
    """Scores that are higher with label 1; `shift` moves the scores of group B."""
    rng = np.random.default_rng(seed)
    group = rng.choice(groups, n, p=shares)
    label = (rng.random(n) < np.where(group == "B", 0.4, 0.3)).astype(int)
    z = -0.8 + 1.4 * label + (0.4 + shift) * (group == "B") + rng.standard_normal(n)
    return 1 / (1 + np.exp(-z)), group, label


def fitted(criterion="equal_opportunity", seed=0, **options):
    scores, groups, labels = rows(seed)
    return quiet_fit(scores, groups, labels, criterion=criterion, **options)


def naive_rates(rule, scores, groups, labels, label, weights=None):
    """Mean probability over the rows with a label, by group."""
    h, found = rule.probabilities(scores, groups), []
    for group in rule.groups:
        which = (groups == group) & (labels == label)
        found.append(np.average(h[which], weights=None if weights is None else weights[which]))
    return np.array(found)


# Certificates -------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("options", [{}, {"target_rate": 0.5}, {"target_rate": 0.5, "ramp_width": 0}])
def test_certificate_is_that_of_a_parity_rule_on_the_rows_of_the_event(criterion, options):
    scores, groups, labels = rows()
    rule = quiet_fit(scores, groups, labels, criterion=criterion, **options)
    event = labels == LABEL[criterion]
    level = rule.record.main.after[0]
    alone = quiet_fit(scores[event], groups[event], target_rate=level, ramp_width=options.get("ramp_width", 0.01))
    assert rule.record.main.rows == alone.record.rows == tuple(np.unique(groups[event], return_counts=True)[1])
    found, expected = rule.certificate(), alone.certificate()
    bounds, theirs = ({bound.name: bound.limit for bound in one.bounds} for one in (found, expected))
    for name in ("pairs", "dkw", "theorem_1", "theorem_1_as_printed"):
        assert bounds[name] == pytest.approx(theirs[name], abs=1e-9)
    assert bounds["beta"] == pytest.approx(theirs["beta"], rel=0.03)
    assert found.proven is not None


def test_levels_chosen_by_labels_or_a_budget_are_learned():
    budget = "thresholds that depend on all groups together"
    for options in ({}, {"target_rate": "balanced_accuracy"}, {"overall_rate": 0.3}):
        beta = next(bound for bound in fitted(**options).certificate().bounds if bound.name == "beta")
        assert (budget if "overall_rate" in options else "a target rate learned from the rows") in beta.why_not
        assert not beta.is_theorem
    exact = fitted(target_rate=0.6, ramp_width=0).certificate()
    assert exact.estimated == exact.proven
    assert exact.assumptions.endswith("No two people with label 1 may share a score.")


@pytest.mark.parametrize("criterion", CRITERIA)
def test_certificate_names_the_rate_and_its_rows(criterion):
    label = LABEL[criterion]
    scores, groups, labels = rows(n=6_000, groups=("A", "B", "C"), shares=(0.5, 0.49, 0.01))
    rule = quiet_fit(scores, groups, labels, criterion=criterion)
    found = rule.certificate()
    n = int(((groups == "C") & (labels == label)).sum())
    assert found.widest_for == ("C", n)
    assert found.left_out == (("C", n),)
    first, *_, last = found.sentences()
    assert first.startswith(f"Gap between {WORDS[criterion]} in the population: estimated limit ")
    assert f"group C ({n} fit rows with label {label})" in last
    assert found.rate == found.to_dict()["rate"] == found.rest.to_dict()["rate"] == f"{WORDS[criterion][:-1]}"
    assert (
        f"distribution of scores among the rows with label {label} of each group must not." in found.assumptions
    )
    assert "with label" not in repr(quiet_fit(scores, groups).certificate())
    assert quiet_fit(scores, groups).certificate().rate == "selection rate"


def test_strata_and_ratios_are_named():
    scores, groups, labels = rows()
    strata = np.arange(len(scores)) % 2
    rule = quiet_fit(scores, groups, labels, strata=strata, criterion="equal_opportunity")
    assert repr(rule.certificate()).startswith("Largest gap between true positive rates within a stratum in the")
    for criterion in ("parity", *CRITERIA):
        ratio = fitted(criterion, min_ratio=0.8).certificate()
        sentence = "The certificate limits the gap; measure the ratio on new rows with an audit."
        assert ratio.sentences()[-1] == sentence
        assert sentence not in fitted(criterion, max_gap=0.1).certificate().sentences()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_gap_in_the_population_has_a_limit_of_at_most_max_gap(criterion):
    scores, groups, labels = rows()
    rule = quiet_fit(scores, groups, labels, criterion=criterion, max_gap=0.12, confidence=0.95)
    assert limits_of(FitSample.of(rule), 0.95).estimated <= 0.12
    assert 0 < rule.max_gap < 0.12
    # It is the largest such gap: a slightly larger one has a limit above 0.12.
    wider = quiet_fit(scores, groups, labels, criterion=criterion, max_gap=rule.max_gap + 0.005)
    if wider.record.gap_after > rule.record.gap_after + 0.004:
        assert limits_of(FitSample.of(wider), 0.95).estimated > 0.12
    assert f"Gap between {WORDS[criterion]} in the population: at most 12.0 points" in repr(rule)


def test_too_few_rows_are_those_with_the_label():
    scores, groups, labels = rows(n=1_000)
    with pytest.raises(fairramp.InputError) as raised:
        quiet_fit(scores, groups, labels, criterion="equal_opportunity", max_gap=0.02, confidence=0.95)
    counts = {group: int(((groups == group) & (labels == 1)).sum()) for group in "AB"}
    text = str(raised.value)
    assert "rows with label 1 per group" in text
    assert "the smallest gap between true positive rates" in text
    for group, n in counts.items():
        assert f"{group} ({n} rows)" in text


def test_rows_needed_counts_rows_with_the_label():
    n = fairramp.rows_needed(max_gap=0.1, n_groups=2)
    rng = np.random.default_rng(5)
    # n rows with label 1 in each group are enough, whatever the number of other rows.
    labels = np.tile(np.repeat([1, 0], [n, 50]), 2)
    groups = np.repeat(["A", "B"], n + 50)
    scores = np.clip(rng.random(2 * (n + 50)) + 0.2 * labels, 0, 1)
    rule = quiet_fit(scores, groups, labels, criterion="equal_opportunity", max_gap=0.1, confidence=0.95)
    assert rule.certificate().estimated <= 0.1


# Checks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
def test_check_measures_the_rows_of_the_event(criterion, weighted):
    label, (scores, groups, labels) = LABEL[criterion], rows(1)
    weights = np.random.default_rng(3).uniform(0.5, 2, len(scores)) if weighted else None
    rule = quiet_fit(*rows(), criterion=criterion, sample_weight=weights)
    found = rule.check(scores, groups, labels, sample_weight=weights)
    event = labels == label
    assert found.rows == tuple(int((event & (groups == group)).sum()) for group in "AB")
    expected = naive_rates(rule, scores, groups, labels, label, weights)
    np.testing.assert_allclose(found.rates, expected, atol=1e-12)
    np.testing.assert_allclose(found.rates_then, rule.record.main.after)
    assert found.gap == pytest.approx(np.ptp(expected))
    assert found.limit == rule.certificate().estimated
    assert found.rate == found.to_dict()["rate"] == WORDS[criterion][:-1]
    assert f"gap between {WORDS[criterion]}" in found.sentence()
    assert f"rows with label {label}" in repr(found)
    heading = str(found.table()).replace("\n", " ")
    assert {"n", "fit_rate", "new_rate"} <= set(found.table().columns)
    assert EVENT_OF[criterion].short in heading
    assert "label" in heading
    # Rows with the other label change nothing.
    some = None if weights is None else weights[event]
    alone = rule.check(scores[event], groups[event], labels[event], sample_weight=some)
    assert alone.to_dict() == found.to_dict()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_drift_of_the_rate_is_found_and_other_drift_is_not(criterion):
    label, rule = LABEL[criterion], fitted(criterion)
    scores, groups, labels = rows(7)
    drifted = np.clip(scores + 0.3 * ((groups == "B") & (labels == label)), 0, 1)
    assert rule.check(drifted, groups, labels).has_drifted
    assert rule.monitor().update(drifted, groups, labels).has_drifted
    # The other label's scores may drift as they like.
    other = np.clip(scores + 0.3 * ((groups == "B") & (labels != label)), 0, 1)
    assert rule.check(other, groups, labels).to_dict() == rule.check(scores, groups, labels).to_dict()
    assert not rule.monitor().update(other, groups, labels).has_drifted


@pytest.mark.parametrize("criterion", CRITERIA)
def test_labels_are_required_and_may_lack_the_event(criterion):
    label, rule, (scores, groups, labels) = LABEL[criterion], fitted(criterion), rows(2)
    sentence = f"`labels` are required: the rule makes {WORDS[criterion]} equal."
    for call in (rule.check, rule.monitor().update, lambda *rows: rows_fingerprint(rule, *rows)):
        with pytest.raises(fairramp.InputError) as raised:
            call(scores, groups)
        assert str(raised.value) == sentence
    none = np.full(len(labels), 1 - label)
    with pytest.raises(fairramp.InputError, match=f"None of the rows has label {label}"):
        rule.check(scores, groups, none)
    monitor = rule.monitor().update(scores, groups, none)
    assert (monitor.looks, monitor.rows, monitor.has_drifted) == (1, (0, 0), False)
    assert repr(monitor).startswith("Nothing to compare yet. The estimated limit on the gap between")
    # Only group A has rows with the label.
    one = np.where(groups == "A", labels, 1 - label)
    found = rule.check(scores, groups, one)
    assert (found.groups, found.missing, found.verdict.value) == (("A",), ("B",), "undecided")
    assert found.sentence() == f"Only group A has rows with label {label}, so there is no gap."
    assert f"Groups without rows with label {label} were not checked: B." in repr(found).replace("\n", " ")


def test_labels_of_parity_rules_are_not_used():
    scores, groups, labels = rows(2)
    rule = quiet_fit(scores, groups)
    assert rule.check(scores, groups, labels).to_dict() == rule.check(scores, groups).to_dict()
    assert rule.check(scores, groups, "anything").rows == rule.check(scores, groups).rows
    one, two = rule.monitor().update(scores, groups), rule.monitor().update(scores, groups, labels)
    assert one.to_dict() == two.to_dict()
    assert rows_fingerprint(rule, scores, groups) == rows_fingerprint(rule, scores, groups, labels)


def test_unseen_groups_are_refused_whatever_their_labels():
    rule, (scores, groups, labels) = fitted(), rows(2)
    groups = groups.copy()
    groups[np.flatnonzero(labels == 0)[0]] = "new"
    with pytest.raises(fairramp.UnseenGroupError):
        rule.check(scores, groups, labels)


def test_strata_are_checked_by_the_rows_of_the_event():
    scores, groups, labels = rows(n=8_000)
    strata = np.arange(len(scores)) % 2
    rule = quiet_fit(scores, groups, labels, strata=strata, criterion="equal_opportunity")
    found = rule.check(scores, groups, labels, strata=strata)
    assert sum(found.rows) == labels.sum()
    drifted = np.clip(scores + 0.4 * ((groups == "B") & (strata == 1)), 0, 1)
    assert rule.check(drifted, groups, labels, strata=strata).stratum == 1
    assert rule.check(drifted, groups, labels, strata=strata).has_drifted


# Monitors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
def test_monitor_adds_up_the_rows_of_the_event(criterion, tmp_path):
    label, rule, (scores, groups, labels) = LABEL[criterion], fitted(criterion), rows(4)
    whole, parts = rule.monitor().update(scores, groups, labels), rule.monitor()
    for start in range(0, len(scores), 1_000):
        some = slice(start, start + 1_000)
        parts.update(scores[some], groups[some], labels[some], batch=f"{start}")
        parts.save(tmp_path / "state.json")
        parts = fairramp.Monitor.load(tmp_path / "state.json", rule)
    assert parts.rows == whole.rows == tuple(int(((groups == g) & (labels == label)).sum()) for g in "AB")
    np.testing.assert_allclose(parts.rates, naive_rates(rule, scores, groups, labels, label))
    assert parts.evidence == pytest.approx(whole.evidence)
    assert parts.rate == json.loads(json.dumps(parts.to_dict()))["rate"] == WORDS[criterion][:-1]
    assert f"gap between {WORDS[criterion]}" in parts.sentence()
    assert f"on {sum(parts.rows):,} rows with label {label}" in parts.sentence()


def test_fingerprint_of_a_batch_depends_on_its_labels_but_not_on_its_order():
    rule, (scores, groups, labels) = fitted(), rows(4, n=200)
    mark, order = rows_fingerprint(rule, scores, groups, labels), np.random.default_rng(0).permutation(200)
    assert rows_fingerprint(rule, scores[order], groups[order], labels[order]) == mark
    assert rows_fingerprint(rule, scores, groups, labels.astype(bool)) == mark
    changed = labels.copy()
    changed[0] = 1 - changed[0]
    assert rows_fingerprint(rule, scores, groups, changed) != mark
    # Tied scores: labels are sorted within them.
    tied = np.round(scores, 1)
    assert rows_fingerprint(rule, tied, groups, labels) == rows_fingerprint(
        rule, tied[order], groups[order], labels[order]
    )


def test_quiet_monitors_rarely_raise_false_alarms():
    alarms = 0
    for seed in range(40):
        scores, groups, labels = rows(seed, n=3_000)
        rule = quiet_fit(scores[:1_500], groups[:1_500], labels[:1_500], criterion="equal_opportunity")
        monitor = rule.monitor(0.9)
        for start in range(1_500, 3_000, 250):
            some = slice(start, start + 250)
            monitor.update(scores[some], groups[some], labels[some])
        alarms += monitor.has_drifted
    assert alarms <= 10  # at most 20% of 40 are expected, as limit and alarm may each err in 10%


# Frontiers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("width", [0.0, 0.01])
@pytest.mark.parametrize("weighted", [False, True])
def test_frontier_is_the_accuracy_of_fits(criterion, width, weighted):
    label, (scores, groups, labels) = LABEL[criterion], rows(5)
    weights = np.random.default_rng(3).integers(1, 4, len(scores)).astype(float) if weighted else None
    gaps = [0.0, 0.03, 0.1]
    options = {"criterion": criterion, "ramp_width": width, "sample_weight": weights}
    curve = fairramp.frontier(scores, groups, labels, max_gaps=gaps, **options)
    for i, gap in enumerate(gaps):
        rule = quiet_fit(scores, groups, labels, max_gap=gap, **options)
        h = rule.probabilities(scores, groups)
        accuracy = np.average(np.where(labels == 1, h, 1 - h), weights=weights)
        assert curve.accuracies[i] >= accuracy - 1e-9
        rates = naive_rates(rule, scores, groups, labels, label, weights)
        if curve.accuracies[i] == pytest.approx(accuracy, abs=1e-9):
            assert curve.gaps[i] == pytest.approx(np.ptp(rates), abs=1e-9)
            assert (curve.lowest_rates[i], curve.highest_rates[i]) == pytest.approx((rates.min(), rates.max()))
        assert curve.gaps[i] <= gap + 1e-9
    assert np.all(np.diff(curve.accuracies) >= -1e-12)
    own = [
        np.average(scores[w] >= 0.5, weights=None if weights is None else weights[w])
        for w in ((groups == g) & (labels == label) for g in "AB")
    ]
    assert curve.own_gap == pytest.approx(np.ptp(own), abs=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", range(12))
def test_frontiers_of_many_rows_and_groups_keep_their_gaps(criterion, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([60, 400, 30_000]))
    scores, groups, labels = rows(seed, n=n, groups=("A", "B", "C"))
    scores = np.round(scores, int(rng.choice([1, 2, 12])))
    kind = str(rng.choice(["accuracy", "balanced_accuracy"]))
    width = float(rng.choice([0.0, 0.01, 0.2]))
    curve = fairramp.frontier(scores, groups, labels, criterion=criterion, target_rate=kind, ramp_width=width)
    assert len(curve.max_gaps) == 21
    assert all(gap <= most + 1e-9 for gap, most in zip(curve.gaps, curve.max_gaps, strict=True))
    assert np.all(np.diff(curve.values) >= -1e-12)
    assert curve.max_gaps[-1] == pytest.approx(max(curve.own_gap, 0.01))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_frontier_is_measured_on_validation_rows_of_the_event(criterion):
    label, (scores, groups, labels) = LABEL[criterion], rows(5)
    other = rows(6)
    curve = fairramp.frontier(scores, groups, labels, validation=other, criterion=criterion, max_gaps=[0])
    rule = quiet_fit(scores, groups, labels, criterion=criterion)
    rates = naive_rates(rule, *other, label)
    assert curve.gaps[0] == pytest.approx(np.ptp(rates), abs=1e-9)
    assert not curve.is_in_sample
    # A validation group without such rows has no rate, and without any there is nothing to compare.
    x, g, y = other
    one = fairramp.frontier(
        scores,
        groups,
        labels,
        validation=(x, g, np.where(g == "A", y, 1 - label)),
        criterion=criterion,
        max_gaps=[0],
    )
    assert one.lowest_rates == one.highest_rates == (pytest.approx(rates[0], abs=1e-9),)
    with pytest.raises(fairramp.InputError) as raised:
        fairramp.frontier(
            scores, groups, labels, validation=(x, g, np.full(len(y), 1 - label)), criterion=criterion
        )
    assert f"`validation` has no rows with label {label}" in str(raised.value)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_frontier_names_the_rate_and_refuses_groups_without_it(criterion):
    label, (scores, groups, labels) = LABEL[criterion], rows(5)
    curve = fairramp.frontier(scores, groups, labels, criterion=criterion, max_gaps=[0])
    assert curve.heading == f"Accuracy against gap between {WORDS[criterion]}, on the fit rows."
    assert f"gap between {WORDS[criterion]} " in curve.own
    assert f"lowest {EVENT_OF[criterion].short}" in str(curve.table())
    assert {"lowest_rate", "highest_rate"} <= set(curve.table().columns)
    for who in (groups == "B", np.ones(len(groups), dtype=bool)):
        with pytest.raises(fairramp.InputError) as raised:
            fairramp.frontier(scores, groups, np.where(who, 1 - label, labels), criterion=criterion)
        assert f"requires rows with label {label} in every group; there is none in " in str(raised.value)
    with pytest.raises(fairramp.InputError, match="did you mean 'equal_opportunity'"):
        fairramp.frontier(scores, groups, labels, criterion="tpr")


def test_parity_frontier_is_unchanged_by_the_criterion():
    scores, groups, labels = rows(5)
    plain = fairramp.frontier(scores, groups, labels)
    assert repr(plain) == repr(fairramp.frontier(scores, groups, labels, criterion="parity"))
    assert plain.heading == "Accuracy against gap, on the fit rows."
    assert (plain.rate, plain.criterion) == ("selection rate", "parity")
    assert Gap(plain.max_gaps[3]).is_open


# Tuning -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("up", [True, False])
def test_default_targets_are_around_the_classifiers_own_rate(criterion, up):
    label, (scores, groups, labels) = LABEL[criterion], rows(5, n=2_000)
    weights = np.random.default_rng(3).uniform(0.5, 2, len(scores))
    given = scores if up else 1 - scores
    found = fairramp.tune(
        given,
        groups,
        labels,
        validation=(given, groups, labels),
        ramp_widths=[0.01],
        sample_weight=weights,
        criterion=criterion,
        cutoff=0.4 if up else 0.6,
        higher_is_better=up,
    )
    event = labels == label
    own = np.average(given[event] >= 0.4 if up else given[event] <= 0.6, weights=weights[event])
    assert found.grid["target_rate"].tolist() == pytest.approx([min(own + step, 0.999) for step in RATE_STEPS])
    assert found.rule.criterion == criterion


def test_a_budget_tries_only_ramp_widths():
    scores, groups, labels = rows(5, n=2_000)
    for criterion in ("parity", *CRITERIA):
        found = fairramp.tune(
            scores,
            groups,
            labels,
            validation=(scores, groups, labels),
            ramp_widths=[0.0, 0.05],
            overall_rate=0.3,
            criterion=criterion,
        )
        assert found.grid.columns == ("ramp_width", "score")
        assert found.rule.probabilities(scores, groups).mean() == pytest.approx(0.3, abs=1e-9)
    with pytest.raises(fairramp.InputError, match="exclude each other"):
        fairramp.tune(
            scores, groups, labels, validation=(scores, groups, labels), target_rates=[0.2], overall_rate=0.3
        )
