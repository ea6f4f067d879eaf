"""Small groups that borrow: the formula, invariants, other tables, errors, and new rows."""

import duckdb
import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import fairramp
from fairramp import InputError, RandomizedThresholdOptimizer, Rule, fit_frame, fit_rule, fit_summary
from fairramp.datasets import load_adult_scores
from fairramp.fit.borrow import MOST_BORROWED
from samples import gap, quiet_fit, rates

SIZES = (700, 200, 60, 25, 9)


def uneven(seed=0, sizes=SIZES, spread=0.4):
    """Groups of different sizes whose logits differ in their means."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    scores = expit(rng.normal(-0.8 + spread * rng.normal(size=len(sizes))[groups], 1.2))
    return scores, groups


def borrowing(*args, **kwargs):
    return quiet_fit(*args, small_groups="borrow", **kwargs)


# The formula, by rows -----------------------------------------------------------------------------


def pseudo_rows(x, k):
    """Quantiles of the other groups' residuals around each group's shrunken mean logit."""
    n_groups = k.max() + 1
    z, n = logit(np.clip(x, 1e-4, 1 - 1e-4)), np.bincount(k).astype(float)
    mean = np.array([z[k == j].mean() for j in range(n_groups)])
    residual = z - mean[k]
    variance = (residual**2).sum() / (len(x) - n_groups)
    w = n / variance
    q = (w * (mean - np.average(mean, weights=n)) ** 2).sum()
    between = max((q - (n_groups - 1)) / (w.sum() - (w**2).sum() / w.sum()), 1e-6)
    center = np.average(mean, weights=1 / (between + variance / n))
    shrink = (variance / n) / (variance / n + between)
    at = center + (1 - shrink) * (mean - center)
    scaled = residual * np.sqrt(n / np.maximum(n - 1, 1))[k]
    found = []
    for j in range(n_groups):
        others = (k != j) & (n >= 10)[k]
        lent = scaled[others] if others.sum() >= 50 else scaled
        found.append(expit(at[j] + np.quantile(lent, (np.arange(300) + 0.5) / 300)))
    return found


def worth(x, k, rate, pseudo):
    """Number of rows that a group's pseudo-rows count as."""
    n = np.bincount(k).astype(float)
    num = den = 0.0

    def noise(r):
        return max(r * (1 - r) - norm.pdf(norm.ppf(r)) ** 2, 0.05 * r * (1 - r))

    for r in {min(max(v, 0.02), 0.98) for v in (rate, rate - 0.1, rate + 0.1)}:
        above = [np.mean(x[k == j] >= np.quantile(pseudo[j], 1 - r)) for j in range(len(n))]
        unit = 4 * r * (1 - r)
        w = 1 / (noise(r) / n / unit + 0.05**2) ** 2
        num += (w * ((np.array(above) - r) ** 2 - noise(r) / n) / unit).sum()
        den += w.sum()
    rate = min(max(rate, 0.02), 0.98)
    return min(noise(rate) / (max(num / den, 1e-9) * 4 * rate * (1 - rate)), 50.0)


def with_pseudo_rows(x, k, rate):
    """Scores, groups and weights of real rows and pseudo-rows, and the pseudo-rows' share of each group."""
    pseudo, n = pseudo_rows(x, k), np.bincount(k).astype(float)
    b = worth(x, k, rate, pseudo)
    groups = np.repeat(np.arange(len(n)), 300)
    weights = np.concatenate([(n / (n + b))[k], (b * n / (n + b) / 300)[groups]])
    return (np.concatenate([x, *pseudo]), np.concatenate([k, groups]), weights), b / (n + b)


@pytest.mark.parametrize(
    "options", [{}, {"max_gap": 0.02}, {"target_rate": 0.3}, {"ramp_width": 0}, {"ramp": "paper"}]
)
@pytest.mark.parametrize("seed", range(3))
def test_ramps_match_the_exact_solver_with_pseudo_rows(seed, options):
    scores, groups = uneven(seed)
    rule = borrowing(scores, groups, **options)
    (x, k, w), shares = with_pseudo_rows(scores, groups, quiet_fit(scores, groups, **options).target_rate)
    expected = quiet_fit(x, k, sample_weight=w, **options)
    assert rule.record.borrowed == pytest.approx(shares, abs=1e-9)
    assert rule.thresholds == pytest.approx(expected.thresholds, abs=1e-9)
    assert rule.target_rate == pytest.approx(expected.target_rate, abs=1e-9)


