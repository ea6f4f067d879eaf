"""Gates and checks end as within, exceeded or undecided, each with its message and exit code."""

import json
import math

import numpy as np
import pytest

from fairramp.measure.verdict import Verdict, is_sound, verdict_on, worst
from samples import quiet_fit
from shell import Inside

NAN, INF = math.nan, math.inf
COLUMNS = ("s.csv", "--score", "p", "--group", "g")


@pytest.fixture
def inside(tmp_path):
    return Inside(tmp_path)


def write(shell, rates, n=1000, weight=None, name="s.csv"):
    """Write decisions: of the n rows of group g, the share `rates[g]` is 1."""
    more = "" if weight is None else f",{weight}"
    lines = [f"{int(i < rate * n)},{g}{more}" for g, rate in rates.items() for i in range(n)]
    return shell.write(name, "\n".join([f"p,g{',w' if more else ''}", *lines]) + "\n")


# The verdict --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "maximum", "verdict"),
    [
        ((0.1, 0.2), 0.05, "exceeded"),
        ((0.1, 0.2), 0.1, "undecided"),  # a gap equal to the maximum is within it
        ((0.1, 0.2), 0.15, "undecided"),
        ((0.1, 0.2), 0.2, "within"),
        ((0.1, 0.2), 1.0, "within"),
        ((0.0, 0.0), 0.05, "undecided"),  # limits that do not contain the gap
        ((0.2, 0.3), 0.05, "undecided"),
        ((NAN, NAN), 0.05, "undecided"),
        ((0.1, NAN), 0.05, "undecided"),
        ((NAN, 0.2), 0.5, "undecided"),
        ((0.1, INF), 0.05, "undecided"),
        ((-INF, 0.2), 0.5, "undecided"),
    ],
)
def test_verdict_needs_limits_that_contain_the_gap(limits, maximum, verdict):
    assert verdict_on(0.16, limits, maximum) == verdict


def test_nan_gap_is_undecided():
    assert not is_sound(NAN, (0.0, 1.0))
    assert verdict_on(NAN, (0.0, 0.01), 0.5) is Verdict.UNDECIDED


def test_rounding_does_not_put_a_gap_outside_its_limits():
    assert verdict_on(0.1 + 1e-12, (0.1, 0.1), 0.2) is Verdict.WITHIN


def test_one_exceeded_suffices_and_within_needs_all():
    within, exceeded, undecided = Verdict.WITHIN, Verdict.EXCEEDED, Verdict.UNDECIDED
    assert worst([within, within]) is within
    assert worst([within, undecided]) is undecided
    assert worst([undecided, exceeded, within]) is exceeded


# Gates --------------------------------------------------------------------------------------------

GATES = [
    ("--fail-above", 0.05, "exceeded", 1),
    ("--fail-above", 0.16, "undecided", 0),
    ("--fail-above", 0.5, "within", 0),
    ("--fail-unless-below", 0.05, "exceeded", 1),
    ("--fail-unless-below", 0.16, "undecided", 3),
    ("--fail-unless-below", 0.5, "within", 0),
    ("--fail-below-ratio", 0.9, "exceeded", 1),
    ("--fail-below-ratio", 0.55, "undecided", 0),
    ("--fail-below-ratio", 0.3, "within", 0),
    ("--fail-unless-ratio", 0.9, "exceeded", 1),
    ("--fail-unless-ratio", 0.55, "undecided", 3),
    ("--fail-unless-ratio", 0.3, "within", 0),
]
WORDS = {"exceeded": "failed", "undecided": "undecided", "within": "passed"}


@pytest.mark.parametrize(("option", "limit", "verdict", "code"), GATES)
def test_gate_fails_only_on_evidence(inside, option, limit, verdict, code):
    write(inside, {"a": 0.2, "b": 0.36})
    done = inside("audit", *COLUMNS, option, limit, code=code)
    assert f"Gate {WORDS[verdict]}: " in done.stdout
    gate = json.loads(inside("audit", *COLUMNS, option, limit, "--json", code=code).stdout)["gate"]
    assert (gate["verdict"], gate["failed"]) == (verdict, code != 0)
    quiet = inside("audit", *COLUMNS, option, limit, "-q", code=code)
    assert quiet.stdout == ""
    assert quiet.stderr.startswith(f"warning: gate {WORDS[verdict].lower()}: ") == (code != 0)


