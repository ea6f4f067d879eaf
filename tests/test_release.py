"""What a release says about itself agrees. `make release-check` builds the packages and checks those."""

import ast
import re
import tomllib

import pytest

import fairramp
from pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = ROOT / ".github" / "workflows"


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def parsed(name):
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed")
    return yaml.safe_load((WORKFLOWS / name).read_text(encoding="utf-8"))


def assigned(name):
    """The expression that noxfile.py assigns to a name."""
    for node in ast.parse(read("noxfile.py")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return node.value
    raise KeyError(name)


def pythons():
    return list(ast.literal_eval(assigned("PYTHONS")))


def test_every_place_has_the_same_version():
    version = fairramp.__version__
    assert re.search(r"^version: (.*)$", read("CITATION.cff"), re.MULTILINE)[1] == version
    assert re.search(r'^version: "(.*)"$', read("dbt/dbt_project.yml"), re.MULTILINE)[1] == version
    assert re.search(r"^## (\S+) - ", read("CHANGELOG.md"), re.MULTILINE)[1] == version


def test_links_of_the_readme_work_on_pypi():
    page = read("README.md")
    count = len(re.findall(r"\]\((?!https:)", page))
    for rule in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(rule["pattern"], rule["replacement"], page)
    links = re.findall(r"(!?)\[[^]]*\]\(([^)]*)\)", page)
    assert all(link.startswith("https://") for _, link in links)
    ours = re.compile(
        r"https://(raw\.githubusercontent|github)\.com/OWNER/fairramp/(blob/)?v\$HFPR_VERSION/([^#]*)(#.*)?"
    )
    found = [(picture, ours.fullmatch(link)) for picture, link in links if "/OWNER/" in link]
    assert len(found) == count > 20
    for picture, link in found:
        # Pictures are read from one host, pages from the other.
        assert (link[1] == "raw.githubusercontent") is bool(picture) is not bool(link[2])
        assert (ROOT / link[3]).exists(), link[3]
    assert "pip install 'fairramp[cli,report]'" in page


def test_the_repository_has_one_address():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "pyproject.toml"]
    found = {
        owner
        for path in pages
        for owner in re.findall(r"github\.com/([\w-]+)/fairramp\b", path.read_text(encoding="utf-8"))
    }
    assert len(found) == 1


def test_every_extra_is_installed_by_the_test_of_the_packages():
    names = [ast.literal_eval(key) for key in assigned("EXTRAS").keys]
    assert sorted([*names, "cli"]) == sorted(PROJECT["project"]["optional-dependencies"])
    assert set(ast.literal_eval(assigned("LARGE"))) < set(names)


def test_pythons_are_those_of_the_classifiers():
    stated = [c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"] if ":: 3." in c]
    assert stated == pythons()
    assert PROJECT["project"]["requires-python"] == f">={stated[0]}"


def test_workflows_cover_every_python_and_system():
    jobs = parsed("tests.yml")["jobs"]
    for name in ("portable", "packages"):
        assert jobs[name]["strategy"]["matrix"]["python"] == pythons()
    systems = jobs["portable"]["strategy"]["matrix"]["system"]
    assert {name.partition("-")[0] for name in systems} == {"ubuntu", "windows", "macos"}
    sessions = re.findall(
        r"nox -s (.*)", "\n".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    )
    defined = {n.name for n in ast.parse(read("noxfile.py")).body if isinstance(n, ast.FunctionDef)}
    asked = {word for line in sessions for word in re.findall(r'"(\w+)-', line)}
    assert asked == {"portable", "packages", "bare"} <= defined


@pytest.mark.parametrize("name", ["tests.yml", "release.yml"])
def test_a_workflow_runs_only_pinned_actions_with_few_rights(name):
    content = parsed(name)
    assert content["permissions"] in ({}, {"contents": "read"})
    steps = [step for job in content["jobs"].values() for step in job["steps"]]
    uses = [step["uses"] for step in steps if "uses" in step]
    assert uses
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action) for action in uses)
    for step in steps:
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
        assert "${{" not in step.get("run", "").replace("${{ matrix.python }}", "")  # text could run as code


def test_only_the_job_that_publishes_may_publish():
    jobs = parsed("release.yml")["jobs"]
    assert [n for n, job in jobs.items() if job["permissions"].get("id-token")] == ["pypi"]
    assert jobs["pypi"]["environment"] == "pypi"
    assert jobs["pypi"]["needs"] == "build"
    assert any("nox -s release -- " in step.get("run", "") for step in jobs["build"]["steps"])
