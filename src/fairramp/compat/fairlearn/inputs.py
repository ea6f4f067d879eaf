"""Fairlearn's arguments: checked, with the messages that its users know, and groups in its forms.

A rule's group labels are strings, integers, booleans or missing. Fairlearn also takes intervals, dates and
fractions; in a rule, these are text. Several columns are tuples in a rule and one merged string in Fairlearn.
"""
# ruff: noqa: N803 -- scikit-learn calls it X, and so do its callers, by keyword

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _num_samples, check_array

from fairramp.core.curve import Array, Booleans, Floats, Integers
from fairramp.core.labels import Label
from fairramp.data.aligned import other_rows, reordered, same_rows
from fairramp.data.arrays import as_column
from fairramp.data.groups import Codes, encode_groups
from fairramp.errors import InputError, warn
from fairramp.sklearn.rows import method_of, scores_of

#: The methods that return a model's values, in the order in which "auto" tries them.
METHODS = ("predict_proba", "decision_function", "predict")


def zero_one(y: Any) -> npt.NDArray[np.int64]:
    """One column of 0 and 1."""
    column = np.asarray(y)
    if y is None or column.size == 0:
        raise InputError(
            "Must supply nonempty y", got=None if y is None else column.tolist(), remedy="pass the true outcomes"
        )
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise InputError("must be of shape (n,) or (n, 1), got shape {shape}", argument="y", shape=column.shape)
    good = np.isin(column, (0, 1))
    if not good.all():
        raise InputError("Supplied y labels are not 0 or 1", got=column[~good].tolist()[0])
    return column.astype(np.int64)


def as_integers(y: Any) -> Any:
    """Labels in their container, as integers; that is how Fairlearn passes them on to the estimator."""
    return y.astype(int) if hasattr(y, "astype") else np.asarray(y).astype(int).tolist()


def n_rows(X: Any) -> int:
    """Number of rows of X, at least one."""
    if X is None:
        raise InputError("Expected 2D array, got scalar array instead: X is None", remedy="pass a table")
    n: int = _num_samples(X)
    if not n:
        raise InputError("Found array with 0 sample(s) (X) while a minimum of 1 is required")
    return n


def check_same_rows(n: int, n_labels: int, what: str = "y") -> None:
    """Raise if X has more or fewer rows than there are labels, or values of the estimator."""
    if n != n_labels:
        raise InputError(
            "X and y must have same number of rows, got {n} rows of X and {n_labels} of {what}",
            n=n,
            n_labels=n_labels,
            what=what,
        )


def warn_unaligned(**columns: Any) -> None:
    """Warn about the same index values in another order, which can hardly be meant.

    Other indexes are ignored, as in Fairlearn, whose scripts must still run.
    """
    found = other_rows(**columns)
    if found and same_rows(*found[2:]):
        first, name, *_ = found
        warn(
            "{name} has the index values of {first} in a different order; as in Fairlearn, rows are matched by "
            "position. If that is not meant, pass {code}",
            name=name,
            first=first,
            code=reordered(name, first, columns),
        )


def method_for(estimator: Any, predict_method: str) -> str:
    """The method that returns the estimator's values."""
    return method_of(estimator, predict_method, METHODS)


def values_of(estimator: Any, X: Any, method: str) -> Floats:
    """The estimator's values, one per row: of `predict_proba`, the second column."""
    if method == "predict_proba":
        return scores_of(estimator, X, method).astype(np.float64, copy=False)
    values = np.asarray(getattr(estimator, method)(X))
    return as_column(values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values, f"estimator.{method}")


