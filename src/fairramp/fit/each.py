"""Equal rates by each of several attributes on its own, without their intersections.

A *cell* is an intersection with fit rows. Its foot is a sum over its values v, one per attribute:

    foot_cell = base + Σ_v shift_v          Σ_v π_v shift_v = 0 in every attribute

All rows of a cell have the same foot, so the sums that the solver needs (`fit.affine`) come from a summary of the
cells, which any engine can make. It is refined until it is exact at the solution, as in any other fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairramp.core.curve import Booleans, Floats, Integers
from fairramp.core.intervals import effective_rows
from fairramp.core.labels import Label, label_key, label_parts
from fairramp.core.points import Summary
from fairramp.core.ramps import Ramp, Ramps
from fairramp.data.columns import Columns
from fairramp.data.rows import Rows, refined, resolved
from fairramp.errors import InputError
from fairramp.fit.affine import solve_affine
from fairramp.fit.mixed import mixed_rule, own_decisions_hold, placed, warn_mixed
from fairramp.fit.moments import Sums
from fairramp.fit.problem import Problem
from fairramp.fit.settings import Settings
from fairramp.rule.record import Rates
from fairramp.rule.rule import Rule

#: Smaller means of the shifts are rounding errors.
_NOTHING = 1e-13


@dataclass(frozen=True)
class Attributes:
    """The values of each attribute, and which of them make a cell.

    Attributes
    ----------
    values : tuple of (attribute, value)
        All values, attribute by attribute.
    blocks : tuple of slices
        The values of each attribute.
    of_cell : integers of shape (C, A)
        Index in `values` of each cell's value of each attribute.
    """

    values: tuple[tuple[str, Label], ...]
    blocks: tuple[slice, ...]
    of_cell: Integers

    @classmethod
    def of(cls, cells: Sequence[Label], names: Sequence[str] | None = None) -> "Attributes":
        """The attributes of cells with these labels."""
        columns = list(zip(*map(label_parts, cells), strict=True))
        values: list[tuple[str, Label]] = []
        blocks, places = [], []
        for i, column in enumerate(columns):
            name = names[i] if names else f"attribute {i + 1}"
            known = {label_key(part): part for part in column}
            seats = {key: len(values) + j for j, key in enumerate(sorted(known))}
            blocks.append(slice(len(values), len(values) + len(seats)))
            values += [(name, known[key]) for key in seats]
            places.append([seats[label_key(part)] for part in column])
        return cls(tuple(values), tuple(blocks), np.array(places, dtype=np.intp).T)

    @property
    def parts(self) -> Integers:
        """Index of each value's attribute."""
        return np.repeat(np.arange(len(self.blocks)), [b.stop - b.start for b in self.blocks])

    @property
    def matrix(self) -> Floats:
        """Z: whether a cell (row) has a value (column)."""
        z = np.zeros((len(self.of_cell), len(self.values)))
        np.put_along_axis(z, self.of_cell, 1.0, axis=1)
        return z


class CellMoments:
    """The sums of the solver, from a summary of the cells."""

    def __init__(self, summary: Summary, z: Floats, problem: Problem) -> None:
        self._summary, self._z, self._problem = summary, z, problem
        p = summary.points
        self._weight = p.weight / p.weight.sum()
        shares = summary.shares
        self.shares = z.T @ shares
        self.gram = z.T @ (shares[:, None] * z)

    def at(self, shifts: Floats, width: float) -> Sums:
        """The sums at the feet that these shifts give the cells."""
        problem, p, w = self._problem, self._summary.points, self._weight
        feet = problem.cutoff - problem.offset * width + self._z @ shifts
        x = (p.place - feet[p.group]) / width
        h = np.clip(x, 0.0, 1.0)
        cost = width * float(w @ (h * (np.maximum(x, 0.0) - h / 2)))
        selected, sloping = self._summary.total(w * h), self._summary.total(w * ((x > 0) & (x < 1)))
        return Sums(cost, self._z.T @ selected, self._z.T @ (sloping[:, None] * self._z) / width)


