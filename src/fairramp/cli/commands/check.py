"""`fairramp check`."""

from fairramp.cli import steps
from fairramp.cli.options import (
    Confidence,
    Data,
    Decimal,
    Delimiter,
    Group,
    Json,
    Quiet,
    RuleFile,
    Scale,
    Score,
    Strata,
    Weight,
)

__all__ = ["check"]


def check(
    rule: RuleFile,
    data: Data,
    /,
    *,
    score: Score = None,
    group: Group = None,
    weight: Weight = None,
    strata: Strata = None,
    scale: Scale = None,
    confidence: Confidence = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Ask new rows whether the gap has left what a rule's certificate promised.

    The exit code is 1 if it has. Labels are not needed.

    For example:

    fairramp check rule.json scores.csv
    """
    from fairramp.cli import guards, showing
    from fairramp.cli.render import Screen, count
    from fairramp.measure.certificate import certifiable
    from fairramp.measure.drift import check as compare

    screen = Screen(json=json, quiet=quiet)
    known = steps.load_rule(rule, "check")
    certifiable(known)
    columns = steps.columns_of(known, score, group, weight=weight, strata=strata)
    with steps.opened(screen, data, columns, scale, decimal, delimiter, known) as (connection, job):
        steps.need_rows(job)
        guards.warn_groups(screen, job, known, compared=True)
        with screen.progress(connection, "Reading"):
            arrays = steps.in_order(job.arrays())
    del arrays["labels"]
    found = compare(known, **arrays, confidence=confidence)
    steps.show_heading(screen, found.rows, columns, data)
    screen.table(found.table())
    left_out = job.rows - sum(found.rows)
    if left_out:
        screen.say(f"\n{count(left_out, 'row')} left out: of groups that the fit did not see, or without weight.")
    screen.text(f"\n{found!r}\n")
    if quiet and not found.is_kept:  # the reason for an exit code of 1
        screen.warn(f"check failed: {found.verdict}")
    else:
        screen.say(f"Check {'passed' if found.is_kept else 'FAILED'}: {found.verdict}")
    screen.result(
        steps.stamp("check")
        | {"rule": rule, "data": steps.dash(data), **steps.named(columns), **showing.checked(found)}
    )
    return 0 if found.is_kept else 1
