"""The explorer in a real browser, from the choice of columns to the saved rule: by mouse and by keyboard."""

import csv
import json
import shlex
import subprocess
import sys

import pytest
from opened_page import assert_accessible

import fairramp
from explored import exploring

pytestmark = pytest.mark.browser


class Opened:
    """The explorer's page, with what its console says and what it requests."""

    def __init__(self, page, address):
        self.page, self.address, self.complaints, self.requests = page, address, [], []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(address)

    def moved(self, act):
        """Do something that makes the page ask, and wait for the answer to be drawn."""
        before = self.ready
        act()
        for _ in range(600):
            if self.ready != before and not self.page.locator("#report[aria-busy]").count():
                return
            self.page.wait_for_timeout(100)
        pytest.fail("no answer")

    @property
    def ready(self):
        return self.page.evaluate("document.documentElement.dataset.ready ?? ''")

    def text(self, selector):
        return self.page.locator(selector).first.text_content()

    def assert_clean(self):
        assert self.complaints == []
        assert all(url.startswith((self.address, "data:")) for url in self.requests)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, data = tmp_path_factory.mktemp("explore"), fairramp.datasets.load_adult_scores()
    with open(folder / "scores.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "score", "sex", "race", "earns"])
        writer.writerows(zip(data.id, data.score, data.sex, data.race, data.label, strict=True))
    return folder


@pytest.fixture(scope="module")
def explorer(folder):
    with exploring(folder, "scores.csv", "--out", "out") as found:
        yield found


@pytest.fixture
def opened(browser, explorer):
    contexts = []

    def open_(width=1200, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        return Opened(context.new_page(), explorer.address)

    yield open_
    for context in contexts:
        context.close()


def saved_equals_its_command(folder, page):
    """The saved rule is what the fit command on the page writes."""
    page.page.wait_for_selector("#saved pre", timeout=120_000)
    rule = folder / page.text("#saved li code")
    before = rule.read_bytes()
    commands = rule.with_name("commands.txt").read_text()
    assert page.text("#saved pre code") in commands
    rule.unlink()
    line = next(line for line in commands.splitlines() if line.startswith("fairramp fit "))
    command = [sys.executable, "-m", "fairramp.cli", *shlex.split(line)[1:]]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    assert rule.read_bytes() == before
    assert rule.with_name("report.html").exists()
    return fairramp.Rule.load(rule)


def test_by_mouse_from_columns_to_the_saved_rule(folder, opened):
    page = opened()
    page.page.select_option("#group", "race")
    page.page.fill("#decision", "income above $50,000")
    page.moved(lambda: page.page.click("#columns button"))
    assert "Amer-Indian-Eskimo" in page.text("#audit")
    headline = page.text("#report h2[data-say=headline]")
    assert headline.startswith("Meets the limit of 2.0 points")
    assert page.text("#status") == headline
    page.page.locator("#limit-slider").scroll_into_view_if_needed()
    box = page.page.locator("#limit-slider").bounding_box()
    page.moved(lambda: page.page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + box["height"] / 2))
    points = float(page.page.input_value("#limit"))
    assert points > 2
    assert f"{points:.1f} points" in page.text("#report h2[data-say=headline]")
    page.page.click("#pin-0")
    page.moved(lambda: page.page.select_option("#criterion", "equal_opportunity"))
    page.page.click("#pin-1")
    heads = page.page.locator("#pinned thead th").all_text_contents()
    assert heads == ["Rule A", "Rule B", "Now"]
    page.page.fill("#answer-score", "0.41")
    before = page.text("#answer")
    page.moved(lambda: page.page.fill("#cutoff", "0.35"))
    assert page.page.input_value("#answer-score") == "0.41"
    assert page.text("#answer") != before
    page.moved(lambda: page.page.click("text=Use rule A again"))
    assert page.page.input_value("#criterion") == "parity"
    assert float(page.page.input_value("#limit")) == points
    page.assert_clean()
    page.page.click("#save button")
    rule = saved_equals_its_command(folder, page)
    assert rule.max_gap == pytest.approx(points / 100)
    page.assert_clean()


def test_by_keyboard_from_columns_to_the_saved_rule(folder, opened):
    page = opened()
    keys = page.page.keyboard

    def tab_to(selector):
        for _ in range(60):
            keys.press("Tab")
            if page.page.evaluate("s => document.activeElement.matches(s)", selector):
                style = page.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert style != "none", f"{selector} does not show the focus"
                return
        pytest.fail(f"Tab does not reach {selector}")

    tab_to("#columns button")
    page.moved(lambda: keys.press("Enter"))
    assert page.page.evaluate("document.activeElement.id") == "h-audit"
    tab_to("#limit-slider")
    page.moved(lambda: keys.press("ArrowRight"))
    assert page.page.input_value("#limit") == "2.1"
    assert page.page.evaluate("document.activeElement.id") == "limit-slider"
    tab_to("#cutoff")
    keys.press("Control+a")
    page.moved(lambda: keys.type("0.4"))
    tab_to("#pin-0")
    keys.press("Enter")
    assert page.page.is_visible("#pins")
    tab_to("#answer-score")
    keys.type("0.3")
    assert page.text("#answer")
    tab_to("#save button")
    keys.press("Enter")
    rule = saved_equals_its_command(folder, page)
    assert (rule.max_gap, rule.cutoff) == (0.021, 0.4)
    page.assert_clean()


def test_a_refusal_keeps_the_last_rule(opened):
    page = opened()
    page.moved(lambda: page.page.click("#columns button"))
    page.moved(lambda: page.page.select_option("#criterion", "equal_opportunity"))
    before = page.text("#report")
    page.page.select_option("#target", "optimal")
    page.page.wait_for_selector("#problem:not(:empty)")
    assert "the scores alone cannot choose error rates" in page.text("#problem")
    assert page.text("#report") == before
    assert_nothing_saved(page)
    page.moved(lambda: page.page.select_option("#target", ""))
    assert page.text("#problem") == ""


def assert_nothing_saved(page):
    page.page.click("#save button")
    page.page.wait_for_selector("#save-problem:not(:empty)")
    assert "Nothing was saved" in page.text("#save-problem")
    assert not any(url.endswith("/save") for url in page.requests)


def test_columns_that_were_not_read_are_not_saved(opened):
    page = opened()
    page.moved(lambda: page.page.click("#columns button"))
    page.page.select_option("#group", "race")
    assert "columns that were read before" in page.text("#columns-problem")
    assert_nothing_saved(page)
    page.page.select_option("#group", "sex")
    assert page.text("#columns-problem") == ""


def test_a_column_without_numbers_is_a_sentence_beside_the_form(opened):
    page = opened()
    page.page.select_option("#score", "race")
    page.page.click("#columns button")
    page.page.wait_for_selector("#columns-problem:not(:empty)")
    assert "is not a number between 0 and 1 in 24,421 rows" in page.text("#columns-problem")
    assert not page.page.is_visible("#work")


def test_the_note_on_the_direction_follows_the_choice(opened):
    page = opened()
    page.moved(lambda: page.page.click("#columns button"))
    assert not page.page.is_visible("#warnings")
    page.moved(lambda: page.page.select_option("#direction", "low"))
    assert "Scores are higher for the favorable outcome" in page.text("#warnings")
    page.moved(lambda: page.page.select_option("#direction", "high"))
    assert not page.page.is_visible("#warnings")


def test_the_button_says_that_it_reads_until_the_rows_are_read(opened):
    page = opened()
    page.moved(lambda: page.page.click("#columns button"))
    page.page.select_option("#direction", "low")  # this move is still being answered
    page.moved(lambda: page.page.click("#columns button"))
    page.page.wait_for_selector("#columns button:not([aria-busy])")
    assert page.text("#columns button") == "Read again"
    assert page.page.evaluate("document.activeElement.id") == "h-audit"


def test_numbers_of_charts_follow_the_moves(opened):
    page = opened()
    page.moved(lambda: page.page.click("#columns button"))
    for gap in ("5", "0"):
        page.moved(lambda gap=gap: page.page.fill("#limit", gap))
        cells = page.page.locator("#table-people tbody tr").all()
        rates = [cell.locator("td").nth(2).text_content().split(" ")[0] for cell in cells]
        for _ in range(40):
            texts = page.page.locator("#chart-selection text").all_text_contents()
            if set(rates) <= set(texts):
                break
            page.page.wait_for_timeout(50)
        assert set(rates) <= set(texts)


def test_another_page_cannot_use_the_explorer(browser, explorer):
    page = browser.new_page()
    page.goto("data:text/html,<p>another page")
    script = """async ([address, body]) => {
      try { return (await fetch(address, { method: "POST", body, mode: "no-cors" })).type; }
      catch (error) { return "blocked"; }
    }"""
    found = page.evaluate(script, [f"{explorer.address}save", json.dumps({})])
    assert found in ("opaque", "blocked")  # no answer can be read
    page.goto(f"data:text/html,<a href='{explorer.address}'>open")
    page.click("a")
    assert "Requests from other pages are refused" in page.text_content("body")
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1200])
def test_the_page_fits_and_is_accessible(opened, axe, width, scheme):
    page = opened(width, scheme)
    page.moved(lambda: page.page.click("#columns button"))
    page.page.click("#pin-0")
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    page.page.evaluate(axe)
    assert_accessible(page, scheme)
    page.assert_clean()
