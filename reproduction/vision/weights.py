"""Put the weights of packages into networks.

| package | form | network |
| --- | --- | --- |
| `RESNET50`, `MOBILENET` | tfjs, Keras's names | Keras |
| `MOBILENET_QUARTER` | tfjs of a frozen graph: batch norms are folded into convolutions | Keras |
| `MOBILENET_V2` | HDF5 in the order of Keras's layers | Keras |
| `MOBILENET_V2_TORCH` | state of torchvision's network | `mobilenet_v2`, the same layers |
| `RESNET18` | ONNX | `Graph`, which runs its six kinds of nodes |

Files are read as data: pickles with torch's reader of tensors, which runs no code.
"""

import io
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Weights = Mapping[str, npt.NDArray[np.float32]]
Files = Mapping[str, bytes]
#: Batch norms of ResNet50 in tfjs, and of Keras's and TensorFlow's MobileNet.
EPSILON = 1e-3


def tfjs(files: Files) -> Weights:
    """Return the arrays of a tfjs model by name."""
    found = {}
    for group in json.loads(files["model.json"])["weightsManifest"]:
        content = b"".join(files[path] for path in group["paths"])
        start = 0
        for weight in group["weights"]:
            count = math.prod(weight["shape"])
            array = np.frombuffer(content, np.dtype(weight["dtype"]), count, start)
            found[weight["name"]] = array.reshape(weight["shape"])
            start += array.nbytes
    return found


def fill_resnet50(network: Any, files: Files) -> None:
    """Fill Keras's ResNet50; a network without the last layer has no "predictions"."""
    weights = tfjs(files)
    names = {"conv1_conv": "conv1", "conv1_bn": "bn_conv1", "predictions": "fc1000"}
    for stage, blocks in zip((2, 3, 4, 5), (3, 4, 6, 3), strict=True):
        for block in range(blocks):
            for part, branch in (("0", "1"), ("1", "2a"), ("2", "2b"), ("3", "2c")):
                ours, theirs = f"conv{stage}_block{block + 1}_{part}", f"{stage}{'abcdef'[block]}_branch{branch}"
                names |= {f"{ours}_conv": f"res{theirs}", f"{ours}_bn": f"bn{theirs}"}
    for layer in _with_weights(network):
        is_norm = layer.name.endswith("_bn")
        fields = ("gamma", "beta", "moving_mean", "moving_variance") if is_norm else ("kernel", "bias")
        layer.set_weights([weights[f"{names[layer.name]}/{field}"] for field in fields])
        if is_norm:
            layer.epsilon = EPSILON


def fill_mobilenet(network: Any, files: Files) -> None:
    """Fill Keras's MobileNet from Keras's own names."""
    weights = tfjs(files)
    for layer in _with_weights(network):
        values = []
        for variable in layer.weights:
            name = variable.path.rpartition("/")[2]
            value = weights.get(f"{layer.name}/{name}", weights.get(f"{layer.name}/depthwise_{name}"))
            assert value is not None, f"{layer.name}/{name} is missing"
            values.append(value.reshape(variable.shape))
        layer.set_weights(values)


def fill_folded_mobilenet(network: Any, files: Files) -> None:
    """Fill Keras's MobileNet from a graph with folded batch norms and a background class before the others."""
    weights, norms = tfjs(files), "module_apply_default/MobilenetV1/MobilenetV1"

    def place(layer: str) -> str:
        kind, _, number = layer.removesuffix("_bn").rpartition("_")
        if kind == "":
            return "Conv2d_0/Conv2D"
        return f"Conv2d_{number}_" + ("depthwise/depthwise" if kind == "conv_dw" else "pointwise/Conv2D")

    for layer in _with_weights(network):
        if layer.name == "conv_preds":
            last = "module/MobilenetV1/Logits/Conv2d_1c_1x1"
            layer.set_weights([weights[f"{last}/weights"][..., 1:], weights[f"{last}/biases"][1:]])
        elif layer.name.endswith("_bn"):
            shift = weights[f"{norms}/{place(layer.name)}_bn_offset"]
            ones = np.ones_like(shift)
            layer.set_weights([ones, shift, 0 * ones, ones * np.float32(1 - layer.epsilon)])
        else:
            layer.set_weights([weights[f"{norms}/{place(layer.name)}_weights"]])


