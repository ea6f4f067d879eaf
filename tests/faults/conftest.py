"""A disk that is really full: a file system of a few pages, for users who may mount one."""

import os
import shutil
import subprocess

import pytest


class Disk:
    """A small disk whose free space can be set."""

    def __init__(self, folder):
        self.folder = folder

    def leave(self, pages):
        """Fill the disk, leaving this many pages of 4 KiB."""
        filler = self.folder / "filler"
        filler.unlink(missing_ok=True)
        page = os.statvfs(self.folder).f_frsize
        free = os.statvfs(self.folder).f_bavail - pages
        filler.write_bytes(b"x" * page * max(free, 0))

    def files(self):
        return sorted(p.name for p in self.folder.iterdir() if p.name != "filler")


@pytest.fixture
def disk(tmp_path):
    """A disk of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("a full disk: only root can mount a small one")
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    if done.returncode:
        pytest.skip(f"a full disk: mount says {done.stderr.strip()}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True, timeout=30)
