"""The page's section on decisions without the group, and our criterion for them.

Every number is computed, and so is the choice of sentences that depend on one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from reproduction import without
from reproduction.claims import OBJECTIVE_LOSS, QUICK_GAP, QUICK_LOSS, Claim
from reproduction.results import Mean, Results, signed, table, with_error
from reproduction.store import Result

_PAIR = (without.DATA, without.CLASSIFIER)
_TITLES = {
    "original": ("the classifier's own decisions", "not used"),
    "aware": ("rule with known groups", "known"),
    "logistic": ("rule with group probabilities, logistic", "estimated"),
    "boosting": ("rule with group probabilities, boosting", "estimated"),
    "bad": ("rule with group probabilities, uninformative", "estimated"),
    "estimator": ("estimator with a group model, logistic", "estimated"),
    "reduction": ("Fairlearn's reduction", "not used"),
    "linearpost_logistic": ("LinearPost, logistic", "estimated"),
    "linearpost_boosting": ("LinearPost, boosting", "estimated"),
}
#: Names of the group models that differ from those in the results.
_MODELS = {"bad": "uninformative"}
_PEOPLE = {"sex": "women and men", "race": "the five races"}

#: Reads the result of one limit from what is stored about a seed.
Read = Callable[[dict[str, Result], str], Any]


def _reading(method: str, attribute: str) -> Read:
    """How a method's results with one limit are read."""
    name = f"without_{attribute}"
    if method == "original":
        return lambda run, limit: run[name]["original"]
    if method == "reduction":
        return lambda run, limit: run[f"{name}_reduction"][limit]
    if method.startswith("linearpost"):
        return lambda run, limit: run[f"{name}_linearpost"][method.removeprefix("linearpost_")][limit]
    return lambda run, limit: run[name][method][limit]


def means(results: Results, method: str, attribute: str, limit: float, field: str) -> Mean | None:
    """Return the mean of one number over seeds, or None if there is none."""
    read = _reading(method, attribute)
    values = []
    for run in results.runs[_PAIR].values():
        try:
            values.append(read(run, str(limit))[field])
        except KeyError:  # not run with this seed
            continue
    return Mean.of(np.array(values)) if values else None


def _paired(results: Results, model: str, attribute: str, limit: float, field: str) -> Mean | None:
    """Return the mean difference between our rule and LinearPost with the same group model."""
    ours, theirs = (_reading(method, attribute) for method in (model, f"linearpost_{model}"))
    runs = [
        r
        for r in results.runs[_PAIR].values()
        if {f"without_{attribute}", f"without_{attribute}_linearpost"} <= set(r)
    ]
    values = [ours(run, str(limit))[field] - theirs(run, str(limit))[field] for run in runs]
    return Mean.of(100 * np.array(values)) if values else None


def against_linearpost(results: Results, field: str) -> dict[tuple[str, str, float], Mean]:
    """Return our mean difference from LinearPost in points, by attribute, group model and limit."""
    found = {
        (attribute, model, limit): _paired(results, model, attribute, limit, field)
        for attribute in without.ATTRIBUTES
        for model in without.POST_MODELS
        for limit in without.MAX_GAPS
    }
    return {key: mean for key, mean in found.items() if mean}


def criteria(results: Results) -> list[Claim]:
    """Return our criterion: no less accurate than LinearPost, with the same allowed gap."""
    each = against_linearpost(results, "accuracy")
    if not each:
        return []
    worst = min(each, key=lambda key: each[key].value)
    attribute, model, limit = worst
    wider = max(mean.value for mean in against_linearpost(results, "gap").values())
    return [
        Claim(
            f"Without the group: mean accuracy at most {OBJECTIVE_LOSS} points below that of *LinearPost* with "
            "the same scores, group probabilities and allowed gap",
            each[worst].value >= -OBJECTIVE_LOSS,
            f"worst {signed(each[worst].value, 2)} points ({attribute}, {model}, {100 * limit:g} points "
            f"allowed); gap at most {signed(wider, 2)} points larger",
        )
    ]


def quick(results: Results) -> list[Claim]:
    """Return the check of the quick run."""
    found = {
        (method, field): means(results, method, "sex", 0.0, field)
        for method in ("logistic", "aware")
        for field in ("gap", "accuracy")
    }
    blind, loss = found["logistic", "gap"], float("inf")
    if blind and (ours := found["logistic", "accuracy"]) and (known := found["aware", "accuracy"]):
        loss = 100 * (known.value - ours.value)
    left = blind.value if blind else float("inf")
    text = (
        "without sex and race, the rule that uses group probabilities leaves a gap of at most "
        f"{100 * QUICK_GAP:g} points by true sex, and is at most {QUICK_LOSS:g} point less accurate than the "
        "rule that knows it"
    )
    holds = left <= QUICK_GAP and loss <= QUICK_LOSS
    return [Claim(text, holds, f"gap {100 * left:.1f} points, {loss:.2f} points less accurate")]


