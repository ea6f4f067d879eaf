"""Unseen groups raise, use the pooled ramp, or keep the classifier's own decision, as requested."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairramp import InputError, Ramp, Rule, UnseenGroupError, fit_rule
from fairramp.cli.app import spelled
from fairramp.rule.unseen import unseen_groups
from samples import KEY, quiet_fit, sample

SCORES, CODES = sample(600, n_groups=3)
GROUPS = np.array(["A", "B", "C"])[CODES]
LINE = np.linspace(0, 1, 2_001)
NEW = np.full(len(LINE), "new")
MISSING = [None, float("nan"), pd.NA]
POLICIES = ["error", "pooled", "original"]


# The error policy ---------------------------------------------------------------------------------


def test_error_is_the_default_policy():
    assert fit_rule(SCORES, GROUPS).unseen_group == "error"
    assert Rule(("A",), (Ramp.centered(0.5, 0.1),)).unseen_group == "error"


@pytest.mark.parametrize("method", ["probabilities", "decide"])
def test_unseen_group_raises_naming_unseen_and_fitted_groups(method):
    rule = fit_rule(SCORES, GROUPS)
    ask = rule.probabilities if method == "probabilities" else lambda *data: rule.decide(*data, random_state=0)
    with pytest.raises(UnseenGroupError) as caught:
        ask([0.1, 0.2, 0.3, 0.4], ["B", "E", "D", "E"])
    assert str(caught.value).startswith("Groups not in the fit rows: ['D', 'E']; fitted groups: ['A', 'B', 'C'].")
    assert "with `unseen_group='pooled'` or `unseen_group='original'`." in str(caught.value)
    assert isinstance(caught.value, InputError)


@pytest.mark.parametrize(
    ("fitted", "asked", "named"),
    [
        ([0, 1, 2], [5], "[5]; fitted groups: [0, 1, 2]"),
        ([0, 1, 2], ["0"], "['0']; fitted groups: [0, 1, 2]"),
        (["0", "1", "2"], [0], "[0]; fitted groups: ['0', '1', '2']"),
        ([5, 10**9, 10**12], [6], "[6]; fitted groups: [5, 1000000000, 1000000000000]"),
        (["a", "A", "å"], ["ä"], "['ä']; fitted groups: ['A', 'a', 'å']"),
        ([True, False, None], ["None"], "['None']; fitted groups: [False, True, (missing)]"),
        (
            [("f", 1), ("f", 2), ("m", 1)],
            [("m", 2)],
            "[('m', 2)]; fitted groups: [('f', 1), ('f', 2), ('m', 1)]",
        ),
        ([("f", 1), ("f", 2), ("m", 1)], ["f"], "['f']; fitted groups: [('f', 1), ('f', 2), ('m', 1)]"),
    ],
)
def test_unseen_labels_of_every_type_are_named(fitted, asked, named):
    rule = quiet_fit(SCORES, [fitted[code] for code in CODES])  # some differ only in case
    with pytest.raises(UnseenGroupError) as caught:
        rule.probabilities([0.5], asked)
    assert named in str(caught.value)


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("crossed", [False, True])
def test_missing_values_and_blank_text_are_distinguished(missing, crossed):
    def column(label):
        return [(label, "x")] if crossed else pd.Series([label], dtype=object)

    labels = [("", "x"), ("A", "x")] if crossed else ["", "A"]
    blank = Rule(tuple(labels), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    with pytest.raises(
        UnseenGroupError, match=r"group '' \(the empty string\), but None .* keep_default_na=False\."
    ):
        blank.probabilities([0.5], column(missing))
    gone = Rule((labels[1], (None, "x") if crossed else None), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    with pytest.raises(
        UnseenGroupError, match=r"group None \(a missing value\), but '' \(the empty string\) is another"
    ):
        gone.probabilities([0.5], column(""))
    for rule in (blank, gone):
        with pytest.raises(UnseenGroupError) as caught:
            rule.probabilities([0.5], column("B"))
        assert "blank" not in str(caught.value)


def unseen_message(fitted, asked):
    rule = Rule(tuple(fitted), (Ramp.centered(0.5, 0.1),) * len(fitted))
    with pytest.raises(UnseenGroupError) as caught:
        rule.probabilities([0.5] * len(asked), asked)
    return str(caught.value)


@pytest.mark.parametrize(
    ("fitted", "asked", "near"),
    [
        (["Female", "Male"], "male", "'Male' (for 'male')"),
        (["Female", "Male"], " Male ", "'Male' (for ' Male ')"),
        (["New York", "Boston"], "newyork", "'New York' (for 'newyork')"),
        (["Straße", "Weg"], "STRASSE", "'Straße' (for 'STRASSE')"),
        ([0, 1], "0", "0 (for '0')"),
        (["0", "1"], 0, "'0' (for 0)"),
        ([("f", 1), ("m", 1)], ("F", 1), "('f', 1) (for ('F', 1))"),
    ],
)
def test_the_group_that_was_probably_meant_is_suggested(fitted, asked, near):
    for column in ([asked], [fitted[1], asked]):
        said = unseen_message(fitted, column)
        assert f"Did you mean {near}? " in said
        assert "accents" not in said


def test_only_similar_groups_are_suggested():
    said = unseen_message(["Female", "Male"], ["Female", "male", "femal", "{Male}", None])
    assert "Did you mean 'Male' (for 'male')? " in said
    assert said.count("(for ") == 1
    assert "Did you mean" not in unseen_message(["é", "B"], ["e", "B"])


def test_accents_in_separate_characters_are_explained():
    said = unseen_message(["caf\u00e9", "bar"], ["cafe\u0301", "bar"])
    assert "Did you mean 'caf\u00e9' (for 'cafe\u0301')? Their accents are separate characters" in said


def test_python_and_the_command_line_list_the_same_groups():
    def told(**options):
        return unseen_groups(["male", None], ["Female", "Male"], policies=("pooled",), **options)

    python, command = str(told()), told(rows=[2, 1]).told(spelled)
    assert python.startswith(
        "Groups not in the fit rows: ['male', (missing)]; fitted groups: ['Female', 'Male']. "
    )
    assert command.startswith(
        "Groups not in the fit rows: male (2 rows), (missing) (1 row); fitted groups: Female"
    )
    guess = (
        " Did you mean 'Male' (for 'male')? Correct them, fit again on rows that include them, or fit again with "
    )
    assert python.endswith(f"{guess}`unseen_group='pooled'`.")
    assert command.endswith(f"{guess}--unseen-group pooled.")


def test_integers_between_fitted_ones_are_unseen():
    rule = fit_rule(SCORES, np.array([0, 2, 4])[CODES])
    with pytest.raises(UnseenGroupError, match=r"\[1, 3\]"):
        rule.probabilities([0.5] * 5, np.arange(5))


def test_intersection_of_seen_values_can_be_unseen():
    rule = fit_rule(SCORES, {"sex": np.array(["f", "f", "m"])[CODES], "old": (CODES == 1)})
    with pytest.raises(UnseenGroupError, match=r"\('m', True\)"):
        rule.probabilities([0.5], {"sex": ["m"], "old": [True]})


def test_long_lists_of_groups_are_shortened():
    rule = quiet_fit(SCORES, np.arange(len(SCORES)) % 300)
    with pytest.raises(UnseenGroupError) as caught:
        rule.probabilities(SCORES, 1_000 + np.arange(len(SCORES)))
    assert "1009, … 590 more]" in str(caught.value)
    assert "9, … 290 more]" in str(caught.value)
    assert len(str(caught.value)) < 320


def test_unused_categories_are_not_unseen_groups():
    rule = fit_rule(SCORES, GROUPS)
    column = pd.Series(pd.Categorical(["A", "B"], ["A", "B", "new"]))
    assert len(rule.probabilities([0.1, 0.9], column)) == 2


def test_unseen_row_in_a_late_block_is_found():
    rule = fit_rule(SCORES, CODES)
    groups = np.zeros(300_000, dtype=np.int64)
    groups[-1] = 3
    with pytest.raises(UnseenGroupError, match=r"\[3\]"):
        rule.probabilities(np.full(300_000, 0.5), groups)


# Pooled -------------------------------------------------------------------------------------------


def everyone_as_one(rule, scores, **options):
    """Fit all rows as one group to the rule's band."""
    return quiet_fit(scores, np.zeros(len(scores)), target_rate=rule.target_rate, max_gap=rule.max_gap, **options)


