"""Stored runs as soft ranks, average ranks and means with intervals; nothing here knows how they came.

*Soft rank* (the paper's, Section 5): within a task, errors are rescaled so that the best network has 0 and the
worst 1; then a network's values are averaged over tasks. *Average rank*: within a network and a task,
pretraining data are ranked by error, 1 the best, equal errors sharing their ranks; then averaged over tasks.

*Intervals.* Seeds split the same images anew, so that their results are not independent. The variance of a mean
over J seeds is taken as s²·(1/J + n_test/n_other), the corrected resampled t-test of Nadeau and Bengio, with J
− 1 degrees of freedom: wider than s²/J by far, and of about the right size for what another such dataset would
give.

*Sampling expectation of a gap.* A rule with rate r in each group's fit rows has, on test rows, a gap that is
about normal with variance Σ_k r(1 − r)(1/n_fit,k + 1/n_test,k) if decisions are hard; the mean of its size is
√(2/π) of the deviation.

Reference: C. Nadeau and Y. Bengio (2003). Inference for the generalization error. Machine Learning 52.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata, t

from reproduction.store import Result
from reproduction.vision.plan import Run
from reproduction.vision.runner import Settings
from reproduction.vision.store import Store

#: Errors by name (a network, a pretraining), then by task.
Errors = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with a 95% interval; the ends are NaN for one seed."""

    value: float
    low: float
    high: float
    seeds: int

    def text(self, digits: int, factor: float = 1.0, sign: bool = False) -> str:
        """Return value and interval."""
        plus = "+" if sign else ""
        # Adding 0 turns a rounded −0 into 0.
        parts = (round(factor * part, digits) + 0.0 for part in (self.value, self.low, self.high))
        texts = [f"{part:{plus}.{digits}f}".replace("-", "−") for part in parts]
        return texts[0] if math.isnan(self.low) else f"{texts[0]} ({texts[1]} to {texts[2]})"


def interval(values: Iterable[float], test_share: float) -> Interval:
    """Return the mean of one number per seed, with the corrected interval.

    Parameters
    ----------
    values : numbers
        One for each seed.
    test_share : float
        Test rows as a share of all rows of a task.

    Examples
    --------
    >>> interval([0.1, 0.2, 0.3], 1 / 6).text(2)
    '0.20 (−0.11 to 0.51)'
    """
    x = np.array(list(values), dtype=np.float64)
    mean, n = float(x.mean()), len(x)
    if n < 2:
        return Interval(mean, math.nan, math.nan, n)
    half = float(t.ppf(0.975, n - 1) * x.std(ddof=1) * math.sqrt(1 / n + test_share / (1 - test_share)))
    return Interval(mean, mean - half, mean + half, n)


def soft_ranks(errors: Errors) -> dict[str, float]:
    """Return each network's mean over tasks of its error between the best (0) and the worst (1) of that task.

    Examples
    --------
    >>> soft_ranks({"a": {"x": 0.1, "y": 0.3}, "b": {"x": 0.3, "y": 0.1}, "c": {"x": 0.2, "y": 0.1}})
    {'a': 0.5, 'b': 0.5, 'c': 0.25}
    """
    tasks = common(errors)
    found: dict[str, list[float]] = {name: [] for name in errors}
    for task in tasks:
        values = {name: errors[name][task] for name in errors}
        best, worst = min(values.values()), max(values.values())
        for name, value in values.items():
            found[name].append((value - best) / (worst - best) if worst > best else 0.0)
    return {name: round(float(np.mean(values)), 12) for name, values in found.items() if values}


def average_ranks(errors: Errors) -> dict[str, float]:
    """Return each name's mean over tasks of its rank by error, 1 the best.

    Examples
    --------
    >>> average_ranks({"small": {"x": 0.3, "y": 0.2}, "large": {"x": 0.1, "y": 0.2}})
    {'small': 1.75, 'large': 1.25}
    """
    tasks = common(errors)
    if not tasks:
        return {}
    ranks = [rankdata([errors[name][task] for name in errors]) for task in tasks]
    return dict(zip(errors, np.mean(ranks, axis=0).tolist(), strict=True))


def common(errors: Errors) -> list[str]:
    """Return the tasks that all names have, sorted."""
    sets = [set(of) for of in errors.values()]
    return sorted(set.intersection(*sets)) if sets else []


def expected_gap(rate: float, fit: Mapping[str, int], test: Mapping[str, int]) -> float:
    """Return √(2/π)·√(Σ_k r(1 − r)(1/n_fit,k + 1/n_test,k)).

    Examples
    --------
    >>> round(expected_gap(0.5, {"A": 400, "B": 400}, {"A": 400, "B": 400}), 4)
    0.0399
    """
    return math.sqrt(2 / math.pi * rate * (1 - rate) * sum(1 / fit[name] + 1 / test[name] for name in test))


