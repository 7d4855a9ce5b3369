"""TRUNCATE says that all rows of a relation went, not which. The warehouse knows, where it keeps a replica.

A truncate is logged as a marker, a row of count 0 that changes nothing. With a replica it is also written out as what
it means: every row that the replica had, with count -1. (Others matter to nobody who reads it.) Without one, the rows
are gone, here and at the source: views that probe the relation cannot go past the marker and are rebuilt, and rows that
were read before it are read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.change_log import ChangeLog
from headwater.deltas.on_arrow import ArrowBag
from headwater.engine.state.replica_reader import ReplicaReader
from headwater.errors import HeadwaterError
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, RelationName
from headwater.model.transaction import ORDINAL, Capture


def resolve_truncates(capture: Capture, log: ChangeLog, replicas: Mapping[RelationName, ReplicaReader]) -> Capture:
    """Return the capture with the truncated rows written out. Everything before it is in the log already."""
    rows = dict(capture.rows)
    for ordinal, names in sorted(capture.truncated.items()):
        for name in names:
            schema = log.relation_schema(name)
            before = rows.get(name, pa.schema([*schema, (ORDINAL, pa.int32()), (COUNT, pa.int64())]).empty_table())
            gone = _removed(before, ordinal, replicas.get(name), log, schema)
            rows[name] = pa.concat_tables([before, gone.select(before.column_names).cast(before.schema)]).sort_by(
                ORDINAL
            )
    return replace(capture, rows=rows, truncated={})


def _removed(
    captured: pa.Table, ordinal: int, reader: ReplicaReader | None, log: ChangeLog, schema: pa.Schema
) -> pa.Table:
    """Return what a truncate removed, as rows of its transaction."""
    nothing = pa.table([pa.nulls(1, field.type) for field in schema], schema=schema)
    marker = nothing.append_column(COUNT, pa.array([0], pa.int64()))
    if reader is None:
        return _stamp(marker, ordinal)
    columns = list(reader.columns)
    stored = reader.dataframe_at(log, log.last_tick).toArrow().select([*columns, COUNT])
    before = ArrowBag(captured.filter(pc.less(captured[ORDINAL], ordinal))).selected(reader.entry.rows)
    earlier = before.table.select([*columns, COUNT])
    both = pa.concat_tables([stored.cast(earlier.schema), earlier])
    state = ArrowBag(both.append_column(TICK, pa.repeat(pa.scalar(0, pa.int64()), both.num_rows))).net().negated()
    return _stamp(pa.concat_tables([marker, _widened(state.table.drop_columns([TICK]), schema)]), ordinal)


def _widened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows with NULL in the columns that no view needs."""
    columns = [
        rows[field.name] if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type) for field in schema
    ]
    return pa.table([*columns, rows[COUNT]], schema=pa.schema([*schema, (COUNT, pa.int64())]))


def _stamp(rows: pa.Table, ordinal: int) -> pa.Table:
    return rows.append_column(ORDINAL, pa.repeat(pa.scalar(ordinal, pa.int32()), rows.num_rows))


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
