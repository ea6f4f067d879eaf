"""The report of a rule for several classes in a real browser: numbers, layout, printout and accessibility."""

from functools import cache

import numpy as np
import pytest
from opened_page import assert_accessible, assert_texts_fit

import fairramp
from class_samples import class_people, quiet_class_fit
from fairramp.core.labels import show_label
from fairramp.core.words import percent, points, with_interval

pytestmark = pytest.mark.browser

WIDTHS = (360, 768, 1200, 1600)
HOSTILE = ["<script>alert(1)</script>", "=cmd()", "\"quotes\" & 'more' ${x}", "{{ x }}", "new\nline", "b" * 200]


def _hours(fresh=False):
    d = fairramp.datasets.load_adult_hours()
    fit = np.arange(len(d.sex)) % 2 == 0 if fresh else np.ones(len(d.sex), dtype=bool)
    new = ~fit if fresh else fit
    rule = fairramp.fit_class_rule(d.probabilities[fit], d.sex[fit], classes=d.classes, max_gap=0.02)
    return rule.report(d.probabilities[new], d.sex[new], d.label[new], decision="Weekly hours")


def _named(classes, groups, **settings):
    p, group, y = class_people(3000, len(classes), len(groups), seed=3)
    named = [groups[int(name[1:])] for name in group]
    rule = quiet_class_fit(p, named, classes=classes, max_gap=0.02, **settings)
    return rule.report(p, named, [classes[c] for c in y], owner=HOSTILE[0], title=HOSTILE[0])


def _strata():
    p, group, y = class_people(3000, 3, 2, seed=5)
    strata = np.where(np.arange(3000) % 3 == 0, "north", "south")
    rule = quiet_class_fit(p, group, strata=strata, max_gap=0.02)
    return rule.report(p, group, y, strata=strata)


def _soft():
    p, group, _ = class_people(4000, 3, 2, seed=7)
    told = (group == "g1") ^ (np.random.default_rng(3).random(len(p)) < 0.2)  # wrong for one in five
    q = np.where(told, 0.8, 0.2)
    parts = (slice(2000), slice(2000, None))
    one, two = (fairramp.GroupProbabilities({"g0": 1 - q[part], "g1": q[part]}) for part in parts)
    return quiet_class_fit(p[:2000], one, max_gap=0.02).report(p[2000:], group[2000:], group_probabilities=two)


KINDS = {
    "fit rows": _hours,
    "fresh rows": lambda: _hours(fresh=True),
    "hostile": lambda: _named(HOSTILE, HOSTILE),
    "many": lambda: _named([f"class {c}" for c in range(14)], [f"group {k}" for k in range(7)]),
    "one group": lambda: _named(["a", "b", "c"], ["only"]),
    "strata": _strata,
    "soft": _soft,
}


@cache
def report_of(kind):
    return KINDS[kind]()


@pytest.fixture(scope="module")
def kept(open_page, request):
    """A page that several tests use."""
    page = open_page(report_of(request.param))
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


@on("fresh rows", "strata", "soft")
def test_page_shows_the_numbers_of_its_content(page):
    content, shown = page.content, page.read()
    before, after = content.before, content.after
    rows = [[text for text, _ in row] for row in shown["tables"]["rates"]]
    pairs = [(name, group) for name in content.classes for group in content.groups]
    assert len(rows) == len(pairs)
    for i, (row, (name, group)) in enumerate(zip(rows, pairs, strict=True)):
        assert row[:3] == [name, group.name, f"{group.rows:,}"]
        for text, one in zip(row[3:5], (before, after), strict=True):
            assert text == with_interval(*map(percent, (one.rate[i], one.lower[i], one.upper[i])))
    said = {key: text for key, text, _ in shown["said"]}
    assert said["gap"] == with_interval(*map(points, (after.gap, *after.gap_interval)))
    assert said["headline"] == content.judgment.headline
    for c, rates in enumerate(zip(before.rates.values(), after.rates.values(), strict=True)):
        texts = {text["text"] for text in page.texts()[f"class-{c}"]["texts"]}
        assert {percent(rate) for one in rates for rate in one.rate} <= texts


@on("fit rows", "hostile", "many", "one group", "strata", "soft")
def test_layout_at_all_widths(page):
    for width in WIDTHS:
        page.resize(width)
        scroll, client = page.page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert scroll <= client
        assert_texts_fit(page)


@on("fit rows", "fresh rows", "hostile", "many", "one group", "strata")
def test_axe_finds_no_serious_violation(page, axe):
    page.page.evaluate(axe)
    for scheme in ("light", "dark"):
        page.emulate(scheme)
        assert_accessible(page, scheme)


@on("fresh rows")
def test_printout_has_everything_in_order(page):
    text = "".join(page.pdf())
    wanted = ["Rates of each class", "What it costs", "Limits for new people", "Gap of each class", "Approval"]
    places = [text.index(heading.replace(" ", "")) for heading in wanted]
    assert places == sorted(places)
    assert page.content.rule_fingerprint in text
    assert "DownloadasCSV" not in text


@on("fit rows", "fresh rows")
def test_dark_page_has_other_colors_and_the_same_texts(page):
    light, shown = page.variables("ink", "paper"), page.shown()
    page.emulate("dark")
    assert page.variables("ink", "paper") != light
    assert page.shown() == shown
    page.emulate("print")
    assert page.variables("paper") == [(255, 255, 255)]


@on("hostile")
def test_hostile_names_stay_text(page):
    assert [page.page.locator(tag).count() for tag in ("img", "iframe", "script")] == [0, 0, 3]
    names = [show_label(name) for name in HOSTILE]
    shown = page.page.locator("#table-gaps tbody th bdi").all_text_contents()
    assert shown == names
    assert set(page.page.locator("#table-rates tbody th bdi").all_text_contents()) == set(names)
    drawn = {text["text"].split("  ·  ")[0] for text in page.texts()["class-0"]["texts"]}
    assert {name for name in names if len(name) < 40} <= drawn
    assert page.text("h1") == HOSTILE[0]


@on("many")
def test_many_classes_and_groups(page):
    assert page.page.locator(".chart svg").count() == 12
    assert "The first 12 of 14 classes." in page.text("main")
    assert len(page.read()["tables"]["rates"]) == 14 * 7
    assert page.page.locator("#limit").count() == 0


def test_page_without_scripts_shows_all_numbers(opened):
    page = opened(report_of("fit rows"), script=False)
    text = page.text("main")
    assert page.content.judgment.headline in text
    assert "The charts need JavaScript." in text
    assert page.page.locator("#table-rates tbody tr").count() == 6
