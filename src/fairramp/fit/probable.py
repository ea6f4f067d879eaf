"""Equal expected rates by group probabilities: each person meets the expected threshold of their possible groups.

    rate_k = Σ w q_k h / Σ w q_k            foot_i = own foot + Σ_k q_ik a_k            (see `fit.affine`)

The rows are read through `ProbableRows`, in memory or by an engine; every pass computes a few sums over all rows.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fairramp.core.blocks import map_blocks
from fairramp.core.checks import check_length
from fairramp.core.curve import Array, Floats
from fairramp.core.intervals import effective_rows
from fairramp.core.labels import Label, show_label
from fairramp.core.ramps import Ramp, chances
from fairramp.core.scales import Scale
from fairramp.data.aligned import check_aligned
from fairramp.data.arrays import as_scores, as_weights
from fairramp.data.columns import Columns
from fairramp.data.groups import Codes, name_of
from fairramp.data.probable import GroupProbabilities
from fairramp.data.rows import ArrayRows
from fairramp.data.sample import Sample, scaling, warn_saturated
from fairramp.errors import InputError, UnsupportedError
from fairramp.fit.affine import solve_affine
from fairramp.fit.affine_arrays import ArrayMoments
from fairramp.fit.direction import warn_direction
from fairramp.fit.few_scores import warn_few_scores
from fairramp.fit.mixed import mixed_rule, own_decisions_hold, placed, warn_mixed
from fairramp.fit.moments import Moments
from fairramp.fit.problem import Problem
from fairramp.fit.settings import Settings
from fairramp.rule.record import Rates
from fairramp.rule.rule import Rule

#: Rows per piece of a pass.
_PIECE = 1 << 15
#: What is summed over the rows of each group, for the record, with v = w q.
SUMS = ("rows", "v", "vo", "vh", "vx", "vv", "vvh", "vvhh", "above", "inside")


class ProbableRows(Protocol):
    """What a fit needs from rows with group probabilities, wherever they are."""

    @property
    def labels(self) -> tuple[Label, ...]:
        """The groups."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def moments(self, problem: Problem) -> Moments:
        """The sums of the solver; with the attribute `gram`."""

    def own_rates(self, problem: Problem) -> Floats:
        """The rates of the classifier's own decisions; 0 for a group without weight."""

    def sums(self, shifts: Floats, width: float, problem: Problem) -> dict[str, Floats]:
        """Sums for the record, by group: Σq, Σv, Σv·own, Σvh, Σvx, Σv², Σv²h, Σv²h², Σq above, Σq on the ramp."""


@dataclass(frozen=True)
class ArrayProbableRows:
    """Rows in memory, of positive weight."""

    positions: Floats
    probabilities: GroupProbabilities
    weights: Floats | None

    @property
    def labels(self) -> tuple[Label, ...]:
        """The groups."""
        return self.probabilities.labels

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.positions)

    def moments(self, problem: Problem) -> Moments:
        """The sums of the solver."""
        q = self.probabilities.values.T
        return ArrayMoments(self.positions, q, self.weights, cutoff=problem.cutoff, offset=problem.offset)

    def own_rates(self, problem: Problem) -> Floats:
        """The rates of the classifier's own decisions."""

        def piece(start: int, stop: int) -> Floats:
            q, own = self.probabilities.values[:, start:stop], self.positions[start:stop] >= problem.cutoff
            w = np.ones(stop - start) if self.weights is None else self.weights[start:stop]
            found: Floats = q @ np.stack([w, w * own]).T
            return found

        v, vo = self._summed(piece).T
        rates: Floats = vo / np.where(v > 0, v, 1.0)
        return rates

    def sums(self, shifts: Floats, width: float, problem: Problem) -> dict[str, Floats]:
        """Sums for the record."""
        own_foot = problem.cutoff - problem.offset * width

        def piece(start: int, stop: int) -> Floats:
            q, x = self.probabilities.values[:, start:stop], self.positions[start:stop]
            h = chances(x, own_foot + self.probabilities.mix(shifts, start, stop), width, 1.0)
            factors = np.empty((7, len(x)))
            values: tuple[Any, ...] = ((h > 0) & (h < 1), h >= 1, x >= problem.cutoff, x, 1.0, h, h * h)
            for i, value in enumerate(values):
                factors[i] = value
            plain, squares = q @ factors[:6].T, (q * q) @ factors[4:].T
            inside, above, vo, vx, rows, vh = plain.T
            v = rows
            if self.weights is not None:
                w = self.weights[start:stop]
                vo, vx, v, vh = (q @ (factors[2:6] * w).T).T
                squares = (q * q) @ (factors[4:] * (w * w)).T
            return np.stack([rows, v, vo, vh, vx, *squares.T, above, inside], axis=1)

        return dict(zip(SUMS, self._summed(piece).T, strict=True))

    def _summed(self, piece: Callable[[int, int], Floats]) -> Floats:
        """The sum over all pieces, which stay in cache and are too short for the threads of BLAS."""

        def block(start: int, stop: int) -> Any:
            return sum(piece(a, min(a + _PIECE, stop)) for a in range(start, stop, _PIECE))

        total: Floats = np.sum(map_blocks(block, self.n_rows), axis=0)
        return total


