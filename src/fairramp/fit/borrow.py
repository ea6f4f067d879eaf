"""Small groups borrow pseudo-rows, as if their scores were distributed like those of the other groups.

With z = logit(score), group k of n_k rows has the mean μ_k and the residuals z − μ_k, of variance σ² over all
groups. Its mean is shrunk toward that of all groups (James and Stein, with the DerSimonian and Laird estimate of
the variance τ² between groups),

    m_k = μ + τ²/(τ² + σ²/n_k) · (μ_k − μ),      pseudo-rows:  logistic(m_k + residuals of the other groups).

The pseudo-rows are M quantiles that together count as b rows. b is the same for all groups and is estimated: if
pseudo-rows predict the rates of real ones badly, little is borrowed,

    b = c/δ²,   c = r(1 − r) − φ(Φ⁻¹(r))²,   δ² = mean of (rate predicted for r − r)² beyond its sampling error,

where r is the target rate of the fit without borrowing. Each real row counts n_k/(n_k + b), which keeps the
group's weight unchanged, and the exact solver places ramps on both. Rates on the real rows are then no longer
exactly equal.
"""

from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from fairramp.core.curve import Booleans, Floats, Integers
from fairramp.core.points import Points, Summary, join_points
from fairramp.core.scales import NEAREST, finite_logit
from fairramp.data.rows import Rows
from fairramp.data.sample import Sample
from fairramp.errors import InputError

#: M: pseudo-rows per group.
QUANTILES = 300
#: Maximum of b: without it, groups that happen to look alike in the fit rows would borrow too much.
MOST_BORROWED = 50.0
#: Smaller groups lend nothing; if the lenders have fewer rows in total, all rows are used, even the group's own.
SMALLEST_LENDER, FEWEST_LENT = 10, 50
#: Minimum of τ²: groups that differ less than chance allows share one mean.
_SMALLEST_BETWEEN = 1e-6
#: Rates at which pseudo-rows are compared with real ones: r and this far on either side, within limits.
_BESIDE, _LOWEST_RATE = 0.1, 0.02
#: Minimum of c as a share of r(1 − r), against rounding.
_SMALLEST_SPREAD = 0.05
#: Typical misfit of a rate: keeps large groups from determining alone how much is borrowed.
_USUAL_MISFIT = 0.05
#: Up to this many rows, all scores are used; beyond, the means of bins.
LOOKED_INTO = 1 << 16


def can_borrow(sample: Sample) -> bool:
    """Whether these rows allow borrowing: several groups, no weights, and scores that differ within a group."""
    if sample.weights is not None or sample.stratified or len(sample.cells.labels) == 1:
        return False
    positions = np.clip(sample.positions - sample.scale.lowest, NEAREST, 1 - NEAREST)
    group = sample.cells.block(0, len(sample))
    order = np.lexsort((positions, group))
    return bool(((np.diff(group[order]) == 0) & (np.diff(positions[order]) > 1e-6)).any())


@dataclass(frozen=True)
class Borrowed:
    """What the groups borrow.

    Attributes
    ----------
    rows : float
        b, the number of rows that each group's pseudo-rows count as.
    points : Points
        The pseudo-rows; those of a group have the total weight b·n/(n + b).
    kept : floats, one per group
        n/(n + b), the weight of each real row.
    """

    rows: float
    points: Points
    kept: Floats

    @property
    def shares(self) -> tuple[float, ...]:
        """b/(n + b), the borrowed share of each group's weight."""
        return tuple((1.0 - self.kept).tolist())


def borrow(summary: Summary, rate: float, lowest: float = 0.0) -> Borrowed:
    """Pseudo-rows for the groups of unweighted, resolved rows, given the selection rate of a fit.

    `lowest` is the lowest position; the others are at most 1 higher.
    """
    scores = _pseudo_scores(summary, lowest) + lowest
    b = _how_many(summary, scores, rate)
    kept = summary.rows / (summary.rows + b)
    group = np.repeat(np.arange(len(scores)), QUANTILES)
    points = Points.from_rows(group, scores.ravel(), (b * kept / QUANTILES)[group])
    return Borrowed(b, replace(points, rows=np.zeros_like(points.rows)), kept)


