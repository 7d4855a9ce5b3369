"""Who maintains a warehouse, and whether it still sends heartbeats.

Correctness never depends on it: a maintainer that lost its lease is stopped by the commits table, not by this file or
by anybody's clock. It only lets a second `run` refuse early while the first is alive. A file that cannot be
read is refused too: a running maintainer writes it again within seconds, so it stays only if none runs, which a
person can see.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from headwater.errors import WarehouseRefused
from headwater.storage.local_copies import is_running
from headwater.storage.notes import read_note, write_text
from headwater.storage.object_store import is_remote, store_at
from headwater.storage.storage_errors import stored
from headwater.warehouse.folders import passing_name

ALIVE_FOR = timedelta(seconds=30)
_FILE = "lease.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who said last that it maintains the warehouse, when, and whether it said then that it is done."""

    holder: str
    epoch: int
    renewed_at: datetime
    released: bool = False

    def alive(self, now: datetime) -> bool:
        """Tell whether its holder renewed it lately and, where that can be seen, still runs."""
        return not self.released and now - self.renewed_at < ALIVE_FOR and not _is_known_dead(self.holder)


def _is_known_dead(holder: str) -> bool:
    """Tell whether a holder was a process of this machine that has ended, for instance by `kill -9`."""
    host, _, pid = holder.rpartition(":")
    return host == socket.gethostname() and pid.isdecimal() and not is_running(pid)


def own_name() -> str:
    """Return what this process calls itself in a lease."""
    return f"{socket.gethostname()}:{os.getpid()}"


def renew_lease(warehouse: str, epoch: int) -> None:
    """Say that this process maintains the warehouse. Repeat it well within `ALIVE_FOR`."""
    _write(warehouse, epoch, released=False)


def release_lease(warehouse: str, epoch: int) -> None:
    """Say that this process is done, so that the next need not wait."""
    _write(warehouse, epoch, released=True)


def _write(warehouse: str, epoch: int, *, released: bool) -> None:
    lease = Lease(holder=own_name(), epoch=epoch, renewed_at=datetime.now(UTC), released=released)
    write_text(warehouse, _FILE, msgspec.json.encode(lease).decode())


def read_lease(warehouse: str) -> Lease | None:
    """Return who maintained the warehouse last, or None if no maintainer ever ran."""
    return read_note(warehouse, _FILE, lambda said: msgspec.convert(said, Lease))


def maintainer_is_alive(warehouse: str) -> bool:
    """Tell whether some process maintains the warehouse right now."""
    lease = read_lease(warehouse)
    return lease is not None and lease.alive(datetime.now(UTC))


def refuse_if_held(warehouse: str) -> None:
    """Refuse to start beside a maintainer that is alive."""
    lease = read_lease(warehouse)
    now = datetime.now(UTC)
    if lease is None or lease.holder == own_name() or not lease.alive(now):
        return
    age = (now - lease.renewed_at).total_seconds()
    raise WarehouseRefused(
        f'"{lease.holder}" is maintaining this warehouse',
        code="HW-405",
        detail=f"its last heartbeat was {age:.0f} s ago",
        hint=f"stop it, or wait: it counts as gone {ALIVE_FOR.total_seconds():.0f} s after its last sign",
    )


def require_fencing(warehouse: str) -> None:
    """Refuse an object store that replaces what should be made only if it is absent: two maintainers could commit.

    Delta makes the file of a version in the same way. Of a folder on this machine it is known.
    """
    if not is_remote(warehouse):
        return
    store, name = store_at(warehouse), passing_name(datetime.now(UTC))
    with stored(f"{warehouse}/{name}"):
        try:
            outcome = [store.put_if_absent(name, content) for content in (b"first", b"second")]
        finally:
            store.delete(name)
    if outcome != [True, False]:
        raise WarehouseRefused(
            f'the object store of "{warehouse}" replaces what it should only make if it is absent',
            code="HW-444",
            detail="a commit is the file of the next version, made only if nobody else has made it (If-None-Match); "
            "without that two maintainers could commit at once",
            hint="use a store that has conditional writes, in a version that has them, or a folder of this machine",
        )
