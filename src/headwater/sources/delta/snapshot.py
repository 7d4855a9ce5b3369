"""Snapshots of Delta tables: each table as of a version, the same for every reader, as long as its files are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from headwater.deltas.extent import Remainder
from headwater.deltas.on_arrow import remaining
from headwater.model.position import Position, Positions, by_log
from headwater.model.relation import Relation, RelationName
from headwater.model.transaction import SeenOfLogs, SeenUpTo
from headwater.sources.delta.follower import require_proof
from headwater.sources.delta.lake import LakeTable, position_at
from headwater.sources.delta.state import TableState, load_state
from headwater.sources.source import Chunk, LogView


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table as of a version, and its position."""

    state: TableState
    position: Position


def show(table: LakeTable, at: Position | None) -> ShownTable:
    """Return a table as it is now, or as of a position of the log that was followed."""
    if at is None:
        state = load_state(table)
        return ShownTable(state, position_at(table, state.layout.table_id, state.version))
    require_proof(table, at)
    return ShownTable(load_state(table, at.offset), at)


@dataclass(frozen=True)
class DeltaSnapshot:
    """See `headwater.sources.source.Snapshot`."""

    source: str
    shown: Mapping[RelationName, ShownTable]

    @property
    def token(self) -> str:
        """Which tables they are: rows of a table that was made again never mix with those of the one before."""
        return " ".join(sorted(one.state.layout.table_id for one in self.shown.values()))

    @contextmanager
    def reader(self) -> Iterator[DeltaReader]:
        """Lend a reader."""
        yield DeltaReader(self.shown)

    def chunks(self, relation: Relation, rows_per_chunk: int) -> tuple[Chunk, ...]:
        """Return the whole relation: Delta tables have no key that tells rows apart."""
        del relation, rows_per_chunk
        return (Chunk(number=0),)

    def exported(self) -> Mapping[str, Any]:
        """Not asked for: its snapshots are for one process."""
        raise AssertionError("its snapshots are for one process")

    def is_valid(self, log: LogView) -> bool:
        """Tell whether what was read is of the logs that are followed. One that was replaced is a lost source."""
        held = log.held(self.source)
        for one in self.shown.values():
            require_proof(one.state.table, one.position)
            if one.position.log_name in held:
                held[one.position.log_name].require_comparable(one.position)
                require_proof(one.state.table, held[one.position.log_name])
        return True

    def __enter__(self) -> Self:
        """Return it. There is nothing to open."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close nothing."""


@dataclass(frozen=True)
class DeltaReader:
    """See `headwater.sources.source.Reader`."""

    shown: Mapping[RelationName, ShownTable]

    @property
    def seen(self) -> SeenOfLogs:
        """All versions of each table up to the one that is shown."""
        logs = {one.position.log: SeenUpTo(last=one.position.offset) for one in self.shown.values()}
        return SeenOfLogs(logs=tuple(sorted(logs.items(), key=lambda one: one[0])))

    @property
    def positions(self) -> Positions:
        """The version of each table."""
        return by_log(one.position for one in self.shown.values())

    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the wanted columns of the rows whose `columns` equal some row of `keys`."""
        return self.shown[relation.name].state.find(relation, wanted, columns, keys)

    def read(self, relation: Relation, wanted: tuple[str, ...], chunk: Chunk, rows: Remainder) -> Iterator[pa.Table]:
        """Yield the wanted columns of the rows."""
        del chunk
        names = relation.in_order({*wanted, *rows.columns})
        for table in self.shown[relation.name].state.read(relation, names):
            yield remaining(table, rows).select(list(wanted))


def shown_tables(tables: Sequence[LakeTable], at: Positions | None) -> dict[RelationName, ShownTable]:
    """Return tables as they are now, or as of positions."""
    names = {table.relation: position_name(table) for table in tables}
    return {table.relation: show(table, None if at is None else at.get(names[table.relation])) for table in tables}


def position_name(table: LakeTable) -> str:
    """Return the name of a table's log as positions have it."""
    return f"{table.relation.source}.{table.log}"
