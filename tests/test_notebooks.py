"""What results show in notebooks, and what every `.plot()` has."""

import json
import re
import subprocess
import sys
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest

import fairramp
from fairramp.core.notebook import DARK, LIGHT

#: Names that would be markup, or an expression of Vega, if they were not treated as text.
HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&amp;", "datum.g}{", "]]><!--")
#: Elements of a view: those of HTML, and those of charts.
HTML = {"style", "div", "p", "strong", "br", "table", "thead", "tbody", "tr", "th", "td"}
SVG = {"svg", "g", "path", "rect", "line", "text", "tspan"}
#: WCAG 2.2, success criteria 1.4.3 (text) and 1.4.11 (lines of charts).
TEXT_CONTRAST, LINE_CONTRAST = 4.5, 3.0

KINDS = ("rule", "by hand", "audit", "plain audit", "certificate", "check", "frontier", "shortlist")
CASES = [*((kind, n) for kind in KINDS for n in (1, 9)), ("rule", 30), ("check", 30), ("frontier", 2)]
CASES.remove(("frontier", 1))  # there is no gap
CLASS_KINDS = tuple(f"class {kind}" for kind in KINDS if kind != "shortlist")
CLASS_CASES = [(kind, n) for kind in CLASS_KINDS for n in (1, 9)]
CLASSES = ("low", "<b>mid</b>", "high")


def named(n):
    return [*HOSTILE, *(f"g{i}" for i in range(n))][:n]


