"""Documents: JSON files with a checksum.

    {"format": …, "version": 2, …the fields of the content…, "sha256": "…"}

Rules and summaries are documents; the content is a typed `Shape`. Reading is strict: a field that is unknown,
missing, duplicated or of the wrong type raises an error, because a file that is half understood makes wrong
decisions. Fields added to a shape later have a default and are omitted when they have that value, so older files
and their checksums stay valid.

The checksum covers the content, not its layout: it detects a changed digit and ignores whitespace. It protects
against damage, not tampering; anyone who can change a file can recompute it.
"""

import hashlib
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar, get_type_hints

import msgspec
from msgspec import Meta, Struct

from fairramp.errors import FairrampError, InputError, shown

VERSION: Final = 2

Finite = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
Nonnegative = Annotated[float, Meta(ge=0.0, le=sys.float_info.max)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Count = Annotated[int, Meta(ge=0)]

_Value = str | int | bool | None
#: A value, a list with a value for each column, or [stratum, group].
PlainLabel = _Value | tuple[_Value | tuple[_Value, ...], ...]

#: What the formats of rules are, and what reads them.
_RULES = {
    "fairramp.rule": ("a rule for two classes", "fairramp.Rule.load"),
    "fairramp.class_rule": ("a rule for several classes", "fairramp.ClassRule.load"),
}

_Document = TypeVar("_Document", bound="Document")
_Read = TypeVar("_Read")


class Shape(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A JSON object with exactly these fields."""


def shape_of(kind: type, **others: Any) -> Any:
    """The `Shape` with the fields and defaults of a dataclass, some of them with other types."""
    types = get_type_hints(kind, include_extras=True) | others
    entries = [
        (f.name, types[f.name], msgspec.NODEFAULT if f.default is MISSING else f.default) for f in fields(kind)
    ]
    return msgspec.defstruct(kind.__name__, entries, bases=(Shape,), frozen=True)


class ColumnNames(Shape, frozen=True):
    """Column names; null for columns without a name."""

    score: str | None
    groups: tuple[str, ...] | None
    strata: tuple[str, ...] | None
    probabilities: tuple[str, ...] | None = None


class Document(Shape, frozen=True, tag_field="format"):
    """Fields that every file has.

    Attributes
    ----------
    words : dict of str
        For messages: "noun" is what the file is; "again" and "mend" say what to do if it is unusable or changed.
    refused : type of FairrampError
        The exception to raise.
    """

    words: ClassVar[dict[str, str]]
    refused: ClassVar[type[FairrampError]]

    version: Literal[2]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


def _content(document: Document, without: tuple[str, ...] = ()) -> dict[str, Any]:
    return {k: v for k, v in msgspec.to_builtins(document).items() if k not in ("sha256", *without)}


def checksum(document: Document, without: tuple[str, ...] = ()) -> str:
    """SHA-256 of the content, except for some fields."""
    return hashlib.sha256(
        json.dumps(_content(document, without), allow_nan=False, sort_keys=True).encode()
    ).hexdigest()


def written(document: Document, indent: int) -> str:
    """The text of a file; numbers have the shortest form that reads back to the same float."""
    content = _content(document) | {"sha256": checksum(document)}
    text = json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    return msgspec.json.format(text, indent=indent).decode("utf-8", "surrogatepass") + "\n"


def load(path: str | os.PathLike[str], kind: type[_Document], build: Callable[[_Document], _Read]) -> _Read:
    """Read a file; error messages name it."""
    try:
        return read(Path(path).read_bytes().decode("utf-8"), kind, build)
    except UnicodeDecodeError:
        raise kind.refused(
            "{place}: not a {noun}: the file is not UTF-8 text", place=os.fspath(path), **kind.words
        ) from None
    except kind.refused as error:
        raise kind.refused("{place}: {error}", place=os.fspath(path), error=error) from None


def read(text: str, kind: type[_Document], build: Callable[[_Document], _Read]) -> _Read:
    """Build a value from the text of a document, after checking its format, fields and checksum."""
    try:
        content = parsed(text)
        _check_head(content, kind)
        document = msgspec.convert(content, kind)
        found = build(document)
    except InputError as error:
        raise kind.refused("{error}", error=error) from None
    except msgspec.ValidationError as error:
        raise _refusal(error, content, kind) from None
    except RecursionError:
        raise kind.refused("Not a {noun}: nested too deeply", **kind.words) from None
    except ValueError as error:
        if not _is_cut(text, error):
            raise kind.refused("Not a {noun}: not valid JSON: {error}", error=error, **kind.words) from None
        raise kind.refused(
            "The {noun} is truncated, perhaps by an interrupted copy: not valid JSON ({why})",
            remedy="copy it again, or {again}",
            why=error if text.strip() else "the file is empty",
            **kind.words,
        ) from None
    if document.sha256 != checksum(document):
        raise kind.refused(
            "The checksum does not match the content: the file is damaged or was edited by hand",
            remedy="{mend}",
            **kind.words,
        )
    return found


def parsed(text: str) -> Any:
    """The value of JSON text, in which no field appears twice and no number is NaN or Infinity.

    >>> parsed('{"score": 0.41}')
    {'score': 0.41}
    """
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_constant)


def _check_head(content: Any, kind: type[Document]) -> None:
    name = kind.__struct_config__.tag
    found = content.get("format") if isinstance(content, dict) else None
    if found != name:
        if name in _RULES and isinstance(found, str) and found in _RULES:
            what, reader = _RULES[found]
            raise InputError("This is {what}: read it with {reader}", what=what, reader=reader)
        raise InputError('Not a {noun}: the field "format" must be "{name}"', name=name, **kind.words)
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise InputError(
            "Version {found} of a {noun} is not supported: this library reads version {known}",
            remedy="{again}" if version == 1 else "update fairramp or {again}",
            found=shown(version),
            known=VERSION,
            **kind.words,
        )


def _is_cut(text: str, error: ValueError) -> bool:
    """Whether an invalid text begins like a JSON object and has no end."""
    if not isinstance(error, json.JSONDecodeError) or error.msg == "Extra data":
        return False
    body = text.rstrip()
    return not body or (body.lstrip().startswith("{") and (error.pos >= len(body) or not body.endswith("}")))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise InputError("The field {twice!r:.60} appears twice", twice=twice)
    return content


def _constant(name: str) -> float:
    raise InputError("{name} is not allowed as a number", name=name)


#: Messages of msgspec and our own; the regex group is a field name or the expected type.
_SAYINGS = {
    "Object missing required field `(.*?)`?": 'The field "{words}" of {where} is missing',
    "Object contains unknown field `(.*?)`?": "The field {words!r:.60} of {where} is unknown",
    "Expected (.*?)(?:, got .*)?": "{where} must be {words}",
    "(.*)": "{where} must be a finite number",
}
_KINDS = {
    "float": "a number",
    "int": "an integer",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def _refusal(error: msgspec.ValidationError, content: Any, kind: type[Document]) -> FairrampError:
    """Rephrase an error of msgspec: which field, what must hold, which value."""
    if isinstance(error.__cause__, InputError):  # raised by a dataclass that checks its own fields
        return kind.refused("{error}", error=error.__cause__)
    said, _, place = str(error).partition(" - at `")
    path = place.rpartition("$")[2].strip(".`")
    where = f'"{path}"' if path else f"the {kind.words['noun']}"
    found = ((re.fullmatch(saying, said, re.DOTALL), rule) for saying, rule in _SAYINGS.items())
    words, rule = next((match[1], rule) for match, rule in found if match)
    if "field" in rule:
        return kind.refused(rule, where=where, words=words)
    for name, index in re.findall(r"(\w+)|\[([\d.]+)\]", path):
        # [...] stands for the rates of an event; there is only one event.
        content = next(iter(content.values())) if index == "..." else content[name or int(index)]
    # A regex of words is a choice between them.
    words = re.sub(
        r"`str` matching regex '\^\(?([\w|]+)\)?\$'", lambda m: '"' + m[1].replace("|", '" or "') + '"', words
    )
    kinds = re.sub("`(.*?)`", lambda quoted: " or ".join(_KINDS[k] for k in quoted[1].split(" | ")), words)
    return kind.refused(rule, where=where, words=kinds, got=content)
