"""Add a rule to a Dask table: the NumPy core on each partition."""

from typing import Any

import numpy as np

from fairramp.data.columns import Columns
from fairramp.deploy.engines.memory import decided
from fairramp.rule.rule import Rule


def apply(rule: Rule, table: Any, columns: Columns, key: str | None, new: list[str]) -> Any:
    """Add the columns to each partition."""
    work, native = _Partition(rule, columns, key, new), table.to_native()
    return native.map_partitions(work, meta=work(native._meta))


class _Partition:
    """The function for each partition; its repr, which Dask uses in graphs and task names, hides the key."""

    def __init__(self, rule: Rule, columns: Columns, key: str | None, new: list[str]) -> None:
        self.rule, self.columns, self.new = rule, columns, new
        self._key = key

    def __repr__(self) -> str:
        return f"fairramp.Rule.apply({', '.join(self.new)})"

    def __call__(self, part: Any) -> Any:
        """Return the partition with new columns."""
        import pandas

        none = [np.empty(0, dtype=np.float64), np.empty(0, dtype=np.int8)]
        found = decided(self.rule, part.__getitem__, self.columns, self._key) if len(part) else none
        return part.assign(
            **{name: pandas.Series(v, index=part.index) for name, v in zip(self.new, found, strict=False)}
        )
