"""Benchmark rules for several classes relative to reading the probabilities once.

The baseline is ``probabilities.sum()`` in the same process. All subjects take turns, and the best time of each
counts. Compare the ratios: seconds depend on the machine.

    python benchmarks/classes.py [ROWS …] [--classes 4] [--groups 4]
"""

import argparse

import numpy as np
from core import best_times

import fairramp

#: Ratio at most, for one million rows, four classes and four groups.
TARGET = 400.0


def class_scores_of(n_rows: int, n_classes: int, n_groups: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores of classes whose distribution differs between integer-coded groups."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, n_rows)
    scores = rng.gamma(rng.uniform(0.6, 1.6, (n_groups, n_classes))[groups])
    return scores / scores.sum(axis=1, keepdims=True), groups


def main() -> None:
    """Print one line per number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("rows", nargs="*", type=int, default=[1_000_000])
    parser.add_argument("--classes", type=int, default=4)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=8.0, help="the subjects take turns this long")
    options = parser.parse_args()
    print(f"{options.classes} classes, {options.groups} groups; ratios to probabilities.sum()")
    headings = {"rows": 12, "base ms": 8, "fit": 7, "gap 0.02": 8, "soft": 7, "apply": 7, "largest gap": 11}
    print("  ".join(f"{name:>{width}}" for name, width in headings.items()))
    for n_rows in options.rows:
        print(measured(n_rows, options.classes, options.groups, options.seconds))


def measured(n_rows: int, n_classes: int, n_groups: int, seconds: float) -> str:
    """The line for one number of rows."""
    scores, groups = class_scores_of(n_rows, n_classes, n_groups)
    chances = np.random.default_rng(1).dirichlet(np.ones(n_groups), n_rows) / 2 + np.eye(n_groups)[groups] / 2
    soft = fairramp.GroupProbabilities(chances, list(range(n_groups)))
    rule = fairramp.fit_class_rule(scores, groups)
    base, *times = best_times(
        [
            scores.sum,
            lambda: fairramp.fit_class_rule(scores, groups),
            lambda: fairramp.fit_class_rule(scores, groups, max_gap=0.02),
            lambda: fairramp.fit_class_rule(scores, soft),
            lambda: rule.probabilities(scores, groups),
        ],
        seconds,
    )
    fit, gap, mixed, apply = (time / base for time in times)
    line = f"{n_rows:>12,}  {1e3 * base:>8.3f}  {fit:>6.0f}×  {gap:>7.0f}×  {mixed:>6.0f}×  {apply:>6.0f}×"
    line += f"  {rule.record.gap_after:>11.0e}"
    if (n_rows, n_classes, n_groups) == (1_000_000, 4, 4):
        line += f"  {'met' if fit <= TARGET else 'MISSED'}: fit at most {TARGET:g}×"
    return line


if __name__ == "__main__":
    main()
