"""A rule as an ONNX graph decides like NumPy in onnxruntime, alone and behind classifiers."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from cases import KEY, ODDS, OWN_WIDTHS, REVERSED, case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import fairramp
from fairramp import Columns, FairrampError, InputError, Ramp, Rule
from fairramp.deploy.onnx import append_to, to_onnx
from rules import labels_of, real_scores, rules

RULE = Rule(("a", "b"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
HALF = RULE.probabilities([0.5], ["a"])[0]  # the middle of the ramp, up to rounding


def session(model):
    content = model if isinstance(model, bytes | str) else model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are expected here
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run(model, **feed):
    """Outputs by name."""
    ready = session(model)
    return dict(zip([o.name for o in ready.get_outputs()], ready.run(None, feed), strict=True))


def texts(values):
    """Tensor of text as an object array, because onnxruntime cuts fixed-width text at NUL."""
    return np.array(values, dtype=object)


# Same decisions as NumPy ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"dtype": "float32"},
        {"unseen_group": "pooled"},
        {"unseen_group": "original", "dtype": "float32"},
        {"labels": "whole", "unseen_group": "original", "ramp": "paper"},
        {"ramp_width": 0.0},
        {"ramp_width": 0.0, "unseen_group": "original", "scale": "logit"},
        {"ramp_width": 0.0, "scale": "percent", "dtype": "float32"},
        {"ramp_width": 1e-6, "scale": "logit"},
        {"scale": "logit", "unseen_group": "original", "dtype": "float32"},
        {"scale": "percent", "labels": "whole"},
        {"scale": "signed", "unseen_group": "pooled"},
        {"ramp_width": 0.0, "unseen_group": "original", "scale": "real"},
        {"missing_seen": True},
        {"missing_seen": True, "labels": "whole", "unseen_group": "pooled"},
        ODDS,
        *OWN_WIDTHS,
        *REVERSED,
    ],
    ids=str,
)
def test_100000_rows_match_numpy(asked):
    rows = case(**asked)
    missing = "(missing)" if rows.group.dtype == object and asked.get("labels") != "whole" else -99
    group = [missing if label is None else label for label in rows.group.tolist()]
    kind = np.int64 if asked.get("labels") == "whole" else object
    model = to_onnx(rows.rule, decisions=True, score_type=str(rows.score.dtype), missing=missing, score="score")
    found = run(model, score=rows.score, race=np.array(group, dtype=kind), u=rows.u)
    assert np.isnan(found["probability"]).sum() == np.isnan(rows.probability).sum() > 0
    np.testing.assert_allclose(found["probability"], rows.probability, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found["decision"], rows.decision)
    if asked.get("scale") != "logit":  # no exponential, so the same operations give the same bits
        np.testing.assert_array_equal(found["probability"], rows.probability)


@st.composite
def rows_of(draw, rule):
    """Scores and labels for a rule, some at its thresholds, some in unseen groups."""
    known, within = labels_of(rule)
    kinds = [{type(part) for part in column} - {type(None)} or {str} for column in zip(*known, strict=True)]
    free = [
        {str: st.text("ab\x00", max_size=2), int: st.integers(-9, 9), bool: st.booleans()}[k.copy().pop()]
        for k in kinds
    ]
    n = draw(st.integers(1, 12))
    label = st.one_of(st.sampled_from(known), st.tuples(*free))
    scale = fairramp.core.scales.SCALES[rule.scale]
    low, high = (max(scale.score_range[0], -60.0), min(scale.score_range[1], 60.0))
    ends = [
        end for r in rule.ramps for end in (r.foot, r.foot + r.width / 2, r.foot + r.width) if low <= end <= high
    ]
    score = st.one_of(st.floats(low, high), st.sampled_from([*ends, low, high]))
    return [draw(score) for _ in range(n)], [draw(label) for _ in range(n)], within


def columns_of(rows, within):
    """Groups and strata in the form `Rule.probabilities` takes."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    pick = lambda part: None if not part else part[0] if len(part) == 1 else list(part)  # noqa: E731
    return pick(columns[within:]), pick(columns[:within])


