"""The decision key: from a file or the environment, never from an argument, never into an output."""

import os
import secrets
import stat
from pathlib import Path

from fairramp.cli.tables import TableError

__all__ = ["ENVIRONMENT", "make_key", "read_key", "redacted"]

#: The variable that may hold the key.
ENVIRONMENT = "FAIRRAMP_KEY"
_KEY_LENGTH = 64
_known: set[str] = set()


def read_key(path: str | None) -> tuple[str | None, str | None]:
    """The key, from the file or else the environment, and a warning if others can read the file."""
    warning = None
    if path is not None:
        try:
            with open(path, encoding="ascii") as file:
                text = file.read(4096)
                mode = os.fstat(file.fileno()).st_mode
        except UnicodeDecodeError:
            text, mode = "", 0
        except OSError as error:
            advice = f"; make one with: fairramp keygen {path}" if isinstance(error, FileNotFoundError) else ""
            raise TableError(f"Cannot read the key file {path}: {error.strerror}{advice}.") from None
        where = f"The key file {path}"
        if stat.S_ISREG(mode) and mode & 0o077 and os.name == "posix":
            warning = f"others can read the key file {path}; close it with: chmod 600 {path}"
    elif ENVIRONMENT in os.environ:
        text, where = os.environ[ENVIRONMENT], f"The variable {ENVIRONMENT}"
    else:
        return None, None
    key = text.strip("\r\n")
    if len(key) != _KEY_LENGTH or set(key) - set("0123456789abcdef"):
        raise TableError(
            f"{where} does not hold a key of 64 lowercase hexadecimal characters; see: fairramp keygen"
        )
    _known.add(key)
    return key, warning


def redacted(text: str) -> str:
    """A message without any key that was read."""
    for key in _known:
        text = text.replace(key, "[key]")
    return text


def make_key(path: str) -> None:
    """Write a new key that only its owner can read; never over another file."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise TableError(
            f"{path} exists and is not overwritten: with another key the same people would get other answers."
        ) from None
    except OSError as error:
        raise TableError(f"Cannot write {path}: {error.strerror}.") from None
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(_KEY_LENGTH // 2) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        Path(path).unlink(missing_ok=True)
        raise TableError(f"Cannot write {path}: {error.strerror}.") from None
