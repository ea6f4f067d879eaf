"""Fitting with labels: the most accurate rates, compared with linear programming, by hand and with Fairlearn."""

import numpy as np
import polars
import pytest
from scipy.optimize import linprog
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

import fairramp
from fairramp import InputError, fit_rule
from fairramp.core.bands import Gap
from fairramp.core.scales import SCALES
from fairramp.data.sample import Sample
from fairramp.fit.criteria.parity import place_ramps
from fairramp.fit.gains import Costs, GainCurves
from fairramp.fit.outcomes import LabeledScores
from fairramp.fit.problem import ByLabels, Problem
from samples import gap, quiet_fit, rates


def accuracy(h, labels, weights=None):
    """Expected accuracy."""
    return np.average(h * labels + (1 - h) * (1 - labels), weights=weights)


def cost(h, labels, weights, costs):
    """Expected cost of a row; costs of a false positive and of a false negative."""
    return np.average(h * (1 - labels) * costs[0] + (1 - h) * labels * costs[1], weights=weights)


def best_cost(scores, groups, labels, weights, max_gap, costs=(1, 1)):
    """Lowest in-sample cost of decisions monotone in each group's scores, by linear programming.

    One variable per group and score, with h nondecreasing in the score, and two for the ends of the band:
    maximize Σ w (b y − a (1 − y)) h subject to low ≤ rate of group k ≤ high, high − low ≤ max_gap.
    """
    points, place = np.unique(np.column_stack([groups, scores]), axis=0, return_inverse=True)
    place, n = place.ravel(), len(points)
    gain = np.bincount(place, weights * (costs[1] * labels - costs[0] * (1 - labels)), minlength=n)
    weight = np.bincount(place, weights, minlength=n)
    rows, limits = [], []

    def at_most(entries, limit):
        row = np.zeros(n + 2)
        for index, value in entries:
            row[index] += value
        rows.append(row)
        limits.append(limit)

    for i in range(n - 1):
        if points[i, 0] == points[i + 1, 0]:
            at_most([(i, 1), (i + 1, -1)], 0)
    for group in np.unique(points[:, 0]):
        inside = np.flatnonzero(points[:, 0] == group)
        share = weight[inside] / weight[inside].sum()
        at_most([*zip(inside, share, strict=True), (n + 1, -1)], 0)
        at_most([*zip(inside, -share, strict=True), (n, 1)], 0)
    at_most([(n + 1, 1), (n, -1)], max_gap)
    found = linprog(np.append(-gain, [0, 0]), np.array(rows), limits, bounds=(0, 1), method="highs")
    assert found.status == 0
    return (np.sum(weights * labels) * costs[1] + found.fun) / weights.sum()


def tiny(seed):
    """A few rows with ties and labels that disagree with the scores; some seeds have weights."""
    rng = np.random.default_rng(seed)
    n_groups = 2 + seed % 2
    sizes = rng.integers(1, 13, n_groups)
    groups = rng.permutation(np.repeat(np.arange(n_groups), sizes))
    scores = rng.random(len(groups))
    if seed % 3:
        scores = scores.round(seed % 3)
    labels = (rng.random(len(groups)) < rng.choice([scores, 1 - scores, 0.2 + 0 * scores])).astype(float)
    weights = rng.integers(1, 5, len(groups)) * rng.choice([1.0, 0.3]) if seed % 4 > 1 else np.ones(len(groups))
    max_gap = [0.0, float(rng.uniform(0.01, 0.2)), float(rng.uniform(0.2, 0.7))][seed % 5 % 3]
    return scores, groups, labels, weights, max_gap


# The optimum --------------------------------------------------------------------------------------


@pytest.fixture
def isotonic(monkeypatch):
    """Calibrate small groups like large ones."""
    monkeypatch.setattr("fairramp.fit.outcomes.LINE_BELOW", 0)


