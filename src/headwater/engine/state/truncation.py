"""TRUNCATE says that all rows of a relation went, not which. The warehouse knows, where it keeps a replica.

A truncate is logged as a marker, a row of count 0 that changes nothing. With a replica it is also written out as what
it means: every row that the replica had, with count -1, part by part. (No view needs others.) Without one, the rows
are gone, here and at the source: views that probe the relation cannot go past the marker and are rebuilt, and rows that
were read before it are read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.change_log import ChangeLog
from headwater.deltas.on_arrow import ArrowBag
from headwater.engine.state.replica_reader import ReplicaReader
from headwater.errors import HeadwaterError
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, RelationName
from headwater.model.transaction import ORDINAL, Capture
from headwater.sources.spilled_rows import spilled
from headwater.storage.data_file import ROWS_PER_GROUP


def resolve_truncates(capture: Capture, log: ChangeLog, replicas: Mapping[RelationName, ReplicaReader]) -> Capture:
    """Return the capture with the truncated rows written out. Everything before it is in the log already."""
    rows = dict(capture.rows)
    for ordinal, names in sorted(capture.truncated.items()):
        for name in names:
            captured = rows.get(name)
            if captured is None:
                every = [*log.relation_schema(name), (ORDINAL, pa.int32()), (COUNT, pa.int64())]
                captured = pa.schema(every).empty_table()
            first = int(np.searchsorted(captured[ORDINAL].to_numpy(), ordinal))
            before, after = captured.slice(0, first), captured.slice(first)
            removed = _removed(before, ordinal, replicas.get(name), log)
            rows[name] = pa.concat_tables([before, spilled(captured.schema, removed), after])
    return replace(capture, rows=rows, truncated={})


def _removed(before: pa.Table, ordinal: int, reader: ReplicaReader | None, log: ChangeLog) -> Iterator[pa.Table]:
    """Yield what a truncate removed, as rows of its transaction: the marker, and whatever the replica has, negated.

    The rows are not netted: what came and went before comes and goes once more. Their sum is what matters.
    """
    schema = before.schema
    yield _as_removed(pa.table({COUNT: pa.array([0], pa.int64())}), ordinal, schema)
    if reader is not None:
        captured = ArrowBag(before).selected(reader.entry.rows).table.select([*reader.columns, COUNT])
        earlier = (pa.Table.from_batches([batch]) for batch in captured.to_batches(max_chunksize=ROWS_PER_GROUP))
        for part in chain(reader.entry_parts(log, log.last_tick), earlier):
            yield _as_removed(part, ordinal, schema)


def _as_removed(rows: pa.Table, ordinal: int, schema: pa.Schema) -> pa.Table:
    """Return rows with their counts negated, of a transaction, with NULL in the columns that no view needs."""
    given = {
        COUNT: pc.negate(rows[COUNT]),
        ORDINAL: pa.repeat(pa.scalar(ordinal, pa.int32()), rows.num_rows),
    }
    columns = [
        given[field.name]
        if field.name in given
        else rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def truncated_at(log: ChangeLog, relation: RelationName, after: Tick, upto: Tick) -> Tick | None:
    """Return the first tick of (after, upto] at which a relation was truncated."""
    return min(truncations(log, relation, after, upto), default=None)


def truncations(log: ChangeLog, relation: RelationName, after: Tick, upto: Tick) -> list[Tick]:
    """Return the ticks of (after, upto] at which a relation was truncated."""
    parts = log.parts(relation, (), after, upto)
    return [Tick(tick) for part in parts for tick in part.filter(pc.equal(part[COUNT], 0))[TICK].to_pylist()]


def before_truncate(
    log: ChangeLog, view: str, probed: Sequence[RelationName], lo: Tick, hi: Tick
) -> tuple[Tick, HeadwaterError | None]:
    """Return `hi`, or the tick before a probed relation was truncated and why a view cannot go past it."""
    halt = None
    for name in probed:
        tick = truncated_at(log, name, lo, hi)
        if tick is not None:
            hi = Tick(tick - 1)
            halt = HeadwaterError(
                f'view "{view}" cannot go past tick {hi}',
                code="HW-521",
                detail=f"{name} was truncated at tick {tick}; which rows went can no longer be asked for",
                hint=f"run `headwater run --rebuild {view}`, or read {name} as a replica",
            )
    return hi, halt
