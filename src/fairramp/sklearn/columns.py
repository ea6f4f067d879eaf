"""Columns of X that contain labels, chosen as in scikit-learn's ColumnTransformer.

    "sex"   3   ["sex", "race"]   slice(3, 5)   a mask        columns of X
    a function of X that returns one of these                 columns of X, chosen once, in the fit
    a function of X that returns one label per row            labels, computed for every X

A choice is settled in the fit, where a function is called, and stored as a `Source`.
"""
# ruff: noqa: N803 -- scikit-learn calls it X, and so do its callers, by keyword

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _num_samples

from fairramp.core.checks import nearest
from fairramp.core.labels import label_parts
from fairramp.data.groups import Codes
from fairramp.errors import InputError


@dataclass(frozen=True)
class Source:
    """Where the labels of rows come from, as settled in the fit.

    Attributes
    ----------
    argument : str
        The argument that chose it.
    columns : tuple of str or int, or None
        Names or positions of columns of X; None if `function` returns the labels.
    function : callable, or None
        Returns one label per row of X, or several columns of them.
    n_features : int
        Number of columns of X in the fit.
    names : tuple of str, or None
        Their names, if X was a dataframe with names of type str.
    """

    argument: str
    columns: tuple[str | int, ...] | None
    function: Callable[[Any], Any] | None
    n_features: int
    names: tuple[str, ...] | None

    def labels(self, X: Any) -> Any:
        """The labels of new rows: columns of X, or the result of the function."""
        table = as_table(X)
        if self.function is not None:
            return _called(self.function, table)
        assert self.columns is not None
        frame = _frame(table)
        places = [_place(column, table, self.argument) for column in self.columns]
        if frame is not None:
            columns = list(frame.iter_columns())
            return {str(frame.columns[place]): columns[place].to_native() for place in places}
        parts = [(table.tocsc() if issparse(table) else table)[:, [place]] for place in places]
        return [(part.toarray() if issparse(part) else part).ravel() for part in parts]

    def lacks(self, X: Any) -> bool:
        """Whether X has none of these columns, but may have all others."""
        table = as_table(X)
        assert self.columns is not None
        frame, names = _frame(table), {column for column in self.columns if isinstance(column, str)}
        if frame is not None and names:
            return not names & set(frame.columns)
        places = {column if isinstance(column, str) else column % self.n_features for column in self.columns}
        return bool(table.shape[1] == self.n_features - len(places))

    def without(self, X: Any) -> Any:
        """X without these columns, as the same kind of table."""
        table = as_table(X)
        assert self.columns is not None
        n_features = table.shape[1]
        if n_features != self.n_features and not all(isinstance(column, str) for column in self.columns):
            raise InputError(
                "X has {n} features, but RandomizedThresholdOptimizer is expecting {expected} features as input",
                n=n_features,
                expected=self.n_features,
            )
        dropped = {_place(column, table, self.argument) % n_features for column in self.columns}
        kept = [place for place in range(n_features) if place not in dropped]
        if not kept:
            raise InputError(
                "{drop_sensitive:True} leaves the inner classifier no column of X",
                remedy="choose fewer {sensitive_columns}",
            )
        if (frame := _frame(table)) is not None:
            return frame[:, kept].to_native()
        rest = (table.tocsr() if issparse(table) else table)[:, kept]
        return rest.tolist() if isinstance(X, list | tuple) else rest


