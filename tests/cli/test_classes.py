"""Classifiers with several classes on the command line: --class-score, and rules that were fitted with it."""

import csv
import io
import json
import re
import shlex
from dataclasses import replace

import duckdb
import numpy as np
import pytest

import fairramp
from class_samples import class_gap, class_people
from shell import KEY, Inside, Shell

CLASSES = ("refuse", "manual review", "grant")
SCORES = ("p_refuse", "p review", "p=grant")
NAMED = {label: name for label, name in zip(CLASSES, SCORES, strict=True)}
CLASS_SCORES = tuple(word for label, name in NAMED.items() for word in ("--class-score", f"{label}={name}"))
COLUMNS = (*CLASS_SCORES, "--group", "sex")
CHANCES = ("--group-probability", "F=p_f", "--group-probability", "M=p_m")
DECIDE = ("--id", "id", "--key-file", "key.txt")
NUMBERS = (*SCORES, "w", "p_f", "p_m")
HEADER = ("id", *SCORES, "sex", "unit", "truth", "w", "p_f", "p_m")
MAX_GAP = 0.05


def people(n=600, classes=CLASSES, seed=4):
    """Rows as text, by column; the scores of each row sum to 1."""
    scores, groups, labels = class_people(n, len(classes), 2, seed)
    scores = np.round(scores, 4)
    scores[:, 0] = 1 - scores[:, 1:].sum(axis=1)
    rng = np.random.default_rng(seed)
    woman = groups == "g0"
    chance = rng.beta(np.where(woman, 5, 1), np.where(woman, 1, 5)).round(4)
    return {
        "id": [f"i{i:04d}" for i in range(n)],
        **{name: [f"{abs(p):.4f}" for p in column] for name, column in zip(SCORES, scores.T, strict=True)},
        "sex": np.where(woman, "F", "M").tolist(),
        "unit": np.where(rng.random(n) < 0.5, "N", "S").tolist(),
        "truth": [classes[i] for i in labels],
        "w": [str(1 + i % 3) for i in range(n)],
        "p_f": [f"{q:.4f}" for q in chance],
        "p_m": [f"{1 - q:.4f}" for q in chance],
    }


def written(data, delimiter=",", comma=False):
    """Rows as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(data)
    for row in zip(*data.values(), strict=True):
        cells = zip(data, row, strict=True)
        writer.writerow([c.replace(".", ",") if comma and name in NUMBERS else c for name, c in cells])
    return out.getvalue()


def table(text, delimiter=","):
    """CSV as lists of text by column."""
    rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
    return {name: [row[name] for row in rows] for name in rows[0]}


def floats(values):
    return np.array([float(value.replace(",", ".")) for value in values])


def scores_of(data):
    """Scores by class."""
    return {label: floats(data[name]) for label, name in NAMED.items()}


def arrays(data, *, labels=True, weights=False, strata=False):
    """Arguments of the library's functions for the same rows."""
    found = {"probabilities": scores_of(data), "groups": {"sex": data["sex"]}}
    found |= {"labels": data["truth"]} if labels else {}
    found |= {"sample_weight": floats(data["w"])} if weights else {}
    return found | ({"strata": {"unit": data["unit"]}} if strata else {})


@pytest.fixture(scope="module")
def data():
    return people()


@pytest.fixture
def shell(tmp_path, data):
    """A folder with rows and a key."""
    shell = Inside(tmp_path)
    shell.write("s.csv", written(data))
    shell.write("key.txt", KEY + "\n")
    (shell.folder / "key.txt").chmod(0o600)
    return shell


def fitted(shell, *options, columns=COLUMNS, file="s.csv"):
    shell("fit", file, *columns, "--max-gap", MAX_GAP, *options, "-o", "rule.json", "-q")
    return fairramp.ClassRule.load(shell.folder / "rule.json")


def answer(shell, *arguments, **options):
    return json.loads(shell(*arguments, "--json", **options).stdout)


def chances_in(found, prefix="probability_"):
    return np.stack([floats(found[f"{prefix}{label}"]) for label in CLASSES], axis=1)


def same(one, other):
    """Equal JSON, numbers up to rounding."""
    if isinstance(one, dict) or isinstance(other, dict):
        assert one.keys() == other.keys()
        for name, value in one.items():
            same(value, other[name])
    elif isinstance(one, list) and isinstance(other, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(one, float) or isinstance(other, float):
        assert one == pytest.approx(other, abs=1e-9)
    else:
        assert one == other


# Fits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "extra"),
    [((), {}), (("--weight", "w"), {"weights": True}), (("--strata", "unit"), {"strata": True})],
    ids=["plain", "weights", "strata"],
)
def test_a_fit_is_that_of_the_library(shell, data, options, extra):
    rule = fitted(shell, *options)
    named = {"class_score": NAMED, "group": "sex"}
    named |= {"weight": "w"} if extra.get("weights") else {}
    named |= {"strata": "unit"} if extra.get("strata") else {}
    numbers = {name: floats(values) if name in NUMBERS else np.array(values) for name, values in data.items()}
    framed = fairramp.fit_frame(numbers_frame(numbers), **named, max_gap=MAX_GAP)
    framed.save(shell.folder / "same.json")
    # Sums in another order differ in their last digits, and so do the offsets and the checksum.
    one, other = (json.loads(shell.read(name)) for name in ("rule.json", "same.json"))
    same(one | {"sha256": ""}, other | {"sha256": ""})
    direct = fairramp.fit_class_rule(**arrays(data, labels=False, **extra), max_gap=MAX_GAP)
    np.testing.assert_allclose(rule.offsets, direct.offsets, atol=1e-9)
    assert (rule.classes, rule.groups, rule.record.fingerprint) == (
        direct.classes,
        direct.groups,
        direct.record.fingerprint,
    )
    assert rule.columns.class_scores == SCORES


