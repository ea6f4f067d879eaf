"""Headlines compare groups that are large enough to judge; gates, gaps and records include every group."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairramp
from fairramp.core.headline import SMALL_GROUP, ends, judged, too_small
from fairramp.core.words import plain, points
from fairramp.measure.comparison import comparison
from fairramp.measure.gate import Gates
from fairramp.show.report.say import say

LARGE = st.lists(st.tuples(st.integers(0, 20), st.integers(SMALL_GROUP, 500)), min_size=2, max_size=6)
FEW = st.lists(st.tuples(st.integers(0, 20), st.integers(1, SMALL_GROUP - 1)), max_size=5)


def said(groups, what="Selection rate"):
    """The headline of groups, each a rate in twentieths and a number of rows."""
    rates, rows = ([a / 20 for a, _ in groups], [n for _, n in groups])
    return comparison(rates, [f"g{i}" for i in range(len(groups))], None, rows, what)


def decisions(*groups):
    """0/1 decisions and group labels; a group is (label, rows, number of yes decisions)."""
    decided = np.concatenate([np.arange(n) < yes for _, n, yes in groups]).astype(float)
    return decided, np.repeat([label for label, *_ in groups], [n for _, n, _ in groups])


BASE = (("A", 200, 100), ("B", 300, 90))
SMALL = (("X", 2, 2), ("Y", 2, 0))


@given(LARGE, FEW)
def test_small_groups_never_change_which_groups_the_headline_names(large, few):
    assert said(large + few).replace(" with enough rows to judge.", ".") == said(large)


@given(LARGE, st.randoms(use_true_random=False))
def test_the_headline_names_every_group_with_the_highest_and_the_lowest_rate(large, shuffle):
    rates = [a / 20 for a, _ in large]
    high, low = ends(rates)
    assert [rates[k] for k in high] == [max(rates)] * rates.count(max(rates))
    assert [rates[k] for k in low] == [min(rates)] * rates.count(min(rates))
    text = said(large)
    if max(rates) > min(rates):
        for at in (high, low):
            assert f"g{at[0]}" in text
            assert ("others" in text) or len(at) < 3
            assert len(at) != 2 or f"g{at[0]} and g{at[1]}" in text


@pytest.mark.parametrize("when", ["without a rule", "with a rule"])
def test_an_audit_names_the_same_groups_whatever_small_groups_are_added(when):
    rule = None
    if when == "with a rule":
        scores = np.tile(np.linspace(0.01, 0.99, 50), 4)
        with pytest.warns(fairramp.FairrampWarning, match="fewer than 30"):
            rule = fairramp.fit_rule(np.append(scores, [0.1, 0.9, 0.2, 0.8]), [*"AB" * 100, *"XXYY"], max_gap=0.1)
    alone, more = (fairramp.audit(*decisions(*groups), rule=rule).sentences() for groups in (BASE, BASE + SMALL))
    assert alone[0] == more[0]
    assert "A 50.0% of 200 rows, B 30.0% of 300 rows" in more[0]
    assert "2 of 4 groups have fewer than 30 rows, too few to judge" in " ".join(more)
    assert "too few to judge" not in " ".join(alone)


def test_gaps_gates_and_results_include_small_groups():
    found = fairramp.audit(*decisions(*BASE, *SMALL))
    assert (found.gap, found.ratio) == (1.0, 0.0)
    assert found.gaps()["gap"].tolist() == [1.0]
    assert len(found.table()) == 4
    gates = Gates(found, fail_unless_below=0.3)
    assert gates.to_dict()["gap"] == 1.0
    # The large groups are shown to be within 30 points; the small ones are not.
    assert Gates(fairramp.audit(*decisions(*BASE)), fail_unless_below=0.3).exit_code == 0
    assert gates.exit_code != 0
    assert gates.sentences()[0].endswith("; this includes 2 groups with fewer than 30 rows.")


def test_if_fewer_than_two_groups_are_large_all_are_compared_and_a_sentence_says_so():
    found = fairramp.audit(*decisions(("A", 200, 100), ("X", 2, 2)))
    first, second = found.sentences()
    assert first.startswith("Selection rate: X 100.0% of 2 rows, A 50.0% of 200 rows")
    assert second.startswith("Fewer than two groups have at least 30 rows")
    assert judged([200, 2]).all()
    assert too_small([200, 300]) is None
    assert too_small([2]) is None


def test_with_strata_only_pairs_of_large_groups_in_the_same_stratum_lead():
    decided, groups = decisions(("A", 200, 100), ("B", 300, 90), ("A", 200, 190), ("B", 5, 0))
    strata = np.repeat(["s", "t"], [500, 205])
    found = fairramp.audit(decided, groups, strata=strata)
    assert found.gap == pytest.approx(0.95)
    first, second = found.sentences()
    assert first.startswith("Selection rate: s / A 50.0% of 200 rows, s / B 30.0% of 300 rows")
    assert second.startswith("1 of 4 groups has fewer than 30 rows")


def test_each_attribute_has_its_own_headline_and_count_of_small_values():
    decided, sex = decisions(*BASE)
    race = np.array(["p"] * 240 + ["q"] * 257 + ["r"] * 3)
    found = fairramp.audit(decided, {"sex": sex, "race": race}, combine="each").sentences()
    assert "1 of 3 groups by race has fewer than 30 rows" in " ".join(found)
    assert "by sex has" not in " ".join(found)


def test_tied_rates_are_all_named_with_the_sum_of_their_rows():
    one = comparison([0.5, 0.5, 0.1], ["A", "B", "C"], rows=[100, 200, 400])
    assert one == "Selection rate: A and B 50.0% of 300 rows, C 10.0% of 400 rows (5.0 times as high)."
    assert comparison([0.0, 0.5, 0.0, 0.0], ["A", "B", "C", "D"], rows=[40] * 4) == (
        "Selection rate: B 50.0% of 40 rows; 0 of 120 rows in groups A and 2 others."
    )
    tied = comparison([0.1, 0.2, 0.3, 0.4, 0.0, 0.1], list("ABABAB"), np.array([0, 0, 1, 1, 2, 2]))
    assert tied.endswith("; 2 other strata have the same gap.")


def test_a_rule_leads_with_the_gap_between_large_groups():
    rng = np.random.default_rng(7)
    scores = np.r_[rng.beta(3, 3, 300), rng.beta(2, 3, 400), [0.9, 0.95]]
    groups = np.array(["A"] * 300 + ["B"] * 400 + ["X"] * 2)
    with pytest.warns(fairramp.FairrampWarning, match="fewer than 30"):
        rule = fairramp.fit_rule(scores, groups, max_gap=0.05)
    large = [rule.record.rates["selection"].before[rule.groups.index(k)] for k in "AB"]
    text = " ".join(rule.reached)
    assert text.startswith(f"Gap on the fit rows: {points(abs(large[0] - large[1]))} before, 5.0 points after.")
    assert f"Including the group with fewer than 30 rows: {points(rule.record.gap_before)} before" in text


def test_a_check_names_large_groups_and_its_verdict_still_counts_all():
    rng = np.random.default_rng(8)
    scores, groups = rng.beta(2, 3, 900), np.array(["A", "B", "C"] * 300)
    rule = fairramp.fit_rule(scores, groups, max_gap=0.02)
    few = np.r_[0:600:3, 1:600:3, [2, 5]]
    new = np.where(groups == "C", 0.999, scores)
    found = rule.check(new[few], groups[few])
    assert "C" in found.pair
    assert found.gap == pytest.approx(np.ptp(found.rates))
    text = " ".join(repr(found).split())
    large = points(abs(found.rates[0] - found.rates[1]))
    assert text.startswith(
        f"Between groups with at least 30 rows, the gap is {large} on the new rows. Including the "
    )
    assert "Including the group with fewer than 30 rows: the gap is above the estimated limit of " in text
    assert f", but that may be chance: {points(found.gap)} [" in text
    named = text.partition(" Of groups with at least 30 rows, furthest apart: ")[2].partition("rows.")
    assert "A " in named[0]
    assert "B " in named[0]
    assert "C " not in named[0]
    assert named[2].startswith(" False alarm rate: ")


@pytest.mark.parametrize("large", ["AB", "A"])
def test_a_check_names_the_small_group_that_makes_it_fail(large):
    scores, groups = np.tile(np.linspace(0, 1, 1000), 3), np.repeat(["A", "B", "C"], 1000)
    rule = fairramp.fit_rule(scores, groups, target_rate=0.6)
    new = np.r_[scores[: 1000 * len(large)], np.zeros(25)]
    found = rule.check(new, np.r_[groups[: 1000 * len(large)], ["C"] * 25])
    assert found.has_drifted
    text = " ".join(repr(found).split())
    assert ", C 0.0% of 25 rows." in text
    assert "only groups" not in text


def test_a_failed_check_names_large_groups_and_the_small_one_further_apart():
    scores, groups = np.tile(np.linspace(0, 1, 1000), 3), np.repeat(["A", "B", "C"], 1000)
    rule = fairramp.fit_rule(scores, groups, target_rate=0.6)
    few = np.r_[0:1000, 1000:1900, 2000:2025]
    text = " ".join(repr(rule.check(scores[few], groups[few])).split())
    a, b, c = "A 60.0% of 1,000 rows", "B 55.6% of 900 rows", "C 0.0% of 25 rows"
    assert f" Of groups with at least 30 rows, furthest apart: {a}, {b}. Of all groups: {a}, {c}." in text


def test_evidence_leads_with_large_categories_their_people_and_intervals():
    decided, groups = decisions(*BASE, *SMALL)
    with_small = fairramp.evidence(decided, groups, report=False)
    without = fairramp.evidence(*decisions(*BASE), report=False)
    rows = list(with_small.content.findings.rows())
    assert [row.pop("too_small") for row in rows] == [2, 2]
    assert list(map(plain, rows)) == list(map(plain, without.content.findings.rows()))
    high, low = rows
    assert (high["category"], high["people"], low["category"], low["people"]) == ("A", 200, "B", 300)
    assert low["impact_ratio"] == pytest.approx(0.6)
    for row in rows:
        assert row["selection_rate_low"] < row["selection_rate"] < row["selection_rate_high"]
    assert low["impact_ratio_low"] < 0.6 < low["impact_ratio_high"]
    # The tables keep every category, and ratios to the highest rate of all.
    assert dict(zip(*(with_small.impact_ratios[name] for name in ("category", "impact_ratio")), strict=True)) == {
        "A": 0.5, "B": pytest.approx(0.3), "X": 1.0, "Y": 0.0
    }  # fmt: skip
    page = with_small.files["impact-ratios.md"]
    assert "2 of 4 categories have fewer than 30 people, too few to judge" in page
    assert "Highest rate: A, 50.0%" in page


def test_classes_lead_with_the_gap_between_large_groups():
    decided = ["a"] * 60 + ["b"] * 140 + ["a"] * 150 + ["b"] * 150 + ["a"] * 2
    groups = ["F"] * 200 + ["M"] * 300 + ["X"] * 2
    found = fairramp.audit_classes(decided, groups)
    first, second, third, *_ = found.sentences()
    assert first == "Largest gap: 20.0 points, classes a and b."
    assert second.startswith("Including the group with fewer than 30 rows: 70.0 points [")
    assert third.startswith("Rate of class a: M 50.0% of 300 rows, F 30.0% of 200 rows")
    assert found.gap == pytest.approx(0.7)


def test_the_report_names_no_small_group_in_its_sentence():
    rng = np.random.default_rng(9)
    scores = np.r_[rng.beta(3, 3, 300), rng.beta(2, 3, 400), [0.97, 0.95]]
    groups = np.array(["A"] * 300 + ["B"] * 400 + ["tiny"] * 2)
    with pytest.warns(fairramp.FairrampWarning, match="fewer than 30"):
        rule = fairramp.fit_rule(scores, groups, max_gap=0.3)
    content = rule.report(scores, groups).content
    assert "tiny" not in content.sentence
    texts = say(content, content.outcomes[content.own])
    assert "tiny" not in texts["lead_selection"][0] + texts["label_selection"][0]
    assert "tiny" in " ".join(content.notes)


def test_a_monitor_leads_with_the_gap_between_large_groups():
    rng = np.random.default_rng(10)
    scores, groups = rng.beta(2, 3, 900), np.array(["A", "B", "C"] * 300)
    monitor = fairramp.fit_rule(scores, groups, max_gap=0.02).monitor()
    few = np.r_[0:600:3, 1:600:3, [2, 5]]
    monitor.update(scores[few], groups[few])
    text, large = monitor.sentence(), points(abs(monitor.rates[0] - monitor.rates[1]))
    assert text.startswith(
        f"Between groups with at least 30 rows, the gap is {large} on 402 rows. Including the group with"
    )
    monitor.update(scores, groups)
    assert "30 rows" not in " ".join(monitor.sentences())


def test_an_alarm_says_that_its_gap_includes_small_groups():
    rng = np.random.default_rng(10)
    scores, groups = rng.beta(2, 3, 4500), np.array(["A", "B", "C"] * 1500)
    monitor = fairramp.fit_rule(scores, groups, max_gap=0.02).monitor()
    few = np.r_[0:4500:3, 1:4500:3, [2, 5]]
    monitor.update(np.where(groups == "A", 0.999, scores)[few], groups[few])
    assert monitor.has_drifted
    assert monitor.sentence().endswith("The gap includes 1 group with fewer than 30 rows.")


def with_tiny(n_tiny=1, seed=11):
    """Scores, groups and labels: A and B are large and close, and groups of 5 rows are far away."""
    rng = np.random.default_rng(seed)
    groups = np.array(["A", "B"], dtype=object)[np.arange(4000) % 2]
    scores = rng.beta(2, 3, 4000)
    for i in range(n_tiny):
        groups[5 * i : 5 * i + 5] = f"tiny{i}"
        scores[5 * i : 5 * i + 5] = [0.01, 0.02, 0.03, 0.04, 0.9]
    return scores, groups, (rng.random(4000) < scores).astype(int)


def large_gap(rates, groups=("A", "B")):
    """The gap between A and B, in words; they are the first two groups."""
    return points(abs(rates[0] - rates[1]))


@pytest.mark.filterwarnings("ignore:Groups with fewer than")
def test_a_report_compares_two_rules_by_the_gap_between_large_groups():
    s, g, y = with_tiny()
    new, _, _ = with_tiny(seed=12)
    rule = fairramp.fit_rule(s, g, max_gap=0.05)
    other = fairramp.fit_rule(np.where(g == "B", s * 0.9, s), g, max_gap=0.5)
    found = rule.report(new, g, y, compare=other).content.compared
    ours, theirs = (fairramp.audit(new, g, rule=one).after for one in (rule, other))
    assert found.sentence.endswith(
        f" Gap: {large_gap(ours.rate)} here, {large_gap(theirs.rate)} under the other rule. Including the group "
        f"with fewer than 30 rows: {points(ours.gap)} here, {points(theirs.gap)} under the other rule."
    )
    limits = fairramp.fit_rule(s, g, min_ratio=0.8)
    found = limits.report(new, g, y, compare=other).content.compared
    ours, theirs = ([one.rate[0], one.rate[1]] for one in (fairramp.audit(new, g, rule=limits).after, theirs))
    shown = [f"{min(pair) / max(pair):.2f}" for pair in (ours, theirs)]
    assert f" Ratio: {shown[0]} here, {shown[1]} under the other rule. Including the group with" in found.sentence


@pytest.mark.filterwarnings("ignore:Groups with fewer than")
def test_the_top_of_a_report_says_which_gap_counts_small_groups():
    s, g, y = with_tiny()
    rule = fairramp.fit_rule(s, g, max_gap=0.05)
    content = rule.report(s * 0.99, g, y).content
    why = content.outcomes[content.own].judgment.on_people
    assert "These rows are new, and there the gap of all groups, with those too small to judge, is " in why


@pytest.mark.filterwarnings("ignore:Groups with fewer than")
@pytest.mark.parametrize("n_tiny", [1, 3])
def test_checks_and_monitors_of_a_rule_with_small_groups_lead_without_them(n_tiny):
    s, g, _ = with_tiny(n_tiny)
    rule = fairramp.fit_rule(s, g, max_gap=0.05)
    for found in (rule.check(s, g), rule.monitor().update(s, g)):
        first, _, second = found.sentence().partition(" All groups, including the ")
        assert first.startswith("Without tiny0 (5 fit rows)")
        groups = "group" if n_tiny == 1 else "3 groups"
        assert second.startswith(f"{groups} with fewer than 30 rows: ")
        assert "includes" not in " ".join(found.sentences())


def test_a_shortlist_names_large_groups_and_counts_the_others():
    s, g, _ = with_tiny(3)
    found = fairramp.select(s, g, places=400, max_gap=0.05)
    text = found.sentences()[1]
    assert "tiny" not in text
    assert text.endswith(
        "3 of 5 groups have fewer than 30 rows, too few to judge, and are left out above; tables and gaps "
        "include them."
    )
    small = fairramp.select([0.9, 0.8, 0.7, 0.6], ["A", "A", "B", "B"], places=1, max_gap=1)
    assert "30 rows" not in " ".join(small.sentences())


def test_a_frontier_leads_with_the_gap_between_large_groups():
    s, g, y = with_tiny(3)
    found = fairramp.frontier(s, g, y, max_gaps=[0.1])
    own = fairramp.audit(s, g).before
    assert found.own_gap == pytest.approx(own.gap)
    assert found.own.startswith(f"The classifier's own decisions: gap {large_gap(own.rate)}, accuracy ")
    assert found.own.endswith(f" Including the 3 groups with fewer than 30 rows: gap {points(own.gap)}.")
    large = ~np.isin(g, ["tiny0", "tiny1", "tiny2"])
    assert "30 rows" not in fairramp.frontier(s[large], g[large], y[large], max_gaps=[0.1]).own


@pytest.mark.filterwarnings("ignore:Groups with fewer than")
def test_a_frontier_of_classes_leads_with_the_gap_between_large_groups():
    s, g, y = with_tiny(1)
    p = np.column_stack([s, (1 - s) / 2, (1 - s) / 2])
    found = fairramp.class_frontier(p, g, y, max_gaps=[0.1])
    own = fairramp.audit_classes(p, g).before
    assert found.own_gap == pytest.approx(own.gap)
    gaps = [abs(one.rate[0] - one.rate[1]) for one in own.rates.values()]
    assert found.own.startswith(f"The classifier's own decisions: largest gap {points(max(gaps))}, accuracy ")
    assert found.own.endswith(f" Including the group with fewer than 30 rows: largest gap {points(own.gap)}.")


def test_intersections_lead_with_the_gap_between_large_ones():
    decided, sex = decisions(*BASE)
    race = np.array(["p", "q"] * 100 + ["p"] * 297 + ["q"] * 3)
    found = fairramp.audit(decided, {"sex": sex, "race": race}, combine="each").intersections
    rates = np.array(found.before.rate)[np.array(found.rows) >= SMALL_GROUP]
    assert len(rates) == 3
    large, text = points(np.ptp(rates)), found.as_intersections()
    assert text.startswith(
        f"Intersections: gap {large}. With 1 group with fewer than 30 rows: {points(found.gap)} ["
    )


def test_intersections_have_a_gap_if_every_label_is_the_same():
    columns = {"sex": ["F", "M"] * 100, "age": ["old"] * 100 + ["young"] * 100}
    decisions = np.tile([0, 1, 1, 1], 50)
    found = fairramp.audit(decisions, columns, np.ones(200), combine="each", criterion="equalized_odds")
    assert found.intersections.as_intersections().startswith(
        "Intersections: gap between error rates 50.0 points ["
    )


@pytest.mark.filterwarnings("ignore:Groups with fewer than")
def test_the_report_on_classes_leads_with_the_gap_between_large_groups():
    hours = fairramp.datasets.load_adult_hours()
    few = np.r_[:900]
    groups = hours.sex[few].astype(object)
    rule = fairramp.fit_class_rule(hours.probabilities[few], groups, classes=hours.classes, max_gap=0.02)
    alone = rule.report(hours.probabilities[few], groups).content
    groups[:3] = "tiny"
    rule = fairramp.fit_class_rule(hours.probabilities[few], groups, classes=hours.classes, max_gap=0.02)
    content = rule.report(hours.probabilities[few], groups).content
    assert content.before.gap >= content.largest_gaps[0]
    assert content.largest_gaps[0] == pytest.approx(alone.before.gap, abs=0.03)
    assert content.largest_gaps[1] <= 0.02 + 1e-9
