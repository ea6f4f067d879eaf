"""Add a rule's probabilities and decisions to a table: arguments are checked here, then passed to its engine."""

from typing import Any

import narwhals as nw
import numpy as np

from fairramp.data.columns import check_new, prefixed
from fairramp.data.engines import engine_of, is_lazy
from fairramp.data.groups import Codes
from fairramp.data.lazy_table import LazyTable, Profile
from fairramp.data.tables import check_columns, open_table
from fairramp.deploy.engines import dask, duckdb, memory, polars, spark
from fairramp.deploy.plan import check_both
from fairramp.errors import InputError
from fairramp.rule.draws import checked_key
from fairramp.rule.rule import Rule

#: The function that adds a rule to a lazy table, by engine.
STEPS = {"dask": dask.apply, "duckdb": duckdb.apply, "polars": polars.apply, "pyspark": spark.apply}


def apply(
    rule: Rule,
    frame: Any,
    *,
    id: str | None = None,
    key: str | None = None,
    prefix: str = "",
    **names: Any,
) -> Any:
    """Return a table with a column `probability` and, with `id` and `key`, a column `decision`; see `Rule.apply`.

    `names` holds the column names `score`, `group`, `strata` and `group_probability`.
    """
    table, give = open_table(frame)
    columns = rule.reading(id=id, **names)
    check_columns(table, columns.all)
    check_both(id=id, key=key)
    key = None if key is None else checked_key(key)
    new = prefixed(prefix, ("probability",) if id is None else ("probability", "decision"))
    engine = engine_of(table) if is_lazy(table) else None
    check_new(new, table.collect_schema().names(), str.casefold if engine and engine.folds_case else str)
    if engine is not None:
        if id is not None:
            _check_id_type(table.collect_schema()[id])
        profile = Profile.of(LazyTable(table, columns), rule.meaning)
        if columns.grouped:
            rule.ramps_of(Codes(np.arange(len(profile.labels)), 0, profile.labels))  # raises on unseen groups
    step = memory.apply if engine is None else STEPS[engine.name]
    return give(nw.from_native(step(rule, table, columns, key, new)))


def _check_id_type(dtype: Any) -> None:
    if not (dtype.is_integer() or dtype in (nw.String, nw.Categorical, nw.Enum)):
        raise InputError(
            "must be strings or integers, got values of type {dtype}",
            argument="ids",
            remedy="convert them to integers, because 12 and 12.0 would get different draws"
            if dtype.is_float() or dtype.is_decimal()
            else "convert them to strings",
            dtype=str(dtype),
        )
