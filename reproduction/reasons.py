"""The page's section on where we differ from the paper, and why we think so.

Each paragraph computes the numbers that it argues with.
"""

import numpy as np

from reproduction import claims, paper
from reproduction.names import NAMES, TITLES
from reproduction.protocol import CLASSIFIERS, DATA
from reproduction.results import PAIRS, Results, signed, with_error


def write(results: Results) -> str:
    """Return where we differ from the paper, and why we think so."""
    parts = ["## Where we differ, and why we think so", _adult_bias(results), _hard_labels(results)]
    parts += [_neighbors(results), _shift(results), _dccc(results), _reduction(results)]
    parts += [_grid(results), *_losses(results), _choices()]
    for peer in ("error_parity", "holisticai"):
        failures = results.failures(peer)
        if failures:
            parts.append(f"**{TITLES[peer]} does not always run.** {'; '.join(failures)}.")
    return "\n\n".join(part for part in parts if part)


def _adult_bias(results: Results) -> str:
    means = [results.mean(("adult", kind), "original", "gap") for kind in CLASSIFIERS]
    ours = [mean.value for mean in means if mean]
    printed = paper.BIAS["adult"]["original"]
    ratios = ", ".join(
        f"{NAMES[kind]} {p / o:.1f}" for kind, p, o in zip(CLASSIFIERS, printed, ours, strict=True)
    )
    count = sum(abs(p - 2 * o) <= 0.05 for p, o in zip(printed, ours, strict=True))
    close = f"{count} is" if count == 1 else f"{count} are"
    return (
        "**The original bias on Adult does not reproduce.** The paper prints "
        f"{', '.join(f'{p:.2f}' for p in printed)}; measured are {', '.join(f'{o:.3f}' for o in ours)}, near the "
        f"data's own bias. The ratios are {ratios}. Decisions counted as ±1 instead of 0 and 1 would double a "
        f"gap; of the four printed values {close} within 0.05 of twice ours. Nothing in the paper says so, and "
        "the DCCC values are not doubled. Both are reported, neither is claimed. The accuracies of the same "
        "classifiers agree, k-NN apart."
    )


def _hard_labels(results: Results) -> str:
    labels = {data: _average(results, "hardt_labels", "accuracy", data) for data in DATA}
    scores = {data: _average(results, "hardt_scores", "accuracy", data) for data in DATA}
    ours = {data: _average(results, "rto", "accuracy", data) for data in DATA}
    printed = {data: np.mean([value for value, _ in paper.ACCURACY[data]["hardt_labels"]]) for data in DATA}
    lines = "; ".join(
        f"{NAMES[data]} {100 * labels[data]:.1f}% with hard labels (paper {printed[data]:.1f}), "
        f"{100 * scores[data]:.1f}% with probabilities, RTO {100 * ours[data]:.1f}%"
        for data in DATA
    )
    return (
        "**The paper's column “Hardt, 2016” is that method fed with hard labels.** Means over the four "
        f"classifiers: {lines}. As far as we know, Fairlearn's `ThresholdOptimizer` of that time called "
        "`predict`; and only hard labels give the printed values. Fed with probabilities the same method is "
        "level with RTO: the advantage in accuracy that the paper's Table 2 shows is one of scores over labels, "
        "not of one method over the other. What sets RTO apart is that it needs no labels and, solved exactly, "
        "little time."
    )


def _neighbors(results: Results) -> str:
    mean = results.mean(("adult", "knn"), "original", "accuracy")
    printed = paper.ACCURACY["adult"]["original"][1][0]
    if mean is None:
        return ""
    return (
        f"**k-NN on Adult.** The paper prints {printed}% for the original classifier, above random forests; "
        f"measured are {with_error(mean, 1, 100)}%. After debiasing the values are near each other again (Table "
        "2), so the printed one may be another classifier's, or one of training rows."
    )


def _shift(results: Results) -> str:
    lines = []
    for data in DATA:
        means = [results.mean((data, kind), "shift", "gap") for kind in CLASSIFIERS]
        values = ", ".join(f"{mean.value:.3f}" for mean in means if mean)
        printed = ", ".join(f"{value:.2f}" for value in paper.BIAS[data]["shift"])
        lines.append(f"{NAMES[data]} {values} (paper {printed})")
    failed = sum(
        mean.value > claims.LARGEST_GAP for pair in PAIRS if (mean := results.mean(pair, "shift", "gap"))
    )
    return (
        f"**Shift inference** fails on {failed} of the eight pairs: {'; '.join(lines)}. On DCCC the paper's "
        "values are larger. A classifier that does not see the sex would have no such shift to undo, and the "
        "correction itself would make a gap; but the original biases of the paper need a classifier that sees "
        "it. We know no setting that explains both."
    )


