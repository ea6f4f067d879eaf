"""Benchmark DuckDB tables relative to ``SELECT g, count(*), sum(p) GROUP BY g``, and measure peak memory.

Baseline, fit and apply take turns, and the best time of each counts. The rows are written once, to a Parquet file
in a temporary folder. Needs ``pip install fairramp[cli]``.

    python benchmarks/tables.py [--rows 20000000] [--groups 4]
"""

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

import duckdb

import fairramp

KEY = "0123456789abcdef" * 4


def main() -> None:
    """Print one line per subject."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        path = Path(folder) / "rows.parquet"
        connection.execute(
            f"""COPY (
                SELECT i AS id, 'group ' || k AS g, random() ^ (1 + k / {options.groups}) AS p
                FROM (SELECT i, floor(random() * {options.groups})::INT AS k FROM range({options.rows}) r(i))
            ) TO '{path}'"""
        )
        rows = connection.read_parquet(str(path))
        rule = fairramp.fit_frame(rows, score="p", group="g", max_gap=0.02)
        subjects = {
            "baseline": lambda: rows.aggregate("g, count(*), sum(p)", "g").fetchall(),
            "fit": lambda: fairramp.fit_frame(rows, score="p", group="g", max_gap=0.02),
            "probability": lambda: rule.apply(rows).aggregate("sum(probability)").fetchall(),
            "decision": lambda: rule.apply(rows, id="id", key=KEY).aggregate("sum(decision)").fetchall(),
        }
        best = dict.fromkeys(subjects, float("inf"))
        for _ in range(options.rounds):
            for name, run in subjects.items():
                start = time.perf_counter()
                run()
                best[name] = min(best[name], time.perf_counter() - start)
    for name, seconds in best.items():
        print(f"{name:>12}  {seconds:8.3f} s  {seconds / best['baseline']:6.1f}")
    unit = 1e9 if sys.platform == "darwin" else 1e6
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit:.2f} GB")


if __name__ == "__main__":
    main()
