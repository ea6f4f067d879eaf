"""`fairramp fit`: fit a rule to a file of scores."""

from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter

from fairramp.cli.options import (
    OUTPUT,
    Combine,
    ConfidenceLimit,
    Costs,
    Criterion,
    Cutoff,
    Data,
    Date,
    Decimal,
    Delimiter,
    FitClassScore,
    FitConfidence,
    FitGroup,
    FitGroupProbability,
    FitScore,
    Json,
    Label,
    LowerIsBetter,
    MaxGap,
    MinRatio,
    OverallRate,
    Positive,
    Quiet,
    Ramp,
    RampWidth,
    Scale,
    Sheet,
    SkipInvalid,
    SmallGroups,
    Strata,
    TargetRate,
    UnseenGroup,
    Weight,
)
from fairramp.cli.render import STDIN, STDOUT, Screen, given, spoken, typed
from fairramp.fit.keywords import DEFAULTS


def fit(
    data: Data,
    /,
    *,
    score: FitScore = None,
    class_score: FitClassScore = None,
    group: FitGroup = None,
    group_probability: FitGroupProbability = None,
    output: Annotated[str, Parameter(name=OUTPUT, help="File for the rule (JSON), or - for stdout.")],
    criterion: Criterion = DEFAULTS["criterion"],
    max_gap: MaxGap = DEFAULTS["max_gap"],
    min_ratio: MinRatio = DEFAULTS["min_ratio"],
    label: Label = None,
    positive: Positive = None,
    weight: Weight = None,
    strata: Strata = None,
    target_rate: TargetRate = DEFAULTS["target_rate"],
    costs: Costs = None,
    overall_rate: OverallRate = DEFAULTS["overall_rate"],
    combine: Combine = DEFAULTS["combine"],
    ramp_width: RampWidth = None,
    ramp: Ramp = DEFAULTS["ramp"],
    unseen_group: UnseenGroup = DEFAULTS["unseen_group"],
    small_groups: SmallGroups = DEFAULTS["small_groups"],
    cutoff: Cutoff = DEFAULTS["cutoff"],
    scale: Scale = None,
    lower_is_better: LowerIsBetter = False,
    confidence: FitConfidence = DEFAULTS["confidence"],
    confidence_limit: ConfidenceLimit = DEFAULTS["confidence_limit"],
    replace: Annotated[
        bool, Parameter(help="Replace the rule that OUTPUT already holds.", negative="", show_default=False)
    ] = False,
    date: Date = DEFAULTS["date"],
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    skip_invalid: SkipInvalid = False,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Learn one threshold per group that makes the groups' rates nearly equal; selection rates need no labels.

    Higher scores mean yes, the favorable decision. If a high score is bad (a risk), pass --lower-is-better.

    For example:

    fairramp fit scores.csv --score score --group sex --max-gap 0.02 -o rule.json
    """
    from fairramp.cli import library, naming, outputs, texts
    from fairramp.core.words import wrapped
    from fairramp.errors import refuse_if
    from fairramp.measure.certificate import Certificate
    from fairramp.show.describe import certificate_of

    screen = Screen(json=json, quiet=quiet, to_stderr=output == STDOUT)
    reading: dict[str, Any] = {
        "delimiter": delimiter,
        "decimal": decimal,
        "sheet": sheet,
        "skip_invalid": skip_invalid,
        "output": output,
    }
    settings = {
        "criterion": criterion,
        "max_gap": max_gap,
        "min_ratio": min_ratio,
        "overall_rate": overall_rate,
        "combine": combine,
        "ramp_width": library.width_of(ramp_width, scale),
        "ramp": ramp,
        "target_rate": target_rate,
        "costs": library.costs_of(costs),
        "cutoff": cutoff,
        "scale": scale or "probability",
        "higher_is_better": not lower_is_better,
        "unseen_group": unseen_group,
        "confidence": confidence,
        "confidence_limit": confidence_limit,
        "small_groups": small_groups,
        "date": date,
    }
    if class_score:
        from fairramp.cli import classes

        classes.refuse_others({"score": score, "positive": positive})
        return classes.fit(
            screen,
            data,
            output,
            class_score=class_score,
            group=group,
            group_probability=group_probability,
            strata=strata,
            label=label,
            weight=weight,
            replacing=replace,
            settings=settings,
            how=reading,
        )
    refuse_if(
        score is None, "--score is missing: pass the column with the scores, or --class-score for each class"
    )
    outputs.check_output(output, data)
    earlier = outputs.keep_others(output, replace=replace)
    probabilities = naming.probabilities_of(group_probability)
    columns = naming.fit_columns(score, group, strata, probabilities)
    with library.opened(
        screen,
        data,
        columns,
        scale=scale,
        **reading,
        label=label,
        positive=positive,
        weight=weight,
    ) as job:
        texts.warn_direction(job, None, scale, lower_is_better=lower_is_better)
        with screen.progress(job.source.connection, "Fitting"), texts.direction_told():
            found = library.fit(
                job,
                tuple(probabilities or ()),
                **settings,
            )
        certificate = certificate_of(found, confidence or 0.95)
        measured: dict[str, tuple[float, float]] = {}
        told = ["Accuracy is unknown without --label; fitting needs no labels."]
        if label is not None:
            with screen.progress(job.source.connection, "Measuring"):
                measured = library.measured(job, found)
            shown = ["accuracy"] + [
                name for name in (target_rate, "cost") if name in measured and name != "accuracy"
            ]
            told = [texts.before_after(str(name), *measured[str(name)]) for name in shown]
    outputs.write_text(output, found.to_json(), "the rule")
    if earlier is not None and earlier != found:
        screen.note(f"Replaced an earlier rule in {output}, fingerprint {earlier.fingerprint}")

    record = found.record
    assert record is not None
    screen.heading(wrapped(found.heading))
    screen.say(*found.reached, *told, "")
    saved = "rule.json" if output == STDOUT else output
    screen.table(found.table(), more=f"with:{typed(['show', saved, '--all'], ' ')}")
    direction = "Higher scores mean yes; if a high score is bad (a risk), fit again with --lower-is-better."
    screen.say(*(f"\n{note}" for note in (*found.notes, *([] if lower_is_better else [direction]))), "")
    if isinstance(certificate, Certificate):
        texts.show_certificate(screen, found, certificate)
    else:
        screen.say(certificate)
    fresh = " on rows that the rule was not fitted on" if found.mixes else ""
    names = ["NEW_DATA"] * found.mixes + ["GROUP, the column with the true groups,"] * bool(probabilities)
    replaced = f" (replace {' and '.join(names)})".replace(",)", ")") if names else ""
    screen.say(
        f"\nSaved to {spoken(output)}. Next, a report{fresh}, for the people who must approve the rule{replaced}:"
    )
    rows, made = [saved, "DATA" if data == STDIN else data], f"decisions{outputs.ending_like(data)}"
    read = given(delimiter=delimiter, decimal=decimal, sheet=sheet, skip_invalid=skip_invalid)
    truth = "GROUP" if probabilities else None
    named = given(group=truth, label=label, positive=positive, weight=weight)
    shown = [saved, "NEW_DATA"] if found.mixes else rows
    screen.text(typed(["report", *shown, *named, *read, "-o", "report.html"]))
    screen.say("Then the decisions (replace ID with the name of your id column):")
    screen.text(
        typed(["keygen", "key.txt"]),
        typed(["apply", *rows, *read, "-o", made, "--id", "ID", "--key-file", "key.txt"]),
    )
    return screen.result(
        "fit",
        data=data,
        rule=output,
        **library.named(columns),
        rows=job.rows,
        groups=list(found.table().rows()),
        criterion=criterion,
        membership=found.membership,
        max_gap=record.asked.max_gap if record.asked else found.max_gap,
        fit_gap=found.max_gap,
        min_ratio=found.min_ratio,
        overall_rate=overall_rate,
        asked=record.asked and asdict(record.asked),
        gap_before=record.gap_before,
        gap_after=record.gap_after,
        ratio_before=record.ratio_before,
        ratio_after=record.ratio_after,
        **{
            f"{name}_{when}": measured[name][i] if name in measured else None
            for name in ("accuracy", "balanced_accuracy", "cost")
            for i, when in enumerate(("before", "after"))
        },
        certificate=certificate.to_dict() if isinstance(certificate, Certificate) else None,
        why_no_certificate=None if isinstance(certificate, Certificate) else certificate,
        rule_fingerprint=found.fingerprint,
        data_fingerprint=record.fingerprint,
    )
