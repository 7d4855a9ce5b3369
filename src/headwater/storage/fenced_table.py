"""A Delta table for one writer at a time: a commit lands at the version it expects, or not at all.

Law: a commit is tried at exactly one version, `seen + 1`, with no retries. Delta creates the version's file only if it
is not there, so of two writers that saw the same version one fails, whatever their clocks and pauses.

    A (saw 5): ──────────── commit 6 ✓
    B (saw 5): ─────────────────────── commit 6 ✗ taken → look again, and decide

A version file can also be free because the log was cleaned up after a checkpoint beyond it. A writer that slept so long
would succeed into the void, so a commit counts only if no checkpoint stands at or beyond its version; where one does,
the writer looks again too. `False` from a commit means just this: look again and decide what the table already holds.

Invariants
1. What was decided travels with the commit: integers as Delta application transactions, which checkpoints keep and
   which only rise, and one JSON text (the mark) in the commit's metadata, which the newest commit always has.
2. A commit that returned True survives a power cut: data file, version file and their folders were synced.
3. The table's handle is used under its lock; handles are never shared between processes.

Cost: about 7 ms, growing by 0.1 ms for every active file and every commit since the last checkpoint. Hence a checkpoint
every `CHECKPOINT_EVERY` commits, and hence housekeeping.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Self

import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import RemoveAction

from headwater.errors import WarehouseRefused
from headwater.model.relation import TICK
from headwater.storage.data_file import DataFile, write_rows
from headwater.storage.merge_files import merge_files
from headwater.storage.notes import read_note, read_text
from headwater.storage.object_store import delta_address, store_at
from headwater.storage.sought_values import SoughtValues
from headwater.storage.storage_errors import damaged, refuse_empty_entries, stored

CHECKPOINT_EVERY = 20
_FEWEST_TO_MERGE = 2
_ATTEMPTS = 20
_MARK = "headwater"
_MARK_SEARCH = 100
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_CONFIGURATION = {
    "delta.checkpointInterval": "1000000000",  # we make them, after a commit is known to count
    "delta.logRetentionDuration": "interval 1 minutes",  # states are addressed by tick, never by Delta version
    "delta.deletedFileRetentionDuration": "interval 2 hours",
}

StorageError = DeltaError
"""What a table's files raise when they cannot be read or written."""


