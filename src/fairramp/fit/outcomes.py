"""Scores with labels: calibration, and the rates that it chooses.

For each group and score, labels add only Σw and Σw·y to a summary. From these, the isotonic regression

    m = argmin Σ w (m(x) − y)²   over non-decreasing functions m of the score

is the best estimate of P(y = 1 | score) that preserves the order of the scores. It determines rates
(`target_rate="accuracy"`) and measures calibration; none of it is stored in a rule. In a small group it would fit
noise; there `recalibrate` determines the rates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from fairramp.core.bands import Band
from fairramp.core.cells import strata_slices
from fairramp.core.curve import Floats, Integers
from fairramp.core.events import FALSE_POSITIVE, SELECTION, Event
from fairramp.core.points import Summary, join_points
from fairramp.core.scales import Scale
from fairramp.data.labeled import LabeledBins
from fairramp.data.sample import Sample
from fairramp.errors import InputError
from fairramp.fit.gains import Costs, GainCurves, RampGains, weight_of
from fairramp.fit.problem import Problem
from fairramp.fit.recalibrate import LINE_BELOW, effective_rows, line_levels

#: Number of stricter bands whose rates are compared.
_STRICTER = 20
#: Names of equal decisions for everyone, and their rates.
_CONSTANT: dict[str | Band, float] = {"nobody": 0.0, "everybody": 1.0}


@dataclass(frozen=True)
class LabeledScores:
    """Scores of each group with their labels, as exact points or bins; see `data.labeled`.

    Attributes
    ----------
    scores : Summary
        The points.
    positives : floats, one per point
        Σ w·y of the rows.
    scale : Scale
        Scale of the scores.
    ordered_only : bool
        Whether only the order of the scores is meaningful, whatever their scale; then small groups are not
        calibrated by a line.
    """

    scores: Summary
    positives: Floats
    scale: Scale
    ordered_only: bool = False

    @classmethod
    def of_bins(cls, bins: LabeledBins, scale: Scale, *, ordered_only: bool = False) -> Self:
        """The same numbers, with their scale."""
        return cls(bins.scores, bins.positives, scale, ordered_only)

    @classmethod
    def of(cls, sample: Sample) -> Self:
        """Summarize rows with outcomes."""
        if sample.labels is None:
            raise InputError("must be numbers, got None", argument="labels")
        return cls.of_bins(LabeledBins.of_arrays(sample.rows, sample.labels), sample.scale)

    @cached_property
    def levels(self) -> Floats:
        """Values of m at the points."""
        from scipy.optimize import isotonic_regression

        p, ends = self.scores.points, np.cumsum(self.scores.sizes)[:-1]
        groups = zip(np.split(self.positives / p.weight, ends), np.split(p.weight, ends), strict=True)
        return np.concatenate([isotonic_regression(shares, weights=weight).x for shares, weight in groups])

    @cached_property
    def calibrated(self) -> Summary:
        """The same rows at calibrated scores: by a line in small groups, by isotonic regression in others."""
        small = (effective_rows(self.scores) < LINE_BELOW) & (not (self.ordered_only or self.scale.only_ordered))
        at = self.levels if not small.all() else np.empty(len(self.scores.points))
        if small.any():
            lines = line_levels(self.scores, self.positives, self.scale)
            at = np.where(small[self.scores.points.group], lines, at)
        points = replace(self.scores.points, place=at, lower=at, upper=at)
        return Summary(self.scores.labels, join_points([points]))

    def by_label(self) -> tuple[Summary, Summary]:
        """The rows with label 0, and those with label 1; every group has both."""
        p = self.scores.points
        weights = weight_of(FALSE_POSITIVE, p.weight, self.positives), self.positives
        no, yes = (Summary(self.scores.labels, replace(p, weight=weight).take(weight > 0)) for weight in weights)
        return no, yes

    def best_rates(
        self, problem: Problem, costs: Costs, event: Event = SELECTION, strata: Integers | None = None
    ) -> Floats:
        """Each group's rate under the decisions of least cost in the band that do not decrease with the score.

        A group's decisions depend only on its rate and the order of its scores, so calibrating each group's
        scores can only change the rates; the rule then selects by the raw scores. The calibrated scores choose
        one set of rates for the band and one for each of several stricter ones. Of these, and of selecting nobody
        or everybody, those rates win whose ramps cost least on the points themselves. In small groups, rates that
        a line calibrates may cost more on the fit rows than the best thresholds there, which fit their noise;
        this is intended.
        """
        rates: Floats = self.best_rates_each([problem.band], problem, costs, event, strata)[0]
        return rates

    def best_rates_each(
        self,
        bands: Sequence[Band],
        problem: Problem,
        costs: Costs,
        event: Event = SELECTION,
        strata: Integers | None = None,
    ) -> Floats:
        """`best_rates` for several bands, of shape (m, K)."""
        curves = GainCurves(self.calibrated, costs, event, strata)
        weight = self.scores.points.weight
        gains = costs.gains(weight, self.positives)
        shares = [j / _STRICTER for j in range(_STRICTER + 1)]
        tried = [[band.stricter(share) for share in shares] if band.is_open else [band] for band in bands]
        rates: dict[str | Band, Floats] = {
            band: curves.best_rates(band) for band in {band for stricter in tried for band in stricter}
        }
        # Nobody and everybody are always allowed.
        rates |= {name: np.full(len(self.scores.labels), rate) for name, rate in _CONSTANT.items()}
        ramps = RampGains(self.scores, weight_of(event, weight, self.positives), gains, problem)
        values = dict(zip(rates, ramps.at(np.array(list(rates.values()))), strict=True))
        best: Floats = np.empty((len(bands), len(self.scores.labels)))
        for i, stricter in enumerate(tried):
            for part in strata_slices(strata, best.shape[1]):
                # Of equal gains, the loosest band's.
                best_of = max([*reversed(stricter), *_CONSTANT], key=lambda name: values[name][part].sum())
                best[i, part] = rates[best_of][part]
        return best

    def checked_costs(self, target: str, costs: tuple[float, float] | None) -> Costs:
        """The costs to minimize for a target: those given, or those of balanced accuracy."""
        if target != "balanced_accuracy":
            # Only the ratio matters; huge and tiny numbers would overflow or underflow.
            most = max(costs) if costs else 1.0
            return Costs(*(cost / most for cost in costs or (1.0, 1.0)))
        share = float(self.positives.sum() / self.scores.points.weight.sum())
        if not 0 < share < 1:
            raise InputError("{target_rate:balanced_accuracy} requires rows with label 0 and rows with label 1")
        return Costs(share, 1 - share)
