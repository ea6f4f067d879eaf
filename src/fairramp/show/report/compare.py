"""The reported rule beside another one, such as the rule in force, on the rows of the report.

For a row with probability p under the reported rule and q under the other one, the decisions differ with
probability |p − q|. Each person has one draw u, which depends only on the id and the key, and is selected if u is
below the probability: so the decisions differ exactly if u lies between p and q. Sums over all rows are thus
expected numbers of people, and nobody is selected by the rule with the lower probability alone.

Both rules are applied to the rows themselves, not to a summary of them: |p − q| bends where two ramps cross.
"""

from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np

from fairramp.core.bands import Gap, smallest_ratio
from fairramp.core.blocks import map_blocks
from fairramp.core.cells import largest_gap
from fairramp.core.curve import Booleans, Floats, Integers
from fairramp.core.headline import judged, with_small
from fairramp.core.labels import Label, label_key, show_label
from fairramp.core.ramps import Ramp
from fairramp.core.table import with_rows
from fairramp.core.words import exact_points, fixed, number, percent, percentage, points
from fairramp.data.sample import Sample
from fairramp.errors import InputError, UnseenGroupError, UnsupportedError
from fairramp.measure.certificate import certify
from fairramp.measure.means import tally_rows
from fairramp.measure.rates import GroupRates, Selection, selection
from fairramp.rule.rule import Rule
from fairramp.rule.shown import placed
from fairramp.show import sentences
from fairramp.show.report.measured import KnownRows, Measured, widths
from fairramp.show.words import full, marked, plain_name

#: The name of the other rule, unless one is given.
UNNAMED = "another rule"

_SAME = "No decision differs: everyone here has the same probability of being selected as under {}."
_RAMPS = {"centered": "centered on", "paper": "starting at"}
_UNSEEN = {
    "error": "raise an error",
    "pooled": "get the {}",
    "original": "keep the classifier's own decision",
}


@dataclass(frozen=True)
class Compared:
    """Another rule on the rows of a report, and whose decisions differ; tuples have one entry per group.

    Attributes
    ----------
    name : str
        Its name, as given or "another rule".
    fingerprint : str
        Its fingerprint.
    criterion : str
        Its criterion; the rates below are those of the reported rule's criterion.
    same : bool
        Whether both rules give every row here the same probability.
    sentence : str
        How many decisions differ, and both gaps or ratios, in words.
    settings : tuple of (str, str, str)
        The settings that differ: name, value in the reported rule, value in the other.
    unseen : tuple of bool
        Whether the other rule does not know the group, so that its `unseen_group` decides.
    thresholds, ramp_from, ramp_to, tie_chances, constant_chances : tuple of float
        Its ramps, as in `Outcome`. For a group that keeps the classifier's own decisions, the cutoff.
    after : Selection
        Its rates, gap, ratio and errors, as in `Outcome`.
    selected : GroupRates or None
        Its selection rates, gap and ratio, if other rates are compared.
    overall_rate : float
        Its overall selection rate.
    changed_to_yes, changed_to_no : tuple of float
        Share of each group whose decision it changes to yes, or to no. This, like `changed`, is relative to the
        classifier's own decisions at the cutoff of the reported rule.
    changed, drawn : float
        Share of all decisions that it changes, and share decided at random.
    only_here, only_there : tuple of float
        Share of each group selected only by the reported rule, and only by the other one.
    rows_only_here, rows_only_there : tuple of float
        The same as expected numbers of rows, without weights.
    differing, rows_differing : float
        Share and expected number of all rows whose decisions differ: Σ |p − q|. With one draw per person, as by
        id and key, the decisions of a person differ with probability exactly |p − q|.
    guarantee : Guarantee
        Its limits on the gap in the population, between the rates of its own criterion.
    """

    name: str
    fingerprint: str
    criterion: str
    same: bool
    sentence: str
    settings: tuple[tuple[str, str, str], ...]
    unseen: tuple[bool, ...]
    thresholds: tuple[float, ...]
    ramp_from: tuple[float, ...]
    ramp_to: tuple[float, ...]
    tie_chances: tuple[float, ...]
    constant_chances: tuple[float, ...]
    after: Selection
    selected: GroupRates | None
    overall_rate: float
    changed_to_yes: tuple[float, ...]
    changed_to_no: tuple[float, ...]
    changed: float
    drawn: float
    only_here: tuple[float, ...]
    only_there: tuple[float, ...]
    rows_only_here: tuple[float, ...]
    rows_only_there: tuple[float, ...]
    differing: float
    rows_differing: float
    guarantee: sentences.Guarantee