class FencedTable:
    """A Delta table whose commits are refused unless they build on the version this writer has seen."""

    def __init__(self, table: DeltaTable, path: str) -> None:
        """Wrap a loaded table. Use `create` or `open`."""
        self._table = table
        self.path = path
        self.lock = threading.RLock()
        self._known: tuple[int, dict[str, int | None]] = (-1, {})

    @classmethod
    def create(cls, path: str, schema: pa.Schema, *, numbers: Mapping[str, int], mark: str, indexed: int = 1) -> Self:
        """Create an empty table. The statistics of its first `indexed` columns let readers skip files."""
        with stored(path):
            address, options = delta_address(path)
            table = DeltaTable.create(
                address,
                schema,
                storage_options=options,
                configuration={**_CONFIGURATION, "delta.dataSkippingNumIndexedCols": str(indexed)},
                commit_properties=_properties(numbers, mark),
            )
            store_at(path).sync(f"_delta_log/{0:020}.json")
        return cls(table, path)

    @classmethod
    def open(cls, path: str) -> Self:
        """Load the table at its newest version."""
        with stored(path):
            refuse_empty_entries(path)
            try:
                return cls(_load(path), path)
            except TableNotFoundError as missing:
                raise WarehouseRefused(
                    "the warehouse is incomplete",
                    code="HW-401",
                    detail=f'there is no Delta table at "{path}"',
                    hint="point at the warehouse folder, or restore it as a whole",
                ) from missing

    @staticmethod
    def exists(path: str) -> bool:
        """Tell whether there is a Delta table."""
        with stored(path):
            return any(name.endswith((".json", ".parquet")) for name in store_at(path).names("_delta_log"))

    @property
    def version(self) -> int:
        """The Delta version this handle has seen."""
        return int(self._table.version())

    def schema(self) -> pa.Schema:
        """Return the table's columns as Arrow."""
        return pa.schema(self._table.schema().to_arrow())

    def number(self, name: str) -> int | None:
        """Return the integer that the newest commit that set it recorded under this name. Delta is asked once."""
        with self.lock:
            if self._known[0] != self.version:
                self._known = self.version, {}
            known = self._known[1]
            if name not in known:
                version = self._table.transaction_version(name)
                known[name] = None if version is None else int(version)
            return known[name]

    def mark(self) -> str:
        """Return the JSON text of this handle's version, or of the newest one before it that has one.

        Other tools' commits have none and change nothing. Where the version's entry was cleaned up, the handle is
        moved to the newest version first, so that mark and files always belong together.
        """
        with self.lock, stored(self.path):
            mark = self._own_mark()
            if mark is None:
                self._table = _load(self.path)
                mark = self._own_mark()
        if mark is not None:
            return mark
        raise WarehouseRefused(
            f'the table at "{self.path}" was changed by something else',
            code="HW-402",
            detail=f"none of its last {_MARK_SEARCH} commits is ours",
            hint="restore the warehouse; other programs may read it, not write it",
        )

    def _own_mark(self) -> str | None:
        """Return the mark by the entries from this handle's version backwards. None if they do not tell.

        `DeltaTable.history` would not do: it reads to the newest commit, whatever version the handle is at.
        """
        for version in range(self.version, max(-1, self.version - _MARK_SEARCH), -1):
            entry = read_text(self.path, f"_delta_log/{version:020}.json")
            if entry is None:
                return None
            try:
                actions = [json.loads(line) for line in entry.splitlines()]
            except ValueError as error:
                raise damaged(f"{self.path}/_delta_log/{version:020}.json", str(error)) from error
            said = [action["commitInfo"] for action in actions if "commitInfo" in action]
            if said and _MARK in said[0]:
                return str(said[0][_MARK])
        return None

    @property
    def identity(self) -> str:
        """What tells this table from every other one: Delta gives it once, when the table is made."""
        return str(self._table.metadata().id)

    def commit_infos(self, count: int) -> Iterator[Mapping[str, Any]]:
        """Yield what the newest commits say of themselves, newest first, as far as their entries are there."""
        for version in range(self.version, max(-1, self.version - count), -1):
            entry = read_text(self.path, f"_delta_log/{version:020}.json")
            if entry is None:
                return
            said = [action["commitInfo"] for line in entry.splitlines() if "commitInfo" in (action := json.loads(line))]
            yield said[0] if said else {}

    def reload(self) -> None:
        """See the newest version."""
        with self.lock:
            try:
                self._table.update_incremental()
            except DeltaError:  # the versions in between were cleaned up: start from the newest checkpoint
                with stored(self.path):
                    self._table = _load(self.path)

    def files(self, *, after: int | None = None, upto: int | None = None, column: str = TICK) -> list[str]:
        """Return where the data files are that may hold rows with after < column <= upto, lowest first."""
        with self.lock, stored(self.path):
            entries = pa.table(self._table.get_add_actions(flatten=True)).to_pydict()
        paths = entries["path"]
        lowest = entries.get(f"min.{column}", [None] * len(paths))
        highest = entries.get(f"max.{column}", [None] * len(paths))
        kept = [
            (low if low is not None else -1, path)
            for path, low, high in zip(paths, lowest, highest, strict=True)
            if (upto is None or low is None or low <= upto) and (after is None or high is None or high > after)
        ]
        return [f"{self.path}/{path}" for _, path in sorted(kept)]

    def files_holding(self, keys: pa.Table) -> list[str]:
        """Return where the data files are that may hold rows with one of these values, by the bounds they are known by.

        Of a file without bounds nothing is known, so it may.
        """
        sought = SoughtValues.of_keys(keys)
        return [f"{self.path}/{entry['path']}" for entry in self.entries() if _may_hold(entry, sought)]

    def append(self, rows: pa.Table, *, numbers: Mapping[str, int], mark: str = "{}") -> bool:
        """Append rows in one data file. False: the version was taken, or may have been. Look again."""
        return self.register([write_rows(self.path, rows)], numbers=numbers, mark=mark)

    def register(
        self,
        files: Sequence[DataFile],
        *,
        numbers: Mapping[str, int],
        mark: str = "{}",
        instead_of: Sequence[Mapping[str, Any]] = (),
        data_change: bool = True,
    ) -> bool:
        """Make data files in the table's folder part of the table, and take others (from `entries`) out of it.

        With neither it is a marker: nothing changes but the numbers, the mark, and that every older handle is stale.
        Without `data_change`, the commit says to subscribers that rows were only moved.
        """
        now = int(time.time() * 1000)
        removals = [RemoveAction(old["path"], data_change, now, old["size_bytes"], {}) for old in instead_of]

        def commit() -> None:
            self._table.create_write_transaction(
                [*(file.add_action(data_change=data_change) for file in files), *removals],
                "append",
                self._table.schema(),
                commit_properties=_properties(numbers, mark),
                post_commithook_properties=_NO_HOOKS,
            )
            self._table.update_incremental()

        with self.lock:
            known = self._known[1] if self._known[0] == self.version else {}
            fallen = [name for name, number in numbers.items() if number < (known.get(name) or 0)]
            assert not fallen, f"numbers only rise: {', '.join(fallen)}"  # Delta lets them fall
            if not self._commit(commit):
                return False
            self._known = self.version, {**known, **numbers}
            return True

    def widen(self, schema: pa.Schema, *, numbers: Mapping[str, int], mark: str) -> bool:
        """Add the columns, and the fields of struct columns, that the table does not have yet."""

        def commit() -> None:
            write_deltalake(
                self._table,
                schema.empty_table(),
                mode="append",
                schema_mode="merge",
                commit_properties=_properties(numbers, mark),
                post_commithook_properties=_NO_HOOKS,
            )

        return self._commit(commit)

    def entries(self) -> list[dict[str, Any]]:
        """Return what the table knows of each data file: `path`, `size_bytes`, `min._tick` and so on."""
        with self.lock, stored(self.path):
            return list(pa.table(self._table.get_add_actions(flatten=True)).to_pylist())

    def compact(self, below_bytes: int) -> int:
        """Merge data files below a size into one of about that size. Return how many that removed.

        Rows are moved and none is changed. What is left over is for the next time.
        """
        with self.lock:
            known = {f"{self.path}/{entry['path']}": entry for entry in self.entries()}
            files = _first_of_size(
                [(file, size) for file in self.files() if (size := known[file]["size_bytes"]) < below_bytes],
                below_bytes,
            )
            if len(files) < _FEWEST_TO_MERGE:
                return 0
            schema = self.schema()
        merged = merge_files(self.path, files, schema)  # takes long, so others may go on meanwhile
        return self.move([merged], [known[file] for file in files])

    def drop(self, upto: int, *, numbers: Mapping[str, int]) -> int:
        """Take the data files out of the table that hold no row after a tick. Return how many those were."""
        past = [entry for entry in self.entries() if entry.get(f"max.{TICK}", upto + 1) <= upto]
        return self.move([], past, numbers)

    def move(
        self,
        files: Sequence[DataFile],
        gone: Sequence[Mapping[str, Any]],
        numbers: Mapping[str, int] = MappingProxyType({}),
    ) -> int:
        """Put data files in the place of others although the table's writer goes on appending. Return how many went.

        To subscribers it is not told as a change of data: what they were given stays given.
        """
        for _ in range(_ATTEMPTS):
            with self.lock:
                mark = self.mark()  # first, for it may move the handle
                present = {entry["path"] for entry in self.entries()}
                if any(file.path in present for file in files):
                    return len(gone)  # it was in doubt, and it counts
                if not all(entry["path"] in present for entry in gone):
                    return 0
                if self.register(files, numbers=numbers, mark=mark, instead_of=gone, data_change=False):
                    return len(gone)
        return 0

    def clean_log(self) -> bool:
        """Make a checkpoint of the table's log, and remove the entries before it that are a minute old.

        The checkpoint is made at a commit of our own, whose entry stays, so that the mark is never cleaned away.
        """
        with self.lock:
            for _ in range(_ATTEMPTS):
                if self.register([], numbers={}, mark=self.mark()):
                    self._table.create_checkpoint()
                    self._table.cleanup_metadata()
                    return True
            return False

    def vacuum(self, *, grace_hours: int, strays: bool) -> int:
        """Delete files that were taken out of the table before the grace. With strays, also those never part of it."""
        with self.lock:
            try:
                removed = self._table.vacuum(
                    retention_hours=grace_hours,
                    dry_run=False,
                    enforce_retention_duration=False,
                    full=strays,
                    commit_properties=CommitProperties(max_commit_retries=0),
                    post_commithook_properties=_NO_HOOKS,
                )
            except CommitFailedError:  # somebody committed in between; what was deleted is deleted, the rest waits
                removed = []
            self.reload()
            return len(removed)

    def _commit(self, commit: Callable[[], None]) -> bool:
        with self.lock, stored(self.path):
            expected = self.version + 1
            try:
                commit()
            except CommitFailedError:
                self.reload()
                if self.version < expected:
                    raise
                return False
            except DeltaError:
                self.reload()
                if self.version <= expected:
                    raise
                return False
            if not self._counts(expected):
                self._table = _load(self.path)
                return False
            if expected % CHECKPOINT_EVERY == 0:
                self._table.create_checkpoint()
            return True

    def _counts(self, version: int) -> bool:
        """Force a version's entry to disk, and tell whether it is certain that the table's history has it."""
        try:
            store_at(self.path).sync(f"_delta_log/{version:020}.json")
        except FileNotFoundError:
            return False
        return self.version == version and _checkpoint_version(self.path) < version


