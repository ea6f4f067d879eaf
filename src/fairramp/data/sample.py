"""Sample."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairramp.core.curve import Floats
from fairramp.core.scales import SATURATION
from fairramp.data.groups import Codes, cross, encode_groups
from fairramp.errors import InputError, warn

__all__ = [
    "LARGEST_WEIGHT",
    "SMALLEST_WEIGHT",
    "Names",
    "counting_rows",
    "encode_cells",
    "encode_strata",
    "warn_saturated",
]


@dataclass(frozen=True)
class Names:
    """Names of the columns, where they have any."""

    score: str | None
    groups: tuple[str, ...] | None
    strata: tuple[str, ...] | None


#: Weights beyond these limits are scaled, so that their squares neither overflow nor vanish.
LARGEST_WEIGHT, SMALLEST_WEIGHT = 1e100, 1e-100


def counting_rows(
    column: Any, codes: Codes, weights: Floats | None, labels: Floats | None
) -> tuple[Any, Codes, Floats | None, Floats | None]:
    """Rows that count: those of weight 0 are left out, weights far from 1 are scaled."""
    if weights is None:
        return column, codes, None, labels
    counts = weights > 0
    if not counts.all():
        before = codes.occurring()
        column, weights = column[counts], weights[counts]
        labels = None if labels is None else labels[counts]
        codes = replace(codes, values=codes.values[counts])
        lost = np.flatnonzero(before & ~codes.occurring())
        if len(lost):
            raise InputError(
                f"`sample_weight` is zero in every row of group {codes.labels[lost[0]]!r}; "
                "give its rows weight or leave them out."
            )
    largest = weights.max()
    if not SMALLEST_WEIGHT < largest < LARGEST_WEIGHT:
        weights = np.ldexp(weights, -np.frexp(largest)[1])
        if not weights.all():
            raise InputError("`sample_weight` must not differ by more than a factor of 1e300.")
    return column, codes, weights, labels


def encode_cells(
    groups: Any,
    strata: Any = None,
    names: tuple[str, ...] | None = None,
    strata_names: tuple[str, ...] | None = None,
) -> tuple[Codes, tuple[str, ...] | None]:
    """Code groups, or cells where there are strata; and the names of the strata's columns."""
    codes = encode_groups(groups, names)
    if strata is None:
        return codes, None
    outer = encode_strata(strata, strata_names)
    if len(outer) != len(codes):
        raise InputError(f"`strata` has {len(outer):,} rows and `groups` {len(codes):,}; they must match.")
    return replace(cross(outer, codes, lambda stratum, group: (stratum, group)), names=codes.names), outer.names


def encode_strata(strata: Any, names: tuple[str, ...] | None = None) -> Codes:
    """Code strata as groups are coded; only the messages differ."""
    try:
        return encode_groups(strata, names)
    except InputError as error:
        raise InputError(str(error).replace("`groups`", "`strata`").replace("group label", "stratum")) from None


def warn_saturated(tied: int) -> None:
    """Warn of logits whose probabilities are all 1."""
    if tied:
        warn(f"{tied:,} logits above {SATURATION:.1f} have probability 1.0 and are tied.")
