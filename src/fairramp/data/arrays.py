"""The door: what comes in as an array is checked here, in one clear sentence.

Ranges of scores are checked where the blocks are read (`rows`), so that no pass is made for it.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fairramp.core.checks import check_length
from fairramp.errors import InputError, shown

__all__ = [
    "as_column",
    "as_labels",
    "as_scores",
    "as_weights",
    "split_validation",
]


def as_scores(values: Any) -> npt.NDArray[Any]:
    """One column of real numbers, not copied if it is one already."""
    column = _as_numbers(values, "scores")
    if column.ndim == 2 and column.shape[1] == 2:
        raise InputError(
            f"`scores` must be one column, got shape {column.shape}; from predict_proba pass [:, 1]."
        )
    if column.ndim == 0:
        raise InputError(f"`scores` must be one column, got {shown(values)}; for one row pass a list of one.")
    if column.ndim != 1:
        raise InputError(f"`scores` must be one column, got shape {column.shape}.")
    if not len(column):
        raise InputError("`scores` is empty; pass at least one row.")
    return column


def as_column(values: Any, name: str) -> npt.NDArray[np.float64]:
    """One column of finite numbers, in float64."""
    column = _as_numbers(values, name).astype(np.float64, copy=False)
    if column.ndim != 1:
        what = f"shape {column.shape}" if column.ndim else f"{values!r}"
        raise InputError(f"`{name}` must be one column of numbers, got {what}.")
    if not len(column):
        raise InputError(f"`{name}` is empty; pass at least one row.")
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        raise InputError(f"`{name}` must be finite numbers, got {float(column[bad[0]])} in row {bad[0]}.")
    return column


def as_weights(values: Any, n_rows: int, of: str = "scores") -> npt.NDArray[np.float64]:
    """Row weights in float64: finite, none negative, not all 0; as many as the column `of` has rows."""
    weights = _as_numbers(values, "sample_weight").astype(np.float64, copy=False)
    if weights.ndim != 1:
        raise InputError(f"`sample_weight` must be one column, got shape {weights.shape}.")
    check_length("sample_weight", len(weights), n_rows, of)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise InputError(
            f"`sample_weight` must be finite and not negative, got {float(weights[bad[0]])!r} in row {bad[0]}."
        )
    if not weights.any():
        raise InputError("`sample_weight` is zero in every row; at least one must be positive.")
    return weights


def as_labels(values: Any, n_rows: int, of: str = "scores") -> npt.NDArray[np.float64]:
    """Labels as 0.0 and 1.0; as many as the column `of` has rows."""
    labels = _as_numbers(values, "labels").astype(np.float64, copy=False)
    if labels.ndim == 0:
        raise InputError(
            f"`labels` must be one column of 0 and 1, got {shown(values)}; "
            "settings are passed by name, like max_gap=0.05."
        )
    if labels.ndim != 1:
        raise InputError(f"`labels` must be one column, got shape {labels.shape}.")
    check_length("labels", len(labels), n_rows, of)
    bad = np.flatnonzero((labels != 0) & (labels != 1))
    if len(bad):
        raise InputError(f"`labels` must be 0 or 1, got {float(labels[bad[0]])!r} in row {bad[0]}.")
    return labels


def _as_numbers(values: Any, name: str) -> npt.NDArray[Any]:
    try:
        column = np.asanyarray(values)
    except ValueError:
        raise InputError(f"`{name}` must be one column of numbers, got rows of different length.") from None
    if isinstance(column, np.ma.MaskedArray):
        if np.ma.is_masked(column):
            row = int(np.flatnonzero(np.ma.getmaskarray(column).ravel())[0])
            raise InputError(f"`{name}` must be numbers, got a masked value in row {row}.")
        column = column.data
    column = np.asarray(column)
    if column.dtype.kind == "O":
        bad = next(((i, v) for i, v in enumerate(column.ravel()) if not _is_number(v)), None)
        if bad is not None:
            raise InputError(f"`{name}` must be numbers, got {shown(bad[1])} in row {bad[0]}.")
        column = column.astype(np.float64)
    if column.dtype.kind not in "fiub":
        what = "text" if column.dtype.kind in "UST" else f"values of type {column.dtype.name}"
        raise InputError(f"`{name}` must be numbers, got {what}.")
    return column.astype(np.float64) if column.dtype.kind in "iub" or column.dtype.itemsize > 8 else column


def _is_number(value: Any) -> bool:
    if isinstance(value, str | bytes):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def split_validation(validation: Any) -> tuple[Any, Any, Any, Any]:
    """Scores, groups, labels and weights (or None) of validation rows."""
    if not isinstance(validation, tuple) or len(validation) not in (3, 4):
        raise InputError("`validation` must be a tuple (scores, groups, labels) or with a fourth, weights.")
    scores, groups, labels, *weights = validation
    return scores, groups, labels, weights[0] if weights else None
