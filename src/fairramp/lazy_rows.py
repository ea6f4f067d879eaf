"""Rows of a lazy table: what a fit asks of them is computed where they are.

    profile     one pass per group: rows, sound scores, weights        → labels, or one clear sentence
    summarize   one pass per group and bin: rows, Σw, Σw², mean
    refine      a pass over the rows of a few chosen bins: their scores one by one, or finer bins

Nothing but these sums comes to Python. Where a score is its own position, a bin of the first pass is known by
its edges, which are powers of two apart and exact. All other bins are known by their lowest and highest score,
as the engine found them: a bin of one score is an exact point at once, and no edge is ever computed twice, by an
engine and by NumPy, with results that differ in the last digit (logits; their exponentials do).

Group columns are called g0, g1, … in here, whatever their names, the score x, the weight w.
"""

from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from fairramp.criteria.parity import ParityProblem
from fairramp.distribution import Floats, Integers, sort_keys
from fairramp.exceptions import FairrampError, InputError
from fairramp.grid import Grid
from fairramp.groups import Label, canonical_label, label_key
from fairramp.request import LARGEST_WEIGHT, SMALLEST_WEIGHT
from fairramp.rows import SORTED_ROWS, finer_parts, refusal
from fairramp.scales import SATURATION, Scale
from fairramp.summary import MAX_RESOLUTION, Booleans, Points, Summary, join_points, resolution

__all__ = ["LazyRows", "LazyTable", "Profile", "fetch", "small_table"]

#: Bins per group in the first pass, at most.
MAX_BINS = 1 << 11
#: Bins of all groups together, unless the fingerprint needs more.
MAX_CELLS = 1 << 19
#: So many rows of chosen bins are looked at one by one; more are binned again.
LOOKED_AT = 1 << 18

_BIGGEST = float(np.finfo(np.float64).max)


class LazyTable:
    """The columns of a lazy table that matter, under short names.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        The user's table.
    score : str
        Its score column.
    strata, groups : tuple of str
        Its columns that make a cell, or a group if there are no strata.
    weight, label, id : str, optional
        More columns.
    """

    def __init__(
        self,
        frame: Any,
        score: str,
        groups: tuple[str, ...],
        strata: tuple[str, ...] = (),
        *,
        weight: str | None = None,
        label: str | None = None,
        id: str | None = None,
    ) -> None:
        import narwhals as nw

        frame, plain = plain_names(frame)
        schema = frame.collect_schema()
        columns = {"x": _number(schema, plain[score], "scores")}
        for i, name in enumerate((*strata, *groups)):
            columns[f"g{i}"] = _group(schema, plain[name], name)
        if weight is not None:
            columns["w"] = _number(schema, plain[weight], "sample_weight")
        if label is not None:
            columns["y"] = _number(schema, plain[label], "labels")
        if id is not None:
            columns["no_id"] = nw.col(plain[id]).is_null()
        self.n_strata, self.n_columns = len(strata), len(strata) + len(groups)
        self.keys = [f"g{i}" for i in range(self.n_columns)]
        self.weighted, self.labelled, self.has_id = weight is not None, label is not None, id is not None
        self.rows = frame.select(**columns)

    def label(self, key: tuple[Any, ...]) -> Label:
        """The label of a group, or of a cell, from the values of its columns."""
        parts = tuple(canonical_label(part) for part in key)
        group = parts[self.n_strata :]
        label: Label = group[0] if len(group) == 1 else group
        if not self.n_strata:
            return label
        return (parts[0] if self.n_strata == 1 else parts[: self.n_strata], label)

    def grouped(self, frame: Any, *more: str) -> Any:
        """Rows by group and other columns; a missing group is a group."""
        return frame.group_by(*self.keys, *more, drop_null_keys=False)


