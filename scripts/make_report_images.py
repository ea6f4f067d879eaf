"""Take screenshots of the first screen of a report, light and dark; needs chromium and the dev dependencies."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import fairramp

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FOLDER = Path(__file__).parents[1] / "docs" / "images"


def main() -> None:
    """Write docs/images/report-light.png and report-dark.png."""
    data = fairramp.datasets.load_adult_scores()
    rule = fairramp.fit_rule(data.score, {"sex": data.sex}, max_gap=0.02)
    report = rule.report(
        data.score,
        {"sex": data.sex},
        data.label,
        decision="income above $50,000",
        source="scores.csv",
        label_names=("over $50,000", "up to $50,000"),
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path = Path(folder) / "report.html"
        report.save(path)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for scheme in ("light", "dark"):
            page = browser.new_page(
                viewport={"width": 1180, "height": 900}, color_scheme=scheme, device_scale_factor=0.75
            )
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready=yes]")
            end = page.locator("#controls").bounding_box()["y"]
            clip = {"x": 0, "y": 0, "width": 1180, "height": end - 20}
            page.screenshot(path=FOLDER / f"report-{scheme}.png", full_page=True, clip=clip)
        browser.close()


if __name__ == "__main__":
    main()