def check_probable(settings: Settings, *, stratified: bool) -> None:
    """Raise if the settings or the rows do not work with group probabilities."""
    if stratified:
        raise UnsupportedError("Group probabilities do not support {strata}", remedy="remove one of the two")
    if settings.combine == "each":
        raise UnsupportedError(
            "Group probabilities do not support {combine:each}", remedy="remove one of the two"
        )
    settings.check_mixed("A fit to group probabilities")
    if settings.unseen_group != "error":
        raise UnsupportedError(
            "Group probabilities do not support {unseen_group:" + settings.unseen_group + "}: no group is unseen",
            remedy="remove one of the two",
        )


def fit_probabilities(
    scores: Any, groups: GroupProbabilities, settings: Settings, labels: Any = None, *, sample_weight: Any = None
) -> Rule:
    """Fit a rule to arrays; labels are only checked, and compared with the direction of the scores."""
    check_aligned(scores=scores, groups=groups, labels=labels, sample_weight=sample_weight)
    column: Array = as_scores(scores)
    check_length("groups", len(groups), len(column))
    if labels is not None:
        everyone = Codes(np.zeros(len(column), dtype=np.intp), 0, (None,))
        warn_direction(
            Sample.of_arrays(scores, everyone, labels, scale=settings.meaning, sample_weight=sample_weight)
        )
    weights = None if sample_weight is None else as_weights(sample_weight, len(column))
    positions = positions_of(column, settings.meaning, groups)
    if weights is not None:
        counts = weights > 0
        if not counts.all():
            positions, groups, weights = positions[counts], groups.take(counts), weights[counts]
        weights = np.ldexp(weights, scaling(float(weights.max()), float(weights.min())))
    warn_saturated(settings.meaning, int(settings.meaning.crowded(column).sum()), len(column))
    columns = Columns(score=name_of(scores))
    rule = fit_probable(ArrayProbableRows(positions, groups, weights), settings, columns, weights is not None)
    warn_few_scores(column, rule)
    return rule


def positions_of(column: Array, scale: Scale, groups: GroupProbabilities) -> Floats:
    """The positions of all rows, after checking their scores."""
    positions = ArrayRows(column, groups, None, scale).positions(0, len(column))
    return np.asarray(positions, dtype=np.float64)


def fit_probable(rows: ProbableRows, settings: Settings, columns: Columns, weighted: bool) -> Rule:
    """Fit a rule to checked rows, wherever they are."""
    problem, moments = settings.problem, rows.moments(settings.problem)
    for k in np.flatnonzero(moments.shares <= 0):
        raise InputError(
            "Group {group} has probability 0 in every row",
            remedy="leave its column out",
            group=show_label(rows.labels[k]),
        )
    block, solved = slice(0, len(rows.labels)), None
    if own_decisions_hold(settings, problem, rows.own_rates(problem), None):
        ramps = [Ramp(problem.cutoff, 0.0, 1.0)] * len(rows.labels)
        found = rows.sums(np.zeros(len(rows.labels)), 0.0, problem)
    else:
        solved = solve_affine(moments, [block], problem)
        ramps = placed(problem, solved.shifts)
        # The shifts as stored, so that the record is about the rule.
        stored = np.array([ramp.foot for ramp in ramps]) - problem.own_foot
        found = rows.sums(stored, problem.ramp_width, problem)
    rates = _rates(found)
    after = np.array(rates.after)
    rule = mixed_rule(
        settings,
        columns,
        rows.labels,
        ramps,
        rates,
        probable_fingerprint(rows, problem, found),
        level=settings.target_rate if isinstance(settings.target_rate, float) else problem.band.level_of(after),
        parts=None,
        weighted=weighted,
        membership="probabilities",
    )
    warn_mixed(settings, rule, problem, solved, expected=True)
    return rule


def _rates(found: dict[str, Floats]) -> Rates:
    """The rates of each group for the record; numbers of rows are expected ones, rounded."""
    v = found["v"]
    after = np.clip(found["vh"] / v, 0.0, 1.0)
    spread = (found["vvhh"] - 2 * after * found["vvh"] + after**2 * found["vv"]) / v / v
    squares = found["vv"] / v / v
    effective = np.where(  # squares of tiny weights underflow
        squares > 0, effective_rows(after, squares, np.maximum(spread, 0.0)), found["rows"]
    )
    rows, above, inside = (np.rint(found[name]).astype(int) for name in ("rows", "above", "inside"))
    above = np.minimum(above, rows)
    inside = np.minimum(inside, rows - above)
    return Rates(
        rows=tuple(rows.tolist()),
        effective_rows=tuple(effective.tolist()),
        rows_above=tuple(above.tolist()),
        rows_inside=tuple(inside.tolist()),
        before=tuple(np.clip(found["vo"] / v, 0.0, 1.0).tolist()),
        after=tuple(after.tolist()),
        error=(0.0,) * len(rows),
    )


def probable_fingerprint(rows: ProbableRows, problem: Problem, found: dict[str, Floats] | None = None) -> str:
    """SHA-256 of the number of rows and of rounded sums, which do not depend on the order of the rows."""
    known = rows.sums(np.zeros(len(rows.labels)), 0.0, problem) if found is None else found
    # Sums in another order differ after about 12 digits.
    sums = {name: [f"{value:.8g}" for value in known[name].tolist()] for name in ("rows", "vo", "vx")}
    return hashlib.sha256(json.dumps([list(rows.labels), rows.n_rows, sums]).encode()).hexdigest()
