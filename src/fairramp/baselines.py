"""Two baseline methods from the paper that no maintained library has, for comparisons.

Both make deterministic decisions from a score and a group, as ramps of width 0, with the interface of a `Rule`;
p is P(y = 1 | x).

*Shift inference.* To remove the dependence of label and group in the training rows, multiply P(y | x) by

    w(y, s) = P(y) P(s) / P(y, s),      from the training rows,

renormalize, and predict the more likely label. P(s) cancels, which leaves one cutoff per group:

    yes  iff  p · w(1, s) ≥ (1 − p) · w(0, s)  iff  p ≥ P(1, s) P(0) / (P(1, s) P(0) + P(0, s) P(1))

*Reject option.* For two groups. Inside the zone abs(2 (p − cutoff)) ≤ θ, or abs(2p − 1) ≤ θ for a cutoff of 0.5,
the disadvantaged group (the one with the lower selection rate on the fit rows) is selected and the other is not.
Outside the zone, and everywhere if θ = 0, the classifier's own decisions are kept. Of 0.00, 0.01, … 1.00, θ is
the smallest value that gives the smallest gap on the validation rows.

Reference: Alabdulmohsin and Lucic 2021, experiments; shift inference: Saerens et al. 2002, Wang et al. 2020;
reject option: Kamiran, Karim and Zhang 2012. Hardt et al. 2016 and the reductions approach are in Fairlearn.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from fairramp.core.checks import check_length, check_option
from fairramp.core.labels import Label, label_key
from fairramp.core.public import public
from fairramp.core.ramps import Ramp
from fairramp.core.scales import SCALES
from fairramp.core.table import Table, name_column
from fairramp.core.words import points
from fairramp.data.aligned import check_aligned
from fairramp.data.arrays import as_labels, as_scores, as_weights
from fairramp.data.columns import Columns
from fairramp.data.groups import Codes, encode_groups
from fairramp.errors import InputError, UnsupportedError, shown
from fairramp.rule.rule import Rule
from fairramp.rule.unseen import unseen_groups

__all__ = ["RejectOption", "ShiftInference", "fit_reject_option", "fit_shift_inference"]

#: Values of θ that the reject option tries.
THETAS = tuple(i / 100 for i in range(101))
#: Tolerance for rounding errors: scores this close to the end of the zone are inside, gaps this close are equal.
_ROUNDING = 1e-12


@dataclass(frozen=True, repr=False)
class _FixedDecisions(ABC):
    """Base class of both methods: groups and deterministic decisions."""

    groups: tuple[Label, ...]
    rows: tuple[int, ...]
    scale: str
    group_columns: tuple[str, ...] | None

    @abstractmethod
    def _cuts(self) -> list[float]:
        """The lowest position that is selected, for each group."""

    def _rule(self) -> Rule:
        """The same decisions as a rule with ramps of width 0."""
        ramps = tuple(Ramp(cut, width=0.0, tie=1.0) for cut in self._cuts())
        return Rule(self.groups, ramps, scale=self.scale, columns=Columns(groups=self.group_columns))

    def _codes(self, groups: Any) -> Codes:
        """Encode groups; a group not in the fit rows raises an error."""
        codes, known = encode_groups(groups, self.group_columns), set(map(label_key, self.groups))
        here = list(compress(codes.labels, codes.occurring()))
        if unseen := [label for label in here if label_key(label) not in known]:
            raise unseen_groups(unseen, self.groups, all_unseen=len(unseen) == len(here))
        return codes

    def _table(self, **columns: Any) -> Table:
        headings = {"group": " / ".join(self.group_columns or ["group"])}
        shown = {"group": name_column(self.groups), "n": self.rows, **columns}
        return Table(shown, headings=headings, shares=("rate_before", "rate_after"))

    def probabilities(self, scores: Any, groups: Any) -> npt.NDArray[np.float64]:
        """Return the probability of a positive decision for each row, 0 or 1.

        Parameters
        ----------
        scores : numbers of shape (n,)
            On the scale of the fit.
        groups : labels of shape (n,), or several columns
            As in the fit; any other group raises an error.

        Examples
        --------
        >>> from fairramp.baselines import fit_shift_inference
        >>> shift = fit_shift_inference([0, 0, 1, 0, 1, 1], ["A", "A", "A", "B", "B", "B"])
        >>> shift.probabilities([0.4, 0.4], ["A", "B"])
        array([1., 0.])
        """
        check_aligned(scores=scores, groups=groups)
        return self._rule().probabilities(scores, self._codes(groups))

    def decide(
        self,
        scores: Any,
        groups: Any,
        *,
        ids: Any = None,
        key: str | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> npt.NDArray[np.int8]:
        """Return 0/1 decisions. Nothing is drawn; `ids`, `key` and `random_state` are accepted as in `Rule`.

        Examples
        --------
        >>> from fairramp.baselines import fit_shift_inference
        >>> shift = fit_shift_inference([0, 0, 1, 0, 1, 1], ["A", "A", "A", "B", "B", "B"])
        >>> shift.decide([0.4, 0.4], ["A", "B"])
        array([1, 0], dtype=int8)
        """
        check_aligned(scores=scores, groups=groups, ids=ids)
        # Probabilities 0 and 1 need no draw, so any seed will do; `Rule` still checks the arguments.
        seed = 0 if ids is None and key is None and random_state is None else random_state
        return self._rule().decide(scores, self._codes(groups), ids=ids, key=key, random_state=seed)


@public
@dataclass(frozen=True, repr=False)
class ShiftInference(_FixedDecisions):
    """Decisions by shift inference, as returned by `fit_shift_inference`.

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
        Cutoff of each group, as a probability; people at or above it are selected.

    Examples
    --------
    >>> from fairramp.baselines import fit_shift_inference
    >>> shift = fit_shift_inference([0, 0, 1, 0, 1, 1], ["A", "A", "A", "B", "B", "B"])
    >>> print(shift.table())
    group  n  weight no  weight yes  cutoff
    -----  -  ---------  ----------  ------
    A      3     0.7500      1.5000  0.3333
    B      3     1.5000      0.7500  0.6667
    """

    weights_no: tuple[float, ...]
    weights_yes: tuple[float, ...]
    cutoffs: tuple[float, ...]

    def _cuts(self) -> list[float]:
        scale = SCALES[self.scale]
        return [scale.lowest + cut * (scale.highest - scale.lowest) for cut in self.cutoffs]

    def table(self) -> Table:
        """Return one row per group: rows, weights of both labels, and the resulting cutoff as a probability.

        Examples
        --------
        >>> import fairramp
        >>> from fairramp.baselines import fit_shift_inference
        >>> data = fairramp.datasets.load_adult_scores()
        >>> fit_shift_inference(data.label, data.sex).table().columns
        ('group', 'n', 'weight_no', 'weight_yes', 'cutoff')
        """
        return self._table(weight_no=self.weights_no, weight_yes=self.weights_yes, cutoff=self.cutoffs)

    def __repr__(self) -> str:
        groups = f"{len(self.groups):,} group{'s' if len(self.groups) > 1 else ''}"
        return f"shift inference for {groups}: yes at the group's cutoff or above\n\n{self.table()}"


def _check_scale(scale: str) -> None:
    """Check that scores stand for probabilities."""
    check_option("scale", scale, SCALES)
    if SCALES[scale].only_ordered:
        raise UnsupportedError(
            "Baselines need scores that stand for probabilities, not {scale:" + scale + "}",
            remedy="pass calibrated probabilities",
        )


@public
def fit_shift_inference(
    labels: Any, groups: Any, *, sample_weight: Any = None, scale: str = "probability"
) -> ShiftInference:
    """Weight labels so that they are independent of the group; no scores are needed.

    Parameters
    ----------
    labels : 0 or 1 of shape (n,)
        Labels of the rows that the classifier was trained on.
    groups : labels of shape (n,), or several columns
        Their groups. Each needs rows of both labels, because the weight is undefined if P(y, s) = 0.
    sample_weight : numbers of shape (n,), optional
        Weights of the rows.
    scale : {"probability", "percent", "signed", "logit"}, default "probability"
        Scale of the scores that will be decided on. Their probabilities should be calibrated.

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
    _check_scale(scale)
    check_aligned(labels=labels, groups=groups, sample_weight=sample_weight)
    codes = encode_groups(groups)
    if not len(codes):
        raise InputError("is empty", argument="groups", remedy="pass at least one row")
    y = as_labels(labels, len(codes), "groups")
    found, rows, sums = _by_group(codes, sample_weight, "groups")
    no, yes = sums(y == 0), sums(y == 1)
    for label, share in enumerate((no, yes)):
        if not share.all():
            raise InputError(
                "must have both 0 and 1 in each group, got no {label} in group {name!r}",
                argument="labels",
                remedy="merge the group with another or leave it out",
                label=label,
                name=found[int(np.argmin(share))],
            )
    n_no, n_yes = no.sum(), yes.sum()
    return ShiftInference(
        groups=found,
        rows=rows,
        scale=scale,
        group_columns=codes.names,
        weights_no=tuple((n_no / (n_no + n_yes) * (no + yes) / no).tolist()),
        weights_yes=tuple((n_yes / (n_no + n_yes) * (no + yes) / yes).tolist()),
        # Sums instead of shares, to get exactly ½ if the group's share of positives is the overall one.
        cutoffs=tuple((yes * n_no / (yes * n_no + no * n_yes)).tolist()),
    )


