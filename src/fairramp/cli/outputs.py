"""Output files: larger than memory if need be, and written whole or not at all.

An output is written to a hidden file in the same folder, flushed to disk and renamed, so other programs see
either the old file or the new one. Outputs that cannot be replaced (stdout, a device, a pipe) are written once
the content is complete.
"""

import contextlib
import csv
import gzip
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb

from fairramp.cli.faults import Found
from fairramp.cli.naming import load_any_rule
from fairramp.cli.render import STDIN, STDOUT, Screen
from fairramp.cli.streams import write_document
from fairramp.core.table import Table
from fairramp.data import files
from fairramp.data.database import connect, first_sentence, literal
from fairramp.data.inputs import format_of, input_files, kind_of
from fairramp.data.stored import Source, open_files
from fairramp.deploy.dialects import identifier
from fairramp.errors import FairrampError, refuse, refuse_if
from fairramp.rule.class_file import CLASS_FORMAT
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.either import rule_format
from fairramp.rule.file import FORMAT
from fairramp.rule.rule import Rule

#: Endings of pictures that a frontier can be written as.
PICTURES = (".svg", ".png", ".html")
#: Endings of tables.
_WRITABLE = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
#: Names of the column with the reasons in a file of rejected rows; the second if DATA has the first.
_REASONS = ("reason", "fairramp_reason")
_UNWRITABLE = "Cannot write {path}: {why}"


@contextlib.contextmanager
def alone(path: str) -> Iterator[None]:
    """Let other processes that change a file wait, where folders can be locked: not on Windows."""
    with contextlib.ExitStack() as stack:
        if sys.platform != "win32":
            import fcntl

            with contextlib.suppress(OSError):  # a file system without locks, or no such folder
                folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
                stack.callback(os.close, folder)  # which unlocks it
                fcntl.flock(folder, fcntl.LOCK_EX)
        yield


def check_output(
    output: str,
    data: str,
    others: dict[str, str | None] | None = None,
    *,
    table: bool = False,
    pictures: bool = False,
    option: str = "-o",
    remedy: str = "choose another file",
) -> None:
    """Reject an output that cannot be written or is one of the inputs, before any work is done.

    The ending of a `table` must name its format; with `pictures`, it may also be that of a picture. `option`
    names the output; `remedy` says what to do if it is one of the inputs.
    """
    if is_stream(output):
        return
    if table and not (pictures and output.lower().endswith(PICTURES)):
        _format(output, PICTURES if pictures else ())
    target, folder = Path(output).resolve(), Path(output).resolve().parent
    refuse(
        {
            "Cannot write {path}: it is a folder": target.is_dir(),
            "Cannot write {path}: the folder {folder} does not exist": not folder.is_dir(),
            "Cannot write {path}: the folder {folder} is write-protected": not os.access(folder, os.W_OK),
            "Cannot write {path}: it is write-protected": target.exists() and not os.access(target, os.W_OK),
        },
        path=output,
        folder=folder,
    )
    inputs = [
        (name, file)
        for name, path in {"DATA": data, **(others or {})}.items()
        if path not in (None, STDIN)
        for file in (input_files(str(path)) if name in ("DATA", "--validation") else [str(path)])
    ]
    for what, file in inputs:
        refuse_if(
            os.path.realpath(file) == os.path.realpath(output)
            or (os.path.exists(output) and os.path.exists(file) and os.path.samefile(output, file)),
            "{option} {output} would overwrite {what}",
            remedy=remedy,
            option=option,
            output=output,
            what=what,
        )


def check_summary(path: str | None, data: str, rule: str | None) -> None:
    """Reject a summary that cannot be written; `-` would replace a file that is read as stdin."""
    if path is not None:
        refuse_if(
            path in (STDIN, STDOUT),
            "--summary must be a file of its own, because stdout has the printed text",
            remedy="pass --summary FILE, such as summary.md",
        )
        check_output(path, data, {"the rule": rule}, option="--summary")


