"""Long arrays in blocks, on all cores.

A pass over n rows is cut into blocks of a fixed size. They run on as many threads as there are cores, the
calling one among them (NumPy lets go of the interpreter lock in its loops), and their results come back in
order, so that sums do not depend on the number of cores. A thread pool would do the same, but takes longer
to start than a million rows to decide.
"""

import os
import threading
from collections.abc import Callable
from typing import TypeVar

#: Rows per block: 2 MB of float64. Shorter blocks stay in faster cache but make the threads wait for each
#: other more often, between NumPy calls; measured, this is where both costs are small.
BLOCK = 1 << 18

#: Asked once: the answer takes as long as a thread.
CORES = os.cpu_count() or 1

Result = TypeVar("Result")


def map_blocks(work: Callable[[int, int], Result], n_rows: int, size: int = 0) -> list[Result]:
    """Results of ``work(start, stop)`` for each block of n rows, in the order of the rows.

    The first block that fails, in that order, fails the whole with its own exception.
    """
    size = max(size, BLOCK)
    starts = range(0, n_rows, size)
    results: dict[int, Result] = {}
    failures: dict[int, BaseException] = {}
    queue = iter(starts)  # handing out the next item is one step under the interpreter lock

    def run() -> None:
        for start in queue:
            if failures:
                break
            try:
                results[start] = work(start, min(start + size, n_rows))
            except BaseException as failure:
                failures[start] = failure

    helpers = [threading.Thread(target=run) for _ in range(min(CORES, len(starts)) - 1)]
    for helper in helpers:
        helper.start()
    run()
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[min(failures)]
    return [results[start] for start in starts]