def check_pooled(scores, groups, slack=1e-9, line=LINE, **options):
    rule = quiet_fit(scores, groups, unseen_group="pooled", **options)
    for name in ("max_gap", "target_rate"):
        options.pop(name, None)
    alone = everyone_as_one(rule, scores, **options)
    assert rule.threshold_of(rule.pooled) == pytest.approx(alone.thresholds[0], abs=slack)
    assert rule.pooled.tie == pytest.approx(alone.ramps[0].tie, abs=slack)
    found = rule.probabilities(line, np.full(len(line), "new"))
    expected = alone.probabilities(line, np.zeros(len(line)))
    width = options.get("ramp_width", 0.01)
    np.testing.assert_allclose(found, expected, rtol=0, atol=slack / width if width else slack)
    # All fit rows together reach the band.
    weights = options.get("sample_weight")
    rate = np.average(rule.probabilities(scores, np.full(len(scores), "new")), weights=weights)
    half = rule.max_gap / 2
    assert rule.target_rate - half - 1e-9 <= rate <= rule.target_rate + half + 1e-9
    return rule


@pytest.mark.parametrize("ramp_width", [0, 1e-6, 0.01, 0.4])
@pytest.mark.parametrize("ramp", ["centered", "paper"])
@pytest.mark.parametrize("max_gap", [0, 0.03])
@pytest.mark.parametrize("target_rate", ["optimal", 0.15, 0.9])
@pytest.mark.parametrize("way", ["sorted", "binned"])
def test_pooled_ramp_is_that_of_all_rows_as_one_group(request, way, target_rate, max_gap, ramp, ramp_width):
    if way == "binned":
        request.getfixturevalue("binned")
    check_pooled(SCORES, GROUPS, ramp_width=ramp_width, ramp=ramp, max_gap=max_gap, target_rate=target_rate)


