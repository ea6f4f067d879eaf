"""Add a rule to a table in memory, with the NumPy core."""

from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from fairramp.data.columns import Columns
from fairramp.data.probable import GroupProbabilities
from fairramp.data.tables import reader
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.draws import decide
from fairramp.rule.rule import Rule


def apply(rule: Rule, table: Any, columns: Columns, key: str | None, new: list[str]) -> Any:
    """Add the columns to a table of the same kind; an empty one gets empty columns."""
    if not len(table):
        return with_new(table, new, [np.empty(0), np.empty(0, np.int8)][: len(new)])
    return with_new(table, new, decided(rule, reader(table, columns.all), columns, key))


def with_new(table: Any, new: Sequence[str], found: Sequence[Any]) -> Any:
    """A table of the same kind with new columns."""
    made = zip(new, found, strict=True)
    return table.with_columns(
        nw.new_series(name, values, backend=table.implementation) for name, values in made
    ).to_native()


def decided(rule: Rule, read: Callable[[str], Any], columns: Columns, key: str | None) -> list[Any]:
    """Probabilities and, with an id column, decisions."""
    assert columns.score is not None
    groups, strata = decided_by(rule, read, columns)
    chances = rule.probabilities(read(columns.score), groups, strata)
    drawn = [] if columns.id is None else [decide(chances, ids=ids_of(read(columns.id)), key=key)]
    return [chances, *drawn]


def decided_by(rule: Rule | ClassRule, read: Callable[[str], Any], columns: Columns) -> tuple[Any, Any]:
    """Groups or group probabilities, and strata, under the names of the fit."""

    def mapping(names: tuple[str, ...] | None, as_fitted: tuple[str, ...] | None) -> dict[str, Any] | None:
        pairs = zip(as_fitted or names or (), names or (), strict=True)
        return {fitted: read(name) for fitted, name in pairs} or None

    strata = mapping(columns.strata, rule.columns.strata)
    if rule.membership == "probabilities":
        return GroupProbabilities(dict(enumerate(map(read, columns.probabilities or ()))), rule.groups), strata
    return mapping(columns.groups, rule.columns.groups), strata


def ids_of(column: Any) -> Any:
    """Ids for NumPy; integers with nulls become objects, so that the error is about the null."""
    series = nw.from_native(column, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return column
    if series.dtype in (nw.Categorical, nw.Enum):
        series = series.cast(nw.String)
    return series.to_list() if series.dtype == nw.String or series.null_count() else series.to_numpy()