def blocks(scores, groups, labels, weights):
    """Number the blocks of a group that isotonic regression pools."""
    calibrated = np.empty(len(scores))
    for group in np.unique(groups):
        inside = groups == group
        fit = IsotonicRegression().fit(scores[inside], labels[inside], weights[inside])
        calibrated[inside] = fit.predict(scores[inside])
    return np.unique(np.column_stack([groups, calibrated.round(9)]), axis=0, return_inverse=True)[1].ravel()


def fit_tiny(scores, groups, labels, weights, max_gap, **options):
    options = {"target_rate": "accuracy", "ramp_width": 0} | options
    rule = quiet_fit(scores, groups, labels, max_gap=max_gap, sample_weight=weights, **options)
    return rule.probabilities(scores, groups)


#: Costs of a false positive and of a false negative.
COSTS = [(1, 1), (5, 1), (1, 3), (0, 1), (2, 0), (0.25, 0.75)]


def labeled(scores, groups, labels, weights=None):
    return LabeledScores.of(
        Sample.of_arrays(scores, groups, labels, scale=SCALES["probability"], sample_weight=weights)
    )


@pytest.mark.parametrize("batch", range(8))
def test_rates_are_those_of_the_cheapest_monotone_decisions(batch, isotonic):
    for seed in range(batch * 50, batch * 50 + 50):
        scores, groups, labels, weights, max_gap = tiny(seed)
        costs = COSTS[seed % len(COSTS)]
        found = labeled(scores, groups, labels, weights)
        wanted = GainCurves(found.calibrated, Costs(*costs)).best_rates(Gap(max_gap))
        assert np.ptp(wanted) <= max_gap + 1e-12, seed
        h = np.empty(len(scores))
        for group, rate in enumerate(wanted):
            inside = groups == group
            h[inside] = fit_tiny(scores[inside], groups[inside], None, weights[inside], 0, target_rate=rate)
        # Monotone decisions can give all rows of a block the same probability; one threshold cannot.
        block = blocks(scores, groups, labels, weights)
        spread = (np.bincount(block, weights * h) / np.bincount(block, weights))[block]
        best = best_cost(scores, groups, labels, weights, max_gap, costs)
        assert cost(spread, labels, weights, costs) == pytest.approx(best, abs=1e-8 * sum(costs)), seed


@pytest.mark.parametrize("width", [0.0, 1e-6, 0.01, 0.3])
def test_no_stricter_rule_is_cheaper_on_the_rows(width):
    for seed in range(60):
        scores, groups, labels, weights, max_gap = tiny(seed)
        costs = COSTS[seed % len(COSTS)]
        found, problem = labeled(scores, groups, labels, weights), Problem(Gap(0), ByLabels(), 0.5, width, 0.5)
        h = fit_tiny(scores, groups, labels, weights, max_gap, costs=costs, ramp_width=width)
        assert gap(h, groups, weights) <= max_gap + 1e-9, seed
        curves = GainCurves(found.calibrated, Costs(*costs))
        for j in range(21):
            ramps = place_ramps(found.scores.distribution(), curves.best_rates(Gap(max_gap * j / 20)), problem)
            stricter = cost(ramps.as_arrays.at(scores, groups), labels, weights, costs)
            assert cost(h, labels, weights, costs) <= stricter + 1e-9, seed


def test_balanced_accuracy_is_the_mean_of_both_rates(isotonic):
    scores, groups, labels = miscalibrated()
    labels[::3] = 0
    for max_gap in (0.0, 0.05, 1.0):
        options = {"ramp_width": 0, "max_gap": max_gap}
        h = fit_rule(scores, groups, labels, target_rate="balanced_accuracy", **options).probabilities(
            scores, groups
        )
        share = labels.mean()
        costs = fit_rule(scores, groups, labels, target_rate="accuracy", costs=(share, 1 - share), **options)
        np.testing.assert_array_equal(h, costs.probabilities(scores, groups))
        found = (h[labels == 1].mean() + 1 - h[labels == 0].mean()) / 2
        for a in np.linspace(0, 1, 41):  # thresholds at quantiles of both groups
            cuts = [np.quantile(scores[groups == g], a) for g in range(2)]
            hard = (scores >= np.array(cuts)[groups]).astype(float)
            assert found >= (hard[labels == 1].mean() + 1 - hard[labels == 0].mean()) / 2 - 0.005


