"""The hidden split: never below the bound, never above the best possible split."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairramp
from fairramp import HiddenSplit, InputError, Table, hidden_split
from fairramp.measure.bounds import impossibility_bound

ROUNDING = 1e-12

#: Any membership; coarse values are often equal to each other and to their mean.
MEMBERSHIP = st.floats(0, 1) | st.integers(0, 8).map(lambda i: i / 8)
ROWS = st.lists(st.tuples(st.integers(0, 1), MEMBERSHIP), min_size=1, max_size=40)
COARSE = st.tuples(st.integers(0, 1), st.integers(0, 8).map(lambda i: i / 8), st.integers(1, 4))


def within_sides(rows, sides):
    """Mean over sides of |Cov(h, q | side)|, for rows (h, q, weight), in exact fractions."""
    total, found = sum(w for _, _, w in rows), Fraction(0)
    for side in (False, True):
        part = [row for row, s in zip(rows, sides, strict=True) if s == side]
        weight = sum(w for _, _, w in part)
        if not weight:
            continue
        mean_h = Fraction(sum(h * w for h, _, w in part), weight)
        mean_q = sum(Fraction(q) * w for _, q, w in part) / weight
        mean_hq = sum(h * Fraction(q) * w for h, q, w in part) / weight
        found += Fraction(weight, total) * abs(mean_hq - mean_h * mean_q)
    return found


def test_worked_example_with_equal_rates():
    # Members and others have the same rate of ½, yet the two sides differ as much as possible.
    split = hidden_split([1, 0, 1, 0], [1, 1, 0, 0])
    assert split.covariance == pytest.approx(0.25)
    assert split.bound == pytest.approx(0.125)
    assert split.rows == (2, 2)
    assert split.rates == pytest.approx((0.5, 0.5))


@given(ROWS)
def test_covariance_is_at_least_the_bound(rows):
    decisions, membership = zip(*rows, strict=True)
    split = hidden_split(decisions, membership)
    assert split.covariance >= split.bound - ROUNDING
    assert split.bound == pytest.approx(impossibility_bound(decisions, membership), abs=ROUNDING)


@given(ROWS, st.data())
def test_covariance_is_at_least_the_bound_with_weights(rows, data):
    decisions, membership = zip(*rows, strict=True)
    n = len(rows)
    weights = data.draw(st.lists(st.floats(0, 1e6), min_size=n, max_size=n).filter(lambda w: max(w) > 1e-3))
    split = hidden_split(decisions, membership, sample_weight=weights)
    assert split.covariance >= split.bound - ROUNDING


@given(st.lists(COARSE, min_size=1, max_size=8))
def test_covariance_is_exact_and_at_most_that_of_the_best_split(rows):
    decisions, membership, weights = zip(*rows, strict=True)
    split = hidden_split(decisions, membership, sample_weight=weights)
    assert split.covariance == pytest.approx(float(within_sides(rows, split.sides)), abs=ROUNDING)
    best = max(within_sides(rows, sides) for sides in product((False, True), repeat=len(rows)))
    assert float(best) >= split.covariance - ROUNDING >= split.bound - 2 * ROUNDING


@given(st.lists(COARSE, min_size=1, max_size=20))
def test_sides_match_the_proof(rows):
    decisions, membership, weights = zip(*rows, strict=True)
    mean = sum(Fraction(q) * w for _, q, w in rows) / sum(weights)
    for beta in (Fraction(1, 10), Fraction(9, 10)):
        expected = [(Fraction(q) - mean) * (h - beta) > 0 for h, q, _ in rows]
        assert hidden_split(decisions, membership, sample_weight=weights).sides.tolist() == expected


@given(st.lists(COARSE, min_size=1, max_size=20))
def test_decisions_rise_with_membership_on_one_side_and_fall_on_the_other(rows):
    decisions, membership, weights = zip(*rows, strict=True)
    against, along = hidden_split(decisions, membership, sample_weight=weights).covariances
    assert against <= ROUNDING
    assert along >= -ROUNDING


@given(st.lists(COARSE, min_size=1, max_size=20))
def test_integer_weights_equal_repeated_rows(rows):
    decisions, membership, weights = (np.array(column) for column in zip(*rows, strict=True))
    weighted = hidden_split(decisions, membership, sample_weight=weights)
    repeated = hidden_split(np.repeat(decisions, weights), np.repeat(membership, weights))
    assert np.repeat(weighted.sides, weights).tolist() == repeated.sides.tolist()
    assert weighted.bound == pytest.approx(repeated.bound, abs=ROUNDING)
    assert weighted.covariance == pytest.approx(repeated.covariance, abs=ROUNDING)
    assert weighted.shares == pytest.approx(repeated.shares)
    assert weighted.rates == pytest.approx(repeated.rates, nan_ok=True)
    assert weighted.covariances == pytest.approx(repeated.covariances, abs=ROUNDING)


@given(st.lists(COARSE, min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_row_order_does_not_matter(rows, random):
    order = list(range(len(rows)))
    random.shuffle(order)
    decisions, membership, weights = (np.array(column) for column in zip(*rows, strict=True))
    here = hidden_split(decisions, membership, sample_weight=weights)
    there = hidden_split(decisions[order], membership[order], sample_weight=weights[order])
    assert here.sides[order].tolist() == there.sides.tolist()
    assert here.covariance == pytest.approx(there.covariance, abs=ROUNDING)
    assert here.bound == pytest.approx(there.bound, abs=ROUNDING)


@pytest.mark.parametrize("decision", [0, 1])
def test_constant_decisions_hide_nothing(decision):
    split = hidden_split([decision] * 5, [0.1, 0.3, 0.5, 0.7, 0.95])
    assert split.bound == pytest.approx(0, abs=ROUNDING)
    assert split.covariance == pytest.approx(0, abs=ROUNDING)
    assert "No hidden split" in str(split)


@pytest.mark.parametrize("q", [0.0, 0.1, 1 / 3, 1.0])
def test_constant_membership_hides_nothing(q):
    split = hidden_split([0, 1, 1, 0, 1, 1, 1], [q] * 7)
    assert split.bound == pytest.approx(0, abs=ROUNDING)
    assert split.covariance == pytest.approx(0, abs=ROUNDING)
    assert not split.sides.any()  # all equal the mean
    assert split.rows == (7, 0)
    assert np.isnan(split.rates[1])
    assert "No hidden split" in str(split)


def test_zero_weight_rows_do_not_count_but_have_a_side():
    split = hidden_split([1, 0, 1, 0, 1], [1, 1, 0, 0, 1], sample_weight=[1, 1, 1, 1, 0])
    assert split.rows == (2, 2)
    assert split.sides.tolist() == [True, False, False, True, True]
    assert split.covariance == pytest.approx(0.25)


def test_fair_rule_has_a_hidden_split():
    data = fairramp.datasets.load_adult_scores()
    rule = fairramp.fit_rule(data.score, data.sex, ramp_width=0)
    decisions = rule.decide(data.score, data.sex, random_state=0)
    women = data.sex == "Female"
    assert abs(np.cov(decisions, women, bias=True)[0, 1]) < 0.002  # equal up to the random draws
    split = hidden_split(decisions, women)
    assert split.covariance > split.bound > 0.03
    found = 0.0
    for side in (split.sides, ~split.sides):
        found += side.mean() * abs(np.cov(decisions[side], women[side], bias=True)[0, 1])
    assert split.covariance == pytest.approx(found)


def test_shows_as_a_short_paragraph_and_as_a_table():
    split = hidden_split([1, 0, 1, 0], [1, 1, 0, 0])
    text = " ".join(str(split).split())
    assert text == (
        "Hidden split of 4 rows: the mean covariance of decision and membership within the two sides is 0.2500. "
        "Some split always reaches at least 0.1250, even if all known groups are equal."
    )
    assert max(map(len, str(split).splitlines())) <= 80
    table = split.table()
    assert isinstance(table, Table)
    assert table.columns == ("side", "n", "share", "rate", "covariance")
    assert table["covariance"].tolist() == list(split.covariances)
    assert len(table) == 2


def test_hidden_split_is_immutable():
    split = hidden_split([1, 0], [1, 0])
    assert isinstance(split, HiddenSplit)
    with pytest.raises(AttributeError):
        split.bound = 1.0
    with pytest.raises(ValueError, match="read-only"):
        split.sides[0] = False


def test_every_column_type_gives_the_same_split():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    h, q = [1, 0, 1, 0, 1], [0.9, 0.3, 0.2, 0.4, 0.5]
    expected = hidden_split(h, q)
    for column in (np.array(h, dtype=bool), np.array(h, dtype=np.int8), pandas.Series(h), polars.Series(h)):
        assert hidden_split(column, q).covariance == expected.covariance
    for column in (np.array(q), pandas.Series(q), polars.Series(q)):
        assert hidden_split(h, column).covariance == expected.covariance


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ([0, 0.3], [1, 0]),
            r"`decisions` must be 0 or 1, got 0\.3 in row 1; .* use rule\.decide\.",
        ),
        (([0, np.nan], [1, 0]), r"`decisions` must be finite numbers, got nan in row 1\."),
        ((["no", "yes"], [1, 0]), r"`decisions` must be numbers, got text\."),
        (([], []), r"`decisions` is empty; pass at least one row\."),
        ((1, [1]), r"`decisions` must be one column of numbers, got 1\."),
        (([0, 1], [0.5, -0.1]), r"`membership` must be between 0 and 1, got -0\.1 in row 1\."),
        (([0, 1], [0.5, None]), r"`membership` must be numbers, got None in row 1\."),
        (([0, 1], ["f", "m"]), r"`membership` must be numbers, got text\."),
        (([0, 1], [0.5]), r"`membership` has 1 rows but `decisions` has 2; the lengths must match\."),
        (([0, 1], [[0.5, 0.5]]), r"`membership` must be one column of numbers, got shape \(1, 2\)\."),
    ],
)
def test_bad_input_raises(arguments, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        hidden_split(*arguments)


def test_bad_weights_raise():
    with pytest.raises(
        InputError, match=r"^`sample_weight` has 3 rows but `decisions` has 2; the lengths must match\.$"
    ):
        hidden_split([0, 1], [0, 1], sample_weight=[1, 1, 1])
    with pytest.raises(InputError, match=r"not negative, got -1\.0 in row 0"):
        hidden_split([0, 1], [0, 1], sample_weight=[-1, 1])
    with pytest.raises(InputError, match="zero in every row"):
        hidden_split([0, 1], [0, 1], sample_weight=[0, 0])