def rows(n, size=1200, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.array(named(n), dtype=object)[rng.permutation(np.arange(size) % n)]
    scores = rng.permutation(np.linspace(0.01, 0.99, size))
    return scores, groups, (rng.random(size) < scores).astype(int)


def class_rows(n, seed=0):
    scores, groups, _ = rows(n, seed=seed)
    split = 0.6 + 0.01 * seed  # other rows, not only another order
    p = np.stack([scores, (1 - scores) * split, (1 - scores) * (1 - split)], axis=1)
    return p, groups, np.array(CLASSES, dtype=object)[np.argmax(p, axis=1)]


def class_result(kind, n):
    p, groups, labels = class_rows(n)
    if kind == "by hand":
        offsets = [(0.1, -0.2, 0.1), (0.0, 0.0, 0.0)]
        return fairramp.ClassRule(tuple(named(n)), CLASSES, tuple(offsets[i % 2] for i in range(n)))
    if kind == "plain audit":
        return fairramp.audit_classes(p, groups, labels, classes=CLASSES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "frontier":
            return fairramp.class_frontier(p, groups, labels, classes=CLASSES, max_gaps=[0, 0.05, 0.1])
        rule = fairramp.fit_class_rule(p, groups, classes=CLASSES, max_gap=0.02)
    new_p, new_groups, _ = class_rows(n, seed=1)
    return {
        "rule": lambda: rule,
        "audit": lambda: fairramp.audit_classes(p, groups, labels, rule=rule),
        "certificate": lambda: rule.certificate(probabilities=new_p, groups=new_groups),
        "check": lambda: rule.check(new_p, new_groups),
    }[kind]()


def result(kind, n, criterion="parity"):
    if kind.startswith("class "):
        return class_result(kind.removeprefix("class "), n)
    scores, groups, labels = rows(n)
    if kind == "by hand":
        ramps = [fairramp.Ramp.centered(0.5, 0.1), fairramp.Ramp.constant(0.3), fairramp.Ramp.centered(0.4, 0)]
        return fairramp.Rule(tuple(named(n)), tuple(ramps[i % 3] for i in range(n)))
    if kind == "plain audit":
        return fairramp.audit(scores, groups, labels, criterion=criterion)
    if kind == "frontier":
        return fairramp.frontier(scores, groups, labels, max_gaps=[0, 0.05, 0.1])
    if kind == "shortlist":
        return fairramp.select(scores, groups, places=200, max_gap=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rule = fairramp.fit_rule(scores, groups, labels, max_gap=0.02, criterion=criterion)
    new_scores, new_groups, new_labels = rows(n, seed=1)
    return {
        "rule": lambda: rule,
        "audit": lambda: fairramp.audit(scores, groups, labels, rule=rule),
        "certificate": rule.certificate,
        "check": lambda: rule.check(new_scores, new_groups, new_labels),
    }[kind]()


class View(HTMLParser):
    """The elements and texts of a view; fails if its tags are not balanced."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.cells, self.texts, self.ids, self.attributes, self._open = [], [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self._seen(tag, attrs)
        if tag != "br":
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self._seen(tag, attrs)

    def _seen(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        inside = self._open[-1] if self._open else None
        (self.cells if inside in ("td", "th") else self.texts).append(data)

    def handle_comment(self, data):
        raise AssertionError("a name must not start a comment")

    handle_decl = unknown_decl = handle_pi = handle_comment


def sentences(found):
    if isinstance(found, fairramp.Rule | fairramp.ClassRule):
        return [found.heading, *found.reached, *found.notes]
    if isinstance(found, fairramp.Frontier | fairramp.ClassFrontier):
        return [found.heading, found.own]
    if isinstance(found, fairramp.Check):
        return [found.sentence(), found.sentences()[1]]
    return found.sentences()


@pytest.mark.parametrize(("kind", "n"), CASES + CLASS_CASES)
def test_view_has_sentences_chart_and_table(kind, n):
    found = result(kind, n)
    shown = found._repr_html_()
    view = View(shown)
    said = "".join(view.texts)
    assert all(sentence in said for sentence in sentences(found))
    table, _ = found.table()._cells()
    assert {cell for row in table for cell in row} <= set(view.cells)
    assert view.tags.count("svg") == 1
    assert shown.index("<p>") < shown.index("<svg") < shown.index("<table>")
    # Names are text: no other element, no script, no request, and no id that another view might have as well.
    assert set(view.tags) <= HTML | SVG
    assert not view.ids
    assert not [name for name, value in view.attributes if name.startswith("on") or name in ("href", "src")]
    assert not re.search(r"url\(|@import|clip-path", shown)
    if n == 9 and kind.removeprefix("class ") not in ("certificate", "frontier"):
        assert {*HOSTILE} <= {*view.cells}
        assert {*HOSTILE[2:]} <= {*view.texts}  # charts cut long names


@pytest.mark.parametrize("kind", KINDS + CLASS_KINDS)
def test_same_result_gives_the_same_view(kind):
    assert result(kind, 2)._repr_html_() == result(kind, 2)._repr_html_()


@pytest.mark.parametrize("library", ["altair", "vl_convert"])
def test_without_the_extra_views_have_no_chart(library):
    code = (
        "import sys, json, fairramp\n"
        f"sys.modules[{library!r}] = None\n"
        "scores, groups = [0.2, 0.7, 0.3, 0.8, 0.6] * 40, ['a', 'b'] * 100\n"
        "rule = fairramp.fit_rule(scores, groups)\n"
        "every = [rule, rule.certificate(), rule.check(scores, groups), fairramp.audit(scores, groups),\n"
        "         fairramp.frontier(scores, groups, [0, 1, 0, 1, 1] * 40),\n"
        "         fairramp.select([i / 100 for i in range(100)], groups[:100], places=9)]\n"
        "print(json.dumps([found._repr_html_() for found in every]))\n"
    )
    made = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not made.stderr
    for shown in json.loads(made.stdout):
        view = View(shown)
        assert set(view.tags) <= HTML
        assert "table" in view.tags
        assert "install" not in shown


def test_importing_fairramp_and_fitting_need_no_chart_library():
    code = (
        "import sys, fairramp\n"
        "repr(fairramp.fit_rule([0.2, 0.7] * 40, ['a', 'b'] * 40).certificate())\n"
        "assert not {'altair', 'vl_convert'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tables_and_monitors_have_the_same_frame():
    rule, (scores, groups, _) = result("rule", 2), rows(2)
    for found in (rule.table(), rule.monitor().update(scores, groups)):
        view = View(found._repr_html_())
        assert view.tags[:2] == ["style", "div"]
        assert ("class", "fairramp") in view.attributes


def brightness(color):
    linear = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in linear]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_colors_can_be_read(colors):
    def contrast(name):
        low, high = sorted(brightness(colors[one]) for one in (name, "paper"))
        return (high + 0.05) / (low + 0.05)

    assert all(contrast(name) >= TEXT_CONTRAST for name in ("ink", "muted", "yes", "no"))
    assert contrast("what_if") >= LINE_CONTRAST


def charts(spec):
    return spec.get("vconcat", [spec])


def axes(part):
    """The axes that a part draws."""
    layers = part.get("layer", [part])
    found = [layer.get("encoding", {}).get(channel, {}) for layer in layers for channel in ("x", "y")]
    return [one["axis"] for one in found if one.get("axis")]


@pytest.mark.parametrize(
    ("kind", "n", "criterion"),
    [
        *((kind, n, "parity") for kind, n in CASES),
        *(
            (kind, 2, criterion)
            for kind in ("rule", "audit", "plain audit", "certificate", "check")
            for criterion in ("equal_opportunity", "equalized_odds")
        ),
    ],
)
def test_every_plot_has_a_key_and_titled_axes(kind, n, criterion):
    spec = result(kind, n, criterion).plot().to_dict()
    for part in charts(spec):
        assert part["title"]["text"]
        assert all(part["title"]["subtitle"])
        assert axes(part)
        assert all(axis["title"] for axis in axes(part))


@pytest.mark.parametrize("kind", CLASS_KINDS)
def test_every_plot_of_classes_has_a_key_and_names_its_axes(kind):
    found = result(kind, 2)
    for part in charts(found.plot().to_dict()):
        assert part["title"]["text"]
        assert all(part["title"]["subtitle"])
    texts = {*drawn_texts(found)}
    by_hand, of_gaps = kind == "class by hand", kind in ("class certificate", "class frontier")
    assert any("gap" in text for text in texts) if of_gaps else {"offset" if by_hand else "rate"} <= texts


def test_class_audit_plot_has_the_rates_of_its_table():
    found = result("class audit", 3)
    texts = drawn_texts(found)
    assert {f"{100 * rate:.1f}%" for rate in (*found.before.rate, *found.after.rate)} <= {*texts}


def test_class_plots_say_how_many_classes_they_leave_out():
    n = 15
    rule = fairramp.ClassRule(("a", "b"), tuple(range(n)), ((0.0,) * n,) * 2)
    assert f"The first 12 of {n} classes." in rule._repr_html_()


def drawn_texts(found):
    return re.findall(r"<text[^>]*>([^<]*)</text>", found._repr_html_())


def test_numbers_in_charts_have_no_exponent():
    scores, groups, labels = rows(2, size=4000)
    small = fairramp.frontier(scores, groups, labels, max_gaps=[0, 1e-6, 2e-6])
    tiny = fairramp.fit_rule(scores / 1e5, groups, cutoff=5e-6, ramp_width=1e-6)
    signed = fairramp.fit_rule(180 * scores - 90, groups, scale="real", cutoff=0)
    few = fairramp.select(scores, groups, places=1)
    for found in (small, tiny, signed, few, tiny.certificate(), signed.check(180 * scores - 90, groups)):
        texts = drawn_texts(found)
        assert len(texts) > 5
        assert not [text for text in texts if re.search(r"\de[+−-]?\d", text)]


def test_charts_say_how_many_groups_they_leave_out():
    view = result("audit", 30)._repr_html_()
    assert "The 12 largest of 30 groups." in view
    subtitle = result("audit", 30).plot().to_dict()["title"]["subtitle"]
    assert "largest of" not in " ".join(subtitle)  # a plot has room for 40


def test_certificate_plot_has_the_limits_of_its_text():
    scores, groups, _ = rows(2)
    rule = fairramp.fit_rule(scores, groups, max_gap=0.2, confidence=0.95)
    certificate = rule.certificate()
    texts = drawn_texts(certificate)
    assert certificate.max_gap == 0.2
    assert certificate.fit_gaps == {"selection": rule.record.gap_after}
    told = re.findall(r"\d+\.\d points", certificate.sentences()[0])
    assert len(told) == 2
    assert {*told} <= {*texts}


def test_check_plot_has_the_gap_of_its_table():
    found = result("check", 2)
    gap, low, high = (f"{100 * value:.1f}" for value in (found.gap, *found.gap_interval))
    texts = drawn_texts(found)
    assert f"{gap} points [{low}, {high}]" in texts
    assert {f"{100 * rate:.1f}%" for rate in (*found.rates, *found.rates_then)} <= {*texts}


def test_shortlist_plot_has_the_places_gained_and_lost():
    scores = np.arange(100) / 100
    found = fairramp.select(scores, np.where(scores < 0.5, "low", "high"), places=20)
    texts = drawn_texts(found)
    assert found.places == (10, 10)
    assert {"10 now yes", "10 now no", "40.0%", "20.0%", "0.0%"} <= {*texts}
