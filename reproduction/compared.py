"""The page's sections on comparisons with other libraries: other objectives, and equal error rates.

Every number is computed, and so is the choice of sentences that depend on one.
"""

import math
from collections.abc import Sequence

import numpy as np

from reproduction import claims, objectives
from reproduction import error_rates as rates
from reproduction.comparisons import GRID_SIZE, Comparison
from reproduction.names import NAMES
from reproduction.results import PAIRS, Results, listed, signed, table

_WIDTHS = (
    "**The gap depends on the ramp width.** All methods have a gap of 0 on the fit rows, so gaps on test rows "
    "are due to chance. They become smaller if more rows are decided at random, at the expense of the objective. "
    "The other libraries mix two thresholds per group and decide the rows between them at random; RTO decides "
    "the rows on its ramp at random. The table gives means over the pairs and all seeds for three ramp widths; "
    "0.01 is the default."
)


def other_objectives(results: Results) -> str:
    """Return unequal costs compared with error-parity, and balanced accuracy with Fairlearn."""
    each = {comparison: claims.cells(results, comparison) for comparison in objectives.COMPARISONS}
    if not all(each.values()):
        return ""
    seeds = min(cell.gain.seeds for found in each.values() for cell in found)
    five, reverse, balanced = (each[comparison] for comparison in objectives.COMPARISONS)
    costs = [-cell.gain.value for cell in five]
    gains = [cell.gain.value for cell in balanced]
    main, loss = [*five, *balanced], claims.OBJECTIVE_LOSS
    parts = [
        "## Other objectives: unequal costs and balanced accuracy",
        "The main comparisons use two objectives other than accuracy. For costs of 5 per false positive and 1 "
        "per false negative (5:1), RTO is compared with error-parity. For balanced accuracy, the mean of the "
        "true positive rate and the true negative rate, it is compared with Fairlearn. Label-aware RTO is at "
        f"most {loss} worse than the other library, in points or in cost per 100 rows, in "
        f"{sum(cell.close for cell in main)} of {len(main)} comparisons, and its mean gap is no larger in "
        f"{sum(cell.no_larger for cell in main)}. Its mean cost minus that of error-parity is "
        f"{signed(min(costs), 2)} to {signed(max(costs), 2)} per 100 rows, and its balanced accuracy minus that "
        f"of Fairlearn is {signed(min(gains), 2)} to {signed(max(gains), 2)} points. Our criterion has two "
        f"parts: RTO's mean is at most {loss} worse, and its mean gap is no larger. "
        f"{_verdicts('It', main)}{_hint(results)} {_verdicts('With the reverse costs (1:5), it', reverse)}",
        "Both methods get the same scores, groups and fit rows, and allow no gap on the fit rows. RTO is fitted "
        'with `target_rate="accuracy", costs=(5, 1)` or `target_rate="balanced_accuracy"`. The '
        "`RelaxedThresholdOptimizer` of error-parity has the same costs and tolerance 0. Fairlearn's "
        '`ThresholdOptimizer` gets probabilities, `objective="balanced_accuracy_score"` and '
        f"`grid_size={GRID_SIZE}`. Values are means over {seeds} seeds, and differences (RTO − other library) "
        "are paired by seed. Differences between gaps are rounded to a hundredth of a point; without rounding, "
        "RTO's mean gap is no larger in "
        f"{sum(cell.gap_change.value <= 0 for cell in main)} of {len(main)} comparisons. *Gap undecided* means "
        "that RTO's mean gap is larger, but by at most two standard errors.",
    ]
    for comparison, found in each.items():
        parts += [comparison.heading, _table(comparison, found)]
    parts += [_more_seeds(results), _costlier_than_nobody(results)]
    parts += [_WIDTHS, _widths(results, objectives.COMPARISONS)]
    return "\n\n".join([part for part in parts if part] + [_fairlearns_objective(results)])