@pytest.mark.parametrize(("costs", "who"), [((1, 0), "0: no one"), ((0, 1), "1: everyone")])
def test_nobody_or_everybody_is_selected_if_that_costs_least(costs, who):
    scores, groups, labels = miscalibrated()
    with pytest.warns(
        fairramp.FairrampWarning, match=f"The best equal rate is {who} is selected. If lower scores are better"
    ):
        rule = fit_rule(scores, groups, labels, target_rate="accuracy", costs=costs)
    assert np.ptp(rule.probabilities(scores, groups)) == 0


def test_balanced_accuracy_needs_both_labels():
    with pytest.raises(InputError, match="requires rows with label 0 and rows with label 1"):
        fit_rule([0.2, 0.7] * 40, ["a", "b"] * 40, [1] * 80, target_rate="balanced_accuracy")


@pytest.mark.parametrize(
    "costs", [(1,), (1, 2, 3), (-1, 2), (0, 0), (np.nan, 1), (np.inf, 1), "51", 5, ("5", "1")]
)
def test_invalid_costs_raise(costs):
    with pytest.raises(InputError, match="`costs` must be two numbers"):
        fit_rule([0.2, 0.7] * 40, ["a", "b"] * 40, [1, 0] * 40, target_rate="accuracy", costs=costs)


@pytest.mark.parametrize("target", ["optimal", "balanced_accuracy", "base_rate", 0.3])
def test_costs_need_the_target_accuracy(target):
    with pytest.raises(InputError, match="`costs` requires `target_rate='accuracy'`"):
        fit_rule([0.2, 0.7] * 40, ["a", "b"] * 40, [1, 0] * 40, target_rate=target, costs=(1, 2))


def test_costs_are_recorded_and_only_their_ratio_matters(tmp_path):
    scores, groups, labels = miscalibrated()
    rule, same = (
        fit_rule(scores, groups, labels, target_rate="accuracy", costs=c, max_gap=0.05) for c in ((5, 1), (10, 2))
    )
    assert rule.ramps == same.ramps
    rule.save(tmp_path / "rule.json")
    assert fairramp.Rule.load(tmp_path / "rule.json").record.costs == (5, 1)


@pytest.mark.parametrize("batch", range(4))
def test_no_monotone_rule_is_more_accurate_if_scores_rank_correctly(batch, isotonic):
    for seed in range(batch * 50, batch * 50 + 50):
        scores, groups, _, weights, max_gap = tiny(seed)
        # The share of positives rises with the rank of a score, so isotonic regression changes nothing.
        copies = 20
        rank = np.empty(len(scores))
        for group in np.unique(groups):
            inside = groups == group
            rank[inside] = np.unique(scores[inside], return_inverse=True)[1]
        labels = (np.arange(copies) < np.minimum(rank + 4, copies)[:, None]).astype(float).ravel()
        scores, groups, weights = (np.repeat(v, copies) for v in (scores, groups, weights))
        h = fit_tiny(scores, groups, labels, weights, max_gap)
        best = 1 - best_cost(scores, groups, labels, weights, max_gap)
        assert accuracy(h, labels, weights) == pytest.approx(best, abs=1e-9), seed
        costs = COSTS[seed % len(COSTS)]
        h = fit_tiny(scores, groups, labels, weights, max_gap, costs=costs)
        best = best_cost(scores, groups, labels, weights, max_gap, costs)
        assert cost(h, labels, weights, costs) == pytest.approx(best, abs=1e-9 * sum(costs)), seed


