"""Calibration of small groups: a line between logits, compared with a general optimizer, and its benefit."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from fairramp.core.bands import Gap
from fairramp.core.scales import NEAREST, SCALES
from fairramp.data.sample import Sample
from fairramp.datasets import load_adult_scores
from fairramp.fit.gains import Costs, GainCurves
from fairramp.fit.outcomes import LabeledScores
from fairramp.fit.recalibrate import LINE_BELOW, SHIFT_PENALTY, SLOPE_PENALTY, line_levels
from samples import quiet_fit


def labeled(scores, groups, labels, weights=None, scale="probability"):
    return LabeledScores.of(Sample.of_arrays(scores, groups, labels, scale=SCALES[scale], sample_weight=weights))


def levels(*args, **kwargs):
    found = labeled(*args, **kwargs)
    return line_levels(found.scores, found.positives, found.scale)


def line_by_hand(x, y, w):
    """Minimize one group's penalized loss subject to s ≥ 0; return the line at its rows, and its parameters."""
    z = logit(np.clip(x, NEAREST, 1 - NEAREST))
    v = w * w.sum() / (w**2).sum()

    def loss(line):
        a, s = line
        at = a + s * z
        return (v * (np.logaddexp(0, at) - y * at)).sum() + (
            SHIFT_PENALTY * a**2 + SLOPE_PENALTY * (s - 1) ** 2
        ) / 2

    def slope(line):
        off = v * (expit(line[0] + line[1] * z) - y)
        return np.array([off.sum() + SHIFT_PENALTY * line[0], (off * z).sum() + SLOPE_PENALTY * (line[1] - 1)])

    found = minimize(
        loss, [0.0, 1.0], jac=slope, bounds=[(None, None), (0, None)], method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000},
    )  # fmt: skip
    return expit(found.x[0] + found.x[1] * z), found.x


@pytest.mark.parametrize("seed", range(12))
def test_line_is_the_penalized_optimum_of_each_group(seed):
    rng = np.random.default_rng(seed)
    n, n_groups = int(rng.integers(3, 300)), 1 + seed % 3
    groups = rng.permutation(np.arange(n) % n_groups)
    scores = rng.choice([0.0, 1.0, *rng.random(40)], n)
    labels = (rng.random(n) < rng.choice([expit(3 * logit(np.clip(scores, 0.01, 0.99)) + 1), 1 - scores])).astype(
        float
    )
    weights = rng.lognormal(5, 1, n) if seed % 2 else np.ones(n)
    found = labeled(scores, groups, labels, weights)
    at = line_levels(found.scores, found.positives, found.scale)
    for k in range(n_groups):
        inside = groups == k
        by_hand, (_, s) = line_by_hand(scores[inside], labels[inside], weights[inside])
        order = np.argsort(scores[inside], kind="stable")
        _, first = np.unique(scores[inside][order], return_index=True)
        np.testing.assert_allclose(at[found.scores.points.group == k], by_hand[order][first], atol=1e-6)
        assert s >= 0
        assert (np.diff(at[found.scores.points.group == k]) >= 0).all()


def test_labels_that_contradict_the_scores_give_a_flat_line():
    rng = np.random.default_rng(0)
    scores = rng.random(400)
    at = levels(scores, np.zeros(400), (rng.random(400) < 1 - scores).astype(float))
    assert np.ptp(at) == 0


def test_weights_scale_out():
    rng = np.random.default_rng(1)
    scores, groups = rng.random(300), rng.integers(0, 3, 300)
    labels, weights = (rng.random(300) < scores**2).astype(float), rng.uniform(0.5, 2, 300)
    plain = levels(scores, groups, labels, weights)
    for factor in (1e-12, 1 / 3, 2e5, 1e120):
        np.testing.assert_allclose(levels(scores, groups, labels, factor * weights), plain, atol=1e-9)
    np.testing.assert_allclose(levels(scores, groups, labels, np.full(300, 7.0)), levels(scores, groups, labels))


def test_zero_weight_rows_do_not_count():
    rng = np.random.default_rng(2)
    scores, labels = rng.random(200), (rng.random(200) < 0.4).astype(float)
    weights = (np.arange(200) % 4 > 0).astype(float)
    kept = weights > 0
    np.testing.assert_allclose(
        levels(scores, np.zeros(200), labels, weights), levels(scores[kept], np.zeros(kept.sum()), labels[kept])
    )


def test_scores_on_another_scale_give_the_same_line():
    rng = np.random.default_rng(3)
    scores, groups = rng.uniform(0.01, 0.99, 200), rng.integers(0, 2, 200)
    labels = (rng.random(200) < np.sqrt(scores)).astype(float)
    plain = levels(scores, groups, labels)
    for scale, other in (("signed", 2 * scores - 1), ("percent", 100 * scores), ("logit", logit(scores))):
        np.testing.assert_allclose(levels(other, groups, labels, scale=scale), plain, atol=1e-9)


def test_few_rows_barely_change_scores_and_many_undo_the_distortion():
    rng = np.random.default_rng(4)
    eta = expit(rng.normal(-0.5, 1.2, 200_000))
    labels = (rng.random(len(eta)) < eta).astype(float)
    scores = expit(2 * logit(eta) + 0.5)
    found = labeled(scores, np.zeros(len(eta)), labels)
    at = line_levels(found.scores, found.positives, found.scale)
    truth = expit((logit(found.scores.points.place) - 0.5) / 2)
    np.testing.assert_allclose(at, truth, atol=0.01)
    assert levels([0.6], [0], [0.0])[0] == pytest.approx(0.6, abs=0.07)


