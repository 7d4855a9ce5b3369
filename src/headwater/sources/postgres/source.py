"""A PostgreSQL database as a source: a publication for the project, a slot for each of its warehouses."""

from __future__ import annotations

import contextlib
import logging
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from headwater.errors import SourceLost, SourceRefused, SourceUnavailable
from headwater.model.memory_budget import SPILL_BYTES
from headwater.model.position import Distance, Position, Positions, by_log
from headwater.model.relation import Relation, RelationName
from headwater.model.settings import DEFAULTS, Settings
from headwater.model.transaction import Capture
from headwater.sources.measure import SourceMeasure
from headwater.sources.postgres.blocking import blocking_sessions
from headwater.sources.postgres.catalog import DescribedTable, TypeNames, describe, describe_all
from headwater.sources.postgres.connect import SLOT_IN_USE, Address, Connection, ConnectionPool
from headwater.sources.postgres.follower import PostgresFollower
from headwater.sources.postgres.gathering import Gathering
from headwater.sources.postgres.measuring import measure
from headwater.sources.postgres.partitions import Partitions, remember_partitions
from headwater.sources.postgres.publishing import (
    Slot,
    channel_name,
    create_slot,
    find_publication,
    find_slot,
    find_slots,
    new_slot_name,
    publication_sql,
)
from headwater.sources.postgres.replication import ReplicationStream, sender_timeout
from headwater.sources.postgres.requirements import replication_refusals
from headwater.sources.postgres.snapshot import HISTORY_SQL, PostgresSnapshot
from headwater.sources.postgres.visibility import SeenTransactions
from headwater.sources.source import (
    Abilities,
    Inspection,
    Memory,
    ProcessMemory,
    ProjectSlots,
    SlotState,
    SourceSettings,
    TornDown,
    missing_slot,
    require_held,
)

_log = logging.getLogger(__name__)

_BOOTSTRAP_WARN_SECONDS = 5.0
_BOOTSTRAP_LOOK_SECONDS = 0.05
_RELEASE_SECONDS = 10.0
_FOLLOW_AGAIN_SECONDS = 2.0
_SET_LOCK_TIMEOUT = b"SET lock_timeout = 3000"


