"""What the data layer asks of the engine of a lazy table.

    check          a native table     →  nothing, or one clear sentence
    fetch          a lazy table       →  its columns, in memory
    plain_names    a lazy table       →  the same under names that its engine takes as they are
    small_table    a few columns      →  a table that can be joined to a lazy one, in its session

What an engine is given in a small table shows in no query and in no plan.
"""

from abc import ABC, abstractmethod
from typing import Any

from fairramp.errors import InputError


class Engine(ABC):
    """An engine; what is not said otherwise goes through narwhals.

    Attributes
    ----------
    name : str
        As narwhals has it.
    folds_case : bool
        Whether names of columns that differ only in upper and lower case are one name.
    may_repeat_names : bool
        Whether its tables can have two columns of one name, unseen by narwhals.
    """

    name: str
    folds_case = False
    may_repeat_names = False

    def check(self, native: Any) -> None:
        """Refuse what narwhals lets pass."""
        if self.may_repeat_names and len(set(native.columns)) < len(native.columns):
            raise InputError("Two columns of the table have the same name", remedy="rename one of them")

    def fetch(self, frame: Any) -> dict[str, Any]:
        """Compute a lazy table and return its columns as arrays; as lists where they hold group labels."""
        return {
            column.name: _labels(column) if column.name.startswith("g") else column.to_numpy()
            for column in frame.collect().iter_columns()
        }

    def plain_names(self, frame: Any) -> tuple[Any, dict[str, str]]:
        """A lazy table whose columns have names that the engine takes as they are, and the plain name of each."""
        return frame, {name: name for name in frame.collect_schema().names()}

    @abstractmethod
    def small_table(self, native: Any, columns: dict[str, list[Any]]) -> Any:
        """A small table that can be joined to a lazy one, both as the engine has them; none of it is logged."""


def _labels(column: Any) -> list[Any]:
    """Values of a column of labels; pandas says nan where others say None."""
    nulls = column.is_null().to_list()
    return [None if null else value for value, null in zip(column.to_list(), nulls, strict=True)]
