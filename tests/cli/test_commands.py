"""Text output, JSON and exit code of every command."""

import csv
import inspect
import io
import json
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fairramp
from shell import KEY, Inside, rows

DECIDE = ("--id", "id", "--key-file", "key.txt")
COMMANDS = ("audit", "fit", "apply", "select", "frontier", "keygen", "demo", "report", "show")
DEMO_FILES = ("about-this-folder.txt", "decisions.csv", "frontier.csv", "key.txt", "rule.json", "scores.csv")


def table(text, delimiter=","):
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def test_audit_matches_the_library(shell):
    shell.write("s.csv", rows())
    content = json.loads(shell("audit", "s.csv", "--score", "p", "--group", "g", "--label", "y", "--json").stdout)
    data = table(rows())
    found = fairramp.audit(
        [float(r["p"]) for r in data], [r["g"] for r in data], [int(r["y"]) for r in data]
    ).to_dict()
    for name in ("groups", "rows", "before", "calibration_error"):
        assert json.dumps(content[name]) == json.dumps(found[name]), name
    assert (content["command"], content["format"], content["gate"]) == ("audit", 1, None)


def test_gate_uses_the_limits_of_the_gap(shell):
    shell.write("s.csv", rows())
    columns = ("s.csv", "--score", "p", "--group", "g")
    low, high = json.loads(shell("audit", *columns, "--json").stdout)["before"]["gap_interval"]
    assert 0 < low < high
    assert "Gate undecided" in shell("audit", *columns, "--fail-above", repr(low)).stdout
    assert "Gate passed" in shell("audit", *columns, "--fail-above", repr(high)).stdout
    failed = shell("audit", *columns, "--fail-above", repr(low - 1e-9), code=1)
    assert "failed" in failed.stdout
    assert failed.stderr == ""
    gate = json.loads(shell("audit", *columns, "--fail-above", "0", "--json", code=1).stdout)["gate"]
    assert gate["gap"] == pytest.approx((low + high) / 2, abs=0.02)
    expected = {"decisions": "before", "fail_above": 0.0, "gap_interval": [low, high]}
    expected |= {"verdict": "exceeded", "verdicts": {"fail_above": "exceeded"}, "failed": True}
    assert {name: gate[name] for name in expected} == expected
    assert shell("audit", *columns, "--fail-above", "0", "--quiet", code=1).stdout == ""


def test_fit_matches_the_library(shell):
    shell.write("s.csv", rows())
    shell("fit", "s.csv", "--score", "p", "--group", "g", "--max-gap", "0.05", "-o", "rule.json")
    data = table(rows())
    rule = fairramp.fit_rule([float(r["p"]) for r in data], [r["g"] for r in data], max_gap=0.05)
    loaded = fairramp.Rule.load(shell.folder / "rule.json")
    assert loaded.fingerprint == rule.fingerprint
    assert (loaded.columns.score, loaded.columns.groups) == ("p", ("g",))


@pytest.mark.parametrize("target", ["optimal", "accuracy", "base_rate", "0.3"])
def test_fit_with_labels_reports_accuracy_before_and_after(shell, target):
    shell.write("s.csv", rows())
    done = shell(
        *("fit", "s.csv", "--score", "p", "--group", "g", "--label", "y", "--target-rate", target, "--json"),
        *("-o", "rule.json"),
    )
    content = json.loads(done.stdout)
    data = table(rows())
    scores, groups, labels = ([float(r["p"]) for r in data], [r["g"] for r in data], [int(r["y"]) for r in data])
    rule = fairramp.fit_rule(scores, groups, labels, target_rate=float(target) if target[0] == "0" else target)
    found = fairramp.audit(scores, groups, labels, rule=rule)
    assert content["rule_fingerprint"] == rule.fingerprint
    assert content["accuracy_before"] == pytest.approx(found.before.overall_accuracy, abs=1e-12)
    assert content["accuracy_after"] == pytest.approx(found.after.overall_accuracy, abs=1e-12)
    assert content["certificate"]["estimated"] == pytest.approx(rule.certificate().estimated)


