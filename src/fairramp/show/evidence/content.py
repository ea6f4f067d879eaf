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
    def fit_rows(self) -> str | None:
        """Whether the rule was fitted on these rows, in a sentence; None without a rule."""
        return None if self.report is None else _FIT_ROWS[self.report.in_sample]

    @property
    def findings(self) -> Table:
        """The highest rate and the lowest impact ratio of each table of decisions."""
        pairs = [(one.name, impact) for one in self.decided for impact in one.impacts]
        ends = [extremes(impact) for _, impact in pairs]
        return Table(
            {
                "decisions": [name for name, _ in pairs],
                "by": [impact.categories.name for _, impact in pairs],
                "highest rate": [f"{rate}, {high}" for (high, rate), _ in ends],
                "lowest impact ratio": [f"{ratio}, {low}" for _, (low, ratio) in ends],
            }
        )

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
            "people_of_unknown_category": {
                impact.categories.name: impact.categories.unknown for impact in self.decided[0].impacts
            },
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
        rows["category"] = list(map(show_label, known["category"]))
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


def extremes(impact: Impact) -> tuple[tuple[str, str], tuple[str, str]]:
    """The category with the highest rate, with that rate, and the one with the lowest impact ratio, likewise."""
    labels = [plain_name(show_label(label)) for label in impact.categories.labels]
    high, low = int(impact.rates.argmax()), int(impact.rates.argmin())
    return (labels[high], percent(impact.rates[high])), (labels[low], number(impact.ratios[low], 2))


def finding(impact: Impact, verb: str = "selected") -> str:
    """The same in a sentence."""
    (high, highest), (low, ratio) = extremes(impact)
    if not impact.rates.max() > 0:
        return f"Nobody is {verb}, so there are no impact ratios."
    if len(impact.rates) == 1:
        return f"There is one category, {high}, so there is nothing to compare."
    i = int(impact.rates.argmin())
    return (
        f"Highest rate: {high}, {highest}. Lowest impact ratio: {low}, {ratio} "
        f"({percent(impact.rates[i])} of {impact.categories.people[i]:,} people)."
    )
