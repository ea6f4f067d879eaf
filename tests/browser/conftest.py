import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from opened_page import Opened

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


@pytest.fixture(scope="module")
def open_page(browser, tmp_path_factory):
    """Opens a report offline."""
    folder, contexts = tmp_path_factory.mktemp("reports"), []

    def open_(report, width=1200, script=True):
        path = folder / f"report-{len(contexts)}.html"
        report.save(path)
        context = browser.new_context(
            viewport={"width": width, "height": 900}, offline=True, java_script_enabled=script
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = Opened(context.new_page(), report)
        page.page.goto(path.as_uri())
        if script:
            page.page.wait_for_selector("html[data-ready=yes]", timeout=60_000)
        return page

    yield open_
    for context in contexts:
        context.close()


@pytest.fixture
def opened(open_page):
    """Opens a report offline, for one test."""
    pages = []

    def open_(*args, **kwargs):
        pages.append(open_page(*args, **kwargs))
        return pages[-1]

    yield open_
    try:
        for page in pages:
            page.assert_clean()
    finally:
        for page in pages:
            page.page.context.close()
