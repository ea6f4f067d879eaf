"""Group columns of every kind as small integer codes.

    labels ["B", "A", None, "B"]   →   codes [1, 0, 2, 1] into ("A", "B", None)

A label is a string, an integer, a boolean, missing (None, NaN and every library's null become None),
or a tuple of those when several columns make intersections. Labels are ordered by kind and value, so
that a rule does not depend on the order of the rows.

Integer columns are not copied: `Codes` keeps them and an offset. Everything else is coded once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from fairramp.exceptions import InputError

__all__ = ["Codes", "Label", "encode_groups", "label_key", "show_label"]

Label = str | int | bool | None | tuple["Label", ...]

#: Integer labels in so narrow a range are taken as codes, whether all of them occur or not.
_DIRECT_RANGE = 1 << 4
#: Integer labels in so narrow a range are coded by counting instead of by sorting.
_DENSE_RANGE = 1 << 16


@dataclass(frozen=True)
class Codes:
    """A group column as integers.

    Attributes
    ----------
    values : integers of shape (n,)
        ``labels[values[i] - offset]`` is the label of row i.
    offset : int
        What to subtract from a value to index `labels`.
    labels : tuple
        Labels in their order; some may not occur in any row.
    names : tuple of str, or None
        Names of the columns, where they have any.
    """

    values: npt.NDArray[np.integer[Any]]
    offset: int
    labels: tuple[Label, ...]
    names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def block(self, start: int, stop: int) -> npt.NDArray[np.intp]:
        """Codes of the rows start … stop − 1, counted from 0; not to be written to."""
        values = self.values[start:stop].astype(np.intp, copy=False)
        return values - self.offset if self.offset else values

    def occurring(self) -> npt.NDArray[np.bool_]:
        """Which of the labels occur in some row."""
        seen = np.zeros(len(self.labels), dtype=bool)
        for start in range(0, len(self), _DENSE_RANGE):
            seen[self.block(start, start + _DENSE_RANGE)] = True
        return seen


def show_label(label: Label) -> str:
    """Text of a label for tables: intersections joined by a slash, missing as ∅."""
    if label is None:
        return "∅ (missing)"
    if isinstance(label, tuple):
        return " / ".join(show_label(part) for part in label)
    return str(label)


def label_key(label: Label) -> tuple[Any, ...]:
    """Order and identity of labels: 1, True and "1" are three groups; missing comes last."""
    if isinstance(label, tuple):
        return (4, *map(label_key, label))
    if label is None:
        return (5, 0)
    return (bool, int, str).index(type(label)) + 1, label


def encode_groups(groups: Any) -> Codes:
    """Code a group column, or the intersections of several.

    Parameters
    ----------
    groups : array, list, Series, Arrow column; or 2-D array, data frame, mapping or list of columns
        Several columns make intersections, labelled by tuples.
    """
    columns, names = _columns(groups)
    codes = [_encode_column(column) for column in columns]
    lengths = {len(c) for c in codes}
    if len(lengths) > 1:
        raise InputError(f"The columns of `groups` differ in length: {sorted(lengths)}.")
    if isinstance(names, str):
        return Codes(codes[0].values, codes[0].offset, codes[0].labels, (names,))
    if names is None and len(codes) == 1:
        return codes[0]
    singles = [Codes(c.values, c.offset, tuple((label,) for label in c.labels)) for c in codes]
    crossed = reduce(_cross, singles)
    return Codes(crossed.values, crossed.offset, crossed.labels, names)


def _columns(groups: Any) -> tuple[list[Any], str | tuple[str, ...] | None]:
    """Take apart what the user passed; names are a str for one named column, a tuple for several."""
    if isinstance(groups, str | bytes) or groups is None:
        raise InputError(f"`groups` must be a column with one label per row, got {groups!r}.")
    if isinstance(groups, Mapping):
        return _named(list(groups.values()), [str(name) for name in groups])
    if isinstance(groups, list | tuple):
        if groups and all(_is_column(part) for part in groups):
            return list(groups), None if len(groups) == 1 else tuple(_name(part) for part in groups)
        return [groups], None
    if isinstance(groups, np.ndarray):
        if groups.ndim == 2:
            return list(groups.T), None
        return [groups], None
    frame = _as_frame(groups)
    if frame is not None:
        return _named([frame[name].to_native() for name in frame.columns], list(frame.columns))
    name = getattr(groups, "name", None)
    return [groups], name if isinstance(name, str) else None


def _named(columns: list[Any], names: list[str]) -> tuple[list[Any], str | tuple[str, ...]]:
    if not columns:
        raise InputError("`groups` has no column.")
    return columns, names[0] if len(names) == 1 else tuple(names)


def _name(column: Any) -> str:
    name = getattr(column, "name", None)
    return name if isinstance(name, str) else "group"


def _is_column(part: Any) -> bool:
    return isinstance(part, list) or (hasattr(part, "__array__") and np.ndim(part) == 1)


def _as_frame(groups: Any) -> Any:
    """View an eager data frame of any library through narwhals; None if it is not a data frame."""
    import narwhals as nw

    frame = nw.from_native(groups, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise InputError("`groups` is a lazy table; collect it first.")
    return frame if isinstance(frame, nw.DataFrame) else None


def _encode_column(column: Any) -> Codes:
    categorical: Any = getattr(column, "cat", None)
    if hasattr(categorical, "codes") and hasattr(categorical, "categories"):  # pandas
        labels = [_canonical(v) for v in categorical.categories]
        return _ordered(np.asarray(categorical.codes), -1, [None, *labels])
    values = np.asarray(column) if not isinstance(column, list | tuple) else column
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InputError(f"`groups` must be one label per row, got an array of shape {values.shape}.")
        if values.dtype.kind == "b":
            return Codes(values.view(np.uint8), 0, (False, True))
        if values.dtype.kind in "iu" and len(values):
            return _encode_integers(values)
        values = values.tolist() if values.dtype.kind in "OUTf" else list(values)
    return _encode_objects(values)


def _encode_integers(values: npt.NDArray[Any]) -> Codes:
    low, high = int(values.min()), int(values.max())
    if high - low < _DENSE_RANGE and high <= np.iinfo(np.intp).max:
        codes = Codes(values, low, tuple(range(low, high + 1)))
        seen = None if high - low < _DIRECT_RANGE else codes.occurring()
        if seen is None or seen.all():
            return codes
        place = np.cumsum(seen, dtype=np.int32) - 1
        found = tuple((np.flatnonzero(seen) + low).tolist())
        return Codes(place[codes.block(0, len(values))], 0, found)
    labels, inverse = np.unique(values, return_inverse=True)
    return Codes(inverse, 0, tuple(labels.tolist()))


def _encode_objects(values: list[Any] | tuple[Any, ...]) -> Codes:
    try:
        seen: dict[Any, int] = dict.fromkeys(values, 0)
    except TypeError:
        bad = next(v for v in values if not _is_hashable(v))
        raise InputError(_bad_label(bad)) from None
    labels = [_canonical(v) for v in seen]
    # Python takes True and 1 for the same key; two kinds of label must not merge unseen.
    if any(label in (0, 1) and not isinstance(label, str) for label in labels):
        kinds = {t.__name__.removesuffix("_") for t in set(map(type, values))}
        if "bool" in kinds and len(kinds - {"bool", "NoneType", "NAType", "str", "tuple"}) > 0:
            raise InputError(
                "`groups` mixes booleans and numbers, which Python cannot tell apart (True == 1); "
                "pass one kind."
            )
    for code, value in enumerate(seen):
        seen[value] = code
    codes = np.fromiter(map(seen.__getitem__, values), dtype=np.intp, count=len(values))
    return _ordered(codes, 0, labels)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _bad_label(value: Any) -> str:
    text = repr(value)
    text = text if len(text) <= 40 else text[:37] + "..."
    remedy = (
        "cut a continuous column into bins first"
        if isinstance(value, float | np.floating)
        else "convert such labels to strings"
    )
    return (
        "A group label must be a string, a whole number, a boolean or missing, got "
        f"{text} ({type(value).__name__}); {remedy}."
    )


def _canonical(value: Any) -> Label:
    """One Python value for each label, whatever library it came from."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, tuple):
        return tuple(_canonical(part) for part in value)
    if isinstance(value, float | np.floating):
        if value != value:
            return None
        if float(value).is_integer():
            return int(value)
    raise InputError(_bad_label(value))


