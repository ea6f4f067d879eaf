"""Fit a rule for several classes to the columns of a table.

    in memory (pandas, polars, Arrow)   columns become a `ClassSample`
    DuckDB                              the engine computes sums; only rows in doubt are loaded (`fit.class_lazy`)

Both give the same rule.
"""

from dataclasses import replace
from typing import Any

from fairramp.core.labels import Label
from fairramp.data.classes import ClassSample, checked_classes
from fairramp.data.columns import Columns
from fairramp.data.engines import check_classes_engine, is_lazy
from fairramp.data.probable import GroupProbabilities
from fairramp.data.tables import reader
from fairramp.errors import UnsupportedError
from fairramp.fit.class_lazy import LazyClassRows
from fairramp.fit.classes import ClassSettings, check_policy, fit_class_rows, fit_class_sample
from fairramp.fit.few_scores import warn_certain
from fairramp.rule.class_rule import ClassRule


def fit_class_frame(
    table: Any,
    classes: tuple[Label, ...],
    columns: Columns,
    groups: tuple[Label, ...],
    weight: str | None,
    settings: ClassSettings,
) -> ClassRule:
    """Fit a rule to a table that has all the columns; `groups` are those of the columns of probabilities."""
    classes = checked_classes(classes)
    if groups and columns.strata is not None:
        raise UnsupportedError("Group probabilities do not support {strata}", remedy="remove one of the two")
    check_policy(settings, soft=bool(groups))
    if is_lazy(table):
        check_classes_engine(table)
        rows = LazyClassRows(table, columns, groups, weight)
        rule = fit_class_rows(rows, classes, columns, settings, weighted=weight is not None)
        if rows.all_certain:
            warn_certain(rule)
        return rule
    read = reader(table, columns.all)
    names = columns.class_scores or ()
    sample = ClassSample.of_arrays(
        {label: read(name) for label, name in zip(classes, names, strict=True)},
        GroupProbabilities(dict(zip(groups, map(read, columns.probabilities or ()), strict=True)))
        if groups
        else {name: read(name) for name in columns.groups or ()},
        strata={name: read(name) for name in columns.strata} if columns.strata else None,
        sample_weight=None if weight is None else reader(table, [weight])(weight),
    )
    return fit_class_sample(replace(sample, columns=columns), settings)
