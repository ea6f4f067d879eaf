"""Long arrays in blocks that stay in the cache, on all cores.

A pass over n rows is cut into chunks of fixed size, each chunk into blocks. Chunks run on a thread pool
(NumPy lets go of the interpreter lock in its loops) and their results come back in order, so that sums
do not depend on the number of cores.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["BLOCK", "blocks", "map_chunks"]

#: Rows per block: 512 kB of float64. Shorter ones stay in faster cache but make threads wait for each
#: other between NumPy calls; measured, this is where both costs are small.
BLOCK = 1 << 16
#: Rows per chunk: long enough that starting one costs nothing beside it.
CHUNK = 1 << 18

Result = TypeVar("Result")


def map_chunks(work: Callable[[int, int], Result], n_rows: int) -> Iterator[Result]:
    """Results of ``work(start, stop)`` for each chunk of n rows, in the order of the rows."""
    starts = range(0, n_rows, CHUNK)
    stops = [min(start + CHUNK, n_rows) for start in starts]
    workers = min(os.cpu_count() or 1, len(starts))
    if workers <= 1:
        yield from map(work, starts, stops)
    else:
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(work, starts, stops)


def blocks(start: int, stop: int, size: int = BLOCK) -> Iterator[tuple[int, int]]:
    """Cut the rows start … stop − 1 into blocks."""
    for first in range(start, stop, size):
        yield first, min(first + size, stop)