def error_rates(results: Results) -> str:
    """Return equal true or false positive rates, and equalized odds, compared with both libraries."""
    each = {comparison: claims.error_rate_cells(results, comparison) for comparison in rates.COMPARISONS}
    if not all(each.values()):
        return ""
    cells = [cell for found in each.values() for cell in found]
    seeds = min(cell.gain.seeds for cell in cells)
    gains, loss = [cell.gain.value for cell in cells], claims.OBJECTIVE_LOSS
    left = max(run["fit_rate_gap"] for c in each for pair in PAIRS for run in results.each(pair, c.ours).values())
    by_rate = " ".join(
        _verdicts(
            f"For {title[0].lower()}{title[1:]}, the criterion",
            [c for c in cells if c.comparison.title == title],
        )
        for title in dict.fromkeys(comparison.title for comparison in each)
    )
    failing = [cell for cell in cells if cell.verdict == claims.VERDICTS[-1]]
    parts = [
        "## Equal error rates",
        "With equal true positive rates (equal opportunity), equal false positive rates (predictive equality) "
        f"or both (equalized odds), the mean accuracy of RTO is at most {loss} points below that of the other "
        f"library in {sum(cell.close for cell in cells)} of {len(cells)} comparisons, and its mean gap on test "
        f"rows is no larger in {sum(cell.no_larger for cell in cells)}. The differences in mean accuracy are "
        f"{signed(min(gains), 2)} to {signed(max(gains), 2)} points. Our criterion has two parts: RTO's mean "
        f"accuracy is at most {loss} points lower, and its mean gap between the equalized rates is no larger. "
        f"For equalized odds, which has two gaps, the larger one counts. {by_rate} {_first_seeds(results)}",
        "All methods get the same scores, groups, labels and fit rows, maximize accuracy and allow no gap on the "
        f"fit rows; {_left(left)}. RTO is fitted with "
        '`criterion="equal_opportunity"`, `"predictive_equality"` or `"equalized_odds"` and default settings. '
        "The other libraries call these constraints `true_positive_rate_parity`, `false_positive_rate_parity` "
        "and `equalized_odds`. Fairlearn's `ThresholdOptimizer` gets probabilities and "
        f"`grid_size={GRID_SIZE}`; error-parity's `RelaxedThresholdOptimizer` has tolerance 0. Values are means "
        f"over {seeds} seeds, and differences (RTO − other library) are paired by seed. The number after ± is "
        "one standard error. Differences between gaps are rounded to a hundredth of a point; without rounding, "
        f"RTO's mean gap is no larger in {sum(cell.gap_change.value <= 0 for cell in cells)} of {len(cells)} "
        "comparisons. *Gap undecided* means that RTO's mean gap is larger, but by at most two standard errors.",
    ]
    for comparison, found in each.items():
        parts += [comparison.heading, _table(comparison, found)]
    parts += [
        "**Equalized odds**: both gaps, in points:",
        _both_gaps(results),
    ]
    why = (
        "**Other ramp widths.** Gaps on test rows are due to differences between fit rows and test rows. The "
        "other libraries decide all rows between two thresholds per group at random; RTO decides at random only "
        "those on its ramp, whose default width is 0.01. With equalized odds, this is the smallest width: groups "
        "whose scores rank people better get wider ramps."
    )
    if failing:
        why += f" {_wider(results, failing)}"
    parts += [
        f"{why} The table gives means over the pairs and all seeds for three ramp widths.",
        _widths(results, rates.COMPARISONS),
    ]
    return "\n\n".join(parts)


def _first_seeds(results: Results) -> str:
    """Return the verdicts on equalized odds with the seeds that its criterion was set for."""
    seeds = claims.OBJECTIVE_SEEDS
    compared = [comparison for comparison in rates.COMPARISONS if comparison.event.parts]
    cells = [cell for comparison in compared for cell in claims.cells(results, comparison, seeds)]
    return _verdicts(
        f"The criterion for equalized odds was set for {seeds} seeds; with the first {seeds} seeds alone, it",
        cells,
    )


def _both_gaps(results: Results) -> str:
    """Return the mean gaps between true and between false positive rates under equalized odds."""
    compared = [comparison for comparison in rates.COMPARISONS if comparison.event.parts]
    names = {"RTO": compared[0].ours} | {comparison.peer: comparison.theirs for comparison in compared}
    columns = [
        (f"{name}, {part.short} gap", method, f"{part.short.lower()}_gap")
        for part in compared[0].event.parts
        for name, method in names.items()
    ]
    rows = []
    for pair in PAIRS:
        means = [results.mean(pair, method, field) for _, method, field in columns]
        rows.append(
            [NAMES[pair[0]], NAMES[pair[1]], *(f"{100 * mean.value:.2f}" if mean else "" for mean in means)]
        )
    return table(["data", "classifier", *(title for title, _, _ in columns)], rows)


