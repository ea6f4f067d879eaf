"""The nodes of a rule in an ONNX graph.

    group ─ LabelEncoder ─ k ─ Gather ─ foot_k, width_k ┐
    score ─ Cast ─ x ───────────────────────────────────┴ Sub ─ Div ─ Where ─ chance ┐
    u ───────────────────────────────────────────────────────────────────────────────┴ Less ─ Where ─ decision

An unseen label has a code of its own behind all groups; −1 would take the last group's ramp. Clip is not used,
because what it makes of NaN is left to the runtime. Columns of different length are an error and not broadcast.
"""

import math
import operator
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairramp.core.scales import ROUNDING, SCALES
from fairramp.data.columns import Columns, prefixed
from fairramp.deploy.plan import Numbers, Plan, label_type, library
from fairramp.errors import InputError
from fairramp.rule.rule import Rule

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["ML", "ML_OPSET", "OPSET", "UNDECIDED", "Input", "RuleNodes", "inputs_of", "load_onnx", "tensor_info"]

#: The oldest version of the operators in which all those used here work on doubles.
OPSET = 13
#: From this version on the operator LabelEncoder maps texts to whole numbers and back and forth.
ML_OPSET = 2
ML = "ai.onnx.ml"
_INT64 = range(-(2**63), 2**63)
#: Decision of a row that could not be decided.
UNDECIDED = -1


class Input(NamedTuple):
    """A group column as a tensor."""

    name: str
    type: int
    keys: list[Any]