def check_comparable(rule: Rule, other: Any, name: Any, known: KnownRows) -> None:
    """Raise if another rule cannot be compared with the reported one on these rows."""
    if not isinstance(name, str | None):
        raise InputError("must be a string", argument="compare_name", got=name)
    if other is None:
        if name is not None:
            raise InputError("{compare_name} names another rule: pass that rule as {compare}")
        return
    if not isinstance(other, Rule):
        raise InputError(
            "must be a fairramp.Rule, got {kind}",
            argument="compare",
            remedy="read a rule file with Rule.load",
            kind=type(other).__name__,
        )
    if rule.mixes or other.mixes:
        raise UnsupportedError(
            "{compare} does not support rules by group probabilities or by each attribute",
            remedy="audit both rules with fairramp.audit",
        )
    for what, of in (
        ("scores on the scale {!r}", lambda one: one.scale),
        ("scores of which {} ones are better", lambda one: "higher" if one.higher_is_better else "lower"),
        ("rates that are equal {}", lambda one: "within strata" if one.stratified else "over all rows"),
    ):
        if of(rule) != of(other):
            raise InputError(
                "is for {theirs}, but the reported rule is for {ours}",
                argument="compare",
                remedy="compare rules that take the same columns",
                theirs=what.format(of(other)),
                ours=what.format(of(rule)),
            )
    unseen = _unseen(other, known)
    if len(unseen) == len(known.sample.cells.labels):
        raise UnseenGroupError(
            "knows none of the groups here",
            argument="compare",
            remedy="compare rules that were fitted on the same group columns",
        )
    if unseen and other.unseen_group == "error":
        raise UnseenGroupError(
            "does not know the group{s} {unseen} and raises an error for unseen groups",
            argument="compare",
            remedy="leave out {their} rows, or compare with a rule that was fitted on all groups here",
            s="s" if len(unseen) > 1 else "",
            unseen=with_rows([(label, 1) for label in unseen], form="{}"),
            their="their" if len(unseen) > 1 else "its",
        )


def compare_rules(
    rule: Rule, other: Rule, name: str | None, known: KnownRows, measured: Measured, after: Selection
) -> Compared:
    """Measure another rule on the rows of a report; `after` has the rates of the reported rule."""
    known = replace(known, sample=_sorted(known.sample))
    sample, event, confidence = known.sample, measured.event, measured.confidence
    found = tally_rows(sample, cutoff=known.settings.problem.cutoff, rule=other)
    assert found.after is not None
    own = selection(found.after, confidence, measured.strata, measured.costs, event)
    rows, weights, same = _apart(rule, other, known)
    totals = found.after.weights
    shares, share = weights / totals, weights.sum() / totals.sum()
    refused, called = sentences.refusal(other), plain_name(name) if name else UNNAMED
    here, there = rows.sum(axis=1).tolist()
    of = (int(found.rows.sum()), f"{percent(share)}{' by weight' if found.weighted else ''}")
    sentence = (
        _SAME.format(marked(called))
        if same
        else f"{_differing(here, there, of, marked(called))} {_gaps(rule, after, own, measured.strata)}"
    )
    changed_to_yes, changed_to_no = found.changed_to_yes, found.changed_to_no
    return Compared(
        name=called,
        fingerprint=other.fingerprint,
        criterion=other.criterion,
        same=same,
        sentence=sentence.rstrip(),
        settings=_settings(rule, other),
        **_ramps(other, known),
        after=own,
        selected=None if own.rates["selection"] is own.rates.get(event.name) else own.rates["selection"],
        overall_rate=float(found.after.yes.sum() / totals.sum()),
        changed_to_yes=_floats(changed_to_yes),
        changed_to_no=_floats(changed_to_no),
        changed=float(totals @ (changed_to_yes + changed_to_no) / totals.sum()),
        drawn=found.randomized,
        only_here=_floats(shares[0]),
        only_there=_floats(shares[1]),
        rows_only_here=_floats(rows[0]),
        rows_only_there=_floats(rows[1]),
        differing=float(share),
        rows_differing=float(rows.sum()),
        guarantee=sentences.Guarantee(refused)
        if refused
        else sentences.guarantee(certify(other, confidence), len(other.groups) > 1, known.label_names),
    )


