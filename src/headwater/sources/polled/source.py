"""A source that is polled: see `headwater.sources.source`.

    every `poll`: read all relations at one moment ──► a state of `states`, if anything differs ──► one transaction

What happens between two polls is one change, or none if it was undone: the guarantee is about the polled states. The
log is the warehouse's own (`states`), so readers are shown the newest state and never ask the place itself.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from headwater.deltas.extent import Remainder
from headwater.deltas.indexed_rows import is_among
from headwater.deltas.on_arrow import remaining
from headwater.errors import InvalidProject, SourceLost
from headwater.model.position import Distance, Notation, Position, Positions, by_log
from headwater.model.relation import COUNT, ColumnUse, Relation, RelationName, arrow_type
from headwater.model.transaction import ORDINAL, Capture, SeenUpTo, Transaction
from headwater.sources.measure import ColumnMeasure, RelationMeasure, SourceMeasure
from headwater.sources.polled.folder import FolderPlace
from headwater.sources.polled.place import Place
from headwater.sources.polled.sqlite import SqlitePlace
from headwater.sources.polled.states import PolledRelation, PolledState, States
from headwater.sources.source import (
    Abilities,
    Chunk,
    Inspection,
    LogView,
    ProcessFiles,
    ProjectSlots,
    SourceSettings,
    StateFiles,
    TornDown,
    unproved_log,
)

_ABILITIES = Abilities(
    shares_snapshots=True, exports_snapshots=False, reads_as_of=False, holds_log=False, tells_every_transaction=False
)
_NOTATION = Notation(history="the name of its first poll")
_LOOK_SECONDS = 0.05
_TEXT_BYTES = 16.0
_DEFAULT_SECONDS = 60.0
_LEAST_SECONDS = 0.05
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}


class PolledSource:
    """See `headwater.sources.source.Source`."""

    def __init__(
        self, name: str, place: Place, *, poll_seconds: float = 60.0, files: StateFiles | None = None, url: str = ""
    ) -> None:
        """Keep what is polled, how often, and where its states are kept."""
        self.name = name
        self.place = place
        self.poll_seconds = poll_seconds
        self.states = States(ProcessFiles() if files is None else files)
        self._url = url
        self._polled_at: float | None = None
        self._described: dict[str, tuple[tuple[str, str], ...]] = {}
        self._described_after = 0
        """The newest state when relations were described. Those up to it may have had other columns."""
        self._polling = threading.Lock()

    @classmethod
    def connect(cls, settings: SourceSettings) -> Self:
        """Return the source that a URL names."""
        settings.allow_options("poll")
        url = settings.url()
        return cls(
            settings.name,
            place_at(url, settings),
            poll_seconds=poll_seconds_of(settings),
            files=settings.files,
            url=url,
        )

    @property
    def abilities(self) -> Abilities:
        """What polled sources can do."""
        return replace(_ABILITIES, polled_every_seconds=self.poll_seconds)

    @property
    def default_schema(self) -> str:
        """What the place calls it."""
        return self.place.default_schema

    def inspect(self, names: Sequence[RelationName]) -> Inspection:
        """Describe relations as they are now."""
        newest = self.states.newest()
        self._described_after = 0 if newest is None else newest.number
        found = self.place.describe(names)
        self._described |= {str(one.name): tuple((it.name, it.type) for it in one.columns) for one in found.relations}
        return found

    def poll(self, names: Sequence[RelationName]) -> PolledState:
        """Read relations now, and return the newest state."""
        with self._polling, self.place.moment() as moment:  # one after the other: states are in the order of time
            inspection = moment.describe(names)
            described = {relation.name for relation in inspection.relations}
            found = self.states.poll(moment, inspection.relations, [one for one in names if one not in described])
        self._polled_at = time.monotonic()
        return found

    @property
    def seconds_until_poll(self) -> float:
        """How long it is until the next poll."""
        return 0.0 if self._polled_at is None else self._polled_at + self.poll_seconds - time.monotonic()

    def position(self, state: PolledState) -> Position:
        """Return the position of a state."""
        return Position(
            source=self.name,
            history=state.history,
            offset=state.number,
            notation=_NOTATION,
            proof=bytes.fromhex(state.proof),
        )

    def slots(self) -> ProjectSlots:
        """Return none: nothing is made at the place."""
        return ProjectSlots(present={}, former="")

    def new_slot(self) -> str:
        """Return a name. Nothing is made."""
        return f"{self.name}_{secrets.token_hex(4)}"

    def prepare(self, relations: Sequence[RelationName], slot: str, *, is_new: bool) -> Positions:
        """Poll, so that there is a state with all relations, and return its position."""
        del slot, is_new
        for refusal in self.inspect(relations).refusals:
            raise refusal
        return by_log([self.position(self.poll(relations))])

    def follow(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> PolledFollower:
        """Go on after the state that the change log holds."""
        del slot
        return PolledFollower(self, tuple(relations), self._start(held_to))

    def _start(self, held_to: Positions) -> PolledState:
        held = held_to.get(self.name)
        if held is None:
            numbers = self.states.numbers()
            first = self.states.state(numbers[0]) if numbers else None
            if first is None:
                raise _no_states(self.name)
            return first
        state = self.states.state(held.offset)
        if state is None or self.position(state).proof != held.proof or state.history != held.history:
            raise unproved_log(held, "the warehouse holds no such poll, or another one")
        return state

    def peek(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> Capture | None:
        """Return what the states that are there tell. Nothing is polled."""
        del slot
        state: PolledState | None = self._start(held_to)
        found: list[PolledState] = []
        while state is not None:
            state = self.states.state(state.number + 1)
            found += [] if state is None else [state]
        return self.capture(found, relations)

    def capture(self, states: Sequence[PolledState], relations: Sequence[Relation]) -> Capture | None:
        """Return what states tell of some relations."""
        transactions: list[Transaction] = []
        rows: dict[RelationName, list[pa.Table]] = {}
        altered: dict[int, dict[RelationName, str]] = {}
        for state in states:
            ordinal = len(transactions)
            found = {one.name: self._changes(state, one, ordinal) for one in relations}
            is_older = state.number <= self._described_after
            what = {one.name: said for one in relations if (said := _alteration(state, one, is_older=is_older))}
            changes = {name: table for name, table in found.items() if table is not None and name not in what}
            if not what and not changes:
                continue
            transactions.append(
                Transaction(position=self.position(state), identity=state.number, committed_at=state.at)
            )
            for name, table in changes.items():
                rows.setdefault(name, []).append(table)
            if what:
                altered[ordinal] = what
        if not transactions:
            return None
        return Capture(
            transactions=tuple(transactions),
            rows={name: pa.concat_tables(tables) for name, tables in rows.items()},
            altered=altered,
        )

    def _changes(self, state: PolledState, relation: Relation, ordinal: int) -> pa.Table | None:
        held = state.relations.get(str(relation.name))
        if held is None or held.changes is None:
            return None
        told = self.states.table(held.changes)
        rows = _with_columns(told, relation, relation.column_names)
        ordinals = pa.repeat(pa.scalar(ordinal, pa.int32()), told.num_rows)
        return rows.append_column(ORDINAL, ordinals).append_column(COUNT, told[COUNT])

    def snapshot(
        self, relations: Sequence[RelationName], *, bootstrap: bool = False, at: Positions | None = None
    ) -> PolledSnapshot:
        """Open the newest state. Only what was never polled is polled now."""
        del bootstrap
        assert at is None, "it shows the newest state only"
        newest = self.states.newest()
        if newest is None or not all(self._has(newest, str(name)) for name in relations):
            newest = self.poll(relations)
        return PolledSnapshot(self, newest)

    def _has(self, state: PolledState, name: str) -> bool:
        """Tell whether a state has a relation with the columns that it was described with."""
        held = state.relations.get(name)
        return held is not None and {one[:2] for one in held.columns} >= {*self._described.get(name, ())}

    @contextmanager
    def join(self, said: Mapping[str, Any]) -> Iterator[PolledReader]:
        """Not asked for: its snapshots are for one process."""
        raise AssertionError(f"its snapshots are for one process: {said}")
        yield

    def login(self) -> str:
        """Return the URL."""
        return self._url

    def read_seen(self, said: Mapping[str, Any]) -> SeenUpTo:
        """Return what a reader has written of what it saw."""
        return SeenUpTo.read(said)

    def distance(self, earlier: Position, later: Position) -> Distance:
        """Return how many polls with a difference lie between two positions."""
        return Distance(amount=max(0, later.offset - earlier.offset), unit="polls")

    def index_hint(self, relation: Relation, columns: Sequence[str]) -> str | None:
        """Return None: it is never probed."""
        del relation, columns
        return None

    def measure(self, relations: Sequence[Relation]) -> SourceMeasure:
        """Say how many rows relations have in the newest state."""
        newest = self.states.newest()
        held = {} if newest is None else newest.relations
        rows = {one.name: held.get(str(one.name)) for one in relations}
        sizes = {
            name: 0.0 if one is None else float(self.states.table(one.rows).num_rows) for name, one in rows.items()
        }
        return SourceMeasure(
            relations={
                one.name: RelationMeasure(
                    rows=sizes[one.name],
                    columns={
                        column.name: ColumnMeasure(width=_width(column.type), distinct=max(sizes[one.name], 1.0))
                        for column in one.columns
                    },
                )
                for one in relations
            },
            block_bytes=8192,
            trip_seconds=0.0,
            byte_seconds=0.0,
            block_seconds=0.0,
        )

    def teardown(self, slot: str | None, held_to: Positions) -> TornDown:
        """Forget the states that the warehouse keeps, so that all is read again. Nothing was made at the place."""
        del held_to
        if slot is not None:
            self.states.forget_all()
        return TornDown(dropped=(), left=())


class PolledFollower:
    """See `headwater.sources.source.Follower`. It polls when that is due, and tells the states one after the other."""

    def __init__(self, source: PolledSource, relations: tuple[Relation, ...], start: PolledState) -> None:
        """Begin after a state."""
        self._source = source
        self._relations = relations
        self._read = start
        self._hastened = threading.Event()

    def next_capture(self, timeout_seconds: float) -> Capture | None:
        """Return what the next state tells, or None when there was none in that time."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            state = self._source.states.state(self._read.number + 1)
            if state is not None:
                self._read = state
                return self._source.capture([state], self._relations)
            if self._source.seconds_until_poll <= 0:
                self._source.poll([relation.name for relation in self._relations])
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._hastened.wait(min(left, _LOOK_SECONDS))
            self._hastened.clear()

    def followed_to(self) -> Positions:
        """Return the last state that was returned."""
        return by_log([self._source.position(self._read)])

    def log_end(self) -> Positions:
        """Return the newest state."""
        return by_log([self._source.position(self._source.states.newest() or self._read)])

    def log_begin(self) -> Positions:
        """Return the first state that is kept."""
        numbers = self._source.states.numbers()
        first = self._source.states.state(numbers[0]) if numbers else None
        return by_log([self._source.position(first or self._read)])

    def acknowledge(self, position: Position) -> None:
        """Forget the states before this one."""
        self._source.states.forget_before(position.offset)

    def hasten(self, position: Position) -> None:
        """Look soon."""
        del position
        self._hastened.set()

    def keep_alive(self) -> None:
        """Do nothing: there is no connection."""

    def close(self) -> None:
        """Do nothing: there is no connection."""


