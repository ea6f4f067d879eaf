"""Group labels: valid values, order and text.

A label is a string, an integer, a boolean, missing (None, NaN and the null of any library become None),
or a tuple of those if several columns make intersections. Labels are ordered by type and value, so a rule
does not depend on the order of the rows.
"""

from collections.abc import Collection, Sequence
from itertools import chain, zip_longest
from types import NoneType
from typing import Any

import numpy as np

from fairramp.core.checks import is_real
from fairramp.core.ramps import Integers
from fairramp.errors import InputError, shown

Label = str | int | bool | None | tuple["Label", ...]

#: Text of labels that have none of their own.
_UNWRITTEN: dict[Label, str] = {None: "(missing)", "": "(blank)"}
#: Types of labels, in their order.
_KINDS = (bool, int, str, tuple, NoneType)


def show_label(label: Label) -> str:
    """A label as text for tables; the parts of an intersection are joined by a slash."""
    return " / ".join(map(show_label, label)) if isinstance(label, tuple) else _UNWRITTEN.get(label, str(label))


def label_key(label: Label) -> tuple[Any, ...]:
    """Sort key and identity of a label: 1, True and "1" are three groups; missing comes last."""
    kind = _KINDS.index(type(label))
    return (kind, *map(label_key, label)) if isinstance(label, tuple) else (kind, label)


def united(*lists: Sequence[Label]) -> tuple[tuple[Label, ...], list[Integers]]:
    """The sorted union of several lists of labels, and the index of each list's labels in it."""
    keys = [[label_key(label) for label in labels] for labels in lists]
    known = dict(zip(chain(*keys), chain(*lists), strict=True))
    place = {key: i for i, key in enumerate(sorted(known))}
    return (
        tuple(known[key] for key in place),
        [np.array([place[key] for key in part], dtype=np.intp) for part in keys],
    )


def canonical_label(value: Any, depth: int = 0) -> Label:
    """Convert a label of any library to one canonical Python value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        text = str.__str__(value)  # of an enum, its value
        if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
            raise InputError("A {label} must be valid Unicode text", got=text, label="group label")
        return text
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer) and type(value).__name__ != "timedelta64":  # a subclass
        return int(value)
    if isinstance(value, tuple) and depth < 2:
        return tuple(canonical_label(part, depth + 1) for part in value)
    if isinstance(value, float | np.floating) and (value != value or float(value).is_integer()):
        return None if value != value else int(value)
    raise bad_label(value)


def refuse_mixed(values: Collection[Any]) -> None:
    """Raise if booleans and numbers are mixed: Python would merge True and 1 into one key."""
    booleans = any(issubclass(kind, bool | np.bool_) for kind in set(map(type, values)))
    if booleans and any(is_real(value) and value == value for value in values):
        raise InputError(
            "mixes booleans and numbers, which Python treats as equal (True == 1)",
            argument="groups",
            remedy="use one type",
        )
    for parts in zip_longest(*(v for v in values if isinstance(v, tuple))):
        refuse_mixed(parts)


def bad_label(value: Any) -> InputError:
    """The error for a value that cannot be a label."""
    return InputError(
        "A {label} must be a string, an integer, a boolean or missing, got {value} ({type})",
        remedy="bin a continuous column first, or pass fairramp.GroupProbabilities if these are probabilities"
        if isinstance(value, float | np.floating)
        else "convert the labels to strings",
        label="group label",
        value=shown(value),
        type=type(value).__name__,
    )


def label_parts(label: Label, stratified: bool = False) -> tuple[Label, ...]:
    """A label's value in each of its columns; for a cell (stratum, group), the stratum's come first."""
    if not isinstance(label, tuple):
        return (label,)
    return tuple(part for half in label for part in label_parts(half)) if stratified else label


def label_of(parts: tuple[Label, ...], n_strata: int = 0) -> Label:
    """The label with these values; the first `n_strata` of them belong to the stratum."""
    stratum, group = (half[0] if len(half) == 1 else half for half in (parts[:n_strata], parts[n_strata:]))
    return (stratum, group) if n_strata else group
