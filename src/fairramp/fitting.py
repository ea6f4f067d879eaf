"""fit_rule: from scores and groups to a rule.

    summarise the rows  →  solve  →  look closer where the solution needs it  →  solve again  →  Rule

The loop ends when, at the solution, every end of every ramp lies in points that are as good as the rows
(see `summary`). Then every selection rate is exact, and so is the rule.
"""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from fairramp._version import __version__
from fairramp.calibration import LabelledScores
from fairramp.criteria.parity import ParityProblem, ParitySolution, place_ramps, solve_parity
from fairramp.distribution import RATE_TOLERANCE, Floats
from fairramp.exceptions import FairrampWarning, InputError
from fairramp.groups import Codes, column_name, encode_groups
from fairramp.inputs import (
    as_labels,
    as_scores,
    as_weights,
    check_length,
    check_number,
    check_option,
    checked_width,
)
from fairramp.rows import ArrayRows
from fairramp.rule import OFFSETS, TARGETS, UNSEEN_POLICIES, FitRecord, Ramp, Rule
from fairramp.scales import SATURATION, SCALES
from fairramp.summary import GroupScores

__all__ = ["counting_rows", "fit_rule"]

#: Groups with fewer rows are warned of.
SMALL_GROUP = 30
#: Weights beyond these limits are scaled, so that their squares neither overflow nor vanish.
_LARGEST_WEIGHT, _SMALLEST_WEIGHT = 1e100, 1e-100


def fit_rule(
    scores: Any,
    groups: Any,
    labels: Any = None,
    *,
    max_gap: float = 0.0,
    ramp_width: float = 0.01,
    ramp: str = "centered",
    target_rate: str | float = "optimal",
    cutoff: float | None = None,
    scale: str = "probability",
    sample_weight: Any = None,
    unseen_group: str = "error",
    date: str | None = None,
) -> Rule:
    """Learn one threshold ramp per group that makes selection rates equal up to `max_gap`.

    The rule is the exact optimum: of all rules of that ramp width and gap on the given rows it gives up
    least, where a changed decision costs the distance of its score from the cutoff. So the least certain
    decisions are changed first; their number is not what is minimised. No labels are needed, no random
    numbers are used, and no row is kept. The gap is one of expected rates: drawn decisions scatter around
    it, the more the smaller the groups.

    Parameters
    ----------
    scores : numbers of shape (n,)
        The trained classifier's scores, on rows it was not trained on. An array, list or column of any
        data-frame library; float32 is read as it is.
    groups : labels of shape (n,), or several columns
        Strings, whole numbers, booleans or categories; missing values are a group of their own. A data
        frame, mapping, 2-D array or list of columns makes intersections, labelled by tuples.
    labels : 0 or 1 of shape (n,), optional
        True outcomes, for ``target_rate`` "accuracy" and "base_rate" only.
    max_gap : float, default 0
        Largest allowed difference between any two groups' selection rates, in [0, 1].
    ramp_width : float, default 0.01
        Width of the zone around each threshold in which the decision is drawn at random, in the units of
        the scores (of probabilities for logits). 0 draws only among equal scores; otherwise at least 1e-6.
    ramp : {"centered", "paper"}, default "centered"
        Whether the ramp is centered on the threshold or starts there, as published.
    target_rate : "optimal", "accuracy", "base_rate" or a number in [0, 1], default "optimal"
        Where the groups' selection rates lie: where it costs least by the scores; where decisions agree best
        with the labels, which is better if scores are not calibrated; around the share of positive labels; or
        around a number.
    cutoff : float, optional
        Where the classifier itself says yes, ``score >= cutoff``; 0.5 for probabilities and 0 for signed
        scores and logits unless given.
    scale : {"probability", "signed", "logit"}, default "probability"
        What the scores are: in [0, 1], in [−1, 1], or any finite number. Never guessed.
    sample_weight : numbers of shape (n,), optional
        Weights of the rows; a row of weight 2 counts like two rows, one of weight 0 like none.
    unseen_group : {"error", "pooled", "original"}, default "error"
        What the rule does with a group that the fit did not see: refuse; use the threshold at which all
        fit rows together reach the band; or keep the classifier's own decision.
    date : str, optional
        Stored in the rule's record as it is. Nothing is stored otherwise: the same data give the same file.

    Returns
    -------
    Rule

    Warns
    -----
    FairrampWarning
        For one single group, groups below 30 rows, a best rate of 0 or 1, and logits so large that their
        probabilities are tied at 1.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> rule = fairramp.fit_rule(data.score, data.sex, max_gap=0.02)
    >>> print(rule.table())  # doctest: +SKIP
    >>> round(rule.record.gap_before, 3), round(rule.record.gap_after, 3)
    (0.168, 0.02)
    """
    column = as_scores(scores)
    codes = encode_groups(groups)
    check_length("groups", len(codes), len(column))
    meaning = SCALES[check_option("scale", scale, SCALES)]
    check_option("ramp", ramp, OFFSETS)
    check_option("unseen_group", unseen_group, UNSEEN_POLICIES)
    cutoff = meaning.checked_cutoff(cutoff)
    weights = None if sample_weight is None else as_weights(sample_weight, len(column))
    outcomes = None if labels is None else as_labels(labels, len(column))
    problem = ParityProblem(
        max_gap=check_number("max_gap", max_gap, 0.0, 1.0),
        target_rate=_numeric_target(target_rate, outcomes, weights),
        cutoff=float(meaning.position(np.array([cutoff]))[0]),
        ramp_width=checked_width(ramp_width),
        offset=OFFSETS[ramp],
    )
    if date is not None and not isinstance(date, str):
        raise InputError(f"`date` must be text, got {date!r}; for example date.today().isoformat().")

    if weights is not None and not weights.all():
        ArrayRows(column, codes, None, meaning).positions(0, len(column))  # rows of weight 0 must be sound too
    column, codes, weights, outcomes = counting_rows(column, codes, weights, outcomes)
    rows = ArrayRows(column, codes, weights, meaning)
    rates = None
    if target_rate == "accuracy":
        assert outcomes is not None
        labelled = LabelledScores.from_rows(codes, rows.positions(0, len(column)), outcomes, weights)
        rates = labelled.most_accurate_rates(problem.max_gap)
    summary, solution, pooled = _solve(rows, problem, rates, pool=unseen_group == "pooled")
    own_rates = summary.distribution().rates_from(np.full(len(summary.labels), problem.cutoff))
    width = problem.ramp_width
    own_gap = own_rates.max() - own_rates.min()
    if target_rate == "optimal" and ramp == "centered" and own_gap <= problem.max_gap + RATE_TOLERANCE:
        # Nothing to do: the classifier's own decisions stand.
        width = 0.0
        solution = _own_decisions(problem.cutoff, own_rates)
        summary = _resolved(rows, summary, solution.feet)
        pooled = Ramp(problem.cutoff, 1.0) if pooled else None
    _warn(summary, solution, target_rate == "optimal", rows)

    record = FitRecord(
        **_per_group(summary, solution, width),
        rate_before=tuple(own_rates.tolist()),
        target=target_rate if isinstance(target_rate, str) else float(target_rate),
        ramp_width=problem.ramp_width,
        weighted=weights is not None,
        cross_fitted=False,
        score_column=column_name(scores),
        group_columns=codes.names,
        fingerprint=summary.fingerprint(meaning.lowest, meaning.highest),
        version=__version__,
        date=date,
    )
    return Rule(
        groups=summary.labels,
        ramps=tuple(
            Ramp(t, tie if width == 0 else 0.0)
            for t, tie in zip(solution.thresholds.tolist(), solution.tie_chances.tolist(), strict=True)
        ),
        ramp_width=width,
        ramp=ramp,
        scale=meaning.name,
        cutoff=cutoff,
        max_gap=problem.max_gap,
        target_rate=solution.target_rate,
        unseen_group=unseen_group,
        pooled=pooled,
        record=record,
    )