@pytest.mark.parametrize(
    ("above", "below", "verdict", "code"),
    [
        (0.05, 0.5, "exceeded", 1),
        (0.05, 0.16, "exceeded", 1),  # exceeded outweighs undecided
        (0.16, 0.5, "undecided", 0),
        (0.5, 0.16, "undecided", 3),
        (0.5, 0.5, "within", 0),
    ],
)
def test_two_gates_at_once(inside, above, below, verdict, code):
    write(inside, {"a": 0.2, "b": 0.36})
    gates = ("--fail-above", above, "--fail-unless-below", below)
    gate = json.loads(inside("audit", *COLUMNS, *gates, "--json", code=code).stdout)["gate"]
    assert (gate["verdict"], gate["failed"]) == (verdict, code != 0)


def test_four_gates_at_once(inside):
    write(inside, {"a": 0.2, "b": 0.36})
    limits = {"fail_above": 0.5, "fail_unless_below": 0.16, "fail_below_ratio": 0.9, "fail_unless_ratio": 0.3}
    gates = [text for name, limit in limits.items() for text in (f"--{name.replace('_', '-')}", limit)]
    gate = json.loads(inside("audit", *COLUMNS, *gates, "--json", code=1).stdout)["gate"]
    assert {name: gate[name] for name in limits} == limits
    assert list(gate["verdicts"].values()) == ["within", "undecided", "exceeded", "within"]
    assert (gate["verdict"], gate["failed"]) == ("exceeded", True)
    lines = inside("audit", *COLUMNS, *gates, code=1).stdout
    assert [lines.count(f"Gate {word}: ") for word in ("passed", "undecided", "failed")] == [2, 1, 1]


@pytest.mark.parametrize("option", ["--fail-below-ratio", "--fail-unless-ratio"])
@pytest.mark.parametrize("limit", [0, 1.2, -1])
def test_ratio_limits_are_above_0_and_at_most_1(inside, option, limit):
    write(inside, {"a": 0.2, "b": 0.36})
    done = inside("audit", *COLUMNS, option, limit, code=2)
    assert f"{option} must be a number above 0 and at most 1, got {limit}" in done.stderr


@pytest.mark.parametrize(
    "option", ["--fail-above", "--fail-unless-below", "--fail-below-ratio", "--fail-unless-ratio"]
)
def test_one_group_never_passes_a_gate(inside, option):
    write(inside, {"a": 0.2})
    done = inside("audit", *COLUMNS, option, 0.8, code=3)
    assert "Gate undecided: there is only one group, so there is nothing to compare." in done.stdout


@pytest.mark.parametrize(("option", "code"), [("--fail-below-ratio", 0), ("--fail-unless-ratio", 3)])
def test_ratio_gate_is_undecided_if_nobody_is_selected(inside, option, code):
    write(inside, {"a": 0, "b": 0})
    done = inside("audit", *COLUMNS, option, 0.8, code=code)
    assert "Gate undecided: these rows cannot show" in done.stdout
    gate = json.loads(inside("audit", *COLUMNS, option, 0.8, "--json", code=code).stdout)["gate"]
    assert (gate["ratio"], gate["ratio_interval"], gate["verdict"]) == (None, [0, 1], "undecided")


@pytest.mark.parametrize("option", ["--fail-below-ratio", "--fail-unless-ratio"])
@pytest.mark.parametrize("limits", [(0.0, 0.0), (NAN, NAN), (0.0, INF)])
def test_invalid_ratio_limits_exit_with_3(inside, monkeypatch, option, limits):
    from fairramp.measure import rates

    write(inside, {"a": 0.2, "b": 0.36})
    monkeypatch.setattr(rates, "ratio_interval", lambda *_: limits)
    done = inside("audit", *COLUMNS, option, 0.5, code=3)
    assert (
        "Gate undecided: the confidence limits of the ratio of selection rates in these decisions are not numbers"
        in (" ".join(done.stdout.split()))
    )


