"""What the file has: its columns with samples of their values, and which ones are probably meant."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairramp.data.database import connect
from fairramp.data.inputs import input_files
from fairramp.data.stored import open_files
from fairramp.errors import refuse_if

#: Rows at the start of the file that are looked at.
_ROWS = 1_000
#: Most columns that the page offers, and values of each that it shows.
_MOST, _SHOWN = 500, 4
#: Most values of a group column, and characters of a value that are shown.
_GROUPS, _LONGEST = 50, 24
_YES_NO = {"0", "1", "0.0", "1.0", "yes", "no", "true", "false", "y", "n"}
_NAMES = {
    "score": r"score|prob|pred|risk|logit",
    "group": r"sex|gender|group|race|ethnic|age|nation|region",
    "label": r"label|outcome|target|truth|actual|^y$|default|repaid",
}
#: Names of scores that are probably bad if high.
_BAD = r"risk|default|fraud|churn|recid|loss"


@dataclass(frozen=True)
class Column:
    """A column of the file.

    Attributes
    ----------
    name : str
        Its name.
    values : tuple of str
        Different values at the start of the file that are not blank.
    kind : str
        What these look like, in words.
    distinct : int
        How many different values there are in the first rows.
    is_number, is_share, is_answer : bool
        Whether all of them are numbers, are numbers from 0 to 1, and mean yes or no.
    """

    name: str
    values: tuple[str, ...]
    kind: str
    distinct: int
    is_number: bool
    is_share: bool
    is_answer: bool


@dataclass(frozen=True)
class Suggested:
    """The columns that are probably meant; "" if there is none."""

    score: str
    group: str
    label: str
    scale: str
    lower_is_better: bool


def columns_of(data: str) -> list[Column]:
    """The columns of a file, from its first rows."""
    with connect() as connection:
        source = open_files(connection, input_files(data), data)
        refuse_if(
            len(source.names) < 2,
            "{where} has one column; a rule needs a score and a group",
            where=source.shown,
        )
        refuse_if(
            len(source.names) > _MOST,
            "{where} has {n:,} columns, and the page offers at most {most}; save the ones you need",
            where=source.shown,
            n=len(source.names),
            most=_MOST,
        )
        texts = ", ".join(f"CAST(c{i} AS VARCHAR)" for i in range(len(source.names)))
        rows = source.ask(texts, f"LIMIT {_ROWS}")
    refuse_if(not rows, "{where} has a header but no rows", where=data)
    return [
        _column(name, [value or "" for value in values])
        for name, values in zip(source.names, zip(*rows, strict=True), strict=True)
    ]


def _column(name: str, values: Sequence[str]) -> Column:
    different = [value for value in dict.fromkeys(values) if value.strip()]
    is_number = bool(different) and all(map(_is_number, different))
    is_share = is_number and all(0 <= _number(value) <= 1 for value in different)
    is_answer = len(different) == 2 and {value.strip().lower() for value in different} <= _YES_NO
    n = len(different)
    many = f"{n:,} values" if n < _ROWS // 2 else "many values"
    kind = "no values" if not different else "one value" if n == 1 else many
    if different and not all(map(str.strip, values)):
        kind += ", some blank"
    shown = tuple(v if len(v) <= _LONGEST else f"{v[: _LONGEST - 1]}…" for v in different[:_SHOWN])
    return Column(name, shown, f"numbers, {kind}" if is_number else kind, n, is_number, is_share, is_answer)


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"\s*[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?\s*%?\s*", text, re.IGNORECASE))


def _number(text: str) -> float:
    return float(text.replace(",", ".").strip().rstrip("%"))


def suggested(columns: Sequence[Column]) -> Suggested:
    """The most likely columns: by name, then by their values."""

    def first(role: str, fits: Callable[[Column], bool], *taken: str) -> str:
        known = [column for column in columns if column.name not in taken and fits(column)]
        named = [column for column in known if re.search(_NAMES[role], column.name, re.IGNORECASE)]
        shares = [column for column in known if role == "score" and column.is_share]
        return next((column.name for column in (*named, *shares, *known)), "")

    score = first("score", lambda column: column.is_number and not column.is_answer)
    label = first("label", lambda column: column.is_answer, score)
    group = first("group", lambda column: 1 < column.distinct <= _GROUPS, score, label)
    values = next((column.values for column in columns if column.name == score), ())
    return Suggested(score, group, label, _scale(values), bool(re.search(_BAD, score, re.IGNORECASE)))


def _scale(values: Sequence[str]) -> str:
    """The scale that the first scores suggest; reading all of them checks it."""
    numbers = list(map(_number, values))
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    return "probability" if low >= 0 and high <= 1 else "percent" if low >= 0 and high <= 100 else "logit"
