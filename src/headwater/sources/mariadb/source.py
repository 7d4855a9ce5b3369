"""A MariaDB database as a source: nothing is made there, its log is read, and recognised by what stands in it."""

from __future__ import annotations

import contextlib
import secrets
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self

from headwater.errors import SourceRefused
from headwater.model.position import Distance, Position, Positions, by_log
from headwater.model.relation import Relation, RelationName
from headwater.model.transaction import Capture, SeenUpTo
from headwater.sources.mariadb import requirements
from headwater.sources.mariadb.catalog import Described, describe, schema_of, table_of
from headwater.sources.mariadb.connect import Connection, MariadbAddress, MariadbPool, abandon, texts
from headwater.sources.mariadb.follower import MariadbFollower, master_status
from headwater.sources.mariadb.gathering import MariadbGathering
from headwater.sources.mariadb.log_position import (
    FIRST_OFFSET,
    LogName,
    Proof,
    digest,
    file_number,
    offset_of,
    said_of_file,
    split_offset,
)
from headwater.sources.mariadb.log_stream import LogStream
from headwater.sources.mariadb.measuring import measure
from headwater.sources.mariadb.snapshot import MariadbSnapshot
from headwater.sources.mariadb.types import held, quoted
from headwater.sources.measure import SourceMeasure
from headwater.sources.source import (
    Abilities,
    Inspection,
    ProjectSlots,
    Reader,
    SourceSettings,
    TornDown,
    unproved_log,
)

_ROTATE = 4
_COLLATIONS = (
    "SELECT id, character_set_name FROM information_schema.collation_character_set_applicability WHERE id IS NOT NULL",
    "SELECT id, character_set_name FROM information_schema.collations WHERE id IS NOT NULL",
)
_UNKNOWN_FILE_BYTES = 1 << 20
_SHORT_KEY = 191


