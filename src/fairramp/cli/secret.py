"""The decision key and the token of a service: never arguments, and never printed."""

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

from fairramp.errors import FairrampError, refuse_if

_KEY_LENGTH = 64
#: Shorter tokens could be guessed; longer ones may not fit into the head of a request.
_TOKEN_LENGTH, _LONGEST_TOKEN = 32, 4000
_known: set[str] = set()
#: Whether permissions can keep other users from reading a file; Windows has access lists instead.
OWNERS_ONLY = os.name == "posix"


def read_key(path: str | None) -> tuple[str | None, str | None]:
    """Read the key from the file, or else the environment; also return a warning if others can read the file."""
    from fairramp.rule.draws import ENVIRONMENT  # imports NumPy, and --help needs this module

    text, where, warning = os.environ.get(ENVIRONMENT), f"The variable {ENVIRONMENT}", None
    if path is not None:
        where = f"The key file {path}"
        text, warning = _read(path, "key file", _advice)
    if text is None:
        return None, None
    key = text.strip("\r\n")
    refuse_if(
        len(key) != _KEY_LENGTH or set(key) - set("0123456789abcdef"),
        "{where} must hold a key of 64 lowercase hexadecimal characters, made by fairramp keygen",
        where=where,
    )
    _known.add(key)
    return key, warning


def read_token(path: str) -> tuple[str, str | None]:
    """Read the token that requests must present; also return a warning if others can read the file."""
    text, warning = _read(path, "token file", lambda path: f"; create one with: fairramp keygen {path}")
    token = text.strip("\r\n")
    refuse_if(
        not _TOKEN_LENGTH <= len(token) <= _LONGEST_TOKEN or not all("!" <= c <= "~" for c in token),
        "The token file {path} must hold {n} to {most:,} printable ASCII characters without spaces",
        remedy="create one with: fairramp keygen FILE",
        path=path,
        n=_TOKEN_LENGTH,
        most=_LONGEST_TOKEN,
    )
    refuse_if(
        token in _known,
        "The token file {path} holds the key, with which clients could predict decisions",
        remedy="create another with: fairramp keygen FILE",
        path=path,
    )
    _known.add(token)
    return token, warning


def _read(path: str, what: str, advice: Callable[[str], str]) -> tuple[str, str | None]:
    """The text of a secret file, and a warning if others can read it; "" if it is not text."""
    try:
        with open(path, encoding="ascii") as file:
            text, mode = file.read(4096), os.fstat(file.fileno()).st_mode
    except UnicodeDecodeError:
        return "", None
    except OSError as error:
        raise FairrampError(
            "Cannot read the {what} {path}: {why}{advice}",
            what=what,
            path=path,
            why=error.strerror,
            advice=advice(path) if isinstance(error, FileNotFoundError) else "",
        ) from None
    open_to_others = stat.S_ISREG(mode) and mode & 0o077 and OWNERS_ONLY
    return (
        text,
        f"other users can read the {what} {path}; to prevent that: chmod 600 {path}" if open_to_others else None,
    )


def _advice(path: str) -> str:
    """Advise on a key file that does not exist; a new key would change the decisions of an earlier one."""
    # The glob is empty if the folder cannot be read.
    others = sorted(p for p in Path(path).parent.glob("*") if p.is_file() and p.stat().st_size in range(64, 67))
    if others:
        return (
            "; check its name, because only the same key repeats earlier decisions (did you mean "
            f"{' or '.join(map(str, others[:3]))}?)"
        )
    return f"; check its name, or create a first key with: fairramp keygen {path}"


def redacted(text: str) -> str:
    """Return a message with every secret that was read removed."""
    for key in _known:
        text = text.replace(key, "[secret]")
    return text


def make_key(path: str) -> None:
    """Write a new key that only its owner can read; never overwrite a file."""
    made = False
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        made = True
        with os.fdopen(handle, "w", encoding="ascii", newline="\n") as file:
            file.write(secrets.token_hex(_KEY_LENGTH // 2) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise FairrampError(
            "{path} exists and is not overwritten: with a new key, the same people could get different decisions",
            path=path,
        ) from None
    except OSError as error:
        if made:
            Path(path).unlink(missing_ok=True)
        raise FairrampError("Cannot write {path}: {why}", path=path, why=error.strerror) from None
