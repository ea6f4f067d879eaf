"""docs/reproduction.md, written from the stored results: every number on it is computed.

Sentences that depend on how a number came out are chosen by that number. To change the page, change this module
or the results, and run `make reproduce-page`.
"""

import math
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from reproduction import claims, figures, paper, reasons
from reproduction.names import NAMES, TITLES
from reproduction.protocol import CLASSIFIERS, DATA
from reproduction.results import PAIRS, Pair, Results, signed, with_error
from reproduction.store import Store, replaced

PRINTED_BIAS = ("original", "rto", "hardt_labels", "shift", "roc", "reduction")
PRINTED_ACCURACY = ("original", "rto", "hardt_labels", "reduction")
ADDED = ("rto_sgd", "rto_optimal", "rto_accuracy", "hardt_scores", "error_parity", "holisticai")

Cell = Callable[[Pair, str], str]


def write(store: Store, folder: Path) -> Path:
    """Write the page and its figures into `folder`."""
    results = Results(store)
    if not results.seeds("original"):
        raise SystemExit("no results yet: run `make reproduce` first")
    drawn = figures.write(results, folder / "reproduction")
    parts = [
        head(results, store),
        verdicts(results),
        table_1(results),
        table_2(results),
        differences(results),
        pictures(results, drawn),
        times(results),
        reasons.write(results),
        protocol(results, store),
    ]
    path = folder / "reproduction.md"
    with replaced(path) as fresh:
        fresh.write_text("\n\n".join(part.strip() for part in parts) + "\n", encoding="utf-8")
    return path


# Numbers -------------------------------------------------------------------------------------------------


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first two to the right."""
    marks = ["---", "---"] + ["--:"] * (len(header) - 2)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, marks, *rows])


def by_pair(results: Results, methods: Sequence[str], cell: Cell) -> str:
    """Return a table with one row for each dataset and classifier."""
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
        text = with_error(mean, 2, 100)
        printed = paper.ACCURACY[pair[0]].get(method)
        if printed is None:
            return text
        value, error = printed[CLASSIFIERS.index(pair[1])]
        return f"{text}<br>{value:.1f} ± {error:.1f} ({signed(100 * mean.value - value, 1)})"

    return cell


# Sections ------------------------------------------------------------------------------------------------


def head(results: Results, store: Store) -> str:
    """Return the title and what the page is."""
    slow = results.seeds("reduction")
    seeds = f"{results.seeds('original')} seeds" + (f" ({slow} for the slow reductions)" if slow else "")
    return f"""
<!-- Written by `make reproduce-page` from reproduction/results: do not edit. -->

# The paper's tabular experiments, measured again