def as_numpy(rule, scores, groups, strata, u):
    """NumPy's answer for each row: NaN and −1 for rows it rejects."""
    chances = []
    for i, score in enumerate(scores):
        one = [[c[i]] for c in groups] if isinstance(groups[0], list) else [groups[i]]
        cell = (
            None if strata is None else [[c[i]] for c in strata] if isinstance(strata[0], list) else [strata[i]]
        )
        try:
            chances.append(rule.probabilities([score], one, cell)[0])
        except FairrampError:
            chances.append(np.nan)
    decisions = [-1 if np.isnan(p) else int(d < p) for p, d in zip(chances, u, strict=True)]
    return np.array(chances), np.array(decisions)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(rule=rules(), data=st.data())
def test_any_rule_matches_numpy(rule, data):
    scores, labels, within = data.draw(rows_of(rule))
    u = fairramp.draws(range(len(scores)), KEY)
    kinds = [{type(part) for part in column} - {type(None)} for column in zip(*labels_of(rule)[0], strict=True)]
    stand_in = [{str: "\x00missing", int: 10**15, bool: 2}[kind.pop() if kind else str] for kind in kinds]
    names = [f"c{i}" for i in range(len(kinds))]
    model = to_onnx(
        rule,
        decisions=True,
        score="s",
        group=names[within:],
        strata=names[:within] or None,
        missing=dict(zip(names, stand_in, strict=True)),
    )
    types = {t.name: t.type.tensor_type.elem_type for t in model.graph.input}
    feed = {"s": np.array(scores, dtype=np.float64), "u": u}
    dtypes = {TensorProto.STRING: object, TensorProto.INT64: np.int64, TensorProto.BOOL: bool}
    for name, column, missing in zip(names, zip(*labels, strict=True), stand_in, strict=True):
        feed[name] = np.array([missing if p is None else p for p in column], dtype=dtypes[types[name]])
    found = run(model, **feed)
    chances, decisions = as_numpy(rule, scores, *columns_of(labels, within), u)
    np.testing.assert_allclose(found["probability"], chances, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found["decision"], decisions)


def test_undecidable_rows_get_nan_and_minus_one():
    nan, inf = np.nan, np.inf
    bad = np.array([nan, inf, -inf, 1.5, -0.1])
    for policy in ("error", "pooled", "original"):
        for width in (0.1, 0.0):
            pooled = Ramp.centered(0.4, width) if policy == "pooled" else None
            rule = Rule(("a",), (Ramp.centered(0.5, width),), unseen_group=policy, pooled=pooled)
            for label in ("a", "other"):
                group = texts([label] * len(bad))
                found = run(to_onnx(rule, decisions=True), score=bad, group=group, u=np.zeros(len(bad)))
                assert np.isnan(found["probability"]).all()
                assert (found["decision"] == -1).all()
    logit = Rule(("a",), (Ramp.centered(0.5, 0.1),), scale="logit", cutoff=0.0)
    found = run(to_onnx(logit), score=np.array([nan, inf, -inf, 1e308, -1e308]), group=texts(["a"] * 5))
    np.testing.assert_array_equal(found["probability"], [nan, nan, nan, 1.0, 0.0])


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("policy", ["original", "pooled"])
def test_extreme_real_scores_match_numpy(up, policy):
    rule, score, group = real_scores(up, policy)
    found = run(to_onnx(rule), score=score, group=texts(group))
    np.testing.assert_array_equal(found["probability"], rule.probabilities(score, group))


@pytest.mark.parametrize("threshold", [-0.5, 0.0, 1.0, 1.5])
def test_steps_at_the_largest_logits(threshold):
    rule = Rule(("a",), (Ramp.centered(threshold, 0, 0.25),), scale="logit", cutoff=0.0)
    scores = np.array([-1, -1e-300, 0, 1]) * np.finfo(np.float64).max
    found = run(to_onnx(rule), score=scores, group=texts(["a"] * 4))
    np.testing.assert_array_equal(found["probability"], rule.probabilities(scores, ["a"] * 4))


def test_invalid_draws_decide_only_rows_that_need_none():
    u = np.array([np.nan, -0.5, 1.0, 7.0])
    for score, answer in ((0.5, -1), (0.1, 0), (0.9, 1)):
        found = run(to_onnx(RULE, decisions=True), score=np.full(4, score), group=texts(["a"] * 4), u=u)
        np.testing.assert_array_equal(found["decision"], [answer] * 4)


@pytest.mark.parametrize(("scores", "groups", "draws"), [(3, 1, 3), (1, 3, 3), (3, 3, 1), (2, 4, 2)])
def test_lengths_do_not_broadcast(scores, groups, draws):
    model = session(to_onnx(RULE, decisions=True))
    feed = {"score": np.full(scores, 0.5), "group": texts(["a"] * groups), "u": np.full(draws, 0.5)}
    with pytest.raises(Exception, match=r"[Rr]eshape"):
        model.run(None, feed)


