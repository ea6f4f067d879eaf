"""Write docs/reproduction.md from the stored results.

Every measured number is computed, and sentences that depend on a number are chosen by it. To change the page,
change this module or the results, and run `make reproduce-page`.
"""

import math
import platform
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from reproduction import claims, figures, objectives, paper, reasons
from reproduction.names import NAMES, TITLES
from reproduction.protocol import CLASSIFIERS, DATA
from reproduction.results import PAIRS, Pair, Results, listed, signed, with_error, worded
from reproduction.store import Store, replaced

PRINTED_BIAS = ("original", "rto", "hardt_labels", "shift", "roc", "reduction")
PRINTED_ACCURACY = ("original", "rto", "hardt_labels", "reduction")
ADDED = ("rto_sgd", "rto_optimal", "rto_accuracy", "hardt_scores", "error_parity", "holisticai")

Cell = Callable[[Pair, str], str]


def write(store: Store, folder: Path) -> Path:
    """Write the page and its figures into `folder`."""
    results = Results(store)
    if not results.seeds("original"):
        raise SystemExit("There are no stored results for these settings: run `make reproduce` first.")
    drawn = figures.write(results, folder / "reproduction")
    parts = [
        head(results),
        protocol(results, store),
        table_1(results),
        table_2(results),
        differences(results),
        other_objectives(results),
        pictures(results, drawn),
        times(results),
        reasons.write(results),
        verdicts(results),
        SOURCES,
    ]
    path = folder / "reproduction.md"
    with replaced(path) as fresh:
        fresh.write_text("\n\n".join(filled(part) for part in parts) + "\n", encoding="utf-8")
    return path


def filled(text: str) -> str:
    """Return a section whose paragraphs and list items are wrapped at 118 characters."""
    return "\n\n".join(_filled(part) for part in text.strip().split("\n\n"))


def _filled(part: str) -> str:
    part = part.strip()
    if part.startswith(("|", "#", "```", "<!--", "![", "make ")):
        return part
    items = [" ".join(item.split()) for item in part.removeprefix("- ").split("\n- ")]
    bullet = "- " if part.startswith("- ") else ""
    wrap = partial(textwrap.fill, width=118, break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrap(bullet + item, subsequent_indent=" " * len(bullet)) for item in items)


# Numbers -------------------------------------------------------------------------------------------------


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 2) -> str:
    """Return a Markdown table; all columns but the first `left` are right-aligned."""
    marks = ["---"] * left + ["--:"] * (len(header) - left)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, marks, *rows])


def by_pair(results: Results, methods: Sequence[str], cell: Cell) -> str:
    """Return a table with one row per dataset and classifier."""
    shown = [method for method in methods if any(results.each(pair, method) for pair in PAIRS)]
    rows = []
    for data, kind in PAIRS:
        rows.append([NAMES[data], NAMES[kind], *(cell((data, kind), method) for method in shown)])
    return table(["data", "classifier", *(TITLES[method] for method in shown)], rows)


def _bias(results: Results) -> Cell:
    def cell(pair: Pair, method: str) -> str:
        mean = results.mean(pair, method, "gap")
        if mean is None:
            return "–"
        text = with_error(mean, 3)
        if method != "original" and mean.value > claims.LARGEST_GAP:
            text = f"**{text}**"
        printed = paper.BIAS[pair[0]].get(method)
        if printed is None:
            return text
        value = printed[CLASSIFIERS.index(pair[1])]
        return f"{text}<br>{value:.2f} ({signed(mean.value - value, 3)})"

    return cell


def _accuracy(results: Results) -> Cell:
    def cell(pair: Pair, method: str) -> str:
        mean = results.mean(pair, method, "accuracy")
        if mean is None:
            return "–"
        text = with_error(mean, 1, 100)
        printed = paper.ACCURACY[pair[0]].get(method)
        if printed is None:
            return text
        value, error = printed[CLASSIFIERS.index(pair[1])]
        return f"{text}<br>{value:.1f} ± {error:.1f} ({signed(100 * mean.value - value, 1)})"

    return cell


