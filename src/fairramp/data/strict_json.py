"""Strict reading of JSON: each value is of its kind, or the reason is said.

A file that is half understood decides wrongly, so an unknown field, a missing one or a value of another kind is
refused. Readers take the value and the words that name it; rules and summaries are read with them.
"""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from fairramp.core.labels import Label
from fairramp.errors import FairrampError, RuleFormatError, shown

__all__ = [
    "check_names",
    "items",
    "label",
    "many",
    "nonnegative",
    "number",
    "optional",
    "plain",
    "read_file",
    "share",
    "text",
    "truth",
    "unique_fields",
    "whole",
]

_Read = TypeVar("_Read")


def read_file(
    path: str | os.PathLike[str], read: Callable[[str], _Read], what: str, refused: type[FairrampError]
) -> _Read:
    """What a file's text holds, by `read`; a refusal names the file."""
    try:
        return read(Path(path).read_bytes().decode("utf-8"))
    except UnicodeDecodeError:
        raise refused(f"{os.fspath(path)}: not {what}, because not UTF-8 text.") from None
    except refused as error:
        raise refused(f"{os.fspath(path)}: {error}") from None


def plain(value: Any) -> Any:
    """Tuples as lists, all the way down."""
    return [plain(part) for part in value] if isinstance(value, tuple) else value


def unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's fields, none of which may appear twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RuleFormatError(f"The field {twice!r} appears twice.")
    return content


def check_names(content: Any, names: tuple[str, ...], where: str) -> None:
    """Refuse an object with a field missing or one too many."""
    if not isinstance(content, dict):
        raise RuleFormatError(f"{where[0].upper()}{where[1:]} must be an object, got {shown(content)}.")
    for name in names:
        if name not in content:
            raise RuleFormatError(f'The field "{name}" of {where} is missing.')
    for name in content:
        if name not in names:
            raise RuleFormatError(f"The field {name!r:.60} of {where} is not understood.")


def number(value: Any, where: str) -> float:
    """A finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RuleFormatError(f"{where} must be a number, got {shown(value)}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RuleFormatError(f"{where} must be a finite number.")
    return number


def share(value: Any, where: str) -> float:
    """A number in [0, 1]."""
    found = number(value, where)
    if not 0 <= found <= 1:
        raise RuleFormatError(f"{where} must be in [0, 1], got {shown(found)}.")
    return found


def nonnegative(value: Any, where: str) -> float:
    """A number from 0 on."""
    found = number(value, where)
    if found < 0:
        raise RuleFormatError(f"{where} must not be negative, got {shown(found)}.")
    return found


def whole(value: Any, where: str) -> int:
    """A whole number from 0 on."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise RuleFormatError(f"{where} must be a whole number from 0 on, got {shown(value)}.")
    return value


def text(value: Any, where: str) -> str:
    """Text."""
    if not isinstance(value, str):
        raise RuleFormatError(f"{where} must be text, got {shown(value)}.")
    return value


def truth(value: Any, where: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise RuleFormatError(f"{where} must be true or false, got {shown(value)}.")
    return value


def items(value: Any, where: str) -> list[Any]:
    """A list."""
    if not isinstance(value, list):
        raise RuleFormatError(f"{where} must be a list, got {shown(value)}.")
    return value


def label(value: Any, depth: int = 0) -> Label:
    """A group's label."""
    if isinstance(value, list) and depth < 2:
        return tuple(label(part, depth + 1) for part in value)
    if value is None or isinstance(value, str | int):
        return value
    raise RuleFormatError(
        f"A group's label must be text, a whole number, true, false, null or a list of those, got {shown(value)}."
    )


def many(kind: Callable[[Any, str], Any]) -> Callable[[Any, str], tuple[Any, ...]]:
    """Read a list of one kind."""

    def read(value: Any, where: str) -> tuple[Any, ...]:
        return tuple(kind(part, f"An entry of {where}") for part in items(value, where))

    return read


def optional(kind: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """Read one kind, or null."""
    return lambda value, where: None if value is None else kind(value, where)