def test_the_record_describes_the_real_rows():
    scores, groups = uneven()
    rule, plain = borrowing(scores, groups), quiet_fit(scores, groups)
    h = rule.probabilities(scores, groups)
    seen = rule.record.rates["selection"]
    assert seen.after == pytest.approx(rates(h, groups), abs=1e-12)
    assert rule.record.gap_after == pytest.approx(gap(h, groups), abs=1e-12)
    assert rule.record.gap_after > 0.01 > plain.record.gap_after
    assert seen.rows == SIZES
    assert seen.before == plain.record.rates["selection"].before
    assert rule.record.fingerprint == plain.record.fingerprint
    above = [np.count_nonzero(scores[groups == k] >= ramp.foot + ramp.width) for k, ramp in enumerate(rule.ramps)]
    assert list(seen.rows_above) == above
    certain = (h == 0) | (h == 1)
    alone = [k for k in range(len(SIZES)) if certain[groups == k].all()]
    assert [seen.effective_rows[k] for k in alone] == pytest.approx([SIZES[k] for k in alone])


# Invariants ---------------------------------------------------------------------------------------


def test_pseudo_rows_with_zero_weight_give_the_plain_rule(monkeypatch):
    scores, groups = uneven(1)
    monkeypatch.setattr("fairramp.fit.borrow.MOST_BORROWED", 1e-9)
    rule, plain = borrowing(scores, groups), quiet_fit(scores, groups)
    assert rule.thresholds == pytest.approx(plain.thresholds, abs=1e-6)
    assert rule.record.gap_after == pytest.approx(0, abs=1e-6)
    assert max(rule.record.borrowed) < 1e-9


def test_similar_groups_borrow_more_than_dissimilar_ones():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(4), [4000, 2000, 2000, 100])
    z = rng.normal(-0.5, 1, len(groups))
    alike = borrowing(expit(z), groups).record.borrowed
    assert alike[3] == pytest.approx(MOST_BORROWED / (100 + MOST_BORROWED))
    # Each group has its own shape, so residuals of one group do not fit another.
    odd = np.where(groups % 2 == 0, np.sign(z + 0.5) * 2 + z / 4, z)
    assert borrowing(expit(odd), groups).record.borrowed[3] < 0.1


def test_smaller_groups_borrow_more_and_all_borrow_the_same_number_of_rows():
    scores, groups = uneven(3)
    shares = np.array(borrowing(scores, groups).record.borrowed)
    assert (np.diff(shares) > 0).all()
    b = shares / (1 - shares) * SIZES
    np.testing.assert_allclose(b, b[0], rtol=1e-9)
    assert b[0] <= MOST_BORROWED * (1 + 1e-9)


def test_row_order_and_group_names_do_not_matter():
    scores, groups = uneven(4)
    order = np.random.default_rng(0).permutation(len(scores))
    assert borrowing(scores[order], groups[order]) == borrowing(scores, groups)
    renamed = borrowing(scores, np.array(list("edcba"))[groups])
    assert renamed.thresholds[::-1] == pytest.approx(borrowing(scores, groups).thresholds, abs=1e-9)


def test_label_based_rates_are_chosen_on_the_real_rows():
    scores, groups = uneven(5)
    labels = (np.random.default_rng(5).random(len(scores)) < scores).astype(float)
    plain = quiet_fit(scores, groups, labels, target_rate="accuracy", max_gap=0.04)
    rule = borrowing(scores, groups, labels, target_rate="accuracy", max_gap=0.04)
    assert rule.target_rate == pytest.approx(plain.target_rate, abs=1e-12)
    assert rule.thresholds != plain.thresholds
    # Real rows and pseudo-rows together have the rate of the plain fit.
    (x, k, w), _ = with_pseudo_rows(scores, groups, plain.target_rate)
    wanted = plain.record.rates["selection"].after
    assert rates(rule.probabilities(x, k), k, w) == pytest.approx(wanted, abs=1e-9)


def test_unseen_groups_reach_the_target_rate_on_all_real_rows():
    scores, groups = uneven(6)
    rule = borrowing(scores, groups, unseen_group="pooled")
    together = rule.probabilities(scores, groups + 100)
    assert together.mean() == pytest.approx(rule.target_rate, abs=1e-9)


def test_decisions_within_the_gap_are_unchanged():
    scores, groups = uneven(7)
    rule = borrowing(scores, groups, max_gap=1)
    assert rule == quiet_fit(scores, groups, max_gap=1)
    assert rule.record.borrowed is None


@pytest.mark.parametrize("target", [0.0, 1.0])
def test_extreme_targets_work(target):
    scores, groups = uneven(8)
    rule = borrowing(scores, groups, target_rate=target)
    assert rates(rule.probabilities(scores, groups), groups) == pytest.approx([target] * 5, abs=0.05)


