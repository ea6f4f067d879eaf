"""The report in a real browser: its numbers, the slider, the printout, the layout and its accessibility.

Uses Debian's Chromium without a network; axe-core, the accessibility checker, comes from npm. Every test also
checks that the page logs nothing, opens no dialog and requests nothing.
"""

import csv
import io
import json
import math
import re
import warnings
from functools import cache

import numpy as np
import pytest
from opened_page import assert_accessible, assert_texts_fit, rgb, squeezed

import fairramp
from fairramp import Ramp, Rule
from fairramp.core.words import fixed, number, percent, points, with_interval
from fairramp.show.answers import chance_text
from fairramp.show.report.say import say
from fairramp.show.words import people, unmarked
from samples import quiet_fit

pytestmark = pytest.mark.browser

WIDTHS = (380, 768, 1200, 1600)
SCHEMES = ("light", "dark", "print")
#: Verdicts and the variables of their colors.
VERDICTS = {"within": "met", "undecided": "open", "exceeded": "missed", "what-if": "what-if"}


# Reports ----------------------------------------------------------------------------------------


@cache
def adult():
    return fairramp.datasets.load_adult_scores()


def rows(n_groups, n=3000, seed=0):
    """Scores, group codes and labels; rates rise with the code, and each group has at least one row."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, n)])
    scores = np.clip(0.8 * rng.beta(2, 3, len(codes)) + 0.25 * codes / n_groups, 0, 1).round(4)
    return scores, codes, (rng.random(len(codes)) < scores).astype(int)


def made(names, n=3000, labels=True, given=(), **settings):
    """A report on made-up rows of groups with these names; `given` are arguments of `Rule.report`."""
    scores, codes, y = rows(len(names), n)
    groups = [names[code] for code in codes]
    needed = y if "criterion" in settings else None
    rule = quiet_fit(scores, groups, needed, **({"max_gap": 0.02} | settings))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairramp.FairrampWarning)
        return rule.report(scores, groups, y if labels else None, **dict(given))


def numbered(n):
    return [f"group {i:03}" for i in range(n)]


LONG = [
    "Native Hawaiian or other Pacific Islander",
    "b" * 200,
    "many short words " * 12,
    "Person of two or more origins, not stated elsewhere",
    "A",
]


def _adult(**settings):
    d = adult()
    rule = fairramp.fit_rule(d.score, d.sex, d.label if "criterion" in settings else None, **settings)
    return rule.report(d.score, d.sex, d.label, title="Income above $50,000")


def _strata():
    scores, codes, y = rows(2)
    strata = np.array(["north", "south"])[np.random.default_rng(5).integers(0, 2, len(scores))]
    rule = quiet_fit(scores, codes, strata=strata, max_gap=0.02)
    return rule.report(scores, codes, y, strata=strata)


def _tiny_groups():
    scores, codes, y = rows(4)
    codes[codes == 3] = 0
    codes[:5] = 3, 3, 3, 4, 4
    rule = quiet_fit(scores, codes, max_gap=0.05)
    return rule.report(scores, codes, y)


def _tiny_rates():
    """One group has a rate of 0.001%: one row of weight 1 beside a weight of 99,999."""
    scores = np.concatenate([np.linspace(0.01, 0.49, 999), [0.9]] * 2 + [[0.8]])
    codes = np.repeat([0, 1], [1000, 1001])
    weights = np.where(scores > 0.5, 1.0, 99_999 / 999)
    rule = quiet_fit(scores, codes, sample_weight=weights, max_gap=0.0)
    return rule.report(scores, codes, (scores > 0.6).astype(int), sample_weight=weights)


def _compare():
    scores, codes, y = rows(4)
    one, two = quiet_fit(scores, codes, max_gap=0.02), quiet_fit(scores, codes, max_gap=0.1, ramp_width=0.2)
    return one.report(scores, codes, y, compare=two, compare_name="in force.json")


def _exceeded():
    scores, codes, _ = rows(2)
    rule = quiet_fit(scores, codes, max_gap=0.02)
    return rule.report(np.where(codes == 1, np.minimum(scores + 0.3, 1), scores), codes)


def _mixing(each):
    """A rule by group probabilities, or by each of two attributes, on rows that it was not fitted on."""
    rng = np.random.default_rng(7)
    scores, sex, labels = rows(2, n=4000)
    q = np.clip(np.where(sex == 1, 0.8, 0.2) + 0.2 * (rng.random(len(sex)) - 0.5), 0, 1)
    race = rng.choice(["a", "b", "c"], len(sex))
    fit, new = slice(0, 2000), slice(2000, None)
    if each:
        columns = {"sex": sex, "race": race}
        one, other = ({name: column[part] for name, column in columns.items()} for part in (fit, new))
        return quiet_fit(scores[fit], one, combine="each", max_gap=0.02).report(scores[new], other, labels[new])
    one, other = (fairramp.GroupProbabilities({0: 1 - q[part], 1: q[part]}) for part in (fit, new))
    rule = quiet_fit(scores[fit], one, max_gap=0.02)
    return rule.report(scores[new], sex[new], labels[new], group_probabilities=other)


HOSTILE = [
    '=cmd|" /C calc"!A0',
    "=cmd()",
    "+1+1",
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "\"quotes\" & 'more' `ticks` ${x}",
    "a | b",
    "👩‍🚀 🇪🇺",
    "مجموعة",
    "\u202eright to left",
    "x" * 200,
    "{{ 7 * 7 }}",
    "{{x}}",
    "datum.g]; alert(3)",
    "new\nline",
]
LITERAL = [name for name in HOSTILE if len(name) < 80 and name.isprintable()]


def _hostile():
    scores, codes, y = rows(len(HOSTILE))
    groups = [HOSTILE[code] for code in codes]
    rule, other = (quiet_fit(scores, groups, max_gap=gap) for gap in (0.02, 0.1))
    bad = "<img src=x onerror=alert(4)>"
    return rule.report(scores, groups, y, compare=other, compare_name=bad, owner=bad, decision=bad, source=bad)


KINDS = {
    "hostile": _hostile,
    "adult": lambda: _adult(max_gap=0.02),
    "adult ratio": lambda: _adult(min_ratio=0.8),
    "opportunity": lambda: _adult(criterion="equal_opportunity", max_gap=0.02),
    "odds": lambda: made(["a", "b", "c"], criterion="equalized_odds", max_gap=0.05),
    "strata": _strata,
    "no labels": lambda: made(numbered(3), labels=False),
    "2 groups": lambda: made(["a", "b"]),
    "9 groups": lambda: made([*LONG, "b", "c", "d", "e"]),
    "30 groups": lambda: made([*LONG, *numbered(25)]),
    "one group": lambda: made(["a"]),
    "tiny groups": _tiny_groups,
    "tiny rates": _tiny_rates,
    "compare": _compare,
    "steps": lambda: made(["a", "b"], ramp_width=0),
    "within": lambda: made(["a", "b"], max_gap=0.15, confidence=0.95),
    "exceeded": _exceeded,
    "soft": lambda: _mixing(each=False),
    "each": lambda: _mixing(each=True),
}


@cache
def report_of(kind):
    return KINDS[kind]()


# The page ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept(open_page, request):
    """A page that several tests use; pytest runs the tests of one page one after the other."""
    page = open_page(report_of(request.param))
    page.kind = request.param
    yield page
    page.page.context.close()


@pytest.fixture
def page(kept):
    """The same page as if it were just opened."""
    kept.reset()
    yield kept
    kept.assert_clean()


def on(*kinds):
    return pytest.mark.parametrize("kept", kinds, indirect=True)


# Numbers ----------------------------------------------------------------------------------------


def assert_number(shown, text, *values):
    """Check a text and the numbers in its title."""
    assert shown[0] == text
    found = [float(part.replace("∞", "inf")) for part in shown[1].split(" – ")] if shown[1] else []
    known = [value for value in values if not math.isnan(value)]
    assert found == pytest.approx(known, rel=1e-11, abs=1e-14)


def interval(spelled, value, limits):
    return with_interval(*map(spelled, (value, *limits)))


def two(value):
    return number(value, 2)


def expected_figures(content, o):
    """Text and exact values of the numbers about everybody, by key."""
    found = {
        "limit": (None, o.max_gap if o.min_ratio is None else o.min_ratio),
        "overall_rate": (percent(o.overall_rate), o.overall_rate),
        "changed_number": (people(o.people.changed) or "0", o.people.changed),
        "drawn_number": (people(o.people.drawn) or "0", o.people.drawn),
        "selected_number": (None, o.people.selected - content.people_before.selected),
    }
    for event in content.event.simple:
        rates = o.after.rates[event.name]
        found |= {
            f"gap_{event.name}": (
                interval(points, rates.gap, rates.gap_interval),
                rates.gap,
                *rates.gap_interval,
            ),
            f"ratio_{event.name}": (
                interval(two, rates.ratio, rates.ratio_interval),
                rates.ratio,
                *rates.ratio_interval,
            ),
        }
    if o.guarantee.estimated is not None:
        found["guarantee"] = (o.guarantee.sentence, o.guarantee.estimated)
    if content.labeled:
        accuracy, limits = o.after.overall_accuracy, o.accuracy_interval
        found["accuracy"] = (interval(percent, accuracy, limits), accuracy, *limits)
        found["wrong_number"] = (None, o.people.wrong - content.people_before.wrong)
    return found


def expected_tables(content, o):
    """The columns of each table as (form, values of each part)."""
    named = {
        "selection": lambda found: found.rates["selection"],
        "true_positive": lambda found: found.rates["true_positive"],
        "false_positive": lambda found: found.rates["false_positive"],
    }

    def rates(name):
        of = named[name]
        return [("rate", r.rate, r.lower, r.upper) for r in (of(content.before), of(o.after))]

    ramps = [(a, b) for x in content.outcomes for a, b in zip(x.ramp_from, x.ramp_to, strict=True)]
    found = {
        "rule": [
            ("count", content.sizes),
            ("score", o.thresholds if o.shifts is None else o.shifts),
            *([("ends", o.ramp_from, o.ramp_to)] if any(a != b and a == a for a, b in ramps) else []),
        ],
        "people": [
            ("count", content.sizes),
            *rates("selection"),
            ("people", o.people.to_yes, o.changed_to_yes),
            ("people", o.people.to_no, o.changed_to_no),
        ],
    }
    if content.labeled:
        parts = []
        for name in ("true_positive", "false_positive"):
            parts += [("count", content.before.rates[name].rows), *rates(name)]
        found["errors"] = [*parts, ("share", content.before.accuracy), ("share", o.after.accuracy)]
    return found


def spelled_score(value):
    return number(value, 0) if math.isinf(value) else fixed(value, 4)


FORMS = {
    "count": "{:,}".format,
    "score": spelled_score,
    "ends": lambda start, end: f"{spelled_score(start)} to {spelled_score(end)}",
    "share": percent,
    "rate": lambda *rate: with_interval(*map(percent, rate)),
    "people": lambda n, share: f"{people(n)} ({percent(share)})" if people(n) else "0",
}


def assert_shows(page, at):
    """Check every text and number of the page at a position of the slider."""
    content, o, found = page.content, page.content.outcomes[at], page.read()
    said = say(content, o)
    slides = len(content.outcomes) > 1
    wanted = {"headline", "on_people", "guarantee", *(["limit", "command"] if slides else [])}
    assert {key for key, *_ in found["said"]} >= wanted
    figures = expected_figures(content, o)
    for key, text, title in found["said"]:
        assert text == said[key][0], key
        if key in figures:
            expected, *values = figures[key]
            assert_number((text, title), text if key.endswith("_number") or not expected else expected, *values)
            assert not expected or text.startswith(expected)
        elif title:
            pytest.fail(f"{key} has a number that is not compared with the content")
    shown = {key: text for key, text, _ in found["said"]}
    assert shown["headline"].endswith(o.judgment.headline)
    assert shown["headline"].startswith("What-if") == (at != content.own)
    assert (shown["on_people"], shown["small"]) == (o.judgment.on_people, o.judgment.small)
    assert shown["advice"] == (o.judgment.advice if at == content.own else "")
    assert shown.get("command", "") == o.command
    for rest, share in {"changed": o.changed, "drawn": o.drawn, "selected": o.overall_rate}.items():
        assert percent(share) in shown[f"{rest}_rest"]
    assert found["limit"] == shown.get("limit")
    for name, rates in o.after.rates.items():
        there = [i for i, rate in enumerate(rates.rate) if rate == rate]
        large = [i for i in there if not content.groups[i].small]
        known = [rates.rate[i] for i in (large if len(large) > 1 else there)]  # small groups do not lead
        assert all(percent(rate) in found["labels"][f"label_{name}"] for rate in (min(known), max(known)))
    tables = expected_tables(content, o)
    assert tables.keys() == found["tables"].keys()
    for key, columns in tables.items():
        for i, group in enumerate(content.groups):
            head, *cells = found["tables"][key][i]
            assert head[0].startswith(group.name)
            for (form, *parts), cell in zip(columns, cells, strict=False):
                values = [part[i] for part in parts]
                if math.isnan(values[0]):
                    assert cell == ["–", ""]
                else:
                    assert_number(cell, FORMS[form](*values), *values)
            assert (
                len(cells) == len(columns) or key == "rule"
            )  # the rule may have columns for steps and constants


def assert_drawn(page, at):
    """Check the numbers of the charts at a position of the slider."""
    content, o = page.content, page.content.outcomes[at]
    for name, rates in o.after.rates.items():
        shown = [*rates.rate, *content.before.rates[name].rate]
        page.wait_for_texts(name, [percent(rate) for rate in shown if rate == rate])
    first = content.event.simple[0].name
    page.wait_for_texts(first, [people(n) for n in (*o.people.to_yes, *o.people.to_no) if people(n)])
    page.wait_for_texts("scores", [fixed(t, 3) for t in o.thresholds if t == t])


@on(
    *("adult", "adult ratio", "opportunity", "odds", "strata", "no labels", "9 groups", "tiny groups", "steps"),
    *("soft", "each"),
)
def test_every_position_shows_the_numbers_of_the_content(page):
    last = len(page.content.outcomes) - 1
    assert_shows(page, page.content.own)
    for at in (*range(last + 1), page.content.own):
        page.move_to(at)
        assert_shows(page, at)
        if at in (0, last // 2, last, page.content.own):
            assert_drawn(page, at)
    labeled, event = page.content.labeled, page.content.event
    charts = set(page.content.before.rates) | {"scores"} | ({"frontier"} if labeled and last else set())
    assert set(page.texts()) == charts
    assert {part.name for part in event.simple} <= charts


@on("adult")
def test_page_is_small_and_needs_no_network(page):
    assert len(report_of("adult").html.encode()) < 3_000_000
    assert len(page.requests) <= 2  # the page itself and its empty icon


@on("tiny rates")
def test_charts_show_tiny_rates_like_the_tables(page):
    for at in range(len(page.content.outcomes)):
        page.move_to(at)
        assert_shows(page, at)
        assert_drawn(page, at)


@on("adult", "odds", "soft", "each")
def test_without_scripts_the_page_shows_the_same_numbers(page, opened):
    plain = opened(page.report, script=False)
    without, with_script = plain.read(), page.read()
    assert without["said"] == with_script["said"]
    assert without["labels"] == with_script["labels"]
    texts = [
        {key: [[cell[0] for cell in row] for row in table] for key, table in found["tables"].items()}
        for found in (without, with_script)
    ]
    assert texts[0] == texts[1]
    assert plain.is_shown("noscript p")
    assert plain.is_shown("#approval")
    assert plain.page.locator(".bar").get_attribute("data-verdict") == page.content.chosen.judgment.worse


@on("2 groups", "compare", "odds")
def test_json_has_every_number_on_the_page(page):
    content, known = page.content, set()

    def collect(value):
        if isinstance(value, dict | list):
            for part in value.values() if isinstance(value, dict) else value:
                collect(part)
        elif isinstance(value, int | float):
            known.add(f"{value:.12g}")

    collect(json.loads(content.to_json()))
    before, differences = content.people_before, set()
    for o in content.outcomes:  # the only numbers that are computed from two others
        differences.add(f"{o.people.selected - before.selected:.12g}")
        differences.add(f"{o.people.wrong - before.wrong:.12g}")
    for at in range(len(content.outcomes)):
        page.move_to(at)
        titles = page.page.evaluate("[...document.querySelectorAll('main [title]')].map(e => e.title)")
        parts = [part for title in titles if title for part in re.split(r" – |[ ()]+", title) if part]
        assert {f"{float(part):.12g}" for part in parts} <= known | differences


# The slider -------------------------------------------------------------------------------------


def test_everything_works_with_the_keyboard(opened):
    page = opened(report_of("adult"))
    content, keys = page.content, page.page.keyboard
    outcomes, own = content.outcomes, content.own

    def limit():
        return float(page.page.locator("[data-say=limit]").get_attribute("title"))

    keys.press("Tab")
    assert page.page.evaluate("document.activeElement.getAttribute('href')") == "#controls"
    keys.press("Enter")
    page.tab_to("#limit", most=1)
    steps = {"ArrowRight": own + 1, "ArrowUp": own + 2, "ArrowLeft": own + 1, "ArrowDown": own}
    steps |= {"Home": 0, "End": len(outcomes) - 1}
    for key, at in steps.items():
        keys.press(key)
        assert limit() == outcomes[at].max_gap
        assert page.page.locator("#limit").get_attribute("aria-valuetext") == page.text("[data-say=limit]")
        assert page.is_shown("#approval") == (at == own)
    page.tab_to("#back", most=1)
    page.tab_to("#copy", most=1)
    keys.press("Enter")
    page.until("() => document.getElementById('copy').textContent !== 'Copy'")
    assert page.page.evaluate("navigator.clipboard.readText()") == outcomes[-1].command
    page.tab_to("#back", backward=True, most=1)
    keys.press("Enter")
    assert limit() == content.chosen.max_gap == 0.02
    assert page.page.evaluate("document.activeElement.id") == "limit"  # the button is disabled now
    assert page.page.locator("#back").is_disabled()

    page.tab_to("#answer-group")
    keys.press("ArrowDown")
    keys.press("Tab")
    keys.type("0.41")
    rule = fairramp.fit_rule(adult().score, adult().sex, max_gap=0.02)
    assert unmarked(page.text("#answer")) == rule.explain(0.41, "Male").why

    page.tab_to("#approval input[type=radio]", most=3)
    keys.press("Space")
    chosen = "[...document.querySelectorAll('#approval input[type=radio]')].findIndex(i => i.checked)"
    for at in (0, 1, 2):
        assert page.page.evaluate(chosen) == at
        keys.press("ArrowDown")
    for text in ("Only in Berlin", "2027", "A. Person, head of risk", "today"):
        page.tab_to("#approval textarea, #approval input[type=text]", most=1)
        keys.press("ControlOrMeta+a")
        keys.type(text)
    written = page.page.evaluate(
        "[...document.querySelectorAll('#approval textarea, #approval input[type=text]')].map(e => e.value)"
    )
    assert written == ["Only in Berlin", "2027", "A. Person, head of risk", "today"]


@on("adult")
def test_mouse_moves_the_slider_and_the_charts(page):

    def drawn():
        page.settle()
        charts = page.page.evaluate("[...document.querySelectorAll('.chart')].map(c => [c.id, c.innerHTML])")
        return dict(charts), {name: sorted(t["text"] for t in c["texts"]) for name, c in page.texts().items()}

    first, texts = drawn()
    slider = page.page.locator("#limit")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    page.page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
    assert_shows(page, len(page.content.outcomes) - 1)
    second, _ = drawn()
    assert all(first[name] != second[name] for name in first)
    page.page.locator("#back").click()
    assert_shows(page, page.content.own)
    assert drawn()[1] == texts


def test_copy_selects_the_command_if_the_clipboard_is_not_allowed(opened):
    page = opened(report_of("2 groups"))
    at = page.what_if()
    page.page.evaluate(
        "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')); }"
    )
    page.page.locator("#copy").click()
    page.until("() => getSelection().toString() !== ''")
    assert page.page.evaluate("getSelection().toString()") == page.content.outcomes[at].command


@on("adult", "adult ratio", "odds", "no labels")
def test_what_if_cannot_be_approved(page):
    content, own = page.content, page.content.own
    before = page.read(), page.shown()
    assert page.is_shown("#approval")
    assert not page.is_shown("#command")
    assert page.page.locator("[data-what-if]:visible").count() == 0
    for at in {0, len(content.outcomes) - 1} - {own}:
        page.move_to(at)
        assert page.page.locator(".bar").get_attribute("data-verdict") == "what-if"
        assert not page.is_shown("#approval")
        assert page.page.locator("#approval :visible").count() == 0
        assert page.page.get_by_role("radio").count() == 0
        assert page.is_shown("#command")
        assert page.text("#command") == content.outcomes[at].command
        assert page.text("#command").startswith("fairramp fit ")
        limit = (
            content.outcomes[at].max_gap
            if content.outcomes[at].min_ratio is None
            else content.outcomes[at].min_ratio
        )
        assert (
            f" {'--max-gap' if content.settings['min_ratio'] is None else '--min-ratio'} {limit:.12g} "
            in page.text("#command")
        )
        page.page.locator("#copy").click()
        page.until("() => document.getElementById('copy').textContent !== 'Copy'")
        assert page.page.evaluate("navigator.clipboard.readText()") == content.outcomes[at].command
    page.page.locator("#back").click()
    page.until("() => document.getElementById('copy').textContent === 'Copy'")
    page.settle()
    assert (page.read(), page.shown()) == before
    assert page.page.locator("[data-what-if]:visible").count() == 0
    assert page.page.locator(".bar").get_attribute("data-verdict") == content.chosen.judgment.worse


# Printing ---------------------------------------------------------------------------------------

NOT_APPROVED = squeezed("What-if: not for approval")
ON_SCREEN_ONLY = ("Try another limit", "Download as CSV", "Hover over", "Nothing that you type")


def block_texts(page):
    """Texts that only the approval block has."""
    texts = page.page.evaluate(
        "[...document.querySelectorAll('#approval legend, #approval .line, #approval .fields label')]"
        ".map(e => e.childNodes[0].textContent.trim() || e.textContent.trim())"
    )
    return [squeezed(text) for text in texts if " " in text or text == texts[-1]]


@on("adult", "30 groups", "odds", "compare")
def test_printed_rule_can_be_approved(page):
    page.emulate("dark")  # paper is white nevertheless
    fingerprint = page.content.rule_fingerprint
    on_screen = page.page.evaluate("[...document.querySelectorAll('.screen')].map(e => e.textContent)")
    block = block_texts(page)
    pages = page.pdf()
    whole = "".join(pages)
    assert 2 <= len(pages) <= 16
    for i, text in enumerate(pages, 1):
        assert fingerprint in text
        assert f"Page{i}of{len(pages)}" in text
        assert NOT_APPROVED not in text
    assert len(block) >= 3
    assert all(text in whole for text in block)
    for text in (*ON_SCREEN_ONLY, *on_screen):
        assert squeezed(text) not in whole, text
    page.emulate("print")
    assert fingerprint in page.page.locator("#approval").inner_text()
    # Not broken between two pages: as often as on the page, and once in each footer.
    body = squeezed(page.page.locator("body").inner_text())
    assert whole.count(fingerprint) == body.count(fingerprint) + len(pages)
    assert squeezed(page.content.title) in pages[0]
    assert squeezed(page.content.chosen.judgment.headline) in pages[0]
    assert squeezed(page.content.chosen.judgment.advice) in pages[0]
    assert page.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@on("adult", "30 groups", "compare")
def test_every_printed_page_of_a_what_if_says_so(page):
    block = block_texts(page)
    own = page.pdf()
    page.what_if()
    pages = page.pdf()
    whole = "".join(pages)
    assert all(NOT_APPROVED in text for text in pages)
    assert not any(text in whole for text in block)
    assert not any(squeezed(text) in whole for text in ON_SCREEN_ONLY)
    page.move_to(page.content.own)
    page.settle()
    assert page.pdf() == own


@on("adult", "9 groups", "30 groups", "compare")
def test_printed_tables_and_charts_fit_the_paper(page):
    page.emulate("print")
    page.page.set_viewport_size({"width": 688, "height": 1000})  # A4 without its margins
    # Chromium shrinks what is a little wider.
    page.settle()
    wide = page.page.evaluate(
        "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > 710)"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert wide == []


# Colors -----------------------------------------------------------------------------------------


@on("within", "2 groups", "exceeded")
def test_verdict_has_its_color(page):
    bar = """() => { const bar = document.querySelector('.bar'); return [bar.dataset.verdict,
      getComputedStyle(bar).borderLeftColor, getComputedStyle(bar, '::before').color]; }"""
    kind = page.content.chosen.judgment.worse
    assert kind == {"2 groups": "undecided"}.get(page.kind, page.kind)
    for what_if in (False, True):
        if what_if:
            page.what_if()
        for scheme in SCHEMES:
            page.emulate(scheme)
            colors = dict(zip(VERDICTS, page.variables(*VERDICTS.values()), strict=True))
            assert len(set(colors.values())) == 4
            verdict, border, color = page.page.evaluate(bar)
            assert verdict == ("what-if" if what_if else kind)
            assert rgb(border) == rgb(color) == colors[verdict]


@on("adult")
def test_verdicts_differ_by_more_than_their_color(page):
    signs = page.page.evaluate(
        """names => names.map(name => {
          const bar = document.querySelector('.bar');
          bar.dataset.verdict = name;
          return getComputedStyle(bar, '::before').content;
        })""",
        list(VERDICTS),
    )
    assert len(set(signs)) == 4


@on("adult", "9 groups", "odds", "tiny groups", "no labels")
def test_colors_of_charts_have_one_meaning(page):
    for what_if in (False, True):
        if what_if:
            page.what_if()
            page.settle()
        for scheme in SCHEMES:
            page.emulate(scheme)
            yes, no, other = page.variables("yes", "no", "what-if")
            found = page.colors()
            assert yes in found
            allowed = {yes, no, other} if what_if else {yes, no}
            assert {color: chart for color, chart in found.items() if color not in allowed} == {}
            assert found.get(other, "chart-frontier") == "chart-frontier"
            assert (other in found) == (what_if and page.content.labeled)
    lines = page.page.evaluate(
        "[...document.querySelectorAll('.chart svg line[stroke-width=\"3\"]')]"
        ".map(e => [Number(e.getAttribute('x2')), e.getAttribute('stroke')])"
    )
    assert lines
    assert all(stroke == ("var(--yes)" if dx >= 0 else "var(--no)") for dx, stroke in lines)


# Layout -----------------------------------------------------------------------------------------


@on(
    *("2 groups", "9 groups", "30 groups", "odds", "tiny groups", "tiny rates", "compare", "adult ratio"),
    *("soft", "each"),
)
def test_layout_at_all_widths(page):
    last = len(page.content.outcomes) - 1
    for width in WIDTHS:
        page.resize(width)
        for at in dict.fromkeys((0, last, page.content.own)):
            page.move_to(at)
            page.settle()
            scroll, client = page.page.evaluate(
                "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
            )
            assert scroll <= client
            assert_texts_fit(page)
            wide = page.page.evaluate(
                "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth)"
                ".map(e => e.querySelector('table').id)"
            )
            assert width < 1200 or wide == [], width


@on("adult", "adult ratio", "odds", "strata", "no labels", "tiny rates")
def test_labels_of_axes_are_plain_numbers(page):
    for width in (1200, 380):
        if width != 1200:
            page.resize(width)
        for name, chart in page.texts().items():
            labels = [text["text"] for text in chart["texts"] if text["axis"]]
            percentages = [label for label in labels if re.fullmatch(r"\d+(\.\d+)?%", label)]
            plain = [label for label in labels if re.fullmatch(r"[-−]?\d+(\.\d+)?", label)]
            assert len(labels) >= 3
            assert len(set(percentages)) == len(percentages)
            if name == "scores":  # scores
                assert labels == plain
            elif name == "frontier":  # accuracy against points, or a ratio
                assert sorted(labels) == sorted(plain + percentages)
                assert plain
                assert percentages
            else:
                assert labels == percentages


@pytest.mark.parametrize(("n_groups", "labels"), [(1, True), (2, False), (41, True), (200, True)])
def test_few_and_many_groups(opened, n_groups, labels):
    report = made(numbered(n_groups), labels=labels)
    page = opened(report)
    page.what_if()
    page.settle()
    assert {len(table) for table in page.read()["tables"].values()} == {n_groups}
    charts = page.texts()
    drawn = {
        name: sum(text["text"].startswith("group ") for text in chart["texts"]) for name, chart in charts.items()
    }
    assert drawn["selection"] == min(n_groups, 40)
    assert drawn["scores"] == min(n_groups, 12)
    assert ("frontier" in charts) == labels
    assert len(report.html.encode()) < 3_000_000


def test_two_thousand_groups(opened):
    page = opened(made(numbered(2000), n=6000, labels=False))
    assert len(page.content.groups) == 2000
    assert 1 < page.page.locator("#table-people tbody tr").count() < 2000
    last = len(page.content.outcomes) - 1
    for at in (0, last, page.content.own):
        page.move_to(at)
        o, shown = page.content.outcomes[at], dict((key, title) for key, _, title in page.read()["said"])
        assert float(shown["overall_rate"]) == pytest.approx(o.overall_rate, rel=1e-11)
        assert float(shown["changed_number"]) == pytest.approx(o.people.changed, rel=1e-11)


def test_rule_that_changes_nothing(opened):
    scores = np.tile(np.random.default_rng(0).random(500), 2)
    groups = np.repeat(["a", "b"], 500)
    page = opened(quiet_fit(scores, groups, max_gap=0.02).report(scores, groups))
    assert page.content.chosen.stands
    assert_shows(page, page.content.own)
    assert page.text("[data-say=changed_number]").startswith("0 ")


# Accessibility ----------------------------------------------------------------------------------


@on("adult", "9 groups", "30 groups", "no labels", "tiny groups", "odds", "compare", "soft", "each")
def test_axe_finds_no_serious_violation(page, axe):
    page.page.evaluate(axe)
    if page.content.answers:
        page.page.locator("#answer-score").fill("2")  # shows an error message
    for what_if in (False, True):
        if what_if:
            page.what_if()
            page.settle()
        for scheme in ("light", "dark"):
            page.emulate(scheme)
            assert_accessible(page, scheme)


# Hostile names ----------------------------------------------------------------------------------


@on("hostile")
def test_hostile_names_stay_text(page):
    for at in (1, page.content.own):
        page.move_to(at)
        page.settle()
    assert [page.page.locator(tag).count() for tag in ("img", "iframe", "script")] == [0, 0, 3]
    assert page.page.locator("[onerror], [onload], [onclick]").count() == 0
    names = [group.name for group in page.content.groups]
    assert set(LITERAL) <= set(names)
    for key, table in page.read()["tables"].items():
        shown = page.page.locator(f"#table-{key} tbody th bdi").all_text_contents()
        assert (len(table), shown) == (len(names), names)
    assert page.page.locator("#compare-groups tbody th bdi").all_text_contents() == names
    drawn = page.texts()
    assert set(LITERAL) <= {text["text"].removesuffix(" *") for text in drawn["selection"]["texts"]} | {
        name
        for name in LITERAL
        if len(name) > 24  # shortened
    }
    options = page.page.locator("#answer-group option").all_text_contents()
    assert set(LITERAL) <= set(options)
    for i, name in enumerate(options):
        page.page.locator("#answer-group").select_option(str(i))
        page.page.locator("#answer-score").fill("0.41")
        assert name[:30] in page.text("#answer")
    page.page.locator("#answer-score").fill("<img src=x onerror=alert(5)>")
    assert "<img src=x onerror=alert(5)>" in page.text("#answer")
    assert page.page.locator("img").count() == 0


@on("hostile")
def test_tooltips_show_hostile_names_as_text(page):
    name = "<img src=x onerror=alert(1)>"
    i = [group.name for group in page.content.groups].index(name)
    page.page.locator("#chart-selection .mark-symbol").first.locator("path").nth(i).hover(force=True)
    page.page.wait_for_selector("#vg-tooltip-element.visible")
    assert name in page.text("#vg-tooltip-element")
    assert page.page.locator("img").count() == 0


@on("hostile")
def test_downloads_keep_names_as_text(page):
    links = page.page.locator("a[download]:visible")
    found = {}
    page.what_if()  # downloads are those of the reported rule even then
    for i in range(links.count()):
        with page.page.expect_download() as info:
            links.nth(i).click()
        with open(info.value.path(), encoding="utf-8", newline="") as file:
            found[info.value.suggested_filename] = file.read()
    assert set(found) == {f"fairramp-{key}.csv" for key in page.report.tables}
    names = [group.name for group in page.content.groups]
    for key, table in page.report.tables.items():
        text = found[f"fairramp-{key}.csv"]
        assert text == "\ufeff" + table.to_csv()
        table_rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
        if key == "limits":
            assert [float(row["limit"]) for row in table_rows] == [o.max_gap for o in page.content.outcomes]
            continue
        written = [row["group"] for row in table_rows]
        assert not any(name.lstrip().startswith(("=", "+", "-", "@")) for name in written)
        assert [name.removeprefix("'") for name in written] == names
    rates = [
        float(row["selection_rate_after"])
        for row in csv.DictReader(io.StringIO(found["fairramp-people.csv"].removeprefix("\ufeff"), newline=""))
    ]
    assert rates == list(page.content.chosen.after.rates["selection"].rate)


def test_hostile_title_and_column_names_stay_text(opened):
    bad = "<img src=x onerror=alert(1)></title></script>{{x}}"
    d = adult()
    rule = fairramp.fit_rule(d.score, {bad: d.sex}, max_gap=0.02)
    page = opened(rule.report(d.score, {bad: d.sex}, title=bad, date=bad, review_date=bad))
    page.what_if()
    assert page.text("h1") == bad
    assert page.page.locator("#table-rule thead th").first.text_content() == bad
    assert page.page.locator("img").count() == 0
    assert bad in page.text("#command")
    assert page.page.locator("#approval input[type=text]").first.input_value() == bad


# One person's answer ----------------------------------------------------------------------------

SCALES = {
    "probability": (lambda p: p, {}),
    "steps": (lambda p: p, {"ramp_width": 0}),
    "lower is better": (lambda p: 1 - p, {"higher_is_better": False}),
    "percent": (lambda p: 100 * p, {"scale": "percent"}),
    "signed": (lambda p: 2 * p - 1, {"scale": "signed"}),
    "logit": (lambda p: np.log(p / (1 - p)), {"scale": "logit"}),
    "real": (lambda p: 5 * p - 1, {"scale": "real", "cutoff": 1.5}),
}


@pytest.mark.parametrize("scale", SCALES)
def test_answer_is_the_librarys(opened, scale):
    turn, settings = SCALES[scale]
    scores, codes, _ = rows(2, n=600)
    scores = turn(scores.clip(0.001, 0.999))
    rule = quiet_fit(scores, codes, max_gap=0.05, **settings)
    page = opened(rule.report(scores, codes))
    page.what_if()  # the answer is that of the reported rule even then
    seen = set()
    for i, ramp in enumerate(rule.ramps):
        start, end = rule.ends_of(ramp)
        if scale == "logit":
            start, end = (math.log(p / (1 - p)) for p in (start, end))
        page.page.locator("#answer-group").select_option(str(i))
        for score in (
            float(turn(np.array(0.1))),
            float(turn(np.array(0.9))),
            start,
            end,
            (start + end) / 2,
            rule.cutoff,
        ):
            page.page.locator("#answer-score").fill(repr(score))
            answer = rule.explain(score, rule.groups[i])
            assert unmarked(page.text("#answer")) == answer.why
            seen.add(answer.answer)
            if answer.answer == "random":
                assert chance_text(answer.probability) in page.text("#answer")
    assert {"yes", "no"} <= seen
    assert scale == "steps" or "random" in seen


@on("each")
def test_answer_by_each_attribute_has_every_intersection(page):
    for i, form in enumerate(page.content.answers):
        page.page.locator("#answer-group").select_option(str(i))
        for score in (0.1, form.foot + form.width / 2, 0.9):
            page.page.locator("#answer-score").fill(repr(score))
            assert f"In group {form.group}, whose threshold is " in unmarked(page.text("#answer"))
    assert len(page.content.answers) == 6


@on("soft")
def test_page_by_group_probabilities_answers_nobody(page):
    assert page.page.locator("#answer-group").count() == 0
    assert page.page.locator("#limit").count() == 0
    assert page.is_shown("#approval")


def test_answer_explains_invalid_scores(opened):
    rule = Rule(("a", "b"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    scores, codes, _ = rows(2)
    page = opened(rule.report(scores, np.array(["a", "b"])[codes]))
    field = page.page.locator("#answer-score")
    for text in ("1.5", "-1", "NaN", "abc", "0x10", "1e999", "1.2.3"):
        field.fill(text)
        assert text in page.text("#answer")
        assert field.get_attribute("aria-invalid") == "true"
    for text in ("0,48", " 0.48 ", ".48", "48e-2"):
        field.fill(text)
        assert unmarked(page.text("#answer")) == rule.explain(0.48, "a").why
        assert field.get_attribute("aria-invalid") == "false"
    field.fill("")
    assert page.text("#answer") == ""
