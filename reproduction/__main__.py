"""Command line: `python -m reproduction run`, `python -m reproduction page`, `python -m reproduction quick`."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from fairramp.errors import FairrampError
from reproduction import claims, classes, classes_page, page, without, without_page
from reproduction.protocol import CLASSIFIERS, DATA, FULL, QUICK, Task, load
from reproduction.results import Results
from reproduction.runner import REDUCTION, all_methods, run_tasks
from reproduction.store import Store

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "reproduction/results"
DOCS = ROOT / "docs"


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction", description="Reproduce the paper's tables and figures on tabular data."
    )
    commands = parser.add_subparsers(dest="command", required=True)

    run = commands.add_parser("run", help="compute missing results, then write the page")
    run.add_argument("--seeds", type=int, default=20, help="number of seeds (20)")
    run.add_argument(
        "--reduction-seeds", type=int, default=10, help="number of seeds for the slow reductions (10)"
    )
    run.add_argument("--methods", nargs="+", choices=all_methods(), help="only these methods, recomputed")
    run.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    run.add_argument("--classifiers", nargs="+", choices=CLASSIFIERS, default=CLASSIFIERS)
    quick = commands.add_parser(
        "quick", help="run two seeds in a temporary folder; fails if a claim does not hold"
    )
    for command in (run, quick):
        command.add_argument("--folder", help="folder with UCI's raw files (default: download them)")
        command.add_argument("--linearpost", help="folder with LinearPost's repository (default: leave it out)")
        command.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="number of parallel processes")
    commands.add_parser("page", help="write docs/reproduction.md from the stored results")
    return parser.parse_args(arguments)


def tasks(seeds: int, data: tuple[str, ...] = DATA, classifiers: tuple[str, ...] = CLASSIFIERS) -> list[Task]:
    """Return all tasks, seed by seed, so that an interrupted run has complete seeds."""
    return [Task(name, kind, seed) for seed in range(seeds) for name in data for kind in classifiers]


def check_data(folder: str | None) -> None:
    """Load both datasets once, so that missing or damaged files stop the run before it starts."""
    for name in DATA:
        load(name, folder)


def run(options: argparse.Namespace) -> int:
    """Compute missing results and write the page."""
    check_data(options.folder)
    store = Store(RESULTS, FULL)
    chosen = tuple(options.data), tuple(options.classifiers)
    todo = tasks(options.seeds, *chosen)
    cheap = [name for name in all_methods() if name not in (REDUCTION, *without.METHODS, *classes.METHODS)]
    wanted = options.methods or all_methods()
    again = options.methods is not None
    run_tasks(store, todo, [name for name in cheap if name in wanted], options.folder, options.jobs, again)
    if REDUCTION in wanted:
        slow = tasks(min(options.reduction_seeds, options.seeds), *chosen)
        run_tasks(store, slow, [REDUCTION], options.folder, options.jobs, again)
    if (without.DATA in options.data) and (without.CLASSIFIER in options.classifiers):
        run_without(store, min(without.SEEDS, options.seeds), wanted, options, again)
    if classes.CLASSIFIER in options.classifiers:
        run_classes(store, min(classes.SEEDS, options.seeds), wanted, options.data, options, again)
    page.write(store, DOCS)
    return 0


def run_without(
    store: Store, seeds: int, wanted: Sequence[str], options: argparse.Namespace, again: bool = False
) -> None:
    """Compute missing results without the group; LinearPost needs a folder."""
    names = [name for name in without.METHODS if name in wanted]
    if options.linearpost is None:
        names = [name for name in names if name not in without.LINEARPOST]
    todo = tasks(seeds, (without.DATA,), (without.CLASSIFIER,))
    if names:
        run_tasks(store, todo, names, options.folder, options.jobs, again, options.linearpost)


def run_classes(
    store: Store,
    seeds: int,
    wanted: Sequence[str],
    data: Sequence[str],
    options: argparse.Namespace,
    again: bool = False,
) -> None:
    """Compute missing results with more than two classes, for the groups that each dataset has."""
    for each in data:
        names = [name for name in classes.methods_of(each) if name in wanted]
        if names:
            run_tasks(
                store, tasks(seeds, (each,), (classes.CLASSIFIER,)), names, options.folder, options.jobs, again
            )


def quick(options: argparse.Namespace) -> int:
    """Run two seeds without the slow methods, and check the claims."""
    check_data(options.folder)
    start = time.perf_counter()
    folder = Path(tempfile.mkdtemp(prefix="fairramp-reproduction-"))
    store = Store(folder / "results", QUICK)
    peers_of_full_run = {"holisticai", REDUCTION, *without.METHODS, *classes.METHODS}
    names = [name for name in all_methods() if name not in peers_of_full_run]
    run_tasks(store, tasks(claims.QUICK_SEEDS), names, options.folder, options.jobs)
    logistic = tasks(1, classifiers=("lr",))
    run_tasks(store, logistic, [REDUCTION], options.folder, options.jobs)
    run_without(store, without.QUICK_SEEDS, (*without.OURS, *without.LINEARPOST), options)
    run_classes(store, classes.QUICK_SEEDS, (*classes.OURS, *classes.FAIRLEARN), DATA, options)
    page.write(store, folder)
    print(f"page: {folder / 'reproduction.md'} ({time.perf_counter() - start:.0f} s)")
    results = Results(store)
    return claims.report(claims.qualitative(store) + without_page.quick(results) + classes_page.quick(results))


def main() -> int:
    """Run one command."""
    options = parse(sys.argv[1:])
    try:
        if options.command == "run":
            return run(options)
        if options.command == "quick":
            return quick(options)
        page.write(Store(RESULTS, FULL), DOCS)
    except FairrampError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to continue.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
