"""fit_rule: from scores and groups to a rule.

    summarize the rows  →  solve  →  refine where the solution needs it  →  solve again  →  Rule

The loop ends when, at the solution, every end of every ramp lies in points that are as good as the rows
(see `core.points`). Then every rate is exact, and so is the rule.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from fairramp._version import __version__
from fairramp.core.bands import holds
from fairramp.core.cells import stratum_index
from fairramp.core.curve import Floats
from fairramp.core.events import Event
from fairramp.core.headline import SMALL_GROUP
from fairramp.core.intervals import effective_rows
from fairramp.core.labels import Label, show_label
from fairramp.core.points import Summary
from fairramp.core.public import public
from fairramp.core.ramps import Ramp
from fairramp.core.table import with_rows
from fairramp.data.columns import Columns
from fairramp.data.groups import warn_alike, warn_blank
from fairramp.data.labeled import LabeledBins
from fairramp.data.probable import GroupProbabilities
from fairramp.data.rows import ArrayRows, BinnedRows, Rows, resolved
from fairramp.data.sample import Sample
from fairramp.errors import InputError, warn
from fairramp.fit.borrow import Borrowed, RowsAndPseudoRows, borrow, looked_into
from fairramp.fit.cells import Cells, FitRows
from fairramp.fit.criteria.odds import EQUALIZED_ODDS
from fairramp.fit.criteria.opportunity import EQUAL_OPPORTUNITY, PREDICTIVE_EQUALITY
from fairramp.fit.criteria.parity import PARITY
from fairramp.fit.criteria.strata import WithinStrata
from fairramp.fit.direction import warn_direction
from fairramp.fit.each import fit_each
from fairramp.fit.few_scores import warn_few_scores
from fairramp.fit.keywords import taking_settings
from fairramp.fit.outcomes import LabeledScores
from fairramp.fit.population import kept_in_population
from fairramp.fit.probable import check_probable, fit_probabilities
from fairramp.fit.problem import Criterion, Fixed, Level, Problem, Solution
from fairramp.fit.settings import Keywords, Settings
from fairramp.fit.sgd import descend
from fairramp.fit.solver import Solver
from fairramp.fit.targets import by_labels
from fairramp.rule.record import FitRecord, Rates
from fairramp.rule.rule import Rule

#: The error of each group's rate of an event, given its ramps.
Errors = Callable[[Event, Sequence[Ramp]], Floats]
#: The criteria by name. To add one, add a module to `criteria` and a line here.
CRITERIA: dict[str, Criterion] = {
    criterion.event.criterion: criterion
    for criterion in (PARITY, EQUAL_OPPORTUNITY, PREDICTIVE_EQUALITY, EQUALIZED_ODDS)
}


@public
@taking_settings()
def fit_rule(
    scores: Any,
    groups: Any,
    labels: Any = None,
    *,
    strata: Any = None,
    sample_weight: Any = None,
    **settings: Unpack[Keywords],
) -> Rule:
    """Fit one threshold ramp per group that makes a rate equal across groups, up to `max_gap` or `min_ratio`.

    By default, selection rates are made equal, which needs no labels. The rule is then the exact optimum: no
    rule with this gap on the given rows has a lower cost, where changing a decision costs the distance of its
    score from the cutoff, and a small term, proportional to `ramp_width`, makes the ramp. The least certain
    decisions are therefore changed first; the number of changed decisions is not minimized. The fit uses no
    random numbers and stores no rows. The gap is the one between expected rates; the rates of actual random
    decisions vary around the expected rates, more so in small groups.

    Parameters
    ----------
    scores : numbers of shape (n,)
        The trained classifier's scores, on rows it was not trained on. An array, list or column of any dataframe
        library; float32 is not converted.
    groups : labels of shape (n,), or several columns, or GroupProbabilities
        Strings, integers, booleans or categories; missing values are a group of their own. A dataframe, mapping,
        2-D array or list of columns gives groups that are combinations of values, labeled by tuples; see
        `combine`. If groups are not known, `fairramp.GroupProbabilities`; expected rates are then made equal.
    labels : 0 or 1 of shape (n,), optional
        True outcomes; required by every `criterion` but "parity", and by ``target_rate`` "accuracy",
        "balanced_accuracy" and "base_rate". Decisions never need them.
    strata : labels of shape (n,), or several columns, optional
        Department, region, job family and so on. Rates are made equal within each stratum instead of over all
        rows, each stratum with its own target rate. A stratum with one group keeps the classifier's cutoff,
        unless there is an `overall_rate`. With two groups, this is the covariance criterion of the paper's
        Appendix D.1.
    sample_weight : numbers of shape (n,), optional
        Row weights; rates count a row of weight 2 twice, and a row of weight 0 is ignored.
    {settings}

    Returns
    -------
    Rule

    Warns
    -----
    FairrampWarning
        If there is only one group, a group has fewer than 30 rows, the best rate is 0 or 1, logits are so large
        that their probabilities are tied at 1, or scores are worse, on average, where the label is 1.

    Examples
    --------
    >>> import fairramp
    >>> data = fairramp.datasets.load_adult_scores()
    >>> rule = fairramp.fit_rule(data.score, data.sex, max_gap=0.02)
    >>> print(rule.table())  # doctest: +SKIP
    >>> round(rule.record.gap_before, 3), round(rule.record.gap_after, 3)
    (0.168, 0.02)

    Equal true positive rates:

    >>> rule = fairramp.fit_rule(data.score, data.sex, data.label, criterion="equal_opportunity")
    >>> [round(rate, 3) for rate in rule.record.rates["true_positive"].after]
    [0.568, 0.568]

    A ratio of at least 0.8, with one in ten people selected:

    >>> rule = fairramp.fit_rule(data.score, data.sex, min_ratio=0.8, overall_rate=0.1)
    >>> round(rule.record.ratio_after, 3), round(float(rule.probabilities(data.score, data.sex).mean()), 3)
    (0.8, 0.1)

    Within strata:

    >>> rule = fairramp.fit_rule(data.score, data.sex, strata=data.race)
    >>> round(rule.record.gap_before, 3), round(rule.record.gap_after, 3)
    (0.199, 0.0)
    >>> rule.probabilities([0.4, 0.4], ["Female", "Male"], strata=["White", "White"])
    array([1., 0.])
    """
    asked = Settings.of(fit_rule, settings)
    if isinstance(groups, GroupProbabilities):
        check_probable(asked, stratified=strata is not None)
        return fit_probabilities(scores, groups, asked, labels, sample_weight=sample_weight)
    asked.check_rows(
        labeled=labels is not None, stratified=strata is not None, weighted=sample_weight is not None
    )
    sample = Sample.of_arrays(
        scores, groups, labels, scale=asked.meaning, strata=strata, sample_weight=sample_weight
    )
    warn_direction(sample)
    rule = fit_sample(sample, asked)
    warn_few_scores(sample.scores, rule)
    return rule


def fit_sample(sample: Sample, settings: Settings, *, ordered_only: bool = False) -> Rule:
    """Fit a rule to rows in memory; with `ordered_only`, only the order of the scores is meaningful."""
    if settings.combine == "each":
        rule = fit_each(sample.rows, settings, sample.columns, weighted=sample.weights is not None)
        sample.warn_saturated()
        return rule

    def bins() -> LabeledBins:
        assert sample.labels is not None
        return LabeledBins.of_arrays(sample.rows, sample.labels)

    found = by_labels(settings, bins, ordered_only=ordered_only)
    rows = FitRows(sample.rows)
    if settings.event.needs_labels:
        # Only the cells are refined. Of everyone, a fit needs counts, which bins of the labels already have.
        everyone = BinnedRows(found["labeled"].scores) if "labeled" in found else sample.rows
        rows = FitRows(everyone, sample.rows_by_label())
    rule = fit_rows(
        rows,
        settings,
        sample.columns,
        stratified=sample.stratified,
        weighted=sample.weights is not None,
        **found,
    )
    sample.warn_saturated()
    return rule


def fit_rows(
    rows: FitRows,
    settings: Settings,
    columns: Columns,
    *,
    stratified: bool,
    weighted: bool,
    level: Level | None = None,
    labeled: LabeledScores | None = None,
    errors: Errors | None = None,
) -> Rule:
    """Fit a rule to checked and encoded rows of positive weight, wherever they are.

    `level` defaults to that of the settings; `labeled` provides the outcomes if labels choose the rates; `errors`
    bounds the distance of each group's rate of an event from that of the rows, if they were binned.
    """

    def fit(rows: FitRows, settings: Settings, *, quiet: bool) -> Rule:
        return _fit(
            rows,
            settings,
            columns,
            stratified=stratified,
            weighted=weighted,
            level=level,
            labeled=labeled,
            errors=errors,
            quiet=quiet,
        )

    if settings.confidence is None:
        return fit(rows, settings, quiet=False)
    return kept_in_population(fit, rows, settings)


def _fit(
    rows: FitRows,
    settings: Settings,
    columns: Columns,
    *,
    stratified: bool,
    weighted: bool,
    level: Level | None,
    labeled: LabeledScores | None,
    errors: Errors | None,
    quiet: bool,
) -> Rule:
    """Fit a rule on the fit rows alone; `quiet` suppresses warnings."""
    problem = settings.problem if level is None else replace(settings.problem, level=level)
    everyone = rows.everyone.summarize()
    if settings.borrows and len(everyone.labels) == 1:
        raise InputError("{small_groups:borrow} requires at least two groups, got one", remedy="remove it")
    fingerprint = everyone.fingerprint(*problem.ends)
    criterion, strata = CRITERIA[settings.criterion], None
    summary = everyone if rows.by_label is None else rows.by_label.summarize()
    cells = Cells.of(everyone.labels, summary.labels, criterion.event)
    if stratified:
        strata = stratum_index(cells.groups)
        criterion = WithinStrata(criterion, strata)
        if not quiet:
            _warn_of_lone_groups(cells.groups, criterion.alone)
    solve = Solver(criterion, problem, cells, strata)
    if labeled is not None:
        solve = solve.by_labels(labeled, labeled.checked_costs(str(settings.target_rate), settings.costs))
    trace, pool, borrowed = None, settings.unseen_group == "pooled", None
    if settings.sgd is None:
        summary, solution, pooled = solve.refining(rows.separated, summary, pool=pool)
    else:
        summary, solution, trace = _descend(rows.everyone, summary, problem, settings)
        # The exact solver's summary is fine only around its own ramps; the record describes the final ones.
        pooled = solve.refining(rows.everyone, summary, pool=True)[2] if pool else None
    own_rates = cells.of_event(summary).distribution().rates_from(np.full(len(cells.groups), problem.cutoff))
    if settings.keeps_own_decisions and holds(problem.band, own_rates, strata):
        # Nothing to do: keep the classifier's own decisions.
        cuts = np.full(len(own_rates), problem.cutoff)
        solution = Solution(
            levels=problem.levels_of(own_rates, strata),
            feet=cuts,
            thresholds=cuts,
            width=0.0,
            ties=np.ones(len(cuts)),
            rates=own_rates,
            multiplier_feet=np.stack([cuts, cuts]),
        )
        summary = resolved(rows.everyone, summary, cuts[None], 0.0, cuts[None])
        pooled = Ramp(problem.cutoff, 0.0, 1.0) if pooled else None
    elif settings.borrows:
        summary, solution, pooled, borrowed = _borrow(rows.everyone, summary, solve, solution.level, pool=pool)
    ramps = solution.ramps(problem.offset)
    rates = {
        event.name: _rates(
            cells.of_event(summary, event),
            solution,
            problem.cutoff,
            solution.rates if event is cells.event else None,
            errors and errors(event, ramps),
        )
        for event in cells.known
    }
    if not quiet:
        _warn(cells, solution, settings, rates, stratified=stratified)
    return Rule(
        groups=cells.groups,
        ramps=ramps,
        ramp=settings.ramp,
        scale=settings.scale,
        higher_is_better=settings.higher_is_better,
        cutoff=settings.cutoff,  # type: ignore[arg-type]  # checked settings have one
        criterion=settings.criterion,
        stratified=stratified,
        max_gap=settings.max_gap,
        min_ratio=settings.min_ratio,
        target_rate=None if stratified or cells.event.parts else solution.level,
        unseen_group=settings.unseen_group,
        pooled=pooled,
        columns=columns,
        record=FitRecord(
            rates=rates,
            strata=None if strata is None else tuple(strata.tolist()),
            target=settings.target_rate,
            costs=settings.costs,
            overall_rate=settings.overall_rate,
            event=cells.event.name,
            ramp_width=settings.ramp_width,
            weighted=weighted,
            cross_fitted=False,
            solver="exact" if settings.sgd is None else "sgd",
            trace=trace,
            fingerprint=fingerprint,
            version=__version__,
            date=settings.date,
            borrowed=borrowed.shares if borrowed else None,
        ),
    )


def _warn_of_lone_groups(labels: Sequence[Label], alone: Any) -> None:
    """Warn about strata with only one group."""
    lonely = [label[0] for label, one in zip(labels, alone, strict=True) if one]  # type: ignore[index]
    if len(lonely) == len(labels) > 1:  # a single group overall has its own warning
        warn("Every stratum has only one group: nothing to equalize")
    elif lonely and len(labels) > 1:
        some = with_rows([(stratum, 1) for stratum in lonely], form="{}", spelled=repr)
        warn("Strata with only one group, where nothing is equalized: {some}", some=some)


def _borrow(
    rows: Rows, summary: Summary, solve: Solver, rate: float, *, pool: bool
) -> tuple[Summary, Solution, Ramp | None, Borrowed]:
    """Solve again with pseudo-rows; returns the effect of the ramps on the real rows, and what was borrowed.

    Pseudo-rows affect only the ramps: rates chosen by labels come from the real rows, and the pooled ramp is
    where the real rows reach the band.
    """
    seen, problem = looked_into(rows, summary), solve.problem
    borrowed = borrow(seen, rate, problem.ends[0])
    more = RowsAndPseudoRows(rows, seen, borrowed)
    _, solution, _ = solve.refining(more, more.summarize(), pool=False)
    feet, edges = solution.feet, np.full((1, len(seen.labels)), problem.cutoff)
    summary = resolved(rows, seen, feet[None], solution.width, edges)
    pooled = None
    if pool:
        at_level = replace(solve, problem=replace(problem, level=Fixed(solution.level)), rates=None)
        summary, _, pooled = at_level.refining(rows, summary, pool=True)
        summary = resolved(rows, summary, feet[None], solution.width, edges)
    return summary, replace(solution, rates=solution.rates_on(summary)), pooled, borrowed


def _descend(
    rows: Rows, summary: Summary, problem: Problem, settings: Settings
) -> tuple[Summary, Solution, tuple[tuple[float, ...], ...]]:
    """Ramps of the stochastic solver, their effect on the fit rows, and the thresholds after each epoch."""
    assert isinstance(rows, ArrayRows)  # lazy tables were rejected earlier
    assert settings.sgd is not None
    assert isinstance(problem.level, Fixed)
    n_groups, per_unit = len(summary.labels), settings.signed_per_unit
    signed = (rows.positions(0, len(rows.scores)) - problem.cutoff) * per_unit
    group = (np.cumsum(rows.codes.occurring()) - 1)[rows.codes.block(0, len(rows.codes))]
    found = descend(signed, group, rows.weights, n_groups, settings.signed(problem), settings.sgd)
    thresholds = problem.cutoff + found.thresholds / per_unit
    feet = thresholds - problem.offset * problem.ramp_width
    none, edges = np.empty((0, n_groups)), np.full((1, n_groups), problem.cutoff)
    summary = resolved(rows, summary, feet[None], problem.ramp_width, none)
    summary = resolved(rows, summary, edges, 0.0, edges)
    solution = Solution(
        levels=np.array([problem.level.rate]),
        feet=feet,
        thresholds=thresholds,
        width=problem.ramp_width,
        ties=np.full(n_groups, problem.offset),
        rates=summary.distribution().rates(feet, problem.ramp_width),
        multiplier_feet=np.stack([feet, feet]),
    )
    trace = settings.meaning.turned(problem.cutoff + found.trace / per_unit)
    return summary, solution, tuple(tuple(row) for row in trace.tolist())


def _rates(
    summary: Summary, solution: Solution, cutoff: float, rates: Floats | None, errors: Floats | None
) -> Rates:
    """The rates of an event for the record, computed from its points; `rates` under the rule may be known."""
    p = summary.points
    foot, width = solution.feet[p.group], np.broadcast_to(solution.width, len(solution.feet))[p.group]
    chance = solution.as_arrays.at(p.place, p.group)
    if rates is None:
        rates = solution.rates_on(summary)
    above = np.where(width > 0, p.lower >= foot + width, p.lower > foot)
    on_ramp = (p.upper > foot) & (p.lower < foot + width) & (p.place > foot)
    inside = np.where(width > 0, on_ramp | (width == np.inf), p.place == foot)
    shares = np.sqrt(p.weight_squares) / summary.weights[p.group]  # squared last: W² may underflow
    squares = summary.total(shares**2)
    spread = summary.total((shares * (chance - rates[p.group])) ** 2)
    effective = effective_rows(rates, squares, spread)
    effective = np.where(squares > 0, effective, summary.rows)  # if the squares themselves underflowed
    before = summary.distribution().rates_from(np.full(len(rates), cutoff))
    return Rates(
        rows=tuple(summary.rows.tolist()),
        effective_rows=tuple(effective.tolist()),
        rows_above=tuple(summary.total(p.rows * above).tolist()),
        rows_inside=tuple(summary.total(p.rows * inside).tolist()),
        before=tuple(before.tolist()),
        after=tuple(rates.tolist()),
        error=(0.0,) * len(rates) if errors is None else tuple(errors.tolist()),
    )


def doubt(n_groups: int, n_rows: int) -> str:
    """A question for the user if the number of groups suggests that the column is the wrong one."""
    many = n_groups > 100 and n_groups * 10 > n_rows
    return f" {n_groups:,} groups in {n_rows:,} rows: is this a group column?" if many else ""


def _warn(
    cells: Cells, solution: Solution, settings: Settings, rates: Mapping[str, Rates], *, stratified: bool
) -> None:
    """Warn about too few groups or rows, and about a level at which everyone gets the same decision."""
    if len(cells.groups) == 1:
        warn("There is only one group, {group}: nothing to equalize", group=show_label(cells.groups[0]))
    warn_alike(cells.groups, stratified=stratified)
    first = cells.event.simple[0]
    warn_blank(cells.groups, rates[first.name].rows, paired=stratified, what=first.row)
    for event in cells.event.simple:
        rows = rates[event.name].rows
        small = [(label, n) for label, n in zip(cells.groups, rows, strict=True) if n < SMALL_GROUP]
        if not small:
            continue
        warn(
            "Groups with fewer than {smallest} {what}: {named}. Their {rate}s on new rows can differ "
            "a lot from those on the fit rows.{doubt}",
            smallest=SMALL_GROUP,
            what=event.rows,
            rate=event.rate,
            named=with_rows(small, form="{} ({})"),
            doubt=doubt(len(rows), sum(rows)),
        )
    if settings.overall_rate is not None or not (settings.by_labels or settings.target_rate == "optimal"):
        return  # someone chose the level
    # At the highest true positive rate, or the lowest false positive rate, decisions still differ.
    alike = {None: (0.0, 1.0), 1: (0.0,), 0: (1.0,)}[cells.event.label]
    if settings.min_ratio not in (None, 1.0):
        alike = tuple(level for level in alike if level == 0)  # only the highest rate is 1
    extreme = int(np.isin(solution.levels, alike).sum())
    remedy = "" if settings.by_labels else "set {cutoff} to the score at which the classifier selects, or "
    if extreme and stratified:
        warn(
            "In {extreme:,} of {all:,} strata the best equal rate is 0 or 1, so everyone there gets the same "
            "decision."
            + (
                ""
                if settings.by_labels
                else " To avoid this, set {cutoff} to the score at which the classifier selects"
            ),
            extreme=extreme,
            all=len(solution.levels),
        )
    elif extreme:
        if cells.event.parts:
            wider = settings.max_gap is not None and settings.max_gap < 1
            ways = {"allow a larger {max_gap}": wider, "change {costs}": settings.target_rate == "accuracy"}
            remedy += " or ".join(way for way, helps in ways.items() if helps)
        else:
            remedy += "set {target_rate} to a number"
        warn(
            "The best equal rate is {rate:.0f}: {who} is selected. " + settings.turning + "; otherwise " + remedy,
            rate=solution.level,
            who="no one" if solution.level == 0 else "everyone",
        )