@public
@dataclass(frozen=True, repr=False)
class RejectOption(_FixedDecisions):
    """Decisions by the reject option, as returned by `fit_reject_option`.

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
        Cutoff of the classifier's own decisions, as a score.
    disadvantaged : label
        The group that is selected inside the zone.
    theta : float
        θ; the zone extends θ/2 to either side of the cutoff, in units of probability.
    rate_before, rate_after : tuple of float
        Selection rate of each group on the fit rows, without and with the zone.
    validation_gap_before, validation_gap : float
        Gap between the groups on the validation rows, without and with the zone.

    Examples
    --------
    >>> from fairramp.baselines import fit_reject_option
    >>> rows = [0.2, 0.4, 0.6, 0.4, 0.7, 0.9], ["A", "A", "A", "B", "B", "B"]
    >>> option = fit_reject_option(*rows, validation=rows)
    >>> option.disadvantaged, option.theta
    ('A', 0.2)
    >>> print(option.table())
    group  n              zone  inside  rate before  rate after
    -----  -  ----------------  ------  -----------  ----------
    A      3  0.4000 to 0.6000  yes           33.3%       66.7%
    B      3  0.4000 to 0.6000  no            66.7%       66.7%
    """

    cutoff: float
    disadvantaged: Label
    theta: float
    rate_before: tuple[float, ...]
    rate_after: tuple[float, ...]
    validation_gap_before: float
    validation_gap: float

    def _cuts(self) -> list[float]:
        low, high = self._zone
        slack = _ROUNDING if self.theta else 0.0  # θ = 0 must keep the classifier's own decisions
        return [low - slack if group == self.disadvantaged else high + slack for group in self.groups]

    @property
    def _zone(self) -> tuple[float, float]:
        scale = SCALES[self.scale]
        cut, half = scale.position_of(self.cutoff), self.theta / 2 * (scale.highest - scale.lowest)
        return cut - half, cut + half

    def table(self) -> Table:
        """Return one row per group: rows, the zone, the decision inside it, and selection rates on the fit rows.

        Examples
        --------
        >>> import fairramp
        >>> from fairramp.baselines import fit_reject_option
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rows = data.score, data.sex
        >>> fit_reject_option(*rows, validation=rows).table()["inside"].tolist()
        ['yes', 'no']
        """
        low, high = self._zone
        return self._table(
            zone_from=[low] * 2,
            zone_to=[high] * 2,
            inside=["yes" if group == self.disadvantaged else "no" for group in self.groups],
            rate_before=self.rate_before,
            rate_after=self.rate_after,
        )

    def __repr__(self) -> str:
        own = "" if self.theta else ", the classifier's own decisions"
        gaps = f"{points(self.validation_gap_before)} before, {points(self.validation_gap)} after"
        return (
            f"reject option for 2 groups: θ = {self.theta:.2f}{own}\n"
            f"Gap on the validation rows: {gaps}.\n\n{self.table()}"
        )


