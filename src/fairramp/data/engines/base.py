"""What the data layer needs from the engine of a lazy table.

    check          a native table     →  nothing, or an error
    fetch          a lazy table       →  its columns, in memory
    plain_names    a lazy table       →  the same table with column names that its engine accepts unquoted
    small_table    a few columns      →  a table that can be joined to a lazy one, in its session

The contents of a small table appear in no query and no plan.
"""

from abc import ABC, abstractmethod
from typing import Any

from fairramp.errors import InputError


class Engine(ABC):
    """An engine; by default, everything goes through narwhals.

    Attributes
    ----------
    name, title : str
        The name that narwhals uses, and the name for people.
    folds_case : bool
        Whether column names that differ only in case are the same name.
    may_repeat_names : bool
        Whether its tables can have two columns of the same name, unnoticed by narwhals.
    """

    name: str
    title: str
    folds_case = False
    may_repeat_names = False

    def check(self, native: Any) -> None:
        """Raise for tables that narwhals accepts but fairramp does not."""
        if self.may_repeat_names and len(set(native.columns)) < len(native.columns):
            raise InputError("Two columns of the table have the same name", remedy="rename one of them")

    def fetch(self, frame: Any) -> dict[str, Any]:
        """Compute a lazy table; columns are arrays, or lists if they hold group labels."""
        return {
            column.name: _labels(column) if column.name.startswith("g") else column.to_numpy()
            for column in frame.collect().iter_columns()
        }

    def plain_names(self, frame: Any) -> tuple[Any, dict[str, str]]:
        """A lazy table with column names that the engine accepts as they are, and the new name of each column."""
        return frame, {name: name for name in frame.collect_schema().names()}

    @abstractmethod
    def small_table(self, native: Any, columns: dict[str, list[Any]]) -> Any:
        """A small native table that can be joined to a lazy one; its contents are not logged."""


def _labels(column: Any) -> list[Any]:
    """Values of a column of labels; pandas uses nan where others use None."""
    nulls = column.is_null().to_list()
    return [None if null else value for value, null in zip(column.to_list(), nulls, strict=True)]