def test_effective_group_size_chooses_the_calibration():
    rng = np.random.default_rng(5)
    sizes = [LINE_BELOW - 1, LINE_BELOW]
    groups = np.repeat([0, 1], sizes)
    scores = rng.random(len(groups))
    found = labeled(scores, groups, (rng.random(len(groups)) < scores**2).astype(float))
    distinct = [np.count_nonzero(found.calibrated.points.group == k) for k in range(2)]
    # Isotonic regression pools scores into blocks; a line keeps them distinct.
    assert distinct[0] > LINE_BELOW - 10
    assert distinct[1] < 100
    # A group in which a few rows have nearly all the weight counts as small.
    weights = np.where(np.arange(len(groups)) % 50 == 0, 1000.0, 1.0)
    heavy = labeled(scores, groups, (rng.random(len(groups)) < scores**2).astype(float), weights)
    assert np.count_nonzero(heavy.calibrated.points.group == 1) > LINE_BELOW - 10


def test_small_groups_get_the_rates_of_their_lines_if_the_gap_allows():
    rng = np.random.default_rng(6)
    groups = np.arange(600) % 2
    scores = rng.beta(2, 3, 600)
    labels = (rng.random(600) < scores ** (0.6 + groups)).astype(float)
    found = labeled(scores, groups, labels)
    at = line_levels(found.scores, found.positives, found.scale)
    free = [np.mean(at[found.scores.points.group == k] >= 0.5) for k in range(2)]
    assert GainCurves(found.calibrated, Costs()).best_rates(Gap(1)) == pytest.approx(free, abs=1e-9)


# Benefit ------------------------------------------------------------------------------------------

#: Distortions of calibrated scores, applied to their logits.
DISTORTIONS = {
    "none": lambda z: z,
    "over-confident": lambda z: 2 * z,
    "under-confident": lambda z: 0.5 * z,
    "shifted": lambda z: z + 0.7,
    "squared": lambda z: logit(np.clip(expit(z) ** 2, 1e-12, 1 - 1e-12)),  # not a line between logits
}


@dataclass(frozen=True)
class World:
    """Groups with normal logits: their shares, means and standard deviations."""

    shares: tuple[float, ...]
    means: tuple[float, ...]
    spreads: tuple[float, ...]

    def draw(self, n, rng):
        groups = rng.choice(len(self.shares), n, p=self.shares)
        z = rng.normal(np.array(self.means)[groups], np.array(self.spreads)[groups])
        return groups, z, (rng.random(n) < expit(z)).astype(float)


WORLDS = {
    "two groups": World((0.7, 0.3), (-1.0, -0.2), (1.3, 1.0)),
    "three groups": World((0.62, 0.34, 0.04), (-0.4, -1.3, 0.3), (1.1, 1.4, 1.0)),
}


def accuracies(world, distort, n, monkeypatch, replicates=100):
    """Accuracy in the population, in percent: "optimal", "accuracy" with isotonic regression, "accuracy"."""
    new_groups, new_z, _ = world.draw(100_000, np.random.default_rng(5))
    eta, new = expit(new_z), expit(distort(new_z))
    found = []
    for seed in range(replicates):
        groups, z, labels = world.draw(n, np.random.default_rng([7, seed, n]))
        if len(np.unique(groups)) < len(world.shares):
            continue
        scores, row = expit(distort(z)), []
        for target, line_below in (("optimal", 0), ("accuracy", 0), ("accuracy", LINE_BELOW)):
            monkeypatch.setattr("fairramp.fit.outcomes.LINE_BELOW", line_below)
            rule = quiet_fit(scores, groups, labels, target_rate=target)
            h = rule.probabilities(new, new_groups)
            row.append(100 * np.mean(h * eta + (1 - h) * (1 - eta)))
        found.append(row)
    assert len(found) > 0.9 * replicates
    return np.mean(found, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("distortion", DISTORTIONS)
@pytest.mark.parametrize("world", WORLDS)
def test_with_200_rows_labels_are_as_good_as_scores_alone(world, distortion, monkeypatch):
    optimal, _, aware = accuracies(WORLDS[world], DISTORTIONS[distortion], 200, monkeypatch)
    assert aware >= optimal - 0.1


@pytest.mark.slow
@pytest.mark.parametrize("distortion", DISTORTIONS)
@pytest.mark.parametrize("world", WORLDS)
def test_with_20000_rows_lines_are_as_good_as_isotonic_regression(world, distortion, monkeypatch):
    # The smallest of the three groups has 800 rows.
    _, isotonic, aware = accuracies(WORLDS[world], DISTORTIONS[distortion], 20_000, monkeypatch)
    assert aware >= isotonic - 0.01  # two standard errors of the difference in means


@pytest.mark.slow
@pytest.mark.parametrize("attribute", ["sex", "race"])
def test_with_200_real_rows_labels_are_as_good_as_scores_alone(attribute):
    adult = load_adult_scores()
    groups, found = getattr(adult, attribute), []
    for seed in range(100):
        order = np.random.default_rng([8, seed]).permutation(len(groups))
        fit, rest = order[:200], order[200:]
        rest = rest[np.isin(groups[rest], groups[fit])]  # unseen groups have no rate
        y, row = adult.label[rest], []
        for target in ("optimal", "accuracy"):
            rule = quiet_fit(adult.score[fit], groups[fit], adult.label[fit], target_rate=target)
            h = rule.probabilities(adult.score[rest], groups[rest])
            row.append(100 * np.mean(h * y + (1 - h) * (1 - y)))
        found.append(row)
    optimal, aware = np.mean(found, axis=0)
    assert aware >= optimal - 0.1
