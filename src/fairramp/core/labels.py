"""Group labels: valid values, order and text.

A label is a string, an integer, a boolean, missing (None, NaN and the null of any library become None),
or a tuple of those if several columns make intersections. Labels are ordered by type and value, so a rule
does not depend on the order of the rows.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, zip_longest
from types import NoneType
from typing import Any

import numpy as np

from fairramp.core.checks import is_real
from fairramp.core.ramps import Integers
from fairramp.errors import InputError, shown

Label = str | int | bool | None | tuple["Label", ...]

#: Text of labels that have none of their own.
_UNWRITTEN: dict[Label, str] = {None: "(missing)", "": "(blank)"}
#: Errors that spreadsheets write into cells, in lower case.
SHEET_ERRORS = ("#n/a", "#null!", "#div/0!", "#value!", "#ref!", "#name?", "#num!")
#: Words that programs write for a missing value, in lower case.
MISSING_WORDS = ("nan", "none", "null", "nil", "na", "n/a", "<na>", "nat", *SHEET_ERRORS)
#: Texts that look like a missing value, in lower case.
_LIKE_MISSING = frozenset((*MISSING_WORDS, "(missing)", "(blank)"))
#: Names of characters that cannot be seen.
_INVISIBLE = {
    " ": "space",
    "\t": "tab",
    "\n": "line break",
    "\xa0": "no-break space",
    "\xad": "soft hyphen",
    "\u200b": "zero-width space",
    "\u2060": "word joiner",
    "\u2800": "blank Braille cell",
    "\ufeff": "byte-order mark",
}
#: Characters that Python calls printable, but that print as nothing: fillers and the blank Braille cell.
_BLANKS = frozenset("\u2800\u115f\u1160\u3164\uffa0")
#: Characters of ids that are blank. Every engine can strip them, so they are fewer than those of `is_blank`.
UNSEEN = "".join(
    [
        *"\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\xad\u034f\u061c\u115f\u1160\u1680\u180e",
        *map(chr, range(0x2000, 0x2010)),  # spaces, joiners and marks of direction
        *map(chr, range(0x2028, 0x2030)),
        *map(chr, range(0x205F, 0x2070)),
        *"\u2800\u3000\u3164\ufeff\uffa0",
    ]
)
#: Texts from the first of these up to the second begin with a character that can be seen, so they are not blank.
#: Two comparisons are much faster than stripping every id.
SEEN = "!", "\x80"
#: Joiners within words of scripts that need them, and within emojis.
_JOINED = re.compile("(?<=[^\x00-\xff])[\u200c\u200d](?=[^\x00-\xff])")
#: What labels differ in that are only normalized differently.
ENCODING = "how the letters are encoded"
#: Types of labels, in their order.
_KINDS = (bool, int, str, tuple, NoneType)


def label_text(label: Label) -> str:
    """A label as text for programs, such as a name of a column; parts are joined by a slash."""
    return " / ".join(map(label_text, label)) if isinstance(label, tuple) else _UNWRITTEN.get(label, str(label))


def show_label(label: Label) -> str:
    r"""A label as text for people: as in `label_text`, but in quotes if it looks like another one.

    >>> [show_label(label) for label in ("F", ("F", 1), None, "", " ", "\xa0", " F", "nan")]
    ['F', 'F / 1', '(missing)', '(blank)', '" " (a space)', '"\\xa0" (a no-break space)', '" F"', '"nan" (text)']
    >>> print(show_label("F\u200b"))
    "F\u200b"
    """
    if isinstance(label, tuple):
        return " / ".join(map(show_label, label))
    if not isinstance(label, str) or not label or _is_plain(label):
        return label_text(label)
    quoted = f'"{_escaped(label)}"'
    if not is_blank(label):
        return f"{quoted} (text)" if label.casefold() in _LIKE_MISSING else quoted
    what = _INVISIBLE.get(label[0], "blank") if len(set(label)) == 1 else "blank"
    return f"{quoted} ({f'a {what}' if len(label) == 1 else f'{len(label)} {what}s'})"


def show_labels(labels: Sequence[Label]) -> list[str]:
    r"""Each label as in `show_label`; those that would print the same are written so that they differ.

    >>> show_labels([1, "1", "2"]), show_labels(["Caf\xe9", "Cafe\u0301"])
    (['1', '"1" (text)', '2'], ['"Caf\\xe9"', '"Cafe\\u0301"'])
    """
    shown = list(map(show_label, labels))
    looks = [text if text.isascii() else unicodedata.normalize("NFC", text) for text in shown]
    kinds: dict[str, set[Any]] = {}
    if len(set(looks)) < len(labels):
        for look, label in zip(looks, labels, strict=True):
            kinds.setdefault(look, set()).add((type(label), label))
    same = {look for look, found in kinds.items() if len(found) > 1}
    return [
        _exactly(label) if look in same else text for label, look, text in zip(labels, looks, shown, strict=True)
    ]


def _exactly(label: Label) -> str:
    """A label that differs from the text of all others: text in quotes and in ASCII."""
    if isinstance(label, tuple):
        return " / ".join(map(_exactly, label))
    if not isinstance(label, str) or not label:
        return label_text(label)
    quoted = f'"{label.encode("unicode_escape").decode()}"'
    return f"{quoted} (text)" if label.isascii() else quoted


def _escaped(text: str) -> str:
    """A text in which nothing is invisible, except spaces."""
    return "".join(c.encode("unicode_escape").decode() if _is_hidden(c) else c for c in text)


def _is_hidden(character: str) -> bool:
    """Whether a character prints as nothing, or as something other than itself."""
    return not character.isprintable() or character in _BLANKS


def visible(text: str) -> str:
    """A text without characters that print as nothing, except spaces."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c for c in text if c.isspace() or not _is_hidden(c))


