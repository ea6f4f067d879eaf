"""The page's section on more than two classes, and our criteria for it.

Every number is computed, and so is the choice of sentences that depend on one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction import classes
from reproduction.claims import OBJECTIVE_LOSS, QUICK_GAP, QUICK_LOSS, Claim
from reproduction.names import NAMES
from reproduction.results import Mean, Results, listed, signed, table, with_error, worded
from reproduction.store import Result

#: Results of other libraries: method and variant, and how the page calls them.
PEERS = {
    ("fairlearn", "likely"): "Fairlearn per class, most probable",
    ("fairlearn", "shares"): "Fairlearn per class, shares",
    ("reduce2binary", "probabilities"): "holisticai `MLDebiaser`, probabilities",
    ("reduce2binary", "labels"): "holisticai `MLDebiaser`, labels",
    ("lp_odds", "drawn"): "holisticai `LPDebiaserMulticlass`, odds",
    ("lp_opportunity", "drawn"): "holisticai `LPDebiaserMulticlass`, opportunity",
}
#: Our two rules: the field in a comparison, and how the page calls it.
RULES = {"ours": "the rule", "recalibrated": "the recalibrated rule"}
_TASKS = {
    "adult": "**Adult: hours worked per week** (under 40, 40, 41 to 49, 50 or more)",
    "dccc": (
        "**DCCC: credit limit in NT dollars** (up to 50,000; 50,001 to 150,000; 150,001 to 250,000; over 250,000)"
    ),
}


@dataclass(frozen=True)
class Comparison:
    """A rule and another method at equal gap: means over seeds, in points; positive if the rule's is larger."""

    data: str
    attribute: str
    peer: tuple[str, str]
    accuracy: Mean
    gap: Mean
    #: Seeds in which no `max_gap` gave a gap as small as the other method's.
    missed: int

    @property
    def close(self) -> bool:
        """Whether the rule is at most `OBJECTIVE_LOSS` points less accurate."""
        return self.accuracy.value >= -OBJECTIVE_LOSS

    @property
    def place(self) -> str:
        """The dataset, attribute and method."""
        return f"{NAMES[self.data]} by {self.attribute}, {PEERS[self.peer]}"


def pairs() -> list[tuple[str, str]]:
    """Return the datasets and attributes."""
    return [(data, attribute) for data, each in classes.ATTRIBUTES.items() for attribute in each]


def _each(results: Results, data: str, attribute: str, peer: str = "") -> list[Result]:
    name = f"classes_{attribute}" + (f"_{peer}" if peer else "")
    return list(results.each((data, classes.CLASSIFIER), name).values())


def _mean(runs: Sequence[Result], read: Callable[[Result], Any]) -> Mean | None:
    return Mean.of(np.array([read(run) for run in runs])) if runs else None


def comparisons(results: Results, rule: str) -> list[Comparison]:
    """Return all comparisons of one of `RULES` with other libraries."""
    found = []
    for data, attribute in pairs():
        for peer, variant in PEERS:
            cells = [run[variant] for run in _each(results, data, attribute, peer)]
            if not cells:
                continue
            accuracy, gap = (
                100 * np.array([cell[rule][field] - cell[field] for cell in cells])
                for field in ("accuracy", "gap")
            )
            # The search accepts a gap that rounding makes larger, so this does too.
            missed = int((gap > 1e-6).sum())
            found.append(Comparison(data, attribute, (peer, variant), Mean.of(accuracy), Mean.of(gap), missed))
    return found


def criteria(results: Results) -> list[Claim]:
    """Return our criterion for both rules: no less accurate than any other method at equal gap."""
    found = []
    for rule, title in RULES.items():
        each = comparisons(results, rule)
        if not each:
            continue
        worst = min(each, key=lambda c: c.accuracy.value)
        found.append(
            Claim(
                f"More than two classes: mean accuracy of {title} at most {OBJECTIVE_LOSS} points below that of "
                "every other method at the same gap",
                all(c.close for c in each),
                f"{sum(c.close for c in each)} of {len(each)} comparisons; worst "
                f"{_difference(worst.accuracy)} points ({worst.place}); gap not reached for every seed in "
                f"{sum(c.missed > 0 for c in each)}",
            )
        )
    return found


