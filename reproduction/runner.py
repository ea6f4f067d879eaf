"""Run tasks in parallel: each process takes a task, computes its missing results, and reports progress."""

import signal
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from reproduction import classes, error_rates, methods, objectives, reductions, without
from reproduction.protocol import Scored, Task, train
from reproduction.store import Result, Store

REDUCTION = "reduction"
#: All methods but the reduction.
METHODS = methods.METHODS | objectives.METHODS | error_rates.METHODS


def all_methods() -> list[str]:
    """Return the names of all methods, the slow ones last."""
    return [*METHODS, REDUCTION, *without.METHODS, *classes.METHODS]


def key(store: Store, name: str) -> str:
    """Return the fingerprint of a method's results."""
    if name in without.METHODS:
        settings = without.SETTINGS[name]
    elif name in classes.METHODS:
        settings = classes.SETTINGS[name]
    else:
        settings = reductions.SETTINGS if name == REDUCTION else METHODS[name].settings
    return store.key([name, settings])


def current(store: Store, task: Task) -> dict[str, Result]:
    """Return the results of a task that match the current settings."""
    found = store.results(task)
    return {name: found[name] for name in all_methods() if found.get(name, {}).get("key") == key(store, name)}


def missing(store: Store, task: Task, names: Iterable[str], again: bool = False) -> list[str]:
    """Return the methods that a task has no result for; peers that failed are tried again."""
    done = {} if again else current(store, task)
    return [name for name in names if name not in done or "failed" in done[name]]


def scores(store: Store, task: Task, folder: str | None) -> Scored:
    """Return the stored scores of a task; train the classifier if there are none."""
    scored = store.scores(task)
    if scored is None:
        scored = train(task, folder, store.settings)
        store.add_scores(scored)
    return scored


def run_task(
    store: Store, task: Task, names: Sequence[str], folder: str | None, linearpost: str | None = None
) -> Task:
    """Compute and store the named methods of one task."""
    separate = [name for name in names if name in (*without.METHODS, *classes.METHODS)]
    for name in separate:  # these have scores of their own
        if name in classes.METHODS:
            result = classes.run(name, task, folder)
        else:
            result = without.run(name, task, folder, linearpost)
        store.add(task, name, key(store, name), result)
    if len(separate) == len(names):
        return task
    scored = scores(store, task, folder)
    for name in names:
        if name in separate:
            continue
        if name == REDUCTION:
            result = reductions.run(scored, folder, store.settings)
        else:
            result = methods.run_method(METHODS[name], scored)
        store.add(task, name, key(store, name), result)
    return task


def run_tasks(
    store: Store,
    tasks: Sequence[Task],
    names: Sequence[str],
    folder: str | None,
    jobs: int,
    again: bool = False,
    linearpost: str | None = None,
) -> None:
    """Run all tasks with missing results, `jobs` at a time."""
    lacking = {task: missing(store, task, names, again) for task in tasks}
    todo = {task: lack for task, lack in lacking.items() if lack}
    what = names[0] if len(names) == 1 else f"{len(names)} methods"
    print(f"{what}: {len(tasks) - len(todo)} of {len(tasks)} tasks done", flush=True)
    if not todo:
        return
    start = time.perf_counter()
    # Spawned: a forked process would inherit locks of the libraries' threads.
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_exit_silently_on_interrupt) as pool:
        futures = [pool.submit(run_task, store, task, lack, folder, linearpost) for task, lack in todo.items()]
        try:
            for count, future in enumerate(as_completed(futures), start=1):
                _say(future.result(), count, len(todo), time.perf_counter() - start)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _exit_silently_on_interrupt() -> None:
    """Let Ctrl-C end a worker at once and silently. This is safe because files are replaced atomically."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _say(task: Task, count: int, total: int, elapsed: float) -> None:
    left = elapsed / count * (total - count)
    line = f"{count:>4}/{total}  {task.data} {task.classifier} seed {task.seed}"
    print(f"{line:<32} {elapsed / 60:5.1f} min, about {left / 60:.1f} left", flush=True)
