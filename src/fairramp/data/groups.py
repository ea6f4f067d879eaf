"""Encode group columns of every kind as small integers.

    labels ["B", "A", None, "B"]   →   codes [1, 0, 2, 1] into ("A", "B", None)

See `core.labels` for valid labels and their order. Integer columns are not copied: `Codes` keeps them with an
offset. Everything else is encoded once; Arrow strings are encoded by Arrow.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from itertools import compress
from typing import Any, Protocol

import numpy as np

from fairramp.core.blocks import map_blocks
from fairramp.core.curve import Array, Booleans, Floats, Integers
from fairramp.core.labels import (
    ENCODING,
    Label,
    alike,
    bad_label,
    canonical_label,
    label_of,
    label_parts,
    names_none,
    refuse_mixed,
    united,
    written,
)
from fairramp.data.probable import GroupProbabilities
from fairramp.errors import InputError, shown, warn

#: Integer labels in a range this narrow are used as codes, whether or not all of them occur.
_DIRECT_RANGE = 1 << 4
#: Rows per block in passes so short that starting a thread would take longer.
_LONG_BLOCK = 1 << 21
#: Integer labels in a range this narrow are coded by counting instead of sorting.
_DENSE_RANGE = 1 << 16
#: Most labels that are named as alike.
_MOST_ALIKE = 5


class Membership(Protocol):
    """Which group, or mixture of groups, each row belongs to."""

    def mix(self, per_group: Floats, start: int, stop: int, out: Floats | None = None) -> Floats:
        """A per-group value for each of the rows start … stop − 1."""


@dataclass(frozen=True)
class Codes:
    """A group column as integers: the `Membership` that is known with certainty.

    Attributes
    ----------
    values : integers of shape (n,)
        ``labels[values[i] - offset]`` is the label of row i.
    offset : int
        Subtract it from a value to index `labels`.
    labels : tuple
        Labels in order; some may not occur in any row.
    names : tuple of str, or None
        Names of the columns, if any.
    n_columns : int
        Number of encoded columns.
    """

    values: Array
    offset: int
    labels: tuple[Label, ...]
    names: tuple[str, ...] | None = None
    n_columns: int = 1

    def __len__(self) -> int:
        return len(self.values)

    def block(self, start: int, stop: int) -> Integers:
        """Codes of the rows start … stop − 1, starting at 0; read-only."""
        values = self.values[start:stop].astype(np.intp, copy=False)
        return values - self.offset if self.offset else values

    def mix(self, per_group: Floats, start: int, stop: int, out: Floats | None = None) -> Floats:
        """The value of each row's group."""
        return np.take(per_group, self.block(start, stop), out=out, mode="wrap")  # the fastest mode

    def occurring(self) -> Booleans:
        """Which labels occur in some row."""
        seen = np.zeros(len(self.labels), dtype=bool)
        for start in range(0, len(self), _DENSE_RANGE):
            seen[self.block(start, start + _DENSE_RANGE)] = True
        return seen

    def only(self, names: Sequence[str]) -> "Codes":
        """The codes of some of the named columns."""
        places = [(self.names or ()).index(name) for name in names]
        labels = [label_of(tuple(label_parts(label)[i] for i in places)) for label in self.labels]
        found, (seats,) = united(labels)
        return Codes(seats[self.block(0, len(self))], 0, found, tuple(names), len(places))


