"""The page's section on differences from the paper and their likely causes.

Each paragraph computes its own numbers.
"""

import numpy as np

from reproduction import claims, paper
from reproduction.names import NAMES, TITLES
from reproduction.protocol import CLASSIFIERS, DATA
from reproduction.results import PAIRS, Results, listed, signed, with_error, worded


def write(results: Results) -> str:
    """Return the differences from the paper, with their likely causes."""
    parts = ["## Differences from the paper and likely causes", _adult_bias(results), _hard_labels(results)]
    parts += [_neighbors(results), _shift(results), _dccc(results), _reduction(results)]
    parts += [_grid(results), *_losses(results), _choices()]
    for peer in ("error_parity", "holisticai"):
        failures = results.failures(peer)
        if failures:
            parts.append(f"**{TITLES[peer]} failed in some runs.** {'; '.join(failures)}.")
    return "\n\n".join(part for part in parts if part)


def _adult_bias(results: Results) -> str:
    means = [results.mean(("adult", kind), "original", "gap") for kind in CLASSIFIERS]
    ours = [mean.value for mean in means if mean]
    printed = paper.BIAS["adult"]["original"]
    ratios = listed(f"{p / o:.1f}" for p, o in zip(printed, ours, strict=True))
    count = sum(abs(p - 2 * o) <= 0.05 for p, o in zip(printed, ours, strict=True))
    close = f"{worded(count)} reported value{' is' if count == 1 else 's are'}"
    return (
        "**The original gaps on Adult could not be reproduced.** For "
        f"{listed(NAMES[kind] for kind in CLASSIFIERS)}, the paper reports gaps of "
        f"{listed(f'{100 * p:.0f}' for p in printed)} points; we measure "
        f"{listed(f'{100 * o:.1f}' for o in ours)} points, close to the gap in the labels. The ratios "
        f"(paper ÷ ours) are {ratios}. Coding decisions as ±1 instead of 0 and 1 would double a gap, but only "
        f"{close} within 5 points of twice ours, the paper does not mention this coding, and its values for "
        "DCCC are not doubled. We have no explanation. The accuracies of the same classifiers agree with the "
        "paper's, except for k-NN."
    )


def _hard_labels(results: Results) -> str:
    labels = {data: _average(results, "hardt_labels", "accuracy", data) for data in DATA}
    scores = {data: _average(results, "hardt_scores", "accuracy", data) for data in DATA}
    ours = {data: _average(results, "rto", "accuracy", data) for data in DATA}
    printed = {data: np.mean([value for value, _ in paper.ACCURACY[data]["hardt_labels"]]) for data in DATA}
    lines = " ".join(
        f"On {NAMES[data]}, the mean accuracy over the four classifiers is "
        f"{100 * labels[data]:.1f}% with hard labels (paper: {printed[data]:.1f}%), "
        f"{100 * scores[data]:.1f}% with probabilities, and {100 * ours[data]:.1f}% with RTO."
        for data in DATA
    )
    return (
        "**The paper's column “Hardt, 2016” matches that method applied to hard labels.** "
        f"{lines} As far as we know, when the paper was written, Fairlearn's "
        "`ThresholdOptimizer` called `predict`, which returns hard labels, and only hard labels come close to "
        "the reported values. With probabilities, the method is as accurate as RTO. RTO's advantage in the "
        "paper's Table 2 is therefore one of probabilities over hard labels, not of one method over the "
        "other. RTO has two other advantages: it can be fitted without labels, and fitting takes little time "
        "if the thresholds are computed exactly."
    )


def _neighbors(results: Results) -> str:
    mean = results.mean(("adult", "knn"), "original", "accuracy")
    printed = paper.ACCURACY["adult"]["original"][1][0]
    if mean is None:
        return ""
    return (
        f"**The accuracy of k-NN on Adult could not be reproduced.** The paper reports {printed}% for the "
        "original classifier, which is more than it reports for random forests; we measure "
        f"{with_error(mean, 1, 100)}%. After debiasing, the values are closer (Table 2). The reported value may "
        "belong to a different classifier, or may have been measured on training rows."
    )


def _shift(results: Results) -> str:
    lines = []
    for data in DATA:
        means = [results.mean((data, kind), "shift", "gap") for kind in CLASSIFIERS]
        values = listed(f"{100 * mean.value:.1f}" for mean in means if mean)
        printed = listed(f"{100 * value:.0f}" for value in paper.BIAS[data]["shift"])
        lines.append(f"{values} points on {NAMES[data]} (paper: {printed})")
    failed = sum(
        mean.value > claims.LARGEST_GAP for pair in PAIRS if (mean := results.mean(pair, "shift", "gap"))
    )
    return (
        f"**Shift inference fails on {failed} of {len(PAIRS)} pairs.** Its gaps for "
        f"{listed(NAMES[kind] for kind in CLASSIFIERS)} are {', and '.join(lines)}. On DCCC, the paper's "
        "gaps are larger. If the classifier did not use sex, there would be no shift to undo, and the correction "
        "itself would create a gap. However, the paper's original gaps require a classifier that uses sex. We "
        "know of no setup that explains both the original gaps and those of shift inference."
    )