def _numeric_target(target: Any, labels: Floats | None, weights: Floats | None) -> float | None:
    """The target as a number; None where it is to be found."""
    if isinstance(target, str) and target in TARGETS:
        if target == "optimal":
            return None
        if labels is None:
            raise InputError(f"`target_rate={target!r}` needs `labels`, the true outcomes of the rows.")
        shares = None if weights is None else weights / weights.max()  # huge weights must not overflow
        return float(np.average(labels, weights=shares)) if target == "base_rate" else None
    if isinstance(target, str) or target is None:
        words = ", ".join(map(repr, TARGETS))
        raise InputError(f"`target_rate` must be {words} or a number in [0, 1], got {target!r}.")
    return check_number("target_rate", target, 0.0, 1.0)


def counting_rows(
    column: Any, codes: Codes, weights: Floats | None, labels: Floats | None
) -> tuple[Any, Codes, Floats | None, Floats | None]:
    """Rows that count: those of weight 0 are left out, weights far from 1 are scaled."""
    if weights is None:
        return column, codes, None, labels
    counts = weights > 0
    if not counts.all():
        before = codes.occurring()
        column, weights = column[counts], weights[counts]
        labels = None if labels is None else labels[counts]
        codes = replace(codes, values=codes.values[counts])
        lost = np.flatnonzero(before & ~codes.occurring())
        if len(lost):
            raise InputError(
                f"`sample_weight` is zero in every row of group {codes.labels[lost[0]]!r}; "
                "give its rows weight or leave them out."
            )
    largest = weights.max()
    if not _SMALLEST_WEIGHT < largest < _LARGEST_WEIGHT:
        weights = np.ldexp(weights, -np.frexp(largest)[1])
        if not weights.all():
            raise InputError("`sample_weight` must not differ by more than a factor of 1e300.")
    return column, codes, weights, labels