def _pseudo_scores(summary: Summary, lowest: float) -> Floats:
    """Scores of the pseudo-rows as probabilities, of shape (K, M)."""
    p, n = summary.points, summary.rows.astype(np.float64)
    n_groups = len(n)
    z = finite_logit(p.place - lowest)
    means = summary.total(p.rows * z) / n
    residuals = z - means[p.group]
    variance = float((p.rows * residuals**2).sum()) / max(float(n.sum()) - n_groups, 1.0)
    # Smaller values are rounding errors of the means.
    if variance <= 1e-24:
        raise InputError(
            "{small_groups:borrow} requires scores that differ within groups, got equal ones", remedy="remove it"
        )
    precision = n / variance
    overall = float(n @ means / n.sum())
    q = float(precision @ (means - overall) ** 2)
    scale = float(precision.sum() - (precision**2).sum() / precision.sum())
    between = max((q - (n_groups - 1)) / scale, _SMALLEST_BETWEEN)
    trust = 1 / (between + variance / n)
    center = float(trust @ means / trust.sum())
    shrunk = center + between * trust * (means - center)

    spread = residuals * np.sqrt(n / np.maximum(n - 1, 1))[p.group]
    order = np.argsort(spread, kind="stable")
    spread, group, rows = spread[order], p.group[order], p.rows[order]
    lends = (n >= SMALLEST_LENDER)[group]
    at = (np.arange(QUANTILES) + 0.5) / QUANTILES
    found = np.empty((n_groups, QUANTILES))
    for k in range(n_groups):
        others = lends & (group != k)
        if rows[others].sum() < FEWEST_LENT:
            others = np.ones_like(others)
        found[k] = 1 / (1 + np.exp(-shrunk[k] - _quantiles(spread[others], rows[others], at)))
    return found


def _quantiles(ordered: Floats, rows: Integers, at: Floats) -> Floats:
    """NumPy's quantiles of values with multiplicities."""
    ends = np.cumsum(rows)
    place = at * (ends[-1] - 1)
    below = np.floor(place)
    low, high = (
        ordered[np.searchsorted(ends, np.minimum(i, ends[-1] - 1), side="right")] for i in (below, below + 1)
    )
    found: Floats = low + (place - below) * (high - low)
    return found


def _how_many(summary: Summary, scores: Floats, rate: float) -> float:
    """b, the number of rows that a group's pseudo-rows are worth."""
    p, n = summary.points, summary.rows

    def kept(r: float) -> float:
        return min(max(r, _LOWEST_RATE), 1 - _LOWEST_RATE)

    def noise(r: float) -> float:
        """c, the variance of a rate per row after the mean was estimated from the same rows."""
        normal = NormalDist()
        return max(r * (1 - r) - normal.pdf(normal.inv_cdf(r)) ** 2, _SMALLEST_SPREAD * r * (1 - r))

    misfit = weight = 0.0
    for r in sorted({kept(rate), kept(rate - _BESIDE), kept(rate + _BESIDE)}):
        thresholds = np.quantile(scores, 1 - r, axis=1)
        off = summary.total(p.rows * (p.place >= thresholds[p.group])) / n - r
        unit = 4 * r * (1 - r)  # rates near ½ scatter most
        w = 1 / (noise(r) / n / unit + _USUAL_MISFIT**2) ** 2
        misfit += float((w * (off**2 - noise(r) / n)).sum()) / unit
        weight += float(w.sum())
    r = kept(rate)
    return min(noise(r) / (max(misfit / weight, 1e-9) * 4 * r * (1 - r)), MOST_BORROWED)


def looked_into(rows: Rows, summary: Summary) -> Summary:
    """The same rows as exact points, or with the mean of each bin if there are too many."""
    exact = int(summary.rows.sum()) <= LOOKED_INTO
    if exact and not summary.points.exact.all() and (every := rows.sorted()) is not None:
        return every
    while True:
        p = summary.points
        which = ~p.exact if exact else ~(p.exact | p.averaged)
        if not which.any():
            return summary
        none = np.zeros_like(which)
        finer = rows.refine(summary, which, none) if exact else rows.refine(summary, none, which)
        summary = summary.replace(which, finer)


@dataclass(frozen=True)
class RowsAndPseudoRows(Rows):
    """Real rows with reduced weight, and the pseudo-rows of their groups."""

    rows: Rows
    seen: Summary
    borrowed: Borrowed

    def summarize(self) -> Summary:
        """All rows, at the resolution available, and the pseudo-rows."""
        return Summary(self.seen.labels, join_points([self._scaled(self.seen.points), self.borrowed.points]))

    def refine(self, summary: Summary, split: Booleans, average: Booleans) -> Points:
        """Finer points of the real rows; pseudo-rows are exact points."""
        return self._scaled(self.rows.refine(summary, split, average))

    def _scaled(self, points: Points) -> Points:
        kept = self.borrowed.kept[points.group]
        return replace(points, weight=points.weight * kept, weight_squares=points.weight_squares * kept**2)