@public
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
        Their groups, exactly two. If both have the same selection rate, the first one counts as disadvantaged.
    validation : tuple (scores, groups) or (scores, groups, sample_weight)
        Other rows, of both groups.
    cutoff : float, optional
        Cutoff of the classifier's own decisions, `score >= cutoff`. By default 0.5, 50 percent, or 0 for signed
        scores and logits.
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
    _check_scale(scale)
    if not isinstance(validation, tuple) or len(validation) not in (2, 3):
        raise InputError(
            "must be a tuple (scores, groups) or (scores, groups, sample_weight)", argument="validation"
        )
    check_aligned(scores=scores, groups=groups, sample_weight=sample_weight)
    codes = encode_groups(groups)
    check_length("groups", len(codes), len(as_scores(scores)))
    found, rows, sums = _by_group(codes, sample_weight, "scores")
    if len(found) != 2:
        raise InputError(
            "must have two groups for the reject option, got {n}: {found}",
            argument="groups",
            remedy="use fairramp.fit_rule for any number of groups",
            n=len(found),
            found=shown(list(found)),
        )
    own = RejectOption(  # the classifier's own decisions; the other fields are filled in below
        groups=found,
        rows=rows,
        scale=scale,
        group_columns=codes.names,
        cutoff=SCALES[scale].checked_cutoff(cutoff),
        disadvantaged=found[0],
        theta=0.0,
        rate_before=(),
        rate_after=(),
        validation_gap_before=0.0,
        validation_gap=0.0,
    )
    before = sums(own.probabilities(scores, codes)) / sums(1.0)

    other_scores, other_groups, *weights = validation
    other = own._codes(other_groups)
    check_length("groups", len(other), len(as_scores(other_scores)))
    there, _, other_sums = _by_group(other, weights[0] if weights else None, "scores")
    if len(there) < 2:
        raise InputError(
            "must have rows of both groups, got none of group {name!r}",
            argument="validation",
            name=next(label for label in found if label not in there),
        )
    options = [replace(own, theta=theta, disadvantaged=found[int(np.argmin(before))]) for theta in THETAS]
    chances = (option.probabilities(other_scores, other) for option in options)
    gaps = [float(np.ptp(other_sums(chance) / other_sums(1.0))) for chance in chances]
    best = next(i for i, gap in enumerate(gaps) if gap <= min(gaps) + _ROUNDING)
    after = sums(options[best].probabilities(scores, codes)) / sums(1.0)
    return replace(
        options[best],
        rate_before=tuple(before.tolist()),
        rate_after=tuple(after.tolist()),
        validation_gap_before=gaps[0],
        validation_gap=gaps[best],
    )


def _by_group(
    codes: Codes, sample_weight: Any, of: str
) -> tuple[tuple[Label, ...], tuple[int, ...], Callable[[Any], Any]]:
    """Groups with weight, their numbers of rows with weight, and a function for weighted sums over them."""
    weights = np.ones(len(codes)) if sample_weight is None else as_weights(sample_weight, len(codes), of)
    weights = weights / weights.max()  # so that no product of sums overflows
    code = codes.block(0, len(codes))
    rows = np.bincount(code, weights > 0).astype(int)
    there = np.flatnonzero(rows)
    return (
        tuple(codes.labels[i] for i in there),
        tuple(rows[there].tolist()),
        lambda values: np.bincount(code, weights * values)[there],
    )
