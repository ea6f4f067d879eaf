"""Rules by group probabilities and by each attribute: laws of whole fits, against plain NumPy."""

import dataclasses
import json
import warnings

import duckdb
import numpy as np
import pandas
import pytest

import fairramp
from engines import ENGINES, table
from fairramp import GroupProbabilities, Ramp, Rule
from fairramp.errors import FairrampWarning, InputError, UnseenGroupError, UnsupportedError
from samples import quiet_fit

#: Rates are exact up to rounding.
EXACT = 1e-9


def soft(n=3000, k=3, seed=0):
    """Scores that depend on the groups, group probabilities, and weights."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(k), n)
    scores = np.clip(rng.beta(2, 3, n) + q @ np.linspace(-0.1, 0.2, k), 0, 1)
    return scores, q, rng.exponential(size=n)


def several(n=4000, seed=0):
    """Scores, two attributes that depend on each other, and weights."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    race = np.where(rng.random(n) < 0.3, sex, rng.choice(["x", "y", "z"], n))
    scores = np.clip(rng.beta(2, 3, n) + 0.1 * (sex == "M") + 0.1 * (race == "x"), 0, 1)
    return scores, {"sex": sex, "race": race}, rng.exponential(size=n)


def rates_of(chances, q, weights=None):
    w = np.ones(len(chances)) if weights is None else weights
    return (w * chances) @ q / (w @ q)


def values_rates(chances, column, weights=None):
    w = np.ones(len(chances)) if weights is None else weights
    return np.array([(w * chances)[column == v].sum() / w[column == v].sum() for v in np.unique(column)])


def excess(rates, settings):
    if "min_ratio" in settings:
        return settings["min_ratio"] * rates.max() - rates.min()
    return np.ptp(rates) - settings.get("max_gap", 0.0)


BANDS = [{}, {"max_gap": 0.03}, {"min_ratio": 0.9}, {"max_gap": 1e-6}]
LEVELS = [{}, {"target_rate": 0.3}, {"overall_rate": 0.2}]
FORMS = [
    {},
    {"ramp": "paper"},
    {"ramp_width": 1e-6},
    {"ramp_width": 0.3},
    {"cutoff": 0.37},
]
#: Every band with every level, and with every form.
CASES = [
    (band, level, FORMS[(i + j) % len(FORMS)], (i + j) % 2 == 0)
    for i, band in enumerate(BANDS)
    for j, level in enumerate(LEVELS)
] + [
    (band, LEVELS[(i + j) % len(LEVELS)], form, (i + j) % 2 == 1)
    for i, band in enumerate(BANDS)
    for j, form in enumerate(FORMS)
]


@pytest.mark.parametrize(("band", "level", "form", "weighted"), CASES, ids=str)
def test_expected_rates_are_in_the_band_and_recorded(band, level, form, weighted):
    scores, q, w = soft()
    weights = w if weighted else None
    rule = quiet_fit(scores, GroupProbabilities(q, "abc"), sample_weight=weights, **band, **level, **form)
    chances = rule.probabilities(scores, GroupProbabilities(q, "abc"))
    rates = rates_of(chances, q, weights)
    assert excess(rates, band) <= EXACT
    np.testing.assert_allclose(rule.record.main.after, rates, atol=EXACT)
    own = scores >= form.get("cutoff", 0.5)
    np.testing.assert_allclose(rule.record.main.before, rates_of(own, q, weights), atol=EXACT)
    if "overall_rate" in level:
        assert np.average(chances, weights=weights) == pytest.approx(0.2, abs=EXACT)
    if level.get("target_rate") and not band:
        np.testing.assert_allclose(rates, 0.3, atol=EXACT)


@pytest.mark.parametrize(
    "settings", [*BANDS, {"target_rate": 0.3}, {"overall_rate": 0.2, "max_gap": 0.05}], ids=str
)
def test_certain_probabilities_give_the_rule_of_known_groups(settings):
    scores, q, w = soft()
    codes = q.argmax(axis=1)
    labels = np.array(["a", "b", "c"])[codes]
    known = quiet_fit(scores, labels, sample_weight=w, **settings)
    mixed = quiet_fit(scores, GroupProbabilities(np.eye(3)[codes], "abc"), sample_weight=w, **settings)
    np.testing.assert_allclose(
        mixed.probabilities(scores, GroupProbabilities(np.eye(3)[codes], "abc")),
        known.probabilities(scores, labels),
        atol=EXACT,
    )


