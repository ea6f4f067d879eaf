"""One append-only file of results: a line of JSON per run, with a checksum.

    {"key": …, "run": {…}, "result": {…}, "sum": …}

`key` is the fingerprint of the run and of all settings that its result depends on, so numbers from different
settings are never mixed. `sum` is a hash of the rest of the line. An incomplete last line, left by an
interrupted write, is removed before the next one is appended; damage anywhere else is an error that names the
line. Times are not stored: a store that was interrupted and continued equals one that was not.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairramp.errors import FairrampError
from reproduction.store import Result
from reproduction.vision.plan import Run


@dataclass(frozen=True, eq=False)
class Entry:
    """One finished run."""

    key: str
    run: Run
    result: Result


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _line(key: str, run: Run, result: Result) -> str:
    body = json.dumps({"key": key, "run": run.as_dict(), "result": result}, allow_nan=False)
    return f'{body[:-1]}, "sum": "{_sum(body)}"}}\n'


def _entry(line: str) -> Entry | None:
    """Return the entry of a line, or None if it is damaged."""
    head, mark, tail = line.rstrip("\n").rpartition(', "sum": "')
    body = head + "}"
    if not mark or tail != f'{_sum(body)}"}}':
        return None
    content = json.loads(body)
    return Entry(content["key"], Run(**content["run"]), content["result"])


class Store:
    """The results in one file.

    Parameters
    ----------
    path : Path
        Path of the file; created when needed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self) -> list[Entry]:
        """Return all finished runs, the last one for each key."""
        return list({entry.key: entry for entry, _ in self._read()}.values())

    def keys(self) -> set[str]:
        """Return the keys of all finished runs."""
        return {entry.key for entry, _ in self._read()}

    def append(self, key: str, run: Run, result: Result) -> None:
        """Append one run and sync it to disk."""
        self.repair()
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(key, run, result))
            file.flush()
            os.fsync(file.fileno())

    def repair(self) -> bool:
        """Remove an incomplete last line; return whether there was one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            return False
        with self.path.open("rb+") as file:
            size = file.seek(0, os.SEEK_END)
            if size == 0:
                return False
            file.seek(size - 1)
            if file.read(1) == b"\n":
                return False
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
        return True

    def _read(self) -> Iterator[tuple[Entry, int]]:
        if not self.path.exists():
            return
        content = self.path.read_text(encoding="utf-8")
        lines = content.splitlines(keepends=True)
        for number, line in enumerate(lines, start=1):
            if not line.endswith("\n"):
                return  # incomplete
            entry = _entry(line)
            if entry is None:
                raise FairrampError(
                    "Line {number} of `{path}` is damaged: its checksum does not match",
                    remedy="delete the line to compute the run again",
                    number=number,
                    path=self.path,
                )
            yield entry, number


def numbers(value: Any) -> Any:
    """Return a value with floats rounded to six significant digits, for short lines."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: numbers(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [numbers(part) for part in value]
    return value
