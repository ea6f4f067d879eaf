"""A fixed number of places: choose exactly that many people from a list, with a limit on the gap or the ratio.

The list is its own population: rates are counts of places divided by counts of people, and nothing is claimed
about other lists. `counts` finds the number of places of each group; within a group, the best scores are
admitted. If people share the last admitted score of their group, those with the smallest draws
(`fairramp.draws`) are admitted, so the same list and key give the same answer in any order.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from fairramp.core.bands import smallest_ratio
from fairramp.core.cells import largest_gap
from fairramp.core.checks import checked_band, checked_whole
from fairramp.core.curve import Array, Integers
from fairramp.core.headline import ends, joined, judged, too_small
from fairramp.core.labels import Label, show_label
from fairramp.core.public import public
from fairramp.core.scales import scale_of
from fairramp.core.table import Table, name_column, one_line, printed
from fairramp.core.words import (
    NOTHING,
    decimals_apart,
    exact_points,
    fixed,
    is_word,
    percent,
    plain,
    points,
)
from fairramp.data.aligned import check_aligned
from fairramp.data.probable import refuse_probabilities
from fairramp.data.sample import Sample
from fairramp.errors import InputError, shown
from fairramp.fit.counts import TOLERANCE, Band, Ranking, best_counts
from fairramp.rule.draws import decide, draws
from fairramp.rule.verbs import Drawn


@dataclass(frozen=True, repr=False, eq=False)
class Shortlist(Drawn):
    """Result of `select`.

    Attributes
    ----------
    decisions : int8 array of shape (n,)
        1 for each person who is admitted, 0 for all others; read-only.
    groups : tuple
        Labels of the groups.
    rows : tuple of int
        Number of people in each group.
    places : tuple of int
        Number of people admitted from each group.
    places_by_score : tuple of int
        Number of places that each group would get by score alone.
    last_score : tuple of float
        Last admitted score of each group, in the units of the scores; NaN if nobody is admitted.
    decided_at_random : tuple of int
        Number of people in each group who share its last admitted score, if not all of them are admitted;
        otherwise 0.
    max_gap : float or None
        Largest allowed gap; None with `min_ratio`.
    min_ratio : float or None
        Smallest allowed ratio; None with `max_gap`.
    excess : float
        0.0 if the limit is met. Otherwise, no integers meet it, and this is the smallest possible excess: the gap
        minus `max_gap`, or `min_ratio` times the highest rate minus the lowest rate.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> found = fairramp.select(data.score, data.sex, places=1000, max_gap=0.001)
    >>> found.decisions.sum(), found.groups, found.places
    (np.int64(1000), ('Female', 'Male'), (327, 673))
    """

    decisions: npt.NDArray[np.int8]
    groups: tuple[Label, ...]
    rows: tuple[int, ...]
    places: tuple[int, ...]
    places_by_score: tuple[int, ...]
    last_score: tuple[float, ...]
    decided_at_random: tuple[int, ...]
    max_gap: float | None
    min_ratio: float | None
    excess: float

    @property
    def rates(self) -> tuple[float, ...]:
        """Selection rate of each group."""
        return tuple(m / n for m, n in zip(self.places, self.rows, strict=True))

    @property
    def gap(self) -> float:
        """Largest difference between two groups' selection rates."""
        return largest_gap(self.rates)

    @property
    def ratio(self) -> float:
        """Smallest selection rate divided by the largest; NaN if nobody is admitted."""
        return smallest_ratio(self.rates)

    def sentences(self) -> list[str]:
        """Sentences on the places, the groups furthest apart, the limit and random decisions.

        Examples
        --------
        >>> import fairramp
        >>> found = fairramp.select([0.9, 0.8, 0.7, 0.6], ["A", "A", "B", "B"], places=2)
        >>> found.sentences()[1:]
        ['Selection rate: 50.0% in every group.', 'The gap of 0.0 points meets the limit of 0.0 points.']
        """
        places, people = sum(self.places), sum(self.rows)
        told = [f"{places:,} place{'' if places == 1 else 's'} for {_people(people)}."]
        if len(self.groups) == 1:
            return [*told, "There is one group, so there is no gap.", *self._drawn()]
        if not places:
            return [*told, "Nobody is admitted, so the limit is met."]
        return [*told, self._extremes(), self._verdict(), *self._drawn()]

    def _extremes(self) -> str:
        rates, keep = self.rates, judged(self.rows)
        seats = np.flatnonzero(keep).tolist()
        at = [[seats[k] for k in found] for found in ends([rates[k] for k in seats])]
        # The list is its own population, so rates are no estimates, even if all groups are small.
        few = "" if keep.all() else f" {too_small(self.rows)}"
        high, low = (rates[found[0]] for found in at)
        if high - low <= NOTHING:
            return f"Selection rate: {percent(high)} in every group{few and ' with enough rows to judge'}.{few}"
        decimals = next((d for d in range(1, 6) if percent(high, d) != percent(low, d)), 6)
        first, second = (
            f"{self._named(found)} {percent(rates[found[0]], decimals)} "
            f"({sum(self.places[k] for k in found):,} of {_people(sum(self.rows[k] for k in found))})"
            for found in at
        )
        return f"Selection rate: highest in {first}, lowest in {second}.{few}"

    def _named(self, places: Sequence[int]) -> str:
        names = [one_line(show_label(self.groups[k])) for k in places]
        return joined([f"{'' if is_word(name) else 'group '}{name}" for name in names])

    def _verdict(self) -> str:
        """Whether the limit is met, and by how much it is not."""
        if self.max_gap is not None:
            limit, gap = exact_points(self.max_gap), self.gap if abs(self.gap - self.max_gap) > NOTHING else None
            decimals = 1 if gap is None else decimals_apart(self.max_gap, gap)
            found = f"The gap of {limit if gap is None else points(gap, decimals)}"
            if not self.excess:
                return f"{found} meets the limit of {limit}."
            return f"{found} is above the limit of {limit}. No division of the places has a smaller gap."
        least = float(self.min_ratio or 0)
        decimals = next((d for d in range(2, 6) if fixed(self.ratio, d) != fixed(least, d)), 2)
        found = f"The ratio of {fixed(self.ratio, decimals)}"
        if not self.excess:
            return f"{found} meets the limit of {least:g}."
        return (
            f"{found} is below the limit of {least:g}. No division of the places meets the limit; this is the "
            "closest."
        )

    def _drawn(self) -> list[str]:
        drawn = sum(self.decided_at_random)
        who = "people who share" if drawn > 1 else "person who shares"
        return [f"Decided at random: {drawn:,} {who} the last admitted score of their group."] if drawn else []

    def table(self) -> Table:
        """One row per group.

        Examples
        --------
        >>> import fairramp
        >>> found = fairramp.select([0.9, 0.8, 0.7, 0.6], ["A", "A", "B", "B"], places=2)
        >>> print(found.table())
        group  n  places by score  places   rate  last admitted score  decided at random
        -----  -  ---------------  ------  -----  -------------------  -----------------
        A      2                2       1  50.0%               0.9000                  0
        B      2                0       1  50.0%               0.7000                  0
        """
        return Table(
            {
                "group": name_column(self.groups),
                "n": self.rows,
                "places_by_score": self.places_by_score,
                "places": self.places,
                "rate": self.rates,
                "last_score": self.last_score,
                "decided_at_random": self.decided_at_random,
            },
            headings={"last_score": "last admitted score"},
            shares=["rate"],
        )

    def to_dict(self) -> dict[str, Any]:
        """All results except the decisions as plain values, ready for JSON, with None for NaN.

        Examples
        --------
        >>> import fairramp
        >>> found = fairramp.select([0.9, 0.8, 0.7, 0.6], ["A", "A", "B", "B"], places=2)
        >>> found.to_dict()["places"], found.to_dict()["gap"]
        ([1, 1], 0.0)
        """
        known = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "decisions"}
        return plain(known | {"rates": self.rates, "gap": self.gap, "ratio": self.ratio})

    def __repr__(self) -> str:
        return printed(*self._parts())

    def _parts(self) -> list[Table | str]:
        """The parts of its text."""
        return ["\n".join(self.sentences()), self.table()]


