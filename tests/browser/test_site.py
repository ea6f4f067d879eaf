"""The built site in a real browser: every page, light and dark, wide and narrow, without a network.

`make docs` builds it. Chromium is Debian's; what it may not do is ask any machine for anything.
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
#: What must be there, whatever else is.
EXPECTED = {
    "index.html",
    "start.html",
    "api.html",
    "how-it-works.html",
    "command-line.html",
    "scale.html",
    "reproduction.html",
    "benchmarks.html",
    "changelog.html",
    "gallery/index.html",
    "guide/index.html",
    "switching-from/fairlearn.html",
    "switching-from/aif360.html",
    "switching-from/paper.html",
}


class Parts(HTMLParser):
    """Where a page leads to, what it shows, and where one can arrive."""

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


def test_the_site_is_built():
    assert set(PAGES) >= EXPECTED, "run `make docs` first"
    assert len([page for page in PAGES if re.fullmatch(r"gallery/plot_\w+\.html", page)]) >= 8


def test_every_public_name_has_a_page(parts):
    for name in set(fairramp.__all__) - {"__version__"}:
        thing = getattr(fairramp, name)
        anchor = (
            thing.__name__ if inspect.ismodule(thing) else f"fairramp.{name}"
        )  # a module has a home of its own
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


def test_every_picture_says_what_it_shows(parts):
    decoration = ("_static/ramp.svg", "_thumb.png")  # beside the words that say the same
    missing = {
        (page, picture["src"])
        for page, found in parts.items()
        for picture in found.pictures
        if not picture["src"].endswith(decoration) and re.fullmatch(r"(plot \d .*)?", picture.get("alt") or "")
    }
    assert missing == set()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_opens_without_complaint_network_or_sideways_scrolling(browser, scheme):
    context = browser.new_context(viewport={"width": 380, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    complaints, outside = [], []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else outside.append(r.url))
    page.on("requestfailed", lambda request: complaints.append(f"not found: {request.url}"))
    wide = []
    for name in PAGES:
        page.goto((SITE / name).as_uri())
        for width in (380, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            needed = page.evaluate("document.documentElement.scrollWidth")
            if needed > width:
                wide.append((name, width, needed))
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        assert page.evaluate("[...document.images].every(i => !i.complete || i.naturalWidth > 0)"), name
        assert complaints == [], name
    context.close()
    assert wide == []
    assert outside == []


def test_search_finds_a_name_without_a_network(browser):
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto((SITE / "search.html").as_uri() + "?q=ramp_width")
    page.wait_for_selector("#search-results li", timeout=20_000)
    assert page.locator("#search-results li").count() > 3
    context.close()


def test_formulas_are_drawn(browser):
    context = browser.new_context()
    page = context.new_page()
    page.goto((SITE / "how-it-works.html").as_uri())
    assert page.locator("math").count() > 30
    letter, index = (page.locator(f"math msub > :nth-child({i})").first.bounding_box() for i in (1, 2))
    assert index["y"] + index["height"] > letter["y"] + letter["height"]  # h with a small i below the line
    context.close()
