"""Report contents without a browser: numbers match the library, bytes are reproducible, charts render."""

import html
import json
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pytest

import fairramp
from fairramp.core.words import fixed, percent, points, upward_points
from fairramp.show.charts.pieces import PRINTED, STYLED
from fairramp.show.report.charts import content_charts
from fairramp.show.report.make import make_content
from samples import quiet_fit
from shell import Inside
from shell import rows as csv_rows


@pytest.fixture(scope="module")
def adult():
    return fairramp.datasets.load_adult_scores()


@pytest.fixture(scope="module")
def report(adult):
    return fairramp.fit_rule(adult.score, adult.sex, max_gap=0.02).report(adult.score, adult.sex, adult.label)


def rows(n=900, groups=3, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    scores = np.clip(rng.random(n) * 0.7 + 0.25 * group / groups, 0, 1).round(3)
    return scores, group, (rng.random(n) < scores).astype(int), rng.integers(1, 4, n).astype(float)


def assert_is_audit(outcome, found, tolerance=1e-12):
    """Check that an outcome has the numbers of an audit."""
    after, mine_after = found.after, outcome.after
    for mine, theirs in (
        (mine_after.rate, after.rate),
        (outcome.changed_to_yes, found.changed_to_yes),
        (outcome.changed_to_no, found.changed_to_no),
        ([mine_after.gap, mine_after.ratio, outcome.drawn], [after.gap, after.ratio, found.randomized]),
        (mine_after.lower, after.lower),
        (mine_after.upper, after.upper),
        (mine_after.gap_interval, after.gap_interval),
        (mine_after.ratio_interval, after.ratio_interval),
    ):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=tolerance)
    if after.accuracy is not None:
        np.testing.assert_allclose(mine_after.accuracy, after.accuracy, atol=tolerance)
        np.testing.assert_allclose(mine_after.true_positive_rate, after.true_positive_rate, atol=tolerance)
        np.testing.assert_allclose(mine_after.false_positive_rate, after.false_positive_rate, atol=tolerance)
        assert mine_after.overall_accuracy == pytest.approx(after.overall_accuracy, abs=tolerance)


@pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ramp_width": 0},
        {"target_rate": 0.3, "ramp": "paper"},
        {"target_rate": "accuracy"},
        {"target_rate": "base_rate"},
        {"cutoff": 0.4, "ramp_width": 0.2},
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_slider_position_matches_fit_and_audit(settings, weighted):
    scores, group, labels, weights = rows()
    weights = weights if weighted else None
    own = fairramp.fit_rule(scores, group, labels, max_gap=0.03, sample_weight=weights, **settings)
    content = make_content(own, scores, group, labels, sample_weight=weights)
    assert content.chosen.max_gap == 0.03
    for outcome in content.outcomes[:: max(len(content.outcomes) // 4, 1)]:
        rule = fairramp.fit_rule(
            scores, group, labels, max_gap=outcome.max_gap, sample_weight=weights, **settings
        )
        assert list(rule.thresholds) == list(outcome.thresholds)
        assert_is_audit(outcome, fairramp.audit(scores, group, labels, rule=rule, sample_weight=weights))
        assert outcome.guarantee.estimated == rule.certificate().estimated


def test_own_position_is_the_given_rule_even_on_other_rows():
    scores, group, *_ = rows()
    rule = fairramp.fit_rule(scores, group, max_gap=0.03)
    others = rows(seed=1)
    content = make_content(rule, *others[:3])
    assert not content.in_sample
    assert content.outcomes[content.own].is_own
    assert list(rule.thresholds) == list(content.chosen.thresholds)
    assert_is_audit(content.chosen, fairramp.audit(*others[:3], rule=rule))
    assert make_content(rule, scores, group).in_sample


def test_accuracies_match_the_frontier():
    scores, group, labels, weights = rows()
    rule = fairramp.fit_rule(scores, group, labels, max_gap=0.03, target_rate="accuracy", sample_weight=weights)
    outcomes = make_content(rule, scores, group, labels, sample_weight=weights).outcomes
    gaps = [outcome.max_gap for outcome in outcomes]
    curve = fairramp.frontier(scores, group, labels, max_gaps=gaps, sample_weight=weights)
    accuracies = np.array([o.after.overall_accuracy for o in outcomes])
    # A frontier keeps a stricter rule if it is more accurate on the fit rows.
    np.testing.assert_allclose(np.maximum.accumulate(accuracies), curve.accuracies, atol=1e-12)
    same = np.abs(accuracies - curve.accuracies) < 1e-12
    assert same.mean() > 0.3
    limits = np.column_stack([curve.lower, curve.upper])
    np.testing.assert_allclose(np.array([o.accuracy_interval for o in outcomes])[same], limits[same], atol=1e-6)
    np.testing.assert_allclose(
        np.array([o.after.gap for o in outcomes])[same], np.array(curve.gaps)[same], atol=1e-12
    )


def test_binned_rows_give_the_same_numbers(binned):
    scores, group, labels, weights = rows(n=4000)
    rule = fairramp.fit_rule(scores, group, max_gap=0.03, sample_weight=weights)
    content = make_content(rule, scores, group, labels, sample_weight=weights)
    found = fairramp.audit(scores, group, labels, rule=rule, sample_weight=weights)
    # Limits depend on Σw²(h − r)², which is approximate for bins on the ramp.
    assert_is_audit(content.chosen, found, tolerance=1e-5)
    np.testing.assert_allclose(content.chosen.after.rate, found.after.rate, atol=1e-12)
    np.testing.assert_allclose(content.chosen.changed_to_yes, found.changed_to_yes, atol=1e-12)


def test_report_says_whether_its_rows_exceed_the_limit():
    scores, group, *_ = rows(n=6000)
    rule = fairramp.fit_rule(scores, group, max_gap=0.03)
    assert make_content(rule, scores, group).drift is None
    others, new_group, *_ = rows(n=6000, seed=1)
    fine = make_content(rule, others, new_group)
    assert fine.is_kept
    assert fine.drift.startswith("No sign that the gap exceeds the estimated limit of ")
    others[new_group == 2] = np.minimum(others[new_group == 2] + 0.3, 1)
    found, content = rule.check(others, new_group), make_content(rule, others, new_group)
    assert found.has_drifted
    assert content.is_kept is False
    low, high = (f"{100 * end:.1f}" for end in found.gap_interval)
    assert content.drift == (
        f"Above the estimated limit of {upward_points(rule.certificate().estimated)}: the gap is "
        f"{points(found.gap)} [{low}, {high}] on the new rows."
    )
    page = rule.report(others, new_group).html
    (first,) = (place.start() for place in re.finditer(re.escape(content.drift), page))
    assert page.index('class="bar"') < first < page.index('class="guarantee')
    judgment = content.chosen.judgment
    assert "These rows show that the rule exceeds its estimated limit." in judgment.on_people
    assert judgment.people != "within"
    approval = page[page.index('id="approval"') : page.index("Signature")]
    assert html.escape(judgment.headline) in approval
    assert html.escape(judgment.on_people.removeprefix("For new people: ")) in approval
    assert make_content(replace(rule, record=None), others, new_group).is_kept is None


def test_report_states_the_requested_population_limit():
    scores, group, *_ = rows(n=6000)
    rule = fairramp.fit_rule(scores, group, max_gap=0.15, confidence=0.95)
    page = rule.report(scores, group).html
    assert "Requested: a gap in the population of at most 15.0" in page
    assert ", with 95% confidence (estimated limit)" in page
    assert make_content(rule, scores, group).settings["asked"] == {
        "max_gap": 0.15,
        "confidence": 0.95,
        "limit": "estimated",
    }
    plain = fairramp.fit_rule(scores, group, max_gap=0.15)
    assert "Requested" not in plain.report(scores, group).html


def test_report_names_the_group_that_widens_its_limits():
    scores, group, *_ = rows(n=6000)
    group[:40], group[40:] = 9, group[40:] % 2
    rule = fairramp.fit_rule(scores, group, max_gap=0.03)
    certificate, content = rule.certificate(), make_content(rule, scores, group)
    assert certificate.left_out == ((9, 40),)
    rest = certificate.rest
    assert content.chosen.guarantee.sentence.endswith(
        f"The uncertainty is largest for group \u20689\u2069 (40 fit rows). Without that group: {rest.limits()}."
    )
    others, new_group, *_ = rows(n=6000, seed=1)
    new_group[:40], new_group[40:] = 9, new_group[40:] % 2
    others[new_group == 1] = np.minimum(others[new_group == 1] + 0.12, 1)
    said = make_content(rule, others, new_group).drift
    assert said.startswith("Without group \u20689\u2069 (40 fit rows): above the estimated limit of ")
    assert " All groups: " in said


def test_strata():
    scores, group, labels, _ = rows(groups=2)
    strata = np.random.default_rng(5).integers(0, 3, len(scores))
    rule = fairramp.fit_rule(scores, group, strata=strata, max_gap=0.02)
    content = make_content(rule, scores, group, labels, strata=strata)
    assert_is_audit(content.chosen, fairramp.audit(scores, group, labels, rule=rule, strata=strata))
    assert len(content.groups) == 6


def test_histograms_are_shares_of_the_scores():
    scores, group, *_ = rows()
    content = make_content(fairramp.fit_rule(scores, group), scores, group)
    for k, g in enumerate(content.groups):
        counts, _ = np.histogram(scores[group == k], bins=64, range=(0, 1))
        np.testing.assert_allclose(g.histogram, counts / counts.sum())


def test_same_input_gives_the_same_bytes(adult, report):
    again = fairramp.fit_rule(adult.score, adult.sex, max_gap=0.02).report(adult.score, adult.sex, adult.label)
    order = np.random.default_rng(0).permutation(len(adult.score))
    shuffled = fairramp.fit_rule(adult.score, adult.sex, max_gap=0.02).report(
        adult.score[order], adult.sex[order], adult.label[order]
    )
    assert again.html == report.html
    assert again.to_json() == shuffled.to_json() == report.to_json()


def test_page_loads_nothing_external(report):
    head = html.unescape(report.html[: report.html.index("<style>")])
    assert "default-src 'none'" in head
    assert "unsafe" not in head
    assert "<script src" not in report.html
    assert report.html.count("<link") == 1  # the icon, which is empty


def test_saving_to_a_path_is_all_or_nothing(adult, report, tmp_path):
    rule = fairramp.fit_rule(adult.score, adult.sex, max_gap=0.02)
    rule.report(adult.score, adult.sex, adult.label, path=tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.html
    for place in (tmp_path, tmp_path / "nowhere" / "report.html"):
        with pytest.raises(fairramp.FairrampError, match="Cannot save the report"):
            report.save(place)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_json_round_trip(report):
    content = json.loads(report.to_json())
    assert content["outcomes"][content["own"]]["is_own"]
    assert content["rule_fingerprint"] == report.content.rule_fingerprint


def test_unknown_groups_are_left_out_and_counted():
    scores, group, *_ = rows()
    rule = fairramp.fit_rule(scores[group < 2], group[group < 2], unseen_group="original")
    content = make_content(rule, scores, group)
    assert content.rows == (group < 2).sum()
    assert (
        f"{(group == 2).sum():,} rows in 1 group that the rule was not fitted on are left out" in content.notes[0]
    )
    one = np.append(np.flatnonzero(group < 2), np.flatnonzero(group == 2)[0])
    assert make_content(rule, scores[one], group[one]).notes[0].startswith("1 row in 1 group that")
    with pytest.raises(fairramp.UnseenGroupError):
        make_content(fairramp.fit_rule(scores[group < 2], group[group < 2]), scores, group)
    with pytest.raises(fairramp.InputError, match="None of the rows"):
        make_content(rule, scores[group == 2], group[group == 2])


def test_hand_written_rule_is_reported_without_a_certificate():
    scores, group, *_ = rows(groups=2)
    rule = fairramp.Rule(
        (0, 1), (fairramp.Ramp.centered(0.5, 0.1), fairramp.Ramp.centered(0.6, 0.1)), target_rate=0.4
    )
    content = make_content(rule, scores, group)
    assert content.chosen.guarantee.estimated is None
    assert content.fit_fingerprint is None
    assert "by hand" in content.chosen.guarantee.sentence
    assert "<html" in rule.report(scores, group).html


@pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")
def test_one_group_and_small_groups_are_noted():
    alone = make_content(fairramp.fit_rule([0.2, 0.7], ["a", "a"]), [0.2, 0.7], ["a", "a"])
    assert any("There is one group" in note for note in alone.notes)
    assert any("2 rows" in note for note in alone.notes)


def test_rule_that_changes_nothing_says_so():
    scores, group = np.tile(np.linspace(0, 1, 101), 2), np.repeat([0, 1], 101)
    content = make_content(fairramp.fit_rule(scores, group), scores, group)
    assert content.chosen.stands
    assert content.chosen.changed == 0
    assert "Nothing changes" in content.chosen.sentence


def test_labels_with_one_value_leave_blanks_in_the_table():
    scores, group, *_ = rows(groups=2)
    content = make_content(fairramp.fit_rule(scores, group), scores, group, np.ones(len(scores), dtype=int))
    assert np.isnan(content.chosen.after.false_positive_rate).all()
    chosen = json.loads(content.to_json())["outcomes"][content.own]
    assert chosen["after"]["rates"]["false_positive"]["rate"] == [None, None]


def test_refits_do_not_warn():
    scores, group, *_ = rows(n=60, groups=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rule = fairramp.fit_rule(scores, group, max_gap=0.1)
    rule.report(scores, group)  # warnings are errors here


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (0.25, 1, "0.3"),
        (0.05, 1, "0.1"),
        (2.5, 0, "3"),
        (-0.04, 1, "0.0"),
        (12.25, 1, "12.3"),
        (1.005, 2, "1.00"),
    ],
)
def test_rounding_matches_browsers(value, decimals, text):
    assert fixed(value, decimals) == text


def test_small_shares_are_not_shown_as_zero():
    assert percent(0.0) == "0.0%"
    assert percent(0.0004) == "<0.1%"
    assert points(0.02) == "2.0 points"
    assert points(1e-6) == "<0.1 points"


def test_charts_are_saved_as_files(adult, tmp_path):
    rule = fairramp.fit_rule(adult.score, adult.race, max_gap=0.02)
    charts = {
        "rule": rule.plot(),
        "audit": fairramp.audit(adult.score, adult.race, adult.label, rule=rule).plot(),
        "plain": fairramp.audit(adult.score, adult.race).plot(),
        "frontier": fairramp.frontier(adult.score, adult.race, adult.label, max_gaps=[0, 0.1]).plot(),
        "by hand": fairramp.Rule(("a",), (fairramp.Ramp.centered(0.5, 0.1),)).plot(),
    }
    for name, chart in charts.items():
        for kind in ("svg", "png"):
            path = tmp_path / f"{name}.{kind}"
            chart.save(path)
            assert path.stat().st_size > 2000
    svg = (tmp_path / "audit.svg").read_text()
    assert "Amer-Indian-Eskimo" in svg
    found = fairramp.audit(adult.score, adult.race, rule=rule)
    assert all(f"{100 * rate:.1f}%" in svg for rate in found.after.rate)


#: What each color of a chart means, by its name in the theme: yes, no, what-if, or neither.
NEUTRAL = ("ink", "muted", "line", "paper", "background")
COLORED = ("color", "fill", "stroke", "background")


def colors_of(spec):
    """Every color of a chart with its mark, and the condition under which it holds."""
    if isinstance(spec, list):
        return [found for part in spec for found in colors_of(part)]
    if not isinstance(spec, dict):
        return []
    found = []
    for name, value in spec.items():
        if name == "params":  # numbers and names
            continue
        if (name in COLORED or name.endswith("Color")) and isinstance(value, str):
            found.append((value, spec.get("type"), None))
        elif name in COLORED and isinstance(value, dict) and "condition" in value:
            condition = value["condition"]
            found.append((condition["value"], None, condition["test"]))
            found.append((value["value"], None, f"not {condition['test']}"))
        elif name in COLORED and isinstance(value, dict):
            raise AssertionError(f"a color that depends on data: {value}")
        else:
            found += colors_of(value)
    return found


@pytest.mark.parametrize("n", [2, 7, 15])
@pytest.mark.parametrize("stratified", [False, True])
def test_one_color_has_one_meaning(n, stratified):
    scores, groups, labels, _ = rows(n * 100, n)
    more = {"strata": np.arange(n * 100) // n % 2} if stratified else {}
    rule = quiet_fit(scores, groups, max_gap=0.02, **more)
    content = make_content(rule, scores, groups, labels, **more)
    audited = fairramp.audit(scores, groups, labels, rule=rule, **more)
    curve = fairramp.frontier(scores, groups, labels, max_gaps=[0, 0.1])
    charts = {
        **{name: (chart, STYLED) for name, chart in content_charts(content).items()},
        "rule": (rule.plot().to_dict(), PRINTED),
        "audit": (audited.plot().to_dict(), PRINTED),
        "plot of a frontier": (curve.plot().to_dict(), PRINTED),
    }
    assert {"selection", "true_positive", "false_positive", "scores", "frontier"} < charts.keys()
    for name, (chart, theme) in charts.items():
        found = colors_of(chart)
        neutral = {getattr(theme, color) for color in NEUTRAL}
        assert {color for color, *_ in found} <= neutral | {theme.yes, theme.no, theme.what_if}
        colored = [one for one in found if one[0] not in neutral]
        for color, mark, condition in colored:
            if color == theme.what_if:
                assert (name, mark) == ("frontier", "point")
            elif condition is not None:  # a line from before to after
                assert condition == {theme.yes: "datum.rises", theme.no: "not datum.rises"}[color]
            else:  # what is selected, and the answers that change
                assert mark == "text" or (mark == "rect" and color == theme.yes and name in ("scores", "rule"))
        for layer in (layer for part in chart.get("vconcat", [chart]) for layer in part["layer"]):
            said = json.dumps(layer.get("transform", []))
            if "now yes" in said:
                assert layer["mark"]["color"] == theme.yes
            if "now no'" in said:
                assert layer["mark"]["color"] == theme.no


def test_dots_are_hollow_before_and_filled_after(report):
    for name in ("selection", "true_positive", "false_positive"):
        spec = content_charts(report.content)[name]
        looks = [layer["mark"] for layer in spec["layer"] if layer["mark"]["type"] == "point"]
        assert [(look["fill"], look["stroke"]) for look in looks] == [
            (STYLED.paper, STYLED.muted),
            (STYLED.ink, STYLED.ink),
        ]


def test_notebooks_show_text_and_tables(adult):
    rule = fairramp.fit_rule(adult.score, adult.sex, max_gap=0.02)
    found = fairramp.audit(adult.score, adult.sex, adult.label, rule=rule)
    for shown in (rule, found, rule.certificate(), rule.table()):
        assert "<table>" in shown._repr_html_()
    hostile = fairramp.fit_rule([0.2, 0.7, 0.4, 0.9] * 20, ["<b>", "&"] * 40, target_rate=0.5)
    assert "<b>" not in hostile._repr_html_()
    assert "&lt;b&gt;" in hostile._repr_html_()


@pytest.mark.parametrize("library", ["altair", "jinja2", "vl_convert"])
def test_missing_report_extra_gives_install_command(library):
    code = (
        "import sys, fairramp\n"
        f"sys.modules[{library!r}] = None\n"
        "rule = fairramp.fit_rule([0.2, 0.7] * 40, [0, 1] * 40)\n"
        "made = rule.report([0.2, 0.7] * 40, [0, 1] * 40)\n"
        "for use in (lambda: made.html, lambda: rule.plot().to_dict()):\n"
        "    try:\n"
        "        use()\n"
        "    except fairramp.FairrampError as error:\n"
        "        print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    line = f"{library} is not installed; install it with: {sys.executable} -m pip install 'fairramp[report]'"
    assert said.count(line) == (1 if library == "vl_convert" else 2)  # only the page and files need it


def test_content_needs_no_extra():
    code = (
        "import sys, fairramp\n"
        "fairramp.fit_rule([0.2, 0.7] * 40, [0, 1] * 40).report([0.2, 0.7] * 40, [0, 1] * 40).to_json()\n"
        "assert not {'altair', 'jinja2', 'vl_convert'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def shown_of(page):
    """Text of the page without scripts."""
    return html.unescape(re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL))


@pytest.mark.parametrize("ramp_width", [0.02, 0])
def test_percent_scale_is_shown_in_percent_everywhere(ramp_width):
    scores, group, labels, _ = rows()
    settings = {"max_gap": 0.03, "ramp_width": ramp_width}
    rule = fairramp.fit_rule(100 * scores, group, scale="percent", cutoff=40, **settings)
    made = rule.report(100 * scores, group, labels)
    content, table = made.content, rule.table().to_dict()
    assert list(content.chosen.thresholds) == list(table["threshold"])
    if ramp_width:
        assert list(content.chosen.ramp_from) == list(table["ramp_from"])
        assert list(content.chosen.ramp_to) == list(table["ramp_to"])
    assert content.score_range == (0, 100)
    assert content.cutoff == content.settings["cutoff"] == 40
    assert content.settings["ramp_width"] == content.chosen.ramp_width == 100 * ramp_width
    plain = make_content(fairramp.fit_rule(scores, group, cutoff=0.4, **settings), scores, group, labels)
    for one, other in zip(content.outcomes, plain.outcomes, strict=True):
        for name in ("ramp_width", "thresholds", "ramp_from", "ramp_to"):
            np.testing.assert_allclose(getattr(one, name), 100 * np.array(getattr(other, name)), atol=1e-9)
        for name in ("after.rate", "tie_chances", "after.gap", "after.overall_accuracy", "drawn"):
            np.testing.assert_allclose(attrgetter(name)(one), attrgetter(name)(other), atol=1e-12)
    page = shown_of(made.html)
    assert f">{fixed(table['threshold'][0], 4)}</td>" in page
    assert f"Thresholds from {fixed(min(table['threshold']), 3)} to" in page
    assert "thresholds and ramps are in percent, like the scores" in page
    assert f"centered, width {100 * ramp_width:g} percent" in page
    for spec in (content_charts(content)["scores"], rule.plot().to_dict()):
        text = json.dumps(spec)
        assert '"score, percent"' in text
        assert '"domain": [0.0, 100.0]' in text
        params = {param["name"]: param.get("value") for param in spec["params"]}
        at = params["at"]
        np.testing.assert_allclose(params["thresholds"][at], table["threshold"], atol=1e-6)
        widths = np.subtract(params["tops"][at], params["feet"][at])
        np.testing.assert_allclose(widths, 100 * ramp_width, atol=1e-9)
        assert params["cutoff"] == 40.0


def test_logits_are_shown_as_probabilities_with_a_note():
    scores, group, *_ = rows()
    logits = np.log(np.clip(scores, 0.01, 0.99) / (1 - np.clip(scores, 0.01, 0.99)))
    made = fairramp.fit_rule(logits, group, scale="logit", cutoff=-0.4).report(logits, group)
    assert "thresholds and ramps are probabilities" in shown_of(made.html)
    assert made.content.cutoff == pytest.approx(1 / (1 + np.exp(0.4)))
    assert made.content.settings["cutoff"] == -0.4
    assert "thresholds and ramps are" not in shown_of(fairramp.fit_rule(scores, group).report(scores, group).html)


@pytest.mark.parametrize(("bins", "in_sample"), [(1024, True), (16, None)])
def test_rule_fitted_to_bins_does_not_claim_to_know_its_rows(bins, in_sample):
    _, group, *_ = rows()
    scores = np.random.default_rng(2).random(len(group)) * (0.7 + 0.1 * group)
    summary = fairramp.summarize(scores, group, resolution=bins)
    rule = fairramp.fit_summary(summary, max_gap=0.03)
    assert any(rule.record.rates["selection"].error)
    content = make_content(rule, scores, group)
    assert content.in_sample is in_sample
    assert make_content(rule, *rows(seed=1)[:2]).in_sample is None
    notes = " ".join(content.notes)
    assert "These are not the rows" not in notes
    assert ("It is not known whether these are the rows" in notes) == (in_sample is None)
    assert f"off by up to {100 * max(rule.record.rates['selection'].error):.2g} percentage points" in notes


def test_exact_bins_do_not_rule_out_the_fit_rows():
    scores, group = np.tile(np.linspace(0, 1, 101), 2), np.repeat([0, 1], 101)
    rule = fairramp.fit_summary(fairramp.summarize(scores, group, resolution=2))  # nothing needs to change
    assert not any(rule.record.rates["selection"].error)
    assert make_content(rule, scores, group).in_sample is None
    assert make_content(rule, *rows(groups=2)[:2]).in_sample is False


def test_among_strata_with_equal_gaps_the_sentence_uses_the_lowest_ratio():
    rng = np.random.default_rng(3)
    strata, group = np.repeat([0, 1], 2000), np.tile([0, 1], 2000)
    scores = rng.random(4000) * np.where(strata == 0, 1.0, 0.6) * (0.8 + 0.2 * group)
    rule = fairramp.fit_rule(scores, group, strata=strata, max_gap=0.05)
    content = make_content(rule, scores, group, strata=strata)
    low, high = sorted(content.chosen.after.rate[2:])
    np.testing.assert_allclose(np.abs(np.diff(content.chosen.after.rate)[::2]), 0.05, atol=1e-9)
    assert low / high == pytest.approx(content.chosen.after.ratio)
    assert re.search(rf" {percent(high)}, .* {percent(low)} \(", content.chosen.sentence)
    assert f"{1 / content.chosen.after.ratio:.1f} times" in content.chosen.sentence


@pytest.mark.parametrize("kind", ["stream", "by hand", "cross-fitted"])
def test_no_position_has_a_certificate_if_the_rule_has_none(kind):
    scores, group, *_ = rows(groups=2)
    rule = fairramp.fit_rule(scores, group, max_gap=0.03, target_rate=0.4)
    if kind == "stream":
        stream = fairramp.StreamingFit(target_rate=0.4, max_gap=0.03, ramp_width=0.1)
        rule = stream.partial_fit(scores, group).rule()
    elif kind == "by hand":
        rule = replace(rule, record=None)
    else:
        rule = replace(rule, record=replace(rule.record, cross_fitted=True))
    content = make_content(rule, scores, group)
    with pytest.raises(fairramp.FairrampError) as refused:
        rule.certificate()
    assert len(content.outcomes) > 2
    for outcome in content.outcomes:
        assert outcome.guarantee.estimated is outcome.guarantee.proven is None
        assert (outcome.guarantee.sentence == str(refused.value)) == outcome.is_own
        assert outcome.is_own or "have none either" in outcome.guarantee.sentence
    assert (content.in_sample is None) == (kind != "cross-fitted")


# The command


@pytest.fixture
def inside(tmp_path):
    """The command in this process, in a folder with scores and a rule."""
    run = Inside(tmp_path)
    run.write("scores.csv", csv_rows())
    run("fit", "scores.csv", "--score", "p", "--group", "g", "--max-gap", "0.02", "-o", "rule.json", "-q")
    return run


def test_command_accepts_labels_in_words(inside):
    words = {"0": "reject", "1": "hire"}
    lines = [line.rpartition(",") for line in inside.read("scores.csv").splitlines()]
    inside.write("words.csv", "\n".join(f"{head},{words.get(last, last)}" for head, _, last in lines) + "\n")
    arguments = ("--label", "y", "-o", "r.html", "--json")
    plain = json.loads(inside("report", "rule.json", "scores.csv", *arguments).stdout)
    named = json.loads(inside("report", "rule.json", "words.csv", *arguments, "--positive", "hire").stdout)
    named, plain = named["report"], plain["report"]
    assert (named["about"].pop("source"), plain["about"].pop("source")) == ("words.csv", "scores.csv")
    assert named.pop("label_names") == {"favorable": "y = hire", "other": "y = reject"}
    assert plain.pop("label_names") == {"favorable": "y = 1", "other": "y = 0"}
    for one, other in zip(named["outcomes"], plain["outcomes"], strict=True):
        assert one.pop("command").replace("words.csv", "scores.csv") == other.pop("command")
    assert named == plain
    assert plain["labeled"]
    missing = inside("report", "rule.json", "words.csv", "-o", "r.html", "--positive", "hire", code=2)
    assert "--positive needs --label" in missing.stderr


def test_command_shows_streams_as_a_dash(inside):
    arguments = ("report", "rule.json", "-", "-o", "r.html", "--json")
    # DuckDB reads the process's own stdin, so this needs a process.
    done = subprocess.run(
        [sys.executable, "-m", "fairramp.cli", *arguments],
        cwd=inside.folder,
        input=csv_rows().encode(),
        capture_output=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert (found["data"], found["rule"], found["output"]) == ("-", "rule.json", "r.html")
    done = subprocess.run(
        [sys.executable, "-m", "fairramp.cli", "report", "rule.json", "scores.csv", "-o", "-", "--json"],
        cwd=inside.folder,
        capture_output=True,
        check=True,
    )
    assert done.stdout.startswith(b"<!doctype html>")
    assert json.loads(done.stderr)["output"] == "-"


def test_command_overwrites_no_input(inside):
    (inside.folder / "rule.html").write_bytes((inside.folder / "rule.json").read_bytes())
    (inside.folder / "link.html").symlink_to("scores.csv")
    for rule, output, what in (("rule.html", "rule.html", "the rule"), ("rule.json", "link.html", "DATA")):
        before = inside.read(output)
        done = inside("report", rule, "scores.csv", "-o", output, code=2)
        assert f"-o {output} would overwrite {what}" in done.stderr
        assert inside.read(output) == before


@pytest.mark.parametrize("policy", ["error", "original"])
def test_command_reports_unseen_groups_like_apply(inside, policy):
    inside.write("more.csv", csv_rows(groups=("a", "b", "c")))
    fit = ("fit", "scores.csv", "--score", "p", "--group", "g", "-o", "rule.json", "-q", "--unseen-group", policy)
    inside(*fit, "--replace")
    code = 2 if policy == "error" else 0
    applied = inside("apply", "rule.json", "more.csv", "-o", "out.csv", "-q", code=code)
    reported = inside("report", "rule.json", "more.csv", "-o", "r.html", "-q", code=code)
    assert "not in the fit rows" in reported.stderr
    told, expected = (done.stderr.partition("; or pass")[0].rstrip(".\n") for done in (reported, applied))
    assert told == expected  # apply has more remedies


def test_rules_fitted_by_costs_keep_them_in_the_report():
    scores, group, labels, weights = rows()
    options = {"max_gap": 0.03, "target_rate": "accuracy", "costs": (5, 2), "sample_weight": weights}
    rule = fairramp.fit_rule(scores, group, labels, **options)
    content = make_content(rule, scores, group, labels, sample_weight=weights)
    assert content.settings["costs"] == (5, 2)
    for outcome in content.outcomes[:3]:
        alone = fairramp.fit_rule(scores, group, labels, **(options | {"max_gap": outcome.max_gap}))
        assert list(outcome.thresholds) == pytest.approx(list(alone.thresholds), abs=1e-9)
    balanced = fairramp.fit_rule(scores, group, labels, target_rate="balanced_accuracy")
    assert any("balanced accuracy" in note for note in make_content(balanced, scores, group).notes)
