"""`fairramp audit`: rates by group, and gates on their gap and ratio."""

from typing import Annotated, Any

from cyclopts import Parameter

from fairramp.cli.options import (
    LIMIT,
    All,
    AuditScale,
    ClassScore,
    Confidence,
    Costs,
    Cutoff,
    Data,
    Decimal,
    Delimiter,
    GroupProbability,
    Json,
    Label,
    LowerIsBetter,
    Positive,
    Quiet,
    Score,
    Sheet,
    SkipInvalid,
    Strata,
    Summary,
    TrueGroup,
    Weight,
)
from fairramp.cli.render import Screen


def audit(
    data: Data,
    /,
    *,
    score: Score = None,
    class_score: ClassScore = None,
    group: TrueGroup = None,
    group_probability: GroupProbability = None,
    label: Label = None,
    positive: Positive = None,
    weight: Weight = None,
    strata: Strata = None,
    rule: Annotated[str | None, Parameter(help="Also audit the decisions of this rule.")] = None,
    criterion: Annotated[
        str | None,
        Parameter(
            help="Which rate to compare: parity (selection rates), equal_opportunity (true positive rates), "
            "predictive_equality (false positive rates) or equalized_odds (both of these); all but parity need "
            "--label. By default, as in the rule."
        ),
    ] = None,
    fail_above: Annotated[
        float | None,
        Parameter(help="Exit with code 1 if the lower confidence limit of the gap is above this value."),
        LIMIT,
    ] = None,
    fail_unless_below: Annotated[
        float | None,
        Parameter(
            help="Exit with code 0 if the upper confidence limit of the gap is at most this value, with "
            "1 if the lower confidence limit is above it, and with 3 otherwise."
        ),
        LIMIT,
    ] = None,
    fail_below_ratio: Annotated[
        float | None,
        Parameter(help="Exit with code 1 if the upper confidence limit of the ratio is below this value."),
    ] = None,
    fail_unless_ratio: Annotated[
        float | None,
        Parameter(
            help="Exit with code 0 if the lower confidence limit of the ratio is at least this value, with "
            "1 if the upper confidence limit is below it, and with 3 otherwise."
        ),
    ] = None,
    combine: Annotated[
        str | None,
        Parameter(
            help="With several group columns: compare all intersections, or each column on its own. By default, "
            "as in the rule; without a rule, intersections."
        ),
    ] = None,
    every: All = False,
    costs: Costs = None,
    cutoff: Cutoff = None,
    scale: AuditScale = None,
    lower_is_better: LowerIsBetter = False,
    confidence: Confidence = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    skip_invalid: SkipInvalid = False,
    summary: Summary = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Measure each group's rate, the gap and the ratio, before and after a rule.

    For example:

    fairramp audit scores.csv --score score --group sex --label label
    """
    from fairramp.cli import library, naming, outputs, texts
    from fairramp.errors import refuse_if
    from fairramp.measure.audit import audit as measure
    from fairramp.measure.gate import Gates, check_gates
    from fairramp.rule.class_rule import ClassRule

    screen = Screen(json=json, quiet=quiet, summary=summary)
    reading: dict[str, Any] = {
        "delimiter": delimiter,
        "decimal": decimal,
        "sheet": sheet,
        "skip_invalid": skip_invalid,
        "inputs": {"--summary": summary},
    }
    gates = check_gates(
        fail_above=fail_above,
        fail_unless_below=fail_unless_below,
        fail_below_ratio=fail_below_ratio,
        fail_unless_ratio=fail_unless_ratio,
    )
    outputs.check_summary(summary, data, rule)
    known = naming.load_any_rule(rule) if rule is not None else None
    if isinstance(known, ClassRule) or (known is None and class_score):
        from fairramp.cli import class_measures, classes

        others = {"criterion": criterion, "combine": combine, "costs": costs, "cutoff": cutoff, "scale": scale}
        classes.refuse_others(
            {"score": score, "positive": positive, "higher_is_better:False": lower_is_better, **others}
        )
        naming.refuse_unused(group_probability, known)
        labels, columns = classes.columns_of(
            known, class_score, group, strata, group_probability=group_probability
        )
        return class_measures.audit(
            screen,
            data,
            known,
            columns=columns,
            classes=labels,
            gates=gates,
            confidence=confidence,
            every=every,
            how={"label": label, "weight": weight, **reading},
        )
    naming.refuse_classes(class_score)
    refuse_if(
        lower_is_better and known and known.higher_is_better,
        "Higher scores are better for this rule; leave out --lower-is-better, or fit again with it",
    )
    naming.refuse_unused(group_probability, known)
    probabilities = naming.probabilities_of(group_probability, known.groups if known else None)
    columns = naming.columns_of(known, score, group, strata, probabilities=probabilities)
    _, arrays = library.read(
        screen,
        data,
        columns,
        lambda job: texts.warn_groups(screen, job, known, compared=True),
        lambda job: texts.warn_direction(job, known, scale, lower_is_better=lower_is_better),
        scale=scale,
        **reading,
        rule=known,
        label=label,
        positive=positive,
        weight=weight,
    )
    with texts.direction_told():
        found = measure(
            **arrays,
            rule=known,
            criterion=criterion,
            confidence=confidence,
            cutoff=cutoff,
            scale=None if known else scale,
            higher_is_better=None if known else not lower_is_better,
            costs=library.costs_of(costs),  # type: ignore[arg-type]  # the library checks them
            **({} if combine is None else {"combine": combine}),
        )
    texts.show_audit(screen, found, columns, data, every=every)
    gate, code = texts.show_gates(screen, Gates(found, **gates) if gates else None)
    return screen.result("audit", code, data=data, **library.named(columns), **found.to_dict(), gate=gate)