@pytest.mark.parametrize("decisions", [False, True])
def test_zero_rows(decisions):
    rules = {"one": RULE, "two": Rule((("a", 1), ("b", 2)), RULE.ramps, columns=Columns(groups=("group", "h")))}
    for rule in rules.values():
        feed = {"score": np.empty(0), "group": texts([])} | ({"u": np.empty(0)} if decisions else {})
        feed |= {"h": np.empty(0, dtype=np.int64)} if rule is rules["two"] else {}
        assert [len(found) for found in run(to_onnx(rule, decisions=decisions), **feed).values()] == [0] * (
            1 + decisions
        )


def test_too_many_columns_raise():
    labels = tuple(tuple(f"{i}" for _ in range(24)) for i in range(9))
    with pytest.raises(InputError, match="too many group columns"):
        to_onnx(Rule(labels, tuple(Ramp.centered(0.5, 0.1) for _ in labels)))


def test_unseen_combinations_of_known_values():
    groups = (("f", 1), ("m", 2))
    model = to_onnx(Rule(groups, (Ramp.centered(0.2, 0.1), Ramp.centered(0.3, 0.1))), group=["sex", "unit"])
    found = run(model, score=np.full(4, 0.9), sex=texts(["f", "f", "m", "x"]), unit=np.array([1, 2, 2, 1]))
    np.testing.assert_array_equal(found["probability"], [1.0, np.nan, 1.0, np.nan])


def test_thousands_of_groups():
    n = 20_000
    labels = tuple(f"gruppe № {i}" for i in range(n))
    rule = Rule(labels, tuple(Ramp.centered(i / n, 0.01) for i in range(n)))
    rng = np.random.default_rng(3)
    scores, groups = rng.random(50_000), np.array(labels, dtype=object)[rng.integers(0, n, 50_000)]
    found = run(to_onnx(rule), score=scores, group=groups)["probability"]
    np.testing.assert_array_equal(found, rule.probabilities(scores, groups))


HOSTILE = [
    "'; DROP TABLE x; --",
    '"',
    "a\x00b",
    "a",
    "line\nbreak\r\t",
    "👩🏽‍🚀",
    "",
    " ",
    "a ",
    "А",
    "é",
    "e\u0301",
    "%s{}",
]


def test_hostile_names_are_only_labels():
    ramps = tuple(Ramp.centered(i / 20, 0.01) for i in range(len(HOSTILE)))
    rule = Rule(tuple(HOSTILE), ramps, columns=Columns(groups=('"g";\n\x01ü',)))
    group = texts([*HOSTILE, "a\x00", "A", "None"])
    model = to_onnx(rule)
    scores = np.full(len(group), 0.301)
    found = run(model, score=scores, **{'"g";\n\x01ü': group})["probability"]
    np.testing.assert_array_equal(found[:-3], rule.probabilities(scores[:-3], HOSTILE))
    assert np.isnan(found[-3:]).all()


# Rounded scores -------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1e-6, 1e-3, 0.01, 0.3])
@pytest.mark.parametrize("scale", ["probability", "percent", "signed", "logit"])
def test_float32_scores_move_a_probability_by_at_most_2_to_the_minus_24_over_the_width(scale, width):
    """|Δp| ≤ 2^−24·|x|/width, where x is the position (2^−24·|z|/4/width for a logit z); nearly attained."""
    threshold = 0.6 if scale != "logit" else 0.7
    rule = Rule(("a",), (Ramp.centered(threshold, width),), scale=scale)
    rng = np.random.default_rng(1)
    position = threshold + width * rng.uniform(-0.5, 0.5, 20_000)
    score = {"percent": 100 * position, "logit": np.log(position / (1 - position))}.get(scale, position)
    exact = rule.probabilities(score, ["a"] * len(score))
    rounded = rule.probabilities(score.astype(np.float32), ["a"] * len(score))
    size = np.abs(score).max() / {"percent": 100, "logit": 4}.get(scale, 1)
    bound = 2.0**-24 * size / width
    moved = np.abs(exact - rounded).max()
    assert moved <= bound * (1 + 1e-6) + 1e-9
    assert moved > bound / 4


