"""Files in, files out, through DuckDB: larger than memory, and never half-written.

A table is opened as a query whose columns are called c0, c1, …: names that people chose, such as `select` or
`"; drop`, stand in no query. CSV is read as text and only the columns that must be numbers are converted, so that
an id 007 stays 007 and a group called NA or null is a group like any other.

    .csv .tsv .txt .jsonl .ndjson .json (also .gz)   .parquet   a folder or glob of one kind   - (stdin)

An output is written to a hidden file in the same folder, flushed to the disk and renamed: whoever looks sees
the old file or the new one, whatever happens in between.
"""

import contextlib
import csv
import glob
import gzip
import io
import os
import re
import secrets
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairramp.data import files
from fairramp.errors import FairrampError, shown

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "STDIN",
    "STDOUT",
    "Source",
    "TableError",
    "check_target",
    "connect",
    "first_sentence",
    "format_of",
    "input_files",
    "is_stream",
    "literal",
    "open_table",
    "replacing",
    "writable_format",
    "write",
]

#: What a lone - stands for, as DATA and as an output.
STDIN, STDOUT = "/dev/stdin", "/dev/stdout"
#: Bytes in which the header of a CSV file must end.
_HEAD = 1 << 20
#: Never the text of a cell, so that no cell is read as missing.
_NO_NULL = "\x01fairramp:null\x01"
_FORMATS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}
#: Endings that outputs may have.
_WRITABLE = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
_DELIMITERS = (",", ";", "\t", "|")


class TableError(FairrampError):
    """A file that cannot be read or written as asked."""


def literal(text: str) -> str:
    """A text as it stands in SQL."""
    if "\x00" in text:
        raise TableError("A file or column name holds a NUL character; rename it.")
    return "'" + text.replace("'", "''") + "'"


def _identifier(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@contextlib.contextmanager
def connect() -> Iterator["DuckDBPyConnection"]:
    """A database in memory that spills to the temporary folder instead of growing."""
    import duckdb

    spill = Path(tempfile.gettempdir()) / f"fairramp-{secrets.token_hex(8)}"
    limit = os.environ.get("FAIRRAMP_MEMORY", "1GB")
    config: dict[str, Any] = {
        "memory_limit": limit,
        "threads": str(min(os.cpu_count() or 1, 8)),  # each needs memory of its own
        "temp_directory": str(spill),
        "autoinstall_known_extensions": "false",  # nothing is fetched behind the user's back
        "autoload_known_extensions": "false",
    }
    try:
        connection = duckdb.connect(":memory:", config=config)
    except duckdb.Error:
        raise TableError(f"FAIRRAMP_MEMORY must be a size like 1GB or 500MB, got {shown(limit)}.") from None
    try:
        # Progress is measured for `Screen.progress`; DuckDB's own bar would end up in the output.
        connection.execute("SET enable_progress_bar = true")
        connection.execute("SET enable_progress_bar_print = false")
        yield connection
    finally:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)


# Reading ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """An opened table.

    Attributes
    ----------
    query : str
        SQL whose columns are c0, c1, …
    names, types : tuple of str
        What the file calls its columns, and their DuckDB types.
    format : str
        "csv", "jsonl", "json" or "parquet".
    shown : str
        How messages call it.
    delimiter : str
        Of CSV files.
    mark : str
        The byte-order mark of a CSV file, by which spreadsheets know UTF-8, or nothing.
    """

    connection: "DuckDBPyConnection" = field(repr=False)
    query: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    format: str
    shown: str
    delimiter: str = ","
    mark: str = ""

    def find(self, name: str, option: str) -> str:
        """The internal name of the column that the user calls `name`."""
        at = [i for i, known in enumerate(self.names) if known == name]
        if len(at) == 1:
            return f"c{at[0]}"
        if at:
            raise TableError(f"{self.shown} has {len(at)} columns called {name!r}; rename all but one.")
        lowered = {known.lower(): known for known in reversed(self.names)}
        near = lowered.get(name.lower().strip())
        if near is None:
            near = next(iter(get_close_matches(name.lower(), list(lowered), 1, 0.6)), None)
            near = lowered[near] if near is not None else None
        if near is None and name.strip():
            holding = [known for known in self.names if name.lower().strip() in known.lower()]
            near = holding[0] if len(holding) == 1 else None
        parts = [part.strip() for part in name.split(",")]
        if len(parts) > 1 and all(part in self.names for part in parts):
            again = " ".join(f"{option} {part}" for part in parts)
            repeated = option in ("--group", "--strata")
            advice = f"for several columns pass {again}" if repeated else f"{option} is one column"
            raise TableError(f"{self.shown} has no column {name!r} ({option}); {advice}.")
        listed = ", ".join(shown(known) for known in self.names[:20])
        more = f", … {len(self.names) - 20} more" if len(self.names) > 20 else ""
        guess = f" Did you mean {shown(near)}?" if near is not None else ""
        raise TableError(f"{self.shown} has no column {name!r} ({option}).{guess} It has: {listed}{more}.")

    def type_of(self, column: str) -> str:
        """DuckDB's type of a column, by its internal name."""
        return self.types[int(column[1:])]


