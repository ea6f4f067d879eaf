"""A warning about only one or two distinct scores.

Two usually are decisions: `predict` instead of `predict_proba`. If all scores are equal, nothing was learned.

A rule can select some of the people with equal scores only at random, which makes a lottery of many decisions.
Audits of decisions are welcome, so they do not warn.
"""

import numpy as np

from fairramp.core.blocks import map_blocks
from fairramp.core.curve import Array, Floats
from fairramp.core.events import SELECTION
from fairramp.core.words import percent
from fairramp.errors import warn
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule

#: In fewer rows, few scores show nothing.
_FEWEST = 30
#: What to do about a classifier with only two scores, and about scores that are all equal.
COARSE = "Use a classifier with finer scores, or calibrate this one"
_ALL_EQUAL = "Pass scores that tell people apart"
#: Digits of mean scores that are not rounding errors.
_DIGITS = 9
#: What usually went wrong.
_PREDICTED = "Did you pass predict() instead of predict_proba()?"
_PREDICTED_CLASSES = "Did you pass predicted classes instead of predict_proba()?"


def warn_few_scores(scores: Array, rule: Rule, remedy: str = _PREDICTED) -> None:
    """Warn if a rule was fitted to only one or two distinct scores."""
    if found := few_scores(scores):
        warn_of(found, rule, remedy)


def few_scores(scores: Array) -> tuple[float, ...] | None:
    """The one or two distinct scores, in order; None if there are more. The first block usually shows more."""
    first = scores[0]
    others = np.flatnonzero(scores[:1000] != first)
    if not len(others):
        others = np.flatnonzero(scores != first)
    if not len(others):
        return (float(first),)
    second = scores[others[0]]

    def only(start: int, stop: int) -> bool:
        block = scores[start:stop]
        return bool(((block == first) | (block == second)).all())

    if not only(0, 1000) or not all(map_blocks(only, len(scores))):
        return None
    low, high = sorted((float(first), float(second)))
    return low, high


def few_means(means: Floats) -> tuple[float, ...] | None:
    """The one or two distinct scores, from the mean score of each bin of each group; None if there are more.

    The means of several groups agree only by accident unless all scores in the bin are equal.
    """
    found = np.unique(means.round(_DIGITS))
    return tuple(found.tolist()) if len(found) < min(3, len(means)) else None


def warn_of(found: tuple[float, ...], rule: Rule, remedy: str = _PREDICTED) -> None:
    """Warn about one or two scores, with the share of decisions that the rule makes at random."""
    assert rule.record is not None  # every fitted rule has one
    rates = rule.record.rates.get(SELECTION.name, rule.record.main)
    warn_only(found, sum(rates.rows), sum(rates.rows_inside) / sum(rates.rows), remedy)


def warn_only(found: tuple[float, ...], n_rows: float, share: float = 0.0, remedy: str = _PREDICTED) -> None:
    """Warn about one or two scores, with the share of decisions made at random if it is known."""
    rule = "There are only two distinct scores, {low:g} and {high:g}{lottery}. " + remedy
    if len(found) == 1:
        rule = "All scores are {low:g}{lottery}. " + _ALL_EQUAL
    if n_rows >= _FEWEST:
        warn(rule, low=found[0], high=found[-1], lottery=_lottery(share))


def warn_certain(rule: ClassRule, remedy: str = _PREDICTED_CLASSES) -> None:
    """Warn that every score of a class is 0 or 1, with the share of decisions that the rule makes at random."""
    record = rule.record
    assert record is not None  # every fitted rule has one
    n = sum(record.rows)
    if n >= _FEWEST:
        share = float(np.dot(record.rows, record.at_random)) / n
        warn("All scores of the classes are 0 or 1{lottery}. " + remedy, lottery=_lottery(share))


def all_certain(values: Floats) -> bool:
    """Whether every score is 0 or 1. The first rows usually show that it is not."""
    return all(bool(((part == 0) | (part == 1)).all()) for part in (values[:1000], values))


def _lottery(share: float) -> str:
    return f", so {percent(share)} of the decisions are made at random" if share else ""
