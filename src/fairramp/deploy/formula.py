"""A rule's arithmetic as SQL text.

    CASE WHEN score >= lowest AND score <= highest THEN              anything else, also NULL and NaN: NULL
      CASE WHEN x <= foot THEN 0                                     x    the position of the score
           WHEN x - foot >= width THEN 1                             foot of the row's group
           ELSE (x - foot) / width END
    END

    decision = 1 if draw < probability, else 0
    draw     = first 13 hexadecimal digits of SHA-256(key ‖ ":" ‖ id), as a number, / 2^52

`Rule.apply` computes with the same text on DuckDB and Spark. CASE is used throughout, because GREATEST and LEAST
skip NULL and would turn a missing score into a yes. NaN is the highest number to most data bases: that is why
the range is asked for first. The comparison with the width comes before the division, which may not overflow.
"""

from collections.abc import Sequence
from typing import NamedTuple

from fairramp.core.scales import SCALES
from fairramp.deploy.dialects import Dialect, Part, literal
from fairramp.deploy.plan import numbers_of
from fairramp.rule.rule import Ramp, Rule

__all__ = ["Formula", "decision", "group_code", "picked"]

# The layout of the innermost CASE. Texts are never indented afterwards: a label may hold a line break.
_CASE, _WHEN, _END = "CASE\n      ", "\n      ", "\n    END"


def decision(probability: str, key: str, id_text: str, dialect: Dialect) -> str:
    """Yes or no as 1 or 0; the draw is made only where the probability leaves it open.

    NULL if there is no probability, or if a draw is needed and there is no id or no key, both of type text.
    """
    assert dialect.draw is not None
    zero, one, parts = literal(0.0, dialect), literal(1.0, dialect), literal(2.0**52, dialect)
    whole = dialect.draw.format(message=f"{key}\n  || ':' || {id_text}")
    return (
        f"CAST(CASE\nWHEN {probability} <= {zero} THEN 0\nWHEN {probability} >= {one} THEN 1\n"
        f"ELSE CAST({whole} / {parts}\n< {probability} AS INTEGER)\nEND AS {dialect.small})"
    )


