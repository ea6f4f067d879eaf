"""What a report says: every number of it, for a grid of tolerances, before anything is drawn.

    rows  →  one rule per max_gap  →  one summary that is exact for all of them  →  Content

The rule's own max_gap is measured with the rule itself. For every other one a rule with its settings is fitted to
the given rows, as `fit_rule` would. Cells of the summary are (group, label), so that rates, changes and errors
alike are sums over its points and no row is looked at again. Content is plain frozen data: `to_json` has all that
the page shows, and the same input gives the same bytes.
"""

import json
import platform
import warnings
from dataclasses import asdict, dataclass, replace
from math import ceil, floor, log10
from typing import Any

import numpy as np

from fairramp._version import __version__
from fairramp.audit import Selection, Sums, selection
from fairramp.calibration import LabelledScores
from fairramp.certificate import Certificate, certify
from fairramp.distribution import Floats, Integers
from fairramp.exceptions import FairrampError, FairrampWarning, InputError
from fairramp.fitting import SMALL_GROUP, Names, Request, counting_rows, fit_rows
from fairramp.groups import Codes, Label, label_key, show_label
from fairramp.inputs import as_labels, as_scores, as_weights, check_length, check_number
from fairramp.intervals import normal_quantile
from fairramp.report.words import isolated, percent, plain_name, points, times
from fairramp.rows import ArrayRows
from fairramp.rule import OFFSETS, Rule
from fairramp.scales import SCALES
from fairramp.strata import strata_slices, stratum_index
from fairramp.summary import Summary

__all__ = ["Content", "Group", "Outcome", "make_content"]

#: Parts of the score range in a histogram; a power of two, so that bins of a summary fall into one each.
PARTS = 64
#: Up to so many groups, steps of the slider at most.
STEPS = ((12, 40), (300, 20))
#: Steps for still more groups.
FEWEST_STEPS = 10
#: Steps finer than this, in a gap, would read alike.
SMALLEST_STEP = 0.0005
#: With more groups only the rule itself is certified: a certificate takes a second for 200.
MOST_CERTIFIED = 60

