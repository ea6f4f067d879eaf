"""The content of a report: every number and sentence, for a grid of limits: `max_gap` or `min_ratio`.

    rows  →  one rule per limit  →  one summary that is exact for all of them  →  Content

At its own limit, the reported rule itself is measured. At every other one, a rule with the same settings is
fitted to the given rows, as by `fit_rule`. The compared rates are those that the rule makes equal: selection
rates, or true or false positive rates. Content is plain frozen data: `to_json` has everything the page shows, and
the same input gives the same bytes.
"""

import json
import platform
import warnings
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import ceil, floor, log10, nan
from typing import Any

import numpy as np

from fairramp._version import __version__
from fairramp.core.checks import check_number
from fairramp.core.events import EVENT_OF, SELECTION, Event
from fairramp.core.labels import show_label
from fairramp.core.ramps import Ramp, Ramps
from fairramp.core.words import plain
from fairramp.errors import FairrampWarning, InputError
from fairramp.fit.cells import FitRows
from fairramp.fit.fit import SMALL_GROUP, fit_rows
from fairramp.fit.outcomes import LabeledScores
from fairramp.measure.rates import GroupRates, Selection
from fairramp.rule.rule import Rule
from fairramp.show import sentences
from fairramp.show.report.measured import KnownRows, Measured, widths
from fairramp.show.words import plain_name

#: Most steps of the slider, by number of groups: (groups up to, steps).
STEPS = ((12, 40), (300, 20))
#: Most steps for more groups than that, and for equalized odds, whose fits take longer.
FEWEST_STEPS, ODDS_STEPS = 10, 20
#: Smallest steps of a gap (points have one decimal) and of a ratio (two decimals); smaller ones look the same.
SMALLEST_STEP, SMALLEST_RATIO_STEP = 0.001, 0.01


@dataclass(frozen=True)
class Group:
    """A group in the rows of the report.

    Attributes
    ----------
    name : str
        Its label as text.
    rows : int
        Number of rows.
    small : bool
        Whether the rows that count toward a compared rate are too few for it to be reliable.
    histogram : tuple of float
        Share of its weight in each of equally wide bins of the score range.
    """

    name: str
    rows: int
    small: bool
    histogram: tuple[float, ...]


@dataclass(frozen=True)
class Outcome:
    """The effect of the rule for one limit; tuples have one entry per group.

    Attributes
    ----------
    max_gap, min_ratio : float or None
        Largest allowed gap, or lowest allowed ratio; the other is None.
    is_own : bool
        Whether this is the reported rule itself.
    stands : bool
        Whether it changes no decision.
    target_rate : float or None
        Center of the band that holds every group's compared rate, or, for a ratio, its upper end; None with
        strata, and for equalized odds.
    ramp_width : float
        Largest width of its ramps, in the units of the thresholds.
    thresholds, ramp_from, ramp_to : tuple of float
        Its ramps, in the units of the scores; for logits, as probabilities. NaN for constant ramps.
    tie_chances : tuple of float
        The probability at the threshold of a group without a ramp; NaN if there is a ramp.
    constant_chances : tuple of float
        The probability of everyone in a group; NaN if it depends on the score.
    after : Selection
        Its compared rates, gap, ratio and errors, as in an audit.
    selected : GroupRates or None
        Its selection rates, gap and ratio, if other rates are compared.
    overall_rate : float
        Selection rate of everybody together.
    accuracy_interval : pair of float, or None
        Confidence limits of the accuracy; None without labels.
    changed_to_yes, changed_to_no : tuple of float
        Share of each group whose decision changes to yes, or to no.
    changed, drawn : float
        Share of all decisions that change, and share decided at random.
    guarantee : Guarantee
        The limits on the gap in the population, in words and in numbers.
    sentence, selected_sentence : str
        The compared rates in words, and the selection rates if they are others.
    """

    max_gap: float | None
    min_ratio: float | None
    is_own: bool
    stands: bool
    target_rate: float | None
    ramp_width: float
    thresholds: tuple[float, ...]
    ramp_from: tuple[float, ...]
    ramp_to: tuple[float, ...]
    tie_chances: tuple[float, ...]
    constant_chances: tuple[float, ...]
    after: Selection
    selected: GroupRates | None
    overall_rate: float
    accuracy_interval: tuple[float, float] | None
    changed_to_yes: tuple[float, ...]
    changed_to_no: tuple[float, ...]
    changed: float
    drawn: float
    guarantee: sentences.Guarantee
    sentence: str
    selected_sentence: str


