"""Rows with scores of several classes: checked, with the labels of the classes.

    p_c(i) ≥ 0,   Σ_c p_c(i) = 1 for every row i

Arrays have one column per class and keep their order. Named columns, of a mapping or a table, are matched by
name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairramp.core.blocks import map_blocks
from fairramp.core.checks import check_length
from fairramp.core.curve import Array, Booleans, Floats, Integers
from fairramp.core.labels import Label, canonical_label, label_key
from fairramp.data.aligned import check_aligned
from fairramp.data.arrays import as_column, as_weights, no_weight
from fairramp.data.columns import Columns
from fairramp.data.groups import Codes, encode_groups
from fairramp.data.probable import SUM_TOLERANCE, GroupProbabilities
from fairramp.data.sample import encode_cells, scaling
from fairramp.errors import InputError, UnsupportedError

#: What to do about scores of a row that do not sum to 1.
PER_CLASS = "divide each row by its sum, or add a column for the remaining class"


@dataclass(frozen=True)
class ClassSample:
    """Checked rows with positive weight.

    Attributes
    ----------
    classes : tuple
        Labels of the classes.
    values : floats of shape (n, C)
        Their scores.
    groups : Codes or None
        The group of each row; None if only group probabilities are known.
    cells : Codes or None
        The group of each row or, with strata, its group within its stratum.
    membership : GroupProbabilities or None
        What a rule decides by, if it uses group probabilities.
    weights : floats of shape (n,), or None
        Positive; None counts each row once.
    labels : integers of shape (n,), or None
        Index of the true class.
    columns : Columns
        Names of the columns, if any.
    """

    classes: tuple[Label, ...]
    values: Floats
    groups: Codes | None
    cells: Codes | None
    membership: GroupProbabilities | None
    weights: Floats | None
    labels: Integers | None
    columns: Columns

    @classmethod
    def of_arrays(
        cls,
        probabilities: Any,
        groups: Any,
        labels: Any = None,
        *,
        classes: Sequence[Any] | None = None,
        fitted: Sequence[Label] | None = None,
        strata: Any = None,
        sample_weight: Any = None,
        columns: Columns | None = None,
        membership: GroupProbabilities | None = None,
        drop_empty: bool = False,
    ) -> "ClassSample":
        """Check columns and encode groups.

        Parameters
        ----------
        probabilities, groups, classes, strata, sample_weight
            As in `fairramp.fit_class_rule`.
        labels : labels of shape (n,), optional
            The true classes.
        fitted : sequence of labels, optional
            The classes of a rule; columns are then matched to them.
        columns : Columns, optional
            Names by which group and strata columns are selected and ordered, as in an earlier fit.
        membership : GroupProbabilities, optional
            What a rule decides by, if `groups` are the true groups.
        drop_empty : bool, default False
            Whether to drop groups whose rows all have weight 0; otherwise they raise an error.
        """
        check_aligned(
            probabilities=probabilities,
            groups=groups,
            labels=labels,
            strata=strata,
            sample_weight=sample_weight,
            group_probabilities=membership,
        )
        known, values, names = class_columns(probabilities, classes, fitted)
        if isinstance(groups, GroupProbabilities):
            if strata is not None:
                raise UnsupportedError(
                    "Group probabilities do not support {strata}", remedy="remove one of the two"
                )
            group, cells, membership, found = None, None, groups, Columns()
            check_length("groups", len(groups), len(values), "probabilities")
        else:
            group, cells, found = encode_cells(groups, strata, columns)
            check_length("groups", len(cells), len(values), "probabilities")
            if membership is not None:
                check_length("group_probabilities", len(membership), len(values), "probabilities")
        weights = None if sample_weight is None else as_weights(sample_weight, len(values), "probabilities")
        truth = None if labels is None else class_indices(labels, known, len(values))
        found = replace(found, class_scores=names)
        sample = cls(known, values, group, cells, membership, weights, truth, found)
        return sample if weights is None else sample._counting(weights, drop_empty)

    def _counting(self, weights: Floats, drop_empty: bool) -> "ClassSample":
        """The rows with positive weight, rescaled if weights are far from 1."""
        sample, counts = self, weights > 0
        if not counts.all():
            sample, weights = self.take(counts), weights[counts]
            if self.cells is not None and sample.cells is not None and not drop_empty:
                for lost in np.flatnonzero(self.cells.occurring() & ~sample.cells.occurring()):
                    raise no_weight(self.cells.labels[lost])
        shift = scaling(float(weights.max()), float(weights.min()))
        return replace(sample, weights=np.ldexp(weights, shift) if shift else weights)

    def take(self, which: Booleans | Integers) -> "ClassSample":
        """Selected rows, in the given order."""

        def chosen(codes: Codes | None) -> Codes | None:
            return codes and replace(codes, values=codes.values[which])

        groups = chosen(self.groups)
        return replace(
            self,
            values=self.values[which],
            groups=groups,
            cells=groups if self.cells is self.groups else chosen(self.cells),
            membership=self.membership and self.membership.take(which),
            weights=None if self.weights is None else self.weights[which],
            labels=None if self.labels is None else self.labels[which],
        )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def decided_by(self) -> Codes | GroupProbabilities:
        """What the offsets of a rule depend on: the cell of each row, or its group probabilities."""
        found = self.cells if self.membership is None else self.membership
        assert found is not None
        return found


def checked_classes(classes: Sequence[Any]) -> tuple[Label, ...]:
    """The labels of classes: at least two different strings, integers or booleans."""
    if isinstance(classes, str | bytes | set | frozenset | Mapping) or not hasattr(classes, "__len__"):
        raise InputError("must be a list of labels, one per column", argument="classes", got=classes)
    none = "A class label must be a string, an integer or a boolean"
    try:
        found = tuple(canonical_label(label) for label in classes)
    except InputError:
        raise InputError(none, got=list(classes)) from None
    if any(label is None or isinstance(label, tuple) for label in found):
        raise InputError(none, got=list(found))
    if len(found) < 2:
        raise InputError("There must be at least two classes, got {found}", found=list(found))
    if len(set(map(label_key, found))) < len(found):
        raise InputError("names the same class twice: {found}", argument="classes", found=list(found))
    return found


def class_columns(
    probabilities: Any, classes: Sequence[Any] | None = None, fitted: Sequence[Label] | None = None
) -> tuple[tuple[Label, ...], Floats, tuple[str, ...] | None]:
    """The classes, their checked scores of shape (n, C), and the names of the columns if they have any.

    If `fitted` is given, these are the classes, in this order; arrays then have their columns in it.
    """
    named = _named_columns(probabilities)
    if named is None:
        values = _as_table(probabilities, fitted)
        found = fitted if fitted is not None and classes is None else classes
        known = checked_classes(range(values.shape[1]) if found is None else found)
        if len(known) != values.shape[1]:
            raise InputError(
                "must have one column per class, got {m} columns for the classes {known}",
                argument="probabilities",
                m=values.shape[1],
                known=list(known),
            )
        names = None
    else:
        if classes is not None:
            raise InputError(
                "is for arrays; the columns of {probabilities} have names already", argument="classes"
            )
        known = checked_classes(list(named))
        columns = [as_column(column, "probabilities") for column in named.values()]
        if len(lengths := sorted(set(map(len, columns)))) > 1:
            raise InputError("has columns of {lengths} rows", argument="probabilities", lengths=lengths)
        values = np.stack(columns, axis=1)
        names = tuple(named) if all(isinstance(name, str) for name in named) else None
    if fitted is not None and tuple(map(label_key, known)) != tuple(map(label_key, fitted)):
        place = {label_key(label): i for i, label in enumerate(known)}
        if set(place) != set(map(label_key, fitted)):
            raise InputError(
                "must have the rule's classes {fitted}, got {known}",
                argument="probabilities" if classes is None else "classes",
                fitted=list(fitted),
                known=list(known),
            )
        order = [place[label_key(label)] for label in fitted]
        known, values = tuple(fitted), values[:, order]
        names = names and tuple(names[i] for i in order)
    _check(values, known)
    return known, values, names


def class_indices(labels: Any, classes: Sequence[Label], n_rows: int) -> Integers:
    """The index of each row's class."""
    try:
        codes = encode_groups(labels)
    except InputError as error:
        raise error.renamed(groups="labels", label="class label") from None
    check_length("labels", len(codes), n_rows, "probabilities")
    place = {label_key(label): i for i, label in enumerate(classes)}
    indices = np.array([place.get(label_key(label), -1) for label in codes.labels], dtype=np.intp)
    found: Integers = indices[codes.block(0, n_rows)]
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        raise InputError(
            "must be one of the classes {classes}, got {value!r} in row {row}",
            argument="labels",
            remedy="name the columns by their labels in the argument classes, if there is a rule in its fit"
            if tuple(classes) == tuple(range(len(classes)))
            else None,
            classes=list(classes),
            value=codes.labels[int(codes.block(row, row + 1)[0])],
            row=row,
        )
    return found


