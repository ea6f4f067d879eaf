"""Tables of every engine: fit a rule to the columns of a table.

    in memory (pandas, polars, Arrow)               columns become a `Sample`
    lazy (DuckDB, PySpark, polars LazyFrame, Dask)  sums are computed by the engine (`data.lazy_rows`)

Both give the same rule. Engines are reached through narwhals, and imported only when a
table of theirs comes in.
"""

from collections.abc import Sequence
from typing import Any, Unpack

from fairramp.data.columns import Columns, column_name
from fairramp.data.engines import is_lazy
from fairramp.data.lazy_rows import LazyRows
from fairramp.data.lazy_table import LazyTable, Profile
from fairramp.data.sample import warn_saturated
from fairramp.data.tables import check_columns, open_table, sample_of_table
from fairramp.errors import InputError
from fairramp.fit.fit import fit_rows, fit_sample
from fairramp.fit.settings import Keywords, Settings, taking_settings
from fairramp.rule.rule import Rule


@taking_settings()
def fit_frame(
    frame: Any,
    *,
    score: str,
    group: str | Sequence[str],
    label: str | None = None,
    weight: str | None = None,
    strata: str | Sequence[str] | None = None,
    **settings: Unpack[Keywords],
) -> Rule:
    """Learn a rule from the columns of a table, also from one that is larger than memory.

    The same rule as `fit_rule` of the same rows. From a lazy table nothing comes to Python but sums per group
    and score bin and the few scores near the ramps' ends, in three or four passes; only the targets "accuracy"
    and "base_rate" fetch the columns as a whole. The rule remembers the names of the columns.

    Parameters
    ----------
    frame : table
        pandas, polars, Arrow; lazy: a DuckDB relation, a polars LazyFrame, a Spark or a Dask table. It must give
        the same rows every time it is read.
    score : str
        Name of the score column.
    group : str or list of str
        Name of the group column; several make intersections.
    label, weight : str, optional
        Names of the columns of true outcomes and of row weights.
    strata : str or list of str, optional
        Names of the columns within whose values rates are made equal.
    {settings}

    Returns
    -------
    Rule

    Examples
    --------
    >>> import fairramp, polars
    >>> data = fairramp.datasets.load_adult_scores()
    >>> frame = polars.LazyFrame({"p": data.score, "sex": data.sex, "person": data.id})
    >>> rule = fairramp.fit_frame(frame, score="p", group="sex", max_gap=0.02)
    >>> rule == fairramp.fit_rule(polars.Series("p", data.score), {"sex": data.sex}, max_gap=0.02)
    True
    """
    table, _ = open_table(frame)
    columns = Columns().given(score, group, strata)
    more = {
        role: column_name(role, name) for role, name in (("label", label), ("weight", weight)) if name is not None
    }
    check_columns(table, [*columns.all, *more.values()])
    asked = Settings.of(fit_frame, settings)
    asked.check_rows(
        labeled=label is not None,
        stratified=columns.strata is not None,
        weighted=weight is not None,
        needed="{label}, the column of the true outcomes",
    )
    if is_lazy(table) and asked.sgd is not None:
        raise InputError("{solver:sgd} needs the rows in memory", remedy="collect the table first")
    if is_lazy(table) and not asked.needs_labels:
        lazy = LazyTable(table, columns, weight=weight, label=label)
        profile = Profile.of(lazy, asked.meaning)
        rule = fit_rows(
            LazyRows(lazy, profile, asked.meaning),
            asked,
            columns,
            stratified=columns.strata is not None,
            weighted=weight is not None,
        )
        warn_saturated(profile.saturated)
        return rule
    return fit_sample(sample_of_table(table, columns, asked.meaning, weight=weight, label=label), asked)
