"""Columns that belong together must have the same pandas index, because rows are matched by position.

    scores.index  [3, 1, 2]     groups.index  [1, 2, 3]     →  an error: row 0 would be two people

Columns without an index (arrays, lists, polars, Arrow) are matched by position with any other.
"""

from collections.abc import Mapping
from typing import Any

from fairramp.core.indexes import index_of, indexes_of
from fairramp.errors import InputError


def other_rows(**columns: Any) -> tuple[str, str, Any, Any] | None:
    """The first two arguments with different indexes, and these; lengths that differ are reported elsewhere."""
    known = [(name, index) for name, given in columns.items() for index in indexes_of(given)]
    for name, index in known[1:]:
        first, reference = known[0]
        if len(index) == len(reference) and not index.equals(reference):  # at once for views of one index
            return first, name, reference, index
    return None


def check_aligned(**columns: Any) -> None:
    """Raise if columns that are used together have different pandas indexes."""
    found = other_rows(**columns)
    if found is None:
        return
    first, name, reference, index = found
    if first == name:
        raise InputError(
            "The columns of {" + name + "} have different pandas indexes, and rows are matched by position",
            remedy="take them from one dataframe, or pass each one's .to_numpy() if their rows match",
        )
    is_reordered = same_rows(reference, index)
    raise InputError(
        (
            "has the index values of {" + first + "} in a different order"
            if is_reordered
            else "has a different pandas index from {" + first + "}"
        )
        + ", and rows are matched by position",
        argument=name,
        remedy="put them in the same order: {code}"
        if is_reordered
        else "if row i of both is the same person, pass {code}; otherwise join them by index first",
        code=reordered(name, first, columns) if is_reordered else _each(name, columns[name], ".to_numpy()"),
    )


def check_passed_with(features: Any, **columns: Any) -> None:
    """Raise if columns passed with the features of an estimator do not belong to the same rows.

    Transformers that return dataframes number the rows of an array, so such an index says nothing about columns
    that are not numbered like that; these are still compared with each other.
    """
    index = index_of(features)
    given = [other for column in columns.values() for other in indexes_of(column)]
    is_numbered = getattr(index, "start", None) == 0 and getattr(index, "step", None) == 1
    if is_numbered and not all(index.equals(other) or same_rows(index, other) for other in given):
        features = None
    check_aligned(X=features, **columns)


def same_rows(first: Any, second: Any) -> bool:
    """Whether two different indexes have the same values, each of them once."""
    if first.nlevels != second.nlevels:  # of which one is a MultiIndex
        return False
    return bool(first.is_unique and second.is_unique and first.isin(second).all())


def reordered(name: str, first: str, columns: Mapping[str, Any]) -> str:
    """Python code that puts the rows of an argument in the order of another."""
    return _each(name, columns[name], f".loc[{_index_code(first, columns[first])}]")


def _each(name: str, given: Any, method: str) -> str:
    """Python code that applies a method of pandas to an argument, or to each of its columns with an index.

    >>> _each("groups", {"sex": [0]}, ".to_numpy()")
    "{'sex': groups['sex']}"
    """
    if not isinstance(given, Mapping | list | tuple):
        # Group probabilities have the index of the columns that they were made of.
        return f"{name}{method}" if hasattr(given, "loc") else f"{type(given).__name__}(columns{method}, labels)"
    is_named, columns = isinstance(given, Mapping), _by_key(given)
    if all(index_of(column) is not None for column in columns.values()):
        return (
            f"{{name: column{method} for name, column in {name}.items()}}"
            if is_named
            else f"[column{method} for column in {name}]"
        )
    codes = {
        key: f"{name}[{key!r}]{'' if index_of(column) is None else method}" for key, column in columns.items()
    }
    if is_named:
        return f"{{{', '.join(f'{key!r}: {code}' for key, code in codes.items())}}}"
    return f"[{', '.join(codes.values())}]"


def _index_code(name: str, given: Any) -> str:
    """Python code for the index of an argument."""
    if not isinstance(given, Mapping | list | tuple):
        return f"{name}.index"
    return f"{name}[{next(key for key, one in _by_key(given).items() if index_of(one) is not None)!r}].index"


def _by_key(given: Any) -> dict[Any, Any]:
    """The columns of a mapping or list, by name or place."""
    return dict(given if isinstance(given, Mapping) else enumerate(given))
