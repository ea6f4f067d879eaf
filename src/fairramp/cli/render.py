"""Output of commands: text of at most 80 columns, or one JSON object.

Results go to stdout, notes and progress to stderr. Colors and progress bars appear only on terminals.
"""

import json
import os
import shlex
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fairramp._version import __version__
from fairramp.cli.streams import write_document
from fairramp.cli.summary import Summary
from fairramp.core.words import PAGE, lines_of, plain, wrapped

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from fairramp.core.table import Table

#: What - stands for, as DATA and as an output.
STDIN, STDOUT = "/dev/stdin", "/dev/stdout"

#: Seconds before a progress bar appears.
_PATIENCE = 1.0
#: Version of the --json format.
_JSON = 1
#: Exit code if rows were left out and nothing worse happened.
LEFT_OUT = 4
#: What ends with the command.
_held: ContextVar[ExitStack | None] = ContextVar("held", default=None)


@contextmanager
def command() -> Iterator[None]:
    """Run a command: what its screen holds ends with it, and fails if it does."""
    with ExitStack() as held:
        token = _held.set(held)
        try:
            yield
        finally:
            _held.reset(token)


def count(n: int, what: str) -> str:
    """A number with its noun, in the plural unless it is 1.

    >>> count(1, "row"), count(2, "row with label 1")
    ('1 row', '2 rows with label 1')
    """
    noun, *more = what.partition(" with ")
    return f"{n:,} {noun}{'' if n == 1 else 's'}{''.join(more)}"


def spoken(path: str) -> str:
    """The name of a file for a sentence."""
    return {STDIN: "stdin", STDOUT: "stdout"}.get(path, path)


def for_stderr(text: str) -> str:
    """Wrap a message on a terminal; keep it on one line in a log."""
    return wrapped(text) if sys.stderr.isatty() else text


def typed(arguments: Sequence[str], before: str = "  ") -> str:
    """A command as typed in a shell, wrapped over several lines if needed."""
    # Blanks inside a word, and between an option and its value, must not become line breaks.
    kept = {ord(blank): 0xE000 + ord(blank) for blank in " \t\n\r\v\f"}
    words = [shlex.quote(word).translate(kept) for word in arguments]
    pairs = pairwise(["fairramp", *words])
    text = "fairramp" + "".join(f"{chr(0xE020) if last.startswith('-') else ' '}{word}" for last, word in pairs)
    broken = " \\\n".join(lines_of(text, PAGE - 2, before, " " * 6))
    return broken.translate({new: old for old, new in kept.items()})


def given(**options: str | bool | None) -> list[str]:
    """Options that were given, as typed.

    >>> given(label="y", weight=None, skip_invalid=True)
    ['--label', 'y', '--skip-invalid']
    """
    named = {
        f"--{name.replace('_', '-')}": value for name, value in options.items() if value not in (None, False)
    }
    return [word for name, value in named.items() for word in ([name] if value is True else [name, str(value)])]


