"""Whatever needs an extra says how to install it, in one sentence, wherever it is first used."""

import shlex
import subprocess
import sys

import pytest

#: Hides libraries from every import, as if they were not installed, and makes a few objects to use.
HIDDEN = """
import sys, warnings
warnings.simplefilter("ignore")
class Without:
    def __init__(self, finder): self.finder = finder
    def __getattr__(self, name): return getattr(self.finder, name)
    def find_spec(self, name, *more):
        return None if name.partition(".")[0] in hidden else self.finder.find_spec(name, *more)
sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
for name in [name for name in sys.modules if name.partition(".")[0] in hidden]:
    del sys.modules[name]
import fairramp
from fairramp import ClassRule, Ramp, Rule
rule = Rule(("A", "B"), (Ramp(0.5, 0.1), Ramp(0.4, 0.1)))
classes = ClassRule(("A", "B"), ("low", "mid", "high"), ((0.0, 0.0, 0.0), (0.05, 0.05, -0.1)), 0.1)
rows = [0.2, 0.7] * 40, ["A", "B"] * 40
"""
#: By what is done: the hidden library, the extra that has it, and the code.
USES = {
    "plot": ("altair", "report", "rule.plot()"),
    "report": ("altair", "report", "rule.report(*rows).html"),
    "report, template": ("markupsafe", "report", "rule.report(*rows).html"),
    "report, pictures": ("vl_convert", "report", "rule.report(*rows).html"),
    "evidence": ("vl_convert", "report", "fairramp.evidence(*rows, rule=rule, report=True).save('folder')"),
    "SQL": ("sqlglot", "export", "rule.to_sql('duckdb', score='p', group='g')"),
    "dbt": (
        "sqlglot",
        "export",
        "from fairramp.deploy.dbt import to_macro; to_macro(rule, 'fair', score='p', group='g')",
    ),
    "ONNX": ("onnx", "export", "rule.to_onnx()"),
    "ONNX, classes": ("onnx", "export", "classes.to_onnx()"),
    "ONNX, appended": ("onnx", "export", "from fairramp.deploy.onnx import append_to; append_to(rule, 'm.onnx')"),
    "torch": ("torch", "torch", "rule.to_torch()"),
    "torch, classes": ("torch", "torch", "classes.to_torch()"),
    "torch module": ("torch", "torch", "import fairramp.deploy.torch"),
    "MLflow": ("mlflow", "mlflow", "from fairramp.mlflow import log_rule; log_rule(rule)"),
    "MLflow, reading": ("mlflow", "mlflow", "from fairramp.mlflow import load_rule; load_rule('models:/x/1')"),
    "explore": ("uvicorn", "web", "import fairramp.web.listen"),
    "serve": ("starlette", "web", "import fairramp.web.listen"),
    "command line": ("cyclopts", "cli", "from fairramp.cli import main; main()"),
    "command line, tables": ("duckdb", "cli", "from fairramp.cli import main; main()"),
    "command line, text": ("rich", "cli", "from fairramp.cli import main; main()"),
    "Spark": ("pyarrow", "spark", "from fairramp.data.engines.spark import Spark; Spark().check(None)"),
    "Dask": ("dask", "dask", "from fairramp.data.engines.dask import Dask; Dask().small_table(None, {})"),
    "Dask, pandas": (
        "pandas",
        "dask",
        "from fairramp.data.engines.dask import Dask; Dask().small_table(None, {})",
    ),
}
#: Libraries that belong to no extra: any of them can be installed alone.
ALONE = {
    "to_pandas": ("pandas", "rule.table().to_pandas()"),
    "to_polars": ("polars", "rule.table().to_polars()"),
    "to_arrow": ("pyarrow", "rule.table().to_arrow()"),
    "Fairlearn's plot": (
        "matplotlib",
        "import numpy as np\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "from fairramp.compat.fairlearn import ThresholdOptimizer, plot_threshold_optimizer\n"
        "X, y, sex = np.arange(40.0)[:, None], np.arange(40) % 2, ['a', 'a', 'b', 'b'] * 10\n"
        "model = ThresholdOptimizer(estimator=LogisticRegression()).fit(X, y, sensitive_features=sex)\n"
        "plot_threshold_optimizer(model)",
    ),
}


#: What every public function that takes a table says about something else, whatever is installed.
NO_TABLES = {
    "fit_frame, path": "fairramp.fit_frame('x.csv', score='p', group='g')",
    "fit_frame, dict": "fairramp.fit_frame({'p': rows[0], 'g': rows[1]}, score='p', group='g')",
    "fit_frame, classes": "fairramp.fit_frame('x.csv', class_score={'a': 'p', 'b': 'q'}, group='g')",
    "summarize_frame": "fairramp.summarize_frame('x.csv', score='p', group='g')",
    "rule.apply": "rule.apply('x.csv', score='p', group='g')",
    "ClassRule.apply": "classes.apply('x.csv', group='g')",
}


def without(libraries, code, folder):
    """A finished Python without some libraries."""
    return subprocess.run(
        [sys.executable, "-c", f"hidden = {set(libraries)!r}\n{HIDDEN}\n{code}"],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )


def last_line(library, code, folder):
    """The last line of the error of a Python without the library."""
    done = without([library], code, folder)
    assert done.returncode != 0, done.stdout
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("use", USES)
def test_a_missing_library_is_named_with_the_extra_that_has_it(use, tmp_path):
    library, extra, code = USES[use]
    line = last_line(library, code, tmp_path)
    assert library in line.replace("vl-convert-python", "vl_convert")
    assert f" with: {shlex.quote(sys.executable)} -m pip install 'fairramp[{extra}]'" in line


@pytest.mark.parametrize("use", ALONE)
def test_a_missing_library_of_no_extra_is_named_with_its_own_command(use, tmp_path):
    library, code = ALONE[use]
    line = last_line(library, code, tmp_path)
    assert line.endswith(f"{library} is not installed; install it with: pip install {library}.")


def test_every_public_name_loads_without_any_optional_library(tmp_path):
    optional = {library for library, *_ in [*USES.values(), *ALONE.values()]}
    done = without(optional, "for name in fairramp.__all__: getattr(fairramp, name)", tmp_path)
    assert not done.returncode, done.stderr


def test_a_table_in_memory_is_fitted_without_duckdb(tmp_path):
    code = (
        "import polars; fairramp.fit_frame(polars.DataFrame({'p': rows[0], 'g': rows[1]}), score='p', group='g')"
    )
    done = without(["duckdb"], code, tmp_path)
    assert not done.returncode, done.stderr


@pytest.mark.parametrize("use", NO_TABLES)
def test_what_is_not_a_table_is_told_what_is_one_whether_or_not_duckdb_is_installed(use, tmp_path):
    line = last_line("duckdb", NO_TABLES[use], tmp_path)
    assert "`frame` must be a pandas, polars, Arrow, Spark or Dask table" in line
