"""Add a rule to a Spark table: SQL expressions, with the key (and ramps, if there are many) joined."""

from typing import Any

from fairramp.data.columns import Columns
from fairramp.data.engines import engine_of
from fairramp.deploy.dialects import SPARK
from fairramp.deploy.formula import FEW_GROUPS, decision, formula_of, kind_of, lookups_of
from fairramp.rule.rule import Rule


def apply(rule: Rule, table: Any, columns: Columns, key: str | None, new: list[str]) -> Any:
    """Select the key, the group, the probability and the decision."""
    from pyspark.sql import functions

    engine, names = engine_of(table), table.collect_schema().names()
    table, plain = engine.plain_names(table)
    frame, columns, schema = table.to_native(), columns.renamed(plain), table.collect_schema()
    kept = [*plain.values()] if key is None else [*plain.values(), "key"]
    if key is not None:
        frame = frame.crossJoin(engine.small_table(frame, {"key": [key]}))
    formula = formula_of(rule, columns, schema, SPARK, _held)
    found: list[list[str] | None] = []
    for i, (given, lookup) in enumerate(zip(lookups_of(rule, columns), formula.lookups, strict=True)):
        if len(lookup.labels) <= FEW_GROUPS:
            found.append(None)
            continue
        own = {f"g{i}_{j}": functions.expr(text) for j, text in enumerate(lookup.columns)}
        frame = frame.withColumns(own)
        labels = zip(given.columns, zip(*lookup.labels, strict=True), strict=True)
        known: dict[str, Any] = {f"k{i}_{j}": _typed(ks, schema[name]) for j, (name, ks) in enumerate(labels)}
        same = [functions.col(g).eqNullSafe(functions.col(k)) for g, k in zip(own, known, strict=True)]
        numbers = {f"{name}{i}": values for name, values in lookup.numbers.items()}
        frame = frame.join(engine.small_table(frame, known | numbers), same, "left")
        found.append([*numbers])
    chance = formula.body(found)
    frame = frame.selectExpr(*kept, f"{formula.guarded(chance)} AS chance")
    drawn = [] if columns.id is None else [decision("chance", "key", f"CAST({columns.id} AS STRING)", SPARK)]
    return frame.selectExpr(*plain.values(), "chance", *drawn).toDF(*names, *new)


def _held(part: Any, dtype: Any) -> Any:
    """An integer label as a double if the column is not of integers; otherwise NaN if it exceeds 64 bits."""
    if type(part) is not int:
        return part
    return float(part) if not dtype.is_integer() else part if -(2**63) <= part < 2**63 else float("nan")


def _typed(labels: tuple[Any, ...], dtype: Any) -> Any:
    """Labels as a column of a small table, with a type that can be compared with the group column."""
    import pyarrow

    kind = float if dtype.is_float() or dtype.is_decimal() else kind_of(dtype)
    types = {int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_(), str: pyarrow.string()}
    return pyarrow.array(labels, types[kind])
