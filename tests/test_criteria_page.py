"""The page *Criteria side by side*: it has every criterion, and its numbers are those of audits."""

import re

import numpy as np
import pytest
from scripts.criteria_page import FITTED, GROUPS, PAGE, SETTINGS, data, everything, itself, new, old, page

import fairramp
from fairramp.core.words import percent
from fairramp.fit.fit import CRITERIA


def test_the_page_is_what_its_script_writes():
    assert page() == PAGE.read_text(encoding="utf-8"), "run: python -m scripts.criteria_page"


def test_every_criterion_and_both_limits_have_a_row():
    assert {one.settings.get("criterion", "parity") for one in SETTINGS} == set(CRITERIA)
    given = {name for one in SETTINGS for name in one.settings}
    assert {"criterion", "max_gap", "min_ratio", "target_rate", "overall_rate", "combine"} <= given
    assert any(one.strata for one in SETTINGS)
    for one in SETTINGS:
        assert PAGE.read_text(encoding="utf-8").count(f"| {one.code} |") == 3


@pytest.mark.parametrize("criterion", list(CRITERIA))
def test_rates_accuracy_and_changes_are_those_of_an_audit(criterion):
    rule = fairramp.fit_rule(old("score"), old("sex"), old("label"), criterion=criterion)
    found = fairramp.audit(new("score"), new("sex"), new("label"), rule=rule)
    mine = next(one for one in everything() if one.setting.settings == {"criterion": criterion} or (
        criterion == "parity" and one.setting.short == "parity"))  # fmt: skip
    names = {"selection": "selection", "TPR": "true_positive", "FPR": "false_positive"}
    for i, group in enumerate(found.groups):
        for name, event in names.items():
            rates = found.after.rates[event]
            assert mine.rate(name, group) == (pytest.approx(rates.rate[i]), rates.rows[i])
            assert mine.limits(name, group) == pytest.approx((rates.lower[i], rates.upper[i]))
        assert mine.rate("precision", group)[0] == pytest.approx(found.after.precision[i])
        yes, no = np.sum([mine.moved(group, label) for label in (0, 1)], axis=0) / found.rows[i]
        assert (yes, no) == pytest.approx((found.changed_to_yes[i], found.changed_to_no[i]))
    assert mine.accuracy == pytest.approx(found.after.overall_accuracy)
    assert mine.drawn == pytest.approx(found.randomized)


def test_the_rows_that_measure_are_not_those_of_the_fit():
    assert not set(data.id[:FITTED]) & set(data.id[FITTED:])
    assert len(new("sex")) == len(data.sex) - FITTED


def test_the_change_in_accuracy_is_the_difference_for_the_same_people():
    for one in everything():
        assert one.change[0] == pytest.approx(one.accuracy - itself().accuracy, abs=1e-12)
    assert itself().change == (0.0, 0.0)


def test_rates_that_a_setting_makes_equal_are_bold():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for one in everything():
        row = next(line for line in lines if line.startswith(f"| {one.setting.code} |"))
        bold = re.findall(r"\*\*(.+?)\*\*", row)
        assert bold == [percent(one.rate(name, group)[0]) for name in one.setting.equal for group in GROUPS]


def test_what_the_text_says_without_numbers_holds():
    found = {one.setting.short: one for one in everything()}
    own, rules = itself(), list(everything()[1:])

    def apart(one, name):
        return abs(np.subtract(*(one.rate(name, group)[0] for group in GROUPS)))

    # No setting is more accurate.
    assert all(one.accuracy < own.accuracy for one in rules)
    # Equal opportunity costs little because it changes few decisions; selection rates remain far apart.
    opportunity = found["equal opportunity"]
    low, high = (opportunity.change[0] + sign * opportunity.change[1] for sign in (-1, 1))
    assert low < 0 < high
    assert opportunity.changed == min(one.changed for one in rules)
    assert apart(own, "TPR") < 0.1 < apart(opportunity, "selection")
    # A gap or a ratio changes fewer decisions.
    for short in ("parity, gap of 5 points", "parity, ratio 0.8"):
        assert found[short].changed < found["parity"].changed
    # Under equalized odds, people in both groups lose a yes.
    assert all(found["equalized odds"].moved(group, 1)[1] > 20 for group in GROUPS)
    # Rates that are made equal are about equal on new rows; under parity, precision moves apart.
    for one in rules:
        if "max_gap" not in one.setting.settings and "min_ratio" not in one.setting.settings:
            assert all(apart(one, name) < 0.02 for name in one.setting.equal)
    assert apart(found["parity"], "precision") > apart(own, "precision")
