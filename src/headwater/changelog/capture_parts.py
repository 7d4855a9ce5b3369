"""Captures taken apart by global id, and put together again as one tick."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.model.project import GlobalIds, IdColumn, PreparedId
from headwater.model.relation import COUNT, RelationName
from headwater.model.transaction import ORDINAL, Capture

_NO_IDS: frozenset[str] = frozenset()
_ROWS_AT_ONCE = 65_536


def global_ids(capture: Capture, ids: GlobalIds) -> dict[int, frozenset[str]]:
    """Return which transactions of a capture, by their ordinals, are parts of which global transactions."""
    match ids:
        case IdColumn():
            return _brought_ids(capture, ids.name)
        case PreparedId():
            return {
                ordinal: frozenset({one.gid}) for ordinal, one in enumerate(capture.transactions) if one.gid is not None
            }
    assert_never(ids)


def _brought_ids(capture: Capture, column: str) -> dict[int, frozenset[str]]:
    """Return the ids that transactions bring in a column, by their ordinals.

    An id counts where a transaction brings it: in rows that came, more than in rows that went. So a row that keeps its
    id while something else of it changes, or that is deleted, makes nobody a part. Ids are compared as texts, because
    one source may hold as a number what the other holds as a text.
    """
    found: dict[int, set[str]] = {}
    for table in capture.rows.values():
        if column not in table.column_names:
            continue
        ids = pa.table({"ordinal": table[ORDINAL], "id": table[column], "count": table[COUNT]})
        parts = [_counted(pa.Table.from_batches([batch])) for batch in ids.to_batches(max_chunksize=_ROWS_AT_ONCE)]
        sums = _counted(pa.concat_tables([ids.slice(0, 0), *parts]))
        brought = sums.filter(pc.greater(sums["count"], 0))
        texts = brought["id"].cast(pa.string()).to_pylist()
        for ordinal, text in zip(brought["ordinal"].to_pylist(), texts, strict=True):
            found.setdefault(ordinal, set()).add(text)
    return {ordinal: frozenset(ids) for ordinal, ids in found.items()}


def _counted(ids: pa.Table) -> pa.Table:
    """Return each id of a transaction with the sum of its counts. Rows without one are left out."""
    sums = ids.filter(pc.is_valid(ids["id"])).group_by(["ordinal", "id"]).aggregate([("count", "sum")])
    return sums.rename_columns(ids.column_names)


def split_capture(capture: Capture, ids: GlobalIds) -> Iterator[tuple[frozenset[str], Capture]]:
    """Yield a capture's parts of global transactions one by one, and what lies between them in one piece."""
    found = global_ids(capture, ids)
    ordinals = range(len(capture.transactions))
    for part, run in groupby(ordinals, key=lambda ordinal: ordinal if ordinal in found else -1):
        own = list(run)
        yield found.get(part, _NO_IDS), slice_capture(capture, own[0], own[-1] + 1)


def slice_capture(capture: Capture, start: int, stop: int) -> Capture:
    """Return the transactions of a capture with start <= ordinal < stop, as a capture of their own."""
    if start == 0 and stop == len(capture.transactions):
        return capture
    rows = {}
    for name, table in capture.rows.items():
        first, end = np.searchsorted(table[ORDINAL].to_numpy(), [start, stop])
        if first < end:
            rows[name] = _shifted(table.slice(first, end - first), -start)
    return replace(
        capture,
        transactions=capture.transactions[start:stop],
        rows=rows,
        truncated={at - start: names for at, names in capture.truncated.items() if start <= at < stop},
        altered={at - start: names for at, names in capture.altered.items() if start <= at < stop},
    )


def join_captures(captures: Sequence[Capture]) -> Capture:
    """Return captures as one whose transactions share a tick. Each source's own order is kept."""
    rows: dict[RelationName, list[pa.Table]] = {}
    truncated: dict[int, tuple[RelationName, ...]] = {}
    start = 0
    for capture in captures:
        for name, table in capture.rows.items():
            rows.setdefault(name, []).append(_shifted(table, start))
        truncated |= {ordinal + start: names for ordinal, names in capture.truncated.items()}
        start += len(capture.transactions)
    return Capture(
        transactions=tuple(one for capture in captures for one in capture.transactions),
        rows={name: pa.concat_tables(tables, promote_options="default") for name, tables in rows.items()},
        truncated=truncated,
        joint=True,
    )


def _shifted(table: pa.Table, ordinals: int) -> pa.Table:
    if not ordinals:
        return table
    moved = pc.add(table[ORDINAL], pa.scalar(ordinals, pa.int32()))
    return table.set_column(table.column_names.index(ORDINAL), ORDINAL, moved)