def _load(path: str) -> DeltaTable:
    address, options = delta_address(path)
    return DeltaTable(address, storage_options=options)


def _may_hold(entry: Mapping[str, Any], sought: SoughtValues) -> bool:
    """Tell whether a file may hold rows with sought values, none of which is NULL."""
    if any(entry.get(f"null_count.{name}") == entry["num_records"] for name in sought.values):
        return False

    def bounds(name: str) -> tuple[Any, Any] | None:
        low, high = entry.get(f"min.{name}"), entry.get(f"max.{name}")
        return None if low is None or high is None else (low, high)

    return sought.may_be_within(bounds)


def _first_of_size(files: Sequence[tuple[str, int]], byte_count: int) -> list[str]:
    """Return the first files that together reach a size.

    >>> _first_of_size([("a", 4), ("b", 4), ("c", 4)], 6)
    ['a', 'b']
    """
    before = accumulate((size for _, size in files), initial=0)
    return [file for (file, _), total in zip(files, before, strict=False) if total < byte_count]


def _properties(numbers: Mapping[str, int], mark: str) -> CommitProperties:
    return CommitProperties(
        max_commit_retries=0,
        custom_metadata={_MARK: mark},
        app_transactions=[Transaction(name, number) for name, number in numbers.items()],
    )


def _checkpoint_version(path: str) -> int:
    version = read_note(path, "_delta_log/_last_checkpoint", lambda said: int(said["version"]))
    return -1 if version is None else version
