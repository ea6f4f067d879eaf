"""The verdicts of a report, on these rows and for new people, follow from naive computations."""

import re
from dataclasses import replace
from math import inf, nan
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fairramp
from fairramp import Ramp, Rule
from fairramp.core.events import EVENT_OF
from fairramp.measure.verdict import Verdict
from fairramp.show.report.make import make_content
from fairramp.show.report.verdicts import Evidence, Limit, judge
from fairramp.show.words import unmarked
from samples import quiet_fit

WITHIN, EXCEEDED, UNDECIDED = Verdict.WITHIN, Verdict.EXCEEDED, Verdict.UNDECIDED
FITTED = fairramp.fit_rule([0.2, 0.7, 0.4, 0.9] * 40, ["a", "a", "b", "b"] * 40, max_gap=0.05)
CERTIFICATE = FITTED.certificate()


def rows(n=900, groups=3, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    scores = np.clip(rng.random(n) * 0.7 + 0.25 * group / groups, 0, 1).round(3)
    return scores, group, (rng.random(n) < scores).astype(int)


def constant(chances, **settings):
    """A rule by hand that selects everyone of a group with the same probability."""
    return Rule(tuple(sorted(chances)), tuple(Ramp.constant(chances[k]) for k in sorted(chances)), **settings)


def people(**sizes):
    """Scores and groups of this many people."""
    return [0.5] * sum(sizes.values()), [name for name, n in sizes.items() for _ in range(n)]


# Against a naive computation ---------------------------------------------------------------------


def naive_gap(rates, strata):
    found = [[r for r, s in zip(rates, strata, strict=True) if s == one] for one in set(strata)]
    return max(max(part) - min(part) for part in found)


def naive_ratio(rates, strata):
    found = [[r for r, s in zip(rates, strata, strict=True) if s == one] for one in set(strata)]
    return min((min(part) / max(part) for part in found if max(part) > 0), default=nan)


CHANCES = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))
LIMITS = st.one_of(st.sampled_from([nan, 0.0, 0.05, 1.0, inf]), st.floats(0, 1))


@st.composite
def cases(draw):
    n = draw(st.integers(2, 6))
    event = EVENT_OF[draw(st.sampled_from(["parity", "equal_opportunity", "equalized_odds"]))]
    is_ratio = not event.parts and draw(st.booleans())
    rates = {
        part.name: [tuple(draw(st.lists(CHANCES, min_size=n, max_size=n))) for _ in range(2)]
        for part in event.simple
    }
    strata = draw(st.one_of(st.none(), st.lists(st.integers(0, 2), min_size=n, max_size=n).map(sorted)))
    sizes = draw(st.lists(st.sampled_from([1, 29, 30, 5000]), min_size=n, max_size=n))
    interval = draw(st.tuples(LIMITS, LIMITS).map(sorted)) if draw(st.booleans()) else None
    limit = Limit(
        draw(st.floats(0.001, 1)),
        is_ratio,
        CERTIFICATE.confidence,
        draw(st.sampled_from(["estimated", "proven"])),
    )
    known = draw(
        st.one_of(
            st.just("No record."),
            st.builds(lambda e, p: replace(CERTIFICATE, estimated=e, proven=p), LIMITS, LIMITS | st.none()),
        )
    )
    return event, rates, strata, sizes, interval, limit, known, draw(st.booleans())


def evidence(event, rates, strata, sizes, interval, has_drifted):
    """Evidence with the given rates, and the naive gap and ratio of each set of decisions."""
    of = [0] * len(sizes) if strata is None else strata
    before, after = (
        SimpleNamespace(
            rates={name: SimpleNamespace(rate=both[i]) for name, both in rates.items()},
            gap=max(naive_gap(both[i], of) for both in rates.values()),
            ratio=min(naive_ratio(both[i], of) for both in rates.values()),
            gap_interval=interval,
            ratio_interval=interval,
        )
        for i in (0, 1)
    )
    if interval is None:
        after.gap_interval = after.ratio_interval = (0.0, 1.0)
    return Evidence(
        event,
        before,
        after,
        [f"g{i}" for i in range(len(sizes))],
        sizes,
        np.array(sizes) < 30,
        None if strata is None else np.array(strata),
        is_new=interval is not None,
        has_drifted=has_drifted,
    )


@given(cases())
@example((EVENT_OF["parity"], {"selection": [(0.5, 0.5)] * 2}, None, [50, 50], None, Limit(0.05, False, 0.95),
          replace(CERTIFICATE, estimated=nan, proven=nan), False))  # fmt: skip
