"""Summaries of arrays and tables."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairramp.core.blocks import map_blocks
from fairramp.core.curve import Array, Floats
from fairramp.core.points import LabeledPoints, Points, Summary, concatenated
from fairramp.core.public import public
from fairramp.data.bins import GroupScores
from fairramp.data.columns import Columns, column_name
from fairramp.data.engines import is_lazy
from fairramp.data.grid import Grid
from fairramp.data.groups import distinct
from fairramp.data.lazy_rows import LazyRows
from fairramp.data.lazy_table import LazyTable, Profile
from fairramp.data.rows import ArrayRows
from fairramp.data.sample import (
    LARGEST_WEIGHT,
    SMALLEST_WEIGHT,
    Sample,
    warn_saturated,
)
from fairramp.data.tables import check_columns, open_table, sample_of_table
from fairramp.errors import InputError


@public
def summarize(
    scores: Any,
    groups: Any,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    strata: Any = None,
    scale: str = "probability",
    cutoff: float | None = None,
    higher_is_better: bool = True,
    resolution: int = 4096,
) -> GroupScores:
    """Summarize rows for a later fit that does not need them.

    The result can be saved, merged with summaries of other rows, and passed to `fit_summary`. Takes one pass.

    Parameters
    ----------
    scores, groups, sample_weight, scale, higher_is_better
        As in `fit_rule`. Weights of summaries to be merged must use the same unit.
    labels : 0 or 1 of shape (n,), optional
        True outcomes, for targets that need them.
    strata : labels of shape (n,), or several columns, optional
        For rules that equalize within strata; as in `fit_rule`.
    cutoff : float, optional
        Score at which the classifier itself selects, as in `fit_rule`. It becomes a bin edge, so the
        classifier's own selection rates are exact.
    resolution : int, default 4096
        Number of bins of the score range, a power of two. Doubling it at least halves the error of a rule with
        a ramp, and doubles the file size.

    Returns
    -------
    GroupScores

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> summary = fairramp.summarize(data.score, data.sex)
    >>> rule = fairramp.fit_summary(summary, max_gap=0.02)
    >>> max(rule.record.rates["selection"].error) < 1e-4
    True
    """
    grid = Grid.checked(scale, resolution, cutoff, higher_is_better)
    return _summarized(
        Sample.of_arrays(scores, groups, labels, scale=grid.scale, strata=strata, sample_weight=sample_weight),
        grid,
    )


def _summarized(sample: Sample, grid: Grid) -> GroupScores:
    if sample.weights is not None:
        check_weights(float(np.ldexp(sample.weights.max(), -sample.shift)))
    summary = Summary.of_occurring(sample.cells.labels, _binned(sample.rows, grid, sample.outcomes))
    sample.warn_saturated()
    return GroupScores(grid, summary, sample.weights is not None, sample.stratified, sample.columns)


def check_weights(largest: float) -> None:
    """Raise for weights that a fit would have to scale: summaries of other rows would be scaled differently."""
    if largest > 0 and not SMALLEST_WEIGHT < largest < LARGEST_WEIGHT:
        raise InputError(
            "must be between {low:g} and {high:g} in a summary",
            argument="sample_weight",
            got=largest,
            remedy="use another unit, the same for all summaries to be merged",
            low=SMALLEST_WEIGHT,
            high=LARGEST_WEIGHT,
        )


def _binned(rows: ArrayRows, grid: Grid, outcomes: Floats | None) -> Points:
    """All rows in bins, with their means and, with outcomes, the sums of their labels."""
    n_bins = len(grid.edges)
    n_cells = len(rows.codes.labels) * n_bins

    def count(start: int, stop: int) -> Points:
        x = rows.positions(start, stop)
        bin_ = grid.bins(x)
        cells = rows.codes.block(start, stop).astype(np.intp) * n_bins + bin_
        # Sum distances from the start of the bin: sums of full scores would lose digits of the mean.
        distance = x - grid.edges[bin_]
        w = None if rows.weights is None else rows.weights[start:stop]
        values = [None, distance] if w is None else [None, w * distance, w, w * w]
        used, cells = distinct(cells, n_cells, 4 * (stop - start))
        found: list[Array] = [np.bincount(cells, v) for v in values]
        n, moment, *sums = found
        weight, squares = sums or [n.astype(np.float64)] * 2
        some = np.empty(len(used))
        some[cells] = (
            x + 0.0
        )  # the score of any one row of the bin (−0.0 is 0.0), to find bins where others differ
        mixed = np.zeros(len(used), dtype=bool)
        mixed[cells[some[cells] != x]] = True
        group, bin_ = np.divmod(used, n_bins)
        means = np.where(mixed, grid.edges[bin_] + moment / weight, some)
        points = grid.filled(group, bin_, means, ~mixed, n, weight, squares)
        if outcomes is None:
            return points
        y = outcomes[start:stop]
        positive = np.bincount(cells, y).astype(np.float64, copy=False)
        sums = [positive] * 2 if w is None else [np.bincount(cells, v * y) for v in (w, w * w)]
        return LabeledPoints.of(points, positive.astype(np.intp), *sums)

    # Blocks much longer than their results keep all results small compared to the rows.
    return grid.joined(concatenated(map_blocks(count, len(rows.scores), 16 * n_cells)))


@public
def summarize_frame(
    frame: Any,
    *,
    score: str,
    group: str | Sequence[str],
    label: str | None = None,
    weight: str | None = None,
    strata: str | Sequence[str] | None = None,
    scale: str = "probability",
    cutoff: float | None = None,
    higher_is_better: bool = True,
    resolution: int = 4096,
) -> GroupScores:
    """Summarize the columns of a table; see `summarize`.

    For a lazy table, the engine computes the sums in two passes, the first of which checks the columns; no row is
    loaded into Python, with labels or without.

    Parameters
    ----------
    frame : table
        As in `fit_frame`.
    score, group, label, weight, strata : str, or list of str for `group` and `strata`
        Column names; the summary stores those of scores, groups and strata.
    scale, cutoff, higher_is_better, resolution
        As in `summarize`.

    Returns
    -------
    GroupScores

    Examples
    --------
    >>> import fairramp, polars
    >>> data = fairramp.datasets.load_adult_scores()
    >>> frame = polars.LazyFrame({"p": data.score, "sex": data.sex})
    >>> summary = fairramp.summarize_frame(frame, score="p", group="sex")
    >>> summary.rows, summary.columns.groups
    ((8094, 16327), ('sex',))
    """
    grid = Grid.checked(scale, resolution, cutoff, higher_is_better)
    table, _ = open_table(frame)
    columns = Columns().given(score, group, strata)
    more = [column_name(role, name) for role, name in (("label", label), ("weight", weight)) if name is not None]
    check_columns(table, [*columns.all, *more])
    if not is_lazy(table):
        return _summarized(sample_of_table(table, columns, grid.scale, weight=weight, label=label), grid)
    rows = LazyTable(table, columns, weight=weight, label=label)
    profile = Profile.of(rows, grid.scale)
    if weight is not None:
        check_weights(profile.largest_weight)
    summary = LazyRows(rows, profile, grid.scale, labeled=label is not None).binned(grid)
    warn_saturated(grid.scale, profile.saturated, int(profile.rows.sum()))
    return GroupScores(grid, summary, weight is not None, columns.strata is not None, columns)