class Table:
    """The current runs of one data source.

    Parameters
    ----------
    store : Store
        Where runs are.
    settings : Settings
        Of the runs that count: others are left out.
    data : sequence of str
        Names of datasets.
    """

    def __init__(self, store: Store, settings: Settings, data: Sequence[str]) -> None:
        entries = [entry for entry in store.entries() if entry.run.data in data]
        self.results: dict[Run, Result] = {e.run: e.result for e in entries if settings.key(e.run) == e.key}

    def __bool__(self) -> bool:
        return bool(self.results)

    def select(self, **wanted: Any) -> dict[Run, Result]:
        """Return the runs whose fields are, or are among, what is given."""

        def fits(run: Run) -> bool:
            return all(
                getattr(run, name) in value
                if isinstance(value, tuple | list | set)
                else getattr(run, name) == value
                for name, value in wanted.items()
            )

        return {run: result for run, result in self.results.items() if fits(run)}

    def names(self, field: str) -> list[Any]:
        """Return the values of a field, in the order of the runs."""
        return list(dict.fromkeys(getattr(run, field) for run in self.results))

    def test_share(self) -> float:
        """Return test rows as a share of all rows of a run, training rows counted whole."""
        whole = [result["rows"] for run, result in self.results.items() if run.fraction == 1.0]
        shares = [
            sum(rows["test"].values()) / sum(sum(part.values()) for part in rows.values()) for rows in whole
        ]
        return float(np.mean(shares)) if shares else 1 / 6

    def mean(self, number: Callable[[Run, Result], float | None], **wanted: Any) -> Interval | None:
        """Return the mean of a number: over the runs of each seed, then over seeds."""
        by_seed: dict[int, list[float]] = defaultdict(list)
        for run, result in self.select(**wanted).items():
            value = number(run, result)
            if value is not None:
                by_seed[run.seed].append(value)
        if not by_seed:
            return None
        return interval([float(np.mean(values)) for values in by_seed.values()], self.test_share())

    def difference(
        self,
        number: Callable[[Run, Result], float | None],
        first: Mapping[str, Any],
        partner: Callable[[Run], Mapping[str, Any]],
    ) -> Interval | None:
        """Return the mean of a number over the runs `first`, each less that of its partner.

        `partner` tells in which fields the partner of a run differs from it.
        """
        by_seed: dict[int, list[float]] = defaultdict(list)
        for run, result in self.select(**first).items():
            other = Run(**{**run.as_dict(), **partner(run)})  # type: ignore[arg-type]
            if other in self.results:
                values = number(run, result), number(other, self.results[other])
                if values[0] is not None and values[1] is not None:
                    by_seed[run.seed].append(values[0] - values[1])
        if not by_seed:
            return None
        return interval([float(np.mean(values)) for values in by_seed.values()], self.test_share())

    def errors(
        self, method: str, backbones: Sequence[str], fraction: float, seed: int
    ) -> dict[str, dict[str, float]]:
        """Return the error of a method by network and task."""
        found: dict[str, dict[str, float]] = {name: {} for name in backbones}
        for run, result in self.select(backbone=tuple(backbones), fraction=fraction, seed=seed).items():
            value = accuracy_of(method)(run, result)
            if value is not None:
                found[run.backbone][f"{run.data} {run.task}"] = 1 - value
        return {name: of for name, of in found.items() if of}

    def over_seeds(self, summary: Callable[[int], Mapping[str, float]]) -> dict[str, Interval]:
        """Return a summary of each seed as means over the seeds that have all names."""
        found = [summary(seed) for seed in self.names("seed")]
        names = list(dict.fromkeys(name for one in found for name in one))
        whole = [one for one in found if len(one) == len(names)]
        if not whole:
            return {}
        return {name: interval([one[name] for one in whole], self.test_share()) for name in names}


def accuracy_of(method: str) -> Callable[[Run, Result], float | None]:
    """Return how to read a method's accuracy off a result; None where the method failed."""
    return lambda _, result: result["methods"][method].get("accuracy")


def gap_of(method: str) -> Callable[[Run, Result], float | None]:
    """Return how to read a method's gap off a result; None where the method failed."""
    return lambda _, result: result["methods"][method].get("gap")


def chance_gap(_: Run, result: Result) -> float:
    """Return the gap that chance alone leaves on the test rows of a run."""
    rows = result["rows"]
    return expected_gap(result["methods"]["rto"]["target_rate"], rows["fit"], rows["test"])
