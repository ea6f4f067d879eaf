"""Polars lazy tables."""

from typing import Any

from fairramp.data.engines.base import Engine


class Polars(Engine):
    """Polars needs only a small table of its own."""

    name = "polars"
    title = "polars"

    def small_table(self, native: Any, columns: dict[str, list[Any]]) -> Any:
        """A lazy table."""
        import polars

        return polars.LazyFrame(columns)