class Profile(NamedTuple):
    """What the first pass finds out about the groups.

    Attributes
    ----------
    keys : list of tuple
        The values of each group's columns, in the order of the labels.
    labels : tuple
        The groups.
    rows : integers
        Rows that have weight, per group.
    largest_weight, smallest_weight : float
        Of the rows that have weight; 1 without weights.
    has_zeros : bool
        Whether rows without weight must be left out.
    saturated : int
        Logits, of rows that have weight, whose probability is 1.
    """

    keys: list[tuple[Any, ...]]
    labels: tuple[Label, ...]
    rows: Integers
    largest_weight: float = 1.0
    smallest_weight: float = 1.0
    has_zeros: bool = False
    saturated: int = 0

    @classmethod
    def of(cls, table: LazyTable, scale: Scale) -> "Profile":
        """Pass over a table and refuse what is not sound in it."""
        import narwhals as nw

        x, w, y = nw.col("x"), nw.col("w"), nw.col("y")
        low, high = scale.finite_range
        # A comparison with null is null, and one with NaN false: neither is counted as sound.
        checks = {"sound": (x >= low) & (x <= high)}
        sums = [nw.len().alias("n"), nw.col("sound").sum()]
        if table.weighted:
            checks |= {"weighs": (w >= 0) & (w <= _BIGGEST), "counts": w > 0, "positive": nw.when(w > 0).then(w)}
            sums += [nw.col("weighs").sum(), nw.col("counts").sum()]
            sums += [nw.col("positive").max().alias("most"), nw.col("positive").min().alias("least")]
        if table.labelled:
            checks["zero_one"] = (y == 0) | (y == 1)
            sums.append(nw.col("zero_one").sum())
        if table.has_id:
            sums.append(nw.col("no_id").sum())
        if scale.name == "logit":
            checks["tied"] = (x > SATURATION) & (w > 0) if table.weighted else x > SATURATION
            sums.append(nw.col("tied").sum())
        integers: list[str] = [n for n in ("sound", "weighs", "counts", "zero_one", "tied") if n in checks]
        integers += ["no_id"] if table.has_id else []
        rows = table.rows.with_columns(**checks).with_columns(nw.col(*integers).cast(nw.Int64))
        found = fetch(table.grouped(rows).agg(*sums))
        counts = {name: np.nan_to_num(_floats(found[name])) for name in ("n", *integers)}
        n_rows = counts["n"].sum()
        if not n_rows:
            raise InputError("`scores` is empty; pass at least one row.")
        if counts["sound"].sum() < n_rows:
            _refuse_scores(table, scale, (x >= low) & (x <= high))
        if table.has_id and counts["no_id"].sum():
            where = _in_rows(counts["no_id"].sum())
            raise InputError(
                f"`ids` must be strings or integers, got null in {where}; give every row an id of its own."
            )
        if table.labelled and counts["zero_one"].sum() < n_rows:
            raise InputError(
                f"`labels` must be 0 or 1, got others in {_in_rows(n_rows - counts['zero_one'].sum())}."
            )

        keys = list(zip(*(_list(found[key]) for key in table.keys), strict=True))
        labels = [table.label(key) for key in keys]
        order = sorted(range(len(keys)), key=lambda i: label_key(labels[i]))
        counted = counts["counts" if table.weighted else "n"].astype(np.intp)[order]
        profile = cls([keys[i] for i in order], tuple(labels[i] for i in order), counted)
        if scale.name == "logit":
            profile = profile._replace(saturated=int(counts["tied"].sum()))
        return profile._with_weights(found, counts) if table.weighted else profile

    def _with_weights(self, found: dict[str, Any], counts: dict[str, Floats]) -> "Profile":
        n_rows = counts["n"].sum()
        if counts["weighs"].sum() < n_rows:
            where = _in_rows(n_rows - counts["weighs"].sum())
            raise InputError(f"`sample_weight` must be finite and not negative, got others in {where}.")
        if not self.rows.any():
            raise InputError("`sample_weight` is zero in every row; at least one must be positive.")
        lost = np.flatnonzero(self.rows == 0)
        if len(lost):
            raise InputError(
                f"`sample_weight` is zero in every row of group {self.labels[lost[0]]!r}; "
                "give its rows weight or leave them out."
            )
        most, least = float(np.nanmax(_floats(found["most"]))), float(np.nanmin(_floats(found["least"])))
        return self._replace(
            largest_weight=most, smallest_weight=least, has_zeros=bool(counts["counts"].sum() < n_rows)
        )


