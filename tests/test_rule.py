"""A rule is frozen data: it prints, survives any round trip exactly, and rejects damage."""

import copy
import dataclasses
import errno
import html
import json
import math
import os
import pickle
import re
import stat
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairramp
from fairramp import FairrampError, InputError, Ramp, Rule, RuleFormatError, Table, fit_rule
from fairramp.core import words
from samples import sample

SCORES, CODES = sample(600, n_groups=3)
GROUPS = np.array(["A", "B", "C"])[CODES]
RULE = fit_rule(SCORES, GROUPS, max_gap=0.02, unseen_group="pooled", date="2024-01-31")
TEXT = RULE.to_json()

#: Labels of every type, and text that troubles printers, browsers and encoders.
LABELS = (
    False,
    True,
    -5,
    0,
    1,
    2**80,
    "",
    "0",
    "1",
    "<script>alert('x')</script>",
    "True",
    "a\nb\tc\r\nd",
    "null",
    'quote " \\ slash',
    "\x00\x1b[31m\x7f",
    "\u2028\x85\x0b\x0c",
    "日本 🙂 é e\u0301",
    ("", None),
    ("a", -1, True),
    ("a", ("b", "c")),
    ("a", "b / c"),
    None,
)


def rule_of(labels, width=0.1, **options):
    ramps = tuple(Ramp.centered(0.3 + i / 100, width, i / 100) for i in range(len(labels)))
    return Rule(tuple(labels), ramps, **options)


RULES = {
    "fitted": RULE,
    "width 0": fit_rule(SCORES, GROUPS, ramp_width=0),
    "own decisions": fit_rule(SCORES, GROUPS, max_gap=1),
    "original": fit_rule(SCORES, GROUPS, unseen_group="original", ramp="paper", target_rate=1 / 3),
    "logit": fit_rule(np.log(SCORES / (1 - SCORES)), GROUPS, scale="logit", cutoff=-1 / 3),
    "signed": fit_rule(2 * SCORES - 1, GROUPS, scale="signed", ramp_width=1e-6),
    "weighted": fit_rule(SCORES, GROUPS, sample_weight=SCORES, labels=SCORES > 0.5, target_rate="base_rate"),
    "intersections": fit_rule(SCORES, {"a": GROUPS, "b b": CODES % 2 == 0}),
    "every label": rule_of(LABELS),
    "several widths": Rule(("A", "B"), (Ramp(0.5, 0.0, 0.25), Ramp(0.3, 0.1)), ramp="paper"),
    "extreme numbers": rule_of("ab", width=1e6, max_gap=5e-324, target_rate=0.1 + 0.2, cutoff=-0.0),
}
EVERY_RULE = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


# Immutability -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Rule)])
def test_rule_fields_cannot_be_set(name):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(RULE, name, getattr(RULE, name))


def names_of(thing):
    return [field.name for field in dataclasses.fields(thing)]


RATES = RULE.record.rates["selection"]


@pytest.mark.parametrize("thing", [RULE.ramps[0], RULE.record, RATES], ids=["ramp", "record", "rates"])
def test_fields_of_parts_cannot_be_set(thing):
    for name in names_of(thing):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, name, None)


def test_fitted_rule_holds_no_mutable_value():
    for thing in (RULE, RULE.record, RATES):
        for name in set(names_of(thing)) - {"record", "rates"}:  # tested separately
            assert isinstance(hash(getattr(thing, name)), int)
    assert isinstance(RULE.groups, tuple)
    assert isinstance(RULE.ramps, tuple)


def test_record_describes_the_fit_rows():
    record, rates = RULE.record, RATES
    assert record.rows == rates.rows == (200, 200, 200)
    assert rates.before == pytest.approx([np.mean(SCORES[g == GROUPS] >= 0.5) for g in "ABC"])
    chances = RULE.probabilities(SCORES, GROUPS)
    assert rates.after == pytest.approx([chances[g == GROUPS].mean() for g in "ABC"], abs=1e-12)
    assert rates.rows_above == tuple(int((chances[g == GROUPS] == 1).sum()) for g in "ABC")
    inside = (chances > 0) & (chances < 1)
    assert rates.rows_inside == tuple(int(inside[g == GROUPS].sum()) for g in "ABC")
    assert record.gap_before == pytest.approx(max(rates.before) - min(rates.before))
    assert record.gap_after == pytest.approx(0.02, abs=1e-9)
    assert (record.target, record.ramp_width, record.weighted) == ("optimal", 0.01, False)
    assert (record.date, record.version) == ("2024-01-31", fairramp.__version__)