def encode_groups(groups: Any, names: tuple[str, ...] | None = None) -> Codes:
    """Encode a group column, or the intersections of several.

    Parameters
    ----------
    groups : array, list, Series, Arrow column; or 2-D array, dataframe, mapping or list of columns
        Several columns make intersections, labeled by tuples.
    names : tuple of str, optional
        Names of the columns to use, in order; ignored if the columns have no names.
    """
    if isinstance(groups, Codes):
        return groups
    if isinstance(groups, GroupProbabilities):
        raise InputError(
            "must be labels here, got group probabilities",
            argument="groups",
            remedy="pass the true groups, and group probabilities as {group_probabilities}",
        )
    columns, found = _columns(groups)
    if not columns:
        raise InputError("has no columns", argument="groups")
    if names and found and max(len(names), len(found)) > 1 and len(set(found)) == len(found):
        if not set(names) <= set(found):
            raise InputError(
                "has the columns {found}, but the rule was fitted on {names}",
                argument="groups",
                remedy="rename the columns",
                found=list(found),
                names=list(names),
            )
        columns, found = [columns[found.index(name)] for name in names], names
    codes = [_encode_column(column) for column in columns]
    lengths = {len(c) for c in codes}
    if len(lengths) > 1:
        raise InputError("The columns of {groups} have different lengths: {lengths}", lengths=sorted(lengths))
    if len(codes) == 1:
        return replace(codes[0], names=found)
    singles = [replace(c, labels=tuple((label,) for label in c.labels)) for c in codes]
    crossed = reduce(lambda left, right: cross(left, right, operator.add), singles)
    return replace(crossed, names=found, n_columns=len(codes))


def _columns(groups: Any) -> tuple[list[Any], tuple[str, ...] | None]:
    """Split the input into columns, and their names if all have one."""
    if isinstance(groups, str | bytes) or groups is None:
        raise InputError(
            "must be a column with one label per row",
            argument="groups",
            got=groups,
            remedy="for a single row, pass a list of one label",
        )
    if isinstance(groups, Mapping):
        return list(groups.values()), tuple(map(str, groups))
    if isinstance(groups, list | tuple):
        are_columns = (isinstance(c, list) or (hasattr(c, "__array__") and np.ndim(c) == 1) for c in groups)
        return (list(groups), _names(groups)) if groups and all(are_columns) else ([groups], None)
    if isinstance(groups, np.ndarray):
        return (list(groups.T) if groups.ndim == 2 else [groups]), None
    import narwhals as nw

    try:
        frame = nw.from_native(groups, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = [str(name) for name in groups.columns]
        raise InputError(
            "Two columns of {groups} are named {name!r}",
            remedy="rename one of them",
            name=next(name for name in names if names.count(name) > 1),
        ) from None
    if isinstance(frame, nw.LazyFrame):
        raise InputError("is a lazy table", argument="groups", remedy="collect it first")
    if isinstance(frame, nw.DataFrame):
        return [c.to_native() for c in frame.iter_columns()], tuple(map(str, frame.columns))
    return [groups], _names([groups])


def _names(columns: Sequence[Any]) -> tuple[str, ...] | None:
    names = [name_of(column) for column in columns]
    return tuple(name for name in names if name) if all(names) else None


def name_of(column: Any) -> str | None:
    """The name of a column, if it has one."""
    name = getattr(column, "name", None)
    return name if isinstance(name, str) and name else None


def _encode_column(column: Any) -> Codes:
    categorical: Any = getattr(column, "cat", None)
    if hasattr(categorical, "codes") and hasattr(categorical, "categories"):  # pandas
        labels = [None, *map(canonical_label, categorical.categories)]
        return _occurring(_ordered(np.asarray(categorical.codes), -1, labels))
    values = column if isinstance(column, list | tuple | np.ndarray) else _values(column)
    if isinstance(values, list | tuple):
        return _encode_objects(values)
    return _encode_array(values) if isinstance(values, np.ndarray) else _encode_arrow(values)


def _values(column: Any) -> Any:
    """The values of a column of any library: Arrow strings, an array, or a list if an array would lose nulls."""
    import narwhals as nw

    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series) and not hasattr(column, "dictionary_encode"):
        has_text = series.dtype in (nw.String, nw.Categorical, nw.Enum)
        if has_text and str(getattr(column, "dtype", "")) != "object":  # Arrow does not speed up Python strings
            with suppress(ImportError):
                column = series.to_arrow()
        elif series.null_count():
            return series.to_list()
    kind = str(getattr(column, "type", ""))
    if kind in ("string", "large_string") or kind.startswith("dictionary<"):
        return column
    has_nulls = hasattr(column, "to_pylist") and getattr(column, "null_count", None)  # an Arrow array
    return column.to_pylist() if has_nulls else np.asanyarray(column)


