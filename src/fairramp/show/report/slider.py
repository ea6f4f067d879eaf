"""The rules at the positions of the slider, and the commands that fit them."""

import shlex
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, floor, log10

from fairramp.core.scales import scale_of
from fairramp.fit.cells import FitRows
from fairramp.fit.fit import fit_rows
from fairramp.fit.outcomes import LabeledScores
from fairramp.fit.settings import Settings
from fairramp.measure.fresh import fingerprint_of
from fairramp.rule.rule import Rule
from fairramp.show.report.measured import KnownRows

#: Most steps of the slider, by number of groups: (groups up to, steps).
STEPS = ((12, 40), (300, 20))
#: Most steps for more groups than that, and for equalized odds, whose fits take longer.
FEWEST_STEPS, ODDS_STEPS = 10, 20
#: Smallest steps of a gap (points have one decimal) and of a ratio (two decimals); smaller ones look the same.
SMALLEST_STEP, SMALLEST_RATIO_STEP = 0.001, 0.01


def slider_rules(rule: Rule, known: KnownRows) -> tuple[list[Rule], str]:
    """One rule per position of the slider, including the given one, and the fingerprint of these rows.

    For a rule that mixes thresholds there is only that rule, and no slider.
    """
    if rule.mixes:
        return [rule], fingerprint_of(rule, known.sample)
    sample, settings, is_ratio = known.sample, known.settings, rule.min_ratio is not None
    fit = partial(
        fit_rows,
        FitRows(sample.rows, sample.rows_by_label() if settings.event.needs_labels else None),
        columns=rule.columns,
        stratified=sample.stratified,
        weighted=sample.weights is not None,
        labeled=LabeledScores.of(sample) if settings.by_labels else None,
    )

    def fitted(limit: float) -> Rule:
        return fit(replace(settings, **({"min_ratio": limit} if is_ratio else {"max_gap": limit})))  # type: ignore[arg-type]

    strictest, own = (0.0, rule.max_gap or 0.0) if rule.min_ratio is None else (1.0, rule.min_ratio)
    first = fitted(strictest)
    assert first.record is not None
    n_groups = len(sample.cells.labels)
    steps = next((steps for limit, steps in STEPS if n_groups <= limit), FEWEST_STEPS)
    most = min(steps, ODDS_STEPS) if rule.event.parts else steps
    if is_ratio:  # from 1 down to the first ratio that the classifier's own decisions meet; a limit is above 0
        below = _grid(1 - first.record.ratio_before, most, SMALLEST_RATIO_STEP)
        limits = [round(1 - step, 12) for step in below if step < 1]
    else:
        limits = _grid(first.record.gap_before, most, SMALLEST_STEP)
    # The slider needs a second position even if the rates are equal already.
    others = limits[1:] or ([0.99 if is_ratio else 0.01] if own == strictest else [])
    rules = {strictest: first} | {limit: fitted(limit) for limit in others} | {own: rule}
    return [rules[limit] for limit in sorted(rules, reverse=is_ratio)], first.record.fingerprint


def _grid(reach: float, most: int, smallest: float) -> list[float]:
    """About `most` round numbers from 0 to the first one that is at least `reach`, at least `smallest` apart."""
    if not reach > 1e-9:  # or NaN, the ratio if nobody is selected
        return [0.0]
    wanted = max(reach / most, smallest * (1 - 1e-9))
    rounds = (factor * 10.0 ** floor(log10(wanted)) for factor in (1, 2, 5, 10))
    step = next(value for value in rounds if value >= wanted * (1 - 1e-9))
    return [min(round(step * i, 12), 1.0) for i in range(ceil(reach / step - 1e-9) + 1)]


@dataclass(frozen=True)
class Sources:
    """Names of the file and the columns that the rows came from, and of the positive label, if known.

    `reading` are the options with which the file was read, as typed.
    """

    data: str | None = None
    label: str | None = None
    weight: str | None = None
    positive: str | None = None
    reading: tuple[str, ...] = ()


def fit_command(rule: Rule, settings: Settings, sources: Sources, labeled: bool, weighted: bool) -> str:
    """The command that fits a rule with these settings to the same rows; unknown names are in capital letters.

    Only a slider shows it, so it is empty for a rule that mixes thresholds.
    """
    if rule.mixes:
        return ""
    limit = ("max-gap", rule.max_gap) if rule.min_ratio is None else ("min-ratio", rule.min_ratio)
    words = fit_words(rule, settings, sources, labeled, weighted)
    return shlex.join(["fairramp", *words, "-o", f"rule-{limit[0]}-{_spelled(limit[1])}.json"])


def fit_words(rule: Rule, settings: Settings, sources: Sources, labeled: bool, weighted: bool) -> list[str]:
    """The same as words, without the program and the output."""
    columns, scale = rule.columns, scale_of(rule.scale, rule.higher_is_better)
    limit = ("--max-gap", rule.max_gap) if rule.min_ratio is None else ("--min-ratio", rule.min_ratio)
    target = settings.target_rate
    options: dict[str, tuple[object, bool]] = {
        "--criterion": (rule.criterion, rule.criterion != "parity"),
        "--target-rate": (
            target,
            target not in (None, "accuracy" if rule.event.needs_labels else "optimal"),
        ),
        "--costs": (",".join(f"{cost:.12g}" for cost in settings.costs or ()), settings.costs is not None),
        "--overall-rate": (settings.overall_rate, settings.overall_rate is not None),
        "--ramp-width": (settings.ramp_width * scale.shown_per_unit, settings.ramp_width != 0.01),
        "--ramp": (rule.ramp, rule.ramp != "centered"),
        "--scale": (rule.scale, rule.scale != "probability"),
        "--cutoff": (rule.cutoff, rule.cutoff != scale.default_cutoff),
        "--unseen-group": (rule.unseen_group, rule.unseen_group != "error"),
        "--small-groups": (settings.small_groups, settings.small_groups != "alone"),
    }
    words = ["fit", sources.data or "DATA", "--score", columns.score or "SCORE"]
    words += [word for name in columns.groups or ("GROUP",) for word in ("--group", name)]
    strata = columns.strata or ("STRATA",) if rule.stratified else ()
    words += [word for name in strata for word in ("--strata", name)]
    # Rows without a label are left out, too.
    if labeled and (settings.needs_labels or "--skip-invalid" in sources.reading):
        words += ["--label", sources.label or "LABEL"]
        words += [] if sources.positive is None else ["--positive", sources.positive]
    words += ["--weight", sources.weight or "WEIGHT"] if weighted else []
    words += [limit[0], _spelled(limit[1])]
    words += [word for name, (value, holds) in options.items() if holds for word in (name, _spelled(value))]
    words += [] if rule.higher_is_better else ["--lower-is-better"]
    return [*words, *sources.reading]


def _spelled(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)
