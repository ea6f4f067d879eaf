"""Gates in other people's pipelines: the summary in Markdown, the GitHub Action and the pre-commit hooks.

`make test-gates` also installs the hooks with pre-commit, from a clone, into an empty repository.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from shell import rows
from test_tables_written import HOSTILE, rendered

ROOT = Path(__file__).parents[1]
ACTION, HOOKS, SCRIPT = ROOT / "action.yml", ROOT / ".pre-commit-hooks.yaml", ROOT / "scripts" / "github_gate.py"
#: The source archive contains neither.
clone = pytest.mark.skipif(not ACTION.exists(), reason="not a clone of the repository")
#: Far apart, alike, and too few rows to tell.
FAR, LIMIT = rows(4000), "0.05"
ALIKE = "p,g\n" + "0.9,a\n0.1,a\n0.9,b\n0.1,b\n" * 2000
FEW = "p,g\n" + "0.9,a\n0.1,a\n0.9,b\n0.1,b\n" * 20


def parsed(path):
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


# The summary -------------------------------------------------------------------------------------


def summary(shell, *arguments, **more):
    shell(*arguments, "--summary", "summary.md", **more)
    return shell.read("summary.md")


def test_the_summary_has_the_verdict_first_and_the_tables_that_are_printed(shell):
    shell.write("s.csv", FAR)
    asked = ("audit", "s.csv", "--score", "p", "--group", "g", "--label", "y", "--fail-above", LIMIT)
    text = summary(shell, *asked, code=1)
    heading, verdict, *_ = text.split("\n\n")
    assert heading == "### fairramp: 4,000 rows in s.csv, by g"
    assert verdict.startswith("**Gate failed:** the gap in the classifier's own decisions is ")
    printed = shell(*asked, code=1).stdout
    for cell in re.findall(r"[\d.]+%", text):
        assert cell in printed
    assert text.count("| --- |") == printed.count("\n-----") == 3
    assert summary(shell, *asked, "--json", code=1) == summary(shell, *asked, "--quiet", code=1) == text


def test_the_summary_of_a_check_says_undecided(fitted):
    done = fitted("check", "rule.json", "scores.csv", "--json", "--summary", "summary.md")
    assert json.loads(done.stdout)["verdict"] == "undecided"
    assert "\n\n**Check undecided.** " in fitted.read("summary.md")
    assert "passed" not in fitted.read("summary.md")


def test_the_summary_of_several_classes_has_its_tables(shell):
    lines = "\n".join(f"{'ab'[i % 2]},{p},{1 - p}" for i in range(400) for p in [(i * 37 % 101) / 128])
    shell.write("s.csv", f"g,low,high\n{lines}\n")
    scores = ("--class-score", "low=low", "--class-score", "high=high", "--group", "g")
    text = summary(shell, "audit", "s.csv", *scores, "--fail-above", "0.5")
    assert text.split("\n\n")[1].startswith("**Gate passed:**")
    assert "| class |" in text or "| group |" in text


def test_nothing_in_the_data_is_markup_in_the_summary(shell):
    names = [name for name in HOSTILE if name and "\0" not in name and "\r" not in name]
    names += [
        ":tada:",
        ":100:",
        "=cmd()",
        '"; rm -rf /',
        "${{ github.token }}",
        "::error::x",
        "##[error]x",
    ]
    cells = ['"' + name.replace('"', '""') + '"' for name in names]
    lines = [f"{p},{cell}" for cell in cells for p in (0.25, 0.75)]
    shell.write("s.csv", "p,g|<b>\n" + "\n".join(lines) + "\n")
    asked = ("audit", "s.csv", "--score", "p", "--group", "g|<b>", "--fail-above", LIMIT, "--all")
    text = summary(shell, *asked)
    tags = {tag for tag, *_ in rendered(text).elements}
    assert tags == {"h3", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    shown = [cell for row in rendered(text).texts() for cell in row]
    for name in (":tada:", "=cmd()", '"; rm -rf /', "${{ github.token }}", "a|b", "<script>alert(1)</script>"):
        assert name in shown
    assert not re.search(r":(tada|100):", text)
    assert not re.search(r"(?m)^\s*::|##\[", text)


@pytest.mark.parametrize("output", ["s.csv", "rule.json"])
def test_the_summary_overwrites_no_input(fitted, output):
    fitted.write("s.csv", rows())
    before = fitted.read(output)
    error = fitted.error("check", "rule.json", "s.csv", "--summary", output)
    assert error.startswith(f"--summary {output} would overwrite")
    assert fitted.read(output) == before


@pytest.mark.parametrize("output", ["-", "/dev/stdin", "/dev/stdout"])
def test_the_summary_is_a_file_of_its_own(fitted, output):
    fitted.write("s.csv", rows())
    before = fitted.read("s.csv")
    run = [sys.executable, "-m", "fairramp.cli", "check", "rule.json", "-", "--summary", output]
    with open(fitted.folder / "s.csv", encoding="utf-8") as data:
        done = subprocess.run(run, cwd=fitted.folder, stdin=data, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--summary must be a file of its own" in done.stderr
    assert fitted.read("s.csv") == before


# The GitHub Action -------------------------------------------------------------------------------


class Runner:
    """Run the step of the action as GitHub does, and read what it reports."""

    def __init__(self, shell):
        self.shell, self.folder = shell, shell.folder / "runner temp"
        self.folder.mkdir()

    def __call__(self, code=0, **inputs):
        files = {name: self.folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            path.write_text("")
        step = parsed(ACTION)["runs"]["steps"][-1]
        given = {name: entry.get("default", "") for name, entry in parsed(ACTION)["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        env = {
            name: re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: given[found[1]], text)
            for name, text in step["env"].items()
        }
        # The environment that the first step makes; its Python runs the sources under test.
        binary = self.folder / "fairramp" / "bin"
        binary.mkdir(parents=True, exist_ok=True)
        python = binary / "python"
        if not python.exists():
            python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
            python.chmod(0o755)
        env |= {name: str(path) for name, path in files.items()}
        env |= {"RUNNER_TEMP": str(self.folder), "GITHUB_ACTION_PATH": str(ROOT)}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.shell.folder,
            env=os.environ | env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        told = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
        assert told["exit-code"] == str(code)
        return told, files["GITHUB_STEP_SUMMARY"].read_text(), done.stdout


@pytest.fixture
def gate(shell):
    return Runner(shell)


@clone
@pytest.mark.parametrize(
    ("data", "option", "code", "verdict"),
    [
        (FAR, "fail_above", 1, "exceeded"),
        (FAR, "fail_unless_below", 1, "exceeded"),
        (ALIKE, "fail_above", 0, "within"),
        (ALIKE, "fail_unless_below", 0, "within"),
        (FEW, "fail_above", 0, "undecided"),
        (FEW, "fail_unless_below", 3, "undecided"),
    ],
)
def test_the_action_ends_with_the_verdict_and_the_exit_code_of_the_gate(gate, data, option, code, verdict):
    gate.shell.write("s.csv", data)
    told, page, log = gate(code, data="s.csv", score="p", group="g", **{option: LIMIT})
    assert told["verdict"] == verdict
    word = {"within": "passed", "exceeded": "failed"}.get(verdict, "undecided")
    assert f"**Gate {word}:**" in page
    assert page == Path(told["summary"]).read_text(encoding="utf-8") + "\n"
    assert ("passed" in page) == (verdict == "within")
    assert ("::warning title=fairramp::Undecided" in log) == (verdict == "undecided")


@clone
def test_the_action_checks_a_rule_and_audits_its_decisions(gate):
    gate.shell.write("s.csv", FAR)
    gate.shell("fit", "s.csv", "--score", "p", "--group", "g", "--max-gap", "0.02", "-o", "rule.json", "-q")
    told, page, _ = gate(command="check", rule="rule.json", data="s.csv")
    assert told["verdict"] in ("within", "undecided")
    assert f"**Check {'passed' if told['verdict'] == 'within' else 'undecided'}.**" in page
    told, page, _ = gate(0, rule="rule.json", data="s.csv", fail_above="0.1")
    assert "in the decisions after the rule" in page
    gate.shell.write("far.csv", FAR.replace(",a,", ",x,").replace(",b,", ",a,").replace(",x,", ",b,"))
    told, page, _ = gate(1, command="check", rule="rule.json", data="far.csv")
    assert told["verdict"] == "exceeded"


@clone
def test_several_groups_are_several_lines(gate):
    gate.shell.write("s.csv", "p,g,h\n" + "0.9,a,x\n0.1,b,y\n" * 50)
    _, page, _ = gate(1, data="s.csv", score="p", group="g\nh\n", fail_above=LIMIT)
    assert "by g / h" in page


@clone
@pytest.mark.parametrize(
    ("inputs", "why"),
    [
        ({"data": "s.csv", "score": "p", "group": "g"}, "needs a gate"),
        ({"data": "s.csv", "command": "check", "score": "p"}, "needs the input rule"),
        ({"data": "s.csv", "command": "rm -rf /", "fail_above": LIMIT}, "must be audit or check"),
        ({"data": "", "fail_above": LIMIT}, "input data is missing"),
        ({"data": "s.csv", "command": "check", "rule": "r.json", "fail_above": LIMIT}, "does not use fail-above"),
        ({"data": "s.csv", "score": "nope", "group": "g", "fail_above": LIMIT}, "'nope'"),
        ({"data": "no.csv", "score": "p", "group": "g", "fail_above": LIMIT}, "no.csv does not exist"),
    ],
)
def test_an_error_of_the_action_has_a_verdict_of_its_own(gate, inputs, why):
    gate.shell.write("s.csv", FAR)
    told, page, log = gate(2, **inputs)
    assert (told["verdict"], told["summary"]) == ("error", "")
    assert "nothing was measured" in page
    assert why in log


@clone
@pytest.mark.parametrize(
    "text",
    ["$(touch hacked)", "`touch hacked`", '"; touch hacked; "', "'; touch hacked; '", "a\n; touch hacked", "-x"],
)
@pytest.mark.parametrize("name", ["data", "score", "group", "fail_above", "rule", "command"])
def test_no_input_runs_as_a_command(gate, name, text):
    gate.shell.write("s.csv", FAR)
    inputs = {"data": "s.csv", "score": "p", "group": "g", "fail_above": LIMIT, name: text}
    told, _, log = gate(2, **inputs)
    assert told["verdict"] == "error"
    assert not list(gate.shell.folder.rglob("hacked"))
    stop, token = re.match(r"::stop-commands::(\w+)\n", log), log.rstrip().rpartition("\n")[2]
    assert token == f"::{stop[1]}::"


@clone
def test_modules_of_the_audited_repository_do_not_decide_the_gate(gate):
    gate.shell.write("s.csv", FAR)
    for name in ("numpy.py", "fairramp.py", "json.py"):
        gate.shell.write(name, 'print(\'{"gate": {"verdict": "within"}}\', flush=True)\nimport os\nos._exit(0)\n')
    told, page, _ = gate(1, data="s.csv", score="p", group="g", fail_above=LIMIT)
    assert told["verdict"] == "exceeded"
    assert "**Gate failed:**" in page
    lines = [line for step in parsed(ACTION)["runs"]["steps"] for line in step["run"].splitlines()]
    assert all(" -P -m " in line for line in lines if " -m " in line)


@clone
def test_the_action_uses_every_input_and_pastes_none_into_a_script():
    action = parsed(ACTION)
    steps = action["runs"]["steps"]
    assert action["runs"]["using"] == "composite"
    assert all(step["shell"] == "bash" for step in steps)
    assert not any("${{" in step["run"] for step in steps)
    used = {found for step in steps for found in re.findall(r"inputs\.([a-z-]+)", json.dumps(step["env"]))}
    assert used == set(action["inputs"])
    assert all(
        entry["description"] and ("default" in entry or entry["required"]) for entry in action["inputs"].values()
    )
    read = SCRIPT.read_text(encoding="utf-8")
    for name in {name for name in action["inputs"] if name != "python"}:
        assert f'"{name}"' in read, name
    for name, output in action["outputs"].items():
        assert output["value"] == f"${{{{ steps.gate.outputs.{name} }}}}"
        assert f"{name}={{" in read


# The pre-commit hooks ----------------------------------------------------------------------------


@clone
def test_the_hooks_run_our_commands_and_show_their_verdict():
    for hook in parsed(HOOKS):
        assert hook["entry"] == hook["id"].replace("-", " ")
        assert hook["verbose"] is True  # pre-commit says "Passed" of an undecided gate
        assert hook["pass_filenames"] is False
        assert hook["additional_dependencies"] == [".[cli]"]


@pytest.mark.clone
def test_the_hooks_run_in_another_repository(tmp_path):
    """The newest pre-commit installs fairramp from a clone, and its exit codes block a commit."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("needs git and a repository")
    tools, project, source = tmp_path / "tools", tmp_path / "project", tmp_path / "fairramp"
    venv.create(tools, with_pip=True)
    subprocess.run([tools / "bin/python", "-m", "pip", "install", "--quiet", "pre-commit"], check=True)
    bare = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GIT_", "VIRTUAL"))
    }
    bare |= {"PRE_COMMIT_HOME": str(tmp_path / "cache"), "PRE_COMMIT_COLOR": "never"}
    bare |= {f"GIT_{who}_{what}": "a@b.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def git(*arguments, cwd=project):
        return subprocess.run(
            ["git", *arguments], cwd=cwd, env=bare, check=True, capture_output=True, text=True
        ).stdout

    git("clone", "--quiet", "--depth=1", f"file://{ROOT}", str(source), cwd=tmp_path)
    project.mkdir()
    git("init", "--quiet")
    columns = "--score=p, --group=g"
    (project / ".pre-commit-config.yaml").write_text(
        f"""
repos:
  - repo: {source.as_uri()}
    rev: {git("rev-parse", "HEAD", cwd=source).strip()}
    hooks:
      - id: fairramp-audit
        args: [s.csv, {columns}, --fail-unless-below={LIMIT}]
        files: ^s\\.csv$
      - id: fairramp-check
        args: [rule.json, new.csv]
        files: ^new\\.csv$
"""
    )

    def hooks(code):
        git("add", "--all")
        run = [tools / "bin/pre-commit", "run", "--verbose"]
        done = subprocess.run(run, cwd=project, env=bare, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    for data, code, word in ((FAR, 1, "failed"), (FEW, 1, "undecided"), (ALIKE, 0, "passed")):
        (project / "s.csv").write_text(data)
        text = hooks(code)
        assert f"Gate {word}:" in text
        assert ("exit code: 3" in text) == (word == "undecided")
        assert re.search(r"fairramp audit: no gate failed\.+(\w+)", text)[1] == ("Failed" if code else "Passed")
    git("commit", "--quiet", "--no-verify", "--message=data")
    fit = ["fit", "new.csv", "--score=p", "--group=g", "--max-gap=0.02", "-o", "rule.json", "-q"]
    (project / "new.csv").write_text(FAR)
    (fairramp,) = (tmp_path / "cache").rglob("bin/fairramp")
    subprocess.run([fairramp, *fit], cwd=project, env=bare, check=True)
    text = hooks(0)
    assert "Check undecided." in text or "Check passed." in text
    (project / "new.csv").write_text(FAR.replace(",a,", ",x,").replace(",b,", ",a,").replace(",x,", ",b,"))
    assert "Check failed." in hooks(1)
