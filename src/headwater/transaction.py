"""What one source committed atomically, and what a reader of that source saw.

Transactions travel in captures: many small ones share one Arrow table per relation, because a table of its own for
each would cost more than the rows in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from headwater.position import Position
from headwater.relation import RelationName

ORDINAL = "_ordinal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One transaction of one source: where its commit ends in the log, who it is, when it committed.

    `identity` is what snapshots know it by: PostgreSQL's 64-bit transaction id, or the position where a source has
    nothing better. `gid` is the id under which it was prepared (PREPARE TRANSACTION), if it was and the log tells.
    """

    position: Position
    identity: int
    committed_at: datetime
    gid: str | None = None

    @property
    def source(self) -> str:
        """The source that committed it."""
        return self.position.source


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """Consecutive transactions of one source in commit order, with their signed rows.

    `rows[relation]` has all of the relation's columns, `_ordinal` (int32: index into `transactions`) and `_count`
    (int64: +1 for a row that came, -1 for a row that went), in the order the source wrote them.

    `truncated[ordinal]` names the relations that transaction emptied as a whole: every row the relation had before the
    transaction went, and the source does not say which those were. Rows it wrote to the relation before the TRUNCATE
    are not in `rows`; rows it wrote after are.

    A `joint` capture holds what becomes one tick: the parts of a global transaction, from several sources.
    """

    transactions: tuple[Transaction, ...]
    rows: Mapping[RelationName, pa.Table]
    truncated: Mapping[int, tuple[RelationName, ...]] = field(default_factory=dict)
    joint: bool = False


class Seen(Protocol):
    """The set of transactions that an answer or a snapshot saw."""

    def sees(self, identity: int) -> bool:
        """Tell whether the transaction with this identity was visible."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTransactions:
    """Seen transactions as they can be written down: all before `xmin`, none from `xmax` on, else all but `running`.

    >>> seen = SeenTransactions(xmin=10, xmax=13, running=frozenset({11}))
    >>> [seen.sees(identity) for identity in (9, 11, 12, 13)]
    [True, False, True, False]
    """

    xmin: int
    xmax: int
    running: frozenset[int]

    def sees(self, identity: int) -> bool:
        """Tell whether the committed transaction with this identity was visible."""
        return identity < self.xmin or (identity < self.xmax and identity not in self.running)