def _ordered(values: npt.NDArray[Any], offset: int, labels: Iterable[Label]) -> Codes:
    """Codes whose labels are in order, equal labels made one."""
    labels = list(labels)
    unique = {label_key(label): label for label in labels}
    order = sorted(unique)
    if len(order) == len(labels) and [label_key(label) for label in labels] == order:
        return Codes(values, offset, tuple(labels))
    rank = {key: i for i, key in enumerate(order)}
    lookup = np.array([rank[label_key(label)] for label in labels], dtype=np.intp)
    codes = lookup[values.astype(np.intp, copy=False) - offset]
    return Codes(codes, 0, tuple(unique[key] for key in order))


def _cross(left: Codes, right: Codes) -> Codes:
    """Intersections of two coded columns, only those that occur."""
    n_right = len(right.labels)
    pairs = left.block(0, len(left)) * n_right + right.block(0, len(right))
    if len(left.labels) * n_right <= _DENSE_RANGE:
        found = np.flatnonzero(np.bincount(pairs, minlength=1))
        place = np.zeros(len(left.labels) * n_right, dtype=np.intp)
        place[found] = np.arange(len(found))
        codes = place[pairs]
    else:
        found, codes = np.unique(pairs, return_inverse=True)
    labels = tuple(
        (*_parts(left.labels[i // n_right]), *_parts(right.labels[i % n_right])) for i in found.tolist()
    )
    return Codes(codes, 0, labels)


def _parts(label: Label) -> tuple[Label, ...]:
    return label if isinstance(label, tuple) else (label,)