def test_fit_without_labels_says_that_none_were_needed(shell):
    shell.write("s.csv", rows())
    text = shell("fit", "s.csv", "--score", "p", "--group", "g", "-o", "rule.json").stdout
    assert "fitting needs no labels" in text
    assert "Gap in the population: estimated limit" in text
    assert "  fairramp report rule.json s.csv -o report.html\n" in text
    assert "fairramp apply rule.json s.csv -o decisions.csv" in text
    assert text.index("fairramp report") < text.index("fairramp keygen") < text.index("fairramp apply")


def suggested(text):
    """Commands that a text suggests, one per indented line; a backslash continues a line."""
    return [
        shlex.split(line) for line in re.findall(r"^  fairramp (.+)$", text.replace(" \\\n", ""), re.MULTILINE)
    ]


@pytest.mark.parametrize(
    ("header", "options"),
    [
        ("id,p,g,y", ()),
        ("id,p,g,y", ("--label", "y", "--criterion", "equal_opportunity")),
        ("id,p,g,the label", ("--label", "the label", "--positive", "1")),
        ("id,p,g,w", ("--weight", "w")),
        ("id|p|g|y", ("--delimiter", "|", "--label", "y")),
        ("id,p,g,s", ("--strata", "s", "--scale", "signed")),
    ],
)
def test_commands_that_a_fit_suggests_run(tmp_path, header, options):
    shell = Inside(tmp_path)
    shell.write("my scores.csv", rows(header=header, line=header[2].join(("{id}", "{p}", "{g}", "{y}"))))
    text = shell("fit", "my scores.csv", "--score", "p", "--group", "g", *options, "-o", "rule.json").stdout
    assert max(map(len, text.split("\n"))) <= 80
    commands = suggested(text)
    assert [command[0] for command in commands] == ["report", "keygen", "apply"]
    assert [name for name in ("--label", "--positive", "--weight") if name in commands[0]] == [
        name for name in ("--label", "--positive", "--weight") if name in options
    ]
    for command in commands:
        shell(*(word.replace("ID", "id") for word in command))
    assert {"report.html", "key.txt", "decisions.csv"} <= {*shell.files()}


def test_apply_keeps_columns_and_order_and_adds_two(fitted):
    fitted("apply", "rule.json", "scores.csv", "-o", "out.csv", *DECIDE)
    rule = fairramp.Rule.load(fitted.folder / "rule.json")
    data, out = table(fitted.read("scores.csv")), table(fitted.read("out.csv"))
    assert [{k: r[k] for k in ("id", "p", "g", "y")} for r in out] == data
    assert list(out[0]) == ["id", "p", "g", "y", "probability", "decision"]
    scores, groups, ids = ([float(r["p"]) for r in data], [r["g"] for r in data], [r["id"] for r in data])
    chances = rule.probabilities(scores, groups)
    assert np.allclose([float(r["probability"]) for r in out], chances, rtol=0, atol=1e-12)
    assert [int(r["decision"]) for r in out] == rule.decide(scores, groups, ids=ids, key=KEY).tolist()
    assert any(0 < c < 1 for c in chances)


def test_apply_says_when_decisions_or_rates_are_beyond_the_limit(fitted):
    """Random draws may exceed the limit, which is for expected rates; on other rows, these may exceed it, too."""
    fitted("fit", "scores.csv", "--score", "p", "--group", "g", "--max-gap", "0.05", "-o", "five.json", "-q")
    seen = set()
    for seed in range(12):
        apply = ("apply", "five.json", "scores.csv", "--random-seed", seed, "-o", "out.csv")
        found = json.loads(fitted(*apply, "--json").stdout)["groups"]
        drawn = [row["selected"] / row["rows"] for row in found]
        gap = round(100 * (max(drawn) - min(drawn)), 1)
        text = " ".join(fitted(*apply).stdout.split())
        told = (
            "The limit of 5.0 points applies to the expected rates; the random draws made the gap {} points here."
        )
        assert (told.format(gap) in text) == (gap > 5)
        assert ("applies to the expected rates" in text) == (gap > 5)
        seen.add(gap > 5)
    assert seen == {True, False}
    fitted.write("new.csv", rows(800, line="{id},{p},{g},{y}").replace(",0.4", ",0.2"))
    text = " ".join(fitted("apply", "five.json", "new.csv", "-o", "out.csv").stdout.split())
    assert "points apart on these rows. The limit of 5.0 points applies to the fit rows; fairramp check" in text


