"""The content of a folder of evidence: every number and fact, as frozen data."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fairramp.core.labels import show_label
from fairramp.core.table import Table, name_column
from fairramp.core.words import number, percent
from fairramp.measure.audited import Audit
from fairramp.measure.certificate import Certificate
from fairramp.measure.impact import Impact
from fairramp.rule.rule import Rule
from fairramp.show.report.content import About, Content
from fairramp.show.words import plain_name

#: On every document that people read.
NO_CLAIM = (
    "This document states what was measured. It does not claim that any law is complied with, and it is not "
    "legal advice."
)


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

    @property
    def findings(self) -> list[str]:
        """The highest rate and the lowest impact ratio of each table, in sentences."""
        return [
            f"{one.heading}, by {plain_name(impact.categories.name)}. {finding(impact)}"
            for one in self.decided
            for impact in one.impacts
        ]

    @cached_property
    def impact_ratios(self) -> Table:
        """All impact ratios in one table."""
        return _together(
            [(one.name, impact.table()) for one in self.decided for impact in one.impacts], "decisions"
        )

    @cached_property
    def scoring_rates(self) -> Table | None:
        """All scoring rates in one table; None for 0/1 decisions."""
        if self.scored is None:
            return None
        return _together([("classifier", self.scored.table(impact)) for impact in self.scored.impacts], "scores")

    def provenance(self) -> dict[str, Any]:
        """Versions and fingerprints."""
        report = self.report
        return {
            "note": NO_CLAIM,
            "date": self.about.date,
            "rows": self.rows,
            "source": self.about.source,
            "source_sha256": self.sources,
            "rule_fingerprint": None if report is None else report.rule_fingerprint,
            "data_fingerprint": None if report is None else report.data_fingerprint,
            "fit_data_fingerprint": None if report is None else report.fit_fingerprint,
            "is_fit_data": None if report is None else report.in_sample,
            "versions": self.versions,
        }


def _together(tables: list[tuple[str, Table]], which: str) -> Table:
    """Tables below each other, with what each is about in two more columns."""
    columns: dict[str, list[Any]] = {}
    for name, table in tables:
        n, known = len(table), table.to_dict()
        rows = {which: [name] * n, "by": [table.heading("category")] * n, **known}
        rows["category"] = list(map(show_label, known["category"]))
        rows.setdefault("below_2_percent", ["no"] * n)
        rows.setdefault("impact_ratio_without_these", known["impact_ratio"])
        for column, values in rows.items():
            columns.setdefault(column, []).extend(values)
    names = (which, "by", "category", "below_2_percent")
    shares = [name for name in columns if name == "share_of_people" or name.endswith("_rate")]
    return Table(
        {name: name_column(v) if name in names else v for name, v in columns.items()},
        decimals=2,
        shares=shares,
    )


def finding(impact: Impact, verb: str = "selected") -> str:
    """The categories with the highest and the lowest rate, in a sentence."""
    labels = [plain_name(show_label(label)) for label in impact.categories.labels]
    rates, ratios = impact.rates, impact.ratios
    if not rates.max() > 0:
        return f"Nobody is {verb}, so there are no impact ratios."
    if len(labels) == 1:
        return f"There is one category, {labels[0]}, so there is nothing to compare."
    high, low = int(rates.argmax()), int(rates.argmin())
    return (
        f"Highest rate: {labels[high]}, {percent(rates[high])}. Lowest impact ratio: {labels[low]}, "
        f"{number(ratios[low], 2)} ({percent(rates[low])} of {impact.categories.people[low]:,} people)."
    )
