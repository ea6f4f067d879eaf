"""Errors and warnings as data: argument, rule, value and remedy. Python and the command line each render them.

    InputError("must be between {low:g} and {high:g}", argument="max_gap", got=1.5, low=0, high=1)

    in Python             `max_gap` must be between 0 and 1, got 1.5.
    on the command line   --max-gap must be between 0 and 1, got 1.5.

`rule` and `remedy` are templates. A field in braces is one of the keyword values or, if no value has that name,
another argument: ``{labels}``, or ``{target_rate:accuracy}`` for an argument with a value.
"""

import copyreg
import os
import shlex
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Self


class _Nothing:
    """Marks a missing value. A class, because copying and pickling preserve its identity."""


def _in_python(name: str, value: str) -> str:
    """An argument as written in Python."""
    return f"`{name}={value if value in ('True', 'False') else repr(value)}`" if value else f"`{name}`"


@dataclass(frozen=True)
class _Argument:
    """An argument named in a template; its format spec is its value."""

    name: str
    spelled: Callable[[str, str], str]

    def __format__(self, value: str) -> str:
        return self.spelled(self.name, value)


class _Told(Exception):  # noqa: N818
    """A message with its parts; see the module docstring.

    Attributes
    ----------
    argument : str or None
        The argument that the message is about; the message starts with it.
    rule : str
        What must hold, or the whole message if it is not about one argument; a template.
    got : object
        The rejected value.
    remedy : str or None
        What to do; a template.
    values : dict
        Values of the fields in both templates.
    """

    def __init__(
        self,
        rule: str,
        *,
        argument: str | None = None,
        got: Any = _Nothing,
        remedy: str | None = None,
        **values: Any,
    ) -> None:
        self.argument, self.rule, self.got, self.remedy, self.values = argument, rule, got, remedy, values
        self._names: dict[str, str] = {}
        super().__init__(self.told())

    def renamed(self, **names: str) -> Self:
        """Rename arguments or values, for callers that know them by another name (`strata` for `groups`)."""
        self.values = self.values | {name: new for name, new in names.items() if name in self.values}
        self._names = self._names | names
        self.argument = names.get(self.argument or "", self.argument)
        self.args = (self.told(),)
        return self

    def advise(self, remedy: str) -> None:
        """Add a remedy, by a caller that knows more."""
        self.remedy = remedy if self.remedy is None else f"{self.remedy}; {remedy}"
        self.args = (self.told(),)

    def locate(self, row: int, index: Any) -> None:
        """Name the index of the row that the message is about, unless it is the row's position."""
        if shown(index) != shown(row):  # pandas.NA cannot be compared
            self.values = self.values | {"index": shown(index)}
            self.rule = self.rule.replace("in row {row}", "at position {row} (index {index})")
            self.args = (self.told(),)

    def told(self, spelled: Callable[[str, str], str] = _in_python) -> str:
        """The message, with arguments written by `spelled(name, value)`; `value` is "" if there is none."""
        text = self._filled(self.rule, spelled)
        if self.argument is not None:
            text = f"{spelled(self.argument, '')} {text}"
        if self.got is not _Nothing:
            text += f", got {shown(self.got)}"
        if self.remedy is not None:
            text += f"; {self._filled(self.remedy, spelled)}"
        return text if text.endswith((".", "?")) else f"{text}."

    def _filled(self, template: str, spelled: Callable[[str, str], str]) -> str:
        """Fill a template with its values; fields without a value are arguments."""
        named = {name for _, name, _, _ in Formatter().parse(template) if name is not None}
        arguments = {name: _Argument(self._names.get(name, name), spelled) for name in named - self.values.keys()}
        return template.format_map(self.values | arguments)

    def __reduce__(self) -> Any:
        # Pickle the parts: `args` holds the finished text, which must not be parsed as a template.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class FairrampError(_Told):
    """Base class of all fairramp errors. The message says what is wrong and what to do.

    Examples
    --------
    >>> import fairramp
    >>> try:
    ...     fairramp.fit_rule([0.2, 0.7], ["A", "B"], max_gap=2)
    ... except fairramp.InputError as error:
    ...     print(error)
    ...     print(error.argument, error.got)
    `max_gap` must be between 0 and 1, got 2; 2 percentage points are 0.02.
    max_gap 2
    """


class InputError(FairrampError, ValueError):
    """An invalid argument: wrong type, wrong length or out of range."""


class UnsupportedError(InputError):
    """Settings, or settings and rows, that are valid alone but cannot be combined.

    The page *What works with what* lists all combinations.
    """


class UnseenGroupError(InputError):
    """A group that did not occur in the fit rows."""


class RuleFormatError(FairrampError, ValueError):
    """A rule file that is damaged, of an unsupported version, or not a rule."""


class SummaryFormatError(FairrampError, ValueError):
    """A summary file that is damaged, of an unsupported version, or not a summary."""


class MonitorFormatError(FairrampError, ValueError):
    """A monitor file that is damaged, belongs to another rule, or is not a monitor."""


class FairrampWarning(_Told, UserWarning):
    """A result that is valid but may not be what you expect."""


def refuse_if(wrong: object, rule: str, /, **parts: Any) -> None:
    """Raise a `FairrampError` with these parts if something is wrong."""
    if wrong:
        raise FairrampError(rule, **parts)


def refuse(reasons: Mapping[str, object], /, **parts: Any) -> None:
    """Raise for the first reason that holds; all reasons share the same parts."""
    for rule, holds in reasons.items():
        refuse_if(holds, rule, **parts)


def warn(rule: str, *, category: type[FairrampWarning] = FairrampWarning, **parts: Any) -> None:
    """Warn at the user's line that called the library; takes the parts of `FairrampWarning`."""
    warnings.warn(category(rule, **parts), stacklevel=_outside())


def _outside() -> int:
    """Number of frames up to the caller of the library, as `warnings.warn` counts them from `warn`."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and (frame.f_globals.get("__package__") or "").partition(".")[0] == "fairramp":
        frame, level = frame.f_back, level + 1
    return level


def installing(extra: str) -> str:
    """The command that installs an extra for the interpreter that runs this, as the system's shell reads it.

    pip takes the fairramp that is installed there, so it works for a clone, too.
    """
    command = [sys.executable or "python", "-m", "pip", "install", f"fairramp[{extra}]"]
    return shlex.join(command) if os.name == "posix" else subprocess.list2cmdline(command)


def shown(value: Any) -> str:
    """A value as text for a message: NumPy numbers as Python numbers, on one line, shortened if long.

    >>> print(shown(0.3), shown("x" * 100))
    0.3 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...
    """
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    try:
        text = repr(value)
    except RecursionError:
        text = f"a deeply nested {type(value).__name__}"
    except ValueError:  # an integer with thousands of digits
        text = f"a very long {type(value).__name__}"
    text = text.replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}..."