def _dccc(results: Results) -> str:
    train = results.mean(("dccc", "lr"), "original", "train_bias")
    runs = results.each(("dccc", "lr"), "original").values()
    if train is None:
        return ""
    men, women = (float(np.mean([run["test_label_rates"][sex] for run in runs])) for sex in ("Male", "Female"))
    # Half of the rows with s ≠ y are dropped: the odds of the label double for s = 1 and halve for s = 0.
    swapped = 2 * men / (1 + men) - women / (2 - women)
    return (
        "**The paper does not say which sex is coded as s = 1 in DCCC.** With women as s = 1, the labels of "
        f"the biased training rows have a gap of {100 * train.value:.1f} points, which matches the paper's "
        f"{100 * paper.DATA_BIAS['dccc']:.0f}; with men as s = 1, the gap would be {100 * swapped:.1f} points. "
        "As in the paper, accuracy rises when parity is restored, because the test rows do not have the bias "
        "of the training rows."
    )


def _reduction(results: Results) -> str:
    if not results.has("reduction"):
        return ""
    failed = [
        f"{100 * mean.value:.1f} points on {NAMES[pair[0]]} with {NAMES[pair[1]]}"
        for pair in PAIRS
        if (mean := results.mean(pair, "reduction", "gap")) and mean.value > claims.LARGEST_GAP
    ]
    if not failed:
        return "**The reduction** has a small gap on all pairs that were run, as in the paper."
    return (
        f"**On {len(failed)} of {len(PAIRS)} pairs, the reduction leaves a gap above "
        f"{100 * claims.LARGEST_GAP:g} points on test rows, unlike in the paper.** The gaps are "
        f"{listed(failed)}. The reduction limits the difference between each group's rate and the overall rate "
        "to 1 point, but only on the rows that it was trained on. On DCCC, those are the biased rows, and "
        "equal rates there do not imply equal rates on unbiased test rows. A flexible classifier also fits its "
        "training rows better than new rows. The paper reports a gap of 1 point on all pairs and does not "
        "say which rows the reduction was trained on."
    )


def _grid(results: Results) -> str:
    values = []
    for data in DATA:
        difference = np.mean(
            [m.value for k in CLASSIFIERS if (m := results.paired((data, k), "rto", "rto_accuracy", "accuracy"))]
        )
        values.append(f"{signed(100 * float(difference), 2)} points on {NAMES[data]}")
    return (
        "**The grid for γ and ρ is not needed.** The mean accuracy of RTO as published minus that of label-aware "
        f"RTO is {listed(values)}. The grid needs validation rows and 25 fits; label-aware RTO needs "
        "one fit."
    )


def _choices() -> str:
    """Disclose what was chosen after seeing results, so that readers can discount it."""
    return (
        "**Choices made after seeing results.** The paper does not say how DCCC's categories are encoded. "
        "One-hot columns, which we tried first, gave random forests a larger original gap than reported, and "
        "k-NN a smaller one. UCI's numeric codes come closer to both reported gaps, so we kept them. The "
        "agreement of the original gaps on DCCC is therefore partly due to this choice. We read “a two-layer "
        "neural network with 128 hidden nodes” as one hidden layer of 128 units with early stopping; two "
        "hidden layers, or longer training, gave an original gap on DCCC that was closer to the reported gap. "
        "We increased the number of seeds from 10 to 20 when the difference in accuracy between RTO and one "
        "other method was smaller than its standard error. For the other objectives, we decided after seeing "
        "three seeds to round differences between gaps to a hundredth of a point, and to call increases of at "
        "most two standard errors undecided. We ran ten more seeds after seeing the first ten."
    )


def _losses(results: Results) -> list[str]:
    """Explain how much of an accuracy loss above the allowed one is due to the other method's gap."""
    parts = []
    for peer in claims.fair_peers(results):
        for pair in PAIRS:
            mean = results.paired(pair, "rto_accuracy", peer, "accuracy")
            if mean is None or 100 * mean.value >= -claims.ALLOWED_LOSS:
                continue
            ours, theirs = results.each(pair, "rto_accuracy"), results.each(pair, peer)
            both = sorted(set(ours) & set(theirs))
            fair = [seed for seed in both if theirs[seed]["gap"] <= claims.LARGEST_GAP]
            rest = [100 * (ours[seed]["accuracy"] - theirs[seed]["accuracy"]) for seed in fair]
            # Its iterates on the fit rows oscillate for any number of epochs.
            why = ", because fixed steps do not converge where many scores are equal and γ is small"
            why = why if peer == "holisticai" else ""
            parts.append(
                f"**{TITLES[peer]} on {NAMES[pair[0]]}, {NAMES[pair[1]]}**, is {-100 * mean.value:.2f} ± "
                f"{100 * mean.error:.2f} points more accurate than label-aware RTO. In {len(both) - len(fair)} "
                f"of {len(both)} seeds its gap is above {100 * claims.LARGEST_GAP:g} points{why}; its mean gap "
                f"is {100 * np.mean([theirs[seed]['gap'] for seed in both]):.1f} points. Over the other seeds, "
                f"RTO's accuracy minus that of {TITLES[peer]} is {signed(float(np.mean(rest)), 2)} points."
            )
    return parts


def _average(results: Results, method: str, field: str, data: str) -> float:
    means = [results.mean((data, kind), method, field) for kind in CLASSIFIERS]
    return float(np.mean([mean.value for mean in means if mean]))
