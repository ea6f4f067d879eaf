"""CSV files: their column names and delimiter, the query that reads their text, and the lines of their rows."""

import contextlib
import csv
import glob
import gzip
import io
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from fairramp.data.database import literal
from fairramp.data.inputs import HEAD, head_of
from fairramp.errors import FairrampError, refuse, refuse_if

#: A null marker that no cell contains, so no cell is read as missing.
_NO_NULL = "\x01\x02\x03"
_DELIMITERS = (",", ";", "\t", "|")
_MISNAMED = "{where} is not CSV but a spreadsheet or an archive; rename an Excel file to .xlsx, or save it as CSV"
#: Rows of CSV up to which the line of a row is looked up.
_MOST_LINES = 2_000_000
_ENCODING = "{where} is {wrong}; save it as UTF-8 (in a spreadsheet: 'CSV UTF-8')"


def csv_header(path: str, shown: str, delimiter: str | None) -> tuple[tuple[str, ...], str, bool, int]:
    """Return column names, delimiter, whether line ends of the header are alike, and blank lines before it."""
    head = head_of(path)
    # The first bytes of .xlsx, .ods and archives, and of .xls.
    packed = head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0"))
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    refuse({_MISNAMED: packed, _ENCODING: wide}, where=shown, wrong="UTF-16 text")
    try:
        text = io.TextIOWrapper(io.BytesIO(head), "utf-8-sig", newline="").read()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4 or len(head) < HEAD:  # not a character cut by the limit
            raise FairrampError(_ENCODING, where=shown, wrong="not UTF-8 text") from None
        text = head[: error.start].decode("utf-8-sig")
    refuse(
        {
            "{where} is empty; its first line must contain the column names": not text.strip(),
            "{where} is not a text file; pass CSV, TSV, JSON Lines, Parquet or .xlsx": "\x00" in text,
        },
        where=shown,
    )
    best: tuple[list[str], str, bool, int] = ([], ",", True, 0)
    for candidate in (delimiter,) if delimiter else _DELIMITERS:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=candidate)
        with contextlib.suppress(csv.Error, StopIteration):
            blank, cells = next((i, row) for i, row in enumerate(reader) if row)
            lines = islice(io.StringIO(text, newline=""), reader.line_num)
            ends = {line[len(line.rstrip("\r\n")) :] for line in lines}
            best = max(best, (cells, candidate, len(ends) == 1, blank), key=lambda found: len(found[0]))
    refuse_if(not best[0], "The first line of {where} cannot be read as column names", where=shown)
    return tuple(best[0]), *best[1:]


def csv_reader(paths: Sequence[str], columns: Sequence[str], delimiter: str, more: str) -> str:
    """Return SQL that reads CSV as text."""
    types = ", ".join(f"'{name}': 'VARCHAR'" for name in columns)
    return (
        f"read_csv({file_list(paths)}, delim={literal(delimiter)}, quote='\"', escape='\"', header=true, "
        f"auto_detect=false, nullstr=[{literal(_NO_NULL)}], columns={{{types}}}, {more})"
    )


def csv_lines(
    paths: Sequence[str], delimiter: str, cells: Mapping[int, tuple[int, Any]]
) -> dict[int, tuple[str, str, int]]:
    """The file and the line in which rows of CSV start; those that cannot be told are missing."""
    found: dict[int, tuple[str, str, int]] = {}
    row, last = 0, min(max(cells, default=0), _MOST_LINES)
    with contextlib.suppress(csv.Error, UnicodeDecodeError):
        for path in paths:
            opened: Any = gzip.open if path.lower().endswith(".gz") else open
            with opened(path, "rt", encoding="utf-8-sig", newline="") as text:
                reader, end, is_header = csv.reader(text, delimiter=delimiter), 0, True
                for line in reader:
                    start, end = end + 1, reader.line_num
                    if not line or is_header:  # blank lines are no rows
                        is_header = is_header and not line
                        continue
                    row += 1
                    index, value = cells.get(row, (0, None))
                    if line[index : index + 1] == [value]:
                        found[row] = path, "line", start
                    if row >= last:
                        return found
    return found


def file_list(paths: Sequence[str]) -> str:
    """Return file names as an SQL list, with glob characters escaped."""
    return f"[{', '.join(literal(glob.escape(path)) for path in paths)}]"


def numbered(names: Sequence[str]) -> list[str]:
    """The names of columns in queries."""
    return [f"c{i}" for i in range(len(names))]
