"""Summaries: merging, files, and rules fitted to bins, with the error that binning causes."""

import hashlib
import json
import math
import warnings
from collections import defaultdict
from fractions import Fraction

import duckdb
import numpy as np
import pandas
import polars
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fairramp
from fairramp import GroupScores, InputError, SummaryFormatError, fit_summary, summarize, summarize_frame
from fairramp.data.bins import from_text, to_text
from fairramp.data.columns import Columns
from oracles import selection_rates

pytestmark = pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")

RANGES = {"probability": (0.0, 1.0), "signed": (-1.0, 1.0)}


def quiet(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairramp.FairrampWarning)
        return function(*args, **kwargs)


# Samples --------------------------------------------------------------------------------------

resolutions = st.sampled_from([2, 4, 16, 256, 4096, 1 << 16])
cutoffs = st.sampled_from([0.5, 0.0, 1.0, 0.3, 0.7001, 0.25])
kinds = {
    "any": st.floats(0, 1),
    "tied": st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.49, 0.5, 0.51, 0.7001, 1.0]),
    "crowded": st.floats(0.49, 0.51),
    "low": st.floats(0, 1e-3),
}


@st.composite
def samples(draw, min_rows=1):
    """Scores, groups and weights (or None) of a few rows; each group has its own kind of scores."""
    n = draw(st.integers(min_rows, 40))
    groups = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    of_group = [kinds[draw(st.sampled_from(list(kinds)))] for _ in range(4)]
    scores = np.array([draw(of_group[g]) for g in groups])
    weighted = draw(st.booleans())
    weights = np.array(draw(st.lists(st.floats(0.01, 100), min_size=n, max_size=n))) if weighted else None
    return scores, groups, weights


def close(a: GroupScores, b: GroupScores) -> bool:
    """Whether two summaries are equal, up to 1e-12 in their sums and means."""
    p, q = a.summary.points, b.summary.points
    return (
        (a.grid, a.labels, a.weighted, a.stratified, a.columns)
        == (b.grid, b.labels, b.weighted, b.stratified, b.columns)
        and len(p) == len(q)
        and np.array_equal(p.group, q.group)
        and np.array_equal(p.rows, q.rows)
        and np.array_equal(p.exact, q.exact)
        and all(
            np.allclose(getattr(p, name), getattr(q, name), rtol=1e-12, atol=1e-12)
            for name in ("place", "lower", "upper", "weight", "weight_squares")
        )
    )


def part(sample, which, **options):
    scores, groups, weights = sample
    return summarize(
        scores[which], groups[which], sample_weight=None if weights is None else weights[which], **options
    )


# Contents of a summary ------------------------------------------------------------------------


@given(samples(), resolutions, cutoffs)
def test_bins_match_exact_arithmetic(sample, resolution, cutoff):
    scores, groups, weights = sample
    summary = summarize(scores, groups, sample_weight=weights, resolution=resolution, cutoff=cutoff)
    expected = defaultdict(list)
    for x, g, w in zip(scores, groups, np.ones(len(scores)) if weights is None else weights, strict=True):
        exact = Fraction(float(x))
        cell = (g, math.floor(exact * resolution), exact >= Fraction(cutoff))
        expected[cell].append((exact, Fraction(float(w))))
    points = summary.summary.points
    assert len(points) == len(expected)
    labels = np.array(summary.labels)
    for i, cell in enumerate(sorted(expected)):
        rows = expected[cell]
        total = sum(w for _, w in rows)
        assert labels[points.group[i]] == cell[0]
        assert points.rows[i] == len(rows)
        assert points.weight[i] == pytest.approx(float(total), rel=1e-12)
        assert points.weight_squares[i] == pytest.approx(float(sum(w * w for _, w in rows)), rel=1e-12)
        assert points.place[i] == pytest.approx(float(sum(x * w for x, w in rows) / total), rel=1e-12, abs=1e-15)
        assert points.exact[i] == (len({x for x, _ in rows}) == 1)
        if points.exact[i]:
            assert points.place[i] == float(rows[0][0])
        else:
            assert points.lower[i] <= min(x for x, _ in rows) <= max(x for x, _ in rows) < points.upper[i]


