"""Calibration error: how far scores are from the rates of positive labels, as held-out rows confirm it."""

import numpy as np

from fairramp.core.curve import Floats
from fairramp.core.points import run_starts
from fairramp.core.scales import Scale
from fairramp.data.sample import Sample
from fairramp.errors import InputError

#: Folds of a calibration error, and the number of rows in a group at which two are enough.
_FOLDS, _MANY_ROWS = 5, 20_000


def calibration_errors(sample: Sample, scale: Scale) -> Floats:
    """Average calibration error of each group's scores, measured on held-out rows.

    With x the score as a probability and m the isotonic regression on the rows of the other folds,

        max(0, Σ w (y − x) sign(m(x) − x) / Σ w):

    the other folds only determine on which side of the score the outcomes lie, the held-out outcomes by how much.
    For calibrated scores the sum is 0 on average, however few rows there are; clipped at 0 it is .03 for 50 rows
    and .001 for 20,000. The distance of x from m itself, which fits the noise, would be .11 and .013.
    """
    if sample.outcomes is None:
        raise InputError("must be numbers, got None", argument="labels")
    present = sample.cells.occurring()
    group = (np.cumsum(present) - 1)[sample.cells.block(0, len(sample))]
    x = (sample.positions - scale.lowest) / (scale.highest - scale.lowest)
    w = np.ones(len(x)) if sample.weights is None else sample.weights / sample.weights.max()
    rows = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    return np.array([_calibration_error(x[i], sample.outcomes[i], w[i]) for i in rows])


def _calibration_error(x: Floats, y: Floats, w: Floats) -> float:
    """The calibration error of one group."""
    from scipy.optimize import isotonic_regression

    # Number the rows within the group, so every fold has some however groups alternate.
    folds = min(_FOLDS if len(x) <= _MANY_ROWS else 2, len(x))
    fold = np.arange(len(x)) % folds
    order = np.argsort(x, kind="stable")
    x, y, w, fold = x[order], y[order], w[order], fold[order]
    off = 0.0
    for held_out in (fold == f for f in range(folds if len(x) > 1 else 0)):
        place, positive, weight = x[~held_out], (w * y)[~held_out], w[~held_out]
        first = run_starts(place)
        weight = np.add.reduceat(weight, first)
        m = isotonic_regression(np.add.reduceat(positive, first) / weight, weights=weight).x
        at = x[held_out]
        off += float((w[held_out] * (y[held_out] - at)) @ np.sign(np.interp(at, place[first], m) - at))
    return max(off / float(w.sum()), 0.0)
