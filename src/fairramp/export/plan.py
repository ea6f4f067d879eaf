"""A rule as columns of labels and rows of numbers, for graphs and modules that know neither.

Groups are coded 0 … K−1 in the order of the rule; every other group is K. Each code has a row of numbers,

    (foot,)             P = clip((x − foot) / ramp_width, 0, 1)                     ramps of some width
    (low, high, at)     P = 1 above high, `at` from low to high, 0 below low        steps

where x is the position of a score (`fairramp.scales`), or for steps of logits the logit itself, so that a tie
does not hang on the last digit of an exponential. Numbers of the code K are those of the policy `unseen_group`:
NaN for "error", which no comparison turns into a yes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairramp.exceptions import InputError
from fairramp.groups import Label, label_key
from fairramp.rule import OFFSETS, Ramp, Rule
from fairramp.scales import SCALES, logits_at

__all__ = ["Plan", "codes_of", "score_range"]


@dataclass(frozen=True)
class Plan:
    """What an export computes with.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns that make a group, strata first.
    labels : tuple of tuple
        Each group's value in each column.
    numbers : floats of shape (K + 1, 1) or (K + 1, 3)
        Of the ramps, or of the steps.
    own_cutoff : float or None
        Where other groups keep the classifier's own decision: it says yes from here on. None if they do not, or
        if steps express it.
    on_logits : bool
        Whether steps and the classifier's own decision look at the logit instead of its position.
    """

    columns: tuple[str, ...]
    labels: tuple[tuple[Label, ...], ...]
    numbers: npt.NDArray[np.float64]
    own_cutoff: float | None
    on_logits: bool

    @classmethod
    def of(cls, rule: Rule, group: str | Sequence[str] | None = None, strata: Any = None) -> "Plan":
        """Of a rule, under the names of its columns or other ones."""
        columns, labels = _columns(rule, group, strata)
        on_logits = rule.scale == "logit"
        cutoff = rule.cutoff if on_logits else SCALES[rule.scale].position_of(rule.cutoff)
        original = rule.unseen_group == "original"
        rows = [_numbers(rule, ramp) for ramp in rule.ramps]
        if rule.pooled is not None:
            rows.append(_numbers(rule, rule.pooled))
        elif original and rule.ramp_width == 0:
            rows.append((cutoff, cutoff, 1.0))
        else:
            rows.append((float("nan"),) * len(rows[0]))
        own = cutoff if original and rule.ramp_width > 0 else None
        return cls(columns, labels, np.array(rows, dtype=np.float64), own, on_logits)


def _numbers(rule: Rule, ramp: Ramp) -> tuple[float, ...]:
    if rule.ramp_width > 0:
        return (ramp.threshold - OFFSETS[rule.ramp] * rule.ramp_width,)
    at = logits_at(ramp.threshold) if rule.scale == "logit" else (ramp.threshold, ramp.threshold)
    return (*at, ramp.tie_chance)


def score_range(rule: Rule) -> tuple[float, float]:
    """The lowest and the highest score that can be decided; never infinite."""
    low, high = SCALES[rule.scale].score_range
    largest = float(np.finfo(np.float64).max)
    return max(low, -largest), min(high, largest)


def codes_of(rule: Rule, groups: Any, strata: Any = None) -> npt.NDArray[np.int64]:
    """Code each row's group: its place in the rule, or K = the number of groups for all others.

    Examples
    --------
    >>> from fairramp import Ramp, Rule
    >>> rule = Rule(("A", "B"), (Ramp(0.5), Ramp(0.4)), ramp_width=0.1)
    >>> codes_of(rule, ["B", "A", "C", None])
    array([1, 0, 2, 2])
    """
    found = rule.encode(groups, strata)
    places = {label_key(label): place for place, label in enumerate(rule.groups)}
    codes = np.array([places.get(label_key(label), len(places)) for label in found.labels], dtype=np.int64)
    return codes[found.block(0, len(found))]


def _columns(rule: Rule, group: Any, strata: Any) -> tuple[tuple[str, ...], tuple[tuple[Label, ...], ...]]:
    """Names of the columns, and each group's value in each of them."""
    stratified = rule.criterion == "covariance"
    if strata is not None and not stratified:
        raise InputError("`strata` are not known to this rule, which equalises over all rows; leave them out.")
    inner = [_flat(label[1] if stratified and isinstance(label, tuple) else label) for label in rule.groups]
    outer = [_flat(label[0]) for label in rule.groups if isinstance(label, tuple)] if stratified else []
    names = _names("group", group, rule.group_columns, "group", inner)
    if stratified:
        names = _names("strata", strata, rule.strata_columns, "stratum", outer) + names
    if len(set(names)) < len(names):
        raise InputError(f"The columns must have names of their own, got {list(names)}.")
    return names, tuple((*o, *i) for o, i in zip(outer, inner, strict=True)) if stratified else tuple(inner)


def _flat(label: Label) -> tuple[Label, ...]:
    return label if isinstance(label, tuple) else (label,)


def _names(
    argument: str, given: Any, fitted: tuple[str, ...] | None, default: str, labels: list[tuple[Label, ...]]
) -> tuple[str, ...]:
    widths = {len(label) for label in labels}
    if len(widths) > 1:
        raise InputError("The groups of this rule are of different numbers of columns; it cannot be exported.")
    n = widths.pop()
    if given is None:
        given = fitted or ([default] if n == 1 else [f"{default}_{i}" for i in range(1, n + 1)])
    names = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) and name for name in names) or len(names) != n:
        raise InputError(
            f"`{argument}` must name {n} column{'s' if n > 1 else ''}, as in the fit, got {given!r}."
        )
    return names