def test_apply_without_key_adds_only_the_probability(fitted):
    done = fitted("apply", "rule.json", "scores.csv", "-o", "out.csv")
    assert "No decisions were made" in done.stdout
    assert list(table(fitted.read("out.csv"))[0])[-2:] == ["y", "probability"]
    asked = fitted("apply", "rule.json", "scores.csv", "-o", "out2.csv", "--probability-only")
    assert "No decisions" not in asked.stdout
    assert fitted.read("out.csv") == fitted.read("out2.csv")


def test_random_seed_draws_by_row(fitted):
    for name, seed in (("a.csv", 1), ("b.csv", 1), ("c.csv", 2)):
        fitted("apply", "rule.json", "scores.csv", "-o", name, "--random-seed", seed)
    assert fitted.read("a.csv") == fitted.read("b.csv") != fitted.read("c.csv")


def test_prefix_avoids_existing_columns(fitted):
    fitted("apply", "rule.json", "scores.csv", "-o", "out.csv", *DECIDE)
    assert "--prefix" in fitted.error("apply", "rule.json", "out.csv", "-o", "out2.csv")
    fitted("apply", "rule.json", "out.csv", "-o", "out2.csv", "--prefix", "new_", *DECIDE)
    again = table(fitted.read("out2.csv"))
    assert all(r["probability"] == r["new_probability"] and r["decision"] == r["new_decision"] for r in again)


def test_audit_takes_column_names_from_the_rule(fitted):
    content = json.loads(fitted("audit", "scores.csv", "--rule", "rule.json", "--json").stdout)
    assert content["after"]["gap"] == pytest.approx(0.02, abs=1e-9)
    assert content["before"]["gap"] > 0.1


def test_frontier_writes_its_table(shell):
    shell.write("s.csv", rows())
    columns = ("s.csv", "--score", "p", "--group", "g", "--label", "y")
    text = shell("frontier", *columns, "--max-gap", "0", "--max-gap", "0.1", "-o", "f.csv").stdout
    assert "on the fit rows" in text
    assert [float(r["max_gap"]) for r in table(shell.read("f.csv"))] == [0, 0.1]
    content = json.loads(shell("frontier", *columns, "--validation", "s.csv", "--json", "-o", "f.json").stdout)
    assert not content["in_sample"]
    assert json.loads(shell.read("f.json")) == content["points"]
    shell("frontier", *columns, "-o", "f.parquet", "-q")
    shell("frontier", *columns, "-o", "f.svg", "-q")
    assert shell.read("f.svg").startswith("<svg")
    assert ".svg, .png or .html" in shell.error("frontier", *columns, "-o", "f.pdf")


def test_report_matches_the_library(fitted):
    done = fitted("report", "rule.json", "scores.csv", "--label", "y", "-o", "report.html", "--title", "A title")
    assert "Before. " in done.stdout
    data = table(fitted.read("scores.csv"))
    columns = [float(r["p"]) for r in data], [r["g"] for r in data], [int(r["y"]) for r in data]
    rule, words = fairramp.Rule.load(fitted.folder / "rule.json"), {"title": "A title", "source": "scores.csv"}
    made = rule.report(*columns, label_names=("y = 1", "y = 0"), **words)
    assert made.html == fitted.read("report.html")
    printed = fitted("report", "rule.json", "scores.csv", "--label", "y", "-o", "-", "--title", "A title")
    assert printed.stdout == made.html
    arguments = ("report", "rule.json", "scores.csv", "--label", "y", "-o", "r.html", "--title", "A title")
    content = json.loads(fitted(*arguments, "--json").stdout)
    assert content["report"] == json.loads(made.to_json())


def test_report_compares_two_rule_files(fitted):
    (fitted.folder / "old").mkdir()
    columns = ("--score", "p", "--group", "g")
    fitted("fit", "scores.csv", *columns, "--max-gap", "0.15", "--ramp-width", "0.2", "-o", "old/rule-2025.json")
    arguments = ("report", "rule.json", "scores.csv", "--compare", "old/rule-2025.json", "-o", "r.html")
    rule, other = (fairramp.Rule.load(fitted.folder / name) for name in ("rule.json", "old/rule-2025.json"))
    data = table(fitted.read("scores.csv"))
    scores, groups = [float(r["p"]) for r in data], [r["g"] for r in data]
    made = rule.report(scores, groups, compare=other, compare_name="rule-2025.json", source="scores.csv")
    content = json.loads(fitted(*arguments, "--json").stdout)
    assert content["report"] == json.loads(made.to_json())
    apart = np.abs(rule.probabilities(scores, groups) - other.probabilities(scores, groups)).sum()
    said = f"{round(apart)} of {len(data)} people ("
    printed = fitted(*arguments).stdout
    assert said in printed
    assert "get a different decision than under rule-2025.json: " in " ".join(printed.split())


