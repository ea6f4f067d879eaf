"""What every public function does for its callers.

An unknown keyword is answered with the name that was probably meant, and the function is named as users call it:
`Rule.apply()`, even if a base class defines it. A message about a row also gives the row's pandas index, if it
differs from the row's position and no other rows are passed for validation.
"""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

from fairramp.core.checks import check_keywords, elsewhere
from fairramp.core.indexes import indexes_of
from fairramp.errors import FairrampError

_Public = TypeVar("_Public", bound=Callable[..., Any])


def public(called: _Public) -> _Public:
    """Decorate a function, or the constructor and the public methods of a class."""
    if not isinstance(called, type):
        return _answering(called, called.__name__)
    for name in dir(called):
        member = inspect.getattr_static(called, name)
        of_class = isinstance(member, classmethod)
        function = member.__func__ if of_class else member
        if not _is_ours(function) or (name.startswith("_") and name != "__init__"):
            continue
        answering = _answering(function, called.__name__ if name == "__init__" else f"{called.__name__}.{name}")
        answering.__module__, answering.__qualname__ = called.__module__, f"{called.__qualname__}.{name}"
        setattr(called, name, classmethod(answering) if of_class else answering)
    return called


def _is_ours(member: Any) -> bool:
    """Whether a member of a class is a function of this library."""
    return inspect.isfunction(member) and member.__module__.partition(".")[0] == "fairramp"


def _answering(function: _Public, known_as: str) -> _Public:
    """The function, with better messages."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    passes_on = bool(code.co_flags & inspect.CO_VARKEYWORDS)  # and checks what it takes

    @wraps(function)
    def answering(*args: Any, **kwargs: Any) -> Any:
        if not passes_on and not all(name in names for name in kwargs):
            check_keywords(known_as, kwargs, [name for name in names if name not in ("self", "cls")])
        try:
            return function(*args, **kwargs)
        except FairrampError as error:
            if kwargs.get("validation") is None:  # otherwise, nothing tells which rows are meant
                _locate(error, (*args, *kwargs.values()))
            raise
        except TypeError:
            if told := _miscalled(function, known_as, args, kwargs):
                raise TypeError(told) from None
            raise

    return answering  # type: ignore[return-value]


def _miscalled(function: Any, known_as: str, args: Any, kwargs: Any) -> str | None:
    """What is wrong with a call that Python refuses: too many arguments by position, or missing ones."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
        return None  # the error is about something else
    except TypeError:
        pass
    options = [one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    by_place = [one.name for one in options if one.kind is one.POSITIONAL_OR_KEYWORD]
    n = len(args) - (len(options) < len(signature.parameters))
    if n > len(by_place):
        by_name = [one.name for one in options if one.kind is one.KEYWORD_ONLY]
        taken = f"takes {', '.join(by_place)} by position" if by_place else "takes no argument by position"
        more = f"; pass others by name: {', '.join(f'{name}=…' for name in by_name[:4])}" if by_name else ""
        return f"{known_as}() {taken}, got {n} arguments{more}{', …' if len(by_name) > 4 else ''}"
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    missing = [
        one.name
        for one in options[n:]
        if one.kind in named and one.default is one.empty and one.name not in kwargs
    ]
    others = [name for name in kwargs if name not in {one.name for one in options}]
    hints = (f"{name}=… is called {meant} here" for name in others if (meant := elsewhere(name, missing)))
    hint = next(hints, "")
    return f"{known_as}() needs {' and '.join(missing)}{f'; {hint}' if hint else ''}" if missing else None


def _locate(error: FairrampError, given: Iterable[Any]) -> None:
    """Add the pandas index of the row that an error is about, unless it equals the position."""
    row = error.values.get("row")
    indexes = [] if row is None else [index for one in given for index in indexes_of(one)]
    first, *others = indexes or [()]
    # Of different indexes, nothing tells which one is meant.
    if row is not None and row < len(first) and all(index.equals(first) for index in others):
        error.locate(row, first[row])
