"""Readers of CelebA, COCO and the subset: what they read, and errors for missing or damaged files."""

import json
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
import tiny
from reproduction.vision import celeba, coco
from reproduction.vision.data import FEMALE, MALE, SPLITS, UNKNOWN, fraction_of

from fairramp.errors import InputError

REAL_CAPTIONS = Path(__file__).resolve().parents[3] / "shared/data/coco/captions_val2017.json"
REAL_SUBSET = Path(__file__).resolve().parents[3] / "shared/data/celeba6000"


def column(values, name):
    return (values[:, tiny.ATTRIBUTES.index(name)] == 1).astype(int)


def test_celeba_is_read_as_published(tmp_path):
    values = tiny.celeba(tmp_path)
    images = celeba.read_celeba(tmp_path)
    assert [picture.name for picture in images.pictures[:2]] == ["000001.jpg", "000002.jpg"]
    np.testing.assert_array_equal(images.sex == MALE, column(values, "Male") == 1)
    assert tuple(images.labels) == celeba.TASKS
    for task in celeba.TASKS:
        np.testing.assert_array_equal(images.labels[task], column(values, task))
    np.testing.assert_array_equal(images.held_out, np.arange(60) % 4 >= 2)


def test_official_training_images_train_and_the_rest_is_split_in_three(tmp_path):
    tiny.celeba(tmp_path)
    images = celeba.read_celeba(tmp_path)
    parts = images.split("Young", seed=3)
    assert not images.held_out[parts["train"]].any()
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(60))
    assert [len(parts[name]) for name in SPLITS] == [10, 10, 10]
    again = images.split("Young", seed=3)
    assert all((parts[name] == again[name]).all() for name in parts)
    assert (parts["test"] != images.split("Young", seed=4)["test"]).any()


def test_smaller_fractions_are_subsets_of_larger_ones(tmp_path):
    tiny.celeba(tmp_path)
    train = celeba.read_celeba(tmp_path).split("Young", seed=0)["train"]
    parts = [set(fraction_of(train, fraction).tolist()) for fraction in (0.1, 0.2, 0.5, 1.0)]
    assert [len(part) for part in parts] == [3, 6, 15, 30]
    assert parts[0] < parts[1] < parts[2] < parts[3]


@pytest.mark.parametrize("name", ["list_attr_celeba.txt", "list_eval_partition.txt"])
def test_missing_list_raises_and_is_named(tmp_path, name):
    tiny.celeba(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=f"missing: no file `{re.escape(str(tmp_path / name))}`"):
        celeba.read_celeba(tmp_path)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("list_attr_celeba.txt", "60\n", "61\n", "must have 61 rows, got 60"),
        ("list_attr_celeba.txt", "Young", "Old", "no attribute 'Young'"),
        ("list_attr_celeba.txt", "60\n", "sixty\n", "must begin with the number of images"),
        ("list_eval_partition.txt", "000007.jpg 1", "000007.jpg 4", "an image and 0, 1 or 2, got '000007.jpg 4'"),
        ("list_eval_partition.txt", "000007.jpg 1\n", "", "has no image '000007.jpg'"),
    ],
)
def test_damaged_list_raises_and_is_named(tmp_path, name, old, new, message):
    tiny.celeba(tmp_path)
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    with pytest.raises(InputError, match=message) as caught:
        celeba.read_celeba(tmp_path)
    assert str(tmp_path / name) in str(caught.value)


def test_truncated_row_and_unexpected_value_raise(tmp_path):
    tiny.celeba(tmp_path)
    path = tmp_path / "list_attr_celeba.txt"
    whole = path.read_text()
    path.write_text(whole[:-10])
    with pytest.raises(InputError, match=r"Row 60 of .* must have 41 values, got"):
        celeba.read_celeba(tmp_path)
    lines = whole.splitlines()
    lines[5] = lines[5].replace("1", "2")
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match="must be 1 or −1, got"):
        celeba.read_celeba(tmp_path)


def test_missing_images_are_counted_and_none_at_all_raises(tmp_path):
    tiny.celeba(tmp_path)
    images = sorted((tmp_path / "img_align_celeba").iterdir())
    for path in images[:3]:
        path.unlink()
    assert celeba.read_celeba(tmp_path).facts == {"images": 60, "missing": 3}
    for path in images[3:]:
        path.unlink()
    with pytest.raises(InputError, match="images are missing: none in"):
        celeba.read_celeba(tmp_path)


# The subset


def test_subset_takes_attributes_only_from_rows_that_agree(tmp_path):
    values = tiny.subset(tmp_path, n=12, n_test=4, drift_at=8)
    images = celeba.read_subset(tmp_path, tmp_path / "list_attr_celeba.txt")
    assert len(images) == 16
    assert images.facts == {
        "images": 16,
        "missing": 0,
        "matched": 8,
        "first_disagreement": 8,
        "matched_behind": 0,
    }
    assert (images.labels["Smiling"] != UNKNOWN).all()
    np.testing.assert_array_equal(images.labels["Young"][:8], column(values, "Young")[:8])
    assert (images.labels["Young"][8:] == UNKNOWN).all()
    np.testing.assert_array_equal(images.sex[:8] == FEMALE, column(values, "Male")[:8] == 0)
    used = np.concatenate(list(images.split("Young", 0).values()))
    assert sorted(used.tolist()) == list(range(8))


