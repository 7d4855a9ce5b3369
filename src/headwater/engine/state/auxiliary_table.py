"""An auxiliary table in use: a kept segment's rows on disk, and in memory at the ticks where views stand.

One table may serve several views, whose segments mean the same. Each goes its own way:

    tick    50        100                200
    A ──────────────► frontier                  goes on from 100 by the rows in memory, and leaves them at 200
    B ────► frontier                            its source was away: it goes on from 50, by rows read from disk

Invariants
1. The table holds every change of the segment up to the frontier of each view that reads it. Changes are a function of
   the change log, tick by tick, so the view that comes to a tick first commits them, and the others find them there.
2. Rows in memory are those of one tick; a view looks at those of its own frontier, and at no others.
So a view that waits or stops never holds another one up, and never shows it anything else than its own tick.
Views that need not show every tick have changes of their own making, and tables of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.engine.state.segment_reader import SegmentReader
from headwater.engine.state.stored_segment import StoredSegment
from headwater.errors import NotReadable
from headwater.model.memory_budget import MemoryBudget
from headwater.model.position import Tick
from headwater.model.relation import COUNT, Relation
from headwater.model.settings import BatchSettings
from headwater.storage.mapped_rows import MappedFolder
from headwater.warehouse.kept_table import KeptTable


@dataclass(slots=True, kw_only=True, eq=False)
class AuxiliaryTable:
    """A kept segment, the same for every view that reads it. `name` is what the catalog calls its table."""

    name: str
    relation: Relation
    table: KeptTable
    spark: SparkSession
    settings: BatchSettings
    budget: MemoryBudget
    _readers: dict[Tick, SegmentReader] = field(default_factory=dict)
    _fresh: SegmentReader | None = None
    """The same rows without changes on top, for the maintainer to take over."""

    def at(self, tick: Tick) -> SegmentReader:
        """Return the rows at a tick, read from disk unless some view stood there last."""
        if tick not in self._readers:
            self._readers[tick] = self._opened(tick)
        return self._readers[tick]

    def _opened(self, tick: Tick) -> SegmentReader:
        """Read the rows at a tick part by part: those of the checkpoint, and the changes from there on top."""
        entries = self.table.entry_parts(tick)
        reader = self._of_parts(entries.rows, entries.tick)
        reader.absorb(entries.changes, tick)
        return reader

    def refresh(self, fewest: int, share: float) -> None:
        """Read the checkpoint's rows beside those in use if many changes lie on top of these. In another thread.

        Many are at least the fewest, and a share of the rows. The checkpoint has to be newer than the rows in use.
        """
        newest = max([*self._readers.values()], key=lambda reader: reader.tick, default=None)
        if newest is None or self._fresh is not None:
            return
        if newest.rows.change_count < max(fewest, share * newest.rows.base_count):
            return
        if (self.table.checkpoint.tick() or newest.base_tick) > newest.base_tick:
            entries = self.table.checkpoint_parts()
            fresh = self._of_parts(entries.rows, entries.tick)
            fresh.rows.make_indexes(newest.rows.indexed())
            self._fresh = fresh

    def take_over(self) -> None:
        """Use the rows that were read again, with the changes since, if there are such. Between two batches."""
        fresh, self._fresh = self._fresh, None
        tick = max(self._readers, default=None)
        if fresh is None:
            return
        if tick is None or tick < fresh.tick:
            fresh.release()
            return
        try:
            changes = self.table.change_parts(fresh.tick, tick)
        except NotReadable:  # a long batch: there is a newer checkpoint, and retention has dropped what was before it
            fresh.release()
            return
        fresh.absorb(changes, tick)
        self._readers.pop(tick).release()
        self._readers[tick] = fresh

    def hold(self, plain: pa.Table, tick: Tick) -> None:
        """Take plain rows of a tick that somebody has in memory already."""
        counted = plain.append_column(COUNT, pa.repeat(pa.scalar(1, pa.int64()), plain.num_rows))
        self._readers[tick] = self._of_parts([counted], tick)

    def stored(self, tick: Tick) -> StoredSegment:
        """Return the rows at a tick where they are stored, for a caller that asks seldom."""
        return StoredSegment(
            relation=self.relation,
            tick=tick,
            table=self.table,
            spark=self.spark,
            few_rows=self.settings.lookup_rows,
            held_rows=self._held_rows,
        )

    @property
    def _held_rows(self) -> int:
        return self.budget.batch_rows(self.settings.held_rows)

    def _of_parts(self, parts: Iterable[pa.Table], tick: Tick) -> SegmentReader:
        folder = MappedFolder.below(self.table.folder, self.budget.rows)
        return SegmentReader.of_parts(self.relation, parts, tick, folder, self._many, self._held_rows)

    def _many(self, tick: Tick) -> StoredSegment:
        return replace(self.stored(tick), finds_many=True)

    def advance(self, lo: Tick, parts: Iterable[pa.Table], upto: Tick) -> None:
        """Take the rows in memory along from one tick to another, if no view did before. The changes come in parts."""
        if upto in self._readers or lo not in self._readers:
            return
        reader = self._readers.pop(lo)
        reader.absorb(parts, upto)
        self._readers[upto] = reader

    def forget(self, needed: Collection[Tick]) -> None:
        """Let rows in memory go that are of none of these ticks."""
        for tick in self._readers.keys() - set(needed):
            self._readers.pop(tick).release()
        if not self._readers and self._fresh is not None:
            self._fresh.release()
            self._fresh = None
