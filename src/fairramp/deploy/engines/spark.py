"""A rule added to a table of Spark: expressions of its own; the key, and ramps if there are many, are joined."""

from typing import Any

from fairramp.data.columns import Columns
from fairramp.data.engines import engine_of
from fairramp.deploy.dialects import SPARK
from fairramp.deploy.engines.sql_groups import are_few, compared_columns, formula_of, kind_of
from fairramp.deploy.formula import Formula, decision
from fairramp.rule.rule import Rule

__all__ = ["apply"]


def apply(rule: Rule, table: Any, columns: Columns, key: str | None, new: list[str]) -> Any:
    """Selections of the table: the key, the group, the chance, the draw."""
    import narwhals as nw
    from pyspark.sql import functions

    engine, names = engine_of(table), table.collect_schema().names()
    table, plain = engine.plain_names(table)
    frame, columns, schema = table.to_native(), columns.renamed(plain), table.collect_schema()
    kept = [*plain.values()]
    if key is not None:
        frame = frame.crossJoin(engine.small_table(frame, {"key": [key]}))
        kept.append("key")
    types = [schema[name] for name in columns.grouped]
    formula = _as_held(formula_of(rule, columns, schema, SPARK), types)
    groups = compared_columns(columns, schema, SPARK)
    if are_few(formula):
        chance = formula.compared(groups)
    else:
        frame = frame.withColumns({f"g{i}": functions.expr(text) for i, text in enumerate(groups)})
        labels = zip(zip(*formula.labels, strict=True), types, strict=True)
        known: dict[str, Any] = {f"k{i}": _typed(*column) for i, column in enumerate(labels)}
        small = engine.small_table(frame, known | formula.numbers())
        same = [functions.col(f"g{i}").eqNullSafe(functions.col(f"k{i}")) for i in range(len(groups))]
        frame = frame.join(small, same, "left")
        chance = formula.joined(formula.names)
    frame = frame.selectExpr(*kept, f"{formula.guarded(chance)} AS chance")
    made = ["chance AS new0"]
    if columns.id is not None:
        made.append(f"{decision('chance', 'key', f'CAST({columns.id} AS STRING)', SPARK)} AS new1")
    return nw.from_native(frame.selectExpr(*plain.values(), *made).toDF(*names, *new))


def _as_held(formula: Formula, types: list[Any]) -> Formula:
    """With labels that are doubles where columns of numbers are no integers, and that fit where they are."""

    def held(part: Any, dtype: Any) -> Any:
        return float(part) if type(part) is int and not dtype.is_integer() else part

    pairs = [
        (tuple(map(held, label, types)), ramp) for label, ramp in zip(formula.labels, formula.ramps, strict=True)
    ]
    fits = [
        (label, ramp)
        for label, ramp in pairs
        if all(-(2**63) <= part < 2**63 for part in label if type(part) is int)
    ]
    return formula._replace(labels=[label for label, _ in fits], ramps=[ramp for _, ramp in fits])


def _typed(labels: tuple[Any, ...], dtype: Any) -> Any:
    """Labels as a column of a small table, of a type that can be compared with the group column."""
    import pyarrow

    kind = float if dtype.is_float() or dtype.is_decimal() else kind_of(dtype)
    types = {int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_(), str: pyarrow.string()}
    return pyarrow.array(labels, types[kind])