def test_images_are_read_from_inside_the_archive(tmp_path):
    tiny.subset(tmp_path, picture=lambda i: f"picture {i}".encode())
    images = celeba.read_subset(tmp_path, tmp_path / "list_attr_celeba.txt")
    assert images.pictures[3].read() == b"picture 3"
    assert images.pictures[12].name == "celeba_test/0.jpg"


def test_missing_or_damaged_archive_raises(tmp_path):
    with pytest.raises(InputError, match=re.escape(f"no file `{tmp_path / 'images.tar'}`")):
        celeba.read_subset(tmp_path)
    (tmp_path / "images.tar").write_bytes(b"nothing of a tar" * 100)
    with pytest.raises(InputError, match=r"images\.tar` is damaged or not a tar archive"):
        celeba.read_subset(tmp_path)
    with tarfile.open(tmp_path / "images.tar", "w"):
        pass
    with pytest.raises(InputError, match=r"has no celeba/labels\.csv"):
        celeba.read_subset(tmp_path)


@pytest.mark.skipif(not REAL_SUBSET.exists(), reason="the 6,000 images are not here")
def test_real_archive_has_6000_images(tmp_path):
    tiny.write_attributes(tmp_path / "list_attr_celeba.txt", tiny.attributes(5000))
    images = celeba.read_subset(REAL_SUBSET, tmp_path / "list_attr_celeba.txt")
    assert (len(images), images.facts["missing"]) == (6000, 0)
    assert (images.sex == FEMALE).mean() == (images.labels["Smiling"] == 1).mean() == 0.5
    assert images.pictures[0].read()[:3] == b"\xff\xd8\xff"  # JPEG signature


# COCO


@pytest.mark.parametrize(
    ("captions", "sex"),
    [
        (["A woman rides."], FEMALE),
        (["A bike.", "The MAN, smiling."], MALE),
        (["A woman.", "A man."], None),
        (["A man and a woman."], None),
        (["Two women and some men."], None),
        (["A snowman and a batwoman by a mantel."], None),
        (["The woman's bag."], FEMALE),
        (["A businessman.", "a man"], MALE),
        (["man"], MALE),
        ([], None),
    ],
)
def test_sex_is_a_whole_word_in_any_caption(captions, sex):
    assert coco.sex_in_captions(captions) == sex


@pytest.mark.skipif(not REAL_CAPTIONS.exists(), reason="COCO's real captions are not here")
def test_real_captions_name_403_women_and_930_men():
    sexes = list(coco.read_sexes(REAL_CAPTIONS).values())
    assert (sexes.count(FEMALE), sexes.count(MALE)) == (403, 930)


CAPTIONS = [["a woman"], ["a man"], ["a dog"], ["a man", "a woman"], ["man"], ["one woman sits"]]
OBJECTS = [["chair"], ["car", "person"], ["chair"], ["chair"], ["tennis racket", "skateboard"], []]


def test_objects_are_found_by_name_and_parts_are_pooled(tmp_path):
    tiny.coco(tmp_path, CAPTIONS, OBJECTS)
    tiny.coco(tmp_path, CAPTIONS[:2], OBJECTS[:2], part="train2017")
    images = coco.read_coco(tmp_path)
    assert images.sex.tolist() == [FEMALE, MALE, FEMALE, MALE, MALE, FEMALE]
    assert images.labels["chair"].tolist() == [1, 0, 1, 0, 0, 0]
    assert images.labels["car"].tolist() == [0, 1, 0, 1, 0, 0]
    assert images.labels["tennis racket"].tolist() == [0, 0, 0, 0, 1, 0]
    assert images.facts == {"images": 6, "missing": 0, "woman": 3, "man": 3}
    assert images.pictures[0].name == "train2017/000000000010.jpg"


def test_missing_or_damaged_coco_files_raise(tmp_path):
    with pytest.raises(InputError, match="captions are missing"):
        coco.read_coco(tmp_path)
    tiny.coco(tmp_path, CAPTIONS, OBJECTS)
    notes = tmp_path / "annotations"
    whole = json.loads((notes / "instances_val2017.json").read_text())
    (notes / "instances_val2017.json").unlink()
    with pytest.raises(InputError, match=r"no file `.*instances_val2017.json`"):
        coco.read_coco(tmp_path)
    (notes / "instances_val2017.json").write_text(json.dumps(whole)[:-30])
    with pytest.raises(InputError, match=r"instances_val2017.json` is damaged"):
        coco.read_coco(tmp_path)
    for key in ("images", "categories", "annotations"):
        (notes / "instances_val2017.json").write_text(json.dumps({k: v for k, v in whole.items() if k != key}))
        with pytest.raises(InputError, match=f"no list '{key}'"):
            coco.read_coco(tmp_path)
    fewer = [entry for entry in whole["categories"] if entry["name"] != "chair"]
    (notes / "instances_val2017.json").write_text(json.dumps(whole | {"categories": fewer}))
    with pytest.raises(InputError, match="no object 'chair'"):
        coco.read_coco(tmp_path)
    (notes / "instances_val2017.json").write_text(json.dumps(whole | {"annotations": [{"id": 1}]}))
    with pytest.raises(InputError, match="Entry 0 of 'annotations'"):
        coco.read_coco(tmp_path)


def test_fingerprint_covers_names_and_contents(tmp_path):
    tiny.celeba(tmp_path)
    images = celeba.read_celeba(tmp_path)
    before = images.fingerprint()
    assert celeba.read_celeba(tmp_path).fingerprint() == before
    images.pictures[5].path.write_bytes(b"another picture")
    assert images.fingerprint() != before
    assert images.take(np.arange(5)).fingerprint() != before
