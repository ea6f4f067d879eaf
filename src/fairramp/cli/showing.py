"""A saved rule in words: what was asked for, what decides, what the fit saw, and what that guarantees.

All of it is in the rule's file, and no rows are read. What a rule without its record does not know is said.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fairramp.cli import steps
from fairramp.cli.render import WIDTH, Screen, count
from fairramp.core.scales import SCALES
from fairramp.core.table import one_line, percentage, with_rows
from fairramp.errors import FairrampError
from fairramp.fit.fit import SMALL_GROUP
from fairramp.rule.rule import Ramp, Rule

if TYPE_CHECKING:
    from fairramp.measure.certificate import Certificate
    from fairramp.measure.drift import Check

__all__ = ["certificate_of", "certified", "checked", "content", "show", "show_way_out"]

_SCALES = {
    "probability": "a probability from 0 to 1",
    "percent": "a percentage from 0 to 100",
    "signed": "a number from -1 to 1",
    "logit": "a logit; thresholds and ramps are probabilities, 1/(1 + exp(-logit))",
}
_UNSEEN = {
    "error": "is refused",
    "pooled": "gets the threshold {pooled}",
    "original": "keeps the classifier's own decision",
}
#: What no certificate is about.
_NOT_PROMISED = (
    "Not promised are equal error rates, equal rates in parts of these groups or in groups that the rule does "
    "not know, and anything about a population that has changed: ask new rows now and then, with fairramp check. "
    "Decisions that are drawn scatter a little around their rates."
)


def show(screen: Screen, rule: Rule, found: "Certificate | str", *, every: bool) -> None:
    """Print it; `found` is the rule's certificate, or why it has none."""
    screen.heading(repr(rule).split("\n", 1)[0])
    screen.text()
    for name, text in _facts(rule):
        screen.text(
            textwrap.fill(
                one_line(text),
                WIDTH,
                initial_indent=f"{name:8}",
                subsequent_indent=" " * 8,
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
    screen.text()
    table = rule.table()
    screen.text(table.text(WIDTH, every=every))
    if table.is_cut and not every:
        screen.say(f"\nThe first and last of {count(len(rule.groups), 'group')}; all of them with --all.")
    record = rule.record
    screen.text()
    if record:
        most = "at most " if any(record.rate_error) else ""
        screen.say(
            f"gap on the fit rows: {record.gap_before:.4f} before, {most}{record.gap_after:.4f} after, in "
            "expectation"
        )
        small = [pair for pair in zip(rule.groups, record.rows, strict=True) if pair[1] < SMALL_GROUP]
        if small:
            screen.say(f"Groups below {SMALL_GROUP} fit rows, whose rates are mostly chance: {with_rows(small)}.")
        screen.text()
    if isinstance(found, str):
        screen.say(found)
        return
    if len(rule.groups) == 1:
        screen.say("There is one single group, so there is no gap to bound.")
        return
    screen.text(repr(found))
    show_way_out(screen, rule, found)
    screen.text()
    often = f"{'at least' if found.is_theorem else 'about'} {percentage(found.confidence)}"
    screen.say(f"Confidence: of rules fitted to fresh rows again and again, {often} keep such a promise.\n")
    screen.say(_NOT_PROMISED)


def show_way_out(screen: Screen, rule: Rule, found: "Certificate") -> None:
    """What helps where less is certified than was asked for."""
    if 0 < rule.max_gap < found.gap and len(rule.groups) > 1:
        screen.say(
            f"The certified gap is larger than the {rule.max_gap:g} asked for: a smaller --max-gap or more rows "
            "per group help; fairramp.rows_needed says how many rows."
        )


def certificate_of(rule: Rule, confidence: float) -> "Certificate | str":
    """The certificate of a rule, or why it has none."""
    from fairramp.core.checks import check_number
    from fairramp.measure.certificate import certify

    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    try:
        return certify(rule, confidence)
    except FairrampError as error:
        return str(error)


def _facts(rule: Rule) -> list[tuple[str, str]]:
    record, unit = rule.record, SCALES[rule.scale].shown_per_unit
    score = record.score_column if record else None
    columns = {"score": score and [score], "groups": rule.group_columns}
    if rule.criterion == "covariance":
        columns["strata"] = rule.strata_columns
    named = {role: _columns(names) for role, names in columns.items()}
    pooled = f"{rule.pooled.threshold * unit:.4f}" if rule.pooled else ""
    unseen = _UNSEEN[rule.unseen_group].format(pooled=pooled)
    facts = [
        ("score", f"{named['score']}, {_SCALES[rule.scale]}; the classifier says yes from {rule.cutoff:g} on"),
        ("groups", f"{named['groups']}; one that the fit did not see {unseen}"),
    ]
    if "strata" in named:
        facts.append(("strata", f"{named['strata']}; groups are compared within each"))
    goal = f"selection rates at most {rule.max_gap:g} apart" if rule.max_gap else "equal selection rates"
    if record:
        target = record.target if isinstance(record.target, str) else f"{record.target:g}"
        goal += f", target rate {target}"
    facts.append(("goal", goal))
    if rule.ramp_width > 0:
        place = {"centered": "centered on", "paper": "beginning at"}[rule.ramp]
        width = f"{rule.ramp_width * unit:g}"
        lot = f"on a ramp {width} wide, {place} the threshold, where the chance of a yes rises evenly"
    else:
        lot = "only for a score equal to the threshold"
    facts.append(("by lot", lot))
    facts.append(("fitted", _fitted(rule)))
    facts.append(("rule", f"fingerprint {rule.fingerprint}"))
    if record:
        facts.append(("data", f"fingerprint {record.fingerprint}"))
    return facts


def _columns(names: Any) -> str:
    if not names:
        return "name of the column not known"
    return f"column{'' if len(names) == 1 else 's'} {', '.join(names)}"


def _fitted(rule: Rule) -> str:
    record = rule.record
    if record is None:
        return "not known: there is no record of the fit, its rows and its rates"
    rows = count(sum(record.rows), "row")
    text = f"to {rows}{' with weights' if record.weighted else ''}"
    if any(record.rate_error):
        text += f", in bins: a rate after is right to {max(record.rate_error):.1e}"
    if record.cross_fitted:
        text += ", on cross-fitted scores"
    if record.solver == "sgd":
        text += ", by stochastic gradient descent"
    return f"{text}, by fairramp {record.version}; date: {record.date or 'not given'}"


def certified(certificate: "Certificate") -> dict[str, Any]:
    """A certificate for machines."""
    return {
        "gap": certificate.gap,
        "kind": certificate.kind,
        "is_theorem": certificate.is_theorem,
        "confidence": certificate.confidence,
        "proven_gap": certificate.proven.gap if certificate.proven else None,
        "assumptions": certificate.assumptions,
        "widest_for": _sizes([certificate.widest_for])[0] if certificate.widest_for else None,
        "left_out": _sizes(certificate.left_out),
        "rest": certified(certificate.rest) if certificate.rest else None,
    }


def _sizes(groups: Sequence[tuple[Any, int]]) -> list[dict[str, Any]]:
    return [{"group": _plain(label), "rows": rows} for label, rows in groups]


def _plain(label: Any) -> Any:
    return list(label) if isinstance(label, tuple) else label


def checked(found: "Check") -> dict[str, Any]:
    """A check for machines."""
    return {
        "has_drifted": found.has_drifted,
        "is_kept": found.is_kept,
        "gap": found.gap,
        "gap_interval": found.gap_interval,
        "promised": found.promised,
        "groups": [{k: _plain(v) for k, v in row.items()} for row in found.table().rows()],
        "pair": found.pair and [_plain(label) for label in found.pair],
        "stratum": _plain(found.stratum),
        "false_alarm_rate": found.false_alarm_rate,
        "detectable_gap": found.detectable_gap,
        "widest_for": _sizes([found.widest_for])[0] if found.widest_for else None,
        "left_out": _sizes(found.left_out),
        "rest": checked(found.rest) if found.rest else None,
    }


def content(rule: Rule, found: "Certificate | str") -> dict[str, Any]:
    """All of it for machines."""
    record, unit = rule.record, SCALES[rule.scale].shown_per_unit

    def recorded(name: str) -> Any:
        return getattr(record, name) if record else None

    pooled = None if rule.pooled is None else asdict(Ramp(rule.pooled.threshold * unit, rule.pooled.tie_chance))
    return {
        "score_column": recorded("score_column"),
        "group_columns": rule.group_columns,
        "strata_columns": rule.strata_columns,
        "rows": sum(record.rows) if record else None,
        "groups": steps.rows_of(rule),
        "criterion": rule.criterion,
        "max_gap": rule.max_gap,
        "target": recorded("target"),
        "target_rate": rule.target_rate,
        "ramp_width": rule.ramp_width * unit,
        "ramp": rule.ramp,
        "scale": rule.scale,
        "cutoff": rule.cutoff,
        "unseen_group": rule.unseen_group,
        "pooled": pooled,
        "gap_before": recorded("gap_before"),
        "gap_after": recorded("gap_after"),
        "weighted": recorded("weighted"),
        "cross_fitted": recorded("cross_fitted"),
        "solver": recorded("solver"),
        "date": recorded("date"),
        "fitted_with": recorded("version"),
        "certificate": None if isinstance(found, str) else certified(found),
        "why_no_certificate": found if isinstance(found, str) else None,
        "rule_fingerprint": rule.fingerprint,
        "data_fingerprint": recorded("fingerprint"),
    }
