"""A rule as an ONNX graph, alone or behind a classifier's own.

    score, group [, stratum]  →  probability        clip((x − foot_k) / ramp_width, 0, 1), in double
    u                         →  decision           1 if u < probability else 0;  −1: not decided

    group ─ LabelEncoder ─ k ─ Gather ─ foot_k ┐
    score ─ Cast ─ x ──────────────────────────┴ Sub ─ Div ─ Where ─ probability

Tensors have no nulls and a graph cannot refuse, so what `Rule.probabilities` refuses gets the probability NaN: a
score that is NaN, infinite or out of its scale's range, and an unseen group under the policy "error". It
gets the decision −1, and so does a row whose draw is needed and is not in [0, 1). Never a silent yes or no.

An unseen label has a code of its own behind all groups; −1 would take the last group's ramp. Clip is not used,
because what it makes of NaN is left to the runtime. Columns of different length are an error and not broadcast.
"""

import json
import math
import operator
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairramp._version import __version__
from fairramp.columns import Columns, prefixed
from fairramp.exceptions import FairrampError, InputError
from fairramp.export.plan import Plan
from fairramp.files import write_bytes
from fairramp.groups import Label
from fairramp.inputs import check_option
from fairramp.rule import Rule
from fairramp.scales import ROUNDING, SCALES

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["append_to", "labels_by_input", "to_onnx"]

#: The oldest version of the operators in which all those used here work on doubles.
_OPSET = 13
#: From this version on the operator LabelEncoder maps texts to whole numbers and back and forth.
_ML_OPSET = 2
_ML = "ai.onnx.ml"
_INT64 = range(-(2**63), 2**63)
#: Decision of a row that could not be decided.
_UNDECIDED = -1


def to_onnx(
    rule: Rule,
    path: str | os.PathLike[str] | None = None,
    *,
    decisions: bool = False,
    score: str | None = None,
    group: str | Sequence[str] | None = None,
    strata: str | Sequence[str] | None = None,
    score_type: str = "float64",
    missing: Any = None,
    prefix: str = "",
) -> "ModelProto":
    """Make an ONNX model of a rule.

    Parameters
    ----------
    rule : Rule
        What to export.
    path : str or path, optional
        Where to save the model, whole or not at all.
    decisions : bool, default False
        Whether the model has a further input `u`, from `fairramp.draws` in double, and a further output
        `decision`: int8, 1, 0 or −1 for a row that could not be decided.
    score, group, strata : str or list of str, optional
        Names of the inputs; the columns of the fit unless given, or else score, group and stratum.
    score_type : {"float64", "float32"}
        Type of the scores that come in; all arithmetic is in double.
    missing : str, int or dict of those by input, optional
        What stands for a missing group, which tensors have no value for. Needed if the fit had a group
        of missing values.
    prefix : str, default ""
        What the names `u`, `probability` and `decision` start with.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> from fairramp import Ramp, Rule
    >>> rule = Rule(("A", "B"), (Ramp(0.5), Ramp(0.4)), ramp_width=0.1)
    >>> model = to_onnx(rule, decisions=True)
    >>> [tensor.name for tensor in model.graph.input], [tensor.name for tensor in model.graph.output]
    (['score', 'group', 'u'], ['probability', 'decision'])
    """
    onnx = _onnx()
    types = {"float64": onnx.TensorProto.DOUBLE, "float32": onnx.TensorProto.FLOAT}
    check_option("score_type", score_type, types)
    named = _named(rule, score, group, strata)
    columns, name = _inputs(rule, named, missing), named.score
    _check_distinct([name, *(column.name for column in columns)])
    graph = onnx.GraphProto(name="fairramp")
    graph.input.append(_tensor(name, types[score_type]))
    part = _Part(rule, columns, decisions, prefix, {name})
    versions = [onnx.helper.make_opsetid("", _OPSET), onnx.helper.make_opsetid(_ML, _ML_OPSET)]
    model = onnx.helper.make_model(
        graph,
        producer_name="fairramp",
        producer_version=__version__,
        opset_imports=versions,
        ir_version=onnx.helper.find_min_ir_version_for(versions),
    )
    return _finished(part.added_to(model, name), part, name, path)


