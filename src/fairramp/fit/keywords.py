"""Settings of a fit: names, defaults and documentation, once for all that fit.

`fit_rule`, `fit_frame` and `fit_summary` take them as keywords (`taking_settings` adds them to each signature and
docstring); the estimator and the stream pass them on; options of the command line take their defaults and their
help from here. `fit.settings` checks them. This module imports nothing heavy, because `fairramp --help` does.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from fairramp.fit.sgd import SGD


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Settings of a fit, as the user asks for them.

    Parameters
    ----------
    criterion : {"parity", "equal_opportunity", "predictive_equality", "equalized_odds"}, default "parity"
        Which rate is made equal: selection rates ("parity"), true positive rates ("equal_opportunity"), false
        positive rates ("predictive_equality") or both of these ("equalized_odds", where each group's ramp has a
        width of its own). All but "parity" require labels in the fit, never for decisions.
    max_gap : float, optional
        Largest allowed gap between two groups' rates, from 0 to 1; 0.02 means 2 points, and the default is 0.
    min_ratio : float, optional
        Smallest allowed ratio of the lowest rate to the highest, instead of `max_gap`; 0.8 for "four fifths".
        If all rates are 0, it is met.
    target_rate : "optimal", "accuracy", "balanced_accuracy", "base_rate" or a number in [0, 1], optional
        Common rate: "optimal", a number such as 0.2, or, with labels, "accuracy", "balanced_accuracy" or
        "base_rate". "optimal", the default of "parity": where equalizing costs least according to the scores.
        "accuracy", the default of the other criteria: where decisions agree best with the labels, or cost least
        by `costs`, which helps with many rows and uncalibrated scores. "balanced_accuracy": the same for the mean
        of the true positive rate and the true negative rate. "base_rate": around the share of positive labels. A
        number is the middle of the allowed rates or, with `min_ratio`, the highest one: groups move to the
        nearest allowed rate, so the overall rate can be another; see `overall_rate`.
    costs : tuple of two floats, optional
        Cost of a false positive and of a false negative, for the target "accuracy"; by default, both are 1. Only
        their ratio matters. They do not depend on `cutoff`.
    overall_rate : float, optional
        Overall selection rate, a budget, instead of `target_rate`; 0.1 means one in ten.
        It is met exactly on the fit rows, with any gap or ratio.
    combine : {"intersections", "each"}, default "intersections"
        With several group columns: equal rates in all "intersections", or by "each" column on its own.
        With "each", a person's threshold is a common one plus one shift per column, so that even an intersection
        without fit rows can be decided; rates of intersections can still differ.
    ramp_width : float, default 0.01
        Width of the score range around each threshold in which decisions are made at random. It is in the units
        of the scores; for logits and percentages, in units of probability (0.01 is one percentage point); for
        real scores, in positions (see `scale`). Must be 0 or at least 1e-6. With 0, only tied scores are decided
        at random. For "equalized_odds", the least width.
    ramp : {"centered", "paper"}, default "centered"
        Whether the ramp is "centered" on the threshold or, as in the "paper", starts there.
    cutoff : float, optional
        Score at or above which the classifier itself says yes; by default 0.5 for probabilities, 50 for
        percentages, and 0 for signed scores and logits; required for real scores. If lower scores are better, at
        or below.
    scale : {"probability", "percent", "signed", "logit", "real"}, default "probability"
        Scale of the scores: "probability" (0 to 1), "percent" (0 to 100), "signed" (-1 to 1), "logit" (log odds,
        any number) or "real" (any number of which only the order is meaningful, such as the value of a decision
        function). Never guessed. Real scores are converted to positions between -1 and 1: x itself from -0.5 to
        0.5, beyond that ±(1 - 1/(4|x|)); so subtract the cutoff, and divide by a typical distance from it.
    higher_is_better : bool, default True
        Whether high scores lead to the favorable decision; False for risks, where low scores do.
        With False, the classifier itself says yes at the cutoff or below, so there is no need to pass 1 - score.
        Label 1 is the favorable outcome in either case.
    unseen_group : {"error", "pooled", "original"}, default "error"
        For groups not in the fit rows: raise an error ("error"), use a common threshold ("pooled"), or keep the
        classifier's own decisions ("original"). At the common threshold, the rate of all fit rows together is in
        the range that is allowed for the groups.
    small_groups : {"alone", "borrow"}, default "alone"
        Fit small groups to their own rows "alone", or "borrow" from the other groups' scores. The fewer rows a
        group has, the more it borrows. "borrow" makes rates more equal on new rows but no longer exactly equal on
        the fit rows. Requires probabilities, percentages or logits, without weights or strata.
    solver : "exact", "sgd" or SGD, default "exact"
        "sgd" is the paper's stochastic algorithm, for comparison. It approximates the optimum, and requires a
        target rate that is a number or "base_rate". See `fairramp.SGD`.
    confidence : float, optional
        Limit the gap in the population to `max_gap` at this confidence level, such as 0.95; by default, `max_gap`
        applies to the fit rows only. The rule is then fitted with a smaller gap: the largest one whose limit in
        the population is at most `max_gap`. The rule's own `max_gap` is that smaller gap; `record.asked` has the
        requested one. If there are too few rows, the error states the limit that is possible and the number of
        rows needed.
    confidence_limit : {"estimated", "proven"}, default "estimated"
        Which limit on the gap in the population `confidence` uses, "estimated" or "proven". See
        `fairramp.Certificate`.
    date : str, optional
        Date to store in the rule's record, unchanged. If omitted, no date is stored, so the same data gives the
        same file.
    """

    criterion: str = "parity"
    max_gap: float | None = None
    min_ratio: float | None = None
    target_rate: str | float | None = None
    costs: tuple[float, float] | None = None
    overall_rate: float | None = None
    combine: str = "intersections"
    ramp_width: float = 0.01
    ramp: str = "centered"
    cutoff: float | None = None
    scale: str = "probability"
    higher_is_better: bool = True
    unseen_group: str = "error"
    small_groups: str = "alone"
    solver: "str | SGD" = "exact"
    confidence: float | None = None
    confidence_limit: str = "estimated"
    date: str | None = None


def _entries() -> dict[str, str]:
    """The documentation of each setting."""
    entries = re.split(r"\n(?=\w)", (inspect.getdoc(Asked) or "").partition("----------\n")[2])
    return {entry.split()[0]: entry for entry in entries}


#: The default of each setting.
DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Asked)}


def first_sentence(name: str) -> str:
    """The first sentence of a setting's documentation.

    >>> first_sentence("confidence_limit")
    'Which limit on the gap in the population `confidence` uses, "estimated" or "proven".'
    """
    text = " ".join(_entries()[name].partition("\n")[2].split())
    return re.split(r"(?<=\.)\s", text, maxsplit=1)[0]


_Function = TypeVar("_Function", bound=Callable[..., Any])


def taking_settings(*without: str) -> Callable[[_Function], _Function]:
    """Add the names, defaults and documentation of the settings to a function that takes them as keywords."""

    def told(function: _Function) -> _Function:
        own = inspect.signature(function)
        plain = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        taken = [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type)
            for f in fields(Asked)
            if f.name not in without
        ]
        function.__signature__ = own.replace(parameters=[*plain, *taken])  # type: ignore[attr-defined]
        documented = "\n".join(entry for name, entry in _entries().items() if name not in without)
        function.__doc__ = (inspect.getdoc(function) or "").replace("{settings}", documented)
        return function

    return told