def _left(gap: float) -> str:
    """Say how large RTO's gap on the fit rows is."""
    if gap < 1e-9:
        return "RTO's gap on these rows is 0 in every run, apart from rounding errors"
    return f"RTO's gap on these rows is at most {100 * gap:.2g} points in every run"


def _wider(results: Results, failing: Sequence[claims.Cell]) -> str:
    """Say what a wider ramp changes where the criterion fails."""
    changes = []
    for cell in failing:
        comparison, width = cell.comparison, "0.05"
        ours, theirs = results.each(cell.pair, comparison.ours), results.each(cell.pair, comparison.theirs)
        changes.append(
            np.mean(
                [
                    [100 * (run["other_widths"][width][name] - theirs[seed][name]) for name in comparison.fields]
                    for seed, run in ours.items()
                    if seed in theirs
                ],
                axis=0,
            )
        )
    gains, gaps = np.array(changes).T
    return (
        "Where the criterion fails, the difference in gap is "
        f"{_range([cell.gap_change.value for cell in failing])} points with a ramp width of 0.01, and "
        f"{_range(gaps)} points with a width of 0.05. With the wider ramp, the difference in accuracy is "
        f"{_range(gains)} points."
    )


def _range(values: Sequence[float]) -> str:
    """Return the smallest and the largest value."""
    first, last = signed(min(values), 2), signed(max(values), 2)
    return first if first == last else f"{first} to {last}"


def _hint(results: Results) -> str:
    """Announce failures that only more seeds show."""
    seeds = min(results.seeds(name) for name in objectives.METHODS)
    if seeds <= claims.OBJECTIVE_SEEDS:
        return ""
    checked = (objectives.COMPARISONS[0], objectives.BALANCED)
    found = [cell.verdict for comparison in checked for cell in claims.cells(results, comparison, seeds)]
    return (
        f" With {seeds} seeds, it fails in {found.count(claims.VERDICTS[-1]) or 'none'} of these {len(found)} "
        "comparisons."
    )


def _more_seeds(results: Results) -> str:
    """Return the verdicts with all seeds."""
    seeds = min(results.seeds(name) for name in objectives.METHODS)
    if seeds <= claims.OBJECTIVE_SEEDS:
        return ""
    five, reverse, balanced = (claims.cells(results, c, seeds) for c in objectives.COMPARISONS)
    return (
        f"**More seeds.** The criterion was set for {claims.OBJECTIVE_SEEDS} seeds. With {seeds} seeds, "
        "standard errors are smaller. "
        f"{_verdicts('For costs 5:1 and balanced accuracy, the criterion', [*five, *balanced])} "
        f"{_verdicts('For costs 1:5, it', reverse)}"
    )


def _costlier_than_nobody(results: Results) -> str:
    """Say where RTO's rule costs more on its own fit rows than a rule that selects nobody."""
    comparison = objectives.COMPARISONS[0]
    counts = {pair: results.each(pair, comparison.ours).values() for pair in PAIRS}
    worse = {
        pair: sum(run["fit_objective"] > run["fit_nobody"] + 1e-9 for run in runs)
        for pair, runs in counts.items()
    }
    if not any(worse.values()):
        return ""
    named = listed(
        f"{count} of {len(counts[pair])} seeds on {NAMES[pair[0]]} with {NAMES[pair[1]]}"
        for pair, count in worse.items()
        if count
    )
    return (
        f"**Where selecting nobody costs less.** For costs 5:1, RTO's rule costs more on its own fit rows than "
        f"a rule that selects nobody in {named}. RTO chooses its rates by calibrated scores, as if the rows "
        "between two thresholds were selected at random. The library error-parity does select them at random; "
        "RTO selects those with the highest scores. Where few rows are worth selecting and the highest scores "
        "are not the most reliable, this can cost more."
    )


