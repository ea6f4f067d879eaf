"""Run the coverage study, store the results in docs/coverage.json, and write docs/coverage.md from them.

python -m scripts.coverage_page run [--replicates 400] [--processes 2]    simulate, store and write the page
python -m scripts.coverage_page extend [...]                              the same for new cells at the end only
python -m scripts.coverage_page write                                     write the page from stored results
"""

import argparse
import hashlib
import json
import math
import os
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from scripts.coverage_study import APART, BARS, CONFIDENCE, DRAWN, REPLICATES, WIDE, Cell, cells, failures, run

HERE = Path(__file__).parent
STORE = HERE.parent / "docs" / "coverage.json"
PAGE = HERE.parent / "docs" / "coverage.md"

#: The page's text for the names that cells have in `scripts.coverage_study`, which are part of the fingerprint.
TARGETS = {
    "number": "given rate",
    "optimal": "`optimal`",
    "accuracy": "`accuracy`",
    "balanced_accuracy": "`balanced_accuracy`",
    "base_rate": "`base_rate`",
}
WEIGHTS = {
    "none": "none",
    "lognormal 1.5": "lognormal, σ = 1.5",
    "lognormal 2": "lognormal, σ = 2",
    "Pareto 1.5": "Pareto, shape 1.5",
    "a tenth at 20": "20 for 10% of rows, 1 for the rest",
}
NOTES = {
    "heavy rows on one side": "large weights on one side of the threshold",
    "wide ramp near 0 or 1": "wide ramp, rate near 0% or 100%",
    "few rows selected": "few rows selected",
    "sizes of the proven limit's figures": "group sizes used in the documentation",
    "allowed gap": "`max_gap` above 0",
    "weights depend on scores": "weights depend on scores",
    "a group selects nobody": "nobody selected in one group",
    "true positive rates": "true positive rates",
    "false positive rates": "false positive rates",
    "equalized odds": "equalized odds",
}
#: Fields of cells that stored results of equal selection rates did not have.
_LATER = ("criterion", "positives")

COLUMNS = ("replicates", "estimated", "proven", "audit", "withheld", "gap", "limit", "proven_limit")


def fingerprint(every: Sequence[Cell]) -> str:
    """A hash of the cells, which ties stored results to them."""
    known = [
        {name: value for name, value in asdict(cell).items() if cell.by_label or name not in _LATER}
        for cell in every
    ]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]


def save(every: Sequence[Cell], results: Sequence[dict[str, Any]]) -> None:
    """Store the results, one line per cell."""
    rounded = [[None if r[c] is None else round(r[c], 5) for c in COLUMNS] for r in results]
    content = {
        "cells": fingerprint(every),
        "columns": COLUMNS,
        "results": ["ROWS"],
    }
    rows = ",\n    ".join(json.dumps(row) for row in rounded)
    STORE.write_text(json.dumps(content, indent=2).replace('"ROWS"', rows) + "\n", encoding="utf-8")


def load(every: Sequence[Cell], *, some: bool = False) -> list[dict[str, Any]]:
    """The stored results of these cells, or, with `some`, of the first ones of them."""
    content = json.loads(STORE.read_text(encoding="utf-8"))
    if content["cells"] != fingerprint(every[: len(content["results"])] if some else every):
        raise SystemExit(f"{STORE.name} was computed for other cells: run the study again")
    return [dict(zip(COLUMNS, row, strict=True)) for row in content["results"]]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}%"


