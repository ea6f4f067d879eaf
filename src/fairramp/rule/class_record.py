"""ClassRecord: a description of a fit with several classes, in per-group numbers, without any row."""

from dataclasses import dataclass

import numpy as np

from fairramp.core.cells import worst_stratum
from fairramp.core.curve import Booleans, Floats
from fairramp.data.documents import Count, Nonnegative, Share
from fairramp.errors import InputError


@dataclass(frozen=True)
class ClassRecord:
    """Description of a fit with several classes, group by group in the order of the rule's groups.

    Attributes
    ----------
    rows : tuple of int
        Fit rows; for a rule that uses group probabilities, expected ones, rounded.
    before, after : tuple of tuple of float
        For each group, the rate of every class under the classifier's own decisions, and under the rule.
    at_random : tuple of float
        Share of each group's weight that is decided at random.
    strata : tuple of int, or None
        Index of each group's stratum, for rules that equalize within strata.
    ramp_width : float
        The requested ramp width.
    weighted : bool
        Whether rows had weights.
    cross_fitted : bool
        Whether the scores came from models other than the one that decides.
    fingerprint : str
        SHA-256 of the number of fit rows and of rounded sums of their scores; identifies the sample, regardless
        of row order.
    version : str
        Version of fairramp.
    date : str or None
        As passed by the caller.

    Examples
    --------
    >>> import fairramp
    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]] * 20
    >>> fairramp.fit_class_rule(p * 2, ["A", "B"] * 40, max_gap=1).record.rows
    (40, 40)
    """

    rows: tuple[Count, ...]
    before: tuple[tuple[Share, ...], ...]
    after: tuple[tuple[Share, ...], ...]
    at_random: tuple[Share, ...]
    strata: tuple[Count, ...] | None
    ramp_width: Nonnegative
    weighted: bool
    cross_fitted: bool
    fingerprint: str
    version: str
    date: str | None = None

    def __post_init__(self) -> None:
        lists = [self.rows, self.before, self.after, self.at_random, *([self.strata] if self.strata else [])]
        if len({len(values) for values in lists}) > 1:
            raise InputError("The lists of the record have different lengths")
        if len({len(rates) for rates in (*self.before, *self.after)}) > 1:
            raise InputError('"before" and "after" of the record must have one rate per class')

    def gaps(self, when: str, keep: Booleans | None = None) -> Floats:
        """The gap of each class "before" or "after", between all groups or those to keep.

        With strata, the largest gap within a stratum.

        Examples
        --------
        >>> import fairramp
        >>> hours = fairramp.datasets.load_adult_hours()
        >>> rule = fairramp.fit_class_rule(hours.probabilities, hours.sex, classes=hours.classes)
        >>> rule.record.gaps("before").round(3)
        array([0.205, 0.024, 0.229])
        """
        chosen = np.ones(len(self.rows), dtype=bool) if keep is None else keep
        rates, strata = np.array(getattr(self, when))[chosen], self.strata and np.array(self.strata)[chosen]
        return np.array([worst_stratum(np.ptp, strata, rates[:, c]) for c in range(rates.shape[1])])

    @property
    def gap_before(self) -> float:
        """Largest gap of a class under the classifier's own decisions."""
        return float(self.gaps("before").max())

    @property
    def gap_after(self) -> float:
        """Largest gap of a class under the rule."""
        return float(self.gaps("after").max())
