"""Settings are defined once: names, defaults and documentation of every function come from one class."""

import inspect
import re
from dataclasses import fields
from typing import get_type_hints

import pandas
import pytest

import fairramp
from fairramp import InputError
from fairramp.fit.keywords import Asked
from fairramp.fit.settings import Keywords, Settings

SETTINGS = {field.name: field for field in fields(Settings)}
SCORES, GROUPS = [i / 200 for i in range(200)], ["A", "B", "B", "B"] * 50
#: Every function that takes settings, its arguments, and the settings it does not take.
FUNCTIONS = {
    "fit_rule": ((SCORES, GROUPS), {}, ()),
    "fit_frame": ((pandas.DataFrame({"p": SCORES, "unit": GROUPS}),), {"score": "p", "group": "unit"}, ()),
    "fit_summary": (
        (fairramp.summarize(SCORES, GROUPS),),
        {},
        ("scale", "higher_is_better", "solver", "combine"),
    ),
}
each_function = pytest.mark.parametrize("name", FUNCTIONS)


def called(name, **settings):
    arguments, options, _ = FUNCTIONS[name]
    return getattr(fairramp, name)(*arguments, **options, **settings)


def taken(name):
    return [setting for setting in SETTINGS if setting not in FUNCTIONS[name][2]]


def test_keywords_match_the_fields_and_types():
    assert get_type_hints(Keywords) == get_type_hints(Settings, localns={"SGD": fairramp.SGD})
    assert list(Keywords.__annotations__) == list(SETTINGS)
    assert not Keywords.__required_keys__


@each_function
def test_signature_has_every_setting_with_its_default(name):
    parameters = inspect.signature(getattr(fairramp, name)).parameters
    found = {key: p for key, p in parameters.items() if key in SETTINGS}
    assert list(found) == taken(name)
    for key, parameter in found.items():
        assert parameter.default == SETTINGS[key].default
        assert parameter.annotation == SETTINGS[key].type
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
    assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


@each_function
def test_docstring_lists_every_parameter_once_in_order(name):
    function = getattr(fairramp, name)
    text = inspect.getdoc(function)
    section = text.split("Parameters\n----------\n")[1].split("\n\nReturns\n-------\n")[0]
    heads = re.findall(r"^(\w.*?) : ", section, re.MULTILINE)
    documented = [one for head in heads for one in head.split(", ")]
    own = [key for key in inspect.signature(function).parameters if key not in SETTINGS]
    assert sorted(documented[: len(own)]) == sorted(own)
    assert documented[len(own) :] == taken(name)
    assert "{" not in re.sub(r'\{("\w+"(, )?)+\}', "", section)  # no placeholder was left


@each_function
def test_docstrings_describe_settings_like_the_class(name):
    def entries(documented):
        return re.split(r"\n(?=\w)", documented.split("Parameters\n----------\n")[1].split("\n\n")[0])

    said = entries(inspect.getdoc(getattr(fairramp, name)))
    for entry in entries(inspect.getdoc(Asked)):
        assert (entry in said) == (entry.split(" ")[0] in taken(name))


def test_documented_defaults_are_correct():
    for name, field in SETTINGS.items():
        [kind] = re.findall(rf"^{name} : (.*)$", inspect.getdoc(Asked), re.MULTILINE)
        if field.default is None:
            assert kind.endswith(", optional")
        else:
            told = kind.rpartition("default ")[2]
            assert type(field.default)(told.strip('"')) == field.default


@each_function
@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("max_gpa", "; did you mean 'max_gap'?"),
        ("targetrate", "; did you mean 'target_rate'?"),
        ("nonsense", ""),
    ],
)
def test_unknown_keyword_is_a_type_error_with_a_hint(name, wrong, hint):
    with pytest.raises(TypeError) as caught:
        called(name, **{wrong: 0.1})
    assert str(caught.value) == f"{name}() got an unexpected keyword argument {wrong!r}{hint}"


@pytest.mark.parametrize("setting", ["scale", "higher_is_better", "solver", "combine"])
def test_fit_summary_takes_no_setting_that_a_summary_decides(setting):
    with pytest.raises(TypeError, match=rf"fit_summary\(\) got an unexpected keyword argument '{setting}'"):
        called("fit_summary", **{setting: SETTINGS[setting].default})


@each_function
def test_every_default_can_be_passed(name):
    expected = called(name)
    assert called(name, **{key: SETTINGS[key].default for key in taken(name)}) == expected


@each_function
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("max_gap", 1.5),
        ("ramp_width", -1.0),
        ("ramp", "round"),
        ("target_rate", "best"),
        ("cutoff", 7.0),
        ("unseen_group", "guess"),
        ("criterion", "justice"),
        ("small_groups", "merge"),
        ("date", 2024),
    ],
)
def test_wrong_value_names_its_setting(name, setting, value):
    with pytest.raises(InputError) as caught:
        called(name, **{setting: value})
    assert (caught.value.argument, caught.value.got) == (setting, value)


def test_synonym_for_a_criterion_gets_a_hint():
    with pytest.raises(InputError, match=r"got 'demographic_parity'; did you mean 'parity'\?$"):
        called("fit_rule", criterion="demographic_parity")


def test_settings_are_frozen_and_checked():
    settings = Settings(max_gap=1, scale="percent")
    assert type(settings.max_gap) is float
    assert settings.cutoff == 50.0
    assert settings.problem.cutoff == 0.5
    with pytest.raises(AttributeError):
        settings.max_gap = 0.5


@pytest.mark.parametrize(
    ("wrong", "near"), [("lables", "labels"), ("stratas", "strata"), ("weights", "sample_weight")]
)
def test_misspelled_arguments_get_a_hint(wrong, near):
    with pytest.raises(TypeError, match=f"{wrong!r}; did you mean {near!r}?"):
        called("fit_rule", **{wrong: None})
