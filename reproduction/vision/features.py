"""Images as arrays, and features of frozen networks in memory-mapped files keyed by content.

A *view* of an image is an array of 224 × 224 pixels. View 0 is the resized image and is used for measuring.
Views 1 to V are for training: random crops of the image resized to 248 × 248, flipped with probability ½. The
randomness of a view depends only on the image's name and the view's number, not on order or on other images.

The paper crops anew in each of 50 epochs. Here, features of view 0 and of V crops are computed once, and each
epoch uses one of them per image at random, because forward passes take most of the time.

    <folder>/<images>-<weights>-<view>.npy      float32, (n, d); a row of NaN is an unreadable image
    <folder>/<images>-pixels<side>-0.npy        bytes, for training whole networks

where <images> and <weights> are hashes of their contents. An unfinished file ends in `.part.npy`, with the
number of finished rows next to it, and is continued later.
"""

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reproduction.store import replaced
from reproduction.vision.backbones import Body, Pixels
from reproduction.vision.data import Images, Picture

Features = npt.NDArray[np.float32]
#: Images per batch: intermediate results of larger batches exceed the CPU cache.
BATCH = 16
#: Batches between two updates of the progress file.
NOTE_EVERY = 20


@dataclass(frozen=True)
class Sizes:
    """Side length in pixels of a view, and of the resized image from which training views are cropped."""

    view: int = 224
    resized: int = 248


PAPER_SIZES = Sizes()


def pixels(picture: Picture, view: int, sizes: Sizes = PAPER_SIZES) -> Pixels | None:
    """Return one view of an image, or None if it cannot be read."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(picture.read())) as image:
            side = sizes.view if view == 0 else sizes.resized
            found = np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    return found if view == 0 else cut(found, sizes.view, _generator(picture.name, view))


def cut(image: Pixels, side: int, rng: np.random.Generator) -> Pixels:
    """Return a random square crop, flipped with probability ½."""
    top, left = rng.integers(0, image.shape[0] - side + 1, 2)
    found = image[top : top + side, left : left + side]
    return found[:, ::-1] if rng.random() < 0.5 else found


def _generator(name: str, view: int) -> np.random.Generator:
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    return np.random.default_rng([seed, view])


def read_features(path: Path) -> tuple[Features, npt.NDArray[np.bool_]]:
    """Return memory-mapped features, and a mask of the readable rows."""
    found: Features = np.load(path, mmap_mode="r")
    return found, ~np.isnan(found[:, 0])


def read_pixels(path: Path) -> tuple[Pixels, npt.NDArray[np.bool_]]:
    """Return memory-mapped images of shape (n, height, width, 3), and a mask of the readable rows."""
    found = np.load(path, mmap_mode="r")
    side = round(((found.shape[1] - 1) / 3) ** 0.5)
    return found[:, :-1].reshape(len(found), side, side, 3), found[:, -1] == 1


def _bytes(images: Pixels) -> Pixels:
    return np.column_stack([images.reshape(len(images), -1), np.ones(len(images), dtype=np.uint8)])


class Cache:
    """Features on disk.

    Parameters
    ----------
    folder : Path
        Folder of the files; created when needed.
    sizes : Sizes
        Sizes of views.
    """

    def __init__(self, folder: Path, sizes: Sizes = PAPER_SIZES) -> None:
        self.folder = folder
        self.sizes = sizes

    def path(self, images: str, weights: str, view: int) -> Path:
        """Return the path of a view's features, given the hashes of images and weights."""
        size = "" if self.sizes == PAPER_SIZES else f"-{self.sizes.view}of{self.sizes.resized}"
        return self.folder / f"{images}-{weights}-{view}{size}.npy"

    def features(
        self,
        images: Images,
        fingerprint: str,
        body: Body,
        weights: str,
        view: int,
        say: Callable[[int, int], None] = lambda done, total: None,
    ) -> Path:
        """Return the path of one view's features of all images; compute them if they are missing.

        Parameters
        ----------
        images, fingerprint : Images, str
            The images and their hash.
        body, weights : Body, str
            The network and its hash.
        view : int
            0 for measuring, larger for training.
        say : callable
            Called with the number of finished images and of all images.
        """
        path = self.path(fingerprint, weights, view)
        if not path.exists():
            self._compute(path, images, view, body.features, (body.dimension, np.float32), say)
        return path

    def pixels(
        self, images: Images, fingerprint: str, say: Callable[[int, int], None] = lambda done, total: None
    ) -> Path:
        """Decode view 0 of all images into a file of bytes; the last byte of a row is 1 if it is readable."""
        path = self.path(fingerprint, f"pixels{self.sizes.view}", 0)
        if not path.exists():
            self._compute(path, images, 0, _bytes, (3 * self.sizes.view**2 + 1, np.uint8), say)
        return path

    def _compute(
        self,
        path: Path,
        images: Images,
        view: int,
        encode: Callable[[Pixels], Any],
        row: tuple[int, Any],
        say: Callable[[int, int], None],
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        part, note = path.with_suffix(".part.npy"), path.with_suffix(".rows")
        shape, dtype = (len(images), row[0]), row[1]
        done = _finished(part, note, shape)
        mode: Any = "r+" if done else "w+"
        rows = np.lib.format.open_memmap(part, mode=mode, dtype=dtype, shape=shape)
        unread = np.nan if dtype == np.float32 else 0
        for count, (start, batch) in enumerate(self._batches(images.pictures, view, done), start=1):
            good = [i for i, image in enumerate(batch) if image is not None]
            rows[start : start + len(batch)] = unread
            if good:
                rows[start + np.array(good)] = encode(np.stack([image for image in batch if image is not None]))
            if count % NOTE_EVERY == 0:
                rows.flush()
                with replaced(note) as fresh:
                    fresh.write_text(str(start + len(batch)))
                say(start + len(batch), len(images))
        rows.flush()
        del rows
        part.replace(path)
        note.unlink(missing_ok=True)

    def _batches(
        self, pictures: Sequence[Picture], view: int, start: int
    ) -> Iterator[tuple[int, list[Pixels | None]]]:
        """Decode images in a separate thread, one batch ahead."""

        def decode(first: int) -> list[Pixels | None]:
            return [pixels(picture, view, self.sizes) for picture in pictures[first : first + BATCH]]

        with ThreadPoolExecutor(1) as pool:
            ahead = pool.submit(decode, start)
            for first in range(start, len(pictures), BATCH):
                batch = ahead.result()
                ahead = pool.submit(decode, first + BATCH)
                yield first, batch


def _finished(part: Path, note: Path, shape: tuple[int, int]) -> int:
    """Return the number of finished rows of an unfinished file, or 0 if it cannot be continued."""
    try:
        stored = np.load(part, mmap_mode="r")
        return int(note.read_text(encoding="utf-8")) if stored.shape == shape else 0
    except (OSError, ValueError, EOFError):
        return 0
