"""Run a command and translate what happens into an exit code.

0 done    1 a gate or a check failed    2 an error the user can fix    3 a gate could not be decided
4 done without some rows    70 a bug    130, 143, 141 stopped
"""

import contextlib
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NoReturn

from cyclopts import CycloptsError

from fairramp.cli import streams
from fairramp.cli.app import app, spelled
from fairramp.cli.render import STDIN, STDOUT, command, for_stderr
from fairramp.cli.secret import redacted
from fairramp.cli.usage import command_of, mistake
from fairramp.errors import FairrampError, FairrampWarning

_ISSUES = "please report it, with the output of fairramp --version; FAIRRAMP_DEBUG=1 shows where it happened"
_HALF = "Stopped; no output is half-written."
#: The meaning of a lone - after these options; anywhere else it is stdin.
_DASHES = {"-o": STDOUT, "--output": STDOUT, "--delimiter": "-", "--decimal": "-"}


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    debug = "--debug" in arguments or bool(os.environ.get("FAIRRAMP_DEBUG"))
    pairs = pairwise(["", *(a for a in arguments if a != "--debug")])
    # The parser does not accept a lone - as a value.
    arguments = [_DASHES.get(before, STDIN) if word == "-" else word for before, word in pairs]
    warnings.showwarning = _show_warning
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    streams.prepare()
    with contextlib.suppress(ValueError, OSError):  # fails outside the main thread
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _stopped)
    try:
        with command():
            code = _dispatch(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output is gone; keep Python from flushing again on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except _Stopped:
        return _fail(_HALF, 128 + _Stopped.last)
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # rich leaves with 1, which is a failed gate
            return 141
        return leaving.code if isinstance(leaving.code, int) else 0
    except Exception as error:
        if isinstance(error.__cause__ or error.__context__, _Stopped) or "Query interrupted" in str(error):
            return _fail(_HALF, 128 + _Stopped.last)
        if debug:
            sys.stderr.write(redacted(traceback.format_exc()))
        return _explain(error)
    return code


def _dispatch(arguments: Sequence[str]) -> int:
    try:
        result: Any = app(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        command = command_of(arguments)
        return _fail(f"{mistake(error, arguments)} See: fairramp{command and f' {command}'} --help", 2)
    # A command returns its exit code, or a function that runs other commands (the demo).
    return result(run) if callable(result) else result or 0


def _explain(error: Exception) -> int:
    """Print one sentence about an error and return the exit code."""
    match error:
        case FairrampError():
            return _fail(_told(error), 2)
        case OSError(filename=name, strerror=why):
            return _fail(f"Cannot use {name or 'the output'}: {why or error}.", 2)
        case MemoryError():
            return _fail("Out of memory: the rows do not fit; pass fewer rows.", 2)
    if type(error).__module__.split(".")[0] in ("duckdb", "_duckdb"):
        from fairramp.data.database import file_of, first_sentence

        where = file_of(error) or "The data"
        why, kind = first_sentence(error), type(error).__name__
        # "Error" is what Thrift raises.
        unread = ("InvalidInputException", "IOException", "ConversionException", "Error")
        known = dict.fromkeys(unread, f"{where} cannot be read: {why}") | {
            "OutOfMemoryException": "Out of memory; raise the limit, for example FAIRRAMP_MEMORY=4GB, or "
            "free disk space for temporary files.",
            # DuckDB raises this for some damaged Parquet files.
            "InternalException": f"The data cannot be read, probably because a file is damaged: {why} "
            "Write the file again, or save it as CSV.",
        }
        if kind in known:
            return _fail(known[kind], 2)
    return _fail(f"Unexpected {type(error).__name__}: {' '.join(str(error).split())[:200]}; {_ISSUES}.", 70)


def _told(message: Any) -> str:
    """Return a message with options in place of Python arguments."""
    return message.told(spelled) if isinstance(message, FairrampError | FairrampWarning) else str(message)


def _fail(text: str, code: int) -> int:
    with contextlib.suppress(OSError):
        sys.stderr.write(for_stderr(redacted(f"fairramp: {text}")) + "\n")
    return code


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    sys.stderr.write(for_stderr(f"warning: {_told(message)}") + "\n")


class _Stopped(BaseException):
    """Raised on SIGINT and SIGTERM, to clean up on the way out."""

    #: The signal number; kept on the class because DuckDB replaces the exception with its own.
    last = signal.SIGINT.value


def _stopped(number: int, _: Any) -> NoReturn:
    _Stopped.last = number
    raise _Stopped
