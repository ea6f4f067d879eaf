"""A rule as a torch module decides like NumPy: eager, scripted, exported, and in a new process."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
from cases import KEY, ODDS, OWN_WIDTHS, REVERSED, case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mixed import CASES, NAMED, each, soft
from test_onnx import as_numpy, columns_of, rows_of, run, texts

import fairramp
from fairramp import Columns, FairrampError, InputError, Ramp, Rule
from rules import real_scores, rules

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytestmark = pytest.mark.torch

from fairramp.deploy.onnx import append_to  # noqa: E402
from fairramp.deploy.torch import RampModule, save, to_torch  # noqa: E402

RULE = Rule(("a", "b"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))


def scripted(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # many servers still use torch.jit
        return torch.jit.script(module)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"dtype": "float32"},
        {"unseen_group": "pooled", "labels": "whole"},
        {"unseen_group": "original", "dtype": "float32"},
        {"ramp_width": 0.0},
        {"ramp_width": 0.0, "unseen_group": "original", "scale": "logit"},
        {"ramp_width": 1e-6, "scale": "logit"},
        {"scale": "logit", "unseen_group": "original", "dtype": "float32"},
        {"scale": "percent", "ramp": "paper"},
        {"scale": "signed", "unseen_group": "pooled"},
        {"ramp_width": 0.0, "unseen_group": "original", "scale": "real"},
        {"missing_seen": True},
        ODDS,
        *OWN_WIDTHS,
        *REVERSED,
    ],
    ids=str,
)
def test_100000_rows_match_numpy(asked):
    rows = case(**asked)
    module = to_torch(rows.rule, decisions=True)
    inputs = torch.from_numpy(rows.score), module.codes({"race": rows.group.tolist()}), torch.from_numpy(rows.u)
    for form in (module, scripted(module)):
        probability, decision = form(*inputs)
        np.testing.assert_allclose(probability.numpy(), rows.probability, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(decision.numpy(), rows.decision)
        if asked.get("scale") != "logit":
            np.testing.assert_array_equal(probability.numpy(), rows.probability)


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("policy", ["original", "pooled"])
def test_extreme_real_scores_match_numpy(up, policy):
    rule, score, group = real_scores(up, policy)
    module = to_torch(rule)
    for form in (module, scripted(module)):
        found = form(torch.from_numpy(score), module.codes(group)).numpy()
        np.testing.assert_array_equal(found, rule.probabilities(score, group))


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(rule=rules(), data=st.data())
def test_any_rule_matches_numpy(rule, data):
    scores, labels, within = data.draw(rows_of(rule))
    groups, strata = columns_of(labels, within)
    u = fairramp.draws(range(len(scores)), KEY)
    module = to_torch(rule, decisions=True)
    probability, decision = module(
        torch.tensor(scores, dtype=torch.float64), module.codes(groups, strata), torch.from_numpy(u)
    )
    chances, decisions = as_numpy(rule, scores, groups, strata, u)
    np.testing.assert_allclose(probability.numpy(), chances, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(decision.numpy(), decisions)


def test_undecidable_rows_get_nan_and_minus_one():
    module = to_torch(RULE, decisions=True)
    scores = torch.tensor([0.5, np.nan, np.inf, -0.1, 1.5, 0.9, 0.9, 0.5, 0.5], dtype=torch.float64)
    codes = torch.tensor([0, 0, 0, 0, 0, 2, -1, 0, 0])
    u = torch.tensor([0.1, 0, 0, 0, 0, 0, 0, 1.0, np.nan], dtype=torch.float64)
    probability, decision = module(scores, codes, u)
    assert torch.isnan(probability).tolist() == [False] + [True] * 6 + [False] * 2
    assert decision.tolist() == [1] + [-1] * 8
    # Codes outside the range of groups never use some group's ramp.
    many = to_torch(RULE)(torch.full((5,), 0.9), torch.tensor([-3, -2, 2, 3, 10**6]))
    assert torch.isnan(many).all()


def test_half_precision_models_keep_exact_thresholds():
    rule = Rule(("a",), (Ramp.centered(0.123456789, 1e-6),))
    scores, codes = np.array([0.1234567, 0.123457]), torch.zeros(2, dtype=torch.int64)
    expected = rule.probabilities(scores, ["a", "a"])
    model = torch.nn.ModuleDict({"own": torch.nn.Linear(2, 1), "rule": to_torch(rule)}).half()
    assert model["own"].weight.dtype == torch.float16
    np.testing.assert_array_equal(model["rule"](torch.from_numpy(scores), codes), expected)
    for rounded in (scripted(to_torch(rule)).half(), scripted(to_torch(rule)).float(), to_torch(rule).bfloat16()):
        np.testing.assert_array_equal(rounded(torch.from_numpy(scores), codes), expected)
    moved = model.to("meta")["rule"](torch.empty(2, device="meta"), codes.to("meta"))
    assert (moved.device.type, moved.dtype) == ("meta", torch.float64)


@pytest.mark.parametrize("of", ["groups", "u"])
def test_lengths_do_not_broadcast(of):
    module = to_torch(RULE, decisions=True)
    sizes = {"groups": 3, "u": 3} | {of: 1}
    with pytest.raises(ValueError, match=f"{of} must have the same shape"):
        module(torch.rand(3), torch.zeros(sizes["groups"], dtype=torch.int64), torch.rand(sizes["u"]).double())


def test_single_precision_draws_raise():
    module = to_torch(RULE, decisions=True)
    with pytest.raises(ValueError, match="u must be float64"):
        module(torch.rand(3), torch.zeros(3, dtype=torch.int64), torch.rand(3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_non_integer_codes_raise(dtype):
    for form in (to_torch(RULE), scripted(to_torch(RULE))):
        with pytest.raises(Exception, match="groups must be integers"):
            form(torch.rand(3), torch.zeros(3, dtype=dtype))


@pytest.mark.parametrize("n", [100, 200, 300])
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])
def test_codes_of_every_integer_type(dtype, n):
    rule = Rule(tuple(range(n)), tuple(Ramp.centered(k / n, 0.01) for k in range(n)))
    codes = [0, 1, 57, 99, 127]
    scores = torch.full((len(codes),), 0.5, dtype=torch.float64)
    found = to_torch(rule)(scores, torch.tensor(codes, dtype=dtype))
    known = [rule.probabilities([0.5], [code])[0] if code < n else np.nan for code in codes]
    np.testing.assert_array_equal(found, known)
    if dtype.is_signed:
        assert torch.isnan(to_torch(rule)(scores, torch.full((len(codes),), -1, dtype=dtype))).all()


def test_program_runs_in_a_new_process_and_names_its_rule(tmp_path):
    rule = Rule(
        ("ä", "b", None),
        (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1), Ramp.centered(0.3, 0.1)),
        columns=Columns(groups=("g",)),
    )
    save(rule, tmp_path / "rule.pt2", decisions=True)
    code = (
        "import sys, torch\n"
        "about = {'fairramp.json': '', 'fairramp.rule.json': ''}\n"
        "program = torch.export.load('rule.pt2', extra_files=about).module()\n"
        "double = lambda *x: torch.tensor(x, dtype=torch.float64)\n"
        "chance, yes = program(double(.48, .48, .33), torch.tensor([0, 1, 2]), double(.9, .9, .9))\n"
        "print(chance.tolist(), yes.tolist(), 'fairramp' in sys.modules)\n"
        "print(about['fairramp.json'])\n"
        "print(about['fairramp.rule.json'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    first, about, text = done.stdout.split("\n", 2)
    chances = rule.probabilities([0.48, 0.48, 0.33], ["ä", "b", None]).tolist()
    assert first == f"{chances} [0, 1, 0] False"
    assert json.loads(about)["rule"] == rule.fingerprint
    again = Rule.from_json(text)
    assert again == rule
    assert RampModule(again).codes(["b", None, "ä", "x"]).tolist() == [1, 2, 0, 3]


def test_program_is_a_pt2_file(tmp_path):
    with pytest.raises(InputError, match=r"\.pt2"):
        save(RULE, tmp_path / "rule.pt")
    assert not list(tmp_path.iterdir())


def test_module_survives_saving_as_a_script(tmp_path):
    path = str(tmp_path / "rule.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(to_torch(RULE)).save(path)
        again = torch.jit.load(path)
    scores, codes = torch.rand(50).double(), torch.arange(50) % 3
    torch.testing.assert_close(
        again(scores, codes), to_torch(RULE)(scores, codes), rtol=0, atol=0, equal_nan=True
    )


def test_rule_joins_an_exported_model(tmp_path):
    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 1)

        def forward(self, x):
            return self.linear(x)

    rule = Rule(("a", "b"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)), scale="logit", cutoff=0.0)
    torch.manual_seed(0)
    own, x = Own().eval(), torch.rand(40, 3)
    path = tmp_path / "own.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter that needs no extra package
        torch.onnx.export(
            own,
            (x,),
            str(path),
            dynamo=False,
            input_names=["x"],
            output_names=["z"],
            dynamic_axes={"x": {0: "rows"}, "z": {0: "rows"}},
        )
    joined = append_to(path, rule, decisions=True)
    groups, u = np.array(["a", "b"] * 20), fairramp.draws(range(40), KEY)
    found = run(joined, x=x.numpy(), group=texts(groups), u=u)
    logits = found["z"][:, 0]
    np.testing.assert_allclose(found["probability"], rule.probabilities(logits, groups), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found["decision"], rule.decide(logits, groups, ids=range(40), key=KEY))


def test_missing_torch_gives_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "fairramp.deploy.torch")
    with pytest.raises(FairrampError, match=r"pip install 'fairramp\[torch\]'"):
        RULE.to_torch()


@pytest.mark.parametrize(("make", "asked"), CASES, ids=NAMED)
def test_mixed_rules_decide_100000_rows_like_numpy(make, asked):
    made = make(**asked)
    module = to_torch(made.rule, decisions=True)
    if make is soft:
        groups = torch.tensor([*made.columns.values()], dtype=torch.float64).T
    else:
        groups = module.codes(made.columns)
        assert groups.shape == (len(made.score), 3)
    inputs = torch.from_numpy(made.score), groups, torch.from_numpy(made.u)
    for form in (module, scripted(module), scripted(module).half()):
        probability, decision = form(*inputs)
        np.testing.assert_allclose(probability.numpy(), made.probability, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(decision.numpy(), made.decision)


def test_group_probabilities_become_a_table_in_the_order_of_the_rule():
    rule = Rule(("m", "f"), (Ramp(0.4, 0.1), Ramp(0.6, 0.1)), membership="probabilities")
    module, q = to_torch(rule), fairramp.GroupProbabilities({"f": [0.9, 0.2], "m": [0.1, 0.8]})
    assert module.codes(q).tolist() == [[0.1, 0.9], [0.8, 0.2]]
    np.testing.assert_allclose(module(torch.full((2,), 0.5), module.codes(q)), rule.probabilities([0.5, 0.5], q))


@pytest.mark.parametrize("make", [soft, each])
def test_tables_of_another_shape_or_type_raise(make):
    module, kind = to_torch(make().rule), torch.float64 if make is soft else torch.int64
    width = 4 if make is soft else 3
    for shape in ((2, width), (3, width + 1), (3,)):
        with pytest.raises(ValueError, match="groups must have one"):
            module(torch.rand(3), torch.zeros(shape, dtype=kind))
    with pytest.raises(ValueError, match="groups must be"):
        module(torch.rand(3), torch.zeros((3, width), dtype=torch.int64 if make is soft else torch.float64))


@pytest.mark.parametrize("make", [soft, each])
def test_program_of_a_mixed_rule_runs(make, tmp_path):
    made = make()
    save(made.rule, tmp_path / "rule.pt2", decisions=True)
    about = {"fairramp.json": ""}
    program = torch.export.load(tmp_path / "rule.pt2", extra_files=about).module()
    rows = made.decidable[:500]
    groups = to_torch(made.rule).codes(made.groups(rows))
    probability, decision = program(torch.from_numpy(made.score[rows]), groups, torch.from_numpy(made.u[rows]))
    np.testing.assert_allclose(probability.numpy(), made.probability[rows], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(decision.numpy(), made.decision[rows])
    assert "one column per" in json.loads(about["fairramp.json"])["inputs"][1]
