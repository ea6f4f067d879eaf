"""A rule added to tables as columns, engine by engine; nothing lazy is computed here.

eager           columns to the NumPy core and back, row order and index kept
polars, Dask    the NumPy core on each batch or partition, when the user asks
DuckDB, Spark   the rule as SQL (`export.formula`); the key comes from a table of one row, which no plan shows
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fairramp.core.labels import Label
from fairramp.core.scales import SCALES
from fairramp.data.columns import check_new, prefixed
from fairramp.data.engines import duckdb_table, is_lazy, plain_names, spark_table
from fairramp.data.groups import Codes
from fairramp.data.lazy_table import LazyTable, Profile
from fairramp.data.tables import check_columns, engine_of, open_table, reader
from fairramp.deploy.columns import Columns
from fairramp.deploy.dialects import DUCKDB, SPARK, Dialect, identifier, without_nan
from fairramp.deploy.formula import Formula, decision, group_code, picked
from fairramp.errors import InputError
from fairramp.rule.draws import checked_key
from fairramp.rule.rule import Ramp, Rule

__all__ = [
    "apply_dask",
    "apply_duckdb",
    "apply_eager",
    "apply_polars",
    "apply_spark",
]

#: So many groups are told apart by comparing; more are looked up.
FEW_GROUPS = 16


def apply_eager(rule: Rule, table: Any, columns: Columns, key: str | None, new: list[str]) -> Any:
    """Columns of the same kind of table."""
    import narwhals as nw

    found = _decided(rule, reader(table, columns.all), columns, key)
    backend = table.implementation
    return table.with_columns(
        nw.new_series(name, values, backend=backend) for name, values in zip(new, found, strict=True)
    )


def _decided(rule: Rule, read: Callable[[str], Any], columns: Columns, key: str | None) -> list[Any]:
    """Probabilities and, with a key, decisions."""
    from fairramp.rule.draws import decide

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


def apply_polars(rule: Rule, table: Any, columns: Columns, key: str | None, new: list[str]) -> Any:
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

    def __init__(self, rule: Rule, columns: Columns, key: str | None, new: list[str]) -> None:
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


def apply_dask(rule: Rule, table: Any, columns: Columns, key: str | None, new: list[str]) -> Any:
    """The NumPy core on each partition."""
    import narwhals as nw

    work = _Partition(rule, columns, key, new)
    native = table.to_native()
    return nw.from_native(native.map_partitions(work, meta=work(native._meta)))


def apply_spark(rule: Rule, table: Any, columns: Columns, key: str | None, new: list[str]) -> Any:
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
    groups = _Groups.of(rule, columns, table.collect_schema(), SPARK)
    if len(groups.labels) > FEW_GROUPS:
        wanted, expressions = groups.table(), groups.expressions()
        frame = frame.withColumns({f"g{i}": functions.expr(e) for i, e in enumerate(expressions)})
        small = spark_table(frame, wanted)
        same = [functions.col(f"g{i}").eqNullSafe(functions.col(f"k{i}")) for i in range(len(expressions))]
        frame = frame.join(small, same, "left")
        chance = groups.joined([name for name in wanted if name.startswith("n")])
    else:
        chance = groups.compared()
    frame = frame.selectExpr(*kept, f"{chance} AS chance")
    made = ["chance AS new0"]
    if columns.id is not None:
        made.append(f"{decision('chance', 'key', f'CAST({columns.id} AS STRING)', SPARK)} AS new1")
    return nw.from_native(frame.selectExpr(*plain.values(), *made).toDF(*names, *new))


def apply_duckdb(rule: Rule, table: Any, columns: Columns, key: str | None, new: list[str]) -> Any:
    """Projections of the relation: the group, the chance, the draw."""
    import narwhals as nw

    relation, schema = table.to_native(), table.collect_schema()
    own = [identifier(name) for name in relation.columns]
    words = ("place", "chance", "key", "n0", "n1", "n2")
    hidden = {word: _unused(relation.columns, f"fairramp_{word}") for word in words}
    place, chance, secret, *numbers = map(identifier, hidden.values())
    kept = list(own)
    if key is not None:
        relation = relation.cross(duckdb_table(relation, {hidden["key"]: [key]}))
        kept.append(secret)
    groups = _Groups.of(rule, columns, schema, DUCKDB)
    if len(groups.labels) > FEW_GROUPS:
        relation = relation.project(", ".join([*kept, f"{groups.code()} AS {place}"]))
        looked_up = dict(zip(numbers, groups.looked_up(place), strict=False))
        relation = relation.project(", ".join([*kept, *(f"{text} AS {n}" for n, text in looked_up.items())]))
        formula = groups.joined([*looked_up])
    else:
        formula = groups.compared()
    relation = relation.project(", ".join([*kept, f"{formula} AS {chance}"]))
    made = [f"{chance} AS {identifier(new[0])}"]
    if columns.id is not None:
        text = f"CAST({identifier(columns.id)} AS VARCHAR)"
        made.append(f"{decision(chance, secret, text, DUCKDB)} AS {identifier(new[1])}")
    return nw.from_native(relation.project(", ".join([*own, *made])))


class _Groups(NamedTuple):
    """SQL for the chance of each row, by its group."""

    formula: Formula
    names: tuple[str, ...]
    types: list[Any]
    labels: list[tuple[Any, ...]]
    ramps: list[Ramp]

    @classmethod
    def of(cls, rule: Rule, columns: Columns, schema: Any, dialect: Dialect) -> "_Groups":
        """Those groups of a rule that the columns can hold.

        '1' is not 1 and True is not 1, though a data base would cast one to the other and find them equal.
        """
        names = columns.grouped
        types = [schema[name] for name in names]
        kinds = [_kind(dtype) for dtype in types]
        pairs = [
            (parts, ramp)
            for parts, ramp in zip(map(columns.parts, rule.groups), rule.ramps, strict=True)
            if all(part is None or type(part) is kind for part, kind in zip(parts, kinds, strict=True))
        ]
        if dialect is SPARK:
            pairs = _as_spark_holds(pairs, types)
        score = f"CAST({identifier(columns.score, dialect)} AS DOUBLE)"
        labels, ramps = [parts for parts, _ in pairs], [ramp for _, ramp in pairs]
        return cls(Formula(rule, score, dialect), names, types, labels, ramps)

    def expressions(self) -> list[str]:
        """The group columns as labels are compared with them."""
        pairs = zip(self.names, self.types, strict=True)
        return [_group_sql(name, dtype, self.formula.dialect) for name, dtype in pairs]

    def compared(self) -> str:
        """For a few groups, one by one."""
        return self.formula.guarded(self.formula.compared(self.expressions(), self.labels, self.ramps))

    def table(self) -> dict[str, list[Any]]:
        """For many groups, a table to join with: labels k0, …, numbers n0, … of the ramps."""
        found: dict[str, list[Any]] = {}
        for i, column in enumerate(zip(*self.labels, strict=True)):
            found[f"k{i}"] = _typed(column, self.types[i])
        for i, numbers in enumerate(zip(*map(self.formula.numbers, self.ramps), strict=True)):
            found[f"n{i}"] = list(numbers)
        return found

    def joined(self, numbers: Sequence[str]) -> str:
        """For many groups, from columns with the numbers of their ramps."""
        return self.formula.guarded(self.formula.joined(numbers))

    def code(self) -> str:
        """For many groups, their place among `labels`."""
        texts = [_text_sql(name, dtype) for name, dtype in zip(self.names, self.types, strict=True)]
        return group_code(texts, [tuple(map(_label_text, label)) for label in self.labels])

    def looked_up(self, place: str) -> list[str]:
        """For many groups, the numbers of their ramps, from their place."""
        numbers = zip(*map(self.formula.numbers, self.ramps), strict=True)
        return [picked(column, place) for column in numbers]


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


def _group_sql(name: str, dtype: Any, dialect: Dialect) -> str:
    """A group column as labels are compared with it."""
    column = identifier(name, dialect)
    if dtype.is_float() or dtype.is_decimal():
        return without_nan(column, dialect)
    return column if dtype.is_integer() or _kind(dtype) is bool else f"CAST({column} AS {dialect.text})"


def _typed(labels: Sequence[Any], dtype: Any) -> Any:
    """Labels as a column of a small table, of a type that can be compared with the group column."""
    import pyarrow

    kind = float if dtype.is_float() or dtype.is_decimal() else _kind(dtype)
    types = {int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_(), str: pyarrow.string()}
    return pyarrow.array(labels, types[kind])


def _text_sql(name: str, dtype: Any) -> str:
    """A group column as the text of its labels."""
    column = identifier(name)
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
    table, give = open_table(frame)
    columns = Columns.of(rule, score, group, strata, id)
    check_columns(table, [*columns.all])
    if (id is None) != (key is None):
        absent = "key" if key is None else "id"
        raise InputError(f"Repeatable decisions need both `id` and `key`; `{absent}` is missing.")
    if key is not None:
        key = checked_key(key)
    new = prefixed(prefix, ("probability",) if id is None else ("probability", "decision"))
    fold = str.casefold if engine_of(table) in ("duckdb", "pyspark") else str
    check_new(new, table.collect_schema().names(), fold)
    if not is_lazy(table):
        return give(apply_eager(rule, table, columns, key, new))
    if id is not None:
        _check_id_type(table, id)
    rows = LazyTable(table, columns.score, columns.groups, columns.strata, id=id)
    profile = Profile.of(rows, SCALES[rule.scale])
    rule.ramps_of(Codes(np.arange(len(profile.labels)), 0, profile.labels))  # refuses unseen groups
    by_engine = {"dask": apply_dask, "duckdb": apply_duckdb, "polars": apply_polars, "pyspark": apply_spark}
    return give(by_engine[engine_of(table)](rule, table, columns, key, new))


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
