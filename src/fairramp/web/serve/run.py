"""Start and stop the processes of a service.

One worker runs in this process. Several are processes of their own that share one listening socket: the system
gives each new connection to a worker that is free. A worker that ends is replaced; if this process ends, even by
force, its workers end too.
"""

import math
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import wait
from typing import Any

import uvicorn

from fairramp.errors import FairrampError
from fairramp.web.listen import BACKLOG
from fairramp.web.serve.protocol import TimedProtocol
from fairramp.web.serve.service import Service, Settings, log

#: Seconds that an idle connection is kept.
_KEEP_ALIVE = 5
#: Seconds between two looks for a signal.
_LOOK = 0.2
#: This many workers in a row that end within this many seconds end the service.
_FAILURES, _SOON = 5, 5.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(settings: Settings, bound: socket.socket, workers: int) -> None:
    """Serve until SIGINT or SIGTERM; then finish the requests in flight and return."""
    if workers == 1:
        _work(settings, bound, workers)
    else:
        _supervise(settings, bound, workers)


def _work(settings: Settings, bound: socket.socket, workers: int) -> None:
    """Serve in this process, one of several workers."""
    config = uvicorn.Config(
        partial(Service, settings),
        factory=True,
        http=TimedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=math.ceil(2 * settings.timeout),
        backlog=BACKLOG,
        workers=workers,  # on Windows, decides which event loop can share a socket
    )
    server = uvicorn.Server(config)
    _on_signals(lambda *_: setattr(server, "should_exit", True))
    server.run(sockets=[bound])


def _supervise(settings: Settings, bound: socket.socket, workers: int) -> None:
    """Keep this many workers running."""
    stopped = threading.Event()
    _on_signals(lambda *_: stopped.set())
    # Forking is unsafe in a process with threads, and numerical libraries start some.
    context = multiprocessing.get_context("spawn")

    def started() -> tuple[Any, float]:
        process = context.Process(target=_worker, args=(settings, bound, workers), daemon=True)
        process.start()
        return process, time.monotonic()

    running = [started() for _ in range(workers)]
    failures = 0
    try:
        while not stopped.is_set():
            wait([process.sentinel for process, _ in running], _LOOK)
            for i, (process, since) in enumerate(running):
                if process.is_alive() or stopped.is_set():
                    continue
                failures = failures + 1 if time.monotonic() - since < _SOON else 0
                if failures >= _FAILURES:
                    raise FairrampError(
                        "{n} workers in a row ended right after their start",
                        remedy="the lines above say why; check the memory of this machine",
                        n=failures,
                    )
                log(f"worker {process.pid} ended with exit code {process.exitcode} and is replaced")
                running[i] = started()
    finally:
        _end([process for process, _ in running], 2 * settings.timeout + _KEEP_ALIVE)


def _end(processes: list[Any], seconds: float) -> None:
    """Ask workers to finish their requests, and wait for them."""
    for process in processes:
        process.terminate()
    until = time.monotonic() + seconds
    for process in processes:
        process.join(max(until - time.monotonic(), 0))
        if process.is_alive():
            process.kill()
            process.join()


def _worker(settings: Settings, bound: socket.socket, workers: int) -> None:
    """Serve in a process of its own, until its parent ends."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, daemon=True).start()
    _work(settings, bound, workers)


def _on_signals(handler: Callable[..., Any]) -> None:
    for number in _SIGNALS:
        signal.signal(number, handler)
