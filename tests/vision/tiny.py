"""Tiny datasets in the official formats."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np

# fmt: off
ATTRIBUTES = [
    "5_o_Clock_Shadow", "Arched_Eyebrows", "Attractive", "Bags_Under_Eyes", "Bald", "Bangs", "Big_Lips",
    "Big_Nose", "Black_Hair", "Blond_Hair", "Blurry", "Brown_Hair", "Bushy_Eyebrows", "Chubby",
    "Double_Chin", "Eyeglasses", "Goatee", "Gray_Hair", "Heavy_Makeup", "High_Cheekbones", "Male",
    "Mouth_Slightly_Open", "Mustache", "Narrow_Eyes", "No_Beard", "Oval_Face", "Pale_Skin", "Pointy_Nose",
    "Receding_Hairline", "Rosy_Cheeks", "Sideburns", "Smiling", "Straight_Hair", "Wavy_Hair",
    "Wearing_Earrings", "Wearing_Hat", "Wearing_Lipstick", "Wearing_Necklace", "Wearing_Necktie", "Young",
]
# fmt: on
#: COCO's own ids for a few categories; the paper prints other numbers.
CATEGORIES = {1: "person", 3: "car", 31: "handbag", 41: "skateboard", 43: "tennis racket", 62: "chair"}


def attributes(n, seed=0):
    """Values −1 and 1 of shape (n, 40)."""
    return np.where(np.random.default_rng(seed).random((n, len(ATTRIBUTES))) < 0.5, 1, -1)


def jpeg(seed, bright=False):
    """Bytes of a small image, bright or dark."""
    from PIL import Image

    low, high = (120, 256) if bright else (0, 136)
    content = np.random.default_rng(seed).integers(low, high, (22, 18, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(content).save(file, "JPEG")
    return file.getvalue()


def write_attributes(path, values):
    lines = [str(len(values)), " ".join(ATTRIBUTES) + " "]
    lines += [f"{i + 1:06d}.jpg " + " ".join(f"{value:2d}" for value in row) for i, row in enumerate(values)]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def celeba(folder, n=60, picture=lambda i: b"not decoded"):
    """Write CelebA in its official layout, half of it training rows; return the attributes."""
    values = attributes(n)
    folder.mkdir(parents=True, exist_ok=True)
    write_attributes(folder / "list_attr_celeba.txt", values)
    part = ["0", "0", "1", "2"]
    lines = [f"{i + 1:06d}.jpg {part[i % 4]}" for i in range(n)]
    (folder / "list_eval_partition.txt").write_text("\n".join(lines) + "\n")
    images = folder / "img_align_celeba"
    images.mkdir(exist_ok=True)
    for i in range(n):
        (images / f"{i + 1:06d}.jpg").write_bytes(picture(i))
    return values


def coco(folder, captions, objects, part="val2017", picture=lambda i: b"not decoded"):
    """Write COCO's layout, given captions (lists of text) and object names for each image."""
    notes = folder / "annotations"
    notes.mkdir(parents=True, exist_ok=True)
    (folder / part).mkdir(exist_ok=True)
    ids = {name: number for number, name in CATEGORIES.items()}
    images = [{"id": 10 + i, "file_name": f"{10 + i:012d}.jpg"} for i in range(len(captions))]
    instances = {
        "images": images,
        "categories": [{"id": number, "name": name} for number, name in CATEGORIES.items()],
        "annotations": [
            {"id": 100 * i + j, "image_id": 10 + i, "category_id": ids[name]}
            for i, names in enumerate(objects)
            for j, name in enumerate(names)
        ],
    }
    texts = [{"image_id": 10 + i, "caption": text} for i, lines in enumerate(captions) for text in lines]
    (notes / f"instances_{part}.json").write_text(json.dumps(instances))
    (notes / f"captions_{part}.json").write_text(json.dumps({"images": images, "annotations": texts}))
    for i, image in enumerate(images):
        (folder / part / image["file_name"]).write_bytes(picture(i))


def subset(folder, n=12, n_test=4, drift_at=None, picture=lambda i: b"not decoded"):
    """Write the archive of the subset, with `list_attr_celeba.txt` next to it; return the attributes.

    Starting at row `drift_at`, sex and Smiling in the archive are the opposite of those in the table.
    """
    folder.mkdir(parents=True, exist_ok=True)
    values = attributes(n + 5)
    write_attributes(folder / "list_attr_celeba.txt", values)
    male, smiling = values[:, ATTRIBUTES.index("Male")], values[:, ATTRIBUTES.index("Smiling")]
    with tarfile.open(folder / "images.tar", "w") as archive:
        for part, size in (("celeba", n), ("celeba_test", n_test)):
            lines = ["order\timg_name\tgender\tsmiling"]
            for i in range(size):
                sign = -1 if drift_at is not None and i >= drift_at else 1
                lines.append(f"{i}\t{i}.jpg\t{sign * male[i]}\t{sign * smiling[i]}")
            _add(archive, f"{part}/labels.csv", ("\n".join(lines) + "\n").encode())
            for i in range(size):
                _add(archive, f"{part}/img/{i}.jpg", picture(i))
    return values


def _add(archive, name, content):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