def quick(results: Results) -> list[Claim]:
    """Return the check of the quick run, by sex on both datasets."""
    gaps, losses = [], []
    for data in classes.ATTRIBUTES:
        gaps += [run["plain"]["0.0"]["gap"] for run in _each(results, data, "sex")]
        losses += [
            100 * (run[variant]["accuracy"] - run[variant]["ours"]["accuracy"])
            for run in _each(results, data, "sex", "fairlearn")
            for variant in ("likely", "shares")
        ]
    complete = len(gaps) >= len(classes.ATTRIBUTES) and len(losses) >= 2 * len(classes.ATTRIBUTES)
    gap = max(gaps) if complete else float("inf")
    loss = max(losses) if complete else float("inf")
    text = (
        f"with four classes, the rule leaves a gap of at most {100 * QUICK_GAP:g} points by sex in every class, "
        f"and is at most {QUICK_LOSS:g} point less accurate than Fairlearn's rules per class at the same gap"
    )
    holds = gap <= QUICK_GAP and loss <= QUICK_LOSS
    return [Claim(text, holds, f"gap {100 * gap:.1f} points, {loss:.2f} points less accurate")]


def section(results: Results) -> str:
    """Return the section."""
    if not all(_each(results, *pair) for pair in pairs()):
        return ""
    parts = ["## More than two classes", _result(results), _against(results)]
    for data in classes.ATTRIBUTES:
        for attribute in classes.ATTRIBUTES[data]:
            parts += [f"{_TASKS[data]}, by {attribute}:", _table(results, data, attribute)]
    parts += [_how(results)]
    return "\n\n".join(part for part in parts if part)


def _result(results: Results) -> str:
    told = []
    for data, attribute in pairs():
        runs = _each(results, data, attribute)
        own, ours = (
            [np.mean([read(run)[field] for run in runs]) for field in ("gap", "accuracy")]
            for read in (lambda run: run["original"], lambda run: run["plain"]["0.0"])
        )
        told.append(
            f"on {NAMES[data]} by {attribute}, from {100 * own[0]:.1f} to {100 * ours[0]:.1f} points, while the "
            f"accuracy changes from {100 * own[1]:.1f}% to {100 * ours[1]:.1f}%"
        )
    return (
        "With more than two classes, the gap is the largest difference between two groups' rates in any class. "
        f"`fit_class_rule` with `max_gap=0` lowers it on test rows: {'; '.join(told)}. Two of the five races "
        "have fewer than 100 test rows each, so gaps by race are uncertain."
    )


def _against(results: Results) -> str:
    texts = []
    for rule, title in RULES.items():
        each = comparisons(results, rule)
        if not each:
            return ""
        counts = listed(
            f"{sum(c.close for c in found)} of {len(found)} comparisons with {library}"
            for library, found in _by_library(each)
        )
        text = f"{title.capitalize()} is at most {OBJECTIVE_LOSS} points less accurate in {counts}."
        if below := [c for c in each if not c.close]:
            text += f" It is more than {OBJECTIVE_LOSS} points less accurate than " + listed(
                f"*{PEERS[c.peer]}* on {NAMES[c.data]} by {c.attribute} ({_difference(c.accuracy)} points)"
                for c in below
            )
            text += "."
        texts.append(text)
    return (
        "We compare each method from another library with two of our rules at the same gap: the rules are fitted "
        "on the same rows as the method, with a `max_gap` at which their gap on test rows is no larger than that "
        "of the method. *The rule* uses the classifier's probabilities; for *the recalibrated rule*, these are "
        f"corrected first, as described below the tables. {' '.join(texts)} The rule uses no labels and relies "
        "on the classifier's probabilities. Fairlearn chooses its thresholds by accuracy on the labels of the "
        "fit rows, which can make up for inaccurate probabilities; the recalibrated rule uses the same "
        f"labels. {_missed(results)}"
    )


def _by_library(each: Sequence[Comparison]) -> list[tuple[str, list[Comparison]]]:
    first = {"Fairlearn": [c for c in each if c.peer[0] == "fairlearn"]}
    return [
        (name, found)
        for name, found in (first | {"holisticai": [c for c in each if c.peer[0] != "fairlearn"]}).items()
        if found
    ]


def _missed(results: Results) -> str:
    """Say where the rule did not reach the gap of the other method, so that gaps are not equal."""
    missed = [c for c in comparisons(results, "ours") if c.missed]
    if not missed:
        return ""
    return (
        f"In {worded(len(missed))} of the rule's comparisons, the other method's gap could not be reached for "
        "some or all seeds, so the gaps are not equal. For these seeds, `max_gap=0` is used; their number is in "
        "parentheses: " + "; ".join(f"{c.place} ({c.missed} of {c.gap.seeds})" for c in missed) + "."
    )


def _difference(mean: Mean) -> str:
    error = "" if np.isnan(mean.error) else f" ± {mean.error:.2f}"
    return f"{signed(mean.value, 2)}{error}"