def _named_columns(probabilities: Any) -> dict[Any, Any] | None:
    """The columns by name, if they have names."""
    if isinstance(probabilities, Mapping):
        return dict(probabilities)
    if isinstance(probabilities, list | tuple | np.ndarray):
        return None
    import narwhals as nw

    try:
        frame = nw.from_native(probabilities, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise InputError(
            "Two columns of {probabilities} have the same name", remedy="rename one of them"
        ) from None
    if isinstance(frame, nw.LazyFrame):
        raise InputError(
            "is a lazy table", argument="probabilities", remedy="collect it first, or use fairramp.fit_frame"
        )
    if not isinstance(frame, nw.DataFrame):
        return None
    names = list(probabilities.columns) if hasattr(probabilities, "iloc") else frame.columns  # pandas has others
    return {name: column.to_numpy() for name, column in zip(names, frame.iter_columns(), strict=True)}


def _as_table(probabilities: Any, fitted: Sequence[Label] | None) -> Floats:
    masked = isinstance(probabilities, np.ma.MaskedArray)
    try:
        table: Array = probabilities if masked else np.asarray(probabilities)
    except ValueError:
        raise InputError("must be a table, got rows of different lengths", argument="probabilities") from None
    if table.ndim != 2 or not table.size:
        remedy = "for the scores of one class, use fairramp.fit_rule, fairramp.audit or fairramp.frontier"
        if table.dtype.kind in "OUST":
            remedy = "pass what predict_proba returns, not predict"
        elif fitted is not None:
            remedy = "pass the scores of all classes of the rule: {fitted}"
        raise InputError(
            "must have the shape (rows, classes), or be a mapping or a dataframe with a column per class, got "
            "shape {shape}",
            argument="probabilities",
            remedy=remedy if table.ndim == 1 and table.size else None,
            shape=table.shape,
            fitted=list(fitted or ()),
        )
    if masked or table.dtype.kind not in "fiub":
        return np.stack([as_column(column, "probabilities") for column in table.T], axis=1)
    return table.astype(np.float64, copy=False)


def _rescaling(scores: Floats) -> str | None:
    """How to make probabilities of a row of scores that are none."""
    if not np.isfinite(scores).all():
        return "fill it in or drop the row" if np.isnan(scores).any() else None
    if scores.min() >= 0 and abs(scores.sum() - 100) < 1:
        return "divide percentages by 100"
    return "turn logits into probabilities with scipy.special.softmax(logits, axis=1)"


def _check(values: Floats, classes: Sequence[Label]) -> None:
    """Raise if a score is out of range, or those of a row do not sum to 1."""
    ones = np.ones(values.shape[1])

    def sound(start: int, stop: int) -> bool:
        block = values[start:stop]
        lowest, highest = block.min(), block.max()  # NaN fails both comparisons
        if not (lowest >= 0 and highest <= 1 + SUM_TOLERANCE):
            return False
        return bool(np.abs(block @ ones - 1).max() <= SUM_TOLERANCE)

    if all(map_blocks(sound, len(values))):
        return
    outside = ~((values >= 0) & (values <= 1 + SUM_TOLERANCE))
    if outside.any():
        row, c = (int(i[0]) for i in np.nonzero(outside))
        raise InputError(
            "must be between 0 and 1, got {value!r} for class {label!r} in row {row}",
            argument="probabilities",
            remedy=_rescaling(values[row]),
            value=float(values[row, c]),
            label=classes[c],
            row=row,
        )
    total = values.sum(axis=1)
    row = int(np.argmax(np.abs(total - 1) > SUM_TOLERANCE))
    raise InputError(
        "must sum to 1 in every row, got {total:.9g} in row {row}",
        argument="probabilities",
        remedy=PER_CLASS,
        total=float(total[row]),
        row=row,
    )
