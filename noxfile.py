"""Test every supported environment, from the oldest versions to the newest.

    nox -l                     list the sessions
    nox -s oldest              run one of them
    nox -s release             build and check the packages of a release
    make nox                   run all of them; Python versions that are not installed are skipped
    PYENV_VERSION=3.11.7:3.12.1:3.13.0 make nox        the same with pyenv

The oldest versions are read from pyproject.toml, so a lower bound that does not work fails here.
"""

import os
import re
import shutil
import tempfile
import tomllib
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["packages", "oldest", "bare", "everything"]

HERE = Path(__file__).parent
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
PYTHONS = ("3.11", "3.12", "3.13")
#: The tests need these; tests that need more are skipped.
TOOLS = ("pytest>=8.3", "hypothesis>=6.120")
#: Tests that depend most on other libraries or on which correctness depends; about a minute.
CORE = (
    "tests/test_decisions.py",
    "tests/test_labels.py",
    "tests/test_estimator.py",
    "tests/test_optimality.py",
    "tests/test_public.py",
    "tests/cli/test_commands.py",
)
#: What must work on Windows and macOS. A test in them that cannot is marked `posix`, with the reason.
PORTABLE = (
    *CORE,
    "tests/cli/test_failures.py",
    "tests/cli/test_platforms.py",
    "tests/test_datasets.py",
    "tests/test_documents.py",
    "tests/test_rule.py",
    "tests/test_summaries.py",
    "tests/test_tables_written.py",
)
_FIT = "import fairramp; d = fairramp.datasets.load_adult_scores(); r = fairramp.fit_rule(d.score, d.sex); "
#: Extras, each with a program that needs it.
EXTRAS = {
    "report": _FIT + "r.report(d.score, d.sex).save('report.html')",
    "export": _FIT + "r.to_onnx('rule.onnx'); r.to_sql('duckdb', score='p', group='g')",
    "spark": "import pyspark, pyarrow",
    "dask": "import dask.dataframe",
    "web": "import fairramp.web.serve.run",
    "torch": "",
    "mlflow": "",
    "vision": "",
    "all": "import fairramp.cli.run, fairramp.web.serve.run, dask.dataframe, pyspark, onnx, altair",
}
#: More than a gigabyte each.
LARGE = ("torch", "mlflow", "vision")


def lowest(requirement: str) -> str:
    """Return the constraint that allows only the lowest version of a requirement.

    >>> lowest("dask[dataframe]>=2025.1")
    'dask==2025.1'
    """
    name, version = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement).groups()
    return f"{name}=={version}"


def requirements() -> list[str]:
    """Return the requirements of the library and its extras, except the large ones."""
    extras = PROJECT["project"]["optional-dependencies"]
    optional = [
        r for name, group in extras.items() if name not in ("all", "mlflow", "torch", "vision") for r in group
    ]
    return [*PROJECT["project"]["dependencies"], *optional]


def dev(*names: str) -> list[str]:
    """Return requirements of the tests, by name."""
    group = PROJECT["dependency-groups"]["dev"]
    return [r for r in group if isinstance(r, str) and re.match(r"[\w-]+", r)[0] in names]


@nox.session(python="3.11")
def oldest(session: nox.Session) -> None:
    """Test the lowest version of every dependency; extra arguments go to pytest."""
    tables = dev("pandas", "polars", "fairlearn", "cvxpy", "statsmodels", "openpyxl")
    everything = list(dict.fromkeys([*requirements(), *tables]))
    if "core" in session.posargs:
        everything = [r for r in everything if not r.startswith(("pyspark", "onnx", "dask", "sqlglot"))]
    with tempfile.TemporaryDirectory() as folder:
        limits = Path(folder) / "oldest.txt"
        limits.write_text("\n".join(lowest(r) for r in everything) + "\n", encoding="utf-8")
        session.install("--constraint", str(limits), *everything, *TOOLS, ".")
    session.run("pip", "check")
    arguments = [a for a in session.posargs if a != "core"]
    quick = CORE if "core" in session.posargs else ("tests",)
    # The newest pytest warns about how the oldest scikit-learn passes its checks.
    tolerated = ("-W", "ignore:Passing a non-Collection iterable")
    session.run("pytest", "-q", *tolerated, *(arguments or quick))