def test_report_rejects_rules_that_cannot_be_compared(fitted):
    report = ("report", "rule.json", "scores.csv", "-o", "report.html", "--compare")
    assert "The rule nothing.json does not exist" in fitted.error(*report, "nothing.json")
    assert "scores.csv is not a rule" in fitted.error(*report, "scores.csv")
    fitted.write("s.csv", rows(groups=("a", "c")))
    fitted("fit", "s.csv", "--score", "p", "--group", "g", "-o", "other.json")
    assert "--compare does not know the group b" in fitted.error(*report, "other.json")
    overwriting = ("report", "rule.json", "scores.csv", "--compare", "other.html", "-o", "other.html")
    fitted.write("other.html", fitted.read("rule.json"))
    assert "would overwrite --compare" in fitted.error(*overwriting)
    assert not (fitted.folder / "report.html").exists()


def test_report_errors_take_one_line(fitted):
    assert ".html" in fitted.error("report", "rule.json", "scores.csv", "-o", "report.pdf")
    assert "nothing.json does not exist" in fitted.error(
        "report", "nothing.json", "scores.csv", "-o", "report.html"
    )
    assert not (fitted.folder / "report.html").exists()


def test_intersections_and_strata(shell):
    shell.write("s.csv", rows(header="id,p,a,b,y", line="{id},{p},{g},{y}", groups=("x,1", "x,2", "y,1", "y,2")))
    shell("fit", "s.csv", "--score", "p", "--group", "a", "--group", "b", "-o", "r.json", "-q")
    assert fairramp.Rule.load(shell.folder / "r.json").groups == (("x", "1"), ("x", "2"), ("y", "1"), ("y", "2"))
    shell("apply", "r.json", "s.csv", "-o", "o.csv")
    shell("fit", "s.csv", "--score", "p", "--group", "a", "--strata", "b", "-o", "r2.json", "-q")
    rule = fairramp.Rule.load(shell.folder / "r2.json")
    assert (rule.stratified, rule.columns.strata) == (True, ("b",))
    shell("apply", "r2.json", "s.csv", "-o", "o2.csv")
    out = table(shell.read("o2.csv"))
    expected = rule.probabilities(
        [float(r["p"]) for r in out], {"a": [r["a"] for r in out]}, {"b": [r["b"] for r in out]}
    )
    assert np.allclose([float(r["probability"]) for r in out], expected, rtol=0, atol=1e-12)
    content = json.loads(shell("audit", "s.csv", "--rule", "r2.json", "--json").stdout)
    assert content["after"]["gap"] == pytest.approx(0, abs=1e-9)


def test_weights_match_the_library(shell):
    shell.write("s.csv", rows(header="id,p,g,w"))
    data = table(shell.read("s.csv"))
    shell("fit", "s.csv", "--score", "p", "--group", "g", "--weight", "w", "-o", "r.json", "-q")
    rule = fairramp.fit_rule(
        [float(r["p"]) for r in data], [r["g"] for r in data], sample_weight=[float(r["w"]) for r in data]
    )
    assert fairramp.Rule.load(shell.folder / "r.json").fingerprint == rule.fingerprint


def test_demo_runs_and_protects_files(demo):
    shell, text = demo
    assert max(len(line) for line in text.split("\n")) <= 80
    commands = ["audit", "fit", "keygen", "apply", "frontier", "report"]
    assert re.findall(r"^\$ fairramp (\w+)", text, re.MULTILINE) == commands
    assert {p.name for p in (shell.folder / "fairramp-demo").iterdir()} == {*DEMO_FILES, "report.html"}
    assert "<!doctype html>" in shell.read("fairramp-demo/report.html")[:100].lower()
    key = shell.read("fairramp-demo/key.txt")
    shell("demo")
    assert shell.read("fairramp-demo/key.txt") == key
    (shell.folder / "mine").mkdir()
    shell.write("mine/scores.csv", "precious")
    assert "contains other files" in shell.error("demo", "mine")
    assert shell.read("mine/scores.csv") == "precious"


