"""Every command with equalized odds: what is printed and written is what the library measures, for both rates."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import fairramp
from shell import Inside

COLUMNS = ("--score", "p", "--group", "unit", "--label", "y")
NEW = ("rule.json", "new.csv", "--label", "y")
MONITOR = ("monitor", *NEW, "--state", "state.json")


def rows(seed, n=3_000, lift=0.0):
    """Rows in which the women's scores with label 0 are raised by `lift`."""
    rng = np.random.default_rng(seed)
    groups, labels = rng.choice(["men", "women"], n), (rng.random(n) < 0.4).astype(int)
    scores = rng.beta(2 + 2 * labels + (groups == "men") * labels, 3)
    scores += lift * ((groups == "women") & (labels == 0))
    return np.clip(scores, 0, 1).round(4), groups, labels


def save(shell, name, scores, groups, labels):
    lines = [f"{p},{g},{y}" for p, g, y in zip(scores, groups, labels, strict=True)]
    shell.write(name, "\n".join(["p,unit,y", *lines]) + "\n")


def words(text):
    return " ".join(text.split())


@pytest.fixture
def shell(tmp_path):
    shell = Inside(tmp_path)
    save(shell, "fit.csv", *rows(0))
    save(shell, "new.csv", *rows(1))
    shell("fit", "fit.csv", *COLUMNS, "--criterion", "equalized_odds", "--max-gap", "0.01", "-o", "rule.json")
    shell.rule = fairramp.Rule.load(tmp_path / "rule.json")
    return shell


def test_fit_and_show_state_both_gaps(shell):
    scores, groups, labels = rows(0)
    expected = fairramp.fit_rule(scores, {"unit": groups}, labels, criterion="equalized_odds", max_gap=0.01)
    assert shell.rule.record.column("after") == pytest.approx(expected.record.column("after"), abs=1e-9)
    text = words(shell("show", "rule.json").stdout)
    for sentence in (*shell.rule.certificate().sentences(), *shell.rule.reached, shell.rule.heading):
        assert sentence in text
    assert "The limits do not cover rates other than error rates, subgroups" in text
    content = json.loads(shell("show", "rule.json", "--json").stdout)
    assert content["certificate"]["by_event"] == pytest.approx(shell.rule.certificate().by_event)
    assert (content["gap_after"], content["ratio_after"]) == (
        shell.rule.record.gap_after,
        shell.rule.record.ratio_after,
    )


def test_check_finds_drift_of_false_positive_rates(shell):
    found = shell.rule.check(*rows(1))
    done = shell("check", *NEW)
    assert done.stdout.startswith("3,000 rows in new.csv, by unit\n")
    assert found.table().text(80) in done.stdout
    assert words(found.sentences()[0]) in words(done.stdout)
    assert "left out" not in done.stdout
    new = rows(2, lift=0.25)
    save(shell, "new.csv", *new)
    done = shell("check", *NEW, code=1)
    assert "Check failed. " in done.stdout
    content = json.loads(shell("check", *NEW, "--json", code=1).stdout)
    assert content["gap"] == pytest.approx(shell.rule.check(*new).gap)
    assert set(shell.rule.check(*new).to_dict()) <= set(content)
    assert (content["rate"], content["gap_rate"]) == ("error rate", "false positive rate")
    assert [one["verdict"] for one in content["comparisons"]] == ["within", "exceeded"]
    few = "groups with fewer than 30 rows with label 1, whose rates are unreliable: women"
    scores, groups, labels = rows(1)
    keep = (groups == "men") | (labels == 0) | (np.cumsum((groups == "women") & (labels == 1)) <= 20)
    save(shell, "new.csv", scores[keep], groups[keep], labels[keep])
    assert few in words(shell("check", *NEW).stderr)


def test_monitor_raises_the_alarm_for_false_positive_rates(shell):
    monitor = shell.rule.monitor()
    for seed in (1, 2):
        save(shell, "new.csv", *rows(seed))
        monitor.update(*rows(seed))
        content = json.loads(shell(*MONITOR, "--json").stdout)
        assert content["evidence"] == pytest.approx(monitor.evidence)
        assert [group["n"] for group in content["groups"]] == list(monitor.rows)
    assert not json.loads(shell(*MONITOR, "--json").stdout)["added"]
    save(shell, "new.csv", *rows(3, n=9_000, lift=0.4))
    done = shell(*MONITOR, code=1)
    assert done.stdout.startswith("15,000 rows counted in state.json so far, by unit\n")
    assert "the gap between false positive rates is now" in words(done.stdout)


