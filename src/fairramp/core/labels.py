"""Labels of groups: what may be one, their order, and how they are shown.

A label is a string, an integer, a boolean, missing (None, NaN and every library's null become None),
or a tuple of those when several columns make intersections. Labels are ordered by kind and value, so
that a rule does not depend on the order of the rows.
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

#: Labels without a text of their own.
_UNWRITTEN: dict[Label, str] = {None: "(missing)", "": "(blank)"}
#: Kinds of labels in their order.
_KINDS = (bool, int, str, tuple, NoneType)


def show_label(label: Label) -> str:
    """Text of a label for tables: intersections joined by a slash."""
    return " / ".join(map(show_label, label)) if isinstance(label, tuple) else _UNWRITTEN.get(label, str(label))


def label_key(label: Label) -> tuple[Any, ...]:
    """Order and identity of labels: 1, True and "1" are three groups; missing comes last."""
    kind = _KINDS.index(type(label))
    return (kind, *map(label_key, label)) if isinstance(label, tuple) else (kind, label)


def united(*lists: Sequence[Label]) -> tuple[tuple[Label, ...], list[Integers]]:
    """All labels of several lists, in their order and each once; and the places of each list's labels."""
    keys = [[label_key(label) for label in labels] for labels in lists]
    known = dict(zip(chain(*keys), chain(*lists), strict=True))
    place = {key: i for i, key in enumerate(sorted(known))}
    return (
        tuple(known[key] for key in place),
        [np.array([place[key] for key in part], dtype=np.intp) for part in keys],
    )


def canonical_label(value: Any, depth: int = 0) -> Label:
    """One Python value for each label, whatever library it came from."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        text = str.__str__(value)  # the text of an enumeration, not its name
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
    """Refuse booleans beside numbers: Python takes True and 1 for the same key and would merge them."""
    booleans = any(issubclass(kind, bool | np.bool_) for kind in set(map(type, values)))
    if booleans and any(is_real(value) and value == value for value in values):
        raise InputError(
            "mixes booleans and numbers, which Python cannot tell apart (True == 1)",
            argument="groups",
            remedy="pass one kind",
        )
    for parts in zip_longest(*(v for v in values if isinstance(v, tuple))):
        refuse_mixed(parts)


def bad_label(value: Any) -> InputError:
    """What is wrong with a value that cannot be a label."""
    return InputError(
        "A {label} must be a string, a whole number, a boolean or missing, got {value} ({type})",
        remedy="cut a continuous column into bins first"
        if isinstance(value, float | np.floating)
        else "convert such labels to strings",
        label="group label",
        value=shown(value),
        type=type(value).__name__,
    )


def label_parts(label: Label, stratified: bool = False) -> tuple[Label, ...]:
    """The values of a label's columns; of a cell (stratum, group), those of the stratum first."""
    if not isinstance(label, tuple):
        return (label,)
    return tuple(part for half in label for part in label_parts(half)) if stratified else label


def label_of(parts: tuple[Label, ...], n_strata: int = 0) -> Label:
    """The label whose columns have these values, the first `n_strata` of them those of its stratum."""
    stratum, group = (half[0] if len(half) == 1 else half for half in (parts[:n_strata], parts[n_strata:]))
    return (stratum, group) if n_strata else group
