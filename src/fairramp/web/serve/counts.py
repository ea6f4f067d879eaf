"""Counts of all workers, in the text format of Prometheus.

Each worker writes its numbers to a file of its own, which is mapped into its memory: there are no locks, and a
killed worker blocks nobody. Whichever worker is asked adds up all files. Files of workers that have ended stay,
so counts never fall until the service stops.
"""

import mmap
import tempfile
from bisect import bisect_left
from pathlib import Path
from typing import Final

import numpy as np

#: Upper limits of the histogram of times, in seconds.
BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Answers of any status; there are no others.
STATUSES: Final = (200, 400, 401, 403, 404, 405, 408, 413, 415, 422, 500, 503)
#: Requests that reach none of the paths.
OTHER: Final = "(other)"

_PEOPLE: Final = {
    "decided": ("fairramp_people_total", "People who got an answer."),
    "random": ("fairramp_people_at_random_total", "People whose probability is neither 0 nor 1."),
    "unseen": (
        "fairramp_people_unseen_group_total",
        "People of a group that the rule was not fitted on, decided or refused.",
    ),
}


class Counts:
    """The counts of one worker, and the sums of all.

    Parameters
    ----------
    folder : str
        Where the workers of this service keep their files.
    paths : sequence of str
        The paths that requests are counted by.
    """

    def __init__(self, folder: str, paths: tuple[str, ...]) -> None:
        self._folder, self._paths = Path(folder), (*paths, OTHER)
        names: list[object] = [
            *((path, status) for path in self._paths for status in STATUSES),
            *((path, f"le {i}") for path in self._paths for i in range(len(BUCKETS) + 1)),
            *((path, "seconds") for path in self._paths),
            *_PEOPLE,
        ]
        self._place = {name: i for i, name in enumerate(names)}
        with tempfile.NamedTemporaryFile(dir=folder, prefix="worker-", delete=False) as file:
            file.truncate(8 * len(names))
            self._own = memoryview(mmap.mmap(file.fileno(), 8 * len(names))).cast("d")

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        for name, amount in (
            ((path, status), 1),
            ((path, f"le {bisect_left(BUCKETS, seconds)}"), 1),
            ((path, "seconds"), seconds),
        ):
            self._own[self._place[name]] += amount

    def people(self, *, decided: int = 0, random: int = 0, unseen: int = 0) -> None:
        """Count people."""
        for name, amount in (("decided", decided), ("random", random), ("unseen", unseen)):
            self._own[self._place[name]] += amount

    def text(self, info: dict[str, str]) -> str:
        """The sums over all workers, as a page for Prometheus; `info` describes the service."""
        files = [np.fromfile(path) for path in self._folder.glob("worker-*")]
        total = np.sum([part for part in files if len(part) == len(self._place)], axis=0)

        def of(*name: object) -> float:
            return float(total[self._place[name if len(name) > 1 else name[0]]])

        labels = ",".join(f'{name}="{value}"' for name, value in info.items())
        lines = [
            *_head("fairramp_service_info", "gauge", "The service: always 1."),
            f"fairramp_service_info{{{labels}}} 1",
            *_head("fairramp_workers_started_total", "counter", "Workers started so far, replacements included."),
            f"fairramp_workers_started_total {len(files)}",
            *_head("fairramp_requests_total", "counter", "Requests, by path and status."),
        ]
        for path in self._paths:
            lines += [
                f'fairramp_requests_total{{path="{path}",status="{status}"}} {of(path, status):.0f}'
                for status in STATUSES
                if of(path, status)
            ]
        for name, (metric, meaning) in _PEOPLE.items():
            lines += [*_head(metric, "counter", meaning), f"{metric} {of(name):.0f}"]
        metric = "fairramp_request_seconds"
        lines += _head(metric, "histogram", "Time from the head of a request to the end of its answer.")
        for path in self._paths:
            n = np.cumsum([of(path, f"le {i}") for i in range(len(BUCKETS) + 1)]).astype(int)
            if n[-1]:
                ends = [*map("{:g}".format, BUCKETS), "+Inf"]
                lines += [
                    f'{metric}_bucket{{path="{path}",le="{end}"}} {up_to}'
                    for end, up_to in zip(ends, n, strict=True)
                ]
                lines += [
                    f'{metric}_sum{{path="{path}"}} {of(path, "seconds"):.9g}',
                    f'{metric}_count{{path="{path}"}} {n[-1]}',
                ]
        return "\n".join([*lines, ""])


def _head(metric: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP {metric} {meaning}", f"# TYPE {metric} {kind}"]
