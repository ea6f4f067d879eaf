"""Where engines of lazy tables differ: names they take, results they give, small tables of ours beside theirs.

    fetch          a lazy table  →  its columns, in memory
    plain_names    a lazy table  →  the same under names that its engine takes as they are
    small_table    a few columns →  a table that can be joined to a lazy one, in its session

What an engine is given in a small table shows in no query and in no plan.
"""

from typing import Any

import numpy as np

from fairramp.errors import InputError

__all__ = ["duckdb_table", "fetch", "is_lazy", "plain_names", "small_table", "spark_table"]


def is_lazy(table: Any) -> bool:
    """Whether a table is computed only when asked."""
    import narwhals as nw

    return isinstance(table, nw.LazyFrame)


def fetch(frame: Any) -> dict[str, Any]:
    """Compute a lazy table and return its columns as arrays; as lists where they hold group labels."""
    import narwhals as nw

    if frame.implementation is nw.Implementation.DUCKDB:
        columns: dict[str, Any] = frame.to_native().fetchnumpy()  # needs no Arrow
        return columns
    done = frame.collect()
    return {name: _labels(done[name]) if name.startswith("g") else done[name].to_numpy() for name in done.columns}


def _labels(column: Any) -> list[Any]:
    """Values of a column of labels; pandas says nan where others say None."""
    values: list[Any] = column.to_list()
    if not column.null_count():
        return values
    return [None if null else value for value, null in zip(values, column.is_null().to_list(), strict=True)]


def plain_names(frame: Any) -> tuple[Any, dict[str, str]]:
    """A lazy table whose columns have names that its engine takes as they are, and the plain name of each.

    Spark finds structure in dots and backticks and does not tell upper from lower case; others take any name.
    """
    import narwhals as nw

    names = frame.collect_schema().names()
    if frame.implementation is not nw.Implementation.PYSPARK:
        return frame, {name: name for name in names}
    plain = [f"c{i}" for i in range(len(names))]
    return nw.from_native(frame.to_native().toDF(*plain)), dict(zip(names, plain, strict=True))


def small_table(frame: Any, columns: dict[str, list[Any]]) -> Any:
    """A small table that can be joined to a lazy one: in its engine and, for a data base, in its session."""
    import narwhals as nw

    if frame.implementation is nw.Implementation.DUCKDB:
        return nw.from_native(duckdb_table(frame.to_native(), columns))
    if frame.implementation is nw.Implementation.PYSPARK:
        return nw.from_native(spark_table(frame.to_native(), columns))
    if frame.implementation is nw.Implementation.DASK:
        import dask.dataframe
        import pandas

        small = dask.dataframe.from_pandas(pandas.DataFrame(columns), npartitions=1)  # type: ignore[no-untyped-call]
        return nw.from_native(small)
    return nw.from_dict(columns, backend=frame.implementation).lazy()


def spark_table(frame: Any, columns: dict[str, list[Any]]) -> Any:
    """A small table in a Spark table's session, copied to all executors; plans show only its columns' names."""
    import pyarrow
    from pyspark.sql import functions

    return functions.broadcast(frame.sparkSession.createDataFrame(pyarrow.table(columns)))


def duckdb_table(relation: Any, columns: dict[str, list[Any]]) -> Any:
    """A small table in the session of a relation; what is in it shows in no query and in no plan."""
    import duckdb

    __fairramp_columns = {
        name: np.array(values, dtype=object if isinstance(values[0], str) else None)
        for name, values in columns.items()
    }
    assert __fairramp_columns, "read by DuckDB, which finds it by its name"
    try:
        return relation.query("__fairramp_rows", "SELECT * FROM __fairramp_columns")
    except duckdb.CatalogException:
        raise InputError(
            "DuckDB is not allowed to read Python variables, which fairramp needs; "
            "SET python_enable_replacements = true."
        ) from None
