"""From events of the log to transactions with their signed rows. No I/O.

    GTID  (BEGIN)  table map  rows …  (SAVEPOINT …  ROLLBACK TO)  COMMIT       a group is a transaction
    GTID  statement                                                           a statement alone: DDL

Law: whatever stands in a group either is understood, or stops the source by name. An event that is overlooked would be
rows that are lost. Rows after ROLLBACK TO a savepoint are in the log, and were taken back.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from struct import error as StructError  # noqa: N812 — it is a class
from struct import unpack_from

from headwater.errors import HeadwaterError, SourceLost, SourceRefused
from headwater.model.position import Position
from headwater.model.relation import Column, ColumnUse, Relation, RelationName
from headwater.model.transaction import Capture, Transaction
from headwater.sources.mariadb.catalog import schema_of
from headwater.sources.mariadb.ddl import FollowedTables, client_encoding, effects
from headwater.sources.mariadb.log_position import (
    LogName,
    Proof,
    digest,
    file_number,
    offset_of,
    said_of_file,
    split_offset,
)
from headwater.sources.mariadb.log_rows import DELETE, INSERT, UPDATE, LogRows, RowLayout
from headwater.sources.mariadb.log_stream import FORMAT_DESCRIPTION, HEADER_BYTES
from headwater.sources.mariadb.table_map import (
    LogFormatError,
    TableMap,
    length_encoded,
    parse_table_map,
    table_id,
    table_name,
)
from headwater.sources.mariadb.types import held, quoted

_QUERY, _STOP, _ROTATE, _INTVAR, _RAND, _USER_VAR, _XID, _TABLE_MAP = 2, 3, 4, 5, 13, 14, 16, 19
_INCIDENT, _HEARTBEAT, _ROWS_QUERY, _GTID, _ANONYMOUS_GTID, _PREVIOUS_GTIDS, _XA_PREPARE = 26, 27, 29, 33, 34, 35, 38
_ANNOTATE, _CHECKPOINT, _MARIADB_GTID, _GTID_LIST, _START_ENCRYPTION, _HEARTBEAT_2 = 160, 161, 162, 163, 164, 41
_ROWS = {23: INSERT, 24: UPDATE, 25: DELETE, 30: INSERT, 31: UPDATE, 32: DELETE}
_WITH_EXTRA = frozenset((30, 31, 32))
_COMPRESSED = frozenset((40, 165, 166, 167, 168, 169, 170, 171))
_IGNORED = frozenset(
    (*(_STOP, _INTVAR, _RAND, _USER_VAR, _ROWS_QUERY, _PREVIOUS_GTIDS), *(_ANNOTATE, _CHECKPOINT, _GTID_LIST))
)
_IGNORABLE_FLAG = 0x80
_STANDALONE, _PREPARED = 1, 0x40
_STARTED_AT = HEADER_BYTES + 52
"""Where the first event of a file says when the server was started. 0: it has written the file before as well."""
_KNOWN_LAYOUTS = 4096
_SHOWN_CHARACTERS = 120


class MariadbGathering:
    """Takes the events of a log in, and gives out whole transactions."""

    def __init__(
        self,
        relations: Sequence[Relation],
        database: str,
        log: LogName,
        *,
        after: Position,
        proof: Proof,
        charsets: Mapping[int, str],
        described_at: int,
        spill_bytes: int,
        ignores_case: bool = False,
    ) -> None:
        """Start with nothing. Groups that end at or before `after` are dropped."""
        self._log = log
        self._after = after.offset
        self._charsets = charsets
        self._described_at = described_at
        self._spill_bytes = spill_bytes
        self._rows = {relation.name: LogRows(relation) for relation in relations}
        self._relations = {(schema_of(relation.name, database), relation.name.name): relation for relation in relations}
        self._tables = FollowedTables.of(self._relations, ignores_case=ignores_case)
        self._layouts: dict[bytes, tuple[RelationName, RowLayout] | None] = {}
        self._mapped: dict[int, tuple[RelationName, RowLayout] | None] = {}
        self._transactions: list[Transaction] = []
        self._truncated: dict[int, tuple[RelationName, ...]] = {}
        self._altered: dict[int, dict[RelationName, str]] = {}
        self._gone: set[RelationName] = set()
        self._committed: dict[RelationName, int] = {}
        self._savepoints: dict[str, dict[RelationName, int]] = {}
        self._file, self._at = split_offset(after.offset)
        self._begun: bytes | None = None
        self._begun_at = 0
        self._is_standalone = self._is_prepared = self._is_touched = False
        self._proof = proof
        self._last: tuple[int, int, bytes, bytes] | None = None
        self._head: list[bytes] | None = None
        self._held_bytes = 0
        self.row_count = 0
        self.byte_count = 0
        """How long the rows are in the log."""
        self.group_count = 0
        """How many groups have ended, of whatever relations."""
        self._steps: Mapping[int, Callable[[bytes], None]] = {
            _QUERY: self._query,
            _ROTATE: self._rotate,
            _XID: self._end,
            _TABLE_MAP: self._map_table,
            _MARIADB_GTID: self._begin,
            _GTID: self._begin_mysql,
            _ANONYMOUS_GTID: self._begin_mysql,
            _XA_PREPARE: self._prepare,
            _HEARTBEAT: self._pass,
            _HEARTBEAT_2: self._pass,
            FORMAT_DESCRIPTION: self._begin_file,
            **dict.fromkeys(_ROWS, self._change),
            **dict.fromkeys(_IGNORED, self._pass),
        }

    @property
    def has_transactions(self) -> bool:
        """Whether there is a whole transaction to take."""
        return bool(self._transactions)

    @property
    def followed(self) -> Position:
        """Every group that ends at or before this position was taken in. Carries the proof of the last one."""
        return self._log.position(offset_of(self._file, self._at), self.proof)

    @property
    def proof(self) -> Proof:
        """What the log is recognised by later: the last group that ended."""
        if self._last is not None:
            begin, end, first, last = self._last
            self._proof = Proof(head=self._proof.head, begin=begin, end=end, group=digest(first, last))
            self._last = None
        return self._proof

    def feed(self, event: bytes) -> None:
        """Take one event in."""
        step = self._steps.get(event[4])
        if self._head is not None:
            self._read_head(event, self._head)
        try:
            if step is not None:
                step(event)
            elif not unpack_from("<H", event, 17)[0] & _IGNORABLE_FLAG:
                raise self._unknown(event[4])
        except (LogFormatError, LookupError, ValueError, StructError) as error:
            raise self._unreadable(str(error)) from error
        if self._begun is None and event[4] != _ROTATE:
            self._at = max(self._at, unpack_from("<I", event, 13)[0])

    def take(self) -> Capture:
        """Give out the whole transactions gathered so far."""
        count = len(self._transactions)
        tables = {name: rows.take(self._committed.get(name, 0)) for name, rows in self._rows.items() if rows.row_count}
        capture = Capture(
            transactions=tuple(self._transactions),
            rows={name: table for name, table in tables.items() if table is not None},
            truncated=self._truncated,
            altered=self._altered,
        )
        self._savepoints = {
            savepoint: {name: rows - self._committed.get(name, 0) for name, rows in counts.items()}
            for savepoint, counts in self._savepoints.items()
        }
        self._transactions, self._truncated, self._altered, self._committed = [], {}, {}, {}
        left = sum(rows.row_count for rows in self._rows.values())
        self.byte_count = self.byte_count * left // max(1, self.row_count)
        self.row_count = left
        self._held_bytes = self.byte_count
        assert count, "there is something to take"
        return capture

    def _pass(self, event: bytes) -> None:
        """Do nothing: the event changes nothing."""

    def _rotate(self, event: bytes) -> None:
        offset = unpack_from("<Q", event, HEADER_BYTES)[0]
        number = file_number(event[HEADER_BYTES + 8 :].rstrip(b"\0").decode())
        if number != self._file:
            if number < self._file:
                raise self._unreadable(f"after file {self._file} it goes on with file {number}")
            self._file, self._at = number, offset
            self._mapped.clear()
            self._head = []

    def _read_head(self, event: bytes, head: list[bytes]) -> None:
        """Gather by what a new file is recognised. When all of it is there, the files before may be deleted."""
        if (said := said_of_file(event)) is not None:
            head.append(said)
        elif event[4] != _ROTATE:
            self._proof, self._last, self._head = Proof(head=digest(*head)), None, None

    def _begin_file(self, event: bytes) -> None:
        """Forget a group that has no end: the server died while it wrote it, and took it back when it started again."""
        if self._begun is None:
            return
        if unpack_from("<I", event, _STARTED_AT)[0] == 0:
            raise LogFormatError("a file ends within a group, and the server was not started after it")
        self._begun = None
        self._cut(self._committed)

    def _begin(self, event: bytes) -> None:
        flags = event[HEADER_BYTES + 12]
        self._open(event)
        self._is_standalone, self._is_prepared = bool(flags & _STANDALONE), bool(flags & _PREPARED)

    def _begin_mysql(self, event: bytes) -> None:
        self._open(event)
        self._is_standalone = True  # until BEGIN follows

    def _open(self, event: bytes) -> None:
        if self._begun is not None:
            raise LogFormatError("a group begins before the last one has ended")
        self._begun, self._begun_at = event, offset_of(self._file, self._at)
        self._is_prepared = self._is_touched = False
        self._savepoints = {}

    def _query(self, event: bytes) -> None:
        database_length = event[HEADER_BYTES + 8]
        status_length = unpack_from("<H", event, HEADER_BYTES + 11)[0]
        at = HEADER_BYTES + 13 + status_length
        schema = event[at : at + database_length].decode("utf-8", "replace")
        spoken = client_encoding(event[HEADER_BYTES + 13 : at], self._charsets)
        statement = event[at + database_length + 1 :].decode(spoken, "replace").strip()
        first = statement[:12].upper()
        if self._begun is None:
            raise LogFormatError("a statement stands outside of groups")
        if first == "BEGIN":
            self._is_standalone = False
        elif self._is_standalone:
            self._statement(statement, schema)
            self._end(event)
        elif first == "COMMIT":
            self._end(event)
        elif first == "ROLLBACK":
            self._cut(self._committed)
            self._is_touched = False
            self._end(event)
        elif first.startswith("SAVEPOINT "):
            self._savepoints[_savepoint(statement[10:])] = {name: rows.row_count for name, rows in self._rows.items()}
        elif first.startswith("ROLLBACK TO "):
            self._go_back(statement)
        elif first.startswith(("XA ", "RELEASE ", "# DUMMY")):
            pass
        elif first.startswith("CREATE "):
            self._statement(statement, schema)  # CREATE TABLE … SELECT: its rows follow
        else:
            raise self._wrong_setting(
                f"a statement stands in the log instead of the rows it changed: {statement[:_SHOWN_CHARACTERS]}",
                "SET GLOBAL binlog_format = ROW",
            )

    def _go_back(self, statement: str) -> None:
        """Take back the rows that came after a savepoint."""
        name = _savepoint(statement[12:].removeprefix("SAVEPOINT "))
        if name not in self._savepoints:
            raise LogFormatError(f"it goes back to a savepoint that was not set: {statement[:_SHOWN_CHARACTERS]}")
        self._cut(self._savepoints[name])

    def _statement(self, statement: str, schema: str) -> None:
        found = effects(statement, schema, self._tables)
        if self._is_dropped():
            return
        if found.hidden:
            raise self._wrong_setting(
                f'a session logs statements, and has a temporary table instead of "{found.hidden[0].name}": '
                f"{statement[:_SHOWN_CHARACTERS]}",
                "SET GLOBAL binlog_format = ROW",
            )
        ordinal = len(self._transactions)
        if found.truncated:
            self._truncated[ordinal] = tuple(one.name for one in found.truncated)
        if found.altered:
            self._altered[ordinal] = {one.name: what for one, what in found.altered}
            self._gone |= {one.name for one, _ in found.altered}
        self._is_touched = self._is_touched or bool(found.truncated or found.altered)
        self._layouts.clear()

    def _is_dropped(self) -> bool:
        """Tell whether the group that is open was taken in before: it began before what is held ends."""
        return self._begun_at < self._after

    def _cut(self, counts: Mapping[RelationName, int]) -> None:
        """Take back the rows that came after a number of rows of each relation."""
        for name, rows in self._rows.items():
            rows.cut(counts.get(name, 0))
        self.row_count = sum(rows.row_count for rows in self._rows.values())

    def _end(self, event: bytes) -> None:
        if self._begun is None:
            raise LogFormatError("a group ends that has not begun")
        begun, self._begun = self._begun, None
        at = unpack_from("<I", event, 13)[0]
        if at <= self._at:
            raise self._unreadable(f"a group ends at {at}, which is not after {self._at}: the file is over 4 GiB")
        self._at = at
        self.group_count += 1
        end = offset_of(self._file, at)
        self._last = (self._begun_at, end, begun, event)
        if self._is_touched:
            seconds = unpack_from("<I", event, 0)[0]
            position = self._log.position(end, self.proof)
            self._transactions.append(
                Transaction(position=position, identity=end, committed_at=datetime.fromtimestamp(seconds, UTC))
            )
            for name, rows in self._rows.items():
                if rows.row_count:
                    self._committed[name] = rows.row_count

    def _prepare(self, event: bytes) -> None:
        if self._is_touched and event[HEADER_BYTES] == 0:
            raise SourceRefused(
                f'source "{self._log.source}" has prepared an XA transaction that changes relations we follow',
                code="HW-387",
                detail="its rows are in the log before it is known whether it is committed, and it is not told when it "
                "becomes visible",
                hint="let it be committed in one phase (XA COMMIT … ONE PHASE), or not by XA; then `headwater teardown "
                f"--source {self._log.source}` and `headwater run` read this source again",
            )
        self._end(event)

    def _map_table(self, event: bytes) -> None:
        body = event[HEADER_BYTES:]
        key = body[6:]
        if key not in self._layouts:
            if len(self._layouts) >= _KNOWN_LAYOUTS:
                self._layouts.clear()
            schema, table, _ = table_name(body)
            relation = self._relations.get((schema, table))
            found = None
            if relation is not None and relation.name not in self._gone:
                found = (relation.name, self._layout(relation, parse_table_map(body, self._charsets)))
            self._layouts[key] = found
        self._mapped[table_id(body)] = self._layouts[key]

    def _layout(self, relation: Relation, table: TableMap) -> RowLayout:
        if not table.has_names:
            raise self._wrong_setting(
                f'it does not name the columns of "{relation.name}"', "SET GLOBAL binlog_row_metadata = FULL"
            )
        places = {column.name: place for place, column in enumerate(table.columns)}
        chosen = {}
        for column in relation.columns:
            place = places.get(column.name)
            if place is not None and table.columns[place].is_like(held(column)):
                chosen[column.name] = place
            elif self._matters(column):
                raise _changed(relation, column, is_gone=place is None)
        return RowLayout(table, chosen)

    def _matters(self, column: Column) -> bool:
        match column.use:
            case ColumnUse.READ:
                return True
            case ColumnUse.FIRST_READ:
                return self._begun_at >= self._described_at
            case ColumnUse.UNREAD:
                return False

    def _change(self, event: bytes) -> None:
        if self._begun is None:
            raise LogFormatError("rows stand outside of groups")
        number = int.from_bytes(event[HEADER_BYTES : HEADER_BYTES + 6], "little")
        found = self._mapped[number]
        if found is None or self._is_dropped():
            return
        name, layout = found
        if name in self._gone:
            return
        at = HEADER_BYTES + 8
        if event[4] in _WITH_EXTRA:
            at += unpack_from("<H", event, at)[0]
        count, at = length_encoded(event, at)
        kind = _ROWS[event[4]]
        size = (count + 7) // 8
        full = ((1 << count) - 1).to_bytes(size, "little")
        for _ in range(2 if kind == UPDATE else 1):
            if event[at : at + size] != full:
                raise self._wrong_setting(f'rows of "{name}" are logged in parts', "SET GLOBAL binlog_row_image = FULL")
            at += size
        rows = self._rows[name]
        self.row_count += rows.add(layout, kind, event, at, len(event), len(self._transactions))
        self.byte_count += len(event)
        self._is_touched = True
        if rows.is_full:
            for one in self._rows.values():
                self._held_bytes += one.decode(self._spill_bytes - self._held_bytes)

    def _wrong_setting(self, detail: str, statement: str) -> SourceRefused:
        source = self._log.source
        return SourceRefused(
            f'the log of source "{source}" does not tell what we need',
            code="HW-385",
            detail=f"at {self._log.position(offset_of(self._file, self._at))}: {detail}",
            hint=f"let the owner run: {statement}; and end the sessions that have set it otherwise;\n"
            f"then `headwater teardown --source {source}` and `headwater run` read this source again",
        )

    def _unknown(self, kind: int) -> HeadwaterError:
        if kind in _COMPRESSED:
            return self._wrong_setting("it is compressed", "SET GLOBAL log_bin_compress = OFF")
        if kind == _START_ENCRYPTION:
            return self._unreadable("it is sent encrypted")
        return self._unreadable(f"there is an event of kind {kind}, which we do not know")

    def _unreadable(self, detail: str) -> SourceLost:
        return SourceLost(
            f'the log of source "{self._log.source}" cannot be read',
            code="HW-386",
            detail=f"after {self._log.position(offset_of(self._file, self._at))}: {detail}",
            hint=f"`headwater teardown --source {self._log.source}` and `headwater run` read this source again; if the "
            "log is as it should be, tell the maintainers of Headwater",
        )


def _savepoint(name: str) -> str:
    """Return the name of a savepoint as the server compares it: neither case nor accents count."""
    plain = unicodedata.normalize("NFKD", name)
    return "".join(one for one in plain if not unicodedata.combining(one)).upper()


def _changed(relation: Relation, column: Column, *, is_gone: bool) -> SourceRefused:
    what = "is gone" if is_gone else f"is not {column.native} there"
    return SourceRefused(
        f'relation "{relation.name}" changed its shape at the source',
        code="HW-331",
        detail=f"in the log, column {quoted(column.name)} {what}",
        hint="change or remove the views that read it, then run again; or put the column back: then "
        f"`headwater teardown --source {relation.name.source}` and `headwater run` read this source again, with its "
        "views; those of other sources go on",
    )