def check_folder(path: str) -> None:
    """Reject a folder that exists or cannot be made, before any work is done."""
    parent = Path(path).resolve().parent
    refuse(
        {
            "Cannot write {path}: it already exists; choose another name": os.path.lexists(path),
            "Cannot write {path}: the folder {folder} does not exist": not parent.is_dir(),
            "Cannot write {path}: the folder {folder} is write-protected": not os.access(parent, os.W_OK),
        },
        path=path,
        folder=parent,
    )


def keep_others(path: str, *, replace: bool) -> Rule | ClassRule | None:
    """Reject overwriting a file that is not a rule, or a rule unless told to `replace` it; return that rule.

    A rule may have been approved, and other files may be data or a key.
    """
    if is_stream(path) or not os.path.exists(path) or os.path.getsize(path) == 0:
        return None
    refuse_if(
        rule_format(path) not in (FORMAT, CLASS_FORMAT),
        "{path} exists and is not a rule, so it is not overwritten; choose another file or delete it",
        path=path,
    )
    earlier: Rule | ClassRule | None = None
    with contextlib.suppress(OSError, FairrampError):  # rules of other versions may be replaced, too
        earlier = load_any_rule(path)
    refuse_if(
        not replace,
        "{path} already holds a rule{named}, which may be in use; choose another file, or pass --replace",
        path=path,
        named=f" (fingerprint {earlier.fingerprint[:12]}…)" if earlier else "",
    )
    return earlier


def named(output: str | None, data: str, word: str) -> tuple[str, str]:
    """The output, by default a new file named like DATA, and a remark on its format."""
    if output is not None:
        return output, ""
    refuse_if(data == STDIN, "-o is missing: pass a file, or - for stdout")
    output = named_like(data, word)
    refuse_if(
        os.path.lexists(output),
        "{output} already exists; pass -o {output} to replace it, or another file",
        output=output,
    )
    is_excel = kind_of(input_files(data)[0]) == "excel"
    return output, " Excel files are read but not written; this CSV file opens in Excel." if is_excel else ""


def named_like(data: str, word: str, output: str | None = None) -> str:
    """The name of an output: that of DATA, in this folder, or of another output, with a word.

    The format is that of a table given as output, or else that of DATA; CSV for Excel files and stdin.
    """
    if output is not None and not is_stream(output):
        stem, ending = _parts(Path(output).name)
        kept = ending.removesuffix(".gz") in _WRITABLE and ending != ".json"  # a rule is JSON, too
        return str(Path(output).with_name(f"{stem}-{word}{ending if kept else ending_like(data)}"))
    path = Path(data.rstrip("/"))
    if any(sign in path.name for sign in "*?[") and not path.exists():
        path = path.parent
    stem = "data" if data == STDIN else _parts(path.name)[0] or "data"
    return f"{stem}-{word}{ending_like(data)}"


def _parts(name: str) -> tuple[str, str]:
    """A name and its ending, which may be two, as in .csv.gz."""
    start, ending = os.path.splitext(name)
    if ending.lower() == ".gz":
        start, first = os.path.splitext(start)
        ending = first + ending
    return (start, ending.lower()) if format_of(name) or ending.lower() in PICTURES else (name, "")


def ending_like(data: str) -> str:
    """The ending of an output in the format of DATA; CSV for Excel files and stdin."""
    first = "data.csv" if data == STDIN else input_files(data)[0]
    kind = kind_of(first)
    return f".{'csv' if kind == 'excel' else kind}{'.gz' if first.lower().endswith('.gz') else ''}"


