"""A rule in words and in plain values, from its file alone, without reading rows."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fairramp.core.cells import strata_slices
from fairramp.core.checks import check_number
from fairramp.core.headline import SMALL_GROUP
from fairramp.core.labels import show_label, show_labels
from fairramp.core.table import one_line, with_rows
from fairramp.core.words import percentage, plain
from fairramp.errors import FairrampError
from fairramp.measure.certificate import Certificate, certify
from fairramp.rule.rule import Rule
from fairramp.rule.shown import placed

_SCALES = {
    "probability": "a probability from 0 to 1",
    "percent": "a percentage from 0 to 100",
    "signed": "a number from -1 to 1",
    "logit": "a logit; thresholds and ramps are probabilities, 1/(1 + exp(-logit))",
    "real": "any number",
}
_UNSEEN = {
    "error": "raises an error",
    "pooled": "gets the {}",
    "original": "keeps the classifier's own decision",
}


def certificate_of(rule: Rule, confidence: float) -> Certificate | str:
    """The certificate of a rule, or the reason it has none."""
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    try:
        return certify(rule, confidence)
    except FairrampError as error:
        return str(error)


def facts(rule: Rule) -> list[tuple[str, str]]:
    """What a rule does and how it was fitted: names, each with one line of text.

    >>> from fairramp import Ramp, Rule
    >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    >>> dict(facts(rule))["score"]
    'column name unknown, a probability from 0 to 1; the classifier says yes at 0.5 or above'
    """
    record, columns = rule.record, rule.columns
    unseen = _UNSEEN[rule.unseen_group].format(placed(rule, rule.pooled) if rule.pooled else "")
    rate = "true and false positive rates" if rule.event.parts else f"{rule.event.rate}s"
    goal = f"{rate} {rule.band.words}" if rule.band.is_open else f"equal {rate}"
    if record and record.asked:
        goal += " on the fit rows"
    if record and record.target is not None:
        target = record.target
        words = target.replace("_", " ") if isinstance(target, str) else percentage(target)
        goal += f", chosen for {words}" if rule.event.parts else f", target rate {words}"
    if record and record.overall_rate is not None:
        goal += f", overall selection rate {percentage(record.overall_rate)}"
    if record and record.costs:
        goal += (
            f", at a cost of {record.costs[0]:g} per false positive and {record.costs[1]:g} per false negative"
        )
    direction = "" if rule.higher_is_better else "lower is better; "
    found = {
        "score": f"{_columns(columns.score and [columns.score])}, {_SCALES[rule.scale]}; {direction}the "
        f"classifier says yes at {rule.cutoff:g} or {rule.meaning.side}",
        "groups": f"{_columns(columns.groups)}; a group not in the fit rows {unseen}"
        if rule.membership != "probabilities"
        else f"probabilities of {', '.join(show_labels(rule.groups))}; {_columns(columns.probabilities)}",
        "mixing": " ".join(rule.mixing) or None,
        "strata": f"{_columns(columns.strata)}; groups are compared within each" if rule.stratified else None,
        "goal": goal,
        "note": " ".join(record.notes(rule.max_gap)) if record else None,
        "random": _random(rule),
        "fitted": _fitted(rule),
        "rule": f"fingerprint {rule.fingerprint}",
        "data": f"fingerprint {record.fingerprint}" if record else None,
    }
    return [(name, one_line(text)) for name, text in found.items() if text]


def _n_rows(rule: Rule) -> int:
    """Number of fit rows; by each attribute, every row has a value of each."""
    assert rule.record is not None
    return sum(rule.record.rows[strata_slices(rule.parts if rule.mixes else None, len(rule.groups))[0]])


def _random(rule: Rule) -> str:
    """Which decisions are made at random."""
    unit, found = rule.meaning.shown_per_unit, []
    widths = sorted({ramp.width for ramp in rule.ramps if not ramp.is_constant})
    if widths and widths[-1] == 0:
        found.append("only at a score equal to the threshold")
    elif widths:
        width = " to ".join(dict.fromkeys(f"{width * unit:g}" for width in (widths[0], widths[-1])))
        place = {"centered": "centered on", "paper": "starting at"}[rule.ramp]
        inside = " in positions" if rule.meaning.only_ordered else ""
        found.append(
            f"on a ramp {width} wide{inside}, {place} the threshold, where the probability of selection rises "
            "from 0 to 1"
        )
    constant = [show_label(g) for g, ramp in zip(rule.groups, rule.ramps, strict=True) if ramp.is_constant]
    if constant:
        more = f" and {len(constant) - 5:,} more" if len(constant) > 5 else ""
        found.append(f"everyone in {', '.join(constant[:5])}{more}, with the same probability")
    return "; ".join(found)


def _columns(names: Sequence[str] | str | None) -> str:
    several = "s" if names and len(names) > 1 else ""
    return f"column{several} {', '.join(names)}" if names else "column name unknown"


def _fitted(rule: Rule) -> str:
    record = rule.record
    if record is None:
        return "unknown, because the rule has no record of its fit"
    n, error = _n_rows(rule), max(max(rates.error) for _, rates in record.compared)
    how = {
        f"to {n:,} row{'' if n == 1 else 's'}{' with weights' if record.weighted else ''}": True,
        f"in bins (rates are accurate to within {error:.1e})": error > 0,
        "on cross-fitted scores": record.cross_fitted,
        "by stochastic gradient descent": record.solver == "sgd",
        f"by fairramp {record.version}; date: {record.date or 'not given'}": True,
    }
    return ", ".join(text for text, holds in how.items() if holds)


def small_groups(rule: Rule) -> str | None:
    """Sentences on groups with few fit rows; None if there are none, or if the rule has no record."""
    found = []
    for event, rates in rule.record.compared if rule.record else ():
        small = [(label, n) for label, n in zip(rule.groups, rates.rows, strict=True) if n < SMALL_GROUP]
        if small:
            what = f"Groups with fewer than {SMALL_GROUP} fit {event.rows}, whose rates are unreliable"
            found.append(f"{what}: {with_rows(small)}.")
    return " ".join(found) or None


def meaning(certificate: Certificate) -> str:
    """A sentence on the meaning of a certificate's confidence."""
    sure = percentage(certificate.confidence)
    proven = f" and within the proven limit for at least {sure}" if certificate.proven is not None else ""
    return (
        f"Meaning of confidence: if rules were fitted to many samples, the gap would be within the estimated "
        f"limit for about {sure} of them{proven}. Limits in points are rounded up."
    )


