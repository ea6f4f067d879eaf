"""`fairramp explain`: one person's answer as text and JSON, with labels as people type them."""

import json

import pytest

from fairramp import Columns, Ramp, Rule
from shell import Inside


@pytest.fixture
def inside(tmp_path):
    return Inside(tmp_path)


def saved(shell, groups, **options):
    """A rule whose groups have ramps further and further to the right."""
    ramps = tuple(Ramp(0.125 + 0.25 * i, 0.125) for i in range(len(groups)))
    rule = Rule(tuple(groups), ramps, **options)
    rule.save(shell.folder / "rule.json")
    return rule


def found(shell, *options):
    return json.loads(shell("explain", "rule.json", *options, "--json").stdout)


def test_text_and_json_are_the_librarys(inside):
    rule = saved(inside, ["Female", "Male"])
    for score, group in ((0.41, "Female"), (0.41, "Male"), (0.2, "Female")):
        expected = rule.explain(score, group)
        assert inside("explain", "rule.json", "--score", score, "--group", group).stdout == f"{expected!r}\n"
        content = found(inside, "--score", score, "--group", group)
        assert {name: content[name] for name in expected.to_dict()} == expected.to_dict()
        assert (content["command"], content["rule"]) == ("explain", "rule.json")


@pytest.mark.parametrize(
    ("labels", "typed", "meant"),
    [
        ([3, 4], "3", 3),
        ([-1, 4], "-1", -1),
        (["3", 4], "3", "3"),
        ([3, "3"], "3", "3"),
        ([True, False], "false", False),
        ([True, False], "True", True),
        (["true", True], "true", "true"),
        (["a", None], "", None),
        (["a", None], "(missing)", None),
        (["", None], "", ""),
        (["", "a"], "(blank)", ""),
        (["-x", "a b"], "-x", "-x"),
        (["-x", "a b"], "a b", "a b"),
    ],
)
def test_text_finds_labels_of_every_type(inside, labels, typed, meant):
    saved(inside, labels)
    content = found(inside, "--score", 0.3, "--group", typed)
    assert (content["group"], type(content["group"])) == (meant, type(meant))


def test_several_columns_and_strata(inside):
    cells = [("x", ("F", 1)), ("x", ("M", 1)), ("y", ("F", 1))]
    columns = Columns("p", ("sex", "unit"), ("dept",))
    rule = saved(inside, cells, stratified=True, target_rate=None, columns=columns)
    people = ("--group", "F", "--group", "1")
    for stratum in ("x", "y"):
        content = found(inside, "--score", 0.3, *people, "--stratum", stratum)
        assert content["probability"] == rule.explain(0.3, ("F", 1), stratum=stratum).probability
        assert (content["group"], content["stratum"]) == (["F", 1], stratum)
    once = inside.error("explain", "rule.json", "--score", 0.3, "--group", "F", "--stratum", "x")
    assert once == "--group must be given once for each of 2 columns (sex, unit), got ['F']."
    without = inside.error("explain", "rule.json", "--score", 0.3, *people)
    assert without == "This rule equalizes within strata: pass --stratum (dept)."


def test_negative_scores(inside):
    saved(inside, ["a"], scale="signed", cutoff=0.0)
    assert found(inside, "--score", "-0.5", "--group", "a")["score"] == -0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--score", "41", "--group", "Male"), "--score must be between 0 and 1, got 41.0."),
        (("--score", "nan", "--group", "Male"), "--score must be between 0 and 1, got nan."),
        (("--score", "0,41", "--group", "Male"), "--score 0,41 is not a number; use a decimal point: 0.41."),
        (("--score", "0.41", "--group", "male"), "Did you mean 'Male' (for 'male')?"),
        (("--score", "0.41", "--group", "M", "--group", "x"), "--group must be given once, got ['M', 'x']."),
        (("--score", "0.41", "--group", "Male", "--stratum", "x"), "does not use --stratum; remove it."),
        (("--score", "0.41"), "--group is missing."),
        (("--group", "Male"), "--score is missing."),
    ],
)
def test_errors_are_one_sentence(inside, options, message):
    saved(inside, ["Female", "Male"])
    assert message in inside.error("explain", "rule.json", *options)


def test_unseen_groups_follow_the_policy(inside):
    rule = saved(inside, [3, 4], unseen_group="pooled", pooled=Ramp(0.5, 0.125))
    content = found(inside, "--score", 0.9, "--group", "7")
    assert content["why"] == rule.explain(0.9, 7).why
    assert "which was not in the fit rows" in content["why"]
    assert inside.error("explain", "none.json", "--score", 0.9, "--group", "7").startswith(
        "The rule none.json does"
    )
