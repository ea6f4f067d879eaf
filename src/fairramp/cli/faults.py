"""Cells that cannot be used: counted, shown with their places, and left out on request.

    condition   SQL that holds for a bad cell and is never NULL
    fault       a column, what is wrong with it, and the condition
    found       the faults of a table, with the numbers of rows

Missing values may be any number. Wrong values that are there in more than one row in ten are no slips: they
point to a wrong column or option, or to a group with another spelling, so they are never left out.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairramp.core.labels import MISSING_WORDS, UNSEEN, is_blank
from fairramp.data.database import literal
from fairramp.data.stored import Source
from fairramp.errors import FairrampError, shown

#: Why rows were not left out.
TOO_MANY = "--skip-invalid leaves out wrong values only if they are in at most one row in ten"
#: Bad cells of a column that a message shows.
_SHOWN = 3
#: Largest share of rows with wrong values that may be left out.
_SLIPS = 0.1
_IS_MISSING = "is missing"


@dataclass(frozen=True)
class Fault:
    """A column with bad cells.

    Attributes
    ----------
    option : str
        The option that named the column, for messages.
    name : str
        Its name in the file.
    wrong : str
        What is wrong with the cells, after the name of the column: "is not a number".
    condition : str
        SQL that holds for bad cells.
    column : str
        Name of the column in the query.
    value : str
        SQL of the value to show.
    advice : dict of str to str
        What to do, by a sign in the values; "" if they have no other sign. A decimal mark is a sign only in
        values that are numbers with this mark.
    often : tuple of str or None
        A condition, and what to do instead if it holds in more than one row in ten.
    missing : str or None
        SQL that holds for rows without a value; None if it is that of the column.
    reason : str or None
        SQL of the reason for one row; None if it is made of the value and `wrong`.
    slips : bool
        Whether any number of cells may be wrong.
    """

    option: str
    name: str
    wrong: str
    condition: str
    column: str
    value: str
    advice: dict[str, str]
    often: tuple[str, str] | None = None
    missing: str | None = None
    reason: str | None = None
    slips: bool = False

    @property
    def shown(self) -> str:
        """The column with its option, for messages."""
        return f"{self.option} {self.name}"

    @property
    def explained(self) -> str:
        """SQL of the reason why a row with this fault cannot be used, with its value."""
        start, wrong = f"{self.name} is ", self.wrong.removeprefix("is ")
        missing = literal(f"{start}missing (")
        if self.reason is not None or wrong == self.wrong:
            return self.reason or literal(f"{self.name} {self.wrong}")
        text, before, after = f"CAST({self.value} AS VARCHAR)", literal(f"{start}'"), literal(f"', {wrong}")
        return (
            f"CASE WHEN {text} IS NULL THEN {literal(f'{start}missing')} "
            f"WHEN {_trimmed(text)} = '' THEN {literal(f'{start}empty')} WHEN {is_missing(text)} THEN "
            f"concat({missing}, {_trimmed(text)}, ')') ELSE concat({before}, {text}, {after}) END"
        )

    def told(self, n: int, strays: int) -> str:
        """What is wrong in how many rows, `strays` of which have a value."""
        blank = 0 if self.wrong == _IS_MISSING else n - strays
        parts = {_IS_MISSING: blank, self.wrong: n - blank}
        return " and ".join(f"{wrong} in {_rows(rows)}" for wrong, rows in parts.items() if rows)


def is_missing(column: str, words: Sequence[str] = MISSING_WORDS) -> str:
    """Return SQL that holds for missing and blank values, and for words that stand for them."""
    listed = ", ".join(map(literal, ("", *words)))
    return f"({column} IS NULL OR lower({_trimmed(f'CAST({column} AS VARCHAR)')}) IN ({listed}))"


def _trimmed(text: str) -> str:
    return f"trim({text}, {literal(UNSEEN)})"


@dataclass(frozen=True)
class Found:
    """The faults of a table.

    Attributes
    ----------
    source : Source
        The table.
    faults : tuple of Fault
        Those that occur.
    counts : tuple of int
        Number of rows of each.
    strays : tuple of int
        The same without missing values.
    n_bad, n_wrong, n_rows : int
        Number of rows with any of them, with any that must be a slip, and of all rows.
    """

    source: Source
    faults: tuple[Fault, ...]
    counts: tuple[int, ...]
    strays: tuple[int, ...]
    n_bad: int
    n_wrong: int
    n_rows: int

    @classmethod
    def of(cls, source: Source, faults: Sequence[Fault]) -> "Found":
        """Count the faults in one pass."""
        if not faults:
            return cls(source, (), (), (), 0, 0, 0)
        conditions = [f"({fault.condition})" for fault in faults]
        there = [
            f"{condition} AND NOT ({fault.missing or is_missing(fault.column)})"
            for fault, condition in zip(faults, conditions, strict=True)
        ]
        wrong = [f"({c})" for fault, c in zip(faults, there, strict=True) if not fault.slips]
        either = (" OR ".join(parts) or "false" for parts in (conditions, wrong))
        counts = ", ".join(f"count(*) FILTER ({c})" for c in [*conditions, *there, *either])
        ((*found, n_bad, n_wrong, n_rows),) = source.ask(f"{counts}, count(*)")
        n = len(faults)
        kept = [i for i in range(n) if found[i]]
        return cls(
            source,
            tuple(faults[i] for i in kept),
            tuple(found[i] for i in kept),
            tuple(found[n + i] for i in kept),
            n_bad,
            n_wrong,
            n_rows,
        )

    @property
    def can_skip(self) -> bool:
        """Whether the bad rows are slips that may be left out, and other rows are left."""
        return self.n_bad < self.n_rows and self.are_slips

    @property
    def are_slips(self) -> bool:
        """Whether at most one row in ten has wrong values."""
        return self.n_wrong <= _SLIPS * self.n_rows

    @property
    def condition(self) -> str:
        """SQL that holds for rows with a fault."""
        return " OR ".join(f"({fault.condition})" for fault in self.faults)

    @property
    def reasons(self) -> str:
        """SQL of all reasons why a row cannot be used."""
        cases = (f"CASE WHEN {fault.condition} THEN {fault.explained} END" for fault in self.faults)
        return f"concat_ws('; ', {', '.join(cases)})"

    def summary(self) -> str:
        """Every fault with its number of rows."""
        found = zip(self.faults, self.counts, self.strays, strict=True)
        return "; ".join(f"{fault.shown} {fault.told(n, strays)}" for fault, n, strays in found)

    def left_out(self) -> str:
        """Which rows are left out and why, for readers of a report, who do not know the options."""
        every = zip(self.faults, self.counts, self.strays, strict=True)
        why = [(f"{fault.name} {_missing_or(fault, n - strays, strays)}", n) for fault, n, strays in every]
        shown = why[0][0] if len(why) == 1 else "; ".join(f"{text} in {_rows(n)}" for text, n in why)
        were = "was" if self.n_bad == 1 else "were"
        return f"{self.n_bad:,} of {_rows(self.n_rows)} {were} left out: {shown}."

    def error(self, *, skipping: bool | None) -> FairrampError:
        """One message with all faults; `skipping` says whether rows may be left out, None if never."""
        texts, advice = [], []
        for i, (fault, n, strays) in enumerate(zip(self.faults, self.counts, self.strays, strict=True)):
            first = self.places(fault)
            cells = ", ".join(f"{text} in {place}" for text, place in first)
            where = f" in {self.source.shown}" if i == 0 else ""
            texts.append(f"{fault.shown}{where} {fault.told(n, strays)}: {cells}{', …' if n > _SHOWN else ''}")
            values = [text for text, _ in first]
            known = (said for sign, said in fault.advice.items() if any(_shows(sign, text) for text in values))
            own = next(known, fault.advice.get("") if strays else None)
            if fault.often is not None:
                ((often,),) = self.source.ask("count(*)", f"WHERE {fault.often[0]}")
                own = fault.often[1] if often > _SLIPS * self.n_rows else own
            advice += [own] if own and own not in advice else []
        them = "it" if sum(self.counts) == 1 else "them"
        remedy = "; ".join(advice) or f"correct {them}{'' if self.are_slips else ', or choose another column'}"
        if skipping is False and self.can_skip:
            rows = "this row" if self.n_bad == 1 else f"these {self.n_bad:,} rows"
            remedy += f". To leave out {rows}, pass --skip-invalid"
        elif skipping:
            remedy += ". No row is left without them" if self.are_slips else f". {TOO_MANY}"
        return FairrampError("{all}", all="; ".join(texts), remedy="{advice}", advice=remedy)

    def places(self, fault: Fault) -> list[tuple[str, str]]:
        """The first bad cells, as text, and where they are."""
        rows = self.source.connection.execute(
            f"SELECT position, {fault.value}, {fault.column} FROM "
            f"(SELECT *, row_number() OVER () AS position FROM ({self.source.query})) "
            f"WHERE {fault.condition} ORDER BY position LIMIT {_SHOWN}"
        ).fetchall()
        cells = {row: (int(fault.column[1:]), cell) for row, _, cell in rows}
        names = self.source.places(cells)
        return [(_written(value), names[row]) for row, value, _ in rows]


def _missing_or(fault: Fault, missing: int, strays: int) -> str:
    """What is wrong with cells, some of which are missing."""
    if fault.slips or not missing or fault.wrong == "is missing":
        return fault.wrong
    return f"is missing or {fault.wrong.removeprefix('is ')}" if strays else "is missing"


def _rows(n: int) -> str:
    return f"{n:,} row{'' if n == 1 else 's'}"


def _shows(sign: str, text: str) -> bool:
    """Whether a cell, as written, has a sign; a decimal mark counts only in a number.

    >>> _shows(".", "'1.234'"), _shows(".", "'k.A.'"), _shows(",", "'1.234,5'"), _shows("%", "'45%'")
    (True, False, True, True)
    """
    if sign in (".", ",") and sign in text:
        other = {".": ",", ",": "."}[sign]
        with contextlib.suppress(ValueError):
            float(text.strip("'\"% ").replace(other, "").replace(",", "."))
            return True
        return False
    return sign != "" and sign in text


def _written(value: Any) -> str:
    """A cell as it is."""
    if value is None:
        return "missing"
    if isinstance(value, str) and is_blank(value):
        return "blank" if value else "empty"
    return shown(value) if isinstance(value, str) else f"{value:.12g}" if isinstance(value, float) else str(value)