def format_of(path: str) -> str | None:
    """The format that a name says; None if it says none."""
    name = os.path.basename(path).lower().removesuffix(".gz")
    return _FORMATS.get(os.path.splitext(name)[1])


@contextlib.contextmanager
def open_table(connection: "DuckDBPyConnection", data: str, *, delimiter: str | None = None) -> Iterator[Source]:
    """Open DATA: a file, a folder, a glob or stdin."""
    with contextlib.ExitStack() as stack:
        if data == STDIN:
            shown, paths = "stdin", [stack.enter_context(_spooled())]
        else:
            shown, paths = data, input_files(data)
        kinds = {format_of(path) or _sniffed(path) for path in paths}
        if len(kinds) > 1:
            raise TableError(f"{shown} mixes formats ({', '.join(sorted(kinds))}); pass files of one kind.")
        kind = kinds.pop()
        if kind in ("csv", "tsv"):
            yield _open_csv(connection, paths, shown, delimiter or ("\t" if kind == "tsv" else None))
        else:
            yield _open_typed(connection, paths, shown, kind)


@contextlib.contextmanager
def _spooled() -> Iterator[str]:
    """Stdin as a file, because it is read more than once."""
    with tempfile.NamedTemporaryFile(prefix="fairramp-stdin-") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        with open(file.name, "rb") as start:
            packed = start.read(2) == b"\x1f\x8b"
        if not packed:
            yield file.name
            return
        link = f"{file.name}.gz"  # DuckDB unpacks by name
        os.link(file.name, link)
        try:
            yield link
        finally:
            os.unlink(link)


def input_files(data: str) -> list[str]:
    """Files behind a name; hidden ones, such as unfinished outputs, are none."""
    path = Path(data)
    if path.is_dir():
        found = sorted(
            str(file)
            for file in path.rglob("*")
            if file.is_file()
            and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
            and format_of(str(file))
        )
        if not found:
            raise TableError(f"The folder {data} holds no CSV, TSV, JSON lines or Parquet file.")
        return found
    if path.exists():
        if not os.access(path, os.R_OK):
            raise TableError(f"{data} cannot be read: permission denied.")
        return [data]
    if "://" in data:
        raise TableError(f"{data} is not a local file; download it first.")
    found = sorted(name for name in glob.glob(data, recursive=True) if os.path.isfile(name))
    if not found:
        folder = path.parent
        siblings = [p.name for p in folder.iterdir()] if folder.is_dir() and os.access(folder, os.R_OK) else []
        near = next(iter(get_close_matches(path.name, siblings, 1, 0.6)), None)
        guess = f" Did you mean {folder / near}?" if near else ""
        raise TableError(f"{data} does not exist.{guess}")
    return found


def _head(path: str) -> bytes:
    opened = gzip.open if path.lower().endswith(".gz") else open
    try:
        with opened(path, "rb") as file:
            return bytes(file.read(_HEAD))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableError(f"{path} is not a sound gzip file: {error}.") from None


def _spreadsheet(shown: str) -> TableError:
    return TableError(f"{shown} is a spreadsheet; save it as CSV (in Excel: 'CSV UTF-8') and pass that.")


def _sniffed(path: str) -> str:
    if path.lower().endswith((".xlsx", ".xls", ".xlsm", ".ods")):
        raise _spreadsheet(path)
    start = _head(path)[:1024]
    if start.startswith(b"PAR1"):
        return "parquet"
    return "jsonl" if start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") else "csv"


def _list(paths: Sequence[str]) -> str:
    """File names in SQL, with characters of globs taken by their letter."""
    plain = ("".join(f"[{c}]" if c in "*?[" else c for c in path) for path in paths)
    return "[" + ", ".join(literal(path) for path in plain) + "]"


