"""Sample: the entry point for rows in memory, used by fits, audits, checks and summaries.

    scores, groups, strata, labels, weights, as users have them   →   checked columns of equal length

Rows of weight 0 must be valid and are then dropped. If squares of weights would overflow or underflow, the
weights are scaled by a power of two, which changes no rate.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fairramp.core.blocks import map_blocks
from fairramp.core.checks import check_length
from fairramp.core.curve import Array, Booleans, Floats, Integers
from fairramp.core.scales import Scale
from fairramp.data.aligned import check_aligned
from fairramp.data.arrays import as_scores, as_weights, checked_labels, in_wrong_order, no_weight
from fairramp.data.columns import Columns
from fairramp.data.groups import Codes, cross, encode_groups, name_of
from fairramp.data.probable import GroupProbabilities
from fairramp.data.rows import ArrayRows
from fairramp.errors import InputError, warn

#: Weights beyond these limits are scaled, so their squares neither overflow nor underflow.
LARGEST_WEIGHT, SMALLEST_WEIGHT = 1e100, 1e-100


@dataclass(frozen=True)
class Sample:
    """Checked rows with positive weight.

    Attributes
    ----------
    scores : numbers of shape (n,)
        As passed; converted to positions block by block.
    groups : Codes
        The group of each row.
    cells : Codes
        The ramp that applies to each row: its group or, with strata, its group within its stratum.
    weights : floats of shape (n,), or None
        Positive; None counts each row once.
    labels : numbers of shape (n,), or None
        True outcomes, 0 and 1; as passed.
    scale : Scale
        Scale of the scores.
    columns : Columns
        Names of the columns, if any.
    shift : int
        Exponent of the power of two by which the weights were scaled.
    membership : GroupProbabilities or None
        What a rule decides by if it mixes thresholds by group probabilities; `groups` are then the true groups.
    """

    scores: Array
    groups: Codes
    cells: Codes
    weights: Floats | None
    labels: Array | None
    scale: Scale
    columns: Columns
    shift: int = 0
    membership: GroupProbabilities | None = None

    @classmethod
    def of_arrays(
        cls,
        scores: Any,
        groups: Any,
        labels: Any = None,
        *,
        scale: Scale,
        strata: Any = None,
        sample_weight: Any = None,
        columns: Columns | None = None,
        drop_empty: bool = False,
        membership: GroupProbabilities | None = None,
    ) -> "Sample":
        """Check columns and encode groups.

        Parameters
        ----------
        scores, groups, labels, strata, sample_weight
            As in `fairramp.fit_rule`.
        scale : Scale
            Scale of the scores.
        columns : Columns, optional
            Names by which group and strata columns are selected and ordered, as in an earlier fit.
        drop_empty : bool, default False
            Whether to drop groups whose rows all have weight 0; otherwise they raise an error.
        membership : GroupProbabilities, optional
            Group probabilities that a rule decides by.
        """
        check_aligned(
            scores=scores,
            groups=groups,
            labels=labels,
            strata=strata,
            sample_weight=sample_weight,
            group_probabilities=membership,
        )
        try:
            column = as_scores(scores)
            group, cells, columns = encode_cells(groups, strata, columns)
            check_length("groups", len(cells), len(column))
            truth = None if labels is None else checked_labels(labels, len(column))
        except InputError as error:
            if in_wrong_order(scores, groups, labels):
                error.advise("the order is scores, groups, labels")
            raise
        columns = replace(columns, score=name_of(scores))
        weights = None if sample_weight is None else as_weights(sample_weight, len(column))
        if membership is not None:
            check_length("group_probabilities", len(membership), len(column))
        sample = cls(column, group, cells, weights, truth, scale, columns, membership=membership)
        return sample if weights is None else sample._counting(weights, drop_empty)

    def _counting(self, weights: Floats, drop_empty: bool) -> "Sample":
        """The rows with positive weight, rescaled if weights are far from 1."""
        sample, counts = self, weights > 0
        if not counts.all():
            ArrayRows(self.scores, self.cells, None, self.scale).positions(0, len(self.scores))  # checks all rows
            sample, weights = self.take(counts), weights[counts]
            lost = np.flatnonzero(self.cells.occurring() & ~sample.cells.occurring())
            if len(lost) and not drop_empty:
                raise no_weight(self.cells.labels[lost[0]])
        shift = scaling(float(weights.max()), float(weights.min()))
        return replace(sample, weights=np.ldexp(weights, shift) if shift else weights, shift=shift)

    def take(self, which: Booleans | Integers) -> "Sample":
        """Selected rows, in the given order."""
        groups = replace(self.groups, values=self.groups.values[which])
        return replace(
            self,
            scores=self.scores[which],
            groups=groups,
            cells=replace(self.cells, values=self.cells.values[which]) if self.stratified else groups,
            weights=None if self.weights is None else self.weights[which],
            labels=None if self.labels is None else self.labels[which],
            membership=self.membership and self.membership.take(which),
        )

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def stratified(self) -> bool:
        """Whether there are strata."""
        return self.cells is not self.groups

    @property
    def decided_by(self) -> Codes | GroupProbabilities:
        """What the ramps of a rule depend on: the cell of each row, or its group probabilities."""
        return self.cells if self.membership is None else self.membership

    @cached_property
    def rows(self) -> ArrayRows:
        """The rows as a fit reads them."""
        return ArrayRows(self.scores, self.cells, self.weights, self.scale)

    def rows_by_label(self) -> ArrayRows:
        """The same rows in cells (group, 0) and (group, 1), by their label."""
        assert self.labels is not None
        labels, codes = self.labels, self.cells
        pairs = tuple((label, y) for label in codes.labels for y in (0, 1))
        values: Array = np.empty(len(self), dtype=np.min_scalar_type(len(pairs)))

        def fill(start: int, stop: int) -> None:
            values[start:stop] = codes.block(start, stop)
            values[start:stop] *= 2
            values[start:stop] += labels[start:stop].astype(values.dtype, copy=False)

        map_blocks(fill, len(self))
        return ArrayRows(self.scores, Codes(values, 0, pairs), self.weights, self.scale)

    @cached_property
    def outcomes(self) -> Floats | None:
        """The labels as 0.0 and 1.0."""
        return None if self.labels is None else self.labels.astype(np.float64, copy=False)

    @property
    def positions(self) -> Floats:
        """Positions of all rows, after checking their scores."""
        return self.rows.positions(0, len(self))

    def warn_saturated(self) -> None:
        """Warn about scores with nearly the same position."""
        if self.scale.crowded_beyond is not None:
            warn_saturated(self.scale, int(self.scale.crowded(self.scores).sum()), len(self))


def scaling(largest: float, smallest: float) -> int:
    """Exponent of the power of two that scales the weights: 0 unless squares would overflow or underflow."""
    if SMALLEST_WEIGHT < largest < LARGEST_WEIGHT:
        return 0
    shift = -int(np.frexp(largest)[1])
    if np.ldexp(smallest, shift) == 0:
        raise InputError("must not differ by more than a factor of 1e300", argument="sample_weight")
    return shift


def encode_cells(groups: Any, strata: Any = None, columns: Columns | None = None) -> tuple[Codes, Codes, Columns]:
    """Encode groups and cells (the same without strata), and return the names of their columns."""
    known = columns or Columns()
    codes = encode_groups(groups, known.groups)
    if strata is None:
        return codes, codes, Columns(groups=codes.names)
    outer = encode_strata(strata, known.strata)
    check_length("strata", len(outer), len(codes), "groups")
    cells = replace(cross(outer, codes, lambda stratum, group: (stratum, group)), names=codes.names)
    return codes, cells, Columns(groups=codes.names, strata=outer.names)


def encode_strata(strata: Any, names: tuple[str, ...] | None = None) -> Codes:
    """Encode strata like groups; only the messages differ."""
    try:
        return encode_groups(strata, names)
    except InputError as error:
        raise error.renamed(groups="strata", label="stratum") from None


def warn_saturated(scale: Scale, tied: int, rows: int) -> None:
    """Warn about logits whose probabilities all round to 1, or if most real scores have nearly one position."""
    told: dict[str, Any] = {"tied": tied, "rows": rows, "limit": scale.crowded_beyond}
    if scale.only_ordered and 2 * tied > rows:
        warn(
            "{tied:,} of {rows:,} scores are beyond ±{limit:g}, where {scale:real} hardly distinguishes them. "
            "Subtract the cutoff from the scores and divide by their typical distance from it",
            **told,
        )
    elif tied and not scale.only_ordered:
        warn("{tied:,} logits above {limit:.1f} round to probability 1.0 and are tied", **told)
