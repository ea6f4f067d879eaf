"""A lazy table as a fit reads it: short column names, checked values, and its groups.

    table       the user's columns         →  x for the score, g0, g1, … for the group, w the weight, y the label,
                                              q0, q1, … for the group probabilities, p0, p1, … for the scores of
                                              several classes
    profile     one pass, sums per group   →  the groups, their rows and weights, or an error

Only these sums are loaded into Python. A comparison with null is null and one with NaN is false, so invalid rows
are found by counting the valid ones.
"""

from functools import reduce
from operator import add, and_
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from fairramp.core.curve import Integers
from fairramp.core.labels import SEEN, UNSEEN, Label, canonical_label, label_key, label_of
from fairramp.core.scales import Scale
from fairramp.data import engines
from fairramp.data.arrays import TWO_CLASSES, no_weight
from fairramp.data.classes import PER_CLASS
from fairramp.data.columns import Columns
from fairramp.data.probable import PER_ROW, SUM_TOLERANCE
from fairramp.data.rows import refusal
from fairramp.errors import InputError

_BIGGEST = float(np.finfo(np.float64).max)


class LazyTable:
    """The columns of a lazy table that a fit needs, under short names.

    Parameters
    ----------
    frame : narwhals.LazyFrame
        The user's table.
    columns : Columns
        The columns that a rule reads.
    weight, label : str, optional
        Additional columns.
    """

    def __init__(
        self,
        frame: Any,
        columns: Columns,
        *,
        weight: str | None = None,
        label: str | None = None,
        by_label: bool = False,
    ) -> None:
        frame, plain = engines.engine_of(frame).plain_names(frame)
        schema = frame.collect_schema()
        numbers: dict[str, tuple[str, str | None]] = {
            "x": ("scores", columns.score),
            "w": ("sample_weight", weight),
            "y": ("labels", label),
        }
        self.keys = [f"g{i}" for i in range(len(columns.grouped))]
        self.n_strata, self.by_label = len(columns.strata or ()), by_label
        self.weighted = weight is not None
        shares = {f"q{i}": ("group_probabilities", name) for i, name in enumerate(columns.probabilities or ())}
        scores = {f"p{i}": ("probabilities", name) for i, name in enumerate(columns.class_scores or ())}
        numbers, self.shares, self.scores = numbers | shares | scores, [*shares], [*scores]
        self.rows = frame.select(
            **{
                short: _number(schema, plain[name], argument)
                for short, (argument, name) in numbers.items()
                if name is not None
            },
            **{
                key: _group(schema, plain[name], name)
                for key, name in zip(self.keys, columns.grouped, strict=True)
            },
            **({} if columns.id is None else {"has_id": _has_id(schema, plain[columns.id])}),
        )
        if by_label:
            self.keys.append("event")
            self.rows = self.rows.with_columns(event=(nw.col("y") == 1).cast(nw.Int64))

    def label_of(self, key: tuple[Any, ...]) -> Label:
        """The label of a group with these values of its columns; by label, of its cell."""
        parts = tuple(map(canonical_label, key))
        if not self.by_label:
            return label_of(parts, self.n_strata)
        return label_of(parts[:-1], self.n_strata), parts[-1]

    def fetch(self, sums: Any) -> dict[str, Any]:
        """Sums computed by the engine: group labels as lists, everything else as floats, with NaN for null."""
        return {
            name: np.ma.asarray(column, dtype=object).tolist()
            if name in self.keys
            else np.ma.filled(np.ma.asarray(column, dtype=np.float64), np.nan)
            for name, column in engines.fetch(sums).items()
        }


