"""Rows in memory, and the two passes over them that an exact fit needs.

    summarize   every row into one of many bins per group: rows, Σw, Σw²
    refine      only the rows of selected bins: as exact points, as means, or, if there are too many,
                as finer bins

The bins cut the scale's range into a power of two of equal parts, which makes their edges exact floats and 0.5
one of them; the highest score has a bin of its own. Before solving, `rough` lets a fit refine the bins that will
probably contain the ramps (see `fit.guess`) and join all others into a few wide ones. `refine` opens a wide bin
into the narrow ones that were counted, which needs no pass. A crowded narrow bin is cut again along the order of
the floats (their bit patterns), which reaches single scores in a few rounds wherever they crowd. Few rows are
sorted instead of binned, which is cheaper.

Another kind of table can take part in a fit by offering the same methods.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt
from typing import Any, NamedTuple, Protocol

import numpy as np

from fairramp.core.blocks import map_blocks
from fairramp.core.curve import Array, Booleans, Floats, Integers, sort_keys
from fairramp.core.points import MAX_RESOLUTION, Points, Summary, concatenated, resolution, run_starts
from fairramp.core.scales import Scale
from fairramp.data.arrays import NO_SCORE
from fairramp.data.groups import Codes
from fairramp.data.probable import GroupProbabilities
from fairramp.errors import InputError

#: Up to this many rows, and this many more for each group, are sorted instead of binned. In measurements with 2
#: to 10,000 groups, both ways take about equally long there.
SORTED_ROWS, SORTED_PER_GROUP = 3_000, 40
#: Up to this many rows are sorted for those who need all of them, and up to this many rows of selected bins are
#: refined to single scores at once.
SINGLE_ROWS = 1 << 15
#: Minimum and maximum number of bins per group in the first pass.
MIN_BINS = 1 << 5
MAX_BINS = 1 << 13
#: Number of wide bins per group in the initial summary; its fingerprint needs this many.
WIDE_BINS = MAX_RESOLUTION
#: Up to this many runs of cells are compared with each row; more are looked up in a table.
FEW_RUNS = 8
#: Maximum number of ramp positions among which the first solution is guessed, to limit memory and time.
MOST_GUESSED = 1 << 20
#: Number of finer bins made in one round, over all crowded bins together.
FINER_BINS = 1 << 16
#: Floats whose bits can be compared as integers.
_BITS: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float64): np.dtype(np.uint64),
    np.dtype(np.float32): np.dtype(np.uint32),
}


class Rough(NamedTuple):
    """Weight of each group in equal bins, to guess where the ramps will be."""

    weights: Floats
    step: float
    #: (summary, feet, width, cutoff) → the summary with fine points around ramps at these feet.
    closer: Callable[[Summary, Floats, float, float], Summary]


class Rows(Protocol):
    """What a fit needs from its rows, wherever they are."""

    def summarize(self) -> Summary:
        """All rows in coarse points."""

    def sorted(self) -> Summary | None:
        """All rows in exact points; None if there are too many, or reading them would take another pass."""
        return None

    def rough(self, width: float) -> Rough | None:
        """What is needed to guess ramps of this width; None if guessing would not save time."""
        return None

    def refine(self, summary: Summary, split: Booleans, average: Booleans) -> Points:
        """Finer points for selected bins of the summary."""


@dataclass(frozen=True)
class BinnedRows(Rows):
    """Bins instead of rows: each is treated as rows at its mean and cannot be refined."""

    bins: Summary

    def summarize(self) -> Summary:
        """The bins, as exact points."""
        p = self.bins.points
        return Summary(self.bins.labels, replace(p, lower=p.place, upper=p.place))

    def refine(self, summary: Summary, split: Booleans, average: Booleans) -> Points:
        """Never called."""
        raise AssertionError("exact points need no refinement")


def refined(rows: Rows, summary: Summary, feet: Floats, widths: Floats | float, edges: Floats) -> Summary:
    """One step toward a summary that is exact for the given ramps; the same object if it already is."""
    split, average = summary.unresolved(feet, widths, edges)
    is_exact = not (split | average).any()
    return summary if is_exact else summary.replace(split | average, rows.refine(summary, split, average))


def resolved(rows: Rows, summary: Summary, feet: Floats, widths: Floats | float, edges: Floats) -> Summary:
    """A summary that is exact for ramps at the given feet, and at the edges."""
    while (finer := refined(rows, summary, feet, widths, edges)) is not summary:
        summary = finer
    return summary


class ArrayRows(Rows):
    """Scores, group codes and weights of equal length.

    Parameters
    ----------
    scores : numbers of shape (n,)
        As passed; converted to positions block by block.
    codes : Codes
        Their groups.
    weights : floats of shape (n,), or None
        Positive; None counts each row once.
    scale : Scale
        Scale of the scores.
    """

    def __init__(
        self, scores: Array, codes: Codes | GroupProbabilities, weights: Floats | None, scale: Scale
    ) -> None:
        self.scores = scores
        self.codes: Codes = codes  # type: ignore[assignment]  # of mixtures, only positions are read
        self.weights = weights
        self.scale = scale
        # About 16·√n bins keep both bins and rows per bin few; the fingerprint of a summary sets the minimum.
        wanted = max(16 * isqrt(len(scores)) // len(codes.labels), MAX_RESOLUTION)
        self._bins = max(resolution(len(scores), len(codes.labels), min(wanted, MAX_BINS)), MIN_BINS)
        self._bins_per_unit = self._bins / (scale.highest - scale.lowest)
        self._stride = self._bins + 1
        self._n_cells = len(codes.labels) * self._stride
        self._is_sorted = len(scores) <= SORTED_ROWS + SORTED_PER_GROUP * len(codes.labels)

    def positions(self, start: int, stop: int) -> Floats:
        """Positions of the rows start … stop − 1, after checking their scores."""
        scores = self.scores[start:stop]
        low, high = self.scale.finite_range
        bits = _BITS.get(scores.dtype) if low == 0 else None
        # Floats of at least 0 are ordered like their bits; −0.0, negative numbers and NaN come after all others.
        sound = bits is not None and scores.view(bits).max() <= scores.dtype.type(high).view(bits)
        # The ends are NaN, hence out of range, if any score is NaN.
        if not sound and not (low <= float(scores.min()) and float(scores.max()) <= high):
            x = scores.astype(np.float64)
            bad = int(np.argmin((x >= low) & (x <= high)))
            raise refusal(self.scale, float(x[bad]), "row {row}", row=start + bad)
        return self.scale.position(scores)

    def summarize(self) -> Summary:
        """First pass: all rows, sorted if there are few, otherwise in wide bins."""
        if self._is_sorted:
            return self._exact()
        _, cells, narrow = self._counted
        if self._bins <= WIDE_BINS:
            return narrow
        wide = cells % self._stride // (self._bins // WIDE_BINS)
        return Summary(narrow.labels, _joined(narrow.points, wide)[0])

    def sorted(self) -> Summary | None:
        """All rows in exact points; None if there are many."""
        return self._exact() if len(self.scores) <= SINGLE_ROWS else None

    def _exact(self) -> Summary:
        n_rows = len(self.scores)
        group, positions = self.codes.block(0, n_rows), self.positions(0, n_rows)
        return Summary.of_occurring(self.codes.labels, Points.from_rows(group, positions, self.weights))

    def rough(self, width: float) -> Rough | None:
        """Weights of the occurring groups in the narrow bins; None if rows were sorted, not counted."""
        if self._is_sorted:
            return None
        step, (_, cells, narrow) = 1 / self._bins_per_unit, self._counted
        if (
            len(narrow.labels) * (self._stride + 2 * width / step) > MOST_GUESSED
        ):  # includes ramps beyond the ends
            return None
        weights = np.zeros((len(narrow.labels), self._stride))
        weights[narrow.points.group, cells % self._stride] = narrow.points.weight
        return Rough(weights, step, self._closer)

    def _closer(self, summary: Summary, feet: Floats, width: float, cutoff: float) -> Summary:
        """Fine points around ramps at the given feet, and as few points as possible elsewhere."""
        p, step = self._counted[-1].points, 1 / self._bins_per_unit
        low, high = feet - step / 4, feet + step / 4
        near = (p.upper > low[p.group]) & (p.lower < (high + width)[p.group])
        near |= (p.lower < cutoff) & (cutoff < p.upper)
        around = Summary(summary.labels, p.take(near))
        split, average = around.unresolved(np.stack([low, feet, high]), width, np.full((1, len(feet)), cutoff))
        near[near] = split | average
        # Include neighbors, in case the guess is slightly off.
        alone = near | np.append(near[1:], False) | np.append(False, near[:-1])
        joined, first = _joined(p, 4 * np.cumsum(alone) - 2 * alone + (p.lower >= cutoff))
        return Summary(summary.labels, joined).replace(near[first], self.refine(around, split, average))

    def forget(self) -> None:
        """Free memory; the next refinement counts the rows again."""
        self.__dict__.pop("_counted", None)

    @cached_property
    def _counted(self) -> tuple[Array, Integers, Summary]:
        """Pass over all rows: the cell of each row, the nonempty cells, and their rows and weights."""
        n_rows, n_cells = len(self.scores), self._n_cells
        cell_of_row: Array = np.empty(n_rows, dtype=np.uint16 if n_cells <= 1 << 16 else np.uint32)

        def count(start: int, stop: int) -> list[Array]:
            cells, positions = cell_of_row[start:stop], self.positions(start, stop)
            if self.scale.lowest < 0:
                scaled = positions * self._bins_per_unit
                first_bin = self.scale.lowest * self._bins_per_unit
                np.subtract(np.floor(scaled, out=scaled), first_bin, out=cells, casting="unsafe")
            else:  # truncation, which equals the floor for numbers of at least 0
                np.multiply(positions, self._bins_per_unit, out=cells, casting="unsafe")
            first = self.codes.block(start, stop).astype(cells.dtype)
            cells += np.multiply(first, cells.dtype.type(self._stride), out=first)
            # bincount would convert to this type itself, but hold the interpreter lock meanwhile.
            cells = cells.astype(np.intp)
            if self.weights is None:
                return [np.bincount(cells, minlength=n_cells)]
            w = self.weights[start:stop]
            return [np.bincount(cells, v, minlength=n_cells) for v in (None, w, w * w)]

        # Blocks four times as long as their results keep all results small compared to the rows.
        totals = _added(map_blocks(count, n_rows, 4 * n_cells))
        used = np.flatnonzero(totals[0])
        group, index = np.divmod(used, self._stride)
        lower = self.scale.lowest + index / self._bins_per_unit
        upper = np.where(index < self._bins, lower + 1 / self._bins_per_unit, lower)
        rows, *sums = (total[used] for total in totals)
        weight, squares = sums or [rows.astype(np.float64)] * 2
        points = Points(group, (lower + upper) / 2, lower, upper, rows, weight, squares, lower == upper)
        return cell_of_row, used, Summary.of_occurring(self.codes.labels, points)

    def refine(self, summary: Summary, split: Booleans, average: Booleans) -> Points:
        """Finer points for selected bins of a summary of these rows.

        Wide bins become narrow ones. Narrow bins to be averaged become one bin with its mean; those to
        be split become exact points or, if they have too many rows, finer bins with their means.
        """
        cell_of_row, narrow_cells, narrow = self._counted
        keys = sort_keys(narrow.points.group, narrow.points.lower)
        which = split | average
        wide = which & (summary.points.upper - summary.points.lower > 1 / self._bins_per_unit)
        opened = narrow.points.take(_covered(keys, summary.points.take(wide)) if wide.any() else slice(0))
        which &= ~wide
        if not which.any():
            return opened
        chosen = summary.points.take(which)
        to_bins = average[which]
        parts = to_bins.astype(np.intp)  # of each bin; 0 for single rows
        few = max(SINGLE_ROWS, len(self.scores) // 32, 16 * len(self.codes.labels))
        if chosen.rows[~to_bins].sum() > few:
            parts[~to_bins] = finer_parts(int((~to_bins).sum()))
        finer = _FinerBins(chosen, parts)
        at = np.searchsorted(keys, sort_keys(chosen.group, chosen.lower), side="right") - 1
        owner = _Owner(chosen, narrow_cells[at], self._n_cells)

        def look(start: int, stop: int) -> _Rows:
            cells = cell_of_row[start:stop]
            hits = owner.hits(cells)
            weight = None if self.weights is None else self.weights[start:stop][hits]
            return _Rows(cells[hits].astype(np.intp), self.scale.position(self.scores[start:stop][hits]), weight)

        def sort_out(rows: _Rows) -> tuple[_Rows, list[Array]]:
            rows = owner.find(rows)
            binned = parts[rows.point] > 0
            return rows.take(~binned), finer.sums(rows.take(binned))

        if chosen.rows.sum() <= 4 * SINGLE_ROWS:
            results = [sort_out(_Rows.join(map_blocks(look, len(self.scores))))]
        else:
            results = map_blocks(lambda a, b: sort_out(look(a, b)), len(self.scores), 4 * finer.n_cells)
        rows = _Rows.join([part for part, _ in results])
        exact = Points.from_rows(chosen.group[rows.point], rows.position, rows.weight)
        return concatenated([opened, exact, finer.points(_added(sums for _, sums in results))])


def _covered(keys: Array, wide: Points) -> Booleans:
    """Which narrow bins, given the keys of their starts, lie in wide ones."""
    first, stop = (np.searchsorted(keys, sort_keys(wide.group, end)) for end in (wide.lower, wide.upper))
    n_bins = len(keys) + 1
    depth = np.cumsum(np.bincount(first, minlength=n_bins) - np.bincount(stop, minlength=n_bins))
    return depth[:-1] > 0


def refusal(scale: Scale, value: float, where: str, **values: Any) -> InputError:
    """The error for a score that is not on its scale; `where` is a template."""
    if not np.isfinite(value):
        return InputError(
            "must be finite numbers, got {value} in " + where,
            argument="scores",
            remedy=NO_SCORE if np.isnan(value) else None,
            value=value,
            **values,
        )
    return InputError(
        "must be between {low:g} and {high:g} for scale={name!r}, got {value!r} in " + where,
        argument="scores",
        remedy="fit with scale='percent' for percentages, scale='logit' for logits, scale='signed' for scores "
        "between -1 and 1 or scale='real' for any other numbers"
        if scale.name == "probability"
        else "fit with scale='logit' for logits or scale='real' for any other numbers",
        low=scale.score_range[0],
        high=scale.score_range[1],
        name=scale.name,
        value=value,
        **values,
    )


def _joined(p: Points, run: Integers) -> tuple[Points, Integers]:
    """Merge the bins of each group and run, and return the first of each; single-score points stay."""
    # A single-score point is a run of its own: this number differs before, at and after it.
    alone = 2 * np.cumsum(p.exact) - p.exact
    first = run_starts(p.group, run, alone)
    joined = p.summed(first, upper=p.upper[np.append(first[1:], len(p)) - 1], averaged=p.exact[first])
    return replace(joined, place=np.add.reduceat(p.weight * p.place, first) / joined.weight), first


def _added(parts: Iterable[list[Array]]) -> list[Array]:
    """Element-wise sums of lists of arrays."""
    return [sum(arrays[1:], start=arrays[0]) for arrays in zip(*parts, strict=True)]


class _Owner:
    """Finds the selected bin of a row from the row's cell."""

    def __init__(self, chosen: Points, cells: Integers, n_cells: int) -> None:
        self._chosen = chosen
        self._keys = sort_keys(cells, chosen.lower)
        self._cells = cells
        self._point = np.zeros(n_cells, dtype=np.intp)  # for cells with only one selected bin
        self._point[cells] = np.arange(len(cells))
        self._has = np.bincount(cells, minlength=n_cells) > 0
        self._alone = int(np.count_nonzero(self._has)) == len(cells)
        # First and one past the last of each run of adjacent cells.
        self._runs = np.flatnonzero(np.diff(self._has, prepend=False, append=False)).reshape(-1, 2)

    def hits(self, cells: Array) -> Integers:
        """Which rows are in a cell with a selected bin."""
        if len(self._runs) > FEW_RUNS:
            return np.flatnonzero(self._has[cells.astype(np.intp)])
        kind, found = cells.dtype.type, np.zeros(len(cells), dtype=bool)
        shifted = np.empty_like(cells)
        for first, stop in self._runs.tolist():
            np.subtract(cells, kind(first), out=shifted)  # smaller values wrap around and become large
            found |= shifted < kind(stop - first)
        return np.flatnonzero(found)

    def find(self, rows: "_Rows") -> "_Rows":
        """Rows in a selected bin, their cells replaced by the index of that bin."""
        point = (
            self._point[rows.point]
            if self._alone
            else np.searchsorted(self._keys, sort_keys(rows.point, rows.position), side="right") - 1
        )
        inside = (self._chosen.lower[point] <= rows.position) & (rows.position < self._chosen.upper[point])
        inside &= self._cells[point] == rows.point
        rows = rows._replace(point=point)
        return rows if inside.all() else rows.take(inside)