def fit_each(rows: Rows, settings: Settings, columns: Columns, *, weighted: bool) -> Rule:
    """Fit a rule with equal rates by each group column, to rows in the cells of all columns."""
    problem, summary = settings.problem, rows.summarize()
    fingerprint = summary.fingerprint(*problem.ends)
    names = columns.groups or ()
    for name in [name for name in names if names.count(name) > 1]:
        raise InputError("Two columns of {groups} are named {name!r}", remedy="rename one of them", name=name)
    attributes = Attributes.of(summary.labels, columns.groups)
    z, width = attributes.matrix, problem.ramp_width
    edges = np.full((1, len(z)), problem.cutoff)
    start = None
    while True:
        moments = CellMoments(summary, z, problem)
        solved = solve_affine(moments, attributes.blocks, problem, start=start)
        start = solved.shifts
        feet = problem.own_foot + z @ solved.shifts
        finer = refined(rows, summary, feet[None], width, edges)
        if finer is summary:
            break
        summary = finer
    owner = attributes.of_cell
    own = _by_value(summary, owner, len(attributes.values), summary.points.lower >= problem.cutoff)
    if own_decisions_hold(settings, problem, own, attributes.parts):
        base = Ramp(problem.cutoff, 0.0, 1.0)
        ramps, cell_ramps = [base] * len(attributes.values), Ramps.of([base] * len(z))
        summary = resolved(rows, summary, edges, 0.0, edges)
    else:
        shifts = solved.shifts.copy()
        first = attributes.blocks[0]
        common = float(moments.shares[first] @ shifts[first])
        common = common if abs(common) > _NOTHING else 0.0
        shifts[first] -= common
        base, *ramps = placed(problem, common + np.append(0.0, shifts))
        cell_ramps = Ramps(
            base.foot + z @ (np.array([ramp.foot for ramp in ramps]) - base.foot), width, np.zeros(len(z))
        )
    rule = mixed_rule(
        settings,
        columns,
        attributes.values,
        ramps,
        _rates(summary, owner, len(attributes.values), cell_ramps, own),
        fingerprint,
        level=None,
        parts=attributes.parts,
        weighted=weighted,
        membership="each",
        base=base,
    )
    warn_mixed(settings, rule, problem, solved if base.width else None)
    return rule


def _by_value(summary: Summary, owner: Integers, n: int, chances: Floats | Booleans) -> Floats:
    """Mean of a per-point quantity over the rows of each value."""
    p = summary.points
    sums, weights = (_totals(owner[p.group], v, n) for v in (p.weight * chances, p.weight))
    return np.minimum(sums / weights, 1.0)


def _totals(owner: Integers, values: Floats, n: int) -> Floats:
    """Sum of a per-point quantity for each value; a point belongs to one value of each attribute."""
    total: Floats = np.sum([np.bincount(seat, values, minlength=n) for seat in owner.T], axis=0)
    return total


def _rates(summary: Summary, owner: Integers, n: int, ramps: Ramps, before: Floats) -> Rates:
    """The rates of each value for the record."""
    p, seats = summary.points, owner[summary.points.group]
    chances, feet = ramps.at(p.place, p.group), ramps.feet[p.group]
    assert isinstance(ramps.width, float)
    width = ramps.width
    after = _by_value(summary, owner, n, chances)
    above = p.lower >= feet + width if width else p.lower > feet
    inside = (p.place > feet) & ~above if width else p.place == feet
    weights = _totals(seats, p.weight, n)
    squares, spread = np.zeros(n), np.zeros(n)
    for seat in seats.T:
        share = np.sqrt(p.weight_squares) / weights[seat]
        squares += np.bincount(seat, share**2, minlength=n)
        spread += np.bincount(seat, (share * (chances - after[seat])) ** 2, minlength=n)
    rows, over, within = (_totals(seats, p.rows * part, n) for part in (1, above, inside))
    return Rates(
        rows=tuple(rows.astype(int).tolist()),
        effective_rows=tuple(np.where(squares > 0, effective_rows(after, squares, spread), rows).tolist()),
        rows_above=tuple(over.astype(int).tolist()),
        rows_inside=tuple(within.astype(int).tolist()),
        before=tuple(before.tolist()),
        after=tuple(after.tolist()),
        error=(0.0,) * n,
    )
