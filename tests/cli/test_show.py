"""`fairramp show`: the contents of a rule file as text and JSON, and what is missing from it."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from fairramp import Columns, Ramp, Rule
from samples import quiet_fit
from shell import Inside

SCORES = np.random.default_rng(0).beta(2, 3, 6000)


@pytest.fixture
def inside(tmp_path):
    return Inside(tmp_path)


def saved(shell, rule):
    rule.save(shell.folder / "rule.json")
    return rule


def said(shell, *options):
    return " ".join(shell("show", "rule.json", *options).stdout.split())


def test_fitted_rule_shows_its_whole_record(fitted):
    rule = Rule.load(fitted.folder / "rule.json")
    text = said(fitted)
    for part in (
        f"score column p, a probability from 0 to 1; the classifier says yes at {rule.cutoff:g} or above",
        "groups column g; a group not in the fit rows raises an error",
        f"fitted to {sum(rule.record.rows):,} rows, by fairramp {rule.record.version}; date: not given",
        f"rule fingerprint {rule.fingerprint}",
        f"data fingerprint {rule.record.fingerprint}",
        rule.record.gaps,
        " ".join(repr(rule.certificate()).split()),
        "about 95% of them and within the proven limit for at least 95%",
        "The limits do not cover error rates",
        "check new rows from time to time with fairramp check or fairramp monitor.",
    ):
        assert part in text, part
    assert rule.table().text(80) in fitted("show", "rule.json").stdout


def test_json_matches_the_library(fitted):
    rule = Rule.load(fitted.folder / "rule.json")
    content = json.loads(fitted("show", "rule.json", "--json", "--confidence", "0.9").stdout)
    certificate = rule.certificate(0.9)
    assert (content["command"], content["rule"], content["rows"]) == ("show", "rule.json", sum(rule.record.rows))
    assert (content["score_column"], content["group_columns"]) == ("p", ["g"])
    assert [row["threshold"] for row in content["groups"]] == list(rule.thresholds)
    assert content["certificate"]["estimated"] == certificate.estimated
    assert content["certificate"]["proven"] == certificate.proven
    assert content["certificate"]["assumptions"] == certificate.assumptions
    assert content["why_no_certificate"] is None
    assert content["rule_fingerprint"] == rule.fingerprint


def test_small_groups_are_named_with_the_limit_for_the_rest(inside):
    groups = np.repeat(["a", "b", "c", "d"], (25, 29, 2946, 3000))
    rule = saved(inside, quiet_fit(SCORES, groups, max_gap=0.01))
    certificate, text = rule.certificate(), said(inside)
    assert "Groups with fewer than 30 fit rows, whose rates are unreliable: a (25 rows), b (29 rows)." in text
    rest = f"Without a (25 fit rows), b (29 fit rows): {certificate.rest.limits()}."
    assert f"The uncertainty is largest for group a (25 fit rows). {rest}" in text
    content = json.loads(inside("show", "rule.json", "--json").stdout)["certificate"]
    assert content["widest_for"] == {"group": "a", "rows": 25}
    assert [one["group"] for one in content["left_out"]] == ["a", "b"]
    assert content["rest"]["estimated"] == certificate.rest.estimated


@pytest.mark.parametrize(("max_gap", "helps"), [(0.0, False), (0.02, True), (0.9, False)])
def test_certificate_above_max_gap_says_what_helps(inside, max_gap, helps):
    rule = saved(inside, quiet_fit(SCORES, np.repeat(["a", "b"], 3000), max_gap=max_gap))
    assert (0 < max_gap < rule.certificate().estimated) == helps
    text = "The estimated limit is above the 2.0 points of --max-gap, which applies only to the fit rows."
    assert (text in said(inside)) == helps
    assert ("fit with --confidence 0.95; fairramp rows-needed shows how many" in said(inside)) == helps


def test_gap_limit_for_the_population_is_shown(inside):
    rule = saved(
        inside, quiet_fit(SCORES, np.repeat(["a", "b"], 3000), max_gap=0.05, confidence=0.9, target_rate=0.3)
    )
    text = said(inside)
    assert "at most 5.0 points with 90% confidence (estimated limit)" in text
    assert "which holds on the fit rows alone" not in text
    content = json.loads(inside("show", "rule.json", "--json").stdout)
    assert content["asked"] == {"max_gap": 0.05, "confidence": 0.9, "limit": "estimated"}
    assert content["max_gap"] == rule.max_gap


def test_missing_record_is_reported(inside):
    rule = quiet_fit(SCORES, np.repeat(["a", "b"], 3000))
    saved(inside, replace(rule, record=None, columns=Columns(groups=("unit",))))
    text = said(inside)
    assert "score column name unknown" in text
    assert "groups column unit;" in text
    assert "fitted unknown, because the rule has no record of its fit" in text
    assert "exported without its record." in text
    assert "confidence" not in text
    content = json.loads(inside("show", "rule.json", "--json").stdout)
    assert (content["certificate"], content["rows"], content["gap_after"]) == (None, None, None)
    assert "No certificate: the rule has no record" in content["why_no_certificate"]


def test_cross_fitted_scores_and_one_group_are_not_certified(inside):
    rule = quiet_fit(SCORES, np.repeat(["a", "b"], 3000))
    saved(inside, replace(rule, record=replace(rule.record, cross_fitted=True)))
    assert "on cross-fitted scores" in said(inside)
    assert "No certificate from the fit rows: " in said(inside)
    saved(inside, quiet_fit(SCORES, np.repeat(["a"], 6000)))
    assert said(inside).endswith("There is one group, so there is no gap to limit.")


@pytest.mark.parametrize("n", [17, 18, 200])
def test_long_tables_are_shortened_without_all(inside, n):
    saved(inside, quiet_fit(SCORES, np.arange(6000) % n))
    short, whole = (inside("show", "rule.json", *more).stdout for more in ([], ["--all"]))
    assert ("with --all" in short) == (n > 17)
    assert "--all" not in whole
    assert re.findall(r"^(\d+) +\d+ ", whole, re.MULTILINE) == [str(g) for g in range(n)]


@pytest.mark.parametrize(
    "options",
    [
        {"unseen_group": "pooled", "date": "2024-05-01"},
        {"unseen_group": "original", "max_gap": 0.1, "ramp": "paper"},
        {"ramp_width": 0, "target_rate": 0.3},
        {"strata": "a department"},
        {"scale": "percent"},
        {"scale": "logit"},
        {"scale": "real", "cutoff": 0.0},
        {"sample_weight": np.linspace(1, 2, 6000)},
        {"solver": "sgd", "target_rate": 0.5},
    ],
    ids=lambda options: next(iter(options)),
)
def test_every_kind_of_rule_fits_80_columns(inside, options):
    if "strata" in options:
        options = {"strata": {"a department": np.arange(6000) % 3}}
    scores = SCORES * {"percent": 100}.get(options.get("scale"), 1)
    rule = saved(inside, quiet_fit(scores, {"a column of groups": np.repeat(["women", "men"], 3000)}, **options))
    done = inside("show", "rule.json")
    assert all(len(line) <= 80 for line in done.stdout.split("\n"))
    content = json.loads(inside("show", "rule.json", "--json").stdout)
    unit = 100 if rule.scale == "percent" else 1
    assert content["ramp_width"] == pytest.approx(rule.ramps[0].width * unit)
    if rule.pooled:
        assert content["pooled"]["threshold"] == rule.threshold_of(rule.pooled)
        assert f"a group not in the fit rows gets the threshold {rule.threshold_of(rule.pooled):.4f}" in said(
            inside
        )


def test_names_with_newlines_stay_on_one_line(inside):
    saved(
        inside,
        Rule(
            ("a", "b"),
            (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)),
            columns=Columns(groups=("a\nb\x1b[31m",)),
        ),
    )
    assert "\x1b" not in inside("show", "rule.json").stdout
    assert "groups column a b [31m;" in said(inside)


def test_bad_arguments_fail(inside):
    assert inside.error("show", "none.json") == "The rule none.json does not exist; create it with fairramp fit."
    saved(inside, quiet_fit(SCORES, np.repeat(["a", "b"], 3000)))
    assert inside.error("show", "rule.json", "--confidence", "2").startswith("--confidence must be between")
    assert inside("show", "rule.json", "--quiet").stdout == ""


def test_borrowing_is_shown(inside):
    rng = np.random.default_rng(3)
    groups = np.repeat(["a", "b", "c"], (300, 40, 35))
    z = rng.normal(-0.5 + 0.4 * (groups == "b"), 1.2)
    lines = [f"{1 / (1 + np.exp(-x)):.6f},{g}" for x, g in zip(z, groups, strict=True)]
    (inside.folder / "rows.csv").write_text("\n".join(["p,g", *lines]) + "\n")
    options = ("--score", "p", "--group", "g", "--small-groups", "borrow", "-o", "rule.json", "--replace")
    fitted = inside("fit", "rows.csv", *options).stdout
    rule = Rule.load(inside.folder / "rule.json")
    assert rule.record.borrowed is not None
    for text in (fitted, inside("show", "rule.json").stdout):
        assert "rates on the fit rows are no longer exactly equal" in " ".join(text.split())
        assert "borrowed" in text
    content = json.loads(inside("show", "rule.json", "--json").stdout)
    assert [row["borrowed"] for row in content["groups"]] == list(rule.record.borrowed)
    refused = inside("fit", "rows.csv", *options, "--weight", "p", code=2).stderr
    assert "--small-groups borrow does not support weights; remove one of the two." in refused