def numbers_frame(columns):
    """A table in memory."""
    import polars as pl

    return pl.DataFrame(columns)


@pytest.mark.filterwarnings("ignore:The group probabilities are poor:fairramp.FairrampWarning")
def test_a_fit_by_group_probabilities_is_that_of_the_library(shell, data):
    rule = fitted(shell, columns=(*CLASS_SCORES, *CHANCES))
    chances = fairramp.GroupProbabilities({"F": floats(data["p_f"]), "M": floats(data["p_m"])})
    direct = fairramp.fit_class_rule(scores_of(data), chances, max_gap=MAX_GAP)
    assert (rule.membership, rule.groups) == ("probabilities", ("F", "M"))
    np.testing.assert_allclose(rule.offsets, direct.offsets, atol=1e-9)
    shell("apply", "rule.json", "s.csv", *DECIDE, "-o", "out.csv")
    made = table(shell.read("out.csv"))
    np.testing.assert_allclose(chances_in(made), direct.probabilities(scores_of(data), chances), atol=1e-9)
    assert made["decision"] == rule.decide(scores_of(data), chances, ids=data["id"], key=KEY).tolist()
    told = shell.error("audit", "s.csv", "--rule", "rule.json")
    assert told.startswith("--group is missing: pass the column with the true groups")
    content = answer(shell, "audit", "s.csv", "--rule", "rule.json", "--group", "sex")
    found = fairramp.audit_classes(scores_of(data), data["sex"], rule=rule, group_probabilities=chances)
    same(content["after"], found.to_dict()["after"])
    # The calibration error depends on the order of rows with equal probabilities.
    models = (one["group_model"] | {"calibration_error": None} for one in (content, found.to_dict()))
    same(*models)
    checked = answer(shell, "check", "rule.json", "s.csv", "--group", "sex")
    own = rule.check(scores_of(data), data["sex"], group_probabilities=chances).to_dict()
    same({name: checked[name] for name in own}, own)


@pytest.mark.parametrize("weights", [False, True])
def test_a_fit_says_what_the_library_measures(shell, data, weights):
    options = ("--label", "truth", *(("--weight", "w") if weights else ()))
    content = answer(shell, "fit", "s.csv", *COLUMNS, "--max-gap", MAX_GAP, *options, "-o", "rule.json")
    rule = fairramp.ClassRule.load(shell.folder / "rule.json")
    found = fairramp.audit_classes(**arrays(data, weights=weights), rule=rule)
    assert content["accuracy_before"] == pytest.approx(found.accuracy_before, abs=1e-12)
    assert content["accuracy_after"] == pytest.approx(found.accuracy_after, abs=1e-12)
    assert content["gap_before"] == pytest.approx(found.gap_before, abs=1e-9)
    assert content["gap_after"] == pytest.approx(found.gap_after, abs=1e-9)
    assert content["gap_before"] > 0.2
    assert content["gap_after"] == pytest.approx(MAX_GAP, abs=1e-9)
    assert content["rule_fingerprint"] == rule.fingerprint
    assert content["classes"] == list(CLASSES)
    same(content["groups"], [dict(row) for row in rule.table().rows()])
    text = shell("fit", "s.csv", *COLUMNS, "--max-gap", MAX_GAP, *options, "-o", "two.json").stdout
    before, after = (f"{100 * content[f'accuracy_{when}']:.1f}%" for when in ("before", "after"))
    assert f"Accuracy on these rows: {before} before, {after} after." in text
    assert str(rule.table()) in text


@pytest.mark.parametrize("options", [(), ("--label", "truth"), ("--delimiter", ";", "--decimal", ",")])
def test_commands_that_a_fit_suggests_run(shell, data, options):
    shell.write("my scores.csv", written(data, ";", comma=True) if "--decimal" in options else written(data))
    text = shell("fit", "my scores.csv", *COLUMNS, *options, "-o", "my rule.json").stdout
    (shell.folder / "key.txt").unlink()
    lines = re.findall(r"^  fairramp (.+)$", text.replace(" \\\n", ""), re.MULTILINE)
    commands = [shlex.split(line) for line in lines]
    assert [command[0] for command in commands] == ["audit", "keygen", "apply"]
    for command in commands:
        shell(*({"NEW_DATA": "my scores.csv", "ID": "id"}.get(word, word) for word in command))
    assert {"key.txt", "decisions.csv"} <= {*shell.files()}


