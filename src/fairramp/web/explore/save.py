"""Save a rule: run the commands that make it and its report, and write these commands beside them.

Files go into the folder of the explorer. If it already has one of them, they go into a new folder inside, 2, 3
and so on, so nothing is ever overwritten. The page names no file.
"""

import contextlib
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairramp.errors import FairrampError, refuse_if
from fairramp.fit.settings import Settings
from fairramp.rule.rule import Rule
from fairramp.show.report.slider import Sources, fit_words
from fairramp.web.explore.asked import Choice

#: What is saved.
RULE, REPORT, COMMANDS = "rule.json", "report.html", "commands.txt"
#: Most folders in one folder.
_MOST = 10_000
_NEXT = """
# Then the decisions; replace ID with the name of your id column:
# fairramp keygen key.txt
# fairramp apply {rule} {data} -o decisions.csv --id ID --key-file key.txt
"""


@dataclass(frozen=True)
class Saved:
    """Files that were written, the commands that wrote them, as typed in a shell, and the rule's fingerprint."""

    files: list[str]
    commands: list[str]
    fingerprint: str


@dataclass
class Folder:
    """The folder of the explorer: the only place where it writes."""

    name: str
    _real: Path = field(init=False)
    _saving: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        path = Path(self.name)
        refuse_if(path.exists() and not path.is_dir(), "--out {name} is not a folder", name=self.name)
        refuse_if(
            not path.resolve().parent.is_dir(),
            "Cannot create --out {name}: the folder {parent} does not exist",
            name=self.name,
            parent=path.parent,
        )
        nearest = path if path.is_dir() else path.resolve().parent
        refuse_if(
            not os.access(nearest, os.W_OK), "Cannot write to {folder}: it is write-protected", folder=nearest
        )
        self._real = path.resolve()

    def save(
        self,
        data: str,
        rule: Rule,
        settings: Settings,
        choice: Choice,
        decision: str | None,
        owner: str | None,
    ) -> Saved:
        """Run the commands for a rule that was found, and write them down."""
        with self._saving:
            place = self._place()
            files = [os.path.join(place, name) for name in (RULE, REPORT, COMMANDS)]
            sources = Sources(data, choice.label, positive=choice.positive)
            fit = fit_words(rule, settings, sources, labeled=choice.label is not None, weighted=False)
            options = {"label": choice.label, "positive": choice.positive, "decision": decision, "owner": owner}
            named = [word for name, value in options.items() if value for word in (f"--{name}", value)]
            commands = [
                _safe([*fit, "-o", files[0]]),
                _safe(["report", files[0], data, *named, "-o", files[1]]),
            ]
            try:
                for command in commands:
                    _run(command)
                saved = Rule.load(files[0])
                # The command computes in DuckDB, so the last digits of its ramps may differ from the page's.
                refuse_if(
                    _rows_of(saved) != _rows_of(rule),
                    "{data} has changed since it was read; reload the page to read it again",
                    data=data,
                )
                lines = [shlex.join(["fairramp", *command]) for command in commands]
                after = _NEXT.format(rule=shlex.quote(files[0]), data=shlex.quote(data))
                _write_new(files[2], "\n".join([f"# Run in {os.getcwd()}", *lines]) + "\n" + after)
            except BaseException:
                for file in files:  # none of them was there before
                    with contextlib.suppress(OSError):
                        os.unlink(file)
                with contextlib.suppress(OSError):
                    os.rmdir(place)  # only if it is empty
                raise
        return Saved(files, lines, saved.fingerprint)

    def _place(self) -> str:
        """The folder for the next files, which has none of them."""
        path = Path(self.name)
        with contextlib.suppress(FileExistsError):
            path.mkdir()
        refuse_if(
            path.resolve() != self._real or not path.is_dir(),
            "--out {name} is no longer the folder that it was when the explorer started",
            name=self.name,
        )
        if not any(os.path.lexists(path / name) for name in (RULE, REPORT, COMMANDS)):
            return self.name
        for number in range(2, _MOST):
            with contextlib.suppress(FileExistsError):
                (path / str(number)).mkdir()
                return os.path.join(self.name, str(number))
        raise FairrampError("{name} is full; choose another --out", name=self.name)


def _rows_of(rule: Rule) -> str | None:
    """The fingerprint of the fit rows."""
    return rule.record.fingerprint if rule.record else None


def _safe(words: Sequence[str]) -> list[str]:
    """A command in which no value that starts with a dash is taken for an option."""
    found: list[str] = []
    for word in words:
        if found and found[-1].startswith("--") and "=" not in found[-1] and word.startswith("-"):
            if found[-1] in _FLAGS:
                found.append(word)
            else:
                found[-1] += f"={word}"
        else:
            found.append(word)
    return found


#: Options without a value.
_FLAGS = ("--lower-is-better",)


def _run(command: Sequence[str]) -> None:
    """Run a command of fairramp as a process of its own, without a shell."""
    done = subprocess.run(
        [sys.executable, "-m", "fairramp.cli", *command],
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("fairramp: ")]
        why = lines[-1].removeprefix("fairramp: ") if lines else f"exit code {done.returncode}"
        raise FairrampError("{command} failed: {why}", command=f"fairramp {command[0]}", why=why)


def _write_new(path: str, text: str) -> None:
    """Write a file that does not exist yet."""
    with open(path, "x", encoding="utf-8", newline="\n") as file:
        file.write(text)
