"""Relations of DuckDB."""

from typing import Any

import numpy as np

from fairramp.data.engines.base import Engine
from fairramp.errors import InputError


class DuckDB(Engine):
    """A connection of DuckDB."""

    name = "duckdb"
    folds_case = True

    def fetch(self, frame: Any) -> dict[str, Any]:
        """All columns as arrays, for which no Arrow is needed."""
        return dict(frame.to_native().fetchnumpy())

    def small_table(self, native: Any, columns: dict[str, list[Any]]) -> Any:
        """A relation in the session of another one."""
        return _beside(
            native,
            {
                name: np.array(values, dtype=object if isinstance(values[0], str) else None)
                for name, values in columns.items()
            },
        )


def _beside(relation: Any, __fairramp_columns: dict[str, Any]) -> Any:
    """A relation of arrays that DuckDB finds by the name of the argument; no query and no plan shows them.

    Outside the class, which would give that name another one.
    """
    import duckdb

    try:
        return relation.query("__fairramp_rows", "SELECT * FROM __fairramp_columns")
    except duckdb.CatalogException:
        raise InputError(
            "DuckDB is not allowed to read Python variables, which fairramp needs",
            remedy="SET python_enable_replacements = true",
        ) from None