def _encode_array(values: Array) -> Codes:
    if values.ndim != 1:
        alone = values.ndim == 0
        raise InputError(
            "must be a list, array or column with one label per row, got {came}",
            argument="groups",
            remedy="for a single row, pass a list of one label" if alone else None,
            came=shown(values[()]) if alone else f"{type(values).__name__} of shape {values.shape}",
        )
    if values.dtype.kind not in "biufOUT" and len(values):
        raise bad_label(values[0])
    if not isinstance(values, np.ma.MaskedArray):
        if values.dtype.kind == "b":
            return Codes(values.view(np.uint8), 0, (False, True))
        if values.dtype.kind in "iu" and len(values):
            return _encode_integers(values)
    return _encode_objects(values.tolist())  # a masked value becomes None


def _encode_arrow(column: Any) -> Codes:
    chunks = column.dictionary_encode()
    encoded = chunks.combine_chunks() if hasattr(chunks, "combine_chunks") else chunks
    labels = [canonical_label(label) for label in encoded.dictionary.to_pylist()]
    indices = encoded.indices.cast("int32")
    offset, missing = (-1, [None]) if indices.null_count else (0, [])
    return _occurring(_ordered(indices.fill_null(-1).to_numpy(zero_copy_only=False), offset, [*missing, *labels]))


def _encode_integers(values: Array) -> Codes:
    # As unsigned integers, negative values are the largest, so one pass checks whether all are in 0 … 15.
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    bits = values.view(f"u{values.itemsize}")
    highest = int(max(map_blocks(lambda a, b: bits[a:b].max(), len(bits), _LONG_BLOCK)))
    if highest < _DIRECT_RANGE:
        return Codes(values, 0, tuple(range(highest + 1)))
    lows, highs = zip(*map_blocks(lambda a, b: (values[a:b].min(), values[a:b].max()), len(values)), strict=True)
    low, high = int(min(lows)), int(max(highs))
    if high - low < _DENSE_RANGE and high <= np.iinfo(np.intp).max:
        return _occurring(Codes(values, low, tuple(range(low, high + 1))))
    labels, inverse = np.unique(values, return_inverse=True)
    return Codes(inverse, 0, tuple(labels.tolist()))


def _occurring(codes: Codes) -> Codes:
    """Codes without labels that occur in no row; a few such labels are harmless and stay."""
    if len(codes.labels) <= _DIRECT_RANGE or (seen := codes.occurring()).all():
        return codes
    values = (np.cumsum(seen, dtype=np.int32) - 1)[codes.block(0, len(codes))]
    return Codes(values, 0, tuple(compress(codes.labels, seen)))


def _encode_objects(values: list[Any] | tuple[Any, ...]) -> Codes:
    try:
        seen: dict[Any, int] = dict.fromkeys(values, 0)
    except (TypeError, ValueError):
        list(map(canonical_label, values))  # raises: unhashable values are not labels
        raise
    labels = [canonical_label(v) for v in seen]
    if any(label in (0, 1) or isinstance(label, tuple) for label in labels):
        refuse_mixed(values)
    code = {value: i for i, value in enumerate(seen)}
    return _ordered(np.fromiter(map(code.__getitem__, values), dtype=np.intp, count=len(values)), 0, labels)


def _ordered(values: Array, offset: int, labels: Sequence[Label]) -> Codes:
    """Codes with sorted labels; equal labels are merged."""
    ordered, (places,) = united(labels)
    if not np.array_equal(places, np.arange(len(labels))):
        values, offset = places[values.astype(np.intp, copy=False) - offset], 0
    return Codes(values, offset, ordered)


