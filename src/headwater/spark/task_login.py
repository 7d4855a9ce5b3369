"""How a task of Spark on this machine asks the driver for what it needs to connect to a source.

Everything that Spark hands to a task (its plan, closure, broadcasts, settings, environment) is kept, shown or logged
somewhere, so no secret may travel that way. Where Spark runs on this machine, Python workers descend from a virtual
machine that was started without our secrets (`gateway`), but they run here, as us. So the driver answers at a Unix
socket in a folder that only this account may enter, and both ends ask the system who the other one is: it has to be the
same account, which could read this process's environment anyway. Only the socket's place travels with a task. The
answer goes from Python to Python; no virtual machine sees it.

On another machine, in another container or under another account nobody answers at that place. Tasks then go by the
environment of their own executor. There is no channel to them that would be safe: whatever they could show to prove
that they are ours would have to reach them by Spark.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

_PATIENCE_SECONDS = 10.0
_LONGEST_BYTES = 1 << 20
_CREDENTIALS = struct.Struct("3i")


@contextlib.contextmanager
def answered_logins(login: Callable[[], str]) -> Iterator[str]:
    """Answer tasks on this machine with a login while a block runs, and give the place where they ask for it.

    The place is empty if there can be none.
    """
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="headwater-"))  # for this account alone
            place = str(Path(folder) / "login")
            server = stack.enter_context(contextlib.closing(socket.socket(socket.AF_UNIX)))
            server.bind(place)
            server.listen()
        except (AttributeError, OSError):  # no such sockets here, or the folder's path is too long for one
            yield ""
            return
        answering = threading.Thread(target=_answer, args=(server, login), name="logins of tasks", daemon=True)
        answering.start()
        try:
            yield place
        finally:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)  # wakes the thread
            answering.join(_PATIENCE_SECONDS)


def ask_login(place: str) -> str | None:
    """Return what the driver answers at a place on this machine, None if this account does not answer there."""
    answer = bytearray()
    try:
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as asking:
            asking.settimeout(_PATIENCE_SECONDS)
            asking.connect(place)
            while _is_own(asking) and len(answer) < _LONGEST_BYTES and (part := asking.recv(1 << 16)):
                answer += part
    except (AttributeError, OSError):
        return None
    return answer.decode() or None


def _answer(server: socket.socket, login: Callable[[], str]) -> None:
    while True:
        try:
            asking, _ = server.accept()
        except OSError:  # it was shut down
            return
        with (
            contextlib.closing(asking),
            contextlib.suppress(Exception),
        ):  # a task without an answer goes by its environment
            asking.settimeout(_PATIENCE_SECONDS)
            if _is_own(asking):
                asking.sendall(login().encode())


def _is_own(peer: socket.socket) -> bool:
    """Tell whether the other end is of this account. Where the system does not tell, the folder's mode has decided."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    _, account, _ = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    return bool(account == os.geteuid())
