"""`fairramp monitor`: add a batch of rows to a rule's monitor and test the gap."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fairramp.cli.options import (
    Data,
    Decimal,
    Delimiter,
    Group,
    Json,
    Label,
    Positive,
    Quiet,
    RuleFile,
    RuleScale,
    Score,
    Sheet,
    SkipInvalid,
    Strata,
)
from fairramp.cli.render import Screen, count

if TYPE_CHECKING:
    from fairramp.cli.job import Job


def monitor(
    rule: RuleFile,
    data: Data,
    /,
    *,
    state: Annotated[str, Parameter(help="File that stores the counts so far; created by the first batch.")],
    score: Score = None,
    group: Group = None,
    label: Label = None,
    positive: Positive = None,
    strata: Strata = None,
    scale: RuleScale = None,
    confidence: Annotated[
        float | None,
        Parameter(help="Confidence level of the limit and of the alarm, set with the first batch; default 0.95."),
    ] = None,
    batch: Annotated[
        str | None, Parameter(help="Name of the batch, such as a date; by default, a fingerprint of its rows.")
    ] = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    skip_invalid: SkipInvalid = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Add a batch of new rows and check whether the gap exceeds the rule's estimated limit.

    Run it after every batch: the limit on the false-alarm rate holds however often you check. The exit code is 1
    once a batch has raised the alarm, and 0 until then. --label is needed only for a rule that makes error rates
    equal. Weights are not supported. A batch that was added before is not counted again.

    For example:

    fairramp monitor rule.json scores.csv --state state.json
    """
    from fairramp.cli import library, naming, outputs, strangers, texts
    from fairramp.errors import refuse_if
    from fairramp.measure.batches import rows_fingerprint
    from fairramp.measure.monitor import Monitor

    screen = Screen(json=json, quiet=quiet)
    reading: dict[str, Any] = {
        "delimiter": delimiter,
        "decimal": decimal,
        "sheet": sheet,
        "skip_invalid": skip_invalid,
        "inputs": {"--state": state},
    }
    known = naming.load_rule(rule, "monitor")
    texts.check_label(known, label)
    refuse_if(batch == "", "must not be empty", argument="batch")
    columns = naming.columns_of(known, score, group, strata)
    with outputs.alone(state):
        if Path(state).exists():
            found = Monitor.load(state, known, confidence=confidence)
        else:
            found = Monitor(known, 0.95 if confidence is None else confidence)

        def refuse_lost(job: "Job") -> None:
            # Counts cannot be taken back, and the corrected rows would be another batch.
            refuse_if(
                lost := strangers.lost_groups(job, known),
                "{lost} Nothing was added",
                remedy="correct these rows, or remove them from the file",
                lost=lost,
            )

        job, arrays = library.read(
            screen,
            data,
            columns,
            refuse_lost,
            lambda job: texts.warn_groups(screen, job, known, compared=True),
            lambda job: texts.warn_absent(screen, job, known),
            lambda job: texts.warn_direction(job, known, scale, lower_is_better=False),
            ordered=True,
            scale=scale,
            **reading,
            rule=known,
            label=label,
            positive=positive,
        )
        rows = {name: arrays[name] for name in ("scores", "groups", "labels", "strata")}
        mark = rows_fingerprint(known, **rows)
        # A batch is recorded by name and by fingerprint, so neither can be added twice.
        name = f"{batch} · {mark}" if batch else mark
        earlier = [one.rpartition(" · ")[::2] for one in found.batches]
        refuse_if(
            any(batch and batch == known_as and mark != theirs for known_as, theirs in earlier),
            "{state} already has a batch named {batch!r} with different rows, so nothing was added",
            remedy="choose another --batch name",
            batch=batch,
            state=state,
        )
        is_new = all(mark != theirs for _, theirs in earlier)
        before = sum(found.rows)
        if is_new:
            with texts.direction_told():
                found.update(**rows, batch=name)
            found.save(state)
        else:
            screen.warn(f"these rows are already in {state} and were not counted again.")
    n_rows = count(sum(found.rows), known.event.row)
    screen.heading(f"{n_rows} counted in {state} so far, by {' / '.join(columns.grouped)}\n")
    first, *more = found.sentences()
    screen.verdict(f"Monitor {found.verdict.word}. {first}", told=found.has_drifted)
    screen.say(*more, "")
    screen.table(found.table())
    if is_new and (left_out := job.rows - (sum(found.rows) - before)):
        other = texts.other_label(known.event)
        screen.say(f"\n{count(left_out, 'row')} left out: {other}groups not in the fit rows.")
    return screen.result(
        "monitor",
        int(found.has_drifted),
        rule=rule,
        data=data,
        state=state,
        batch=name,
        added=is_new,
        **library.named(columns),
        **found.to_dict(),
    )
