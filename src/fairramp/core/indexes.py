"""The pandas indexes of columns and tables, recognized by what they can do, so that no library is imported."""

from collections.abc import Iterator, Mapping
from typing import Any


def index_of(column: Any) -> Any:
    """The pandas index of a column or table; None if it has none, like a list, whose `index` is a method."""
    index = getattr(column, "index", None)
    # Of the type, because reading `is_unique` looks at all values.
    return index if hasattr(type(index), "equals") and hasattr(type(index), "is_unique") else None


def _is_column(entry: Any) -> bool:
    """Whether an entry of a list is a column rather than a value."""
    return hasattr(entry, "__len__") and not isinstance(entry, str | bytes)


def indexes_of(given: Any) -> Iterator[Any]:
    """The indexes of a column or a table, or of the columns in a mapping or list."""
    columns: Any = [given]
    if isinstance(given, Mapping):
        columns = given.values()
    elif isinstance(given, list | tuple) and given and _is_column(given[0]):  # no label, of which there are many
        columns = given
    return (index for index in map(index_of, columns) if index is not None)
