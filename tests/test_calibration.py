"""Calibration errors: sorted rows against the definition, bins against sorted rows, both against the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from fairramp import audit
from fairramp.core.scales import SCALES
from fairramp.data.sample import Sample
from fairramp.measure import calibration
from fairramp.measure.calibration import calibration_errors


def by_definition(x, y, w, folds=5):
    """The calibration error of one group, with scikit-learn's isotonic regression."""
    fold = np.arange(len(x)) % min(folds, len(x))
    off = 0.0
    for f in range(fold.max() + 1 if len(x) > 1 else 0):
        held_out = fold == f
        m = IsotonicRegression(out_of_bounds="clip").fit(x[~held_out], y[~held_out], w[~held_out])
        at = x[held_out]
        away = m.predict(at) - at
        away[np.abs(away) < 1e-12] = 0.0
        off += (w[held_out] * (y[held_out] - at)) @ np.sign(away)
    return max(off / w.sum(), 0.0)


def errors(x, group, y, weights=None, sorted_rows=None):
    """Calibration errors, with another limit up to which rows are sorted."""
    sample = Sample.of_arrays(x, group, y, scale=SCALES["probability"], sample_weight=weights)
    counts = np.bincount(sample.cells.block(0, len(sample)), minlength=len(sample.cells.labels))
    with pytest.MonkeyPatch.context() as patch:
        if sorted_rows is not None:
            patch.setattr(calibration, "SORTED_ROWS", sorted_rows)
        return calibration_errors(sample, counts)


def drawn(probabilities, seed=0):
    return (np.random.default_rng(seed).random(len(probabilities)) < probabilities).astype(float)