def hold_rejected(
    found: Found,
    data: str,
    output: str | None,
    screen: Screen,
    inputs: dict[str, str | None] | None = None,
    *,
    kept: int,
) -> None:
    """Write the rows with faults and the reasons to a file, which appears if the command succeeds.

    Its name follows that of the output or of DATA; a second table of the same command gets another. It may
    replace the file of an earlier run, but no other file and none of the `inputs`, some of which may be outputs.
    Of its rows, `kept` are also in the output.
    """
    path = _rejected_name(data, output, screen)
    choose = "" if output is None else ", or choose another -o"
    check_output(
        path,
        data,
        inputs,
        table=True,
        option="The file of rejected rows",
        remedy="give {what} another name" + choose,
    )
    refuse_if(
        os.path.isfile(path) and not _has_reasons(found.source, path),
        "{path} would hold the rows that are left out, but it exists and is not such a file of an earlier run; "
        "rename that file{choose}",
        path=path,
        choose=choose,
    )
    source, columns = found.source, [f"c{i}" for i in range(len(found.source.names))]
    if source.format == "csv" and format_of(path) in ("csv", "tsv"):
        columns = [f"nullif({column}, '')" for column in columns]
    query = f"SELECT {', '.join(columns)}, {found.reasons} FROM ({source.query}) WHERE {found.condition}"
    names, between = [*source.names, _reason_name(source)], "," if source.delimiter == "\t" else source.delimiter
    screen.hold(screen.rejecting(found.n_bad, found.n_rows, path, found.summary(), kept=kept))
    screen.hold(written(source.connection, query, names, path, delimiter=between, mark=source.mark))


def earlier_rejected(source: Source, data: str, output: str | None, screen: Screen) -> str | None:
    """The file of rejected rows that an earlier run left under the name that this run would use."""
    path = _rejected_name(data, output, screen)
    return path if os.path.isfile(path) and _has_reasons(source, path) else None


def _rejected_name(data: str, output: str | None, screen: Screen) -> str:
    word = f"rejected-{len(screen.rejected) + 1}" if screen.rejected else "rejected"
    return named_like(data, word, output)


def _has_reasons(source: Source, path: str) -> bool:
    """Whether a file is a table with the columns of the source and that of the reasons."""
    with contextlib.suppress(FairrampError, duckdb.Error, OSError):
        return open_files(source.connection, [path], path).names == (*source.names, _reason_name(source))
    return False


def _reason_name(source: Source) -> str:
    return next(name for name in _REASONS if name == _REASONS[-1] or name not in map(str.lower, source.names))


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """Yield a hidden file that replaces `path` on success and is deleted otherwise."""
    with contextlib.ExitStack() as stack:
        with _writing(path):
            temporary = stack.enter_context(files.replacing(Path(path).resolve()))
        yield str(temporary)
        with _writing(path):
            stack.close()