def test_demo_without_the_report_extra_says_how_to_install_it(tmp_path):
    code = "import sys\nsys.modules['jinja2'] = None\nfrom fairramp.cli.run import run\nsys.exit(run(['demo']))\n"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line for line in done.stdout.split("\n") if "pip install 'fairramp[report]'" in line]
    assert len(lines) == 1
    assert "jinja2 is not installed" in lines[0]
    assert {p.name for p in (tmp_path / "fairramp-demo").iterdir()} == {*DEMO_FILES}


def test_keygen_writes_private_files_and_never_overwrites(shell):
    text = shell("keygen", "k.txt").stdout
    key = shell.read("k.txt")
    assert re.fullmatch(r"[0-9a-f]{64}\n", key)
    assert key.strip() not in text
    assert stat.S_IMODE(os.stat(shell.folder / "k.txt").st_mode) == 0o600
    assert "not overwritten" in shell.error("keygen", "k.txt")
    assert shell.read("k.txt") == key
    shell("keygen", "k2.txt", "-q")
    assert shell.read("k2.txt") != key


def test_key_appears_in_no_output(fitted):
    done = [
        fitted("apply", "rule.json", "scores.csv", "-o", "o.csv", *DECIDE, "--json"),
        fitted("apply", "rule.json", "scores.csv", "-o", "o.parquet", "--id", "id", env={"FAIRRAMP_KEY": KEY}),
        fitted("apply", "rule.json", "scores.csv", "-o", "no/o.csv", *DECIDE, "--debug", code=2, env={}),
    ]
    for name in fitted.files():
        if name != "key.txt":
            assert KEY.encode() not in (fitted.folder / name).read_bytes()
    assert not any(KEY in d.stdout + d.stderr for d in done)
    parquet = fitted("apply", "rule.json", "o.parquet", "-o", "-", "--prefix", "x_", *DECIDE).stdout
    assert [(r["decision"]) for r in table(fitted.read("o.csv"))] == [r["x_decision"] for r in table(parquet)]


def test_bad_keys_fail(fitted):
    fitted.write("bad.txt", KEY[:-1] + "X\n")
    said = fitted.error("apply", "rule.json", "scores.csv", "-o", "o.csv", "--id", "id", "--key-file", "bad.txt")
    assert "64 lowercase" in said
    assert KEY[:-1] not in said
    mistyped = ("apply", "rule.json", "scores.csv", "-o", "o.csv", "--id", "id", "--key-file")
    said = fitted.error(*mistyped, "none.txt")
    assert "keygen" not in said  # with a new key the same people would get different decisions
    assert "key.txt" in said
    (fitted.folder / "empty").mkdir()
    assert "keygen" in fitted.error(*mistyped, "empty/none.txt")
    assert "--key-file" in fitted.error("apply", "rule.json", "scores.csv", "-o", "o.csv", "--id", "id")
    assert "--id" in fitted.error("apply", "rule.json", "scores.csv", "-o", "o.csv", "--key-file", "key.txt")
    assert "FAIRRAMP_KEY" in fitted.error(
        "apply", "rule.json", "scores.csv", "-o", "o.csv", "--id", "id", env={"FAIRRAMP_KEY": "abc"}
    )


@pytest.mark.posix("files have access lists instead of permissions")
def test_a_key_that_others_can_read_is_a_warning(fitted):
    os.chmod(fitted.folder / "key.txt", 0o644)
    assert "chmod 600" in fitted("apply", "rule.json", "scores.csv", "-o", "o.csv", *DECIDE).stderr
    assert "o.csv" in fitted.files()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_examples_run(demo, command):
    shell, _ = demo
    example = re.search(r"For example:\n\n *fairramp (.+)\n", shell(command, "--help").stdout)[1]
    shell.folder /= "fairramp-demo"
    if command == "keygen":
        (shell.folder / "key.txt").unlink()
    if command == "fit":
        (shell.folder / "rule.json").unlink()
    shell(*shlex.split(example))