def test_a_rule_in_use_is_kept(shell):
    rule = fitted(shell)
    before = shell.read("rule.json")
    assert "--replace" in shell.error("fit", "s.csv", *COLUMNS, "-o", "rule.json")
    assert shell.read("rule.json") == before
    told = shell("fit", "s.csv", *COLUMNS, "-o", "rule.json", "--replace").stderr
    assert rule.fingerprint in told
    assert shell.read("rule.json") != before


# Decisions ---------------------------------------------------------------------------------------


def test_apply_decides_as_the_library(shell, data):
    rule = fitted(shell)
    content = answer(shell, "apply", "rule.json", "s.csv", *DECIDE, "-o", "out.csv")
    made, chances = table(shell.read("out.csv")), rule.probabilities(scores_of(data), data["sex"])
    assert {name: made[name] for name in HEADER} == data
    assert list(made)[len(HEADER) :] == [*(f"probability_{label}" for label in CLASSES), "decision"]
    assert content["columns"] == list(made)[len(HEADER) :]
    np.testing.assert_allclose(chances_in(made), chances, atol=1e-9)
    decided = rule.decide(scores_of(data), data["sex"], ids=data["id"], key=KEY)
    assert made["decision"] == decided.tolist()
    assert (chances.max(axis=1) < 1).any()
    sex = np.array(data["sex"])
    counts = iter(content["groups"])
    for c, label in enumerate(CLASSES):
        for group in "FM":
            row, of = next(counts), sex == group
            assert (row["class"], row["group"], row["rows"]) == (label, group, of.sum())
            assert row["expected_rate"] == pytest.approx(chances[of, c].mean(), abs=1e-12)
            assert row["decided"] == (decided[of] == label).sum()


@pytest.mark.parametrize("kind", ["out.parquet", "out.jsonl", "out.tsv", "-"])
def test_all_outputs_have_the_same_decisions(shell, kind):
    fitted(shell)
    shell("apply", "rule.json", "s.csv", *DECIDE, "-o", "out.csv")
    expected = table(shell.read("out.csv"))
    done = shell("apply", "rule.json", "s.csv", *DECIDE, "-o", kind)
    if kind == "-":
        assert done.stdout == shell.read("out.csv")
        assert "Saved to stdout" in done.stderr
        return
    made = duckdb.sql(f"SELECT * FROM '{shell.folder / kind}'").fetchnumpy()
    assert made["decision"].tolist() == expected["decision"]
    for label in CLASSES:
        values = np.array(made[f"probability_{label}"], dtype=float)
        np.testing.assert_allclose(values, floats(expected[f"probability_{label}"]), atol=1e-12)
    again = ("apply", "rule.json", kind, "--prefix", "new_", *DECIDE, "-o", "again.csv")
    shell(*again)
    assert table(shell.read("again.csv"))["new_decision"] == expected["decision"]


def test_decimal_commas_and_semicolons(shell, data):
    shell.write("de.csv", written(data, ";", comma=True))
    rule = fitted(shell, file="de.csv")
    shell("fit", "s.csv", *COLUMNS, "--max-gap", MAX_GAP, "-o", "other.json", "-q")
    assert rule == fairramp.ClassRule.load(shell.folder / "other.json")
    shell("apply", "rule.json", "de.csv", *DECIDE, "-o", "de-out.csv")
    shell("apply", "rule.json", "s.csv", *DECIDE, "-o", "out.csv")
    german, english = table(shell.read("de-out.csv"), ";"), table(shell.read("out.csv"))
    assert german["p_refuse"] == [p.replace(".", ",") for p in english["p_refuse"]]
    np.testing.assert_array_equal(chances_in(german), chances_in(english))
    assert german["decision"] == english["decision"]


def test_stdin_and_folders(shell, data):
    fitted(shell)
    shell("apply", "rule.json", "s.csv", *DECIDE, "-o", "out.csv")
    text = shell("apply", "rule.json", "-", *DECIDE, "-o", "-", stdin=shell.read("s.csv").encode()).stdout
    assert text == shell.read("out.csv")
    (shell.folder / "parts").mkdir()
    head, *lines = shell.read("s.csv").splitlines(keepends=True)
    for i in range(3):
        shell.write(f"parts/{i}.csv", head + "".join(lines[200 * i : 200 * (i + 1)]))
    shell("apply", "rule.json", "parts", *DECIDE, "-o", "all.csv")
    assert shell.read("all.csv") == shell.read("out.csv")
    whole = answer(shell, "audit", "s.csv", *COLUMNS, "--label", "truth")
    split = answer(shell, "audit", "parts", *COLUMNS, "--label", "truth")
    same(whole | {"data": ""}, split | {"data": ""})


