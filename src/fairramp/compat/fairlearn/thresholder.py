"""Fairlearn's description of a rule: for each group, a mixture of two operations on the model's values.

    P(1) = p_ignore · prediction_constant + (1 − p_ignore) · (p0 · operation0(v) + p1 · operation1(v))

A ramp of width 0 at t with probability τ at t is [>t] with probability 1 − τ and [≥t] with probability τ; the
latter is written as [>s], where s is the largest number below t. A ramp of positive width is one operation, which
returns probabilities. The description is exact: it gives every value the probability of the rule. On the scale
"real", values that share a position are tied; then t is the largest of them, and s is below the smallest.
"""
# ruff: noqa: N803 -- scikit-learn calls it X, and so do its callers, by keyword

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch, check_random_state

from fairramp.compat.fairlearn.inputs import Groups, check_same_rows, n_rows, values_of, warn_unaligned
from fairramp.core.curve import Floats
from fairramp.core.labels import Label, label_key
from fairramp.core.ramps import Ramp
from fairramp.core.scales import Scale
from fairramp.data.groups import Codes
from fairramp.errors import InputError
from fairramp.rule.decided import unquestioned
from fairramp.rule.rule import Rule
from fairramp.rule.unseen import unseen_groups


@dataclass(frozen=True)
class ThresholdOperation:
    """Which values are selected: those above a threshold, or those below.

    Attributes
    ----------
    operator : {">", "<"}
        The side of the threshold.
    threshold : float
        May be infinite.
    """

    operator: str
    threshold: float

    def __post_init__(self) -> None:
        if self.operator not in (">", "<"):
            raise InputError("Unrecognized operator: {operator}", operator=self.operator)

    @property
    def _operator(self) -> str:
        return self.operator

    @property
    def _threshold(self) -> float:
        return self.threshold

    def __call__(self, values: Any) -> Any:
        """Whether each value is selected."""
        return values > self.threshold if self.operator == ">" else values < self.threshold

    def __repr__(self) -> str:
        return f"[{self.operator}{self.threshold}]"


@dataclass(frozen=True, repr=False)
class RampOperation(ThresholdOperation):
    """The probability with which each value is selected, which rises from 0 to 1, or falls, along a ramp.

    The threshold is where the probability is ½.
    """

    ramp: Ramp
    scale: Scale

    def __call__(self, values: Any) -> Any:
        """The probability of each value."""
        upward = np.asarray(values, dtype=np.float64) * (1.0 if self.operator == ">" else -1.0)
        return self.ramp.chance(self.scale.position(upward))

    def __repr__(self) -> str:
        sign = 1.0 if self.operator == ">" else -1.0
        start, end = (sign * self.scale.shown(at) for at in (self.ramp.foot, self.ramp.foot + self.ramp.width))
        return f"[ramp from {start} to {end}]"


def operations(
    ramp: Ramp, scale: Scale, *, falling: bool = False
) -> tuple[tuple[float, ThresholdOperation], tuple[float, ThresholdOperation]]:
    """A ramp as two operations and their probabilities, the stricter first; `falling` if values are negated."""
    sign, operator = (-1.0, "<") if falling else (1.0, ">")
    if ramp.is_constant:
        ends = math.inf, -math.inf
    elif ramp.width == 0:
        low, high = scale.compared_at(ramp.foot)
        ends = high, math.nextafter(low, -math.inf)
    else:
        slope = RampOperation(operator, sign * scale.shown(ramp.foot + ramp.width / 2), ramp, scale)
        return (0.0, slope), (1.0, slope)
    strict, lenient = (ThresholdOperation(operator, sign * end) for end in ends)
    return (1.0 - ramp.tie, strict), (ramp.tie, lenient)


@dataclass(frozen=True)
class InterpolatedThresholder:
    """A trained model and its rule, under Fairlearn's names.

    Attributes
    ----------
    estimator : classifier or regressor
        The trained model.
    predict_method : str
        Its method that returns the values.
    rule : Rule
        Takes the values, those of `flipped` groups negated.
    groups : Groups
        The groups of the fit.
    flipped : frozenset of labels
        The groups that are decided by falling values.
    interpolation_dict : dict
        For each group, a Bunch of ``p0``, ``operation0``, ``p1`` and ``operation1``; with equalized odds, also of
        ``p_ignore`` and ``prediction_constant``. It describes the rule; changing it has no effect.
    """

    estimator: Any
    predict_method: str
    rule: Rule
    groups: Groups = field(repr=False)
    flipped: frozenset[Label]
    interpolation_dict: Mapping[Any, Bunch]

    def _pmf_predict(self, X: Any, *, sensitive_features: Any) -> Floats:
        """Return the probabilities of the decisions 0 and 1, of shape (n, 2)."""
        values, n = values_of(self.estimator, X, self.predict_method), n_rows(X)
        check_same_rows(n, len(values), "the estimator's output")
        warn_unaligned(X=X, sensitive_features=sensitive_features)
        codes = self.groups.again(sensitive_features, n)
        if self.flipped:
            falls = np.array([label in self.flipped for label in codes.labels])
            values = np.where(falls[codes.block(0, n)], 0.0 - values, values)
        self._check_seen(codes)
        with unquestioned():
            chances = self.rule.probabilities(values, codes)
        return np.column_stack([1.0 - chances, chances])

    def _check_seen(self, codes: Codes) -> None:
        """Raise if a group was not in the rows of the fit; the rule's own message names options of its fit."""
        fitted, there = set(map(label_key, self.rule.groups)), codes.occurring()
        unseen = [label for label in compress(codes.labels, there) if label_key(label) not in fitted]
        if unseen:
            raise unseen_groups(unseen, self.rule.groups, all_unseen=len(unseen) == np.count_nonzero(there))

    def predict(self, X: Any, *, sensitive_features: Any, random_state: Any = None) -> npt.NDArray[np.int64]:
        """Draw decisions, 0 or 1, with the random numbers that Fairlearn would use."""
        chances = self._pmf_predict(X, sensitive_features=sensitive_features)[:, 1]
        if isinstance(random_state, np.random.Generator):
            drawn = random_state.random(len(chances))
        else:
            drawn = check_random_state(random_state).random_sample(len(chances))
        return (chances > drawn).astype(np.int64)


def described(
    rule: Rule, groups: Groups, flipped: frozenset[Label], *, lenient_first: bool, more: Mapping[str, float]
) -> dict[Any, Bunch]:
    """The interpolation_dict of a rule; `more` are entries that all groups have."""
    found = {}
    for label, ramp in zip(rule.groups, rule.ramps, strict=True):
        pair = operations(ramp, rule.meaning, falling=label in flipped)
        (p0, first), (p1, second) = reversed(pair) if lenient_first else pair
        found[groups.keys[label]] = Bunch(**more, p0=p0, operation0=first, p1=p1, operation1=second)
    return found
