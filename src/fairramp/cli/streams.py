"""Standard streams on every system.

Text for people is in the encoding of the terminal, with stand-ins for characters that it lacks. What programs
read is always UTF-8. Lines end alike everywhere.
"""

import codecs
import io
import sys
from typing import TextIO

#: In place of characters that an encoding lacks: a lost sign would change a number.
_STAND_INS = {
    **dict.fromkeys("−–—‑", "-"),
    **dict.fromkeys("“”", '"'),
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("─━╌╸╺", "-"),
    **dict.fromkeys("│┃", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰", "+"),
    "≤": "<=",
    "≥": ">=",
    "±": "+/-",
    "×": "x",
    "÷": "/",
    "·": "*",
    "•": "*",
    "→": "->",
    "∞": "inf",
    "…": "...",
    "\ufeff": "",
}


def _stand_in(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace characters that cannot be encoded, by their code if there is no better stand-in."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(_STAND_INS.get(c, c.encode("ascii", "backslashreplace").decode()) for c in text), error.end


codecs.register_error("fairramp", _stand_in)


def prepare() -> None:
    """Make stdout and stderr accept any text, and end lines as on Linux."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="fairramp", newline="\n")


def write_document(file: TextIO, text: str) -> None:
    """Write text that programs read, such as JSON or SQL."""
    file.flush()
    # In JSON, the escape of an unpaired surrogate is valid.
    file.buffer.write(text.encode(errors="backslashreplace"))
    file.buffer.flush()