def test_borrowing_is_off_by_default():
    scores, groups = uneven()
    assert quiet_fit(scores, groups, small_groups="alone") == quiet_fit(scores, groups)
    assert quiet_fit(scores, groups).record.borrowed is None
    assert "borrowed" not in quiet_fit(scores, groups).to_json()


# Other tables -------------------------------------------------------------------------------------


def closely(rule, other, tolerance=1e-9):
    assert rule.thresholds == pytest.approx(other.thresholds, abs=tolerance)
    assert rule.record.borrowed == pytest.approx(other.record.borrowed, abs=tolerance)
    mine, theirs = rule.record.rates["selection"], other.record.rates["selection"]
    assert mine.after == pytest.approx(theirs.after, abs=tolerance)
    assert mine.rows_above == theirs.rows_above


@pytest.mark.parametrize("looked_into", [1 << 16, 0])
def test_binned_rows_give_the_sorted_rule(binned, monkeypatch, looked_into):
    # With too many rows to open the bins, their means are nearly as good.
    scores, groups = uneven(9)
    monkeypatch.setattr("fairramp.fit.borrow.LOOKED_INTO", looked_into)
    coarse = borrowing(scores, groups, unseen_group="pooled")
    monkeypatch.setattr("fairramp.data.rows.SORTED_ROWS", 10**6)
    closely(coarse, borrowing(scores, groups, unseen_group="pooled"), 1e-9 if looked_into else 0.01)


@pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")
@pytest.mark.parametrize("n", [2_000, 40_000])
def test_lazy_tables_give_the_same_rule_as_arrays(n):
    adult = load_adult_scores()
    rows = np.random.default_rng(n).integers(0, len(adult.score), n)
    frame = pl.DataFrame({"score": adult.score[rows], "race": adult.race[rows]})
    expected = fit_frame(frame, score="score", group="race", small_groups="borrow")
    relation = duckdb.connect().from_arrow(frame.to_arrow())
    for table in (frame.lazy(), relation):
        closely(fit_frame(table, score="score", group="race", small_groups="borrow"), expected)


@pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")
def test_a_summary_gives_nearly_the_same_rule_as_its_rows():
    scores, groups = uneven(10, (3000, 600, 100))
    summary = fairramp.summarize(scores, groups)
    rule, expected = fit_summary(summary, small_groups="borrow"), borrowing(scores, groups)
    assert rule.thresholds == pytest.approx(expected.thresholds, abs=0.01)
    assert rule.record.borrowed == pytest.approx(expected.record.borrowed, abs=0.03)
    found = rates(rule.probabilities(scores, groups), groups)
    seen = rule.record.rates["selection"]
    assert (np.abs(found - seen.after) <= np.array(seen.error) + 1e-9).all()


@pytest.mark.parametrize(("scale", "change"), [("percent", lambda x: 100 * x), ("logit", logit)])
def test_the_rule_is_the_same_on_every_scale(scale, change):
    scores, groups = uneven(11)
    other = borrowing(change(scores), groups, scale=scale)
    feet = [[ramp.foot for ramp in rule.ramps] for rule in (other, borrowing(scores, groups))]
    assert feet[0] == pytest.approx(feet[1], abs=1e-9)


@pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")
def test_the_estimator_forwards_small_groups():
    rng = np.random.default_rng(12)
    groups = np.repeat([0, 1, 2], [500, 60, 20])
    X = rng.normal(size=(len(groups), 2)) + 0.3 * groups[:, None]  # noqa: N806
    model = LogisticRegression().fit(X, X.sum(axis=1) + rng.normal(size=len(X)) > 0)
    fitted = RandomizedThresholdOptimizer(FrozenEstimator(model), target_rate="optimal", small_groups="borrow")
    rule = fitted.fit(X, None, sensitive_features=groups).rule_
    assert rule.ramps == borrowing(model.predict_proba(X)[:, 1], groups).ramps


# Printed and saved --------------------------------------------------------------------------------


def test_borrowing_is_printed_and_saved(tmp_path):
    scores, groups = uneven()
    rule = borrowing(scores, groups)
    assert rule.table().to_dict()["borrowed"] == list(rule.record.borrowed)
    text = " ".join(str(rule).split())
    assert "rates on the fit rows are no longer exactly equal" in text
    assert "a selection rate of about" in text
    rule.save(tmp_path / "rule.json")
    assert Rule.load(tmp_path / "rule.json") == rule


