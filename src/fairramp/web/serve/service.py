"""The service: an ASGI application with a few fixed paths.

A request passes the guards, then is answered; whatever goes wrong is a `Refusal`, which is answered as JSON:

    {"error": "one sentence", "fingerprint": "…"}

Logs have the method, the path, the status and the time of a request. Paths and methods are logged only if they
are ours, because others may contain anything.
"""

import asyncio
import contextlib
import hmac
import json
import re
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fairramp._version import __version__
from fairramp.data.documents import parsed
from fairramp.errors import InputError
from fairramp.rule.class_rule import ClassRule
from fairramp.rule.rule import Rule
from fairramp.web.serve.counts import OTHER, Counts
from fairramp.web.serve.openapi import described, example_person
from fairramp.web.serve.page import page, policy
from fairramp.web.serve.people import People, Unfit

#: Names of this machine, which a request without a token must be addressed to.
_LOCAL = ("127.0.0.1", "localhost", "[::1]")
#: Bytes of a body above the limit that are read and thrown away: clients read no answer while they write.
_DRAINED = 64 << 20
_JSON = "application/json"


@dataclass(frozen=True)
class Settings:
    """What a service needs; workers receive it through a pipe.

    Attributes
    ----------
    rule : Rule or ClassRule
        The rule.
    key, token : str or None
        The key of decisions, and what requests must present.
    folder : str
        Where workers count.
    host : str
        The address that the service listens on.
    max_body, max_people : int
        The largest body, in bytes, and the most people in one request.
    timeout : float
        Seconds that a client has to send a request.
    concurrency : int
        Requests to decide that a worker handles at once.
    quiet : bool
        Whether requests are not logged.
    """

    rule: Rule | ClassRule
    key: str | None = field(repr=False)
    token: str | None = field(repr=False)
    folder: str
    host: str
    max_body: int
    max_people: int
    timeout: float
    concurrency: int
    quiet: bool