# Sections ------------------------------------------------------------------------------------------------


def head(results: Results) -> str:
    """Return the title, the result, and the claims of the paper."""
    found = claims.of_the_paper(results)
    own, rto = claims.gaps(results, "original"), claims.gaps(results, "rto")
    labels = claims.differences(results, "rto", "hardt_labels")
    scores = claims.differences(results, "rto", "hardt_scores")
    rows = [["holds" if claim.holds else "**does not hold**", claim.text, claim.numbers] for claim in found]
    text = "Accuracy of RTO minus that of the method of Hardt et al. on probabilities"
    rows.append(["*not in the paper*", text, claims.spread(scores)])
    return f"""
<!-- Written by `make reproduce-page` from reproduction/results: do not edit. -->

# Reproduction: the paper's tabular experiments

Of the {worded(len(found))} claims and printed results of the paper that we tested,
{worded(sum(claim.holds for claim in found))} hold. There are eight pairs of dataset and classifier: the
UCI datasets Adult and Default of Credit Card Clients (DCCC), each with four classifiers. The original
classifiers' gaps between the selection rates of women and men are
{100 * min(own):.1f} to {100 * max(own):.1f} points. The paper's method, the Randomized Threshold Optimizer
(RTO), lowers them to between {100 * min(rto):.1f} and {100 * max(rto):.1f} points. Its accuracy is
{100 * min(labels):.1f} to {100 * max(labels):.1f} points higher than that of the method of Hardt et al. (2016)
on hard labels, that is, on the classifier's decisions. The paper makes the same comparison. If the method of
Hardt et al. is given probabilities instead, the two accuracies differ by at most
{claims.points(max(abs(value) for value in scores))}.

{table(["", "claim", "measured"], rows)}

The paper is Alabdulmohsin and Lucic,
[A Near-Optimal Algorithm for Debiasing Trained Machine Learning Models](https://arxiv.org/abs/2106.12887)
(NeurIPS 2021). This page covers its Tables 1 and 2 and Figures 1 and 2 (left), on Adult and DCCC. The vision
experiments have [their own page](reproduction-vision.md).
"""


def verdicts(results: Results) -> str:
    """Return our own criteria, and whether they hold."""
    found = claims.criteria(results, TITLES, NAMES)
    rows = [["holds" if claim.holds else "**does not hold**", claim.text, claim.numbers] for claim in found]
    fair = claims.fair_peers(results)
    others = [peer for peer in claims.PEERS if peer not in fair and claims.worst_gap(results, peer) is not None]
    names = listed(
        f"{TITLES[peer].replace('Shift', 'shift')} ({claims.points(claims.worst_gap(results, peer) or 0.0)})"
        for peer in others or fair
    )
    limit = f"{100 * claims.LARGEST_GAP:g} points"
    note = (
        "The criteria for accuracy leave out post-processing methods with a mean gap above "
        f"{limit} on any pair: {names}."
        if others
        else f"All other post-processing methods have a mean gap of at most {limit} on all pairs."
    )
    found_table = table(["", "criterion", "measured"], rows)
    intro = "We also set criteria of our own for the reproduction:"
    return f"## Our own criteria\n\n{intro}\n\n{found_table}\n\n{note} {_roc_on_neighbors(results)}"


def _roc_on_neighbors(results: Results) -> str:
    gaps = {data: results.mean((data, "knn"), "roc", "gap") for data in DATA}
    texts, verbs = [], []
    for data, mean in gaps.items():
        if mean is not None:
            verbs.append("fails" if mean.value > claims.LARGEST_GAP else "does not fail")
            texts.append(f"{verbs[-1]} on {NAMES[data]} ({with_error(mean, 1, 100)} points)")
    joined = (" and " if len(set(verbs)) == 1 else " but ").join(texts)
    return f"For k-NN, whose scores take only 11 values, ROC {joined}." if texts else ""