@pytest.mark.parametrize("scale", ["probability", "signed", "logit"])
@pytest.mark.parametrize("cutoff", [None, 0.3])
def test_blocks_and_many_groups_change_nothing(monkeypatch, scale, cutoff):
    rng = np.random.default_rng(0)
    scores = {
        "probability": rng.random(5000),
        "signed": rng.uniform(-1, 1, 5000),
        "logit": rng.normal(size=5000).round(1),
    }[scale]
    groups = rng.integers(0, 3, 5000)
    options = {"scale": scale, "cutoff": cutoff, "sample_weight": rng.uniform(0.5, 2, 5000), "resolution": 64}
    whole = summarize(scores, groups, **options)
    monkeypatch.setattr("fairramp.core.blocks.BLOCK", 16)
    monkeypatch.setattr(
        "fairramp.data.summarize.map_blocks",
        lambda work, n, size: [work(i, min(i + 37, n)) for i in range(0, n, 37)],
    )
    assert close(summarize(scores, groups, **options), whole)


def test_summary_describes_itself():
    summary = summarize(polars.Series("p", [0.2, 0.7, 0.7]), {"unit": ["A", "B", "B"]}, cutoff=0.3, resolution=16)
    assert (summary.labels, summary.rows, summary.scale) == (("A", "B"), (1, 2), "probability")
    assert (summary.resolution, summary.cutoff, summary.weighted, summary.stratified) == (16, 0.3, False, False)
    assert summary.columns == Columns("p", ("unit",))
    assert summary.smallest_count == 1
    assert repr(summary).startswith("3 rows, 2 groups, 16 bins, scale 'probability'")
    assert summary.table()["mean_score"].tolist() == [0.2, 0.7]


def test_zero_weight_rows_do_not_count_but_are_checked():
    summary = summarize([0.2, 0.9, 0.4], ["A", "A", "B"], sample_weight=[1, 0, 2])
    assert summary.rows == (1, 1)
    with pytest.raises(InputError, match=r"got 1.5 in row 1"):
        summarize([0.2, 1.5, 0.4], ["A", "A", "B"], sample_weight=[1, 0, 2])


@pytest.mark.parametrize("resolution", [0, 1, 3, 4097, 1 << 21, 16.0, True, "16", None])
def test_resolution_must_be_a_power_of_two(resolution):
    with pytest.raises(InputError, match="`resolution` must be a power of two"):
        summarize([0.5], ["A"], resolution=resolution)


def test_extreme_weights_raise():
    with pytest.raises(InputError, match="use another unit"):
        summarize([0.5], ["A"], sample_weight=[1e120])
    frame = polars.LazyFrame({"p": [0.5], "g": ["A"], "w": [1e-120]})
    with pytest.raises(InputError, match="use another unit"):
        summarize_frame(frame, score="p", group="g", weight="w")


# Merging --------------------------------------------------------------------------------------


@given(samples(min_rows=3), resolutions, cutoffs, st.randoms(use_true_random=False))
def test_merged_parts_in_any_order_equal_one_pass(sample, resolution, cutoff, random):
    options = {"resolution": resolution, "cutoff": cutoff}
    owner = np.array([random.randrange(3) for _ in sample[0]])
    owner[:3] = [0, 1, 2]
    a, b, c = (part(sample, owner == i, **options) for i in range(3))
    whole = summarize(sample[0], sample[1], sample_weight=sample[2], **options)
    for merged in (a.merge(b).merge(c), a.merge(b.merge(c)), c.merge(a).merge(b), b.merge(c.merge(a))):
        assert close(merged, whole)


@given(samples(min_rows=3), st.lists(resolutions, min_size=3, max_size=3), cutoffs)
def test_parts_of_different_resolution_merge_at_the_coarsest(sample, sizes, cutoff):
    owner = np.arange(len(sample[0])) % 3
    a, b, c = (part(sample, owner == i, resolution=size, cutoff=cutoff) for i, size in enumerate(sizes))
    whole = part(sample, slice(None), resolution=min(sizes), cutoff=cutoff)
    assert close(a.merge(b).merge(c), whole)
    assert close(c.merge(b.merge(a)), whole)


