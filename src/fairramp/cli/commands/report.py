"""`fairramp report`."""

from typing import Annotated

from cyclopts import Parameter

from fairramp.cli import steps
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

__all__ = ["report"]


def report(
    rule: RuleFile,
    data: Data,
    /,
    *,
    output: Annotated[str, Parameter(name=OUTPUT, help="Where the page goes: an HTML file, or - for stdout.")],
    title: Annotated[str | None, Parameter(help="Heading of the page.")] = None,
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
    """Write a page about what a rule does to these rows: to explore, to print and to sign.

    One HTML file that needs no network; with --json every number on it.

    For example:

    fairramp report rule.json scores.csv --label label -o report.html
    """
    from fairramp.cli import guards
    from fairramp.cli.render import Screen
    from fairramp.cli.tables import STDOUT, TableError, check_target, is_stream

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    known = steps.load_rule(rule, "report")
    if not is_stream(output):
        if not output.lower().endswith((".html", ".htm")):
            raise TableError(f"A report is a web page: end {output} in .html.")
        check_target(output)
        guards.keep_inputs(output, data, {"the rule": rule})
    columns = steps.columns_of(known, score, group, label=label, weight=weight, strata=strata)
    with steps.opened(screen, data, columns, scale, decimal, delimiter, known, positive=positive) as (
        connection,
        job,
    ):
        steps.need_rows(job)
        guards.warn_groups(screen, job, known)
        with screen.progress(connection, "Reading"):
            arrays = steps.in_order(job.arrays())
    made = known.report(**arrays, title=title, confidence=confidence)
    page = made.html
    if is_stream(output):
        steps.write_stream(output, page)
    else:
        made.save(output)
    content = made.content
    before, after = (text[:1].upper() + text[1:] for text in (content.sentence, content.chosen.sentence))
    for word, text in (("Before", before), ("After", after)):
        screen.say(f"{word}: {steps.plain(text)}")
    screen.text()
    for note in filter(None, (content.drift, *content.notes)):
        screen.say(steps.plain(note))
    if quiet and content.is_kept is False:
        screen.warn(steps.plain(content.drift or ""))
    screen.say(
        f"\nSaved to {'stdout' if output == STDOUT else output}; open it in a browser, no network is needed."
    )
    screen.result(
        steps.stamp("report")
        | {
            "data": steps.dash(data),
            "rule": rule,
            **steps.named(columns),
            "output": steps.dash(output),
            "report": content.to_dict(),
        }
    )
