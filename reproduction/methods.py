"""Post-processing methods: from a classifier's scores to selection probabilities on test rows.

A method is fitted on the fit rows, chooses its settings (if it has any) on the validation rows, and is measured
on the test rows by its *probabilities*. Nothing is drawn, so gaps and accuracies have no sampling noise from
draws.

| method | needs labels | description |
| --- | --- | --- |
| original | no | the classifier's own decisions |
| rto | to choose ρ, γ | the paper's rule and grid, solved exactly |
| rto_sgd | to choose ρ, γ | the same, by the paper's stochastic gradient descent |
| rto_optimal | no | fairramp's default: the common rate with the smallest cost |
| rto_accuracy | yes | fairramp's label-aware rates |
| hardt_labels | yes | Fairlearn's ThresholdOptimizer on hard labels, the paper's column |
| hardt_scores | yes | the same on probabilities |
| shift | those of training rows | shift inference |
| roc | no | the reject option classifier |
| error_parity | yes | error-parity's RelaxedThresholdOptimizer |
| holisticai | no | holisticai's copy of the paper's published code |
"""

import inspect
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.base import BaseEstimator, ClassifierMixin

import fairramp
from reproduction.protocol import Floats, Scored, Split, accuracy, gap, selection_rates

#: Settings of Figure 1(b): γ = 0.1 in signed scores, and the number of epochs that the figure shows.
FIGURE_RAMP_WIDTH = 0.05
EPOCHS = 25
#: The paper's grid, which is the default of `fairramp.tune`: γ/2, and ρ minus the share of positive labels.
GRID = {"ramp_widths": [0.005, 0.01, 0.025, 0.05, 0.1], "rates": [-0.1, -0.05, 0.0, 0.05, 0.1]}
DESCENT = {"epochs": EPOCHS, "batch_size": 1}
#: Trade-off curves: tolerances as shares of the classifier's own gap on the fit rows.
SHARES = tuple(i / 8 for i in range(9))


@dataclass(frozen=True, eq=False)
class Outcome:
    """Selection probabilities on the test rows, seconds to fit, and details to store."""

    probabilities: Floats
    seconds: float
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A method and the settings that its results depend on."""

    run: Callable[[Scored], Outcome]
    settings: Any = 1
    #: Whether it is another library's; its errors are then recorded as results.
    is_peer: bool = False


def own_decisions(scores: Floats) -> Floats:
    """Return the classifier's own decisions as probabilities, 0 or 1."""
    return (scores > 0.5).astype(np.float64)


def original(scored: Scored) -> Outcome:
    """Return the classifier's own decisions, with the labels' gap and the classifier's training time."""
    details = {
        "train_seconds": scored.train_seconds,
        "train_bias": gap(scored.train_label.astype(np.float64), scored.train_sex),
        "test_bias": gap(scored.test.label.astype(np.float64), scored.test.sex),
        "test_label_rates": selection_rates(scored.test.label.astype(np.float64), scored.test.sex),
        "share_on_ten_values": _crowding(scored.test.scores),
        **scored.chosen,
    }
    return Outcome(own_decisions(scored.test.scores), 0.0, details)


def _crowding(scores: Floats) -> float:
    """Share of rows with one of the ten most common scores; near 1 if thresholds alone cannot equalize rates."""
    counts = np.unique(scores, return_counts=True)[1]
    return float(np.sort(counts)[-10:].sum() / len(scores))


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a call and the seconds that it took."""
    start = time.perf_counter()
    result = fit()
    return result, time.perf_counter() - start


def _tuned(scored: Scored, **options: Any) -> fairramp.Tuned:
    """Choose γ and ρ from the paper's grid by accuracy on the validation rows."""
    fit, validation = scored.fit, scored.validation
    rows = (validation.scores, validation.sex, validation.label)
    return fairramp.tune(fit.scores, fit.sex, fit.label, validation=rows, ramp="paper", **options)


def _probabilities(rule: fairramp.Rule, split: Split) -> Floats:
    return rule.probabilities(split.scores, split.sex)


def _described(rule: fairramp.Rule) -> dict[str, Any]:
    thresholds = {str(name): threshold for name, threshold in zip(rule.groups, rule.thresholds, strict=True)}
    return {"thresholds": thresholds, "ramp_width": rule.ramps[0].width, "target_rate": rule.target_rate}


