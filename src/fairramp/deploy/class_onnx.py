"""The nodes of a rule for several classes in an ONNX graph.

    group ─ LabelEncoder ─ k ─ Gather ─ offset_k ┐
    score ─ Cast ─ p ────────────────────────────┴ Sub ─ projection onto the simplex ─ chance ┐
    u ────────────────────────────────────────────────────────────────────────────────────────┴ class

The projection is that of `core.simplex`, in the same order of operations: TopK sorts the classes of a row, and
CumSum adds them up, starting from −1. Group probabilities are multiplied with the groups' offsets instead.

Rows that the rule rejects get zeros until the end, and then NaN: operators that sort need numbers.
"""

from typing import Any

import numpy as np

from fairramp.core.scales import ROUNDING
from fairramp.data.probable import SUM_TOLERANCE
from fairramp.deploy.onnx_nodes import PUT_BACK, UNDECIDED, Nodes, load_onnx, sizes_of
from fairramp.errors import InputError, UnsupportedError
from fairramp.rule.class_rule import ClassRule

#: Largest difference from 1 of the scores of one row that a classifier adds up in single precision.
ROUNDED_SUM = 1e-4

#: Sorting needs numbers, so the scores of rejected rows become 0.
_READ = """
    rejected_rows = Unsqueeze(rejected, last)
    p = Where(rejected_rows, zero, score)
"""
_MIXED = """
    mistaken_rows = Unsqueeze(invalid, last)
    shares_read = Where(mistaken_rows, zero, shares)
    mixed = MatMul(shares_read, shifts)
    offset = Add(mixed, common)
"""
_PROJECTION = """
    moved = Sub(p, offset)
    sorted = TopK(moved, n_classes)
    largest = Gather(sorted, first)
    below = Sub(moved, largest)
    z = Div(below, width)
    below_sorted = Sub(sorted, largest)
    z_sorted = Div(below_sorted, width)
    start = Sub(z_sorted, one_first)
    total = CumSum(start, axis)
    levels = Div(total, counts)
    level = TopK(levels, single)
    left = Sub(z, level)
    is_left = Greater(left, zero)
    ramped = Where(is_left, left, zero)
"""
_OWN = """
    best = ArgMax(p)
    is_best = Equal(best, places)
    own = Where(is_best, one, zero)
"""
_DRAWN = """
    unknown = IsNaN(chance)
    read = Where(unknown, zero, chance)
    sure = ArgMax(read)
    top = TopK(read, single)
    is_sure = GreaterOrEqual(top, one)
    rejected = IsNaN(first_chance)
    sorted = Gather(read, order)
    cumulative = CumSum(sorted, axis)
    exceeds = Greater(cumulative, u)
    exceeding = Where(exceeds, one, zero)
    reached = ArgMax(exceeding)
    sum = Gather(cumulative, last_class)
    is_beyond = GreaterOrEqual(u, sum)
    can_be = Greater(sorted, zero)
    possible = Where(can_be, one, zero)
"""
_DECISION = """
    place = Where(is_beyond, last_possible, reached)
    drawn = Gather(order, place)
    from_zero = GreaterOrEqual(u, zero)
    below_one = Less(u, one)
    is_draw = And(from_zero, below_one)
    open = Where(is_draw, drawn, undecided)
    decided = Where(is_sure, sure, open)
    decision = Where(rejected, undecided, decided)
"""


