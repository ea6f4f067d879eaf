"""`select`: exactly k places, the best integers for a band, and ties that do not depend on the order of rows."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fairramp
from fairramp.fit import counts
from samples import KEY

MOST = {1: 40, 2: 14, 3: 8, 4: 5}


@st.composite
def lists(draw, tied=True):
    """Scores and groups of a short list of at most four groups, some of them tiny."""
    k = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(1, MOST[k]), min_size=k, max_size=k))
    fine = draw(st.sampled_from([1, 4, 64])) if tied else 1 << 20
    n = sum(sizes)
    chosen = draw(st.lists(st.integers(0, fine), min_size=n, max_size=n, unique=not tied))
    return np.array(chosen) / fine, np.repeat(np.arange(k), sizes)


bands = st.one_of(
    st.fixed_dictionaries({"max_gap": st.one_of(st.sampled_from([0.0, 0.05, 0.1, 0.25, 1.0]), st.floats(0, 1))}),
    st.fixed_dictionaries({"min_ratio": st.one_of(st.sampled_from([0.5, 0.8, 1.0]), st.floats(1e-3, 1))}),
)


def needed(places, sizes, max_gap=None, min_ratio=None):
    """By how much rates exceed a limit, as a fraction."""
    rates = [Fraction(int(m), int(n)) for m, n in zip(places, sizes, strict=True)]
    slope, slack = (1, Fraction(max_gap)) if min_ratio is None else (Fraction(min_ratio), 0)
    return max(slope * max(rates) - min(rates) - slack, Fraction(0))


def total(scores, groups, places):
    """Total score, as a fraction, of the best people of each group."""
    best = (sorted(scores[groups == k])[::-1][:m] for k, m in enumerate(places))
    return sum(map(Fraction, itertools.chain(*best)), Fraction(0))


def best_of_all(scores, groups, places, band):
    """Smallest excess and best total over all integers."""
    sizes = np.bincount(groups)
    every = [m for m in itertools.product(*(range(n + 1) for n in sizes)) if sum(m) == places]
    excess = [needed(m, sizes, **band) for m in every]
    least = min(excess)
    least = least if least > 1e-9 else Fraction(0)
    allowed = [m for m, e in zip(every, excess, strict=True) if e <= least + Fraction(1, 10**9)]
    return least, max(total(scores, groups, m) for m in allowed)


def ids(n):
    return [f"p{i}" for i in range(n)]


@pytest.mark.parametrize("parts", [(32, 8), (1, 2)], ids=["default", "finest"])
@given(lists(), bands, st.floats(0, 1))
@example((np.array([0.5] * 6), np.array([0, 0, 0, 0, 0, 1])), {"min_ratio": 0.8}, 0.5)
@example((np.arange(12) / 12, np.repeat([0, 1, 2], [1, 4, 7])), {"max_gap": 0.0}, 0.4)
def test_no_integers_are_better(parts, sample, band, share):
    scores, groups = sample
    places = round(share * len(scores))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "_RANGES", parts[0])
        patch.setattr(counts, "_PARTS", parts[1])
        found = fairramp.select(scores, groups, places=places, ids=ids(len(scores)), key=KEY, **band)
    sizes = np.bincount(groups)
    least, best = best_of_all(scores, groups, places, band)
    assert found.excess == pytest.approx(float(least), abs=1e-9)
    assert (found.excess == 0) == (least == 0)
    assert float(total(scores, groups, found.places)) == pytest.approx(float(best), abs=1e-9)
    assert float(needed(found.places, sizes, **band)) == pytest.approx(found.excess, abs=2e-9)


@pytest.mark.parametrize("seed", range(12))
def test_no_integers_are_better_in_longer_lists(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 120, 3)
    groups = rng.permutation(np.repeat(np.arange(3), sizes))
    scores = rng.integers(0, [8, 1 << 16][seed % 2] + 1, len(groups)) / (1 << 17) * (1 + groups / 3)
    places = int(rng.integers(0, len(groups) + 1))
    band = [{"max_gap": 0.0}, {"max_gap": 0.07}, {"min_ratio": 0.8}, {"min_ratio": 0.97}][seed % 4]
    m = np.stack(np.meshgrid(*(np.arange(n + 1) for n in sizes[:2]), indexing="ij"), axis=-1).reshape(-1, 2)
    m = np.column_stack([m, places - m.sum(axis=1)])
    m = m[(m[:, 2] >= 0) & (m[:, 2] <= sizes[2])]
    slope, slack = (1, band["max_gap"]) if "max_gap" in band else (band["min_ratio"], 0.0)
    excess = np.maximum(slope * (m / sizes).max(axis=1) - (m / sizes).min(axis=1) - slack, 0)
    allowed = m[excess <= (excess.min() if excess.min() > 1e-9 else 0) + 1e-9]
    sums = [np.concatenate([[0], np.cumsum(np.sort(scores[groups == k])[::-1])]) for k in range(3)]
    best = max(sum(s[i] for s, i in zip(sums, row, strict=True)) for row in allowed)
    found = fairramp.select(scores, groups, places=places, ids=ids(len(scores)), key=KEY, **band)
    assert sum(s[i] for s, i in zip(sums, found.places, strict=True)) == pytest.approx(best, abs=1e-9)
    assert found.excess == pytest.approx(excess.min() if excess.min() > 1e-9 else 0.0, abs=2e-9)


@given(lists(), bands, st.floats(0, 1), st.booleans())
def test_exactly_the_places_are_filled_by_the_best_of_each_group(sample, band, share, higher):
    scores, groups = sample
    places = round(share * len(scores))
    own = scores if higher else 1 - scores
    found = fairramp.select(
        own, groups, places=places, ids=ids(len(own)), key=KEY, higher_is_better=higher, **band
    )
    chosen = found.decisions == 1
    assert found.decisions.dtype == np.int8
    assert set(found.decisions.tolist()) <= {0, 1}
    assert found.decisions.sum() == sum(found.places) == places
    u = fairramp.draws(ids(len(own)), KEY)
    for k, m in enumerate(found.places):
        order = sorted(np.flatnonzero(groups == k), key=lambda i: (-scores[i], u[i]))
        assert chosen[order[:m]].all()
        assert not chosen[order[m:]].any()
        assert math.isnan(found.last_score[k]) if m == 0 else found.last_score[k] == own[order[m - 1]]
        share_last = sum(scores[i] == scores[order[m - 1]] for i in order) if m else 0
        split = 0 < m < len(order) and scores[order[m]] == scores[order[m - 1]]
        assert found.decided_at_random[k] == (share_last if split else 0)


@given(lists(), bands, st.floats(0, 1), st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(sample, band, share, random):
    scores, groups = sample
    places, names = round(share * len(scores)), np.array(ids(len(scores)))
    found = fairramp.select(scores, groups, places=places, ids=names, key=KEY, **band)
    order = np.array(random.sample(range(len(scores)), len(scores)))
    again = fairramp.select(scores[order], groups[order], places=places, ids=names[order], key=KEY, **band)
    assert again.places == found.places
    assert (again.decisions == found.decisions[order]).all()


@given(lists(tied=False), bands, st.floats(0, 1))
def test_without_ties_no_ids_are_needed(sample, band, share):
    scores, groups = sample
    found = fairramp.select(scores, groups, places=round(share * len(scores)), **band)
    assert sum(found.decided_at_random) == 0


def test_default_is_a_gap_of_0():
    scores, groups = [0.9, 0.8, 0.7, 0.6, 0.5], list("AABBB")
    found = fairramp.select(scores, groups, places=2)
    assert (found.max_gap, found.min_ratio, found.places) == (0.0, None, (1, 1))
    assert found.excess == pytest.approx(1 / 6)
    assert found.gap == pytest.approx(1 / 6)
    assert found.ratio == pytest.approx(2 / 3)
    assert found.sentences()[-1] == (
        "The gap of 16.7 points is above the limit of 0.0 points. No division of the places has a smaller gap."
    )


def test_all_and_no_places():
    scores, groups = [0.9, 0.8, 0.7], list("AAB")
    none = fairramp.select(scores, groups, places=0)
    assert none.decisions.tolist() == [0, 0, 0]
    assert math.isnan(none.ratio)
    assert none.sentences() == ["0 places for 3 people.", "Nobody is admitted, so the limit is met."]
    everybody = fairramp.select(scores, groups, places=np.int64(3), min_ratio=1.0)
    assert everybody.decisions.tolist() == [1, 1, 1]
    assert everybody.sentences()[1:] == [
        "Selection rate: 100.0% in every group.",
        "The ratio of 1.00 meets the limit of 1.",
    ]


def test_ties_between_groups_go_to_the_lower_rate():
    groups = np.repeat(["large", "small"], [80, 20])
    found = fairramp.select(np.full(100, 0.5), groups, places=10, max_gap=0.5, ids=ids(100), key=KEY)
    assert found.places == (8, 2)
    assert found.decided_at_random == (80, 20)
    assert found.sentences()[-1] == (
        "Decided at random: 100 people who share the last admitted score of their group."
    )


def test_one_group_is_a_plain_ranking():
    found = fairramp.select([0.1, 0.9, 0.5], ["A", "A", "A"], places=1)
    assert found.decisions.tolist() == [0, 1, 0]
    assert found.sentences() == ["1 place for 3 people.", "There is one group, so there is no gap."]


def test_logits_keep_their_order_where_probabilities_are_equal():
    found = fairramp.select([50.0, 60.0, -1.0], ["A", "A", "B"], places=2, scale="logit", max_gap=0.5)
    assert found.decisions.tolist() == [0, 1, 1]
    assert found.last_score == (60.0, -1.0)


@pytest.mark.parametrize("scale", ["probability", "percent", "signed"])
def test_scales(scale):
    scores = np.array([0.9, 0.8, 0.3, 0.2]) * (100 if scale == "percent" else 1)
    found = fairramp.select(scores, list("AABB"), places=2, max_gap=0.0, scale=scale)
    assert found.last_score == (scores[0], scores[2])


def test_groups_of_several_columns_and_of_other_libraries():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"sex": list("FMFM"), "race": list("aabb")})
    found = fairramp.select([0.9, 0.8, 0.7, 0.6], frame, places=2, max_gap=1.0)
    assert found.groups == (("F", "a"), ("F", "b"), ("M", "a"), ("M", "b"))
    assert found.decisions.tolist() == [1, 1, 0, 0]
    codes = pd.Series(pd.Categorical(list("xyxy"), categories=["w", "x", "y"]))
    assert fairramp.select(pd.Series([0.9, 0.8, 0.7, 0.6]), codes, places=2).groups == ("x", "y")
    assert fairramp.select([0.9, 0.8, 0.7, 0.6], [20, 10, 20, 10], places=2).groups == (10, 20)


def test_unused_codes_are_left_out():
    found = fairramp.select([0.9, 0.8, 0.7, 0.6], [3, 1, 3, 1], places=2)  # codes 0 and 2 do not occur
    assert (found.groups, found.rows, found.places) == ((1, 3), (2, 2), (1, 1))


def test_text_table_and_dictionary():
    found = fairramp.select([0.9, 0.8, 0.7, 0.6, 0.1], list("AABBC"), places=2, min_ratio=0.8)
    text = repr(found)
    assert text.startswith(
        "2 places for 5 people.\nSelection rate: highest in A and B 50.0% (2 of 4 people), lowest in C"
    )
    assert found.sentences()[-1] == (
        "The ratio of 0.00 is below the limit of 0.8. No division of the places meets the limit; this is the "
        "closest."
    )
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "<table>" in found._repr_html_()
    assert "<p><strong>2 places for 5 people.</strong><br>" in found._repr_html_()
    table = found.table()
    assert table["places"].tolist() == [1, 1, 0]
    assert table["places_by_score"].tolist() == [2, 0, 0]
    assert table["rate"].tolist() == [0.5, 0.5, 0.0]
    content = found.to_dict()
    assert content["last_score"] == [0.9, 0.7, None]
    assert (content["min_ratio"], content["max_gap"], content["excess"]) == (0.8, None, pytest.approx(0.4))
    assert "decisions" not in content
    with pytest.raises(ValueError, match="read-only"):
        found.decisions[0] = 0


def test_names_that_are_no_words_are_called_groups():
    found = fairramp.select([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 2], places=1)
    assert found.sentences()[1] == (
        "Selection rate: highest in group 1 33.3% (1 of 3 people), lowest in group 2 0.0% (0 of 1 person)."
    )


@pytest.mark.parametrize("gap", [0.25, 0.1])
def test_limit_that_is_met_exactly(gap):
    n = round(1 / gap)
    scores = np.concatenate([np.full(n, 0.9) - np.arange(n) / 100, np.full(n, 0.2) - np.arange(n) / 100])
    found = fairramp.select(scores, np.repeat(["A", "B"], n), places=3, max_gap=gap)
    assert found.places == (2, 1)
    assert found.excess == 0.0
    assert (
        found.sentences()[-1] == f"The gap of {100 * gap:.1f} points meets the limit of {100 * gap:.1f} points."
    )


TIED = ([0.5, 0.5, 0.5, 0.1], list("AAAB"))
RATIO = "must be a number above 0 and at most 1"
MEANING = "0.8 means that the lowest rate is at least 80% of the highest."
WRONG = {
    "`places` must be at most 4, the number of people, got 5.": {"places": 5},
    "`places` must be an integer of at least 0, got -1.": {"places": -1},
    "`places` must be an integer of at least 0, got 1.0.": {"places": 1.0},
    "`places` must be an integer of at least 0, got True.": {"places": True},
    "`max_gap` and `min_ratio` exclude each other: both limit how far rates may be apart; remove one of the "
    "two.": {
        "max_gap": 0.1,
        "min_ratio": 0.8,
    },
    f"`min_ratio` {RATIO}, got 0; {MEANING}": {"min_ratio": 0},
    f"`min_ratio` {RATIO}, got 80; for 80%, pass 0.8.": {"min_ratio": 80},
    f"`min_ratio` {RATIO}, got nan; {MEANING}": {"min_ratio": float("nan")},
    f"`min_ratio` {RATIO}, got 'high'; {MEANING}": {"min_ratio": "high"},
    "`max_gap` must be between 0 and 1, got 2; 2 percentage points are 0.02.": {"max_gap": 2},
    "3 people in group A have the score 0.5, but only 2 of them can be admitted; pass `ids` and `key`, which "
    "decide such ties.": {"places": 2, "max_gap": 1.0},
    "`ids` must be different in every row, got 'b' twice; give each person one row.": {
        "ids": ["a", "b", "b", "c"],
        "key": KEY,
    },
    "`ids` must be different in every row, got 7 twice; give each person one row.": {
        "ids": np.array([7, 8, 7, 9]),
        "key": KEY,
    },
    "`ids` must be different in every row, got '7' twice; give each person one row.": {
        "ids": [7, "7", 8, 9],
        "key": KEY,
    },
    "Repeatable decisions require both `ids` and `key`; `key` is missing.": {"ids": [1, 2, 3, 4]},
    "Repeatable decisions require both `ids` and `key`; `ids` is missing.": {"key": KEY},
    "`ids` has 3 rows but `scores` has 4; the lengths must match.": {"ids": [1, 2, 3], "key": KEY},
    "`higher_is_better` must be True or False, got 'no'.": {"higher_is_better": "no"},
}


@pytest.mark.parametrize(("message", "options"), WRONG.items(), ids=list(WRONG))
def test_wrong_arguments_are_explained(message, options):
    with pytest.raises(fairramp.InputError) as error:
        fairramp.select(*TIED, **({"places": 1} | options))
    assert str(error.value) == message


def test_wrong_scores_are_explained():
    with pytest.raises(fairramp.InputError, match="`scores` must be between 0 and 1"):
        fairramp.select([0.5, 1.5], ["A", "B"], places=1)
    with pytest.raises(fairramp.InputError, match="the lengths must match"):
        fairramp.select([0.5, 0.6], ["A"], places=1)
    with pytest.raises(fairramp.InputError, match="is empty"):
        fairramp.select([], [], places=0)


def test_equal_draws_are_decided_by_id(monkeypatch):
    monkeypatch.setattr("fairramp.fit.shortlist.draws", lambda names, key: np.zeros(len(names)))
    found = fairramp.select([0.5, 0.5, 0.1], ["A", "A", "B"], places=1, max_gap=1.0, ids=["z", "y", "x"], key=KEY)
    assert found.decisions.tolist() == [0, 1, 0]


def test_many_groups_and_memory_in_parts(monkeypatch):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 40, 2000)
    scores = rng.random(2000) * (1 + groups) / 40
    found = fairramp.select(scores, groups, places=500, max_gap=0.05)
    monkeypatch.setattr(counts, "_MOST", 64)  # one level at a time
    again = fairramp.select(scores, groups, places=500, max_gap=0.05)
    assert found.places == again.places
    assert sum(found.places) == 500
