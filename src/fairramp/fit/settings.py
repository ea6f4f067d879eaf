"""Settings of a fit: their names, defaults, documentation and checks, once for every way to fit.

`fit_rule`, `fit_frame` and `fit_summary` take them as keywords (`taking_settings` gives each its signature and
documentation); the estimator, the stream and the command line pass them on. All are checked, each by itself and
with the others, before any row is looked at.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict, TypeVar

from fairramp.core.checks import check_number, check_option, checked_width, meant
from fairramp.core.ramps import OFFSETS
from fairramp.core.scales import SCALES, Scale
from fairramp.errors import InputError
from fairramp.fit.problem import ByLabels, Fixed, Gap, Level, Optimal, Problem
from fairramp.fit.sgd import SGD
from fairramp.rule.file import OPTIONS

#: Targets that a word asks for.
TARGETS = ("optimal", "accuracy", "base_rate")
#: What groups with few rows go by.
SMALL_GROUPS = ("alone", "borrow")
#: Other words that people use for some options.
_ALSO = {"criterion": {"demographic_parity": "parity", "statistical_parity": "parity", "independence": "parity"}}


class Keywords(TypedDict, total=False):
    """The settings as keywords, for type checkers; `Settings` has what they mean."""

    max_gap: float
    ramp_width: float
    ramp: str
    target_rate: str | float
    cutoff: float | None
    scale: str
    unseen_group: str
    criterion: str
    small_groups: str
    solver: str | SGD
    confidence: float | None
    confidence_limit: str
    date: str | None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is asked of a fit, checked.

    Parameters
    ----------
    max_gap : float, default 0
        Largest allowed difference between any two groups' selection rates, in [0, 1].
    ramp_width : float, default 0.01
        Width of the zone around each threshold in which the decision is drawn at random, in the units of
        the scores (of probabilities for logits and percentages, where 0.01 is one point). 0 draws only among
        equal scores; otherwise at least 1e-6.
    ramp : {"centered", "paper"}, default "centered"
        Whether the ramp is centered on the threshold or starts there, as published.
    target_rate : "optimal", "accuracy", "base_rate" or a number in [0, 1], default "optimal"
        Where the groups' selection rates lie: where it costs least by the scores; where decisions agree best
        with the labels, which gains with many rows if scores are not calibrated; around the share of positive
        labels; or around a number.
    cutoff : float, optional
        Where the classifier itself says yes, ``score >= cutoff``; 0.5 for probabilities, 50 for
        percentages and 0 for signed scores and logits unless given.
    scale : {"probability", "percent", "signed", "logit"}, default "probability"
        What the scores are: in [0, 1], in [0, 100], in [−1, 1], or any finite number. Never guessed.
    unseen_group : {"error", "pooled", "original"}, default "error"
        What the rule does with a group that the fit did not see: refuse; use the threshold at which all
        fit rows together reach the band; or keep the classifier's own decision.
    criterion : {"parity"}, default "parity"
        Which rate is made equal: the selection rate.
    small_groups : {"alone", "borrow"}, default "alone"
        Whether each group's threshold comes from its own rows alone, or also from what the other groups' scores
        say about it, the more the fewer rows it has. "borrow" makes rates more equal on new rows and no longer
        exactly equal on the fit rows. For scores that are probabilities, without weights and strata.
    solver : "exact", "sgd" or SGD, default "exact"
        "sgd" is the paper's stochastic algorithm, which comes near the optimum of a numeric target rate; for
        comparison. See `fairramp.SGD`.
    confidence : float, optional
        Keep `max_gap` in the population, not only on the fit rows, with this confidence, for example 0.95. The
        rows are then held to the largest smaller gap whose limit is at most `max_gap`; the rule's own `max_gap`
        is that smaller one, and `record.asked` what was asked for. Refused where the rows are too few, with the
        limit that can be had and the rows that are missing.
    confidence_limit : {"estimated", "proven"}, default "estimated"
        Which limit `confidence` is about; see `fairramp.Certificate`.
    date : str, optional
        Stored in the rule's record as it is. Nothing is stored otherwise: the same data give the same file.
    """

    max_gap: float = 0.0
    ramp_width: float = 0.01
    ramp: str = "centered"
    target_rate: str | float = "optimal"
    cutoff: float | None = None
    scale: str = "probability"
    unseen_group: str = "error"
    criterion: str = "parity"
    small_groups: str = "alone"
    solver: str | SGD = "exact"
    confidence: float | None = None
    confidence_limit: str = "estimated"
    date: str | None = None

    def __post_init__(self) -> None:
        for name, allowed in OPTIONS.items():
            check_option(name, getattr(self, name), allowed, _ALSO.get(name))
        check_option("small_groups", self.small_groups, SMALL_GROUPS)
        checked = {
            "cutoff": self.meaning.checked_cutoff(self.cutoff),
            "target_rate": _checked_target(self.target_rate),
            "max_gap": check_number("max_gap", self.max_gap, 0.0, 1.0),
            "ramp_width": checked_width(self.ramp_width),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.date is not None and not isinstance(self.date, str):
            raise InputError(
                "must be text",
                argument="date",
                got=self.date,
                remedy="for example date.today().isoformat()",
            )
        self._check_confidence()
        if self.sgd is not None and self.target_rate in ("optimal", "accuracy"):
            raise InputError(
                "{solver:sgd} needs {target_rate} as a number, or 'base_rate' with labels",
                got=self.target_rate,
                remedy="the exact solver finds the best rate itself",
            )
        if self.sgd is not None and self.ramp_width == 0:
            raise InputError(
                "{solver:sgd} needs a {ramp_width} above 0, got 0", remedy="the exact solver needs none"
            )

        if self.borrows and self.scale == "signed":
            raise InputError(
                "{small_groups:borrow} needs scores that are probabilities, percentages or logits, got "
                "{scale:signed}",
                remedy="pass (score + 1) / 2 if those are probabilities",
            )
        if self.borrows and self.sgd is not None:
            raise InputError("{small_groups:borrow} needs the exact solver", remedy="leave {solver} out")

    def _check_confidence(self) -> None:
        """What must hold for a gap that is kept in the population."""
        check_option("confidence_limit", self.confidence_limit, ("estimated", "proven"))
        if self.confidence is None:
            if self.confidence_limit != "estimated":
                raise InputError("{confidence_limit} needs {confidence}", remedy="pass one, such as 0.95")
            return
        object.__setattr__(self, "confidence", check_number("confidence", self.confidence, 0.5, 1 - 1e-9))
        if self.max_gap == 0:
            raise InputError(
                "{confidence} needs a {max_gap} above 0",
                remedy="no sample shows that rates in the population are exactly equal",
            )
        if self.sgd is not None:
            raise InputError("{confidence} needs the exact solver", remedy="leave {solver} out")

    @classmethod
    def of(
        cls, caller: Callable[..., Any], given: Mapping[str, Any], fixed: Mapping[str, Any] | None = None
    ) -> "Settings":
        """From the keywords that a function was called with, and those that it sets itself."""
        names = caller.__signature__.parameters  # type: ignore[attr-defined]  # by `taking_settings`
        for name in [name for name in given if name not in names]:
            near = meant(name, names)
            hint = f"; did you mean {near!r}?" if near else ""
            raise TypeError(f"{caller.__name__}() got an unexpected keyword argument {name!r}{hint}")
        return cls(**{**given, **(fixed or {})})

    def check_rows(
        self,
        *,
        labeled: bool,
        stratified: bool,
        weighted: bool,
        needed: str = "{labels}, the true outcomes of the rows",
    ) -> None:
        """Refuse a target that needs true outcomes where there are none, and what rows like these rule out."""
        if self.needs_labels and not labeled:
            raise InputError("{target_rate:" + str(self.target_rate) + "} needs " + needed)
        for present, word in ((stratified, "strata"), (weighted, "weights")):
            if self.borrows and present:
                raise InputError(
                    "{small_groups:borrow} is for rows without {word}",
                    remedy="leave one of the two out",
                    word=word,
                )
        if weighted and self.confidence_limit == "proven":
            raise InputError(
                "{confidence_limit:proven} needs rows without weights, for which nothing is proven",
                remedy="leave it out to keep the estimated limit",
            )
        if stratified and self.sgd is not None:
            raise InputError(
                "{solver:sgd} is for parity over all rows", remedy="leave it out to fit within strata"
            )
        if stratified and self.target_rate not in ("optimal", "accuracy"):
            raise InputError(
                "With {strata} each stratum has a target rate of its own: {target_rate} must be 'optimal' or "
                "'accuracy'",
                got=self.target_rate,
            )
        if stratified and self.unseen_group == "pooled":
            raise InputError(
                "With {strata} there is no band in common: {unseen_group} must be 'error' or 'original', got "
                "'pooled'"
            )

    @property
    def needs_labels(self) -> bool:
        """Whether the target depends on the true outcomes."""
        return self.target_rate in ("accuracy", "base_rate")

    @property
    def borrows(self) -> bool:
        """Whether small groups borrow from the others."""
        return self.small_groups == "borrow"

    @property
    def meaning(self) -> Scale:
        """What the scores are."""
        return SCALES[self.scale]

    @property
    def sgd(self) -> SGD | None:
        """The stochastic solver's settings; None for the exact one."""
        if isinstance(self.solver, SGD):
            return self.solver
        if not isinstance(self.solver, str) or self.solver not in ("exact", "sgd"):
            raise InputError("must be 'exact', 'sgd' or a fairramp.SGD", argument="solver", got=self.solver)
        return SGD() if self.solver == "sgd" else None

    @property
    def level(self) -> Level:
        """Where the band is; "base_rate" is known only with the outcomes."""
        if isinstance(self.target_rate, str):
            return ByLabels() if self.target_rate == "accuracy" else Optimal()
        return Fixed(self.target_rate)

    @property
    def problem(self) -> Problem:
        """What is asked for, in positions."""
        assert self.cutoff is not None
        return Problem(
            band=Gap(self.max_gap),
            level=self.level,
            cutoff=self.meaning.position_of(self.cutoff),
            ramp_width=self.ramp_width,
            offset=OFFSETS[self.ramp],
        )

    @property
    def signed_per_unit(self) -> float:
        """Signed scores, from −1 to 1, per unit of the positions."""
        return 2 / (self.meaning.highest - self.meaning.lowest)

    def signed(self, problem: Problem) -> Problem:
        """A problem in signed scores, as the published algorithm has it."""
        return replace(problem, cutoff=0.0, ramp_width=problem.ramp_width * self.signed_per_unit)


def _checked_target(target: Any) -> str | float:
    if isinstance(target, str | None) and target not in TARGETS:
        raise InputError(
            "must be {words} or a number in [0, 1]",
            argument="target_rate",
            got=target,
            words=", ".join(map(repr, TARGETS)),
        )
    return target if isinstance(target, str) else check_number("target_rate", target, 0.0, 1.0)


_Function = TypeVar("_Function", bound=Callable[..., Any])


def taking_settings(*without: str) -> Callable[[_Function], _Function]:
    """Give a function that takes settings as keywords their names, defaults and documentation."""

    def told(function: _Function) -> _Function:
        own = inspect.signature(function)
        plain = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        taken = [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type)
            for f in fields(Settings)
            if f.name not in without
        ]
        function.__signature__ = own.replace(parameters=[*plain, *taken])  # type: ignore[attr-defined]
        entries = re.split(r"\n(?=\w)", (inspect.getdoc(Settings) or "").partition("----------\n")[2])
        documented = "\n".join(entry for entry in entries if entry.split()[0] not in without)
        function.__doc__ = (inspect.getdoc(function) or "").replace("{settings}", documented)
        return function

    return told
