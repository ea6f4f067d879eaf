"""Reports on true and false positive rates, ratios and overall rates: numbers match a naive computation."""

import html
import json
import re

import numpy as np
import pytest
import vl_convert

import fairramp
from fairramp import Ramp, Rule
from fairramp.core.events import EVENT_OF, SELECTION
from fairramp.core.intervals import gap_interval, ratio_interval, wilson_interval
from fairramp.core.words import percent
from fairramp.show.charts.pieces import PRINTED
from fairramp.show.report.charts import content_charts
from fairramp.show.report.make import make_content
from fairramp.show.report.say import say
from samples import quiet_fit
from shell import Inside
from shell import rows as csv_rows

CASES = {
    "opportunity": {"criterion": "equal_opportunity", "max_gap": 0.03},
    "opportunity, ratio": {"criterion": "equal_opportunity", "min_ratio": 0.9},
    "opportunity, target": {"criterion": "equal_opportunity", "max_gap": 0.03, "target_rate": 0.6},
    "predictive": {"criterion": "predictive_equality", "min_ratio": 0.8, "costs": (2, 1)},
    "predictive, overall": {"criterion": "predictive_equality", "max_gap": 0.02, "overall_rate": 0.4},
    "odds": {"criterion": "equalized_odds"},
    "odds, steps": {
        "criterion": "equalized_odds",
        "max_gap": 0.03,
        "ramp_width": 0.0,
        "target_rate": "balanced_accuracy",
    },
    "parity, ratio": {"min_ratio": 0.8, "ramp_width": 0.2},
    "parity, overall": {"max_gap": 0.05, "overall_rate": 0.3},
    "parity, accuracy": {"min_ratio": 0.75, "target_rate": "accuracy"},
}


