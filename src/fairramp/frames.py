"""The one door for tables of every engine: fit a rule to a table, apply a rule to a table.

    in memory (pandas, polars, Arrow)             columns go to the NumPy core and come back as columns
    lazy (DuckDB, PySpark, polars LazyFrame, Dask)  sums are computed by the engine (`lazy_rows`); a rule becomes
                                                  an expression (`export.formula`), or a function of the engine's
                                                  own batches, and the table stays lazy

Both give the same rule and the same decisions. Engines are reached through narwhals, and imported only when a
table of theirs comes in.
"""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairramp.applying import apply_dask, apply_duckdb, apply_eager, apply_polars, apply_spark, reader
from fairramp.binned import GroupScores, check_weights, summarize
from fairramp.columns import Columns, check_new, column_name, column_names, prefixed
from fairramp.criteria.covariance import Covariance
from fairramp.criteria.sgd import SGD
from fairramp.decisions import checked_key
from fairramp.engines import is_lazy
from fairramp.exceptions import InputError
from fairramp.fitting import fit_rows, fit_rule, warn_saturated
from fairramp.grid import Grid
from fairramp.groups import Codes
from fairramp.lazy_rows import LazyRows
from fairramp.lazy_table import LazyTable, Profile
from fairramp.request import Names, Request, checked_strata
from fairramp.rule import Rule
from fairramp.scales import SCALES

__all__ = ["apply", "fit_frame", "summarize_frame"]

#: Whose lazy tables are read.
LAZY_ENGINES = ("dask", "duckdb", "polars", "pyspark")


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
    table, _ = _narwhal(frame)
    strata = checked_strata(criterion)
    groups, outer = column_names("group", group), () if strata is None else column_names("strata", strata)
    columns = [column_name("score", score), *groups, *outer]
    columns += [
        column_name(role, name) for role, name in (("label", label), ("weight", weight)) if name is not None
    ]
    _check_columns(table, columns)
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


def summarize_frame(
    frame: Any,
    *,
    score: str,
    group: str | Sequence[str],
    weight: str | None = None,
    strata: str | Sequence[str] | None = None,
    scale: str = "probability",
    cutoff: float | None = None,
    resolution: int = 4096,
) -> GroupScores:
    """Summarise the columns of a table; see `summarize`.

    Of a lazy table the engine computes the sums, in one pass after one that checks the columns; no row comes to
    Python.

    Parameters
    ----------
    frame : table
        As for `fit_frame`.
    score, group, weight, strata : str, or list of str for `group` and `strata`
        Names of the columns, which the summary remembers.
    scale, cutoff, resolution
        As in `summarize`.

    Returns
    -------
    GroupScores

    Examples
    --------
    >>> import fairramp, polars
    >>> data = fairramp.datasets.load_adult_scores()
    >>> frame = polars.LazyFrame({"p": data.score, "sex": data.sex})
    >>> summary = fairramp.summarize_frame(frame, score="p", group="sex")
    >>> summary.rows, summary.group_columns
    ((8094, 16327), ('sex',))
    """
    grid = Grid.checked(scale, resolution, cutoff)
    table, _ = _narwhal(frame)
    groups, outer = column_names("group", group), () if strata is None else column_names("strata", strata)
    columns = [
        column_name("score", score),
        *groups,
        *outer,
        *([] if weight is None else [column_name("weight", weight)]),
    ]
    _check_columns(table, columns)
    names = Names(score, groups, outer or None)
    if is_lazy(table):
        rows = LazyTable(table, score, groups, outer, weight=weight)
        profile = Profile.of(rows, grid.scale)
        if weight is not None:
            check_weights(profile.largest_weight)
        summary = LazyRows(rows, profile, grid.scale).binned(grid)
        warn_saturated(profile.saturated)
        return GroupScores(grid, summary, weight is not None, bool(outer), names)
    read = reader(table, columns)
    found = summarize(
        read(score),
        {name: read(name) for name in groups},
        sample_weight=None if weight is None else read(weight),
        strata={name: read(name) for name in outer} if outer else None,
        scale=scale,
        cutoff=cutoff,
        resolution=resolution,
    )
    return replace(found, names=names)


