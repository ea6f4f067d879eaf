"""Compute the content of a report.

    rows  →  one rule per limit  →  one summary that is exact for all of them  →  Content

At its own limit, the reported rule itself is measured. At every other one, a rule with the same settings is
fitted to the given rows, as by `fit_rule`. The compared rates are those that the rule makes equal: selection
rates, or true or false positive rates.
"""

import platform
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from math import nan, prod
from typing import Any

import numpy as np

from fairramp._version import __version__
from fairramp.core.cells import strata_slices
from fairramp.core.checks import check_number
from fairramp.core.curve import Floats
from fairramp.core.events import SELECTION, Event
from fairramp.core.headline import SMALL_GROUP
from fairramp.core.labels import Label, label_of, label_parts, show_labels
from fairramp.core.ramps import Ramp
from fairramp.errors import FairrampWarning
from fairramp.fit.direction import DirectionWarning, direction_doubt, warn_direction
from fairramp.measure.audit import audit
from fairramp.measure.certificate import Certificate, certify
from fairramp.measure.drift import Check
from fairramp.measure.fresh import certify_on
from fairramp.measure.rates import GroupRates, Selection
from fairramp.rule.rule import Rule
from fairramp.show import sentences
from fairramp.show.answers import AnswerForm, answer_forms
from fairramp.show.labels import LabelNames
from fairramp.show.report.compare import Compared, check_comparable, compare_rules
from fairramp.show.report.content import About, Content, Group, Outcome, People, about_of, title_of
from fairramp.show.report.measured import KnownRows, Measured, widths
from fairramp.show.report.slider import Sources, fit_command, slider_rules
from fairramp.show.report.verdicts import Evidence, Limit, judge
from fairramp.show.words import plain_name

#: Most intersections of attributes that one person's answer can be asked for.
MOST_INTERSECTIONS = 600


def make_content(
    rule: Rule,
    scores: Any,
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
    compare: Rule | None = None,
    compare_name: str | None = None,
    label_column: str | None = None,
    weight_column: str | None = None,
    positive_label: str | None = None,
    reading: Sequence[str] = (),
    label_names: Sequence[str] | None = None,
    left_out: str | None = None,
) -> Content:
    """Compute the content of a report; see `Rule.report`.

    Names of columns, a label and the options with which a file was read are for commands.
    """
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    dates = {"date": date, "review_date": review_date}
    about = about_of(title, decision=decision, owner=owner, source=source, left_out=left_out, **dates)
    named = LabelNames.of(label_names)
    known = KnownRows.of(rule, scores, groups, labels, strata, sample_weight, group_probabilities, named)
    check_comparable(rule, compare, compare_name, known)
    warn_direction(known.sample, fitted=True)
    if doubt := direction_doubt(known.sample, named.favorable):
        known = replace(known, notes=(doubt, *known.notes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairrampWarning)  # the notes say it instead
        rules, fingerprint = slider_rules(rule, known)
    measured = Measured.of(known, rules, confidence)
    audited: list[str] = []
    if rule.mixes:
        audited = _audited(
            rule, scores, groups, labels, sample_weight=sample_weight, group_probabilities=group_probabilities
        )
    own = next(i for i, one in enumerate(rules) if one is rule)
    in_sample = _is_in_sample(rule, fingerprint, measured.before[0], measured.afters[own][0])
    refused = sentences.refusal(rule)
    own_limits: Certificate | str
    if rule.mixes and in_sample is False:
        own_limits = certify_on(
            rule,
            confidence,
            scores,
            groups,
            group_probabilities=group_probabilities,
            sample_weight=sample_weight,
        )
    elif rule.mixes:
        own_limits = sentences.FRESH_ONLY[in_sample].format(parts="thresholds")
    else:
        own_limits = refused or certify(rule, confidence)
    checked = None
    if refused is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DirectionWarning)  # it was said above
            checked = rule.check(
                scores, groups, labels, strata=strata, sample_weight=sample_weight, confidence=confidence
            )
    return content_of(
        rule,
        rules,
        known,
        measured,
        about,
        title=title,
        sources=Sources(source, label_column, weight_column, positive_label, tuple(reading)),
        fingerprint=fingerprint,
        in_sample=in_sample,
        own_limits=own_limits,
        checked=checked,
        audited=audited,
        compared=None
        if compare is None
        else compare_rules(rule, compare, compare_name, known, measured, measured.afters[own][0]),
    )