@given(st.integers(0, 10**6), st.integers(1, 80), st.booleans())
def test_small_groups_follow_the_definition(seed, n, weighted):
    rng = np.random.default_rng(seed)
    group = np.sort(rng.integers(0, 3, n)) if seed % 2 else rng.integers(0, 3, n)
    x, w = np.sort(rng.random(n)) if seed % 3 else rng.random(n), rng.lognormal(size=n)
    w = w if weighted else np.ones(n)
    y = drawn(x**2, seed)
    found = errors(x, group, y, w if weighted else None)
    expected = [by_definition(*(column[group == k] for column in (x, y, w))) for k in np.unique(group)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(st.integers(0, 10**6), st.sampled_from([8, 64, 1000]), st.booleans())
def test_one_score_per_bin_gives_the_sum_of_the_definition_whatever_the_folds(seed, n_scores, weighted):
    # Far from calibrated, so that all folds agree on the sign: then the folds do not matter.
    rng = np.random.default_rng(seed)
    score = rng.choice(np.arange(n_scores + 1), 4000) / n_scores
    true = np.where(score < 0.5, 0.9, 0.95)
    x, y, w = 0.45 * score, drawn(true, seed), rng.lognormal(size=4000) if weighted else np.ones(4000)
    found = errors(x, np.zeros(4000, dtype=int), y, w if weighted else None, sorted_rows=0)
    np.testing.assert_allclose(found, [(w * (y - x)).sum() / w.sum()], rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "true",
    [lambda x: x, lambda x: np.clip(x + 0.1, 0, 1), lambda x: x**2, lambda x: 0.5 + 0.5 * (x - 0.5)],
    ids=["calibrated", "shifted", "squared", "too sure"],
)
def test_bins_agree_with_sorted_rows(true, weighted):
    n = 60_000
    rng = np.random.default_rng(5)
    x, group = rng.beta(1.5, 3.0, n), rng.integers(0, 3, n)
    y, w = drawn(true(x), 6), rng.lognormal(0, 0.5, n) if weighted else None
    exact, binned = errors(x, group, y, w, sorted_rows=n), errors(x, group, y, w)
    # Different folds and bins: at most a few standard errors of a mean of 20,000 residuals.
    np.testing.assert_allclose(binned, exact, atol=0.006)
    truth = np.average(np.abs(true(x) - x), weights=w)
    np.testing.assert_allclose(binned, truth, atol=0.012)


@pytest.mark.parametrize("n", [5_000, 100_000, 600_000])
def test_calibrated_scores_in_bins_have_almost_no_error(n):
    x = np.random.default_rng(7).beta(2, 2, n)
    found = errors(x, np.zeros(n, dtype=int), drawn(x, 8))
    assert found[0] < 3 * np.sqrt(0.25 / n)


def test_the_error_of_rare_events_is_not_lost_in_one_bin():
    # All scores are below 1/400, and too high or too low by half of themselves.
    n = 400_000
    x = np.random.default_rng(9).uniform(0.0, 0.0025, n)
    true = np.where(x < 0.00125, 0.5 * x, 1.5 * x)
    y = drawn(true, 10)
    found, exact = (errors(x, np.zeros(n, dtype=int), y, sorted_rows=rows) for rows in (None, n))
    # The standard error is 0.00006.
    assert found[0] == pytest.approx(np.abs(true - x).mean(), abs=0.0002)
    assert found[0] == pytest.approx(exact[0], abs=0.00015)


def test_crowded_scores_keep_their_own_bins():
    # Two scores closer than any equal bin, off in opposite directions, with half of the rows each.
    n = 20_000
    x = np.where(np.arange(n) % 3 == 0, 0.4, 0.4 + 1e-9)
    y = drawn(np.where(x == 0.4, 0.1, 0.9), 11)
    found = errors(x, np.zeros(n, dtype=int), y)
    np.testing.assert_allclose(found, [np.abs(np.where(x == 0.4, 0.1, 0.9) - x).mean()], atol=0.01)


def test_small_and_large_groups_are_measured_side_by_side():
    rng = np.random.default_rng(12)
    group = np.concatenate([np.repeat([0, 5], 9_000), np.repeat([2, 3, 7], [1, 40, 4_000])])
    rng.shuffle(group)
    x = rng.random(len(group))
    y = drawn(np.clip(x + 0.2, 0, 1), 13)
    found = errors(x, group, y)
    for i, k in enumerate((0, 2, 3, 5, 7)):
        of = group == k
        if of.sum() <= 4_096:
            assert found[i] == pytest.approx(by_definition(x[of], y[of], np.ones(of.sum())), abs=1e-12)
        else:
            assert found[i] == pytest.approx(0.18, abs=0.02)
    assert audit(x, group, y).calibration_error == tuple(found.tolist())


def test_every_fold_has_rows_however_groups_alternate():
    n = 60_000
    x = np.random.default_rng(14).random(n)
    y = drawn(np.clip(x + 0.3, 0, 1), 15)
    for n_groups in (2, 4, 5, 10):
        found = errors(x, np.arange(n) % n_groups, y)
        np.testing.assert_allclose(found, 0.3 - 0.045, atol=0.02)
    # Even if a group has no row in one of the folds, the others confirm nothing there.
    assert errors(x[:1], [0], y[:1], sorted_rows=0) == [0.0]


def test_bins_are_the_same_for_every_number_of_threads(monkeypatch):
    n = 300_000
    x = np.random.default_rng(16).random(n)
    y, group = drawn(x**2, 17), np.arange(n) % 3
    found = []
    for cores in (1, 3):
        monkeypatch.setattr("fairramp.core.blocks.CORES", cores)
        found.append(errors(x, group, y).tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("scale", ["signed", "percent", "logit"])
def test_bins_are_the_same_on_every_scale(scale):
    n = 10_000
    x = np.random.default_rng(18).integers(1, 256, n) / 256
    y, group = drawn(x**2, 19), np.zeros(n, dtype=int)
    scores = {"signed": 2 * x - 1, "percent": 100 * x, "logit": np.log(x / (1 - x))}[scale]
    expected = audit(x, group, y).calibration_error
    np.testing.assert_allclose(audit(scores, group, y, scale=scale).calibration_error, expected, atol=1e-3)
