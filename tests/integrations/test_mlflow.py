"""A rule in MLflow decides like Python: loaded, from the registry, and behind MLflow's own server."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fairramp
from fairramp import FairrampError, GroupProbabilities, InputError
from fairramp.mlflow import load_rule, log_rule
from pages import ROOT, blocks, run
from shell import KEY

os.environ |= {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}  # MLflow reads them on import
mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: make test-mlflow")
pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.mlflow

N = 4000
PAGE = ROOT / "docs" / "integrations" / "mlflow.md"
HOSTILE = np.array(["=cmd()", "{{ x }}", "a\nb", "q\"'|", "NA", "1", "", "Ä", None], dtype=object)
NUMBERS = np.array([1, 12, -3, None], dtype=object)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder of a local MLflow without network; the key is not in the environment."""
    folder = tmp_path_factory.mktemp("mlflow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder}/mlflow.db")
        patch.delenv("FAIRRAMP_KEY", raising=False)
        mlflow.set_tracking_uri(os.environ["MLFLOW_TRACKING_URI"])
        mlflow.set_experiment(experiment_id=mlflow.create_experiment("rules", f"file://{folder}/artifacts"))
        yield folder


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("FAIRRAMP_KEY", KEY)


def scores_of(groups, rng):
    """Scores whose distribution depends on the group."""
    codes = np.unique([repr(g) for g in groups], return_inverse=True)[1]
    return np.round(rng.beta(2 + codes % 3, 3), 3)  # with ties


def fitted(kind):
    """A rule, a frame with its columns and ids, the names to log it with, and what Python decides by."""
    rng = np.random.default_rng(7)
    ids = [f"person-{i:07d}" for i in range(N)]
    a, b = rng.choice(HOSTILE, N), rng.choice(NUMBERS, N)
    yes = rng.choice([True, False, None], N)
    p = scores_of(a if kind != "bools" else yes, rng)
    frame = {"who": ids, "p": p, "a": a, "b": b, "yes": yes}
    settings = {"max_gap": 0.02, "ramp_width": 0.2}
    if kind == "classes":
        shares = rng.dirichlet([2, 2, 2], N)
        shares[a == "Ä"] = rng.dirichlet([1, 2, 3], (a == "Ä").sum())
        classes = ["=low", "{{ mid }}", "high\n"]
        rule = fairramp.fit_class_rule(shares, {"a": a}, classes=classes, **settings)
        names = {label: f"s{i}" for i, label in enumerate(classes)}
        frame |= dict(zip(names.values(), shares.T, strict=True))
        return rule, frame, {"class_score": names}, (shares, {"a": a})
    if kind == "probabilities":
        shares = np.array([0.1 + 0.8 * p, 0.9 - 0.8 * p])
        groups = GroupProbabilities({"F": shares[0], "M": shares[1]})
        rule = fairramp.fit_rule(p, groups, **settings)
        columns = {"F": "p_f", "M": "p_m"}
        return (
            rule,
            frame | {"p_f": shares[0], "p_m": shares[1]},
            {"group_probability": columns, "score": "p"},
            (p, groups),
        )
    groups, strata = {"a": a, "b": b}, None
    if kind == "ints":
        groups = {"b": b}
    if kind == "bools":
        groups = {"yes": yes}
    if kind == "each":
        settings["combine"] = "each"
    if kind == "strata":
        groups, strata = {"a": a}, {"yes": yes}
        settings["strata"] = strata
    if kind == "percent":
        p = frame["p"] = np.round(p * 100).astype(np.int64)
        groups, settings["scale"], settings["ramp_width"] = {"a": a}, "percent", 20
    rule = fairramp.fit_rule(p, groups, **settings)
    return rule, frame, {"score": "p"}, (p, groups, *([strata] if strata else []))


KINDS = ["intersections", "ints", "bools", "each", "strata", "percent", "probabilities", "classes"]