def test_a_large_file_is_decided_like_its_parts(shell, data):
    fitted(shell)
    shell("apply", "rule.json", "s.csv", *DECIDE, "-o", "out.csv")
    lines = shell.read("s.csv").splitlines(keepends=True)
    shell.write("many.csv", lines[0] + "".join(lines[1:]) * 300)  # more than one block of any engine
    done = shell("apply", "rule.json", "many.csv", *DECIDE, "-o", "many-out.csv")
    made = shell.read("out.csv").splitlines(keepends=True)
    assert shell.read("many-out.csv") == made[0] + "".join(made[1:]) * 300
    chances = chances_in(table(shell.read("out.csv")))
    unsure = int((chances.max(axis=1) < 1).sum())
    assert f"warning: {299 * unsure:,} rows on a ramp repeat the id of another row" in done.stderr


def test_seeds_draw_by_row(shell):
    fitted(shell)
    for name, seed in (("a.csv", 1), ("b.csv", 1), ("c.csv", 2)):
        text = shell("apply", "rule.json", "s.csv", "-o", name, "--random-seed", seed).stdout
        assert "Decisions depend on the row number" in text
    assert shell.read("a.csv") == shell.read("b.csv") != shell.read("c.csv")
    one, other = table(shell.read("a.csv")), table(shell.read("c.csv"))
    sure = chances_in(one).max(axis=1) == 1
    np.testing.assert_array_equal(np.array(one["decision"])[sure], np.array(other["decision"])[sure])
    assert "repeat" not in shell("apply", "rule.json", "s.csv", "-o", "d.csv", "--random-seed", 1).stderr


def test_without_a_key_there_are_only_chances(shell):
    fitted(shell)
    text = shell("apply", "rule.json", "s.csv", "-o", "a.csv").stdout
    assert "No decisions were made" in text
    asked = shell("apply", "rule.json", "s.csv", "-o", "b.csv", "--probability-only").stdout
    assert "No decisions" not in asked
    added = "Added probability_refuse, probability_manual review and probability_grant to 600 rows. "
    assert " ".join(asked.split()).startswith(added)
    assert shell.read("a.csv") == shell.read("b.csv")
    assert "decision" not in table(shell.read("a.csv"))


def test_other_columns_may_hold_the_scores(shell):
    fitted(shell)
    shell("apply", "rule.json", "s.csv", *DECIDE, "-o", "a.csv")
    head, rest = shell.read("s.csv").split("\n", 1)
    shell.write(
        "t.csv", head.replace("p_refuse,p review,p=grant", "x,y,z").replace("sex", "gender") + "\n" + rest
    )
    renamed = ("--class-score", "grant=z", "--class-score", "refuse=x", "--class-score", "manual review=y")
    shell("apply", "rule.json", "t.csv", *renamed, "--group", "gender", *DECIDE, "-o", "b.csv")
    assert table(shell.read("a.csv"))["decision"] == table(shell.read("b.csv"))["decision"]
    assert "no column 'p_refuse'" in shell.error("apply", "rule.json", "t.csv", "-o", "c.csv")


def test_new_columns_must_be_new(shell):
    fitted(shell)
    shell("apply", "rule.json", "s.csv", "-o", "a.csv")
    assert "--prefix" in shell.error("apply", "rule.json", "a.csv", "-o", "b.csv")
    shell("apply", "rule.json", "a.csv", "-o", "b.csv", "--prefix", "new_")
    found = table(shell.read("b.csv"))
    np.testing.assert_array_equal(chances_in(found), chances_in(found, "new_probability_"))


def test_a_header_without_rows(shell):
    fitted(shell)
    shell.write("none.csv", shell.read("s.csv").split("\n")[0] + "\n")
    done = shell("apply", "rule.json", "none.csv", *DECIDE, "-o", "out.csv")
    assert "has a header but no rows" in done.stderr
    head, rest = shell.read("out.csv").split("\n", 1)
    assert (head.split(",")[-1], rest) == ("decision", "")
    assert "none.csv" in shell.error("fit", "none.csv", *COLUMNS, "-o", "other.json")


def test_groups_not_in_the_fit(shell):
    fitted(shell)
    shell.write("new.csv", shell.read("s.csv").replace(",F,", ",X,"))
    for command in (
        ("apply", "rule.json", "new.csv", "-o", "out.csv"),
        ("audit", "new.csv", "--rule", "rule.json"),
    ):
        told = shell.error(*command)
        assert told.startswith("Groups not in the fit rows: X (")
        assert "--unseen-group original" in told
    assert "out.csv" not in shell.files()
    shell("fit", "s.csv", *COLUMNS, "--unseen-group", "original", "-o", "keeps.json", "-q")
    shell("apply", "keeps.json", "new.csv", "-o", "out.csv")
    made = table(shell.read("out.csv"))
    own = np.stack([floats(made[name]) for name in SCORES], axis=1)
    unseen = np.array(made["sex"]) == "X"
    np.testing.assert_array_equal(chances_in(made)[unseen], np.eye(3)[own.argmax(axis=1)][unseen])