def test_no_pair_of_hard_thresholds_is_more_accurate(isotonic):
    # Brute force over every pair of hard thresholds within the gap.
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], [12, 15])
    scores = rng.random(27)
    labels = (rng.random(27) < scores ** (1 + groups)).astype(float)
    for max_gap in (0.0, 0.1, 0.3):
        h = quiet_fit(
            scores, groups, labels, target_rate="accuracy", ramp_width=0, max_gap=max_gap
        ).probabilities(scores, groups)
        allowed = []
        for a in np.append(scores[groups == 0], 2):
            for b in np.append(scores[groups == 1], 2):
                hard = np.where(groups == 0, scores >= a, scores >= b).astype(float)
                if gap(hard, groups) <= max_gap:
                    allowed.append(accuracy(hard, labels))
        assert accuracy(h, labels) >= max(allowed) - 1e-12


@pytest.mark.parametrize("ramp", ["centered", "paper"])
@pytest.mark.parametrize("ramp_width", [1e-6, 0.01, 0.3])
def test_ramps_have_the_equal_rates_of_hard_thresholds(ramp, ramp_width):
    for seed in range(60):
        scores, groups, labels, weights, _ = tiny(seed)
        options = {"target_rate": "accuracy", "sample_weight": weights, "ramp": ramp}
        rule = quiet_fit(scores, groups, labels, ramp_width=ramp_width, **options)
        hard = quiet_fit(scores, groups, labels, ramp_width=0, **options)
        found, other = (
            rates(rule.probabilities(scores, groups), groups, weights),
            hard.record.rates["selection"].after,
        )
        # A ramp can cost more than a step where nobody or everybody costs less than the ramp.
        if other[0] not in (0, 1) and found[0] not in (0, 1):
            np.testing.assert_allclose(found, other, atol=1e-9, err_msg=str(seed))


