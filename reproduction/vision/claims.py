"""What the paper claims, and whether it holds for the stored runs, does not, or cannot be told from them."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reproduction.store import Result
from reproduction.vision.aggregate import Interval, Table, accuracy_of, chance_gap, gap_of
from reproduction.vision.backbones import LITE, NOTHING, SMALL
from reproduction.vision.plan import FRACTIONS, HEAD, TABLE_TASK, Run
from reproduction.vision.runner import Settings
from reproduction.vision.store import Store

#: The mean test gap after debiasing may be this many times what chance leaves.
ALLOWED = 1.25
HOLDS, FAILS, UNTOLD = "holds", "does not hold", "cannot be told"

PRETRAINED = tuple(b.name for b in LITE if b.pretraining != NOTHING)
RANDOM = tuple(b.name for b in LITE if b.pretraining == NOTHING)


@dataclass(frozen=True)
class Claim:
    """A sentence, a verdict, and the numbers behind it."""

    text: str
    verdict: str
    numbers: str


def verdict(difference: Interval) -> str:
    """Return whether a difference that should be above 0 is."""
    if math.isnan(difference.low):
        return HOLDS if difference.value > 0 else FAILS
    return HOLDS if difference.low > 0 else FAILS if difference.high < 0 else UNTOLD


def _positive(text: str, difference: Interval | None, unit: str = "points", factor: float = 100.0) -> list[Claim]:
    if difference is None:
        return []
    digits = 2 if factor == 100.0 else 3
    return [Claim(text, verdict(difference), f"{difference.text(digits, factor, sign=True)} {unit}".strip())]


def gap_claim(table: Table, text: str, **wanted: Any) -> list[Claim]:
    """Return whether the mean gap after debiasing is what chance leaves."""
    found = table.mean(gap_of("rto"), **wanted)
    chance = table.mean(chance_gap, **wanted)
    if found is None or chance is None:
        return []
    ratio = found.value / chance.value
    numbers = f"mean gap {found.value:.4f}, chance alone {chance.value:.4f}, ratio {ratio:.2f}"
    return [Claim(text, HOLDS if ratio <= ALLOWED else FAILS, numbers)]


def error_after(run: Run, result: Result) -> float | None:
    """Return the test error after debiasing."""
    accuracy = accuracy_of("rto")(run, result)
    return None if accuracy is None else 1 - accuracy


def cost(run: Run, result: Result) -> float | None:
    """Return how much accuracy debiasing takes."""
    before, after = accuracy_of("original")(run, result), accuracy_of("rto")(run, result)
    return None if before is None or after is None else before - after


def less(method: str, other: str, field: str) -> Any:
    """Return a method's number less another's, within a run."""
    read = accuracy_of if field == "accuracy" else gap_of

    def number(run: Run, result: Result) -> float | None:
        a, b = read(method)(run, result), read(other)(run, result)
        return None if a is None or b is None else a - b

    return number


def pretraining(table: Table, number: Any, **wanted: Any) -> Interval | None:
    """Return random weights less pretrained ones, over the three EfficientNet-Lite."""
    return table.difference(
        number, {"backbone": RANDOM, **wanted}, lambda run: {"backbone": run.backbone.removesuffix("/random")}
    )


def subset(table: Table) -> list[Claim]:
    """Return what 6,000 images can say of the paper's claims."""
    found = gap_claim(
        table, f"Debiasing works: the mean test gap is at most {ALLOWED} × what chance leaves, all runs"
    )
    found += gap_claim(table, "The same, linear heads", protocol=HEAD)
    found += gap_claim(table, "The same, the small network trained from scratch", backbone=SMALL.name)
    found += _positive(
        "Pretraining helps after debiasing: random weights have a larger error than ImageNet's, all fractions",
        pretraining(table, error_after),
    )
    for fraction in (FRACTIONS[0], FRACTIONS[-1]):
        found += _positive(
            f"The same with {fraction:.0%} of the training rows",
            pretraining(table, error_after, fraction=fraction),
        )
    found += _positive(
        "Pretraining lowers the price of debiasing: accuracy lost by it, random weights less ImageNet's",
        pretraining(table, cost),
    )
    for larger in PRETRAINED[1:]:
        found += _positive(
            f"Size helps after debiasing: error of {PRETRAINED[0]} less that of {larger}, both pretrained",
            table.difference(error_after, {"backbone": PRETRAINED[0]}, _other(backbone=larger)),
        )
    scratch = {"backbone": SMALL.name, "fraction": 1.0}
    found += _positive(
        f"A small network from scratch has a larger error after debiasing than heads on {PRETRAINED[-1]}, 100%",
        table.difference(error_after, scratch, _other(protocol=HEAD, backbone=PRETRAINED[-1])),
    )
    found += _positive(
        "More training rows help after debiasing: error with 10% less that with 100%, pretrained",
        table.difference(error_after, {"backbone": PRETRAINED, "fraction": 0.1}, _other(fraction=1.0)),
    )
    for method, title in (("shift", "Shift inference"), ("roc", "ROC")):
        for kind, names in (("pretrained heads", PRETRAINED), ("the small network", (SMALL.name,))):
            wanted: Mapping[str, Any] = {"task": TABLE_TASK, "fraction": 1.0, "backbone": names}
            found += _positive(
                f"{title} fails to debias attractiveness ({kind}): its gap less RTO's",
                table.mean(less(method, "rto", "gap"), **wanted),
                unit="",
                factor=1.0,
            )
    found += _positive(
        "ROC fails on concentrated scores (over half of them within 0.05 of 0 or 1): its gap less RTO's",
        table.mean(_concentrated(less("roc", "rto", "gap"))),
        unit="",
        factor=1.0,
    )
    for method, title in (("hardt_labels", "hard labels, as published"), ("hardt_scores", "probabilities")):
        number = less("rto", method, "accuracy")
        found += _positive(
            f"RTO is more accurate than Hardt's rule from {title}: attractiveness",
            table.mean(number, task=TABLE_TASK),
        )
        found += _positive(f"The same, all seven tasks ({title.split(',')[0]})", table.mean(number))
    found += _positive(
        "Label-aware RTO is more accurate than Hardt's rule from probabilities, all seven tasks",
        table.mean(less("rto_accuracy", "hardt_scores", "accuracy")),
    )
    return found


def _other(**fields: Any) -> Any:
    return lambda run: fields


def _concentrated(number: Any) -> Any:
    return lambda run, result: number(run, result) if result["near_the_ends"] > 0.5 else None


def quick(store: Store, settings: Settings, skipped: Mapping[str, str]) -> list[Claim]:
    """Return what the quick run must show."""
    table = Table(store, settings, ("celeba6000",))
    missing = ", ".join(skipped) or "nothing"
    found = [Claim("every network of the quick run loads", FAILS if skipped else HOLDS, f"skipped: {missing}")]
    found += gap_claim(table, f"the mean test gap is at most {ALLOWED} × what chance leaves", protocol=HEAD)
    helped = pretraining(table, error_after)
    if helped is not None:
        holds = HOLDS if helped.value > 0 else FAILS
        found.append(
            Claim("pretraining helps after debiasing", holds, helped.text(2, 100, sign=True) + " points")
        )
    own = table.mean(gap_of("original"), task=TABLE_TASK)
    if own is not None:
        holds = HOLDS if own.value > 0.2 else FAILS
        found.append(
            Claim("attractiveness is biased before debiasing, by more than 0.2", holds, f"{own.value:.3f}")
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
