"""Process long arrays in blocks, on all cores.

A pass over n rows is cut into blocks of a fixed size. They run on as many threads as there are cores, including
the calling one (NumPy releases the interpreter lock in its loops). Results come back in order, so sums do not
depend on the number of cores. A thread pool would do the same, but takes longer to start than deciding a million
rows.
"""

import os
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

#: Rows per block: 2 MB of float64. Shorter blocks stay in faster cache but make threads wait for each other more
#: often between NumPy calls; in measurements, both costs are small at this size.
BLOCK = 1 << 18

#: Looked up once, because it takes as long as starting a thread.
CORES = os.cpu_count() or 1

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_blocks(work: Callable[[int, int], Result], n_rows: int, size: int = 0) -> list[Result]:
    """Return the results of ``work(start, stop)`` for each block of n rows, in row order.

    If blocks fail, the exception of the first one, in row order, is raised.
    """
    size = max(size, BLOCK)
    return map_all(lambda start: work(start, min(start + size, n_rows)), range(0, n_rows, size))


def map_all(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return the results of ``work(item)``, in order; if several fail, the exception of the first is raised."""
    results: dict[int, Result] = {}
    failures: dict[int, BaseException] = {}
    queue = iter(enumerate(items))  # next() is atomic under the interpreter lock

    def run() -> None:
        for i, item in queue:
            if failures:
                break
            try:
                results[i] = work(item)
            except BaseException as failure:
                failures[i] = failure

    helpers = [threading.Thread(target=run) for _ in range(min(CORES, len(items)) - 1)]
    for helper in helpers:
        helper.start()
    run()
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[min(failures)]
    return [results[i] for i in range(len(items))]
