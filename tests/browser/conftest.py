import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CACHE = Path(os.environ.get("FAIRRAMP_BROWSER_CACHE", Path(__file__).parents[2] / ".cache" / "axe-core"))


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def axe():
    """Source of axe-core, downloaded once with npm."""
    if not list(CACHE.glob("axe-core-*.tgz")):
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed, and axe-core comes from there")
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "axe-core", "--silent"], cwd=CACHE, check=True, capture_output=True)
    with tarfile.open(next(CACHE.glob("axe-core-*.tgz"))) as packed:
        source = packed.extractfile("package/axe.min.js")
        assert source is not None
        return source.read().decode("utf-8")
