"""What can go wrong, as data: argument, rule, value and remedy; Python and the command line each render it.

    InputError("must be a number in [{low:g}, {high:g}]", argument="max_gap", got=1.5, low=0, high=1)

    in Python             `max_gap` must be a number in [0, 1], got 1.5.
    on the command line   --max-gap must be a number in [0, 1], got 1.5.

`rule` and `remedy` are templates. A field in braces is one of the values that are passed with it or, if there is
none of that name, another argument: ``{labels}``, or ``{target_rate:accuracy}`` for one with a value.
"""

import copyreg
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from string import Formatter
from typing import Any, Self


class _Nothing:
    """No value is worth repeating. A class, because copies and pickles keep its identity."""


def _in_python(name: str, value: str) -> str:
    """An argument as Python has it."""
    return f"`{name}={value!r}`" if value else f"`{name}`"


@dataclass(frozen=True)
class _Argument:
    """An argument that a template names; its format is its value."""

    name: str
    spelled: Callable[[str, str], str]

    def __format__(self, value: str) -> str:
        return self.spelled(self.name, value)


class _Told(Exception):  # noqa: N818
    """A sentence with its parts; see the module's documentation.

    Attributes
    ----------
    argument : str or None
        The argument that the sentence is about, its first word.
    rule : str
        What must hold, or the whole sentence where it is about no single argument; a template.
    got : object
        What came.
    remedy : str or None
        What to do; a template.
    values : dict
        For the fields of both templates.
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
        """The same where arguments, or values, have other names: what came as `groups` may have been `strata`."""
        self.values = self.values | {name: new for name, new in names.items() if name in self.values}
        self._names = self._names | names
        self.argument = names.get(self.argument or "", self.argument)
        self.args = (self.told(),)
        return self

    def told(self, spelled: Callable[[str, str], str] = _in_python) -> str:
        """The sentence, with arguments spelled by a function of their name and value ("" without one)."""
        text = self._filled(self.rule, spelled)
        if self.argument is not None:
            text = f"{spelled(self.argument, '')} {text}"
        if self.got is not _Nothing:
            text += f", got {shown(self.got)}"
        if self.remedy is not None:
            text += f"; {self._filled(self.remedy, spelled)}"
        return text if text.endswith((".", "?")) else f"{text}."

    def _filled(self, template: str, spelled: Callable[[str, str], str]) -> str:
        """A template with its values, and with arguments for the fields that have none."""
        named = {name for _, name, _, _ in Formatter().parse(template) if name is not None}
        arguments = {name: _Argument(self._names.get(name, name), spelled) for name in named - self.values.keys()}
        return template.format_map(self.values | arguments)

    def __reduce__(self) -> Any:
        # All parts are state: the text in `args` is no template, and must not be taken for one.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class FairrampError(_Told):
    """Anything that fairramp refuses to do; it says what, why and the remedy.

    Examples
    --------
    >>> import fairramp
    >>> try:
    ...     fairramp.fit_rule([0.2, 0.7], ["A", "B"], max_gap=2)
    ... except fairramp.InputError as error:
    ...     print(error)
    ...     print(error.argument, error.got)
    `max_gap` must be a number in [0, 1], got 2; 2 percentage points are 0.02.
    max_gap 2
    """


class InputError(FairrampError, ValueError):
    """An argument that breaks a rule: wrong range, wrong length, wrong kind."""


class UnseenGroupError(InputError):
    """A group at decision time that the fit never saw."""


class RuleFormatError(FairrampError, ValueError):
    """A stored rule that is damaged, of another version, or not a rule at all."""


class SummaryFormatError(FairrampError, ValueError):
    """A stored summary that is damaged, of another version, or not a summary at all."""


class MonitorFormatError(FairrampError, ValueError):
    """A stored monitor that is damaged, of another rule, or not a monitor at all."""


class FairrampWarning(_Told, UserWarning):
    """Something that is allowed and that a careful person would want to know."""


def warn(rule: str, **parts: Any) -> None:
    """Warn at the line that called the library; the parts are those of `FairrampWarning`."""
    warnings.warn(FairrampWarning(rule, **parts), stacklevel=_outside())


def _outside() -> int:
    """How many frames up the caller of the library is, as `warnings.warn` counts from `warn`."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and (frame.f_globals.get("__package__") or "").partition(".")[0] == "fairramp":
        frame, level = frame.f_back, level + 1
    return level


def installing(extra: str) -> str:
    """The command that brings an extra: of the package, or of a clone.

    >>> installing("cli")
    "pip install 'fairramp[cli]' (in a clone: pip install '.[cli]')"
    """
    return f"pip install 'fairramp[{extra}]' (in a clone: pip install '.[{extra}]')"


def shown(value: Any) -> str:
    """What came, for a sentence: NumPy's numbers as Python's, on one line, and cut where it gets long.

    >>> print(shown(0.3), shown("x" * 100))
    0.3 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...
    """
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    try:
        text = repr(value)
    except RecursionError:
        text = f"a deeply nested {type(value).__name__}"
    except ValueError:  # a whole number of thousands of digits
        text = f"a very long {type(value).__name__}"
    text = text.replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}..."
