"""Two peers from the paper that no maintained library offers, for comparisons.

Both are fixed decisions from a score and a group, with the interface of a `Rule`; p is P(y = 1 | x).

*Shift inference.* Label and group were dependent in training, and should not be: multiply P(y | x) by

    w(y, s) = P(y) P(s) / P(y, s),      from the training rows,

renormalise, and predict the larger. P(s) cancels, and what is left is one cut-off per group:

    yes  iff  p · w(1, s) ≥ (1 − p) · w(0, s)  iff  p ≥ P(1, s) P(0) / (P(1, s) P(0) + P(0, s) P(1))

*Reject option.* Two groups. Inside the zone abs(2 (p − cutoff)) ≤ θ, abs(2p − 1) ≤ θ for a cut-off of 0.5,
the disadvantaged group (the one with the lower selection rate on the fit rows) gets a yes and the other a no;
outside, the classifier's own decision stands, and for θ = 0 everywhere. θ is the one of 0.00, 0.01, … 1.00 with
the smallest gap of selection rates on validation rows; of equals, the smallest.

Reference: Alabdulmohsin and Lucic 2021, experiments; shift inference: Saerens et al. 2002, Wang et al. 2020;
reject option: Kamiran, Karim and Zhang 2012. Hardt et al. 2016 and the reductions approach are in Fairlearn.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairramp.core.checks import check_length, check_option
from fairramp.core.curve import Floats
from fairramp.core.labels import Label, label_key
from fairramp.core.scales import SCALES
from fairramp.core.table import Table, name_column
from fairramp.data.arrays import as_labels, as_scores, as_weights
from fairramp.data.groups import Codes, encode_groups
from fairramp.data.rows import ArrayRows
from fairramp.errors import InputError, UnseenGroupError
from fairramp.rule.draws import decide

__all__ = ["RejectOption", "ShiftInference", "fit_reject_option", "fit_shift_inference"]

#: The half-widths θ that the reject option tries.
THETAS = tuple(i / 100 for i in range(101))
#: Scores such as 0.57 are rounded: so close to the end of the zone is at it. Gaps so close are equal.
_ROUNDING = 1e-12

Places = npt.NDArray[np.intp]


@dataclass(frozen=True, repr=False)
class _FixedDecisions(ABC):
    """What both have in common: groups, and decisions without chance."""

    groups: tuple[Label, ...]
    rows: tuple[int, ...]
    scale: str
    group_columns: tuple[str, ...] | None

    @abstractmethod
    def _selected(self, x: Floats, place: Places) -> npt.NDArray[np.bool_]:
        """Who gets a yes, from positions and the places of their groups."""

    def probabilities(self, scores: Any, groups: Any) -> npt.NDArray[np.float64]:
        """Probability of the positive decision for each row, which is 0 or 1.

        Parameters
        ----------
        scores : numbers of shape (n,)
            On the scale that was given to the fit.
        groups : labels of shape (n,), or several columns
            As in the fit; any other group is an error.

        Examples
        --------
        >>> from fairramp.baselines import fit_shift_inference
        >>> shift = fit_shift_inference([0, 0, 1, 0, 1, 1], ["A", "A", "A", "B", "B", "B"])
        >>> shift.probabilities([0.4, 0.4], ["A", "B"])
        array([1., 0.])
        """
        codes = encode_groups(groups, self.group_columns)
        x = _positions(scores, codes, self.scale)
        return self._selected(x, _places(codes, self.groups)).astype(np.float64)

    def decide(
        self,
        scores: Any,
        groups: Any,
        *,
        ids: Any = None,
        key: str | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> npt.NDArray[np.int8]:
        """0/1 decisions. Nothing is drawn: `ids`, `key` and `random_state` are there because a `Rule` has them.

        Examples
        --------
        >>> from fairramp.baselines import fit_shift_inference
        >>> shift = fit_shift_inference([0, 0, 1, 0, 1, 1], ["A", "A", "A", "B", "B", "B"])
        >>> shift.decide([0.4, 0.4], ["A", "B"])
        array([1, 0], dtype=int8)
        """
        chances = self.probabilities(scores, groups)
        if ids is None and key is None and random_state is None:
            return chances.astype(np.int8)
        return decide(chances, ids=ids, key=key, random_state=random_state)  # refuses what a Rule refuses


@dataclass(frozen=True, repr=False)
class ShiftInference(_FixedDecisions):
    """Labels made independent of the group by weights; made by `fit_shift_inference`.

    Attributes
    ----------
    groups : tuple
        Labels of the groups.
    rows : tuple of int
        Training rows of each group.
    scale : {"probability", "percent", "signed", "logit"}
        What the scores are.
    group_columns : tuple of str, or None
        Names of the group columns, where they had any.
    weights_no, weights_yes : tuple of float
        w(0, s) and w(1, s) of each group.
    cutoffs : tuple of float
        The probability from which on each group gets a yes.

    Examples
    --------
    >>> from fairramp.baselines import fit_shift_inference
    >>> shift = fit_shift_inference([0, 0, 1, 0, 1, 1], ["A", "A", "A", "B", "B", "B"])
    >>> print(shift.table())
    group  n  weight  weight  cutoff
                  no     yes
    -----  -  ------  ------  ------
    A      3  0.7500  1.5000  0.3333
    B      3  1.5000  0.7500  0.6667
    """

    weights_no: tuple[float, ...]
    weights_yes: tuple[float, ...]
    cutoffs: tuple[float, ...]

    def _selected(self, x: Floats, place: Places) -> npt.NDArray[np.bool_]:
        scale = SCALES[self.scale]
        cuts = scale.lowest + np.array(self.cutoffs) * (scale.highest - scale.lowest)
        selected: npt.NDArray[np.bool_] = x >= cuts[place]
        return selected

    def table(self) -> Table:
        """One row per group: rows, weights of no and yes, and the cut-off they amount to, as a probability.

        Examples
        --------
        >>> import fairramp
        >>> from fairramp.baselines import fit_shift_inference
        >>> data = fairramp.datasets.load_adult_scores()
        >>> fit_shift_inference(data.label, data.sex).table().columns
        ('group', 'n', 'weight_no', 'weight_yes', 'cutoff')
        """
        columns: dict[str, Any] = {
            "group": name_column(self.groups),
            "n": self.rows,
            "weight_no": self.weights_no,
            "weight_yes": self.weights_yes,
            "cutoff": self.cutoffs,
        }
        return Table(columns, headings={"group": " / ".join(self.group_columns or ["group"])})

    def __repr__(self) -> str:
        return f"shift inference for {_counted(self.groups)}: yes from the group's cut-off on\n\n{self.table()}"


def fit_shift_inference(
    labels: Any, groups: Any, *, sample_weight: Any = None, scale: str = "probability"
) -> ShiftInference:
    """Weigh labels so that they are independent of the group; no scores are needed.

    Parameters
    ----------
    labels : 0 or 1 of shape (n,)
        Labels of the rows that the classifier was trained on.
    groups : labels of shape (n,), or several columns
        Their groups. Each needs rows of both labels: otherwise P(y, s) = 0, and there is no weight.
    sample_weight : numbers of shape (n,), optional
        Weights of the rows.
    scale : {"probability", "percent", "signed", "logit"}, default "probability"
        What the scores will be; as probabilities they should be calibrated.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> shift = fairramp.baselines.fit_shift_inference(data.label, data.sex)
    >>> round(fairramp.audit(data.score, data.sex).gap, 2)
    0.17
    >>> round(fairramp.audit(shift.decide(data.score, data.sex), data.sex).gap, 2)
    0.07
    """
    check_option("scale", scale, SCALES)
    codes = encode_groups(groups)
    n = len(codes)
    if not n:
        raise InputError("`groups` is empty; pass at least one row.")
    y = as_labels(labels, n, "groups")
    weights = np.ones(n) if sample_weight is None else as_weights(sample_weight, n, "groups")
    if sample_weight is not None:
        weights = weights / weights.max()  # so that no product of sums overflows
    found, place, counts = _counting(codes, weights)
    no, yes = (np.bincount(place, weights * (y == label), minlength=len(found)) for label in (0, 1))
    for label, share in ((0, no), (1, yes)):
        if not share.all():
            name = found[int(np.flatnonzero(share == 0)[0])]
            raise InputError(
                f"`labels` must have both 0 and 1 in each group, got no {label} in group {name!r}, "
                "so that P(y, s) = 0; merge the group with another or leave it out."
            )
    total, group = no.sum() + yes.sum(), no + yes
    return ShiftInference(
        groups=found,
        rows=counts,
        scale=scale,
        group_columns=codes.names,
        weights_no=_floats(no.sum() / total * group / no),
        weights_yes=_floats(yes.sum() / total * group / yes),
        # From sums, not from shares: exactly ½ where the group's share of positives is everybody's.
        cutoffs=_floats(yes * no.sum() / (yes * no.sum() + no * yes.sum())),
    )


@dataclass(frozen=True, repr=False)
class RejectOption(_FixedDecisions):
    """Uncertain decisions turned in favour of one of two groups; made by `fit_reject_option`.

    Attributes
    ----------
    groups : tuple
        Labels of the two groups.
    rows : tuple of int
        Fit rows of each.
    scale : {"probability", "percent", "signed", "logit"}
        What the scores are.
    group_columns : tuple of str, or None
        Names of the group columns, where they had any.
    cutoff : float
        Where the classifier itself says yes, as a score.
    disadvantaged : label
        The group that gets a yes inside the zone.
    theta : float
        θ; the zone reaches θ/2 to either side of the cut-off, in units of probabilities.
    rate_before, rate_after : tuple of float
        Selection rate of each group on the fit rows, by the classifier and with the zone.
    validation_gap_before, validation_gap : float
        Difference of the groups' selection rates on the validation rows.

    Examples
    --------
    >>> from fairramp.baselines import fit_reject_option
    >>> rows = [0.2, 0.4, 0.6, 0.4, 0.7, 0.9], ["A", "A", "A", "B", "B", "B"]
    >>> option = fit_reject_option(*rows, validation=rows)
    >>> option.disadvantaged, option.theta
    ('A', 0.2)
    >>> print(option.table())
    group  n    zone    zone  inside    rate    rate
                from      to          before   after
    -----  -  ------  ------  ------  ------  ------
    A      3  0.4000  0.6000  yes     0.3333  0.6667
    B      3  0.4000  0.6000  no      0.6667  0.6667
    """

    cutoff: float
    disadvantaged: Label
    theta: float
    rate_before: tuple[float, ...]
    rate_after: tuple[float, ...]
    validation_gap_before: float
    validation_gap: float

    def _selected(self, x: Floats, place: Places) -> npt.NDArray[np.bool_]:
        cut, unit = _cut_and_unit(self.scale, self.cutoff)
        return _reject(x, place == self._favoured, cut, self.theta / 2 * unit)

    @property
    def _favoured(self) -> int:
        return [label_key(label) for label in self.groups].index(label_key(self.disadvantaged))

    def table(self) -> Table:
        """One row per group: rows, the zone and the decision inside, selection rate on the fit rows.

        Examples
        --------
        >>> import fairramp
        >>> from fairramp.baselines import fit_reject_option
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rows = data.score, data.sex
        >>> fit_reject_option(*rows, validation=rows).table()["inside"].tolist()
        ['yes', 'no']
        """
        cut, unit = _cut_and_unit(self.scale, self.cutoff)
        half = self.theta / 2 * unit
        columns: dict[str, Any] = {
            "group": name_column(self.groups),
            "n": self.rows,
            "zone_from": [cut - half] * 2,
            "zone_to": [cut + half] * 2,
            "inside": ["yes" if i == self._favoured else "no" for i in range(2)],
            "rate_before": self.rate_before,
            "rate_after": self.rate_after,
        }
        return Table(columns, headings={"group": " / ".join(self.group_columns or ["group"])})

    def __repr__(self) -> str:
        goal = f"θ = {self.theta:.2f}"
        if self.theta == 0:
            goal += ", the classifier's own decisions"
        gaps = f"{self.validation_gap_before:.4f} before, {self.validation_gap:.4f} after"
        return f"reject option for 2 groups: {goal}\n\n{self.table()}\n\ngap on the validation rows: {gaps}"


def fit_reject_option(
    scores: Any,
    groups: Any,
    *,
    validation: tuple[Any, ...],
    cutoff: float | None = None,
    scale: str = "probability",
    sample_weight: Any = None,
) -> RejectOption:
    """Find the disadvantaged group on the fit rows, and the zone θ on validation rows.

    Parameters
    ----------
    scores : numbers of shape (n,)
        Scores of the fit rows.
    groups : labels of shape (n,), or several columns
        Their groups, two of them. If both have the same selection rate, the first label is taken for the
        disadvantaged one.
    validation : tuple (scores, groups) or (scores, groups, sample_weight)
        Other rows, of both groups.
    cutoff : float, optional
        Where the classifier itself says yes, `score >= cutoff`; 0.5, 50 percent, or 0 for signed scores and
        logits.
    scale : {"probability", "percent", "signed", "logit"}, default "probability"
        What the scores are.
    sample_weight : numbers of shape (n,), optional
        Weights of the fit rows.

    Examples
    --------
    >>> import fairramp
    >>> d = fairramp.datasets.load_adult_scores()
    >>> fit, other = slice(0, 12000), slice(12000, None)
    >>> option = fairramp.baselines.fit_reject_option(
    ...     d.score[fit], d.sex[fit], validation=(d.score[other], d.sex[other])
    ... )
    >>> option.disadvantaged, option.theta, round(option.validation_gap, 3)
    ('Female', 0.44, 0.001)
    """
    check_option("scale", scale, SCALES)
    cut_score = SCALES[scale].checked_cutoff(cutoff)
    cut, unit = _cut_and_unit(scale, cut_score)
    codes = encode_groups(groups)
    x = _positions(scores, codes, scale)
    weights = np.ones(len(x)) if sample_weight is None else as_weights(sample_weight, len(x))
    found, place, counts = _counting(codes, weights)
    if len(found) != 2:
        raise InputError(
            f"`groups` must be two groups for the reject option, got {len(found)}: {_some(found)}; "
            "fairramp.fit_rule takes any number."
        )
    before = _rates(x >= cut, place, weights)
    favoured = int(np.argmin(before))

    other_x, other_place, other_weights = _validation_rows(validation, found, codes.names, scale)
    gaps = np.empty(len(THETAS))
    for i, theta in enumerate(THETAS):
        chosen = _reject(other_x, other_place == favoured, cut, theta / 2 * unit)
        gaps[i] = np.ptp(_rates(chosen, other_place, other_weights))
    best = int(np.argmax(gaps <= gaps.min() + _ROUNDING))  # the first of equals
    after = _rates(_reject(x, place == favoured, cut, THETAS[best] / 2 * unit), place, weights)
    return RejectOption(
        groups=found,
        rows=counts,
        scale=scale,
        group_columns=codes.names,
        cutoff=cut_score,
        disadvantaged=found[favoured],
        theta=THETAS[best],
        rate_before=_floats(before),
        rate_after=_floats(after),
        validation_gap_before=float(gaps[0]),
        validation_gap=float(gaps[best]),
    )


def _reject(x: Floats, favoured: npt.NDArray[np.bool_], cut: float, half: float) -> npt.NDArray[np.bool_]:
    """The classifier's own decisions, but inside the zone yes for the favoured group and no for the other."""
    own = x >= cut
    return own if half == 0 else np.where(np.abs(x - cut) <= half + _ROUNDING, favoured, own)


