"""Rows, rules, audits and checks in words and for machines: no number is over-read, and what is doubtful is said.

A saved rule is shown with what was asked for, what decides, what the fit saw, and what that guarantees. All of it
is in the rule's file, and no rows are read. What a rule without its record does not know is said.
"""

import shlex
import unicodedata
from dataclasses import asdict
from typing import Any

from fairramp.cli.render import Screen, count, refuse_if, spoken, wrapped
from fairramp.cli.scan import Job
from fairramp.core.cells import stratum_index
from fairramp.core.checks import check_number
from fairramp.core.labels import label_key, label_of, show_label
from fairramp.core.scales import SCALES
from fairramp.core.table import Table, one_line, percentage, with_rows
from fairramp.data.columns import Columns
from fairramp.errors import FairrampError
from fairramp.fit.fit import SMALL_GROUP, doubt
from fairramp.measure.audit import Audit
from fairramp.measure.certificate import WIDE, Certificate, certify
from fairramp.measure.drift import Check
from fairramp.measure.monitor import Monitor
from fairramp.measure.parts import Comparison
from fairramp.measure.verdict import Verdict, is_sound, verdict_on, worst
from fairramp.rule.limits import limit_kind
from fairramp.rule.rule import Rule
from fairramp.show.sentences import comparison
from fairramp.show.words import plain_name

_SCALES = {
    "probability": "a probability from 0 to 1",
    "percent": "a percentage from 0 to 100",
    "signed": "a number from -1 to 1",
    "logit": "a logit; thresholds and ramps are probabilities, 1/(1 + exp(-logit))",
}
_UNSEEN = {
    "error": "is refused",
    "pooled": "gets the threshold {:.4f}",
    "original": "keeps the classifier's own decision",
}
#: What gates and checks say of each verdict.
WORDS = {Verdict.WITHIN: "passed", Verdict.EXCEEDED: "FAILED", Verdict.UNDECIDED: "undecided"}
#: What no certificate is about.
_NOT_COVERED = (
    "The limits do not cover error rates, parts of these groups, groups that the rule does not know, or a "
    "population that has changed: ask new rows now and then, with fairramp check or fairramp monitor. Decisions "
    "made at random scatter a little around their rates."
)


def show_heading(screen: Screen, rows: tuple[int, ...], columns: Columns, data: str) -> None:
    """Say which rows a table is about."""
    screen.heading(f"{count(sum(rows), 'row')} of {spoken(data)}, by {' / '.join(columns.grouped)}\n")


def show_audit(
    screen: Screen, found: Audit, columns: Columns, data: str, *, decided: bool, every: bool = False
) -> None:
    """Show what was measured."""
    show_heading(screen, found.rows, columns, data)
    screen.table(found.table(), every=every, more="with --all")
    if found.selection.accuracy is not None:
        screen.text("\nerrors after the rule:" if found.after else "")
        screen.table(found.errors(), every=every)
    screen.text()
    gaps = found.gaps().to_dict()
    screen.table(Table(gaps | {"decisions": ["as given"]} if decided else gaps))
    screen.text()
    names = tuple(plain_name(show_label(label)) for label in found.groups)
    strata = stratum_index(found.groups) if found.within_strata else None
    own = f"before, yes from {found.cutoff:g} on ({'as in the rule' if found.after else '--cutoff'})"
    for word, chosen in (("as given" if decided else own, found.before), ("after", found.after)):
        if chosen:
            screen.text(plain(wrapped(f"{word}: {comparison(chosen.rate, names, strata, found.rows)}")))
    drawn = "" if found.randomized is None else f"; {found.randomized:.2%} of the decisions are drawn"
    screen.say(f"\n{found.footing}{drawn}")


def exit_code(verdict: Verdict, *, sound: bool, undecided: int = 0) -> int:
    """1 only for what is shown; what numbers that are none leave open is 3 everywhere."""
    return {Verdict.WITHIN: 0, Verdict.EXCEEDED: 1, Verdict.UNDECIDED: undecided if sound else 3}[verdict]