@given(samples(), st.lists(resolutions, min_size=3, max_size=3), cutoffs)
def test_coarsening_in_steps_equals_coarse_bins(sample, sizes, cutoff):
    fine, middle, coarse = sorted(sizes, reverse=True)
    summary = part(sample, slice(None), resolution=fine, cutoff=cutoff)
    assert close(
        summary.coarsened(middle).coarsened(coarse), part(sample, slice(None), resolution=coarse, cutoff=cutoff)
    )


def test_finer_bins_need_the_rows():
    with pytest.raises(InputError, match="finer bins require the rows"):
        summarize([0.5], ["A"], resolution=16).coarsened(32)


def test_sites_can_have_different_groups_and_weights():
    north = summarize([0.1, 0.6], ["A", "B"])
    south = summarize([0.6, 0.8], ["B", None], sample_weight=[3.0, 2.0])
    both = north.merge(south)
    assert both.labels == ("A", "B", None)
    assert both.summary.weights.tolist() == [1.0, 4.0, 2.0]
    assert both.weighted
    assert both == south.merge(north)


def test_known_column_names_win_and_conflicting_score_names_are_dropped():
    named = summarize(polars.Series("p", [0.1]), {"unit": ["A"]})
    other = summarize(polars.Series("q", [0.1]), {"unit": ["A"]})
    assert named.merge(named).columns.score == "p"
    assert named.merge(other).columns == other.merge(named).columns
    assert named.merge(other).columns.score is None
    assert named.merge(summarize([0.1], ["A"])).columns.groups == ("unit",)


BASE = {"scores": [0.2, 0.8], "groups": ["A", "B"]}


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"scale": "signed"}, "different scales cannot be merged, got 'probability' and 'signed'"),
        ({"cutoff": 0.4}, "different cutoffs cannot be merged, got 0.5 and 0.4"),
        (
            {"groups": {"site": ["A", "B"]}},
            r"different group columns cannot be merged, got \['unit'\] and \['site'\]",
        ),
        ({"groups": [["A", "B"], ["x", "y"]]}, "different kinds of groups cannot be merged"),
        ({"strata": ["x", "y"]}, "different kinds of groups cannot be merged"),
    ],
)
def test_incompatible_summaries_raise(other, text):
    mine = summarize([0.2, 0.8], {"unit": ["A", "B"]})
    with pytest.raises(InputError, match=text) as error:
        mine.merge(summarize(**(BASE | other)))
    assert str(error.value).count(". ") == 0


def test_booleans_and_numbers_do_not_merge():
    with pytest.raises(InputError, match="mixes booleans and numbers"):
        summarize([0.2], [True]).merge(summarize([0.2], [1]))


def test_merging_anything_else_raises():
    with pytest.raises(InputError, match=r"must be a fairramp\.GroupScores, got dict"):
        summarize([0.2], ["A"]).merge({})


# Rules fitted to bins -------------------------------------------------------------------------

settings_of_a_fit = st.fixed_dictionaries(
    {
        "max_gap": st.sampled_from([0.0, 0.01, 0.1, 1.0]),
        "ramp_width": st.sampled_from([0.0, 1e-6, 1e-3, 0.01, 0.1, 0.5, 3.0]),
        "ramp": st.sampled_from(["centered", "paper"]),
        "target_rate": st.one_of(st.just("optimal"), st.sampled_from([0.0, 0.3, 1.0]), st.floats(0, 1)),
    }
)


def design_bound(scores, groups, weights, rule, resolution, cutoff):
    """Weight share of the bins that contain an end of the ramp, times d/(4γ) for bins no wider than the ramp."""
    d = 1 / resolution
    bounds = []
    for k, ramp in enumerate(rule.ramps):
        mine = groups == k
        x, w = scores[mine], weights[mine]
        bins = np.floor(x * resolution) + (x >= cutoff) * 0.5
        width = ramp.width
        ends = {ramp.foot, ramp.foot + width}
        holds = np.isin(bins, [math.floor(e * resolution) + half for e in ends for half in (0.0, 0.5)])
        share = w[holds].sum() / w.sum()
        bounds.append(share * (min(1.0, d / (4 * width)) if 0 < d <= width else 1.0))
    return np.array(bounds)