def _validation_rows(
    validation: Any, found: tuple[Label, ...], names: tuple[str, ...] | None, scale: str
) -> tuple[Floats, Places, Floats]:
    if not isinstance(validation, tuple) or len(validation) not in (2, 3):
        raise InputError("`validation` must be a tuple (scores, groups) or with a third, weights.")
    codes = encode_groups(validation[1], names)
    x = _positions(validation[0], codes, scale)
    place = _places(codes, found)
    weights = np.ones(len(x)) if len(validation) == 2 else as_weights(validation[2], len(x))
    weights = weights / weights.max()
    present = np.bincount(place, weights, minlength=2) > 0
    if not present.all():
        name = found[int(np.argmin(present))]
        raise InputError(f"`validation` must have rows of both groups, got none of group {name!r}.")
    return x, place, weights


def _positions(scores: Any, codes: Codes, scale: str) -> Floats:
    """Scores as positions, checked."""
    column = as_scores(scores)
    check_length("groups", len(codes), len(column))
    return ArrayRows(column, codes, None, SCALES[scale]).positions(0, len(column))


def _cut_and_unit(scale: str, cutoff: float) -> tuple[float, float]:
    """Position of the cut-off, and how much of the positions a probability from 0 to 1 spans."""
    meaning = SCALES[scale]
    return meaning.position_of(cutoff), meaning.highest - meaning.lowest