class Profile(NamedTuple):
    """What the first pass finds.

    Attributes
    ----------
    keys : list of tuple
        The values of each group's columns, in the order of the labels.
    labels : tuple
        The groups.
    rows : integers
        Rows with positive weight, per group.
    largest_weight, smallest_weight : float
        Over the rows with positive weight; 1 without weights.
    has_zeros : bool
        Whether rows of weight 0 must be dropped.
    saturated : int
        Number of scores, among rows with positive weight, with nearly the same position: see `Scale.crowded`.
    """

    keys: list[tuple[Any, ...]]
    labels: tuple[Label, ...]
    rows: Integers
    largest_weight: float
    smallest_weight: float
    has_zeros: bool
    saturated: int

    @classmethod
    def of(cls, table: LazyTable, scale: Scale | None, *, may_be_empty: bool = False) -> "Profile":
        """Pass over a table and raise if it contains invalid values; no scale if there are several classes."""
        x, w, y = nw.col("x"), nw.col("w"), nw.col("y")
        # A comparison with null is null and one with NaN is false: neither counts as valid.
        checks: dict[str, tuple[str | None, Any]] = {
            "weighs": ("w", (w >= 0) & (w <= _BIGGEST)),
            "counts": ("w", w > 0),
            "zero_one": ("y", (y == 0) | (y == 1)),
            "has_id": ("has_id", nw.col("has_id")),
        }
        if scale is not None:
            low, high = scale.finite_range
            checks["sound"] = ("x", (x >= low) & (x <= high))
            if scale.crowded_beyond is not None:
                checks["tied"] = ("x", scale.crowded(x) & (w > 0) if table.weighted else scale.crowded(x))
        for which in (table.shares, table.scores):
            if which:
                checks |= _share_checks(which)
        present = table.rows.collect_schema().names()
        counted = {name: holds for name, (column, holds) in checks.items() if column in present}
        weights = {"positive": nw.when(w > 0).then(w)} if table.weighted else {}
        ends = [
            end.alias(name) for c in map(nw.col, weights) for name, end in (("most", c.max()), ("least", c.min()))
        ]
        rows = table.rows.with_columns(
            **weights, **{name: holds.cast(nw.Int64) for name, holds in counted.items()}
        )
        sums = [nw.len().alias("n"), *(nw.col(name).sum() for name in counted), *ends]
        found = table.fetch(rows.group_by(*table.keys).agg(*sums) if table.keys else rows.select(*sums))
        counts = {name: np.nan_to_num(found[name]).astype(np.intp) for name in ("n", *counted)}
        total = {name: int(values.sum()) for name, values in counts.items()}
        n_rows = total["n"]
        if not n_rows and may_be_empty:
            return cls([], (), counts["n"][:0], 1.0, 1.0, False, 0)
        if not n_rows:
            argument = "probabilities" if table.scores else "scores"
            raise InputError("is empty", argument=argument, remedy="pass at least one row")
        if scale is not None and total["sound"] < n_rows:
            _refuse_scores(table, scale, counted["sound"])
        for name, argument, rule, remedy in (
            (
                "has_id",
                "ids",
                "must be strings or integers, not null, empty or blank, got others",
                "give every row a unique id",
            ),
            ("zero_one", "labels", "must be 0 or 1, got other values", TWO_CLASSES),
            ("weighs", "sample_weight", "must be finite and not negative, got other values", None),
            ("likely_p0", "probabilities", "must be numbers between 0 and 1, got other values", None),
            ("whole_p0", "probabilities", "must sum to 1 in every row, got other sums", PER_CLASS),
            ("likely_q0", "group_probabilities", "must be numbers between 0 and 1, got other values", None),
            ("whole_q0", "group_probabilities", "must sum to 1 in every row, got other sums", PER_ROW),
        ):
            if total.get(name, n_rows) < n_rows:
                raise _bad_rows(argument, rule, n_rows - total[name], remedy)

        keys = list(zip(*(found[key] for key in table.keys), strict=True)) or [()]
        labels = [table.label_of(key) for key in keys]
        order = sorted(range(len(keys)), key=lambda i: label_key(labels[i]))
        if table.by_label:  # a group may have rows of weight 0 only for one label
            order = [i for i in order if counts.get("counts", counts["n"])[i]]
        n_counted = counts.get("counts", counts["n"])[order]
        if not n_counted.all():
            raise no_weight(*([labels[order[int(np.argmin(n_counted))]]] if n_counted.any() else []))
        return cls(
            [keys[i] for i in order],
            tuple(labels[i] for i in order),
            n_counted,
            largest_weight=float(np.nanmax(found.get("most", 1.0))),
            smallest_weight=float(np.nanmin(found.get("least", 1.0))),
            has_zeros=bool(n_counted.sum() < n_rows),
            saturated=total.get("tied", 0),
        )


