"""Impact ratios: how often each category of people is selected, relative to the category selected most often.

    selection rate   r_c = Σ h / n_c       over the n_c people of category c; h is 0, 1 or a probability
    scoring rate     the same, with h = 1 for a score above the median of all people
    impact ratio     r_c / max r           over the categories of the same table

A category is a value of one column or, for several columns, an intersection of their values. People whose value
is unknown in one of the columns are in no category. A small category has fewer than 2% of all people, those with
unknown values included; rules of New York City let an auditor leave it out, so there is a second ratio without
it.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from fairramp.core.curve import Booleans, Floats, Integers
from fairramp.core.headline import SMALL_GROUP, ends, judged
from fairramp.core.intervals import ratio_interval
from fairramp.core.labels import Label, label_key, label_of, label_parts, label_text
from fairramp.core.table import Table, name_column
from fairramp.data.groups import Codes
from fairramp.errors import InputError, warn

#: A category with a smaller share of all people is small.
SMALL_SHARE = 0.02


@dataclass(frozen=True)
class Categories:
    """The people of a table, by category.

    Attributes
    ----------
    columns : tuple of str
        The columns that make a category.
    labels : tuple
        The categories that occur.
    seats : integers
        Index of each person's category; −1 if it is unknown.
    """

    columns: tuple[str, ...]
    labels: tuple[Label, ...]
    seats: Integers

    @property
    def name(self) -> str:
        """The columns as one name."""
        return " / ".join(self.columns)

    @property
    def people(self) -> Integers:
        """Number of people in each category."""
        return np.bincount(self.seats[self.seats >= 0], minlength=len(self.labels))

    @property
    def unknown(self) -> int:
        """Number of people without a known category."""
        return int((self.seats < 0).sum())

    @property
    def small(self) -> Booleans:
        """Which categories have a small share of all people."""
        small: Booleans = self.people < SMALL_SHARE * len(self.seats)
        return small


def categories_of(codes: Codes, unknown: Collection[Label] = ()) -> list[Categories]:
    """The categories of every column and, for several, of their intersections."""
    n = len(codes.names) if codes.names else codes.n_columns
    names = codes.names or (("category",) if n == 1 else tuple(f"category {i + 1}" for i in range(n)))
    # Columns of numbers have numbers as labels, and a command line passes texts: 9 and "9" mean the same here.
    missing = set(map(label_text, [None, "", *unknown]))
    parts = [label_parts(label) if n > 1 else (label,) for label in codes.labels]
    at = codes.block(0, len(codes))
    occurring = {label_text(value) for part in parts for value in part}
    if absent := [label_text(value) for value in unknown if label_text(value) not in occurring]:
        warn("No category has the value {values}, which {unknown} lists", values=" or ".join(map(repr, absent)))
    found = []
    for places in [(i,) for i in range(n)] + ([tuple(range(n))] if n > 1 else []):
        values = [tuple(part[i] for i in places) for part in parts]
        # A label that occurs in no row makes no category.
        occurs = codes.occurring()
        known = {
            tuple(map(label_key, value)): value
            for value, there in zip(values, occurs, strict=True)
            if there and not missing & set(map(label_text, value))
        }
        columns = tuple(names[i] for i in places)
        if not known:
            raise InputError(
                "has no known value in {columns}", argument="categories", columns=" and ".join(map(repr, columns))
            )
        seat = {key: i for i, key in enumerate(sorted(known))}
        seats = np.array([seat.get(tuple(map(label_key, value)), -1) for value in values], dtype=np.intp)
        labels = tuple(label_of(known[key]) for key in seat)
        found.append(Categories(columns, labels, seats[at]))
    return found


@dataclass(frozen=True)
class Impact:
    """How often each category is selected, under one set of decisions.

    Attributes
    ----------
    categories : Categories
        Who is in which category.
    selected : floats
        Number of people selected in each category; an expected number if some are decided at random.
    """

    categories: Categories
    selected: Floats

    @classmethod
    def of(cls, categories: Categories, chances: Floats) -> "Impact":
        """The impact of decisions with these probabilities of selection."""
        known = categories.seats >= 0
        sums = np.bincount(categories.seats[known], chances[known], minlength=len(categories.labels))
        return cls(categories, sums.astype(np.float64))

    @property
    def rates(self) -> Floats:
        """Selection rate of each category."""
        rates: Floats = self.selected / self.categories.people
        return rates

    @property
    def ratios(self) -> Floats:
        """Impact ratio of each category; NaN if nobody is selected."""
        return _relative(self.rates, self.rates)

    @property
    def ratios_without_small(self) -> Floats:
        """The same without the small categories, which have NaN."""
        large = ~self.categories.small
        return np.where(large, _relative(self.rates, self.rates[large]), np.nan)

    def extremes(self, confidence: float) -> "Extremes":
        """The highest and the lowest rate, of the categories that are large enough to judge."""
        people = self.categories.people
        keep = judged(people)
        seats, n = np.flatnonzero(keep), people[keep].astype(np.float64)
        r = self.rates[keep]
        high, low = (tuple(seats[at].tolist()) for at in ends(r))
        top = float(r.max())
        return Extremes(
            high=high,
            low=low,
            ratio=float(r.min()) / top if top > 0 else np.nan,
            ratio_interval=ratio_interval(r, n, confidence) if top > 0 else (np.nan, np.nan),
            too_small=int((~keep).sum()),
            by_chance=bool(keep.all() and (people < SMALL_GROUP).any() and len(people) > 1),
        )

    def table(
        self,
        rate: str = "selection_rate",
        selected: str = "selected",
        heading: str | None = None,
    ) -> Table:
        """One row per category; `rate` and `selected` name the columns of what is counted, with its `heading`."""
        found, n = self.categories, len(self.categories.seats)
        whole = bool(np.all(self.selected == np.rint(self.selected)))
        columns = {
            "category": name_column(found.labels),
            "people": found.people,
            "share_of_people": found.people / n,
            selected: self.selected.astype(np.intp) if whole else self.selected,
            rate: self.rates,
            "impact_ratio": self.ratios,
        }
        if found.small.any():
            columns["below_2_percent"] = name_column(["yes" if small else "no" for small in found.small])
            columns["impact_ratio_without_small"] = self.ratios_without_small
        shown = {"category": found.name, "share_of_people": "share of all", "below_2_percent": "below 2% of all"}
        shown["impact_ratio_without_small"] = "impact ratio without these"
        shown |= {selected: heading} if heading else {}
        return Table(columns, decimals=2, headings=shown, shares=["share_of_people", rate])


@dataclass(frozen=True)
class Extremes:
    """The categories with the highest and the lowest rate, of those that are large enough to judge.

    Attributes
    ----------
    high, low : tuple of int
        Indices of these categories; several if there are ties.
    ratio, ratio_interval : float, pair of float
        The lowest rate divided by the highest, with confidence limits; NaN if all rates are 0.
    too_small : int
        Number of categories that are left out because they have too few people.
    by_chance : bool
        Whether all are compared, because fewer than two are large enough to judge.
    """

    high: tuple[int, ...]
    low: tuple[int, ...]
    ratio: float
    ratio_interval: tuple[float, float]
    too_small: int
    by_chance: bool


def _relative(rates: Floats, to: Floats) -> Floats:
    """Rates divided by the largest of some rates; NaN if that is 0 or there is none."""
    highest = to.max(initial=0.0)
    return rates / highest if highest > 0 else np.full(len(rates), np.nan)


def above_median(scores: Floats, *, higher_is_better: bool = True) -> tuple[float, Floats]:
    """The median of all scores, and 1 for each score above it; below it, if lower scores are better."""
    median = float(np.median(scores))
    return median, ((scores > median) if higher_is_better else (scores < median)).astype(np.float64)
