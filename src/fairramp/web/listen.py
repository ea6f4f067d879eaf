"""Sockets on which a web program listens; importing this checks that the extra `web` is installed."""

import contextlib
import ipaddress
import socket

from fairramp.core.checks import check_number
from fairramp.errors import FairrampError, installing

try:
    import starlette  # noqa: F401  # used by both programs
    import uvicorn  # noqa: F401
except ImportError as error:
    raise FairrampError(
        "{name} is not installed",
        remedy="install it with: {command}",
        name=error.name or "uvicorn",
        command=installing("web"),
    ) from None

#: Connections that wait to be accepted.
BACKLOG = 2048


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0")
    (True, True, False)
    """
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def listening(host: str, port: int) -> socket.socket:
    """A socket that already accepts connections; port 0 chooses a free one."""
    check_number("port", port, 0, 65535)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
        try:
            # A service can start again at once. On Windows, REUSEADDR would let two services share a port.
            option: int = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
            found.setsockopt(socket.SOL_SOCKET, option, 1)
            found.bind(address)
            found.listen(BACKLOG)
        except OSError:
            found.close()
            raise
    except OSError as error:
        raise FairrampError(
            "Cannot listen on {where}, port {number}: {why}",
            remedy="pass another {port}" if is_local(host) else "pass another {host} or {port}",
            where=host,
            number=port,
            why=error.strerror,
        ) from None
    return found


def address_of(bound: socket.socket) -> str:
    """The address of a socket, for a browser."""
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
