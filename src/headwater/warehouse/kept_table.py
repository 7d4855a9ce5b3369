"""A kept table: every delta it ever had, and its plain rows as of one tick.

    <folder>/changes      output columns + `_tick` + `_count`, append only: a feed that others may subscribe to
    <folder>/checkpoint   plain rows as of one tick, a row with count k stands k times: what DuckDB, Polars, Trino read

Commits add to the journal; `changes` follows, about every hundred commits. A reader of this class sees both.

Invariants
1. `changes` holds exactly Δ(s) for every tick s in (birth, f], where f is its number `headwater.folded`, and nothing
   beyond f; the journal holds exactly those of the ticks after f that are committed. Of views that share
   a table, the first that comes to a tick commits its changes.
2. An empty delta writes nothing: the commit, not the table, says how far a view has come.
3. States are addressed by tick, never by Delta version: compaction moves rows between files and changes none, folding
   moves them out of the journal, rows after the wanted tick are left out, and a checkpoint says its own tick.
4. Rows move from the journal to `changes`, and then into the checkpoint, after which retention may drop them. So the
   journal is read before `changes`; and if what lies between the checkpoint and the wanted tick was dropped meanwhile,
   there is a newer checkpoint, and both are read again.
5. Changes with tick <= horizon may be dropped only if the checkpoint's tick is at or after the horizon, and f as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from headwater.changelog.change_log import HORIZON
from headwater.changelog.layout import stamped_schema
from headwater.deltas.on_arrow import ArrowBag, ArrowRestriction
from headwater.errors import NotReadable
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK
from headwater.storage.data_file import describe, place, write_rows
from headwater.storage.fenced_table import FencedTable
from headwater.storage.few_rows import ROWS_PER_PART, read_few, read_in_parts
from headwater.warehouse.checkpoint import ORDERED, Checkpoint, CheckpointSnapshot
from headwater.warehouse.journal import FOLDED, Journal, TableChange, folded_upto, table_name, unfolded

if TYPE_CHECKING:  # small tables are read without Spark, and quicker without importing it
    from pyspark.sql import DataFrame, SparkSession

    from headwater.deltas.stored_bag import Bag, StoredBag

Read = TypeVar("Read")

BIRTH = "headwater.birth"
_CARRIED_ROWS = 20_000
"""A commit carries up to this many rows of a table. More are written to a file of the table, which the commit names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSnapshot:
    """The data files and the unfolded rows that hold the changes of some ticks, and perhaps of others."""

    files: list[str]
    rows: pa.Table

    def __bool__(self) -> bool:
        """Tell whether there may be any."""
        return bool(self.files) or self.rows.num_rows > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryParts:
    """What sums up to a table's rows at a tick, with `_count`: the checkpoint's rows, and signed changes from there.

    Both are read when they are asked for, and only once. `tick` is that of the checkpoint.
    """

    tick: Tick
    rows: Iterator[pa.Table]
    changes: Iterator[pa.Table]