def test_text_is_plain_and_fits_80_columns(shell):
    long = "a very long name of a group, such as people give them when they can"
    shell.write("s.csv", rows(groups=(f'"{long} 1"', f'"{long} 2"', "c")))
    texts = [
        shell("audit", "s.csv", "--score", "p", "--group", "g", "--label", "y").stdout,
        shell("fit", "s.csv", "--score", "p", "--group", "g", "--label", "y", "-o", "r.json").stdout,
        shell("audit", "s.csv", "--rule", "r.json", "--label", "y").stdout,
        shell("apply", "r.json", "s.csv", "-o", "o.csv", "--random-seed", "0").stdout,
    ]
    for text in texts:
        assert "\x1b" not in text
        assert max(len(line) for line in text.split("\n")) <= 80, text


def test_quiet_is_quiet(fitted):
    for arguments in (
        ("audit", "scores.csv", "--rule", "rule.json"),
        ("fit", "scores.csv", "--score", "p", "--group", "g", "-o", "r.json"),
        ("apply", "rule.json", "scores.csv", "-o", "o.csv"),
        ("check", "rule.json", "scores.csv"),
        ("frontier", "scores.csv", "--score", "p", "--group", "g", "--label", "y"),
        ("report", "rule.json", "scores.csv", "-o", "report.html"),
    ):
        done = fitted(*arguments, "--quiet")
        assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fti",), "fit"),
        (("fit",), "DATA is missing"),
        (("audit", "scores.csv", "--scor", "p"), "--score"),
        (("audit", "scores.csv", "--score", "p"), "--group"),
        (("audit", "scores.csv", "--score", "p", "--group", "g", "--fail-above", "x"), "--fail-above"),
        (("audit", "scores.csv", "--score", "p", "--group", "g", "--fail-above", "5"), "--fail-above"),
        (("audit", "scores.csv", "--score", "p", "--group", "g", "--confidence", "2"), "--confidence"),
        (("fit", "scores.csv", "--score", "p", "--group", "g", "-o", "r.json", "--max-gap", "2"), "--max-gap"),
        (("fit", "scores.csv", "--score", "p", "--group", "g", "-o", "r.json", "--scale", "odds"), "--scale"),
        (
            ("fit", "scores.csv", "--score", "p", "--group", "g", "-o", "r.json", "--target-rate", "accuracy"),
            "--label",
        ),
        (("fit", "scores.csv", "--score", "p", "--group", "g", "--group", "g", "-o", "r.json"), "twice"),
        (("fit", "scores.csv", "--score", "p", "--group", "g", "-o", "no/r.json"), "no"),
        (("apply", "scores.csv", "rule.json", "-o", "o.csv"), "the rule comes first"),
        (("apply", "nothing.json", "scores.csv", "-o", "o.csv"), "fairramp fit"),
        (("apply", "rule.json", "scores.csv", "-o", "o.xlsx"), ".csv"),
        (("apply", "rule.json", "scores.csv", "-o", "o.csv", "--scale", "logit"), "--scale"),
        (("export", "rule.json", "--to", "sql"), "--dialect"),
    ],
)
def test_mistakes_give_one_line_and_exit_code_2(fitted, arguments, said):
    before = fitted.files()
    assert said in Inside(fitted.folder).error(*arguments)
    assert fitted.files() == before


def test_mistakes_in_a_real_process(fitted):
    assert fitted.error("audit", "scores.csv", "--scor", "p").endswith("See: fairramp audit --help")
    assert "--score is missing" in fitted.error("audit", "scores.csv")


