"""The page of a report: numbers are the library's, bytes reproducible, names inert and commands exact."""

import csv
import io
import json
import re
import shlex
from html.parser import HTMLParser
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np
import pytest
import vl_convert

import fairramp
from fairramp import Ramp, Rule
from fairramp.core.labels import show_label
from fairramp.show.charts.dumbbell import Changes, Dots, dumbbell_chart
from fairramp.show.charts.frontier import frontier_chart
from fairramp.show.charts.pieces import Groups, finished
from fairramp.show.report.charts import content_charts
from fairramp.show.report.make import make_content
from fairramp.show.report.say import say
from samples import quiet_fit
from shell import Inside

#: Tags that never have an end.
VOID = {"meta", "link", "input", "br", "img", "hr"}
NAN = float("nan")
EVENT_NAMES = ("selection", "true_positive", "false_positive")


def rows(n=900, groups=3, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    scores = np.clip(rng.random(n) * 0.7 + 0.25 * group / groups, 0, 1).round(3)
    return scores, group, (rng.random(n) < scores).astype(int), rng.integers(1, 4, n).astype(float)


# Reading a page ----------------------------------------------------------------------------------


class Page(HTMLParser):
    """Elements of a page in order, with their attributes, and the text in each with its descendants'."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self._open = [], []
        self.feed(text)
        self.close()
        assert not self._open
        self.payload = json.loads(self.one(id="content").text)

    def handle_starttag(self, tag, attrs):
        assert len({name for name, _ in attrs}) == len(attrs)
        element = SimpleNamespace(
            tag=tag, attrs=dict(attrs), text="", above=[e.attrs.get("id") for e in self._open]
        )
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag):
        assert self._open.pop().tag == tag

    def handle_data(self, data):
        for element in self._open:
            element.text += data

    def all(self, tag=None, inside=None, **attrs):
        return [
            e
            for e in self.elements
            if tag in (None, e.tag)
            and (inside is None or inside in e.above)
            and all(e.attrs.get(name.replace("_", "-")) == value for name, value in attrs.items())
        ]

    def one(self, *args, **attrs):
        (found,) = self.all(*args, **attrs)
        return found

    def said(self, key):
        """Text and digits of a number that depends on the slider."""
        found = self.all(data_say=key)[0]
        return found.text, found.attrs.get("title", "")

    def table(self, key):
        """Names of the rows, and the cells of each column by heading: text and parts with all digits."""
        headings = [e.text for e in self.all("th", inside=key, scope="col")]
        headings = headings if key == "figures" else headings[1:]
        names = [e.text for e in self.all("th", inside=key, scope="row")]
        cells = [(e.text, numbers(e.attrs["title"])) for e in self.all("td", inside=key) if "title" in e.attrs]
        assert len(cells) == len(headings) * len(names)
        return names, {h: cells[j :: len(headings)] for j, h in enumerate(headings)}

    def csv(self):
        """The tables that the page offers as files, by file name."""
        found = {}
        for link in self.all("a", **{"class": "csv"}):
            head, _, body = link.attrs["href"].partition(",")
            assert head == "data:text/csv;charset=utf-8"
            text = unquote(body)
            assert text[0] == "\ufeff"
            found[link.attrs["download"]] = text[1:]
        return found


def number(value):
    """A number of the payload or of a title."""
    return NAN if value is None else float(str(value).replace("∞", "inf"))


def numbers(title):
    return [number(part) for part in title.split(" – ")] if title else []


def close(found, expected):
    """Check numbers with 12 significant digits: those up to 1 to 1e-12."""
    found, expected = (np.array(values, dtype=float) for values in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=5.1e-12, atol=1e-12, equal_nan=True)


def table_of(text):
    """Columns of a CSV file; numbers as floats, empty ones as NaN."""
    header, *lines = csv.reader(io.StringIO(text, newline=""))

    def value(cell):
        try:
            return float(cell) if cell else NAN
        except ValueError:
            return cell

    assert all(len(line) == len(header) for line in lines)
    return {name: [value(line[j]) for line in lines] for j, name in enumerate(header)}


def same(found, expected):
    """Check that columns are the same, to the last digit."""
    assert list(found) == list(expected)
    for name in found:
        assert len(found[name]) == len(expected[name])
        for one, other in zip(found[name], expected[name], strict=True):
            assert one == other or (one != one and other != other) or str(other) == f"{one:g}", name


# Numbers -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def _small():
    """Leave out the large script that draws the charts, which is the same on all pages; take larger steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairramp.show.report.slider.STEPS", ((300, 5),))
        patch.setattr("fairramp.show.report.slider.ODDS_STEPS", 5)
        patch.setattr("fairramp.show.report.page.chart_bundle", lambda: "window.vegaEmbed = null;", raising=False)
        yield


CASES = {
    "parity": {"max_gap": 0.03},
    "parity, ratio, weights": {"min_ratio": 0.9, "ramp_width": 0.2, "weighted": True},
    "opportunity, strata": {"criterion": "equal_opportunity", "max_gap": 0.05, "stratified": True},
    "odds": {"criterion": "equalized_odds", "max_gap": 0.03},
    "steps, percent": {"max_gap": 0.03, "ramp_width": 0, "scale": "percent", "cutoff": 40},
    "lower is better": {"criterion": "predictive_equality", "max_gap": 0.03, "higher_is_better": False},
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """A report, its page, and its rows."""
    settings = dict(CASES[request.param])
    scores, group, labels, weights = rows()
    if settings.get("higher_is_better") is False:
        scores = np.round(1 - scores, 3)
    if settings.get("scale") == "percent":
        scores = 100 * scores
    more = {}
    if settings.pop("weighted", False):
        more["sample_weight"] = weights
    if settings.pop("stratified", False):
        more["strata"] = np.arange(len(group)) // 3 % 2
    rule = quiet_fit(scores, group, labels, **settings, **more)
    made = rule.report(scores, group, labels, compare=rule if request.param == "parity" else None, **more)
    return SimpleNamespace(
        rule=rule,
        report=made,
        page=Page(made.html),
        columns=(scores, group, labels),
        settings=settings,
        more=more,
        weights=more.get("sample_weight", np.ones(len(group))),
        strata=more.get("strata"),
    )


def rule_at(case, outcome):
    """The rule at a position of the slider, fitted again."""
    if outcome.is_own:
        return case.rule
    limit = {
        name: getattr(outcome, name) for name in ("max_gap", "min_ratio") if getattr(outcome, name) is not None
    }
    kept = {name: value for name, value in case.settings.items() if name not in ("max_gap", "min_ratio")}
    return quiet_fit(*case.columns, **kept, **limit, **case.more)


def library_table(case, rule):
    """What the library and a naive computation say about a rule, by table and heading of the page: parts."""
    scores, group, labels = case.columns
    found = fairramp.audit(*case.columns, rule=rule, criterion=rule.criterion, **case.more)
    cells = group if case.strata is None else 10 * case.strata + group
    parts = [cells == k for k in np.unique(cells)]
    better = scores >= rule.cutoff if rule.higher_is_better else scores <= rule.cutoff
    own, chances = better.astype(float), rule.probabilities(scores, group, case.strata)
    table = rule.table().to_dict()
    count = [int(part.sum()) for part in parts]
    none = [NAN] * len(parts)
    right = [np.where(labels == 1, c, 1 - c) for c in (own, chances)]

    def rates(decided, name):
        found = decided.rates[name]
        return [found.rate, found.lower, found.upper]

    def naive(values):
        return [np.average(values[part], weights=case.weights[part]) for part in parts]

    more, less = np.maximum(chances - own, 0), np.maximum(own - chances, 0)
    close(found.changed_to_yes, naive(more))
    close(found.after.rates["selection"].rate, naive(chances))
    close(found.before.rates["selection"].rate, naive(own))
    expected = {
        "table-rule": {
            "people": [count],
            "threshold": [table["threshold"]],
            "ramp": [table.get(end, table["threshold"]) for end in ("ramp_from", "ramp_to")],
            "probability at threshold": [table.get("probability_at_threshold", none)],
        },
        "table-people": {
            "people": [count],
            "selected before": rates(found.before, "selection"),
            "selected after": rates(found.after, "selection"),
            "newly selected": [[more[part].sum() for part in parts], found.changed_to_yes],
            "no longer selected": [[less[part].sum() for part in parts], found.changed_to_no],
        },
        "table-errors": {
            "favorable outcome": [[int((labels[part] == 1).sum()) for part in parts]],
            "TPR before": rates(found.before, "true_positive"),
            "TPR after": rates(found.after, "true_positive"),
            "other outcome": [[int((labels[part] == 0).sum()) for part in parts]],
            "FPR before": rates(found.before, "false_positive"),
            "FPR after": rates(found.after, "false_positive"),
            "accuracy before": [naive(right[0])],
            "accuracy after": [naive(right[1])],
        },
    }
    return found, expected, (own, chances, right)


def test_cells_of_the_page_are_the_librarys_numbers(case):
    _, expected, _ = library_table(case, case.rule)
    for key, columns in expected.items():
        names, cells = case.page.table(key)
        assert len(names) == len(case.report.content.groups)
        assert {*cells} <= {*columns}
        for heading, shown in cells.items():
            parts = np.transpose(np.array(columns[heading], dtype=float))
            for (text, digits), one in zip(shown, parts, strict=True):
                if np.isnan(one).any():
                    assert (text, digits) == ("–", [])
                    continue
                close(digits, one)
                assert_rounded(text, one)


def assert_rounded(text, parts):
    """Check that the numbers of a text are those of a cell, rounded."""
    found = re.findall(r"<?\d[\d,]*(?:\.\d+)?%?|∞", text)
    if text == "0":
        assert parts[0] <= 1e-9
        return
    assert len(found) == len(parts), (text, parts)
    for shown, value in zip(found, parts, strict=True):
        number = shown.strip("<%").replace(",", "")
        unit = 100 if shown.endswith("%") else 1
        if shown[0] == "<":
            assert 0 < unit * value < float(number)
        else:
            half = 0.5 * 10.0 ** -len(number.partition(".")[2])
            assert abs(unit * value - float(number)) <= half + 1e-9


def test_every_position_of_the_slider_has_the_librarys_numbers(case):
    """The payload, from which the script fills the tables, the figures and the costs."""
    payload, content = case.page.payload, case.report.content
    assert payload["own"] == content.own
    assert len(content.outcomes) > 4
    for outcome, shown in zip(content.outcomes, payload["outcomes"], strict=True):
        rule = rule_at(case, outcome)
        found, expected, (own, chances, right) = library_table(case, rule)
        for key, columns in payload["tables"].items():
            _, cells = case.page.table(f"table-{key}")
            for heading, column, parts in zip(cells, columns, shown["tables"][key], strict=True):
                assert (parts == []) == (not column["moves"])
                if column["moves"]:
                    values = [
                        [NAN if v is None else float(str(v).replace("∞", "inf")) for v in part] for part in parts
                    ]
                    close(values, np.array(expected[f"table-{key}"][heading], dtype=float))

        said = shown["say"]
        digits = {key: numbers(said[key][1]) for key in said if said[key][1]}
        for event in rule.event.simple:
            rates = found.after.rates[event.name]
            for name in ("gap", "ratio"):
                if getattr(rates, name) == getattr(rates, name):
                    expected_digits = [getattr(rates, name), *getattr(rates, f"{name}_interval")]
                    close(digits[f"{name}_{event.name}"], expected_digits)
        overall = np.average(chances, weights=case.weights)
        close(digits["overall_rate"], [overall])
        close(digits["accuracy"][0], found.after.overall_accuracy)
        close(digits["accuracy"][0], np.average(right[1], weights=case.weights))
        close(digits["limit"], [rule.max_gap if rule.min_ratio is None else rule.min_ratio])
        close(digits["guarantee"], [rule.certificate().estimated])
        if case.rule.certificate().proven is not None:
            close(outcome.guarantee.proven, rule.certificate().proven)

        # Costs, in people, whatever their weights.
        changed, drawn = np.abs(chances - own).sum(), ((chances > 0) & (chances < 1)).sum()
        more, wrong = chances.sum() - own.sum(), right[0].sum() - right[1].sum()
        for key, value in {"changed": changed, "drawn": drawn, "selected": more, "wrong": wrong}.items():
            text, exact = said[f"{key}_number"]
            assert float(exact) == pytest.approx(value, rel=1e-11, abs=1e-9)
            assert_people(text, abs(value))
            if "more" in text or "fewer" in text:
                assert ("more" in text) == (value > 0)
        for key, value in (
            ("changed", np.average(np.abs(chances - own), weights=case.weights)),
            ("drawn", np.average((chances > 0) & (chances < 1), weights=case.weights)),
        ):
            assert_rounded(re.search(r"[<\d.]+%", said[f"{key}_rest"][0])[0], [value])
        people = outcome.people
        for value, exact in (
            (people.changed, changed),
            (people.drawn, drawn),
            (people.selected, chances.sum()),
            (people.wrong, (1 - right[1]).sum()),
        ):
            assert value == pytest.approx(exact, rel=1e-12, abs=1e-9)


def assert_people(text, n):
    """Check a rounded number of people at the start of a text."""
    first = text.split()[0]
    if n <= 1e-9:
        assert first in ("0", "As")
    elif n < 0.5:
        assert first in ("<1", "As")
    else:
        assert abs(int(first.replace(",", "")) - n) <= 0.5 + 1e-9


def test_figures_of_everybody_are_the_librarys(case):
    found, _, (own, _, right) = library_table(case, case.rule)
    names, cells = case.page.table("figures")
    for name, (text, digits) in zip(names, cells["classifier alone"], strict=True):
        expected = {
            "Selected overall": np.average(own, weights=case.weights),
            "Accuracy": np.average(right[0], weights=case.weights),
        }
        for event in case.rule.event.simple:
            rates = found.before.rates[event.name]
            expected[f"Gap between {event.rate}s"] = rates.gap
            expected[f"Ratio of {event.rate}s, lowest to highest"] = rates.ratio
        close(digits, [expected[name]])
        assert text
    own = case.page.payload["outcomes"][case.report.content.own]["say"]
    for element in case.page.all():
        if "data-say" in element.attrs:  # what the page shows before its script runs
            text, digits = own[element.attrs["data-say"]]
            assert (element.text, element.attrs.get("title", digits)) == (text, digits)
    for (_, digits), element in zip(
        cells["with the rule"], case.page.all("td", inside="figures")[2::2], strict=True
    ):
        assert digits == numbers(own[element.attrs["data-say"]][1])


def test_bar_takes_the_worse_verdict(case):
    judgment = case.report.content.chosen.judgment
    order = ["exceeded", "undecided", "within"]
    worse = min(judgment.rows, judgment.people, key=order.index)
    assert case.page.one("section", **{"class": "bar"}).attrs["data-verdict"] == worse
    assert case.page.payload["verdict"] == worse


def test_files_of_tables_have_all_groups_and_all_digits(case, tmp_path):
    tables, content = case.report.tables, case.report.content
    case.report.save_tables(tmp_path / "new" / "tables")
    written = {path.stem: path.read_bytes().decode() for path in (tmp_path / "new" / "tables").iterdir()}
    assert (
        {*written}
        == {*tables}
        == {"rule", "people", "errors", "limits"} | ({"compared"} if content.compared else set())
    )
    offered = case.page.csv()
    assert {*offered} == {f"fairramp-{name}.csv" for name in tables}
    for name, table in tables.items():
        assert written[name] == offered[f"fairramp-{name}.csv"] == table.to_csv()
        same(table_of(written[name]), table.to_dict())
    _, expected, _ = library_table(case, case.rule)
    for key, columns in expected.items():
        found = table_of(written[key.removeprefix("table-")])
        assert len(found.pop("group")) == len(content.groups)
        # In the order of the page's columns; those that do not apply are left out.
        _, cells = case.page.table(key)
        parts = [part for heading in cells for part in columns[heading]]
        assert len(found) == len(parts)
        for (name, column), part in zip(found.items(), parts, strict=True):
            np.testing.assert_allclose(column, np.array(part, dtype=float), rtol=1e-12, atol=1e-12, err_msg=name)
    limits = table_of(written["limits"])
    assert limits["reported_rule"].index("yes") == content.own
    for i in {0, content.own, len(content.outcomes) - 1}:
        rule = rule_at(case, content.outcomes[i])
        found = fairramp.audit(*case.columns, rule=rule, criterion=rule.criterion, **case.more)
        certificate = rule.certificate()
        row = {name: column[i] for name, column in limits.items()}
        assert row["limit"] == (rule.max_gap if rule.min_ratio is None else rule.min_ratio)
        for name, value in (
            ("gap", found.after.gap),
            ("ratio", found.after.ratio),
            ("estimated_limit", certificate.estimated),
            ("proven_limit", NAN if certificate.proven is None else certificate.proven),
            ("decided_at_random", found.randomized),
            ("accuracy", found.after.overall_accuracy),
        ):
            assert row[name] == pytest.approx(value, abs=1e-12, nan_ok=True), name


def test_same_rows_give_the_same_bytes_in_any_order(case):
    order = np.random.default_rng(1).permutation(len(case.columns[0]))
    shuffled = [column[order] for column in case.columns]
    more = {name: column[order] for name, column in case.more.items()}
    compared = case.rule if case.report.content.compared else None
    again = quiet_fit(*shuffled, **case.settings, **more)
    assert again.to_json() == case.rule.to_json()
    made = again.report(*shuffled, compare=compared, **more)
    assert made.to_json() == case.report.to_json()
    assert made.html == case.report.html
    assert {name: t.to_csv() for name, t in made.tables.items()} == {
        name: t.to_csv() for name, t in case.report.tables.items()
    }


# Names -------------------------------------------------------------------------------------------

HOSTILE = sorted(
    [
        "=cmd()",
        "{{x}}",
        "{% raw %}",
        "a|b",
        "\"quotes\" onclick='x'",
        "<script>alert(1)</script>",
        "</script><img src=x onerror=y>",
        "-->",
        "two\nlines\r\nmore",
        "\u202eright to left\u200f",
        "[a](javascript:b) `c`",
        "datum.x + '",
        "\t+1",
        "@all",
    ]
)


def structure(page):
    """Elements and the names of their attributes."""
    return [(e.tag, tuple(e.attrs)) for e in page.elements]


def test_names_are_inert_on_the_page_in_charts_and_in_files():
    n = len(HOSTILE)
    scores, group, labels, _ = rows(n * 60, n)
    pages, reports = [], []
    for names in (HOSTILE, [f"g{i:02}" for i in range(n)]):
        called = np.array(names, dtype=object)[group]
        rule = quiet_fit(scores, called, labels, max_gap=0.03)
        assert list(rule.groups) == names
        more = {"title": names[0], "decision": names[1], "owner": names[2], "source": names[3], "date": names[4]}
        more |= {"review_date": names[5], "compare_name": names[6]}
        reports.append(rule.report(scores, called, labels, compare=rule, **more))
        pages.append(Page(reports[-1].html))
    hostile, plain = pages
    assert structure(hostile) == structure(plain)
    differing = {
        (mine.tag, name)
        for mine, theirs in zip(hostile.elements, plain.elements, strict=True)
        for name in mine.attrs
        if mine.attrs[name] != theirs.attrs[name]
    }
    # Names are in texts for people who do not see the charts, in files, in a field, and in the footer's hash.
    assert differing <= {("div", "aria-label"), ("a", "href"), ("input", "value"), ("meta", "content")}
    scripts = [[e.text for e in page.all("script")[1:]] for page in pages]
    assert scripts[0] == scripts[1]
    assert "<" not in hostile.one(id="content").text
    for link in hostile.all("a"):
        assert link.attrs["href"].startswith(("data:text/csv;charset=utf-8,%EF%BB%BF", "#"))
    shown, _ = hostile.table("table-people")
    visible = [re.sub(r"[^ -~]", " ", show_label(name)) for name in HOSTILE]
    assert [re.sub(r"[^ -~]", " ", name) for name in shown] == visible
    assert not re.search(r"[\u202a-\u202e\u200f]", hostile.one("main").text)
    for spec, other in zip(*(page.payload["charts"].values() for page in pages), strict=True):
        # Vega interprets everything but the values of parameters.
        names = [param for param in spec["params"] if param["name"].endswith("names")]
        assert len(names) == ("names" in json.dumps(spec["params"]))
        drawn = [one for param in names for one in param.pop("value")]
        assert all(re.sub(r"[^ -~]", " ", one).removesuffix(" *") in visible for one in drawn)
        for param in other["params"]:
            if param["name"].endswith("names"):
                param.pop("value")
        assert json.dumps(spec["layer"]) == json.dumps(other["layer"])
        assert [p["name"] for p in spec["params"]] == [p["name"] for p in other["params"]]
    for name, table in reports[0].tables.items():
        header, *lines = csv.reader(io.StringIO(table.to_csv(), newline=""))
        assert all(len(line) == len(header) for line in lines)
        for line in lines:
            assert not re.match(r"\s*[=+@\t\r]", line[0])
        if name != "limits":
            assert len(lines) == n
        assert_markdown(table, visible if name != "limits" else None)


def assert_markdown(table, names):
    """Check that Markdown is one table with the names as text."""
    from markdown_it import MarkdownIt

    text = table.to_markdown()
    page = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable("table").render(text)
    found = []

    class Cells(HTMLParser):
        def handle_starttag(self, tag, attrs):
            assert tag in ("table", "thead", "tbody", "tr", "th", "td")
            assert not attrs or attrs == [("style", "text-align:right")]
            if tag == "tr":
                found.append([])
            elif tag in ("td", "th"):
                found[-1].append("")

        def handle_data(self, data):
            if found and found[-1] and data.strip("\n"):
                found[-1][-1] += data

    Cells().feed(page)
    assert len(found) == len(table) + 1
    assert len({len(line) for line in found}) == 1
    if names is not None:
        shown = [re.sub(r"[^ -~]+", " ", line[0].replace("\u200b", "")).strip() for line in found[1:]]
        assert shown == [re.sub(r"[^ -~]+", " ", name).strip() for name in names]


# Commands ----------------------------------------------------------------------------------------

#: Options of fit, besides columns, and whether there are weights and strata.
FITS = {
    "gap": "--max-gap 0.03",
    "ratio, steps": "--min-ratio 0.9 --ramp-width 0",
    "weights, paper": "--max-gap 0.03 --weight weight --ramp paper --ramp-width 0.125 --target-rate 0.37",
    "strata": "--max-gap 0.03 --strata 'the site'",
    "opportunity": "--criterion equal_opportunity --label 'the label' --min-ratio 0.95",
    "predictive, costs": "--criterion predictive_equality --label 'the label' --max-gap 0.01 --costs 2,1",
    "odds": "--criterion equalized_odds --label 'the label' --max-gap 0.02",
    "accuracy, two columns": "--max-gap 0.03 --label 'the label' --target-rate accuracy --group 'the site'",
    "percent": "--max-gap 0.03 --scale percent --cutoff 40 --ramp-width 3",
    "lower is better": "--max-gap 0.03 --lower-is-better --cutoff 0.45 --unseen-group original",
    "overall": "--max-gap 0.03 --overall-rate 0.3",
    "borrowing": "--max-gap 0.03 --small-groups borrow",
}


@pytest.mark.parametrize("name", FITS)
def test_commands_of_the_slider_fit_the_rules_that_it_shows(name, tmp_path, monkeypatch):
    monkeypatch.setattr("fairramp.show.report.page.render", lambda content: "")  # takes longer than the rest
    options = shlex.split(FITS[name])
    scores, group, labels, weights = rows(600)
    scores = 100 * scores if "percent" in options else scores
    run = Inside(tmp_path)
    lines = [
        f"{s:.10g},{'ABC'[g]},{y},{w:g},{'north' if i // 3 % 2 else 'the south'}"
        for i, (s, g, y, w) in enumerate(zip(scores, group, labels, weights, strict=True))
    ]
    file = "my scores.csv"
    run.write(file, "\n".join(["the score,the group,the label,weight,the site", *lines]) + "\n")
    run("fit", file, "--score", "the score", "--group", "the group", *options, "-o", "rule.json", "-q")
    given = ["--label", "the label"] + (["--weight", "weight"] if "weight" in options else [])
    done = run("report", "rule.json", file, *given, "-o", "r.html", "--json", "--tables", "as csv")
    content = json.loads(done.stdout)["report"]
    own = fairramp.Rule.load(tmp_path / "rule.json")
    written = {path.stem: table_of(path.read_bytes().decode()) for path in (tmp_path / "as csv").iterdir()}
    assert {*written} == {"rule", "people", "errors", "limits"}
    for i in sorted({0, len(content["outcomes"]) // 2, content["own"]}):
        outcome = content["outcomes"][i]
        program, *words = shlex.split(outcome["command"])
        assert program == "fairramp"
        output = words[words.index("-o") + 1]
        run(*words, "-q")
        rule = fairramp.Rule.load(tmp_path / output)
        shown = [NAN if value is None else value for value in outcome["thresholds"]]
        assert str(list(rule.thresholds)) == str(shown)
        assert written["limits"]["limit"][i] == (rule.max_gap if rule.min_ratio is None else rule.min_ratio)
        if i == content["own"]:
            assert rule.fingerprint == own.fingerprint


def test_command_of_labels_in_words_says_which_one_is_positive(tmp_path, monkeypatch):
    monkeypatch.setattr("fairramp.show.report.page.render", lambda content: "")
    scores, group, labels, _ = rows(300)
    run = Inside(tmp_path)
    lines = [f"{s},{g},{'hire' if y else 'reject'}" for s, g, y in zip(scores, group, labels, strict=True)]
    run.write("s.csv", "\n".join(["p,g,y", *lines]) + "\n")
    labeled = ("--label", "y", "--positive", "hire")
    by = ("--score", "p", "--group", "g", "--criterion", "equal_opportunity")
    run("fit", "s.csv", *by, *labeled, "-o", "rule.json", "-q")
    done = run("report", "rule.json", "s.csv", *labeled, "-o", "r.html", "--json")
    outcome = json.loads(done.stdout)["report"]["outcomes"][1]
    _, *words = shlex.split(outcome["command"])
    run(*words, "-q")
    rule = fairramp.Rule.load(tmp_path / words[words.index("-o") + 1])
    assert list(rule.thresholds) == outcome["thresholds"]


# Numbers of axes ---------------------------------------------------------------------------------


def texts_of(spec):
    return re.findall(r"<text[^>]*>([^<]*)</text>", vl_convert.vegalite_to_svg(spec))


def formats(spec):
    """The number formats of all axes."""
    if isinstance(spec, list):
        return [one for part in spec for one in formats(part)]
    if not isinstance(spec, dict):
        return []
    found = [one for name, value in spec.items() if name != "config" for one in formats(value)]
    axis = spec.get("axis")
    return found + ([(axis.get("format"), axis.get("labelExpr"))] if isinstance(axis, dict) else [])


def assert_readable(spec):
    """Check that no axis has a general or scientific format, and that no number is drawn with an exponent."""
    found = formats(spec)
    assert found
    for form, expression in found:
        assert expression or re.fullmatch(r"(\.\d)?~?[%f]", form), form
    drawn = texts_of(spec)
    assert drawn
    assert not [text for text in drawn if re.search(r"\d(\.\d+)?e[-+−]?\d", text)]
    return drawn


@pytest.mark.parametrize("rate", [1e-5, 1e-4, 0.003, 0.05, 1.0])
def test_ticks_have_no_exponents(rate):
    two = [rate, rate / 3]
    groups = Groups(["a", "b"])
    changes = Changes([["1", ""]], [["", "2"]])
    for highest in (None, 1.0):
        more = {"people": ["5", "6"], "changes": changes, "band": [two[::-1]], "highest": highest}
        chart = dumbbell_chart(groups, Dots([two]), Dots([two[::-1]]), **more)
        spec = finished(chart).to_dict()
        assert {form for form, _ in formats(spec)} == {"~%"}
        drawn = assert_readable(spec)
        assert "0%" in drawn
    chart = dumbbell_chart(groups, Dots([two], [[0.0, 0.0]], [[min(1, 2 * rate)] * 2]))
    assert_readable(finished(chart).to_dict())
    for ratios in (False, True):
        accuracies, limits = [1 - rate, 1 - rate / 2, 1.0], [(1 - rate, 1.0)] * 3
        ends = (rate, 1.0), (0.0, 1 - rate)
        chart = frontier_chart([0.0, rate / 2, rate], accuracies, limits, *ends, ratios=ratios)
        assert_readable(finished(chart).to_dict())


@pytest.mark.parametrize("scale", ["probability", "percent", "logit", "real"])
def test_ticks_of_whole_reports_have_no_exponents(scale):
    scores, group, labels, _ = rows(600)
    scores = {
        "probability": scores,
        "percent": 100 * scores,
        "logit": np.log(np.clip(scores, 0.01, 0.99) / (1 - np.clip(scores, 0.01, 0.99))),
        "real": 1000 * (scores - 0.5),
    }[scale]
    rule = quiet_fit(scores, group, labels, max_gap=0.03, scale=scale, cutoff=np.quantile(scores, 0.6))
    charts = content_charts(make_content(rule, scores, group, labels))
    assert {*charts} == {*EVENT_NAMES, "scores", "frontier"}
    for name, spec in charts.items() if scale == "probability" else [("scores", charts["scores"])]:
        spec = json.loads(json.dumps(spec))
        spec["width"] = 700  # the page's own is that of its frame
        assert_readable(spec)
        if name in EVENT_NAMES:
            assert {form for form, _ in formats(spec)} == {"~%"}
    assert_readable(rule.plot().to_dict())


def test_few_selected_of_many_are_not_drawn_with_exponents():
    n = 200_000
    scores, groups = np.zeros(n), np.repeat(["a", "b"], n // 2)
    scores[[0, 1, n - 1]] = 1.0
    rule = Rule(("a", "b"), (Ramp.centered(0.5, 0.1),) * 2, max_gap=0.01)
    content = make_content(rule, scores, groups)
    assert content.chosen.after.rate == (2e-5, 1e-5)
    for spec in content_charts(content).values():
        spec["width"] = 700
        assert_readable(spec)


# What the verdict does not cover -----------------------------------------------------------------


def test_other_rates_that_the_rule_drives_apart_stand_beside_the_verdict():
    data = fairramp.datasets.load_adult_scores()
    rule = fairramp.fit_rule(data.score, data.sex, max_gap=0.02)
    chances = rule.probabilities(data.score, data.sex)
    own = data.score >= 0.5
    gaps = []
    for decisions in (own, chances):
        rates = [decisions[(data.label == 1) & (data.sex == sex)].mean() for sex in ("Female", "Male")]
        gaps.append(abs(rates[0] - rates[1]))
    content = make_content(rule, data.score, data.sex, data.label)
    assert say(content, content.chosen)["harm"][0] == (
        "Side effect: among people with the favorable outcome (label 1), the gap between groups grows from "
        f"{100 * gaps[0]:.1f} points to {100 * gaps[1]:.1f} points."
    )
    unlabeled = make_content(rule, data.score, data.sex)
    assert say(unlabeled, unlabeled.chosen)["harm"][0] == ""