def is_blank(text: str) -> bool:
    """Whether a text has no character that can be seen.

    >>> is_blank(" "), is_blank("\u200b"), is_blank("a")
    (True, True, False)
    """
    return not visible(text).strip()


def names_none(label: Label) -> bool:
    r"""Whether a label or a part of it is missing, blank or the error of a spreadsheet.

    >>> names_none(("F", None)), names_none("\u200b"), names_none("#REF!"), names_none("NA")
    (True, True, True, False)
    """
    if isinstance(label, tuple):
        return any(map(names_none, label))
    return label is None or is_blank(str(label)) or str(label).lower() in SHEET_ERRORS


def _is_plain(text: str) -> bool:
    """Whether nothing in a text could be overlooked, or mistaken for a missing value."""
    if text != text.strip() or text.casefold() in _LIKE_MISSING:
        return False
    if text.isascii():
        return text.isprintable()
    return not any(map(_is_hidden, _JOINED.sub("", text)))


def spelling(label: Label) -> str:
    """A label's text, normalized so that case, spaces, the encoding of letters and the type do not matter."""
    if isinstance(label, tuple):
        return " / ".join(map(spelling, label))
    text = _UNWRITTEN[None] if label is None else str(label)
    return "".join((text if text.isascii() else unicodedata.normalize("NFKC", visible(text))).casefold().split())


def alike(labels: Iterable[Label]) -> list[tuple[str, list[Label]]]:
    """Labels that look alike, and what they differ in.

    >>> alike(["F", "M", " f", "m ", 1, "1"])
    [('spaces or case', ['F', ' f']), ('spaces or case', ['M', 'm ']), ('type', [1, '1'])]
    """
    found: dict[str, dict[Any, Label]] = {}
    for label in labels:
        if isinstance(label, str | int):
            found.setdefault(spelling(label), {})[type(label), label] = label
    return [(_difference(list(same.values())), list(same.values())) for same in found.values() if len(same) > 1]


def _difference(same: Sequence[Label]) -> str:
    """What labels with the same spelling differ in."""
    texts = set(map(str, same))
    if len(texts) == 1:
        return "type"
    seen = set(map(visible, texts))
    if len(seen) == 1:
        return "invisible characters"
    letters = {unicodedata.normalize("NFKC", text) for text in seen}
    return ENCODING if len(letters) == 1 else "spaces or case"


def written(label: Label) -> str:
    r"""A label as in Python, with everything that cannot be seen escaped.

    >>> print(written("F\u2800"), written(1))
    'F\u2800' 1
    """
    return _escaped(repr(label))


def label_key(label: Label) -> tuple[Any, ...]:
    """Sort key and identity of a label: 1, True and "1" are three groups; missing comes last."""
    kind = _KINDS.index(type(label))
    return (kind, *map(label_key, label)) if isinstance(label, tuple) else (kind, label)


def united(*lists: Sequence[Label]) -> tuple[tuple[Label, ...], list[Integers]]:
    """The sorted union of several lists of labels, and the index of each list's labels in it."""
    keys = [[label_key(label) for label in labels] for labels in lists]
    known = dict(zip(chain(*keys), chain(*lists), strict=True))
    place = {key: i for i, key in enumerate(sorted(known))}
    return (
        tuple(known[key] for key in place),
        [np.array([place[key] for key in part], dtype=np.intp) for part in keys],
    )


def canonical_label(value: Any, depth: int = 0) -> Label:
    """Convert a label of any library to one canonical Python value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        text = str.__str__(value)  # of an enum, its value
        if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
            raise InputError("A {label} must be valid Unicode text", got=text, label="group label")
        return text
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer) and type(value).__name__ != "timedelta64":  # a subclass
        return int(value)
    if isinstance(value, tuple) and depth < 2:
        return tuple(canonical_label(part, depth + 1) for part in value)
    if isinstance(value, float | np.floating) and (value != value or float(value).is_integer()):
        return None if value != value else int(value)
    raise bad_label(value)


def refuse_mixed(values: Collection[Any]) -> None:
    """Raise if booleans and numbers are mixed: Python would merge True and 1 into one key."""
    booleans = any(issubclass(kind, bool | np.bool_) for kind in set(map(type, values)))
    if booleans and any(is_real(value) and value == value for value in values):
        raise InputError(
            "mixes booleans and numbers, which Python treats as equal (True == 1)",
            argument="groups",
            remedy="use one type",
        )
    for parts in zip_longest(*(v for v in values if isinstance(v, tuple))):
        refuse_mixed(parts)


def bad_label(value: Any) -> InputError:
    """The error for a value that cannot be a label."""
    return InputError(
        "A {label} must be a string, an integer, a boolean or missing, got {value} ({type})",
        remedy="bin a continuous column first, or pass fairramp.GroupProbabilities if these are probabilities"
        if isinstance(value, float | np.floating)
        else "convert the labels to strings",
        label="group label",
        value=shown(value),
        type=type(value).__name__,
    )


def label_parts(label: Label, stratified: bool = False) -> tuple[Label, ...]:
    """A label's value in each of its columns; for a cell (stratum, group), the stratum's come first."""
    if not isinstance(label, tuple):
        return (label,)
    return tuple(part for half in label for part in label_parts(half)) if stratified else label


def label_of(parts: tuple[Label, ...], n_strata: int = 0) -> Label:
    """The label with these values; the first `n_strata` of them belong to the stratum."""
    stratum, group = (half[0] if len(half) == 1 else half for half in (parts[:n_strata], parts[n_strata:]))
    return (stratum, group) if n_strata else group
