"""What a command refuses, warns of, or fails on: inputs are never overwritten, and numbers not over-read."""

import shlex
import unicodedata
from typing import Any

from fairramp.cli.render import count
from fairramp.cli.scan import Job
from fairramp.core.labels import label_key, label_of, show_label
from fairramp.core.table import with_rows
from fairramp.errors import FairrampError
from fairramp.fit.fit import SMALL_GROUP, doubt
from fairramp.rule.rule import Rule


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


def warn_groups(screen: Any, job: Job, rule: Rule | None, *, compared: bool = False) -> None:
    """Groups that are alone, small, or unknown to the rule, which refuses them if it has to."""
    known = set(map(label_key, rule.groups if rule else ()))
    unknown = [pair for pair in job.groups if label_key(pair[0]) not in known]
    if rule is not None and unknown:
        if rule.unseen_group == "error":
            raise _unknown(rule, unknown)
        how = "the common threshold" if rule.unseen_group == "pooled" else "the classifier's own decision"
        rows = count(sum(n for _, n in unknown), "row")
        screen.warn(f"{rows} of groups not seen in the fit get {how}: {_listed(unknown)}.")
    found, n = job.groups, len(job.columns.strata or ())
    if compared and len({label_key(label_of(parts[n:])) for parts in job.cells}) == 1:
        screen.warn(f"there is one single group, {show_label(found[0][0])}: nothing to compare.")
    if small := [pair for pair in found if pair[1] < SMALL_GROUP]:
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


def warn_duplicates(screen: Any, job: Job) -> None:
    """Rows that share an id."""
    ((extra,),) = job.source.ask(f"count(*) - count(DISTINCT {job.source.find(str(job.columns.id), '--id')})")
    if extra:
        many = f"{extra:,} rows repeat" if extra > 1 else "1 row repeats"
        screen.warn(f"{many} the id of another row in {job.columns.id!r}; rows with the same id share one draw.")
