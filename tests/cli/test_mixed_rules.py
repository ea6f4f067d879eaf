"""Rules by group probabilities, and by each of several attributes, on the command line."""

import csv
import io
import json

import numpy as np
import pytest

import fairramp
from shell import KEY, Inside

CHANCES = ("--group-probability", "F=p_f", "--group-probability", "M=p_m")
COLUMNS = ("--score", "p", *CHANCES)
EACH = ("--score", "p", "--group", "sex", "--group", "unit", "--combine", "each")
DECIDE = ("--id", "id", "--key-file", "key.txt")


@pytest.fixture
def shell(tmp_path):
    """A folder with a key and a table of 900 people."""
    shell = Inside(tmp_path)
    rng = np.random.default_rng(3)
    woman, north = rng.random(900) < 0.4, rng.random(900) < 0.5
    score = np.clip(rng.beta(3, 3, 900) - 0.1 * woman + 0.1 * north, 0, 1).round(4)
    chance = rng.beta(np.where(woman, 5, 1), np.where(woman, 1, 5)).round(4)
    sex, unit = np.where(woman, "F", "M"), np.where(north, "N", "S")
    people = zip(score, sex, unit, score > 0.5, chance, strict=True)
    lines = [f"i{i},{p},{g},{u},{y:d},{q},{1 - q:.4f}" for i, (p, g, u, y, q) in enumerate(people)]
    text = "\n".join(["id,p,sex,unit,y,p_f,p_m", *lines, ""])
    shell.write("s.csv", text)
    shell.write("key.txt", KEY + "\n")
    (shell.folder / "key.txt").chmod(0o600)
    return shell


def columns(shell, name="s.csv"):
    """The columns of a table; numbers as arrays."""
    rows = list(csv.DictReader(io.StringIO(shell.read(name))))
    found = {column: np.array([row[column] for row in rows]) for column in rows[0]}
    numbers = ("p", "p_f", "p_m", "y", "probability", "decision")
    return {c: values.astype(float) if c in numbers else values for c, values in found.items()}


def fitted(shell, *options):
    shell("fit", "s.csv", *options, "-o", "rule.json")
    return fairramp.Rule.load(shell.folder / "rule.json")


def changed(shell, row, column, value):
    """The table with one cell changed, as bad.csv."""
    rows = list(csv.reader(io.StringIO(shell.read("s.csv"))))
    rows[row][rows[0].index(column)] = value
    shell.write("bad.csv", "".join(",".join(cells) + "\n" for cells in rows))


def test_a_fit_by_probabilities_is_that_of_the_library(shell):
    rule, data = fitted(shell, *COLUMNS, "--max-gap", "0.05"), columns(shell)
    chances = fairramp.GroupProbabilities({"F": data["p_f"], "M": data["p_m"]})
    same = fairramp.fit_rule(data["p"], chances, max_gap=0.05)
    assert (rule.membership, rule.groups) == ("probabilities", ("F", "M"))
    assert (rule.columns.score, rule.columns.groups, rule.columns.probabilities) == ("p", None, ("p_f", "p_m"))
    np.testing.assert_allclose(rule.thresholds, same.thresholds, atol=1e-9)


def test_a_fit_by_each_attribute_is_that_of_the_library(shell):
    rule, data = fitted(shell, *EACH), columns(shell)
    same = fairramp.fit_rule(data["p"], {"sex": data["sex"], "unit": data["unit"]}, combine="each")
    assert rule.groups == (("sex", "F"), ("sex", "M"), ("unit", "N"), ("unit", "S"))
    assert rule.columns.groups == ("sex", "unit")
    np.testing.assert_allclose(rule.thresholds, same.thresholds, atol=1e-9)
    assert rule.record.fingerprint == same.record.fingerprint


@pytest.mark.parametrize("options", [COLUMNS, EACH], ids=["probabilities", "each"])
@pytest.mark.parametrize("output", ["out.csv", "out.parquet"])
def test_apply_decides_as_the_library(shell, options, output):
    rule, data = fitted(shell, *options), columns(shell)
    content = json.loads(shell("apply", "rule.json", "s.csv", *DECIDE, "-o", output, "--json").stdout)
    groups = {"sex": data["sex"], "unit": data["unit"]}
    if rule.membership == "probabilities":
        groups = fairramp.GroupProbabilities({"F": data["p_f"], "M": data["p_m"]})
    h = rule.probabilities(data["p"], groups)
    chosen = rule.decide(data["p"], groups, ids=data["id"].tolist(), key=KEY)
    if output.endswith("csv"):
        made = columns(shell, output)
    else:
        import duckdb

        made = duckdb.sql(f"SELECT * FROM '{shell.folder / output}'").fetchnumpy()
        if rule.membership == "probabilities":
            assert made["p_f"].dtype == float  # typed formats get numbers
    np.testing.assert_allclose(made["probability"].astype(float), h, atol=1e-9)
    np.testing.assert_array_equal(made["decision"].astype(int), chosen)
    assert content["rows"] == 900
    if rule.membership == "probabilities":
        for row, q in zip(content["groups"], (data["p_f"], data["p_m"]), strict=True):
            assert row["rows"] == pytest.approx(q.sum())
            assert row["expected_rate"] == pytest.approx(q @ h / q.sum())
            assert row["selected"] == pytest.approx(q @ chosen)
            assert row["in_ramp"] == pytest.approx(q @ ((h > 0) & (h < 1)))
    else:
        assert [row["group"] for row in content["groups"]] == [["F", "N"], ["F", "S"], ["M", "N"], ["M", "S"]]


