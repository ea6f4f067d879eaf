"""The two groups whose rates are furthest apart, of those large enough to judge, in one sentence."""

from collections.abc import Callable, Sequence

import numpy as np

from fairramp.core.cells import strata_slices
from fairramp.core.curve import Integers
from fairramp.core.events import SELECTION, Event
from fairramp.core.headline import ends, joined, judged
from fairramp.core.labels import Label, label_key, label_parts, show_label
from fairramp.core.table import one_line
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
    *,
    count: bool = True,
) -> str:
    """Name the highest and the lowest rate; with strata, those of the stratum with the largest gap.

    `rows` are the numbers of rows that count toward the rates; groups that are too small to judge are left out
    (see `core.headline`). `count` says whether the sentence has them. `within` is what a stratum is called.

    Groups whose rate is NaN have no row of the event and are left out.

    >>> comparison([0.0772, 0.2454], ["Female", "Male"])
    'Selection rate: Male 24.5%, Female 7.7% (3.2 times as high).'
    >>> comparison([0.0, 0.25, 1.0], ["A", "B", "C"], rows=[40, 80, 2])
    'Selection rate: B 25.0% of 80 rows; 0 of 40 rows in group A.'
    >>> comparison([0.1, 0.2, 0.2, 0.2], ["A", "B", "C", "D"], rows=[40, 50, 60, 70])
    'Selection rate: B and 2 others 20.0% of 180 rows, A 10.0% of 40 rows (2.0 times as high).'
    """
    keep = ~np.isnan(rates) if rows is None else judged(rows, strata) & ~np.isnan(rates)
    there = np.flatnonzero(keep).tolist()
    if not there:
        return f"{what}: no {event.rows}."
    r, label = np.array(rates)[there], event.rows.removeprefix("rows")
    called = [f"{'' if is_word(names[k]) else 'group '}{spelled(names[k])}" for k in there]
    if len(r) == 1:
        return f"{what}: {percent(r[0])} in {called[0]}, the only group{label and f' that has {event.rows}'}."
    parts = strata_slices(None if strata is None else np.asarray(strata)[there], len(r))
    gaps = [float(np.ptp(r[part])) for part in parts]
    # All strata may be at the allowed gap: break ties by the smallest ratio.
    tied = [part for part, gap in zip(parts, gaps, strict=True) if gap >= max(gaps) - NOTHING]
    worst = min(tied, key=lambda part: float(r[part].min() / r[part].max()) if r[part].max() > 0 else 1.0)
    high, low = float(r[worst].max()), float(r[worst].min())
    if high - low <= NOTHING:
        where = f"{percent(high)} in every group" if strata is None else f"equal in each {within}"
        if not keep[~np.isnan(rates)].all():
            where += f"{'' if strata is None else ', between groups'} with enough rows to judge"
        return f"{what}: {where}."
    decimals = next((d for d in range(1, 6) if percent(high, d) != percent(low, d)), 6)
    at = [[worst.start + k for k in tied_at] for tied_at in ends(r[worst])]
    n = [None if rows is None or not count else sum(rows[there[k]] for k in ends) for ends in at]
    of = ["" if some is None else f" of {counted(some, event)}" for some in n]
    more = _also(len(tied) - 1, within)
    first = f"{what}: {joined([called[k] for k in at[0]])} {percent(high, decimals)}{of[0]}"
    if low <= NOTHING:
        where = joined([spelled(names[there[k]]) for k in at[1]])
        return f"{first}; {f'0{of[1]}' if of[1] else 'nobody'} in group{'s' * (len(at[1]) > 1)} {where}{more}."
    ratio = f" ({times(high, low)} times as high)" if high < _MOST_TIMES * low else ""
    lowest = f"{joined([called[k] for k in at[1]])} {percent(low, decimals)}{of[1]}"
    return f"{first}, {lowest}{ratio}{more}."


def _also(others: int, within: str) -> str:
    """That other strata have the same gap."""
    several = {"stratum": "strata"}.get(within, f"{within}s")
    which = f"1 other {within} has" if others == 1 else f"{others:,} other {several} have"
    return f"; {which} the same gap" if others else ""


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
    return _left_out(gone, event.rows, "", most) if 0 < len(gone) < len(names) else None


def _left_out(gone: Sequence[str], rows: str, of: str, most: int = 5) -> str:
    more = f" and {len(gone) - most:,} more" if len(gone) > most else ""
    which, has, are = ("Group", "has", "is") if len(gone) == 1 else ("Groups", "have", "are")
    return f"{which} {', '.join(gone[:most])}{more}{of} {has} no {rows} and {are} left out."


def missing_groups(known: Sequence[Label], found: Sequence[Label], *, strata: bool = False) -> tuple[Label, ...]:
    """The groups of a rule that are not among the groups found, which are within `strata` only here.

    >>> missing_groups(["A", "B"], ["A", "new"]), missing_groups(["A", "B"], [("s", "B")], strata=True)
    (('B',), ('A',))
    """
    there = {label_key(label_parts(label)[1] if strata else label) for label in found}
    return tuple(label for label in known if label_key(label) not in there)


def without_rows(missing: Sequence[Label]) -> str | None:
    """Name the groups of a rule that have no row.

    >>> without_rows(["A"])
    'Group A of the rule has no rows and is left out.'
    """
    names = [one_line(show_label(label)) for label in missing]
    return _left_out(names, "rows", " of the rule") if names else None
