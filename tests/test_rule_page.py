"""The published rule format: its schema, its documentation page, and programs written from the page alone."""

import copy
import hashlib
import importlib.resources
import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given

import fairramp
from class_samples import class_people, quiet_class_fit
from fairramp import ClassRule, Ramp, Rule, RuleFormatError, fit_rule
from rules import rules
from samples import sample

ROOT = Path(__file__).parents[1]

SCHEMA = json.loads(
    (importlib.resources.files("fairramp") / "rule" / "rule.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
PAGE = (ROOT / "docs" / "rule-format.md").read_text(encoding="utf-8")
VECTORS = json.loads((ROOT / "docs" / "rule-vectors.json").read_text(encoding="utf-8"))


# The schema -----------------------------------------------------------------------------------


def test_schema_is_valid():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_schema_matches_the_types():
    script = runpy.run_path(str(ROOT / "scripts" / "make_rule_schema.py"))
    stored = importlib.resources.files("fairramp") / "rule" / "rule.schema.json"
    assert stored.read_text(encoding="utf-8") == script["text"](), "run: python scripts/make_rule_schema.py"


@given(rules())
def test_every_hand_written_rule_fits_the_schema(rule):
    VALIDATOR.validate(json.loads(rule.to_json()))


def fitted():
    """Rules with every kind of record."""
    scores, codes = sample(600, n_groups=2)
    groups, logits = np.array(["A", "B"])[codes], np.log(scores / (1 - scores))
    within = {"unit": np.arange(600) % 3}
    widths = Ramp(0.5, 0.0, 0.25), Ramp(0.3, 0.1)
    columns = {"a": groups, "b b": np.arange(600) % 2 == 0}
    return {
        "plain": fit_rule(scores, {"sex": groups}, max_gap=0.02, unseen_group="pooled", date="2024-01-31"),
        "steps": fit_rule(scores, groups, ramp_width=0, unseen_group="original"),
        "weighted": fit_rule(scores, groups, scores > 0.5, sample_weight=scores, target_rate="accuracy"),
        "percent": fit_rule(scores * 100, groups, scale="percent", target_rate=0.3),
        "signed": fit_rule(2 * scores - 1, groups, scale="signed", ramp="paper"),
        "logit": fit_rule(logits, columns, scale="logit", cutoff=-1 / 3),
        "sgd": fit_rule(scores, groups, target_rate=0.4, solver=fairramp.SGD(epochs=2, random_state=0)),
        "strata": fit_rule(scores, groups, strata=within, unseen_group="original"),
        "widths": Rule(("A", "B"), widths, unseen_group="pooled", pooled=Ramp(0.4, 0.05)),
        "odds": fit_rule(scores, groups, scores > 0.4, criterion="equalized_odds"),
        "probabilities": fit_rule(
            scores, fairramp.GroupProbabilities({"A": 0.8 - 0.6 * codes, "B": 0.2 + 0.6 * codes})
        ),
        "each": fit_rule(scores, columns, combine="each", unseen_group="original"),
        "binned": fairramp.fit_summary(fairramp.summarize(scores, groups)),
    } | fitted_classes()


def fitted_classes():
    """Rules for several classes with every kind of record."""
    p, groups, _ = class_people()
    q = np.where(groups == "g0", 0.7, 0.2)
    soft, within = fairramp.GroupProbabilities({"A": q, "B": 1 - q}), {"unit": np.arange(600) % 3}
    by_name = dict(zip(("low", "mid", "high", "top"), p.T, strict=True))
    return {
        "classes": quiet_class_fit(by_name, {"sex": groups}, max_gap=0.02, date="2024-01-31"),
        "class strata": quiet_class_fit(p, groups, strata=within, unseen_group="original"),
        "class probabilities": quiet_class_fit(p, soft, max_gap=0.05, classes=(1, "1", True, "b")),
        "own classes": quiet_class_fit(p, {"a": groups, "b": within["unit"]}, max_gap=1, sample_weight=q),
    }


FITTED = fitted()


@pytest.mark.parametrize("name", FITTED)
def test_every_fitted_rule_fits_the_schema(name):
    VALIDATOR.validate(json.loads(FITTED[name].to_json()))


#: Requirements on the page that only a reader can check, as worded by our reader.
ONLY_THE_READER = (
    "must be distinct",  # labels
    "in order, stratum by stratum",
    "one entry per group",
    "lists of the record have different lengths",
    "of the record exceed its",  # rows above and inside the ramp
    "strata of a rule's record",
    "if there is no",  # a rule has a maximum gap or a minimum ratio
    "exclude each other",  # and not both
    "of a rule's record must be that of its",  # event and criterion
    'either a "target" or an "overall_rate"',
    'must include "selection" and those of its "event"',
    "must have the same positive width",
    "one offset per class",
    "one rate per class",
    "one score per class",  # columns
    r"integer.* got \d+\.0\.$",  # schemas accept these as integers
)
VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    0.5,
    1.5,
    -0.5,
    1e-9,
    1e7,
    101.0,
    800.0,
    10**400,
    "",
    "A",
    "error",
    "pooled",
]
VALUES += [
    "original",
    "logit",
    "parity",
    "sgd",
    [],
    ["A"],
    [["A"]],
    [[["A"]]],
    ["A", "B"],
    [0.5],
    {},
    {"foot": 0.5},
]
VALUES += [{"foot": 0.5, "width": 0, "tie": 0.5}, {"foot": 0.5, "width": 1, "tie": 0.5, "label": "new"}]


def places(content, path=()):
    """Paths to every value in a file."""
    yield path
    inner = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content[:2])
        if isinstance(content, list)
        else ()
    )
    for step, part in inner:
        yield from places(part, (*path, step))


