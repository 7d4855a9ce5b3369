"""A kept table: every delta it ever had, and its plain rows as of one tick.

    <folder>/changes      output columns + `_tick` + `_count`, append only: a feed that others may subscribe to
    <folder>/checkpoint   plain rows as of one tick, a row with count k stands k times: what DuckDB, Polars, Trino read

Invariants
1. `changes` holds exactly Δ(s) for every tick s in (birth, a], where a is its application transaction version, and
   nothing beyond a. Δ is a function of the change log and the view alone, so a maintainer that finds a beyond the
   committed frontier (after a crash between append and commit, or beside another maintainer) goes on from a.
2. An empty delta writes nothing: the commit row, not the table, says how far a view has come.
3. States are addressed by tick, never by Delta version: compaction moves rows between files and changes none, rows
   beyond the committed frontier are left out by their tick, and a checkpoint says its own tick. Any version serves.
4. Changes with tick <= horizon may be dropped only if the checkpoint's tick is at or after the horizon.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from headwater.changelog.change_log import HORIZON
from headwater.changelog.layout import stamped_schema
from headwater.deltas.on_arrow import ArrowBag, ArrowRestriction
from headwater.errors import NotReadable
from headwater.fail_points import reach
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK
from headwater.storage.data_file import place
from headwater.storage.fenced_table import FencedTable
from headwater.storage.few_rows import read_few
from headwater.warehouse.checkpoint import ORDERED, Checkpoint, CheckpointSnapshot

if TYPE_CHECKING:  # small tables are read without Spark, and quicker without importing it
    from pyspark.sql import DataFrame, SparkSession

Read = TypeVar("Read")

UPTO = "headwater"
BIRTH = "headwater.birth"


class KeptTable:
    """The changes and the checkpoint of one generation of a view or another table the warehouse keeps."""

    def __init__(self, folder: str, changes: FencedTable, checkpoint: Checkpoint) -> None:
        """Wrap open tables. Use `create` or `open`."""
        self.folder = folder
        self.changes = changes
        self.checkpoint = checkpoint

    @classmethod
    def create(cls, folder: str, schema: pa.Schema, birth: Tick, *, ordered: int = 0) -> Self:
        """Create both tables for a view whose first state is the one at tick `birth`. The same again is harmless.

        Its rows are looked up by its first `ordered` columns, and sorted by them on disk.
        """
        numbers = {UPTO: birth, BIRTH: birth}
        if not FencedTable.exists(f"{folder}/changes"):
            columns = pa.schema([pa.field(TICK, pa.int64()), pa.field(COUNT, pa.int64()), *schema])
            FencedTable.create(f"{folder}/changes", columns, numbers=numbers, mark="{}")
        if not FencedTable.exists(f"{folder}/checkpoint"):
            order = {ORDERED: ordered} if ordered else {}
            FencedTable.create(f"{folder}/checkpoint", schema, numbers=order, mark="{}", indexed=8)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: str) -> Self:
        """Open both tables at their newest versions."""
        return cls(folder, FencedTable.open(f"{folder}/changes"), Checkpoint.open(f"{folder}/checkpoint"))

    @property
    def schema(self) -> pa.Schema:
        """The output columns."""
        return pa.schema([field for field in self.changes.schema() if field.name not in (TICK, COUNT)])

    def birth(self) -> Tick:
        """Return the tick of the first state."""
        return Tick(self.changes.number(BIRTH) or 0)

    def appended_upto(self) -> Tick:
        """Return the tick up to which the deltas are in `changes`, committed or not."""
        return Tick(self.changes.number(UPTO) or 0)

    def horizon(self) -> Tick:
        """Return the tick up to which retention has dropped the changes. The state at the horizon can still be read."""
        return Tick(self.changes.number(HORIZON) or self.birth())

    def append(self, rows: pa.Table, upto: Tick) -> bool:
        """Append the deltas of the ticks after `appended_upto` up to `upto`. Return False if there were none.

        Rows of ticks that are in the table already are left out, so a batch computed again, or cut otherwise, is safe.
        """
        while (done := self.appended_upto()) < upto:
            fresh = rows.filter(pc.greater(rows[TICK], done))
            if fresh.num_rows == 0:
                return False
            assert pc.max(fresh[TICK]).as_py() <= upto, "a batch ends at its last tick"
            ordered = fresh.select(self.changes.schema().names).cast(self.changes.schema())
            reach("before changes append")
            if self.changes.append(ordered, numbers={UPTO: upto}):
                reach("after changes append")
                return True
        return False

    def changes_dataframe(self, spark: SparkSession, after: Tick, upto: Tick) -> DataFrame:
        """Return the signed rows with after < tick <= upto."""
        from headwater.storage.spark_files import read_files  # noqa: PLC0415 - as above

        files = self._change_files(after, upto)
        frame = read_files(spark, files, stamped_schema(self.schema))
        return frame.where((frame[TICK] > after) & (frame[TICK] <= upto)) if files else frame

    def few_changes(self, after: Tick, upto: Tick, few: int) -> pa.Table | None:
        """Return the same without Spark, or None if more than few rows had to be read."""
        return self._few_changes(self.schema, after, upto, None, few)

    def _few_changes(
        self, plain: pa.Schema, after: Tick, upto: Tick, keys: pa.Table | None, few: int
    ) -> pa.Table | None:
        files = self._change_files(after, upto) if after < upto else ()
        rows = read_few(files, stamped_schema(plain), keys, few)
        if rows is None:
            return None
        return rows.filter(pc.and_(pc.greater(rows[TICK], after), pc.less_equal(rows[TICK], upto)))

    def _change_files(self, after: Tick, upto: Tick) -> list[str]:
        """Return where the data files are that may hold changes of these ticks."""
        self.changes.reload()
        if after < (horizon := self.horizon()):
            raise NotReadable(
                f"the changes of ticks {after + 1} to {horizon} are not kept",
                code="HW-412",
                detail="they are before the table's birth, or retention has dropped them",
                hint="ask for a later tick, or keep more history: raise the project's retention",
            )
        return self.changes.files(after=after, upto=upto)

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
        self.changes.reload()
        low, high = min(at, tick), max(at, tick)
        files = self.changes.files(after=low, upto=high)
        if low == high or not files:
            return base
        system, _ = place(self.changes.path)
        in_range = (ds.field(TICK) > low) & (ds.field(TICK) <= high)
        counts = ds.dataset([place(file)[1] for file in files], format="parquet", filesystem=system).to_table(
            columns=[COUNT], filter=in_range
        )
        moved = pc.sum(counts[COUNT]).as_py() or 0
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
        changes = self.changes_dataframe(spark, low, high)
        if not self.changes.files(after=low, upto=high):
            return rows
        return roll(rows, changes.drop(TICK), back=at < snapshot.tick)

    def _checkpoint_rows(self, spark: SparkSession, snapshot: CheckpointSnapshot) -> DataFrame:
        from headwater.storage.spark_files import read_files  # noqa: PLC0415 - as above

        return read_files(spark, snapshot.files, self.schema)

    def roll_checkpoint(self, spark: SparkSession, upto: Tick) -> bool:
        """Bring the checkpoint to a committed tick. Return False if it is there already or beyond."""
        if self.checkpoint.snapshot().tick >= upto:
            return False
        return self.checkpoint.write_from_dataframe(self.state_dataframe(spark, upto), upto)
