"""The paper's bounds match the printed formulas and hold where this can be computed."""

import doctest
import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairramp import InputError, bounds
from fairramp.measure.bounds import impossibility_bound, proposition_1_bound, theorem_1_bound, theorem_2_bound


def test_theorem_1_grows_with_gap_groups_and_confidence_and_falls_with_rows():
    here = theorem_1_bound(1000, 3, 0.02, 0.05)
    assert theorem_1_bound(1000, 3, 0.03, 0.05) == pytest.approx(here + 0.01)
    assert theorem_1_bound(1000, 4, 0.02, 0.05) > here
    assert theorem_1_bound(1000, 3, 0.02, 0.01) > here
    assert theorem_1_bound(2000, 3, 0.02, 0.05) < here
    assert theorem_1_bound(4 * 10**12, 3, 0.02, 0.05) == pytest.approx(0.02, abs=1e-4)


def test_theorem_1_accepts_effective_rows_rounded_just_below_one():
    assert theorem_1_bound(1 - 1e-15, 2, 0.0, 0.05) == pytest.approx(theorem_1_bound(1, 2, 0.0, 0.05))


def test_theorem_2_is_minimized_by_an_intermediate_ramp_width():
    found = [theorem_2_bound(10**9, 2, width, 0.0, 0.05) for width in (0.001, 0.03, 1.0)]
    assert found[1] < min(found[0], found[2])
    assert theorem_2_bound(10**9, 2, 0.03, 0.25, 0.05) == pytest.approx(found[1] + 0.25)


def test_proposition_1_by_hand():
    # (1 + 0.3 + 0.1)² · 0.01 + (0.6² + 0.8²) / (2 · 500 · 0.01)
    assert proposition_1_bound(0.3, 0.1, 0.01, 500, [0.6, -0.8]) == pytest.approx(1.96 * 0.01 + 1 / 10)


def test_proposition_1_is_smallest_at_the_documented_learning_rate():
    norm, scale, steps = math.hypot(0.3, 0.4), 1 + 0.2 + 0.02, 1000
    best = norm / (scale * math.sqrt(2 * steps))
    smallest = proposition_1_bound(0.2, 0.02, best, steps, [0.3, -0.4])
    assert smallest == pytest.approx(math.sqrt(2) * scale * norm / math.sqrt(steps))
    for factor in (0.9, 1.1):
        assert proposition_1_bound(0.2, 0.02, factor * best, steps, [0.3, -0.4]) > smallest


@pytest.mark.parametrize(("rate", "gap"), [(0.25, 0.0), (0.25, 0.2), (0.9, 0.1)])
@pytest.mark.parametrize("alpha", [0.02, 0.2])
def test_the_published_algorithm_satisfies_proposition_1(rate, gap, alpha):
    """E F(λ̄, μ̄) − F* over many runs, on two groups with a few scores each, in plain NumPy."""
    gamma, steps, runs = 0.2, 300, 400
    scores = np.array([[-0.8, -0.3, 0.1, 0.6], [-0.2, 0.3, 0.5, 0.9]])

    def xi(w):  # ξ' = clip(w/γ, 0, 1)
        return np.where(w <= 0, 0.0, np.where(w <= gamma, w**2 / (2 * gamma), w - gamma / 2))

    def dual(up, down):  # of one or many (λ, μ) per group; the mean over rows, groups of equal size
        t = (up - down)[..., None]
        inner = xi(scores - t).mean(axis=-1)
        return (gap / 2 * (up + down) + rate * (up - down) + inner).mean(axis=-1)

    # With λ μ = 0 each group's optimum is one number, found on a fine grid.
    t = np.linspace(-2, 2, 40_001)
    inner = np.stack([xi(f[:, None] - t).mean(axis=0) for f in scores])
    best = t[np.argmin(gap / 2 * np.abs(t) + rate * t + inner, axis=1)]
    optimum = dual(np.maximum(best, 0), np.maximum(-best, 0))

    rng = np.random.default_rng(0)
    up, down = np.zeros((runs, 2)), np.zeros((runs, 2))
    sum_up, sum_down = np.zeros((runs, 2)), np.zeros((runs, 2))
    every = np.arange(runs)
    for _ in range(steps):
        sum_up, sum_down = sum_up + up, sum_down + down
        k, i = rng.integers(0, 2, runs), rng.integers(0, 4, runs)
        g = np.clip((scores[k, i] - up[every, k] + down[every, k]) / gamma, 0, 1)
        up[every, k] = np.maximum(up[every, k] - alpha * (gap / 2 + rate - g), 0)
        down[every, k] = np.maximum(down[every, k] - alpha * (gap / 2 - rate + g), 0)
    excess = dual(sum_up / steps, sum_down / steps).mean() - optimum
    assert 0 < excess <= proposition_1_bound(rate, gap, alpha, steps, best)


