"""Accuracy by gap, and the paper's grid search."""

import numpy as np
import pytest

import fairramp
from fairramp import InputError, UnseenGroupError, fit_rule, frontier, tune
from samples import quiet_fit

GAPS = [0.0, 0.01, 0.05, 0.1, 0.3, 1.0]


def labeled(n=4000, seed=0, n_groups=3):
    """Scores that are too low in one group and overconfident in another, with labels."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, n)
    truth = rng.beta(1.5 + 0.5 * groups, 2.5)
    scores = np.where(groups == 0, truth**2, np.clip(1.5 * truth - 0.2, 0, 1))
    return scores, groups, (rng.random(n) < truth).astype(int)


def accuracy_of(chances, labels, weights=None):
    return np.average(np.where(labels == 1, chances, 1 - chances), weights=weights)


@pytest.mark.parametrize("ramp_width", [0, 0.01, 0.1])
def test_each_point_matches_fit_rule(ramp_width):
    fit, other = labeled(), labeled(seed=1)
    curve = frontier(*fit, validation=other, max_gaps=GAPS, ramp_width=ramp_width)
    for i, gap in enumerate(GAPS):
        rule = fit_rule(*fit, max_gap=gap, target_rate="accuracy", ramp_width=ramp_width)
        chances = rule.probabilities(*other[:2])
        rates = [chances[other[1] == g].mean() for g in range(3)]
        assert curve.accuracies[i] == pytest.approx(accuracy_of(chances, other[2]), abs=1e-9)
        assert curve.gaps[i] == pytest.approx(max(rates) - min(rates), abs=1e-9)
        assert curve.lowest_rates[i] == pytest.approx(min(rates), abs=1e-9)
        assert curve.highest_rates[i] == pytest.approx(max(rates), abs=1e-9)


def test_in_sample_accuracy_never_falls_with_the_gap_and_every_gap_is_met():
    curve = frontier(*labeled(), max_gaps=GAPS, ramp_width=0)
    assert np.all(np.diff(curve.accuracies) >= -1e-9)
    assert np.all(np.array(curve.gaps) <= np.array(GAPS) + 1e-9)
    assert curve.accuracies[-1] >= curve.own_accuracy - 1e-9


def measured(chances, labels, weights, kind, costs):
    """Accuracy, balanced accuracy or cost of decisions, row by row."""
    if kind == "cost":
        return np.average(chances * (1 - labels) * costs[0] + (1 - chances) * labels * costs[1], weights=weights)
    right = np.where(labels == 1, chances, 1 - chances)
    if kind == "accuracy":
        return np.average(right, weights=weights)
    return np.mean([np.average(right[labels == y], weights=weights[labels == y]) for y in (0, 1)])


@pytest.mark.parametrize("n", [700, 5_000, 60_000])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("accuracy", {}),
        ("cost", {"costs": (5.0, 1.0)}),
        ("cost", {"costs": (0.3, 0.9)}),
        ("balanced_accuracy", {"target_rate": "balanced_accuracy"}),
    ],
)
def test_the_curve_never_falls_on_the_fit_rows_and_is_exact(kind, options, n):
    for seed in range(4):
        scores, groups, labels = labeled(n, seed)
        if seed == 1:
            scores = scores.round(2)
        weights = np.random.default_rng(seed).uniform(0.5, 2, n) if seed > 1 else np.ones(n)
        own = (scores >= 0.5) * 1.0
        curve = frontier(
            scores, groups, labels, sample_weight=weights, ramp_width=[0.01, 0.05][seed % 2], **options
        )
        sign = -1 if kind == "cost" else 1
        assert curve.measure == kind
        assert np.all(sign * np.diff(curve.values) >= 0)
        assert np.all(np.array(curve.gaps) <= np.array(curve.max_gaps) + 1e-9)
        assert curve.own_value == pytest.approx(measured(own, labels, weights, kind, curve.costs), abs=1e-12)
        # The last rule, row by row.
        rule = quiet_fit(
            scores,
            groups,
            labels,
            sample_weight=weights,
            max_gap=curve.max_gaps[0],
            ramp_width=[0.01, 0.05][seed % 2],
            **({"target_rate": "accuracy"} | options),
        )
        chances = rule.probabilities(scores, groups)
        assert curve.values[0] == pytest.approx(measured(chances, labels, weights, kind, curve.costs), abs=1e-9)
        assert curve.accuracies[0] == pytest.approx(
            measured(chances, labels, weights, "accuracy", None), abs=1e-9
        )


def test_standard_errors_are_those_of_the_rows():
    scores, groups, labels = labeled(3_000)
    weights = np.random.default_rng(0).uniform(0.5, 2, 3_000)
    rule = fit_rule(scores, groups, labels, sample_weight=weights, target_rate="accuracy", ramp_width=0.1)
    curve = frontier(scores, groups, labels, sample_weight=weights, max_gaps=[0], ramp_width=0.1)
    right = np.where(labels == 1, h := rule.probabilities(scores, groups), 1 - h)
    error = np.sqrt((weights**2 * (right - np.average(right, weights=weights)) ** 2).sum()) / weights.sum()
    assert (curve.upper[0] - curve.lower[0]) / 2 == pytest.approx(1.959964 * error, rel=1e-3)


def test_it_reports_which_rows_it_was_measured_on():
    fit, other = labeled(), labeled(seed=1)
    assert frontier(*fit, max_gaps=[0]).is_in_sample
    assert "on the fit rows" in repr(frontier(*fit, max_gaps=[0]))
    assert not frontier(*fit, validation=other, max_gaps=[0]).is_in_sample
    assert "validation" in repr(frontier(*fit, validation=other, max_gaps=[0]))


def test_own_decisions_select_at_the_cutoff_or_above():
    scores, groups, labels = labeled()
    curve = frontier(scores, groups, labels, max_gaps=[0], cutoff=0.4)
    own = scores >= 0.4
    rates = [own[groups == g].mean() for g in range(3)]
    assert curve.own_accuracy == pytest.approx(np.mean(own == labels))
    assert curve.own_gap == pytest.approx(max(rates) - min(rates))


def test_default_tolerances_reach_from_0_to_the_classifiers_own_gap():
    curve = frontier(*labeled())
    assert len(curve.max_gaps) == 21
    assert curve.max_gaps[0] == 0
    assert curve.max_gaps[-1] == pytest.approx(curve.own_gap)


def test_bands_cover_the_accuracy_on_other_samples():
    fit = labeled()
    curve = frontier(*fit, validation=labeled(2000, seed=2), max_gaps=[0.05])
    rule = fit_rule(*fit, max_gap=0.05, target_rate="accuracy")
    accuracies = [
        accuracy_of(rule.probabilities(*sample[:2]), sample[2])
        for sample in (labeled(2000, seed=s) for s in range(100, 300))
    ]
    half = (curve.upper[0] - curve.lower[0]) / 2
    # Probabilities vary less than random draws of the same accuracy, so the band is conservative.
    assert np.mean(np.abs(accuracies - np.mean(accuracies)) <= half) >= 0.9
    assert half <= 1.96 * np.sqrt(0.25 / 2000) * 1.05


def test_integer_weights_equal_repeated_rows(monkeypatch):
    # The penalty below that size treats one heavy row differently from many rows.
    monkeypatch.setattr("fairramp.fit.outcomes.LINE_BELOW", 0)
    scores, groups, labels = labeled(800)
    weights = np.random.default_rng(3).integers(0, 4, 800)
    weighted = frontier(scores, groups, labels, sample_weight=weights, max_gaps=GAPS)
    repeated = frontier(*(np.repeat(c, weights) for c in (scores, groups, labels)), max_gaps=GAPS)
    assert weighted.accuracies == pytest.approx(repeated.accuracies, abs=1e-9)
    assert weighted.gaps == pytest.approx(repeated.gaps, abs=1e-9)


def test_frontier_rejects_invalid_input():
    fit = labeled()
    with pytest.raises(UnseenGroupError, match=r"`validation`.*\[7\]"):
        frontier(*fit, validation=([0.5], [7], [1]), max_gaps=[0])
    with pytest.raises(InputError, match="`validation` must be a tuple"):
        frontier(*fit, validation=fit[:2], max_gaps=[0])
    with pytest.raises(InputError, match="`max_gaps` is empty"):
        frontier(*fit, max_gaps=[])
    with pytest.raises(InputError, match="`max_gaps` must be a sequence"):
        frontier(*fit, max_gaps=0.1)
    with pytest.raises(InputError, match=r"`max_gaps` must be between 0 and 1, got 2"):
        frontier(*fit, max_gaps=[0, 2])


def test_the_printed_frontier_fits_80_columns():
    assert max(map(len, repr(frontier(*labeled())).splitlines())) <= 80


class TestTune:
    def test_the_default_grid_is_that_of_the_paper(self):
        fit, other = labeled(), labeled(seed=1)
        tuned = tune(*fit, validation=other)
        base = fit[2].mean()
        expected = [
            (w, base + step) for w in (0.005, 0.01, 0.025, 0.05, 0.1) for step in (-0.1, -0.05, 0, 0.05, 0.1)
        ]
        found = list(zip(tuned.grid["ramp_width"], tuned.grid["target_rate"], strict=True))
        np.testing.assert_allclose(found, expected)

    def test_the_rule_is_the_best_of_the_grid_on_validation_rows(self):
        fit, other = labeled(), labeled(seed=1)
        tuned = tune(*fit, validation=other, max_gap=0.02)
        assert tuned.score == tuned.grid["score"].max()
        assert tuned.score == pytest.approx(accuracy_of(tuned.rule.probabilities(*other[:2]), other[2]))
        assert tuned.rule.max_gap == 0.02
        best = int(np.argmax(tuned.grid["score"]))
        again = fit_rule(
            *fit,
            max_gap=0.02,
            ramp_width=tuned.grid["ramp_width"][best],
            target_rate=tuned.grid["target_rate"][best],
        )
        assert again.fingerprint == tuned.rule.fingerprint

    def test_rates_are_clipped_to_between_0_and_1(self):
        scores, groups, _ = labeled()
        labels = np.zeros(len(scores))
        labels[:100] = 1
        tuned = tune(scores, groups, labels, validation=(scores, groups, labels), ramp_widths=[0.01])
        assert tuned.grid["target_rate"].min() > 0

    def test_any_scorer_can_choose_the_rule(self):
        fit, other = labeled(), labeled(seed=1)

        def most_selected(labels, chances, sample_weight):
            return np.average(chances, weights=sample_weight)

        tuned = tune(
            *fit, validation=other, scorer=most_selected, target_rates=[0.2, 0.6, 0.4], ramp_widths=[0.01]
        )
        assert tuned.rule.target_rate == 0.6

    def test_weights_of_both_samples_are_used(self):
        fit, other = labeled(), labeled(seed=1)
        half = (np.arange(len(other[2])) % 2).astype(float)
        tuned = tune(*fit, validation=(*other, half), ramp_widths=[0.01], sample_weight=np.full(4000, 2.0))
        chances = tuned.rule.probabilities(*other[:2])
        assert tuned.score == pytest.approx(accuracy_of(chances, other[2], half))

    def test_bad_calls_raise_a_helpful_error(self):
        fit = labeled()
        with pytest.raises(InputError, match="`validation` must be a tuple"):
            tune(*fit, validation=fit[0])
        with pytest.raises(InputError, match="`ramp_widths` is empty"):
            tune(*fit, validation=fit, ramp_widths=[])
        with pytest.raises(InputError, match="`strata` cannot be tuned"):
            tune(*fit, validation=fit, strata=fit[1])
        with pytest.raises(InputError, match="`scorer` must return finite numbers"):
            tune(*fit, validation=fit, ramp_widths=[0.1], scorer=lambda *_: np.nan)

    def test_it_prints_the_grid_and_the_rule(self):
        fit = labeled()
        text = repr(tune(*fit, validation=fit, ramp_widths=[0.1]))
        assert "Best" in text
        assert "fairramp rule for 3 groups" in text


def test_frontier_on_the_shipped_scores_ends_at_the_classifiers_accuracy():
    data = fairramp.datasets.load_adult_scores()
    curve = frontier(data.score, data.sex, data.label, ramp_width=0)
    assert curve.accuracies[-1] >= curve.own_accuracy
    assert curve.own_gap == pytest.approx(0.1683, abs=1e-4)


def test_tune_scores_rules_by_their_costs():
    fit, other = labeled(), labeled(seed=1)
    options = {"validation": other, "ramp_widths": [0.01], "target_rates": ["accuracy", 0.1, 0.4]}
    tuned = tune(*fit, costs=(5, 1), **options)
    chances = fit_rule(*fit, target_rate="accuracy", costs=(5, 1)).probabilities(*other[:2])
    paid = measured(chances, other[2], None, "cost", (5, 1))
    assert tuned.grid["score"][0] == pytest.approx(-paid)
    assert tuned.score == max(tuned.grid["score"])
    with pytest.raises(InputError, match="`costs` must be two numbers"):
        tune(*fit, costs=(5,), **options)


def test_frontier_takes_targets_that_use_labels_only():
    with pytest.raises(
        InputError, match="`target_rate` must be 'accuracy' or 'balanced_accuracy', got 'optimal'"
    ):
        frontier(*labeled(), target_rate="optimal")
    with pytest.raises(InputError, match="`costs` requires `target_rate='accuracy'`"):
        frontier(*labeled(), target_rate="balanced_accuracy", costs=(1, 2))
