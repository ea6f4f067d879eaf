"""Tables in files, read through DuckDB so that they may be larger than memory.

A table is opened as a query whose columns are called c0, c1, …, so column names such as `select` or `"; drop`
never appear in a query. CSV is read as text, and only columns that must be numbers are converted: an id 007 stays
007, and NA or null is a group like any other.
"""

import csv
import os
import secrets
import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection

from fairramp.core.checks import meant
from fairramp.data.csv_files import csv_header, csv_lines, csv_reader, file_list, numbered
from fairramp.data.database import first_sentence, literal
from fairramp.data.inputs import HEAD, format_of, head_of, kind_of
from fairramp.data.sheets import read_sheet
from fairramp.errors import FairrampError, refuse, refuse_if, shown

#: Bytes of the longest line in a CSV output: DuckDB's limit for inputs, and room for more columns.
_LONGEST = 2_100_000
#: The largest object of JSON.
_WHOLE = "maximum_object_size=67108864"
_DIFFERENT = "{path} and {first} have different columns; all files of one table must have the same columns"


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
    files : tuple of str
        The files, in order.
    sheet : str or None
        Table with the `file` and the `line` of each row of Excel files, which are otherwise like CSV.
    others : tuple of str
        Other visible sheets, if none was asked for.
    """

    connection: DuckDBPyConnection = field(repr=False)
    query: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    format: str
    shown: str
    delimiter: str = ","
    mark: str = ""
    files: tuple[str, ...] = ()
    sheet: str | None = None
    others: tuple[str, ...] = ()

    @property
    def no_rows(self) -> str:
        """What a table without rows has, for messages."""
        return "has a header but no rows" if self.format == "csv" else "has no rows"

    @property
    def other_sheets(self) -> str:
        """How to choose one of the other sheets, for messages; nothing if there are none."""
        return f"; for another sheet, pass --sheet {' or '.join(map(repr, self.others))}" if self.others else ""

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
            "{where} has no column {name!r} ({option}).{guess} It has: {listed}{more}{sheets}",
            guess=f" Did you mean {shown(near)}?" if near is not None else "",
            listed=", ".join(map(shown, self.names[:20])),
            more=f", … {len(self.names) - 20} more" if len(self.names) > 20 else "",
            sheets=self.other_sheets,
            **told,
        )

    def type_of(self, column: str) -> str:
        """Return the DuckDB type of a column, given its internal name."""
        return self.types[int(column[1:])]

    def places(self, cells: Mapping[int, tuple[int, Any]]) -> dict[int, str]:
        """Where rows are: their lines in CSV, where the header is line 1, and in Excel; otherwise their numbers.

        `cells` has the index and the value of one cell of each row, counted from 1. A line that does not have the
        value is not told.
        """
        if self.sheet is not None:
            rows = ", ".join(str(row - 1) for row in cells)
            found = self.connection.execute(
                f"SELECT rowid + 1, file, line FROM {self.sheet} WHERE rowid IN ({rows})"
            ).fetchall()
            lines = {row: (self.files[file], "line", line) for row, file, line in found}
        elif self.format == "csv":
            lines = csv_lines(self.files, self.delimiter, cells)
        elif len(self.files) > 1:
            lines = self._rows_of_files(cells)
        else:
            lines = {}
        header = " (not counting the header)" if self.format == "csv" else ""
        return {
            row: (
                f"{lines[row][1]} {lines[row][2]:,}{f' of {lines[row][0]}' if len(self.files) > 1 else ''}"
                if row in lines
                else f"row {row:,}{header}"
            )
            for row in cells
        }

    def _rows_of_files(self, rows: Iterable[int]) -> dict[int, tuple[str, str, int]]:
        """The file of each row of Parquet or JSON, and its number there."""
        files = file_list(self.files)
        counted = (
            f"file_name, num_rows FROM parquet_file_metadata({files})"
            if self.format == "parquet"
            else f"filename, count(*) FROM read_json_objects({files}, {_WHOLE}, filename=true) GROUP BY ALL"
        )
        counts = dict(self.connection.execute(f"SELECT {counted}").fetchall())
        starts = [0, *accumulate(counts.get(file, 0) for file in self.files)]
        places = {row: bisect_left(starts, row) - 1 for row in rows}
        return {row: (self.files[i], "row", row - starts[i]) for row, i in places.items()}

    def ask(self, what: str, more: str = "") -> list[Any]:
        """Query the table; `more` follows the FROM clause."""
        return self.connection.execute(f"SELECT {what} FROM ({self.query}) {more}").fetchall()


def open_files(
    connection: DuckDBPyConnection,
    paths: list[str],
    shown: str,
    *,
    delimiter: str | None = None,
    sheet: str | None = None,
    wanted: Sequence[str] = (),
) -> Source:
    """Open the files of one table, which messages call `shown`.

    `sheet` is the sheet of Excel files. JSON without rows names no columns, and then has those that are `wanted`.
    """
    kinds = {kind_of(path) for path in paths}
    refuse_if(
        len(kinds) > 1,
        "{where} mixes formats ({kinds}); pass files of one format",
        where=shown,
        kinds=", ".join(sorted(kinds)),
    )
    kind = kinds.pop()
    refuse_if(
        sheet is not None and kind != "excel", "--sheet is for Excel files, and {where} is none", where=shown
    )
    if kind == "excel":
        return _open_excel(connection, paths, shown, sheet)
    if kind in ("csv", "tsv"):
        return _open_csv(connection, paths, shown, delimiter or ("\t" if kind == "tsv" else None))
    if kind == "parquet":
        return _open_typed(connection, paths, shown, kind)
    filled = [path for path in paths if not _has_no_rows(path, kind)]
    if not filled and wanted:
        query = f"SELECT {', '.join(f'NULL::VARCHAR AS {name}' for name in numbered(wanted))} LIMIT 0"
        types = ("VARCHAR",) * len(wanted)
        return Source(connection, query, tuple(wanted), types, kind, shown, files=tuple(paths))
    return _open_typed(connection, filled or paths, shown, kind)


def _open_csv(connection: DuckDBPyConnection, paths: list[str], shown: str, delimiter: str | None) -> Source:
    names, found, strict, blank = csv_header(paths[0], shown, delimiter)
    blanks = [blank]
    for path in paths[1:]:
        other, _, alike, blank = csv_header(path, path, found)
        blanks.append(blank)
        refuse_if(
            other != names,
            _DIFFERENT,
            path=path,
            first=paths[0],
        )
        strict = strict and alike
    more = f"strict_mode={str(strict).lower()}"
    # Blank lines before the header are skipped: DuckDB takes the first line for the header.
    parts = (
        [([path], n) for path, n in zip(paths, blanks, strict=True)] if len(set(blanks)) > 1 else [(paths, blank)]
    )
    readers = (csv_reader(some, numbered(names), found, f"{more}, skip={n}") for some, n in parts)
    return Source(
        connection,
        " UNION ALL ".join(f"SELECT * FROM {reader}" for reader in readers),
        names,
        ("VARCHAR",) * len(names),
        "csv",
        shown,
        delimiter=found,
        mark="\ufeff" if head_of(paths[0]).startswith(b"\xef\xbb\xbf") else "",
        files=tuple(paths),
    )


def _has_no_rows(path: str, kind: str) -> bool:
    """Whether a JSON file is an array without elements, or a JSON Lines file has no line."""
    content = head_of(path)
    return len(content) < HEAD and b"".join(content.split()) == {"json": b"[]"}.get(kind, b"")


def _open_typed(connection: DuckDBPyConnection, paths: list[str], shown: str, kind: str) -> Source:
    refuse_if(any(os.path.getsize(path) == 0 for path in paths), "{where} is empty", where=shown)
    for path in paths if kind != "parquet" else ():
        refuse_if(
            head_of(path).startswith(b"\xef\xbb\xbf"),
            "{path} starts with a byte-order mark, which JSON does not allow",
            remedy="save it as UTF-8 without one",
            path=path,
        )
    # Types are detected from all rows: those of the first rows may be wrong for later ones.
    options = (
        f"{file_list(paths)}, format='{'newline_delimited' if kind == 'jsonl' else 'auto'}', sample_size=-1, "
        f"{_WHOLE}"
    )
    reader = f"read_parquet({file_list(paths)})" if kind == "parquet" else f"read_json({options})"
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
    query = f"SELECT * FROM {reader} AS t({', '.join(numbered(names))})"
    return Source(connection, query, names, types, kind, shown, files=tuple(paths))


def _open_excel(connection: DuckDBPyConnection, paths: list[str], shown: str, sheet: str | None) -> Source:
    """Read a sheet of each workbook into a table of text, as if it had been saved as CSV."""
    names: tuple[str, ...] = ()
    table = f"sheet_{secrets.token_hex(8)}"
    with tempfile.TemporaryDirectory(prefix="fairramp-sheet-") as folder:
        copy = os.path.join(folder, "sheet.csv")
        with open(copy, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
            for i, path in enumerate(paths):
                read = read_sheet(path, shown if len(paths) == 1 else path, sheet)
                refuse_if(i and read.columns != names, _DIFFERENT, path=path, first=paths[0])
                if i == 0:
                    names, columns = read.columns, ["file", "line", *numbered(read.columns)]
                    others = read.others if sheet is None else ()
                    shown = f"{shown} (sheet {read.name!r})" if read.others else shown
                    writer.writerow(columns)
                writer.writerows((i, line, *cells) for line, cells in read.rows)
        reader = csv_reader([copy], columns, ",", "strict_mode=true, max_line_size=67108864")
        connection.execute(
            f"CREATE TEMP TABLE {table} AS SELECT * REPLACE (CAST(file AS INTEGER) AS file, "
            f"CAST(line AS INTEGER) AS line) FROM {reader}"
        )
    return Source(
        connection,
        f"SELECT {', '.join(numbered(names))} FROM {table}",
        names,
        ("VARCHAR",) * len(names),
        "csv",
        shown,
        mark="\ufeff",  # an output as CSV opens in the same program
        files=tuple(paths),
        sheet=table,
        others=others,
    )


def read_back(source: Source, output: str, written: str, added: Sequence[str], delimiter: str) -> str | None:
    """Return SQL that reads an output: the columns of its source and the `added` ones.

    `written` is the file in which it is until it is published. None if reading it would not give the values of
    the source, or takes longer than reading those: text made from typed columns, and JSON.
    """
    columns, kind = [*numbered(source.names), *added], format_of(output) or "csv"
    if kind == "parquet" and source.format in ("parquet", "csv"):
        return f"(SELECT * FROM read_parquet({file_list([written])}) AS t({', '.join(columns)}))"
    if kind not in ("csv", "tsv") or source.format != "csv":
        return None
    packed = "gzip" if output.lower().endswith(".gz") else "none"
    numbers = ", ".join(f"CAST(replace(nullif({name}, ''), ',', '.') AS DOUBLE) AS {name}" for name in added)
    # Lines are longer than those of the source.
    reader = csv_reader(
        [written],
        columns,
        "\t" if kind == "tsv" else delimiter,
        f"compression='{packed}', max_line_size={_LONGEST}",
    )
    return f"(SELECT * REPLACE ({numbers}) FROM {reader})"
