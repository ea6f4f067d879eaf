"""Without the group: equal selection rates on Adult by models that see neither sex nor race.

    features without sex and race  →  P(income), P(group)  →  a rule for these  →  gap by true group

Splits are those of `protocol`. Both models are trained on the classifier's half, so their scores and
probabilities of the fit rows are of rows that they were not trained on. The estimator, which cross-fits, is
trained on both together.

| method | group when deciding | description |
| --- | --- | --- |
| original | not used | the classifier's own decisions |
| aware | known | fairramp's rule by known groups, on the same scores |
| logistic, boosting, bad | estimated | fairramp's rule by `GroupProbabilities` of three group models |
| estimator | estimated | `RandomizedThresholdOptimizer` with a logistic `group_estimator` (by sex) |
| reduction | not used | Fairlearn's exponentiated gradient, trained without sex and race as features |
| linearpost | estimated | LinearPost's published code on the same scores and group probabilities |

LinearPost (Xian and Zhao, 2024) is no package: pass a folder with its repository as `--linearpost`.
"""

import importlib.util
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import fairramp
from reproduction.methods import own_decisions, timed
from reproduction.protocol import Floats, Integers, Task, accuracy, gap, load, split_rows, unscaled

ATTRIBUTES = ("sex", "race")
MODELS = ("logistic", "boosting", "bad")
#: The models that LinearPost is run with; the bad one shows nothing about it.
POST_MODELS = ("logistic", "boosting")
MAX_GAPS = (0.0, 0.02)
#: Fairlearn bounds the difference of each group from all rows, 0.01 by default.
BOUNDS = {0.0: 0.01, 0.02: 0.02}
#: How far a bad probability is from the group's share, relative to it.
NOISE = 0.2
SEEDS, QUICK_SEEDS = 10, 1
#: The task whose file stores the results.
DATA, CLASSIFIER = "adult", "lr"

OURS = tuple(f"without_{attribute}" for attribute in ATTRIBUTES)
REDUCTIONS = tuple(f"{name}_reduction" for name in OURS)
LINEARPOST = tuple(f"{name}_linearpost" for name in OURS)
METHODS = (*OURS, *REDUCTIONS, *LINEARPOST)
_SETTINGS = {"max_gaps": MAX_GAPS, "noise": NOISE, "bounds": list(BOUNDS.values()), "models": MODELS}
#: What the results of each method depend on.
SETTINGS = dict.fromkeys(METHODS, _SETTINGS) | dict.fromkeys(
    OURS, _SETTINGS | {"estimator": "train and fit rows"}
)


@dataclass(frozen=True, eq=False)
class Blind:
    """Rows of a seed, with features that contain neither sex nor race, and the scores of a classifier of them."""

    seed: int
    features: dict[str, Floats]
    label: dict[str, Integers]
    groups: dict[str, dict[str, npt.NDArray[np.str_]]]
    scores: dict[str, Floats]


@lru_cache(maxsize=1)
def blind(seed: int, folder: str | None) -> Blind:
    """Split and encode the rows of a seed, and train the classifier."""
    data = load(DATA, folder)
    rows = split_rows(len(data.label), np.random.default_rng([seed, 0]))
    kept = [name for name in data.names if name not in ATTRIBUTES]
    table, encoder = unscaled(DATA, _Kept(data.select(kept), [data.kinds[data.names.index(n)] for n in kept]))
    encoder.fit(table[rows["train"]])
    features = {name: np.asarray(encoder.transform(table[rows[name]]), dtype=np.float64) for name in rows}
    label = {name: data.label[rows[name]] for name in rows}
    model = logistic().fit(features["train"], label["train"])
    return Blind(
        seed=seed,
        features=features,
        label=label,
        groups={a: {name: getattr(data, a)[rows[name]] for name in rows} for a in ATTRIBUTES},
        scores={name: model.predict_proba(features[name])[:, 1] for name in ("fit", "test")},
    )


@dataclass(frozen=True, eq=False)
class _Kept:
    """Columns of a dataset."""

    features: npt.NDArray[np.object_]
    kinds: list[str]


def logistic() -> LogisticRegression:
    """Return the unfitted logistic regression, with default regularization."""
    return LogisticRegression(solver="newton-cholesky")


@lru_cache(maxsize=6)
def probabilities(seed: int, folder: str | None, attribute: str, model: str) -> dict[str, Any]:
    """Return the group probabilities of the fit and test rows."""
    rows = blind(seed, folder)
    train = rows.groups[attribute]["train"]
    if model == "bad":
        labels, counts = np.unique(train, return_counts=True)
        rng = np.random.default_rng([seed, 1])

        def guessed(n: int) -> Floats:
            values = counts / counts.sum() * (1 + NOISE * rng.uniform(-1, 1, (n, len(labels))))
            return np.asarray(values / values.sum(axis=1, keepdims=True))

        found = {name: guessed(len(rows.label[name])) for name in ("fit", "test")}
    else:
        kind = logistic() if model == "logistic" else HistGradientBoostingClassifier(random_state=seed)
        kind.fit(rows.features["train"], train)
        labels = kind.classes_
        found = {name: np.asarray(kind.predict_proba(rows.features[name])) for name in ("fit", "test")}
    return {name: fairramp.GroupProbabilities(values, labels.tolist()) for name, values in found.items()}


def measured(chances: Floats, rows: Blind, attribute: str) -> dict[str, float]:
    """Return the accuracy and the gap by true groups on the test rows."""
    return {
        "gap": gap(chances, rows.groups[attribute]["test"]),
        "accuracy": accuracy(chances, rows.label["test"]),
    }


