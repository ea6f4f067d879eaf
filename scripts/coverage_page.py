"""Run the coverage study, store what it finds in docs/coverage.json, and write docs/coverage.md.

python -m scripts.coverage_page run [--replicates 400] [--processes 2]    simulate, store and write the page
python -m scripts.coverage_page write                                     write the page from the store
"""

import argparse
import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scripts.coverage_study import BARS, CONFIDENCE, DRAWN, REPLICATES, WIDE, Cell, cells, failures, run

HERE = Path(__file__).parent
STORE = HERE.parent / "docs" / "coverage.json"
PAGE = HERE.parent / "docs" / "coverage.md"

COLUMNS = ("replicates", "estimated", "proven", "audit", "withheld", "gap", "limit", "proven_limit")


def fingerprint(every: Sequence[Cell]) -> str:
    """Of the cells that results belong to."""
    return hashlib.sha256(json.dumps([asdict(cell) for cell in every]).encode()).hexdigest()[:16]


def save(every: Sequence[Cell], results: Sequence[dict[str, Any]]) -> None:
    """Store the results of all cells, a line each."""
    rounded = [[None if r[c] is None else round(r[c], 5) for c in COLUMNS] for r in results]
    content = {
        "cells": fingerprint(every),
        "columns": COLUMNS,
        "results": ["ROWS"],
    }
    rows = ",\n    ".join(json.dumps(row) for row in rounded)
    STORE.write_text(json.dumps(content, indent=2).replace('"ROWS"', rows) + "\n", encoding="utf-8")


def load(every: Sequence[Cell]) -> list[dict[str, Any]]:
    """The stored results of these cells."""
    content = json.loads(STORE.read_text(encoding="utf-8"))
    if content["cells"] != fingerprint(every):
        raise SystemExit(f"{STORE.name} belongs to other cells: run the study again")
    return [dict(zip(COLUMNS, row, strict=True)) for row in content["results"]]


def _percent(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{100 * value:.{digits}f}%"


def _described(cell: Cell) -> list[str]:
    first, last = max(cell.sizes), min(cell.sizes)
    rows = f"{first:,}" if first == last else f"{first:,} to {last:,}"
    return [
        f"{len(cell.sizes)}",
        rows,
        _percent(cell.rate),
        cell.target,
        f"{cell.ramp_width:g}",
        f"{cell.max_gap:g}",
        cell.weights + (f", × {cell.heavier:g} from 0.5 on" if cell.heavier != 1 else ""),
    ]


def _counted(every: Sequence[Cell], results: Sequence[dict[str, Any]]) -> list[str]:
    """One line per limit: in how many cells it holds as often as it should."""
    lines = []
    for limit, title in (
        ("estimated", "Estimated limit"),
        ("proven", "Proven limit"),
        ("audit", "Gap interval of audits"),
    ):
        found = [r[limit] for r in results if r[limit] is not None]
        failed = sum(limit in failures(c, r) for c, r in zip(every, results, strict=True))
        bar = BARS.get(limit)
        lines.append(
            f"| {title} | {len(found)} | {'' if bar is None else f'{bar:.0%}'} | {'' if bar is None else failed} "
            f"| {sum(f < CONFIDENCE for f in found)} | {sum(f > WIDE for f in found)} | {_percent(min(found))} |"
        )
    return lines


def page_text(every: Sequence[Cell], results: Sequence[dict[str, Any]]) -> str:
    """docs/coverage.md: the worst cells first."""
    fewest, most = (end(r["replicates"] for r in results) for end in (min, max))
    replicates = f"{most}" if fewest == most else f"{fewest} to {most}"
    both = list(zip(every, results, strict=True))
    failed = [bool(failures(cell, result)) for cell, result in both]
    n_withheld = sum(result["withheld"] > 0 for result in results)
    withheld = f"{n_withheld} cell{'' if n_withheld == 1 else 's'}"
    error = f"{100 * math.sqrt(BARS['estimated'] * (1 - BARS['estimated']) / fewest):.1f} points"
    order = sorted(
        range(len(both)),
        key=lambda i: (not failed[i], min(r for r in (results[i]["estimated"], 1.0) if r is not None)),
    )
    header = (
        "groups", "rows per group", "rate", "target", "ramp width", "max_gap", "weights",
        "fits", "estimated", "proven", "audit", "withheld", "gap", "estimated limit", "proven limit", "",
    )  # fmt: skip
    table = [
        "| " + " | ".join(header) + " |",
        "| --- |" + " ---: |" * 2 + " --- |" + " ---: |" * 2 + " --- |" + " ---: |" * 8 + " --- |",
    ]
    for i in order:
        cell, r = both[i]
        shares = [_percent(r[name]) for name in ("estimated", "proven", "audit", "withheld")]
        points = [_percent(r[name], 2) for name in ("gap", "limit", "proven_limit")]
        note = ", ".join([*(f"**{limit}**" for limit in failures(cell, r)), *([cell.name] if cell.name else [])])
        table.append("| " + " | ".join([*_described(cell), str(r["replicates"]), *shares, *points, note]) + " |")
    return f"""# How often the limits hold

Written by `make coverage-page` from `docs/coverage.json`; never change this page by hand.

A rule's certificate has an estimated limit and a proven limit of the gap in the population, both at 95%
confidence. Both are tested here in {len(both)} *cells*, with {replicates} simulated fits in each. A cell is one
way to fit: number and size of groups, selection rate, target, ramp width, allowed gap and weights. {DRAWN}
cells are drawn by a fixed Latin hypercube. The others are cases in which an earlier version failed, or for
which the documentation gives figures.

In each fit, scores are drawn from a known distribution (logit-normal, with another mean in each group), labels
are drawn so that the scores are calibrated, and weights are independent of both, except in the cells named
*weights depend on scores*. A rule is fitted, and its gap in the population is computed from the distribution,
without error. The limit holds if that gap is not larger. In the same fit, `audit` measures the classifier's own
decisions, and its 95% interval of the gap is compared with their true gap.

| | cells | must hold in | cells that fail | below 95% | above 99% | lowest |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
{chr(10).join(_counted(every, results))}

A cell fails if a limit holds in less than the required share of the fits, less three standard errors (of
{error} each for the estimated limit, or less). A limit that holds in more than 99% is wider than necessary:
that is reported, but is no failure. The estimated limit may be withheld where the smallest group expects fewer
than five yes or no decisions, or with Pareto weights. It was withheld in {withheld}, and is counted only
where it was given.

To run the study again, about 20 minutes on two cores: `make coverage-page`. `make nightly` also runs it, and
fails if a cell does.

## Every cell

Failed cells come first, then those in which the estimated limit holds least often. *Rate* is the target rate,
or the rate of the classifier's own decisions, or the base rate; *withheld* is the share of fits without an
estimated limit; *gap* is what 95% of the fits stay below in the population. Limits are means, in percentage
points.

{chr(10).join(table)}
"""


def main() -> None:
    """Run the study, or write its page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "write"))
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    parser.add_argument("--processes", type=int, default=min(os.cpu_count() or 1, 2))
    asked = parser.parse_args()
    every = cells()
    if asked.what == "run":
        save(every, run(list(enumerate(every)), asked.replicates, asked.processes))
    PAGE.write_text(page_text(every, load(every)), encoding="utf-8")


if __name__ == "__main__":
    main()
