"""The content of a folder of evidence: every number and fact, as frozen data."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairramp.core.headline import SMALL_GROUP, joined
from fairramp.core.intervals import wilson_interval
from fairramp.core.labels import show_label, show_labels
from fairramp.core.table import Table, name_column
from fairramp.core.words import number, percent, with_interval
from fairramp.measure.audited import Audit
from fairramp.measure.certificate import Certificate
from fairramp.measure.impact import Impact
from fairramp.rule.rule import Rule
from fairramp.show.labels import LABELS, LabelNames
from fairramp.show.report.content import About, Content
from fairramp.show.words import plain_name

#: On every document that people read.
NO_CLAIM = (
    "This document states what was measured. It does not claim that any law is complied with, and it is not "
    "legal advice."
)
#: Why categories that are too small to judge are compared.
FEWER_THAN_TWO = f"Fewer than two categories have at least {SMALL_GROUP} people"
#: By whether these are the rows that a rule was fitted on.
_FIT_ROWS = {
    True: "These are the rows that the rule was fitted on: among new people, rates usually differ more.",
    False: "The rule was not fitted on these rows.",
    None: "It is not known whether the rule was fitted on these rows.",
}


@dataclass(frozen=True)
class Decided:
    """One set of decisions, and how often each category is selected.

    Attributes
    ----------
    name : str
        "classifier", "rule" or "rule, as drawn".
    heading, how : str
        What these decisions are, and how they were made.
    impacts : tuple of Impact
        By each column and, for several, by intersection.
    """

    name: str
    heading: str
    how: str
    impacts: tuple[Impact, ...]


@dataclass(frozen=True)
class Scored:
    """How often each category has a score beyond the median of all scores."""

    median: float
    side: str
    impacts: tuple[Impact, ...]

    def table(self, impact: Impact) -> Table:
        """One of the tables."""
        return impact.table("scoring_rate", f"{self.side}_median", f"{self.side} the median")


@dataclass(frozen=True)
class Pack:
    """Everything in the folder.

    Attributes
    ----------
    about : About
        The decision, its owner, the file and dates, as given.
    title : str
        The title of the folder.
    rows : int
        Number of people in the data.
    decided : tuple of Decided
        The classifier's own decisions and, with a rule, its decisions.
    scored : Scored or None
        Scores against their median; None for 0/1 decisions.
    unknown : tuple of str
        Values that mean that a category is unknown, as given.
    audit : Audit
        The audit of the same people.
    rule : Rule or None
        The rule, if any.
    certificate : Certificate or str, or None
        Its certificate, or the reason it has none; None without a rule.
    report : Content or None
        The content of its report; None without a rule.
    versions : dict
        Versions of the software used.
    sources : dict
        SHA-256 of the files that the rows came from, by name.
    label_names : LabelNames
        What the labels stand for.
    doubt : str
        That the scores contradict the labels; empty if they do not.
    """

    about: About
    title: str
    rows: int
    decided: tuple[Decided, ...]
    scored: Scored | None
    unknown: tuple[str, ...]
    audit: Audit
    rule: Rule | None
    certificate: Certificate | str | None
    report: Content | None
    versions: dict[str, str]
    sources: dict[str, str]
    label_names: LabelNames = LABELS
    doubt: str = ""

    @property
    def labeled(self) -> bool:
        """Whether there are labels."""
        return self.audit.selection.accuracy is not None

    @property
    def outcomes(self) -> dict[str, str]:
        """What the labels stand for; empty without labels."""
        return self.label_names.listed() if self.labeled else {}

    @property
    def fit_rows(self) -> str | None:
        """Whether the rule was fitted on these rows, in a sentence; None without a rule."""
        return None if self.report is None else _FIT_ROWS[self.report.in_sample]

    @property
    def findings(self) -> Table:
        """The highest rate and the lowest impact ratio of each table of decisions.

        Categories that are too small to judge are left out; the last column counts them, if there are any.
        """
        level, columns = self.audit.confidence, dict[str, list[Any]]()
        for one in self.decided:
            for impact in one.impacts:
                found = impact.extremes(level)
                for which, at in (("highest", found.high), ("lowest", found.low)):
                    people, rate, limits = _together_at(impact, at, level)
                    is_low = which == "lowest"
                    row = {
                        "decisions": one.name,
                        "by": impact.categories.name,
                        "rate": which,
                        "category": _named(impact, at),
                        "people": people,
                        "selection_rate": rate,
                        "selection_rate_low": limits[0],
                        "selection_rate_high": limits[1],
                        "impact_ratio": found.ratio if is_low else np.nan,
                        "impact_ratio_low": found.ratio_interval[0] if is_low else np.nan,
                        "impact_ratio_high": found.ratio_interval[1] if is_low else np.nan,
                        "too_small": found.too_small,
                    }
                    for name, value in row.items():
                        columns.setdefault(name, []).append(value)
        if not any(columns["too_small"]):
            del columns["too_small"]
        return Table(
            columns,
            decimals=2,
            headings={"too_small": f"categories below {SMALL_GROUP} people"},
            shares=["selection_rate"],
            confidence=level,
        )

    @property
    def by_chance(self) -> tuple[str, ...]:
        """What categories are by, where fewer than two are large enough to judge."""
        level = self.audit.confidence
        by = (one.categories.name for one in self.decided[0].impacts if one.extremes(level).by_chance)
        return tuple(map(plain_name, by))

    def sentences(self) -> list[str]:
        """The findings in sentences, for a terminal."""
        pairs = [(one.name, impact) for one in self.decided for impact in one.impacts]
        return [
            f"{name[0].upper()}{name[1:]}, by {plain_name(impact.categories.name)}. "
            f"{finding(impact, self.audit.confidence)}"
            for name, impact in pairs
        ]

    @cached_property
    def impact_ratios(self) -> Table:
        """All impact ratios in one table."""
        return _together(
            [(one.name, impact, impact.table()) for one in self.decided for impact in one.impacts], "decisions"
        )

    @cached_property
    def scoring_rates(self) -> Table | None:
        """All scoring rates in one table; None for 0/1 decisions."""
        if self.scored is None:
            return None
        return _together(
            [("classifier", impact, self.scored.table(impact)) for impact in self.scored.impacts], "scores"
        )

    def provenance(self) -> dict[str, Any]:
        """Versions and fingerprints."""
        report = self.report
        return {
            "note": NO_CLAIM,
            "date": self.about.date,
            "rows": self.rows,
            "rows_left_out": self.about.left_out,
            "people_of_unknown_category": {
                impact.categories.name: impact.categories.unknown for impact in self.decided[0].impacts
            },
            "label_names": list(self.outcomes.values()) or None,
            "source": self.about.source,
            "source_sha256": self.sources,
            "rule_fingerprint": None if report is None else report.rule_fingerprint,
            "data_fingerprint": None if report is None else report.data_fingerprint,
            "fit_data_fingerprint": None if report is None else report.fit_fingerprint,
            "is_fit_data": None if report is None else report.in_sample,
            "versions": self.versions,
        }


def _together(tables: list[tuple[str, Impact, Table]], which: str) -> Table:
    """Tables below each other, with what each is about in two more columns."""
    columns: dict[str, list[Any]] = {}
    for name, impact, table in tables:
        n, known = len(table), table.to_dict()
        rows = {which: [name] * n, "by": [impact.categories.name] * n, **known}
        rows["category"] = show_labels(known["category"])
        rows.setdefault("below_2_percent", ["no"] * n)
        rows.setdefault("impact_ratio_without_small", known["impact_ratio"])
        for column, values in rows.items():
            columns.setdefault(column, []).extend(values)
    names = (which, "by", "category", "below_2_percent")
    shares = [name for name in columns if name == "share_of_people" or name.endswith("_rate")]
    return Table(
        {name: name_column(v) if name in names else v for name, v in columns.items()},
        decimals=2,
        shares=shares,
    )


def finding(impact: Impact, confidence: float, verb: str = "selected") -> str:
    """The highest rate and the lowest impact ratio, in sentences."""
    rates, found = impact.rates, impact.extremes(confidence)
    if not rates.max() > 0:
        return f"Nobody is {verb}, so there are no impact ratios."
    if len(rates) == 1:
        return f"There is one category, {_named(impact, (0,))}, so there is nothing to compare."
    highest, lowest = (_rate(impact, at, confidence) for at in (found.high, found.low))
    text = f"Highest rate: {_named(impact, found.high)}, {highest}."
    if found.ratio == found.ratio:
        shown = with_interval(*(number(one, 2) for one in (found.ratio, *found.ratio_interval)))
        text += f" Lowest impact ratio: {_named(impact, found.low)}, {shown}, {lowest}."
    if found.by_chance:
        return f"{text} {FEWER_THAN_TWO}, so these rates can be far apart by chance alone."
    if not found.too_small:
        return text
    has, is_left, them = ("has", "is", "it") if found.too_small == 1 else ("have", "are", "them")
    return (
        f"{text} {found.too_small:,} of {len(rates):,} categories {has} fewer than {SMALL_GROUP} people, too few "
        f"to judge, and {is_left} left out here. The table has {them}, and its ratios count {them}."
    )


def _named(impact: Impact, at: Sequence[int]) -> str:
    return joined([plain_name(show_label(impact.categories.labels[i])) for i in at])


def _rate(impact: Impact, at: Sequence[int], confidence: float) -> str:
    """The common rate of categories, with its confidence interval and number of people."""
    people, rate, limits = _together_at(impact, at, confidence)
    return (
        f"{with_interval(*map(percent, (rate, *limits)))} of {people:,} {'person' if people == 1 else 'people'}"
    )


def _together_at(impact: Impact, at: Sequence[int], confidence: float) -> tuple[int, float, tuple[float, float]]:
    """Number of people in categories with the same rate, and that rate with its confidence limits."""
    people, rate = int(impact.categories.people[list(at)].sum()), float(impact.rates[at[0]])
    lower, upper = wilson_interval(np.array([rate]), np.array([people]), confidence)
    return people, rate, (float(lower[0]), float(upper[0]))