def _points(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _rows(cell: Cell) -> str:
    fewest, most = min(cell.sizes), max(cell.sizes)
    return f"{most:,}" if most == fewest else f"{fewest:,} to {most:,}"


def _described(cell: Cell) -> list[str]:
    heavier = f", times {cell.heavier:g} for scores of at least 0.5" if cell.heavier != 1 else ""
    return [
        f"{len(cell.sizes)}",
        _rows(cell),
        _percent(cell.rate),
        TARGETS[cell.target],
        f"{cell.ramp_width:.4f}",
        f"{cell.max_gap:.2f}",
        WEIGHTS[cell.weights] + heavier,
    ]


def _table(header: Sequence[str], left: Sequence[int], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; all columns but `left` are right-aligned."""
    marks = ["---" if i in left else "---:" for i in range(len(header))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, marks, *rows])


def _summary(every: Sequence[Cell], results: Sequence[dict[str, Any]]) -> str:
    """One row per limit: how often it holds."""
    rows = []
    for limit, title in (
        ("estimated", "Estimated limit"),
        ("proven", "Proven limit"),
        ("audit", "Gap interval from `audit`"),
    ):
        found = [r[limit] for r in results if r[limit] is not None]
        failed = sum(limit in failures(c, r) for c, r in zip(every, results, strict=True))
        bar = BARS.get(limit)
        rows.append(
            [
                title,
                f"{len(found)}",
                _percent(sum(found) / len(found)),
                _percent(min(found)),
                f"{sum(f < CONFIDENCE for f in found)}",
                f"{sum(f > WIDE for f in found)}",
                "–" if bar is None else _percent(bar),
                "–" if bar is None else f"{failed}",
            ]
        )
    header = (
        *("", "setups", "holds on average", "lowest share", "setups below 95%", "setups above 99%"),
        *("required share", "failed setups"),
    )
    return _table(header, [0], rows)


def _worst(every: Sequence[Cell], results: Sequence[dict[str, Any]], limit: str) -> str:
    """The setup in which a limit holds least often, in words."""
    given = [i for i, r in enumerate(results) if r[limit] is not None]
    cell = every[min(given, key=lambda i: results[i][limit])]
    ramp = f"ramp width {cell.ramp_width:g}" if cell.ramp_width else "no ramp"
    weights = "no weights" if cell.weights == "none" else f"weights {_described(cell)[-1]}"
    return f"{len(cell.sizes)} groups of {_rows(cell)} rows, rate {_percent(cell.rate)}, {ramp}, {weights}"


def _opening(every: Sequence[Cell], results: Sequence[dict[str, Any]], replicates: str) -> str:
    estimated, proven = ([r[name] for r in results if r[name] is not None] for name in ("estimated", "proven"))
    n_failed = sum(bool(failures(c, r)) for c, r in zip(every, results, strict=True))
    outcome = "No setup fails" if n_failed == 0 else f"**{n_failed} of {len(every)} setups fail**"
    return f"""
We simulated {len(every)} setups with {replicates} fits each. The
[estimated limit](guide/guarantees.md#for-new-people) on the gap holds in
{_percent(sum(estimated) / len(estimated))} of the fits on average; in the worst setup
({_worst(every, results, "estimated")}), it holds in {_percent(min(estimated))}. The proven limit, which exists
only without weights, holds in {_percent(sum(proven) / len(proven))} of the fits on average, and in
{_percent(min(proven))} of the fits in its worst setup. Both limits are designed to hold with 95% confidence.
{outcome} the study's test, which requires that the estimated limit hold in at least
{_percent(BARS["estimated"])} of the fits and the proven limit in at least {_percent(BARS["proven"])}, in each
case minus three standard errors.
"""


def _error_rates(every: Sequence[Cell], results: Sequence[dict[str, Any]]) -> str:
    """How often limits on true and false positive rates hold."""
    known = [(cell, r) for cell, r in zip(every, results, strict=True) if cell.by_label]
    chosen, odds = ([(c, r) for c, r in known if len(c.events) == n] for n in (1, 2))
    both = [r["proven"] for _, r in odds]
    estimated, proven = ([r[name] for _, r in chosen] for name in ("estimated", "proven"))
    low = sum(share < BARS["estimated"] for share in estimated)
    failed = sum(bool(failures(cell, r)) for cell, r in chosen)
    fewest, most = (end(size for cell, _ in chosen for size in cell.sizes) for end in (min, max))
    fits = min(r["replicates"] for _, r in chosen)
    verdict = "none fails the test" if failed == 0 else f"**{failed} fail the test**"
    return f"""
## True and false positive rates

Of the {len(every)} setups, {len(chosen)} compare true or false positive rates, with {fewest:,} to {most:,} rows
per group. The number of rows with each label varies from fit to fit. The estimated limit holds in
{_percent(sum(estimated) / len(estimated))} of the fits on average, and in {_percent(min(estimated))} in the worst
of these setups. The proven limit holds in {_percent(sum(proven) / len(proven))} on average, and in
{_percent(min(proven))} in the worst. In {_setups(low) if low else "each of these setups"}, the estimated limit
holds in {"less than" if low else "at least"} {_percent(BARS["estimated"])} of the fits; allowing for the sampling
error of {fits:,} fits, {verdict}. The table of all setups marks them *true positive rates* or *false positive
rates*.

Another {len(odds)} setups, marked *equalized odds*, compare both rates. Their estimated limit is the proven
limit. It holds if neither of the two gaps exceeds it, which is the case in
{_percent(sum(both) / len(both))} of the fits on average, and in {_percent(min(both))} in the worst of these
setups.
"""


def _method(results: Sequence[dict[str, Any]], n_cells: int) -> str:
    fewest = min(r["replicates"] for r in results)
    error = f"{100 * math.sqrt(BARS['estimated'] * (1 - BARS['estimated']) / fewest):.1f} points"
    n_withheld = sum(result["withheld"] > 0 for result in results)
    return f"""
## How it was measured

A *setup* is a combination of the number and sizes of the groups, the distribution of scores, the selection rate,
the target, the ramp width, the allowed gap and the weights. Of the {n_cells} setups, {DRAWN} are drawn from a
Latin hypercube with a fixed seed. The other {n_cells - DRAWN} are setups in which an earlier version of fairramp
failed, setups for which the documentation gives numbers, setups in which weights depend on scores, and setups
that compare error rates.

In each fit, scores are drawn from a known distribution (logit-normal, with a different mean in each group),
labels are drawn so that the scores are calibrated, and weights are drawn independently of both, except in the
setups marked *weights depend on scores*. A rule is fitted, and its gap in the population is computed from the
distribution, without sampling error. A limit holds if this gap does not exceed it. On the same rows, `audit`
measures the gap in the classifier's own decisions, and we check whether the 95% confidence interval from `audit`
contains the population gap in these decisions.

In setups that compare true or false positive rates, labels are drawn first: {_shares()} of the rows have label
1, with fewer in the first group and more in the last. Scores are logit-normal given the label, with a mean that
is {APART:g} standard deviations higher for label 1; for equalized odds, the difference is {0.8 * APART:g} in the
first group and {1.2 * APART:g} in the last. Intervals from `audit` are not measured in these setups.

A setup fails if the share of fits in which a limit holds is more than three standard errors below the required
share (one standard error is about {error} for the estimated limit). A limit that holds in more than 99% of the
fits is larger than necessary; the table above counts the setups with such a limit, but they do not fail. With
Pareto weights, the estimated limit may be withheld, that is, not given. It may also be withheld if, in the
smallest group, fewer than five rows are expected to be selected or fewer than five are expected not to be
selected. A setup in which it is withheld for any other reason fails. It was withheld in at least one fit of
{_setups(n_withheld)}; fits without an estimated limit do not count toward the share in which it holds.

`make coverage-page` runs the study again, in about 20 minutes on two cores. `make nightly` runs it as a test.
"""


def _shares() -> str:
    """The shares of label 1 in setups that compare error rates."""
    return " or ".join(f"{share:.0%}" for share in sorted({c.positives for c in cells() if c.by_label}))


def _setups(count: int) -> str:
    return "one setup" if count == 1 else f"{count} setups"


def _details(every: Sequence[Cell], results: Sequence[dict[str, Any]]) -> str:
    failed = [failures(cell, result) for cell, result in zip(every, results, strict=True)]
    order = sorted(
        range(len(every)),
        key=lambda i: (not failed[i], min(r for r in (results[i]["estimated"], 1.0) if r is not None)),
    )
    rows = []
    for i in order:
        cell, r = every[i], results[i]
        shares = [_percent(r[name]) for name in ("estimated", "proven", "audit", "withheld")]
        points = [_points(r[name]) for name in ("gap", "limit", "proven_limit")]
        note = [*(f"**fails: {limit}**" for limit in failed[i]), *([NOTES[cell.name]] if cell.name else [])]
        rows.append([*_described(cell), *shares, *points, ", ".join(note)])
    header = (
        "groups", "rows per group", "rate", "target", "ramp width", "`max_gap`", "weights",
        "estimated limit holds", "proven limit holds", "`audit` interval holds", "withheld",
        "gap, 95th percentile", "mean estimated limit", "mean proven limit", "note",
    )  # fmt: skip
    return f"""
## Every setup

Setups that fail, if any, come first; the others are sorted by how often the estimated limit holds. For the
target *given rate*, the column *rate* is the target rate. For `base_rate`, it is the share of positive labels,
and for the other targets, it is the selection rate of the classifier's own decisions, or their true or false
positive rate in setups that compare these. This share or rate is given for a group whose mean logit is halfway
between the lowest and the highest mean logit of all groups. The interval from `audit` holds if it contains the
population gap in the classifier's own decisions. *Withheld* is the share of fits without an estimated limit. The
last three columns of numbers are in percentage points: the 95th percentile of the gap in the population, the
mean estimated limit and the mean proven limit. With weights, there is no proven limit.

{_table(header, [0, 3, 6, 14], rows)}
"""


def page_text(every: Sequence[Cell], results: Sequence[dict[str, Any]]) -> str:
    """docs/coverage.md: the result, how it was measured, and every setup."""
    fewest, most = (end(r["replicates"] for r in results) for end in (min, max))
    replicates = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    parts = [
        "<!-- Written by `make coverage-page` from docs/coverage.json: do not edit. -->",
        "# How often the limits hold",
        _filled(_opening(every, results, replicates)),
        _summary(every, results),
        _filled(_error_rates(every, results)),
        _filled(_method(results, len(every))),
        _filled(_details(every, results)),
    ]
    return "\n\n".join(parts) + "\n"


def _filled(text: str) -> str:
    """Paragraphs wrapped at 118 characters."""
    wrap = partial(textwrap.fill, width=118, break_long_words=False, break_on_hyphens=False)
    parts = text.strip().split("\n\n")
    return "\n\n".join(part if part.startswith(("|", "#")) else wrap(" ".join(part.split())) for part in parts)


def main() -> None:
    """Run the study, or write the page from stored results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "extend", "write"))
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    parser.add_argument("--processes", type=int, default=min(os.cpu_count() or 1, 2))
    options = parser.parse_args()
    every = cells()
    if options.what != "write":
        kept = load(every, some=True) if options.what == "extend" else []
        new = list(enumerate(every))[len(kept) :]
        save(every, [*kept, *run(new, options.replicates, options.processes)])
    PAGE.write_text(page_text(every, load(every)), encoding="utf-8")


if __name__ == "__main__":
    main()