@dataclass(frozen=True)
class Sources:
    """Where groups and strata come from, and what the inner classifier sees of X.

    Attributes
    ----------
    groups, strata : Source or None
        None if there are no strata, or if groups are passed as `sensitive_features`.
    drop : bool
        Whether the inner classifier sees X without the group columns.
    hidden : bool
        Whether groups are used in the fit only, so that no model sees their columns, and new rows may lack them.
    """

    groups: Source | None
    strata: Source | None
    drop: bool
    hidden: bool

    @classmethod
    def settled(
        cls,
        X: Any,
        sensitive_features: Any,
        *,
        sensitive_columns: Any,
        strata: Any,
        drop: bool,
        hidden: bool,
        optional: bool = False,
    ) -> tuple[Self, Any, Any]:
        """Settle the choices in the fit, and return them with the groups and strata of X.

        Groups are missing only if they are `optional`.
        """
        if not (optional and sensitive_features is None and sensitive_columns is None):
            check_given_once(sensitive_features, sensitive_columns)
        source, groups = (
            (None, sensitive_features)
            if sensitive_columns is None
            else settled(X, sensitive_columns, "sensitive_columns")
        )
        if drop and (source is None or source.columns is None):
            raise InputError(
                "{drop_sensitive:True} requires {sensitive_columns} to choose columns of X, but it {found}",
                remedy="choose the columns there, or drop them in a pipeline inside this classifier",
                found="is None" if source is None else "returned labels",
            )
        outer, cells = (None, None) if strata is None else settled(X, strata, "strata")
        return cls(source, outer, drop, hidden), groups, cells

    def labels(self, X: Any, sensitive_features: Any) -> tuple[Any, Any]:
        """Groups, unless these are hidden, and strata of new rows."""
        strata = None if self.strata is None else self.strata.labels(X)
        if self.hidden:
            return None, strata
        return sensitive_features if self.groups is None else self.groups.labels(X), strata

    def true_groups(self, X: Any, sensitive_features: Any) -> Any:
        """The groups of new rows, hidden or not."""
        check_given_once(sensitive_features, self.groups)
        return sensitive_features if self.groups is None else self.groups.labels(X)

    @property
    def dropped(self) -> Source | None:
        """The columns that no model sees."""
        chosen = self.groups if self.groups and self.groups.columns is not None else None
        return chosen if self.drop or self.hidden else None

    def features(self, X: Any) -> Any:
        """X as the models see it."""
        if self.dropped is None or (self.hidden and self.dropped.lacks(X)):
            return X
        return self.dropped.without(X)

    def add_note(self, error: Exception, codes: Codes | None) -> None:
        """Add to a classifier's error that it also gets columns of text, which it may not understand."""
        if codes is None or self.groups is None or self.groups.columns is None or self.dropped is not None:
            return
        if any(isinstance(part, str) for label in codes.labels for part in label_parts(label)):
            names = ", ".join(map(repr, self.groups.columns))
            error.add_note(f"The classifier also gets {names}; drop_sensitive=True hides the sensitive columns.")

    def check_same(self, *, sensitive_columns: Any, strata: Any, drop: bool, hidden: bool) -> None:
        """Raise if a choice was made or removed since the fit."""
        now = {
            "sensitive_columns": (sensitive_columns is None, self.groups is None),
            "strata": (strata is None, self.strata is None),
            "drop_sensitive": (drop, self.drop),
            "group_estimator": (hidden, self.hidden),
        }
        for name, (value, then) in now.items():
            if value != then:
                raise InputError("has changed since `fit`", argument=name, remedy="call `fit` again")


def check_given_once(sensitive_features: Any, chosen: Any) -> None:
    """Raise unless groups are either passed or chosen from X."""
    passed = sensitive_features is not None
    if passed == (chosen is not None):
        raise InputError(
            "The groups are given twice: pass either {sensitive_features} here or {sensitive_columns} to the "
            "constructor"
            if passed
            else "The groups are missing: pass {sensitive_features}, or columns of X in {sensitive_columns}. "
            "scikit-learn's tools pass on {sensitive_features} only after "
            "sklearn.set_config(enable_metadata_routing=True), and some never do"
        )


def settled(X: Any, wanted: Any, argument: str) -> tuple[Source, Any]:
    """Settle a choice in the fit, and return it with the labels of X."""
    table = as_table(X)
    frame, n_features = _frame(table), table.shape[1]
    names = None if frame is None or any(type(c) is not str for c in frame.columns) else tuple(frame.columns)
    found = _called(wanted, table) if callable(wanted) else wanted
    if callable(wanted) and (
        _is_table(found) or (_length(found) == _num_samples(table) and not _selects(table, found, argument))
    ):
        return Source(argument, None, wanted, n_features, names), found
    source = Source(argument, _selected(table, found, argument), None, n_features, names)
    return source, source.labels(table)


def _called(function: Callable[[Any], Any], table: Any) -> Any:
    """What a function of X returns, not sparse."""
    found = function(table)
    return found.toarray() if issparse(found) else found


def as_table(X: Any) -> Any:
    """X as a dataframe, sparse matrix or array of two dimensions; lists become arrays of objects."""
    if _frame(X) is not None:
        return X
    table: Any = X if issparse(X) or isinstance(X, np.ndarray) else np.array(X, dtype=object)
    if table.ndim != 2:
        raise InputError("must be two-dimensional, got shape {shape}", argument="X", shape=table.shape)
    return table