# Measuring ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ruled", [False, True])
@pytest.mark.parametrize(
    ("options", "extra"),
    [
        (("--label", "truth"), {}),
        ((), {"labels": False}),
        (("--label", "truth", "--weight", "w"), {"weights": True}),
        (("--label", "truth", "--strata", "unit"), {"strata": True}),
    ],
    ids=["labels", "no labels", "weights", "strata"],
)
def test_an_audit_is_that_of_the_library(shell, data, ruled, options, extra):
    rule = fitted(shell, *(("--strata", "unit") if "strata" in extra else ())) if ruled else None
    columns = ("--rule", "rule.json") if ruled else COLUMNS
    content = answer(shell, "audit", "s.csv", *columns, *options)
    found = fairramp.audit_classes(**arrays(data, **extra), rule=rule)
    expected = json.loads(json.dumps(found.to_dict()))
    same({name: content[name] for name in expected}, expected)
    assert (content["command"], content["gate"]) == ("audit", None)
    printed = shell("audit", "s.csv", *columns, *options).stdout
    for shown in (found.table(), found.gaps()):
        assert shown.text(80) in printed
    if "labels" not in extra:
        assert found.confusion().text(80) in printed


def test_the_audit_is_what_the_decisions_are(shell, data):
    fitted(shell)
    shell("apply", "rule.json", "s.csv", "-o", "out.csv")
    chances = chances_in(table(shell.read("out.csv")))
    content = answer(shell, "audit", "s.csv", "--rule", "rule.json", "--label", "truth")
    assert content["after"]["gap"] == pytest.approx(class_gap(chances, data["sex"]), abs=1e-9)
    right = chances[np.arange(600), [CLASSES.index(label) for label in data["truth"]]]
    assert content["after"]["overall_accuracy"] == pytest.approx(right.mean(), abs=1e-9)


@pytest.mark.parametrize(
    ("option", "limit", "code"),
    [
        ("--fail-above", 0.99, 0),
        ("--fail-above", 0.0, 1),
        ("--fail-above", "inside", 0),
        ("--fail-unless-below", 0.99, 0),
        ("--fail-unless-below", 0.0, 1),
        ("--fail-unless-below", "inside", 3),
        ("--fail-below-ratio", 0.001, 0),
        ("--fail-below-ratio", 1.0, 1),
        ("--fail-unless-ratio", 0.001, 0),
        ("--fail-unless-ratio", 1.0, 1),
    ],
)
def test_gates(shell, option, limit, code):
    if limit == "inside":
        low, high = answer(shell, "audit", "s.csv", *COLUMNS)["before"]["gap_interval"]
        limit = (low + high) / 2
    text = shell("audit", "s.csv", *COLUMNS, option, limit, code=code).stdout
    assert ("Gate passed", "Gate failed", "", "Gate undecided")[code] in text or (
        option == "--fail-above" and "Gate undecided" in text
    )
    gate = answer(shell, "audit", "s.csv", *COLUMNS, option, limit, code=code)["gate"]
    assert gate["failed"] == bool(code)
    quiet = shell("audit", "s.csv", *COLUMNS, option, limit, "-q", code=code)
    assert (quiet.stdout, bool(quiet.stderr)) == ("", bool(code))


@pytest.mark.parametrize(
    "option", ["--fail-above", "--fail-unless-below", "--fail-below-ratio", "--fail-unless-ratio"]
)
@pytest.mark.parametrize("limit", ["nan", "inf", "-1", "x", ""])
def test_limits_that_are_no_numbers_never_pass(shell, option, limit):
    assert shell.error("audit", "s.csv", *COLUMNS, f"{option}={limit}").startswith(option)


def test_gates_that_cannot_be_judged_are_undecided(shell, data):
    only = {
        name: [v for v, sex in zip(values, data["sex"], strict=True) if sex == "F"]
        for name, values in data.items()
    }
    shell.write("one.csv", written(only))
    text = shell("audit", "one.csv", *COLUMNS, "--fail-unless-below", 0.99, code=3).stdout
    assert "undecided" in text


def test_a_check_is_that_of_the_library(shell, data):
    rule = fitted(shell)
    content = answer(shell, "check", "rule.json", "s.csv")
    found = rule.check(scores_of(data), {"sex": data["sex"]})
    expected = json.loads(json.dumps(found.to_dict()))
    same({name: content[name] for name in expected}, expected)
    text = shell("check", "rule.json", "s.csv").stdout
    assert f"Check {found.verdict.word}. " in text
    moved = data | {SCORES[0]: data[SCORES[2]], SCORES[2]: data[SCORES[0]]}
    shell.write("moved.csv", written(moved))
    text = shell("check", "rule.json", "moved.csv", code=1).stdout
    assert "Check failed" in text