def edits(content):
    """Copies of a file with one value changed, removed or added."""
    for path in places(content):
        for value in VALUES:
            changed = copy.deepcopy([content])
            at = changed
            for step in (0, *path)[:-1]:
                at = at[step]
            at[(0, *path)[-1]] = value
            yield changed[0]
        part = content
        for step in path:
            part = part[step]
        if isinstance(part, dict):
            for name in [*part, None]:
                changed = copy.deepcopy(content)
                at = changed
                for step in path:
                    at = at[step]
                if name is None:
                    at["extra"] = 1
                else:
                    del at[name]
                yield changed


def reader_says(content):
    """Why the library rejects a file, ignoring its checksum; None if it does not."""
    several = isinstance(content, dict) and content.get("format") == "fairramp.class_rule"
    try:
        (ClassRule if several else Rule).from_json(json.dumps(content))
    except RuleFormatError as error:
        return None if "checksum" in str(error) else str(error)
    return None


EDITED = ["plain", "strata", "sgd", "probabilities", "each", "classes", "class strata", "class probabilities"]


@pytest.mark.parametrize("name", [*EDITED, "own classes"])
def test_schema_and_reader_reject_the_same_files_except_as_documented(name):
    counts = {"both": 0, "reader alone": 0, "neither": 0}
    original = json.loads(FITTED[name].to_json())
    for content in edits(original):
        if isinstance(content, dict) and content.get("sha256", original["sha256"]) != original["sha256"]:
            assert not VALIDATOR.is_valid(content)
            continue
        fits, reason = VALIDATOR.is_valid(content), reader_says(content)
        if reason is None:
            assert fits, content
        elif fits:
            assert any(re.search(words, reason) for words in ONLY_THE_READER), (reason, content)
        counts["neither" if reason is None else "reader alone" if fits else "both"] += 1
    assert counts["both"] > 900
    assert counts["reader alone"] < 0.1 * counts["both"]
    assert counts["neither"] > 50


# The page -------------------------------------------------------------------------------------