def impossibility_by_hand(membership, decisions, weights):
    total = sum(map(Fraction, weights))
    mean_q = sum(Fraction(w) * Fraction(q) for w, q in zip(weights, membership, strict=True)) / total
    mean_h = sum(Fraction(w) * h for w, h in zip(weights, decisions, strict=True)) / total
    spread = (
        sum(Fraction(w) * abs(Fraction(q) - mean_q) for w, q in zip(weights, membership, strict=True)) / total
    )
    return float(spread * min(mean_h, 1 - mean_h) / 2)


ROW = st.tuples(st.floats(0, 1), st.integers(0, 1), st.floats(0.01, 100))


@given(st.lists(ROW, min_size=1, max_size=30))
def test_impossibility_bound_in_exact_fractions(rows):
    membership, decisions, weights = zip(*rows, strict=True)
    expected = impossibility_by_hand(membership, decisions, weights)
    assert impossibility_bound(decisions, membership, sample_weight=weights) == pytest.approx(expected, abs=1e-13)


@given(st.lists(ROW, min_size=1, max_size=30))
def test_impossibility_bound_never_exceeds_an_eighth(rows):
    # E|q − q̄| ≤ ½ and min{E h, 1 − E h} ≤ ½
    membership, decisions, weights = zip(*rows, strict=True)
    assert 0 <= impossibility_bound(decisions, membership, sample_weight=weights) <= 1 / 8 + 1e-12


def test_huge_and_tiny_weights_work():
    expected = impossibility_bound([0, 1, 1], [0.2, 0.4, 0.9], sample_weight=[1, 2, 1])
    for unit in (1e307, 1e-307):
        found = impossibility_bound([0, 1, 1], [0.2, 0.4, 0.9], sample_weight=[unit, 2 * unit, unit])
        assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theorem_1_bound(0, 2, 0.0, 0.05), r"`n_rows` must be a finite number of at least 1, got 0\."),
        (lambda: theorem_1_bound(math.inf, 2, 0.0, 0.05), r"`n_rows` must be .* got inf\."),
        (lambda: theorem_1_bound(True, 2, 0.0, 0.05), r"`n_rows` must be .* got True\."),
        (lambda: theorem_1_bound(10, 2.5, 0.0, 0.05), r"`n_groups` must be a positive integer, got 2\.5\."),
        (lambda: theorem_1_bound(10, 0, 0.0, 0.05), r"`n_groups` must be a positive integer, got 0\."),
        (
            lambda: theorem_1_bound(10, 2, -0.1, 0.05),
            r"`max_gap` must be between 0 and 1, got -0\.1; 2 percentage points are 0\.02\.",
        ),
        (lambda: theorem_1_bound(10, 2, 0.0, 0.0), r"`delta` must be a number between 0 and 1, got 0\.0\."),
        (lambda: theorem_1_bound(10, 2, 0.0, math.nan), r"`delta` must be .* got nan\."),
        (lambda: theorem_2_bound(10, 2, 0.0, 0.0, 0.05), r"`ramp_width` must be a positive number, got 0\.0\."),
        (lambda: theorem_2_bound(10, 2, 0.1, 3.0, 0.05), r"`miscalibration` must be between 0 and 2, got 3\.0\."),
        (
            lambda: proposition_1_bound(2, 0, 0.1, 9, [0]),
            r"`target_rate` must be between 0 and 1, got 2; for 2%, pass 0\.02\.",
        ),
        (
            lambda: proposition_1_bound(0.2, 7, 0.1, 9, [0]),
            r"`max_gap` must be between 0 and 1, got 7; 7 percentage points are 0\.07\.",
        ),
        (lambda: proposition_1_bound(0.2, 0, 0, 9, [0]), r"`learning_rate` must be a positive number, got 0\."),
        (lambda: proposition_1_bound(0.2, 0, 0.1, 9.0, [0]), r"`steps` must be a positive integer, got 9\.0\."),
        (lambda: proposition_1_bound(0.2, 0, 0.1, 9, 0.4), r"`multipliers` must be one column .* got 0\.4\."),
        (
            lambda: proposition_1_bound(0.2, 0, 0.1, 9, [[1]]),
            r"`multipliers` must be one column .* \(1, 1\); .*ravel\(multipliers\)\.",
        ),
        (lambda: proposition_1_bound(0.2, 0, 0.1, 9, []), r"`multipliers` is empty; pass at least one row\."),
        (lambda: proposition_1_bound(0.2, 0, 0.1, 9, [0, math.inf]), r"`multipliers` .* got inf in row 1\."),
        (
            lambda: impossibility_bound([0, 1], [0.5, 1.5]),
            r"`membership` must be between 0 and 1, got 1\.5 in row 1\.",
        ),
        (
            lambda: impossibility_bound([0, 1], [0.5]),
            r"`membership` has 1 rows but `decisions` has 2; the lengths must match\.",
        ),
        (
            lambda: impossibility_bound([0, 2], [0.5, 1]),
            r"`decisions` must be 0 or 1, got 2\.0 in row 1; .*decide\.",
        ),
    ],
)
def test_invalid_arguments_raise_with_one_sentence(call, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        call()


@pytest.mark.parametrize("name", bounds.__all__)
def test_every_bound_has_an_example(name):
    assert doctest.DocTestParser().get_examples(inspect.getdoc(getattr(bounds, name)))
