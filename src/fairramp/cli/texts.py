"""What commands print about rows, rules and audits."""

import contextlib
import shlex
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from fairramp.cli.job import Job, met
from fairramp.cli.render import Screen, count, spoken
from fairramp.cli.strangers import absent_groups, lost_groups
from fairramp.core.cells import largest_gap, stratum_index
from fairramp.core.events import SELECTION, Event
from fairramp.core.headline import SMALL_GROUP, judged
from fairramp.core.labels import Label, label_key, label_of, show_label
from fairramp.core.scales import scale_of
from fairramp.core.table import with_rows
from fairramp.core.words import exact_points, fixed, number, percent, points, wrapped
from fairramp.data.columns import Columns
from fairramp.errors import refuse_if
from fairramp.fit.direction import DirectionWarning, Moments, warn_means
from fairramp.fit.fit import doubt
from fairramp.fit.shortlist import Shortlist
from fairramp.measure.audited import Audit
from fairramp.measure.certificate import Certificate
from fairramp.measure.gate import Gates
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.decided import FIRST, warn_first
from fairramp.rule.limits import limit_kind
from fairramp.rule.rule import Rule
from fairramp.show import describe
from fairramp.show.words import plain_name

#: What the limits do not cover.
_NOT_COVERED = (
    "The limits do not cover {others}, subgroups, groups not in the fit rows, or a population that has "
    "changed: check new rows from time to time with fairramp check or fairramp monitor. Because some decisions "
    "are made at random, actual rates vary a little around these expected rates."
)