class RuleNodes:
    """The nodes of a rule; with `rounded`, scores that stray out of their range by a rounding are put back."""

    def __init__(
        self,
        rule: Rule,
        columns: list[Input],
        decisions: bool,
        prefix: str,
        taken: set[str],
        rounded: bool = False,
    ) -> None:
        self.rule, self.columns, self.rounded = rule, columns, rounded
        u, *outputs = prefixed(prefix, ("u", "probability", "decision"))
        self.u = u if decisions else None
        self.outputs = outputs if decisions else outputs[:1]
        taken = taken | {column.name for column in columns}
        for name in [u, *outputs] if decisions else self.outputs:
            if name in taken:
                raise InputError(
                    "The model has something named {name!r} already", remedy="pass {prefix}", name=name
                )
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._inner = "fairramp"
        while any(name.startswith(f"{self._inner}/") for name in taken):
            self._inner += "_"

    def node(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node; the name of what it computes."""
        output = output or f"{self._inner}/{len(self.nodes)}"
        domain = ML if operator == "LabelEncoder" else ""
        name = f"{self._inner}/{operator}_{len(self.nodes)}"
        make = load_onnx().helper.make_node
        self.nodes.append(make(operator, list(inputs), [output], name=name, domain=domain, **attributes))
        return output

    def constant(self, value: Any, kind: Any = np.float64) -> str:
        """Add a constant; its name."""
        name = f"{self._inner}/c{len(self.constants)}"
        self.constants.append(load_onnx().numpy_helper.from_array(np.asarray(value, dtype=kind), name))
        return name

    def added_to(self, model: "ModelProto", score: str) -> "ModelProto":
        """A model, to which the nodes, inputs and outputs of the rule are added."""
        types = load_onnx().TensorProto
        graph = model.graph
        known = {tensor.name for tensor in graph.input}
        raw = self.node("Reshape", score, self.constant([-1], np.int64))
        shape = self.node("Shape", raw)
        code = self._code(shape)
        chance = self._chance(self.node("Cast", raw, to=types.DOUBLE), code)
        new = [tensor_info(c.name, c.type) for c in self.columns if c.name not in known]
        graph.output.append(tensor_info(self.outputs[0], types.DOUBLE))
        if self.u is not None:
            self._decision(chance, self.node("Reshape", self.u, shape))
            new.append(tensor_info(self.u, types.DOUBLE))
            graph.output.append(tensor_info(self.outputs[1], types.INT8))
        graph.input.extend(new)
        graph.node.extend(self.nodes)
        graph.initializer.extend(self.constants)
        return model

    def _code(self, shape: str) -> str:
        """Each row's group: its place in the rule, or the number of groups for all others.

        Places within each column make one number, in a mixed radix that leaves room for labels of no group.
        """
        n = len(self.rule.groups)
        whole, numbers, radices = "", [0] * n, []
        for column in self.columns:
            places = {key: i for i, key in enumerate(dict.fromkeys(column.keys))}
            radix = len(places) + 1
            place = self._place(column, places, shape)
            higher = self.node("Mul", whole, self.constant(radix, np.int64)) if whole else ""
            whole = self.node("Add", higher, place) if whole else place
            numbers = [number * radix + places[key] for number, key in zip(numbers, column.keys, strict=True)]
            radices.append(radix)
        if math.prod(radices) not in _INT64:  # also numbers of unseen groups must not wrap around
            raise InputError("The groups of this rule have too many columns for an ONNX model")
        if len(self.columns) == 1:
            return whole
        return self.node(
            "LabelEncoder", whole, keys_int64s=numbers, values_int64s=list(range(n)), default_int64=n
        )

    def _place(self, column: Input, places: dict[Any, int], shape: str) -> str:
        types = load_onnx().TensorProto
        labels = self.node("Reshape", column.name, shape)  # fails if there are not as many as scores
        if column.type == types.BOOL:
            labels = self.node("Cast", labels, to=types.INT64)
        keys = "keys_strings" if column.type == types.STRING else "keys_int64s"
        attributes: dict[str, Any] = {keys: [*places], "values_int64s": [*places.values()]}
        return self.node("LabelEncoder", labels, default_int64=len(places), **attributes)

    def _chance(self, score: str, code: str) -> str:
        plan, where = Plan.of(self.rule), partial(self.node, "Where")
        rows = dict(zip(Numbers._fields, plan.numbers, strict=True))
        zero, one, nan = map(self.constant, (0.0, 1.0, np.nan))
        score = self._sound(score, nan)
        x = self._position(score, one)
        compared = score if plan.on_logits else x

        def number(name: str) -> str:
            return self.node("Gather", self.constant(rows[name]), code)

        def slope(width: str) -> str:
            height = self.node("Div", self.node("Sub", x, number("foot")), width)
            risen = where(self.node("GreaterOrEqual", height, one), one, height)
            return where(self.node("LessOrEqual", height, zero), zero, risen)

        def step() -> str:
            low = number("low")
            below = where(self.node("Less", compared, low), zero, nan)
            reached = where(self.node("GreaterOrEqual", compared, low), number("tie"), below)
            return where(self.node("Greater", compared, number("high")), one, reached)

        if plan.slopes:
            width = number("width")
            chance = slope(width)
            if plan.steps:
                chance = where(self.node("Greater", width, zero), chance, step())
        else:
            chance = step()
        return self.node("Identity", chance, output=self.outputs[0])

    def _sound(self, score: str, nan: str) -> str:
        """The score where it is in its range, or a rounding outside if such are put back; else NaN."""
        scale = SCALES[self.rule.scale]
        low, high = map(self.constant, scale.finite_range)
        if self.rounded and scale.name != "logit":
            slack = ROUNDING * scale.shown_per_unit
            for outside, near, end, farthest in (
                ("Less", "GreaterOrEqual", low, scale.score_range[0] - slack),
                ("Greater", "LessOrEqual", high, scale.score_range[1] + slack),
            ):
                beyond = self.node(outside, score, end)
                stray = self.node("And", beyond, self.node(near, score, self.constant(farthest)))
                score = self.node("Where", stray, end, score)
        sound = self.node("And", self.node("GreaterOrEqual", score, low), self.node("LessOrEqual", score, high))
        return self.node("Where", sound, score, nan)

    def _position(self, score: str, one: str) -> str:
        if self.rule.scale == "percent":
            return self.node("Div", score, self.constant(100.0))
        if self.rule.scale != "logit":
            return score
        return self.node("Div", one, self.node("Add", one, self.node("Exp", self.node("Neg", score))))

    def _decision(self, chance: str, u: str) -> None:
        zero, one = map(self.constant, (0.0, 1.0))
        yes, no, undecided = (self.constant(value, np.int64) for value in (1, 0, UNDECIDED))
        drawn = self.node("And", self.node("GreaterOrEqual", u, zero), self.node("Less", u, one))
        answer = self.node("Where", self.node("Less", u, chance), yes, no)
        answer = self.node("Where", drawn, answer, undecided)
        for test, certain in (
            (self.node("GreaterOrEqual", chance, one), yes),
            (self.node("LessOrEqual", chance, zero), no),
            (self.node("IsNaN", chance), undecided),
        ):
            answer = self.node("Where", test, certain, answer)
        self.node("Cast", answer, output=self.outputs[1], to=load_onnx().TensorProto.INT8)


def inputs_of(rule: Rule, named: Columns, missing: Any) -> list[Input]:
    """The group columns as tensors: texts, whole numbers or truths, each with the groups' values."""
    return [
        _input(name, labels, missing.get(name) if isinstance(missing, Mapping) else missing)
        for name, labels in named.labels(rule.groups)
    ]


def _input(name: str, labels: list[Any], missing: Any) -> Input:
    types = load_onnx().TensorProto
    kind = label_type(name, labels)
    if None in labels:
        if missing is None:
            raise InputError(
                "The rule has a group of missing values in {name!r}, and tensors have none: pass {missing}, what "
                "stands for them, and put it in their place",
                name=name,
            )
        kind = int if kind is bool else kind
    type_, what = {
        str: (types.STRING, "a text"),
        int: (types.INT64, "a whole number"),
        bool: (types.BOOL, "a boolean"),
    }[kind]
    fits = type(missing) is kind
    if missing is not None and ((None in labels and not fits) or (fits and missing in labels)):
        raise InputError(
            "must be {what} that is no group of {name!r}", argument="missing", got=missing, what=what, name=name
        )
    keys = [missing if label is None else label if kind is str else operator.index(label) for label in labels]
    label_type(name, keys)  # also with `missing`
    return Input(name, type_, keys)


def tensor_info(name: str, kind: int) -> Any:
    """A column, one value per row."""
    return load_onnx().helper.make_tensor_value_info(name, kind, ["rows"])


def load_onnx() -> Any:
    """The library onnx, with the parts that are used here."""
    return library("onnx", "checker", "helper", "numpy_helper")
