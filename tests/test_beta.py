"""The range of Beta draws, compared with formulas, and with simulation if a group selects nobody or everybody."""

import numpy as np
import pytest
from scipy import stats

from fairramp.core.beta import range_quantiles

#: For smooth laws, interpolation between the cells is far more accurate than the documented 0.1%.
NEAR = 1e-5


def worst_range(rows, lower, upper, confidence, n_draws=200_000):
    """The quantile of the largest difference between one group's upper and another's lower law, by simulation."""
    u = np.random.default_rng(0).random((n_draws, len(rows)))
    low, high = (
        np.stack(
            [
                np.full(n_draws, float(m > n)) if m in (0, n + 1) else stats.beta.ppf(u[:, k], m, n + 1 - m)
                for k, (n, m) in enumerate(zip(rows, law, strict=True))
            ]
        )
        for law in (lower, upper)
    )
    apart = high[:, None] - low[None]
    apart[np.arange(len(rows)), np.arange(len(rows))] = -1
    return np.quantile(apart.max(axis=(0, 1)), confidence)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_range_of_uniform_draws_has_its_known_law(k, confidence):
    ones = np.ones(k)
    [found] = range_quantiles(ones, ones, ones, None, confidence)
    assert k * found ** (k - 1) - (k - 1) * found**k == pytest.approx(confidence, abs=NEAR)


@pytest.mark.parametrize("everybody", [False, True])
@pytest.mark.parametrize(("rows", "m"), [((771, 42), (5, 0)), ((42, 771), (2, 0)), ((50, 50, 2_000), (0, 0, 9))])
def test_a_small_group_with_nobody_selected_may_have_the_highest_rate(rows, m, everybody):
    # 0 of 42 selected says less than 5 of 771.
    n, m = np.array(rows, dtype=float), np.array(m, dtype=float)
    lower, upper = (n - m, n - m + 1) if everybody else (m, m + 1)
    [found] = range_quantiles(n, lower, upper, None, 0.95)
    expected = worst_range(n, lower, upper, 0.95)
    assert 0.99 * expected <= found <= 1.2 * expected
