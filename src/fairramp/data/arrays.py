"""Validation of columns in memory.

Score ranges are checked where blocks are read (`rows`), which saves a pass.
"""

from itertools import islice, permutations
from typing import Any

import numpy as np

from fairramp.core.blocks import map_blocks
from fairramp.core.checks import check_length
from fairramp.core.curve import Array, Booleans, Floats
from fairramp.core.labels import Label
from fairramp.errors import InputError, shown

#: What to do with labels of more than two classes.
TWO_CLASSES = (
    "pass 1 for the favorable class and 0 for all other classes, or use fairramp.fit_class_rule, which equalizes "
    "the rates of all classes"
)

#: Which scores to pass; class 1 is the second only if labels are 0 and 1.
FAVORABLE = "predict_proba(X)[:, i], where model.classes_[i] is the favorable class"

#: What to do with missing scores, which are no numbers.
NO_SCORE = "drop or fill rows without a score"
_OF_NOTHING = {"scores": NO_SCORE}
#: What to do with text instead of numbers.
_OF_TEXT = {
    "labels": TWO_CLASSES,
    "scores": f"pass {FAVORABLE}, instead of predict(X), or convert text to numbers",
}


def as_scores(values: Any) -> Array:
    """One column of real numbers; not copied if it already is one."""
    return _one_column(values, "scores", one_row="for a single row, pass a list of one value")


def as_column(values: Any, name: str) -> Floats:
    """One column of finite numbers, in float64."""
    column = _one_column(values, name, of=" of numbers").astype(np.float64, copy=False)
    _check_rows(column, np.isfinite(column), name, "must be finite numbers")
    return column


def as_weights(values: Any, n_rows: int, of: str = "scores") -> Floats:
    """Row weights in float64: finite, not negative, not all 0; as many as the column `of` has rows."""
    weights = _one_column(values, "sample_weight", like=(of, n_rows)).astype(np.float64, copy=False)
    _check_rows(
        weights, np.isfinite(weights) & (weights >= 0), "sample_weight", "must be finite and not negative"
    )
    if not weights.any():
        raise no_weight()
    return weights


def no_weight(*group: Label) -> InputError:
    """The error for weights that are all 0, overall or in one group."""
    if not group:
        return InputError("is zero in every row; at least one weight must be positive", argument="sample_weight")
    return InputError(
        "is zero in every row of group {group!r}",
        argument="sample_weight",
        remedy="give its rows a positive weight or remove them",
        group=group[0],
    )


def as_labels(values: Any, n_rows: int, of: str = "scores") -> Floats:
    """Labels as 0.0 and 1.0; as many as the column `of` has rows."""
    return checked_labels(values, n_rows, of).astype(np.float64, copy=False)


def checked_labels(values: Any, n_rows: int, of: str = "scores") -> Array:
    """Labels as passed, not copied if they are numbers, after checking that each is 0 or 1."""
    labels = _one_column(
        values,
        "labels",
        like=(of, n_rows),
        of=" of 0 and 1",
        one_row="pass settings by name, such as max_gap=0.05",
        keep_integers=True,
    )

    def sound(start: int, stop: int) -> bool:
        block = labels[start:stop]
        if labels.dtype.kind in "iu":
            return bool(block.min() >= 0 and block.max() <= 1)
        return labels.dtype.kind == "b" or bool(((block == 0) | (block == 1)).all())

    if not all(map_blocks(sound, n_rows)):
        _check_rows(labels, (labels == 0) | (labels == 1), "labels", "must be 0 or 1", _coded(labels))
    return labels


def _one_column(
    values: Any,
    name: str,
    *,
    like: tuple[str, int] | None = None,
    of: str = "",
    one_row: str | None = None,
    keep_integers: bool = False,
) -> Array:
    """Numbers in one column: as many as the column named by `like` has rows, or at least one."""
    column = _as_numbers(values, name, keep_integers=keep_integers)
    if column.ndim == 0 and (of or one_row):
        raise InputError("must be one column{of}", argument=name, got=values, remedy=one_row, of=of)
    if column.ndim != 1:
        raise InputError(
            "must be one column{of}, got shape {shape}",
            argument=name,
            remedy=_of_shape(name, column.shape, values),
            of="" if one_row else of,
            shape=column.shape,
        )
    if like is not None:
        check_length(name, len(column), like[1], like[0])
    elif not len(column):
        raise InputError("is empty", argument=name, remedy="pass at least one row")
    return column


def _coded(labels: Array) -> str:
    """What to do with labels that are not 0 and 1."""
    if np.isin(labels, (-1, 1)).all():
        return "if 1 is the favorable class, pass (labels > 0).astype(int)"
    return TWO_CLASSES


def _of_shape(name: str, shape: tuple[int, ...], values: Any) -> str | None:
    """What to pass instead of a table: of one column, or of the scores or labels of several classes."""
    if len(shape) != 2 or not shape[1]:
        return None
    if shape[1] == 1:
        columns = getattr(values, "column_names", getattr(values, "columns", None))  # of Arrow, or of a dataframe
        alone = f"numpy.ravel({name})" if columns is None else f"{name}[{columns[0]!r}]"
        return f"pass the column alone: {alone}"
    if name not in ("scores", "labels"):
        return None
    if name == "labels":
        return TWO_CLASSES
    more = "" if shape[1] == 2 else ", or use fairramp.fit_class_rule, which equalizes the rates of all classes"
    return f"pass the scores of the favorable class, such as {FAVORABLE}{more}"


