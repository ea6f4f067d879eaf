"""Rules for several classes decide alike in NumPy, ONNX and torch: alone, behind classifiers, and as programs."""

import functools
import hashlib
import json
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from cases import KEY, ROWS
from onnx import TensorProto, helper
from test_onnx import run, texts

import fairramp
from fairramp import ClassRule, Columns, FairrampError, GroupProbabilities, InputError, UnsupportedError
from fairramp.deploy.onnx import append_to, to_onnx

CLASSES = ("z", 10, "Ä 👩🏽‍🚀", True, "a", -3)
GROUPS = ("Weiß", "太平洋諸島 '", "", "x")
RULE = ClassRule(("A", "B"), ("low", "mid", "high"), ((0.0, 0.0, 0.0), (0.05, 0.05, -0.1)), 0.1)


@dataclass(frozen=True, eq=False)
class ClassCase:
    """A rule and its rows; `chance` is NaN and `decision` −1 for a row that cannot be decided."""

    rule: ClassRule
    scores: np.ndarray
    groups: dict[str, list] | np.ndarray
    u: np.ndarray
    chance: np.ndarray
    decision: np.ndarray


@functools.cache
def draws():
    """The draws of ids 0, 1, …, by their definition."""
    digests = (hashlib.sha256(f"{KEY}:{i}".encode()).hexdigest() for i in range(ROWS))
    return np.array([int(digest[:13], 16) / 2**52 for digest in digests])


@functools.cache
def class_case(n_classes=3, width=0.05, kind="known", unseen_group="error"):
    """100,000 rows with ties, invalid scores, and unseen groups or invalid group probabilities."""
    rng = np.random.default_rng(n_classes)
    scores = rng.dirichlet(np.full(n_classes, 2.0), ROWS)
    scores[::3] = rng.multinomial(10, np.full(n_classes, 1 / n_classes), len(scores[::3])) / 10  # ties
    scores[1::9] = np.eye(n_classes)[rng.integers(0, n_classes, len(scores[1::9]))]
    offsets = np.round(rng.uniform(-0.2, 0.2, (len(GROUPS), n_classes)), 2) * (width > 0)
    offsets[0] = 0.0
    offsets[1, 0] = offsets[0, 0]
    labels = [("north", label) for label in GROUPS] + [("south", label) for label in GROUPS]
    labels = sorted(labels) if kind == "strata" else list(GROUPS)
    rule = ClassRule(
        tuple(labels),
        CLASSES[:n_classes],
        tuple(map(tuple, np.resize(offsets, (len(labels), n_classes)).tolist())),
        width,
        stratified=kind == "strata",
        unseen_group=unseen_group,
        columns=Columns(groups=None if kind == "soft" else ("g",), strata=("s",) if kind == "strata" else None),
        membership="probabilities" if kind == "soft" else "known",
    )
    bad = np.zeros(ROWS, dtype=bool)
    for start, value in ((5, np.nan), (6, np.inf), (7, -0.1), (8, 1.1), (9, -np.inf)):
        scores[start::997, start % n_classes], bad[start::997] = value, True
    bad[10::997] = True
    scores[10::997] *= 1.0001

    if kind == "soft":
        groups = rng.dirichlet(np.full(len(GROUPS), 0.4), ROWS)
        groups[:3000] = np.eye(len(GROUPS))[rng.integers(0, len(GROUPS), 3000)]
        groups[3000:6000] = groups[3000:6000].round(7)
        for start, value in ((11, np.nan), (12, -1e-9), (13, 1.1)):
            groups[start::997, start % 4], bad[start::997] = value, True
        groups[14::997, 0] += 3e-6
        bad[14::997] = True
    else:
        groups = {"g": np.array(GROUPS, dtype=object)[rng.integers(0, len(GROUPS), ROWS)].tolist()}
        groups["g"][11::97] = ["unbekannt"] * len(range(11, ROWS, 97))
        if kind == "strata":
            groups["s"] = [("north", "south", "west")[i] for i in rng.choice(3, ROWS, p=[0.5, 0.49, 0.01])]
        if unseen_group == "error":
            known = set(GROUPS)
            bad |= [label not in known for label in groups["g"]]
            bad |= [place == "west" for place in groups.get("s", [""] * ROWS)]
    rows = np.flatnonzero(~bad)
    if kind == "soft":
        read = (GroupProbabilities(groups[rows], GROUPS),)
    else:
        read = tuple({name: [groups[name][i] for i in rows]} for name in groups)
    chance, decision = np.full(scores.shape, np.nan), np.full(ROWS, -1)
    chance[rows] = rule.probabilities(scores[rows], *read)
    decision[rows] = rule.drawn(chance[rows], ids=rows, key=KEY)
    return ClassCase(rule, scores, groups, draws(), chance, decision)


