"""A rule as arrays of numbers, for exports that have no notion of ramps and policies.

Groups are coded 0 … K−1 in the order of the rule; every other group is K. Each code has five numbers,

    foot, width         P = clip((x − foot) / width, 0, 1)                          ramps with a positive width
    low, high, tie      P = 1 above high, `tie` from low to high, 0 below low       steps: the width is 0

where x is the position of a score (`fairramp.core.scales`). For steps of logits and real numbers it is the score
itself, so that a tie does not depend on the last digit of an exponential; negated, like positions, if lower
scores are better. The numbers of code K follow from the policy `unseen_group`; for "error" they are NaN, for
which every comparison is false.

If a rule mixes ramps, there are two codes: 0, whose foot is start + Σ shifts (`Mixture`), and 1 for the others.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

import numpy as np

from fairramp.core.cells import strata_slices
from fairramp.core.labels import Label, label_key, label_parts
from fairramp.core.ramps import Array, Floats, Ramp, total
from fairramp.data.columns import Columns
from fairramp.errors import InputError
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule


class Numbers(NamedTuple):
    """The numbers that define a probability for each score: the slope or, for a width of 0, the step."""

    foot: float
    width: float
    low: float
    high: float
    tie: float

    @classmethod
    def of(cls, rule: Rule, ramp: Ramp) -> "Numbers":
        """The numbers of one of the rule's ramps."""
        foot, width, scale = ramp.foot, ramp.width, rule.meaning
        lowest, highest = sorted(map(scale.turned, scale.finite_range))
        if ramp.is_constant:  # a step at which all scores are tied
            return cls(foot, 0.0, lowest, highest, ramp.tie)
        if width > 0:
            return cls(foot, width, foot, foot, ramp.tie)
        if scale.is_unbounded and foot < scale.lowest:  # all scores, including the extreme ones, are on one side
            return cls(foot, width, lowest, lowest, 1.0)
        if scale.is_unbounded and foot > scale.highest:
            return cls(foot, width, highest, highest, 0.0)
        return cls(foot, width, *scale.compared_at(foot), ramp.tie)


class Mixture(NamedTuple):
    """How a rule mixes ramps: a person's foot is that of `ramp` plus all shifts, which are added in order first.

    Attributes
    ----------
    ramp : Ramp
        The ramp of a person without shifts. If all ramps are the same, everyone has it, and all shifts are 0.
    values : list of lists
        For "each", the values of every attribute; empty for "probabilities".
    shifts : list of lists
        For "each", the shift of each of these values. For "probabilities", one list with the shift of each group,
        which is multiplied by the group's probability.
    """

    ramp: Ramp
    values: list[list[Label]]
    shifts: list[list[float]]

    @classmethod
    def of(cls, rule: Rule) -> "Mixture":
        """The mixture of a rule whose membership is "probabilities" or "each"."""
        parts = strata_slices(rule.parts, len(rule.groups))
        values = [[label[1] for label in rule.groups[p] if isinstance(label, tuple)] for p in parts if rule.base]
        center, (foot, width, tie) = rule.center, astuple(rule.base or rule.ramps[0])
        shifts = [[ramp.foot - center for ramp in rule.ramps[part]] for part in parts]
        if len({ramp.foot for ramp in rule.ramps}) > 1:
            return cls(Ramp(center, width), values, shifts)
        foot = center + total(part[0] for part in shifts) if rule.base else foot
        return cls(Ramp(foot, width, tie), values, [[0.0] * len(part) for part in shifts])


