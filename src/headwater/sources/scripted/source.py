"""A scripted database as a source: see `headwater.sources.source`.

A slot's position is how many transactions have been forgotten for it; what was acknowledged is not told again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import urlsplit

import pyarrow as pa

from headwater.deltas.extent import Remainder
from headwater.errors import InvalidProject, SourceLost, SourceUnavailable
from headwater.model.position import Distance, Notation, Position
from headwater.model.relation import Relation, RelationName, arrow_type
from headwater.model.transaction import Capture, SeenUpTo, Transaction
from headwater.sources.measure import ColumnMeasure, RelationMeasure, SourceMeasure
from headwater.sources.scripted.database import ScriptedDatabase, ScriptedSlot, disconnected
from headwater.sources.scripted.rows import Changes, key_of, plain_rows, signed_rows
from headwater.sources.source import (
    Chunk,
    Inspection,
    ProjectSlots,
    SlotState,
    SourceSettings,
    TornDown,
    missing_relation,
    missing_slot,
    require_held,
)

_NOTATION = Notation(history="how often it was restored")
_CAPTURE_LENGTH = 500
_BYTES_PER_VALUE = 8.0


class ScriptedSource:
    """One client of a scripted database; several may be clients of one."""

    default_schema = "memory"

    def __init__(
        self, name: str, relations: Sequence[Relation] = (), *, database: ScriptedDatabase | None = None
    ) -> None:
        """Become a client of a database, or of a new one that has these relations."""
        self.name = name
        self.database = ScriptedDatabase(tuple(relations)) if database is None else database

    @classmethod
    def connect(cls, settings: SourceSettings) -> Self:
        """Return a client of the database that is published at a URL, in this process."""
        database = ScriptedDatabase.find(urlsplit(settings.url()).netloc)
        if database is None:
            raise InvalidProject(
                f'the url of source "{settings.name}" names no scripted database of this process',
                code="HW-349",
                detail="scripted databases are in memory, and end with the process that made them",
                hint="use the url that `ScriptedDatabase.publish` returned, while the database is there",
            )
        return cls(settings.name, database=database)

    def commit(self, changes: Changes) -> Position:
        """Commit a transaction in the database, and return where it ends in the log."""
        return self.position(self.database.commit(changes))

    def position(self, count: int) -> Position:
        """Return the position after so many transactions."""
        return Position(source=self.name, history=self.database.history, offset=count, notation=_NOTATION)

    def inspect(self, names: Sequence[RelationName]) -> Inspection:
        """Describe relations; nothing but the relations themselves can be missing."""
        known = {relation.name: relation for relation in self.database.relations}
        with self.database.changed:
            self.database.require_up()
        return Inspection(
            relations=tuple(known[name] for name in names if name in known),
            owner_sql=(),
            may_run_owner_sql=True,
            refusals=tuple(
                missing_relation(name, f"it has: {', '.join(map(str, known)) or 'none'}")
                for name in names
                if name not in known
            ),
        )

    def slots(self) -> ProjectSlots:
        """Return the slots that were made."""
        with self.database.changed:
            self.database.require_up()
            present = {name: self._state(name, slot) for name, slot in self.database.slots.items()}
        return ProjectSlots(present=present, former=self.name)

    def new_slot(self) -> str:
        """Return a name for another slot."""
        return f"{self.name}_{secrets.token_hex(4)}"

    def prepare(self, relations: Sequence[RelationName], slot: str, *, is_new: bool) -> Position:
        """Make a slot if it is new, and return up to where the log has been forgotten for it."""
        for refusal in self.inspect(relations).refusals:
            raise refusal
        database = self.database
        with database.changed:
            if slot not in database.slots and is_new:
                begins_at = 0 if database.tells_from_start else len(database.transactions)
                database.slots[slot] = ScriptedSlot(forgotten_to=begins_at)
            return self.position(self._slot(slot).forgotten_to)

    def follow(self, relations: Sequence[Relation], slot: str, held_to: Position | None) -> ScriptedFollower:
        """Open the log that a slot keeps, after the position up to which the change log holds it."""
        with self.database.changed:
            self.database.require_up()
            found = self._slot(slot)
            start = self._start(slot, found, held_to)
            if found.follower is not None:
                raise SourceUnavailable(
                    f'source "{self.name}" is being followed by somebody else',
                    code="HW-305",
                    hint="stop the other maintainer of this project",
                )
            follower = ScriptedFollower(self, tuple(relations), found, start)
            found.follower = follower
            return follower

    def peek(self, relations: Sequence[Relation], slot: str, held_to: Position | None) -> Capture | None:
        """Return all transactions after a position."""
        with self.database.changed:
            self.database.require_up()
            start = self._start(slot, self._slot(slot), held_to)
            return self.capture(relations, start, len(self.database.transactions))

    def capture(self, relations: Sequence[Relation], after: int, upto: int) -> Capture | None:
        """Return the transactions with after < number <= upto, and their rows in some relations."""
        found = self.database.transactions[after:upto]
        if not found:
            return None
        changes, names = [one.changes for one in found], {relation.name for relation in relations}
        return Capture(
            transactions=tuple(
                Transaction(
                    position=self.position(number),
                    identity=number,
                    committed_at=datetime.fromtimestamp(number, UTC),
                    gid=one.gid,
                )
                for number, one in enumerate(found, after + 1)
            ),
            rows={relation.name: table for relation in relations if (table := signed_rows(relation, changes)).num_rows},
            truncated={
                ordinal: emptied
                for ordinal, one in enumerate(found)
                if (emptied := tuple(name for name in one.truncated if name in names))
            },
        )

    def snapshot(self, *, bootstrap: bool = False) -> ScriptedSnapshot:
        """Open a snapshot; for a bootstrap, one that shows everything the log tells of."""
        return ScriptedSnapshot(
            source=self, seen=self.database.seen(everything=bootstrap), token=str(self.database.run)
        )

    def distance(self, earlier: Position, later: Position) -> Distance:
        """Return how many transactions lie between two positions."""
        return Distance(amount=max(0, later.offset - earlier.offset), unit="transactions")

    def index_hint(self, relation: Relation, columns: Sequence[str]) -> str | None:
        """Return None: there are no indexes."""
        del relation, columns
        return None

    def measure(self, relations: Sequence[Relation]) -> SourceMeasure:
        """Say how many rows relations have; asking costs nothing."""
        seen = self.database.seen()
        sizes = {relation.name: float(self.database.state(relation.name, seen).total()) for relation in relations}
        return SourceMeasure(
            relations={
                relation.name: RelationMeasure(
                    rows=sizes[relation.name],
                    columns={
                        name: ColumnMeasure(width=_BYTES_PER_VALUE, distinct=max(sizes[relation.name], 1.0))
                        for name in relation.column_names
                    },
                )
                for relation in relations
            },
            block_bytes=8192,
            trip_seconds=0.0,
            byte_seconds=0.0,
            block_seconds=0.0,
        )

    def teardown(self, slot: str | None, held_to: Position | None) -> TornDown:
        """Drop a slot, unless more has been forgotten for it than `held_to`."""
        with self.database.changed:
            self.database.require_up()
            found = None if slot is None else self.database.slots.get(slot)
            is_ours = found is not None and (
                held_to is None or held_to.history != self.database.history or found.forgotten_to <= held_to.offset
            )
            if is_ours and slot is not None:
                del self.database.slots[slot]
            return TornDown(dropped=(f"slot {slot}",) if is_ours else (), left=tuple(self.slots().present.values()))

    def _slot(self, name: str) -> ScriptedSlot:
        if name not in self.database.slots:
            raise missing_slot(self.name, f'slot "{name}"')
        return self.database.slots[name]

    def _start(self, name: str, slot: ScriptedSlot, held_to: Position | None) -> int:
        """Return after which transaction a slot is followed."""
        state = self._state(name, slot)
        if state.lost is not None:
            raise state.lost
        if held_to is None:
            return slot.forgotten_to
        require_held(name, state.forgotten_to, held_to)
        return held_to.offset

    def _state(self, name: str, slot: ScriptedSlot) -> SlotState:
        lost = SourceLost(
            f'source "{self.name}" has thrown away log that we still need',
            code="HW-311",
            detail=f'slot "{name}": {slot.lost}',
            hint=f"`headwater teardown --source {self.name}` and `headwater run` read this source again",
        )
        return SlotState(
            name=name,
            forgotten_to=self.position(slot.forgotten_to),
            is_in_use=slot.follower is not None,
            held_bytes=0,
            what=f"slot {name}",
            drop=f"del database.slots[{name!r}]",
            lost=lost if slot.lost else None,
        )


class ScriptedFollower:
    """See `headwater.sources.source.Follower`; it ends when the database ends its connections."""

    def __init__(self, source: ScriptedSource, relations: tuple[Relation, ...], slot: ScriptedSlot, start: int) -> None:
        """Begin after a transaction."""
        self._source = source
        self._database = source.database
        self._relations = relations
        self._slot = slot
        self._read = start

    def next_capture(self, timeout_seconds: float) -> Capture | None:
        """Return the next transactions, or None when none came in that time."""
        database = self._database
        with database.changed:
            database.changed.wait_for(
                lambda: len(database.transactions) > self._read or self._slot.follower is not self, timeout_seconds
            )
            self._require_connected()
            upto = min(len(database.transactions), self._read + _CAPTURE_LENGTH)
            capture = self._source.capture(self._relations, self._read, upto)
            self._read = max(self._read, upto)
            return capture

    def followed_to(self) -> Position:
        """Return how far the log has been returned."""
        return self._source.position(self._read)

    def log_end(self) -> Position:
        """Return where the log ends."""
        with self._database.changed:
            self._require_connected()
            return self._source.position(len(self._database.transactions))

    def acknowledge(self, position: Position) -> None:
        """Forget the log up to here."""
        with self._database.changed:
            if self._slot.follower is self:
                self._slot.forgotten_to = max(self._slot.forgotten_to, position.offset)

    def hasten(self, position: Position) -> None:
        """Do nothing: transactions are returned as soon as they are committed."""

    def keep_alive(self) -> None:
        """Notice that the connection has ended."""
        with self._database.changed:
            self._require_connected()

    def close(self) -> None:
        """End the connection."""
        with self._database.changed:
            if self._slot.follower is self:
                self._slot.follower = None

    def _require_connected(self) -> None:
        self._database.require_up()
        if self._slot.follower is not self:
            raise disconnected(self._source.name)


@dataclass(frozen=True, kw_only=True)
class ScriptedSnapshot:
    """See `headwater.sources.source.Snapshot`."""

    source: ScriptedSource
    seen: SeenUpTo
    token: str

    @property
    def position(self) -> Position:
        """Where the log ended."""
        return self.source.position(self.seen.last)

    def read_seen(self, said: Mapping[str, Any]) -> SeenUpTo:
        """Return what an earlier snapshot has `written` of what it saw."""
        return SeenUpTo.read(said)

    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the wanted columns of the rows whose `columns` equal some row of `keys`; of all without columns."""
        self._require_valid()
        rows: Mapping[tuple[object, ...], int] = self.source.database.state(relation.name, self.seen)
        if columns:
            sought = {
                key_of(key)
                for key in zip(*(keys.column(place).to_pylist() for place in range(len(columns))), strict=True)
            }
            places = [relation.column_names.index(name) for name in columns]
            rows = {row: n for row, n in rows.items() if key_of([row[place] for place in places]) in sought}
        return plain_rows(relation, rows).select(list(wanted))

    def chunks(self, relation: Relation, rows_per_chunk: int) -> tuple[Chunk, ...]:
        """Divide a relation by the first column of its key, if that is a whole number."""
        if not relation.key or not pa.types.is_integer(arrow_type(relation.column(relation.key[0]).type)):
            return (Chunk(number=0),)
        place = relation.column_names.index(relation.key[0])
        held = sorted(row[place] for row in self.source.database.state(relation.name, self.seen).elements())  # type: ignore[type-var]
        bounds = [str(value) for value in dict.fromkeys(held[rows_per_chunk - 1 : -1 : rows_per_chunk])]
        return tuple(
            Chunk(number=number, column=relation.key[0], low=low, high=high)
            for number, (low, high) in enumerate(zip((None, *bounds), (*bounds, None), strict=True))
        )

    def read(self, relation: Relation, wanted: tuple[str, ...], chunk: Chunk, rows: Remainder) -> Iterator[pa.Table]:
        """Yield the wanted columns of a chunk's rows."""
        del rows
        self._require_valid()
        held: Mapping[tuple[object, ...], int] = self.source.database.state(relation.name, self.seen)
        if chunk.column is not None:
            place = relation.column_names.index(chunk.column)
            held = {row: n for row, n in held.items() if _is_within(row[place], chunk)}
        yield plain_rows(relation, held).select(list(wanted))

    def is_valid(self) -> bool:
        """Tell whether the database has not restarted since."""
        return self.token == str(self.source.database.run)

    def _require_valid(self) -> None:
        self.source.database.require_up()
        if not self.is_valid():
            raise SourceUnavailable(
                f'a snapshot of source "{self.source.name}" is gone',
                code="HW-306",
                detail="the database was restarted",
                hint="it is taken again by itself",
            )

    def __enter__(self) -> Self:
        """Return it; there is nothing to open."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Do nothing; there is nothing to close."""


def _is_within(value: object, chunk: Chunk) -> bool:
    if not isinstance(value, int):
        return chunk.low is None
    return (chunk.low is None or value > int(chunk.low)) and (chunk.high is None or value <= int(chunk.high))