def judge(
    screen: Screen, found: Audit, above: float | None, below: float | None, *, decided: bool
) -> tuple[dict[str, Any], int]:
    """Say whether the gates are passed, and no more than the data show; for JSON, and the exit code."""
    gap, limits = found.gap, found.selection.gap_interval
    own = "these decisions" if decided else "the classifier's own decisions"
    whose = own if found.after is None else "the decisions after the rule"
    sure, sound = f"with {percentage(found.confidence)} confidence", is_sound(gap, limits)
    measured = f"measured {gap:.4f}, limits {limits[0]:.4f} to {limits[1]:.4f}"
    gates = [(limit, undecided) for limit, undecided in ((above, 0), (below, 3)) if limit is not None]
    verdicts = [verdict_on(gap, limits, limit) for limit, _ in gates]
    codes = [
        exit_code(verdict, sound=sound, undecided=undecided)
        for (_, undecided), verdict in zip(gates, verdicts, strict=True)
    ]
    for (limit, _), verdict, code in zip(gates, verdicts, codes, strict=True):
        shown = {
            Verdict.EXCEEDED: f"the gap of {whose} is above {limit:g} {sure} ({measured})",
            Verdict.WITHIN: f"the gap of {whose} is at most {limit:g} {sure} ({measured})",
            Verdict.UNDECIDED: f"the data neither show nor rule out a gap of {whose} above {limit:g} ({measured})"
            + ("; more rows would tell" if gap > limit else "")
            + _why_wide(found),
        }
        unsound = f"the limits of the gap of {whose} are no numbers or do not contain it ({measured})"
        said = shown[verdict] if sound else unsound
        if code and screen.is_quiet:  # the reason for the exit code
            screen.warn(f"gate {WORDS[verdict].lower()}: {said}.")
        else:
            screen.say(f"\nGate {WORDS[verdict]}: {said}.")
    return {
        "decisions": "before" if found.after is None else "after",
        "fail_above": above,
        "fail_unless_below": below,
        "gap": gap,
        "lower_limit": limits[0],
        "upper_limit": limits[1],
        "verdict": worst(verdicts),
        "failed": any(codes),
    }, 1 if 1 in codes else max(codes)


def _why_wide(found: Audit) -> str:
    """Which group makes the limits of a gap so wide that hardly anything is above or below them."""
    chosen = found.selection
    if chosen.gap_interval[1] - chosen.gap_interval[0] <= WIDE:
        return ""
    k = max(range(len(found.groups)), key=lambda k: chosen.upper[k] - chosen.lower[k])
    return f"; the limits are widest for group {with_rows([(found.groups[k], found.rows[k])])}"


def plain(text: str) -> str:
    """Without the marks that keep names apart from the words around them."""
    return "".join(c for c in text if c not in "\u2068\u2069").replace("\u00a0", " ")


def show(screen: Screen, rule: Rule, found: Certificate | str, *, every: bool) -> None:
    """Print it; `found` is the rule's certificate, or why it has none."""
    screen.heading(f"{rule.heading}\n")
    screen.text(*(wrapped(one_line(text), f"{name:8}") for name, text in _facts(rule)), "")
    screen.table(rule.table(), every=every, more="with --all", what="group")
    screen.text()
    if record := rule.record:
        most = "" if record.rates["selection"].is_exact else "at most "
        small = [pair for pair in zip(rule.groups, record.rows, strict=True) if pair[1] < SMALL_GROUP]
        rare = f"Groups below {SMALL_GROUP} fit rows, whose rates are mostly chance: {with_rows(small)}."
        screen.say(
            f"gap on the fit rows: {record.gap_before:.4f} before, {most}{record.gap_after:.4f} after, in "
            "expectation",
            *([rare] if small else []),
            "",
        )
    if isinstance(found, str) or len(rule.groups) == 1:
        screen.say(found if isinstance(found, str) else "There is one single group, so there is no gap to bound.")
        return
    show_certificate(screen, rule, found)
    sure = percentage(found.confidence)
    proven = f" and at least {sure} their proven one" if found.proven is not None else ""
    screen.say(
        f"\nConfidence: of rules fitted to fresh rows again and again, about {sure} keep their estimated limit"
        f"{proven}. Limits in points are rounded up.\n",
        _NOT_COVERED,
    )