def test_missing_cli_extra_gives_install_command():
    code = (
        "import sys\n"
        "import importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name in ('cyclopts', 'duckdb') else real(name, *a)\n"
        "from fairramp.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    install = f"{shlex.quote(sys.executable)} -m pip install 'fairramp[cli]'"
    assert done.stderr == f"The command line needs cyclopts, duckdb; install with: {install}\n"


def test_json_fields_are_documented(fitted):
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    columns = ("scores.csv", "--score", "p", "--group", "g", "--label", "y")
    runs = {
        "audit": ("audit", *columns, "--rule", "rule.json", "--fail-above", "0.9"),
        "fit": ("fit", *columns, "-o", "r.json"),
        "apply": ("apply", "rule.json", "scores.csv", "-o", "o.csv", *DECIDE),
        "select": ("select", *columns[:5], "--places", "40", "-o", "s.csv", *DECIDE),
        "check": ("check", "rule.json", "scores.csv"),
        "frontier": ("frontier", *columns, "--max-gap", "0.1"),
        "report": ("report", "rule.json", "scores.csv", "-o", "report.html"),
    }
    for command, arguments in runs.items():
        content = json.loads(fitted(*arguments, "--json").stdout)
        before, gate = content.get("before", {}), content.get("gate", {})
        rates = before.get("rates", {})
        parts = {"before": before, "rates": rates | rates.get("true_positive", {}), "gate": gate}
        for part, fields in ((command, content), *((f"… `{name}`", found) for name, found in parts.items())):
            described = next(line for line in page.split("\n") if line.startswith((f"| `{part}`", f"| {part}")))
            missing = set(fields) - set(re.findall(r"`(\w+)`", described)) - {"command", "format", "fairramp"}
            assert not missing, (command, missing)


def test_outputs_can_go_to_stdout(fitted):
    columns = ("--score", "p", "--group", "g")
    done = fitted("fit", "-", *columns, "-o", "-", stdin=rows())
    assert fairramp.Rule.from_json(done.stdout).columns.score == "p"
    assert "rule for 2 groups" in done.stderr
    done = fitted("frontier", "scores.csv", *columns, "--label", "y", "--max-gap", "0", "-o", "-")
    assert table(done.stdout)[0]["max_gap"] == "0.0"
    done = fitted("apply", "rule.json", "-", "-o", "-", *DECIDE, stdin=rows())
    fitted("apply", "rule.json", "scores.csv", "-o", "o.csv", *DECIDE)
    assert done.stdout == fitted.read("o.csv")


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nsys.argv = ['fairramp', '--help']\nfrom fairramp.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *sorted({m.split('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split("LOADED")[1].split())
    assert not loaded & {"numpy", "scipy", "sklearn", "duckdb", "narwhals", "pandas", "polars", "pyarrow"}


def test_options_of_a_fit_have_the_defaults_and_the_help_of_its_settings(shell):
    from fairramp.cli.commands.fit import fit
    from fairramp.fit.keywords import DEFAULTS, first_sentence

    told = " ".join(shell("fit", "--help").stdout.replace("│", " ").split())
    taken = inspect.signature(fit).parameters
    assert set(DEFAULTS) - set(taken) == {"higher_is_better", "solver"}
    assert taken["lower_is_better"].default is not DEFAULTS["higher_is_better"]
    for name in set(DEFAULTS) & set(taken):
        assert taken[name].default in (DEFAULTS[name], None)
        plain = re.sub("`(.+?)`", lambda found: f"--{found[1].replace('_', '-')}", first_sentence(name))
        assert plain.replace('"', "").replace("with labels", "with --label") in told


def test_costs_choose_the_rates_and_are_recorded(fitted):
    columns = ("--score", "p", "--group", "g", "--label", "y", "--max-gap", "0.05")
    rates = {}
    for costs in ("1,1", "5,1"):
        fitted(
            "fit", "scores.csv", *columns, "--target-rate", "accuracy", "--costs", costs, "-o", f"{costs}.json"
        )
        rule = fairramp.Rule.load(fitted.folder / f"{costs}.json")
        assert rule.record.costs == tuple(map(float, costs.split(",")))
        rates[costs] = max(rule.record.rates["selection"].after)
    assert rates["5,1"] < rates["1,1"]
    rows = ("scores.csv", "--score", "p", "--group", "g", "--label", "y", "--max-gap", "0", "--max-gap", "0.2")
    found = fitted("frontier", *rows, "--costs", "5,1")
    assert "Cost against gap" in found.stdout
    assert "the lowest cost on the fit rows" in " ".join(found.stdout.split())
    values = [
        point["cost"]
        for point in json.loads(fitted("frontier", *rows, "--costs", "5,1", "--json").stdout)["points"]
    ]
    assert values == sorted(values, reverse=True)
    found = fitted("frontier", *rows, "--target-rate", "balanced_accuracy")
    assert "Balanced accuracy against gap" in found.stdout
    for wrong in ("5", "5;1", "a,b", "1,2,3", "-1,2"):
        told = fitted.error(
            "fit", "scores.csv", *columns, "--target-rate", "accuracy", f"--costs={wrong}", "-o", "x.json"
        )
        assert "--costs must be two numbers" in told
    told = fitted.error("fit", "scores.csv", *columns, "--costs", "5,1", "-o", "x.json")
    assert "--costs requires --target-rate accuracy" in told
