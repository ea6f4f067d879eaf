"""A rule's arithmetic as SQL text.

    CASE WHEN score >= lowest AND score <= highest THEN              otherwise, including NULL and NaN: NULL
      CASE WHEN x <= foot THEN 0                                     x           the position of the score
           WHEN x - foot >= width THEN 1                             foot, width of the row's group
           ELSE (x - foot) / width END
    END                                                              a width of 0: a step, see `plan`

    decision = 1 if draw < probability, else 0
    draw     = first 13 hexadecimal digits of SHA-256(key ‖ ":" ‖ id), as a number, / 2^52

`Rule.apply` uses the same SQL on DuckDB and Spark. CASE is used throughout, because GREATEST and LEAST skip NULL
and would select a person whose score is missing. Most databases sort NaN above all numbers, so the range is
checked first. The comparison with the width comes before the division, so that the division cannot overflow.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fairramp.core.labels import Label, label_parts
from fairramp.core.ramps import Ramp
from fairramp.data.columns import Columns
from fairramp.deploy.dialects import Dialect, identifier, literal, without_nan
from fairramp.deploy.plan import Numbers
from fairramp.rule.rule import Rule

#: Up to this many groups are compared one by one; more are looked up.
FEW_GROUPS = 16

# Layout of the innermost CASE. SQL is never indented afterward, because a label may contain a line break.
_CASE, _WHEN, _END = "CASE\n      ", "\n      ", "\n    END"


def decision(probability: str, key: str, id_text: str, dialect: Dialect) -> str:
    """The decision, 1 or 0; a draw is made only for probabilities between 0 and 1.

    NULL if the probability is NULL, or if a draw is needed and the id or the key is NULL. Both are text.
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
        The rule.
    score : str
        The score, as an expression of type double.
    dialect : Dialect
        The SQL dialect.
    columns : sequence of str
        The group columns, as expressions of the type of the labels.
    labels : sequence of tuple
        The groups that the columns can hold: one value per column.
    ramps : sequence of Ramp
        The ramps of these groups.
    """

    rule: Rule
    score: str
    dialect: Dialect
    columns: Sequence[str]
    labels: Sequence[tuple[Any, ...]]
    ramps: Sequence[Ramp]

    def guarded(self, body: str, also: str = "") -> str:
        """The body if the score is valid, NULL otherwise."""
        low, high = self.rule.meaning.finite_range
        valid = f"{self.score} >= {self._number(low)}\n  AND {self.score} <= {self._number(high)}"
        return f"CASE WHEN {also}{valid} THEN\n  {body}\nEND"

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of the table of ramps: no width if all have the same, no step columns if none is a step."""
        widths = {Numbers.of(self.rule, ramp).width for ramp in self.rule.ramps}
        slope = ("foot", "width") if len(widths) > 1 else ("foot",) if widths != {0.0} else ()
        return slope + (("low", "high", "tie") if 0.0 in widths else ())

    def numbers(self) -> dict[str, list[float]]:
        """The columns of a table of the rule's ramps."""
        found = [Numbers.of(self.rule, ramp)._asdict() for ramp in self.ramps]
        return {name: [numbers[name] for numbers in found] for name in self.names}

    def on_ramp(self, ramp: Ramp) -> str:
        """The probability on one ramp, for a valid score."""
        found = Numbers.of(self.rule, ramp)
        numbers = {name: self._number(n) for name, n in found._asdict().items()}
        return self._slope(numbers) if found.width > 0 else self._step(numbers)

    def _slope(self, numbers: Mapping[str, str]) -> str:
        foot, width, x = numbers["foot"], numbers["width"], self._position()
        return (
            f"{_CASE}WHEN {x} <= {foot} THEN {self._number(0.0)}{_WHEN}"
            f"WHEN {x} - {foot} >= {width} THEN {self._number(1.0)}{_WHEN}ELSE ({x} - {foot}) / {width}{_END}"
        )

    def _step(self, numbers: Mapping[str, str]) -> str:
        score = self._own_score()
        return (
            f"{_CASE}WHEN {score} > {numbers['high']} THEN {self._number(1.0)}{_WHEN}"
            f"WHEN {score} >= {numbers['low']} THEN {numbers['tie']}{_WHEN}ELSE {self._number(0.0)}{_END}"
        )

    def otherwise(self) -> str:
        """The probability for unseen groups: by the rule's policy, or NULL."""
        if self.rule.pooled is not None:
            return self.on_ramp(self.rule.pooled)
        if self.rule.unseen_group == "error":
            return "NULL"
        cutoff, no, yes = map(self._number, (self.rule.own_cutoff, 0.0, 1.0))
        return f"{_CASE}WHEN {self._own_score()} >= {cutoff} THEN {yes}{_WHEN}ELSE {no}{_END}"

    def compared(self) -> str:
        """The probability for a few groups, compared one by one."""
        cases = [
            f"WHEN {self._is(label)} THEN {self.on_ramp(ramp)}"
            for label, ramp in zip(self.labels, self.ramps, strict=True)
        ]
        otherwise = self.otherwise()
        return "\n    ".join(["CASE", *cases, f"ELSE {otherwise}"]) + "\n  END" if cases else otherwise

    def joined(self, columns: Sequence[str]) -> str:
        """The probability for many groups; `columns` hold their `numbers`, or NULL for an unseen group."""
        width = Numbers.of(self.rule, self.rule.ramps[0]).width
        numbers = {"width": self._number(width)} | dict(zip(self.names, columns, strict=True))
        slope = self._slope(numbers) if "foot" in numbers else ""
        step = self._step(numbers) if "low" in numbers else ""
        either = f"CASE WHEN {numbers['width']} > {self._number(0.0)} THEN {slope}\n    ELSE {step} END"
        known = either if slope and step else slope or step
        return f"CASE\n    WHEN {columns[0]} IS NULL THEN {self.otherwise()}\n    ELSE {known}\n  END"

    def _is(self, label: tuple[Any, ...]) -> str:
        return " AND ".join(
            f"{column} IS NULL" if part is None else f"{column} = {literal(part, self.dialect)}"
            for column, part in zip(self.columns, label, strict=True)
        )

    def _number(self, value: float) -> str:
        return literal(value, self.dialect)

    def _own_score(self) -> str:
        """What cutoffs and steps are compared with: see `Scale.compared`."""
        return self._turned(self.score) if self.rule.meaning.is_unbounded else self._position()

    def _turned(self, number: str) -> str:
        """A number with higher ones better, from one in the direction of the scores."""
        return number if self.rule.higher_is_better else f"(-{number})"

    def _position(self) -> str:
        score, number = self.score, self._number
        share, exponent = f"{score} / {number(100.0)}", f"-({score})"
        if self.dialect.range_fails:
            # Underflow is an error in PostgreSQL; logits beyond ±700 are 1 or 0 in double precision.
            share = f"CASE WHEN {score} < {number(1e-300)} THEN {number(0.0)} ELSE {share} END"
            far, less = number(700.0), number(-700.0)
            cases = f"WHEN {score} > {far} THEN {less} WHEN {score} < {less} THEN {far}"
            exponent = f"CASE {cases} ELSE {exponent} END"
        logit = f"({number(1.0)} / ({number(1.0)} + exp({exponent})))"
        half, quarter, one = number(0.5), number(0.25), number(1.0)
        real = (
            f"(CASE WHEN {score} > {half} THEN {one} - {quarter} / {score} "
            f"WHEN {score} < {number(-0.5)} THEN {number(-1.0)} - {quarter} / {score} ELSE {score} END)"
        )
        converted = {"percent": f"({share})", "logit": logit, "real": real}
        return self._turned(converted.get(self.rule.scale, score))