def test_a_frontier_is_that_of_the_library(shell, data):
    columns = ("frontier", "s.csv", *COLUMNS, "--label", "truth", "--weight", "w")
    gaps = ("--max-gap", "0", "--max-gap", "0.1")
    text = shell(*columns, *gaps, "-o", "f.csv").stdout
    curve = fairramp.class_frontier(**arrays(data, weights=True), max_gaps=[0, 0.1])
    made = table(shell.read("f.csv"))
    assert floats(made["max_gap"]).tolist() == [0, 0.1]
    np.testing.assert_allclose(floats(made["accuracy"]), curve.accuracies, atol=1e-9)
    assert curve.heading in text
    assert text.endswith("\nSaved to f.csv.\n")
    content = answer(shell, *columns, *gaps, "--validation", "s.csv")
    assert (content["in_sample"], content["output"]) == (False, None)
    assert content["own_accuracy"] == pytest.approx(curve.own_accuracy, abs=1e-12)
    assert not shell(*columns, *gaps).stdout.endswith("\n\n")
    shell(*columns, *gaps, "-o", "f.svg", "-q")
    assert shell.read("f.svg").startswith("<svg")
    assert shell.error(*columns, "--max-gap", "nan").startswith("--max-gap must be between 0 and 1, got nan")


def test_show_says_what_the_rule_is(shell):
    rule = fitted(shell)
    text = shell("show", "rule.json").stdout
    assert str(rule.table()) in text
    assert rule.fingerprint in text
    content = answer(shell, "show", "rule.json")
    stored = json.loads(shell.read("rule.json"))
    same(
        {name: content[name] for name in ("classes", "groups", "max_gap")},
        {name: stored[name] for name in ("classes", "groups", "max_gap")},
    )
    assert content["rule_fingerprint"] == rule.fingerprint


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((*COLUMNS, "--class-score", "refuse=w"), "--class-score names the class 'refuse' twice"),
        (("--class-score", "a=p_f", "--group", "sex"), "There must be at least two classes, got ['a']"),
        (
            ("--class-score", "a", "--group", "sex"),
            "--class-score must be CLASS=COLUMN, such as low=p_low, got 'a'",
        ),
        (("--class-score", "a=", "--group", "sex"), "--class-score must be CLASS=COLUMN, such as low=p_low"),
        (
            ("--class-score", "a=p_f", "--class-score", "b=p_f", "--group", "sex"),
            "--class-score names the same column twice",
        ),
        (
            ("--class-score", "a=p_f", "--class-score", "b=nothing", "--group", "sex"),
            "s.csv has no column 'nothing' (--class-score)",
        ),
        (
            ("--class-score", "a=b=p_f", "--class-score", "c=p_m", "--group", "sex"),
            "s.csv has no column 'b=p_f' (--class-score)",
        ),
        ((*CLASS_SCORES, "--group", "p review"), "--class-score 'p review' is also a column of groups"),
        (CLASS_SCORES, "--group is missing"),
        ((*COLUMNS, *CHANCES), "Pass either --group or --group-probability to fit"),
        ((*CLASS_SCORES, *CHANCES, "--strata", "unit"), "Group probabilities do not support --strata"),
        ((*COLUMNS, "--score", "p_f"), "Several classes do not support --score; remove it"),
        ((*COLUMNS, "--positive", "grant"), "Several classes do not support --positive; remove it"),
        ((*COLUMNS, "--criterion", "equal_opportunity"), "does not support --criterion equal_opportunity"),
        ((*COLUMNS, "--min-ratio", "0.8"), "A rule for several classes does not support --min-ratio"),
        ((*COLUMNS, "--target-rate", "accuracy"), "A rule for several classes does not support --target-rate"),
        ((*COLUMNS, "--lower-is-better"), "A rule for several classes does not support --lower-is-better"),
        ((*COLUMNS, "--max-gap", "nan"), "--max-gap must be between 0 and 1, got nan"),
        ((*COLUMNS, "--max-gap", "2"), "--max-gap must be between 0 and 1, got 2.0"),
        ((*COLUMNS, "--ramp-width", "0"), "--ramp-width must be between 1e-6 and 1e6"),
        ((*COLUMNS, "--label", "unit"), "--label 'unit' in s.csv is none of the classes (refuse"),
        ((*COLUMNS, "--label", "nothing"), "s.csv has no column 'nothing' (--label)"),
    ],
)
def test_fits_that_are_refused(shell, options, told):
    before = shell.files()
    assert told in shell.error("fit", "s.csv", *options, "-o", "rule.json")
    assert shell.files() == before


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        (SCORES[0], "?", "'p_refuse' in bad.csv is not a number between 0 and 1 in 1 row: '?' in line 4"),
        (SCORES[1], "", "'p review' in bad.csv is missing in 1 row: empty in line 4"),
        (SCORES[1], "NaN", "in 1 row: 'NaN' in line 4"),
        (
            SCORES[2],
            "-0.1",
            "'p=grant' in bad.csv is not a number between 0 and 1 in 1 row: '-0.1' in line 4",
        ),
        (
            SCORES[2],
            "1.5",
            "'p=grant' in bad.csv is not a number between 0 and 1 in 1 row: '1.5' in line 4",
        ),
        (SCORES[0], "0.98765", "'p=grant' in bad.csv must sum to 1 but do not in 1 row: "),
        (
            "truth",
            "",
            "--label 'truth' in bad.csv is missing in 1 row: empty",
        ),
        ("truth", "Grant", "is none of the classes (refuse, manual review, grant) in 1 row: 'Grant' in line 4"),
    ],
)
def test_bad_cells_are_named_and_nothing_is_written(shell, data, column, value, told):
    shell.write("bad.csv", written(data | {column: [*data[column][:2], value, *data[column][3:]]}))
    fitted(shell)
    shell.write("out.csv", "the old output\n")
    before = {name: shell.read(name) for name in shell.files()}
    labeled = ("--label", "truth")
    assert told in shell.error("fit", "bad.csv", *COLUMNS, *labeled, "-o", "rule.json", "--replace")
    assert told in shell.error("audit", "bad.csv", "--rule", "rule.json", *labeled)
    assert told in shell.error("frontier", "bad.csv", *COLUMNS, *labeled, "-o", "out.csv")
    if column != "truth":
        assert told in shell.error("apply", "rule.json", "bad.csv", *DECIDE, "-o", "out.csv")
        assert told in shell.error("check", "rule.json", "bad.csv")
    assert {name: shell.read(name) for name in shell.files()} == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("apply", "rule.json", "s.csv", "--class-score", "refuse=w", "-o", "x.csv"),
            "must name the columns of the",
        ),
        (
            ("apply", "rule.json", "s.csv", "--score", "w", "-o", "x.csv"),
            "Several classes do not support --score",
        ),
        (("apply", "rule.json", "s.csv", "--strata", "unit", "-o", "x.csv"), "strata"),
        (
            ("apply", "rule.json", "s.csv", *CHANCES, "-o", "x.csv"),
            "This rule uses --group and no --group-probability",
        ),
        (("apply", "rule.json", "s.csv", "-o", "rule.json"), "rule"),
        (
            ("audit", "s.csv", "--rule", "rule.json", "--criterion", "equal_opportunity"),
            "Several classes do not support --criterion; remove it",
        ),
        (("audit", "s.csv", "--rule", "rule.json", "--cutoff", "0"), "Several classes do not support --cutoff"),
        (("audit", "s.csv", *COLUMNS, *CHANCES), "--group-probability needs --rule"),
        (("audit", "s.csv", *COLUMNS, "--score", "w"), "Several classes do not support --score"),
        (("audit", "s.csv", *CLASS_SCORES), "--group is missing: pass the column with the groups"),
        (
            ("frontier", "s.csv", *COLUMNS, "--label", "truth", "--lower-is-better"),
            "Several classes do not support --lower-is-better",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(shell, arguments, told):
    fitted(shell)
    before = {name: shell.read(name) for name in shell.files()}
    assert told in shell.error(*arguments)
    assert {name: shell.read(name) for name in shell.files()} == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "rule.json", "--score", "0.5", "--group", "F"),
        ("monitor", "rule.json", "s.csv", "--state", "state.json"),
    ],
)
def test_commands_for_two_classes_refuse_the_rule(shell, arguments):
    fitted(shell)
    before = shell.files()
    told = shell.error(*arguments)
    assert told.startswith("rule.json is a rule for several classes, which this command does not support; ")
    assert shell.files() == before


