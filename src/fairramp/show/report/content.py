"""What a report says: every number of it, for a grid of tolerances, before anything is drawn.

    rows  →  one rule per max_gap  →  one summary that is exact for all of them  →  Content

The rule's own max_gap is measured with the rule itself. For every other one a rule with its settings is fitted to
the given rows, as `fit_rule` would. Content is plain frozen data: `to_json` has all that the page shows, and the
same input gives the same bytes.
"""

import json
import platform
import warnings
from dataclasses import asdict, dataclass, replace
from math import ceil, floor, log10
from typing import Any

import numpy as np

from fairramp._version import __version__
from fairramp.core.checks import check_number
from fairramp.core.curve import Floats, Integers
from fairramp.core.labels import show_label
from fairramp.core.scales import SCALES
from fairramp.data.sample import Names
from fairramp.errors import FairrampWarning, InputError, shown
from fairramp.fit.fit import SMALL_GROUP, fit_rows
from fairramp.fit.outcomes import LabelledScores
from fairramp.measure.audit import Selection
from fairramp.rule.rule import Rule
from fairramp.show import sentences
from fairramp.show.report.measured import Measured, PlacedRamps, Sample
from fairramp.show.words import plain_name

__all__ = ["Content", "Group", "Outcome", "make_content"]

#: Up to so many groups, steps of the slider at most.
STEPS = ((12, 40), (300, 20))
#: Steps for still more groups.
FEWEST_STEPS = 10
#: Steps finer than this, in a gap, would read alike.
SMALLEST_STEP = 0.0005
#: With more groups only the rule itself is certified: a certificate takes a second for 200.
MOST_CERTIFIED = 60


@dataclass(frozen=True)
class Group:
    """A group as the classifier's own decisions leave it.

    Attributes
    ----------
    name : str
        Its label as text.
    rows : int
        Its rows.
    small : bool
        Whether they are so few that chance rules.
    rate, lower, upper : float
        Selection rate of the classifier's own decisions and its confidence limits.
    accuracy, true_positive_rate, false_positive_rate : float or None
        With labels.
    histogram : tuple of float
        Share of its weight in each of equally wide parts of the score range.
    """

    name: str
    rows: int
    small: bool
    rate: float
    lower: float
    upper: float
    accuracy: float | None
    true_positive_rate: float | None
    false_positive_rate: float | None
    histogram: tuple[float, ...]


@dataclass(frozen=True)
class Outcome:
    """What the rule for one max_gap does; tuples have one entry per group.

    Attributes
    ----------
    max_gap : float
        The tolerance.
    is_own : bool
        Whether this is the reported rule itself.
    stands : bool
        Whether it leaves every decision as it is.
    ramp_width : float
        Width of its ramps, in the units of the thresholds.
    target_rate : float or None
        Where the rates meet.
    thresholds, ramp_from, ramp_to, tie_chances : tuple of float
        Its ramps, in the units of the scores: percent for percentages, but probabilities for logits.
    rates, lower, upper : tuple of float
        Selection rates and their confidence limits.
    changed_to_yes, changed_to_no : tuple of float
        Share of each group whose decision it turns round.
    gap, ratio : float
        Largest difference of two groups' rates, and smallest rate divided by the largest.
    gap_interval, ratio_interval : pair of float
        Their confidence limits.
    changed, drawn : float
        Share of all decisions that change, and that are drawn.
    accuracy : float or None
        Share of right decisions, with labels.
    accuracy_interval : pair of float, or None
        Its confidence limits.
    group_accuracy, true_positive_rate, false_positive_rate : tuple of float or None
        Per group; None without labels, and where a group has no row that counts.
    promise : Promise
        What is certified.
    sentence : str
        What it does, in words.
    """

    max_gap: float
    is_own: bool
    stands: bool
    ramp_width: float
    target_rate: float | None
    thresholds: tuple[float, ...]
    ramp_from: tuple[float, ...]
    ramp_to: tuple[float, ...]
    tie_chances: tuple[float, ...]
    rates: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    changed_to_yes: tuple[float, ...]
    changed_to_no: tuple[float, ...]
    gap: float
    gap_interval: tuple[float, float]
    ratio: float
    ratio_interval: tuple[float, float]
    changed: float
    drawn: float
    accuracy: float | None
    accuracy_interval: tuple[float, float] | None
    group_accuracy: tuple[float | None, ...] | None
    true_positive_rate: tuple[float | None, ...] | None
    false_positive_rate: tuple[float | None, ...] | None
    promise: sentences.Promise
    sentence: str