@given(samples(), resolutions, cutoffs, settings_of_a_fit)
@example((np.array([0.0, 1.0, 0.5]), np.array([0, 0, 1]), None), 2, 0.5, {"ramp_width": 0.0})
def test_rates_on_the_rows_are_within_the_stated_error(sample, resolution, cutoff, options):
    scores, groups, weights = sample
    groups = np.unique(groups, return_inverse=True)[1]
    summary = summarize(scores, groups, sample_weight=weights, resolution=resolution, cutoff=cutoff)
    rule = quiet(fit_summary, summary, **options)
    record, w = rule.record, np.ones(len(scores)) if weights is None else weights
    found = record.rates["selection"]
    errors = np.array(found.error)
    rates = selection_rates(rule.probabilities(scores, groups), groups, w)
    assert np.all(np.abs(rates - found.after) <= errors + 1e-9)
    assert np.all(errors <= design_bound(scores, groups, w, rule, resolution, cutoff) + 1e-9)
    assert np.ptp(rates) <= record.gap_after + 1e-9
    assert np.allclose(found.before, selection_rates(1.0 * (scores >= cutoff), groups, w), atol=1e-12)
    assert record.rows == tuple(np.bincount(groups).tolist())


@given(samples(), resolutions, st.sampled_from([0.0, 1e-3, 0.01, 0.3]), st.floats(0, 1))
def test_rates_match_the_exact_rule_up_to_the_error(sample, resolution, width, target):
    scores, groups, weights = sample
    groups = np.unique(groups, return_inverse=True)[1]
    w = np.ones(len(scores)) if weights is None else weights
    options = {"ramp_width": width, "target_rate": target}
    rule = quiet(fit_summary, part((scores, groups, weights), slice(None), resolution=resolution), **options)
    exact = quiet(fairramp.fit_rule, scores, groups, sample_weight=weights, **options)
    mine, theirs = (selection_rates(r.probabilities(scores, groups), groups, w) for r in (rule, exact))
    assert np.all(np.abs(mine - theirs) <= np.array(rule.record.rates["selection"].error) + 1e-9)


def test_error_bound_is_attained():
    # Half of bin [0.5, 0.625) is at its start, half just below its end, and the ramp starts at their mean.
    scores, width = np.array([0.5, 0.625 - 2**-40] * 4 + [0.9] * 4), 0.25
    rule = quiet(fit_summary, summarize(scores, ["A"] * 12, resolution=8), ramp_width=width, target_rate=1 / 3)
    rates = rule.record.rates["selection"]
    (error,), (rate,) = rates.error, rates.after
    assert error == pytest.approx(8 / 12 * 0.125 / (4 * width), rel=1e-9)
    assert rule.probabilities(scores, ["A"] * 12).mean() - rate == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize("width", [0.0, 0.001, 0.01, 0.1])
@pytest.mark.parametrize("law", ["uniform", "beta", "crowded"])
def test_error_shrinks_with_the_resolution(width, law):
    rng = np.random.default_rng(1)
    n = 50_000
    scores = {
        "uniform": rng.random(n),
        "beta": rng.beta(2, 5, n),
        "crowded": np.clip(rng.normal(0.4, 0.03, n), 0, 1),
    }[law]
    groups = rng.integers(0, 2, n)
    scores = np.where(groups == 1, scores**1.3, scores)
    errors = [
        max(
            fit_summary(summarize(scores, groups, resolution=r), ramp_width=width, target_rate=0.3)
            .record.rates["selection"]
            .error
        )
        for r in (64, 1024, 16384)
    ]
    # Bins are 16 times as narrow, and so is their share of the rows; with a ramp, their width counts as well.
    assert errors[0] > 4 * errors[1] > 16 * errors[2] > 0
    if width >= 0.1:
        assert errors[0] > 32 * errors[1] > 32**2 * errors[2]


