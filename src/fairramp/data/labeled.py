"""Scores with labels, in bins: all that a label-aware fit needs to know about the outcomes.

For each group and point: rows, Σw, Σw², the place, and Σw·y and Σw²·y. All sources give the same points:

    few distinct scores   up to 4,096 in all rows together: a point is all rows of a group with one score
    many                  the score range is cut into 4,096 equal bins, and the highest score is a bin of its own:
                          a point is all rows of a group in one bin, and its place is their weighted mean; a bin
                          with more than 1/64 of its group's rows is opened into points of one score

4,096 bins are enough to choose rates; rates of ramps are computed elsewhere, from the rows. With more than 1,024
groups there are fewer bins per group, which limits their total number.

Rows in memory take one pass. A row's label is the last bit of the number of its cell, so each sum is computed for
both labels at once. A few distinct scores are found by a hash table with one score per slot; rows whose slot has
another score are sorted. Then the score of each row is looked up in a larger table; scores that share a slot are
searched.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairramp.core.blocks import map_blocks
from fairramp.core.curve import Array, Floats, Integers, sort_keys
from fairramp.core.points import LabeledPoints, Points, Summary, join_points, run_starts
from fairramp.data.groups import distinct
from fairramp.data.places import FIRST_LOOK, MOST_PLACES, BinEdges, most_places, too_crowded
from fairramp.data.rows import ArrayRows

if TYPE_CHECKING:
    from fairramp.data.bins import GroupScores
    from fairramp.data.lazy_rows import LazyRows

#: Slots of the hash tables of scores: 2 to these powers, for tables that stay in the cache.
_SEEN_BITS, _KNOWN_BITS = 16, 18
#: An odd number whose multiples have well mixed upper bits: 2^64 divided by the golden ratio.
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class LabeledBins:
    """Scores of each group with their labels, as points.

    Attributes
    ----------
    scores : Summary
        The points, ordered by group and place: exact scores, or bins at the mean score of their rows.
    positives, square_positives : floats, one per point
        Σ w·y and Σ w²·y of the rows.
    """

    scores: Summary
    positives: Floats
    square_positives: Floats

    @classmethod
    def of_arrays(cls, rows: ArrayRows, outcomes: Array) -> Self:
        """Count rows in memory.

        Parameters
        ----------
        rows : ArrayRows
            The rows; their scores are checked.
        outcomes : booleans or numbers of shape (n,)
            The labels, 0 or 1.
        """
        labels = rows.codes.labels
        most = most_places(len(labels))
        if most < MOST_PLACES:  # labels that do not occur do not count
            most = most_places(int(rows.codes.occurring().sum()))
        scores = _few_scores(rows.scores, most)
        places: _Scores | _Bins = _Bins(rows, most) if scores is None else _Scores(rows, scores)
        cells, sums = _counted(rows, outcomes, places)
        group, index = np.divmod(cells, len(places))
        n, *others = (negative + positive for negative, positive in sums)
        positives = [positive.astype(np.float64, copy=False) for _, positive in sums]
        moment = others.pop(0) if places.averaged else None
        weight, squares = others or [n.astype(np.float64)] * 2
        found = places.found(index, None if moment is None else moment / weight)
        points = Points.from_means(group, *found, n, weight, squares)
        labeled = LabeledPoints.of(
            points, positives[0].astype(np.intp), *(positives[-2:] if others else positives[:1] * 2)
        )
        if isinstance(places, _Bins) and (split := too_crowded(points)).any():
            labeled = join_points([labeled.take(~split), _opened(rows, outcomes, places, cells[split])])
        return cls._of(Summary.of_occurring(labels, labeled))

    @classmethod
    def of_lazy(cls, rows: "LazyRows") -> Self:
        """Use the sums of a first pass over a lazy table, made with labels."""
        summary, edges = rows.labeled_summary, BinEdges(rows.scale, most_places(len(rows.profile.labels)))
        p, first = summary.points, rows.first_pass
        assert isinstance(p, LabeledPoints)
        # Scores are counted, not places: 9 and the float below it are one place as probabilities of logits.
        if first.bins is None and len(np.unique(first.sums["x"])) > edges.n_bins:  # few rows, but many scores
            lower, upper = edges.ends(edges.of(p.place))
            binned = replace(p, lower=lower, upper=upper)
            whole = join_points([binned])
            split = too_crowded(whole)
            keys = sort_keys(whole.group[split], whole.lower[split])
            inside = np.isin(sort_keys(p.group, lower), keys)
            summary = Summary(summary.labels, join_points([binned.take(~inside), p.take(inside)]))
        return cls._of(summary)

    @classmethod
    def of_group_scores(cls, scores: "GroupScores") -> Self:
        """Use the bins of a summary with labels as they are."""
        return cls._of(scores.summary)

    @classmethod
    def _of(cls, summary: Summary) -> Self:
        points = summary.points
        assert isinstance(points, LabeledPoints), "there are no labels"
        return cls(Summary(summary.labels, points.unlabeled), points.positives, points.square_positives)


def _opened(rows: ArrayRows, outcomes: Array, places: "_Bins", cells: Integers) -> LabeledPoints:
    """Exact points for the rows of some cells (group, bin)."""
    wanted = np.zeros(len(rows.codes.labels) * len(places), dtype=bool)
    wanted[cells] = True

    def look(start: int, stop: int) -> list[Array]:
        (index, x), group = places.of(start, stop), rows.codes.block(start, stop).astype(np.intp)
        hits = np.flatnonzero(wanted[group * len(places) + index])
        assert x is not None
        w = np.ones(len(hits)) if rows.weights is None else rows.weights[start:stop][hits]
        return [group[hits], x[hits] + 0.0, w, outcomes[start:stop][hits].astype(np.float64)]

    group, x, w, y = (np.concatenate(part) for part in zip(*map_blocks(look, len(rows.scores)), strict=True))
    order = np.lexsort((x, group))
    group, x, w, y = group[order], x[order], w[order], y[order]
    first = run_starts(group, x)
    sums = [np.add.reduceat(values, first) for values in (w, w * w, y, w * y, w * w * y)]
    weight, squares, positive_rows, positives, square_positives = sums
    place, n = x[first], np.diff(first, append=len(x))
    points = Points.from_means(group[first], place, place, place, n, weight, squares)
    return LabeledPoints.of(points, positive_rows.astype(np.intp), positives, square_positives)


class _Bins:
    """Equal bins of the score range, as places of rows in memory."""

    #: Whether the place of a point is the mean of its rows.
    averaged = True

    def __init__(self, rows: ArrayRows, n_bins: int) -> None:
        self._rows, self._grid = rows, BinEdges(rows.scale, n_bins)

    def __len__(self) -> int:
        return self._grid.n_bins + 1

    def of(self, start: int, stop: int) -> tuple[Integers, Floats | None]:
        """The bin and the position of each row."""
        x = self._rows.positions(start, stop)
        return self._grid.of(x), x

    def found(self, index: Integers, means: Floats | None) -> tuple[Floats, Floats, Floats]:
        """Place, start and end of bins, given the means of their rows."""
        assert means is not None
        return means, *self._grid.ends(index)


class _Scores:
    """Known distinct scores, as places of rows in memory."""

    averaged = False

    def __init__(self, rows: ArrayRows, scores: Floats) -> None:
        low, high = rows.scale.finite_range
        if not (low <= scores.min() and scores.max() <= high):
            rows.positions(0, len(rows.scores))  # raises, naming the row
        self._rows, self._scores = rows, scores
        # Two scores can have the same position, such as large logits.
        self._positions, self._index = np.unique(rows.scale.position(scores) + 0.0, return_inverse=True)
        self._is_direct = np.array_equal(self._index, np.arange(len(scores)))
        slots = _slots(scores, _KNOWN_BITS)
        self._in_slot = np.zeros(1 << _KNOWN_BITS, dtype=np.int16)
        self._in_slot[slots] = np.arange(len(scores))
        shared = np.bincount(slots, minlength=len(self._in_slot))[slots] > 1
        self._in_slot[slots[shared]] = -1

    def __len__(self) -> int:
        return len(self._positions)

    def of(self, start: int, stop: int) -> tuple[Integers, Floats | None]:
        """The index of each row's position; sums of positions are not needed."""
        x = _plain(self._rows.scores[start:stop])
        index = _looked_up(self._in_slot, _slots(x, _KNOWN_BITS))
        shared = np.flatnonzero(index < 0)
        index[shared] = np.searchsorted(self._scores, x[shared])
        return index if self._is_direct else self._index[index], None

    def found(self, index: Integers, means: Floats | None) -> tuple[Floats, Floats, Floats]:
        """Place, start and end of exact points: three times the same."""
        place = self._positions[index]
        return place, place, place


