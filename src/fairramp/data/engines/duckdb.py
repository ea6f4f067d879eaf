"""DuckDB relations."""

from typing import Any

import numpy as np

from fairramp.data.engines.base import Engine
from fairramp.errors import InputError


class DuckDB(Engine):
    """A DuckDB connection."""

    name = "duckdb"
    title = "DuckDB"
    folds_case = True

    def fetch(self, frame: Any) -> dict[str, Any]:
        """All columns as arrays, without Arrow."""
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
    """A relation of arrays that DuckDB finds by the argument's name; they appear in no query and no plan.

    A function outside the class, because a method would mangle the argument's name.
    """
    import duckdb

    try:
        return relation.query("__fairramp_rows", "SELECT * FROM __fairramp_columns")
    except duckdb.CatalogException:
        raise InputError(
            "fairramp needs DuckDB to read Python variables, which is disabled",
            remedy="SET python_enable_replacements = true",
        ) from None
