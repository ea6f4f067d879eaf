"""Which files a name stands for, and their formats.

.csv .tsv .txt .jsonl .ndjson .json (and .gz of each)   .parquet   .xlsx   a folder or glob of one format
"""

import contextlib
import glob
import gzip
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from fairramp.core.checks import meant
from fairramp.data.database import STDIN_FOLDER
from fairramp.errors import FairrampError, refuse_if

#: Bytes within which the header of a CSV file must end.
HEAD = 1 << 20
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
    ".xlsx": "excel",
    ".xlsm": "excel",
}
#: Spreadsheets that are not read.
_OTHER_SHEETS = (".xls", ".xlsb", ".ods")
_SPREADSHEET = "{where} is a spreadsheet of a kind that is not read; save it as .xlsx, or as CSV"


def format_of(path: str) -> str | None:
    """Return the format that the ending of a name stands for, or None."""
    return _FORMATS.get(os.path.splitext(path.lower().removesuffix(".gz"))[1])


def kind_of(path: str) -> str:
    """Return the format of a file, by its name or else its content."""
    return format_of(path) or _sniffed(path)


def _sniffed(path: str) -> str:
    refuse_if(path.lower().endswith(_OTHER_SHEETS), _SPREADSHEET, where=path)
    start = head_of(path)[:1024]
    for mark, kind in ((b"PAR1", "parquet"), (b"PK\x03\x04", "excel")):
        if start.startswith(mark):
            return kind
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"[") and text[1:].lstrip().startswith((b"{", b"]")):
        return "json"
    return "jsonl" if text.startswith(b"{") else "csv"


def head_of(path: str) -> bytes:
    """The first bytes of a file, unpacked."""
    try:
        with (gzip.open if path.lower().endswith(".gz") else open)(path, "rb") as file:
            return bytes(file.read(HEAD))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FairrampError("{path} is not a valid gzip file: {error}", path=path, error=error) from None


def input_files(data: str) -> list[str]:
    """List the files that a name stands for, without hidden ones such as unfinished outputs."""
    refuse_if(not data.strip(), "DATA is empty", remedy="pass a file, a folder, a glob in quotes, or - for stdin")
    path = Path(data)
    if path.is_dir():
        found = sorted(
            str(file)
            for file in path.rglob("*")
            if file.is_file()
            and not any(part.startswith((".", "_", "~$")) for part in file.relative_to(path).parts)
            and format_of(str(file))
        )
        refuse_if(
            not found, "The folder {data} contains no CSV, TSV, JSON Lines, Parquet or Excel file", data=data
        )
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


@contextlib.contextmanager
def spooled(stream: BinaryIO) -> Iterator[str]:
    """Copy a stream to a temporary file, because it is read more than once."""
    start = stream.read(2)
    ending = ".gz" if start == b"\x1f\x8b" else ""  # DuckDB decompresses by file name
    # A folder, because Windows does not let DuckDB open a temporary file that Python has open.
    with tempfile.TemporaryDirectory(prefix=STDIN_FOLDER) as folder:
        path = os.path.join(folder, f"stdin{ending}")
        with open(path, "xb") as file:
            file.write(start)
            shutil.copyfileobj(stream, file)
        yield path
