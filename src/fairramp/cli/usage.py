"""What is wrong with the arguments of a command, and what was probably meant."""

import re
import shlex
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from cyclopts import (
    CoercionError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)

from fairramp.cli.app import app
from fairramp.cli.render import STDIN

#: The options of a gate, whose names are too much alike for a guess: the wrong one might never fail.
_GATES = (
    "For the gap: --fail-above X, --fail-unless-below X. "
    "For the ratio: --fail-below-ratio X, --fail-unless-ratio X."
)
#: Commands with a limit of their own, and options of others that set one.
_CHECKS, _LIMITS = ("check", "monitor"), ("--fail", "--max-gap", "--min-ratio")


def command_of(arguments: Sequence[str]) -> str:
    """The command; empty if there is none."""
    return next((word for word in arguments if word in app and not word.startswith("-")), "")


def mistake(error: Any, arguments: Sequence[str]) -> str:
    """Say what is wrong with the arguments, and what was probably meant."""
    match error:
        case UnusedCliTokensError(unused_tokens=left):
            words = " ".join(left or [])
            quoted = f"Unexpected argument {words!r}; put names with spaces in quotes, like 'my score'."
            return _rule_first(arguments) or quoted
        case MissingArgumentError(argument=object(name=name, names=names)):
            typed = next((a for a in reversed(arguments) if a in names), None)
            unknown = None if typed else _unknown(arguments)
            return unknown or (f"{typed} has no value." if typed else f"{name} is missing.")
        case CoercionError(token=object(keyword=name, value=value)) if error.target_type is float:
            if comma := re.fullmatch(r"(-?\d*),(\d+)", value):
                return f"{name} {value} is not a number; use a decimal point: {comma[1] or 0}.{comma[2]}."
            if percent := re.fullmatch(r"(-?[\d.]+) ?%", value):
                return f"{name} {percent[1]}% is not a number; write {float(percent[1]) / 100:.12g}."
            return f"{name} must be a number, got {value!r}."
        case CoercionError(token=object(keyword=name, value=value)) if error.target_type is int:
            return f"{name} must be an integer, got {value!r}."
        case ValidationError(argument=object(name=name), exception_message=why):
            return f"{name} {why}."
        case UnknownOptionError():
            return _unknown(arguments) or " ".join(str(error).split())
        case UnknownCommandError() if arguments[0].startswith("--"):
            return _unknown(arguments) or " ".join(str(error).split())
    return " ".join(str(error).split())


def _unknown(arguments: Sequence[str]) -> str | None:
    """Say which option does not exist; the parser misses the one that was meant instead, or guesses wildly."""
    from fairramp.core.checks import elsewhere, meant

    command = command_of(arguments)
    known = _options(command) if command else {"--help", "--version"}
    options = (argument.partition("=")[0] for argument in arguments if argument.startswith("--"))
    found = next((option for option in options if option not in known), None)
    if found is None:
        return None
    if found.startswith("--fail") and "--fail-above" in known:
        return f"Unknown option: {found}. {_GATES}"
    if found.startswith(_LIMITS) and command in _CHECKS:
        files = _files(arguments)
        rule, data = files if len(files) == 2 else ("RULE", "DATA")
        own = _typed("audit", data, "--rule", rule, "--fail-above", "0.02")
        return f"Unknown option: {found}. {command} uses the rule's own limit. For a limit of yours: {own}."
    # The dashes would make any two options alike.
    names = [name.strip("-") for name in known if name.startswith("--")]
    word = elsewhere(found.strip("-").replace("-", "_"), [name.replace("-", "_") for name in names])
    near = word.replace("_", "-") if word else meant(found.strip("-"), names)
    return f"Unknown option: {found}.{f' Did you mean --{near}?' if near else ''}"


def _rule_first(arguments: Sequence[str]) -> str | None:
    """The remedy if a rule was passed like DATA, as other commands take it."""
    from fairramp.errors import FairrampError
    from fairramp.rule.either import load_either

    command, files = command_of(arguments), _files(arguments)
    if len(files) != 2 or "--rule" not in _options(command):
        return None
    for rule, data in (files, files[::-1]):
        try:
            load_either(rule)
        except (FairrampError, OSError, ValueError):
            continue
        return f"{command} takes DATA alone; pass the rule with --rule: {_typed(command, data, '--rule', rule)}."
    return None


def _options(command: str) -> set[str]:
    """The names of the options of a command."""
    return {name for argument in app[command].assemble_argument_collection() for name in argument.names}


def _files(arguments: Sequence[str]) -> list[str]:
    """The words between the command and its first option."""
    after = arguments[list(arguments).index(command_of(arguments)) + 1 :]
    return ["-" if word == STDIN else word for word in takewhile(lambda word: not word.startswith("-"), after)]


def _typed(*words: str) -> str:
    return shlex.join(["fairramp", *words])
