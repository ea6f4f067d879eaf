"""Rows of a lazy table: the engine computes what a fit needs.

    summarize   one pass per group and bin: rows, Σw, Σw², mean and, if requested, Σw·y and Σw²·y of the labels
    refine      a pass over the rows of a few selected bins: single scores, or finer bins

Only these sums are loaded into Python. Where a score is its own position, a bin of the first pass is identified
by its edges, which are multiples of a power of two and exact. All other bins are identified by their lowest and
highest score, as found by the engine: a bin with one score is exact at once, and no edge is computed both by an
engine and by NumPy, whose exponentials of logits can differ in the last digit.

With labels, the bins of the first pass are those of `places`, so that `labeled` can use its sums. If there are
few distinct scores, each is a bin.

Columns have the short names of `LazyTable`: x for the score, g0, g1, … for the group, w for the weight, y for the
label.
"""

from functools import cached_property
from math import isqrt
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from fairramp.core.curve import Booleans, Floats, Integers, sort_keys
from fairramp.core.points import MAX_RESOLUTION, LabeledPoints, Points, Summary, join_points, resolution
from fairramp.core.scales import Scale
from fairramp.data.engines import engine_of
from fairramp.data.grid import Grid
from fairramp.data.lazy_table import LazyTable, Profile
from fairramp.data.places import FIRST_LOOK, most_places, too_crowded
from fairramp.data.rows import Rows, finer_parts
from fairramp.data.sample import scaling
from fairramp.errors import FairrampError

#: Up to this many rows are read one by one instead of binned.
SORTED_ROWS = 1 << 15
#: Maximum number of bins per group in the first pass.
MAX_BINS = 1 << 11
#: Maximum number of bins of all groups together, unless the fingerprint needs more.
MAX_CELLS = 1 << 19
#: Up to this many rows of selected bins are read one by one; more are binned again.
LOOKED_AT = 1 << 18


def position_of(scale: Scale) -> Any:
    """The position of the score in column x, as an expression."""
    x = nw.col("x")
    low = nw.when(x < -0.5).then(-1.0 - 0.25 / x).otherwise(x)
    converted: dict[str, Any] = {
        "logit": 1.0 / (1.0 + (-x).exp()),
        "percent": x / 100.0,
        "real": nw.when(x > 0.5).then(1.0 - 0.25 / x).otherwise(low),
    }
    return scale.turned(converted.get(scale.name, x))