class KeptTable:
    """The changes and the checkpoint of one generation of a view or another table the warehouse keeps."""

    def __init__(self, folder: str, journal: Journal, changes: FencedTable, checkpoint: Checkpoint) -> None:
        """Wrap open tables. Use `create` or `open`."""
        self.folder = folder
        self.name = table_name(folder)
        self.journal = journal
        self.changes = changes
        self.checkpoint = checkpoint
        self._stamped = changes.schema()
        """The columns of `changes`."""

    @classmethod
    def create(cls, folder: str, journal: Journal, schema: pa.Schema, birth: Tick, *, ordered: int = 0) -> Self:
        """Create both tables for a view whose first state is the one at tick `birth`. The same again is harmless.

        Its rows are looked up by its first `ordered` columns, and sorted by them on disk.
        """
        numbers = {FOLDED: birth, BIRTH: birth}
        if not FencedTable.exists(f"{folder}/changes"):
            columns = pa.schema([pa.field(TICK, pa.int64()), pa.field(COUNT, pa.int64()), *schema])
            FencedTable.create(f"{folder}/changes", columns, numbers=numbers, mark="{}")
        if not FencedTable.exists(f"{folder}/checkpoint"):
            order = {ORDERED: ordered} if ordered else {}
            FencedTable.create(f"{folder}/checkpoint", schema, numbers=order, mark="{}", indexed=8)
        return cls.open(folder, journal)

    @classmethod
    def open(cls, folder: str, journal: Journal) -> Self:
        """Open both tables at their newest versions. `journal` has the changes that are not in them yet."""
        return cls(folder, journal, FencedTable.open(f"{folder}/changes"), Checkpoint.open(f"{folder}/checkpoint"))

    @property
    def schema(self) -> pa.Schema:
        """The output columns."""
        return pa.schema([field for field in self._stamped if field.name not in (TICK, COUNT)])

    def birth(self) -> Tick:
        """Return the tick of the first state."""
        return Tick(self.changes.number(BIRTH) or 0)

    def committed_upto(self) -> Tick:
        """Return the tick up to which changes are committed: the larger of those of the journal and of `changes`."""
        if (newest := self.journal.newest(self.name)) is not None:
            return newest
        unfolded_ones = self.journal.read(self.name, folded_upto(self.changes))
        self.changes.reload()
        return max([folded_upto(self.changes), *(change.upto for change in unfolded_ones)])

    def horizon(self) -> Tick:
        """Return the tick up to which retention has dropped the changes. The state at the horizon can still be read."""
        return Tick(self.changes.number(HORIZON) or self.birth())

    def change(self, rows: Bag, upto: Tick, after: Tick | None = None) -> TableChange | None:
        """Return the part of a batch's changes that is new, or None if nothing is.

        Changes up to `committed_upto`, and up to `after`, are left out: another view that shares the table has them.
        Stored changes are named by their files, which are below the folder of `changes`.
        """
        if not rows.most:
            return None
        done = max(self.committed_upto(), after or Tick(0))
        if (held := rows.held) is None:
            assert rows.stored is not None, "a bag has one of two forms"
            return self._stored_change(rows.stored, upto, done)
        ends = pc.min_max(held.table[TICK]).as_py()
        fresh = held if ends["min"] > done else held.after(done)
        if not len(fresh):
            return None
        assert ends["max"] <= upto, "a batch ends at its last tick"
        ordered = fresh.table.select(self._stamped.names)
        typed = ordered if ordered.schema.equals(self._stamped) else ordered.cast(self._stamped)
        if typed.num_rows > _CARRIED_ROWS:
            return TableChange(table=self.name, after=done, upto=upto, files=(write_rows(self.changes.path, typed),))
        return TableChange(table=self.name, after=done, upto=upto, rows=typed)

    def _stored_change(self, rows: StoredBag, upto: Tick, done: Tick) -> TableChange | None:
        """Return the part of stored changes that is new. Files that have other rows too are written again."""
        from headwater.storage.stored_rows import write_bag  # noqa: PLC0415 - as above

        root = self.changes.path
        assert rows.files is not None, "changes are written before they are committed"
        files = [describe(root, path.removeprefix(f"{root}/")) for path in rows.files if path.startswith(f"{root}/")]
        ends = [file.lowest.get(TICK) for file in files]
        if len(files) < len(rows.files) or any(not isinstance(end, int) or end <= done for end in ends):
            written = write_bag(rows.after(done).frame, rows.schema, root, held_rows=0)
            return self.change(written, upto, done)
        assert all(int(file.highest[TICK]) <= upto for file in files), "a batch ends at its last tick"
        return TableChange(table=self.name, after=done, upto=upto, files=tuple(files))

    def change_snapshot(self, after: Tick, upto: Tick) -> ChangeSnapshot:
        """Return where the changes with after < tick <= upto are that are kept."""
        found = self.journal.read(self.name, folded_upto(self.changes))  # before the table: data moves that way
        with self.changes.lock:
            self.changes.reload()
            folded = folded_upto(self.changes)
            files = self.changes.files(after=after, upto=upto)
        left = [one for one in unfolded(found, folded) if one.upto > after and one.after < upto]
        held = [one.rows for one in left if one.rows is not None]
        referred = [f"{self.changes.path}/{file.path}" for one in left for file in one.files]
        return ChangeSnapshot(
            files=files + referred, rows=pa.concat_tables(held) if held else self._stamped.empty_table()
        )

    def changes_dataframe(self, spark: SparkSession, after: Tick, upto: Tick) -> DataFrame:
        """Return the signed rows with after < tick <= upto."""
        return self._changes_on_spark(spark, self._kept_changes(after, upto), after, upto)

    def _changes_on_spark(self, spark: SparkSession, found: ChangeSnapshot, after: Tick, upto: Tick) -> DataFrame:
        from headwater.deltas.on_spark import to_dataframe  # noqa: PLC0415 - as above
        from headwater.storage.spark_files import read_files, spark_schema  # noqa: PLC0415 - as above

        columns = stamped_schema(self.schema)
        frame = read_files(spark, found.files, columns)
        if found.rows.num_rows:
            held = to_dataframe(spark, found.rows.select(columns.names).cast(columns))
            held = held.to(spark_schema(columns))
            frame = frame.unionByName(held) if found.files else held
        return frame.where((frame[TICK] > after) & (frame[TICK] <= upto)) if found else frame

    def few_changes(self, after: Tick, upto: Tick, few: int) -> pa.Table | None:
        """Return the same without Spark, or None if more than few rows had to be read."""
        return self._few_changes(self.schema, after, upto, None, few)

    def _few_changes(
        self, plain: pa.Schema, after: Tick, upto: Tick, keys: pa.Table | None, few: int
    ) -> pa.Table | None:
        columns = stamped_schema(plain)
        if after >= upto:
            return columns.empty_table()
        found = self._kept_changes(after, upto)
        stored = read_few(found.files, columns, keys, few)
        if stored is None:
            return None
        rows = pa.concat_tables([stored, found.rows.select(columns.names).cast(columns)])
        return rows.filter(pc.and_(pc.greater(rows[TICK], after), pc.less_equal(rows[TICK], upto)))

    def _kept_changes(self, after: Tick, upto: Tick) -> ChangeSnapshot:
        """Return where the changes of these ticks are. If retention has dropped some, it is refused."""
        found = self.change_snapshot(after, upto)
        if after < (horizon := self.horizon()):
            raise NotReadable(
                f"the changes of ticks {after + 1} to {horizon} are not kept",
                code="HW-412",
                detail="they are before the table's birth, or retention has dropped them",
                hint="ask for a later tick, or keep more history: raise the project's retention",
            )
        return found

    def entry_parts(self, at: Tick) -> EntryParts:
        """Return what sums up to the rows at a tick, with `_count`, read into this process part by part."""
        return self._from_checkpoint(lambda snapshot: self._entry_parts(snapshot, at))

    def checkpoint_parts(self) -> EntryParts:
        """Return the rows of the checkpoint, at its own tick, in the same way."""
        snapshot = self.checkpoint.snapshot()
        return self._entry_parts(snapshot, snapshot.tick)

    def _entry_parts(self, snapshot: CheckpointSnapshot, at: Tick) -> EntryParts:
        low, high = min(at, snapshot.tick), max(at, snapshot.tick)
        changes = self._parts(self._kept_changes(low, high), low, high) if low < high else iter(())
        is_back = at < snapshot.tick
        return EntryParts(
            tick=snapshot.tick,
            rows=(_with_counts(part, 1) for part in read_in_parts(snapshot.files, self.schema)),
            changes=(_negated(part) if is_back else part for part in changes),
        )

    def change_parts(self, after: Tick, upto: Tick) -> Iterator[pa.Table]:
        """Return the signed rows with after < tick <= upto, without their ticks, part by part."""
        return self._parts(self._kept_changes(after, upto), after, upto)

    def _parts(self, found: ChangeSnapshot, after: Tick, upto: Tick) -> Iterator[pa.Table]:
        columns = stamped_schema(self.schema)
        held = found.rows.select(columns.names).cast(columns)
        pieces = (pa.Table.from_batches([batch]) for batch in held.to_batches(max_chunksize=ROWS_PER_PART))
        for part in chain(read_in_parts(found.files, columns), pieces):
            between = part.filter(pc.and_(pc.greater(part[TICK], after), pc.less_equal(part[TICK], upto)))
            if between.num_rows:
                yield between.drop_columns([TICK])

    def state_dataframe(self, spark: SparkSession, at: Tick) -> DataFrame:
        """Return the plain rows at a tick. The caller has checked it against the committed frontier."""
        return self._from_checkpoint(lambda snapshot: self._rolled(spark, snapshot, at))

    def entries_dataframe(self, spark: SparkSession, at: Tick, keys: pa.Table | None = None) -> DataFrame:
        """Return what sums up to the rows at a tick, with `_count`: the checkpoint's rows, and changes from there.

        For callers that need few of the rows, and sum them up: nothing is compared here, so nothing is shuffled. With
        keys, rows that have other values may be missing: files that hold only such are not read.
        """
        return self._from_checkpoint(lambda snapshot: self._entries(spark, snapshot, at), keys)

    def few_rows(self, at: Tick, wanted: tuple[str, ...], within: ArrowRestriction | None, few: int) -> ArrowBag | None:
        """Return the wanted columns of the rows at a tick, as a lookup finds them, in entries that are not netted.

        They are read without Spark. It returns None if more than few rows had to be read.
        """
        columns = () if within is None else within.columns
        typed = pa.schema([self.schema.field(name) for name in columns])
        keys = None if within is None else within.keys.named(columns).cast(typed)
        needed = tuple(dict.fromkeys((*wanted, *columns)))
        bag = self._from_checkpoint(lambda snapshot: self._few_entries(snapshot, at, needed, keys, few), keys)
        if bag is None:
            return None
        found = bag if within is None else bag.matching(columns, within.keys)
        return found.picked(wanted)

    def _few_entries(
        self, snapshot: CheckpointSnapshot, at: Tick, columns: Sequence[str], keys: pa.Table | None, few: int
    ) -> ArrowBag | None:
        """Return entries that have values of the keys, column by column."""
        plain = pa.schema([self.schema.field(name) for name in columns])
        rows = read_few(snapshot.files, plain, keys, few)
        due = self._few_changes(plain, min(at, snapshot.tick), max(at, snapshot.tick), keys, few)
        if rows is None or due is None:
            return None
        changes = ArrowBag(due) if at > snapshot.tick else ArrowBag(due).negated()
        return ArrowBag.of_plain(rows, at).plus(changes.restamped(at))

    def row_count(self, at: Tick) -> int:
        """Return how many rows there are at a tick at or after the checkpoint's, or shortly before.

        The rows are not read. Delta knows how many the checkpoint's files hold, and the changes since are signed: only
        their ticks and counts are read, of the files that hold any after the checkpoint's tick. So it costs as much as
        what happened since the checkpoint.
        """
        with self.checkpoint.table.lock:
            tick = self.checkpoint.snapshot().tick
            base = self.checkpoint.row_count()
        low, high = min(at, tick), max(at, tick)
        if low == high:
            return base
        found = self.change_snapshot(low, high)
        in_range = (ds.field(TICK) > low) & (ds.field(TICK) <= high)
        held = [ds.dataset(found.rows.select([TICK, COUNT]))]
        if found.files:
            system, _ = place(self.changes.path)
            held.append(ds.dataset([place(file)[1] for file in found.files], format="parquet", filesystem=system))
        batches = (batch for one in held for batch in one.to_batches(columns=[COUNT], filter=in_range))
        moved = sum(pc.sum(batch[COUNT]).as_py() or 0 for batch in batches)
        return base + (moved if at > tick else -moved)

    def _from_checkpoint(self, read: Callable[[CheckpointSnapshot], Read], keys: pa.Table | None = None) -> Read:
        snapshot = self.checkpoint.snapshot(keys)
        try:
            return read(snapshot)
        except NotReadable:
            later = self.checkpoint.snapshot(keys)
            if later.tick == snapshot.tick:
                raise
            return read(later)  # it moved on, and the changes before it were dropped, meanwhile

    def _entries(self, spark: SparkSession, snapshot: CheckpointSnapshot, at: Tick) -> DataFrame:
        from headwater.warehouse.state import entries  # noqa: PLC0415 - as above

        rows = self._checkpoint_rows(spark, snapshot)
        changes = self.changes_dataframe(spark, min(at, snapshot.tick), max(at, snapshot.tick))
        return entries(rows, changes.drop(TICK), back=at < snapshot.tick)

    def _rolled(self, spark: SparkSession, snapshot: CheckpointSnapshot, at: Tick) -> DataFrame:
        from headwater.warehouse.state import roll  # noqa: PLC0415 - as above

        rows = self._checkpoint_rows(spark, snapshot)
        low, high = min(at, snapshot.tick), max(at, snapshot.tick)
        if low == high:
            return rows
        found = self._kept_changes(low, high)
        if not found:
            return rows
        changes = self._changes_on_spark(spark, found, low, high)
        return roll(rows, changes.drop(TICK), back=at < snapshot.tick)

    def _checkpoint_rows(self, spark: SparkSession, snapshot: CheckpointSnapshot) -> DataFrame:
        from headwater.storage.spark_files import read_files  # noqa: PLC0415 - as above

        return read_files(spark, snapshot.files, self.schema)

    def roll_checkpoint(self, spark: SparkSession, upto: Tick) -> bool:
        """Bring the checkpoint to a committed tick. Return False if it is there already or beyond."""
        if self.checkpoint.snapshot().tick >= upto:
            return False
        return self.checkpoint.write_from_dataframe(self.state_dataframe(spark, upto), upto)


def _with_counts(rows: pa.Table, count: int) -> pa.Table:
    return rows.append_column(COUNT, pa.repeat(pa.scalar(count, pa.int64()), rows.num_rows))


def _negated(rows: pa.Table) -> pa.Table:
    return rows.set_column(rows.column_names.index(COUNT), COUNT, pc.negate(rows[COUNT]))
