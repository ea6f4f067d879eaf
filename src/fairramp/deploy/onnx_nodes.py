"""The nodes of a rule in an ONNX graph.

    group ─ LabelEncoder ─ k ─ Gather ─ foot_k, width_k ┐
    score ─ Cast ─ x ───────────────────────────────────┴ Sub ─ Div ─ Where ─ chance ┐
    u ───────────────────────────────────────────────────────────────────────────────┴ Less ─ Where ─ decision

If the rule mixes ramps, a shift is added to the foot: the sum of the shifts of a row's values, or of the groups'
shifts multiplied by the row's group probabilities. The code is 0, or 1 for a row without a shift.

An unseen label has its own code after all groups; −1 would select the last group's ramp. Columns of different
lengths are an error and are not broadcast. The arithmetic is written below as one operator per line.
"""

import math
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fairramp.core.checks import library
from fairramp.core.scales import ROUNDING
from fairramp.data.columns import Columns, prefixed
from fairramp.data.probable import SUM_TOLERANCE
from fairramp.deploy.plan import Mixture, Plan, label_type, labels_by_column
from fairramp.errors import InputError, installing
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule

#: The oldest opset in which all operators used here accept doubles.
OPSET = 13
#: The oldest version in which LabelEncoder maps strings, as well as integers, to integers.
ML_OPSET = 2
ML = "ai.onnx.ml"
_INT64 = range(-(2**63), 2**63)
#: Decision for an undecided row.
UNDECIDED = -1

#: Moves scores that rounding put just out of range to the end of the range.
PUT_BACK = """
    below = Less(score, lowest)
    hardly_below = GreaterOrEqual(score, just_below)
    rounded_down = And(below, hardly_below)
    raised = Where(rounded_down, lowest, score)
    above = Greater(raised, highest)
    hardly_above = LessOrEqual(raised, just_above)
    rounded_up = And(above, hardly_above)
    score = Where(rounded_up, highest, raised)
"""
_VALID = """
    from_lowest = GreaterOrEqual(score, lowest)
    to_highest = LessOrEqual(score, highest)
    in_range = And(from_lowest, to_highest)
    valid = Where(in_range, score, nan)
"""
_POSITION = {
    "percent": "forward = Div(valid, hundred)",
    "logit": """
    negative = Neg(valid)
    power = Exp(negative)
    more = Add(one, power)
    forward = Div(one, more)
""",
    "real": """
    part = Div(quarter, valid)
    upward = Sub(one, part)
    downward = Sub(minus_one, part)
    is_high = Greater(valid, half)
    is_low = Less(valid, minus_half)
    raised_part = Where(is_high, upward, valid)
    forward = Where(is_low, downward, raised_part)
""",
}
#: Without Clip, whose result for NaN depends on the runtime.
_SLOPE = """
    base = Gather(feet, code)
    foot = {foot}
    width = Gather(widths, code)
    rise = Sub(x, foot)
    height = Div(rise, width)
    at_head = GreaterOrEqual(height, one)
    risen = Where(at_head, one, height)
    at_foot = LessOrEqual(height, zero)
    ramp = Where(at_foot, zero, risen)
    slopes = Greater(width, zero)
    slope = Where(slopes, ramp, nan)
"""
_STEP = """
    low = Gather(lows, code)
    high = Gather(highs, code)
    tie = Gather(ties, code)
    is_below = Less(compared, low)
    under = Where(is_below, zero, nan)
    from_low = GreaterOrEqual(compared, low)
    reached = Where(from_low, tie, under)
    is_above = Greater(compared, high)
    step = Where(is_above, one, reached)
    wide = Gather(widths, code)
    steps = Equal(wide, zero)
    chance = Where(steps, step, slope)
"""
#: Probabilities that sum to 1 in every row. A missing one is NaN, and so is then the sum.
_SHARES = """
    from_zero = GreaterOrEqual(shares, zero)
    to_one = LessOrEqual(shares, most)
    likely = And(from_zero, to_one)
    sound = Where(likely, shares, nan)
    total = ReduceSum(sound, last)
    excess = Sub(total, one)
    off = Abs(excess)
    whole = LessOrEqual(off, tolerance)
    invalid = Not(whole)
"""
_WEIGHTED = """
    weighted = Mul(sound, shifts)
    shift = ReduceSum(weighted, last)
"""
_DECISION = """
    from_zero = GreaterOrEqual(u, zero)
    below_one = Less(u, one)
    is_draw = And(from_zero, below_one)
    is_yes = Less(u, chance)
    drawn = Where(is_yes, yes, no)
    open = Where(is_draw, drawn, undecided)
    certain = GreaterOrEqual(chance, one)
    no_draw = Where(certain, yes, open)
    impossible = LessOrEqual(chance, zero)
    decided = Where(impossible, no, no_draw)
    unknown = IsNaN(chance)
    decision = Where(unknown, undecided, decided)
"""


