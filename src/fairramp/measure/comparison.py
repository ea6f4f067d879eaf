"""The two groups whose selection rates are furthest apart, in one sentence."""

from collections.abc import Callable, Sequence

import numpy as np

from fairramp.core.cells import strata_slices
from fairramp.core.curve import Integers
from fairramp.core.words import NOTHING, is_word, percent, times

#: A ratio above this adds nothing to the two rates.
_MOST_TIMES = 1000


def comparison(
    rates: Sequence[float],
    names: Sequence[str],
    strata: Integers | None = None,
    rows: Sequence[int] | None = None,
    what: str = "Selection rate",
    spelled: Callable[[str], str] = str,
) -> str:
    """Name the highest and the lowest rate; with strata, those of the stratum with the largest gap.

    >>> comparison([0.0772, 0.2454], ["Female", "Male"])
    'Selection rate: Male 24.5%, Female 7.7% (3.2 times as high).'
    >>> comparison([0.0, 0.25], ["A", "B"], rows=[5, 80])
    'Selection rate: B 25.0% of 80 rows; 0 of 5 rows in group A.'
    """
    r = np.array(rates)
    called = [f"{'' if is_word(name) else 'group '}{spelled(name)}" for name in names]
    if len(r) == 1:
        return f"{what}: {percent(rates[0])} in {called[0]}, the only group."
    parts = strata_slices(strata, len(r))
    gaps = [float(r[part].max() - r[part].min()) for part in parts]
    # All strata may be at the allowed gap: break ties by the smallest ratio.
    tied = [part for part, gap in zip(parts, gaps, strict=True) if gap >= max(gaps) - NOTHING]
    worst = min(tied, key=lambda part: float(r[part].min() / r[part].max()) if r[part].max() > 0 else 1.0)
    high, low = worst.start + int(r[worst].argmax()), worst.start + int(r[worst].argmin())
    if rates[high] - rates[low] <= NOTHING:
        return (
            f"{what}: {f'{percent(rates[high])} in every group' if strata is None else 'equal in each stratum'}."
        )
    decimals = next((d for d in range(1, 6) if percent(rates[high], d) != percent(rates[low], d)), 6)
    of = ["" if rows is None else f" of {rows[k]:,} row{'' if rows[k] == 1 else 's'}" for k in (high, low)]
    first = f"{what}: {called[high]} {percent(rates[high], decimals)}{of[0]}"
    if rates[low] <= NOTHING:
        return f"{first}; {f'0{of[1]}' if rows else 'nobody'} in group {spelled(names[low])}."
    ratio = f" ({times(rates[high], rates[low])} times as high)" if rates[high] < _MOST_TIMES * rates[low] else ""
    return f"{first}, {called[low]} {percent(rates[low], decimals)}{of[1]}{ratio}."
