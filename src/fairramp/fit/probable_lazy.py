"""Rows with group probabilities in a lazy table: the engine computes the sums of every pass.

x   the score → p, its position        q0, q1, …   the probabilities of the groups        w   the weight
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from fairramp.core.curve import Floats
from fairramp.core.labels import Label
from fairramp.core.scales import Scale
from fairramp.data.columns import Columns
from fairramp.data.lazy_rows import position_of
from fairramp.data.lazy_table import LazyTable, Profile
from fairramp.data.sample import scaling
from fairramp.fit.moments import Sums
from fairramp.fit.probable import SUMS
from fairramp.fit.problem import Problem


class LazyProbableRows:
    """Rows of a lazy table, of which only sums are loaded."""

    def __init__(
        self, table: Any, columns: Columns, labels: tuple[Label, ...], scale: Scale, more: Mapping[str, str]
    ):
        self.labels = labels
        self._q = [nw.col(f"q{k}") for k in range(len(labels))]
        weight = more.get("weight")
        lazy = LazyTable(table, columns, weight=weight, label=more.get("label"))
        profile = Profile.of(lazy, scale)
        self.n_rows, self.saturated = int(profile.rows.sum()), profile.saturated
        self._lazy, self._weighted = lazy, weight is not None
        rows = lazy.rows.filter(nw.col("w") > 0) if profile.has_zeros else lazy.rows
        if weight is not None:
            shift = scaling(profile.largest_weight, profile.smallest_weight)
            for part in (shift // 2, shift - shift // 2):  # one factor may overflow
                rows = rows.with_columns(w=nw.col("w") * float(np.ldexp(1.0, part)))
        self._rows = rows.with_columns(p=position_of(scale))

    def moments(self, problem: Problem) -> "_LazyMoments":
        """The sums of the solver."""
        return _LazyMoments(self, problem)

    def own_rates(self, problem: Problem) -> Floats:
        """The rates of the classifier's own decisions."""
        own = (nw.col("p") >= problem.cutoff).cast(nw.Float64)
        parts = {"v": self._q, "vo": [column * own for column in self._q]}
        found = self.total(
            self._rows,
            {f"{name}{k}": self.weighted(part) for name, every in parts.items() for k, part in enumerate(every)},
        )
        v, vo = (np.array([found[f"{name}{k}"] for k in range(len(self._q))]) for name in ("v", "vo"))
        return vo / np.where(v > 0, v, 1.0)

    def sums(self, shifts: Floats, width: float, problem: Problem) -> dict[str, Floats]:
        """Sums for the record, by group."""
        x, h, v, q = nw.col("p"), nw.col("h"), nw.col("v"), nw.col("q")
        own = (x >= problem.cutoff).cast(nw.Float64)
        rows = self.with_chances(shifts, width, problem).with_columns(own=own)
        found = []
        for column in self._q:  # a pass each: many sums at once would be slow to plan
            weighted = column * nw.col("w") if self._weighted else column
            one = rows.with_columns(q=column, v=weighted)
            some, certain = (holds.cast(nw.Float64) for holds in ((h > 0) & (h < 1), h >= 1))
            vv, own = v * v, nw.col("own")
            parts = (q, v, v * own, v * h, v * x, vv, vv * h, vv * h * h, q * certain, q * some)
            found.append(self.total(one, dict(zip(SUMS, parts, strict=True))))
        return {name: np.array([one[name] for one in found]) for name in SUMS}

    def with_chances(self, shifts: Floats, width: float, problem: Problem) -> Any:
        """The rows with z = (p − foot) / width and h, the probability; own decisions if the width is 0."""
        if width == 0:
            return self._rows.with_columns(h=(nw.col("p") >= problem.cutoff).cast(nw.Float64))
        foot: Any = problem.cutoff - problem.offset * width
        for column, shift in zip(self._q, shifts.tolist(), strict=True):
            foot = column * shift + foot
        z = nw.col("z")
        rows = self._rows.with_columns(z=(nw.col("p") - foot) / width)
        inside = nw.when(z >= 1).then(nw.lit(1.0)).otherwise(z)
        return rows.with_columns(h=nw.when(z > 0).then(inside).otherwise(nw.lit(0.0)))

    def total(self, rows: Any, parts: Mapping[str, Any]) -> dict[str, float]:
        """Sums of expressions over all rows."""
        made = rows.select(**{f"s{i}": part for i, part in enumerate(parts.values())})
        found = self._lazy.fetch(made.select(*(nw.col(f"s{i}").sum() for i in range(len(parts)))))
        return {name: float(found[f"s{i}"][0]) for i, name in enumerate(parts)}

    def weighted(self, part: Any) -> Any:
        """An expression times the weight."""
        return part * nw.col("w") if self._weighted else part


class _Products(NamedTuple):
    """Sums of all pairs of columns, as names of parts."""

    n: int

    def parts(self, rows: LazyProbableRows, factor: Any) -> dict[str, Any]:
        q = rows._q
        return {f"{k},{m}": rows.weighted(q[k] * q[m] * factor) for k in range(self.n) for m in range(k + 1)}

    def matrix(self, found: Mapping[str, float]) -> Floats:
        made = np.zeros((self.n, self.n))
        for k in range(self.n):
            for m in range(k + 1):
                made[k, m] = made[m, k] = found[f"{k},{m}"]
        return made


class _LazyMoments:
    """The sums of the solver, computed by the engine."""

    def __init__(self, rows: LazyProbableRows, problem: Problem) -> None:
        self._lazy, self._problem, self._products = rows, problem, _Products(len(rows.labels))
        parts = {"w": rows.weighted(nw.lit(1.0))}
        parts |= {f"q{k}": rows.weighted(column) for k, column in enumerate(rows._q)}
        found = rows.total(rows._rows, parts | self._products.parts(rows, 1.0))
        self.total = found["w"]
        self.shares = np.array([found[f"q{k}"] for k in range(len(rows.labels))]) / self.total
        self.gram = self._products.matrix(found) / self.total

    def at(self, shifts: Floats, width: float) -> Sums:
        """One pass: the cost, the sums of the groups, and the curvature."""
        rows, z, h = self._lazy, nw.col("z"), nw.col("h")
        made = rows.with_chances(shifts, width, self._problem)
        made = made.with_columns(on=((z > 0) & (z < 1)).cast(nw.Float64))
        parts = {"cost": rows.weighted(h * (z - h * 0.5))}
        parts |= {f"q{k}": rows.weighted(column * h) for k, column in enumerate(rows._q)}
        found = rows.total(made, parts | self._products.parts(rows, nw.col("on")))
        return Sums(
            cost=width * found["cost"] / self.total,
            selected=np.array([found[f"q{k}"] for k in range(len(rows.labels))]) / self.total,
            curvature=self._products.matrix(found) / (self.total * width),
        )
