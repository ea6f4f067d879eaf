"""Other objectives: unequal costs of errors compared with error-parity, and balanced accuracy with Fairlearn.

| comparison | objective | RTO | peer |
| --- | --- | --- | --- |
| costs_5_1 | mean cost: 5 per false positive, 1 per false negative | `costs=(5, 1)` | error-parity |
| costs_1_5 | mean cost: 1 per false positive, 5 per false negative | `costs=(1, 5)` | error-parity |
| balanced | balanced accuracy | target `balanced_accuracy` | Fairlearn on probabilities |

Fairlearn maximizes the mean of the groups' own balanced accuracies, weighted by their sizes, which is not the
balanced accuracy of all rows. Both are measured.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

import fairramp
from reproduction.comparisons import GRID_SIZE, Comparison, methods_of
from reproduction.methods import Outcome, fit_error_parity, fit_fairlearn
from reproduction.protocol import Floats, Integers, Scored, Split, gap


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
class Objective(Comparison):
    """Equal selection rates with an objective other than accuracy.

    `costs` are those of a false positive and of a false negative; None means balanced accuracy.
    """

    costs: tuple[float, float] | None = None

    @property
    def sign(self) -> int:
        """1 if larger values are better, −1 for costs."""
        return -1 if self.costs else 1

    @property
    def unit(self) -> str:
        """Unit of a hundred times the objective."""
        return "per 100 rows" if self.costs else "points"

    @property
    def heading(self) -> str:
        """What a table of the comparison shows."""
        if self.costs is None:
            return f"**{self.title}**, in percent (higher is better), and gap in points:"
        return (
            f"**{self.title}** (false positive to false negative): mean cost per 100 rows (lower is better), "
            "and gap in points:"
        )

    @property
    def criterion(self) -> tuple[str, str]:
        """What a criterion calls the objective and the gap."""
        return f"mean {self.columns[0]}", "mean gap"

    @property
    def columns(self) -> tuple[str, str]:
        """What tables call the objective and the gap."""
        return "cost" if self.costs else "score", "gap"

    @property
    def settings(self) -> Any:
        """What the results of both sides depend on."""
        return self.costs

    def value(self, probabilities: Floats, label: Integers) -> float:
        """Return the objective."""
        if self.costs is None:
            return balanced_accuracy(probabilities, label)
        return mean_cost(probabilities, label, self.costs)

    def measured(self, probabilities: Floats, rows: Split) -> dict[str, float]:
        """Return the objective and the gap and, for balanced accuracy, what Fairlearn maximizes."""
        found = {"objective": self.value(probabilities, rows.label), "gap": gap(probabilities, rows.sex)}
        if self.costs is None:
            found["within_groups"] = balanced_within_groups(probabilities, rows)
        return found

    def on_fit_rows(self, probabilities: Floats, rows: Split) -> dict[str, float]:
        """Return the objective, and that of selecting nobody."""
        return {
            "fit_objective": self.value(probabilities, rows.label),
            "fit_nobody": self.value(np.zeros(len(rows.label)), rows.label),
        }

    def fitted(self, scored: Scored, **options: Any) -> fairramp.Rule:
        """Return RTO's rule."""
        fit, target = scored.fit, "balanced_accuracy" if self.costs is None else "accuracy"
        return fairramp.fit_rule(fit.scores, fit.sex, fit.label, target_rate=target, costs=self.costs, **options)

    def peer_outcome(self, scored: Scored) -> Outcome:
        """Fit the peer."""
        if self.costs is None:
            objective = "balanced_accuracy_score"
            return fit_fairlearn(scored, "predict_proba", objective=objective, grid_size=GRID_SIZE)
        false_positive, false_negative = self.costs
        return fit_error_parity(scored, false_pos_cost=false_positive, false_neg_cost=false_negative)


BALANCED = Objective("balanced", "Balanced accuracy", "Fairlearn")
COMPARISONS = (
    Objective("costs_5_1", "Costs 5:1", "error-parity", (5.0, 1.0)),
    Objective("costs_1_5", "Costs 1:5", "error-parity", (1.0, 5.0)),
    BALANCED,
)

METHODS = methods_of(COMPARISONS)