def table_1(results: Results) -> str:
    """Return the gaps."""
    data_bias = []
    for data in DATA:
        train = results.mean((data, "lr"), "original", "train_bias")
        test = results.mean((data, "lr"), "original", "test_bias")
        if train and test:
            data_bias.append(
                f"on {NAMES[data]}, it is {100 * train.value:.1f} points in the classifier's training rows "
                f"(paper: {100 * paper.DATA_BIAS[data]:.0f}) and {100 * test.value:.1f} points in the test rows"
            )
    return f"""
## Table 1: gap on test rows

As in the paper, gaps in these tables are fractions: 0.01 is one percentage point. In each cell, the second
line gives the paper's value, followed by the difference (ours − paper) in parentheses. Except in the column
*Original*, a gap above {claims.LARGEST_GAP} is in **bold** and means that the method fails.

{by_pair(results, PRINTED_BIAS, _bias(results))}

The paper prints no gaps for the following methods:

{by_pair(results, ADDED, _bias(results))}

The labels themselves also have a gap, which the paper calls the bias of the data: {"; ".join(data_bias)}.
"""


def table_2(results: Results) -> str:
    """Return the accuracies."""
    return f"""
## Table 2: test accuracy in percent

In each cell, the second line gives the paper's value, followed by the difference (ours − paper) in parentheses.

{by_pair(results, PRINTED_ACCURACY, _accuracy(results))}

The paper does not print the accuracy of the following methods. A method that leaves a larger gap (Table 1) has
an easier task.

{by_pair(results, (*ADDED, "shift", "roc"), _accuracy(results))}
"""


def differences(results: Results) -> str:
    """Return the differences in accuracy between label-aware RTO and each peer, paired by seed."""

    def cell(pair: Pair, method: str) -> str:
        mean = results.paired(pair, "rto_accuracy", method, "accuracy")
        if mean is None:
            return "–"
        error = "" if math.isnan(mean.error) else f" ± {100 * mean.error:.2f}"
        return f"{signed(100 * mean.value, 2)}{error}"

    fair = claims.fair_peers(results)
    shown = [*fair, "rto", "rto_optimal", "reduction"]
    return f"""
## Accuracy of label-aware RTO compared with other methods

The table gives the accuracy of label-aware RTO minus that of each other method, in percentage points, paired by
seed. The values have two decimals because many differences are below 0.1 points. Post-processing methods with
gaps of at most {100 * claims.LARGEST_GAP:g} points come first, followed by RTO with other targets and by the
reduction.

{by_pair(results, shown, cell)}
"""


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
        f"With objectives other than accuracy, label-aware RTO is at most {loss} worse than another library in "
        f"{sum(cell.close for cell in main)} of {len(main)} comparisons, and its mean gap is no larger in "
        f"{sum(cell.no_larger for cell in main)}. For costs of 5 per false positive and 1 per false negative, "
        f"its mean cost minus that of error-parity is {signed(min(costs), 2)} to {signed(max(costs), 2)} per 100 "
        "rows. For balanced accuracy, the mean of the true positive rate and the true negative rate, its score "
        f"minus that of Fairlearn is {signed(min(gains), 2)} to {signed(max(gains), 2)} points. Our criterion "
        f"has two parts: the mean is at most {loss} worse, in points or in cost per 100 rows, and the "
        f"mean gap is no larger. {_verdicts('It', main)} "
        f"{_verdicts('With the reverse costs, it', reverse)}{_hint(results)}",
        "Both methods get the same scores, groups and fit rows, and allow no gap on the fit rows. RTO is fitted "
        'with `target_rate="accuracy", costs=(5, 1)` or `target_rate="balanced_accuracy"`. Error-parity\'s '
        "`RelaxedThresholdOptimizer` has the same costs and tolerance 0. Fairlearn's `ThresholdOptimizer` gets "
        f'probabilities, `objective="balanced_accuracy_score"` and `grid_size={objectives.GRID_SIZE}`. Values '
        f"are means over {seeds} seeds, and differences (RTO − other library) are paired by seed. Gaps are "
        f"compared to a hundredth of a point; unrounded, {sum(cell.gap_change.value <= 0 for cell in main)} of "
        f"{len(main)} are no larger. *Gap undecided* means that RTO's mean gap is larger, but by at most "
        "two standard errors.",
    ]
    for comparison, found in each.items():
        parts += [_objective_intro(comparison), _objective_table(comparison, found)]
    parts += [_more_seeds(results), _costlier_than_nobody(results), _widths(results)]
    return "\n\n".join([part for part in parts if part] + [_fairlearns_objective(results)])


