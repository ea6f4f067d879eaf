"""Several classes: offsets, then the projection onto the simplex. The only NumPy implementation of the formula.

    h = projection onto the simplex of (p − offset) / width         width > 0
    h = 1 for the largest p, the first one in a tie, 0 otherwise    width = 0

for the scores p of a row's classes. The point of the simplex {h ≥ 0, Σ h = 1} nearest to z is h_c = max(z_c − θ,
0) with θ = max over m of (sum of the m largest z − 1)/m. Adding a constant to all z changes nothing, so the
largest is subtracted first: differences of nearby scores are then exact, even if the width is small.

Arrays have one row per class and one column per person.
"""

import numpy as np

from fairramp.core.curve import Booleans, Floats, Integers

#: Up to this many classes, columns are sorted by comparing pairs of rows; more are sorted one by one.
_NETWORK = 16


def class_chances(values: Floats, width: float, out: Floats | None = None) -> Floats:
    """Chance of each class.

    Parameters
    ----------
    values : floats of shape (C, n)
        p − offset.
    width : float
        Width of the ramps; 0 or positive.
    out : floats of shape (C, n), optional
        Output array; may be `values`.
    """
    if width == 0:
        own = np.argmax(values, axis=0)
        found = np.zeros(values.shape) if out is None else out
        found[:] = np.arange(len(values))[:, None] == own
        return found
    z = np.subtract(values, values.max(axis=0), out=out)
    with np.errstate(over="ignore"):  # offsets far away
        z /= width
    z -= level_of(z)
    chances: Floats = np.maximum(z, 0.0, out=z)
    return chances


def level_of(z: Floats) -> Floats:
    """θ, the number that is subtracted from each column of z so that its positive parts sum to 1."""
    n_classes = len(z)
    if n_classes <= _NETWORK:
        rows = list(z)
        for i in range(n_classes - 1, 0, -1):  # bubble the smallest of the first i + 1 rows to row i
            for j in range(i):
                rows[j], rows[j + 1] = np.maximum(rows[j], rows[j + 1]), np.minimum(rows[j], rows[j + 1])
    else:
        rows = list(-np.sort(-z, axis=0))
    total = rows[0] - 1.0
    level: Floats = total.copy()
    for m, row in enumerate(rows[1:], start=2):
        total += row
        np.maximum(level, total / m, out=level)
    return level


def largest_two(values: Floats) -> tuple[Floats, Floats, Integers]:
    """The largest value of each column, the second largest, and the index of the largest, the first in a tie."""
    largest, second = values[0].copy(), np.full(values.shape[1], -np.inf)
    index = np.zeros(values.shape[1], dtype=np.intp)
    for i, row in enumerate(values[1:], start=1):
        np.copyto(index, i, where=row > largest)
        np.maximum(second, np.minimum(row, largest), out=second)
        np.maximum(largest, row, out=largest)
    return largest, second, index


def drawn_classes(chances: Floats, draws: Floats, order: Integers) -> Integers:
    """The class of each column: the first one, in the given order, whose cumulative chance exceeds the draw.

    Rounding can leave a sum slightly below 1; a draw above it gets the last class with a positive chance.
    """
    cumulative = np.cumsum(chances[order], axis=0)
    place = np.argmax(cumulative > draws, axis=0)
    beyond: Booleans = draws >= cumulative[-1]
    last = len(order) - 1 - np.argmax(chances[order][::-1] > 0, axis=0)
    found: Integers = order[np.where(beyond, last, place)]
    return found
