"""Which groups a headline names: those furthest apart, of the groups that are large enough to judge.

    a headline compares   the groups with at least 30 rows that count toward the rate

Smaller groups are often the furthest apart by chance alone, so they would be the headline of almost any data with
intersections. They are left out of headlines only: tables, gaps, ratios, limits and gates include every group.
"""

from collections.abc import Sequence

import numpy as np

from fairramp.core.cells import strata_slices
from fairramp.core.curve import Booleans, Floats, Integers
from fairramp.core.events import SELECTION, Event
from fairramp.core.words import NOTHING

#: Groups with fewer rows, or fewer expected ones, are too small to judge, and cause a warning.
SMALL_GROUP = 30


def judged(rows: Sequence[int] | Integers, strata: Sequence[int] | Integers | None = None) -> Booleans:
    """The groups that a headline compares, by their numbers of rows that count toward the rate.

    If no stratum has two groups that are large enough, these are all groups with rows.

    >>> judged([500, 3, 80, 0]).tolist(), judged([500, 3]).tolist()
    ([True, False, True, False], [True, True])
    """
    n = np.asarray(rows)
    large: Booleans = n >= SMALL_GROUP
    compares = any(large[part].sum() > 1 for part in strata_slices(strata, len(n)))
    return large if compares else n > 0


def too_small(
    rows: Sequence[int] | Integers,
    event: Event = SELECTION,
    strata: Sequence[int] | Integers | None = None,
    what: str = "groups",
) -> str | None:
    """A sentence on the groups that a headline leaves out; None if it compares all groups with rows.

    >>> too_small([500, 3, 80])
    '1 of 3 groups has fewer than 30 rows, too few to judge, and is left out above; tables and gaps include it.'
    >>> too_small([500, 3])
    'Fewer than two groups have at least 30 rows, so these rates can be far apart by chance alone.'
    """
    n = np.asarray(rows)
    there, small = n > 0, int(((n > 0) & (n < SMALL_GROUP)).sum())
    if not small or there.sum() < 2:
        return None
    if judged(n, strata)[there].all():
        none = f"Fewer than two {what} have" if strata is None else f"No stratum has two {what} with"
        return f"{none} at least {SMALL_GROUP} {event.rows}, so these rates can be far apart by chance alone."
    has, are, them = ("has", "is", "it") if small == 1 else ("have", "are", "them")
    return (
        f"{small:,} of {there.sum():,} {what} {has} fewer than {SMALL_GROUP} {event.rows}, too few to judge, and "
        f"{are} left out above; tables and gaps include {them}."
    )


def small_ones(rows: Sequence[int] | Integers, event: Event = SELECTION) -> str:
    """How many groups are too small to judge, for sentences on numbers that include them; empty if none is.

    >>> small_ones([500, 3, 80]), small_ones([500, 80])
    ('1 group with fewer than 30 rows', '')
    """
    n = np.asarray(rows)
    small = int(((n > 0) & (n < SMALL_GROUP)).sum())
    return (
        f"{small:,} group{'' if small == 1 else 's'} with fewer than {SMALL_GROUP} {event.rows}" if small else ""
    )


def ends(rates: Sequence[float] | Floats) -> tuple[list[int], list[int]]:
    """The places of the highest rate and of the lowest: several if there are ties.

    >>> ends([0.2, 0.1, 0.2])
    ([0, 2], [1])
    """
    r = np.asarray(rates)
    high, low = (np.flatnonzero(abs(r - end) <= NOTHING).tolist() for end in (r.max(), r.min()))
    return high, low


def joined(names: Sequence[str]) -> str:
    """Groups with the same rate: one or two names, or the first and how many others.

    >>> joined(["A", "B"]), joined(["A", "B", "C"])
    ('A and B', 'A and 2 others')
    """
    return " and ".join(names if len(names) < 3 else [names[0], f"{len(names) - 1:,} others"])


def with_small(keep: Booleans, event: Event = SELECTION) -> str:
    """How a number for all groups begins, after the same number for those in `keep`, the groups to judge.

    >>> with_small(judged([500, 3, 80]))
    'Including the group with fewer than 30 rows'
    """
    small = int((~keep).sum())
    groups = "group" if small == 1 else f"{small:,} groups"
    return f"Including the {groups} with fewer than {SMALL_GROUP} {event.rows}"