def _open_csv(connection: "DuckDBPyConnection", paths: list[str], shown: str, delimiter: str | None) -> Source:
    names, found, strict = _csv_header(paths[0], shown, delimiter)
    mark = "\ufeff" if _head(paths[0]).startswith(b"\xef\xbb\xbf") else ""
    for path in paths[1:]:
        other, _, alike = _csv_header(path, path, found)
        if other != names:
            raise TableError(f"{path} has other columns than {paths[0]}; files of one table must have the same.")
        strict = strict and alike
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
    query = (
        f"SELECT * FROM read_csv({_list(paths)}, delim={literal(found)}, quote='\"', escape='\"', header=true, "
        f"auto_detect=false, strict_mode={'true' if strict else 'false'}, nullstr=[{literal(_NO_NULL)}], "
        f"columns={{{columns}}})"
    )
    return Source(connection, query, names, ("VARCHAR",) * len(names), "csv", shown, found, mark)


def _csv_header(path: str, shown: str, delimiter: str | None) -> tuple[tuple[str, ...], str, bool]:
    """Names, delimiter, and whether all line ends of the header are of one kind."""
    head = _head(path)
    if head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):  # what .xlsx and .ods, and .xls, begin with
        raise _spreadsheet(shown)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{shown} is UTF-16 text; save it as UTF-8 (in a spreadsheet: 'CSV UTF-8').")
    try:
        text = io.TextIOWrapper(io.BytesIO(head), "utf-8-sig", newline="").read()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4 or len(head) < _HEAD:  # not a character that the limit has cut
            raise TableError(
                f"{shown} is not UTF-8 text; save it as UTF-8 (in a spreadsheet: 'CSV UTF-8')."
            ) from None
        text = head[: error.start].decode("utf-8-sig")
    if not text.strip():
        raise TableError(f"{shown} is empty; it needs a first line with the names of the columns.")
    if "\x00" in text:
        raise TableError(f"{shown} is not a text file; pass CSV, TSV, JSON lines or Parquet.")
    best: tuple[list[str], str, bool] = ([], ",", True)
    for candidate in (delimiter,) if delimiter else _DELIMITERS:
        lines = io.StringIO(text, newline="")
        reader = csv.reader(lines, delimiter=candidate)
        try:
            cells = next(row for row in reader if row)
        except (csv.Error, StopIteration):
            continue
        parts = list(islice(io.StringIO(text, newline=""), reader.line_num))
        ends = {line[len(line.rstrip("\r\n")) :] for line in parts}
        if len(cells) > len(best[0]):
            best = (cells, candidate, len(ends) == 1)
    if not best[0]:
        raise TableError(f"The first line of {shown} cannot be read as names of columns.")
    return tuple(best[0]), best[1], best[2]


def _open_typed(connection: "DuckDBPyConnection", paths: list[str], shown: str, kind: str) -> Source:
    import duckdb

    if any(os.path.getsize(path) == 0 for path in paths):
        raise TableError(f"{shown} is empty.")
    if kind == "parquet":
        reader = f"read_parquet({_list(paths)})"
    else:
        shape = "newline_delimited" if kind == "jsonl" else "auto"
        # All rows are looked at: a type guessed from the first ones may be wrong for the last.
        options = f"{_list(paths)}, format='{shape}', sample_size=-1, maximum_object_size=67108864"
        reader = f"read_json({options})"
    try:
        described = connection.sql(f"DESCRIBE SELECT * FROM {reader}").fetchall()
    except duckdb.Error as error:
        raise TableError(f"{shown} cannot be read as {kind}: {first_sentence(error)}") from None
    names, types = tuple(row[0] for row in described), tuple(row[1] for row in described)
    if kind != "parquet":
        # Text that looks like a date stays the text it is.
        guessed = ("DATE", "TIME", "TIMESTAMP", "UUID")
        types = tuple("VARCHAR" if t.startswith(guessed) else t for t in types)
        columns = ", ".join(f"{literal(n)}: {literal(t)}" for n, t in zip(names, types, strict=True))
        reader = f"read_json({options}, columns={{{columns}}})"
    inner = ", ".join(f"c{i}" for i in range(len(names)))
    return Source(connection, f"SELECT * FROM {reader} AS t({inner})", names, types, kind, shown)


