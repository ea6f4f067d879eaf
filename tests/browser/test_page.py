"""The report in a real browser: it loads, responds to the slider, prints and is accessible.

Uses Debian's Chromium without a network; axe-core, the accessibility checker, comes from npm.
"""

import json
import os
import re
import shutil
import subprocess
import tarfile
import warnings
from pathlib import Path

import numpy as np
import pytest

import fairramp
from fairramp.core.events import SELECTION

pytestmark = pytest.mark.browser

CACHE = Path(os.environ.get("FAIRRAMP_BROWSER_CACHE", Path(__file__).parents[2] / ".cache" / "axe-core"))


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


class Opened:
    """An open page with its console messages and requests."""

    def __init__(self, page, complaints, requests):
        self.page, self.complaints, self.requests = page, complaints, requests

    def move_to(self, at):
        self.page.evaluate(
            "at => { const s = document.getElementById('limit'); s.value = at; "
            "s.dispatchEvent(new Event('input')); }",
            at,
        )

    def text(self, selector):
        return self.page.locator(selector).first.inner_text()

    def cells(self, attribute=None):
        """Text, or an attribute, of each table cell."""
        take = "c => c.textContent" if attribute is None else f"c => c.getAttribute('{attribute}')"
        return self.page.evaluate(
            f"[...document.querySelectorAll('#rule tbody tr')].map(r => [...r.cells].map({take}))"
        )


@pytest.fixture
def opened(browser, tmp_path):
    """Open a report offline."""
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
    """Report on made-up rows for the given groups."""

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


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "\"quotes\" & 'more' `ticks` ${x}",
    "👩‍🚀 🇪🇺",
    "مجموعة",
    "\u202eright to left",
    "x" * 200,
    "{{ 7 * 7 }}",
    "datum.g]; alert(3)",
    "new\nline",
]


def exact(title):
    return [float(part) for part in title.split(" – ")]


def test_loads_cleanly_and_offline(opened, adult_report):
    page = opened(adult_report)
    page.move_to(0)
    page.page.wait_for_timeout(200)
    assert page.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in page.requests)
    assert page.page.locator(".chart svg").count() == 4
    assert len(adult_report.html.encode()) < 3_000_000


