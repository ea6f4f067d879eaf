"""Time limits of a connection.

uvicorn waits for as long as a client takes to send the head of a request or to read an answer. Here, the head has
the time limit, from its first byte or from the connection on. The body has the same time again (see `service`).
Twice the limit after the head, the answer must have been read. Between requests, uvicorn's own limit for idle
connections applies.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class TimedProtocol(H11Protocol):
    """HTTP/1.1 with time limits, and errors that are answered in JSON."""

    _timer: asyncio.TimerHandle | None = None
    _timed: object = None

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self._time(self, self.app.timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._time(None, 0)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read some of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Get ready for the next request."""
        super().on_response_complete()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is not valid HTTP."""
        if not self._answering or not self.cycle.response_started:
            self._refuse(400, "The request is not valid HTTP.")
        self.transport.close()

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _reading(self) -> bool:
        """Whether the client has sent some of a request, but not all."""
        return self.conn.their_state is not h11.IDLE or bool(self.conn.trailing_data[0])

    def _watch(self) -> None:
        if self._answering:
            self._time(self.cycle, 2 * self.app.timeout)
        elif self._reading:
            self._time(self, self.app.timeout)
        else:
            self._time(None, 0)

    def _time(self, what: object, seconds: float) -> None:
        """Start the clock for something new; let it run for what is timed already."""
        if what is self._timed:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timed = what
        self._timer = None if what is None else self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        if self._answering:
            self.transport.abort()
            return
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._refuse(408, "The request was not complete within the time limit.")
        self.transport.close()

    def _refuse(self, status: int, sentence: str) -> None:
        self.transport.write(self.app.raw(status, sentence))
