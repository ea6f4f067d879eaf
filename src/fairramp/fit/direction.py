"""A warning about scores that contradict their labels, which usually means that their direction was mistaken.

Scores are worse for label 1 if their mean there is worse than for label 0 by more than two standard errors. For
scores that say nothing about the labels, that happens once in 40 times; a plain comparison would warn every other
time. Fewer than ten rows of a label show nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from fairramp.core.scales import Scale
from fairramp.data.labeled import LabeledBins
from fairramp.data.sample import Sample
from fairramp.errors import FairrampWarning, warn

#: Rows that show the direction; of more, every second, third and so on is used.
_ENOUGH = 1 << 14
#: Number of standard errors, and smallest difference compared to the means, which is more than rounding.
_CLEAR, _ROUNDING = 2.0, 1e-9
#: Effective rows of either label below which a standard error means little.
_FEWEST = 10.0
#: How to swap labels in Python.
_SWAP = "swap 0 and 1 in {labels}"
_FOUND = (
    "Scores are {worse} for the favorable outcome ({favorable}): their mean is {yes:.4g} there and {no:.4g} "
    "elsewhere, but {better} scores mean yes."
)


class DirectionWarning(FairrampWarning):
    """Scores are worse for the favorable outcome."""


class Moments(NamedTuple):
    """Mean of the scores with one label, the square of its standard error, and effective rows."""

    mean: float
    squared_error: float
    rows: float

    @classmethod
    def of(cls, weight: float, squares: float, first: float, second: float) -> "Moments":
        """From Σw, Σw², Σw·x and Σw·x²; NaN if there are no rows."""
        weight = weight or np.nan
        mean = first / weight
        rows = weight**2 / (squares or np.nan)
        return cls(float(mean), float(max(second / weight - mean**2, 0.0) / rows), float(rows))


def warn_direction(sample: Sample, *, fitted: bool = False, remedy: str | None = None) -> None:
    """Warn if checked rows with label 1 have worse scores than those with label 0.

    `fitted` says that the direction is that of a rule; a `remedy` replaces the usual advice.
    """
    if sample.labels is not None:
        warn_means(*_moments(sample), sample.scale, fitted=fitted, remedy=remedy)


def direction_doubt(sample: Sample, favorable: str = "label 1") -> str:
    """The same for readers who can change neither labels nor scores; empty if there is no doubt.

    `favorable` is what label 1 is called.
    """
    if sample.labels is None:
        return ""
    means = _moments(sample)
    if not _is_contradicted(*means, sample.scale):
        return ""
    text = _FOUND.format(favorable=favorable, **_found(*means, sample.scale))
    return (
        f"{text} The outcomes or the scores seem to be reversed. Accuracy and error rates are then wrong: "
        "clarify this before you rely on them."
    )


def warn_direction_of_bins(bins: LabeledBins, scale: Scale) -> None:
    """The same for bins, which are treated as rows at their mean score."""
    p = bins.scores.points
    x = scale.shown(p.place)
    yes = np.array([bins.positives, bins.square_positives, bins.positives * x, bins.positives * x * x])
    everyone = np.array([p.weight, p.weight_squares, p.weight * x, p.weight * x * x])
    with np.errstate(all="ignore"):
        warn_means(Moments.of(*yes.sum(axis=1)), Moments.of(*(everyone - yes).sum(axis=1)), scale)


def _moments(sample: Sample) -> tuple[Moments, Moments]:
    """The moments for label 1 and for label 0."""
    labels, weights = sample.labels, sample.weights
    assert labels is not None

    some = slice(None, None, max(len(sample) // _ENOUGH, 1))
    x, y = (column[some].astype(np.float64) for column in (sample.scores, labels))
    w = np.ones(len(x)) if weights is None else weights[some]
    with np.errstate(all="ignore"):  # huge logits or weights: no warning
        # Sums, because products of vectors would start threads.
        parts = np.array([w, w * w, w * x, w * x * x])
        yes = (parts * y).sum(axis=1)
        return Moments.of(*yes), Moments.of(*(parts.sum(axis=1) - yes))


def turning(*, higher_is_better: bool, fitted: bool = False) -> str:
    """What to do if the direction of the scores was mistaken, as a template; `fitted` as in `warn_direction`."""
    verb = ("remove", "pass", "fit the rule without", "fit the rule with")[2 * fitted + higher_is_better]
    which = "lower scores are better (a risk)" if higher_is_better else "higher scores are better"
    return f"If {which}, {verb} {{higher_is_better:False}}"


def warn_means(
    yes: Moments,
    no: Moments,
    scale: Scale,
    *,
    fitted: bool = False,
    swap: str = _SWAP,
    remedy: str | None = None,
    **values: str,
) -> None:
    """Warn if scores are worse for label 1 than for label 0.

    `swap`, with its values, says how to swap labels; a `remedy` replaces all advice.
    """
    if not _is_contradicted(yes, no, scale):
        return
    told = remedy or (
        turning(higher_is_better=scale.higher_is_better, fitted=fitted)
        + ". If label 1 is the unfavorable outcome (a default), "
        + swap
    )
    if swap is _SWAP and remedy is None and scale.name == "probability" and scale.higher_is_better:
        told += ". Did you pass the other class's column of predict_proba(X)?"
    found = {"favorable": "label 1", **_found(yes, no, scale)}
    warn(_FOUND + " " + told, category=DirectionWarning, **found, **values)


def _is_contradicted(yes: Moments, no: Moments, scale: Scale) -> bool:
    """Whether scores are clearly worse for label 1 than for label 0."""
    clear = max(
        _CLEAR * (yes.squared_error + no.squared_error) ** 0.5, _ROUNDING * (abs(yes.mean) + abs(no.mean))
    )
    return min(yes.rows, no.rows) >= _FEWEST and scale.turned(no.mean) - scale.turned(yes.mean) > clear


def _found(yes: Moments, no: Moments, scale: Scale) -> dict[str, Any]:
    """The values of the message."""
    worse, better = ("lower", "higher") if scale.higher_is_better else ("higher", "lower")
    return {"worse": worse, "better": better, "yes": yes.mean, "no": no.mean}
