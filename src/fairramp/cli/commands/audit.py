"""`fairramp audit`."""

from typing import Annotated

from cyclopts import Parameter

from fairramp.cli import steps
from fairramp.cli.options import (
    All,
    Confidence,
    Cutoff,
    Data,
    Decimal,
    Delimiter,
    Group,
    Json,
    Label,
    Positive,
    Quiet,
    Scale,
    Score,
    Strata,
    Weight,
)

__all__ = ["audit"]


def audit(
    data: Data,
    /,
    *,
    score: Score = None,
    group: Group = None,
    label: Label = None,
    positive: Positive = None,
    weight: Weight = None,
    strata: Strata = None,
    rule: Annotated[str | None, Parameter(help="Audit what this rule makes of the scores, too.")] = None,
    fail_above: Annotated[
        float | None,
        Parameter(help="Exit with 1 if the lower confidence limit of the gap is above this."),
    ] = None,
    fail_unless_below: Annotated[
        float | None,
        Parameter(help="Exit with 1 unless the upper confidence limit of the gap is at most this."),
    ] = None,
    every: All = False,
    cutoff: Cutoff = None,
    scale: Annotated[
        Scale,
        Parameter(
            help="What the scores are: from 0 to 1 (the default), 0 to 100, -1 to 1, or any number; with "
            "--rule, as in its fit.",
        ),
    ] = None,
    confidence: Confidence = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Measure each group's selection rate, the gap, and what a rule makes of them.

    For example:

    fairramp audit scores.csv --score score --group sex --label label
    """
    from fairramp.cli import guards
    from fairramp.cli.render import Screen
    from fairramp.core.checks import check_number
    from fairramp.measure.audit import audit as measure

    screen = Screen(json=json, quiet=quiet)
    if fail_above is not None:
        check_number("fail_above", fail_above, 0.0, 1.0)
    if fail_unless_below is not None:
        check_number("fail_unless_below", fail_unless_below, 0.0, 1.0)
    known = steps.load_rule(rule) if rule is not None else None
    columns = steps.columns_of(known, score, group, label=label, weight=weight, strata=strata)
    with steps.opened(screen, data, columns, scale, decimal, delimiter, known, positive=positive) as (_, job):
        steps.need_rows(job)
        guards.warn_groups(screen, job, known, compared=True)
        guards.warn_direction(screen, job, known.scale if known else scale)
        with screen.progress(job.source.connection, "Reading"):
            arrays = job.arrays()
    found = measure(**arrays, rule=known, confidence=confidence, cutoff=cutoff, scale=None if known else scale)
    decided = known is None and guards.is_decided(arrays["scores"])
    steps.show_audit(screen, found, columns, data, decided=decided, every=every)
    gate = None
    if fail_above is not None or fail_unless_below is not None:
        gate = guards.judge(screen, found, fail_above, fail_unless_below, decided=decided)
    screen.result(
        steps.stamp("audit") | {"data": steps.dash(data), **steps.named(columns), **found.to_dict(), "gate": gate}
    )
    return 1 if gate and gate["failed"] else 0
