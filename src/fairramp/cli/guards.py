"""What a command refuses, warns of, or fails on: inputs are never overwritten, and numbers not over-read."""

import json
import os
import shlex
import unicodedata
from typing import Any

from fairramp.cli.engine import Job, duplicate_ids, group_label, label_of_no, mean_scores, unseen
from fairramp.cli.render import count
from fairramp.cli.tables import STDIN, TableError, input_files, is_stream
from fairramp.core.labels import label_key, show_label
from fairramp.core.table import percentage, with_rows
from fairramp.errors import FairrampError
from fairramp.fit.fit import SMALL_GROUP, doubt
from fairramp.measure.audit import Audit
from fairramp.measure.certificate import WIDE
from fairramp.rule.file import FORMAT
from fairramp.rule.rule import Rule

__all__ = [
    "earlier_rule",
    "is_decided",
    "judge",
    "keep_inputs",
    "keep_others",
    "turned",
    "warn_direction",
    "warn_duplicates",
    "warn_groups",
]


def keep_inputs(output: str, data: str, others: dict[str, str | None] | None = None) -> None:
    """Refuse to write over what is read."""
    if is_stream(output):
        return
    target = os.path.realpath(output)
    inputs = [("DATA", file) for file in ([] if data == STDIN else input_files(data))]
    for what, path in [*inputs, *(others or {}).items()]:
        files = [] if path is None else input_files(path) if what == "--validation" else [path]
        for file in files:
            same = os.path.exists(output) and os.path.exists(file) and os.path.samefile(output, file)
            if same or os.path.realpath(file) == target:
                raise TableError(f"-o {output} would overwrite {what}; name another file.")


def keep_others(path: str) -> None:
    """Refuse to write a rule over a file that is something else, such as data or a key."""
    if is_stream(path) or not os.path.exists(path) or os.path.getsize(path) == 0:
        return
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:  # also a rule of another version is one
        raise TableError(
            f"{path} exists and is not a rule, so it is not overwritten; name another file or delete it."
        )


def earlier_rule(path: str) -> Rule | None:
    """The rule that a file holds, if it holds one that can be read."""
    try:
        return Rule.load(path) if os.path.isfile(path) else None
    except (OSError, FairrampError):
        return None


def turned(scale: str | None) -> str:
    """What to pass instead of scores that mean no when they are high."""
    return {"percent": "100 - score", "signed": "-score", "logit": "-score"}.get(scale or "", "1 - score")


def warn_direction(screen: Any, job: Job, scale: str | None) -> None:
    """Scores that are lower where the label is yes."""
    if job.columns.label is None:
        return
    yes, no = mean_scores(job)
    if yes is not None and no is not None and yes < no:
        good = label_of_no(job)
        instead = "the good one" if good is None else shlex.quote(good)
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
    if rule is not None:
        unknown = unseen(job, rule)
        if unknown and rule.unseen_group == "error":
            spelled = {_spelling(show_label(label)): show_label(label) for label in rule.groups}
            near = [spelled.get(_spelling(show_label(label))) for label, _ in unknown[:10]]
            pairs = zip(unknown[:10], near, strict=True)
            means = [f"{show_label(label)!r} meant as {name!r}" for (label, _), name in pairs if name is not None]
            guess = f" Is {', '.join(means)}?" if means else ""
            if any(_composed(show_label(label)) == name for (label, _), name in zip(unknown, near, strict=False)):
                guess += " Their accents are written as characters of their own; normalise them to NFC."
            known = ", ".join(show_label(label) for label in rule.groups[:10])
            known += ", …" if len(rule.groups) > 10 else ""
            policies = "pooled or original" if rule.criterion == "parity" else "original"
            raise TableError(
                f"Groups not seen in the fit: {_listed(unknown)}; the rule knows {known}.{guess} Correct them, "
                "or fit again on rows that have them, or fit again with --unseen-group "
                f"{policies} to decide them too."
            )
        if unknown:
            how = "the common threshold" if rule.unseen_group == "pooled" else "the classifier's own decision"
            rows = sum(n for _, n in unknown)
            screen.warn(f"{count(rows, 'row')} of groups not seen in the fit get {how}: {_listed(unknown)}.")
    pairs_found = zip((group_label(job, values) for values in job.found.labels), job.found.counts, strict=True)
    found = sorted(pairs_found, key=lambda pair: label_key(pair[0]))
    single = {
        label_key(label[1] if job.columns.strata and isinstance(label, tuple) else label) for label, _ in found
    }
    if compared and len(single) == 1:
        screen.warn(f"there is one single group, {show_label(found[0][0])}: nothing to compare.")
    small = [pair for pair in found if pair[1] < SMALL_GROUP]
    if small:
        screen.warn(
            f"groups below {SMALL_GROUP} rows, whose rates are mostly chance: {_listed(small)}."
            + doubt(len(found), job.rows)
        )


def _composed(label: str) -> str:
    return unicodedata.normalize("NFC", label)


def _spelling(label: str) -> str:
    """What labels have in common that look alike: accents in one or two characters, case, spaces."""
    return "".join(unicodedata.normalize("NFKC", label).casefold().split())


def judge(
    screen: Any, found: Audit, above: float | None, below: float | None, *, decided: bool
) -> dict[str, Any]:
    """Say whether the gates are passed, and no more than the data show."""
    lower, upper = found.selection.gap_interval
    whose = "these decisions" if decided else "the classifier's own decisions"
    whose = whose if found.after is None else "the decisions after the rule"
    sure = f"with {percentage(found.confidence)} confidence"
    measured = f"measured {found.gap:.4f}, limits {lower:.4f} to {upper:.4f}"
    failed = False
    for limit, is_failed in (
        (above, above is not None and lower > above),
        (below, below is not None and upper > below),
    ):
        if limit is None:
            continue
        failed = failed or is_failed
        if lower > limit:
            shown = f"the gap of {whose} is above {limit:g} {sure} ({measured})"
        elif upper <= limit:
            shown = f"the gap of {whose} is at most {limit:g} {sure} ({measured})"
        else:
            shown = f"the data neither show nor rule out a gap of {whose} above {limit:g} ({measured})"
            if found.gap > limit:
                shown += "; more rows would tell"
            shown += _why_wide(found)
        if is_failed and screen.is_quiet:  # the reason for an exit code of 1
            screen.warn(f"gate failed: {shown}.")
        else:
            screen.say(f"\nGate {'FAILED' if is_failed else 'passed'}: {shown}.")
    return {
        "decisions": "before" if found.after is None else "after",
        "fail_above": above,
        "fail_unless_below": below,
        "gap": found.gap,
        "lower_limit": lower,
        "upper_limit": upper,
        "failed": failed,
    }


def _why_wide(found: Audit) -> str:
    """Which group makes the limits of a gap so wide that hardly anything is above or below them."""
    lower, upper = found.selection.gap_interval
    if upper - lower <= WIDE:
        return ""
    widths = [high - low for low, high in zip(found.selection.lower, found.selection.upper, strict=True)]
    k = widths.index(max(widths))
    return f"; the limits are widest for group {with_rows([(found.groups[k], found.rows[k])])}"


def is_decided(scores: Any) -> bool:
    """Whether the scores are decisions already."""
    return bool(((scores == 0) | (scores == 1)).all())


def warn_duplicates(screen: Any, job: Job) -> None:
    """Rows that share an id."""
    extra = duplicate_ids(job)
    if extra:
        many = f"{extra:,} rows repeat" if extra > 1 else "1 row repeats"
        screen.warn(f"{many} the id of another row in {job.columns.id!r}; rows with the same id share one draw.")