def test_rules_for_two_classes_refuse_class_scores(shell):
    shell("fit", "s.csv", "--score", "p_f", "--group", "sex", "-o", "two.json", "-q")
    for command in (("apply", "two.json", "s.csv", "-o", "x.csv"), ("audit", "s.csv", "--rule", "two.json")):
        assert "remove --class-score" in shell.error(*command, *CLASS_SCORES)
    told = shell.error("select", "s.csv", "--score", "p_f", *COLUMNS, "--places", "3", "-o", "x.csv")
    assert told.startswith("Unknown option: --class-score")


# Labels ------------------------------------------------------------------------------------------

ODD = ("<b>bold</b>", '=cmd("x")', 'two\nlines, "quoted" \x1b[31m')


def test_odd_labels_are_only_text(shell):
    data = people(classes=ODD)
    shell.write("odd.csv", written(data))
    # A class ends at the first equals sign of an option; a rule fitted in Python may have one with such a sign.
    labels = (ODD[0], "cmd", ODD[2])
    named = tuple(
        w for label, name in zip(labels, SCORES, strict=True) for w in ("--class-score", f"{label}={name}")
    )
    text = shell("fit", "odd.csv", *named, "--group", "sex", "-o", "plain.json").stdout
    plain = fairramp.ClassRule.load(shell.folder / "plain.json")
    replace(plain, classes=ODD).save(shell.folder / "rule.json")
    rule = fairramp.ClassRule.load(shell.folder / "rule.json")
    assert rule.classes == ODD
    done = shell("apply", "rule.json", "odd.csv", *DECIDE, "-o", "out.csv").stdout
    made = table(shell.read("out.csv"))
    assert list(made)[-4:] == [*(f"probability_{show}" for show in map(fairramp_shown, ODD)), "decision"]
    probabilities = dict(zip(ODD, (floats(data[name]) for name in SCORES), strict=True))
    decided = rule.decide(probabilities, data["sex"], ids=data["id"], key=KEY).tolist()
    assert made["decision"] == decided
    assert set(decided) == set(ODD)
    shown = shell("show", "rule.json").stdout
    audit = shell("audit", "odd.csv", "--rule", "rule.json", "--label", "truth").stdout
    checked = shell("check", "rule.json", "odd.csv").stdout
    for printed in (text, done, shown, audit, checked):
        assert "\x1b" not in printed
        assert max(map(len, printed.split("\n"))) <= 80
    content = answer(shell, "audit", "odd.csv", "--rule", "rule.json", "--label", "truth")
    assert content["classes"] == list(ODD)