class Screen:
    """The output of a command.

    Parameters
    ----------
    json : bool
        Collect results and print one JSON object instead of text.
    quiet : bool
        Print only warnings and errors (and JSON, if requested).
    to_stderr : bool
        Print to stderr, because the data go to stdout.
    summary : str, optional
        File for the same text in Markdown, whatever is printed.
    """

    def __init__(
        self, *, json: bool = False, quiet: bool = False, to_stderr: bool = False, summary: str | None = None
    ) -> None:
        self._json = json
        self.is_quiet = quiet
        self._file = sys.stderr if to_stderr else sys.stdout
        self._summary = Summary(summary)
        self._held = _held.get() or ExitStack()
        self.rejected: list[dict[str, Any]] = []
        self._earlier: list[str] = []

    def heading(self, text: str) -> None:
        """Print a heading, bold on a terminal."""
        self._summary.heading(text)
        # The old console of Windows prints escape sequences as text.
        styled = os.name == "posix" or "WT_SESSION" in os.environ
        bold = styled and self._file.isatty() and not os.environ.get("NO_COLOR")
        self.text(f"\x1b[1m{text}\x1b[0m" if bold else text)

    def text(self, *lines: str) -> None:
        """Print lines unchanged."""
        if not (self._json or self.is_quiet):
            self._file.write("".join(f"{line}\n" for line in lines or [""]))

    def flush(self) -> None:
        """Show now what was printed, before something that takes long."""
        self._file.flush()

    def say(self, *sentences: str) -> None:
        """Print sentences, wrapped, each starting on a new line."""
        self._summary.say(*sentences)
        self.text(*map(wrapped, sentences))

    def table(self, table: "Table", *, every: bool = False, more: str | None = None, what: str = "line") -> None:
        """Print a table and, if its middle is left out, how to see all of it."""
        self._summary.table(table, every=every)
        self.text(table.text(PAGE, every=every))
        if table.is_cut and not every and more is not None:
            self.say(f"\nShowing the first and last of {count(len(table), what)}; see all {more}")

    def warn(self, text: str, *, when: object = True) -> None:
        """Print a warning, even with --quiet."""
        if when:
            self._summary.say(f"Warning: {text}")
            self._warn(text)

    def verdict(self, text: str, *, told: object) -> None:
        """Print a verdict; with --quiet, as a warning if it must be `told`: it failed, or a group is missing."""
        self._summary.verdict(text)
        self.text(wrapped(text))
        if told and self.is_quiet:
            self._warn(f"{text[0].lower()}{text[1:]}")

    def _warn(self, text: str) -> None:
        sys.stderr.write(for_stderr(f"warning: {text}") + "\n")

    def note(self, text: str) -> None:
        """Print a remark, except with --quiet."""
        if not self.is_quiet:
            sys.stderr.write(for_stderr(text) + "\n")

    def hold(self, context: AbstractContextManager[Any]) -> None:
        """Enter a context that ends with the command: well if there is a result."""
        self._held.enter_context(context)

    @contextmanager
    def rejecting(self, n: int, n_rows: int, path: str, why: str, *, kept: int) -> Iterator[None]:
        """Warn, if the context succeeds, that rows could not be used; of these, `kept` are in the output."""
        self.rejected.append({"rows": n, "undecided": kept, "of": n_rows, "file": path})
        yield
        left_out = n - kept
        told = [f"{left_out:,} {'was' if left_out == 1 else 'were'} left out"] if left_out else []
        told += [f"{kept:,} {'is' if kept == 1 else 'are'} in the output without a decision"] if kept else []
        first, _, rest = " and ".join(told).partition(" ")
        self.warn(f"{first} of {count(n_rows, 'row')} {rest}: {why}. See {path}.")

    def keep_earlier(self, path: str | None) -> None:
        """Remember a file of rejected rows of an earlier run, which stays because no row was left out."""
        self._earlier += [] if path is None else [path]

    def result(self, command: str, code: int = 0, /, **content: Any) -> int:
        """Print the results as JSON, in which stdin and stdout are -, and write the summary; call it last.

        Returns the exit code: `code`, or else 4 if rows were left out.
        """
        self._held.close()
        for path in set(self._earlier) - {rejected["file"] for rejected in self.rejected}:
            self.warn(f"all rows were used; {path} is from an earlier run.")
        self._summary.write()
        if self._json:
            stamp: dict[str, Any] = {"command": command, "format": _JSON, "fairramp": __version__}
            content |= {"rejected": self.rejected} if self.rejected else {}
            named = {name: "-" if value in (STDIN, STDOUT) else value for name, value in content.items()}
            text = json.dumps(plain(stamp | named), ensure_ascii=False, indent=1, allow_nan=False)
            write_document(self._file, f"{text}\n")
        return code or (LEFT_OUT if self.rejected else 0)

    @contextmanager
    def progress(self, connection: "DuckDBPyConnection", what: str) -> Iterator[None]:
        """Show a progress bar on stderr while DuckDB works, if stderr is a terminal."""
        if self.is_quiet or self._json or not sys.stderr.isatty():
            yield
            return
        done = threading.Event()

        def watch() -> None:
            if done.wait(_PATIENCE):
                return
            from rich import console, progress

            with progress.Progress(console=console.Console(stderr=True), transient=True) as bars:
                task = bars.add_task(what, total=100)
                while not done.wait(0.2):
                    share = connection.query_progress()
                    bars.update(task, completed=max(share, 0.0), total=100 if share >= 0 else None)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
