"""Plans: lists of runs, each of one network on one task with a fraction of the training rows and one seed.

    768  =  16 pretrained networks  ×  12 tasks (7 of CelebA, 5 of COCO)  ×  4 downstream fractions

`PLANS` has the paper's own runs, and those on the subset of CelebA with public weights. The order of runs is
fixed, so a store that was interrupted and continued equals one that was not.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from reproduction.vision import celeba, coco
from reproduction.vision.backbones import FIGURE_5, FROZEN, PAPER, REGISTRY, SMALL, TABLE, Backbone

FRACTIONS = (0.1, 0.2, 0.5, 1.0)
TASKS = {"celeba": celeba.TASKS, "coco": coco.TASKS, "celeba6000": celeba.TASKS}
#: The task of Tables 1 and 2, and of Figure 2.
TABLE_TASK = "Attractive"
HEAD, WHOLE = "head", "whole"
#: Fewer seeds for whole networks: even a small one takes long to train.
WHOLE_SEEDS = 3
#: A larger network that is fine-tuned on the 6,000 images.
TUNED = "MN/I"


@dataclass(frozen=True)
class Run:
    """One network, trained and debiased.

    Attributes
    ----------
    protocol : {"head", "whole"}
        Train a linear head on frozen features, or the whole network.
    backbone, data, task : str
        Name of a network in the registry, of a dataset, and of one of its tasks.
    fraction : float
        Fraction of the training rows.
    seed : int
        Seed of the split and of training.
    """

    protocol: str
    backbone: str
    data: str
    task: str
    fraction: float
    seed: int

    def __str__(self) -> str:
        what = f"{self.protocol:<5}  {self.backbone:<25}  {self.data:<10}  {self.task:<13}"
        return f"{what}  {self.fraction:>4.0%}  seed {self.seed}"

    @property
    def network(self) -> Backbone:
        """The network's entry in the registry."""
        return REGISTRY[self.backbone]

    def as_dict(self) -> dict[str, str | float | int]:
        """Return the fields that are stored."""
        return asdict(self)


def heads(backbones: Iterable[Backbone], data: Sequence[str], seeds: int) -> list[Run]:
    """Return the runs of linear heads on all tasks of some datasets, seed by seed."""
    names = [backbone.name for backbone in backbones]
    return [
        Run(HEAD, name, source, task, fraction, seed)
        for seed in range(seeds)
        for name in names
        for source in data
        for task in TASKS[source]
        for fraction in FRACTIONS
    ]


def paper(seeds: int = 1) -> list[Run]:
    """Return the paper's own runs: its 768, Figure 5's, and the four networks of Tables 1 and 2."""
    data = ("celeba", "coco")
    table = [Run(WHOLE, b.name, "celeba", TABLE_TASK, 1.0, seed) for seed in range(seeds) for b in TABLE]
    return [*heads(PAPER, data, seeds), *heads(FIGURE_5, data, seeds), *table]


def subset(seeds: int = 1) -> list[Run]:
    """Return the runs on 6,000 images with public weights: the small network, heads, and MobileNet as a whole."""
    some = range(min(seeds, WHOLE_SEEDS))
    small = [
        Run(WHOLE, SMALL.name, "celeba6000", task, fraction, seed)
        for seed in some
        for task in celeba.TASKS
        for fraction in FRACTIONS
    ]
    tuned = [Run(WHOLE, TUNED, "celeba6000", TABLE_TASK, 1.0, seed) for seed in some]
    return [*small, *heads(FROZEN, ("celeba6000",), seeds), *tuned]


PLANS = {"paper": paper, "subset": subset}


def described(runs: Sequence[Run], name: str) -> str:
    """Return the number of runs of each kind, one per line."""
    figure_5 = {backbone.name for backbone in FIGURE_5}
    kinds = Counter(
        "whole networks" if run.protocol == WHOLE else "heads, Figure 5" if run.backbone in figure_5 else "heads"
        for run in runs
    )
    lines = [f"{name}: {len(runs):,} runs"]
    for kind, count in kinds.items():
        lines.append(f"  {count:>6,}  {kind}")
    return "\n".join(lines)
