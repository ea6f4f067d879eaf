"""`fairramp apply`: turn a file of scores into a file of decisions."""

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from fairramp.cli.options import (
    OUTPUT,
    All,
    ClassScore,
    Data,
    Decimal,
    Delimiter,
    Group,
    GroupProbability,
    Json,
    Quiet,
    RuleFile,
    RuleScale,
    Score,
    Sheet,
    SkipInvalid,
    Strata,
)
from fairramp.cli.render import STDOUT, Screen, spoken


def apply(
    rule: RuleFile,
    data: Data,
    /,
    *,
    output: Annotated[
        str | None,
        Parameter(
            name=OUTPUT,
            help="Output file (.csv, .tsv, .jsonl or .parquet), or - for stdout; by default, a new file in this "
            "folder, named like DATA and in its format.",
        ),
    ] = None,
    id: Annotated[
        str | None,
        Parameter(help="Column that identifies each person; rows with the same id share one random draw."),
    ] = None,
    key_file: Annotated[
        str | None,
        Parameter(help="File with the secret key (see fairramp keygen); or set FAIRRAMP_KEY to the key."),
    ] = None,
    random_seed: Annotated[
        int | None,
        Parameter(
            help="Make random draws by row number instead of by id; the same person in another row may get a "
            "different decision."
        ),
    ] = None,
    probability_only: Annotated[
        bool, Parameter(help="Add only the probability of being selected.", negative="", show_default=False)
    ] = False,
    prefix: Annotated[str, Parameter(help="Prefix for the names of the new columns.", show_default=False)] = "",
    every: All = False,
    score: Score = None,
    class_score: ClassScore = None,
    group: Group = None,
    group_probability: GroupProbability = None,
    strata: Strata = None,
    scale: RuleScale = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    skip_invalid: SkipInvalid = False,
    unseen_group: Annotated[
        Literal["null"] | None,
        Parameter(
            help="null: rows of groups that were not in the fit rows stay in the output without a probability "
            "and a decision, and are also in the file that --skip-invalid writes; the exit code is then 4. By "
            "default, as in the rule."
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Add a probability and a decision to every row; columns and row order stay the same.

    Decisions need --id and a key, or --random-seed; without them, only the probability is added.

    For example:

    fairramp apply rule.json scores.csv -o decisions.csv --id id --key-file key.txt
    """
    from fairramp.cli import library, naming, outputs, texts
    from fairramp.data.inputs import format_of
    from fairramp.data.stored import read_back
    from fairramp.errors import refuse_if
    from fairramp.rule.class_rule import ClassRule

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    known = naming.load_any_rule(rule, "apply")
    key, seeded = library.drawing(screen, id, key_file, random_seed, probability_only)
    output, note = outputs.named(output, data, "decisions" if key else "probabilities")
    reading: dict[str, Any] = {
        "delimiter": delimiter,
        "decimal": decimal,
        "sheet": sheet,
        "skip_invalid": skip_invalid,
        "output": output,
        "unseen": unseen_group or "error",
    }
    outputs.check_output(output, data, {"the rule": rule, "the key file": key_file}, table=True)
    refuse_if(
        unseen_group and known.unseen_group != "error",
        "--unseen-group null does not apply: the rule decides groups that were not in the fit rows "
        "(--unseen-group {policy} of its fit)",
        policy=known.unseen_group,
    )
    by_id = id if key and not seeded else None
    if isinstance(known, ClassRule):
        from fairramp.cli import classes

        classes.refuse_others({"score": score, "scale": scale})
        _, columns = classes.columns_of(
            known, class_score, group, strata, by_id, group_probability=group_probability, deciding=True
        )
        return classes.apply(
            screen,
            known,
            rule,
            data,
            output,
            columns=columns,
            key=key,
            seeded=seeded,
            probability_only=probability_only,
            prefix=prefix,
            every=every,
            note=note,
            how=reading,
        )
    naming.refuse_classes(class_score)
    columns = naming.columns_of(
        known,
        score,
        group,
        strata,
        by_id,
        probabilities=naming.probabilities_of(group_probability, known.groups),
        deciding=True,
    )
    added = [f"{prefix}probability", *([f"{prefix}decision"] if key else [])]
    with library.opened(
        screen,
        data,
        columns,
        scale=scale,
        **reading,
        rule=known,
        may_be_empty=True,
    ) as job:
        library.check_new(job, added)
        if job.rows:
            texts.warn_groups(screen, job, known)
            texts.warn_decided(job, known)
        else:
            screen.warn(f"{job.source.shown} {job.source.no_rows}, so the output has none either.")
        decided, between = key is not None, library.output_delimiter(job, delimiter, decimal)
        new = ["probability", "decision"][: len(added)]
        library.apply_to(job, known, key, seeded=seeded)
        with (
            screen.progress(job.source.connection, "Deciding"),
            outputs.written(
                job.source.connection,
                library.output_query(job, new, target=output, comma=decimal == ","),
                [*job.source.names, *added],
                output,
                delimiter=between,
                mark=job.source.mark,
                empty=not job.rows,
            ) as file,
        ):
            rows = read_back(job.source, output, file, new, between)
            groups, repeated = library.count_decisions(
                job, rows or "applied", decided=decided, one_pass=rows is None or format_of(output) != "parquet"
            )
        if repeated:
            texts.warn_repeated(screen, repeated, str(columns.id))
    null = unseen_group and known.membership != "probabilities"  # whose rows are expected numbers
    rows = texts.rows_with(job.rows, sum(row["rows"] for row in groups) if null else job.rows)
    screen.say(f"Added {' and '.join(added)} to {rows}. Saved to {spoken(output)}.{note}")
    if job.rows:
        screen.text()
        screen.table(
            library.decided_table(known, groups, decided=key is not None), every=every, more="with --all"
        )
        if beyond := texts.beyond_limit(known, groups):
            screen.say("", beyond)
    if known.membership == "probabilities" and job.rows:
        screen.say("\nRows and selected people are expected numbers: the sums of the group probabilities.")
    if key is None and not probability_only:
        screen.say(
            "\nNo decisions were made; the new column holds the probability of being selected. For decisions "
            "that stay the same for the same person, pass --id COLUMN --key-file FILE."
        )
    elif seeded:
        screen.say(
            "\nDecisions depend on the row number: the same file gives the same decisions, but a person in a "
            "different row may get a different one."
        )
    told = {"rule": rule, "data": data, "output": output}
    return screen.result("apply", **told, columns=added, rows=job.rows, groups=groups)
