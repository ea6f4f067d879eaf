"""The one door for tables of every engine: fit a rule to a table, apply a rule to a table.

    in memory (pandas, polars, Arrow)             columns go to the NumPy core and come back as columns
    lazy (DuckDB, PySpark, polars LazyFrame, Dask)  sums are computed by the engine (`lazy_rows`); a rule becomes
                                                  an expression (`sql_pieces`), or a function of the engine's
                                                  own batches, and the table stays lazy

Both give the same rule and the same decisions. Engines are reached through narwhals, and imported only when a
table of theirs comes in.
"""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fairramp import sql_pieces as sql
from fairramp.binned import GroupScores, check_weights, summarize
from fairramp.criteria.covariance import Covariance
from fairramp.criteria.sgd import SGD
from fairramp.decisions import checked_key
from fairramp.exceptions import InputError
from fairramp.fitting import fit_rows, fit_rule, warn_saturated
from fairramp.grid import Grid
from fairramp.groups import Codes, Label
from fairramp.lazy_rows import LazyRows, LazyTable, Profile, duckdb_table, fetch, plain_names, spark_table
from fairramp.request import Names, Request, checked_strata
from fairramp.rule import OFFSETS, Ramp, Rule
from fairramp.scales import SCALES

__all__ = ["apply", "fit_frame", "summarize_frame"]

#: So many groups are told apart by comparing; more are looked up.
FEW_GROUPS = 16
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
    groups, outer = _names("group", group), () if strata is None else _names("strata", strata)
    columns = [_name("score", score), *groups, *outer]
    columns += [_name(role, name) for role, name in (("label", label), ("weight", weight)) if name is not None]
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
    lazy = _is_lazy(table)
    if lazy and request.sgd is not None:
        raise InputError("`solver='sgd'` needs the rows in memory; collect the table first.")
    if lazy and not request.needs_labels:
        rows = LazyTable(table, score, groups, outer, weight=weight, label=label)
        profile = Profile.of(rows, request.scale)
        names = Names(score, groups, outer or None)
        rule = fit_rows(LazyRows(rows, profile, request.scale), request, names, weighted=weight is not None)
        warn_saturated(profile.saturated)
        return rule

    read = _reader(table, columns)
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
    groups, outer = _names("group", group), () if strata is None else _names("strata", strata)
    columns = [_name("score", score), *groups, *outer, *([] if weight is None else [_name("weight", weight)])]
    _check_columns(table, columns)
    names = Names(score, groups, outer or None)
    if _is_lazy(table):
        rows = LazyTable(table, score, groups, outer, weight=weight)
        profile = Profile.of(rows, grid.scale)
        if weight is not None:
            check_weights(profile.largest_weight)
        summary = LazyRows(rows, profile, grid.scale).binned(grid)
        warn_saturated(profile.saturated)
        return GroupScores(grid, summary, weight is not None, bool(outer), names)
    read = _reader(table, columns)
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
    columns = _Columns.of(rule, score, group, strata, id)
    _check_columns(table, [*columns.all])
    if (id is None) != (key is None):
        absent = "key" if key is None else "id"
        raise InputError(f"Repeatable decisions need both `id` and `key`; `{absent}` is missing.")
    if key is not None:
        key = checked_key(key)
    if not isinstance(prefix, str):
        raise InputError(f"`prefix` must be text, got {prefix!r}.")
    new = [f"{prefix}probability"] + ([f"{prefix}decision"] if id is not None else [])
    _check_new(table, new)
    if not _is_lazy(table):
        return give(_apply_eager(rule, table, columns, key, new))
    if id is not None:
        _check_id_type(table, id)
    rows = LazyTable(table, columns.score, columns.groups, columns.strata, id=id)
    profile = Profile.of(rows, SCALES[rule.scale])
    rule.ramps_of(Codes(np.arange(len(profile.labels)), 0, profile.labels))  # refuses unseen groups
    by_engine = {"dask": _apply_dask, "duckdb": _apply_duckdb, "polars": _apply_polars, "pyspark": _apply_spark}
    return give(by_engine[_engine(table)](rule, table, columns, key, new))


