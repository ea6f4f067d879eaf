"""`fairramp report`: an HTML report on a rule and its effect on rows."""

import os
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from fairramp.cli.options import (
    OUTPUT,
    ClassScore,
    Confidence,
    Data,
    Decimal,
    Delimiter,
    GroupProbability,
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
    TrueGroup,
    Weight,
)
from fairramp.cli.render import STDIN, STDOUT, Screen, given, spoken
from fairramp.errors import refuse_if


def report(
    rule: RuleFile,
    data: Data,
    /,
    *,
    output: Annotated[str, Parameter(name=OUTPUT, help="File for the report (.html), or - for stdout.")],
    title: Annotated[str | None, Parameter(help="Title of the report.")] = None,
    decision: Annotated[str | None, Parameter(help='What yes means, such as "loan granted".')] = None,
    owner: Annotated[str | None, Parameter(help="Who is responsible for the rule.")] = None,
    date: Annotated[str | None, Parameter(help="Date of the report, printed unchanged.")] = None,
    review_date: Annotated[
        str | None, Parameter(help="Date by which the rule is to be reviewed, printed unchanged.")
    ] = None,
    tables: Annotated[
        str | None, Parameter(help="Folder for the tables of the report as CSV files; created if needed.")
    ] = None,
    compare: Annotated[
        str | None, Parameter(help="A second rule file to compare with, such as the rule in force.")
    ] = None,
    score: Score = None,
    class_score: ClassScore = None,
    group: TrueGroup = None,
    group_probability: GroupProbability = None,
    label: Label = None,
    positive: Positive = None,
    weight: Weight = None,
    strata: Strata = None,
    scale: RuleScale = None,
    confidence: Confidence = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    skip_invalid: SkipInvalid = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Write an HTML report on the effect of a rule on these rows, for those who must approve it.

    The report starts with the verdict. It is one file that works offline. --json prints every number in it.

    For example:

    fairramp report rule.json scores.csv --label label -o report.html
    """
    from fairramp.cli import library, naming, outputs, texts
    from fairramp.rule.class_rule import ClassRule
    from fairramp.show.report import Report, make_content
    from fairramp.show.words import unmarked

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    reading: dict[str, Any] = {
        "delimiter": delimiter,
        "decimal": decimal,
        "sheet": sheet,
        "skip_invalid": skip_invalid,
        "output": output,
    }
    known = naming.load_any_rule(rule, "report")
    refuse_if(
        not outputs.is_stream(output) and not output.lower().endswith((".html", ".htm")),
        "A report is a web page, so its name must end in .html, got {output}",
        output=output,
    )
    outputs.check_output(output, data, {"the rule": rule, "--compare": compare})
    refuse_if(
        tables is not None and Path(tables).exists() and not Path(tables).is_dir(),
        "Cannot write tables to {tables}: it is not a folder",
        tables=tables,
    )
    if isinstance(known, ClassRule):
        from fairramp.cli import class_measures, classes

        classes.refuse_others({"score": score, "scale": scale, "positive": positive, "compare": compare})
        _, columns = classes.columns_of(known, class_score, group, strata, group_probability=group_probability)
        words = {"title": title, "decision": decision, "owner": owner, "date": date, "review_date": review_date}
        return class_measures.report(
            screen,
            known,
            rule,
            data,
            output,
            columns=columns,
            tables=tables,
            words={**words, "confidence": confidence},
            how={"label": label, "weight": weight, **reading},
        )
    naming.refuse_classes(class_score)
    other = naming.load_rule(compare) if compare else None
    probabilities = naming.probabilities_of(group_probability, known.groups)
    columns = naming.columns_of(known, score, group, strata, probabilities=probabilities)
    how: dict[str, Any] = {"label": label, "positive": positive, "weight": weight, **reading}
    with library.opened(screen, data, columns, scale=scale, rule=known, **how) as job:
        texts.warn_groups(screen, job, known)
        texts.warn_direction(job, known, scale, lower_is_better=False)
        names = texts.label_names(job, positive)
        with screen.progress(job.source.connection, "Reading"):
            arrays = job.arrays(ordered=True)
    with texts.direction_told():
        content = make_content(
            known,
            **arrays,
            title=title,
            decision=decision,
            owner=owner,
            source=None if data == STDIN else os.path.basename(data.rstrip("/")),
            date=date,
            review_date=review_date,
            confidence=confidence,
            compare=other,
            compare_name=os.path.basename(compare) if compare else None,
            label_column=label,
            weight_column=weight,
            positive_label=positive,
            reading=given(delimiter=delimiter, decimal=decimal, sheet=sheet, skip_invalid=skip_invalid),
            label_names=names,
            left_out=job.left_out,
        )
    made = Report(content)
    outputs.write_text(output, made.html, "the report")
    if tables is not None:
        made.save_tables(tables)
    judgment = content.chosen.judgment
    before = f"Before. {content.sentence} {content.selected_sentence}".rstrip()
    after = f"After. {content.chosen.sentence} {content.chosen.selected_sentence}".rstrip()
    compared = content.compared and content.compared.sentence
    notes = [
        judgment.summary,
        f"{judgment.advice}\n",
        before,
        f"{after}\n",
        compared,
        content.drift,
        *content.notes,
    ]
    screen.say(*(unmarked(note) for note in notes if note))
    screen.warn(unmarked(content.drift or ""), when=quiet and content.is_kept is False)
    screen.say(f"\nSaved to {spoken(output)}. Open it in a browser; it works offline.")
    return screen.result(
        "report", data=data, rule=rule, **library.named(columns), output=output, report=content.to_dict()
    )
