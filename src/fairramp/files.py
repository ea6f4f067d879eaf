"""Files that appear whole or not at all."""

import os
import secrets
from pathlib import Path

from fairramp.exceptions import FairrampError

__all__ = ["write_bytes", "write_text"]


def write_text(path: Path, text: str, what: str) -> None:
    """Write UTF-8 text as `write_bytes` writes."""
    write_bytes(path, text.encode(), what)


def write_bytes(path: Path, content: bytes, what: str) -> None:
    """Write to a temporary file beside the target, then rename."""
    if path.is_dir():
        raise FairrampError(f"Cannot save {what} to {path}: it is a folder.")
    if not path.parent.is_dir():
        raise FairrampError(f"Cannot save {what} to {path}: the folder {path.parent} does not exist.")
    try:
        _write(content, path.resolve())
    except OSError as error:
        if error.filename is None:
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from None  # not the temporary file


def _write(content: bytes, path: Path) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            temporary.chmod(path.stat().st_mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
