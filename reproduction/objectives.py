"""Other objectives: unequal costs of errors compared with error-parity, and balanced accuracy with Fairlearn.

Both sides of a comparison get the same scores, groups and fit rows, the same objective, and no allowed gap. They
are measured on test rows by selection probabilities, as in `methods`.

| comparison | objective | RTO | peer |
| --- | --- | --- | --- |
| costs_5_1 | mean cost: 5 per false positive, 1 per false negative | `costs=(5, 1)` | error-parity |
| costs_1_5 | mean cost: 1 per false positive, 5 per false negative | `costs=(1, 5)` | error-parity |
| balanced | balanced accuracy | target `balanced_accuracy` | Fairlearn on probabilities |

Fairlearn maximizes the mean of the groups' own balanced accuracies, weighted by their sizes, which is not the
balanced accuracy of all rows. Both are measured.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import fairramp
from reproduction.methods import Method, Outcome, fit_error_parity, fit_fairlearn, rule_outcome, timed
from reproduction.protocol import Floats, Integers, Scored, Split, gap

#: Fairlearn's interpolation grid of selection rates.
GRID_SIZE = 1000
#: Ramp widths that are measured besides the default, 0.01.
OTHER_WIDTHS = (0.0, 0.05)


def mean_cost(probabilities: Floats, label: Integers, costs: tuple[float, float]) -> float:
    """Return the expected cost per row, for the costs of a false positive and of a false negative."""
    return float(np.where(label == 1, costs[1] * (1 - probabilities), costs[0] * probabilities).mean())


def balanced_accuracy(probabilities: Floats, label: Integers) -> float:
    """Return the mean of the expected true positive rate and the expected true negative rate."""
    return float(probabilities[label == 1].mean() + (1 - probabilities[label == 0]).mean()) / 2


def balanced_within_groups(probabilities: Floats, split: Split) -> float:
    """Return the mean of the groups' balanced accuracies, weighted by their sizes: what Fairlearn maximizes."""
    members = [split.sex == name for name in np.unique(split.sex)]
    return float(sum(m.mean() * balanced_accuracy(probabilities[m], split.label[m]) for m in members))


@dataclass(frozen=True)
class Comparison:
    """An objective, and the names of the methods that are compared by it.

    `costs` are those of a false positive and of a false negative; None means balanced accuracy.
    """

    name: str
    title: str
    peer: str
    costs: tuple[float, float] | None = None

    @property
    def ours(self) -> str:
        """Name of RTO's results."""
        return f"{self.name}_rto"

    @property
    def theirs(self) -> str:
        """Name of the peer's results."""
        return f"{self.name}_peer"

    @property
    def sign(self) -> int:
        """1 if larger values are better, −1 for costs."""
        return -1 if self.costs else 1

    def value(self, probabilities: Floats, label: Integers) -> float:
        """Return the objective."""
        if self.costs is None:
            return balanced_accuracy(probabilities, label)
        return mean_cost(probabilities, label, self.costs)


BALANCED = Comparison("balanced", "Balanced accuracy", "Fairlearn")
COMPARISONS = (
    Comparison("costs_5_1", "Costs 5:1", "error-parity", (5.0, 1.0)),
    Comparison("costs_1_5", "Costs 1:5", "error-parity", (1.0, 5.0)),
    BALANCED,
)


def _measured(comparison: Comparison, scored: Scored, outcome: Outcome) -> Outcome:
    """Add the objective on the test rows to an outcome."""
    found = {"objective": comparison.value(outcome.probabilities, scored.test.label)}
    if comparison.costs is None:
        found["within_groups"] = balanced_within_groups(outcome.probabilities, scored.test)
    return Outcome(outcome.probabilities, outcome.seconds, {**found, **outcome.details})


def _rto(comparison: Comparison) -> Callable[[Scored], Outcome]:
    def run(scored: Scored) -> Outcome:
        rule, seconds = timed(lambda: _fitted(comparison, scored))
        fit = scored.fit
        details: dict[str, Any] = {
            "fit_objective": comparison.value(rule.probabilities(fit.scores, fit.sex), fit.label),
            "fit_nobody": comparison.value(np.zeros(len(fit.label)), fit.label),
        }
        details["other_widths"] = {str(width): _with_width(comparison, scored, width) for width in OTHER_WIDTHS}
        return _measured(comparison, scored, rule_outcome(rule, scored, seconds, details))

    return run


def _with_width(comparison: Comparison, scored: Scored, width: float) -> dict[str, float]:
    """Return objective and gap with another ramp width: how much of a difference is due to the ramp."""
    test = scored.test
    probabilities = _fitted(comparison, scored, ramp_width=width).probabilities(test.scores, test.sex)
    return {"objective": comparison.value(probabilities, test.label), "gap": gap(probabilities, test.sex)}


def _fitted(comparison: Comparison, scored: Scored, **options: Any) -> fairramp.Rule:
    fit = scored.fit
    target = "balanced_accuracy" if comparison.costs is None else "accuracy"
    return fairramp.fit_rule(
        fit.scores, fit.sex, fit.label, target_rate=target, costs=comparison.costs, **options
    )


def _peer(comparison: Comparison) -> Callable[[Scored], Outcome]:
    def run(scored: Scored) -> Outcome:
        if comparison.costs is None:
            objective = "balanced_accuracy_score"
            outcome = fit_fairlearn(scored, "predict_proba", objective=objective, grid_size=GRID_SIZE)
        else:
            false_positive, false_negative = comparison.costs
            outcome = fit_error_parity(scored, false_pos_cost=false_positive, false_neg_cost=false_negative)
        return _measured(comparison, scored, outcome)

    return run


METHODS = {
    name: method
    for comparison in COMPARISONS
    for name, method in (
        (comparison.ours, Method(_rto(comparison), [comparison.costs, OTHER_WIDTHS, "fit rows"])),
        (comparison.theirs, Method(_peer(comparison), [comparison.costs, GRID_SIZE], is_peer=True)),
    )
}