@pytest.mark.parametrize("width", [0.01, 1e-6])
def test_float32_bound_holds_on_the_shared_rows(width):
    rows = case(ramp_width=width)
    sure = ~np.isnan(rows.probability)
    groups = {"race": rows.group[sure].tolist()}
    moved = np.abs(rows.rule.probabilities(rows.score[sure].astype(np.float32), groups) - rows.probability[sure])
    highest = max(rows.rule.thresholds) + width / 2
    assert 0 < moved.max() <= 2.0**-24 * highest / width * (1 + 1e-6)


# The example ----------------------------------------------------------------------------------


def test_example_prints_what_the_page_shows(tmp_path):
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, root / "examples" / "onnx_pipeline.py", tmp_path],
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        check=True,
    )
    (shown,) = re.findall(
        r"```text\n(inputs: .*?)```", (root / "docs" / "production.md").read_text("utf-8"), re.DOTALL
    )
    assert done.stdout == shown
    assert [path.name for path in tmp_path.iterdir()] == ["fair.onnx"]


# Behind a classifier --------------------------------------------------------------------------


def own_model(
    shape=("rows", 2), kind=TensorProto.FLOAT, opset=17, name="probabilities", operator="Identity", **more
):
    """Classifier that returns its input."""
    inputs = [helper.make_tensor_value_info("x", kind, shape)]
    outputs = [helper.make_tensor_value_info(name, kind, shape)]
    graph = helper.make_graph([helper.make_node(operator, ["x"], [name])], "own", inputs, outputs)
    versions = [helper.make_opsetid("", opset), *(helper.make_opsetid(*pair) for pair in more.items())]
    return helper.make_model(graph, opset_imports=versions, ir_version=8)


@pytest.fixture(scope="module")
def adult():
    return fairramp.datasets.load_adult_scores()


def trained(kind, rng):
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features = rng.normal(size=(600, 3)).astype(np.float32)
    group = rng.choice(["å", "b"], 600)
    label = features[:, 0] + (group == "b") + rng.normal(size=600) > 0.5
    model = LogisticRegression() if kind == "linear" else GradientBoostingClassifier(n_estimators=10)
    return make_pipeline(StandardScaler(), model).fit(features, label), features, group


@pytest.mark.parametrize("kind", ["linear", "trees"])
def test_scikit_learn_pipeline_and_rule_form_one_model(kind, tmp_path):
    from skl2onnx import to_onnx as converted

    pipeline, features, group = trained(kind, np.random.default_rng(0))
    own = converted(pipeline, features[:1], options={"zipmap": False})
    scores = run(own, X=features)["probabilities"][:, 1]
    rule = fairramp.fit_rule(scores, group)
    joined = append_to(own, rule, tmp_path / "fair.onnx", decisions=True)
    assert "fairramp.rule" not in {p.key for p in own.metadata_props}  # the user's model is unchanged
    ids = [f"id {i}" for i in range(len(group))]
    found = run((tmp_path / "fair.onnx").read_bytes(), X=features, group=texts(group), u=fairramp.draws(ids, KEY))
    assert list(found) == ["label", "probabilities", "probability", "decision"]
    np.testing.assert_array_equal(found["probability"], rule.probabilities(scores, group))
    np.testing.assert_array_equal(found["decision"], rule.decide(scores, group, ids=ids, key=KEY))
    onnx.checker.check_model(joined, full_check=True)


@pytest.mark.parametrize("shape", [("rows",), ("rows", 1), ("rows", 2), ("rows", 5)])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
@pytest.mark.parametrize("opset", [13, 17, 21])
def test_every_output_shape_type_and_opset(shape, kind, opset):
    rng = np.random.default_rng(2)
    width = {1: 0, 2: shape[-1] if shape[-1] != "rows" else 0}[len(shape)]
    x = rng.random((40, width) if width else 40).astype({1: np.float32, 11: np.float64}[kind])
    column = {0: None, 1: 0, 2: 1, 5: 3}[width]
    scores = x if column is None else x[:, column]
    model = append_to(own_model(shape, kind, opset), RULE, column=3 if width == 5 else None)
    group = texts(rng.choice(["a", "b"], 40))
    np.testing.assert_array_equal(run(model, x=x, group=group)["probability"], RULE.probabilities(scores, group))


