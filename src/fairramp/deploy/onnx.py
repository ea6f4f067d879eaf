"""A rule as an ONNX graph, alone or appended to a classifier's graph.

    score, group [, stratum]  →  probability        clip((x − foot_k) / width_k, 0, 1), in double precision
    u                         →  decision           1 if u < probability else 0;  −1: undecided

Tensors have no nulls and a graph cannot raise errors, so rows that `Rule.probabilities` rejects get the
probability NaN and the decision −1: rows whose score is NaN, infinite or out of range, and rows of an unseen
group under the policy "error". A row that needs a draw also gets −1 if its `u` is not in [0, 1).

A rule for several classes has one column per class in `score` and `probability`, and its decision is the position
of a class in `rule.classes`.

A rule that uses group probabilities has one input `group_probability` of shape (rows, K) instead of groups, with
one column per group in the order of the rule; invalid probabilities get NaN and −1.

`onnx_nodes` makes the nodes. Three things are read from a classifier: which column of which output holds the
scores, which names are taken, and which operator versions it uses. If any of these is ambiguous, an error says
what to pass; nothing is guessed.
"""

import json
import os
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairramp._version import __version__
from fairramp.core.checks import check_option
from fairramp.core.labels import label_parts, label_text
from fairramp.data.columns import Columns, column_name
from fairramp.data.files import write_bytes
from fairramp.deploy.class_onnx import ClassNodes
from fairramp.deploy.onnx_nodes import (
    ML,
    ML_OPSET,
    OPSET,
    UNDECIDED,
    Nodes,
    RuleNodes,
    inputs_of,
    load_onnx,
    tensor_info,
)
from fairramp.deploy.plan import labels_by_column
from fairramp.errors import FairrampError, InputError
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["append_to", "labels_by_input", "to_onnx"]


def to_onnx(
    rule: Rule | ClassRule,
    path: str | os.PathLike[str] | None = None,
    *,
    decisions: bool = False,
    score: str | None = None,
    group: str | Sequence[str] | None = None,
    strata: str | Sequence[str] | None = None,
    group_probability: str | None = None,
    score_type: str = "float64",
    missing: Any = None,
    prefix: str = "",
) -> "ModelProto":
    """Make an ONNX model from a rule.

    Parameters
    ----------
    rule : Rule or ClassRule
        The rule to export.
    path : str or path, optional
        File to save the model to. If saving fails, no partial file is left.
    decisions : bool, default False
        Whether to add an input `u`, float64 numbers from `fairramp.draws`, and an output `decision`, int8: 1, 0,
        or −1 for an undecided row. For a rule for several classes, the decision is int64: the position of the
        class in `rule.classes`.
    score, group, strata : str or list of str, optional
        Names of the inputs. By default the column names of the fit, or score, group and stratum if it had none.
        A rule for several classes has one input `score` with one column per class, in the order of
        `rule.classes`.
    group_probability : str, default "group_probability"
        For a rule that uses group probabilities, name of the input that holds them: float64, one column per group
        in the order of `rule.groups`, which the metadata lists.
    score_type : {"float64", "float32"}
        Type of the score input; all arithmetic is in double precision.
    missing : str, int or dict of those by input, optional
        Value that stands for a missing group, because tensors have no nulls. Required if the fit had a group of
        missing values.
    prefix : str, default ""
        Prefix of the names `u`, `probability` and `decision`.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> from fairramp import Ramp, Rule
    >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    >>> model = to_onnx(rule, decisions=True)
    >>> [tensor.name for tensor in model.graph.input], [tensor.name for tensor in model.graph.output]
    (['score', 'group', 'u'], ['probability', 'decision'])
    """
    onnx = load_onnx()
    types = {"float64": onnx.TensorProto.DOUBLE, "float32": onnx.TensorProto.FLOAT}
    check_option("score_type", score_type, types)
    named, shares = _named(rule, score, group, strata), _shares(rule, group_probability)
    columns, name = inputs_of(rule, named, missing), str(named.score)
    _check_distinct([name, *(column.name for column in columns), *([shares] if shares else [])])
    part = _nodes(rule)(rule, columns, decisions, prefix, {name}, shares=shares)
    versions = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid(ML, ML_OPSET)]
    model = onnx.helper.make_model(
        onnx.helper.make_graph([], "fairramp", [tensor_info(name, types[score_type], *part.widths)], []),
        producer_name="fairramp",
        producer_version=__version__,
        opset_imports=versions,
        ir_version=onnx.helper.find_min_ir_version_for(versions),
    )
    part.add_to(model, name)
    return _finished(model, part, name, path)