def _table(results: Results, data: str, attribute: str) -> str:
    rows = []
    runs = _each(results, data, attribute)

    def add(title: str, found: list[Result], seconds: list[float], equal: list[list[Result]]) -> None:
        cells = [
            with_error(Mean.of(np.array([result[field] for result in found])), digits, 100)
            for field, digits in (("gap", 1), ("accuracy", 2), ("random", 1))
        ]
        cells.append(_time(float(np.median(seconds))) if seconds else "–")
        for ours in equal:
            gap = 100 * np.mean([result["gap"] for result in ours])
            gain = 100 * np.array([a["accuracy"] - b["accuracy"] for a, b in zip(ours, found, strict=True)])
            cells += [f"{gap:.1f}", _difference(Mean.of(gain))]
        rows.append([title, *cells, *["–"] * (8 - len(cells))])

    add("the classifier's own decisions", [run["original"] for run in runs], [], [])
    for variant, title in (("plain", "rule"), ("recalibrated", "recalibrated rule")):
        for limit in classes.MAX_GAPS:
            found = [run[variant][str(limit)] for run in runs]
            seconds = [result["seconds"] for result in found]
            add(f"{title}, {100 * limit:g} points allowed", found, seconds, [])
    for (peer, variant), title in PEERS.items():
        theirs = _each(results, data, attribute, peer)
        if theirs:
            found = [run[variant] for run in theirs]
            equal = [[result[rule] for result in found] for rule in RULES]
            add(title, found, [run["seconds"] for run in theirs], equal)
    header = ["method", "gap", "accuracy", "decided at random", "time"]
    header += [f"{title}: {what}" for title in RULES.values() for what in ("gap", "accuracy difference")]
    return table(header, rows, left=1)


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 0.95 else f"{1000 * seconds:.0f} ms"


def _failed(results: Results) -> str:
    reasons = sorted({reason for name in classes.METHODS for reason in results.failures(name)})
    return f" Some runs of other libraries failed: {'; '.join(reasons)}." if reasons else ""


def _how(results: Results) -> str:
    seeds = min(len(_each(results, *pair)) for pair in pairs())
    return (
        "Gaps are in points; accuracy and rows decided at random are in percent of the test rows. Accuracy "
        "differences are ours minus the other method's, at the same gap and paired by seed. Times are medians of "
        "the time to fit, without the recalibration, measured as described under [Time to fit](#time-to-fit). "
        f"The splits are those described above, with {seeds} seed{'s' if seeds > 1 else ''}, and no rows of "
        "DCCC are dropped. The classifier is a multinomial logistic regression with default regularization. "
        "Its features are all attributes except the one that defines the classes. The age groups on DCCC are "
        "under 30, 30 to 39, 40 to 49, and 50 or older. To find the `max_gap` of a comparison, we search "
        f"between 0 and the other method's gap on test rows and halve this interval {classes.STEPS} times. The "
        "search uses the gap on test rows, but not their labels.\n\n"
        "The recalibrated rule first corrects the probabilities with a multinomial logistic regression of the "
        "fit rows' labels on the logarithms of the probabilities. We added it after finding the rule less "
        "accurate than Fairlearn on DCCC. Before we chose this correction, we had seen its test results for "
        "seeds 0 and 1, those of the same correction with the group as a feature, and those of isotonic "
        "regression, each with this classifier and with a boosted one. We chose the simplest correction, not the "
        "most accurate, but the results of these two seeds are not independent of our choice.\n\n"
        "Fairlearn has no rule for more than two classes, so we fit one rule for each class against all "
        "others: `ThresholdOptimizer` with demographic parity as its constraint and accuracy as its objective, "
        "applied to probabilities. We combine the rules in two ways. *Most probable* draws a decision for each "
        "class and takes the most probable of the selected classes. *Shares* divides the selection "
        "probabilities by their sum. Rows that no rule selects keep their most probable class. Even if each rule "
        "has equal rates, the combined rates need not be equal.\n\n"
        "The class `MLDebiaser` from holisticai runs with its default settings. Lower values of `gamma` and "
        "`eta` and more iterations, tried on seed 0 of Adult, gave less accurate labels. `MLDebiaser` cannot be "
        "applied to new rows: it solves its problem for the test rows themselves, so it is compared with rules "
        "that are also fitted on the test rows, without labels. It returns probabilities; its labels are the "
        "most probable class of each row. `LPDebiaserMulticlass` equalizes error rates, which is a different "
        "criterion; it is listed because it is holisticai's other post-processing method for more than two "
        "classes. Its random draws are replaced by their probabilities. Both Python classes accept only two "
        f"groups; for more groups, we call the underlying algorithms directly.{_failed(results)}"
    )