CASES = [
    {"n_classes": 2},
    {"n_classes": 3, "width": 1e-6},
    {"n_classes": 4, "width": 0.5},
    {"n_classes": 5, "width": 0.0},
    {"n_classes": 6, "width": 1e-6, "unseen_group": "original"},
    {"n_classes": 3, "width": 0.0, "unseen_group": "original"},
    {"n_classes": 2, "width": 0.5, "unseen_group": "original"},
    {"n_classes": 3, "kind": "strata"},
    {"n_classes": 4, "kind": "strata", "unseen_group": "original"},
    {"n_classes": 2, "kind": "soft", "width": 0.5},
    {"n_classes": 3, "kind": "soft"},
    {"n_classes": 6, "kind": "soft", "width": 1e-6},
    {"n_classes": 4, "kind": "soft", "width": 0.0},
]
every = pytest.mark.parametrize("asked", CASES, ids=str)


def same(found, decisions, made, rows=slice(None)):
    """The same chances to 1e-9, and the same decisions."""
    np.testing.assert_allclose(found, made.chance[rows], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(decisions, made.decision[rows])


@every
def test_the_rows_have_ties_draws_and_rejected_rows(asked):
    made = class_case(**asked)
    top = np.sort(made.scores, axis=1)[:, -2:]
    assert (top[:, 0] == top[:, 1]).sum() > 100
    assert (made.decision == -1).sum() > 500
    assert set(made.decision) == {-1, *range(asked["n_classes"])}
    assert asked.get("width") == 0 or ((made.chance > 0) & (made.chance < 1)).any(axis=1).sum() > 100


# ONNX -----------------------------------------------------------------------------------------


def feed_of(made):
    if isinstance(made.groups, np.ndarray):
        return {"group_probability": made.groups}
    return {name: texts(column) for name, column in made.groups.items()}


@every
def test_100000_rows_match_numpy_in_onnx(asked):
    made = class_case(**asked)
    found = run(made.rule.to_onnx(decisions=True), score=made.scores, u=made.u, **feed_of(made))
    assert found["decision"].dtype == np.int64
    same(found["probability"], found["decision"], made)
    if asked.get("kind") != "soft":  # the same operations give the same bits
        np.testing.assert_array_equal(found["probability"], made.chance)


def test_a_model_in_single_precision_reads_what_numpy_reads():
    scores = np.random.default_rng(0).dirichlet([2.0] * 3, 1000).astype(np.float32)
    model = RULE.to_onnx(score_type="float32", score="p", group="g", prefix="fair_")
    found = run(model, p=scores, g=texts(["A", "B"] * 500))["fair_probability"]
    np.testing.assert_array_equal(found, RULE.probabilities(scores, ["A", "B"] * 500))


def test_a_draw_is_needed_only_if_the_decision_is_random():
    scores = np.array([[0.2, 0.45, 0.35]] * 6)
    u = np.array([0.5, np.nan, 0.9, np.nan, 1.0, -0.1])
    found = run(RULE.to_onnx(decisions=True), score=scores, group=texts([*"AABBBB"]), u=u)["decision"]
    # Sorted by label, the classes of group B are high (75%) and mid (25%).
    assert found.tolist() == [1, 1, 1, -1, -1, -1]


def test_the_metadata_name_the_classes_and_the_rule(tmp_path):
    made = class_case(n_classes=6, kind="soft", width=1e-6)
    about = {prop.key: prop.value for prop in made.rule.to_onnx(tmp_path / "r.onnx").metadata_props}
    said = json.loads(about["fairramp.inputs"])
    assert [(type(label), label) for label in said["classes"]] == [(type(label), label) for label in CLASSES]
    assert said["groups"] == [fairramp.core.labels.show_label(label) for label in GROUPS]
    assert about["fairramp.rule"] == made.rule.fingerprint
    assert (tmp_path / "r.onnx").exists()


def test_integer_groups_of_several_columns_and_missing_ones():
    rule = ClassRule(((1, "f"), (None, "f"), (1, "m")), ("a", "b"), ((0.1, -0.1), (0.0, 0.0), (-0.1, 0.1)), 0.1)
    with pytest.raises(InputError, match="pass `missing`"):
        rule.to_onnx(group=["unit", "sex"])
    model = rule.to_onnx(group=["unit", "sex"], missing={"unit": -1})
    scores = np.array([[0.55, 0.45]] * 4)
    found = run(model, score=scores, unit=np.array([1, -1, 1, 2]), sex=texts(["f", "f", "m", "m"]))["probability"]
    expected = rule.probabilities(scores[:3], [[1, None, 1], ["f", "f", "m"]])
    np.testing.assert_array_equal(found, [*expected, [np.nan] * 2])


@pytest.mark.parametrize("shape", [(4, 2), (4,), (4, 3, 1)])
def test_scores_of_another_shape_raise(shape):
    with pytest.raises(Exception, match=r"(?i)reshape|dimension|rank"):
        run(RULE.to_onnx(), score=np.full(shape, 1 / 3), group=texts(["A"] * 4))


def test_columns_of_different_lengths_raise():
    with pytest.raises(Exception, match=r"(?i)reshape"):
        run(RULE.to_onnx(), score=np.full((4, 3), 1 / 3), group=texts(["A"] * 3))


def identity(n_classes, kind=TensorProto.FLOAT, sizes=None):
    """A classifier that returns its input."""
    shape = ["rows", n_classes] if sizes is None else sizes
    put, out = (helper.make_tensor_value_info(name, kind, shape) for name in ("x", "p"))
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["p"])], "own", [put], [out])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_appended_to_a_real_classifier(n_classes):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    x, y = make_classification(3000, 8, n_informative=6, n_classes=n_classes, random_state=0)
    x, groups = x.astype(np.float32), np.array(["a", "b"])[(x[:, 0] > 0).astype(int)]
    for classifier in (LogisticRegression(), RandomForestClassifier(20, max_depth=4, random_state=0)):
        own = classifier.fit(x, y)
        rule = fairramp.fit_class_rule(own.predict_proba(x), groups, classes=own.classes_, max_gap=0.02)
        model = skl2onnx.to_onnx(own, x[:1], options={"zipmap": False}, target_opset=17)
        joined = append_to(model, rule, decisions=True, score="probabilities")
        u = fairramp.draws(range(len(x)), KEY)
        found = run(joined, X=x, group=texts(groups), u=u)
        scores = found["probabilities"].astype(float).clip(0, 1)
        expected = rule.probabilities(scores, groups)
        np.testing.assert_allclose(found["probability"], expected, rtol=0, atol=1e-9)
        decided = rule.decide(scores, groups, ids=range(len(x)), key=KEY)
        np.testing.assert_array_equal(np.array(rule.classes)[found["decision"]], decided)
        assert 0 < (decided != own.classes_[scores.argmax(axis=1)]).mean() < 0.5