# Hand-written rules -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"groups": (), "ramps": ()}, "at least one group"),
        ({"groups": ("A",)}, "one ramp per group"),
        ({"groups": ("A", "A")}, "must be distinct"),
        ({"groups": (None, None)}, "must be distinct"),
        ({"ramp": "linear"}, "`ramp` must be one of 'centered', 'paper'"),
        ({"scale": "odds"}, "`scale` must be one of"),
        ({"unseen_group": "ignore"}, "`unseen_group` must be one of"),
        ({"unseen_group": "pooled"}, "pooled ramp if and only if"),
        ({"pooled": Ramp(0.5, 0.1)}, "pooled ramp if and only if"),
        ({"record": RULE.record}, "record"),
        ({"max_gap": 1.5}, "`max_gap`"),
        ({"max_gap": math.nan}, "`max_gap`"),
        ({"target_rate": -0.1}, "`target_rate`"),
        ({"cutoff": math.nan}, "`cutoff`"),
        ({"cutoff": 7}, "`cutoff`"),
        ({"cutoff": True}, "`cutoff`"),
        ({"ramps": (0.5, 0.4)}, "amp"),
        ({"pooled": 0.5, "unseen_group": "pooled"}, "amp"),
        ({"record": {}}, "record"),
        ({"groups": ("A", 1.5)}, "label"),
        ({"groups": ("A", b"B")}, "label"),
        ({"groups": ("A", ["B"])}, "label"),
        ({"groups": ("A", ("B", 0.5))}, "label"),
    ],
    ids=repr,
)
def test_invalid_rule_raises(changes, words):
    whole = {"groups": ("A", "B"), "ramps": (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1))}
    assert Rule(**whole)
    with pytest.raises(InputError, match=re.escape(words)):
        Rule(**{**whole, **changes})


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((math.nan, 0.1), "foot of a ramp must be finite"),
        ((-math.inf, 0.1), "foot of a ramp must be finite"),
        (("0.5", 0.1), "foot of a ramp"),
        ((True, 0.1), "foot of a ramp"),
        ((None, 0.1), "foot of a ramp"),
        ((0.5, -0.1), "`width` must be 0 or between 1e-6 and 1e6"),
        ((0.5, 1e-9), "`width` must be 0 or between 1e-6 and 1e6"),
        ((0.5, math.nan), "`width`"),
        ((0.5, -math.inf), "`width`"),
        ((0.5, math.inf), "foot of a constant ramp.* must be 0"),
        ((0.5, "0.1"), "`width`"),
        ((0.5, 0.1, 1.5), "`tie`"),
        ((0.5, 0.1, math.nan), "`tie`"),
    ],
)
def test_invalid_ramp_raises(numbers, words):
    with pytest.raises(InputError, match=words):
        Ramp(*numbers)


def test_default_cutoff_depends_on_the_scale():
    assert Rule(("A",), (Ramp(0.5, 0.1),), cutoff=None).cutoff == 0.5
    assert Rule(("A",), (Ramp(0.5, 0.1),), scale="logit", cutoff=None).cutoff == 0


@pytest.mark.parametrize("label", [np.int64(3), np.str_("A"), np.True_])
def test_numpy_labels_are_rejected_or_converted(label):
    try:
        rule = Rule((label,), (Ramp(0.5, 0.1),))
    except InputError:
        return
    assert Rule.from_json(rule.to_json()) == rule


@pytest.mark.parametrize("kind", [int, np.int64, np.float32, np.float64])
def test_number_types_do_not_matter(kind):
    def rule(number):
        return Rule(
            ("A", "B"),
            (Ramp(number(1), number(0), number(0)), Ramp(number(0), number(1), number(1))),
            cutoff=number(1),
            max_gap=number(0),
            target_rate=number(1),
            unseen_group="pooled",
            pooled=Ramp(number(1), number(0), number(1)),
        )

    assert rule(kind) == rule(float)
    assert rule(kind).fingerprint == rule(float).fingerprint
    assert Rule.from_json(rule(kind).to_json()) == rule(kind)
    assert rule(kind).to_json() == rule(float).to_json()


@pytest.mark.parametrize("threshold", [-1e305, 1e305, 1.7e308])
@pytest.mark.parametrize("ramp_width", [0, 1e-6, 0.1, 1e6])
def test_extreme_threshold_decides_without_a_warning(threshold, ramp_width):
    rule = Rule(("A",), (Ramp.centered(threshold, ramp_width),))
    assert rule.probabilities([0.0, 0.5, 1.0], ["A"] * 3).tolist() == [float(threshold < 0)] * 3


def test_lists_are_rejected_or_become_tuples():
    try:
        rule = Rule(["A"], [Ramp(0.5, 0.1)])
    except InputError:
        return
    assert Rule.from_json(rule.to_json()) == rule


# Printing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ramp_width", [0, 1e-6, 0.01])
@pytest.mark.parametrize("max_gap", [0, 0.02, 0.025, 1])
@pytest.mark.parametrize("target_rate", ["optimal", 0.123456789, 0])
def test_rule_for_two_groups_prints_within_80_columns(ramp_width, max_gap, target_rate):
    groups = np.where(CODES == 0, "Female", "Male")
    rule = fit_rule(SCORES, groups, ramp_width=ramp_width, max_gap=max_gap, target_rate=target_rate)
    assert str(rule) == repr(rule)
    assert max(map(len, repr(rule).splitlines())) <= 80


@pytest.mark.parametrize("max_gap", [0.0123456789, 1 / 30])
def test_rule_with_many_digits_prints_within_80_columns(max_gap):
    rule = fit_rule(np.tile(SCORES, 200), np.tile(CODES == 0, 200), max_gap=max_gap)
    assert max(map(len, repr(rule).splitlines())) <= 80


def test_printed_rule_describes_itself():
    text = repr(RULE)
    assert "3 groups" in text
    assert "2.0 points" in text
    assert f"{100 * RULE.record.gap_before:.1f} points before" in text
    assert "2.0 points after" in text
    for name in "ABC":
        assert re.search(rf"^{name} +200 +0\.\d+ ", text, re.MULTILINE)


def test_rule_without_a_record_prints_no_rates():
    text = repr(rule_of("ab"))
    assert "before" not in text
    assert "0.3" in text


@pytest.mark.parametrize("label", LABELS, ids=ascii)
def test_label_takes_one_line_of_the_table(label):
    plain = len(str(rule_of(["other", "another"]).table()).splitlines())
    assert len(str(rule_of(["other", label]).table()).splitlines()) == plain


def test_labels_send_no_control_characters_to_the_terminal():
    assert all(c.isprintable() or c == "\n" for c in str(rule_of(LABELS).table()))
    assert all(c.isprintable() or c == "\n" for c in repr(rule_of(LABELS)))


def test_intersections_and_missing_groups_are_readable():
    text = str(rule_of([("f", 1), ("f", None), None]).table())
    assert "f / 1 " in text
    assert "missing" in text