def test_verdicts_follow_from_rates_intervals_and_limits(case):
    event, rates, strata, sizes, interval, limit, known, has_drifted = case
    found = evidence(event, rates, strata, sizes, interval, has_drifted)
    value, maximum = found.after.ratio if limit.is_ratio else found.after.gap, limit.value
    judgment = judge(FITTED, limit, found, known)

    # All groups count on these rows, however small. Without anybody selected, all rates are equal.
    met = (value != value or value >= maximum - 1e-9) if limit.is_ratio else value <= maximum + 1e-9
    assert judgment.rows is (WITHIN if met else EXCEEDED)

    fresh = UNDECIDED
    if interval is not None:
        low, high = interval
        holds = low if value != value and limit.is_ratio else value
        if np.isfinite([low, high]).all() and low - 1e-9 <= holds <= high + 1e-9:
            above, below = (
                (high < maximum, low >= maximum) if limit.is_ratio else (low > maximum, high <= maximum)
            )
            fresh = EXCEEDED if above else WITHIN if below else UNDECIDED
    if isinstance(known, str) or limit.is_ratio or has_drifted or fresh is EXCEEDED:
        expected = fresh
    else:
        decides = known.proven if limit.kind == "proven" else known.estimated
        expected = WITHIN if decides is not None and decides <= maximum + 1e-9 else UNDECIDED
    assert judgment.people is expected
    if not isinstance(known, str) and not has_drifted and not limit.is_ratio and judgment.people is WITHIN:
        assert not np.isnan(known.proven if limit.kind == "proven" else known.estimated)

    # The worse one counts.
    order = [EXCEEDED, UNDECIDED, WITHIN]
    assert judgment.worse is min([judgment.rows, judgment.people], key=order.index)
    if judgment.worse is EXCEEDED:
        assert judgment.advice.startswith("Do not approve")
    else:
        assert not judgment.advice.startswith("Do not approve")

    words = {WITHIN: "Meets", EXCEEDED: "Below" if limit.is_ratio else "Above"}
    assert judgment.headline.startswith(f"{words[judgment.rows]} the ")
    # Small groups are named, with their sizes, but do not lead if two others can be compared.
    small = [(f"g{i}", size) for i, size in enumerate(sizes) if size < 30]
    assert re.findall(r"(g\d) \(([\d,]+)\)", unmarked(judgment.small)) == [(g, str(n)) for g, n in small[:5]]
    large = [i for i, size in enumerate(sizes) if size >= 30]
    homes = [0 if strata is None else strata[i] for i in large]
    led = large if len(set(homes)) < len(homes) else range(len(sizes))
    of = [0] * len(sizes) if strata is None else [strata[i] for i in led]
    for name, (was, now) in rates.items():
        apart = naive_ratio if limit.is_ratio else naive_gap
        for rate, word in ((now, " "), (was, ", was ")):
            one = apart([rate[i] for i in led], of[: len(led)])
            said = numbers_of(judgment.on_rows, word)
            assert any(agrees(text, one, limit.is_ratio) for text in said), (name, one, judgment.on_rows)


def numbers_of(text, before):
    """The numbers after a word of a sentence, as text."""
    number = r"(?:undefined|–|<?\d+(?:\.\d+)?)"
    pattern = (
        rf", was ({number})"
        if before == ", was "
        else rf"(?:gap|rates?|ratio)[a-z ]* ({number})(?: points)?, was"
    )
    return re.findall(pattern, text)


def agrees(text, value, is_ratio):
    """Whether a rounded number is that of a value."""
    if value != value:
        return text in ("undefined", "–")
    value = value if is_ratio else 100 * value
    shown = text.removeprefix("<")
    half = 0.5 * 10.0 ** -len(shown.partition(".")[2])
    return value < float(shown) if text[0] == "<" else abs(float(shown) - value) <= half * (1 + 1e-6) + 1e-9


