"""Stored results as means over seeds, with standard errors."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from reproduction.protocol import CLASSIFIERS, DATA, Floats
from reproduction.runner import current
from reproduction.store import Result, Store

Pair = tuple[str, str]
PAIRS: tuple[Pair, ...] = tuple((data, kind) for data in DATA for kind in CLASSIFIERS)


@dataclass(frozen=True)
class Mean:
    """A mean over seeds, its standard error (NaN for one seed), and the number of seeds."""

    value: float
    error: float
    seeds: int

    @classmethod
    def of(cls, values: Floats) -> "Mean":
        """Return the mean of one number per seed."""
        n = len(values)
        error = float(np.std(values, ddof=1) / math.sqrt(n)) if n > 1 else math.nan
        return cls(float(np.mean(values)), error, n)


def signed(value: float, digits: int) -> str:
    """Return a number with its sign (a typographic minus), and zero without one."""
    text = f"{abs(value):.{digits}f}"
    if float(text) == 0:
        return text
    return ("−" if value < 0 else "+") + text


def listed(items: Iterable[str]) -> str:
    """Return the items as a list in a sentence.

    >>> listed(["RF", "k-NN", "LR"])
    'RF, k-NN and LR'
    """
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def worded(count: int) -> str:
    """Return a count below ten as a word.

    >>> worded(9), worded(21)
    ('nine', '21')
    """
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[count] if count < len(words) else f"{count:,}"


def with_error(mean: Mean, digits: int, factor: float = 1.0) -> str:
    """Return mean ± standard error, or the mean alone for one seed."""
    text = f"{factor * mean.value:.{digits}f}"
    return text if math.isnan(mean.error) else f"{text} ± {factor * mean.error:.{digits}f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 2) -> str:
    """Return a Markdown table; all columns but the first `left` are right-aligned."""
    marks = ["---"] * left + ["--:"] * (len(header) - left)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, marks, *rows])


class Results:
    """All current results of a store, by data and classifier, seed and method."""

    def __init__(self, store: Store) -> None:
        self.runs: dict[Pair, dict[int, dict[str, Result]]] = {pair: {} for pair in PAIRS}
        for task in store.tasks():
            self.runs[task.data, task.classifier][task.seed] = current(store, task)

    def has(self, method: str) -> bool:
        """Return whether any pair has results of a method."""
        return any(self.each(pair, method) for pair in PAIRS)

    def one(self, pair: Pair, method: str, seed: int = 0) -> Result | None:
        """Return the result of one seed, or None."""
        return self.runs[pair].get(seed, {}).get(method)

    def each(self, pair: Pair, method: str) -> dict[int, Result]:
        """Return the results of a method by seed, without failed runs."""
        found = {seed: run[method] for seed, run in self.runs[pair].items() if method in run}
        return {seed: result for seed, result in found.items() if "failed" not in result}

    def mean(self, pair: Pair, method: str, field: str) -> Mean | None:
        """Return the mean of one number over seeds, or None if there is none."""
        values = [result[field] for result in self.each(pair, method).values()]
        return Mean.of(np.array(values)) if values else None

    def paired(self, pair: Pair, first: str, second: str, field: str) -> Mean | None:
        """Return the mean difference between two methods over the seeds that have both."""
        a, b = self.each(pair, first), self.each(pair, second)
        values = [a[seed][field] - b[seed][field] for seed in a if seed in b]
        return Mean.of(np.array(values)) if values else None

    def failures(self, method: str) -> list[str]:
        """Return the distinct reasons for which a method failed."""
        results = (run[method] for runs in self.runs.values() for run in runs.values() if method in run)
        return sorted({result["failed"] for result in results if "failed" in result})

    def seeds(self, method: str) -> int:
        """Return the number of seeds that every pair has at least."""
        return min(len(self.each(pair, method)) for pair in PAIRS)
