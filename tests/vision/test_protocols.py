"""Both protocols end to end on tiny datasets in the official formats, with randomly initialized networks."""

import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="the vision half needs torch: make test-vision")
pytest.importorskip("PIL", reason="the vision half needs pillow: make test-vision")

import tiny
from reproduction.vision import backbones, celeba, coco, plan, runner
from reproduction.vision.backbones import REGISTRY, SMALL, UnavailableError
from reproduction.vision.features import Cache, Sizes, cut, pixels, read_features, read_pixels
from reproduction.vision.network import Training, train_network
from reproduction.vision.runner import METHODS, Settings, Workshop, run_all
from reproduction.vision.store import Store

pytestmark = [
    pytest.mark.vision,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # from Keras and torch
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

SIZES = Sizes(view=32, resized=36)
SETTINGS = Settings(
    views=2,
    sizes=SIZES,
    training=Training(pixels=32, patience=1, most_epochs=2),
    small=Training(pixels=32, patience=2, most_epochs=6),
)
#: MobileNetV2 with random weights.
MOBILE = REGISTRY["MobileNetV2/random"]


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    """New processes do not see this, but they need the name only for whole networks."""
    monkeypatch.setitem(REGISTRY, MOBILE.name, MOBILE)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """CelebA and COCO in which images that are Attractive, or show a car, are bright."""
    root = tmp_path_factory.mktemp("data")
    values = tiny.attributes(240)
    attractive = values[:, tiny.ATTRIBUTES.index("Attractive")] == 1
    tiny.celeba(root / "celeba", 240, lambda i: tiny.jpeg(i, attractive[i]))
    (root / "celeba/img_align_celeba/000005.jpg").write_bytes(b"no picture at all")
    (root / "celeba/img_align_celeba/000009.jpg").unlink()
    rng = np.random.default_rng(5)
    captions = [[f"a {rng.choice(['woman', 'man'])} outside"] for _ in range(120)]
    objects = [["car"] if i % 2 else ["chair"] if i % 3 else ["handbag"] for i in range(120)]
    for i in range(0, 120, 7):
        objects[i] = [*objects[i], "skateboard", "tennis racket"]
    tiny.coco(root / "coco", captions, objects, picture=lambda i: tiny.jpeg(i, i % 2 == 1))
    return root


def workshop(folders, cache, settings=SETTINGS):
    sources = {
        "celeba": lambda: celeba.read_celeba(folders / "celeba"),
        "coco": lambda: coco.read_coco(folders / "coco"),
    }
    return Workshop(sources, cache, settings)


HEADS = [
    plan.Run("head", MOBILE.name, data, task, fraction, seed)
    for data, task in (("celeba", "Attractive"), ("celeba", "Smiling"), ("coco", "car"))
    for fraction in (0.5, 1.0)
    for seed in (0, 1)
]
WHOLE = [
    plan.Run("whole", SMALL.name, "celeba", "Attractive", 1.0, 0),
    plan.Run("whole", "MN/S", "celeba", "Attractive", 1.0, 0),
    plan.Run("whole", "DenseNet121", "celeba", "Attractive", 1.0, 0),  # its weights are not here
    plan.Run("head", "L-R50x1/1", "celeba", "Attractive", 1.0, 0),  # these exist nowhere
]


def test_interrupted_and_resumed_runs_give_the_same_store(folders, tmp_path, capfd):
    runs = [*HEADS, *WHOLE]
    path = tmp_path / "whole/results.jsonl"
    added = run_all(runs, workshop(folders, tmp_path / "cache"), Store(path), jobs=2)
    said = capfd.readouterr().out
    assert added == len(HEADS) + 2
    assert re.search(r"skipped: DenseNet121: there is no file densenet121_\w+_notop\.h5", said)
    assert "skipped: L-R50x1/1: its weights were never published" in said
    assert "celeba: 240 images, 1 missing" in said
    assert "celeba: 2 images cannot be read and are excluded: 000005.jpg, 000009.jpg" in said
    assert (tmp_path / "cache/unreadable-celeba.txt").read_text() == "000005.jpg\n000009.jpg\n"

    for entry in Store(path).entries():
        rows = {name: sum(part.values()) for name, part in entry.result["rows"].items()}
        used = 118 if entry.run.data == "celeba" else 60
        assert rows["train"] in (used, round(used / 2), used - 1, used - 2)
        assert set(entry.result["methods"]) == set(METHODS)
        assert entry.result["methods"]["rto"]["gap"] <= 1
    bright = [
        e.result["methods"]["original"]["accuracy"]
        for e in Store(path).entries()
        if e.run.task in ("Attractive", "car")
    ]
    assert np.mean(bright[:8]) > 0.9  # heads can tell bright images even through random weights

    # Run again, interrupted in the middle of a line.
    again = tmp_path / "again/results.jsonl"
    for stop in (7, len(runs)):
        run_all(runs[:stop], workshop(folders, tmp_path / "cache"), Store(again), jobs=1)
        if stop == 7:
            content = again.read_bytes()
            again.write_bytes(content[: len(content) - 100])
    assert again.read_bytes() == path.read_bytes()
    assert run_all(runs, workshop(folders, tmp_path / "cache"), Store(again), jobs=1) == 0


def test_features_resume_where_they_stopped(folders, tmp_path):
    images = celeba.read_celeba(folders / "celeba")
    body = backbones.load(SMALL)
    whole = Cache(tmp_path / "a", SIZES).features(images, "images", body, "weights", 1)
    expected, readable = read_features(whole)
    assert (~readable).sum() == 2

    class StopError(Exception):
        pass

    def stop(done, total):
        raise StopError

    cache = Cache(tmp_path / "b", SIZES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reproduction.vision.features.NOTE_EVERY", 4)
        with pytest.raises(StopError):
            cache.features(images, "images", body, "weights", 1, stop)
    assert not cache.path("images", "weights", 1).exists()
    counted = []
    calls = replace(body)
    object.__setattr__(calls, "pooled", lambda x, training: counted.append(len(x)) or body.pooled(x, training))
    found, _ = read_features(cache.features(images, "images", calls, "weights", 1))
    np.testing.assert_array_equal(found, expected)
    assert sum(counted) == 240 - 4 * 16


def test_views_repeat_and_differ_and_the_first_is_the_whole_image(folders):
    images = celeba.read_celeba(folders / "celeba")
    picture = images.pictures[0]
    first, again, other = (pixels(picture, view, SIZES) for view in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert first.shape == other.shape == (32, 32, 3)
    assert (first != other).any()
    np.testing.assert_array_equal(pixels(picture, 0, SIZES), pixels(picture, 0, Sizes(32, 999)))
    assert pixels(images.pictures[4], 0, SIZES) is None
    assert pixels(images.pictures[8], 0, SIZES) is None


def test_crops_reach_every_position_and_half_are_mirrored():
    image = np.arange(36 * 36 * 3, dtype=np.int64).reshape(36, 36, 3)
    rng = np.random.default_rng(0)
    corners, mirrored = set(), 0
    for _ in range(400):
        found = cut(image, 32, rng)
        is_mirrored = found[0, 0, 0] > found[0, 1, 0]
        mirrored += is_mirrored
        corners.add(int(found[0, -1 if is_mirrored else 0, 0]))
    assert len(corners) == 25
    assert 150 < mirrored < 250


def test_decoded_images_round_trip(folders, tmp_path):
    images = celeba.read_celeba(folders / "celeba")
    found, readable = read_pixels(Cache(tmp_path, SIZES).pixels(images, "images"))
    assert found.shape == (240, 32, 32, 3)
    assert np.flatnonzero(~readable).tolist() == [4, 8]
    np.testing.assert_array_equal(found[7], pixels(images.pictures[7], 0, SIZES))


@pytest.mark.parametrize(
    "name", ["R50/S", "MN/S", "DenseNet121", "EfficientNet-Lite0", "EfficientNet-Lite0/random"]
)
def test_networks_load_reproducibly_with_the_stated_size(name):
    entry = REGISTRY[name]
    if name == "DenseNet121":
        entry = replace(entry, pretraining=backbones.NOTHING)
    try:
        body, again = backbones.load(entry), backbones.load(entry)
    except UnavailableError as reason:
        pytest.skip(f"{name}: {reason}")
    assert body.fingerprint() == again.fingerprint()
    batch = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), dtype=np.uint8)
    features = body.features(batch)
    assert features.shape == (2, body.dimension)
    assert np.isfinite(features).all()
    size = sum(part.numel() for part in body.module.parameters()) / 1e6
    head = body.dimension * 1000 / 1e6
    assert size + head == pytest.approx(entry.parameters, rel=0.05)
    if entry.library == "lite":
        # Features are of the order of 1, and single precision rounds in each of many layers.
        np.testing.assert_allclose(backbones.frozen(again).features(batch), features, rtol=1e-3, atol=1e-5)


def test_networks_that_cannot_load_give_a_reason():
    # NASNetMobile rejects Keras's torch backend, and timm needs a matching torchvision.
    for name, entry in REGISTRY.items():
        if name in ("NASNetMobile", "M-R50x1/1"):
            with pytest.raises(UnavailableError) as caught:
                backbones.load(replace(entry, pretraining=backbones.NOTHING, file=None))
            assert len(str(caught.value)) > 10


def test_whole_network_learns_and_stops_when_validation_converges():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 300)
    images = (rng.integers(0, 100, (300, 16, 16, 3)) + 100 * label[:, None, None, None]).astype(np.uint8)
    rows = {"train": np.arange(200), "validation": np.arange(200, 250), "test": np.arange(250, 300)}
    training = Training(pixels=16, patience=3, most_epochs=40)
    first, again = (
        train_network(backbones.load(SMALL, seed=1), images, label, rows, 0, training) for _ in range(2)
    )
    assert ((first.scores["test"] > 0.5) == label[250:]).mean() == 1
    assert first.epochs == first.best_epoch + 3
    np.testing.assert_array_equal(first.scores["test"], again.scores["test"])


def test_figure_2_has_a_ramp_of_gamma_0_1_at_the_base_rate(folders, tmp_path):
    job = workshop(folders, tmp_path).job(WHOLE[0])
    found = runner.work(job)["densities"]
    assert found["ramp_width"] == 0.05
    assert {sex: sum(bars) for sex, bars in found["bars"].items()} == runner.work(job)["rows"]["test"]
    for probabilities in found["hardt"].values():
        assert 0 <= probabilities[0] <= probabilities[1] <= 1
