"""The built site in a real browser: every page, light and dark, on a laptop and a phone, without a network.

`make docs` builds it. Chromium is Debian's, and must not make any network request.
"""

import inspect
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest

import fairramp

pytestmark = pytest.mark.site

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = sorted(str(p.relative_to(SITE)) for p in SITE.rglob("*.html") if SITE / "_static" not in p.parents)
LAPTOP = {"width": 1280, "height": 800}
PHONE = {"width": 375, "height": 800}
#: Pages that must exist.
EXPECTED = {
    "index.html",
    "start.html",
    "cheat-sheet.html",
    "api.html",
    "how-it-works.html",
    "command-line.html",
    "scale.html",
    "reproduction.html",
    "benchmarks.html",
    "changelog.html",
    "gallery/index.html",
    "guide/index.html",
    "guide/review.html",
    "switching-from/fairlearn.html",
    "switching-from/aif360.html",
    "switching-from/paper.html",
}


class Parts(HTMLParser):
    """Links, anchors and pictures of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.pictures = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors.update(found[name] for name in ("id", "name") if found.get(name))
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("img", "script", "link"):
            self.links.append(found.get("src") or found.get("href") or "")
        if tag == "img":
            self.pictures.append(found)


@pytest.fixture(scope="module")
def parts():
    return {page: Parts((SITE / page).read_text(encoding="utf-8")) for page in PAGES}


@pytest.fixture
def open_page(browser):
    """Open a page of the site in a window of a given size."""
    contexts = []

    def opened(name, viewport, **options):
        contexts.append(browser.new_context(viewport=viewport, **options))
        page = contexts[-1].new_page()
        page.goto((SITE / name).as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


def test_expected_pages_exist():
    assert set(PAGES) >= EXPECTED, "run `make docs` first"
    assert len([page for page in PAGES if re.fullmatch(r"gallery/plot_\w+\.html", page)]) >= 8


def test_every_public_name_has_a_page(parts):
    for name in set(fairramp.__all__) - {"__version__"}:
        thing = getattr(fairramp, name)
        anchor = thing.__name__ if inspect.ismodule(thing) else f"fairramp.{name}"
        page = f"api/{anchor}.html"
        assert {anchor, f"module-{anchor}"} & parts[page].anchors
        assert page in parts["api.html"].links or f"{page}#{anchor}" in parts["api.html"].links


def test_no_link_and_no_anchor_is_broken(parts):
    broken = []
    for page, found in parts.items():
        for link in found.links:
            if re.match(r"(https?|mailto|data|javascript):", link) or link in ("", "#"):
                continue
            target, anchor = urldefrag(urljoin(f"/{page}", link))
            path = unquote(target.split("?")[0]).lstrip("/") or page
            if not (SITE / path).is_file() or (
                anchor and path in parts and unquote(anchor) not in parts[path].anchors
            ):
                broken.append((page, link))
    assert broken == []


def test_every_picture_has_alternative_text(parts):
    decoration = ("_static/ramp.svg", "_thumb.png")  # the text beside them says the same
    missing = {
        (page, picture["src"])
        for page, found in parts.items()
        for picture in found.pictures
        if not picture["src"].endswith(decoration) and re.fullmatch(r"(plot \d .*)?", picture.get("alt") or "")
    }
    assert missing == set()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_opens_without_errors_requests_or_horizontal_scrolling(browser, scheme):
    context = browser.new_context(viewport=PHONE, color_scheme=scheme)
    page = context.new_page()
    errors, requests = [], []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else requests.append(r.url))
    # The next page may cut off the icon of the last one.
    page.on(
        "requestfailed",
        lambda r: None if r.failure == "net::ERR_ABORTED" else errors.append(f"not found: {r.url}"),
    )
    wide, small = [], []
    for name in PAGES:
        page.goto((SITE / name).as_uri())
        for viewport in (PHONE, LAPTOP):
            page.set_viewport_size(viewport)
            needed = page.evaluate("document.documentElement.scrollWidth")
            if needed > viewport["width"]:
                wide.append((name, viewport["width"], needed))
            size = page.evaluate(
                "parseFloat(getComputedStyle(document.querySelector('main') || document.body).fontSize)"
            )
            if size < 14:
                small.append((name, viewport["width"], size))
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        assert page.evaluate("[...document.images].every(i => !i.complete || i.naturalWidth > 0)"), name
        assert errors == [], name
    context.close()
    assert wide == []
    assert small == []
    assert requests == []


def test_wide_content_scrolls_within_itself_on_a_phone(open_page):
    """Nothing is cut off: what is wider than the screen lies in a box that scrolls."""
    pages = [name for name in PAGES if name.startswith("api/")] + ["index.html", "start.html", "cheat-sheet.html"]
    page = open_page(pages[0], PHONE)
    cut = {}
    for name in pages:
        page.goto((SITE / name).as_uri())
        cut[name] = page.evaluate(
            """() => [...document.querySelectorAll(".bd-article *")].filter(one => {
                if (one.getBoundingClientRect().right <= innerWidth + 1) return false;
                for (let box = one; box; box = box.parentElement)
                    if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return false;
                return one.checkVisibility();
            }).map(one => one.outerHTML.slice(0, 80))"""
        )
    assert {name: found for name, found in cut.items() if found} == {}


def test_front_page_shows_install_code_output_and_entry_points_without_scrolling(open_page):
    page = open_page("index.html", LAPTOP)
    shown = page.locator(".bd-article pre")
    assert "pip install" in shown.nth(0).inner_text()
    code = shown.nth(1).inner_text().strip()
    assert "fairramp.fit_rule(" in code
    assert len(code.splitlines()) == 6
    assert "fairramp rule for 2 groups" in shown.nth(2).inner_text()
    entries = page.locator(".entries li")
    assert entries.count() == 3
    for part in (*(shown.nth(i) for i in range(3)), *(entries.nth(i) for i in range(3))):
        box = part.bounding_box()
        assert box["y"] + box["height"] <= LAPTOP["height"]


@pytest.mark.parametrize(
    ("entry", "target"),
    [
        ("I have scores", "start.html"),
        ("I must approve a rule", "guide/review.html"),
        ("I run a rule in production", "production.html"),
    ],
)
def test_entry_points_lead_to_their_pages(open_page, entry, target):
    page = open_page("index.html", LAPTOP)
    page.locator(".entries").get_by_role("link", name=entry, exact=True).click()
    page.wait_for_url((SITE / target).as_uri())
    assert page.locator("h1").is_visible()


@pytest.mark.parametrize("start", ["index.html", "guide/review.html"])
def test_live_report_opens_and_its_slider_works(open_page, start):
    page = open_page(start, PHONE)
    page.get_by_role("link", name=re.compile("open a live report", re.IGNORECASE)).click()
    page.wait_for_url("**/_static/live-report.html")
    gap = page.locator("output[for=limit]")
    assert gap.inner_text().startswith("2.0")
    page.locator("#limit").press("End")
    assert not gap.inner_text().startswith("2.0")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_cheat_sheet_prints_on_one_page(open_page):
    page = open_page("cheat-sheet.html", LAPTOP)
    margin = dict.fromkeys(("top", "right", "bottom", "left"), "10mm")
    for paper in ("A4", "Letter"):
        assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format=paper, margin=margin))) == 1


def test_search_finds_a_name_without_a_network(open_page):
    page = open_page("search.html", LAPTOP, offline=True)
    page.goto((SITE / "search.html").as_uri() + "?q=ramp_width")
    page.wait_for_selector("#search-results li", timeout=20_000)
    assert page.locator("#search-results li").count() > 3


def test_formulas_are_drawn(open_page):
    page = open_page("how-it-works.html", LAPTOP)
    assert page.locator("math").count() > 30
    letter, index = (page.locator(f"math msub > :nth-child({i})").first.bounding_box() for i in (1, 2))
    assert index["y"] + index["height"] > letter["y"] + letter["height"]  # a subscript lies below its letter
