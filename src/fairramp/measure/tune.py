"""Choose ramp width and target rate on validation rows, as in the paper.

For each ramp width and target rate ρ in a grid, a rule is fitted on the fit rows and scored on the validation
rows; the best rule is kept. The paper's grid is .005, .01, .025, .05, .1 for the width (half its γ, which is for
signed scores) and ρ = E[y] + {−.1, −.05, 0, .05, .1}, clipped to (0, 1). `target_rate="accuracy"` finds better
rates without a grid; use this module to compare with the paper, or to optimize something other than accuracy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from fairramp.core.checks import check_keywords
from fairramp.core.curve import Floats
from fairramp.core.public import public
from fairramp.core.table import Table
from fairramp.data.aligned import check_aligned
from fairramp.data.arrays import as_labels, as_weights, split_validation
from fairramp.data.probable import refuse_probabilities
from fairramp.data.sample import Sample
from fairramp.errors import InputError, UnsupportedError
from fairramp.fit.fit import fit_rule
from fairramp.fit.settings import Settings, checked_costs
from fairramp.measure.means import tally_rows
from fairramp.rule.rule import Rule

RAMP_WIDTHS = (0.005, 0.01, 0.025, 0.05, 0.1)
RATE_STEPS = (-0.1, -0.05, 0.0, 0.05, 0.1)

Scorer = Callable[..., float]


@dataclass(frozen=True, repr=False)
class Tuned:
    """Result of `tune`: the best rule of a grid, and the grid.

    Attributes
    ----------
    rule : Rule
        The rule with the highest validation score; the first one if there are ties.
    score : float
        The validation score of that rule.
    grid : Table
        All ramp widths and target rates, with their validation scores.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> rows = data.score, data.sex, data.label
    >>> fairramp.tune(*rows, validation=rows, ramp_widths=[0.01], target_rates=[0.1, 0.2]).rule.target_rate
    0.2
    """

    rule: Rule
    score: float
    grid: Table

    def __repr__(self) -> str:
        return f"Best validation score: {self.score:.4f}\n\n{self.rule}\n\nAll settings:\n\n{self.grid}"


def expected_accuracy(
    labels: npt.NDArray[np.float64], chances: npt.NDArray[np.float64], sample_weight: npt.NDArray[np.float64]
) -> float:
    """Accuracy in expectation over random draws."""
    return float(np.average(np.where(labels == 1, chances, 1 - chances), weights=sample_weight))


def _negative_cost(costs: tuple[float, float], labels: Floats, chances: Floats, sample_weight: Floats) -> float:
    """The expected cost of a row, negative so that higher is better."""
    paid = np.where(labels == 1, (1 - chances) * costs[1], chances * costs[0])
    return -float(np.average(paid, weights=sample_weight))


@public
def tune(
    scores: Any,
    groups: Any,
    labels: Any,
    *,
    validation: tuple[Any, ...],
    ramp_widths: Sequence[float] = RAMP_WIDTHS,
    target_rates: Sequence[float | str] | None = None,
    scorer: Scorer | None = None,
    sample_weight: Any = None,
    costs: tuple[float, float] | None = None,
    **options: Any,
) -> Tuned:
    """Choose ramp width and target rate on validation rows.

    Parameters
    ----------
    scores, groups, labels
        Fit rows, as for `fit_rule`.
    validation : tuple (scores, groups, labels) or (scores, groups, labels, sample_weight)
        Rows on which to compare the rules.
    ramp_widths : sequence of float
        Ramp widths to try.
    target_rates : sequence of float or str, optional
        Target rates to try; by default the share of positive labels, and 0.05 and 0.1 above and below it. For a
        `criterion` other than "parity", by default around the rate of that criterion in the classifier's own
        decisions, over all groups; for "equalized_odds", where labels choose the rates, by default "accuracy".
        With `overall_rate`, only ramp widths are tried.
    scorer : callable
        ``scorer(labels, probabilities, sample_weight)``, higher is better; by default the expected accuracy or,
        with `costs`, the negative expected cost of a row.
    sample_weight : optional
        Weights of the fit rows.
    costs : tuple of two floats, optional
        Cost of a false positive and of a false negative.
    **options
        Other arguments of `fit_rule`, such as `max_gap`, except `strata`: strata find their own rates.

    Examples
    --------
    >>> import fairramp
    >>> d = fairramp.datasets.load_adult_scores()
    >>> fit, other = slice(0, 12000), slice(12000, None)
    >>> tuned = fairramp.tune(
    ...     d.score[fit], d.sex[fit], d.label[fit], validation=(d.score[other], d.sex[other], d.label[other])
    ... )
    >>> len(tuned.grid), round(tuned.score, 2)
    (25, 0.84)
    """
    refuse_probabilities(groups, "Tuning")
    check_keywords("tune", options, [*signature(tune).parameters, *signature(fit_rule).parameters])
    if options.get("combine") == "each":
        raise UnsupportedError("Tuning does not support {combine:each}", remedy="use fit_rule")
    paid = None if costs is None else checked_costs(costs)
    if scorer is None:
        scorer = expected_accuracy if paid is None else partial(_negative_cost, paid)
    other_scores, other_groups, other_labels, other_weights = split_validation(validation)
    if options.get("strata") is not None:
        raise InputError(
            "cannot be tuned, because each stratum finds its own rate", argument="strata", remedy="use fit_rule"
        )
    if not len(ramp_widths):
        raise InputError("is empty", argument="ramp_widths", remedy="pass at least one width")
    check_aligned(scores=scores, labels=labels, sample_weight=sample_weight)
    weights = None if sample_weight is None else as_weights(sample_weight, len(labels))
    budget = options.get("overall_rate") is not None
    if target_rates is None and not budget:
        target_rates = _default_rates(scores, groups, labels, weights, options)
    check_aligned(scores=other_scores, labels=other_labels, sample_weight=other_weights)
    truth = as_labels(other_labels, len(other_labels))
    other_weights = np.ones(len(truth)) if other_weights is None else as_weights(other_weights, len(truth))

    grid = list(product(ramp_widths, [None] if target_rates is None else target_rates))
    rules = [
        fit_rule(
            scores,
            groups,
            labels,
            ramp_width=width,
            target_rate=target,
            costs=paid if target == "accuracy" else None,
            sample_weight=weights,
            **options,
        )
        for width, target in grid
    ]
    found = [
        float(scorer(truth, rule.probabilities(other_scores, other_groups), other_weights)) for rule in rules
    ]
    if not np.isfinite(found).all():
        raise InputError("must return finite numbers", argument="scorer")
    best = int(np.argmax(found))
    return Tuned(
        rules[best],
        found[best],
        Table(
            {
                "ramp_width": [float(width) for width, _ in grid],
                **({} if target_rates is None else {"target_rate": [target for _, target in grid]}),
                "score": found,
            },
            shares=["target_rate"],
        ),
    )


def _default_rates(
    scores: Any, groups: Any, labels: Any, weights: Floats | None, options: dict[str, Any]
) -> Sequence[float | str]:
    """The target rates to try: around one rate; for equalized odds, which has two, those that labels choose."""
    names = ("criterion", "cutoff", "scale", "higher_is_better")
    asked = Settings(**{name: options[name] for name in names if name in options})
    if asked.event.parts:
        return ["accuracy"]
    base = _middle_rate(asked, scores, groups, labels, weights)
    return sorted({min(max(base + step, 0.001), 0.999) for step in RATE_STEPS})


def _middle_rate(asked: Settings, scores: Any, groups: Any, labels: Any, weights: Floats | None) -> float:
    """The rate that the default target rates are around: the base rate or, for error rates, the classifier's."""
    if asked.event.label is None:
        return float(np.average(as_labels(labels, len(labels)), weights=weights))
    sample = Sample.of_arrays(scores, groups, labels, scale=asked.meaning, sample_weight=weights)
    own = tally_rows(sample, cutoff=asked.problem.cutoff).own
    yes, no = (float(part[asked.event.label].sum()) for part in (own.yes, own.no))
    if yes + no == 0:
        return 0.5  # the fit says that rows are missing
    return yes / (yes + no)