def _sorted(sample: Sample) -> Sample:
    """The same rows in an order that depends only on the rows, so that rounded sums do, too."""
    keys = [sample.weights, sample.labels, sample.scores, sample.cells.block(0, len(sample))]
    return sample.take(np.lexsort([key for key in keys if key is not None]))


def _apart(rule: Rule, other: Rule, known: KnownRows) -> tuple[Floats, Floats, bool]:
    """Rows and weights selected only by the first rule, and only by the second, by group; and whether none are.

    Both arrays have the shape (2, groups).
    """
    sample, codes = known.sample, known.sample.cells
    fills, n_groups = [one.filling(sample.scores, codes) for one in (rule, other)], len(codes.labels)

    def block(start: int, stop: int) -> Floats:
        positions, group = sample.rows.positions(start, stop), codes.block(start, stop)
        p, q = np.empty((2, stop - start))
        for fill, out in zip(fills, (p, q), strict=True):
            fill(positions, start, stop, out)
        only = [np.maximum(p - q, 0.0), np.maximum(q - p, 0.0)]
        w = 1.0 if sample.weights is None else sample.weights[start:stop]
        return np.array(
            [[np.bincount(group, v * side, minlength=n_groups) for side in only] for v in (1.0, w)],
        )

    rows, weights = np.sum(map_blocks(block, len(sample)), axis=0)
    return rows, weights, not rows.any()


def _unseen(other: Rule, known: KnownRows) -> list[Label]:
    """The groups of these rows that a rule does not know."""
    fitted = set(map(label_key, other.groups))
    return [label for label in known.sample.cells.labels if label_key(label) not in fitted]


def _ramps(other: Rule, known: KnownRows) -> dict[str, Any]:
    """The ramps of a rule, group by group, as in an outcome."""
    codes, unseen = known.sample.cells, set(map(label_key, _unseen(other, known)))
    ramps, original = other.ramps_of(codes)
    shown = [_Shown.of(other, ramp) for ramp in ramps]
    if original is not None:
        cutoff = other.meaning.shown_score(other.cutoff)
        shown = [
            _Shown(cutoff, cutoff, cutoff, 1.0, nan) if own else ramp
            for ramp, own in zip(shown, original.tolist(), strict=True)
        ]
    return {
        "unseen": tuple(label_key(label) in unseen for label in codes.labels),
        **{name: tuple(getattr(ramp, name) for ramp in shown) for name in _Shown.__dataclass_fields__},
    }


@dataclass(frozen=True)
class _Shown:
    """A ramp in the units of thresholds."""

    thresholds: float
    ramp_from: float
    ramp_to: float
    tie_chances: float
    constant_chances: float

    @classmethod
    def of(cls, rule: Rule, ramp: Ramp) -> "_Shown":
        return cls(
            rule.threshold_of(ramp),
            *rule.ends_of(ramp),
            nan if ramp.width else ramp.tie,
            ramp.tie if ramp.is_constant else nan,
        )


# In words ---------------------------------------------------------------------------------------


def _differing(here: float, there: float, total: tuple[int, str], name: str) -> str:
    """How many decisions differ, of a number of people and as a share; rounded numbers add up, too."""
    people, share = total
    of = f"of {people:,} {'person' if people == 1 else 'people'} ({share})"
    n = round(here + there)
    if n == 0:
        return f"On average, fewer than 1 {of} gets a different decision than under {name}."
    first = min(round(here), n)
    gets, are = "gets" if n == 1 else "get", "is" if first == 1 else "are"
    return (
        f"{n:,} {of} {gets} a different decision than under {name}: {first:,} {are} selected only by this rule, "
        f"{n - first:,} only by the other."
    )


