"""Dask tables."""

from typing import Any

from fairramp.core.checks import library
from fairramp.data.engines.base import Engine
from fairramp.errors import installing


class Dask(Engine):
    """Partitions that are pandas tables."""

    name = "dask"
    title = "Dask"
    may_repeat_names = True

    def small_table(self, native: Any, columns: dict[str, list[Any]]) -> Any:
        """A table with one partition."""
        command = installing("dask")
        pandas, dask = library("pandas", install=command), library("dask", "dataframe", install=command)
        return dask.dataframe.from_pandas(pandas.DataFrame(columns), npartitions=1)