def show_certificate(screen: Screen, rule: Rule, found: Certificate) -> None:
    """What is certified, and what helps where that is less than was asked for."""
    screen.text(repr(found))
    record = rule.record
    if record is not None and record.asked is not None:
        return
    kind = limit_kind(found.estimated, found.proven)
    if 0 < rule.max_gap < found.estimated and len(rule.groups) > 1:
        screen.say(
            f"The {kind} limit is above the --max-gap of {rule.max_gap:g}, which holds on the fit rows alone. "
            f"To keep it in the population, fit with --confidence {found.confidence:g}; fairramp rows-needed "
            "says how many rows that takes."
        )


def certificate_of(rule: Rule, confidence: float) -> Certificate | str:
    """The certificate of a rule, or why it has none."""
    check_number("confidence", confidence, 0.5, 1 - 1e-9)
    try:
        return certify(rule, confidence)
    except FairrampError as error:
        return str(error)


def _facts(rule: Rule) -> list[tuple[str, str]]:
    record, unit, columns = rule.record, SCALES[rule.scale].shown_per_unit, rule.columns
    unseen = _UNSEEN[rule.unseen_group].format(rule.threshold_of(rule.pooled) * unit if rule.pooled else 0)
    goal = f"selection rates at most {rule.max_gap:.4g} apart" if rule.max_gap else "equal selection rates"
    if record and record.asked:
        goal += " on the fit rows"
    if record:
        goal += f", target rate {record.target if isinstance(record.target, str) else format(record.target, 'g')}"
    place = {"centered": "centered on", "paper": "beginning at"}[rule.ramp]
    widths = [f"{width * unit:g}" for width in sorted({ramp.width for ramp in rule.ramps})]
    width = " to ".join(dict.fromkeys((widths[0], widths[-1])))
    ramp = f"on a ramp {width} wide, {place} the threshold, where the chance of a yes rises evenly"
    facts = {
        "score": f"{_columns(columns.score and [columns.score])}, {_SCALES[rule.scale]}; the classifier says yes "
        f"from {rule.cutoff:g} on",
        "groups": f"{_columns(columns.groups)}; one that the fit did not see {unseen}",
        "strata": f"{_columns(columns.strata)}; groups are compared within each" if rule.stratified else None,
        "goal": goal,
        "note": "; ".join(record.notes(rule.max_gap)) if record else None,
        "by lot": "only for a score equal to the threshold" if rule.is_hard else ramp,
        "fitted": _fitted(rule),
        "rule": f"fingerprint {rule.fingerprint}",
        "data": f"fingerprint {record.fingerprint}" if record else None,
    }
    return [(name, text) for name, text in facts.items() if text]


def _columns(names: Any) -> str:
    several = "s" if names and len(names) > 1 else ""
    return f"column{several} {', '.join(names)}" if names else "name of the column not known"


def _fitted(rule: Rule) -> str:
    record = rule.record
    if record is None:
        return "not known: there is no record of the fit, its rows and its rates"
    rows, rates = count(sum(record.rows), "row"), record.rates["selection"]
    how = {
        f"to {rows}{' with weights' if record.weighted else ''}": True,
        f"in bins: a rate after is right to {max(rates.error):.1e}": not rates.is_exact,
        "on cross-fitted scores": record.cross_fitted,
        "by stochastic gradient descent": record.solver == "sgd",
        f"by fairramp {record.version}; date: {record.date or 'not given'}": True,
    }
    return ", ".join(text for text, holds in how.items() if holds)


def certified(certificate: Certificate) -> dict[str, Any]:
    """A certificate for machines."""
    return {
        "estimated": certificate.estimated,
        "proven": certificate.proven,
        "confidence": certificate.confidence,
        "bounds": [asdict(bound) for bound in certificate.bounds],
        "assumptions": certificate.assumptions,
        **_small_groups(certificate),
        "rest": certified(certificate.rest) if certificate.rest else None,
    }


