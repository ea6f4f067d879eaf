"""`fairramp apply`: a file of scores becomes a file of decisions."""

from typing import Annotated

from cyclopts import Parameter

from fairramp.cli.options import (
    OUTPUT,
    All,
    Data,
    Decimal,
    Delimiter,
    Group,
    Json,
    Quiet,
    RuleFile,
    RuleScale,
    Score,
    Strata,
)
from fairramp.cli.render import STDOUT, Screen, count, refuse_if, spoken


def apply(
    rule: RuleFile,
    data: Data,
    /,
    *,
    output: Annotated[
        str, Parameter(name=OUTPUT, help="Where the rows go: .csv, .tsv, .jsonl, .parquet, or - for stdout.")
    ],
    id: Annotated[
        str | None, Parameter(help="Column that says who a row is; the same id, the same answer.")
    ] = None,
    key_file: Annotated[
        str | None, Parameter(help="File with the secret key (see keygen); or set FAIRRAMP_KEY.")
    ] = None,
    random_seed: Annotated[
        int | None,
        Parameter(help="Draw by row number instead of by id: a person in another row gets another answer."),
    ] = None,
    probability_only: Annotated[
        bool, Parameter(help="Add the chance of a yes and draw nothing.", negative="", show_default=False)
    ] = False,
    prefix: Annotated[str, Parameter(help="Put before the names of the new columns.", show_default=False)] = "",
    every: All = False,
    score: Score = None,
    group: Group = None,
    strata: Strata = None,
    scale: RuleScale = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add `probability` and `decision` to every row; all columns and the order of the rows stay.

    Decisions are drawn with --id and a key, or with --random-seed; without either only the probability is added.

    For example:

    fairramp apply rule.json scores.csv -o decisions.csv --id id --key-file key.txt
    """
    from fairramp.cli import library, outputs, texts

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    known = library.load_rule(rule, "apply")
    outputs.check_output(output, data, {"the rule": rule, "the key file": key_file}, table=True)
    key, seeded = library.drawing(screen, id, key_file, random_seed, probability_only)
    columns = library.columns_of(known, score, group, strata, id if key and not seeded else None)
    added = [f"{prefix}probability", *([f"{prefix}decision"] if key else [])]
    with library.opened(
        screen,
        data,
        columns,
        scale=scale,
        decimal=decimal,
        delimiter=delimiter,
        rule=known,
        may_be_empty=True,
    ) as job:
        for name in added:
            refuse_if(
                name in job.source.names,
                "{where} has a column {name!r} already; pass --prefix new_ or rename it",
                where=job.source.shown,
                name=name,
            )
        if job.rows:
            texts.warn_groups(screen, job, known)
        else:
            screen.warn(f"{job.source.shown} has a header and no rows, and so has the output.")
        connection = job.source.connection
        if columns.id is not None:
            with screen.progress(connection, "Looking for duplicate ids"):
                texts.warn_duplicates(screen, job)
        with screen.progress(connection, "Deciding"):
            groups = library.decide_all(job, known, key, seeded=seeded)
        with screen.progress(connection, "Writing"):
            outputs.write(
                connection,
                library.output_query(job, decided=key is not None, target=output, comma=decimal == ","),
                [*job.source.names, *added],
                output,
                delimiter=library.output_delimiter(job, delimiter, decimal),
                mark=job.source.mark,
                empty=not job.rows,
            )
    screen.say(f"{' and '.join(added)} added to {count(job.rows, 'row')}, written to {spoken(output)}.")
    if job.rows:
        screen.text()
        screen.table(
            library.decided_table(known, groups, decided=key is not None), every=every, more="with --all"
        )
    if key is None and not probability_only:
        screen.say(
            f"\nNo decisions were drawn: {added[0]} is the chance of a yes. For decisions pass --id COLUMN "
            "--key-file FILE, and the same person always gets the same answer."
        )
    elif seeded:
        screen.say(
            "\nDrawn by row number: the same file gives the same answers, but a person in another row may not."
        )
    screen.result("apply", rule=rule, data=data, output=output, columns=added, rows=job.rows, groups=groups)