def show_heading(
    screen: Screen,
    rows: tuple[int, ...],
    columns: Columns,
    data: str,
    what: str = "row",
    *,
    each: bool = False,
) -> None:
    """Print which rows a table describes; by `each` attribute, every row counts once for each of them."""
    n, between = (sum(rows) // len(columns.grouped), " and by ") if each else (sum(rows), " / ")
    screen.heading(f"{count(n, what)} in {spoken(data)}, by {between.join(columns.grouped)}\n")


def show_audit(screen: Screen, found: Audit, columns: Columns, data: str, *, every: bool = False) -> None:
    """Print an audit."""
    show_heading(screen, found.rows, columns, data, each=found.by_attribute)
    screen.say(*map(plain_name, found.sentences()), "")
    screen.table(found.table(), every=every, more="with --all")
    if found.selection.accuracy is not None:
        screen.say("\nErrors of the rule:\n" if found.after else "")
        screen.table(found.errors(), every=every)
    screen.text()
    screen.table(found.gaps())
    if found.group_model is not None:
        screen.say("\nGroup probabilities:\n")
        screen.table(found.group_model.table())
    if found.intersections is not None:
        screen.say("", found.intersections.as_intersections(), "")
        screen.table(found.intersections.table(), every=every, more="with --all")


def show_gates(screen: Screen, judged: Gates | None) -> tuple[dict[str, Any] | None, int]:
    """Print the verdict of each gate; return all of them for JSON, and the exit code."""
    if judged is None:
        return None, 0
    for sentence, code in zip(judged.sentences(), judged.exit_codes, strict=True):
        screen.text()
        screen.verdict(sentence, told=code or judged.missing)
    return judged.to_dict(), judged.exit_code


def show_shortlist(screen: Screen, found: Shortlist, columns: Columns, data: str, *, every: bool = False) -> None:
    """Print a shortlist."""
    show_heading(screen, found.rows, columns, data)
    screen.say(*map(plain_name, found.sentences()), "")
    screen.table(found.table(), every=every, more="with --all", what="group")
    screen.warn("no division of the places meets the limit; the closest one was taken.", when=found.excess)


def show(screen: Screen, rule: Rule, found: Certificate | str, *, every: bool) -> None:
    """Print a rule; `found` is its certificate, or the reason it has none."""
    screen.heading(wrapped(rule.heading))
    screen.say(*rule.reached)
    screen.text("", *(wrapped(text, f"{name:8}") for name, text in describe.facts(rule)), "")
    screen.table(rule.table(), every=every, more="with --all", what="group")
    screen.text()
    if small := describe.small_groups(rule):
        screen.say(small, "")
    if isinstance(found, str) or len(rule.groups) == 1:
        screen.say(found if isinstance(found, str) else "There is one group, so there is no gap to limit.")
    else:
        show_certificate(screen, rule, found)
        others = f"rates other than {rule.event.rate}s" if rule.event.needs_labels else "error rates"
        screen.say("", describe.meaning(found), "", _NOT_COVERED.format(others=others))


def show_certificate(screen: Screen, rule: Rule, found: Certificate) -> None:
    """Print the limits on the gap, and what to do if they are above the requested gap."""
    screen.text(repr(found))
    record = rule.record
    if record is not None and record.asked is not None:
        return
    kind = limit_kind(found.estimated, found.proven)
    if rule.max_gap and rule.max_gap < found.estimated and len(rule.groups) > 1:
        screen.say(
            f"The {kind} limit is above the {exact_points(rule.max_gap)} of --max-gap, which applies only to the "
            f"fit rows. To apply it to the population, fit with --confidence {found.confidence:g}; fairramp "
            "rows-needed shows how many rows that takes."
        )


def beyond_limit(rule: Rule, found: Sequence[dict[str, Any]]) -> str:
    """A sentence on decisions whose gap is above the limit, by `library.count_decisions`; otherwise nothing.

    Like headlines, it leaves out groups that are too small to judge.
    """
    asked = rule.record.asked if rule.record else None
    limit = asked.max_gap if asked else rule.max_gap
    known = set(map(label_key, rule.groups))
    rows = [row for row in found if row["rows"] and label_key(row["group"]) in known]
    if limit is None or rule.mixes or rule.event is not SELECTION or len(rows) < 2:
        return ""
    strata = stratum_index([row["group"] for row in rows]) if rule.stratified else None
    keep = judged([row["rows"] for row in rows], strata)

    def above(rates: list[float]) -> str:
        gap = largest_gap(np.array(rates)[keep], None if strata is None else strata[keep])
        return points(gap) if gap > limit and fixed(100 * gap, 1) != fixed(100 * limit, 1) else ""

    if expected := above([row["expected_rate"] for row in rows]):
        whom = "new people" if asked else "the fit rows"
        return (
            f"The expected rates are up to {expected} apart on these rows. The limit of {exact_points(limit)} "
            f"applies to {whom}; fairramp check tests whether the gap has changed."
        )
    if rows[0]["selected"] is not None and (drawn := above([row["selected"] / row["rows"] for row in rows])):
        bound = exact_points(limit)
        return f"The limit of {bound} applies to the expected rates; the random draws made the gap {drawn} here."
    return ""


# Warnings about rows -----------------------------------------------------------------------------


def before_after(name: str, before: float, after: float) -> str:
    """A measure on the rows of a fit, before and after the rule."""
    shown = percent if name != "cost" else partial(number, decimals=4)
    what = "Mean cost" if name == "cost" else name.replace("_", " ").capitalize()
    return f"{what} on these rows: {shown(before)} before, {shown(after)} after."


def warn_direction(job: Job, rule: Rule | None, scale: str | None, *, lower_is_better: bool) -> None:
    """Warn if scores are worse where the label is yes; like the library, but names the label to pass instead."""
    if "--label" not in job.numbers:
        return
    label, x = job.numbers["--label"], f"({job.score.expression})"
    w = f"({job.numbers['--weight'].expression})" if "--weight" in job.numbers else "1e0"
    sums = ", ".join(
        f"sum({w} * {term}) FILTER (({label.expression}) = {y})"
        for y in (1, 0)
        for term in ("1", w, x, f"{x} * {x}")
    )
    (found,) = job.source.ask(sums)
    if None in found:
        return
    others = _written(job, 0)
    warn_means(
        Moments.of(*found[:4]),
        Moments.of(*found[4:]),
        rule.meaning if rule else scale_of(scale or "probability", not lower_is_better),
        fitted=rule is not None,
        swap="pass --positive {other}",
        other=shlex.quote(others[0]) if len(others) == 1 else "the good one",
    )


def warn_decided(job: Job, rule: Rule) -> None:
    """Warn if scores are decisions; like the library, which does so for rows in memory."""
    x = f"({job.score.expression})"
    first = job.source.connection.sql(f"SELECT {x} AS x FROM ({job.source.query}) LIMIT {FIRST}").fetchnumpy()
    share = f"avg(CAST({x} NOT IN (0, 1) AS DOUBLE))"
    warn_first(first["x"], lambda: float(job.source.ask(share)[0][0]), None if rule.mixes else rule.record)


def _written(job: Job, answer: int) -> list[str]:
    """Up to two values of the label column that mean yes (1) or no (0), as in the file."""
    label = job.numbers["--label"]
    found = job.source.ask(
        f"DISTINCT trim(CAST({label.column} AS VARCHAR))", f"WHERE ({label.expression}) = {answer} LIMIT 2"
    )
    return [value for (value,) in found]


def label_names(job: Job, positive: str | None) -> tuple[str, str] | None:
    """What the labels stand for in a report: the column and its values; None without labels."""
    if "--label" not in job.numbers:
        return None
    name, (yes, no) = job.numbers["--label"].name, (_written(job, answer) for answer in (1, 0))
    chosen = yes[0] if len(yes) == 1 else positive or "1"
    return f"{name} = {chosen}", f"{name} = {no[0]}" if len(no) == 1 else f"{name} is not {chosen}"


@contextlib.contextmanager
def direction_told() -> Iterator[None]:
    """Keep the library from repeating `warn_direction`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DirectionWarning)
        yield


def _listed(groups: list[tuple[Any, int]]) -> str:
    return with_rows(groups, 10)


def warn_groups(
    screen: Screen, job: Job, rule: Rule | ClassRule | None, *, compared: bool = False, checked: bool = False
) -> None:
    """Warn about single, small, unknown and lost groups; those that the rule rejects are not warned of.

    A check says itself which groups are lost.
    """
    lost = "" if checked else lost_groups(job, rule)
    screen.warn(f"{lost[:1].lower()}{lost[1:]}", when=lost)
    if job.columns.groups is None:  # there are group probabilities only
        return
    found, n = met(job, rule), len(job.columns.strata or ())
    known = set(map(label_key, rule.groups if rule else ()))
    unknown = [pair for pair in found if label_key(pair[0]) not in known]
    if rule is not None and rule.membership != "probabilities" and unknown and rule.unseen_group != "error":
        how = "the common threshold" if rule.unseen_group == "pooled" else "the classifier's own decision"
        n_rows = count(sum(n for _, n in unknown), "row")
        screen.warn(f"{n_rows} of groups not in the fit rows get {how}: {_listed(unknown)}.")
    screen.warn(
        f"there is one group, {show_label(found[0][0])}: nothing to compare.",
        when=compared and len({label_key(label_of(parts[n:])) for parts in job.cells}) == 1,
    )
    judged = [pair for pair in found if pair not in unknown or rule is None or rule.unseen_group != "error"]
    small = [pair for pair in judged if pair[1] < SMALL_GROUP]
    screen.warn(
        f"groups with fewer than {SMALL_GROUP} rows, whose rates are unreliable: {_listed(small)}."
        + doubt(len(found), job.rows),
        when=small,
    )


def warn_absent(screen: Screen, job: Job, rule: Rule) -> None:
    """Warn about groups of the rule without rows in a batch, whose drift nothing would show."""
    absent = absent_groups(job, rule)
    screen.warn(f"no row is in {absent} of the rule.", when=absent)


def rows_with(n: int, decided: int) -> str:
    """The rows of a file to which something was added, all or some of them."""
    if decided == n:
        return count(n, "row")
    return f"{decided:,} of {count(n, 'row')}, and left it empty for groups not in the fit rows"


def warn_few(screen: Screen, groups: Sequence[Label], rows: Sequence[int], events: Sequence[Event]) -> None:
    """Warn about groups with few rows of the label that error rates are about; `warn_groups` counts all rows."""
    for event in dict.fromkeys(events):
        every = zip(groups, rows, events, strict=True)
        small = [(label, n) for label, n, of in every if of is event and 0 < n < SMALL_GROUP]
        screen.warn(
            f"groups with fewer than {SMALL_GROUP} {event.rows}, whose rates are unreliable: {_listed(small)}.",
            when=small and event.needs_labels,
        )


def check_label(rule: Rule, label: str | None) -> None:
    """Raise if a rule that makes error rates equal is to be checked without labels."""
    refuse_if(
        rule.event.needs_labels and label is None,
        "--label is required: the rule makes {rate}s equal",
        rate=rule.event.rate,
    )


def other_label(event: Event) -> str:
    """The first reason why rows are left out, if rates of one label are compared."""
    return "" if event.label is None else f"label {1 - event.label}, "


def warn_repeated(screen: Screen, extra: int, id: str) -> None:
    """Warn about rows on a ramp that share an id."""
    many = f"{extra:,} rows on a ramp repeat" if extra > 1 else "1 row on a ramp repeats"
    screen.warn(f"{many} the id of another row in {id!r}; rows with the same id share a random draw.")
