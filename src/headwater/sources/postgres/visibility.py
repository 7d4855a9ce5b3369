"""Which transactions a PostgreSQL snapshot shows, decided by transaction id and never by log position.

A transaction becomes visible when it leaves the list of running ones, not when its commit is logged: with a
synchronous standby or asynchronous commit the two orders differ. The log names transactions by 32 bits, snapshots by
64; the missing half is found from any 64-bit id known to be recent, because ids in use never span more than 2^31.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

_EPOCH = 1 << 32
_HALF = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTransactions:
    """Transactions that a snapshot shows: all before `xmin`, none from `xmax` on, else all but `running`.

    >>> seen = SeenTransactions(xmin=10, xmax=13, running=frozenset({11}))
    >>> [seen.sees(identity, "") for identity in (9, 11, 12, 13)]
    [True, False, True, False]
    >>> SeenTransactions.read(seen.written()) == seen
    True
    """

    xmin: int
    xmax: int
    running: frozenset[int]

    def sees(self, identity: int, log: str) -> bool:
        """Tell whether the committed transaction with this identity was visible. There is one log."""
        del log
        return identity < self.xmin or (identity < self.xmax and identity not in self.running)

    def written(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"xmin": self.xmin, "xmax": self.xmax, "running": sorted(self.running)}

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Self:
        """Return what was written."""
        return cls(xmin=int(said["xmin"]), xmax=int(said["xmax"]), running=frozenset(said["running"]))


def parse_snapshot(text: str) -> SeenTransactions:
    """Read `xmin:xmax:running,…` as `pg_current_snapshot()` prints it, with 64-bit ids.

    >>> seen = parse_snapshot("10:20:12,15")
    >>> [seen.sees(xid, "") for xid in (9, 11, 12, 15, 19, 20)]
    [True, True, False, False, True, False]
    """
    xmin, xmax, running = text.split(":")
    return SeenTransactions(
        xmin=int(xmin), xmax=int(xmax), running=frozenset(int(xid) for xid in running.split(",") if xid)
    )


def widen(xid: int, near: int) -> int:
    """Return the 64-bit id that ends in these 32 bits and is nearest to a recent id.

    >>> widen(5, near=(3 << 32) + 7), widen(0xFFFFFFF0, near=(3 << 32) + 7) == (3 << 32) - 16
    (12884901893, True)
    """
    candidate = (near & ~(_EPOCH - 1)) | xid
    if candidate - near > _HALF and candidate >= _EPOCH:
        return candidate - _EPOCH
    if near - candidate > _HALF:
        return candidate + _EPOCH
    return candidate
