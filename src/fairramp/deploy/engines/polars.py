"""Add a rule to a lazy polars table: expressions that pass batches of columns to the NumPy core."""

from dataclasses import replace
from functools import partial
from typing import Any

from fairramp.data.columns import Columns
from fairramp.deploy.engines.memory import decided
from fairramp.rule.rule import Rule


def apply(rule: Rule, table: Any, columns: Columns, key: str | None, new: list[str]) -> Any:
    """Add one expression per new column."""
    import polars

    place = {name: f"c{i}" for i, name in enumerate(columns.all)}
    struct = polars.struct(polars.col(name).alias(short) for name, short in place.items())
    types = (polars.Float64, polars.Int8)

    def compute(batch: Any, which: int) -> Any:
        if not len(batch):
            return polars.Series([], dtype=types[which])
        parts, needed = batch.struct.unnest(), columns if which else replace(columns, id=None)
        return polars.Series(decided(rule, lambda name: parts[place[name]], needed, key)[which])

    return table.to_native().with_columns(
        struct.map_batches(partial(compute, which=i), return_dtype=types[i], is_elementwise=True).alias(name)
        for i, name in enumerate(new)
    )