Tables 1 and 2 and Figures 1 and 2 (left) of Alabdulmohsin and Lucic,
[A Near-Optimal Algorithm for Debiasing Trained Machine Learning Models](https://arxiv.org/abs/2106.12887)
(NeurIPS 2021), on Adult and DCCC, with {seeds}. Every measured number on this page is
computed by `make reproduce` and written by a program; none is typed.

*Gap* (the paper's *bias*) is the difference between the two sexes' selection rates on test rows; gaps and
accuracies come from probabilities, not from draws. `±` is one standard error over seeds. Where the paper prints a
value, it stands below ours, with the difference (ours less the paper's) in brackets.
"""


def verdicts(results: Results) -> str:
    """Return the criteria, and whether they hold."""
    found = claims.criteria(results, TITLES, NAMES)
    rows = [["holds" if claim.holds else "**does not hold**", claim.text, claim.numbers] for claim in found]
    fair = claims.fair_peers(results)
    others = [peer for peer in claims.PEERS if peer not in fair and claims.worst_gap(results, peer) is not None]
    names = ", ".join(f"{TITLES[peer]} ({claims.worst_gap(results, peer):.3f})" for peer in others)
    note = (
        f"Peers whose mean gap is above {claims.LARGEST_GAP} on some pair are not compared by accuracy: {names}."
        if others
        else f"The mean gap of every peer is at most {claims.LARGEST_GAP} on all pairs."
    )
    head = table(["", "what", "measured"], rows)
    return f"## What was to be shown\n\n{head}\n\n{note} {_roc_on_neighbors(results)}"


def _roc_on_neighbors(results: Results) -> str:
    gaps = {data: results.mean((data, "knn"), "roc", "gap") for data in DATA}
    texts = []
    for data, mean in gaps.items():
        if mean is not None:
            verb = "fails" if mean.value > claims.LARGEST_GAP else "does not fail"
            texts.append(f"on {NAMES[data]} it {verb} ({with_error(mean, 3)})")
    return f"ROC on k-NN, whose scores take only eleven values: {' and '.join(texts)}." if texts else ""


def table_1(results: Results) -> str:
    """Return the gaps."""
    data_bias = []
    for data in DATA:
        train = results.mean((data, "lr"), "original", "train_bias")
        test = results.mean((data, "lr"), "original", "test_bias")
        if train and test:
            data_bias.append(
                f"{NAMES[data]} {train.value:.3f} in the rows that train the classifier (paper "
                f"{paper.DATA_BIAS[data]:.2f}, {signed(train.value - paper.DATA_BIAS[data], 3)}) and "
                f"{test.value:.3f} in the test rows"
            )
    return f"""
## Table 1: gap on test rows

The data's own bias, the difference between the sexes in the share of positive labels: {"; ".join(data_bias)}.
Bold: above {claims.LARGEST_GAP}, the method fails.

{by_pair(results, PRINTED_BIAS, _bias(results))}

Columns that the paper lacks:

{by_pair(results, ADDED, _bias(results))}
"""


def table_2(results: Results) -> str:
    """Return the accuracies."""
    return f"""
## Table 2: test accuracy, %

{by_pair(results, PRINTED_ACCURACY, _accuracy(results))}

Columns that the paper lacks. A gap above {claims.LARGEST_GAP} buys accuracy: read them beside Table 1.

{by_pair(results, (*ADDED, "shift", "roc"), _accuracy(results))}
"""


def differences(results: Results) -> str:
    """Return label-aware RTO less each peer, paired by seed."""

    def cell(pair: Pair, method: str) -> str:
        mean = results.paired(pair, "rto_accuracy", method, "accuracy")
        if mean is None:
            return "–"
        error = "" if math.isnan(mean.error) else f" ± {100 * mean.error:.2f}"
        return f"{signed(100 * mean.value, 2)}{error}"

    fair = claims.fair_peers(results)
    shown = [*fair, "rto", "rto_optimal", "reduction"]
    return f"""
## Label-aware RTO less the others: accuracy in points, paired by seed

The post-processing peers with small gaps, then RTO's other targets and the reduction.

{by_pair(results, shown, cell)}
"""


def pictures(results: Results, drawn: list[str]) -> str:
    """Return the figures with their captions."""
    parts = ["## Figures"]
    rule = results.one(("adult", "rf"), "rto")
    if "decision-rules.svg" in drawn and rule:
        parts.append(
            "![Decision rules](reproduction/decision-rules.svg)\n\n**Figure 1(a), decision rules.** Random "
            f"forests on Adult, seed 0; the validation rows chose γ = {2 * rule['ramp_width']:g} and ρ = "
            f"{rule['target_rate']:.3f}. The paper draws a sketch without numbers."
        )
    run = results.one(("adult", "rf"), "convergence")
    if "convergence.svg" in drawn and run:
        parts.append(_convergence_caption(results, run))
    if "trade-off.svg" in drawn:
        parts.append(
            "![Trade-off](reproduction/trade-off.svg)\n\n**Figure 2, left, accuracy against gap** on test rows, "
            "means over seeds. RTO is fitted for nine tolerances from 0 to the classifier's own gap, with ρ "
            "chosen on validation rows each time. Hardt et al. know no tolerance: the curve mixes the fair "
            "decisions with the classifier's own, so it is a straight line in expectation. The curve for "
            "probabilities uses Fairlearn's newer option `tol`. The paper prints curves without numbers; that "
            f"the blue curve lies above the amber one is what can be compared: {_curves_above(results)}."
        )
    return "\n\n".join(parts)


def _curves_above(results: Results) -> str:
    """Say on how many pairs RTO's curve starts above Hardt's."""
    above = 0
    for pair in PAIRS:
        runs = list(results.each(pair, "tradeoff").values())
        rto, hardt = (np.mean([run["curves"][name][0][1] for run in runs]) for name in ("rto", "hardt_labels"))
        above += bool(rto > hardt)
    return f"at tolerance 0 it does on {above} of {len(PAIRS)} pairs"


def _convergence_caption(results: Results, run: dict) -> str:
    last = paper.CONVERGENCE[-1][1]
    off = ", ".join(f"{NAMES[kind]} {value:.4f}" for kind, value in claims.distances(results).items())
    ends = "; ".join(
        f"{sex} {signed(run['trace'][sex][-1], 3)} after {len(run['trace'][sex])} epochs, exactly "
        f"{signed(value, 3)}"
        for sex, value in run["exact"].items()
    )
    others = "; ".join(
        f"{sex} {', '.join(signed(value, 2) for value in values.values())}"
        for sex, values in run["exact_by_rate"].items()
    )
    return (
        "![Convergence](reproduction/convergence.svg)\n\n**Figure 1(b), convergence of projected SGD.** Random "
        f"forests on Adult, seed 0, γ = 0.1, ρ = E[y] = {run['target_rate']:.3f}; dashed lines are the exact "
        f"thresholds. {ends}. The last iterate ends this far from the exact threshold, mean over seeds of the "
        f"group that is farther off, in units of scores (half the signed ones): {off}; k-NN has eleven scores, "
        f"between which a threshold is loose. The paper's curve settles at {signed(last, 2)}, and its ρ, γ and "
        "split are not printed. For ρ = E[y] − 0.1, − 0.05, + 0, + 0.05, + 0.1 the exact thresholds here are: "
        f"{others}. We think that the paper's curve is one of a group whose rate had to fall, at a smaller ρ "
        "than E[y]; its shape, near the limit after a few epochs, is what reproduces."
    )


def times(results: Results) -> str:
    """Return the seconds to fit."""
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
        kind_rows.append([NAMES[kind], "", *cells])
    return f"""
## Time to fit

Median over classifiers and seeds, one thread, two runs side by side on a two-core machine: compare
ratios. The paper's grid of 25 settings with the exact solver takes {_seconds(float(np.median(tuning)))}.

{table(["method", "fitted on", "Adult", "DCCC"], rows)}

Training the classifier once, and its reduction (mean over seeds):

{table(["classifier", "", "Adult, once", "Adult, reduction", "DCCC, once", "DCCC, reduction"], kind_rows)}
"""


def _fitted_on(method: str) -> str:
    if method == "reduction":
        return "the classifier's training rows"
    return "fit and validation rows" if method == "roc" else "fit rows"


def _seconds(value: float) -> str:
    if value < 1:
        return f"{1000 * value:.1f} ms" if value < 0.1 else f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def protocol(results: Results, store: Store) -> str:
    """Return how everything was done."""
    settings = store.settings
    low, high = settings.exponents
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "fairlearn", "error-parity")
    )
    return f"""
## How it was done

- **Data.** UCI Adult (48,842 rows, all 14 attributes, missing values a category of their own, categories
  one-hot) and UCI Default of Credit Card Clients (30,000 rows, all 23 attributes as UCI's numbers); numbers
  scaled. Sex is a feature, and the groups. Both files are checked by SHA-256.
- **Splits.** Half trains the classifier; the other half in three: fit of the rule, validation, test. In DCCC
  the classifier's half, and only that, is biased: a row with s = y stays, another one is dropped with
  probability ½.
- **Classifiers.** Random forests ({settings.trees} trees, depth {settings.depth}); k-NN
  ({settings.neighbors}); a neural network with one hidden layer of {settings.hidden}, stopped early on a tenth
  of its rows; logistic regression, C from 1e{low} to 1e{high} by {settings.folds}-fold cross-validation. A
  score above ½ is a yes.
- **RTO, as published**: the ramp starts at the threshold; γ in 0.01, 0.02, 0.05, 0.1, 0.2 and ρ in E[y] ± 0,
  0.05, 0.1 by accuracy on validation rows; solved exactly. *By SGD*: the same γ and ρ, 25 epochs, one row a
  step, learning rate 0.1 √(K/T), last iterate. *Optimal rate* and *label-aware*: fairramp's own targets, ramp
  width 0.01.
- **Hardt et al.**: Fairlearn's `ThresholdOptimizer` for demographic parity and accuracy, on hard labels (the
  paper's column) and on probabilities. **Shift inference** with the shares of the classifier's training rows.
  **ROC**: θ in 0.01 … 1 with the smallest gap on validation rows. **Reduction**: Fairlearn's
  `ExponentiatedGradient`, at most 50 iterations, on the classifier's training rows; k-NN by weighted
  resampling, since it takes no sample weights; C of logistic regression as chosen before. **error-parity** at
  tolerance 0; **holisticai**'s copy of the published code with γ and ρ as for RTO.
- **Versions.** Python {platform.python_version()}, {packages}.

B. Becker and R. Kohavi (1996), Adult, doi 10.24432/C5XW20; I-C. Yeh (2009), Default of Credit Card Clients, doi
10.24432/C55S3H; UCI Machine Learning Repository, CC BY 4.0.
"""