def _check_rows(column: Array, sound: Booleans, name: str, rule: str, remedy: str | None = None) -> None:
    """Raise if any row is invalid, naming the first."""
    if not sound.all():
        row = int(np.argmin(sound))
        raise InputError(
            rule + ", got {value!r} in row {row}",
            argument=name,
            remedy=remedy if np.isfinite(column[row]) else None,
            value=float(column[row]),
            row=row,
        )


def _as_numbers(values: Any, name: str, *, keep_integers: bool) -> Array:
    try:
        column = np.asanyarray(values)
    except ValueError:
        raise InputError("must be one column of numbers, got rows of different lengths", argument=name) from None
    if np.ma.is_masked(column):
        first = int(np.argmax(np.ma.getmaskarray(column)))
        raise InputError("must be numbers, got a masked value in row {row}", argument=name, row=first)
    column = np.asarray(column)
    if column.dtype.kind == "O" and column.ndim == 2 and name == "scores" and column.shape[1] > 1:
        raise InputError(
            "must be one column, got a table of {n} columns",
            argument=name,
            remedy="pass one of them, or use fairramp.fit_frame(table, score=…, group=…)",
            n=column.shape[1],
        )
    if column.dtype.kind == "O":
        for row, value in enumerate(column.ravel()):
            if not _is_number(value):
                raise InputError(
                    "must be numbers, got {value} in row {row}",
                    argument=name,
                    remedy=_of_text(name, column) if isinstance(value, str) else _OF_NOTHING.get(name),
                    value=shown(value),
                    row=row,
                )
        column = column.astype(np.float64)
    if column.dtype.kind not in "fiub":
        is_text = column.dtype.kind in "UST"
        raise InputError(
            "must be numbers, got {what}",
            argument=name,
            remedy=_of_text(name, column) if is_text else None,
            what="text" if is_text else f"values of type {column.dtype.name}",
        )
    to_floats = column.dtype.itemsize > 8 or (column.dtype.kind in "iub" and not keep_integers)
    return column.astype(np.float64) if to_floats else column


def _of_text(name: str, column: Array) -> str | None:
    """What to do with text instead of numbers; two labels can be compared with the favorable one."""
    values = list(dict.fromkeys(column.ravel().tolist())) if name == "labels" else []
    if len(values) == 2 and all(isinstance(value, str) for value in values):
        first, second = (shown(value).replace("{", "{{").replace("}", "}}") for value in values)
        return f"if {first} is the favorable class and not {second}, pass (labels == {first}).astype(int)"
    return _OF_TEXT.get(name)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str | bytes)


def in_wrong_order(scores: Any, groups: Any, labels: Any) -> bool:
    """Whether columns that were refused cannot be meant in this order, and would be valid in another one."""
    try:
        given = [np.asarray(column) for column in (scores, groups, labels) if column is not None]
    except ValueError:
        return False
    _, *others = given
    return (
        all(column.ndim == 1 and 0 < len(column) == len(given[0]) for column in given)
        and (any(map(_has_fractions, others)) or any(map(_has_text, others[1:])))
        and any(
            x.dtype.kind == "f" and g.dtype.kind != "f" and all(map(_is_binary, rest))
            for x, g, *rest in islice(permutations(given), 1, None)  # the first is the given order
        )
    )


def _has_fractions(column: Array) -> bool:
    """Whether some values are finite, but no integers."""
    return column.dtype.kind == "f" and bool((np.isfinite(column) & (column != np.floor(column))).any())


def _has_text(column: Array) -> bool:
    return column.dtype.kind in "UST" or any(isinstance(value, str) for value in column)


def _is_binary(column: Array) -> bool:
    return column.dtype.kind in "biuf" and bool(((column == 0) | (column == 1)).all())


def split_validation(validation: Any, scores_name: str = "scores") -> tuple[Any, Any, Any, Any]:
    """Scores, groups, labels and weights (or None) of validation rows; the error calls scores `scores_name`."""
    if not isinstance(validation, tuple) or len(validation) not in (3, 4):
        raise InputError(
            "must be a tuple ({first}, groups, labels) or ({first}, groups, labels, weights)",
            argument="validation",
            first=scores_name,
        )
    scores, groups, labels, *weights = validation
    return scores, groups, labels, weights[0] if weights else None


def checked_out(out: Any, column: Array, codes: Array) -> Floats:
    """Check that probabilities can be written to an array while rows are still being read."""
    if not isinstance(out, np.ndarray) or out.dtype != np.float64 or out.shape != column.shape:
        raise InputError(
            "must be a NumPy array of dtype float64 and shape {shape}, got {came}",
            argument="out",
            shape=column.shape,
            came=f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else shown(out),
        )
    if not out.flags.writeable:
        raise InputError("must be writable, got a read-only array", argument="out")
    if np.shares_memory(out, column) or np.shares_memory(out, codes):
        raise InputError(
            "must not share memory with {scores} or {groups}, which are read at the same time", argument="out"
        )
    return out
