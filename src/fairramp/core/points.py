"""Summary: all that a fit needs to know about the rows.

Each group has a list of points. A point is either *exact*, all rows with one score, or a *bin*, all rows with a
score in [lower, upper). Each has a number of rows, Σw, Σw² and a place:

    exact         lower = upper = place
    averaged bin  place = Σw·x / Σw
    plain bin     place = middle of the bin        (cheapest to make: only counted)

A ramp with foot s and width γ is linear between s and s + γ and constant outside. So an averaged bin acts exactly
like its rows unless an end of the ramp falls inside it, and a plain bin does unless it overlaps the ramp.
`unresolved` finds the bins for which this fails, and `replace` swaps them for finer points. Once none is left,
the summary is as good as the rows.

Summaries add up: `join_points` of the points of all parts is the summary of the whole.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from itertools import compress
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from fairramp.core.curve import Array, Floats, Integers, ScoreDistribution, sort_keys
from fairramp.core.labels import Label, united
from fairramp.core.ramps import Booleans as Booleans

#: Maximum number of parts of the score range that a fingerprint distinguishes.
MAX_RESOLUTION = 256

SomePoints = TypeVar("SomePoints", bound="Points")


def resolution(n_rows: int, n_groups: int, wanted: int = MAX_RESOLUTION) -> int:
    """Largest power of two up to `wanted` that leaves several rows per cell on average; at least 4."""
    return 1 << max(min(wanted, n_rows // (4 * n_groups)).bit_length() - 1, 2)


@dataclass(frozen=True)
class Points:
    """Points of several groups, in flat arrays of equal length.

    Attributes
    ----------
    group : integers
        Index of the group.
    place, lower, upper : floats
        Where the point is, and which scores it represents: [lower, upper), or exactly ``place`` if
        lower = upper.
    rows : integers
        Number of rows.
    weight, weight_squares : floats
        Σw and Σw² of the rows.
    averaged : booleans
        Whether ``place`` is the weighted mean of the rows' scores.
    """

    group: Integers
    place: Floats
    lower: Floats
    upper: Floats
    rows: Integers
    weight: Floats
    weight_squares: Floats
    averaged: Booleans

    def __len__(self) -> int:
        return len(self.group)

    def take(self, which: Integers | Booleans | slice) -> Self:
        """Selected points, in the given order."""
        return replace(self, **{f.name: getattr(self, f.name)[which] for f in fields(self)})

    @property
    def exact(self) -> Booleans:
        """Which points represent a single score."""
        return np.equal(self.lower, self.upper)

    @classmethod
    def from_rows(cls, group: Integers, scores: Floats, weights: Floats | None) -> Self:
        """Exact points, one for each distinct score of a group."""
        # A stable order makes sums over equal scores reproducible everywhere; 16-bit integers are radix sorted.
        order = np.argsort(scores, kind=None if weights is None else "stable")
        kind = np.uint16 if group.max(initial=0) < 1 << 16 else np.intp
        order = order[np.argsort(group[order].astype(kind), kind="stable")]
        group, scores = group[order], scores[order]
        first = run_starts(group, scores)
        rows = np.diff(first, append=len(order))
        weight = squares = rows.astype(np.float64)
        if weights is not None:
            w = weights[order]
            weight, squares = np.add.reduceat(w, first), np.add.reduceat(w * w, first)
        place = scores[first] + 0.0  # −0.0 is 0.0
        return cls(group[first], place, place, place, rows, weight, squares, np.ones(len(first), dtype=bool))

    @classmethod
    def from_means(
        cls,
        group: Integers,
        means: Floats,
        lower: Floats,
        upper: Floats,
        rows: Integers,
        weight: Floats,
        squares: Floats,
    ) -> Self:
        """Averaged bins; bins with lower = upper become exact points."""
        last = np.where(lower == upper, lower, np.nextafter(upper, -np.inf))
        place = np.clip(means, lower, last)  # rounding must not leave the bin
        return cls(group, place, lower, upper, rows, weight, squares, np.ones(len(group), dtype=bool))

    def summed(self, first: Integers, **others: Any) -> Self:
        """One point per run, given the start of each run: sums, and `others` as given."""
        sums = {name: np.add.reduceat(getattr(self, name), first) for name in self._sums}
        return replace(self.take(first), **(sums | others))

    #: Fields that add up when points are merged.
    _sums: ClassVar[tuple[str, ...]] = ("rows", "weight", "weight_squares")


@dataclass(frozen=True)
class LabeledPoints(Points):
    """Points whose rows have labels.

    Attributes
    ----------
    positive_rows : integers
        Number of rows with label 1.
    positives, square_positives : floats
        Σw and Σw² of these rows.
    """

    positive_rows: Integers
    positives: Floats
    square_positives: Floats

    _sums = (*Points._sums, "positive_rows", "positives", "square_positives")

    @classmethod
    def of(cls, points: Points, rows: Integers, weight: Floats, squares: Floats) -> Self:
        """Points with the sums of their rows of label 1."""
        own = {f.name: getattr(points, f.name) for f in fields(Points)}
        return cls(**own, positive_rows=rows, positives=weight, square_positives=squares)

    @property
    def unlabeled(self) -> Points:
        """The same points without labels."""
        return Points(*(getattr(self, f.name) for f in fields(Points)))


def run_starts(*columns: Array) -> Integers:
    """Index of each row that differs from the previous row in some column."""
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = reduce(np.logical_or, (column[1:] != column[:-1] for column in columns))
    return np.flatnonzero(new)


def concatenated(parts: Sequence[SomePoints]) -> SomePoints:
    """Concatenate several lists of points, all with labels or all without."""
    kind = type(parts[0])
    return kind(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(kind)))


def join_points(parts: Sequence[SomePoints]) -> SomePoints:
    """Merge several lists of points; points of one group that represent the same scores become one."""
    p = concatenated(parts)
    p = p.take(np.lexsort((p.upper, p.lower, p.group)))
    first = run_starts(p.group, p.lower, p.upper)
    if len(first) < len(p):
        one = p.summed(first, averaged=np.logical_and.reduceat(p.averaged, first))
        mean = np.add.reduceat(p.weight * p.place, first) / one.weight
        inside = np.clip(mean, one.lower, np.nextafter(one.upper, -np.inf))  # rounding must not leave the bin
        p = replace(one, place=np.where(one.averaged & ~one.exact, inside, one.place))
    return p.take(np.lexsort((p.place, p.group)))


@dataclass(frozen=True)
class Summary:
    """The scores of each group, summarized.

    Attributes
    ----------
    labels : tuple
        The groups; each has at least one point.
    points : Points
        Their points, ordered by group and place.
    """

    labels: tuple[Label, ...]
    points: Points

    @classmethod
    def of_occurring(cls, labels: Sequence[Label], points: Points) -> Self:
        """A summary of only those labels that have points."""
        present = np.bincount(points.group, minlength=len(labels)) > 0
        place = np.cumsum(present) - 1
        return cls(tuple(compress(labels, present)), replace(points, group=place[points.group]))

    @cached_property
    def sizes(self) -> Integers:
        """Number of points of each group."""
        return np.bincount(self.points.group, minlength=len(self.labels))

    def total(self, values: Floats | Integers) -> Floats:
        """Sum of a per-point quantity in each group."""
        return np.add.reduceat(values, self._starts)

    @cached_property
    def _starts(self) -> Integers:
        """Index of each group's first point."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def rows(self) -> Integers:
        """Number of rows of each group."""
        return self.total(self.points.rows).astype(np.intp)

    @cached_property
    def weights(self) -> Floats:
        """Σw of each group."""
        return self.total(self.points.weight)

    @property
    def shares(self) -> Floats:
        """Each group's share of the total weight."""
        scaled: Floats = self.weights / self.weights.max()  # the sum of huge weights must not overflow
        return scaled / np.sum(scaled)

    def distribution(self) -> ScoreDistribution:
        """The points as the solver sees them."""
        return self._distribution

    @cached_property
    def _distribution(self) -> ScoreDistribution:
        return ScoreDistribution(self.sizes, self.points.place, self.points.weight)

    def fingerprint(self, lowest: float, highest: float) -> str:
        """SHA-256 of the row counts per group and part of the score range; independent of the row order."""
        parts = resolution(int(self.rows.sum()), len(self.labels))
        per_unit = parts / (highest - lowest)  # a power of two, so products are exact
        index = np.floor(self.points.lower * per_unit).astype(np.intp) - int(lowest * per_unit)
        cells = self.points.group * (parts + 1) + index
        counts = np.bincount(cells, self.points.rows, minlength=(parts + 1) * len(self.labels))
        names = json.dumps([parts, self.labels]).encode()
        return hashlib.sha256(names + counts.astype("<i8").tobytes()).hexdigest()

    def beside(self, other: "Summary") -> tuple[tuple[Label, ...], Points]:
        """The groups of both summaries, and the points of both concatenated."""
        labels, places = united(self.labels, other.labels)
        parts = zip((self.points, other.points), places, strict=True)
        return labels, concatenated([replace(p, group=place[p.group]) for p, place in parts])

    def pooled(self) -> "Summary":
        """All rows as one group."""
        p = self.points
        return Summary((None,), join_points([replace(p, group=np.zeros_like(p.group))]))

    def unresolved(self, feet: Floats, widths: Floats | float, edges: Floats) -> tuple[Booleans, Booleans]:
        """Find bins that are too coarse to be exact for the given ramps.

        Parameters
        ----------
        feet : floats of shape (m, K)
            Ramps at which every group's rate must be exact.
        widths : floats of shape (m, K), or float
            Their widths.
        edges : floats of shape (l, K)
            Scores at or above which rows must be counted exactly.

        Returns
        -------
        split, average : booleans, one per point
            Bins to split into finer points, and bins for which the mean is enough.
        """
        p, coarse = self.points, ~self.points.exact
        if not coarse.any():  # sorted rows
            return coarse, coarse
        cut, meets = np.zeros_like(coarse), np.zeros_like(coarse)
        for foot, width in zip(feet, np.broadcast_to(widths, feet.shape), strict=True):
            foot, top = foot[p.group], (foot + width)[p.group]
            # A bin that starts at the foot is split too: rows at the foot are out, rows above it are not.
            cut |= ((p.lower <= foot) & (foot < p.upper)) | ((p.lower < top) & (top < p.upper))
            meets |= (p.lower < top) & (p.upper > foot)
        for edge in (row[p.group] for row in edges):
            cut |= (p.lower < edge) & (edge < p.upper)
        return cut & coarse, meets & ~cut & coarse & ~p.averaged

    def replace(self, which: Booleans, finer: Points) -> "Summary":
        """The same summary with some bins replaced by finer points."""
        points = concatenated([self.points.take(~which), finer])
        keys = sort_keys(points.group, points.place)  # two sorted runs, to be merged
        return Summary(self.labels, points.take(np.argsort(keys, kind="stable")))