def test_bins_of_one_score_each_give_the_exact_rule(monkeypatch):
    monkeypatch.setattr("fairramp.data.rows.SORTED_ROWS", 10**6)  # equal to the last digit, in the same order
    rng = np.random.default_rng(2)
    scores, groups = rng.integers(0, 101, 6000) / 100, rng.integers(0, 3, 6000)
    days = [summarize(scores[i::5], groups[i::5]) for i in range(5)]
    together = days[0]
    for day in days[1:]:
        together = together.merge(day)
    for options in ({}, {"max_gap": 0.05}, {"ramp_width": 0.0}, {"target_rate": 0.2, "unseen_group": "pooled"}):
        rule = fit_summary(together, date="2026-01-01", **options)
        assert rule == fairramp.fit_rule(scores, groups, date="2026-01-01", **options)
        assert not any(rule.record.rates["selection"].error)


@pytest.mark.parametrize("scale", ["probability", "signed", "logit"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rule_from_a_summary_is_close_to_the_exact_rule(scale, weighted):
    rng = np.random.default_rng(3)
    z, groups = rng.normal(size=20_000), rng.integers(0, 3, 20_000)
    z = z - 0.4 * groups
    scores = {"probability": 1 / (1 + np.exp(-z)), "signed": np.tanh(z), "logit": z}[scale]
    weights = rng.uniform(0.5, 2, 20_000) if weighted else None
    summary = summarize(scores, groups, sample_weight=weights, scale=scale)
    rule = fit_summary(summary, max_gap=0.02)
    exact = fairramp.fit_rule(scores, groups, sample_weight=weights, scale=scale, max_gap=0.02)
    assert rule.record.fingerprint == exact.record.fingerprint
    assert rule.record.weighted == weighted
    assert rule.target_rate == pytest.approx(exact.target_rate, abs=1e-4)
    thresholds = [r.thresholds for r in (rule, exact)]
    assert np.allclose(*thresholds, atol=2e-3)
    rates = selection_rates(
        rule.probabilities(scores, groups), groups, np.ones(20_000) if weights is None else weights
    )
    assert np.all(
        np.abs(rates - rule.record.rates["selection"].after)
        <= np.array(rule.record.rates["selection"].error) + 1e-12
    )


def test_own_decisions_that_comply_are_kept_without_error():
    rng = np.random.default_rng(4)
    scores, groups = rng.random(3000), rng.integers(0, 2, 3000)
    rule = fit_summary(summarize(scores, groups, cutoff=0.3, resolution=16), max_gap=0.2)
    assert (rule.is_hard, rule.cutoff, rule.record.rates["selection"].error) == (True, 0.3, (0.0, 0.0))
    assert np.array_equal(rule.probabilities(scores, groups), scores >= 0.3)


def test_cutoff_must_be_an_edge():
    summary = summarize([0.2, 0.8], ["A", "B"], resolution=4)
    assert quiet(fit_summary, summary, cutoff=0.75).cutoff == 0.75
    with pytest.raises(
        InputError, match=r"edge of the summary's bins, got 0.3; to make it one, summarize with cutoff=0.3"
    ):
        fit_summary(summary, cutoff=0.3)


@pytest.mark.parametrize("target", ["accuracy", "base_rate"])
def test_targets_that_need_labels_raise(target):
    with pytest.raises(InputError, match="requires labels, which this summary does not have; summarize with"):
        fit_summary(summarize([0.2], ["A"]), target_rate=target)


def test_fitting_anything_else_raises():
    with pytest.raises(InputError, match=r"make one with fairramp\.summarize"):
        fit_summary([0.2])


def test_strata_survive_merging_and_files():
    rng = np.random.default_rng(5)
    n = 20_000
    groups, strata = rng.integers(0, 2, n), rng.integers(0, 3, n)
    scores = np.clip(rng.beta(2, 2, n) - 0.1 * groups + 0.05 * strata, 0, 1)
    half = [summarize(scores[i::2], groups[i::2], strata=strata[i::2]) for i in range(2)]
    rule = fit_summary(from_text(to_text(half[0].merge(half[1]))), max_gap=0.01)
    exact = fairramp.fit_rule(scores, groups, strata=strata, max_gap=0.01)
    assert rule.stratified
    assert rule.groups == exact.groups
    chances = rule.probabilities(scores, groups, strata)
    gaps = [
        np.ptp(selection_rates(chances[s], groups[s], np.ones(s.sum()))) for s in (strata == i for i in range(3))
    ]
    assert max(gaps) <= rule.record.gap_after <= 0.01 + 2e-4
    assert rule.certificate().estimated >= exact.certificate().estimated - 1e-5


# The stated error -----------------------------------------------------------------------------


def test_rule_shows_and_saves_its_error(tmp_path):
    rng = np.random.default_rng(6)
    scores, groups = rng.random(3000), np.where(rng.random(3000) < 0.5, "A", "B")
    rule = fit_summary(summarize(scores, groups, resolution=64), target_rate=0.3)
    assert min(rule.record.rates["selection"].error) > 0
    assert rule.table()["rate_error"].tolist() == list(rule.record.rates["selection"].error)
    assert "at most" in repr(rule)
    assert f"accurate to within {max(rule.record.rates['selection'].error):.1e}" in repr(rule)
    assert rule.record.gap_after == pytest.approx(sum(rule.record.rates["selection"].error))
    rule.save(tmp_path / "rule.json")
    assert fairramp.Rule.load(tmp_path / "rule.json") == rule
    exact = fairramp.fit_rule(scores, groups, target_rate=0.3)
    assert "rate_error" not in exact.table().columns
    assert "at most" not in repr(exact)
    assert exact.record.rates["selection"].error == (0.0, 0.0)


@pytest.mark.parametrize("width", [0.0, 0.01])
def test_certificates_include_the_error(width):
    rng = np.random.default_rng(7)
    scores, groups = rng.random(4000), rng.integers(0, 3, 4000)
    rule = fit_summary(summarize(scores, groups, resolution=32), target_rate=0.3, ramp_width=width)
    exact = fairramp.fit_rule(scores, groups, target_rate=0.3, ramp_width=width)
    mine, theirs = (r.certificate() for r in (rule, exact))
    errors = np.array(rule.record.rates["selection"].error)
    both = np.sort(errors)[-2:].sum()
    assert both > 0
    kinds = {bound.name: bound for bound in mine.bounds}
    for other in theirs.bounds:
        assert kinds[other.name].limit > other.limit
    half = np.sqrt(np.log(2 * 3 / 0.05) / (2 * np.array(rule.record.rows)))
    low, high = 0.3 - errors - half, 0.3 + errors + half
    widest = max(high[k] - low[m] for k in range(3) for m in range(3) if k != m)
    assert kinds["dkw"].limit == pytest.approx(widest, abs=1e-9)
    assert kinds["theorem_1"].limit <= 1
    assert {name for name, bound in kinds.items() if bound.is_theorem} == {"pairs", "dkw", "theorem_1"}
    assert mine.proven == kinds["pairs"].limit
    assert "binned scores" in kinds["kl"].why_not


def test_population_meets_the_certified_limit():
    # Scores are U(0, 1) in each group, so the selection rate at a threshold t is 1 − t.
    misses = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        scores, groups = rng.random(600), np.arange(600) % 2
        rule = fit_summary(summarize(scores, groups, resolution=16), target_rate=0.4, ramp_width=0.0)
        true = [1 - threshold for threshold in rule.thresholds]
        misses += abs(true[0] - true[1]) > rule.certificate().proven
    assert misses <= 2


# Files ----------------------------------------------------------------------------------------


def example_summaries():
    rng = np.random.default_rng(8)
    scores, groups = rng.random(500), rng.choice(["ä", "B"], 500)
    yield "plain", summarize(scores, groups, resolution=64)
    yield "weighted", summarize(scores, groups, sample_weight=rng.random(500) + 0.1, resolution=64, cutoff=0.3)
    yield "signed", summarize(2 * scores - 1, groups, scale="signed", resolution=64)
    yield "logit", summarize(np.log(scores / (1 - scores)), groups, scale="logit", cutoff=0.7)
    yield "columns", summarize(scores, {"unit": groups, "age": rng.integers(0, 3, 500)}, resolution=16)
    yield "strata", summarize(scores, groups, strata={"region": rng.integers(0, 2, 500)}, resolution=16)
    yield "missing", summarize([0.0, 1.0, 1.0], [None, "x", 7])


SUMMARIES = dict(example_summaries())


@pytest.mark.parametrize("name", SUMMARIES)
def test_file_round_trip_is_byte_identical(tmp_path, name):
    summary, path, again = SUMMARIES[name], tmp_path / "a.json", tmp_path / "b.json"
    summary.save(path)
    loaded = GroupScores.load(path)
    loaded.save(again)
    assert path.read_bytes() == again.read_bytes()
    assert loaded == summary
    assert hash(loaded) == hash(summary)
    for field in ("group", "place", "lower", "upper", "rows", "weight", "weight_squares", "averaged"):
        assert np.array_equal(getattr(loaded.summary.points, field), getattr(summary.summary.points, field))
    options = {"target_rate": "optimal", "max_gap": 0.05}
    assert quiet(fit_summary, loaded, **options) == quiet(fit_summary, summary, **options)


@given(samples(), resolutions, cutoffs)
def test_any_summary_round_trips(sample, resolution, cutoff):
    summary = part(sample, slice(None), resolution=resolution, cutoff=cutoff)
    text = to_text(summary)
    assert to_text(from_text(text)) == text


def test_file_is_small():
    rng = np.random.default_rng(9)
    summary = summarize(rng.random(200_000), np.zeros(200_000, dtype=int))
    assert len(to_text(summary)) < 32 * 4100


TEXT = to_text(SUMMARIES["weighted"])


@given(st.integers(0, len(TEXT) - 3))
def test_truncated_file_raises(length):
    with pytest.raises(SummaryFormatError):
        from_text(TEXT[:length])


@given(st.integers(0, len(TEXT) - 2), st.characters(codec="utf-8"))
def test_changed_character_raises_or_keeps_the_meaning(at, character):
    damaged = TEXT[:at] + character + TEXT[at + 1 :]
    try:
        found = from_text(damaged)
    except SummaryFormatError:
        return
    assert to_text(found) == TEXT  # 0.10 for 0.1, or "\\u0042" for "B"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "not valid JSON"),
        (b"\x80\x04\x95", "not UTF-8"),
        (b"[1]", 'the field "format" must be "fairramp.summary"'),
        (b'{"format": "fairramp.rule", "version": 1}', 'the field "format" must be "fairramp.summary"'),
        (b'{"format": "fairramp.summary", "version": 1}', "Version 1 of a summary is not supported"),
        (b'{"format": "fairramp.summary", "version": NaN}', "NaN is not allowed as a number"),
        (b'{"format": "fairramp.summary", "version": 2}', '"sha256" of the summary is missing'),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_foreign_file_raises_with_the_reason(tmp_path, content, text):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(SummaryFormatError, match=text) as error:
        GroupScores.load(path)
    assert str(path) in str(error.value)


def test_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        GroupScores.load(tmp_path / "none.json")
    with pytest.raises(fairramp.FairrampError, match="does not exist"):
        SUMMARIES["plain"].save(tmp_path / "none" / "a.json")


def test_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    SUMMARIES["plain"].save(path)
    before = path.read_bytes()

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        SUMMARIES["signed"].save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def forged(change):
    """A file with changed content and a matching checksum."""
    content = json.loads(TEXT)
    del content["sha256"]
    change(content)
    content["sha256"] = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps(content)


def group(**changes):
    def change(content):
        entry = content["groups"][0]
        for name, new in changes.items():
            entry[name] = new(entry[name]) if callable(new) else new

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda c: c.update(scale="stars"), "`scale`"),
        (lambda c: c.update(resolution=63), "`resolution` must be a power of two"),
        (lambda c: c.update(cutoff=2), "`cutoff`"),
        (lambda c: c.update(cutoff="x"), '"cutoff" must be a number'),
        (lambda c: c.update(weighted=1), '"weighted" must be true or false'),
        (lambda c: c.update(weighted=False), "null if and only if"),
        (lambda c: c.update(stratified=True), "must be pairs"),
        (lambda c: c.update(more=1), "'more' of the summary is unknown"),
        (lambda c: c["columns"].update(groups=[1]), "must be text"),
        (lambda c: c.update(groups=[]), "at least one group"),
        (lambda c: c["groups"].reverse(), "must be distinct and in order"),
        (lambda c: c["groups"].append(c["groups"][-1]), "must be distinct and in order"),
        (group(label=1.5), 'label" must be'),
        (group(bin=[], rows=[], weight=[], weight_squares=[], mean=[], one_score=[]), "has no rows"),
        (group(bin=lambda v: v[::-1]), "must be increasing"),
        (group(bin=lambda v: [*v[:-1], 1000]), "must be increasing and below 66"),
        (group(rows=lambda v: [0, *v[1:]]), "must be positive integers"),
        (group(rows=lambda v: [-1, *v[1:]]), "integer"),
        (group(rows=lambda v: [2.5, *v[1:]]), "integer"),
        (group(rows=lambda v: [2**62, *v[1:]]), "must be positive integers"),
        (group(rows=lambda v: v[1:]), "have different lengths"),
        (group(weight=lambda v: [0, *v[1:]]), "must be positive"),
        (group(weight_squares=lambda v: [-1, *v[1:]]), "must be positive"),
        (group(weight=lambda v: [1e300, *v[1:]]), "must be positive and below 1e\\+100"),
        (group(weight_squares=lambda v: [1e200, *v[1:]]), "at most the squares"),
        (group(weight=None), "null if and only if"),
        (group(mean=lambda v: [*v[1:], v[0]]), "outside its bin"),
        (group(mean=lambda v: [1e300, *v[1:]]), "outside its bin"),
        (group(one_score=[1000]), "must be increasing and list bins"),
    ],
)
def test_impossible_content_raises_even_with_a_valid_checksum(change, text):
    with pytest.raises(SummaryFormatError, match=text):
        from_text(forged(change))