# On whole reports --------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", EVENT_OF)
@pytest.mark.parametrize("stratified", [False, True])
def test_every_position_is_judged_by_the_gap_on_these_rows_and_by_its_certificate(criterion, stratified):
    scores, group, labels = rows(3000)
    strata = np.arange(3000) // 3 % 2 if stratified else None
    rule = quiet_fit(scores, group, labels, strata=strata, criterion=criterion, max_gap=0.1)
    content = make_content(rule, scores, group, labels, strata=strata)
    assert len(content.outcomes) > 4
    for outcome in (*content.outcomes[::4], content.chosen):
        one = rule
        if not outcome.is_own:
            one = quiet_fit(scores, group, labels, strata=strata, criterion=criterion, max_gap=outcome.max_gap)
        chances = one.probabilities(scores, group, strata)
        of = np.zeros(3000, dtype=int) if strata is None else strata
        gaps = []
        for event in rule.event.simple:
            which = np.full(3000, True) if event.label is None else labels == event.label
            for s in np.unique(of):
                means = [chances[which & (of == s) & (group == k)].mean() for k in np.unique(group)]
                gaps.append(max(means) - min(means))
        limit, judgment = outcome.max_gap, outcome.judgment
        assert judgment.rows is (WITHIN if max(gaps) <= limit + 1e-9 else EXCEEDED)
        assert judgment.people is (WITHIN if one.certificate().estimated <= limit + 1e-9 else UNDECIDED)
        shown = numbers_of(judgment.on_rows, " ")
        assert len(shown) == len(rule.event.simple)
        assert float(max(shown, key=float)) == pytest.approx(100 * max(gaps), abs=0.0500001)


def test_small_groups_count_but_do_not_lead():
    rule = constant({"a": 0.5, "b": 0.52, "tiny": 0.9}, max_gap=0.05)
    for size, judged in ((29, False), (30, True)):
        judgment = make_content(rule, *people(a=100, b=100, tiny=size)).chosen.judgment
        assert judgment.rows is judgment.worse is EXCEEDED
        assert judgment.advice.startswith("Do not approve")
        assert f"gap {'40.0' if judged else '2.0'} points" in judgment.on_rows
        assert ("without groups too small to judge" in judgment.on_rows) == (not judged)
        assert ("tiny (29)" in unmarked(judgment.small)) == (not judged)
        assert ("40.0 points" in judgment.small) == (not judged)
    # If fewer than two large groups remain, all lead.
    both = make_content(rule, *people(a=100, b=20, tiny=20)).chosen.judgment
    assert "gap 40.0 points" in both.on_rows
    assert both.rows is EXCEEDED
    calm = make_content(constant({"a": 0.5, "b": 0.52, "tiny": 0.51}, max_gap=0.05), *people(a=99, b=99, tiny=9))
    assert calm.chosen.judgment.rows is WITHIN
    assert "without" not in calm.chosen.judgment.on_rows
    assert "tiny (9)" in unmarked(calm.chosen.judgment.small)


@pytest.mark.parametrize("kind", ["estimated", "proven"])
def test_limit_asked_for_the_population_decides(kind):
    scores, group, _ = rows(6000)
    asked = {"max_gap": 0.15, "confidence": 0.9, "confidence_limit": kind}
    rule = fairramp.fit_rule(scores, group, **asked)
    assert rule.max_gap < 0.15
    content = make_content(rule, scores, group, confidence=0.99)  # of the intervals, not of the limit
    judgment = content.chosen.judgment
    certificate = rule.certificate(0.9)
    assert getattr(certificate, kind) <= 0.15
    assert "the limit of 15.0 points" in judgment.headline
    assert "90% confidence" in judgment.on_people
    assert judgment.worse is WITHIN
    # The same rule, had less been asked, or with more confidence.
    for change, expected in (
        ({"max_gap": 0.8 * getattr(certificate, kind)}, UNDECIDED),
        ({"confidence": 1 - 1e-9, "max_gap": 1.1 * getattr(certificate, kind)}, UNDECIDED),
    ):
        record = replace(rule.record, asked=replace(rule.record.asked, **change))
        one = make_content(replace(rule, record=record), scores, group).chosen.judgment
        assert one.people is expected
    # A what-if has no request; its own limit is on the gap on these rows.
    for outcome in content.outcomes:
        if not outcome.is_own:
            assert "the limit of 15.0 points" not in outcome.judgment.headline or outcome.max_gap == 0.15


@pytest.mark.parametrize(
    ("n", "criterion", "said"),
    [
        (20, "equalized_odds", ": too few rows for a proven limit (95% confidence). The uncertainty"),
        (
            12,
            "parity",
            ", too few rows for a proven limit (95% confidence). The verdict uses the estimated limit.",
        ),
        (6000, "parity", " points (both with 95% confidence). The verdict uses the estimated limit."),
    ],
)
def test_two_limits_are_named_only_if_there_are_two(n, criterion, said):
    scores, group, labels = rows(n)
    needed = {} if criterion == "parity" else {"labels": labels}
    rule = quiet_fit(scores, group, max_gap=0.05, criterion=criterion, **needed)
    assert said in make_content(rule, scores, group, **needed).chosen.judgment.on_people


