"""Random transactions of two relations, with the list of rows that a change log has to have afterwards."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pyarrow as pa

from headwater.model.position import Position
from headwater.model.relation import RelationName
from headwater.model.transaction import Capture, Transaction

SALES, ITEMS = (RelationName(source="shop", name=name) for name in ("sales", "items"))
Row = tuple[int, int, int]
"""An id, a tick and a count."""


def transaction(offset: int) -> Transaction:
    position = Position(source="shop", history="1:1", offset=offset)
    return Transaction(position=position, identity=offset, committed_at=datetime(2026, 1, 1, tzinfo=UTC))


def random_capture(chance: random.Random, first: int, truth: dict[RelationName, list[Row]]) -> Capture:
    """Return some transactions with the offsets from one on, which are their ticks, and note their rows."""
    count = chance.choice((1, 1, 2, 5))
    rows: dict[RelationName, pa.Table] = {}
    for name in (SALES, ITEMS):
        size = chance.choice((0, 0, 1, 3, 90))
        ordinals = sorted(chance.randrange(count) for _ in range(size))
        ids, counts = ([chance.randrange(100) for _ in ordinals], [chance.choice((-1, 0, 1)) for _ in ordinals])
        if ordinals:
            types = {"_ordinal": pa.array(ordinals, pa.int32()), "_count": pa.array(counts, pa.int64())}
            rows[name] = pa.table({"id": pa.array(ids, pa.int64()), **types})
        truth[name] += [(i, first + ordinal, c) for i, ordinal, c in zip(ids, ordinals, counts, strict=True)]
    return Capture(transactions=tuple(transaction(first + number) for number in range(count)), rows=rows)
