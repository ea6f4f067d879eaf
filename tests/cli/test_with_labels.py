"""`fairramp check`, `monitor` and `frontier` for rules that make true or false positive rates equal."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import fairramp
from samples import quiet_fit
from shell import Inside

CHECK = ("check", "rule.json", "new.csv")
MONITOR = ("monitor", "rule.json", "new.csv", "--state", "state.json")


def rows(seed, n=3_000, by=0.0):
    """Rows in which the women's scores with label 1 are lowered by `by`."""
    rng = np.random.default_rng(seed)
    groups, labels = rng.choice(["men", "women"], n), (rng.random(n) < 0.4).astype(int)
    scores = rng.beta(2 + 2 * labels, 3) - by * ((groups == "women") & (labels == 1))
    return np.clip(scores, 0, 1).round(4), groups, labels


def save(shell, name, scores, groups, labels, words=("0", "1")):
    lines = [f"{p},{g},{words[y]}" for p, g, y in zip(scores, groups, labels, strict=True)]
    shell.write(name, "\n".join(["p,unit,y", *lines]) + "\n")


def words(text):
    return " ".join(text.split())


@pytest.fixture(params=["equal_opportunity", "predictive_equality"])
def shell(request, tmp_path):
    shell = Inside(tmp_path)
    scores, groups, labels = rows(0)
    save(shell, "fit.csv", scores, groups, labels)
    shell.rule = quiet_fit(scores, {"unit": groups}, labels, criterion=request.param)
    shell.rule.save(tmp_path / "rule.json")
    return shell


def test_check_matches_the_library(shell):
    event = shell.rule.event
    by = 0.3 if event.label else 0.0
    new = rows(1, by=by)
    save(shell, "new.csv", *new)
    found = shell.rule.check(*new)
    assert found.has_drifted == bool(by)
    done = shell(*CHECK, "--score", "p", "--label", "y", code=int(found.has_drifted))
    n = (new[2] == event.label).sum()
    assert done.stdout.startswith(f"{n:,} rows with label {event.label} in new.csv, by unit\n")
    assert found.table().text(80) in done.stdout
    assert words(found.sentences()[0]) in words(done.stdout)
    left = (
        f"{len(new[0]) - n:,} rows left out: label {1 - event.label}, groups not in the fit rows, or zero weight."
    )
    assert left in words(done.stdout)
    content = json.loads(
        shell(*CHECK, "--score", "p", "--label", "y", "--json", code=int(found.has_drifted)).stdout
    )
    assert content["rate"] == event.rate
    assert content["gap"] == pytest.approx(found.gap)
    # Labels in words, read as in other commands.
    save(shell, "new.csv", *new, words=("bad", "good"))
    again = shell(*CHECK, "--score", "p", "--label", "y", "--positive", "good", code=int(found.has_drifted))
    assert again.stdout == done.stdout


def test_labels_are_required(shell):
    save(shell, "new.csv", *rows(1))
    sentence = f"--label is required: the rule makes {shell.rule.event.rate}s equal."
    for command in (CHECK, MONITOR):
        assert shell.error(*command, "--score", "p") == sentence
    assert "state.json" not in shell.files()


def test_rows_without_the_label_get_a_sentence(shell):
    label = shell.rule.event.label
    scores, groups, labels = rows(1)
    save(shell, "new.csv", scores, groups, np.full(len(labels), 1 - label))
    assert f"None of the rows has label {label}" in shell.error(*CHECK, "--score", "p", "--label", "y")
    done = shell(*MONITOR, "--score", "p", "--label", "y")
    assert done.stdout.startswith(f"0 rows with label {label} counted in state.json so far, by unit\n")
    assert "Nothing to compare yet." in done.stdout


def test_few_rows_with_the_label_cause_a_warning(shell):
    label = shell.rule.event.label
    scores, groups, labels = rows(1, n=400)
    labels = np.where((groups == "women") & (np.cumsum(groups == "women") > 40), 1 - label, labels)
    save(shell, "new.csv", scores, groups, labels)
    warning = f"groups with fewer than 30 rows with label {label}, whose rates are unreliable: women"
    assert warning in shell(*CHECK, "--score", "p", "--label", "y").stderr


def test_monitor_matches_the_library(shell):
    event, monitor = shell.rule.event, shell.rule.monitor()
    for seed in range(1, 4):
        new = rows(seed)
        save(shell, "new.csv", *new)
        monitor.update(*new)
        done = shell(*MONITOR, "--score", "p", "--label", "y", "--json")
        content = json.loads(done.stdout)
        assert (content["added"], content["looks"], content["rate"]) == (True, seed, event.rate)
        assert [group["n"] for group in content["groups"]] == list(monitor.rows)
        assert content["evidence"] == pytest.approx(monitor.evidence)
    # The same rows are not counted again; with other labels, they are other rows.
    assert not json.loads(shell(*MONITOR, "--score", "p", "--label", "y", "--json").stdout)["added"]
    scores, groups, labels = new
    save(shell, "new.csv", scores, groups, np.roll(labels, 1))
    assert json.loads(shell(*MONITOR, "--score", "p", "--label", "y", "--json").stdout)["added"]


def test_show_names_the_rate(shell):
    text = words(shell("show", "rule.json").stdout)
    rate = shell.rule.event.rate
    assert f"Gap between {rate}s in the population: estimated limit" in text
    assert f"The limits do not cover rates other than {rate}s, subgroups" in text
    assert json.loads(shell("show", "rule.json", "--json").stdout)["certificate"]["rate"] == rate


def test_frontier_matches_the_library(shell):
    scores, groups, labels = rows(0)
    columns = ("fit.csv", "--score", "p", "--group", "unit", "--label", "y", "--max-gap", "0.02")
    criterion = shell.rule.criterion
    curve = fairramp.frontier(scores, {"unit": groups}, labels, criterion=criterion, max_gaps=[0.02])
    done = shell("frontier", *columns, "--criterion", criterion)
    assert words(curve.heading) in words(done.stdout)
    assert curve.table().text(80) in done.stdout
    assert f"fairramp fit --criterion {criterion} --target-rate accuracy" in words(done.stdout)
    content = json.loads(shell("frontier", *columns, "--criterion", criterion, "--json").stdout)
    assert content["rate"] == shell.rule.event.rate
    assert content["points"][0]["gap"] == pytest.approx(curve.gaps[0])
    assert "--criterion" not in shell("frontier", *columns).stdout


def test_labels_of_a_parity_rule_change_nothing(tmp_path):
    shell = Inside(tmp_path)
    scores, groups, _ = rows(0)
    quiet_fit(scores, {"unit": groups}).save(tmp_path / "rule.json")
    save(shell, "new.csv", *rows(1))
    for command in (CHECK, MONITOR):
        plain = shell(*command, "--score", "p")
        (tmp_path / "state.json").unlink(missing_ok=True)
        labeled = shell(*command, "--score", "p", "--label", "y")
        assert labeled.stdout == plain.stdout


def test_json_fields_are_documented(shell):
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    save(shell, "new.csv", *rows(1, n=600))
    columns = ("fit.csv", "--score", "p", "--group", "unit", "--label", "y", "--max-gap", "0.1")
    new = ("--score", "p", "--label", "y")
    for command, *arguments in ((*CHECK, *new), (*MONITOR, *new), ("frontier", *columns)):
        content = json.loads(shell(command, *arguments, "--json").stdout)
        described = next(line for line in page.split("\n") if line.startswith(f"| `{command}`"))
        missing = set(content) - set(re.findall(r"`(\w+)`", described)) - {"command", "format", "fairramp"}
        assert not missing, (command, missing)