def test_each_person_meets_the_expected_threshold():
    rule = Rule(("F", "M"), (Ramp.centered(0.3, 0.1), Ramp.centered(0.6, 0.1)), membership="probabilities")
    chances = rule.probabilities(
        [0.45, 0.45, 0.3], GroupProbabilities({"M": [0.5, 0.6, 0.0], "F": [0.5, 0.4, 1.0]})
    )
    np.testing.assert_allclose(chances, [0.5, 0.2, 0.5])
    decisions = rule.decide([0.45], GroupProbabilities({"M": [0.0], "F": [1.0]}), random_state=0)
    assert decisions.tolist() == [1]


def test_probabilities_that_hardly_sum_to_1_move_a_chance_hardly():
    scores, q, _ = soft()
    rounded = q.round(7)
    rule = quiet_fit(scores, GroupProbabilities(q, "abc"))
    apart = np.abs(
        rule.probabilities(scores, GroupProbabilities(q, "abc"))
        - rule.probabilities(scores, GroupProbabilities(rounded, "abc"))
    )
    assert apart.max() < 1e-4


def test_own_decisions_that_meet_the_limit_stay_as_they_are():
    scores, q, _ = soft()
    scores = scores.round(2)  # many at the cutoff
    rule = quiet_fit(scores, GroupProbabilities(q.round(7), "abc"), max_gap=0.9)
    chances = rule.probabilities(scores, GroupProbabilities(q.round(7), "abc"))
    np.testing.assert_array_equal(chances, scores >= 0.5)
    scores, attributes, _ = several()
    rule = quiet_fit(scores.round(2), attributes, combine="each", max_gap=0.9)
    np.testing.assert_array_equal(rule.probabilities(scores.round(2), attributes), scores.round(2) >= 0.5)


@pytest.mark.parametrize(("band", "level", "form", "weighted"), CASES, ids=str)
def test_rates_are_equal_by_each_attribute(band, level, form, weighted):
    scores, attributes, w = several()
    weights = w if weighted else None
    rule = quiet_fit(scores, attributes, combine="each", sample_weight=weights, **band, **level, **form)
    chances = rule.probabilities(scores, attributes)
    found = [values_rates(chances, column, weights) for column in attributes.values()]
    for rates in found:
        assert excess(rates, band) <= EXACT
    np.testing.assert_allclose(rule.record.main.after, np.concatenate(found), atol=EXACT)
    assert rule.record.gap_after == pytest.approx(max(np.ptp(rates) for rates in found), abs=EXACT)
    assert sum(rule.record.rows[:2]) == sum(rule.record.rows[2:]) == len(scores)
    if "overall_rate" in level:
        assert np.average(chances, weights=weights) == pytest.approx(0.2, abs=EXACT)
    shares = [
        w[attributes[name] == v].sum() if weighted else (attributes[name] == v).sum() for name, v in rule.groups
    ]
    shifts = np.array([ramp.foot - rule.base.foot for ramp in rule.ramps])
    for part in (slice(0, 2), slice(2, None)):
        assert np.average(shifts[part], weights=shares[part]) == pytest.approx(0, abs=1e-9)
    if not level and "min_ratio" not in band:
        assert rule.threshold_of(rule.base) == pytest.approx(form.get("cutoff", 0.5), abs=1e-9)


def test_one_attribute_gives_the_rule_of_its_groups():
    scores, attributes, _ = several()
    sex = {"sex": attributes["sex"]}
    for settings in ({}, {"max_gap": 0.05}, {"min_ratio": 0.8}):
        np.testing.assert_allclose(
            quiet_fit(scores, sex, combine="each", **settings).probabilities(scores, sex),
            quiet_fit(scores, sex, **settings).probabilities(scores, sex),
            atol=EXACT,
        )