def test_group_that_is_a_feature_is_one_input():
    sex = helper.make_tensor_value_info("sex", TensorProto.STRING, ["rows", 1])
    score = helper.make_tensor_value_info("s", TensorProto.FLOAT, ["rows", 1])
    encoder = helper.make_node(
        "LabelEncoder",
        ["sex"],
        ["s"],
        domain="ai.onnx.ml",
        keys_strings=["a"],
        values_floats=[0.5],
        default_float=0.1,
    )
    graph = helper.make_graph([encoder], "own", [sex], [score])
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = append_to(helper.make_model(graph, opset_imports=versions, ir_version=8), RULE, group="sex")
    assert [t.name for t in model.graph.input] == ["sex"]
    np.testing.assert_array_equal(run(model, sex=texts([["a"], ["b"]]))["probability"], [HALF, 0.0])


def test_name_clashes_with_the_classifier():
    once = append_to(own_model(name="fairramp/0"), RULE)
    x = np.array([[0.5, 0.5], [0.9, 0.1]], dtype=np.float32)
    np.testing.assert_array_equal(run(once, x=x, group=texts(["a", "b"]))["probability"], [HALF, 0.0])
    with pytest.raises(InputError, match="already uses the name 'probability'; pass `prefix`"):
        append_to(own_model(name="probability"), RULE)
    with pytest.raises(InputError, match="already uses the name 'probabilities'; pass another name as `group`"):
        append_to(own_model(), RULE, group="probabilities")
    found = run(append_to(own_model(name="probability"), RULE, prefix="fair_"), x=x, group=texts(["a", "b"]))
    assert list(found) == ["probability", "fair_probability"]


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        (own_model(opset=12), {}, "opset 13 or later"),
        (own_model(operator="LabelEncoder", **{"ai.onnx.ml": 1}), {}, "LabelEncoder from ai.onnx.ml version 1"),
        (own_model(("rows", 3)), {}, "`column`"),
        (own_model(("rows", 3)), {"column": 3}, "no column 3"),
        (own_model(), {"score": "scores"}, "no output 'scores'"),
        (own_model(kind=TensorProto.INT64), {}, "Pass `score`"),
        (own_model(kind=TensorProto.INT64), {"score": "probabilities"}, "not floating-point"),
        (own_model(), {"group": "x"}, "is not that of the rule's groups"),
        (
            append_to(own_model(), RULE),
            {"score": "probabilities", "group": "h", "prefix": "p"},
            "already contains a rule",
        ),
    ],
)
def test_classifiers_that_cannot_be_joined_raise(model, options, said):
    with pytest.raises(InputError, match=said):
        append_to(model, RULE, **options)


def test_invalid_classifier_raises():
    with pytest.raises(FairrampError, match=r"not a valid ONNX model: .*NoSuchOperator"):
        append_to(own_model(operator="NoSuchOperator"), RULE)


def test_unnamed_strata_are_a_separate_input():
    cells = (("n", 1), ("n", 2), ("s", 1), ("s", 2))
    ramps = tuple(Ramp.centered(threshold, 0.5) for threshold in (0.2, 0.4, 0.6, 0.8))
    rule = Rule(cells, ramps, target_rate=None, stratified=True)
    asked = {"score": np.full(4, 0.5), "stratum": texts(["s", "n", "s", "n"]), "group": np.array([2, 1, 1, 2])}
    expected = rule.probabilities(asked["score"], asked["group"], strata=asked["stratum"])
    np.testing.assert_allclose(run(to_onnx(rule), **asked)["probability"], expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
@pytest.mark.parametrize(
    ("scale", "low", "high"), [("probability", 0, 1), ("percent", 0, 100), ("signed", -1, 1)]
)
def test_scores_may_leave_the_range_only_by_rounding(scale, low, high, kind):
    rule = Rule(("a",), (Ramp.centered(0.5, 0.1),), scale=scale)
    unit = 1e-6 * (100 if scale == "percent" else 1)
    away = np.array([-2, -0.9, 0.0])
    dtype = {TensorProto.FLOAT: np.float32, TensorProto.DOUBLE: np.float64}[kind]
    x = np.concatenate([low + unit * away, high - unit * away, [np.nan]]).astype(dtype)
    model = append_to(own_model(("rows",), kind), rule, decisions=True)
    found = run(model, x=x, group=texts(["a"] * 7), u=np.full(7, 0.5))
    np.testing.assert_array_equal(found["probability"], [np.nan, 0, 0, np.nan, 1, 1, np.nan])
    np.testing.assert_array_equal(found["decision"], [-1, 0, 0, -1, 1, 1, -1])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"group": "u", "decisions": True}, "already uses the name 'u'; pass `prefix`"),
        ({"group": "probability"}, "already uses the name 'probability'; pass `prefix`"),
        ({"prefix": 3}, "`prefix` must be a string, got 3"),
    ],
)
def test_reserved_names_raise(options, said):
    for make in (lambda: to_onnx(RULE, **options), lambda: append_to(own_model(), RULE, **options)):
        with pytest.raises(InputError, match=said):
            make()


