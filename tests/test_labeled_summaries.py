"""Summaries with labels: contents, merging, files, tables, and rules with label-aware targets."""

import json
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairramp
from engines import ENGINES, table
from fairramp import GroupScores, InputError, SummaryFormatError, fit_summary, summarize, summarize_frame
from fairramp.data.bins import from_text, to_text
from fairramp.data.labeled import LabeledBins

pytestmark = pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")

SUMS = ("weight", "weight_squares", "positives", "square_positives")
resolutions = st.sampled_from([2, 4, 16, 256, 4096])
cutoffs = st.sampled_from([0.5, 0.0, 0.3, 0.25])


@st.composite
def samples(draw, min_rows=1):
    """Scores, groups, labels and weights (or None) of a few rows."""
    n = draw(st.integers(min_rows, 40))
    several = {"min_size": n, "max_size": n}
    tied = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 1.0])
    scores = draw(st.lists(tied | st.floats(0, 1) | st.floats(0.49, 0.51), **several))
    groups = draw(st.lists(st.sampled_from(["a", "b", None]), **several))
    labels = draw(st.lists(st.integers(0, 1), **several) | st.just([1] * n))
    weights = draw(st.none() | st.lists(st.floats(0.01, 100), **several))
    return np.array(scores), np.array(groups), np.array(labels), None if weights is None else np.array(weights)


def part(sample, which=slice(None), **options):
    scores, groups, labels, weights = (None if column is None else column[which] for column in sample)
    return summarize(scores, groups, labels=labels, sample_weight=weights, **options)


def assert_close(a, b):
    """Fail unless two summaries with labels are equal, up to 1e-12 in their sums and means."""
    p, q = a.summary.points, b.summary.points
    assert (a.grid, a.labels, a.weighted, a.labeled, a.columns) == (
        b.grid,
        b.labels,
        b.weighted,
        b.labeled,
        b.columns,
    )
    for name in ("group", "rows", "exact", "positive_rows"):
        np.testing.assert_array_equal(getattr(p, name), getattr(q, name))
    for name in ("place", "lower", "upper", *SUMS):
        np.testing.assert_allclose(getattr(p, name), getattr(q, name), rtol=1e-12, atol=1e-12)


@given(samples(), resolutions, cutoffs)
def test_sums_are_those_of_the_rows_with_label_1(sample, resolution, cutoff):
    scores, groups, labels, weights = sample
    options = {"resolution": resolution, "cutoff": cutoff}
    found = part(sample, **options)
    plain = summarize(scores, groups, sample_weight=weights, **options)
    assert found.labeled
    assert not plain.labeled
    points = found.summary.points
    for name in ("group", "place", "lower", "upper", "rows", "weight", "weight_squares"):
        np.testing.assert_array_equal(getattr(points, name), getattr(plain.summary.points, name))
    w = np.ones(len(scores)) if weights is None else weights
    expected = {}
    for x, g, y, v in zip(scores.tolist(), groups.tolist(), labels.tolist(), w.tolist(), strict=True):
        cell = expected.setdefault((found.labels.index(g), int(found.grid.bins(np.array([x]))[0])), np.zeros(3))
        cell += np.array([1, v, v * v]) * y
    expected = np.array([expected[cell] for cell in sorted(expected)])
    np.testing.assert_array_equal(points.positive_rows, expected[:, 0])
    np.testing.assert_allclose(points.positives, expected[:, 1], rtol=1e-12)
    np.testing.assert_allclose(points.square_positives, expected[:, 2], rtol=1e-12)


@given(samples(min_rows=3), st.lists(resolutions, min_size=3, max_size=3), cutoffs)
def test_merged_parts_equal_one_pass(sample, sizes, cutoff):
    owner = np.arange(len(sample[0])) % 3
    a, b, c = (part(sample, owner == i, resolution=size, cutoff=cutoff) for i, size in enumerate(sizes))
    whole = part(sample, resolution=min(sizes), cutoff=cutoff)
    assert_close(a.merge(b).merge(c), whole)
    assert_close(c.merge(b.merge(a)), whole)
    assert_close(part(sample, resolution=max(sizes), cutoff=cutoff).coarsened(min(sizes)), whole)


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    sample = rng.random(5000).round(3), rng.integers(0, 3, 5000), rng.integers(0, 2, 5000), rng.random(5000) + 0.1
    whole = part(sample, resolution=64)
    monkeypatch.setattr(
        "fairramp.data.summarize.map_blocks",
        lambda work, n, size: [work(i, min(i + 37, n)) for i in range(0, n, 37)],
    )
    assert_close(part(sample, resolution=64), whole)


@pytest.mark.parametrize("mine", [None, [0, 1]])
def test_labels_in_only_one_summary_are_refused(mine):
    theirs = None if mine else [0, 1]
    one, other = (summarize([0.2, 0.7], ["A", "B"], labels=labels) for labels in (mine, theirs))
    with pytest.raises(
        InputError, match="Only one of the two summaries has labels; to merge them, summarize both"
    ):
        one.merge(other)


