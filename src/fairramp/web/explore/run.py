"""Run a web application on a socket of this machine until it is stopped."""

import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn


class _Server(uvicorn.Server):
    """A server that says when it has started, and ends quietly instead of raising the signal again."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run(app: Any, sock: socket.socket, started: Callable[[], None], **options: Any) -> None:
    """Serve an application until Ctrl+C or SIGTERM; nothing about requests is logged.

    `started` is called when requests are answered and signals end the server.
    """
    config = uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=3,
        **options,
    )
    _Server(config, started).run(sockets=[sock])