def expected_gap(chances: Floats, q: fairramp.GroupProbabilities) -> float:
    """Return the largest difference between two groups' expected rates, by their probabilities."""
    rates = (q.values @ chances) / q.values.sum(axis=1)
    return float(rates.max() - rates.min())


def quality(q: fairramp.GroupProbabilities, groups: npt.NDArray[np.str_]) -> dict[str, float]:
    """Return the area under the ROC curve of each group against the others."""
    return {
        str(label): float(roc_auc_score(groups == label, values))
        for label, values in zip(q.labels, q.values, strict=True)
    }


def ours(attribute: str, seed: int, folder: str | None) -> dict[str, Any]:
    """Return fairramp's rules by known groups and by group probabilities."""
    rows = blind(seed, folder)
    scores, groups = rows.scores, rows.groups[attribute]
    found: dict[str, Any] = {"original": measured(own_decisions(scores["test"]), rows, attribute)}
    aware = {limit: fairramp.fit_rule(scores["fit"], groups["fit"], max_gap=limit) for limit in MAX_GAPS}
    found["aware"] = {
        str(limit): measured(rule.probabilities(scores["test"], groups["test"]), rows, attribute)
        for limit, rule in aware.items()
    }
    for model in MODELS:
        q = probabilities(seed, folder, attribute, model)
        found[model] = {"auc": quality(q["test"], groups["test"])}
        for limit in MAX_GAPS:
            rule, seconds = timed(
                lambda limit=limit, q=q: fairramp.fit_rule(scores["fit"], q["fit"], max_gap=limit)
            )
            on_fit, on_test = (rule.probabilities(scores[name], q[name]) for name in ("fit", "test"))
            found[model][str(limit)] = {
                **measured(on_test, rows, attribute),
                "expected_gap": expected_gap(on_test, q["test"]),
                "fit_expected_gap": expected_gap(on_fit, q["fit"]),
                "fit_gap": gap(on_fit, groups["fit"]),
                "seconds": seconds,
            }
    if attribute == "sex":
        found["estimator"] = {str(limit): _estimated(rows, attribute, limit) for limit in MAX_GAPS}
    return found


def _estimated(rows: Blind, attribute: str, limit: float) -> dict[str, float]:
    """Return the result of the estimator, which cross-fits both models on the training and fit rows."""
    model = fairramp.RandomizedThresholdOptimizer(logistic(), group_estimator=logistic(), max_gap=limit)
    x, y, groups = (
        np.concatenate([part["train"], part["fit"]])
        for part in (rows.features, rows.label, rows.groups[attribute])
    )
    _, seconds = timed(lambda: model.fit(x, y, sensitive_features=groups))
    return {**measured(model.predict_proba(rows.features["test"])[:, 1], rows, attribute), "seconds": seconds}


def reduction(attribute: str, seed: int, folder: str | None) -> dict[str, Any]:
    """Return Fairlearn's reduction, which needs the groups only for training."""
    rows, found = blind(seed, folder), {}
    for limit, bound in BOUNDS.items():
        constraint = DemographicParity(difference_bound=bound)
        reduced = ExponentiatedGradient(logistic(), constraints=constraint, max_iter=50)
        _, seconds = timed(
            lambda reduced=reduced: reduced.fit(
                rows.features["train"], rows.label["train"], sensitive_features=rows.groups[attribute]["train"]
            )
        )
        chances = np.asarray(reduced._pmf_predict(rows.features["test"])[:, 1], dtype=np.float64)
        found[str(limit)] = {**measured(chances, rows, attribute), "seconds": seconds}
    return found


def linearpost(attribute: str, seed: int, folder: str | None, code: str) -> dict[str, Any]:
    """Return LinearPost's decisions, by its published code with cvxpy's default solver."""
    rows, found = blind(seed, folder), {}
    places = {"fit": 0, "test": 1}
    scores = [rows.scores[name] for name in places]
    for model in POST_MODELS:
        q = probabilities(seed, folder, attribute, model)
        membership = [q[name].values.T for name in places]
        found[model] = {}
        for limit in MAX_GAPS:
            # Its functions of x get the name of the rows, because scores and probabilities are known already.
            post = _published(code).PostProcessor(
                2,
                len(q["fit"].labels),
                pred_a_fn=lambda x, membership=membership: membership[places[x]],
                pred_y_fn=lambda x: np.column_stack([1 - scores[places[x]], scores[places[x]]]),
                criterion="sp",
                alpha=limit,
                seed=seed,
            )
            _, seconds = timed(lambda post=post: post.fit("fit", solver=None))
            decided = np.asarray(post.predict("test"), dtype=np.float64)
            found[model][str(limit)] = {
                **measured(decided, rows, attribute),
                "expected_gap": expected_gap(decided, q["test"]),
                "seconds": seconds,
            }
    return found


@lru_cache(maxsize=1)
def _published(code: str) -> Any:
    """Return LinearPost's module, from a folder with its repository."""
    spec = importlib.util.spec_from_file_location("linearpost", Path(code) / "postprocess.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name: str, task: Task, folder: str | None, code: str | None) -> dict[str, Any]:
    """Run one of `METHODS` and return its result."""
    attribute = name.split("_")[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in REDUCTIONS:
            return reduction(attribute, task.seed, folder)
        if name in LINEARPOST:
            assert code is not None
            return linearpost(attribute, task.seed, folder, code)
        return ours(attribute, task.seed, folder)
