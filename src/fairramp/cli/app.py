"""The commands, in the order the help lists them, and the names of their options."""

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
    evidence,
    explain,
    explore,
    export,
    fit,
    frontier,
    keygen,
    monitor,
    report,
    rows_needed,
    select,
    serve,
    show,
)

app = App(
    name="fairramp",
    help="Equalize selection rates or error rates across groups, given any classifier's scores.\n\n"
    "To turn a file of scores into a file of decisions, run audit, fit, keygen and apply.\n\n"
    "Each command has its own help, for example: fairramp fit --help\n\n"
    "Exit codes: 0 done, 1 a gate or check failed, 2 an error that you can fix, 3 a gate or check could not be "
    "judged, 4 done without some rows (--skip-invalid).",
    version=__version__,
    help_format="plaintext",
    version_flags=["--version"],
)
_COMMANDS: list[Callable[..., Any]] = [
    audit.audit,
    explore.explore,
    fit.fit,
    keygen.keygen,
    apply.apply,
    select.select,
    check.check,
    monitor.monitor,
    rows_needed.rows_needed,
    frontier.frontier,
    demo.demo,
    show.show,
    explain.explain,
    report.report,
    evidence.evidence,
    export.export,
    serve.serve,
]
for _place, _command in enumerate(_COMMANDS):
    # Plain-text help keeps line ends, which would break paragraphs in mid-sentence.
    _paragraphs = inspect.cleandoc(_command.__doc__ or "").split("\n\n")
    app.command(_command, sort_key=_place, help="\n\n".join(" ".join(part.split()) for part in _paragraphs))

#: Library arguments whose options have a different name.
_RENAMED = {
    "scores": "score",
    "groups": "group",
    "labels": "label",
    "sample_weight": "weight",
    "ids": "id",
    "key": "key_file",
    "max_gaps": "max_gap",
    "n_groups": "groups",
}


def spelled(name: str, value: str = "") -> str:
    """Return the option for a library argument, or the argument in backticks if no command has it.

    >>> spelled("labels"), spelled("target_rate", "accuracy"), spelled("solver", "sgd")
    ('--label', '--target-rate accuracy', "`solver='sgd'`")
    >>> spelled("higher_is_better", "False")
    '--lower-is-better'
    """
    if name == "higher_is_better":  # a flag for the opposite
        return "--lower-is-better"
    option = _RENAMED.get(name, name)
    parameters = [p for command in _COMMANDS for p in inspect.signature(command).parameters.values()]
    if option in {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}:
        return f"--{option.replace('_', '-')} {value}".rstrip()
    return f"`{name}={value!r}`" if value else f"`{name}`"
