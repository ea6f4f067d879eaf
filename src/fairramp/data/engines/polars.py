"""Lazy tables of polars."""

from typing import Any

from fairramp.data.engines.base import Engine


class Polars(Engine):
    """As narwhals has it."""

    name = "polars"

    def small_table(self, native: Any, columns: dict[str, list[Any]]) -> Any:
        """A lazy table of its own."""
        import polars

        return polars.LazyFrame(columns)
