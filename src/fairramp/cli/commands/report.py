"""`fairramp report`: an HTML report on a rule and its effect on rows."""

from typing import Annotated

from cyclopts import Parameter

from fairramp.cli.options import (
    OUTPUT,
    Confidence,
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
    Strata,
    Weight,
)
from fairramp.cli.render import STDOUT, Screen, spoken
from fairramp.errors import refuse_if


def report(
    rule: RuleFile,
    data: Data,
    /,
    *,
    output: Annotated[str, Parameter(name=OUTPUT, help="File for the report (.html), or - for stdout.")],
    title: Annotated[str | None, Parameter(help="Title of the report.")] = None,
    score: Score = None,
    group: Group = None,
    label: Label = None,
    positive: Positive = None,
    weight: Weight = None,
    strata: Strata = None,
    scale: RuleScale = None,
    confidence: Confidence = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write an HTML report on the effect of a rule on these rows, to explore, print and sign.

    The report is one file that works offline. --json prints every number in it.

    For example:

    fairramp report rule.json scores.csv --label label -o report.html
    """
    from fairramp.cli import library, outputs, texts
    from fairramp.show.words import unmarked

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    known = library.load_rule(rule, "report")
    refuse_if(
        not outputs.is_stream(output) and not output.lower().endswith((".html", ".htm")),
        "A report is a web page, so its name must end in .html, got {output}",
        output=output,
    )
    outputs.check_output(output, data, {"the rule": rule})
    columns = library.columns_of(known, score, group, strata)
    _, arrays = library.read(
        screen,
        data,
        columns,
        lambda job: texts.warn_groups(screen, job, known),
        ordered=True,
        scale=scale,
        decimal=decimal,
        delimiter=delimiter,
        rule=known,
        label=label,
        positive=positive,
        weight=weight,
    )
    made = known.report(**arrays, title=title, confidence=confidence)
    outputs.write_text(output, made.html, "the report")
    content, names = made.content, library.named(columns)
    before = f"Before. {content.sentence} {content.selected_sentence}".rstrip()
    after = f"After. {content.chosen.sentence} {content.chosen.selected_sentence}".rstrip()
    notes = [before, f"{after}\n", content.drift, *content.notes]
    screen.say(*(unmarked(note) for note in notes if note))
    screen.warn(unmarked(content.drift or ""), when=quiet and content.is_kept is False)
    screen.say(f"\nSaved to {spoken(output)}. Open it in a browser; it works offline.")
    screen.result("report", data=data, rule=rule, **names, output=output, report=content.to_dict())
