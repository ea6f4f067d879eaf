"""More than two classes: equal rates of every class, next to methods of other libraries.

    features without the target  →  probabilities of four classes  →  a rule by group  →  largest gap over classes

| data | classes | groups |
| --- | --- | --- |
| Adult | hours worked per week: under 40, 40, 41 to 49, 50 or more | sex, race |
| DCCC | credit limit in NT dollars: at most 50,000, at most 150,000, at most 250,000, more | sex, age |

40 hours is a class of its own, because almost half of all people report it. Splits are those of `protocol`,
without the bias of DCCC. The classifier is a multinomial logistic regression of all other attributes.

| method | fitted on | description |
| --- | --- | --- |
| original | – | the most probable class |
| fairramp | fit rows | `fit_class_rule`, which uses no labels |
| recalibrated | fit rows | the same, after a logistic regression of labels on log-probabilities |
| fairlearn | fit rows | one `ThresholdOptimizer` per class against the rest, combined in two ways |
| reduce2binary | test rows | holisticai's `MLDebiaser`: probabilities, and the most probable class |
| lp_odds, lp_opportunity | fit rows | holisticai's `LPDebiaserMulticlass`, which equalizes error rates |

Each of the others is compared with a rule at equal gap: fitted on the same rows, with a `max_gap` at which its
gap on the test rows is no larger. `MLDebiaser` cannot be applied to new rows: it solves its problem for the
rows that it is given. No method sees labels of test rows. Fairlearn and `LPDebiaserMulticlass` learn from the
labels of the fit rows, and so does the recalibrated rule.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.linear_model import LogisticRegression

import fairramp
from reproduction.methods import ScoreColumn, timed
from reproduction.protocol import DATA, Floats, Integers, Task, load, split_rows, unscaled

Labels = npt.NDArray[np.str_]

CLASSIFIER = "lr"
#: The attributes that define groups, by dataset.
ATTRIBUTES = {"adult": ("sex", "race"), "dccc": ("sex", "age")}
#: The column that is cut into classes, and the lowest value of each class but the first.
TARGETS = {
    "adult": ("hours-per-week", (40.0, 41.0, 50.0)),
    "dccc": ("LIMIT_BAL", (50_001.0, 150_001.0, 250_001.0)),
}
CLASSES = {
    "adult": ("under 40", "40", "41 to 49", "50 or more"),
    "dccc": ("50,000", "150,000", "250,000", "more"),
}
AGES, AGE_NAMES = (30, 40, 50), ("under 30", "30 to 39", "40 to 49", "50 or older")
MAX_GAPS = (0.0, 0.02)
#: Steps of the search for a max_gap, each of which halves the interval.
STEPS = 8
SEEDS, QUICK_SEEDS = 10, 1
#: A row is decided at random if no class has a larger probability.
SURE = 1 - 1e-9

PEERS = ("fairlearn", "reduce2binary", "lp_odds", "lp_opportunity")
_GROUPS = tuple(dict.fromkeys(attribute for each in ATTRIBUTES.values() for attribute in each))
OURS = tuple(f"classes_{attribute}" for attribute in _GROUPS)
FAIRLEARN = tuple(f"{name}_fairlearn" for name in OURS)
METHODS = (*OURS, *(f"{name}_{peer}" for peer in PEERS for name in OURS))
#: The smallest probability whose logarithm is used to recalibrate.
SMALLEST = 1e-6
_SETTINGS = {"targets": TARGETS, "ages": AGES, "max_gaps": MAX_GAPS, "steps": STEPS, "smallest": SMALLEST}
#: What the results of each method depend on.
SETTINGS = dict.fromkeys(METHODS, _SETTINGS)


def methods_of(data: str) -> list[str]:
    """Return the methods that a dataset has groups for."""
    return [name for name in METHODS if name.split("_")[1] in ATTRIBUTES[data]]


@dataclass(frozen=True, eq=False)
class Rows:
    """Probabilities of the classes, labels and groups of the fit and test rows of a seed."""

    probabilities: dict[str, Floats]
    label: dict[str, Integers]
    groups: dict[str, dict[str, Labels]]


@lru_cache(maxsize=1)
def scored(data: str, seed: int, folder: str | None) -> Rows:
    """Split the rows of a seed, train the classifier, and return its probabilities."""
    table = load(data, folder)
    target, cuts = TARGETS[data]
    label = np.digitize(table.select([target])[:, 0].astype(np.float64), cuts).astype(np.int64)
    kept = [name for name in table.names if name != target]
    kinds = tuple(table.kinds[table.names.index(name)] for name in kept)
    others = replace(table, features=table.select(kept), names=tuple(kept), kinds=kinds)
    features, encoder = unscaled(data, others)
    rows = split_rows(len(label), np.random.default_rng([seed, DATA.index(data)]))
    encoder.fit(features[rows["train"]])
    encoded = {name: np.asarray(encoder.transform(features[rows[name]]), np.float64) for name in rows}
    model = LogisticRegression(solver="newton-cholesky").fit(encoded["train"], label[rows["train"]])
    parts = ("fit", "test")
    return Rows(
        probabilities={name: np.asarray(model.predict_proba(encoded[name])) for name in parts},
        label={name: label[rows[name]] for name in parts},
        groups={
            attribute: {name: _groups(table, attribute)[rows[name]] for name in parts}
            for attribute in ATTRIBUTES[data]
        },
    )


def _groups(table: Any, attribute: str) -> Labels:
    if attribute == "age":
        return np.array(AGE_NAMES)[np.digitize(table.select(["AGE"])[:, 0].astype(np.float64), AGES)]
    return np.asarray(getattr(table, attribute))


def recalibrated(rows: Rows) -> Rows:
    """Return the rows with probabilities that a logistic regression on the fit rows' labels has corrected."""
    logs = {name: np.log(np.maximum(values, SMALLEST)) for name, values in rows.probabilities.items()}
    model = LogisticRegression(solver="newton-cholesky").fit(logs["fit"], rows.label["fit"])
    return replace(rows, probabilities={n: np.asarray(model.predict_proba(x)) for n, x in logs.items()})