def _counting(codes: Codes, weights: Floats) -> tuple[tuple[Label, ...], Places, tuple[int, ...]]:
    """Labels with a row that counts, the place of each row's label among them, and rows that count of each.

    Rows with weight 0 and a label that no other row has get a place too, where they add nothing.
    """
    code = codes.block(0, len(codes))
    rows = np.bincount(code, weights > 0, minlength=len(codes.labels)).astype(np.intp)
    there = rows > 0
    place = np.maximum(np.cumsum(there) - 1, 0)[code]
    labels = tuple(label for label, counts in zip(codes.labels, there, strict=True) if counts)
    return labels, place, tuple(rows[there].tolist())


def _places(codes: Codes, groups: tuple[Label, ...]) -> Places:
    """The place of each row's group; a group that the fit did not see is an error."""
    known = {label_key(label): i for i, label in enumerate(groups)}
    lookup = np.array([known.get(label_key(label), -1) for label in codes.labels], dtype=np.intp)
    unseen = (lookup < 0) & codes.occurring()
    if unseen.any():
        labels = [codes.labels[i] for i in np.flatnonzero(unseen)]
        raise UnseenGroupError(
            f"Groups not seen in fit: {_some(labels)}; fitted groups: {_some(groups)}. "
            "Fit on rows that hold them, or check the column, the spelling and the type."
        )
    return lookup[codes.block(0, len(codes))]


def _rates(selected: npt.NDArray[np.bool_], place: Places, weights: Floats) -> Floats:
    """Selection rates of two groups."""
    relative = weights / weights.max()
    return np.bincount(place, relative * selected, minlength=2) / np.bincount(place, relative, minlength=2)


def _counted(groups: tuple[Label, ...]) -> str:
    return f"{len(groups):,} group{'s' if len(groups) > 1 else ''}"


def _some(labels: Any) -> str:
    """The first few labels, as a list."""
    shown = ", ".join(repr(label) for label in list(labels)[:10])
    return f"[{shown}{f', … {len(labels) - 10:,} more' if len(labels) > 10 else ''}]"


def _floats(values: Floats) -> tuple[float, ...]:
    return tuple(values.tolist())