def rows(n=900, groups=3, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    scores = np.clip(rng.random(n) * 0.7 + 0.25 * group / groups, 0, 1).round(3)
    return scores, group, (rng.random(n) < scores).astype(int), rng.integers(1, 4, n).astype(float)


def naive(chances, cells, labels, weights, label):
    """The rate of each cell over the rows with a label, or over all rows, and the number of rows."""
    which = np.full(len(chances), True) if label is None else labels == label
    parts = [which & (cells == k) for k in np.unique(cells)]
    return np.array([np.average(chances[p], weights=weights[p]) for p in parts]), [int(p.sum()) for p in parts]


def shown_of(report):
    """Text of the page without scripts."""
    return html.unescape(re.sub(r"<script.*?</script>", "", report.html, flags=re.DOTALL))


@pytest.mark.parametrize("kind", ["plain", "weights", "strata"])
@pytest.mark.parametrize("case", CASES)
def test_numbers_match_a_naive_computation(case, kind):
    settings = CASES[case]
    if kind == "strata" and not isinstance(settings.get("target_rate", ""), str):
        settings = {name: value for name, value in settings.items() if name != "target_rate"}
    scores, group, labels, w = rows()
    more = {"sample_weight": w} if kind == "weights" else {}
    strata = (np.arange(len(group)) // 2 % 2) if kind == "strata" else None
    if strata is not None:
        more["strata"] = strata
    w = w if kind == "weights" else np.ones(len(w))
    rule = quiet_fit(scores, group, labels, **settings, **more)
    content = make_content(rule, scores, group, labels, **more)
    event, cells = rule.event, group if strata is None else 10 * strata + group
    of = None if strata is None else np.unique(cells) // 10
    assert content.in_sample
    assert (content.selected_before is None) == (rule.criterion == "parity")
    at = sorted({0, len(content.outcomes) // 2, len(content.outcomes) - 1, content.own})
    own = (scores >= 0.5).astype(float)
    decided = [(content.before, content.selected_before, content.overall_rate_before, own)]
    for outcome in (content.outcomes[i] for i in at):
        limit = {name: getattr(outcome, name) for name in ("max_gap", "min_ratio")}
        one = quiet_fit(scores, group, labels, **(settings | limit), **more)
        assert list(one.thresholds) == pytest.approx(list(outcome.thresholds), abs=1e-9, nan_ok=True)
        ends = np.transpose([one.ends_of(ramp) for ramp in one.ramps])
        np.testing.assert_allclose([outcome.ramp_from, outcome.ramp_to], ends, atol=1e-9)
        assert outcome.guarantee.estimated == pytest.approx(one.certificate().estimated)
        chances = one.probabilities(scores, group, strata)
        decided.append((outcome.after, outcome.selected, outcome.overall_rate, chances))
    for found, selected, overall, chances in decided:
        parts = [slice(None)] if of is None else [of == k for k in np.unique(of)]
        gaps = []
        for one in event.simple:
            compared = found.rates[one.name]
            assert event.parts or (found.rate, found.gap, found.ratio) == (
                compared.rate,
                compared.gap,
                compared.ratio,
            )
            rates, n = naive(chances, cells, labels, w, one.label)
            np.testing.assert_allclose(compared.rate, rates, atol=1e-9)
            gaps.append(max(np.ptp(rates[p]) for p in parts))
            assert compared.gap == pytest.approx(gaps[-1], abs=1e-9)
            ratios = [rates[p].min() / rates[p].max() for p in parts if rates[p].max() > 0]
            assert compared.ratio == pytest.approx(min(ratios), abs=1e-9)
            assert list(compared.rows) == n
            # Random decisions are slightly more precise than their number of rows, on wide ramps much more.
            if kind != "weights" and not event.parts:
                counts = np.array(n, dtype=float)
                lower, upper = wilson_interval(rates, counts, 0.95)
                np.testing.assert_allclose(compared.lower, lower, atol=0.01)
                np.testing.assert_allclose(compared.upper, upper, atol=0.01)
                assert compared.gap_interval == pytest.approx(gap_interval(rates, counts, 0.95, of), abs=0.01)
                limits = ratio_interval(rates, counts, 0.95, of)
                assert compared.ratio_interval == pytest.approx(limits, abs=0.02)
        assert found.gap == pytest.approx(max(gaps), abs=1e-9)
        if selected is not None:
            np.testing.assert_allclose(selected.rate, naive(chances, cells, labels, w, None)[0], atol=1e-9)
        assert overall == pytest.approx(np.average(chances, weights=w), abs=1e-9)
        np.testing.assert_allclose(found.true_positive_rate, naive(chances, cells, labels, w, 1)[0], atol=1e-9)
    if "overall_rate" in settings:
        assert content.settings["overall_rate"] == settings["overall_rate"]
        for outcome in content.outcomes:
            assert outcome.overall_rate == pytest.approx(settings["overall_rate"], abs=1e-9)
    json.loads(content.to_json())


@pytest.mark.parametrize("case", CASES)
def test_page_shows_these_rates_and_their_limit(case):
    scores, group, labels, _ = rows()
    rule = quiet_fit(scores, group, labels, **CASES[case])
    made = rule.report(scores, group, labels)
    content, page, event = made.content, shown_of(made), rule.event
    rates, charts, chosen = f"{event.rate}s", content_charts(content), content.chosen
    said = say(content, chosen)
    for one in event.simple:
        was, now = content.before.rates[one.name], chosen.after.rates[one.name]
        for sentence in (content.sentence, chosen.sentence):
            assert f"{one.rate.capitalize()}: " in sentence
        lead, k = said[f"lead_{one.name}"][0], int(np.argmin(was.rate))
        assert f'<h2 id="h-{one.name}" data-say="lead_{one.name}">{lead}</h2>' in page
        assert f"{percent(was.rate[k])} → {percent(now.rate[k])}" in lead
        assert event is SELECTION or lead.startswith(f"{one.rate.capitalize()}s: ")
        assert list(charts).index(one.name) < len(event.simple)  # these come first
        params = {param["name"]: param.get("value") for param in charts[one.name]["params"]}
        stem = one.rate.replace(" ", "_")
        np.testing.assert_allclose(params[f"{stem}_before"], [was.rate], atol=1e-8)
        for outcome, shown, band in zip(
            content.outcomes, params[f"{stem}_after"], params[f"{stem}_band"], strict=True
        ):
            rate = outcome.after.rates[one.name].rate
            np.testing.assert_allclose(shown, rate, atol=1e-8)
            np.testing.assert_allclose(band, [min(rate), max(rate)], atol=1e-8)
        assert params[f"{stem}_people"] == [f"{n:,}" for n in was.rows]
        for rate, low, high in (one for w in (was, now) for one in zip(w.rate, w.lower, w.upper, strict=True)):
            assert f">{percent(rate)} [{percent(low)}, {percent(high)}]</td>" in page
        assert all(f">{n:,}</td>" in page for n in was.rows)
        name = "selected" if one is SELECTION else one.short
        assert f'<th scope="col">{name} after</th>' in page
        assert f'<th scope="row">Gap between {one.rate}s</th>' in page
        assert f'<th scope="row">Ratio of {one.rate}s, lowest to highest</th>' in page
        if event is not SELECTION:
            assert f">{'favorable' if one.label else 'other'} outcome</th>" in page
            assert f"{one.short}, the {one.rate}, is" in page
    narrow = "true and false positive rates" if event.parts else rates
    assert f"Equal {narrow} are one narrow notion of fairness" in page
    assert f"equal {' and '.join(f'{one.rate}s' for one in event.simple)}" in page
    # Rates that are known but not compared have a chart without a band.
    others = {"selection", "true_positive", "false_positive"} - {one.name for one in event.simple}
    assert {*charts} == {*others, *(one.name for one in event.simple), "scores", "frontier"}
    for name in others:
        params = {param["name"]: param.get("value") for param in charts[name]["params"]}
        (after,) = (value for key, value in params.items() if key.endswith("_after"))
        np.testing.assert_allclose(after[content.own], chosen.after.rates[name].rate, atol=1e-8)
        assert not any(key.endswith("_band") for key in params)
        assert f'id="chart-{name}"' in page
    if event is not SELECTION:
        found = chosen.selected
        for rate, low, high in zip(found.rate, found.lower, found.upper, strict=True):
            assert f">{percent(rate)} [{percent(low)}, {percent(high)}]</td>" in page
    if rule.min_ratio is not None:
        assert "allowed gap" not in page
        assert f">Lowest allowed ratio of {rates}</label>" in page
        assert "the minimum ratio of " in said["headline"][0]
        assert "What a higher ratio costs" in page
    else:
        assert "allowed ratio" not in page
        between = "" if event is SELECTION else f" between {rates}"
        assert f">Largest allowed gap{between}</label>" in page
        assert "the limit of " in said["headline"][0]
        assert "What a smaller gap costs" in page
    assert ("Overall selection rate" in page) == ("overall_rate" in CASES[case])


def test_slider_of_a_ratio_starts_at_equal_rates_and_ends_at_the_classifiers_own():
    scores, group, labels, _ = rows()
    rule = quiet_fit(scores, group, min_ratio=0.805)
    content = make_content(rule, scores, group, labels)
    ratios = [outcome.min_ratio for outcome in content.outcomes]
    assert ratios[0] == 1
    assert ratios == sorted(ratios, reverse=True)
    assert 0 < ratios[-1] <= content.before.ratio < ratios[-2]
    assert content.outcomes[-1].stands
    assert content.chosen.min_ratio == 0.805
    assert all(outcome.max_gap is None for outcome in content.outcomes)
    assert all(round(ratio, 2) == ratio for ratio in ratios if ratio != 0.805)
    for outcome in content.outcomes:
        assert outcome.after.ratio >= outcome.min_ratio - 1e-9


@pytest.mark.parametrize(("scores", "last"), [([0.2, 0.3] * 40, 0.99), ([0.2, 0.7] * 40, 0.02)])
def test_ratio_of_rates_that_are_zero(scores, last):
    groups = ["a", "b"] * 40
    rule = quiet_fit(scores, groups, min_ratio=1.0)
    made = rule.report(scores, groups, [0, 1] * 40)
    least = made.content.outcomes[-1].min_ratio
    assert least >= last
    assert least < 1
    assert "<html" in made.html


@pytest.mark.parametrize("criterion", ["equal_opportunity", "predictive_equality", "equalized_odds"])
def test_fit_rows_with_other_labels_are_not_the_fit_rows(criterion):
    scores, group, labels, _ = rows()
    rule = quiet_fit(scores, group, labels, criterion=criterion, max_gap=0.03)
    swapped = labels.copy()
    first, second = np.flatnonzero(group == 0)[:2]
    swapped[first], swapped[second] = 1 - labels[first], 1 - labels[second]
    assert make_content(rule, scores, group, labels).in_sample is True
    assert make_content(rule, scores, group, swapped).in_sample is False
    new = make_content(rule, *rows(seed=1)[:3])
    assert new.in_sample is False
    other, cells, outcomes, _ = rows(seed=1)
    for event in rule.event.simple:
        rates, _ = naive(rule.probabilities(other, cells), cells, outcomes, np.ones(900), event.label)
        np.testing.assert_allclose(new.chosen.after.rates[event.name].rate, rates, atol=1e-9)


def test_labels_are_required(tmp_path):
    scores, group, labels, _ = rows()
    rule = quiet_fit(scores, group, labels, criterion="equal_opportunity")
    with pytest.raises(fairramp.InputError) as caught:
        rule.report(scores, group)
    assert str(caught.value) == (
        "This rule makes true positive rates equal, which only labeled rows show: pass `labels`, the true "
        "outcomes."
    )
    inside = Inside(tmp_path)
    inside.write("scores.csv", csv_rows())
    by = ("--score", "p", "--group", "g")
    inside("fit", "scores.csv", *by, "--label", "y", "--criterion", "equal_opportunity", "-o", "rule.json", "-q")
    failed = inside("report", "rule.json", "scores.csv", "-o", "r.html", code=2)
    assert "pass --label, the true outcomes" in " ".join(failed.stderr.split())
    done = inside("report", "rule.json", "scores.csv", "--label", "y", "-o", "r.html")
    assert "Before. True positive rate: " in done.stdout
    assert "Selection rate: " in done.stdout


def test_groups_without_rows_of_the_label_are_left_out_and_named():
    scores, group, labels, _ = rows()
    rule = quiet_fit(scores, group, labels, criterion="equal_opportunity", max_gap=0.03)
    fewer = np.where(group == 2, 0, labels)
    content = make_content(rule, scores, group, fewer)
    assert [g.name for g in content.groups] == ["0", "1"]
    assert content.rows == (group < 2).sum()
    assert any(
        "Groups without rows with the favorable outcome (label 1)" in note and "\u20682\u2069" in note
        for note in content.notes
    )
    with pytest.raises(fairramp.InputError, match="No group of the rule has rows with label 1"):
        make_content(rule, scores, group, np.zeros_like(labels))


def test_groups_are_small_if_they_have_few_rows_of_the_label():
    scores, group, labels, _ = rows()
    labels[np.flatnonzero((group == 1) & (labels == 1))[10:]] = 0
    rule = quiet_fit(scores, group, labels, criterion="equal_opportunity", max_gap=0.1)
    content = make_content(rule, scores, group, labels)
    assert [g.small for g in content.groups] == [False, True, False]
    few = "fewer than 30 rows with the favorable outcome (label 1): group \u20681\u2069 (10 rows)"
    assert any(few in note for note in content.notes)


@pytest.mark.parametrize("criterion", EVENT_OF)
def test_plot_shows_the_rates_made_equal(criterion):
    scores, group, labels, _ = rows()
    rule = quiet_fit(scores, group, labels, criterion=criterion, max_gap=0.03)
    spec = rule.plot().to_dict()
    _, *charts = spec["vconcat"]
    params = {param["name"]: param["value"] for param in spec["params"] if "value" in param}
    for (event, rates), chart in zip(rule.record.compared, charts, strict=True):
        text = json.dumps(chart)
        assert chart["title"]["text"] == f"{event.rate.capitalize()}s on the fit rows"
        counted = "people" if event.label is None else f"people with label {event.label}"
        assert chart["title"]["subtitle"] == f"Hollow: classifier alone. Filled: with the rule. Gray: {counted}."
        assert all(f'"{n:,}"' in json.dumps(params) + text for n in rates.rows)
        assert f'"title": "{event.rate}"' in text
        found = json.dumps(params) + text
        assert all(f"{rate:.9g}" in found for rate in (*rates.before, *rates.after))
    svg = vl_convert.vegalite_to_svg(spec)  # Vega accepts the parameters of all charts together
    assert all(f">{event.rate}</text>" in svg for event in rule.event.simple)


@pytest.mark.parametrize("with_rule", [True, False])
@pytest.mark.parametrize("criterion", EVENT_OF)
def test_plot_of_an_audit_shows_all_compared_rates(criterion, with_rule):
    scores, group, labels, _ = rows(300)
    rule = quiet_fit(scores, group, labels, criterion=criterion, max_gap=0.03)
    found = fairramp.audit(scores, group, labels, criterion=criterion, rule=rule if with_rule else None)
    spec = found.plot().to_dict()
    svg, text = vl_convert.vegalite_to_svg(spec), json.dumps(spec)
    for event in rule.event.simple:
        assert f">{event.rate}</text>" in svg
        for decisions in (found.before, found.after) if with_rule else (found.before,):
            assert all(f"{rate:.9g}" in text for rate in decisions.rates[event.name].rate)


def test_drawn_lines_are_the_probabilities_even_if_ramps_leave_the_axis():
    ramps = (Ramp(-0.5, 2.0), Ramp(0.2, 0.4), Ramp(0.3, 0.0, 0.5), Ramp.constant(0.25), Ramp(1.25, 0.5))
    svg = vl_convert.vegalite_to_svg(Rule(tuple("abcde"), ramps).plot().to_dict())
    lines = re.findall(r' d="(M[^"Zh]*)" stroke=', svg)
    x = np.linspace(0, 1, 101)[~np.isclose(np.linspace(0, 1, 101), 0.3)]  # a step there
    for g, (line, ramp) in enumerate(zip(lines, ramps, strict=True)):
        at, down = np.array([[float(v) for v in pair.split(",")] for pair in line[1:].split("L")]).T
        height = (56 * (g + 0.96) - down) / (56 * 0.62)
        np.testing.assert_allclose(np.interp(x, at / PRINTED.width, height), ramp.chance(x), atol=1e-3)


def test_rule_with_strata_and_one_label_uses_the_most_accurate_rates():
    scores, group, labels, _ = rows()
    strata = np.arange(len(group)) // 2 % 2
    settings = {"criterion": "equal_opportunity", "target_rate": "balanced_accuracy", "strata": strata}
    rule = quiet_fit(scores, group, labels, **settings)
    content = make_content(rule, scores, group, np.ones_like(labels), strata=strata)
    assert any("use the most accurate target rates" in note for note in content.notes)