def test_other_columns_may_hold_the_probabilities(shell):
    fitted(shell, *COLUMNS)
    shell.write("t.csv", shell.read("s.csv").replace("p_f,p_m", "q f,q=m"))
    shell("apply", "rule.json", "s.csv", "--random-seed", "1", "-o", "a.csv")
    renamed = ("--group-probability", "M=q=m", "--group-probability", "F=q f")
    shell("apply", "rule.json", "t.csv", *renamed, "--random-seed", "1", "-o", "b.csv")
    np.testing.assert_array_equal(columns(shell, "a.csv")["decision"], columns(shell, "b.csv")["decision"])


def test_values_that_never_met_are_decided_together(shell):
    head, *lines = shell.read("s.csv").splitlines()
    shell.write("s.csv", "\n".join([head, *(line for line in lines if ",F,S," not in line)]) + "\n")
    rule = fitted(shell, *EACH)
    shell.write("new.csv", f"{head}\nn1,0.5,F,S,1,0.5,0.5\n")
    shell("apply", "rule.json", "new.csv", "--random-seed", "1", "-o", "out.csv")
    (h,) = columns(shell, "out.csv")["probability"]
    assert h == pytest.approx(rule.probabilities([0.5], {"sex": ["F"], "unit": ["S"]})[0])
    shell.write("new.csv", f"{head}\nn1,0.5,F,W,1,0.5,0.5\n")
    assert "unit / W" in shell.error("apply", "rule.json", "new.csv", "--random-seed", "1", "-o", "x.csv")


def test_groups_that_are_numbers_match_the_true_groups(shell):
    shell.write("n.csv", shell.read("s.csv").replace(",F,", ",1,").replace(",M,", ",2,"))
    named = ("--score", "p", "--group-probability", "1=p_f", "--group-probability", "2=p_m")
    shell("fit", "n.csv", *named, "-o", "rule.json")
    content = json.loads(shell("audit", "n.csv", "--rule", "rule.json", "--group", "sex", "--json").stdout)
    assert content["groups"] == ["1", "2"]
    assert content["group_model"]["unknown"] == []


@pytest.mark.parametrize(
    ("row", "column", "value", "told"),
    [
        (
            3,
            "p_f",
            "?",
            "--group-probability 'p_f' in bad.csv is not a number between 0 and 1 in 1 row: '?' in line 4;",
        ),
        (
            3,
            "p_m",
            "",
            "'p_m' in bad.csv is missing in 1 row: empty in line 4; correct it.",
        ),
        (
            4,
            "p_f",
            "1.5",
            "'p_f' in bad.csv is not a number between 0 and 1 in 1 row: '1.5' in line 5; divide percentages by",
        ),
        (
            4,
            "p_m",
            "-0.1",
            "'p_m' in bad.csv is not a number between 0 and 1 in 1 row: '-0.1' in line 5",
        ),
        (2, "p_f", "0.98765", "'p_f', 'p_m' in bad.csv must sum to 1 but do not in 1 row: "),
    ],
)
def test_bad_cells_are_named(shell, row, column, value, told):
    changed(shell, row, column, value)
    assert told in shell.error("fit", "bad.csv", *COLUMNS, "-o", "rule.json")
    fitted(shell, *COLUMNS)
    assert told in shell.error("apply", "rule.json", "bad.csv", "--random-seed", "1", "-o", "out.csv")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ("--score", "p"),
            "--group is missing: pass the column with the groups, or --group-probability for each",
        ),
        ((*COLUMNS, "--group", "sex"), "Pass either --group or --group-probability to fit"),
        (("--score", "p", "--group-probability", "p_f"), "must be GROUP=COLUMN, such as F=p_f, got 'p_f'"),
        ((*COLUMNS, "--group-probability", "F=p"), "--group-probability names the group 'F' twice"),
        (("--score", "p_f", *CHANCES), "--group-probability 'p_f' is the score column"),
        ((*COLUMNS, "--strata", "unit"), "Group probabilities do not support --strata"),
        ((*COLUMNS, "--combine", "each"), "Group probabilities do not support --combine each"),
        ((*COLUMNS, "--max-gap", "0.1", "--confidence", "0.9"), "does not support --confidence"),
        ((*EACH, "--ramp-width", "0"), "--combine each requires --ramp-width above 0"),
        (("--score", "p", "--group", "sex", "--combine", "all"), "--combine must be"),
    ],
)
def test_fits_that_are_refused(shell, options, told):
    assert told in shell.error("fit", "s.csv", *options, "-o", "rule.json")