class LazyRows:
    """Rows of a lazy table as a fit sees them; see `fitting.Rows`.

    Parameters
    ----------
    table : LazyTable
        The rows.
    profile : Profile
        Of the same rows.
    scale : Scale
        What the scores mean.
    """

    def __init__(self, table: LazyTable, profile: Profile, scale: Scale) -> None:
        import narwhals as nw

        self.table, self.profile, self.scale = table, profile, scale
        self._code = {key: code for code, key in enumerate(profile.keys)}
        n_rows, n_groups = int(profile.rows.sum()), len(profile.labels)
        wanted = min(max(2 * isqrt(n_rows), MAX_RESOLUTION), MAX_BINS, max(MAX_CELLS // n_groups, MAX_RESOLUTION))
        self._per_unit = resolution(n_rows, n_groups, wanted) / (scale.highest - scale.lowest)

        rows = table.rows
        if profile.has_zeros:
            rows = rows.filter(nw.col("w") > 0)
        factor = 1.0
        if not SMALLEST_WEIGHT < profile.largest_weight < LARGEST_WEIGHT:
            factor = float(np.ldexp(1.0, -int(np.frexp(profile.largest_weight)[1])))
            if profile.smallest_weight * factor == 0:
                raise InputError("`sample_weight` must not differ by more than a factor of 1e300.")
        x = nw.col("x")
        position = {"logit": 1.0 / (1.0 + (-x).exp()), "percent": x / 100.0}.get(scale.name, x)
        rows = rows.with_columns(p=position)
        rows = rows.with_columns(bin=(nw.col("p") * self._per_unit).floor())
        if table.weighted:
            rows = rows.with_columns(w=nw.col("w") * factor)
        self._rows = rows
        self._bins = _Bins.none()

    def summarize(self) -> Summary:
        """First pass: all rows in bins, or one by one if they are few."""
        import narwhals as nw

        labels = self.profile.labels
        few = int(self.profile.rows.sum()) <= SORTED_ROWS
        if few:
            found = self._sums(self._rows.with_columns(d=nw.lit(0.0)), "x")
            return Summary(labels, self._points(self._codes(found), found, np.zeros(len(found["n"]))))
        within = nw.col("p") * self._per_unit - nw.col("bin")  # exact: no sum of full scores loses digits
        own = self.scale.is_position
        found = self._sums(self._rows.with_columns(d=within), "bin", ends=not own)
        bin_ = found["bin"]
        if own:  # the highest score has a bin of its own
            upper = np.nextafter((bin_ + 1) / self._per_unit, -np.inf)
            found |= {"low": bin_ / self._per_unit, "high": np.minimum(upper, self.scale.highest)}
        group = self._codes(found)
        mean = (bin_ + found["d"] / found["w"]) / self._per_unit
        summary = Summary(labels, self._points(group, found, mean, bin_))
        # The fingerprint counts parts of the range; a bin that an engine's rounding let straddle two is opened.
        parts = resolution(int(summary.rows.sum()), len(labels)) / (self.scale.highest - self.scale.lowest)
        while (split := _straddling(summary.points, parts)).any():
            summary = summary.replace(split, self.refine(summary, split, np.zeros_like(split)))
        return summary

    def ahead(self, summary: Summary, problem: ParityProblem, rates: Floats | None) -> tuple[Summary, None]:
        """Nothing to look at before the first solution: each look is a pass."""
        return summary, None

    def binned(self, grid: Grid) -> Summary:
        """One pass: all rows in the bins of a grid that will not be looked into again."""
        import narwhals as nw

        x, p, bin_ = nw.col("x"), nw.col("p"), nw.col("equal")
        rows = self._rows.with_columns(equal=(p * grid.per_unit).floor())
        rows = rows.with_columns(d=p * grid.per_unit - bin_, bin=bin_)
        if grid.is_cut_inside:
            # By the scores themselves: an engine's exponential of the cut-off may be another than NumPy's.
            cut = float(np.floor(grid.cut * grid.per_unit))
            above = nw.when(bin_ > cut).then(bin_).otherwise(nw.lit(cut)) + 1.0
            below = nw.when(bin_ < cut).then(bin_).otherwise(nw.lit(cut))
            rows = rows.with_columns(bin=nw.when(x >= grid.cutoff).then(above).otherwise(below))
        found = self._sums(rows, "bin", "equal")
        low, high = (self.scale.position(found[name]) + 0.0 for name in ("low", "high"))
        means = np.where(low == high, low, (found["equal"] + found["d"] / found["w"]) / grid.per_unit)
        bins = found["bin"].astype(np.intp) - int(grid.scale.lowest * grid.per_unit)
        rows_ = found["n"].astype(np.intp)
        points = grid.filled(self._codes(found), bins, means, low == high, rows_, found["w"], found["w2"])
        return Summary(self.profile.labels, grid.joined(points))

    def refine(self, summary: Summary, split: Booleans, average: Booleans) -> Points:
        """Exact points for the chosen bins of a summary of these rows, finer bins for crowded ones."""
        import narwhals as nw

        assert not average.any(), "all bins know their mean"
        chosen = summary.points.take(split)
        bins = self._bins.of(chosen)
        crowded = np.zeros(len(chosen), dtype=bool)
        if chosen.rows.sum() > LOOKED_AT:
            crowded = chosen.rows > LOOKED_AT // len(chosen)
        span = np.nextafter(chosen.upper, -np.inf) - chosen.lower
        # Where few floats are left between the ends, rounding by the engine could stop all progress.
        crowded &= (span > 64 * np.spacing(np.abs(chosen.upper))) & (span > 1e-300)
        parts = finer_parts(max(int(crowded.sum()), 1))
        with np.errstate(divide="ignore", over="ignore"):
            per_part = np.where(crowded, parts / span, 0.0)

        keys = [self.profile.keys[code] for code in chosen.group.tolist()]
        small: dict[str, list[Any]] = {
            name: list(column) for name, column in zip(self.table.keys, zip(*keys, strict=True), strict=True)
        }
        small |= {
            "bin": bins.bin.tolist(),
            "low": bins.low.tolist(),
            "high": bins.high.tolist(),
            "start": chosen.lower.tolist(),
            "per_part": per_part.tolist(),
            "owner": np.arange(len(chosen), dtype=np.float64).tolist(),
        }
        x = nw.col("x")
        # Most rows are far from all chosen bins: engines drop them as they read, before the join.
        near = self._rows.filter((x >= float(bins.low.min())) & (x <= float(bins.high.max())))
        hits = self._join(near, small).filter((x >= nw.col("low")) & (x <= nw.col("high")))
        hits = hits.with_columns(d=nw.col("p") - nw.col("start"))
        if crowded.any():
            finer = (nw.col("d") * nw.col("per_part")).floor()
            hits = hits.with_columns(part=nw.when(nw.col("per_part") > 0).then(finer).otherwise(x))
        else:
            hits = hits.with_columns(part=x)
        found = self._sums(hits, "owner", "part", by_group=False)
        owner = found["owner"].astype(np.intp)
        if not np.array_equal(np.bincount(owner, found["n"], minlength=len(chosen)), chosen.rows):
            raise FairrampError(
                "The table changed while it was read, or gives other rows each time; fit a fixed copy."
            )
        mean = chosen.lower[owner] + found["d"] / found["w"]
        return self._points(chosen.group[owner], found, mean, bins.bin[owner])

    def _join(self, rows: Any, small: dict[str, list[Any]]) -> Any:
        """Rows that belong to the group and bin of a small table, with its columns."""
        import narwhals as nw

        schema = self._rows.collect_schema()
        on = ["bin", *self.table.keys]
        for name in self.table.keys:
            if any(value is None for value in small[name]):
                # Null never equals null in a join: a flag and a value of the same type do.
                blank = _blank(schema[name])
                rows = rows.with_columns(
                    nw.col(name).is_null().cast(nw.Float64).alias(f"no_{name}"), nw.col(name).fill_null(blank)
                )
                small[f"no_{name}"] = [float(value is None) for value in small[name]]
                small[name] = [blank if value is None else value for value in small[name]]
                on.append(f"no_{name}")
        other = small_table(self._rows, small).with_columns(
            nw.col(name).cast(schema[name]) for name in self.table.keys
        )
        return rows.join(other, on=on, how="inner")

    def _sums(self, rows: Any, *by: str, by_group: bool = True, ends: bool = True) -> dict[str, Any]:
        """Rows, Σw, Σw², Σw·d and, if asked for, the lowest and highest score of each class of rows."""
        import narwhals as nw

        w, d = nw.col("w"), nw.col("d")
        if self.table.weighted:
            rows = rows.with_columns(d=d * w, w2=w * w)
            weights = [w.sum().alias("sum_w"), nw.col("w2").sum()]
        else:
            weights = []
        sums = [nw.len().alias("n"), d.sum()]
        if ends:
            sums += [nw.col("x").min().alias("low"), nw.col("x").max().alias("high")]
        grouped = self.table.grouped(rows, *by) if by_group else rows.group_by(*by)
        # The names of sums must not be those of keys.
        found = fetch(grouped.agg(*sums, *weights))
        result = {name: column if name in self.table.keys else _floats(column) for name, column in found.items()}
        result["w"] = result["sum_w"] if self.table.weighted else result["n"]
        result["w2"] = result["w2"] if self.table.weighted else result["n"]
        return result

    def _codes(self, found: dict[str, Any]) -> Integers:
        keys = zip(*(_list(found[key]) for key in self.table.keys), strict=True)
        try:
            return np.fromiter((self._code[key] for key in keys), dtype=np.intp, count=len(found["n"]))
        except KeyError:
            raise FairrampError("The table changed while it was read; fit a fixed copy.") from None

    def _points(self, group: Integers, found: dict[str, Any], mean: Floats, bin_: Floats | None = None) -> Points:
        """Sums as points, those of one score as exact ones; where the others' rows are is remembered."""
        lower, top = (self.scale.position(found[name]) + 0.0 for name in ("low", "high"))
        exact = lower == top
        points = Points(
            group=group,
            place=np.where(exact, lower, np.clip(mean, lower, top)),
            lower=lower,
            upper=np.where(exact, lower, np.nextafter(top, np.inf)),
            rows=found["n"].astype(np.intp),
            weight=found["w"],
            weight_squares=found["w2"],
            averaged=np.ones(len(group), dtype=bool),
        )
        if bin_ is not None and not exact.all():
            self._bins = self._bins.joined(
                points.take(~exact), *(v[~exact] for v in (bin_, found["low"], found["high"]))
            )
        return join_points([points])


class _Bins(NamedTuple):
    """Where the rows of each bin are: the bin of the first pass, lowest and highest score as they came."""

    keys: Any
    bin: Floats
    low: Floats
    high: Floats

    @classmethod
    def none(cls) -> "_Bins":
        return cls(np.empty(0, dtype=np.complex128), np.empty(0), np.empty(0), np.empty(0))

    def joined(self, points: Points, bin_: Floats, low: Floats, high: Floats) -> "_Bins":
        """Together with new bins; of two with one beginning the newer, which is narrower, counts."""
        keys = np.concatenate([sort_keys(points.group, points.lower), self.keys])
        values = [np.concatenate(pair) for pair in zip((bin_, low, high), self[1:], strict=True)]
        keys, first = np.unique(keys, return_index=True)
        return _Bins(keys, *(value[first] for value in values))

    def of(self, points: Points) -> "_Bins":
        """Those of given points."""
        at = np.searchsorted(self.keys, sort_keys(points.group, points.lower))
        return _Bins(*(value[at] for value in self))


def _straddling(points: Points, parts: float) -> Booleans:
    """Which bins lie in two parts of the range."""
    last = np.where(points.exact, points.lower, np.nextafter(points.upper, -np.inf))
    found: Booleans = np.floor(points.lower * parts) != np.floor(last * parts)
    return found


def fetch(frame: Any) -> dict[str, Any]:
    """Compute a lazy table and return its columns as arrays; as lists where they hold group labels."""
    import narwhals as nw

    if frame.implementation is nw.Implementation.DUCKDB:
        columns: dict[str, Any] = frame.to_native().fetchnumpy()  # needs no Arrow
        return columns
    done = frame.collect()
    return {name: _labels(done[name]) if name.startswith("g") else done[name].to_numpy() for name in done.columns}


def _labels(column: Any) -> list[Any]:
    """Values of a column of labels; pandas says nan where others say None."""
    values: list[Any] = column.to_list()
    if not column.null_count():
        return values
    return [None if null else value for value, null in zip(values, column.is_null().to_list(), strict=True)]


def plain_names(frame: Any) -> tuple[Any, dict[str, str]]:
    """A lazy table whose columns have names that its engine takes as they are, and the plain name of each.

    Spark finds structure in dots and backticks and does not tell upper from lower case; others take any name.
    """
    import narwhals as nw

    names = frame.collect_schema().names()
    if frame.implementation is not nw.Implementation.PYSPARK:
        return frame, {name: name for name in names}
    plain = [f"c{i}" for i in range(len(names))]
    return nw.from_native(frame.to_native().toDF(*plain)), dict(zip(names, plain, strict=True))


def small_table(frame: Any, columns: dict[str, list[Any]]) -> Any:
    """A small table that can be joined to a lazy one: in its engine and, for a data base, in its session."""
    import narwhals as nw

    if frame.implementation is nw.Implementation.DUCKDB:
        return nw.from_native(duckdb_table(frame.to_native(), columns))
    if frame.implementation is nw.Implementation.PYSPARK:
        return nw.from_native(spark_table(frame.to_native(), columns))
    if frame.implementation is nw.Implementation.DASK:
        import dask.dataframe
        import pandas

        small = dask.dataframe.from_pandas(pandas.DataFrame(columns), npartitions=1)  # type: ignore[no-untyped-call]
        return nw.from_native(small)
    return nw.from_dict(columns, backend=frame.implementation).lazy()


def spark_table(frame: Any, columns: dict[str, list[Any]]) -> Any:
    """A small table in a Spark table's session, copied to all executors; plans show only its columns' names."""
    import pyarrow
    from pyspark.sql import functions

    return functions.broadcast(frame.sparkSession.createDataFrame(pyarrow.table(columns)))


def duckdb_table(relation: Any, columns: dict[str, list[Any]]) -> Any:
    """A small table in the session of a relation; what is in it shows in no query and in no plan."""
    import duckdb

    __fairramp_columns = {
        name: np.array(values, dtype=object if isinstance(values[0], str) else None)
        for name, values in columns.items()
    }
    assert __fairramp_columns, "read by DuckDB, which finds it by its name"
    try:
        return relation.query("__fairramp_rows", "SELECT * FROM __fairramp_columns")
    except duckdb.CatalogException:
        raise InputError(
            "DuckDB is not allowed to read Python variables, which fairramp needs; "
            "SET python_enable_replacements = true."
        ) from None


def _floats(column: Any) -> Floats:
    return np.ma.filled(np.ma.asarray(column, dtype=np.float64), np.nan)


def _list(column: Any) -> list[Any]:
    values: list[Any] = column if isinstance(column, list) else column.tolist()
    return values


def _blank(dtype: Any) -> Any:
    """Any value of a type."""
    import narwhals as nw

    if dtype == nw.String:
        return ""
    return False if dtype == nw.Boolean else 0


def _number(schema: Any, name: str, argument: str) -> Any:
    """A column of numbers, in float64."""
    import narwhals as nw

    dtype = schema[name]
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        what = "text" if dtype in (nw.String, nw.Categorical, nw.Enum) else f"values of type {dtype}"
        raise InputError(f"`{argument}` must be numbers, got {what}.")
    return nw.col(name).cast(nw.Float64)


def _group(schema: Any, name: str, shown: str) -> Any:
    """A column of labels, of a type that engines compare alike."""
    import narwhals as nw

    dtype, column = schema[name], nw.col(name)
    if dtype in (nw.Categorical, nw.Enum):
        return column.cast(nw.String)
    if dtype.is_float() or dtype.is_decimal():
        column = column.cast(nw.Float64)
        return nw.when(~column.is_nan()).then(column)
    if dtype in (nw.Int128, nw.UInt128):  # what DuckDB's sum() gives; NumPy would round them
        return column.cast(nw.Int64)
    if not (dtype.is_integer() or dtype in (nw.String, nw.Boolean)):
        raise InputError(
            "A group label must be a string, a whole number, a boolean or missing, got values of type "
            f"{dtype} in {shown!r}; convert such labels to strings."
        )
    return column


def _refuse_scores(table: LazyTable, scale: Scale, sound: Any) -> None:
    """Say what is wrong with scores of which some are."""
    import narwhals as nw

    x = nw.col("x")
    bad = table.rows.filter(~sound | x.is_null()).select("x")
    bad = bad.with_columns(null=x.is_null().cast(nw.Int64), nan=x.is_nan().cast(nw.Int64))
    kinds = fetch(bad.select(nw.len().alias("n"), nw.col("null").sum(), nw.col("nan").sum()))
    n, null, nan = (int(np.nan_to_num(_floats(kinds[name]))[0]) for name in ("n", "null", "nan"))
    if null:
        raise InputError(f"`scores` must be finite numbers, got null in {_in_rows(null)}.")
    if nan:
        raise refusal(scale, float("nan"), _in_rows(nan))
    ends = fetch(bad.select(x.min().alias("low"), x.max().alias("high")))
    low, high = float(_floats(ends["low"])[0]), float(_floats(ends["high"])[0])
    raise refusal(scale, low if low < scale.score_range[0] or np.isinf(low) else high, _in_rows(n))


def _in_rows(n: float) -> str:
    return f"{int(n):,} row{'s' if n > 1 else ''}"