def _counted(
    rows: ArrayRows, outcomes: Array, places: _Scores | _Bins
) -> tuple[Integers, list[tuple[Array, Array]]]:
    """Nonempty cells (group, place), and their sums for labels 0 and 1.

    The sums are rows, Σw·x for bins and, with weights, Σw and Σw².
    """
    n_rows, n_cells = len(rows.scores), len(rows.codes.labels) * len(places)
    kind = np.int32 if n_cells < 1 << 30 else np.int64

    def cells_of(start: int, stop: int) -> tuple[Array, list[Floats | None]]:
        index, x = places.of(start, stop)
        cells: Array = rows.codes.block(start, stop).astype(kind)
        cells *= kind(len(places))
        cells += index
        w = None if rows.weights is None else rows.weights[start:stop]
        moment = [] if x is None else [x if w is None else w * x]
        return cells, [None, *moment, *([] if w is None else [w, w * w])]

    def sums(cells: Array, start: int, values: list[Floats | None], size: int) -> list[Array]:
        cells <<= 1
        cells += outcomes[start : start + len(cells)].astype(kind)
        # bincount would convert to this type itself, but hold the interpreter lock meanwhile.
        cells = cells.astype(np.intp, copy=False)
        return [np.bincount(cells, v, minlength=2 * size) for v in values]

    def count(start: int, stop: int) -> list[Array]:
        cells, values = cells_of(start, stop)
        return sums(cells, start, values, n_cells)

    if 2 * n_cells <= max(n_rows, 1 << 16):
        # Blocks four times as long as their results keep all results small compared to the rows.
        blocks = map_blocks(count, n_rows, 8 * n_cells)
        totals = [sum(parts[1:], start=parts[0]) for parts in zip(*blocks, strict=True)]
        used = np.flatnonzero(totals[0][::2] + totals[0][1::2])
        return used, [(total[::2][used], total[1::2][used]) for total in totals]
    cells, values = cells_of(0, n_rows)
    used, cells = distinct(cells, n_cells, 2 * n_rows)
    totals = sums(cells, 0, values, len(used))
    return used, [(total[::2], total[1::2]) for total in totals]