def apply(
    rule: Rule,
    frame: Any,
    *,
    score: str | None = None,
    group: str | Sequence[str] | None = None,
    strata: str | Sequence[str] | None = None,
    id: str | None = None,
    key: str | None = None,
    prefix: str = "",
) -> Any:
    """Return a table with the columns `probability` and, with `id` and `key`, `decision`; see `Rule.apply`."""
    table, give = _narwhal(frame)
    columns = Columns.of(rule, score, group, strata, id)
    _check_columns(table, [*columns.all])
    if (id is None) != (key is None):
        absent = "key" if key is None else "id"
        raise InputError(f"Repeatable decisions need both `id` and `key`; `{absent}` is missing.")
    if key is not None:
        key = checked_key(key)
    new = prefixed(prefix, ("probability",) if id is None else ("probability", "decision"))
    fold = str.casefold if _engine(table) in ("duckdb", "pyspark") else str
    check_new(new, table.collect_schema().names(), fold)
    if not is_lazy(table):
        return give(apply_eager(rule, table, columns, key, new))
    if id is not None:
        _check_id_type(table, id)
    rows = LazyTable(table, columns.score, columns.groups, columns.strata, id=id)
    profile = Profile.of(rows, SCALES[rule.scale])
    rule.ramps_of(Codes(np.arange(len(profile.labels)), 0, profile.labels))  # refuses unseen groups
    by_engine = {"dask": apply_dask, "duckdb": apply_duckdb, "polars": apply_polars, "pyspark": apply_spark}
    return give(by_engine[_engine(table)](rule, table, columns, key, new))


# The door -------------------------------------------------------------------------------------


def _narwhal(frame: Any) -> tuple[Any, Callable[[Any], Any]]:
    """A table seen through narwhals, and what turns one back into the user's kind."""
    import narwhals as nw

    try:
        table = nw.from_native(frame, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise InputError("Two columns of the table have the same name; rename one of them.") from None
    if not isinstance(table, nw.DataFrame | nw.LazyFrame):
        raise InputError(
            "`frame` must be a pandas, polars or Arrow table, a polars LazyFrame, a DuckDB relation, a Spark or "
            f"a Dask table, got {type(frame).__name__}; for arrays there is fit_rule."
        )
    if isinstance(table, nw.LazyFrame) and _engine(table) not in LAZY_ENGINES:
        raise InputError(f"Lazy tables of {_engine(table)} are not read; collect the columns first.")
    if isinstance(table, nw.LazyFrame):
        _check_sound(table.to_native(), _engine(table))
    return table, (lambda done: done) if isinstance(frame, nw.DataFrame | nw.LazyFrame) else nw.to_native


def _check_sound(native: Any, engine: str) -> None:
    """Refuse what narwhals lets pass: two columns of one name, and Spark's endless tables."""
    if engine == "pyspark" and native.isStreaming:
        raise InputError("A streaming table cannot be read more than once; pass its batches, in foreachBatch.")
    names = list(native.columns) if engine in ("dask", "pyspark") else []
    if len(set(names)) < len(names):
        raise InputError("Two columns of the table have the same name; rename one of them.")


def _engine(table: Any) -> str:
    return str(table.implementation.value)


def _check_columns(table: Any, names: Sequence[str]) -> None:
    present = table.collect_schema().names()
    for name in names:
        if name not in present:
            folded = {column.casefold(): column for column in present}
            near = difflib.get_close_matches(name.casefold(), folded, n=1)
            shown = ", ".join(map(repr, present[:10])) + (", …" if len(present) > 10 else "")
            remedy = f"did you mean {folded[near[0]]!r}?" if near else f"its columns are {shown}."
            raise InputError(f"The table has no column {name!r}; {remedy}")


def _check_id_type(table: Any, name: str) -> None:
    import narwhals as nw

    dtype = table.collect_schema()[name]
    if not (dtype.is_integer() or dtype in (nw.String, nw.Categorical, nw.Enum)):
        number = dtype.is_float() or dtype.is_decimal()
        remedy = (
            "12 and 12.0 would be drawn apart, so convert them to integers"
            if number
            else "convert them to strings"
        )
        raise InputError(f"`ids` must be strings or integers, got values of type {dtype}; {remedy}.")
