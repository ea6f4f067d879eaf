"""Add the chances and decisions of a rule for several classes to a table in memory, or to a DuckDB relation."""

from collections import Counter
from typing import Any

import narwhals as nw
import numpy as np

from fairramp.core.labels import label_text
from fairramp.data.columns import Columns
from fairramp.data.engines import check_classes_engine, is_lazy
from fairramp.data.tables import open_table, reader
from fairramp.deploy.apply import checked, lazily_checked
from fairramp.deploy.engines import class_duckdb
from fairramp.deploy.engines.memory import decided_by, ids_of, with_new
from fairramp.errors import InputError
from fairramp.rule.class_rule import ClassRule


def apply(
    rule: ClassRule, frame: Any, *, id: str | None = None, key: str | None = None, prefix: str = "", **names: Any
) -> Any:
    """Return a table with new columns; see `ClassRule.apply`.

    `names` holds the column names `class_score`, `group`, `strata` and `group_probability`.
    """
    table, give = open_table(frame)
    if is_lazy(table):
        check_classes_engine(table)
    key, columns, new = checked(table, rule, probability_columns(rule), id, key, prefix, names)
    if id is not None:
        check_types(rule)
    if not is_lazy(table):
        return give(nw.from_native(_in_memory(rule, table, columns, key, new)))
    groups = lazily_checked(table, columns, None)
    if columns.grouped:
        rule.offsets_of(groups)  # raises on unseen groups
    return give(nw.from_native(class_duckdb.apply(rule, table, columns, key, new)))


def probability_columns(rule: ClassRule) -> list[str]:
    """The names of the columns of chances: one per class, each distinct even if case does not matter."""
    names = [f"probability_{label_text(label)}" for label in rule.classes]
    [(name, n)] = Counter(map(str.casefold, names)).most_common(1)
    if n > 1:
        raise InputError(
            "The columns of two classes would have the same name, {name!r}", remedy="rename a class", name=name
        )
    return names


def check_types(rule: ClassRule) -> None:
    """Raise if classes have several types, because a column of decisions has one."""
    if len(set(map(type, rule.classes))) > 1:
        raise InputError(
            "The classes {classes} have several types, and a column of decisions has one",
            remedy="fit again with classes of one type",
            classes=list(rule.classes),
        )


def _in_memory(rule: ClassRule, table: Any, columns: Columns, key: str | None, new: list[str]) -> Any:
    """A table of the same kind with the columns added; an empty one gets empty columns."""
    if not len(table):
        decided = [] if columns.id is None else [rule.labels_of(np.empty(0, np.intp))]
        return with_new(table, new, [*[np.empty(0)] * len(rule.classes), *decided])
    read = reader(table, columns.all)
    scores = dict(zip(rule.classes, map(read, columns.class_scores or ()), strict=True))
    chances = rule.probabilities(scores, *decided_by(rule, read, columns))
    found = [*chances.T]
    if columns.id is not None:
        drawn = rule.drawn(chances, ids=ids_of(read(columns.id)), key=key)
        found.append(rule.labels_of(drawn))
    return with_new(table, new, found)