class ClassNodes(Nodes):
    """The nodes of a rule for several classes."""

    rule: ClassRule
    decided = "INT64"

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of the scores and of the probabilities."""
        return (len(self.rule.classes),)

    def described(self, score: str) -> dict[str, Any]:
        """What the metadata say about the scores."""
        return {
            "score": f"{score}, with the probability of each class in a column",
            "classes": list(self.rule.classes),
        }

    def scores_from(self, output: Any, column: int | None) -> str:
        """The scores in a classifier's output: all of its columns."""
        if column is not None:
            raise UnsupportedError("A rule for several classes uses all columns and no {column}; remove it")
        sizes, name = sizes_of(output), str(output.name)
        if sizes is not None and (len(sizes) != 2 or sizes[1] not in (0, *self.widths)):
            raise InputError(
                "The output {name!r} of shape {sizes} does not have one column for each of the classes {classes}",
                name=name,
                sizes=sizes,
                classes=list(self.rule.classes),
            )
        return name

    def chances(self, score: str, shape: str) -> str:
        """Add the nodes from scores in double precision to the output with the probabilities."""
        n, width = len(self.rule.classes), self.rule.ramp_width
        constants = {
            **{"zero": 0.0, "one": 1.0, "nan": np.nan, "width": width},
            **{"lowest": 0.0, "highest": 1.0, "just_below": -ROUNDING, "just_above": 1.0 + ROUNDING},
            **{"one_first": np.eye(n)[0], "counts": np.arange(1.0, n + 1), "places": np.arange(n)},
            **{
                "first": np.array([0]),
                "single": np.array([1]),
                "last": np.array([1]),
                "n_classes": np.array([n]),
            },
            **{"axis": np.int64(1), "unseen_code": np.int64(len(self.rule.groups))},
        }
        attributes = {"Gather": {"axis": 1}, "ArgMax": {"axis": 1}}
        names = {"score": score}
        if self.rounded:
            names = self.compute(PUT_BACK, names, constants)
        summed = self.sums_to_one({"shares": names["score"]}, ROUNDED_SUM if self.rounded else SUM_TOLERANCE)
        rejected = summed["invalid"]
        if self.shares is not None:
            offsets, mistaken = self._mixed_offsets(self.shares, shape)
            rejected = self.node("Or", rejected, mistaken)
        else:
            code = self.code(shape)
            offsets = self.node("Gather", self.constant([*self.rule.offsets, (0.0,) * n]), code)
            unseen = self.compute("unseen = Equal(code, unseen_code)", {"code": code}, constants)["unseen"]
            names["unseen"] = unseen
            if self.rule.unseen_group == "error":
                rejected = self.node("Or", rejected, unseen)
        names |= {"offset": offsets, "rejected": rejected}
        names = self.compute(_READ, names, constants)
        keeps_own = "unseen" in names and self.rule.unseen_group == "original"
        if width > 0:
            names = self.compute(_PROJECTION, names, constants, **attributes)
        if width == 0 or keeps_own:
            names = self.compute(_OWN, names, constants, **attributes)
        found = names["ramped" if width > 0 else "own"]
        if width > 0 and keeps_own:
            unseen_rows = self.node("Unsqueeze", names["unseen"], self.whole(1))
            found = self.node("Where", unseen_rows, names["own"], found)
        return self.node("Where", names["rejected_rows"], self.constant(np.nan), found, output=self.outputs[0])

    def _mixed_offsets(self, shares: str, shape: str) -> tuple[str, str]:
        """The mean of the groups' offsets, weighted by their probabilities, and which rows are invalid."""
        common, shifts = self.rule.common_offsets
        constants = {"zero": 0.0, "last": np.array([1]), "shifts": shifts, "common": common}
        found = self.compute(_MIXED, self.sound_shares(shares, shape), constants)
        return found["offset"], found["invalid"]

    def decide(self, chance: str, u: str) -> None:
        """Add the nodes from probabilities and draws to the output with the decisions."""
        constants = {
            **{"zero": 0.0, "one": 1.0, "undecided": np.int64(UNDECIDED), "axis": np.int64(1)},
            **{"order": self.rule.order.astype(np.int64), "single": np.array([1])},
            "last_class": np.array([len(self.rule.classes) - 1]),
        }
        attributes = {"Gather": {"axis": 1}, "ArgMax": {"axis": 1}}
        first = self.node("Gather", chance, self.whole(0), axis=1)
        names = {"chance": chance, "first_chance": first, "u": self.node("Unsqueeze", u, self.whole(1))}
        names = self.compute(_DRAWN, names, constants, **attributes)
        names["last_possible"] = self.node("ArgMax", names["possible"], axis=1, select_last_index=1)
        names = self.compute(_DECISION, names, constants)
        flat = self.node("Reshape", names["decision"], self.whole(-1))
        self.node("Cast", flat, output=self.outputs[1], to=load_onnx().TensorProto.INT64)