class Refusal(Exception):  # noqa: N818
    """A request that is not answered as asked: a status, a sentence and perhaps headers."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.headers = status, {name.replace("_", "-"): value for name, value in headers.items()}


class Service:
    """The ASGI application."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.timeout = settings.timeout
        self._people = People(settings.rule, settings.key)
        self._people.decide([example_person(self._people)])  # loads what a first decision needs
        self._fingerprint = settings.rule.fingerprint
        description = described(
            self._people,
            self._fingerprint,
            max_people=settings.max_people,
            has_token=settings.token is not None,
        )
        shown = page(description, settings.rule)
        self._texts = {
            "/openapi.json": (json.dumps(description, ensure_ascii=False, indent=1), _JSON, {}),
            "/docs": (shown, "text/html", {"content-security-policy": policy(shown)}),
        }
        self._paths: dict[str, tuple[str, Callable[[Request], Awaitable[Response]]]] = {
            "/decide": ("POST", self._decide),
            "/decide/batch": ("POST", self._decide_batch),
            "/health": ("GET", self._health),
            "/metrics": ("GET", self._metrics),
            "/openapi.json": ("GET", self._text),
            "/docs": ("GET", self._text),
        }
        self._counts = Counts(settings.folder, tuple(self._paths))
        self._busy = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        path = scope["path"] if scope["path"] in self._paths else OTHER
        self._busy += 1
        try:
            response = await self._answered(Request(scope, receive), path)
            await response(scope, receive, send)
        finally:
            self._busy -= 1
        self._done(scope["method"], path, response.status_code, time.perf_counter() - started)

    def raw(self, status: int, sentence: str) -> bytes:
        """A refusal as bytes, for a connection without a sound request, which it ends."""
        self._done(OTHER, OTHER, status, 0.0)
        body = self._refusal(sentence)
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {_JSON}\r\n"
        return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body

    async def _answered(self, request: Request, path: str) -> Response:
        try:
            self._check(request, path)
            return await self._paths[path][1](request)
        except Refusal as refusal:
            return Response(self._refusal(str(refusal)), refusal.status, refusal.headers, _JSON)
        except ClientDisconnect:  # nobody reads this answer
            return Response(self._refusal("The request ended early."), 400, media_type=_JSON)
        except Exception as error:  # neither the message nor the values that led to it are logged
            frames = traceback.extract_tb(error.__traceback__)
            places = " ".join(f"{frame.filename}:{frame.lineno}" for frame in frames)
            log(f"{type(error).__name__} at {places}")
            return Response(
                self._refusal("This is a bug in fairramp; please report it, with the line in the log."),
                500,
                media_type=_JSON,
            )

    def _check(self, request: Request, path: str) -> None:
        """The guards, in their order."""
        token = self._settings.token
        if "content-length" in request.headers and "transfer-encoding" in request.headers:
            # A proxy that reads the other length would take a part of the body for the next request.
            raise Refusal(
                400, "The request has two lengths: Content-Length and Transfer-Encoding.", connection="close"
            )
        if token is None and not self._is_own(request.headers.get("host", "")):
            raise Refusal(403, "The host of the request must be 127.0.0.1 or localhost.")
        if token is not None and path != "/health":
            scheme, _, given = request.headers.get("authorization", "").partition(" ")
            right = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), token.encode())
            if scheme.lower() != "bearer" or not right:
                raise Refusal(
                    401,
                    "The request needs the header Authorization: Bearer TOKEN, with the token of the service.",
                    www_authenticate="Bearer",
                )
        if path == OTHER:
            raise Refusal(404, f"There is nothing at this path; the paths are {', '.join(self._paths)}.")
        method = self._paths[path][0]
        if request.method != method:
            raise Refusal(405, f"{path} takes {method} only.", allow=method)
        if method == "POST" and self._busy > self._settings.concurrency:
            raise Refusal(503, "The service is busy; try again in a second.", retry_after="1")

    def _is_own(self, host: str) -> bool:
        """Whether a request was addressed to this machine, and not to a name that somebody else points at it."""
        name = re.sub(r":\d*\Z", "", host).lower()
        return name in _LOCAL or name == self._settings.host

    def _refusal(self, sentence: str) -> bytes:
        return json.dumps({"error": sentence, "fingerprint": self._fingerprint}).encode()

    def _done(self, method: str, path: str, status: int, seconds: float) -> None:
        self._counts.request(path, status, seconds)
        if not self._settings.quiet:
            known = method if method in ("GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS") else OTHER
            log(f"{known} {path} {status} {1000 * seconds:.1f} ms")

    # Paths ------------------------------------------------------------------------------------

    async def _decide(self, request: Request) -> Response:
        person = await self._content(request)
        (answer,) = self._decided([person], None)
        return self._json(answer)

    async def _decide_batch(self, request: Request) -> Response:
        content, most = await self._content(request), self._settings.max_people
        if not isinstance(content, dict) or content.keys() != {"people"}:
            raise Refusal(422, 'The body must be an object with the field "people" and no other.')
        people = content["people"]
        if not isinstance(people, list) or not 0 < len(people) <= most:
            came = f", got {len(people):,}" if isinstance(people, list) else ""
            raise Refusal(422, f'"people" must be a list of 1 to {most:,} people{came}.')
        return self._json({"answers": self._decided(people, "people")})

    def _decided(self, people: list[Any], place: str | None) -> list[dict[str, Any]]:
        try:
            found = self._people.decide(people, place)
        except Unfit as error:
            self._counts.people(unseen=error.unseen)
            raise Refusal(422, str(error)) from None
        self._counts.people(decided=len(people), random=found.random, unseen=found.unseen)
        return found.answers

    async def _health(self, _: Request) -> Response:
        return self._json({"status": "ok", "decides": self._people.has_ids, "version": __version__})

    async def _metrics(self, _: Request) -> Response:
        text = self._counts.text({"fingerprint": self._fingerprint, "version": __version__})
        return Response(text, media_type="text/plain; version=0.0.4")

    async def _text(self, request: Request) -> Response:
        text, kind, headers = self._texts[request.scope["path"]]
        return self._response(text, kind, **headers)

    def _json(self, content: dict[str, Any]) -> Response:
        return self._response(msgspec.json.encode(content | {"fingerprint": self._fingerprint}), _JSON)

    def _response(self, content: str | bytes, kind: str, **headers: str) -> Response:
        kept = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        return Response(content, headers=kept | headers, media_type=kind)

    # Bodies -----------------------------------------------------------------------------------

    async def _content(self, request: Request) -> Any:
        """The JSON of a body, read within the limits."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            raise Refusal(415, "The body must be JSON, with the header Content-Type: application/json.")
        body = await self._body(request)
        try:
            return parsed(body.decode("utf-8"))
        except UnicodeDecodeError:
            why = "it is not UTF-8 text"
        except InputError as error:
            raise Refusal(400, str(error)) from None
        except json.JSONDecodeError as error:
            why = str(error) if body.strip() else "it is empty"
        except RecursionError:
            why = "it is nested too deeply"
        except ValueError:  # Python reads no integers of thousands of digits
            why = "a number has too many digits"
        raise Refusal(400, f"The body is not valid JSON: {why}.")

    async def _body(self, request: Request) -> bytes:
        most = self._settings.max_body
        large = Refusal(
            413, f"The body must have at most {most:,} bytes; send fewer people at once.", connection="close"
        )
        stated = request.headers.get("content-length", "0")
        if "expect" in request.headers and (not stated.isdecimal() or int(stated) > most):
            raise large  # the client waits for this answer before it sends the body
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.timeout):
                async for part in request.stream():
                    size += len(part)
                    if size <= most:
                        parts.append(part)
                    else:
                        parts.clear()
                        if size > most + _DRAINED:
                            break
        except TimeoutError:
            raise Refusal(
                408, "The request was not complete within the time limit.", connection="close"
            ) from None
        if size > most:
            raise large
        return b"".join(parts)


def log(text: str) -> None:
    """Write a line to the log, which is stderr."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with contextlib.suppress(OSError, ValueError):  # nobody reads the log any more
        sys.stderr.write(f"{stamp} {text}\n")
        sys.stderr.flush()
