"""StreamingFit: fit a rule to rows that are read only once.

Each row is one step of the paper's algorithm (`fit.sgd`), and no row is kept. The number of steps T is unknown,
so at step t the learning rate is the published one for a run that ends there,

    α_t = 0.1 √(K/t)        or a fixed one, which follows a population that drifts.

The rule approximates the optimum, and its rates approximate the target. Nothing is exact or certified: check the
rule on new rows.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from fairramp.core.checks import check_length, check_option, checked_whole, checked_width
from fairramp.core.curve import Floats
from fairramp.core.events import SELECTION
from fairramp.core.labels import Label, label_key, refuse_mixed
from fairramp.core.public import public
from fairramp.core.ramps import OFFSETS, Ramp
from fairramp.data.aligned import check_aligned
from fairramp.data.arrays import as_scores
from fairramp.data.columns import Columns
from fairramp.data.groups import check_n_columns, encode_groups
from fairramp.data.probable import refuse_probabilities
from fairramp.data.rows import ArrayRows
from fairramp.errors import FairrampError, InputError, UnsupportedError
from fairramp.fit.few_scores import warn_only
from fairramp.fit.settings import Settings
from fairramp.fit.sgd import ITERATES, DualDescent, checked_learning_rate, published_rate
from fairramp.rule.rule import Rule


@public
class StreamingFit:
    """Fit a rule row by row; new groups may appear at any time.

    Parameters
    ----------
    target_rate : float
        Target selection rate of every group, in [0, 1].
    max_gap, ramp_width, ramp, cutoff, scale, higher_is_better
        As in `fit_rule`; the ramp width must be positive.
    unseen_group : {"error", "original"}, default "error"
        What the rule does with a group that has not appeared.
    learning_rate : float, optional
        A fixed learning rate, in units of signed scores. Defaults to 0.1 √(K/t) at step t.
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
        higher_is_better: bool = True,
        unseen_group: str = "error",
        learning_rate: float | None = None,
        iterate: str = "last",
    ) -> None:
        if isinstance(target_rate, str) or target_rate is None:
            raise InputError(
                "must be a number between 0 and 1 for a stream", argument="target_rate", got=target_rate
            )
        if checked_width(ramp_width) == 0:
            raise InputError(
                "must be above 0 for a stream",
                argument="ramp_width",
                got=0,
                remedy="use fit_rule for a width of 0",
            )
        check_option("unseen_group", unseen_group, ("error", "original"))
        self._settings = Settings(
            max_gap=max_gap,
            ramp_width=ramp_width,
            ramp=ramp,
            target_rate=target_rate,
            cutoff=cutoff,
            scale=scale,
            higher_is_better=higher_is_better,
            unseen_group=unseen_group,
            solver="sgd",
        )
        self._learning_rate = checked_learning_rate(learning_rate)
        self._iterate = check_option("iterate", iterate, ITERATES)
        self._groups: dict[Any, Label] = {}  # by key, in order of appearance
        self._names: tuple[str, ...] | None = None
        self._n_columns: int | None = None
        self._pooled: Ramp | None = None
        self._descent = DualDescent(self._settings.signed(self._settings.problem), 0)
        self._n_rows = 0
        self._seen = np.empty(0)  # up to three distinct scores, to notice decisions passed as scores

    @classmethod
    def from_rule(
        cls, rule: Rule, *, steps: int | None = None, learning_rate: float | None = None, iterate: str = "last"
    ) -> Self:
        """Continue from a rule fitted for parity, with its settings.

        Parameters
        ----------
        rule : Rule
            Must have ramps of positive width. A pooled ramp for unseen groups stays where it is.
        steps : int, optional
            Number of steps that the rule counts as; the larger, the less each row moves it. Defaults to the
            number of fit rows (times epochs for SGD). Required if the rule has no record, such as one from a
            stream.
        learning_rate, iterate
            As for the class.

        Examples
        --------
        >>> import fairramp
        >>> data = fairramp.datasets.load_adult_scores()
        >>> rule = fairramp.fit_rule(data.score[:12000], data.sex[:12000], target_rate=0.2)
        >>> stream = fairramp.StreamingFit.from_rule(rule).partial_fit(data.score[12000:], data.sex[12000:])
        >>> stream.rule().groups
        ('Female', 'Male')
        """
        if not isinstance(rule, Rule):
            raise InputError("must be a fairramp.Rule", argument="rule", got=rule)
        unlike = {
            "strata": rule.stratified,
            "rules by group probabilities or by each attribute": rule.mixes,
            "{min_ratio}": rule.min_ratio is not None,
            "{criterion:" + rule.criterion + "}": rule.event is not SELECTION,
            "constant ramps": any(ramp.is_constant for ramp in [*rule.ramps, rule.pooled or rule.ramps[0]]),
        }
        for what in [what for what, holds in unlike.items() if holds]:
            raise UnsupportedError(
                "must make selection rates equal up to a gap, over all rows",
                argument="rule",
                remedy="a stream does not support " + what,
            )
        assert rule.target_rate is not None
        record, widths = rule.record, {ramp.width for ramp in rule.ramps}
        if record is None and len(widths) > 1:
            raise InputError(
                "must have ramps of equal width", argument="rule", remedy="a stream uses one width for all groups"
            )
        stream = cls(
            target_rate=rule.target_rate,
            max_gap=rule.max_gap or 0.0,
            ramp_width=record.ramp_width if record else widths.pop(),
            ramp=rule.ramp,
            cutoff=rule.cutoff,
            scale=rule.scale,
            higher_is_better=rule.higher_is_better,
            unseen_group="error" if rule.pooled else rule.unseen_group,
            learning_rate=learning_rate,
            iterate=iterate,
        )
        if steps is None:
            if record is None:
                raise InputError(
                    "has no record of its fit: pass {steps}, the number of rows it counts as", argument="rule"
                )
            steps = sum(record.rows) * (1 if record.trace is None else len(record.trace))
        average = np.array([_threshold(rule, ramp) for ramp in rule.ramps])
        last = average
        if record is not None and record.trace is not None:
            last = rule.meaning.turned(np.array(record.trace[-1]))
        stream._names = rule.columns.groups
        stream._pooled = rule.pooled and stream._ramp(_threshold(rule, rule.pooled))
        stream._n_columns = len(stream._names) if stream._names else None
        stream._add_groups(rule.groups)
        stream._descent.resume(stream._signed(last), stream._signed(average), checked_whole("steps", steps))
        return stream

    def partial_fit(self, scores: Any, groups: Any) -> Self:
        """Take one step per row, in row order.

        Parameters
        ----------
        scores : numbers of shape (n,)
            On the scale of the stream, for rows that the classifier was not trained on.
        groups : labels of shape (n,), or several columns
            As in `fit_rule`; the same columns every time.

        Examples
        --------
        >>> import fairramp
        >>> stream = fairramp.StreamingFit(target_rate=0.5)
        >>> stream.partial_fit([0.2, 0.7], ["A", "B"]).partial_fit([0.9], ["C"]).rule().groups
        ('A', 'B', 'C')
        """
        refuse_probabilities(groups, "A stream")
        check_aligned(scores=scores, groups=groups)
        column = as_scores(scores)
        codes = encode_groups(groups, self._names)
        check_length("groups", len(codes), len(column))
        if self._n_columns is not None:
            check_n_columns(codes, self._n_columns, self._names, "groups")
        positions = ArrayRows(column, codes, None, self._settings.meaning).positions(0, len(column))
        came = [codes.labels[i] for i in np.flatnonzero(codes.occurring())]
        refuse_mixed((*self._groups.values(), *came))
        # Nothing can fail below, so a bad row leaves the stream unchanged.
        if self._n_columns is None:
            self._names, self._n_columns = codes.names, codes.n_columns
        self._add_groups(came)
        self._n_rows += len(column)
        if len(self._seen) < 3:
            self._seen = np.unique(np.append(self._seen, column))[:3]
        places = {key: place for place, key in enumerate(self._groups)}
        place_of = [places.get(label_key(label), -1) for label in codes.labels]
        descent, n_groups = self._descent, len(places)
        for score, code in zip(
            self._signed(positions).tolist(), codes.block(0, len(codes)).tolist(), strict=True
        ):
            rate = self._learning_rate or published_rate(n_groups, descent.steps + 1)
            descent.step(score, place_of[code], rate)
        return self

    def _add_groups(self, labels: Sequence[Label]) -> None:
        self._groups |= {label_key(label): label for label in labels}
        self._descent.grow(len(self._groups))

    def _signed(self, positions: Floats) -> Floats:
        """Convert positions to signed scores, with 0 at the cutoff."""
        return (positions - self._settings.problem.cutoff) * self._settings.signed_per_unit

    def _ramp(self, threshold: float) -> Ramp:
        width = self._settings.ramp_width
        return Ramp(threshold - OFFSETS[self._settings.ramp] * width, width)

    @property
    def steps(self) -> int:
        """Number of rows so far, plus the steps of the rule it continued from."""
        return self._descent.steps

    def rule(self) -> Rule:
        """Return the current rule; it has no record, because no rows are kept.

        Examples
        --------
        >>> import fairramp
        >>> rule = fairramp.StreamingFit(target_rate=0.5).partial_fit([0.2, 0.7], ["A", "B"]).rule()
        >>> rule.record is None
        True
        """
        if not self._groups:
            raise FairrampError("No rows yet: call {partial_fit} first")
        if 0 < len(self._seen) < 3:
            warn_only(tuple(self._seen.tolist()), self._n_rows)
        settings = self._settings
        signed = self._descent.iterate(self._iterate)
        positions = settings.problem.cutoff + signed / settings.signed_per_unit
        thresholds = dict(zip(self._groups, positions.tolist(), strict=True))
        return Rule(
            groups=tuple(self._groups[key] for key in sorted(thresholds)),
            ramps=tuple(self._ramp(thresholds[key]) for key in sorted(thresholds)),
            ramp=settings.ramp,
            scale=settings.scale,
            higher_is_better=settings.higher_is_better,
            cutoff=settings.cutoff,  # type: ignore[arg-type]  # checked settings have one
            max_gap=settings.max_gap,
            target_rate=settings.target_rate,  # type: ignore[arg-type]  # a number, for a stream
            unseen_group="pooled" if self._pooled else settings.unseen_group,
            pooled=self._pooled,
            columns=Columns(groups=self._names),
        )


def _threshold(rule: Rule, ramp: Ramp) -> float:
    """The position of a threshold."""
    return ramp.foot + OFFSETS[rule.ramp] * ramp.width
