"""Reports of rules for several classes: numbers against audits, certificates and plain NumPy, and the page."""

import csv
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import fairramp
from class_samples import class_people, quiet_class_fit
from fairramp.core.labels import show_label
from fairramp.core.words import percent, with_interval
from shell import Inside

HOSTILE = ["<script>alert(1)</script>", "=cmd()", "\"quotes\" & 'more'", "{{ x }}", "new\nline", "</title>"]


@pytest.fixture(scope="module")
def people():
    """Scores, groups, labels and weights of 2,000 fit rows and 2,000 others."""
    p, groups, y = class_people(4000, 3, 2, seed=1)
    return p, groups, np.array(["low", "mid", "high"])[y], np.random.default_rng(2).uniform(0.5, 2, 4000)


CLASSES, FIT, NEW = ["low", "mid", "high"], slice(0, 2000), slice(2000, None)


@pytest.fixture(scope="module")
def rule(people):
    return quiet_class_fit(people[0][FIT], people[1][FIT], classes=CLASSES, max_gap=0.02)


@pytest.fixture(autouse=True)
def small_bundle(monkeypatch):
    """The scripts of the charts take a second to make, and no test here runs them."""
    monkeypatch.setattr("fairramp.show.report.page.chart_bundle", lambda: "window.vegaEmbed = null;")


# Numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_are_those_of_the_audit_and_the_certificate(rule, people, weighted):
    p, groups, labels, w = (column[NEW] for column in people)
    weights = w if weighted else None
    content = rule.report(p, groups, labels, sample_weight=weights).content
    audit = fairramp.audit_classes(p, groups, labels, rule=rule, sample_weight=weights)
    limits = rule.certificate(probabilities=p, groups=groups, sample_weight=weights)
    assert content.before == audit.before
    assert content.after == audit.after
    assert (content.changed, content.overall_changed) == (audit.changed, audit.overall_changed)
    assert (content.drawn, content.rows_by_label) == (audit.randomized, audit.rows_by_label)
    assert (content.guarantee.estimated, content.guarantee.proven) == (limits.estimated, limits.proven)
    assert content.in_sample is False
    assert [group.name for group in content.groups] == list(audit.groups)
    assert content.weighted == weighted


@pytest.mark.parametrize("weighted", [False, True])
def test_people_and_errors_against_plain_sums(rule, people, weighted):
    p, groups, labels, w = (column[NEW] for column in people)
    content = rule.report(p, groups, labels, sample_weight=w if weighted else None).content
    w = w if weighted else np.ones(len(p))
    h, own = rule.probabilities(p, groups), np.eye(3)[p.argmax(axis=1)]
    true = np.array([CLASSES.index(label) for label in labels])
    right = h[np.arange(len(p)), true]
    assert content.people_changed == pytest.approx(np.abs(h - own).sum() / 2)
    assert content.people_drawn == (h.max(axis=1) < 1).sum()
    assert content.wrong == pytest.approx((1 - right).sum())
    assert content.wrong_before == (p.argmax(axis=1) != true).sum()
    accuracy = np.average(right, weights=w)
    half = 1.959963984540054 * np.sqrt(np.sum(w**2 * (right - accuracy) ** 2)) / w.sum()
    assert content.accuracy_interval == pytest.approx((accuracy - half, accuracy + half))
    assert content.overall_after == pytest.approx(np.average(h, axis=0, weights=w))
    assert content.overall_before == pytest.approx(np.average(own, axis=0, weights=w))
    for k, name in enumerate(np.unique(groups)):
        there = groups == name
        for c in range(3):
            more = np.maximum(h - own, 0)[there, c]
            less = np.maximum(own - h, 0)[there, c]
            assert content.changes.gain[c][k] == pytest.approx(more.sum())
            assert content.changes.lose[c][k] == pytest.approx(less.sum())
            assert content.changes.gain_share[c][k] == pytest.approx(np.average(more, weights=w[there]))
            assert content.changes.lose_share[c][k] == pytest.approx(np.average(less, weights=w[there]))
        assert content.offsets[k] == rule.offsets[rule.groups.index(name)]


