"""What is asked of a fit: every setting checked by itself and with the others, before any row is looked at."""

from dataclasses import dataclass, replace
from typing import Any

from fairramp.core.checks import check_number, check_option, checked_width
from fairramp.core.scales import SCALES, Scale
from fairramp.errors import InputError, shown
from fairramp.fit.criteria.parity import ParityProblem
from fairramp.fit.criteria.strata import Covariance
from fairramp.fit.sgd import SGD
from fairramp.rule.rule import OFFSETS, TARGETS, UNSEEN_POLICIES

__all__ = [
    "Request",
    "checked_solver",
    "checked_strata",
]


@dataclass(frozen=True)
class Request:
    """What is asked of a fit, checked.

    Attributes
    ----------
    problem : ParityProblem
        In positions; its target rate is None where it is to be found.
    target : str or float
        The target rate as it was asked for.
    ramp, scale, cutoff, unseen_group, date
        As in `fit_rule`.
    stratified : bool
        Whether groups are cells of strata.
    sgd : SGD or None
        None for the exact solver.
    """

    problem: ParityProblem
    target: str | float
    ramp: str
    scale: Scale
    cutoff: float
    unseen_group: str
    stratified: bool
    sgd: SGD | None
    date: str | None

    @classmethod
    def checked(
        cls,
        *,
        max_gap: Any,
        ramp_width: Any,
        ramp: Any,
        target_rate: Any,
        cutoff: Any,
        scale: Any,
        unseen_group: Any,
        stratified: bool = False,
        solver: Any = "exact",
        date: Any = None,
    ) -> "Request":
        """Check every setting by itself and with the others."""
        meaning = SCALES[check_option("scale", scale, SCALES)]
        check_option("ramp", ramp, OFFSETS)
        check_option("unseen_group", unseen_group, UNSEEN_POLICIES)
        cutoff = meaning.checked_cutoff(cutoff)
        target = _checked_target(target_rate)
        problem = ParityProblem(
            max_gap=check_number("max_gap", max_gap, 0.0, 1.0),
            target_rate=None if isinstance(target, str) else target,
            cutoff=meaning.position_of(cutoff),
            ramp_width=checked_width(ramp_width),
            offset=OFFSETS[ramp],
        )
        if date is not None and not isinstance(date, str):
            raise InputError(f"`date` must be text, got {shown(date)}; for example date.today().isoformat().")
        sgd = checked_solver(solver)
        if sgd is not None:
            _check_sgd(problem, target, stratified)
        if stratified and target not in ("optimal", "accuracy"):
            raise InputError(
                "With `criterion=Covariance(…)` each stratum has a target rate of its own: `target_rate` must be "
                f"'optimal' or 'accuracy', got {shown(target_rate)}."
            )
        if stratified and unseen_group == "pooled":
            raise InputError(
                "With `criterion=Covariance(…)` strata have no band in common: `unseen_group` must be 'error' or "
                "'original', got 'pooled'."
            )
        return cls(problem, target, ramp, meaning, cutoff, unseen_group, stratified, sgd, date)

    @property
    def needs_labels(self) -> bool:
        """Whether the target depends on the true outcomes."""
        return self.target in ("accuracy", "base_rate")

    @property
    def signed_per_unit(self) -> float:
        """Signed scores, from −1 to 1, per unit of the positions."""
        return 2 / (self.scale.highest - self.scale.lowest)

    @property
    def signed_problem(self) -> ParityProblem:
        """The problem in signed scores, as the published algorithm has it."""
        return replace(self.problem, cutoff=0.0, ramp_width=self.problem.ramp_width * self.signed_per_unit)

    def aiming_at(self, target_rate: float) -> "Request":
        """The same request with its target as a number."""
        return replace(self, problem=replace(self.problem, target_rate=target_rate))


def checked_strata(criterion: Any) -> Any:
    """The strata of a criterion; None for parity."""
    if criterion is None:
        return None
    if not isinstance(criterion, Covariance):
        raise InputError(
            "`criterion` must be None for statistical parity or fairramp.Covariance(strata=…), got "
            f"{criterion!r}."
        )
    if criterion.strata is None:
        raise InputError("`Covariance` needs `strata`, one label per row; without strata it is parity itself.")
    return criterion.strata


def checked_solver(solver: Any) -> SGD | None:
    """The stochastic solver's settings; None for the exact one."""
    if isinstance(solver, SGD):
        return solver
    if not isinstance(solver, str) or solver not in ("exact", "sgd"):
        raise InputError(f"`solver` must be 'exact', 'sgd' or a fairramp.SGD, got {shown(solver)}.")
    return SGD() if solver == "sgd" else None


def _checked_target(target: Any) -> str | float:
    if isinstance(target, str) and target in TARGETS:
        return target
    if isinstance(target, str) or target is None:
        words = ", ".join(map(repr, TARGETS))
        raise InputError(f"`target_rate` must be {words} or a number in [0, 1], got {shown(target)}.")
    return check_number("target_rate", target, 0.0, 1.0)


def _check_sgd(problem: ParityProblem, target: str | float, stratified: bool) -> None:
    """Refuse what the published algorithm is not made for."""
    if stratified:
        raise InputError("`solver='sgd'` is for parity alone; leave it out to fit within strata.")
    if target in ("optimal", "accuracy"):
        raise InputError(
            f"`solver='sgd'` needs `target_rate` as a number, or 'base_rate' with labels, got {target!r}; the "
            "exact solver finds the best rate itself."
        )
    if problem.ramp_width == 0:
        raise InputError("`solver='sgd'` needs a `ramp_width` above 0, got 0; the exact solver needs none.")