@pytest.mark.parametrize("label", [2024, 1_000_000, -12_345])
def test_numeric_labels_are_shown_as_names(label):
    table = rule_of([1, label]).table()
    assert re.search(rf"^{label} ", str(table), re.MULTILINE)
    assert f">{label}</td>" in table._repr_html_()


def test_long_table_is_shortened():
    rule = Rule(tuple(f"g{i}" for i in range(5_000)), (Ramp(0.5, 0.1),) * 5_000)
    lines = repr(rule).splitlines()
    assert len(lines) < 40
    assert "5,000 groups" in lines[0]
    assert any(line.startswith("g0 ") for line in lines)
    assert any(line.startswith("g4999") for line in lines)
    assert any(line.startswith("…") for line in lines)
    assert len(rule.table()) == 5_000


# The table ----------------------------------------------------------------------------------------


def test_table_has_a_row_per_group_with_ramp_and_rates():
    table = RULE.table()
    assert isinstance(table, Table)
    assert table.columns == ("group", "n", "threshold", "ramp_from", "ramp_to", "rate_before", "rate_after")
    assert len(table) == 3
    assert table["group"].tolist() == ["A", "B", "C"]
    assert table["n"].tolist() == [200, 200, 200]
    thresholds = np.array(RULE.thresholds)
    assert table["threshold"] == pytest.approx(thresholds)
    assert table["ramp_from"] == pytest.approx(thresholds - 0.005)
    assert table["ramp_to"] == pytest.approx(thresholds + 0.005)
    assert table["rate_before"] == pytest.approx(RATES.before)
    assert table["rate_after"] == pytest.approx(RATES.after)


def test_ramp_in_the_table_matches_the_probabilities():
    for rule in (RULE, RULES["original"]):
        for row in rule.table().rows():
            inside = np.linspace(row["ramp_from"] + 1e-6, row["ramp_to"] - 1e-6, 9)
            chances = rule.probabilities(inside, [row["group"]] * 9)
            assert ((chances > 0) & (chances < 1)).all()
            outside = [row["ramp_from"] - 1e-6, row["ramp_to"] + 1e-6]
            assert rule.probabilities(outside, [row["group"]] * 2).tolist() == [0, 1]


def test_table_for_width_0_has_the_probability_at_the_threshold():
    rule = RULES["width 0"]
    table = rule.table()
    assert "ramp_from" not in table.columns
    assert table["probability_at_threshold"].tolist() == [ramp.tie for ramp in rule.ramps]


def test_table_without_a_record_has_no_rates():
    assert rule_of("ab").table().columns == ("group", "threshold", "ramp_from", "ramp_to")


@pytest.mark.parametrize(
    "labels", [[("a", 1)], [("a", 1), ("b", 2)], [("a",), ("b", 2)], [None], LABELS], ids=len
)
def test_table_keeps_labels(labels):
    table = rule_of(labels).table()
    assert table["group"].tolist() == list(labels)
    assert list(map(type, table["group"].tolist())) == list(map(type, labels))
    assert table.to_dict()["group"] == list(labels)
    assert [row["group"] for row in table.rows()] == list(labels)


def test_rows_and_columns_are_plain_python_values():
    table = RULE.table()
    content = table.to_dict()
    assert list(content) == list(table.columns)
    assert {type(value) for values in content.values() for value in values} == {str, int, float}
    assert [dict(zip(content, row, strict=True)) for row in zip(*content.values(), strict=True)] == list(
        table.rows()
    )
    json.dumps(content)


def test_table_is_immutable():
    table = RULE.table()
    with pytest.raises(ValueError, match="read-only"):
        table["threshold"][0] = 0
    with pytest.raises(TypeError):
        table["threshold"] = [0, 0, 0]
    with pytest.raises(AttributeError):
        table.columns = ("group",)
    with pytest.raises(KeyError):
        table["nonsense"]


def test_table_copies_its_data():
    values = np.array([1.0, 2.0])
    table = Table({"x": values})
    values[0] = 7
    assert table["x"].tolist() == [1, 2]
    frame = table.to_pandas()
    frame.loc[0, "x"] = 7
    assert table["x"].tolist() == [1, 2]


def test_small_values_are_not_shown_as_0():
    table = Table({"x": [2e-5, -2e-5, 1e-12, -1e-12, 0.25]})
    assert str(table).split()[2:] == ["<0.0001", ">-0.0001", "0.0000", "0.0000", "0.2500"]
    assert str(Table({"x": [2e-5]}, decimals=2)).split()[-1] == "<0.01"


@pytest.mark.parametrize("group", ["A", None, 1])
def test_one_row_needs_a_list_of_one(group):
    for scores, groups in ((0.5, ["A"]), ([0.5], group)):
        with pytest.raises(InputError, match=r"for a single row, pass a list of one (value|label)\."):
            RULE.probabilities(scores, groups)


def test_columns_of_different_length_raise():
    with pytest.raises(ValueError, match="same length"):
        Table({"x": [1, 2], "y": [1]})


def test_table_repr_is_its_text():
    table = RULE.table()
    assert repr(table) == str(table) == table.text()


def test_names_are_shortened_to_fit_the_width():
    table = Table({"group": ["x" * 40, "y"], "rate": [0.25, 0.5]})
    widths = [max(map(len, table.text(width).split("\n"))) for width in (None, 25, 22, 3)]
    assert widths[:3] == [40, 25, 22]
    assert 3 < widths[3] <= 22


EXPORTS = {
    "to_pandas": lambda frame: frame.to_dict("list"),
    "to_polars": lambda frame: frame.to_dict(as_series=False),
    "to_arrow": lambda frame: frame.to_pydict(),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_missing_library_gives_install_command(name, monkeypatch):
    library = {"to_arrow": "pyarrow"}.get(name, name.removeprefix("to_"))
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        FairrampError, match=f"^{library} is not installed; install it with: pip install {library}\\.$"
    ):
        getattr(RULE.table(), name)()


