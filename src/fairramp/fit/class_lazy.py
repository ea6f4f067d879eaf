"""Rows with scores of several classes in DuckDB, of which only sums and the rows in doubt are loaded.

    p0, p1, …   scores of the classes      q0, q1, …   group probabilities      w   weight      code   the group
    v0, v1, …   p − offset                 top, lead   the largest v, and its distance to the second largest

A row whose lead is at least the ramp width has a sure class, the one with the largest v. The engine sums these
rows by group and class, and only the others are loaded: those that are decided at random, and those that might be
after another step of the solver (`fit.class_moments`). The solver starts from a sample of each group.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from fairramp.core.curve import Floats
from fairramp.core.labels import Label
from fairramp.data.columns import Columns
from fairramp.data.lazy_table import LazyTable, Profile
from fairramp.data.sample import scaling
from fairramp.fit.class_moments import NEAR, ClassMoments, Part, Window, rounded
from fairramp.fit.classes import Outcome, outcome_of
from fairramp.fit.moments import Sums

#: Up to this many rows are loaded at once.
FEW_ROWS = 1 << 16
#: Rows of the sample: at most this many, divided among the groups, but no fewer than this many for each.
SAMPLED, SAMPLED_PER_GROUP = 1 << 19, 1 << 11


@dataclass(frozen=True)
class _Split:
    """Rows with a sure class as sums, and all others.

    Attributes
    ----------
    selected : floats of shape (C, K)
        Weights of the sure rows, by class and group.
    top, weight : float
        Σ w top and Σ w over the sure rows.
    parts : list of Part
        The other rows.
    """

    selected: Floats
    top: float
    weight: float
    parts: list[Part]


class LazyClassRows:
    """Rows of a DuckDB relation as `fit.classes` needs them; see `fit.classes.Rows`.

    Parameters
    ----------
    table : narwhals.LazyFrame
        The user's table.
    columns : Columns
        The columns of classes, and of groups and strata or of group probabilities.
    labels : sequence of labels
        The groups of the columns of group probabilities; empty otherwise.
    weight : str, optional
        Column of the weights.
    """

    def __init__(
        self, table: Any, columns: Columns, labels: Sequence[Label] = (), weight: str | None = None
    ) -> None:
        lazy = LazyTable(table, columns, weight=weight)
        profile = Profile.of(lazy, None)
        self.n_classes, self.soft = len(lazy.scores), bool(lazy.shares)
        self.stratified = columns.strata is not None
        self.groups = tuple(labels) if self.soft else profile.labels
        w, rows = "1e0", lazy.rows.to_native()
        if weight is not None:
            rows = rows.filter("w > 0")
            shift = scaling(profile.largest_weight, profile.smallest_weight)
            factors = (shift // 2, shift - shift // 2)  # one factor may overflow
            w = " * ".join(["w", *(repr(float(np.ldexp(1.0, part))) for part in factors)])
        self._names = [*lazy.scores, *lazy.shares]
        self._rows = rows.project(", ".join([*self._names, *lazy.keys, f"{w} AS w"]))
        self._types = dict(zip(self._rows.columns, self._rows.types, strict=True))
        self._keys, self._key_names = profile.keys, lazy.keys
        rows = self._coded(None)
        (self.masses,), (sizes,) = self._totals(rows, ["1e0"]), self._totals(rows, ["1e0"], "1e0")
        self.sizes = rounded(sizes)

    @property
    def all_certain(self) -> bool:
        """Whether every score is 0 or 1."""
        certain = " AND ".join(f"p{c} IN (0, 1)" for c in range(self.n_classes))
        return not self._rows.filter(f"NOT ({certain})").limit(1).fetchall()

    # Passes over the rows

    def _coded(self, offsets: Floats | None, strides: Sequence[int] | None = None) -> Any:
        """The rows with the number of their group, its offsets a0, a1, … and its stride s; all if soft."""
        if self.soft:
            return self._rows
        from fairramp.data.database import literal  # which imports duckdb, an optional library

        kinds, entries = [str(self._types[name]) for name in self._key_names], []
        for code, key in enumerate(self._keys):
            values = [
                f"CAST({'NULL' if part is None else literal(str(part))} AS {kind})"
                for part, kind in zip(key, kinds, strict=True)
            ]
            numbers = [] if offsets is None else [repr(float(a)) + "::DOUBLE" for a in offsets[:, code]]
            stride = 1 if strides is None else strides[code]
            entries.append(f"({', '.join([*values, str(code), str(stride), *numbers])})")
        names = [f"k{i}" for i in range(len(kinds))]
        more = [] if offsets is None else [f"a{c}" for c in range(self.n_classes)]
        known = self._rows.query(
            "__fairramp_rows",
            f"SELECT * FROM (VALUES {', '.join(entries)}) AS t({', '.join([*names, 'code', 's', *more])})",
        )
        same = (f"r.{g} IS NOT DISTINCT FROM k.{k}" for g, k in zip(self._key_names, names, strict=True))
        return self._rows.set_alias("r").join(known.set_alias("k"), " AND ".join(same))

    def _totals(self, rows: Any, terms: Sequence[str], w: str = "w") -> Floats:
        """Σ w q_k x for each of the terms x, of shape (terms, K)."""
        n = len(self.groups)
        found = np.zeros((len(terms), n))
        if self.soft:
            sums = [f"sum({w} * q{k} * ({x}))" for x in terms for k in range(n)]
            found[:] = np.array(rows.aggregate(", ".join(sums)).fetchall()).reshape(found.shape)
            return found
        sums = [f"sum({w} * ({x}))" for x in terms]
        for code, *values in rows.aggregate(", ".join(["code", *sums]), "code").fetchall():
            found[:, code] = values
        return found

    def _parts(self, rows: Any, weight: str = "w") -> list[Part]:
        """Rows in memory, group by group; sorted, so that threads do not change the order."""
        kept = [*self._names, f"{weight} AS w", *([] if self.soft else ["code"])]
        found = rows.project(", ".join(kept)).order("ALL").fetchnumpy()
        values = np.stack([np.asarray(found[f"p{c}"]) for c in range(self.n_classes)])
        weights = np.asarray(found["w"])
        if not values.shape[1]:
            return []
        if self.soft:
            q = np.stack([np.asarray(found[f"q{k}"]) for k in range(len(self.groups))])
            return [Part(values, weights, q)]
        codes = np.asarray(found["code"])
        which = ((int(code), codes == code) for code in np.unique(codes))
        return [Part(np.ascontiguousarray(values[:, rows]), weights[rows], code) for code, rows in which]

    def split(self, offsets: Floats, bound: float) -> _Split:
        """Sums over the rows whose lead is at least the bound, and all other rows."""
        names = [f"v{c}" for c in range(self.n_classes)]
        if self.soft:
            shifts = [" + ".join(f"q{k} * {a!r}::DOUBLE" for k, a in enumerate(row)) for row in offsets.tolist()]
        else:
            shifts = [f"a{c}" for c in range(self.n_classes)]
        moved = ", ".join(f"p{c} - ({shift}) AS v{c}" for c, shift in enumerate(shifts))
        sorted_ = f"list_reverse_sort([{', '.join(names)}])"
        rows = self._coded(offsets).project(f"*, {moved}").project(f"*, {sorted_} AS s_")
        rows = rows.project(
            f"*, s_[1] AS top, s_[1] - s_[2] AS lead, list_position([{', '.join(names)}], s_[1]) - 1 AS best"
        )
        near = [] if bound <= 0 else self._parts(rows.filter(f"lead < {bound!r}") if bound < inf else rows)
        selected, top, weight = np.zeros((self.n_classes, len(self.groups))), 0.0, 0.0
        if bound < inf:
            sure = rows.filter(f"lead >= {bound!r}")
            by = "best" if self.soft else "best, code"
            shares = [f"sum(w * q{k})" for k in range(len(self.groups))] if self.soft else ["code"]
            sums = sure.aggregate(f"best, sum(w), sum(w * top), {', '.join(shares)}", by).fetchall()
            for best, w, wt, *found in sorted(sums):
                weight, top = weight + w, top + wt
                if self.soft:
                    selected[best] = found
                else:
                    selected[best, found[0]] = w
        return _Split(selected, top, weight, near)

    # What a fit needs

    def within(self, part: slice) -> "LazyClassRows":
        """The rows of some adjacent groups, numbered anew."""
        if self.soft or part == slice(0, len(self.groups)):
            return self
        made = copy(self)
        made.groups, made.sizes = self.groups[part], self.sizes[part]
        made.masses, made._keys = self.masses[part], self._keys[part]
        return made

    def outcome(self, offsets: Floats, width: float) -> Outcome:
        """The rates at offsets of shape (C, K)."""
        found = self.split(offsets, width)
        sure = np.vstack([found.selected, np.zeros(len(self.groups))])
        return outcome_of(found.parts, offsets, width, self.masses, sure)

    def score_sums(self) -> Floats:
        """Σ w q_k p_c, of shape (C, K)."""
        return self._totals(self._coded(None), [f"p{c}" for c in range(self.n_classes)])

    def moments(self) -> "ClassMoments | LazyClassMoments":
        """The sums of the solver; of rows in memory if there are few."""
        if self.sizes.sum() > FEW_ROWS:
            return LazyClassMoments(self)
        return ClassMoments(self.split(np.zeros((self.n_classes, len(self.groups))), inf).parts, len(self.groups))

    def sampled(self) -> list[Part]:
        """A sample of every group: rows chosen by a hash of their scores, which no order of rows changes."""
        most = max(SAMPLED // len(self.groups), SAMPLED_PER_GROUP)
        sizes = [int(self.sizes.sum())] if self.soft else self.sizes.tolist()
        strides = [max(-(-n // (most * (len(self.groups) if self.soft else 1))), 1) for n in sizes]
        hashed = f"hash({', '.join(f'p{c}' for c in range(self.n_classes))})"
        if self.soft:
            return self._parts(self._rows.filter(f"mod({hashed}, {strides[0]}) = 0"))
        return self._parts(self._coded(None, strides).filter(f"mod({hashed}, s) = 0"), "w * s")

    def gram(self) -> Floats:
        """Σ w q_k q_l."""
        if not self.soft:
            return np.diag(self.masses)
        return self._totals(self._rows, [f"q{k}" for k in range(len(self.groups))])


class LazyClassMoments:
    """Moments of rows in DuckDB; see `fit.moments.Moments`."""

    def __init__(self, rows: LazyClassRows) -> None:
        self._rows, self.total = rows, float(rows.masses.sum())
        self.n_classes, self.n_groups = rows.n_classes, len(rows.groups)
        self.masses: Floats = rows.masses / self.total
        self.shares: Floats = np.tile(self.masses, self.n_classes)

    @property
    def gram(self) -> Floats:
        """Σ w q_k q_l."""
        gram: Floats = self._rows.gram() / self.total
        return gram

    def coarser(self) -> ClassMoments | None:
        """A sample of every group; None if it misses one."""
        parts = self._rows.sampled()
        if not parts:
            return None
        sample = ClassMoments(parts, self.n_groups)
        return sample if np.all(sample.masses > self.masses / 2) else None

    def at(self, shifts: Floats, width: float) -> Sums:
        """The sums at the given offsets; a pass."""
        return self.around(shifts, width)[0]

    def around(self, shifts: Floats, width: float) -> tuple[Sums, Window | None]:
        """The sums, and the rows that suffice for offsets close by; None if there are none."""
        slack = max(width, NEAR)
        found = self._rows.split(shifts.reshape(self.n_classes, self.n_groups), width + slack)
        cost = (found.top - found.weight * width / 2 * (1 - 1 / self.n_classes)) / self.total
        selected: Floats = found.selected.ravel() / self.total
        if not found.parts:
            return Sums(cost, selected, np.zeros((len(selected), len(selected)))), None
        window = Window(
            ClassMoments(found.parts, self.n_groups, self.total), shifts, width, slack, cost, selected
        )
        return window.at(shifts, width), window