def test_fit_rows_set_no_limit_for_new_people(rule, people):
    p, groups, labels, _ = (column[FIT] for column in people)
    content = rule.report(p, groups, labels).content
    assert content.in_sample is True
    assert content.data_fingerprint == content.fit_fingerprint == rule.record.fingerprint
    assert content.guarantee.estimated is None
    assert content.judgment.rows == "within"
    assert content.judgment.people == "undecided"
    assert "Only a report on other rows can limit the gap" in content.guarantee.sentence
    assert any("On new people the gap is usually larger" in note for note in content.notes)


def test_rule_without_a_record_says_that_nothing_is_known(people):
    rule = fairramp.ClassRule(("g0", "g1"), tuple(CLASSES), ((0.0, 0.0, 0.0), (0.02, 0.03, -0.05)))
    content = rule.report(people[0][NEW], people[1][NEW]).content
    assert content.in_sample is None
    assert "It is not known whether the rule was fitted on these rows" in content.judgment.on_people


def test_verdict_follows_from_the_gap_and_its_limits(rule, people):
    p, groups, _, _ = (column[NEW] for column in people)
    moved = p.copy()
    moved[groups == "g1"] = moved[groups == "g1"][:, [1, 2, 0]]
    content = rule.report(moved, groups).content
    assert content.after.gap_interval[0] > rule.max_gap
    assert (content.judgment.rows, content.judgment.people) == ("exceeded", "exceeded")
    assert content.judgment.headline == "Above the limit of 2.0 points on these rows"
    generous = quiet_class_fit(people[0][FIT], people[1][FIT], classes=CLASSES, max_gap=0.1)
    content = generous.report(p, groups).content
    limit = generous.certificate(probabilities=p, groups=groups).estimated
    assert content.judgment.people == ("within" if limit <= 0.1 else "undecided")


def test_strata(people):
    p, groups, labels, _ = (column[NEW] for column in people)
    strata = np.where(np.arange(4000) % 3 == 0, "north", "south")
    rule = quiet_class_fit(people[0][FIT], people[1][FIT], strata=strata[FIT], classes=CLASSES, max_gap=0.05)
    report = rule.report(p, groups, labels, strata=strata[NEW])
    audit = fairramp.audit_classes(p, groups, labels, rule=rule, strata=strata[NEW])
    assert report.content.after == audit.after
    limits = rule.certificate(probabilities=p, groups=groups, strata=strata[NEW])
    assert report.content.guarantee.estimated == limits.estimated
    assert len(report.content.groups) == 4
    assert "of the same stratum" in report.html
    with pytest.raises(fairramp.InputError, match="strata"):
        rule.report(p, groups)


def test_group_probabilities(people):
    p, groups, labels, _ = people
    told = (groups == "g1") ^ (np.random.default_rng(3).random(len(p)) < 0.2)  # wrong for one in five
    q = np.where(told, 0.8, 0.2)
    one, two = (fairramp.GroupProbabilities({"g0": 1 - q[part], "g1": q[part]}) for part in (FIT, NEW))
    rule = quiet_class_fit(p[FIT], one, classes=CLASSES, max_gap=0.02)
    report = rule.report(p[NEW], groups[NEW], labels[NEW], group_probabilities=two)
    given = {"rule": rule, "group_probabilities": two}
    audit = fairramp.audit_classes(p[NEW], groups[NEW], labels[NEW], **given)
    assert report.content.after == audit.after
    assert set(audit.group_model.sentences()) <= set(report.content.notes)
    assert "weighted by the person’s probabilities of the groups" in report.html
    with pytest.raises(fairramp.InputError, match="true group"):
        rule.report(p[NEW], two)