def _solve(
    rows: ArrayRows, problem: ParityProblem, rates: Floats | None = None, *, pool: bool
) -> tuple[GroupScores, ParitySolution, Ramp | None]:
    """Solve, look closer, and solve again until the solution rests on exact points alone.

    With `rates` each group's selection rate is given and only its ramp is looked for.
    """
    summary = rows.summarize()
    near = None
    while True:
        n_groups = len(summary.labels)
        if rates is None:
            solution = solve_parity(summary.distribution(), summary.shares, problem, near)
            near = solution.target_rate
        else:
            solution = place_ramps(summary.distribution(), rates, problem)
        feet = [solution.feet]
        edges = np.full((1, n_groups), problem.cutoff)
        if problem.target_rate is None and rates is None:
            feet += list(solution.multiplier_feet)
        pooled = None
        if pool:
            together = _solve_pooled(summary, problem, solution.target_rate)
            feet.append(np.full(n_groups, together.feet[0]))
            pooled = Ramp(
                float(together.thresholds[0]),
                float(together.tie_chances[0]) if problem.ramp_width == 0 else 0.0,
            )
        split, average = summary.unresolved(np.stack(feet), problem.ramp_width, edges)
        if not (split.any() or average.any()):
            return summary, solution, pooled
        summary = summary.replace(split | average, rows.refine(summary, split, average))


def _resolved(rows: ArrayRows, summary: GroupScores, thresholds: Floats) -> GroupScores:
    """A summary that tells rows above a threshold from rows at it."""
    while True:
        split, average = summary.unresolved(thresholds[None], 0.0, thresholds[None])
        if not split.any():
            return summary
        summary = summary.replace(split, rows.refine(summary, split, average))


def _solve_pooled(summary: GroupScores, problem: ParityProblem, target: float) -> ParitySolution:
    """The ramp at which all rows together reach the band."""
    everyone = summary.pooled()
    return solve_parity(everyone.distribution(), everyone.shares, replace(problem, target_rate=target))


def _own_decisions(cutoff: float, rates: Floats) -> ParitySolution:
    """The classifier's own decisions as a rule: yes from the cut-off on."""
    thresholds = np.full(len(rates), cutoff)
    return ParitySolution(
        target_rate=float(rates.max() + rates.min()) / 2,
        feet=thresholds,
        thresholds=thresholds,
        tie_chances=np.ones(len(rates)),
        rates=rates,
        multiplier_feet=np.stack([thresholds, thresholds]),
    )


def _per_group(summary: GroupScores, solution: ParitySolution, width: float) -> dict[str, Any]:
    """Numbers of the record that come from the points, one per group.

    Effective rows: n_eff = r (1 − r) W² / Σ w² (h − r)², which for unit weights and certain decisions
    is n. Where nobody or everybody is selected it is W² / Σ w².
    """
    p, rates = summary.points, solution.rates
    foot = solution.feet[p.group]
    chance = solution.chances(p.place, p.group, width)
    if width > 0:
        above, inside = p.lower >= foot + width, (p.upper > foot) & (p.lower < foot + width)
        inside &= p.place > foot
    else:
        above, inside = p.lower > foot, p.place == foot
    shares = np.sqrt(p.weight_squares) / summary.weights[p.group]  # squared last: W² may vanish
    squares = summary.total(shares**2)
    spread = summary.total((shares * (chance - rates[p.group])) ** 2)
    usable = spread > 1e-20 * squares  # less is rounding: all have the same chance
    with np.errstate(divide="ignore"):
        effective = np.where(usable, rates * (1 - rates), 1.0) / np.where(usable, spread, squares)
    effective = np.where(squares > 0, effective, summary.rows)  # the squares have vanished themselves
    return {
        "rows": tuple(summary.rows.tolist()),
        "effective_rows": tuple(effective.tolist()),
        "rows_above": tuple(summary.total(p.rows * above).tolist()),
        "rows_inside": tuple(summary.total(p.rows * inside).tolist()),
        "rate_after": tuple(rates.tolist()),
    }


def _warn(summary: GroupScores, solution: ParitySolution, optimal: bool, rows: ArrayRows) -> None:
    def warn(text: str) -> None:
        warnings.warn(text, FairrampWarning, stacklevel=4)

    if len(summary.labels) == 1:
        warn(f"There is one single group, {summary.labels[0]!r}: nothing to equalise.")
    small = np.flatnonzero(summary.rows < SMALL_GROUP)
    if len(small):
        shown = ", ".join(f"{summary.labels[i]!r} (n = {summary.rows[i]})" for i in small[:5])
        more = f" and {len(small) - 5:,} more" if len(small) > 5 else ""
        warn(
            f"Groups below {SMALL_GROUP} rows: {shown}{more}. Their selection rates on new rows can be "
            "far from those on the fit rows."
        )
    if optimal and solution.target_rate in (0.0, 1.0):
        who = "nobody" if solution.target_rate == 0 else "everybody"
        warn(
            f"The best equal rate is {solution.target_rate:.0f}: {who} is selected. If that is not "
            "wanted, set `cutoff` to where the classifier says yes, or `target_rate` to a number."
        )
    if rows.scale.name == "logit":
        tied = int((rows.scores > SATURATION).sum())
        if tied:
            warn(f"{tied:,} logits above {SATURATION:.1f} have probability 1.0 and are tied.")
