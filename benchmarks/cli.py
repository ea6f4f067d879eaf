"""Benchmark the commands fit and apply on a large Parquet file: peak memory, and time relative to a DuckDB copy.

    python benchmarks/cli.py            20 million rows
    python benchmarks/cli.py 1000000    quick

Each command runs in its own process, and the operating system reports its peak memory.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import duckdb

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000_000
#: Bytes, for any number of rows.
MOST_MEMORY = 1.5e9

COPY = "import duckdb, sys; duckdb.sql(f\"COPY (FROM '{sys.argv[1]}') TO '{sys.argv[2]}' (FORMAT parquet)\")"


def make(path: Path) -> None:
    """Write scores, two group columns, labels and string ids."""
    duckdb.sql(f"""
        COPY (
            SELECT 'P' || lpad(CAST(i AS VARCHAR), 9, '0') AS id, round(random() ** 1.7, 6) AS p,
                   CASE WHEN random() < 0.4 THEN 'Female' ELSE 'Male' END AS sex,
                   CAST(floor(4 * random()) AS INTEGER) AS region, CAST(random() < 0.3 AS TINYINT) AS y
            FROM range({ROWS}) AS t(i)
        ) TO '{path}' (FORMAT parquet)
    """)


def measured(arguments: list[str]) -> tuple[float, float]:
    """Wall time in seconds and peak memory in bytes of a process."""
    start = time.perf_counter()
    with open(os.devnull, "wb") as nowhere:
        pid = os.posix_spawn(
            arguments[0], arguments, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)]
        )
        _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"{' '.join(arguments)} failed with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - start, usage.ru_maxrss * 1024.0


def main() -> None:
    """Print one line per command."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        data, rule, key = place / "scores.parquet", place / "rule.json", place / "key.txt"
        make(data)
        print(f"{ROWS:,} rows, {data.stat().st_size / 1e6:,.0f} MB of Parquet, {os.cpu_count()} cores")
        command = [sys.executable, "-m", "fairramp.cli"]
        copying, _ = measured([sys.executable, "-c", COPY, str(data), str(place / "copy.parquet")])
        print(f"{'DuckDB copy':<22} {copying:7.1f} s")
        columns = ["--score", "p", "--group", "sex", "--group", "region"]
        draws = ["--id", "id", "--key-file", str(key)]
        measured([*command, "keygen", str(key)])
        runs = {
            "fit": ["fit", str(data), *columns, "--max-gap", "0.02", "-o", str(rule)],
            "fit, with labels": [
                "fit",
                str(data),
                *columns,
                "--label",
                "y",
                "--max-gap",
                "0.02",
                "-o",
                str(rule),
                "--replace",
            ],
            "apply, probability": ["apply", str(rule), str(data), "-o", str(place / "out.parquet")],
            "apply, decisions": ["apply", str(rule), str(data), "-o", str(place / "out.parquet"), *draws],
            "apply, to CSV": ["apply", str(rule), str(data), "-o", str(place / "out.csv"), *draws],
        }
        worst = 0.0
        for name, arguments in runs.items():
            seconds, peak = measured([*command, *arguments])
            worst = max(worst, peak)
            print(f"{name:<22} {seconds:7.1f} s  {seconds / copying:5.1f} × the copy  {peak / 1e9:5.2f} GB peak")
        if worst > MOST_MEMORY:
            sys.exit(f"peak memory is {worst / 1e9:.2f} GB, above {MOST_MEMORY / 1e9:.1f} GB")


if __name__ == "__main__":
    main()
