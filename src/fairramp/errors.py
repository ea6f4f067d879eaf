"""What can go wrong, and the one sentence that says so.

Messages are written where they are raised. They name the argument, the rule and what came, and end
with the remedy if there is one.
"""

import sys
import warnings
from typing import Any

__all__ = [
    "FairrampError",
    "FairrampWarning",
    "InputError",
    "RuleFormatError",
    "SummaryFormatError",
    "UnseenGroupError",
    "installing",
    "shown",
]


class FairrampError(Exception):
    """Anything that fairramp refuses to do."""


class InputError(FairrampError, ValueError):
    """An argument that breaks a rule: wrong range, wrong length, wrong kind."""


class UnseenGroupError(InputError):
    """A group at decision time that the fit never saw."""


class RuleFormatError(FairrampError, ValueError):
    """A stored rule that is damaged, of another version, or not a rule at all."""


class SummaryFormatError(FairrampError, ValueError):
    """A stored summary that is damaged, of another version, or not a summary at all."""


class FairrampWarning(UserWarning):
    """Something that is allowed and that a careful person would want to know."""


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


def warn(text: str) -> None:
    """Warn at the line that called the library."""
    warnings.warn(text, FairrampWarning, stacklevel=_outside())


def _outside() -> int:
    """How many frames up the caller of the library is, as `warnings.warn` counts from `warn`."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and (frame.f_globals.get("__package__") or "").partition(".")[0] == "fairramp":
        frame, level = frame.f_back, level + 1
    return level
