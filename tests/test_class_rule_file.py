"""Files of rules for several classes: strict reading, unchanged round trips, and what the fingerprint covers."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from class_samples import class_people, quiet_class_fit
from fairramp import ClassRule, Columns, GroupProbabilities, Rule, RuleFormatError
from fairramp.core.labels import label_key
from fairramp.data import documents
from rules import TEXTS, WHOLES

P, G, _ = class_people(n_classes=3)
FITTED = {
    "known": quiet_class_fit(dict(zip("abc", P.T, strict=True)), {"g": G}, max_gap=0.02, date="2026-01-31"),
    "strata": quiet_class_fit(P, G, strata=np.arange(600) % 3, unseen_group="original"),
    "soft": quiet_class_fit(
        P, GroupProbabilities({"A": np.where(G == "g0", 0.8, 0.1), "B": np.where(G == "g0", 0.2, 0.9)})
    ),
    "own": quiet_class_fit(P, G, max_gap=1, sample_weight=P[:, 0] + 0.1),
}
CONTENT = FITTED["known"].to_dict()
named = pytest.mark.parametrize("name", FITTED)


def refused(content, reads=ClassRule):
    """The one sentence that refuses a file."""
    text = content if isinstance(content, str) else json.dumps(content)
    with pytest.raises(RuleFormatError) as caught:
        reads.from_json(text)
    said = str(caught.value)
    assert said.endswith(".")
    assert "\n" not in said
    return said


def places(content, path=()):
    """Paths to every value in a file."""
    yield path
    pairs = (
        content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    )
    for step, part in pairs:
        yield from places(part, (*path, step))


def at(content, path):
    for step in path:
        content = content[step]
    return content


def changed(path, value=None, *, remove=False):
    """A copy with one value replaced or removed."""
    content = copy.deepcopy(CONTENT)
    inside = at(content, path[:-1])
    if remove:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return content


PATHS = [path for path in places(CONTENT) if path]
FIELDS = [path for path in PATHS if isinstance(path[-1], str)]
OBJECTS = [path for path in places(CONTENT) if isinstance(at(CONTENT, path), dict)]
#: Fields that have a default, which older files do not have.
LATER = {("columns", "class_scores"), ("record", "date")}


def test_the_file_has_version_2_and_these_fields():
    assert (CONTENT["format"], CONTENT["version"]) == ("fairramp.class_rule", 2)
    own = ["classes", "groups", "ramp_width", "max_gap", "stratified", "unseen_group", "columns", "record"]
    assert set(CONTENT) == {"format", "version", "sha256", *own}
    assert set(FITTED["soft"].to_dict()) == {*CONTENT, "membership"}
    assert CONTENT["columns"] == {"score": None, "groups": ["g"], "strata": None, "class_scores": ["a", "b", "c"]}


@named
def test_reading_and_writing_changes_no_byte(name, tmp_path):
    rule = FITTED[name]
    rule.save(tmp_path / "rule.json")
    again = ClassRule.load(tmp_path / "rule.json")
    assert again == rule
    assert again.to_json().encode() == (tmp_path / "rule.json").read_bytes()
    assert again.fingerprint == rule.fingerprint
    assert ClassRule.from_json(json.dumps(rule.to_dict(), indent=4, sort_keys=True)) == rule


@st.composite
def class_rules(draw):
    """Rules written by hand."""
    label = st.one_of(TEXTS, WHOLES, st.booleans())
    classes = draw(st.lists(label, min_size=2, max_size=6, unique_by=label_key))
    groups = draw(st.lists(st.one_of(label, st.none()), min_size=1, max_size=4, unique_by=label_key))
    width = draw(st.one_of(st.just(0.0), st.floats(1e-6, 1e6)))
    offset = st.floats(-1e100, 1e100) if width else st.just(0.0)
    offsets = tuple(tuple(draw(offset) for _ in classes) for _ in groups)
    soft = draw(st.booleans())
    return ClassRule(
        tuple(groups),
        tuple(classes),
        offsets,
        width,
        max_gap=draw(st.floats(0, 1)),
        unseen_group="error" if soft else draw(st.sampled_from(["error", "original"])),
        membership="probabilities" if soft else "known",
    )


@given(class_rules())
def test_any_rule_survives_its_file_to_the_last_bit(rule):
    again = ClassRule.from_json(rule.to_json())
    assert again == rule
    assert [list(map(float.hex, offsets)) for offsets in again.offsets] == [
        list(map(float.hex, offsets)) for offsets in rule.offsets
    ]
    assert [*map(label_key, again.classes)] == [*map(label_key, rule.classes)]
    scores = np.eye(len(rule.classes))
    if not rule.mixes:
        groups = [rule.groups[0]] * len(scores)
        np.testing.assert_array_equal(again.probabilities(scores, groups), rule.probabilities(scores, groups))


@pytest.mark.parametrize("path", [path for path in FIELDS if path not in LATER], ids=str)
def test_every_missing_field_is_refused_by_name(path):
    said = refused(changed(path, remove=True))
    assert path[-1] in said or (path == ("format",) and "format" in said)


@pytest.mark.parametrize("path", sorted(LATER))
def test_a_field_with_a_default_changes_the_checksum_if_it_is_missing(path):
    assert "checksum does not match" in refused(changed(path, remove=True))


@pytest.mark.parametrize("path", OBJECTS, ids=str)
def test_every_extra_field_is_refused_by_name(path):
    content = copy.deepcopy(CONTENT)
    at(content, path)["surprise"] = 1
    assert "'surprise'" in refused(content)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_every_mistyped_field_is_refused(path):
    for value in ({"x": 1}, [[[[1]]]], 1e999, {}):
        text = json.dumps(changed(path, value))
        assert refused(text.replace("Infinity", "1e999"))


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize(
    "path", [path for path in PATHS if isinstance(at(CONTENT, path), int | float)][::3], ids=str
)
def test_numbers_that_are_not_finite_are_refused(path, constant):
    assert f"{constant} is not allowed" in refused(json.dumps(changed(path, float(constant.lower()))))


def test_every_changed_number_is_noticed():
    numbers = [path for path in PATHS if type(at(CONTENT, path)) in (int, float) and path != ("version",)]
    assert len(numbers) > 20
    for path in numbers:
        value = at(CONTENT, path)
        near = value + 1 if isinstance(value, int) else float(np.nextafter(value, 0.5))
        assert "checksum does not match" in refused(changed(path, near)), path


def test_truncated_and_damaged_files_are_refused():
    text = FITTED["known"].to_json()
    for length in range(0, len(text) - 2, 37):
        assert "truncated" in refused(text[:length]), length
    assert "not valid JSON" in refused(text + "}")
    assert "'classes' appears twice" in refused(text.replace('"max_gap"', '"classes"', 1))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (
            ("version",),
            1,
            "Version 1 of a class rule is not supported: this library reads version 2; fit the rule",
        ),
        (("version",), 3, "update fairramp or fit the rule again"),
        (("version",), 2.0, "Version 2.0 of a class rule"),
        (("format",), "fairramp.summary", 'the field "format" must be "fairramp.class_rule"'),
        (("classes",), ["a"], "at least two classes"),
        (("classes",), ["a", "b", "a"], "the same class twice"),
        (("classes",), ["a", "b", None], '"classes[2]" must be'),
        (("classes",), ["a", "b", ["c"]], '"classes[2]" must be'),
        (("classes",), ["a", "b", 1.5], '"classes[2]" must be'),
        (("classes",), ["a", "b"], "one offset per class"),
        (("groups",), [], "at least one group"),
        (("groups", 1, "label"), "g0", "must be distinct"),
        (("groups", 0, "offsets"), [0.0], "one offset per class"),
        (("groups", 0, "offsets", 0), 1e101, '"groups[0].offsets[0]" must be'),
        (("groups", 0, "offsets", 0), "0.5", '"groups[0].offsets[0]" must be a number'),
        (("groups", 0, "offsets", 0), None, '"groups[0].offsets[0]" must be a number'),
        (("ramp_width",), 1e-7, "between 1e-6 and 1e6, got 1e-07"),
        (("ramp_width",), -1, '"ramp_width" must be'),
        (("ramp_width",), 0, "must be 0"),
        (("max_gap",), 1.5, '"max_gap" must be'),
        (("max_gap",), None, '"max_gap" must be a number'),
        (("stratified",), 1, '"stratified" must be true or false'),
        (("stratified",), True, "pairs (stratum, group)"),
        (("unseen_group",), "pooled", "`unseen_group` must be one of"),
        (("columns", "score"), "p", "one score per class"),
        (("columns", "class_scores"), ["a", "b"], "one score per class"),
        (("columns", "class_scores"), "abc", '"columns.class_scores" must be'),
        (("record", "rows"), [300], "different lengths"),
        (("record", "rows", 0), -1, '"record.rows[0]" must be'),
        (("record", "before", 0), [0.5, 0.5], "one rate per class"),
        (("record", "after", 0, 0), 1.5, '"record.after[0][0]" must be'),
        (("record", "strata"), [0, 0], "strata of a rule's record"),
        (("sha256",), "0" * 64, "checksum does not match"),
        (("sha256",), "x", '"sha256" must be'),
    ],
    ids=str,
)
def test_the_sentence_names_the_field_and_the_rule(path, value, said):
    assert said in refused(changed(path, value))


@pytest.mark.parametrize("value", ["known", "each", "", 1, ["probabilities"]])
def test_only_group_probabilities_are_written_as_membership(value):
    assert '"membership" must be' in refused(changed(("membership",), value))


def test_each_kind_of_rule_names_the_reader_of_the_other():
    from fairramp import Ramp

    assert refused(CONTENT, reads=Rule) == (
        "This is a rule for several classes: read it with fairramp.ClassRule.load."
    )
    binary = Rule(("A",), (Ramp(0.4, 0.2),)).to_json()
    assert refused(binary) == "This is a rule for two classes: read it with fairramp.Rule.load."


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "rule.json").write_bytes(b"\xff\xfe")
    with pytest.raises(RuleFormatError, match=r"rule\.json: not a class rule: the file is not UTF-8"):
        ClassRule.load(tmp_path / "rule.json")


# The fingerprint ------------------------------------------------------------------------------

CHANGES = {
    "groups": ("g0", "other"),
    "classes": ("a", "b", "d"),
    "offsets": ((0.0, 0.0, 0.0), (0.0, 0.1, -0.1)),
    "ramp_width": 0.02,
    "max_gap": 0.03,
    "unseen_group": "original",
}
WITHOUT_EFFECT = {
    "record": None,
    "columns": Columns(groups=("other",)),
}


@pytest.mark.parametrize("field", CHANGES)
def test_the_fingerprint_changes_with_every_setting(field):
    rule = FITTED["known"]
    assert replace(rule, **{field: CHANGES[field]}, record=None).fingerprint != rule.fingerprint


def test_the_fingerprint_tells_memberships_strata_and_types_of_labels_apart():
    zeros = ((0.0, 0.0), (0.0, 0.0))
    rules = [
        ClassRule(((1, 1), (1, 2)), (0, 1), zeros),
        ClassRule(((1, 1), (1, 2)), (0, 1), zeros, stratified=True),
        ClassRule(((1, 1), (1, 2)), (0, 1), zeros, membership="probabilities"),
        ClassRule(((1, 1), (1, 2)), (False, True), zeros),
        ClassRule(((1, 1), (1, 2)), ("0", "1"), zeros),
        ClassRule(((1, 1), (1, 2)), (1, 0), zeros),
        ClassRule(((1, 2), (1, 1)), (0, 1), zeros),
    ]
    assert len({rule.fingerprint for rule in rules}) == len(rules)


@pytest.mark.parametrize("field", WITHOUT_EFFECT)
def test_the_fingerprint_is_the_same_for_rules_that_decide_alike(field):
    rule = FITTED["known"]
    other = replace(rule, **{field: WITHOUT_EFFECT[field]})
    assert other.fingerprint == rule.fingerprint
    assert other.to_dict()["sha256"] != CONTENT["sha256"]
    assert other != rule


def test_the_checksum_is_that_of_the_page():
    import hashlib

    signed = {name: value for name, value in CONTENT.items() if name != "sha256"}
    assert hashlib.sha256(json.dumps(signed, sort_keys=True).encode()).hexdigest() == CONTENT["sha256"]
    bare = {name: value for name, value in signed.items() if name not in ("record", "columns")}
    digest = hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()
    assert digest == FITTED["known"].fingerprint
    assert documents.VERSION == 2