def test_many_rows_are_binned_and_the_rule_is_exact():
    scores, attributes, _ = several(200_000)
    rule = quiet_fit(scores, attributes, combine="each", max_gap=0.01)
    chances = rule.probabilities(scores, attributes)
    for column in attributes.values():
        assert np.ptp(values_rates(chances, column)) <= 0.01 + EXACT


def test_intersections_without_fit_rows_are_decided():
    scores, attributes, _ = several()
    gone = (attributes["sex"] == "F") & (attributes["race"] == "z")
    rule = quiet_fit(scores[~gone], {name: column[~gone] for name, column in attributes.items()}, combine="each")
    base, of = rule.base.foot, dict(zip(rule.groups, (ramp.foot for ramp in rule.ramps), strict=True))
    foot = of["sex", "F"] + of["race", "z"] - base
    np.testing.assert_allclose(
        rule.probabilities([foot + 0.004], {"sex": ["F"], "race": ["z"]}), [0.4], atol=1e-9
    )


def test_values_without_fit_rows_are_refused_or_keep_their_own_decision():
    scores, attributes, _ = several()
    new = {"sex": ["F", "D"], "race": ["x", "x"]}
    with pytest.raises(UnseenGroupError, match=r"\[\('sex', 'D'\)\]"):
        quiet_fit(scores, attributes, combine="each").probabilities([0.6, 0.6], new)
    original = quiet_fit(scores, attributes, combine="each", unseen_group="original")
    assert original.probabilities([0.6, 0.6], new)[1] == 1
    assert original.probabilities([0.4, 0.4], new)[1] == 0


def test_missing_values_are_a_value_of_their_own():
    scores, attributes, _ = several()
    race = attributes["race"].astype(object)
    race[::7] = None
    columns = {"sex": attributes["sex"], "race": race}
    rule = quiet_fit(scores, columns, combine="each")
    assert ("race", None) in rule.groups
    chances = rule.probabilities(scores, columns)
    rates = [chances[[r is v or r == v for r in race]].mean() for v in ("x", "y", "z", None)]
    assert np.ptp(rates) <= EXACT


@pytest.mark.parametrize("scale", ["percent", "signed", "logit", "real"])
@pytest.mark.parametrize("higher_is_better", [True, False])
def test_every_scale_and_direction(scale, higher_is_better):
    scores, q, _ = soft()
    scores = scores.clip(0.01, 0.99)
    shown = {
        "percent": 100 * scores,
        "signed": 2 * scores - 1,
        "logit": np.log(scores / (1 - scores)),
        "real": 8 * (scores - 0.5),
    }[scale]
    settings = {"scale": scale, "higher_is_better": higher_is_better}
    settings |= {"cutoff": 0.0} if scale == "real" else {}
    mixture = GroupProbabilities(q, "abc")
    rule = quiet_fit(shown, mixture, max_gap=0.02, **settings)
    assert np.ptp(rates_of(rule.probabilities(shown, mixture), q)) <= 0.02 + EXACT
    scores, attributes, _ = several()
    each = quiet_fit(scores, attributes, combine="each", higher_is_better=higher_is_better)
    chances = each.probabilities(scores, attributes)
    assert max(np.ptp(values_rates(chances, column)) for column in attributes.values()) <= EXACT


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weight", [None, "w"])
def test_every_table_gives_the_rule_of_the_arrays(engine, weight):
    scores, q, w = soft()
    w[:10] = 0
    frame = {"p": scores, "w": w} | {f"q {k}": q[:, k] for k in range(3)}
    named = {label: f"q {k}" for k, label in enumerate("abc")}
    settings = {"max_gap": 0.01, "sample_weight": w if weight else None}
    same = quiet_fit(scores, GroupProbabilities(q, "abc"), **settings)
    rule = fairramp.fit_frame(
        table(engine, frame), score="p", group_probability=named, weight=weight, max_gap=0.01
    )
    np.testing.assert_allclose(rule.thresholds, same.thresholds, atol=EXACT)
    assert rule.record.fingerprint == same.record.fingerprint
    assert rule.columns.probabilities == ("q 0", "q 1", "q 2")
    scores, attributes, w = several()
    frame = {"p": scores, "w": w, **attributes}
    same = quiet_fit(scores, attributes, combine="each", max_gap=0.01, sample_weight=w if weight else None)
    rule = fairramp.fit_frame(
        table(engine, frame), score="p", group=["sex", "race"], combine="each", weight=weight, max_gap=0.01
    )
    assert rule.groups == same.groups
    chances = [one.probabilities(scores, attributes) for one in (rule, same)]
    np.testing.assert_allclose(*chances, atol=EXACT)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda q: q + np.array([0.1, 0, 0]), "must sum to 1"),
        (lambda q: np.where(np.arange(len(q))[:, None] == 3, np.nan, q), "must be (finite )?numbers"),
        (lambda q: np.where(np.arange(len(q))[:, None] == 3, [-0.5, 0.5, 1.0], q), "between 0 and 1"),
    ],
)
def test_tables_with_bad_probabilities_are_refused(change, sentence, lazy):
    scores, q, _ = soft(200)
    q = change(q / 2 + 1 / 6)
    frame = pandas.DataFrame({"p": scores} | {f"q{k}": q[:, k] for k in range(3)})
    with pytest.raises(InputError, match=rf"`group_probabilities` .*{sentence}"):
        fairramp.fit_frame(
            duckdb.from_df(frame) if lazy else frame,
            score="p",
            group_probability={label: f"q{k}" for k, label in enumerate("abc")},
        )


