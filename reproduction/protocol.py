"""The paper's protocol: how rows are split, how DCCC is biased, and how the classifiers are trained.

    all rows  →  half trains the classifier  |  the other half in three: fit, validation and test rows

Where the paper is silent:

- Features are all attributes of the dataset, including sex: 14 for Adult, 23 for DCCC. Adult's categories are
  one-hot encoded; a missing value ("?") is a category of its own, so all 48,842 rows are used. DCCC's categories
  keep UCI's numeric codes. Numeric columns are standardized on the classifier's training rows.
- Only the classifier's training rows of DCCC are biased: rows with s = y are kept, and the others are dropped
  with probability ½. The paper does not say which sex is s = 1; `BIASED_SEX` gives the bias that it prints.
- A classifier selects scores above ½, as scikit-learn's `predict` does for two classes.
- The neural network has one hidden layer of 128, with early stopping on a tenth of its training rows.
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

#: The sex that is s = 1 in "keep a row if s = y".
BIASED_SEX = "Female"


@dataclass(frozen=True)
class Task:
    """One classifier on one dataset with one seed."""

    data: str
    classifier: str
    seed: int


@dataclass(frozen=True)
class Settings:
    """What the scores depend on besides the task; names and values enter the fingerprint of results."""

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
        """The values of C, one per power of ten."""
        low, high = self.exponents
        return np.logspace(low, high, high - low + 1)


FULL = Settings()
#: Fewer folds and powers of ten for logistic regression; otherwise as in the full run.
QUICK = Settings(exponents=(-1, 1), folds=3)


@dataclass(frozen=True, eq=False)
class Split:
    """Rows on which a rule is fitted, tuned or measured; each array has shape (n,)."""

    scores: Floats
    sex: npt.NDArray[np.str_]
    label: Integers


@dataclass(frozen=True, eq=False)
class Scored:
    """A trained classifier's scores, and its training sexes and labels."""

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
    """Encoded features of the classifier's training rows and of the three splits."""

    train: Floats
    train_label: Integers
    train_sex: npt.NDArray[np.str_]
    features: dict[str, Floats]
    label: dict[str, Integers]
    sex: dict[str, npt.NDArray[np.str_]]


@lru_cache(maxsize=2)
def load(name: str, folder: str | None) -> Any:
    """Load a dataset, once per process."""
    return {"adult": load_adult, "dccc": load_dccc}[name](folder)


def split_rows(n_rows: int, rng: np.random.Generator) -> dict[str, Integers]:
    """Shuffle the rows: half for training, the rest in three equal parts."""
    rows = rng.permutation(n_rows)
    half = n_rows // 2
    fit, validation, test = np.array_split(rows[half:], 3)
    return {"train": rows[:half], "fit": fit, "validation": validation, "test": test}


def keep_biased(
    sex: npt.NDArray[np.str_], label: Integers, biased_sex: str, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows to keep: those with s = y, and half of the others."""
    return ((sex == biased_sex) == (label == 1)) | (rng.random(len(label)) < 0.5)


def prepare(task: Task, folder: str | None, settings: Settings) -> Prepared:
    """Split and encode the rows of a task, identically for all four classifiers."""
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
    """Return a dataset's features and the unfitted transformer that encodes them."""
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
    """Return the unfitted classifier of a task."""
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
    """Return the unfitted classifier that reductions train many times, with C as already chosen."""
    if task.classifier == "lr":
        return LogisticRegression(C=chosen["C"], solver="newton-cholesky")
    return classifier(task, settings)


def train(task: Task, folder: str | None, settings: Settings) -> Scored:
    """Train the classifier of a task and score the three splits."""
    prepared = prepare(task, folder, settings)
    # Single precision is enough for distances and takes half the time.
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


def gap(probabilities: Floats, sex: npt.NDArray[np.str_]) -> float:
    """Return the largest difference between two groups' expected selection rates."""
    rates = selection_rates(probabilities, sex).values()
    return max(rates) - min(rates)


def selection_rates(probabilities: Floats, sex: npt.NDArray[np.str_]) -> dict[str, float]:
    """Return the mean selection probability of each group."""
    return {str(name): float(probabilities[sex == name].mean()) for name in np.unique(sex)}


def accuracy(probabilities: Floats, label: Integers) -> float:
    """Return the expected accuracy over random draws."""
    return float(np.where(label == 1, probabilities, 1 - probabilities).mean())