def content_of(
    rule: Rule,
    rules: Sequence[Rule],
    known: KnownRows,
    measured: Measured,
    about: About,
    *,
    title: str | None,
    sources: Sources,
    fingerprint: str,
    in_sample: bool | None,
    own_limits: Certificate | str,
    checked: Check | None = None,
    audited: Sequence[str] = (),
    compared: Compared | None = None,
) -> Content:
    """The content, from what was measured; `own_limits` are the limits of the reported rule for new people."""
    sample, scale, record, label_names = known.sample, known.sample.scale, rule.record, known.label_names
    ramps = [known.ramps(one) for one in rules]
    confidence, (before, selected) = measured.confidence, measured.before
    own = next(i for i, one in enumerate(rules) if one is rule)
    names = tuple(map(plain_name, show_labels(known.groups)))
    fewest = np.min([before.rates[event.name].rows for event in rule.event.simple], axis=0)
    elsewhere = sentences.elsewhere(sentences.refusal(rule), len(known.groups))
    outcomes = tuple(
        _outcome(
            one,
            placed,
            measured,
            chances,
            after,
            own_limits if one is rule else elsewhere or certify(one, confidence),
            Evidence(
                rule.event,
                before,
                after[0],
                names,
                fewest.tolist(),
                fewest < SMALL_GROUP,
                measured.strata,
                is_new=in_sample is False and one is rule,
                has_drifted=checked is not None and checked.has_drifted and one is rule,
            ),
            fit_command(one, known.settings, sources, sample.labels is not None, sample.weights is not None),
            label_names,
            is_own=one is rule,
        )
        for one, placed, chances, after in zip(rules, ramps, measured.chances, measured.afters, strict=True)
    )
    units, within = scale.shown_per_unit, _within(rule)
    joined = ", " if rule.membership == "each" else " / "
    columns = rule.columns.grouped or sample.columns.groups or ("group",)
    if rule.membership == "each":
        columns = tuple(name for name, _ in rule.attributes)
    group_name = plain_name(joined.join(columns))
    return Content(
        title=title_of(title, about, _compared(rule.event), group_name),
        about=about,
        group_name=group_name,
        rows=int(measured.sums.rows.sum()),
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
            "membership": rule.membership,
            "unseen_group": rule.unseen_group,
            "solver": record.solver if record else None,
            "date": record.date if record else None,
        },
        groups=tuple(
            Group(name, n, counted < SMALL_GROUP, tuple(shares))
            for name, n, counted, shares in zip(
                names,
                measured.rows.tolist(),
                fewest.tolist(),
                measured.histograms(scale).tolist(),
                strict=True,
            )
        ),
        before=before,
        selected_before=selected,
        overall_rate_before=measured.sums.overall(measured.own),
        people_before=_people(measured, measured.own),
        sentence=sentences.comparison(before, names, measured.strata, rule.event, within, label_names),
        selected_sentence=sentences.comparison(before, names, measured.strata) if selected else "",
        outcomes=outcomes,
        own=own,
        is_kept=None if checked is None else not checked.has_drifted,
        drift=None if checked is None else sentences.drift(checked, in_sample, label_names),
        notes=(
            *known.notes,
            *sentences.notes(rule, known.groups, before, in_sample, label_names),
            *audited,
        ),
        limits=sentences.limits(rule.event, rule.membership, label_names),
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
        answers=_answers(rule, known),
        mixing=" ".join(rule.mixing),
        parts=None if measured.strata is None else tuple(measured.strata.tolist()),
        compared=compared,
        label_names=label_names,
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
    if rule.mixes:  # the record of expected rates has other counts than the true groups
        return record.fingerprint == fingerprint
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


def _audited(rule: Rule, scores: Any, groups: Any, labels: Any, **more: Any) -> list[str]:
    """What an audit says beside the rates: about the group model, or about intersections."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairrampWarning)  # the sentences say it
        found = audit(scores, groups, labels, rule=rule, **more)
    model, crossed = found.group_model, found.intersections
    return [*(model.sentences() if model else []), *([crossed.as_intersections()] if crossed else [])]


def _within(rule: Rule) -> str:
    """What the parts are called within which groups are compared."""
    return "attribute" if rule.membership == "each" else "stratum"


def _answers(rule: Rule, known: KnownRows) -> tuple[AnswerForm, ...]:
    """The answers of each group, of every intersection of a few attributes, or none for mixtures of groups."""
    if rule.membership == "probabilities":
        return ()
    cells: Sequence[Label] = known.sample.cells.labels
    if rule.membership == "each":
        values = [
            [label_parts(label)[1] for label in rule.groups[p]]
            for p in strata_slices(rule.parts, len(rule.groups))
        ]
        if prod(map(len, values)) <= MOST_INTERSECTIONS:
            cells = [label_of(parts) for parts in product(*values)]
        cells = cells[:MOST_INTERSECTIONS]
    return answer_forms(rule, cells)


def _compared(event: Event) -> str:
    """What is compared, in the title."""
    return "selection rates" if event is SELECTION else "error rates" if event.parts else f"{event.rate}s"


def _people(measured: Measured, chances: Floats) -> People:
    """Expected numbers of people under decisions with these probabilities."""
    own, rows = measured.own, measured.sums.rows

    def per_group(shares: Floats) -> tuple[float, ...]:
        return tuple(measured.sums.total(rows * shares).tolist())

    to_yes, to_no = (per_group(np.maximum(sign * (chances - own), 0.0)) for sign in (1, -1))
    return People(
        to_yes,
        to_no,
        changed=float(rows @ np.abs(chances - own)),
        drawn=float(rows @ ((chances > 0) & (chances < 1))),
        selected=float(rows @ chances),
        wrong=None if measured.labels is None else float(rows @ np.abs(measured.labels - chances)),
    )


def _outcome(
    rule: Rule,
    placed: list[Ramp],
    measured: Measured,
    chances: Floats,
    found: tuple[Selection, GroupRates | None],
    certificate: Certificate | str,
    evidence: Evidence,
    command: str,
    label_names: LabelNames,
    *,
    is_own: bool,
) -> Outcome:
    own, (after, selected), names = measured.own, found, evidence.names
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
        people=_people(measured, chances),
        guarantee=sentences.Guarantee(certificate)
        if isinstance(certificate, str)
        else sentences.guarantee(certificate, len(rule.groups) > 1, label_names),
        judgment=judge(rule, Limit.of(rule, measured.confidence, is_own=is_own), evidence, certificate),
        command=command,
        shifts=None
        if rule.base is None
        else tuple(rule.threshold_of(ramp) - rule.threshold_of(rule.base) for ramp in placed),
        sentence=sentences.STANDS
        if stands
        else sentences.comparison(after, names, measured.strata, rule.event, _within(rule), label_names),
        selected_sentence=sentences.comparison(after, names, measured.strata) if selected and not stands else "",
    )
