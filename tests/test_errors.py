"""Errors and warnings consist of argument, constraint, value and remedy, rendered for Python and the CLI."""

import copy
import os
import pickle
import shlex
import sys
import warnings

import numpy as np
import pytest

import fairramp
from fairramp.errors import (
    FairrampError,
    FairrampWarning,
    InputError,
    MonitorFormatError,
    RuleFormatError,
    SummaryFormatError,
    UnseenGroupError,
    installing,
    shown,
    warn,
)

KINDS = [
    FairrampError,
    InputError,
    UnseenGroupError,
    RuleFormatError,
    MonitorFormatError,
    SummaryFormatError,
    FairrampWarning,
]


def on_the_command_line(name, value):
    option = "--" + name.replace("_", "-")
    return f"{option} {value}" if value else option


def whole(kind=InputError):
    """An error with all parts."""
    return kind(
        "must be between {low:g} and {high:g} unless {target_rate:accuracy}",
        argument="max_gap",
        got=1.5,
        remedy="leave {labels} out or pass {example!r}",
        low=0.0,
        high=1.0,
        example="{0.02}",
    )


def test_python_message_uses_argument_names():
    assert str(whole()) == (
        "`max_gap` must be between 0 and 1 unless `target_rate='accuracy'`, got 1.5; leave `labels` out or "
        "pass '{0.02}'."
    )


def test_command_line_message_uses_option_names():
    assert whole().told(on_the_command_line) == (
        "--max-gap must be between 0 and 1 unless --target-rate accuracy, got 1.5; leave --labels out or pass "
        "'{0.02}'."
    )


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (InputError("A rule needs at least one group"), "A rule needs at least one group."),
        (InputError("is empty", argument="scores"), "`scores` is empty."),
        (InputError("must be text", argument="date", got=None), "`date` must be text, got None."),
        (InputError("must be text", argument="date", remedy=None), "`date` must be text."),
        (InputError("Ends already."), "Ends already."),
        (InputError("is this a group column?"), "is this a group column?"),
        (
            InputError("is wrong", argument="ramp", remedy="did you mean 'paper'?"),
            "`ramp` is wrong; did you mean 'paper'?",
        ),
        (InputError("{n} rows", n=3), "3 rows."),
        (InputError("{n} rows", argument="n", n=3), "`n` 3 rows."),
        (InputError("has {{braces}}"), "has {braces}."),
    ],
    ids=str,
)
def test_every_part_is_optional(error, sentence):
    assert str(error) == sentence
    assert error.told() == sentence


def test_parts_are_attributes():
    error = whole()
    assert (error.argument, error.got) == ("max_gap", 1.5)
    assert error.rule.startswith("must be between {low:g}")
    assert error.remedy == "leave {labels} out or pass {example!r}"
    assert error.values == {"low": 0.0, "high": 1.0, "example": "{0.02}"}
    nothing = InputError("is empty")
    assert nothing.argument is nothing.remedy is None


@pytest.mark.parametrize("text", ["{", "}", "{}", "{0}", "{labels}", "{target_rate:accuracy}", "%s", "{!r}"])
def test_braces_in_a_value_are_kept(text):
    error = InputError("knows {label}", argument="groups", got=text, remedy="drop {label}", label=text)
    assert str(error) == f"`groups` knows {text}, got {text!r}; drop {text}."
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(error.renamed(groups="strata")) == f"`strata` knows {text}, got {text!r}; drop {text}."
    with pytest.raises(InputError) as caught:
        fairramp.Rule(("A",), (fairramp.Ramp(0.5, 0.0),)).probabilities([0.5], [text])
    assert repr(text) in str(caught.value)


def test_an_argument_can_be_renamed():
    error = InputError(
        "has no column like {groups} of {label}", argument="groups", remedy="see {groups}", label="group"
    )
    found = error.renamed(groups="strata", label="stratum", other="unused")
    assert found is error
    assert str(error) == "`strata` has no column like `strata` of stratum; see `strata`."
    assert error.argument == "strata"
    assert error.told(on_the_command_line) == "--strata has no column like --strata of stratum; see --strata."


def test_renaming_twice_works_and_renaming_other_arguments_does_nothing():
    error = InputError("is empty", argument="groups")
    assert str(error.renamed(scores="p")) == "`groups` is empty."
    assert str(error.renamed(groups="strata").renamed(strata="regions")) == "`regions` is empty."


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "make", [whole, lambda kind: kind("Nothing but {a} rule"), lambda kind: whole(kind).renamed(labels="y")]
)
@pytest.mark.parametrize(
    "remake",
    [
        copy.copy,
        copy.deepcopy,
        *(lambda error, p=p: pickle.loads(pickle.dumps(error, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)),
    ],
)
def test_copies_and_pickles_keep_every_part(kind, make, remake):
    error = make(kind)
    again = remake(error)
    assert type(again) is kind
    assert again is not error
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)
    assert again.told(on_the_command_line) == error.told(on_the_command_line)


def test_renaming_a_copy_leaves_the_original_unchanged():
    error = InputError("{label} is empty", argument="groups", label="group")
    copy.copy(error).renamed(groups="strata", label="stratum")
    assert str(error) == "`groups` group is empty."


def test_errors_are_value_errors_and_warnings_are_user_warnings():
    for kind in (InputError, UnseenGroupError, RuleFormatError, MonitorFormatError, SummaryFormatError):
        assert issubclass(kind, FairrampError)
        assert issubclass(kind, ValueError)
    assert issubclass(UnseenGroupError, InputError)
    assert issubclass(FairrampWarning, UserWarning)
    assert not issubclass(FairrampWarning, FairrampError)


def test_a_warning_points_to_the_line_that_called_the_library():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn("Groups below {smallest} rows", smallest=30)
        fairramp.fit_rule([0.2] * 40, ["A"] * 40)
    assert str(caught[0].message) == "Groups below 30 rows."
    assert {w.filename for w in caught} == {__file__}
    assert caught[0].message.values == {"smallest": 30}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.3, "0.3"),
        (np.float64(0.3), "0.3"),
        (np.int8(3), "3"),
        (np.bool_(True), "True"),
        ("two\nlines", r"'two\nlines'"),
        (np.array([1, 2]), "array([1, 2])"),
        (None, "None"),
    ],
)
def test_values_are_shown_by_their_repr(value, text):
    assert shown(value) == text


def test_long_values_are_shortened_and_showing_never_fails():
    assert shown("x" * 100) == repr("x" * 100)[:57] + "..."
    assert len(shown(np.zeros((30, 30)))) == 60
    assert "\n" not in shown(np.zeros((30, 30)))
    deep = []
    for _ in range(10**5):
        deep = [deep]
    assert shown(deep) == "a deeply nested list"
    assert shown(10**10000) == "a very long int"


def test_install_command_of_an_extra_is_for_the_interpreter_that_runs(monkeypatch):
    *command, last = shlex.split(installing("cli"))
    assert (command, last) == ([sys.executable, "-m", "pip", "install"], "fairramp[cli]")
    monkeypatch.setattr(sys, "executable", "/my tools/python")
    assert installing("web") == "'/my tools/python' -m pip install 'fairramp[web]'"


def test_install_command_of_an_extra_has_the_quotes_of_windows(monkeypatch):
    monkeypatch.setattr(os, "name", "nt")
    monkeypatch.setattr(sys, "executable", r"C:\Program Files\python.exe")
    assert installing("web") == r'"C:\Program Files\python.exe" -m pip install fairramp[web]'