def test_rounded_scores_of_a_classifier_are_accepted():
    x = np.array([[0.2, 0.4, 0.4], [0.2, 0.40005, 0.4], [-5e-7, 0.5, 0.5], [0.2, 0.4003, 0.4], [-1e-5, 0.5, 0.5]])
    found = run(append_to(identity(3, TensorProto.DOUBLE), RULE), x=x, group=texts(["A"] * 5))["probability"]
    assert np.isnan(found).all(axis=1).tolist() == [False, False, False, True, True]
    np.testing.assert_allclose(found[:3], [[0, 0.5, 0.5], [0, 0.50025, 0.49975], [0, 0.5, 0.5]], atol=1e-9)


def test_a_classifier_must_have_one_column_per_class():
    with pytest.raises(
        InputError, match=r"'p' of shape \[0, 4\] does not have one column for each of the classes"
    ):
        append_to(identity(4), RULE)
    with pytest.raises(InputError, match=r"does not have one column for each of the classes"):
        append_to(identity(3, sizes=["rows"]), RULE)
    with pytest.raises(UnsupportedError, match="uses all columns and no `column`; remove it"):
        append_to(identity(3), RULE, column=1)
    with pytest.raises(InputError, match="already contains a rule"):
        append_to(append_to(identity(3), RULE), RULE, score="p", prefix="b_", group="other")
    found = run(
        append_to(identity(3, sizes=["rows", "any"]), RULE), x=np.eye(3, dtype=np.float32), group=texts([*"AAB"])
    )
    np.testing.assert_array_equal(found["probability"], np.eye(3))