@nox.session(python=PYTHONS)
def bare(session: nox.Session) -> None:
    """Test without extras; tests that need them are skipped."""
    session.install(*TOOLS, ".")
    session.run("pip", "check")
    session.run("pytest", "-q", *(session.posargs or ["tests"]))


@nox.session(python=PYTHONS)
def everything(session: nox.Session) -> None:
    """Test with all extras in their newest versions."""
    session.install("--upgrade", "pip")
    session.install("--editable", ".[all]")  # doctests run where the modules are imported from
    session.run("python", "-m", "pip", "install", "--quiet", "--group", "dev")
    session.run("pip", "check")
    session.run("pytest", "-q", *session.posargs)


@nox.session(python=PYTHONS)
def portable(session: nox.Session) -> None:
    """Test what users of every system need; other systems than Linux run only this."""
    session.install(*TOOLS, *dev("pandas", "polars", "pyyaml"), ".[cli,report,export,web]")
    session.run("pip", "check")
    session.run("pytest", "-q", *(session.posargs or PORTABLE))


@nox.session(python=PYTHONS)
def packages(session: nox.Session) -> None:
    """Install the wheel and the source archive in empty environments, without extras and with each of them.

    `-- wheel` installs only the wheel, alone and with `cli`. Large extras are resolved, not installed.
    """
    session.install("build")
    folder = Path(session.create_tmp()).resolve()
    session.run("python", "-m", "build", "--quiet", "--outdir", str(folder), str(HERE))
    example = folder / "example.py"
    example.write_text(readme_example(), encoding="utf-8")
    [wheel], [archive] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    quick = "wheel" in session.posargs
    places = [(wheel, extra) for extra in ("", "cli", *(() if quick else EXTRAS))]
    places += [] if quick else [(archive, ""), (archive, "cli")]
    for package, extra in places:
        place = folder / f"{package.suffix[1:]}-{extra or 'bare'}"
        wanted = f"{package}[{extra}]" if extra else str(package)
        session.run("python", "-m", "venv", "--clear", str(place), silent=True)
        programs = place / ("Scripts" if os.name == "nt" else "bin")
        python = str(programs / "python")
        if extra in LARGE:
            session.run(python, "-m", "pip", "install", "-q", "--dry-run", wanted, external=True)
            continue
        session.run(python, "-m", "pip", "install", "-q", "--no-compile", wanted, external=True)
        session.run(python, "-m", "pip", "check", external=True)
        with session.chdir(place):  # away from the sources, so that the installed package is imported
            if extra == "cli":
                session.run(str(programs / "fairramp"), "demo", external=True, silent=True)
                assert (place / "fairramp-demo" / "rule.json").exists()
            elif extra:
                session.run(python, "-c", EXTRAS[extra], external=True, silent=True)
            else:
                said = session.run(python, "-W", "error", str(example), external=True, silent=True)
                assert "selection rates from" in said, said
                said = session.run(
                    str(programs / "fairramp"), "demo", external=True, silent=True, success_codes=[2]
                )
                assert "pip install 'fairramp[cli]'" in said, said
        if not quick:
            shutil.rmtree(place)  # Spark alone needs 0.5 GB
    for package in (wheel, archive):
        package.unlink()


@nox.session
def release(session: nox.Session) -> None:
    """Build twice, compare, check and describe the packages; the files are in `dist`. See RELEASING.md."""
    tools = ("build>=1.2", "twine>=6.1", "readme-renderer[md]>=44", "cyclonedx-bom>=7.0")
    session.install(*PROJECT["build-system"]["requires"], *tools)
    session.run("python", "scripts/release.py", *session.posargs)


def readme_example() -> str:
    """Return the first Python example of the README."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    return re.search(r"## Six lines of Python\n.*?```python\n(.*?)```", text, re.DOTALL)[1]
