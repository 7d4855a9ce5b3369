"""Follows the logs of Delta tables: every version that changes rows is a transaction of its table.

A table's log can be replaced while it is followed: the table is made again, or restored from a copy. The commit file of
the last version that was read is compared before and after others are read: where it is another, nothing that was read
counts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa

from headwater.errors import SourceLost
from headwater.model.position import Position, Positions, by_log
from headwater.model.relation import COUNT, ColumnUse, Relation, RelationName
from headwater.model.transaction import ORDINAL, Capture, Transaction
from headwater.sources.delta.commits import TableCommit, TableFile, TableLayout, unreadable_table
from headwater.sources.delta.lake import LakeTable, position_at
from headwater.sources.delta.rows import changed_rows, file_rows
from headwater.sources.delta.state import load_state
from headwater.sources.delta.types import columns_of
from headwater.sources.net_changes import NetChanges
from headwater.sources.source import unproved_log
from headwater.sources.spilled_rows import spilled

_CAPTURE_VERSIONS = 500
LOOK_SECONDS = 0.05


@dataclass
class TableLog:
    """How far the log of one table was read."""

    table: LakeTable
    relation: Relation
    held: Position
    """The last version that was read, with the proof of its commit file."""
    described_at: int = 0
    """The version of which the relation was described."""

    def new_commits(self, limit: int | None) -> list[TableCommit]:
        """Return what came since, after seeing that it is the same log still."""
        if not self.table.has_commit(self.held.offset + 1):
            return []
        found = list(islice(self.table.commits_after(self.held.offset), limit))
        self.require_same()
        return found

    def require_same(self) -> None:
        """Refuse another log under the same name, and one of which we need what was deleted."""
        require_proof(self.table, self.held)

    def end(self) -> Position:
        """Return where the log ends now. A gap between us and its end means that commit files were deleted."""
        versions = self.table.versions()
        if not versions:
            raise self.table.unavailable(FileNotFoundError(self.table.path))
        last = versions[-1]
        if last < self.held.offset:
            raise unproved_log(self.held, f"its newest version is {last}")
        if last > self.held.offset and not self.table.has_commit(self.held.offset + 1):
            raise deleted_log(self.table, self.held.offset + 1)
        return position_at(self.table, self.held.history, last)

    def begin(self) -> Position:
        """Return up to where the log was deleted."""
        versions = self.table.versions()
        return position_at(self.table, self.held.history, min([*versions, self.held.offset]))


def require_proof(table: LakeTable, held: Position) -> None:
    """Refuse a table whose log does not hold what it held when a position was noted."""
    content = table.commit_bytes(held.offset)
    if content is None:
        versions = table.versions()
        if not versions:  # perhaps it is only not mounted now
            raise table.unavailable(FileNotFoundError(table.path))
        if versions[-1] > held.offset:
            raise deleted_log(table, held.offset)
        raise unproved_log(held, f"its newest version is {versions[-1]}")
    if held.proof and position_at(table, held.history, held.offset, content).proof != held.proof:
        raise unproved_log(held, "this version of the table is another one: it was made again, or restored")


def deleted_log(table: LakeTable, version: int) -> SourceLost:
    """Return the error of a log of which we need what was deleted."""
    return table.deleted(f"the commit file of version {version} is gone", "logRetentionDuration")


class DeltaFollower:
    """See `headwater.sources.source.Follower`."""

    def __init__(
        self, logs: Sequence[TableLog], *, spill_bytes: int, look_seconds: float = LOOK_SECONDS, is_peek: bool = False
    ) -> None:
        """Begin after the position of each log. A peek returns all that is there at once."""
        self._logs = list(logs)
        self._is_peek = is_peek
        self._spill_bytes = spill_bytes
        self._look_seconds = look_seconds
        self._hastened = threading.Event()

    def next_capture(self, timeout_seconds: float) -> Capture | None:
        """Return the next versions that changed rows, or None when none came in that time."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            came = {one.table.log: commits for one in self._logs if (commits := one.new_commits(self._limit))}
            if came:
                return self._capture(came)
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._hastened.wait(min(left, self._look_seconds))
            self._hastened.clear()

    @property
    def _limit(self) -> int | None:
        return None if self._is_peek else _CAPTURE_VERSIONS

    def _capture(self, came: Mapping[str, list[TableCommit]]) -> Capture | None:
        gathering = _Gathering(self._spill_bytes)
        for log in self._logs:
            for commit in came.get(log.table.log, ()):
                if gathering.is_ended or (gathering.is_full and not self._is_peek):
                    break
                log.held = gathering.take(log, commit)
        return gathering.capture()

    def followed_to(self) -> Positions:
        """Return how far the logs were read."""
        return by_log(one.held for one in self._logs)

    def log_end(self) -> Positions:
        """Return where the logs end."""
        return by_log(one.end() for one in self._logs)

    def log_begin(self) -> Positions:
        """Return up to where the logs were deleted."""
        return by_log(one.begin() for one in self._logs)

    def acknowledge(self, position: Position) -> None:
        """Do nothing: the log is kept by a clock of its own."""

    def hasten(self, position: Position) -> None:
        """Look soon."""
        del position
        self._hastened.set()

    def keep_alive(self) -> None:
        """Do nothing: there is no connection."""

    def close(self) -> None:
        """Do nothing: there is no connection."""