def _hint(results: Results) -> str:
    """Announce failures that only more seeds show."""
    seeds = min(results.seeds(name) for name in objectives.METHODS)
    if seeds <= claims.OBJECTIVE_SEEDS:
        return ""
    checked = (objectives.COMPARISONS[0], objectives.BALANCED)
    found = [cell.verdict for comparison in checked for cell in claims.cells(results, comparison, seeds)]
    return f" With {seeds} seeds, it fails in {found.count(claims.VERDICTS[-1])} of the {len(found)} comparisons."


def _more_seeds(results: Results) -> str:
    """Return the verdicts with all seeds."""
    seeds = min(results.seeds(name) for name in objectives.METHODS)
    if seeds <= claims.OBJECTIVE_SEEDS:
        return ""
    five, reverse, balanced = (claims.cells(results, c, seeds) for c in objectives.COMPARISONS)
    return (
        f"**More seeds.** The criterion was set for {claims.OBJECTIVE_SEEDS} seeds. With {seeds} seeds, "
        "standard errors are smaller. "
        f"{_verdicts('For costs 5:1 and balanced accuracy, it', [*five, *balanced])} "
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
        f"{NAMES[cell.pair[0]]} with {NAMES[cell.pair[1]]}, {_lower(cell.comparison.title)} "
        f"({', '.join(_failures(cell))})"
        for cell in failing
    ]
    if failing:
        texts.append(f"fails in {len(failing)}: {'; '.join(named)}")
    return f"{listed(texts) if not failing else ', '.join(texts[:-1]) + ', and ' + texts[-1]}."


def _lower(title: str) -> str:
    return title[0].lower() + title[1:]


def _failures(cell: claims.Cell) -> list[str]:
    """Say by how much RTO's mean is worse, or its gap larger."""
    found = [] if cell.close else [f"{-cell.gain.value:.2f} ± {cell.gain.error:.2f} worse"]
    return found if cell.no_larger else [*found, f"gap {_difference(cell.gap_change)} points"]


def _objective_intro(comparison: objectives.Comparison) -> str:
    if comparison.costs is None:
        return f"**{comparison.title}**, in percent (higher is better), and gap, in points:"
    return (
        f"**{comparison.title}**, false positive to false negative: mean cost per 100 rows (lower is better), "
        "and gap, in points:"
    )


def _objective_table(comparison: objectives.Comparison, cells: Sequence[claims.Cell]) -> str:
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
    peer = comparison.peer
    value = "cost" if comparison.costs else "score"
    header = ["data", "classifier", f"RTO, {value}", f"{peer}, {value}", "difference"]
    return table([*header, "RTO, gap", f"{peer}, gap", "difference", "criterion"], rows)


def _widths(results: Results) -> str:
    """Return how the ramp width changes the comparisons, on average over the pairs."""
    rows = []
    for comparison in objectives.COMPARISONS:
        by_pair: list[dict[str, list[float]]] = []
        for pair in PAIRS:
            ours, theirs = results.each(pair, comparison.ours), results.each(pair, comparison.theirs)
            runs = {seed: {"0.01": run, **run["other_widths"]} for seed, run in ours.items() if seed in theirs}
            changes = {
                width: [
                    [100 * (runs[seed][width][field] - theirs[seed][field]) for field in ("objective", "gap")]
                    for seed in runs
                ]
                for width in ("0.0", "0.01", "0.05")
            }
            by_pair.append({width: np.mean(values, axis=0).tolist() for width, values in changes.items()})
        for width in by_pair[0]:
            value, change = np.mean([found[width] for found in by_pair], axis=0)
            no_larger = sum(round(found[width][1], 2) <= 0 for found in by_pair)
            unit = "per 100 rows" if comparison.costs else "points"
            cells = [
                f"{signed(value, 2)} {unit}",
                f"{signed(change, 2)} points",
                f"{no_larger} of {len(PAIRS)} pairs",
            ]
            rows.append([comparison.title, f"{float(width):g}", *cells])
    header = ["comparison", "ramp width", "difference in objective", "difference in gap", "no larger gap"]
    return (
        "**The gap depends on the ramp width.** All methods have a gap of 0 on the fit rows, so gaps on test "
        "rows are due to chance. They become smaller if more rows are decided at random, at the expense of the "
        "objective. The other libraries mix two thresholds per group and decide the rows between them at random; "
        "RTO decides the rows in its ramp at random. The table gives means over the pairs and all seeds for "
        "three ramp widths; 0.01 is the default.\n\n" + table(header, rows)
    )


