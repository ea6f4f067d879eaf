"""Tables in files, read through DuckDB so that they may be larger than memory.

A table is opened as a query whose columns are called c0, c1, …, so column names such as `select` or `"; drop`
never appear in a query. CSV is read as text, and only columns that must be numbers are converted: an id 007 stays
007, and NA or null is a group like any other.

    .csv .tsv .txt .jsonl .ndjson .json (and .gz of each)   .parquet   a folder or glob of one format
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
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
from duckdb import DuckDBPyConnection

from fairramp.core.checks import meant
from fairramp.errors import FairrampError, refuse, refuse_if, shown

#: Bytes within which the header of a CSV file must end.
_HEAD = 1 << 20
#: A null marker that no cell contains, so no cell is read as missing.
_NO_NULL = "\x01\x02\x03"
#: Bytes of the longest line in a CSV output: DuckDB's limit for inputs, and room for more columns.
_LONGEST = 2_100_000
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
_DELIMITERS = (",", ";", "\t", "|")
_SPREADSHEET = "{where} is a spreadsheet; save it as CSV (in Excel: 'CSV UTF-8') and pass that file"
_ENCODING = "{where} is {wrong}; save it as UTF-8 (in a spreadsheet: 'CSV UTF-8')"


def literal(text: str) -> str:
    """Return a string as an SQL literal."""
    refuse_if("\x00" in text, "A file or column name contains a NUL character; rename it")
    return "'" + text.replace("'", "''") + "'"


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


# Reading ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """An opened table.

    Attributes
    ----------
    query : str
        SQL whose columns are c0, c1, …
    names, types : tuple of str
        Column names as in the file, and their DuckDB types.
    format : str
        "csv", "jsonl", "json" or "parquet".
    shown : str
        Name of the table in messages.
    delimiter : str
        Delimiter of CSV files.
    mark : str
        Byte-order mark of a CSV file, which tells spreadsheets that it is UTF-8, or nothing.
    """

    connection: DuckDBPyConnection = field(repr=False)
    query: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    format: str
    shown: str
    delimiter: str = ","
    mark: str = ""

    def find(self, name: str, option: str) -> str:
        """Return the internal name of the column called `name`."""
        if self.names.count(name) == 1:
            return f"c{self.names.index(name)}"
        parts = [part.strip() for part in name.split(",")]
        again = f"for several columns pass {' '.join(f'{option} {part}' for part in parts)}"
        told = {"where": self.shown, "name": name, "option": option}
        refuse(
            {
                "{where} has {n} columns called {name!r}; rename all but one": name in self.names,
                "{where} has no column {name!r} ({option}); {advice}": len(parts) > 1
                and all(part in self.names for part in parts),
            },
            n=self.names.count(name),
            advice=again if option in ("--group", "--strata") else f"{option} takes one column",
            **told,
        )
        holding = [known for known in self.names if name.strip() and name.lower().strip() in known.lower()]
        near = meant(name, self.names) or (holding[0] if len(holding) == 1 else None)
        raise FairrampError(
            "{where} has no column {name!r} ({option}).{guess} It has: {listed}{more}",
            guess=f" Did you mean {shown(near)}?" if near is not None else "",
            listed=", ".join(map(shown, self.names[:20])),
            more=f", … {len(self.names) - 20} more" if len(self.names) > 20 else "",
            **told,
        )

    def type_of(self, column: str) -> str:
        """Return the DuckDB type of a column, given its internal name."""
        return self.types[int(column[1:])]

    def ask(self, what: str, more: str = "") -> list[Any]:
        """Query the table; `more` follows the FROM clause."""
        return self.connection.execute(f"SELECT {what} FROM ({self.query}) {more}").fetchall()


def format_of(path: str) -> str | None:
    """Return the format that the ending of a name stands for, or None."""
    return _FORMATS.get(os.path.splitext(path.lower().removesuffix(".gz"))[1])


def open_files(
    connection: DuckDBPyConnection, paths: list[str], shown: str, *, delimiter: str | None = None
) -> Source:
    """Open the files of one table, which messages call `shown`."""
    kinds = {format_of(path) or _sniffed(path) for path in paths}
    refuse_if(
        len(kinds) > 1,
        "{where} mixes formats ({kinds}); pass files of one format",
        where=shown,
        kinds=", ".join(sorted(kinds)),
    )
    kind = kinds.pop()
    if kind in ("csv", "tsv"):
        return _open_csv(connection, paths, shown, delimiter or ("\t" if kind == "tsv" else None))
    return _open_typed(connection, paths, shown, kind)


@contextlib.contextmanager
def spooled(stream: BinaryIO) -> Iterator[str]:
    """Copy a stream to a temporary file, because it is read more than once."""
    start = stream.read(2)
    ending = ".gz" if start == b"\x1f\x8b" else ""  # DuckDB decompresses by file name
    with tempfile.NamedTemporaryFile(prefix="fairramp-stdin-", suffix=ending) as file:
        file.write(start)
        shutil.copyfileobj(stream, file)
        file.flush()
        yield file.name


def input_files(data: str) -> list[str]:
    """List the files that a name stands for, without hidden ones such as unfinished outputs."""
    path = Path(data)
    if path.is_dir():
        found = sorted(
            str(file)
            for file in path.rglob("*")
            if file.is_file()
            and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
            and format_of(str(file))
        )
        refuse_if(not found, "The folder {data} contains no CSV, TSV, JSON Lines or Parquet file", data=data)
        return found
    if path.exists():
        refuse_if(not os.access(path, os.R_OK), "{data} cannot be read: permission denied", data=data)
        return [data]
    refuse_if("://" in data, "{data} is not a local file; download it first", data=data)
    found = sorted(name for name in glob.glob(data, recursive=True) if os.path.isfile(name))
    if not found:
        folder = path.parent
        siblings = [p.name for p in folder.iterdir()] if folder.is_dir() and os.access(folder, os.R_OK) else []
        near = meant(path.name, siblings)
        raise FairrampError(
            "{data} does not exist.{guess}", data=data, guess=f" Did you mean {folder / near}?" if near else ""
        )
    return found


def _head(path: str) -> bytes:
    try:
        with (gzip.open if path.lower().endswith(".gz") else open)(path, "rb") as file:
            return bytes(file.read(_HEAD))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FairrampError("{path} is not a valid gzip file: {error}", path=path, error=error) from None


def _sniffed(path: str) -> str:
    refuse_if(path.lower().endswith((".xlsx", ".xls", ".xlsm", ".ods")), _SPREADSHEET, where=path)
    start = _head(path)[:1024]
    if start.startswith(b"PAR1"):
        return "parquet"
    return "jsonl" if start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") else "csv"


def _list(paths: Sequence[str]) -> str:
    """Return file names as an SQL list, with glob characters escaped."""
    return f"[{', '.join(literal(glob.escape(path)) for path in paths)}]"


def _open_csv(connection: DuckDBPyConnection, paths: list[str], shown: str, delimiter: str | None) -> Source:
    names, found, strict = _csv_header(paths[0], shown, delimiter)
    for path in paths[1:]:
        other, _, alike = _csv_header(path, path, found)
        refuse_if(
            other != names,
            "{path} and {first} have different columns; all files of one table must have the same columns",
            path=path,
            first=paths[0],
        )
        strict = strict and alike
    return Source(
        connection,
        f"SELECT * FROM {_csv_reader(paths, _numbered(names), found, f'strict_mode={str(strict).lower()}')}",
        names,
        ("VARCHAR",) * len(names),
        "csv",
        shown,
        delimiter=found,
        mark="\ufeff" if _head(paths[0]).startswith(b"\xef\xbb\xbf") else "",
    )


def _numbered(names: Sequence[str]) -> list[str]:
    """The names of columns in queries."""
    return [f"c{i}" for i in range(len(names))]


def _csv_reader(paths: Sequence[str], columns: Sequence[str], delimiter: str, more: str) -> str:
    """Return SQL that reads CSV as text."""
    types = ", ".join(f"'{name}': 'VARCHAR'" for name in columns)
    return (
        f"read_csv({_list(paths)}, delim={literal(delimiter)}, quote='\"', escape='\"', header=true, "
        f"auto_detect=false, nullstr=[{literal(_NO_NULL)}], columns={{{types}}}, {more})"
    )


def read_back(source: Source, output: str, written: str, added: Sequence[str], delimiter: str) -> str | None:
    """Return SQL that reads an output: the columns of its source and the `added` ones.

    `written` is the file in which it is until it is published. None if reading it would not give the values of
    the source, or takes longer than reading those: text made from typed columns, and JSON.
    """
    columns, kind = [*_numbered(source.names), *added], format_of(output) or "csv"
    if kind == "parquet" and source.format in ("parquet", "csv"):
        return f"(SELECT * FROM read_parquet({_list([written])}) AS t({', '.join(columns)}))"
    if kind not in ("csv", "tsv") or source.format != "csv":
        return None
    packed = "gzip" if output.lower().endswith(".gz") else "none"
    numbers = ", ".join(f"CAST(replace({name}, ',', '.') AS DOUBLE) AS {name}" for name in added)
    # Lines are longer than those of the source.
    reader = _csv_reader(
        [written],
        columns,
        "\t" if kind == "tsv" else delimiter,
        f"compression='{packed}', max_line_size={_LONGEST}",
    )
    return f"(SELECT * REPLACE ({numbers}) FROM {reader})"


def _csv_header(path: str, shown: str, delimiter: str | None) -> tuple[tuple[str, ...], str, bool]:
    """Return column names, delimiter, and whether all line ends of the header are of one kind."""
    head = _head(path)
    # The first bytes of .xlsx and .ods, and of .xls.
    packed = head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0"))
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    refuse({_SPREADSHEET: packed, _ENCODING: wide}, where=shown, wrong="UTF-16 text")
    try:
        text = io.TextIOWrapper(io.BytesIO(head), "utf-8-sig", newline="").read()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4 or len(head) < _HEAD:  # not a character cut by the limit
            raise FairrampError(_ENCODING, where=shown, wrong="not UTF-8 text") from None
        text = head[: error.start].decode("utf-8-sig")
    refuse(
        {
            "{where} is empty; its first line must contain the column names": not text.strip(),
            "{where} is not a text file; pass CSV, TSV, JSON Lines or Parquet": "\x00" in text,
        },
        where=shown,
    )
    best: tuple[list[str], str, bool] = ([], ",", True)
    for candidate in (delimiter,) if delimiter else _DELIMITERS:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=candidate)
        with contextlib.suppress(csv.Error, StopIteration):
            cells = next(row for row in reader if row)
            lines = islice(io.StringIO(text, newline=""), reader.line_num)
            ends = {line[len(line.rstrip("\r\n")) :] for line in lines}
            best = max(best, (cells, candidate, len(ends) == 1), key=lambda found: len(found[0]))
    refuse_if(not best[0], "The first line of {where} cannot be read as column names", where=shown)
    return tuple(best[0]), best[1], best[2]


def _open_typed(connection: DuckDBPyConnection, paths: list[str], shown: str, kind: str) -> Source:
    refuse_if(any(os.path.getsize(path) == 0 for path in paths), "{where} is empty", where=shown)
    # Types are detected from all rows: those of the first rows may be wrong for later ones.
    options = (
        f"{_list(paths)}, format='{'newline_delimited' if kind == 'jsonl' else 'auto'}', sample_size=-1, "
        "maximum_object_size=67108864"
    )
    reader = f"read_parquet({_list(paths)})" if kind == "parquet" else f"read_json({options})"
    try:
        described = connection.sql(f"DESCRIBE SELECT * FROM {reader}").fetchall()
    except duckdb.Error as error:
        raise FairrampError(
            "{where} cannot be read as {kind}: {why}", where=shown, kind=kind, why=first_sentence(error)
        ) from None
    names, types, *_ = zip(*described, strict=True)
    if kind != "parquet":
        # Text that looks like a date stays text.
        types = tuple("VARCHAR" if t.startswith(("DATE", "TIME", "UUID")) else t for t in types)
        columns = ", ".join(f"{literal(n)}: {literal(t)}" for n, t in zip(names, types, strict=True))
        reader = f"read_json({options}, columns={{{columns}}})"
    query = f"SELECT * FROM {reader} AS t({', '.join(_numbered(names))})"
    return Source(connection, query, names, types, kind, shown)


def first_sentence(error: Exception) -> str:
    """Return DuckDB's message without its advice on options that do not exist here."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0].split("Error: ", 1)[-1] if lines else "unknown"
    if text.startswith("CSV Error on Line"):
        why = next((line for line in lines[1:] if not line.startswith("Original Line")), "")[:100]
        # Search the whole message: the line before may quote the file and be of any length.
        if cells := re.search(r"^\s*Expected Number of Columns: (\d+) Found: (\d+)", str(error), re.MULTILINE):
            why = f"it has {cells[2]} cell{'' if cells[2] == '1' else 's'}, but the header has {cells[1]}"
        return f"line {text.split(':')[-1].strip()}: {why or 'cannot be read'}."
    if "state machine" in text:
        return "its line ends or quotes are inconsistent; save it again from one program."
    return text if text.endswith(".") else f"{text}."
