"""Take screenshots of the explorer on the demo's scores; needs chromium and the dev dependencies."""

import csv
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import fairramp

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FOLDER = Path(__file__).parents[1] / "docs" / "images"


def main() -> None:
    """Write docs/images/explore-columns.png, explore-rules.png and explore-pinned.png."""
    data = fairramp.datasets.load_adult_scores()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        with open(Path(folder) / "scores.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "score", "sex", "race", "label"])
            writer.writerows(zip(data.id, data.score, data.sex, data.race, data.label, strict=True))
        command = [sys.executable, "-m", "fairramp.cli", "explore", "scores.csv", "--no-browser"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            address = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            try:
                take(browser.new_page(viewport={"width": 1180, "height": 900}, device_scale_factor=0.75), address)
            finally:
                browser.close()
                process.send_signal(signal.SIGINT)


def take(page, address) -> None:
    """Explore as on the documentation page."""

    def settle() -> None:
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        page.wait_for_timeout(3_000)

    def shoot(name: str, first: str, last: str | None) -> None:
        top = page.locator(first).first.bounding_box()
        box = page.locator(last).first.bounding_box() if last else top
        start = max(top["y"] - 16, 0)
        end = box["y"] + box["height"] + 16
        clip = {"x": 0, "y": start, "width": 1180, "height": end - start}
        page.screenshot(path=FOLDER / f"explore-{name}.png", full_page=True, clip=clip)

    page.goto(address)
    page.fill("#decision", "income above $50,000")
    page.evaluate("document.activeElement.blur()")
    shoot("columns", "header", "#columns")
    page.click("#columns button")
    settle()
    page.click("#pin-0")
    page.fill("#limit", "5")
    settle()
    page.click("#pin-1")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.wait_for_timeout(500)
    shoot("rules", "#h-rules", "#report .costs")
    page.evaluate("for (const row of document.querySelectorAll('#pinned tr')) row.cells[3].remove()")
    shoot("pinned", "#pins", None)


if __name__ == "__main__":
    main()
