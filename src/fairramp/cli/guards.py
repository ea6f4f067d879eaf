"""What a command refuses, warns of, or fails on: inputs are never overwritten, and numbers not over-read."""

import contextlib
import json
import os
import shlex
import unicodedata
from pathlib import Path
from typing import Any

from fairramp.cli.outputs import check_target, is_stream
from fairramp.cli.render import STDIN, count, refuse_if
from fairramp.cli.scan import Job
from fairramp.cli.tables import input_files
from fairramp.core.labels import label_key, label_of, show_label
from fairramp.core.table import percentage, with_rows
from fairramp.errors import FairrampError
from fairramp.fit.fit import SMALL_GROUP, doubt
from fairramp.measure.audit import Audit
from fairramp.measure.certificate import WIDE
from fairramp.measure.verdict import Verdict, is_sound, verdict_on, worst
from fairramp.rule.file import FORMAT
from fairramp.rule.rule import Rule

#: What gates and checks say of each verdict.
WORDS = {Verdict.WITHIN: "passed", Verdict.EXCEEDED: "FAILED", Verdict.UNDECIDED: "undecided"}


def check_output(output: str, data: str, others: dict[str, str | None] | None = None, **kind: bool) -> None:
    """Refuse an output that cannot be written, as `check_target` does, or that is one of the inputs."""
    if is_stream(output):
        return
    check_target(output, **kind)
    given = {"DATA": data} | (others or {})
    tables = {name: path for name, path in given.items() if path not in (None, STDIN)}
    named = [
        (name, file)
        for name, path in tables.items()
        for file in (input_files(str(path)) if name in ("DATA", "--validation") else [str(path)])
    ]
    for what, file in named:
        same = os.path.exists(output) and os.path.exists(file) and os.path.samefile(output, file)
        refuse_if(
            same or os.path.realpath(file) == os.path.realpath(output),
            "-o {output} would overwrite {what}; name another file",
            output=output,
            what=what,
        )


def keep_others(path: str) -> Rule | None:
    """Refuse to write a rule over what is none, such as data or a key; the rule that the file holds, if any."""
    if is_stream(path) or not os.path.exists(path) or os.path.getsize(path) == 0:
        return None
    content = None
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(Path(path).read_bytes())
    # A rule of another version is one, too.
    refuse_if(
        not isinstance(content, dict) or content.get("format") != FORMAT,
        "{path} exists and is not a rule, so it is not overwritten; name another file or delete it",
        path=path,
    )
    with contextlib.suppress(OSError, FairrampError):
        return Rule.load(path)
    return None


def turned(scale: str | None) -> str:
    """What to pass instead of scores that mean no when they are high."""
    return {"percent": "100 - score", "signed": "-score", "logit": "-score"}.get(scale or "", "1 - score")


def warn_direction(screen: Any, job: Job, scale: str | None) -> None:
    """Scores that are lower where the label is yes."""
    if "--label" not in job.numbers:
        return
    label = job.numbers["--label"]
    means = (f"avg({job.score.expression}) FILTER (({label.expression}) = {y})" for y in (1, 0))
    ((yes, no),) = job.source.ask(", ".join(means))
    if yes is not None and no is not None and yes < no:
        text = f"DISTINCT trim(CAST({label.column} AS VARCHAR))"  # the labels that mean no
        good = job.source.ask(text, f"WHERE ({label.expression}) = 0 LIMIT 2")
        instead = shlex.quote(good[0][0]) if len(good) == 1 else "the good one"
        screen.warn(
            f"the scores run against the labels: their mean is {yes:.4g} where the label is yes and {no:.4g} "
            "where it is no, but a higher score must mean yes; if a high score is bad (a risk), pass "
            f"{turned(scale)}; or, if the label that counts as yes is the bad outcome (a default), pass "
            f"--positive {instead}."
        )


def _listed(groups: list[tuple[Any, int]]) -> str:
    return with_rows(groups, 10, "{} ({})")