class _Columns(NamedTuple):
    """Names of the columns that a rule reads."""

    score: str
    groups: tuple[str, ...]
    strata: tuple[str, ...]
    id: str | None

    @classmethod
    def of(cls, rule: Rule, score: Any, group: Any, strata: Any, id: Any) -> "_Columns":
        """As given, or as in the rule's record."""
        record = rule.record
        if score is None:
            score = record.score_column if record else None
        groups = rule.group_columns if group is None else _names("group", group)
        outer = rule.strata_columns if strata is None else _names("strata", strata)
        for role, name in (("score", score), ("group", groups)):
            if name is None:
                raise InputError(f"Pass `{role}`: the rule does not know the name of that column.")
        assert groups is not None
        stratified = rule.criterion == "covariance"
        if stratified and outer is None:
            raise InputError("Pass `strata`: the rule equalises within strata and does not know their columns.")
        if not stratified and outer is not None:
            raise InputError(
                "`strata` are not known to this rule, which equalises over all rows; leave them out."
            )
        for label in rule.groups:
            stratum, inner = label if stratified and isinstance(label, tuple) else (None, label)
            _check_width("group", groups, inner)
            if outer is not None:
                _check_width("strata", outer, stratum)
        return cls(_name("score", score), groups, outer or (), None if id is None else _name("id", id))

    @property
    def all(self) -> tuple[str, ...]:
        """All of them."""
        return (self.score, *self.groups, *self.strata, *([] if self.id is None else [self.id]))

    def renamed(self, names: dict[str, str]) -> "_Columns":
        """Under other names."""
        score, groups, strata, id_ = self
        return _Columns(
            names[score],
            tuple(names[name] for name in groups),
            tuple(names[name] for name in strata),
            None if id_ is None else names[id_],
        )

    def parts(self, label: Label) -> tuple[Label, ...]:
        """A group's value in each column, strata first."""
        if not self.strata:
            return _flat(label)
        assert isinstance(label, tuple)
        return (*_flat(label[0]), *_flat(label[1]))


def _flat(label: Label) -> tuple[Label, ...]:
    return label if isinstance(label, tuple) else (label,)


def _check_width(role: str, names: tuple[str, ...], label: Label) -> None:
    n = len(_flat(label))
    if n != len(names):
        raise InputError(
            f"`{role}` must name {n} column{'s' if n > 1 else ''}, as in the fit, got {list(names)}."
        )


# In memory ------------------------------------------------------------------------------------


def _apply_eager(rule: Rule, table: Any, columns: _Columns, key: str | None, new: list[str]) -> Any:
    import narwhals as nw

    found = _decided(rule, _reader(table, columns.all), columns, key)
    backend = table.implementation
    return table.with_columns(
        nw.new_series(name, values, backend=backend) for name, values in zip(new, found, strict=True)
    )


def _decided(rule: Rule, read: Callable[[str], Any], columns: _Columns, key: str | None) -> list[Any]:
    """Probabilities and, with a key, decisions."""
    from fairramp.decisions import decide

    def mapping(names: tuple[str, ...], as_fitted: tuple[str, ...] | None) -> dict[str, Any]:
        return {fitted: read(name) for fitted, name in zip(as_fitted or names, names, strict=True)}

    strata = mapping(columns.strata, rule.strata_columns) if columns.strata else None
    chances = rule.probabilities(read(columns.score), mapping(columns.groups, rule.group_columns), strata)
    if columns.id is None:
        return [chances]
    return [chances, decide(chances, ids=_ids(read(columns.id)), key=key)]