@dataclass(frozen=True)
class Plan:
    """The numbers that an export computes with.

    Attributes
    ----------
    numbers : floats of shape (5, K + 1)
        Foot, width, low, high and tie of every code.
    slopes, steps : bool
        Whether any code has a positive width, and whether any has width 0.
    on_scores : bool
        Whether steps compare the score instead of its position.
    mixture : Mixture or None
        The shifts of a rule that mixes ramps.
    """

    numbers: Floats
    slopes: bool
    steps: bool
    on_scores: bool
    mixture: Mixture | None

    @classmethod
    def of(cls, rule: Rule) -> "Plan":
        """The plan of a rule; the policy "original" is a step at the cutoff."""
        cutoff, nan = rule.own_cutoff, float("nan")
        others = {
            "error": lambda: Numbers(nan, nan, nan, nan, nan),
            "pooled": lambda: Numbers.of(rule, rule.pooled or rule.ramps[0]),
            "original": lambda: Numbers(cutoff, 0.0, cutoff, cutoff, 1.0),
        }
        mixture = Mixture.of(rule) if rule.mixes else None
        ramps = rule.ramps if mixture is None else (mixture.ramp,)
        # Invalid group probabilities are not an unseen group: no policy applies to them.
        policy = "error" if rule.membership == "probabilities" else rule.unseen_group
        rows = [*(Numbers.of(rule, ramp) for ramp in ramps), others[policy]()]
        numbers = np.array(rows, dtype=np.float64).T
        slopes, steps = bool((numbers[1] > 0).any()), bool((numbers[1] == 0).any())
        return cls(numbers, slopes, steps, rule.meaning.is_unbounded, mixture)


def codes_of(rule: Rule | ClassRule, groups: Any, strata: Any = None) -> Array:
    """Code each row's group by its position in the rule, or by K, the number of groups, for all others.

    For "each", a row has one code per attribute: the position of its value, or the number of values.

    Examples
    --------
    >>> from fairramp import Ramp, Rule
    >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    >>> codes_of(rule, ["B", "A", "C", None])
    array([1, 0, 2, 2])
    """
    found = rule.encode(groups, strata)
    mixes, each = False, [list(rule.groups)]
    if isinstance(rule, Rule) and rule.mixes:
        mixes, each = True, Mixture.of(rule).values
    places = [{label_key(label): place for place, label in enumerate(known)} for known in each]
    rows = [label_parts(label) if mixes else (label,) for label in found.labels]
    if any(len(row) != len(places) for row in rows):
        raise InputError("must have {n} columns, as in the fit", argument="groups", n=len(places))
    codes = [
        [known.get(label_key(part), len(known)) for part, known in zip(row, places, strict=True)] for row in rows
    ]
    by_label = np.array(codes, dtype=np.int64).reshape(-1, len(places))
    return (by_label if mixes else by_label[:, 0])[found.block(0, len(found))]


def labels_by_column(rule: Rule | ClassRule, columns: Columns) -> list[tuple[str, list[Any]]]:
    """The groups' values in each group column, strata first; none for a rule that uses group probabilities.

    Examples
    --------
    >>> from fairramp import Columns, Ramp, Rule
    >>> rule = Rule((("f", 1), ("m", 1)), (Ramp(0.5, 0.1), Ramp(0.4, 0.1)))
    >>> labels_by_column(rule, Columns(groups=("sex", "unit")))
    [('sex', ['f', 'm']), ('unit', [1, 1])]
    """
    if rule.membership == "probabilities":
        return []
    if isinstance(rule, ClassRule) or not rule.mixes:
        return columns.labels(rule.groups)
    return list(zip(columns.grouped, Mixture.of(rule).values, strict=True))


def label_type(name: str, labels: Sequence[Label]) -> type:
    """Return the type of the labels of a column: strings, 64-bit integers or booleans."""
    examples = {type(label): label for label in labels if label is not None}
    if len(examples) > 1:
        raise InputError(
            "Group labels in column {name!r} have several types ({several}), and an exported column has one",
            remedy="fit with labels of one type",
            name=name,
            several=", ".join(map(repr, examples.values())),
        )
    outside = [label for label in labels if isinstance(label, int) and not -(2**63) <= label < 2**63]
    if outside:
        raise InputError(
            "The group {label} of column {name!r} does not fit into a 64-bit integer",
            remedy="use strings",
            label=outside[0],
            name=name,
        )
    return next(iter(examples), str)


def check_both(**given: Any) -> None:
    """Raise an error if only one of two arguments is given; repeatable decisions need both."""
    absent = [name for name, value in given.items() if value is None]
    if len(absent) == 1:
        raise InputError(
            "Repeatable decisions need both {" + "} and {".join(given) + "}; {" + absent[0] + "} is missing"
        )