def test_rules_survive_json_and_change_their_fingerprint_with_their_kind():
    scores, q, _ = soft()
    _, attributes, _ = several(3000)
    rules = [quiet_fit(scores, GroupProbabilities(q, "abc")), quiet_fit(scores, attributes, combine="each")]
    for rule in rules:
        text = rule.to_json()
        assert Rule.from_json(text) == rule
        assert Rule.from_json(text).to_json() == text
        assert json.loads(text)["membership"] == rule.membership
    known = dataclasses.replace(rules[0], membership="known", record=None)
    assert "membership" not in json.loads(known.to_json())
    assert known.fingerprint != rules[0].fingerprint


@pytest.mark.parametrize(
    ("settings", "other"),
    [
        ({"criterion": "equal_opportunity"}, "criterion"),
        ({"target_rate": "accuracy"}, "target_rate"),
        ({"target_rate": "base_rate"}, "target_rate"),
        ({"confidence": 0.95, "max_gap": 0.1}, "confidence"),
        ({"small_groups": "borrow"}, "small_groups"),
        ({"solver": "sgd", "target_rate": 0.3}, "solver"),
        ({"unseen_group": "pooled"}, "unseen_group"),
        ({"ramp_width": 0}, "ramp_width"),
        ({"strata": True}, "strata"),
    ],
    ids=str,
)
def test_settings_that_do_not_mix_are_refused_by_name(settings, other):
    scores, q, _ = soft(300)
    settings = {**settings, **({"strata": np.arange(300) % 2} if "strata" in settings else {})}
    labels = (scores > 0.4).astype(int)
    with pytest.raises(UnsupportedError, match=other):
        fairramp.fit_rule(scores, GroupProbabilities(q, "abc"), labels, **settings)
    _, attributes, _ = several(300)
    with pytest.raises(UnsupportedError, match=other):
        fairramp.fit_rule(scores, attributes, labels, combine="each", **settings)


@pytest.mark.parametrize("groups", [("ab", "cd"), (1, 2), (("a", "x", 1), ("a", "y", 1))])
def test_groups_by_each_attribute_are_pairs(groups):
    ramps = (Ramp(0.4, 0.1), Ramp(0.5, 0.1))
    with pytest.raises(InputError, match=r"must be pairs \(attribute, value\)"):
        Rule(groups, ramps, target_rate=None, membership="each", base=Ramp(0.45, 0.1))