def _dccc(results: Results) -> str:
    train = results.mean(("dccc", "lr"), "original", "train_bias")
    runs = results.each(("dccc", "lr"), "original").values()
    if train is None:
        return ""
    men, women = (float(np.mean([run["test_label_rates"][sex] for run in runs])) for sex in ("Male", "Female"))
    # Half of the rows with s ≠ y are gone: odds of the label double where s = 1, and halve where s = 0.
    swapped = 2 * men / (1 + men) - women / (2 - women)
    return (
        "**Which sex is s = 1 in DCCC** is not printed. With women as s = 1 the biased training rows have a "
        f"bias of {train.value:.3f}, the paper's {paper.DATA_BIAS['dccc']:.2f}; with men it would be "
        f"{swapped:.2f}. Accuracy rises when parity is restored because the test rows do not have the bias of "
        "the training rows, as in the paper."
    )


def _reduction(results: Results) -> str:
    if not results.has("reduction"):
        return ""
    failed = [
        f"{NAMES[pair[0]]} {NAMES[pair[1]]} {mean.value:.3f}"
        for pair in PAIRS
        if (mean := results.mean(pair, "reduction", "gap")) and mean.value > claims.LARGEST_GAP
    ]
    if not failed:
        return "**The reduction** keeps its gap on all pairs that were run, as in the paper."
    return (
        f"**The reduction does not keep its gap on test rows everywhere:** {'; '.join(failed)}. It makes rates "
        "equal on the rows that it was trained on, up to 0.01, and here on DCCC those are the biased ones: "
        "equal rates among biased training rows are not equal rates among unbiased test rows. A flexible "
        "classifier also fits its training rows better than others. The paper prints 0.01 everywhere; with "
        "which rows it trained the reduction is not said."
    )


def _grid(results: Results) -> str:
    values = []
    for data in DATA:
        difference = np.mean(
            [m.value for k in CLASSIFIERS if (m := results.paired((data, k), "rto", "rto_accuracy", "accuracy"))]
        )
        values.append(f"{NAMES[data]} {signed(100 * float(difference), 2)}")
    return (
        "**The grid for ρ.** The paper's rule less the label-aware one, mean accuracy in points: "
        f"{'; '.join(values)}. The grid needs validation rows and 25 fits; the label-aware rates need one fit "
        "and no grid."
    )


def _choices() -> str:
    """Say what was chosen with an eye on the paper's values, so that a reader can discount it."""
    return (
        "**Chosen after a look at results.** The paper does not say how DCCC's categories enter. One-hot "
        "columns, tried first, gave random forests a larger original gap than printed and k-NN a smaller one; "
        "UCI's numbers as they are come nearer to both, and were kept. So the agreement of the original gaps on "
        "DCCC is in part a matter of choice. “A two-layer neural network with 128 hidden nodes” is read as one "
        "hidden layer of 128, stopped early; two hidden layers, or training longer, gave an original gap on DCCC "
        "nearer to the printed one. Twenty seeds replaced ten when the difference to one peer was smaller than "
        "its error."
    )


def _losses(results: Results) -> list[str]:
    """Say, where a peer is more accurate than allowed, what part of that its gaps have."""
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
            # Seen in its iterates on the fit rows, which swing however many epochs it is given.
            why = ": where many scores are equal and γ is small, its descent by fixed steps does not settle"
            why = why if peer == "holisticai" else ""
            parts.append(
                f"**{TITLES[peer]} on {NAMES[pair[0]]}, {NAMES[pair[1]]}**, is {-100 * mean.value:.3f} ± "
                f"{100 * mean.error:.3f} points more accurate than label-aware RTO. In {len(both) - len(fair)} "
                f"of {len(both)} seeds its gap is above {claims.LARGEST_GAP}{why}, and a gap buys "
                "accuracy; its mean gap of "
                f"{np.mean([theirs[seed]['gap'] for seed in both]):.3f} passes all the same. Over the other "
                f"seeds the difference is {signed(float(np.mean(rest)), 3)} points, in RTO's favor if positive."
            )
    return parts


def _average(results: Results, method: str, field: str, data: str) -> float:
    means = [results.mean((data, kind), method, field) for kind in CLASSIFIERS]
    return float(np.mean([mean.value for mean in means if mean]))
