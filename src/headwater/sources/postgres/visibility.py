"""Which transactions a PostgreSQL snapshot shows, decided by transaction id and never by log position.

A transaction becomes visible when it leaves the list of running ones, not when its commit is logged: with a
synchronous standby or asynchronous commit the two orders differ. The log names transactions by 32 bits, snapshots by
64; the missing half is found from any 64-bit id known to be recent, because ids in use never span more than 2^31.
"""

from __future__ import annotations

from headwater.transaction import SeenTransactions

_EPOCH = 1 << 32
_HALF = 1 << 31


def parse_snapshot(text: str) -> SeenTransactions:
    """Read `xmin:xmax:running,…` as `pg_current_snapshot()` prints it, with 64-bit ids.

    >>> seen = parse_snapshot("10:20:12,15")
    >>> [seen.sees(xid) for xid in (9, 11, 12, 15, 19, 20)]
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
