"""Hidden split: two sides within which hard decisions are biased, even if all known groups are equal.

For decisions h in {0, 1} and the probability q(x) = P(S = 1 | x) of being in a sensitive group, one side holds
the rows whose decision agrees with their membership, the other side the rest:

    W = {(q − q̄)(h − β) > 0}, any 0 < β < 1:     q > q̄ and h = 1,  or  q < q̄ and h = 0

Within W, h and q are positively correlated; outside, negatively. The mean over both sides, by weight, satisfies

    P(W) |Cov(h, q | W)| + P(W̄) |Cov(h, q | W̄)|  ≥  ½ E|q − q̄| · min{E h, 1 − E h}

Hence hard decisions are unbiased in every part of the rows only if h or q is constant. This is why groups must be
named before their rates can be equalized. Reference: Alabdulmohsin and Lucic 2021, Appendix D.2.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairramp.core.curve import Floats
from fairramp.core.public import public
from fairramp.core.table import Table
from fairramp.core.words import wrapped
from fairramp.measure.bounds import impossibility_bound, split_rows

#: A membership this close to the mean counts as equal to it, because the mean is rounded. Such a row may be on
#: either side.
_AT_MEAN = 1e-12
#: Names of the sides, for False and True.
_NAMES = ("against", "along")


@dataclass(frozen=True, repr=False, eq=False)
class HiddenSplit:
    """Result of `hidden_split`: a split of the rows in two, with biased decisions within its sides.

    Each pair holds the value for the rows where `sides` is False (decisions go against membership), then for
    those where it is True (decisions go along with it).

    Attributes
    ----------
    bound : float
        Lower bound on the covariance of the best split: ½ E|q − q̄| · min{E h, 1 − E h}.
    covariance : float
        Mean absolute covariance of this split's sides, weighted by `shares`; never below `bound`.
    sides : numpy.ndarray of bool, shape (n,)
        The side of each row; read-only.
    rows : pair of int
        Number of rows with a positive weight.
    shares : pair of float
        Share of the total weight.
    rates : pair of float
        Selection rate; NaN for an empty side.
    covariances : pair of float
        Covariance of decision and membership within the side; 0 for an empty side.

    Examples
    --------
    >>> import fairramp
    >>> split = fairramp.hidden_split([1, 0, 1, 0], [1, 1, 0, 0])  # equal rates
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
            f"Hidden split of {rows}: the mean covariance of decision and membership within the two sides is "
            f"{self.covariance:.4f}. Some split always reaches at least {self.bound:.4f}, even if all known "
            "groups are equal."
            if self.bound > _AT_MEAN
            else f"No hidden split: the decisions or the memberships of these {rows} are (almost) all the same."
        )


@public
def hidden_split(decisions: Any, membership: Any, *, sample_weight: Any = None) -> HiddenSplit:
    """Find a split of the rows in two such that decisions depend on a sensitive attribute within each side.

    Parameters
    ----------
    decisions : 0 or 1 of shape (n,)
        Hard decisions, for example from `rule.decide`.
    membership : numbers in [0, 1], of shape (n,)
        P(S = 1 | x): a model's estimate of the sensitive attribute, or the attribute itself, 0 or 1.
    sample_weight : numbers of shape (n,), optional
        Row weights.

    Returns
    -------
    HiddenSplit

    Notes
    -----
    If the attribute is 0 or 1, a covariance is s (1 − s) times the difference between the selection
    rates of S = 1 and S = 0, where s is the share of S = 1.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> rule = fairramp.fit_rule(data.score, data.sex)  # equal rates for women and men
    >>> decisions = rule.decide(data.score, data.sex, random_state=0)
    >>> print(fairramp.hidden_split(decisions, data.sex == "Female"))
    Hidden split of 24,421 rows: the mean covariance of decision and membership
    within the two sides is 0.1298. Some split always reaches at least 0.0370, even
    if all known groups are equal.
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
