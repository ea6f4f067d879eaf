"""Rows in memory, and the two passes over them that an exact fit needs.

    summarize   every row into one of `bins` bins per group: rows, Σw, Σw²
    refine      only the rows of chosen bins: as exact points, as means, or, where they are too many,
                as finer bins

The bins are the scale's range cut into a power of two, so that their edges are exact floats and 0.5 is
one of them; the highest score has a bin of its own. A crowded bin is cut again along the order of the
floats themselves (their bit patterns), which reaches single scores in a few rounds wherever they crowd.
Few rows are not binned at all: sorting them is cheaper.

Another kind of table takes part in the fit by offering the same two passes.
"""

from collections.abc import Iterable
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fairramp.blocks import BLOCK, blocks, map_chunks
from fairramp.distribution import Floats, Integers
from fairramp.exceptions import InputError
from fairramp.groups import Codes, label_key
from fairramp.scales import Scale
from fairramp.summary import MAX_RESOLUTION, Booleans, GroupScores, Points, join_points, resolution

__all__ = ["ArrayRows"]

#: Up to this many rows are sorted at once.
SORTED_ROWS = 1 << 15
#: Bins per group in the first pass, at most.
MAX_BINS = 1 << 12
#: Finer bins made in one round, over all crowded bins together.
FINER_BINS = 1 << 16


