"""Serves the console, on this machine alone, or beyond it with a token."""

from __future__ import annotations

import importlib.util
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    import uvicorn

    from headwater.api.session import Headwater

LOCAL = "127.0.0.1"
PORT = 8765
_CLOSING_SECONDS = 5
_CANNOT_LISTEN = "HW-764"
_PACKAGES = ("fastapi", "jinja2", "uvicorn")


def require_packages() -> None:
    """Refuse where the console's packages are not installed."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise HeadwaterError(
            "the console is not installed",
            code="HW-763",
            detail=f"missing: {', '.join(missing)}",
            hint='pip install "headwater[ui]"',
        )


def serve(project: Headwater, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until interrupted. `announce` is given the address to open, once it can be opened."""
    server, address, listening = _prepared(project, host, port)
    announce(address)
    server.run(sockets=[listening])


@contextmanager
def serving(project: Headwater, host: str = LOCAL, port: int = 0) -> Iterator[str]:
    """Serve beside a block, in a thread, and give it the address to open.

    Port 0 is any that is free, and so is one that is taken: the block goes on wherever the console is.
    """
    try:
        server, address, listening = _prepared(project, host, port)
    except HeadwaterError as error:
        if error.code != _CANNOT_LISTEN or not port:
            raise
        server, address, listening = _prepared(project, host, 0)
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]), name="console", daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


def _prepared(project: Headwater, host: str, port: int) -> tuple[uvicorn.Server, str, socket.socket]:
    require_packages()
    import uvicorn  # noqa: PLC0415 - a package of an extra

    from headwater.console.app import Access, create_app  # noqa: PLC0415 - as above

    listening = _listening(host, port)
    port = int(listening.getsockname()[1])
    is_local = host in (LOCAL, "localhost", "::1")
    access = Access() if is_local else Access(token=secrets.token_urlsafe(24))
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{port}/" + (f"?token={access.token}" if access.token else "")
    servers: list[uvicorn.Server] = []
    app = create_app(project, access, lambda: servers[0].should_exit)
    config = uvicorn.Config(
        app, log_level="error", access_log=False, timeout_graceful_shutdown=_CLOSING_SECONDS, lifespan="off"
    )
    servers.append(uvicorn.Server(config))
    return servers[0], address, listening


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise HeadwaterError(
            f"the console cannot listen on {host}:{port}",
            code="HW-764",
            detail=error.strerror or str(error),
            hint="choose another with --port; --port 0 takes any that is free",
        ) from None
    return listening