def _small_groups(found: Certificate) -> dict[str, Any]:
    """The groups that make a limit wide, and their rows."""
    pairs = (found.widest_for, *found.left_out)
    widest, *left_out = (pair and {"group": pair[0], "rows": pair[1]} for pair in pairs)
    return {"widest_for": widest, "left_out": left_out}


def checked(found: Check) -> dict[str, Any]:
    """A check for machines."""
    return {
        "verdict": found.verdict,
        "has_drifted": found.has_drifted,
        "gap": found.gap,
        "gap_interval": found.gap_interval,
        "limit": found.limit,
        "groups": list(found.table().rows()),
        "pair": found.pair,
        "stratum": found.stratum,
        "false_alarm_rate": found.false_alarm_rate,
        "detectable_gap": found.detectable_gap,
        "left_out": [{"group": label, "rows": n} for label, n in found.left_out],
        "missing": found.missing,
        "comparisons": _compared(found.comparisons),
    }


def monitored(found: Monitor) -> dict[str, Any]:
    """A monitor for machines."""
    return {
        "verdict": found.verdict,
        "has_drifted": found.has_drifted,
        "alarm": found.alarm,
        "looks": found.looks,
        "evidence": found.evidence,
        "gap": found.gap,
        "gap_interval": found.gap_interval,
        "limit": found.limit,
        "confidence": found.confidence,
        "groups": list(found.table().rows()),
        "pair": found.pair,
        "comparisons": _compared(found.comparisons),
    }


def _compared(comparisons: tuple[Comparison, ...]) -> list[dict[str, Any]]:
    """Gaps beside their limits, for machines."""
    return [
        {
            "left_out": [{"group": label, "rows": n} for label, n in one.left_out],
            "gap": one.gap,
            "gap_interval": one.interval,
            "limit": one.limit,
            "verdict": one.verdict,
        }
        for one in comparisons
    ]


def content(rule: Rule, found: Certificate | str) -> dict[str, Any]:
    """All of it for machines."""
    unit, record = SCALES[rule.scale].shown_per_unit, rule.record
    names = ("target", "gap_before", "gap_after", "weighted", "cross_fitted", "solver", "date")
    pooled = rule.pooled and {"threshold": rule.threshold_of(rule.pooled) * unit, "tie_chance": rule.pooled.tie}
    widths = {ramp.width * unit for ramp in rule.ramps}
    return {
        "score_column": rule.columns.score,
        "group_columns": rule.columns.groups,
        "strata_columns": rule.columns.strata,
        "rows": record and sum(record.rows),
        "groups": list(rule.table().rows()),
        "criterion": rule.criterion,
        "stratified": rule.stratified,
        "max_gap": record.asked.max_gap if record and record.asked else rule.max_gap,
        "fit_gap": rule.max_gap,
        "target_rate": rule.target_rate,
        "ramp_width": widths.pop() if len(widths) == 1 else None,  # the table has each
        "ramp": rule.ramp,
        "scale": rule.scale,
        "cutoff": rule.cutoff,
        "unseen_group": rule.unseen_group,
        "pooled": pooled,
        **{name: record and getattr(record, name) for name in names},
        "asked": record and record.asked and asdict(record.asked),
        "fitted_with": record and record.version,
        "certificate": None if isinstance(found, str) else certified(found),
        "why_no_certificate": found if isinstance(found, str) else None,
        "rule_fingerprint": rule.fingerprint,
        "data_fingerprint": record and record.fingerprint,
    }


# Warnings about rows -----------------------------------------------------------------------------


def turned(scale: str | None) -> str:
    """What to pass instead of scores that mean no when they are high."""
    return {"percent": "100 - score", "signed": "-score", "logit": "-score"}.get(scale or "", "1 - score")


