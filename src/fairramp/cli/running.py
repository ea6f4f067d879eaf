"""From arguments to an exit code.

0 fine    1 a gate or a check failed    2 the user can mend it    3 a gate could not be decided
70 a bug    130, 143, 141 stopped
"""

import contextlib
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NoReturn

from cyclopts import CoercionError, CycloptsError, MissingArgumentError, UnusedCliTokensError

from fairramp.cli.app import app, spelled
from fairramp.cli.render import STDIN, STDOUT, for_stderr
from fairramp.cli.secret import redacted
from fairramp.errors import FairrampError, FairrampWarning

_ISSUES = "please report it with the output of: fairramp --version; FAIRRAMP_DEBUG=1 shows more"
_HALF = "Stopped; nothing is half-written."


def run(arguments: Sequence[str]) -> int:
    """Run one command."""
    debug = "--debug" in arguments or bool(os.environ.get("FAIRRAMP_DEBUG"))
    pairs = pairwise(["", *(a for a in arguments if a != "--debug")])
    # A lone - is no value for the parser.
    arguments = [_stream(*pair) if pair[1] == "-" else pair[1] for pair in pairs]
    warnings.showwarning = _show_warning
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    with contextlib.suppress(ValueError, OSError):  # only in the main thread
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _stopped)
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has left. Python must not try to flush it once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except _Stopped as stopped:
        return _fail(_HALF, 128 + stopped.number)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    except Exception as error:
        if isinstance(error.__cause__ or error.__context__, _Stopped) or "Query interrupted" in str(error):
            return _fail(_HALF, 128 + _Stopped.last)
        if debug:
            sys.stderr.write(redacted(traceback.format_exc()))
        return _explain(error)
    return code


def _stream(before: str, dash: str) -> str:
    if before in ("--delimiter", "--decimal"):
        return dash
    return STDOUT if before in ("-o", "--output") else STDIN


def _dispatch(arguments: Sequence[str]) -> int:
    try:
        result: Any = app(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        command = next((a for a in arguments if a in app and not a.startswith("-")), None)
        see = f"fairramp {command} --help" if command else "fairramp --help"
        return _fail(f"{_usage(error, arguments)} See: {see}", 2)
    # A command answers with its exit code, or with what runs other commands, as the demo does.
    return result(run) if callable(result) else result or 0


def _usage(error: Any, arguments: Sequence[str]) -> str:
    """What is wrong with the arguments, and what was probably meant."""
    if isinstance(error, UnusedCliTokensError):
        left = " ".join(error.unused_tokens or [])
        return f"{left!r} is one word too many; put names with spaces in quotes, like 'my score'."
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        names = error.argument.names
        typed = next((a for a in reversed(arguments) if a in names), None)
        return f"{typed} has no value." if typed else f"{error.argument.name} is missing."
    if isinstance(error, CoercionError) and error.target_type is float and error.token is not None:
        name, value = error.token.keyword, error.token.value
        comma = re.fullmatch(r"(-?\d*),(\d+)", value)
        if comma:
            return f"{name} {value} is not a number; write {comma[1] or 0}.{comma[2]} with a point."
        percent = re.fullmatch(r"(-?[\d.]+) ?%", value)
        if percent:
            return f"{name} {percent[1]}% is not a number; write {float(percent[1]) / 100:.12g}."
    return " ".join(str(error).split())


def _explain(error: Exception) -> int:
    """One sentence and an exit code for whatever went wrong."""
    if isinstance(error, FairrampError):
        return _fail(_told(error), 2)
    if isinstance(error, OSError):
        return _fail(f"Cannot use {error.filename or 'the output'}: {error.strerror or error}.", 2)
    if isinstance(error, MemoryError):
        return _fail("Out of memory: the rows that this command reads do not fit; pass fewer.", 2)
    if type(error).__module__.split(".")[0] in ("duckdb", "_duckdb"):
        from fairramp.cli.tables import first_sentence

        why, kind = first_sentence(error), type(error).__name__
        unread = f"The data cannot be read: {why}"
        known = {
            "OutOfMemoryException": "Out of memory; allow more with FAIRRAMP_MEMORY=4GB, or free space for "
            "temporary files.",
            "InvalidInputException": unread,
            "IOException": unread,
            "ConversionException": unread,
            "Error": unread,  # of Thrift
            # What DuckDB makes of some damaged Parquet files.
            "InternalException": f"The data cannot be read, probably because a file is damaged: {why} "
            "Write the file again, or as CSV.",
        }
        if kind in known:
            return _fail(known[kind], 2)
    return _fail(f"Unexpected {type(error).__name__}: {' '.join(str(error).split())[:200]}; {_ISSUES}.", 70)


def _told(message: Any) -> str:
    """A sentence with Python's arguments as the options they are here."""
    return message.told(spelled) if isinstance(message, FairrampError | FairrampWarning) else str(message)


def _fail(text: str, code: int) -> int:
    with contextlib.suppress(OSError):
        sys.stderr.write(for_stderr(redacted(f"fairramp: {text}")) + "\n")
    return code


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    sys.stderr.write(for_stderr(f"warning: {_told(message)}") + "\n")


class _Stopped(BaseException):
    """Ctrl-C or a request to end: clean up on the way out."""

    #: DuckDB swallows the exception and raises one of its own.
    last = signal.SIGINT.value

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _stopped(number: int, _: Any) -> NoReturn:
    _Stopped.last = number
    raise _Stopped(number)
