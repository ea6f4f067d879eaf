"""The public surface: small, documented, quick to import."""

import doctest
import inspect
import subprocess
import sys

import pytest

import fairramp

ERRORS = {
    "FairrampError",
    "FairrampWarning",
    "InputError",
    "RuleFormatError",
    "SummaryFormatError",
    "UnseenGroupError",
}
MODULES = {"baselines", "bounds", "datasets"}
NAMES = ERRORS | {
    "Audit",
    "Certificate",
    "Check",
    "Covariance",
    "FitRecord",
    "Frontier",
    "GroupScores",
    "HiddenSplit",
    "Ramp",
    "RandomizedThresholdOptimizer",
    "Report",
    "Rule",
    "SGD",
    "Selection",
    "StreamingFit",
    "Table",
    "Tuned",
    "__version__",
    "audit",
    "baselines",
    "bounds",
    "datasets",
    "draws",
    "fit_frame",
    "fit_rule",
    "fit_summary",
    "frontier",
    "hidden_split",
    "rows_needed",
    "summarize",
    "summarize_frame",
    "tune",
}


def test_public_names_are_these():
    assert set(fairramp.__all__) == NAMES
    assert all(hasattr(fairramp, name) for name in NAMES)


def test_import_brings_in_neither_scikit_learn_nor_any_engine():
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
    }
    assert heavy.isdisjoint(result.stdout.split())


@pytest.mark.parametrize("name", sorted(NAMES - MODULES - {"__version__"}))
def test_every_public_name_says_what_it_is(name):
    assert inspect.getdoc(getattr(fairramp, name))


@pytest.mark.parametrize("name", sorted(NAMES - ERRORS - MODULES - {"__version__"}))
def test_every_public_name_has_an_example(name):
    # That the examples run is checked by pytest --doctest-modules.
    assert doctest.DocTestParser().get_examples(inspect.getdoc(getattr(fairramp, name)))


@pytest.mark.parametrize(
    "method",
    [
        "probabilities",
        "decide",
        "apply",
        "table",
        "certificate",
        "check",
        "report",
        "plot",
        "to_onnx",
        "to_torch",
    ],
)
def test_every_method_of_a_rule_has_an_example(method):
    assert doctest.DocTestParser().get_examples(getattr(fairramp.Rule, method).__doc__)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        fairramp.nonsense  # noqa: B018
