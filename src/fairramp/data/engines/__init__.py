"""Engines of lazy tables: one module and one subclass of `Engine` each.

To add an engine, add a module here, a module in `fairramp.deploy.engines`, and a line in each lookup. Must not
depend on rules or fits.
"""

from typing import Any

from fairramp.data.engines.base import Engine
from fairramp.data.engines.dask import Dask
from fairramp.data.engines.duckdb import DuckDB
from fairramp.data.engines.polars import Polars
from fairramp.data.engines.spark import Spark
from fairramp.errors import InputError, UnsupportedError

ENGINES = {engine.name: engine for engine in (Dask(), DuckDB(), Polars(), Spark())}


def is_lazy(table: Any) -> bool:
    """Whether a table is computed only on request."""
    import narwhals as nw

    return isinstance(table, nw.LazyFrame)


def engine_of(frame: Any) -> Engine:
    """The engine of a lazy table; raises if it is not supported."""
    name = str(frame.implementation.value)
    if name not in ENGINES:
        raise InputError("Lazy tables of {name} are not supported", remedy="collect the columns first", name=name)
    return ENGINES[name]


def fetch(frame: Any) -> dict[str, Any]:
    """Compute a lazy table; see `Engine.fetch`."""
    return engine_of(frame).fetch(frame)


def check_classes_engine(table: Any) -> None:
    """Raise if a lazy table is of an engine that does not support rules for several classes."""
    engine = engine_of(table)
    if engine.name != "duckdb":
        raise UnsupportedError(
            "Rules for several classes do not support lazy tables of {engine}",
            remedy="collect the table first, or use DuckDB",
            engine=engine.title,
        )
