"""The description of a rule agrees with the rule, needs nothing but the rule, and is plain JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fairramp import Columns, InputError, Ramp, Rule
from fairramp.show.describe import certificate_of, description, facts, meaning, small_groups
from samples import quiet_fit

SCORES = np.random.default_rng(0).beta(2, 3, 3000)
LABELS = (np.random.default_rng(1).random(3000) < SCORES).astype(int)
GROUPS = {"unit": np.repeat(["a", "b", "c"], (1500, 1480, 20))}
BY_HAND = Rule(("a\n\x1b[31m", "b"), (Ramp(0.4, 0.1), Ramp(0.5, 0.2)), columns=Columns(groups=("x\ny",)))
OPTIONS = {
    "plain": {},
    "pooled": {"unseen_group": "pooled", "date": "2024-05-01", "max_gap": 0.1},
    "original": {"unseen_group": "original", "ramp": "paper", "ramp_width": 0.2},
    "hard": {"ramp_width": 0, "target_rate": 0.3},
    "percent": {"scale": "percent", "unseen_group": "pooled"},
    "weights": {"sample_weight": np.linspace(1, 2, 3000)},
    "strata": {"strata": {"place": np.arange(3000) % 2}},
    "population": {"max_gap": 0.5, "confidence": 0.9},
    "opportunity": {"labels": LABELS, "criterion": "equal_opportunity", "min_ratio": 0.8},
    "odds": {"labels": LABELS, "criterion": "equalized_odds", "max_gap": 0.05},
    "predictive": {"labels": LABELS, "criterion": "predictive_equality", "max_gap": 0.05, "overall_rate": 0.3},
}
RULES = {
    name: quiet_fit(SCORES * (100 if options.get("scale") else 1), GROUPS, **options)
    for name, options in OPTIONS.items()
} | {"by hand": BY_HAND, "without a record": replace(quiet_fit(SCORES, GROUPS), record=None)}


@pytest.fixture(params=RULES)
def rule(request):
    return RULES[request.param]


def test_fields_are_the_rules_attributes_and_plain_json(rule):
    found = description(rule, certificate_of(rule, 0.9))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    for name in ("criterion", "stratified", "target_rate", "ramp", "scale", "cutoff", "unseen_group"):
        assert found[name] == getattr(rule, name)
    assert (found["fit_gap"], found["rule_fingerprint"]) == (rule.max_gap, rule.fingerprint)
    assert [row["threshold"] for row in found["groups"]] == list(rule.thresholds)
    assert (found["pooled"] is None) == (rule.pooled is None)
    for name in ("gap_before", "gap_after", "weighted", "solver", "date"):
        assert found[name] == (rule.record and getattr(rule.record, name))


def test_either_a_certificate_or_the_reason_it_is_missing(rule):
    certificate = certificate_of(rule, 0.9)
    found = description(rule, certificate)
    assert isinstance(certificate, str) == (rule.record is None)
    if rule.record is None:
        assert (found["certificate"], found["why_no_certificate"]) == (None, certificate)
    else:
        assert (found["certificate"], found["why_no_certificate"]) == (certificate.to_dict(), None)
        assert certificate == rule.certificate(0.9)
    with pytest.raises(InputError, match="`confidence`"):
        certificate_of(rule, 2)


def test_a_saved_rule_is_described_the_same(rule, tmp_path):
    rule.save(tmp_path / "rule.json")
    loaded = Rule.load(tmp_path / "rule.json")
    assert facts(loaded) == facts(rule)
    assert small_groups(loaded) == small_groups(rule)
    assert description(loaded, certificate_of(loaded, 0.95)) == description(rule, certificate_of(rule, 0.95))


def test_facts_have_one_line_each_and_leave_out_what_is_unknown(rule):
    found = facts(rule)
    names = [name for name, _ in found]
    assert len(set(names)) == len(names)
    assert all(text and text.isprintable() and len(name) < 8 for name, text in found)
    assert ("data" in names) == (rule.record is not None)
    assert ("strata" in names) == rule.stratified
    assert dict(found)["rule"] == f"fingerprint {rule.fingerprint}"
    assert ("unknown" in dict(found)["fitted"]) == (rule.record is None)


@pytest.mark.parametrize(
    ("settings", "goal"),
    [
        ({}, "equal selection rates, target rate optimal"),
        ({"min_ratio": 0.8}, "selection rates at least 0.8 times the highest, target rate optimal"),
        (
            {"max_gap": 0.1, "overall_rate": 0.3},
            "selection rates at most 10.0 points apart, overall selection rate 30%",
        ),
        (
            {"criterion": "equal_opportunity", "max_gap": 0.02},
            "true positive rates at most 2.0 points apart, target rate accuracy",
        ),
        (
            {"criterion": "equal_opportunity", "target_rate": "balanced_accuracy"},
            "equal true positive rates, target rate balanced accuracy",
        ),
        (
            {"criterion": "predictive_equality", "min_ratio": 0.9, "costs": (5, 1)},
            "false positive rates at least 0.9 times the highest, target rate accuracy, at a cost of 5 per false "
            "positive and 1 per false negative",
        ),
        (
            {"criterion": "equalized_odds", "max_gap": 0.05},
            "true and false positive rates at most 5.0 points apart, chosen for accuracy",
        ),
        ({"criterion": "equalized_odds"}, "equal true and false positive rates, chosen for accuracy"),
        (
            {"criterion": "predictive_equality", "overall_rate": 0.25},
            "equal false positive rates, overall selection rate 25%",
        ),
    ],
)
def test_goal_names_the_rate_the_limit_and_the_level(settings, goal):
    rule = quiet_fit(SCORES, GROUPS, LABELS, **settings)
    assert dict(facts(rule))["goal"] == goal
    found = description(rule, certificate_of(rule, 0.9))
    assert (found["criterion"], found["min_ratio"]) == (rule.criterion, rule.min_ratio)
    assert found["overall_rate"] == settings.get("overall_rate")


def test_small_groups_are_those_with_few_fit_rows(rule):
    rows = [n for _, rates in rule.record.compared for n in rates.rows] if rule.record else ()
    said = small_groups(rule)
    assert (said is not None) == any(n < 30 for n in rows)
    assert said is None or said.count(" rows)") == sum(n < 30 for n in rows)


def test_confidence_is_explained_for_the_limits_there_are():
    for name in ("plain", "weights"):
        certificate = RULES[name].certificate(0.9)
        assert "about 90% of them" in meaning(certificate)
        assert ("within the proven limit for at least 90%" in meaning(certificate)) == (name == "plain")