def test_inputs_of_the_wrong_kind_are_refused_in_a_sentence():
    scores, q, _ = soft(300)
    mixture, labels = GroupProbabilities(q, "abc"), ["a"] * 300
    soft_rule, hard_rule = quiet_fit(scores, mixture), quiet_fit(scores, q.argmax(axis=1))
    for call, sentence in {
        lambda: soft_rule.probabilities(scores, labels): "This rule uses group probabilities",
        lambda: hard_rule.probabilities(scores, mixture): "must be labels here, got group probabilities",
        lambda: soft_rule.probabilities(scores, GroupProbabilities(np.full((300, 2), 0.5), "ab")):
            r"must have the rule's groups \['a', 'b', 'c'\]",
        lambda: soft_rule.probabilities(scores[1:], mixture): "groups.*300.*299",
        lambda: GroupProbabilities(q): "requires `labels`",
        lambda: GroupProbabilities(q, "ab"): "one group per column",
        lambda: GroupProbabilities(q, "aab"): "names the same group twice",
        lambda: GroupProbabilities({"a": [1.0], "b": [0.0, 0.0]}): "has 2 rows|2.*1",
        lambda: GroupProbabilities([0.2, 0.8], "a"): "must be a mapping",
        lambda: GroupProbabilities({"a": [0.5], "b": [0.6]}): r"must sum to 1 in every row, got 1\.1 in row 0",
        lambda: fairramp.fit_frame(pandas.DataFrame({"p": scores}), score="p"): "Pass either",
        lambda: quiet_fit(scores, GroupProbabilities({"a": np.ones(300), "b": np.zeros(300)})):
            "Group b has probability 0 in every row",
    }.items():  # fmt: skip
        with pytest.raises(InputError, match=sentence):
            call()


def test_what_cannot_be_judged_is_warned_of():
    scores, q, _ = soft()
    rare = 0.005 * (q[:, 0] > 0.5)
    three = np.c_[q[:, 0] + q[:, 1] - rare, q[:, 2], rare]
    with pytest.warns(FairrampWarning) as told:
        fairramp.fit_rule(scores, GroupProbabilities(three, ["a", "b", "rare"]), max_gap=0.02)
    assert any("fewer than 30 expected rows: rare" in str(one.message) for one in told)
    twice = np.c_[q[:, 0] / 2, q[:, 0] / 2, q[:, 1:]]
    with pytest.warns(FairrampWarning, match="not determined: some columns"):
        rule = fairramp.fit_rule(scores, GroupProbabilities(twice, "abcd"))
    assert rule.thresholds[0] == pytest.approx(rule.thresholds[1], abs=1e-9)
    cells = {"sex": np.array(["F", "M"] * 500), "race": np.array(["x", "y"] * 500)}
    with pytest.warns(FairrampWarning, match="separate sets of intersections"):
        fairramp.fit_rule(scores[:1000], cells, combine="each")


def test_a_threshold_outside_the_scores_is_warned_of():
    scores = np.linspace(0.3, 0.7, 2000)
    q = 0.5 + 0.1 * (scores - 0.5)
    with pytest.warns(
        FairrampWarning, match="outside the range of the scores: (no one|everyone) who surely belongs"
    ):
        fairramp.fit_rule(scores, GroupProbabilities(np.c_[q, 1 - q], "ab"))


def test_printed_rules_say_how_thresholds_are_mixed():
    scores, q, _ = soft()
    text = repr(quiet_fit(scores, GroupProbabilities(q, "abc"), max_gap=0.02))
    assert "weighted by the person's group probabilities" in " ".join(text.split())
    assert "(expected)" in text
    scores, attributes, _ = several()
    rule = quiet_fit(scores, attributes, combine="each")
    assert "by each of sex, race, one by one" in " ".join(repr(rule).split())
    assert "A person's threshold is 0.5000 plus the shifts" in repr(rule)
    assert list(rule.table()["attribute"]) == ["sex"] * 2 + ["race"] * 5


# Unusual rows ------------------------------------------------------------------------------------


def test_columns_that_are_almost_the_same_do_not_spoil_the_rates():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=200)
    q = 0.5 + 1e-6 * (x - 0.5 + 0.2 * rng.normal(size=200))
    rule = quiet_fit(x, GroupProbabilities({"a": q, "b": 1 - q}), target_rate=0.3)
    np.testing.assert_allclose(rule.record.main.after, 0.3, atol=EXACT)
    a = rng.uniform(size=500)
    three = np.stack([a, 0.3 * (1 - a), 0.7 * (1 - a)], axis=1).astype(np.float32)
    scores = np.clip(rng.beta(2, 3, 500) + 0.2 * a, 0, 1)
    rule = quiet_fit(scores, GroupProbabilities(three, "abc"))
    assert rule.record.gap_after <= EXACT


