"""Scores and groups for tests, and the rates and gap of decisions, computed independently."""

import warnings

import numpy as np

import fairramp

KEY = "0123456789abcdef" * 4


def sample(n_rows=400, n_groups=2, seed=0):
    """Scores in (0, 1) and group codes 0 … K−1; each group has its own score distribution."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n_rows) % n_groups)
    return rng.beta(2.0 + 1.5 * codes / n_groups, 2.0, n_rows), codes


def rates(chances, codes, weights=None):
    """Selection rate of each group present."""
    weights = np.ones(len(chances)) if weights is None else np.asarray(weights, dtype=np.float64)
    weights = weights / weights.max()
    _, place = np.unique(codes, return_inverse=True)
    return np.bincount(place, weights * chances) / np.bincount(place, weights)


def gap(chances, codes, weights=None):
    """Largest difference between two groups' selection rates."""
    found = rates(chances, codes, weights)
    return found.max() - found.min()


def quiet_fit(*args, **kwargs):
    """Fit without the library's warnings, for samples that are small or one-sided on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fairramp.FairrampWarning)
        return fairramp.fit_rule(*args, **kwargs)
