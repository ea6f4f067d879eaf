"""The paper's protocol: how rows are split, how bias is put into DCCC, and how the classifiers are trained.

    all rows  →  half trains the classifier  |  the other half in three: fit of the rule, validation, test

What the paper does not say, and what is done here:

- Features are all attributes of the dataset, sex among them: 14 for Adult, 23 for DCCC. Adult's categories are
  words and become one-hot; a missing value ("?") is a category of its own, so that all 48,842 rows are used.
  DCCC's categories stay the numbers that UCI gives them. Numbers are scaled to mean 0 and variance 1 on the
  classifier's training rows.
- DCCC's bias enters the classifier's training rows only: a row with s = y stays, another one is dropped with
  probability ½. Which sex is s = 1 is not printed; `BIASED_SEX` is the one that gives the bias the paper prints.
- A classifier says yes where its score is above ½, as scikit-learn's `predict` does for two classes.
- The neural network has one hidden layer of 128 and stops when a tenth of its training rows no longer improves.
"""

import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from reproduction.uci import load_adult, load_dccc

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

DATA = ("adult", "dccc")
CLASSIFIERS = ("rf", "knn", "mlp", "lr")

#: s = 1 in "keep a row if s = y".
BIASED_SEX = "Female"


@dataclass(frozen=True)
class Task:
    """One classifier on one dataset with one seed."""

    data: str
    classifier: str
    seed: int


@dataclass(frozen=True)
class Settings:
    """What the scores depend on, besides the task; stored results carry its fingerprint."""

    version: int = 1
    depth: int = 10
    trees: int = 100
    neighbors: int = 10
    hidden: int = 128
    exponents: tuple[int, int] = (-4, 4)
    folds: int = 10
    biased_sex: str = BIASED_SEX

    @property
    def grid(self) -> Floats:
        """The values of C, one for each power of ten."""
        low, high = self.exponents
        return np.logspace(low, high, high - low + 1)


FULL = Settings()
#: Fewer folds and powers of ten for logistic regression; all else is as in the full run.
QUICK = Settings(exponents=(-1, 1), folds=3)


@dataclass(frozen=True, eq=False)
class Split:
    """Rows on which a rule is fitted, chosen or measured; each array has shape (n,)."""

    scores: Floats
    sex: npt.NDArray[np.str_]
    label: Integers


@dataclass(frozen=True, eq=False)
class Scored:
    """A trained classifier's scores, and what is known of its training rows."""

    task: Task
    fit: Split
    validation: Split
    test: Split
    train_sex: npt.NDArray[np.str_]
    train_label: Integers
    train_seconds: float
    chosen: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Features as numbers: the classifier's training rows, and the three splits by name."""

    train: Floats
    train_label: Integers
    train_sex: npt.NDArray[np.str_]
    features: dict[str, Floats]
    label: dict[str, Integers]
    sex: dict[str, npt.NDArray[np.str_]]


@lru_cache(maxsize=2)
def load(name: str, folder: str | None) -> Any:
    """Load a dataset, once in each process."""
    return {"adult": load_adult, "dccc": load_dccc}[name](folder)


def split_rows(n_rows: int, rng: np.random.Generator) -> dict[str, Integers]:
    """Shuffle the rows: half to train, the others in three."""
    rows = rng.permutation(n_rows)
    half = n_rows // 2
    fit, validation, test = np.array_split(rows[half:], 3)
    return {"train": rows[:half], "fit": fit, "validation": validation, "test": test}