@pytest.mark.parametrize("name", EXPORTS)
def test_dataframe_has_the_columns_of_the_table(name):
    for rule in (RULE, RULES["width 0"], RULES["own decisions"], rule_of("ab")):
        table = rule.table()
        assert EXPORTS[name](getattr(table, name)()) == table.to_dict()


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize(
    "labels",
    [[1, 2], [False, True], ["b", "a"], [2**62, -(2**62)], [2**63, 2**64 - 1], [2**80, 1]],
    ids=repr,
)
def test_labels_of_one_type_keep_it_in_a_dataframe(name, labels):
    found = EXPORTS[name](getattr(rule_of(labels).table(), name)())["group"]
    assert list(map(str, found)) == list(map(str, labels))


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("labels", [["a", None], [True, None], [None]], ids=repr)
def test_missing_label_is_missing_in_a_dataframe(name, labels):
    found = EXPORTS[name](getattr(rule_of(labels).table(), name)())["group"]
    assert found[:-1] == labels[:-1]
    assert found[-1] is None or found[-1] != found[-1]


def test_integer_label_next_to_a_missing_one_stays_an_integer_in_pandas():
    found = rule_of([2**53 + 1, None]).table().to_pandas()["group"]
    assert int(found[0]) == 2**53 + 1


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("labels", [["a", 1], [("a", 1), ("b", None)], [("a",), "a"], LABELS], ids=len)
def test_mixed_labels_and_intersections_are_text_in_a_dataframe(name, labels):
    found = EXPORTS[name](getattr(rule_of(labels).table(), name)())["group"]
    assert len(found) == len(labels)
    assert all(isinstance(label, str) for label in found)


@pytest.mark.parametrize(
    "nasty", ["<script>alert(1)</script>", "</td></tr>", "a&b", "&lt;", '"><img src=x onerror=alert(1)>', "'"]
)
def test_labels_are_escaped_in_html(nasty):
    for label in (nasty, ("x", nasty)):
        text = rule_of([label, "plain"]).table()._repr_html_()
        assert html.escape(nasty) in text
        assert "<script" not in text
        assert "<img" not in text
        assert text.count("</tr>") == 3
        assert text.count("</td>") == 2 * 3


def test_column_names_are_escaped_in_html():
    assert "<b>" not in Table({"<b>": [1]})._repr_html_()


def test_html_and_text_have_the_same_cells():
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", RULE.table()._repr_html_())
    assert cells[:6] == ["group", "n", "threshold", "ramp", "rate before", "rate after"]
    assert len(cells) == 6 * 4
    for cell in cells[6:]:
        assert cell in str(RULE.table())


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda table: pickle.loads(pickle.dumps(table))])
def test_table_can_be_copied_and_pickled(again):
    table = RULE.table()
    assert again(table).to_dict() == table.to_dict()


def test_empty_table_prints():
    assert len(Table({})) == 0
    assert "group" in str(Table({"group": []}))


# Equality -----------------------------------------------------------------------------------------


@EVERY_RULE
@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        copy.deepcopy,
        lambda rule: pickle.loads(pickle.dumps(rule)),
        lambda rule: Rule.from_json(rule.to_json()),
        dataclasses.replace,
    ],
    ids=["copy", "deepcopy", "pickle", "json", "replace"],
)
def test_rule_equals_its_copies(rule, again):
    other = again(rule)
    assert other == rule
    assert hash(other) == hash(rule)
    assert other.fingerprint == rule.fingerprint
    assert other.to_json() == rule.to_json()
    assert list(map(type, other.groups)) == list(map(type, rule.groups))


CHANGES = {
    "groups": ("A", "B", "D"),
    "ramps": (Ramp(0.5, 0.01), *RULE.ramps[1:]),
    "ramp": "paper",
    "scale": "signed",
    "cutoff": 0.4,
    "max_gap": 0.03,
    "target_rate": 0.4,
    "pooled": Ramp(0.1, 0.01),
}


@pytest.mark.parametrize("name", CHANGES)
def test_different_rules_are_unequal_and_have_different_fingerprints(name):
    other = dataclasses.replace(RULE, **{name: CHANGES[name]})
    assert other != RULE
    assert other.fingerprint != RULE.fingerprint


def test_policy_alone_changes_the_fingerprint():
    first, second = (rule_of("ab", unseen_group=policy) for policy in ("error", "original"))
    assert first != second
    assert first.fingerprint != second.fingerprint


@pytest.mark.parametrize("other", [True, "1", ("1",), None])
def test_label_types_alone_make_rules_unequal(other):
    first, second = rule_of([1, 5]), rule_of([other, 5])
    assert first.fingerprint != second.fingerprint
    assert first != second


def test_fingerprint_ignores_the_record():
    other = dataclasses.replace(RULE, record=None)
    assert other != RULE
    assert other.fingerprint == RULE.fingerprint
    assert re.fullmatch("[0-9a-f]{64}", RULE.fingerprint)


def test_same_data_give_the_same_file():
    again = fit_rule(SCORES.copy(), GROUPS.copy(), max_gap=0.02, unseen_group="pooled", date="2024-01-31")
    assert again.to_json() == TEXT


# JSON ---------------------------------------------------------------------------------------------


@EVERY_RULE
def test_json_round_trip_is_byte_identical(rule, tmp_path):
    text = rule.to_json()
    assert Rule.from_json(text).to_json() == text
    rule.save(tmp_path / "rule.json")
    content = (tmp_path / "rule.json").read_bytes()
    assert content == text.encode()
    Rule.load(tmp_path / "rule.json").save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == content