def test_a_record_has_one_share_per_group():
    from dataclasses import replace

    record = borrowing(*uneven()).record
    with pytest.raises(InputError, match='"borrowed" of the record must have one entry per group'):
        replace(record, borrowed=(0.5,))


@pytest.mark.filterwarnings("ignore::fairramp.FairrampWarning")
def test_a_report_of_weighted_rows_says_that_the_slider_does_not_borrow():
    pytest.importorskip("jinja2")
    from fairramp.show.report.measured import KnownRows

    scores, groups = uneven()
    rule = borrowing(scores, groups)
    plain = KnownRows.of(rule, scores, groups, None, None, None)
    assert plain.settings.borrows
    assert "rates on the fit rows are no longer exactly equal" in plain.notes[0]
    assert "They cannot" not in plain.notes[0]
    weighted = KnownRows.of(rule, scores, groups, None, None, np.ones(len(scores)))
    assert not weighted.settings.borrows
    assert "They cannot with these rows" in weighted.notes[0]
    one_each = [int(np.flatnonzero(groups == k)[0]) for k in range(5)]
    assert not KnownRows.of(rule, scores[one_each], groups[one_each], None, None, None).settings.borrows


# Errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"scale": "signed"},
            "`small_groups='borrow'` requires scores that are probabilities, percentages or logits, got "
            "`scale='signed'`; if (score + 1) / 2 is a probability, pass that.",
        ),
        (
            {"sample_weight": [1, 2, 1, 1]},
            "`small_groups='borrow'` does not support weights; remove one of the two.",
        ),
        (
            {"strata": [1, 1, 2, 2]},
            "`small_groups='borrow'` does not support strata; remove one of the two.",
        ),
        (
            {"solver": "sgd", "target_rate": 0.5},
            "`small_groups='borrow'` requires the exact solver; remove `solver`.",
        ),
        ({"groups": ["a"] * 4}, "`small_groups='borrow'` requires at least two groups, got one; remove it."),
        (
            {"scores": [0.2, 0.2, 0.7, 0.7], "groups": [0, 0, 1, 1]},
            "`small_groups='borrow'` requires scores that differ within groups, got equal ones; remove it.",
        ),
    ],
)
def test_unsupported_combinations_raise(change, sentence):
    rows = {"scores": [0.1, 0.6, 0.3, 0.8], "groups": ["a", "b", "a", "b"]} | change
    with pytest.raises(InputError) as caught:
        fit_rule(rows.pop("scores"), rows.pop("groups"), small_groups="borrow", **rows)
    assert str(caught.value) == sentence


def test_weighted_summaries_and_tables_raise():
    scores, groups = uneven()
    with pytest.raises(InputError, match="does not support weights"):
        fit_summary(fairramp.summarize(scores, groups, sample_weight=scores), small_groups="borrow")
    frame = pl.LazyFrame({"x": scores, "g": groups, "w": scores})
    with pytest.raises(InputError, match="does not support weights"):
        fit_frame(frame, score="x", group="g", weight="w", small_groups="borrow")


# New rows -----------------------------------------------------------------------------------------


def fresh(groups, n, replicates=100):
    """Mean gap and accuracy on rows not used in the fit, without and with borrowing."""
    adult, found = load_adult_scores(), []
    for seed in range(replicates):
        order = np.random.default_rng([17, seed, n]).permutation(len(groups))
        fit, rest = order[:n], order[n:]
        rest = rest[np.isin(groups[rest], groups[fit])]  # a group not in the fit has no rate
        y, row = adult.label[rest], []
        for small_groups in ("alone", "borrow"):
            rule = quiet_fit(adult.score[fit], groups[fit], small_groups=small_groups)
            h = rule.probabilities(adult.score[rest], groups[rest])
            row += [gap(h, groups[rest]), np.mean(h * y + (1 - h) * (1 - y))]
        found.append(row)
    mean = np.mean(found, axis=0)
    print(f"fresh gap {mean[0]:.3f} alone, {mean[2]:.3f} borrowing; accuracy {mean[1]:.4f}, {mean[3]:.4f}")
    return mean


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "n", "most"), [("race", 1_000, 0.7), ("sex and race", 4_000, 0.85), ("sex", 4_000, 1.02)]
)
def test_borrowing_shrinks_the_gap_on_new_rows_of_small_groups(by, n, most):
    adult = load_adult_scores()
    groups = {"race": adult.race, "sex": adult.sex}.get(by, np.char.add(adult.sex, adult.race))
    alone_gap, alone_accuracy, gap_after, accuracy = fresh(groups, n)
    assert gap_after <= most * alone_gap
    assert accuracy >= alone_accuracy
