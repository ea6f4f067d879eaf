"""Atomic file writes.

    path  →  a hidden file beside it  →  flushed to the disk  →  renamed to path

Readers see either the old file or the new one, even after a full disk, a signal or a second process writing the
same file. A killed process may leave its hidden file, never a partial output.
"""

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from fairramp.errors import FairrampError

#: Characters of the file name kept in the hidden file's name; the full name might make it too long.
_SHOWN = 40


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A hidden file beside `path` that replaces it on success and is deleted on failure."""
    target = path.resolve()
    temporary = target.with_name(f".{target.name[:_SHOWN]}.{secrets.token_hex(8)}.tmp")
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    try:
        rights = 0o666 if mode is None else mode | stat.S_IRUSR | stat.S_IWUSR
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, rights))
        yield temporary
        _flush(temporary, os.O_RDWR)  # Windows flushes only writable files
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
        with contextlib.suppress(OSError):  # some systems cannot open or flush a folder
            _flush(target.parent, os.O_RDONLY)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _flush(path: Path, flags: int) -> None:
    """Wait until a file, or a folder's entries, are on the disk."""
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_folder(path: Path, files: Mapping[str, str], what: str) -> None:
    """Write a new folder of text files, whole or not at all; nothing is ever overwritten."""
    target = path.resolve()
    reasons = {
        "it already exists; choose another name": os.path.lexists(path),
        "the folder {folder} does not exist": not target.parent.is_dir(),
    }
    if why := next((text for text, holds in reasons.items() if holds), None):
        raise FairrampError("Cannot save {what} to {path}: " + why, what=what, path=path, folder=target.parent)
    temporary = target.with_name(f".{target.name[:_SHOWN]}.{secrets.token_hex(8)}.tmp")
    try:
        temporary.mkdir()
        for name, text in files.items():
            write_text(temporary / name, text, what)
        temporary.rename(target)  # fails if another process has made a folder with files there
    except OSError as error:
        if error.errno is None:
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str, what: str) -> None:
    """Write text to a file, in UTF-8."""
    write_bytes(path, text.encode(), what)


def write_bytes(path: Path, content: bytes, what: str) -> None:
    """Write bytes to a file; pipes and devices are written directly, because a file must not replace them."""
    if path.is_dir() or not path.parent.is_dir():
        why = "it is a folder" if path.is_dir() else "the folder {folder} does not exist"
        raise FairrampError("Cannot save {what} to {path}: " + why, what=what, path=path, folder=path.parent)
    try:
        with replacing(path) if path.is_file() or not path.exists() else contextlib.nullcontext(path) as place:
            place.write_bytes(content)
    except OSError as error:
        if error.errno is None:
            raise
        raise type(error)(
            error.errno, error.strerror, str(path)
        ) from None  # name the file, not the temporary one
