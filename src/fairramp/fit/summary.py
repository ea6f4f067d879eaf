"""fit_summary: fit a rule to bins alone, with a bound on the error that binning causes.

A ramp h is linear between its ends and constant outside. A bin of mean m and weight share p therefore contributes
exactly p·h(m) unless an end of the ramp lies inside it. If one does, rows in the bin with that mean contribute
between p·(convex envelope of h over the bin at m) and p·(concave envelope at m). So

    error of a rate ≤ Σ over bins p · max(concave − h, h − convex)(m) ≤ Σ over bins with an end p · d/(4γ)

for bins of width d ≤ γ, and the sum of p otherwise. For γ = 0, a bin that contains the threshold contributes the
largest difference to the probability at its mean. A bin with one score has no error. The classifier's own rates
are exact, because the cutoff is an edge.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Unpack

import numpy as np

from fairramp.core.curve import Floats
from fairramp.core.events import Event
from fairramp.core.points import LabeledPoints, Points, Summary, join_points
from fairramp.core.public import public
from fairramp.core.ramps import Ramp, Ramps, chances
from fairramp.data.bins import GroupScores
from fairramp.data.labeled import LabeledBins
from fairramp.data.rows import BinnedRows
from fairramp.errors import InputError
from fairramp.fit.cells import Cells, FitRows
from fairramp.fit.direction import warn_direction_of_bins
from fairramp.fit.few_scores import few_means, warn_of
from fairramp.fit.fit import fit_rows
from fairramp.fit.keywords import taking_settings
from fairramp.fit.settings import Keywords, Settings, check_settings
from fairramp.fit.targets import by_labels
from fairramp.rule.rule import Rule


@public
@taking_settings("scale", "higher_is_better", "solver", "combine")
def fit_summary(summary: GroupScores, **settings: Unpack[Keywords]) -> Rule:
    """Fit a rule to a summary, without the rows.

    The rule is the optimum for rows located at the means of their bins. A group's rate on the actual rows can
    differ from the computed rate by at most ``rule.record.main.error``, which the certificate includes. Up to
    that error, the rule is the same as that of `fit_rule`. A ``ramp_width`` well above the width of the bins
    keeps the error small; with a width of 0, all rows of a bin that contains a threshold are uncertain. A summary
    with strata gives a rule that equalizes within strata. Error-rate criteria and the targets "accuracy",
    "balanced_accuracy" and "base_rate" require a summary with labels. The cutoff defaults to that of the summary,
    and must be an edge of its bins.

    Parameters
    ----------
    summary : GroupScores
        From `summarize`, `summarize_frame` or `GroupScores.load`, possibly merged.
    {settings}

    Returns
    -------
    Rule

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> north = fairramp.summarize(data.score[::2], data.sex[::2])
    >>> south = fairramp.summarize(data.score[1::2], data.sex[1::2])
    >>> rule = fairramp.fit_summary(north.merge(south), max_gap=0.02)
    >>> round(rule.record.gap_before, 3), round(rule.record.gap_after, 3)
    (0.168, 0.02)
    """
    check_settings(fit_summary, settings)
    if not isinstance(summary, GroupScores):
        raise InputError(
            "must be a fairramp.GroupScores, got {kind}",
            argument="summary",
            remedy="make one with fairramp.summarize",
            kind=type(summary).__name__,
        )
    cutoff = settings.get("cutoff")
    own = {
        "scale": summary.scale,
        "higher_is_better": summary.higher_is_better,
        "cutoff": summary.cutoff if cutoff is None else cutoff,
    }
    asked = Settings.of(fit_summary, settings, fixed=own)
    asked.check_rows(
        labeled=summary.labeled,
        stratified=summary.stratified,
        weighted=summary.weighted,
        needed="labels, which this summary does not have; summarize with labels, or use 'optimal' or a number",
    )
    if not summary.grid.has_edge(asked.problem.cutoff):
        raise InputError(
            "must be an edge of the summary's bins",
            argument="cutoff",
            got=cutoff,
            remedy="to make it one, summarize with cutoff={cut!r}",
            cut=cutoff,
        )
    by_label = _by_label(summary.summary) if asked.event.needs_labels else None
    rule = fit_rows(
        FitRows(BinnedRows(summary.summary), None if by_label is None else BinnedRows(by_label)),
        asked,
        summary.columns,
        stratified=summary.stratified,
        weighted=summary.weighted,
        errors=lambda event, ramps: rate_errors(_of_event(summary.summary, by_label, event), ramps),
        **by_labels(asked, lambda: LabeledBins.of_group_scores(summary)),
    )
    if summary.labeled:
        warn_direction_of_bins(LabeledBins.of_group_scores(summary), asked.meaning)
    if found := few_means(asked.meaning.shown(summary.summary.points.place)):
        warn_of(found, rule)
    return rule


def _by_label(summary: Summary) -> Summary:
    """The bins of a summary with labels, in cells (group, 0) and (group, 1); their means are not known."""
    p = summary.points
    assert isinstance(p, LabeledPoints)
    positive = p.positive_rows, p.positives, p.square_positives
    negative = p.rows - p.positive_rows, p.weight - p.positives, p.weight_squares - p.square_positives
    parts = [
        replace(
            p.unlabeled, group=2 * p.group + y, rows=rows, weight=weight, weight_squares=squares, averaged=p.exact
        ).take(rows > 0)
        for y, (rows, weight, squares) in enumerate((negative, positive))
    ]
    labels = tuple((label, y) for label in summary.labels for y in (0, 1))
    return Summary.of_occurring(labels, join_points(parts))


def _of_event(summary: Summary, by_label: Summary | None, event: Event) -> Summary:
    """The bins of an event's rows."""
    if by_label is None or event.label is None:
        return summary
    return Cells.of(summary.labels, by_label.labels, event).of_event(by_label)