def first_sentence(error: Exception) -> str:
    """What DuckDB says, without its advice on options that are not ours."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0].split("Error: ", 1)[-1] if lines else "unknown"
    if text.startswith("CSV Error on Line"):
        number = text.split(":")[-1].strip()
        why = next((line for line in lines[1:] if not line.startswith("Original Line")), "")[:100]
        # Searched for in all lines: the one before may be the line of the file itself, however long.
        cells = re.search(r"^\s*Expected Number of Columns: (\d+) Found: (\d+)", str(error), re.MULTILINE)
        if cells:
            why = f"it has {cells[2]} cell{'' if cells[2] == '1' else 's'}, and the header has {cells[1]}"
        return f"line {number}: {why or 'cannot be read'}."
    if "state machine" in text:
        return "its line ends or quotes are mixed up; save it again from one program."
    return text if text.endswith(".") else f"{text}."


# Writing ----------------------------------------------------------------------------------------


def check_target(path: str) -> None:
    """Refuse a bad place; before the work, not after it."""
    target = Path(path).resolve()
    if target.is_dir():
        raise TableError(f"Cannot write {path}: it is a folder.")
    if not target.parent.is_dir():
        raise TableError(f"Cannot write {path}: the folder {target.parent} does not exist.")
    if not os.access(target.parent, os.W_OK):
        raise TableError(f"Cannot write {path}: the folder {target.parent} is write-protected.")
    if target.exists() and not os.access(target, os.W_OK):
        raise TableError(f"Cannot write {path}: it is write-protected.")


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """A hidden file beside `path` that takes its place when all went well, and vanishes otherwise."""
    check_target(path)
    try:
        with files.replacing(Path(path).resolve()) as temporary:
            yield str(temporary)
    except OSError as error:
        raise TableError(f"Cannot write {path}: {error.strerror or error}.") from None


def write(
    connection: "DuckDBPyConnection",
    query: str,
    names: Sequence[str],
    path: str,
    *,
    delimiter: str = ",",
    mark: str = "",
    empty: bool = False,
) -> None:
    """Write a query's rows, in their order, in the format that the name of the output says.

    Parameters
    ----------
    query : str
        Its columns are called in the file as `names` says.
    delimiter, mark : str
        Of CSV; a byte-order mark stands before the header.
    empty : bool
        Whether it has no rows; CSV is then only a header.
    """
    import duckdb

    special = is_stream(path)
    kind = format_of(path) or "csv" if special else writable_format(path)
    with contextlib.ExitStack() as stack:
        if special:
            file = stack.enter_context(tempfile.NamedTemporaryFile(prefix="fairramp-out-"))
            temporary = file.name
        else:
            temporary = stack.enter_context(replacing(path))
        if kind in ("csv", "tsv"):
            between = "\t" if kind == "tsv" else delimiter
            header = mark + _header(names, between)
            options = (
                f"FORMAT csv, HEADER false, DELIMITER {literal(between)}, PREFIX {literal(header)}, SUFFIX '\n'"
            )
            select = query
        else:
            if len({name.lower() for name in names}) < len(names):
                raise TableError(
                    f"Cannot write {path}: two columns have the same name or differ only in case; write CSV."
                )
            options = {"parquet": "FORMAT parquet", "jsonl": "FORMAT json", "json": "FORMAT json, ARRAY true"}[
                kind
            ]
            aliases = ", ".join(_identifier(name) for name in names)
            select = f"SELECT * FROM ({query}) AS t({aliases})"
        if path.lower().endswith(".gz"):
            options += ", COMPRESSION gzip"
        if empty and kind in ("csv", "tsv"):
            opened = gzip.open if path.lower().endswith(".gz") else open
            with opened(temporary, "wt", encoding="utf-8", newline="") as text:
                text.write(header)
        else:
            try:
                connection.execute(f"COPY ({select}) TO {literal(temporary)} ({options}, USE_TMP_FILE false)")
            except duckdb.IOException as error:
                raise TableError(f"Cannot write {path}: {_reason(error)}") from None
        if special:
            with open(temporary, "rb") as start:
                if path == STDOUT:
                    shutil.copyfileobj(start, sys.stdout.buffer)
                    sys.stdout.buffer.flush()
                else:
                    with open(path, "wb") as end:
                        shutil.copyfileobj(start, end)


def _header(names: Sequence[str], delimiter: str) -> str:
    text = io.StringIO()
    # Only characters of its own line end does Python's writer quote; both may stand in a name.
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerow(names)
    return text.getvalue().removesuffix("\r\n") + "\n"


def _reason(error: Exception) -> str:
    text = str(error)
    for sign in ("No space left on device", "Permission denied", "Disk quota exceeded", "File too large"):
        if sign.lower() in text.lower():
            return f"{sign.lower()}; nothing was changed."
    return first_sentence(error)


def is_stream(path: str) -> bool:
    """Whether an output is stdout, a device or a pipe, which cannot be replaced."""
    return path == STDOUT or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))


def writable_format(path: str) -> str:
    """The format to write, or a clear refusal."""
    kind = format_of(path)
    if kind is None or not path.lower().removesuffix(".gz").endswith(_WRITABLE):
        raise TableError(f"Cannot tell the format of {path}: end its name in .csv, .tsv, .jsonl or .parquet.")
    if path.lower().endswith(".gz") and kind == "parquet":
        raise TableError(f"Cannot write {path}: Parquet is packed already; drop the .gz.")
    return kind
