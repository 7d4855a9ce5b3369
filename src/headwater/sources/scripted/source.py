"""A scripted database as a source: see `headwater.sources.source`.

A slot's position is how many transactions of a log have been forgotten for it; what was acknowledged is not sent again.
A database that holds its logs for nobody has no slots: its positions carry the proof of the transaction they end with.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from typing import Any, Self
from urllib.parse import urlsplit

import pyarrow as pa

from headwater.deltas.extent import Remainder
from headwater.errors import InvalidProject, SourceLost, SourceUnavailable
from headwater.model.position import Distance, Notation, Position, Positions, by_log, log_name
from headwater.model.relation import Relation, RelationName, arrow_type
from headwater.model.transaction import Capture, SeenOfLogs, SeenUpTo, Transaction
from headwater.sources.measure import ColumnMeasure, RelationMeasure, SourceMeasure
from headwater.sources.scripted.database import ScriptedDatabase, ScriptedSlot, ScriptedTransaction, disconnected
from headwater.sources.scripted.rows import Changes, Values, key_of, plain_rows, signed_rows
from headwater.sources.source import (
    Abilities,
    Chunk,
    Inspection,
    LogView,
    ProjectSlots,
    SlotState,
    SourceSettings,
    TornDown,
    missing_relation,
    missing_slot,
    require_held,
    unproved_log,
)

_NOTATION = Notation(history="how often it was restored")
_CAPTURE_LENGTH = 500
_BYTES_PER_VALUE = 8.0
_FOLLOW_SECONDS = 10.0


class ScriptedSource:
    """One client of a scripted database. Several may be clients of one."""

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
        settings.allow_options()
        database = ScriptedDatabase.find(urlsplit(settings.url()).netloc)
        if database is None:
            raise InvalidProject(
                f'the url of source "{settings.name}" names no scripted database of this process',
                code="HW-349",
                detail="scripted databases are in memory, and end with the process that made them",
                hint="use the url that `ScriptedDatabase.publish` returned, while the database is there",
            )
        return cls(settings.name, database=database)

    @property
    def abilities(self) -> Abilities:
        """What the database can do."""
        return self.database.abilities

    def commit(self, changes: Changes) -> Position:
        """Commit a transaction in the database, and return where it ends in its log."""
        number = self.database.commit(changes)
        return self.position(number, self.database.logs(tuple(changes))[0])

    def position(self, number: int, log: str = "") -> Position:
        """Return the position after the first `number` transactions of a log."""
        proof = b""
        if not self.abilities.holds_log and 0 < number <= len(transactions := self.database.log(log)):
            proof = transactions[number - 1].proof
        return Position(
            source=self.name, log=log, history=self.database.history, offset=number, notation=_NOTATION, proof=proof
        )

    def positions(self, numbers: Mapping[str, int]) -> Positions:
        """Return the positions after the first `numbers` transactions of each log."""
        return by_log(self.position(number, log) for log, number in numbers.items())

    def ends(self, relations: Sequence[RelationName]) -> dict[str, int]:
        """Return how many transactions the logs of some relations hold."""
        return {log: self.database.end(log) for log in self.database.logs(relations)}

    def inspect(self, names: Sequence[RelationName]) -> Inspection:
        """Describe relations. Nothing but the relations themselves can be missing."""
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

    def prepare(self, relations: Sequence[RelationName], slot: str, *, is_new: bool) -> Positions:
        """Make a slot if it is new, and return up to where the logs have been forgotten for it."""
        for refusal in self.inspect(relations).refusals:
            raise refusal
        database = self.database
        with database.changed:
            ends = self.ends(relations)
            begins_at = dict.fromkeys(ends, 0) if database.tells_from_start else ends
            if not self.abilities.holds_log:
                return self.positions(begins_at)
            if slot not in database.slots and is_new:
                database.slots[slot] = ScriptedSlot(forgotten_to={})
            forgotten_to = self._slot(slot).forgotten_to
            forgotten_to.update({log: number for log, number in begins_at.items() if log not in forgotten_to})
            return self.positions({log: forgotten_to[log] for log in ends})

    def follow(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> ScriptedFollower:
        """Open the logs that a slot keeps, after the positions up to which the change log holds them."""
        with self.database.changed:
            self.database.require_up()
            start = self._start(relations, slot, held_to)
            if slot in self.database.followers:
                raise SourceUnavailable(
                    f'source "{self.name}" is being followed by somebody else',
                    code="HW-305",
                    hint="stop the other maintainer of this project",
                )
            follower = ScriptedFollower(self, tuple(relations), slot, start)
            self.database.followers[slot] = follower
            return follower

    def peek(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> Capture | None:
        """Return all transactions after some positions."""
        with self.database.changed:
            self.database.require_up()
            start = self._start(relations, slot, held_to)
            return self.capture(relations, start, self.ends([one.name for one in relations]))

    def capture(
        self, relations: Sequence[Relation], after: Mapping[str, int], upto: Mapping[str, int]
    ) -> Capture | None:
        """Return the transactions with after < number <= upto of each log, and their rows in some relations.

        Those of several logs come in the order in which they were committed.
        """
        found: list[tuple[int, ScriptedTransaction]] = []
        if self.database.has_log_per_relation:
            numbers = dict.fromkeys(after, 0)
            for one in self.database.transactions:
                if one.log in numbers:
                    numbers[one.log] += 1
                    if after[one.log] < numbers[one.log] <= upto[one.log]:
                        found.append((numbers[one.log], one))
        elif self.abilities.tells_every_transaction:
            found = list(enumerate(self.database.transactions[after[""] : upto[""]], after[""] + 1))
        else:
            polls = (one for one in self.database.polls if after[""] < one <= upto[""])
            found = [
                (one, self._difference(before, one)) for before, one in pairwise((after[""], *dict.fromkeys(polls)))
            ]
        if not found:
            return None
        changes, names = [one.changes for _, one in found], {relation.name for relation in relations}
        return Capture(
            transactions=tuple(
                Transaction(
                    position=self.position(number, one.log),
                    identity=number,
                    committed_at=datetime.fromtimestamp(number, UTC),
                    gid=one.gid,
                )
                for number, one in found
            ),
            rows={relation.name: table for relation in relations if (table := signed_rows(relation, changes)).num_rows},
            truncated={
                ordinal: emptied
                for ordinal, (_, one) in enumerate(found)
                if (emptied := tuple(name for name in one.truncated if name in names))
            },
            altered={
                ordinal: altered
                for ordinal, (_, one) in enumerate(found)
                if (altered := {name: what for name, what in one.altered.items() if name in names})
            },
        )

    def _difference(self, before: int, after: int) -> ScriptedTransaction:
        """Return what came and went between two polls, as one transaction."""
        changes: dict[RelationName, dict[Values, int]] = {}
        between = self.database.transactions[before:after]
        for name in {name for one in between for name in (*one.changes, *one.truncated)}:
            net: Counter[Values] = Counter()
            if any(name in one.truncated for one in between):
                net.update(self.database.state(name, SeenUpTo(last=after)))
                net.subtract(self.database.state(name, SeenUpTo(last=before)))
            else:
                for one in between:
                    net.update(one.changes.get(name, {}))
            changes[name] = {row: times for row, times in net.items() if times}
        return ScriptedTransaction(changes=changes)

    def snapshot(
        self, relations: Sequence[RelationName], *, bootstrap: bool = False, at: Positions | None = None
    ) -> ScriptedSnapshot:
        """Open a snapshot. For a bootstrap, one that shows everything the log tells of."""
        database, names = self.database, tuple(relations)
        if at is None:
            seen = database.seen(names, everything=bootstrap)
        else:
            assert self.abilities.reads_as_of, "it shows the present only"
            seen = database.seen_upto({position.log: position.offset for position in at.values()})
        return ScriptedSnapshot(
            source=self, relations=names, seen=seen, token=str(database.run), is_past=at is not None
        )

    @contextmanager
    def join(self, said: Mapping[str, Any]) -> Iterator[ScriptedReader]:
        """Lend a reader that shows a snapshot which another client of the database has exported."""
        if said["name"] not in self.database.exported:
            raise _gone(self.name, "it was closed")
        reader = ScriptedReader(source=self, seen=self.read_seen(said["seen"]), token=said["token"])
        reader.require_valid()
        yield reader

    def login(self) -> str:
        """Return a URL by which another client finds the database."""
        return self.database.publish()

    def read_seen(self, said: Mapping[str, Any]) -> SeenUpTo | SeenOfLogs:
        """Return what a reader has `written` of what it saw."""
        return SeenOfLogs.read(said) if self.database.has_log_per_relation else SeenUpTo.read(said)

    def distance(self, earlier: Position, later: Position) -> Distance:
        """Return how many transactions lie between two positions."""
        return Distance(amount=max(0, later.offset - earlier.offset), unit="transactions")

    def index_hint(self, relation: Relation, columns: Sequence[str]) -> str | None:
        """Return None: there are no indexes."""
        del relation, columns
        return None

    def measure(self, relations: Sequence[Relation]) -> SourceMeasure:
        """Say how many rows relations have. Asking costs nothing."""
        seen = self.database.seen([relation.name for relation in relations])
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

    def teardown(self, slot: str | None, held_to: Positions) -> TornDown:
        """Drop a slot, unless more has been forgotten for it than `held_to`."""
        with self.database.changed:
            self.database.require_up()
            found = None if slot is None else self.database.slots.get(slot)
            is_ours = found is not None and all(
                held.history != self.database.history or found.forgotten_to.get(held.log, 0) <= held.offset
                for held in held_to.values()
            )
            if is_ours and slot is not None:
                del self.database.slots[slot]
            return TornDown(dropped=(f"slot {slot}",) if is_ours else (), left=tuple(self.slots().present.values()))

    def _slot(self, name: str) -> ScriptedSlot:
        if name not in self.database.slots:
            raise missing_slot(self.name, f'slot "{name}"')
        return self.database.slots[name]

    def _start(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> dict[str, int]:
        """Return after which transaction of each log a slot is followed."""
        logs = self.database.logs([relation.name for relation in relations])
        if not self.abilities.holds_log:
            return {log: self._proved(log, held_to.get(log_name(self.name, log))) for log in logs}
        state = self._state(slot, self._slot(slot))
        if state.lost is not None:
            raise state.lost
        require_held(slot, state.forgotten_to, held_to)
        names = {log: log_name(self.name, log) for log in logs}
        return {
            log: held_to[name].offset if name in held_to else state.forgotten_to[name].offset
            for log, name in names.items()
        }

    def _proved(self, log: str, held_to: Position | None) -> int:
        """Return after which transaction a log is followed that is held for nobody, if it still holds what follows."""
        deleted_to = self.database.deleted_to.get(log, 0)
        if held_to is None:
            return deleted_to
        now = self.position(held_to.offset, log)
        if not held_to <= now or now.proof != held_to.proof:
            raise unproved_log(held_to, "it holds another transaction, or none")
        if held_to.offset < deleted_to:
            raise self._thrown_away(f"its log begins after transaction {deleted_to}")
        return held_to.offset

    def _thrown_away(self, detail: str) -> SourceLost:
        return SourceLost(
            f'source "{self.name}" has thrown away log that we still need',
            code="HW-311",
            detail=detail,
            hint=f"`headwater teardown --source {self.name}` and `headwater run` read this source again",
        )

    def _state(self, name: str, slot: ScriptedSlot) -> SlotState:
        return SlotState(
            name=name,
            forgotten_to=self.positions(slot.forgotten_to),
            is_in_use=name in self.database.followers,
            held_bytes=0,
            what=f"slot {name}",
            drop=f"del database.slots[{name!r}]",
            lost=self._thrown_away(f'slot "{name}": {slot.lost}') if slot.lost else None,
        )


class ScriptedFollower:
    """See `headwater.sources.source.Follower`. It ends when the database ends its connections."""

    def __init__(
        self, source: ScriptedSource, relations: tuple[Relation, ...], slot: str, start: Mapping[str, int]
    ) -> None:
        """Begin after a transaction of each log."""
        self._source = source
        self._database = source.database
        self._relations = relations
        self._names = tuple(relation.name for relation in relations)
        self._slot = slot
        self._read = dict(start)

    def next_capture(self, timeout_seconds: float) -> Capture | None:
        """Return the next transactions, or None when none came in that time."""
        database = self._database
        with database.changed:
            database.changed.wait_for(
                lambda: self._source.ends(self._names) != self._read or not self._is_connected(), timeout_seconds
            )
            self._require_connected()
            ends = self._source.ends(self._names)
            is_limited = self._source.abilities.tells_every_transaction
            upto = {
                log: min(ends[log], read + _CAPTURE_LENGTH) if is_limited else ends[log]
                for log, read in self._read.items()
            }
            capture = self._source.capture(self._relations, self._read, upto)
            self._read = {log: max(read, upto[log]) for log, read in self._read.items()}
            return capture

    def followed_to(self) -> Positions:
        """Return how far the logs have been returned."""
        return self._source.positions(self._read)

    def log_end(self) -> Positions:
        """Return where the logs end."""
        with self._database.changed:
            self._require_connected()
            return self._source.positions(self._source.ends(self._names))

    def log_begin(self) -> Positions:
        """Return up to where the logs were deleted, if the database does not hold them for us."""
        if self._source.abilities.holds_log:
            return {}
        return self._source.positions({log: self._database.deleted_to.get(log, 0) for log in self._read})

    def acknowledge(self, position: Position) -> None:
        """Forget the log up to here."""
        with self._database.changed:
            slot = self._database.slots.get(self._slot)
            if slot is not None and self._is_connected():
                slot.forgotten_to[position.log] = max(slot.forgotten_to.get(position.log, 0), position.offset)

    def hasten(self, position: Position) -> None:
        """Do nothing: transactions are returned as soon as they are committed."""

    def keep_alive(self) -> None:
        """Notice that the connection has ended."""
        with self._database.changed:
            self._require_connected()

    def close(self) -> None:
        """End the connection."""
        with self._database.changed:
            if self._is_connected():
                del self._database.followers[self._slot]

    def _is_connected(self) -> bool:
        return self._database.followers.get(self._slot) is self

    def _require_connected(self) -> None:
        self._database.require_up()
        if not self._is_connected():
            raise disconnected(self._source.name)


@dataclass(frozen=True, kw_only=True)
class ScriptedReader:
    """See `headwater.sources.source.Reader`."""

    source: ScriptedSource
    seen: SeenUpTo | SeenOfLogs
    token: str

    @property
    def positions(self) -> Positions:
        """Where the logs ended."""
        logs = (("", self.seen),) if isinstance(self.seen, SeenUpTo) else self.seen.logs
        return self.source.positions({log: seen.last for log, seen in logs})

    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the wanted columns of the rows whose `columns` equal some row of `keys`. Of all without columns."""
        self.require_valid()
        rows: Mapping[tuple[object, ...], int] = self.source.database.state(relation.name, self.seen)
        if columns:
            sought = {
                key_of(key)
                for key in zip(*(keys.column(place).to_pylist() for place in range(len(columns))), strict=True)
            }
            places = [relation.column_names.index(name) for name in columns]
            rows = {row: n for row, n in rows.items() if key_of([row[place] for place in places]) in sought}
        return plain_rows(relation, rows).select(list(wanted))

    def read(self, relation: Relation, wanted: tuple[str, ...], chunk: Chunk, rows: Remainder) -> Iterator[pa.Table]:
        """Yield the wanted columns of a chunk's rows."""
        del rows
        self.require_valid()
        held: Mapping[tuple[object, ...], int] = self.source.database.state(relation.name, self.seen)
        if chunk.column is not None:
            place = relation.column_names.index(chunk.column)
            held = {row: n for row, n in held.items() if _is_within(row[place], chunk)}
        yield plain_rows(relation, held).select(list(wanted))

    def require_valid(self) -> None:
        """Refuse to go on once the database was restarted."""
        self.source.database.require_up()
        if self.token != str(self.source.database.run):
            raise _gone(self.source.name, "the database was restarted")


