"""What people and machines see: text of at most 80 columns, or one JSON object.

Results go to stdout, notes and progress to stderr. Color and bars are only for terminals.
"""

import json
import math
import os
import shlex
import sys
import textwrap
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fairramp._version import __version__
from fairramp.errors import FairrampError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from fairramp.core.table import Table

#: What a lone - stands for, as DATA and as an output.
STDIN, STDOUT = "/dev/stdin", "/dev/stdout"

#: Columns of a page that can be pasted into an email.
WIDTH = 80
#: Seconds before a progress bar shows.
_PATIENCE = 1.0
#: Version of what --json prints.
_JSON = 1


def refuse_if(wrong: object, rule: str, /, **parts: Any) -> None:
    """Refuse what is wrong, in a sentence that has the parts of `FairrampError`."""
    if wrong:
        raise FairrampError(rule, **parts)


def refuse(reasons: Mapping[str, object], /, **parts: Any) -> None:
    """Refuse for the first reason that holds; all of them are sentences with the same parts."""
    for rule, holds in reasons.items():
        refuse_if(holds, rule, **parts)


def _lines(text: str, width: int, first: str = "", others: str = "") -> list[str]:
    """Lines of a text; words, such as file names, stay whole."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def wrapped(text: str, first: str = "") -> str:
    """A text in lines of at most 80 characters, all but the first as far in as what that begins with."""
    return "\n".join("\n".join(_lines(part, WIDTH, first, " " * len(first))) for part in text.split("\n"))


def count(n: int, what: str) -> str:
    """So many of something."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def spoken(path: str) -> str:
    """A file as sentences call it."""
    return {STDIN: "stdin", STDOUT: "stdout"}.get(path, path)


def _plain(value: Any) -> Any:
    """A value for JSON, which knows no NaN and no infinity."""
    match value:
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def for_stderr(text: str) -> str:
    """A message wrapped for those who watch, and on one line for those who search."""
    return wrapped(text) if sys.stderr.isatty() else text


def typed(arguments: Sequence[str], before: str = "  ") -> str:
    """A command as it is typed, on as many lines as the page needs."""
    # Blanks inside a word, and between an option and its value, must not become line ends.
    kept = {ord(blank): 0xE000 + ord(blank) for blank in " \t\n\r\v\f"}
    words = [shlex.quote(word).translate(kept) for word in arguments]
    pairs = pairwise(["fairramp", *words])
    text = "fairramp" + "".join(f"{chr(0xE020) if last.startswith('-') else ' '}{word}" for last, word in pairs)
    broken = " \\\n".join(_lines(text, WIDTH - 2, before, " " * 6))
    return broken.translate({new: old for old, new in kept.items()})


class Screen:
    """Where a command puts what it has to say.

    Parameters
    ----------
    json : bool
        Collect results and print one JSON object instead of text.
    quiet : bool
        Say nothing but warnings and errors (and the JSON, if asked for).
    to_stderr : bool
        Leave stdout alone, because the data go there.
    """

    def __init__(self, *, json: bool = False, quiet: bool = False, to_stderr: bool = False) -> None:
        self._json = json
        self.is_quiet = quiet
        self._file = sys.stderr if to_stderr else sys.stdout

    def heading(self, text: str) -> None:
        """A line above what follows, bold on a terminal."""
        bold = self._file.isatty() and not os.environ.get("NO_COLOR")
        self.text(f"\x1b[1m{text}\x1b[0m" if bold else text)

    def text(self, *lines: str) -> None:
        """Text as it is."""
        if not (self._json or self.is_quiet):
            self._file.write("".join(f"{line}\n" for line in lines or [""]))

    def say(self, *sentences: str) -> None:
        """Sentences, wrapped, each on a line of its own."""
        self.text(*map(wrapped, sentences))

    def table(self, table: "Table", *, every: bool = False, more: str | None = None, what: str = "line") -> None:
        """A table that fits the page, and how to see the middle of one that is cut."""
        self.text(table.text(WIDTH, every=every))
        if table.is_cut and not every and more is not None:
            self.say(f"\nThe first and last of {count(len(table), what)}; all of them {more}")

    def warn(self, text: str, *, when: object = True) -> None:
        """A warning, which also the quiet want to see, where it applies."""
        if when:
            sys.stderr.write(for_stderr(f"warning: {text}") + "\n")

    def note(self, text: str) -> None:
        """A remark beside the results, for those who want any."""
        if not self.is_quiet:
            sys.stderr.write(for_stderr(text) + "\n")

    def result(self, command: str, **content: Any) -> None:
        """The same for machines; stdin and stdout are called - as they are typed."""
        if self._json:
            stamp = {"command": command, "format": _JSON, "fairramp": __version__}
            named = {name: "-" if value in (STDIN, STDOUT) else value for name, value in content.items()}
            self._file.write(
                json.dumps(_plain(stamp | named), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
            )

    @contextmanager
    def progress(self, connection: "DuckDBPyConnection", what: str) -> Iterator[None]:
        """A bar on stderr while DuckDB works, for those who watch and wait."""
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
