"""Error rates: equal true or false positive rates, or both, compared with Fairlearn and with error-parity.

| comparison | RTO | peers |
| --- | --- | --- |
| equal true positive rates | `criterion="equal_opportunity"` | `true_positive_rate_parity` |
| equal false positive rates | `criterion="predictive_equality"` | `false_positive_rate_parity` |
| equalized odds: both | `criterion="equalized_odds"` | `equalized_odds` |

All maximize accuracy and allow no gap. Fairlearn gets probabilities. RTO is fitted once for both peers.
"""

from dataclasses import dataclass
from typing import Any

import fairramp
from fairramp.core.events import FALSE_POSITIVE, ODDS, TRUE_POSITIVE, Event
from reproduction.comparisons import GRID_SIZE, Comparison, methods_of
from reproduction.methods import Outcome, fit_error_parity, fit_fairlearn
from reproduction.protocol import Floats, Scored, Split, accuracy, gap

FAIRLEARN, ERROR_PARITY = "Fairlearn", "error-parity"


def rate_gap(probabilities: Floats, rows: Split, label: int) -> float:
    """Return the largest difference between two groups' expected rates over the rows with one label."""
    which = rows.label == label
    return gap(probabilities[which], rows.sex[which])


def _gap(probabilities: Floats, rows: Split, event: Event) -> float:
    assert event.label is not None
    return rate_gap(probabilities, rows, event.label)


@dataclass(frozen=True)
class ErrorRate(Comparison):
    """Accuracy, and the gap between the true or false positive rates; the larger of the two for both."""

    event: Event

    fields = ("accuracy", "rate_gap")

    @classmethod
    def of(cls, event: Event, peer: str) -> "ErrorRate":
        """Return the comparison of one rate with one peer."""
        return cls(event.criterion, "Equalized odds" if event.parts else f"Equal {event.rate}s", peer, event)

    @property
    def theirs(self) -> str:
        """Name of the peer's results."""
        return f"{self.name}_{self.peer.lower().replace('-', '_')}"

    @property
    def full(self) -> str:
        """The title, as no other comparison has it."""
        return f"{self.title}, {self.peer}"

    @property
    def brief(self) -> str:
        """What distinguishes the comparison from others in a sentence."""
        return f"compared with {self.peer}"

    @property
    def criterion(self) -> tuple[str, str]:
        """What a criterion calls the objective and the gap."""
        gap = "larger gap, on average over seeds," if self.event.parts else f"mean {self.columns[1]}"
        return "mean accuracy", gap

    @property
    def constraint(self) -> str:
        """What both peers call it."""
        return "equalized_odds" if self.event.parts else f"{self.event.name}_rate_parity"

    @property
    def heading(self) -> str:
        """What a table of the comparison shows."""
        gap = f"gap between the {self.event.rate}s ({self.event.short})"
        if self.event.parts:
            gap = "the larger of the TPR and the FPR gap"
        return f"**{self.title}, compared with {self.peer}**: accuracy in percent, and {gap} in points:"

    @property
    def columns(self) -> tuple[str, str]:
        """What tables call the objective and the gap."""
        return "accuracy", "larger gap" if self.event.parts else f"{self.event.short} gap"

    @property
    def settings(self) -> Any:
        """What the results of both sides depend on."""
        return self.event.criterion

    def measured(self, probabilities: Floats, rows: Split) -> dict[str, float]:
        """Return the accuracy and the gap; for equalized odds, also both gaps."""
        gaps = {f"{part.short.lower()}_gap": _gap(probabilities, rows, part) for part in self.event.simple}
        found = {"accuracy": accuracy(probabilities, rows.label), "rate_gap": max(gaps.values())}
        return found | (gaps if self.event.parts else {})

    def on_fit_rows(self, probabilities: Floats, rows: Split) -> dict[str, float]:
        """Return the same for the fit rows, whose gap must be 0."""
        return {f"fit_{name}": value for name, value in self.measured(probabilities, rows).items()}

    def fitted(self, scored: Scored, **options: Any) -> fairramp.Rule:
        """Return RTO's rule."""
        fit = scored.fit
        return fairramp.fit_rule(fit.scores, fit.sex, fit.label, criterion=self.event.criterion, **options)

    def peer_outcome(self, scored: Scored) -> Outcome:
        """Fit the peer."""
        if self.peer == ERROR_PARITY:
            return fit_error_parity(scored, constraint=self.constraint)
        return fit_fairlearn(scored, "predict_proba", constraints=self.constraint, grid_size=GRID_SIZE)


COMPARISONS = tuple(
    ErrorRate.of(event, peer)
    for event in (TRUE_POSITIVE, FALSE_POSITIVE, ODDS)
    for peer in (FAIRLEARN, ERROR_PARITY)
)

METHODS = methods_of(COMPARISONS)
