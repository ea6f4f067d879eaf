"""The public API is small, documented and quick to import."""

import doctest
import importlib
import inspect
import rlcompleter
import subprocess
import sys

import pytest

import fairramp

ERRORS = {
    "FairrampError",
    "FairrampWarning",
    "InputError",
    "MonitorFormatError",
    "RuleFormatError",
    "SummaryFormatError",
    "UnseenGroupError",
    "UnsupportedError",
}
MODULES = {"baselines", "bounds", "datasets"}
NAMES = ERRORS | {
    "Answer",
    "Asked",
    "Audit",
    "Bound",
    "Certificate",
    "Check",
    "ClassAudit",
    "ClassFrontier",
    "ClassRecord",
    "ClassRule",
    "ClassSelection",
    "Columns",
    "Evidence",
    "FitRecord",
    "Frontier",
    "GroupRates",
    "GroupModel",
    "GroupProbabilities",
    "GroupScores",
    "HiddenSplit",
    "Monitor",
    "Ramp",
    "RandomizedThresholdOptimizer",
    "Rates",
    "Report",
    "Rule",
    "SGD",
    "Selection",
    "Shortlist",
    "StreamingFit",
    "Table",
    "Tuned",
    "__version__",
    "audit",
    "audit_classes",
    "baselines",
    "bounds",
    "class_frontier",
    "datasets",
    "draws",
    "evidence",
    "fit_class_rule",
    "fit_frame",
    "fit_rule",
    "fit_summary",
    "frontier",
    "hidden_split",
    "rows_needed",
    "select",
    "summarize",
    "summarize_frame",
    "tune",
}


def test_public_names_are_these():
    assert set(fairramp.__all__) == NAMES
    assert all(hasattr(fairramp, name) for name in NAMES)


def test_dir_and_tab_completion_show_the_public_names_only():
    importlib.import_module("fairramp.compat.fairlearn")  # a submodule that was imported is no public name
    assert dir(fairramp) == sorted(NAMES)
    completer, found = rlcompleter.Completer({"fairramp": fairramp}), []
    while (word := completer.complete("fairramp.", len(found))) is not None:
        found.append(word.rstrip("("))
    assert set(found) == {f"fairramp.{name}" for name in NAMES if not name.startswith("_")}


def test_import_loads_neither_scikit_learn_nor_any_engine():
    code = "import sys, fairramp; print(' '.join(m.split('.')[0] for m in sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {
        "sklearn",
        "scipy",
        "pandas",
        "polars",
        "pyarrow",
        "duckdb",
        "dask",
        "pyspark",
        "altair",
        "torch",
        "onnx",
        "sqlglot",
        "mlflow",
    }
    assert heavy.isdisjoint(result.stdout.split())


@pytest.mark.parametrize("name", sorted(NAMES - MODULES - {"__version__"}))
def test_every_public_name_has_a_docstring(name):
    assert inspect.getdoc(getattr(fairramp, name))


@pytest.mark.parametrize("name", sorted(NAMES - ERRORS - MODULES - {"__version__"}))
def test_every_public_name_has_an_example(name):
    # `pytest --doctest-modules` runs the examples.
    assert doctest.DocTestParser().get_examples(inspect.getdoc(getattr(fairramp, name)))


#: Used by other modules, or explained in the docstring of their class.
PLAIN = {f"Columns.{name}" for name in ("blank", "given", "labels", "renamed", "with_classes")} | {
    *(
        f"ClassRule.{name}"
        for name in ("chances", "chances_of", "deciding", "drawn", "encode", "labels_of", "offsets_of")
    ),
    *(f"ClassRule.{name}" for name in ("probable", "reading_groups", "sample", "with_truth")),
    *(f"GroupProbabilities.{name}" for name in ("mix", "ordered", "take")),
    "Rule.chances",
    "Rule.check_attributes",
    "Rule.deciding",
    "Rule.encode",
    "Rule.filling",
    "Rule.knows",
    "Rule.probable",
    "Rule.ramps_of",
    "Rule.reading_groups",
    "Rule.sample",
    "Rule.with_truth",
}
SHELLS = {"RandomizedThresholdOptimizer", "Report", "ThresholdOptimizer"}
SUBMODULES = (
    "measure.bounds",
    "baselines",
    "datasets",
    "compat.fairlearn",
    "deploy.dbt",
    "deploy.onnx",
    "deploy.sql",
    "mlflow",
)


def named(kind):
    """Public names of the user-facing modules, or methods of the classes in them."""
    modules = [fairramp, *(importlib.import_module(f"fairramp.{name}") for name in SUBMODULES)]
    found = {f"{module.__name__}.{name}": getattr(module, name) for module in modules for name in module.__all__}
    if kind == "submodules":
        return {name: thing for name, thing in found.items() if callable(thing) and name.count(".") > 1}
    methods = {}
    for thing in found.values():
        if inspect.isclass(thing) and not issubclass(thing, Exception | Warning):
            members = {n: m for c in thing.__mro__ if "fairramp" in c.__module__ for n, m in vars(c).items()}
            for name, member in members.items():
                if not name.startswith("_") and (callable(member) or isinstance(member, classmethod | property)):
                    methods[f"{thing.__name__}.{name}"] = member
    return methods


@pytest.mark.parametrize("name", sorted(named("submodules")))
def test_every_submodule_name_has_an_example(name):
    assert doctest.DocTestParser().get_examples(inspect.getdoc(named("submodules")[name]))


@pytest.mark.parametrize("name", sorted(named("methods")))
def test_every_method_has_a_docstring_with_an_example(name):
    method = named("methods")[name]
    text = inspect.getdoc(method)
    assert text
    explained = isinstance(method, property) or name in PLAIN or name.split(".")[0] in SHELLS
    assert explained or doctest.DocTestParser().get_examples(text)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        fairramp.nonsense  # noqa: B018
