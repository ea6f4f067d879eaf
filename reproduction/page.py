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

from reproduction import claims, classes_page, compared, figures, paper, reasons, without_page
from reproduction.names import NAMES, TITLES
from reproduction.protocol import CLASSIFIERS, DATA
from reproduction.results import PAIRS, Pair, Results, listed, signed, table, with_error, worded
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
        compared.other_objectives(results),
        compared.error_rates(results),
        without_page.section(results),
        classes_page.section(results),
        pictures(results, drawn),
        times(results),
        reasons.write(results),
        verdicts(results),
        SOURCES,
    ]
    path = folder / "reproduction.md"
    with replaced(path) as fresh:
        fresh.write_text("\n\n".join(filled(part) for part in parts if part) + "\n", encoding="utf-8")
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
    text = "Accuracy of RTO minus that of the method of Hardt et al. applied to probabilities"
    rows.append(["*not in the paper*", text, claims.spread(scores)])
    return f"""
<!-- Written by `make reproduce-page` from reproduction/results: do not edit. -->

# Reproduction: the paper's tabular experiments

Of the {worded(len(found))} claims and reported results from the paper that we tested,
{worded(sum(claim.holds for claim in found))} hold. There are eight pairs of a dataset and a classifier: the
UCI datasets Adult and Default of Credit Card Clients (DCCC), each with four classifiers. The original
classifiers have gaps of {100 * min(own):.1f} to {100 * max(own):.1f} points between the selection rates of women
and men. The paper's method, the Randomized Threshold Optimizer
(RTO), lowers them to between {100 * min(rto):.1f} and {100 * max(rto):.1f} points. Its accuracy is
{100 * min(labels):.1f} to {100 * max(labels):.1f} points higher than that of the method of Hardt et al. (2016)
applied to hard labels, that is, to the classifier's decisions. The paper makes the same comparison. If the method
of Hardt et al. is given probabilities instead, the two accuracies differ by at most
{claims.points(max(abs(value) for value in scores))}. [How it was measured](#how-it-was-measured) explains the
methods, the classifiers and the data.

{table(["", "claim", "measured"], rows)}

The paper is Alabdulmohsin and Lucic,
[A Near-Optimal Algorithm for Debiasing Trained Machine Learning Models](https://arxiv.org/abs/2106.12887)
(NeurIPS 2021). This page covers its Tables 1 and 2 and Figures 1 and 2 (left), on Adult and DCCC. The vision
experiments have [their own page](reproduction-vision.md).
"""


def verdicts(results: Results) -> str:
    """Return our own criteria, and whether they hold."""
    found = (
        claims.criteria(results, TITLES, NAMES) + without_page.criteria(results) + classes_page.criteria(results)
    )
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
    intro = "We also set our own criteria for the reproduction:"
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
*Original*, a gap above {claims.LARGEST_GAP} is in **bold** and counts as a failure of the method.

{by_pair(results, PRINTED_BIAS, _bias(results))}

The paper reports no gaps for the following methods:

{by_pair(results, ADDED, _bias(results))}

The labels themselves also have a gap, which the paper calls the bias of the data: {"; ".join(data_bias)}.
"""


def table_2(results: Results) -> str:
    """Return the accuracies."""
    return f"""
## Table 2: test accuracy in percent

In each cell, the second line gives the paper's value, followed by the difference (ours − paper) in parentheses.

{by_pair(results, PRINTED_ACCURACY, _accuracy(results))}

The paper does not report the accuracy of the following methods. A method that leaves a larger gap (Table 1) has
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
gaps of at most {100 * claims.LARGEST_GAP:g} points come first, followed by RTO with other targets and the
reduction.

{by_pair(results, shown, cell)}
"""


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
            "decisions with the classifier's own and is a straight line in expectation. The curve for "
            "probabilities uses Fairlearn's newer option `tol`. The paper reports no numbers, but its curve "
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

The next table gives the time to train each classifier once and the time that the reduction takes with it. Both
are means over seeds.

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
  its categorical columns keep UCI's numeric codes. Numeric columns, including these codes, are
  standardized. Sex is a feature and also defines the groups. Downloaded files are checked against
  SHA-256 hashes.
- **Splits.** Half of the rows are used to train the classifier. The other half is split into three equal parts:
  fit rows, validation rows and test rows. In DCCC, only the half that trains the classifier is biased, as in
  the paper: with sex s (women are 1, men are 0) and label y (0 or 1), rows with s = y are kept, and each of the
  others is dropped with probability ½.
- **Classifiers.** RF is a random forest ({settings.trees} trees, depth {settings.depth}). k-NN is a
  nearest-neighbor classifier with {settings.neighbors} neighbors. MLP is a neural network with one hidden layer
  of {settings.hidden} units; its training stops early, based on a tenth of its training rows. LR is logistic
  regression, whose inverse regularization strength C is a power of ten from 1e{low} to 1e{high}, chosen by
  {settings.folds}-fold cross-validation. The original classifiers select rows with a score above ½.
- **RTO, as published.** The *ramp*, the zone in which decisions are random, starts at the threshold.
  The ramp width γ (0.01, 0.02, 0.05, 0.1 or 0.2, on the signed scale from −1 to +1) and the target rate ρ
  (E[y], E[y] ± 0.05 or E[y] ± 0.1, where E[y] is the share of positive labels) are chosen for the
  highest accuracy on validation rows. The thresholds are computed exactly, not by SGD.
- **Variants of RTO.** *RTO by SGD* uses the paper's stochastic gradient descent with the same γ and ρ: 25 epochs
  with one row per step, and a learning rate of 0.1 √(K/T) for K groups and T steps. Its result is the last
  iterate. *Optimal rate* and *label-aware* are fairramp's own targets (`optimal` and `accuracy`), with a ramp
  width of 0.01 on the scale from 0 to 1.
- **Hardt et al.** We apply Fairlearn's `ThresholdOptimizer`, with demographic parity as its constraint and
  accuracy as its objective, both to hard labels (for the paper's column) and to probabilities.
- **Other methods.** *Shift inference* gives each group its own cutoff, computed from the share of positive
  labels in the classifier's training rows. *ROC*, the reject option classifier, favors the group with the lower
  selection rate, but only within an interval of width θ around the cutoff; θ is whichever of 0.00,
  0.01, …, 1.00 gives the smallest gap on validation rows. *Reduction* is Fairlearn's `ExponentiatedGradient`
  with at most 50 iterations, on the classifier's training rows; k-NN, which does not support sample weights,
  uses weighted resampling, and logistic regression keeps its C. The library *error-parity* runs with tolerance 0,
  that is, with no gap allowed. The library *holisticai* contains a copy of the paper's published code, which
  runs with the same γ and ρ as *RTO, as published*.
- **Versions.** Python {platform.python_version()}, {packages}.
"""


SOURCES = """
**Data sources.** Adult: B. Becker and R. Kohavi (1996), doi 10.24432/C5XW20. Default of Credit Card Clients:
I-C. Yeh (2009), doi 10.24432/C55S3H. Both are from the UCI Machine Learning Repository and licensed under CC BY
4.0.
"""