def _fairlearns_objective(results: Results) -> str:
    """Compare balanced accuracy as Fairlearn defines it for several groups."""
    means = [
        results.paired(pair, objectives.BALANCED.ours, objectives.BALANCED.theirs, "within_groups")
        for pair in PAIRS
    ]
    values = [100 * mean.value for mean in means if mean]
    return (
        "**What Fairlearn maximizes.** Fairlearn maximizes the mean of the groups' own balanced accuracies, "
        "weighted by their sizes; RTO maximizes the balanced accuracy of all rows, which the table gives. "
        "Measured by Fairlearn's objective, the mean score of RTO minus that of Fairlearn, over all seeds, is "
        f"{signed(min(values), 2)} to {signed(max(values), 2)} points."
    )


def _difference(mean: claims.Mean) -> str:
    error = "" if math.isnan(mean.error) else f" ± {mean.error:.2f}"
    return f"{signed(mean.value, 2)}{error}"


def pictures(results: Results, drawn: list[str]) -> str:
    """Return the figures with their captions."""
    parts = ["## Figures"]
    rule = results.one(("adult", "rf"), "rto")
    if "decision-rules.svg" in drawn and rule:
        parts.append(
            "![Decision rules](reproduction/decision-rules.svg)\n\n**Figure 1(a), decision rules.** The rules "
            f"are for a random forest on Adult (seed 0), with γ = {2 * rule['ramp_width']:g} and ρ = "
            f"{rule['target_rate']:.3f}, which were chosen on validation rows. The paper's figure is a sketch "
            "without numbers."
        )
    run = results.one(("adult", "rf"), "convergence")
    if "convergence.svg" in drawn and run:
        parts.append(_convergence_caption(results, run))
    if "trade-off.svg" in drawn:
        parts.append(
            "![Trade-off](reproduction/trade-off.svg)\n\n**Figure 2 (left), accuracy and gap.** The curves "
            "show how the accuracy on test rows depends on the gap, as means over seeds. RTO is fitted for "
            "nine tolerances from 0 to the classifier's own gap, and ρ is chosen on validation rows each time. "
            "In the paper, the method of Hardt et al. has no tolerance: its curve comes from mixing its "
            "decisions with the classifier's own, and is a straight line in expectation. The curve for "
            "probabilities uses Fairlearn's newer option `tol`. The paper prints no numbers, but its curve "
            f"for RTO (blue) is above its curve for the method of Hardt et al. (amber). Here, "
            f"{_curves_above(results)}."
        )
    return "\n\n".join(parts)


def _curves_above(results: Results) -> str:
    """Say on how many pairs RTO's curve starts above that of Hardt et al."""
    above = 0
    for pair in PAIRS:
        runs = list(results.each(pair, "tradeoff").values())
        rto, hardt = (np.mean([run["curves"][name][0][1] for run in runs]) for name in ("rto", "hardt_labels"))
        above += bool(rto > hardt)
    return f"the same is true at tolerance 0 on {above} of {len(PAIRS)} pairs"