def _few_scores(scores: Array, most: int) -> Floats | None:
    """The distinct scores in order; None if there are more than `most`."""
    some = scores[:: max(len(scores) // FIRST_LOOK, 1)]
    found = np.unique(some)
    if len(found) > most or len(some) == len(scores):
        return None if len(found) > most else _plain(found)
    exceeded: list[bool] = []

    def distinct_scores(start: int, stop: int) -> Floats:
        x = found[:0] if exceeded else _plain(scores[start:stop])
        slots = _slots(x, _SEEN_BITS)
        seen = np.full(1 << _SEEN_BITS, np.nan)
        seen[slots] = x
        alone: Floats = seen[~np.isnan(seen)]
        if len(alone) <= most:
            alone = np.append(alone, np.unique(x[_looked_up(seen, slots) != x]))
        if len(alone) > most:
            exceeded.append(True)
        return alone

    all_found = np.unique(np.concatenate(map_blocks(distinct_scores, len(scores))))
    return None if exceeded or len(all_found) > most else all_found


def _plain(scores: Array) -> Floats:
    """Scores in float64, with 0.0 for −0.0."""
    plain: Floats = np.add(scores, 0.0, dtype=np.float64)
    return plain


def _slots(scores: Floats, bits: int) -> Any:
    """The slot of each score in a hash table with 2^bits slots."""
    mixed = scores.view(np.uint64) * _MIX
    mixed >>= np.uint64(64 - bits)
    return mixed.view(np.int64)


def _looked_up(table: Array, slots: Any) -> Array:
    """The content of each row's slot."""
    found: Array = np.take(table, slots, mode="wrap")  # the fastest mode
    return found
