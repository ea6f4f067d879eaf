"""The two groups whose rates are furthest apart, in one sentence."""

from collections.abc import Callable, Sequence

import numpy as np

from fairramp.core.cells import strata_slices
from fairramp.core.curve import Integers
from fairramp.core.events import SELECTION, Event
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
    event: Event = SELECTION,
    within: str = "stratum",
) -> str:
    """Name the highest and the lowest rate; with strata, those of the stratum with the largest gap.

    `within` is what a stratum is called.

    Groups whose rate is NaN have no row of the event and are left out.

    >>> comparison([0.0772, 0.2454], ["Female", "Male"])
    'Selection rate: Male 24.5%, Female 7.7% (3.2 times as high).'
    >>> comparison([0.0, 0.25], ["A", "B"], rows=[5, 80])
    'Selection rate: B 25.0% of 80 rows; 0 of 5 rows in group A.'
    """
    there = np.flatnonzero(~np.isnan(rates)).tolist()
    if len(there) < len(rates):
        rates, names = [rates[k] for k in there], [names[k] for k in there]
        rows, strata = rows and [rows[k] for k in there], None if strata is None else strata[there]
    if not there:
        return f"{what}: no {event.rows}."
    r, label = np.array(rates), event.rows.removeprefix("rows")
    called = [f"{'' if is_word(name) else 'group '}{spelled(name)}" for name in names]
    if len(r) == 1:
        return f"{what}: {percent(rates[0])} in {called[0]}, the only group{label and f' that has {event.rows}'}."
    parts = strata_slices(strata, len(r))
    gaps = [float(r[part].max() - r[part].min()) for part in parts]
    # All strata may be at the allowed gap: break ties by the smallest ratio.
    tied = [part for part, gap in zip(parts, gaps, strict=True) if gap >= max(gaps) - NOTHING]
    worst = min(tied, key=lambda part: float(r[part].min() / r[part].max()) if r[part].max() > 0 else 1.0)
    high, low = worst.start + int(r[worst].argmax()), worst.start + int(r[worst].argmin())
    if rates[high] - rates[low] <= NOTHING:
        where = f"{percent(rates[high])} in every group" if strata is None else f"equal in each {within}"
        return f"{what}: {where}."
    decimals = next((d for d in range(1, 6) if percent(rates[high], d) != percent(rates[low], d)), 6)
    of = ["" if rows is None else f" of {counted(rows[k], event)}" for k in (high, low)]
    first = f"{what}: {called[high]} {percent(rates[high], decimals)}{of[0]}"
    if rates[low] <= NOTHING:
        return f"{first}; {f'0{of[1]}' if rows else 'nobody'} in group {spelled(names[low])}."
    ratio = f" ({times(rates[high], rates[low])} times as high)" if rates[high] < _MOST_TIMES * rates[low] else ""
    return f"{first}, {called[low]} {percent(rates[low], decimals)}{of[1]}{ratio}."


def counted(n: int, event: Event = SELECTION) -> str:
    """A number of rows of an event.

    >>> from fairramp.core.events import TRUE_POSITIVE
    >>> counted(2500), counted(1, TRUE_POSITIVE)
    ('2,500 rows', '1 row with label 1')
    """
    return f"{n:,} {event.rows.replace('rows', 'row' if n == 1 else 'rows', 1)}"


def left_out(rates: Sequence[float], names: Sequence[str], event: Event, most: int = 5) -> str | None:
    """Name the groups that have no rate because they have no row of the event, unless no group has one.

    >>> from fairramp.core.events import TRUE_POSITIVE
    >>> left_out([0.2, float("nan")], ["A", "B"], TRUE_POSITIVE)
    'Group B has no rows with label 1 and is left out.'
    """
    gone = [name for rate, name in zip(rates, names, strict=True) if rate != rate]
    if not gone or len(gone) == len(names):
        return None
    more = f" and {len(gone) - most:,} more" if len(gone) > most else ""
    which, has, are = ("Group", "has", "is") if len(gone) == 1 else ("Groups", "have", "are")
    return f"{which} {', '.join(gone[:most])}{more} {has} no {event.rows} and {are} left out."
