"""Imports follow the layers, and the check for this can fail."""

import ast
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fairramp"
PACKAGES = (
    "core",
    "data",
    "rule",
    "fit",
    "fit/criteria",
    "measure",
    "deploy",
    "show",
    "sklearn",
    "compat",
    "web",
    "cli",
)

LATE = "def late():\n    from fairramp.{0} import {1}\n    return {1}"


def linted(folder):
    """Run import-linter on a copy of the package."""
    command = [
        pathlib.Path(sys.executable).parent / "lint-imports",
        "--no-cache",
        "--config",
        ROOT / "pyproject.toml",
    ]
    return subprocess.run(command, cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True)


@pytest.fixture
def copied(tmp_path):
    shutil.copytree(SOURCE, tmp_path / "fairramp", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_layers_hold(copied):
    found = linted(copied)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize(
    ("module", "line", "reason"),
    [
        (
            "core/curve.py",
            "from fairramp.data import groups",
            "fairramp.core is not allowed to import fairramp.data",
        ),
        ("rule/draws.py", "from fairramp.fit import sgd", "fairramp.rule is not allowed to import fairramp.fit"),
        (
            "measure/hidden.py",
            "def late():\n    from fairramp.deploy import plan\n    return plan",
            "fairramp.measure is not allowed to import fairramp.deploy",
        ),
        ("core/checks.py", "from fairramp.core import curve", "No cycles are allowed in fairramp.core"),
        (
            "fit/problem.py",
            "def late():\n    from fairramp.fit import fit\n    return fit",
            "No cycles are allowed",
        ),
    ],
    ids=["upward", "upward from rule", "sideways in a function", "cycle", "cycle through a function"],
)
def test_upward_import_or_cycle_fails_the_check(copied, module, line, reason):
    path = copied / "fairramp" / module
    path.write_text(f"{path.read_text()}\n\n{line}\n")
    found = linted(copied)
    assert found.returncode == 1
    assert reason in " ".join(found.stdout.split())


def test_only_verbs_import_upward():
    text = (ROOT / "pyproject.toml").read_text()
    exempt = [line for line in text.splitlines() if line.startswith("ignore_imports")]
    verbs = '"fairramp.rule.verbs -> fairramp.**", "fairramp.rule.class_verbs -> fairramp.**"'
    assert set(exempt) == {f"ignore_imports = [{verbs}]"}


@pytest.mark.parametrize("package", PACKAGES)
def test_package_docstring_states_purpose_and_limits(package):
    text = ast.get_docstring(ast.parse((SOURCE / package / "__init__.py").read_text()))
    assert len(text.splitlines()) <= 4
    assert "Must not import" in text or package == "cli"  # nothing is above it


def test_root_has_few_modules_and_none_is_long():
    assert len(list(SOURCE.glob("*.py"))) <= 10
    long = {path.name: n for path in SOURCE.rglob("*.py") if (n := len(path.read_text().splitlines())) > 500}
    assert not long


def test_messages_are_templates_without_f_strings():
    """A formatted message could contain braces from a label, and the command line could not reword it."""
    kinds = {
        "FairrampError",
        "InputError",
        "UnseenGroupError",
        "RuleFormatError",
        "SummaryFormatError",
        "MonitorFormatError",
        "warn",
    }
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds:
                texts = [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("rule", "remedy"))]
                parts = [part for text in texts for part in ast.walk(text)]
                if any(isinstance(part, ast.JoinedStr) for part in parts):
                    found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert not found
