"""The one door for tables of every engine: fit a rule to a table, apply a rule to a table.

    in memory (pandas, polars, Arrow)             columns go to the NumPy core and come back as columns
    lazy (DuckDB, PySpark, polars LazyFrame, Dask)  sums are computed by the engine (`lazy_rows`); a rule becomes
                                                  an expression (`export.formula`), or a function of the engine's
                                                  own batches, and the table stays lazy

Both give the same rule and the same decisions. Engines are reached through narwhals, and imported only when a
table of theirs comes in.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fairramp.data.columns import column_name, column_names
from fairramp.data.engines import is_lazy
from fairramp.data.lazy_rows import LazyRows
from fairramp.data.lazy_table import LazyTable, Profile
from fairramp.data.sample import Names, warn_saturated
from fairramp.data.tables import check_columns, open_table, reader
from fairramp.errors import InputError
from fairramp.fit.criteria.strata import Covariance
from fairramp.fit.fit import fit_rows, fit_rule
from fairramp.fit.settings import Request, checked_strata
from fairramp.fit.sgd import SGD
from fairramp.rule.rule import Rule

__all__ = [
    "fit_frame",
]


def fit_frame(
    frame: Any,
    *,
    score: str,
    group: str | Sequence[str],
    label: str | None = None,
    weight: str | None = None,
    max_gap: float = 0.0,
    ramp_width: float = 0.01,
    ramp: str = "centered",
    target_rate: str | float = "optimal",
    cutoff: float | None = None,
    scale: str = "probability",
    unseen_group: str = "error",
    criterion: Covariance | None = None,
    solver: str | SGD = "exact",
    date: str | None = None,
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
    max_gap, ramp_width, ramp, target_rate, cutoff, scale, unseen_group, solver, date
        As in `fit_rule`.
    criterion : Covariance, optional
        As in `fit_rule`, but ``Covariance(strata=…)`` names the columns that hold the strata.

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
    strata = checked_strata(criterion)
    groups, outer = column_names("group", group), () if strata is None else column_names("strata", strata)
    columns = [column_name("score", score), *groups, *outer]
    columns += [
        column_name(role, name) for role, name in (("label", label), ("weight", weight)) if name is not None
    ]
    check_columns(table, columns)
    settings: dict[str, Any] = {
        "max_gap": max_gap,
        "ramp_width": ramp_width,
        "ramp": ramp,
        "target_rate": target_rate,
        "cutoff": cutoff,
        "scale": scale,
        "unseen_group": unseen_group,
        "solver": solver,
        "date": date,
    }
    request = Request.checked(**settings, stratified=bool(outer))
    if request.needs_labels and label is None:
        raise InputError(f"`target_rate={target_rate!r}` needs `label`, the column of the true outcomes.")
    lazy = is_lazy(table)
    if lazy and request.sgd is not None:
        raise InputError("`solver='sgd'` needs the rows in memory; collect the table first.")
    if lazy and not request.needs_labels:
        rows = LazyTable(table, score, groups, outer, weight=weight, label=label)
        profile = Profile.of(rows, request.scale)
        names = Names(score, groups, outer or None)
        rule = fit_rows(LazyRows(rows, profile, request.scale), request, names, weighted=weight is not None)
        warn_saturated(profile.saturated)
        return rule

    read = reader(table, columns)
    rule = fit_rule(
        read(score),
        {name: read(name) for name in groups},
        None if label is None else read(label),
        sample_weight=None if weight is None else read(weight),
        criterion=Covariance(strata={name: read(name) for name in outer}) if outer else None,
        **settings,
    )
    assert rule.record is not None
    return replace(rule, record=replace(rule.record, score_column=score))


# The door -------------------------------------------------------------------------------------