def miscalibrated(n=3_000, seed=0, power=(0.5, 2.0)):
    """Scores whose calibration differs between groups."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, len(power), n)
    scores = rng.beta(2 + groups, 3)
    return scores, groups, (rng.random(n) < scores ** np.array(power)[groups]).astype(float)


def test_labels_improve_accuracy_on_miscalibrated_scores():
    scores, groups, labels = miscalibrated()
    blind = fit_rule(scores, groups, ramp_width=0)
    aware = fit_rule(scores, groups, labels, target_rate="accuracy", ramp_width=0)
    better, worse = (accuracy(rule.probabilities(scores, groups), labels) for rule in (aware, blind))
    assert better > worse + 0.01


@pytest.mark.parametrize("max_gap", [0.0, 0.07])
def test_increasing_distortion_of_the_scores_leaves_rates_unchanged(max_gap):
    scores, groups, labels = miscalibrated()
    options = {"target_rate": "accuracy", "max_gap": max_gap, "ramp_width": 0}
    plain = fit_rule(scores, groups, labels, **options)
    bent = np.where(groups == 0, scores**3, expit(2 * logit(scores) - 1))
    distorted = fit_rule(bent, groups, labels, **options)
    assert distorted.record.rates["selection"].after == pytest.approx(
        plain.record.rates["selection"].after, abs=1e-12
    )
    np.testing.assert_allclose(
        distorted.probabilities(bent, groups), plain.probabilities(scores, groups), atol=1e-9
    )


def test_calibration_changes_only_the_rates():
    scores, groups, labels = miscalibrated()
    rule = fit_rule(scores, groups, labels, target_rate="accuracy", max_gap=0.05)
    by_rates = [
        quiet_fit(scores[groups == g], groups[groups == g], target_rate=rate)
        for g, rate in enumerate(rule.record.rates["selection"].after)
    ]
    for g, alone in enumerate(by_rates):
        np.testing.assert_allclose(
            alone.probabilities(scores[groups == g], groups[groups == g]),
            rule.probabilities(scores[groups == g], groups[groups == g]),
            atol=1e-9,
        )
    assert rule.record.target == "accuracy"
    assert rule.target_rate == pytest.approx(
        (max(rule.record.rates["selection"].after) + min(rule.record.rates["selection"].after)) / 2
    )


@pytest.mark.parametrize("max_gap", [0.0, 0.04])
def test_cutoff_does_not_affect_the_most_accurate_rates(max_gap):
    scores, groups, labels = miscalibrated()
    found = [
        fit_rule(scores, groups, labels, target_rate="accuracy", ramp_width=0, max_gap=max_gap, cutoff=cutoff)
        .record.rates["selection"]
        .after
        for cutoff in (0.2, 0.5, 0.8)
    ]
    assert found[0] == pytest.approx(found[1], abs=1e-9)
    assert found[0] == pytest.approx(found[2], abs=1e-9)


def test_scores_on_another_scale_give_the_same_rates():
    scores, groups, labels = miscalibrated()
    options = {"target_rate": "accuracy", "ramp_width": 0, "max_gap": 0.03}
    plain = fit_rule(scores, groups, labels, **options).record.rates["selection"].after
    signed = fit_rule(2 * scores - 1, groups, labels, scale="signed", **options).record.rates["selection"].after
    logits = fit_rule(logit(scores), groups, labels, scale="logit", **options).record.rates["selection"].after
    assert signed == pytest.approx(plain, abs=1e-9)
    assert logits == pytest.approx(plain, abs=1e-9)


def test_integer_weights_equal_repeated_rows_and_weight_0_drops_rows(isotonic):
    rng = np.random.default_rng(3)
    scores, groups, labels = miscalibrated(600)
    weights = rng.integers(0, 4, 600)
    repeated = [np.repeat(column, weights) for column in (scores, groups, labels)]
    for target in ("accuracy", "base_rate"):
        a = fit_rule(scores, groups, labels, target_rate=target, sample_weight=weights)
        b = fit_rule(*repeated, target_rate=target)
        np.testing.assert_allclose(a.probabilities(scores, groups), b.probabilities(scores, groups), atol=1e-9)


def test_labels_of_zero_weight_rows_do_not_count():
    scores, groups, labels = miscalibrated(600)
    weights = (np.arange(600) % 3 > 0).astype(float)
    other = np.where(weights > 0, labels, 1 - labels)
    for target in ("accuracy", "base_rate"):
        a = fit_rule(scores, groups, labels, target_rate=target, sample_weight=weights)
        b = fit_rule(scores, groups, other, target_rate=target, sample_weight=weights)
        assert a == b


def test_binned_rows_give_the_sorted_rule(binned, monkeypatch):
    scores, groups, labels = miscalibrated(500)
    options = {"target_rate": "accuracy", "max_gap": 0.02, "ramp_width": 0.05, "unseen_group": "pooled"}
    coarse = fit_rule(scores, groups, labels, **options)
    monkeypatch.setattr("fairramp.data.rows.SORTED_ROWS", 10**6)
    exact = fit_rule(scores, groups, labels, **options)
    for asked in (groups, groups + 10):
        np.testing.assert_allclose(
            coarse.probabilities(scores, asked), exact.probabilities(scores, asked), atol=1e-9
        )


# The base rate ------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_gap", [0.0, 0.06])
def test_base_rate_is_the_weighted_mean_label(max_gap):
    scores, groups, labels = miscalibrated()
    weights = 0.1 + scores
    rule = fit_rule(scores, groups, labels, target_rate="base_rate", sample_weight=weights, max_gap=max_gap)
    mean = np.average(labels, weights=weights)
    assert rule.target_rate == pytest.approx(mean, abs=1e-12)
    assert rule.record.target == "base_rate"
    number = fit_rule(scores, groups, target_rate=rule.target_rate, sample_weight=weights, max_gap=max_gap)
    assert number.ramps == rule.ramps
    plain = fit_rule(scores, groups, labels, target_rate="base_rate")
    assert plain.record.rates["selection"].after == pytest.approx([labels.mean()] * 2, abs=1e-9)


# Rejected input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["accuracy", "base_rate"])
def test_missing_labels_raise_if_needed(target):
    with pytest.raises(InputError) as caught:
        fit_rule([0.1, 0.9], ["a", "b"], target_rate=target)
    assert str(caught.value) == f"`target_rate='{target}'` requires `labels`, the true outcomes."


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([0, 2], "`labels` must be 0 or 1, got 2.0 in row 1; pass 1 for the favorable class"),
        ([0, float("nan")], "`labels` must be 0 or 1, got nan in row 1."),
        ([0, 1, 1], "`labels` has 3 rows but `scores` has 2; the lengths must match."),
        ([[0, 1]], "`labels` must be one column, got shape (1, 2); pass 1 for"),
        (["no", "yes"], "`labels` must be numbers, got text; if 'no' is the favorable class and not 'yes'"),
        (
            0.05,
            "`labels` must be one column of 0 and 1, got 0.05; pass settings by name, such as max_gap=0.05.",
        ),
    ],
)
def test_bad_labels_raise(labels, sentence):
    for target in ("accuracy", "optimal"):
        with pytest.raises(InputError) as caught:
            fit_rule([0.1, 0.9], ["a", "b"], labels, target_rate=target)
        assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    "as_column", [list, np.asarray, lambda y: np.asarray(y) > 0, lambda y: y.astype(np.int8)]
)
def test_labels_can_be_lists_booleans_or_integers(as_column):
    scores, groups, labels = miscalibrated(300)
    expected = fit_rule(scores, groups, labels, target_rate="accuracy")
    assert fit_rule(scores, groups, as_column(labels), target_rate="accuracy") == expected


@pytest.mark.parametrize("column", ["labels all 0", "labels all 1", "one group all 1"])
def test_labels_can_all_be_equal(column, isotonic):
    scores, groups, labels = miscalibrated(300)
    labels = {
        "labels all 0": 0 * labels,
        "labels all 1": 0 * labels + 1,
        "one group all 1": np.where(groups == 1, 1, labels),
    }[column]
    rule = quiet_fit(scores, groups, labels, target_rate="accuracy", ramp_width=0)
    h = rule.probabilities(scores, groups)
    best = 1 - best_cost(scores, groups, labels, np.ones(300), 0.0)
    assert accuracy(h, labels) == pytest.approx(best, abs=1e-9)


# Compared with Fairlearn --------------------------------------------------------------------------


def fairlearn_optimizer():
    """Fairlearn's post-processor for scores passed as the only column of X."""
    postprocessing = pytest.importorskip("fairlearn.postprocessing")
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Scores(ClassifierMixin, BaseEstimator):
        def __init__(self):
            self.classes_ = np.array([0, 1])

        def fit(self, X, y):  # noqa: N803
            return self

        def __sklearn_is_fitted__(self):
            return True

        def predict_proba(self, X):  # noqa: N803
            p = np.asarray(X)[:, 0]
            return np.column_stack([1 - p, p])

    return postprocessing.ThresholdOptimizer(
        estimator=Scores(), constraints="demographic_parity", predict_method="predict_proba", prefit=True
    )


