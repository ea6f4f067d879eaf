"""Command line: `python -m reproduction.vision plan | backbones | run | quick | page`."""

import argparse
import ctypes
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fairramp.errors import FairrampError
from reproduction.vision import backbones, celeba, claims, coco, page
from reproduction.vision.data import Images
from reproduction.vision.plan import PLANS, WHOLE, Run, described
from reproduction.vision.runner import FULL, Settings, Workshop, run_all
from reproduction.vision.store import Store

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "reproduction/vision/results.jsonl"
CACHE = ROOT / ".cache/vision/features"
DOCS = ROOT / "docs"

#: The quick run: few images, one network with and without pretraining, one from npm, the small network once.
QUICK_IMAGES = 600
QUICK_BACKBONES = ("EfficientNet-Lite0", "EfficientNet-Lite0/random", "MobileNet-0.25")
QUICK_SEEDS = 10

#: Options of glibc's mallopt.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction.vision", description="Reproduce the paper's vision experiments."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    planned = commands.add_parser("plan", help="print every run without running it")
    run = commands.add_parser("run", help="compute missing runs, then write the page")
    for command in (planned, run):
        command.add_argument(
            "--plan",
            choices=PLANS,
            nargs="+",
            help="which runs (default: those whose data are given; for plan: all)",
        )
        command.add_argument("--seeds", type=int, help="number of seeds (paper: 1, subset: 10)")
    run.add_argument("--celeba", help="folder with CelebA's official files")
    run.add_argument("--coco", help="folder with COCO's 2017 annotations and images")
    run.add_argument("--weights", type=Path, help="folder with weight files, see `backbones`")
    run.add_argument("--download", action="store_true", help="let Keras and timm download weights")
    run.add_argument("--protocol", choices=("head", "whole"), help="only linear heads, or only whole networks")
    run.add_argument("--store", type=Path, default=RESULTS, help="results file")
    quick = commands.add_parser(
        "quick", help=f"run {QUICK_IMAGES} images in a temporary folder; fails if a claim does not hold"
    )
    for command in (run, quick):
        command.add_argument("--subset", help="folder with images.tar, 6,000 images of CelebA")
        command.add_argument("--attributes", help="CelebA's list_attr_celeba.txt (default: download a copy)")
        command.add_argument(
            "--cache", type=Path, default=CACHE, help="folder for cached features, about 30 MB each"
        )
        command.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="number of parallel processes")
    written = commands.add_parser("page", help="write docs/reproduction-vision.md from the stored runs")
    written.add_argument("--store", type=Path, default=RESULTS, help="results file")
    commands.add_parser("backbones", help="print all known networks")
    return parser.parse_args(arguments)


#: Default number of seeds of each plan.
SEEDS = {"paper": 1, "subset": 10}


def planned(names: list[str], seeds: int | None) -> list[Run]:
    """Return the runs of some plans."""
    return [run for name in names for run in PLANS[name](seeds or SEEDS[name])]


def print_plan(options: argparse.Namespace) -> int:
    """Print every run, and the number of runs of each kind."""
    names = options.plan or list(PLANS)
    for run in planned(names, options.seeds):
        print(run)
    for name in names:
        print(described(planned([name], options.seeds), name))
    return 0


def print_backbones() -> int:
    """Print the registry."""
    for b in backbones.REGISTRY.values():
        print(f"{b.name:<26} {b.pretraining:<14} {b.parameters:>6.1f} M  {b.library:<5}  {b.model}")
        file = f"; file {b.file}" if b.file else ""
        print(f"{'':<26} weights: {b.weights}{file}")
    return 0


def sources(options: argparse.Namespace) -> dict[str, Callable[[], Images]]:
    """Return a reader for each given dataset."""
    found: dict[str, Callable[[], Images]] = {}
    if getattr(options, "celeba", None):
        found["celeba"] = lambda: celeba.read_celeba(options.celeba)
    if getattr(options, "coco", None):
        found["coco"] = lambda: coco.read_coco(options.coco)
    if options.subset:
        found["celeba6000"] = lambda: celeba.read_subset(options.subset, options.attributes)
    return found