# Measurements --------------------------------------------------------------------------------------------


def most_probable(probabilities: Floats) -> Floats:
    """Return the most probable class of each row as probabilities, 0 or 1."""
    return np.eye(probabilities.shape[1])[probabilities.argmax(axis=1)]


def class_gaps(chances: Floats, groups: Labels) -> Floats:
    """Return the largest difference between two groups' expected rates, for each class."""
    rates = np.array([chances[groups == name].mean(axis=0) for name in np.unique(groups)])
    return np.asarray(np.ptp(rates, axis=0))


def measured(chances: Floats, rows: Rows, attribute: str) -> dict[str, float]:
    """Return the largest gap over classes, the expected accuracy, and the share of rows decided at random."""
    return {
        "gap": float(class_gaps(chances, rows.groups[attribute]["test"]).max()),
        "accuracy": float(chances[np.arange(len(chances)), rows.label["test"]].mean()),
        "random": float((chances.max(axis=1) < SURE).mean()),
    }


# Ours ----------------------------------------------------------------------------------------------------


def fitted(rows: Rows, attribute: str, limit: float, part: str = "fit") -> tuple[Floats, float]:
    """Fit a rule on some rows; return its probabilities on the test rows, and the seconds to fit."""
    groups = rows.groups[attribute]
    rule, seconds = timed(lambda: fairramp.fit_class_rule(rows.probabilities[part], groups[part], max_gap=limit))
    return rule.probabilities(rows.probabilities["test"], groups["test"]), seconds


def ours(rows: Rows, attribute: str) -> dict[str, Any]:
    """Return the classifier's own decisions and fairramp's rules."""
    found: dict[str, Any] = {"original": measured(most_probable(rows.probabilities["test"]), rows, attribute)}
    corrected = recalibrated(rows)
    for limit in MAX_GAPS:
        for variant, given in (("plain", rows), ("recalibrated", corrected)):
            chances, seconds = fitted(given, attribute, limit)
            found.setdefault(variant, {})[str(limit)] = {
                **measured(chances, rows, attribute),
                "seconds": seconds,
            }
    return found


def at_equal_gap(rows: Rows, attribute: str, gap: float, part: str) -> dict[str, float]:
    """Return a rule whose gap on the test rows is at most `gap`, or that of `max_gap=0` if none is found.

    The search starts at `max_gap=gap` and then halves the interval between 0 and that value.
    """

    def tried(limit: float) -> dict[str, float]:
        chances, seconds = fitted(rows, attribute, limit, part)
        return {**measured(chances, rows, attribute), "max_gap": limit, "seconds": seconds}

    def met(result: dict[str, float]) -> bool:
        return result["gap"] <= gap + 1e-9  # the solver meets a limit up to rounding

    best = tried(gap)
    if met(best):
        return best
    low, high = 0.0, gap
    best = tried(low)
    if not met(best):
        return best
    for _ in range(STEPS):
        middle = (low + high) / 2
        result = tried(middle)
        if met(result):
            low, best = middle, result
        else:
            high = middle
    return best


# Others --------------------------------------------------------------------------------------------------


def fairlearn(rows: Rows, attribute: str, seed: int) -> tuple[dict[str, Floats], float]:
    """Return Fairlearn's rules, one per class, combined in two ways.

    `likely` draws for each class, and decides for the most probable of the selected classes. `shares` divides the
    selection probabilities by their sum. Rows that no rule selects get their most probable class.
    """
    groups, own = rows.groups[attribute], rows.probabilities["test"]
    selected, seconds = np.empty_like(own), 0.0
    for column in range(own.shape[1]):
        optimizer = ThresholdOptimizer(
            estimator=ScoreColumn(),
            constraints="demographic_parity",
            objective="accuracy_score",
            prefit=True,
            predict_method="predict_proba",
        )
        scores, label = rows.probabilities["fit"][:, [column]], (rows.label["fit"] == column).astype(np.int64)
        _, spent = timed(
            lambda optimizer=optimizer, scores=scores, label=label: optimizer.fit(
                scores, label, sensitive_features=groups["fit"]
            )
        )
        seconds += spent
        chances = optimizer._pmf_predict(own[:, [column]], sensitive_features=groups["test"])
        selected[:, column] = chances[:, 1]
    return {"likely": first_selected(selected, own), "shares": shares(selected, own)}, seconds