@dataclass
class _Gathering:
    """The transactions of a capture and their rows, while they are read."""

    spill_bytes: int
    transactions: list[Transaction] = field(default_factory=list)
    rows: dict[RelationName, list[pa.Table]] = field(default_factory=dict)
    altered: dict[int, dict[RelationName, str]] = field(default_factory=dict)
    held_bytes: int = 0
    is_ended: bool = False
    """Nothing that comes later can be taken: a version before it cannot be read, or altered what views read."""

    @property
    def is_full(self) -> bool:
        return self.held_bytes > self.spill_bytes

    def take(self, log: TableLog, commit: TableCommit) -> Position:
        """Take in what a version did, and return its position."""
        relation = log.relation
        if commit.unreadable:
            if self.transactions:
                self.is_ended = True  # what came before is returned first
                return log.held
            raise unreadable_table(str(relation.name), commit.unreadable, f"version {commit.version}")
        position = position_at(log.table, log.held.history, commit.version, proof=commit.proof)
        what = (
            ""
            if commit.layout is None
            else alteration(relation, commit.layout, log.held.history, is_older=commit.version < log.described_at)
        )
        if not commit.has_changes and not what:
            return position
        ordinal = len(self.transactions)
        self.transactions.append(
            Transaction(position=position, identity=commit.version, committed_at=commit.committed_at)
        )
        if what:
            self.altered[ordinal] = {relation.name: what}
            self.is_ended = True
        else:
            for rows in _changes(log, commit, self.spill_bytes):
                self._add(relation, rows, ordinal)
        return position

    def _add(self, relation: Relation, rows: pa.Table, ordinal: int) -> None:
        ordinals = pa.repeat(pa.scalar(ordinal, pa.int32()), rows.num_rows)
        place = rows.column_names.index(COUNT)
        table = rows.add_column(place, ORDINAL, ordinals)
        if self.held_bytes + table.nbytes > self.spill_bytes:
            table = spilled(table.schema, [table])
        else:
            self.held_bytes += table.nbytes
        self.rows.setdefault(relation.name, []).append(table)

    def capture(self) -> Capture | None:
        if not self.transactions:
            return None
        return Capture(
            transactions=tuple(self.transactions),
            rows={name: pa.concat_tables(tables) for name, tables in self.rows.items()},
            altered=self.altered,
        )


def alteration(relation: Relation, layout: TableLayout, table_id: str, *, is_older: bool = False) -> str:
    """Say what new metadata of a table changes of what views read. Empty if it changes nothing of that.

    Views that are new do not use what a version that `is_older` than they are told of columns that no other view reads.
    """
    free = {ColumnUse.UNREAD, ColumnUse.FIRST_READ} if is_older else {ColumnUse.UNREAD}
    if layout.table_id != table_id:
        return "the table was replaced by another one"
    kinds = {column.name: column.type for column in columns_of(layout.schema_text)[0]}
    for column in relation.columns:
        if column.use in free or kinds.get(column.name) == column.type:
            continue
        if column.name in kinds:
            return f'column "{column.name}" was {column.type} and is {kinds[column.name]}'
        return f'column "{column.name}" was dropped or renamed'
    return ""


def _changes(log: TableLog, commit: TableCommit, limit_bytes: int) -> Iterator[pa.Table]:
    """Yield the signed rows of a version: those of its change files, or the difference of its data files."""
    relation, names = log.relation, log.relation.column_names
    if commit.change_files:
        for file in commit.change_files:
            for rows, signs in changed_rows(log.table, relation, file, names):
                yield rows.append_column(COUNT, signs)
        return
    added = (rows for file in commit.added for rows in file_rows(log.table, relation, file, names))
    if not commit.removed:
        for rows in added:
            yield rows.append_column(COUNT, pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))
        return
    net = NetChanges(relation.arrow_schema(), limit_bytes)
    for sign, parts in ((-1, _removed(log, commit)), (1, added)):
        for rows in parts:
            net.add(rows, sign)
    yield from net.result()


def _removed(log: TableLog, commit: TableCommit) -> Iterator[pa.Table]:
    """Yield the rows of the files that a version removed."""
    for file in _placed(log, commit):
        yield from file_rows(log.table, log.relation, file, log.relation.column_names)


def _placed(log: TableLog, commit: TableCommit) -> Iterator[TableFile]:
    """Yield the removed files of a version, each with its partition values: not every writer says them again."""
    known: dict[str, TableFile] | None = None
    for file in commit.removed:
        if file.partition is not None:
            yield file
            continue
        if known is None:
            known = {one.file.path: one.file for one in load_state(log.table, commit.version - 1).files}
        yield known[file.path]