@dataclass(frozen=True)
class Content:
    """All that a report says.

    Attributes
    ----------
    title : str
        As given, or made from the names of the columns.
    group_name : str
        What the groups are called.
    rows : int
        Rows that were measured.
    weighted, labelled : bool
        Whether they had weights and labels.
    confidence : float
        Of every interval.
    score_range : pair of float
        Ends of the histograms, in the units of the thresholds.
    cutoff : float
        Where the classifier says yes, in the units of the thresholds.
    settings : dict
        The rule's settings: its ramp width in the units of the thresholds, its cut-off as a score.
    groups : tuple of Group
        In the rule's order.
    gap, ratio : float
        Of the classifier's own decisions.
    gap_interval, ratio_interval : pair of float
        Their limits.
    accuracy : float or None
        Of the classifier's own decisions.
    sentence : str
        What they do, in words.
    outcomes : tuple of Outcome
        By ascending max_gap.
    own : int
        Which of them is the reported rule.
    is_kept : bool or None
        Whether these rows leave what was promised standing, as `Rule.check` says; None without a certificate.
    drift : str or None
        The same in words; None where it is no question, on the rows of the fit.
    notes, limits : tuple of str
        What to mind about these rows, and about any such report.
    data_fingerprint, fit_fingerprint, rule_fingerprint : str or None
        Of these rows, of the fit rows and of the rule.
    in_sample : bool or None
        Whether these rows look like those of the fit; None if it cannot be told.
    versions : dict
        What computed it.
    """

    title: str
    group_name: str
    rows: int
    weighted: bool
    labelled: bool
    confidence: float
    score_range: tuple[float, float]
    cutoff: float
    settings: dict[str, Any]
    groups: tuple[Group, ...]
    gap: float
    gap_interval: tuple[float, float]
    ratio: float
    ratio_interval: tuple[float, float]
    accuracy: float | None
    sentence: str
    outcomes: tuple[Outcome, ...]
    own: int
    is_kept: bool | None
    drift: str | None
    notes: tuple[str, ...]
    limits: tuple[str, ...]
    data_fingerprint: str
    fit_fingerprint: str | None
    rule_fingerprint: str
    in_sample: bool | None
    versions: dict[str, str]

    @property
    def chosen(self) -> Outcome:
        """The reported rule."""
        return self.outcomes[self.own]

    @property
    def largest(self) -> tuple[int, ...]:
        """The groups from the largest to the smallest."""
        return tuple(sorted(range(len(self.groups)), key=lambda i: -self.groups[i].rows))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON."""
        return asdict(self)

    def to_json(self) -> str:
        """Everything as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def make_content(
    rule: Rule,
    scores: Any,
    groups: Any,
    labels: Any = None,
    *,
    strata: Any = None,
    sample_weight: Any = None,
    title: str | None = None,
    confidence: float = 0.95,
) -> Content:
    """Compute the content of a report; see `Rule.report`."""
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    if not isinstance(title, str | None):
        raise InputError(f"`title` must be text, got {shown(title)}.")
    sample = Sample.of(rule, scores, groups, labels, strata, sample_weight)
    n_groups, cell_strata = len(sample.labels), sample.strata
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairrampWarning)  # said in the notes instead
        rules = _rules(rule, sample)
    own = next(i for i, one in enumerate(rules) if one is rule)
    refit = next((one for one in rules if one is not rule), None)
    assert refit is not None
    assert refit.record is not None
    ramps = [PlacedRamps.of(one, sample.labels) for one in rules]
    measured = Measured.of(sample, ramps)

    before = measured.select(measured.own, confidence, cell_strata)
    names = tuple(plain_name(show_label(label)) for label in sample.labels)
    outcomes = []
    refused = sentences.refusal(rule, confidence)
    for one, placed in zip(rules, ramps, strict=True):
        chances = placed.chances(measured)
        after = measured.select(chances, confidence, cell_strata)
        outcomes.append(
            _outcome(
                one,
                one is rule,
                placed,
                measured,
                chances,
                before,
                after,
                names,
                cell_strata,
                confidence,
                refused,
            )
        )
    fingerprint = refit.record.fingerprint
    fitted = rule.record.fingerprint if rule.record else None
    in_sample = sentences.is_in_sample(rule, fingerprint, measured.rows, before.rate, outcomes[own].rates)
    checked = None
    if refused is None:
        checked = rule.check(scores, groups, strata=strata, sample_weight=sample_weight, confidence=confidence)
    notes = (*sample.notes, *sentences.notes(rule, names, measured.rows, in_sample))
    histograms = measured.histograms(sample)
    units = sample.scale.shown_per_unit
    return Content(
        title=plain_name(title) if title else "Who is selected?",
        group_name=plain_name(" / ".join([*(rule.strata_columns or ()), *(rule.group_columns or ())]) or "group"),
        rows=int(measured.rows.sum()),
        weighted=sample.weights is not None,
        labelled=sample.outcomes is not None,
        confidence=confidence,
        score_range=(sample.scale.lowest * units, sample.scale.highest * units),
        cutoff=sample.cutoff if rule.scale == "logit" else rule.cutoff,
        settings={
            "max_gap": rule.max_gap,
            "target_rate": rule.record.target if rule.record else rule.target_rate,
            "ramp_width": (rule.record.ramp_width if rule.record else rule.ramp_width) * units,
            "ramp": rule.ramp,
            "scale": rule.scale,
            "cutoff": rule.cutoff,
            "criterion": rule.criterion,
            "unseen_group": rule.unseen_group,
            "solver": rule.record.solver if rule.record else None,
            "date": rule.record.date if rule.record else None,
        },
        groups=tuple(
            Group(
                name=names[k],
                rows=int(measured.rows[k]),
                small=bool(measured.rows[k] < SMALL_GROUP),
                rate=before.rate[k],
                lower=before.lower[k],
                upper=before.upper[k],
                accuracy=_at(before.accuracy, k),
                true_positive_rate=_at(before.true_positive_rate, k),
                false_positive_rate=_at(before.false_positive_rate, k),
                histogram=tuple(histograms[k].tolist()),
            )
            for k in range(n_groups)
        ),
        gap=before.gap,
        gap_interval=before.gap_interval,
        ratio=before.ratio,
        ratio_interval=before.ratio_interval,
        accuracy=before.overall_accuracy,
        sentence=sentences.comparison(before.rate, names, cell_strata),
        outcomes=tuple(outcomes),
        own=own,
        is_kept=None if checked is None else checked.is_kept,
        drift=None if checked is None else sentences.drift(checked, in_sample, confidence),
        notes=notes,
        limits=sentences.LIMITS,
        data_fingerprint=fingerprint,
        fit_fingerprint=fitted,
        rule_fingerprint=rule.fingerprint,
        in_sample=in_sample,
        versions={
            "fairramp": __version__,
            "fitted with": rule.record.version if rule.record else "unknown",
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    )


# The rules --------------------------------------------------------------------------------------


def _rules(rule: Rule, sample: Sample) -> list[Rule]:
    """A rule for each position of the slider; the given one at its own."""
    rows, request = sample.rows(), sample.request
    names = Names(None, rule.group_columns, rule.strata_columns)
    weighted = sample.weights is not None
    labelled = None
    if request.needs_labels:
        assert sample.outcomes is not None
        positions = rows.positions(0, len(sample.column))
        labelled = LabelledScores.from_rows(sample.codes, positions, sample.outcomes, sample.weights)

    def fitted(max_gap: float) -> Rule:
        one = replace(request, problem=replace(request.problem, max_gap=max_gap))
        return fit_rows(rows, one, names, weighted=weighted, labelled=labelled)

    first = fitted(0.0)
    assert first.record is not None
    found = {0.0: first}
    for gap in _grid(first.record.gap_before, len(sample.labels))[1:]:
        found[gap] = fitted(gap)
    if rule.max_gap == 0 and len(found) == 1:  # something to compare with, also if all is equal already
        found[0.01] = fitted(0.01)
    found[rule.max_gap] = rule
    return [found[gap] for gap in sorted(found)]


def _grid(gap: float, n_groups: int) -> list[float]:
    """Round numbers from 0 to the first that is not below the gap."""
    steps = next((steps for limit, steps in STEPS if n_groups <= limit), FEWEST_STEPS)
    if gap <= 1e-9:
        return [0.0]
    wanted = max(gap / steps, SMALLEST_STEP * (1 - 1e-9))
    exponent = floor(log10(wanted))
    step = next(s for s in (f * 10.0**exponent for f in (1, 2, 5, 10)) if s >= wanted * (1 - 1e-9))
    values = [round(step * i, 12) for i in range(ceil(gap / step - 1e-9) + 1)]
    return [min(value, 1.0) for value in values]


def _outcome(
    rule: Rule,
    is_own: bool,
    ramps: PlacedRamps,
    measured: Measured,
    chances: Floats,
    before: Selection,
    after: Selection,
    names: tuple[str, ...],
    strata: Integers | None,
    confidence: float,
    refused: str | None,
) -> Outcome:
    sums, own = measured.sums, measured.own
    more, less = np.maximum(chances - own, 0.0), np.maximum(own - chances, 0.0)
    drawn = ((chances > 0) & (chances < 1)).astype(np.float64)
    stands = not (more.any() or less.any())
    units = SCALES[rule.scale].shown_per_unit
    may_certify = is_own or len(names) <= MOST_CERTIFIED
    return Outcome(
        max_gap=rule.max_gap,
        is_own=is_own,
        stands=stands,
        ramp_width=ramps.width * units,
        target_rate=rule.target_rate,
        thresholds=_floats(ramps.thresholds * units),
        ramp_from=_floats(ramps.feet * units),
        ramp_to=_floats((ramps.feet + ramps.width) * units),
        tie_chances=_floats(ramps.tie_chances),
        rates=after.rate,
        lower=after.lower,
        upper=after.upper,
        changed_to_yes=_floats(sums.mean(more)),
        changed_to_no=_floats(sums.mean(less)),
        gap=after.gap,
        gap_interval=after.gap_interval,
        ratio=after.ratio,
        ratio_interval=after.ratio_interval,
        changed=measured.share(more + less),
        drawn=measured.share(drawn),
        accuracy=after.overall_accuracy,
        accuracy_interval=measured.accuracy_interval(chances, confidence),
        group_accuracy=_known(after.accuracy),
        true_positive_rate=_known(after.true_positive_rate),
        false_positive_rate=_known(after.false_positive_rate),
        promise=sentences.promise(
            rule, confidence, may_certify, len(names), refused if is_own else sentences.also(refused)
        ),
        sentence=sentences.verdict(before, after, names, strata, stands),
    )


def _floats(values: Floats) -> tuple[float, ...]:
    return tuple(values.tolist())


def _known(values: tuple[float, ...] | None) -> tuple[float | None, ...] | None:
    """NaN, where no row counts, as None."""
    return None if values is None else tuple(None if v != v else v for v in values)


def _at(values: tuple[float, ...] | None, k: int) -> float | None:
    known = _known(values)
    return None if known is None else known[k]
