"""Requirements on the content of a summary file; see `bins` for its fields.

Each requirement is a sentence, the message if it is not met, and a test. A test may rely on those before it.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fairramp.core.curve import Floats
from fairramp.core.labels import label_key
from fairramp.data.grid import Grid
from fairramp.data.sample import LARGEST_WEIGHT
from fairramp.errors import InputError

#: More rows are probably a mistake, and their integer sums could overflow.
MOST_ROWS = 1 << 62


def check(laws: dict[str, Callable[..., Any]], *things: Any, **values: Any) -> None:
    """Raise if a requirement is not met; `values` are for its message."""
    for rule, holds in laws.items():
        if not holds(*things):
            raise InputError(rule, **values)


def floats(values: Sequence[float]) -> Floats:
    """A list as an array."""
    return np.array(values, dtype=np.float64)


def _rising(values: Sequence[Any]) -> bool:
    return all(a < b for a, b in pairwise(values))


def _in_their_bins(entry: Any, grid: Grid) -> bool:
    mean = floats(entry.mean)
    inside = np.clip(mean, grid.scale.lowest, grid.scale.highest)
    return np.array_equal(inside, mean) and np.array_equal(grid.bins(inside), entry.bin)


def _lists(e: Any) -> tuple[Any, ...]:
    """The lists with one entry per bin."""
    positives = e.positive_rows, e.positive_weight, e.positive_weight_squares
    return e.bin, e.rows, e.mean, e.weight, e.weight_squares, *positives


def _is_part(e: Any, some: Sequence[float], total: Sequence[float]) -> Any:
    """Whether sums over rows with label 1 are between 0 and those over all rows, up to rounding."""
    part, whole, complete = floats(some), floats(total), np.equal(e.positive_rows, e.rows)
    fits = (part >= 0) & (part <= whole * (1 + 1e-9)) & (~complete | (part >= whole * (1 - 1e-9)))
    return fits.all()


#: Requirements on a file; each may rely on those before it.
LAWS: dict[str, Callable[..., Any]] = {
    "A summary needs at least one group": lambda document: document.groups,
    "The groups of a stratified summary must be pairs (stratum, group)": lambda document: (
        not document.stratified or all(isinstance(e.label, tuple) and len(e.label) == 2 for e in document.groups)
    ),
    "The groups of a summary must be distinct and in order": lambda document: _rising(
        [label_key(entry.label) for entry in document.groups]
    ),
}
#: Requirements on a group's lists.
GROUP_LAWS: dict[str, Callable[..., Any]] = {
    "Group {label} has no rows": lambda e, grid, file: e.bin,
    '"bin" of group {label} must be increasing and below {edges}': lambda e, grid, file: (
        _rising(e.bin) and e.bin[-1] < len(grid.edges)
    ),
    '"rows" of group {label} must be positive integers': lambda e, grid, file: (
        min(e.rows, default=0) > 0 and sum(e.rows) < MOST_ROWS
    ),
    '"weight" and "weight_squares" of group {label} must be null if and only if rows are unweighted': (
        lambda e, grid, file: {file.weighted} == {e.weight is not None, e.weight_squares is not None}
    ),
    '"positive_rows" of group {label} must be null if and only if rows have no labels': (
        lambda e, grid, file: file.labeled == (e.positive_rows is not None)
    ),
    '"positive_weight" and "positive_weight_squares" of group {label} must be null if and only if rows have no '
    "labels or no weights": lambda e, grid, file: (
        {file.labeled and file.weighted}
        == {v is not None for v in (e.positive_weight, e.positive_weight_squares)}
    ),
    "The lists of group {label} have different lengths": lambda e, grid, file: (
        len({len(v) for v in _lists(e) if v is not None}) == 1
    ),
    "The weights of group {label} must be positive and below {largest:g}": lambda e, grid, file: (
        not file.weighted
        or (
            (min(e.weight) > 0 and min(e.weight_squares) >= 0)
            and all(w < LARGEST_WEIGHT * n for w, n in zip(e.weight, e.rows, strict=True))
        )
    ),
    '"weight_squares" of group {label} must be at most the squares of "weight"': lambda e, grid, file: (
        not file.weighted or (floats(e.weight_squares) <= floats(e.weight) ** 2 * (1 + 1e-9)).all()
    ),
    '"one_score" of group {label} must be increasing and list bins with several rows': lambda e, grid, file: (
        _rising(e.one_score)
        and {bin_ for bin_, n in zip(e.bin, e.rows, strict=True) if n > 1}.issuperset(e.one_score)
    ),
    "A mean of group {label} is outside its bin": lambda e, grid, file: _in_their_bins(e, grid),
}
#: Requirements on a group's lists of rows with label 1.
LABEL_LAWS: dict[str, Callable[..., Any]] = {
    '"positive_rows" of group {label} must be at most "rows"': lambda e, grid, file: np.less_equal(
        e.positive_rows, e.rows
    ).all(),
}
#: The same for their weights.
LABEL_WEIGHT_LAWS: dict[str, Callable[..., Any]] = {
    '"positive_weight" of group {label} must be positive where "positive_rows" is, and 0 elsewhere': (
        lambda e, grid, file: (
            min(e.positive_weight) >= 0 and np.equal(np.sign(e.positive_rows), np.sign(e.positive_weight)).all()
        )
    ),
    '"positive_weight" of group {label} must be at most "weight", and the same if all rows have label 1': (
        lambda e, grid, file: _is_part(e, e.positive_weight, e.weight)
    ),
    '"positive_weight_squares" of group {label} must be at most "weight_squares", and the same if all rows have '
    "label 1": lambda e, grid, file: _is_part(e, e.positive_weight_squares, e.weight_squares),
    '"positive_weight_squares" of group {label} must be at most the squares of "positive_weight"': (
        lambda e, grid, file: (
            floats(e.positive_weight_squares) <= floats(e.positive_weight) ** 2 * (1 + 1e-9)
        ).all()
    ),
}