def _convergence_caption(results: Results, run: dict) -> str:
    last = paper.CONVERGENCE[-1][1]
    off = listed(f"{value:.4f} for {NAMES[kind]}" for kind, value in claims.distances(results).items())
    people = {"Female": "women", "Male": "men"}
    epochs = len(next(iter(run["trace"].values())))
    ends = listed(
        f"{signed(run['trace'][sex][-1], 3)} for {people[sex]} (exact: {signed(value, 3)})"
        for sex, value in run["exact"].items()
    )
    others = ", and ".join(
        f"{listed(signed(value, 2) for value in values.values())} for {people[sex]}"
        for sex, values in run["exact_by_rate"].items()
    )
    return (
        "![Convergence](reproduction/convergence.svg)\n\n**Figure 1(b), convergence of projected SGD.** The "
        "curves are for a random forest on Adult (seed 0), with γ = 0.1 and ρ = E[y] = "
        f"{run['target_rate']:.3f}. Dashed lines are the exact thresholds. Thresholds are on the paper's signed "
        f"scale, from −1 to +1. After {epochs} epochs, those found by SGD are {ends}. On the scale from "
        "0 to 1, the mean distance of the last iterate from the exact threshold, for the group with the "
        f"larger distance, is {off}. Because k-NN has only 11 different scores, its threshold can "
        f"lie anywhere between two adjacent scores. The paper's curve settles at {signed(last, 2)}, but the "
        "paper does not give ρ, γ or the split. For ρ = E[y] − 0.1, E[y] − 0.05, E[y], E[y] + 0.05 and "
        f"E[y] + 0.1, our exact thresholds are {others}. The paper's curve may therefore belong "
        "to a group whose rate had to fall, with ρ below E[y]. We reproduce the shape of the curve: after a "
        "few epochs, it is close to its final value."
    )


def times(results: Results) -> str:
    """Return the times to fit."""
    shown = [method for method in TITLES if method not in ("original", "shift") and results.has(method)]
    rows = []
    for method in shown:
        cells = []
        for data in DATA:
            values = [
                result["seconds"]
                for kind in CLASSIFIERS
                for result in results.each((data, kind), method).values()
            ]
            cells.append(_seconds(float(np.median(values))) if values else "–")
        rows.append([TITLES[method], _fitted_on(method), *cells])
    tuning = [r["tuning_seconds"] for pair in PAIRS for r in results.each(pair, "rto").values()]
    kind_rows = []
    for kind in CLASSIFIERS:
        cells = []
        for data in DATA:
            train = results.mean((data, kind), "original", "train_seconds")
            slow = results.mean((data, kind), "reduction", "seconds")
            cells += [_seconds(train.value) if train else "–", _seconds(slow.value) if slow else "–"]
        kind_rows.append([NAMES[kind], *cells])
    return f"""
## Time to fit

{_speedup(results)} Tuning over the paper's grid of 25 settings takes
{_seconds(float(np.median(tuning)))} with the exact solver. Times are medians over classifiers and seeds. Each run
used one thread, with two runs in parallel on a two-core machine, so compare the ratios rather than the times.

{table(["method", "fitted on", "Adult", "DCCC"], rows)}

The next table gives the time to train each classifier once and the time that the reduction takes with this
classifier, as means over seeds.

{table(["classifier", "Adult, once", "Adult, reduction", "DCCC, once", "DCCC, reduction"], kind_rows, left=1)}
"""


def _speedup(results: Results) -> str:
    """Compare the exact solver with SGD."""
    ratios = []
    for data in DATA:
        exact, sgd = (
            float(np.median([r["seconds"] for k in CLASSIFIERS for r in results.each((data, k), name).values()]))
            for name in ("rto", "rto_sgd")
        )
        ratios.append(f"{sgd / exact:.0f} times as long on {NAMES[data]}")
    return f"Compared with the exact solver, 25 epochs of the paper's SGD take {' and '.join(ratios)}."


def _fitted_on(method: str) -> str:
    if method == "reduction":
        return "the classifier's training rows"
    return "fit and validation rows" if method == "roc" else "fit rows"


def _seconds(value: float) -> str:
    """Return a time with three significant digits."""
    shown, unit = (value, "s") if value >= 0.9995 else (1000 * value, "ms")
    return f"{shown:#.3g}".rstrip(".") + f" {unit}"