CLASSIFIERS = {
    "calibrated": lambda eta, group, rng: eta,
    "overconfident": lambda eta, group, rng: expit(2.5 * logit(eta) + 0.3),
    "noisy": lambda eta, group, rng: expit(logit(eta) + rng.normal(0, 0.8, len(eta))),
    "biased": lambda eta, group, rng: np.where(group == 0, eta**2, np.sqrt(eta)),
}


def credit(n, seed):
    """Two groups resembling the credit-card data: 60% and 40% of the rows, about a fifth positive."""
    rng = np.random.default_rng(seed)
    group = (rng.random(n) < 0.4).astype(int)
    eta = expit(rng.normal(-1.8 + 0.5 * group, 1.3))
    return eta, group, (rng.random(n) < eta).astype(int), rng


@pytest.mark.filterwarnings("ignore:.*:FutureWarning")
@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("seed", [0, 1])
def test_test_accuracy_is_within_0_15_points_of_fairlearn(classifier, seed):
    other = fairlearn_optimizer()
    (eta, group, y, rng), (new_eta, new_group, new_y, new_rng) = credit(20_000, seed), credit(20_000, seed + 100)
    scores = CLASSIFIERS[classifier](eta, group, rng)
    new_scores = CLASSIFIERS[classifier](new_eta, new_group, new_rng)
    rule = fit_rule(scores, group, y, target_rate="accuracy")
    ours = rule.probabilities(new_scores, new_group)
    other.fit(scores[:, None], y, sensitive_features=group)
    theirs = np.asarray(other._pmf_predict(new_scores[:, None], sensitive_features=new_group))[:, 1]
    assert accuracy(ours, new_y) >= accuracy(theirs, new_y) - 0.0015
    assert gap(ours, new_group) <= gap(theirs, new_group) + 0.005