def formula_of(
    rule: Rule,
    columns: Columns,
    schema: Any,
    dialect: Dialect,
    held: Callable[[Any, Any], Any] = lambda part, dtype: part,
) -> Formula:
    """A rule's arithmetic on a table with typed columns.

    '1' is not 1 and True is not 1, though a database would cast one to the other and find them equal. So columns
    are compared only with groups that they can hold. `held` converts a label to the engine's value in a column of
    some type, or to NaN if the column cannot hold it.
    """
    types = [schema[name] for name in columns.grouped]

    def parts_of(label: Label) -> tuple[Any, ...]:
        return tuple(
            None if part is None else held(part, dtype) if type(part) is kind_of(dtype) else float("nan")
            for part, dtype in zip(label_parts(label, rule.stratified), types, strict=True)
        )

    cells = zip(map(parts_of, rule.groups), rule.ramps, strict=True)
    known = [(parts, ramp) for parts, ramp in cells if all(part == part for part in parts)]
    return Formula(
        rule,
        f"CAST({identifier(columns.score or '', dialect)} AS DOUBLE)",
        dialect,
        [_compared(identifier(name, dialect), schema[name], dialect) for name in columns.grouped],
        [parts for parts, _ in known],
        [ramp for _, ramp in known],
    )


def _compared(column: str, dtype: Any, dialect: Dialect) -> str:
    """A column as an expression to compare labels with."""
    if dtype.is_float() or dtype.is_decimal():
        return without_nan(column, dialect)
    return column if dtype.is_integer() or kind_of(dtype) is bool else f"CAST({column} AS {dialect.text})"


def kind_of(dtype: Any) -> type:
    """The type of labels that a column can hold."""
    import narwhals as nw

    if dtype == nw.Boolean:
        return bool
    return int if dtype.is_numeric() else str