@pytest.mark.parametrize(
    ("criterion", "code"), [("parity", 1), ("equal_opportunity", 0), ("predictive_equality", 1)]
)
def test_gates_apply_to_the_criterion(inside, criterion, code):
    # All positives are selected in both groups, but only group b also selects some negatives.
    rows = {"a": [(1, 1)] * 500 + [(0, 0)] * 500, "b": [(1, 1)] * 500 + [(1, 0)] * 250 + [(0, 0)] * 250}
    inside.write("s.csv", "p,g,y\n" + "".join(f"{p},{g},{y}\n" for g, of in rows.items() for p, y in of))
    gate = ("--criterion", criterion, "--fail-above", 0.1, "--fail-below-ratio", 0.8)
    done = inside("audit", *COLUMNS, "--label", "y", *gate, code=code)
    name = {"parity": "Selection", "equal_opportunity": "True positive", "predictive_equality": "False positive"}
    assert f"{name[criterion]} rate: " in done.stdout
    content = json.loads(inside("audit", *COLUMNS, "--label", "y", *gate, "--json", code=code).stdout)
    assert content["criterion"] == criterion
    assert content["gate"]["gap"] == content["before"]["gap"]
    if criterion != "parity":
        done = inside("audit", *COLUMNS, "--criterion", criterion, code=2)
        assert f"--criterion {criterion} requires --label" in done.stderr


def test_wrong_criterion_is_an_error(inside):
    write(inside, {"a": 0.2, "b": 0.36})
    done = inside("audit", *COLUMNS, "--criterion", "true_positive_rate", code=2)
    assert "--criterion must be one of 'parity'" in done.stderr
    assert "did you mean 'equal_opportunity'?" in done.stderr


@pytest.mark.parametrize(("option", "limit"), [("--fail-above", 0.05), ("--fail-unless-below", 0.05)])
@pytest.mark.parametrize("limits", [(0.0, 0.0), (NAN, NAN), (0.0, INF)])
def test_invalid_limits_exit_with_3(inside, monkeypatch, option, limit, limits):
    from fairramp.measure import rates

    write(inside, {"a": 0.2, "b": 0.36})
    monkeypatch.setattr(rates, "gap_interval", lambda *_: limits)
    done = inside("audit", *COLUMNS, option, limit, code=3)
    assert (
        "Gate undecided: the confidence limits of the gap in these decisions are not numbers or do not contain it"
        in (" ".join(done.stdout.split()))
    )
    gate = json.loads(inside("audit", *COLUMNS, option, limit, "--json", code=3).stdout)["gate"]
    assert (gate["verdict"], gate["failed"]) == ("undecided", True)


@pytest.mark.parametrize("weight", ["1e160", "1e-160", "1e300"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_extreme_weights_never_pass_a_gate(inside, weight):
    """Either the limits are correct for any scaling of the weights, or the gate is undecided."""
    from fairramp.cli.run import run

    path = str(inside.folder / write(inside, {"a": 0.2, "b": 0.36}, weight=weight))
    gate = ["audit", path, *COLUMNS[1:], "--weight", "w", "-q", "--fail-unless-below", "0.05"]
    assert run(gate) in (1, 3)
    assert run([*gate[:-2], "--fail-unless-ratio", "0.9"]) in (1, 3)


# Checks -------------------------------------------------------------------------------------------


@pytest.fixture
def ruled(inside):
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], 2000)
    scores = rng.random(4000).round(4)
    rule = quiet_fit(scores, {"g": groups}, max_gap=0.02)
    rule.save(inside.folder / "rule.json")
    inside.write("s.csv", "p,g\n" + "".join(f"{p},{g}\n" for p, g in zip(scores, groups, strict=True)))
    return inside


