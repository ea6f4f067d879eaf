"""Scores for which lower is better: decisions as for reversed scores, numbers in the units of the given ones."""

import json
import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairramp
from engines import ENGINES, columns_of, table
from fairramp import FairrampWarning, GroupScores, InputError, Ramp, Rule, StreamingFit
from fairramp.core.scales import SCALES, scale_of
from rules import rules
from samples import KEY

ROWS = 100_000
#: The score that leads to the same decisions if higher is better.
TURNED = {
    "probability": lambda x: 1 - x,
    "percent": lambda x: 100 - x,
    "signed": lambda x: -x,
    "logit": lambda x: -x,
    "real": lambda x: -x,
}
#: A cutoff where there is no default.
CUTOFF = {"real": {"cutoff": 0.0}}
each_scale = pytest.mark.parametrize("scale", SCALES)


def risks(scale, n=ROWS, seed=0):
    """Scores for which lower is better, groups and labels; 1 − score and the like are exact."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    p = np.clip(np.round((rng.beta(2, 3, n) + 0.05 * group) * 2**16), 1, 2**16 - 1) / 2**16
    label = (rng.random(n) > p).astype(int)
    score = {"probability": p, "percent": np.round(p * 100 * 64) / 64, "signed": 2 * p - 1}.get(scale)
    # The offset keeps logits away from the edges of bins, where engines may round differently.
    return (
        np.round(np.log(p / (1 - p)) + 1e-3, 9) if score is None else score,
        np.array(["a", "b", "ç"])[group],
        label,
    )


def reversed_rule(rule, scores):
    """The same rule for turned scores, where higher is better; steps are at some of these scores."""
    shift, positions = 0.0 if rule.scale in ("signed", "real") else 1.0, rule.meaning.position(scores)

    def turned(ramp):
        if ramp is None or ramp.width > 0:
            return ramp and replace(ramp, foot=ramp.foot + shift)
        at = TURNED[rule.scale](scores[positions == ramp.foot][0])
        return replace(ramp, foot=SCALES[rule.scale].position_of(at))

    return replace(
        rule,
        ramps=tuple(map(turned, rule.ramps)),
        pooled=turned(rule.pooled),
        cutoff=TURNED[rule.scale](rule.cutoff),
        higher_is_better=True,
        record=None,
    )


def fit_both(score, group, label=None, *, scale, **settings):
    settings |= {"scale": scale, **CUTOFF.get(scale, {})}
    low = fairramp.fit_rule(score, group, label, higher_is_better=False, **settings)
    high = fairramp.fit_rule(TURNED[scale](score), group, label, **settings)
    return low, high


# Deciding -------------------------------------------------------------------------------------


@each_scale
@pytest.mark.parametrize("ramp_width", [0.0, 0.01])
@pytest.mark.parametrize("unseen_group", ["original", "pooled"])
def test_a_rule_decides_like_the_same_rule_on_turned_scores(scale, ramp_width, unseen_group):
    score, group, _ = risks(scale)
    asked = {"ramp_width": ramp_width, "unseen_group": unseen_group, **CUTOFF.get(scale, {})}
    low = fairramp.fit_rule(score, group, scale=scale, higher_is_better=False, **asked)
    high, ids, new = reversed_rule(low, score), np.arange(ROWS), np.where(np.arange(ROWS) % 7, group, "new")
    found, expected = low.probabilities(score, new), high.probabilities(TURNED[scale](score), new)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    keyed = [r.decide(x, new, ids=ids, key=KEY) for r, x in ((low, score), (high, TURNED[scale](score)))]
    assert np.array_equal(*keyed)
    assert 0 < keyed[0].mean() < 1


@given(rules(scales=("signed",)), st.lists(st.integers(-64, 64), min_size=1, max_size=20))
def test_negated_signed_scores_give_the_same_bits(rule, numbers):
    scores = np.array(numbers) / 64
    group = rule.groups[0]
    strata, group = group if rule.stratified else (None, group)
    cells = [
        [[part] * len(scores) for part in g] if isinstance(g, tuple) else [g] * len(scores)
        for g in (group, strata)
    ]
    other = replace(rule, higher_is_better=not rule.higher_is_better, cutoff=-rule.cutoff)
    arguments = (cells[0], cells[1]) if rule.stratified else (cells[0],)
    assert np.array_equal(rule.probabilities(scores, *arguments), other.probabilities(-scores, *arguments))


@given(rules())
def test_files_keep_the_direction(rule):
    again = Rule.from_json(rule.to_json())
    assert again == rule
    assert again.higher_is_better is rule.higher_is_better
    assert rule.to_dict().get("higher_is_better", True) is rule.higher_is_better
    other = replace(rule, higher_is_better=not rule.higher_is_better)
    assert other != rule
    assert other.fingerprint != rule.fingerprint


@pytest.mark.parametrize("wrong", ["no", 0, None, 1.0])
def test_the_direction_is_true_or_false(wrong):
    calls = (
        lambda: fairramp.fit_rule([0.1, 0.9], ["A", "B"], higher_is_better=wrong),
        lambda: fairramp.summarize([0.1, 0.9], ["A", "B"], higher_is_better=wrong),
        lambda: fairramp.frontier([0.1, 0.9], ["A", "B"], [0, 1], higher_is_better=wrong),
        lambda: StreamingFit(target_rate=0.5, higher_is_better=wrong),
        lambda: Rule(("A",), (Ramp(0.5, 0.1),), higher_is_better=wrong),
    )
    for call in calls:
        with pytest.raises(InputError, match="`higher_is_better` must be True or False, got"):
            call()


@pytest.mark.parametrize("name", SCALES)
def test_positions_are_negated_exactly(name):
    up, down = scale_of(name), scale_of(name, False)
    low, high = (max(up.score_range[0], -30), min(up.score_range[1], 30))
    x = np.append(np.random.default_rng(0).uniform(low, high, 1000), [low, high, 0.0, 5e-324])
    assert np.array_equal(down.position(x), -up.position(x))
    assert not np.signbit(down.position(np.array([0.0])) + (name == "logit")).any()
    assert (down.lowest, down.highest) == (-up.highest, -up.lowest)
    assert np.array_equal(down.shown(down.position(x)), up.shown(up.position(x)))
    assert down.axis_range == up.axis_range


# Fitting --------------------------------------------------------------------------------------

SETTINGS = [
    {"max_gap": 0.02},
    {"ramp_width": 0.0},
    {"target_rate": 0.3, "unseen_group": "pooled", "ramp": "paper"},
    {"confidence": 0.95, "max_gap": 0.05},
    {"cutoff": True},
    {"target_rate": "accuracy"},
    {"target_rate": "base_rate"},
    {"small_groups": "borrow"},
    {"solver": "sgd", "target_rate": 0.3},
    {"strata": True},
    {"weights": True},
]


@each_scale
@pytest.mark.parametrize("asked", SETTINGS, ids=lambda asked: "-".join(asked))
def test_a_fit_mirrors_that_of_turned_scores(scale, asked):
    few = "solver" in asked or "small_groups" in asked
    if scale in ("signed", "real") and "small_groups" in asked:
        pytest.skip("borrowing needs probabilities")
    score, group, label = risks(scale, 2_000 if few else ROWS)
    more = {name: value for name, value in asked.items() if value is not True}
    if "strata" in asked:
        more["strata"] = np.arange(len(score)) % 2
    if "weights" in asked:
        more["sample_weight"] = np.random.default_rng(1).random(len(score)) + 0.5
    cutoffs = {"cutoff": float(np.quantile(score, 0.3))} if "cutoff" in asked else CUTOFF.get(scale, {})
    low = fairramp.fit_rule(score, group, label, scale=scale, higher_is_better=False, **more, **cutoffs)
    cutoffs = {name: TURNED[scale](value) for name, value in cutoffs.items()}
    high = fairramp.fit_rule(TURNED[scale](score), group, label, scale=scale, **more, **cutoffs)
    rates, expected = low.record.rates["selection"], high.record.rates["selection"]
    for name in ("rows", "rows_above", "rows_inside"):
        assert getattr(rates, name) == getattr(expected, name)
    for name in ("before", "after", "effective_rows"):
        np.testing.assert_allclose(getattr(rates, name), getattr(expected, name), rtol=1e-9, atol=1e-9)
    turn = TURNED["probability" if scale == "logit" else scale]
    np.testing.assert_allclose(low.thresholds, turn(np.array(high.thresholds)), atol=1e-7)
    if low.record.trace is not None:  # in positions
        turn = TURNED["signed" if scale in ("signed", "real") else "probability"]
        np.testing.assert_allclose(low.record.trace, turn(np.array(high.record.trace)), atol=1e-9)
    mine, theirs = low.certificate(), high.certificate()
    np.testing.assert_allclose(mine.estimated, theirs.estimated, rtol=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 64), st.integers(0, 2)), min_size=2, max_size=60),
    st.sampled_from(["probability", "percent", "signed"]),
    st.sampled_from([0.0, 0.0625, 0.5]),
    st.sampled_from([0.0, 0.25]),
)
def test_small_fits_mirror_those_of_turned_scores(rows, scale, ramp_width, max_gap):
    numbers, group = (np.array(column) for column in zip(*rows, strict=True))
    score = {"probability": numbers / 64, "percent": numbers * 100 / 64, "signed": numbers / 32 - 1}[scale]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairrampWarning)
        low, high = fit_both(score, group, scale=scale, ramp_width=ramp_width, max_gap=max_gap)
    found = low.probabilities(score, group)
    np.testing.assert_allclose(found, high.probabilities(TURNED[scale](score), group), atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@each_scale
def test_every_engine_fits_and_decides_like_turned_scores(engine, scale):
    score, group, _ = risks(scale)
    columns = {"s": score, "g": group, "number": np.arange(ROWS), "who": [f"é{i}" for i in range(ROWS)]}
    names, asked = {"score": "s", "group": "g"}, {"scale": scale, "max_gap": 0.02, **CUTOFF.get(scale, {})}
    low = fairramp.fit_frame(table(engine, columns), **names, **asked, higher_is_better=False)
    same_rows = fairramp.fit_rule(score, group, **asked, higher_is_better=False)
    assert low.record.fingerprint == same_rows.record.fingerprint
    high = fairramp.fit_rule(TURNED[scale](score), {"g": group}, **asked)
    np.testing.assert_allclose(
        low.record.rates["selection"].after, high.record.rates["selection"].after, atol=1e-9
    )
    done = columns_of(low.apply(table(engine, columns), id="who", key=KEY))
    expected = high.probabilities(TURNED[scale](score), group)
    np.testing.assert_allclose(done["probability"], expected, rtol=0, atol=1e-9)
    assert np.array_equal(done["decision"], high.decide(TURNED[scale](score), group, ids=columns["who"], key=KEY))


# Summaries, streams, measurements ---------------------------------------------------------------


@each_scale
@pytest.mark.parametrize("cut", [None, 0.3])
def test_summaries_keep_the_direction(scale, cut, tmp_path):
    score, group, _ = risks(scale, 40_000)
    cutoff = CUTOFF.get(scale, {}).get("cutoff") if cut is None else float(np.quantile(score, cut))
    low = fairramp.summarize(score, group, scale=scale, cutoff=cutoff, higher_is_better=False, resolution=1024)
    low.save(tmp_path / "low.json")
    assert GroupScores.load(tmp_path / "low.json") == low
    assert not low.higher_is_better
    assert "lower is better" in repr(low)
    means = [score[group == g].mean() for g in low.labels]
    if scale == "real":
        means = [scale_of(scale).position(score[group == g]).mean() for g in low.labels]
        np.testing.assert_allclose(low.table()["mean_position"], means, atol=1e-9)
    elif scale != "logit":
        np.testing.assert_allclose(low.table()["mean_score"], means, atol=1e-9)
    lazy = pl.LazyFrame({"s": score, "g": group})
    again = fairramp.summarize_frame(
        lazy, score="s", group="g", scale=scale, cutoff=cutoff, higher_is_better=False, resolution=1024
    )
    assert np.array_equal(again.summary.points.rows, low.summary.points.rows)
    np.testing.assert_allclose(again.summary.points.place, low.summary.points.place, atol=1e-9)
    rule = fairramp.fit_summary(low, max_gap=0.02)
    assert not rule.higher_is_better
    rates, rows = rule.record.rates["selection"], fairramp.audit(score, group, rule=rule)
    np.testing.assert_allclose(rates.before, rows.before.rate, atol=1e-12)
    assert (np.abs(np.subtract(rates.after, rows.after.rate)) <= np.array(rates.error) + 1e-9).all()
    high = fairramp.summarize(score, group, scale=scale, cutoff=cutoff, resolution=1024)
    with pytest.raises(
        InputError, match="different directions cannot be merged, got 'lower is better' and 'higher"
    ):
        low.merge(high)


def test_streams_keep_the_direction():
    score, group, _ = risks("probability", 3_000)
    low = StreamingFit(target_rate=0.3, ramp_width=0.05, higher_is_better=False).partial_fit(score, group)
    high = StreamingFit(target_rate=0.3, ramp_width=0.05).partial_fit(1 - score, group)
    np.testing.assert_allclose(low.rule().thresholds, 1 - np.array(high.rule().thresholds), atol=1e-9)
    more = [StreamingFit.from_rule(s.rule(), steps=3_000) for s in (low, high)]
    rules = [s.partial_fit(x, group).rule() for s, x in zip(more, (score, 1 - score), strict=True)]
    np.testing.assert_allclose(rules[0].thresholds, 1 - np.array(rules[1].thresholds), atol=1e-9)


@each_scale
def test_audits_frontiers_and_checks_equal_those_of_turned_scores(scale):
    score, group, label = risks(scale, 20_000)
    low, high = fit_both(score, group, scale=scale, max_gap=0.02)
    turned = TURNED[scale](score)
    found = fairramp.audit(score, group, label, rule=low).to_dict()
    expected = fairramp.audit(turned, group, label, rule=high).to_dict()
    assert found.pop("higher_is_better") is False
    assert expected.pop("higher_is_better") is True
    same(found, expected | {"cutoff": found["cutoff"]})
    own = {"scale": scale, **CUTOFF.get(scale, {})}
    plain = fairramp.audit(score, group, label, **own, higher_is_better=False)
    assert f"(yes at {low.cutoff:g} or below)" in plain.sentences()[0]
    same(plain.to_dict()["before"], found["before"])
    with pytest.raises(InputError, match="`higher_is_better` is False in the rule but True in the call"):
        fairramp.audit(score, group, rule=low, higher_is_better=True)
    curves = [
        fairramp.frontier(x, group, label, **own, higher_is_better=up, max_gaps=[0, 0.05])
        for x, up in ((score, False), (turned, True))
    ]
    same(curves[0].accuracies, curves[1].accuracies)
    same(curves[0].own_accuracy, curves[1].own_accuracy)
    assert low.check(score, group).verdict == high.check(turned, group).verdict
    reports = [rule.report(x, group, label).content.to_dict() for rule, x in ((low, score), (high, turned))]
    same([o["after"] for o in reports[0]["outcomes"]], [o["after"] for o in reports[1]["outcomes"]])
    assert reports[0]["score_range"] == reports[1]["score_range"]
    per_unit = 100 if scale == "percent" else 1
    same(
        reports[0]["outcomes"][0]["thresholds"],
        [
            TURNED[scale if scale != "logit" else "probability"](t)
            for t in reports[1]["outcomes"][0]["thresholds"]
        ],
    )
    same(reports[0]["cutoff"], {"signed": 0.0, "real": 0.0}.get(scale, 0.5 * per_unit))


def same(found, expected):
    """Equal plain values, up to rounding of floats."""

    def rounded(value):
        return json.loads(json.dumps(value), parse_float=lambda text: round(float(text), 8) + 0.0)

    assert rounded(found) == rounded(expected)


# Showing --------------------------------------------------------------------------------------


def test_tables_are_in_the_units_of_the_scores():
    ramps = Ramp.centered(-0.3, 0.1), Ramp.centered(-0.25, 0.1)
    rule = Rule(("A", "B"), ramps, unseen_group="pooled", pooled=Ramp.centered(-0.275), higher_is_better=False)
    shown = rule.table()
    assert shown["threshold"].tolist() == pytest.approx([0.3, 0.25])
    assert shown["ramp_from"].tolist() == pytest.approx([0.35, 0.3])
    assert shown["ramp_to"].tolist() == pytest.approx([0.25, 0.2])
    assert "Groups not in the fit rows: threshold 0.2750." in rule.notes
    assert any(note.startswith("Lower scores are better") for note in rule.notes)
    percent = replace(rule, scale="percent", cutoff=50.0).table()
    assert percent["ramp_from"].tolist() == pytest.approx([35, 30])
    assert rule.probabilities([0.25, 0.3, 0.34, 0.36], ["A"] * 4).round(3).tolist() == [1.0, 0.5, 0.1, 0.0]
    from fairramp.show.describe import description, facts

    assert "lower is better; the classifier says yes at 0.5 or below" in dict(facts(rule))["score"]
    assert description(rule, "")["higher_is_better"] is False
    assert description(rule, "")["pooled"]["threshold"] == 0.275
    spec = rule.plot().to_dict()
    assert next(t for t in spec["params"] if t["name"] == "feet")["value"] == [[0.35, 0.3]]


def test_exported_sql_states_the_direction():
    rule = Rule(("A",), (Ramp.centered(-0.3, 0.1),), unseen_group="original", cutoff=0.4, higher_is_better=False)
    text = rule.to_sql("duckdb", table="t", score="s", group="g")
    assert "from 0 to 1; lower is better" in text
    assert "yes at a score of 0.4 or below" in text


# The warning ------------------------------------------------------------------------------------


def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught]


@each_scale
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("up", "first", "remedy"),
    [
        (True, "Scores are lower for the favorable outcome (label 1): their mean is", "pass"),
        (False, "Scores are higher for the favorable outcome", "remove"),
    ],
)
def test_scores_that_contradict_the_labels_are_warned_of(scale, weighted, up, first, remedy):
    score, group, label = risks(scale, 2_000)
    y = label if up else 1 - label
    told = {"scale": scale, "higher_is_better": up, **CUTOFF.get(scale, {})}
    frame = pl.DataFrame({"s": score, "g": group, "y": y, "w": np.linspace(0.5, 2, 2_000)})
    names = {"score": "s", "group": "g", "label": "y", **({"weight": "w"} if weighted else {})}
    told_rows = told | ({"sample_weight": frame["w"]} if weighted else {})
    for call in (
        lambda: fairramp.fit_rule(score, group, y, **told_rows),
        lambda: fairramp.audit(score, group, y, **told_rows),
        lambda: fairramp.frontier(score, group, y, max_gaps=[0.1], **told_rows),
        lambda: fairramp.fit_frame(frame, **names, **told),
    ):
        (message,) = warned(call)
        assert message.startswith(first)
        assert f"{remedy} `higher_is_better=False`." in message
        column = " Did you pass the other class's column of predict_proba(X)?" * (up and scale == "probability")
        assert message.endswith(f"(a default), swap 0 and 1 in `labels`.{column}")
    assert warned(lambda: fairramp.fit_rule(score, group, 1 - y, **told_rows)) == []
    assert warned(lambda: fairramp.fit_rule(score, group, **told_rows)) == []


def test_audits_of_rules_suggest_another_fit():
    score, group, label = risks("probability", 2_000)
    (message,) = warned(lambda: fairramp.audit(score, group, label, rule=fairramp.fit_rule(score, group)))
    assert "If lower scores are better (a risk), fit the rule with `higher_is_better=False`." in message


def test_chance_and_equal_scores_are_not_warned_of():
    rng = np.random.default_rng(5)
    score, group, label = rng.random(200), np.arange(200) % 2, np.arange(200) // 2 % 2
    score[label == 1] -= score[label == 1].mean() - score[label == 0].mean() + 0.01
    score = np.clip(score, 0, 1)
    assert warned(lambda: fairramp.fit_rule(score, group, label)) == []
    assert warned(lambda: fairramp.audit(np.full(200, 0.1), group, label, sample_weight=rng.random(200))) == []
    assert warned(lambda: fairramp.audit([0.2, 0.3, 0.9], ["A", "B", "A"], [1, 1, 1])) == []
    few = np.linspace(0, 1, 109)  # one row of a label, or nine, have no standard error to speak of
    for n in (1, 9):
        assert warned(lambda n=n: fairramp.audit(few, np.arange(109) % 2, (np.arange(109) < n) * 1)) == []
    assert len(warned(lambda: fairramp.audit(few, np.arange(109) % 2, (np.arange(109) < 10) * 1))) == 1
    huge = np.where(label == 1, -1e308, 1e308)
    assert len(warned(lambda: fairramp.audit(huge, group, label, scale="logit"))) <= 1


def test_the_warning_points_to_the_line_of_the_caller():
    score, group, label = risks("probability", 2_000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fairramp.fit_rule(score, group, label)
    assert caught[0].filename == __file__
    assert isinstance(caught[0].message, FairrampWarning)


@pytest.mark.parametrize("up", [True, False])
def test_lazy_tables_warn_too_if_their_labels_are_read(up):
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    scores, groups = rng.random(20_000), rng.integers(0, 2, 20_000)
    labels = (rng.random(20_000) < (scores if up else 1 - scores)).astype(int)
    table = polars.LazyFrame({"p": scores, "g": groups, "y": labels})
    options = {"score": "p", "group": "g", "label": "y", "target_rate": "base_rate"}
    fairramp.fit_frame(table, **options, higher_is_better=up)
    with pytest.warns(fairramp.FairrampWarning, match="for the favorable outcome"):
        fairramp.fit_frame(table, **options, higher_is_better=not up, max_gap=1)
