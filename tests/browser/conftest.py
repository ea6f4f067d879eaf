"""A real Chromium without a network, and axe-core to look for what keeps people out."""

import os
import shutil
import subprocess
import tarfile
import warnings
from pathlib import Path

import numpy as np
import pytest

import fairramp

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
    """Source of axe-core, packed once by npm."""
    if not (CACHE / "package" / "axe.min.js").exists():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed, and axe-core comes from there")
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "axe-core", "--silent"], cwd=CACHE, check=True, capture_output=True)
        with tarfile.open(next(CACHE.glob("axe-core-*.tgz"))) as packed:
            packed.extractall(CACHE, filter="data")
    return (CACHE / "package" / "axe.min.js").read_text(encoding="utf-8")


class Opened:
    """A page that was opened, and all it complained of."""

    def __init__(self, page, complaints, requests):
        self.page, self.complaints, self.requests = page, complaints, requests

    def move_to(self, at):
        self.page.evaluate(
            "at => { const s = document.getElementById('max-gap'); s.value = at; "
            "s.dispatchEvent(new Event('input')); }",
            at,
        )

    def text(self, selector):
        return self.page.locator(selector).first.inner_text()

    def cells(self, attribute=None):
        """The table: texts, or an attribute of each cell."""
        take = "c => c.textContent" if attribute is None else f"c => c.getAttribute('{attribute}')"
        return self.page.evaluate(
            f"[...document.querySelectorAll('#rule tbody tr')].map(r => [...r.cells].map({take}))"
        )


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a report, offline, under its own policy."""
    contexts = []

    def open_(report, width=1280, scheme="light"):
        path = tmp_path / f"report-{len(contexts)}.html"
        report.save(path)
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        contexts.append(context)
        page = context.new_page()
        complaints, requests = [], []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.on("dialog", lambda dialog: complaints.append("a dialog opened") or dialog.dismiss())
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=yes]", timeout=60_000)
        return Opened(page, complaints, requests)

    yield open_
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def adult():
    return fairramp.datasets.load_adult_scores()


@pytest.fixture(scope="session")
def adult_report(adult):
    rule = fairramp.fit_rule(adult.score, adult.sex, max_gap=0.02)
    return rule.report(adult.score, adult.sex, adult.label, title="Income above $50,000")


@pytest.fixture(scope="session")
def made():
    """A report on made-up rows of given groups."""

    def make(names, n=2000, labels=True, equal=False, max_gap=0.02):
        rng = np.random.default_rng(len(names))
        codes = np.concatenate([np.arange(len(names)), rng.integers(0, len(names), n)])
        shift = 0.0 if equal else 0.25 * codes / len(names)
        scores = np.clip(rng.beta(2, 3, len(codes)) * 0.8 + shift, 0, 1)
        if equal:
            codes = np.concatenate([np.full(n, i) for i in range(len(names))])
            scores = np.tile(rng.random(n), len(names))
        groups = [names[i] for i in codes]
        y = (rng.random(len(codes)) < scores).astype(int) if labels else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fairramp.FairrampWarning)
            rule = fairramp.fit_rule(scores, groups, max_gap=max_gap)
        return rule.report(scores, groups, y)

    return make