def test_slider_shows_the_library_numbers(opened, adult, adult_report):
    page = opened(adult_report)
    gaps = [outcome.max_gap for outcome in adult_report.content.outcomes]
    for at in (0, len(gaps) // 2, len(gaps) - 1, adult_report.content.own):
        page.move_to(at)
        rule = fairramp.fit_rule(adult.score, adult.sex, max_gap=gaps[at])
        found = fairramp.audit(adult.score, adult.sex, adult.label, rule=rule)
        titles = page.cells("title")
        headings = page.page.locator("#rule thead th").all_inner_texts()
        for i in range(2):
            row = dict(zip(headings, titles[i], strict=False))
            assert exact(row["threshold"]) == pytest.approx([rule.thresholds[i]], rel=1e-11)
            assert exact(row["rate after"]) == pytest.approx([found.after.rate[i]], rel=1e-11)
            assert exact(row["newly selected"]) == pytest.approx([found.changed_to_yes[i]], rel=1e-11, abs=1e-15)
            assert exact(row["no longer selected"]) == pytest.approx(
                [found.changed_to_no[i]], rel=1e-11, abs=1e-15
            )
            assert exact(row["accuracy"]) == pytest.approx([found.after.accuracy[i]], rel=1e-11)
            limits = exact(titles[i][len(titles[i]) - 1 - headings[::-1].index("95% CI")])
            assert limits == pytest.approx([found.after.lower[i], found.after.upper[i]], rel=1e-11)
            assert page.cells()[i][headings.index("rate after")] == f"{100 * found.after.rate[i]:.1f}%"
        gap = page.page.locator(".figures [data-say=gap]").get_attribute("title")
        assert float(gap) == pytest.approx(found.gap, rel=1e-11)
        estimated = page.page.locator("[data-say=guarantee]").get_attribute("title")
        assert float(estimated) == pytest.approx(rule.certificate().estimated, rel=1e-11)
        accuracy = page.page.locator(".figures [data-say=accuracy]").get_attribute("title")
        assert float(accuracy) == pytest.approx(found.after.overall_accuracy, rel=1e-11)


def test_python_and_script_render_the_same_text(opened, made):
    page = opened(made(list("abc")))
    before = page.page.evaluate("document.querySelector('main').innerText")
    titles = page.cells("title")
    page.move_to(0)
    page.move_to(made(list("abc")).content.own)
    assert page.page.evaluate("document.querySelector('main').innerText") == before
    assert page.cells("title") == titles


def test_keyboard_and_mouse_move_the_slider(opened, adult_report):
    page = opened(adult_report)
    own = adult_report.content.own
    page.page.keyboard.press("Tab")  # the link that skips to the slider
    page.page.locator("#limit").focus()
    page.page.keyboard.press("ArrowRight")
    expected = adult_report.content.outcomes[own + 1]
    assert float(page.page.locator(".dial output").get_attribute("title")) == expected.max_gap
    assert page.page.locator("#limit").get_attribute("aria-valuetext") == page.text(".dial output")
    box = page.page.locator("#limit").bounding_box()
    page.page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
    last = adult_report.content.outcomes[-1]
    assert float(page.page.locator(".dial output").get_attribute("title")) == last.max_gap
    assert "not the reported rule" in page.text(".where")
    page.page.locator("#back").click()
    assert float(page.page.locator(".dial output").get_attribute("title")) == 0.02
    assert "This is the reported rule." in page.text(".where")


@pytest.mark.parametrize(
    "settings",
    [
        {"criterion": "equal_opportunity", "max_gap": 0.02},
        {"criterion": "predictive_equality", "min_ratio": 0.8, "overall_rate": 0.3},
        {"criterion": "equalized_odds", "max_gap": 0.02},
        {"min_ratio": 0.8},
    ],
)
def test_slider_shows_the_rates_of_the_criterion(opened, adult, settings):
    own = fairramp.fit_rule(adult.score, adult.sex, adult.label, **settings)
    report, event = own.report(adult.score, adult.sex, adult.label), own.event
    page, outcomes, names = opened(report, width=375), report.content.outcomes, ("Female", "Male")
    for at in (0, len(outcomes) - 1, report.content.own):
        page.move_to(at)
        limit = {"max_gap": outcomes[at].max_gap, "min_ratio": outcomes[at].min_ratio}
        rule = fairramp.fit_rule(adult.score, adult.sex, adult.label, **(settings | limit))
        chances = rule.probabilities(adult.score, adult.sex)
        headings = page.page.locator("#rule thead th").all_inner_texts()
        table = [dict(zip(headings, titles, strict=False)) for titles in page.cells("title")]
        for row, name, ramp in zip(table, names, rule.ramps, strict=True):
            assert exact(row["ramp to"]) == pytest.approx([ramp.foot + ramp.width], rel=1e-9)
            if event is not SELECTION:
                selected = float(chances[adult.sex == name].mean())
                assert exact(row["selected after"]) == pytest.approx([selected], rel=1e-9)
        for part in event.simple:
            rows = slice(None) if part.label is None else adult.label == part.label
            rates = [float(chances[rows][adult.sex[rows] == name].mean()) for name in names]
            for row, rate in zip(table, rates, strict=True):
                assert exact(row[f"{part.short} after"]) == pytest.approx([rate], rel=1e-9)
            drawn = page.page.locator(f"#chart-{part.name if event.parts else 'rates'}").text_content()
            assert all(f"{100 * rate:.1f}%" in drawn for rate in rates)
            key = f"gap_{part.name}" if event.parts else "gap"
            gap = page.page.locator(f".figures [data-say={key}]").get_attribute("title")
            assert float(gap) == pytest.approx(max(rates) - min(rates), abs=1e-9)
        if not event.parts:
            ratio = page.page.locator(".figures [data-say=ratio]").get_attribute("title")
            assert float(ratio) == pytest.approx(min(rates) / max(rates), rel=1e-9)
        shown = float(page.page.locator(".dial output").get_attribute("title"))
        assert shown in limit.values()
        assert page.page.locator("#limit").get_attribute("aria-valuetext") == page.text(".dial output")
        said = ["Nothing changes"] if outcomes[at].stands else [e.rate.capitalize() for e in event.simple]
        assert all(words in page.text("[data-say=verdict]") for words in said)
    assert page.page.locator(".chart svg").count() == (4 if event is SELECTION else 4 + len(event.simple))
    assert page.complaints == []
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 375


def test_charts_move_with_the_slider(opened, adult_report):
    page = opened(adult_report)

    def drawn():
        page.page.wait_for_timeout(300)
        return {
            name: page.page.inner_html(f"#chart-{name}") for name in ("scores", "rates", "changes", "frontier")
        }

    first = drawn()
    page.move_to(0)
    second = drawn()
    assert all(first[name] != second[name] for name in first)
    rates = adult_report.content.outcomes[0].after.rate
    assert f"{100 * rates[0]:.1f}%" in page.page.locator("#chart-rates").text_content()


@pytest.mark.parametrize("width", [380, 768, 1600])
def test_no_horizontal_scrolling(opened, made, width):
    page = opened(made(["a", "b" * 200, "c d " * 40]), width=width)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(opened, made, axe, scheme):
    page = opened(made(["a", "b", "c"]), scheme=scheme)
    page.page.evaluate(axe)
    found = page.page.evaluate("axe.run()")
    bad = [
        (v["id"], v["nodes"][0]["html"]) for v in found["violations"] if v["impact"] in ("serious", "critical")
    ]
    assert bad == []
    assert len(found["passes"]) > 20  # axe did run


def test_hostile_group_names_stay_text(opened, made):
    report = made(HOSTILE)
    page = opened(report, width=1600)
    page.move_to(1)
    page.page.locator("#chart-rates .mark-symbol path").first.hover()
    page.page.wait_for_selector("#vg-tooltip-element.visible")
    assert report.content.groups[0].name in page.text("#vg-tooltip-element")
    assert page.complaints == []
    assert page.page.locator("img").count() == 0
    assert page.page.locator("script").count() == 3
    shown = [row[0].removesuffix(" few rows") for row in page.cells()]
    assert shown == [group.name for group in report.content.groups]
    for name in ("<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "{{ 7 * 7 }}", "مجموعة"):
        assert name in shown
        drawn = page.page.evaluate("[...document.querySelectorAll('.chart text')].map(t => t.textContent)")
        assert name in drawn


def test_hostile_title_and_column_names_stay_text(opened, adult):
    bad = "<img src=x onerror=alert(1)></title></script>"
    rule = fairramp.fit_rule(adult.score, {bad: adult.sex}, max_gap=0.02)
    page = opened(rule.report(adult.score, {bad: adult.sex}, title=bad))
    assert page.complaints == []
    assert page.text("h1") == bad
    assert bad in page.text(".lead")
    assert page.page.locator("#rule thead th").first.inner_text() == bad
    assert page.page.locator("img").count() == 0


@pytest.mark.parametrize(("n_groups", "labels"), [(1, True), (2, False), (12, True), (200, True)])
def test_few_and_many_groups(opened, made, n_groups, labels):
    report = made([f"group {i:03}" for i in range(n_groups)], n=8000, labels=labels)
    page = opened(report)
    page.move_to(0)
    page.page.wait_for_timeout(200)
    assert page.complaints == []
    assert len(page.cells()) == n_groups
    names = page.page.evaluate("[...document.querySelectorAll('#chart-rates text')].map(t => t.textContent)")
    assert sum(name.startswith("group ") for name in names) == min(n_groups, 12)
    assert page.page.locator("#chart-frontier").count() == labels
    assert len(report.html.encode()) < 3_000_000


def test_rule_that_changes_nothing(opened, made):
    page = opened(made(["a", "b"], equal=True))
    assert page.complaints == []
    assert "Nothing changes" in page.text(".verdict")
    assert page.text(".figures [data-say=changed]") == "0.0%"


def test_printout_is_complete(opened, adult_report, tmp_path):
    page = opened(adult_report, scheme="dark")
    page.move_to(3)
    page.page.emulate_media(media="print")
    assert not page.page.locator("#limit").is_visible()
    assert page.page.locator(".dial output").is_visible()
    assert page.text(".dial output") == "1.5 points"
    for selector in (
        "#rule",
        ".verdict",
        ".guarantee",
        ".limits-of-this",
        ".sign",
        ".origin",
        "#chart-scores svg",
    ):
        assert page.page.locator(selector).is_visible()
    assert page.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.page.set_viewport_size({"width": 720, "height": 1000})  # A4 minus margins
    wide = page.page.evaluate(
        "[...document.querySelectorAll('.scroll')].some(e => e.scrollWidth > e.clientWidth + 1)"
    )
    assert not wide
    pdf = page.page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8


def test_json_has_every_number_on_the_page(opened, made):
    report = made(list("abcd"))
    page = opened(report)
    known = set()

    def collect(value):
        if isinstance(value, dict):
            for part in value.values():
                collect(part)
        elif isinstance(value, list):
            for part in value:
                collect(part)
        elif isinstance(value, int | float):
            known.add(f"{value:.12g}")

    collect(json.loads(report.to_json()))
    for at in range(len(report.content.outcomes)):
        page.move_to(at)
        titles = page.page.evaluate("[...document.querySelectorAll('main [title]')].map(e => e.title)")
        shown = {f"{float(part):.12g}" for title in titles if title for part in title.split(" – ")}
        assert shown <= known
