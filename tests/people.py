"""People with features, two group columns and an outcome, and estimators for them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairramp import Columns
from fairramp.sklearn.estimator import RandomizedThresholdOptimizer

N = 1_200


def people(n_rows=N, seed=0):
    """Three features, sex and race, and an outcome that depends on all of them."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n_rows)
    race = rng.choice(["a", "b", "c"], n_rows)
    features = rng.normal(size=(n_rows, 3)) + 0.8 * (sex == "m")[:, None] + 0.4 * (race == "b")[:, None]
    y = (features.sum(axis=1) + rng.logistic(size=n_rows) > 1.5).astype(int)
    return features, y, sex, race


X, Y, SEX, RACE = people()
NEW_X, NEW_Y, NEW_SEX, NEW_RACE = people(900, seed=1)
CODED = np.column_stack([X, SEX == "m", np.searchsorted(["a", "b", "c"], RACE)])
NAMES = ["age", "income", "debt"]
MODEL = LogisticRegression().fit(X, Y)
FROZEN = FrozenEstimator(MODEL)


def frame(library, x=X, sex=SEX, race=RACE):
    """Features and both group columns as a dataframe of pandas or polars."""
    columns = {**{name: x[:, i] for i, name in enumerate(NAMES)}, "sex": sex, "race": race}
    return {"pandas": pd, "polars": pl}[library].DataFrame(columns)


def on_frames():
    """A classifier for these dataframes that also uses the group columns."""
    coding = make_column_transformer(
        (StandardScaler(), NAMES), (OneHotEncoder(drop="first"), ["sex", "race"]), sparse_threshold=0
    )
    return make_pipeline(coding, LogisticRegression())


def optimizer(estimator=None, **settings):
    return RandomizedThresholdOptimizer(LogisticRegression() if estimator is None else estimator, **settings)


def decided(rule):
    """A rule without its column names."""
    return replace(rule, columns=Columns())