CHECK = ("check", "rule.json", "s.csv", "--score", "p")


@pytest.mark.parametrize(
    ("n", "shift", "verdict", "code"),
    [(300, 0, "undecided", 0), (2000, 0.3, "exceeded", 1), (60_000, 0, "within", 0)],
)
def test_check_fails_only_on_evidence(ruled, n, shift, verdict, code):
    rng = np.random.default_rng(1)
    lines = [f"{min(rng.random() + shift * (g == 'b'), 1):.4f},{g}\n" for g in "ab" for _ in range(n)]
    ruled.write("s.csv", "p,g\n" + "".join(lines))
    said = " ".join(ruled(*CHECK, code=code).stdout.split())
    assert f"Check {WORDS[verdict]}. " in said
    content = json.loads(ruled(*CHECK, "--json", code=code).stdout)
    assert (content["verdict"], content["has_drifted"]) == (verdict, code == 1)
    assert ruled(*CHECK, "-q", code=code).stderr.startswith("warning: check failed. ") == (code == 1)


@pytest.mark.parametrize(("option", "code"), [("--fail-above", 0), ("--fail-unless-below", 3)])
def test_no_gate_passes_without_a_group_of_the_rule(ruled, option, code):
    """A broken join that loses a group must not turn a gate green."""
    audit = ("audit", *COLUMNS, "--rule", "rule.json", option, 0.5)
    assert "Gate passed: " in ruled(*audit).stdout
    lines = "".join(f"{i / 6000},{g}\n" for g in "a" for i in range(6000))
    ruled.write("s.csv", f"p,g\n{lines}")
    alone = " ".join(ruled(*audit, code=3).stdout.split())
    assert "Gate undecided: there is only one group (no rows in b), so there is nothing to compare." in alone
    rule = quiet_fit(np.arange(9000) / 9000, {"g": list("abc") * 3000}, max_gap=0.02)
    rule.save(ruled.folder / "rule.json")
    ruled.write("s.csv", "p,g\n" + lines + lines.replace("a", "c"))
    said = ruled(*audit, "--summary", "s.md", code=code).stdout
    assert "\nGate undecided: there are no rows in b.\n" in said
    for text in (said, ruled.read("s.md")):
        assert "Group b of the rule has no rows and is left out." in text
    found = json.loads(ruled(*audit, "--json", code=code).stdout)
    assert (found["missing"], found["gate"]["verdict"]) == (["b"], "undecided")
    assert ruled(*audit, "-q", code=code).stderr == "warning: gate undecided: there are no rows in b.\n"


def test_a_quiet_check_names_the_groups_that_were_not_checked(ruled):
    lines = "".join(f"{i / 6000},a\n" for i in range(6000))
    ruled.write("s.csv", f"p,g\n{lines}")
    said = ruled(*CHECK, "-q").stderr
    assert "\nwarning: check undecided. " in said
    assert "Groups without rows were not checked: b.\n" in said


def test_check_with_nan_limits_exits_with_3(ruled, monkeypatch):
    from fairramp.measure import drift

    monkeypatch.setattr(drift, "gap_interval", lambda *_: (NAN, NAN))
    done = ruled(*CHECK, code=3)
    assert "Check undecided. The confidence limits of the gap are not numbers" in " ".join(done.stdout.split())
    content = json.loads(ruled(*CHECK, "--json", code=3).stdout)
    assert (content["verdict"], content["gap_interval"]) == ("undecided", [None, None])
    assert ruled(*CHECK, "-q", code=3).stderr.startswith("warning: check undecided. ")


def test_nan_row_counts_are_undecided(ruled, monkeypatch):
    from dataclasses import replace

    from fairramp.measure import drift

    real = drift.mean_chances
    monkeypatch.setattr(
        drift,
        "mean_chances",
        lambda *rows, **more: replace(real(*rows, **more), effective_rows=np.array([NAN, 2000.0])),
    )
    assert json.loads(ruled(*CHECK, "--json", code=3).stdout)["verdict"] == "undecided"
