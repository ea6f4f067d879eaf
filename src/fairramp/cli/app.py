"""The commands, in the order in which help lists them, and the names of their options."""

import inspect
from collections.abc import Callable
from typing import Any

from cyclopts import App

from fairramp._version import __version__
from fairramp.cli.commands import (
    apply,
    audit,
    check,
    demo,
    export,
    fit,
    frontier,
    keygen,
    monitor,
    report,
    rows_needed,
    show,
)

app = App(
    name="fairramp",
    help="Equal selection rates between groups, from any classifier's scores.\n\n"
    "Four commands from a file of scores to a file of decisions: audit, fit, keygen, apply. "
    "Each explains itself: fairramp fit --help",
    version=__version__,
    help_format="plaintext",
    version_flags=["--version"],
)
_COMMANDS: list[Callable[..., Any]] = [
    audit.audit,
    fit.fit,
    keygen.keygen,
    apply.apply,
    check.check,
    monitor.monitor,
    rows_needed.rows_needed,
    frontier.frontier,
    demo.demo,
    show.show,
    report.report,
    export.export,
]
for _place, _command in enumerate(_COMMANDS):
    app.command(_command, sort_key=_place)

#: Arguments of the library that have another name here; all others are called as there.
_OTHERWISE = {
    "scores": "score",
    "groups": "group",
    "labels": "label",
    "sample_weight": "weight",
    "ids": "id",
    "max_gaps": "max_gap",
    "n_groups": "groups",
}


def spelled(name: str, value: str = "") -> str:
    """An argument of the library as it is typed; one that no command has stays as Python has it.

    >>> spelled("labels"), spelled("target_rate", "accuracy"), spelled("solver", "sgd")
    ('--label', '--target-rate accuracy', "`solver='sgd'`")
    """
    option = _OTHERWISE.get(name, name)
    parameters = [p for command in _COMMANDS for p in inspect.signature(command).parameters.values()]
    if option in {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}:
        return f"--{option.replace('_', '-')} {value}".rstrip()
    return f"`{name}={value!r}`" if value else f"`{name}`"