@dataclass(frozen=True, kw_only=True)
class ScriptedSnapshot:
    """See `headwater.sources.source.Snapshot`."""

    source: ScriptedSource
    relations: tuple[RelationName, ...]
    seen: SeenUpTo | SeenOfLogs
    """What was visible when it was opened."""
    token: str
    is_past: bool = False
    name: str = field(default_factory=partial(secrets.token_hex, 4))
    """The name that it is exported by."""

    @contextmanager
    def reader(self) -> Iterator[ScriptedReader]:
        """Lend a reader: of the moment when the snapshot was opened, or of now if the database cannot share that."""
        is_shared = self.is_past or self.source.abilities.shares_snapshots
        seen = self.seen if is_shared else self.source.database.seen(self.relations)
        yield ScriptedReader(source=self.source, seen=seen, token=self.token)

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

    def exported(self) -> Mapping[str, Any]:
        """Return what `ScriptedSource.join` is given by another client."""
        assert self.source.abilities.exports_snapshots, "its snapshots are for this client only"
        self.source.database.exported.add(self.name)
        return {"name": self.name, "seen": self.seen.written(), "token": self.token}

    def is_valid(self, log: LogView) -> bool:
        """Tell whether the database has not restarted since. One that cannot share snapshots lets the log come to now.

        So an alteration is noticed that older readers of such a database read through.
        """
        if self.token != str(self.source.database.run):
            return False
        if self.is_past or self.source.abilities.shares_snapshots:
            return True
        with self.reader() as now:
            return log.wait_for(now.positions, _FOLLOW_SECONDS)

    def __enter__(self) -> Self:
        """Return it. There is nothing to open."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Let no other client join it any more."""
        self.source.database.exported.discard(self.name)


def _gone(source: str, detail: str) -> SourceUnavailable:
    return SourceUnavailable(
        f'a snapshot of source "{source}" is gone', code="HW-306", detail=detail, hint="it is taken again by itself"
    )


def _is_within(value: object, chunk: Chunk) -> bool:
    if not isinstance(value, int):
        return chunk.low is None
    return (chunk.low is None or value > int(chunk.low)) and (chunk.high is None or value <= int(chunk.high))
