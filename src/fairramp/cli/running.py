"""From arguments to an exit code: 0 fine, 1 the audit's gate, 2 the user can mend it, 70 we must, 130 Ctrl-C."""

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

from fairramp.errors import FairrampError

__all__ = ["run"]

_ISSUES = "please report it with the output of: fairramp --version; FAIRRAMP_DEBUG=1 shows more"
#: Python's names of arguments, where the command line has others.
_OPTIONS = {"scores": "--score", "groups": "--group", "labels": "--label", "sample_weight": "--weight"}
_OPTIONS |= {
    name: f"--{name.replace('_', '-')}"
    for name in (
        "max_gap",
        "ramp_width",
        "ramp",
        "target_rate",
        "cutoff",
        "scale",
        "unseen_group",
        "fail_above",
        "fail_unless_below",
        "to",
        "dialect",
        "table",
        "view",
        "replace",
        "key_table",
        "key_column",
        "missing",
        "column",
        "prefix",
        "decisions",
    )
}
_OPTIONS |= {"strata": "--strata", "confidence": "--confidence", "ids": "--id", "max_gaps": "--max-gap"}
_OPTIONS |= {"score": "--score", "group": "--group", "label": "--label", "weight": "--weight", "id": "--id"}


def run(arguments: Sequence[str]) -> int:
    """Run one command."""
    debug = "--debug" in arguments or bool(os.environ.get("FAIRRAMP_DEBUG"))
    arguments = [a for a in arguments if a != "--debug"]
    # A lone - is no value for the parser.
    arguments = [_stream(*pair) if pair[1] == "-" else pair[1] for pair in pairwise(["", *arguments])]
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
        return _fail("Stopped; nothing is half-written.", 128 + stopped.number)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    except Exception as error:
        if isinstance(error.__cause__ or error.__context__, _Stopped) or "Query interrupted" in str(error):
            return _fail("Stopped; nothing is half-written.", 128 + _Stopped.last)
        if debug:
            from fairramp.cli.secret import redacted

            sys.stderr.write(redacted(traceback.format_exc()))
        return _explain(error)
    return code


def _stream(before: str, dash: str) -> str:
    if before in ("--delimiter", "--decimal"):
        return dash
    return "/dev/stdout" if before in ("-o", "--output") else "/dev/stdin"


def _dispatch(arguments: Sequence[str]) -> int:
    from cyclopts import CycloptsError

    from fairramp.cli.app import app

    try:
        result: Any = app(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        command = next((a for a in arguments if a in app and not a.startswith("-")), None)
        see = f"fairramp {command} --help" if command else "fairramp --help"
        return _fail(f"{_usage(error, arguments)} See: {see}", 2)
    return result if isinstance(result, int) else 0


def _usage(error: Any, arguments: Sequence[str]) -> str:
    """What is wrong with the arguments, and what was probably meant."""
    from cyclopts import CoercionError, MissingArgumentError, UnusedCliTokensError

    text = " ".join(str(error).split())
    if isinstance(error, UnusedCliTokensError):
        left = " ".join(error.unused_tokens or [])
        return f"{left!r} is one word too many; put names with spaces in quotes, like 'my score'."
    if isinstance(error, MissingArgumentError):
        name = re.search(r'parameter "?([^\s"]+)"? requires an argument', text)  # older ones quote it
        if name is not None:
            return f"{name[1]} {'has no value' if name[1] in arguments else 'is missing'}."
    comma = re.search(r'for (\S+): unable to convert "(-?\d*),(\d+)" into float', text)
    if isinstance(error, CoercionError) and comma:
        return f"{comma[1]} {comma[2]},{comma[3]} is not a number; write {comma[2] or 0}.{comma[3]} with a point."
    percent = re.search(r'for (\S+): unable to convert "(-?[\d.]+) ?%" into float', text)
    if isinstance(error, CoercionError) and percent:
        return f"{percent[1]} {percent[2]}% is not a number; write {float(percent[2]) / 100:.12g}."
    return text


def _explain(error: Exception) -> int:
    """One sentence and an exit code for whatever went wrong."""
    if isinstance(error, FairrampError):
        return _fail(_in_options(str(error)), 2)
    if isinstance(error, OSError):
        return _fail(f"Cannot use {error.filename or 'the output'}: {error.strerror or error}.", 2)
    if isinstance(error, MemoryError):
        return _fail("Out of memory: the rows that this command reads do not fit; pass fewer.", 2)
    if type(error).__module__.split(".")[0] in ("duckdb", "_duckdb"):
        from fairramp.cli.tables import first_sentence

        kind = type(error).__name__
        if kind == "OutOfMemoryException":
            return _fail(
                "Out of memory; allow more with FAIRRAMP_MEMORY=4GB, or free space for temporary files.", 2
            )
        if kind in ("InvalidInputException", "IOException", "ConversionException", "Error"):  # the last of Thrift
            return _fail(f"The data cannot be read: {first_sentence(error)}", 2)
        if kind == "InternalException":  # what DuckDB makes of some damaged Parquet files
            return _fail(
                f"The data cannot be read, probably because a file is damaged: {first_sentence(error)} "
                "Write the file again, or as CSV.",
                2,
            )
    return _fail(f"Unexpected {type(error).__name__}: {' '.join(str(error).split())[:200]}; {_ISSUES}.", 70)


def _in_options(text: str) -> str:
    """Python's argument names as the options they are here."""
    text = text.replace("`criterion=Covariance(…)`", "--strata")
    text = re.sub(r"`(\w+)(=[^`]*)?`", lambda m: _option(m[1], m[2]) or m[0], text)
    return text.replace("unseen_group='pooled'", "--unseen-group pooled")


def _option(name: str, value: str | None) -> str | None:
    option = _OPTIONS.get(name)
    return option and option + (f" {value[1:]}".replace("'", "") if value else "")


def _fail(text: str, code: int) -> int:
    from fairramp.cli.render import for_stderr
    from fairramp.cli.secret import redacted

    with contextlib.suppress(OSError):
        sys.stderr.write(for_stderr(redacted(f"fairramp: {text}")) + "\n")
    return code


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    from fairramp.cli.render import for_stderr

    sys.stderr.write(for_stderr(f"warning: {_in_options(str(message))}") + "\n")


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