def test_names_of_the_wrong_kind_raise():
    soft = class_case(kind="soft").rule
    with pytest.raises(InputError, match="does not use `group` but group probabilities"):
        soft.to_onnx(group="g")
    with pytest.raises(InputError, match="no `group_probability`; remove it"):
        RULE.to_onnx(group_probability="q")
    with pytest.raises(InputError, match="does not use `strata`"):
        RULE.to_onnx(strata="s")
    with pytest.raises(InputError, match="different names"):
        to_onnx(RULE, score="a", group="a")
    with pytest.raises(UnsupportedError, match=r"SQL does not support several classes; .*ONNX"):
        RULE.to_sql("duckdb")


# torch ----------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    """The library, or a skipped test."""
    return pytest.importorskip("torch", reason="torch is not installed: make test-torch")


def scripted(torch, module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # many servers still use torch.jit
        return torch.jit.script(module)


def inputs_of(torch, made, module):
    """The module's inputs."""
    groups = made.groups
    if isinstance(groups, np.ndarray):
        codes = torch.from_numpy(groups)
    else:
        codes = module.codes(*({name: column} for name, column in groups.items()))
    return torch.from_numpy(made.scores), codes, torch.from_numpy(made.u)


@pytest.mark.torch
@every
def test_100000_rows_match_numpy_in_torch(torch, asked):
    made = class_case(**asked)
    module = made.rule.to_torch(decisions=True)
    inputs = inputs_of(torch, made, module)
    for form in (module, scripted(torch, module), scripted(torch, module).half()):
        probability, decision = form(*inputs)
        assert (probability.dtype, decision.dtype) == (torch.float64, torch.int64)
        same(probability.numpy(), decision.numpy(), made)
        if asked.get("kind") != "soft":
            np.testing.assert_array_equal(probability.numpy(), made.chance)
    without = made.rule.to_torch()(*inputs[:2])
    np.testing.assert_allclose(without.numpy(), made.chance, rtol=0, atol=1e-9)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["known", "soft"])
def test_programs_run_and_describe_themselves(torch, tmp_path, kind):
    from fairramp.deploy.torch import save

    made, rows = class_case(n_classes=6, kind=kind), slice(0, 2000)
    save(made.rule, tmp_path / "rule.pt2", decisions=True)
    about = {"fairramp.json": "", "fairramp.rule.json": ""}
    program = torch.export.load(tmp_path / "rule.pt2", extra_files=about).module()
    inputs = (tensor[rows] for tensor in inputs_of(torch, made, made.rule.to_torch()))
    probability, decision = program(*inputs)
    same(probability.numpy(), decision.numpy(), made, rows)
    said = json.loads(about["fairramp.json"])
    assert (said["rule"], said["classes"]) == (made.rule.fingerprint, list(CLASSES))
    assert said["inputs"][0] == "scores: float64, one column per class"
    assert ClassRule.from_json(about["fairramp.rule.json"]) == made.rule


@pytest.mark.torch
def test_modules_refuse_other_shapes_and_types(torch):
    module, scores = RULE.to_torch(decisions=True), torch.full((4, 3), 1 / 3, dtype=torch.float64)
    codes, u = torch.zeros(4, dtype=torch.int64), torch.zeros(4, dtype=torch.float64)
    wrong = {
        "scores must have one column per class": (scores[:, :2], codes, u),
        "groups must have one code per row": (scores, codes[:3], u),
        "groups must be integers": (scores, u, u),
        "u must have one number per row": (scores, codes, u[:1]),
        "u must be float64": (scores, codes, u.float()),
    }
    for message, given in wrong.items():
        for form in (module, scripted(torch, module)):
            with pytest.raises(Exception, match=message):
                form(*given)
    soft = class_case(kind="soft").rule.to_torch()
    for message, groups in {
        "one row per score": u,
        "one column per group": scores,
        "be probabilities": codes,
    }.items():
        shaped = groups if message != "be probabilities" else torch.zeros((4, 4), dtype=torch.int64)
        with pytest.raises(ValueError, match=message):
            soft(scores, shaped)


@pytest.mark.torch
def test_unknown_codes_never_use_some_groups_offsets(torch):
    scores = torch.tensor([[0.2, 0.45, 0.35]] * 5, dtype=torch.float64)
    codes = torch.tensor([-3, -1, 2, 3, 10**6])
    assert torch.isnan(RULE.to_torch()(scores, codes)).all()
    own = ClassRule(RULE.groups, RULE.classes, RULE.offsets, 0.1, unseen_group="original").to_torch()
    assert own(scores, codes).tolist() == [[0.0, 1.0, 0.0]] * 5


def test_missing_torch_gives_install_command(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "fairramp.deploy.class_torch", raising=False)
    with pytest.raises(FairrampError, match=r"pip install 'fairramp\[torch\]'"):
        RULE.to_torch()
