"""Measure a fit of a large table: passes, rows and bytes that reach Python, seconds and memory.

    python benchmarks/scale.py ENGINE ROWS [GROUPS] [--as-if ROWS] [--folder FOLDER]

ENGINE is duckdb, polars or spark. DuckDB writes the rows to a Parquet file once, and the engine reads them from
there; `docs/scale.md` has the results. With --as-if, bins count as crowded when they would in a table of that
many rows, and the fit makes the same number of passes as on such a table.
"""

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

import fairramp
from fairramp.data import engines, lazy_rows

#: Scores from a hash of the row number, distributed differently in even and odd groups.
ROWS = """
COPY (
    SELECT i AS id, i % {groups} AS g, CASE WHEN i % 2 = 0 THEN u * u ELSE sqrt(u) END AS p
    FROM (SELECT i, (hash(i) >> 11) / 9007199254740992e0 AS u FROM range({rows}) r(i))
) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 1000000)
"""


def write(path: Path, rows: int, groups: int) -> None:
    """Write the table unless the file exists."""
    if not path.exists():
        import duckdb

        new = path.with_suffix(".part")
        duckdb.connect().execute(ROWS.format(rows=rows, groups=groups, path=new))
        new.rename(path)


def read(engine: str, path: Path) -> tuple[Any, Callable[[], int]]:
    """The lazy table, and a function that returns the bytes exchanged between Spark tasks."""
    if engine == "duckdb":
        import duckdb

        return duckdb.connect().read_parquet(str(path)), lambda: 0
    if engine == "polars":
        import polars

        return polars.scan_parquet(path), lambda: 0
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def exchanged() -> int:
        tracker, store = spark.sparkContext.statusTracker(), spark.sparkContext._jsc.sc().statusStore()
        stages = {s for job in tracker.getJobIdsForGroup() for s in tracker.getJobInfo(job).stageIds}
        ran = [store.lastStageAttempt(s) for s in stages]
        return sum(stage.shuffleWriteBytes() for stage in ran)

    return spark.read.parquet(str(path)), exchanged


def main() -> None:
    """Fit once and print one line per pass."""
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=["duckdb", "polars", "spark"])
    parser.add_argument("rows", type=lambda text: int(float(text)))
    parser.add_argument("groups", nargs="?", type=int, default=4)
    parser.add_argument("--as-if", type=float)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    path = options.folder / f"fairramp-{options.rows}-{options.groups}.parquet"
    write(path, options.rows, options.groups)
    frame, exchanged = read(options.engine, path)
    size = path.stat().st_size / 1e9
    print(f"{options.engine}, {options.rows:,} rows, {options.groups} groups, {size:.2f} GB Parquet")
    if options.as_if:
        lazy_rows.LOOKED_AT = int(lazy_rows.LOOKED_AT * options.rows / options.as_if)
        print(f"  crowded bins as with {options.as_if:,.0f} rows")

    fetch = engines.fetch
    total = [0, 0]

    def counting(lazy: Any) -> dict[str, Any]:
        started = time.perf_counter()
        found = fetch(lazy)
        n = len(next(iter(found.values())))
        size = sum(np.asarray(column).nbytes for column in found.values())
        total[0] += n
        total[1] += size
        print(f"  pass: {n:>9,} rows, {size / 1e3:>8,.0f} kB to Python, {time.perf_counter() - started:6.2f} s")
        return found

    engines.fetch = counting
    started = time.perf_counter()
    rule = fairramp.fit_frame(frame, score="p", group="g", max_gap=0.01)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    assert rule.record is not None
    print(f"  fit: {seconds:.2f} s, {total[0]:,} rows, {total[1] / 1e3:,.0f} kB to Python", end="")
    print(f", {exchanged() / 1e6:.2f} MB between tasks, peak memory of this process {peak:.2f} GB")

    engines.fetch = fetch
    started = time.perf_counter()
    decided = nw.from_native(rule.apply(frame, id="id", key="0" * 64))
    ready = time.perf_counter() - started
    yes = decided.select(nw.col("decision").cast(nw.Int64).sum(), nw.col("probability").sum()).collect()
    seconds = time.perf_counter() - started
    share, rate = (float(yes[name].to_list()[0]) / options.rows for name in ("decision", "probability"))
    print(f"  apply: {ready:.2f} s for checks, {seconds:.2f} s including all decisions", end="")
    print(f"; selection rate {share:.5f}, expected {rate:.5f}")


if __name__ == "__main__":
    main()
