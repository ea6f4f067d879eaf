"""A hidden split: where hard decisions are unequal even if every known group is equal.

For decisions h in {0, 1} and the probability q(x) = P(S = 1 | x) of being in a sensitive group, put on one side
the rows whose decision goes along with their membership, on the other the rest:

    W = {(q − q̄)(h − β) > 0}, any 0 < β < 1:     q > q̄ and h = 1,  or  q < q̄ and h = 0

Within W, h and q rise together; outside, they fall together. The mean over both sides, by their weight, has

    P(W) |Cov(h, q | W)| + P(W̄) |Cov(h, q | W̄)|  ≥  ½ E|q − q̄| · min{E h, 1 − E h}

so that no hard decisions but constant ones are unbiased in every part of the rows, unless q is constant. That is
why groups have to be named before they can be made equal. Reference: Alabdulmohsin and Lucic 2021, Appendix D.2.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairramp.core.curve import Floats
from fairramp.core.table import Table, wrapped
from fairramp.measure.bounds import impossibility_bound, split_rows

#: A membership this close to its mean is at it: the mean is rounded. Either side would do for such a row.
_AT_MEAN = 1e-12
#: Names of the sides, for False and True.
_NAMES = ("against", "along")


@dataclass(frozen=True, repr=False, eq=False)
class HiddenSplit:
    """A split of rows in two, within whose sides decisions and membership hang together; made by `hidden_split`.

    A pair holds the numbers of the rows where `sides` is False (decisions go against membership), then of those
    where it is True (they go along with it).

    Attributes
    ----------
    bound : float
        What some split has at least, whatever the decisions look like: ½ E|q − q̄| · min{E h, 1 − E h}.
    covariance : float
        What this split has: the mean of absolute covariances, by `shares`; never below `bound`.
    sides : numpy.ndarray of bool, shape (n,)
        The side of each row; read-only.
    rows : pair of int
        Rows with a positive weight.
    shares : pair of float
        Share of the weight.
    rates : pair of float
        Selection rate; NaN on a side without rows.
    covariances : pair of float
        Covariance of decision and membership within the side; 0 on a side without rows.

    Examples
    --------
    >>> import fairramp
    >>> split = fairramp.hidden_split([1, 0, 1, 0], [1, 1, 0, 0])  # equal rates, and yet
    >>> split.sides
    array([ True, False, False,  True])
    >>> split.covariances
    (-0.25, 0.25)
    """

    bound: float
    covariance: float
    sides: npt.NDArray[np.bool_]
    rows: tuple[int, int]
    shares: tuple[float, float]
    rates: tuple[float, float]
    covariances: tuple[float, float]

    def table(self) -> Table:
        """One row per side.

        Examples
        --------
        >>> import fairramp
        >>> print(fairramp.hidden_split([1, 0, 1, 0], [1, 1, 0, 0]).table())
        side     n  share   rate  covariance
        -------  -  -----  -----  ----------
        against  2  50.0%  50.0%     -0.2500
        along    2  50.0%  50.0%      0.2500
        """
        return Table(
            {
                "side": _NAMES,
                "n": self.rows,
                "share": self.shares,
                "rate": self.rates,
                "covariance": self.covariances,
            },
            shares=("share", "rate"),
        )

    def __repr__(self) -> str:
        n = sum(self.rows)
        rows = f"{n:,} row{'s' if n > 1 else ''}"
        return wrapped(
            f"Even if every known group is equal, some hidden split of these {rows} in two has a covariance of "
            f"decision and membership of at least {self.bound:.4f} within its sides, on average; this one has "
            f"{self.covariance:.4f}."
            if self.bound > _AT_MEAN
            else f"No hidden split: decisions or membership hardly differ between these {rows}."
        )


def hidden_split(decisions: Any, membership: Any, *, sample_weight: Any = None) -> HiddenSplit:
    """Find a split of the rows in two, within whose sides decisions depend on a sensitive attribute.

    Parameters
    ----------
    decisions : 0 or 1 of shape (n,)
        Hard decisions; from a rule, what `rule.decide` gives.
    membership : numbers in [0, 1], of shape (n,)
        P(S = 1 | x): a model's estimate of the sensitive attribute, or the attribute itself, 0 or 1.
    sample_weight : numbers of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    HiddenSplit

    Notes
    -----
    For an attribute that is 0 or 1, a covariance is s (1 − s) times the difference of the selection rates of
    S = 1 and S = 0, where s is the share of S = 1.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> rule = fairramp.fit_rule(data.score, data.sex)  # equal rates for women and men
    >>> decisions = rule.decide(data.score, data.sex, random_state=0)
    >>> print(fairramp.hidden_split(decisions, data.sex == "Female"))
    Even if every known group is equal, some hidden split of these 24,421 rows in
    two has a covariance of decision and membership of at least 0.0370 within its
    sides, on average; this one has 0.1298.
    """
    h, q, share = split_rows(decisions, membership, sample_weight)
    distance = q - share @ q
    sides = np.where(h == 1, distance > _AT_MEAN, distance < -_AT_MEAN)
    sides.flags.writeable = False
    against, along = (_numbers(h[on], q[on], share[on]) for on in (~sides, sides))
    shares, rates, covariances = zip(against, along, strict=True)
    return HiddenSplit(
        bound=impossibility_bound(h, q, sample_weight=share),
        covariance=sum(s * abs(c) for s, c in zip(shares, covariances, strict=True)),
        sides=sides,
        rows=(int(np.count_nonzero(share[~sides])), int(np.count_nonzero(share[sides]))),
        shares=shares,
        rates=rates,
        covariances=covariances,
    )


def _numbers(h: Floats, q: Floats, share: Floats) -> tuple[float, float, float]:
    """Share, selection rate and covariance of one side."""
    total = float(share.sum())
    if total == 0:
        return 0.0, float("nan"), 0.0
    part = share / total
    rate = float(part @ h)
    return total, rate, float(part @ ((h - rate) * (q - part @ q)))
