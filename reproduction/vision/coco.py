"""COCO: objects in images of a woman or a man, according to the captions.

    annotations/instances_{train,val}2017.json   images, categories, annotations
    annotations/captions_{train,val}2017.json    about five captions per image
    {train,val}2017/                             the images

The sensitive attribute comes from the captions, as in the paper: an image counts if its captions contain the word
"woman" or the word "man", but not both. "Women" and "men" do not count; "woman's hand" does, because the
apostrophe ends the word. The label of a task is whether an object is annotated. Objects are found by *name*:
the ids that the paper prints (56, 2, 26, 36, 38) are positions in a list of 80 names, not COCO's category ids.

References
----------
T.-Y. Lin et al. (2014). Microsoft COCO: common objects in context.
A. Wang, A. Narayanan and O. Russakovsky (2020). REVISE: a tool for measuring bias in visual datasets.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from fairramp.errors import InputError
from reproduction.vision.data import FEMALE, MALE, Images, Picture, missing_pictures, need_file

#: The paper's five tasks (Appendix E.2), by COCO's own names.
TASKS = ("chair", "car", "handbag", "skateboard", "tennis racket")
PARTS = ("train2017", "val2017")

WOMAN, MAN = (re.compile(rf"\b{word}\b", re.IGNORECASE) for word in ("woman", "man"))
REMEDY = "put COCO's 2017 annotations and images into one folder"
OWN_FILE = "use COCO's own file"


def sex_in_captions(captions: Iterable[str]) -> str | None:
    """Return "Female" or "Male" if the captions of an image contain one of the words but not the other.

    Examples
    --------
    >>> sex_in_captions(["A woman with a racket.", "Someone plays tennis."])
    'Female'
    >>> sex_in_captions(["Two women and a man."])
    'Male'
    >>> sex_in_captions(["A woman.", "A man."]) is None
    True
    """
    texts = list(captions)
    woman, man = (any(word.search(text) for text in texts) for word in (WOMAN, MAN))
    if woman == man:
        return None
    return FEMALE if woman else MALE


def read_sexes(path: Path) -> dict[int, str]:
    """Read a caption file; return the sex by image id, where the captions determine it."""
    content = _read(path, ("annotations",))
    captions: dict[int, list[str]] = {}
    for entry in _entries(path, content, "annotations", ("image_id", "caption")):
        captions.setdefault(entry["image_id"], []).append(entry["caption"])
    found = {image: sex_in_captions(texts) for image, texts in captions.items()}
    return {image: sex for image, sex in found.items() if sex is not None}


def read_coco(folder: str | Path) -> Images:
    """Read COCO 2017 from a folder with the training part, the validation part, or both.

    Raises
    ------
    InputError
        If a file is missing or damaged, or if there are no images. Missing images are counted in `facts`.
    """
    root = Path(folder).expanduser()
    parts = [part for part in PARTS if (root / "annotations" / f"captions_{part}.json").is_file()]
    if not parts:
        raise InputError(
            "COCO's captions are missing: no captions_train2017.json in `{folder}`",
            remedy=REMEDY,
            folder=root / "annotations",
        )
    pictures: list[Picture] = []
    sexes: list[str] = []
    objects: list[set[str]] = []
    for part in parts:
        names, present = _read_objects(root / "annotations" / f"instances_{part}.json")
        for image, sex in sorted(read_sexes(root / "annotations" / f"captions_{part}.json").items()):
            if image in names:
                pictures.append(Picture(f"{part}/{names[image]}", root / part / names[image]))
                sexes.append(sex)
                objects.append(present.get(image, set()))
    absent = missing_pictures(pictures)
    if len(absent) == len(pictures):
        raise InputError("COCO's images are missing: none in `{folder}`", remedy=REMEDY, folder=root / parts[0])
    labels = {task: np.array([task in found for found in objects], dtype=np.int8) for task in TASKS}
    facts = {
        "images": len(pictures),
        "missing": len(absent),
        "woman": sexes.count(FEMALE),
        "man": sexes.count(MALE),
    }
    return Images("coco", tuple(pictures), np.array(sexes), labels, None, facts)


def _read_objects(path: Path) -> tuple[dict[int, str], dict[int, set[str]]]:
    """Return the file name of each image and the tasks' objects in it, by image id."""
    content = _read(need_file(path, "COCO's table of objects", REMEDY), ("images", "categories", "annotations"))
    files = {entry["id"]: entry["file_name"] for entry in _entries(path, content, "images", ("id", "file_name"))}
    ids = {entry["name"]: entry["id"] for entry in _entries(path, content, "categories", ("id", "name"))}
    absent = [task for task in TASKS if task not in ids]
    if absent:
        raise InputError("`{path}` has no object {name!r}", remedy=OWN_FILE, path=path, name=absent[0])
    wanted = {ids[task]: task for task in TASKS}
    present: dict[int, set[str]] = {}
    for entry in _entries(path, content, "annotations", ("image_id", "category_id")):
        if entry["category_id"] in wanted:
            present.setdefault(entry["image_id"], set()).add(wanted[entry["category_id"]])
    return files, present


def _read(path: Path, keys: tuple[str, ...]) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(
            "`{path}` is damaged: {error}", remedy="download it again", path=path, error=error
        ) from error
    absent = [key for key in keys if not isinstance(content, dict) or not isinstance(content.get(key), list)]
    if absent:
        raise InputError("`{path}` has no list {name!r}", remedy=OWN_FILE, path=path, name=absent[0])
    return dict(content)


def _entries(path: Path, content: dict[str, Any], key: str, fields: tuple[str, ...]) -> list[dict[str, Any]]:
    for number, entry in enumerate(content[key]):
        if not isinstance(entry, dict) or any(field not in entry for field in fields):
            raise InputError(
                "Entry {number} of {key!r} in `{path}` must have {fields}",
                number=number,
                key=key,
                path=path,
                fields=" and ".join(fields),
            )
    return list(content[key])
