"""`fairramp audit`: selection rates by group, and a gate on their gap."""

from typing import Annotated

from cyclopts import Parameter

from fairramp.cli.options import (
    All,
    AuditScale,
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
    Score,
    Strata,
    Weight,
)
from fairramp.cli.render import Screen


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
    rule: Annotated[str | None, Parameter(help="Also audit the decisions of this rule.")] = None,
    fail_above: Annotated[
        float | None,
        Parameter(help="Exit with code 1 if the lower confidence limit of the gap is above this value."),
    ] = None,
    fail_unless_below: Annotated[
        float | None,
        Parameter(
            help="Exit with code 0 if the upper confidence limit of the gap is at most this value, with "
            "1 if the lower confidence limit is above it, and with 3 otherwise."
        ),
    ] = None,
    every: All = False,
    cutoff: Cutoff = None,
    scale: AuditScale = None,
    confidence: Confidence = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Measure each group's selection rate and the gap, before and after a rule.

    For example:

    fairramp audit scores.csv --score score --group sex --label label
    """
    from fairramp.cli import library, texts
    from fairramp.core.checks import check_number
    from fairramp.measure.audit import audit as measure
    from fairramp.measure.gate import Gates

    screen = Screen(json=json, quiet=quiet)
    limits = {"fail_above": fail_above, "fail_unless_below": fail_unless_below}
    gates = {name: limit for name, limit in limits.items() if limit is not None}
    for name, limit in gates.items():
        check_number(name, limit, 0.0, 1.0)
    known = library.load_rule(rule) if rule is not None else None
    columns = library.columns_of(known, score, group, strata)
    _, arrays = library.read(
        screen,
        data,
        columns,
        lambda job: texts.warn_groups(screen, job, known, compared=True),
        lambda job: texts.warn_direction(screen, job, known.scale if known else scale),
        scale=scale,
        decimal=decimal,
        delimiter=delimiter,
        rule=known,
        label=label,
        positive=positive,
        weight=weight,
    )
    found = measure(**arrays, rule=known, confidence=confidence, cutoff=cutoff, scale=None if known else scale)
    texts.show_audit(screen, found, columns, data, every=every)
    judged = Gates(found, **gates) if gates else None
    for sentence, code in zip(judged.sentences(), judged.exit_codes, strict=True) if judged else ():
        screen.text()
        screen.verdict(sentence, failed=code)
    gate = judged and judged.to_dict()
    screen.result("audit", data=data, **library.named(columns), **found.to_dict(), gate=gate)
    return judged.exit_code if judged else 0
