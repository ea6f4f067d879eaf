"""A rule as rows of numbers, for exports that know neither ramps nor policies.

Groups are coded 0 … K−1 in the order of the rule; every other group is K. Each code has a row of numbers,

    (foot,)             P = clip((x − foot) / ramp_width, 0, 1)                     ramps of some width
    (low, high, at)     P = 1 above high, `at` from low to high, 0 below low        steps

where x is the position of a score (`fairramp.scales`), or for steps of logits the logit itself, so that a tie
does not hang on the last digit of an exponential. Numbers of the code K are those of the policy `unseen_group`:
NaN for "error", which no comparison turns into a yes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairramp.core.labels import label_key
from fairramp.core.scales import SCALES, logits_at
from fairramp.rule.rule import OFFSETS, Ramp, Rule

__all__ = ["Plan", "codes_of", "numbers_of"]


@dataclass(frozen=True)
class Plan:
    """What an export computes with.

    Attributes
    ----------
    numbers : floats of shape (K + 1, 1) or (K + 1, 3)
        Of the ramps, or of the steps.
    own_cutoff : float or None
        Where other groups keep the classifier's own decision: it says yes from here on. None if they do not, or
        if steps express it.
    on_logits : bool
        Whether steps and the classifier's own decision look at the logit instead of its position.
    """

    numbers: npt.NDArray[np.float64]
    own_cutoff: float | None
    on_logits: bool

    @classmethod
    def of(cls, rule: Rule) -> "Plan":
        """Of a rule."""
        on_logits = rule.scale == "logit"
        cutoff = rule.own_cutoff
        original = rule.unseen_group == "original"
        rows = [numbers_of(rule, ramp) for ramp in rule.ramps]
        if rule.pooled is not None:
            rows.append(numbers_of(rule, rule.pooled))
        elif original and rule.ramp_width == 0:
            rows.append((cutoff, cutoff, 1.0))
        else:
            rows.append((float("nan"),) * len(rows[0]))
        own = cutoff if original and rule.ramp_width > 0 else None
        return cls(np.array(rows, dtype=np.float64), own, on_logits)


def numbers_of(rule: Rule, ramp: Ramp) -> tuple[float, ...]:
    """What a chance depends on besides the score: (foot,), or (low, high, at) for steps."""
    if rule.ramp_width > 0:
        return (ramp.threshold - OFFSETS[rule.ramp] * rule.ramp_width,)
    if rule.scale != "logit":
        return ramp.threshold, ramp.threshold, ramp.tie_chance
    if not 0 <= ramp.threshold <= 1:  # all logits are above it, the lowest too; or below it, the highest too
        end = SCALES["logit"].finite_range[ramp.threshold > 1]
        return end, end, float(ramp.threshold < 0)
    return (*logits_at(ramp.threshold), ramp.tie_chance)


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