def rule_outcome(
    rule: fairramp.Rule, scored: Scored, seconds: float, details: dict[str, Any] | None = None
) -> Outcome:
    """Return a fitted rule's probabilities on the test rows, its thresholds, and further details."""
    return Outcome(_probabilities(rule, scored.test), seconds, {**(details or {}), **_described(rule)})


def rto(scored: Scored) -> Outcome:
    """Return the paper's rule, solved exactly."""
    tuned, tuning = timed(lambda: _tuned(scored))
    chosen = {"ramp_width": tuned.rule.ramps[0].width, "target_rate": tuned.rule.target_rate}
    rule, seconds = timed(lambda: fairramp.fit_rule(scored.fit.scores, scored.fit.sex, ramp="paper", **chosen))
    return rule_outcome(rule, scored, seconds, {"tuning_seconds": tuning})


def _descended(scored: Scored, iterate: str, **options: Any) -> fairramp.Rule:
    solver = fairramp.SGD(epochs=EPOCHS, batch_size=1, iterate=iterate, random_state=scored.task.seed)
    return fairramp.fit_rule(scored.fit.scores, scored.fit.sex, ramp="paper", solver=solver, **options)


def rto_sgd(scored: Scored) -> Outcome:
    """Return the paper's rule, fitted by its own algorithm (last iterate)."""
    exact = _tuned(scored).rule
    chosen = {"ramp_width": exact.ramps[0].width, "target_rate": exact.target_rate}
    rule, seconds = timed(lambda: _descended(scored, "last", **chosen))
    return rule_outcome(rule, scored, seconds)


def convergence(scored: Scored) -> Outcome:
    """Return the data of Figure 1(b): thresholds after each epoch and exact ones, in signed scores."""
    options = {"ramp_width": FIGURE_RAMP_WIDTH, "target_rate": float(scored.fit.label.mean())}
    rule, seconds = timed(lambda: _descended(scored, "last", **options))
    exact = fairramp.fit_rule(scored.fit.scores, scored.fit.sex, ramp="paper", **options)
    average = _descended(scored, "average", **options)
    names = [str(name) for name in rule.groups]
    elsewhere = {
        step: fairramp.fit_rule(
            scored.fit.scores,
            scored.fit.sex,
            ramp="paper",
            ramp_width=FIGURE_RAMP_WIDTH,
            target_rate=options["target_rate"] + step,
        )
        for step in GRID["rates"]
    }
    details = {
        "exact_by_rate": {
            name: {str(step): round(2 * other.thresholds[i] - 1, 4) for step, other in elsewhere.items()}
            for i, name in enumerate(names)
        },
        "exact": {name: 2 * threshold - 1 for name, threshold in zip(names, exact.thresholds, strict=True)},
        "average": {name: 2 * threshold - 1 for name, threshold in zip(names, average.thresholds, strict=True)},
        "trace": {
            name: [round(2 * epoch[i] - 1, 6) for epoch in rule.record.trace] for i, name in enumerate(names)
        },
        "average_gap": gap(_probabilities(average, scored.test), scored.test.sex),
        **options,
    }
    return Outcome(_probabilities(rule, scored.test), seconds, details)


def rto_optimal(scored: Scored) -> Outcome:
    """Return fairramp's default rule, which needs no labels."""
    rule, seconds = timed(lambda: fairramp.fit_rule(scored.fit.scores, scored.fit.sex))
    return rule_outcome(rule, scored, seconds)


def rto_accuracy(scored: Scored) -> Outcome:
    """Return fairramp's label-aware rule."""
    fit = scored.fit
    rule, seconds = timed(lambda: fairramp.fit_rule(fit.scores, fit.sex, fit.label, target_rate="accuracy"))
    return rule_outcome(rule, scored, seconds)


