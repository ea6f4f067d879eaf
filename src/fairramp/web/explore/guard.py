"""Who may ask the explorer: only its own page, on this machine, with the token in its address.

Host      this machine, so that no foreign name can stand for it (DNS rebinding)
token     the first part of the path, compared in constant time
Origin, Sec-Fetch-Site    the page itself, so that no other page can send requests
size      small, because everything large is in the file
"""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.responses import PlainTextResponse, RedirectResponse

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]

#: Most bytes of a request; the page sends a few hundred.
MOST_BYTES = 64_000
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_ADDED = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]


class Guard:
    """An ASGI application in front of another one, which sees paths without the token."""

    def __init__(self, app: Any, token: str, port: int) -> None:
        self._app, self._token = app, token.encode()
        self._hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost")]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer, or refuse with a sentence."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_ADDED]
            await send(message)

        _, token, *rest = scope["path"].split("/")
        refused = self._refused(scope, token)
        if refused is not None:
            status, text = refused
            await PlainTextResponse(text + "\n", status)(scope, receive, sending)
            return
        if not rest:  # files of the page are found only beside an address that ends with a slash
            await RedirectResponse(scope["path"] + "/")(scope, receive, sending)
            return
        path = "/" + "/".join(rest)
        await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, sending)

    def _refused(self, scope: Message, token: str) -> tuple[int, str] | None:
        """Status and sentence of a refusal; None if the request is the page's own."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts, origins = headers.get("host", []), headers.get("origin", [])
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return 403, "This server answers only to 127.0.0.1, on this machine."
        if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self._token):
            return 403, "The address lacks the right token; use the one that fairramp explore printed."
        sites = headers.get("sec-fetch-site", [])
        if any(origin != f"http://{hosts[0]}" for origin in origins) or set(sites) - {"same-origin", "none"}:
            return 403, "Requests from other pages are refused; type the address into the browser."
        if scope["method"] == "POST":
            length = headers.get("content-length", [""])[0]
            if not length.isdecimal() or len(length) > 9:
                return 411, "The request has no length."
            if int(length) > MOST_BYTES:
                return 413, f"The request is longer than {MOST_BYTES:,} bytes."
            if headers.get("content-type") != ["application/json"]:
                return 415, "The request must be JSON."
        return None