def test_shared_name_for_strata_and_groups_raises():
    groups = (("s", "a"), ("s", "b"))
    rule = Rule(groups, (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)), stratified=True, target_rate=None)
    for make in (lambda **o: to_onnx(rule, **o), lambda **o: append_to(own_model(), rule, **o)):
        with pytest.raises(InputError, match="must have different names"):
            make(group="g", strata="g")


def test_two_logits_raise():
    rule = Rule(("a",), (Ramp.centered(0.5, 0.1),), scale="logit", cutoff=0.0)
    with pytest.raises(InputError, match="their difference"):
        append_to(own_model(), rule)


def test_skl2onnx_dictionaries_raise_with_a_remedy():
    from skl2onnx import to_onnx as converted

    pipeline, features, _ = trained("linear", np.random.default_rng(0))
    with pytest.raises(InputError, match="zipmap"):
        append_to(converted(pipeline, features[:1]), RULE)


# Model file -----------------------------------------------------------------------------------


def test_model_names_its_rule_and_inputs(tmp_path):
    model = RULE.to_onnx(tmp_path / "rule.onnx", decisions=True)
    content = (tmp_path / "rule.onnx").read_bytes()
    assert onnx.load_from_string(content) == model
    props = {p.key: p.value for p in model.metadata_props}
    assert props["fairramp.rule"] == RULE.fingerprint
    assert props["fairramp.version"] == fairramp.__version__
    assert json.loads(props["fairramp.inputs"])["group"] == ["group"]
    onnx.checker.check_model(str(tmp_path / "rule.onnx"), full_check=True)
    RULE.to_onnx(tmp_path / "again.onnx", decisions=True)
    assert (tmp_path / "again.onnx").read_bytes() == content
    assert session(model).get_modelmeta().custom_metadata_map["fairramp.rule"] == RULE.fingerprint


def test_file_runs_in_a_new_process_without_fairramp(tmp_path):
    RULE.to_onnx(tmp_path / "rule.onnx")
    code = (
        "import sys, numpy, onnxruntime\n"
        "model = onnxruntime.InferenceSession('rule.onnx', providers=['CPUExecutionProvider'])\n"
        "feed = {'score': numpy.array([0.48, 0.48]), 'group': numpy.array(['a', 'c'], dtype=object)}\n"
        "print(model.run(None, feed)[0].tolist(), 'fairramp' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    chance = RULE.probabilities([0.48], ["a"])[0]
    assert done.stdout == f"[{chance!r}, nan] False\n".replace("np.float64(", "").replace(")", "")


@pytest.mark.parametrize(
    ("groups", "options", "said"),
    [
        (("a", 1), {}, "one type"),
        (("a", None), {}, "pass `missing`"),
        (("a", None), {"missing": "a"}, "not a group of 'group'"),
        (("a", None), {"missing": 7}, "a string"),
        ((1, None), {"missing": "x"}, "an integer"),
        ((2**63, 1), {}, "64-bit integer"),
        (("a", ("b", "c")), {}, "must name 2 columns"),
        (("a", "b"), {"strata": "s"}, "`strata`"),
        (("a", "b"), {"group": ["x", "y"]}, "`group` must name 1 column"),
        (("a", "b"), {"score": "group"}, "must have different names"),
        (("a", "b"), {"group": "probability"}, "`prefix`"),
        (("a", "b"), {"score": "u", "decisions": True}, "`prefix`"),
        (("a", "b"), {"score_type": "int8"}, "`score_type`"),
        ((("a", "b"), ("c", "d")), {"group": ["x", "x"]}, "x"),
    ],
)
def test_labels_that_fit_no_tensor_raise(groups, options, said):
    rule = Rule(groups, (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    with pytest.raises(InputError, match=said):
        to_onnx(rule, **options)


def test_missing_onnx_gives_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(FairrampError, match=r"pip install 'fairramp\[export\]'"):
        to_onnx(RULE)
