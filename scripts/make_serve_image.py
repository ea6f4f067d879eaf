"""Take a screenshot of the page of a service; needs chromium and the dev dependencies."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import fairramp

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FOLDER = Path(__file__).parents[1] / "docs" / "images"


def main() -> None:
    """Write docs/images/serve-light.png."""
    data = fairramp.datasets.load_adult_scores()
    rule = fairramp.fit_rule(data.score, {"sex": data.sex}, max_gap=0.02)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        rule.save(Path(folder) / "rule.json")
        service = subprocess.Popen(
            [sys.executable, "-m", "fairramp.cli", "serve", "rule.json", "--port", "0"],
            cwd=folder,
            env=os.environ | {"FAIRRAMP_KEY": "0123456789abcdef" * 4, "COLUMNS": "500"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            address = re.findall(r"http://127.0.0.1:\d+", service.stdout.readline())[0]
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            page = browser.new_page(viewport={"width": 960, "height": 2000}, device_scale_factor=0.75)
            page.on("pageerror", lambda error: sys.exit(str(error)))
            page.on("console", lambda said: sys.exit(said.text) if said.type == "error" else None)
            page.goto(f"{address}/docs")
            page.get_by_role("button", name="Send").click()
            page.get_by_text("200 OK").wait_for()
            end = page.get_by_role("heading", name="From a program").bounding_box()["y"]
            clip = {"x": 0, "y": 0, "width": 960, "height": end}
            page.screenshot(path=FOLDER / "serve-light.png", full_page=True, clip=clip)
            browser.close()
        finally:
            service.terminate()
            service.wait()


if __name__ == "__main__":
    main()