def quietly(kind):
    """`fitted`, without its warnings about small groups."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairramp.FairrampWarning)
        return fitted(kind)


def python(rule, given, ids):
    """Probabilities and decisions in Python."""
    strata = {"strata": given[2]} if len(given) > 2 else {}
    return rule.probabilities(*given), rule.decide(*given[:2], **strata, ids=ids, key=KEY)


def new_columns(rule):
    return [f"probability_{c}" for c in rule.classes] if hasattr(rule, "classes") else ["probability"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_model_decides_like_python(kind, folder, key):
    rule, columns, names, given = quietly(kind)
    model = mlflow.pyfunc.load_model(log_rule(rule, **names, id="who").model_uri)
    frame = pd.DataFrame(columns).sample(frac=1, random_state=1)  # another order, with an index
    found = model.predict(frame)
    chances, decisions = python(rule, given, columns["who"])
    assert found.columns.tolist() == [*new_columns(rule), "decision"]
    assert found.index.equals(frame.index)
    found = found.sort_index()
    assert np.array_equal(found[new_columns(rule)].to_numpy().squeeze(), chances)
    assert found["decision"].tolist() == decisions.tolist()
    assert ((chances > 0) & (chances < 1)).sum() > 0  # draws matter


@pytest.mark.parametrize("dtype", ["category", "str", object])
def test_labels_of_any_pandas_type_are_read_alike(dtype, folder, key):
    rule = fairramp.fit_rule([0.1, 0.6, 0.7, 0.9] * 20, {"a": ["=x", "=x", "1", "1"] * 20}, max_gap=0.0)
    frame = pd.DataFrame({"p": [0.1, 0.6, 0.7, 0.9], "a": pd.Series(["=x", "=x", "1", "1"], dtype=dtype)})
    model = mlflow.pyfunc.load_model(log_rule(rule, score="p", id="n").model_uri)
    texts, wholes = (model.predict(frame.assign(n=ids)) for ids in (["1", "2", "3", "4"], [1, 2, 3, 4]))
    assert texts.equals(wholes)
    assert texts["decision"].tolist() == rule.decide(frame["p"], frame["a"], ids=[1, 2, 3, 4], key=KEY).tolist()


@pytest.fixture(scope="module")
def logged(folder):
    """A registered model with everything that can be logged."""
    rng = np.random.default_rng(0)
    rule, columns, names, given = quietly("intersections")
    p, groups = given
    labels = (rng.random(N) < p).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairramp.FairrampWarning)
        audit = fairramp.audit(p, groups, labels, rule=rule)
        report = rule.report(p, groups, labels)
    model = log_rule(
        rule, **names, id="who", audit=audit, report=report, registered_model_name="loans", tags={"team": "risk"}
    )
    mlflow.MlflowClient().set_registered_model_alias("loans", "champion", 1)
    return rule, columns, given, audit, report, model


def files(model):
    """Files of a model, by name."""
    place = Path(mlflow.artifacts.download_artifacts(model.model_uri))
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_the_model_has_the_rule_and_its_evidence(logged, tmp_path):
    rule, _, _, audit, report, model = logged
    found = files(model)
    named = replace(rule, columns=rule.reading(score="p"))
    named.save(tmp_path / "rule.json")
    report.save(tmp_path / "report.html")
    for name in ("rule.json", "report.html"):
        assert found[f"data/rule/{name}"] == (tmp_path / name).read_bytes()
    for name, one in (("certificate", rule.certificate()), ("audit", audit)):
        assert json.loads(found[f"data/rule/{name}.json"]) == json.loads(json.dumps(one.to_dict()))
    for uri in (model.model_uri, "models:/loans/1", "models:/loans@champion"):
        assert load_rule(uri) == named
    assert f"fairramp=={fairramp.__version__}" in found["requirements.txt"].decode().split()


def test_metrics_parameters_and_tags_are_those_of_the_rule(logged):
    rule, _, _, audit, _, model = logged
    stored = mlflow.get_logged_model(model.model_id)
    expected = {
        "gap_before": audit.before.gap,
        "gap_after": audit.after.gap,
        "ratio_after": audit.after.ratio,
        "accuracy_before": audit.before.overall_accuracy,
        "accuracy_after": audit.after.overall_accuracy,
        "decided_at_random": audit.randomized,
        "fit_gap_before": rule.record.gap_before,
        "fit_gap_after": rule.record.gap_after,
        "estimated_limit": rule.certificate().estimated,
        "proven_limit": rule.certificate().proven,
        "confidence": 0.95,
    }
    of_run = mlflow.get_run(model.run_id).data
    of_model = {metric.key: metric.value for metric in stored.metrics}
    for name, value in expected.items():
        assert of_run.metrics[f"fairramp_{name}"] == of_model[f"fairramp_{name}"] == pytest.approx(value)
    assert {"criterion": "parity", "max_gap": "0.02", "ramp_width": "0.2"}.items() <= stored.params.items()
    assert of_run.params == {}
    assert stored.tags["fairramp_rule"] == rule.fingerprint
    assert stored.tags["team"] == "risk"
    assert mlflow.active_run() is None


def test_one_run_can_have_several_rules(folder):
    with mlflow.start_run() as active:
        rules = [
            fairramp.fit_rule([0.1, 0.6, 0.3, 0.8] * 20, {"a": ["x", "y"] * 40}, max_gap=gap, target_rate=0.5)
            for gap in (0.0, 0.5)
        ]
        models = [log_rule(rule, score="p", name=f"rule_{i}") for i, rule in enumerate(rules)]
        assert mlflow.active_run() is not None
    assert {model.run_id for model in models} == {active.info.run_id}
    assert [load_rule(model.model_uri).max_gap for model in models] == [0.0, 0.5]


def test_nothing_is_pickled(logged):
    found = files(logged[-1])
    assert {"MLmodel", "data/rule/rule.json"} <= set(found)
    assert not [
        name for name in found if Path(name).suffix in {".pkl", ".pickle", ".joblib", ".py", ".cloudpickle"}
    ]
    assert not [name for name, content in found.items() if content[:1] == b"\x80"]  # how a pickle starts


def test_ids_without_a_key_are_refused_and_probabilities_need_none(logged):
    rule, columns, given, *_, model = logged
    frame, loaded = pd.DataFrame(columns), mlflow.pyfunc.load_model(model.model_uri)
    found = loaded.predict(frame.drop(columns="who"))
    assert np.array_equal(found["probability"], rule.probabilities(*given))
    assert list(found) == ["probability"]
    with pytest.raises(FairrampError) as error:
        loaded.predict(frame)
    assert str(error.value) == (
        "Rows with ids are decided with a key, and FAIRRAMP_KEY is not set; set it, or leave out the column "
        "'who' to get probabilities alone."
    )


def test_a_wrong_key_stops_the_model_from_loading_and_is_not_shown(logged, monkeypatch):
    monkeypatch.setenv("FAIRRAMP_KEY", KEY[:-1] + "X")
    with pytest.raises(InputError, match="`FAIRRAMP_KEY` must be 64 lowercase hexadecimal characters") as error:
        mlflow.pyfunc.load_model(logged[-1].model_uri)
    assert KEY[:8] not in str(error.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"a": "unknown"}, "unknown"),
        ({"b": 12.5}, "12.5"),
        ({"p": None}, "`scores`"),
        ({"who": 12.0}, "12 and 12.0 would get different draws"),
        ({"who": None}, "give every row a unique id"),
    ],
)
def test_rows_that_python_refuses_are_refused(change, sentence, logged, key):
    frame = pd.DataFrame(logged[1]).head(3).assign(**change)
    with pytest.raises(InputError, match=re.escape(sentence)):
        mlflow.pyfunc.load_model(logged[-1].model_uri).predict(frame)


def test_arguments_that_do_not_fit_the_rule_are_refused(logged):
    rule, _, _, audit, report, _ = logged
    other = fairramp.fit_rule([0.1, 0.6, 0.3, 0.8] * 20, {"a": ["x", "y"] * 40}, target_rate=0.5)
    classes, runs = quietly("classes")[0], len(mlflow.search_runs())
    for arguments, sentence in (
        ({"rule": "rule.json"}, "`rule` must be a fairramp.Rule or fairramp.ClassRule, got 'rule.json'."),
        ({}, "Pass `score`: the rule does not store the name of that column."),
        ({"class_score": {"x": "p"}}, "This rule uses `score` and no `class_score`; remove it."),
        ({"rule": classes, "score": "p"}, "This rule uses `class_score` and no `score`; remove it."),
        ({"score": "p", "id": 3}, "`id` must be a column name, got 3."),
        ({"score": "p", "id": "p"}, "`id` is already read as another column: p."),
        ({"score": "p", "audit": report}, "`audit` must be a fairramp.Audit, got "),
        (
            {"score": "p", "audit": replace(audit, after=None)},
            "`audit` must be made with the rule; pass rule=rule",
        ),
        (
            {"score": "p", "report": report, "rule": other},
            "`report` is about another rule; make it with rule.report.",
        ),
    ):
        with pytest.raises(InputError) as error:
            log_rule(**{"rule": rule} | arguments)
        assert str(error.value).startswith(sentence)
    assert len(mlflow.search_runs()) == runs  # nothing was logged


def test_other_models_have_no_rule(folder):
    model = mlflow.pyfunc.log_model(name="other", loader_module="json", pip_requirements=["mlflow"])
    with pytest.raises(InputError, match="`model_uri` is not a model that fairramp logged"):
        load_rule(model.model_uri)


# The server ------------------------------------------------------------------------------------


class Server:
    """`mlflow models serve`, as the page starts it, on a free port of this machine."""

    def __init__(self, folder):
        self.log = folder / "server.log"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        (command,) = re.findall(r"^mlflow (models serve .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
        words = re.sub(r"--port \d+", f"--port {port}", command).split()
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", *words, "--host", "127.0.0.1"],
                env=os.environ | {"PATH": path, "FAIRRAMP_KEY": KEY},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self):
        for _ in range(600):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/ping", timeout=5):
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.__exit__()
        raise RuntimeError(self.log.read_text())

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGTERM)  # the server and its worker
        self.process.wait(timeout=30)

    def post(self, content, kind="application/json"):
        """Post rows; return the status and the text of the answer."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        request = urllib.request.Request(f"{self.url}/invocations", data, {"Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@pytest.fixture(scope="module")
