"""`fairramp check`: test on new rows whether the gap exceeds the estimated limit."""

from typing import Any

from fairramp.cli.options import (
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
    Summary,
    TrueGroup,
    Weight,
)
from fairramp.cli.render import Screen, count


def check(
    rule: RuleFile,
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
    scale: RuleScale = None,
    confidence: Confidence = 0.95,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    skip_invalid: SkipInvalid = False,
    summary: Summary = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Check once, on new rows, whether the gap exceeds the rule's estimated limit.

    The exit code is 1 if it does, and 0 if it does not or if this cannot be decided from these rows. It is 3 if a
    group of the rule has no rows while other rows have unknown groups, as after a change of spelling, or if all
    its rows were left out. --label is needed only for a rule that makes error rates equal. To check after every
    batch, use fairramp monitor.

    For example:

    fairramp check rule.json scores.csv
    """
    from fairramp.cli import library, naming, outputs, strangers, texts
    from fairramp.measure.drift import check as compare
    from fairramp.measure.verdict import exit_code
    from fairramp.rule.class_rule import ClassRule
    from fairramp.rule.limits import certifiable

    screen = Screen(json=json, quiet=quiet, summary=summary)
    reading: dict[str, Any] = {
        "delimiter": delimiter,
        "decimal": decimal,
        "sheet": sheet,
        "skip_invalid": skip_invalid,
        "inputs": {"--summary": summary},
    }
    outputs.check_summary(summary, data, rule)
    known = naming.load_any_rule(rule, "check")
    if isinstance(known, ClassRule):
        from fairramp.cli import class_measures, classes

        classes.refuse_others({"score": score, "scale": scale, "label": label, "positive": positive})
        _, columns = classes.columns_of(known, class_score, group, strata, group_probability=group_probability)
        return class_measures.check(
            screen,
            known,
            rule,
            data,
            columns=columns,
            confidence=confidence,
            how={"weight": weight, **reading},
        )
    naming.refuse_classes(class_score)
    if not known.mixes:  # others have limits that new rows prove
        certifiable(known)
    texts.check_label(known, label)
    probabilities = naming.probabilities_of(group_probability, known.groups)
    columns = naming.columns_of(known, score, group, strata, probabilities=probabilities)
    job, arrays = library.read(
        screen,
        data,
        columns,
        lambda job: texts.warn_groups(screen, job, known, compared=True, checked=True),
        lambda job: texts.warn_direction(job, known, scale, lower_is_better=False),
        ordered=True,
        scale=scale,
        **reading,
        rule=known,
        label=label,
        positive=positive,
        weight=weight,
    )
    with texts.direction_told():
        found = compare(known, **arrays, confidence=confidence)
    lost = strangers.lost_groups(job, known)
    code = exit_code(found.verdict, sound=found.is_sound, undecided=3 if lost else 0)
    each = known.membership == "each"
    texts.show_heading(screen, found.rows, columns, data, known.event.row, each=each)
    texts.warn_few(screen, found.groups, found.rows, found.events)
    first, *more = found.sentences()
    screen.verdict(f"Check {found.verdict.word}. {lost}{lost and ' '}{first}", told=code or found.missing)
    screen.say(*more, "")
    screen.table(found.table())
    screen.say(
        "\nDetectable: if only this group changed, these rows would detect a rate below or above "
        "these values nine times out of ten."
    )
    if left_out := job.rows - sum(found.rows) // (len(columns.grouped) if each else 1):
        other = texts.other_label(known.event)
        screen.say(f"{count(left_out, 'row')} left out: {other}groups not in the fit rows, or zero weight.")
    return screen.result("check", code, rule=rule, data=data, **library.named(columns), **found.to_dict())
