"""The public surface: small, documented, quick to import."""

import doctest
import inspect
import subprocess
import sys

import pytest

import fairramp

NAMES = {
    "FairrampError",
    "FairrampWarning",
    "FitRecord",
    "InputError",
    "Ramp",
    "Rule",
    "RuleFormatError",
    "Table",
    "UnseenGroupError",
    "__version__",
    "datasets",
    "draws",
    "fit_rule",
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
    }
    assert heavy.isdisjoint(result.stdout.split())


@pytest.mark.parametrize("name", sorted(NAMES - {"__version__", "datasets"}))
def test_every_public_name_says_what_it_is(name):
    assert inspect.getdoc(getattr(fairramp, name))


@pytest.mark.parametrize(
    "thing", [fairramp.fit_rule, fairramp.draws, fairramp.Rule.probabilities, fairramp.Rule.decide]
)
def test_docstring_has_an_example_that_runs(thing):
    assert doctest.DocTestParser().get_examples(thing.__doc__)
