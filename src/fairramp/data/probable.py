"""GroupProbabilities: how likely each row belongs to each group, for decisions without the group.

q_k(i) ≥ 0,   Σ_k q_k(i) = 1 for every row i       mix(t)_i = Σ_k q_k(i) t_k
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairramp.core.checks import check_length
from fairramp.core.curve import Booleans, Floats, Integers
from fairramp.core.indexes import indexes_of
from fairramp.core.labels import Label, canonical_label, label_key
from fairramp.core.public import public
from fairramp.data.aligned import check_aligned
from fairramp.data.arrays import as_column
from fairramp.errors import InputError, UnsupportedError

#: Largest difference from 1 of the probabilities of one row, which may be rounded.
SUM_TOLERANCE = 1e-6
#: What to do about other sums.
PER_ROW = "divide each row by its sum, or add a column for the remaining people"


@public
class GroupProbabilities:
    """The probability that each row belongs to each group, for rows whose group is not known.

    Pass it as `groups` to `fairramp.fit_rule`, and then to the rule. Probabilities come from a model or a proxy.
    What a rule can achieve depends on their calibration: among people with a probability of 0.7 for a group, 70%
    must belong to it. A proxy is still information about the group, and using it may be unlawful too.

    Parameters
    ----------
    probabilities : mapping, dataframe, or array of shape (n, K)
        One column per group: between 0 and 1, and 1 in sum in every row, up to 1e-6.
    labels : sequence, optional
        The groups, in the order of the columns; required for an array, otherwise the names of the columns.

    Attributes
    ----------
    labels : tuple
        The groups, sorted.
    values : floats of shape (K, n)
        Their probabilities.
    index : pandas.Index or None
        The index of the rows, if the probabilities have one: `scores` must have the same.

    Examples
    --------
    >>> import fairramp
    >>> fairramp.GroupProbabilities({"F": [0.9, 0.2], "M": [0.1, 0.8]})
    GroupProbabilities of 2 rows: F (1.1 expected), M (0.9 expected)

    From a scikit-learn classifier, ``GroupProbabilities(model.predict_proba(X), model.classes_)``.
    """

    labels: tuple[Label, ...]
    values: Floats
    index: Any

    def __init__(self, probabilities: Any, labels: Sequence[Any] | None = None) -> None:
        check_aligned(group_probabilities=probabilities)
        self.index = next(indexes_of(probabilities), None)
        columns, found = _columns(probabilities, labels)
        keys = list(map(label_key, found))
        if len(set(keys)) < len(keys):
            raise InputError("names the same group twice: {found}", argument="labels", found=list(found))
        order = sorted(range(len(keys)), key=keys.__getitem__)
        read = [as_column(columns[i], "group_probabilities") for i in order]
        for column in read:
            check_length("group_probabilities", len(column), len(read[0]))
        self.labels = tuple(found[i] for i in order)
        self.values = np.ascontiguousarray(np.stack(read))
        self._check()

    def _check(self) -> None:
        """Raise if a probability is out of range, or those of a row do not sum to 1."""
        outside = (self.values < 0) | (self.values > 1 + SUM_TOLERANCE)
        if outside.any():
            k, row = (int(i[0]) for i in np.nonzero(outside))
            raise InputError(
                "must be between 0 and 1, got {value!r} for group {group!r} in row {row}",
                argument="group_probabilities",
                value=float(self.values[k, row]),
                group=self.labels[k],
                row=row,
            )
        total = self.values.sum(axis=0)
        off = np.abs(total - 1) > SUM_TOLERANCE
        if off.any():
            row = int(np.argmax(off))
            raise InputError(
                "must sum to 1 in every row, got {total:.9g} in row {row}",
                argument="group_probabilities",
                remedy=PER_ROW,
                total=float(total[row]),
                row=row,
            )

    @classmethod
    def _made(cls, labels: tuple[Label, ...], values: Floats, index: Any = None) -> "GroupProbabilities":
        """Without checks, for values that were checked before."""
        made = cls.__new__(cls)
        made.labels, made.values, made.index = labels, values, index
        return made

    def __len__(self) -> int:
        return int(self.values.shape[1])

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{label} ({total:,.4g} expected)"
            for label, total in zip(self.labels, self.values.sum(axis=1).tolist(), strict=True)
        )
        return f"GroupProbabilities of {len(self):,} row{'s' if len(self) != 1 else ''}: {shown}"

    def mix(self, per_group: Floats, start: int, stop: int, out: Floats | None = None) -> Floats:
        """The expected value of each of the rows start … stop − 1; exact if all groups have the same value."""
        found = np.empty(stop - start) if out is None else out
        if (per_group == per_group[0]).all():
            found[:] = per_group[0]
            return found
        np.multiply(self.values[0, start:stop], per_group[0], out=found)
        for values, value in zip(self.values[1:], per_group[1:].tolist(), strict=True):
            found += values[start:stop] * value
        return found

    def take(self, which: Booleans | Integers) -> "GroupProbabilities":
        """Selected rows, in the given order."""
        return self._made(self.labels, np.ascontiguousarray(self.values[:, which]))

    def ordered(self, labels: Sequence[Label]) -> "GroupProbabilities":
        """The same probabilities in the order of a rule's groups; raises if these are other groups."""
        keys = {label_key(label): i for i, label in enumerate(self.labels)}
        wanted = [label_key(label) for label in labels]
        if set(keys) != set(wanted):
            raise InputError(
                "must have the rule's groups {wanted}, got {found}",
                argument="group_probabilities",
                wanted=list(labels),
                found=list(self.labels),
            )
        return self._made(tuple(labels), self.values[[keys[key] for key in wanted]], self.index)


def refuse_probabilities(groups: Any, what: str) -> None:
    """Raise if groups are group probabilities, which `what` does not support."""
    if isinstance(groups, GroupProbabilities):
        raise UnsupportedError(
            what + " does not support group probabilities", remedy="pass the groups themselves"
        )


def _columns(probabilities: Any, labels: Sequence[Any] | None) -> tuple[list[Any], list[Label]]:
    """The columns and their groups."""
    if isinstance(probabilities, GroupProbabilities):
        return list(probabilities.values), list(probabilities.labels)
    names: Sequence[Any] | None = None
    if isinstance(probabilities, Mapping):
        columns, names = list(probabilities.values()), list(probabilities)
    elif hasattr(probabilities, "columns") and not isinstance(probabilities, np.ndarray):
        import narwhals as nw

        frame = nw.from_native(probabilities, eager_only=True)
        columns, names = [c.to_numpy() for c in frame.iter_columns()], list(probabilities.columns)
    else:
        table = np.asarray(probabilities)
        if table.ndim != 2 or not table.size:
            raise InputError(
                "must be a mapping of groups to columns, a dataframe, or an array of shape (rows, groups), got "
                "shape {shape}",
                argument="group_probabilities",
                shape=table.shape,
            )
        columns = list(table.T)
    found = names if labels is None else list(labels)
    if found is None:
        raise InputError(
            "requires {labels}, the groups in the order of its columns, if it is an array",
            argument="group_probabilities",
            remedy="pass them, such as model.classes_",
        )
    if not columns or len(found) != len(columns):
        raise InputError(
            "must name one group per column, got {n} for {m} columns",
            argument="labels",
            n=len(found),
            m=len(columns),
        )
    return columns, [canonical_label(label) for label in found]
