"""The journal: what commits add to kept tables, until each table has it in its own `changes`.

    commit ──► journal: one data file ──► fold: one Delta commit in each table's `changes` ──► trim: out of the journal
               a record and the rows of      about every hundred commits, and on a clean stop
               every table that changed

That one append is the commit: a reader sees a commit with all its rows or not at all, and a batch that changes forty
tables costs little more than one that changes one. What executors wrote below a table's folder is not carried: the
journal names the files, and folding makes them part of the table.

Invariants
1. Of one table, `after` of a change is at or beyond `upto` of the change before it, so a change is folded as a whole or
   not at all: a table's number `headwater.folded` tells which, in the same Delta commit that made it so. That number
   only rises.
2. Data moves one way, and a reader follows it: first the journal, then the table. A change counts only if it ends
   beyond the tick that the table names. In the other order, a reader would miss the rows that move in between.
3. Rows leave the journal only when their table, asked then, has them. A table that is gone is not waited for.
4. Appending is fenced (see `commits`); folding and trimming need no lease, and doing them twice changes nothing.

The interface is small on purpose: append, read, fold and trim are all that a store has to do which is not Delta.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Self

import pyarrow as pa
import pyarrow.dataset as ds

from headwater.errors import HeadwaterError
from headwater.fail_points import reach
from headwater.model.position import Tick
from headwater.storage.data_file import DataFile, place, write_rows
from headwater.storage.fenced_table import FencedTable
from headwater.storage.storage_errors import parse_stored, stored

RECORDS = pa.schema(
    [
        ("sequence", pa.int64()),
        ("epoch", pa.int64()),
        ("kind", pa.string()),
        ("tick", pa.int64()),
        ("committed_at", pa.timestamp("us", tz="UTC")),
        ("record", pa.string()),
        ("catalog", pa.string()),
    ]
)
"""A commit's own row."""
CHANGES = pa.schema(
    [
        ("table", pa.string()),
        ("after", pa.int64()),
        ("upto", pa.int64()),
        ("rows", pa.binary()),
        ("files", pa.string()),
    ]
)
"""What a commit adds to a table: signed rows as an Arrow stream, or the files that hold them, as JSON."""
SCHEMA = pa.schema([*RECORDS, *CHANGES])
FOLDED = "headwater.folded"
"""The number of a `changes` table that tells up to which tick it holds the changes."""
_BOUNDED = ("sequence", "tick", "upto")
_SMALL_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """The signed rows of a table with after < tick <= upto, held here or in files below its `changes` folder.

    `table` is its folder in the warehouse, which names the generation: "views/sold/3".
    """

    table: str
    after: Tick
    upto: Tick
    rows: pa.Table | None = None
    files: tuple[DataFile, ...] = ()

    def followed_by(self, later: TableChange) -> TableChange:
        """Return this and a later change of the same table as one."""
        assert later.table == self.table, "changes of one table are put together"
        assert later.after >= self.upto, "a tick is committed once"
        held = [rows for rows in (self.rows, later.rows) if rows is not None]
        return TableChange(
            table=self.table,
            after=self.after,
            upto=later.upto,
            rows=pa.concat_tables(held) if held else None,
            files=self.files + later.files,
        )

    def row(self, sequence: int, tick: Tick) -> dict[str, object]:
        """Return the journal's row of it."""
        return {
            "sequence": sequence,
            "tick": tick,
            "table": self.table,
            "after": self.after,
            "upto": self.upto,
            "rows": None if self.rows is None else _packed(self.rows),
            "files": json.dumps([asdict(file) for file in self.files]) if self.files else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """The ticks up to which tables have their changes, and why others could not be folded."""

    upto: Mapping[str, Tick]
    failed: Mapping[str, HeadwaterError]


def table_name(folder: str) -> str:
    """Return what the journal calls the kept table in a folder.

    >>> table_name("/data/w/views/sold/3")
    'views/sold/3'
    """
    return "/".join(folder.split("/")[-3:])


class Journal:
    """What was committed and is not yet folded, by table, with the records of all commits.

    The maintainer holds the changes in memory (`hold`) and does not read them back. Readers read them from disk.
    """

    def __init__(self, table: FencedTable) -> None:
        """Wrap an open table. Use `create` or `open`."""
        self.table = table
        self._held: dict[str, list[TableChange]] | None = None
        self._newest: dict[str, Tick] = {}
        self._lock = threading.Lock()

    @classmethod
    def create(cls, path: str, *, numbers: Mapping[str, int], mark: str) -> Self:
        """Create an empty journal."""
        return cls(FencedTable.create(path, SCHEMA, numbers=numbers, mark=mark, indexed=len(SCHEMA)))

    @classmethod
    def open(cls, path: str) -> Self:
        """Open the journal at its newest version."""
        return cls(FencedTable.open(path))

    def write(self, record: Mapping[str, object], changes: Iterable[TableChange]) -> DataFile:
        """Write a commit's data file, which is not part of the journal yet."""
        changes = list(changes)
        for change in changes:
            assert self._newest.get(change.table, Tick(0)) <= change.after < change.upto, "a tick is committed once"
        sequence, tick = record["sequence"], record["tick"]
        rows = [record, *(change.row(sequence, tick) for change in changes)]  # type: ignore[arg-type]  # both are integers
        held = pa.schema([field for field in SCHEMA if field.name in self.table.schema().names])
        return write_rows(self.table.path, pa.Table.from_pylist(rows, schema=held), bounded=_BOUNDED, quick=True)

    def append(self, file: DataFile, *, numbers: Mapping[str, int], mark: str) -> bool:
        """Commit a data file right after the version seen last. Return False if that version was taken: look again."""
        return self.table.register([file], numbers=numbers, mark=mark)

    def hold(self) -> None:
        """Hold changes in memory from now on. The caller has taken the lease and folded all older changes."""
        with self._lock:
            self._held = {}

    def note(self, changes: Iterable[TableChange]) -> None:
        """Note changes that were committed."""
        with self._lock:
            for change in changes:
                self._newest[change.table] = change.upto
                if self._held is not None:
                    self._held.setdefault(change.table, []).append(change)

    def let_go(self, folded: Mapping[str, Tick]) -> None:
        """Forget the changes that tables have."""
        with self._lock:
            if self._held is not None:
                for table, upto in folded.items():
                    self._held[table] = [change for change in self._held.get(table, ()) if change.upto > upto]

    @property
    def held_bytes(self) -> int:
        """How much memory the changes take that are held."""
        with self._lock:
            held = [change.rows for changes in (self._held or {}).values() for change in changes]
        return int(sum(rows.nbytes for rows in held if rows is not None))

    def newest(self, table: str) -> Tick | None:
        """Return the tick up to which this handle has committed changes of a table, or None if it has not."""
        with self._lock:
            return self._newest.get(table)

    def read(self, table: str, after: Tick) -> list[TableChange]:
        """Return the changes of a table that end beyond a tick and may not be folded yet, oldest first."""
        with self._lock:
            if self._held is not None:
                return [change for change in self._held.get(table, ()) if change.upto > after]
        return self._stored([table], after).get(table, [])

    def fold(self, opened: Callable[[str], FencedTable | None]) -> Folded:
        """Move all changes into their tables. A table that cannot be written does not stop the others.

        `opened` returns the `changes` of a table, or None if the table is gone: then its rows are skipped.
        """
        newest, tables, failed = self._stored_ends(), dict[str, FencedTable](), dict[str, HeadwaterError]()
        for name in sorted(newest):
            try:
                if (table := opened(name)) is not None:
                    tables[name] = table
            except HeadwaterError as error:
                failed[name] = error
        lacking = {name for name, table in tables.items() if folded_upto(table) < newest[name]}
        least = min((folded_upto(tables[name]) for name in lacking), default=Tick(0))
        for name, changes in sorted(self._stored(lacking, least).items()) if lacking else ():
            try:
                with stored(tables[name].path):
                    _fold(tables[name], changes)
            except HeadwaterError as error:
                failed[name] = error
        return Folded(upto={name: folded_upto(table) for name, table in tables.items()}, failed=failed)

    def referring(self, opened: Callable[[str], FencedTable | None]) -> set[str]:
        """Return the tables that have files in the journal which are not folded yet."""
        named = self._payload(["table", "upto"], None, ds.field("files").is_valid())
        newest = {one["table"]: Tick(one["upto"]) for one in named.sort_by("upto").to_pylist()}
        return {name for name, upto in newest.items() if (table := opened(name)) is None or folded_upto(table) < upto}

    def trim(self, is_covered: Callable[[str, Tick], bool], fewest: int) -> int:
        """Merge small data files without the rows that their tables have. Return how many files that removed.

        Nothing is done below `fewest` files. A large file is rewritten once its tables have all its rows.
        """
        self.table.reload()
        entries = sorted(self.table.entries(), key=lambda entry: int(entry["min.sequence"]))
        gone = [entry for entry in entries if self._is_for_merging(entry, is_covered)]
        if len(gone) < fewest:
            return 0
        rows = self._rows([f"{self.table.path}/{entry['path']}" for entry in gone], SCHEMA.names).sort_by("sequence")
        ends = zip(rows["table"].to_pylist(), rows["upto"].to_pylist(), strict=True)
        kept = rows.filter(pa.array([table is None or not is_covered(table, Tick(upto)) for table, upto in ends]))
        merged = write_rows(self.table.path, kept, bounded=_BOUNDED)
        reach("before journal trim")
        removed = self.table.move([merged], gone)
        reach("after journal trim")
        return removed

    def records(self, after: int, upto: int | None, columns: Sequence[str]) -> pa.Table:
        """Return some columns of the records with after < sequence <= upto, oldest first."""
        files = self.table.files(after=after, upto=upto, column="sequence")
        wanted = (ds.field("sequence") > after) & ds.field("kind").is_valid()
        if upto is not None:
            wanted &= ds.field("sequence") <= upto
        return self._rows(files, ["sequence", *columns], wanted).sort_by("sequence")

    def _is_for_merging(self, entry: Mapping[str, Any], is_covered: Callable[[str, Tick], bool]) -> bool:
        if entry["size_bytes"] < _SMALL_BYTES or entry.get("max.upto") is None:
            return bool(entry["size_bytes"] < _SMALL_BYTES)
        ends = self._rows([f"{self.table.path}/{entry['path']}"], ["table", "upto"], ds.field("table").is_valid())
        return all(is_covered(one["table"], one["upto"]) for one in ends.to_pylist())

    def _stored_ends(self) -> dict[str, Tick]:
        """Return the newest tick of each table, without reading rows."""
        ends = self._payload(["table", "upto"], None).group_by("table").aggregate([("upto", "max")])
        return {one["table"]: Tick(one["upto_max"]) for one in ends.to_pylist()}

    def _stored(self, tables: Collection[str], after: Tick) -> dict[str, list[TableChange]]:
        """Return the changes of tables that end beyond a tick, oldest first, as they are on disk."""
        wanted = ds.field("table").isin(list(tables))
        found: dict[str, list[TableChange]] = {}
        for one in self._payload(["sequence", *CHANGES.names], after, wanted).sort_by("sequence").to_pylist():
            change = TableChange(
                table=one["table"],
                after=Tick(one["after"]),
                upto=Tick(one["upto"]),
                rows=None if one["rows"] is None else _unpacked(one["rows"], self.table.path),
                files=() if one["files"] is None else parse_stored(self.table.path, one["files"], _parse_files),
            )
            found.setdefault(change.table, []).append(change)
        for changes in found.values():
            assert all(one.upto <= next_one.after for one, next_one in pairwise(changes)), "a tick is committed once"
        return found

    def _payload(self, columns: list[str], after: Tick | None, wanted: ds.Expression | None = None) -> pa.Table:
        """Return some columns of the changes that end beyond a tick, of the newest version."""
        self.table.reload()
        least = Tick(-1) if after is None else after
        ends = [(entry["path"], entry.get("max.upto")) for entry in self.table.entries()]
        files = [f"{self.table.path}/{path}" for path, upto in ends if upto is not None and upto > least]
        beyond = ds.field("upto") > least
        return self._rows(files, columns, beyond if wanted is None else beyond & wanted)

    def _rows(self, files: Sequence[str], columns: list[str], wanted: ds.Expression | None = None) -> pa.Table:
        system, _ = place(self.table.path)
        with stored(*files):
            held = ds.dataset([place(file)[1] for file in files], schema=SCHEMA, format="parquet", filesystem=system)
            return held.to_table(columns=columns, filter=wanted)


def folded_upto(table: FencedTable) -> Tick:
    """Return the tick up to which a `changes` table holds the changes, in the version that its handle has seen."""
    return Tick(table.number(FOLDED) or 0)


def unfolded(changes: Sequence[TableChange], folded: Tick) -> list[TableChange]:
    """Return the changes that a table lacks which has all up to a tick."""
    left = [change for change in changes if change.upto > folded]
    assert all(change.after >= folded for change in left), "a change is folded as a whole"
    return left


def _fold(table: FencedTable, changes: Sequence[TableChange]) -> None:
    """Append the changes that a table does not have yet, in one commit."""
    while due := unfolded(changes, folded_upto(table)):
        rows = [change.rows for change in due if change.rows is not None]
        written = [write_rows(table.path, pa.concat_tables(rows))] if rows else []
        referred = [file for change in due for file in change.files]
        reach("before changes append")
        if table.register([*written, *referred], numbers={FOLDED: due[-1].upto}):
            reach("after changes append")
            return


def _packed(rows: pa.Table) -> bytes:
    """Return rows as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


def _unpacked(packed: bytes, path: str) -> pa.Table:
    with stored(path), pa.ipc.open_stream(packed) as stream:
        return stream.read_all()


def _parse_files(said: Sequence[Mapping[str, Any]]) -> tuple[DataFile, ...]:
    return tuple(DataFile(**file) for file in said)