def test_unseen_groups(people, rule):
    p, groups, labels, _ = (column[NEW] for column in people)
    more = np.where(np.arange(len(p)) % 10 == 0, "other", groups)
    with pytest.raises(fairramp.UnseenGroupError, match="other"):
        rule.report(p, more)
    keeps = quiet_class_fit(people[0][FIT], people[1][FIT], classes=CLASSES, unseen_group="original")
    content = keeps.report(p, more, labels).content
    known = more != "other"
    assert content.after == keeps.report(p[known], more[known], labels[known]).content.after
    assert "200 rows in 1 group that the rule was not fitted on are left out of this page." in content.notes
    only = keeps.report(p[groups == "g0"], groups[groups == "g0"]).content
    assert "1 of the rule's 2 groups has no rows here." in only.notes
    assert only.judgment.headline.startswith("Cannot be decided")
    with pytest.raises(fairramp.InputError, match="No group of the rule has rows here"):
        keeps.report(p, ["other"] * len(p))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"title": 3}, "`title` must be a string, got 3"),
        ({"confidence": 2}, "`confidence` must be between 0.5 and"),
        ({"labels": ["none"] * 2000}, "`labels`"),
        ({"strata": ["a"] * 2000}, "does not use `strata`"),
        ({"sample_weight": [-1.0] * 2000}, "`sample_weight`"),
        ({"groups": ["g0"]}, "`groups`"),
    ],
)
def test_refusals_name_the_argument(rule, people, given, sentence):
    arguments = {"probabilities": people[0][NEW], "groups": people[1][NEW]} | given
    with pytest.raises(fairramp.InputError) as caught:
        rule.report(**arguments)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


# The page ---------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Cells of tables by id, tags, and texts."""

    def __init__(self, html):
        super().__init__()
        self.tables, self.tags, self.texts, self._table, self._in = {}, [], [], None, None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._in = tag
        if tag == "table":
            self._table = self.tables[dict(attrs)["id"]] = []
        elif tag == "tr" and self._table is not None:
            self._table.append([])
        elif tag in ("td", "th") and self._table is not None:
            self._table[-1].append("")

    def handle_endtag(self, tag):
        self._in = None
        self._table = None if tag == "table" else self._table

    def handle_data(self, data):
        if self._in not in ("script", "style"):
            self.texts.append(data)
        if self._table and self._table[-1] and self._in is not None:
            self._table[-1][-1] += data