def warn_groups(screen: Any, job: Job, rule: Rule | None, *, compared: bool = False) -> None:
    """Groups that are alone, small, or unknown to the rule, which refuses them if it has to."""
    known = set(map(label_key, rule.groups if rule else ()))
    unknown = [pair for pair in job.groups if label_key(pair[0]) not in known]
    if rule is not None and unknown:
        if rule.unseen_group == "error":
            raise _unknown(rule, unknown)
        how = "the common threshold" if rule.unseen_group == "pooled" else "the classifier's own decision"
        rows = sum(n for _, n in unknown)
        screen.warn(f"{count(rows, 'row')} of groups not seen in the fit get {how}: {_listed(unknown)}.")
    found, n = job.groups, len(job.columns.strata or ())
    if compared and len({label_key(label_of(parts[n:])) for parts in job.cells}) == 1:
        screen.warn(f"there is one single group, {show_label(found[0][0])}: nothing to compare.")
    small = [pair for pair in found if pair[1] < SMALL_GROUP]
    if small:
        screen.warn(
            f"groups below {SMALL_GROUP} rows, whose rates are mostly chance: {_listed(small)}."
            + doubt(len(found), job.rows)
        )


def _unknown(rule: Rule, unknown: list[tuple[Any, int]]) -> FairrampError:
    """A refusal of groups, with those that they were probably meant as."""
    known = list(map(show_label, rule.groups))
    spellings = {_spelling(label): label for label in known}
    new = [show_label(label) for label, _ in unknown[:10]]
    near = {label: spellings[_spelling(label)] for label in new if _spelling(label) in spellings}
    guess = f" Is {', '.join(f'{label!r} meant as {name!r}' for label, name in near.items())}?" if near else ""
    if any(unicodedata.normalize("NFC", label) == name for label, name in near.items()):
        guess += " Their accents are written as characters of their own; normalise them to NFC."
    return FairrampError(
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


def exit_code(verdict: Verdict, *, sound: bool, undecided: int = 0) -> int:
    """1 only for what is shown; what numbers that are none leave open is 3 everywhere."""
    return {Verdict.WITHIN: 0, Verdict.EXCEEDED: 1, Verdict.UNDECIDED: undecided if sound else 3}[verdict]


def judge(
    screen: Any, found: Audit, above: float | None, below: float | None, *, decided: bool
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
        }[verdict]
        if not sound:
            shown = f"the limits of the gap of {whose} are no numbers or do not contain it ({measured})"
        if code and screen.is_quiet:  # the reason for the exit code
            screen.warn(f"gate {WORDS[verdict].lower()}: {shown}.")
        else:
            screen.say(f"\nGate {WORDS[verdict]}: {shown}.")
    gate = {
        "decisions": "before" if found.after is None else "after",
        "fail_above": above,
        "fail_unless_below": below,
        "gap": gap,
        "lower_limit": limits[0],
        "upper_limit": limits[1],
        "verdict": worst(verdicts),
        "failed": any(codes),
    }
    return gate, 1 if 1 in codes else max(codes)


def _why_wide(found: Audit) -> str:
    """Which group makes the limits of a gap so wide that hardly anything is above or below them."""
    chosen = found.selection
    if chosen.gap_interval[1] - chosen.gap_interval[0] <= WIDE:
        return ""
    k = max(range(len(found.groups)), key=lambda k: chosen.upper[k] - chosen.lower[k])
    return f"; the limits are widest for group {with_rows([(found.groups[k], found.rows[k])])}"


def warn_duplicates(screen: Any, job: Job) -> None:
    """Rows that share an id."""
    column = job.source.find(str(job.columns.id), "--id")
    ((extra,),) = job.source.ask(f"count(*) - count(DISTINCT {column})")
    if extra:
        many = f"{extra:,} rows repeat" if extra > 1 else "1 row repeats"
        screen.warn(f"{many} the id of another row in {job.columns.id!r}; rows with the same id share one draw.")
