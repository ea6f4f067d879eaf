"""Networks from packages recognize what scikit-learn's and scikit-image's sample photographs show."""

from functools import cache

import numpy as np
import pytest

pytest.importorskip("torch", reason="the vision half needs torch: make test-vision")
pytest.importorskip("skimage", reason="the vision half needs scikit-image: make test-vision")

from PIL import Image
from reproduction.vision import backbones
from reproduction.vision.backbones import PACKAGED, Backbone, load
from skimage import data
from sklearn.datasets import load_sample_image

pytestmark = [
    pytest.mark.vision,
    pytest.mark.filterwarnings("ignore"),  # of torch and Keras
]

#: Classes of ILSVRC2012 that a photograph shows: cats; espresso; buildings in and around a Chinese park.
PHOTOGRAPHS = {
    "cat": (data.chelsea, {281, 282, 285}),
    "espresso": (data.coffee, {967}),
    "palace": (
        lambda: load_sample_image("china.jpg"),
        {437, 442, 449, 483, 497, 580, 663, 668, 698, 832, 975},
    ),
}
PRETRAINED = [backbone for backbone in PACKAGED if backbone.package]


body_of = cache(load)


@cache
def keras_whole(backbone: Backbone) -> object:
    """Return Keras's network with its last layer."""
    return backbones.keras_network(backbone, None, 0)


def classify(backbone: Backbone, photograph: np.ndarray) -> np.ndarray:
    """Return the probabilities of the 1,000 classes."""
    import torch

    small = Image.fromarray(photograph).resize((224, 224), Image.Resampling.BILINEAR)
    body = body_of(backbone)
    x = body.normalized(np.asarray(small)[None])
    with torch.inference_mode():
        if backbone.library == "keras":
            found = keras_whole(backbone)(x.permute(0, 2, 3, 1), training=False)[0]
        elif backbone.library == "torch":
            found = torch.softmax(body.module.classifier(body.pooled(x, False))[0], 0)
        else:
            found = torch.softmax(body.module(x, "Gemm")[0], 0)
    return found.numpy()


@pytest.mark.parametrize("backbone", PRETRAINED, ids=lambda backbone: backbone.name)
def test_network_recognizes_photographs(backbone):
    for shown, (read, classes) in PHOTOGRAPHS.items():
        probabilities = classify(backbone, read())
        assert probabilities.shape == (1000,)
        assert int(probabilities.argmax()) in classes, shown


@pytest.mark.parametrize("backbone", PRETRAINED, ids=lambda backbone: backbone.name)
def test_features_are_those_before_the_last_layer(backbone):
    body = body_of(backbone)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 224, 224, 3), dtype=np.uint8)
    features = body.features(pixels)
    assert features.shape == (2, body.dimension)
    assert features.min() >= 0  # all end in a rectifier
    assert not np.allclose(features[0], features[1])
    whole = sum(value.numel() for value in body.module.state_dict().values())
    last = 1001 * body.dimension
    extra = 0 if backbone.library != "keras" else last
    assert (whole + extra) / 1e6 == pytest.approx(backbone.parameters, rel=0.04, abs=0.06)