def append_to(
    model: Any,
    rule: Rule,
    path: str | os.PathLike[str] | None = None,
    *,
    decisions: bool = False,
    score: str | None = None,
    column: int | None = None,
    group: str | Sequence[str] | None = None,
    strata: str | Sequence[str] | None = None,
    missing: Any = None,
    prefix: str = "",
) -> "ModelProto":
    """Join a rule behind a classifier, so that one model takes features and groups and decides.

    A score at most 1e-6 out of its range (1e-4 in percent) is a rounding of the classifier and counts as the end.

    The classifier's own inputs and outputs stay. An input of the classifier with the name of a group column, and
    of its type, is used for both.

    Parameters
    ----------
    model : onnx.ModelProto or path
        The classifier; it is not changed. Models of skl2onnx need ``options={"zipmap": False}``.
    rule : Rule
        Fitted to scores of that classifier.
    path : str or path, optional
        Where to save the joined model, whole or not at all.
    decisions : bool, default False
        As for `to_onnx`.
    score : str, optional
        Name of the output that holds the scores; needed if several could.
    column : int, optional
        Which column of that output; the second of two unless given.
    group, strata, missing, prefix
        As for `to_onnx`.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> import onnx
    >>> from onnx import helper
    >>> from fairramp import Ramp, Rule
    >>> rows = helper.make_tensor_value_info("features", onnx.TensorProto.FLOAT, ["rows", 1])
    >>> chance = helper.make_tensor_value_info("chance", onnx.TensorProto.FLOAT, ["rows", 1])
    >>> node = helper.make_node("Sigmoid", ["features"], ["chance"])
    >>> graph = helper.make_graph([node], "own", [rows], [chance])
    >>> rule = Rule(("A", "B"), (Ramp(0.5), Ramp(0.4)), ramp_width=0.1)
    >>> joined = append_to(helper.make_model(graph), rule)
    >>> [tensor.name for tensor in joined.graph.input], [tensor.name for tensor in joined.graph.output]
    (['features', 'group'], ['chance', 'probability'])
    """
    onnx = _onnx()
    if isinstance(model, onnx.ModelProto):
        joined = onnx.ModelProto()
        joined.CopyFrom(model)
    else:
        joined = _loaded(os.fspath(model))
    found = _score_output(joined, score)
    _align(joined)
    graph = joined.graph
    inputs = {tensor.name: tensor for tensor in graph.input}
    columns, taken = _inputs(rule, _named(rule, found.name, group, strata), missing), _names_in(graph)
    _check_distinct([column_in.name for column_in in columns])
    for column_in in columns:
        if column_in.name not in inputs:
            if column_in.name in taken:
                raise InputError(
                    f"The model has something named {column_in.name!r} already; pass `group` or `strata`."
                )
        elif inputs[column_in.name].type.tensor_type.elem_type != column_in.type:
            raise InputError(
                f"The model's input {column_in.name!r} is not of the type of the rule's groups; pass `group` "
                "with another name, and the groups come in beside it."
            )
    part = _Part(rule, columns, decisions, prefix, taken, rounded=True)
    taken_from = _one_column(found, column, rule, part)
    return _finished(part.added_to(joined, taken_from), part, f"output {found.name} of the classifier", path)


def labels_by_input(rule: Rule, group: Any = None, strata: Any = None) -> dict[str, list[Any]]:
    """The groups' values in each input that tells groups apart, strata first.

    Examples
    --------
    >>> from fairramp import Ramp, Rule
    >>> rule = Rule((("f", 1), (None, 2)), (Ramp(0.5), Ramp(0.4)), ramp_width=0.1)
    >>> labels_by_input(rule, group=["sex", "unit"])
    {'sex': ['f', None], 'unit': [1, 2]}
    """
    pairs = _named(rule, "", group, strata).labels(rule.groups)
    _check_distinct([name for name, _ in pairs])
    return dict(pairs)


