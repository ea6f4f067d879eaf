"""Targets that depend on labels, from bins instead of rows."""

from collections.abc import Callable
from typing import TypedDict

from fairramp.data.labeled import LabeledBins
from fairramp.fit.outcomes import LabeledScores
from fairramp.fit.problem import Fixed, Level
from fairramp.fit.settings import Settings


class FromLabels(TypedDict, total=False):
    """What a fit needs to know about the labels, as keywords of `fit_rows`."""

    level: Level
    labeled: LabeledScores


def by_labels(settings: Settings, bins: Callable[[], LabeledBins], *, ordered_only: bool = False) -> FromLabels:
    """What the target of the settings needs; `bins` are read only if it depends on labels.

    With `ordered_only`, only the order of the scores is meaningful.
    """
    if settings.by_labels:  # the labels choose each group's rate
        return {"labeled": LabeledScores.of_bins(bins(), settings.meaning, ordered_only=ordered_only)}
    if settings.target_rate == "base_rate":
        found = bins()
        return {"level": Fixed(float(found.positives.sum() / found.scores.points.weight.sum()))}
    return {}
