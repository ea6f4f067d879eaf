"""Images of any dataset with a sensitive attribute and labels, and how they are split.

    rows of a task  →  training rows of the classifier  |  the others in three: fit, validation and test rows

CelebA has an official partition: its training images train the classifier, and the others are held out. The other
datasets have none that leaves enough held-out rows, so half of the rows are for training, as in the paper's
tabular experiments.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairramp.errors import InputError
from reproduction.protocol import Integers

Labels = npt.NDArray[np.int8]

FEMALE, MALE = "Female", "Male"
#: Code of a missing label.
UNKNOWN = -1
SPLITS = ("fit", "validation", "test")


@dataclass(frozen=True)
class Picture:
    """Location of one image: a file, or a part of an archive."""

    name: str
    path: Path
    offset: int = 0
    size: int | None = None

    def read(self) -> bytes:
        """Return the encoded image."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            return file.read() if self.size is None else file.read(self.size)


@dataclass(frozen=True, eq=False)
class Images:
    """A dataset.

    Attributes
    ----------
    name : str
        "celeba", "coco" or "celeba6000".
    pictures : tuple of Picture, n of them
        The images, not yet opened.
    sex : ndarray of str, shape (n,)
        "Female" or "Male".
    labels : dict of ndarray of int8, each of shape (n,)
        Labels by task: 1, 0, or −1 for a missing label.
    held_out : ndarray of bool, shape (n,), optional
        Rows that must not train a classifier; None if the dataset has no partition.
    facts : dict of int
        Counts to report.
    """

    name: str
    pictures: tuple[Picture, ...]
    sex: npt.NDArray[np.str_]
    labels: dict[str, Labels]
    held_out: npt.NDArray[np.bool_] | None
    facts: dict[str, int]

    def __len__(self) -> int:
        return len(self.pictures)

    def take(self, rows: Integers) -> "Images":
        """Return some of the rows."""
        return Images(
            self.name,
            tuple(self.pictures[row] for row in rows),
            self.sex[rows],
            {task: label[rows] for task, label in self.labels.items()},
            None if self.held_out is None else self.held_out[rows],
            self.facts,
        )

    def fingerprint(self) -> str:
        """Return a hash of the names and contents of all images; unreadable files count as empty."""
        whole = hashlib.sha256()
        for picture in self.pictures:
            try:
                content = picture.read()
            except OSError:
                content = b""
            whole.update(picture.name.encode() + b"\0" + hashlib.sha256(content).digest())
        return whole.hexdigest()[:16]

    def split(self, task: str, seed: int, readable: npt.NDArray[np.bool_] | None = None) -> dict[str, Integers]:
        """Return the rows of a task: "train", "fit", "validation" and "test", shuffled by the seed.

        A seed gives the same split for every backbone and fraction. Fractions are the first training rows, so a
        larger fraction contains the smaller ones.
        """
        known = self.labels[task] != UNKNOWN
        rows = np.flatnonzero(known if readable is None else known & readable)
        rows = np.random.default_rng([seed, 9]).permutation(rows)
        if self.held_out is None:
            half = len(rows) // 2
            train, others = rows[:half], rows[half:]
        else:
            held_out = self.held_out[rows]
            train, others = rows[~held_out], rows[held_out]
        return {"train": train, **dict(zip(SPLITS, np.array_split(others, 3), strict=True))}


def fraction_of(rows: Integers, fraction: float) -> Integers:
    """Return the first part of the rows, at least one."""
    return rows[: max(1, round(fraction * len(rows)))]


def need_file(path: Path, what: str, remedy: str) -> Path:
    """Return the path, or raise an error if there is no such file."""
    if not path.is_file():
        raise InputError("{what} is missing: no file `{path}`", remedy=remedy, what=what, path=path)
    return path


def missing_pictures(pictures: Sequence[Picture]) -> list[str]:
    """Return the names of images whose file does not exist."""
    return [picture.name for picture in pictures if not picture.path.is_file()]
