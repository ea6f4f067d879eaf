"""Summarize stored runs as soft ranks, average ranks and means with intervals.

*Soft rank* (Section 5 of the paper): within a task, errors are rescaled to 0 for the best network and 1 for the
worst; then they are averaged over tasks. *Average rank*: within a network and a task, pretraining data are
ranked by error (1 is best, ties share their ranks); then ranks are averaged over tasks.

*Intervals.* Seeds split the same images, so their results are not independent. The variance of a mean over J
seeds is taken as s²·(1/J + n_test/n_other) with J − 1 degrees of freedom: the corrected resampled t-test of
Nadeau and Bengio. It is much larger than s²/J, and close to the variance between datasets of this size.

*Gap expected by chance.* For a rule with rate r in each group's fit rows and hard decisions, the difference
between two groups' rates on test rows is approximately normal with variance Σ_k r(1 − r)(1/n_fit,k +
1/n_test,k). Its mean absolute value is √(2/π) standard deviations.

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

#: Errors by name (of a network or its pretraining data), then by task.
Errors = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with a 95% confidence interval; the ends are NaN for one seed."""

    value: float
    low: float
    high: float
    seeds: int

    def text(self, digits: int, factor: float = 1.0, sign: bool = False) -> str:
        """Return value and interval."""
        plus = "+" if sign else ""
        # Adding 0 turns a rounded −0 into 0.
        parts = (round(factor * part, digits) + 0.0 for part in (self.value, self.low, self.high))
        texts = [f"{part:{plus if part else ''}.{digits}f}".replace("-", "−") for part in parts]
        return texts[0] if math.isnan(self.low) else f"{texts[0]} ({texts[1]} to {texts[2]})"


def interval(values: Iterable[float], test_share: float) -> Interval:
    """Return the mean of one number per seed, with the corrected interval.

    Parameters
    ----------
    values : numbers
        One per seed.
    test_share : float
        Share of test rows among all rows of a task.

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
    """Return the soft rank of each network.

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
    """Return the mean over tasks of each name's rank by error; 1 is best.

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
    """Return the sorted tasks that all names have."""
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
        The stored runs.
    settings : Settings
        Only runs with these settings are used.
    data : sequence of str
        Names of datasets.
    """

    def __init__(self, store: Store, settings: Settings, data: Sequence[str]) -> None:
        entries = [entry for entry in store.entries() if entry.run.data in data]
        self.results: dict[Run, Result] = {e.run: e.result for e in entries if settings.key(e.run) == e.key}

    def __bool__(self) -> bool:
        return bool(self.results)

    def select(self, **wanted: Any) -> dict[Run, Result]:
        """Return the runs whose fields equal the given values, or are among them."""

        def fits(run: Run) -> bool:
            return all(
                getattr(run, name) in value
                if isinstance(value, tuple | list | set)
                else getattr(run, name) == value
                for name, value in wanted.items()
            )

        return {run: result for run, result in self.results.items() if fits(run)}

    def names(self, field: str) -> list[Any]:
        """Return the distinct values of a field, in the order of the runs."""
        return list(dict.fromkeys(getattr(run, field) for run in self.results))

    def test_share(self) -> float:
        """Return the share of test rows among all rows of a run with all training rows."""
        whole = [result["rows"] for run, result in self.results.items() if run.fraction == 1.0]
        shares = [
            sum(rows["test"].values()) / sum(sum(part.values()) for part in rows.values()) for rows in whole
        ]
        return float(np.mean(shares)) if shares else 1 / 6

    def mean(self, number: Callable[[Run, Result], float | None], **wanted: Any) -> Interval | None:
        """Return the mean of a number, first over the runs of each seed, then over seeds."""
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
        sign: int = 1,
    ) -> Interval | None:
        """Return the mean paired difference of a number between the runs `first` and their partners.

        `partner` returns the fields in which the partner of a run differs from it; the sign −1 returns partner −
        first.
        """
        by_seed: dict[int, list[float]] = defaultdict(list)
        for run, result in self.select(**first).items():
            other = Run(**{**run.as_dict(), **partner(run)})  # type: ignore[arg-type]
            if other in self.results:
                values = number(run, result), number(other, self.results[other])
                if values[0] is not None and values[1] is not None:
                    by_seed[run.seed].append(sign * (values[0] - values[1]))
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
        """Return the mean of a summary over the seeds that have all names."""
        found = [summary(seed) for seed in self.names("seed")]
        names = list(dict.fromkeys(name for one in found for name in one))
        whole = [one for one in found if len(one) == len(names)]
        if not whole:
            return {}
        return {name: interval([one[name] for one in whole], self.test_share()) for name in names}


def accuracy_of(method: str) -> Callable[[Run, Result], float | None]:
    """Return a function for a method's accuracy in a result; None if the method failed or was not run."""
    return number_of(method, "accuracy")


def gap_of(method: str) -> Callable[[Run, Result], float | None]:
    """Return a function for a method's gap in a result; None if the method failed or was not run."""
    return number_of(method, "gap")


def number_of(method: str, field: str) -> Callable[[Run, Result], float | None]:
    """Return a function for a stored number of a method; None if the method failed or was not run."""
    return lambda _, result: result["methods"].get(method, {}).get(field)


def chance_gap(_: Run, result: Result) -> float:
    """Return the gap expected by chance on the test rows of a run."""
    rows = result["rows"]
    return expected_gap(result["methods"]["rto"]["target_rate"], rows["fit"], rows["test"])
