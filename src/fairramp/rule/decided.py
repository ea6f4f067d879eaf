"""A warning about new scores that were already decided, so that the rule has nothing left to do.

    all of them are 0 or 1       probably `predict` instead of `predict_proba`
    all but a few of them are    probably a rule's probabilities, to which it would be applied again

Some classifiers have such scores, but then the fit rows had them, too. If one group had fit rows above, inside
and below its ramp, there were more than two scores. And of a rule's probabilities, those between 0 and 1 are as
rare as fit rows inside the ramps. The first rows usually show that all is well, so there is no extra pass. For
rules that mix thresholds, pass no record: each person has a ramp, which tells nothing.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import numpy as np

from fairramp.core.curve import Array
from fairramp.core.words import percent
from fairramp.errors import warn
from fairramp.rule.record import FitRecord, Rates

#: In fewer rows, such scores show nothing; and rows that are looked at first.
_FEWEST, FIRST = 30, 1 << 12
#: Largest share of a rule's probabilities between 0 and 1, alone and as a multiple of what the fit expects.
_BETWEEN, _MULTIPLE = 0.1, 2.0
#: Whether no warning is due.
_unquestioned: ContextVar[bool] = ContextVar("unquestioned", default=False)


@contextlib.contextmanager
def unquestioned() -> Iterator[None]:
    """Warn about no scores: the caller made them itself, or has already warned."""
    token = _unquestioned.set(True)
    try:
        yield
    finally:
        _unquestioned.reset(token)


def warn_decided(scores: Array, record: FitRecord | None) -> None:
    """Warn if checked scores are decisions or a rule's probabilities, but the fit rows were neither."""
    starts = range(0, len(scores), FIRST)
    warn_first(scores[:FIRST], lambda: sum(_others(scores[i : i + FIRST]) for i in starts) / len(scores), record)


def warn_first(first: Array, find_share: Callable[[], float], record: FitRecord | None) -> None:
    """The same for the first scores of a table; `find_share` computes the share of all that are not 0 or 1."""
    between = _others(first) / len(first) if len(first) >= _FEWEST else 1.0
    if _unquestioned.get() or between > _BETWEEN or record is None:
        return
    if not _had_finer_scores(rates := record.rates["selection"]):
        return
    if not (share := find_share()):
        warn(
            "All scores are 0 or 1, but this rule was fitted on more than two values, so it cannot make rates "
            "equal. Did you pass predict() instead of predict_proba()?"
        )
    elif share <= _MULTIPLE * sum(rates.rows_inside) / sum(rates.rows):
        warn(
            "{share} of the scores are exactly 0 or 1: these look like a rule's probabilities, to which the rule "
            "is applied again. Pass the classifier's own scores; for a RandomizedThresholdOptimizer, these are "
            "the favorable class's column of model.estimator_.predict_proba(X), which model.audit uses",
            share=percent(1 - share),
        )


def _others(block: Array) -> int:
    """Number of scores that are neither 0 nor 1."""
    return int(np.count_nonzero((block != 0) & (block != 1)))


def _had_finer_scores(rates: Rates) -> bool:
    """Whether the fit rows certainly had more than two distinct scores."""
    groups = zip(rates.rows, rates.rows_above, rates.rows_inside, strict=True)
    return any(above and inside and above + inside < rows for rows, above, inside in groups)