def _share_checks(names: list[str]) -> dict[str, tuple[str | None, Any]]:
    """Whether the probabilities of a row are valid: each of them, and their sum."""
    shares, first = [nw.col(name) for name in names], names[0]
    likely = reduce(and_, ((share >= 0) & (share <= 1 + SUM_TOLERANCE) for share in shares))
    excess = reduce(add, shares) - 1.0
    whole = (excess >= -SUM_TOLERANCE) & (excess <= SUM_TOLERANCE)
    return {f"likely_{first}": (first, likely), f"whole_{first}": (first, whole)}


def _number(schema: Any, name: str, argument: str) -> Any:
    """A column of numbers, in float64."""
    dtype = schema[name]
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        raise InputError(
            "must be numbers, got {what}",
            argument=argument,
            remedy=TWO_CLASSES if argument == "labels" else None,
            what="text" if dtype in (nw.String, nw.Categorical, nw.Enum) else f"values of type {dtype}",
        )
    return nw.col(name).cast(nw.Float64)


def _has_id(schema: Any, name: str) -> Any:
    """Whether a row has an id that is not blank."""
    column = nw.col(name)
    if schema[name] != nw.String:
        return ~column.is_null()
    may_be_blank = (column < SEEN[0]) | (column >= SEEN[1])
    # Never null, which Dask cannot return.
    return nw.when(may_be_blank).then(column.str.strip_chars(UNSEEN) != "").otherwise(~column.is_null())


def _group(schema: Any, name: str, shown: str) -> Any:
    """A column of labels, of a type that all engines compare in the same way."""
    dtype, column = schema[name], nw.col(name)
    if dtype in (nw.Categorical, nw.Enum):
        return column.cast(nw.String)
    if dtype.is_float() or dtype.is_decimal():
        column = column.cast(nw.Float64)
        return nw.when(~column.is_nan()).then(column)
    if dtype in (nw.Int128, nw.UInt128):  # the result of DuckDB's sum(); NumPy would round them
        return column.cast(nw.Int64)
    if not (dtype.is_integer() or dtype in (nw.String, nw.Boolean)):
        raise InputError(
            "A group label must be a string, an integer, a boolean or missing, got values of type {dtype} in "
            "{name!r}",
            remedy="convert the labels to strings",
            dtype=dtype,
            name=shown,
        )
    return column


def _refuse_scores(table: LazyTable, scale: Scale, sound: Any) -> None:
    """Raise an error that says why some scores are invalid."""
    x = nw.col("x")
    bad = table.rows.filter(~sound | x.is_null()).select(
        "x", null=x.is_null().cast(nw.Int64), nan=x.is_nan().cast(nw.Int64)
    )
    ends = x.min().alias("low"), x.max().alias("high")
    found = table.fetch(bad.select(nw.len().alias("n"), nw.col("null").sum(), nw.col("nan").sum(), *ends))
    n, null, nan, low, high = (float(found[name][0]) for name in ("n", "null", "nan", "low", "high"))
    if null > 0:
        raise _bad_rows("scores", "must be finite numbers, got null", null)
    if nan > 0:
        raise refusal(scale, float("nan"), _in_rows(nan))
    raise refusal(scale, low if low < scale.score_range[0] or np.isinf(low) else high, _in_rows(n))


def _bad_rows(argument: str, rule: str, n: float, remedy: str | None = None) -> InputError:
    return InputError(rule + " in {where}", argument=argument, remedy=remedy, where=_in_rows(n))


def _in_rows(n: float) -> str:
    """A number of rows, in words."""
    return f"{int(n):,} row{'s' if n > 1 else ''}"
