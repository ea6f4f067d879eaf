"""Claims of the paper, and whether the stored runs support them, contradict them, or leave them undecided."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction import error_rates
from reproduction.store import Result
from reproduction.vision.aggregate import Interval, Table, accuracy_of, chance_gap, gap_of
from reproduction.vision.backbones import FROZEN, ILSVRC, NOTHING, REGISTRY, SMALL
from reproduction.vision.plan import FRACTIONS, HEAD, TABLE_TASK, TUNED, Run
from reproduction.vision.runner import Settings
from reproduction.vision.store import Store

#: The largest ratio of the mean test gap after debiasing to the gap expected by chance.
ALLOWED = 1.25
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "cannot be told"

PRETRAINED = tuple(b.name for b in FROZEN if b.pretraining == ILSVRC)
RANDOM = tuple(b.name for b in FROZEN if b.pretraining == NOTHING)
#: The paper's own networks of Tables 1 and 2, frozen.
OF_TABLES = ("ResNet50", "MobileNet")


#: A number of a run, or None if it has none.
Number = Callable[[Run, Result], float | None]


@dataclass(frozen=True)
class Claim:
    """A sentence, a verdict, and its numbers."""

    text: str
    verdict: str
    numbers: str


def verdict(difference: Interval) -> str:
    """Return whether a difference is above 0, as claimed."""
    if math.isnan(difference.low):
        return HOLDS if difference.value > 0 else FAILS
    return HOLDS if difference.low > 0 else FAILS if difference.high < 0 else UNDECIDED


def in_points(difference: Interval) -> str:
    """Return a difference with its interval in percentage points; small ones get a second decimal."""
    ends = (difference.low, difference.high, difference.value)
    digits = 2 if max(abs(100 * end) for end in ends if not math.isnan(end)) < 0.25 else 1
    return difference.text(digits, 100, sign=True) + " points"


def _positive(text: str, difference: Interval | None) -> list[Claim]:
    return [] if difference is None else [Claim(text, verdict(difference), in_points(difference))]


def gap_claim(table: Table, text: str, **wanted: Any) -> list[Claim]:
    """Return whether the mean gap after debiasing is close to the one expected by chance."""
    found = table.mean(gap_of("rto"), **wanted)
    chance = table.mean(chance_gap, **wanted)
    if found is None or chance is None:
        return []
    ratio = found.value / chance.value
    numbers = f"{100 * found.value:.1f} points, {100 * chance.value:.1f} expected by chance, ratio {ratio:.2f}"
    return [Claim(text, HOLDS if ratio <= ALLOWED else FAILS, numbers)]


def error_after(run: Run, result: Result) -> float | None:
    """Return the test error after debiasing."""
    accuracy = accuracy_of("rto")(run, result)
    return None if accuracy is None else 1 - accuracy


def cost(run: Run, result: Result) -> float | None:
    """Return the accuracy lost by debiasing."""
    before, after = accuracy_of("original")(run, result), accuracy_of("rto")(run, result)
    return None if before is None or after is None else before - after


def less(method: str, other: str, field: str) -> Any:
    """Return a function for the difference between two methods within a run."""
    read = accuracy_of if field == "accuracy" else gap_of

    def number(run: Run, result: Result) -> float | None:
        a, b = read(method)(run, result), read(other)(run, result)
        return None if a is None or b is None else a - b

    return number


def pretraining(table: Table, number: Any, **wanted: Any) -> Interval | None:
    """Return the difference between random and pretrained weights, over the networks that have both."""
    return table.difference(
        number, {"backbone": RANDOM, **wanted}, lambda run: {"backbone": run.backbone.removesuffix("/random")}
    )


def size_effect(
    table: Table, names: Sequence[str] = PRETRAINED, number: Number = error_after, **wanted: Any
) -> Interval | None:
    """Return the change of a number per doubling of parameters: least squares over networks, within a seed."""
    doublings = {name: math.log2(REGISTRY[name].parameters) for name in names}

    def slope(seed: int) -> dict[str, float]:
        values: dict[str, list[float]] = {name: [] for name in names}
        for run, result in table.select(backbone=tuple(names), protocol=HEAD, seed=seed, **wanted).items():
            value = number(run, result)
            if value is not None:
                values[run.backbone].append(value)
        found = {name: float(np.mean(of)) for name, of in values.items() if of}
        if len(found) < len(names):
            return {}
        x = np.array([doublings[name] for name in found])
        x -= x.mean()
        return {"slope": float(x @ np.array(list(found.values())) / (x @ x))}

    return table.over_seeds(slope).get("slope")


def minus(difference: Interval | None) -> Interval | None:
    """Return an interval with the opposite sign."""
    if difference is None:
        return None
    return Interval(-difference.value, -difference.high, -difference.low, difference.seeds)


def subset(table: Table) -> list[Claim]:
    """Return the paper's claims that can be tested on 6,000 images."""
    return [
        *_debiases(table),
        *_scale(table),
        *_other_methods(table),
        *_peers(table),
        *_error_rates(table),
    ]


def _debiases(table: Table) -> list[Claim]:
    found = gap_claim(
        table,
        f"RTO debiases: over all runs, the mean test gap is at most {ALLOWED} times the gap expected by chance",
    )
    for name in OF_TABLES:
        found += gap_claim(table, f"The same, for heads on {name}", backbone=name)
    found += gap_claim(table, "The same, for all linear heads", protocol=HEAD)
    found += gap_claim(table, "The same, for MobileNet, fine-tuned as a whole", backbone=TUNED)
    return found + gap_claim(table, "The same, for the small network trained from scratch", backbone=SMALL.name)