def code(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


def test_vectors_match_the_library():
    script = runpy.run_path(str(ROOT / "scripts" / "make_rule_vectors.py"))
    assert (ROOT / "docs" / "rule-vectors.json").read_text(encoding="utf-8") == script["text"]()
    for case in [*VECTORS["cases"], *VECTORS["class_cases"]]:
        VALIDATOR.validate(case["rule"])
        signed = {name: value for name, value in case["rule"].items() if name != "sha256"}
        text = json.dumps(signed, sort_keys=True)
        assert case["rule"]["version"] == 2
        assert hashlib.sha256(text.encode()).hexdigest() == case["rule"]["sha256"]  # as described on the page
        kind = ClassRule if "classes" in case["rule"] else Rule
        assert kind.from_json(json.dumps(case["rule"])).fingerprint == case["fingerprint"]


def check_classes(answers):
    """Compare an implementation's chances and decisions between several classes with the vectors."""
    random = 0
    for case, rows in zip(VECTORS["class_cases"], answers, strict=True):
        for row, (chances, decision) in zip(case["rows"], rows, strict=True):
            assert (type(decision), decision) == (type(row["decision"]), row["decision"]), row
            assert chances == row["chances"], row
            random += chances is not None and max(chances) < 1
    assert random > 50


def check(draws, answers):
    """Compare an implementation's draws and decisions with the vectors."""
    assert draws == [vector["u"] for vector in VECTORS["draws"]]
    for case, rows in zip(VECTORS["cases"], answers, strict=True):
        for row, (probability, decision) in zip(case["rows"], rows, strict=True):
            assert decision == row["decision"], row
            exact = case["rule"]["scale"] != "logit" or row["probability"] is None
            expected = row["probability"] if exact else pytest.approx(row["probability"], abs=1e-9)
            assert probability == expected, row


def test_python_on_the_page_gives_the_vectors_without_numpy_or_fairramp():
    source = code("python")
    assert re.findall(r"^\s*(?:import|from) .*", source, re.MULTILINE) == ["import hashlib, math"]
    page = {}
    exec(source, page)
    answers = []
    for case in VECTORS["cases"]:
        chances = [page["probability"](case["rule"], row["score"], row["group"]) for row in case["rows"]]
        pairs = zip(chances, case["rows"], strict=True)
        answers.append([(p, page["decision"](p, case["key"], row["id"])) for p, row in pairs])
    check([page["draw"](vector["key"], vector["id"]) for vector in VECTORS["draws"]], answers)
    answers = []
    for case in VECTORS["class_cases"]:
        found = [page["chances"](case["rule"], row["scores"], row["group"]) for row in case["rows"]]
        pairs = zip(found, case["rows"], strict=True)
        answers.append([(h, page["class_decision"](case["rule"], h, case["key"], row["id"])) for h, row in pairs])
    check_classes(answers)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript_on_the_page_gives_the_vectors(tmp_path):
    runner = """
import { readFileSync } from "node:fs";
const vectors = JSON.parse(readFileSync(process.argv[2], "utf8"));
const draws = vectors.draws.map((v) => draw(v.key, v.id));
const answers = vectors.cases.map((c) => c.rows.map((row) => {
  const p = probability(c.rule, row.score, row.group);
  return [p, decision(p, c.key, row.id)];
}));
const classes = vectors.class_cases.map((c) => c.rows.map((row) => {
  const h = chances(c.rule, row.scores, row.group);
  return [h, classDecision(c.rule, h, c.key, row.id)];
}));
console.log(JSON.stringify({ draws, answers, classes }));
"""
    (tmp_path / "rule.mjs").write_text(code("js") + runner, encoding="utf-8")
    done = subprocess.run(
        ["node", "rule.mjs", str(ROOT / "docs" / "rule-vectors.json")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found = json.loads(done.stdout)
    check_classes(found.pop("classes"))
    check(**found)


def test_draws_printed_on_the_page_are_correct():
    rows = re.findall(r"\| 64 zeros \| `(.+?)` \| `([0-9a-f]{13})…` \| (0\.\d+) \|", PAGE)
    assert len(rows) == 3
    for identifier, digits, u in rows:
        assert float(u) == fairramp.draws([identifier], "0" * 64)[0] == int(digits, 16) / 2**52