def _verdicts(subject: str, cells: Sequence[claims.Cell]) -> str:
    """Say on how many comparisons the criterion holds, and name all on which it fails."""
    by_verdict = {verdict: [cell for cell in cells if cell.verdict == verdict] for verdict in claims.VERDICTS}
    holds, undecided, failing = by_verdict.values()
    texts = [f"{subject} holds in {len(holds)} of {len(cells)} comparisons"]
    if undecided:
        most = max(cell.gap_change.value for cell in undecided)
        texts.append(f"is undecided in {len(undecided)}, where RTO's gap is up to {most:.2f} points larger")
    named = [
        f"{NAMES[cell.pair[0]]} with {NAMES[cell.pair[1]]}, {cell.comparison.brief} "
        f"({', '.join(_failures(cell))})"
        for cell in failing
    ]
    if failing:
        texts.append(f"fails in {len(failing)}: {'; '.join(named)}")
    return f"{listed(texts) if not failing else ', '.join(texts[:-1]) + ', and ' + texts[-1]}."


def _failures(cell: claims.Cell) -> list[str]:
    """Say by how much RTO's mean is worse, or its gap larger."""
    found = [] if cell.close else [f"{-cell.gain.value:.2f} ± {cell.gain.error:.2f} worse"]
    return found if cell.no_larger else [*found, f"gap {_difference(cell.gap_change)} points"]


def _table(comparison: Comparison, cells: Sequence[claims.Cell]) -> str:
    rows = []
    for cell in cells:
        gain = claims.Mean(comparison.sign * cell.gain.value, cell.gain.error, cell.gain.seeds)
        rows.append(
            [
                NAMES[cell.pair[0]],
                NAMES[cell.pair[1]],
                f"{cell.ours.value:.2f}",
                f"{cell.theirs.value:.2f}",
                _difference(gain),
                f"{cell.our_gap.value:.2f}",
                f"{cell.their_gap.value:.2f}",
                _difference(cell.gap_change),
                f"**{cell.verdict}**" if cell.verdict == claims.VERDICTS[-1] else cell.verdict,
            ]
        )
    value, gap = comparison.columns
    header = ["data", "classifier"]
    for name in (value, gap):
        header += [f"RTO, {name}", f"{comparison.peer}, {name}", "difference"]
    return table([*header, "criterion"], rows)


def _widths(results: Results, comparisons: Sequence[Comparison]) -> str:
    """Return how the ramp width changes some comparisons, on average over the pairs."""
    rows = []
    for comparison in comparisons:
        by_pair: list[dict[str, list[float]]] = []
        for pair in PAIRS:
            ours, theirs = results.each(pair, comparison.ours), results.each(pair, comparison.theirs)
            runs = {seed: {"0.01": run, **run["other_widths"]} for seed, run in ours.items() if seed in theirs}
            changes = {
                width: [
                    [100 * (runs[seed][width][field] - theirs[seed][field]) for field in comparison.fields]
                    for seed in runs
                ]
                for width in ("0.0", "0.01", "0.05")
            }
            by_pair.append({width: np.mean(values, axis=0).tolist() for width, values in changes.items()})
        for width in by_pair[0]:
            value, change = np.mean([found[width] for found in by_pair], axis=0)
            no_larger = sum(round(found[width][1], 2) <= 0 for found in by_pair)
            cells = [
                f"{signed(value, 2)} {comparison.unit}",
                f"{signed(change, 2)} points",
                f"{no_larger} of {len(PAIRS)} pairs",
            ]
            rows.append([comparison.full, f"{float(width):g}", *cells])
    header = ["comparison", "ramp width", "difference in objective", "difference in gap", "no larger gap"]
    return table(header, rows)


def _fairlearns_objective(results: Results) -> str:
    """Compare balanced accuracy as Fairlearn defines it for several groups."""
    means = [
        results.paired(pair, objectives.BALANCED.ours, objectives.BALANCED.theirs, "within_groups")
        for pair in PAIRS
    ]
    values = [100 * mean.value for mean in means if mean]
    return (
        "**What Fairlearn maximizes.** Fairlearn maximizes the mean of the groups' own balanced accuracies, "
        "weighted by group size; RTO maximizes the balanced accuracy of all rows, which the table shows. "
        "Measured by Fairlearn's objective, the mean score of RTO minus that of Fairlearn, over all seeds, is "
        f"{signed(min(values), 2)} to {signed(max(values), 2)} points."
    )


def _difference(mean: claims.Mean) -> str:
    error = "" if math.isnan(mean.error) else f" ± {mean.error:.2f}"
    return f"{signed(mean.value, 2)}{error}"
