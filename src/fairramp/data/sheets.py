"""The cells of an Excel sheet, as the text that they would have in CSV."""

import contextlib
import posixpath
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import compress
from typing import Any
from xml.etree import ElementTree

from fairramp.core.checks import library, meant
from fairramp.data.inputs import head_of
from fairramp.errors import FairrampError, installing, refuse_if

#: Below this, whole numbers have no exponent.
_LONGEST = 1e21


@dataclass(frozen=True)
class Sheet:
    """A sheet of a workbook.

    Attributes
    ----------
    name : str
        Its name.
    others : tuple of str
        The names of the other visible sheets.
    columns : tuple of str
        Its column names.
    rows : list of (int, list of str)
        Its rows with their lines.
    """

    name: str
    others: tuple[str, ...]
    columns: tuple[str, ...]
    rows: list[tuple[int, list[str]]]


def read_sheet(path: str, shown: str, sheet: str | None) -> Sheet:
    """Read the sheet with a name, or else the first visible one."""
    calamine = library("python_calamine", install=installing("cli"))
    refuse_if(
        head_of(path).startswith(b"\xd0\xcf\x11\xe0"),
        "{where} is protected by a password, or is an old .xls file; save it as .xlsx without a password",
        where=shown,
    )
    try:
        with open(path, "rb") as file, calamine.CalamineWorkbook.from_filelike(file) as book:
            sheets = [s for s in book.sheets_metadata if s.typ == calamine.SheetTypeEnum.WorkSheet]
            known = [s.name for s in sheets]
            visible = [s.name for s in sheets if s.visible == calamine.SheetVisibleEnum.Visible]
            if sheet is not None and sheet not in known:
                near = meant(sheet, known)
                raise FairrampError(
                    "{where} has no sheet {sheet!r} (--sheet).{guess} It has: {listed}",
                    where=shown,
                    sheet=sheet,
                    guess=f" Did you mean {near!r}?" if near is not None else "",
                    listed=", ".join(map(repr, known)),
                )
            refuse_if(not known, "{where} has no sheet with cells", where=shown)
            name = (visible or known)[0] if sheet is None else sheet
            read = book.get_sheet_by_name(name)
            rows, merged = read.to_python(skip_empty_area=False), read.merged_cell_ranges or []
    except calamine.CalamineError as error:
        raise FairrampError(
            "{where} cannot be read as an Excel file: {why}",
            remedy="it may be damaged; save it again, or as CSV",
            where=shown,
            why=" ".join(str(error).split()),
        ) from None
    for i, j, text in _errors(path, name):
        if i < len(rows) and j < len(rows[i]):
            rows[i][j] = text
    filled = [(i, cells) for i, row in enumerate(rows, 1) if any(cells := list(map(_cell_text, row)))]
    where = shown if len(known) == 1 else f"{shown} (sheet {name!r})"
    refuse_if(not filled, "{where} is empty; its first line must contain the column names", where=where)
    # Only the first row of merged cells holds their value.
    below = [cells for cells in sorted(merged) if cells[0][0] < cells[1][0] >= filled[0][0]]
    refuse_if(
        below,
        "{where} has merged cells, such as {cells}; unmerge them and fill in the value of every row",
        where=where,
        cells=":".join(f"{_letters(column)}{row + 1}" for row, column in below[0]) if below else "",
    )
    used = [any(cells[i] for _, cells in filled) for i in range(len(filled[0][1]))]
    (_, names), *lines = [(line, list(compress(cells, used))) for line, cells in filled]
    return Sheet(name, tuple(other for other in visible if other != name), tuple(names), lines)


def _errors(path: str, sheet: str) -> Iterator[tuple[int, int, str]]:
    """The row, column and text of each error such as #N/A, which python-calamine reads as an empty cell."""
    with contextlib.suppress(KeyError, StopIteration, ElementTree.ParseError), zipfile.ZipFile(path) as book:
        part = _part(book, sheet)
        with book.open(part) as file:
            if not any(b't="e"' in line or b"t='e'" in line for line in _overlapping(file)):
                return
        with book.open(part) as file:
            i = j = -1
            for event, node in ElementTree.iterparse(file, ("start", "end")):
                kind = node.tag.rpartition("}")[2]
                if event == "start" and kind == "row":
                    i, j = int(node.get("r", i + 2)) - 1, -1
                elif event == "start" and kind == "c":
                    j = _column(node.get("r", "")) if node.get("r") else j + 1
                elif kind == "c" and node.get("t") == "e":
                    yield i, j, node.findtext("{*}v") or ""
                elif event == "end" and kind == "row":
                    node.clear()


def _overlapping(file: Any) -> Iterator[bytes]:
    """Pieces of a file, each with the end of the one before."""
    end = b""
    while piece := file.read(1 << 20):
        yield end + piece
        end = piece[-8:]


def _part(book: zipfile.ZipFile, sheet: str) -> str:
    """The name of the part of a workbook that holds a sheet."""
    start = _target(book, "_rels/.rels", lambda link: link.get("Type", "").endswith("/officeDocument"))
    names = ElementTree.fromstring(book.read(start)).iterfind("{*}sheets/{*}sheet")
    found = next(node for node in names if node.get("name") == sheet)
    id = next(value for key, value in found.items() if key.endswith("}id"))
    folder, name = posixpath.split(start)
    return _target(book, f"{folder}/_rels/{name}.rels", lambda link: link.get("Id") == id)


def _target(book: zipfile.ZipFile, links: str, is_meant: Any) -> str:
    """The part that a link names; names are relative to the folder above that of the links."""
    link = next(filter(is_meant, ElementTree.fromstring(book.read(links))))
    above = posixpath.dirname(posixpath.dirname(links))
    return posixpath.normpath(posixpath.join("/", above, link.get("Target", ""))).lstrip("/")


def _column(cell: str) -> int:
    """The index of a cell's column.

    >>> _column("A1"), _column("Z9"), _column("AB12")
    (0, 25, 27)
    """
    number = 0
    for letter in re.sub("[^A-Z]", "", cell.upper()):
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def _letters(column: int) -> str:
    """The inverse of `_column`.

    >>> _letters(0), _letters(25), _letters(27)
    ('A', 'Z', 'AB')
    """
    more, last = divmod(column, 26)
    return (_letters(more - 1) if more else "") + chr(ord("A") + last)


def _cell_text(value: Any) -> str:
    """A cell as text: numbers with all their digits, and no point if they are whole; dates as in ISO 8601.

    >>> import datetime
    >>> [_cell_text(value) for value in (7.0, 0.25, 1.234567890123457e16, True, datetime.date(2024, 1, 31))]
    ['7', '0.25', '12345678901234570', 'TRUE', '2024-01-31']
    """
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer() and abs(value) < _LONGEST:
        return f"{Decimal(repr(value)):.0f}"
    return str(value)