class ArrayRows:
    """Scores, group codes and weights of equal length.

    Parameters
    ----------
    scores : numbers of shape (n,)
        As the user gave them; turned into positions block by block.
    codes : Codes
        Their groups.
    weights : floats of shape (n,), or None
        Positive; None counts each row once.
    scale : Scale
        What the scores mean.
    """

    def __init__(self, scores: npt.NDArray[Any], codes: Codes, weights: Floats | None, scale: Scale) -> None:
        self.scores = scores
        self.codes = codes
        self.weights = weights
        self.scale = scale
        # Bins per group: near √n, but never coarser than the fingerprint of a summary.
        wanted = max(isqrt(len(scores)), MAX_RESOLUTION)
        self._bins = resolution(len(scores), len(codes.labels), min(wanted, MAX_BINS))
        self._bins_per_unit = self._bins / (scale.highest - scale.lowest)
        self._stride = self._bins + 1
        self._n_cells = len(codes.labels) * self._stride
        self._cells: npt.NDArray[Any] | None = None  # of each row, kept from the first pass

    def positions(self, start: int, stop: int) -> Floats:
        """Positions of the rows start … stop − 1, after checking their scores."""
        scores = self.scores[start:stop]
        low, high = self.scale.score_range
        smallest, largest = scores.min(), scores.max()  # NaN if any is, and then not in range
        if not (low <= smallest and largest <= high and np.isfinite(smallest + largest)):
            self._refuse(scores, start)
        return self.scale.position(scores)

    def _refuse(self, scores: npt.NDArray[Any], start: int) -> None:
        low, high = self.scale.score_range
        with np.errstate(invalid="ignore"):
            bad = np.flatnonzero(~((scores >= low) & (scores <= high) & np.isfinite(scores)))
        value, row = float(scores[bad[0]]), start + int(bad[0])
        if not np.isfinite(value):
            raise InputError(f"`scores` must be finite numbers, got {value} in row {row}.")
        remedy = {
            "probability": "pass scale='logit' for logits or scale='signed' for scores from -1 to 1, "
            "divide percentages by 100",
            "signed": "pass scale='logit' for logits or decision values",
        }[self.scale.name]
        raise InputError(
            f"`scores` must be in [{low:g}, {high:g}] for scale={self.scale.name!r}, "
            f"got {value:g} in row {row}; {remedy}."
        )

    def summarize(self) -> GroupScores:
        """First pass: all rows, sorted if they are few, otherwise in bins."""
        n_rows = len(self.scores)
        if n_rows <= SORTED_ROWS:
            points = Points.from_rows(self.codes.block(0, n_rows), self.positions(0, n_rows), self.weights)
        else:
            points = self._binned()
        return GroupScores.of_occurring(self.codes.labels, points)

    def _find_cells(self, start: int, stop: int) -> Integers:
        """Index of each row's (group, bin)."""
        scaled = self.positions(start, stop) * self._bins_per_unit
        if self.scale.lowest < 0:
            np.floor(scaled, out=scaled)
            scaled += self._bins // 2
        bins = scaled.astype(np.int32).astype(np.intp)  # cut off, which is floor from 0 on
        bins += self.codes.block(start, stop) * self._stride
        return bins

    def _binned(self) -> Points:
        n_cells = self._n_cells
        kept = np.empty(len(self.scores), dtype=np.uint16 if n_cells <= 1 << 16 else np.uint32)

        def count(start: int, stop: int) -> list[npt.NDArray[Any]]:
            sums: list[npt.NDArray[Any]] = [np.zeros(n_cells, dtype=np.intp)]
            if self.weights is not None:
                sums += [np.zeros(n_cells), np.zeros(n_cells)]
            for a, b in blocks(start, stop, max(BLOCK, n_cells)):
                cells = self._find_cells(a, b)
                kept[a:b] = cells
                sums[0] += np.bincount(cells, minlength=n_cells)
                if self.weights is not None:
                    weights = self.weights[a:b]
                    sums[1] += np.bincount(cells, weights, minlength=n_cells)
                    sums[2] += np.bincount(cells, weights * weights, minlength=n_cells)
            return sums

        totals = _added(map_chunks(count, len(self.scores)))
        self._cells = kept
        cells = np.flatnonzero(totals[0])
        group, index = np.divmod(cells, self._stride)
        lower = self.scale.lowest + index / self._bins_per_unit
        upper = np.where(index < self._bins, lower + 1 / self._bins_per_unit, lower)
        rows = totals[0][cells]
        weight = totals[1][cells] if self.weights is not None else rows.astype(np.float64)
        squares = totals[2][cells] if self.weights is not None else weight
        return Points(group, (lower + upper) / 2, lower, upper, rows, weight, squares, lower == upper)

    def refine(self, summary: GroupScores, split: Booleans, average: Booleans) -> Points:
        """Second pass: finer points for the chosen bins of a summary of these rows.

        Bins to be averaged become one bin with its mean. Bins to be split become exact points or,
        if their rows are too many, finer bins with their means.
        """
        chosen = summary.points.take(split | average)
        to_bins = average[split | average]
        if chosen.rows[~to_bins].sum() > max(SORTED_ROWS, len(self.scores) // 32):
            parts = np.where(to_bins, 1, _finer_parts(int((~to_bins).sum())))
            to_bins[:] = True
        else:
            parts = np.ones(len(chosen), dtype=np.intp)
        finer = _FinerBins(chosen, np.where(to_bins, parts, 0))

        owner = _Owner(chosen, self._cells_of(summary, chosen), self._n_cells)
        assert self._cells is not None, "only binned rows can be refined"
        kept_cells = self._cells

        def look(start: int, stop: int) -> tuple[_Rows, list[npt.NDArray[Any]]]:
            found = []
            for a, b in blocks(start, stop):
                cells = kept_cells[a:b].astype(np.intp)
                hits = np.flatnonzero(owner.has[cells])
                weight = None if self.weights is None else self.weights[a:b][hits]
                found.append(_Rows(cells[hits], self.scale.position(self.scores[a:b][hits]), weight))
            rows = owner.find(_Rows.join(found))
            binned = to_bins[rows.point]
            sums = finer.zeros(self.weights is not None)
            finer.add(rows.take(binned), sums)
            return rows.take(~binned), sums

        results = list(map_chunks(look, len(self.scores)))
        rows = _Rows.join([part for part, _ in results])
        exact = Points.from_rows(chosen.group[rows.point], rows.position, rows.weight)
        return join_points([exact, finer.points(_added(sums for _, sums in results))])

    def _cells_of(self, summary: GroupScores, points: Points) -> Integers:
        """The cell in which each point of a summary lies."""
        code_of = {label_key(label): code for code, label in enumerate(self.codes.labels)}
        codes = np.array([code_of[label_key(label)] for label in summary.labels], dtype=np.intp)
        index = np.floor((points.lower - self.scale.lowest) * self._bins_per_unit).astype(np.intp)
        return codes[points.group] * self._stride + index


def _added(parts: Iterable[list[npt.NDArray[Any]]]) -> list[npt.NDArray[Any]]:
    """Element-wise sums of lists of arrays."""
    totals: list[npt.NDArray[Any]] = []
    for part in parts:
        if not totals:
            totals = part
        else:
            for total, addend in zip(totals, part, strict=True):
                total += addend
    return totals


class _Owner:
    """Finds the chosen bin of a row from the row's cell."""

    def __init__(self, chosen: Points, cells: Integers, n_cells: int) -> None:
        self._chosen = chosen
        self._keys = cells + 1j * chosen.lower  # ordered lexicographically
        self._cells = cells
        self._first = np.zeros(n_cells, dtype=np.intp)
        self._first[cells[::-1]] = np.arange(len(cells))[::-1]
        self.has = np.zeros(n_cells, dtype=bool)
        self.has[cells] = True
        self._alone = int(self.has.sum()) == len(cells)

    def find(self, rows: "_Rows") -> "_Rows":
        """Rows that lie in a chosen bin, their cells replaced by the index of that bin."""
        if self._alone:
            point = self._first[rows.point]
        else:
            point = np.searchsorted(self._keys, rows.point + 1j * rows.position, side="right") - 1
        inside = (self._chosen.lower[point] <= rows.position) & (rows.position < self._chosen.upper[point])
        inside &= self._cells[point] == rows.point
        return rows._replace(point=point).take(inside)


class _Rows(NamedTuple):
    """Rows of chosen bins: which bin, where, how heavy."""

    point: Integers
    position: Floats
    weight: Floats | None

    def take(self, which: Booleans) -> "_Rows":
        weight = None if self.weight is None else self.weight[which]
        return _Rows(self.point[which], self.position[which], weight)

    @staticmethod
    def join(parts: "list[_Rows]") -> "_Rows":
        weights = [part.weight for part in parts if part.weight is not None]
        return _Rows(
            np.concatenate([part.point for part in parts]),
            np.concatenate([part.position for part in parts]),
            np.concatenate(weights) if weights else None,
        )


def _finer_parts(n_bins: int) -> int:
    """Into how many parts each of so many crowded bins is cut: a power of two from 16 on."""
    return 1 << max((FINER_BINS // n_bins).bit_length() - 1, 4)


def _ordinal(x: Floats) -> npt.NDArray[np.int64]:
    """Place of a float among all floats: its bit pattern, mirrored below 0."""
    bits = (x + 0.0).view(np.int64)  # −0.0 becomes 0.0
    return np.where(bits >= 0, bits, np.iinfo(np.int64).min - bits)


def _from_ordinal(place: npt.NDArray[np.int64]) -> Floats:
    bits = np.where(place >= 0, place, np.iinfo(np.int64).min - place)
    return bits.view(np.float64)


class _FinerBins:
    """Bins cut into parts of equally many floats each; 0 parts leaves a bin out."""

    def __init__(self, bins: Points, parts: Integers) -> None:
        self._bins = bins
        self._offset = np.cumsum(parts) - parts
        self._n_cells = int(parts.sum())
        self._first = _ordinal(bins.lower)
        span = _ordinal(bins.upper) - self._first
        # Smallest shift with span / 2^shift ≤ parts; the parts are powers of two.
        per_part = -(-span // np.maximum(parts, 1))
        self._shift = np.array([int(n - 1).bit_length() for n in per_part.tolist()], dtype=np.int64)
        self._owner = np.repeat(np.arange(len(bins)), parts)

    def zeros(self, weighted: bool) -> list[npt.NDArray[Any]]:
        """Empty sums: rows, Σw·x and, with weights, Σw and Σw²."""
        sums: list[npt.NDArray[Any]] = [np.zeros(self._n_cells, dtype=np.intp)]
        return sums + [np.zeros(self._n_cells) for _ in range(3 if weighted else 1)]

    def add(self, rows: _Rows, sums: list[npt.NDArray[Any]]) -> None:
        """Count rows into their parts."""
        part = (_ordinal(rows.position) - self._first[rows.point]) >> self._shift[rows.point]
        cell = self._offset[rows.point] + part
        w = rows.weight
        values = [None, rows.position] if w is None else [None, w * rows.position, w, w * w]
        for total, value in zip(sums, values, strict=True):
            np.add.at(total, cell, 1 if value is None else value)

    def points(self, sums: list[npt.NDArray[Any]]) -> Points:
        """Those parts that have rows, with their means."""
        cell = np.flatnonzero(sums[0])
        owner = self._owner[cell]
        rows = sums[0][cell]
        weight = sums[2][cell] if len(sums) > 2 else rows.astype(np.float64)
        squares = sums[3][cell] if len(sums) > 2 else weight
        shift, part = self._shift[owner], cell - self._offset[owner]
        start = self._first[owner] + (part << shift)
        lower = _from_ordinal(start)
        upper = np.minimum(_from_ordinal(start + (np.int64(1) << shift)), self._bins.upper[owner])
        upper = np.where(shift == 0, lower, upper)
        mean = np.clip(sums[1][cell] / weight, lower, np.nextafter(upper, -np.inf))
        place = np.where(shift == 0, lower, mean)
        averaged = np.ones(len(cell), dtype=bool)
        return Points(self._bins.group[owner], place, lower, upper, rows, weight, squares, averaged)