@public
def select(
    scores: Any,
    groups: Any,
    *,
    places: int,
    max_gap: float | None = None,
    min_ratio: float | None = None,
    ids: Any = None,
    key: str | None = None,
    scale: str = "probability",
    higher_is_better: bool = True,
) -> Shortlist:
    """Admit exactly `places` people from a list, with a limit on the gap or the ratio of selection rates.

    Of all numbers of places per group that meet the limit, those with the best total score are chosen, and within
    each group the best scores are admitted. If no integers meet the limit, as is usual for a gap of 0, those with
    the smallest possible excess compete. The result is exact.

    Parameters
    ----------
    scores : numbers of shape (n,)
        One score per person.
    groups : labels of shape (n,), or several columns
        One group per person, as in `fit_rule`.
    places : int
        Number of people to admit.
    max_gap : float, optional
        Largest difference between two groups' selection rates. The default is 0, unless `min_ratio` is given.
    min_ratio : float, optional
        Smallest ratio of the lowest selection rate to the highest; 0.8 is the four-fifths rule.
    ids : sequence of str or int, optional
        One id per person, all different. Needed, with `key`, only if people share the last admitted score of
        their group.
    key : str, optional
        64 hexadecimal characters, which decide such ties; see `draws`.
    scale : str, default "probability"
        Scale of the scores, as in `fit_rule`. Logits are summed as probabilities.
    higher_is_better : bool, default True
        Whether high scores are better; False for risks.

    Notes
    -----
    If several numbers of places have the same total, groups with a lower rate come first; the order of the rows
    never matters.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> print(fairramp.select(data.score, data.sex, places=1000, min_ratio=0.8))
    1,000 places for 24,421 people.
    Selection rate: highest in Male 4.4% (716 of 16,327 people), lowest in Female
    3.5% (284 of 8,094 people).
    The ratio of 0.8001 meets the limit of 0.8.
    <BLANKLINE>
                    places                    last  decided
                        by                admitted       at
    group        n   score  places  rate     score   random
    ------  ------  ------  ------  ----  --------  -------
    Female   8,094     135     284  3.5%    0.7450        0
    Male    16,327     865     716  4.4%    0.9185        0
    """
    refuse_probabilities(groups, "A selection of places")
    band = _band(max_gap, min_ratio)
    check_aligned(scores=scores, groups=groups, ids=ids)
    sample = Sample.of_arrays(scores, groups, scale=scale_of(scale, higher_is_better))
    n = len(sample)
    if checked_whole("places", places, 0) > n:
        raise InputError("must be at most {n:,}, the number of people", argument="places", got=places, n=n)
    people = _checked_ids(ids, key, n)
    positions, codes = sample.positions, sample.groups.block(0, n)
    sizes = np.bincount(codes, minlength=len(sample.groups.labels))
    occurring = np.flatnonzero(sizes)
    if len(occurring) < len(sizes):
        codes, sizes = np.searchsorted(occurring, codes), sizes[occurring]
    best_first = -sample.scores if higher_is_better else sample.scores
    ranking = Ranking.of(best_first, positions, codes, sizes)
    counts = best_counts(ranking, int(places), band)
    labels = tuple(sample.groups.labels[k] for k in occurring)
    decisions, last, drawn = _admitted(ranking, sample.scores, counts, labels, people, key)
    excess = float(band.needed(counts / sizes)) - band.slack
    return Shortlist(
        decisions=decisions,
        groups=labels,
        rows=tuple(sizes.tolist()),
        places=tuple(counts.tolist()),
        places_by_score=tuple(ranking.among(np.array(int(places))).tolist()),
        last_score=tuple(last),
        decided_at_random=tuple(drawn),
        max_gap=band.slack if min_ratio is None else None,
        min_ratio=None if min_ratio is None else band.slope,
        excess=excess if excess > TOLERANCE else 0.0,
    )