def warn_direction(screen: Screen, job: Job, scale: str | None) -> None:
    """Scores that are lower where the label is yes."""
    if "--label" not in job.numbers:
        return
    label = job.numbers["--label"]
    means = (f"avg({job.score.expression}) FILTER (({label.expression}) = {y})" for y in (1, 0))
    ((yes, no),) = job.source.ask(", ".join(means))
    if yes is not None and no is not None and yes < no:
        # The labels that mean no.
        good = job.source.ask(
            f"DISTINCT trim(CAST({label.column} AS VARCHAR))", f"WHERE ({label.expression}) = 0 LIMIT 2"
        )
        instead = shlex.quote(good[0][0]) if len(good) == 1 else "the good one"
        screen.warn(
            f"the scores run against the labels: their mean is {yes:.4g} where the label is yes and {no:.4g} "
            "where it is no, but a higher score must mean yes; if a high score is bad (a risk), pass "
            f"{turned(scale)}; or, if the label that counts as yes is the bad outcome (a default), pass "
            f"--positive {instead}."
        )


def _listed(groups: list[tuple[Any, int]]) -> str:
    return with_rows(groups, 10, "{} ({})")


def warn_groups(screen: Screen, job: Job, rule: Rule | None, *, compared: bool = False) -> None:
    """Groups that are alone, small, or unknown to the rule, which refuses them if it has to."""
    known = set(map(label_key, rule.groups if rule else ()))
    unknown = [pair for pair in job.groups if label_key(pair[0]) not in known]
    if rule is not None and unknown:
        _refuse_unknown(rule, unknown)
        how = "the common threshold" if rule.unseen_group == "pooled" else "the classifier's own decision"
        rows = count(sum(n for _, n in unknown), "row")
        screen.warn(f"{rows} of groups not seen in the fit get {how}: {_listed(unknown)}.")
    found, n = job.groups, len(job.columns.strata or ())
    screen.warn(
        f"there is one single group, {show_label(found[0][0])}: nothing to compare.",
        when=compared and len({label_key(label_of(parts[n:])) for parts in job.cells}) == 1,
    )
    small = [pair for pair in found if pair[1] < SMALL_GROUP]
    screen.warn(
        f"groups below {SMALL_GROUP} rows, whose rates are mostly chance: {_listed(small)}."
        + doubt(len(found), job.rows),
        when=small,
    )


def _refuse_unknown(rule: Rule, unknown: list[tuple[Any, int]]) -> None:
    """Refuse groups if the rule does, with those that they were probably meant as."""
    known = list(map(show_label, rule.groups))
    spellings = {_spelling(label): label for label in known}
    new = [show_label(label) for label, _ in unknown[:10]]
    near = {label: spellings[_spelling(label)] for label in new if _spelling(label) in spellings}
    guess = f" Is {', '.join(f'{label!r} meant as {name!r}' for label, name in near.items())}?" if near else ""
    if any(unicodedata.normalize("NFC", label) == name for label, name in near.items()):
        guess += " Their accents are written as characters of their own; normalize them to NFC."
    refuse_if(
        rule.unseen_group == "error",
        "Groups not seen in the fit: {unknown}; the rule knows {known}{more}.{guess} Correct them, or fit "
        "again on rows that have them, or fit again with --unseen-group {policies} to decide them too",
        unknown=_listed(unknown),
        known=", ".join(known[:10]),
        more=", …" if len(known) > 10 else "",
        guess=guess,
        policies="original" if rule.stratified else "pooled or original",
    )


def _spelling(label: str) -> str:
    """What labels have in common that look alike: accents in one or two characters, case, spaces."""
    return "".join(unicodedata.normalize("NFKC", label).casefold().split())


def warn_duplicates(screen: Screen, job: Job) -> None:
    """Rows that share an id."""
    ((extra,),) = job.source.ask(f"count(*) - count(DISTINCT {job.source.find(str(job.columns.id), '--id')})")
    if extra:
        many = f"{extra:,} rows repeat" if extra > 1 else "1 row repeats"
        screen.warn(f"{many} the id of another row in {job.columns.id!r}; rows with the same id share one draw.")
