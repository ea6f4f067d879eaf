"""A classifier's own ONNX model, read so that a rule can be joined behind it.

Which of its outputs holds the scores, and which column of that; what names are taken; which versions of the
operators it needs. What is not clear is asked for, and never guessed.
"""

from typing import Any

import numpy as np

from fairramp.deploy.onnx_nodes import ML, ML_OPSET, OPSET, RuleNodes, load_onnx
from fairramp.errors import InputError
from fairramp.rule.rule import Rule


def score_output(model: Any, wanted: str | None) -> Any:
    """The output that holds the scores."""
    types = load_onnx().TensorProto
    outputs = {tensor.name: tensor for tensor in model.graph.output}
    floats = (types.FLOAT, types.DOUBLE, types.FLOAT16, types.BFLOAT16)
    able = [t for t in outputs.values() if t.type.tensor_type.elem_type in floats]
    if wanted is not None and wanted not in outputs:
        raise InputError(
            "The model has no output {wanted!r}; it has {outputs}", wanted=wanted, outputs=list(outputs)
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
            "The model's output {wanted!r} holds no floating-point numbers, so no scores", wanted=wanted
        )
    raise InputError(
        "Pass {score}, the name of the output that holds the scores; the model has {outputs}",
        outputs=list(outputs),
    )


def one_column(output: Any, column: int | None, rule: Rule, part: RuleNodes) -> str:
    """The scores of an output, one per row."""
    shape = output.type.tensor_type.shape
    sizes = [dim.dim_value for dim in shape.dim] if output.type.tensor_type.HasField("shape") else None
    if column is None:
        if sizes is not None and (len(sizes) == 1 or sizes[1:] == [1]):
            return str(output.name)
        if sizes is None or sizes[1:] != [2]:
            raise InputError(
                "Pass {column}: the output {name!r} has {what}, and not one or two columns",
                name=output.name,
                what=f"the shape {sizes}" if sizes is not None else "no known shape",
            )
        if rule.scale == "logit":
            raise InputError(
                "The output {name!r} has two logits per row",
                remedy="end the model with their difference, the second less the first, or pass {column}",
                name=output.name,
            )
        column = 1
    if sizes is not None and (len(sizes) != 2 or (sizes[1] and not 0 <= column < sizes[1])):
        raise InputError(
            "The output {name!r} of shape {sizes} has no column {place}",
            name=output.name,
            sizes=sizes,
            place=column,
        )
    return part.node("Gather", output.name, part.constant(np.int64(column)), axis=1)


def loaded(path: str) -> Any:
    """A model from its file."""
    try:
        return load_onnx().load(path)
    except OSError:
        raise
    except Exception:  # of protobuf, in as many kinds as it has versions
        raise InputError("{path} is not an ONNX model", path=path) from None


def names_in(graph: Any) -> set[str]:
    """All names of tensors and nodes."""
    tensors = {name for node in graph.node for name in (*node.input, *node.output, node.name)}
    return tensors | {value.name for value in (*graph.input, *graph.output, *graph.initializer)}


def align(model: Any) -> None:
    """Give a classifier the versions that the rule needs, where they do not change what it computes."""
    onnx = load_onnx()
    versions = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    if versions.get("", 0) < OPSET:
        raise InputError(
            "The model uses version {version} of the ONNX operators",
            remedy="export it with version {oldest} or later, with skl2onnx by target_opset=17",
            version=versions.get("", 0),
            oldest=OPSET,
        )
    # Of all operators of the domain, LabelEncoder alone means something else in version 1.
    if versions.get(ML) == 1 and any(node.op_type == "LabelEncoder" for node in model.graph.node):
        raise InputError(
            "The model has a LabelEncoder of {domain} version 1",
            remedy="export it with version 2 or later",
            domain=ML,
        )
    versions[ML] = max(versions.get(ML, 0), ML_OPSET)
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(*pair) for pair in versions.items())
    model.ir_version = max(
        onnx.helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True), model.ir_version
    )