def _scale(table: Table) -> list[Claim]:
    found = _positive(
        "Size helps after debiasing (Figure 3): decrease in error per doubling of parameters, "
        f"{len(PRETRAINED)} pretrained networks, all training sizes",
        minus(size_effect(table)),
    )
    for fraction in FRACTIONS:
        found += _positive(
            f"The same, with {fraction:.0%} of the training rows", minus(size_effect(table, fraction=fraction))
        )
    for smaller, larger in (("MobileNet-0.25", "MobileNet"), ("EfficientNet-Lite0", "EfficientNet-Lite2")):
        found += _positive(
            f"Size helps within a family: error after debiasing, {smaller} − {larger}",
            table.difference(error_after, {"backbone": smaller}, _other(backbone=larger)),
        )
    found += _positive(
        "Size helps more after debiasing than before: decrease in the accuracy lost to debiasing per doubling of "
        "parameters",
        minus(size_effect(table, number=cost)),
    )
    found += _positive(
        "Pretraining lowers the error after debiasing: random − ImageNet weights, over all training sizes",
        pretraining(table, error_after),
    )
    for fraction in (FRACTIONS[0], FRACTIONS[-1]):
        found += _positive(
            f"The same, with {fraction:.0%} of the training rows",
            pretraining(table, error_after, fraction=fraction),
        )
    found += _positive(
        "Pretraining reduces the accuracy lost to debiasing: random − ImageNet weights",
        pretraining(table, cost),
    )
    found += _positive(
        "Fine-tuning lowers the error after debiasing on attractiveness: head on frozen MobileNet − fine-tuned",
        table.difference(error_after, {"backbone": TUNED}, _other(protocol=HEAD, backbone="MobileNet"), -1),
    )
    return found + _positive(
        "More training rows lower the error after debiasing: 10% − 100% of the rows, pretrained networks",
        table.difference(error_after, {"backbone": PRETRAINED, "fraction": 0.1}, _other(fraction=1.0)),
    )


def _other_methods(table: Table) -> list[Claim]:
    found: list[Claim] = []
    for method, title in (("shift", "Shift inference"), ("roc", "ROC")):
        for kind, names in (
            ("heads on ResNet50 and MobileNet", OF_TABLES),
            ("heads on all pretrained networks", PRETRAINED),
            ("MobileNet, fine-tuned", (TUNED,)),
            ("small network", (SMALL.name,)),
        ):
            wanted: Mapping[str, Any] = {"task": TABLE_TASK, "fraction": 1.0, "backbone": names}
            found += _positive(
                f"{title} leaves a larger gap than RTO on attractiveness ({kind})",
                table.mean(less(method, "rto", "gap"), **wanted),
            )
    found += _positive(
        "ROC leaves a larger gap than RTO if more than half of the scores are within 0.05 of 0 or 1",
        table.mean(_concentrated(less("roc", "rto", "gap"))),
    )
    for method, title in (("hardt_labels", "hard labels"), ("hardt_scores", "probabilities")):
        number = less("rto", method, "accuracy")
        found += _positive(
            f"On attractiveness, RTO is more accurate than the method of Hardt et al. on {title}",
            table.mean(number, task=TABLE_TASK),
        )
        found += _positive(
            f"The same, for heads on ResNet50 and MobileNet ({title})",
            table.mean(number, task=TABLE_TASK, backbone=OF_TABLES),
        )
        found += _positive(f"The same, averaged over all seven tasks ({title})", table.mean(number))
    return found


def _peers(table: Table) -> list[Claim]:
    found: list[Claim] = []
    for method, title in (
        ("hardt_scores", "the method of Hardt et al. on probabilities (Fairlearn)"),
        ("error_parity", "error-parity"),
        ("holisticai", "holisticai"),
    ):
        found += _positive(
            f"Averaged over all seven tasks, label-aware RTO is more accurate than {title}",
            table.mean(less("rto_accuracy", method, "accuracy"), protocol=HEAD),
        )
    return found


def _error_rates(table: Table) -> list[Claim]:
    found: list[Claim] = []
    for one in error_rates.COMPARISONS:
        found += _positive(
            f"{one.title}: fairramp is more accurate than {one.peer} (mean over all seven tasks)",
            table.mean(less(one.ours, one.theirs, "accuracy"), protocol=HEAD),
        )
    return found


def _other(**fields: Any) -> Any:
    return lambda run: fields


def _concentrated(number: Any) -> Any:
    return lambda run, result: number(run, result) if result["near_the_ends"] > 0.5 else None


def quick(store: Store, settings: Settings, skipped: Mapping[str, str]) -> list[Claim]:
    """Return the checks of the quick run."""
    table = Table(store, settings, ("celeba6000",))
    missing = ", ".join(skipped) or "nothing"
    found = [Claim("every network of the quick run loads", FAILS if skipped else HOLDS, f"skipped: {missing}")]
    found += gap_claim(
        table, f"the mean test gap is at most {ALLOWED} times that expected by chance", protocol=HEAD
    )
    helped = pretraining(table, error_after)
    if helped is not None:
        holds = HOLDS if helped.value > 0 else FAILS
        found.append(Claim("pretraining lowers the error after debiasing", holds, in_points(helped)))
    own = table.mean(gap_of("original"), task=TABLE_TASK)
    if own is not None:
        holds = HOLDS if own.value > 0.2 else FAILS
        found.append(
            Claim("the original gap of attractiveness is above 20 points", holds, f"{100 * own.value:.1f} points")
        )
    return found


def report(claims: list[Claim]) -> int:
    """Print the claims; return 1 if one does not hold."""
    for claim in claims:
        print(f"{claim.verdict}: {claim.text} ({claim.numbers})")
    failed = sum(claim.verdict != HOLDS for claim in claims)
    if failed:
        print(f"{failed} of {len(claims)} claims do not hold", file=sys.stderr)
    return int(failed > 0)