def first_selected(selected: Floats, probabilities: Floats) -> Floats:
    """Return the chance that each class is the most probable of those that independent draws select."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    sorted_chances = np.take_along_axis(selected, order, axis=1)
    none_before = np.cumprod(1 - sorted_chances, axis=1)
    found = sorted_chances.copy()
    found[:, 1:] *= none_before[:, :-1]
    found[:, 0] += none_before[:, -1]
    chances = np.empty_like(found)
    np.put_along_axis(chances, order, found, axis=1)
    return chances


def shares(selected: Floats, probabilities: Floats) -> Floats:
    """Return the selection probabilities divided by their sum."""
    total = selected.sum(axis=1, keepdims=True)
    return np.where(total > 0, selected / np.where(total > 0, total, 1.0), most_probable(probabilities))


def reduce2binary(rows: Rows, attribute: str, seed: int) -> tuple[dict[str, Floats], float]:
    """Return the two results of holisticai's `MLDebiaser`, with its defaults."""
    # The public class wraps this algorithm, and accepts only two groups.
    from holisticai.bias.mitigation.postprocessing.ml_debiaser.reduce2binary.algorithm import (
        Reduce2BinaryAlgorithm,
    )

    own = rows.probabilities["test"]
    _, codes = np.unique(rows.groups[attribute]["test"], return_inverse=True)
    np.random.seed(seed)  # noqa: NPY002 - the peer draws from the global state
    algorithm = Reduce2BinaryAlgorithm(num_classes=own.shape[1], sgd_steps=10_000, max_iter=5, verbose=False)
    chances, seconds = timed(lambda: np.asarray(algorithm.predict(own, codes)))
    return {"probabilities": chances, "labels": most_probable(chances)}, seconds


def lp_debiaser(rows: Rows, attribute: str, constraint: str) -> tuple[dict[str, Floats], float]:
    """Return holisticai's `LPDebiaserMulticlass`; its probabilities are those that it draws with."""
    # The public class wraps this algorithm, and accepts only two groups.
    from holisticai.bias.mitigation.postprocessing.lp_debiaser.multiclass_balancer import constraints
    from holisticai.bias.mitigation.postprocessing.lp_debiaser.multiclass_balancer.algorithm import (
        MulticlassBalancerAlgorithm,
    )

    groups = rows.groups[attribute]
    names, codes = np.unique(groups["fit"], return_inverse=True)
    algorithm = MulticlassBalancerAlgorithm(getattr(constraints, constraint)(), constraints.MacroLosses())
    decided = {name: values.argmax(axis=1) for name, values in rows.probabilities.items()}
    _, seconds = timed(lambda: algorithm.fit(rows.label["fit"], decided["fit"], codes))
    chances = algorithm.new_cp_mats[np.searchsorted(names, groups["test"]), decided["test"]]
    return {"drawn": np.asarray(chances, dtype=np.float64)}, seconds


_RUN: dict[str, Callable[[Rows, str, int], tuple[dict[str, Floats], float]]] = {
    "fairlearn": fairlearn,
    "reduce2binary": reduce2binary,
    "lp_odds": lambda rows, attribute, seed: lp_debiaser(rows, attribute, "EqualizedOdds"),
    "lp_opportunity": lambda rows, attribute, seed: lp_debiaser(rows, attribute, "EqualizedOpportunity"),
}
#: The rows that a method is fitted on, if not the fit rows.
_FITTED_ON = {"reduce2binary": "test"}


def compared(peer: str, rows: Rows, attribute: str, seed: int) -> dict[str, Any]:
    """Return the results of another library, each with those of our rule at equal gap."""
    try:
        found, seconds = _RUN[peer](rows, attribute, seed)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    part = _FITTED_ON.get(peer, "fit")
    results: dict[str, Any] = {"seconds": seconds}
    corrected = recalibrated(rows)
    for variant, chances in found.items():
        theirs = measured(chances, rows, attribute)
        results[variant] = {
            **theirs,
            "ours": at_equal_gap(rows, attribute, theirs["gap"], part),
            "recalibrated": at_equal_gap(corrected, attribute, theirs["gap"], part),
        }
    return results


def run(name: str, task: Task, folder: str | None) -> dict[str, Any]:
    """Run one of `METHODS` and return its result."""
    _, attribute, *peer = name.split("_", 2)
    rows = scored(task.data, task.seed, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compared(peer[0], rows, attribute, task.seed) if peer else ours(rows, attribute)