def _frame(table: Any) -> Any:
    """A narwhals dataframe, or None if the table has no columns with names."""
    try:
        frame = nw.from_native(table, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = [str(name) for name in table.columns]
        raise InputError(
            "has two columns named {name!r}",
            argument="X",
            remedy="rename one of them",
            name=next(name for name in names if names.count(name) > 1),
        ) from None
    return frame if isinstance(frame, nw.DataFrame) else None


def _is_table(found: Any) -> bool:
    """Whether something is several columns of labels, or one as a table, so it cannot be a list of columns."""
    if isinstance(found, Mapping) or getattr(found, "ndim", 1) == 2 or _frame(found) is not None:
        return True
    inner = found if isinstance(found, list | tuple) else ()
    return bool(inner) and all(isinstance(c, list) or getattr(c, "ndim", 0) == 1 for c in inner)


def _length(found: Any) -> int | None:
    """Number of entries; None for what has no entries."""
    return len(found) if hasattr(found, "__len__") and not isinstance(found, str) else None


def _selects(table: Any, found: Any, argument: str) -> bool:
    """Whether as many values as X has rows are names of columns; raises if they may also be labels."""
    n_rows, n_features = _num_samples(table), table.shape[1]
    if n_rows > n_features:  # more values than there are columns to select
        return False
    values = np.asarray(found).tolist()
    names = () if (frame := _frame(table)) is None else frame.columns
    if all(isinstance(value, str) for value in values):
        return all(value in names for value in values)
    mask = all(isinstance(value, bool) for value in values) and n_rows == n_features
    positions = all(type(value) is int and -n_features <= value < n_features for value in values)
    if mask or (positions and len(set(values)) == n_rows):
        raise InputError(
            "returned {n} values for {n} rows and {n_features} columns, which may be labels or columns",
            argument=argument,
            remedy="return labels as a table with one column, and columns as names or a slice",
            n=n_rows,
            n_features=n_features,
        )
    return False


def _selected(table: Any, wanted: Any, argument: str) -> tuple[str | int, ...]:
    """The names or positions that a choice stands for."""
    if isinstance(wanted, str | int | np.integer) and not isinstance(wanted, bool):
        return (wanted if isinstance(wanted, str) else int(wanted),)
    if isinstance(wanted, slice):
        return _sliced(table, wanted, argument)
    values = (
        [v.item() if isinstance(v, np.generic) else v for v in wanted] if isinstance(wanted, Iterable) else []
    )
    if values and all(isinstance(value, bool) for value in values):
        if len(values) != table.shape[1]:
            raise InputError(
                "is a mask of {n} values, but X has {n_features} columns",
                argument=argument,
                n=len(values),
                n_features=table.shape[1],
            )
        values = [place for place, chosen in enumerate(values) if chosen]
    if not values or not all(isinstance(v, str | int) and not isinstance(v, bool) for v in values):
        raise InputError(
            "must be names or positions of columns, a mask, a slice, or a function of X that returns them or one "
            "label per row",
            argument=argument,
            got=wanted,
        )
    return tuple(values)


def _sliced(table: Any, wanted: slice, argument: str) -> tuple[int, ...]:
    """The positions in a slice; one between names includes its end, as in scikit-learn."""
    ends = [end for end in (wanted.start, wanted.stop) if end is not None]
    if not ends or not all(isinstance(end, str) for end in ends):
        places = range(table.shape[1])[wanted]
    else:
        first = 0 if wanted.start is None else _place(wanted.start, table, argument)
        last = table.shape[1] - 1 if wanted.stop is None else _place(wanted.stop, table, argument)
        places = range(first, last + 1)[:: wanted.step]
    if not places:
        raise InputError("selects no column of X", argument=argument, got=wanted)
    return tuple(places)


def _place(column: str | int, table: Any, argument: str) -> int:
    """The position of a column of X."""
    n_features, frame = table.shape[1], _frame(table)
    if not isinstance(column, str):
        if not -n_features <= column < n_features:
            raise InputError(
                "has position {position}, but X has {n_columns} columns",
                argument=argument,
                position=column,
                n_columns=n_features,
            )
        return column
    if frame is None:
        raise InputError(
            "names the column {name!r}, but X is of type {kind} and has no names",
            argument=argument,
            remedy="pass positions, or X as a dataframe, or put the pipeline inside: "
            "RandomizedThresholdOptimizer(make_pipeline(…))",
            name=column,
            kind=type(table).__name__,
        )
    if column not in (names := list(frame.columns)):
        raise InputError(
            "names {name!r}, but X has the columns {names}",
            argument=argument,
            remedy=nearest(column, names),
            name=column,
            names=names,
        )
    return names.index(column)
