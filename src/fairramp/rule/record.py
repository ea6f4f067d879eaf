"""FitRecord: what a fit saw and did, in per-group numbers, without any row."""

from dataclasses import dataclass

import numpy as np

from fairramp.core.cells import largest_gap, widest, worst_stratum

__all__ = ["FitRecord"]


@dataclass(frozen=True)
class FitRecord:
    """What the fit saw and did, group by group in the order of the rule's groups.

    Attributes
    ----------
    rows : tuple of int
        Fit rows.
    effective_rows : tuple of float
        Unweighted rows that would estimate the selection rate as precisely.
    rows_above, rows_inside : tuple of int
        Fit rows with a score at or above the ramp's upper end, and strictly between its ends; for a ramp
        of width 0, above the threshold and equal to it.
    rate_before, rate_after : tuple of float
        Selection rate of the classifier's own decisions and of the rule.
    rate_error : tuple of float
        How far `rate_after` can be from the rate of the rows themselves: 0, unless the rule was fitted to
        bins (`fairramp.fit_summary`).
    strata : tuple of int, or None
        Index of each cell's stratum, for rules that equalise within strata.
    target : str or float
        The target rate that was asked for.
    ramp_width : float
        The ramp width that was asked for.
    weighted : bool
        Whether rows had weights.
    cross_fitted : bool
        Whether the scores came from models other than the one that decides; then nothing is certified.
    solver : {"exact", "sgd"}
        How the thresholds were found.
    trace : tuple of tuple of float, or None
        For "sgd", the thresholds of the running iterate after each epoch.
    score_column : str or None
        Name of the score column, where it had one.
    group_columns : tuple of str, or None
        Names of the group columns, where they had any.
    strata_columns : tuple of str, or None
        Names of the strata's columns, where they had any.
    fingerprint : str
        SHA-256 of the number of fit rows per group and part of the score range (256 parts, fewer for
        many small groups): tells samples apart, whatever the order of their rows.
    version : str
        Version of the library.
    date : str or None
        As given by the caller.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> fairramp.fit_rule(data.score, data.sex, max_gap=0.02).record.rows
    (8094, 16327)
    """

    rows: tuple[int, ...]
    effective_rows: tuple[float, ...]
    rows_above: tuple[int, ...]
    rows_inside: tuple[int, ...]
    rate_before: tuple[float, ...]
    rate_after: tuple[float, ...]
    rate_error: tuple[float, ...]
    strata: tuple[int, ...] | None
    target: str | float
    ramp_width: float
    weighted: bool
    cross_fitted: bool
    solver: str
    trace: tuple[tuple[float, ...], ...] | None
    score_column: str | None
    group_columns: tuple[str, ...] | None
    strata_columns: tuple[str, ...] | None
    fingerprint: str
    version: str
    date: str | None

    @property
    def gap_before(self) -> float:
        """Largest difference of two groups' selection rates under the classifier's own decisions.

        For rules that equalise within strata, of two groups of one stratum.
        """
        return largest_gap(self.rate_before, self.strata)

    @property
    def gap_after(self) -> float:
        """Largest difference of two groups' selection rates under the rule, as in `gap_before`.

        For a rule fitted to bins, the largest that it can be: `rate_error` is counted in.
        """
        if not any(self.rate_error):
            return largest_gap(self.rate_after, self.strata)
        rates, errors = np.array(self.rate_after), np.array(self.rate_error)
        return worst_stratum(widest, self.strata, rates - errors, rates + errors)
