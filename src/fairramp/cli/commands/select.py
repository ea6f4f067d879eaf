"""`fairramp select`: fill a fixed number of places."""

from typing import Annotated, Any

from cyclopts import Parameter

from fairramp.cli.options import (
    OUTPUT,
    All,
    Data,
    Decimal,
    Delimiter,
    Json,
    MaxGap,
    MinRatio,
    NeededGroup,
    NeededScore,
    Quiet,
    Scale,
    Sheet,
    SkipInvalid,
)
from fairramp.cli.render import STDOUT, Screen, count, spoken


def select(
    data: Data,
    /,
    *,
    score: NeededScore,
    group: NeededGroup,
    places: Annotated[float, Parameter(help="Number of people to admit.")],
    output: Annotated[
        str | None,
        Parameter(
            name=OUTPUT,
            help="Output file (.csv, .tsv, .jsonl or .parquet), or - for stdout; by default, a new file in this "
            "folder, named like DATA and in its format.",
        ),
    ] = None,
    max_gap: MaxGap = None,
    min_ratio: MinRatio = None,
    id: Annotated[
        str | None,
        Parameter(help="Column that identifies each person; needed, with a key, only to decide ties."),
    ] = None,
    key_file: Annotated[
        str | None,
        Parameter(help="File with the secret key (see fairramp keygen); or set FAIRRAMP_KEY to the key."),
    ] = None,
    prefix: Annotated[str, Parameter(help="Prefix for the name of the new column.", show_default=False)] = "",
    every: All = False,
    scale: Scale = None,
    lower_is_better: Annotated[
        bool, Parameter(help="Low scores are better, as with risk scores.", negative="", show_default=False)
    ] = False,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    skip_invalid: SkipInvalid = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Admit exactly this many people, with a limit on the gap or the ratio of selection rates.

    The output has all columns and rows of DATA and the column decision: 1 for each person who is admitted, 0 for
    all others. The best scores of each group are admitted.

    For example:

    fairramp select scores.csv --score score --group sex --places 1000 -o list.csv
    """
    from fairramp.cli import library, naming, outputs, texts
    from fairramp.fit.shortlist import select as choose

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    output, note = outputs.named(output, data, "shortlist")
    reading: dict[str, Any] = {
        "delimiter": delimiter,
        "decimal": decimal,
        "sheet": sheet,
        "skip_invalid": skip_invalid,
        "output": output,
    }
    outputs.check_output(output, data, {"the key file": key_file}, table=True)
    key, _ = library.drawing(screen, id, key_file, None, False)
    columns, added = naming.columns_of(None, score, group, None, id), f"{prefix}decision"
    with library.opened(screen, data, columns, scale=scale, distinct=True, **reading) as job:
        library.check_new(job, [added])
        with screen.progress(job.source.connection, "Selecting"):
            found = choose(
                **job.in_order(),
                places=int(places) if places.is_integer() else places,  # type: ignore[arg-type]  # refused
                max_gap=max_gap,
                min_ratio=min_ratio,
                key=key,
                scale=scale or "probability",
                higher_is_better=not lower_is_better,
            )
            job.decide(found.decisions)
        with (
            screen.progress(job.source.connection, "Writing"),
            outputs.written(
                job.source.connection,
                library.selected_query(job, target=output, comma=decimal == ","),
                [*job.source.names, added],
                output,
                delimiter=library.output_delimiter(job, delimiter, decimal),
                mark=job.source.mark,
            ),
        ):
            pass
    texts.show_shortlist(screen, found, columns, data, every=every)
    screen.say(f"\nAdded {added} to {count(job.rows, 'row')}. Saved to {spoken(output)}.{note}")
    return screen.result(
        "select", data=data, output=output, columns=[added], **library.named(columns), **found.to_dict()
    )
