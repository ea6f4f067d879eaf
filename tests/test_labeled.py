"""Scores with labels in bins: the same from arrays, tables and summaries as by brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairramp import InputError
from fairramp.core.scales import SCALES
from fairramp.data import labeled, places
from fairramp.data.labeled import LabeledBins
from fairramp.data.sample import Sample

RANGES = {"probability": (0.0, 1.0), "percent": (0.0, 100.0), "signed": (-1.0, 1.0), "logit": (-9.0, 9.0)}


def sample_of(scores, groups, labels, weights=None, scale="probability", strata=None):
    return Sample.of_arrays(
        scores, groups, labels, scale=SCALES[scale], sample_weight=weights, strata=strata, drop_empty=True
    )


def of_arrays(*args, **options):
    sample = sample_of(*args, **options)
    return LabeledBins.of_arrays(sample.rows, sample.outcomes)


def brute_force(sample, most=4096):
    """Points as {(label, bin or position): [rows, Σw, Σw², Σw·x, Σw·y, Σw²·y]}, row by row."""
    x, scale = sample.scale.position(sample.scores) + 0.0, sample.scale
    few = len(set(sample.scores.astype(float).tolist())) <= most
    per_unit = most / (scale.highest - scale.lowest)
    key = x if few else np.floor(x * per_unit) / per_unit
    w = np.ones(len(x)) if sample.weights is None else sample.weights
    found = {}
    for group, k, position, y, v in zip(
        sample.cells.block(0, len(x)).tolist(),
        key.tolist(),
        x.tolist(),
        sample.outcomes.tolist(),
        w.tolist(),
        strict=True,
    ):
        sums = found.setdefault((group, k), np.zeros(6))
        sums += (1, v, v * v, v * position, v * y, v * v * y)
    return few, {(sample.cells.labels[g], k): found[g, k] for g, k in sorted(found)}


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
        np.testing.assert_array_equal(points.lower, starts)
        assert ((points.lower <= points.place) & ((points.place < points.upper) | points.exact)).all()
        np.testing.assert_array_equal(points.exact, points.lower == sample.scale.highest)
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
        patch.setattr(labeled, "_SLOT_BITS", slot_bits)
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
    assert len(bins.scores.points) == (n_distinct if n_distinct <= 4096 else len(np.unique(scores * 4096 // 1)))


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
