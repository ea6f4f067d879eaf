"""Files that help contributors agree with the files they describe."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOOKS = ROOT / ".pre-commit-config.yaml"
FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"
#: The source archive contains neither hooks nor forms.
clone = pytest.mark.skipif(not HOOKS.exists(), reason="not a clone of the repository")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def parsed(path: Path):
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def section(page: str, heading: str) -> str:
    return re.search(rf"^{heading}\n(.*?)(?=^#|\Z)", page, re.MULTILINE | re.DOTALL)[1]


def test_contributing_lists_every_make_target_once():
    shown = re.findall(r"^([a-z-]+):.*##", read("Makefile"), re.MULTILINE)  # what `make help` prints
    table = section(read("CONTRIBUTING.md"), "## Make targets")
    rows = re.findall(r"^\| `make ([a-z-]+)` \|", table, re.MULTILINE)
    assert len(shown) > 30
    assert sorted(rows) == sorted(shown)


@clone
def test_hooks_are_local_and_run_the_pinned_ruff():
    repos = parsed(HOOKS)["repos"]
    assert [repo["repo"] for repo in repos] == ["local"]
    asked = {r for hook in repos[0]["hooks"] for r in hook.get("additional_dependencies", []) if "ruff" in r}
    dev = tomllib.loads(read("pyproject.toml"))["dependency-groups"]["dev"]
    assert asked == {r for r in dev if r.startswith("ruff")}


@clone
@pytest.mark.parametrize("name", ["bug_report.yml", "feature_request.yml"])
def test_an_issue_form_is_complete(name):
    form = parsed(FORMS / name)
    assert form["name"]
    assert form["description"]
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in fields}) == len(fields) > 0
    assert all(part["attributes"]["label"] for part in fields)
    assert "personal data" in form["body"][0]["attributes"]["value"]


@clone
def test_every_issue_form_is_tested_and_blank_issues_are_allowed():
    assert {path.name for path in FORMS.iterdir()} == {"bug_report.yml", "feature_request.yml", "config.yml"}
    assert parsed(FORMS / "config.yml")["blank_issues_enabled"] is True


def test_the_changelog_has_the_headings_of_its_format():
    page = read("CHANGELOG.md")
    versions = re.findall(r"^## (.*)$", page, re.MULTILINE)
    newest, *released = versions
    assert re.fullmatch(r"\d+\.\d+\.\d+ - (unreleased|\d{4}-\d\d-\d\d)", newest)
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", v) for v in released)
    kinds = set(re.findall(r"^### (.*)$", page, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_links_of_the_changelog_work_anywhere():
    # The documentation includes this file from another folder.
    assert all(link.startswith("https://") for link in re.findall(r"\]\(([^)]*)\)", read("CHANGELOG.md")))
