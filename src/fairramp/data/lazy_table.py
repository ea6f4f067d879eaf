"""A lazy table as a fit reads it: short names, sound values, and the groups that are in it.

    table       columns of the user's      →  x the score, g0, g1, … what makes a group, w the weight, y the label
    profile     one pass, sums per group   →  the groups, their rows and weights, or one clear sentence

Nothing but these sums comes to Python. A comparison with null is null, and one with NaN false, so that rows which
are not sound are found by counting those that are.
"""

from typing import Any, NamedTuple

import numpy as np

from fairramp.core.curve import Floats, Integers
from fairramp.core.labels import Label, canonical_label, label_key, label_of
from fairramp.core.scales import SATURATION, Scale
from fairramp.data import engines
from fairramp.data.arrays import no_weight
from fairramp.data.columns import Columns
from fairramp.data.rows import refusal
from fairramp.errors import InputError

__all__ = ["LazyTable", "Profile"]

_BIGGEST = float(np.finfo(np.float64).max)


class LazyTable:
    """The columns of a lazy table that matter, under short names.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        The user's table.
    columns : Columns
        Its columns that a rule reads.
    weight, label : str, optional
        More columns.
    """

    def __init__(
        self,
        frame: Any,
        columns: Columns,
        *,
        weight: str | None = None,
        label: str | None = None,
    ) -> None:
        import narwhals as nw

        frame, plain = engines.plain_names(frame)
        schema = frame.collect_schema()
        assert columns.score is not None
        read = {"x": _number(schema, plain[columns.score], "scores")}
        self.keys = [f"g{i}" for i in range(len(columns.grouped))]
        for key, name in zip(self.keys, columns.grouped, strict=True):
            read[key] = _group(schema, plain[name], name)
        if weight is not None:
            read["w"] = _number(schema, plain[weight], "sample_weight")
        if label is not None:
            read["y"] = _number(schema, plain[label], "labels")
        if columns.id is not None:
            read["no_id"] = nw.col(plain[columns.id]).is_null()
        self._n_strata = len(columns.strata or ())
        self.weighted, self.labelled, self.has_id = weight is not None, label is not None, columns.id is not None
        self.rows = frame.select(**read)

    def label(self, key: tuple[Any, ...]) -> Label:
        """The label of a group, or of a cell, from the values of its columns."""
        return label_of(tuple(canonical_label(part) for part in key), self._n_strata)

    def grouped(self, frame: Any, *more: str) -> Any:
        """Rows by group and other columns; a missing group is a group."""
        return frame.group_by(*self.keys, *more, drop_null_keys=False)

    def fetch(self, sums: Any) -> dict[str, Any]:
        """Sums, computed by the engine: labels of groups as lists, all else as floats, NaN where it is null."""
        return {
            name: _list(column) if name in self.keys else _floats(column)
            for name, column in engines.fetch(sums).items()
        }


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
        found = table.fetch(table.grouped(rows).agg(*sums))
        counts = {name: np.nan_to_num(found[name]) for name in ("n", *integers)}
        n_rows = counts["n"].sum()
        if not n_rows:
            raise InputError("is empty", argument="scores", remedy="pass at least one row")
        if counts["sound"].sum() < n_rows:
            _refuse_scores(table, scale, (x >= low) & (x <= high))
        if table.has_id and counts["no_id"].sum():
            remedy = "give every row an id of its own"
            raise _bad_rows("ids", "must be strings or integers, got null", counts["no_id"].sum(), remedy)
        if table.labelled and counts["zero_one"].sum() < n_rows:
            raise _bad_rows("labels", "must be 0 or 1, got others", n_rows - counts["zero_one"].sum())

        keys = list(zip(*(found[key] for key in table.keys), strict=True))
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
            n_bad = n_rows - counts["weighs"].sum()
            raise _bad_rows("sample_weight", "must be finite and not negative, got others", n_bad)
        if not self.rows.any():
            raise no_weight()
        lost = np.flatnonzero(self.rows == 0)
        if len(lost):
            raise no_weight(self.labels[lost[0]])
        most, least = float(np.nanmax(found["most"])), float(np.nanmin(found["least"]))
        return self._replace(
            largest_weight=most, smallest_weight=least, has_zeros=bool(counts["counts"].sum() < n_rows)
        )


def _number(schema: Any, name: str, argument: str) -> Any:
    """A column of numbers, in float64."""
    import narwhals as nw

    dtype = schema[name]
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        what = "text" if dtype in (nw.String, nw.Categorical, nw.Enum) else f"values of type {dtype}"
        raise InputError("must be numbers, got {what}", argument=argument, what=what)
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
            "A group label must be a string, a whole number, a boolean or missing, got values of type {dtype} in "
            "{name!r}",
            remedy="convert such labels to strings",
            dtype=dtype,
            name=shown,
        )
    return column


def _refuse_scores(table: LazyTable, scale: Scale, sound: Any) -> None:
    """Say what is wrong with scores of which some are."""
    import narwhals as nw

    x = nw.col("x")
    bad = table.rows.filter(~sound | x.is_null()).select("x")
    bad = bad.with_columns(null=x.is_null().cast(nw.Int64), nan=x.is_nan().cast(nw.Int64))
    kinds = table.fetch(bad.select(nw.len().alias("n"), nw.col("null").sum(), nw.col("nan").sum()))
    n, null, nan = (int(np.nan_to_num(kinds[name])[0]) for name in ("n", "null", "nan"))
    if null:
        raise _bad_rows("scores", "must be finite numbers, got null", null)
    if nan:
        raise refusal(scale, float("nan"), _in_rows(nan))
    ends = table.fetch(bad.select(x.min().alias("low"), x.max().alias("high")))
    low, high = float(ends["low"][0]), float(ends["high"][0])
    raise refusal(scale, low if low < scale.score_range[0] or np.isinf(low) else high, _in_rows(n))


def _bad_rows(argument: str, rule: str, n: float, remedy: str | None = None) -> InputError:
    return InputError(rule + " in {where}", argument=argument, remedy=remedy, where=_in_rows(n))


def _in_rows(n: float) -> str:
    return f"{int(n):,} row{'s' if n > 1 else ''}"


def _floats(column: Any) -> Floats:
    return np.ma.filled(np.ma.asarray(column, dtype=np.float64), np.nan)


def _list(column: Any) -> list[Any]:
    values: list[Any] = column if isinstance(column, list) else column.tolist()
    return values