@pytest.mark.parametrize("ramp_width", [0, 0.01])
def test_pooled_uses_weights(ramp_width):
    weights = np.random.default_rng(4).exponential(size=len(SCORES))
    rule = check_pooled(SCORES, GROUPS, sample_weight=weights, target_rate=0.3, ramp_width=ramp_width)
    plain = check_pooled(SCORES, GROUPS, target_rate=0.3, ramp_width=ramp_width)
    assert rule.pooled != plain.pooled


@pytest.mark.parametrize("ramp_width", [0, 0.01])
def test_pooled_splits_ties(ramp_width):
    check_pooled(np.round(SCORES, 1), GROUPS, ramp_width=ramp_width, target_rate=0.37)


@pytest.mark.parametrize("scale", ["signed", "logit"])
@pytest.mark.parametrize("ramp_width", [0, 0.01])
def test_pooled_works_on_the_other_scales(scale, ramp_width):
    check_pooled(2 * SCORES - 1, GROUPS, scale=scale, ramp_width=ramp_width, line=2 * LINE - 1)


def test_pooled_is_exact_on_many_rows():
    scores, groups = sample(60_000, n_groups=3, seed=9)
    check_pooled(scores, groups, max_gap=0.01)


@pytest.mark.parametrize("ramp_width", [0, 0.01])
def test_pooled_keeps_own_decisions_if_nothing_had_to_change(ramp_width):
    rule = fit_rule(SCORES, GROUPS, max_gap=1, unseen_group="pooled", ramp_width=ramp_width)
    assert np.array_equal(rule.probabilities(LINE, NEW), LINE >= 0.5)