@EVERY_RULE
def test_json_keeps_every_bit_and_every_type(rule):
    again = Rule.from_json(rule.to_json())
    assert again == rule
    for name in ("cutoff", "max_gap", "target_rate"):
        assert getattr(again, name).hex() == float(getattr(rule, name)).hex()
    for name in ("foot", "width", "tie"):
        assert [getattr(r, name).hex() for r in again.ramps] == [getattr(r, name).hex() for r in rule.ramps]
    assert repr(again.groups) == repr(rule.groups)


def test_rule_decides_alike_after_a_round_trip():
    again = Rule.from_json(TEXT)
    assert np.array_equal(again.probabilities(SCORES, GROUPS), RULE.probabilities(SCORES, GROUPS))


@EVERY_RULE
def test_json_is_standard_and_equals_the_dictionary(rule):
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    content = json.loads(rule.to_json(), parse_constant=refuse)
    assert content == rule.to_dict()
    assert (content["format"], content["version"]) == ("fairramp.rule", 2)
    assert rule.to_json().endswith("}\n")


def test_dictionary_is_a_copy():
    RULE.to_dict()["groups"].clear()
    RULE.to_dict()["record"]["rates"]["selection"]["rows"].clear()
    assert RULE.to_json() == TEXT


@pytest.mark.parametrize("layout", [{"indent": None}, {"indent": 4}, {"sort_keys": True}, {"ensure_ascii": True}])
def test_json_layout_does_not_matter(layout):
    assert Rule.from_json(json.dumps(RULES["every label"].to_dict(), **layout)) == RULES["every label"]


def test_lone_surrogate_label_can_be_saved_or_is_rejected(tmp_path):
    # JSON can write it as \\ud800; otherwise it must be rejected at the start of the fit.
    groups = np.where(CODES == 0, "\ud800", "B")
    try:
        rule = fit_rule(SCORES, groups)
    except InputError:
        return
    rule.save(tmp_path / "rule.json")
    assert Rule.load(tmp_path / "rule.json") == rule


# Damage -------------------------------------------------------------------------------------------


def refused(text, *words):
    """Check that text is rejected as a rule, with a message that contains all the words."""
    with pytest.raises(RuleFormatError) as caught:
        Rule.from_json(text)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, FairrampError)
    sentence = str(caught.value)
    for word in words:
        assert word in sentence, f"{word!r} is not in: {sentence}"
    assert len(sentence) < 400
    assert sentence.endswith(".")
    return sentence


def changed(path, value, rule=RULE):
    """JSON text of a rule with one value replaced, at a path such as ("record", "rows", 0)."""
    content = rule.to_dict()
    place = content
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(content)


def test_undamaged_text_is_read():
    assert Rule.from_json(changed(("max_gap",), RULE.max_gap)) == RULE


@pytest.mark.parametrize("share", [0, 0.01, 0.3, 0.6, 0.9, 0.99])
def test_truncated_text_raises(share):
    refused(TEXT[: int(share * len(TEXT))], "not valid JSON")


def test_every_truncation_is_recognized():
    for length in range(len(TEXT.rstrip())):
        with pytest.raises(
            RuleFormatError, match=r"^The rule is truncated, .*; copy it again, or fit the rule again\.$"
        ):
            Rule.from_json(TEXT[:length])


@pytest.mark.parametrize("text", ["rule", "{'format': 1}", TEXT + "x", "group,score\nA,0.5\n"])
def test_complete_text_is_not_called_truncated(text):
    with pytest.raises(RuleFormatError, match=r"^Not a rule: not valid JSON: "):
        Rule.from_json(text)


@pytest.mark.parametrize(
    "text", ["", " ", "rule", "{", "{'format': 1}", TEXT + "x", TEXT * 2, "\ufeff" + TEXT, "\x00"]
)
def test_invalid_json_raises(text):
    refused(text, "not valid JSON")


@pytest.mark.parametrize("text", ["null", "1", '"fairramp.rule"', "[]", "{}", '{"format": "other"}', f"[{TEXT}]"])
def test_json_that_is_not_a_rule_raises(text):
    refused(text, "Not a rule", "format")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 400])
@pytest.mark.parametrize("name", ["cutoff", "width", "max_gap"])
def test_non_finite_numbers_raise(number, name):
    refused(re.sub(rf'"{name}": [^,]*,', f'"{name}": {number},', TEXT, count=1), "umber")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_non_finite_feet_raise(number):
    refused(re.sub(r'"foot": [^,]*,', f'"foot": {number},', TEXT, count=1), "number")
    refused(re.sub(r'"effective_rows": \[\s*[^,]*,', f'"effective_rows": [{number},', TEXT), "number")


@pytest.mark.parametrize("name", ["format", "version", "cutoff", "groups", "record"])
def test_duplicate_field_raises(name):
    refused(TEXT.replace("{", f'{{"{name}": {json.dumps(RULE.to_dict()[name])},', 1), name, "twice")


def test_duplicate_nested_field_raises():
    refused(TEXT.replace('"label": "A"', '"label": "B", "label": "A"'), "label", "twice")
    refused(TEXT.replace('"weighted": false', '"weighted": false, "weighted": false'), "weighted", "twice")


PLACES = {
    "the rule": (),
    '"groups[0]"': ("groups", 0),
    '"pooled"': ("pooled",),
    '"columns"': ("columns",),
    '"record"': ("record",),
    '"record.rates[...]"': ("record", "rates", "selection"),
}


@pytest.mark.parametrize("place", PLACES)
def test_unknown_field_raises_at_every_level(place):
    refused(changed((*PLACES[place], "surprise"), 1), "surprise", place, "unknown")


