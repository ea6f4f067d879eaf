"""Checks of the settings of a fit, alone and in combination, before any row is read.

`fit.keywords` has their names, defaults and documentation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from fairramp.core.bands import band_of
from fairramp.core.checks import (
    check_date,
    check_keywords,
    check_number,
    check_option,
    checked_band,
    checked_width,
    nearest,
)
from fairramp.core.events import EVENT_OF, SYNONYMS, Event
from fairramp.core.ramps import OFFSETS
from fairramp.core.scales import Scale, scale_of
from fairramp.errors import InputError, UnsupportedError
from fairramp.fit.direction import turning
from fairramp.fit.keywords import Asked
from fairramp.fit.problem import Budget, ByLabels, Fixed, Level, Optimal, Problem
from fairramp.fit.sgd import SGD
from fairramp.rule.file import OPTIONS

#: Target rates that are requested by name.
TARGETS = ("optimal", "accuracy", "balanced_accuracy", "base_rate")
#: What several group columns mean.
COMBINATIONS = ("intersections", "each")
#: How groups with few rows are treated.
SMALL_GROUPS = ("alone", "borrow")


class Keywords(TypedDict, total=False):
    """The settings as keywords, for type checkers; see `Asked` for their meaning."""

    criterion: str
    max_gap: float | None
    min_ratio: float | None
    target_rate: str | float | None
    costs: tuple[float, float] | None
    overall_rate: float | None
    combine: str
    ramp_width: float
    ramp: str
    cutoff: float | None
    scale: str
    higher_is_better: bool
    unseen_group: str
    small_groups: str
    solver: str | SGD
    confidence: float | None
    confidence_limit: str
    date: str | None


@dataclass(frozen=True, kw_only=True)
class Settings(Asked):
    """Checked settings of a fit; `Asked` explains them."""

    def __post_init__(self) -> None:
        check_words(self)
        check_option("scale", self.scale, OPTIONS["scale"])
        checked = {
            "higher_is_better": self.meaning.higher_is_better,
            "cutoff": self.meaning.checked_cutoff(self.cutoff),
            "costs": None if self.costs is None else checked_costs(self.costs),
            "ramp_width": checked_width(self.ramp_width),
            "overall_rate": None
            if self.overall_rate is None
            else check_number("overall_rate", self.overall_rate, 0.0, 1.0),
            **checked_band(self.max_gap, self.min_ratio),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "target_rate", self._checked_target())
        check_date(self.date)
        if self.costs is not None and self.overall_rate is not None:
            raise UnsupportedError("{costs} does not support {overall_rate}", remedy="remove one of the two")
        if self.costs is not None and self.target_rate != "accuracy":
            raise UnsupportedError(
                "{costs} requires {target_rate:accuracy}, got {target!r}",
                remedy="pass it, or remove {costs}",
                target=self.target_rate,
            )
        self._check_confidence()
        self._check_simple("{solver:sgd}", self.sgd is not None)
        self._check_simple("{small_groups:borrow}", self.borrows)
        if self.sgd is not None and self.target_rate in ("optimal", "accuracy", "balanced_accuracy"):
            raise UnsupportedError(
                "{solver:sgd} requires {target_rate} to be a number, or 'base_rate' with labels",
                got=self.target_rate,
                remedy="use the exact solver to find the best rate",
            )
        if self.sgd is not None and self.ramp_width == 0:
            raise UnsupportedError(
                "{solver:sgd} requires {ramp_width} above 0, got 0",
                remedy="use the exact solver for a width of 0",
            )

        if self.borrows and self.scale in ("signed", "real"):
            raise UnsupportedError(
                "{small_groups:borrow} requires scores that are probabilities, percentages or logits, got "
                "{scale:" + self.scale + "}",
                remedy="if (score + 1) / 2 is a probability, pass that"
                if self.scale == "signed"
                else "pass calibrated probabilities",
            )
        if self.combine == "each":
            self.check_mixed("{combine:each}")
        if self.borrows and self.sgd is not None:
            raise UnsupportedError("{small_groups:borrow} requires the exact solver", remedy="remove {solver}")

    def _checked_target(self) -> str | float | None:
        """The target, or its default, which depends on the criterion."""
        target, error_rates = self.target_rate, self.event.needs_labels
        if target is None and self.overall_rate is not None and not self.event.parts:
            return None
        if self.event.parts:
            self._check_odds()
        if self.overall_rate is not None:
            raise UnsupportedError(
                "{overall_rate} and {target_rate} exclude each other: both say how many are selected",
                remedy="remove one of the two",
            )
        if target is None:
            return "accuracy" if error_rates else "optimal"
        if isinstance(target, str) and target not in TARGETS:
            raise InputError(
                "must be {words} or a number between 0 and 1",
                argument="target_rate",
                got=target,
                remedy=nearest(target, TARGETS),
                words=", ".join(map(repr, TARGETS)),
            )
        if error_rates and target in ("optimal", "base_rate"):
            why = {
                "optimal": "the scores alone cannot choose error rates",
                "base_rate": "the base rate is a selection rate",
            }
            raise UnsupportedError(
                "must be 'accuracy', 'balanced_accuracy' or a number with {criterion:" + self.criterion + "}",
                argument="target_rate",
                got=target,
                remedy=why[str(target)],
            )
        return target if isinstance(target, str) else check_number("target_rate", target, 0.0, 1.0)

    def _check_odds(self) -> None:
        """Raise if equalized odds is combined with something that is about one rate."""
        for name in ("min_ratio", "overall_rate"):
            if getattr(self, name) is not None:
                raise UnsupportedError(
                    "{criterion:equalized_odds} does not support {" + name + "}", remedy="remove one of the two"
                )
        if self.target_rate is not None and self.target_rate not in ("accuracy", "balanced_accuracy"):
            raise UnsupportedError(
                "must be 'accuracy' or 'balanced_accuracy' with {criterion:equalized_odds}",
                argument="target_rate",
                got=self.target_rate,
                remedy="there are two rates to choose, and only the labels can",
            )

    def _check_simple(self, what: str, asked: bool) -> None:
        """Raise if an option that requires equal selection rates up to a gap is combined with something else."""
        others = {
            "{criterion:" + self.criterion + "}": self.event.needs_labels,
            "{min_ratio}": self.min_ratio is not None,
            "{overall_rate}": self.overall_rate is not None,
        }
        for other, given in others.items():
            if asked and given:
                raise UnsupportedError(what + " does not support " + other, remedy="remove one of the two")

    def check_mixed(self, what: str) -> None:
        """Raise if thresholds that are mixed are combined with something that needs one group per person."""
        others = {
            "{criterion:" + self.criterion + "}": self.event.needs_labels,
            "{target_rate:" + str(self.target_rate) + "}": self.by_labels or self.target_rate == "base_rate",
            "{confidence}": self.confidence is not None,
            "{small_groups:borrow}": self.borrows,
            "{solver:sgd}": self.sgd is not None,
            "{unseen_group:pooled}": self.unseen_group == "pooled",
        }
        for other, given in others.items():
            if given:
                raise UnsupportedError(what + " does not support " + other, remedy="remove one of the two")
        if self.ramp_width == 0:
            raise UnsupportedError(
                what + " requires {ramp_width} above 0, got 0",
                remedy="leave it out, or pass a small width such as 1e-4",
            )

    def _check_confidence(self) -> None:
        """Check the settings of a gap that must hold in the population."""
        check_option("confidence_limit", self.confidence_limit, ("estimated", "proven"))
        if self.confidence is None:
            if self.confidence_limit != "estimated":
                raise InputError("{confidence_limit} requires {confidence}", remedy="pass it, such as 0.95")
            return
        object.__setattr__(self, "confidence", check_number("confidence", self.confidence, 0.5, 1 - 1e-9))
        if self.min_ratio is not None:
            raise UnsupportedError(
                "{confidence} does not support {min_ratio}: limits in the population are limits on the gap",
                remedy="pass {max_gap} instead, or measure the ratio on new rows with an audit",
            )
        if self.max_gap == 0:
            raise InputError(
                "{confidence} requires {max_gap} above 0",
                remedy="no sample can show that rates in the population are exactly equal",
            )
        if self.sgd is not None:
            raise UnsupportedError("{confidence} requires the exact solver", remedy="remove {solver}")

    @classmethod
    def of(
        cls, caller: Callable[..., Any], given: Mapping[str, Any], fixed: Mapping[str, Any] | None = None
    ) -> "Settings":
        """Make settings from the keywords passed to a function and those that the function sets."""
        check_settings(caller, given)
        return cls(**{**given, **(fixed or {})})

    def check_rows(
        self,
        *,
        labeled: bool,
        stratified: bool,
        weighted: bool,
        needed: str = "{labels}, the true outcomes",
    ) -> None:
        """Raise if the settings require labels that are missing, or do not work with such rows."""
        if self.needs_labels and not labeled:
            what = f"criterion:{self.criterion}" if self.event.needs_labels else f"target_rate:{self.target_rate}"
            raise InputError("{" + what + "} requires " + needed)
        if stratified and self.combine == "each":
            raise UnsupportedError("{combine:each} does not support strata", remedy="remove one of the two")
        for present, word in ((stratified, "strata"), (weighted, "weights")):
            if self.borrows and present:
                raise UnsupportedError(
                    "{small_groups:borrow} does not support {word}",
                    remedy="remove one of the two",
                    word=word,
                )
        if weighted and self.confidence_limit == "proven":
            raise UnsupportedError(
                "{confidence_limit:proven} does not support weights: nothing is proven for weighted rows",
                remedy="remove it to use the estimated limit",
            )
        if stratified and self.sgd is not None:
            raise UnsupportedError(
                "{solver:sgd} does not support strata", remedy="remove it to fit within strata"
            )
        if stratified and self.target_rate not in (None, "optimal", "accuracy", "balanced_accuracy"):
            raise UnsupportedError(
                "With {strata}, each stratum has its own target rate: {target_rate} must be {words}",
                got=self.target_rate,
                words="'accuracy' or 'balanced_accuracy'"
                if self.event.needs_labels
                else "'optimal', 'accuracy' or 'balanced_accuracy'",
            )
        if stratified and self.unseen_group == "pooled":
            raise UnsupportedError(
                "With {strata}, there is no common band: {unseen_group} must be 'error' or 'original', got "
                "'pooled'"
            )

    @property
    def needs_labels(self) -> bool:
        """Whether the fit depends on the true outcomes."""
        return self.by_labels or self.target_rate == "base_rate" or self.event.needs_labels

    @property
    def by_labels(self) -> bool:
        """Whether labels choose each group's rate."""
        return self.target_rate in ("accuracy", "balanced_accuracy") or (
            self.overall_rate is not None and self.event.needs_labels
        )

    @property
    def keeps_own_decisions(self) -> bool:
        """Whether the classifier's own decisions are kept if they already meet the limit."""
        return self.target_rate == "optimal" and self.ramp == "centered"

    @property
    def event(self) -> Event:
        """The event whose rates are made equal."""
        return EVENT_OF[self.criterion]

    @property
    def borrows(self) -> bool:
        """Whether small groups borrow from the others."""
        return self.small_groups == "borrow"

    @property
    def turning(self) -> str:
        """What to do if the direction of the scores was mistaken, as a template."""
        return turning(higher_is_better=self.higher_is_better)

    @property
    def meaning(self) -> Scale:
        """The scale of the scores, with its direction."""
        return scale_of(self.scale, self.higher_is_better)

    @property
    def sgd(self) -> SGD | None:
        """Settings of the stochastic solver; None for the exact one."""
        if isinstance(self.solver, SGD):
            return self.solver
        if not isinstance(self.solver, str) or self.solver not in ("exact", "sgd"):
            raise InputError(
                "must be 'exact', 'sgd' or a fairramp.SGD",
                argument="solver",
                got=self.solver,
                remedy=nearest(self.solver, ("exact", "sgd")),
            )
        return SGD() if self.solver == "sgd" else None

    @property
    def level(self) -> Level:
        """Where the band is; "base_rate" is resolved later, from the outcomes."""
        if self.overall_rate is not None:
            return Budget(self.overall_rate)
        if isinstance(self.target_rate, str):
            return ByLabels() if self.by_labels else Optimal()
        assert self.target_rate is not None
        return Fixed(self.target_rate)

    @property
    def problem(self) -> Problem:
        """The problem to solve, in positions."""
        assert self.cutoff is not None
        return Problem(
            band=band_of(self.max_gap, self.min_ratio),
            level=self.level,
            cutoff=self.meaning.position_of(self.cutoff),
            ramp_width=self.ramp_width,
            offset=OFFSETS[self.ramp],
            flat=self.event.flat,
            ends=(self.meaning.lowest, self.meaning.highest),
        )

    @property
    def signed_per_unit(self) -> float:
        """Signed scores, in [−1, 1], per unit of the positions."""
        return 2 / (self.meaning.highest - self.meaning.lowest)

    def signed(self, problem: Problem) -> Problem:
        """A problem in signed scores, as in the published algorithm."""
        return replace(problem, cutoff=0.0, ramp_width=problem.ramp_width * self.signed_per_unit)


def check_words(given: Any) -> None:
    """Raise if a setting that is a word is none of its options."""
    for name in ("ramp", "criterion", "unseen_group"):
        check_option(name, getattr(given, name), OPTIONS[name], SYNONYMS if name == "criterion" else None)
    check_option("combine", given.combine, COMBINATIONS)
    check_option("small_groups", given.small_groups, SMALL_GROUPS)


def checked_costs(costs: Any) -> tuple[float, float]:
    """Check the costs of a false positive and a false negative."""
    try:
        found = tuple(float(cost) for cost in costs if not isinstance(cost, str | bool))
        valid = len(found) == len(costs) == 2 and all(0 <= cost < float("inf") for cost in found)
    except (TypeError, ValueError, OverflowError):
        valid = False
    if not valid or not any(found):
        raise InputError(
            "must be two numbers, the cost of a false positive and that of a false negative, not negative and "
            "not both 0",
            argument="costs",
            got=costs,
        )
    return found[0], found[1]


def check_settings(caller: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raise if a function that takes settings is called with an unknown keyword."""
    # `taking_settings` sets the signature.
    check_keywords(caller.__name__, given, caller.__signature__.parameters)  # type: ignore[attr-defined]
