"""The content of a report on a rule for several classes, and how it is computed.

    rows  →  an audit before and after, people whose class changes  →  ClassContent

Rows, verdicts and limits for new people are those of other reports. The rates are those of each class, and there
is no slider. All numbers of people count rows, whatever their weights.
"""

import platform
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairramp._version import __version__
from fairramp.core.cells import stratum_index
from fairramp.core.checks import check_number
from fairramp.core.curve import Floats
from fairramp.core.events import class_event
from fairramp.core.headline import SMALL_GROUP
from fairramp.core.labels import label_key, show_labels
from fairramp.data.classes import ClassSample
from fairramp.data.probable import refuse_probabilities
from fairramp.errors import FairrampWarning, InputError
from fairramp.measure.certificate import Certificate
from fairramp.measure.class_audit import audit_class_sample
from fairramp.measure.class_audited import ClassSelection
from fairramp.measure.class_fresh import certify_class_sample, class_fingerprint
from fairramp.measure.class_means import ClassRowTallies
from fairramp.measure.means import Sums
from fairramp.rule.class_rule import ClassRule
from fairramp.show import sentences
from fairramp.show.report.content import Group, PageContent, about_of, title_of
from fairramp.show.report.measured import share_interval
from fairramp.show.report.verdicts import Evidence, Judgment, Limit, judge
from fairramp.show.words import plain_name


@dataclass(frozen=True)
class ClassChanges:
    """Expected changes, for each class and in it for each group.

    Attributes
    ----------
    gain, lose : tuple of tuple of float
        People who newly get the class, and people who no longer get it.
    gain_share, lose_share : tuple of tuple of float
        The same as shares of the group, by weight.
    """

    gain: tuple[tuple[float, ...], ...]
    lose: tuple[tuple[float, ...], ...]
    gain_share: tuple[tuple[float, ...], ...]
    lose_share: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class ClassContent(PageContent):
    """All numbers and sentences of the report of a rule for several classes; see also `PageContent`.

    Attributes
    ----------
    classes : tuple of str
        Names of the classes, in the rule's order.
    offsets : tuple of tuple of float
        For each group, what is subtracted from the score of every class.
    before, after : ClassSelection
        Rates, gaps and errors of the classifier's own decisions and of the rule, as in an audit.
    overall_before, overall_after : tuple of float
        Rate of each class among everybody.
    rows_by_label : tuple of tuple of int, or None
        For each group, the number of rows of each true class; None without labels.
    accuracy_interval : pair of float, or None
        Confidence limits of the accuracy of the rule; None without labels.
    changes : ClassChanges
        People who newly get a class, and people who no longer get it.
    changed : tuple of float
        Share of each group whose decision changes.
    overall_changed, drawn : float
        Share of all decisions that change, and share decided at random.
    people_changed, people_drawn : float
        The same as expected numbers of people.
    wrong_before, wrong : float or None
        Expected number of people whose decision disagrees with their label; None without labels.
    guarantee : Guarantee
        The limits on the gap in the population, in words and in numbers.
    judgment : Judgment
        The verdicts on these rows and for new people.
    largest_gaps : pair of float
        Largest gap of a class before and after, between the groups that are large enough to judge.
    """

    classes: tuple[str, ...]
    offsets: tuple[tuple[float, ...], ...]
    before: ClassSelection
    after: ClassSelection
    overall_before: tuple[float, ...]
    overall_after: tuple[float, ...]
    rows_by_label: tuple[tuple[int, ...], ...] | None
    accuracy_interval: tuple[float, float] | None
    changes: ClassChanges
    changed: tuple[float, ...]
    overall_changed: float
    drawn: float
    people_changed: float
    people_drawn: float
    wrong_before: float | None
    wrong: float | None
    guarantee: sentences.Guarantee
    judgment: Judgment
    largest_gaps: tuple[float, float]