def test_tables_of_the_page_show_the_content(rule, people):
    report = rule.report(*(column[NEW] for column in people[:3]))
    content, page = report.content, Page(report.html)
    before, after = content.before, content.after
    heading, *rows = page.tables["table-rates"]
    assert heading[:3] == ["class", "group", "people"]
    for i, row in enumerate(rows):
        assert row[:2] == [CLASSES[i // 2], ["g0", "g1"][i % 2]]
        for text, one in zip(row[3:5], (before, after), strict=True):
            assert text == with_interval(*map(percent, (one.rate[i], one.lower[i], one.upper[i])))
    assert len(rows) == 6
    offsets = [row[2:] for row in page.tables["table-rule"][1:]]
    assert [[float(x) for x in row] for row in offsets] == pytest.approx(np.array(rule.offsets), abs=5e-5)
    confusion = page.tables["table-confusion"][1:]
    for i, row in enumerate(confusion):
        k, t = divmod(i, 3)
        assert row[:2] == [["g0", "g1"][k], CLASSES[t]]
        shares = zip(before.confusion[k][t], after.confusion[k][t], strict=True)
        assert row[3:] == [f"{percent(a)} → {percent(b)}" for a, b in shares]
    text = " ".join(page.texts)
    assert content.judgment.headline in text
    assert rule.fingerprint in text
    for sentence in (*content.limits, *content.notes):
        assert sentence in text
    assert "slider" not in text.lower()


def test_without_labels_there_are_no_errors(rule, people):
    report = rule.report(people[0][NEW], people[1][NEW])
    assert list(report.tables) == ["rates", "gaps", "rule"]
    assert "Errors unknown" in report.html
    assert report.content.accuracy_interval is None


def test_rule_that_changes_nothing(people):
    p, groups, labels, _ = (column[NEW] for column in people)
    content = quiet_class_fit(p, groups, classes=CLASSES, max_gap=1).report(p, groups, labels).content
    assert content.before == content.after
    assert content.people_changed == content.people_drawn == content.overall_changed == 0
    assert content.wrong == content.wrong_before


def test_same_input_gives_the_same_bytes(rule, people, tmp_path):
    given = [column[NEW] for column in people[:3]]
    rule.report(*given, path=tmp_path / "one.html")
    report = fairramp.ClassRule.from_json(rule.to_json()).report(*given)
    report.save(tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
    assert report.to_json() == rule.report(*given).to_json()
    assert json.loads(report.to_json()) == report.content.to_dict()
    assert repr(report) == "fairramp report on 2,000 rows in 2 groups; save it with .save('report.html')"


def test_page_allows_no_outside_request(rule, people):
    html = rule.report(people[0][NEW], people[1][NEW]).html
    assert "default-src &#39;none&#39;" in html
    links = re.findall(r'\b(?:src|href)="([^"]*)"', html)
    assert links
    assert all(link.startswith(("data:", "#")) for link in links)


def test_hostile_names_are_inert_in_the_page_and_the_tables(tmp_path):
    p, codes, y = class_people(1500, len(HOSTILE), len(HOSTILE), seed=4)
    groups, labels = [HOSTILE[int(code[1:])] for code in codes], [HOSTILE[c] for c in y]
    rule = quiet_class_fit(p, groups, classes=HOSTILE, max_gap=0.05)
    report = rule.report(p, groups, labels, title=HOSTILE[0], decision=HOSTILE[3], owner=HOSTILE[5])
    page = Page(report.html)
    assert page.tags.count("script") == 3
    assert page.tags.count("title") == 1
    shown = [show_label(name) for name in HOSTILE]
    assert [row[0] for row in page.tables["table-gaps"][1:]] == shown
    assert {row[1].removesuffix(" few rows") for row in page.tables["table-rates"][1:]} == set(shown)
    payload = re.search(r'<script id="content" type="application/json">(.*?)</script>', report.html, re.DOTALL)
    said = json.loads(payload[1])["outcomes"][0]["say"]
    assert HOSTILE[0] in said["lead_class-0"][0]
    report.save_tables(tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == {"rates", "gaps", "rule", "errors", "confusion"}
    for path in tmp_path.iterdir():
        table = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
        names = [row[0] for row in table[1:]]
        assert {name.removeprefix("'") for name in names} == set(shown)
        assert not any(text.lstrip().startswith(("=", "+", "@")) for row in table for text in row)


def test_command_writes_the_report_of_the_library(tmp_path, people, rule):
    p, groups, labels, _ = (column[NEW] for column in people)
    lines = [f"{a!r},{b!r},{c!r},{g},{y}" for (a, b, c), g, y in zip(p.tolist(), groups, labels, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,c,sex,label", *lines]) + "\n")
    rule.save(tmp_path / "rule.json")
    scores = [part for pair in zip(CLASSES, "abc", strict=True) for part in ("--class-score", "=".join(pair))]
    columns = ["--group", "sex", "--label", "label"]
    given = ["report", "rule.json", "data.csv", *scores, *columns, "-o", "report.html"]
    shell = Inside(tmp_path)
    found = json.loads(shell(*given, "--tables", "tables", "--json").stdout)["report"]
    content = rule.report(p, groups, labels).content.to_dict()
    assert found["after"]["rate"] == pytest.approx(content["after"]["rate"], abs=1e-12)
    assert found["rows"] == content["rows"]
    assert found["about"]["source"] == "data.csv"
    assert "Rates of each class" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "tables" / "rates.csv").exists()
    said = " ".join(shell(*given).stdout.split())
    assert content["judgment"]["headline"] in said
    assert content["judgment"]["advice"] in said
