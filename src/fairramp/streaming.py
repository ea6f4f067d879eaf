"""StreamingFit: a rule from rows that pass by once.

Each row is one step of the paper's algorithm (`criteria.sgd`), and none is kept. The number of steps T is not
known beforehand, so that at step t the learning rate is the published one of a run that ends there,

    α_t = 0.1 √(K/t)        or a fixed one, which follows a population that drifts.

The rule comes near the optimum and its rates near the target; what is exact about a fit of rows that are there
is not exact here, and nothing is certified: check the rule on rows it has not seen.
"""

from typing import Any, Self

import numpy as np

from fairramp.criteria.sgd import ITERATES, DualDescent, checked_learning_rate, published_rate
from fairramp.exceptions import FairrampError, InputError
from fairramp.fitting import Request
from fairramp.groups import Label, encode_groups, label_key
from fairramp.inputs import as_scores, check_length, check_option
from fairramp.rows import ArrayRows
from fairramp.rule import Ramp, Rule

__all__ = ["StreamingFit"]


class StreamingFit:
    """Learn a rule row by row; groups may turn up at any time.

    Parameters
    ----------
    target_rate : float
        Every group's selection rate, a number in [0, 1].
    max_gap, ramp_width, ramp, cutoff, scale
        As in `fit_rule`; the ramp must be wider than 0.
    unseen_group : {"error", "original"}, default "error"
        What the rule does with a group that has not turned up.
    learning_rate : float, optional
        A fixed one, in units of signed scores; 0.1 √(K/t) at step t if None.
    iterate : {"last", "average"}, default "last"
        Which iterate becomes the rule.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> stream = fairramp.StreamingFit(target_rate=0.2, ramp_width=0.05)
    >>> for start in range(0, len(data.score), 1000):
    ...     stream = stream.partial_fit(data.score[start : start + 1000], data.sex[start : start + 1000])
    >>> bool(fairramp.audit(data.score, data.sex, rule=stream.rule()).gap < 0.03)
    True
    """

    def __init__(
        self,
        *,
        target_rate: Any,
        max_gap: float = 0.0,
        ramp_width: float = 0.01,
        ramp: str = "centered",
        cutoff: float | None = None,
        scale: str = "probability",
        unseen_group: str = "error",
        learning_rate: float | None = None,
        iterate: str = "last",
    ) -> None:
        if isinstance(target_rate, str):
            raise InputError(f"`target_rate` must be a number in [0, 1] for a stream, got {target_rate!r}.")
        check_option("unseen_group", unseen_group, ("error", "original"))
        self._request = Request.checked(
            max_gap=max_gap,
            ramp_width=ramp_width,
            ramp=ramp,
            target_rate=target_rate,
            cutoff=cutoff,
            scale=scale,
            unseen_group=unseen_group,
            solver="sgd",
        )
        self._learning_rate = checked_learning_rate(learning_rate)
        self._iterate = check_option("iterate", iterate, ITERATES)
        self._labels: list[Label] = []
        self._places: dict[Any, int] = {}
        self._descent = DualDescent(self._request.signed_problem, 0)

    @classmethod
    def from_rule(cls, rule: Rule, *, learning_rate: float | None = None, iterate: str = "last") -> Self:
        """Go on from a rule for parity, with its settings, as after one step per row of its fit.

        A rule fitted by SGD counts the rows of all its epochs.
        """
        if rule.target_rate is None:
            raise InputError("`rule` must equalise over all rows; a stream cannot go on within strata.")
        stream = cls(
            target_rate=rule.target_rate,
            max_gap=rule.max_gap,
            ramp_width=rule.ramp_width,
            ramp=rule.ramp,
            cutoff=rule.cutoff,
            scale=rule.scale,
            unseen_group="error" if rule.unseen_group == "pooled" else rule.unseen_group,
            learning_rate=learning_rate,
            iterate=iterate,
        )
        steps = 0
        if rule.record is not None:
            steps = sum(rule.record.rows) * (1 if rule.record.trace is None else len(rule.record.trace))
        request = stream._request
        thresholds = np.array([ramp.threshold for ramp in rule.ramps])
        stream._codes(rule.groups)
        stream._descent.start((thresholds - request.problem.cutoff) * request.signed_per_unit, steps)
        return stream

    def partial_fit(self, scores: Any, groups: Any) -> Self:
        """Take one step per row, in the order of the rows.

        Parameters
        ----------
        scores : numbers of shape (n,)
            On the scale that was given; rows that the classifier was not trained on.
        groups : labels of shape (n,), or several columns
            As in `fit_rule`.
        """
        column = as_scores(scores)
        codes = encode_groups(groups)
        check_length("groups", len(codes), len(column))
        request = self._request
        positions = ArrayRows(column, codes, None, request.scale).positions(0, len(column))
        signed = (positions - request.problem.cutoff) * request.signed_per_unit
        places = self._codes([codes.labels[i] for i in np.flatnonzero(codes.occurring())])
        group_of = [places.get(label_key(label), -1) for label in codes.labels]
        descent, n_groups = self._descent, len(self._labels)
        for score, code in zip(signed.tolist(), codes.block(0, len(codes)).tolist(), strict=True):
            rate = self._learning_rate or published_rate(n_groups, descent.steps + 1)
            descent.step(score, group_of[code], rate)
        return self

    def _codes(self, labels: Any) -> dict[Any, int]:
        """Places of all groups so far, new ones added."""
        for label in labels:
            if label_key(label) not in self._places:
                self._places[label_key(label)] = len(self._labels)
                self._labels.append(label)
        self._descent.grow(len(self._labels))
        return self._places

    @property
    def steps(self) -> int:
        """Rows so far."""
        return self._descent.steps

    def rule(self) -> Rule:
        """The rule as it stands; it has no record, because no rows are kept."""
        if not self._labels:
            raise FairrampError("No row has come yet: call `partial_fit` first.")
        request, descent = self._request, self._descent
        signed = descent.last if self._iterate == "last" else descent.average
        thresholds = request.problem.cutoff + signed / request.signed_per_unit
        order = sorted(range(len(self._labels)), key=lambda i: label_key(self._labels[i]))
        return Rule(
            groups=tuple(self._labels[i] for i in order),
            ramps=tuple(Ramp(float(thresholds[i])) for i in order),
            ramp_width=request.problem.ramp_width,
            ramp=request.ramp,
            scale=request.scale.name,
            cutoff=request.cutoff,
            max_gap=request.problem.max_gap,
            target_rate=request.problem.target_rate,
            unseen_group=request.unseen_group,
        )
