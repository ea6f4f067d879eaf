"""`fairramp evidence`: a folder for an auditor."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from fairramp.cli.options import (
    OUTPUT,
    AuditScale,
    Confidence,
    Cutoff,
    Data,
    Decimal,
    Delimiter,
    Group,
    Json,
    Label,
    LowerIsBetter,
    Names,
    Positive,
    Quiet,
    Score,
    Sheet,
    SkipInvalid,
    Strata,
)
from fairramp.cli.render import STDIN, Screen, count
from fairramp.errors import FairrampError, UnsupportedError, refuse_if


def evidence(
    data: Data,
    /,
    *,
    output: Annotated[str, Parameter(name=OUTPUT, help="New folder; it must not exist.")],
    rule: Annotated[
        str | None, Parameter(help="Add this rule: its decisions, its file, its limits and its report.")
    ] = None,
    score: Score = None,
    group: Group = None,
    category: Annotated[
        Names,
        Parameter(
            help="Column of the impact ratios, such as sex; repeat the option for several columns, whose "
            "intersections are then shown, too (by default, the groups)."
        ),
    ] = None,
    unknown: Annotated[
        Names,
        Parameter(
            help='Value that means that a category is unknown, such as "Not stated"; may be repeated. Missing '
            "and empty values always do."
        ),
    ] = None,
    label: Label = None,
    positive: Positive = None,
    strata: Strata = None,
    id: Annotated[
        str | None,
        Parameter(help="Column that identifies each person; adds the rule's decisions as drawn. Needs a key."),
    ] = None,
    key_file: Annotated[
        str | None,
        Parameter(help="File with the secret key (see fairramp keygen); or set FAIRRAMP_KEY to the key."),
    ] = None,
    title: Annotated[str | None, Parameter(help="Title of the folder.")] = None,
    decision: Annotated[str | None, Parameter(help='What yes means, such as "invited to an interview".')] = None,
    owner: Annotated[str | None, Parameter(help="Who is responsible for the decisions.")] = None,
    date: Annotated[str | None, Parameter(help="Date of the folder, printed unchanged.")] = None,
    no_report: Annotated[
        bool, Parameter(help="Leave out the HTML report.", negative="", show_default=False)
    ] = False,
    cutoff: Cutoff = None,
    scale: AuditScale = None,
    lower_is_better: LowerIsBetter = False,
    confidence: Confidence = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    skip_invalid: SkipInvalid = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Write a folder for an auditor: impact ratios, the audit, the rule, and facts that the EU AI Act lists.

    The impact ratios are those that Local Law 144 of New York City asks for. Facts that only you know are left as
    questions. The folder claims no compliance with any law.

    For example:

    fairramp evidence scores.csv --score score --group sex --group race -o evidence
    """
    from fairramp.cli import library, naming, outputs, texts
    from fairramp.data.inputs import input_files
    from fairramp.show.evidence import evidence as make

    screen = Screen(json=json, quiet=quiet)
    reading: dict[str, Any] = {
        "delimiter": delimiter,
        "decimal": decimal,
        "sheet": sheet,
        "skip_invalid": skip_invalid,
        "output": output,
    }
    outputs.check_folder(output)
    known = naming.load_rule(rule) if rule is not None else None
    if known is not None and known.membership == "probabilities":
        raise UnsupportedError(
            "{path} is a rule that uses group probabilities, which this command does not support",
            remedy="use fairramp.evidence in Python",
            path=rule,
        )
    refuse_if(id is not None and known is None, "--id needs --rule, the rule that decides")
    refuse_if(
        lower_is_better and known and known.higher_is_better,
        "Higher scores are better for this rule; leave out --lower-is-better, or fit again with it",
    )
    key, _ = library.drawing(screen, id, key_file, None, False)
    own = naming.columns_of(known, score, group or (None if known else category), strata, id)
    grouped = own.groups or ()
    columns = replace(own, groups=(*grouped, *(name for name in category or () if name not in grouped)))
    try:
        # The columns of categories are not the rule's, so the library judges which groups it knows.
        how: dict[str, Any] = {"label": label, "positive": positive, "unseen": "library", **reading}
        with library.opened(screen, data, columns, scale=scale, rule=known, **how) as job:
            texts.warn_direction(job, known, scale, lower_is_better=lower_is_better)
            names = texts.label_names(job, positive)
            with screen.progress(job.source.connection, "Reading"):
                arrays = job.arrays(ordered=True)
    except FairrampError as error:
        _name_category(error, [name for name in category or () if name not in (group or ())])
        raise
    arrays.pop("sample_weight")
    groups, files = arrays.pop("groups"), [] if data == STDIN else input_files(data)
    with texts.direction_told():
        made = make(
            **arrays,
            groups=groups.only(grouped),
            categories=groups.only(tuple(category or grouped)),
            unknown=unknown or (),
            rule=known,
            key=key,
            scale=None if known else scale,
            cutoff=cutoff,
            higher_is_better=None if known else not lower_is_better,
            confidence=confidence,
            title=title,
            decision=decision,
            owner=owner,
            source=None if data == STDIN else os.path.basename(data.rstrip("/")),
            date=date,
            sources=_sha256(files),
            label_names=names,
            left_out=job.left_out,
            report=not no_report,
        )
    made.save(output)
    screen.heading(f"{count(job.rows, 'person').replace('persons', 'people')}\n")
    screen.say(*made.content.sentences())
    screen.say(f"\nSaved {count(len(made.files), 'file')} to {output}. Start with README.md.")
    return screen.result(
        "evidence",
        data=data,
        rule=rule,
        **library.named(own),
        output=output,
        files=sorted(made.files),
        impact_ratios=list(made.impact_ratios.rows()),
        scoring_rates=made.scoring_rates and list(made.scoring_rates.rows()),
    )


def _name_category(error: FairrampError, names: list[str]) -> None:
    """Name the option --category in an error about one of its columns, which are read like groups."""
    told = error.values
    if told.get("option") != "--group" or told.get("name") not in names:
        return
    advice = {"advice": told["advice"].replace("--group", "--category")} if "advice" in told else {}
    error.renamed(option="--category", **advice)


def _sha256(files: list[str]) -> dict[str, str]:
    """The SHA-256 of files, by their paths from the folder that has all of them: names may occur in several."""
    folder = os.path.commonpath([os.path.dirname(name) for name in files] or [""])
    found = {}
    for name in files:
        with open(name, "rb") as file:
            path = Path(name).relative_to(folder).as_posix()
            found[path] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