def warn_alike(labels: Sequence[Any], *, stratified: bool = False, by_attribute: bool = False) -> None:
    """Warn about labels of a column that look alike.

    Parameters
    ----------
    labels : sequence of labels
        Groups; pairs (stratum, group) if `stratified`, and pairs (column, value) if `by_attribute`.
    """
    columns: Iterable[Sequence[Label]] = zip(*(label_parts(label, stratified) for label in labels), strict=False)
    if by_attribute:
        names = dict.fromkeys(name for name, _ in labels)
        columns = ([value for own, value in labels if own == name] for name in names)
    found = [pair for column in columns for pair in alike(column)]
    if found:
        warn(
            "Some group labels differ only in {what}: {some}{more}. Each is a group of its own; if they mean the "
            "same, clean the column first",
            what=" or in ".join(dict.fromkeys(what for what, _ in found)),
            some="; ".join(_listed(*pair) for pair in found[:_MOST_ALIKE]),
            more=f"; and {len(found) - _MOST_ALIKE:,} more" if len(found) > _MOST_ALIKE else "",
        )


def warn_blank(
    labels: Sequence[Label], rows: Sequence[float], *, paired: bool = False, what: str = "row"
) -> None:
    """Warn about rows with a blank or missing group beside named groups.

    Parameters
    ----------
    labels, rows : sequence
        Groups, with their numbers of rows; pairs (stratum, group) or (column, value) if `paired`.
    what : str
        Which rows were counted, in the singular.
    """
    groups = [label[1] if paired and isinstance(label, tuple) else label for label in labels]
    blank = list(map(names_none, groups))
    n = round(sum(count for count, none in zip(rows, blank, strict=True) if none))
    if n and not all(blank):
        noun = what if n == 1 else what.replace("row", "rows", 1)
        warn(
            "{n:,} {what} a blank or missing group, which is treated as a group of its own",
            remedy="if it is not one, remove these rows first",
            n=n,
            what=f"{noun} {'has' if n == 1 else 'have'}",
        )


def _listed(what: str, same: Sequence[Label]) -> str:
    """The first few labels that look alike."""
    *others, last = map(ascii if what == ENCODING else written, same[:_MOST_ALIKE])
    return f"{', '.join(others)} and {last}"


def check_n_columns(codes: Codes, n_columns: int, names: tuple[str, ...] | None, argument: str) -> None:
    """Raise if groups do not have as many columns as those of earlier rows."""
    if codes.n_columns != n_columns:
        raise InputError(
            "must have the {n} column{s}{names} of the earlier rows",
            argument=argument,
            got=codes.n_columns,
            n=n_columns,
            s="s" if n_columns > 1 else "",
            names=f" {list(names)}" if names else "",
        )


def appended(first: Codes, second: Codes) -> Codes:
    """Concatenate two columns; the names are those of the first."""
    refuse_mixed((*first.labels, *second.labels))
    labels, places = united(first.labels, second.labels)
    parts = zip((first, second), places, strict=True)
    values = np.concatenate([place[part.block(0, len(part))] for part, place in parts])
    return replace(first, values=values, offset=0, labels=labels)


def cross(left: Codes, right: Codes, join: Callable[[Label, Label], Label]) -> Codes:
    """Intersections that occur in two encoded columns, labeled by `join`."""
    n_right = len(right.labels)
    pairs = left.block(0, len(left)) * n_right + right.block(0, len(right))
    found, codes = distinct(pairs, len(left.labels) * n_right, _DENSE_RANGE)
    labels = tuple(join(left.labels[i // n_right], right.labels[i % n_right]) for i in found.tolist())
    return Codes(codes, 0, labels)


def distinct(values: Integers, size: int, few: int) -> tuple[Integers, Integers]:
    """Which numbers below `size` occur, and the index of each value among them.

    Up to `few` numbers are found by counting, more by sorting.
    """
    if size > few:
        return np.unique(values, return_inverse=True)
    occurs = np.bincount(values, minlength=size) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[values]
