"""Adult's scores as a Fairlearn user would have them."""
# ruff: noqa: N806 -- scikit-learn's name is X

import numpy as np
import pytest

import fairramp


@pytest.fixture(scope="session")
def adult():
    """X, y, sex and race of Adult's scores in two halves; X has two columns."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    data = fairramp.datasets.load_adult_scores()
    x = np.clip(data.score, 1e-6, 1 - 1e-6)
    table = pd.DataFrame({"logit": np.log(x / (1 - x)), "male": (data.sex == "Male").astype(float)})
    groups = pd.DataFrame({"sex": data.sex, "race": data.race})
    half = np.arange(len(x)) % 2 == 0
    return [(table[s], pd.Series(data.label)[s], groups[s]) for s in (half, ~half)]


@pytest.fixture(scope="session")
def small(adult):
    """600 rows of it, by sex."""
    X, y, groups = adult[0]
    return X[:600], y[:600], groups["sex"][:600]
