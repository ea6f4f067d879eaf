"""Calibration error: how far scores are from the rates of positive labels, as held-out rows confirm it.

With x the score as a probability and m the isotonic regression on the rows of the other folds,

    max(0, Σ w (y − x) sign(m(x) − x) / Σ w):

the other folds only determine on which side of the score the outcomes lie, the held-out outcomes by how much.
For calibrated scores the sum is 0 on average, however few rows there are; clipped at 0 it is .03 for 50 rows and
.001 for 20,000. The distance of x from m itself, which fits the noise, would be .11 and .013.

The rows of a small group are sorted. Those of larger groups are put into bins, and the sign is that of m(x) − x
at the mean score of the bin; for each fold, label and bin, Σw and Σwx are enough. Held-out rows still determine
the size of the error, so calibrated scores have 0 on average here too. Only bins in which the sign changes lose
something: at most their share of the rows times the distance of m from x inside them. With 4,096 bins this is
about 1e-7 for each change of sign if m is continuous, far below the noise of a million rows. A score that is
alone in its bin loses nothing. If equal bins would put many different scores into one bin, bins with about
equally many rows are used instead.
"""

from collections.abc import Callable

import numpy as np

from fairramp.core.blocks import map_blocks
from fairramp.core.curve import Array, Floats, Integers
from fairramp.core.points import run_starts
from fairramp.data.sample import Sample

#: Groups with up to this many rows are sorted.
SORTED_ROWS = 1 << 12
#: Folds, and the number of rows in a group at which two are enough.
_FOLDS, _MANY_ROWS = 5, 20_000
#: Minimum and maximum number of bins, and the number of rows for each cell of all groups, folds and labels.
_FEWEST_BINS, _MOST_BINS, _ROWS_PER_CELL = 1 << 8, 1 << 12, 1 << 4
#: Rows looked at to choose bins, and the share of them that makes a bin of several scores crowded.
_LOOKED_AT, _CROWDED = 1 << 12, 1 / 64
#: Rows whose temporary arrays fit into the cache of a core; folds repeat after this many rows.
_PIECE = 1 << 16
#: The golden ratio of a piece, as an odd integer.
_GOLDEN = 40503


def calibration_errors(sample: Sample, counts: Integers) -> Floats:
    """The calibration error of each group that occurs, given the number of rows of each label of the cells."""
    errors = np.full(len(counts), np.nan)
    large, small = np.flatnonzero(counts > SORTED_ROWS), (counts > 0) & (counts <= SORTED_ROWS)
    if len(large):
        errors[large] = _binned_errors(sample, large, int(counts[large].min()))
    if small.any():
        assert sample.labels is not None
        group = sample.cells.block(0, len(sample))
        rows = np.arange(len(sample)) if small.all() else np.flatnonzero(small[group])
        rows = rows[np.argsort(group[rows], kind="stable")]
        x, y = _probabilities(sample, sample.scale.position(sample.scores[rows])), sample.labels[rows] != 0
        w = np.ones(len(rows)) if sample.weights is None else sample.weights[rows]
        ends = np.cumsum(counts[small])[:-1]
        parts = zip(*(np.split(column, ends) for column in (x, y.astype(np.float64), w)), strict=True)
        errors[small] = [_sorted_error(*part) for part in parts]
    return errors[counts > 0]


def _probabilities(sample: Sample, positions: Floats) -> Floats:
    """Positions as probabilities."""
    low, high = sample.scale.lowest, sample.scale.highest
    return positions if (low, high) == (0, 1) else (positions - low) / (high - low)


def _sorted_error(x: Floats, y: Floats, w: Floats) -> float:
    """The calibration error of one group, from its rows."""
    from scipy.optimize import isotonic_regression

    # Number the rows within the group, so every fold has some however groups alternate.
    folds = min(_FOLDS if len(x) <= _MANY_ROWS else 2, len(x))
    fold = np.arange(len(x)) % folds
    order = np.argsort(x, kind="stable")
    x, y, w, fold = x[order], y[order], w[order] / w.max(), fold[order]
    off = 0.0
    for held_out in (fold == f for f in range(folds if len(x) > 1 else 0)):
        place, positive, weight = x[~held_out], (w * y)[~held_out], w[~held_out]
        first = run_starts(place)
        weight = np.add.reduceat(weight, first)
        m = isotonic_regression(np.add.reduceat(positive, first) / weight, weights=weight).x
        at = x[held_out]
        off += float((w[held_out] * (y[held_out] - at)) @ np.sign(np.interp(at, place[first], m) - at))
    return max(off / float(w.sum()), 0.0)


