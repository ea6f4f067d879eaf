"""With `confidence=0.95` the population, all of Adult, meets `max_gap` about as often as stated."""

import numpy as np
import pytest

import fairramp
from samples import quiet_fit

ADULT = fairramp.datasets.load_adult_scores()


def population_gaps(groups, size, max_gap, replicates, seed, **options):
    """Population gaps and mean accuracy of rules fitted to samples drawn with replacement."""
    rng, names = np.random.default_rng(seed), np.unique(groups)
    gaps, accuracies = [], []
    for _ in range(replicates):
        rows = rng.choice(len(ADULT.score), size)
        rule = quiet_fit(ADULT.score[rows], groups[rows], max_gap=max_gap, **options)
        chance = rule.probabilities(ADULT.score, groups)
        rates = [chance[groups == name].mean() for name in names]
        gaps.append(np.ptp(rates))
        accuracies.append(np.where(ADULT.label == 1, chance, 1 - chance).mean())
    return np.array(gaps), np.mean(accuracies)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "size", "max_gap"), [("sex", 3_000, 0.05), ("race", 20_000, 0.15)], ids=["sex", "race"]
)
def test_population_meets_the_limit_with_confidence(name, size, max_gap):
    groups, replicates = getattr(ADULT, name), 300
    plain, accuracy = population_gaps(groups, size, max_gap, replicates, seed=1)
    sure, price = population_gaps(groups, size, max_gap, replicates, seed=1, confidence=0.95)
    print(
        f"\n{name}, {size:,} rows, max_gap {max_gap}: kept {np.mean(sure <= max_gap):.3f} of {replicates} with "
        f"confidence, {np.mean(plain <= max_gap):.3f} without; accuracy {price:.4f} instead of {accuracy:.4f}"
    )
    assert np.mean(sure <= max_gap) >= 0.93
    assert np.mean(plain <= max_gap) < 0.8  # otherwise the study shows nothing


def test_few_samples_meet_the_limit_with_confidence():
    sure, _ = population_gaps(ADULT.sex, 3_000, 0.05, 12, seed=2, confidence=0.95)
    assert np.mean(sure <= 0.05) >= 0.75  # 4 or more failures in 12 at 5% each: about one run in 450