def _ids(column: Any) -> Any:
    """Ids as NumPy keeps them; whole numbers beside nulls as objects, so that the null is what is refused."""
    import narwhals as nw

    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        if series.dtype in (nw.Categorical, nw.Enum):
            series = series.cast(nw.String)
        if series.dtype == nw.String or series.null_count():
            return series.to_list()
        return series.to_numpy()
    return column


# Lazy -----------------------------------------------------------------------------------------


def _apply_polars(rule: Rule, table: Any, columns: _Columns, key: str | None, new: list[str]) -> Any:
    """Expressions that hand batches of the columns to the NumPy core."""
    import narwhals as nw
    import polars

    struct = polars.struct(polars.col(name).alias(f"c{i}") for i, name in enumerate(columns.all))
    place = {name: f"c{i}" for i, name in enumerate(columns.all)}

    def column(which: int) -> Callable[[Any], Any]:
        def compute(batch: Any) -> Any:
            if not len(batch):
                return polars.Series([], dtype=types[which])
            parts = batch.struct.unnest()
            asked = columns if which else columns._replace(id=None)
            return polars.Series(_decided(rule, lambda name: parts[place[name]], asked, key)[which])

        return compute

    types = [polars.Float64, polars.Int8]
    return nw.from_native(
        table.to_native().with_columns(
            struct.map_batches(column(i), return_dtype=types[i], is_elementwise=True).alias(name)
            for i, name in enumerate(new)
        )
    )


class _Partition:
    """What Dask does to each of its partitions; neither a graph nor a name of a task shows the key."""

    def __init__(self, rule: Rule, columns: _Columns, key: str | None, new: list[str]) -> None:
        self.rule, self.columns, self.new = rule, columns, new
        self._key = key

    def __repr__(self) -> str:
        return f"fairramp.Rule.apply({', '.join(self.new)})"

    def __call__(self, part: Any) -> Any:
        """A partition with new columns."""
        import pandas

        types = [np.float64, np.int8]
        if len(part):
            found = _decided(self.rule, part.__getitem__, self.columns, self._key)
        else:
            found = [np.empty(0, dtype=types[i]) for i in range(len(self.new))]
        return part.assign(
            **{name: pandas.Series(v, index=part.index) for name, v in zip(self.new, found, strict=True)}
        )


def _apply_dask(rule: Rule, table: Any, columns: _Columns, key: str | None, new: list[str]) -> Any:
    """The NumPy core on each partition."""
    import narwhals as nw

    work = _Partition(rule, columns, key, new)
    native = table.to_native()
    return nw.from_native(native.map_partitions(work, meta=work(native._meta)))


def _apply_spark(rule: Rule, table: Any, columns: _Columns, key: str | None, new: list[str]) -> Any:
    """Expressions of Spark's own; the key, and ramps if there are many, are in small tables that are joined."""
    import narwhals as nw
    from pyspark.sql import functions

    names = table.collect_schema().names()
    table, plain = plain_names(table)
    frame, columns = table.to_native(), columns.renamed(plain)
    kept = [*plain.values()]
    if key is not None:
        frame = frame.crossJoin(spark_table(frame, {"key": [key]}))
        kept.append("key")
    groups = _Groups.of(rule, columns, table.collect_schema(), sql.SPARK)
    if len(groups.labels) > FEW_GROUPS:
        wanted = groups.table()
        expressions = groups.expressions()
        frame = frame.withColumns({f"g{i}": functions.expr(e) for i, e in enumerate(expressions)})
        small = spark_table(frame, wanted)
        same = [functions.col(f"g{i}").eqNullSafe(functions.col(f"k{i}")) for i in range(len(expressions))]
        frame = frame.join(small, same, "left")
        height = groups.joined("k", [name for name in wanted if name.startswith("n")])
    else:
        height = groups.compared()
    frame = frame.selectExpr(*kept, f"{height} AS up")
    made = [f"{sql.clipped('up')} AS new0"]
    if columns.id is not None:
        made.append(f"{sql.decision('up', 'key', f'CAST({columns.id} AS STRING)', sql.SPARK)} AS new1")
    return nw.from_native(frame.selectExpr(*plain.values(), *made).toDF(*names, *new))