def test_wrong_checksum_raises():
    assert from_text(forged(lambda content: None)) == SUMMARIES["weighted"]
    with pytest.raises(SummaryFormatError, match="the file is damaged or was edited"):
        from_text(TEXT.replace('"score":null', '"score":"p"'))


def test_rows_in_a_bin_are_indistinguishable():
    a = summarize([0.5, 0.50012, 0.50006], ["A"] * 3, resolution=64)
    b = summarize([0.50004, 0.50004, 0.5001], ["A"] * 3, resolution=64)
    assert close(a, b)


# Tables ---------------------------------------------------------------------------------------


def tables(columns):
    frame = polars.DataFrame(columns)
    yield pandas.DataFrame(columns)
    yield frame
    yield frame.to_arrow()
    yield frame.lazy()
    yield duckdb.connect().from_arrow(frame.to_arrow())


@pytest.mark.parametrize("scale", ["probability", "signed", "logit"])
@pytest.mark.parametrize("cutoff", [None, 0.3])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("strata", [None, "region"])
def test_every_engine_gives_the_same_summary(scale, cutoff, weight, strata):
    rng = np.random.default_rng(10)
    n = 3000
    scores = {
        "probability": rng.random(n).round(3),
        "signed": rng.uniform(-1, 1, n),
        "logit": rng.normal(size=n).round(1),
    }[scale]
    unit = np.where(rng.random(n) < 0.1, None, rng.choice(["A", "B"], n))
    columns = {"p": scores, "unit": unit, "w": rng.uniform(0, 2, n).round(1), "region": rng.integers(0, 2, n)}
    options = {"scale": scale, "cutoff": cutoff, "resolution": 64}
    expected = summarize(
        polars.Series("p", scores),
        {"unit": unit},
        sample_weight=None if weight is None else columns["w"],
        strata=None if strata is None else {"region": columns["region"]},
        **options,
    )
    for frame in tables(columns):
        found = summarize_frame(frame, score="p", group="unit", weight=weight, strata=strata, **options)
        assert close(found, expected)


def test_missing_column_raises():
    with pytest.raises(InputError, match="no column 'q'"):
        summarize_frame(polars.DataFrame({"p": [0.5], "g": ["A"]}), score="q", group="g")


def test_saturated_logits_warn():
    for frame in tables({"p": [0.5, 50.0], "unit": ["A", "B"]}):
        with pytest.warns(fairramp.FairrampWarning, match="1 logits above"):
            summary = summarize_frame(frame, score="p", group="unit", scale="logit")
        assert summary.rows == (1, 1)


def test_summary_equals_only_summaries():
    summary = summarize([0.2, 0.4], ["a", "b"])
    assert summary == summarize([0.4, 0.2], ["b", "a"])
    assert summary != to_text(summary)