def _gaps(rule: Rule, here: Selection, there: Selection, strata: Integers | None) -> str:
    """The gaps of both rules, or their ratios if the reported rule limits the ratio."""
    found = []
    for event in rule.event.simple:
        pair = here.rates[event.name], there.rates[event.name]
        keep = judged(pair[0].rows, strata)
        of = "" if not event.needs_labels else f" between {event.rate}s"
        if rule.min_ratio is not None:
            of = of.replace("between", "of")
        found.append(f"{'Gap' if rule.min_ratio is None else 'Ratio'}{of}: {_both(rule, pair, strata, keep)}.")
        if not keep.all():
            found.append(f"{with_small(keep, event)}: {_both(rule, pair, strata)}.")
    return " ".join(found) if len(here.rates[rule.event.simple[0].name].rate) > 1 else ""


def _both(
    rule: Rule, pair: tuple[GroupRates, GroupRates], strata: Integers | None, keep: Booleans | slice = slice(None)
) -> str:
    """The gaps or ratios of two rules, between all groups or those to keep."""
    of = None if strata is None else strata[keep]
    rates = [np.array(one.rate)[keep] for one in pair]
    ours, theirs = (
        points(largest_gap(r, of)) if rule.min_ratio is None else number(smallest_ratio(r, of), 2) for r in rates
    )
    return f"{ours} under both rules" if ours == theirs else f"{ours} here, {theirs} under the other rule"


def _settings(rule: Rule, other: Rule) -> tuple[tuple[str, str, str], ...]:
    """The settings that differ: name, and the text of both values."""
    ours, theirs = (_described(one) for one in (rule, other))
    known = [set(map(label_key, one.groups)) for one in (rule, other)]
    if known[0] != known[1]:
        ours["Groups"] = _counted(rule, "only here", known[1])
        theirs["Groups"] = _counted(other, "only there", known[0])
    return tuple((what, text, theirs[what]) for what, text in ours.items() if text != theirs[what])


def _described(rule: Rule) -> dict[str, str]:
    """The settings of a rule in a few words each."""
    record, band, unit = rule.record, rule.band, rule.meaning.shown_per_unit
    asked, costs = (record.asked, record.costs) if record else (None, None)
    wide = widths(rule.ramps)
    width = " to ".join(dict.fromkeys(f"{end * unit:.10g}" for end in (wide[0], wide[-1])))
    return {
        "Criterion": f"equal {' and '.join(f'{event.rate}s' for event in rule.event.simple)}",
        "Limit on the fit rows": f"gap at most {_points(band.max_gap)}"
        if isinstance(band, Gap)
        else f"ratio at least {full(band.min_ratio)}",
        "Requested gap in the population": f"at most {_points(asked.max_gap)} with "
        f"{percentage(asked.confidence)} confidence ({asked.limit} limit)"
        if asked
        else "not given",
        "Target rate": _target(rule),
        "Costs of a false positive and a false negative": " and ".join(map(full, costs or ())) or "not given",
        "Ramp": f"{width} wide, {_RAMPS[rule.ramp]} the threshold" if wide[-1] else "none",
        "Classifier's own cutoff": full(rule.cutoff),
        "Groups not in the fit rows": _UNSEEN[rule.unseen_group].format(
            placed(rule, rule.pooled) if rule.pooled else ""
        ),
    }


def _points(gap: float) -> str:
    """A gap as typed; one that was computed has four decimals."""
    return exact_points(gap) if round(gap, 6) == gap else f"{fixed(100 * gap, 4)} points"


def _target(rule: Rule) -> str:
    record = rule.record
    if record and record.overall_rate is not None:
        return f"so that {percentage(record.overall_rate)} of everybody are selected"
    target = record.target if record else rule.target_rate
    if isinstance(target, str):
        return f"chosen for {target.replace('_', ' ')}" if rule.event.parts else target.replace("_", " ")
    return "not recorded" if target is None else percentage(target)


def _counted(rule: Rule, what: str, others: set[tuple[Any, ...]]) -> str:
    """The number of groups, and those that the other rule lacks."""
    own = [label for label in rule.groups if label_key(label) not in others]
    named = with_rows([(label, 1) for label in own], form="{}", spelled=lambda label: marked(show_label(label)))
    return f"{len(rule.groups):,}{f'; {what}: {named}' if own else ''}"


def _floats(values: Floats) -> tuple[float, ...]:
    return tuple(values.tolist())