def _apply_duckdb(rule: Rule, table: Any, columns: _Columns, key: str | None, new: list[str]) -> Any:
    """Projections of the relation: the group, how far up its ramp each row is, the chance, the draw."""
    import narwhals as nw

    relation, schema = table.to_native(), table.collect_schema()
    own = [sql.identifier(name) for name in relation.columns]
    hidden = [_unused(relation.columns, f"fairramp_{name}") for name in ("place", "up", "key")]
    place, up, secret = map(sql.identifier, hidden)
    kept = list(own)
    if key is not None:
        relation = relation.cross(duckdb_table(relation, {hidden[2]: [key]}))
        kept.append(secret)
    groups = _Groups.of(rule, columns, schema)
    if len(groups.labels) > FEW_GROUPS:
        relation = relation.project(", ".join([*kept, f"{groups.code()} AS {place}"]))
        height = groups.looked_up(place)
    else:
        height = groups.compared()
    relation = relation.project(", ".join([*kept, f"{height} AS {up}"]))
    made = [f"{sql.clipped(up)} AS {sql.identifier(new[0])}"]
    if columns.id is not None:
        text = f"CAST({sql.identifier(columns.id)} AS VARCHAR)"
        made.append(f"{sql.decision(up, secret, text)} AS {sql.identifier(new[1])}")
    return nw.from_native(relation.project(", ".join([*own, *made])))