@pytest.mark.parametrize(
    ("place", "name"),
    [
        *(("the rule", name) for name in RULE.to_dict() if name not in ("format", "version")),
        *(('"groups[0]"', name) for name in ("label", "foot", "width", "tie")),
        *(('"pooled"', name) for name in ("foot", "width", "tie")),
        *(('"columns"', name) for name in ("score", "groups", "strata")),
        *(('"record"', name) for name in names_of(RULE.record) if name in RULE.to_dict()["record"]),
        *(('"record.rates[...]"', name) for name in names_of(RATES)),
    ],
)
def test_missing_field_raises(place, name):
    content = RULE.to_dict()
    inner = content
    for step in PLACES[place]:
        inner = inner[step]
    del inner[name]
    refused(json.dumps(content), name, place, "missing")


@pytest.mark.parametrize("version", [0, 1, 3, 2.5, 2.0, "2", None, True, [2], {}])
def test_other_version_raises_with_a_remedy(version):
    refused(changed(("version",), version), "version", repr(version), "reads version 2", "fit the rule again")


def test_missing_version_raises():
    content = RULE.to_dict()
    del content["version"]
    refused(json.dumps(content), "ersion")


WRONG_NUMBERS = ["0.5", None, True, [0.5], {}]
SELECTION = ("record", "rates", "selection")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(((name,), v) for name in ("cutoff", "max_gap", "target_rate") for v in WRONG_NUMBERS),
        *(((name,), v) for name in ("ramp", "scale", "unseen_group") for v in (1, None, True, ["error"], {})),
        *((("stratified",), v) for v in (None, 0, 1, "false")),
        *((("groups", 1, name), v) for name in ("foot", "width", "tie") for v in WRONG_NUMBERS),
        *((("pooled", name), v) for name in ("foot", "width", "tie") for v in WRONG_NUMBERS),
        *((("groups",), v) for v in (None, {}, "ABC", 3)),
        *((("groups", 0), v) for v in (None, [], "A", 3)),
        *((("groups", 0, "label"), v) for v in (0.5, 1.0, {}, ["a", 0.5], [["a", {}]])),
        *((("pooled",), v) for v in (0.5, [], "no", True)),
        *((("record",), v) for v in (0.5, [], "no", True)),
        *((("record", "rates"), v) for v in (None, [], {}, {"tpr": {}}, 5)),
        *(
            ((*SELECTION, name), v)
            for name in ("rows", "rows_above", "rows_inside")
            for v in ([1, 2, 0.5], [1, 2, -1])
        ),
        *(((*SELECTION, name), v) for name in ("rows", "after", "effective_rows") for v in (None, {}, 5, "abc")),
        *(
            ((*SELECTION, name), [0.1, 0.2, v])
            for name in ("before", "after", "error")
            for v in (-0.1, 1.1, "0", None)
        ),
        *(((*SELECTION, "effective_rows"), [1, 2, v]) for v in (-1, None, True)),
        *((("record", "target"), v) for v in (None, True, 1.5, -1, [], "nonsense")),
        *((("record", "ramp_width"), v) for v in (None, -1, True, "0.1")),
        *((("record", "weighted"), v) for v in (None, 0, 1, "false")),
        *((("columns", "score"), v) for v in (1, True, ["p"])),
        *((("columns", name), v) for name in ("groups", "strata") for v in ("sex", [1], {"a": 1}, [None])),
        *((("record", name), v) for name in ("fingerprint", "version") for v in (None, 1, ["a"])),
        *((("record", "date"), v) for v in (1, True, ["2024"])),
    ],
    ids=lambda v: ".".join(map(str, v)) if isinstance(v, tuple) else ascii(v),
)
def test_wrong_type_or_range_raises_and_names_the_field(path, value):
    name = next(step for step in reversed(path) if isinstance(step, str))
    refused(changed(path, value), name.removesuffix("s"))


@pytest.mark.parametrize("path", [("groups", 0), ("pooled",), ("record",)], ids=lambda path: path[0])
def test_message_starts_with_a_capital(path):
    sentence = refused(changed(path, 5), "must be an object")
    assert not sentence[0].islower(), sentence


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("groups", 0, "width"), 1e-9, "width"),
        (("groups", 0, "width"), -1, "width"),
        (("ramp",), "linear", "ramp"),
        (("scale",), "odds", "scale"),
        (("unseen_group",), "ignore", "unseen_group"),
        (("max_gap",), 1.5, "max_gap"),
        (("target_rate",), -0.5, "target_rate"),
        (("groups",), [], "at least one group"),
        (("groups", 0, "tie"), 1.5, "tie"),
        (("groups", 0, "label"), "B", "distinct"),
        (("pooled",), None, "pooled"),
        (("unseen_group",), "error", "pooled"),
        (("unseen_group",), "original", "pooled"),
        (("cutoff",), 7, "cutoff"),
        (("cutoff",), -0.1, "cutoff"),
    ],
)
def test_inconsistent_values_raise(path, value, words):
    refused(changed(path, value), words)


@pytest.mark.parametrize("labels", [[1, 1], ["a", "a"], [None, None], [["a", 1], ["a", 1]], [True, True]])
def test_duplicate_groups_raise(labels):
    content = rule_of("ab").to_dict()
    for group, label in zip(content["groups"], labels, strict=True):
        group["label"] = label
    refused(json.dumps(content), "distinct")


@pytest.mark.parametrize("name", names_of(RATES))
def test_lists_of_different_length_raise(name):
    values = RULE.to_dict()["record"]["rates"]["selection"][name]
    refused(changed((*SELECTION, name), values[:-1]), "length")
    refused(changed((*SELECTION, name), [*values, values[0]]), "length")


def test_record_for_other_groups_raises():
    content = RULE.to_dict()
    content["groups"].pop()
    refused(json.dumps(content), "record")


@pytest.mark.parametrize("name", ["rows_above", "rows_inside"])
def test_record_with_too_many_rows_above_or_inside_raises(name):
    refused(changed((*SELECTION, name), [201, 0, 0]), name)