class _Input(NamedTuple):
    """A group column as a tensor."""

    name: str
    type: int
    keys: list[Any]


class _Part:
    """The nodes of a rule; with `rounded`, scores that stray out of their range by a rounding are put back."""

    def __init__(
        self,
        rule: Rule,
        columns: list[_Input],
        decisions: bool,
        prefix: str,
        taken: set[str],
        rounded: bool = False,
    ) -> None:
        self.rule = rule
        self.columns = columns
        self.rounded = rounded
        taken = taken | {column.name for column in columns}
        u, *outputs = prefixed(prefix, ("u", "probability", "decision"))
        self.u = u if decisions else None
        self.outputs = outputs if decisions else outputs[:1]
        for name in (*([self.u] if self.u else []), *self.outputs):
            if name in taken:
                raise InputError(f"The model has something named {name!r} already; pass `prefix`.")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._inner = "fairramp"
        while any(name.startswith(f"{self._inner}/") for name in taken):
            self._inner += "_"

    def node(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node; the name of what it computes."""
        output = output or f"{self._inner}/{len(self.nodes)}"
        domain = _ML if operator == "LabelEncoder" else ""
        name = f"{self._inner}/{operator}_{len(self.nodes)}"
        make = _onnx().helper.make_node
        self.nodes.append(make(operator, list(inputs), [output], name=name, domain=domain, **attributes))
        return output

    def constant(self, value: Any, kind: Any = np.float64) -> str:
        """Add a constant; its name."""
        name = f"{self._inner}/c{len(self.constants)}"
        self.constants.append(_onnx().numpy_helper.from_array(np.asarray(value, dtype=kind), name))
        return name

    def added_to(self, model: "ModelProto", score: str) -> "ModelProto":
        """A model, to which the nodes, inputs and outputs of the rule are added."""
        types = _onnx().TensorProto
        graph = model.graph
        known = {tensor.name for tensor in graph.input}
        raw = self.node("Reshape", score, self.constant([-1], np.int64))
        shape = self.node("Shape", raw)
        code = self._code(shape)
        chance = self._chance(self.node("Cast", raw, to=types.DOUBLE), code)
        new = [_tensor(c.name, c.type) for c in self.columns if c.name not in known]
        graph.output.append(_tensor(self.outputs[0], types.DOUBLE))
        if self.u is not None:
            self._decision(chance, self.node("Reshape", self.u, shape))
            new.append(_tensor(self.u, types.DOUBLE))
            graph.output.append(_tensor(self.outputs[1], types.INT8))
        graph.input.extend(new)
        graph.node.extend(self.nodes)
        graph.initializer.extend(self.constants)
        return model

    def _code(self, shape: str) -> str:
        """Each row's group: its place in the rule, or the number of groups for all others."""
        n = len(self.rule.groups)
        if len(self.columns) == 1:
            return self._place(self.columns[0], list(range(n)), n, shape)
        # Places within each column make one number, in a mixed radix that leaves room for labels of no group.
        radices, whole = [], ""
        for column in self.columns:
            values = list(dict.fromkeys(column.keys))
            place = self._place(column._replace(keys=values), list(range(len(values))), len(values), shape)
            radices.append(len(values) + 1)
            if whole:
                whole = self.node("Mul", whole, self.constant(radices[-1], np.int64))
                place = self.node("Add", whole, place)
            whole = place
        numbers = [0] * n
        for column, radix in zip(self.columns, radices, strict=True):
            places = {key: i for i, key in enumerate(dict.fromkeys(column.keys))}
            numbers = [number * radix + places[key] for number, key in zip(numbers, column.keys, strict=True)]
        if math.prod(radices) not in _INT64:  # also numbers of unseen groups must not wrap around
            raise InputError("The groups of this rule have too many columns for an ONNX model.")
        return self.node(
            "LabelEncoder", whole, keys_int64s=numbers, values_int64s=list(range(n)), default_int64=n
        )

    def _place(self, column: _Input, places: list[int], other: int, shape: str) -> str:
        types = _onnx().TensorProto
        labels = self.node("Reshape", column.name, shape)  # fails if there are not as many as scores
        if column.type == types.BOOL:
            labels = self.node("Cast", labels, to=types.INT64)
        keys = "keys_strings" if column.type == types.STRING else "keys_int64s"
        attributes: dict[str, Any] = {keys: column.keys, "values_int64s": places, "default_int64": other}
        return self.node("LabelEncoder", labels, **attributes)

    def _chance(self, score: str, code: str) -> str:
        rule, plan = self.rule, Plan.of(self.rule)
        zero, one, nan = self.constant(0.0), self.constant(1.0), self.constant(np.nan)
        scale = SCALES[rule.scale]
        low, high = (self.constant(end) for end in scale.finite_range)
        if self.rounded and rule.scale != "logit":
            slack = ROUNDING * scale.shown_per_unit
            ends = (("Less", "GreaterOrEqual", low, -slack), ("Greater", "LessOrEqual", high, slack))
            for (outside, near, end, step), value in zip(ends, scale.finite_range, strict=True):
                stray = self.node(
                    "And", self.node(outside, score, end), self.node(near, score, self.constant(value + step))
                )
                score = self.node("Where", stray, end, score)
        sound = self.node("And", self.node("GreaterOrEqual", score, low), self.node("LessOrEqual", score, high))
        score = self.node("Where", sound, score, nan)
        x = self._position(score, one)
        compared = score if plan.on_logits else x
        numbers = [self.node("Gather", self.constant(column), code) for column in plan.numbers.T]
        output = self.outputs[0]
        if rule.ramp_width == 0:
            low, high, at = numbers
            below = self.node("Where", self.node("Less", compared, low), zero, nan)
            reached = self.node("Where", self.node("GreaterOrEqual", compared, low), at, below)
            return self.node("Where", self.node("Greater", compared, high), one, reached, output=output)
        height = self.node("Div", self.node("Sub", x, numbers[0]), self.constant(rule.ramp_width))
        risen = self.node("Where", self.node("GreaterOrEqual", height, one), one, height)
        last = None if plan.own_cutoff is not None else output
        chance = self.node("Where", self.node("LessOrEqual", height, zero), zero, risen, output=last)
        if plan.own_cutoff is None:
            return chance
        yes = self.node("GreaterOrEqual", compared, self.constant(plan.own_cutoff))
        own = self.node("Where", sound, self.node("Where", yes, one, zero), nan)
        other = self.node("Equal", code, self.constant(len(rule.groups), np.int64))
        return self.node("Where", other, own, chance, output=output)

    def _position(self, score: str, one: str) -> str:
        if self.rule.scale == "percent":
            return self.node("Div", score, self.constant(100.0))
        if self.rule.scale != "logit":
            return score
        return self.node("Div", one, self.node("Add", one, self.node("Exp", self.node("Neg", score))))

    def _decision(self, chance: str, u: str) -> None:
        zero, one = self.constant(0.0), self.constant(1.0)
        yes, no, undecided = (self.constant(value, np.int64) for value in (1, 0, _UNDECIDED))
        drawn = self.node("And", self.node("GreaterOrEqual", u, zero), self.node("Less", u, one))
        answer = self.node("Where", self.node("Less", u, chance), yes, no)
        answer = self.node("Where", drawn, answer, undecided)
        answer = self.node("Where", self.node("GreaterOrEqual", chance, one), yes, answer)
        answer = self.node("Where", self.node("LessOrEqual", chance, zero), no, answer)
        answer = self.node("Where", self.node("IsNaN", chance), undecided, answer)
        self.node("Cast", answer, output=self.outputs[1], to=_onnx().TensorProto.INT8)


def _named(rule: Rule, score: Any, group: Any, strata: Any) -> Columns:
    """Names of the inputs: as given, as in the fit, or else score, group and stratum."""
    stratified, first = rule.criterion == "covariance", rule.groups[0]
    outer, inner = first if stratified and isinstance(first, tuple) else (None, first)
    if score is None and (rule.record is None or rule.record.score_column is None):
        score = "score"
    if group is None and rule.group_columns is None:
        group = _numbered("group", inner)
    if stratified and strata is None and rule.strata_columns is None:
        strata = _numbered("stratum", outer)
    return Columns.of(rule, score, group, strata, None)


def _check_distinct(names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise InputError(f"Inputs must have names of their own, got {names}; pass other ones.")


def _numbered(name: str, label: Label) -> list[str]:
    n = len(label) if isinstance(label, tuple) else 1
    return [name] if n == 1 else [f"{name}_{i}" for i in range(1, n + 1)]


def _inputs(rule: Rule, named: Columns, missing: Any) -> list[_Input]:
    """The group columns as tensors: texts, whole numbers or truths, each with the groups' values."""
    return [
        _input(name, labels, missing.get(name) if isinstance(missing, Mapping) else missing)
        for name, labels in named.labels(rule.groups)
    ]


def _input(name: str, labels: list[Any], missing: Any) -> _Input:
    types = _onnx().TensorProto
    kinds = {type(label) for label in labels if label is not None}
    if len(kinds) > 1:
        words = " and ".join({str: "texts", int: "whole numbers", bool: "booleans"}[kind] for kind in kinds)
        raise InputError(
            f"A tensor has one type, but the groups of {name!r} are {words}; fit with labels of one type."
        )
    kind = kinds.pop() if kinds else str
    if None in labels and missing is None:
        raise InputError(
            f"The rule has a group of missing values in {name!r}, and tensors have none: pass `missing`, what "
            "stands for them, and put it in their place."
        )
    if None in labels and kind is bool:
        kind = int
    if missing is not None:
        fits = type(missing) is kind
        if (None in labels and not fits) or (fits and missing in labels):
            what = {str: "a text", int: "a whole number", bool: "a boolean"}[kind]
            raise InputError(f"`missing` must be {what} that is no group of {name!r}, got {missing!r}.")
    keys = [missing if label is None else label if kind is str else operator.index(label) for label in labels]
    outside = [key for key in keys if kind is not str and key not in _INT64]
    if outside:
        raise InputError(f"The group {outside[0]} of {name!r} does not fit in the 64 bits of an ONNX integer.")
    return _Input(name, {str: types.STRING, int: types.INT64, bool: types.BOOL}[kind], keys)


def _names_in(graph: Any) -> set[str]:
    """All names of tensors and nodes."""
    tensors = {name for node in graph.node for name in (*node.input, *node.output, node.name)}
    values = (*graph.input, *graph.output, *graph.initializer)
    return tensors | {value.name for value in values}


def _score_output(model: Any, wanted: str | None) -> Any:
    """The output that holds the scores."""
    types = _onnx().TensorProto
    outputs = {tensor.name: tensor for tensor in model.graph.output}
    floats = (types.FLOAT, types.DOUBLE, types.FLOAT16, types.BFLOAT16)
    able = [t for t in outputs.values() if t.type.tensor_type.elem_type in floats]
    if wanted is not None and wanted not in outputs:
        raise InputError(f"The model has no output {wanted!r}; it has {list(outputs)}.")
    found = outputs[wanted] if wanted is not None else able[0] if len(able) == 1 else None
    if found is not None and found in able:
        return found
    if any(tensor.type.HasField("sequence_type") for tensor in outputs.values()):
        raise InputError(
            "The model returns probabilities as dictionaries; convert it with options={'zipmap': False}."
        )
    if wanted is not None:
        raise InputError(f"The model's output {wanted!r} holds no floating-point numbers, so no scores.")
    raise InputError(
        f"Pass `score`, the name of the output that holds the scores; the model has {list(outputs)}."
    )


def _one_column(output: Any, column: int | None, rule: Rule, part: _Part) -> str:
    """The scores of an output, one per row."""
    shape = output.type.tensor_type.shape
    sizes = [dim.dim_value for dim in shape.dim] if output.type.tensor_type.HasField("shape") else None
    if column is None:
        if sizes is not None and (len(sizes) == 1 or sizes[1:] == [1]):
            return str(output.name)
        if sizes is None or sizes[1:] != [2]:
            what = f"the shape {sizes}" if sizes is not None else "no known shape"
            raise InputError(f"Pass `column`: the output {output.name!r} has {what}, and not one or two columns.")
        if rule.scale == "logit":
            raise InputError(
                f"The output {output.name!r} has two logits per row; end the model with their difference, the "
                "second less the first, or pass `column`."
            )
        column = 1
    if sizes is not None and (len(sizes) != 2 or (sizes[1] and not 0 <= column < sizes[1])):
        raise InputError(f"The output {output.name!r} of shape {sizes} has no column {column}.")
    return part.node("Gather", output.name, part.constant(column, np.int64), axis=1)


def _loaded(path: str) -> Any:
    try:
        return _onnx().load(path)
    except OSError:
        raise
    except Exception:  # of protobuf, in as many kinds as it has versions
        raise InputError(f"{path} is not an ONNX model.") from None


def _tensor(name: str, kind: int) -> Any:
    return _onnx().helper.make_tensor_value_info(name, kind, ["rows"])


def _finished(model: "ModelProto", part: _Part, score: str, path: Any) -> "ModelProto":
    """The model described, checked and, with a path, saved."""
    onnx = _onnx()
    rule = part.rule
    said = {
        "score": f"{score}, on the scale {rule.scale}",
        "group": [column.name for column in part.columns],
        **({"u": f"{part.u}: fairramp.draws(ids, key), in double"} if part.u else {}),
    }
    known = {prop.key for prop in model.metadata_props}
    if "fairramp.rule" in known:
        raise InputError("The model ends in a rule already; append to the classifier itself.")
    for name, value in (
        ("fairramp.rule", rule.fingerprint),
        ("fairramp.version", __version__),
        ("fairramp.inputs", json.dumps(said, ensure_ascii=False)),
        ("fairramp.undecided", f"probability NaN, decision {_UNDECIDED}"),
    ):
        model.metadata_props.add(key=name, value=value)
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        raise FairrampError(f"The model and the rule do not fit together: {error}") from error
    if path is not None:
        write_bytes(Path(path), model.SerializeToString(deterministic=True), "the model")
    return model


def _align(model: Any) -> None:
    """Give a classifier the versions that the rule needs, where they do not change what it computes."""
    onnx = _onnx()
    versions = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    if versions.get("", 0) < _OPSET:
        raise InputError(
            f"The model uses version {versions.get('', 0)} of the ONNX operators; export it with version "
            f"{_OPSET} or later, with skl2onnx by target_opset=17."
        )
    # Of all operators of the domain, LabelEncoder alone means something else in version 1.
    if versions.get(_ML) == 1 and any(node.op_type == "LabelEncoder" for node in model.graph.node):
        raise InputError(f"The model has a LabelEncoder of {_ML} version 1; export it with version 2 or later.")
    versions[_ML] = max(versions.get(_ML, 0), _ML_OPSET)
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(*pair) for pair in versions.items())
    least = onnx.helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True)
    model.ir_version = max(least, model.ir_version)


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise FairrampError("onnx is not installed; install it with: pip install 'fairramp[export]'") from None
    return onnx