# Groups ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Groups:
    """The groups of rows, under the labels of a rule and the keys of Fairlearn.

    Attributes
    ----------
    codes : Codes
        The group of each row.
    keys : dict
        The key of each group in Fairlearn's dictionaries, by its label.
    """

    codes: Codes
    keys: Mapping[Label, Any]

    @classmethod
    def of(cls, given: Any, n: int) -> "Groups":
        """Encode the groups of n fit rows."""
        codes = _encoded(given, n)
        numbers = codes.block(0, n)
        first = np.full(len(codes.labels), n)
        np.minimum.at(first, numbers, np.arange(n))
        occurring = np.flatnonzero(first < n)
        raw = _raw(given, first[occurring])
        keys = {codes.labels[i]: key for i, key in zip(occurring.tolist(), raw, strict=True)}
        return cls(codes, keys)

    def again(self, given: Any, n: int) -> Codes:
        """Encode the groups of n new rows; labels that are equal in Python, like True and 1, are one group."""
        same = {label: label for label in self.keys}
        codes = _encoded(given, n, self.codes.names)
        return replace(codes, labels=tuple(same.get(label, label) for label in codes.labels))

    def rows(self) -> list[tuple[Label, Any, Booleans]]:
        """The label, the key and the rows of each group."""
        numbers, place = self.codes.block(0, len(self.codes)), {x: i for i, x in enumerate(self.codes.labels)}
        return [(label, key, numbers == place[label]) for label, key in self.keys.items()]


def _encoded(given: Any, n: int, names: tuple[str, ...] | None = None) -> Codes:
    if given is None:
        raise InputError("Must specify sensitive_features (for now)", remedy="pass the group of each row")
    table = _table(given)
    try:
        codes = encode_groups(table, names)
    except InputError:
        text = _as_text(table)
        if text is None:
            raise
        codes = encode_groups(text, names)
    if len(codes) != n:
        raise InputError(
            "Found input variables with inconsistent numbers of samples: {lengths} (X and sensitive_features)",
            lengths=[n, len(codes)],
        )
    return codes


def _table(given: Any) -> Any:
    """Groups with a list of rows as a table, because fairramp would read it as a list of columns."""
    if isinstance(given, list) and given and all(isinstance(row, list | tuple) for row in given):
        if len({len(row) for row in given}) > 1:
            raise InputError(
                "has rows of different lengths", argument="sensitive_features", remedy="pass one value per column"
            )
        table = np.empty((len(given), len(given[0])), dtype=object)
        table[:] = given
        return table
    return given


def _as_text(table: Any) -> Any:
    """Groups with values that a rule cannot name as text; None if there are none."""
    if hasattr(table, "columns") and hasattr(table, "__dataframe__"):
        columns = {str(name): np.asarray(table[name]) for name in table.columns}
    else:
        array = np.asarray(table, dtype=object) if isinstance(table, list) else np.asarray(table)
        columns = {str(i): array[:, i] for i in range(array.shape[1])} if array.ndim == 2 else {"": array}
    spelled = {name: _column_text(values) for name, values in columns.items()}
    if all(new is old for new, old in zip(spelled.values(), columns.values(), strict=True)):
        return None
    named = hasattr(table, "columns")
    return spelled if named else list(spelled.values())


def _column_text(values: Array) -> Any:
    """A column with its unusual values as text; the same object if there are none."""
    objects = list(values) if values.dtype.kind == "M" else values.tolist()
    try:
        text = {value: _text(value) for value in set(objects)}
    except TypeError:  # not hashable
        return values
    return values if all(new is old for old, new in text.items()) else [text[value] for value in objects]


def _text(value: Any) -> Any:
    """A group as text, unless a rule can name it."""
    if value is None or isinstance(value, str | int | np.integer | np.bool_) or type(value).__name__ == "NAType":
        return value
    if value != value:  # NaN
        return None
    if isinstance(value, float | np.floating):
        return value if float(value).is_integer() else repr(float(value))
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    return value.isoformat().removesuffix("T00:00:00") if hasattr(value, "isoformat") else str(value)


def _raw(given: Any, rows: Integers) -> list[Any]:
    """The values of some rows, as Fairlearn's dictionaries name them: several columns are one string."""
    if isinstance(given, Mapping):
        given = np.column_stack([np.asarray(column, dtype=object) for column in given.values()])
    table: Array = check_array(_table(given), ensure_2d=False, dtype=None, ensure_all_finite=False)
    if table.ndim == 2 and table.shape[1] == 1:
        table = table[:, 0]
    if table.ndim == 1:
        pandas = sys.modules.get("pandas")
        if table.dtype.kind == "M":
            return list(table[rows] if pandas is None else pandas.Series(table[rows]))  # as timestamps
        values: list[Any] = table[rows].tolist()
        return values
    # As in Fairlearn, a comma within a value is escaped.
    return [
        ",".join(part.replace("\\", "\\\\").replace(",", "\\,") for part in row)
        for row in table[rows].astype(str).tolist()
    ]