def _band(max_gap: Any, min_ratio: Any) -> Band:
    limits = checked_band(max_gap, min_ratio)
    return Band(limits["min_ratio"] or 1.0, limits["max_gap"] or 0.0)


def _checked_ids(ids: Any, key: str | None, n: int) -> Sequence[Any] | Array | None:
    """The ids, or None if there are none; each may occur once."""
    if ids is None and key is None:
        return None
    decide(np.zeros(n), ids=ids, key=key)  # checks ids and key, and draws nothing
    column: Sequence[Any] | Array = ids if isinstance(ids, list | tuple) else np.asanyarray(ids)
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        ordered = np.sort(column)
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    else:
        counted = Counter(map(str, column))
        repeated = [name for name, times in counted.items() if times > 1] if len(counted) < n else []
    if len(repeated):
        raise InputError(
            "must be different in every row, got {value} twice",
            argument="ids",
            remedy="give each person one row",
            value=shown(repeated[0]),
        )
    return column


def _admitted(
    ranking: Ranking,
    scores: Array,
    counts: Integers,
    labels: Sequence[Label],
    ids: Sequence[Any] | Array | None,
    key: str | None,
) -> tuple[npt.NDArray[np.int8], list[float], list[int]]:
    """Decisions, and for each group the last admitted score and the number of people decided at random."""
    decisions = np.zeros(len(scores), dtype=np.int8)
    last, drawn = [float("nan")] * len(counts), [0] * len(counts)
    for k, (start, size, m) in enumerate(zip(ranking.starts, ranking.sizes, counts, strict=True)):
        rows = ranking.rows[start : start + size]
        decisions[rows[:m]] = 1
        if m:
            last[k] = float(scores[rows[m - 1]])
        if 0 < m < size and scores[rows[m]] == scores[rows[m - 1]]:
            tied = rows[scores[rows] == scores[rows[m]]]
            left, drawn[k] = int(decisions[tied].sum()), len(tied)
            if ids is None or key is None:
                raise _undecided(labels[k], last[k], len(tied), left)
            names = [str(ids[i]) for i in tied.tolist()]
            # Different ids practically never have the same draw.
            order = sorted(zip(draws(names, key).tolist(), names, tied.tolist(), strict=True))
            decisions[tied] = 0
            decisions[[row for _, _, row in order[:left]]] = 1
    decisions.flags.writeable = False
    return decisions, last, drawn


def _undecided(group: Label, score: float, people: int, places: int) -> InputError:
    return InputError(
        "{people} in group {group} have the score {score:g}, but only {places:,} of them can be admitted; pass "
        "{ids} and {key}, which decide such ties",
        people=_people(people),
        group=one_line(show_label(group)),
        score=score,
        places=places,
    )


def _people(n: int) -> str:
    return f"{n:,} {'person' if n == 1 else 'people'}"