def test_audits_and_gates_judge_the_larger_gap(shell):
    scores, groups, labels = rows(1)
    found = fairramp.audit(scores, {"unit": groups}, labels, criterion="equalized_odds")
    done = shell("audit", "new.csv", *COLUMNS, "--criterion", "equalized_odds", "--fail-above", "0.02", code=1)
    assert found.table().text(80) in done.stdout
    assert "Gate failed: the larger gap, between " in done.stdout
    content = json.loads(
        shell("audit", *NEW[1:], "--rule", "rule.json", "--fail-unless-below", "0.2", "--json").stdout
    )
    after = fairramp.audit(scores, {"unit": groups}, labels, rule=shell.rule).after
    assert content["gate"]["gap_interval"] == pytest.approx(after.gap_interval)
    assert content["after"]["rates"]["false_positive"]["gap"] <= content["after"]["gap"]
    assert content["criterion"] == "equalized_odds"


def test_labels_are_required(shell):
    sentence = "--label is required: the rule makes error rates equal."
    assert shell.error("check", *NEW[:2]) == sentence
    assert shell.error("monitor", *NEW[:2], "--state", "state.json") == sentence
    assert "--criterion equalized_odds requires --label" in shell.error(
        "fit", "fit.csv", *COLUMNS[:4], "--criterion", "equalized_odds", "-o", "other.json"
    )


def test_what_is_not_supported_is_named(shell):
    told = shell.error("frontier", "fit.csv", *COLUMNS, "--criterion", "equalized_odds")
    assert told.endswith(
        "does not support --criterion equalized_odds; fit a rule for each --max-gap, and audit it."
    )
    told = shell.error(
        "fit", "fit.csv", *COLUMNS, "--criterion", "equalized_odds", "--min-ratio", "0.8", "-o", "other.json"
    )
    assert told == "--criterion equalized_odds does not support --min-ratio; remove one of the two."


def test_rows_needed_counts_rows_of_each_label(shell):
    needed = fairramp.rows_needed(0.05, 2, criterion="equalized_odds")
    arguments = ("rows-needed", "--max-gap", "0.05", "--groups", "2", "--criterion", "equalized_odds")
    assert (
        f"  {needed:,} rows with label 1 and as many with label 0 by the proven limit" in shell(*arguments).stdout
    )
    content = json.loads(shell(*arguments, "--json").stdout)
    assert content["rows_per_group"] == {"estimated": needed, "proven": needed}


def test_decisions_need_no_labels(shell):
    shell("apply", "rule.json", "new.csv", "-o", "out.csv")
    scores, groups, _ = rows(1)
    found = np.array([float(line.rsplit(",", 1)[1]) for line in shell.read("out.csv").splitlines()[1:]])
    np.testing.assert_allclose(found, shell.rule.probabilities(scores, groups), atol=1e-12)


COMMANDS = {
    "fit": ("fit.csv", *COLUMNS, "--criterion", "equalized_odds", "-o", "other.json"),
    "show": ("rule.json",),
    "audit": ("new.csv", "--rule", "rule.json", "--label", "y", "--fail-above", "0.9"),
    "check": NEW,
    "monitor": MONITOR[1:],
    "rows-needed": ("--max-gap", "0.05", "--groups", "2", "--criterion", "equalized_odds"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_texts_fit_80_columns_and_fields_are_documented(shell, command):
    done = shell(command, *COMMANDS[command])
    assert max(map(len, done.stdout.splitlines())) <= 80
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    arguments = [
        one.replace("other.json", "third.json").replace("state.json", "s.json") for one in COMMANDS[command]
    ]
    content = json.loads(shell(command, *arguments, "--json").stdout)
    described = next(line for line in page.split("\n") if line.startswith(f"| `{command}`"))
    assert set(content) <= set(re.findall(r"`(\w+)`", described)) | {"command", "format", "fairramp"}
    certificate = next(line for line in page.split("\n") if line.startswith("| `certificate`"))
    nested = content.get("certificate") or {}
    assert set(nested) <= set(re.findall(r"`(\w+)`", certificate))
