"""Time and memory of fits, audits and frontiers, with and without labels.

    python benchmarks/labels.py [ROWS] [--groups 4] [--seconds 20] [--weights]

All subjects take turns in one process, and the best CPU and wall time of each counts. Memory is the peak growth
of the process during one call, as a share of the size of the input arrays of that call.
"""

import argparse
import ctypes
import gc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from cases import best_of, peak_of
from core import scores_of

import fairramp

#: Each subject, and the subject that it is compared with.
COMPARED = {
    "fit": "fit",
    "fit, accuracy": "fit",
    "audit": "audit",
    "audit, labels": "audit",
    "audit, rule": "audit, rule",
    "audit, rule, labels": "audit, rule",
    "frontier, 21 points": "fit",
}
#: CPU time and memory at most: times the compared subject, and as a share of the input.
TARGETS = {"audit, labels": (4.0, 0.5), "audit, rule, labels": (4.0, 0.5)}


def subjects_of(
    n_rows: int, n_groups: int, *, weighted: bool
) -> tuple[dict[str, Callable[[], Any]], dict[str, int]]:
    """The calls to measure, and the size of the input of each in bytes."""
    scores, groups = scores_of(n_rows, n_groups)
    rng = np.random.default_rng(1)
    labels = (rng.random(n_rows) < scores).astype(np.int64)
    more = {"sample_weight": rng.lognormal(size=n_rows)} if weighted else {}
    rule = fairramp.fit_rule(scores, groups, **more)
    plain = scores.nbytes + groups.nbytes + sum(weights.nbytes for weights in more.values())
    labeled = plain + labels.nbytes
    calls: dict[str, tuple[Callable[[], Any], int]] = {
        "fit": (lambda: fairramp.fit_rule(scores, groups, **more), plain),
        "fit, accuracy": (
            lambda: fairramp.fit_rule(scores, groups, labels, target_rate="accuracy", **more),
            labeled,
        ),
        "audit": (lambda: fairramp.audit(scores, groups, **more), plain),
        "audit, labels": (lambda: fairramp.audit(scores, groups, labels, **more), labeled),
        "audit, rule": (lambda: fairramp.audit(scores, groups, rule=rule, **more), plain),
        "audit, rule, labels": (lambda: fairramp.audit(scores, groups, labels, rule=rule, **more), labeled),
        "frontier, 21 points": (lambda: fairramp.frontier(scores, groups, labels, **more), labeled),
    }
    return {name: call for name, (call, _) in calls.items()}, {name: size for name, (_, size) in calls.items()}


def trimmed_peak(run: Callable[[], Any]) -> int | None:
    """Peak growth of memory during a call that cannot reuse memory freed earlier."""
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        return None
    return peak_of(run)


def main() -> None:
    """Measure, and print one line per subject."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("rows", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20.0, help="the subjects take turns this long")
    parser.add_argument("--weights", action="store_true", help="give each row a weight")
    parser.add_argument("--only", nargs="*", choices=COMPARED, help="measure only these subjects")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    subjects, sizes = subjects_of(options.rows, options.groups, weighted=options.weights)
    subjects = {name: run for name, run in subjects.items() if name in (options.only or COMPARED)}
    for run in subjects.values():  # load imports first
        run()
    memory = {name: trimmed_peak(run) for name, run in subjects.items()}
    times = best_of(subjects, options.seconds)
    print(f"{options.rows:,} rows, {options.groups:,} groups, {'with' if options.weights else 'without'} weights")
    print(f"{'':<20} {'CPU ms':>9} {'wall ms':>9} {'CPU ratio':>9} {'to':<12} {'memory':>7}")
    for name, spent in times.items():
        to = COMPARED[name] if COMPARED[name] in times else name
        ratio = spent["cpu"] / times[to]["cpu"]
        share = None if (peak := memory[name]) is None else peak / sizes[name]
        line = f"{name:<20} {1e3 * spent['cpu']:>9.1f} {1e3 * spent['wall']:>9.1f} {ratio:>9.2f} {to:<12} "
        line += f"{'–' if share is None else f'{share:.1%}':>7}"
        if name in TARGETS:
            most, most_memory = TARGETS[name]
            met = ratio <= most and (share is None or share <= most_memory)
            line += f"  {'met' if met else 'MISSED'}: at most {most:g}x and {most_memory:.0%}"
        print(line)


if __name__ == "__main__":
    main()
