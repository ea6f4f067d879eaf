"""A rule's arithmetic as SQL text.

    CASE WHEN score >= lowest AND score <= highest THEN              otherwise, including NULL and NaN: NULL
      CASE WHEN x <= foot THEN 0                                     x           the position of the score
           WHEN x - foot >= width THEN 1                             foot, width of the row's group
           ELSE (x - foot) / width END
    END                                                              a width of 0: a step, see `plan`

    decision = 1 if draw < probability, else 0
    draw     = first 13 hexadecimal digits of SHA-256(key ‖ ":" ‖ id), as a number, / 2^52

If a rule mixes ramps, the foot is an expression as well, and the width a number:

    center + (q_1 · shift_1 + q_2 · shift_2 + …)                     q_k         group probabilities, checked
    base + (shift of a value + shift of a value + …)                 NULL for a value that the rule does not know

`Rule.apply` uses the same SQL on DuckDB and Spark. CASE is used throughout, because GREATEST and LEAST skip NULL
and would select a person whose score is missing. Most databases sort NaN above all numbers, so the range is
checked first. The comparison with the width comes before the division, so that the division cannot overflow.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fairramp.core.labels import Label, label_parts
from fairramp.core.ramps import Ramp
from fairramp.data.columns import Columns
from fairramp.data.probable import SUM_TOLERANCE
from fairramp.deploy.dialects import Dialect, identifier, literal, without_nan
from fairramp.deploy.plan import Mixture, Numbers
from fairramp.rule.rule import Rule

#: Up to this many groups are compared one by one; more are looked up.
FEW_GROUPS = 16

# Layout of the innermost CASE. SQL is never indented afterward, because a label may contain a line break.
_CASE, _WHEN, _END = "CASE\n      ", "\n      ", "\n    END"


def decision(probability: str, key: str, id_text: str, dialect: Dialect) -> str:
    """The decision, 1 or 0; a draw is made only for probabilities between 0 and 1.

    NULL if the probability is NULL, or if a draw is needed and the id or the key is NULL. Both are text.
    """
    zero, one = literal(0.0, dialect), literal(1.0, dialect)
    return (
        f"CAST(CASE\nWHEN {probability} <= {zero} THEN 0\nWHEN {probability} >= {one} THEN 1\n"
        f"ELSE CAST({draw(key, id_text, dialect)}\n< {probability} AS {dialect.whole})\nEND AS {dialect.small})"
    )


def draw(key: str, id_text: str, dialect: Dialect) -> str:
    """The draw of an id; NULL if the id or the key is NULL."""
    assert dialect.draw is not None
    digits = dialect.draw.format(message=dialect.message.format(key=key, id=id_text))
    return f"{digits} / {literal(2.0**52, dialect)}"


class Lookup(NamedTuple):
    """Numbers that depend on a row's labels.

    Attributes
    ----------
    columns : sequence of str
        Names of the columns or, in a formula, expressions of the type of the labels.
    labels : sequence of tuple
        What the columns can hold: one value per column.
    numbers : dict of lists
        Numbers of each label, by name.
    ramps : sequence of Ramp
        The ramp of each label, unless ramps are mixed.
    """

    columns: Sequence[str]
    labels: Sequence[tuple[Any, ...]]
    numbers: Mapping[str, Sequence[float]]
    ramps: Sequence[Ramp] = ()

    def holding(self, columns: Sequence[str], labels: Sequence[tuple[Any, ...]]) -> "Lookup":
        """With expressions for the columns, and without labels that are NaN because no column can hold them."""
        which = [i for i, parts in enumerate(labels) if all(part == part for part in parts)]
        return Lookup(
            columns,
            [labels[i] for i in which],
            {name: [numbers[i] for i in which] for name, numbers in self.numbers.items()},
            [self.ramps[i] for i in which] if self.ramps else (),
        )

    def conditions(self, dialect: Dialect) -> list[str]:
        """Whether a row has a label, for each of the labels."""
        return [
            " AND ".join(
                f"{column} IS NULL" if part is None else f"{column} = {literal(part, dialect)}"
                for column, part in zip(self.columns, label, strict=True)
            )
            for label in self.labels
        ]


def lookups_of(rule: Rule, columns: Columns) -> list[Lookup]:
    """What a rule looks up: the ramp of the group or, for "each", the shift of every attribute's value."""
    if rule.mixes:
        mixture = Mixture.of(rule)
        each = zip(columns.grouped, mixture.values, mixture.shifts, strict=False)  # no values for "probabilities"
        return [Lookup([name], [(value,) for value in values], {"shift": by}) for name, values, by in each]
    numbers = [Numbers.of(rule, ramp)._asdict() for ramp in rule.ramps]
    widths = {found["width"] for found in numbers}
    # No width if all have the same, no step columns if none is a step.
    slope = ("foot", "width") if len(widths) > 1 else ("foot",) if widths != {0.0} else ()
    names = slope + (("low", "high", "tie") if 0.0 in widths else ())
    labels = [label_parts(label, rule.stratified) for label in rule.groups]
    found = {name: [each[name] for each in numbers] for name in names}
    return [Lookup(columns.grouped, labels, found, rule.ramps)]


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
    lookups : sequence of Lookup
        Numbers that depend on the row's labels.
    chances : sequence of str
        The group probabilities, as expressions of type double, in the order of the rule's groups.
    """

    rule: Rule
    score: str
    dialect: Dialect
    lookups: Sequence[Lookup]
    chances: Sequence[str] = ()

    def guarded(self, body: str, also: str = "") -> str:
        """The body if the score and any group probabilities are valid, NULL otherwise."""
        low, high = self.rule.meaning.finite_range
        valid = [f"{self.score} >= {self._number(low)}", f"{self.score} <= {self._number(high)}"]
        if self.chances:
            zero, one, most, off = map(self._number, (0.0, 1.0, 1.0 + SUM_TOLERANCE, SUM_TOLERANCE))
            valid += [f"{chance} >= {zero} AND {chance} <= {most}" for chance in self.chances]
            excess = f"{' + '.join(self.chances)} - {one}"
            valid += [f"{excess} >= {self._number(-SUM_TOLERANCE)}", f"{excess} <= {off}"]
        conditions = "\n  AND ".join(valid)
        return f"CASE WHEN {also}{conditions} THEN\n  {body}\nEND"

    def body(self, found: Sequence[Sequence[str] | None]) -> str:
        """The probability for a valid score.

        `found` has, for each of the `lookups`, the columns that hold its numbers, or NULL for unseen labels; or
        None to compare the labels one by one.
        """
        if self.rule.mixes:
            return self._mixed(found)
        (columns,) = found
        return self._compared() if columns is None else self._joined(columns)

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

    def _compared(self) -> str:
        """The probability for a few groups, compared one by one."""
        (lookup,) = self.lookups
        pairs = zip(lookup.conditions(self.dialect), lookup.ramps, strict=True)
        cases = [f"WHEN {condition} THEN {self.on_ramp(ramp)}" for condition, ramp in pairs]
        otherwise = self.otherwise()
        return "\n    ".join(["CASE", *cases, f"ELSE {otherwise}"]) + "\n  END" if cases else otherwise

    def _joined(self, columns: Sequence[str]) -> str:
        """The probability for many groups; `columns` hold their numbers, or NULL for an unseen group."""
        width = Numbers.of(self.rule, self.rule.ramps[0]).width
        names = self.lookups[0].numbers
        numbers = {"width": self._number(width)} | dict(zip(names, columns, strict=True))
        slope = self._slope(numbers) if "foot" in numbers else ""
        step = self._step(numbers) if "low" in numbers else ""
        either = f"CASE WHEN {numbers['width']} > {self._number(0.0)} THEN {slope}\n    ELSE {step} END"
        known = either if slope and step else slope or step
        return f"CASE\n    WHEN {columns[0]} IS NULL THEN {self.otherwise()}\n    ELSE {known}\n  END"

    def _mixed(self, found: Sequence[Sequence[str] | None]) -> str:
        """The probability on a mixture of ramps."""
        mixture = Mixture.of(self.rule)
        ramp, each = mixture.ramp, self.rule.membership == "each"
        shifts = [
            self._shift(lookup) if columns is None else columns[0]
            for lookup, columns in zip(self.lookups, found, strict=True)
        ] or self._weighted(mixture.shifts[0])
        known = self.on_ramp(ramp)
        if shifts and 0 < ramp.width < math.inf:
            foot = f"({self._number(ramp.foot)} + ({' + '.join(shifts)}))"
            known = self._slope({"foot": foot, "width": self._number(ramp.width)})
        if not each:
            return known
        unseen = f"{' + '.join(shifts)} IS NULL"
        return f"CASE\n    WHEN {unseen} THEN {self.otherwise()}\n    ELSE {known}\n  END"

    def _shift(self, lookup: Lookup) -> str:
        """The shift of a row's value, compared with a few values one by one; NULL for an unseen value."""
        pairs = zip(lookup.conditions(self.dialect), lookup.numbers["shift"], strict=True)
        cases = [f"WHEN {condition} THEN {self._number(shift)}" for condition, shift in pairs]
        nothing = f"CAST(NULL AS {self.dialect.double})"
        return f"CASE {' '.join(cases)} END" if cases else nothing

    def _weighted(self, shifts: Sequence[float]) -> list[str]:
        """Each group's shift, multiplied by the group's probability; without shifts of 0."""
        pairs = [(q, self._number(shift)) for q, shift in zip(self.chances, shifts, strict=True) if shift]
        if not self.dialect.range_fails:
            return [f"{q} * {shift}" for q, shift in pairs]
        zero, least = self._number(0.0), self._number(1e-300)  # underflow is an error in PostgreSQL
        return [f"CASE WHEN {q} < {least} THEN {zero} ELSE {q} * {shift} END" for q, shift in pairs]

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
    """A rule's arithmetic on a table with typed columns; `held` as in `typed_lookup`."""
    score, *chances = (
        f"CAST({identifier(name or '', dialect)} AS DOUBLE)"
        for name in (columns.score, *(columns.probabilities or ()))
    )
    lookups = [typed_lookup(lookup, schema, dialect, held) for lookup in lookups_of(rule, columns)]
    return Formula(rule, score, dialect, lookups, chances)


def typed_lookup(
    lookup: Lookup,
    schema: Any,
    dialect: Dialect,
    held: Callable[[Any, Any], Any] = lambda part, dtype: part,
) -> Lookup:
    """A lookup in a table with typed columns.

    '1' is not 1 and True is not 1, though a database would cast one to the other and find them equal. So columns
    are compared only with groups that they can hold. `held` converts a label to the engine's value in a column of
    some type, or to NaN if the column cannot hold it.
    """

    def held_by(part: Label, dtype: Any) -> Any:
        return None if part is None else held(part, dtype) if type(part) is kind_of(dtype) else float("nan")

    types = [schema[name] for name in lookup.columns]
    return lookup.holding(
        [_compared(identifier(name, dialect), schema[name], dialect) for name in lookup.columns],
        [tuple(map(held_by, label, types)) for label in lookup.labels],
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