def run(options: argparse.Namespace) -> int:
    """Compute missing runs and write the page."""
    readers = sources(options)
    if not readers:
        raise FairrampError("No images were given: pass --celeba, --coco or --subset with a folder.")
    needs = {"paper": {"celeba", "coco"}, "subset": {"celeba6000"}}
    names = options.plan or [name for name in PLANS if needs[name] & set(readers)]
    runs = planned(names, options.seeds)
    if options.protocol:
        runs = [one for one in runs if one.protocol == options.protocol]
    for library in ("error_parity", "holisticai"):  # as a missing library would be stored as its failure
        if find_spec(library) is None:
            raise FairrampError(
                "{library} is not installed, but its results are part of a run",
                remedy="run `pip install -r reproduction/requirements-peers.txt`",
                library=library,
            )
    _prepare_torch(options.jobs)
    store = Store(options.store)
    workshop = Workshop(readers, options.cache, FULL, options.weights, options.download)
    run_all(runs, workshop, store, options.jobs)
    if options.store == RESULTS:
        print(f"page: {page.write(store, DOCS)}")
    return 0


def quick(options: argparse.Namespace) -> int:
    """Run a small part of the subset plan, and check the claims."""
    if not options.subset or not (Path(options.subset) / "images.tar").is_file():
        print(f"skipped: reproduce-vision-quick: no images.tar in {options.subset or 'any folder given'}")
        return 0
    start = time.perf_counter()
    _prepare_torch(options.jobs)
    folder = Path(tempfile.mkdtemp(prefix="fairramp-vision-"))
    settings = quick_settings()
    readers = {"celeba6000": lambda: few(celeba.read_subset(options.subset, options.attributes))}
    workshop = Workshop(readers, folder / "features", settings)
    store = Store(folder / "results.jsonl")
    run_all(quick_runs(), workshop, store, options.jobs)
    path = page.write(store, folder, settings)
    print(f"page: {path} ({time.perf_counter() - start:.0f} s)")
    return claims.report(claims.quick(store, settings, workshop.skipped))


def quick_settings() -> Settings:
    """Return the full settings with one view and smaller images for the small network."""
    return replace(FULL, views=1, small=replace(FULL.small, pixels=32, most_epochs=8))


def quick_runs() -> list[Run]:
    """Return heads on every task, and one small network."""
    runs = PLANS["subset"](QUICK_SEEDS)
    heads = [run for run in runs if run.backbone in QUICK_BACKBONES and run.fraction == 1.0]
    small = [run for run in runs if run.protocol == WHOLE and run.fraction == 1.0 and run.task == "Attractive"]
    return [small[0], *heads]


def few(images: Images) -> Images:
    """Return the images of the quick run: the first ones, whose attributes are certain."""
    taken = images.take(np.arange(min(QUICK_IMAGES, len(images))))
    return replace(taken, facts=images.facts | {"images": len(taken)})


def _prepare_torch(jobs: int) -> None:
    """Let torch use as many threads for features as there are parallel processes, and keep freed memory.

    Each layer frees megabytes that the next one allocates again. By default glibc returns them to the system,
    which clears them each time; that takes longer than the layer itself.
    """
    try:
        import torch
    except ImportError:
        return  # loading a network reports it
    torch.set_num_threads(jobs)
    with suppress(OSError, AttributeError):  # other C libraries have no mallopt
        tune_memory = ctypes.CDLL("libc.so.6").mallopt
        tune_memory(M_MMAP_MAX, 0)
        tune_memory(M_TRIM_THRESHOLD, 2**31 - 1)


def main() -> int:
    """Run one command."""
    options = parse(sys.argv[1:])
    try:
        if options.command == "plan":
            return print_plan(options)
        if options.command == "backbones":
            return print_backbones()
        if options.command == "run":
            return run(options)
        if options.command == "quick":
            return quick(options)
        print(f"page: {page.write(Store(options.store), DOCS)}")
    except FairrampError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:  # `plan | head`
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to continue.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