def test_one_group_and_a_budget_on_a_narrow_ramp():
    rule = quiet_fit(
        [0.26, 0.3, 0.81], GroupProbabilities({"a": [1.0] * 3}), overall_rate=0.5, ramp_width=1e-6, cutoff=0.95
    )
    assert rule.record.main.after[0] == pytest.approx(0.5, abs=EXACT)


def test_weights_of_very_different_sizes_have_effective_rows():
    index = np.arange(400) % 2
    weights = np.where(index > 0, 1e-170, 1.0)
    scores = np.linspace(0, 1, 400)
    soft_rule = quiet_fit(scores, GroupProbabilities(np.eye(2)[index], "ab"), sample_weight=weights)
    each_rule = quiet_fit(scores, {"g": index}, combine="each", sample_weight=weights)
    for rule in (soft_rule, each_rule):
        assert all(0 < n <= 400 for n in rule.record.main.effective_rows)
        assert Rule.from_json(rule.to_json()) == rule


def test_tiny_weights_in_a_lazy_table():
    scores, q, _ = soft(300)
    frame = pandas.DataFrame({"p": scores, "w": 1e-310} | {f"q{k}": q[:, k] for k in range(3)})
    named = {label: f"q{k}" for k, label in enumerate("abc")}
    rule = fairramp.fit_frame(duckdb.from_df(frame), score="p", group_probability=named, weight="w")
    same = quiet_fit(scores, GroupProbabilities(q, "abc"))
    np.testing.assert_allclose(rule.thresholds, same.thresholds, atol=1e-6)


def test_labels_are_checked_although_they_are_not_used():
    scores, q, _ = soft(300)
    with pytest.raises(InputError, match="labels"):
        fairramp.fit_rule(scores, GroupProbabilities(q, "abc"), ["x"] * 300)
    frame = pandas.DataFrame({"p": scores, "y": 2} | {f"q{k}": q[:, k] for k in range(3)})
    named = {label: f"q{k}" for k, label in enumerate("abc")}
    for rows in (frame, duckdb.from_df(frame)):
        with pytest.raises(InputError, match=r"labels.*must be 0 or 1"):
            fairramp.fit_frame(rows, score="p", group_probability=named, label="y")


def test_tied_logits_are_warned_of():
    _, q, _ = soft(300)
    with pytest.warns(FairrampWarning, match="logits above"):
        fairramp.fit_rule(np.r_[800.0, np.linspace(-3, 3, 299)], GroupProbabilities(q, "abc"), scale="logit")


def test_the_wrong_number_of_attributes_is_named():
    scores, attributes, _ = several()
    for policy in ("error", "original"):
        rule = quiet_fit(scores, attributes, combine="each", unseen_group=policy)
        with pytest.raises(InputError, match=r"`groups` must have 2 columns \(sex, race\), got 1"):
            rule.probabilities(scores, attributes["sex"])
    twice = [pandas.Series(column, name="a") for column in attributes.values()]
    with pytest.raises(InputError, match="Two columns of `groups` are named 'a'"):
        fairramp.fit_rule(scores, twice, combine="each")


@pytest.mark.parametrize("cutoff", [0.0, 1.0])
def test_own_decisions_at_the_end_of_the_scale_are_not_called_outside(cutoff):
    scores, q, _ = soft(300)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fairramp.fit_rule(scores.clip(0.01, 0.99), GroupProbabilities(q, "abc"), cutoff=cutoff)
    assert not [one for one in told if "outside the range" in str(one.message)]


def test_rates_that_rounding_moves_out_of_the_limit_are_warned_of():
    rng = np.random.default_rng(642)
    q = 0.25 + 1e-4 * rng.normal(size=(2, 4))
    mixture = GroupProbabilities(q / q.sum(axis=1, keepdims=True), "abcd")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        rule = fairramp.fit_rule([0.2, 0.8], mixture, target_rate=0.3, ramp_width=1e-6, cutoff=0.1)
    off = np.abs(np.array(rule.record.main.after) - 0.3).max()
    assert (off > 1e-9) == any("Rates miss the limit" in str(one.message) for one in told)
