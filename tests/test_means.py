"""Sums over rows and points: compared with the formulas, written plainly for each group."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairramp import InputError, Ramp, Rule, audit
from fairramp.core.scales import SCALES
from fairramp.data.sample import Sample
from fairramp.measure import means
from fairramp.measure.means import Sums, are_decisions, mean_chances, tally_rows

NAMES = ("rate", "accuracy", "true_positive_rate", "false_positive_rate", "precision")


def naive(w, h, y):
    """Rates, errors and effective rows of one group."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = (w * h).sum() / w.sum()
        right = h * y + (1 - h) * (1 - y)
        spread = (w**2 * (h - rate) ** 2).sum() / w.sum() ** 2
        by_weight = w.sum() ** 2 / (w**2).sum()
        usable = 1e-12 < rate < 1 - 1e-12 and spread > 1e-12 / by_weight
        return {
            "rate": rate,
            "accuracy": (w * right).sum() / w.sum(),
            "true_positive_rate": (w * h * y).sum() / (w * y).sum(),
            "false_positive_rate": (w * h * (1 - y)).sum() / (w * (1 - y)).sum(),
            "precision": (w * h * y).sum() / (w * h).sum(),
            "effective_rows": min(rate * (1 - rate) / spread, by_weight) if usable else by_weight,
        }


def assert_tally(tally, w, h, y, group, present):
    """A tally of decisions has the sums of the formulas."""
    for i, k in enumerate(present):
        of = group == k
        for label in (None, 0, 1):
            rows = of if label is None else of & (y == label)
            part = tally.of(label)
            assert part.rows.sum(axis=0)[i] == rows.sum()
            if not rows.any():
                assert np.isnan(part.rates[i])
                continue
            expected = naive(w[rows], h[rows], y[rows])
            assert part.rates[i] == pytest.approx(expected["rate"], rel=1e-12, abs=1e-15)
            assert part.effective_rows[i] == pytest.approx(expected["effective_rows"], rel=1e-9)
        for label in (0, 1):
            one = of & (y == label)
            assert tally.yes[label, i] == pytest.approx((w * h)[one].sum(), rel=1e-12, abs=1e-300)
            assert tally.no[label, i] == pytest.approx((w * (1 - h))[one].sum(), rel=1e-12, abs=1e-300)


@st.composite
def labeled_rows(draw):
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    group = rng.integers(0, draw(st.integers(1, 7)), n)
    x = rng.random(n)
    x = np.round(x, draw(st.sampled_from([0, 1, 3]))) if draw(st.booleans()) else x
    w = rng.lognormal(0, draw(st.sampled_from([0.1, 3.0])), n) if draw(st.booleans()) else None
    return x, group, (rng.random(n) < x).astype(draw(st.sampled_from([int, float, bool, np.int8]))), w


