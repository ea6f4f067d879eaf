"""Fit a rule to the columns of a table, of any engine.

    in memory (pandas, polars, Arrow)               columns become a `Sample`
    lazy (DuckDB, PySpark, polars LazyFrame, Dask)  the engine computes sums (`data.lazy_rows`)

Both give the same rule. Engines are accessed through narwhals and imported only when one of their tables is
passed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack, overload

from fairramp.core.labels import Label
from fairramp.core.public import public
from fairramp.data.columns import Columns, class_score_columns, column_name, probability_columns
from fairramp.data.engines import is_lazy
from fairramp.data.labeled import LabeledBins
from fairramp.data.lazy_rows import LazyRows
from fairramp.data.lazy_table import LazyTable, Profile
from fairramp.data.probable import GroupProbabilities
from fairramp.data.sample import warn_saturated
from fairramp.data.tables import check_columns, open_table, reader, sample_of_table
from fairramp.errors import InputError, UnsupportedError
from fairramp.fit.cells import FitRows
from fairramp.fit.class_frames import fit_class_frame
from fairramp.fit.classes import ClassSettings
from fairramp.fit.direction import warn_direction, warn_direction_of_bins
from fairramp.fit.each import fit_each
from fairramp.fit.few_scores import warn_few_scores, warn_of
from fairramp.fit.fit import fit_rows, fit_sample
from fairramp.fit.keywords import taking_settings
from fairramp.fit.probable import check_probable, fit_probabilities, fit_probable
from fairramp.fit.probable_lazy import LazyProbableRows
from fairramp.fit.settings import Keywords, Settings, check_settings
from fairramp.fit.targets import by_labels
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule


@overload
def fit_frame(
    frame: Any,
    *,
    score: str,
    group: str | Sequence[str] | None = None,
    group_probability: Mapping[Any, str] | None = None,
    label: str | None = None,
    weight: str | None = None,
    strata: str | Sequence[str] | None = None,
    **settings: Unpack[Keywords],
) -> Rule: ...


@overload
def fit_frame(
    frame: Any,
    *,
    class_score: Mapping[Any, str],
    group: str | Sequence[str] | None = None,
    group_probability: Mapping[Any, str] | None = None,
    weight: str | None = None,
    strata: str | Sequence[str] | None = None,
    **settings: Unpack[Keywords],
) -> ClassRule: ...


@public
@taking_settings()
def fit_frame(
    frame: Any,
    *,
    score: str | None = None,
    class_score: Mapping[Any, str] | None = None,
    group: str | Sequence[str] | None = None,
    group_probability: Mapping[Any, str] | None = None,
    label: str | None = None,
    weight: str | None = None,
    strata: str | Sequence[str] | None = None,
    **settings: Unpack[Keywords],
) -> Rule | ClassRule:
    """Fit a rule to the columns of a table, including tables larger than memory.

    The rule is the same as that of `fit_rule` for the same rows. From a lazy table, only sums per group and score
    bin and the few scores near the ramps' ends are loaded into Python, in three or four passes, with labels or
    without. The rule stores the names of the columns.

    Parameters
    ----------
    frame : table
        A pandas, polars or Arrow table, or a lazy one: a DuckDB relation, a polars LazyFrame, a Spark or a Dask
        table. It must return the same rows every time it is read.
    score : str
        Name of the score column.
    class_score : dict of str
        For a classifier with several classes, instead of `score`: the column of each class's scores, by class.
        The result is a `ClassRule`, as by `fit_class_rule`. Of the settings, only `max_gap`, `ramp_width`,
        `unseen_group` and `date` apply. The table is in memory or a DuckDB relation, of which only sums and rows
        that are decided at random, or almost, are loaded.
    group : str or list of str
        Name of the group column. With several columns, each combination of values is a group; see `combine`.
    group_probability : dict of str, optional
        If groups are not known, the columns of their probabilities, by group, instead of `group`. See
        `fairramp.GroupProbabilities`.
    label, weight : str, optional
        Names of the columns with true outcomes and row weights.
    strata : str or list of str, optional
        Names of the columns that define the strata within which rates are made equal.
    {settings}

    Returns
    -------
    Rule or ClassRule

    Examples
    --------
    >>> import fairramp, polars
    >>> data = fairramp.datasets.load_adult_scores()
    >>> frame = polars.LazyFrame({"p": data.score, "sex": data.sex, "person": data.id})
    >>> rule = fairramp.fit_frame(frame, score="p", group="sex", max_gap=0.02)
    >>> same = fairramp.fit_rule(data.score, data.sex, max_gap=0.02)
    >>> max(abs(a - b) for a, b in zip(rule.thresholds, same.thresholds, strict=True)) < 1e-12
    True

    Several classes:

    >>> rows = polars.DataFrame({"no": [0.6, 0.3], "perhaps": [0.3, 0.6], "yes": [0.1, 0.1], "unit": ["A", "B"]})
    >>> frame = polars.concat([rows] * 50)
    >>> columns = {"no": "no", "perhaps": "perhaps", "yes": "yes"}
    >>> rule = fairramp.fit_frame(frame, class_score=columns, group="unit", max_gap=0.1)
    >>> round(rule.record.gap_after, 6)
    0.1
    """
    check_settings(fit_frame, settings)
    table, _ = open_table(frame)
    if (score is None) == (class_score is None):
        raise InputError("Pass either {score} or {class_score}: the column of scores, or one for each class")
    columns = Columns().given(score, group, strata)
    if (group is None) == (group_probability is None):
        raise InputError("Pass either {group} or {group_probability}: the columns of groups or of probabilities")
    chances = None if group_probability is None else probability_columns(group_probability)
    if chances is not None:
        columns = replace(columns, probabilities=tuple(chances.values()))
    more = {
        role: column_name(role, name) for role, name in (("label", label), ("weight", weight)) if name is not None
    }
    classes = {} if class_score is None else class_score_columns(class_score)
    columns = columns.with_classes(classes) if classes else columns
    check_columns(table, [*columns.all, *more.values()])
    if classes:
        if label is not None:
            raise UnsupportedError(
                "A fit for several classes uses no labels",
                remedy="remove {label}, and measure accuracy with fairramp.audit_classes",
            )
        asked_classes = ClassSettings.of(settings)
        return fit_class_frame(table, tuple(classes), columns, tuple(chances or ()), weight, asked_classes)
    asked = Settings.of(fit_frame, settings)
    if chances is not None:
        check_probable(asked, stratified=columns.strata is not None)
        return _fit_probable(table, columns, tuple(chances), asked, more)
    asked.check_rows(
        labeled=label is not None,
        stratified=columns.strata is not None,
        weighted=weight is not None,
        needed="{label}, the column of true outcomes",
    )
    if is_lazy(table) and asked.sgd is not None:
        raise UnsupportedError("{solver:sgd} requires rows in memory", remedy="collect the table first")
    if not is_lazy(table):
        sample = sample_of_table(table, columns, asked.meaning, weight=weight, label=label)
        warn_direction(sample)
        rule = fit_sample(sample, asked)
        warn_few_scores(sample.scores, rule)
        return rule
    lazy = LazyTable(table, columns, weight=weight, label=label)
    profile = Profile.of(lazy, asked.meaning)
    rows = LazyRows(lazy, profile, asked.meaning, labeled=asked.needs_labels)
    if asked.needs_labels:
        warn_direction_of_bins(LabeledBins.of_lazy(rows), asked.meaning)
    by_label = None
    if asked.event.needs_labels:
        cells = LazyTable(table, columns, weight=weight, label=label, by_label=True)
        by_label = LazyRows(cells, Profile.of(cells, asked.meaning), asked.meaning)
    if asked.combine == "each":
        rule = fit_each(rows, asked, columns, weighted=weight is not None)
    else:
        rule = fit_rows(
            FitRows(rows, by_label),
            asked,
            columns,
            stratified=columns.strata is not None,
            weighted=weight is not None,
            **by_labels(asked, lambda: LabeledBins.of_lazy(rows)),
        )
    warn_saturated(asked.meaning, profile.saturated, int(profile.rows.sum()))
    if found := rows.few_scores:
        warn_of(found, rule)
    return rule


def _fit_probable(
    table: Any, columns: Columns, labels: tuple[Label, ...], settings: Settings, more: Mapping[str, str]
) -> Rule:
    """Fit a rule that uses group probabilities to the columns of a table; `more` has labels and weights."""
    if is_lazy(table):
        rows = LazyProbableRows(table, columns, labels, settings.meaning, more)
        rule = fit_probable(rows, settings, columns, "weight" in more)
        warn_saturated(settings.meaning, rows.saturated, rows.n_rows)
        return rule
    assert columns.score is not None
    read = reader(table, columns.all)
    named = zip(labels, columns.probabilities or (), strict=True)
    groups = GroupProbabilities({label: read(name) for label, name in named})
    truth, weights = (more.get(role) and reader(table, [more[role]])(more[role]) for role in ("label", "weight"))
    rule = fit_probabilities(read(columns.score), groups, settings, truth, sample_weight=weights)
    return replace(rule, columns=columns)
