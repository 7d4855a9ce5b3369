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
_TRANSACTION_BYTES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One transaction of one source: where its commit ends in the log, its identity, when it committed.

    `identity` is what readers know it by, within its log: a transaction id, or the offset of its position.
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

    `altered[ordinal]` names the relations that were changed there in a way that their rows do not tell, and says what
    changed: columns that views read are others, or rows came and went untold. Such a relation has to be read again.

    A `joint` capture holds what becomes one tick: the parts of a global transaction, from several sources.
    """

    transactions: tuple[Transaction, ...]
    rows: Mapping[RelationName, pa.Table]
    truncated: Mapping[int, tuple[RelationName, ...]] = field(default_factory=dict)
    altered: Mapping[int, Mapping[RelationName, str]] = field(default_factory=dict)
    joint: bool = False

    @property
    def row_count(self) -> int:
        """How many signed rows it has."""
        return int(sum(table.num_rows for table in self.rows.values()))

    @property
    def byte_count(self) -> int:
        """About how large it is. Rows that are mapped from files are counted too."""
        return int(sum(table.nbytes for table in self.rows.values())) + _TRANSACTION_BYTES * len(self.transactions)


class Seen(Protocol):
    """The set of a source's transactions that a reader saw. Equal sets are equal values, and hashable."""

    def sees(self, identity: int, log: str) -> bool:
        """Tell whether the committed transaction with this identity in this log of the source was visible."""
        ...

    def written(self) -> dict[str, Any]:
        """Return it as JSON holds it. The same source reads it (`Source.read_seen`)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenUpTo:
    """All transactions of a log up to one, but for some: for sources whose identities grow with their logs.

    >>> seen = SeenUpTo(last=12, hidden=frozenset({11}))
    >>> [seen.sees(identity, "") for identity in (9, 11, 12, 13)]
    [True, False, True, False]
    >>> SeenUpTo.read(seen.written()) == seen
    True
    """

    last: int
    hidden: frozenset[int] = frozenset()
    """Those that were logged before, and became visible later."""

    def sees(self, identity: int, log: str) -> bool:
        """Tell whether the committed transaction with this identity was visible. There is one log."""
        del log
        return identity <= self.last and identity not in self.hidden

    def written(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"last": self.last, "hidden": sorted(self.hidden)}

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Self:
        """Return what was written."""
        return cls(last=int(said["last"]), hidden=frozenset(said["hidden"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenOfLogs:
    """What was seen of each log, for sources that have several.

    Of a log that is not named no relation was read. Nothing of it is missing in an answer, so all of it counts as seen.

    >>> seen = SeenOfLogs(logs=(("items", SeenUpTo(last=3)), ("orders", SeenUpTo(last=12))))
    >>> seen.sees(9, "items"), seen.sees(9, "orders"), seen.sees(1, "prices")
    (False, True, True)
    >>> SeenOfLogs.read(seen.written()) == seen
    True
    """

    logs: tuple[tuple[str, SeenUpTo], ...]
    """By the log's name, in the order of names."""

    def sees(self, identity: int, log: str) -> bool:
        """Tell whether the committed transaction with this identity in this log was visible."""
        return all(seen.sees(identity, log) for name, seen in self.logs if name == log)

    def written(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"logs": {log: seen.written() for log, seen in self.logs}}

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Self:
        """Return what was written."""
        return cls(logs=tuple((log, SeenUpTo.read(one)) for log, one in sorted(said["logs"].items())))
