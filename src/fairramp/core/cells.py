"""Strata: parts of the population within which groups are compared.

A *cell* is one group in one stratum, labeled (stratum, group). Cells are coded like groups, so everything that
works per group works per cell. Only the gap differs: it compares cells of the same stratum.

    gap = max over strata of (largest − smallest rate of its cells)

Equalized odds compares two rates of each group. They form one list, first the true positive rates of all groups,
then the false positive rates, in which a rate is compared with those of its own kind: two more strata. The rates
of several classes form such a list, too.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fairramp.core.curve import Floats, Integers
from fairramp.core.events import Event
from fairramp.core.labels import Label, label_key, label_parts
from fairramp.core.table import name_column


def stratum_index(labels: Sequence[Label]) -> Integers:
    """Index of each cell's stratum, from 0; the cells of a stratum are adjacent."""
    keys = [label_key(label[0]) for label in labels if isinstance(label, tuple)]
    return np.cumsum([i > 0 and key != keys[i - 1] for i, key in enumerate(keys)], dtype=np.intp)


def kinds_of(n_groups: int, n_events: int, strata: Any = None) -> Any:
    """Index of the rates that each rate is compared with, in a list of all groups' rates, event by event.

    For one event, these are the strata; None means that all are compared.

    >>> kinds_of(2, 2).tolist(), kinds_of(3, 2, [0, 0, 1]).tolist(), kinds_of(2, 1)
    ([0, 0, 1, 1], [0, 0, 1, 2, 2, 3], None)
    """
    if n_events == 1:
        return strata
    inner = np.zeros(n_groups, dtype=np.intp) if strata is None else np.asarray(strata)
    return np.concatenate([inner + i * (inner[-1] + 1) for i in range(n_events)])


def cell_columns(
    labels: Sequence[Label], *, stratified: bool, events: Sequence[Event] = (), outer: str = "stratum"
) -> dict[str, Any]:
    """Columns of a table that name groups; strata get a column of their own, and so do the events of rates.

    `outer` is what the first half of a label is.
    """
    which = {events[0].column: name_column([event.short for event in events])} if events else {}
    if not stratified:
        return which | {"group": name_column(labels)}
    halves = zip(*(label_parts(label) for label in labels), strict=True)
    return which | {name: name_column(half) for name, half in zip((outer, "group"), halves, strict=True)}


def largest_gap(rates: Any, strata: Any = None) -> float:
    """Largest difference between two rates, within a stratum if there are strata."""
    return float(worst_stratum(np.ptp, strata, np.asarray(rates, dtype=np.float64)))


def strata_slices(strata: Any, n_cells: int) -> list[slice]:
    """The slice of each stratum's cells; without strata, one slice of all cells."""
    if strata is None:
        return [slice(0, n_cells)]
    borders = [0, *(np.flatnonzero(np.diff(strata)) + 1).tolist(), n_cells]
    return [slice(start, stop) for start, stop in pairwise(borders)]


def worst_stratum(measure: Callable[..., float], strata: Any, *per_cell: Floats) -> float:
    """The largest value of a measure over the strata; without strata, its value over all cells."""
    return max(
        measure(*(values[part] for values in per_cell)) for part in strata_slices(strata, len(per_cell[0]))
    )


def widest(lower: Floats, upper: Floats) -> float:
    """Largest difference between one group's upper limit and another's lower limit."""
    if len(lower) == 1:
        return 0.0
    lower, upper = np.maximum(lower, 0.0), np.minimum(upper, 1.0)
    order = np.argsort(lower)
    others = np.where(np.arange(len(lower)) == order[0], lower[order[1]], lower[order[0]])
    return float(np.max(upper - others))