def append_to(
    model: Any,
    rule: Rule | ClassRule,
    path: str | os.PathLike[str] | None = None,
    *,
    decisions: bool = False,
    score: str | None = None,
    column: int | None = None,
    group: str | Sequence[str] | None = None,
    strata: str | Sequence[str] | None = None,
    group_probability: str | None = None,
    missing: Any = None,
    prefix: str = "",
) -> "ModelProto":
    """Append a rule to a classifier, to get one model that takes features and groups and decides.

    Scores that rounding put out of range by at most 1e-6 (1e-4 in percent) are moved to the end of the range. The
    scores of several classes may differ from 1 by at most 1e-4 in sum, because many classifiers add them up in
    single precision.

    The classifier's own inputs and outputs are kept. An input of the classifier with the name and type of a group
    column is used for both.

    Parameters
    ----------
    model : onnx.ModelProto or path
        The classifier, which is not changed. Models from skl2onnx need ``options={"zipmap": False}``.
    rule : Rule or ClassRule
        A rule fitted to scores of this classifier.
    path : str or path, optional
        File to save the joined model to. If saving fails, no partial file is left.
    decisions : bool, default False
        As in `to_onnx`.
    score : str, optional
        Name of the output that holds the scores; required if there are several candidates.
    column : int, optional
        Column of that output. By default the second if there are two. Not for a rule for several classes, which
        uses all columns, in the order of `rule.classes`.
    group, strata, group_probability, missing, prefix
        As in `to_onnx`.

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
    >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    >>> joined = append_to(helper.make_model(graph), rule)
    >>> [tensor.name for tensor in joined.graph.input], [tensor.name for tensor in joined.graph.output]
    (['features', 'group'], ['chance', 'probability'])
    """
    onnx = load_onnx()
    joined = deepcopy(model) if isinstance(model, onnx.ModelProto) else _loaded(os.fspath(model))
    found = _score_output(joined, score)
    _align(joined)
    inputs = {tensor.name: tensor for tensor in joined.graph.input}
    columns, taken = inputs_of(rule, _named(rule, found.name, group, strata), missing), _names_in(joined.graph)
    _check_distinct([column_in.name for column_in in columns])
    shares = _shares(rule, group_probability)
    if shares in taken:
        raise InputError(
            "The model already uses the name {name!r}",
            remedy="pass another name as {group_probability}",
            name=shares,
        )
    for name, kind, _ in columns:
        if name in taken and name not in inputs:
            raise InputError(
                "The model already uses the name {name!r}",
                remedy="pass another name as {group} or {strata}",
                name=name,
            )
        if name in inputs and inputs[name].type.tensor_type.elem_type != kind:
            raise InputError(
                "The type of the model's input {name!r} is not that of the rule's groups",
                remedy="pass another name as {group} to add a separate input",
                name=name,
            )
    part = _nodes(rule)(rule, columns, decisions, prefix, taken, rounded=True, shares=shares)
    part.add_to(joined, part.scores_from(found, column))
    return _finished(joined, part, f"output {found.name} of the classifier", path)


def _nodes(rule: Rule | ClassRule) -> type[Nodes]:
    return RuleNodes if isinstance(rule, Rule) else ClassNodes


def labels_by_input(rule: Rule | ClassRule, group: Any = None, strata: Any = None) -> dict[str, list[Any]]:
    """Return the values of the groups in each group input, strata first.

    Examples
    --------
    >>> from fairramp import Ramp, Rule
    >>> rule = Rule((("f", 1), (None, 2)), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    >>> labels_by_input(rule, group=["sex", "unit"])
    {'sex': ['f', None], 'unit': [1, 2]}
    """
    pairs = labels_by_column(rule, _named(rule, "", group, strata))
    _check_distinct([name for name, _ in pairs])
    return dict(pairs)


def _named(rule: Rule | ClassRule, score: Any, group: Any, strata: Any) -> Columns:
    """Names of the inputs: as given, as in the fit, or score, group and stratum."""
    if rule.membership == "probabilities":
        if group is not None:
            raise InputError("This rule does not use {group} but group probabilities; remove it")
        return Columns("score").given(rule.columns.score).given(score)
    first = rule.groups[0]
    if isinstance(rule, Rule) and rule.mixes:
        first = tuple(name for name, _ in rule.attributes)
    outer, inner = first if rule.stratified and isinstance(first, tuple) else (None, first)
    plain = Columns("score", _numbered("group", inner), _numbered("stratum", outer) if rule.stratified else None)
    known = rule.columns
    named = plain.given(known.score, known.groups, known.strata).given(score, group, strata)
    return rule.reading_groups(named, None, None)