@given(
    rows=labeled_rows(),
    cutoff=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    width=st.sampled_from([0.0, 0.1, 0.5, 5.0]),
    piece=st.sampled_from([1, 7, 1 << 16]),
)
def test_tallies_equal_the_formulas(rows, cutoff, width, piece):
    x, group, y, w = rows
    rule = Rule(tuple(range(7)), tuple(Ramp(k / 9 - 0.2, width, k / 6) for k in range(7)))
    sample = Sample.of_arrays(x, group, y, scale=SCALES["probability"], sample_weight=w)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(means, "_PIECE", piece)
        patch.setattr("fairramp.core.blocks.BLOCK", 16)
        found = tally_rows(sample, cutoff=cutoff, rule=rule)
        alone, decisions = tally_rows(sample, cutoff=cutoff), are_decisions(sample, cutoff)
    present, y = np.unique(group), np.asarray(y, dtype=float)
    v = np.ones(len(x)) if w is None else w
    own, h = (x >= cutoff).astype(float), rule.probabilities(x, group)
    assert decisions == np.array_equal(own, x)
    assert found.groups == tuple(present.tolist())
    assert found.rows.tolist() == np.bincount(group)[present].tolist()
    assert found.counts.tolist() == np.bincount(group, minlength=len(found.counts)).tolist()
    assert alone.after is None
    for tally in (found.own, alone.own):
        assert_tally(tally, v, own, y, group, present)
    assert_tally(found.after, v, h, y, group, present)
    for i, k in enumerate(present):
        of, total = group == k, v[group == k].sum()
        more, less = np.maximum(h - own, 0)[of], np.maximum(own - h, 0)[of]
        assert found.changed_to_yes[i] == pytest.approx((v[of] * more).sum() / total, rel=1e-12, abs=1e-15)
        assert found.changed_to_no[i] == pytest.approx((v[of] * less).sum() / total, rel=1e-12, abs=1e-15)
    assert found.randomized == pytest.approx((v * ((h > 0) & (h < 1))).sum() / v.sum(), rel=1e-12)
    # The same rows as points.
    points = Sums(np.searchsorted(present, group), v, len(present), v**2, np.ones(len(x), dtype=int))
    assert_tally(points.tally(h, y), v, h, y, group, present)
    np.testing.assert_allclose(points.tally(h, None).rates, found.after.rates, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(points.mean(h), found.after.rates, rtol=1e-12, atol=1e-15)
    assert points.overall(h) == pytest.approx((v * h).sum() / v.sum())
    # Checks apply the same rule.
    seen = mean_chances(rule, x, group, None, sample_weight=w)
    assert (seen.groups, seen.rows) == (found.groups, tuple(found.rows.tolist()))
    np.testing.assert_allclose(seen.rates, found.after.rates, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(seen.effective_rows, found.after.effective_rows, rtol=1e-9)


@given(labeled_rows())
def test_audit_gives_the_naive_errors_and_nan_where_they_are_undefined(rows):
    x, group, y, w = rows
    found = audit(x, group, y, sample_weight=w)
    v = np.ones(len(x)) if w is None else w
    for i, k in enumerate(found.groups):
        of = group == k
        expected = naive(v[of], (x[of] >= 0.5).astype(float), np.asarray(y, dtype=float)[of])
        for name in NAMES:
            np.testing.assert_allclose(getattr(found.before, name)[i], expected[name], rtol=1e-12, err_msg=name)


def test_many_groups_need_wider_class_numbers():
    rng = np.random.default_rng(4)
    for n_groups in (22, 3_000, 70_000):  # 12 classes each: more than 8 bits, almost and more than 16
        group, x = np.arange(2 * n_groups) % n_groups, rng.random(2 * n_groups)
        rule = Rule(tuple(range(n_groups)), (Ramp(0.4, 0.3),) * n_groups)
        sample = Sample.of_arrays(x, group, x > 0.3, scale=SCALES["probability"])
        found = tally_rows(sample, cutoff=0.5, rule=rule)
        h = Ramp(0.4, 0.3).chance(x).reshape(2, n_groups)
        np.testing.assert_allclose(found.after.rates, h.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(found.own.rates, (x >= 0.5).reshape(2, n_groups).mean(axis=0), rtol=1e-12)
        assert (found.rows == 2).all()


def test_huge_and_tiny_weights_do_not_overflow():
    x, group, y = np.array([0.2, 0.8, 0.2, 0.8]), [0, 0, 1, 1], [0, 1, 1, 0]
    plain = audit(x, group, y)
    for factors in (1e300, 1e-300, [1e80, 1e80, 1e-60, 1e-60]):
        found = audit(x, group, y, sample_weight=np.full(4, 1.0) * factors)
        np.testing.assert_allclose(found.before.rate, plain.before.rate)
        np.testing.assert_allclose(found.before.accuracy, plain.before.accuracy)
        np.testing.assert_allclose(found.before.lower, plain.before.lower)


@pytest.mark.parametrize("kind", [int, float, np.int8, np.uint16, np.float32, ">i4", object])
def test_labels_of_every_type_are_checked_and_used_as_they_are(kind):
    x, group, y = np.array([0.2, 0.8, 0.6, 0.7]), [0, 0, 1, 1], np.array([0, 1, 0, 1])
    expected = audit(x, group, y.astype(bool))
    assert audit(x, group, y.astype(kind)).to_dict() == expected.to_dict()
    for wrong in (2, 100):
        with pytest.raises(InputError, match=rf"`labels` must be 0 or 1, got {wrong}\.0 in row 2"):
            audit(x, group, np.array([0, 1, wrong, 1]).astype(kind))


def test_labels_are_not_copied():
    labels = np.array([0, 1, 1])
    sample = Sample.of_arrays([0.1, 0.2, 0.3], [0, 0, 0], labels, scale=SCALES["probability"])
    assert sample.labels is labels
    assert sample.outcomes.dtype == np.float64
    assert sample.outcomes.tolist() == [0.0, 1.0, 1.0]