class _Rows(NamedTuple):
    """Rows of selected bins: bin, position and weight."""

    point: Integers
    position: Floats
    weight: Floats | None

    def take(self, which: Booleans) -> "_Rows":
        return _Rows._make(None if column is None else column[which] for column in self)

    @staticmethod
    def join(parts: "list[_Rows]") -> "_Rows":
        columns = zip(*parts, strict=True)
        return _Rows._make(None if column[0] is None else np.concatenate(column) for column in columns)


def finer_parts(n_bins: int) -> int:
    """Number of parts into which each of `n_bins` crowded bins is cut: a power of two, at least 16."""
    return 1 << max((FINER_BINS // n_bins).bit_length() - 1, 4)


def _ordinal(x: Floats) -> Integers:
    """Index of a float among all floats: its bit pattern, mirrored below 0."""
    bits = (x + 0.0).view(np.int64)  # −0.0 becomes 0.0
    return np.where(bits >= 0, bits, np.iinfo(np.int64).min - bits)


def _from_ordinal(place: Integers) -> Floats:
    return np.where(place >= 0, place, np.iinfo(np.int64).min - place).view(np.float64)


class _FinerBins:
    """Bins cut into parts that contain equally many floats; 0 parts skips a bin."""

    def __init__(self, bins: Points, parts: Integers) -> None:
        self._bins = bins
        self._offset = np.cumsum(parts) - parts
        self.n_cells = int(parts.sum())
        self._is_cut = bool(np.any(parts > 1))
        self._first = _ordinal(bins.lower)
        span = _ordinal(bins.upper) - self._first
        # Smallest shift with span / 2^shift ≤ parts, where parts are powers of two.
        per_part = -(-span // np.maximum(parts, 1))
        self._shift = np.array([int(n - 1).bit_length() for n in per_part.tolist()], dtype=np.int64)
        self._owner = np.repeat(np.arange(len(bins)), parts)

    def sums(self, rows: _Rows) -> list[Array]:
        """For each part: rows, Σw·(x − start of the bin) and, with weights, Σw and Σw².

        Sums distances from the start: a sum of full scores would lose the digits that distinguish means
        inside a narrow bin.
        """
        cell = self._offset[rows.point]
        if self._is_cut:
            cell += (_ordinal(rows.position) - self._first[rows.point]) >> self._shift[rows.point]
        w, distance = rows.weight, rows.position - self._bins.lower[rows.point]
        values = [None, distance] if w is None else [None, w * distance, w, w * w]
        return [np.bincount(cell, value, minlength=self.n_cells) for value in values]

    def points(self, sums: list[Array]) -> Points:
        """The nonempty parts, with their means."""
        cell = np.flatnonzero(sums[0])
        owner = self._owner[cell]
        rows, distance, *weights = (values[cell] for values in sums)
        weight, squares = weights or [rows.astype(np.float64)] * 2
        shift, part = self._shift[owner], cell - self._offset[owner]
        start = self._first[owner] + (part << shift)
        lower = _from_ordinal(start)
        upper = np.minimum(_from_ordinal(start + (np.int64(1) << shift)), self._bins.upper[owner])
        upper = np.where(shift == 0, lower, upper)
        mean = self._bins.lower[owner] + distance / weight
        return Points.from_means(self._bins.group[owner], mean, lower, upper, rows, weight, squares)