class ScoreColumn(ClassifierMixin, BaseEstimator):
    """A trained classifier for Fairlearn whose only feature is its score."""

    def __init__(self) -> None:
        self.classes_ = np.array([0, 1])

    def fit(self, x: Floats, y: Any) -> "ScoreColumn":
        """Do nothing: the classifier is already trained."""
        return self

    def predict(self, x: Floats) -> Any:
        """Return hard labels."""
        return (x[:, 0] > 0.5).astype(np.int64)

    def predict_proba(self, x: Floats) -> Floats:
        """Return probabilities of both classes."""
        return np.column_stack([1 - x[:, 0], x[:, 0]])


def fit_fairlearn(
    scored: Scored,
    predict_method: str,
    constraints: str = "demographic_parity",
    objective: str = "accuracy_score",
    **options: Any,
) -> Outcome:
    """Fit Fairlearn's rule; `options` are further options of its class."""
    fit, test = scored.fit, scored.test
    optimizer = ThresholdOptimizer(
        estimator=ScoreColumn(),
        constraints=constraints,
        objective=objective,
        prefit=True,
        predict_method=predict_method,
        **options,
    )
    _, seconds = timed(lambda: optimizer.fit(fit.scores[:, None], fit.label, sensitive_features=fit.sex))
    probabilities = optimizer._pmf_predict(test.scores[:, None], sensitive_features=test.sex)[:, 1]
    return Outcome(np.asarray(probabilities, dtype=np.float64), seconds)


def hardt_labels(scored: Scored) -> Outcome:
    """Return Fairlearn's rule on hard labels, the paper's column."""
    return fit_fairlearn(scored, "predict")


def hardt_scores(scored: Scored) -> Outcome:
    """Return Fairlearn's rule on probabilities."""
    return fit_fairlearn(scored, "predict_proba")


def shift(scored: Scored) -> Outcome:
    """Return shift inference, with the label shares of the classifier's training rows."""
    from fairramp.baselines import fit_shift_inference

    fitted, seconds = timed(lambda: fit_shift_inference(scored.train_label, scored.train_sex))
    return Outcome(fitted.probabilities(scored.test.scores, scored.test.sex), seconds)


def roc(scored: Scored) -> Outcome:
    """Return the reject option classifier, with θ chosen on the validation rows."""
    from fairramp.baselines import fit_reject_option

    rows = (scored.validation.scores, scored.validation.sex)
    fitted, seconds = timed(lambda: fit_reject_option(scored.fit.scores, scored.fit.sex, validation=rows))
    return Outcome(fitted.probabilities(scored.test.scores, scored.test.sex), seconds)


def error_parity(scored: Scored) -> Outcome:
    """Return error-parity's rule at tolerance 0."""
    return fit_error_parity(scored)


def fit_error_parity(scored: Scored, constraint: str = "demographic_parity", **options: Any) -> Outcome:
    """Fit error-parity's rule at tolerance 0; its probabilities are those of its mixture, instead of draws.

    `options` are further options of its class.
    """
    from error_parity import RelaxedThresholdOptimizer

    fit, test = scored.fit, scored.test
    groups, codes = np.unique(fit.sex, return_inverse=True)
    optimizer = RelaxedThresholdOptimizer(
        predictor=lambda x: x[:, 0],
        constraint=constraint,
        tolerance=0.0,
        seed=scored.task.seed,
        **options,
    )
    _, seconds = timed(lambda: optimizer.fit(fit.scores[:, None], fit.label, group=codes))
    probabilities = np.empty(len(test.scores))
    for code, name in enumerate(groups):
        member = test.sex == name
        drawn_from = optimizer._realized_classifier.group_to_clf[code]
        probabilities[member] = _mixture(drawn_from, test.scores[member][:, None])
    return Outcome(probabilities, seconds)


def _mixture(classifier: Any, x: Floats) -> Floats:
    """Return the selection probability of error-parity's randomized classifiers, instead of a draw."""
    if hasattr(classifier, "classifiers"):
        parts = zip(classifier.probabilities, classifier.classifiers, strict=True)
        return np.asarray(sum(share * _mixture(part, x) for share, part in parts))
    if hasattr(classifier, "target_fpr"):
        return np.full(len(x), float(classifier.target_fpr))
    if inspect.isfunction(classifier):  # draws with a rate that only its closure has
        return np.full(len(x), float(inspect.getclosurevars(classifier).nonlocals["fpr_rand"]))
    return np.asarray(classifier(x), dtype=np.float64)


