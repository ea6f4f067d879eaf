"""Documents can gain fields: a new field has a default, and older files stay valid."""

import hashlib
import json
from dataclasses import dataclass
from typing import Annotated, ClassVar

import pytest
from msgspec import Meta

import fairramp
from fairramp.data.documents import Document, Share, read, shape_of, written


@dataclass(frozen=True)
class Part:
    share: Share


@dataclass(frozen=True)
class LaterPart(Part):
    above: bool = True


class Before(Document, frozen=True, tag="test"):
    words: ClassVar = {"noun": "test", "again": "write it again", "mend": "write it again"}
    refused = fairramp.RuleFormatError

    parts: tuple[shape_of(Part), ...]


class Later(Document, frozen=True, tag="test"):
    words = Before.words
    refused = fairramp.RuleFormatError

    parts: tuple[shape_of(LaterPart), ...]
    higher: bool = True
    width: Annotated[float, Meta(ge=0.0)] = 0.0


def text(**changes):
    content = {"format": "test", "version": 2, "parts": [{"share": 0.25}, {"share": 1.0}]} | changes
    total = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps(content | {"sha256": total}, separators=(",", ":")) + "\n"


def test_an_older_file_gets_the_default_of_a_new_field_and_is_written_unchanged():
    document = read(text(), Later, lambda found: found)
    assert (document.higher, document.width, document.parts[0].above) == (True, 0.0, True)
    assert written(document, indent=-1) == text() == written(read(text(), Before, lambda found: found), indent=-1)


def test_non_default_fields_are_written_and_older_readers_reject_them():
    later = text(higher=False)
    assert written(read(later, Later, lambda found: found), indent=-1) == later
    with pytest.raises(fairramp.RuleFormatError, match=r"^The field 'higher' of the test is unknown\.$"):
        read(later, Before, lambda found: found)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"parts": [{"share": 2}]}, '"parts[0].share" must be a number <= 1.0, got 2.'),
        ({"parts": [{"share": 0}, {"share": "1"}]}, "\"parts[1].share\" must be a number, got '1'."),
        ({"parts": [{"share": 10**400}]}, '"parts[0].share" must be a finite number, got 1000'),
        ({"parts": [{}]}, 'The field "share" of "parts[0]" is missing.'),
        ({"parts": {}}, '"parts" must be a list, got {}.'),
        ({"parts": [3]}, '"parts[0]" must be an object, got 3.'),
        ({"x - at `$.parts": 1}, "is unknown."),
        ({"` - at `$.parts[7].share`": 1}, "is unknown."),
        ({"{place}": 1}, "The field '{place}' of the test is unknown."),
        (
            {"version": 3},
            "Version 3 of a test is not supported: this library reads version 2; update fairramp or",
        ),
    ],
)
def test_the_error_names_the_field_the_constraint_and_the_value(changes, sentence):
    with pytest.raises(fairramp.RuleFormatError) as caught:
        read(text(**changes), Before, lambda found: found)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 300


def test_integers_in_float_fields_are_read_as_floats():
    whole = text().replace("1.0", "1")
    assert written(read(whole, Before, lambda found: found), indent=-1) == text()