def description(rule: Rule, certificate: Certificate | str) -> dict[str, Any]:
    """A rule and its certificate, or the reason it has none, as plain values, ready for JSON.

    >>> from fairramp import Ramp, Rule
    >>> rule = Rule(("A", "B"), (Ramp.centered(0.5, 0.1), Ramp.centered(0.4, 0.1)))
    >>> found = description(rule, certificate_of(rule, 0.95))
    >>> found["unseen_group"], found["ramp_width"], found["certificate"]
    ('error', 0.1, None)
    """
    record = rule.record
    names = (
        *("target", "costs", "overall_rate", "gap_before", "gap_after", "ratio_before", "ratio_after"),
        *("weighted", "cross_fitted", "solver", "date"),
    )
    pooled = rule.pooled and {"threshold": rule.threshold_of(rule.pooled), "tie_chance": rule.pooled.tie}
    widths = {ramp.width * rule.meaning.shown_per_unit for ramp in rule.ramps if not ramp.is_constant}
    return plain(
        {
            "score_column": rule.columns.score,
            "group_columns": rule.columns.groups,
            "strata_columns": rule.columns.strata,
            "probability_columns": rule.columns.probabilities,
            "membership": rule.membership,
            "rows": record and _n_rows(rule),
            "groups": list(rule.table().rows()),
            "criterion": rule.criterion,
            "stratified": rule.stratified,
            "max_gap": record.asked.max_gap if record and record.asked else rule.max_gap,
            "fit_gap": rule.max_gap,
            "min_ratio": rule.min_ratio,
            "target_rate": rule.target_rate,
            "ramp_width": widths.pop() if len(widths) == 1 else None,  # the table has the widths
            "ramp": rule.ramp,
            "scale": rule.scale,
            "cutoff": rule.cutoff,
            "higher_is_better": rule.higher_is_better,
            "unseen_group": rule.unseen_group,
            "pooled": pooled,
            **{name: record and getattr(record, name) for name in names},
            "asked": record and record.asked and asdict(record.asked),
            "fitted_with": record and record.version,
            "certificate": None if isinstance(certificate, str) else certificate.to_dict(),
            "why_no_certificate": certificate if isinstance(certificate, str) else None,
            "rule_fingerprint": rule.fingerprint,
            "data_fingerprint": record and record.fingerprint,
        }
    )