DEEP_PLACES = [
    ("cutoff",),
    ("groups",),
    ("groups", 0),
    ("groups", 0, "label"),
    ("groups", 0, "foot"),
    ("pooled",),
    ("record",),
    ("record", "rates"),
    (*SELECTION, "rows"),
    (*SELECTION, "rows", 0),
    ("columns", "groups"),
    ("record", "target"),
    ("version",),
    ("format",),
]


@pytest.mark.parametrize("depth", [20, 200, 400, 600, 900, 2_000, 100_000])
@pytest.mark.parametrize("path", DEEP_PLACES, ids=lambda path: ".".join(map(str, path)))
def test_deep_nesting_raises(depth, path):
    # A label can be a list of labels, so only the innermost value makes this one invalid.
    text = changed(path, "here").replace('"here"', "[" * depth + "0.5" + "]" * depth)
    with pytest.raises(RuleFormatError) as caught:
        Rule.from_json(text)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("depth", [20, 200, 400, 600, 900])
def test_deeply_nested_label_is_rejected_or_works(depth):
    text = changed(("groups", 0, "label"), "here").replace('"here"', "[" * depth + '"A"' + "]" * depth)
    try:
        rule = Rule.from_json(text)
    except RuleFormatError:
        return
    assert Rule.from_json(rule.to_json()) == rule
    assert "A" in repr(rule)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_text_with_any_character_changed_is_rejected_or_a_valid_rule(seed):
    rng = np.random.default_rng(seed)
    characters = list('0123456789.eE+-"[]{},: nulltrue\\\n\x00é')
    for place in range(seed, len(TEXT), 3):
        new = ["", str(rng.choice(characters)), TEXT[place] * 2][seed]
        try:
            rule = Rule.from_json(TEXT[:place] + new + TEXT[place + 1 :])
        except RuleFormatError:
            continue
        assert Rule.from_json(rule.to_json()) == rule
        assert repr(rule)
        assert rule.probabilities(np.linspace(0, 1, 5), [rule.groups[0]] * 5).shape == (5,)


@pytest.mark.parametrize("value", [None, 5, {}, Path("rule.json")])
def test_non_text_raises(value):
    with pytest.raises((TypeError, FairrampError)):
        Rule.from_json(value)


# Files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, Path])
def test_path_can_be_str_or_path(tmp_path, kind):
    path = kind(tmp_path / "Regel für 日本.json")
    RULE.save(path)
    assert Rule.load(path) == RULE
    assert os.listdir(tmp_path) == ["Regel für 日本.json"]


def test_bare_file_name_is_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    RULE.save("rule.json")
    assert Rule.load("rule.json") == RULE
    assert os.listdir(tmp_path) == ["rule.json"]


def test_saving_again_replaces_the_file(tmp_path):
    path = tmp_path / "rule.json"
    path.write_text("x" * 100_000, encoding="ascii")
    RULE.save(path)
    assert path.read_text(encoding="utf-8") == TEXT


@pytest.mark.posix("files have access lists instead of permissions")
def test_umask_is_respected(tmp_path):
    path = tmp_path / "rule.json"
    mask = os.umask(0o027)
    try:
        RULE.save(path)
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.posix("files have access lists instead of permissions")
def test_saving_again_keeps_permissions(tmp_path):
    path = tmp_path / "rule.json"
    RULE.save(path)
    path.chmod(0o600)
    RULE.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.posix("pipes have no names in folders")
def test_pipe_is_written_and_stays_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        RULE.save(path)
        assert os.read(reader, 1 << 16) == TEXT.encode()
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_unflushable_folder_does_not_fail_a_save(tmp_path, monkeypatch):
    flush = os.fsync

    def flush_files(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        os.write(handle, b"")  # fails if the handle is read-only, which Windows does not allow
        flush(handle)

    monkeypatch.setattr("os.fsync", flush_files)
    RULE.save(tmp_path / "rule.json")
    assert Rule.load(tmp_path / "rule.json") == RULE


@pytest.mark.parametrize("existing", [True, False], ids=["over a file", "anew"])
@pytest.mark.parametrize(
    "culprit",
    ["os.replace", "pathlib.Path.replace", "os.fsync", "fairramp.Rule.to_json"],
)
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["OSError", "interrupt"])
def test_failed_save_changes_nothing(tmp_path, monkeypatch, existing, culprit, error):
    path = tmp_path / "rule.json"
    if existing:
        RULES["logit"].save(path)

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(culprit, fail)
    if culprit == "os.replace":  # either may be used
        monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(type(error)):
        RULE.save(path)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == (["rule.json"] if existing else [])
    if existing:
        assert Rule.load(path) == RULES["logit"]


def test_missing_folder_raises_and_is_named(tmp_path):
    with pytest.raises((FileNotFoundError, FairrampError)) as caught:
        RULE.save(tmp_path / "nowhere" / "rule.json")
    assert "nowhere" in str(caught.value)
    assert ".part" not in str(caught.value)