class _Groups(NamedTuple):
    """SQL for how far up its group's ramp a row is, not cut off at the ends."""

    rule: Rule
    score: str
    names: tuple[str, ...]
    types: list[Any]
    labels: list[tuple[Any, ...]]
    ramps: list[Ramp]
    dialect: sql.Dialect

    @classmethod
    def of(cls, rule: Rule, columns: _Columns, schema: Any, dialect: sql.Dialect = sql.DUCKDB) -> "_Groups":
        """Those groups of a rule that the columns can hold.

        '1' is not 1 and True is not 1, though a data base would cast one to the other and find them equal.
        """
        names = (*columns.strata, *columns.groups)
        types = [schema[name] for name in names]
        kinds = [_kind(dtype) for dtype in types]
        pairs = [
            (parts, ramp)
            for parts, ramp in zip(map(columns.parts, rule.groups), rule.ramps, strict=True)
            if all(part is None or type(part) is kind for part, kind in zip(parts, kinds, strict=True))
        ]
        if dialect is sql.SPARK:
            pairs = _as_spark_holds(pairs, types)
        score = f"CAST({sql.identifier(columns.score, dialect)} AS DOUBLE)"
        if schema[columns.score].is_float():  # to data bases NaN is the highest number, which would mean yes
            score = f"CASE WHEN NOT isnan({score}) THEN {score} END"
        labels, ramps = [parts for parts, _ in pairs], [ramp for _, ramp in pairs]
        return cls(rule, score, names, types, labels, ramps, dialect)

    def expressions(self) -> list[str]:
        """The group columns as labels are compared with them."""
        return [_group_sql(name, dtype, self.dialect) for name, dtype in zip(self.names, self.types, strict=True)]

    def compared(self) -> str:
        """For a few groups, one by one."""
        values = [self._height(*map(sql.literal, self._numbers(ramp))) for ramp in self.ramps]
        cases = [sql.Case(label, value) for label, value in zip(self.labels, values, strict=True)]
        return sql.group_case(self.expressions(), cases, self._otherwise(), self.dialect)

    def table(self) -> dict[str, list[Any]]:
        """For many groups, a table to join with: place k, labels k0, …, numbers n0, … of the ramps."""
        found: dict[str, list[Any]] = {"k": list(range(len(self.labels)))}
        for i, column in enumerate(zip(*self.labels, strict=True)):
            found[f"k{i}"] = _typed(column, self.types[i])
        for i, numbers in enumerate(zip(*map(self._numbers, self.ramps), strict=True)):
            found[f"n{i}"] = list(numbers)
        return found

    def joined(self, place: str, numbers: Sequence[str]) -> str:
        """For many groups, from the columns of that table."""
        return f"CASE WHEN {place} IS NULL THEN {self._otherwise()} ELSE {self._height(*numbers)} END"

    def code(self) -> str:
        """For many groups, their place among `labels`."""
        texts = [_text_sql(name, dtype) for name, dtype in zip(self.names, self.types, strict=True)]
        return sql.group_code(texts, [tuple(map(_label_text, label)) for label in self.labels])

    def looked_up(self, place: str) -> str:
        """For many groups, from their place."""
        numbers = zip(*map(self._numbers, self.ramps), strict=True)
        return self.joined(place, [sql.picked(column, place) for column in numbers])

    def _numbers(self, ramp: Ramp) -> tuple[float, ...]:
        """What the height on a ramp depends on."""
        if self.rule.ramp_width > 0:
            return (ramp.threshold - OFFSETS[self.rule.ramp] * self.rule.ramp_width,)
        at = _logits_at(ramp.threshold) if self.rule.scale == "logit" else (ramp.threshold, ramp.threshold)
        return (*at, ramp.tie_chance)

    def _height(self, *numbers: str) -> str:
        if self.rule.ramp_width == 0:
            score = self.score if self.rule.scale == "logit" else self._position()
            return sql.step(score, *numbers)
        return sql.on_ramp(self._position(), numbers[0], self.rule.ramp_width)

    def _position(self) -> str:
        if self.rule.scale == "percent":
            return f"(({self.score}) / 1e2)"
        logit = self.rule.scale == "logit"
        return f"(1e0 / (1e0 + exp(-({self.score}))))" if logit else f"({self.score})"

    def _otherwise(self) -> str:
        if self.rule.pooled is not None:
            return self._height(*map(sql.literal, self._numbers(self.rule.pooled)))
        if self.rule.unseen_group == "original":
            logit, scale = self.rule.scale == "logit", SCALES[self.rule.scale]
            cutoff = sql.literal(self.rule.cutoff if logit else scale.position_of(self.rule.cutoff))
            return sql.step(self.score if logit else self._position(), cutoff, cutoff, "1e0")
        return "NULL"


def _logits_at(threshold: float) -> tuple[float, float]:
    """The lowest and the highest logit whose probability is the threshold, as NumPy computes it.

    A data base may compute the exponential with another last digit, and equality would not survive that. If no
    logit has that probability, low is just above high.
    """
    position = SCALES["logit"].position_of

    def first(reached: Callable[[float], bool]) -> float:
        low, high = -1e4, 1e4
        while np.nextafter(low, high) < high:
            middle = (low + high) / 2
            low, high = (low, middle) if reached(position(middle)) else (middle, high)
        return high

    low = first(lambda p: p >= threshold) if threshold > 0 else -float(np.finfo(np.float64).max)
    high = (
        float(np.nextafter(first(lambda p: p > threshold), -np.inf))
        if threshold < 1
        else float(np.finfo(np.float64).max)
    )
    return low, high


def _kind(dtype: Any) -> type:
    """The type of the labels that a column can hold."""
    import narwhals as nw

    if dtype == nw.Boolean:
        return bool
    return int if dtype.is_numeric() else str


def _as_spark_holds(pairs: list[tuple[Any, Ramp]], types: list[Any]) -> list[tuple[Any, Ramp]]:
    """Groups whose numbers are doubles where the columns are no integers, and fit where they are."""
    found = []
    for parts, ramp in pairs:
        numbers = [type(part) is int for part in parts]
        whole = [dtype.is_integer() for dtype in types]
        fits = (-(2**63) <= part < 2**63 for part, n, w in zip(parts, numbers, whole, strict=True) if n and w)
        if all(fits):
            made = (float(p) if n and not w else p for p, n, w in zip(parts, numbers, whole, strict=True))
            found.append((tuple(made), ramp))
    return found