def rate_errors(summary: Summary, ramps: Sequence[Ramp]) -> Floats:
    """Largest possible difference between a group's selection rate on its rows and on the means of its bins."""
    p, arrays = summary.points, Ramps.of(ramps)
    foot, width, tie = (np.broadcast_to(numbers, len(ramps))[p.group] for numbers in arrays)
    off = np.where(width > 0, _off_ramp(p, foot, width), _off_step(p, foot, tie))
    return np.minimum(summary.total(p.weight / summary.weights[p.group] * off), 1.0)


def _off_ramp(p: Points, foot: Floats, width: Floats) -> Floats:
    """Largest difference between a bin's mean probability and the probability at its mean, for positive widths.

    Envelopes of a function with two kinks follow chords between the ends of the bin and the kinks in it.
    """
    off = np.zeros(len(p))
    kinks = [(p.lower < end) & (end < p.upper) for end in (foot, foot + width)]
    unknown = ~p.averaged & (p.upper > foot) & (p.lower < foot + width)  # the mean may be anywhere in the bin
    which = np.flatnonzero(kinks[0] | kinks[1] | unknown)
    lower, upper, place, foot, width = p.lower[which], p.upper[which], p.place[which], foot[which], width[which]

    def chance(x: Floats) -> Floats:
        return chances(x, foot, width, 0.0)

    at_mean = chance(place)
    off[which] = unknown[which] * np.maximum(chance(upper) - at_mean, at_mean - chance(lower))
    corners = [lower, np.clip(foot, lower, upper), np.clip(foot + width, lower, upper), upper]
    for start, stop in combinations(corners, 2):
        spans = (start <= place) & (place <= stop) & (start < stop)
        up = (place - start) / np.where(spans, stop - start, 1.0)
        chord = chance(start) + up * (chance(stop) - chance(start))
        off[which] = np.maximum(off[which], np.where(spans, np.abs(chord - at_mean), 0.0))
    return off


def _off_step(p: Points, threshold: Floats, tie: Floats) -> Floats:
    """The same for ramps of width 0: rows of a bin may be below, at or above a threshold inside it."""
    at_mean = np.where(p.place == threshold, tie, p.place > threshold)
    holds = (p.lower <= threshold) & (threshold < p.upper)
    off = np.maximum(np.abs(tie - at_mean), 1.0 - at_mean)
    off = np.maximum(off, np.where(p.lower < threshold, at_mean, 0.0))
    return np.where(holds, off, 0.0)
