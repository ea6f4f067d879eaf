"""Comparisons of RTO with another library by one objective and one gap; see `objectives` and `error_rates`.

Both sides of a comparison get the same scores, groups and fit rows, the same objective, and no allowed gap. They
are measured on test rows by selection probabilities, as in `methods`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import fairramp
from reproduction.methods import Method, Outcome, rule_outcome, timed
from reproduction.protocol import Floats, Scored, Split

#: Fairlearn's interpolation grid of rates.
GRID_SIZE = 1000
#: Ramp widths that are measured besides the default, 0.01.
OTHER_WIDTHS = (0.0, 0.05)


@dataclass(frozen=True)
class Comparison(ABC):
    """An objective, and the names of the methods that are compared by it."""

    name: str
    title: str
    peer: str

    #: The stored numbers that are compared: the objective and the gap.
    fields: ClassVar[tuple[str, str]] = ("objective", "gap")

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
        return 1

    @property
    def unit(self) -> str:
        """Unit of a hundred times the objective."""
        return "points"

    @property
    def full(self) -> str:
        """The title, as no other comparison has it."""
        return self.title

    @property
    def brief(self) -> str:
        """What distinguishes the comparison from others in a sentence."""
        return self.title[0].lower() + self.title[1:]

    @property
    def criterion(self) -> tuple[str, str]:
        """What a criterion calls the objective and the gap."""
        return "mean", "mean gap"

    @property
    @abstractmethod
    def heading(self) -> str:
        """What a table of the comparison shows."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, str]:
        """What tables call the objective and the gap."""

    @property
    @abstractmethod
    def settings(self) -> Any:
        """What the results of both sides depend on."""

    @abstractmethod
    def measured(self, probabilities: Floats, rows: Split) -> dict[str, float]:
        """Return the objective, the gap, and perhaps other numbers."""

    @abstractmethod
    def on_fit_rows(self, probabilities: Floats, rows: Split) -> dict[str, float]:
        """Return what is stored about the fit rows."""

    @abstractmethod
    def fitted(self, scored: Scored, **options: Any) -> fairramp.Rule:
        """Return RTO's rule."""

    @abstractmethod
    def peer_outcome(self, scored: Scored) -> Outcome:
        """Fit the peer."""


def _rto(comparison: Comparison) -> Callable[[Scored], Outcome]:
    def run(scored: Scored) -> Outcome:
        rule, seconds = timed(lambda: comparison.fitted(scored))
        fit = scored.fit
        details: dict[str, Any] = comparison.on_fit_rows(rule.probabilities(fit.scores, fit.sex), fit)
        details["other_widths"] = {str(width): _with_width(comparison, scored, width) for width in OTHER_WIDTHS}
        return _measured(comparison, scored, rule_outcome(rule, scored, seconds, details))

    return run


def _with_width(comparison: Comparison, scored: Scored, width: float) -> dict[str, float]:
    """Return objective and gap with another ramp width: how much of a difference is due to the ramp."""
    test = scored.test
    rule = comparison.fitted(scored, ramp_width=width)
    found = comparison.measured(rule.probabilities(test.scores, test.sex), test)
    return {name: found[name] for name in comparison.fields}


def _peer(comparison: Comparison) -> Callable[[Scored], Outcome]:
    return lambda scored: _measured(comparison, scored, comparison.peer_outcome(scored))


def _measured(comparison: Comparison, scored: Scored, outcome: Outcome) -> Outcome:
    """Add the numbers on the test rows to an outcome."""
    found = comparison.measured(outcome.probabilities, scored.test)
    return Outcome(outcome.probabilities, outcome.seconds, {**found, **outcome.details})


def methods_of(comparisons: Sequence[Comparison]) -> dict[str, Method]:
    """Return the methods of both sides of some comparisons; those with the same name are the same."""
    return {
        name: method
        for comparison in comparisons
        for name, method in (
            (comparison.ours, Method(_rto(comparison), [comparison.settings, OTHER_WIDTHS, "fit rows"])),
            (comparison.theirs, Method(_peer(comparison), [comparison.settings, GRID_SIZE], is_peer=True)),
        )
    }
