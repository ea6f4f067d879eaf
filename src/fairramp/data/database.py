"""DuckDB: a database in memory, SQL literals, and its messages."""

import contextlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
from duckdb import DuckDBPyConnection

from fairramp.errors import FairrampError, refuse_if

#: Start of the folder with a copy of stdin.
STDIN_FOLDER = "fairramp-stdin-"


@contextlib.contextmanager
def connect() -> Iterator[DuckDBPyConnection]:
    """Open an in-memory database that spills to the temporary folder at its memory limit."""
    spill = Path(tempfile.gettempdir()) / f"fairramp-{secrets.token_hex(8)}"
    limit = os.environ.get("FAIRRAMP_MEMORY", "1GB")
    try:
        connection = duckdb.connect(
            ":memory:",
            config={
                "memory_limit": limit,
                "threads": str(min(os.cpu_count() or 1, 8)),  # each thread needs its own memory
                "temp_directory": str(spill),
                "autoinstall_known_extensions": "false",  # never download anything
                "autoload_known_extensions": "false",
            },
        )
    except duckdb.Error:
        raise FairrampError("FAIRRAMP_MEMORY must be a size like 1GB or 500MB", got=limit) from None
    try:
        # `Screen.progress` shows the progress; DuckDB's own bar would end up in the output.
        connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        yield connection
    finally:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)


def literal(text: str) -> str:
    """Return a string as an SQL literal."""
    refuse_if("\x00" in text, "A file or column name contains a NUL character; rename it")
    return "'" + text.replace("'", "''") + "'"


def file_of(error: Exception) -> str | None:
    """The CSV file that DuckDB's message is about; None for other messages."""
    found = re.findall(r"^\s*file = (.+)$", str(error), re.MULTILINE)
    return None if not found else "stdin" if STDIN_FOLDER in found[-1] else str(found[-1])


def first_sentence(error: Exception) -> str:
    """Return DuckDB's message without its advice on options that do not exist here."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0].split("Error: ", 1)[-1] if lines else "unknown"
    if text.startswith("CSV Error on Line"):
        why = next((line for line in lines[1:] if not line.startswith("Original Line")), "")[:100]
        # Search the whole message: the line before may quote the file and be of any length.
        if cells := re.search(r"^\s*Expected Number of Columns: (\d+) Found: (\d+)", str(error), re.MULTILINE):
            why = f"it has {cells[2]} cell{'' if cells[2] == '1' else 's'}, but the header has {cells[1]}; " + (
                "put each cell that contains the delimiter in quotes"
                if int(cells[2]) > int(cells[1])
                else "add the cells that are missing"
            )
        elif "unterminated quote" in str(error):
            why = "a quote is not closed; close it, or remove it"
        elif "Maximum line size" in str(error):
            why = "it is longer than 2 MB, probably because a quote is not closed; close it, or remove it"
        return f"line {text.split(':')[-1].strip()}: {why or 'cannot be read'}."
    if "state machine" in text:
        return "its line ends or quotes are inconsistent; save it again from one program."
    return text if text.endswith(".") else f"{text}."