@dataclass(frozen=True)
class PolledSnapshot:
    """See `headwater.sources.source.Snapshot`: one state."""

    source: PolledSource
    state: PolledState

    @property
    def token(self) -> str:
        """Which state it is: rows of two states never mix."""
        return self.state.proof

    @contextmanager
    def reader(self) -> Iterator[PolledReader]:
        """Lend a reader."""
        yield PolledReader(self)

    def table(self, relation: Relation) -> pa.Table:
        """Return the rows of a relation, mapped."""
        return self.source.states.table(self.state.relations[str(relation.name)].rows)

    def chunks(self, relation: Relation, rows_per_chunk: int) -> tuple[Chunk, ...]:
        """Return the whole relation: its rows are in a file of the warehouse already."""
        del relation, rows_per_chunk
        return (Chunk(number=0),)

    def exported(self) -> Mapping[str, Any]:
        """Not asked for: its snapshots are for one process."""
        raise AssertionError("its snapshots are for one process")

    def is_valid(self, log: LogView) -> bool:
        """Tell that a state never changes."""
        del log
        return True

    def __enter__(self) -> Self:
        """Return it. There is nothing to open."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close nothing."""


@dataclass(frozen=True)
class PolledReader:
    """See `headwater.sources.source.Reader`."""

    snapshot: PolledSnapshot

    @property
    def seen(self) -> SeenUpTo:
        """All states up to one."""
        return SeenUpTo(last=self.snapshot.state.number)

    @property
    def positions(self) -> Positions:
        """The state."""
        return by_log([self.snapshot.source.position(self.snapshot.state)])

    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the wanted columns of the rows whose `columns` equal some row of `keys`."""
        names = tuple(dict.fromkeys((*wanted, *columns)))
        rows = _with_columns(self.snapshot.table(relation), relation, names)
        if columns:
            rows = rows.filter(is_among(rows, columns, keys)) if keys.num_rows else rows.slice(0, 0)
        return rows.select(list(wanted))

    def read(self, relation: Relation, wanted: tuple[str, ...], chunk: Chunk, rows: Remainder) -> Iterator[pa.Table]:
        """Yield the wanted columns of the rows."""
        del chunk
        names = relation.in_order({*wanted, *rows.columns})
        for batch in self.snapshot.table(relation).to_batches():
            held = _with_columns(pa.Table.from_batches([batch]), relation, names)
            yield remaining(held, rows).select(list(wanted))


def _with_columns(rows: pa.Table, relation: Relation, names: Sequence[str]) -> pa.Table:
    """Return columns of a relation. One that its rows do not have in its type is NULL: no view reads it."""
    schema = relation.arrow_schema(tuple(names))
    arrays = [
        rows[one.name]
        if one.name in rows.column_names and rows.schema.field(one.name).type == one.type
        else pa.nulls(rows.num_rows, one.type)
        for one in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _alteration(state: PolledState, relation: Relation, *, is_older: bool) -> str:
    """Say what is otherwise in a state than views read it. Empty if nothing is.

    Views that are new do not use what a state that `is_older` than they are told of columns that no other view reads.
    """
    free = {ColumnUse.UNREAD, ColumnUse.FIRST_READ} if is_older else {ColumnUse.UNREAD}
    if str(relation.name) in state.missing:
        return "it is not there any more"
    held: PolledRelation | None = state.relations.get(str(relation.name))
    kinds = {} if held is None else {name: kind for name, kind, _ in held.columns}
    for column in relation.columns if held is not None else ():
        if column.use in free or kinds.get(column.name) == column.type:
            continue
        if column.name in kinds:
            return f'column "{column.name}" was {column.type} and is {kinds[column.name]}'
        return f'column "{column.name}" was dropped or renamed'
    return ""


def _no_states(source: str) -> SourceLost:
    return SourceLost(
        f'source "{source}" was never polled for this warehouse',
        code="HW-355",
        detail="the warehouse holds none of its states: its folder of sources was deleted",
        hint=f"run `headwater teardown --source {source}`, then `headwater run`: the source is read again",
    )


def _width(kind: str) -> float:
    try:
        return float(arrow_type(kind).bit_width) / 8
    except ValueError:  # texts have no fixed width
        return _TEXT_BYTES


def place_at(url: str, settings: SourceSettings) -> Place:
    """Return the place that a URL names. Nothing is connected yet."""
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        return SqlitePlace.at(url, settings.name, settings.probe_timeout_seconds)
    if scheme == "files":
        return FolderPlace.at(url, settings.name)
    from headwater.sources.polled.database import DatabasePlace  # noqa: PLC0415 - SQLAlchemy is an extra

    return DatabasePlace.at(settings)


def poll_seconds_of(settings: SourceSettings) -> float:
    """Return how often a source is polled."""
    said = settings.options.get("poll", f"{_DEFAULT_SECONDS:.0f} s")
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|h)\s*", str(said))
    if match and (seconds := float(match[1]) * _UNITS[match[2]]) >= _LEAST_SECONDS:
        return seconds
    raise InvalidProject(
        f'source "{settings.name}" does not say how often it is polled',
        code="HW-356",
        detail=f'poll = "{said}"' + (f" ({settings.declared_in})" if settings.declared_in else ""),
        hint='write for instance poll = "60 s", or "10 min"; the least is "50 ms"',
    )