@contextlib.contextmanager
def _writing(path: str) -> Iterator[None]:
    """Name the output that cannot be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FairrampError(_UNWRITABLE, path=path, why=error.strerror or error) from None


@contextlib.contextmanager
def written(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    names: Sequence[str],
    path: str,
    *,
    delimiter: str = ",",
    mark: str = "",
    empty: bool = False,
) -> Iterator[str]:
    """Write the rows of a query, in order, in the format that the ending of `path` names.

    Yields the complete file, which becomes the output at the end of the context.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Where the query runs.
    query : str
        SQL.
    names : sequence of str
        Column names in the file.
    path : str
        The output.
    delimiter, mark : str
        Delimiter of CSV, and a byte-order mark before its header (or nothing).
    empty : bool
        Whether the query has no rows; CSV is then only a header.
    """
    special, packed = is_stream(path), path.lower().endswith(".gz")
    kind = format_of(path) or "csv" if special else _format(path)
    between = "\t" if kind == "tsv" else delimiter
    header = mark + _header(names, between)
    options = {
        "parquet": "FORMAT parquet",
        "jsonl": "FORMAT json",
        "json": "FORMAT json, ARRAY true",
    }.get(kind, f"FORMAT csv, HEADER false, DELIMITER {literal(between)}, PREFIX {literal(header)}, SUFFIX '\n'")
    if kind not in ("csv", "tsv"):
        refuse_if(
            len({name.lower() for name in names}) < len(names),
            _UNWRITABLE,
            path=path,
            why="two columns have the same name or differ only in case; write CSV",
        )
        query = f"SELECT * FROM ({query}) AS t({', '.join(map(identifier, names))})"
    with contextlib.ExitStack() as stack:
        if special:
            # A folder, because Windows does not let DuckDB open a temporary file that Python has open.
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fairramp-out-"))
            temporary = os.path.join(folder, "rows")
        else:
            temporary = stack.enter_context(replacing(path))
        if empty and kind in ("csv", "tsv"):
            opened = gzip.open if packed else open
            with _writing(path), opened(temporary, "wt", encoding="utf-8", newline="") as text:
                text.write(header)
        else:
            options += ", COMPRESSION gzip" if packed else ""
            try:
                connection.execute(f"COPY ({query}) TO {literal(temporary)} ({options}, USE_TMP_FILE false)")
            except duckdb.IOException as error:
                raise FairrampError(_UNWRITABLE, path=path, why=_reason(error)) from None
        yield temporary
        if special:
            stdout = contextlib.nullcontext(sys.stdout.buffer)  # stays open
            with (
                _writing(path),
                open(temporary, "rb") as start,
                stdout if path == STDOUT else open(path, "wb") as end,
            ):
                shutil.copyfileobj(start, end)
                end.flush()


def write_text(path: str | None, text: str, what: str) -> None:
    """Write text to a file, whole or not at all, or to stdout, a device or a pipe."""
    if path is None or path == STDOUT:
        write_document(sys.stdout, text)
    else:
        files.write_text(Path(path), text, what)


def _header(names: Sequence[str], delimiter: str) -> str:
    text = io.StringIO()
    # Python's writer quotes only the characters of its own line terminator, and names may contain both.
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerow(names)
    return text.getvalue().removesuffix("\r\n") + "\n"


def _reason(error: Exception) -> str:
    text = str(error).lower()
    signs = ("no space left on device", "permission denied", "disk quota exceeded", "file too large")
    known = next((sign for sign in signs if sign in text), None)
    return f"{known}; nothing was changed" if known else first_sentence(error)


def is_stream(path: str) -> bool:
    """Whether an output is stdout, a device or a pipe, none of which can be replaced."""
    return path == STDOUT or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))


def _format(path: str, pictures: Sequence[str] = ()) -> str:
    """Return the format to write, or raise an error that names all endings, also those of `pictures`."""
    refuse_if(
        path.lower().endswith((".xlsx", ".xlsm", ".xls")),
        "Cannot write {path}: Excel files are read but not written; write .csv, which opens in Excel",
        path=path,
    )
    known = [".csv", ".tsv", ".jsonl", ".parquet", *pictures]
    refuse(
        {
            "Unknown format of {path}: use a name that ends in {endings}": not path.lower()
            .removesuffix(".gz")
            .endswith(_WRITABLE),
            "Cannot write {path}: Parquet is already compressed; drop the .gz": path.lower().endswith(
                ".parquet.gz"
            ),
        },
        path=path,
        endings=" or ".join([", ".join(known[:-1]), known[-1]]),
    )
    return format_of(path) or ""


def write_picture(chart: Any, path: str) -> None:
    """Write a chart to a file."""
    from fairramp.show.charts.pieces import missing_extra

    kind = path.lower().rpartition(".")[2]
    if find_spec("vl_convert") is None:
        raise missing_extra("vl-convert-python")
    with replacing(path) as temporary, _writing(path):
        chart.save(temporary, format=kind, **({"inline": True} if kind == "html" else {}))


def write_table(table: Table, path: str) -> None:
    """Write a small table of numbers the same way as large ones."""
    rows = (", ".join(f"CAST('{value!r}' AS DOUBLE)" for value in row.values()) for row in table.rows())
    with connect() as connection:
        query = f"SELECT * FROM (VALUES ({'), ('.join(rows)}))"
        with written(connection, query, table.columns, path):
            pass
