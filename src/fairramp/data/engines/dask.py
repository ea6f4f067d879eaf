"""Dask tables."""

from typing import Any

from fairramp.data.engines.base import Engine


class Dask(Engine):
    """Partitions that are pandas tables."""

    name = "dask"
    title = "Dask"
    may_repeat_names = True

    def small_table(self, native: Any, columns: dict[str, list[Any]]) -> Any:
        """A table with one partition."""
        import dask.dataframe
        import pandas

        return dask.dataframe.from_pandas(pandas.DataFrame(columns), npartitions=1)  # type: ignore[no-untyped-call]