@dataclass(frozen=True)
class Content:
    """All numbers and sentences of a report.

    Attributes
    ----------
    title : str
        As given, or a default.
    group_name : str
        Names of the group columns.
    rows : int
        Number of rows measured.
    weighted, labeled : bool
        Whether the rows have weights, and labels.
    confidence : float
        Confidence level of all intervals.
    score_range : pair of float
        Ends of the histograms, in the units of the thresholds; for real scores, in positions.
    cutoff : float
        The classifier's own cutoff, in the units of the thresholds.
    settings : dict
        The rule's settings, with the ramp width in the units of the thresholds and the cutoff as a score.
    groups : tuple of Group
        In the rule's order.
    before : Selection
        Compared rates, gap, ratio and errors of the classifier's own decisions, as in an audit.
    selected_before : GroupRates or None
        Selection rates, gap and ratio of the same decisions, if other rates are compared.
    overall_rate_before : float
        Selection rate of everybody together under the same decisions.
    sentence, selected_sentence : str
        The compared rates in words, and the selection rates if they are others.
    outcomes : tuple of Outcome
        From the strictest limit to the loosest.
    own : int
        Index of the reported rule in `outcomes`.
    is_kept : bool or None
        False if `Rule.check` finds that the gap on these rows exceeds its estimated limit; None if the rule has
        no certificate.
    drift : str or None
        The same in words; None on the fit rows, where the check does not apply.
    notes, limits : tuple of str
        Notes on these rows, and limitations of any such report.
    data_fingerprint, fit_fingerprint, rule_fingerprint : str or None
        Fingerprints of these rows, of the fit rows and of the rule.
    in_sample : bool or None
        Whether these appear to be the fit rows; None if unknown.
    versions : dict
        Versions of the software used.
    """

    title: str
    group_name: str
    rows: int
    weighted: bool
    labeled: bool
    confidence: float
    score_range: tuple[float, float]
    cutoff: float
    settings: dict[str, Any]
    groups: tuple[Group, ...]
    before: Selection
    selected_before: GroupRates | None
    overall_rate_before: float
    sentence: str
    selected_sentence: str
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
    def event(self) -> Event:
        """The event whose rates are compared."""
        return EVENT_OF[self.settings["criterion"]]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of rows of each group."""
        return tuple(group.rows for group in self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return plain(asdict(self))

    def to_json(self) -> str:
        """Return everything as JSON text."""
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
        raise InputError("must be a string", argument="title", got=title)
    known = KnownRows.of(rule, scores, groups, labels, strata, sample_weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairrampWarning)  # the notes say it instead
        rules, fingerprint = _rules(rule, known)
    sample, scale, record = known.sample, known.sample.scale, rule.record
    cells = sample.cells.labels
    ramps = [one.ramps_of(sample.cells)[0] for one in rules]
    measured = Measured.of(known, ramps, confidence)

    (before, selected), histograms, rows = (
        measured.select(measured.own),
        measured.histograms(scale),
        measured.rows,
    )
    names = tuple(plain_name(show_label(label)) for label in cells)
    refused = sentences.refusal(rule)
    elsewhere = sentences.elsewhere(refused, len(cells))
    outcomes = tuple(
        _outcome(one, one is rule, placed, measured, names, refused if one is rule else elsewhere)
        for one, placed in zip(rules, ramps, strict=True)
    )
    own = next(i for i, outcome in enumerate(outcomes) if outcome.is_own)
    in_sample = _is_in_sample(rule, fingerprint, before, outcomes[own].after)
    fewest = np.min([before.rates[event.name].rows for event in rule.event.simple], axis=0)
    checked = (
        rule.check(scores, groups, labels, strata=strata, sample_weight=sample_weight, confidence=confidence)
        if refused is None
        else None
    )
    units = scale.shown_per_unit
    return Content(
        title=plain_name(title) if title else "Who is selected?",
        group_name=plain_name(" / ".join(rule.columns.grouped) or "group"),
        rows=int(rows.sum()),
        weighted=sample.weights is not None,
        labeled=sample.labels is not None,
        confidence=confidence,
        score_range=scale.axis_range,
        cutoff=scale.shown_score(rule.cutoff),
        settings={
            "max_gap": rule.max_gap,
            "min_ratio": rule.min_ratio,
            "asked": None if record is None or record.asked is None else asdict(record.asked),
            "target_rate": record.target if record else rule.target_rate,
            "overall_rate": record.overall_rate if record else None,
            "costs": record.costs if record else None,
            "ramp_width": known.settings.ramp_width * units,
            "ramp": rule.ramp,
            "scale": rule.scale,
            "cutoff": rule.cutoff,
            "higher_is_better": rule.higher_is_better,
            "criterion": rule.criterion,
            "stratified": rule.stratified,
            "unseen_group": rule.unseen_group,
            "solver": record.solver if record else None,
            "date": record.date if record else None,
        },
        groups=tuple(
            Group(name, n, counted < SMALL_GROUP, tuple(shares))
            for name, n, counted, shares in zip(
                names, rows.tolist(), fewest.tolist(), histograms.tolist(), strict=True
            )
        ),
        before=before,
        selected_before=selected,
        overall_rate_before=measured.sums.overall(measured.own),
        sentence=sentences.comparison(before, names, measured.strata, rule.event),
        selected_sentence=sentences.comparison(before, names, measured.strata) if selected else "",
        outcomes=outcomes,
        own=own,
        is_kept=None if checked is None else not checked.has_drifted,
        drift=None if checked is None else sentences.drift(checked, in_sample),
        notes=(*known.notes, *sentences.notes(rule, cells, before, in_sample)),
        limits=sentences.limits(rule.event),
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
    )


def _is_in_sample(rule: Rule, fingerprint: str, before: Selection, after: Selection) -> bool | None:
    """Whether these are the fit rows; None if the record does not say.

    A fit to bins that are coarser than those of a fingerprint has another fingerprint than its rows. If the bins
    were nevertheless exact for the rule, counts and rates are the same. A fingerprint does not depend on labels;
    if the compared rates do, they and their counts must be the same too.
    """
    record = rule.record
    if record is None:
        return None
    pairs = [(rates, before.rates[event.name], after.rates[event.name]) for event, rates in record.compared]
    same_counts = all(rates.rows == was.rows for rates, was, _ in pairs)
    is_exact = all(rates.is_exact for rates, *_ in pairs)
    alike = same_counts and all(
        np.allclose([rates.before, rates.after], [was.rate, now.rate], rtol=0, atol=1e-9)
        for rates, was, now in pairs
    )
    if record.fingerprint == fingerprint:
        return rule.event is SELECTION or alike or (same_counts and not is_exact)
    return None if alike or not is_exact else False


# The rules --------------------------------------------------------------------------------------


def _rules(rule: Rule, known: KnownRows) -> tuple[list[Rule], str]:
    """One rule per position of the slider, including the given one, and the fingerprint of these rows."""
    sample, settings, is_ratio = known.sample, known.settings, rule.min_ratio is not None
    fit = partial(
        fit_rows,
        FitRows(sample.rows, sample.rows_by_label() if settings.event.needs_labels else None),
        columns=rule.columns,
        stratified=sample.stratified,
        weighted=sample.weights is not None,
        labeled=LabeledScores.of(sample) if settings.by_labels else None,
    )

    def fitted(limit: float) -> Rule:
        return fit(replace(settings, **({"min_ratio": limit} if is_ratio else {"max_gap": limit})))  # type: ignore[arg-type]

    strictest, own = (0.0, rule.max_gap or 0.0) if rule.min_ratio is None else (1.0, rule.min_ratio)
    first = fitted(strictest)
    assert first.record is not None
    n_groups = len(sample.cells.labels)
    steps = next((steps for limit, steps in STEPS if n_groups <= limit), FEWEST_STEPS)
    most = min(steps, ODDS_STEPS) if rule.event.parts else steps
    if is_ratio:  # from 1 down to the first ratio that the classifier's own decisions meet; a limit is above 0
        below = _grid(1 - first.record.ratio_before, most, SMALLEST_RATIO_STEP)
        limits = [round(1 - step, 12) for step in below if step < 1]
    else:
        limits = _grid(first.record.gap_before, most, SMALLEST_STEP)
    # The slider needs a second position even if the rates are equal already.
    others = limits[1:] or ([0.99 if is_ratio else 0.01] if own == strictest else [])
    rules = {strictest: first} | {limit: fitted(limit) for limit in others} | {own: rule}
    return [rules[limit] for limit in sorted(rules, reverse=is_ratio)], first.record.fingerprint


def _grid(reach: float, most: int, smallest: float) -> list[float]:
    """About `most` round numbers from 0 to the first one that is at least `reach`, at least `smallest` apart."""
    if not reach > 1e-9:  # or NaN, the ratio if nobody is selected
        return [0.0]
    wanted = max(reach / most, smallest * (1 - 1e-9))
    rounds = (factor * 10.0 ** floor(log10(wanted)) for factor in (1, 2, 5, 10))
    step = next(value for value in rounds if value >= wanted * (1 - 1e-9))
    return [min(round(step * i, 12), 1.0) for i in range(ceil(reach / step - 1e-9) + 1)]


def _outcome(
    rule: Rule, is_own: bool, placed: list[Ramp], measured: Measured, names: tuple[str, ...], refused: str | None
) -> Outcome:
    ramps = Ramps.of(placed)
    chances, own = ramps.at(measured.place, measured.sums.group), measured.own
    after, selected = measured.select(chances)
    more, less = np.maximum(chances - own, 0.0), np.maximum(own - chances, 0.0)
    stands = not (more.any() or less.any())
    starts, ends = zip(*map(rule.ends_of, placed), strict=True)
    return Outcome(
        max_gap=rule.max_gap,
        min_ratio=rule.min_ratio,
        is_own=is_own,
        stands=stands,
        target_rate=rule.target_rate,
        ramp_width=widths(placed)[-1] * rule.meaning.shown_per_unit,
        thresholds=tuple(map(rule.threshold_of, placed)),
        ramp_from=starts,
        ramp_to=ends,
        tie_chances=tuple(nan if ramp.width else ramp.tie for ramp in placed),
        constant_chances=tuple(ramp.tie if ramp.is_constant else nan for ramp in placed),
        after=after,
        selected=selected,
        overall_rate=measured.sums.overall(chances),
        accuracy_interval=measured.accuracy_interval(chances),
        changed_to_yes=tuple(measured.sums.mean(more).tolist()),
        changed_to_no=tuple(measured.sums.mean(less).tolist()),
        changed=measured.sums.overall(more + less),
        drawn=measured.sums.overall(((chances > 0) & (chances < 1)).astype(np.float64)),
        guarantee=sentences.Guarantee(refused) if refused else sentences.guarantee(rule, measured.confidence),
        sentence=sentences.STANDS if stands else sentences.comparison(after, names, measured.strata, rule.event),
        selected_sentence=sentences.comparison(after, names, measured.strata) if selected and not stands else "",
    )