def section(results: Results) -> str:
    """Return the section."""
    seeds = [run for run in results.runs[_PAIR].values() if set(without.OURS) <= set(run)]
    if not seeds:
        return ""

    def told(method: str, attribute: str, field: str, limit: float = 0.0) -> str:
        mean = means(results, method, attribute, limit, field)
        assert mean is not None
        return f"{100 * mean.value:.1f}"

    parts = [
        "## Without the group",
        "If the classifier and the rule may not use sex, a *group model* can estimate it from the other "
        "features, and the rule then uses the estimated probabilities. On Adult, with sex and race excluded from "
        "the features, a logistic group model lowers the gap between women and men, measured by their true sex, "
        f"from {told('original', 'sex', 'gap')} to {told('logistic', 'sex', 'gap')} points, at an accuracy of "
        f"{told('logistic', 'sex', 'accuracy')}%. A rule that knows each person's sex has a gap of "
        f"{told('aware', 'sex', 'gap')} points and an accuracy of {told('aware', 'sex', 'accuracy')}%.",
        f"The gap between the five races is {told('original', 'race', 'gap')} points for the classifier alone. "
        f"It is {told('logistic', 'race', 'gap')} points with the logistic group model, at an accuracy of "
        f"{told('logistic', 'race', 'accuracy')}%; {told('boosting', 'race', 'gap')} points with a "
        f"gradient-boosted one, at {told('boosting', 'race', 'accuracy')}%; and {told('aware', 'race', 'gap')} "
        f"points if race is known, at {told('aware', 'race', 'accuracy')}%. Two of the races each have "
        "about 1% of the rows, that is, fewer than 100 test rows, so gaps by race are uncertain.",
        "An uninformative group model does not help. Measured by the model's own probabilities, the gap between "
        f"women and men is {told('bad', 'sex', 'expected_gap')} points on test rows, but measured by true sex, "
        f"it stays at {told('bad', 'sex', 'gap')} points. Only the true groups show this.",
        _compared(results),
    ]
    for attribute in without.ATTRIBUTES:
        parts += [
            f"**By {attribute}**: gap between {_PEOPLE[attribute]} on test rows, in points, and accuracy in "
            "percent, for two allowed gaps on the fit rows:",
            _table(results, attribute),
        ]
    parts += [_models(results), _how(len(seeds))]
    return "\n\n".join(part for part in parts if part)


def _compared(results: Results) -> str:
    accuracy, gap = (against_linearpost(results, field) for field in ("accuracy", "gap"))
    if not accuracy:
        return ""
    close = sum(mean.value >= -OBJECTIVE_LOSS for mean in accuracy.values())
    losses, gaps = ([mean.value for mean in found.values()] for found in (accuracy, gap))
    return (
        "LinearPost (Xian and Zhao, 2024) solves the same problem without a ramp, as a linear program. With "
        f"the same scores, group probabilities and allowed gap, our mean accuracy is at most {OBJECTIVE_LOSS} "
        f"points below that of LinearPost in {close} of {len(accuracy)} comparisons. The differences (ours − "
        f"LinearPost) are {signed(min(losses), 2)} to {signed(max(losses), 2)} points in accuracy and "
        f"{signed(min(gaps), 2)} to {signed(max(gaps), 2)} points in the gap. Fairlearn's reduction limits the "
        "difference between each group's rate and the overall rate to 1 or 2 points, so it allows larger gaps "
        "between two groups."
    )


def _table(results: Results, attribute: str) -> str:
    rows = []
    for method, (title, group) in _TITLES.items():
        cells = []
        for limit in without.MAX_GAPS:
            for field, digits in (("gap", 1), ("accuracy", 2)):
                mean = means(results, method, attribute, limit, field)
                cells.append("–" if mean is None else with_error(mean, digits, 100))
        if set(cells) != {"–"}:
            rows.append([title, group, *cells])
    limits = [f"{100 * limit:g}" for limit in without.MAX_GAPS]
    header = [f"{what}, {limit} points allowed" for limit in limits for what in ("gap", "accuracy")]
    return table(["method", "group at decision time", *header], rows)


def _models(results: Results) -> str:
    """Say how well each group model tells the groups apart."""
    rows = []
    for attribute in without.ATTRIBUTES:
        runs = list(results.each(_PAIR, f"without_{attribute}").values())
        for label in runs[0]["logistic"]["auc"]:
            cells = [f"{np.mean([run[m]['auc'][label] for run in runs]):.2f}" for m in without.MODELS]
            rows.append([attribute, label, *cells])
    return (
        "The next table shows how well the group models distinguish each group from the others on test rows, "
        "as the area under the receiver operating characteristic curve (½ means no better than chance). Sex is "
        "easy to infer, because the attribute *relationship* has the values Husband and Wife.\n\n"
        + table(["attribute", "group", *(_MODELS.get(name, name) for name in without.MODELS)], rows)
    )


def _how(seeds: int) -> str:
    bounds = " and ".join(f"{bound:g}" for bound in without.BOUNDS.values())
    return (
        f"The splits are those described above, with {seeds} seed{'s' if seeds > 1 else ''}. The classifier and "
        "the logistic group model are logistic regressions with default settings; the gradient-boosted "
        "group model is scikit-learn's `HistGradientBoostingClassifier`. All three are trained on the "
        "classifier's half of the rows, and rules are fitted on the fit rows. The uninformative group model "
        "returns each group's share, multiplied by a random number between "
        f"{1 - without.NOISE:g} and {1 + without.NOISE:g}, scaled to sum to 1. The estimator is "
        "`RandomizedThresholdOptimizer(…, group_estimator=…)`, which cross-fits "
        "both models on the training and fit rows. The reduction is `ExponentiatedGradient` with at most 50 "
        f"iterations and `DemographicParity(difference_bound=…)` of {bounds}, trained without sex and race as "
        "features. LinearPost is the authors' code (`rxian/fair-classification` on GitHub) with cvxpy's "
        "default solver; to run it, pass a folder that contains it: `make reproduce LINEARPOST=folder`."
    )
