"""The search for shifts that minimize the dual of equal rates: Newton's method with a Levenberg term.

    minimize    cost(a) + Σ_k (λ_k hi(u_b) − μ_k lo(u_b)) + ν B      over s_k = π_k a_k = λ_k − μ_k,   λ, μ ≥ 0

The cost is a convex function of the shifts a, whose gradient is −π_k r_k: soft and overlapping groups
(`fit.affine`) and several classes (`fit.class_moments`) have different ones. Columns form blocks, each with a
level u_b. If it is free, its terms vanish and Σ_k (λ_k hi′ − μ_k lo′) = 0 in the block instead. At the optimum
    s_k > 0  →  r_k = hi(u_b)        s_k < 0  →  r_k = lo(u_b)        s_k = 0  →  r_k in between.

The largest violation of these conditions, in units of rates, is the *residual*. Each step minimizes a quadratic
model of the cost plus the exact piecewise linear rest. Unknowns are scaled to v_k = √π_k · a_k, so that small
groups converge like large ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fairramp.core.bands import Ratio
from fairramp.core.curve import Floats
from fairramp.errors import FairrampError
from fairramp.fit.moments import Moments, Sums
from fairramp.fit.problem import Budget, Fixed, Problem

#: A smaller residual is as good as 0 …
_ROUNDING = 1e-12
#: … one up to this is good enough if a step fails, and above the second number the fit has failed.
GOOD, _FAILED = 1e-10, 1e-9
_MAX_PASSES, _MAX_REFUSED, _MAX_PATTERNS = 300, 40, 20
#: If this fails, ramps are narrowed in small steps from this width on, each solved to this residual.
_WIDE, _SMALL_STEP, _CLOSE, _MANY_PASSES = 1.0, 1.5, 1e-5, 3000
#: A step is then halved up to this many times.
_HALVINGS = 12
#: Narrower ramps are reached through wider ones, each this many times as wide as the next.
_NARROW, _NARROWING = 0.05, 4.0
#: Residual at which a guess is good enough.
_LOOSE = 1e-4
#: Residual at which a width is narrowed.
_ROUGH = 1e-2


def minimum(
    moments: Moments, blocks: Sequence[slice], problem: Problem, start: Floats | None = None
) -> "tuple[Search, Point]":
    """The point that minimizes the dual, and its search; raises if rates are not in the band there.

    The arguments are those of `fit.affine.solve_affine`. Of several shifts with the same decisions, any may be
    found.
    """
    samples = [Search(moments, blocks, problem)]
    while (coarser := getattr(samples[-1].moments, "coarser", lambda: None)()) is not None:
        samples.append(Search(coarser, blocks, problem))
    guess = None if start is None else samples[0].split(start)
    for sample in samples[:0:-1]:
        guess = sample.descend(guess, _LOOSE).shifts
    search = samples[0]
    best = search.descend(guess, _ROUNDING)
    if best.residual > GOOD:
        best = min(best, search.follow(_ROUNDING), key=lambda point: point.residual)
    # Feet are rounded, and a narrow ramp magnifies it.
    size = abs(problem.cutoff) + float(moments.shares @ np.abs(best.shifts[:-1])) + abs(float(best.shifts[-1]))
    unit = 4 * np.finfo(float).eps * size / problem.ramp_width
    if best.residual > _FAILED + unit:
        raise FairrampError(
            "the thresholds did not converge: after {passes} passes, rates miss the band by {miss:.1g}",
            remedy="use a wider ramp or, if rows have weights, weights that differ less",
            passes=search.passes,
            miss=best.residual,
        )
    return search, best


class Point(NamedTuple):
    """The dual at some shifts; the last entry of `shifts` is ν, the last of `slope` belongs to it."""

    shifts: Floats
    value: float
    slope: Floats  # gradient of the cost in units of rates: −r_k, and −Σ w h
    curvature: Floats  # in (v, ν)
    residual: float

    @property
    def rates(self) -> Floats:
        """The rates r_k."""
        return -self.slope[:-1]


@dataclass(frozen=True)
class _Pattern:
    """Which edge each group is on (1 upper, −1 lower, 0 neither), and which blocks select nobody.

    If the level of a ratio is free and 0, both edges coincide, and all groups of the block are on both.
    """

    edge: npt.NDArray[np.int64]
    empty: npt.NDArray[np.bool_]


class Search:
    """The dual problem on one set of rows."""

    def __init__(self, moments: Moments, blocks: Sequence[slice], problem: Problem) -> None:
        self.moments, self.blocks, self.problem, self.passes = moments, blocks, problem, 0
        self.limit, self.careful = _MAX_PASSES, False
        self.window: Any = None
        band, level = problem.band, problem.level
        self.n = len(moments.shares)
        self.scale = np.append(np.sqrt(moments.shares), 1.0)
        self.free = not isinstance(level, Fixed)
        self.budget = level.overall_rate if isinstance(level, Budget) else None
        # Constant parts and slopes of both edges. With equal edges s_k has any sign.
        low, high = band.edges(level.rate if isinstance(level, Fixed) else 0.0)
        self.constants, self.slopes = np.array([low, high]), np.array(band.slopes)
        self.cone = self.free and band.is_open and isinstance(band, Ratio)
        self.block_of = np.zeros(self.n, dtype=np.int64)
        for b, columns in enumerate(blocks):
            self.block_of[columns] = b

    # The dual at a point

    def point(self, shifts: Floats, width: float) -> Point:
        """Evaluate the dual; one pass."""
        self.passes += 1
        common = np.where(self.block_of == 0, shifts[-1], 0.0)
        sums = self._sums(shifts[:-1] + common, width)
        s, everybody = self.moments.shares * shifts[:-1], self.block_of == 0
        value = sums.cost + float(np.maximum(s, 0) @ np.full(self.n, self.constants[1]))
        value -= float(np.maximum(-s, 0).sum() * self.constants[0])
        slope = -np.append(sums.selected / self.moments.shares, sums.selected[everybody].sum())
        # Scaled by 1/√π_k; the row and the column of ν are the sums over the first block.
        to_scaled = np.vstack([np.diag(1 / self.scale[:-1]), everybody.astype(float)])
        curvature = to_scaled @ sums.curvature @ to_scaled.T
        if self.budget is not None:
            value += self.budget * shifts[-1]
        return Point(shifts, value, slope, curvature, self._residual(shifts, -slope))

    def _sums(self, shifts: Floats, width: float) -> Sums:
        """The sums, over few rows if those suffice."""
        if self.window is not None and self.window.covers(shifts, width):
            near: Sums = self.window.at(shifts, width)
            return near
        if (around := getattr(self.moments, "around", None)) is None:
            return self.moments.at(shifts, width)
        sums: Sums
        sums, self.window = around(shifts, width)
        return sums

    def _residual(self, shifts: Floats, rates: Floats) -> float:
        """Largest violation of the optimality conditions, in rates."""
        worst = 0.0 if self.budget is None else abs(float(rates[-1]) - self.budget)
        for columns in self.blocks:
            a, r = shifts[:-1][columns], rates[:-1][columns]
            if not self.free:
                low, high = self.constants
            elif not self.problem.band.is_open:
                low = high = (r.max() + r.min()) / 2
            else:
                low, high = self.problem.band.edges(self._level(columns, a, r))
            below, above = low - r, r - high
            if self.problem.band.is_open:
                below, above = np.where(a > 0, -above, below), np.where(a < 0, -below, above)
            worst = max(worst, float(below.max()), float(above.max()))
        return worst

    def _level(self, columns: slice, a: Floats, r: Floats) -> float:
        """The level of a block at which the conditions are violated least."""
        if self.cone:
            s, ratio = self.moments.shares[columns] * a, self.slopes[0]
            up, down = np.maximum(s, 0).sum(), np.maximum(-s, 0).sum()
            if up < ratio * down * (1 - 1e-9):
                return 0.0
            if ratio == 0:
                return float(r.max())
        lowest, highest = self.problem.band.levels(r)
        least, most = np.where(a < 0, highest, lowest).max(), np.where(a > 0, lowest, highest).min()
        return float(least + most) / 2

    # Steps

    def descend(self, guess: Floats | None, tolerance: float) -> Point:
        """The point at which no step reduces the dual any more, or whose residual is small enough."""
        width = self.problem.ramp_width
        widths = [width]
        if guess is None:
            guess = np.zeros(self.n + 1)
            while widths[0] < _NARROW:
                widths.insert(0, widths[0] * _NARROWING)
        pattern = _Pattern(np.zeros(self.n, dtype=np.int64), np.zeros(len(self.blocks), dtype=bool))
        here = self.point(guess, widths[0])
        for width in widths:
            if width != widths[0]:
                here = self.point(here.shifts, width)
            last = width == widths[-1]
            here, pattern = self._newton(here, pattern, width, tolerance if last else _ROUGH)
        return here

    def follow(self, tolerance: float) -> Point:
        """The same from wide to narrow ramps in small steps: slower, but it does not get lost between few rows.

        While the rows on the ramps stay the same, shifts are linear in the width: the last two predict the next.
        """
        self.limit, self.careful = self.passes + _MANY_PASSES, True
        pattern = _Pattern(np.zeros(self.n, dtype=np.int64), np.zeros(len(self.blocks), dtype=bool))
        steps = max(int(np.ceil(np.log(_WIDE / self.problem.ramp_width) / np.log(_SMALL_STEP))), 0)
        here, before = self.point(np.zeros(self.n + 1), self.problem.ramp_width * _SMALL_STEP**steps), None
        for i in range(steps, -1, -1):
            width = self.problem.ramp_width * _SMALL_STEP**i
            if i < steps:
                guess = here.shifts
                if before is not None:  # widths fall by a constant factor, and so do the differences
                    guess = guess + (guess - before) / _SMALL_STEP
                before, here = (
                    here.shifts,
                    min(
                        (self.point(one, width) for one in (guess, here.shifts)), key=lambda point: point.residual
                    ),
                )
            here, pattern = self._newton(here, pattern, width, tolerance if i == 0 else _CLOSE)
        return here

    def _newton(self, here: Point, pattern: _Pattern, width: float, tolerance: float) -> tuple[Point, _Pattern]:
        """Steps at one width. The Levenberg term is κ · residual, so that a step is not much longer than 1/κ."""
        feasible, refused = not here.shifts.any(), 0
        kappa = (1.0 if feasible or here.residual > _ROUGH else 0.01) / width
        # No curvature, and none that the model lacks, is larger: every row has one entry of 1 in each block.
        most = 2 * len(self.blocks) / width
        while here.residual > tolerance and self.passes < self.limit and refused < _MAX_REFUSED:
            term = max(min(kappa * here.residual, most), 1e-14 * np.trace(here.curvature), 1e-200)
            model = here.curvature + term * np.eye(self.n + 1)
            found = self._minimize(model, here, pattern)
            if found is None:
                kappa, refused = 4 * term / here.residual, refused + 1
                continue
            pattern, scaled = found
            shifts = scaled / self.scale
            if np.array_equal(shifts, here.shifts):
                break
            there = self.point(shifts, width)
            if self.careful:
                there = self._shortened(here, there, width)
                scaled = there.shifts * self.scale
            starting, ending = self._slopes(here, there)
            # A slope upward at the end tells how much curvature the model lacks along the step.
            length = float(np.sum((scaled - here.shifts * self.scale) ** 2))
            if length == 0:
                break
            lacking = max(ending, 0.0) / length
            if there.residual >= here.residual and here.residual <= max(GOOD, tolerance):
                break  # as good as rounding allows
            gain = here.value - there.value
            rounding = 1e-14 * (abs(here.value) + float(np.abs(shifts).max()) + 1e-3)
            hidden = max(abs(gain), -starting) <= rounding and there.residual < here.residual
            if not feasible or ending <= 0 or gain >= -0.1 * starting or hidden:
                kappa = kappa / 3 if ending <= 0 else (term + lacking) / here.residual
                here, feasible, refused = there, True, 0
            else:
                kappa, refused = max(4 * term, term + lacking) / here.residual, refused + 1
        return here, pattern

    def _shortened(self, here: Point, there: Point, width: float) -> Point:
        """The end of a step, or a point before it where the dual still slopes down, if it does not at the end.

        Such a step gains, because the dual is convex; this holds where values differ by less than their rounding
        errors.
        """
        low, high = here, there
        for _ in range(_HALVINGS):
            starting, ending = self._slopes(here, high)
            if ending <= 0 or starting >= 0:
                return high
            middle = self.point((low.shifts + high.shifts) / 2, width)
            if np.array_equal(middle.shifts, low.shifts) or np.array_equal(middle.shifts, high.shifts):
                break
            if self._slopes(here, middle)[1] <= 0:
                low = middle
            else:
                high = middle
        return low if low is not here else high

    def _slopes(self, here: Point, there: Point) -> tuple[float, float]:
        """Slopes of the dual at both ends of a step, along it.

        The dual is convex, so if it still slopes down at the end, the step gains, even where values differ by
        less than their rounding errors.
        """
        step = there.shifts - here.shifts
        step[:-1] *= self.moments.shares
        starting = step @ (here.slope + self._edges(here.shifts, there.shifts))
        ending = step @ (there.slope + self._edges(there.shifts, here.shifts))
        return float(starting), float(ending)

    def _edges(self, shifts: Floats, other: Floats) -> Floats:
        """Slope of the piecewise linear part at some shifts, toward others."""
        sign = np.where(shifts == 0, other, shifts)[:-1] > 0
        return np.append(np.where(sign, self.constants[1], self.constants[0]), self.budget or 0.0)

    # The minimum of the quadratic model

    def _minimize(self, model: Floats, here: Point, start: _Pattern) -> tuple[_Pattern, Floats] | None:
        """Minimum of the quadratic model and the piecewise linear part: its pattern, and (v, ν).

        A wrong pattern suggests a better one. This can go in circles; then the answer is None. It does not if the
        Levenberg term is large, because the pattern then hardly changes.
        """
        if not self.problem.band.is_open:
            pattern = replace(start, edge=np.ones(self.n, dtype=np.int64))
            return pattern, self._on(pattern, model, here)[0]
        edge = np.where(start.empty[self.block_of], 1, np.sign(here.shifts[:-1]).astype(np.int64))
        for pattern in (start, replace(start, edge=edge)):
            for _ in range(_MAX_PATTERNS):
                scaled, levels = self._on(pattern, model, here)
                better = self._corrected(pattern, scaled, levels, model, here)
                if better is None:
                    return pattern, scaled
                pattern = better
        return None

    def _on(self, pattern: _Pattern, model: Floats, here: Point) -> tuple[Floats, Floats]:
        """(v, ν) and the levels, if the pattern is right: linear equations."""
        edge, scale = pattern.edge, self.scale
        active = np.append(edge != 0, self.budget is not None)
        upper = (edge > 0).astype(int)
        constants = np.append(self.constants[upper], self.budget or 0.0)
        scaled = np.where(active, here.shifts * scale, 0.0)
        pull = scale * (here.slope + constants) + model @ (scaled - here.shifts * scale)
        which, live = np.array([], dtype=np.int64), np.zeros((self.n + 1, 0))
        if self.free:
            which = np.array(
                [b for b in np.unique(self.block_of[edge != 0]) if not pattern.empty[b]], dtype=np.int64
            )
            weights = scale * np.append(self.slopes[upper], 0.0)
            live = weights[:, None] * (np.append(self.block_of, -1)[:, None] == which)
        live = live[active]
        m = len(which)
        matrix = np.block([[model[np.ix_(active, active)], live], [live.T, np.zeros((m, m))]])
        right = -np.concatenate([pull[active], live.T @ scaled[active]])
        try:
            answer = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:
            answer = np.linalg.lstsq(matrix, right, rcond=None)[0]
        scaled[active] += answer[: len(answer) - m]
        levels = np.zeros(len(self.blocks))
        levels[which] = answer[len(answer) - m :]
        return scaled, levels

    def _corrected(
        self, pattern: _Pattern, scaled: Floats, levels: Floats, model: Floats, here: Point
    ) -> _Pattern | None:
        """The pattern that a solution suggests instead of its own; None if it is its own."""
        step = scaled - here.shifts * self.scale
        rates = -here.slope[:-1] - (model @ step)[:-1] / self.scale[:-1]
        rounding = 1e-13 + 1e-15 * np.abs(model).max() * np.abs(step).max() / self.scale.min()
        edge, empty = pattern.edge.copy(), pattern.empty.copy()
        s = scaled[:-1] * self.scale[:-1]
        for b, columns in enumerate(self.blocks):
            e, r, at = edge[columns], rates[columns], s[columns]
            if empty[b]:
                up, down = np.maximum(at, 0).sum(), np.maximum(-at, 0).sum()
                if up > self.slopes[0] * down + 1e-15:
                    empty[b] = False
                    e[:] = np.sign(at)
                continue
            if self.free and not e.any():
                if self.problem.band.excess(r) > rounding:
                    e[r.argmax()], e[r.argmin()] = 1, -1
                continue
            low, high = self.constants + self.slopes * levels[b]
            if self.cone and levels[b] < -rounding:
                empty[b], e[:] = True, 1
                continue
            dropped = at * e < 0
            e[(e == 0) & (r > high + rounding)] = 1
            e[(pattern.edge[columns] == 0) & (r < low - rounding)] = -1
            e[dropped] = 0
        same = np.array_equal(edge, pattern.edge) and np.array_equal(empty, pattern.empty)
        return None if same else _Pattern(edge, empty)

    def split(self, start: Floats) -> Floats:
        """Shifts and ν with the given sum, up to a constant if the level is free and there is no budget."""
        shifts = np.append(start, 0.0).astype(np.float64)
        for columns in self.blocks if self.free else ():
            a, shares = shifts[columns].copy(), self.moments.shares[columns]
            # The constant without which the multipliers of the block balance: a fixed point of weighted means.
            constant = float(shares @ a)
            for _ in range(len(a)):
                slopes = shares * self.slopes[(a > constant).astype(int)]
                constant = float(slopes @ a / max(slopes.sum(), 1e-300))
            shifts[columns] = np.where(np.abs(a - constant) > GOOD, a - constant, 0.0)
            shifts[-1] += constant
        if self.budget is None:
            shifts[-1] = 0.0
        return shifts
