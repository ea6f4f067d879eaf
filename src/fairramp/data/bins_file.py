"""Summaries as JSON files: a `fairramp.data.documents.Document` with these fields.

    {"format": "fairramp.summary", "version": 2,
     "scale": …, "resolution": …, "cutoff": …, "weighted": …, "stratified": …,
     "columns": {"score": …, "groups": …, "strata": …},
     "groups": [{"label": …, "bin": […], "rows": […], "mean": […], "one_score": […],
                 "weight": […], "weight_squares": […]}, …],
     "sha256": "…"}

A group's lists have one entry per bin that has rows; bins are counted from the lowest score on, and the one
that the cut-off divides counts as two. "one_score" names the bins of several rows that all have the mean as
their score. Without weights, "weight" and "weight_squares" are left out. Text, not bytes, so that people who
must not let rows out can see what goes out.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta

from fairramp.core.curve import Floats
from fairramp.core.labels import canonical_label, label_key
from fairramp.core.points import Points, Summary, concatenated
from fairramp.data.documents import ColumnNames, Count, Document, Finite, PlainLabel, Shape
from fairramp.data.grid import Grid
from fairramp.data.sample import LARGEST_WEIGHT
from fairramp.errors import InputError, SummaryFormatError, shown

#: More rows are a slip, and would be too many for sums of integers.
_MOST_ROWS = 1 << 62


class GroupBins(Shape, frozen=True):
    """What is in the bins of a group."""

    label: PlainLabel
    bin: tuple[Count, ...]
    rows: tuple[Annotated[int, Meta(ge=0, le=_MOST_ROWS)], ...]
    mean: tuple[Finite, ...]
    one_score: tuple[Count, ...]
    weight: tuple[Finite, ...] | None = None
    weight_squares: tuple[Finite, ...] | None = None


class SummaryFile(Document, frozen=True, tag="fairramp.summary"):
    """A summary."""

    words: ClassVar = {
        "noun": "summary",
        "again": "summarize the rows again",
        "mend": "summarize the rows again",
    }
    refused = SummaryFormatError

    scale: str
    resolution: int
    cutoff: Finite
    weighted: bool
    stratified: bool
    columns: ColumnNames
    groups: tuple[GroupBins, ...]


def bins_of(grid: Grid, summary: Summary, weighted: bool) -> tuple[GroupBins, ...]:
    """The entries of a file."""
    p, stop = summary.points, np.cumsum(summary.sizes)
    bins, several = grid.bins(p.lower), p.exact & (p.rows > 1)
    lists: dict[str, Any] = {"bin": bins, "rows": p.rows, "mean": p.place}
    if weighted:
        lists |= {"weight": p.weight, "weight_squares": p.weight_squares}
    labels: tuple[Any, ...] = summary.labels
    return tuple(
        GroupBins(
            label=label,
            one_score=tuple(bins[part][several[part]].tolist()),
            **{name: tuple(values[part].tolist()) for name, values in lists.items()},
        )
        for label, part in zip(labels, map(slice, stop - summary.sizes, stop), strict=True)
    )


def summary_of(document: SummaryFile, grid: Grid) -> Summary:
    """What the entries of a file say, after checking that it can be."""
    _check(_LAWS, document)
    labels = tuple(canonical_label(entry.label) for entry in document.groups)
    parts = [_points(entry, i, grid, document.weighted) for i, entry in enumerate(document.groups)]
    return Summary(labels, concatenated(parts))


def _points(entry: GroupBins, group: int, grid: Grid, weighted: bool) -> Points:
    _check(
        _GROUP_LAWS,
        entry,
        grid,
        weighted,
        label=shown(entry.label),
        edges=len(grid.edges),
        largest=LARGEST_WEIGHT,
    )
    index, rows = np.array(entry.bin, dtype=np.intp), np.array(entry.rows, dtype=np.intp)
    one_score = (rows == 1) | np.isin(index, entry.one_score)
    weights = _floats(entry.weight or entry.rows), _floats(entry.weight_squares or entry.rows)
    return grid.filled(np.full(len(index), group), index, _floats(entry.mean), one_score, rows, *weights)


def _check(laws: dict[str, Callable[..., Any]], *things: Any, **values: Any) -> None:
    for rule, holds in laws.items():
        if not holds(*things):
            raise InputError(rule, **values)


def _floats(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)


def _rising(values: Sequence[Any]) -> bool:
    return all(a < b for a, b in pairwise(values))


def _in_their_bins(entry: GroupBins, grid: Grid) -> bool:
    mean = _floats(entry.mean)
    inside = np.clip(mean, grid.scale.lowest, grid.scale.highest)
    return np.array_equal(inside, mean) and np.array_equal(grid.bins(inside), entry.bin)


#: What must hold of a file, each where the ones before it do.
_LAWS: dict[str, Callable[[SummaryFile], Any]] = {
    "A summary needs at least one group": lambda document: document.groups,
    "The groups of a summary with strata must be pairs (stratum, group)": lambda document: (
        not document.stratified or all(isinstance(e.label, tuple) and len(e.label) == 2 for e in document.groups)
    ),
    "The groups of a summary must differ and be in order": lambda document: _rising(
        [label_key(entry.label) for entry in document.groups]
    ),
}
#: And of a group's lists.
_GROUP_LAWS: dict[str, Callable[[Any, Grid, bool], Any]] = {
    "Group {label} has no rows": lambda e, grid, weighted: e.bin,
    '"bin" of group {label} must be in order and below {edges}': lambda e, grid, weighted: (
        _rising(e.bin) and e.bin[-1] < len(grid.edges)
    ),
    '"rows" of group {label} must be counts from 1 on': lambda e, grid, weighted: (
        min(e.rows, default=0) > 0 and sum(e.rows) < _MOST_ROWS
    ),
    '"weight" and "weight_squares" of group {label} must be null if and only if rows have no weights': (
        lambda e, grid, weighted: {weighted} == {e.weight is not None, e.weight_squares is not None}
    ),
    "The lists of group {label} differ in length": lambda e, grid, weighted: (
        len({len(v) for v in (e.bin, e.rows, e.mean, e.weight, e.weight_squares) if v is not None}) == 1
    ),
    "The weights of group {label} must be positive and below {largest:g}": lambda e, grid, weighted: (
        not weighted
        or (
            (min(e.weight) > 0 and min(e.weight_squares) >= 0)
            and all(w < LARGEST_WEIGHT * n for w, n in zip(e.weight, e.rows, strict=True))
        )
    ),
    '"weight_squares" of group {label} must be at most the squares of "weight"': lambda e, grid, weighted: (
        not weighted or (_floats(e.weight_squares) <= _floats(e.weight) ** 2 * (1 + 1e-9)).all()
    ),
    '"one_score" of group {label} must be in order and name bins of several rows': lambda e, grid, weighted: (
        _rising(e.one_score)
        and {bin_ for bin_, n in zip(e.bin, e.rows, strict=True) if n > 1}.issuperset(e.one_score)
    ),
    "A mean of group {label} lies outside its bin": lambda e, grid, weighted: _in_their_bins(e, grid),
}
