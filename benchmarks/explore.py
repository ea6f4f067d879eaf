"""Benchmark a move of the explorer: fit, measure and describe a rule, on rows with labels in memory.

    python benchmarks/explore.py            1 million rows
    python benchmarks/explore.py 100000     quick

Prints the median time of several moves of each kind, as the server answers them, without the network.
"""

import json
import sys
import time

import numpy as np

from fairramp.web.explore.asked import Choice, settings_of
from fairramp.web.explore.explorer import Explorer

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
MOVES = 9
#: Milliseconds of a move of the slider, for 1 million rows.
TARGET = 150
CHOICE = Choice("score", "group", "label", None, "probability")
KINDS = {
    "largest gap": ("value", np.linspace(0.01, 0.09, MOVES), {}),
    "lowest ratio": ("value", np.linspace(0.75, 0.99, MOVES), {"limit": "min_ratio"}),
    "cutoff": ("cutoff", np.linspace(0.4, 0.6, MOVES), {}),
    "target: accuracy": ("value", np.linspace(0.01, 0.09, MOVES), {"target": "accuracy"}),
    "target: a number": ("rate", np.linspace(0.1, 0.5, MOVES), {"target": "number"}),
    "budget": ("rate", np.linspace(0.1, 0.5, MOVES), {"target": "budget"}),
    "true positive rates": ("value", np.linspace(0.01, 0.09, MOVES), {"criterion": "equal_opportunity"}),
    "both error rates": ("value", np.linspace(0.01, 0.09, MOVES), {"criterion": "equalized_odds"}),
}
SETTINGS = {"criterion": "parity", "limit": "max_gap", "value": 0.02}


def rows(_: Choice) -> dict[str, object]:
    """Scores of four groups, with labels."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, ROWS)
    scores = 1 / (1 + np.exp(-rng.normal(0.4 * group - 1, 1, ROWS)))
    labels = (rng.random(ROWS) < scores).astype(np.float64)
    return {"scores": scores, "groups": {"group": group}, "labels": labels}


def main() -> None:
    """Print a table."""
    explorer = Explorer(__file__, rows)  # the file is only watched for changes
    print(f"{ROWS:,} rows with labels; target {TARGET} ms for a move of a slider")
    print(f"{'move':<22}{'median':>10}{'slowest':>10}{'first, with charts':>22}")
    for kind, (name, values, more) in KINDS.items():
        times, key = [], ""
        for value in (values[0], *values):
            settings = settings_of(SETTINGS | more | {name: float(value)}, CHOICE)
            start = time.perf_counter()
            found = explorer.move(CHOICE, settings, key, None)
            json.dumps(found)
            times.append(1000 * (time.perf_counter() - start))
            key = found["key"]
        first, *times = times
        print(f"{kind:<22}{np.median(times):>7.0f} ms{max(times):>7.0f} ms{first:>19.0f} ms")


if __name__ == "__main__":
    main()
