"""Prepared transactions: their rows wait for the outcome, and the log that tells of them is not forgotten before that.

    BeginPrepare ─ rows ─ Prepare ········ x ········ CommitPrepared
         100                              150               200          x commits meanwhile, and goes on
                                                             └ the transaction's position: where its commit ends

The server tells the rows once, at 100, and at 200 nothing but "commit". After a lost connection it begins again at what
was acknowledged. So although x is durable, nothing past 100 is acknowledged until the transaction at 200 is durable too
(or was rolled back); x then comes again, and is dropped as a repeat.

Invariants
  1. The rows of a prepared transaction are given out when it commits, once, and never if it is rolled back.
  2. A position that is acknowledged lies before every PREPARE whose outcome is unknown or not durable yet.

Cost: rows without an outcome are in memory, large ones in files (`row_buffer`); the server keeps its log from the
oldest PREPARE without an outcome on. (It suffers from a forgotten one anyway, which also keeps it from cleaning up.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from headwater.model.relation import RelationName


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a transaction did before it was prepared, and where its PREPARE record starts."""

    offset: int
    rows: Mapping[RelationName, pa.Table]
    truncated: tuple[RelationName, ...] = ()


class PreparedTransactions:
    """The prepared transactions of one connection, by the low half of their ids.

    >>> prepared = PreparedTransactions()
    >>> prepared.keep(7, Prepared(offset=100, rows={}))
    >>> prepared.may_forget(150)
    100
    >>> prepared.commit(7, end_offset=200).offset
    100
    >>> prepared.may_forget(150), prepared.may_forget(200)
    (100, 200)
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._waiting: dict[int, Prepared] = {}
        self._ended: dict[int, int] = {}

    def keep(self, xid: int, prepared: Prepared) -> None:
        """Take in a transaction that was prepared."""
        self._waiting[xid] = prepared

    def commit(self, xid: int, end_offset: int) -> Prepared | None:
        """Give out a transaction that commits. None for one that did nothing: the server does not tell its PREPARE."""
        prepared = self._waiting.pop(xid, None)
        if prepared is not None:
            self._ended[end_offset] = prepared.offset
        return prepared

    def roll_back(self, xid: int) -> None:
        """Drop a transaction that is rolled back."""
        self._waiting.pop(xid, None)

    def may_forget(self, durable: int) -> int:
        """Return up to where the source may forget its log, when everything that ends up to `durable` is durable."""
        self._ended = {end: offset for end, offset in self._ended.items() if end > durable}
        return min([durable, *self._ended.values(), *(one.offset for one in self._waiting.values())])