def test_the_truth_is_beside_what_the_rule_uses(shell):
    rule, data = fitted(shell, *COLUMNS), columns(shell)
    content = json.loads(shell("audit", "s.csv", "--rule", "rule.json", "--group", "sex", "--json").stdout)
    h = rule.probabilities(data["p"], fairramp.GroupProbabilities({"F": data["p_f"], "M": data["p_m"]}))
    expected = [h[data["sex"] == group].mean() for group in "FM"]
    np.testing.assert_allclose(content["after"]["rate"], expected, atol=1e-9)
    assert (content["group_columns"], content["probability_columns"]) == (["sex"], ["p_f", "p_m"])
    text = shell("audit", "s.csv", "--rule", "rule.json", "--group", "sex").stdout
    assert "Group probabilities:" in text
    told = shell.error("audit", "s.csv", "--rule", "rule.json")
    assert told.startswith("--group is missing: pass the column with the true groups")
    needs = shell.error("audit", "s.csv", "--score", "p", "--group", "sex", *CHANCES)
    assert needs == "--group-probability needs --rule, a rule that uses group probabilities."
    unused = shell.error("apply", "rule.json", "s.csv", "--group", "sex", "--random-seed", "1", "-o", "x.csv")
    assert unused == "This rule does not use --group but group probabilities; pass --group-probability."


def test_an_audit_by_each_attribute_shows_the_intersections(shell):
    fitted(shell, *EACH)
    text = shell("audit", "s.csv", "--rule", "rule.json").stdout
    assert text.startswith("900 rows in s.csv, by sex and by unit\n")
    assert "Intersections: gap" in text
    content = json.loads(shell("audit", "s.csv", *EACH, "--json").stdout)
    assert content["groups"] == [["sex", "F"], ["sex", "M"], ["unit", "N"], ["unit", "S"]]
    assert content["intersections"]["groups"] == [["F", "N"], ["F", "S"], ["M", "N"], ["M", "S"]]


@pytest.mark.parametrize(
    ("options", "truth"), [(COLUMNS, ("--group", "sex")), (EACH, ())], ids=["probabilities", "each"]
)
def test_every_command_reads_such_rules(shell, options, truth):
    rule = fitted(shell, *options)
    shown = json.loads(shell("show", "rule.json", "--json").stdout)
    assert (shown["membership"], shown["rows"], shown["certificate"]) == (rule.membership, 900, None)
    assert shown["why_no_certificate"].startswith("No certificate from the fit rows")
    assert "900 rows" in shell("check", "rule.json", "s.csv", *truth).stdout
    shell("report", "rule.json", "s.csv", *truth, "--label", "y", "-o", "report.html")
    assert "<html" in shell.read("report.html")
    shell("export", "rule.json", "--to", "sql", "--dialect", "duckdb", "--table", "t", "-o", "rule.sql")
    shell("export", "rule.json", "--to", "onnx", "-o", "rule.onnx")
    shell("export", "rule.json", "--to", "json", "-o", "bare.json")
    assert fairramp.Rule.load(shell.folder / "bare.json").fingerprint


def test_explain_by_probabilities_and_by_attributes(shell):
    rule = fitted(shell, *COLUMNS)
    person = ("--group-probability", "M=0.25", "--group-probability", "F=0.75")
    content = json.loads(shell("explain", "rule.json", "--score", "0.45", *person, "--json").stdout)
    expected = rule.probabilities([0.45], fairramp.GroupProbabilities({"F": [0.75], "M": [0.25]}))[0]
    assert (content["probability"], content["group"]) == (expected, {"F": 0.75, "M": 0.25})
    assert "With group probabilities F 75.0%, M 25.0%, " in content["why"]
    told = shell.error("explain", "rule.json", "--score", "0.45", "--group", "F")
    assert told == "The rule uses --group-probability: pass it instead of --group."
    assert "must be GROUP=PROBABILITY" in shell.error(
        *("explain", "rule.json", "--score", "0.45", "--group-probability", "F=x", "--group-probability", "M=1")
    )
    shell("fit", "s.csv", *EACH, "-o", "rule.json", "--replace")
    rule = fairramp.Rule.load(shell.folder / "rule.json")
    content = json.loads(
        shell("explain", "rule.json", "--score", "0.45", "--group", "F", "--group", "S", "--json").stdout
    )
    assert content["probability"] == rule.probabilities([0.45], {"sex": ["F"], "unit": ["S"]})[0]
    assert content["group"] == ["F", "S"]
    once = shell.error("explain", "rule.json", "--score", "0.45", "--group", "F")
    assert once == "--group must be given once for each of 2 columns (sex, unit), got ['F']."