def keep_biased(
    sex: npt.NDArray[np.str_], label: Integers, biased_sex: str, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Return which rows stay: those with s = y, and half of the others."""
    return ((sex == biased_sex) == (label == 1)) | (rng.random(len(label)) < 0.5)


def prepare(task: Task, folder: str | None, settings: Settings) -> Prepared:
    """Split and encode the rows of a task; the classifier plays no part, so that all four share the splits."""
    data = load(task.data, folder)
    rng = np.random.default_rng([task.seed, DATA.index(task.data)])
    rows = split_rows(len(data.label), rng)
    if task.data == "dccc":
        train = rows["train"]
        rows["train"] = train[keep_biased(data.sex[train], data.label[train], settings.biased_sex, rng)]
    features, encoder = unscaled(task.data, data)
    encoded = encoder.fit_transform(features[rows["train"]])
    others = ("fit", "validation", "test")
    return Prepared(
        train=encoded,
        train_label=data.label[rows["train"]],
        train_sex=data.sex[rows["train"]],
        features={name: encoder.transform(features[rows[name]]) for name in others},
        label={name: data.label[rows[name]] for name in others},
        sex={name: data.sex[rows[name]] for name in others},
    )


def unscaled(name: str, data: Any) -> tuple[npt.NDArray[np.object_], Any]:
    """Return a dataset's features and the transformer, not fitted yet, that makes numbers of them."""
    if name == "dccc":
        features = data.features.copy()
        features[:, data.names.index("SEX")] = np.where(data.sex == "Male", 1.0, 2.0)
        return features.astype(np.float64), StandardScaler()
    numbers = [i for i, kind in enumerate(data.kinds) if kind == "number"]
    categories = [i for i, kind in enumerate(data.kinds) if kind == "category"]
    return data.features, make_column_transformer(
        (StandardScaler(), numbers),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), categories),
    )


def classifier(task: Task, settings: Settings) -> Any:
    """Return the classifier of a task, not fitted yet."""
    if task.classifier == "rf":
        return RandomForestClassifier(settings.trees, max_depth=settings.depth, random_state=task.seed)
    if task.classifier == "knn":
        return KNeighborsClassifier(settings.neighbors, algorithm="brute")
    if task.classifier == "mlp":
        return MLPClassifier((settings.hidden,), early_stopping=True, random_state=task.seed)
    return LogisticRegressionCV(
        Cs=settings.grid,
        l1_ratios=(0.0,),
        cv=settings.folds,
        solver="newton-cholesky",
        scoring="accuracy",
        use_legacy_attributes=False,
    )


def weighted_classifier(task: Task, settings: Settings, chosen: dict[str, float]) -> Any:
    """Return the classifier that reductions train many times: C is the one already chosen."""
    if task.classifier == "lr":
        return LogisticRegression(C=chosen["C"], solver="newton-cholesky")
    return classifier(task, settings)


def train(task: Task, folder: str | None, settings: Settings) -> Scored:
    """Train the classifier of a task and score the three splits."""
    prepared = prepare(task, folder, settings)
    # Distances need no more than single precision, and take half the time.
    kind = np.float32 if task.classifier == "knn" else np.float64
    model = classifier(task, settings)
    start = time.perf_counter()
    model.fit(prepared.train.astype(kind), prepared.train_label)
    seconds = time.perf_counter() - start
    splits = {
        name: Split(
            model.predict_proba(features.astype(kind))[:, 1].astype(np.float64),
            prepared.sex[name],
            prepared.label[name],
        )
        for name, features in prepared.features.items()
    }
    chosen = {"C": float(np.ravel(model.C_)[0])} if task.classifier == "lr" else {}
    return Scored(
        task,
        **splits,
        train_sex=prepared.train_sex,
        train_label=prepared.train_label,
        train_seconds=seconds,
        chosen=chosen,
    )


def gap(chances: Floats, sex: npt.NDArray[np.str_]) -> float:
    """Largest difference between the groups' expected selection rates."""
    rates = selection_rates(chances, sex).values()
    return max(rates) - min(rates)


def selection_rates(chances: Floats, sex: npt.NDArray[np.str_]) -> dict[str, float]:
    """Return the mean chance of a yes in each group."""
    return {str(name): float(chances[sex == name].mean()) for name in np.unique(sex)}


def accuracy(chances: Floats, label: Integers) -> float:
    """Share of right decisions, in expectation over draws."""
    return float(np.where(label == 1, chances, 1 - chances).mean())
