"""fit_rule: from scores and groups to a rule.

    summarise the rows  →  solve  →  look closer where the solution needs it  →  solve again  →  Rule

The loop ends when, at the solution, every end of every ramp lies in points that are as good as the rows
(see `summary`). Then every selection rate is exact, and so is the rule.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from fairramp._version import __version__
from fairramp.core.cells import largest_gap, stratum_index
from fairramp.core.checks import check_length
from fairramp.core.curve import RATE_TOLERANCE, Floats, Integers
from fairramp.core.labels import Label, label_key, show_label
from fairramp.core.points import Summary
from fairramp.core.scales import SATURATION
from fairramp.core.table import with_rows
from fairramp.data.arrays import as_labels, as_scores, as_weights
from fairramp.data.groups import name_of
from fairramp.data.rows import ArrayRows, Rows
from fairramp.data.sample import Names, counting_rows, encode_cells, warn_saturated
from fairramp.errors import InputError, warn
from fairramp.fit.criteria.parity import ParityProblem, ParitySolution, place_ramps, solve_parity
from fairramp.fit.criteria.strata import Covariance, CovarianceSolution, solve_covariance
from fairramp.fit.guess import look_ahead
from fairramp.fit.outcomes import LabelledScores
from fairramp.fit.settings import Request, checked_strata
from fairramp.fit.sgd import SGD, descend
from fairramp.rule.record import FitRecord
from fairramp.rule.rule import Ramp, Rule

__all__ = [
    "SMALL_GROUP",
    "doubt",
    "fit_rows",
    "fit_rule",
]

#: Groups with fewer rows are warned of.
SMALL_GROUP = 30


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
    criterion: Covariance | None = None,
    solver: str | SGD = "exact",
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
        the scores (of probabilities for logits and percentages, where 0.01 is one point). 0 draws only among
        equal scores; otherwise at least 1e-6.
    ramp : {"centered", "paper"}, default "centered"
        Whether the ramp is centered on the threshold or starts there, as published.
    target_rate : "optimal", "accuracy", "base_rate" or a number in [0, 1], default "optimal"
        Where the groups' selection rates lie: where it costs least by the scores; where decisions agree best
        with the labels, which is better if scores are not calibrated; around the share of positive labels; or
        around a number.
    cutoff : float, optional
        Where the classifier itself says yes, ``score >= cutoff``; 0.5 for probabilities, 50 for
        percentages and 0 for signed scores and logits unless given.
    scale : {"probability", "percent", "signed", "logit"}, default "probability"
        What the scores are: in [0, 1], in [0, 100], in [−1, 1], or any finite number. Never guessed.
    sample_weight : numbers of shape (n,), optional
        Weights of the rows; a row of weight 2 counts like two rows, one of weight 0 like none.
    unseen_group : {"error", "pooled", "original"}, default "error"
        What the rule does with a group that the fit did not see: refuse; use the threshold at which all
        fit rows together reach the band; or keep the classifier's own decision.
    criterion : Covariance, optional
        Equal rates of two groups within each stratum instead of over all rows; see `fairramp.Covariance`.
    solver : "exact", "sgd" or SGD, default "exact"
        "sgd" is the paper's stochastic algorithm, which comes near the optimum of a numeric target rate; for
        comparison. See `fairramp.SGD`.
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
    codes, strata_columns = encode_cells(groups, checked_strata(criterion))
    check_length("groups", len(codes), len(column))
    weights = None if sample_weight is None else as_weights(sample_weight, len(column))
    outcomes = None if labels is None else as_labels(labels, len(column))
    request = Request.checked(
        max_gap=max_gap,
        ramp_width=ramp_width,
        ramp=ramp,
        target_rate=target_rate,
        cutoff=cutoff,
        scale=scale,
        unseen_group=unseen_group,
        stratified=criterion is not None,
        solver=solver,
        date=date,
    )
    if request.needs_labels and outcomes is None:
        raise InputError(f"`target_rate={target_rate!r}` needs `labels`, the true outcomes of the rows.")

    if weights is not None and not weights.all():
        ArrayRows(column, codes, None, request.scale).positions(0, len(column))  # rows of weight 0 must be sound
    column, codes, weights, outcomes = counting_rows(column, codes, weights, outcomes)
    rows = ArrayRows(column, codes, weights, request.scale)
    labelled = None
    if request.needs_labels:
        assert outcomes is not None
        if request.target == "base_rate":
            shares = None if weights is None else weights / weights.max()  # huge weights must not overflow
            request = request.aiming_at(float(np.average(outcomes, weights=shares)))
        else:
            labelled = LabelledScores.from_rows(codes, rows.positions(0, len(column)), outcomes, weights)
    names = Names(name_of(scores), codes.names, strata_columns)
    rule = fit_rows(rows, request, names, weighted=weights is not None, labelled=labelled)
    if request.scale.name == "logit":
        warn_saturated(int((column > SATURATION).sum()))
    return rule


def fit_rows(
    rows: Rows, request: Request, names: Names, *, weighted: bool, labelled: LabelledScores | None = None
) -> Rule:
    """Fit a rule to rows that are checked, coded and have weight.

    `labelled` brings the labels for the target "accuracy".
    """
    problem = request.problem
    summary = rows.summarize()
    fingerprint = summary.fingerprint(request.scale.lowest, request.scale.highest)
    strata = stratum_index(summary.labels) if request.stratified else None
    if strata is not None:
        _check_strata(summary.labels, strata)
    rates = labelled.most_accurate_rates(problem.max_gap, strata) if labelled else None
    if rates is not None and strata is not None:  # nothing to equalise: the cut-off stays
        rates = np.where(np.bincount(strata)[strata] == 1, np.nan, rates)
    trace = None
    if request.sgd is not None:
        summary, solution, trace = _descend(rows, summary, request)
        pooled = None
        if request.unseen_group == "pooled":
            # Its summary is fine where the exact solver's ramps stand; the record is about the others.
            _, _, pooled = _solve(rows, summary, problem, None, None, request.scale.lowest, pool=True)
    else:
        summary, solution, pooled = _solve(
            rows, summary, problem, rates, strata, request.scale.lowest, pool=request.unseen_group == "pooled"
        )
    own_rates = summary.distribution().rates_from(np.full(len(summary.labels), problem.cutoff))
    width = problem.ramp_width
    may_stand = request.target == "optimal" and request.ramp == "centered"
    if may_stand and largest_gap(own_rates, strata) <= problem.max_gap + RATE_TOLERANCE:
        # Nothing to do: the classifier's own decisions stand.
        width = 0.0
        solution = _own_decisions(problem.cutoff, own_rates)
        summary = _resolved(rows, summary, solution.feet, 0.0)
        pooled = Ramp(problem.cutoff, 1.0) if pooled else None
    _warn(summary, solution, request)

    record = FitRecord(
        **_per_group(summary, solution, width),
        rate_before=tuple(own_rates.tolist()),
        rate_error=(0.0,) * len(own_rates),
        strata=None if strata is None else tuple(strata.tolist()),
        target=request.target,
        ramp_width=problem.ramp_width,
        weighted=weighted,
        cross_fitted=False,
        solver="exact" if request.sgd is None else "sgd",
        trace=trace,
        score_column=names.score,
        group_columns=names.groups,
        strata_columns=names.strata,
        fingerprint=fingerprint,
        version=__version__,
        date=request.date,
    )
    return Rule(
        groups=summary.labels,
        ramps=tuple(
            Ramp(t, tie if width == 0 else 0.0)
            for t, tie in zip(solution.thresholds.tolist(), solution.tie_chances.tolist(), strict=True)
        ),
        ramp_width=width,
        ramp=request.ramp,
        scale=request.scale.name,
        cutoff=request.cutoff,
        max_gap=problem.max_gap,
        target_rate=None if request.stratified else solution.target_rate,
        unseen_group=request.unseen_group,
        pooled=pooled,
        criterion="covariance" if request.stratified else "parity",
        record=record,
    )


def _check_strata(labels: tuple[Label, ...], strata: Integers) -> None:
    """Covariance is of a binary attribute; a stratum with one value has nothing to equalise."""
    values = {label_key(label[1]): label[1] for label in labels if isinstance(label, tuple)}
    if len(values) > 2:
        shown = ", ".join(map(repr, list(values.values())[:5])) + ", …" * (len(values) > 5)
        raise InputError(
            f"`criterion=Covariance(…)` compares two groups, got {len(values)} ({shown}); fit a rule per stratum "
            "to equalise more."
        )
    alone = [label[0] for label, n in zip(labels, np.bincount(strata)[strata], strict=True) if n == 1]  # type: ignore[index]
    if len(alone) == len(labels):
        if len(labels) > 1:  # otherwise there is a warning of one single group already
            warn("Every stratum has one single group: nothing to equalise.")
    elif alone:
        shown = ", ".join(map(repr, alone[:5])) + (f" and {len(alone) - 5:,} more" if len(alone) > 5 else "")
        warn(f"Strata with one single group, where nothing is equalised: {shown}.")


def _solve(
    rows: Rows,
    summary: Summary,
    problem: ParityProblem,
    rates: Floats | None,
    strata: Integers | None,
    lowest: float,
    *,
    pool: bool,
) -> tuple[Summary, ParitySolution, Ramp | None]:
    """Solve, look closer, and solve again until the solution rests on exact points alone.

    With `rates` each group's selection rate is given and only its ramp is looked for; with `strata` gaps are
    those within strata.
    """
    near: Any = None
    if strata is None:
        summary, near = look_ahead(rows, summary, problem, lowest, rates)
    while True:
        n_groups = len(summary.labels)
        solution: ParitySolution
        if rates is not None:
            solution = place_ramps(summary.distribution(), rates, problem)
        elif strata is not None:
            solution = solve_covariance(summary, strata, problem, near)
            near = solution.targets
        else:
            solution = solve_parity(summary.distribution(), summary.shares, problem, near)
            near = solution.target_rate
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


def _resolved(rows: Rows, summary: Summary, feet: Floats, width: float) -> Summary:
    """A summary that is exact for ramps at the given feet, and at the edges of ramps of width 0."""
    edges = feet[None] if width == 0 else np.empty((0, len(feet)))
    while True:
        split, average = summary.unresolved(feet[None], width, edges)
        if not (split.any() or average.any()):
            return summary
        summary = summary.replace(split | average, rows.refine(summary, split, average))


def _descend(
    rows: Rows, summary: Summary, request: Request
) -> tuple[Summary, ParitySolution, tuple[tuple[float, ...], ...]]:
    """Ramps by the stochastic solver, what they do to the fit rows, and the thresholds after each epoch."""
    if not isinstance(rows, ArrayRows):
        raise InputError("`solver='sgd'` needs the rows in memory; collect the table first.")
    assert request.sgd is not None
    problem, n_groups = request.problem, len(summary.labels)
    per_unit = request.signed_per_unit
    signed = (rows.positions(0, len(rows.scores)) - problem.cutoff) * per_unit
    group = (np.cumsum(rows.codes.occurring()) - 1)[rows.codes.block(0, len(rows.codes))]
    found = descend(signed, group, rows.weights, n_groups, request.signed_problem, request.sgd)
    thresholds = problem.cutoff + found.thresholds / per_unit
    feet = thresholds - problem.offset * problem.ramp_width
    edges = np.full(n_groups, problem.cutoff)
    summary = _resolved(rows, _resolved(rows, summary, feet, problem.ramp_width), edges, 0.0)
    solution = ParitySolution(
        target_rate=float(problem.target_rate or 0.0),
        feet=feet,
        thresholds=thresholds,
        tie_chances=np.full(n_groups, problem.offset),
        rates=summary.distribution().rates(feet, problem.ramp_width),
        multiplier_feet=np.stack([feet, feet]),
    )
    trace = problem.cutoff + found.trace / per_unit
    return summary, solution, tuple(tuple(row) for row in trace.tolist())


def _solve_pooled(summary: Summary, problem: ParityProblem, target: float) -> ParitySolution:
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


def _per_group(summary: Summary, solution: ParitySolution, width: float) -> dict[str, Any]:
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


def doubt(n_groups: int, n_rows: int) -> str:
    """A question about groups that are so many that the column is probably another one."""
    if n_groups <= 100 or n_groups * 10 <= n_rows:
        return ""
    return f" {n_groups:,} groups in {n_rows:,} rows: is this a group column?"


def _warn(summary: Summary, solution: ParitySolution, request: Request) -> None:
    optimal = request.target == "optimal"
    if len(summary.labels) == 1:
        warn(f"There is one single group, {show_label(summary.labels[0])}: nothing to equalise.")
    small = np.flatnonzero(summary.rows < SMALL_GROUP)
    if len(small):
        named = [(summary.labels[i], int(summary.rows[i])) for i in small.tolist()]
        warn(
            f"Groups below {SMALL_GROUP} rows: {with_rows(named, form='{} ({})')}. Their selection rates on new "
            f"rows can be far from those on the fit rows.{doubt(len(summary.labels), int(summary.rows.sum()))}"
        )
    if isinstance(solution, CovarianceSolution):
        n_empty = int(np.isin(solution.targets, (0.0, 1.0)).sum())
        if optimal and n_empty:
            warn(
                f"In {n_empty:,} of {len(solution.targets):,} strata the best equal rate is 0 or 1, so that all "
                "are decided alike. If that is not wanted, set `cutoff` to where the classifier says yes."
            )
    elif optimal and not request.stratified and solution.target_rate in (0.0, 1.0):
        who = "nobody" if solution.target_rate == 0 else "everybody"
        warn(
            f"The best equal rate is {solution.target_rate:.0f}: {who} is selected. If that is not "
            "wanted, set `cutoff` to where the classifier says yes, or `target_rate` to a number."
        )
