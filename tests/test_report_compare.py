"""A report compares its rule with another one: every number follows from the probabilities of both rules."""

import json
import re
from dataclasses import replace
from pathlib import Path

import jinja2
import numpy as np
import pytest

import fairramp
import fairramp.show.report
from fairramp import Ramp, Rule
from fairramp.core.words import points
from fairramp.show.report.compare_page import compared_table, compared_texts
from fairramp.show.report.make import make_content
from fairramp.show.words import unmarked
from samples import quiet_fit

GROUPS = np.array(["A", "B", "C"])


def data(n=1500, seed=0):
    """Scores with ties, groups, labels, weights and strata."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n)
    scores = np.clip(0.75 * rng.random(n) + 0.08 * codes, 0, 1).round(3)
    labels = (rng.random(n) < scores).astype(int)
    return scores, GROUPS[codes], labels, rng.integers(1, 5, n).astype(float), rng.choice(["n", "s"], n)


def by_hand(*ramps, **settings):
    return Rule(("A", "B", "C"), ramps, **settings)


HARD = by_hand(Ramp(0.4, 0.0, 0.25), Ramp(0.45, 0.0, 1.0), Ramp(0.5, 0.0))
#: Crosses the ramps of STEEP inside both, at scores between the given ones.
FLAT = by_hand(Ramp.centered(0.4, 0.6), Ramp.centered(0.47, 0.35), Ramp.centered(0.52, 0.9))
STEEP = by_hand(Ramp.centered(0.41, 0.07), Ramp.centered(0.44, 0.13), Ramp.centered(0.55, 0.21))
CONSTANT = by_hand(Ramp.constant(0.3), Ramp.centered(0.5, 0.2), Ramp(0.5, 0.0, 0.5))

FITTED = {
    "gaps": ({"max_gap": 0.02}, {"max_gap": 0.1}),
    "hard": ({"ramp_width": 0}, {"ramp_width": 0.2, "ramp": "paper"}),
    "target and cutoff": ({"target_rate": 0.3}, {"target_rate": "accuracy", "cutoff": 0.4}),
    "ratios": ({"min_ratio": 0.8}, {"min_ratio": 0.95}),
    "gap beside ratio": ({"max_gap": 0.03}, {"min_ratio": 0.9, "overall_rate": 0.2}),
    "opportunity": ({"criterion": "equal_opportunity"}, {}),
    "other criterion": ({}, {"criterion": "predictive_equality"}),
    "odds": ({"criterion": "equalized_odds", "max_gap": 0.02}, {"criterion": "equalized_odds", "max_gap": 0.1}),
    "parity beside odds": ({}, {"criterion": "equalized_odds"}),
}


def sums(values, groups, weights, names):
    """Weighted sum of each group."""
    return np.array([(weights * values)[groups == name].sum() for name in names])


def assert_follows_from_probabilities(rule, other, scores, groups, labels=None, weights=None, strata=None):
    """Check a comparison against the probabilities of both rules, row by row; return it."""
    how = {"strata": strata, "sample_weight": weights}
    content = make_content(rule, scores, groups, labels, compare=other, compare_name="old.json", **how)
    found = content.compared
    p, q = (one.probabilities(scores, groups, strata) for one in (rule, other))
    w = np.ones(len(scores)) if weights is None else weights
    keys = groups if strata is None else np.array([f"{s} / {g}" for s, g in zip(strata, groups, strict=True)])
    names = [group.name for group in content.groups]
    assert set(names) == set(keys)

    def equal(mine, theirs):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12)

    here, there, one = np.maximum(p - q, 0), np.maximum(q - p, 0), np.ones(len(p))
    totals = sums(one, keys, w, names)
    equal(found.only_here, sums(here, keys, w, names) / totals)
    equal(found.only_there, sums(there, keys, w, names) / totals)
    np.testing.assert_allclose(found.rows_only_here, sums(here, keys, one, names), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.rows_only_there, sums(there, keys, one, names), rtol=1e-12, atol=1e-12)
    equal(found.differing, np.average(np.abs(p - q), weights=w))
    assert found.rows_differing == pytest.approx(np.abs(p - q).sum(), rel=1e-12)
    assert found.same == bool((p == q).all())
    equal(found.overall_rate, np.average(q, weights=w))
    equal(found.drawn, np.average((q > 0) & (q < 1), weights=w))
    own = (scores >= rule.cutoff).astype(float)
    equal(found.changed, np.average(np.abs(q - own), weights=w))
    equal(found.changed_to_yes, sums(np.maximum(q - own, 0), keys, w, names) / totals)
    equal(found.changed_to_no, sums(np.maximum(own - q, 0), keys, w, names) / totals)
    for event in content.event.simple:
        of = w if event.label is None else w * (labels == event.label)
        rates = sums(q, keys, of, names) / sums(one, keys, of, names)
        equal(found.after.rates[event.name].rate, rates)
        if strata is None:
            equal(found.after.rates[event.name].gap, rates.max() - rates.min())
            equal(found.after.rates[event.name].ratio, rates.min() / rates.max())
    if labels is not None:
        equal(found.after.overall_accuracy, np.average(np.where(labels == 1, q, 1 - q), weights=w))
    audited = fairramp.audit(scores, groups, labels, rule=other, criterion=rule.criterion, **how).after
    for name in ("rate", "lower", "upper", "gap", "ratio", "gap_interval", "ratio_interval"):
        equal(getattr(found.after, name), getattr(audited, name))
    assert found.fingerprint == other.fingerprint
    return content


@pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", FITTED)
def test_fitted_rules(case, weighted):
    scores, groups, labels, weights, _ = data()
    weights = weights if weighted else None
    pair = [
        quiet_fit(*rows, sample_weight=weights, **settings)
        for rows, settings in zip([data()[:3], data(seed=1)[:3]], FITTED[case], strict=True)
    ]
    for rule, other in (pair, pair[::-1]):
        content = assert_follows_from_probabilities(rule, other, scores, groups, labels, weights)
        assert content.compared.guarantee.estimated == other.certificate().estimated
        assert content.compared.guarantee.proven == other.certificate().proven
        assert content.compared.thresholds == other.thresholds
        assert ("by weight" in content.compared.sentence) == weighted
        assert (content.compared.selected is None) == (rule.criterion == "parity")


@pytest.mark.parametrize("pair", [(FLAT, STEEP), (HARD, FLAT), (CONSTANT, STEEP), (CONSTANT, HARD)])
def test_rules_written_by_hand(pair):
    scores, groups, labels, weights, _ = data()
    for rule, other in (pair, pair[::-1]):
        for rows in ((), (labels,), (labels, weights)):
            found = assert_follows_from_probabilities(rule, other, scores, groups, *rows).compared
        np.testing.assert_array_equal(found.thresholds, other.thresholds)
        np.testing.assert_array_equal(
            found.constant_chances, [r.tie if r.is_constant else np.nan for r in other.ramps]
        )
        np.testing.assert_array_equal(found.tie_chances, [np.nan if r.width else r.tie for r in other.ramps])
        assert "no record of its fit rows" in found.guarantee.sentence
        assert found.guarantee.estimated is None


def test_ramps_that_cross_are_exact_in_bins_too(binned):
    scores, groups, labels, weights, _ = data(n=6000)
    assert_follows_from_probabilities(FLAT, STEEP, scores, groups, labels, weights)


@pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")
def test_strata():
    scores, groups, labels, weights, strata = data()
    rules = [quiet_fit(scores, groups, strata=strata, max_gap=gap) for gap in (0.0, 0.1)]
    for rows in ((None, None), (labels, weights)):
        assert_follows_from_probabilities(*rules, scores, groups, *rows, strata)


def test_decisions_with_one_draw_per_person_differ_as_often_as_expected():
    scores, groups, *_ = data(n=200_000)
    draws = {"ids": np.arange(len(scores)), "key": "0123456789abcdef" * 4}
    ours, theirs = (one.decide(scores, groups, **draws) for one in (FLAT, STEEP))
    found = make_content(FLAT, scores, groups, compare=STEEP).compared
    spread = 5 * np.sqrt(found.differing / len(scores))
    assert np.mean(ours != theirs) == pytest.approx(found.differing, abs=spread)
    assert np.mean(ours > theirs) == pytest.approx(sum(found.rows_only_here) / len(scores), abs=spread)


def test_rule_is_the_same_as_itself():
    scores, groups, labels, *_ = data()
    rule = quiet_fit(scores, groups, max_gap=0.02)
    content = assert_follows_from_probabilities(rule, Rule.from_json(rule.to_json()), scores, groups, labels)
    found = content.compared
    assert found.same
    assert found.settings == ()
    assert found.differing == found.rows_differing == 0
    assert unmarked(found.sentence) == (
        "No decision differs: everyone here has the same probability of being selected as under old.json."
    )
    assert "All settings are the same." in fragment(content)


@pytest.mark.parametrize("policy", ["pooled", "original"])
def test_groups_that_the_other_rule_does_not_know(policy):
    scores, groups, labels, weights, _ = data()
    pooled = Ramp.centered(0.3, 0.1) if policy == "pooled" else None
    other = Rule(
        ("A", "D", "C"), (Ramp.constant(0.5), Ramp(0.2, 0.0), Ramp(0.5, 0.1)), unseen_group=policy, pooled=pooled,
        cutoff=0.35,
    )  # fmt: skip
    found = assert_follows_from_probabilities(STEEP, other, scores, groups, labels, weights).compared
    assert found.unseen == (False, True, False)
    ends = (0.3, 0.25, 0.35) if policy == "pooled" else (0.35, 0.35, 0.35)
    assert (found.thresholds[1], found.ramp_from[1], found.ramp_to[1]) == pytest.approx(ends)
    assert dict((what, theirs) for what, _, theirs in found.settings)["Groups"] == "3; only there: \u2068D\u2069"
    texts = compared_texts(make_content(STEEP, scores, groups, compare=other), [0, 1, 2], 4)
    assert [row.unseen for row in texts.rows] == [False, True, False]


def test_groups_that_only_the_other_rule_knows_are_left_out():
    scores, groups, *_ = data()
    rule = Rule(("A", "B"), STEEP.ramps[:2], unseen_group="original")
    inside = groups != "C"
    for scores_, groups_ in ((scores, groups), (scores[inside], groups[inside])):
        found = make_content(rule, scores_, groups_, compare=FLAT).compared
        assert len(found.only_here) == 2
        apart = np.abs(rule.probabilities(scores_, groups_) - FLAT.probabilities(scores_, groups_))
        assert found.rows_differing == pytest.approx(apart[groups_ != "C"].sum(), rel=1e-12)


def test_lower_scores_may_be_better_and_logits_are_shown_as_probabilities():
    scores, groups, *_ = data()
    down = [replace(one, higher_is_better=False, ramps=tuple(Ramp(r.foot - 1, r.width) for r in one.ramps))
            for one in (FLAT, STEEP)]  # fmt: skip
    found = make_content(down[0], scores, groups, compare=down[1]).compared
    p, q = (one.probabilities(scores, groups) for one in down)
    assert found.rows_differing == pytest.approx(np.abs(p - q).sum(), rel=1e-12)
    assert found.thresholds == down[1].thresholds
    logits = [replace(one, scale="logit", cutoff=0.25, unseen_group="original") for one in (FLAT, STEEP)]
    known = Rule(
        ("A", "C"), (STEEP.ramps[0], STEEP.ramps[2]), scale="logit", cutoff=0.25, unseen_group="original"
    )
    x = np.log(np.clip(scores, 0.01, 0.9) / (1 - np.clip(scores, 0.01, 0.9)))
    found = make_content(logits[0], x, groups, compare=known).compared
    p, q = (one.probabilities(x, groups) for one in (logits[0], known))
    assert found.rows_differing == pytest.approx(np.abs(p - q).sum(), rel=1e-12)
    assert found.thresholds[1] == pytest.approx(1 / (1 + np.exp(-0.25)))


# Words -------------------------------------------------------------------------------------------


def sentence(rule, other, scores, groups, **how):
    return unmarked(make_content(rule, scores, groups, compare=other, **how).compared.sentence)


def test_sentence_counts_people_in_both_directions():
    rule = Rule(("A", "B"), (Ramp(0.5, 0.0, 1.0), Ramp(0.5, 0.0, 1.0)))
    other = Rule(("A", "B"), (Ramp(0.3, 0.0, 1.0), Ramp(0.7, 0.0, 1.0)))
    scores, groups = [0.2, 0.4, 0.45, 0.6, 0.2, 0.6, 0.8, 0.9], list("AAAABBBB")
    assert sentence(rule, other, scores, groups, compare_name="rule-2025.json") == (
        "3 of 8 people (37.5%) get a different decision than under rule-2025.json: 1 is selected only by this "
        "rule, 2 only by the other. Gap: 50.0 points here, 25.0 points under the other rule."
    )
    assert sentence(rule, other, [0.6, 0.6], ["A", "B"]) == (
        "1 of 2 people (50.0%) gets a different decision than under another rule: 1 is selected only by this "
        "rule, 0 only by the other. Gap: 0.0 points here, 100.0 points under the other rule."
    )
    alone = Rule(("A",), (Ramp(0.5, 0.5),)), Rule(("A",), (Ramp(0.5, 0.4),))
    assert sentence(*alone, [0.6], ["A"]) == (
        "On average, fewer than 1 of 1 person (5.0%) gets a different decision than under another rule."
    )
    ratios = replace(rule, max_gap=None, min_ratio=0.8), other
    assert sentence(*ratios, scores, groups).endswith("Ratio: 0.33 here, 0.67 under the other rule.")


def test_rounded_numbers_of_people_add_up():
    rule = Rule(("A", "B"), (Ramp.constant(0.5), Ramp.constant(0.5)))
    for chances in ((0.35, 0.65), (0.95, 0.05), (0.2, 0.6), (0.35, 0.6)):
        other = Rule(("A", "B"), tuple(map(Ramp.constant, chances)))
        text = sentence(rule, other, [0.5] * 20, list("AB" * 10))
        total, here, there = (
            int(n) for n in re.search(r"^(\d+) of .*: (\d+) .*, (\d+) only by the other", text).groups()
        )
        assert here + there == total
        assert here == pytest.approx(10 * max(0.5 - min(chances), 0), abs=1)


def test_equal_gaps_are_said_once():
    rule = Rule(("A", "B"), (Ramp.constant(0.5), Ramp.constant(0.6)))
    other = Rule(("A", "B"), (Ramp.constant(0.3), Ramp.constant(0.4)))
    assert sentence(rule, other, [0.5] * 20, list("AB" * 10)).endswith("Gap: 10.0 points under both rules.")


def test_sentence_has_both_gaps_of_equalized_odds():
    scores, groups, labels, *_ = data()
    rule = quiet_fit(scores, groups, labels, criterion="equalized_odds", max_gap=0.02)
    content = make_content(rule, scores, groups, labels, compare=HARD)
    for name in ("true", "false"):
        here, there = (
            points(one.after.rates[f"{name}_positive"].gap) for one in (content.chosen, content.compared)
        )
        assert here != there
        said = f"Gap between {name} positive rates: {here} here, {there} under the other rule."
        assert said in content.compared.sentence


def test_settings_that_differ_are_listed():
    scores, groups, labels, *_ = data()
    rule = quiet_fit(scores, groups, max_gap=0.02)
    others = {
        "Criterion": {"criterion": "equal_opportunity"},
        "Limit on the fit rows": {"max_gap": 0.05},
        "Target rate": {"target_rate": 0.3},
        "Ramp": {"ramp_width": 0},
        "Classifier's own cutoff": {"cutoff": 0.4},
        "Groups not in the fit rows": {"unseen_group": "original"},
        "Requested gap in the population": {"max_gap": 0.25, "confidence": 0.95},
    }
    expected = {
        "Criterion": ("equal selection rates", "equal true positive rates"),
        "Limit on the fit rows": ("gap at most 2.0 points", "gap at most 5.0 points"),
        "Target rate": ("optimal", "30%"),
        "Ramp": ("0.01 wide, centered on the threshold", "none"),
        "Classifier's own cutoff": ("0.5", "0.4"),
        "Groups not in the fit rows": ("raise an error", "keep the classifier's own decision"),
        "Requested gap in the population": (
            "not given",
            "at most 25.0 points with 95% confidence (estimated limit)",
        ),
    }
    for what, settings in others.items():
        other = quiet_fit(scores, groups, labels, **({"max_gap": 0.02} | settings))
        found = {
            name: texts for name, *texts in make_content(rule, scores, groups, compare=other).compared.settings
        }
        assert tuple(found.pop(what)) == expected[what]
        # The requested gap and another criterion come with another limit or another default target.
        assert set(found) <= {"Limit on the fit rows", "Target rate"} - {what}
    fewer = quiet_fit(scores[groups != "C"], groups[groups != "C"], max_gap=0.02, unseen_group="original")
    settings = make_content(rule, scores, groups, compare=fewer).compared.settings
    assert ("Groups", "3; only here: \u2068C\u2069", "2") in settings


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("rule.json", "`compare` must be a fairramp.Rule, got str; read a rule file with Rule.load."),
        (replace(FLAT, scale="percent", cutoff=50.0), "`compare` is for scores on the scale 'percent', but the"),
        (
            replace(FLAT, higher_is_better=False),
            "`compare` is for scores of which lower ones are better, but the",
        ),
        (
            Rule((("n", "A"),), (Ramp(0.5, 0.1),), stratified=True, target_rate=None),
            "`compare` is for rates that are equal within strata, but the reported rule is for rates that are "
            "equal over all rows; compare rules that take the same columns.",
        ),
        (
            Rule(("A", "B"), FLAT.ramps[:2]),
            "`compare` does not know the group C and raises an error for unseen groups; leave out its rows, or "
            "compare with a rule that was fitted on all groups here.",
        ),
        (Rule(("A",), FLAT.ramps[:1]), "`compare` does not know the groups B, C and raises"),
        (
            Rule(("x",), FLAT.ramps[:1], unseen_group="original"),
            "`compare` knows none of the groups here; compare rules that were fitted on the same group columns.",
        ),
    ],
)
def test_rules_that_cannot_be_compared(other, message):
    scores, groups, *_ = data(n=60)
    with pytest.raises(fairramp.InputError, match=re.escape(message)) as caught:
        STEEP.report(scores, groups, compare=other)
    assert caught.value.argument == "compare"


def test_stratified_rule_needs_a_stratified_rule():
    scores, groups, _, _, strata = data()
    rule = quiet_fit(scores, groups, strata=strata)
    with pytest.raises(fairramp.InputError, match=r"equal over all rows, but the reported rule .* within strata"):
        rule.report(scores, groups, strata=strata, compare=STEEP)


def test_name_needs_a_rule_and_is_text():
    scores, groups, *_ = data(n=60)
    with pytest.raises(fairramp.InputError, match="pass that rule as `compare`"):
        STEEP.report(scores, groups, compare_name="old.json")
    with pytest.raises(fairramp.InputError, match="`compare_name` must be a string, got 5"):
        STEEP.report(scores, groups, compare=FLAT, compare_name=5)


# Data, page and table ----------------------------------------------------------------------------


def test_same_rows_give_the_same_bytes_and_the_same_comparison_in_any_order():
    *columns, weights, _ = data()
    orders = [np.arange(len(weights))] * 2 + [np.random.default_rng(0).permutation(len(weights))]
    made = [
        STEEP.report(
            *(column[order] for column in columns),
            sample_weight=weights[order] / 7,
            compare=CONSTANT,
            compare_name="old",
        ).to_json()
        for order in orders
    ]
    assert made[0] == made[1]
    assert json.loads(made[0])["compared"] == json.loads(made[2])["compared"]
    scores, groups, _ = columns
    compared = json.loads(made[0])["compared"]
    assert compared["name"] == "old"
    assert compared["thresholds"][0] is None
    assert compared["constant_chances"] == [0.3, None, None]
    assert json.loads(STEEP.report(scores, groups).to_json())["compared"] is None


def fragment(content, seats=(0, 1, 2)):
    folder = Path(fairramp.show.report.__file__).parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("compare.html").render(
        other=compared_texts(content, list(seats), 4), other_csv="data:,"
    )


@pytest.mark.parametrize("other", [FLAT, HARD, CONSTANT, "odds"])
def test_fragment_shows_the_numbers_with_all_digits(other):
    scores, groups, labels, *_ = data()
    if other == "odds":
        other = quiet_fit(scores, groups, labels, criterion="equalized_odds")
    for rule in {STEEP, other}:
        content = make_content(rule, scores, groups, labels, compare=other, compare_name="<b>old</b>")
        found, page = content.compared, fragment(content)
        assert "<b>old" not in page
        assert "Compared with <bdi>&lt;b&gt;old&lt;/b&gt;</bdi>" in page
        assert "style=" not in page
        for k, group in enumerate(content.groups):
            row = re.search(f"<bdi>{group.name}</bdi>.*?</tr>", page, re.DOTALL)[0]
            titles = re.findall(r'title="([^"]*)">([^<]*)<', row)
            for event in content.event.simple:
                rate = found.after.rates[event.name].rate[k]
                assert (f"{rate:.12g}", f"{100 * rate:.1f}%") in titles
            only = f"{found.rows_only_there[k]:.12g} ({found.only_there[k]:.12g})"
            assert only in dict(titles)
        assert f'title="{found.overall_rate:.12g}"' in page
        assert ("constant probability there" in page) == any(c == c for c in found.constant_chances)
    assert fragment(make_content(STEEP, scores, groups)).strip() == ""


def test_fragment_says_how_many_groups_it_shows():
    scores, groups, *_ = data()
    page = fragment(make_content(STEEP, scores, groups, compare=FLAT), seats=(0, 2))
    assert "shows the 2 largest of 3 groups" in page
    assert "<bdi>B</bdi>" not in page


def test_limits_are_beside_each_other_only_if_they_are_about_the_same_rates():
    scores, groups, labels, *_ = data()
    rule = quiet_fit(scores, groups, max_gap=0.02)
    for criterion, beside in (("parity", True), ("equal_opportunity", False)):
        other = quiet_fit(scores, groups, labels, criterion=criterion, max_gap=0.05)
        texts = compared_texts(make_content(rule, scores, groups, labels, compare=other), [0], 4)
        assert any("Estimated limit" in name for name, *_ in texts.figures) == beside
        assert "population" in texts.limits


def test_table_has_one_row_per_group_with_all_digits():
    scores, groups, labels, *_ = data()
    rule = quiet_fit(scores, groups, labels, criterion="equalized_odds", max_gap=0.02)
    content = make_content(rule, scores, groups, labels, compare=CONSTANT)
    table, found = compared_table(content), content.compared
    assert list(table["group"]) == list(GROUPS)
    assert tuple(table["rows_only_here"]) == found.rows_only_here
    assert tuple(table["share_only_there"]) == found.only_there
    for name in ("selection", "true_positive", "false_positive"):
        assert tuple(table[f"{name}_rate_there"]) == found.after.rates[name].rate
        assert tuple(table[f"{name}_rate_here"]) == content.chosen.after.rates[name].rate
    np.testing.assert_array_equal(table["threshold_there"], found.thresholds)
    np.testing.assert_array_equal(table["constant_probability_there"], found.constant_chances)
    with pytest.raises(fairramp.InputError, match="no comparison: pass another rule as `compare`"):
        compared_table(make_content(rule, scores, groups, labels))