def _binned_errors(sample: Sample, groups: Integers, fewest_rows: int) -> Floats:
    """The calibration errors of large groups, from their rows in bins."""
    labels, codes, weights = sample.labels, sample.cells, sample.weights
    assert labels is not None
    n_folds = _FOLDS if fewest_rows <= _MANY_ROWS else 2
    fitting = len(sample) // (_ROWS_PER_CELL * len(groups) * n_folds * 2)
    n_bins = min(max(1 << fitting.bit_length() - 1, _FEWEST_BINS), _MOST_BINS) if fitting else _FEWEST_BINS
    bins = _binning(sample, n_bins)
    shape = (len(groups) + (len(groups) < len(codes.labels)), 2, n_folds, n_bins + 1)
    n_cells = int(np.prod(shape))
    slots = None
    if len(groups) < len(codes.labels):
        slots = np.full(len(codes.labels), len(groups))  # smaller groups share the last place
        slots[groups] = np.arange(len(groups))
    kind = np.min_scalar_type(n_cells // shape[-1]).type  # short integers are faster
    # Multiples of the golden ratio spread rows over the folds, even if only every k-th row belongs to a group.
    fold = np.tile((np.arange(_PIECE) * _GOLDEN % _PIECE * n_folds // _PIECE).astype(kind), 2)

    def fill(cells: Integers, x: Floats, start: int, stop: int) -> None:
        group = codes.block(start, stop)
        which = (group if slots is None else slots[group]).astype(kind)
        which *= kind(2 * n_folds)
        which += (labels[start:stop] != 0).view(np.uint8) * kind(n_folds)
        which += fold[start % _PIECE :][: stop - start]
        np.multiply(which, shape[-1], out=cells, dtype=np.intp)
        cells += bins(x)

    def block(start: int, stop: int) -> list[Array]:
        x, cells = _probabilities(sample, sample.rows.positions(start, stop)), np.empty(stop - start, np.intp)
        for a in range(0, stop - start, _PIECE):
            fill(cells[a : a + _PIECE], x[a : a + _PIECE], start + a, min(start + a + _PIECE, stop))
        w = None if weights is None else weights[start:stop]
        return [np.bincount(cells, v, minlength=n_cells) for v in (w, x if w is None else w * x)]

    # Blocks four times as long as their results keep all results small compared to the rows.
    parts = zip(*map_blocks(block, len(sample), 4 * n_cells), strict=True)
    weight, moment = (np.reshape(sum(part[1:], start=part[0]), shape) for part in parts)
    return np.array([_binned_error(weight[k], moment[k]) for k in range(len(groups))])


def _binned_error(weight: Floats, moment: Floats) -> float:
    """The calibration error of one group from Σw and Σwx by label, fold and bin."""
    from scipy.optimize import isotonic_regression

    used = weight.sum(axis=(0, 1)) > 0
    weight, moment = (np.compress(used, sums, axis=-1) for sums in (weight, moment))
    place = moment.sum(axis=(0, 1)) / weight.sum(axis=(0, 1))
    off = 0.0
    for fold in range(weight.shape[1]):
        others = np.delete(weight, fold, axis=1).sum(axis=1)
        total = others.sum(axis=0)
        seen = total > 0
        if not seen.any():  # no other rows confirm anything
            continue
        m = isotonic_regression(others[1, seen] / total[seen], weights=total[seen]).x
        sign = np.sign(np.interp(place, place[seen], m) - place)
        off += float(((weight[1, fold] - moment[:, fold].sum(axis=0)) * sign).sum())
    return max(off / float(weight.sum()), 0.0)


def _binning(sample: Sample, n_bins: int) -> Callable[[Floats], Integers]:
    """A non-decreasing function from probabilities to up to n_bins + 1 bins."""

    def equal(x: Floats) -> Integers:
        bins = np.empty(len(x), dtype=np.intp)
        return np.multiply(x, n_bins, out=bins, casting="unsafe")  # truncation equals the floor

    some = sample.scores[:: max(len(sample) // _LOOKED_AT, 1)]
    x = np.sort(_probabilities(sample, sample.scale.position(some)))
    in_bin, scores_in_bin = (np.bincount(equal(v), minlength=n_bins) for v in (x, x[run_starts(x)]))
    if not np.any((in_bin > _CROWDED * len(x)) & (scores_in_bin > 1)):
        return equal
    # Every edge is a bin of its own, because many rows may have that score.
    alone = x[:: max(2 * len(x) // n_bins + 1, 1)]
    edges = np.unique(np.concatenate([alone, np.nextafter(alone, np.inf)]))
    return lambda x: np.searchsorted(edges, x, side="right")