class LazyRows(Rows):
    """Rows of a lazy table as a fit reads them; ramps are not guessed in advance, because each look is a pass.

    Parameters
    ----------
    table : LazyTable
        The rows.
    profile : Profile
        Profile of the same rows.
    scale : Scale
        Scale of the scores.
    labeled : bool, default False
        Whether sums of the labels are needed; then the table must have labels.
    """

    def __init__(self, table: LazyTable, profile: Profile, scale: Scale, *, labeled: bool = False) -> None:
        self.table, self.profile, self.scale, self._labeled = table, profile, scale, labeled
        self._code = {key: code for code, key in enumerate(profile.keys)}
        n_rows, n_groups = int(profile.rows.sum()), len(profile.labels)
        wanted = min(max(2 * isqrt(n_rows), MAX_RESOLUTION), MAX_BINS, max(MAX_CELLS // n_groups, MAX_RESOLUTION))
        n_bins = most_places(n_groups) if labeled else resolution(n_rows, n_groups, wanted)
        self._per_unit = n_bins / (scale.highest - scale.lowest)

        p, w = nw.col("p"), nw.col("w")
        rows = table.rows.filter(w > 0) if profile.has_zeros else table.rows
        self._rows = rows.with_columns(p=position_of(scale)).with_columns(bin=(p * self._per_unit).floor())
        if table.weighted:
            shift = scaling(profile.largest_weight, profile.smallest_weight)
            factors = (
                float(np.ldexp(1.0, part)) for part in (shift // 2, shift - shift // 2)
            )  # one may overflow
            for factor in factors:
                self._rows = self._rows.with_columns(w=w * factor)
        self._bins = _Bins(*np.empty((4, 0)))

    def summarize(self) -> Summary:
        """First pass: all rows in bins, or one by one if there are few."""
        labels, first = self.profile.labels, self.first_pass
        found, bin_ = first.sums, first.bins
        if bin_ is None:
            return Summary(labels, self._points(first.group, found, np.zeros(len(first.group))))
        mean = (bin_ + found["d"] / found["sum_w"]) / self._per_unit
        summary = Summary(labels, self._points(first.group, found, mean, bin_))
        # The fingerprint counts parts of the range; bins that straddle two because of engine rounding are opened.
        parts = resolution(int(summary.rows.sum()), len(labels)) / (self.scale.highest - self.scale.lowest)
        while (split := _straddling(summary.points, parts)).any():
            summary = summary.replace(split, self.refine(summary, split, np.zeros_like(split)))
        return summary

    @cached_property
    def first_pass(self) -> "FirstPass":
        """Sums over all rows, per group and bin or, if there are few, per group and score."""
        if int(self.profile.rows.sum()) <= SORTED_ROWS or self._has_few_scores:
            found = self._sums(self._rows.with_columns(d=nw.lit(0.0)), *self.table.keys, "x")
            return FirstPass(self._codes(found), found, None)
        own = self.scale.is_own
        # Distances from the start of the bin are exact; sums of full scores would lose digits.
        rows = self._rows.with_columns(d=nw.col("p") * self._per_unit - nw.col("bin"))
        found = self._sums(rows, *self.table.keys, "bin", ends=not own)
        bin_ = found["bin"]
        if own:  # the highest score has a bin of its own
            upper = np.nextafter((bin_ + 1) / self._per_unit, -np.inf)
            ends = bin_ / self._per_unit, np.minimum(upper, self.scale.highest)
            found |= dict(zip(("low", "high"), self._in_order(*map(self.scale.turned, ends)), strict=True))
        return FirstPass(self._codes(found), found, bin_)

    @cached_property
    def few_scores(self) -> tuple[float, ...] | None:
        """The one or two distinct scores, in order; None if there are more.

        The first pass usually shows more; otherwise, another one counts them.
        """
        first = self.first_pass
        if len(np.unique(first.sums["x"] if first.bins is None else first.bins)) > 2:
            return None
        x = nw.col("x")
        found = self.table.fetch(
            self._rows.select(x=x + 0.0).select(n=x.n_unique(), low=x.min(), high=x.max())  # −0.0 is 0.0
        )
        n, low, high = (float(found[name][0]) for name in ("n", "low", "high"))
        return {1.0: (low,), 2.0: (low, high)}.get(n)

    @property
    def _has_few_scores(self) -> bool:
        """Whether each distinct score is a bin; for labels only, and counted only if a few rows allow it."""
        most, x = most_places(len(self.profile.labels)), self._rows.select(x=nw.col("x") + 0.0)  # −0.0 is 0.0
        looks = (x.head(FIRST_LOOK), x) if self._labeled else ()
        counts = (self.table.fetch(rows.select(nw.col("x").n_unique().alias("n")))["n"] for rows in looks)
        return self._labeled and all(int(n[0]) <= most for n in counts)

    def binned(self, grid: Grid) -> Summary:
        """One pass: all rows in the bins of a grid that will not be refined."""
        x, p, bin_ = nw.col("x"), nw.col("p"), nw.col("equal")
        rows = self._rows.with_columns(equal=(p * grid.per_unit).floor())
        rows = rows.with_columns(d=p * grid.per_unit - bin_, bin=bin_)
        if grid.is_cut_inside:
            # Compare scores, not positions: an engine's exponential of the cutoff may differ from NumPy's.
            cut = float(np.floor(grid.cut * grid.per_unit))
            above = nw.when(bin_ > cut).then(bin_).otherwise(nw.lit(cut)) + 1.0
            below = nw.when(bin_ < cut).then(bin_).otherwise(nw.lit(cut))
            selects = x >= grid.cutoff if self.scale.higher_is_better else x <= grid.cutoff
            rows = rows.with_columns(bin=nw.when(selects).then(above).otherwise(below))
        found = self._sums(rows, *self.table.keys, "bin", "equal")
        low, high = self._ends(found)
        means = np.where(low == high, low, (found["equal"] + found["d"] / found["sum_w"]) / grid.per_unit)
        bins = found["bin"].astype(np.intp) - int(grid.scale.lowest * grid.per_unit)
        first = FirstPass(self._codes(found), found, bins)
        points = grid.filled(first.group, bins, means, low == high, first.rows, found["sum_w"], found["w2"])
        return Summary(self.profile.labels, grid.joined(_with_labels(points, found) if self._labeled else points))

    def refine(self, summary: Summary, split: Booleans, average: Booleans) -> Points:
        """Exact points for selected bins of a summary of these rows, finer bins for crowded ones."""
        assert not average.any(), "all bins have their mean"
        return self._points(*self._opened(summary, split))

    def _opened(self, summary: Summary, split: Booleans) -> tuple[Integers, dict[str, Any], Floats, Floats]:
        """Group, sums, mean and bin of finer points for selected bins."""
        chosen = summary.points.take(split)
        bins = self._bins.of(chosen)
        crowded = (chosen.rows > LOOKED_AT // len(chosen)) & (chosen.rows.sum() > LOOKED_AT)
        span = np.nextafter(chosen.upper, -np.inf) - chosen.lower
        # If few floats are left between the ends, rounding by the engine could stop all progress.
        crowded &= (span > 64 * np.spacing(np.abs(chosen.upper))) & (span > 1e-300)
        parts = finer_parts(max(int(crowded.sum()), 1))
        per_part = np.divide(parts, span, out=np.zeros(len(chosen)), where=crowded)

        keys = [self.profile.keys[code] for code in chosen.group.tolist()]
        small: dict[str, list[Any]] = {
            **dict(zip(self.table.keys, map(list, zip(*keys, strict=True)), strict=True)),
            "bin": bins.bin.tolist(),
            "low": bins.low.tolist(),
            "high": bins.high.tolist(),
            "start": chosen.lower.tolist(),
            "per_part": per_part.tolist(),
            "owner": np.arange(len(chosen), dtype=np.float64).tolist(),
        }
        x = nw.col("x")
        # Most rows are far from all selected bins: engines drop them while reading, before the join.
        near = self._rows.filter((x >= float(bins.low.min())) & (x <= float(bins.high.max())))
        hits = self._join(near, small).filter((x >= nw.col("low")) & (x <= nw.col("high")))
        d, each = nw.col("p") - nw.col("start"), nw.col("per_part")
        hits = hits.with_columns(d=d, part=nw.when(each > 0).then((d * each).floor()).otherwise(x))
        found = self._sums(hits, "owner", "part")
        owner = found["owner"].astype(np.intp)
        if not np.array_equal(np.bincount(owner, found["n"], minlength=len(chosen)), chosen.rows):
            raise FairrampError(
                "The table changed while it was read, or returns different rows each time",
                remedy="fit on a fixed copy",
            )
        return chosen.group[owner], found, chosen.lower[owner] + found["d"] / found["sum_w"], bins.bin[owner]

    def _join(self, rows: Any, small: dict[str, list[Any]]) -> Any:
        """Rows that belong to a group and bin of a small table, with its columns."""
        schema = self._rows.collect_schema()
        on = ["bin", *self.table.keys]
        for name in self.table.keys:
            if any(value is None for value in small[name]):
                # Null never equals null in a join, so compare a flag and a value of the same type.
                blank: Any = {"String": "", "Boolean": False}.get(str(schema[name]), 0)
                rows = rows.with_columns(
                    nw.col(name).is_null().cast(nw.Float64).alias(f"no_{name}"), nw.col(name).fill_null(blank)
                )
                small[f"no_{name}"] = [float(value is None) for value in small[name]]
                small[name] = [blank if value is None else value for value in small[name]]
                on.append(f"no_{name}")
        other = nw.from_native(engine_of(self._rows).small_table(self._rows.to_native(), small))
        typed = (nw.col(name).cast(schema[name]) for name in self.table.keys)
        return rows.join(other.with_columns(typed), on=on, how="inner")

    def _sums(self, rows: Any, *by: str, ends: bool = True) -> dict[str, Any]:
        """Rows, Σw, Σw², Σw·d and, if requested, the lowest and highest score of each class of rows.

        With labels, also the number of rows, Σw and Σw² of those with label 1: y, wy and w2y.
        """
        x, w, d, y = nw.col("x"), nw.col("w"), nw.col("d"), nw.col("y")
        sums = [nw.len().alias("n"), d.sum()]
        if self.table.weighted:
            rows = rows.with_columns(d=d * w, w2=w * w)
            sums += [w.sum().alias("sum_w"), nw.col("w2").sum()]
        if self._labeled:
            sums.append(y.sum())
            if self.table.weighted:
                rows = rows.with_columns(wy=w * y, w2y=nw.col("w2") * y)
                sums += [nw.col("wy").sum(), nw.col("w2y").sum()]
        if ends:  # names that differ from those of keys
            sums += [x.min().alias("low"), x.max().alias("high")]
        found = self.table.fetch(rows.group_by(*by).agg(*sums))
        copies = {"wy": found["y"], "w2y": found["y"]} if self._labeled else {}
        return {"sum_w": found["n"], "w2": found["n"]} | copies | found

    def _in_order(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The ends of ranges after changing between scores and positions, which may have opposite directions."""
        return (low, high) if self.scale.higher_is_better else (high, low)

    def _ends(self, found: dict[str, Any]) -> tuple[Floats, Floats]:
        """The lowest and highest position, from the lowest and highest score."""
        return self._in_order(*(self.scale.position(found[name]) + 0.0 for name in ("low", "high")))

    def _codes(self, found: dict[str, Any]) -> Integers:
        keys = zip(*(found[key] for key in self.table.keys), strict=True)
        try:
            return np.fromiter((self._code[key] for key in keys), dtype=np.intp, count=len(found["n"]))
        except KeyError:
            raise FairrampError("The table changed while it was read", remedy="fit on a fixed copy") from None

    @cached_property
    def labeled_summary(self) -> Summary:
        """The first pass with its labels; crowded bins are opened."""
        first = self.first_pass
        mean = first.sums["low"] if first.bins is None else first.bins + first.sums["d"] / first.sums["sum_w"]
        points = self._points(first.group, first.sums, mean / self._per_unit, first.bins, labeled=True)
        summary = Summary(self.profile.labels, points)
        while (split := too_crowded(summary.points)).any():
            summary = summary.replace(split, self._points(*self._opened(summary, split), labeled=True))
        return summary

    def _points(
        self,
        group: Integers,
        found: dict[str, Any],
        mean: Floats,
        bin_: Floats | None = None,
        *,
        labeled: bool = False,
    ) -> Points:
        """Sums as points, exact if they have one score; remembers where the rows of the others are."""
        lower, top = self._ends(found)
        exact = lower == top
        points = Points(
            group=group,
            place=np.where(exact, lower, np.clip(mean, lower, top)),
            lower=lower,
            upper=np.where(exact, lower, np.nextafter(top, np.inf)),
            rows=found["n"].astype(np.intp),
            weight=found["sum_w"],
            weight_squares=found["w2"],
            averaged=np.ones(len(group), dtype=bool),
        )
        if bin_ is not None and not exact.all():
            self._bins = self._bins.joined(
                points.take(~exact), *(v[~exact] for v in (bin_, found["low"], found["high"]))
            )
        return join_points([_with_labels(points, found) if labeled else points])


class FirstPass(NamedTuple):
    """Sums over all rows, by group and bin.

    Attributes
    ----------
    group : integers
        Index of the group.
    sums : dict of floats
        The sums; see `LazyRows._sums`.
    bins : floats, or None
        Index of the bin, 0 at position 0; None if each score is a bin.
    """

    group: Integers
    sums: dict[str, Any]
    bins: Floats | None

    @property
    def rows(self) -> Integers:
        """Number of rows."""
        return self.sums["n"].astype(np.intp)  # type: ignore[no-any-return]


def _with_labels(points: Points, sums: dict[str, Any]) -> LabeledPoints:
    """Points made of these sums, with the sums of their labels."""
    return LabeledPoints.of(points, sums["y"].astype(np.intp), sums["wy"], sums["w2y"])


class _Bins(NamedTuple):
    """Where the rows of each bin are: the bin of the first pass, and the lowest and highest score as passed."""

    keys: Any
    bin: Floats
    low: Floats
    high: Floats

    def joined(self, points: Points, bin_: Floats, low: Floats, high: Floats) -> "_Bins":
        """Add new bins; of two with the same start, the newer one, which is narrower, wins."""
        keys = np.concatenate([sort_keys(points.group, points.lower), self.keys])
        values = [np.concatenate(pair) for pair in zip((bin_, low, high), self[1:], strict=True)]
        keys, first = np.unique(keys, return_index=True)
        return _Bins(keys, *(value[first] for value in values))

    def of(self, points: Points) -> "_Bins":
        """The bins of given points."""
        at = np.searchsorted(self.keys, sort_keys(points.group, points.lower))
        return _Bins(*(value[at] for value in self))


def _straddling(points: Points, parts: float) -> Booleans:
    """Which bins overlap two parts of the range."""
    last = np.where(points.exact, points.lower, np.nextafter(points.upper, -np.inf))
    return np.not_equal(np.floor(points.lower * parts), np.floor(last * parts))