def test_summary_describes_its_labels():
    labeled = summarize([0.2, 0.7, 0.7], ["A", "B", "B"], labels=[0, 1, 0], sample_weight=[1, 3, 1])
    assert labeled.table()["positive_share"].tolist() == [0.0, 0.75]
    assert repr(labeled).startswith("3 weighted rows with labels, 2 groups")
    assert "label 1" in repr(labeled)
    plain = summarize([0.2, 0.7, 0.7], ["A", "B", "B"], sample_weight=[1, 3, 1])
    assert "positive_share" not in plain.table().columns
    assert labeled != plain
    assert labeled != summarize([0.2, 0.7, 0.7], ["A", "B", "B"], labels=[0, 1, 1], sample_weight=[1, 3, 1])


@pytest.mark.parametrize("labels", [[0, 2], [0, np.nan], ["a", "b"], [1]])
def test_bad_labels_are_refused(labels):
    with pytest.raises(InputError, match="`labels`"):
        summarize([0.2, 0.7], ["A", "B"], labels=labels)


# Files ----------------------------------------------------------------------------------------


@given(samples(), resolutions, cutoffs)
def test_any_summary_round_trips(sample, resolution, cutoff):
    summary = part(sample, resolution=resolution, cutoff=cutoff)
    text = to_text(summary)
    loaded = from_text(text)
    assert to_text(loaded) == text
    assert loaded == summary
    for name in ("positive_rows", *SUMS):
        np.testing.assert_array_equal(getattr(loaded.summary.points, name), getattr(summary.summary.points, name))


def test_file_round_trip(tmp_path):
    rng = np.random.default_rng(0)
    summary = summarize(rng.random(500), rng.integers(0, 2, 500), labels=rng.integers(0, 2, 500))
    summary.save(tmp_path / "a.json")
    assert GroupScores.load(tmp_path / "a.json") == summary
    entry = json.loads((tmp_path / "a.json").read_text())["groups"][0]
    assert set(entry) == {"label", "bin", "rows", "mean", "one_score", "positive_rows"}


def forged(text, change):
    """A file with changed content and a matching checksum."""
    content = json.loads(text)
    del content["sha256"]
    change(content)
    content["sha256"] = sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps(content)


def first_group(**changes):
    def change(content):
        entry = content["groups"][0]
        for name, new in changes.items():
            entry[name] = new(entry[name]) if callable(new) else new

    return change


#: Three bins of group A: one row of label 1, two rows of which one has label 1, one row of label 0.
FORGED = to_text(
    summarize(
        [0.1, 0.6, 0.61, 0.9, 0.5],
        ["A", "A", "A", "A", "B"],
        labels=[1, 1, 0, 0, 1],
        sample_weight=[2.0, 3.0, 4.0, 1.0, 1.0],
        resolution=4,
    )
)
PLAIN = to_text(summarize([0.1, 0.6], ["A", "B"], labels=[1, 0], resolution=4))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda c: c.pop("labeled"), 'The field "labeled" of the summary is missing'),
        (
            lambda c: c.update(labeled=False),
            '"positive_rows" of group .* null if and only if rows have no labels',
        ),
        (lambda c: c.update(labeled=1), '"labeled" must be true or false'),
        (first_group(positive_rows=None), "null if and only if rows have no labels"),
        (first_group(positive_weight=None), "null if and only if rows have no labels or no weights"),
        (first_group(positive_weight_squares=None), "null if and only if rows have no labels or no weights"),
        (first_group(positive_rows=lambda v: v[1:]), "different lengths"),
        (first_group(positive_weight=lambda v: v[1:]), "different lengths"),
        (first_group(positive_weight_squares=lambda v: v[1:]), "different lengths"),
        (first_group(positive_rows=lambda v: [-1, *v[1:]]), "positive_rows"),
        (first_group(positive_rows=lambda v: [0.5, *v[1:]]), "must be an integer"),
        (first_group(positive_rows=lambda v: [2, *v[1:]]), '"positive_rows" of group "?\'?A.* at most "rows"'),
        (first_group(positive_rows=lambda v: [0, *v[1:]]), "positive where"),
        (first_group(positive_weight=lambda v: [0.0, *v[1:]]), "positive where"),
        (first_group(positive_weight=lambda v: [*v[:2], 0.5]), "and 0 elsewhere"),
        (first_group(positive_weight=lambda v: [-1.0, *v[1:]]), "positive where"),
        (first_group(positive_weight=lambda v: [v[0], 8.0, v[2]]), '"positive_weight" .* at most "weight"'),
        (first_group(positive_weight=lambda v: [1.0, *v[1:]]), "the same if all rows have label 1"),
        (
            first_group(positive_weight_squares=lambda v: [v[0], 26.0, v[2]]),
            '"positive_weight_squares" .* at most "weight_squares"',
        ),
        (first_group(positive_weight_squares=lambda v: [1.0, *v[1:]]), "the same if all rows have label 1"),
        (first_group(positive_weight_squares=lambda v: [v[0], -1.0, v[2]]), "at most"),
        (first_group(positive_weight_squares=lambda v: [v[0], 10.0, v[2]]), "at most the squares"),
        (first_group(positive_weight_squares=lambda v: [*v[:2], 0.5]), "at most the squares"),
    ],
)
def test_impossible_labels_raise_even_with_a_valid_checksum(change, text):
    assert from_text(forged(FORGED, lambda content: None)).labeled
    with pytest.raises(SummaryFormatError, match=text):
        from_text(forged(FORGED, change))


