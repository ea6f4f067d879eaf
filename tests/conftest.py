import os
import re
import shutil
import sys
from importlib.util import find_spec

import pytest
from hypothesis import settings

from shell import KEY, Shell, rows

# In CI, cases are the same in every run: a change fails by its own cases. Other runs look for new ones.
FIXED = bool(os.environ.get("CI"))
settings.register_profile("default", deadline=None, max_examples=100, derandomize=FIXED)
settings.register_profile("many", deadline=None, max_examples=5000)  # --hypothesis-profile=many
settings.register_profile("quick", deadline=None, max_examples=150, derandomize=FIXED)  # tests/fuzz in CI
settings.register_profile("fuzz", deadline=None, max_examples=7000, print_blob=True)  # make fuzz
settings.load_profile("default")


# Tests that need a missing optional package are skipped, naming the package. On Windows, so are tests marked
# `posix`, with their reason. No other test is.

OPTIONAL = (
    *("altair", "cvxpy", "cyclopts", "dask", "duckdb", "fairlearn", "jinja2", "jsonschema", "markdown_it"),
    "keras",
    "mlflow",
    *(
        "onnx",
        "onnxruntime",
        "openpyxl",
        "pandas",
        "playwright",
        "polars",
        "psycopg",
        "pyarrow",
        "pyspark",
        "python_calamine",
        "rich",
        "skl2onnx",
        "sqlglot",
    ),
    *("schemathesis", "starlette", "statsmodels", "torch", "uvicorn", "vl_convert"),
)
ABSENT = frozenset(name for name in OPTIONAL if find_spec(name) is None)


def _absent(text):
    """Name of the missing package that caused a failure, or None."""
    names = re.findall(r"No module named '(\w+)", text)
    if "pip install" in text:  # the library's own message
        said = text.partition("pip install")[0].rpartition(" with: ")[0]  # without the path of Python
        names += re.findall(r"\w+", said.replace("vl-convert-python", "vl_convert"))
    return next((name for name in names if name in ABSENT), None)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    name = _absent(str(report.longrepr)) if ABSENT and report.failed else None
    if name is not None:
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: {name} is not installed")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    name = _absent(str(call.excinfo.value)) if ABSENT and report.failed and call.excinfo else None
    if name is not None:
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {name} is not installed")
    return report


#: Tests of commands, pages, reports and all engines take most of the time: `make test-extended`, not `make test`.
EXTENDED = (
    *("tests/cli/", "tests/statistical/", "tests/vision/", "tests/web/"),
    *("tests/contracts/test_frames.py", "tests/export/test_sql_unrun.py"),
    *(
        f"tests/test_{name}"
        for name in (
            *("explore", "gates", "notebooks", "pages", "report", "reproduction", "rule_page", "sgd", "support"),
            "uci",
        )
    ),
)


def pytest_addoption(parser):
    parser.addoption("--part", choices=("quick", "extended"), help="only the quick tests, or only the others")


def pytest_collection_modifyitems(config, items):
    """Skip, by name, what Windows cannot do; keep the chosen part."""
    for item in items if os.name != "posix" else ():
        if mark := item.get_closest_marker("posix"):
            item.add_marker(pytest.mark.skip(reason=f"not on Windows: {mark.args[0]}"))
    if part := config.getoption("--part"):
        parts = {"quick": [], "extended": []}
        for item in items:
            parts["extended" if item.nodeid.startswith(EXTENDED) else "quick"].append(item)
        items[:] = parts.pop(part)
        config.hook.pytest_deselected(items=[item for others in parts.values() for item in others])


@pytest.fixture(scope="session", autouse=True)
def _stop_spark_after_the_tests():
    """Leave no Java process running."""
    yield
    if "engines" in sys.modules:
        sys.modules["engines"].stop_spark()


@pytest.fixture
def binned(monkeypatch):
    """Send even a handful of rows through bins and refinement, in blocks of 16 rows."""
    monkeypatch.setattr("fairramp.data.rows.SORTED_ROWS", 0)
    monkeypatch.setattr("fairramp.data.rows.SORTED_PER_GROUP", 0)
    monkeypatch.setattr("fairramp.data.rows.SINGLE_ROWS", 0)
    monkeypatch.setattr("fairramp.data.rows.FINER_BINS", 64)
    monkeypatch.setattr("fairramp.core.blocks.BLOCK", 16)


# The command line.


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path)


@pytest.fixture(scope="session")
def _fitted(tmp_path_factory):
    shell = Shell(tmp_path_factory.mktemp("fitted"))
    shell.write("scores.csv", rows())
    shell.write("key.txt", KEY + "\n")
    os.chmod(shell.folder / "key.txt", 0o600)
    shell("fit", "scores.csv", "--score", "p", "--group", "g", "--max-gap", "0.02", "-o", "rule.json", "-q")
    return shell.folder


@pytest.fixture
def fitted(_fitted, shell):
    """Folder with scores, a rule and a key."""
    shutil.copytree(_fitted, shell.folder, dirs_exist_ok=True)
    return shell


@pytest.fixture(scope="session")
def _demo(tmp_path_factory):
    shell = Shell(tmp_path_factory.mktemp("demo"))
    return shell.folder, shell("demo").stdout


@pytest.fixture
def demo(_demo, shell):
    """Folder in which the demo ran, and its output."""
    shutil.copytree(_demo[0], shell.folder, dirs_exist_ok=True)
    return shell, _demo[1]