def server(logged, folder):
    with Server(folder) as server:
        yield server


def posted(columns, rows=slice(None)):
    """Columns as JSON has them."""
    return {name: np.array(values, dtype=object)[rows].tolist() for name, values in columns.items()}


FORMS = {
    "dataframe_split": lambda c: {"columns": list(c), "data": list(zip(*c.values(), strict=True))},
    "dataframe_records": lambda c: [dict(zip(c, row, strict=True)) for row in zip(*c.values(), strict=True)],
    "inputs": lambda c: c,
}


@pytest.mark.parametrize("form", FORMS)
def test_the_server_decides_like_python(form, server, logged):
    rule, columns, given, *_ = logged
    asked = posted({name: columns[name] for name in ("who", "p", "a", "b")})
    status, text = server.post({form: FORMS[form](asked)})
    assert status == 200, text
    found = json.loads(text)["predictions"]
    chances, decisions = python(rule, given, columns["who"])
    assert [row["probability"] for row in found] == chances.tolist()
    assert [row["decision"] for row in found] == decisions.tolist()


def test_the_server_refuses_rows_in_a_sentence_and_logs_no_id(server, logged):
    asked = posted({name: logged[1][name] for name in ("who", "p", "a", "b")}, slice(0, 3))
    for change, sentence in (
        ({"a": ["unknown"] * 3}, "unknown"),
        ({"b": [12.7] * 3}, "12.7"),
        ({"p": [None] * 3}, "`scores`"),
        ({"who": [True] * 3}, "`ids` must be strings or integers"),
    ):
        status, text = server.post({"inputs": asked | change})
        assert status == 400
        assert sentence in json.loads(text)["stack_trace"].splitlines()[-1]
        assert "person-" not in text
    status, text = server.post({"inputs": {name: values for name, values in asked.items() if name != "a"}})
    assert status == 400
    assert "missing inputs ['a']" in text
    status, text = server.post(b"who,p,a,b\nx,0.5,NA,1\n", "text/csv")
    assert status >= 400  # CSV has no types, and pandas would read the group "NA" as missing
    status, text = server.post({"inputs": {name: values for name, values in asked.items() if name != "who"}})
    assert status == 200
    assert list(json.loads(text)["predictions"][0]) == ["probability"]


def test_no_file_contains_the_key_or_an_id(server, logged, folder):
    server.post({"inputs": posted({name: logged[1][name] for name in ("who", "p", "a", "b")})})
    found = [path for path in folder.rglob("*") if path.is_file()]
    assert {"mlflow.db", "server.log", "rule.json"} <= {path.name for path in found}
    for path in found:
        content = path.read_bytes()
        assert KEY.encode() not in content, path
        assert b"person-" not in content, path


# The page --------------------------------------------------------------------------------------


def test_page_code_runs_and_prints_what_the_page_shows(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRRAMP_KEY", "")  # restored after the page sets it
    monkeypatch.delenv("FAIRRAMP_KEY")
    names, shown = {}, 0
    before = mlflow.get_tracking_uri()
    try:
        for block in blocks(PAGE.read_text(encoding="utf-8")):
            printed = run(block, names, tmp_path)
            if block.says is not None:
                shown += 1
                assert printed == block.says, f"line {block.line}"
    finally:
        mlflow.set_tracking_uri(before)
    assert shown > 1