# Original -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ramp_width", [0, 0.01, 0.4])
@pytest.mark.parametrize("cutoff", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("ramp", ["centered", "paper"])
def test_original_selects_at_the_cutoff_or_above(cutoff, ramp_width, ramp):
    options = {"cutoff": cutoff, "ramp_width": ramp_width, "ramp": ramp}
    rule = fit_rule(SCORES, GROUPS, unseen_group="original", **options)
    line = np.append(LINE, [np.nextafter(cutoff, 0), cutoff, np.nextafter(cutoff, 1)])
    assert np.array_equal(rule.probabilities(line, ["new"] * len(line)), line >= cutoff)


@pytest.mark.parametrize("cutoff", [0.1, 0.3, 0.6, 0.7])
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_original_compares_narrow_floats_as_float64(kind, cutoff):
    # float32(0.7) is 0.69999999, below a cutoff of 0.7, and the fit treats it so.
    rule = fit_rule(SCORES, GROUPS, cutoff=cutoff, unseen_group="original")
    column = np.array([cutoff], dtype=kind)
    expected = column.astype(np.float64) >= cutoff
    assert np.array_equal(rule.probabilities(column, ["new"]), expected)
    assert quiet_fit(column, ["A"], cutoff=cutoff).record.rates["selection"].before == (expected[0],)


@pytest.mark.parametrize("cutoff", [None, -3.0, 2.5])
def test_original_compares_logits_with_the_cutoff(cutoff):
    logits = np.log(SCORES / (1 - SCORES))
    rule = quiet_fit(logits, GROUPS, scale="logit", cutoff=cutoff, unseen_group="original")
    line = np.linspace(-6, 6, 2_001)
    assert np.array_equal(rule.probabilities(line, NEW), line >= (cutoff or 0.0))


@pytest.mark.parametrize("cutoff", [-3.0, 0.0, 2.5])
def test_original_compares_logits_exactly(cutoff):
    logits = np.log(SCORES / (1 - SCORES))
    rule = quiet_fit(logits, GROUPS, scale="logit", cutoff=cutoff, unseen_group="original")
    line = [np.nextafter(cutoff, -9), cutoff, np.nextafter(cutoff, 9)]
    assert rule.probabilities(line, ["new"] * 3).tolist() == [0, 1, 1]


def test_original_uses_0_for_signed_scores():
    rule = fit_rule(2 * SCORES - 1, GROUPS, scale="signed", unseen_group="original")
    line = 2 * LINE - 1
    assert np.array_equal(rule.probabilities(line, NEW), line >= 0)


@pytest.mark.parametrize("cutoff", [40.0, 100.0, -40.0, -100.0])
def test_original_distinguishes_saturated_logits_at_an_extreme_cutoff(cutoff):
    logits = np.log(SCORES / (1 - SCORES))
    rule = quiet_fit(logits, GROUPS, scale="logit", cutoff=cutoff, unseen_group="original")
    assert rule.probabilities([cutoff - 1, cutoff, cutoff + 1], ["new"] * 3).tolist() == [0, 1, 1]


# Seen rows and missing groups ---------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["pooled", "original"])
@pytest.mark.parametrize("ramp_width", [0, 0.01])
def test_policy_does_not_affect_seen_groups(policy, ramp_width):
    expected = fit_rule(SCORES, GROUPS, ramp_width=ramp_width).probabilities(SCORES, GROUPS)
    rule = fit_rule(SCORES, GROUPS, unseen_group=policy, ramp_width=ramp_width)
    assert np.array_equal(rule.probabilities(SCORES, GROUPS), expected)
    # Nor in a column with unseen groups.
    both = rule.probabilities(np.tile(SCORES, 2), np.concatenate([GROUPS, np.full(len(GROUPS), "new")]))
    assert np.array_equal(both[: len(GROUPS)], expected)


@pytest.mark.parametrize("policy", ["pooled", "original"])
def test_all_unseen_groups_are_treated_alike(policy):
    rule = fit_rule(SCORES, GROUPS, unseen_group=policy)
    expected = rule.probabilities(LINE, NEW)
    for other in (np.arange(len(LINE)), [None] * len(LINE), [("A", "B")] * len(LINE), LINE > 0.3):
        assert np.array_equal(rule.probabilities(LINE, other), expected)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("missing", MISSING, ids=repr)
@pytest.mark.parametrize("asked", MISSING, ids=repr)
def test_missing_value_seen_in_the_fit_is_its_own_group(policy, missing, asked):
    groups = [["A", "B", missing][code] for code in CODES]
    rule = fit_rule(SCORES, groups, unseen_group=policy, ramp_width=0.2)
    assert rule.groups == ("A", "B", None)
    expected = np.clip(0.5 + (LINE - rule.thresholds[2]) / 0.2, 0, 1)
    assert rule.probabilities(LINE, [asked] * len(LINE)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("asked", MISSING, ids=repr)
def test_missing_value_not_seen_in_the_fit_is_unseen(asked):
    with pytest.raises(UnseenGroupError, match=r"\[\(missing\)\]"):
        fit_rule(SCORES, GROUPS).probabilities([0.4], [asked])
    for policy in ("pooled", "original"):
        rule = fit_rule(SCORES, GROUPS, unseen_group=policy)
        assert np.array_equal(rule.probabilities(LINE, [asked] * len(LINE)), rule.probabilities(LINE, NEW))


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["A", None]),
        pd.Series(["A", None], dtype="category"),
        pd.Categorical(["A", None], ["A", "B"]),
        pl.Series(["A", None]),
        pl.Series(["A", None], dtype=pl.Categorical),
    ],
    ids=["pandas", "category", "categorical", "polars", "polars categorical"],
)
def test_missing_value_in_any_column_type_is_unseen(column):
    with pytest.raises(UnseenGroupError, match=r"not in the fit rows: \[\(missing\)\]"):
        fit_rule(SCORES, GROUPS).probabilities([0.4, 0.4], column)