def holisticai(scored: Scored) -> Outcome:
    """Return holisticai's rule with its default number of steps and the γ and ρ of `rto`."""
    # The package's public class wraps this algorithm in a pipeline.
    from holisticai.bias.mitigation.postprocessing.ml_debiaser.randomized_threshold.algorithm import (
        RandomizedThresholdAlgorithm,
    )

    rule = _tuned(scored).rule
    _, fit_codes = np.unique(scored.fit.sex, return_inverse=True)
    _, test_codes = np.unique(scored.test.sex, return_inverse=True)
    np.random.seed(scored.task.seed)  # noqa: NPY002 - the peer draws from the global state
    algorithm = RandomizedThresholdAlgorithm(gamma=2 * rule.ramps[0].width, eps=0.0, rho=rule.target_rate)
    _, seconds = timed(lambda: algorithm.fit(2 * scored.fit.scores - 1, fit_codes))
    return Outcome(np.asarray(algorithm.predict(2 * scored.test.scores - 1, test_codes)), seconds)


def tradeoff(scored: Scored) -> Outcome:
    """Return the data of Figure 2 (left): gap and accuracy on the test rows for increasing tolerance.

    The method of Hardt et al. has no tolerance in the paper: its decisions are mixed with the classifier's own,
    which gives a straight line. The other curve uses Fairlearn's newer option `tol`, on probabilities.
    """
    fit, test = scored.fit, scored.test
    own = own_decisions(test.scores)
    own_gap = gap(own_decisions(fit.scores), fit.sex)
    width = _tuned(scored).rule.ramps[0].width
    hardt = hardt_labels(scored).probabilities
    curves: dict[str, list[Floats]] = {"rto": [], "rto_accuracy": [], "hardt_labels": [], "hardt_scores": []}
    for share in SHARES:
        tolerance = share * own_gap
        rule = _tuned(scored, ramp_widths=[width], max_gap=tolerance).rule
        curves["rto"].append(_probabilities(rule, test))
        aware = fairramp.fit_rule(
            fit.scores, fit.sex, fit.label, max_gap=tolerance, target_rate="accuracy", ramp_width=0.01
        )
        curves["rto_accuracy"].append(_probabilities(aware, test))
        curves["hardt_labels"].append((1 - share) * hardt + share * own)
        curves["hardt_scores"].append(fit_fairlearn(scored, "predict_proba", tol=tolerance or None).probabilities)
    points = {
        name: [[round(gap(c, test.sex), 6), round(accuracy(c, test.label), 6)] for c in probabilities]
        for name, probabilities in curves.items()
    }
    return Outcome(own, 0.0, {"shares": SHARES, "curves": points})


METHODS = {
    "original": Method(original, "with label rates"),
    "rto": Method(rto, GRID),
    "rto_sgd": Method(rto_sgd, [GRID, DESCENT]),
    "rto_optimal": Method(rto_optimal),
    "rto_accuracy": Method(rto_accuracy),
    "hardt_labels": Method(hardt_labels),
    "hardt_scores": Method(hardt_scores),
    "shift": Method(shift),
    "roc": Method(roc),
    "error_parity": Method(error_parity, is_peer=True),
    "holisticai": Method(holisticai, GRID, is_peer=True),
    "convergence": Method(convergence, [FIGURE_RAMP_WIDTH, DESCENT, GRID]),
    "tradeoff": Method(tradeoff, [GRID, SHARES]),
}


def measure(outcome: Outcome, test: Split) -> dict[str, Any]:
    """Return the part of an outcome that is stored."""
    return {
        "gap": gap(outcome.probabilities, test.sex),
        "accuracy": accuracy(outcome.probabilities, test.label),
        "rates": selection_rates(outcome.probabilities, test.sex),
        "seconds": outcome.seconds,
        **outcome.details,
    }


def run(name: str, scored: Scored) -> dict[str, Any]:
    """Run one of `METHODS` and return its result."""
    return run_method(METHODS[name], scored)


def run_method(method: Method, scored: Scored) -> dict[str, Any]:
    """Run a method and return its result; for a peer that fails, the reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return measure(method.run(scored), scored.test)
        except Exception as error:
            if not method.is_peer:
                raise
            return {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