def fill_mobilenet_v2(network: Any, files: Files) -> None:
    """Fill Keras's MobileNetV2 from its own file, which has other names in the same order."""
    import h5py

    with h5py.File(io.BytesIO(next(iter(files.values())))) as stored:
        parts = [stored[name] for name in stored.attrs["layer_names"]]
        values = [[part[name][()] for name in part.attrs["weight_names"]] for part in parts]
    for layer, weights in zip(_with_weights(network), filter(len, values), strict=False):
        layer.set_weights(weights)  # which checks the shapes


def _with_weights(network: Any) -> list[Any]:
    return [layer for layer in network.layers if layer.weights]


def mobilenet_v2(files: Files | None) -> Any:
    """Return torchvision's MobileNetV2 with its own names of layers."""
    import torch
    from torch import nn

    def block(before: int, after: int, size: int = 1, stride: int = 1, groups: int = 1) -> Any:
        convolution = nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False)
        return nn.Sequential(convolution, nn.BatchNorm2d(after), nn.ReLU6())

    class Residual(nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self, before: int, after: int, stride: int, times: int) -> None:
            super().__init__()
            inner = before * times
            layers = [] if times == 1 else [block(before, inner)]
            layers += [block(inner, inner, 3, stride, inner), nn.Conv2d(inner, after, 1, bias=False)]
            self.conv = nn.Sequential(*layers, nn.BatchNorm2d(after))
            self.adds = stride == 1 and before == after

        def forward(self, x: Any) -> Any:
            return x + self.conv(x) if self.adds else self.conv(x)

    layers, before = [block(3, 32, 3, 2)], 32
    for times, after, count, stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for number in range(count):
            layers.append(Residual(before, after, stride if number == 0 else 1, times))
            before = after
    network = nn.Module()
    network.features = nn.Sequential(*layers, block(before, 1280))
    network.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))
    if files is not None:
        network.load_state_dict(torch.load(io.BytesIO(next(iter(files.values()))), weights_only=True))
    return network.eval().to(memory_format=torch.channels_last)


def graph(files: Files) -> Any:
    """Return a network that runs the nodes of an ONNX file; its result is the named value."""
    import onnx
    import torch
    from onnx import helper, numpy_helper
    from torch import nn
    from torch.nn import functional

    model = onnx.load_from_string(next(iter(files.values())))

    class Graph(nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.places = {}
            for number, constant in enumerate(model.graph.initializer):
                self.places[constant.name] = f"w{number}"
                value = torch.from_numpy(numpy_helper.to_array(constant).copy())
                self.register_buffer(f"w{number}", value)
            self.nodes = [
                (node.op_type, list(node.input), node.output[0], _attributes(node)) for node in model.graph.node
            ]
            self.outputs = {kind: output for kind, _, output, _ in self.nodes}  # the last one of each kind

        def forward(self, x: Any, wanted: str) -> Any:
            """Return the output of the last node of a kind."""
            inputs = [one.name for one in model.graph.input if one.name not in self.places]
            values = {inputs[0]: x}
            for kind, names, output, options in self.nodes:
                given = [getattr(self, self.places[n]) if n in self.places else values[n] for n in names]
                values[output] = _run(kind, given, options)
                if output == self.outputs[wanted]:
                    break
            return values[self.outputs[wanted]]

    def _attributes(node: Any) -> dict[str, Any]:
        return {one.name: helper.get_attribute_value(one) for one in node.attribute}

    def _run(kind: str, given: list[Any], options: dict[str, Any]) -> Any:
        if kind == "Conv":
            bias = given[2] if len(given) > 2 else None
            pads, strides = options["pads"][:2], options["strides"]
            return functional.conv2d(given[0], given[1], bias, strides, pads)
        if kind == "BatchNormalization":
            scale, shift, mean, variance = given[1:]
            epsilon = options["epsilon"]
            return functional.batch_norm(given[0], mean, variance, scale, shift, eps=epsilon)
        if kind == "MaxPool":
            return functional.max_pool2d(
                given[0], options["kernel_shape"], options["strides"], options["pads"][:2]
            )
        if kind == "Gemm":
            return given[0] @ given[1].T + given[2]
        simple = {
            "Relu": lambda: functional.relu(given[0]),
            "Add": lambda: given[0] + given[1],
            "GlobalAveragePool": lambda: given[0].mean((2, 3), keepdim=True),
            "Reshape": lambda: given[0].flatten(1),
            "Flatten": lambda: given[0].flatten(1),
        }
        return simple[kind]()

    return Graph().eval()