LIMITS = (
    "Equal selection rates are one narrow notion of fairness. Equal error rates, or equal treatment of people "
    "who are alike, are others, and in general they cannot all hold together.",
    "The rule takes the scores as they are. It cannot tell whether they measure the right thing, or measure it "
    "equally well in every group.",
    "Labels, where given, are records of past outcomes and may carry past bias; accuracy measured against them "
    "inherits it.",
    "Some decisions near a threshold are drawn by lot, and every rate here is an expectation over such draws.",
    "Groups that are not in the data, and splits within the groups shown, are not covered.",
    "Using a protected attribute to decide, even in order to equalise, is restricted or unlawful in some places "
    "and for some decisions. This page is no legal advice: ask before you deploy.",
)


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
class Promise:
    """A certificate in numbers and in one sentence.

    Attributes
    ----------
    gap : float or None
        The gap that is certified; None if nothing is.
    kind : str or None
        Which bound.
    is_theorem : bool
        Whether it is proven in this case.
    proven_gap : float or None
        The smallest proven bound.
    sentence : str
        The same in words.
    assumptions : str
        What it rests on.
    """

    gap: float | None
    kind: str | None
    is_theorem: bool
    proven_gap: float | None
    sentence: str
    assumptions: str


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
    promise: Promise
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
        raise InputError(f"`title` must be text, got {title!r}.")
    sample = _Sample.of(rule, scores, groups, labels, strata, sample_weight)
    n_groups, cell_strata = len(sample.labels), sample.strata
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairrampWarning)  # said in the notes instead
        rules = _rules(rule, sample)
    own = next(i for i, one in enumerate(rules) if one is rule)
    refit = next((one for one in rules if one is not rule), None)
    assert refit is not None
    assert refit.record is not None
    ramps = [_Ramps.of(one, sample.labels) for one in rules]
    measured = _Measured.of(sample, ramps)

    before = measured.select(measured.own, confidence, cell_strata)
    names = tuple(plain_name(show_label(label)) for label in sample.labels)
    outcomes = []
    refused = _refusal(rule, confidence)
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
    in_sample = _is_in_sample(rule, fingerprint, measured.rows, before.rate, outcomes[own].rates)
    notes = (*sample.notes, *_notes(rule, names, measured.rows, in_sample))
    histograms = measured.histograms(sample)
    shown = sample.scale.shown_per_unit
    return Content(
        title=plain_name(title) if title else "Who is selected?",
        group_name=plain_name(" / ".join([*(rule.strata_columns or ()), *(rule.group_columns or ())]) or "group"),
        rows=int(measured.rows.sum()),
        weighted=sample.weights is not None,
        labelled=sample.outcomes is not None,
        confidence=confidence,
        score_range=(sample.scale.lowest * shown, sample.scale.highest * shown),
        cutoff=sample.cutoff if rule.scale == "logit" else rule.cutoff,
        settings={
            "max_gap": rule.max_gap,
            "target_rate": rule.record.target if rule.record else rule.target_rate,
            "ramp_width": (rule.record.ramp_width if rule.record else rule.ramp_width) * shown,
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
        sentence=_comparison(before.rate, names, cell_strata),
        outcomes=tuple(outcomes),
        own=own,
        notes=notes,
        limits=LIMITS,
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


# The rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sample:
    """Rows of groups that the rule knows, checked."""

    column: Any
    codes: Codes  # every label occurs
    weights: Floats | None
    outcomes: Floats | None
    request: Request
    notes: tuple[str, ...]

    @property
    def labels(self) -> tuple[Label, ...]:
        return self.codes.labels

    @property
    def scale(self) -> Any:
        return self.request.scale

    @property
    def cutoff(self) -> float:
        return self.request.problem.cutoff

    @property
    def strata(self) -> Integers | None:
        return stratum_index(self.labels) if self.request.stratified else None

    @classmethod
    def of(cls, rule: Rule, scores: Any, groups: Any, labels: Any, strata: Any, weights: Any) -> "_Sample":
        column, codes = as_scores(scores), rule.encode(groups, strata)
        n = len(column)
        check_length("groups", len(codes), n)
        w = None if weights is None else as_weights(weights, n)
        outcomes = None if labels is None else as_labels(labels, n)
        rule.ramps_of(codes)  # refuses unseen groups, unless the rule says what to do with them
        column, codes, w, outcomes = counting_rows(column, codes, w, outcomes)

        fitted = {label_key(label) for label in rule.groups}
        notes = []
        known = np.array([label_key(label) in fitted for label in codes.labels])
        occurring = codes.occurring()
        if not (known & occurring).any():
            raise InputError("None of the rows is of a group that the rule was fitted on.")
        keep = known[codes.block(0, len(codes))]
        if not keep.all():
            left_out = int((~keep).sum())
            notes.append(
                f"{left_out:,} rows of {int((occurring & ~known).sum()):,} groups that the rule was not fitted "
                "on are left out of this page."
            )
            column, codes = column[keep], replace(codes, values=codes.values[keep])
            w = None if w is None else w[keep]
            outcomes = None if outcomes is None else outcomes[keep]
        occurring = codes.occurring()
        index = (np.cumsum(occurring) - 1)[codes.block(0, len(codes))]
        there = tuple(label for label, yes in zip(codes.labels, occurring, strict=True) if yes)
        absent = len(rule.groups) - len(there)
        if absent:
            notes.append(f"{absent:,} of the rule's {len(rule.groups):,} groups have no row here.")
        request, note = _request(rule, outcomes is not None)
        if note:
            notes.append(note)
        codes = Codes(index, 0, there, codes.names, codes.n_columns)
        return cls(column, codes, w, outcomes, request, tuple(notes))

    def rows(self) -> ArrayRows:
        """The rows by group."""
        return ArrayRows(self.column, self.codes, self.weights, self.scale)

    def cells(self) -> ArrayRows:
        """The rows by group and label."""
        if self.outcomes is None:
            return self.rows()
        values = 2 * self.codes.values.astype(np.intp) + self.outcomes.astype(np.intp)
        return ArrayRows(
            self.column, Codes(values, 0, tuple(range(2 * len(self.labels)))), self.weights, self.scale
        )


def _request(rule: Rule, labelled: bool) -> tuple[Request, str | None]:
    """What was asked of the rule's fit, and what had to be changed about it."""
    record, note = rule.record, None
    target: str | float | None = record.target if record else rule.target_rate
    if record and (target == "base_rate" or record.solver == "sgd"):
        target = rule.target_rate
    if target == "accuracy" and not labelled:
        target = "optimal" if rule.criterion == "covariance" else rule.target_rate
        note = (
            "The rule aims at the most accurate rates, which needs labels. None are given here, so the other "
            "positions of the slider keep its "
            + ("strata and aim at the scores' own optimum." if rule.criterion == "covariance" else "target rate.")
        )
    if target is None:
        target = "optimal"
    request = Request.checked(
        max_gap=rule.max_gap,
        ramp_width=record.ramp_width if record else rule.ramp_width,
        ramp=rule.ramp,
        target_rate=target,
        cutoff=rule.cutoff,
        scale=rule.scale,
        unseen_group="error",
        stratified=rule.criterion == "covariance",
    )
    return request, note


# The rules --------------------------------------------------------------------------------------


def _rules(rule: Rule, sample: _Sample) -> list[Rule]:
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


@dataclass(frozen=True)
class _Ramps:
    """A rule's ramps, in the order of the sample's groups."""

    thresholds: Floats
    tie_chances: Floats
    feet: Floats
    width: float

    @classmethod
    def of(cls, rule: Rule, labels: tuple[Label, ...]) -> "_Ramps":
        known = dict(zip(map(label_key, rule.groups), rule.ramps, strict=True))
        ramps = [known[label_key(label)] for label in labels]
        thresholds = np.array([ramp.threshold for ramp in ramps])
        ties = np.array([ramp.tie_chance for ramp in ramps])
        return cls(thresholds, ties, thresholds - OFFSETS[rule.ramp] * rule.ramp_width, rule.ramp_width)

    def chances(self, measured: "_Measured") -> Floats:
        """Chance of a yes at each point."""
        place, group = measured.place, measured.group
        if self.width > 0:
            with np.errstate(over="ignore"):
                return np.clip((place - self.feet[group]) / self.width, 0.0, 1.0)
        feet = self.feet[group]
        return np.where(place == feet, self.tie_chances[group], place > feet)


@dataclass(frozen=True)
class _Measured:
    """Points that are as good as the rows for all of the rules, and for the cut-off."""

    group: Integers
    place: Floats
    lower: Floats
    weight: Floats
    squares: Floats
    labels: Floats | None
    own: Floats  # the classifier's own decision
    rows: Integers  # of each group
    sums: Sums

    @classmethod
    def of(cls, sample: _Sample, ramps: list[_Ramps]) -> "_Measured":
        rows = sample.cells()
        summary: Summary = rows.summarize()
        per_group = 1 if sample.outcomes is None else 2
        cells = np.arange(len(sample.labels)) if per_group == 1 else np.array(summary.labels, dtype=np.intp)
        seat = cells // per_group
        feet = {
            width: np.stack([r.feet[seat] for r in ramps if r.width == width])
            for width in sorted({r.width for r in ramps})
        }
        cutoff = np.full((1, len(seat)), sample.cutoff)
        while True:
            split = average = np.zeros(len(summary.points), dtype=bool)
            for width, places in feet.items():
                edges = np.concatenate([cutoff, places]) if width == 0 else cutoff
                more = summary.unresolved(places, width, edges)
                split, average = split | more[0], average | more[1]
            average = average & ~split
            if not (split.any() or average.any()):
                break
            summary = summary.replace(split | average, rows.refine(summary, split, average))
        p = summary.points
        group = seat[p.group]
        n_groups = len(sample.labels)
        return cls(
            group=group,
            place=p.place,
            lower=p.lower,
            weight=p.weight,
            squares=p.weight_squares,
            labels=None if sample.outcomes is None else (cells % 2)[p.group].astype(np.float64),
            own=(p.lower >= sample.cutoff).astype(np.float64),
            rows=np.bincount(group, p.rows, minlength=n_groups).astype(np.intp),
            sums=Sums(group, p.weight, n_groups, p.weight_squares),
        )

    def select(self, chances: Floats, confidence: float, strata: Integers | None) -> Selection:
        return selection(self.sums, chances, self.labels, confidence, strata)

    def share(self, values: Floats) -> float:
        """Mean of a quantity over all rows."""
        return float(self.weight @ values / self.weight.sum())

    def accuracy_interval(self, chances: Floats, confidence: float) -> tuple[float, float] | None:
        """Limits of the share of right decisions: a ± z √(Σ w² (c − a)²) / Σ w."""
        if self.labels is None:
            return None
        right = np.where(self.labels == 1, chances, 1 - chances)
        accuracy = self.share(right)
        half = normal_quantile(confidence) * np.sqrt(self.squares @ (right - accuracy) ** 2) / self.weight.sum()
        return max(accuracy - float(half), 0.0), min(accuracy + float(half), 1.0)

    def histograms(self, sample: _Sample) -> Floats:
        """Share of each group's weight in each part of the score range."""
        low, high = sample.scale.lowest, sample.scale.highest
        part = np.clip(np.floor((self.lower - low) * (PARTS / (high - low))), 0, PARTS - 1).astype(np.intp)
        n_groups = len(sample.labels)
        counts = np.bincount(self.group * PARTS + part, self.weight, minlength=n_groups * PARTS)
        table = counts.reshape(n_groups, PARTS)
        shares: Floats = table / table.sum(axis=1, keepdims=True)
        return shares


def _outcome(
    rule: Rule,
    is_own: bool,
    ramps: _Ramps,
    measured: _Measured,
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
    shown = SCALES[rule.scale].shown_per_unit
    may_certify = is_own or len(names) <= MOST_CERTIFIED
    return Outcome(
        max_gap=rule.max_gap,
        is_own=is_own,
        stands=stands,
        ramp_width=ramps.width * shown,
        target_rate=rule.target_rate,
        thresholds=_floats(ramps.thresholds * shown),
        ramp_from=_floats(ramps.feet * shown),
        ramp_to=_floats((ramps.feet + ramps.width) * shown),
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
        promise=_promise(rule, confidence, may_certify, len(names), refused if is_own else _also(refused)),
        sentence=_verdict(before, after, names, strata, stands),
    )


# Words ------------------------------------------------------------------------------------------


def _comparison(rates: tuple[float, ...], names: tuple[str, ...], strata: Integers | None) -> str:
    """The two groups furthest apart, in words."""
    r = np.array(rates)
    if len(r) == 1:
        return f"{percent(rates[0])} of {isolated(names[0])} were selected; there is no other group."
    parts = strata_slices(strata, len(r))
    gaps = [float(r[part].max() - r[part].min()) for part in parts]
    # Of strata with the same gap, such as the largest allowed, the one that the ratio is about.
    tied = [part for part, gap in zip(parts, gaps, strict=True) if gap >= max(gaps) - 1e-9]
    worst = min(tied, key=lambda part: float(r[part].min() / r[part].max()) if r[part].max() > 0 else 1.0)
    high, low = worst.start + int(r[worst].argmax()), worst.start + int(r[worst].argmin())
    if rates[high] - rates[low] <= 1e-9:
        where = "group" if strata is None else "group of a stratum"
        return f"every {where} was selected at the same rate" + (
            f", {percent(rates[high])}." if strata is None else "."
        )
    one, other = isolated(names[high]), isolated(names[low])
    if percent(rates[low]) == percent(0.0) or rates[high] / rates[low] >= 1000:
        return f"{percent(rates[high])} of {one} were selected, and hardly anybody or nobody of {other}."
    return (
        f"{one} were selected {times(rates[high], rates[low])} times as often as {other}: "
        f"{percent(rates[high])} against {percent(rates[low])}."
    )


def _verdict(
    before: Selection, after: Selection, names: tuple[str, ...], strata: Integers | None, stands: bool
) -> str:
    if stands:
        return "nothing changes. The classifier's own decisions stand, for everybody."
    return _comparison(after.rate, names, strata)


def _refusal(rule: Rule, confidence: float) -> str | None:
    """Why a rule cannot be certified; None if it can."""
    if rule.record is not None and not rule.record.cross_fitted:
        return None
    try:
        certify(rule, confidence)
    except FairrampError as error:
        return str(error)
    return None


def _also(refused: str | None) -> str | None:
    """Why the other positions are not certified where the rule is not: they would be taken for its."""
    if refused is None:
        return None
    return "The reported rule has no certificate, and so the rules at the other positions are given none either."


def _promise(rule: Rule, confidence: float, may_certify: bool, n_groups: int, refused: str | None) -> Promise:
    if refused is not None:
        return Promise(None, None, False, None, refused, "")
    if not may_certify:
        text = f"With {n_groups:,} groups only the reported rule itself is certified; fit this one to see more."
        return Promise(None, None, False, None, text, "")
    found: Certificate = certify(rule, confidence)
    proven = found.proven
    where = "in any stratum " if found.within_strata else ""
    text = (
        f"With {percent(confidence, 0)} confidence, no two groups’ selection rates {where}differ by more than "
        f"{points(found.gap)} among all the people the fit rows stand for"
    )
    if n_groups == 1:
        text = "There is one single group, so there is no gap to bound"
    elif found.is_theorem:
        text += ". This is proven"
    elif proven is None:
        text += ". This is an approximation; nothing is proven for weighted rows"
    else:
        text += f". This is an approximation; {points(proven.gap)} are proven"
    return Promise(
        found.gap, found.kind, found.is_theorem, proven.gap if proven else None, f"{text}.", found.assumptions
    )


def _is_in_sample(
    rule: Rule, fingerprint: str, rows: Integers, before: tuple[float, ...], after: tuple[float, ...]
) -> bool | None:
    """Whether these are the rows of the fit, as far as the record can tell.

    A fit to bins that are coarser than the parts that a fingerprint counts has another one than its rows.
    """
    record = rule.record
    if record is None:
        return None
    if record.fingerprint == fingerprint:
        return True
    if any(record.rate_error):
        return None
    # Bins may also have been exact for the rule; then all that is on record is the same.
    alike = record.rows == tuple(rows.tolist()) and np.allclose(
        [record.rate_before, record.rate_after], [before, after], rtol=0, atol=1e-9
    )
    return None if alike else False


def _notes(rule: Rule, names: tuple[str, ...], rows: Integers, in_sample: bool | None) -> list[str]:
    notes = []
    small = np.flatnonzero(rows < SMALL_GROUP).tolist()
    if small:
        shown = ", ".join(f"{isolated(names[k])} ({rows[k]:,} rows)" for k in small[:5])
        more = f" and {len(small) - 5:,} more" if len(small) > 5 else ""
        notes.append(
            f"Groups below {SMALL_GROUP} rows: {shown}{more}. Their rates on new people can be far from those "
            "shown here."
        )
    if len(names) == 1:
        notes.append("There is one single group: nothing to equalise.")
    elif in_sample:
        notes.append(
            "These look like the rows the rule was fitted on. On new people the gap will be larger, by chance; "
            "the certificate says by how much."
        )
    elif in_sample is None and rule.record is not None:
        notes.append("It cannot be told whether these are the rows the rule was fitted on.")
    elif in_sample is False:
        notes.append(
            "These are not the rows the rule was fitted on: at its own position the slider shows how the rule "
            "does on new rows, at every other one a rule fitted to these rows, which looks a little better than "
            "it is."
        )
    if rule.record and any(rule.record.rate_error):
        notes.append(
            "The rule was fitted to scores in bins, without the rows: a group's selection rate on the fit rows "
            f"can be off by up to {100 * max(rule.record.rate_error):.2g} percentage points, which the "
            "certificate counts in."
        )
    if rule.record and rule.record.cross_fitted:
        notes.append("The rule was fitted on cross-fitted scores; nothing is certified.")
    return notes


def _floats(values: Floats) -> tuple[float, ...]:
    return tuple(values.tolist())


def _known(values: tuple[float, ...] | None) -> tuple[float | None, ...] | None:
    """NaN, where no row counts, as None."""
    return None if values is None else tuple(None if v != v else v for v in values)


def _at(values: tuple[float, ...] | None, k: int) -> float | None:
    known = _known(values)
    return None if known is None else known[k]
