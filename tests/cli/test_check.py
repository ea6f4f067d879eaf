"""`fairramp check` reports what `Rule.check` finds, with a matching exit code."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fairramp import Rule
from samples import quiet_fit
from shell import Inside

RNG = np.random.default_rng(0)
SIZES = (40, 1500, 2500)
GROUPS = np.repeat(["", "men", "women"], SIZES)
SCORES = RNG.beta(2, 3, sum(SIZES)).round(4)


@pytest.fixture
def inside(tmp_path):
    return Inside(tmp_path)


def save(shell, name, scores, groups=GROUPS, **more):
    columns = {"p": scores, "unit": groups} | more
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return shell.write(name, "\n".join([",".join(columns), *lines]) + "\n")


def rule_of(shell, keep=slice(None)):
    save(shell, "fit.csv", SCORES[keep], GROUPS[keep])
    shell("fit", "fit.csv", "--score", "p", "--group", "unit", "-o", "rule.json", "-q")
    return Rule.load(shell.folder / "rule.json")


def drifted(by, group="women"):
    return np.where(group == GROUPS, np.minimum(SCORES + by, 1), SCORES).round(4)


def words(text):
    return " ".join(text.split())


BIG = GROUPS != ""


@pytest.mark.parametrize(("by", "code"), [(0.0, 0), (0.2, 1)])
def test_output_and_exit_code_match_the_library(inside, by, code):
    rule = rule_of(inside, BIG)
    new = drifted(by)[BIG]
    save(inside, "new.csv", new, GROUPS[BIG])
    done = inside("check", "rule.json", "new.csv", code=code)
    found = rule.check(new, GROUPS[BIG])
    assert found.has_drifted == bool(code)
    assert found.table().text(80) in done.stdout
    assert done.stdout.startswith("4,000 rows in new.csv, by unit\n")
    assert (found.verdict, found.is_sound) == ("exceeded" if code else "within", True)
    first, second = found.sentences()
    assert f"Check {'failed' if code else 'passed'}. {first} {second}" in words(done.stdout)
    assert all(len(line) <= 80 for line in done.stdout.split("\n"))
    content = json.loads(inside("check", "rule.json", "new.csv", "--json", code=code).stdout)
    assert (content["command"], content["has_drifted"]) == ("check", bool(code))
    assert content["verdict"] == found.verdict
    assert content["gap"] == pytest.approx(found.gap, abs=1e-12)  # rows are summed in another order
    assert content["limit"] == found.limit
    assert [row["fit_rate"] for row in content["groups"]] == list(rule.record.rates["selection"].after)
    assert [row["new_rate"] for row in content["groups"]] == pytest.approx(list(found.rates), abs=1e-12)
    assert set(content["pair"]) == set(found.pair)
    assert content["left_out"] == []


def test_quiet_reports_only_an_exceeded_limit(inside):
    rule_of(inside, BIG)
    save(inside, "new.csv", drifted(0.2)[BIG], GROUPS[BIG])
    done = inside("check", "rule.json", "new.csv", "-q", code=1)
    assert done.stdout == ""
    assert done.stderr.startswith("warning: check failed. Above the estimated limit of ")
    done = inside("check", "rule.json", "fit.csv", "-q")
    assert (done.stdout, done.stderr) == ("", "")


def test_blank_cells_do_not_hide_drift(inside):
    rule = rule_of(inside)
    new = drifted(0.1)
    save(inside, "new.csv", new)
    found = rule.check(new, GROUPS)
    assert (found.has_drifted, found.left_out) == (True, (("", 40),))
    text = words(inside("check", "rule.json", "new.csv", code=1).stdout)
    assert "Check failed. Without (blank) (40 fit rows): above the estimated limit of" in text
    assert " All groups: " in text
    content = json.loads(inside("check", "rule.json", "new.csv", "--json", code=1).stdout)
    assert content["has_drifted"]
    assert content["left_out"] == [{"group": "", "rows": 40}]
    assert content["limit"] == rule.certificate().rest.estimated
    assert [one["left_out"] for one in content["comparisons"]] == [[], content["left_out"]]


def test_named_columns_weights_and_several_files(inside):
    rule = rule_of(inside)
    weights = RNG.integers(1, 4, len(SCORES))
    (inside.folder / "new").mkdir()
    for i, part in enumerate((slice(0, 2000), slice(2000, None))):
        lines = zip(SCORES[part], GROUPS[part], weights[part], strict=True)
        inside.write(f"new/{i}.csv", "s,g,w\n" + "".join(f"{s},{g},{w}\n" for s, g, w in lines))
    named = ("--score", "s", "--group", "g", "--weight", "w", "--confidence", "0.9", "--json")
    content = json.loads(inside("check", "rule.json", "new", *named).stdout)
    found = rule.check(SCORES, GROUPS, sample_weight=weights, confidence=0.9)
    assert [row["new_rate"] for row in content["groups"]] == pytest.approx(list(found.rates), abs=1e-12)
    assert content["gap_interval"] == pytest.approx(list(found.gap_interval), abs=1e-9)
    assert content["limit"] == pytest.approx(found.limit)
    assert inside.error("check", "rule.json", "new") == inside.error("audit", "new", "--rule", "rule.json")


def test_unseen_groups_are_left_out_and_counted(inside):
    rule = quiet_fit(SCORES[BIG], {"unit": GROUPS[BIG]}, unseen_group="pooled")
    rule.save(inside.folder / "rule.json")
    save(inside, "new.csv", SCORES)
    done = inside("check", "rule.json", "new.csv", "--score", "p")
    assert "40 rows left out: groups not in the fit rows, or zero weight." in done.stdout
    assert " ".join(rule.check(SCORES[BIG], GROUPS[BIG]).sentences()) in words(done.stdout)


def test_group_names_send_no_escape_codes(inside):
    groups = np.where(GROUPS == "", "\x1b[31m", GROUPS)
    rule = quiet_fit(SCORES, {"unit": groups})
    rule.save(inside.folder / "rule.json")
    save(inside, "new.csv", drifted(0.3), groups)
    assert "\x1b" not in repr(rule.certificate()) + repr(rule.check(drifted(0.3), groups))
    done = inside("check", "rule.json", "new.csv", "--score", "p", code=1)
    assert "[31m" in done.stdout
    assert "\x1b" not in done.stdout


def test_each_stratum_has_its_own_limit(inside):
    groups, strata = np.arange(4040) % 2, np.arange(4040) % 3
    rule = quiet_fit(SCORES, {"unit": groups}, strata={"site": strata})
    rule.save(inside.folder / "rule.json")
    new = np.where((strata == 1) & (groups == 1), np.minimum(SCORES + 0.3, 1), SCORES).round(4)
    save(inside, "new.csv", new, groups, site=strata)
    content = json.loads(inside("check", "rule.json", "new.csv", "--score", "p", "--json", code=1).stdout)
    assert (content["stratum"], content["pair"][0]) == (1, [1, 1])
    assert len(content["groups"]) == 6
    assert "Stratum: 1." in words(inside("check", "rule.json", "new.csv", "--score", "p", code=1).stdout)


def test_uncheckable_input_fails(inside):
    rule = rule_of(inside, BIG)
    replace(rule, record=None).save(inside.folder / "bare.json")
    assert "No certificate: the rule has no record" in inside.error("check", "bare.json", "fit.csv")
    replace(rule, record=replace(rule.record, cross_fitted=True)).save(inside.folder / "cross.json")
    assert inside.error("check", "cross.json", "fit.csv").startswith("No certificate from the fit rows: ")
    assert inside.error("check", "none.json", "fit.csv").startswith("The rule none.json does not exist")
    assert "--confidence" in inside.error("check", "rule.json", "fit.csv", "--confidence", "2")
    assert "the rule comes first" in inside.error("check", "fit.csv", "rule.json")
