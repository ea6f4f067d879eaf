"""A report on a rule that is still changing: rows are read once, and each move is a fit and a few sums.

rows in memory  →  what no setting changes: codes, bins, sums of labels
settings        →  rule, content of its report  →  the same page in parts, and what changes in its charts
"""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fairramp.core.scales import Scale
from fairramp.core.words import upward_points
from fairramp.data.columns import Columns
from fairramp.data.labeled import LabeledBins
from fairramp.data.rows import ArrayRows, BinnedRows
from fairramp.data.sample import Sample
from fairramp.errors import FairrampWarning
from fairramp.fit.cells import FitRows
from fairramp.fit.fit import fit_rows
from fairramp.fit.outcomes import LabeledScores
from fairramp.fit.settings import Settings
from fairramp.fit.targets import FromLabels, by_labels
from fairramp.measure.certificate import certify
from fairramp.rule.rule import Rule
from fairramp.show import sentences
from fairramp.show.report.charts import content_charts, live_tables
from fairramp.show.report.content import Content, about_of
from fairramp.show.report.make import content_of
from fairramp.show.report.measured import KnownRows, Measured, numbered_rows
from fairramp.show.report.page import MOST_ROWS, answers_of, filled, page_parts, table_parts
from fairramp.show.report.slider import Sources
from fairramp.show.report.tables import audit_table, columns_table, values
from fairramp.show.words import largest

#: Confidence level of all intervals and limits.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class LiveRows:
    """Rows in memory, to which many rules are fitted; groups are neither weighted nor in strata."""

    sample: Sample

    @classmethod
    def of(cls, scores: Any, groups: Any, labels: Any, scale: Scale, score_column: str) -> "LiveRows":
        """Check and encode the rows."""
        sample = Sample.of_arrays(scores, groups, labels, scale=scale)
        return cls(replace(sample, columns=Columns(score_column, sample.columns.groups)))

    def turned(self, scale: Scale) -> "LiveRows":
        """The same rows, whose scores mean something else."""
        return LiveRows(replace(self.sample, scale=scale))

    @cached_property
    def _numbered(self) -> ArrayRows:
        return numbered_rows(self.sample)

    @cached_property
    def _by_label(self) -> ArrayRows:
        return self.sample.rows_by_label()

    @cached_property
    def _bins(self) -> LabeledBins:
        assert self.sample.labels is not None
        return LabeledBins.of_arrays(self.sample.rows, self.sample.labels)

    @cached_property
    def _labeled(self) -> LabeledScores:
        return LabeledScores.of_bins(self._bins, self.sample.scale)

    def fit(self, settings: Settings) -> Rule:
        """The rule that `fit_rule` would fit."""
        sample = self.sample
        settings.check_rows(labeled=sample.labels is not None, stratified=False, weighted=False)
        found: FromLabels = (
            {"labeled": self._labeled} if settings.by_labels else by_labels(settings, lambda: self._bins)
        )
        rows = FitRows(sample.rows)
        if settings.event.needs_labels:
            everyone = BinnedRows(self._bins.scores) if settings.by_labels else sample.rows
            rows = FitRows(everyone, self._by_label)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairrampWarning)  # the notes of the page say it instead
            return fit_rows(rows, settings, sample.columns, stratified=False, weighted=False, **found)

    def content(self, settings: Settings, *, decision: str | None = None, source: str | None = None) -> Content:
        """The content of a report on the rule with these settings."""
        rule, known = self.fit(settings), KnownRows(self.sample, settings, ())
        assert rule.record is not None
        return content_of(
            rule,
            [rule],
            known,
            Measured.of(known, [rule], CONFIDENCE, self._numbered),
            about_of(None, decision=decision, source=source),
            title=None,
            sources=Sources(source),
            fingerprint=rule.record.fingerprint,
            in_sample=True,
            own_limits=sentences.refusal(rule) or certify(rule, CONFIDENCE),
        )


def live_parts(content: Content) -> dict[str, Any]:
    """The page in parts: HTML of the audit and of the report, chart parameters, answers and key figures."""
    parts = page_parts(content)
    said, judgment = parts.said[content.own], content.chosen.judgment
    return {
        "audit": filled(
            "audit.html",
            content,
            judgment,
            said,
            [],
            live=True,
            sentence=f"{content.sentence} {content.selected_sentence}".rstrip(),
            table=_audit(content),
        ),
        "report": filled(
            "live.html",
            content,
            judgment,
            said,
            parts.tables,
            live=True,
            layout="fragment.html",
            frontier=None,
            **parts.more,
        ),
        "tables": live_tables(content),
        "answers": answers_of(content, parts.forms),
        "headline": said["headline"][0],
        "figures": _figures(content, said),
    }


def live_charts(content: Content) -> dict[str, Any]:
    """The charts, for rules with this criterion and direction; the tables of `live_parts` change them."""
    return content_charts(content, live=True)


def _audit(content: Content) -> dict[str, Any]:
    """The classifier's own rates, as a table of the page."""
    table = audit_table(content)
    seats = largest(content.sizes, MOST_ROWS)
    cells = [values(content, content.chosen, column, seats) for column in table.columns]
    return table_parts(content, table, cells, columns_table(content, table))


def _figures(content: Content, said: dict[str, tuple[str, str]]) -> list[tuple[str, str]]:
    """What two rules are compared by, in words and numbers."""
    limits, simple = content.chosen.guarantee, content.event.simple
    return [
        ("Verdict", content.chosen.judgment.headline),
        *((f"Gap between {event.rate}s", said[f"gap_{event.name}"][0]) for event in simple),
        *((f"Ratio of {event.rate}s", said[f"ratio_{event.name}"][0]) for event in simple),
        ("Estimated limit for new people", _limit(limits.estimated)),
        ("Proven limit for new people", _limit(limits.proven)),
        ("Selected overall", said["overall_rate"][0]),
        ("Accuracy", said["accuracy"][0] if "accuracy" in said else "unknown without outcomes"),
        ("Different answers", f"{said['changed_number'][0]} {said['changed_rest'][0].partition('answer ')[2]}"),
        ("Decided at random", f"{said['drawn_number'][0]} {said['drawn_rest'][0].partition('random ')[2]}"),
    ]


def _limit(value: float | None) -> str:
    """A limit for new people, rounded up as in the verdict."""
    return "none" if value is None or value >= 1 else upward_points(value)