def test_missing_part_of_an_intersection_is_unseen():
    rule = fit_rule(SCORES, {"a": GROUPS, "b": CODES % 2})
    with pytest.raises(UnseenGroupError, match=r"\('A', None\)"):
        rule.probabilities([0.4], {"a": ["A"], "b": [None]})


@pytest.mark.parametrize("policy", POLICIES)
def test_policy_survives_saving(policy, tmp_path):
    rule = fit_rule(SCORES, GROUPS, unseen_group=policy)
    rule.save(tmp_path / "rule.json")
    again = Rule.load(tmp_path / "rule.json")
    assert again == rule
    if policy == "error":
        with pytest.raises(UnseenGroupError):
            again.probabilities(LINE, NEW)
    else:
        assert np.array_equal(again.probabilities(LINE, NEW), rule.probabilities(LINE, NEW))


@pytest.mark.parametrize("policy", ["pooled", "original"])
def test_decisions_for_unseen_groups_repeat(policy):
    rule = fit_rule(SCORES, GROUPS, unseen_group=policy, ramp_width=0.3)
    ids = np.arange(len(LINE))
    first = rule.decide(LINE, NEW, ids=ids, key=KEY)
    assert np.array_equal(rule.decide(LINE[::-1], NEW, ids=ids[::-1], key=KEY)[::-1], first)
    chances = rule.probabilities(LINE, NEW)
    assert np.array_equal(first[chances == 1], np.ones((chances == 1).sum()))
    assert np.array_equal(first[chances == 0], np.zeros((chances == 0).sum()))


@pytest.mark.parametrize("p", [0.57, 0.29, 0.58])
def test_percentages_near_the_cutoff_are_decided_alike_everywhere(p):
    """0.57 · 100 is slightly below 57, but both are the same position."""
    score = p * 100
    rule = Rule(
        ("A",), (Ramp.centered(p, 0, 1.0),), scale="percent", cutoff=round(score), unseen_group="original"
    )
    known, unknown = rule.probabilities([score, score], ["A", "Z"])
    assert known == unknown == 1.0
