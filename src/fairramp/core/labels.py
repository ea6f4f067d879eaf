"""Labels of groups: what may be one, their order, and how they are shown.

A label is a string, an integer, a boolean, missing (None, NaN and every library's null become None),
or a tuple of those when several columns make intersections. Labels are ordered by kind and value, so
that a rule does not depend on the order of the rows.
"""

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

import numpy as np

from fairramp.errors import InputError, shown

__all__ = [
    "Label",
    "bad_label",
    "canonical_label",
    "label_key",
    "label_of",
    "label_parts",
    "refuse_mixed",
    "show_label",
]


Label = str | int | bool | None | tuple["Label", ...]


def show_label(label: Label) -> str:
    """Text of a label for tables: intersections joined by a slash."""
    if label is None:
        return "(missing)"
    if label == "":
        return "(blank)"
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


def canonical_label(value: Any, depth: int = 0) -> Label:
    """One Python value for each label, whatever library it came from."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        text = str.__str__(value)  # the text of an enumeration, not its name
        if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
            raise InputError(f"A group label must be valid Unicode text, got {shown(text)}.")
        return text
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer) and type(value).__name__ != "timedelta64":  # a subclass
        return int(value)
    if isinstance(value, tuple) and depth < 2:
        return tuple(canonical_label(part, depth + 1) for part in value)
    if isinstance(value, float | np.floating):
        if value != value:
            return None
        if float(value).is_integer():
            return int(value)
    raise InputError(bad_label(value))


def refuse_mixed(values: Iterable[Any]) -> None:
    """Refuse booleans beside numbers: Python takes True and 1 for the same key and would merge them."""
    values = list(values)
    kinds = set(map(type, values))
    booleans = {kind for kind in kinds if issubclass(kind, bool | np.bool_)}
    numbers = {kind for kind in kinds - booleans if issubclass(kind, int | np.integer | float | np.floating)}
    if booleans and any(type(v) in numbers and v == v for v in values):
        raise InputError(
            "`groups` mixes booleans and numbers, which Python cannot tell apart (True == 1); pass one kind."
        )
    for parts in zip_longest(*(v for v in values if isinstance(v, tuple))):
        refuse_mixed(parts)


def bad_label(value: Any) -> str:
    """What is wrong with a value that cannot be a label."""
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


def label_parts(label: Label, stratified: bool = False) -> tuple[Label, ...]:
    """The values of a label's columns; of a cell (stratum, group), those of the stratum first."""
    if not isinstance(label, tuple):
        return (label,)
    return tuple(part for half in label for part in label_parts(half)) if stratified else label


def label_of(parts: tuple[Label, ...], n_strata: int = 0) -> Label:
    """The label whose columns have these values, the first `n_strata` of them those of its stratum."""

    def joined(values: tuple[Label, ...]) -> Label:
        return values[0] if len(values) == 1 else values

    group = joined(parts[n_strata:])
    return (joined(parts[:n_strata]), group) if n_strata else group
