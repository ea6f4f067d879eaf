"""SQL for the chance of each row of a table whose columns have types of their own.

'1' is not 1 and True is not 1, though a database would cast one to the other and find them equal. So a group is
compared with a column only if the column can hold its label.
"""

from typing import Any

from fairramp.core.labels import label_parts
from fairramp.data.columns import Columns
from fairramp.deploy.dialects import Dialect, identifier, without_nan
from fairramp.deploy.formula import Formula
from fairramp.rule.rule import Rule

__all__ = ["FEW_GROUPS", "are_few", "compared_columns", "formula_of", "kind_of"]

#: So many groups are told apart by comparing; more are looked up.
FEW_GROUPS = 16


def formula_of(rule: Rule, columns: Columns, schema: Any, dialect: Dialect) -> Formula:
    """A rule's arithmetic, with those of its groups that the columns can hold."""
    assert columns.score is not None
    kinds = [kind_of(schema[name]) for name in columns.grouped]
    parts = [label_parts(label, rule.stratified) for label in rule.groups]
    held = [
        (label, ramp)
        for label, ramp in zip(parts, rule.ramps, strict=True)
        if all(part is None or type(part) is kind for part, kind in zip(label, kinds, strict=True))
    ]
    score = f"CAST({identifier(columns.score, dialect)} AS DOUBLE)"
    return Formula(rule, score, dialect, [label for label, _ in held], [ramp for _, ramp in held])


def are_few(formula: Formula) -> bool:
    """Whether groups are compared one by one."""
    return len(formula.labels) <= FEW_GROUPS


def compared_columns(columns: Columns, schema: Any, dialect: Dialect) -> list[str]:
    """The columns that make a group, as labels are compared with them."""
    return [_compared(identifier(name, dialect), schema[name], dialect) for name in columns.grouped]


def _compared(column: str, dtype: Any, dialect: Dialect) -> str:
    if dtype.is_float() or dtype.is_decimal():
        return without_nan(column, dialect)
    return column if dtype.is_integer() or kind_of(dtype) is bool else f"CAST({column} AS {dialect.text})"


def kind_of(dtype: Any) -> type:
    """The type of the labels that a column can hold."""
    import narwhals as nw

    if dtype == nw.Boolean:
        return bool
    return int if dtype.is_numeric() else str