class PostgresSource:
    """See `headwater.sources.source.Source`."""

    abilities = Abilities(
        shares_snapshots=True,
        exports_snapshots=True,
        reads_as_of=False,
        holds_log=True,
        tells_every_transaction=True,
    )

    def __init__(
        self,
        name: str,
        url: str | Callable[[], str],
        project: str,
        *,
        probe_timeout_seconds: float = 60.0,
        connection_limit: int = 4,
        tells_prepared: bool = False,
        memory: Memory | None = None,
        settings: Settings = DEFAULTS,
        spill_bytes: int = SPILL_BYTES,
    ) -> None:
        """Remember the address. Nothing is connected yet. A function returns the address as it is kept now.

        `memory` keeps what has to be known in the next run. With `tells_prepared` the log is asked for the ids of
        prepared transactions. A slot that was once asked goes on telling, which harms nobody.
        """
        self._name = name
        self._channel = channel_name(project, name)
        self._probe_timeout_seconds = probe_timeout_seconds
        self._connection_limit = connection_limit
        self._tells_prepared = tells_prepared
        self._settings = settings
        self._spill_bytes = spill_bytes
        self._memory = ProcessMemory() if memory is None else memory
        self._address = Address(
            source=name,
            url=(lambda: url) if isinstance(url, str) else url,
            application=self._channel,
            settings=settings.capture,
        )
        self._pool = ConnectionPool(self._address)
        self._described_at = 0
        """Where the log ended when relations were last inspected."""
        self._finalizer = weakref.finalize(self, self._pool.close)

    @classmethod
    def connect(cls, settings: SourceSettings) -> Self:
        """Return the source that a project's settings describe. Nothing is connected yet."""
        settings.allow_options()
        return cls(
            settings.name,
            settings.url,
            settings.project,
            probe_timeout_seconds=settings.probe_timeout_seconds,
            connection_limit=settings.connection_limit,
            tells_prepared=settings.tells_prepared,
            memory=settings.memory,
            settings=settings.project_settings,
            spill_bytes=settings.spill_bytes,
        )

    def __repr__(self) -> str:
        """Return the place without user or password."""
        return f"PostgresSource({self._name!r}, {self._address.place!r})"

    @property
    def name(self) -> str:
        """The name views use for it."""
        return self._name

    @property
    def default_schema(self) -> str:
        """What PostgreSQL calls the schema of relations that are named without one."""
        return "public"

    def close(self) -> None:
        """Close the idle connections. Also happens by itself when the source is no longer used."""
        self._pool.close()

    def inspect(self, names: Sequence[RelationName]) -> Inspection:
        """Describe relations, and say what is missing before they can be followed. Changes nothing."""
        with self._connected() as connection:
            connection.execute(_SET_LOCK_TIMEOUT)
            row = connection.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::int8").fetchone()
            assert row is not None
            self._described_at = row[0]
            found = describe(connection, names)
            described = [each for each in found if isinstance(each, DescribedTable)]
            return replace(
                self._inspection(connection, [each for each in described if each.refusal is None]),
                relations=tuple(each.relation for each in described),
                refusals=(
                    *replication_refusals(connection, self._address, prepared=self._tells_prepared),
                    *filter(None, (each.refusal if isinstance(each, DescribedTable) else each for each in found)),
                ),
            )

    def slots(self) -> ProjectSlots:
        """Return the slots that warehouses of this project have here now."""
        with self._connected() as connection:
            return ProjectSlots(present=self._slots(connection), former=self._channel)

    def new_slot(self) -> str:
        """Return a name for a slot that no other warehouse has. Nothing is made."""
        return new_slot_name(self._channel)

    def prepare(self, relations: Sequence[RelationName], slot: str, *, is_new: bool) -> Positions:
        """Make the source log these relations for us, and return up to where it has forgotten its log."""
        with self._connected() as connection:
            self._require_replication(connection)
            found = find_slot(connection, self._address, slot)
            if found is None and not is_new:
                raise self._without_slot(slot)
            # A statement that waits for a lock makes the owner's writers wait behind it: give up soon.
            connection.execute(_SET_LOCK_TIMEOUT)
            described = describe_all(connection, relations)
            inspection = self._inspection(connection, described)
            inspection.require_rights(self._name)
            if found is not None and find_publication(connection, self._channel) is None:
                raise SourceLost(
                    f'source "{self._name}" has lost its publication "{self._channel}"',
                    code="HW-312",
                    detail="the slot is there, but what was logged since cannot be decoded",
                    hint=f"run `headwater teardown --source {self._name}`, then `headwater run`: it is read again",
                )
            for statement in inspection.owner_sql:
                connection.execute(statement.encode())
            is_made = found is None
            if found is None:
                found = create_slot(
                    connection, self._address, slot, self._settings.bootstrap.open_transactions_wait_seconds
                )
            remember_partitions(connection, _oids(described), self._memory, afresh=is_made)
            return self._at(connection, found)

    def follow(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> PostgresFollower:
        """Open the log that a slot keeps, after the position up to which the change log holds it."""
        with contextlib.ExitStack() as stack:
            side = self._address.open()
            stack.callback(side.close)
            with self._address.explained():
                side.execute(_SET_LOCK_TIMEOUT)
                gathering, partitions, start, found = self._gathering(side, relations, slot, held_to, self._memory)
            tells_prepared = self._tells_prepared or found.two_phase
            # What was prepared before `start` and commits after it is sent from where the slot stands, or never.
            streamed_from = found.confirmed_offset if tells_prepared else start.offset
            stream = ReplicationStream(self._address.open_replication())
            stack.callback(stream.close)
            self._start(stream, slot, streamed_from, tells_prepared=tells_prepared)
            require_held(slot, self._forgotten_to(side, slot), held_to)  # nobody else can use the slot now
            with self._address.explained():
                timeout_seconds = sender_timeout(side)
            follower = PostgresFollower(
                address=self._address,
                stream=stream,
                side=side,
                gathering=gathering,
                partitions=partitions,
                start=start,
                streamed_from=streamed_from,
                timeout_seconds=timeout_seconds,
                settings=self._settings.capture,
                capture_bytes=self._spill_bytes,
            )
            stack.pop_all()
            return follower

    def peek(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> Capture | None:
        """Return the transactions after a position that a slot keeps now. The slot stays where it is."""
        with self._connected() as side, self._connected() as connection:
            side.execute(_SET_LOCK_TIMEOUT)
            memory = ProcessMemory(self._memory.read())  # a peek writes nothing down
            gathering, _, _, found = self._gathering(side, relations, slot, held_to, memory)
            options = self._options(tells_prepared=found.two_phase)  # asking for more would change the slot
            # What was committed and shown to others may not be on the server's disk yet: this flushes all before it.
            connection.execute("SELECT pg_logical_emit_message(true, 'headwater', '')")
            with connection.cursor(binary=True) as cursor:
                arguments = [part for option in options.items() for part in option]
                for (message,) in cursor.stream(
                    "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL, VARIADIC %s::text[])",
                    (slot, arguments),
                ):
                    gathering.feed(message)
            return gathering.take() if gathering.has_transactions else None

    def snapshot(
        self, relations: Sequence[RelationName] = (), *, bootstrap: bool = False, at: Positions | None = None
    ) -> PostgresSnapshot:
        """Open a snapshot. For a bootstrap, one that shows everything the log does not hold for us."""
        del relations  # one log tells of all
        assert at is None, "PostgreSQL shows the present only"
        return self._bootstrap_snapshot() if bootstrap else self._snapshot()

    @contextlib.contextmanager
    def join(self, said: Mapping[str, Any]) -> Iterator[PostgresSnapshot]:
        """Lend a reader that shows a snapshot which another process has exported. Its connection ends with it."""
        pool = ConnectionPool(self._address)
        timeout_seconds = self._probe_timeout_seconds
        with (
            contextlib.closing(pool),
            PostgresSnapshot.join(
                said, address=self._address, pool=pool, probe_timeout_seconds=timeout_seconds
            ) as joined,
        ):
            yield joined

    def login(self) -> str:
        """Return a URL by which another process of this machine connects as this one does, passwords and all."""
        return self._address.login()

    def read_seen(self, said: Mapping[str, Any]) -> SeenTransactions:
        """Return what a snapshot of this source has `written` of what it saw."""
        return SeenTransactions.read(said)

    def distance(self, earlier: Position, later: Position) -> Distance:
        """Return the bytes of log between two positions."""
        return Distance(amount=max(0, later.offset - earlier.offset), unit="bytes")

    def index_hint(self, relation: Relation, columns: Sequence[str]) -> str | None:
        """Return the statement that makes an index on these columns."""
        return f"CREATE INDEX ON {relation.name.name} ({', '.join(columns)})"

    def measure(self, relations: Sequence[Relation]) -> SourceMeasure:
        """Say how large relations are, and how long it takes to ask. Changes nothing."""
        with self._connected() as connection:
            return measure(connection, relations)

    def teardown(self, slot: str | None, held_to: Positions) -> TornDown:
        """Drop what `prepare` made for a slot, unless the source has forgotten more than `held_to` for it.

        A publication that the tables' owner made is the owner's to drop, and holds nothing back.
        """
        dropped: list[str] = []
        with self._connected() as connection:
            mine = None if slot is None else self._slots(connection).get(slot)
            if (
                slot is not None
                and mine is not None
                and _is_ours(mine, held_to)
                and self._release_slot(connection, slot)
            ):
                connection.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
                dropped.append(f"replication slot {slot}")
            left = tuple(self._slots(connection).values())
            publication = find_publication(connection, self._channel)
            if not left and publication is not None and publication.owned:
                connection.execute(f"DROP PUBLICATION {self._channel}".encode())
                dropped.append(f"publication {self._channel}")
        self._pool.close()
        return TornDown(dropped=tuple(dropped), left=left)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Connection]:
        connection = self._address.open()
        with contextlib.closing(connection), self._address.explained():
            yield connection

    def _inspection(self, connection: Connection, described: Sequence[DescribedTable]) -> Inspection:
        publication = find_publication(connection, self._channel)
        identity_sql = dict.fromkeys(
            statement for each in described for statement in (*each.identity_sql, *each.partition_identity_sql)
        )
        publishing_sql = publication_sql(connection, self._channel, publication, described) if described else ()
        grants = dict.fromkeys(statement for each in described for statement in each.grant_sql)
        rights = connection.execute(
            "SELECT has_database_privilege(current_database(), 'CREATE'),"
            " (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)"
        ).fetchone()
        assert rights is not None
        may_create, is_superuser = rights
        owns = all(each.owned for each in described)
        may_publish = not publishing_sql or (may_create if publication is None else publication.owned)
        return Inspection(
            relations=tuple(each.relation for each in described),
            owner_sql=(*grants, *identity_sql, *publishing_sql),
            may_run_owner_sql=is_superuser or (owns and may_publish and not grants),
            warnings=tuple(text for each in described for text in each.warnings),
        )

    def _gathering(
        self, side: Connection, relations: Sequence[Relation], slot: str, held_to: Positions, memory: Memory
    ) -> tuple[Gathering, Partitions, Position, Slot]:
        self._require_replication(side)
        found = find_slot(side, self._address, slot)
        if found is None:
            raise self._without_slot(slot)
        described = describe_all(side, [relation.name for relation in relations])
        # A partition's identity is not asked for here: each change is checked, and inserts can be followed without.
        missing = self._inspection(side, [replace(each, partition_identity_sql=()) for each in described]).owner_sql
        if missing:
            raise SourceRefused(
                f'source "{self._name}" no longer logs all that we need',
                code="HW-333",
                detail="still needed: " + "; ".join(missing),
                hint="let the owner run that; changes made meanwhile are not in the log, so afterwards `headwater "
                f"teardown --source {self._name}` and `headwater run` must read this source again",
            )
        here, held = self._at(side, found)[self._name], held_to.get(self._name)
        start = here if held is None or held <= here else held
        row = side.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::int8").fetchone()
        assert row is not None
        oids = _oids(described)
        partitions = Partitions(side, self._channel, oids, relations, memory)
        gathering = Gathering(
            relations=relations,
            oids=oids,
            after=start,
            recent_xid=row[0],
            describe=TypeNames(side),
            partitions=partitions,
            described_at=self._described_at,
            spill_bytes=self._spill_bytes,
        )
        return gathering, partitions, start, found

    def _without_slot(self, slot: str) -> SourceLost:
        return missing_slot(self._name, f'replication slot "{slot}"')

    def _slots(self, connection: Connection) -> dict[str, SlotState]:
        return find_slots(connection, self._channel, self._name, _history(connection))

    def _at(self, connection: Connection, slot: Slot) -> Positions:
        """Return where a slot stands."""
        return by_log([Position(source=self._name, history=_history(connection), offset=slot.confirmed_offset)])

    def _forgotten_to(self, side: Connection, slot: str) -> Positions:
        with self._address.explained():
            found = find_slot(side, self._address, slot)
            if found is None:
                raise self._without_slot(slot)
            return self._at(side, found)

    def _require_replication(self, connection: Connection) -> None:
        for refusal in replication_refusals(connection, self._address, prepared=self._tells_prepared):
            raise refusal

    def _start(self, stream: ReplicationStream, slot: str, offset: int, *, tells_prepared: bool) -> None:
        """Start the stream. A connection of ours that was just closed may hold the slot for a moment."""
        options = self._options(tells_prepared=tells_prepared)
        deadline = time.monotonic() + _FOLLOW_AGAIN_SECONDS
        while True:
            try:
                with self._address.explained():
                    stream.start(slot, offset, options)
            except SourceUnavailable as error:
                if error.code != SLOT_IN_USE or time.monotonic() >= deadline:
                    raise
                time.sleep(_BOOTSTRAP_LOOK_SECONDS)
            else:
                return

    def _options(self, *, tells_prepared: bool) -> dict[str, str]:
        """Return what the server's decoding is asked for."""
        protocol = {"proto_version": "3", "two_phase": "on"} if tells_prepared else {"proto_version": "1"}
        return {**protocol, "publication_names": self._channel}

    def _snapshot(self) -> PostgresSnapshot:
        return PostgresSnapshot.take(
            address=self._address,
            pool=self._pool,
            probe_timeout_seconds=self._probe_timeout_seconds,
            connection_limit=self._connection_limit,
        )

    def _bootstrap_snapshot(self) -> PostgresSnapshot:
        """Wait for a snapshot in which every transaction that runs now has ended.

        A transaction that was open when its table was added to the publication may be missing from the log as a whole;
        once it has ended, the snapshot shows it.
        """
        with self._connected() as connection:
            row = connection.execute("SELECT pg_current_xact_id()::text::int8").fetchone()
            assert row is not None
            started_at = warned_at = time.monotonic()
            while True:
                snapshot = self._snapshot()
                if snapshot.seen.xmin > row[0]:
                    return snapshot
                with snapshot:
                    blocking = "; ".join(blocking_sessions(connection)) or "a transaction that cannot be named"
                now = time.monotonic()
                if now - started_at >= self._settings.bootstrap.open_transactions_wait_seconds:
                    raise SourceUnavailable(
                        f'source "{self._name}" cannot be read for the first time while transactions stay open',
                        code="HW-308",
                        detail=blocking,
                        hint="end the transactions named above; then it goes on by itself",
                    )
                if now - warned_at >= _BOOTSTRAP_WARN_SECONDS or warned_at == started_at:
                    _log.warning('source "%s": the first read waits for open transactions: %s', self._name, blocking)
                    warned_at = now
                time.sleep(_BOOTSTRAP_LOOK_SECONDS)

    def _release_slot(self, connection: Connection, slot: str) -> bool:
        """Tell whether our slot is there, after ending whatever of ours still uses it."""
        deadline = time.monotonic() + _RELEASE_SECONDS
        while True:
            row = connection.execute(
                "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s AND database = current_database()",
                (slot,),
            ).fetchone()
            if row is None:
                return False
            if row[0] is None or time.monotonic() >= deadline:
                return True
            connection.execute("SELECT pg_terminate_backend(%s)", (row[0],))
            time.sleep(_BOOTSTRAP_LOOK_SECONDS)


def _is_ours(slot: SlotState, held_to: Positions) -> bool:
    """Tell whether only this warehouse has used a slot. Of a slot on another timeline that is not known."""
    [(log, forgotten_to)] = slot.forgotten_to.items()
    held = held_to.get(log)
    return held is None or held.history != forgotten_to.history or forgotten_to <= held


def _oids(described: Sequence[DescribedTable]) -> dict[int, RelationName]:
    return {each.oid: each.relation.name for each in described}


def _history(connection: Connection) -> str:
    row = connection.execute(f"SELECT {HISTORY_SQL}".encode()).fetchone()
    assert row is not None
    return str(row[0])