def fairramp_shown(label):
    """How a label is spelled in the name of a column."""
    from fairramp.core.labels import label_text

    return label_text(label)


def test_classes_that_are_numbers_match_the_labels(shell):
    shell.write("n.csv", written(people(classes=("0", "1", "10"))))
    named = tuple(
        w for c, name in zip(("0", "1", "10"), SCORES, strict=True) for w in ("--class-score", f"{c}={name}")
    )
    content = answer(shell, "fit", "n.csv", *named, "--group", "sex", "--label", "truth", "-o", "rule.json")
    assert content["accuracy_after"] > 0.4
    duckdb.sql(f"COPY (SELECT * FROM read_csv('{shell.folder / 'n.csv'}')) TO '{shell.folder / 'n.parquet'}'")
    typed = answer(shell, "audit", "n.parquet", "--rule", "rule.json", "--label", "truth")
    text = answer(shell, "audit", "n.csv", "--rule", "rule.json", "--label", "truth")
    same(typed | {"data": ""}, text | {"data": ""})


@pytest.mark.parametrize("n", [12, 600])
def test_output_fits_a_terminal(shell, n):
    names = tuple(f"a rather long name of a class, number {i}" for i in range(3))
    data = people(n, classes=names)
    data["sex"] = [f"{sex}, with a description of the group that is long" for sex in data["sex"]]
    shell.write("long.csv", written(data))
    named = tuple(w for c, name in zip(names, SCORES, strict=True) for w in ("--class-score", f"{c}={name}"))
    columns = (*named, "--group", "sex")
    printed = [
        shell("fit", "long.csv", *columns, "--label", "truth", "-o", "rule.json").stdout,
        shell("show", "rule.json").stdout,
        shell("apply", "rule.json", "long.csv", *DECIDE, "-o", "out.csv").stdout,
        shell("audit", "long.csv", "--rule", "rule.json", "--label", "truth").stdout,
        shell("audit", "long.csv", *columns, "--label", "truth").stdout,
        shell("frontier", "long.csv", *columns, "--label", "truth").stdout,
    ]
    for text in printed:
        assert max(map(len, text.split("\n"))) <= 80, text


def test_it_runs_as_a_process(shell):
    process = Shell(shell.folder)
    process("fit", "s.csv", *COLUMNS, "-o", "rule.json", "-q")
    process(
        "apply", "rule.json", "-", "--id", "id", "-o", "-", stdin=shell.read("s.csv"), env={"FAIRRAMP_KEY": KEY}
    )
    done = process("audit", "s.csv", *COLUMNS, "--fail-above", "0", code=1)
    assert done.stderr == ""


def test_a_check_without_one_of_the_groups_counts_each_row_once(shell, data):
    fitted(shell)
    kept = [i for i, sex in enumerate(data["sex"]) if sex == "F"]
    shell.write("one.csv", written({name: [values[i] for i in kept] for name, values in data.items()}))
    assert shell("check", "rule.json", "one.csv").stdout.startswith(f"{len(kept)} rows in one.csv")


def test_decisions_between_classes_of_several_types_are_refused(shell, data):
    rule = replace(fitted(shell), classes=("1", 2, True))
    rule.save(shell.folder / "mixed.json")
    told = shell.error("apply", "mixed.json", "s.csv", *DECIDE, "-o", "out.csv")
    assert "have several types, and a column of decisions has one" in told
    assert not (shell.folder / "out.csv").exists()


def test_the_accuracy_of_a_fit_counts_a_blank_class(shell):
    data = people(classes=("", "mid", "high"))
    shell.write("blank.csv", written(data))
    named = [
        w for c, name in zip(("", "mid", "high"), SCORES, strict=True) for w in ("--class-score", f"{c}={name}")
    ]
    told = answer(shell, "fit", "blank.csv", *named, "--group", "sex", "--label", "truth", "-o", "rule.json")
    scores = dict(zip(("", "mid", "high"), (floats(data[name]) for name in SCORES), strict=True))
    rule = fairramp.ClassRule.load(shell.folder / "rule.json")
    found = fairramp.audit_classes(scores, data["sex"], data["truth"], rule=rule)
    assert told["accuracy_before"] == pytest.approx(found.accuracy_before, abs=1e-9)
    assert told["accuracy_after"] == pytest.approx(found.accuracy_after, abs=1e-9)
