"""Tables of every engine for tests; a missing engine is skipped by name."""

import functools
import importlib.util
import os
import shutil

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest


def _absent(engine):
    package = {"spark": "pyspark", "dask": "dask"}[engine]
    if importlib.util.find_spec(package) is None:
        return f"{package} is not installed"
    if engine == "spark" and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        return "Spark needs a Java runtime, and there is none"
    return None


def _engine(name):
    reason = _absent(name)
    marks = [getattr(pytest.mark, name), pytest.mark.skipif(reason is not None, reason=f"{name}: {reason}")]
    return pytest.param(name, marks=marks)


IN_MEMORY = ("pandas", "polars", "arrow")
QUICK_LAZY = ("polars-lazy", "duckdb")
DISTRIBUTED = (_engine("dask"), _engine("spark"))
LAZY = (*QUICK_LAZY, *DISTRIBUTED)
ENGINES = (*IN_MEMORY, *LAZY)


@functools.cache
def spark():
    """One session for all tests, configured for many tiny jobs: no code generation, no adaptive execution."""
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    session = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def stop_spark():
    """Stop the session if there is one."""
    if spark.cache_info().currsize:
        spark().stop()
        spark.cache_clear()


def table(engine, columns):
    """Table of an engine from lists that may contain None."""
    arrow = pa.table({name: pa.array(values) for name, values in columns.items()})
    if engine == "pandas":
        return pd.DataFrame({name: pd.Series(list(v), dtype=_pandas_type(v)) for name, v in columns.items()})
    if engine == "arrow":
        return arrow
    if engine == "duckdb":
        con = duckdb.connect()
        con.register("given", arrow)
        con.execute("CREATE TABLE t AS SELECT * FROM given")
        return con.table("t")
    if engine == "spark":
        return spark().createDataFrame(arrow)
    if engine == "dask":
        import dask.dataframe as dd

        frame = pd.DataFrame({name: _dask_column(arrow[name]) for name in columns})
        return dd.from_pandas(frame, npartitions=3, sort=False)
    frame = pl.from_arrow(arrow)
    return frame.lazy() if engine == "polars-lazy" else frame


def _pandas_type(values):
    return object if any(v is None for v in values) else None


def _dask_column(column):
    """Column as Dask reads it from a file: integers with nulls stay integers, and nothing is an object."""
    if pa.types.is_boolean(column.type) and column.null_count:
        return pd.Series(column.to_pylist(), dtype="boolean")
    if pa.types.is_integer(column.type) and column.null_count:
        return pd.Series(column.to_pylist(), dtype="Int64")
    if pa.types.is_list(column.type):
        return pd.Series(column.to_pylist(), dtype=pd.ArrowDtype(column.type))
    return column.to_pandas()


def columns_of(frame):
    """Columns of any table as lists in row order; Spark rows have none and are sorted by `number`."""
    done = nw.from_native(frame)
    unordered = done.implementation is nw.Implementation.PYSPARK
    done = done.collect() if isinstance(done, nw.LazyFrame) else done
    if unordered and "number" in done.columns:
        done = done.sort("number")
    return {name: done[name].to_list() for name in done.columns}