def test_group_with_one_label_value_works_unlike_in_fairlearn():
    eta, group, y, _ = credit(2_000, 0)
    y = np.where(group == 1, 0, y)
    with pytest.raises(ValueError, match=r"[Dd]egenerate"):
        fairlearn_optimizer().fit(eta[:, None], y, sensitive_features=group)
    rule = quiet_fit(eta, group, y, target_rate="accuracy")
    assert gap(rule.probabilities(eta, group), group) <= 1e-9


def test_single_precision_scores_work_unlike_in_fairlearn():
    eta, group, y, _ = credit(2_000, 0)
    scores = eta.astype(np.float32)
    other = fairlearn_optimizer()
    with pytest.raises(Exception, match=r"float32|dtype"):
        other.fit(scores[:, None], y, sensitive_features=group)._pmf_predict(
            scores[:, None], sensitive_features=group
        )
    rule = fit_rule(scores, group, y, target_rate="accuracy")
    assert gap(rule.probabilities(scores, group), group) <= 1e-9
    assert isinstance(rule, fairramp.Rule)


@pytest.mark.parametrize("n", [5_000, 40_000])
@pytest.mark.parametrize(
    ("scale", "cutoff", "squeeze"),
    [
        ("probability", 1e-4, lambda q: q * 2e-4),
        ("logit", -12.0, lambda q: logit(q) - 12),
        ("logit", 12.0, lambda q: logit(q) + 12),
        ("probability", 0.5, lambda q: np.where(q < 0.3, q * 1e-6, q)),
    ],
)
def test_scores_may_crowd_in_a_few_bins(scale, cutoff, squeeze, n):
    # Only the order of scores matters for the rates.
    rng = np.random.default_rng(0)
    groups, truth = rng.integers(0, 2, n), rng.beta(0.5, 0.8, n)
    labels = (rng.random(n) < truth).astype(int)
    options = {"max_gap": 0.02, "target_rate": "accuracy", "ramp_width": 0}
    crowded = fit_rule(squeeze(truth), groups, labels, scale=scale, cutoff=cutoff, **options)
    chances = crowded.probabilities(squeeze(truth), groups)
    plain = fit_rule(truth, groups, labels, **options).probabilities(truth, groups)
    assert accuracy(chances, labels) == pytest.approx(accuracy(plain, labels), abs=0.002)
    table = polars.LazyFrame({"x": squeeze(truth), "g": groups, "y": labels})
    lazy = fairramp.fit_frame(table, score="x", group="g", label="y", scale=scale, cutoff=cutoff, **options)
    assert lazy.record.rates["selection"].after == pytest.approx(
        crowded.record.rates["selection"].after, abs=1e-9
    )