class Formula(NamedTuple):
    """A rule's arithmetic on expressions.

    Attributes
    ----------
    rule : Rule
        Whose.
    score : str
        The score, as an expression of type double.
    dialect : Dialect
        Of all texts.
    """

    rule: Rule
    score: str
    dialect: Dialect

    def guarded(self, body: str, also: str = "") -> str:
        """The body where the score is sound, and NULL elsewhere."""
        low, high = SCALES[self.rule.scale].finite_range
        sound = f"{self.score} >= {self._number(low)}\n  AND {self.score} <= {self._number(high)}"
        return f"CASE WHEN {also}{sound} THEN\n  {body}\nEND"

    def numbers(self, ramp: Ramp) -> tuple[float, ...]:
        """What the answer depends on besides the score."""
        return numbers_of(self.rule, ramp)

    @property
    def number_names(self) -> tuple[str, ...]:
        """What `numbers` are called."""
        return ("foot",) if self.rule.ramp_width > 0 else ("low", "high", "tie_chance")

    def on_ramp(self, numbers: Sequence[str]) -> str:
        """The probability on a ramp; the score is sound."""
        no, yes = self._number(0.0), self._number(1.0)
        if self.rule.ramp_width == 0:
            low, high, tie_chance = numbers
            score = self._own_score()
            return (
                f"{_CASE}WHEN {score} > {high} THEN {yes}{_WHEN}"
                f"WHEN {score} >= {low} THEN {tie_chance}{_WHEN}ELSE {no}{_END}"
            )
        (foot,), x, width = numbers, self._position(), self._number(self.rule.ramp_width)
        return (
            f"{_CASE}WHEN {x} <= {foot} THEN {no}{_WHEN}WHEN {x} - {foot} >= {width} THEN {yes}"
            f"{_WHEN}ELSE ({x} - {foot}) / {width}{_END}"
        )

    def known(self, ramp: Ramp) -> str:
        """The probability on a ramp whose numbers are written down."""
        return self.on_ramp([self._number(n) for n in self.numbers(ramp)])

    def otherwise(self) -> str:
        """The probability for groups that the rule does not know: by its policy, or NULL."""
        if self.rule.pooled is not None:
            return self.known(self.rule.pooled)
        if self.rule.unseen_group == "original":
            no, yes = self._number(0.0), self._number(1.0)
            cutoff = self._number(self.rule.own_cutoff)
            return f"{_CASE}WHEN {self._own_score()} >= {cutoff} THEN {yes}{_WHEN}ELSE {no}{_END}"
        return "NULL"

    def compared(self, columns: Sequence[str], labels: Sequence[tuple[Part, ...]], ramps: Sequence[Ramp]) -> str:
        """The probability for a few groups, told apart one by one; columns are of the type of the labels."""
        otherwise = self.otherwise()
        if not labels:
            return otherwise
        cases = [
            f"WHEN {_is(columns, label, self.dialect)} THEN {self.known(ramp)}"
            for label, ramp in zip(labels, ramps, strict=True)
        ]
        return "\n    ".join(["CASE", *cases, f"ELSE {otherwise}"]) + "\n  END"

    def joined(self, numbers: Sequence[str]) -> str:
        """The probability for many groups: numbers are columns, NULL where the group is not known."""
        unknown, known = self.otherwise(), self.on_ramp(numbers)
        return f"CASE\n    WHEN {numbers[0]} IS NULL THEN {unknown}\n    ELSE {known}\n  END"

    def _number(self, value: float) -> str:
        return literal(value, self.dialect)

    def _own_score(self) -> str:
        """What own decisions and steps compare: positions; but logits themselves, whose positions tie at 1."""
        return self.score if self.rule.scale == "logit" else self._position()

    def _position(self) -> str:
        score, one = self.score, self._number(1.0)
        if self.rule.scale == "percent":
            percent = f"{score} / {self._number(100.0)}"
            if self.dialect.range_fails:  # on a quotient next to 0, in PostgreSQL
                percent = (
                    f"CASE WHEN {score} < {self._number(1e-300)} THEN {self._number(0.0)} ELSE {percent} END"
                )
            return f"({percent})"
        if self.rule.scale != "logit":
            return score
        exponent = f"-({score})"
        if self.dialect.range_fails:
            far = 700.0  # 1 and next to 0, to the last digit that matters
            ends = ((f"> {self._number(far)}", -far), (f"< {self._number(-far)}", far))
            cases = " ".join(f"WHEN {score} {beyond} THEN {self._number(end)}" for beyond, end in ends)
            exponent = f"CASE {cases} ELSE {exponent} END"
        return f"({one} / ({one} + exp({exponent})))"


def _is(columns: Sequence[str], parts: tuple[Part, ...], dialect: Dialect) -> str:
    tests = [
        f"{column} IS NULL" if part is None else f"{column} = {literal(part, dialect)}"
        for column, part in zip(columns, parts, strict=True)
    ]
    return " AND ".join(tests)


def group_code(texts: Sequence[str], labels: Sequence[tuple[str | None, ...]]) -> str:
    """The place of a row's group among many, counted from 1; NULL for all others. DuckDB only.

    Labels become the values of an ENUM type, which finds a text by hashing. A CASE would compare them one by
    one, and a join would not promise to keep the order of the rows.

    Parameters
    ----------
    texts : expressions
        The columns that make the group, as text.
    labels : sequence of tuple
        The groups, one text or None for each column.
    """
    if len(texts) == 1 and all(label[0] is not None for label in labels):
        key, values = texts[0], [label[0] or "" for label in labels]
    else:  # with their lengths, so that ("a", "bc") is not ("ab", "c")
        key = " || ".join(f"CASE WHEN {t} IS NULL THEN '-' ELSE strlen({t}) || ':' || {t} END" for t in texts)
        values = [
            "".join("-" if part is None else f"{len(part.encode())}:{part}" for part in label) for label in labels
        ]
    return f"(enum_code(TRY_CAST({key} AS ENUM({', '.join(map(literal, values))}))) + 1)"


def picked(values: Sequence[float], place: str) -> str:
    """The value at a place, counted from 1. DuckDB only."""
    return f"list_extract([{', '.join(map(literal, values))}], {place})"
