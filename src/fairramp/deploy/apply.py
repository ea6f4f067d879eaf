"""Add a rule's probabilities and decisions to a table: arguments are checked here, then passed to its engine."""

from typing import Any

import narwhals as nw
import numpy as np

from fairramp.core.scales import Scale
from fairramp.data.columns import Columns, check_new, prefixed
from fairramp.data.engines import engine_of, is_lazy
from fairramp.data.groups import Codes
from fairramp.data.lazy_table import LazyTable, Profile
from fairramp.data.tables import check_columns, open_table
from fairramp.deploy.engines import dask, duckdb, memory, polars, spark
from fairramp.deploy.plan import check_both
from fairramp.errors import InputError
from fairramp.rule.class_rule import ClassRule
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
    key, columns, new = checked(table, rule, ["probability"], id, key, prefix, names)
    step = memory.apply
    if is_lazy(table):
        labels = lazily_checked(table, columns, rule.meaning)
        if columns.grouped:
            rule.ramps_of(labels)  # raises on unseen groups
        step = STEPS[engine_of(table).name]
    return give(nw.from_native(step(rule, table, columns, key, new)))


def checked(
    table: Any,
    rule: Rule | ClassRule,
    probabilities: list[str],
    id: str | None,
    key: str | None,
    prefix: str,
    names: dict[str, Any],
) -> tuple[str | None, Columns, list[str]]:
    """The checked key, the columns to read, and the names of the new ones."""
    columns = rule.reading(id=id, **names)
    roles = {"score": (columns.score,), "group": columns.groups, "strata": columns.strata}
    own = {str(name): role for role, found in roles.items() if names.get(role) is None for name in found or ()}
    check_columns(table, columns.all, own)
    check_both(id=id, key=key)
    new = prefixed(prefix, [*probabilities, *([] if id is None else ["decision"])])
    folds = is_lazy(table) and engine_of(table).folds_case
    check_new(new, table.collect_schema().names(), str.casefold if folds else str)
    return None if key is None else checked_key(key), columns, new


def lazily_checked(table: Any, columns: Columns, scale: Scale | None) -> Codes:
    """One pass over a lazy table, which raises if values are invalid; returns its groups."""
    if columns.id is not None:
        _check_id_type(table.collect_schema()[columns.id])
    labels = Profile.of(LazyTable(table, columns), scale, may_be_empty=True).labels
    return Codes(np.arange(len(labels)), 0, labels)


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