def test_certificate_within_the_limit_meets_it_for_new_people():
    scores, group, _ = rows(60_000)
    rule = fairramp.fit_rule(scores, group, max_gap=0.0)
    estimated, proven = rule.certificate().estimated, rule.certificate().proven
    for limit, expected in ((estimated - 0.001, UNDECIDED), ((estimated + proven) / 2, WITHIN), (proven, WITHIN)):
        found = make_content(replace(rule, max_gap=limit), scores, group)
        assert found.chosen.judgment.people is expected
        assert found.chosen.judgment.rows is WITHIN


@pytest.mark.parametrize(
    ("chances", "ratio", "expected"),
    [((0.4, 0.5), 0.8, WITHIN), ((0.39, 0.5), 0.8, EXCEEDED), ((0.0, 0.5), 0.8, EXCEEDED), ((0, 0), 0.8, WITHIN)],
)
def test_ratio_on_these_rows(chances, ratio, expected):
    rule = constant(dict(zip("ab", chances, strict=True)), min_ratio=ratio)
    judgment = make_content(rule, *people(a=60, b=60)).chosen.judgment
    assert judgment.rows is expected
    assert judgment.people is UNDECIDED  # these rows are not known to be new, and a certificate limits the gap
    assert "the minimum ratio of 0.80" in judgment.headline
    assert judgment.headline.startswith("Meets" if expected is WITHIN else "Below")


def test_new_rows_decide_about_the_ratio_and_show_an_exceeded_gap():
    scores, group, _ = rows(6000)
    worse, other, _ = rows(6000, seed=1)
    moved = np.where(other == 2, np.minimum(worse + 0.3, 1), worse)
    for limit, fine in (({"max_gap": 0.03}, UNDECIDED), ({"min_ratio": 0.5}, WITHIN)):
        rule = fairramp.fit_rule(scores, group, **limit)
        assert make_content(rule, scores, group).chosen.judgment.people is UNDECIDED
        good, bad = (make_content(rule, new, other) for new in (worse, moved))
        assert good.in_sample is bad.in_sample is False
        assert good.chosen.judgment.people is fine
        assert bad.chosen.judgment.rows is bad.chosen.judgment.people is EXCEEDED
        assert bad.chosen.judgment.advice.startswith("Do not approve")
        after = bad.chosen.after
        if "max_gap" in limit:
            assert after.gap_interval[0] > 0.03
        else:
            assert after.ratio_interval[1] < 0.5
        # A what-if is fitted to these rows, so they are not new for it.
        assert all(o.judgment.people is not EXCEEDED for o in bad.outcomes if not o.is_own)


def test_one_group_has_nothing_to_compare():
    rule = constant({"a": 0.5}, max_gap=0.05)
    for content in (
        make_content(rule, *people(a=60)),
        make_content(constant({"a": 0.1, "b": 0.9}, max_gap=0.05), *people(a=60)),
    ):
        for outcome in content.outcomes:
            assert outcome.judgment.rows is outcome.judgment.people is outcome.judgment.worse is UNDECIDED
            assert outcome.judgment.headline.startswith("Cannot be decided")


def test_without_a_record_new_people_are_undecided():
    scores, group, _ = rows()
    rule = replace(fairramp.fit_rule(scores, group, max_gap=0.03), record=None)
    judgment = make_content(rule, scores, group).chosen.judgment
    assert (judgment.rows, judgment.people, judgment.worse) == (WITHIN, UNDECIDED, UNDECIDED)
    assert "by hand" in judgment.on_people
    other = make_content(rule, *rows(seed=1)[:2])
    assert other.in_sample is None
    assert other.chosen.judgment.people is UNDECIDED


def test_limit_that_rounds_to_the_gap_is_told_apart():
    rule = constant({"a": 0.5, "b": 0.55004}, max_gap=0.05)
    judgment = make_content(rule, *people(a=60, b=60)).chosen.judgment
    assert judgment.rows is EXCEEDED
    assert judgment.headline == "Above the limit of 5.0 points on these rows"
    assert "gap 5.004 points" in judgment.on_rows