def protocol(results: Results, store: Store) -> str:
    """Return how everything was done."""
    settings = store.settings
    low, high = settings.exponents
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("NumPy", "scikit-learn", "Fairlearn", "error-parity")
    )
    slow = results.seeds("reduction")
    seeds = f"{results.seeds('original')} seeds" + (f" ({slow} for the reduction, which is slow)" if slow else "")
    return f"""
## How it was measured

- **Gap and accuracy.** The *gap* (the paper's *bias*) is the absolute difference between the selection rates of
  women and men on test rows. Gaps and accuracies are computed from selection probabilities, not from random
  draws. Unless stated otherwise, values are means over {seeds}, and the number after ± is one standard error.
  `make reproduce` computes every measured value.
- **Data.** Adult has 48,842 rows and 14 attributes. Categorical columns are one-hot encoded, and a missing
  value is a category of its own. DCCC has 30,000 rows and 23 attributes;
  its categorical columns are used as UCI's numeric codes. Numeric columns, including these codes, are
  standardized. Sex is a feature, and it defines the groups. Downloaded files are verified by their SHA-256
  hashes.
- **Splits.** Half of the rows train the classifier. The other half is split into three equal parts: fit rows,
  validation rows and test rows. In DCCC, only the half that trains the classifier is biased, as in the paper:
  with sex s (women are 1, men are 0) and label y (0 or 1), rows with s = y are kept, and each of the others is
  dropped with probability ½.
- **Classifiers.** RF is a random forest ({settings.trees} trees, depth {settings.depth}). k-NN is a
  nearest-neighbor classifier with {settings.neighbors} neighbors. MLP is a neural network with one hidden layer
  of {settings.hidden} units; its training stops early, based on a tenth of its training rows. LR is logistic
  regression, whose inverse regularization strength C is a power of ten from 1e{low} to 1e{high}, chosen by
  {settings.folds}-fold cross-validation. The original classifiers select rows with a score above ½.
- **RTO, as published.** The ramp starts at the threshold. The ramp width γ (0.01, 0.02, 0.05, 0.1 or 0.2, on the
  signed scale from −1 to +1) and the target rate ρ (E[y], E[y] ± 0.05 or E[y] ± 0.1, where E[y] is the share of
  positive labels) are chosen by accuracy on validation rows. The thresholds are computed exactly, not by SGD.
- **Variants of RTO.** *RTO by SGD* uses the paper's stochastic gradient descent with the same γ and ρ: 25 epochs
  with one row per step, and a learning rate of 0.1 √(K/T) for K groups and T steps. Its result is the last
  iterate. *Optimal rate* and *label-aware* are fairramp's own targets (`optimal` and `accuracy`), with a ramp
  width of 0.01 on the scale from 0 to 1.
- **Hardt et al.** We use Fairlearn's `ThresholdOptimizer`, with demographic parity as its constraint and accuracy
  as its objective, both on hard labels (for the paper's column) and on probabilities.
- **Other methods.** *Shift inference* gives each group its own cutoff, computed from the share of positive
  labels in the classifier's training rows. *ROC*, the reject option classifier, favors the group with the lower
  selection rate, but only within an interval of width θ around the cutoff; θ is whichever of 0.00,
  0.01, …, 1.00 gives the smallest gap on validation rows. *Reduction* is Fairlearn's `ExponentiatedGradient`
  with at most 50 iterations, on the classifier's training rows; k-NN, which does not support sample weights,
  uses weighted resampling, and logistic regression keeps its C. The library *error-parity* runs with tolerance 0.
  The library *holisticai* contains a copy of the paper's published code, which runs with the same γ and ρ as RTO.
- **Versions.** Python {platform.python_version()}, {packages}.
"""


SOURCES = """
**Data sources.** Adult: B. Becker and R. Kohavi (1996), doi 10.24432/C5XW20. Default of Credit Card Clients:
I-C. Yeh (2009), doi 10.24432/C55S3H. Both are from the UCI Machine Learning Repository and licensed under CC BY
4.0.
"""