def _shares(rule: Rule | ClassRule, name: str | None) -> str | None:
    """Name of the input with the group probabilities, if the rule uses them."""
    if rule.membership == "probabilities":
        return "group_probability" if name is None else column_name("group_probability", name)
    if name is not None:
        raise InputError("This rule uses {group} and no {group_probability}; remove it")
    return None


def _check_distinct(names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise InputError("Inputs must have different names, got {names}", names=names)


def _numbered(name: str, label: Any) -> tuple[str, ...]:
    n = len(label_parts(label))
    return (name,) if n == 1 else tuple(f"{name}_{i}" for i in range(1, n + 1))


def _finished(model: "ModelProto", part: Nodes, score: str, path: Any) -> "ModelProto":
    """Add metadata to the model, check it and, with a path, save it."""
    onnx = load_onnx()
    rule = part.rule
    said = {
        **part.described(score),
        **(
            {"group_probability": part.shares, "groups": [label_text(label) for label in rule.groups]}
            if part.shares
            else {"group": [column.name for column in part.columns]}
        ),
        **({"u": f"{part.u}: fairramp.draws(ids, key), float64"} if part.u else {}),
    }
    if any(prop.key == "fairramp.rule" for prop in model.metadata_props):
        raise InputError("The model already contains a rule", remedy="append to the classifier itself")
    about = {
        "fairramp.rule": rule.fingerprint,
        "fairramp.version": __version__,
        "fairramp.inputs": json.dumps(said, ensure_ascii=False),
        "fairramp.undecided": f"probability NaN, decision {UNDECIDED}",
    }
    onnx.helper.set_model_props(model, {prop.key: prop.value for prop in model.metadata_props} | about)
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        raise FairrampError(
            "The model with the rule is not a valid ONNX model: {error}", error=str(error)
        ) from error
    if path is not None:
        write_bytes(Path(path), model.SerializeToString(deterministic=True), "the model")
    return model


def _score_output(model: Any, wanted: str | None) -> Any:
    """The output that holds the scores."""
    types = load_onnx().TensorProto
    outputs = {tensor.name: tensor for tensor in model.graph.output}
    floats = (types.FLOAT, types.DOUBLE, types.FLOAT16, types.BFLOAT16)
    able = [t for t in outputs.values() if t.type.tensor_type.elem_type in floats]
    if wanted is not None and wanted not in outputs:
        raise InputError(
            "The model has no output {wanted!r}; its outputs are {outputs}", wanted=wanted, outputs=list(outputs)
        )
    found = [tensor for tensor in able if wanted in (None, tensor.name)]
    if len(found) == 1:
        return found[0]
    if any(tensor.type.HasField("sequence_type") for tensor in outputs.values()):
        raise InputError(
            "The model returns probabilities as dictionaries",
            remedy="convert it with options={{'zipmap': False}}",
        )
    if wanted is not None:
        raise InputError(
            "The model's output {wanted!r} is not floating-point, so it cannot hold scores", wanted=wanted
        )
    raise InputError(
        "Pass {score}, the name of the output that holds the scores; the model's outputs are {outputs}",
        outputs=list(outputs),
    )


def _loaded(path: str) -> Any:
    """A model from its file."""
    try:
        return load_onnx().load(path)
    except OSError:
        raise
    except Exception:  # protobuf raises different errors in different versions
        raise InputError("{path} is not an ONNX model", path=path) from None


def _names_in(graph: Any) -> set[str]:
    """All names of tensors and nodes."""
    tensors = {name for node in graph.node for name in (*node.input, *node.output, node.name)}
    return tensors | {value.name for value in (*graph.input, *graph.output, *graph.initializer)}


def _align(model: Any) -> None:
    """Raise the operator versions of a classifier to those the rule needs, without changing what it computes."""
    onnx = load_onnx()
    versions = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    if versions.get("", 0) < OPSET:
        raise InputError(
            "The model uses ONNX opset {version}",
            remedy="export it with opset {oldest} or later (skl2onnx: target_opset=17)",
            version=versions.get("", 0),
            oldest=OPSET,
        )
    # LabelEncoder is the only operator of this domain that changed its meaning after version 1.
    if versions.get(ML) == 1 and any(node.op_type == "LabelEncoder" for node in model.graph.node):
        raise InputError(
            "The model has a LabelEncoder from {domain} version 1",
            remedy="export it with {domain} version 2 or later",
            domain=ML,
        )
    versions[ML] = max(versions.get(ML, 0), ML_OPSET)
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(*pair) for pair in versions.items())
    model.ir_version = max(
        onnx.helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True), model.ir_version
    )