class MariadbSource:
    """See `headwater.sources.source.Source`."""

    abilities = Abilities(
        shares_snapshots=False,
        exports_snapshots=False,
        reads_as_of=False,
        holds_log=False,
        tells_every_transaction=True,
    )

    def __init__(self, settings: SourceSettings) -> None:
        """Remember the address. Nothing is connected yet."""
        self._settings = settings
        self._address = MariadbAddress(
            source=settings.name, url=settings.url, settings=settings.project_settings.capture
        )
        self._pool = MariadbPool(self._address)
        self._log: LogName | None = None
        self._is_mariadb = True
        self._described_at = 0
        self._sizes: dict[int, int] = {}
        """How large the files of the log are, as far as they were seen."""
        self._finalizer = weakref.finalize(self, self._pool.close)

    @classmethod
    def connect(cls, settings: SourceSettings) -> Self:
        """Return the source that a project's settings describe. Nothing is connected yet."""
        settings.allow_options()
        return cls(settings)

    def __repr__(self) -> str:
        """Return the place without user or password."""
        return f"MariadbSource({self.name!r}, {self._address.place!r})"

    @property
    def name(self) -> str:
        """The name views use for it."""
        return self._settings.name

    @property
    def default_schema(self) -> str:
        """The database that the URL names."""
        return self._address.database

    def close(self) -> None:
        """Close the idle connections. Also happens by itself when the source is no longer used."""
        self._pool.close()

    def inspect(self, names: Sequence[RelationName]) -> Inspection:
        """Describe relations, and say what is missing before they can be followed. Changes nothing."""
        with self._connected() as connection:
            settings = requirements.variables(connection)
            refusals = [*requirements.refusals(connection, settings, self.name)]
            schemas = list(dict.fromkeys(schema_of(name, self.default_schema) for name in names))
            wanted = requirements.owner_sql(connection, settings, schemas)
            if not refusals and not wanted:
                self._described_at = self._end(connection).offset
            found = [describe(connection, name, self.default_schema) for name in names]
        described = [one for one in found if isinstance(one, Described)]
        refusals += [one.refusal if isinstance(one, Described) else one for one in found if _is_refused(one)]  # type: ignore[misc]
        return Inspection(
            relations=tuple(one.relation for one in described),
            owner_sql=wanted,
            may_run_owner_sql=False,
            refusals=tuple(refusals),
            warnings=requirements.warnings(settings),
        )

    def slots(self) -> ProjectSlots:
        """Return none: the server holds its log for nobody."""
        return ProjectSlots(present={}, former=self.name)

    def new_slot(self) -> str:
        """Return a name for what follows the log."""
        return f"{self._settings.project}_{self.name}_{secrets.token_hex(4)}"

    def prepare(self, relations: Sequence[RelationName], slot: str, *, is_new: bool) -> Positions:
        """Make nothing. Return where the log ends now."""
        del slot, is_new
        inspection = self.inspect(relations)
        inspection.require_rights(self.name)
        for refusal in inspection.refusals:
            raise refusal
        with self._connected() as connection:
            end = self._end(connection)
        number, _ = split_offset(end.offset)
        proof = Proof(head=self._head(number))
        return by_log([self._name_of_log().position(end.offset, proof)])

    def follow(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> MariadbFollower:
        """Open the log after the position up to which the change log holds it, if it is the log that was followed."""
        del slot
        with contextlib.ExitStack() as stack:
            side = self._address.open()
            stack.callback(abandon, side)
            gathering, log, start = self._gathering(side, relations, held_to)
            number, offset = split_offset(start.offset)
            stream = LogStream(self._address, log.file(number), offset, stops=False)
            stack.callback(stream.close)
            follower = MariadbFollower(
                address=self._address,
                stream=stream,
                side=side,
                gathering=gathering,
                log=log,
                settings=self._settings.project_settings.capture,
                capture_bytes=self._settings.spill_bytes,
                sizes=self._sizes,
            )
            stack.pop_all()
            return follower

    def peek(self, relations: Sequence[Relation], slot: str, held_to: Positions) -> Capture | None:
        """Return the transactions after a position up to where the log ends now."""
        del slot
        with self._connected() as side:
            gathering, log, start = self._gathering(side, relations, held_to)
        number, offset = split_offset(start.offset)
        self._read_all(gathering, LogStream(self._address, log.file(number), offset, stops=True))
        return gathering.take() if gathering.has_transactions else None

    def snapshot(
        self, relations: Sequence[RelationName] = (), *, bootstrap: bool = False, at: Positions | None = None
    ) -> MariadbSnapshot:
        """Open a snapshot. A transaction is logged as a whole when it commits: none has to be waited for."""
        del relations, bootstrap
        assert at is None, "MariaDB shows the present only"
        return MariadbSnapshot(
            address=self._address,
            pool=self._pool,
            log=self._name_of_log(),
            probe_timeout_seconds=self._settings.probe_timeout_seconds,
            connection_limit=self._settings.connection_limit,
            is_mariadb=self._is_mariadb,
        )

    def join(self, said: Mapping[str, Any]) -> AbstractContextManager[Reader]:
        """Nobody can join a snapshot."""
        del said
        raise AssertionError("its snapshots are for one process only")

    def login(self) -> str:
        """Return a URL by which another process of this machine connects as this one does, passwords and all."""
        return self._address.login()

    def read_seen(self, said: Mapping[str, Any]) -> SeenUpTo:
        """Return what a reader of this source has `written` of what it saw."""
        return SeenUpTo.read(said)

    def distance(self, earlier: Position, later: Position) -> Distance:
        """Return the bytes of log between two positions, as far as the sizes of files between them are known."""
        (first, begin), (last, end) = split_offset(earlier.offset), split_offset(later.offset)
        if first >= last:
            return Distance(amount=max(0, end - begin) if first == last else 0, unit="bytes")
        between = sum(self._sizes.get(number, _UNKNOWN_FILE_BYTES) for number in range(first + 1, last))
        return Distance(amount=max(0, self._sizes.get(first, begin) - begin) + between + end, unit="bytes")

    def index_hint(self, relation: Relation, columns: Sequence[str]) -> str | None:
        """Return the statement that makes an index on these columns. None where no index can help."""
        kinds = [held(relation.column(name)) for name in columns]
        if any(one.kind in ("time", "bit", "enum", "set", "uuid", "inet4", "inet6") for one in kinds):
            return None
        parts = [
            f"{quoted(name)}({_SHORT_KEY})"
            if relation.column(name).native.split(" ")[0]
            in ("text", "mediumtext", "longtext", "blob", "mediumblob", "longblob")
            else quoted(name)
            for name in columns
        ]
        return f"ALTER TABLE {table_of(relation.name, self.default_schema)} ADD INDEX ({', '.join(parts)})"

    def measure(self, relations: Sequence[Relation]) -> SourceMeasure:
        """Say how large relations are, and how long it takes to ask. Changes nothing."""
        with self._connected() as connection:
            return measure(connection, relations, self.default_schema)

    def teardown(self, slot: str | None, held_to: Positions) -> TornDown:
        """Drop nothing: nothing was made."""
        del slot, held_to
        self._pool.close()
        return TornDown(dropped=(), left=())

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Connection]:
        connection = self._address.open()
        with contextlib.closing(connection), self._address.explained():
            yield connection

    def _end(self, connection: Connection) -> Position:
        file, offset = master_status(connection)
        server_id, version = texts(connection, "SELECT @@server_id, @@version")[0]
        self._is_mariadb = "mariadb" in version.lower()
        self._log = LogName.of_file(self.name, file, server_id)
        return self._log.position(offset_of(file_number(file), offset))

    def _name_of_log(self) -> LogName:
        if self._log is None:
            with self._connected() as connection:
                self._end(connection)
        assert self._log is not None, "it was read"
        return self._log

    def _gathering(
        self, side: Connection, relations: Sequence[Relation], held_to: Positions
    ) -> tuple[MariadbGathering, LogName, Position]:
        """Return what takes the log in after a position, once it is proved that it is the log that was followed."""
        with self._address.explained():
            settings = requirements.variables(side)  # a server may have been started again with others
            for refusal in requirements.refusals(side, settings, self.name):
                raise refusal
            end = self._end(side)
            charsets = _charsets(side)
            first = file_number(texts(side, "SHOW BINARY LOGS")[0][0])
        assert self._log is not None, "it was read"
        start = held_to.get(end.log_name, self._log.position(offset_of(first, FIRST_OFFSET)))
        end.require_comparable(start)
        number, _ = split_offset(start.offset)
        proof = Proof.read(start.proof) or Proof()
        if end < start:
            raise unproved_log(start, f"it ends at {end.text}, before what was followed")
        if number < first:
            raise self._address.explain(1236, f"Could not find first log file: it begins with file {first}")
        gathering = MariadbGathering(
            relations,
            self.default_schema,
            self._log,
            after=start,
            proof=self._proved(start, proof, charsets),
            charsets=charsets,
            described_at=self._described_at,
            spill_bytes=self._settings.spill_bytes,
            ignores_case=settings.get("lower_case_table_names", "0") != "0",
        )
        return gathering, self._log, start

    def _proved(self, start: Position, proof: Proof, charsets: Mapping[int, str]) -> Proof:
        """Return what a log is recognised by from here on. Refuse one that does not hold what it held."""
        number, _ = split_offset(start.offset)
        if not proof.end:
            head = self._head(number)
            if proof.head not in (b"", head):
                raise unproved_log(start, "its file begins otherwise than it did")
            return Proof(head=head)
        log = self._name_of_log()
        begin_number, begin = split_offset(proof.begin)
        reading = MariadbGathering(
            (),
            self.default_schema,
            log,
            after=log.position(proof.begin),
            proof=Proof(),
            charsets=charsets,
            described_at=0,
            spill_bytes=0,
        )
        stream = LogStream(self._address, log.file(begin_number), begin, stops=True)
        with contextlib.closing(stream):
            while reading.group_count == 0 and not stream.is_ended:
                for event in stream.events():
                    reading.feed(event)
                    if reading.group_count:
                        break
        found = reading.proof
        if (found.begin, found.end, found.group) != (proof.begin, proof.end, proof.group):
            raise unproved_log(start, "it holds another transaction, or none")
        return proof

    def _head(self, number: int) -> bytes:
        """Return what tells the beginning of a file of the log from others."""
        stream = LogStream(self._address, self._name_of_log().file(number), FIRST_OFFSET, stops=True)
        found: list[bytes] = []
        with contextlib.closing(stream):
            while not stream.is_ended:
                for event in stream.events():
                    if (said := said_of_file(event)) is not None:
                        found.append(said)
                    elif event[4] != _ROTATE:
                        return digest(*found)
        return digest(*found)

    def _read_all(self, gathering: MariadbGathering, stream: LogStream) -> None:
        with contextlib.closing(stream):
            while not stream.is_ended:
                for event in stream.events():
                    gathering.feed(event)


def _charsets(connection: Connection) -> dict[int, str]:
    """Return the character sets of collations by number."""
    for statement in _COLLATIONS:
        with contextlib.suppress(Exception):
            return {int(number): name for number, name in texts(connection, statement)}
    raise SourceRefused(
        "the server does not say what its collations are",
        code="HW-388",
        detail="information_schema.collations cannot be read",
        hint="use a server of MariaDB 10.5 or later",
    )


def _is_refused(found: object) -> bool:
    return not isinstance(found, Described) or found.refusal is not None
