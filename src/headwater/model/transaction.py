"""What one source committed atomically, and what a reader of that source saw.

Transactions travel in captures: many small ones share one Arrow table per relation, because a table of its own for
each would cost more than the rows in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, Self

import pyarrow as pa

from headwater.model.position import Position
from headwater.model.relation import RelationName

ORDINAL = "_ordinal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One transaction of one source: where its commit ends in the log, its identity, when it committed.

    `identity` is what snapshots know it by: a transaction id, or the position where a source has nothing better.
    `gid` is the id under which it was prepared as part of a global transaction, if it was and the log tells.
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
    """The set of transactions that an answer or a snapshot saw. Equal sets are equal values, and hashable."""

    def sees(self, identity: int) -> bool:
        """Tell whether the committed transaction with this identity was visible."""
        ...

    def written(self) -> dict[str, Any]:
        """Return it as JSON holds it. Snapshots of the same source read it (`Snapshot.read_seen`)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenUpTo:
    """All transactions up to one, but for some: for sources whose identities grow with their logs.

    >>> seen = SeenUpTo(last=12, hidden=frozenset({11}))
    >>> [seen.sees(identity) for identity in (9, 11, 12, 13)]
    [True, False, True, False]
    >>> SeenUpTo.read(seen.written()) == seen
    True
    """

    last: int
    hidden: frozenset[int] = frozenset()
    """Those that were logged before, and became visible later."""

    def sees(self, identity: int) -> bool:
        """Tell whether the committed transaction with this identity was visible."""
        return identity <= self.last and identity not in self.hidden

    def written(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"last": self.last, "hidden": sorted(self.hidden)}

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Self:
        """Return what was written."""
        return cls(last=int(said["last"]), hidden=frozenset(said["hidden"]))