def test_saving_to_a_folder_raises(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises((OSError, FairrampError)) as caught:
        RULE.save(folder)
    assert "folder" in str(caught.value)
    assert ".part" not in str(caught.value)
    assert os.listdir(tmp_path) == ["folder"]


def test_missing_file_raises_and_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.json"):
        Rule.load(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not valid JSON"),
        (TEXT.encode()[:200], "not valid JSON"),
        (TEXT.encode("utf-16"), "UTF-8"),
        (TEXT.replace('"A"', '"Ä"').encode("latin-1"), "UTF-8"),
        (b"\xff\xfe", "UTF-8"),
        (b"PK\x03\x04\x80", "UTF-8"),
        (b"\x80\x05\x95", "UTF-8"),
        (b"group,score\nA,0.5\n", "not valid JSON"),
        (b"[1, 2]", "Not a rule"),
        (TEXT.replace('"version": 2', '"version": 1').encode(), "ersion 1"),
        (TEXT.replace('"ramp": "centered"', '"ramp": "linear"').encode(), "ramp"),
    ],
    ids=["empty", "cut", "utf-16", "latin-1", "no text", "zip", "pickle", "csv", "list", "version", "value"],
)
def test_damaged_file_raises_with_path_and_reason(tmp_path, content, words):
    path = tmp_path / "rule.json"
    path.write_bytes(content)
    with pytest.raises(RuleFormatError) as caught:
        Rule.load(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("scale", ["probability", "logit"])
@pytest.mark.parametrize("width", [0.0, 0.2])
@pytest.mark.parametrize("stride", [1, 3])
def test_probabilities_can_be_written_to_a_given_array(scale, width, stride):
    rng = np.random.default_rng(5)
    scores, groups = rng.random(1000), rng.integers(0, 2, 1000)
    rule = Rule((0, 1), (Ramp.centered(0.3, width, 0.5), Ramp.centered(0.6, width, 0.5)), scale=scale, cutoff=0.5)
    room = np.full(1000 * stride, 7.0)
    found = rule.probabilities(scores, groups, out=room[::stride])
    assert np.shares_memory(found, room)
    np.testing.assert_array_equal(found, rule.probabilities(scores, groups))
    assert stride == 1 or (room[1::stride] == 7.0).all()


def test_unsuitable_output_array_raises():
    rule = Rule((0, 1), (Ramp.centered(0.3, 0.1), Ramp.centered(0.6, 0.1)))
    scores, groups = np.linspace(0, 1, 6), np.array([0, 1] * 3)
    fixed = np.zeros(6)
    fixed.flags.writeable = False
    for out, said in (
        (np.zeros(5), r"shape \(6,\), got float64 of shape \(5,\)"),
        (np.zeros(6, np.float32), "float64 .* got float32"),
        ([0.0] * 6, r"got \[0\.0, 0\.0"),
        (fixed, "read-only"),
        (scores, "must not share memory with `scores`"),
        (scores[::-1], "must not share memory with `scores`"),
        (groups.view(np.float64), "must not share memory"),
    ):
        with pytest.raises(InputError, match=said):
            rule.probabilities(scores, groups, out=out)
    np.testing.assert_array_equal(scores, np.linspace(0, 1, 6))


def test_table_for_mixed_widths_shows_tie_probabilities_and_ramps():
    found = Rule(("a", "b"), (Ramp(0.5, 0.0, 0.3), Ramp(0.4, 0.1))).table()
    assert found["probability_at_threshold"].tolist() == [0.3, 0.5]
    assert found["ramp_from"].tolist() == [0.5, 0.4]
    assert found["ramp_to"].tolist() == [0.5, 0.5]


def test_version_1_raises_with_a_remedy():
    with pytest.raises(RuleFormatError) as caught:
        Rule.from_json('{"format": "fairramp.rule", "version": 1}')
    sentence = "Version 1 of a rule is not supported: this library reads version 2; fit the rule again."
    assert str(caught.value) == sentence


def test_table_text_shows_an_interval_in_one_column():
    columns = {"group": ["A"], "rate": [0.0772], "rate_low": [0.0716], "rate_high": [0.0832]}
    table = Table(columns, shares=["rate"], confidence=0.9)
    assert str(table).splitlines() == [
        "group      rate (90% CI)",
        "-----  -----------------",
        "A      7.7% [7.2%, 8.3%]",
    ]
    assert table.columns == tuple(columns)


def test_table_text_shows_a_range_in_one_column():
    table = Table({"ramp_from": [0.25], "ramp_to": [0.5], "gap": [0.1683]}, decimals=2, gaps=["gap"])
    assert str(table).splitlines()[0].split() == ["ramp", "gap"]
    assert str(table).splitlines()[2] == "0.25 to 0.50  16.8 points"


def test_table_stacks_headings_only_if_they_are_too_wide():
    wide = Table({f"a_rather_long_heading_{i}": [i] for i in range(5)})
    assert str(wide).splitlines()[0].split() == ["a"] * 5
    assert max(map(len, str(wide).splitlines())) <= 80
    assert str(Table({"a_heading": [1]})).splitlines()[0] == "a heading"


@pytest.mark.parametrize("value", [np.nan, 0.0, 1e-12, 1e-5, 0.5, 1.0, -0.25])
def test_percentages_never_show_something_as_nothing(value):
    text = words.percent(value)
    assert (text == "–") == np.isnan(value)
    assert (text == "0.0%") == (abs(value) <= 1e-9)
    assert "e" not in text


@given(st.floats(0, 1))
def test_rounded_up_limits_are_never_below_the_limit(limit):
    assert float(words.upward_points(limit).removesuffix(" points")) >= 100 * limit - 1e-7


@pytest.mark.parametrize("name", ["n", "threshold", "ramp", "rate before", "rate after"])
def test_group_column_with_the_name_of_another_column_stays_visible(name):
    rule = fit_rule(SCORES, {name: CODES})
    assert str(rule.table()).splitlines()[0].split("  ")[0].strip() == name
    assert all(re.search(rf"^{label} ", str(rule.table()), re.MULTILINE) for label in rule.groups)


def test_merged_columns_are_shown_once_in_any_order():
    table = Table({"rate_low": [0.1], "rate": [0.2], "rate_high": [0.3]}, decimals=1)
    assert [line.strip() for line in str(table).splitlines()][::2] == ["rate (95% CI)", "0.2 [0.1, 0.3]"]


def test_huge_numbers_print():
    assert "1" in str(Table({"x": [1e25]}))


@pytest.mark.parametrize(
    ("setting", "text"),
    [(0.02, "2.0 points"), (0.0325, "3.25 points"), (0.0025, "0.25 points"), (0.024343209, "2.5 points")],
)
def test_settings_are_never_rounded_down(setting, text):
    assert words.exact_points(setting) == text