class Input(NamedTuple):
    """A group column as an input tensor, with the groups' values."""

    name: str
    type: int
    keys: list[Any]

    @property
    def places(self) -> dict[Any, int]:
        """The code of each value."""
        return {key: i for i, key in enumerate(dict.fromkeys(self.keys))}


class Nodes(ABC):
    """The nodes of a rule of any kind; with `rounded`, scores that rounding put just out of range are accepted.

    `shares` is the name of the input with the group probabilities, for a rule that uses them. A subclass computes
    `chances` and `decide`.

    Attributes
    ----------
    decided : str
        Type of the decisions.
    """

    decided = "INT8"

    def __init__(
        self,
        rule: Any,
        columns: list[Input],
        decisions: bool,
        prefix: str,
        taken: set[str],
        rounded: bool = False,
        shares: str | None = None,
    ) -> None:
        self.rule, self.columns, self.rounded, self.shares = rule, columns, rounded, shares
        u, *outputs = prefixed(prefix, ("u", "probability", "decision"))
        self.u = u if decisions else None
        self.outputs = outputs if decisions else outputs[:1]
        taken = taken | {column.name for column in columns} | {shares or ""}
        for name in [u, *outputs] if decisions else self.outputs:
            if name in taken:
                raise InputError("The model already uses the name {name!r}", remedy="pass {prefix}", name=name)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._inner = "fairramp"
        while any(name.startswith(f"{self._inner}/") for name in taken):
            self._inner += "_"

    def node(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        output = output or f"{self._inner}/{len(self.nodes)}"
        domain = ML if operator == "LabelEncoder" else ""
        name = f"{self._inner}/{operator}_{len(self.nodes)}"
        outputs = [output, f"{output}/places"] if operator == "TopK" else [output]
        make = load_onnx().helper.make_node
        self.nodes.append(make(operator, list(inputs), outputs, name=name, domain=domain, **attributes))
        return output

    def constant(self, value: Any) -> str:
        """Add a constant of the value's NumPy type and return its name."""
        name = f"{self._inner}/c{len(self.constants)}"
        self.constants.append(load_onnx().numpy_helper.from_array(np.asarray(value), name))
        return name

    def compute(
        self, lines: str, names: dict[str, str], constants: Mapping[str, Any], **attributes: dict[str, Any]
    ) -> dict[str, str]:
        """Add one node per line `name = Operator(input, …)` and return the names of all results.

        `attributes` are those of all nodes of an operator.
        """
        for what, operator_, given in re.findall(r"(\w+) = (\w+)\((.*)\)", lines):
            inputs = given.split(", ")
            names |= {name: self.constant(constants[name]) for name in inputs if name not in names}
            given_names = (names[name] for name in inputs)
            names[what] = self.node(operator_, *given_names, **attributes.get(operator_, {}))
        return names

    def add_to(self, model: Any, score: str) -> None:
        """Add the nodes, inputs and outputs of the rule to a model."""
        types, graph = load_onnx().TensorProto, model.graph
        raw = self.node("Reshape", score, self.whole(-1, *self.widths))
        shape = self.node("Gather", self.node("Shape", raw), self.whole(0))  # the number of rows
        chance = self.chances(self.node("Cast", raw, to=types.DOUBLE), shape)
        inputs = [tensor_info(column.name, column.type) for column in self.columns]
        if self.shares is not None:
            inputs.append(tensor_info(self.shares, types.DOUBLE, len(self.rule.groups)))
        if self.u is not None:
            self.decide(chance, self.node("Reshape", self.u, shape))
            inputs.append(tensor_info(self.u, types.DOUBLE))
        known = {tensor.name for tensor in graph.input}
        graph.input.extend(tensor for tensor in inputs if tensor.name not in known)
        graph.output.append(tensor_info(self.outputs[0], types.DOUBLE, *self.widths))
        graph.output.extend(tensor_info(name, getattr(types, self.decided)) for name in self.outputs[1:])
        graph.node.extend(self.nodes)
        graph.initializer.extend(self.constants)

    def whole(self, *values: int) -> str:
        """Add a constant list of integers and return its name."""
        return self.constant(np.array(values, dtype=np.int64))

    @property
    def widths(self) -> tuple[int, ...]:
        """Numbers of columns of the scores and of the probabilities; empty if they have one value per row."""
        return ()

    @abstractmethod
    def described(self, score: str) -> dict[str, Any]:
        """What the metadata say about the scores."""

    @abstractmethod
    def scores_from(self, output: Any, column: int | None) -> str:
        """The scores in a classifier's output."""

    @abstractmethod
    def chances(self, score: str, shape: str) -> str:
        """Add the nodes from scores in double precision to the output with the probabilities."""

    @abstractmethod
    def decide(self, chance: str, u: str) -> None:
        """Add the nodes from probabilities and draws to the output with the decisions."""

    def sound_shares(self, shares: str, shape: str) -> dict[str, str]:
        """The results of `_SHARES` for the input with the group probabilities."""
        width = self.whole(len(self.rule.groups))
        rows = self.node("Reshape", shares, self.node("Concat", shape, width, axis=0))
        return self.sums_to_one({"shares": rows})

    def sums_to_one(self, names: dict[str, str], tolerance: float = SUM_TOLERANCE) -> dict[str, str]:
        """The results of `_SHARES` for any probabilities."""
        constants = {
            **{"zero": 0.0, "one": 1.0, "most": 1.0 + SUM_TOLERANCE, "tolerance": tolerance, "nan": np.nan},
            "last": np.array([1], dtype=np.int64),
        }
        return self.compute(_SHARES, names, constants, ReduceSum={"keepdims": 0})

    def as_whole(self, flag: str) -> str:
        """Turn a boolean into 0 or 1."""
        return self.node("Cast", flag, to=load_onnx().TensorProto.INT64)

    def code(self, shape: str) -> str:
        """Code of each row's group: its position in the rule, or the number of groups for all others.

        Positions within each column are combined into one number, in a mixed radix with room for unknown labels.
        """
        n = len(self.rule.groups)
        whole, numbers, radices = "", [0] * n, []
        for column in self.columns:
            places = column.places
            radix = len(places) + 1
            place = self.place(column, shape)
            outer = whole and self.node("Mul", whole, self.constant(np.int64(radix)))
            whole = self.node("Add", outer, place) if outer else place
            numbers = [number * radix + places[key] for number, key in zip(numbers, column.keys, strict=True)]
            radices.append(radix)
        if math.prod(radices) not in _INT64:  # not even numbers of unseen groups may overflow
            raise InputError("This rule has too many group columns for an ONNX model")
        return (
            whole
            if len(self.columns) == 1
            else self.node(
                "LabelEncoder", whole, keys_int64s=numbers, values_int64s=list(range(n)), default_int64=n
            )
        )

    def place(self, column: Input, shape: str) -> str:
        """Code of each row's value in a column; the number of values for all others."""
        types, places = load_onnx().TensorProto, column.places
        labels = self.node("Reshape", column.name, shape)  # fails if there are more or fewer labels than scores
        if column.type == types.BOOL:
            labels = self.as_whole(labels)
        keys = "keys_strings" if column.type == types.STRING else "keys_int64s"
        attributes: dict[str, Any] = {keys: [*places], "values_int64s": [*places.values()]}
        return self.node("LabelEncoder", labels, default_int64=len(places), **attributes)


class RuleNodes(Nodes):
    """The nodes of a rule for two classes."""

    rule: Rule

    def described(self, score: str) -> dict[str, Any]:
        """What the metadata say about the scores."""
        lower = "" if self.rule.higher_is_better else ", lower is better"
        return {"score": f"{score}, on the scale {self.rule.scale}{lower}"}

    def scores_from(self, output: Any, column: int | None) -> str:
        """The scores in a classifier's output: those of one column."""
        sizes, name = sizes_of(output), str(output.name)
        if column is None:
            if sizes is not None and (len(sizes) == 1 or sizes[1:] == [1]):
                return name
            if sizes is None or sizes[1:] != [2]:
                raise InputError(
                    "Pass {column}: the output {name!r} has {what} instead of one or two columns",
                    name=name,
                    what=f"shape {sizes}" if sizes is not None else "an unknown shape",
                )
            if self.rule.meaning.is_unbounded:
                raise InputError(
                    "The output {name!r} has two numbers per row, and the scale of the rule is {scale!r}",
                    remedy="make the model return their difference, second minus first, or pass {column}",
                    name=name,
                    scale=self.rule.scale,
                )
            column = 1
        if sizes is not None and (len(sizes) != 2 or (sizes[1] and not 0 <= column < sizes[1])):
            raise InputError(
                "The output {name!r} of shape {sizes} has no column {place}", name=name, sizes=sizes, place=column
            )
        return self.node("Gather", name, self.constant(np.int64(column)), axis=1)

    def chances(self, score: str, shape: str) -> str:
        """Add the nodes from scores in double precision to the output with the probabilities."""
        return self._chance(score, **self._membership(shape))

    def _membership(self, shape: str) -> dict[str, str]:
        """The code of each row's numbers and, if the rule mixes ramps, the shift of its foot."""
        if self.shares is not None:
            return self._weighted(self.shares, shape)
        return self._added(shape) if self.rule.mixes else {"code": self.code(shape)}

    def _weighted(self, shares: str, shape: str) -> dict[str, str]:
        """The mean of the groups' shifts, weighted by their probabilities."""
        (shifts,) = Mixture.of(self.rule).shifts
        found = self.sound_shares(shares, shape)
        found = self.compute(_WEIGHTED, found, {"shifts": np.array(shifts)}, ReduceSum={"keepdims": 0})
        return {"shift": found["shift"], "code": self.as_whole(found["invalid"])}

    def _added(self, shape: str) -> dict[str, str]:
        """The sum of the shifts of a row's values; NaN if the rule does not know one of them."""
        shift = ""
        for column, shifts in zip(self.columns, Mixture.of(self.rule).shifts, strict=True):
            own = self.constant(np.array([*shifts, np.nan]))
            found = self.node("Gather", own, self.place(column, shape))
            shift = self.node("Add", shift, found) if shift else found
        return {"shift": shift, "code": self.as_whole(self.node("IsNaN", shift))}

    def _chance(self, score: str, code: str, shift: str = "") -> str:
        plan, scale = Plan.of(self.rule), self.rule.meaning
        low, high = scale.finite_range
        slack = ROUNDING * scale.shown_per_unit
        constants = {
            **{"lowest": low, "highest": high, "just_below": low - slack, "just_above": high + slack},
            **{"zero": 0.0, "one": 1.0, "nan": np.nan, "hundred": 100.0},
            **{"half": 0.5, "minus_half": -0.5, "quarter": 0.25, "minus_one": -1.0},
            **dict(zip(("feet", "widths", "lows", "highs", "ties"), plan.numbers, strict=True)),
        }
        turn = "Identity" if scale.higher_is_better else "Neg"
        slope = _SLOPE.format(foot="Add(base, shift)" if shift else "Identity(base)")
        lines = [
            PUT_BACK if self.rounded and not scale.is_unbounded else "",
            _VALID,
            _POSITION.get(scale.name, "forward = Identity(valid)"),
            f"x = {turn}(forward)",
            f"compared = {f'{turn}(valid)' if plan.on_scores else 'Identity(x)'}",
            slope if plan.slopes else "slope = Identity(nan)",
            _STEP if plan.steps else "chance = Identity(slope)",
        ]
        found = self.compute("\n".join(lines), {"score": score, "code": code, "shift": shift}, constants)
        return self.node("Identity", found["chance"], output=self.outputs[0])

    def decide(self, chance: str, u: str) -> None:
        """Add the nodes from probabilities and draws to the output with the decisions."""
        results = {"yes": np.int64(1), "no": np.int64(0), "undecided": np.int64(UNDECIDED)}
        found = self.compute(_DECISION, {"chance": chance, "u": u}, {"zero": 0.0, "one": 1.0, **results})
        self.node("Cast", found["decision"], output=self.outputs[1], to=load_onnx().TensorProto.INT8)


def inputs_of(rule: Rule | ClassRule, named: Columns, missing: Any) -> list[Input]:
    """The group columns as input tensors of strings, integers or booleans."""
    return [
        _input(name, labels, missing.get(name) if isinstance(missing, Mapping) else missing)
        for name, labels in labels_by_column(rule, named)
    ]


def _input(name: str, labels: list[Any], missing: Any) -> Input:
    types = load_onnx().TensorProto
    kind = label_type(name, labels)
    if None in labels and missing is None:
        raise InputError(
            "The rule has a group of missing values in {name!r}, and tensors have no nulls",
            remedy="pass {missing}, the value that stands for them in the input",
            name=name,
        )
    kind = int if None in labels and kind is bool else kind
    type_, what = {
        str: (types.STRING, "a string"),
        int: (types.INT64, "an integer"),
        bool: (types.BOOL, "a boolean"),
    }[kind]
    fits = type(missing) is kind
    if missing is not None and ((None in labels and not fits) or (fits and missing in labels)):
        raise InputError(
            "must be {what} that is not a group of {name!r}",
            argument="missing",
            got=missing,
            what=what,
            name=name,
        )
    keys = [missing if label is None else label if kind is str else operator.index(label) for label in labels]
    label_type(name, keys)  # `missing` must fit, too
    return Input(name, type_, keys)


def sizes_of(output: Any) -> list[int] | None:
    """The shape of a tensor, with 0 for sizes that are not known; None if nothing is."""
    kind = output.type.tensor_type
    return [dim.dim_value for dim in kind.shape.dim] if kind.HasField("shape") else None


def tensor_info(name: str, kind: int, *columns: int) -> Any:
    """A tensor with one value, or this many columns, per row."""
    return load_onnx().helper.make_tensor_value_info(name, kind, ["rows", *columns])


def load_onnx() -> Any:
    """The onnx library, with the submodules used here."""
    return library("onnx", "checker", "helper", "numpy_helper", install=installing("export"))