def make_class_content(
    rule: ClassRule,
    probabilities: Any,
    groups: Any,
    labels: Any = None,
    *,
    strata: Any = None,
    sample_weight: Any = None,
    title: str | None = None,
    decision: str | None = None,
    owner: str | None = None,
    source: str | None = None,
    date: str | None = None,
    review_date: str | None = None,
    confidence: float = 0.95,
    group_probabilities: Any = None,
    left_out: str | None = None,
) -> ClassContent:
    """Compute the content of a report; see `ClassRule.report`."""
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    dates = {"date": date, "review_date": review_date}
    about = about_of(title, decision=decision, owner=owner, source=source, left_out=left_out, **dates)
    refuse_probabilities(groups, "A report by true group")
    record, event = rule.record, class_event(rule.classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairrampWarning)  # the notes say it instead
        given = rule.sample(
            probabilities,
            groups,
            labels,
            strata=strata,
            sample_weight=sample_weight,
            group_probabilities=group_probabilities,
            drop_empty=True,
        )
        sample, missing = _known(rule, given)
        found = audit_class_sample(sample, rule, confidence)
    fingerprint = class_fingerprint(rule, given)
    in_sample = None if record is None else record.fingerprint == fingerprint
    rows = _Rows.of(rule, sample)
    names = tuple(map(plain_name, show_labels(found.groups)))
    small = np.array(found.rows) < SMALL_GROUP
    known: Certificate | str = (
        certify_class_sample(rule, confidence, sample)
        if in_sample is False
        else sentences.FRESH_ONLY[in_sample].format(parts="offsets")
    )
    assert found.after is not None
    assert found.changed is not None
    assert found.overall_changed is not None
    assert found.randomized is not None
    evidence = Evidence(
        event,
        found.before,
        found.after,
        names,
        found.rows,
        small,
        rows.strata,
        is_new=in_sample is False,
        has_drifted=False,
    )
    limit = Limit(rule.max_gap, False, confidence)
    columns = rule.columns.grouped or sample.columns.groups or ("group",)
    group_name = plain_name(" / ".join(columns))
    return ClassContent(
        title=title_of(title, about, "rates of each class", group_name),
        about=about,
        group_name=group_name,
        rows=len(sample),
        weighted=sample.weights is not None,
        labeled=sample.labels is not None,
        confidence=confidence,
        settings={
            "max_gap": rule.max_gap,
            "ramp_width": rule.ramp_width,
            "decimals": rule.decimals,
            "stratified": rule.stratified,
            "membership": rule.membership,
            "unseen_group": rule.unseen_group,
            "date": record.date if record else None,
        },
        groups=tuple(Group(name, n, bool(few)) for name, n, few in zip(names, found.rows, small, strict=True)),
        notes=(
            *missing,
            *sentences.class_notes(found.groups, found.rows, in_sample),
            *(found.group_model.sentences() if found.group_model else ()),
        ),
        limits=sentences.limits(event, rule.membership),
        data_fingerprint=fingerprint,
        fit_fingerprint=record.fingerprint if record else None,
        rule_fingerprint=rule.fingerprint,
        in_sample=in_sample,
        versions={
            "fairramp": __version__,
            "fitted with": record.version if record else "unknown",
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        classes=tuple(plain_name(part.name) for part in event.parts),
        offsets=_offsets(rule, found.groups),
        before=found.before,
        after=found.after,
        overall_before=rows.overall(rows.own),
        overall_after=rows.overall(rows.chances),
        rows_by_label=found.rows_by_label,
        accuracy_interval=None if rows.right is None else share_interval(rows.sums, rows.right, confidence),
        changes=rows.changes(),
        changed=found.changed,
        overall_changed=found.overall_changed,
        drawn=found.randomized,
        people_changed=float(np.maximum(rows.own - rows.chances, 0.0).sum()),
        people_drawn=float((rows.chances.max(axis=0) < 1).sum()),
        wrong_before=None if rows.own_right is None else float((1 - rows.own_right).sum()),
        wrong=None if rows.right is None else float((1 - rows.right).sum()),
        guarantee=sentences.Guarantee(known)
        if isinstance(known, str)
        else sentences.guarantee(known, len(rule.groups) > 1),
        judgment=judge(rule, limit, evidence, known),
        largest_gaps=(
            evidence.furthest(limit, evidence.judged, before=True),
            evidence.furthest(limit, evidence.judged),
        ),
    )


def _known(rule: ClassRule, sample: ClassSample) -> tuple[ClassSample, list[str]]:
    """The rows of groups that the rule knows, and notes on what is missing."""
    assert sample.cells is not None
    if sample.membership is None:
        rule.offsets_of(sample.cells)  # raises for unseen groups, unless the rule has a policy for them
    labels, places = sample.cells.labels, set(map(label_key, rule.groups))
    known, occurring = np.array([label_key(label) in places for label in labels]), sample.cells.occurring()
    keep = known[sample.cells.block(0, len(sample))]
    if not keep.any():
        raise InputError("No group of the rule has rows here")
    notes = sentences.coverage(
        int((~keep).sum()),
        int((occurring & ~known).sum()),
        len(rule.groups) - int((occurring & known).sum()),
        len(rule.groups),
    )
    return sample if keep.all() else sample.take(keep), notes


def _offsets(rule: ClassRule, groups: tuple[Any, ...]) -> tuple[tuple[float, ...], ...]:
    """The offsets of the given groups."""
    known = dict(zip(map(label_key, rule.groups), rule.offsets, strict=True))
    return tuple(known[label_key(label)] for label in groups)


@dataclass(frozen=True)
class _Rows:
    """Rows with their chances, of shape (C, n), and the chance of their true class."""

    tallies: ClassRowTallies
    sums: Sums
    own: Floats
    chances: Floats

    @classmethod
    def of(cls, rule: ClassRule, sample: ClassSample) -> "_Rows":
        tallies, n = ClassRowTallies.of(sample), len(sample)
        weights = np.ones(n) if sample.weights is None else sample.weights
        sums = Sums(tallies.codes, weights, len(tallies.groups), weights**2, np.ones(n, dtype=np.intp))
        return cls(tallies, sums, tallies.own, rule.chances(sample).T)

    @property
    def strata(self) -> Any:
        """Index of each group's stratum; None without strata."""
        sample = self.tallies.sample
        return None if sample.cells is sample.groups else stratum_index(self.tallies.groups)

    @property
    def right(self) -> Floats | None:
        """The chance that the rule's decision is the true class."""
        return self._true(self.chances)

    @property
    def own_right(self) -> Floats | None:
        """Whether the classifier's own decision is the true class."""
        return self._true(self.own)

    def _true(self, chances: Floats) -> Floats | None:
        labels = self.tallies.sample.labels
        return None if labels is None else np.clip(chances[labels, np.arange(len(labels))], 0.0, 1.0)

    def overall(self, chances: Floats) -> tuple[float, ...]:
        """The rate of each class among everybody."""
        return tuple(self.sums.overall(one) for one in chances)

    def changes(self) -> ClassChanges:
        """People who newly get each class, and who no longer get it."""
        difference = self.chances - self.own
        more, less = np.maximum(difference, 0.0), np.maximum(-difference, 0.0)

        def by_group(per_group: Any, amounts: Floats) -> tuple[tuple[float, ...], ...]:
            return tuple(tuple(per_group(one).tolist()) for one in amounts)

        return ClassChanges(
            by_group(self.sums.total, more),
            by_group(self.sums.total, less),
            by_group(self.sums.mean, more),
            by_group(self.sums.mean, less),
        )