def _group_sql(name: str, dtype: Any, dialect: sql.Dialect) -> str:
    """A group column as labels are compared with it."""
    column = sql.identifier(name, dialect)
    if dtype.is_float() or dtype.is_decimal():
        return f"CASE WHEN NOT isnan(CAST({column} AS DOUBLE)) THEN {column} END"
    return column if dtype.is_integer() or _kind(dtype) is bool else f"CAST({column} AS {dialect.text})"


def _typed(labels: Sequence[Any], dtype: Any) -> Any:
    """Labels as a column of a small table, of a type that can be compared with the group column."""
    import pyarrow

    kind = float if dtype.is_float() or dtype.is_decimal() else _kind(dtype)
    types = {int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_(), str: pyarrow.string()}
    return pyarrow.array(labels, types[kind])


def _text_sql(name: str, dtype: Any) -> str:
    """A group column as the text of its labels."""
    column = sql.identifier(name)
    if dtype.is_float() or dtype.is_decimal():
        whole = f"CAST(TRY_CAST({column} AS HUGEINT) AS VARCHAR)"
        part = f"WHEN NOT isnan(CAST({column} AS DOUBLE)) THEN 'part of a number'"
        return f"CASE WHEN {column} = trunc({column}) THEN {whole} {part} END"
    return f"CAST({column} AS VARCHAR)"


def _label_text(part: Label) -> str | None:
    return None if part is None else str(part).lower() if isinstance(part, bool) else str(part)


def _unused(names: Sequence[str], wanted: str) -> str:
    """A name that no column has; data bases do not tell upper from lower case."""
    taken = {name.casefold() for name in names}
    while wanted.casefold() in taken:
        wanted += "_"
    return wanted


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


def _is_lazy(table: Any) -> bool:
    import narwhals as nw

    return isinstance(table, nw.LazyFrame)


def _reader(table: Any, columns: Sequence[str]) -> Callable[[str], Any]:
    """What returns a column by its name, in memory."""
    wanted = list(dict.fromkeys(columns))
    if _is_lazy(table):
        import narwhals as nw

        short = {f"c{i}": name for i, name in enumerate(wanted)}
        found = fetch(table.select(*(nw.col(name).alias(alias) for alias, name in short.items())))
        return {name: found[alias] for alias, name in short.items()}.__getitem__
    return lambda name: table[name].to_native()


def _name(role: str, name: Any) -> str:
    if not isinstance(name, str):
        raise InputError(f"`{role}` must be the name of a column, got {name!r}.")
    return name


def _names(role: str, names: Any) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"`{role}` must be the name of a column or a list of names, got {names!r}.")
    if len(set(names)) < len(names):
        raise InputError(f"`{role}` names a column twice: {list(names)}.")
    return tuple(names)


def _check_columns(table: Any, names: Sequence[str]) -> None:
    present = table.collect_schema().names()
    for name in names:
        if name not in present:
            folded = {column.casefold(): column for column in present}
            near = difflib.get_close_matches(name.casefold(), folded, n=1)
            shown = ", ".join(map(repr, present[:10])) + (", …" if len(present) > 10 else "")
            remedy = f"did you mean {folded[near[0]]!r}?" if near else f"its columns are {shown}."
            raise InputError(f"The table has no column {name!r}; {remedy}")


def _check_new(table: Any, names: Sequence[str]) -> None:
    fold = str.casefold if _engine(table) in ("duckdb", "pyspark") else str
    present = {fold(column): column for column in table.collect_schema().names()}
    for name in names:
        if fold(name) in present:
            raise InputError(
                f"The table has a column {present[fold(name)]!r} already; pass `prefix`, like prefix='fair_'."
            )


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
