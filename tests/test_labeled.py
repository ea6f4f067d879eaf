"""Scores with labels in bins: the same from arrays, tables and summaries as by brute force."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fairramp
from engines import DISTRIBUTED, LAZY, QUICK_LAZY, table
from fairramp import InputError
from fairramp.core.scales import SCALES
from fairramp.data import engines, labeled, places
from fairramp.data.columns import Columns
from fairramp.data.labeled import LabeledBins
from fairramp.data.lazy_rows import LazyRows
from fairramp.data.lazy_table import LazyTable, Profile
from fairramp.data.sample import Sample
from fairramp.data.tables import open_table
from fairramp.fit.cells import FitRows
from fairramp.fit.fit import fit_rows
from fairramp.fit.outcomes import LabeledScores
from fairramp.fit.problem import Fixed
from fairramp.fit.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")

RANGES = {"probability": (0.0, 1.0), "percent": (0.0, 100.0), "signed": (-1.0, 1.0), "logit": (-9.0, 9.0)}


def sample_of(scores, groups, labels, weights=None, scale="probability", strata=None):
    return Sample.of_arrays(
        scores, groups, labels, scale=SCALES[scale], sample_weight=weights, strata=strata, drop_empty=True
    )


def of_arrays(*args, **options):
    sample = sample_of(*args, **options)
    return LabeledBins.of_arrays(sample.rows, sample.outcomes)


def brute_force(sample, most=4096):
    """Points as {(label, start of the bin or position): [rows, Σw, Σw², Σw·x, Σw·y, Σw²·y]}."""
    x, scale = sample.scale.position(sample.scores) + 0.0, sample.scale
    few = len(set(sample.scores.astype(float).tolist())) <= most
    per_unit = most / (scale.highest - scale.lowest)
    key = x if few else np.floor(x * per_unit) / per_unit
    w = np.ones(len(x)) if sample.weights is None else sample.weights
    y, group = sample.outcomes, sample.cells.block(0, len(x)).astype(int)
    if not few:
        # A bin with more than 1/64 of its group's rows, and more than 64, is opened.
        _, cell, in_bin = np.unique(group + 1j * key, return_inverse=True, return_counts=True)
        key = np.where(in_bin[cell] > np.maximum(np.bincount(group) // 64, 64)[group], x, key)
    rows = np.stack([np.ones(len(x)), w, w * w, w * x, w * y, w * w * y], axis=1)
    found = {}
    order = np.lexsort((key, group))
    starts = [0, *(np.flatnonzero(np.diff(group[order]) | (np.diff(key[order]) != 0)) + 1), len(x)]
    for start, stop in pairwise(starts):
        mine = order[start:stop]
        found[sample.cells.labels[group[mine[0]]], float(key[mine[0]])] = rows[mine].sum(axis=0)
    return few, found


def check(bins, sample, most=4096):
    few, expected = brute_force(sample, most)
    points, labels = bins.scores.points, bins.scores.labels
    assert [labels[g] for g in points.group.tolist()] == [label for label, _ in expected]
    rows, weight, squares, moment, positives, square_positives = np.array(list(expected.values())).T
    np.testing.assert_array_equal(points.rows, rows)
    for found, sums in (
        (points.weight, weight),
        (points.weight_squares, squares),
        (bins.positives, positives),
        (bins.square_positives, square_positives),
    ):
        np.testing.assert_allclose(found, sums, rtol=1e-12, atol=0)
    starts = [start for _, start in expected]
    if few:
        np.testing.assert_array_equal(points.place, starts)
        assert points.exact.all()
    else:
        np.testing.assert_allclose(points.place, moment / weight, rtol=1e-11, atol=1e-15)
        width = (sample.scale.highest - sample.scale.lowest) / most
        assert ((points.lower >= starts) & (points.lower < np.array(starts) + width)).all()
        assert ((points.lower <= points.place) & ((points.place < points.upper) | points.exact)).all()
    assert points.averaged.all()


def some_rows(n, scale, seed=0, digits=None):
    rng = np.random.default_rng(seed)
    low, high = RANGES[scale]
    scores = rng.uniform(low, high, n)
    scores[rng.random(n) < 0.01] = high
    scores[rng.random(n) < 0.01] = (low + high) / 2
    scores = scores if digits is None else scores.round(digits)
    groups = rng.choice(["a", "b", "c", None], n, p=[0.5, 0.3, 0.19, 0.01])
    labels = (rng.random(n) < 0.3).astype(float)
    labels[groups == "b"] = 1.0  # a group with one label
    return scores, groups, labels, rng


@pytest.mark.parametrize("scale", RANGES)
@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_arrays_match_brute_force(scale, digits, weighted):
    scores, groups, labels, rng = some_rows(30_000, scale, digits=digits)
    weights = rng.uniform(0, 3, len(scores)).round(1) if weighted else None
    strata = rng.integers(0, 2, len(scores)) if weighted else None
    sample = sample_of(scores, groups, labels, weights, scale, strata)
    check(LabeledBins.of_arrays(sample.rows, sample.outcomes), sample)


@st.composite
def small_rows(draw):
    n = draw(st.integers(1, 60))
    scale = draw(st.sampled_from(list(RANGES)))
    low, high = RANGES[scale]
    tied = st.sampled_from([low, high, (low + high) / 2, -0.0, 0.7 * high, np.nextafter(high, 0), 5e-324])
    scores = draw(st.lists(st.one_of(tied, st.floats(low, high)), min_size=n, max_size=n))
    groups = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    labels = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    weights = draw(st.none() | st.lists(st.floats(0.01, 100), min_size=n, max_size=n))
    return scores, groups, labels, weights, scale


@given(small_rows(), st.sampled_from([2, 4, 8, 64]), st.integers(1, 9), st.integers(1, 16))
def test_any_rows_in_any_blocks_match_brute_force(rows, most, block, slot_bits):
    sample = sample_of(*rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "MOST_PLACES", most)
        patch.setattr(places, "FEWEST_PLACES", 2)
        patch.setattr(labeled, "FIRST_LOOK", block)
        patch.setattr(labeled, "_SEEN_BITS", slot_bits)
        patch.setattr(labeled, "_KNOWN_BITS", slot_bits)
        patch.setattr(
            labeled, "map_blocks", lambda work, n, size=0: [work(i, min(i + 7, n)) for i in range(0, n, 7)]
        )
        check(LabeledBins.of_arrays(sample.rows, sample.outcomes), sample, most)


@pytest.mark.parametrize("n_scores", [4095, 4096, 4097])
@pytest.mark.parametrize("late", [False, True])
def test_number_of_distinct_scores_is_exact(n_scores, late):
    # The rows looked at first have few scores either way; with `late`, the rest has all others.
    scores = np.full(600_000, 0.5)
    scores[(slice(-n_scores, None) if late else slice(0, 100 * n_scores, 100))] = (
        np.random.default_rng(0).permutation(n_scores) / n_scores
    )
    n_distinct = len(np.unique(scores))
    bins = of_arrays(scores, np.zeros(len(scores), dtype=int), scores > 0.7)
    assert bins.scores.points.exact.all() == (n_distinct <= 4096)
    crowded = len(np.unique(scores[scores * 4096 // 1 == 2048]))  # the bin of 0.5 is opened
    binned = len(np.unique(scores * 4096 // 1)) - 1 + crowded
    assert len(bins.scores.points) == (n_distinct if n_distinct <= 4096 else binned)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize("score", [np.float16, np.float32, np.float64])
def test_types_of_labels_and_scores(kind, score):
    rng = np.random.default_rng(0)
    scores, labels = rng.random(20_000).astype(score), rng.random(20_000) < 0.4
    sample = sample_of(scores, np.arange(20_000) % 3, labels)
    check(LabeledBins.of_arrays(sample.rows, labels.astype(kind)), sample)


@pytest.mark.parametrize("n_groups", [70, 2000])
def test_many_groups(n_groups):
    rng = np.random.default_rng(0)
    n = 20_000
    sample = sample_of(rng.random(n), np.arange(n) % n_groups, rng.random(n) < 0.4, rng.random(n) + 0.1)
    check(LabeledBins.of_arrays(sample.rows, sample.outcomes), sample, 4096 if n_groups <= 1024 else 2048)


def test_number_of_bins_decreases_with_the_groups():
    assert [places.most_places(k) for k in (1, 1024, 1025, 4096, 10_000, 10**8)] == [
        4096,
        4096,
        2048,
        1024,
        256,
        256,
    ]


def test_saturated_logits_are_one_point():
    bins = of_arrays([40.0, 50.0, 60.0, 0.0], ["a"] * 4, [0, 1, 1, 1], scale="logit")
    assert bins.scores.points.place.tolist() == [0.5, 1.0]
    assert bins.positives.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("bad", [np.nan, 1.5, -0.5, np.inf])
@pytest.mark.parametrize("n", [3, 40_000])
@pytest.mark.parametrize("digits", [2, 9])
def test_bad_scores_are_refused_by_row(bad, n, digits):
    scores = np.random.default_rng(0).random(n).round(digits)
    scores[n - 2] = bad
    with pytest.raises(InputError, match=f"row {n - 2}"):
        of_arrays(scores, ["a"] * n, np.zeros(n))


def test_result_does_not_depend_on_the_number_of_cores(monkeypatch):
    rng = np.random.default_rng(0)
    n = 600_000
    sample = sample_of(rng.random(n), rng.integers(0, 2, n), rng.random(n) < 0.4, rng.random(n) + 0.1)
    several = LabeledBins.of_arrays(sample.rows, sample.outcomes)
    monkeypatch.setattr("fairramp.core.blocks.CORES", 1)
    one = LabeledBins.of_arrays(sample.rows, sample.outcomes)
    np.testing.assert_array_equal(several.positives, one.positives)
    np.testing.assert_array_equal(several.scores.points.place, one.scores.points.place)


# Lazy tables ----------------------------------------------------------------------------------


def lazy_rows(engine, scores, groups, labels, weights=None, scale="probability", strata=None):
    """Rows of a lazy table with the columns that are given."""
    given = {"p": scores, "g": groups, "y": labels, "w": weights, "s": strata}
    columns = {name: np.asarray(v).tolist() for name, v in given.items() if v is not None}
    opened, _ = open_table(table(engine, columns))
    names = Columns().given("p", "g", None if strata is None else "s")
    lazy = LazyTable(opened, names, label="y", weight=None if weights is None else "w")
    return LazyRows(lazy, Profile.of(lazy, SCALES[scale]), SCALES[scale], labeled=True)


def check_lazy(engine, *rows, most=4096, **options):
    bins = LabeledBins.of_lazy(lazy_rows(engine, *rows, **options))
    sample = sample_of(*rows, **options)
    check(bins, sample, most)
    in_memory = LabeledBins.of_arrays(sample.rows, sample.outcomes)
    for name in ("group", "rows"):
        np.testing.assert_array_equal(
            getattr(bins.scores.points, name), getattr(in_memory.scores.points, name), err_msg=name
        )
    if sample.weights is None:
        np.testing.assert_array_equal(bins.positives, in_memory.positives)


@pytest.mark.parametrize("engine", QUICK_LAZY)
@pytest.mark.parametrize("scale", RANGES)
@pytest.mark.parametrize("n", [3000, 20_000, 40_000], ids=["few rows", "sorted", "binned"])
@pytest.mark.parametrize(("digits", "weighted"), [(None, False), (None, True), (1, True)])
def test_lazy_tables_match_arrays(engine, scale, digits, n, weighted):
    scores, groups, labels, rng = some_rows(n, scale, digits=digits)
    weights = rng.uniform(0, 3, n).round(1) if weighted else None
    strata = rng.integers(0, 2, n) if weighted else None
    check_lazy(engine, scores, groups, labels, weights, scale=scale, strata=strata)


@pytest.mark.parametrize("engine", DISTRIBUTED)
@pytest.mark.parametrize("scale", ["signed", "logit"])
@pytest.mark.parametrize(("n", "digits"), [(5000, None), (40_000, None), (40_000, 2)])
def test_distributed_tables_match_arrays(engine, scale, n, digits):
    scores, groups, labels, rng = some_rows(n, scale, digits=digits)
    check_lazy(engine, scores, groups, labels, rng.uniform(0, 3, n).round(1), scale=scale)


@given(small_rows(), st.sampled_from([2, 4, 64]), st.integers(1, 9), st.booleans())
@example(([-9.0, 9.0, 0.0, 6.3, np.nextafter(9, 0)], [0] * 5, [0] * 5, None, "logit"), 4, 9, False)
@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize("engine", QUICK_LAZY)
def test_any_lazy_table_matches_arrays(engine, rows, most, look, is_binned):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "MOST_PLACES", most)
        patch.setattr(places, "FEWEST_PLACES", 2)
        patch.setattr("fairramp.data.lazy_rows.FIRST_LOOK", look)
        patch.setattr("fairramp.data.lazy_rows.SORTED_ROWS", 0 if is_binned else 1 << 15)
        *columns, scale = rows
        check_lazy(engine, *columns, scale=scale, most=most)


@pytest.mark.parametrize("engine", QUICK_LAZY)
@pytest.mark.parametrize("n_scores", [4096, 4097])
@pytest.mark.parametrize("sorted_by", [1, -1])
def test_row_order_does_not_matter(engine, n_scores, sorted_by):
    # In one order the first rows have one score, in the other more than half of all scores.
    scores = np.sort(np.append(np.arange(n_scores) / n_scores, np.zeros(40_000)))[::sorted_by]
    check_lazy(engine, scores, ["a"] * len(scores), (scores > 0.6).astype(int))


@pytest.mark.parametrize("engine", QUICK_LAZY)
def test_signed_zeros_are_one_score(engine):
    scores = np.append(np.arange(1, 4096) / 4096, np.tile([0.0, -0.0], 20_000))
    check_lazy(engine, scores, ["a"] * len(scores), np.ones(len(scores), dtype=int))


def expected_rule(bins, sample, columns, **settings_):
    """The rule of `fit_rule`, with labels from these bins."""
    asked = Settings(**settings_, scale=sample.scale.name)
    by_label = (
        {"labeled": LabeledScores.of_bins(bins, sample.scale)}
        if asked.target_rate == "accuracy"
        else {"level": Fixed(np.average(sample.outcomes, weights=sample.weights))}
    )
    return fit_rows(
        FitRows(sample.rows),
        asked,
        columns,
        stratified=sample.stratified,
        weighted=sample.weights is not None,
        **by_label,
    )


@pytest.mark.parametrize("engine", LAZY)
@pytest.mark.parametrize(("digits", "weighted"), [(None, True), (2, False)])
@pytest.mark.parametrize("target", ["accuracy", "base_rate"])
def test_fit_of_a_lazy_table_equals_the_fit_of_its_bins(engine, digits, weighted, target):
    n = 40_000
    scores, groups, labels, rng = some_rows(n, "probability", digits=digits)
    weights = rng.uniform(0.1, 3, n).round(1) if weighted else None
    sample = sample_of(scores, groups, labels, weights)
    settings_ = {"target_rate": target, "max_gap": 0.05}
    columns = {"p": scores, "g": groups.tolist(), "y": labels.astype(int)} | ({"w": weights} if weighted else {})
    found = fairramp.fit_frame(
        table(engine, columns),
        score="p",
        group="g",
        label="y",
        weight="w" if weighted else None,
        **settings_,
    )
    bins = LabeledBins.of_arrays(sample.rows, sample.outcomes)
    expected = expected_rule(bins, sample, found.columns, **settings_)
    assert found.groups == expected.groups
    assert found.record.fingerprint == expected.record.fingerprint
    assert found.record.target == target
    np.testing.assert_allclose(found.thresholds, expected.thresholds, atol=1e-9)
    for rates in ("before", "after"):
        mine, theirs = (getattr(rule.record.rates["selection"], rates) for rule in (found, expected))
        np.testing.assert_allclose(mine, theirs, atol=1e-9)


@pytest.mark.parametrize("engine", LAZY)
@pytest.mark.parametrize(("digits", "target"), [(None, "accuracy"), (2, "accuracy"), (None, "base_rate")])
def test_label_aware_fit_fetches_only_sums(engine, digits, target, monkeypatch):
    n = 100_000
    scores, _, labels, rng = some_rows(n, "probability", digits=digits)
    fetched, fetch = [], engines.fetch

    def counting(frame):
        found = fetch(frame)
        fetched.append(len(next(iter(found.values()))))
        return found

    def refuse(*args, **kwargs):
        raise AssertionError("columns were loaded")

    monkeypatch.setattr(engines, "fetch", counting)
    for name in ("fairramp.fit.frames.sample_of_table", "fairramp.data.tables.fetch"):
        monkeypatch.setattr(name, refuse)
    frame = table(engine, {"p": scores, "g": rng.integers(0, 3, n), "y": labels})
    fairramp.fit_frame(frame, score="p", group="g", label="y", target_rate=target, max_gap=0.02)
    # The groups; a look at a few rows; then, for few scores, their number; then sums per group and bin or score.
    assert fetched[:2] == [3, 1]
    assert len(fetched) <= 5
    assert sum(fetched) < (500 if digits else 3 * 4097 + 2000)


@pytest.mark.parametrize("engine", QUICK_LAZY)
def test_labels_that_no_target_needs_are_checked_but_not_summed(engine):
    frame = table(engine, {"p": [0.2, 0.7], "g": ["a", "b"], "y": [0, 1]})
    plain = fairramp.fit_frame(frame, score="p", group="g", target_rate=0.5)
    assert fairramp.fit_frame(frame, score="p", group="g", label="y", target_rate=0.5) == plain
    bad = table(engine, {"p": [0.2, 0.7], "g": ["a", "b"], "y": [0, 2]})
    with pytest.raises(InputError, match="`labels` must be 0 or 1"):
        fairramp.fit_frame(bad, score="p", group="g", label="y", target_rate="accuracy")


@pytest.mark.parametrize("engine", QUICK_LAZY)
def test_lazy_fit_with_strata_and_confidence(engine):
    n = 40_000
    scores, groups, labels, rng = some_rows(n, "probability")
    columns = {"p": scores, "g": np.where(groups == "a", "a", "b").tolist(), "y": labels}
    columns["s"] = rng.integers(0, 2, n)
    sample = sample_of(scores, columns["g"], labels, strata=columns["s"])
    bins = LabeledBins.of_arrays(sample.rows, sample.outcomes)
    settings_ = {"target_rate": "accuracy", "max_gap": 0.05}
    found = fairramp.fit_frame(table(engine, columns), score="p", group="g", label="y", strata="s", **settings_)
    expected = expected_rule(bins, sample, found.columns, **settings_)
    np.testing.assert_allclose(found.thresholds, expected.thresholds, atol=1e-9)
    sure = fairramp.fit_frame(
        table(engine, columns), score="p", group="g", label="y", confidence=0.9, **settings_
    )
    assert sure.certificate(0.9).estimated <= 0.05
