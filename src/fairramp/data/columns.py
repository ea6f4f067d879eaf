"""Names of columns, checked."""

from collections.abc import Callable, Iterable
from typing import Any

from fairramp.errors import InputError, shown

__all__ = ["check_new", "column_name", "column_names", "prefixed"]


def column_name(role: str, name: Any) -> str:
    """One name, after checking that it is one."""
    if not isinstance(name, str):
        raise InputError(f"`{role}` must be the name of a column, got {shown(name)}.")
    return name


def column_names(role: str, names: Any) -> tuple[str, ...]:
    """One name or several, after checking that they are."""
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"`{role}` must be the name of a column or a list of names, got {shown(names)}.")
    if len(set(names)) < len(names):
        raise InputError(f"`{role}` names a column twice: {list(names)}.")
    return tuple(names)


def check_new(names: Iterable[str], present: Iterable[str], fold: Callable[[str], str] = str.casefold) -> None:
    """Refuse new columns of a name that a table has already."""
    taken = {fold(column): column for column in present}
    for name in names:
        if fold(name) in taken:
            raise InputError(
                f"The table has a column {taken[fold(name)]!r} already; pass `prefix`, like prefix='fair_'."
            )


def prefixed(prefix: Any, names: Iterable[str]) -> list[str]:
    """The names of new columns, after checking what they start with."""
    if not isinstance(prefix, str):
        raise InputError(f"`prefix` must be text, got {shown(prefix)}.")
    return [f"{prefix}{name}" for name in names]
