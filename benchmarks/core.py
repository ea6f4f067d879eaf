"""Benchmark fit and apply relative to reading the data once.

The baseline is ``scores.sum(); groups.sum()`` in the same process. Baseline, fit and apply take turns, and the
best time of each counts. Compare the ratios: seconds depend on the machine.

    python benchmarks/core.py [--quick] [rows …]
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

import fairramp


def scores_of(n_rows: int, n_groups: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores whose distribution differs between integer-coded groups."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, n_rows)
    return rng.beta(1.5 + 1.6 * groups / n_groups, 3.0), groups


def best_times(functions: list[Callable[[], object]], seconds: float) -> list[float]:
    """Best time of each function; they take turns for the given number of seconds."""
    best = [np.inf] * len(functions)
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or not np.isfinite(best).all():
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def main() -> None:
    """Print one line per number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("rows", nargs="*", type=int)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="one million rows, a few seconds")
    options = parser.parse_args()
    sizes = options.rows or ([1_000_000] if options.quick else [1_000, 100_000, 1_000_000, 20_000_000])
    seconds = 2.0 if options.quick else 6.0

    print(f"{options.groups} integer-coded groups; ratios to scores.sum(); groups.sum()")
    print(f"{'rows':>12}  {'base ms':>9}  {'fit ms':>9}  {'fit':>6}  {'apply ms':>9}  {'apply':>6}  {'gap':>7}")
    for n_rows in sizes:
        print(measured(n_rows, options.groups, seconds))


def measured(n_rows: int, n_groups: int, seconds: float) -> str:
    """The line for one number of rows."""
    scores, groups = scores_of(n_rows, n_groups)
    rule = fairramp.fit_rule(scores, groups)
    baseline, fit, apply = best_times(
        [
            lambda: (scores.sum(), groups.sum()),
            lambda: fairramp.fit_rule(scores, groups),
            lambda: rule.probabilities(scores, groups),
        ],
        seconds,
    )
    rates = np.bincount(groups, rule.probabilities(scores, groups)) / np.bincount(groups)
    return (
        f"{n_rows:>12,}  {1e3 * baseline:>9.3f}  {1e3 * fit:>9.2f}  {fit / baseline:>5.1f}×  "
        f"{1e3 * apply:>9.2f}  {apply / baseline:>5.1f}×  {np.ptp(rates):>7.0e}"
    )


if __name__ == "__main__":
    main()