def test_weights_of_labels_in_an_unweighted_summary_raise():
    with pytest.raises(SummaryFormatError, match="no labels or no weights"):
        from_text(forged(PLAIN, first_group(positive_weight=[1.0])))


@given(st.integers(0, len(FORGED) - 2), st.characters(codec="utf-8"))
def test_changed_character_raises_or_keeps_the_meaning(at, character):
    try:
        found = from_text(FORGED[:at] + character + FORGED[at + 1 :])
    except SummaryFormatError:
        return
    assert to_text(found) == FORGED


# Tables and rules -----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("scale", "cutoff"), [("probability", None), ("signed", 0.3), ("logit", 0.3)])
@pytest.mark.parametrize("weight", [None, "w"])
def test_every_engine_gives_the_same_summary(engine, scale, cutoff, weight):
    rng = np.random.default_rng(10)
    n = 2000
    scores = {
        "probability": rng.random(n).round(3),
        "signed": rng.uniform(-1, 1, n),
        "logit": rng.normal(size=n).round(1),
    }[scale]
    unit = np.where(rng.random(n) < 0.1, None, rng.choice(["A", "B"], n)).tolist()
    columns = {"p": scores, "unit": unit, "w": rng.uniform(0.1, 2, n).round(1)}
    columns |= {"region": rng.integers(0, 2, n), "y": rng.integers(0, 2, n)}
    options = {"scale": scale, "cutoff": cutoff, "resolution": 64}
    expected = summarize(
        scores,
        {"unit": unit},
        labels=columns["y"],
        sample_weight=columns["w"] if weight else None,
        strata={"region": columns["region"]},
        **options,
    )
    found = summarize_frame(
        table(engine, columns), score="p", group="unit", label="y", weight=weight, strata="region", **options
    )
    assert found.columns.score == "p"
    assert_close(found, GroupScores(expected.grid, expected.summary, expected.weighted, True, found.columns))


def test_missing_label_column_raises():
    with pytest.raises(InputError, match="no column 'z'"):
        summarize_frame(table("polars", {"p": [0.5], "g": ["A"]}), score="p", group="g", label="z")


def rows_with_labels(n=20_000, digits=2):
    rng = np.random.default_rng(0)
    scores, groups = rng.random(n).round(digits), rng.integers(0, 3, n)
    return scores, groups, (rng.random(n) < scores**1.5 * (1 + groups) / 3).astype(int), rng.integers(1, 4, n)


@pytest.mark.parametrize("target", ["accuracy", "base_rate"])
@pytest.mark.parametrize("weighted", [False, True])
def test_bins_of_single_scores_give_the_rule_of_the_rows(target, weighted):
    scores, groups, labels, weights = rows_with_labels()
    weights = weights if weighted else None
    summary = summarize(scores, groups, labels=labels, sample_weight=weights)
    assert summary.summary.points.exact.all()
    settings = {"target_rate": target, "max_gap": 0.03}
    rule = fit_summary(summary, **settings)
    exact = fairramp.fit_rule(scores, groups, labels, sample_weight=weights, **settings)
    assert rule.record.target == target
    np.testing.assert_allclose(rule.thresholds, exact.thresholds, atol=1e-9)


def test_rule_of_bins_is_nearly_as_accurate_as_that_of_the_rows():
    scores, groups, labels, _ = rows_with_labels(digits=17)
    parts = [summarize(scores[i::2], groups[i::2], labels=labels[i::2]) for i in range(2)]
    settings = {"target_rate": "accuracy", "max_gap": 0.03}
    rule = fit_summary(parts[0].merge(parts[1]), **settings)
    exact = fairramp.fit_rule(scores, groups, labels, **settings)
    assert rule.record.gap_after <= 0.03 + 1e-3
    accuracies = [
        np.mean(np.where(labels == 1, p, 1 - p)) for p in (r.probabilities(scores, groups) for r in (rule, exact))
    ]
    assert accuracies[0] == pytest.approx(accuracies[1], abs=2e-3)


def test_bins_of_a_summary_are_used_as_they_are():
    scores, groups, labels, weights = rows_with_labels(digits=17)
    summary = summarize(scores, groups, labels=labels, sample_weight=weights, resolution=64, cutoff=0.3)
    bins = LabeledBins.of_group_scores(summary)
    assert bins.scores.labels == summary.labels
    np.testing.assert_array_equal(bins.scores.points.place, summary.summary.points.place)
    for group in range(3):
        mine = bins.scores.points.group == group
        w = weights * labels
        assert bins.positives[mine].sum() == w[groups == group].sum()
        assert bins.square_positives[mine].sum() == (w * weights)[groups == group].sum()
