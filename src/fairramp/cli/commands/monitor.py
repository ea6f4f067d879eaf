"""`fairramp monitor`: add a batch of rows to a rule's monitor, and look."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fairramp.cli.options import Data, Decimal, Delimiter, Group, Json, Quiet, RuleFile, Scale, Score, Strata
from fairramp.cli.render import Screen, count


def monitor(
    rule: RuleFile,
    data: Data,
    /,
    *,
    state: Annotated[str, Parameter(help="File that keeps what was seen; made by the first batch.")],
    score: Score = None,
    group: Group = None,
    strata: Strata = None,
    scale: Scale = None,
    confidence: Annotated[
        float | None,
        Parameter(help="Of the limit and of the alarm; 0.95 unless the first batch is given another."),
    ] = None,
    batch: Annotated[
        str | None, Parameter(help="Name of the batch, such as a date; by default made from the rows themselves.")
    ] = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Add a batch of new rows and say whether the gap exceeds its estimated limit, as often as you like.

    The exit code is 1 from the batch on that raises the alarm, and 0 before. Labels are not needed, and there are
    no weights: each row counts once. Rows or a batch name that were added before are not counted again.

    For example:

    fairramp monitor rule.json scores.csv --state state.json
    """
    from fairramp.cli import library, texts
    from fairramp.cli.render import refuse_if
    from fairramp.measure.monitor import Monitor, rows_fingerprint
    from fairramp.measure.verdict import Verdict

    screen = Screen(json=json, quiet=quiet)
    known = library.load_rule(rule, "monitor")
    refuse_if(batch == "", "must be a text", argument="batch", got=batch)
    if Path(state).exists():
        found = Monitor.load(state, known, confidence=confidence)
    else:
        found = Monitor(known, 0.95 if confidence is None else confidence)
    columns = library.columns_of(known, score, group, strata)
    job, arrays = library.read(
        screen,
        data,
        columns,
        lambda job: texts.warn_groups(screen, job, known, compared=True),
        ordered=True,
        scale=scale,
        decimal=decimal,
        delimiter=delimiter,
        rule=known,
    )
    rows = {name: arrays[name] for name in ("scores", "groups", "strata")}
    mark = rows_fingerprint(known, **rows)
    # Every batch is remembered by its rows and by its name, so that neither comes twice.
    name = f"{batch} · {mark}" if batch else mark
    earlier = [one.rpartition(" · ")[::2] for one in found.batches]
    refuse_if(
        any(batch and batch == known_as and mark != theirs for known_as, theirs in earlier),
        "A batch named {batch!r} with other rows is already in {state}, and nothing was added",
        remedy="give these rows another name",
        batch=batch,
        state=state,
    )
    is_new = all(mark != theirs for _, theirs in earlier)
    before = sum(found.rows)
    if is_new:
        found.update(**rows, batch=name)
        found.save(state)
    else:
        screen.warn(f"these rows are already in {state} and are not counted again.")
    screen.heading(f"{count(sum(found.rows), 'row')} in {state} so far, by {' / '.join(columns.grouped)}\n")
    word, (first, *more) = texts.WORDS[found.verdict], found.sentences()
    if quiet and found.has_drifted:  # the reason for the exit code
        screen.warn(f"monitor {word}: {first}")
    screen.say(f"Monitor {word}: {first}", *more, "")
    screen.table(found.table())
    if is_new and (left_out := job.rows - (sum(found.rows) - before)):
        screen.say(f"\n{count(left_out, 'row')} left out: groups that were not in the fit.")
    screen.result(
        "monitor",
        rule=rule,
        data=data,
        state=state,
        batch=name,
        added=is_new,
        **library.named(columns),
        **texts.monitored(found),
    )
    return int(found.verdict is Verdict.EXCEEDED)
